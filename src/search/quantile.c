/* Quantiles between order statistics: type 7 of Hyndman and Fan, The American Statistician 50
 * (1996) 361. */
#include "scalemodel/search.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sm_quantile(double *values, size_t n, double q) {
    assert(q >= 0.0 && q <= 1.0);
    if (n == 0) return NAN;
    qsort(values, n, sizeof *values, by_value);
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n) return values[n - 1];
    return values[below] + (at - (double)below) * (values[below + 1] - values[below]);
}
