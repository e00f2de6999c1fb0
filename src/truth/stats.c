/* Statistics of predictions held against measurements. */
#include "scalemodel/truth.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

sm_error_stats sm_error_stats_of(const sm_comparison *c, size_t n, double *scratch) {
    sm_error_stats stats = {.n = n, .bias = signed_median(c, n, scratch)};
    for (size_t i = 0; i < n; i++) {
        scratch[i] = fabs(sm_comparison_error(&c[i]));
        stats.below_lower += sm_comparison_below(&c[i]);
    }
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += scratch[i];
    stats.mean = n ? sum / (double)n : NAN;
    stats.median = sm_quantile(scratch, n, 0.5);
    stats.p90 = sm_quantile(scratch, n, 0.9);
    size_t covered = 0, with_interval = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(c[i].low) || !isfinite(c[i].high)) continue;
        with_interval++;
        covered += c[i].measured >= c[i].low && c[i].measured <= c[i].high;
    }
    stats.coverage = with_interval ? (double)covered / (double)with_interval : NAN;
    return stats;
}

double sm_kendall_tau(const double *a, const double *b, size_t n) {
    double in_order = 0.0, untied_a = 0.0, untied_b = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            int by_a = (a[i] > a[k]) - (a[i] < a[k]), by_b = (b[i] > b[k]) - (b[i] < b[k]);
            in_order += by_a * by_b;
            untied_a += by_a != 0;
            untied_b += by_b != 0;
        }
    return untied_a > 0.0 && untied_b > 0.0 ? in_order / sqrt(untied_a * untied_b) : NAN;
}

double sm_kendall_tau_apart(const double *a, const double *b, size_t n, double apart) {
    double in_order = 0.0, pairs = 0.0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            if (!(b[i] > b[k] * apart)) continue;
            pairs += 1.0;
            in_order += a[i] > a[k] ? 1.0 : a[i] < a[k] ? -1.0 : 0.0;
        }
    return pairs > 0.0 ? in_order / pairs : NAN;
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
