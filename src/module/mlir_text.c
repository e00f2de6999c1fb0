/* StableHLO: the text of a module, its functions and operations. */
#include <assert.h>
#include <stdlib.h>

#include "mlir_reader.h"

/* ---- functions ---- */

static const mlir_function *function_called(const mlir_reader *m, sm_span name) {
    const mlir_function *f = m->functions.item;
    const char *text = m->r->source->text;
    for (size_t i = 0; i < m->functions.n; i++)
        if (f[i].name.length == name.length &&
            !memcmp(text + f[i].name.offset, text + name.offset, name.length))
            return &f[i];
    return NULL;
}

/* {sdy.sharding = ..., tf.aliasing_output = 1 : i32} after a type: where it is next. */
static bool argument_attributes(mlir_reader *m, sm_instruction *it, hlo_list *in_place) {
    hlo_reader *r = m->r;
    if (!hlo_accept(r, '{')) return !r->status;
    size_t from = r->at;
    if (!mlir_attributes(m, it, '}') || !mlir_xla_asked(m, it)) return false;
    int64_t result =
        module_number_after(r->source->text + from, r->at - from, "tf.aliasing_output");
    int64_t *place = result >= 0 && in_place ? hlo_push(r, in_place, sizeof *place) : NULL;
    if (place) *place = result;
    return !r->status;
}

/* (%a: type, ...) of a function: n given values take the names; n < 0: parameters are made. */
static bool read_arguments(mlir_reader *m, const int *given, int n, hlo_list *in_place) {
    hlo_reader *r = m->r;
    if (!hlo_expect(r, '(', "before arguments")) return false;
    for (int i = 0; !r->status && !hlo_accept(r, ')'); i++) {
        if (i && !hlo_expect(r, ',', "between arguments")) break;
        sm_span name = hlo_name(r);
        if (!name.length || !hlo_expect(r, ':', "after the name of an argument")) break;
        sm_instruction it = mlir_blank(SM_OPCODE_PARAMETER, mlir_type(m));
        it.name = it.shape ? hlo_copy(r, name) : NULL;
        it.number = i;
        it.known = true;
        if (!it.shape || !argument_attributes(m, &it, in_place)) break;
        mlir_place(m, &it);
        if (n >= 0 && i >= n)
            return hlo_fail_here(m->r, "a call gives fewer values than its function takes");
        int value = n >= 0 ? given[i] : mlir_emit(m, m->scope->body, &it);
        mlir_bind(m, name, &value, 1);
    }
    return !r->status;
}

/* -> (type {attributes}, ...): of each result its sharding. */
static bool read_results(mlir_reader *m, hlo_list *shardings) {
    hlo_reader *r = m->r;
    if (!hlo_accept(r, '-')) return !r->status;
    if (!hlo_expect(r, '>', "before the types of results")) return false;
    bool list = hlo_accept(r, '(');
    while (!r->status && !(list && hlo_accept(r, ')'))) {
        if (list && hlo_accept(r, ',')) continue;
        sm_instruction it = {.shape = mlir_type(m)};
        if (!it.shape) break;
        if (list && !argument_attributes(m, &it, NULL)) break;
        const sm_module_sharding **place = shardings ? hlo_push(r, shardings, sizeof *place) : NULL;
        if (place) *place = it.sharding;
        if (!list) break;
    }
    if (mlir_next_is(m, "attributes")) {
        hlo_name(r);
        if (hlo_next(r) == '{') hlo_skip_brackets(r);
    }
    return !r->status;
}

/* A function's statements, where the reader stands before its arguments. */
static bool read_function(mlir_reader *m, const mlir_function *f, const int *given, int n,
                          hlo_list *in_place, hlo_list *shardings) {
    assert(f);
    hlo_reader *r = m->r;
    mlir_scope s, *back = m->scope;
    size_t then = r->at;
    int line = r->line;
    mlir_enter(m, &s, NULL, back->body);
    r->at = f->at;
    r->line = f->line;
    bool read = !r->status && read_arguments(m, given, n, in_place) && read_results(m, shardings) &&
                hlo_expect(r, '{', "before the statements of a function") && mlir_read_block(m);
    mlir_leave(m, &s, back);
    m->bytes += r->at - f->at;
    if (read && m->bytes > MLIR_MOST_BYTES)
        return hlo_fail(r, f->name, "with its calls the module has more than %d bytes",
                        MLIR_MOST_BYTES);
    if (read) {
        r->at = then;
        r->line = line;
    }
    return read;
}

static bool read_call(mlir_reader *m, int results) {
    hlo_reader *r = m->r;
    hlo_list given = {0}, types = {0};
    const char *prefix = m->prefix;
    sm_instruction where = mlir_blank(SM_OPCODE_CALL, NULL);
    sm_span name = {r->at, 1};
    bool read = hlo_expect(r, '@', "before the name of a function") && (name = hlo_name(r)).length;
    const mlir_function *f = read ? function_called(m, name) : NULL;
    if (!f) hlo_fail(r, name, "the module has no function of this name");
    if (!r->status) {
        read = mlir_read_operand_list(m, &given) &&
               (hlo_next(r) != '{' || (hlo_skip_brackets(r), true)) &&
               hlo_expect(r, ':', "before types") && mlir_result_types(m, &types, results);
        if (read) mlir_place(m, &where);
        m->prefix = where.op_name;
        read = read && !r->status && read_function(m, f, given.item, (int)given.n, NULL, NULL);
        m->prefix = prefix;
    }
    sm_free(given.item);
    sm_free(types.item);
    return read && !r->status;
}

/* ---- one operation ---- */

static const struct {
    const char *name;
    sm_module_opcode opcode;
} other_names[] = {
    {"dot_general", SM_OPCODE_DOT},
    {"broadcast_in_dim", SM_OPCODE_BROADCAST},
    {"optimization_barrier", SM_OPCODE_OPT_BARRIER},
    {"top_k", SM_OPCODE_TOP_K},
    {"bitcast_convert", SM_OPCODE_BITCAST_CONVERT},
    {"sharding_constraint", SM_OPCODE_CUSTOM_CALL},
    {"round_nearest_afz", SM_OPCODE_ROUND},
};

/* stablehlo.dynamic_slice is dynamic-slice; what has no such name is kept under its own. */
static sm_module_opcode opcode_of(const hlo_reader *r, sm_span name) {
    char word[48];
    const char *text = r->source->text + name.offset;
    size_t from = 0, n = 0;
    for (size_t i = 0; i < name.length; i++)
        if (text[i] == '.') from = i + 1;
    if (name.length - from >= sizeof word) return SM_OPCODE_OTHER;
    for (size_t i = from; i < name.length; i++) word[n++] = text[i];
    word[n] = '\0';
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(word, other_names[i].name)) return other_names[i].opcode;
    for (size_t i = 0; i < n; i++)
        if (word[i] == '_') word[i] = '-';
    return module_opcode_of(word, n);
}

/* dense<3> of an array without dimensions is a number that is known. */
static bool read_constant(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    hlo_name(r);
    if (!hlo_expect(r, '<', "before the value of a constant")) return false;
    it->known = hlo_number(r, &it->number) && hlo_next(r) == '>';
    for (sm_span quoted; !r->status && hlo_next(r) >= 0 && !hlo_accept(r, '>');)
        if (hlo_next(r) == '[') hlo_skip_brackets(r);
        else if (!hlo_quoted(r, &quoted)) r->at++;
    return !r->status;
}

/* Words before a type that are neither keys nor values: "across", "init:", "applies op". */
static bool read_word(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    sm_span word = hlo_name(r);
    if (!word.length) {
        if (hlo_next(r) < 0) return hlo_fail_here(m->r, "an operation has no end");
        r->at++;
        return !r->status;
    }
    if (it->opcode == SM_OPCODE_COMPARE && !it->direction)
        it->direction = module_direction_of(r->source->text + word.offset, word.length);
    if (hlo_is(r, word, "init")) hlo_accept(r, ':');
    return !hlo_accept(r, '=') || mlir_attribute(m, it, word, false);
}

/* Operands and attributes, in whatever order they stand, up to the ':' before types. */
static bool read_parts(mlir_reader *m, sm_instruction *it, hlo_list *operands) {
    hlo_reader *r = m->r;
    sm_span quoted;
    bool bracket = false; /* a '(' or ',' came last: a brace begins a region */
    for (int value; !r->status && !hlo_accept(r, ':');) {
        int next = hlo_next(r);
        bool region = bracket && next == '{';
        bracket = next == '(' || next == ',';
        if (next == '%') {
            if (!mlir_read_value(m, &value) || !mlir_keep_int(m, operands, value)) return false;
        } else if (region || next == '[') {
            hlo_skip_brackets(r);
        } else if (next == '{') {
            r->at++;
            if (!mlir_attributes(m, it, '}')) return false;
        } else if (next == '<') {
            if (r->at + 1 < r->source->length && r->source->text[r->at + 1] == '@') {
                if (!(it->sharding = mlir_sharding(m))) return false;
            } else {
                r->at++;
            }
        } else if (next == '@') {
            r->at++;
            it->target = hlo_copy(r, hlo_name(r));
        } else if (next == '"') {
            hlo_quoted(r, &quoted);
        } else if (!read_word(m, it)) {
            return false;
        }
    }
    return !r->status;
}

/* reducer(%a: t) (%b: t) { ... } after the types of a reduction. */
static void skip_reducer(mlir_reader *m) {
    if (!mlir_next_is(m, "reducer")) return;
    hlo_name(m->r);
    while (!m->r->status && (hlo_next(m->r) == '(' || hlo_next(m->r) == '{')) {
        bool last = hlo_next(m->r) == '{';
        hlo_skip_brackets(m->r);
        if (last) return;
    }
}

static bool emit_operation(mlir_reader *m, sm_instruction *it, const hlo_list *operands,
                           const hlo_list *types, int results) {
    mlir_body *b = m->scope->body;
    const sm_module_shape *const *type = types->item;
    m->returned.n = 0;
    if (results > 0 && (int)types->n < results)
        return hlo_fail_here(m->r, "fewer types than the operation has results");
    if (results == 0 && types->n == 0) return true;
    it->shape = results > 1 ? mlir_tuple_shape(m, type, results) : type[0];
    if (!it->shape || !mlir_with_operands(m, it, operands->item, operands->n)) return false;
    if (!mlir_xla_asked(m, it)) return false;
    /* Into a shard_map: what it divides lies as it does. */
    if (it->operands == 1 && it->target && !strcmp(it->target, "SPMDFullToShardShape"))
        it->sharding = mlir_at(b, it->operand[0])->sharding;
    const sm_computation in = {.instruction = b->instructions.item, .n = (int)b->instructions.n};
    mlir_complete(m, &in, it);
    if (it->opcode == SM_OPCODE_CONSTANT && it->shape->dim.n) it->known = false;
    int made = mlir_emit(m, b, it);
    if (m->r->status) return false;
    return results > 1 ? mlir_take_elements(m, made, results)
                       : mlir_keep_int(m, &m->returned, made);
}

static bool read_generic(mlir_reader *m, sm_span name, int results) {
    hlo_reader *r = m->r;
    hlo_list operands = {0}, types = {0};
    sm_instruction it = mlir_blank(opcode_of(r, name), NULL);
    m->asked.length = 0;
    if (it.opcode == SM_OPCODE_OTHER) it.opcode_name = hlo_copy(r, name);
    if (hlo_is(r, name, "sdy.sharding_constraint")) it.target = "Sharding";
    bool read = (it.opcode != SM_OPCODE_CONSTANT || read_constant(m, &it)) &&
                read_parts(m, &it, &operands) && mlir_result_types(m, &types, results);
    if (read) {
        skip_reducer(m);
        mlir_place(m, &it);
        read = !r->status && emit_operation(m, &it, &operands, &types, results);
    }
    sm_free(operands.item);
    sm_free(types.item);
    return read;
}

/* ---- statements ---- */

typedef struct result_name {
    sm_span name;
    int n;
} result_name;

/* %a, %b:2 = */
static bool read_names(mlir_reader *m, hlo_list *names, int *results) {
    hlo_reader *r = m->r;
    while (!r->status && hlo_next(r) == '%') {
        result_name *place, one = {hlo_name(r), 1};
        int64_t n = 1;
        if (!one.name.length) return hlo_fail_here(m->r, "expected the name of a result");
        if (hlo_accept(r, ':') && (!hlo_number(r, &n) || n < 0 || n > MLIR_MOST_CAPTURED))
            return hlo_fail_here(m->r, "expected how many results");
        one.n = (int)n;
        *results += one.n;
        if (!(place = hlo_push(r, names, sizeof *place))) return false;
        *place = one;
        if (!hlo_accept(r, ',')) return hlo_expect(r, '=', "after the names of results");
    }
    return !r->status;
}

static bool bind_results(mlir_reader *m, const hlo_list *names) {
    const result_name *name = names->item;
    size_t at_value = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (at_value + (size_t)name[i].n > m->returned.n)
            return hlo_fail(m->r, name[i].name, "more results than the operation has");
        const int *value = m->returned.item;
        if (!mlir_bind(m, name[i].name, value ? value + at_value : NULL, name[i].n)) return false;
        at_value += (size_t)name[i].n;
    }
    return true;
}

static bool read_return(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_instruction ignored = {0};
    int value;
    m->returned.n = 0;
    while (!r->status && hlo_next(r) == '%') {
        if (!mlir_read_value(m, &value) || !mlir_keep_int(m, &m->returned, value)) return false;
        hlo_accept(r, ',');
    }
    if (hlo_accept(r, ':') && !mlir_skip_types(m)) return false;
    mlir_place(m, &ignored);
    return hlo_expect(r, '}', "after what a block returns");
}

static bool read_operation(mlir_reader *m, sm_span word, int results) {
    hlo_reader *r = m->r;
    if (hlo_is(r, word, "call") || hlo_is(r, word, "func.call")) return read_call(m, results);
    if (hlo_is(r, word, "stablehlo.while")) return mlir_read_while(m);
    if (hlo_is(r, word, "stablehlo.case") || hlo_is(r, word, "stablehlo.if"))
        return mlir_read_case(m);
    if (hlo_is(r, word, "sdy.manual_computation")) return mlir_read_manual(m, results);
    return read_generic(m, word, results);
}

bool mlir_read_block(mlir_reader *m) {
    hlo_reader *r = m->r;
    for (bool ended = false; !ended && !r->status;) {
        hlo_list names = {0};
        int results = 0;
        sm_span word;
        if (hlo_next(r) == '^') { /* the label of a block: its arguments are bound already */
            while (hlo_next(r) >= 0 && !hlo_accept(r, ':'))
                hlo_next(r) == '(' ? hlo_skip_brackets(r) : (void)r->at++;
            continue;
        }
        if (read_names(m, &names, &results)) {
            if (!hlo_quoted(r, &word)) word = hlo_name(r);
            /* Whether the word ends a block: values to return, then '}'. */
            ended = hlo_is(r, word, "return") || hlo_is(r, word, "func.return") ||
                    hlo_is(r, word, "stablehlo.return") || hlo_is(r, word, "sdy.return") ||
                    hlo_is(r, word, "mhlo.return");
            if (!word.length) hlo_fail_here(m->r, "expected an operation");
            else if (ended) read_return(m);
            else if (read_operation(m, word, results)) bind_results(m, &names);
        }
        sm_free(names.item);
    }
    return !r->status;
}

/* ---- the module ---- */

/* Past the arguments, the types and the statements of a function. */
static bool note_function(mlir_reader *m) {
    hlo_reader *r = m->r;
    mlir_function *f = NULL, one = {.at = 0};
    while (hlo_next(r) >= 0 && !hlo_accept(r, '@')) r->at++;
    one.name = hlo_name(r);
    hlo_next(r);
    one.at = r->at;
    one.line = r->line;
    if (!one.name.length || hlo_next(r) != '(')
        return hlo_fail_here(m->r, "expected a function: @name(");
    if (!(f = hlo_push(r, &m->functions, sizeof *f))) return false;
    *f = one;
    while (!r->status && hlo_next(r) >= 0 && hlo_next(r) != '{') {
        if (hlo_next(r) == '(') hlo_skip_brackets(r);
        else if (mlir_next_is(m, "attributes")) {
            hlo_name(r);
            if (hlo_next(r) == '{') hlo_skip_brackets(r);
        } else if (!hlo_name(r).length) r->at++;
    }
    hlo_skip_brackets(r);
    return !r->status;
}

/* sdy.mesh @mesh = <["data"=2, "tensor"=4]>: of several the one of most devices. */
static bool note_mesh(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_module had = r->module;
    int64_t devices[2] = {1, 1};
    while (hlo_next(r) >= 0 && !hlo_accept(r, '[')) r->at++;
    const char *text = r->source->text + r->at;
    const char *end = memchr(text, ']', r->source->length - r->at);
    if (!end) return hlo_fail_here(m->r, "a mesh has no end");
    if (!hlo_axes(r, text, end)) return false;
    for (int k = 0; k < 2; k++) {
        const sm_module *of = k ? &had : &r->module;
        for (int i = 0; i < of->axes; i++)
            if (devices[k] <= HLO_MOST_DEVICES) devices[k] *= of->axis[i].size;
    }
    if (devices[0] > HLO_MOST_DEVICES) return hlo_fail_here(m->r, "the mesh has too many devices");
    if (had.axes && devices[0] < devices[1]) r->module = had;
    r->at = (size_t)(end - r->source->text);
    while (r->at < r->source->length && r->source->text[r->at] != '\n') r->at++;
    return true;
}

/* #loc12 = loc(...): in the order of their numbers once all are read. */
static bool note_location(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_span word = hlo_name(r);
    mlir_location *place, one;
    int64_t number = 0;
    if (!hlo_accept(r, '=')) return hlo_fail_here(m->r, "expected '=' after an alias");
    bool location = word.length >= 3 && !memcmp(r->source->text + word.offset, "loc", 3);
    sm_span next = hlo_name(r);
    if (!location || !hlo_is(r, next, "loc")) {
        while (r->at < r->source->length && r->source->text[r->at] != '\n') r->at++;
        return true;
    }
    for (size_t i = 3; i < word.length && number < INT32_MAX; i++)
        number = number * 10 + (r->source->text[word.offset + i] - '0');
    if (!mlir_location_of(m, &one)) return false;
    if (!(place = hlo_push(r, &m->locations, sizeof *place))) return false;
    *place = one;
    place->number = number;
    return true;
}

SM_ORDER(by_number, mlir_location, SM_ASCENDING(number))

/* module @name attributes {mhlo.num_partitions = 8 : i32} { */
static bool module_head(mlir_reader *m) {
    hlo_reader *r = m->r;
    if (hlo_accept(r, '@')) r->module.name = hlo_copy(r, hlo_name(r));
    if (mlir_next_is(m, "attributes")) {
        hlo_name(r);
        hlo_next(r);
        size_t from = r->at;
        hlo_skip_brackets(r);
        const char *text = r->source->text + from;
        int64_t partitions = module_number_after(text, r->at - from, "num_partitions");
        int64_t replicas = module_number_after(text, r->at - from, "num_replicas");
        if (partitions > HLO_MOST_DEVICES || replicas > HLO_MOST_DEVICES)
            return hlo_fail_here(m->r, "too many devices");
        if (partitions > 0) r->module.partitions = (int)partitions;
        if (replicas > 0) r->module.replicas = (int)replicas;
    }
    return hlo_expect(r, '{', "before the functions of a module");
}

/* Functions, meshes and locations, so that what comes later is known. */
static bool note_all(mlir_reader *m) {
    hlo_reader *r = m->r;
    while (!r->status && hlo_next(r) >= 0) {
        if (hlo_accept(r, '#')) {
            note_location(m);
            continue;
        }
        sm_span word = hlo_name(r);
        if (hlo_is(r, word, "module") || hlo_is(r, word, "builtin.module")) module_head(m);
        else if (hlo_is(r, word, "func.func")) note_function(m);
        else if (hlo_is(r, word, "sdy.mesh")) note_mesh(m);
        else if (hlo_is(r, word, "loc")) hlo_skip_brackets(r);
        else if (word.length)
            return hlo_fail(r, word, "expected a function: func.func public @main(");
        else if (hlo_next(r) >= 0) r->at++;
    }
    if (!r->status && !m->functions.n) hlo_fail_here(m->r, "the module has no function");
    if (!r->status && !r->module.axes) mlir_xla_mesh(m);
    if (m->locations.n) qsort(m->locations.item, m->locations.n, sizeof(mlir_location), by_number);
    return !r->status;
}

/* Results of the entry where they are asked to lie. */
static bool place_results(mlir_reader *m, const hlo_list *shardings) {
    const sm_module_sharding *const *s = shardings->item;
    int *value = m->returned.item;
    for (size_t i = 0; i < m->returned.n && i < shardings->n; i++)
        if (s[i])
            value[i] = mlir_resharded(m, value[i], "Sharding",
                                      mlir_at(m->scope->body, value[i])->shape, s[i]);
    return !m->r->status;
}

static bool read_entry(mlir_reader *m) {
    hlo_reader *r = m->r;
    hlo_list in_place = {0}, shardings = {0};
    mlir_body body = {0};
    mlir_scope top = {.body = &body};
    const mlir_function *f = m->functions.item, *main = f;
    for (size_t i = 0; i < m->functions.n; i++)
        if (hlo_is(r, f[i].name, "main")) main = &f[i];
    m->scope = &top;
    if (read_function(m, main, NULL, -1, &in_place, &shardings) && place_results(m, &shardings)) {
        int root = m->returned.n == 1 ? *(int *)m->returned.item
                                      : mlir_tuple_of(m, &body, m->returned.item, m->returned.n);
        if (!body.instructions.n) hlo_fail_here(m->r, "the function has no operation");
        if (!r->status) r->module.entry = mlir_finish_body(m, &body, root, "main");
        r->numbers.n = 0;
        for (size_t i = 0; i < in_place.n && !r->status; i++) {
            int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
            if (number) *number = m->returned.n == 1 ? -1 : ((int64_t *)in_place.item)[i];
        }
        hlo_keep_numbers(r, &r->module.in_place);
    }
    mlir_free_body(&body);
    sm_free(in_place.item);
    sm_free(shardings.item);
    return !r->status;
}

void mlir_parse(hlo_reader *r) {
    mlir_reader m = {.r = r, .prefix = ""};
    r->module.name = "module";
    if (note_all(&m)) {
        r->module.whole = true;
        int devices = 1;
        for (int i = 0; i < r->module.axes; i++) devices *= r->module.axis[i].size;
        if (devices > r->module.partitions) r->module.partitions = devices;
        read_entry(&m);
    }
    sm_free(m.functions.item);
    sm_free(m.locations.item);
    sm_free(m.returned.item);
}
