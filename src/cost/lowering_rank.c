/* lowering_rank: the cheapest ways to do a sharded einsum, in order. */
#include "scalemodel/lowering.h"

#include <string.h>

/* Cheaper first; at the same price the one with fewer steps, then the one without overlap, then the
 * one seen first. */
static bool is_better(const sm_alternative *a, const sm_alternative *b) {
    if (a->cost.expected_s < b->cost.expected_s) return true;
    if (a->cost.expected_s > b->cost.expected_s) return false;
    if (a->lowering.steps != b->lowering.steps) return a->lowering.steps < b->lowering.steps;
    return a->cost.overlapped < 0 && b->cost.overlapped >= 0;
}

static sm_alternative *room_for(sm_ranking *found, const sm_alternative *candidate) {
    if (found->n == SM_MOST_ALTERNATIVES) {
        sm_alternative *last = found->kept[SM_MOST_ALTERNATIVES - 1];
        if (!is_better(candidate, last)) return NULL;
        found->n--;
        return last;
    }
    sm_alternative *fresh = sm_arena_alloc(found->arena, sizeof *fresh);
    if (!fresh) found->out_of_memory = true;
    return fresh;
}

/* The same steps to the same output, reached by another assignment of an axis that does nothing. */
static bool is_same(const sm_lowering_input *in, const sm_alternative *a, const sm_alternative *b) {
    if (a->lowering.steps != b->lowering.steps || a->cost.overlapped != b->cost.overlapped ||
        a->lowering.parts != b->lowering.parts)
        return false;
    for (int s = 0; s < a->lowering.steps; s++) {
        const sm_step *x = &a->lowering.step[s], *y = &b->lowering.step[s];
        if (x->kind != y->kind || x->op != y->op || x->array != y->array || x->axes != y->axes ||
            x->from != y->from || x->to != y->to)
            return false;
        if (x->kind != SM_STEP_EINSUM && memcmp(&x->after, &y->after, sizeof x->after) != 0)
            return false;
    }
    char one[256], other[256];
    sm_array_format(&a->lowering.out, in->einsum, in->mesh, one, sizeof one);
    sm_array_format(&b->lowering.out, in->einsum, in->mesh, other, sizeof other);
    return strcmp(one, other) == 0;
}

static bool is_known(const sm_ranking *found, const sm_alternative *candidate) {
    for (int i = 0; i < found->n; i++) {
        const sm_alternative *kept = found->kept[i];
        bool same_time = !(kept->cost.expected_s < candidate->cost.expected_s) &&
                         !(kept->cost.expected_s > candidate->cost.expected_s);
        if (same_time && is_same(found->input, kept, candidate)) return true;
    }
    return false;
}

static void rank(sm_ranking *found, const sm_alternative *candidate) {
    if (is_known(found, candidate)) return;
    sm_alternative *place = room_for(found, candidate);
    if (!place) return;
    *place = *candidate;
    int at = found->n++;
    while (at > 0 && is_better(place, found->kept[at - 1])) {
        found->kept[at] = found->kept[at - 1];
        at--;
    }
    found->kept[at] = place;
}

static bool visit(const sm_lowering *lowering, void *context) {
    sm_ranking *found = context;
    sm_alternative candidate = {.lowering = *lowering};
    candidate.cost = sm_lowering_price(found->input, lowering, -1);
    rank(found, &candidate);
    int steps[SM_MAX_STEPS];
    int n = sm_lowering_overlaps(lowering, steps);
    for (int i = 0; i < n; i++) {
        candidate.cost = sm_lowering_price(found->input, lowering, steps[i]);
        rank(found, &candidate);
    }
    return !found->out_of_memory;
}

sm_status sm_rank_lowerings(const sm_lowering_input *input, sm_arena *arena, sm_ranking *found,
                            sm_error *err) {
    *found = (sm_ranking){.input = input, .arena = arena};
    sm_status status = sm_einsum_alternatives(input->einsum, input->mesh, visit, found, err);
    return found->out_of_memory ? sm_fail_memory(err) : status;
}
