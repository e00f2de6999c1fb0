/* StableHLO: computations as they are made: instructions, their names, what regions read of those
 * around them. */

#include "mlir_reader.h"

bool mlir_next_is(mlir_reader *m, const char *word) {
    hlo_reader *r = m->r;
    hlo_next(r);
    size_t at = r->at;
    bool is = hlo_is(r, hlo_name(r), word);
    r->at = at;
    return is;
}

/* ---- instructions and their names ---- */

sm_instruction *mlir_at(mlir_body *b, int i) { return (sm_instruction *)b->instructions.item + i; }

int mlir_emit(mlir_reader *m, mlir_body *b, const sm_instruction *it) {
    if (m->made++ >= MLIR_MOST_INSTRUCTIONS) {
        hlo_fail(m->r, (sm_span){m->r->at, 1},
                 "with its calls the module has more than %d operations", MLIR_MOST_INSTRUCTIONS);
        return 0;
    }
    sm_instruction *place = hlo_push(m->r, &b->instructions, sizeof *place);
    if (!place) return 0;
    *place = *it;
    place->opcode_name = it->opcode_name ? it->opcode_name : sm_module_opcode_name(it->opcode);
    if (!place->name) place->name = place->opcode_name;
    place->line = m->r->line;
    return (int)b->instructions.n - 1;
}

sm_instruction mlir_blank(sm_module_opcode opcode, const sm_module_shape *shape) {
    return (sm_instruction){
        .opcode = opcode, .shape = shape, .op_name = "", .file = "", .target = "", .trips = -1};
}

bool mlir_with_operands(mlir_reader *m, sm_instruction *it, const int *operand, size_t n) {
    int *list = sm_arena_array(m->r->arena, n + 1, sizeof *list);
    if (!list) return hlo_no_memory(m->r);
    if (n) memcpy(list, operand, n * sizeof *list);
    it->operand = list;
    it->operands = (int)n;
    return true;
}

int mlir_emit_of(mlir_reader *m, mlir_body *b, sm_instruction it, const int *operand, size_t n) {
    return mlir_with_operands(m, &it, operand, n) ? mlir_emit(m, b, &it) : 0;
}

int mlir_element_of(mlir_reader *m, mlir_body *b, int tuple, int i, const sm_module_shape *shape) {
    sm_instruction it = mlir_blank(SM_OPCODE_GET_TUPLE_ELEMENT, shape);
    it.number = i;
    return mlir_emit_of(m, b, it, &tuple, 1);
}

bool mlir_keep_int(mlir_reader *m, hlo_list *list, int value) {
    int *place = hlo_push(m->r, list, sizeof *place);
    if (place) *place = value;
    return place != NULL;
}

bool mlir_bind(mlir_reader *m, sm_span name, const int *value, int n) {
    mlir_scope *s = m->scope;
    int first = (int)s->values.n;
    for (int i = 0; i < n; i++)
        if (!mlir_keep_int(m, &s->values, value[i])) return false;
    return module_names_set(&s->names, m->r->source->text + name.offset, name.length, first) ||
           hlo_no_memory(m->r);
}

/* A value of the computation `from`, around this one, in this one. */
static int capture(mlir_reader *m, mlir_body *b, const mlir_body *from, int value) {
    if (b == from || m->r->status) return value;
    int outer = capture(m, b->outer, from, value);
    const mlir_captured *had = b->captured.item;
    for (size_t i = 0; i < b->captured.n; i++)
        if (had[i].outer == outer) return had[i].inner;
    if (b->captured.n == MLIR_MOST_CAPTURED) {
        hlo_fail_here(m->r, "a region reads too many values of those around it");
        return 0;
    }
    sm_instruction it = *mlir_at(b->outer, outer);
    bool handed = it.opcode != SM_OPCODE_CONSTANT;
    int inner = handed ? mlir_element_of(m, b, b->parameter, b->arguments + b->handed++, it.shape)
                       : mlir_emit(m, b, &it);
    mlir_captured *place = hlo_push(m->r, &b->captured, sizeof *place);
    if (place) *place = (mlir_captured){outer, inner, handed};
    return inner;
}

/* %name or %name#2: an instruction of the computation at hand. */
bool mlir_read_value(mlir_reader *m, int *out) {
    hlo_reader *r = m->r;
    int64_t part = 0;
    sm_span name = hlo_name(r);
    if (r->at < r->source->length && r->source->text[r->at] == '#') {
        r->at++;
        if (!hlo_number(r, &part) || part < 0 || part > INT32_MAX)
            return hlo_fail_here(m->r, "expected the number of a result");
    }
    for (mlir_scope *s = m->scope; s; s = s->outer) {
        int first = module_names_find(&s->names, r->source->text + name.offset, name.length);
        if (first < 0) continue;
        if (first + part >= (int64_t)s->values.n) break;
        *out = capture(m, m->scope->body, s->body, ((const int *)s->values.item)[first + part]);
        return !r->status;
    }
    return hlo_fail(r, name.length ? name : (sm_span){r->at, 1},
                    name.length ? "no value of this name stands before this one"
                                : "expected a value");
}

void mlir_enter(mlir_reader *m, mlir_scope *s, mlir_scope *outer, mlir_body *body) {
    *s = (mlir_scope){.outer = outer, .body = body};
    m->scope = s;
    if (++m->depth > HLO_MOST_DEPTH)
        hlo_fail_here(m->r, "functions and regions within each other: too many");
}

void mlir_leave(mlir_reader *m, mlir_scope *s, mlir_scope *back) {
    module_names_free(&s->names);
    sm_free(s->values.item);
    m->scope = back;
    m->depth--;
}

/* A computation of a body: its number. */
int mlir_finish_body(mlir_reader *m, mlir_body *b, int root, const char *name) {
    hlo_reader *r = m->r;
    sm_computation c = {.name = name, .n = (int)b->instructions.n, .root = root};
    sm_instruction *list = sm_arena_array(r->arena, (size_t)c.n + 1, sizeof *list);
    sm_computation *place = list ? hlo_push(r, &r->computations, sizeof *place) : NULL;
    if (!list) hlo_no_memory(r);
    if (!place) return 0;
    if (c.n) memcpy(list, b->instructions.item, (size_t)c.n * sizeof *list);
    c.instruction = list;
    *place = c;
    return (int)r->computations.n - 1;
}

void mlir_free_body(mlir_body *b) {
    sm_free(b->instructions.item);
    sm_free(b->captured.item);
}

int mlir_tuple_of(mlir_reader *m, mlir_body *b, const int *value, size_t n) {
    const sm_module_shape **shape = sm_arena_array(m->r->arena, n + 1, sizeof *shape);
    if (!shape) return hlo_no_memory(m->r), 0;
    for (size_t i = 0; i < n; i++) shape[i] = mlir_at(b, value[i])->shape;
    const sm_module_shape *whole = mlir_tuple_shape(m, shape, (int)n);
    return whole ? mlir_emit_of(m, b, mlir_blank(SM_OPCODE_TUPLE, whole), value, n) : 0;
}

/* ---- what operations have in common ---- */

/* Results of an instruction that makes a tuple, its first n elements. */
bool mlir_take_elements(mlir_reader *m, int tuple, int n) {
    mlir_body *b = m->scope->body;
    m->returned.n = 0;
    for (int i = 0; i < n && !m->r->status; i++) {
        const sm_module_shape *shape = mlir_at(b, tuple)->shape;
        if (i >= shape->parts) return hlo_fail_here(m->r, "more results than the operation has");
        mlir_keep_int(m, &m->returned, mlir_element_of(m, b, tuple, i, &shape->part[i]));
    }
    return !m->r->status;
}

bool mlir_skip_types(mlir_reader *m) {
    do
        if (!mlir_type(m)) return false;
    while (hlo_accept(m->r, ','));
    return !m->r->status;
}

/* (a, b) -> (c, d), (a) -> c, a -> (c, d), or the types of operands and result alike. */
bool mlir_result_types(mlir_reader *m, hlo_list *types, int results) {
    hlo_reader *r = m->r;
    for (bool after = false;; after = true) {
        bool list = hlo_accept(r, '(');
        types->n = 0;
        while (!r->status && !(list && hlo_accept(r, ')'))) {
            const sm_module_shape *type = mlir_type(m), **place;
            if (!type || !(place = hlo_push(r, types, sizeof *place))) return false;
            *place = type;
            if (!hlo_accept(r, ',') && !list) break;
        }
        if (r->status) return false;
        if (after || !hlo_accept(r, '-')) break;
        if (!hlo_expect(r, '>', "between types")) return false;
    }
    if (results == 1 && types->n > 1) { /* of operands and result: the last */
        const sm_module_shape **type = types->item;
        type[0] = type[types->n - 1];
        types->n = 1;
    }
    return true;
}

bool mlir_read_operand_list(mlir_reader *m, hlo_list *out) {
    if (!hlo_expect(m->r, '(', "before values")) return false;
    for (int value = -1; !m->r->status && !hlo_accept(m->r, ')');) {
        if (out->n && !hlo_expect(m->r, ',', "between values")) return false;
        if (!mlir_read_value(m, &value) || !mlir_keep_int(m, out, value)) return false;
    }
    return !m->r->status;
}

int mlir_resharded(mlir_reader *m, int value, const char *target, const sm_module_shape *shape,
                   const sm_module_sharding *sharding) {
    sm_instruction it = mlir_blank(SM_OPCODE_CUSTOM_CALL, shape);
    it.target = target;
    it.sharding = sharding;
    it.op_name = mlir_at(m->scope->body, value)->op_name;
    it.file = mlir_at(m->scope->body, value)->file;
    it.file_line = mlir_at(m->scope->body, value)->file_line;
    return mlir_emit_of(m, m->scope->body, it, &value, 1);
}
