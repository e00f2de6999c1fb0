/* StableHLO: types of arrays, shardings of Shardy (sdy), locations of the source. */
#include <stdlib.h>

#include "mlir_reader.h"

/* ---- types ---- */

/* i32, ui8, bf16, f8E4M3FN; i1 is a predicate. */
static bool element_of(mlir_reader *m, sm_span span, sm_module_element *out) {
    char name[24];
    size_t n = 0;
    const char *text = m->r->source->text + span.offset;
    if (span.length == 0 || span.length >= sizeof name - 1) return false;
    bool index = span.length == 5 && !memcmp(text, "index", 5);
    if (text[0] == 'i' && !index) name[n++] = 's';
    for (size_t i = text[0] == 'i' || (text[0] == 'u' && text[1] == 'i'); i < span.length; i++) {
        if (i == 1 && text[0] == 'u') name[n++] = 'u';
        else name[n++] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32) : text[i];
    }
    name[n] = '\0';
    if (!strcmp(name, "s1")) memcpy(name, "pred", 5);
    if (index) memcpy(name, "s64", 4);
    for (int i = 0; i < SM_HLO_ELEMENT_COUNT; i++)
        if (!strcmp(sm_module_element_name((sm_module_element)i), name))
            return *out = (sm_module_element)i, true;
    return false;
}

/* The name of an element after its last 'x', or complex<f32>. */
static bool read_element(mlir_reader *m, sm_module_shape *shape) {
    hlo_reader *r = m->r;
    sm_span word = hlo_name(r);
    if (hlo_is(r, word, "complex") && hlo_expect(r, '<', "after complex")) {
        shape->element = hlo_is(r, hlo_name(r), "f64") ? SM_HLO_C128 : SM_HLO_C64;
        return hlo_expect(r, '>', "after complex");
    }
    if (element_of(m, word, &shape->element)) return true;
    return hlo_fail(r, word.length ? word : (sm_span){r->at, 1},
                    "expected the type of an array's elements: bf16, f32, i32");
}

/* 8x?x128x: sizes, each before an 'x'. A size that is not known counts as one. */
static bool read_sizes(mlir_reader *m, sm_module_shape *shape) {
    hlo_reader *r = m->r;
    r->numbers.n = 0;
    for (int64_t size; !r->status;) {
        size_t from = r->at;
        if (hlo_accept(r, '?')) size = 1;
        else if (!hlo_number(r, &size)) break;
        if (size < 0 || r->at >= r->source->length || r->source->text[r->at] != 'x')
            return hlo_fail(r, (sm_span){from, r->at - from + 1},
                            "expected sizes, each before an 'x'");
        r->at++;
        if (r->numbers.n == HLO_MOST_RANK)
            return hlo_fail(r, (sm_span){from, 1}, "an array has more than %d dimensions",
                            HLO_MOST_RANK);
        int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
        if (number) *number = size;
    }
    return hlo_keep_numbers(r, &shape->dim);
}

/* Past what an array's type says beyond its elements, up to its '>'. */
static bool end_type(hlo_reader *r) {
    for (int depth = 1; depth > 0 && hlo_next(r) >= 0; r->at++) {
        depth += hlo_next(r) == '<';
        depth -= hlo_next(r) == '>';
    }
    return !r->status;
}

const sm_module_shape *mlir_type(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_module_shape *shape = sm_arena_alloc(r->arena, sizeof *shape);
    if (!shape) return hlo_no_memory(r), NULL;
    if (hlo_accept(r, '!')) {
        hlo_name(r);
        shape->element = SM_HLO_TOKEN;
        if (hlo_accept(r, '<')) end_type(r);
        return r->status ? NULL : shape;
    }
    sm_span word = hlo_name(r);
    if (hlo_is(r, word, "tensor") || hlo_is(r, word, "memref")) {
        if (!hlo_expect(r, '<', "after tensor") || !read_sizes(m, shape) ||
            !read_element(m, shape) || !end_type(r))
            return NULL;
        return shape;
    }
    hlo_fail(r, word.length ? word : (sm_span){r->at, 1}, "expected a type: tensor<8x128xbf16>");
    return NULL;
}

const sm_module_shape *mlir_tuple_shape(mlir_reader *m, const sm_module_shape *const *part, int n) {
    sm_module_shape *shape = sm_arena_alloc(m->r->arena, sizeof *shape);
    sm_module_shape *list = sm_arena_array(m->r->arena, (size_t)n + 1, sizeof *list);
    if (!shape || !list) return hlo_no_memory(m->r), NULL;
    for (int i = 0; i < n; i++) list[i] = *part[i];
    *shape = (sm_module_shape){.element = SM_HLO_TUPLE, .parts = n, .part = list};
    return shape;
}

/* ---- shardings ---- */

static int axis_called(const hlo_reader *r, sm_span name) {
    for (int i = 0; i < r->module.axes; i++)
        if (hlo_is(r, name, r->module.axis[i].name)) return i;
    return -1;
}

/* A priority (p1) may stand after the braces of a dimension. */
bool mlir_axes(mlir_reader *m, sm_module_list *out) {
    hlo_reader *r = m->r;
    sm_span name;
    r->numbers.n = 0;
    while (!r->status && !hlo_accept(r, '}')) {
        if (hlo_accept(r, ',') || hlo_accept(r, '?')) continue;
        if (!hlo_quoted(r, &name))
            return hlo_fail_here(m->r, "expected the name of an axis in quotes");
        if (hlo_next(r) == ':')
            return hlo_fail_here(m->r,
                                 "a part of an axis shards a dimension, which is not read here");
        int axis = axis_called(r, name);
        if (axis < 0) return hlo_fail(r, name, "the module's mesh has no axis of this name");
        int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
        if (number) *number = axis;
    }
    return hlo_keep_numbers(r, out);
}

static bool read_dims(mlir_reader *m, sm_module_sharding *s) {
    hlo_reader *r = m->r;
    sm_module_list dim[HLO_MOST_RANK];
    if (!hlo_expect(r, '[', "before the axes of each dimension")) return false;
    while (!r->status && !hlo_accept(r, ']')) {
        if (s->dims && !hlo_expect(r, ',', "between dimensions")) break;
        if (s->dims == HLO_MOST_RANK) return hlo_fail_here(m->r, "too many dimensions");
        size_t from = r->at;
        if (!hlo_expect(r, '{', "before the axes of a dimension")) break;
        if (!mlir_axes(m, &dim[s->dims])) break;
        bool open = memchr(r->source->text + from, '?', r->at - from) != NULL;
        s->open |= (uint32_t)open << s->dims;
        if (hlo_next(r) == 'p') hlo_name(r);
        s->dims++;
    }
    sm_module_list *list = sm_arena_array(r->arena, (size_t)s->dims + 1, sizeof *list);
    if (!list) return hlo_no_memory(r);
    if (s->dims) memcpy(list, dim, (size_t)s->dims * sizeof *list);
    s->dim = list;
    return !r->status;
}

/* replicated={...}, unreduced={...} say nothing that the dimensions do not. */
const sm_module_sharding *mlir_sharding(mlir_reader *m) {
    hlo_reader *r = m->r;
    sm_module_sharding *s = sm_arena_alloc(r->arena, sizeof *s);
    if (!s) return hlo_no_memory(r), NULL;
    if (!hlo_expect(r, '<', "before a sharding") || !hlo_expect(r, '@', "before a mesh"))
        return NULL;
    hlo_name(r);
    if (!hlo_expect(r, ',', "after the mesh") || !read_dims(m, s)) return NULL;
    while (hlo_accept(r, ',')) hlo_skip_value(r);
    return hlo_expect(r, '>', "after a sharding") ? s : NULL;
}

/* ---- locations ---- */

/* "file":12:3 to :9 or "name"(location). */
static bool quoted_location(mlir_reader *m, mlir_location *out, int depth);

static bool location(mlir_reader *m, mlir_location *out, int depth) {
    hlo_reader *r = m->r;
    if (depth > HLO_MOST_DEPTH) return hlo_fail_here(m->r, "locations within locations: too many");
    if (hlo_next(r) == '"') return quoted_location(m, out, depth);
    if (hlo_accept(r, '#')) {
        sm_span word = hlo_name(r);
        int64_t number = 0;
        for (size_t i = 3; i < word.length && number < INT32_MAX; i++)
            number = number * 10 + (r->source->text[word.offset + i] - '0');
        out->of = number;
        return true;
    }
    sm_span word = hlo_name(r);
    if (hlo_is(r, word, "callsite"))
        return hlo_expect(r, '(', "after callsite") && location(m, out, depth + 1);
    if (hlo_is(r, word, "fused")) {
        while (hlo_next(r) >= 0 && !hlo_accept(r, '[')) r->at++;
        return !r->status && location(m, out, depth + 1);
    }
    return !r->status;
}

static bool quoted_location(mlir_reader *m, mlir_location *out, int depth) {
    hlo_reader *r = m->r;
    sm_span text;
    int64_t line = 0;
    if (!hlo_quoted(r, &text)) return false;
    if (hlo_accept(r, ':')) {
        hlo_number(r, &line);
        out->file = hlo_unescaped(r, text);
        out->line = (int)(line & INT32_MAX);
        return !r->status;
    }
    if (!out->name[0]) out->name = hlo_unescaped(r, text);
    return hlo_accept(r, '(') ? location(m, out, depth + 1) : !r->status;
}

bool mlir_location_of(mlir_reader *m, mlir_location *out) {
    hlo_reader *r = m->r;
    *out = (mlir_location){.name = "", .file = "", .of = -1};
    size_t from = r->at;
    int line = r->line;
    if (!hlo_expect(r, '(', "after loc") || !location(m, out, 0)) return false;
    r->at = from;
    r->line = line;
    hlo_skip_brackets(r);
    return !r->status;
}

SM_ORDER(by_number, mlir_location, SM_ASCENDING(number))

static const mlir_location *numbered(const mlir_reader *m, int64_t number) {
    const mlir_location key = {.number = number};
    if (m->locations.n == 0) return NULL;
    return bsearch(&key, m->locations.item, m->locations.n, sizeof key, by_number);
}

void mlir_place(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    mlir_location at;
    size_t from = r->at;
    int line = r->line;
    if (!hlo_is(r, hlo_name(r), "loc")) {
        r->at = from;
        r->line = line;
        return;
    }
    if (!mlir_location_of(m, &at)) return;
    const mlir_location *l = &at;
    const char *name = "";
    for (int i = 0; l && i < HLO_MOST_DEPTH; i++) {
        if (!name[0]) name = l->name;
        if (l->file[0]) {
            it->file = l->file;
            it->file_line = l->line;
            break;
        }
        l = l->of >= 0 ? numbered(m, l->of) : NULL;
    }
    bool inner = m->prefix[0] && name[0];
    it->op_name = inner     ? sm_arena_printf(r->arena, "%s/%s", m->prefix, name)
                  : name[0] ? name
                            : m->prefix;
    if (!it->op_name) {
        it->op_name = "";
        hlo_no_memory(r);
    }
}
