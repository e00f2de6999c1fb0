/* measure: what the ranks of this machine reach: local products, memory, messages and collectives,
 * each timed many times, and the lines and constants that such timings are fitted by. */
#pragma once
#include "scalemodel/run_train.h"

SM_DECLARATIONS_BEGIN

/* ---- timings ---- */
/* Of n repeats: the least, the quartiles (linear between the order statistics) and the median.
 * disturbed: repeats in which a rank waited for a processor that another program had, though there
 * is one for each rank. They are left out where 5 others are there; else, of a rank's own work, the
 * waiting is subtracted, and of work together the fourth that waited least counts. */
typedef struct sm_spread {
    double least, low, median, high;
    int n, disturbed;
} sm_spread;
/* The spread of n samples, which it sorts. All zero when n < 1. */
sm_spread sm_spread_of(double *sample, int n);

/* What streams through memory: bytes and FLOPs per element of 8 bytes; of weights those of the
 * matrix, with its scales. */
#define SM_SWEEPS(X)                                                                               \
    X(COPY, "copy", 16.0, 0.0)   /* a = b, beyond the caches */                                    \
    X(TRIAD, "triad", 24.0, 2.0) /* a = b + x c, beyond the caches */                              \
    X(CACHED, "cached triad", 24.0, 2.0)                                                           \
    X(VECTOR, "vector", 0.0, 16.0)    /* x = x y + z eight times over: no memory */                \
    X(BF16, "bf16 weights", 0.0, 0.0) /* a row times a matrix, which is converted */               \
    X(INT8, "int8 weights", 0.0, 0.0)                                                              \
    X(FP8, "fp8 weights", 0.0, 0.0)                                                                \
    X(MXFP4, "mxfp4 weights", 0.0, 0.0)
#define SM_SWEEP_ID(id, ...) SM_SWEEP_##id,
typedef enum sm_sweep { SM_SWEEPS(SM_SWEEP_ID) SM_SWEEP_COUNT } sm_sweep;
/* The name of a sweep, "triad". Static text. */
const char *sm_sweep_name(sm_sweep stream);

enum {
    SM_MOST_MEASURED_MATMULS = 48,
    SM_MOST_MEASURED_SENDS = 16,
    SM_MOST_MEASURED_COLLECTIVES = 512
};
typedef struct sm_measured_matmul { /* on all ranks at once; seconds of the slowest */
    sm_dtype dtype;                 /* of operands and product */
    size_t m, n, k;
    sm_spread seconds;
} sm_measured_matmul;
typedef struct sm_measured_stream {
    double bytes, flops; /* of one rank; all ranks at once */
    sm_spread seconds;
} sm_measured_stream;
typedef struct sm_measured_send { /* one way, from rank 0 to rank 1 */
    size_t bytes;
    sm_spread seconds;
} sm_measured_send;
/* As a step of a lowering runs it, new memory and packing included; all groups at once. bytes: V as
 * in sm_step, for a broadcast what each rank receives. */
typedef struct sm_measured_collective {
    sm_collective op;
    int ranks; /* of a group */
    double bytes;
    sm_spread seconds;
} sm_measured_collective;
/* A short training, for what ops take where they really run: of one step of rank 0, each number the
 * lower quartile over the steps, since other programs make them longer alone. */
enum { SM_MOST_MEASURED_TRAININGS = 12, SM_MOST_MEASURED_OPS = 96 };
typedef struct sm_measured_training {
    sm_spread seconds; /* of a step */
    int ops;
    sm_train_row op[SM_MOST_MEASURED_OPS];                               /* recomputed ones apart */
    double move_s[SM_COLLECTIVE_COUNT], move_bytes[SM_COLLECTIVE_COUNT]; /* of all collectives */
    double moves[SM_COLLECTIVE_COUNT];
} sm_measured_training;
typedef struct sm_measurements {
    int ranks, matmuls, sends, collectives, trainings;
    sm_measured_matmul matmul[SM_MOST_MEASURED_MATMULS];
    sm_measured_stream stream[SM_SWEEP_COUNT];
    sm_measured_send send[SM_MOST_MEASURED_SENDS];
    sm_measured_collective collective[SM_MOST_MEASURED_COLLECTIVES];
    sm_measured_training training[SM_MOST_MEASURED_TRAININGS]; /* in the order of the job */
} sm_measurements;

/* How long to look. Every timing is repeated for budget_s, 5 to most_repeats times. */
typedef struct sm_measure_job {
    bool quick; /* fewer shapes and sizes */
    double budget_s;
    int most_repeats;
    size_t stream_bytes, cached_bytes; /* of each array of a rank: beyond the caches, within them */
    int trainings; /* each on as many ranks as its plan has, which are those of the world */
    const sm_train_setup *training;
    sm_measurements *out; /* written by rank 0 */
} sm_measure_job;
/* Measure: a sm_rank_body, whose context is a sm_measure_job. The status of the backend, or
 * SM_INTERNAL when out of memory. SM_BAD_INPUT when the job has too few repeats or too small
 * arrays. */
sm_status sm_measure_body(sm_communicator *world, void *job, sm_error *err);

/* ---- GPUs of this host: measure_cuda.c, built where the CUDA toolkit is ---- */
typedef struct sm_gpu_facts {     /* of the first; 0 or "" where the driver does not tell */
    char name[256], software[80]; /* "CUDA 12.9, cuBLAS 12.9.1, NCCL 2.32.3" */
    int gpus, cores;              /* cores: streaming multiprocessors */
    double memory_bytes, cache_bytes, shared_bytes, clock_hz;
    sm_measured_stream host_link; /* pinned memory of the host to the device */
} sm_gpu_facts;
/* Products by cuBLAS, copies and triads on the first GPU; with more than one, collectives of NCCL
 * and messages between all of them. job->out: ranks are GPUs; cached_bytes and stream_bytes are
 * chosen here. SM_IO: no GPU, or CUDA refuses, with what it says. */
sm_status sm_measure_gpus(const sm_measure_job *job, sm_gpu_facts *facts, sm_error *err);

/* ---- fits ---- */
/* seconds = latency_s + bytes x s_per_byte, neither below zero, by the least sum of
 * sqrt(1 + (r/s)^2) with r = fitted / measured - 1: relative errors, so that small sizes count as
 * large ones do, and the linear tail of the soft L1 loss, so that a disturbed timing counts little;
 * s: 1.4826 times the median of |r|, at least 1 %. */
typedef struct sm_measured_line {
    sm_line line;
    double crossover_bytes; /* latency_s / s_per_byte of it: half of the time is latency */
    double error;           /* median of |r| */
} sm_measured_line;
/* SM_BAD_INPUT: fewer than two sizes, or a number that is negative, not finite, or a time of 0. */
sm_status sm_measure_line(const double *bytes, const double *seconds, int n, sm_measured_line *out,
                          sm_error *err);

/* Constants of any model of time, positive, within [low, high]; value: where the search starts, and
 * what it finds. The robust fit of search.h of r = log(model / seconds) on the logarithms, from
 * the start and from a grid of the range: deterministic. */
enum { SM_MOST_MEASURED_CONSTANTS = 4 };
typedef struct sm_measured_constant {
    double low, high, value;
} sm_measured_constant;
typedef double (*sm_time_model)(const double *constant, int row, void *context);
/* What is fitted to: rows of seconds, and the model of the time of a row. */
typedef struct sm_timings {
    sm_time_model model;
    void *context;
    const double *seconds;
    int rows;
} sm_timings;
/* *error: median of |r|. SM_BAD_INPUT: no rows, a time that is not positive and finite, a range
 * that is empty or not positive, a start outside it, or a model that gives no positive time. */
sm_status sm_measure_constants(const sm_timings *timings, sm_measured_constant *constant,
                               int constants, double *error, sm_error *err);
SM_DECLARATIONS_END
