/* One product of a chain: every mesh axis on every index of it or on none. Operands come from every
 * sharding that they can be made in, the result goes to every one that is open to it; each array
 * moves by itself, so the least of each is taken by itself. One collective may run inside the
 * product. */
#include "chain_parts.h"

enum { MOST_ASSIGNMENTS = 1024 };

typedef struct join {
    chain_search *s;
    chain_line *l;
    unsigned set, left;
    int parts;
    unsigned part[SM_MAX_OPERANDS];
    const sm_array *out;
    chain_table *made;
    sm_einsum einsum;          /* open */
    int index[SM_MAX_INDICES]; /* of the chain */
    sm_lowering_input input;
    bool many;
    chain_made how; /* the assignment at hand */
} join;

/* ---- one assignment ---- */

chain_code chain_code_local(const chain_search *s, const chain_made *made, const int *index,
                            const sm_array *array, bool output) {
    chain_code code = 0;
    for (int i = 0; i < s->axes; i++) {
        int axis = s->order[0][i], digit = NOWHERE;
        if (made->at[axis] < 0) continue;
        for (int d = 0; d < array->rank; d++)
            if (array->dim[d].index == index[made->at[axis]]) digit = DIMENSION + d;
        if (output && digit == NOWHERE) digit = PARTIAL;
        code += chain_digit_at(axis, digit);
    }
    return chain_code_in(s, code, made->order);
}

typedef struct local {
    sm_lowering lowering; /* of the assignment; it has no steps */
    double flops, s;
} local;

/* What is saved when the step at the edge of a move runs inside the product; 0: nothing. */
static double saved_inside(const join *j, const local *c, const chain_edge *edge) {
    if (j->input.work != SM_LOCAL_PRODUCT || c->flops <= 0) return 0;
    lowering_ring ring = {-1, edge->chunks, edge->s};
    for (int i = 0; i < j->einsum.indices; i++)
        if (j->index[i] == edge->index) ring.cut = i;
    double inside = lowering_overlapped_s(&j->input, &c->lowering, c->flops, &ring);
    return fmax(0, c->s + edge->s - inside);
}

/* ---- what comes in ---- */

/* What it takes to have a part in a sharding, from the cheapest of those it can be made in. A
 * gather at the end may run inside the product, so that another one may be cheaper then. */
typedef struct candidate {
    double s, at_best_s; /* at best the whole gather is hidden */
    chain_code from;
    chain_edge edge;
} candidate;
enum { MOST_CANDIDATES = 12 };
struct chain_arrival {
    const sm_array *array; /* NULL: a free place */
    chain_code to;
    double s;
    chain_code from;
    int n;
    candidate inside[MOST_CANDIDATES];
};
enum {
    ARRIVALS = 1024
}; /* places of the table: a power of 2, several times what one product asks */

static void find_arrival(const join *j, unsigned part, struct chain_arrival *a) {
    const chain_table *table = &j->l->table[part];
    a->s = INFINITY;
    for (int i = 0; i < table->n; i++) {
        if (!(table->made[i].s < a->s)) continue; /* a gather that is hidden is none gained */
        chain_move m = chain_move_price(j->s, a->array, table->code[i], a->to, false);
        if (table->made[i].s + m.s < a->s) {
            a->s = table->made[i].s + m.s;
            a->from = table->code[i];
        }
        for (int e = 0; e < m.edges; e++) {
            double s = table->made[i].s + m.edge[e].move_s;
            const candidate c = {s, s - m.edge[e].s, table->code[i], m.edge[e]};
            int at = a->n < MOST_CANDIDATES ? a->n++ : MOST_CANDIDATES;
            for (; at > 0 && c.at_best_s < a->inside[at - 1].at_best_s; at--)
                if (at < MOST_CANDIDATES) a->inside[at] = a->inside[at - 1];
            if (at < MOST_CANDIDATES) a->inside[at] = c;
        }
    }
}

static const struct chain_arrival *arrival_of(const join *j, unsigned part) {
    const sm_array *array = chain_part(j->s, j->l, part);
    chain_code to = chain_code_local(j->s, &j->how, j->index, array, false);
    size_t at = (to * 2654435761u >> 12 ^ part) % ARRIVALS;
    struct chain_arrival *a = &j->s->arrival[at];
    for (int tries = 1; a->array && (a->array != array || a->to != to); tries++) {
        if (tries == ARRIVALS) break; /* full: the last place is written anew */
        at = (at + 1) % ARRIVALS;
        a = &j->s->arrival[at];
    }
    if (a->array == array && a->to == to) return a;
    *a = (struct chain_arrival){.array = array, .to = to};
    find_arrival(j, part, a);
    return a;
}

/* The least price with a gather of this part inside the product. */
static double inside_of(const join *j, const local *c, const struct chain_arrival *a,
                        chain_code *from) {
    double best = INFINITY;
    for (int i = 0; i < a->n && a->inside[i].at_best_s < fmin(best, a->s); i++) {
        double s = a->inside[i].s - saved_inside(j, c, &a->inside[i].edge);
        if (!(s < best)) continue;
        best = s;
        *from = a->inside[i].from;
    }
    return best;
}

/* ---- what goes out ---- */

/* Is what takes so many seconds at least no better than `worst`, or left out for now? */
static bool is_dear(const join *j, double worst, double s) {
    chain_line *l = j->l;
    if (s < worst && s >= l->within) l->beyond = fmin(l->beyond, s);
    return s >= fmin(worst, l->within);
}

static void offer(const join *j, int i, double s, const chain_made *how) {
    chain_made *made = &j->made->made[i];
    if (is_dear(j, made->s, s)) return;
    *made = *how;
    made->s = s;
}

static void one_assignment(const join *j) {
    local c = {.flops = sm_einsum_flops(&j->einsum)};
    const int8_t *at = j->how.at;
    memcpy(c.lowering.at, at, sizeof j->how.at);
    for (int a = 0; a < j->s->in->mesh->axes; a++)
        if (at[a] >= 0 && sm_index_repeats(&j->einsum, at[a]) < 0)
            c.flops /= j->s->in->mesh->axis[a].size;
    double bytes = lowering_chunk_bytes(&j->input, &c.lowering, -1, 1.0);
    c.s = lowering_local_cost(&j->input, &c.lowering, c.flops, bytes, -1, 1.0).expected_s +
          lowering_edges_s(&j->input, &c.lowering);
    double worst = 0, inside = INFINITY; /* what costs as much makes no sharding cheaper */
    for (int i = 0; i < j->made->n; i++) worst = fmax(worst, j->made->made[i].s);
    double before = c.s; /* all that comes before the output moves; inside: a gather is hidden */
    chain_made how = j->how, ringed = how;
    bool dear = is_dear(j, worst, c.s);
    for (int p = 0; p < j->parts && !dear; p++) {
        const struct chain_arrival *a = arrival_of(j, j->part[p]);
        chain_code from = 0;
        double here = inside + a->s, other = before + inside_of(j, &c, a, &from);
        if (other < here) memcpy(ringed.from, how.from, sizeof how.from);
        if (p < 2) ringed.from[p] = other < here ? from : a->from;
        if (p < 2) how.from[p] = a->from;
        inside = fmin(here, other);
        before += a->s;
        dear = !(before < INFINITY) || is_dear(j, worst, fmax(c.s, fmin(before - c.s, inside)));
    }
    if (dear) return;
    chain_code fallen = chain_code_local(j->s, &how, j->index, j->out, true);
    for (int i = 0; i < j->made->n; i++) {
        if (is_dear(j, j->made->made[i].s, fmax(c.s, fmin(before - c.s, inside)))) continue;
        chain_move m = chain_move_price(j->s, j->out, fallen, j->made->code[i], true);
        if (!(m.s < INFINITY)) continue;
        offer(j, i, before + m.s, &how);
        for (int e = 0; e < m.edges; e++)
            offer(j, i, before + m.edge[e].move_s - saved_inside(j, &c, &m.edge[e]), &how);
        offer(j, i, inside + m.s, &ringed);
    }
}

/* ---- all of them ---- */

/* The orders that differ for the axes that split the indices. */
static void order_axes(join *j) {
    chain_code split = 0;
    for (int i = 0; i < j->s->axes; i++) {
        int axis = j->s->order[0][i], index = (int)j->how.at[axis];
        int shared = NOWHERE; /* the first axis of the same index stands for it */
        for (int k = 0; k < j->s->axes && index >= 0; k++)
            if (j->how.at[j->s->order[0][k]] == index) {
                shared = DIMENSION + k;
                break;
            }
        split += chain_digit_at(axis, shared);
    }
    for (int order = 0; order < j->s->orders; order++) {
        j->how.order = order;
        if (chain_code_in(j->s, split, order) == split + chain_order_at(order)) one_assignment(j);
    }
}

/* Is the operand sharded so as it is stored? */
static bool is_there(const join *j, int axis, int index) {
    for (int o = 0; o < j->einsum.operands; o++)
        for (int d = 0; d < j->einsum.in[o].rank; d++) {
            const sm_dim *dim = &j->einsum.in[o].dim[d];
            if (dim->index == index && memchr(dim->axis, axis, (size_t)dim->n_axes)) return true;
        }
    return false;
}

static void assign_from(join *j, int i) {
    if (i == j->s->axes) {
        order_axes(j);
        return;
    }
    int axis = j->s->order[0][i], size = j->s->in->mesh->axis[axis].size;
    for (int k = 0; k < j->einsum.indices; k++) {
        double ways = size;
        if (sm_index_repeats(&j->einsum, k) >= 0 && !is_there(j, axis, k)) continue;
        for (int before = 0; before < i; before++)
            if (j->how.at[j->s->order[0][before]] == k)
                ways *= j->s->in->mesh->axis[j->s->order[0][before]].size;
        if (!chain_may_split(j->s, j->many, axis, j->index[k]) ||
            !(sm_cut(j->einsum.index[k].size, ways) < sm_cut(j->einsum.index[k].size, ways / size)))
            continue;
        j->how.at[axis] = (int8_t)k;
        assign_from(j, i + 1);
    }
    j->how.at[axis] = SM_REPLICATED;
    assign_from(j, i + 1);
}

void chain_join(chain_search *s, chain_line *l, unsigned set, unsigned left) {
    const sm_chain_input *in = s->in;
    join j = {.s = s, .l = l, .set = set, .left = left, .made = &l->table[set]};
    const chain_made open = {.left = left};
    j.parts = chain_parts_of(l, set, left, j.part);
    j.out = chain_part(s, l, set);
    chain_line_einsum(s, l, set, &open, 0, &j.einsum, j.index);
    j.input = (sm_lowering_input){in->system,      in->mesh,
                                  in->placement,   &j.einsum,
                                  in->calibration, in->compute,
                                  l->line->work,   l->line->flops,
                                  l->line->edges,  chain_along(l->line, &j.einsum, j.index)};
    j.many = pow(j.einsum.indices + 1, s->axes) > MOST_ASSIGNMENTS;
    j.how = open;
    memset(j.how.at, SM_REPLICATED, sizeof j.how.at);
    if (!s->arrival) s->arrival = sm_arena_array(s->arena, ARRIVALS, sizeof *s->arrival);
    s->out_of_memory = s->out_of_memory || !s->arrival;
    if (s->out_of_memory) return;
    memset(s->arrival, 0, ARRIVALS * sizeof *s->arrival);
    assign_from(&j, 0);
}
