/* Quantiles between order statistics: type 7 of Hyndman and Fan, The American Statistician 50
 * (1996) 361. */
#include "scalemodel/search.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

SM_ORDER_OF_NUMBERS(by_value, double)

void sm_sort_numbers(double *values, size_t n) { qsort(values, n, sizeof *values, by_value); }

/* Hoare, "Find", Communications of the ACM 4 (1961) 321. */
double sm_select_number(double *values, size_t n, size_t which) {
    for (size_t low = 0, high = n - 1; low < high;) {
        double middle = values[low + (high - low) / 2];
        size_t i = low, k = high;
        for (;; i++, k--) {
            while (values[i] < middle) i++;
            while (values[k] > middle) k--;
            if (i >= k) break;
            double swap = values[i];
            values[i] = values[k];
            values[k] = swap;
        }
        if (which <= k) high = k;
        else low = k + 1;
    }
    return values[which];
}

double sm_quantile(double *values, size_t n, double q) {
    assert(q >= 0.0 && q <= 1.0);
    if (n == 0) return NAN;
    sm_sort_numbers(values, n);
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return values[n - 1];
    return values[below] + (at - (double)below) * (values[below + 1] - values[below]);
}

SM_ORDER(by_counted, sm_counted, SM_ASCENDING(value))

/* The value at a place, from 0. */
static double value_at(const sm_counted *list, size_t n, double place) {
    size_t i = 0;
    for (double before = list[0].count; i + 1 < n && before <= place;) before += list[++i].count;
    return list[i].value;
}

double sm_quantile_counted(sm_counted *list, size_t n, double q) {
    double rows = 0.0;
    assert(q >= 0.0 && q <= 1.0);
    if (n == 0) return NAN;
    qsort(list, n, sizeof *list, by_counted);
    for (size_t i = 0; i < n; i++) rows += list[i].count;
    double at = q * (rows - 1.0), below = floor(at), low = value_at(list, n, below);
    if (below + 1.0 >= rows) return list[n - 1].value;
    return low + (at - below) * (value_at(list, n, below + 1.0) - low);
}
