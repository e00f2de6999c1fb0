/* Which computations run, and how often: loops, calls, branches. */

#include "module_parts.h"

/* ---- trips of a loop ---- */

/* Through copies and conversions. */
static const sm_instruction *source_of(const sm_computation *in, const sm_instruction *it) {
    while (it->operands == 1 &&
           (it->opcode == SM_OPCODE_COPY || it->opcode == SM_OPCODE_CONVERT ||
            it->opcode == SM_OPCODE_BITCAST || it->opcode == SM_OPCODE_RESHAPE))
        it = &in->instruction[it->operand[0]];
    return it;
}

/* An element of the tuple that an instruction makes, NULL where it is made elsewhere. */
static const sm_instruction *element_of(const sm_computation *in, const sm_instruction *tuple,
                                        int64_t i) {
    tuple = source_of(in, tuple);
    if (tuple->opcode != SM_OPCODE_TUPLE || i < 0 || i >= tuple->operands) return NULL;
    return source_of(in, &in->instruction[tuple->operand[i]]);
}

/* Is it element i of the parameter, plus a constant? *step: the constant. */
static bool is_stepped(const sm_computation *body, const sm_instruction *it, int64_t i,
                       int64_t *step) {
    if (!it || it->opcode != SM_OPCODE_ADD || it->operands != 2) return false;
    for (int o = 0; o < 2; o++) {
        const sm_instruction *a = source_of(body, &body->instruction[it->operand[o]]);
        const sm_instruction *b = source_of(body, &body->instruction[it->operand[1 - o]]);
        if (a->opcode != SM_OPCODE_GET_TUPLE_ELEMENT || a->number != i) continue;
        if (b->opcode != SM_OPCODE_CONSTANT || !b->known) continue;
        *step = b->number;
        return true;
    }
    return false;
}

typedef struct comparison { /* element `index` of the state, `than` a constant */
    int64_t index, bound;
    char direction;
} comparison;

static bool comparison_of(const sm_computation *condition, comparison *out) {
    const sm_instruction *root = &condition->instruction[condition->root];
    if (root->opcode != SM_OPCODE_COMPARE || root->operands != 2) return false;
    const sm_instruction *a = source_of(condition, &condition->instruction[root->operand[0]]);
    const sm_instruction *b = source_of(condition, &condition->instruction[root->operand[1]]);
    if (a->opcode != SM_OPCODE_GET_TUPLE_ELEMENT || !b->known || b->opcode != SM_OPCODE_CONSTANT)
        return false;
    *out = (comparison){a->number, b->number, root->direction};
    return true;
}

int64_t sm_module_trips(const sm_module *module, const sm_computation *in,
                        const sm_instruction *loop) {
    if (loop->trips >= 0) return loop->trips;
    if (loop->calls != 2 || loop->operands != 1) return -1;
    const sm_computation *body = &module->computation[loop->call[1]];
    comparison c;
    int64_t step = 0;
    if (!comparison_of(&module->computation[loop->call[0]], &c)) return -1;
    const sm_instruction *from = element_of(in, &in->instruction[loop->operand[0]], c.index);
    if (!from || from->opcode != SM_OPCODE_CONSTANT || !from->known) return -1;
    const sm_instruction *next = element_of(body, &body->instruction[body->root], c.index);
    if (!is_stepped(body, next, c.index, &step) || step == 0) return -1;
    int64_t limit = INT64_MAX / 4, way = c.bound - from->number;
    if (c.bound > limit || c.bound < -limit || from->number > limit || from->number < -limit)
        return -1;
    way += (c.direction == 'l') - (c.direction == 'g');
    if (step < 0 ? c.direction != '>' && c.direction != 'g'
                 : c.direction != '<' && c.direction != 'l')
        return -1;
    return way / step + (way % step != 0) < 0 ? 0 : way / step + (way % step != 0);
}

/* ---- the order of calls ---- */

typedef struct walk {
    const sm_module *module;
    int *state; /* of each computation: 0 not seen, 1 on the way, 2 done */
    int *order; /* callees first */
    int n;
} walk;

/* Where a walk stands in a computation. */
typedef struct stop {
    int computation, instruction, call;
} stop;

/* The next computation that is called from here on; -1: no more. */
static int next_call(const sm_module *module, stop *at) {
    const sm_computation *c = &module->computation[at->computation];
    for (; at->instruction < c->n; at->instruction++, at->call = 0) {
        const sm_instruction *it = &c->instruction[at->instruction];
        if (at->call < it->calls) return it->call[at->call++];
    }
    return -1;
}

/* Depth first, without recursion: a text may nest calls as deeply as it likes. False: a circle. */
static bool visit(walk *w, stop *stack, int first) {
    int depth = 0;
    if (w->state[first]) return true;
    stack[depth++] = (stop){first, 0, 0};
    w->state[first] = 1;
    while (depth > 0) {
        int next = next_call(w->module, &stack[depth - 1]);
        if (next < 0) {
            int done = stack[--depth].computation;
            w->state[done] = 2;
            w->order[w->n++] = done;
        } else if (w->state[next] == 1) {
            return false;
        } else if (w->state[next] == 0) {
            w->state[next] = 1;
            stack[depth++] = (stop){next, 0, 0};
        }
    }
    return true;
}

static sm_status order_calls(const sm_module *module, sm_arena *arena, int **order, sm_error *err) {
    size_t n = (size_t)module->computations;
    walk w = {.module = module};
    stop *stack = sm_arena_array(arena, n, sizeof *stack);
    w.state = sm_arena_array(arena, n, sizeof *w.state);
    w.order = sm_arena_array(arena, n, sizeof *w.order);
    if (!stack || !w.state || !w.order) return sm_fail_memory(err);
    *order = w.order;
    for (int i = 0; i < module->computations; i++)
        if (!visit(&w, stack, i))
            return sm_fail(err, SM_BAD_INPUT, "computations of the module call each other");
    return SM_OK;
}

/* ---- how often each runs ---- */

static void runs_of_calls(const sm_module *module, const sm_computation *in, sm_module_runs *runs,
                          const sm_module_runs *own) {
    for (int i = 0; i < in->n; i++) {
        const sm_instruction *it = &in->instruction[i];
        sm_module_runs each = *own;
        if (it->opcode == SM_OPCODE_WHILE) {
            int64_t trips = sm_module_trips(module, in, it);
            each.times *= trips < 0 ? 1 : (double)trips;
            each.guessed = each.guessed || trips < 0;
        } else if (it->opcode == SM_OPCODE_CONDITIONAL) {
            each.guessed = true;
        } else if (it->opcode != SM_OPCODE_CALL) {
            continue;
        }
        for (int k = 0; k < it->calls; k++) {
            runs[it->call[k]].times += each.times;
            runs[it->call[k]].guessed = runs[it->call[k]].guessed || each.guessed;
        }
    }
}

/* ---- what is written to memory ---- */

static bool is_fused(const sm_module *module) {
    for (int c = 0; c < module->computations; c++)
        for (int i = 0; i < module->computation[c].n; i++)
            if (module->computation[c].instruction[i].opcode == SM_OPCODE_FUSION) return true;
    return module->scheduled;
}

static sm_status all_written(const sm_module *module, sm_arena *arena, const bool *const **out,
                             sm_error *err) {
    *out = NULL;
    if (is_fused(module)) return SM_OK;
    const bool **all = sm_arena_array(arena, (size_t)module->computations, sizeof *all);
    if (!all) return sm_fail_memory(err);
    for (int c = 0; c < module->computations; c++) {
        bool *written = sm_arena_array(arena, (size_t)module->computation[c].n, sizeof *written);
        if (!written) return sm_fail_memory(err);
        /* A result that more than pointwise kernels and reductions read; all but pointwise results.
         */
        for (int i = 0; i < module->computation[c].n; i++) {
            const sm_instruction *it = &module->computation[c].instruction[i];
            bool fuses = module_is_fusable(it->opcode) || it->opcode == SM_OPCODE_REDUCE;
            if (!module_is_fusable(it->opcode)) written[i] = true;
            for (int o = 0; o < it->operands && !fuses; o++) written[it->operand[o]] = true;
        }
        written[module->computation[c].root] = true;
        all[c] = written;
    }
    *out = all;
    return SM_OK;
}

sm_status sm_module_analyse(const sm_module *module, sm_arena *arena,
                            const sm_module_analysis **out, sm_error *err) {
    size_t n = (size_t)module->computations;
    int *order = NULL;
    sm_status status = order_calls(module, arena, &order, err);
    if (status) return status;
    sm_module_analysis *a = sm_arena_alloc(arena, sizeof *a);
    sm_module_work *inner = sm_arena_array(arena, n, sizeof *inner);
    sm_module_runs *runs = sm_arena_array(arena, n, sizeof *runs);
    if (!a || !inner || !runs) return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const sm_computation *c = &module->computation[order[i]];
        for (int k = 0; k < c->n; k++)
            module_flops_of(c, &c->instruction[k], inner, &inner[order[i]]);
    }
    runs[module->entry].times = 1;
    for (size_t i = n; i-- > 0;)
        if (runs[order[i]].times > 0)
            runs_of_calls(module, &module->computation[order[i]], runs, &runs[order[i]]);
    const bool *const *written;
    status = all_written(module, arena, &written, err);
    if (status) return status;
    *a = (sm_module_analysis){module, inner, runs, order, written};
    *out = a;
    return SM_OK;
}
