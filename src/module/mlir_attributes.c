/* StableHLO: attributes of operations, pretty (dims = [0, 1]) and generic (<{dimension = 0 :
 * i64}>). Keys that change neither cost nor place are passed over. */

#include "mlir_reader.h"

typedef bool value_reader(mlir_reader *m, sm_instruction *it);

/* ---- numbers ---- */

/* Numbers in brackets within brackets, as one list; words between them (true, array<i64: ) are
 * passed over. width: of the innermost lists. */
static bool nested_numbers(hlo_reader *r, sm_module_list *out, int64_t *width) {
    int depth = 0;
    int64_t value, n = 0;
    r->numbers.n = 0;
    *width = 1;
    do {
        int next = hlo_next(r);
        if (next < 0) return hlo_fail_here(r, "a list has no end");
        if (strchr("[<{(", next)) {
            depth++;
            n = 0;
            r->at++;
        } else if (strchr("]>})", next)) {
            if (n > 0) *width = n;
            n = 0;
            depth--;
            r->at++;
        } else if (next == ',' || next == ':' || next == '"') {
            r->at++;
        } else if (hlo_number(r, &value)) {
            int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
            if (number) *number = value;
            n++;
        } else if (!hlo_name(r).length && !r->status) {
            r->at++;
        }
        if (r->numbers.n > HLO_MOST_DEVICES) return hlo_fail_here(r, "a list has too many numbers");
    } while (depth > 0 && !r->status);
    return hlo_keep_numbers(r, out);
}

/* [0, 1], array<i64: 0, 1>, dense<[0]> : tensor<1xi64>, or 1 : i64. */
static bool numbers(mlir_reader *m, sm_module_list *out) {
    int64_t width;
    sm_span word = hlo_name(m->r);
    if (word.length && m->r->source->text[word.offset] >= '0' &&
        m->r->source->text[word.offset] <= '9')
        m->r->at = word.offset; /* a lone number */
    return nested_numbers(m->r, out, &width);
}

static bool one_number(mlir_reader *m, int64_t *out) {
    sm_module_list list = {.n = 0};
    if (!numbers(m, &list)) return false;
    *out = list.n ? list.at[0] : 0;
    return true;
}

static bool skip_x(mlir_reader *m) {
    return hlo_is(m->r, hlo_name(m->r), "x") ||
           hlo_fail_here(m->r, "expected 'x' between two lists");
}

/* ---- values of keys ---- */

static bool both_batch(mlir_reader *m, sm_instruction *it) {
    return numbers(m, &it->lhs_batch) && skip_x(m) && numbers(m, &it->rhs_batch);
}
static bool both_contracting(mlir_reader *m, sm_instruction *it) {
    return numbers(m, &it->lhs_contracting) && skip_x(m) && numbers(m, &it->rhs_contracting);
}
static bool channel(mlir_reader *m, sm_instruction *it) { return one_number(m, &it->channel); }
static bool sharding(mlir_reader *m, sm_instruction *it) {
    if (hlo_accept(m->r, '#')) hlo_name(m->r);
    return (it->sharding = mlir_sharding(m)) != NULL;
}

/* dense<[[0, 1], [2, 3]]> : tensor<2x2xi64> */
static bool groups(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    sm_module_list list;
    int64_t width;
    sm_span place = {r->at, 1};
    hlo_name(r);
    if (!nested_numbers(r, &list, &width)) return false;
    r->members += list.n;
    if (list.n % width || r->members > MODULE_MOST_MEMBERS)
        return hlo_fail(r, place, "expected groups of devices: dense<[[0, 1], [2, 3]]>");
    int32_t *member = sm_arena_array(r->arena, (size_t)list.n + 1, sizeof *member);
    if (!member) return hlo_no_memory(r);
    for (int i = 0; i < list.n; i++) {
        if (list.at[i] >= HLO_MOST_DEVICES) return hlo_fail(r, place, "too many devices");
        if (list.at[i] < 0) return true; /* padding of uneven groups: taken as all devices */
        member[i] = (int32_t)list.at[i];
    }
    it->groups = (sm_module_groups){(int)(list.n / width), (int)width, member};
    return true;
}

/* ---- convolutions and windows ---- */

/* [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] as b01f_01io->b01f. */
static bool labels(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    char out[3 * HLO_MOST_RANK + 8];
    size_t n = 0;
    sm_module_convolution *c = hlo_convolution(m->r, it);
    for (int lists = 0; c && lists < 3; r->at++) {
        int next = hlo_next(r);
        if (next < 0 || next == '{') return hlo_fail_here(r, "expected the labels of three arrays");
        if (next == ']' && ++lists < 3)
            for (const char *word = lists == 1 ? "_" : "->"; *word; word++) out[n++] = *word;
        else if (strchr("bfio0123456789", next) && n < 3 * HLO_MOST_RANK) out[n++] = (char)next;
    }
    if (c) c->labels = sm_arena_copy(r->arena, out, n);
    return c && c->labels ? true : hlo_no_memory(r);
}

/* [[1, 1], [2, 0]]: before and after each dimension. */
static bool pads(mlir_reader *m, sm_instruction *it) {
    sm_module_list list;
    sm_module_convolution *c = hlo_convolution(m->r, it);
    if (!c || !numbers(m, &list)) return false;
    int64_t *low = sm_arena_array(m->r->arena, (size_t)list.n + 1, sizeof *low);
    if (!low) return hlo_no_memory(m->r);
    int n = list.n / 2;
    for (int i = 0; i < n; i++) {
        low[i] = list.at[2 * i];
        low[n + i] = list.at[2 * i + 1];
    }
    c->pad_low = (sm_module_list){n, low};
    c->pad_high = (sm_module_list){n, low + n};
    return true;
}
static bool window(mlir_reader *m, sm_instruction *it) {
    return hlo_expect(m->r, '{', "before a window") && mlir_attributes(m, it, '}');
}
static bool group_count(mlir_reader *m, sm_instruction *it, bool of_batch) {
    sm_module_convolution *c = hlo_convolution(m->r, it);
    int64_t n;
    if (!c || !one_number(m, &n)) return false;
    *(of_batch ? &c->batches : &c->features) = n > 0 ? n : 1;
    return true;
}
static bool batches(mlir_reader *m, sm_instruction *it) { return group_count(m, it, true); }
static bool features(mlir_reader *m, sm_instruction *it) { return group_count(m, it, false); }

/* ---- keys ---- */

/* Those whose values are not numbers for one list, which data/formats/modules.json has. */
static const struct {
    const char *key;
    value_reader *read;
} keys[] = {
    {"batching_dims", both_batch},
    {"contracting_dims", both_contracting},
    {"handle", channel},
    {"replica_groups", groups},
    {"source_target_pairs", groups},
    {"sdy.sharding", sharding},
    {"mhlo.sharding", mlir_xla_sharding},
    {"dim_numbers", labels},
    {"window", window},
    {"pad", pads},
    {"padding", pads},
    {"batch_group_count", batches},
    {"feature_group_count", features},
};

/* The list of the instruction or its window that a key of numbers is; NULL: it is none such. */
static sm_module_list *list_of(hlo_reader *r, sm_instruction *it, sm_span key) {
    for (size_t i = 0; i < modules_lists_count; i++)
        if (hlo_is(r, key, modules_lists[i].key)) return (void *)((char *)it + modules_lists[i].at);
    for (size_t i = 0; i < modules_windows_count; i++) {
        if (!hlo_is(r, key, modules_windows[i].key)) continue;
        char *window = (char *)hlo_convolution(r, it);
        return window ? (void *)(window + modules_windows[i].at) : NULL;
    }
    return NULL;
}

/* Past a value of a key that is not read: up to a comma or bracket, with those of angles. */
static bool skip_value(hlo_reader *r) {
    sm_span quoted;
    for (int depth = 0; !r->status;) {
        int next = hlo_next(r);
        if (next < 0 || (depth == 0 && strchr(",]})>:", next))) break;
        if (strchr("[{(", next)) hlo_skip_brackets(r);
        else if (next == '"') hlo_quoted(r, &quoted);
        else if (next == '-' && r->at + 1 < r->source->length && r->source->text[r->at + 1] == '>')
            r->at += 2;
        else {
            depth += next == '<';
            depth -= next == '>';
            r->at++;
        }
    }
    return !r->status;
}

/* #stablehlo.gather<offset_dims = [2], ...>: keys within a value. */
static bool dialect_value(mlir_reader *m, sm_instruction *it) {
    hlo_reader *r = m->r;
    hlo_accept(r, '#');
    hlo_name(r);
    return hlo_accept(r, '<') ? mlir_attributes(m, it, '>') : !r->status;
}

bool mlir_attribute(mlir_reader *m, sm_instruction *it, sm_span key, bool inner) {
    enum { KEYS = sizeof keys / sizeof *keys };
    hlo_reader *r = m->r;
    size_t i = 0;
    while (i < KEYS && !hlo_is(r, key, keys[i].key)) i++;
    sm_module_list *list = i < KEYS ? NULL : list_of(r, it, key);
    bool held = i < KEYS             ? keys[i].read(m, it)
                : list               ? numbers(m, list)
                : hlo_next(r) == '#' ? dialect_value(m, it)
                                     : skip_value(r);
    if (!held || !inner || hlo_next(r) != ':') return held;
    r->at++;
    return hlo_next(r) == 't' ? mlir_type(m) != NULL : skip_value(r);
}

/* LT of a comparison, wherever it stands. */
static void note_word(mlir_reader *m, sm_instruction *it, sm_span word) {
    if (it->opcode != SM_OPCODE_COMPARE || it->direction) return;
    it->direction = module_direction_of(m->r->source->text + word.offset, word.length);
}

bool mlir_attributes(mlir_reader *m, sm_instruction *it, char end) {
    hlo_reader *r = m->r;
    sm_span quoted;
    while (!r->status && !hlo_accept(r, end)) {
        if (hlo_next(r) < 0) return hlo_fail_here(r, "attributes have no end");
        if (hlo_accept(r, ',') || hlo_accept(r, ' ')) continue;
        sm_span key = hlo_quoted(r, &quoted) ? quoted : hlo_name(r);
        if (!key.length) {
            if (!r->status && hlo_next(r) >= 0 && hlo_next(r) != end) r->at++;
            continue;
        }
        note_word(m, it, key);
        if (hlo_accept(r, '=') && !mlir_attribute(m, it, key, true)) return false;
    }
    return !r->status;
}

/* The window of a convolution is its kernel's, by the labels. */
void mlir_complete(mlir_reader *m, const sm_computation *in, sm_instruction *it) {
    if (it->opcode != SM_OPCODE_CONVOLUTION || it->operands < 2) return;
    const sm_module_shape *kernel = in->instruction[it->operand[1]].shape;
    sm_module_convolution *c = hlo_convolution(m->r, it);
    const char *at = c ? strchr(c->labels, '_') : NULL;
    int64_t *size = sm_arena_array(m->r->arena, HLO_MOST_RANK, sizeof *size);
    if (!c || !size) {
        hlo_no_memory(m->r);
        return;
    }
    int n = 0;
    for (int i = 0; at && at[1 + i] && at[1 + i] != '-'; i++)
        if (at[1 + i] >= '0' && at[1 + i] <= '9' && i < kernel->dim.n) {
            int to = at[1 + i] - '0';
            size[to] = kernel->dim.at[i];
            if (to >= n) n = to + 1;
        }
    c->window = (sm_module_list){n, size};
}
