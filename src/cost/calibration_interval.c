/* The 80 % interval around an expected value.
 *
 * Learned bounds are quantiles of measured / expected on held-out rows. A few rows say little about
 * quantiles, so n rows count beside PRIOR_ROWS that say the usual interval of the regime:
 *     log bound = (n x log learned + PRIOR_ROWS x log usual) / (n + PRIOR_ROWS).
 * Constants of another chip are wrong by a factor of their own, independent of the spread that the
 * interval holds, so the two add as variances:
 *     log bound = sqrt(log bound^2 + log BORROWED^2).
 * Peak memory takes no constants, and is not widened. */
#include "scalemodel/cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRIOR_ROWS 5.0
#define BORROWED 1.2

typedef struct bounds {
    double lowest, highest;
} bounds;

/* Of measured / expected where nothing was learned. Honest sources of one kernel on one chip differ
 * by 10 to 20 %, collectives by more; a step averages over many operations. */
static const bounds usual[SM_REGIME_COUNT] = {
    [SM_REGIME_matmul] = {0.80, 1.35}, [SM_REGIME_attention] = {0.75, 1.45},
    [SM_REGIME_memory] = {0.75, 1.40}, [SM_REGIME_collective] = {0.65, 1.60},
    [SM_REGIME_step] = {0.80, 1.30},   [SM_REGIME_experts] = {0.75, 1.40},
    [SM_REGIME_peak] = {0.90, 1.10},   [SM_REGIME_prefill] = {0.70, 1.50},
    [SM_REGIME_decode] = {0.65, 1.60}, [SM_REGIME_throughput] = {0.65, 1.60},
};

static double blend(double learned, int n, double before) {
    return n ? (n * log(learned) + PRIOR_ROWS * log(before)) / (n + PRIOR_ROWS) : log(before);
}

/* Wider by an independent factor; a bound on the far side of 1 comes to lie at 1 first. */
static double widen(double log_bound, double side) {
    double from = log_bound * side > 0.0 ? log_bound : 0.0;
    double factor = log(BORROWED);
    return side * sqrt(from * from + factor * factor);
}

void sm_calibration_interval(const sm_calibration *c, const sm_chip *chip, sm_regime regime,
                             double expected, double *low, double *high) {
    int n = c->interval[regime].n;
    double lowest = blend(c->interval[regime].lowest, n, usual[regime].lowest);
    double highest = blend(c->interval[regime].highest, n, usual[regime].highest);
    if (regime != SM_REGIME_peak && !sm_calibration_is_own(c, chip)) {
        lowest = widen(lowest, -1.0);
        highest = widen(highest, 1.0);
    }
    *low = expected * exp(lowest);
    *high = expected * exp(highest);
}

/* A part of "chips 8 to 256; sequence 4096; experts" by its name; NULL: there is none. */
static const char *part_of_range(const char *range, const char *name) {
    size_t length = strlen(name);
    for (const char *part = range; part; part = strchr(part, ';')) {
        part += strspn(part, "; ");
        if (strncmp(part, "steps on ", 9) == 0) part += 9;
        if (strncmp(part, name, length) == 0) return part + length;
    }
    return NULL;
}

/* A range that does not tell of a size says nothing about it. */
static bool is_beyond(const char *range, const char *name, double value) {
    const char *part = part_of_range(range, name);
    char *end;
    if (!part) return false;
    double low = (double)strtoll(part, &end, 10), high = low;
    if (strncmp(end, " to ", 4) == 0) high = (double)strtoll(end + 4, NULL, 10);
    return low > 0.0 && (value < low || value > high);
}

void sm_range_outside(const char *range, const sm_asked_size *size, int n, char *out, size_t room) {
    size_t used = 0;
    if (room > 0) out[0] = 0;
    for (int i = 0; i < n; i++) {
        bool is_kind = size[i].value == 0.0; /* the range has it or has it not */
        bool beyond = is_kind ? !part_of_range(range, size[i].name)
                              : is_beyond(range, size[i].name, size[i].value);
        if (!beyond || used >= room) continue;
        used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "", size[i].name);
    }
}

void sm_calibration_outside(const sm_calibration *c, const sm_step_sizes *step, char *out,
                            size_t size) {
    const sm_asked_size sizes[] = {
#define X(id, name) {name, step->id},
        SM_STEP_SIZES(X)
#undef X
            {"experts", 0.0}};
    const char *range = c->range ? c->range : "";
    bool told = part_of_range(range, sizes[0].name) != NULL;
    int n = sizeof sizes / sizeof *sizes;
    sm_range_outside(range, sizes, told && step->experts ? n : n - 1, out, size);
}

void sm_interval_widen(double expected, double times, double *low, double *high) {
    *low = expected * pow(*low / expected, times);
    *high = expected * pow(*high / expected, times);
}

sm_regime sm_calibration_step_regime(const sm_calibration *c, bool experts) {
    return experts && c->interval[SM_REGIME_experts].n > 0 ? SM_REGIME_experts : SM_REGIME_step;
}
