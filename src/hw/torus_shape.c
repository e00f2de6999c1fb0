/* Slices of a torus. The rules of wraparound and the shapes come from Google Cloud's tables of
 * slice shapes (docs.cloud.google.com/tpu/docs/v4, v5e, v5p, v6e, tpu7x) and How To Scale Your
 * Model, part 2: v5e and v6e wrap an axis iff its length is 16; v4, v5p and v7 are built of 4x4x4
 * cubes joined by optical switches and wrap every axis iff all are multiples of 4. */
#include "torus_shape.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum { CUBE = 4 };

static void sorted(const int *from, int dims, int *to) {
    assert(dims <= 3);
    for (int i = 0; i < dims; i++) {
        int at = i;
        for (; at > 0 && to[at - 1] > from[i]; at--) to[at] = to[at - 1];
        to[at] = from[i];
    }
}

static bool all_multiples_of(const int *shape, int dims, int factor) {
    for (int i = 0; i < dims; i++)
        if (shape[i] % factor != 0) return false;
    return dims > 0;
}

static bool is_pod(const sm_chip *chip, const int *shape, int dims) {
    int a[3], b[3];
    if (dims != chip->torus_axes) return false;
    sorted(shape, dims, a);
    sorted(chip->pod_shape, dims, b);
    return memcmp(a, b, sizeof *a * (size_t)dims) == 0;
}

bool sm_wraps(const sm_chip *chip, const int *shape, int dims, int axis) {
    if (dims < 1 || dims > 3 || axis < 0 || axis >= dims || shape[axis] < 3) return false;
    switch (chip->wrap_rule) {
    case SM_WRAP_NEVER: return false;
    case SM_WRAP_AXIS_16: return shape[axis] == 16;
    case SM_WRAP_ALL_MULTIPLE_4:
        return dims == chip->torus_axes && all_multiples_of(shape, dims, CUBE);
    case SM_WRAP_FULL_POD: return is_pod(chip, shape, dims);
    case SM_WRAP_ALWAYS: return true;
    }
    return false;
}

static int64_t volume(const int *shape, int dims) {
    int64_t n = 1;
    for (int i = 0; i < dims; i++) n *= shape[i];
    return n;
}

int sm_torus_pod_chips(const sm_chip *chip) {
    return (int)volume(chip->pod_shape, chip->torus_axes);
}

bool sm_torus_fits(const sm_chip *chip, const int *shape) {
    int a[3] = {0}, b[3] = {0};
    int dims = chip->torus_axes;
    assert(dims == 2 || dims == 3);
    if (volume(shape, dims) > volume(chip->pod_shape, dims)) return false;
    if (chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4 && all_multiples_of(shape, dims, CUBE))
        return true;
    sorted(shape, dims, a);
    sorted(chip->pod_shape, dims, b);
    for (int i = 0; i < dims; i++)
        if (a[i] > b[i]) return false;
    return true;
}

static bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/* Whether slices of this shape are sold: whole cubes or a power-of-two part of one on chips with
 * optical switches; power-of-two axes on the others (or the pod itself). */
static bool is_slice(const sm_chip *chip, const int *shape) {
    int dims = chip->torus_axes;
    if (is_pod(chip, shape, dims)) return true;
    bool cubes = chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4;
    if (cubes && all_multiples_of(shape, dims, CUBE)) return sm_torus_fits(chip, shape);
    for (int i = 0; i < dims; i++)
        if (!is_power_of_two(shape[i]) || (cubes && shape[i] > CUBE)) return false;
    return sm_torus_fits(chip, shape);
}

/* A slice has a short diameter and a wide bisection when it is nearly a cube. Of all a <= b <= c
 * with a b c = chips that are slices, the one of least a + b + c. */
bool sm_torus_slice(const sm_chip *chip, int chips, int *shape) {
    int best_sum = INT_MAX;
    if (chip->torus_axes != 2 && chip->torus_axes != 3) return false;
    int pod = sm_torus_pod_chips(chip);
    if (chips < 1 || chips > pod) return false;
    bool cubes = chip->wrap_rule == SM_WRAP_ALL_MULTIPLE_4;
    if (!cubes && chips != pod && !is_power_of_two(chips)) return false;
    int a_most = chip->torus_axes == 3 ? chips : 1;
    for (int a = 1; a <= a_most && (int64_t)a * a * a <= chips; a++) {
        if (chips % a != 0) continue;
        for (int b = a, rest = chips / a; (int64_t)b * b <= rest; b++) {
            if (rest % b != 0) continue;
            int three[3] = {a, b, rest / b};
            const int *tried = three + (chip->torus_axes == 2);
            if (a + b + rest / b >= best_sum || !is_slice(chip, tried)) continue;
            best_sum = a + b + rest / b;
            memcpy(shape, tried, sizeof *shape * (size_t)chip->torus_axes);
        }
    }
    if (best_sum == INT_MAX) return false;
    /* Ascending as Google writes them, with the axes of length 1 last (2x2x1); a pod as its maker
     * does.
     */
    int dims = chip->torus_axes, up[3] = {0}, n = 0;
    sorted(shape, dims, up);
    for (int i = 0; i < dims; i++)
        if (up[i] > 1) shape[n++] = up[i];
    while (n < dims) shape[n++] = 1;
    if (is_pod(chip, shape, dims)) memcpy(shape, chip->pod_shape, sizeof *shape * (size_t)dims);
    return true;
}

bool sm_torus_natural(const sm_chip *chip, int chips, int *shape, int *slices) {
    int pod = sm_torus_pod_chips(chip);
    *slices = 1;
    if (chips <= pod) return sm_torus_slice(chip, chips, shape);
    for (int each = pod; each >= 1; each--) {
        if (chips % each != 0 || !sm_torus_slice(chip, each, shape)) continue;
        *slices = chips / each;
        return true;
    }
    return false;
}

void sm_torus_nearest_counts(const sm_chip *chip, int chips, int *below, int *above) {
    int shape[3], pod = sm_torus_pod_chips(chip);
    assert(chips >= 1);
    int low = chips - 1, high = chips + 1;
    while (low > 0 && !sm_torus_slice(chip, low, shape)) low--;
    while (high <= pod && !sm_torus_slice(chip, high, shape)) high++;
    *below = low > 0 ? low : 0;
    *above = high <= pod ? high : 0;
}
