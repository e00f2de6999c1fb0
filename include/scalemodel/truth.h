/* truth: measured rows (operations, collectives, training steps, inference), what the product
 * predicts for each, statistics of the error, and the fit of a calibration to them. */
#pragma once
#include "scalemodel/search.h"
#include "scalemodel/train.h"

SM_DECLARATIONS_BEGIN

typedef enum sm_truth_kind {
    SM_TRUTH_GEMM,
    SM_TRUTH_ATTENTION,
    SM_TRUTH_COLLECTIVE,
    SM_TRUTH_MEMOP,
    SM_TRUTH_TRAINING,
    SM_TRUTH_INFERENCE,
    SM_TRUTH_KIND_COUNT
} sm_truth_kind;
/* The name of a kind of rows, "gemm"; "?" of none. Static text. */
const char *sm_truth_kind_name(sm_truth_kind kind);

/* Numbers a source does not state are NAN (counts: 0; flags: SM_UNSTATED); texts "". */
typedef enum sm_stated { SM_UNSTATED = -1, SM_NO = 0, SM_YES = 1 } sm_stated;

typedef struct sm_gemm_row { /* C[m,n] = A[m,k] B[k,n]; dtype as printed in the file */
    const char *dtype;
    double m, n, k;
    sm_stated quantises; /* quantising A is in the time */
} sm_gemm_row;
typedef struct sm_attention_row {
    const char *phase, *dtype;
    double batch, q_len, kv_len;
    int n_heads, n_kv_heads, d_head;
} sm_attention_row;
typedef struct sm_collective_row {
    const char *op; /* all_reduce, all_gather, reduce_scatter, all_to_all, send_recv, ... */
    int ranks, nodes;
    double bytes, busbw_GBps;
    sm_stated in_network; /* SM_NO: no reduction in the switches */
} sm_collective_row;
typedef struct sm_memop_row {
    const char *op, *dtype;
    double rows, cols, bytes;
} sm_memop_row;

/* An architecture as a row states it; 0: not stated, or it has none. */
typedef struct sm_row_model {
    const char *name, *notes;
    const char *not_modelled; /* what of it cannot be predicted, or "" */
    int layers, d_model, heads, kv_heads, d_head, d_ff, vocab;
    sm_stated gated_mlp, tied, parallel_block;
    int experts, top_k, d_ff_expert, shared_experts;
    int moe_layer_step;     /* every so many layers one has experts; 0: all but ... */
    int first_dense_layers; /* ... the first so many */
    int d_ff_dense_layers;
    int q_lora, kv_lora, rope_dim, nope_dim, v_dim;
    int full_layers, sliding_layers, linear_layers;
    int sliding_window,
        chunk;        /* keys that local layers see: the nearest, or those of their chunk */
    int global_every; /* every so many layers one sees all keys; 0: as many as full_layers says */
    int mtp_layers;
    double params_b;
} sm_row_model;

typedef struct sm_training_row { /* keys as in the truth files, flattened */
    const char *title, *task, *quality, *duplicate_of, *flags; /* flags: space separated */
    int year, month;                                           /* month 0: the last */
    sm_row_model model;
    const char *inter_node_network, *intra_node_link, *hardware_notes;
    int chips, devices, chips_per_node;
    int pods;               /* of a torus: joined by the data-centre network; 0: not stated */
    double node_bits_per_s; /* what joins a node to the others; NAN: as the chip's network has it */
    const char *precision, *precision_class;
    double seq_len, global_batch_sequences, microbatch, per_device_batch_size;
    int tp, cp, pp, vp, ep, dp; /* 0: not stated */
    sm_stated sp, fsdp;
    int zero_stage; /* -1: not stated */
    const char *recompute, *recompute_detail, *attention_kernel, *optimizer, *schedule,
        *schedule_detail, *notes;
    sm_stated flash_attention;
    const char *plan;          /* in the words of --plan: takes the place of what the degrees say */
    const char *flops_counted; /* whose FLOPs its figures are, as sm_flops_count_parse has it */
    double tokens_per_s_per_chip, model_tflops_per_chip, hw_tflops_per_chip, mfu, hfu;
    double step_time_s, peak_memory_bytes; /* printed GiB or GB in bytes; NAN: not printed */
    double derived_step_time_s; /* any derived.step_time_s_*: arithmetic on printed figures */
    bool oom;                   /* reported as out of memory: flag OOM */
    bool in_order;              /* gates deal experts in order: flag moe_in_order */
} sm_training_row;

/* Chips that do one part of serving, where prefill and decode have chips of their own. */
typedef struct sm_inference_pool {
    int workers, tp, pp, ep, gpus; /* degrees of one worker; gpus of the pool */
    sm_stated dp_attention;        /* each chip of a worker attends to sequences of its own */
    double batch;
} sm_inference_pool;
/* Keys as in the truth files, milliseconds turned into seconds. Degrees count devices: cores where
 * a chip has two (tpu7x, trainium1, inferentia2). */
typedef struct sm_inference_row {
    sm_row_model model;
    int chips;
    int tp, pp, ep, dp; /* 0: not stated */
    int attention_dp;   /* ranks with sequences of their own around the experts; 0: as dp says */
    int fsdp;           /* weights in two dimensions: over so many ranks besides; 0: one */
    const char *weights_by; /* of those: stationary or gathered */
    const char *weight_dtype, *kv_dtype, *compute_dtype;
    double batch, concurrency;    /* static batch; requests in flight. Neither: all that fit */
    double requests;              /* of the benchmark; not stated: ten for each in flight */
    double input_len, output_len; /* tokens of a request */
    double cached_len;            /* of its prompt, found in the prefix cache on average */
    const char *len_sampling;     /* "uniform[0.8L,L]": lengths are 0.9 of these on average */
    const char *phase;            /* e2e, prefill, decode */
    double ttft_s, tpot_s, latency_s;
    const char *ttft_is; /* of the requests: mean, median; burst: of those that begin at once */
    double tokens_per_s, tokens_per_s_per_chip, mfu;
    const char *tokens_counted; /* output, input or total: what tokens_per_s counts */
    double total_tokens_per_s_per_chip, little_ratio, request_rate_per_s;
    double kv_tokens; /* of an engine's cache, as it printed them when it started */
    sm_stated disagg;
    sm_inference_pool prefill, decode; /* of disaggregated rows */
    const char *framework, *spec_decode, *scenario, *reliability, *date, *notes;
    const char *engine; /* what differs of its software (sm_software_set); may be empty */
} sm_inference_row;

/* What a row of inference states and what is compared, in seconds. The first that is stated, in
 * this order, is the row's measured_s: time per output token after the first; time per counted
 * token of the whole system; time of the whole request or batch; time to the first token. */
#define SM_SERVED(X)                                                                               \
    X(TPOT, "tpot_s", SM_REGIME_decode)                                                            \
    X(TOKEN, "token_s", SM_REGIME_throughput)                                                      \
    X(LATENCY, "latency_s", SM_REGIME_throughput)                                                  \
    X(TTFT, "ttft_s", SM_REGIME_prefill)
#define SM_SERVED_ID(id, ...) SM_SERVED_##id,
typedef enum sm_served { SM_SERVED(SM_SERVED_ID) SM_SERVED_COUNT } sm_served;
/* The name of a quantity, "tpot_s"; "?" of none. Static text. */
const char *sm_served_name(sm_served quantity);
/* The regime whose interval a quantity takes. */
sm_regime sm_served_regime(sm_served quantity);
/* Seconds that a row states of a quantity, NAN when it does not. */
double sm_inference_measured(const sm_inference_row *row, sm_served quantity);
/* The quantity that a row's measured_s is; SM_SERVED_COUNT: none. */
sm_served sm_inference_primary(const sm_inference_row *row);

typedef struct sm_truth_row {
    sm_truth_kind kind;
    const char *id;            /* of the row; CSV files without an id column: the line number */
    int line;                  /* in its file, 1-based */
    const char *chip, *source; /* chip or system as printed; source: title or source column */
    const char *software;      /* whose constants apply; "" or NULL: not stated */
    const char *kernel; /* of an operation: the library of its kernel, if not the software's */
    const sm_chip *on; /* the chip itself, where it is none of the catalogue's; NULL: by its name */
    double measured_s; /* what is compared: seconds of the operation, of a training step */
    int alike;         /* folded rows that it stands for beside itself (sm_truth_given) */
    union {
        sm_gemm_row gemm;
        sm_attention_row attention;
        sm_collective_row collective;
        sm_memop_row memop;
        sm_training_row training;
        sm_inference_row inference;
    } of;
} sm_truth_row;
/* Something about a row that is probably a mistake of the file: the row is kept and compared. */
typedef struct sm_truth_warning {
    int line;       /* of the row, 1-based */
    const char *id; /* of the row */
    const char *text;
} sm_truth_warning;
typedef struct sm_truth {
    const char *file;
    sm_truth_kind kind; /* of all its rows */
    size_t n;
    sm_truth_row *row;
    size_t warnings; /* in the order of their lines */
    sm_truth_warning *warning;
} sm_truth;

/* ---- the chip and the software a row speaks of ---- */
/* The catalogue chip for the name a truth file prints ("a100_sxm_80gb", "TPU v5p",
 * "mi300x|mi325x", "GB200"); the system column of collectives too. NULL when unknown. */
const sm_chip *sm_truth_chip(const char *printed);
/* Clear what of a row is not its configuration: id, line, and all that was measured. Rows of one
 * configuration are then equal byte for byte, where equal texts have one address. Figures of
 * inference are 1 where they are stated. */
void sm_truth_row_unmeasure(sm_truth_row *row);
/* Where a row of inference keeps what was measured: first tokens, time per token, latency, rates.
 */
enum { SM_SERVED_FIGURES = 5 };
void sm_inference_figures(sm_inference_row *row, double *figure[SM_SERVED_FIGURES]);
/* The chip of a row: row->on, or the catalogue's by its name. NULL when unknown. */
const sm_chip *sm_truth_row_chip(const sm_truth_row *row);
/* Source and software of the rows that `run` records of itself. */
#define SM_TRUTH_RUN "scalemodel run"
#define SM_TRUTH_RUN_SOFTWARE "scalemodel-run"
/* The software generation whose constants apply: "kernels" for single operations, else what the row
 * states, "default" (training) or "serving" (inference) where it states none. */
const char *sm_truth_software(const sm_truth_row *row);

/* ---- what is predicted ---- */
typedef struct sm_prediction {
    const char *unknown; /* NULL, or why nothing can be predicted (a missing fact, by its name) */
    double lower_s, expected_s, upper_s;
    double low_s, high_s; /* 80 % interval */
    sm_regime regime;
    bool fits; /* training rows; memory: peak per chip, bytes, 0 when not priced */
    sm_memory memory;
    double kv_tokens; /* rows of inference: the cache's room, of all engines */
    sm_plan plan;
    const sm_calibration *calibration;
    bool out_of_memory; /* why it is unknown: not for want of a fact */
    /* Of rows of inference: everything they state, the first is what stands above. */
    int parts;
    struct {
        sm_served quantity;
        double measured_s, lower_s, expected_s, low_s, high_s;
    } part[SM_SERVED_COUNT];
} sm_prediction;

/* A row made ready: predicting it again under other constants costs microseconds. */
typedef struct sm_truth_case sm_truth_case;
struct sm_software; /* load.h */
/* Make a row ready to be predicted. Never fails on a row: what cannot be predicted says so in its
 * prediction. SM_INTERNAL when out of memory. The row must outlive the case. */
sm_status sm_truth_case_new(const sm_truth_row *row, sm_truth_case **out, sm_error *err);
/* Free a case. NULL is fine. */
void sm_truth_case_free(sm_truth_case *c);
/* Cases of many rows, of which those share one that differ only in what they are called and in what
 * was measured. */
typedef struct sm_truth_cases sm_truth_cases;
/* None yet. bounds: predictions have all that sm_prediction has. Without, those of inference have
 * no lower bounds (of which measured first tokens are a part) and no measured parts, so that rows
 * of inference share too: those that state the same figures. NULL when out of memory. */
sm_truth_cases *sm_truth_cases_new(bool bounds);
/* The case of a row, made where there is none like it: rows of one sm_truth, whose equal texts have
 * one address. Errors as sm_truth_case_new; the row need not outlive it, but its texts and the chip
 * it is on must. */
sm_status sm_truth_cases_get(sm_truth_cases *cases, const sm_truth_row *row, sm_truth_case **out,
                             sm_error *err);
/* Free all of them. NULL is fine. */
void sm_truth_cases_free(sm_truth_cases *cases);
/* The model of a row of training or inference, as long as the case; NULL: it has none that can be
 * told, or rests. */
const sm_model *sm_truth_case_model(const sm_truth_case *c);
/* The plan by which a row of inference decodes, likewise. */
const sm_plan *sm_truth_case_plan(const sm_truth_case *c);
/* Predict a row, in seconds, with its 80 % interval. calibration NULL: the shipped one of the row's
 * chip and software. What cannot be predicted says why in out->unknown. */
void sm_truth_predict(sm_truth_case *c, const sm_calibration *calibration, sm_prediction *out);
/* Let a row of inference be served by this engine, but for what the row states of its own, until
 * another is given: what an engine does with requests is fitted like constants. Others are left
 * alone. */
void sm_truth_case_engine(sm_truth_case *c, const struct sm_software *engine);
/* Let a training row be priced with what the first of these that is its software's holds, which
 * outlive its use, in place of what is known of it. Others are left alone. */
void sm_truth_case_codebases(sm_truth_case *c, const sm_codebase *list, size_t n);
/* Let go of what makes a prediction cheap: the last one is kept, and another makes the case ready
 * again. */
void sm_truth_case_rest(sm_truth_case *c);
/* The derivation of a training row's expected time, as `train --explain` shows it; *why is NULL
 * else. SM_INTERNAL when out of memory. */
sm_status sm_truth_why(sm_truth_case *c, sm_arena *arena, sm_why **why, sm_error *err);

/* The seconds of training rows that print FLOP/s or a share of the peak, and no time, by what
 * flops_counted says; others stay as they are. SM_INTERNAL when out of memory. */
sm_status sm_truth_counted_times(sm_truth_row *row, size_t n, sm_error *err);

/* A matrix product: sm_matmul_cost of the row's shape, and the host's time where the host starts
 * each kernel. This and the next three are private to the layer: src/truth/predict_KIND.c. Sets
 * out->unknown when a fact or the chip's peak is missing. */
void sm_predict_gemm(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                     sm_prediction *out);
/* Attention: sm_attention_cost of the row's shape as its kernel runs it, and what comes before the
 * kernel. Sets out->unknown when a fact or the chip's peak is missing. */
void sm_predict_attention(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                          sm_prediction *out);
/* A collective on the row's ranks, laid out on a system of its nodes: sm_curve_cost of its bytes.
 * Sets out->unknown when a fact is missing or the ranks cannot be laid out. */
void sm_predict_collective(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                           sm_prediction *out);
/* An operation bound by memory: launch and host time, then the longer of its bytes at streaming
 * bandwidth and its chain of dependent steps. Sets out->unknown when the row states no bytes. */
void sm_predict_memop(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                      sm_prediction *out);

/* ---- the fit: the method is in docs/calibration-file.md ---- */
typedef struct sm_fit_options {
    unsigned free;       /* bit per constant to fit */
    double prior_weight; /* 1: as shipped priors; 0: none */
    int folds;           /* of the cross-validation; 0: by width of model, at most 12 */
    sm_arena *arena;     /* of what the fit lists; required */
} sm_fit_options;
typedef struct sm_fit_constant {
    sm_constant which;
    double before, after, deviation; /* relative standard deviation of the fitted value */
    bool identified;                 /* the rows say more about it than the prior did */
} sm_fit_constant;
typedef struct sm_fit_row { /* expected / measured - 1 */
    const sm_truth_row *row;
    double in_sample;
    double held_out; /* by constants fitted to models of other widths (one width: other layouts) */
    double held_out_by_source; /* by constants fitted to other sources; NAN when there is one */
    bool covered;              /* held out, it lies in the 80 % interval that the others teach */
    bool outlier;              /* beyond three spreads of its kind */
} sm_fit_row;
typedef struct sm_fit {
    sm_calibration calibration; /* the start with what was fitted and the intervals learned */
    int constants;
    sm_fit_constant constant[SM_CONSTANT_COUNT];
    size_t rows, outliers; /* those that were folded count each */
    size_t n;
    sm_fit_row *row;  /* those fitted to, in the order given */
    unsigned learned; /* bit per regime: its interval is of these rows */
    double in_sample_median, held_out_median, held_out_p90; /* |error| */
    double held_out_by_source_median;                       /* NAN when there is one source */
    double before_median;   /* with the calibration it started from */
    char measure_next[200]; /* the measurement that would help most; "" when none would */
} sm_fit;
/* A measured row and the case that predicts it, which others may share. */
typedef struct sm_ready_row {
    const sm_truth_row *row;
    sm_truth_case *c;
} sm_ready_row;
/* Robust least squares of log(expected/measured) over the rows that can be predicted, with the
 * start as prior. Deterministic. SM_NEGATIVE with a sentence when nothing can be identified; the
 * constants and measure_next are filled then too. */
sm_status sm_calibrate(const sm_ready_row *rows, size_t n, const sm_calibration *start,
                       const sm_fit_options *options, sm_fit *fit, sm_error *err);

/* ---- statistics: pure functions; `scratch` has room for n doubles ---- */
/* One prediction beside what was measured, in one unit: seconds, or bytes. What is not known is
 * NAN. */
typedef struct sm_comparison {
    double measured, lower, expected;
    double low, high; /* 80 % interval */
} sm_comparison;
/* expected / measured - 1: positive when the prediction is too slow, or too large. */
double sm_comparison_error(const sm_comparison *c);
/* Was less measured than the bound, beyond the rounding of the last bits? */
bool sm_comparison_below(const sm_comparison *c);

typedef struct sm_error_stats {
    size_t n;
    double median, mean, p90, bias; /* |error| relative to measured; bias: median signed */
    double coverage;                /* share of measured inside the interval */
    size_t below_lower;
} sm_error_stats;
/* Figures of no comparison at all are NAN; coverage counts those that have an interval. */
sm_error_stats sm_error_stats_of(const sm_comparison *c, size_t n, double *scratch);
/* Kendall's rank correlation of two lists, tau-b: pairs tied in either list count for neither.
 * NAN when one list holds a single value only. room: for 4n numbers. */
double sm_kendall_tau(const double *a, const double *b, size_t n, double *room);
/* Of the pairs whose b differ by more than the factor `apart` (1.037: what two runs of one
 * configuration may differ by is no order), the share in the order of a, less that in the opposite
 * one; pairs of equal a count as neither. NAN: no pair is. b above zero, apart from 1 on. room: for
 * 4n numbers. */
double sm_kendall_tau_apart(const double *a, const double *b, size_t n, double apart, double *room);
/* Choose the least expected: how much longer it was measured to take than the least measured, as
 * a fraction. Of equal expectations the first is chosen. NAN of none. */
double sm_time_lost(const double *expected, const double *measured, size_t n);
SM_DECLARATIONS_END
