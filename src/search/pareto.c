/* Pareto sets of points in the plane: sorted by x, a point is kept when its y is below all before
 * it (Kung, Luccio, Preparata, "On finding the maxima of a set of vectors", 1975). */
#include <assert.h>
#include <math.h>

#include "scalemodel/search.h"

static bool before(const double *x, const double *y, size_t a, size_t b) {
    if (x[a] != x[b]) return x[a] < x[b];
    if (y[a] != y[b]) return y[a] < y[b];
    return a < b;
}

static void sift(size_t n, const double *x, const double *y, size_t *order, size_t at) {
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(x, y, order[child], order[child + 1])) child++;
        if (!before(x, y, order[at], order[child])) return;
        size_t swap = order[at];
        order[at] = order[child];
        order[child] = swap;
    }
}

void sm_pareto(size_t n, const double *x, const double *y, size_t *order, bool *keep) {
    double best = HUGE_VAL;
    for (size_t i = 0; i < n; i++) order[i] = i;
    /* Heap sort: no allocation, and qsort has no place for x and y. */
    for (size_t i = n / 2; i-- > 0;) sift(n, x, y, order, i);
    for (size_t end = n; end-- > 1;) {
        size_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        sift(end, x, y, order, 0);
    }
    assert(n < 2 || !before(x, y, order[n - 1], order[0]));
    for (size_t i = 0; i < n; i++) {
        keep[order[i]] = y[order[i]] < best;
        if (keep[order[i]]) best = y[order[i]];
    }
}
