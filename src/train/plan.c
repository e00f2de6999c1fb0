/* Plans as text: "fsdp=2048,tensor=4,seq=on". */
#include "plan_text.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(sm_context_by) == sizeof(int) && sizeof(sm_recompute) == sizeof(int) &&
                   sizeof(sm_schedule) == sizeof(int) && sizeof(sm_dtype) == sizeof(int) &&
                   sizeof(sm_optimizer) == sizeof(int),
               "the words of a plan are stored through int");

static const uint8_t default_order[SM_PLAN_DEGREES] = {
    SM_PLAN_TENSOR, SM_PLAN_CONTEXT, SM_PLAN_EXPERT, SM_PLAN_FSDP, SM_PLAN_DATA, SM_PLAN_PIPELINE};

void sm_plan_defaults(sm_plan *plan) {
    memset(plan, 0, sizeof *plan);
    plan->data = plan->fsdp = plan->tensor = plan->context = plan->expert = plan->pipeline = 1;
    plan->virtual_stages = plan->microbatch = plan->zero = 1;
    plan->seq = true;
    plan->context_by = SM_CONTEXT_RING;
    plan->recompute = SM_RECOMPUTE_NONE;
    plan->schedule = SM_SCHEDULE_1F1B;
    plan->offload = SM_OFFLOAD_NONE;
    plan->dtype = SM_BF16;
    plan->optimizer = SM_OPTIMIZER_ADAM;
    plan->gradient = SM_FP32;
    memcpy(plan->order, default_order, sizeof plan->order);
    for (uint8_t i = 0; i < 3; i++) plan->dims[i] = i;
}

/* ---- words ---- */

typedef struct reader {
    const sm_source *source;
    sm_plan *plan;
    sm_error *err;
} reader;

static const char *text_of(const reader *r, sm_span span) { return r->source->text + span.offset; }

/* ---- values ---- */

static void *member(sm_plan *plan, const plan_field *field) { return (char *)plan + field->offset; }

static sm_status read_integer(reader *r, const plan_field *field, sm_span value) {
    int64_t n = 0;
    sm_status status =
        sm_integer_parse(r->source, value, field->lowest, field->highest, &n, r->err);
    if (status == SM_OK) *(int *)member(r->plan, field) = (int)n;
    return status;
}

static sm_status fail_value(const reader *r, sm_plan_key key, sm_span value) {
    char what[64];
    snprintf(what, sizeof what, "%s cannot be", sm_plan_keys[key]);
    return sm_words_fail(sm_plan_field(key)->words, r->source, value, what, r->err);
}

static sm_status read_word(reader *r, sm_plan_key key, sm_span value) {
    const plan_field *field = sm_plan_field(key);
    int found = sm_words_find(field->words, r->source, value);
    if (found < 0) return fail_value(r, key, value);
    if (field->value == PLAN_SWITCH) *(bool *)member(r->plan, field) = found == 0;
    else *(int *)member(r->plan, field) = found;
    return SM_OK;
}

/* Of the data types only those in words; their aliases are understood too. */
static sm_status read_dtype(reader *r, sm_plan_key key, sm_span value) {
    const plan_field *field = sm_plan_field(key);
    sm_dtype dtype = SM_BF16;
    bool known = sm_dtype_parse(text_of(r, value), value.length, &dtype);
    for (int i = 0; known && i < field->words.n; i++) {
        if (strcmp(sm_dtype_name(dtype), field->words.word[i]) != 0) continue;
        *(sm_dtype *)member(r->plan, field) = dtype;
        return SM_OK;
    }
    return fail_value(r, key, value);
}

/* Does the set of ops joined by '+' hold this one already? */
static bool holds_op(const char *set, const char *op) {
    size_t n = strlen(op);
    for (const char *at = set; (at = strstr(at, op)) != NULL; at += n)
        if ((at == set || at[-1] == '+') && (at[n] == '\0' || at[n] == '+')) return true;
    return false;
}

static sm_status add_op(reader *r, sm_span part) {
    char *set = r->plan->recompute_ops;
    sm_words ops = sm_plan_ops();
    int found = sm_words_find(ops, r->source, part);
    if (found < 0) return sm_words_fail(ops, r->source, part, "no model has an op", r->err);
    if (holds_op(set, ops.word[found]))
        return sm_fail_at(r->err, r->source, part, "%s is named twice", ops.word[found]);
    size_t used = strlen(set);
    if (used + 1 + strlen(ops.word[found]) >= SM_PLAN_OPS_TEXT)
        return sm_fail_at(r->err, r->source, part,
                          "this set of ops has more than %d letters; recompute=full names them all",
                          SM_PLAN_OPS_TEXT - 1);
    snprintf(set + used, SM_PLAN_OPS_TEXT - used, "%s%s", used > 0 ? "+" : "", ops.word[found]);
    return SM_OK;
}

/* A policy by name, or a set of ops: a word that is neither is told the nearest of both. */
static sm_status read_recompute(reader *r, sm_span value) {
    sm_words policies = sm_plan_field(SM_PLAN_RECOMPUTE)->words;
    int found = sm_words_find(policies, r->source, value);
    r->plan->recompute = found < 0 ? SM_RECOMPUTE_NONE : (sm_recompute)found;
    if (found >= 0) return SM_OK;
    bool set = memchr(text_of(r, value), '+', value.length) != NULL;
    if (!set && sm_words_find(sm_plan_ops(), r->source, value) < 0 &&
        sm_nearest(text_of(r, value), value.length, sm_plan_ops().word, (size_t)sm_plan_ops().n) ==
            NULL)
        return fail_value(r, SM_PLAN_RECOMPUTE, value);
    for (size_t at = value.offset; at <= value.offset + value.length;) {
        sm_status status = add_op(r, sm_next_part(r->source, value, '+', &at));
        if (status != SM_OK) return status;
    }
    return SM_OK;
}

static sm_status read_order(reader *r, sm_span value) {
    return sm_words_order(sm_plan_field(SM_PLAN_ORDER)->words, r->source, value, "no axis is named",
                          default_order, r->plan->order, r->err);
}

/* What a permutation leaves out follows in the usual order. */
static void complete(uint8_t *list, int n, int all, const uint8_t *rest) {
    for (int i = 0; i < all; i++)
        if (n < all && memchr(list, rest[i], (size_t)n) == NULL) list[n++] = rest[i];
}

static sm_status read_dims(reader *r, sm_span value) {
    static const uint8_t plain[3] = {0, 1, 2};
    uint8_t *dims = r->plan->dims;
    int n = 0;
    for (size_t at = value.offset; at <= value.offset + value.length;) {
        int64_t dim = 0;
        sm_span part = sm_next_part(r->source, value, '.', &at);
        sm_status status = sm_integer_parse(r->source, part, 0, 2, &dim, r->err);
        if (status != SM_OK) return status;
        if (memchr(dims, (int)dim, (size_t)n) != NULL)
            return sm_fail_at(r->err, r->source, part, "dimension %d is named twice", (int)dim);
        dims[n++] = (uint8_t)dim;
    }
    complete(dims, n, 3, plain);
    return SM_OK;
}

static sm_status read_value(reader *r, sm_plan_key key, sm_span value) {
    const plan_field *field = sm_plan_field(key);
    switch (field->value) {
    case PLAN_INTEGER: return read_integer(r, field, value);
    case PLAN_SWITCH:
    case PLAN_WORD: return read_word(r, key, value);
    case PLAN_DTYPE: return read_dtype(r, key, value);
    case PLAN_RECOMPUTE: return read_recompute(r, value);
    case PLAN_ORDER: return read_order(r, value);
    case PLAN_DIMS: return read_dims(r, value);
    }
    return SM_INTERNAL;
}

/* ---- the whole ---- */

/* What other tools call the keys. */
static const struct {
    const char *theirs;
    sm_plan_key key;
} nicknames[] = {
    {"dp", SM_PLAN_DATA},           {"tp", SM_PLAN_TENSOR},   {"pp", SM_PLAN_PIPELINE},
    {"cp", SM_PLAN_CONTEXT},        {"ep", SM_PLAN_EXPERT},   {"sp", SM_PLAN_SEQ},
    {"vp", SM_PLAN_VIRTUAL},        {"vpp", SM_PLAN_VIRTUAL}, {"mbs", SM_PLAN_MICROBATCH},
    {"etp", SM_PLAN_EXPERT_TENSOR},
};

static sm_status fail_key(reader *r, sm_words keys, sm_span word) {
    const char *text = r->source->text + word.offset;
    for (size_t i = 0; i < sizeof nicknames / sizeof *nicknames; i++)
        if (strlen(nicknames[i].theirs) == word.length &&
            memcmp(text, nicknames[i].theirs, word.length) == 0)
            return sm_fail_at(r->err, r->source, word,
                              "a plan has no key \"%s\"; it is called \"%s\" here",
                              nicknames[i].theirs, sm_plan_keys[nicknames[i].key]);
    return sm_words_fail(keys, r->source, word, "a plan has no key", r->err);
}

static sm_status read_item(reader *r, sm_span item) {
    size_t at = item.offset, end = item.offset + item.length;
    sm_span word = sm_next_part(r->source, item, '=', &at);
    if (at > end)
        return sm_fail_at(r->err, r->source, item,
                          "expected KEY=VALUE, as in fsdp=64,tensor=8,recompute=selective");
    sm_words keys = {sm_plan_keys, SM_PLAN_KEY_COUNT};
    int key = sm_words_find(keys, r->source, word);
    if (key < 0) return fail_key(r, keys, word);
    if (r->plan->given >> key & 1)
        return sm_fail_at(r->err, r->source, word, "%s is given twice", sm_plan_keys[key]);
    r->plan->given |= 1u << key;
    return read_value(r, (sm_plan_key)key, sm_source_trim(r->source, at, end));
}

/* One plan has one form: zero=3 over `data` is fsdp; fsdp is zero=3; 1f1b with several chunks per
 * stage is interleaved; a schedule of several chunks has two where none is given. */
static void canonicalise(sm_plan *plan) {
    bool chunked_given = plan->given >> SM_PLAN_VIRTUAL & 1;
    if (plan->zero == 3 && plan->fsdp == 1 && plan->data > 1) {
        plan->fsdp = plan->data;
        plan->data = 1;
        plan->given |= 1u << SM_PLAN_FSDP | 1u << SM_PLAN_DATA;
    }
    if (plan->fsdp > 1) plan->zero = 3;
    if (plan->schedule == SM_SCHEDULE_1F1B && plan->virtual_stages > 1)
        plan->schedule = SM_SCHEDULE_INTERLEAVED;
    if (plan->schedule >= SM_SCHEDULE_INTERLEAVED && plan->schedule != SM_SCHEDULE_ZB_H1 &&
        !chunked_given)
        plan->virtual_stages = 2;
}

sm_status sm_plan_parse(const sm_source *source, sm_plan *plan, sm_error *err) {
    sm_plan_defaults(plan);
    reader r = {source, plan, err};
    sm_span all = sm_source_trim(r.source, 0, source->length);
    if (all.length == 0) return SM_OK;
    for (size_t at = all.offset; at <= all.offset + all.length;) {
        sm_status status = read_item(&r, sm_next_part(r.source, all, ',', &at));
        if (status != SM_OK) return status;
    }
    canonicalise(plan);
    return SM_OK;
}
