/* Shapes in texts: bf16[8,128]{1,0:T(8,128)(2,1)S(1)}, tuples in parentheses. */
#include "hlo_reader.h"

static const sm_module_shape *shape_at(hlo_reader *r, int depth);

static const struct {
    const char *name;
    int bits;
} elements[] = {
#define X(id, name, number, bits) {name, bits},
    SM_MODULE_ELEMENTS(X)
#undef X
};

int sm_module_element_bits(sm_module_element element) { return elements[element].bits; }
const char *sm_module_element_name(sm_module_element element) { return elements[element].name; }

static bool element_of(const hlo_reader *r, sm_span span, sm_module_element *out) {
    for (int i = 0; i < SM_HLO_ELEMENT_COUNT; i++)
        if (hlo_is(r, span, elements[i].name)) return *out = (sm_module_element)i, true;
    return false;
}

/* [2,<=8,?], where a bound counts as the size; (8,*), of a tile, where '*' joins a dimension with
 * the one after it. What is of no size counts as 1. */
static bool sizes(hlo_reader *r, bool tile, sm_module_list *out) {
    r->numbers.n = 0;
    while (!hlo_accept(r, tile ? ')' : ']')) {
        int64_t size = 1, *number;
        if (r->numbers.n && !hlo_expect(r, ',', tile ? "between sizes of a tile" : "between sizes"))
            return false;
        if (!tile && hlo_accept(r, '<') && !hlo_expect(r, '=', "after '<'")) return false;
        if (!hlo_accept(r, tile ? '*' : '?') && (!hlo_number(r, &size) || size < tile))
            return hlo_fail_here(r, tile ? "expected the size of a tile"
                                         : "expected the size of a dimension");
        if (!tile && r->numbers.n == HLO_MOST_RANK)
            return hlo_fail(r, (sm_span){r->at, 1}, "an array has more than %d dimensions",
                            HLO_MOST_RANK);
        if (!(number = hlo_push(r, &r->numbers, sizeof *number))) return false;
        *number = size;
    }
    return hlo_keep_numbers(r, out);
}

/* T(8,128)(2,1) */
static bool tiles(hlo_reader *r, sm_module_shape *shape) {
    while (hlo_accept(r, '(')) {
        sm_module_list tile;
        if (!sizes(r, true, &tile)) return false;
        if (shape->tiles == SM_MODULE_TILES)
            return hlo_fail(r, (sm_span){r->at - 1, 1}, "a layout has more than %d tiles",
                            SM_MODULE_TILES);
        shape->tile[shape->tiles++] = tile;
    }
    return true;
}

/* (5) after a letter of the layout. */
static bool small_number(hlo_reader *r, int *out) {
    int64_t value;
    if (!hlo_expect(r, '(', "in a layout")) return false;
    if (!hlo_number(r, &value) || value < 0 || value > 1 << 20)
        return hlo_fail_here(r, "expected a number");
    *out = (int)value;
    return hlo_expect(r, ')', "in a layout");
}

/* After the ':' of a layout. Letters that change neither place nor size are passed over. */
static bool layout_properties(hlo_reader *r, sm_module_shape *shape) {
    while (!r->status && !hlo_accept(r, '}')) {
        int c = hlo_next(r);
        sm_span place = {r->at, 1};
        if (c < 0) return hlo_fail(r, place, "a layout has no end");
        r->at++;
        if (c == 'T') {
            tiles(r, shape);
        } else if (c == 'S' && hlo_next(r) == '(') {
            small_number(r, &shape->memory);
        } else if (c == 'E') {
            small_number(r, &shape->element_bits);
        } else if (c == '(') {
            r->at--;
            hlo_skip_brackets(r);
        } else if (c < 'A' || c > 'Z') {
            if (c != '#' && c != '*' && c != '?') hlo_fail(r, place, "a layout cannot be read");
        }
    }
    return !r->status;
}

static bool layout(hlo_reader *r, sm_module_shape *shape) {
    r->numbers.n = 0;
    while (!r->status && hlo_next(r) != '}' && hlo_next(r) != ':') {
        if (r->numbers.n && !hlo_expect(r, ',', "between dimensions")) return false;
        int64_t value, *number;
        if (!hlo_number(r, &value) || value < 0 || value >= shape->dim.n)
            return hlo_fail_here(r, "expected a dimension of the array");
        if (!(number = hlo_push(r, &r->numbers, sizeof *number))) return false;
        *number = value;
    }
    if (!hlo_keep_numbers(r, &shape->minor)) return false;
    for (int i = 0; i < shape->minor.n; i++)
        for (int k = 0; k < i; k++)
            if (shape->minor.at[i] == shape->minor.at[k])
                return hlo_fail_here(r, "a layout names a dimension twice");
    if (shape->minor.n && shape->minor.n != shape->dim.n)
        return hlo_fail(r, (sm_span){r->at, 1}, "a layout orders %d of %d dimensions",
                        shape->minor.n, shape->dim.n);
    return hlo_accept(r, ':') ? layout_properties(r, shape) : hlo_expect(r, '}', "after a layout");
}

static const sm_module_shape *tuple(hlo_reader *r, int depth) {
    hlo_list parts = {0};
    while (!r->status && !hlo_accept(r, ')')) {
        if (parts.n && !hlo_expect(r, ',', "between the parts of a tuple")) break;
        const sm_module_shape *part = shape_at(r, depth + 1);
        sm_module_shape *item = part ? hlo_push(r, &parts, sizeof *item) : NULL;
        if (item) *item = *part;
    }
    sm_module_shape *shape = r->status ? NULL : sm_arena_alloc(r->arena, sizeof *shape);
    sm_module_shape *list = shape ? sm_arena_array(r->arena, parts.n + 1, sizeof *list) : NULL;
    if (!r->status && !list) hlo_no_memory(r);
    if (list) {
        if (parts.n) memcpy(list, parts.item, parts.n * sizeof *list);
        *shape = (sm_module_shape){.element = SM_HLO_TUPLE, .parts = (int)parts.n, .part = list};
    }
    sm_free(parts.item);
    return list ? shape : NULL;
}

static const sm_module_shape *array(hlo_reader *r) {
    sm_span name = hlo_name(r);
    sm_module_shape *shape = sm_arena_alloc(r->arena, sizeof *shape);
    if (!shape) return hlo_no_memory(r), NULL;
    if (!element_of(r, name, &shape->element)) {
        sm_span place = name.length ? name : (sm_span){r->at, 1};
        const char *names[SM_HLO_ELEMENT_COUNT];
        for (int i = 0; i < SM_HLO_ELEMENT_COUNT; i++) names[i] = elements[i].name;
        const char *near =
            sm_nearest(r->source->text + name.offset, name.length, names, SM_HLO_ELEMENT_COUNT);
        hlo_fail(r, place, near ? "expected a shape; did you mean %s[..]?" : "expected a shape",
                 near);
        return NULL;
    }
    if (!hlo_expect(r, '[', "after the type of an array") || !sizes(r, false, &shape->dim))
        return NULL;
    /* At the start of a computation's body a brace stands apart. */
    if (r->at < r->source->length && r->source->text[r->at] == '{') {
        r->at++;
        if (!layout(r, shape)) return NULL;
    }
    return shape;
}

static const sm_module_shape *shape_at(hlo_reader *r, int depth) {
    if (depth > HLO_MOST_DEPTH) {
        hlo_fail(r, (sm_span){r->at, 1}, "tuples within tuples: more than %d", HLO_MOST_DEPTH);
        return NULL;
    }
    return hlo_accept(r, '(') ? tuple(r, depth) : array(r);
}

const sm_module_shape *hlo_shape(hlo_reader *r) {
    hlo_next(r);
    sm_span last = r->recent_span;
    size_t left = r->source->length - r->at;
    if (last.length && left > last.length && r->source->text[r->at] != '(' &&
        !memcmp(r->source->text + r->at, r->source->text + last.offset, last.length) &&
        r->source->text[r->at + last.length] == ' ') {
        r->at += last.length;
        return r->recent;
    }
    size_t from = r->at;
    const sm_module_shape *shape = shape_at(r, 0);
    if (!shape) return NULL;
    r->recent = shape;
    r->recent_span = (sm_span){from, r->at - from};
    return shape;
}

sm_status sm_module_shape_parse(const sm_source *source, sm_arena *arena,
                                const sm_module_shape **out, sm_error *err) {
    hlo_reader r = {.source = source, .arena = arena, .err = err, .line = 1};
    *out = hlo_shape(&r);
    if (!r.status && hlo_next(&r) >= 0) hlo_fail_here(&r, "expected the end of the shape");
    sm_free(r.numbers.item);
    return r.status;
}

/* ---- sizes ---- */

double sm_module_elements(const sm_module_shape *shape) {
    double n = shape->element == SM_HLO_TUPLE ? 0 : 1;
    for (int i = 0; i < shape->dim.n; i++) n *= (double)shape->dim.at[i];
    for (int i = 0; i < shape->parts; i++) n += sm_module_elements(&shape->part[i]);
    return n;
}

double sm_module_padded(const sm_module_shape *shape, double *size) {
    double block[HLO_MOST_RANK] = {0}, grown = 1; /* the tile before, minor size first */
    for (int d = 0; d < shape->dim.n; d++) size[d] = (double)shape->dim.at[d];
    for (int t = 0, blocks = shape->dim.n; t < shape->tiles; t++) {
        const sm_module_list *tile = &shape->tile[t];
        for (int i = 0; i < tile->n && i < blocks; i++) {
            int64_t minor = shape->minor.n ? shape->minor.at[i] : shape->dim.n - 1 - i;
            double *of = t ? &block[i] : &size[minor];
            double piece = (double)tile->at[tile->n - 1 - i];
            double rest = *of - piece * (double)(int64_t)(*of / piece);
            double whole = rest > 0 ? *of + piece - rest : *of;
            if (t) grown *= whole / *of;
            *of = whole;
        }
        blocks = tile->n < HLO_MOST_RANK ? tile->n : HLO_MOST_RANK;
        for (int i = 0; i < blocks; i++) block[i] = (double)tile->at[tile->n - 1 - i];
    }
    return grown;
}

static int bits_of(const sm_module_shape *shape) {
    return shape->element_bits ? shape->element_bits : elements[shape->element].bits;
}

double sm_module_data_bytes(const sm_module_shape *shape) {
    double bytes = 0;
    for (int i = 0; i < shape->parts; i++) bytes += sm_module_data_bytes(&shape->part[i]);
    return shape->parts ? bytes : sm_module_elements(shape) * bits_of(shape) / 8;
}

double sm_module_bytes(const sm_module_shape *shape, int memory) {
    double bytes = 0;
    for (int i = 0; i < shape->parts; i++) bytes += sm_module_bytes(&shape->part[i], memory);
    if (shape->parts || (memory >= 0 && shape->memory != memory)) return bytes;
    double size[HLO_MOST_RANK], all = sm_module_padded(shape, size);
    for (int d = 0; d < shape->dim.n; d++) all *= size[d];
    return all * bits_of(shape) / 8;
}

sm_dtype sm_module_dtype(sm_module_element element) {
    switch (element) {
    case SM_HLO_BF16: return SM_BF16;
    case SM_HLO_F16: return SM_FP16;
    case SM_HLO_F64: return SM_FP64;
    case SM_HLO_F8E5M2:
    case SM_HLO_F8E4M3FN:
    case SM_HLO_F8E4M3B11FNUZ:
    case SM_HLO_F8E5M2FNUZ:
    case SM_HLO_F8E4M3FNUZ:
    case SM_HLO_F8E4M3:
    case SM_HLO_F8E3M4: return SM_FP8;
    case SM_HLO_F4E2M1FN: return SM_FP4;
    case SM_HLO_S8:
    case SM_HLO_U8: return SM_INT8;
    case SM_HLO_S4:
    case SM_HLO_U4: return SM_INT4;
    default: return SM_FP32;
    }
}
