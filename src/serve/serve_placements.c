/* The ways to lay out a plan: orders of axes and dimensions that differ, and what a collective
 * costs at least on any of them. */

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

uint64_t placement_hash(const sm_placement *p) {
    uint64_t hash = SM_HASH_SEED;
    for (int i = 0; i < p->axes; i++)
        for (int k = 0; k < p->axis[i].parts; k++) {
            const sm_part *part = &p->axis[i].part[k];
            hash = sm_hash_mixed(hash, (uint64_t)i << 56 ^ (uint64_t)part->level << 48 ^
                                           (uint64_t)part->size << 24 ^ (uint64_t)part->stride);
        }
    return hash;
}

static void add_placement(const sm_plan *plan, placements *out) {
    sm_placement at;
    if (!sm_plan_place(plan, &out->d, &out->s->system, &at)) return;
    uint64_t hash = placement_hash(&at);
    for (int i = 0; i < out->n && i < MAX_ORDERS; i++)
        if (out->hash[i] == hash) return;
    if (out->n++ >= MAX_ORDERS) return; /* fill tells */
    out->hash[out->n - 1] = hash;
    out->at[out->n - 1] = at;
    out->plan[out->n - 1] = *plan;
}

/* Every order of the dimensions of a torus. */
static void each_dims(sm_plan *plan, placements *out) {
    int n = out->s->system.torus_dims < 3 ? out->s->system.torus_dims : 3;
    uint8_t dims[3] = {0, 1, 2};
    if (plan->given >> SM_PLAN_DIMS & 1 || n < 2) {
        add_placement(plan, out);
        return;
    }
    do {
        memcpy(plan->dims, dims, sizeof dims);
        add_placement(plan, out);
    } while (next_permutation(dims, n));
}

/* Axes of one member stay where they are; the others change places. */
static sm_status fill(placements *out, sm_error *err) {
    sm_plan p = out->of;
    uint8_t place[SM_PLAN_DEGREES], axis[SM_PLAN_DEGREES], order[SM_PLAN_DEGREES];
    int n = 0;
    out->n = 0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        if (sm_plan_degree_of(&p, p.order[i]) == 1) continue;
        axis[n] = p.order[i];
        order[n] = (uint8_t)n;
        place[n++] = (uint8_t)i;
    }
    bool fixed = p.given >> SM_PLAN_ORDER & 1;
    do {
        for (int i = 0; i < n; i++) p.order[place[i]] = axis[order[i]];
        each_dims(&p, out);
    } while (!fixed && n > 1 && next_permutation(order, n));
    if (out->n <= MAX_ORDERS) return SM_OK;
    int ways = out->n;
    out->n = 0;
    return sm_fail_limit(err, "ways in which a plan lies on the system (order= and dims= fix one)",
                         ways, MAX_ORDERS);
}

/* Choices come one after the other for the same degrees, which alone decide how a plan lies. */
sm_status placements_of(sm_serve *s, const sm_plan *plan, int slice, placements *p, sm_error *err) {
    bool same = p->n > 0 && p->slice == slice;
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        same = same && sm_plan_degree_of(plan, key) == sm_plan_degree_of(&p->of, key);
    if (same) return SM_OK;
    p->s = s;
    p->of = *plan;
    p->slice = slice;
    p->number++;
    p->floors = 0;
    sm_degrees_set(&p->d, plan, &s->model);
    return fill(p, err);
}

sm_plan placed_as(const placements *p, const sm_plan *plan, int way) {
    sm_plan placed = *plan;
    memcpy(placed.order, p->plan[way].order, sizeof placed.order);
    memcpy(placed.dims, p->plan[way].dims, sizeof placed.dims);
    return placed;
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

/* Of the distinct groups that any placement makes of these axes. */
static void fill_floor(placements *p, sm_axes axes, comm_floor *f) {
    sm_group seen[MAX_ORDERS];
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        int k = 0;
        seen[n] = sm_group_join(&p->at[i], axes);
        while (!same_group(&seen[k], &seen[n])) k++;
        if (k < n) continue;
        n++;
        if (seen[n - 1].size <= 1) continue;
        const sm_timed_curve *curve = curve_of(p->s, &p->at[i], p->hash[i], f->op, axes, f->ragged);
        for (int l = 0; l < curve->n; l++) add_line(f, curve->line[l].line);
        if (curve->n == 0) add_line(f, (sm_line){0, 0}); /* counts for nothing */
    }
}

const comm_floor *placements_floor(placements *p, sm_collective op, sm_axes axes, bool ragged) {
    static const comm_floor nothing = {.n = 0};
    for (int i = 0; i < p->floors; i++) {
        const comm_floor *f = &p->floor[i];
        if (f->op == op && f->axes == axes && f->ragged == ragged) return f;
    }
    if (p->floors == MAX_FLOORS) return &nothing;
    comm_floor *f = &p->floor[p->floors++];
    *f = (comm_floor){.op = op, .axes = axes, .ragged = ragged};
    fill_floor(p, axes, f);
    return f;
}
