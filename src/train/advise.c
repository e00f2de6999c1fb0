/* The one change that would help most: every candidate is priced, none is guessed. */
#include <math.h>

#include "detail.h"

typedef struct change {
    char what[96];
    double time;
    bool failed; /* out of memory */
} change;

/* The price of the same plan under a changed job. The memo of curves belongs to one system, so it
 * is emptied before. What is not possible helps nobody; out of memory, nothing is known. */
static void consider(sm_train *t, const sm_plan *plan, const char *what, double per, change *best,
                     double now) {
    sm_price_of_plan price;
    sm_error err;
    sm_curve_memo_forget(&t->one->at.memo);
    sm_status s = sm_train_price(t, plan, &price, &err);
    best->failed |= s == SM_INTERNAL;
    if (s || !price.fits || price.expected_s / per >= fmin(best->time, now * 0.999)) return;
    best->time = price.expected_s / per;
    snprintf(best->what, sizeof best->what, "%s", what);
}

static void consider_chip(sm_train *t, const sm_plan *plan, change *best, double now) {
    sm_chip kept = t->system.chip;
    for (int d = 0; d < SM_DTYPE_COUNT; d++) t->system.chip.flops_per_s[d].value *= 2;
    consider(t, plan, "twice the matrix FLOP/s of a chip", 1, best, now);
    t->system.chip = kept;
    t->system.chip.memory_bytes_per_s.value *= 2;
    consider(t, plan, "twice the memory bandwidth of a chip", 1, best, now);
    t->system.chip = kept;
}

static void consider_batch(sm_train *t, const sm_plan *plan, change *best, double now) {
    double kept = t->sequences;
    t->sequences *= 2;
    consider(t, plan, "twice the batch (time per token)", 2, best, now);
    t->sequences = kept;
}

bool advise(sm_train *t, const sm_plan *plan, const sm_price_of_plan *price, char *out,
            size_t size) {
    double now = price->expected_s;
    change run = {.time = now}, chip = {.time = now};
    consider_batch(t, plan, &run, now);
    sm_system kept = t->system;
    for (int l = 0; l < kept.levels; l++) {
        char what[96];
        if (l > 0 && strcmp(kept.level[l].name, kept.level[l - 1].name) == 0) continue;
        for (int k = l; k < kept.levels; k++)
            if (strcmp(kept.level[k].name, kept.level[l].name) == 0)
                t->system.level[k].bytes_per_s_oneway *= 2;
        snprintf(what, sizeof what, "twice the bandwidth of %s", kept.level[l].name);
        consider(t, plan, what, 1, &chip, now);
        t->system = kept;
    }
    consider_chip(t, plan, &chip, now);
    sm_curve_memo_forget(&t->one->at.memo);
    if (run.what[0] && 1 - run.time / now > 0.02)
        snprintf(out, size, "%s would save %.1f %%; in hardware, %s: %.1f %%", run.what,
                 100 * (1 - run.time / now), chip.what[0] ? chip.what : "nothing",
                 100 * (1 - chip.time / now));
    else if (chip.what[0])
        snprintf(out, size, "%s would save %.1f %% of the step", chip.what,
                 100 * (1 - chip.time / now));
    return !run.failed && !chip.failed;
}
