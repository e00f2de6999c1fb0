/* What stands after the operands of an instruction: ", key=value", in any order. Keys that change
 * neither cost nor place are passed over. */

#include "hlo_reader.h"

typedef bool attribute_reader(hlo_reader *r, sm_instruction *it);

/* ---- computations ---- */

/* A computation's number is found when all are read: *place is in the instruction's own list. */
static bool mention(hlo_reader *r, int *place) {
    hlo_mention *m = hlo_push(r, &r->mentions, sizeof *m);
    if (!m) return false;
    m->span = hlo_name(r);
    m->place = place;
    return m->span.length || hlo_fail_here(r, "expected the name of a computation");
}

enum { MOST_CALLS = 1024 };

static int *one_more_call(hlo_reader *r, const sm_instruction *it) {
    if (it->calls == MOST_CALLS) {
        hlo_fail_here(r, "an instruction calls too many computations");
        return NULL;
    }
    int *list = sm_arena_array(r->arena, (size_t)it->calls + 1, sizeof *list);
    if (!list) hlo_no_memory(r);
    return list;
}

/* One more of them. Those before it move: their mentions too. */
static bool one_call(hlo_reader *r, sm_instruction *it) {
    int *list = one_more_call(r, it);
    if (!list) return false;
    hlo_mention *m = r->mentions.item;
    for (int i = 0; i < it->calls; i++)
        m[r->mentions.n - (size_t)it->calls + (size_t)i].place = &list[i];
    it->call = list;
    return mention(r, &list[it->calls++]);
}

static bool read_calls(hlo_reader *r, sm_instruction *it) {
    if (!hlo_accept(r, '{')) return one_call(r, it);
    while (!hlo_accept(r, '}')) {
        if (it->calls && !hlo_expect(r, ',', "between computations")) return false;
        if (!one_call(r, it)) return false;
    }
    return true;
}

/* Of a while the condition comes first, whatever the order in the text. */
static bool read_body(hlo_reader *r, sm_instruction *it) { return one_call(r, it); }
static bool read_condition(hlo_reader *r, sm_instruction *it) {
    if (!one_call(r, it)) return false;
    if (it->calls != 2) return true;
    hlo_mention *m = r->mentions.item;
    hlo_mention *last = &m[r->mentions.n - 1], *before = last - 1;
    int *place = last->place;
    last->place = before->place;
    before->place = place;
    return true;
}

/* ---- windows ---- */

sm_module_convolution *hlo_convolution(hlo_reader *r, sm_instruction *it) {
    if (it->convolution) return (sm_module_convolution *)(uintptr_t)it->convolution;
    sm_module_convolution *c = sm_arena_alloc(r->arena, sizeof *c);
    if (!c) return hlo_no_memory(r), NULL;
    c->labels = "";
    c->features = c->batches = 1;
    it->convolution = c;
    return c;
}

/* 3x3, or of pads the first or second of 1_1x0_2. */
static bool by_x(hlo_reader *r, sm_span span, int which, sm_module_list *out) {
    size_t at = r->at;
    r->at = span.offset;
    r->numbers.n = 0;
    while (!r->status) {
        int64_t value = 0, second = 0, *number = hlo_push(r, &r->numbers, sizeof *number);
        if (!number) break;
        if (!hlo_number(r, &value) ||
            (which >= 0 && (!hlo_accept(r, '_') || !hlo_number(r, &second))))
            hlo_fail_here(r, "expected sizes joined by 'x'");
        *number = which == 1 ? second : value;
        if (r->at >= span.offset + span.length || !hlo_accept(r, 'x')) break;
    }
    r->at = at;
    return hlo_keep_numbers(r, out) && !r->status;
}

static bool window_part(hlo_reader *r, sm_span key, sm_span value, sm_module_convolution *c) {
    if (hlo_is(r, key, "size")) return by_x(r, value, -1, &c->window);
    if (hlo_is(r, key, "stride")) return by_x(r, value, -1, &c->stride);
    if (hlo_is(r, key, "lhs_dilate")) return by_x(r, value, -1, &c->dilated_base);
    if (hlo_is(r, key, "rhs_dilate")) return by_x(r, value, -1, &c->dilated_window);
    if (hlo_is(r, key, "pad"))
        return by_x(r, value, 0, &c->pad_low) && by_x(r, value, 1, &c->pad_high);
    return true; /* rhs_reversal */
}

static bool read_window(hlo_reader *r, sm_instruction *it) {
    sm_module_convolution *c = hlo_convolution(r, it);
    if (!c || !hlo_expect(r, '{', "before a window")) return false;
    while (!r->status && !hlo_accept(r, '}')) {
        sm_span key = hlo_name(r);
        if (!key.length || !hlo_expect(r, '=', "in a window"))
            return hlo_fail_here(r, "expected a key");
        sm_span value = {r->at, 0};
        while (r->at < r->source->length && !strchr(" }", r->source->text[r->at])) r->at++;
        value.length = r->at - value.offset;
        if (!window_part(r, key, value, c)) return false;
    }
    return !r->status;
}

static bool read_labels(hlo_reader *r, sm_instruction *it) {
    sm_module_convolution *c = hlo_convolution(r, it);
    if (!c) return false;
    c->labels = hlo_copy(r, hlo_skip_value(r));
    return !r->status;
}

static bool group_count(hlo_reader *r, int64_t *out) {
    return (hlo_number(r, out) && *out >= 1) || hlo_fail_here(r, "expected how many groups");
}
static bool read_features(hlo_reader *r, sm_instruction *it) {
    sm_module_convolution *c = hlo_convolution(r, it);
    return c && group_count(r, &c->features);
}
static bool read_batches(hlo_reader *r, sm_instruction *it) {
    sm_module_convolution *c = hlo_convolution(r, it);
    return c && group_count(r, &c->batches);
}

/* ---- numbers, words, texts ---- */

static bool read_groups(hlo_reader *r, sm_instruction *it) { return hlo_groups(r, &it->groups); }
static bool read_pairs(hlo_reader *r, sm_instruction *it) { return hlo_pairs(r, &it->groups); }

/* {{1,8},{4}}: the elements of all pieces that a permute sends; those of a gather nobody asks. */
static bool read_slices(hlo_reader *r, sm_instruction *it) {
    sm_module_list piece;
    double all = 0;
    if (it->opcode != SM_OPCODE_COLLECTIVE_PERMUTE &&
        it->opcode != SM_OPCODE_COLLECTIVE_PERMUTE_START)
        return hlo_skip_value(r).length > 0;
    if (!hlo_expect(r, '{', "before the sizes of slices")) return false;
    while (!r->status && !hlo_accept(r, '}')) {
        if (!hlo_expect(r, '{', "before a slice") || !hlo_numbers(r, ',', '}', &piece)) break;
        double elements = 1;
        for (int i = 0; i < piece.n; i++) elements *= (double)piece.at[i];
        all += elements;
        hlo_accept(r, ',');
    }
    it->number = all < 9e15 ? (int64_t)all : 0;
    return !r->status;
}

static bool read_direction(hlo_reader *r, sm_instruction *it) {
    sm_span word = hlo_name(r);
    it->direction = module_direction_of(r->source->text + word.offset, word.length);
    return true;
}

static bool read_kind(hlo_reader *r, sm_instruction *it) {
    it->target = hlo_copy(r, hlo_name(r));
    return !r->status;
}
static bool read_target(hlo_reader *r, sm_instruction *it) {
    sm_span span;
    if (!hlo_quoted(r, &span)) return hlo_fail_here(r, "expected the target in quotes");
    it->target = hlo_copy(r, span);
    return !r->status;
}

static bool read_config(hlo_reader *r, sm_instruction *it) {
    sm_span span = hlo_skip_value(r);
    if (it->opcode == SM_OPCODE_WHILE)
        it->trips =
            module_number_after(r->source->text + span.offset, span.length, "known_trip_count");
    if (it->opcode == SM_OPCODE_CUSTOM_CALL &&
        !module_config(r->arena, r->source->text + span.offset, span.length, it))
        return hlo_no_memory(r);
    return !r->status;
}

/* {{0}: (0, {}), {1}: (1, {})}: which results lie in which operands; {} is the whole result. */
bool hlo_aliases(hlo_reader *r, sm_module_list *out) {
    sm_module_list path;
    hlo_list results = {0};
    if (!hlo_expect(r, '{', "before aliases")) return false;
    while (!r->status && !hlo_accept(r, '}')) {
        if (results.n && !hlo_expect(r, ',', "between aliases")) break;
        if (!hlo_expect(r, '{', "before a result") || !hlo_numbers(r, ',', '}', &path)) break;
        int64_t *result = hlo_push(r, &results, sizeof *result);
        if (result) *result = path.n ? path.at[0] : -1;
        if (hlo_expect(r, ':', "after a result")) hlo_skip_value(r);
    }
    r->numbers.n = 0;
    for (size_t i = 0; i < results.n && !r->status; i++) {
        int64_t *number = hlo_push(r, &r->numbers, sizeof *number);
        if (number) *number = ((int64_t *)results.item)[i];
    }
    sm_free(results.item);
    return !r->status && hlo_keep_numbers(r, out);
}

static bool read_aliases(hlo_reader *r, sm_instruction *it) {
    return hlo_aliases(r, &it->in_place);
}

/* {op_name="..." source_file="..." source_line=3 stack_frame_id=4} */
static bool read_metadata(hlo_reader *r, sm_instruction *it) {
    if (!hlo_expect(r, '{', "before metadata")) return false;
    while (!r->status && !hlo_accept(r, '}')) {
        sm_span key = hlo_name(r), text = {0, 0};
        int64_t number = 0;
        if (!key.length || !hlo_expect(r, '=', "in metadata"))
            return hlo_fail_here(r, "expected a key");
        if (!hlo_quoted(r, &text) && !hlo_number(r, &number)) hlo_skip_value(r);
        if (hlo_is(r, key, "op_name")) it->op_name = hlo_unescaped(r, text);
        else if (hlo_is(r, key, "source_file")) it->file = hlo_unescaped(r, text);
        else if (hlo_is(r, key, "source_line")) it->file_line = (int)(number & INT32_MAX);
        else if (hlo_is(r, key, "stack_frame_id")) it->frame = (int)(number & INT32_MAX);
        hlo_accept(r, ',');
    }
    return !r->status;
}

static const struct {
    const char *key;
    attribute_reader *read; /* NULL: at this place of an instruction a number, or a list of them */
    size_t number, list;
} attributes[] = {
#define NUMBER(member) NULL, offsetof(sm_instruction, member), 0
#define LIST(member) NULL, 0, offsetof(sm_instruction, member)
    {"metadata", read_metadata, 0, 0},
    {"dimensions", LIST(dimensions)},
    {"to_apply", read_calls, 0, 0},
    {"calls", read_calls, 0, 0},
    {"lhs_contracting_dims", LIST(lhs_contracting)},
    {"rhs_contracting_dims", LIST(rhs_contracting)},
    {"lhs_batch_dims", LIST(lhs_batch)},
    {"rhs_batch_dims", LIST(rhs_batch)},
    {"backend_config", read_config, 0, 0},
    {"index", NUMBER(number)},
    {"kind", read_kind, 0, 0},
    {"direction", read_direction, 0, 0},
    {"channel_id", NUMBER(channel)},
    {"replica_groups", read_groups, 0, 0},
    {"source_target_pairs", read_pairs, 0, 0},
    {"slice_sizes", read_slices, 0, 0},
    {"window", read_window, 0, 0},
    {"dim_labels", read_labels, 0, 0},
    {"feature_group_count", read_features, 0, 0},
    {"batch_group_count", read_batches, 0, 0},
    {"custom_call_target", read_target, 0, 0},
    {"condition", read_condition, 0, 0},
    {"body", read_body, 0, 0},
    {"branch_computations", read_calls, 0, 0},
    {"true_computation", read_calls, 0, 0},
    {"false_computation", read_calls, 0, 0},
    {"called_computations", read_calls, 0, 0},
    {"async_computation", read_calls, 0, 0},
    {"output_to_operand_aliasing", read_aliases, 0, 0},
};

static bool one_attribute(hlo_reader *r, sm_instruction *it) {
    sm_span key = hlo_name(r);
    if (!key.length) return hlo_fail_here(r, "expected the key of an attribute");
    if (!hlo_expect(r, '=', "after the key of an attribute")) return false;
    size_t i = 0, n = sizeof attributes / sizeof *attributes;
    while (i < n && !hlo_is(r, key, attributes[i].key)) i++;
    if (i < n && attributes[i].read) return attributes[i].read(r, it);
    if (i < n && attributes[i].number)
        return hlo_number(r, (void *)((char *)it + attributes[i].number)) ||
               hlo_fail_here(r, "expected a number");
    if (i < n)
        return hlo_expect(r, '{', "before numbers") &&
               hlo_numbers(r, ',', '}', (void *)((char *)it + attributes[i].list));
    hlo_skip_value(r);
    return !r->status;
}

bool hlo_attributes(hlo_reader *r, sm_instruction *it) {
    while (hlo_accept(r, ','))
        if (!one_attribute(r, it)) return false;
    return !r->status;
}
