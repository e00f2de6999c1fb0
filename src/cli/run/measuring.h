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
sm_status measured_files(const measuring *q, sm_error *err);
void measured_page(sm_report *r, const measuring *q);
