/* json_tree: JSON text as values that know where in the text they stand, and readers of them that
 * say what was expected and what was found. Every reader of JSON goes through here: chips, model
 * configs, measured rows, requests, checkpoints. Lent to the layers that read JSON. */
#pragma once
#include "scalemodel/text.h"

enum { JSON_MOST_BYTES = 16 << 20 };

typedef enum json_kind { IS_NULL, IS_BOOL, IS_NUMBER, IS_TEXT, IS_LIST, IS_OBJECT } json_kind;

/* What is being read and who is told of errors. Must outlive the values. */
typedef struct json_document {
    const sm_source *source;
    sm_arena *arena; /* holds the values and their texts */
    sm_error *err;
    int line;    /* of the file, at which the source begins: 0 and 1 are its start */
    bool python; /* NaN, Infinity and -Infinity, as Python writes them, are numbers */
} json_document;

/* A value is immutable. Spans are within the source; of a text with its quotes. */
typedef struct json_value {
    json_kind kind;
    uint32_t n; /* values of a list or object; bytes of a text */
    uint32_t at, length, key_at, key_length;
    const char *key; /* NULL outside an object */
    const json_document *in;
    union {
        double number;
        const char *text; /* 0-terminated; holds no \u0000 */
        const struct json_value *item;
        bool truth;
    };
    bool whole; /* a number without fraction and exponent, exact in integer */
    int64_t integer;
} json_value;

/* Parse the source of the document. Duplicate keys, numbers beyond double, nesting deeper than
 * 2048, text after the value and sources over JSON_MOST_BYTES are errors with line, column and
 * span. */
sm_status json_parse(const json_document *document, const json_value **root);

/* ---- finding: NULL for what is absent; value may be NULL ---- */
const json_value *json_get(const json_value *object, const char *key);
/* "text_config.layer_types[3]"; "" is the value itself. */
const json_value *json_find(const json_value *value, const char *path);
/* The value at path, or the innermost on the way to it that is there: what to name when something
 * is missing. */
const json_value *json_nearest(const json_value *value, const char *path);
bool json_is(const json_value *value, json_kind kind);
const char *json_text(const json_value *value); /* NULL when it is no text */
double json_number(const json_value *value);    /* 0 when it is no number */
sm_span json_place(const json_value *value);

/* ---- errors: SM_BAD_INPUT at a value, of which an object has its opening brace underlined, or at
 * its key ---- */
sm_status json_fail_at(const json_document *document, sm_span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline sm_span json_head(const json_value *value) {
    return (sm_span){value->at, value->kind == IS_OBJECT ? 1 : value->length};
}
#define json_fail(value, ...) json_fail_at((value)->in, json_head(value), __VA_ARGS__)
#define json_fail_key(value, ...)                                                                  \
    json_fail_at((value)->in, (sm_span){(value)->key_at, (value)->key_length}, __VA_ARGS__)

/* ---- typed readers: an absent value (NULL) leaves *out as it is. ---- */
/* expected: "a list of prices" */
sm_status json_expect(const json_value *value, json_kind kind, const char *expected);
sm_status json_read_text(const json_value *value, const char **out); /* lives in the arena */
sm_status json_read_bool(const json_value *value, bool *out);
/* 0, or from least to most, which are above 0. */
sm_status json_read_number(const json_value *value, double least, double most, double *out);
/* A whole number from 1 to most. */
sm_status json_read_count(const json_value *value, int most, int *out);
/* A list of least to most counts, each at most `largest`; *n: how many. */
sm_status json_read_counts(const json_value *value, size_t least, size_t most, int largest,
                           int *out, int *n);
/* *out becomes the index of one of n names; the error names the nearest. */
sm_status json_read_choice(const json_value *value, const char *const *names, size_t n, int *out);
/* An object whose keys are among these: json_expect_keys(v, "a step", "ask|share"). expected: what
 * the error of another kind says; that of another key names the nearest. */
sm_status json_expect_keys(const json_value *value, const char *expected, const char *keys);
/* Every key must be one of n known ones; the error names the nearest. */
sm_status json_check_keys(const json_value *object, const char *const *known, size_t n);
