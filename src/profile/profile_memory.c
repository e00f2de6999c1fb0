/* HBM of a device over the schedule: each array lives from the instruction that makes it to the
 * last one that reads it, itself or a view of it. */

#include "profile_made.h"

typedef struct liveness {
    const sm_module *module;
    const double *inner; /* of each computation: the most that lives inside at once */
    const sm_computation *in;
    const bool *written; /* results of it that are written to memory; NULL: all */
    int *last;           /* of each instruction: the last reader */
    int *owner;          /* of each instruction: whose memory its result is */
    double *held;        /* of each instruction: bytes that it allocated and nobody took over */
    double *freed;       /* of each position: bytes that end there */
    bool *placed;        /* of each instruction: its result has a place already */
    bool apart;          /* nothing has the place of the program's results before them */
} liveness;

/* Is the result the same memory as its operands? */
static bool is_view(const sm_instruction *it) {
    switch (it->opcode) {
    case SM_OPCODE_TUPLE:
    case SM_OPCODE_GET_TUPLE_ELEMENT:
    case SM_OPCODE_BITCAST:
    case SM_OPCODE_OPT_BARRIER:
    case SM_OPCODE_WHILE:
    case SM_OPCODE_ADD_DEPENDENCY:
    case SM_OPCODE_DOMAIN:
    case SM_OPCODE_DYNAMIC_UPDATE_SLICE:
    case SM_OPCODE_SCATTER:
    case SM_OPCODE_ASYNC_UPDATE: return true;
    default: return sm_module_class_of(it->opcode) == SM_CLASS_DONE || it->in_place.n > 0;
    }
}

/* The operand in whose memory the result is written: what an update updates, also where it is the
 * root of a fusion; -1: none. Copies that this needs stand in the program. */
static int updated_operand(const liveness *l, const sm_instruction *it) {
    if (it->opcode == SM_OPCODE_DYNAMIC_UPDATE_SLICE) return 0;
    if (it->opcode != SM_OPCODE_FUSION || !it->calls) return -1;
    const sm_computation *body = &l->module->computation[it->call[0]];
    const sm_instruction *at = &body->instruction[body->root];
    bool updates = false;
    while (at->operands && (at->opcode == SM_OPCODE_BITCAST ||
                            (at->opcode == SM_OPCODE_DYNAMIC_UPDATE_SLICE && !updates))) {
        updates = updates || at->opcode == SM_OPCODE_DYNAMIC_UPDATE_SLICE;
        at = &body->instruction[at->operand[0]];
    }
    bool whole = updates && at->opcode == SM_OPCODE_PARAMETER && at->number >= 0 &&
                 at->number < it->operands;
    if (!whole) return -1;
    const sm_module_shape *from = l->in->instruction[it->operand[at->number]].shape;
    return sm_module_bytes(from, 0) == sm_module_bytes(it->shape, 0) ? (int)at->number : -1;
}

/* Part of the kernel that reads it: it has no memory, and what it reads lives as long as it would.
 */
static bool is_fused(const liveness *l, int i) { return l->written && !l->written[i]; }

static void keep(liveness *l, int i, int until) {
    if (l->last[i] < until) l->last[i] = until;
}

/* What is an element of a tuple, also after a loop that carries it in place; -1: not known. */
static int element_of(const sm_computation *c, const sm_instruction *it) {
    if (it->opcode != SM_OPCODE_GET_TUPLE_ELEMENT || !it->operands) return -1;
    const sm_instruction *of = &c->instruction[it->operand[0]];
    while (of->operands == 1 &&
           (of->opcode == SM_OPCODE_WHILE || of->opcode == SM_OPCODE_OPT_BARRIER))
        of = &c->instruction[of->operand[0]];
    bool has = of->opcode == SM_OPCODE_TUPLE && it->number >= 0 && it->number < of->operands;
    return has ? of->operand[it->number] : -1;
}

/* Backwards, so that what reads a view is known before what is viewed. */
static void find_last(liveness *l) {
    const sm_computation *c = l->in;
    for (int i = 0; i < c->n; i++) l->last[i] = i;
    l->last[c->root] = c->n;
    for (int i = c->n - 1; i >= 0; i--) {
        const sm_instruction *it = &c->instruction[i];
        int until = is_view(it) || is_fused(l, i) ? l->last[i] : i,
            updated = updated_operand(l, it);
        int element = element_of(c, it);
        if (element >= 0) {
            keep(l, element, until);
            continue;
        }
        for (int o = 0; o < it->operands; o++)
            keep(l, it->operand[o], updated < 0 ? until : o == updated ? l->last[i] : i);
    }
}

static double in_place_bytes(const sm_instruction *it) {
    double bytes = 0;
    for (int i = 0; i < it->in_place.n; i++) {
        int64_t at = it->in_place.at[i];
        if (at < 0) bytes += sm_module_bytes(it->shape, 0);
        else if (at < it->shape->parts) bytes += sm_module_bytes(&it->shape->part[at], 0);
    }
    return bytes;
}

static double operand_bytes(const liveness *l, const sm_instruction *it) {
    double bytes = 0;
    for (int i = 0; i < it->operands; i++)
        bytes += sm_module_bytes(l->in->instruction[it->operand[i]].shape, 0);
    return bytes;
}

/* What an instruction allocates. The result of a -start names its operands too. */
static double allocated(const liveness *l, const sm_instruction *it) {
    sm_module_class class = sm_module_class_of(it->opcode);
    double bytes = sm_module_bytes(it->shape, 0);
    switch (it->opcode) {
    case SM_OPCODE_CONSTANT:
    case SM_OPCODE_WHILE:
    case SM_OPCODE_DYNAMIC_UPDATE_SLICE:
    case SM_OPCODE_SCATTER: return 0;
    case SM_OPCODE_ALL_GATHER_START:
    case SM_OPCODE_COLLECTIVE_PERMUTE_START:
    case SM_OPCODE_ASYNC_START:
    case SM_OPCODE_COPY_START:
    case SM_OPCODE_SLICE_START: return fmax(bytes - operand_bytes(l, it), 0);
    default: break;
    }
    if (class == SM_CLASS_FREE || class == SM_CLASS_DONE || updated_operand(l, it) >= 0) return 0;
    if (it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, "ConcatBitcast")) return 0;
    if (sm_module_moves_to_host(it)) return 0;
    return fmax(bytes - in_place_bytes(it), 0);
}

/* What lives inside the computations that an instruction runs. */
static double inside(const liveness *l, const sm_instruction *it) {
    double most = 0;
    if (it->opcode != SM_OPCODE_WHILE && it->opcode != SM_OPCODE_CALL &&
        it->opcode != SM_OPCODE_CONDITIONAL)
        return 0;
    for (int i = 0; i < it->calls; i++) most = fmax(most, l->inner[it->call[i]]);
    return most;
}

/* A kernel that makes each element of its result of the same element of its operands. */
static bool is_pointwise(const liveness *l, const sm_instruction *it) {
    sm_module_class class = sm_module_class_of(it->opcode);
    if (class == SM_CLASS_POINTWISE || class == SM_CLASS_TRANSCENDENTAL) return true;
    if (it->opcode != SM_OPCODE_FUSION || !it->calls) return false;
    const sm_computation *body = &l->module->computation[it->call[0]];
    for (int i = 0; i < body->n; i++) {
        class = sm_module_class_of(body->instruction[i].opcode);
        if (class != SM_CLASS_POINTWISE && class != SM_CLASS_TRANSCENDENTAL &&
            class != SM_CLASS_FREE && body->instruction[i].opcode != SM_OPCODE_BROADCAST &&
            body->instruction[i].opcode != SM_OPCODE_RESHAPE)
            return false;
    }
    return true;
}

/* Bytes of an operand that ends here and whose place the result takes. */
static double taken_over(liveness *l, int i, double bytes) {
    const sm_instruction *it = &l->in->instruction[i];
    if (bytes <= 0 || !is_pointwise(l, it)) return 0;
    for (int o = 0; o < it->operands; o++) {
        int owner = l->owner[it->operand[o]];
        if (l->last[owner] != i || l->held[owner] != bytes) continue;
        l->held[owner] = 0;
        l->freed[i] -= bytes;
        return bytes;
    }
    return 0;
}

static void find_owner(liveness *l, int i) {
    const sm_instruction *it = &l->in->instruction[i];
    int updated = updated_operand(l, it);
    if (updated < 0 && it->operands == 1 && is_view(it)) updated = 0;
    int element = element_of(l->in, it);
    l->owner[i] = element >= 0   ? l->owner[element]
                  : updated >= 0 ? l->owner[it->operand[updated]]
                                 : i;
}

/* Compiled for a TPU: layouts have tiles. */
static bool has_tiles(const sm_module_shape *shape) {
    bool has = shape->tiles > 0;
    for (int i = 0; !has && i < shape->parts; i++) has = has_tiles(&shape->part[i]);
    return has;
}

/* Results that lie in memory that is there already: all of a loop's body, of the program those
 * that take the place of an argument; on TPUs all, for which XLA keeps memory from the beginning.
 * Elsewhere it lets other arrays have the place of a result until that is made. */
static void find_placed(liveness *l, bool is_body) {
    const sm_module *m = l->module;
    const sm_computation *c = l->in;
    const sm_instruction *root = &c->instruction[c->root];
    bool is_entry = c == &m->computation[m->entry], all = is_body;
    for (int i = 0; is_entry && !all && i < c->n; i++) all = has_tiles(c->instruction[i].shape);
    for (int i = 0; i < c->n; i++) l->placed[i] = all && l->last[i] >= c->n;
    if (!is_entry) return;
    l->apart = all;
    for (int i = 0; i < m->in_place.n; i++) {
        int64_t at = m->in_place.at[i];
        if (at < 0) l->placed[l->owner[c->root]] = true;
        else if (root->opcode == SM_OPCODE_TUPLE && at < root->operands)
            l->placed[l->owner[root->operand[at]]] = true;
    }
}

/* The most that lives at once. Before a result is made, its place is there for others. */
static double most_alive(liveness *l, bool is_body) {
    const sm_computation *c = l->in;
    double live = 0, most = 0;
    find_last(l);
    for (int i = 0; i < c->n; i++) find_owner(l, i);
    find_placed(l, is_body);
    memset(l->freed, 0, ((size_t)c->n + 1) * sizeof *l->freed);
    for (int i = 0; i < c->n; i++) {
        const sm_instruction *it = &c->instruction[i];
        bool none = it->opcode == SM_OPCODE_PARAMETER || is_fused(l, i) || l->placed[i];
        double bytes = none ? 0 : allocated(l, it);
        l->held[i] = bytes;
        live += bytes - taken_over(l, i, bytes);
        l->freed[l->last[i]] += bytes;
        most = fmax(most, live + inside(l, it));
        live -= l->freed[i];
    }
    return most;
}

static int largest(const sm_module *m) {
    int most = 0;
    for (int i = 0; i < m->computations; i++)
        if (m->computation[i].n > most) most = m->computation[i].n;
    return most;
}

static void add_arguments(profile_made *made, const sm_computation *entry) {
    const sm_module *m = made->p.module;
    const sm_module_shape *root = entry->instruction[entry->root].shape;
    double results = sm_module_bytes(root, 0);
    for (int i = 0; i < entry->n; i++)
        if (entry->instruction[i].opcode == SM_OPCODE_PARAMETER)
            made->p.argument_bytes += sm_module_bytes(entry->instruction[i].shape, 0);
    for (int i = 0; i < m->in_place.n; i++) {
        int64_t at = m->in_place.at[i];
        if (at < 0) results = 0;
        else if (at < root->parts) results -= sm_module_bytes(&root->part[at], 0);
    }
    made->p.result_bytes = fmax(results, 0);
}

sm_status profile_memory(profile_made *made, sm_error *err) {
    const sm_module *m = made->p.module;
    size_t room = (size_t)largest(m) + 1;
    double *inner = sm_arena_array(made->arena, (size_t)m->computations, sizeof *inner);
    /* What a loop carries is in place from trip to trip. */
    bool *is_body = sm_arena_array(made->arena, (size_t)m->computations, sizeof *is_body);
    for (int c = 0; is_body && c < m->computations; c++)
        for (int i = 0; i < m->computation[c].n; i++) {
            const sm_instruction *it = &m->computation[c].instruction[i];
            for (int k = 0; it->opcode == SM_OPCODE_WHILE && k < it->calls; k++)
                is_body[it->call[k]] = true;
        }
    liveness l = {.module = m, .inner = inner};
    l.last = sm_arena_array(made->arena, room, sizeof *l.last);
    l.freed = sm_arena_array(made->arena, room, sizeof *l.freed);
    l.owner = sm_arena_array(made->arena, room, sizeof *l.owner);
    l.held = sm_arena_array(made->arena, room, sizeof *l.held);
    l.placed = sm_arena_array(made->arena, room, sizeof *l.placed);
    if (!inner || !is_body || !l.last || !l.freed || !l.owner || !l.held || !l.placed)
        return sm_fail_memory(err);
    for (int i = 0; i < m->computations; i++) {
        int c = made->analysis->order[i];
        if (made->analysis->runs[c].times <= 0) continue;
        l.in = &m->computation[c];
        l.written = made->analysis->written ? made->analysis->written[c] : NULL;
        inner[c] = most_alive(&l, is_body[c]);
    }
    add_arguments(made, &m->computation[m->entry]);
    made->p.temporary_bytes = fmax(inner[m->entry] - (l.apart ? 0 : made->p.result_bytes), 0);
    made->p.peak_bytes = made->p.argument_bytes + made->p.result_bytes + made->p.temporary_bytes;
    return SM_OK;
}
