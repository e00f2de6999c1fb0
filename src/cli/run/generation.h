/* generation: what `run generate` is asked, what it is predicted to take, and what came out. */
#ifndef SCALEMODEL_RUNCLI_GENERATION_H
#define SCALEMODEL_RUNCLI_GENERATION_H
#include "options.h"
#include "prediction.h"
#include "ranks.h"
#include "scalemodel/io.h"
#include "scalemodel/run_generate.h"
#include "scalemodel/serve.h"

enum { GENERATION_MOST_TOKENS = 1 << 20 }; /* of a prompt, and generated */

typedef struct run_generate_values {
    ranks_values ranks;
    cli_list prompt;
    const char *checkpoint, *prompts, *plan, *draft, *draft_checkpoint;
    int64_t tokens, seed, speculate;
    double temperature;
    prediction_values predicted;
} run_generate_values;

/* A model on the ranks. */
typedef struct generation_model {
    sm_model model;
    sm_train_setup setup;
    sm_safetensors file;
    const char *path; /* of the checkpoint */
} generation_model;

typedef struct generation_price { /* seconds of a pass */
    double prefill_s, decode_s, draft_prefill_s, draft_s;
} generation_price;

typedef struct generation {
    const cli_call *call;
    generation_model target, draft;
    bool drafts;
    sm_plan plan;
    size_t prompts;
    const char **prompt;
    size_t *prompt_bytes;
    size_t longest, tokens; /* longest: of the prompts */
    int depth;
    int64_t seed;
    double temperature;
    sm_system system;
    generation_price price;
    /* answers, written by rank 0 */
    unsigned char **text; /* of each prompt, with what follows */
    sm_generate_result result;
    double bytes_apart; /* over all ranks and passes */
} generation;

/* ---- generation_input.c ---- */
sm_status generation_read(generation *g, sm_error *err);
/* ---- generation_price.c: by the price of serving, in single precision ---- */
sm_status generation_predict(generation *g, sm_error *err);
/* ---- generation_page.c: SM_NEGATIVE when other bytes moved than predicted ---- */
sm_status generation_show(sm_report *r, const generation *g);
#endif
