/* The ways to lay out a plan: orders of axes and dimensions that differ, those of them that cost
 * the same, and what a collective costs at least on any of them. */
#include <string.h>

#include "serve_space.h"

/* ---- that lie differently ---- */

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

static bool same_group(const sm_group *x, const sm_group *y) {
    if (x->size != y->size || x->parts != y->parts) return false;
    for (int k = 0; k < x->parts; k++)
        if (x->part[k].level != y->part[k].level || x->part[k].size != y->part[k].size ||
            x->part[k].stride != y->part[k].stride)
            return false;
    return true;
}

static bool same_place(const sm_placement *a, const sm_placement *b) {
    for (int i = 0; i < a->axes; i++)
        if (!same_group(&a->axis[i], &b->axis[i])) return false;
    return true;
}

static void add_placement(const sm_serve *s, const sm_degrees *d, const sm_plan *plan,
                          placements *out) {
    sm_placement at;
    if (!sm_plan_place(plan, d, &s->system, &at)) return;
    for (int i = 0; i < out->n && i < MAX_ORDERS; i++)
        if (same_place(&out->at[i], &at)) return;
    if (out->n++ >= MAX_ORDERS) return; /* placements_of tells */
    out->at[out->n - 1] = at;
    out->plan[out->n - 1] = *plan;
}

/* Every order of the dimensions of a torus. */
static void each_dims(const sm_serve *s, const sm_degrees *d, sm_plan *plan, placements *out) {
    int n = s->system.torus_dims < 3 ? s->system.torus_dims : 3;
    uint8_t dims[3] = {0, 1, 2};
    if (plan->given >> SM_PLAN_DIMS & 1 || n < 2) {
        add_placement(s, d, plan, out);
        return;
    }
    do {
        memcpy(plan->dims, dims, sizeof dims);
        add_placement(s, d, plan, out);
    } while (next_permutation(dims, n));
}

/* Axes of one member stay where they are; the others change places. */
sm_status placements_of(const sm_serve *s, const sm_plan *plan, placements *out, sm_error *err) {
    sm_degrees d;
    sm_plan p = *plan;
    uint8_t place[SM_PLAN_DEGREES], axis[SM_PLAN_DEGREES], order[SM_PLAN_DEGREES];
    int n = 0;
    out->n = out->floors = 0;
    sm_degrees_set(&d, plan, &s->model);
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        if (sm_plan_degree_of(plan, plan->order[i]) == 1) continue;
        axis[n] = plan->order[i];
        order[n] = (uint8_t)n;
        place[n++] = (uint8_t)i;
    }
    bool fixed = plan->given >> SM_PLAN_ORDER & 1;
    do {
        for (int i = 0; i < n; i++) p.order[place[i]] = axis[order[i]];
        each_dims(s, &d, &p, out);
    } while (!fixed && n > 1 && next_permutation(order, n));
    if (out->n <= MAX_ORDERS) return SM_OK;
    int ways = out->n;
    out->n = 0;
    return sm_fail_limit(err, "ways in which a plan lies on the system (order= and dims= fix one)",
                         ways, MAX_ORDERS);
}

/* ---- that cost the same ---- */

/* The axes over which collectives run. */
typedef struct masks {
    int n;
    sm_axes axes[MAX_MASKS];
} masks;

static void add_mask(masks *m, sm_axes axes) {
    for (int i = 0; i < m->n; i++)
        if (m->axes[i] == axes) return;
    if (m->n < MAX_MASKS) m->axes[m->n++] = axes;
}

static masks masks_of(const variant *const *variants, int n) {
    masks m = {1, {SM_BIT(SM_PLACED_PIPELINE)}};
    for (int v = 0; v < n; v++)
        for (int i = 0; i < variants[v]->pieces; i++)
            for (int c = 0; c < variants[v]->piece[i].part.comms; c++)
                add_mask(&m, variants[v]->piece[i].part.comm[c].axes);
    return m;
}

static bool costs_as(const placements *p, const masks *m, int a, int b) {
    for (int i = 0; i < m->n; i++) {
        sm_group x = sm_group_join(&p->at[a], m->axes[i]), y = sm_group_join(&p->at[b], m->axes[i]);
        if (!same_group(&x, &y)) return false;
    }
    return true;
}

void placements_differ(const placements *p, const variant *const *variants, int n, bool *keep) {
    masks m = masks_of(variants, n);
    for (int i = 0; i < p->n; i++) {
        keep[i] = true;
        if (m.n == MAX_MASKS) continue; /* more than any program has */
        for (int k = 0; keep[i] && k < i; k++) keep[i] = !keep[k] || !costs_as(p, &m, k, i);
    }
}

/* ---- what a collective takes at least ---- */

/* Lines are kept by rising latency; one that starts later must be less steep. Too many become one
 * that is below them all. */
static void add_line(comm_floor *f, sm_line line) {
    int at = 0, kept;
    if (f->n == MAX_FLOOR_LINES) {
        f->line[0].s_per_byte = f->line[f->n - 1].s_per_byte;
        f->n = 1;
    }
    while (at < f->n && f->line[at].latency_s <= line.latency_s) at++;
    if (at > 0 && f->line[at - 1].s_per_byte <= line.s_per_byte) return;
    for (kept = at; kept < f->n && f->line[kept].s_per_byte >= line.s_per_byte;) kept++;
    memmove(&f->line[at + 1], &f->line[kept], (size_t)(f->n - kept) * sizeof *f->line);
    f->line[at] = line;
    f->n += at + 1 - kept;
}

static const comm_floor *floor_of(sm_serve *s, placements *p, sm_collective op, sm_axes axes,
                                  bool ragged) {
    for (int i = 0; i < p->floors; i++) {
        const comm_floor *f = &p->floor[i];
        if (f->op == op && f->axes == axes && f->ragged == ragged) return f;
    }
    if (p->floors == MAX_FLOORS) p->floors = 0;
    comm_floor *f = &p->floor[p->floors++];
    *f = (comm_floor){.op = op, .axes = axes, .ragged = ragged};
    sm_group seen[MAX_ORDERS];
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        int k = 0;
        seen[n] = sm_group_join(&p->at[i], f->axes);
        while (!same_group(&seen[k], &seen[n])) k++;
        if (k < n) continue;
        n++;
        if (seen[n - 1].size <= 1) continue;
        const sm_timed_curve *curve = curve_of(s, &p->at[i], f->op, f->axes, f->ragged);
        for (int l = 0; l < curve->n; l++) add_line(f, curve->line[l].line);
        if (curve->n == 0) add_line(f, (sm_line){0, 0}); /* counts for nothing */
    }
    return f;
}

double placements_least_s(sm_serve *s, placements *p, sm_collective op, sm_axes axes, bool ragged,
                          double bytes) {
    const comm_floor *f = floor_of(s, p, op, axes, ragged);
    double least = 0;
    for (int i = 0; i < f->n; i++) {
        double seconds = sm_line_at(f->line[i], bytes);
        if (i == 0 || seconds < least) least = seconds;
    }
    return least;
}
