/* A plan from tables: the steps, each lowered and priced as one einsum; and the sums over them. */
#include "chain_parts.h"

/* ---- one step ---- */

static sm_lowering_input input_of(const sm_chain_input *in, const sm_chain_step *step) {
    return (sm_lowering_input){in->system,      in->mesh,    in->placement, &step->einsum,
                               in->calibration, in->compute, step->work,    step->vector_flops,
                               step->edges,     step->along};
}

/* The cheapest of the variants of a lowering: nothing overlaps, or one collective does. */
static sm_lowering_cost price_lowering(const sm_chain_input *in, const sm_chain_step *step,
                                       const sm_lowering *lowering) {
    const sm_lowering_input input = input_of(in, step);
    int inside[SM_MAX_STEPS], n = 0;
    sm_lowering_cost best = sm_lowering_price(&input, lowering, -1);
    if (step->work == SM_LOCAL_PRODUCT) n = sm_lowering_overlaps(lowering, inside);
    for (int i = 0; i < n; i++) {
        sm_lowering_cost cost = sm_lowering_price(&input, lowering, inside[i]);
        if (cost.expected_s < best.expected_s) best = cost;
    }
    return best;
}

/* What is no product says what it does itself: FLOPs of the vector unit, or rows that are read. */
static void say_local_work(const sm_chain_input *in, sm_chain_step *step) {
    const sm_lowering_input input = input_of(in, step);
    for (int s = 0; s < step->way.lowering.steps; s++) {
        sm_step *local = &step->way.lowering.step[s];
        if (local->kind == SM_STEP_EINSUM && step->work != SM_LOCAL_PRODUCT)
            local->flops = lowering_local_work(&input, &step->way.lowering, local->flops,
                                               &local->local_bytes, -1, 1.0);
    }
    if (step->work != SM_LOCAL_PRODUCT) step->way.lowering.flops_per_chip = 0;
}

/* Where the arrays of a step are in the local einsum, and the ways there, the product's last. */
typedef struct chain_arrays {
    int n;
    sm_composition c;
    sm_lowering parts; /* those that a way may be on */
    chain_ways ways[SM_MAX_OPERANDS + 1];
    int way[SM_MAX_OPERANDS + 1]; /* that is taken */
} arrays;

static void find_arrays(const chain_writer *w, const chain_line *l, unsigned set,
                        const chain_made *made, chain_code code, const int *index, arrays *a) {
    unsigned part[SM_MAX_OPERANDS];
    sm_array split[SM_MAX_OPERANDS + 1];
    const sm_array *list[SM_MAX_OPERANDS];
    sm_einsum local;
    a->n = chain_parts_of(l, set, made->left, part);
    for (int p = 0; p <= a->n; p++) {
        bool out = p == a->n;
        const sm_array *array = chain_part(w->s, l, out ? set : part[p]);
        chain_code there = chain_code_local(w->s, made, index, array, out);
        split[p] = chain_array_of(w->s, array, there);
        if (!out) list[p] = &split[p];
        if (out) chain_move_ways(w->s, array, there, code, true, &a->ways[p]);
        else
            chain_move_ways(w->s, array, chain_comes_from(l, part, p, made), there, false,
                            &a->ways[p]);
    }
    sm_chain_einsum(w->s->in->chain, a->n, list, &split[a->n], &local, NULL);
    for (int p = 0; p <= a->n; p++) a->c.split[p] = p < a->n ? local.in[p] : local.out;
}

static bool may_take(const arrays *a, const sm_lowering *way) {
    bool same = way->parts == 0 || way->parts == a->parts.parts;
    for (int p = 0; same && p < way->parts; p++)
        same = way->part[p].axis == a->parts.part[p].axis &&
               way->part[p].size == a->parts.part[p].size;
    return same;
}

/* Put together, with one collective inside the product where that helps. */
static sm_status try_ways(const sm_chain_input *in, sm_chain_step *step, arrays *a, sm_error *err) {
    const sm_lowering_input input = input_of(in, step);
    sm_alternative way;
    for (int p = 0; p <= a->n; p++) a->c.move[p] = &a->ways[p].way[a->way[p]];
    sm_status status = sm_einsum_compose(&a->c, &way.lowering, err);
    if (status) return status;
    if (!lowering_add_edges(&input, &way.lowering))
        return sm_fail(err, SM_INTERNAL, "a window has no room for its step");
    way.cost = price_lowering(in, step, &way.lowering);
    if (step->way.lowering.steps == 0 || way.cost.expected_s < step->way.cost.expected_s)
        step->way = way;
    return SM_OK;
}

/* As the search priced it: each array goes by itself, as quickly as it can, but for one that may
 * go so that its last step is hidden. */
static sm_status choose_way(const chain_writer *w, const int8_t *at, sm_chain_step *step,
                            arrays *a) {
    const sm_chain_input *in = w->s->in;
    a->c.einsum = &step->einsum;
    a->c.mesh = in->mesh;
    a->c.at = at;
    a->parts.parts = 0;
    if (step->edges <= 0) sm_lowering_split(&a->parts, a->c.mesh);
    for (int p = 0; p <= a->n; p++) {
        a->way[p] = -1;
        for (int i = 0; i < a->ways[p].n; i++)
            if (may_take(a, &a->ways[p].way[i]) &&
                (a->way[p] < 0 || a->ways[p].edge[i].move_s < a->ways[p].edge[a->way[p]].move_s))
                a->way[p] = i;
        if (a->way[p] < 0) return sm_fail(w->err, SM_INTERNAL, "an array of a chain has no way");
    }
    sm_status status = try_ways(in, step, a, w->err);
    for (int p = 0; p <= a->n && !status; p++) {
        int quickest = a->way[p];
        for (int i = 0; i < a->ways[p].n; i++) {
            if (i == quickest || a->ways[p].edge[i].index < 0 || !may_take(a, &a->ways[p].way[i]))
                continue;
            a->way[p] = i;
            try_ways(in, step, a, NULL); /* of more steps than there may be: not taken */
        }
        a->way[p] = quickest;
    }
    if (!status) say_local_work(in, step);
    return status;
}

/* ---- all steps ---- */

static sm_chain_step *room_for(chain_writer *w) {
    sm_chain_plan *plan = w->plan;
    sm_chain_step *more =
        sm_arena_grow(w->s->arena, plan->step, plan->steps, &w->room, sizeof *more);
    if (!more) return NULL;
    plan->step = more;
    return &plan->step[plan->steps++];
}

static const chain_made *made_in(const chain_table *t, chain_code code) {
    for (int i = 0; i < t->n; i++)
        if (t->code[i] == code) return &t->made[i];
    return NULL;
}

static const char *leaf(const chain_writer *w, const chain_line *l, unsigned set, int *value) {
    for (int o = 0; o < l->line->operands; o++)
        if (set == 1u << o) {
            *value = l->line->operand[o];
            const char *name = chain_part(w->s, l, set)->name;
            return name[0] ? name : sm_arena_printf(w->s->arena, "%d", o + 1);
        }
    return NULL;
}

static const char *words(chain_writer *w, bool whole, const char *before, const char *more) {
    const char *text = sm_arena_printf(w->s->arena, "%s%s%s%s", whole || *before ? "" : "(", before,
                                       *before ? " " : "", more);
    if (!text && !w->status) w->status = sm_fail_memory(w->err);
    return text ? text : "";
}

const char *chain_write(chain_writer *w, const chain_line *l, unsigned set, chain_code code,
                        int *value) {
    const char *text = set == l->whole ? NULL : leaf(w, l, set, value);
    if (text || w->status) return text ? text : "";
    const chain_made *made = made_in(&l->table[set], code);
    unsigned part[SM_MAX_OPERANDS];
    int operand[SM_MAX_OPERANDS] = {0}, n = chain_parts_of(l, set, made->left, part);
    text = "";
    for (int p = 0; p < n; p++)
        text = words(w, set == l->whole, text,
                     chain_write(w, l, part[p], p < 2 ? made->from[p] : 0, &operand[p]));
    if (set != l->whole) text = sm_arena_printf(w->s->arena, "%s)", text);
    sm_chain_step *step = w->status || !text ? NULL : room_for(w);
    if (!step) {
        if (!w->status) w->status = sm_fail_memory(w->err);
        return "";
    }
    *value = set == l->whole ? l->line->result : w->plan->values++;
    *step = (sm_chain_step){.line = (int)(l->line - w->s->in->chain->line),
                            .result = *value,
                            .work = l->line->work,
                            .vector_flops = l->line->flops};
    memcpy(step->operand, operand, sizeof operand);
    int index[SM_MAX_INDICES];
    chain_line_einsum(w->s, l, set, made, code, &step->einsum, index);
    step->edges = l->line->edges;
    step->along = chain_along(l->line, &step->einsum, index);
    if (!w->arrays) w->arrays = sm_arena_alloc(w->s->arena, sizeof *w->arrays);
    if (!w->arrays) {
        w->status = sm_fail_memory(w->err);
        return "";
    }
    find_arrays(w, l, set, made, code, index, w->arrays);
    w->status = choose_way(w, made->at, step, w->arrays);
    return text;
}

/* ---- sums ---- */

static int last_read(const sm_chain_plan *plan, int value) {
    int last = -1;
    for (int i = 0; i < plan->steps; i++)
        for (int o = 0; o < plan->step[i].einsum.operands; o++)
            if (plan->step[i].operand[o] == value) last = i;
    return last;
}

static bool reads(const sm_chain_step *step, int value) {
    for (int o = 0; o < step->einsum.operands; o++)
        if (step->operand[o] == value) return true;
    return false;
}

/* Bytes on a chip while a step runs, of arrays that it does not touch. */
static double others(const sm_chain_input *in, const sm_chain_plan *plan, int at) {
    const sm_chain *chain = in->chain;
    double bytes = 0;
    for (int a = 0; a < chain->arrays; a++)
        if (chain->array[a].line < 0 && !reads(&plan->step[at], a))
            bytes += sm_array_local_bytes(&chain->array[a].array, &chain->names, in->mesh);
    for (int i = 0; i < at; i++) {
        const sm_chain_step *made = &plan->step[i];
        int last = last_read(plan, made->result);
        if ((last < 0 || last > at) && !reads(&plan->step[at], made->result))
            bytes += sm_array_local_bytes(&made->einsum.out, &made->einsum, in->mesh);
    }
    return bytes;
}

void chain_plan_sums(const sm_chain_input *in, sm_chain_plan *plan) {
    for (int i = 0; i < plan->steps; i++) {
        const sm_alternative *way = &plan->step[i].way;
        if (plan->step[i].work == SM_LOCAL_PRODUCT)
            plan->flops_per_chip += way->lowering.flops_per_chip;
        plan->peak_bytes = fmax(plan->peak_bytes, way->lowering.peak_bytes + others(in, plan, i));
        plan->math_s += way->cost.math_s;
        plan->memory_s += way->cost.memory_s;
        plan->network_s += way->cost.network_s;
        plan->expected_s += way->cost.expected_s;
        plan->upper_s += way->cost.upper_s;
    }
    plan->lower_s = fmax(plan->network_s, fmax(plan->math_s, plan->memory_s));
}
