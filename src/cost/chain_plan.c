/* A plan from tables: the steps, each lowered and priced as one einsum; and the sums over them. */
#include "chain_parts.h"

#include <math.h>
#include <string.h>

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

static sm_status price_way(const sm_chain_input *in, const int8_t *at, const sm_chain_step *step,
                           sm_alternative *way, sm_error *err) {
    sm_lowering ways[SM_MOST_WAYS];
    const sm_lowering_input input = input_of(in, step);
    int n = sm_einsum_lower_ways(&step->einsum, in->mesh, at, &step->einsum.out, ways, err), k = 0;
    if (n == 0) return err ? err->status : SM_BAD_INPUT;
    for (int i = 0; i < n; i++)
        if (lowering_add_edges(&input, &ways[i])) ways[k++] = ways[i];
    if (k == 0) return sm_fail(err, SM_INTERNAL, "a window has no room for its step");
    for (int i = 0; i < k; i++) {
        sm_lowering_cost cost = price_lowering(in, step, &ways[i]);
        if (i > 0 && cost.expected_s >= way->cost.expected_s) continue;
        way->lowering = ways[i];
        way->cost = cost;
    }
    return SM_OK;
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

/* Axes that have nothing to do may help to gather. */
static sm_status choose_way(const sm_chain_input *in, const int8_t *at, sm_chain_step *step,
                            sm_error *err) {
    int8_t helped[SM_MAX_AXES];
    sm_alternative other;
    bool idle = false;
    for (int a = 0; a < SM_MAX_AXES; a++) {
        bool one = a >= in->mesh->axes || in->mesh->axis[a].size < 2;
        helped[a] = at[a] == SM_REPLICATED && !one ? SM_ASSISTING : at[a];
        idle = idle || helped[a] != at[a];
    }
    sm_status status = price_way(in, at, step, &step->way, err);
    if (!status && idle && !price_way(in, helped, step, &other, NULL) &&
        other.cost.expected_s < step->way.cost.expected_s)
        step->way = other;
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
    w->status = choose_way(w->s->in, made->at, step, w->err);
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
