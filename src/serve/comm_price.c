/* The collectives of a step, priced on the placement of the plan: bytes from the partition, seconds
 * from the curve of the collective over its axes ("How To Scale Your Model", chapter 3; Hockney's
 * latency + bytes / bandwidth, 1994, on each level of the network). */
#include "serve_space.h"

double bytes_sent(const step *x, int index, const sm_comm *c, double bytes) {
    return bytes * role_scale(x->s, index, c->role, false) *
           sm_comm_narrowing(c, x->s->job.dtypes.compute);
}

void curves_forget(sm_serve *s) {
    sm_curve_memo_forget(&s->curves);
    memset(s->found_curve, 0, FOUND_CURVES * sizeof *s->found_curve);
}

const sm_timed_curve *curve_of(sm_serve *s, const sm_placement *at, uint64_t hash, sm_collective op,
                               sm_axes axes, bool ragged) {
    const uint64_t key =
        sm_hash_mixed(hash, (uint64_t)op << 32 ^ (uint64_t)axes << 1 ^ (uint64_t)ragged) | 1;
    struct found_curve *found = &s->found_curve[(key >> 1) % FOUND_CURVES];
    if (found->key == key) return found->curve;
    sm_group g = sm_group_join(at, axes);
    double part = ragged ? sm_ragged_part(&s->system, s->largest_top_k, 0, &g) : 1;
    if (s->curves.used + 1 >= CURVES * 3 / 4) curves_forget(s);
    found->key = key;
    return found->curve = sm_curve_memo_get(&s->curves, op, &g, part);
}

uint64_t curve_hash(sm_serve *s, const sm_placement *at, uint64_t hash, const sm_comm *c) {
    const sm_timed_curve *curve = curve_of(s, at, hash, c->op, c->axes, c->ragged);
    uint64_t key = sm_hash_mixed(SM_HASH_SEED, (uint64_t)curve->n);
    for (int i = 0; i < curve->n; i++)
        key = sm_hash_mixed(key, sm_hash_bytes(&curve->line[i].line, sizeof(sm_line)));
    return key;
}

/* even: bytes when routed tokens spread evenly, as the bound has them. */
static void add_bytes(const step *x, sm_collective op, sm_axes axes, bool ragged, double bytes,
                      double even, comm_price *p) {
    const sm_timed_line *line;
    const sm_timed_curve *curve = curve_of(x->s, &x->at, x->at_hash, op, axes, ragged);
    if (curve->n == 0) return;
    p->bytes += bytes;
    double expected_s = sm_timed_curve_s(curve, bytes, &line);
    for (int l = 0; l < SM_MAX_LEVELS && !x->expected_alone; l++)
        p->ideal[l] += even * curve->ideal[l];
    if (!line) return;
    p->expected += expected_s;
    if (!x->expected_alone) p->upper += sm_timed_curve_upper_s(curve, bytes);
    p->level = line->level;
    p->algorithm = line->algorithm;
}

comm_price comm_price_of(const step *x, int index, const sm_comm *c) {
    comm_price p = {0};
    const sm_serve *s = x->s;
    const piece *of = &x->v->piece[index];
    bool encodes = of->begins[c - of->part.comm];
    if (encodes && !(x->begun.sequences > 0)) return p;
    if (!c->bytes.per_key || encodes) {
        const sm_program_extent *n = encodes                  ? &x->begun
                                     : !c->bytes.per_query    ? &x->sequences
                                     : index == head_piece(s) ? &x->sampled
                                                              : &x->tokens;
        double even = bytes_sent(x, index, c, sm_size_at(&c->bytes, &x->d, n));
        double bytes = c->ragged ? even * s->job.imbalance : even;
        add_bytes(x, c->op, c->axes, c->ragged, bytes, even, &p);
        return p;
    }
    for (int g = 0; g < x->groups; g++) {
        sm_program_extent n =
            group_counts(x, index < s->kinds ? &s->model.kind[index] : NULL, &x->group[g]);
        double bytes = bytes_sent(x, index, c, sm_size_at(&c->bytes, &x->d, &n));
        add_bytes(x, c->op, c->axes, c->ragged, bytes, bytes, &p);
    }
    return p;
}

comm_price send_price(const step *x) {
    comm_price p = {0};
    const variant *v = x->v;
    double bytes = sm_size_at(&v->piece[0].part.boundary, &x->d, &x->tokens);
    for (int i = 0; v->widest && i < v->loans; i++) { /* what a stack ended in travels once */
        const sm_program_extent *n = v->loan[i].there < 0 ? &x->begun : &x->tokens;
        if (n->sequences > 0 && sm_loan_crosses(&x->s->model, &v->loan[i], v->widest))
            bytes += sm_size_at(&v->piece[v->loan[i].list].part.lent, &x->d, n);
    }
    add_bytes(x, SM_PERMUTE, SM_BIT(SM_PLACED_PIPELINE), false, bytes, bytes, &p);
    return p;
}
