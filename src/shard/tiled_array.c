/* Arrays as the text of HLO writes them: bf16[32,32,8192]{2,1,0:T(8,128)(2,1)}. The layout lists
 * the dimensions from the minor one on; a tile T(8,128) cuts the two minor ones into blocks of 8 x
 * 128, so that each is rounded up to whole blocks; further tiles cut the block before them
 * (OpenXLA, "Tiled layout", https://openxla.org/xla/tiled_layout). */
#include <math.h>
#include <string.h>

#include "notation.h"

enum { LARGEST_TILE = 1 << 20 };
#define LARGEST_SIZE 1000000000000

/* What a number is of, in which bounds. */
typedef struct wanted {
    const char *what;
    int64_t lowest, highest;
} wanted;

static sm_status number(sm_cursor *c, const wanted *w, double *value, sm_error *err) {
    sm_cursor_blanks(c);
    sm_span digits = sm_cursor_digits(c);
    if (digits.length == 0) return sm_fail_expected(err, c, w->what);
    int64_t wide = 0;
    sm_status status = sm_integer_parse(c->source, digits, w->lowest, w->highest, &wide, err);
    *value = (double)wide;
    return status;
}

/* Numbers up to `close`, SM_TILED_RANK at most. */
static sm_status numbers(sm_cursor *c, char close, const wanted *w, double *list, int *n,
                         sm_error *err) {
    *n = 0;
    if (sm_cursor_accept(c, close)) return SM_OK;
    do {
        if (*n == SM_TILED_RANK) return sm_fail_expected(err, c, "at most 8 dimensions");
        sm_status status = number(c, w, &list[(*n)++], err);
        if (status) return status;
    } while (sm_cursor_accept(c, ','));
    if (sm_cursor_accept(c, close)) return SM_OK;
    return sm_fail_expected(err, c, "a comma or the closing bracket");
}

static sm_status type_of(sm_cursor *c, sm_tiled_array *a, sm_error *err) {
    sm_cursor_blanks(c);
    sm_span name = sm_cursor_name(c);
    const char *text = c->source->text + name.offset;
    if (name.length == 0) return sm_fail_expected(err, c, "a type, as in f32[3,5]");
    if (sm_dtype_parse(text, name.length, &a->dtype)) return SM_OK;
    const char *near = sm_nearest(text, name.length, sm_dtype_names, SM_DTYPE_COUNT);
    return sm_fail_at(err, c->source, name, "'%.*s' is no data type%s%s%s", (int)name.length, text,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* {2,1,0: every dimension once. */
static sm_status order(sm_cursor *c, sm_tiled_array *a, sm_error *err) {
    const wanted dimension = {"the number of a dimension", 0, a->rank - 1};
    unsigned seen = 0;
    for (int i = 0; i < a->rank; i++) {
        double d = 0;
        if (i > 0 && !sm_cursor_accept(c, ',')) return sm_fail_expected(err, c, "a comma");
        size_t from = c->at;
        sm_status status = number(c, &dimension, &d, err);
        if (status) return status;
        if (seen >> (int)d & 1u)
            return sm_fail_at(err, c->source, sm_source_trim(c->source, from, c->at),
                              "dimension %d stands twice in the layout", (int)d);
        seen |= 1u << (int)d;
        a->minor_to_major[i] = (int)d;
    }
    return SM_OK;
}

/* The first tile rounds dimensions up; a later one rounds the tile before it up, *grown times. */
static void round_up(sm_tiled_array *a, bool first, double *block, const double *tile, int n,
                     double *grown) {
    for (int i = 0; i < n; i++) {
        double *size = first ? &a->padded[a->minor_to_major[i]] : &block[i];
        double t = tile[n - 1 - i], whole = ceil(*size / t) * t;
        if (!first) *grown *= whole / *size;
        *size = whole;
    }
    for (int i = 0; i < n; i++) block[i] = tile[n - 1 - i];
}

static sm_status tiles(sm_cursor *c, sm_tiled_array *a, double *grown, sm_error *err) {
    static const wanted size = {"the size of a tile", 1, LARGEST_TILE};
    double block[SM_TILED_RANK] = {0}, tile[SM_TILED_RANK] = {0};
    int blocks = a->rank;
    if (!sm_cursor_accept(c, 'T')) return SM_OK;
    for (bool first = true; sm_cursor_accept(c, '('); first = false) {
        int n = 0;
        size_t from = c->at;
        sm_status status = numbers(c, ')', &size, tile, &n, err);
        if (status) return status;
        if (n == 0 || n > blocks)
            return sm_fail_at(err, c->source, (sm_span){from, c->at - from - 1},
                              "a tile here has 1 to %d dimensions", blocks);
        round_up(a, first, block, tile, n, grown);
        blocks = n;
    }
    return SM_OK;
}

static sm_status layout(sm_cursor *c, sm_tiled_array *a, double *grown, sm_error *err) {
    if (!sm_cursor_accept(c, '{')) return SM_OK;
    sm_status status = order(c, a, err);
    if (!status && sm_cursor_accept(c, ':')) status = tiles(c, a, grown, err);
    if (status) return status;
    /* S(1) names the memory it lies in */
    if (sm_cursor_accept(c, 'S')) {
        static const wanted memory = {"the number of a memory space", 0, LARGEST_TILE};
        double space = 0;
        if (!sm_cursor_accept(c, '(')) return sm_fail_expected(err, c, "'(' after S");
        status = number(c, &memory, &space, err);
        if (!status && !sm_cursor_accept(c, ')')) return sm_fail_expected(err, c, "')'");
        if (status) return status;
    }
    return sm_cursor_accept(c, '}') ? SM_OK : sm_fail_expected(err, c, "'}'");
}

sm_status sm_tiled_array_parse(const sm_source *source, sm_tiled_array *a, sm_error *err) {
    static const wanted size = {"the size of a dimension", 1, LARGEST_SIZE};
    sm_cursor c = {source, 0};
    *a = (sm_tiled_array){.bytes = 0};
    sm_status status = type_of(&c, a, err);
    if (status) return status;
    if (!sm_cursor_accept(&c, '[')) return sm_fail_expected(err, &c, "'[' and the sizes");
    status = numbers(&c, ']', &size, a->size, &a->rank, err);
    if (status) return status;
    for (int i = 0; i < a->rank; i++) {
        a->minor_to_major[i] = a->rank - 1 - i;
        a->padded[i] = a->size[i];
    }
    double grown = 1.0;
    status = layout(&c, a, &grown, err);
    if (status) return status;
    if (!sm_cursor_end(&c)) return sm_fail_expected(err, &c, "the end of the array");
    a->bytes = sm_dtype_bytes(a->dtype);
    a->padded_bytes = a->bytes * grown;
    for (int i = 0; i < a->rank; i++) {
        a->bytes *= a->size[i];
        a->padded_bytes *= a->padded[i];
    }
    return SM_OK;
}
