/* Statistics of predictions held against measurements. */
#include "scalemodel/truth.h"
#include <math.h>
#include <stdlib.h>

/* A measurement at the bound differs from it by the rounding of its printed digits alone. */
static const double rounding = 1e-9;

double sm_comparison_error(const sm_comparison *c) { return c->expected / c->measured - 1.0; }

bool sm_comparison_below(const sm_comparison *c) {
    return c->measured < c->lower * (1.0 - rounding);
}

sm_error_stats sm_error_stats_of(const sm_comparison *c, size_t n, double *scratch) {
    for (size_t i = 0; i < n; i++) scratch[i] = sm_comparison_error(&c[i]);
    sm_error_stats stats = {.n = n, .bias = sm_quantile(scratch, n, 0.5)};
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

typedef struct pair {
    double a, b;
} pair;

SM_ORDER(by_both, pair, SM_ASCENDING(a) SM_ASCENDING(b))

/* How many of sorted[0..n) are below x, or not above it. */
static size_t rank_of(const double *sorted, size_t n, double x, bool with_equal) {
    size_t low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < x || (with_equal && sorted[middle] == x)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Of the pairs whose b are far enough apart (*pairs) those in the order of a, less those that are
 * not: in the order of b a Fenwick tree over ranks of a has those whose b are below. Leaves a
 * sorted in room + 2n. */
static double count_in_order(const double *a, const double *b, size_t n, double apart, double *room,
                             double *pairs) {
    pair *p = (pair *)(void *)room;
    double *sorted = room + 2 * n, *tree = room + 3 * n, in_order = 0.0;
    for (size_t i = 0; i < n; i++) {
        p[i] = (pair){b[i], a[i]};
        sorted[i] = a[i];
        tree[i] = 0.0;
    }
    qsort(p, n, sizeof *p, by_both);
    sm_sort_numbers(sorted, n);
    *pairs = 0.0;
    for (size_t i = 0, below = 0; i < n; i++) {
        for (; p[i].a > p[below].a * apart; below++)
            for (size_t k = rank_of(sorted, n, p[below].b, false); k < n; k |= k + 1) tree[k] += 1;
        *pairs += (double)below;
        in_order -= (double)below;
        for (int equal = 0; equal < 2; equal++)
            for (size_t k = rank_of(sorted, n, p[i].b, equal); k > 0; k &= k - 1)
                in_order += tree[k - 1];
    }
    return in_order;
}

/* Kendall, Biometrika 33 (1945): (concordant - discordant) / sqrt((pairs - ties a)(pairs - ties
 * b)). */
double sm_kendall_tau(const double *a, const double *b, size_t n, double *room) {
    double untied_b, in_order = count_in_order(a, b, n, 1.0, room, &untied_b), untied_a = 0.0;
    for (size_t i = 0; i < n; i++)
        untied_a += (double)rank_of(room + 2 * n, n, room[2 * n + i], false);
    return untied_a > 0.0 && untied_b > 0.0 ? in_order / sqrt(untied_a * untied_b) : NAN;
}

double sm_kendall_tau_apart(const double *a, const double *b, size_t n, double apart,
                            double *room) {
    double pairs, in_order = count_in_order(a, b, n, apart, room, &pairs);
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
