/* percentiles: a histogram of logarithmic bins: flat memory, quantiles within 0.4 %. Private to
 * src/serve. */
#pragma once
#include "scalemodel/simulate.h"

enum {
    SIM_LEAST_OCTAVE = -40, /* 2^-40 s = 1 ps and below share the first bin */
    SIM_OCTAVES = 80,
    SIM_BINS_OF_OCTAVE = 128,
    SIM_BINS = SIM_OCTAVES * SIM_BINS_OF_OCTAVE
};
typedef struct sim_histogram {
    double n, sum, least, most;
    uint64_t nothing; /* values of 0 */
    uint64_t bin[SIM_BINS];
} sim_histogram;
void sim_histogram_add(sim_histogram *h, double value); /* value >= 0 */
/* The value of which a share q of all is at most as large: the middle of its bin. 0 when empty. */
double sim_histogram_quantile(const sim_histogram *h, double q);
sm_percentiles sim_histogram_read(const sim_histogram *h);
