/* train: what a training plan costs in time, memory and money, and the best plan. A plan is a
 * sharding of the program (program.h) plus a pipeline schedule; its price comes from cost.h alone.
 */
#pragma once
#include "scalemodel/codebase.h"
#include "scalemodel/report.h"
#include "scalemodel/schedule.h"
#include "scalemodel/step.h"

SM_DECLARATIONS_BEGIN

/* ---- the job ---- */
#define SM_MOST_SEQUENCES 1e9 /* of a batch: microbatches are counted in ints */
typedef struct sm_job {
    size_t size; /* sizeof(sm_job) in the caller's header */
    const sm_model *model;
    const sm_system *system;
    double batch_tokens; /* tokens of a global batch: rounded to whole sequences, at least one */
    double seq;          /* tokens of a sequence */
    double tokens;       /* of the whole run, 0 when not asked */
    double usd_per_chip_hour; /* < 0: the catalogue's */
    /* Degrees that plans of the job have: where they do not divide widths the model is padded for
     * them (sm_plan_padding). NULL: it never is. */
    const sm_plan *padded_for;
} sm_job;
typedef struct sm_train sm_train; /* a job with its partitioned programs */
/* Make a job ready to be priced. SM_BAD_INPUT with the reason when a number of the job is out of
 * range, SM_USAGE when its size is none, SM_INTERNAL when out of memory; *train is NULL then. */
sm_status sm_train_new(const sm_job *job, sm_train **train, sm_error *err);
/* Make it ready for another job of the same model and length of sequences instead, with the usual
 * software and constants: its programs stay. Errors as sm_train_new; SM_INTERNAL too where the
 * length is another. */
sm_status sm_train_change(sm_train *train, const sm_job *job, sm_error *err);
/* Free the job and its programs. NULL is fine. */
void sm_train_free(sm_train *train);
/* The model as chips hold it and work on it: that of the job, or padded; in the latter case
 * *padding is the share of a forward pass that is padding, else 0. Lives as long as train. */
const sm_model *sm_train_padded(const sm_train *train, double *padding);
/* Sequences of a global batch: batch_tokens / seq, rounded, at least one. */
double sm_train_sequences(const sm_train *train);
/* Tokens of a sequence. */
double sm_train_length(const sm_train *train);

/* Price with what another software holds from now on. Copied. */
void sm_train_set_software_memory(sm_train *train, const sm_software_memory *held);
/* A plan that takes more than 1 - margin of a chip's memory does not fit, from now on. 0 as made.
 */
void sm_train_set_memory_margin(sm_train *train, double margin);
/* The margin of plans that are to be started: four of five measured peaks (116 runs of
 * data/truth/training.csv) are at most 1.026 of what is predicted for them, and of 1,229 runs that
 * fitted or ran out of memory it turns two verdicts right of the three that were too hopeful. */
#define SM_USUAL_MEMORY_MARGIN 0.03
/* Price with other constants from now on; NULL: the chip's shipped ones. Copied. */
void sm_train_set_calibration(sm_train *train, const sm_calibration *calibration);
/* The software that executes a plan, beyond the constants of its calibration. All zero: mixed
 * precision, fused kernels from a queue that is never empty, weights in buckets under other work.
 */
typedef struct sm_train_software {
    /* of its programs, as in sm_rules */
    int width;
    bool all_slots, all_keys, slow_exp, each_weight, each_line;
    bool one_by_one; /* the host starts each op and each collective when the one before has ended:
                        nothing is hidden, and the memory is that of the tasks (step.h) */
    bool rows;       /* gradients of a microbatch are added to their sums by a kernel of its own;
                        gradients and weights are copied into rows to be reduced and updated */
    bool panels;  /* attention multiplies SM_QUERIES_AT_ONCE queries of one head with the keys that
                  any of them sees, instead of a fused kernel */
    bool no_host; /* where no link to a host is known, offloading is into the chip's own memory */
    const char *codebase; /* whose facts of memory hold (codebase.h); NULL: those that are set */
} sm_train_software;
/* This project's own (run_train.h): in single precision, and in what a plan computes in. */
extern const sm_train_software sm_train_runtime;
sm_train_software sm_train_runtime_of(const sm_plan *plan);
/* The plan as that runtime executes it: in single precision where it names no dtype. SM_BAD_INPUT
 * for what cannot be run. */
sm_status sm_train_plan_as_run(const sm_model *model, sm_plan *plan, sm_error *err);
/* Price plans of this software from now on. */
void sm_train_set_software(sm_train *train, const sm_train_software *software);

/* The pipeline of a plan as its stages execute it (step.h): chunks of layers, and what each stage
 * does, in the order of the simulated schedule with a backward twice as long as a forward. One
 * stage: chunks 0. In the arena. SM_BAD_INPUT when the schedule is not possible. */
typedef struct sm_train_line {
    int stages, chunks, copies; /* of the model: dualpipe has two */
    const sm_train_chunk *chunk;
    const int *actions;                   /* of each stage */
    const sm_train_action *const *action; /* [stage][actions[stage]] */
} sm_train_line;
/* The pipeline of a plan as its stages execute it: chunks of `layers` layers, and what each stage
 * does for `microbatches` microbatches. One stage: chunks 0. In the arena. SM_BAD_INPUT when the
 * schedule is not possible, SM_INTERNAL when out of memory. */
sm_status sm_train_line_of(const sm_plan *plan, int layers, int microbatches, sm_arena *arena,
                           sm_train_line *out, sm_error *err);
/* The constants that prices are made with now; they live as long as train and change with
 * sm_train_set_calibration. */
const sm_calibration *sm_train_calibration(const sm_train *train);

/* ---- the price of one plan ---- */
typedef struct sm_memory {
    double params, gradients, optimizer, activations, buffers, total, capacity;
    double host, host_capacity; /* of the host's memory, and a chip's share of it (0: not known) */
    int stage;
    /* What buffers are: weights gathered and gradients in flight, the buffers of communication; the
     * gradient of the logits; copies of gradients; what the allocator keeps for itself. */
    double gathered, logits, copies, reserved;
    double outside; /* of the chip's memory and not in total: context, libraries, communicators */
} sm_memory;
typedef struct sm_breakdown {
    double math, memory, network_exposed, bubble, optimizer, other;
} sm_breakdown;
typedef struct sm_price_of_plan {
    bool fits;
    double lower_s, expected_s, upper_s;
    sm_bound bound;
    int bound_level; /* level of the system when bound by a network */
    double mfu, hfu;
    double tokens_per_s_per_chip, model_flops_per_s_per_chip;
    sm_memory memory;       /* of the worst stage, bytes */
    sm_breakdown breakdown; /* sums to expected_s */
    double bound_math_s, bound_memory_s, bound_network_s[SM_MAX_LEVELS]; /* parts of lower */
    int chips;
    int microbatches;
    double sequences_per_replica;  /* rounded up: the fullest replica */
    double trained;                /* parameters: all, or those of adapters */
    double train_time_s, cost_usd; /* 0 when the job names no tokens / no price */
} sm_price_of_plan;
/* SM_OK (fits or not: see fits) or SM_BAD_INPUT with the reason the plan is impossible. Allocates
 * nothing once the program variants the plan needs exist (the first plan of a kind builds them). */
sm_status sm_train_price(sm_train *train, const sm_plan *plan, sm_price_of_plan *price,
                         sm_error *err);

/* What a search looks at of a plan: of sm_price_of_plan the time and the bytes, to the last bit. */
typedef struct sm_plan_outcome {
    sm_status status; /* SM_BAD_INPUT: the plan is impossible, and all else is 0 */
    bool fits;
    double expected_s, memory_bytes;
} sm_plan_outcome;
/* Price n plans, for searches of your own. What plans beside each other have in common is worked
 * out once, so that an order in which neighbours differ in few keys is the quickest: placement
 * outermost, then microbatch, recompute, schedule, zero, offload. SM_OK when every plan has its
 * outcome, impossible ones too; SM_INTERNAL when out of memory. Allocates as sm_train_price. */
sm_status sm_train_price_many(sm_train *train, const sm_plan *plans, size_t n,
                              sm_plan_outcome *outcomes, sm_error *err);

/* Everything a person may ask of one plan. */
typedef struct sm_plan_axis {
    char name[12];
    int size;
    char on[32];
    sm_group group; /* the same, with sizes and strides */
} sm_plan_axis;
typedef struct sm_plan_detail {
    sm_price_of_plan price;
    int axes;
    sm_plan_axis axis[SM_PLAN_DEGREES];
    sm_plan_lines lines; /* of a step */
    int stage;           /* the busiest, of which they tell */
    int heads_times;     /* sm_plan_heads_times of the model as chips hold it */
    int stages;          /* of the pipeline, each with its memory; 0: as run, the fullest alone */
    const sm_memory *stage_memory;
    sm_why *why;      /* derivation of expected_s and memory */
    char advice[256]; /* the one change that would help most, with its computed effect; "" when none
                       */
} sm_plan_detail;
/* Everything a person may ask of one plan: price, axes, collectives and ops of the busiest stage,
 * derivations, advice. Lives in the arena. SM_BAD_INPUT as sm_train_price, SM_INTERNAL when out of
 * memory. */
sm_status sm_train_detail(sm_train *train, const sm_plan *plan, sm_arena *arena,
                          sm_plan_detail *detail, sm_error *err);
/* The price and the ops of it alone, for fits that ask often. Errors as sm_train_detail. */
sm_status sm_train_ops(sm_train *train, const sm_plan *plan, sm_arena *arena,
                       sm_plan_detail *detail, sm_error *err);

/* The simulated step: pipeline slots of every stage. */
typedef struct sm_timeline {
    int stages, slots;
    sm_slot *slot;
    double optimizer_start_s, reduce_s, optimizer_s, end_s;
} sm_timeline;
/* Simulate the step of a plan and keep its slots, in the arena, with expected times in seconds.
 * SM_BAD_INPUT when the plan is impossible or has more than 4 million slots, SM_INTERNAL when out
 * of memory. */
sm_status sm_train_timeline(sm_train *train, const sm_plan *plan, sm_arena *arena,
                            sm_timeline *timeline, sm_error *err);

/* ---- search ---- */
typedef enum sm_objective {
    SM_OBJECTIVE_TIME,
    SM_OBJECTIVE_COST,
    SM_OBJECTIVE_MEMORY
} sm_objective;
enum { SM_MAX_TOP = 64 };
typedef struct sm_search_options {
    size_t size;   /* of this structure in the caller's header: sm_search_defaults fills it in */
    sm_plan fixed; /* keys in fixed.given are kept */
    sm_objective objective;
    int top;                         /* plans that differ in their degrees; 1..SM_MAX_TOP */
    int threads;                     /* 0: as many as the machine has */
    bool prune;                      /* false: price every plan (for tests and benchmarks) */
    int max_degree[SM_PLAN_DEGREES]; /* 0: no limit */
    const volatile int *stop;        /* nonzero: stop and return the best so far */
    void (*progress)(double fraction, double best_s, void *context);
    void *context;
    const sm_plan_space *space; /* only plans of it or of those after it, SM_MOST_SPACES at most;
                                   NULL: all */
    double seconds;             /* stop after so many, and return the best so far; 0: never */
    double below;               /* only plans with less of the objective than this; 0: all */
    bool first; /* stop at the first that fits: is there any? Of it optimal and gap say nothing */
} sm_search_options;
/* No key fixed, the three best plans by time, on all threads. */
#define sm_search_defaults(options) sm_search_defaults_sized((options), sizeof *(options))
/* Fill a structure of `size` bytes with those defaults. What sm_search_defaults calls. */
void sm_search_defaults_sized(sm_search_options *options, size_t size);

/* Plans, best first, and what finding them took; lives in the arena. Each function takes NULL as a
 * result of nothing. */
typedef struct sm_search_result sm_search_result;
typedef struct sm_found {
    const sm_plan *plan;
    const sm_price_of_plan *price;
} sm_found;
typedef struct sm_search_effort {
    double space, evaluated, pruned; /* plans: all there are (stopped: of the systems that were
                                        begun), priced (but those that a first threshold is taken
                                        from alone), ruled out by bounds */
    double seconds;
    bool optimal; /* no plan of the space is better; false: stopped */
    double gap;   /* what the best plan's objective can still fall by, as a part of it: 0 when
                     optimal; 1: none found */
    double least_memory_bytes; /* the least any priced plan needs per chip; infinite: none priced */
} sm_search_effort;
/* How many plans it has; 0 of NULL. */
int sm_search_result_count(const sm_search_result *result);
/* The i-th best plan and its price, i: 0 .. count - 1. */
sm_found sm_search_result_at(const sm_search_result *result, int i);
/* What finding them took; never NULL. */
const sm_search_effort *sm_search_result_effort(const sm_search_result *result);
/* SM_OK, or SM_NEGATIVE when no plan fits or is below what is asked for (a result of no plans, and
 * the sentence says what is missing); with any other status *result is NULL. */
sm_status sm_train_search(sm_train *train, const sm_search_options *options, sm_arena *arena,
                          const sm_search_result **result, sm_error *err);
SM_DECLARATIONS_END
