/* Plans as text: "fsdp=2048,tensor=4,seq=on". */

#include "plan_row.h"

typedef struct reader {
    const sm_source *source;
    sm_plan *plan;
    sm_error *err;
    sm_plan_limits *limits; /* of keys with several values; NULL: each has one */
} reader;

static const char *text_of(const reader *r, sm_span span) { return r->source->text + span.offset; }

/* ---- values ---- */

static sm_status fail_value(const reader *r, const plan_row *row, sm_span value) {
    char what[64];
    snprintf(what, sizeof what, "%s cannot be", row->key.name);
    return sm_words_fail(row->key.words, r->source, value, what, r->err);
}

static sm_status read_word(reader *r, const plan_row *row, sm_span value) {
    int found = sm_words_find(row->key.words, r->source, value);
    if (found < 0) return fail_value(r, row, value);
    plan_set_value(r->plan, row, found);
    return SM_OK;
}

/* Of the data types only those in words; their aliases are understood too. */
static sm_status read_dtype(reader *r, const plan_row *row, sm_span value) {
    sm_dtype dtype = SM_BF16;
    bool known = sm_dtype_parse(text_of(r, value), value.length, &dtype);
    for (int i = 0; known && i < row->key.words.n; i++) {
        if (strcmp(sm_dtype_name(dtype), row->key.words.word[i]) != 0) continue;
        plan_set_value(r->plan, row, (int)dtype);
        return SM_OK;
    }
    return fail_value(r, row, value);
}

/* Does the set of ops joined by '+' hold this one already? */
static bool holds_op(const char *set, const char *op) {
    size_t n = strlen(op);
    for (const char *at = set; (at = strstr(at, op)) != NULL; at += n)
        if ((at == set || at[-1] == '+') && (at[n] == '\0' || at[n] == '+')) return true;
    return false;
}

/* Lines of a text are called by their results: q, q.2, sy. Which a model has is seen when it is
 * there. */
static bool is_op(const char *word, size_t length) {
    for (size_t i = 0; i < length; i++) {
        bool letter = (word[i] >= 'a' && word[i] <= 'z') || (word[i] >= 'A' && word[i] <= 'Z');
        bool other = (word[i] >= '0' && word[i] <= '9') || word[i] == '_' || word[i] == '.';
        if (!letter && (i == 0 || !other)) return false;
    }
    return length > 0;
}

static sm_status add_op(reader *r, sm_span part) {
    char *set = r->plan->recompute_ops, op[SM_PLAN_OPS_TEXT];
    if (!is_op(text_of(r, part), part.length))
        return sm_fail_at(r->err, r->source, part, "no model has an op \"%.*s\"",
                          (int)(part.length < 40 ? part.length : 40), text_of(r, part));
    size_t used = strlen(set);
    if (used + 1 + part.length >= SM_PLAN_OPS_TEXT)
        return sm_fail_at(r->err, r->source, part,
                          "this set of ops has more than %d letters; recompute=full names them all",
                          SM_PLAN_OPS_TEXT - 1);
    snprintf(op, sizeof op, "%.*s", (int)part.length, text_of(r, part));
    if (holds_op(set, op)) return sm_fail_at(r->err, r->source, part, "%s is named twice", op);
    snprintf(set + used, SM_PLAN_OPS_TEXT - used, "%s%s", used > 0 ? "+" : "", op);
    return SM_OK;
}

/* A policy by name, or a set of ops. A word that is nearly a policy is no op. */
static sm_status read_recompute(reader *r, const plan_row *row, sm_span value) {
    sm_words policies = row->key.words;
    r->plan->recompute_ops[0] = '\0';
    if (sm_words_find(policies, r->source, value) >= 0) return read_word(r, row, value);
    if (sm_nearest(text_of(r, value), value.length, policies.word, (size_t)policies.n))
        return fail_value(r, row, value);
    for (size_t at = value.offset; at <= value.offset + value.length;) {
        sm_status status = add_op(r, sm_next_part(r->source, value, '+', &at));
        if (status != SM_OK) return status;
    }
    return SM_OK;
}

static sm_status read_value(reader *r, sm_plan_key key, sm_span value) {
    static const char *const numbers[] = {"0", "1", "2"};
    static const uint8_t usual_dims[] = {0, 1, 2};
    const plan_row *row = plan_row_of(key);
    switch (row->key.value) {
    case SM_PLAN_VALUE_INTEGER: {
        int64_t n = 0;
        sm_status status =
            sm_integer_parse(r->source, value, row->key.lowest, row->key.highest, &n, r->err);
        if (status == SM_OK) plan_set_value(r->plan, row, (int)n);
        return status;
    }
    case SM_PLAN_VALUE_WORD: return read_word(r, row, value);
    case SM_PLAN_VALUE_DTYPE: return read_dtype(r, row, value);
    case SM_PLAN_VALUE_RECOMPUTE: return read_recompute(r, row, value);
    case SM_PLAN_VALUE_ORDER:
        return sm_words_order(row->key.words, r->source, value, "no axis is named",
                              plan_usual_order(r->plan->use), r->plan->order, r->err);
    case SM_PLAN_VALUE_LAYOUT: return plan_layout_read(r->source, value, r->plan->layout, r->err);
    case SM_PLAN_VALUE_DIMS:
        r->plan->dims_named = 1;
        for (size_t i = 0; i < value.length; i++)
            r->plan->dims_named = (uint8_t)(r->plan->dims_named + (text_of(r, value)[i] == '.'));
        return sm_words_order((sm_words){numbers, 3}, r->source, value,
                              "no dimension has the number", usual_dims, r->plan->dims, r->err);
    }
    return SM_INTERNAL;
}

/* ---- sets of values ---- */

/* "1..8" */
static sm_status read_range(reader *r, const plan_row *row, sm_span value, size_t dots) {
    sm_plan_limit *limit = &r->limits->of[row - plan_row_of((sm_plan_key)0)];
    int64_t least = 0, most = 0;
    sm_span first = {value.offset, dots};
    sm_span last = {value.offset + dots + 2, value.length - dots - 2};
    sm_status status =
        sm_integer_parse(r->source, first, row->key.lowest, row->key.highest, &least, r->err);
    if (!status)
        status =
            sm_integer_parse(r->source, last, row->key.lowest, row->key.highest, &most, r->err);
    if (!status && most < least)
        return sm_fail_at(r->err, r->source, value, "this range of %s is empty", row->key.name);
    limit->least = (int)least;
    limit->most = (int)most;
    return status;
}

/* "1f1b|interleaved", "1|2|8": each of them is read as the key's only value would be. */
static sm_status read_several(reader *r, sm_plan_key key, sm_span value) {
    const plan_row *row = plan_row_of(key);
    sm_plan_limit *limit = &r->limits->of[key];
    sm_plan one = *r->plan;
    reader inner = {r->source, &one, r->err, NULL};
    if (row->key.value >= SM_PLAN_VALUE_ORDER)
        return sm_fail_at(r->err, r->source, value, "%s has one value, not several", row->key.name);
    for (size_t at = value.offset; at <= value.offset + value.length;) {
        sm_span part = sm_next_part(r->source, value, '|', &at);
        sm_status status = read_value(&inner, key, part);
        if (status) return status;
        if (one.recompute_ops[0])
            return sm_fail_at(r->err, r->source, part,
                              "a set of ops stands alone, not among others");
        if (row->key.value != SM_PLAN_VALUE_INTEGER) limit->words |= 1ull << plan_value(&one, row);
        else if (limit->n == SM_PLAN_LISTED)
            return sm_fail_at(r->err, r->source, part, "at most %d values of a key",
                              SM_PLAN_LISTED);
        else limit->listed[limit->n++] = plan_value(&one, row);
    }
    return SM_OK;
}

/* Whether there are several values; they then limit the key instead of giving it. */
static bool is_set(const reader *r, sm_plan_key key, sm_span value, size_t *dots) {
    const char *text = text_of(r, value);
    bool integer = plan_row_of(key)->key.value == SM_PLAN_VALUE_INTEGER;
    if (plan_row_of(key)->key.value == SM_PLAN_VALUE_LAYOUT) return false;
    for (*dots = 0; integer && *dots + 1 < value.length; ++*dots)
        if (text[*dots] == '.' && text[*dots + 1] == '.') return r->limits != NULL;
    *dots = 0;
    return r->limits && memchr(text, '|', value.length);
}

/* ---- keys ---- */

static sm_status read_item(reader *r, sm_span item) {
    const char *names[SM_PLAN_KEY_COUNT];
    sm_plan_key keys[SM_PLAN_KEY_COUNT];
    size_t at = item.offset, end = item.offset + item.length;
    sm_span word = sm_next_part(r->source, item, '=', &at);
    int n = 0;
    if (at > end)
        return sm_fail_at(r->err, r->source, item, "expected KEY=VALUE, as in %s",
                          r->plan->use == SM_PLAN_SERVING ? "tensor=8,expert=4"
                                                          : "fsdp=64,tensor=8,recompute=selective");
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)key);
        if (!(row->uses >> r->plan->use & 1)) continue;
        keys[n] = (sm_plan_key)key;
        names[n++] = row->name;
    }
    int found = sm_words_find((sm_words){names, n}, r->source, word);
    if (found < 0) {
        bool serving = r->plan->use == SM_PLAN_SERVING;
        const char *whose = serving ? "a plan of serving has no key" : "a plan has no key";
        int key = sm_plan_key_of_nickname(text_of(r, word), word.length);
        if (key >= 0 && sm_plan_key_row_of((sm_plan_key)key)->uses >> r->plan->use & 1)
            return sm_fail_at(r->err, r->source, word, "%s \"%.*s\"; it is called \"%s\" here",
                              whose, (int)word.length, text_of(r, word),
                              sm_plan_key_row_of((sm_plan_key)key)->name);
        return sm_words_fail((sm_words){names, n}, r->source, word, whose, r->err);
    }
    if (sm_plan_given(r->plan, keys[found]))
        return sm_fail_at(r->err, r->source, word, "%s is given twice", names[found]);
    size_t dots;
    sm_span value = sm_source_trim(r->source, at, end);
    if (is_set(r, keys[found], value, &dots))
        return dots ? read_range(r, plan_row_of(keys[found]), value, dots)
                    : read_several(r, keys[found], value);
    r->plan->given |= 1ull << keys[found];
    return read_value(r, keys[found], value);
}

/* ---- the whole ---- */

static sm_status read_items(const sm_source *source, sm_plan *plan, sm_plan_limits *limits,
                            sm_error *err) {
    reader r = {source, plan, err, limits};
    sm_span all = sm_source_trim(source, 0, source->length);
    if (all.length == 0) return SM_OK;
    for (size_t at = all.offset; at <= all.offset + all.length;) {
        sm_status status = read_item(&r, sm_next_part(source, all, ',', &at));
        if (status != SM_OK) return status;
    }
    return SM_OK;
}

/* One plan has one form: a layout says how many chunks a stage has; zero=3 over `data` is fsdp;
 * fsdp is zero=3; 1f1b with several chunks per stage is interleaved; a schedule of several chunks
 * has two where none is given. */
static void settle(sm_plan *plan) {
    if (plan->zero == 3 && plan->fsdp == 1 && plan->data > 1) {
        plan->fsdp = plan->data;
        plan->data = 1;
        plan->given |= 1ull << SM_PLAN_FSDP | 1ull << SM_PLAN_DATA;
    }
    if (plan->fsdp > 1) plan->zero = 3;
    int each = sm_plan_layout_chunks(plan->layout) / plan->pipeline;
    bool said = sm_plan_given(plan, SM_PLAN_VIRTUAL);
    if (!said && each >= 1 && each <= sm_plan_key_row_of(SM_PLAN_VIRTUAL)->highest)
        plan->virtual_stages = each, said = true;
    if (plan->schedule == SM_SCHEDULE_1F1B && plan->virtual_stages > 1)
        plan->schedule = SM_SCHEDULE_INTERLEAVED;
    if (plan->schedule >= SM_SCHEDULE_INTERLEAVED && plan->schedule != SM_SCHEDULE_ZB_H1 && !said)
        plan->virtual_stages = 2;
}

static sm_status parse_training(const sm_source *source, sm_plan *plan, sm_plan_limits *limits,
                                sm_error *err) {
    sm_plan_defaults(plan);
    sm_status status = read_items(source, plan, limits, err);
    if (status == SM_OK) settle(plan);
    return status;
}

sm_status sm_plan_parse(const sm_source *source, sm_plan *plan, sm_error *err) {
    return parse_training(source, plan, NULL, err);
}

sm_status sm_plan_change(const sm_source *source, sm_plan *plan, sm_error *err) {
    uint64_t given = plan->given;
    plan->given = 0;
    sm_status status = read_items(source, plan, NULL, err);
    if (status == SM_OK) settle(plan);
    plan->given |= given;
    return status;
}

static sm_status parse_serving(const sm_source *source, sm_plan *plan, sm_plan_limits *limits,
                               sm_error *err) {
    sm_serve_plan_defaults(plan);
    sm_status status = read_items(source, plan, limits, err);
    if (status == SM_OK && sm_plan_chips(plan) == INT32_MAX)
        return sm_fail_at(err, source, sm_source_trim(source, 0, source->length),
                          "this plan takes more than %d chips", SM_PLAN_MOST_DEGREE);
    return status;
}

sm_status sm_serve_plan_parse(const sm_source *source, sm_plan *plan, sm_error *err) {
    return parse_serving(source, plan, NULL, err);
}

sm_status sm_plan_parse_limits(const sm_source *source, sm_plan_use use, sm_plan *plan,
                               sm_plan_limits *limits, sm_error *err) {
    *limits = (sm_plan_limits){.usual_order = false};
    return use == SM_PLAN_SERVING ? parse_serving(source, plan, limits, err)
                                  : parse_training(source, plan, limits, err);
}
