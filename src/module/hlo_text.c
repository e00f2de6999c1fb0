/* The text of a module: a header line, tables of stack frames, computations. */

#include "hlo_proto.h"
#include "mlir_reader.h"

/* ---- one instruction ---- */

/* What stands in parentheses after constant and parameter, and is no operand. */
static bool read_literal(hlo_reader *r, sm_instruction *it) {
    size_t from = r->at;
    it->known = hlo_number(r, &it->number) && hlo_next(r) == ')';
    if (r->status) return false;
    if (!it->known) {
        r->at = from;
        while (!r->status && hlo_next(r) != ')' && hlo_next(r) >= 0) {
            hlo_skip_value(r);
            if (!hlo_accept(r, ',') && hlo_next(r) != ')') hlo_accept(r, '}');
        }
    }
    if (it->opcode == SM_OPCODE_PARAMETER && (!it->known || it->number < 0))
        return hlo_fail(r, (sm_span){from, 1}, "expected the number of a parameter");
    return hlo_expect(r, ')', "after a literal");
}

/* An operand may have its shape before its name. */
static bool read_operand(hlo_reader *r, int *out) {
    int next = hlo_next(r);
    size_t from = r->at;
    sm_span name = next == '(' ? (sm_span){from, 0} : hlo_name(r);
    next = r->at < r->source->length ? r->source->text[r->at] : -1;
    if (name.length == 0 || (next == '[' && r->source->text[from] != '%')) {
        r->at = from;
        if (!hlo_shape(r)) return false;
        name = hlo_name(r);
    }
    *out = module_names_find(&r->names, r->source->text + name.offset, name.length);
    if (*out >= 0) return true;
    return hlo_fail(r, name.length ? name : (sm_span){r->at, 1},
                    name.length ? "no instruction of this name stands before this one"
                                : "expected an operand");
}

static bool read_operands(hlo_reader *r, sm_instruction *it) {
    r->operands.n = 0;
    while (!hlo_accept(r, ')')) {
        if (r->operands.n && !hlo_expect(r, ',', "between operands")) return false;
        int operand, *place;
        if (!read_operand(r, &operand)) return false;
        if (!(place = hlo_push(r, &r->operands, sizeof *place))) return false;
        *place = operand;
    }
    int *list = sm_arena_array(r->arena, r->operands.n + 1, sizeof *list);
    if (!list) return hlo_no_memory(r);
    if (r->operands.n) memcpy(list, r->operands.item, r->operands.n * sizeof *list);
    it->operand = list;
    it->operands = (int)r->operands.n;
    return true;
}

static bool read_opcode(hlo_reader *r, sm_instruction *it) {
    sm_span opcode = hlo_name(r);
    if (!opcode.length) return hlo_fail_here(r, "expected an opcode");
    it->opcode = module_opcode_of(r->source->text + opcode.offset, opcode.length);
    it->opcode_name =
        it->opcode == SM_OPCODE_OTHER ? hlo_copy(r, opcode) : sm_module_opcode_name(it->opcode);
    if (!hlo_expect(r, '(', "after an opcode")) return false;
    bool literal = it->opcode == SM_OPCODE_CONSTANT || it->opcode == SM_OPCODE_PARAMETER;
    return literal ? read_literal(r, it) : read_operands(r, it);
}

/* After "[ROOT] name". */
static bool read_instruction(hlo_reader *r, sm_span name, int line) {
    sm_instruction it = {.op_name = "", .file = "", .target = "", .trips = -1};
    it.line = line;
    if (!hlo_expect(r, '=', "after the name of an instruction")) return false;
    if (!(it.shape = hlo_shape(r)) || !read_opcode(r, &it) || !hlo_attributes(r, &it)) return false;
    it.name = hlo_copy(r, name);
    if (r->instructions.n >= INT32_MAX / 2) return hlo_fail(r, name, "too many instructions");
    sm_instruction *place = hlo_push(r, &r->instructions, sizeof *place);
    if (!place) return false;
    *place = it;
    return module_names_set(&r->names, r->source->text + name.offset, name.length,
                            (int)r->instructions.n - 1) ||
           hlo_no_memory(r);
}

/* ---- a computation ---- */

/* After '{': instructions up to '}'. Mentions point at lists of the arena, which stay. */
static bool read_body(hlo_reader *r, sm_computation *c) {
    r->instructions.n = 0;
    module_names_free(&r->names);
    c->root = -1;
    while (!hlo_accept(r, '}')) {
        int line = r->line;
        sm_span name = hlo_name(r);
        bool root = hlo_is(r, name, "ROOT");
        if (root) name = hlo_name(r);
        if (!name.length) return hlo_fail_here(r, "expected an instruction or '}'");
        if (!read_instruction(r, name, line)) return false;
        if (root) c->root = (int)r->instructions.n - 1;
    }
    if (r->instructions.n == 0)
        return hlo_fail(r, (sm_span){r->at - 1, 1}, "a computation has no instruction");
    c->n = (int)r->instructions.n;
    if (c->root < 0) c->root = c->n - 1;
    sm_instruction *list = sm_arena_array(r->arena, (size_t)c->n, sizeof *list);
    if (!list) return hlo_no_memory(r);
    memcpy(list, r->instructions.item, (size_t)c->n * sizeof *list);
    c->instruction = list;
    return true;
}

/* "(p0: f32[2], ...) -> f32[2]" is passed over: the instructions say the same. */
static bool skip_signature(hlo_reader *r) {
    while (!r->status && hlo_next(r) == '(') hlo_skip_brackets(r);
    if (!hlo_accept(r, '-')) return !r->status;
    return hlo_expect(r, '>', "in a signature") && hlo_shape(r);
}

static bool read_computation(hlo_reader *r, sm_span name, bool entry) {
    sm_computation c = {.name = hlo_copy(r, name)};
    if (!skip_signature(r)) return false;
    while (hlo_accept(r, ',')) hlo_skip_value(r);
    if (!hlo_expect(r, '{', "before the instructions of a computation")) return false;
    if (!read_body(r, &c)) return false;
    while (hlo_accept(r, ',')) hlo_skip_value(r);
    sm_computation *place = hlo_push(r, &r->computations, sizeof *place);
    if (!place) return false;
    *place = c;
    int number = (int)r->computations.n - 1;
    if (entry) r->module.entry = number;
    return module_names_set(&r->computation_names, r->source->text + name.offset, name.length,
                            number) ||
           hlo_no_memory(r);
}

/* ---- the module ---- */

static bool header_attribute(hlo_reader *r) {
    sm_span key = hlo_name(r);
    if (!key.length || !hlo_expect(r, '=', "after the key of an attribute"))
        return hlo_fail_here(r, "expected the key of an attribute");
    int64_t number = 0;
    if (hlo_is(r, key, "num_partitions") || hlo_is(r, key, "replica_count")) {
        if (!hlo_number(r, &number) || number < 1 || number > HLO_MOST_DEVICES)
            return hlo_fail_here(r, "expected a number of devices");
        *(hlo_is(r, key, "replica_count") ? &r->module.replicas : &r->module.partitions) =
            (int)number;
        return true;
    }
    if (hlo_is(r, key, "input_output_alias")) return hlo_aliases(r, &r->module.in_place);
    sm_span value = hlo_skip_value(r);
    if (hlo_is(r, key, "is_scheduled")) r->module.scheduled = hlo_is(r, value, "true");
    else if (hlo_is(r, key, "frontend_attributes")) hlo_mesh_axes(r, value);
    return !r->status;
}

static bool read_header(hlo_reader *r) {
    sm_span word = hlo_name(r);
    if (!hlo_is(r, word, "HloModule"))
        return hlo_fail(r, word.length ? word : (sm_span){0, 1},
                        "no HLO: it begins with \"HloModule NAME\"");
    sm_span name = hlo_name(r);
    if (!name.length) return hlo_fail_here(r, "expected the name of the module");
    r->module.name = hlo_copy(r, name);
    while (hlo_accept(r, ','))
        if (!header_attribute(r)) return false;
    return !r->status;
}

static bool read_all(hlo_reader *r) {
    if (!read_header(r)) return false;
    bool entered = false;
    while (hlo_next(r) >= 0) {
        sm_span name = hlo_name(r);
        if (hlo_table(r, name)) continue;
        bool entry = hlo_is(r, name, "ENTRY");
        if (entry) name = hlo_name(r);
        if (!name.length) return hlo_fail_here(r, "expected a computation");
        if (!read_computation(r, name, entry)) return false;
        entered = entered || entry;
    }
    if (r->status) return false;
    if (r->computations.n == 0)
        return hlo_fail(r, (sm_span){r->source->length, 1}, "the module has no computation");
    if (!entered) r->module.entry = (int)r->computations.n - 1;
    return true;
}

static bool resolve_mentions(hlo_reader *r) {
    const hlo_mention *m = r->mentions.item;
    for (size_t i = 0; i < r->mentions.n; i++) {
        *m[i].place = module_names_find(&r->computation_names, r->source->text + m[i].span.offset,
                                        m[i].span.length);
        if (*m[i].place < 0) return hlo_fail(r, m[i].span, "no computation has this name");
    }
    return true;
}

static int largest_device(const sm_computation *c) {
    int largest = 0;
    for (int i = 0; i < c->n; i++) {
        const sm_module_groups *g = &c->instruction[i].groups;
        for (int m = 0; m < g->n * g->size; m++)
            if (g->member[m] > largest) largest = g->member[m];
    }
    return largest;
}

static bool finish(hlo_reader *r) {
    size_t n = r->computations.n;
    sm_computation *list = sm_arena_array(r->arena, n, sizeof *list);
    if (!list) return hlo_no_memory(r);
    memcpy(list, r->computations.item, n * sizeof *list);
    sm_module *m = &r->module;
    m->computations = (int)n;
    m->computation = list;
    if (!resolve_mentions(r)) return false;
    m->devices = m->partitions * m->replicas;
    module_frames frames = hlo_frames(r);
    for (size_t i = 0; i < n; i++) {
        sm_instruction *it = (sm_instruction *)(uintptr_t)list[i].instruction;
        for (int k = 0; k < list[i].n; k++)
            module_place(&frames, it[k].frame, &it[k].file, &it[k].file_line);
        int devices = largest_device(&list[i]) + 1;
        if (devices > m->devices) m->devices = devices;
    }
    return true;
}

/* HLO begins with "HloModule"; StableHLO with a module, a function, or what is named for them. */
static bool is_mlir(hlo_reader *r) {
    if (hlo_next(r) == '#') /* an alias; with a blank, a comment of something else */
        return r->at + 1 < r->source->length && !strchr(" #\t\r\n", r->source->text[r->at + 1]);
    sm_span word = hlo_name(r);
    r->at = word.offset;
    return hlo_is(r, word, "module") || hlo_is(r, word, "builtin.module") ||
           hlo_is(r, word, "func.func") || hlo_is(r, word, "sdy.mesh");
}

static sm_status parse_text(const sm_source *source, sm_arena *arena, sm_module *out,
                            sm_error *err) {
    hlo_reader r = {.source = source, .arena = arena, .err = err, .line = 1};
    r.module.partitions = r.module.replicas = 1;
    if (is_mlir(&r)) mlir_parse(&r);
    else read_all(&r);
    if (!r.status) finish(&r);
    sm_free(r.computations.item);
    sm_free(r.instructions.item);
    sm_free(r.numbers.item);
    sm_free(r.operands.item);
    sm_free(r.mentions.item);
    for (int i = 0; i < MODULE_TABLES; i++) sm_free(r.table[i].item);
    module_names_free(&r.computation_names);
    module_names_free(&r.names);
    *out = r.module;
    return r.status;
}

/* A protobuf begins with its first field, whose tag is the end of a line in a text. */
static bool is_proto(const sm_source *source) {
    size_t at = 0;
    while (at < source->length && strchr(" \t\r\n", source->text[at]) && source->text[at]) at++;
    bool text = source->length - at >= 9 && !memcmp(source->text + at, "HloModule", 9);
    return !text && source->length > 0 && source->text[0] == '\n';
}

sm_status sm_module_parse(const sm_source *source, sm_arena *arena, const sm_module **out,
                          sm_error *err) {
    sm_module *module = sm_arena_alloc(arena, sizeof *module);
    *out = NULL;
    if (!module) return sm_fail_memory(err);
    if (source->length > HLO_MOST_BYTES)
        return sm_fail(err, SM_BAD_INPUT, "a module has at most %d bytes", HLO_MOST_BYTES);
    sm_status status = is_proto(source) ? hlo_proto_parse(source, arena, module, err)
                                        : parse_text(source, arena, module, err);
    if (!status) *out = module;
    return status;
}
