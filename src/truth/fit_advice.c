/* Which measurement would say most about the constants that the rows leave open. */
#include "fit.h"
#include <math.h>
#include <stdio.h>

/* The measurement that determines a constant with little help from the others. */
static const char *measurement_of(sm_constant which) {
    static const char *const measurements[SM_CONSTANT_COUNT] = {
        [SM_CONSTANT_matmul_efficiency] = "a 16-bit matmul of 8192 x 8192 x 8192",
        [SM_CONSTANT_matmul_efficiency_fp8] = "an fp8 matmul of 8192 x 8192 x 8192",
        [SM_CONSTANT_matmul_half_k] = "16-bit matmuls of 8192 x 8192 with K = 128, 512 and 2048",
        [SM_CONSTANT_attention_efficiency] = "causal attention forward, 8k tokens, head size 128",
        [SM_CONSTANT_attention_efficiency_backward] =
            "a training step of one layer with long sequences (16k tokens)",
        [SM_CONSTANT_memory_efficiency] = "a copy of 1 GiB in the memory of one chip",
        [SM_CONSTANT_network_efficiency_inner] = "an all-reduce of 1 GiB inside a node",
        [SM_CONSTANT_network_efficiency_outer] = "an all-reduce of 1 GiB across nodes",
        [SM_CONSTANT_launch_s] = "a training step of a small model with microbatch 1",
        [SM_CONSTANT_collective_s] = "all-reduces of 1 KiB to 1 MiB inside a node",
        [SM_CONSTANT_overlap] =
            "two training steps that differ only in tensor- or data-parallel degree",
        [SM_CONSTANT_step_overhead_s] =
            "two training steps that differ only in the global batch, one with a single microbatch",
    };
    return measurements[which];
}

/* Of the constants known least, that which moves these rows the most; when every one that the rows
 * feel is known, the first that they do not feel at all. */
static int least_known(const fit_problem *f, const fit_solution *s) {
    int most = -1, unfelt = -1;
    double open = 0.002; /* less than this of a row's time is not worth a measurement */
    for (int j = 0; j < f->p; j++) {
        double deviation = s->deviation[j] * s->sensitivity[j];
        double ratio = s->deviation[j] / fit_prior_deviation(f->free[j], f->u0[j]);
        if (s->sensitivity[j] <= 0.0 && unfelt < 0) unfelt = j;
        if (ratio > 0.7 && deviation > open) {
            open = deviation;
            most = j;
        }
    }
    return most >= 0 ? most : unfelt;
}

void fit_advise(const fit_problem *f, const fit_solution *s, char *out, size_t size) {
    int j = least_known(f, s);
    if (size > 0) out[0] = 0;
    if (j < 0) return;
    snprintf(out, size, "%s, for %s", measurement_of(f->free[j]), sm_constant_of(f->free[j])->name);
}
