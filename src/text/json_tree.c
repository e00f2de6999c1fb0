/* JSON text as values with places. jansson checks and decodes the text but keeps no positions: its
 * tree and the text are walked side by side, once, since an object keeps its keys in the order of
 * the text (jansson 2.8 and later). */
#include "json_tree.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- syntax ---- */

/* jansson names the byte after the offending token; walk back over the token. */
static sm_span token_before(const sm_source *s, int position) {
    enum { LONGEST = 80 };
    size_t end = position < 0 ? 0 : (size_t)position;
    if (end > s->length) end = s->length;
    bool quoted = end > 1 && s->text[end - 1] == '"';
    size_t start = quoted ? end - 1 : end;
    while (start > 0 && end - start < LONGEST &&
           (quoted ? s->text[start - 1] != '"'
                   : s->text[start - 1] > ' ' && !strchr("{}[]:,\"", s->text[start - 1])))
        start--;
    if (start > 0 && (quoted || start == end)) start--;
    return (sm_span){start, end - start};
}

static sm_status fail_at(const json_document *in, sm_span span, const char *sentence) {
    sm_status status = sm_fail_at(in->err, in->source, span, "%s", sentence);
    if (in->err && in->line > 1) in->err->line += in->line - 1;
    return status;
}

static sm_status fail_syntax(const json_document *in, const json_error_t *json) {
    char sentence[sizeof json->text + 32];
    const char *words = sentence;
    snprintf(sentence, sizeof sentence, "this is not valid JSON: %s", json->text);
    switch (json_error_code(json)) { /* what a person can act on, where jansson speaks of itself */
    case json_error_out_of_memory: return sm_fail_memory(in->err);
    case json_error_numeric_overflow: words = "this number is too large"; break;
    case json_error_duplicate_key: words = "this key is given twice"; break;
    case json_error_null_character:
    case json_error_null_byte_in_key: words = "a text may not hold the character \\u0000"; break;
    case json_error_stack_overflow: words = "lists and objects are nested too deep"; break;
    default: break;
    }
    if (json->text[0] == 0) return sm_fail_memory(in->err);
    return fail_at(in, token_before(in->source, json->position), words);
}

/* ---- places ---- */

/* The text beside jansson's tree; at never passes length. */
typedef struct walk {
    const json_document *in;
    const char *text;
    size_t length, at;
} walk;

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void skip_blanks(walk *w) {
    while (w->at < w->length && is_blank(w->text[w->at])) w->at++;
}

static bool take(walk *w, char byte) {
    skip_blanks(w);
    if (w->at >= w->length || w->text[w->at] != byte) return false;
    w->at++;
    return true;
}

/* A string of the text, and what jansson made of it, copied. */
static const char *take_string(walk *w, const char *decoded, uint32_t *at, uint32_t *length) {
    skip_blanks(w);
    *at = (uint32_t)w->at;
    if (!take(w, '"')) return NULL;
    for (; w->at < w->length && w->text[w->at] != '"'; w->at++)
        if (w->text[w->at] == '\\') w->at++;
    if (w->at++ >= w->length) return NULL;
    *length = (uint32_t)(w->at - *at);
    return sm_arena_copy(w->in->arena, decoded, strlen(decoded));
}

static void take_scalar(walk *w) {
    while (w->at < w->length && !is_blank(w->text[w->at]) && !strchr(",]}", w->text[w->at]))
        w->at++;
}

static bool walk_value(walk *w, const json_t *json, json_value *v);

/* The values of a list or object, between its brackets. */
static bool walk_values(walk *w, const json_t *json, json_value *v) {
    json_t *list = (json_t *)(uintptr_t)json; /* jansson's iterators are not const */
    bool object = json_is_object(json);
    size_t n = object ? json_object_size(json) : json_array_size(json);
    json_value *items = sm_arena_array(w->in->arena, n, sizeof *items);
    if (!items || !take(w, object ? '{' : '[')) return false;
    void *next = object ? json_object_iter(list) : NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = object ? json_object_iter_value(next) : json_array_get(json, i);
        json_value *to = &items[i];
        if (i > 0 && !take(w, ',')) return false;
        if (object) {
            to->key = take_string(w, json_object_iter_key(next), &to->key_at, &to->key_length);
            if (!to->key || !take(w, ':')) return false;
            next = json_object_iter_next(list, next);
        }
        if (!walk_value(w, item, to)) return false;
    }
    v->kind = object ? IS_OBJECT : IS_LIST;
    v->n = (uint32_t)n;
    v->item = items;
    return take(w, object ? '}' : ']');
}

/* The number, or what stands for it where Python has written NaN or Infinity. */
static void walk_number(walk *w, const json_t *json, json_value *v) {
    v->kind = IS_NUMBER;
    v->whole = json_is_integer(json);
    v->integer = json_integer_value(json);
    v->number = json_number_value(json);
    take_scalar(w);
    char last = w->at > v->at ? w->text[w->at - 1] : 0;
    if (last == 'N') v->number = NAN;
    if (last == 'y') v->number = w->text[v->at] == '-' ? -INFINITY : INFINITY;
    if (last == 'N' || last == 'y') v->whole = false;
}

/* False: out of memory. As deep as jansson admits. */
static bool walk_value(walk *w, const json_t *json, json_value *v) {
    skip_blanks(w);
    v->in = w->in;
    v->at = (uint32_t)w->at;
    bool done = true;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY: done = walk_values(w, json, v); break;
    case JSON_STRING:
        v->kind = IS_TEXT;
        v->n = (uint32_t)json_string_length(json);
        v->text = take_string(w, json_string_value(json), &v->at, &v->length);
        done = v->text != NULL;
        break;
    case JSON_INTEGER:
    case JSON_REAL: walk_number(w, json, v); break;
    case JSON_TRUE:
    case JSON_FALSE:
        v->kind = IS_BOOL;
        v->truth = json_is_true(json);
        take_scalar(w);
        break;
    case JSON_NULL:
        v->kind = IS_NULL;
        take_scalar(w);
        break;
    }
    v->length = (uint32_t)(w->at - v->at);
    return done;
}

/* ---- the document ---- */

/* The same text with a number of the same length where Python has written none that JSON knows. */
static const char *without_python(const json_document *in) {
    static const char *const words[] = {"NaN", "Infinity"};
    char *copy = sm_arena_copy(in->arena, in->source->text, in->source->length);
    for (size_t at = 0; copy && at < in->source->length; at++) {
        if (copy[at] == '"') {
            for (at++; at < in->source->length && copy[at] != '"'; at++) at += copy[at] == '\\';
            continue;
        }
        for (size_t i = 0; i < 2; i++) {
            size_t n = strlen(words[i]);
            bool begins = at == 0 || strchr(" \t\r\n[:,-", copy[at - 1]);
            if (!begins || n > in->source->length - at) continue;
            if (memcmp(copy + at, words[i], n) != 0) continue;
            memset(copy + at, ' ', n);
            copy[at] = '0';
        }
    }
    return copy;
}

/* Where memory runs out under jansson, it drops characters and takes the rest for bad syntax. Its
 * memory comes through sm_malloc, which is malloc with a count of what was refused, unless the
 * program that we are part of has given it another. */
static void count_refusals(void) {
    json_malloc_t make;
    json_free_t drop;
    json_get_alloc_funcs(&make, &drop);
    if (make == malloc && drop == free) json_set_alloc_funcs(sm_malloc, free);
}

static sm_status parse(const json_document *in, json_t **root) {
    json_error_t json = {0};
    const sm_source *s = in->source;
    const char *text = in->python ? without_python(in) : s->text ? s->text : "";
    if (!text) return sm_fail_memory(in->err);
    count_refusals();
    uint64_t refusals = sm_allocation_refusals();
    *root = json_loadb(text, s->length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &json);
    if (sm_allocation_refusals() == refusals) return *root ? SM_OK : fail_syntax(in, &json);
    json_decref(*root);
    return sm_fail_memory(in->err);
}

sm_status json_parse(const json_document *in, const json_value **root) {
    json_t *parsed = NULL;
    const sm_source *s = in->source;
    char sentence[96];
    *root = NULL;
    if (s->length > JSON_MOST_BYTES) {
        snprintf(sentence, sizeof sentence, "the document has %zu bytes; at most %d are read",
                 s->length, JSON_MOST_BYTES);
        return fail_at(in, (sm_span){0, 0}, sentence);
    }
    const char *zero = s->length ? memchr(s->text, 0, s->length) : NULL;
    if (zero) /* jansson passes over one that follows a number */
        return fail_at(in, (sm_span){(size_t)(zero - s->text), 1},
                       "this is not valid JSON: a byte is 0");
    sm_status status = parse(in, &parsed);
    if (status) return status;
    walk w = {in, s->text, s->length, 0};
    json_value *value = sm_arena_alloc(in->arena, sizeof *value);
    bool done = value && walk_value(&w, parsed, value);
    json_decref(parsed);
    if (!done) return sm_fail_memory(in->err);
    assert(value->at + value->length <= s->length);
    *root = value;
    return SM_OK;
}

/* ---- finding ---- */

static const json_value *get(const json_value *object, const char *key, size_t length) {
    if (!json_is(object, IS_OBJECT)) return NULL;
    for (uint32_t i = 0; i < object->n; i++) {
        const char *name = object->item[i].key;
        if (strncmp(name, key, length) == 0 && name[length] == 0) return &object->item[i];
    }
    return NULL;
}

const json_value *json_get(const json_value *object, const char *key) {
    return get(object, key, strlen(key));
}

/* One step of the path; NULL when it is not there. *path moves past it. */
static const json_value *step(const json_value *v, const char **path) {
    size_t n = strcspn(*path, ".["), i = 0;
    const char *at = *path + n;
    if (n > 0) {
        v = get(v, *path, n);
    } else if (*at == '[') {
        for (at++; *at >= '0' && *at <= '9'; at++) i = 10 * i + (size_t)(*at - '0');
        v = json_is(v, IS_LIST) && i < v->n ? &v->item[i] : NULL;
        at += *at == ']';
    }
    *path = at + (*at == '.');
    return v;
}

const json_value *json_find(const json_value *v, const char *path) {
    while (v && *path) v = step(v, &path);
    return v;
}

const json_value *json_nearest(const json_value *v, const char *path) {
    for (const json_value *next = v; next; next = *path ? step(v, &path) : NULL) v = next;
    return v;
}

bool json_is(const json_value *value, json_kind kind) { return value && value->kind == kind; }

const char *json_text(const json_value *value) {
    return json_is(value, IS_TEXT) ? value->text : NULL;
}

double json_number(const json_value *value) {
    return json_is(value, IS_NUMBER) ? value->number : 0;
}

sm_span json_place(const json_value *value) { return (sm_span){value->at, value->length}; }

const char *json_kind_name(const json_value *value) {
    static const char *const names[] = {"null",   "true or false", "a number",
                                        "a text", "a list",        "an object"};
    return names[value->kind];
}

/* ---- errors ---- */

sm_status json_fail(const json_value *v, const char *format, ...) {
    char sentence[640];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return fail_at(v->in, (sm_span){v->at, v->kind == IS_OBJECT ? 1 : v->length}, sentence);
}

sm_status json_fail_key(const json_value *v, const char *format, ...) {
    char sentence[640];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return fail_at(v->in, (sm_span){v->key_at, v->key_length}, sentence);
}

/* What to write instead: the nearest of n names, or all of them. */
static const char *advice(char *out, size_t size, const char *word, const char *const *names,
                          size_t n) {
    const char *nearest = sm_nearest(word, strlen(word), names, n);
    if (nearest) {
        snprintf(out, size, "the nearest is \"%s\"", nearest);
        return out;
    }
    int at = snprintf(out, size, "expected one of ");
    for (size_t i = 0; i < n && at >= 0 && (size_t)at < size; i++)
        at += snprintf(out + at, size - (size_t)at, i ? ", %s" : "%s", names[i]);
    return out;
}

/* The index of the word, or n. */
static size_t index_of(const char *word, const char *const *names, size_t n) {
    size_t i = 0;
    while (i < n && strcmp(word, names[i]) != 0) i++;
    return i;
}

/* ---- typed readers ---- */

sm_status json_expect(const json_value *v, json_kind kind, const char *expected) {
    if (!v || v->kind == kind) return SM_OK;
    return json_fail(v, "expected %s, found %s", expected, json_kind_name(v));
}

sm_status json_read_text(const json_value *v, const char **out) {
    sm_status status = json_expect(v, IS_TEXT, "a text");
    if (v && !status) *out = v->text;
    return status;
}

sm_status json_read_bool(const json_value *v, bool *out) {
    sm_status status = json_expect(v, IS_BOOL, "true or false");
    if (v && !status) *out = v->truth;
    return status;
}

sm_status json_read_number(const json_value *v, double least, double most, double *out) {
    sm_status status = json_expect(v, IS_NUMBER, "a number");
    if (!v || status) return status;
    if (v->number < 0)
        return json_fail(v, "expected a number, not a negative one, found %g", v->number);
    if (!(v->number <= 0) && !(v->number >= least && v->number <= most))
        return json_fail(v, "expected a number from %g to %g, found %g", least, most, v->number);
    *out = v->number;
    return SM_OK;
}

sm_status json_read_count(const json_value *v, int most, int *out) {
    if (!v) return SM_OK;
    if (v->kind != IS_NUMBER || !v->whole || v->integer < 1 || v->integer > most)
        return json_fail(v, "expected a whole number from 1 to %d", most);
    *out = (int)v->integer;
    return SM_OK;
}

sm_status json_read_counts(const json_value *v, size_t least, size_t most, int largest, int *out,
                           int *n) {
    sm_status status = json_expect(v, IS_LIST, "a list of whole numbers");
    if (!v || status) return status;
    if ((v->n < least || v->n > most) && least == most)
        return json_fail(v, "expected %zu whole numbers, found %u", least, v->n);
    if (v->n < least || v->n > most)
        return json_fail(v, "expected %zu to %zu whole numbers, found %u", least, most, v->n);
    for (uint32_t i = 0; !status && i < v->n; i++)
        status = json_read_count(&v->item[i], largest, &out[i]);
    if (!status) *n = (int)v->n;
    return status;
}

sm_status json_read_choice(const json_value *v, const char *const *names, size_t n, int *out) {
    char text[200];
    sm_status status = json_expect(v, IS_TEXT, "a text");
    if (!v || status) return status;
    size_t i = index_of(v->text, names, n);
    if (i == n)
        return json_fail(v, "unknown %s \"%.40s\": %s", v->key, v->text,
                         advice(text, sizeof text, v->text, names, n));
    *out = (int)i;
    return SM_OK;
}

sm_status json_check_keys(const json_value *object, const char *const *known, size_t n) {
    char text[500];
    for (uint32_t i = 0; i < object->n; i++) {
        const json_value *v = &object->item[i];
        if (index_of(v->key, known, n) < n) continue;
        return json_fail_key(v, "unknown key \"%.40s\": %s", v->key,
                             advice(text, sizeof text, v->key, known, n));
    }
    return SM_OK;
}
