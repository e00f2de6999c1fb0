/* serve: what it takes to serve a model: time to first token, time per token, throughput, memory
 * and money of a sharding on a machine, the Pareto set of them, and the fleet for a traffic. A plan
 * is a sharding of the serving program (program.h) and its price comes from cost.h alone. */
#pragma once
#include "scalemodel/plan.h"
#include "scalemodel/report.h"

SM_DECLARATIONS_BEGIN

/* ---- the job ---- */
typedef struct sm_serve_dtypes {
    sm_dtype weights, kv, compute; /* int8 weights with bf16 compute are widened on the way in */
} sm_serve_dtypes;
/* Speculative decoding: depth tokens drafted, each accepted with probability acceptance; expected
 * tokens a step (1 - a^(depth+1)) / (1 - a) (Leviathan et al. 2023). depth 0: none; depth -1: the
 * best one is found. */
typedef struct sm_speculation {
    int depth;
    double acceptance;
    const sm_model *draft; /* NULL: n-gram or heads of the model itself, drafted for nothing */
} sm_speculation;
typedef struct sm_software sm_software; /* load.h */
typedef struct sm_serve_job {
    size_t size; /* sizeof(sm_serve_job) in the caller's header */
    const sm_model *model;
    const sm_system *system;
    const sm_software *software; /* that serves; NULL: "serving", any */
    sm_serve_dtypes dtypes;
    bool as_stored; /* weights take the bytes that the checkpoint has for them (sm_stored), of
                       which dtypes.weights is the type of most */
    double prompt, output; /* mean tokens of a request */
    double prefix;         /* tokens of the prompt whose cache is there already */
    double context;        /* > 0: decode is priced at so many cached tokens; 0: at the mean of a
                              request, prompt + output / 2 */
    double imbalance;      /* of experts: the fullest chip's tokens over the mean, >= 1; 0: as the
                              software has it */
    bool eager;            /* kernels launched one by one; else as the software does */
    bool query_by_query;   /* attention takes a query that stands alone by itself, and a product of
                              SM_FEW_ROWS at most reads its matrix as it lies, as src/run does */
    sm_speculation speculation;
    double reserve;           /* fraction of memory left free; < 0: what the software leaves as it
                                 starts (memory_share, load.h) */
    double usd_per_chip_hour; /* < 0: the catalogue's */
    double in_flight;         /* requests in a replica, > 0: those beyond a batch wait for room; 0:
                                 as many as keep it full */
    bool alone;  /* prompts are prefilled elsewhere: nothing comes between two tokens */
    bool blocks; /* fp8 weights have a scale for each block of rows and columns, stored so or not */
    struct sm_serve *like; /* of the same model, whose programs are shared: it lives longer;
                                    NULL: none */
} sm_serve_job;
/* Tokens that a sequence of the job has room for: prompt and output, or the context that decode is
 * priced at where that is longer. */
double sm_serve_longest(const sm_serve_job *job);
typedef struct sm_serve sm_serve; /* a job with its partitioned programs */
/* Make a job ready to be priced. The model and system are copied. SM_BAD_INPUT with the reason when
 * a number of the job is out of range, SM_INTERNAL when out of memory; *serve is NULL then. */
sm_status sm_serve_new(const sm_serve_job *job, sm_serve **serve, sm_error *err);
/* Free the job and its programs. NULL is fine. */
void sm_serve_free(sm_serve *serve);
/* Price with other constants from now on; NULL: those of sm_serve_usual_calibration. Copied. */
void sm_serve_set_calibration(sm_serve *serve, const sm_calibration *calibration);
/* The constants that prices are made with now; they live as long as serve and change with
 * sm_serve_set_calibration. */
const sm_calibration *sm_serve_calibration(const sm_serve *serve);
/* What weights are multiplied in where nobody says: 8 and 4 bits of floating point in their own
 * type where the chip's matrix unit takes it (mxfp4 meets activations of 8 bits), integers widened
 * to bf16, or to fp16 where it has no bf16. */
sm_dtype sm_serve_usual_compute(const sm_chip *chip, sm_dtype weights);
/* What calibration NULL stands for: the chip's constants of serving, else of its single operations,
 * else the default ones; those not learned from serving with at most 1 ms of overhead a step. */
sm_calibration sm_serve_usual_calibration(const sm_chip *chip);

/* ---- one step of an engine ---- */
/* Sequences that bring `queries` new tokens each to `past` cached ones. */
typedef struct sm_attend {
    double sequences, queries, past;
} sm_attend;
/* A step: matmuls see all its tokens at once, attention each group by itself. A decode step is one
 * group of queries 1, a prefill one group of whole prompts, a chunked prefill both. */
enum { SM_MAX_GROUPS = 4 };
typedef struct sm_step_batch {
    int groups;
    sm_attend group[SM_MAX_GROUPS];
    double sampled; /* tokens drawn: sequences in decode, prompts that end in this step */
    double begun; /* sequences whose sources an encoder reads in it, a part of one where its prompt
                     is in parts; 0: those of all prompts, negative: none */
} sm_step_batch;

typedef enum sm_serve_bound {
    SM_SERVE_WEIGHTS, /* reading weights */
    SM_SERVE_KV,      /* reading the cache */
    SM_SERVE_COMPUTE,
    SM_SERVE_NETWORK,
    SM_SERVE_LATENCY /* launches, hops, host */
} sm_serve_bound;
/* The name of a bound: weights, kv, compute, network, latency; "?" of none. Static text. */
const char *sm_serve_bound_name(sm_serve_bound bound);
typedef struct sm_serve_memory {
    double params, kv, activations, buffers, total, capacity; /* bytes of the fullest chip */
    double share, least_share; /* of memory, as the software's option counts it: what it takes, what
                                  these need */
} sm_serve_memory;
/* lower: cache read + max(weights read, matmul FLOPs) at datasheet rates, or the busiest network
 * level if that takes longer; no launches, no latencies. All parameters of a dense model count as
 * read, as in How To Scale Your Model; of one with experts what the tokens reach. expected: under
 * the calibration. upper: nothing overlaps. A pipeline's step passes all stages. */
typedef struct sm_step_price {
    double lower_s, expected_s, upper_s;
    struct {
        /* sums to expected_s; scans: kernels that carry a state */
        double weights, kv, compute, scans, network, other;
    } breakdown_s;
    sm_serve_bound bound;
    int bound_level;
    double bound_weights_s, bound_kv_s, bound_compute_s, bound_network_s; /* parts of lower */
    double flops;                                                         /* of the whole replica */
} sm_step_price;
/* SM_OK, or SM_BAD_INPUT with the reason a plan is impossible. Allocates nothing once the program
 * variants the plan needs exist. */
sm_status sm_serve_step(sm_serve *serve, const sm_plan *plan, const sm_step_batch *batch,
                        sm_step_price *price, sm_error *err);
/* A sequence in a step: its new tokens, at least 1, on so many cached ones. One new token on a
 * cache is a sequence that decodes; all else is a prompt, or a chunk of one. */
typedef struct sm_sequence_step {
    double new_tokens, cached_tokens;
} sm_sequence_step;
typedef struct sm_engine sm_engine; /* simulate.h; sm_serve_engine makes that of a plan */
/* Seconds that the engine takes for one step of n >= 1 sequences, at most 1e9 tokens each: what
 * sm_simulate has for the same step. For simulators of others: a few microseconds a call; the first
 * to come near a point of the engine's tables prices it. Allocates nothing but the rows of those
 * tables. SM_BAD_INPUT when a number is out of range or the plan cannot take such a step,
 * SM_INTERNAL when out of memory; *seconds is then 0. */
sm_status sm_serve_step_time(const sm_engine *engine, const sm_sequence_step *sequences, size_t n,
                             double *seconds, sm_error *err);
/* Bytes on the fullest chip with so many sequences of so many cached tokens held, and steps of so
 * many tokens. SM_BAD_INPUT with the reason when the plan is impossible. */
sm_status sm_serve_memory_of(sm_serve *serve, const sm_plan *plan, double sequences,
                             double tokens_each, double step_tokens, sm_serve_memory *memory,
                             sm_error *err);
/* What of that length fits beside the weights. most: whole sequences; < 1: not one, as where the
 * plan is impossible. sequences: the same not rounded, from which pages are cut. kv_tokens: what
 * engines print as the size of the cache. */
typedef struct sm_serve_room {
    double most, sequences, kv_tokens;
} sm_serve_room;
/* The room of a plan for sequences of so many tokens, with steps of so many tokens where no engine
 * has its own. SM_INTERNAL when out of memory. */
sm_status sm_serve_room_of(sm_serve *serve, const sm_plan *plan, double tokens_each,
                           double step_tokens, sm_serve_room *room, sm_error *err);

/* ---- one point: a plan with a batch ---- */
typedef struct sm_serve_point {
    sm_plan plan;
    int chips;
    double batch; /* sequences decoding at once in the replica */
    bool fits;
    double most_batch;     /* that fits */
    sm_step_price prefill; /* of one prompt alone */
    sm_step_price decode;  /* at the mean context */
    /* lower, expected, upper. Under the load: each request that ends is followed by another, whose
     * prefill takes its share of the chips (of an `alone` job: does not). Lower is that of the
     * steps alone all the same; tpot counts accepted speculation. */
    double ttft_s[3], tpot_s[3];
    double ttft_alone_s[3], tpot_alone_s[3]; /* of a prefill, a decode step with nothing beside */
    double ttft_median_s, ttft_p99_s; /* expected, in steady state: of half and of 99 in 100 */
    double in_flight; /* requests in the replica: those that decode and those that come to it */
    double tokens_per_s_per_chip, usd_per_million_tokens; /* under the load; 0: no price */
    /* batch / tpot_alone / chips, as the book counts */
    double tokens_per_s_per_chip_alone, usd_per_million_tokens_alone;
    double tokens_per_step; /* of speculation, 1 without */
    int depth;
    sm_serve_memory memory; /* at full length: prompt + output */
} sm_serve_point;
/* Price a plan that decodes `batch` sequences at once, 1 to 1e9: times in seconds, memory in bytes
 * of the fullest chip. SM_BAD_INPUT with the reason when the plan is impossible or the batch out of
 * range. What does not fit is priced too: point->fits says so. */
sm_status sm_serve_point_of(sm_serve *serve, const sm_plan *plan, double batch,
                            sm_serve_point *point, sm_error *err);
typedef struct sm_serve_detail {
    sm_serve_point point;
    sm_plan_lines decode, prefill; /* of a decode step, of the prefill of one prompt */
    sm_why *why;                   /* of the decode step, the prefill, the memory */
    double turn_kv_context; /* context at which the cache takes as long as the weights; 0: never */
    double turn_kv_batch, turn_compute_batch; /* batch at which cache, compute overtake weights */
    int encoder_positions; /* that an encoder reads of each request as it begins; 0: none */
    char advice[256];      /* the one change that helps most, effect computed */
} sm_serve_detail;
/* A point of the same job, as sm_serve_point_of and sm_serve_search price it, with its collectives,
 * its derivations, the contexts and batches at which its bound changes, and advice. Lives in the
 * arena. SM_INTERNAL when out of memory. */
sm_status sm_serve_detail_of(sm_serve *serve, const sm_serve_point *point, sm_arena *arena,
                             sm_serve_detail *detail, sm_error *err);

/* ---- search ---- */
/* Axes of the frontier: tpot (expected), throughput per chip, cost per million tokens. */
typedef struct sm_serve_search_options {
    size_t size;                 /* of this structure: sm_serve_search_defaults fills it in */
    sm_plan fixed;               /* keys in fixed.given are kept */
    double batch;                /* 0: all powers of two and what fills the memory */
    double ttft_s, tpot_s;       /* limits; 0: none */
    int chips_least, chips_most; /* of a replica; 0: 1, the whole system */
    bool by_lower;               /* rank by the bound of the steps, alone, instead of expected */
    bool brute;                  /* price everything: for tests */
    const sm_plan_space *space;  /* only plans of it or of those after it; NULL: all */
    bool closed_first;           /* first tokens of points in closed form, not simulated */
    bool most_alone; /* of the frontier only what gives the most tokens a second and chip, or as
                        good as that */
    double above;    /* only what may give more of them than this: a replica that takes requests at
                        random, or pools, give fewer than their points */
} sm_serve_search_options;
#define sm_serve_search_defaults(options)                                                          \
    sm_serve_search_defaults_sized((options), sizeof *(options))
/* Fill a structure of `size` bytes with the defaults: no key fixed, no limits, every batch. What
 * sm_serve_search_defaults calls. */
void sm_serve_search_defaults_sized(sm_serve_search_options *options, size_t size);
typedef struct sm_serve_result {
    size_t n;
    sm_serve_point *point; /* by tpot; in the arena */
    double space, evaluated, pruned, seconds;
    int least_chips;                 /* smallest replica on which anything fits, 0: none */
    double least_bytes;              /* nothing fits: the least a chip needs */
    double best_tpot_s, best_ttft_s; /* of all that fits, whatever the limits: what an impossible
                                        limit misses */
} sm_serve_result;
/* `data` copies a replica, which a fleet of smaller slices does too: it stays 1 unless it is given
 * (docs/serving.md, the search, says what that leaves out).
 * Replicas that use every slice shape (torus: the sub-slices of the catalogue's rule; switched:
 * powers of two and whole nodes) up to the system. SM_NEGATIVE when nothing fits or no point meets
 * the limits: the sentence says which bound forbids it and by how much. */
sm_status sm_serve_search(const sm_serve_job *job, const sm_calibration *calibration,
                          const sm_serve_search_options *options, sm_arena *arena,
                          sm_serve_result *result, sm_error *err);

/* Seconds in which so many bytes go over the outermost network from chips of one group to those of
 * another: chips of the smaller one send or receive at once. */
double sm_serve_transfer_s(const sm_system *system, double bytes, int from_chips, int to_chips);
/* Disaggregated: prefill and decode pools of their own. */
typedef struct sm_disaggregated {
    sm_serve_point prefill, decode;
    double prefill_batch;            /* prompts a prefill step takes */
    double prefill_per_decode_chips; /* chips of prefill for each chip of decode */
    double kv_bytes, kv_transfer_s;  /* of one request, over the system's outermost network */
    double tokens_per_s_per_chip, usd_per_million_tokens; /* both pools counted */
    /* Whole workers, each one replica; 0: the chips are too few for one of each. At that rate: busy
     * shares of the pools, means of requests that come as a Poisson process. ttft_s holds the wait
     * for a worker, its prefill and the cache's transfer; running: sequences in a decode worker. */
    double prefill_workers, decode_workers, chips, requests_per_s, usd_per_hour;
    double prefill_busy, decode_busy, ttft_s, tpot_s, running;
    double ttft_p90_s, tpot_p90_s; /* nine of ten requests are within */
} sm_disaggregated;
/* What pools are asked for beside a job, whose system is that of decoding. */
typedef struct sm_pools_asked {
    const sm_system *prefill_system;           /* NULL: the chips of the job's are shared */
    const sm_calibration *prefill_calibration; /* of its chips; NULL: the usual ones */
    sm_dtype prefill_compute;                  /* what its matmuls compute in */
    double requests_per_s; /* the fewest workers for so many; 0: the most that the chips serve */
} sm_pools_asked;
/* The best pools for the job: the decode plan with the most throughput per chip within tpot_s, the
 * prefill plan within ttft_s, and the chips of one for each of the other that make their rates
 * equal; and how many whole workers of each, of which neither pool is busy for more than four
 * fifths of the time and nine of ten requests keep to each limit, all waits in their first tokens.
 * asked NULL: all default.
 * SM_NEGATIVE when nothing fits or meets the limits, SM_USAGE for options without their size,
 * SM_INTERNAL when out of memory. */
sm_status sm_serve_disaggregate(const sm_serve_job *job, const sm_calibration *calibration,
                                const sm_serve_search_options *options, const sm_pools_asked *asked,
                                sm_disaggregated *out, sm_error *err);
/* Replicas for so many requests a second within the limits of options. */
typedef struct sm_fleet {
    sm_serve_point point;
    double replicas, chips, usd_per_hour, utilisation, requests_per_s_per_replica;
    double ttft_s, tpot_s, running; /* at that rate: means; sequences that decode in a replica */
    double ttft_p90_s, tpot_p90_s;  /* nine of ten requests are within */
} sm_fleet;
/* The fewest chips that serve so many requests a second, at most 1e9, prefill and decode on the
 * same chips, nine of ten requests within each limit and no replica beyond four fifths of what it
 * can do with as many sequences as fit. 0: the one replica that does most per chip so when requests
 * come at random, at utilisation times requests_per_s_per_replica (what it does within tpot_s where
 * each request that ends is followed by another); utilisation 0: none holds the limits. answer: of
 * that replica, what sm_serve_search answered to the same job and options; NULL: it is searched, as
 * fleets are. SM_BAD_INPUT when the traffic is out of range, SM_NEGATIVE when no plan fits or meets
 * the limits, SM_USAGE for options or a job without their size. */
sm_status sm_serve_fleet(const sm_serve_job *job, const sm_calibration *calibration,
                         const sm_serve_search_options *options, const sm_serve_result *answer,
                         double requests_per_s, sm_fleet *fleet, sm_error *err);
SM_DECLARATIONS_END
