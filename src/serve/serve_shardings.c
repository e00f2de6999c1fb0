/* The space of plans on so many chips: factorisations into degrees and the choices that matter for
 * each. A plan stands once: what changes nothing keeps its usual value. */
#include "serve_space.h"

typedef struct walk {
    const sm_serve *s;
    const sm_plan *fixed;
    plan_visit visit;
    void *context;
} walk;

static bool given(const walk *w, int key) { return w->fixed->given >> key & 1; }

static bool chosen(void *context, sm_plan *plan) {
    const walk *w = context;
    char why[8];
    if (serve_refuse(w->s, plan, why, sizeof why)) return true;
    return w->visit(w->context, plan);
}

static int most_of(const walk *w, int key) {
    const sm_serve *s = w->s;
    switch (key) {
    case SM_PLAN_EXPERT: return s->experts ? 1 << 20 : 1;
    case SM_PLAN_PIPELINE: return s->model.L;
    default: return 1 << 20;
    }
}

static bool each_degree(walk *w, int key, int left, sm_plan *plan) {
    if (key == SM_PLAN_DEGREES)
        return left != 1 || sm_plan_each_choice(plan, w->fixed, &w->s->model, chosen, w);
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
