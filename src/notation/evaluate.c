/* Expressions as Python would work them out, but that division is exact and none takes no part in
 * arithmetic. */
#include "evaluate.h"

#include <math.h>
#include <stdlib.h>

value values_of_number(double number) { return (value){.kind = VALUE_NUMBER, .number = number}; }

static value of_truth(bool truth) { return (value){.kind = VALUE_TRUTH, .number = truth}; }

value values_of_json(const json_value *json) {
    value v = {.kind = VALUE_NONE, .json = json};
    if (!json) return v;
    switch (json->kind) {
    case IS_NULL: break;
    case IS_BOOL:
        v.kind = VALUE_TRUTH;
        v.number = json->truth;
        break;
    case IS_NUMBER:
        v.kind = VALUE_NUMBER;
        v.number = json->number;
        break;
    case IS_TEXT:
        v.kind = VALUE_WORD;
        v.word = json->text;
        break;
    case IS_LIST: v.kind = VALUE_LIST; break;
    case IS_OBJECT: v.kind = VALUE_OBJECT; break;
    }
    return v;
}

bool values_true(const value *v) {
    switch (v->kind) {
    case VALUE_NONE: return false;
    case VALUE_TRUTH:
    case VALUE_NUMBER: return v->number != 0; /* as in Python NaN is true */
    case VALUE_WORD: return v->word[0] != 0;
    case VALUE_LIST:
    case VALUE_OBJECT: return v->json->n > 0;
    case VALUE_TEXT:
    case VALUE_OPERATOR:
    case VALUE_RULE: break;
    }
    return true;
}

static bool is_number(const value *v) { return v->kind == VALUE_NUMBER || v->kind == VALUE_TRUTH; }

bool values_equal(const value *a, const value *b) {
    if (is_number(a) && is_number(b)) return a->number == b->number;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case VALUE_NONE:
    case VALUE_TRUTH:
    case VALUE_NUMBER: return true;
    case VALUE_WORD: return strcmp(a->word, b->word) == 0;
    case VALUE_LIST:
    case VALUE_OBJECT: return a->json == b->json;
    case VALUE_TEXT: return a->text == b->text;
    case VALUE_OPERATOR: return a->op == b->op;
    case VALUE_RULE: return a->rule == b->rule;
    }
    return false;
}

const char *values_kind_name(const value *v) {
    static const char *const names[] = {
        "none",      "true or false",         "a number",    "a text",         "a list",
        "an object", "a text of the library", "an operator", "a rule by layer"};
    return names[v->kind];
}

sm_status values_fail(const scope *s, const value *v, sm_span span, const char *format, ...) {
    const json_value *json = v ? v->json : NULL;
    sm_span place = json ? json_head(json) : span;
    va_list args;
    va_start(args, format);
    sm_status status = sm_vfail_at(s->err, json ? s->config : s->source, place, format, args);
    va_end(args);
    return status;
}

/* ---- indices and members ---- */

/* "5" and "05" are called like 5. */
static const json_value *member_called(const json_value *object, double i) {
    for (uint32_t k = 0; k < object->n; k++) {
        char *end;
        const char *key = object->item[k].key;
        if (key[0] >= '0' && key[0] <= '9' && strtod(key, &end) == i && *end == 0)
            return &object->item[k];
    }
    return NULL;
}

static value letter_of(const char *word, double i, const json_value *json) {
    static const char letters[][2] = {
#define ROW(c)                                                                                     \
    {c, 0}, {c + 1, 0}, {c + 2, 0}, {c + 3, 0}, {c + 4, 0}, {c + 5, 0}, {c + 6, 0}, {c + 7, 0}
        ROW(32), ROW(40), ROW(48),  ROW(56),  ROW(64), ROW(72), ROW(80),
        ROW(88), ROW(96), ROW(104), ROW(112), ROW(120)
#undef ROW
    };
    value v = {.kind = VALUE_NONE, .json = json};
    if (!(i >= 0 && i < (double)strlen(word))) return v;
    unsigned char c = (unsigned char)word[(size_t)i];
    if (c < 32 || c > 126) return v;
    v.kind = VALUE_WORD;
    v.word = letters[c - 32];
    return v;
}

static sm_status both_of(scope *s, const tree *t, value *a, value *b) {
    sm_status status = values_of(s, t->child[0], a);
    return status ? status : values_of(s, t->child[1], b);
}

static sm_status element_of(scope *s, const tree *t, value *out) {
    value of, at;
    sm_status status = both_of(s, t, &of, &at);
    if (status) return status;
    if (!is_number(&at))
        return values_fail(s, NULL, t->child[1]->span, "an index is a number, and this is %s",
                           values_kind_name(&at));
    switch (of.kind) {
    case VALUE_RULE: return s->ask(s, of.rule, at.number, out);
    case VALUE_LIST:
        if (!(at.number >= 0 && at.number < of.json->n))
            return values_fail(s, &of, t->span, "the list has %u entries, and the %.0f. is needed",
                               of.json->n, at.number + 1);
        *out = values_of_json(&of.json->item[(uint32_t)at.number]);
        return SM_OK;
    case VALUE_WORD: *out = letter_of(of.word, at.number, of.json); return SM_OK;
    case VALUE_OBJECT: *out = values_of_json(member_called(of.json, at.number)); return SM_OK;
    default: *out = of; return SM_OK;
    }
}

/* "3,4,5" holds 4: some configs write lists so. */
static bool word_lists(const char *word, double number) {
    for (const char *at = word; *at;) {
        char *end;
        size_t between = strcspn(at, "0123456789");
        at += between;
        if (!*at) return false;
        if (strtod(at, &end) == number) return true;
        at = end;
    }
    return false;
}

static bool holds(const value *all, const value *one) {
    switch (all->kind) {
    case VALUE_LIST:
        for (uint32_t i = 0; i < all->json->n; i++) {
            value v = values_of_json(&all->json->item[i]);
            if (values_equal(&v, one)) return true;
        }
        return false;
    case VALUE_WORD:
        if (one->kind == VALUE_NUMBER) return word_lists(all->word, one->number);
        return one->kind == VALUE_WORD && strstr(all->word, one->word);
    case VALUE_OBJECT: return one->kind == VALUE_WORD && json_get(all->json, one->word);
    default: return false;
    }
}

/* ---- arithmetic ---- */

static sm_status number_of(scope *s, const tree *t, value *out) {
    sm_status status = values_of(s, t, out);
    if (status || is_number(out)) return status;
    if (t->kind == TREE_NAME || t->kind == TREE_SIZE)
        return values_fail(s, out, t->span, "%s is %s, and a number is needed", t->name,
                           values_kind_name(out));
    return values_fail(s, out, t->span, "this is %s, and a number is needed",
                       values_kind_name(out));
}

static double remainder_of(double a, double b) { /* the sign of b, as in Python */
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static sm_status arithmetic(scope *s, const tree *t, value *out) {
    value a, b;
    sm_status status = number_of(s, t->child[0], &a);
    if (!status) status = number_of(s, t->child[1], &b);
    if (status) return status;
    if (b.number == 0 && (t->kind == TREE_DIVIDE || t->kind == TREE_REMAINDER))
        return values_fail(s, &b, t->span, "this is a division by 0");
    double x = a.number, y = b.number;
    switch ((int)t->kind) {
    case TREE_ADD: *out = values_of_number(x + y); break;
    case TREE_SUBTRACT: *out = values_of_number(x - y); break;
    case TREE_MULTIPLY: *out = values_of_number(x * y); break;
    case TREE_DIVIDE: *out = values_of_number(x / y); break;
    case TREE_REMAINDER: *out = values_of_number(remainder_of(x, y)); break;
    case TREE_LESS: *out = of_truth(x < y); break;
    case TREE_MORE: *out = of_truth(x > y); break;
    case TREE_AT_MOST: *out = of_truth(x <= y); break;
    default: *out = of_truth(x >= y); break;
    }
    out->json = b.json ? b.json : a.json;
    return SM_OK;
}

static sm_status compare(scope *s, const tree *t, value *out) {
    value a, b;
    sm_status status = both_of(s, t, &a, &b);
    if (!status)
        *out = of_truth(t->kind == TREE_IN ? holds(&b, &a)
                                           : values_equal(&a, &b) == (t->kind == TREE_EQUAL));
    return status;
}

static double count_in(const value *all, const value *one) {
    double n = 0;
    if (all->kind == VALUE_LIST)
        for (uint32_t i = 0; i < all->json->n; i++) {
            value v = values_of_json(&all->json->item[i]);
            n += values_equal(&v, one);
        }
    if (all->kind != VALUE_WORD || one->kind != VALUE_WORD || !one->word[0]) return n;
    for (const char *at = all->word; (at = strstr(at, one->word)) != NULL; at++) n++;
    return n;
}

static double length_of(const value *v) {
    return v->kind == VALUE_WORD                              ? (double)strlen(v->word)
           : v->kind == VALUE_LIST || v->kind == VALUE_OBJECT ? (double)v->json->n
                                                              : 0;
}

static sm_status call(scope *s, const tree *t, value *out) {
    value a, b = values_of_number(1);
    int f = tree_find_function(t->name);
    bool of_list = f == TREE_FUNCTION_LENGTH || f == TREE_FUNCTION_TIMES;
    sm_status status = of_list ? values_of(s, t->child[0], &a) : number_of(s, t->child[0], &a);
    for (int i = 1; !status && i < t->n; i++) {
        status = of_list ? values_of(s, t->child[i], &b) : number_of(s, t->child[i], &b);
        if (!status && f == TREE_FUNCTION_MIN) a.number = fmin(a.number, b.number);
        if (!status && f == TREE_FUNCTION_MAX) a.number = fmax(a.number, b.number);
    }
    if (status) return status;
    switch (f) {
    case TREE_FUNCTION_FLOOR: a.number = floor(a.number); break;
    case TREE_FUNCTION_SQRT: a.number = sqrt(fmax(a.number, 0)); break;
    case TREE_FUNCTION_CEIL: a.number = ceil(a.number); break;
    case TREE_FUNCTION_ROUNDUP:
        if (b.number == 0) return values_fail(s, &b, t->span, "this is a division by 0");
        a.number = ceil(a.number / b.number) * b.number;
        break;
    case TREE_FUNCTION_LENGTH: a.number = length_of(&a); break;
    case TREE_FUNCTION_TIMES: a.number = count_in(&a, &b); break;
    default: break;
    }
    *out = (value){.kind = VALUE_NUMBER, .number = a.number, .json = a.json ? a.json : b.json};
    return SM_OK;
}

/* ---- the whole ---- */

/* a or b, a and b give one of the two, as in Python. */
static sm_status either(scope *s, const tree *t, value *out) {
    sm_status status = values_of(s, t->child[0], out);
    if (status || values_true(out) == (t->kind == TREE_OR)) return status;
    return values_of(s, t->child[1], out);
}

static sm_status constant(const tree *t, value *out) {
    if (t->kind == TREE_NUMBER) *out = values_of_number(t->number);
    else *out = (value){.kind = VALUE_WORD, .word = t->name};
    return SM_OK;
}

static sm_status member(scope *s, const tree *t, value *out) {
    value of;
    sm_status status = values_of(s, t->child[0], &of);
    if (!status)
        *out = values_of_json(of.kind == VALUE_OBJECT ? json_find(of.json, t->name) : NULL);
    return status;
}

static sm_status named(scope *s, const tree *t, value *out) {
    static const char *const words[] = {"none", "false", "true"};
    for (int i = 0; t->kind == TREE_NAME && i < 3; i++)
        if (strcmp(t->name, words[i]) == 0) {
            *out = i == 0 ? (value){.kind = VALUE_NONE} : of_truth(i == 2);
            return SM_OK;
        }
    return s->look(s, t, out);
}

static sm_status worked_out(scope *s, const tree *t, value *out) {
    value v;
    sm_status status = SM_OK;
    switch (t->kind) {
    case TREE_NUMBER:
    case TREE_WORD: return constant(t, out);
    case TREE_NAME:
    case TREE_SIZE: return named(s, t, out);
    case TREE_ELEMENT: return element_of(s, t, out);
    case TREE_MEMBER: return member(s, t, out);
    case TREE_CALL: return call(s, t, out);
    case TREE_NEGATE:
        status = number_of(s, t->child[0], &v);
        *out = (value){.kind = VALUE_NUMBER, .number = -v.number, .json = v.json};
        return status;
    case TREE_NOT:
        status = values_of(s, t->child[0], &v);
        if (!status) *out = of_truth(!values_true(&v));
        return status;
    case TREE_ADD:
    case TREE_SUBTRACT:
    case TREE_MULTIPLY:
    case TREE_DIVIDE:
    case TREE_REMAINDER:
    case TREE_LESS:
    case TREE_MORE:
    case TREE_AT_MOST:
    case TREE_AT_LEAST: return arithmetic(s, t, out);
    case TREE_EQUAL:
    case TREE_UNEQUAL:
    case TREE_IN: return compare(s, t, out);
    case TREE_AND:
    case TREE_OR: return either(s, t, out);
    case TREE_CHOICE:
        status = values_of(s, t->child[1], &v);
        return status ? status : values_of(s, t->child[values_true(&v) ? 0 : 2], out);
    case TREE_OTHERWISE: /* formulas are worked out elsewhere */
    case TREE_ARRAY:
    case TREE_PRODUCT: break;
    }
    return values_fail(s, NULL, t->span, "an array is no value");
}

sm_status values_of(scope *s, const tree *t, value *out) {
    *out = (value){.kind = VALUE_NONE};
    if (s->depth >= VALUES_MOST_DEPTH)
        return values_fail(s, NULL, t->span,
                           "this needs more than %d steps to work out: is it defined by itself?",
                           VALUES_MOST_DEPTH);
    if (--*s->steps < 0)
        return values_fail(s, NULL, t->span, "working this out takes more than %d steps",
                           VALUES_MOST_STEPS);
    s->depth++;
    sm_status status = worked_out(s, t, out);
    s->depth--;
    return status;
}
