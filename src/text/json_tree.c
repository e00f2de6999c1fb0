/* Values of JSON: found by path, read as what they should be, named in errors. */
#include "json_tree.h"

#include <assert.h>
#include <string.h>

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

static const char *json_kind_name(const json_value *value) {
    static const char *const names[] = {"null",   "true or false", "a number",
                                        "a text", "a list",        "an object"};
    return names[value->kind];
}

/* ---- errors ---- */

sm_status json_fail_at(const json_document *in, sm_span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sm_status status = sm_vfail_at(in->err, in->source, span, format, args);
    va_end(args);
    if (in->err && in->line > 1) in->err->line += in->line - 1;
    return status;
}

/* What to write instead: the nearest of n names, or as many of them as there is room for. */
static const char *advice(char *out, size_t size, const char *word, const char *const *names,
                          size_t n) {
    const char *nearest = sm_nearest(word, strlen(word), names, n);
    if (nearest) {
        snprintf(out, size, "the nearest is \"%s\"", nearest);
        return out;
    }
    static const char *const rest = " and %zu more";
    int at = snprintf(out, size, "expected one of ");
    for (size_t i = 0; i < n && at >= 0; i++) {
        if ((size_t)at + strlen(names[i]) + strlen(rest) >= size) {
            snprintf(out + at, size - (size_t)at, rest, n - i);
            break;
        }
        at += snprintf(out + at, size - (size_t)at, i ? ", %s" : "%s", names[i]);
    }
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

sm_status json_expect_keys(const json_value *v, const char *expected, const char *keys) {
    enum { MOST_KEYS = 64, ROOM = 1024 };
    const char *known[MOST_KEYS];
    char room[ROOM];
    size_t n = 0;
    sm_status status = json_expect(v, IS_OBJECT, expected);
    if (status || !v) return status;
    assert(strlen(keys) < ROOM);
    memcpy(room, keys, strlen(keys) + 1);
    for (char *at = room; at; n++) {
        assert(n < MOST_KEYS);
        known[n] = at;
        at = strchr(at, '|');
        if (at) *at++ = '\0';
    }
    return json_check_keys(v, known, n);
}
