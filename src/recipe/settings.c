/* Lists of settings, and what a recipe is written in. */

#include "framework.h"

enum { MOST_LIST = 1000, MOST_KEY = 512 };

sm_status sm_settings_add(sm_settings *s, const sm_setting *setting, sm_error *err) {
    if (s->n >= SM_MOST_SETTINGS)
        return sm_fail_at(err, &s->source, setting->at, "a recipe has at most %d settings",
                          SM_MOST_SETTINGS);
    sm_setting *list = sm_arena_grow(s->arena, s->list, s->n, &s->room, sizeof *list);
    if (!list || !setting->key || !setting->value) return sm_fail_memory(err);
    s->list = list;
    list[s->n++] = *setting;
    return SM_OK;
}

/* The first line that says something: *length bytes. */
static const char *first_line(const sm_source *source, size_t *length) {
    const char *at = source->text, *end = at + source->length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        while (at < stop && (*at == ' ' || *at == '\t' || *at == '\r')) at++;
        bool marker =
            stop - at >= 3 && memcmp(at, "---", 3) == 0 && (stop - at == 3 || at[3] < 'a');
        if (at < stop && *at != '#' && !marker) {
            *length = (size_t)(stop - at);
            return at;
        }
        at = stop + 1;
    }
    *length = 0;
    return source->text;
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '"';
}

static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

/* Where JSON begins, behind lines NAME=value; NULL: what is there is no JSON. */
static const char *json_body(const sm_source *source) {
    const char *at = source->text, *end = at + source->length;
    for (const char *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        size_t blank = 0, n = 0;
        while (at + blank < stop && strchr(" \t\r", at[blank])) blank++;
        if (at + blank < stop && at[blank] == '{') return at;
        while (at + n < stop && is_word(at[n])) n++;
        bool sets = is_capital(*at) && at + n < stop && at[n] == '=';
        if (at + blank < stop && !sets) return NULL;
        if (stop == end) break;
    }
    return NULL;
}

/* "key: value", "key:", "- item" are YAML; "[section]" and "key = value" with a blank before its
 * sign TOML, which the shell would take for a command. */
sm_recipe_form sm_recipe_form_of(const sm_source *source) {
    size_t n, at = 0;
    const char *line = first_line(source, &n);
    if (n == 0) return SM_RECIPE_SHELL;
    if (json_body(source)) return SM_RECIPE_JSON;
    if (line[0] == '[' && n > 1 && (is_word(line[1]) || line[1] == '[')) return SM_RECIPE_TOML;
    if (line[0] == '-' && n > 1 && line[1] == ' ') return SM_RECIPE_YAML;
    while (at < n && is_word(line[at])) at++;
    if (at > 0 && at < n && line[at] == ':' &&
        (at + 1 == n || line[at + 1] == ' ' || line[at + 1] == '\r'))
        return SM_RECIPE_YAML;
    size_t sign = at;
    while (sign < n && line[sign] == ' ') sign++;
    return at > 0 && sign > at && sign < n && line[sign] == '=' ? SM_RECIPE_TOML : SM_RECIPE_SHELL;
}

bool sm_settings_are_words(const char *text) {
    const char *dash = strstr(text, "--");
    if (!dash) return false;
    for (const char *c = text; c < dash; c++) /* JSON within a value stays one */
        if (*c == '{' && (c == text || c[-1] != '$')) return false;
    return dash[2] >= 'a' && dash[2] <= 'z' && (dash == text || strchr(" \t\n", dash[-1])) &&
           (dash != text || strpbrk(text, " \t\n=") != NULL);
}

/* ---- JSON ---- */

static sm_status add_json(sm_settings *s, const json_value *v, const char *path);

static sm_status add_scalar(sm_settings *s, const json_value *v, const char *path) {
    const json_document *d = v->in;
    const char *value =
        v->kind == IS_TEXT ? v->text : sm_arena_copy(s->arena, d->source->text + v->at, v->length);
    sm_span at = {v->key ? v->key_at : v->at, v->key ? v->key_length : v->length};
    if (!value) return sm_fail_memory(d->err);
    if (v->kind == IS_TEXT && sm_settings_are_words(value))
        return sm_settings_add_words(s, value, at, d->err);
    const char *unknown = v->kind == IS_TEXT && value[0] == '$' ? value + 1 : NULL;
    sm_setting setting = {
        .key = path, .value = value, .at = at, .unknown = unknown, .nothing = v->kind == IS_NULL};
    return sm_settings_add(s, &setting, d->err);
}

/* A list of values becomes one text, of command words a command. */
static sm_status add_list(sm_settings *s, const json_value *v, const char *path) {
    const char *all = "";
    for (uint32_t i = 0; i < v->n && all; i++) {
        const json_value *item = &v->item[i];
        if (item->kind == IS_LIST || item->kind == IS_OBJECT) {
            sm_status status = add_json(s, item, path);
            if (status) return status;
            continue;
        }
        const char *text =
            item->kind == IS_TEXT
                ? item->text
                : sm_arena_copy(s->arena, v->in->source->text + item->at, item->length);
        all = text ? sm_arena_printf(s->arena, "%s%s%s", all, all[0] ? " " : "", text) : NULL;
        if (all && strlen(all) > MOST_LIST) break;
    }
    if (!all) return sm_fail_memory(v->in->err);
    sm_span at = {v->key ? v->key_at : v->at, v->key ? v->key_length : 1};
    if (sm_settings_are_words(all)) return sm_settings_add_words(s, all, at, v->in->err);
    return sm_settings_add(s, &(sm_setting){.key = path, .value = all, .at = at}, v->in->err);
}

static sm_status add_json(sm_settings *s, const json_value *v, const char *path) {
    if (v->kind == IS_LIST) return add_list(s, v, path);
    if (v->kind != IS_OBJECT) return add_scalar(s, v, path);
    for (uint32_t i = 0; i < v->n; i++) {
        const json_value *item = &v->item[i];
        const char *inner =
            sm_arena_printf(s->arena, "%s%s%s", path, path[0] ? "." : "", item->key);
        if (!inner) return sm_fail_memory(v->in->err);
        sm_status status = strlen(inner) < MOST_KEY ? add_json(s, item, inner)
                                                    : json_fail(item, "this is nested too deeply");
        if (status) return status;
    }
    return SM_OK;
}

/* The value that a line NAME=value before `body` gives a name; NULL: none does. */
static const char *value_before(const sm_source *source, const char *body, const char *name,
                                size_t n, size_t *length) {
    for (const char *at = source->text; at < body; at = memchr(at, '\n', (size_t)(body - at)) + 1) {
        const char *stop = memchr(at, '\n', (size_t)(body - at));
        if ((size_t)(stop - at) <= n || memcmp(at, name, n) != 0 || at[n] != '=') continue;
        *length = (size_t)(stop - at) - n - 1;
        return at + n + 1;
    }
    return NULL;
}

static size_t put(char *out, size_t at, const char *from, size_t n) {
    if (out) memcpy(out + at, from, n);
    return at + n;
}

/* A template for sed has names where numbers will stand, `"train_batch_size": GBSIZE`: they become
 * what a line before it says, or else the texts "$GBSIZE", which are unknown. Returns the length.
 */
static size_t fill_names(const sm_source *source, const char *body, char *out) {
    const char *end = source->text + source->length, *value;
    size_t at = 0, n, length;
    bool inside = false;
    for (const char *i = source->text; i < body; i++)
        if (*i == '\n') at = put(out, at, i, 1);
    for (const char *i = body; i < end; i += n) {
        bool named = !inside && is_capital(*i) && (i == body || !is_word(i[-1]));
        n = inside && *i == '\\' && i + 1 < end ? 2 : 1;
        inside ^= *i == '"';
        while (named && i + n < end && is_word(i[n]) && i[n] != '"') n++;
        value = named ? value_before(source, body, i, n, &length) : NULL;
        if (named && !value) at = put(out, at, "\"$", 2);
        at = value ? put(out, at, value, length) : put(out, at, i, n);
        if (named && !value) at = put(out, at, "\"", 1);
    }
    return at;
}

static sm_status read_json(sm_settings *s, sm_error *err) {
    const sm_source given = s->source;
    const char *body = json_body(&given);
    size_t n = fill_names(&given, body, NULL);
    char *filled = sm_arena_alloc(s->arena, n + 1);
    if (!filled) return sm_fail_memory(err);
    filled[fill_names(&given, body, filled)] = '\0';
    s->source.text = filled;
    s->source.length = n;
    json_document document = {.source = &s->source, .arena = s->arena, .err = err};
    const json_value *root;
    sm_status status = json_parse(&document, &root);
    return status ? status : add_json(s, root, "");
}

/* ---- all of them ---- */

sm_status sm_settings_read(const sm_source *source, sm_yaml_reader *yaml, sm_arena *arena,
                           sm_settings *out, sm_error *err) {
    *out = (sm_settings){.source = *source, .arena = arena, .yaml = yaml};
    if (source->length > SM_RECIPE_BYTES)
        return sm_fail_at(err, source, (sm_span){0, 1}, "a recipe has at most %d bytes",
                          SM_RECIPE_BYTES);
    switch (sm_recipe_form_of(source)) {
    case SM_RECIPE_JSON: return read_json(out, err);
    case SM_RECIPE_TOML: return settings_read_toml(out, err);
    case SM_RECIPE_YAML: return yaml(out, &out->source, 0, (sm_span){0, 0}, err);
    default: return settings_read_shell(out, err);
    }
}
