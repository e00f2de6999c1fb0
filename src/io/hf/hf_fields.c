/* Reads the keys of a Hugging Face config into fields, by the rules of its family. */
#include "hf_field.h"
#include "json_place.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

sm_status hf_fail(const hf_config *c, const char *key, bool of_key, const char *format, ...) {
    char path[256], sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    snprintf(path, sizeof path, "%s%s", c->prefix, key);
    return sm_json_fail(c->err, c->source, path, of_key, "%s", sentence);
}

int hf_number(const hf_config *c, hf_field field) { return c->value[field].number; }

int hf_every(const hf_config *c, hf_field field) {
    return hf_number(c, field) > 0 ? hf_number(c, field) : 1;
}

bool hf_given(const hf_config *c, hf_field field) { return c->value[field].given; }

int hf_listed_number(const hf_config *c, hf_field field, int i) {
    json_t *item = json_array_get(c->value[field].json, i < 0 ? 0 : (size_t)i);
    return (int)json_integer_value(item);
}

bool hf_given_by_layer(const hf_config *c, hf_field field) {
    return json_array_size(c->value[field].json) > 0;
}

bool hf_lists(const hf_config *c, hf_field field, int number) {
    int n = (int)json_array_size(c->value[field].json);
    for (int i = 0; i < n; i++)
        if (hf_listed_number(c, field, i) == number) return true;
    return false;
}

const char *hf_listed_word(const hf_config *c, hf_field field, int i) {
    const char *word = json_string_value(json_array_get(c->value[field].json, (size_t)i));
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

/* The nearest key the family understands, or NULL. */
static const char *nearest_key(const hf_family *f, const char *key) {
    const char *names[128];
    size_t n = 0;
    int group = 0, i = 0;
    const hf_rule *rule;
    while (n < 128 && (rule = rule_at(f, &group, &i)) != NULL) names[n++] = rule->key;
    return sm_nearest(key, strlen(key), names, n);
}

/* Fields take the defaults of the family; the first spelling of a field carries its default. */
static void set_defaults(hf_config *c) {
    int group = 0, i = 0;
    const hf_rule *rule;
    while ((rule = rule_at(c->family, &group, &i)) != NULL) {
        hf_value *v = &c->value[rule->field];
        if (!v->key) *v = (hf_value){.key = rule->key, .number = rule->absent};
    }
}

static sm_status fail_type(const hf_config *c, const hf_rule *rule, const char *wanted) {
    return hf_fail(c, rule->key, false, "%s must be %s", rule->key, wanted);
}

/* 4096 and 4096.0 are whole numbers; a size fits an int. */
static bool whole_number(const json_t *json, double *value) {
    *value = json_number_value(json);
    return json_is_number(json) && floor(*value) == *value;
}

static sm_status read_number(hf_config *c, const hf_rule *rule, const json_t *json, int lowest) {
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

static sm_status read_activation(hf_config *c, const hf_rule *rule, const json_t *json) {
    char shown[48];
    const char *name = json_string_value(json);
    if (!name) return fail_type(c, rule, "the name of an activation, as \"silu\" or \"gelu\"");
    if (!is_known_activation(name))
        return hf_fail(c, rule->key, false,
                       "%s \"%s\" is not understood: it may gate the MLP and change its size; "
                       "expected one such as \"silu\", \"gelu\" or \"relu2\"",
                       rule->key, hf_shown(name, shown, sizeof shown));
    c->value[rule->field].json = (json_t *)(uintptr_t)json;
    return SM_OK;
}

static sm_status read_list(hf_config *c, const hf_rule *rule, json_t *json) {
    double value;
    if (!json_is_array(json))
        return fail_type(c, rule,
                         rule->type == HF_WORDS ? "a list of texts" : "a list of whole numbers");
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *item = json_array_get(json, i);
        bool good = rule->type == HF_WORDS ? json_is_string(item)
                                           : json_is_integer(item) && whole_number(item, &value) &&
                                                 fabs(value) <= HF_LARGEST;
        if (!good) {
            char path[96];
            snprintf(path, sizeof path, "%s[%zu]", rule->key, i);
            return hf_fail(c, path, false, "%s must be a list of %s", rule->key,
                           rule->type == HF_WORDS ? "texts" : "whole numbers");
        }
    }
    c->value[rule->field].json = json;
    return SM_OK;
}

/* null, false, 0, "" and empty lists switch a feature off. */
static bool is_off(const json_t *json) {
    if (json_is_null(json) || json_is_false(json)) return true;
    if (json_is_number(json)) return json_number_value(json) == 0;
    if (json_is_string(json)) return json_string_length(json) == 0;
    return (json_is_array(json) && json_array_size(json) == 0) ||
           (json_is_object(json) && json_object_size(json) == 0);
}

static sm_status read_off(hf_config *c, const hf_rule *rule, const json_t *json) {
    if (is_off(json)) return SM_OK;
    return hf_fail(c, rule->key, false,
                   "%s changes the size of the model and is understood only when off", rule->key);
}

static sm_status read_null(hf_config *c, const hf_rule *rule) {
    hf_value *v = &c->value[rule->field];
    if (rule->absent == HF_REQUIRED)
        return hf_fail(c, rule->key, false, "%s must not be null", rule->key);
    v->number = 0;
    return SM_OK;
}

static sm_status read_object(hf_config *c, json_t *object);

/* An object inside the config, as attn_config of MPT; one level deep. */
static sm_status read_nested(hf_config *c, const hf_rule *rule, json_t *json) {
    char before[sizeof c->prefix];
    if (!json_is_object(json) || c->nested) return fail_type(c, rule, "an object, once");
    memcpy(before, c->prefix, sizeof before);
    size_t n = strlen(before);
    snprintf(c->prefix + n, sizeof c->prefix - n, "%s.", rule->key);
    c->nested = true;
    sm_status status = read_object(c, json);
    c->nested = false;
    memcpy(c->prefix, before, sizeof before);
    return status;
}

/* per_layer_config of Gemma 4: {"05": {"head_dim": 512}, ...}; what it may override is known. */
static sm_status read_override(hf_config *c, const hf_rule *rule, const char *layer,
                               json_t *object) {
    const char *key;
    json_t *json;
    char shown[48];
    double value;
    json_object_foreach(object, key, json) {
        bool known = strcmp(key, "head_dim") == 0 || strcmp(key, "num_key_value_heads") == 0;
        if (known && whole_number(json, &value) && value >= 1 && value <= HF_LARGEST) continue;
        return hf_fail(c, rule->key, false, "%s of layer %s: %s is not understood", rule->key,
                       hf_shown(layer, shown, sizeof shown),
                       known ? "this size" : "a key other than head_dim and num_key_value_heads");
    }
    return SM_OK;
}

static sm_status read_overrides(hf_config *c, const hf_rule *rule, json_t *json) {
    const char *layer;
    json_t *object;
    sm_status status = SM_OK;
    if (!json_is_object(json)) return fail_type(c, rule, "an object of objects");
    json_object_foreach(json, layer, object) {
        if (!json_is_object(object)) return fail_type(c, rule, "an object of objects");
        status = read_override(c, rule, layer, object);
        if (status != SM_OK) return status;
    }
    c->value[rule->field].json = json;
    return SM_OK;
}

static sm_status read_typed(hf_config *c, const hf_rule *rule, json_t *json) {
    switch (rule->type) {
    case HF_SIZE: return read_number(c, rule, json, 1);
    case HF_COUNT: return read_number(c, rule, json, 0);
    case HF_FLAG:
        if (!json_is_boolean(json)) return fail_type(c, rule, "true or false");
        c->value[rule->field].number = json_is_true(json);
        return SM_OK;
    case HF_NAME: return read_activation(c, rule, json);
    case HF_TEXT:
        c->value[rule->field].json = json;
        return json_is_string(json) ? SM_OK : fail_type(c, rule, "a text");
    case HF_NUMBERS_OR_COUNT:
        return json_is_array(json) ? read_list(c, rule, json) : read_number(c, rule, json, 0);
    case HF_NUMBERS:
    case HF_WORDS: return read_list(c, rule, json);
    case HF_OFF: return read_off(c, rule, json);
    case HF_OBJECT: return read_nested(c, rule, json);
    case HF_OVERRIDES: return read_overrides(c, rule, json);
    case HF_ANY: return SM_OK;
    }
    return SM_OK;
}

/* Two spellings of one field must agree. */
static sm_status read_by_rule(hf_config *c, const hf_rule *rule, json_t *json) {
    hf_value before = c->value[rule->field];
    if (json_is_null(json) && rule->type != HF_OFF && rule->type != HF_ANY)
        return before.given ? SM_OK : read_null(c, rule);
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

static sm_status meet_unknown(const hf_config *c, const char *key, const json_t *json) {
    char shown[64], family[48];
    if (is_off(json) || !hf_key_matters(key)) return SM_OK;
    const char *near = nearest_key(c->family, key);
    hf_shown(key, shown, sizeof shown);
    const char *type = json_string_value(json_object_get(c->object, "model_type"));
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

static sm_status read_object(hf_config *c, json_t *object) {
    const char *key;
    json_t *json;
    json_object_foreach(object, key, json) {
        const hf_rule *rule = rule_of(c->family, key);
        sm_status status = rule ? read_by_rule(c, rule, json) : meet_unknown(c, key, json);
        if (status != SM_OK) return status;
    }
    return SM_OK;
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

sm_status hf_read_fields(hf_config *c) {
    set_defaults(c);
    sm_status status = read_object(c, c->object);
    return status == SM_OK ? want_required(c) : status;
}
