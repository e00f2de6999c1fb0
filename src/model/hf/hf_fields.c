/* Reads the keys of a Hugging Face config into fields, by the rules of its family. */
#include "hf_field.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

sm_status hf_fail(const hf_config *c, const char *key, bool of_key, const char *format, ...) {
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    bool there = json_find(c->at, key) != NULL;
    const json_value *v = json_nearest(c->at, key);
    return of_key && there ? json_fail_key(v, "%s", sentence) : json_fail(v, "%s", sentence);
}

int hf_number(const hf_config *c, hf_field field) {
    assert(field >= 0 && field < HF_FIELDS);
    return c->value[field].number;
}

int hf_every(const hf_config *c, hf_field field) {
    return hf_number(c, field) > 0 ? hf_number(c, field) : 1;
}

bool hf_given(const hf_config *c, hf_field field) { return c->value[field].given; }

static uint32_t length_of(const json_value *list) { return json_is(list, IS_LIST) ? list->n : 0; }

int hf_listed_number(const hf_config *c, hf_field field, int i) {
    const json_value *list = c->value[field].json;
    bool there = i < (int)length_of(list) && list->item[i < 0 ? 0 : i].whole;
    return there ? (int)list->item[i < 0 ? 0 : i].integer : 0;
}

bool hf_given_by_layer(const hf_config *c, hf_field field) {
    return length_of(c->value[field].json) > 0;
}

bool hf_lists(const hf_config *c, hf_field field, int number) {
    for (int i = 0; i < (int)length_of(c->value[field].json); i++)
        if (hf_listed_number(c, field, i) == number) return true;
    return false;
}

const char *hf_listed_word(const hf_config *c, hf_field field, int i) {
    const json_value *list = c->value[field].json;
    const char *word = i >= 0 && i < (int)length_of(list) ? json_text(&list->item[i]) : NULL;
    return word ? word : "";
}

/* A rule of the family by its place in the concatenated lists; NULL at the end. */
static const hf_rule *rule_at(const hf_family *f, int *group, int *i) {
    for (; *group < HF_MAX_GROUPS && f->rules[*group]; (*group)++, *i = 0)
        if (f->rules[*group][*i].key) return &f->rules[*group][(*i)++];
    return NULL;
}

static const hf_rule *rule_of(const hf_family *f, const char *key) {
    int group = 0, i = 0;
    const hf_rule *rule;
    while ((rule = rule_at(f, &group, &i)) != NULL)
        if (strcmp(rule->key, key) == 0) return rule;
    return NULL;
}

static sm_status fail_type(const hf_config *c, const hf_rule *rule, const char *wanted) {
    return hf_fail(c, rule->key, false, "%s must be %s", rule->key, wanted);
}

/* 4096 and 4096.0 are whole numbers; a size fits an int. */
static bool whole_number(const json_value *json, double *value) {
    *value = json_number(json);
    return json->kind == IS_NUMBER && floor(*value) == *value;
}

static sm_status read_number(hf_config *c, const hf_rule *rule, const json_value *json,
                             int lowest) {
    double value;
    if (!whole_number(json, &value)) return fail_type(c, rule, "a whole number");
    if (value < lowest)
        return hf_fail(c, rule->key, false, "%s is %.0f; it must be at least %d", rule->key, value,
                       lowest);
    if (value > HF_LARGEST)
        return hf_fail(c, rule->key, false, "%s is %.4g; at most %d is supported", rule->key, value,
                       HF_LARGEST);
    c->value[rule->field].number = (int)value;
    return SM_OK;
}

static bool is_known_activation(const char *name) {
    static const char *const known[] = {
        "silu",         "swish",         "relu",
        "relu2",        "relu_2",        "gelu",
        "gelu_new",     "gelu_fast",     "gelu_pytorch_tanh",
        "gelu_python",  "gelu_accurate", "gelu_10",
        "quick_gelu",   "tanh",          "sigmoid",
        "mish",         "laplace",       "leaky_relu",
        "linear",       "relu6",         "gelu_python_tanh",
        "squared_relu",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0) return true;
    return false;
}

static sm_status read_activation(hf_config *c, const hf_rule *rule, const json_value *json) {
    char shown[48];
    const char *name = json_text(json);
    if (!name) return fail_type(c, rule, "the name of an activation, as \"silu\" or \"gelu\"");
    if (!is_known_activation(name))
        return hf_fail(c, rule->key, false,
                       "%s \"%s\" is not understood: it may gate the MLP and change its size; "
                       "expected one such as \"silu\", \"gelu\" or \"relu2\"",
                       rule->key, hf_shown(name, shown, sizeof shown));
    c->value[rule->field].json = json;
    return SM_OK;
}

static sm_status read_list(hf_config *c, const hf_rule *rule, const json_value *json) {
    const char *wanted = rule->type == HF_WORDS ? "a list of texts" : "a list of whole numbers";
    if (json->kind != IS_LIST) return fail_type(c, rule, wanted);
    for (uint32_t i = 0; i < json->n; i++) {
        const json_value *item = &json->item[i];
        bool number = item->kind == IS_NUMBER && item->whole && fabs(item->number) <= HF_LARGEST;
        if (rule->type == HF_WORDS ? item->kind != IS_TEXT : !number)
            return json_fail(item, "%s must be %s", rule->key, wanted);
    }
    c->value[rule->field].json = json;
    return SM_OK;
}

/* null, false, 0, "" and empty lists switch a feature off. */
static bool is_off(const json_value *json) {
    switch (json->kind) {
    case IS_NULL: return true;
    case IS_BOOL: return !json->truth;
    case IS_NUMBER: return json->number == 0;
    case IS_TEXT:
    case IS_LIST:
    case IS_OBJECT: break;
    }
    return json->n == 0;
}

static sm_status read_object(hf_config *c, const json_value *object);

/* An object inside the config, as attn_config of MPT; one level deep. */
static sm_status read_nested(hf_config *c, const hf_rule *rule, const json_value *json) {
    if (json->kind != IS_OBJECT || c->at != c->object) return fail_type(c, rule, "an object, once");
    c->at = json;
    sm_status status = read_object(c, json);
    c->at = c->object;
    return status;
}

/* per_layer_config of Gemma 4: {"05": {"head_dim": 512}, ...}; what it may override is known. */
static sm_status read_override(hf_config *c, const hf_rule *rule, const json_value *layer) {
    char shown[48];
    double value;
    for (uint32_t i = 0; i < layer->n; i++) {
        const json_value *size = &layer->item[i];
        bool known =
            strcmp(size->key, "head_dim") == 0 || strcmp(size->key, "num_key_value_heads") == 0;
        if (known && whole_number(size, &value) && value >= 1 && value <= HF_LARGEST) continue;
        return hf_fail(c, rule->key, false, "%s of layer %s: %s is not understood", rule->key,
                       hf_shown(layer->key, shown, sizeof shown),
                       known ? "this size" : "a key other than head_dim and num_key_value_heads");
    }
    return SM_OK;
}

static sm_status read_overrides(hf_config *c, const hf_rule *rule, const json_value *json) {
    if (json->kind != IS_OBJECT) return fail_type(c, rule, "an object of objects");
    for (uint32_t i = 0; i < json->n; i++) {
        if (json->item[i].kind != IS_OBJECT) return fail_type(c, rule, "an object of objects");
        sm_status status = read_override(c, rule, &json->item[i]);
        if (status != SM_OK) return status;
    }
    c->value[rule->field].json = json;
    return SM_OK;
}

static sm_status read_typed(hf_config *c, const hf_rule *rule, const json_value *json) {
    switch (rule->type) {
    case HF_SIZE: return read_number(c, rule, json, 1);
    case HF_COUNT: return read_number(c, rule, json, 0);
    case HF_FLAG:
        if (json->kind != IS_BOOL) return fail_type(c, rule, "true or false");
        c->value[rule->field].number = json->truth;
        return SM_OK;
    case HF_NAME: return read_activation(c, rule, json);
    case HF_TEXT:
        c->value[rule->field].json = json;
        return json->kind == IS_TEXT ? SM_OK : fail_type(c, rule, "a text");
    case HF_NUMBERS_OR_COUNT:
        return json->kind == IS_LIST ? read_list(c, rule, json) : read_number(c, rule, json, 0);
    case HF_NUMBERS:
    case HF_WORDS: return read_list(c, rule, json);
    case HF_OFF:
        if (is_off(json)) return SM_OK;
        return hf_fail(c, rule->key, false,
                       "%s changes the size of the model and is understood only when off",
                       rule->key);
    case HF_OBJECT: return read_nested(c, rule, json);
    case HF_OVERRIDES: return read_overrides(c, rule, json);
    case HF_ANY: return SM_OK;
    }
    return SM_OK;
}

/* Two spellings of one field must agree. */
static sm_status read_by_rule(hf_config *c, const hf_rule *rule, const json_value *json) {
    hf_value before = c->value[rule->field];
    if (json->kind == IS_NULL && rule->type != HF_OFF && rule->type != HF_ANY) {
        if (before.given) return SM_OK;
        if (rule->absent == HF_REQUIRED)
            return hf_fail(c, rule->key, false, "%s must not be null", rule->key);
        c->value[rule->field].number = 0;
        return SM_OK;
    }
    sm_status status = read_typed(c, rule, json);
    hf_value *now = &c->value[rule->field];
    if (status != SM_OK) return status;
    if (before.given && before.number != now->number)
        return hf_fail(c, rule->key, false, "%s is %d, but %s, which means the same, is %d",
                       rule->key, now->number, before.key, before.number);
    now->given = true;
    now->key = rule->key;
    return SM_OK;
}

static sm_status meet_unknown(const hf_config *c, const char *key, const json_value *json) {
    char shown[64], family[48];
    if (is_off(json) || !hf_key_matters(key)) return SM_OK;
    /* The nearest key the family understands, or NULL. */
    const char *names[128];
    size_t n = 0;
    int group = 0, i = 0;
    const hf_rule *rule;
    while (n < 128 && (rule = rule_at(c->family, &group, &i)) != NULL) names[n++] = rule->key;
    const char *near = sm_nearest(key, strlen(key), names, n);
    hf_shown(key, shown, sizeof shown);
    const char *type = json_text(json_get(c->object, "model_type"));
    hf_shown(type ? type : "such a", family, sizeof family);
    if (near)
        return hf_fail(
            c, key, true,
            "%s may change the size or the work of a %s model and is not understood; the nearest "
            "known field is %s",
            shown, family, near);
    return hf_fail(c, key, true,
                   "%s may change the size or the work of a %s model and is not understood", shown,
                   family);
}

static sm_status read_key(hf_config *c, const json_value *json) {
    const hf_rule *rule = rule_of(c->family, json->key);
    return rule ? read_by_rule(c, rule, json) : meet_unknown(c, json->key, json);
}

static sm_status read_object(hf_config *c, const json_value *object) {
    sm_status status = SM_OK;
    for (uint32_t i = 0; !status && i < object->n; i++) status = read_key(c, &object->item[i]);
    return status;
}

static sm_status want_required(const hf_config *c) {
    static const hf_field never_zero[] = {HF_WIDTH, HF_LAYERS, HF_HEADS, HF_VOCAB};
    for (int i = 0; i < HF_FIELDS; i++)
        if (c->value[i].key && !c->value[i].given && c->value[i].number == HF_REQUIRED)
            return hf_fail(c, c->value[i].key, false, "%s is missing", c->value[i].key);
    for (size_t i = 0; i < sizeof never_zero / sizeof *never_zero; i++) {
        const hf_value *v = &c->value[never_zero[i]];
        if (v->number == 0) return hf_fail(c, v->key, false, "%s must not be null", v->key);
    }
    return SM_OK;
}

/* What a wrapper says for its text model where that is silent. */
static const char *const inherited[] = {"tie_word_embeddings", "quantization_config",
                                        "compression_config", "dtype", "torch_dtype"};
enum { INHERITED = sizeof inherited / sizeof *inherited };

const json_value *hf_key(const hf_config *c, const char *key) {
    const json_value *own = json_get(c->object, key);
    for (int i = 0; !own && i < INHERITED; i++)
        if (strcmp(key, inherited[i]) == 0) own = json_get(c->root, key);
    return own;
}

sm_status hf_read_fields(hf_config *c) {
    int group = 0, at = 0;
    const hf_rule *rule;
    while ((rule = rule_at(c->family, &group, &at)) != NULL) {
        hf_value *v = &c->value[rule->field];
        if (!v->key) *v = (hf_value){.key = rule->key, .number = rule->absent};
    }
    c->at = c->object;
    sm_status status = read_object(c, c->object);
    for (int i = 0; !status && i < INHERITED; i++) {
        const json_value *v = hf_key(c, inherited[i]);
        if (v && !json_get(c->object, inherited[i])) status = read_key(c, v);
    }
    return status == SM_OK ? want_required(c) : status;
}
