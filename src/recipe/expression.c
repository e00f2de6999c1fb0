/* Working out formulas. */
#include "expression.h"
#include "scalemodel/plan.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "tree.h"

enum { MOST_TIMES = 64 };

static bool is_name_byte(int c) { return isalnum(c) || c == '_' || c == '.'; }

sm_status expression_parse(const sm_source *source, sm_span span, sm_arena *arena,
                           const expression **out, sm_error *err) {
    return tree_read_formula(source, span, arena, out, err);
}

void expression_each_name(const expression *e, void (*visit)(void *context, const char *name),
                          void *context) {
    if (e->kind == TREE_NAME) visit(context, e->name);
    for (int i = 0; i < e->n; i++) expression_each_name(e->child[i], visit, context);
}

/* ---- working out ---- */

typedef struct working {
    expression_names *names;
    const void *context;
    sm_arena *arena;
    bool *out_of_memory;
    bool whole; /* division drops what is left */
} working;

static const expression_value absent = {.kind = VALUE_ABSENT};

static expression_value work(const working *w, const expression *e);

static const char *as_text(const working *w, expression_value v) {
    char number[40];
    if (v.kind == VALUE_TEXT) return v.text;
    if (v.kind == VALUE_ABSENT) return "";
    sm_format_exact(number, sizeof number, v.number);
    const char *text = sm_arena_copy(w->arena, number, strlen(number));
    if (!text) *w->out_of_memory = true;
    return text ? text : "";
}

/* Texts are equal in any case of letters; a number and a text are by what the number is written. */
static bool is_equal(const working *w, expression_value a, expression_value b) {
    if (a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER) return a.number == b.number;
    return strcasecmp(as_text(w, a), as_text(w, b)) == 0;
}

/* Is a word in a list of words, which blanks, commas or signs of any other kind part? */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; n && *at; at++) {
        if (strncasecmp(at, word, n) != 0) continue;
        bool begins = at == list || !is_name_byte((unsigned char)at[-1]);
        if (begins && !is_name_byte((unsigned char)at[n])) return true;
    }
    return false;
}

static bool holds(const char *text, const char *part) {
    size_t n = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0) return true;
    return n == 0;
}

/* The part of a text before a sign, or after it; absent where it has none. */
static expression_value part_of(const working *w, expression_value a, expression_value b,
                                bool after) {
    const char *at = a.kind == VALUE_TEXT && b.kind == VALUE_TEXT ? strstr(a.text, b.text) : NULL;
    if (!at) return absent;
    if (after) return value_text(at + strlen(b.text));
    const char *part = sm_arena_copy(w->arena, a.text, (size_t)(at - a.text));
    if (!part) *w->out_of_memory = true;
    return value_text(part);
}

static expression_value joined(const working *w, const expression *e) {
    const char *all = "";
    for (int i = 0; i < e->n && all; i++) {
        expression_value v = work(w, e->child[i]);
        if (v.kind == VALUE_ABSENT) return absent;
        all = sm_arena_printf(w->arena, "%s%s", all, as_text(w, v));
    }
    if (!all) *w->out_of_memory = true;
    return value_text(all);
}

/* map(x, 'a', A, 'b', B, other): A where x is a. Without `other`: absent when it is none of them.
 */
static expression_value mapped(const working *w, const expression *e) {
    expression_value x = e->n ? work(w, e->child[0]) : absent;
    if (x.kind == VALUE_ABSENT) return absent;
    int i = 1;
    for (; i + 1 < e->n; i += 2)
        if (is_equal(w, x, work(w, e->child[i]))) return work(w, e->child[i + 1]);
    return i < e->n ? work(w, e->child[i]) : absent;
}

static expression_value extreme(const working *w, const expression *e, bool most) {
    double best = most ? -HUGE_VAL : HUGE_VAL;
    for (int i = 0; i < e->n; i++) {
        expression_value v = work(w, e->child[i]);
        if (v.kind != VALUE_NUMBER) return absent;
        best = most ? fmax(best, v.number) : fmin(best, v.number);
    }
    return e->n ? value_number(best) : absent;
}

static expression_value common(expression_value a, expression_value b) {
    if (a.kind != VALUE_NUMBER || b.kind != VALUE_NUMBER || a.number < 1 || b.number < 1)
        return absent;
    double x = floor(a.number), y = floor(b.number);
    while (y > 0) {
        double rest = fmod(x, y);
        x = y;
        y = rest;
    }
    return value_number(x);
}

static expression_value made(const working *w, const char *text) {
    if (!text) *w->out_of_memory = true;
    return value_text(text);
}

/* The same text n times, with dots between. */
static expression_value repeated(const working *w, expression_value a, expression_value b) {
    const char *all = "";
    if (a.kind == VALUE_ABSENT || b.kind != VALUE_NUMBER || b.number > MOST_TIMES) return absent;
    for (int i = 0; i < (int)b.number && all; i++)
        all = sm_arena_printf(w->arena, "%s%s%s", all, i ? "." : "", as_text(w, a));
    return made(w, all);
}

static expression_value called(const working *w, const expression *e) {
    const char *name = e->name;
    if (strcmp(name, "text") == 0) return joined(w, e);
    if (strcmp(name, "map") == 0) return mapped(w, e);
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0) return extreme(w, e, name[1] == 'a');
    expression_value a = e->n > 0 ? work(w, e->child[0]) : absent;
    expression_value b = e->n > 1 ? work(w, e->child[1]) : absent;
    if (strcmp(name, "gcd") == 0) return common(a, b);
    if (strcmp(name, "given") == 0) return value_number(a.kind != VALUE_ABSENT);
    if (strcmp(name, "repeat") == 0) return repeated(w, a, b);
    if (strcmp(name, "contains") == 0)
        return value_number(a.kind == VALUE_TEXT && b.kind == VALUE_TEXT && holds(a.text, b.text));
    if (strcmp(name, "before") == 0 || strcmp(name, "after") == 0)
        return part_of(w, a, b, name[0] == 'a');
    if (strcmp(name, "has") == 0)
        return value_number(a.kind == VALUE_TEXT && b.kind == VALUE_TEXT &&
                            has_word(a.text, b.text));
    if (a.kind == VALUE_TEXT && strcmp(name, "layout_of") == 0)
        return made(w, layout_of_pattern(a.text, w->arena));
    if (a.kind == VALUE_TEXT && strcmp(name, "pattern_of") == 0)
        return made(w, pattern_of_layout(a.text, w->arena));
    if (a.kind == VALUE_TEXT && strcmp(name, "chunks_of") == 0)
        return value_number(sm_plan_layout_chunks(a.text));
    if (a.kind != VALUE_NUMBER) return absent;
    if (strcmp(name, "ceil") == 0) return value_number(ceil(a.number));
    if (strcmp(name, "floor") == 0) return value_number(floor(a.number));
    return absent;
}

static expression_value work_two(const working *w, const expression *e) {
    expression_value a = work(w, e->child[0]);
    if (e->kind == TREE_OTHERWISE) return a.kind == VALUE_ABSENT ? work(w, e->child[1]) : a;
    if (e->kind == TREE_OR && value_holds(a)) return value_number(1);
    if (e->kind == TREE_AND && !value_holds(a)) return value_number(0);
    expression_value b = work(w, e->child[1]);
    if (e->kind == TREE_OR || e->kind == TREE_AND) return value_number(value_holds(b));
    if (a.kind == VALUE_ABSENT || b.kind == VALUE_ABSENT) return absent;
    if (e->kind == TREE_EQUAL || e->kind == TREE_UNEQUAL)
        return value_number(is_equal(w, a, b) == (e->kind == TREE_EQUAL));
    if (a.kind != VALUE_NUMBER || b.kind != VALUE_NUMBER) return absent;
    switch ((int)e->kind) {
    case TREE_ADD: return value_number(a.number + b.number);
    case TREE_SUBTRACT: return value_number(a.number - b.number);
    case TREE_MULTIPLY: return value_number(a.number * b.number);
    case TREE_DIVIDE:
        if (b.number == 0) return absent;
        return value_number(w->whole ? trunc(a.number / b.number) : a.number / b.number);
    case TREE_REMAINDER: return b.number != 0 ? value_number(fmod(a.number, b.number)) : absent;
    case TREE_LESS: return value_number(a.number < b.number);
    case TREE_AT_MOST: return value_number(a.number <= b.number);
    case TREE_MORE: return value_number(a.number > b.number);
    case TREE_AT_LEAST: return value_number(a.number >= b.number);
    default: return absent;
    }
}

static expression_value work(const working *w, const expression *e) {
    switch ((int)e->kind) {
    case TREE_NUMBER: return value_number(e->number);
    case TREE_WORD: return value_text(e->name);
    case TREE_NAME: return w->names(w->context, e->name);
    case TREE_CALL: return called(w, e);
    case TREE_CHOICE: return work(w, e->child[value_holds(work(w, e->child[1])) ? 0 : 2]);
    case TREE_NOT: return value_number(!value_holds(work(w, e->child[0])));
    case TREE_NEGATE: {
        expression_value a = work(w, e->child[0]);
        return a.kind == VALUE_NUMBER ? value_number(-a.number) : absent;
    }
    default: return work_two(w, e);
    }
}

expression_value expression_work(const expression *e, expression_names *names, const void *context,
                                 sm_arena *arena, bool *out_of_memory) {
    const working w = {names, context, arena, out_of_memory, false};
    return work(&w, e);
}

expression_value expression_work_whole(const expression *e, expression_names *names,
                                       const void *context, sm_arena *arena, bool *out_of_memory) {
    const working w = {names, context, arena, out_of_memory, true};
    return work(&w, e);
}
