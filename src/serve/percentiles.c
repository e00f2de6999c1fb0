/* Percentiles from a histogram of logarithmic bins (as HdrHistogram has them). Bins are linear
 * within an octave: exponent and mantissa alone find the bin of a value. The width of a bin is at
 * most 1/128 of its values. */
#include "percentiles.h"

#include <math.h>

static int bin_of(double value) {
    int exponent = 0;
    double mantissa = frexp(value, &exponent); /* [0.5, 1) */
    int octave = exponent - 1 - SIM_LEAST_OCTAVE;
    if (octave < 0) return 0;
    if (octave >= SIM_OCTAVES) return SIM_BINS - 1;
    return octave * SIM_BINS_OF_OCTAVE + (int)((2.0 * mantissa - 1.0) * SIM_BINS_OF_OCTAVE);
}

static double middle_of(int bin) {
    double within = (bin % SIM_BINS_OF_OCTAVE + 0.5) / SIM_BINS_OF_OCTAVE;
    return ldexp(1.0 + within, bin / SIM_BINS_OF_OCTAVE + SIM_LEAST_OCTAVE);
}

void sim_histogram_add(sim_histogram *h, double value) {
    if (h->n == 0.0 || value < h->least) h->least = value;
    h->n += 1.0;
    h->sum += value;
    if (value > h->most) h->most = value;
    if (value > 0.0) h->bin[bin_of(value)]++;
    else h->nothing++;
}

double sim_histogram_quantile(const sim_histogram *h, double q) {
    double rank = ceil(q * h->n), seen = (double)h->nothing;
    if (h->n <= 0.0 || seen >= rank) return 0.0;
    for (int i = 0; i < SIM_BINS; i++) {
        seen += (double)h->bin[i];
        if (seen >= rank) return fmax(h->least, fmin(middle_of(i), h->most));
    }
    return h->most;
}

sm_percentiles sim_histogram_read(const sim_histogram *h) {
    return (sm_percentiles){
        .mean = h->n > 0.0 ? h->sum / h->n : 0.0,
        .p50 = sim_histogram_quantile(h, 0.50),
        .p90 = sim_histogram_quantile(h, 0.90),
        .p99 = sim_histogram_quantile(h, 0.99),
        .most = h->most,
    };
}
