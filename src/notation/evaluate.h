/* evaluate: what an expression of a family or a test of a line comes to. Where names are looked up
 * is the caller's. Private to src/notation. */
#pragma once

#include "json_tree.h"
#include "tree.h"

typedef enum value_kind {
    VALUE_NONE,
    VALUE_TRUTH,
    VALUE_NUMBER,
    VALUE_WORD,
    VALUE_LIST,
    VALUE_OBJECT,
    VALUE_TEXT,     /* a text of the library */
    VALUE_OPERATOR, /* silu */
    VALUE_RULE      /* x[i] = ..., to be asked by index */
} value_kind;

typedef struct value {
    value_kind kind;
    double number;          /* TRUTH: 0 or 1 */
    const char *word;       /* WORD */
    const json_value *json; /* LIST, OBJECT; of others whence in the config they come, or NULL */
    const tree_text *text;
    sm_operator op;
    const tree_set *rule; /* RULE; of a size what says so */
} value;

enum { VALUES_MOST_DEPTH = 200, VALUES_MOST_STEPS = 200000 };

/* Where an expression is worked out. */
typedef struct scope scope;
struct scope {
    /* What a NAME or SIZE is. */
    sm_status (*look)(scope *s, const tree *name, value *out);
    /* A rule for index i; NULL: this scope has none. */
    sm_status (*ask)(scope *s, const tree_set *rule, double i, value *out);
    const sm_source *config; /* for errors at values of it */
    const sm_source *source; /* where the expression is written */
    sm_error *err;
    int depth;
    int *steps; /* left, shared by all that one question asks */
};

sm_status values_of(scope *s, const tree *expression, value *out);
value values_of_json(const json_value *json);
value values_of_number(double number);
bool values_true(const value *v);
bool values_equal(const value *a, const value *b);
/* "a list": for sentences. */
const char *values_kind_name(const value *v);
/* An error where v stands in the config, else at the span of the expression. */
sm_status values_fail(const scope *s, const value *v, sm_span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
