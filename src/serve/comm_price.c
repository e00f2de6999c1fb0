/* The collectives of a step, priced on the placement of the plan: bytes from the partition, seconds
 * from the curve of the collective over its axes ("How To Scale Your Model", chapter 3; Hockney's
 * latency + bytes / bandwidth, 1994, on each level of the network). */
#include "serve_space.h"

/* Under 8-bit matmuls what feeds matmuls alone travels in their dtype. */
static double narrowed(const step *x, const sm_comm *c) {
    double element = sm_dtype_bytes(x->s->job.dtypes.compute);
    return c->narrow && element < 2 ? element / 2 : 1;
}

static double bytes_of(const step *x, int index, const sm_comm *c, const counts *n) {
    double most = c->ragged ? x->s->job.imbalance : 1;
    return size_at(&c->bytes, &x->d, n) * role_scale(x->s, index, c->role, false) * narrowed(x, c) *
           most;
}

/* The curve of a collective over these axes. */
const sm_timed_curve *curve_of(sm_serve *s, const sm_placement *at, sm_collective op, sm_axes axes,
                               bool ragged) {
    sm_group g = sm_group_join(at, axes);
    double part = ragged ? sm_ragged_part(&s->system, s->largest_top_k, &g) : 1;
    sm_curve_memo_reserve(&s->curves, 1);
    return sm_curve_memo_get(&s->curves, op, &g, part);
}

/* even: bytes when routed tokens spread evenly, as the bound has them. */
static void add_group(const sm_timed_curve *curve, double bytes, double even, comm_price *p) {
    const sm_timed_line *line;
    double expected_s = sm_timed_curve_s(curve, bytes, &line);
    p->bytes += bytes;
    for (int l = 0; l < SM_MAX_LEVELS; l++) p->ideal[l] += even * curve->ideal[l];
    if (!line) return;
    p->expected += expected_s;
    p->upper += sm_timed_curve_upper_s(curve, bytes);
    p->level = line->level;
    p->algorithm = line->algorithm;
}

static comm_price placed_price(const step *x, int index, const sm_comm *c, const sm_placement *at) {
    comm_price p = {0};
    const sm_serve *s = x->s;
    const sm_timed_curve *curve = curve_of(x->s, at, c->op, c->axes, c->ragged);
    if (curve->n == 0) return p;
    if (!c->bytes.per_key) {
        const counts *n = index == head_piece(s) ? &x->sampled : &x->tokens;
        double even = bytes_of(x, index, c, n);
        add_group(curve, c->ragged ? even * s->job.imbalance : even, even, &p);
        return p;
    }
    for (int g = 0; g < x->groups; g++) {
        counts n = group_counts(x, index < s->kinds ? &s->model.kind[index] : NULL, &x->group[g]);
        double bytes = bytes_of(x, index, c, &n);
        add_group(curve, bytes, bytes, &p);
    }
    return p;
}

static comm_price placed_send(const step *x, const sm_placement *at) {
    comm_price p = {0};
    const sm_size *boundary = &x->v->piece[0].part.boundary;
    const sm_timed_curve *curve = curve_of(x->s, at, SM_PERMUTE, SM_BIT(SM_PLACED_PIPELINE), false);
    double bytes = size_at(boundary, &x->d, &x->tokens);
    if (curve->n > 0) add_group(curve, bytes, bytes, &p);
    return p;
}

/* ---- wherever it costs least ---- */

/* Of expected alone: which level is busy depends on the placement, so that `ideal` is left out. */
static void add_least(const step *x, const sm_comm *c, double bytes, comm_price *p) {
    p->bytes += bytes;
    p->expected += placements_least_s(x->s, x->any, c->op, c->axes, c->ragged, bytes);
}

static comm_price least_price(const step *x, int index, const sm_comm *c) {
    comm_price p = {0};
    const sm_serve *s = x->s;
    if (!c->bytes.per_key) {
        const counts *n = index == head_piece(s) ? &x->sampled : &x->tokens;
        add_least(x, c, bytes_of(x, index, c, n) * (c->ragged ? s->job.imbalance : 1), &p);
        return p;
    }
    for (int g = 0; g < x->groups; g++) {
        counts n = group_counts(x, index < s->kinds ? &s->model.kind[index] : NULL, &x->group[g]);
        add_least(x, c, bytes_of(x, index, c, &n), &p);
    }
    return p;
}

comm_price comm_price_of(const step *x, int index, const sm_comm *c) {
    return x->any ? least_price(x, index, c) : placed_price(x, index, c, &x->at);
}

static comm_price least_send(const step *x) {
    comm_price p = {0};
    p.bytes = size_at(&x->v->piece[0].part.boundary, &x->d, &x->tokens);
    p.expected =
        placements_least_s(x->s, x->any, SM_PERMUTE, SM_BIT(SM_PLACED_PIPELINE), false, p.bytes);
    return p;
}

comm_price send_price(const step *x) { return x->any ? least_send(x) : placed_send(x, &x->at); }
