/* Statistics of predictions held against measurements. */
#include "scalemodel/truth.h"
#include <math.h>

/* A measurement at the bound differs from it by the rounding of its printed digits alone. */
static const double rounding = 1e-9;

double sm_comparison_error(const sm_comparison *c) { return c->expected / c->measured - 1.0; }

bool sm_comparison_below(const sm_comparison *c) {
    return c->measured < c->lower * (1.0 - rounding);
}

static double signed_median(const sm_comparison *c, size_t n, double *scratch) {
    for (size_t i = 0; i < n; i++) scratch[i] = sm_comparison_error(&c[i]);
    return sm_quantile(scratch, n, 0.5);
}

static double share_covered(const sm_comparison *c, size_t n) {
    size_t covered = 0, with_interval = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(c[i].low) || !isfinite(c[i].high)) continue;
        with_interval++;
        covered += c[i].measured >= c[i].low && c[i].measured <= c[i].high;
    }
    return with_interval ? (double)covered / (double)with_interval : NAN;
}

static double mean_of(const double *values, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    return n ? sum / (double)n : NAN;
}

sm_error_stats sm_error_stats_of(const sm_comparison *c, size_t n, double *scratch) {
    sm_error_stats stats = {.n = n, .bias = signed_median(c, n, scratch)};
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(sm_comparison_error(&c[i]));
        stats.below_lower += sm_comparison_below(&c[i]);
    }
    stats.mean = mean_of(scratch, n);
    stats.median = sm_quantile(scratch, n, 0.5);
    stats.p90 = sm_quantile(scratch, n, 0.9);
    stats.coverage = share_covered(c, n);
    return stats;
}

static int order_of(double a, double b) { return (a > b) - (a < b); }

/* Kendall, Biometrika 33 (1945): (concordant - discordant) / sqrt((pairs - ties a)(pairs - ties
 * b)).
 */
double sm_kendall_tau(const double *a, const double *b, size_t n) {
    double score = 0.0, untied_a = 0.0, untied_b = 0.0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            int x = order_of(a[i], a[j]), y = order_of(b[i], b[j]);
            score += x * y;
            untied_a += x != 0;
            untied_b += y != 0;
        }
    }
    if (untied_a <= 0.0 || untied_b <= 0.0) return NAN;
    return score / sqrt(untied_a * untied_b);
}

double sm_time_lost(const double *expected, const double *measured, size_t n) {
    if (n == 0) return NAN;
    size_t chosen = 0, best = 0;
    for (size_t i = 1; i < n; i++) {
        if (expected[i] < expected[chosen]) chosen = i;
        if (measured[i] < measured[best]) best = i;
    }
    return measured[chosen] / measured[best] - 1.0;
}
