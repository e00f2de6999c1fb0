/* The space of plans on so many chips: factorisations into degrees, the choices that matter for
 * each, and the ways to lay it out. A plan stands once: what changes nothing keeps its usual value.
 * `data` beyond one group only copies a replica (a fleet has those), so that it stays 1 unless it
 * is given. */
#include <string.h>

#include "serve_space.h"

typedef struct walk {
    const sm_serve *s;
    const sm_serve_plan *fixed;
    plan_visit visit;
    void *context;
} walk;

static bool given(const walk *w, int key) { return w->fixed->given >> key & 1; }

static bool chosen(const walk *w, sm_serve_plan *plan) {
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
static bool has_spare_chips(const sm_serve *s, const sm_serve_plan *plan) {
    degrees d;
    if (plan->fsdp > 1 && !plan->gathered) return true;
    if (is_latent(s)) return plan->tensor > 1;
    serve_degrees_set(&d, s, plan);
    return d.axis[SM_AXIS_TENSOR_Q] > 1;
}

static bool each_cache(const walk *w, sm_serve_plan *plan) {
    plan->cache_by = w->fixed->cache_by;
    if (given(w, SM_SERVE_CACHE_BY)) return chosen(w, plan);
    plan->cache_by = SM_CACHE_BATCH;
    if (!has_spare_chips(w->s, plan)) return chosen(w, plan);
    for (int by = SM_CACHE_COPIES; by <= SM_CACHE_SEQUENCE; by++) {
        plan->cache_by = (sm_cache_by)by;
        if (!chosen(w, plan)) return false;
    }
    return true;
}

static bool each_expert_split(const walk *w, sm_serve_plan *plan) {
    plan->expert_tensor = w->fixed->expert_tensor;
    if (given(w, SM_SERVE_EXPERT_TENSOR)) return each_cache(w, plan);
    plan->expert_tensor = false;
    if (!each_cache(w, plan)) return false;
    plan->expert_tensor = true;
    return !w->s->experts || plan->tensor == 1 || each_cache(w, plan);
}

static bool each_weights(const walk *w, sm_serve_plan *plan) {
    plan->gathered = w->fixed->gathered;
    if (given(w, SM_SERVE_WEIGHTS_BY)) return each_expert_split(w, plan);
    plan->gathered = false;
    if (!each_expert_split(w, plan)) return false;
    plan->gathered = true;
    return plan->fsdp == 1 || each_expert_split(w, plan);
}

/* ---- degrees ---- */

static int *degree_of(sm_serve_plan *plan, int key) {
    int *const degree[SM_SERVE_DEGREES] = {&plan->data,    &plan->fsdp,   &plan->tensor,
                                           &plan->context, &plan->expert, &plan->pipeline};
    return degree[key];
}

static int most_of(const walk *w, int key) {
    const sm_serve *s = w->s;
    switch (key) {
    case SM_SERVE_DATA: return 1;
    case SM_SERVE_EXPERT: return s->experts ? 1 << 20 : 1;
    case SM_SERVE_PIPELINE: return s->model.L;
    default: return 1 << 20;
    }
}

static bool each_degree(const walk *w, int key, int left, sm_serve_plan *plan) {
    if (key == SM_SERVE_DEGREES) return left != 1 || each_weights(w, plan);
    sm_serve_plan copy = *w->fixed;
    int *degree = degree_of(plan, key), fixed = *degree_of(&copy, key);
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

bool each_sharding(const sm_serve *s, const sm_serve_plan *fixed, int chips, plan_visit visit,
                   void *context) {
    walk w = {s, fixed, visit, context};
    sm_serve_plan plan = *fixed;
    return each_degree(&w, 0, chips, &plan);
}

/* ---- placements ---- */

/* Permutations in lexicographic order; false after the last. */
static bool next_permutation(uint8_t *p, int n) {
    int i = n - 2, k = n - 1;
    while (i >= 0 && p[i] >= p[i + 1]) i--;
    if (i < 0) return false;
    while (p[k] <= p[i]) k--;
    uint8_t swap = p[i];
    p[i] = p[k];
    p[k] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = p[a];
        p[a] = p[b];
        p[b] = swap;
    }
    return true;
}

static bool same_place(const sm_placement *a, const sm_placement *b) {
    for (int i = 0; i < a->axes; i++) {
        const sm_group *x = &a->axis[i], *y = &b->axis[i];
        if (x->size != y->size || x->parts != y->parts) return false;
        for (int k = 0; k < x->parts; k++)
            if (x->part[k].level != y->part[k].level || x->part[k].size != y->part[k].size ||
                x->part[k].stride != y->part[k].stride)
                return false;
    }
    return true;
}

static void add_placement(const sm_serve *s, const degrees *d, const sm_serve_plan *plan,
                          placements *out) {
    if (out->n == MAX_ORDERS) return;
    sm_placement *at = &out->at[out->n];
    if (!serve_place(s, plan, d, at)) return;
    for (int i = 0; i < out->n; i++)
        if (same_place(&out->at[i], at)) return;
    out->plan[out->n++] = *plan;
}

/* Every order of the dimensions of a torus. */
static void each_dims(const sm_serve *s, const degrees *d, sm_serve_plan *plan, placements *out) {
    int n = s->system.torus_dims < 3 ? s->system.torus_dims : 3;
    uint8_t dims[3] = {0, 1, 2};
    if (plan->given >> SM_SERVE_DIMS & 1 || n < 2) {
        add_placement(s, d, plan, out);
        return;
    }
    do {
        memcpy(plan->dims, dims, sizeof dims);
        add_placement(s, d, plan, out);
    } while (next_permutation(dims, n));
}

/* Axes of one member stay where they are; the others change places. */
void placements_of(const sm_serve *s, const sm_serve_plan *plan, placements *out) {
    degrees d;
    sm_serve_plan p = *plan;
    uint8_t place[SM_SERVE_DEGREES], axis[SM_SERVE_DEGREES], order[SM_SERVE_DEGREES];
    int n = 0;
    out->n = 0;
    serve_degrees_set(&d, s, plan);
    for (uint8_t i = 0; i < SM_SERVE_DEGREES; i++) {
        if (*degree_of(&p, plan->order[i]) == 1) continue;
        axis[n] = plan->order[i];
        order[n] = (uint8_t)n;
        place[n++] = i;
    }
    bool fixed = plan->given >> SM_SERVE_ORDER & 1;
    do {
        for (int i = 0; i < n; i++) p.order[place[i]] = axis[order[i]];
        each_dims(s, &d, &p, out);
    } while (!fixed && n > 1 && next_permutation(order, n));
}

/* ---- placements that cost the same ---- */

static bool same_group(const sm_group *x, const sm_group *y) {
    if (x->size != y->size || x->parts != y->parts) return false;
    for (int k = 0; k < x->parts; k++)
        if (x->part[k].level != y->part[k].level || x->part[k].size != y->part[k].size ||
            x->part[k].stride != y->part[k].stride)
            return false;
    return true;
}

static void add_mask(placements *p, sm_axes axes) {
    for (int i = 0; i < p->masks; i++)
        if (p->mask[i] == axes) return;
    if (p->masks < MAX_MASKS) p->mask[p->masks++] = axes;
}

static void compare_groups(placements *p, int m) {
    sm_group group[MAX_ORDERS];
    for (int i = 0; i < p->n; i++) {
        int k = 0;
        group[i] = sm_group_join(&p->at[i], p->mask[m]);
        while (k < i && !(p->first[m][k] == k && same_group(&group[k], &group[i]))) k++;
        p->first[m][i] = (uint8_t)k;
    }
}

static bool costs_as(const placements *p, int a, int b) {
    for (int m = 0; m < p->masks; m++)
        if (p->first[m][a] != p->first[m][b]) return false;
    return true;
}

static bool is_new(const placements *p, int i) {
    for (int k = 0; k < i; k++)
        if (costs_as(p, k, i)) return false;
    return true;
}

static void drop_equals(placements *p) {
    bool keep[MAX_ORDERS];
    int n = 0;
    for (int i = 0; i < p->n; i++) keep[i] = is_new(p, i);
    for (int i = 0; i < p->n; i++) {
        if (!keep[i]) continue;
        p->plan[n] = p->plan[i];
        p->at[n++] = p->at[i];
    }
    p->n = n;
}

void placements_compare(placements *p, const variant *const *variants, int n) {
    p->masks = 0;
    add_mask(p, SM_BIT(PIPE_AXIS));
    for (int v = 0; v < n; v++)
        for (int i = 0; i < variants[v]->pieces; i++)
            for (int c = 0; c < variants[v]->piece[i].part.comms; c++)
                add_mask(p, variants[v]->piece[i].part.comm[c].axes);
    if (p->masks == MAX_MASKS) return; /* more than any program has */
    for (int m = 0; m < p->masks; m++) compare_groups(p, m);
    int before = p->n;
    drop_equals(p);
    for (int m = 0; p->n < before && m < p->masks; m++) compare_groups(p, m);
}
