/* Private to truth: a row of inference turned into engines, each a job of serving with a plan, and
 * the load they are under. */
#pragma once
#include "scalemodel/serve.h"
#include "engine_table.h"
#include "scalemodel/truth.h"
#include "truth_parts.h"

/* Dtypes: as stated, else what the engine does with such weights on such a chip. */
bool inference_dtypes(const sm_inference_row *row, const sm_chip *chip, const truth_engine *engine,
                      sm_serve_dtypes *dtypes, const char **why);

/* Copies of one engine. */
typedef struct inference_pool {
    int engines, chips; /* copies; chips of one */
    sm_plan plan;
} inference_pool;
/* prefill: the same as decode unless they have chips of their own. */
typedef struct inference_layout {
    inference_pool prefill, decode;
    bool apart;
} inference_layout;
bool inference_layout_of(const sm_truth_row *row, const sm_chip *chip, const sm_model *model,
                         const sm_serve_dtypes *dtypes, inference_layout *layout, const char **why);

/* The architecture, as engines of this layout fill it up, to be dropped; as stated where layout is
 * NULL. false: `why` names the missing fact, NULL when out of memory. */
bool inference_model(const sm_inference_row *row, const inference_layout *layout,
                     row_models *models, const sm_model **model, const char **why);

/* How requests arrive. */
typedef enum inference_arrival {
    ARRIVE_TOGETHER, /* one static batch */
    ARRIVE_IN_TURN,  /* so many in flight: each that ends is followed by another */
    ARRIVE_AT_RATE,  /* so many a second */
    ARRIVE_ALL       /* all are there: as many run as the memory holds */
} inference_arrival;
typedef struct inference_load {
    inference_arrival arrival;
    double requests;       /* batch, in flight, or a second; of the whole row */
    double prompt, output; /* mean tokens */
    bool prefill, decode;  /* which phases the row times */
    /* The time to first token that the row states, 0: none. Of those in flight the ones that wait
     * for it are not in decode, which a bound must not count. */
    double waited_s;
} inference_load;
bool inference_load_of(const sm_inference_row *row, inference_load *load, const char **why);

/* Seconds of one engine's steps under lower or expected prices. */
typedef struct inference_clock {
    sm_serve *prefill, *decode;
    const inference_layout *layout;
    const truth_engine *engine;
    double burst; /* of the engine under this load */
    const inference_load *load;
    double most_running; /* that fit in one decode engine */
    int drafted;         /* 0: no speculation */
    bool lower;
    bool failed;
    sm_error err;
} inference_clock;
/* n prompts at once. */
double inference_prefill_s(inference_clock *c, double n);
/* One step of n sequences at the mean context. */
double inference_decode_s(inference_clock *c, double n);
/* What the prefill of one request adds to the steps of n sequences in decode. */
double inference_added_s(inference_clock *c, double n);
/* Groups of chips of an engine that attend to sequences of their own. */
double inference_ranks(const inference_clock *c);
/* Tokens of a sequence that a decode step yields on average. */
double inference_yield(const inference_clock *c);

/* Time to first token, time per token, seconds of the system per request. */
typedef struct inference_times {
    double ttft_s, tpot_s, request_s, latency_s;
} inference_times;
inference_times inference_solve(inference_clock *c);
