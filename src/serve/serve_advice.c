/* The one change that helps most: each candidate is priced, none is asserted. None makes a token
 * slower or dearer. Of several the best is the one with the largest product of what it saves in
 * time per token and in cost (chips where no price is known). */

#include "serve_space.h"

typedef struct advice {
    const sm_serve *s;
    const sm_serve_point *now;
    double score;
    char text[256];
    sm_error
        err; /* SM_INTERNAL: an impossible change is left out, one that could not be priced not */
} advice;

static bool is_possible(advice *a, sm_status status, const sm_error *err) {
    if (status == SM_INTERNAL) a->err = *err;
    return status == SM_OK;
}

static double cost_gain(const sm_serve_point *from, const sm_serve_point *to) {
    if (from->usd_per_million_tokens > 0 && to->usd_per_million_tokens > 0)
        return from->usd_per_million_tokens / to->usd_per_million_tokens;
    return to->tokens_per_s_per_chip / from->tokens_per_s_per_chip;
}

static const double LEAST_PART = 0.999; /* of what there was: less is worse */

/* A change that does not fit helps nobody; one that makes it fit comes before all others. */
static double score_of(const sm_serve_point *from, const sm_serve_point *to) {
    if (!to->fits) return 0;
    double faster = from->tpot_s[1] / to->tpot_s[1], cheaper = cost_gain(from, to);
    if (!from->fits) return 1e6 * faster * cheaper;
    return faster < LEAST_PART || cheaper < LEAST_PART ? 0 : faster * cheaper;
}

static void consider(advice *a, const char *change, const sm_serve_point *to) {
    char before[32], after[32], rate[2][32], usd[64] = "";
    double score = score_of(a->now, to);
    if (!(score > a->score)) return;
    a->score = score;
    sm_format_seconds(before, sizeof before, a->now->tpot_s[1]);
    sm_format_seconds(after, sizeof after, to->tpot_s[1]);
    sm_format_count(rate[0], sizeof rate[0], a->now->tokens_per_s_per_chip);
    sm_format_count(rate[1], sizeof rate[1], to->tokens_per_s_per_chip);
    double quicker = to->tokens_per_s_per_chip / a->now->tokens_per_s_per_chip;
    if (quicker < LEAST_PART || cost_gain(a->now, to) > quicker / LEAST_PART) /* another price */
        snprintf(usd, sizeof usd, ", $%.3g to $%.3g per million tokens",
                 a->now->usd_per_million_tokens, to->usd_per_million_tokens);
    snprintf(a->text, sizeof a->text, "%s: %s to %s a token, %s to %s tokens/s/chip%s%s", change,
             before, after, rate[0], rate[1], usd, a->now->fits ? "" : ", and it fits");
}

static void try_point(advice *a, const char *change, sm_serve *s, const sm_plan *plan,
                      double batch) {
    sm_serve_point p;
    sm_error err = {.status = SM_OK};
    if (is_possible(a, point_of(s, plan, batch, 0, &p, &err), &err)) consider(a, change, &p);
}

/* Price a changed job; impossible ones are left out. */
static void try_job(advice *a, const char *change, const sm_serve_job *job,
                    const sm_calibration *calibration, const sm_plan *plan, double batch) {
    sm_serve *s = NULL;
    sm_error err = {.status = SM_OK};
    if (!is_possible(a, sm_serve_new(job, &s, &err), &err)) return;
    if (calibration) sm_serve_set_calibration(s, calibration);
    try_point(a, change, s, plan, batch);
    sm_serve_free(s);
}

static void try_dtype(advice *a, bool weights, sm_dtype dtype) {
    char change[64];
    sm_serve_job job = a->s->job;
    sm_dtype *which = weights ? &job.dtypes.weights : &job.dtypes.kv;
    if (sm_dtype_bytes(dtype) >= sm_dtype_bytes(*which)) return;
    *which = dtype;
    if (weights) job.as_stored = false;
    snprintf(change, sizeof change, "%s in %s", weights ? "weights" : "the KV cache",
             sm_dtype_name(dtype));
    try_job(a, change, &job, a->s->calibration, &a->now->plan, a->now->batch);
}

static void try_chips(advice *a) {
    sm_system twice;
    sm_serve_job job = a->s->job;
    sm_plan plan = a->now->plan;
    if (sm_system_resize(&a->s->system, a->s->system.chips * 2, &twice, NULL) != SM_OK) return;
    job.system = &twice;
    plan.tensor *= 2;
    try_job(a, "twice the chips (tensor)", &job, a->s->calibration, &plan, a->now->batch);
    plan.tensor /= 2;
    if (!a->s->experts) return;
    plan.expert *= 2;
    try_job(a, "twice the chips (expert)", &job, a->s->calibration, &plan, a->now->batch);
}

/* Under the same software, or both under what is usual: one whose constants are not known there
 * would be compared in that too. */
static void try_other_chip(advice *a, sm_serve *s, const sm_chip *chip) {
    char text[96], change[96];
    sm_system system;
    if (strcmp(chip->name, a->s->system.chip.name) == 0) return;
    int chips = sm_plan_chips(&a->now->plan);
    snprintf(text, sizeof text, "%s:%d", chip->name, chips);
    sm_source source = sm_source_of("advice", text);
    if (sm_system_parse(&source, NULL, 0, &system, NULL) != SM_OK) return;
    if (sm_chip_peak(chip, s->job.dtypes.compute, NULL) <= 0) return;
    const char *software = a->s->calibration->software;
    bool usual = strcmp(software, sm_serve_usual_calibration(&a->s->system.chip).software) == 0;
    const sm_calibration *same = usual ? NULL : sm_software_calibration(chip, software);
    if (!usual && !same) return;
    serve_set_system(s, &system);
    sm_serve_set_calibration(s, same);
    snprintf(change, sizeof change, "as many %s", chip->name);
    try_point(a, change, s, &a->now->plan, a->now->batch);
}

/* Where a price is given for this chip alone, others cannot be compared; of unknown price neither.
 */
static void try_other_chips(advice *a) {
    sm_serve *s = NULL;
    if (!(a->now->usd_per_million_tokens > 0)) return;
    sm_serve_job job = a->s->job;
    job.usd_per_chip_hour = -1; /* each chip at its own price */
    sm_error err = {.status = SM_OK};
    if (!is_possible(a, sm_serve_new(&job, &s, &err), &err)) return;
    for (size_t i = 0; i < sm_chip_count(); i++)
        if (sm_chip_usd_per_hour(sm_chip_at(i)) > 0) try_other_chip(a, s, sm_chip_at(i));
    sm_serve_free(s);
}

sm_dtype eight_bits_of(const sm_system *system) {
    bool fp8 = system->chip.flops_per_s[SM_FP8].value > 0 || system->torus_dims == 0;
    return fp8 ? SM_FP8 : SM_INT8;
}

sm_status advise_point(const sm_serve *s, const sm_serve_point *point, char *out, size_t size,
                       sm_error *err) {
    advice a = {.s = s, .now = point, .score = 1.02};
    const sm_dtype eight_bits = eight_bits_of(&s->system);
    bool wide = sm_dtype_bytes(s->job.dtypes.weights) > 1;
    try_dtype(&a, false, eight_bits);
    try_dtype(&a, true, wide ? eight_bits : SM_INT4);
    sm_serve_job more = s->job;
    more.in_flight *= 2;
    try_job(&a, "twice the batch", &more, s->calibration, &point->plan, point->batch * 2);
    try_chips(&a);
    try_other_chips(&a);
    snprintf(out, size, "%s", a.text);
    if (a.err.status && err) *err = a.err;
    return a.err.status;
}
