/* measuring: what the parts of the `measure` verb share: the machine, what was timed on it, and the
 * chip and constants made of that. */
#pragma once
#include "ranks.h"

/* What the operating system and the libraries say of themselves; 0 or "" where they do not. */
typedef struct machine {
    const char *cpu, *blas, *mpi, *date; /* "AMD EPYC 7B13", "2026-11-21" */
    int cpus;
    double memory_bytes, clock_hz;
    size_t private_cache_bytes, last_cache_bytes;
} machine;

enum { MOST_MEASURED_LINES = SM_COLLECTIVE_COUNT * 12 };
typedef struct collective_line {
    sm_collective op;
    int ranks;
    sm_measured_line line;
} collective_line;

typedef struct measuring {
    const cli_call *call;
    const char *name, *backend, *output, *constants, *plot; /* paths: NULL where not wanted */
    machine machine;
    sm_gpu_facts gpu; /* gpus 0: ranks of this machine were measured */
    sm_measurements *found;
    sm_chip chip;
    sm_calibration calibration;
    sm_measured_line send; /* through the messages; zero on one rank */
    int lines;
    collective_line line[MOST_MEASURED_LINES];
    /* medians of |log(predicted / measured)| under the constants */
    double matmul_error, network_error;
    sm_collective_line *line_in_use; /* of the calibration */
    struct measured_run *run;        /* trainings (measured_training.h) */
    int runs;
    /* of trainings: medians of |log(predicted / measured)| of products in them and of steps; what a
     * collective waits for the slower rank */
    double op_error, training_error, waiting_s;
    double matmul_s[SM_MOST_MEASURED_MATMULS], collective_s[SM_MOST_MEASURED_COLLECTIVES];
} measuring;

/* The chip, its links and its constants from what was timed (measured_chip.c). */
sm_status measured_chip(measuring *q, sm_error *err);
bool measured_is_start(const sm_measured_matmul *m); /* a product of two numbers: a call alone */
double measured_flops(const sm_measured_matmul *m);
double measured_bytes(const sm_measured_matmul *m); /* operands and product, once each */
/* The range of a constant, and the start held in it. */
sm_measured_constant measured_range(sm_constant which, double start);
/* The answer, and its files (measured_page.c). */
sm_status measured_files(sm_report *r, const measuring *q, sm_error *err);
void measured_page(sm_report *r, const measuring *q);

/* The short trainings that `measure` runs, and the constants that follow from
 * them: what ops, attention and steps take in the training runtime. */
/* A training that is measured: a plan of all ranks. */
typedef struct measured_run {
    sm_model model;
    sm_plan plan;
    sm_train_setup setup;
    bool has_moves; /* between the ops, not at the end of a step alone */
    sm_train *train;
    double predicted_s; /* a step, under the constants found */
} measured_run;
enum { MOST_RUNS = SM_MOST_MEASURED_TRAININGS };

/* q->run and q->runs, for ranks of this machine; *setups: those of the job. */
sm_status measured_runs(measuring *q, int ranks, bool quick, sm_train_setup **setups,
                        sm_error *err);
/* q->line as the collectives of q->calibration. */
sm_status measured_lines(measuring *q, sm_error *err);
/* Fits launch_s, matmul_efficiency, matmul_half_k, both attention efficiencies, overlap and
 * step_overhead_s of q->calibration to q->found->training, and takes the waiting of ranks for each
 * other into its measured collectives. Nothing where nothing was trained. */
sm_status measured_training_fit(measuring *q, const sm_system *system, sm_error *err);
