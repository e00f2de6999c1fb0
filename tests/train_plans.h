/* train_plans: the plans and models that training is tested under, as data, so that every test of
 * training on ranks (threads, Open MPI, MPICH) takes the same; and a rank's job under one. */
#pragma once
#include "sanitized.h"
#include "scalemodel/run_train.h"
#include "scalemodel/schedule.h"

enum {
    TRAIN_TOKENS = 16,
    TRAIN_SEQUENCES = 8,
    TRAIN_STEPS = 4, /* that every plan is compared in */
    TRAIN_MOST_STEPS = 64,
    TRAIN_TEXT_BYTES = 6000,
    TRAIN_MOST_CHUNKS = 16,
    TRAIN_MOST_STAGES = 8,
    TRAIN_MOST_RANKS = 64,
    TRAIN_MOST_ACTIONS = 128
};

/* The plans that run in each variant of the suite: all of them as users compile them, every twelfth
 * under a sanitizer, which takes its time, and every fourth by clang. */
#if SANITIZED
enum { TRAIN_EVERY = 12, TRAIN_FIRST = 0 };
#elif defined(__clang__)
enum { TRAIN_EVERY = 4, TRAIN_FIRST = 1 };
#else
enum { TRAIN_EVERY = 1, TRAIN_FIRST = 0 };
#endif

/* A plan in words: degrees and rules joined by commas, as in "data=2,zero=1,micro=2": data, fsdp,
 * expert, context, tensor, tensor_q; seq, expert_tensor, heads, over_context, table; zero,
 * recompute, regather, micro; ops, the number of a set of ops to run again; host, 1 for moments,
 * 2 for activations, 3 for both kept there; half, 1 for arrays in bf16, 2 for gradients too, 3 for
 * weights that are rounded at random. stages 0: no pipeline. */
typedef struct train_plan {
    const char *words;
    sm_schedule schedule;
    int stages, chunks_per_stage;
} train_plan;
extern const train_plan train_plans[];
extern const size_t train_plan_count;

/* ---- models: of 2 layers, of 4 where a pipeline cuts them ---- */
typedef enum train_kind { TRAIN_DENSE, TRAIN_EXPERTS, TRAIN_KINDS } train_kind;
sm_model train_model(train_kind kind, int layers);
/* With other members of its config: "\"tie_word_embeddings\": true". */
sm_model train_model_with(train_kind kind, int layers, const char *members);
#define TRAIN_TIED "\"tie_word_embeddings\": true"
int train_plan_layers(const train_plan *plan);
/* A text of TRAIN_TEXT_BYTES of a few words, always the same. */
const unsigned char *train_text(void);
/* One rank, all sequences in one microbatch. The model must outlive it. */
sm_train_setup train_setup_of(const sm_model *model);

/* ---- plans ---- */
void train_words_read(const char *words, sm_train_setup *setup);
typedef struct train_line {
    sm_train_chunk chunk[TRAIN_MOST_CHUNKS];
    int actions[TRAIN_MOST_STAGES];
    sm_train_action action[TRAIN_MOST_STAGES][TRAIN_MOST_ACTIONS];
    const sm_train_action *of[TRAIN_MOST_STAGES];
} train_line;
/* Cut the model into stages that work by the slots of the schedule; the microbatch is set before.
 * False: the schedule cannot be. The line must outlive the setup. */
bool train_line_lay(sm_schedule schedule, int stages, int chunks_per_stage, sm_train_setup *setup,
                    train_line *line);
/* All of it. The job must stay where it is: its setup points into it. */
typedef struct train_job {
    sm_model model;
    train_line line;
    sm_train_setup setup;
} train_job;
bool train_job_of(const train_plan *plan, train_kind kind, train_job *job);

/* ---- losses ---- */
typedef struct train_curve {
    const sm_train_setup *setup;
    int steps;
    /* of rank 0 */
    double loss[TRAIN_MOST_STEPS], norm[TRAIN_MOST_STEPS];
    double predicted[SM_COLLECTIVE_COUNT], counted[SM_COLLECTIVE_COUNT]; /* of the last step */
    double difference; /* between bytes predicted and counted, over all steps and ranks */
    double memory;     /* the most that a rank had in use */
    double rounding; /* of one rank's norms, between its types and single precision; 0: not asked */
    double of_stage[TRAIN_MOST_STAGES][SM_COLLECTIVE_COUNT]; /* bytes that a rank of it counted in
                                                                the last step, on average */
    sm_status status;
    sm_error err; /* on threads: what it says */
} train_curve;
/* The body of a rank; context: a train_curve, which rank 0 alone writes. */
sm_status train_curve_run(sm_communicator *world, void *context, sm_error *err);
/* The same on as many threads as the setup has ranks. */
void train_curve_on_threads(const sm_train_setup *setup, int steps, train_curve *curve);
extern const double train_tolerance; /* of a loss, relative: sums in other orders */
bool train_about_equal(double a, double b, double tolerance);
/* The most that two curves are apart in their norms. */
double train_norms_apart(const train_curve *a, const train_curve *b);
/* The curve of a plan against that of one rank: 0, or 1 and a comment on stdout. */
int train_curve_compare(const train_plan *plan, const train_curve *one, const train_curve *curve);
