/* StableHLO: operations with regions: loops, branches, shard_map. */

#include <assert.h>

#include "mlir_reader.h"

/* ---- loops and branches ---- */

/* Begin a region's computation: its parameter is a tuple that is known at its end. */
static void begin_body(mlir_reader *m, mlir_body *b, int arguments) {
    *b = (mlir_body){.outer = m->scope->body, .arguments = arguments};
    sm_instruction it = mlir_blank(SM_OPCODE_PARAMETER, NULL);
    it.known = true;
    it.shape = mlir_tuple_shape(m, NULL, 0);
    b->parameter = mlir_emit(m, b, &it);
}

/* Its arguments are elements of the tuple, under the names of these spans. */
static bool bind_arguments(mlir_reader *m, mlir_body *b, const sm_span *name, const int *init) {
    assert(init || b->arguments == 0);
    for (int i = 0; i < b->arguments && !m->r->status; i++) {
        int e = mlir_element_of(m, b, b->parameter, i, mlir_at(b->outer, init[i])->shape);
        mlir_bind(m, name[i], &e, 1);
    }
    return !m->r->status;
}

/* '{' statements '}' in a scope of its own; what it returned is in m->returned. */
static bool read_region(mlir_reader *m, mlir_body *b, const sm_span *name, const int *init) {
    mlir_scope s, *outer = m->scope;
    mlir_enter(m, &s, outer, b);
    bool read = bind_arguments(m, b, name, init) && hlo_expect(m->r, '{', "before a region") &&
                mlir_read_block(m);
    mlir_leave(m, &s, outer);
    return read && !m->r->status;
}

static void set_parameter(mlir_reader *m, mlir_body *b, const mlir_body *outer, int tuple) {
    if (!m->r->status)
        mlir_at(b, b->parameter)->shape = mlir_at((mlir_body *)(uintptr_t)outer, tuple)->shape;
}

/* What a region was handed beyond its arguments. */
static bool keep_handed(mlir_reader *m, const mlir_body *b, hlo_list *values) {
    const mlir_captured *c = b->captured.item;
    for (size_t i = 0; i < b->captured.n; i++)
        if (c[i].handed && !mlir_keep_int(m, values, c[i].outer)) return false;
    return true;
}

typedef struct loop {
    hlo_list names, values; /* sm_span, int: what it carries */
    mlir_body condition, body;
} loop;

/* Handed-in values of the condition pass through the body, those of the body come after them. */
static void join_handed(mlir_reader *m, loop *l) {
    int of_condition = l->condition.handed, first = l->body.arguments;
    mlir_captured *c = l->body.captured.item;
    for (size_t i = 0; i < l->body.captured.n; i++)
        if (c[i].handed) mlir_at(&l->body, c[i].inner)->number += of_condition;
    const mlir_captured *k = l->condition.captured.item;
    int n = 0;
    for (size_t i = 0; i < l->condition.captured.n && !m->r->status; i++) {
        if (!k[i].handed) continue;
        int e = mlir_element_of(m, &l->body, l->body.parameter, first + n++,
                                mlir_at(l->body.outer, k[i].outer)->shape);
        mlir_keep_int(m, &m->returned, e);
    }
    for (size_t i = 0; i < l->body.captured.n && !m->r->status; i++) {
        c = l->body.captured.item;
        if (c[i].handed) mlir_keep_int(m, &m->returned, c[i].inner);
    }
}

static bool read_loop_regions(mlir_reader *m, loop *l, int calls[2]) {
    const sm_span *name = l->names.item;
    const int *init = l->values.item;
    int n = (int)l->names.n;
    begin_body(m, &l->condition, n);
    begin_body(m, &l->body, n);
    if (!hlo_is(m->r, hlo_name(m->r), "cond"))
        return hlo_fail_here(m->r, "expected the condition of a loop");
    if (!read_region(m, &l->condition, name, init)) return false;
    if (m->returned.n != 1) return hlo_fail_here(m->r, "a condition returns one value");
    int root = *(int *)m->returned.item;
    if (!hlo_is(m->r, hlo_name(m->r), "do"))
        return hlo_fail_here(m->r, "expected the body of a loop");
    if (!read_region(m, &l->body, name, init)) return false;
    if ((int)m->returned.n != n)
        return hlo_fail_here(m->r, "a loop returns as many values as it carries");
    join_handed(m, l);
    int next = m->r->status ? 0 : mlir_tuple_of(m, &l->body, m->returned.item, m->returned.n);
    if (m->r->status || !keep_handed(m, &l->condition, &l->values) ||
        !keep_handed(m, &l->body, &l->values))
        return false;
    mlir_body *outer = m->scope->body;
    int tuple = mlir_tuple_of(m, outer, l->values.item, l->values.n);
    if (m->r->status) return false;
    set_parameter(m, &l->condition, outer, tuple);
    set_parameter(m, &l->body, outer, tuple);
    calls[0] = mlir_finish_body(m, &l->condition, root, "condition");
    calls[1] = mlir_finish_body(m, &l->body, next, "body");
    return !m->r->status && mlir_keep_int(m, &l->values, tuple);
}

static bool read_loop_head(mlir_reader *m, loop *l) {
    hlo_reader *r = m->r;
    if (!hlo_expect(r, '(', "after while")) return false;
    while (!r->status && !hlo_accept(r, ')')) {
        if (l->names.n && !hlo_expect(r, ',', "between values")) break;
        sm_span name = hlo_name(r), *place;
        int value = 0;
        if (!name.length || !hlo_expect(r, '=', "after the name of a value")) break;
        if (!mlir_read_value(m, &value) || !mlir_keep_int(m, &l->values, value)) break;
        if ((place = hlo_push(r, &l->names, sizeof *place))) *place = name;
    }
    if (r->status || (hlo_accept(r, ':') && !mlir_skip_types(m))) return false;
    sm_instruction ignored = mlir_blank(SM_OPCODE_WHILE, NULL);
    if (!mlir_next_is(m, "attributes")) return true;
    hlo_name(r);
    return hlo_expect(r, '{', "after attributes") && mlir_attributes(m, &ignored, '}');
}

bool mlir_read_while(mlir_reader *m) {
    loop l = {0};
    int *calls = sm_arena_array(m->r->arena, 2, sizeof *calls);
    if (!calls) return hlo_no_memory(m->r);
    bool read = read_loop_head(m, &l) && read_loop_regions(m, &l, calls);
    if (read) {
        mlir_body *b = m->scope->body;
        int tuple = ((int *)l.values.item)[l.values.n - 1];
        sm_instruction it = mlir_blank(SM_OPCODE_WHILE, mlir_at(b, tuple)->shape);
        it.calls = 2;
        it.call = calls;
        mlir_place(m, &it);
        int made = m->r->status ? 0 : mlir_emit_of(m, b, it, &tuple, 1);
        read = !m->r->status && mlir_take_elements(m, made, (int)l.names.n);
    }
    mlir_free_body(&l.condition);
    mlir_free_body(&l.body);
    sm_free(l.names.item);
    sm_free(l.values.item);
    return read;
}

/* "stablehlo.case"(%index) ({...}, {...}) : types; if has two of them. */
enum { MOST_BRANCHES = 64 };
static bool read_branch(mlir_reader *m, hlo_list *operands, int *call) {
    mlir_body b;
    hlo_list handed = {0};
    begin_body(m, &b, 0);
    bool read = read_region(m, &b, NULL, NULL);
    int root = read ? mlir_tuple_of(m, &b, m->returned.item, m->returned.n) : 0;
    read = read && keep_handed(m, &b, &handed);
    int tuple = read && !m->r->status ? mlir_tuple_of(m, b.outer, handed.item, handed.n) : 0;
    set_parameter(m, &b, b.outer, tuple);
    if (!m->r->status) *call = mlir_finish_body(m, &b, root, "branch");
    mlir_free_body(&b);
    sm_free(handed.item);
    return read && !m->r->status && mlir_keep_int(m, operands, tuple);
}

static bool read_branches(mlir_reader *m, hlo_list *operands, sm_instruction *it, int *call) {
    hlo_reader *r = m->r;
    int value;
    if (!hlo_expect(r, '(', "before what is asked") || !mlir_read_value(m, &value)) return false;
    if (!mlir_keep_int(m, operands, value) || !hlo_expect(r, ')', "after what is asked"))
        return false;
    if (!hlo_expect(r, '(', "before branches")) return false;
    for (; !r->status && !hlo_accept(r, ')'); it->calls++) {
        if (it->calls && !hlo_expect(r, ',', "between branches")) return false;
        if (it->calls == MOST_BRANCHES) return hlo_fail_here(m->r, "too many branches");
        if (!read_branch(m, operands, &call[it->calls])) return false;
    }
    return !r->status && it->calls > 0 && hlo_expect(r, ':', "before types");
}

bool mlir_read_case(mlir_reader *m) {
    hlo_list operands = {0}, types = {0};
    int *call = sm_arena_array(m->r->arena, MOST_BRANCHES, sizeof *call);
    sm_instruction it = mlir_blank(SM_OPCODE_CONDITIONAL, NULL);
    it.call = call;
    if (!call) return hlo_no_memory(m->r);
    bool read = read_branches(m, &operands, &it, call) && mlir_result_types(m, &types, 1);
    if (read) {
        const sm_computation *first = (const sm_computation *)m->r->computations.item + call[0];
        it.shape = first->instruction[first->root].shape;
        mlir_place(m, &it);
        int made =
            m->r->status ? 0 : mlir_emit_of(m, m->scope->body, it, operands.item, operands.n);
        read = !m->r->status && mlir_take_elements(m, made, it.shape->parts);
    }
    sm_free(operands.item);
    sm_free(types.item);
    return read;
}

/* ---- shard_map ---- */

/* [<@mesh, ...>, ...] */
static bool read_shardings(mlir_reader *m, hlo_list *out) {
    if (!hlo_expect(m->r, '[', "before shardings")) return false;
    while (!m->r->status && !hlo_accept(m->r, ']')) {
        if (hlo_accept(m->r, ',')) continue;
        const sm_module_sharding *s = mlir_sharding(m), **place;
        if (!s || !(place = hlo_push(m->r, out, sizeof *place))) return false;
        *place = s;
    }
    return !m->r->status;
}

typedef struct border { /* of a shard_map */
    hlo_list values, in, out, types;
} border;

static bool enter_border(mlir_reader *m, border *b) {
    hlo_reader *r = m->r;
    const sm_module_sharding *const *in = b->in.item;
    if (!hlo_expect(r, '(', "before arguments")) return false;
    for (size_t i = 0; !r->status && !hlo_accept(r, ')'); i++) {
        if (i && !hlo_expect(r, ',', "between arguments")) return false;
        sm_span name = hlo_name(r);
        if (!name.length || !hlo_expect(r, ':', "after the name of an argument")) return false;
        const sm_module_shape *shape = mlir_type(m);
        sm_instruction ignored = {0};
        if (!shape) return false;
        mlir_place(m, &ignored);
        if (i >= b->in.n || i >= b->values.n)
            return hlo_fail_here(m->r, "more arguments than shardings");
        int value =
            mlir_resharded(m, ((int *)b->values.item)[i], "SPMDFullToShardShape", shape, in[i]);
        mlir_bind(m, name, &value, 1);
    }
    return hlo_expect(r, '{', "before a region") && mlir_read_block(m);
}

static bool leave_border(mlir_reader *m, const border *b) {
    const sm_module_sharding *const *out = b->out.item;
    const sm_module_shape *const *type = b->types.item;
    int *value = m->returned.item;
    if (m->returned.n != b->out.n || b->types.n != b->out.n)
        return hlo_fail_here(m->r, "as many results as shardings are expected");
    for (size_t i = 0; i < m->returned.n && !m->r->status; i++)
        value[i] = mlir_resharded(m, value[i], "SPMDShardToFullShape", type[i], out[i]);
    return !m->r->status;
}

static bool read_border(mlir_reader *m, border *b, int results) {
    hlo_reader *r = m->r;
    mlir_scope s, *outer = m->scope;
    sm_module_list manual;
    if (!mlir_read_operand_list(m, &b->values)) return false;
    while (!r->status && hlo_next(r) != '(') {
        sm_span key = hlo_name(r);
        if (!hlo_expect(r, '=', "after a key")) return false;
        if (hlo_is(r, key, "in_shardings")) read_shardings(m, &b->in);
        else if (hlo_is(r, key, "out_shardings")) read_shardings(m, &b->out);
        else if (hlo_expect(r, '{', "before axes")) mlir_axes(m, &manual);
    }
    if (r->status) return false;
    mlir_enter(m, &s, outer, outer->body);
    bool read = !r->status && enter_border(m, b);
    mlir_leave(m, &s, outer);
    return read && hlo_expect(r, ':', "before types") && mlir_result_types(m, &b->types, results) &&
           leave_border(m, b);
}

bool mlir_read_manual(mlir_reader *m, int results) {
    border b = {0};
    sm_instruction ignored = {0};
    bool read = read_border(m, &b, results);
    if (read) mlir_place(m, &ignored);
    sm_free(b.values.item);
    sm_free(b.in.item);
    sm_free(b.out.item);
    sm_free(b.types.item);
    return read && !m->r->status;
}
