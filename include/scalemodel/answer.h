/* answer: what each verb of the command answers, as a library: a question in, a report out
 * (report.h) with the page that a person reads and the data that --json prints.
 *
 *     sm_model_question q = SM_QUESTION(sm_model_question);
 *     q.model = &model;
 *     sm_report *report = sm_report_new();
 *     sm_status status = sm_answer_model(&q, report, &err);
 *
 * A member that stays 0 (or NULL) asks for its default. What a question points to outlives the
 * answer's making; the report owns all it holds. Every answer returns SM_OK, or SM_NEGATIVE (does
 * not fit, no plan: the report says why); with any other status the error says what is wrong and
 * the report is not to be shown: SM_USAGE where a question lacks what it cannot do without or
 * passes a limit. Texts with a grammar are sources (text.h): their names are what errors show, and
 * they end with a 0. Units are SI; the keys of the data carry them. */
#pragma once
#include "scalemodel/evidence.h"
#include "scalemodel/page.h"
#include "scalemodel/recipe.h"
#include "scalemodel/simulate.h"
#include "scalemodel/trace.h"
#include "scalemodel/truth.h"

SM_DECLARATIONS_BEGIN

/* A question of which all is default. Its size tells a library which members the caller knows. */
#define SM_QUESTION(type) ((type){.size = sizeof(type)})

/* ---- chip ---- */
enum { SM_MAX_CHIPS_COMPARED = 4 };
typedef struct sm_chip_question {
    size_t size;
    const sm_chip *chip; /* NULL: the catalogue */
    const sm_chip *own;  /* chips of the caller's, that the catalogue lists first */
    size_t n_own;
    const sm_calibration *calibration; /* these constants in place of the facts */
    bool explain;                      /* the derivation of the ridge points, into report->why */
    int n_compared; /* chips side by side, at most SM_MAX_CHIPS_COMPARED; 0: chip alone */
    const sm_chip *compared;
} sm_chip_question;
/* Peaks, memories, links, ridge points, prices and the source of each; or the constants of a
 * calibration with their intervals. SM_USAGE when the question has no size or a newer one. */
sm_status sm_answer_chip(const sm_chip_question *question, sm_report *report, sm_error *err);

/* ---- model ---- */
typedef struct sm_model_question {
    size_t size;
    const sm_model *model; /* NULL: the catalogue */
    double seq;            /* tokens of a sequence (4096) */
    sm_dtype kv;           /* of the cache (bf16) */
    bool explain;          /* the derivation of the training FLOPs */
    const struct sm_checkpoint_size
        *checkpoint; /* what its checkpoint holds (io.h); NULL: unknown */
} sm_model_question;
/* Parameters by component, layers, FLOPs per token, bytes of the KV cache. SM_USAGE when the
 * question has no size, or a newer one, or no model. */
sm_status sm_answer_model(const sm_model_question *question, sm_report *report, sm_error *err);

typedef struct sm_program_question {
    size_t size;
    const sm_architecture *architecture;
    const char *name;    /* what the family that is printed is called ("model") */
    sm_text_phase phase; /* of training, or of serving */
    double seq;          /* tokens of the sequence; of decoding those that it has (4096) */
    /* With the best plan of this question beside the lines, of the same model: of training where
     * the phase is that, else of serving. NULL: without. seq then is the question's. */
    const struct sm_train_question *train;
    const struct sm_serve_question *serve;
} sm_program_question;
/* The model as a program: every kind of layer line by line, with the weights, caches and FLOPs of
 * each line, and the family that puts them in order. With a plan arrays have the mesh axes that cut
 * them as subscripts, and beside each line stand its time in the step, what bounds it and its
 * collectives, as sm_answer_train and sm_answer_serve price them. The page reads back as texts and
 * families (notation.h). SM_USAGE as sm_answer_model; SM_NEGATIVE when the plan does not fit,
 * SM_BAD_INPUT when there is none. */
sm_status sm_answer_program(const sm_program_question *question, sm_report *report, sm_error *err);

/* ---- plan ---- */
typedef struct sm_plan_question {
    size_t size;
    sm_plan_use use;         /* whose keys it has (training) */
    sm_source plan;          /* "fsdp=8,tensor=8"; without text every key has its default */
    const sm_model *model;   /* can its layers be sharded so? NULL: not asked */
    const sm_system *system; /* has it the chips? NULL: not asked */
    bool explain;            /* the product of the degrees */
} sm_plan_question;
/* Each key with its value, meaning and what it shards; chips. SM_NEGATIVE when the system has too
 * few, or the model does not divide. */
sm_status sm_answer_plan(const sm_plan_question *question, sm_report *report, sm_error *err);

/* ---- mfu ---- */
typedef struct sm_mfu_question {
    size_t size;
    const sm_model *model;
    const sm_system *system;
    double seq;      /* tokens of a sequence; 0: sm_train_seq */
    sm_source batch; /* of a step of all chips, as training reads it; without text: one on each */
    sm_dtype dtype;  /* what matmuls compute in (bf16): whose peak it is */
    sm_source from;  /* whose count and the figure, "maxtext@2025-06 46 %"; "3.2 s" and
                            "3.2k tokens/s" (of a chip) need none. Without text: counts alone */
    size_t n_codebases; /* of the caller's, which win by name and are listed first */
    const sm_codebase *codebases;
    bool explain; /* the derivation of the time of a step */
} sm_mfu_question;
/* The seconds of a step that a told figure means, and the figure in the count of every code base,
 * with its source. SM_NEGATIVE when no chip of this kind is that quick. SM_BAD_INPUT with the place
 * of what cannot be read in `from`. */
sm_status sm_answer_mfu(const sm_mfu_question *question, sm_report *report, sm_error *err);

/* ---- roofline ---- */
enum { SM_MAX_CRITICAL = 16 };
typedef struct sm_roofline_question {
    size_t size;
    const sm_chip *chip;
    const sm_calibration *calibration; /* NULL: sm_calibration_of_operations */
    sm_source einsum;                  /* "bf16[B,D] int8[D,F] -> bf16[B,F]" */
    sm_source dims;                    /* "B=128,D=4k"; ranges sweep: "B=1..4096" */
    int n_critical;                    /* at most SM_MAX_CRITICAL */
    const sm_source *critical;         /* names of indices to solve for; one may have no size */
    sm_memory_level level;             /* where the arrays live (HBM) */
    const sm_dtype *compute;           /* NULL: the wider one of the operands */
    bool explain;                      /* of one point: not with ranges */
    bool plot;                         /* FLOP/s over intensity, into report->chart */
} sm_roofline_question;
/* FLOPs, bytes, times, what bounds them; SM_NEGATIVE when no size of an index is critical. */
sm_status sm_answer_roofline(const sm_roofline_question *question, sm_report *report,
                             sm_error *err);

/* ---- matmul ---- */
typedef struct sm_matmul_question {
    size_t size;
    const sm_system *system;
    const sm_calibration *calibration; /* NULL: sm_calibration_of_operations */
    sm_source einsum;                  /* "A[I_X,J] B[J,K_Y] -> C[I_X,K_Y]"; lines of a text */
    sm_source mesh;                    /* "X=4,Y=4" */
    sm_source dims;                    /* "I=1024,J=4k,K=8k" */
    const sm_dtype *compute;           /* NULL: the wider one of the operands */
    int top;                           /* alternatives shown; 0: 8 on the page, all in the data */
    bool explain;
} sm_matmul_question;
/* The steps and collectives of every way to do it, the cheapest first; SM_NEGATIVE when no
 * assignment of the axes divides the sizes. */
sm_status sm_answer_matmul(const sm_matmul_question *question, sm_report *report, sm_error *err);

/* ---- collective ---- */
typedef struct sm_collective_question {
    size_t size;
    const sm_system *system;
    const sm_calibration *calibration; /* NULL: sm_calibration_of_operations */
    sm_collective op;
    sm_source array;      /* "bf16 A[E_Y,F]", or bytes: "64MB", "1kB..1GB" */
    sm_source mesh, over; /* "X=8,Y=4" and "Y"; without a mesh one axis covers the system; without
                           * axes to go over those of the array, or all */
    sm_source dims;       /* of the array's indices; ranges sweep */
    double ragged;        /* all-to-all: the part of the bytes that moves (1) */
    double top_k;         /* or: of tokens routed to so many experts each */
    double expert_groups; /* that are spread over so many groups (the members) */
    bool explain;         /* of one point: not with ranges */
} sm_collective_question;
/* Time, algorithm, bytes on the busiest link, whether latency or bandwidth bounds it. SM_BAD_INPUT
 * with the place when the question cannot be read or the mesh does not divide the array; SM_USAGE
 * when a part of it is missing. */
sm_status sm_answer_collective(const sm_collective_question *question, sm_report *report,
                               sm_error *err);

/* ---- reshard ---- */
typedef struct sm_reshard_question {
    size_t size;
    const sm_system *system;           /* a chip alone: as many as the shardings have devices */
    const sm_calibration *calibration; /* NULL: sm_calibration_of_operations */
    sm_source text;     /* a log, or a line of it, with messages of XLA about an "involuntary full
                           rematerialization"; with from and to the shape of an array */
    sm_source from, to; /* "{devices=[8,1]<=[8]}"; none: as the messages say */
    int top;            /* of the messages on the page (12) */
} sm_reshard_question;
/* What it costs that XLA replicates an array and slices it, the cheapest way instead, and the
 * constraint that leads to it. SM_BAD_INPUT with the place when a sharding cannot be read, or when
 * there is no such message. */
sm_status sm_answer_reshard(const sm_reshard_question *question, sm_report *report, sm_error *err);

/* ---- profile ---- */
enum { SM_MAX_PROFILE_SYSTEMS = 16 };
typedef struct sm_profile_question {
    size_t size;
    sm_source module;    /* a module (module.h), or a profile of XLA that holds some (profile.h) */
    const char *program; /* of such a profile (the one that ran longest) */
    int systems;
    const sm_system *system;           /* the first has the page; of at least its devices each */
    const sm_calibration *calibration; /* of the first; NULL: sm_calibration_of */
    sm_source mesh;                    /* "data=4,tensor=2"; none: as the module has it */
    int top;                           /* rows of a table of the page (12) */
    sm_source against; /* another module or profile: where the step differs from its own, priced on
                          the second system where there is one, else on the first */
    /* The step it should be, on the first system: predicted beside found. NULL: not asked. */
    const struct sm_train_question *planned;
    bool pictures; /* the timeline and the roofline plot, into report->tracks and ->chart */
    /* What ran (trace.h): beside the module, or alone: then no system is needed. NULL: not given,
     * or the module is such a profile itself. */
    const sm_trace *trace, *against_trace;
    bool cut; /* the module is cut short: its last computation is priced as the program */
} sm_profile_question;
/* What a compiled program costs on a machine: time, kernels and collectives by where they come
 * from, memory, and what would save time. SM_NEGATIVE when it does not fit in memory; SM_BAD_INPUT
 * with the place when the module cannot be read, or does not fit the system or the mesh. */
sm_status sm_answer_profile(const sm_profile_question *question, sm_report *report, sm_error *err);

/* ---- train ---- */
/* MegaScale (arXiv 2402.15627, section 4): finding what failed, and diagnostic tests, take less
 * than ten minutes on average. */
#define SM_USUAL_RESTART_S 600.0
enum { SM_MAX_TRAIN_SIZES = 256, SM_MAX_COMPARED = 256 };
/* How a model learns from preferences or rewards. */
typedef enum sm_preference {
    SM_PREFER_NONE,
    SM_PREFER_DPO,
    SM_PREFER_GRPO,
    SM_PREFER_PPO
} sm_preference;
typedef struct sm_train_question {
    size_t size;
    const sm_model *model;
    const sm_system *system;
    const sm_calibration *calibration; /* NULL: sm_calibration_of */
    double batch_tokens;               /* of a global batch: rounded to sequences that divide */
    sm_source batch;                   /* or as text: "4M", "4Mi", "2048seqs"; "max", the most
                                          whose step takes no longer than within_s */
    double seq;                        /* tokens of a sequence; 0: sm_train_seq */
    double tokens;                     /* of the whole run, for its time and cost; 0: not asked */
    const double *usd_per_chip_hour;   /* NULL: the catalogue's */
    const double *memory_margin;       /* part of a chip's memory that stays free; NULL:
                                          SM_USUAL_MEMORY_MARGIN, with as_run 0 */
    sm_source plan;                    /* keys to keep, "fsdp=64,tensor=8"; one given whole is only
                                          priced */
    sm_source dtype, optimizer;        /* these keys of it on their own: "fp8", "sgd" */
    sm_source most;                    /* limits to degrees: "tensor=8,pipeline=16" */
    int top;                           /* plans to show, at most SM_MAX_TOP; 0: 3 */
    sm_objective objective;
    int threads;      /* that search; the answer is the same. 0: all processors */
    double seconds;   /* of each search: the best so far is the answer then; 0: no limit */
    int n_chips;      /* sizes of the system to compare, at most SM_MAX_TRAIN_SIZES; 0: only */
    const int *chips; /* the system as it is */
    const volatile int *stop; /* nonzero: stop searching, and answer with the best so far */
    /* Called while searching: the part looked at, and the best so far of what the objective ranks
     * by (0: none yet). */
    void (*progress)(double fraction, double best, void *context);
    void *context;
    bool explain;      /* the derivation of the best plan's time; not with n_chips */
    bool timeline;     /* its simulated step, into report->tracks; not with n_chips */
    bool as_run;       /* priced as this project's runtime executes plans (sm_train_runtime_of): one
                          op after the other; false: mixed precision, fused kernels */
    sm_source against; /* a module or profile of such a step (profile.h), the prediction of the best
                          plan beside it; not with n_chips */
    const sm_framework *framework; /* only plans that it can run; NULL: that one of `frameworks`
                                      can, where one can run what is given of the plan */
    const sm_recipe *recipe;  /* the plan comes from it: it is told line by line, and the best plan
                                 of its framework stands beside its price */
    const sm_framework *emit; /* the page is the recipe that runs the best plan there */
    sm_source other;   /* another plan, or keys of one: where its step differs; not with n_chips */
    sm_source what_if; /* the best plan on another machine, "link=2x,hbm=1.5x" (hw.h) */
    bool sensitivity;  /* what more of each resource would bring; drawn into report->chart */
    int n_systems; /* to compare, system the first: a row for each, at most SM_MAX_COMPARED; 0: */
    const sm_system *systems; /* system alone */
    double within_s; /* 0, or with tokens: the fewest chips whose run takes no longer (objective */
    double budget_usd; /* cost: the cheapest), and costs no more (0: any) */
    bool softwares;    /* the best plan as each known software would run it; not with n_chips */
    const sm_calibration *const *calibrations; /* of each of systems; NULL: sm_calibration_of */
    /* How long a run with tokens takes and costs when failures interrupt it (goodput.h); not with
     * n_chips, n_systems. */
    bool goodput;
    const double *failures;     /* per chip and hour; NULL: the chip's, else many are shown */
    const double *checkpoint_s; /* that one stops the run for; NULL: a chip's state over its link to
                                   the host */
    const double *restart_s;    /* NULL: SM_USUAL_RESTART_S */
    double interval_s;          /* between checkpoints; 0: the best */
    double stragglers;          /* part by which slow chips lengthen each step */
    double repair_s;            /* of a host, for which spares are told; 0: not asked */
    bool why; /* twice and half of each degree of the best plan, and what speaks against it */
    const sm_frameworks *frameworks; /* that are known; NULL: those shipped */
    bool any_plan;                   /* plans that no framework is known to run, too */
    /* What comes after pretraining: the time of an iteration over the batch; not with n_chips,
     * n_systems. Sequences of `seq` tokens are those of DPO's pairs, or rollouts. */
    sm_preference method;
    double prompt;            /* tokens of a rollout that are its prompt; 0: a quarter of seq */
    double samples;           /* rollouts of a prompt; 0: 8 of GRPO, 1 of PPO */
    double epochs;            /* over each batch; 0: one */
    bool no_reference;        /* nothing is held against the model as it was */
    const sm_model *reward;   /* scores rollouts; NULL: a rule does, at no cost */
    const sm_model *critic;   /* of PPO; NULL: as large as the model */
    const sm_system *rollout; /* chips of the engines; NULL: those that train */
    /* What the software holds in memory beside the plan (codebase.h); NULL: what is known of that
     * of the constants. */
    const sm_software_memory *held;
} sm_train_question;
/* The best plans with times, memory, collectives, bounds and cost; SM_NEGATIVE when none fits. */
sm_status sm_answer_train(const sm_train_question *question, sm_report *report, sm_error *err);
/* The sequences, of `seq` tokens each, of a batch as sm_train_question has it as text ("4M", "4Mi",
 * "2048seqs"), for so many chips. SM_BAD_INPUT with its place. */
sm_status sm_batch_sequences(const sm_source *text, double seq, double chips, double *sequences,
                             sm_error *err);
/* The sequence length in tokens of a question that asks for `asked`, 0 where it gives none: 4096,
 * or what the model was made for where that is less. A picture has its own, whatever is asked. NAN
 * when memory ran out. */
double sm_train_seq(const sm_model *model, double asked);

/* ---- serve ---- */
enum { SM_MAX_DTYPES = 4 };
typedef struct sm_dtype_list {
    int n;
    sm_dtype type[SM_MAX_DTYPES];
} sm_dtype_list;
typedef struct sm_serve_question {
    size_t size;
    const sm_model *model;
    const sm_system *system;            /* the chips there are */
    const sm_calibration *calibration;  /* NULL: what sm_serve_new takes */
    double prompt, output;              /* tokens of a request (2048, 512) */
    double context;                     /* cached tokens at which decoding is priced; 0: prompt and
                                           half the output */
    double prefix;                      /* tokens of the prompt that are in the cache already */
    sm_dtype_list weights, kv, compute; /* all combinations compete; empty: bf16,
                                            but weights as a quantised checkpoint has them, and
                                            compute as weights are usually multiplied */
    sm_speculation speculation;         /* depth 0: none */
    double imbalance;                   /* tokens of the fullest expert chip over the mean (1) */
    const double *reserve;              /* of the memory, stays free; NULL: as sm_serve_job */
    const double *usd_per_chip_hour;    /* NULL: the catalogue's */
    bool eager;                         /* kernels launched one by one, not replayed as a graph */
    sm_source plan;                     /* keys to keep: "tensor=8,expert=2" */
    double batch;                       /* sequences decoding at once; with degrees in the plan one
                                           point is answered. 0: all */
    double ttft_s, tpot_s;              /* limits; 0: none */
    int chips_least, chips_most;        /* of a replica; 0: 1, the whole system */
    bool by_lower;                      /* rank by the bound */
    bool alone;                         /* prompts are prefilled elsewhere */
    const char *software;               /* what serves, as in data/engines; NULL: any */
    double concurrency;                 /* requests in flight, in place of batch, of one point */
    bool disaggregated;                 /* pools of their own for prefill and decode, too */
    double requests_per_s;              /* and the fleet for so many; 0: not asked */
    int top;                            /* points of the frontier on the page (12); all in data */
    bool explain;                       /* the derivation of the best point */
    bool plot;                          /* the frontier, into report->chart */
    bool brief; /* the best point and the frontier alone: no engines, pools or random arrivals
                   that were not asked for */
    const sm_recipe *recipe;  /* where the plan comes from: told line by line */
    const sm_framework *emit; /* the page is the command that serves the best point */
    int n_systems; /* to compare, system the first: a row for each, at most SM_MAX_COMPARED, with */
    const sm_system *systems; /* constants of `software` where its chip has them; then nothing that
                                 is of one point is asked. 0: system alone */
    const sm_framework *framework;   /* only plans that it can run; NULL: that one of `frameworks`
                                        can, where one can run what is given of the plan */
    const sm_frameworks *frameworks; /* that are known; NULL: those shipped */
    bool any_plan;                   /* plans that no framework is known to run, too */
    const sm_calibration *const *calibrations; /* of each of systems; NULL: those of `software` */
    const sm_system *prefill_system; /* of the pool that prefills; NULL: that of decoding, system */
    const sm_calibration *prefill_calibration; /* of its chips; NULL: those of `software` */
    const struct sm_software *engine;          /* in place of `software`, or NULL */
    const char *const *softwares; /* of each of systems, in place of `software`; NULL: that one */
    const char *checkpoint;       /* whose id a command names; NULL: that of the model */
} sm_serve_question;
/* The frontier of time per token, throughput and cost, its best point in full; or one point; or
 * the best point on each of several systems.
 * SM_NEGATIVE when nothing fits or meets the limits. */
sm_status sm_answer_serve(const sm_serve_question *question, sm_report *report, sm_error *err);

/* ---- simulate ---- */
typedef struct sm_simulate_question {
    size_t size;
    const sm_model *model;
    const sm_system *system;           /* the chips of one replica */
    const sm_calibration *calibration; /* NULL: what sm_serve_new takes */
    sm_serve_dtypes dtypes;            /* bf16 */
    bool as_stored;                    /* weights as in sm_serve_job */
    const char *software;              /* as in sm_serve_question */
    sm_source plan;                    /* how a replica is sharded: "tensor=8"; without text:
                                          the best of sm_answer_serve on all chips of system */
    sm_source prefill_plan;            /* of the prefill pool; without text: that of plan */
    const sm_simulation *simulation;   /* policy, replicas, limits; its engines are not looked at.
                                          NULL: as the software has them, as are budgets of 0
                                          tokens, for each group of chips with sequences */
    const char *trace;                 /* file of requests, or NULL */
    const sm_synthetic *drawn;         /* arrivals drawn so, and without a trace the lengths; NULL:
                                          as they come in the trace */
    double requests;                   /* at most so many; 0: 10000 drawn, ten of each
                                          client, all of a trace */
    const double *host_bytes;          /* of a replica, for swaps and the prefix cache; NULL: half
                                          of the hosts' where preemption swaps, else none */
    bool find_max_rate;                /* the highest rate that meets the SLO */
    double within;                     /* the share of requests that must meet it (0.99) */
    const sm_watch *watch;             /* is told of every request and step; may be NULL */
    bool explain;                      /* what the goodput is made of */
    bool plot, timeline;               /* into report->chart and report->tracks */
    bool keep_engine;                  /* for sm_serve_step_time: report->kept is its sm_engine */
    sm_speculation speculation;        /* depth 0: none; -1: the best of one sequence */
    const struct sm_software *engine;  /* as in sm_serve_question */
    sm_range clients;                  /* of more than one value: a closed loop of so many, in place
                                          of simulation->concurrency, for each of them */
} sm_simulate_question;
/* Latencies, rates, goodput, use of engines and memory; SM_NEGATIVE when not one sequence fits, or
 * no rate meets the SLO. */
sm_status sm_answer_simulate(const sm_simulate_question *question, sm_report *report,
                             sm_error *err);

/* ---- validate ---- */
enum { SM_VALIDATE_GROUPS = 8 };
extern const char *const sm_validate_groups[SM_VALIDATE_GROUPS]; /* "kind", "chip", "source", ... */
typedef struct sm_validate_question {
    size_t size;
    size_t files;
    const char *const *file; /* of measured rows: CSV or JSON lines */
    const sm_chip *own;      /* chips of the caller's, of which rows with their names are */
    size_t n_own;
    const char *chip;                /* only rows of this chip; NULL: all */
    const char *source;              /* whose source has this in its name */
    const sm_truth_kind *kind;       /* of this kind */
    const char *quality;             /* training rows of this quality: "A", "B", "C" */
    sm_source software;              /* constants of this generation in place of the row's own */
    const sm_calibration *constants; /* or these, as of a file */
    size_t n_constants;
    int n_by; /* what to group by, as numbers in sm_validate_groups; 0: the first five, shortened */
    const int *by;
    int worst;      /* how many of the worst rows to list; 0: 10, below 0: none */
    bool all;       /* repeated and fine-tuning rows count in the statistics too */
    bool rows;      /* the data has every row, which then are the report's records */
    bool explain;   /* the derivation of the worst rows */
    bool plot;      /* predicted against measured, into report->chart */
    size_t n_given; /* what rows do not state: "chip=h100-sxm", "parallel.tp=8" */
    const sm_source *given;
    size_t n_codebases; /* what software of these names holds, in place of what is known of it */
    const sm_codebase *codebases;
} sm_validate_question;
/* Errors of the predictions (expected / measured - 1) and what they come to by group; ranking of
 * layouts; verdicts on memory; rows below the bound, rows that look wrong. SM_BAD_INPUT with line
 * and column when a file does not hold rows, SM_IO when it cannot be read, SM_USAGE when no row is
 * selected or no file is given. */
sm_status sm_answer_validate(const sm_validate_question *question, sm_report *report,
                             sm_error *err);

/* ---- calibrate ---- */
typedef struct sm_calibrate_question {
    size_t size;
    size_t files;
    const char *const *file;     /* of measured rows */
    const sm_chip *chip;         /* of the catalogue: its rows are fitted to */
    const char *software;        /* what the result is called; of a generation that the rows name,
                                    only its rows are fitted to ("mine") */
    const sm_calibration *start; /* and prior; NULL: the shipped one of that software, else the
                                    chip's usual */
    unsigned constants;          /* a bit each to fit; 0: all, of few steps those of matmuls */
    bool all;                    /* fit to repeated, fine-tuning and doubtful rows too */
    const char *output;          /* the file that the caller writes the text to, for the page */
    bool explain;
    size_t n_given; /* as in sm_validate_question */
    const sm_source *given;
} sm_calibrate_question;
/* The constants before and after, errors in sample and held out, outliers, what to measure next;
 * the text of the calibration file in report->file. SM_NEGATIVE when nothing could be fitted. */
sm_status sm_answer_calibrate(const sm_calibrate_question *question, sm_report *report,
                              sm_error *err);

/* ---- support ---- */
typedef struct sm_support_question {
    size_t size;
    const sm_model *model;
    const sm_system *system;
    const char *software;             /* an engine or a code base; NULL: not known */
    sm_dtype type;                    /* of weights, or of training; looked at */
    bool any_type;                    /* unless this is set */
    double in_flight, prompt, output; /* of serving; 0: any */
    double batch_tokens, seq;         /* of training; 0: any */
    int top;                          /* how many of the nearest rows to tell (5); at most 50 */
} sm_support_question;
/* The measured rows nearest to a model on a system, for serving and for training: how far off their
 * predictions are, in what the question lies beyond them, and what to expect of it. SM_NEGATIVE
 * when none is near enough to say. */
sm_status sm_answer_support(const sm_support_question *question, sm_report *report, sm_error *err);

/* What a framework is to do: the model, on the chip. */
typedef struct sm_framework_job {
    const sm_framework *framework; /* NULL: none */
    sm_evidence_use use;
    const sm_model *model;
    const sm_chip *chip;
} sm_framework_job;
/* The constants of the software said (or NULL), else of a version of the framework where the chip
 * or its next relative has them: the newest with which this model was measured there, else the one
 * whose evidence is nearest to it; else as sm_codebase_calibration. *out is NULL where there are
 * none: the chip's usual ones stand in, with intervals so much wider on the logarithm. */
#define SM_UNMEASURED_WIDER 1.2
sm_status sm_framework_calibration(const sm_framework_job *of, const char *said, sm_arena *arena,
                                   const sm_calibration **out, sm_error *err);
/* The usual constants of a chip in the name of a code base that has none there, so that what its
 * code is known to do applies; of one that is not known *out stays as it is. */
sm_status sm_codebase_calibration(const sm_chip *chip, const char *name, sm_arena *arena,
                                  const sm_calibration **out, sm_error *err);

/* A fact of a chip with its source, as a child of a derivation. */
void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit);
SM_DECLARATIONS_END
