/* simulate: requests through an engine, step by step. Discrete events, deterministic for a seed,
 * memory flat in the length of the trace. What a step takes is asked of an sm_engine, so that tests
 * can give one whose queue has a closed form; serve.h gives the real one. */
#pragma once
#include "scalemodel/serve.h"

SM_DECLARATIONS_BEGIN

/* ---- requests ---- */
#define SM_MAX_TOKENS 1e9 /* of a prompt, of an output */
#define SM_MAX_CV 100.0
typedef struct sm_request {
    double arrival_s;
    double prompt, output; /* tokens, at least 1 */
    uint64_t conversation; /* 0: none. Requests of one conversation share a growing prefix */
    double shared_prefix;  /* tokens of the prompt shared with everything of the same prefix id */
    uint64_t prefix;       /* id of that prefix, 0: none */
    /* In place of both: ids of the prompt's blocks in order, equal where all up to there is equal;
     * they stay valid until the next request is asked for. */
    const uint64_t *block;
    int blocks;
    double block_tokens;
    /* A further turn of the conversation of the request right before it: sent so long after that
     * one has ended; arrival_s is not looked at. */
    bool follows;
    double think_s;
    const char *kind; /* name of its class (sm_request_class), valid until the next request is asked
                         for; NULL: the first */
} sm_request;
/* next: 1 a request, 0 the end, -1 an error (err is filled). Arrivals do not decrease. */
typedef struct sm_arrivals {
    void *context;
    int (*next)(void *context, sm_request *request, sm_error *err);
} sm_arrivals;
/* Lengths drawn for synthetic arrivals: mean and coefficient of variation (0: fixed; else
 * lognormal). */
typedef struct sm_lengths {
    double prompt, prompt_cv, output, output_cv;
} sm_lengths;
typedef enum sm_arrival_kind {
    SM_ARRIVALS_POISSON,
    SM_ARRIVALS_GAMMA,
    SM_ARRIVALS_UNIFORM /* evenly spaced */
} sm_arrival_kind;
/* Requests come at this rate for so long. */
typedef struct sm_rate_span {
    double rate_per_s, seconds;
} sm_rate_span;
/* A kind of requests: what share of the drawn are of it, who goes first, and its own SLO. */
typedef struct sm_request_class {
    const char *name;
    double share;          /* of the drawn; all are taken by their sum */
    int priority;          /* lower goes first, as in vLLM, and gives its memory back last */
    double ttft_s, tpot_s; /* 0: that of the simulation */
} sm_request_class;
enum { SM_MOST_SPANS = 48, SM_MOST_CLASSES = 8, SM_MOST_TURNS = 1000000 };
typedef struct sm_synthetic {
    sm_arrival_kind kind;
    double rate_per_s, cv; /* of gamma gaps */
    double requests;       /* how many */
    sm_lengths lengths;
    uint64_t seed;
    sm_rng rng;
    double now_s, made;
    double least_share; /* > 0: lengths are drawn evenly from this share of prompt and output to all
                           of it, as benchmark tools do, in place of the variation */
    /* > 0 spans: the rate changes, over and over again, in place of rate_per_s */
    sm_rate_span span[SM_MOST_SPANS];
    int spans;
    /* > 0: what comes are conversations of so many turns on average. Each turn has all that went
     * before in its prompt, and lengths.prompt more; the times between them vary as lengths do. */
    double turns, turns_cv, think_s, think_cv;
    double shared_prefix; /* tokens at the beginning of every prompt, beyond lengths.prompt */
    const sm_request_class *classes;
    int n_classes;
    double left, history; /* of the conversation that is drawn: turns, tokens */
    uint64_t conversation;
    const char *kind_of; /* its class */
} sm_synthetic;
/* Begin to draw synthetic arrivals. The state is filled, but for rng, now_s, made and what is of
 * one conversation; it must outlive what is returned. The same seed gives the same requests. */
sm_arrivals sm_synthetic_arrivals(sm_synthetic *state);
/* Requests, or first turns, that come in a second on average. */
double sm_synthetic_rate(const sm_synthetic *state);
/* The mean prompt of all that are drawn, tokens: with what went before of conversations. */
double sm_synthetic_prompt(const sm_synthetic *state);

/* ---- the engine ---- */
typedef struct sm_engine {
    void *context;
    /* Seconds of a step: n sequences decoding with `cached` tokens among them, and `prefill` new
     * tokens (0: none) of prompts that each attend to `attended` tokens on average: a prompt of p
     * tokens with c cached before it has c + p / 2. NaN: the step cannot be priced. */
    double (*step_s)(void *context, double n, double cached, double prefill, double attended);
    /* What a step takes longer in which n sequences begin, since an encoder reads their sources;
     * NULL: nothing. */
    double (*begin_s)(void *context, double n);
    /* NULL, or what a step failed of that could be priced had there been memory */
    const sm_error *error;
    double kv_tokens;            /* that fit in memory */
    double host_kv_tokens;       /* in host memory, for swaps and the prefix cache; 0: none */
    double kv_bytes_per_token;   /* of a sequence of mean length: windows keep less of a long one */
    double host_bytes_per_s;     /* swap */
    double transfer_bytes_per_s; /* from a prefill pool to a decode pool */
    double transfer_latency_s;
    double tokens_per_step; /* of speculation: a decoding sequence gains so many; 1 */
    int drafted;            /* tokens that a step verifies beside; 0 */
    int chips;
} sm_engine;
typedef struct sm_engine_use {
    double mean_tokens; /* that a sequence holds, which says how many fit beside the weights */
    double step_tokens; /* of a step at most */
    bool prefills; /* of a pool that only prefills: steps follow one another through the stages of a
                      pipeline, one is what it keeps a stage busy, and the cache goes on when the
                      others are done */
    const sm_system *within; /* which has the pool that decodes too, of workers of so many chips:
                                what hands the cache over; NULL: the network between nodes */
    int to_chips;
} sm_engine_use;
/* The engine of a plan, or of one of its copies (`data`), which are engines of their own. Its times
 * are tables that fill as they are asked, interpolated between points 1/8 apart; the number of
 * decoding sequences is exact up to 1024. A step that decodes and prefills is the sum of both less
 * the matmuls counted twice. The engine lives in the arena and needs serve; it is for one thread.
 * Host memory: half of what the chips' hosts have. SM_NEGATIVE when not one such sequence fits. */
sm_status sm_serve_engine(sm_serve *serve, const sm_plan *plan, const sm_engine_use *use,
                          sm_arena *arena, sm_engine *engine, sm_error *err);

/* ---- policies ---- */
#define SM_POLICIES(X)                                                                             \
    X(STATIC, "static", "batches run to the end before the next is taken")                         \
    X(CONTINUOUS, "continuous", "prefill first, decoding waits meanwhile")                         \
    X(CHUNKED, "chunked", "chunks of prefill ride along with decoding")                            \
    X(DISAGGREGATED, "disaggregated", "prefill and decode in pools of their own")
#define SM_POLICY_ID(id, ...) SM_POLICY_##id,
typedef enum sm_policy { SM_POLICIES(SM_POLICY_ID) SM_POLICY_COUNT } sm_policy;
extern const char *const sm_policy_names[SM_POLICY_COUNT];
typedef enum sm_preempt { SM_PREEMPT_RECOMPUTE, SM_PREEMPT_SWAP } sm_preempt;
typedef enum sm_route {
    SM_ROUTE_LEAST_LOADED,
    SM_ROUTE_ROUND_ROBIN,
    SM_ROUTE_AFFINITY /* to the replica that holds the longest prefix, unless overloaded */
} sm_route;
typedef struct sm_simulation {
    size_t size; /* of this structure: sm_simulation_defaults fills it in */
    sm_policy policy;
    int replicas;         /* of the engine; disaggregated: of the decode engine */
    int prefill_replicas; /* disaggregated */
    const sm_engine *engine, *prefill_engine;
    double most_batch;     /* sequences at once in a replica */
    double chunk_tokens;   /* of a chunked step: decode and prefill tokens together */
    double prefill_tokens; /* of a prefill step of the others: whole prompts up to that, or one */
    double page_tokens;    /* of the KV cache: memory is taken in pages */
    sm_preempt preempt;
    sm_route route;
    bool prefix_cache; /* radix tree, least recently used goes first */
    /* > 0: a closed loop of so many clients, as benchmarks are: each has one request in flight and
     * sends the next so long after the end of that; when arrivals come is not looked at. 0: open */
    double concurrency, think_s;
    /* From a client to the queue: a request is parsed and scheduled. Exponential of that mean where
     * it follows the end of another (a closed loop, turns), drawn by `seed`. */
    double admission_s;
    double ttft_s, tpot_s; /* the SLO goodput counts; 0: none */
    double sample_s;       /* of the series at first; doubled whenever SM_MAX_SAMPLES are reached.
                              0: 1 ms, HUGE_VAL: no series but its end */
    bool stepwise;         /* one step at a time, for tests: the same answer, slowly */
    const sm_request_class *classes; /* at most SM_MOST_CLASSES; none: all requests are alike */
    int n_classes;
    /* Of a replica that decodes: between looks for new requests; and the most between two times
     * that prompts go in before each of `groups` has one, which go in as far as the step has tokens
     * for their group. 0: they are taken after every step. Not of pools. */
    double look_steps, gather_steps;
    uint64_t seed;
    double prompt_tokens; /* of one prompt in a chunked step at most, as it is on one group of
                             chips; 0: all there is room for */
    double groups; /* of chips with sequences of their own, each of which takes a prompt at least in
                      a step of prompts; 0: one */
    bool schedules_ahead; /* a step while the one before it runs: a request that comes meanwhile
                             waits for one more. Of a replica that decodes */
} sm_simulation;
#define sm_simulation_defaults(simulation)                                                         \
    sm_simulation_defaults_sized((simulation), sizeof *(simulation))
/* Fill a structure of `size` bytes with the defaults: continuous batching on one replica, at most
 * 256 sequences, pages of 16 tokens. The engine is left NULL. What sm_simulation_defaults calls. */
void sm_simulation_defaults_sized(sm_simulation *simulation, size_t size);

/* Policy, admission, and the steps between looks and those that prompts are gathered for, as this
 * software has them (load.h). apart: prompts are prefilled elsewhere and handed over. Tokens and
 * sequences of a step become 0, for an answer to fill: the software's for the groups of chips that
 * have sequences of their own. */
void sm_simulation_follow(sm_simulation *simulation, const sm_software *software, bool apart);

/* What became of one request, when it ends. */
typedef struct sm_request_served {
    uint64_t number; /* in order of arrival, from 0 */
    double arrival_s, start_s, first_token_s, end_s;
    double prompt, output, cached; /* tokens; cached: of the prompt found in the prefix cache */
    int replica, preemptions;      /* replica: where it ended */
    int kind;                      /* its class, from 0 */
} sm_request_served;
typedef struct sm_watch { /* may be all NULL */
    void *context;
    void (*served)(void *context, const sm_request_served *served);
    /* so many equal engine steps one after the other, for a timeline; the replicas of a prefill
     * pool come after those that decode */
    void (*step)(void *context, int replica, double start_s, double seconds, double steps,
                 double decoding, double prefill_tokens);
} sm_watch;
typedef struct sm_percentiles {
    double mean, p50, p90, p99, most; /* within 1 %: a histogram of logarithmic bins */
} sm_percentiles;
typedef struct sm_sample {
    double at_s; /* end of the interval over which the others are averages */
    double waiting, running, kv_occupancy, utilisation;
} sm_sample;
enum { SM_MAX_SAMPLES = 512 };
typedef struct sm_class_served {
    double finished, within_slo; /* within: the share of its requests, the refused included */
    sm_percentiles ttft_s, tpot_s, e2e_s;
} sm_class_served;
/* One cache, which all replicas share, of so many tokens and what it would find of the prompts: a
 * share of their tokens. It gives up what was used longest ago. */
typedef struct sm_cache_point {
    double tokens, found;
} sm_cache_point;
/* As large as the HBM of all replicas, with their host memory, and the smallest that find this
 * share of what an endless one does. */
#define SM_CACHE_POINTS(X) X(HBM, 0) X(HOST, 0) X(HALF, 0.5) X(MOST, 0.8) X(NINE, 0.9) X(ALL, 1)
#define SM_CACHE_ID(id, ...) SM_CACHE_##id,
enum { SM_CACHE_POINTS(SM_CACHE_ID) SM_CACHE_COUNT };
typedef struct sm_simulated {
    double requests, finished, refused; /* refused: can never fit in memory */
    /* Of the finished. Every token is accounted for: prefilled = prompt - cached + recomputed; each
     * prefill gives one token of the output, decoding the others. */
    double prompt_tokens, output_tokens, cached_tokens, recomputed_tokens;
    double prefilled_tokens, decoded_tokens;
    double seconds;     /* from the first arrival to the last token */
    double arriving_s;  /* from the first arrival to the last, and a mean gap more */
    double busy_s;      /* engine seconds spent in steps, all replicas */
    double utilisation; /* busy over seconds x replicas */
    sm_percentiles ttft_s, tpot_s, e2e_s, queue_s;
    double goodput_per_s, within_slo; /* requests a second, and the share, within the SLO */
    double requests_per_s, output_tokens_per_s, output_tokens_per_s_per_chip;
    double preemptions, steps, mean_batch, mean_in_system; /* mean_in_system: for Little's law */
    double prefix_hit_rate;
    /* Open arrivals come faster than they are served: twice as many wait in the second half of
     * arriving_s as in the first, and when the last comes more than one in twenty of all does */
    bool overloaded;
    double waiting_at_last; /* requests that wait when the last one comes */
    int samples;
    sm_sample sample[SM_MAX_SAMPLES];
    sm_class_served of_class[SM_MOST_CLASSES]; /* as many as the simulation has */
    sm_cache_point cache[SM_CACHE_COUNT];      /* all 0 without a prefix cache */
} sm_simulated;
/* Simulate all arrivals until the last request ends. watch may be NULL, and so may out, where
 * the watch tells all that is wanted. SM_BAD_INPUT when an option is out of range, SM_USAGE for
 * options without their size, SM_INTERNAL when out of memory; an error of the arrivals is passed
 * on. */
sm_status sm_simulate(const sm_simulation *simulation, const sm_arrivals *arrivals,
                      const sm_watch *watch, sm_simulated *out, sm_error *err);

/* ---- the highest rate ---- */
/* Arrivals at `rate` times their own rate, from the beginning. */
typedef struct sm_rated_arrivals {
    void *context;
    sm_status (*begin)(void *context, double rate, sm_arrivals *arrivals, sm_error *err);
} sm_rated_arrivals;
typedef struct sm_max_rate {
    double rate;    /* times the arrivals' own rate; 0: the SLO is missed at any */
    bool unbounded; /* the SLO is met however fast they come */
    int runs;
    sm_simulated at; /* the simulation at that rate; at the lowest tried when rate is 0 */
} sm_max_rate;
/* The highest rate at which a share `within` of the requests meets the SLO of the simulation,
 * within 1 %: doubled or halved until it is between, then bisected. Errors as sm_simulate. */
sm_status sm_simulate_max_rate(const sm_simulation *simulation, const sm_rated_arrivals *arrivals,
                               double within, sm_max_rate *out, sm_error *err);
SM_DECLARATIONS_END
