/* The space of plans on so many chips: factorisations into degrees and the choices that matter for
 * each. A plan stands once: what changes nothing keeps its usual value.
 * `data` copies a replica, as a fleet of smaller slices does, so that it stays 1 unless it is
 * given. */
#include "serve_space.h"

typedef struct walk {
    const sm_serve *s;
    const sm_plan *fixed;
    plan_visit visit;
    void *context;
} walk;

static bool given(const walk *w, int key) { return w->fixed->given >> key & 1; }

static bool chosen(const walk *w, sm_plan *plan) {
    char why[8];
    if (serve_refuse(w->s, plan, why, sizeof why)) return true;
    return w->visit(w->context, plan);
}

/* ---- choices ---- */

static bool is_latent(const sm_serve *s) {
    for (int k = 0; k < s->kinds; k++)
        if (s->model.kind[k].attention == SM_ATTENTION_MLA) return true;
    return false;
}

/* Chips that hold no KV heads of their own. */
static bool has_spare_chips(const sm_serve *s, const sm_plan *plan) {
    sm_degrees d;
    if (plan->fsdp > 1 && !plan->gathered) return true;
    if (is_latent(s)) return plan->tensor > 1;
    sm_degrees_set(&d, plan, &s->model);
    return d.axis[SM_AXIS_TENSOR_Q] > 1;
}

static bool each_cache(const walk *w, sm_plan *plan) {
    plan->cache_by = w->fixed->cache_by;
    if (given(w, SM_PLAN_CACHE_BY)) return chosen(w, plan);
    plan->cache_by = SM_CACHE_BATCH;
    if (!has_spare_chips(w->s, plan)) return chosen(w, plan);
    for (int by = SM_CACHE_COPIES; by <= SM_CACHE_SEQUENCE; by++) {
        plan->cache_by = (sm_cache_by)by;
        if (!chosen(w, plan)) return false;
    }
    return true;
}

static bool each_expert_split(const walk *w, sm_plan *plan) {
    plan->expert_tensor = w->fixed->expert_tensor;
    if (given(w, SM_PLAN_EXPERT_TENSOR)) return each_cache(w, plan);
    plan->expert_tensor = false;
    if (!each_cache(w, plan)) return false;
    plan->expert_tensor = true;
    return !w->s->experts || plan->tensor == 1 || each_cache(w, plan);
}

static bool each_weights(const walk *w, sm_plan *plan) {
    plan->gathered = w->fixed->gathered;
    if (given(w, SM_PLAN_WEIGHTS_BY)) return each_expert_split(w, plan);
    plan->gathered = false;
    if (!each_expert_split(w, plan)) return false;
    plan->gathered = true;
    return plan->fsdp == 1 || each_expert_split(w, plan);
}

/* ---- degrees ---- */

static int most_of(const walk *w, int key) {
    const sm_serve *s = w->s;
    switch (key) {
    case SM_PLAN_DATA: return 1;
    case SM_PLAN_EXPERT: return s->experts ? 1 << 20 : 1;
    case SM_PLAN_PIPELINE: return s->model.L;
    default: return 1 << 20;
    }
}

static bool each_degree(const walk *w, int key, int left, sm_plan *plan) {
    if (key == SM_PLAN_DEGREES) return left != 1 || each_weights(w, plan);
    int *degree = sm_plan_degree(plan, key), fixed = sm_plan_degree_of(w->fixed, key);
    if (given(w, key)) {
        *degree = fixed;
        return fixed < 1 || left % fixed != 0 || each_degree(w, key + 1, left / fixed, plan);
    }
    for (int d = 1; d <= left && d <= most_of(w, key); d++) {
        *degree = d;
        if (left % d == 0 && !each_degree(w, key + 1, left / d, plan)) return false;
    }
    return true;
}

bool each_sharding(const sm_serve *s, const sm_plan *fixed, int chips, plan_visit visit,
                   void *context) {
    walk w = {s, fixed, visit, context};
    sm_plan plan = *fixed;
    return each_degree(&w, 0, chips, &plan);
}
