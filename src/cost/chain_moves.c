/* Shardings as codes, and what it takes to move an array from one to another: the steps of an
 * einsum of this one operand. Prices are kept, for orders and lines ask for the same moves again.
 */
#include "chain_parts.h"

/* ---- codes ---- */

static const chain_code power[SM_MAX_AXES + 1] = {1,      10,      100,      1000,     10000,
                                                  100000, 1000000, 10000000, 100000000};

static int digit_of(chain_code code, int axis) { return (int)(code / power[axis] % 10); }
static int order_of(chain_code code) { return (int)(code / power[SM_MAX_AXES]); }
chain_code chain_digit_at(int axis, int digit) { return power[axis] * (chain_code)digit; }
chain_code chain_order_at(int order) { return power[SM_MAX_AXES] * (chain_code)order; }

/* Do two orders have the axes of each dimension alike? */
static bool orders_agree(const chain_search *s, chain_code code, const int *a, const int *b) {
    int place[SM_MAX_AXES] = {0};
    for (int i = 0; i < s->axes; i++) place[b[i]] = i;
    for (int i = 0; i < s->axes; i++)
        for (int k = i + 1; k < s->axes; k++)
            if (digit_of(code, a[i]) >= DIMENSION && digit_of(code, a[i]) == digit_of(code, a[k]) &&
                place[a[i]] > place[a[k]])
                return false;
    return true;
}

chain_code chain_code_in(const chain_search *s, chain_code digits, int order) {
    int least = 0;
    while (least < order && !orders_agree(s, digits, s->order[order], s->order[least])) least++;
    return digits + chain_order_at(least);
}

sm_array chain_array_of(const chain_search *s, const sm_array *array, chain_code code) {
    sm_array to = *array;
    if (code == AS_GIVEN) return to;
    to.unreduced = 0;
    for (int d = 0; d < to.rank; d++) to.dim[d].n_axes = 0;
    for (int i = 0; i < s->axes; i++) {
        int axis = s->order[order_of(code)][i], digit = digit_of(code, axis);
        if (digit == PARTIAL) to.unreduced |= (sm_axes)(1u << axis);
        if (digit < DIMENSION) continue;
        sm_dim *dim = &to.dim[digit - DIMENSION];
        dim->axis[dim->n_axes++] = (uint8_t)axis;
    }
    return to;
}

/* ---- which axes there are, and in which order ---- */

/* The first dimension of an array given that has both axes tells; else the mesh. */
static bool comes_before(const sm_chain *chain, int a, int b) {
    for (int i = 0; i < chain->arrays; i++)
        for (int d = 0; chain->array[i].given && d < chain->array[i].array.rank; d++) {
            const sm_dim *dim = &chain->array[i].array.dim[d];
            const uint8_t *at_a = memchr(dim->axis, a, (size_t)dim->n_axes);
            const uint8_t *at_b = memchr(dim->axis, b, (size_t)dim->n_axes);
            if (at_a && at_b) return at_a < at_b;
        }
    return a < b;
}

void chain_search_begin(chain_search *s, const sm_chain_input *in, sm_arena *arena) {
    *s = (chain_search){.in = in, .arena = arena};
    const sm_chain *chain = in->chain;
    for (int a = 0; a < in->mesh->axes; a++) {
        if (in->mesh->axis[a].size < 2) continue;
        int at = s->axes++;
        for (; at > 0 && comes_before(chain, a, s->order[0][at - 1]); at--)
            s->order[0][at] = s->order[0][at - 1];
        s->order[0][at] = a;
    }
    /* The other orders of up to three axes, of two where there are several lines. */
    static const int of_three[MOST_ORDERS][MOST_ORDERED_AXES] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                                                 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int most = s->in->chain->lines == 1 ? MOST_ORDERED_AXES : MOST_ORDERED_AXES - 1;
    s->orders = s->axes > most                 ? 1
                : s->axes == 2                 ? 2
                : s->axes == MOST_ORDERED_AXES ? MOST_ORDERS
                                               : 1;
    for (int o = 1; o < s->orders; o++)
        for (int i = 0; i < s->axes; i++) s->order[o][i] = s->order[0][of_three[o][i]];
    uint32_t seen = 0;
    for (int i = 0; i < chain->arrays; i++)
        for (int d = 0; chain->array[i].given && d < chain->array[i].array.rank; d++) {
            const sm_dim *dim = &chain->array[i].array.dim[d];
            for (int k = 0; k < dim->n_axes; k++) s->likely[dim->index] |= 1u << dim->axis[k];
            seen |= s->likely[dim->index];
        }
    for (int i = 0; i < chain->names.indices; i++) s->likely[i] |= ~seen;
}

bool chain_may_split(const chain_search *s, bool many, int axis, int index) {
    return !many || (s->likely[index] >> axis & 1);
}

/* ---- every sharding of an array ---- */

enum { MOST_CODES = 100 };

typedef struct listing {
    const chain_search *s;
    const sm_array *array;
    bool many;
    double ways[SM_MAX_RANK];
    chain_code *code; /* NULL: only count */
    int n;
} listing;

static void list_from(listing *l, int i, chain_code digits) {
    if (i == l->s->axes) {
        for (int o = 0; o < l->s->orders; o++) {
            chain_code code = chain_code_in(l->s, digits, o);
            if (order_of(code) != o) continue;
            if (l->code) l->code[l->n] = code;
            l->n++;
        }
        return;
    }
    int axis = l->s->order[0][i], size = l->s->in->mesh->axis[axis].size;
    list_from(l, i + 1, digits);
    for (int d = 0; d < l->array->rank; d++) {
        int index = l->array->dim[d].index;
        double whole = l->s->in->chain->names.index[index].size;
        bool shorter = sm_cut(whole, l->ways[d] * size) < sm_cut(whole, l->ways[d]);
        if (!chain_may_split(l->s, l->many, axis, index) || !shorter) continue;
        l->ways[d] *= size;
        list_from(l, i + 1, digits + chain_digit_at(axis, DIMENSION + d));
        l->ways[d] /= size;
    }
}

bool chain_codes_of(chain_search *s, const sm_array *array, chain_code **code, int *n) {
    listing l = {.s = s, .array = array, .many = pow(array->rank + 1, s->axes) > MOST_CODES};
    for (int d = 0; d < array->rank; d++) l.ways[d] = 1;
    list_from(&l, 0, 0);
    l.code = *code = sm_arena_array(s->arena, (size_t)l.n, sizeof **code);
    s->out_of_memory = s->out_of_memory || !l.code;
    if (!l.code) return false;
    *n = l.n;
    l.n = 0;
    list_from(&l, 0, 0);
    return true;
}

/* ---- the price of a move ---- */

/* The collective that may run inside an einsum: the first of an output, the last of an operand. */
static chain_edge edge_of(const chain_search *s, const int *index_of, const sm_lowering *l,
                          const sm_lowering_cost *cost, bool output) {
    chain_edge edge = {.move_s = cost->expected_s, .index = -1};
    int last = 0;
    while (last < l->steps && l->step[last].kind != SM_STEP_EINSUM) last++;
    int at = output ? 0 : last - 1;
    if (!output && last + 1 < l->steps) return edge; /* it is sliced after the gather */
    if (at < 0 || at >= last || l->step[at].kind != SM_STEP_COLLECTIVE) return edge;
    const sm_step *step = &l->step[at];
    int index = output ? step->to : step->from;
    if (step->op != (output ? SM_REDUCE_SCATTER : SM_ALL_GATHER) || index < 0 || step->in_one)
        return edge;
    sm_mesh mesh;
    sm_lowering_mesh(l, s->in->mesh, &mesh);
    edge.index = index_of[index];
    edge.s = cost->step[at].expected_s;
    edge.chunks = sm_mesh_size(&mesh, step->axes);
    return edge;
}

static bool is_on(const sm_array *array, int axis) {
    bool on = array->unreduced >> axis & 1;
    for (int d = 0; d < array->rank; d++)
        on = on || memchr(array->dim[d].axis, axis, (size_t)array->dim[d].n_axes);
    return on;
}

/* The same with axes that are nowhere, where something is gathered. */
static int helped_ways(const chain_search *s, const sm_einsum *e, const int8_t *at, sm_axes stays,
                       chain_ways *ways) {
    const sm_mesh *mesh = s->in->mesh;
    int8_t helped[SM_MAX_AXES];
    bool gathers = false, idle = false;
    for (int i = 0; ways->n > 0 && i < ways->way[0].steps; i++)
        gathers = gathers || ways->way[0].step[i].op == SM_ALL_GATHER;
    memcpy(helped, at, sizeof helped);
    for (int a = 0; a < mesh->axes; a++) {
        if (mesh->axis[a].size < 2 || at[a] >= 0 || stays >> a & 1) continue;
        helped[a] = SM_ASSISTING;
        idle = idle || !is_on(&e->in[0], a);
    }
    if (!gathers || !idle) return 0;
    return sm_einsum_lower_ways(e, mesh, helped, &e->out, ways->way + ways->n, NULL);
}

/* On the axes that both arrays have first on a dimension. */
static sm_array common_of(const sm_array *from, const sm_array *to) {
    sm_array common = *from;
    for (int d = 0; d < from->rank; d++) {
        sm_dim *dim = &common.dim[d];
        dim->n_axes = 0;
        while (dim->n_axes < from->dim[d].n_axes && dim->n_axes < to->dim[d].n_axes &&
               from->dim[d].axis[dim->n_axes] == to->dim[d].axis[dim->n_axes])
            dim->n_axes++;
    }
    return common;
}

static void axes_of(const sm_array *array, int8_t *at) {
    memset(at, SM_REPLICATED, SM_MAX_AXES);
    for (int d = 0; d < array->rank; d++)
        for (int k = 0; k < array->dim[d].n_axes; k++)
            at[array->dim[d].axis[k]] = (int8_t)array->dim[d].index;
}

/* Gathered as far as both ends have it alike, by axes that help or without, then sliced. */
static void gathered_ways(const chain_search *s, const sm_einsum *e, chain_ways *ways) {
    const sm_mesh *mesh = s->in->mesh;
    bool turns = false;
    for (int i = 0; ways->n > 0 && i < ways->way[0].steps; i++)
        turns = turns || ways->way[0].step[i].op == SM_PERMUTE ||
                ways->way[0].step[i].op == SM_ALL_TO_ALL;
    if (!turns || e->in[0].unreduced) return;
    sm_einsum first = *e, last = *e;
    sm_lowering slices;
    int8_t at[SM_MAX_AXES], to[SM_MAX_AXES];
    chain_ways gathers;
    first.out = last.in[0] = common_of(&e->in[0], &e->out);
    axes_of(&first.out, at);
    axes_of(&e->out, to);
    gathers.n = sm_einsum_lower_ways(&first, mesh, at, &first.out, gathers.way, NULL);
    int helped = gathers.n;
    if (gathers.n > 0) gathers.n += helped_ways(s, &first, at, 0, &gathers);
    if (sm_einsum_lower(&last, mesh, to, &last.out, false, &slices, NULL)) return;
    for (int w = 0; w < gathers.n; w += w < helped ? helped : gathers.n) {
        sm_composition c = {.einsum = e,
                            .mesh = mesh,
                            .at = at,
                            .split = {first.out, first.out},
                            .move = {&gathers.way[w], &slices}};
        if (!sm_einsum_compose(&c, &ways->way[ways->n], NULL)) ways->n++;
    }
}

void chain_move_ways(const chain_search *s, const sm_array *array, chain_code from_code,
                     chain_code to_code, bool output, chain_ways *ways) {
    const sm_chain_input *in = s->in;
    sm_array from = chain_array_of(s, array, from_code), to = chain_array_of(s, array, to_code);
    sm_axes stays = from.unreduced & to.unreduced; /* partial sums that nobody adds here */
    sm_einsum e;
    int8_t at[SM_MAX_AXES];
    int index_of[SM_MAX_INDICES];
    from.unreduced &= (sm_axes)~stays;
    to.unreduced &= (sm_axes)~stays;
    ways->n = 0;
    if (to.unreduced) return;
    sm_chain_einsum(in->chain, 1, (const sm_array *[]){&from}, &to, &e, index_of);
    axes_of(&e.out, at);
    ways->n = sm_einsum_lower_ways(&e, in->mesh, at, &e.out, ways->way, NULL);
    ways->n += helped_ways(s, &e, at, stays, ways);
    gathered_ways(s, &e, ways);
    const sm_lowering_input priced = {
        in->system, in->mesh, in->placement, &e, in->calibration, in->compute, SM_LOCAL_NOTHING, 0,
        0,          0};
    for (int w = 0; w < ways->n; w++) {
        sm_lowering_cost cost = sm_lowering_price(&priced, &ways->way[w], -1);
        ways->edge[w] = edge_of(s, index_of, &ways->way[w], &cost, output);
    }
}

/* ---- prices that are known ---- */

static size_t hash_of(const chain_move *m) {
    uint64_t h = (uint64_t)(uintptr_t)m->array / sizeof(sm_array);
    h = (h * 31 + m->from) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 29) + m->to * 2u + m->output;
    h *= 0xBF58476D1CE4E5B9u;
    return (size_t)(h ^ h >> 32);
}

static chain_move *place_of(const chain_search *s, const chain_move *m) {
    size_t at = hash_of(m) & (s->room - 1);
    for (;; at = (at + 1) & (s->room - 1)) {
        chain_move *there = &s->moves[at];
        if (!there->array || (there->array == m->array && there->from == m->from &&
                              there->to == m->to && there->output == m->output))
            return there;
    }
}

static bool make_room(chain_search *s) {
    if (2 * s->n_moves < s->room) return true;
    chain_search larger = *s;
    larger.room = s->room > 0 ? 2 * s->room : 1024;
    larger.moves = sm_arena_array(s->arena, larger.room, sizeof *larger.moves);
    if (!larger.moves) return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->moves[i].array) *place_of(&larger, &s->moves[i]) = s->moves[i];
    *s = larger;
    return true;
}

chain_move chain_move_price(chain_search *s, const sm_array *array, chain_code from, chain_code to,
                            bool output) {
    chain_move wanted = {.array = array, .from = from, .to = to, .output = output};
    if (from == to) return wanted;
    if (!make_room(s)) {
        s->out_of_memory = true;
        wanted.s = INFINITY;
        return wanted;
    }
    chain_move *known = place_of(s, &wanted);
    if (known->array) return *known;
    chain_ways ways;
    chain_move_ways(s, wanted.array, wanted.from, wanted.to, wanted.output, &ways);
    wanted.s = INFINITY;
    for (int w = 0; w < ways.n; w++) {
        wanted.s = fmin(wanted.s, ways.edge[w].move_s);
        if (ways.edge[w].index >= 0) wanted.edge[wanted.edges++] = ways.edge[w];
    }
    *known = wanted;
    s->n_moves++;
    return wanted;
}
