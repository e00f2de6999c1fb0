/* Reading data/frameworks/NAME.json: docs/frameworks.md tells what each field means. */

#include "framework.h"

typedef struct reader {
    sm_frameworks *all;
    sm_framework *f;
    sm_arena *arena;
    sm_error *err;
} reader;

/* ---- lists ---- */

/* The formula that a text holds; an absent value has none. */
static sm_status formula(const reader *r, const json_value *v, const expression **out) {
    *out = NULL;
    if (!v) return SM_OK;
    sm_status status = json_expect(v, IS_TEXT, "a formula");
    if (status) return status;
    return expression_parse(v->in->source, (sm_span){v->at + 1, v->length - 2}, r->arena, out,
                            r->err);
}

/* Read each value of a list, or of an object, into an element of its own; *out points to the first.
 */
typedef sm_status read_element(const reader *r, const json_value *v, void *out);
static sm_status read_each(const reader *r, const json_value *v, json_kind kind, size_t bytes,
                           read_element *each, int *n, void *out) {
    char *list = NULL;
    sm_status status = v ? json_expect(v, kind, "a list") : SM_OK;
    if (status) return status;
    *n = v ? (int)v->n : 0;
    list = sm_arena_array(r->arena, (size_t)*n + 1, bytes);
    if (!list) return sm_fail_memory(r->err);
    memcpy(out, &list, sizeof list);
    for (int i = 0; i < *n && !status; i++) status = each(r, &v->item[i], list + (size_t)i * bytes);
    return status;
}

static sm_status read_text(const reader *r, const json_value *v, void *out) {
    (void)r;
    return json_read_text(v, (const char **)out);
}

static sm_status texts(const reader *r, const json_value *v, const char ***out, int *n) {
    return read_each(r, v, IS_LIST, sizeof **out, read_text, n, out);
}

/* ---- parts ---- */

static const char *const types[] = {"number", "text", "switch"};

static sm_status read_default(const json_value *v, expression_value *out) {
    *out = (expression_value){.kind = VALUE_ABSENT};
    if (!v) return SM_OK;
    if (v->kind == IS_NUMBER) *out = value_number(v->number);
    else if (v->kind == IS_BOOL) *out = value_number(v->truth);
    else if (v->kind == IS_TEXT) *out = value_text(v->text);
    else return json_fail(v, "expected a number, true, false or a text");
    return SM_OK;
}

static sm_status read_key(const reader *r, const json_value *v, void *out) {
    framework_key *k = out;
    int type = TYPE_NUMBER;
    *k = (framework_key){.also = "", .about = ""};
    sm_status status = json_expect_keys(v, "a key", "key|also|name|type|default|write|about");
    if (!status && !json_get(v, "key")) status = json_fail(v, "a key has no \"key\"");
    if (!status) status = json_read_text(json_get(v, "key"), &k->key);
    if (!status) status = json_read_text(json_get(v, "also"), &k->also);
    if (!status) status = json_read_text(json_get(v, "name"), &k->name);
    if (!status) status = json_read_text(json_get(v, "about"), &k->about);
    if (!status) status = json_read_choice(json_get(v, "type"), types, 3, &type);
    if (!status) status = read_default(json_get(v, "default"), &k->by_default);
    k->type = (setting_type)type;
    return status ? status : formula(r, json_get(v, "write"), &k->write);
}

static sm_status read_read(const reader *r, const json_value *v, void *out) {
    framework_read *read = out;
    sm_status status = json_expect_keys(v, "what a recipe sets", "set|from|when|assumed");
    if (!status && (!json_get(v, "set") || !json_get(v, "from")))
        status = json_fail(v, "expected \"set\" and \"from\"");
    if (!status) status = json_read_text(json_get(v, "set"), &read->sets);
    if (!status) status = json_read_text(json_get(v, "assumed"), &read->assumed);
    if (!status) status = formula(r, json_get(v, "from"), &read->from);
    return status ? status : formula(r, json_get(v, "when"), &read->when);
}

/* {"why": ["--lr*", ...]} */
static sm_status read_ignored(const reader *r, const json_value *v) {
    int reasons = v ? (int)v->n : 0, n = 0;
    sm_status status = v ? json_expect(v, IS_OBJECT, "reasons with their keys") : SM_OK;
    for (int i = 0; i < reasons && !status; i++) n += (int)v->item[i].n;
    r->f->ignore = sm_arena_array(r->arena, (size_t)n + 1, sizeof *r->f->ignore);
    if (!r->f->ignore) return sm_fail_memory(r->err);
    for (int i = 0; i < reasons && !status; i++) {
        const char **pattern;
        int patterns = 0;
        status = texts(r, &v->item[i], &pattern, &patterns);
        for (int k = 0; k < patterns && !status; k++)
            r->f->ignore[r->f->ignored++] = (framework_ignored){pattern[k], v->item[i].key};
    }
    return status;
}

/* "theirs": "ours" */
static sm_status read_model(const reader *r, const json_value *v, void *out) {
    framework_model *model = out;
    model->theirs = v->key;
    return read_text(r, v, &model->ours);
}

/* ---- which plans it runs ---- */

static sm_status read_word(const json_value *v, const sm_plan_key_row *row, uint64_t *words) {
    if (!json_text(v)) return json_fail(v, "expected a word of the key %s", row->name);
    if (row->value == SM_PLAN_VALUE_DTYPE) {
        sm_dtype dtype = SM_BF16;
        if (!sm_dtype_parse(v->text, v->n, &dtype)) return json_fail(v, "this is no data type");
        *words |= 1ull << dtype;
        return SM_OK;
    }
    if (row->value == SM_PLAN_VALUE_ORDER) {
        if (strcmp(v->text, "usual") != 0) return json_fail(v, "an order can only be \"usual\"");
        *words = 1;
        return SM_OK;
    }
    if (row->value == SM_PLAN_VALUE_LAYOUT) {
        static const char *const layouts[] = {"even", "equal"};
        int found = 0;
        sm_status status = json_read_choice(v, layouts, 2, &found);
        *words |= 1ull << found;
        return status;
    }
    int found = -1;
    sm_status status = json_read_choice(v, row->words.word, (size_t)row->words.n, &found);
    if (!status) *words |= 1ull << found;
    return status;
}

/* "1..8" */
static sm_status read_range(const json_value *v, framework_rule *rule) {
    const json_document *d = v->in;
    const char *dots = strstr(v->text, "..");
    int64_t least, most;
    if (!dots) return json_fail(v, "expected a range, as in 1..8");
    size_t at = v->at + 1, n = (size_t)(dots - v->text);
    sm_status status =
        sm_integer_parse(d->source, (sm_span){at, n}, 0, SM_PLAN_MOST_DEGREE, &least, d->err);
    if (!status)
        status = sm_integer_parse(d->source, (sm_span){at + n + 2, v->n - n - 2}, 1,
                                  SM_PLAN_MOST_DEGREE, &most, d->err);
    if (status) return status;
    rule->least = (int)least;
    rule->most = (int)most;
    return SM_OK;
}

static sm_plan_share share_of(const char *text) {
    return strcmp(text, "whole") == 0    ? SM_SHARE_WHOLE
           : strcmp(text, "rounds") == 0 ? SM_SHARE_ROUNDS
                                         : SM_SHARE_ANY;
}

/* Of a key of words some of them; of one of numbers numbers below 64, or one range. */
static sm_status read_values(const json_value *v, framework_rule *rule) {
    const sm_plan_key_row *row = sm_plan_key_row_of(rule->key);
    bool numbers = row->value == SM_PLAN_VALUE_INTEGER;
    sm_status status = json_expect(v, IS_LIST, "the values a key may have");
    if (!status && numbers && v->n == 1 && json_is(&v->item[0], IS_TEXT)) {
        rule->share = rule->key == SM_PLAN_MICROBATCH ? share_of(v->item[0].text) : SM_SHARE_ANY;
        return rule->share ? SM_OK : read_range(&v->item[0], rule);
    }
    for (uint32_t i = 0; !status && i < v->n; i++) {
        const json_value *item = &v->item[i];
        if (!numbers) status = read_word(item, row, &rule->words);
        else if (!item->whole || item->integer < 0 || item->integer > 63)
            status = json_fail(item, "expected a number from 0 to 63, or \"1..8\" alone");
        else rule->words |= 1ull << item->integer;
    }
    return status;
}

static void add_degree(void *degrees, const char *name) {
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (strcmp(sm_plan_key_row_of((sm_plan_key)key)->name, name) == 0)
            *(unsigned *)degrees |= 1u << key;
}

static sm_status read_rule(const reader *r, const json_value *v, void *out) {
    framework_rule *rule = out;
    const char *names[SM_PLAN_KEY_COUNT];
    int key = SM_PLAN_KEY_COUNT;
    const json_value *never = json_get(v, "never");
    for (int i = 0; i < SM_PLAN_KEY_COUNT; i++) names[i] = sm_plan_key_row_of((sm_plan_key)i)->name;
    sm_status status = json_expect_keys(v, "a rule", "key|values|when|never|because");
    if (!status && !never && !json_get(v, "key"))
        status = json_fail(v, "expected \"key\" with \"values\", or \"never\"");
    if (!status) status = json_read_choice(json_get(v, "key"), names, SM_PLAN_KEY_COUNT, &key);
    rule->key = (sm_plan_key)key;
    rule->because = "";
    if (!status) status = json_read_text(json_get(v, "because"), &rule->because);
    if (!status) status = formula(r, never ? never : json_get(v, "when"), &rule->when);
    if (!status && rule->when) expression_each_name(rule->when, add_degree, &rule->degrees);
    if (!rule->degrees) rule->degrees = (1 << SM_PLAN_DEGREES) - 1;
    if (status || never) return status;
    if (!json_get(v, "values")) return json_fail(v, "expected \"values\"");
    return read_values(json_get(v, "values"), rule);
}

static sm_status read_limit(const reader *r, const json_value *v, void *out) {
    framework_limit *limit = out;
    sm_status status = json_expect_keys(v, "a limit", "when|say");
    if (!status && (!json_get(v, "when") || !json_get(v, "say")))
        status = json_fail(v, "expected \"when\" and \"say\"");
    if (!status) status = formula(r, json_get(v, "when"), &limit->when);
    return status ? status : json_read_text(json_get(v, "say"), &limit->say);
}

static sm_status read_op(const reader *r, const json_value *v, void *out) {
    (void)r;
    framework_op *op = out;
    sm_status status = json_expect_keys(v, "an op", "op|arguments|write");
    if (!status && (!json_get(v, "op") || !json_get(v, "write")))
        status = json_fail(v, "expected \"op\" and \"write\"");
    if (!status) status = json_read_text(json_get(v, "op"), &op->op);
    if (!status) status = json_read_text(json_get(v, "write"), &op->write);
    const json_value *arguments = status ? NULL : json_get(v, "arguments");
    if (arguments && !arguments->whole) status = json_fail(arguments, "expected a number");
    op->arguments = arguments ? arguments->integer : 0;
    return status;
}

/* ---- the whole ---- */

/* Networks between its chips: "switch" of GPUs, "torus" of TPUs. */
static sm_status read_networks(const json_value *v, unsigned *networks) {
    static const char *const kinds[] = {"switch", "torus"};
    sm_status status = v ? json_expect(v, IS_LIST, "a list") : SM_OK;
    for (uint32_t i = 0; v && i < v->n && !status; i++) {
        int kind = 0;
        status = json_read_choice(&v->item[i], kinds, 2, &kind);
        *networks |= 1u << kind;
    }
    return status;
}

static sm_status read_head(const reader *r, const json_value *root) {
    static const char *const uses[] = {"training", "serving"};
    static const char *const needed[] = {"name", "title", "version", "for", "form"};
    int use = 0;
    sm_framework *f = r->f;
    for (int i = 0; i < 5; i++)
        if (!json_get(root, needed[i]))
            return json_fail(root, "a framework has no \"%s\"", needed[i]);
    sm_status status = json_read_text(json_get(root, "name"), &f->name);
    if (!status) status = json_read_text(json_get(root, "title"), &f->title);
    if (!status) status = json_read_text(json_get(root, "version"), &f->version);
    if (!status) status = json_read_text(json_get(root, "source"), &f->source);
    if (!status) status = json_read_text(json_get(root, "form"), &f->form);
    if (!status) status = json_read_text(json_get(root, "software"), &f->software);
    if (!status) status = json_read_text(json_get(root, "facts"), &f->facts);
    if (!status) status = json_read_choice(json_get(root, "for"), uses, 2, &use);
    f->use = (sm_plan_use)use;
    if (!status) status = read_networks(json_get(root, "networks"), &f->networks);
    return status ? status : json_read_text(json_get(root, "like"), &f->like_name);
}

static sm_status read_framework(const reader *r, const json_value *root) {
    sm_framework *f = r->f;
    sm_status status = json_expect_keys(
        root, "a framework",
        "name|title|version|source|for|form|software|facts|like|prefixes|models|keys|"
        "ignored|reads|rules|cannot|begin|end|lets|networks|ops|vendors");
    if (!status) status = read_head(r, root);
    if (!status) status = texts(r, json_get(root, "prefixes"), &f->prefix, &f->prefixes);
    if (!status) status = texts(r, json_get(root, "vendors"), &f->vendor, &f->vendors);
    if (!status) status = texts(r, json_get(root, "begin"), &f->begin, &f->begins);
    if (!status) status = texts(r, json_get(root, "end"), &f->end, &f->ends);
#define EACH(key, kind, member, number, each)                                                      \
    if (!status)                                                                                   \
        status = read_each(r, json_get(root, key), kind, sizeof *f->member, each, &f->number,      \
                           &f->member);
    EACH("models", IS_OBJECT, model, models, read_model)
    EACH("keys", IS_LIST, key, keys, read_key)
    if (!status) status = read_ignored(r, json_get(root, "ignored"));
    EACH("reads", IS_LIST, read, reads, read_read)
    EACH("lets", IS_LIST, let, lets, read_read)
    EACH("ops", IS_LIST, op, ops, read_op)
    EACH("rules", IS_LIST, rule, rules, read_rule)
    EACH("cannot", IS_LIST, limit, limits, read_limit)
#undef EACH
    return status;
}

sm_status framework_read_file(sm_frameworks *all, const sm_source *source, sm_error *err) {
    /* Values point to their document and to the source, which stay. */
    sm_source *kept = sm_arena_alloc(all->arena, sizeof *kept);
    json_document *document = sm_arena_alloc(all->arena, sizeof *document);
    sm_framework *f = sm_arena_alloc(all->arena, sizeof *f);
    if (!kept || !document || !f) return sm_fail_memory(err);
    *kept = *source;
    *document = (json_document){.source = kept, .arena = all->arena, .err = err};
    const json_value *root;
    const reader r = {all, f, all->arena, err};
    sm_status status = json_parse(document, &root);
    if (!status) status = read_framework(&r, root);
    if (status) return status;
    if (all->n == SM_MOST_FRAMEWORKS)
        return sm_fail_at(err, source, (sm_span){0, 1}, "there are at most %d frameworks",
                          SM_MOST_FRAMEWORKS);
    all->own[all->n] = f;
    all->of[all->n++] = f;
    return SM_OK;
}
