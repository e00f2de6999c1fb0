/* Reading formulas, and working them out. */
#include "expression.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "scalemodel/units.h"

enum { MOST_DEPTH = 64, MOST_ARGUMENTS = 48, MOST_BYTES = 4000, MOST_TIMES = 64 };

typedef enum operation {
    IS_NUMBER,
    IS_TEXT,
    IS_NAME,
    IS_CALL,
    CHOOSE, /* a ? b : c */
    OTHERWISE,
    OR,
    AND,
    EQUAL,
    UNEQUAL,
    LESS,
    LESS_EQUAL,
    MORE,
    MORE_EQUAL,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    NOT,
    NEGATE
} operation;

struct expression {
    operation what;
    double number;
    const char *text; /* of a text; a name; the function called */
    int n;
    const expression *in[MOST_ARGUMENTS];
};

/* ---- reading ---- */

typedef struct reader {
    sm_cursor at;
    size_t end;
    int depth;
    sm_arena *arena;
    sm_error *err;
} reader;

static sm_status read_value(reader *r, const expression **out);

static sm_status fail_here(reader *r, const char *expected) {
    size_t left = r->end > r->at.at ? 1 : 0;
    return sm_fail_at(r->err, r->at.source, (sm_span){r->at.at - (left ? 0 : 1), 1}, "expected %s",
                      expected);
}

static expression *new_node(reader *r, operation what) {
    /* Only calls have many inputs. */
    size_t room = what == IS_CALL ? MOST_ARGUMENTS : 3;
    expression *e =
        sm_arena_alloc(r->arena, offsetof(expression, in) + room * sizeof(const expression *));
    if (e) e->what = what;
    return e;
}

/* The next byte that is no blank; -1 at the end of the span. */
static int peek(reader *r) {
    sm_cursor_blanks(&r->at);
    return r->at.at < r->end ? sm_cursor_peek(&r->at) : -1;
}

static bool take(reader *r, const char *word) {
    size_t n = strlen(word);
    if (peek(r) < 0 || r->at.at + n > r->end || memcmp(r->at.source->text + r->at.at, word, n) != 0)
        return false;
    r->at.at += n;
    return true;
}

static sm_status read_quoted(reader *r, expression *e) {
    const char *text = r->at.source->text;
    size_t from = ++r->at.at;
    while (r->at.at < r->end && text[r->at.at] != '\'') r->at.at++;
    if (r->at.at == r->end) return fail_here(r, "the closing '");
    e->text = sm_arena_copy(r->arena, text + from, r->at.at++ - from);
    return e->text ? SM_OK : sm_fail_memory(r->err);
}

static bool is_name_byte(int c, bool first) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

static sm_status read_arguments(reader *r, expression *e) {
    if (take(r, ")")) return SM_OK;
    do {
        if (e->n == MOST_ARGUMENTS) return fail_here(r, "at most 48 arguments");
        sm_status status = read_value(r, &e->in[e->n++]);
        if (status) return status;
    } while (take(r, ","));
    return take(r, ")") ? SM_OK : fail_here(r, "')'");
}

static sm_status read_name(reader *r, const expression **out) {
    const char *text = r->at.source->text;
    size_t from = r->at.at;
    while (r->at.at < r->end && is_name_byte((unsigned char)text[r->at.at], false)) r->at.at++;
    const char *name = sm_arena_copy(r->arena, text + from, r->at.at - from);
    expression *e = new_node(r, take(r, "(") ? IS_CALL : IS_NAME);
    if (!e || !name) return sm_fail_memory(r->err);
    e->text = name;
    *out = e;
    return e->what == IS_CALL ? read_arguments(r, e) : SM_OK;
}

static sm_status read_digits(reader *r, expression *e) {
    size_t from = r->at.at;
    const char *text = r->at.source->text;
    while (r->at.at < r->end && strchr("0123456789.e", text[r->at.at]) && text[r->at.at])
        r->at.at++;
    return sm_quantity_parse(r->at.source, (sm_span){from, r->at.at - from}, SM_Q_COUNT, &e->number,
                             r->err);
}

static sm_status read_first(reader *r, const expression **out) {
    int c = peek(r);
    if (take(r, "(")) {
        sm_status status = read_value(r, out);
        return status ? status : take(r, ")") ? SM_OK : fail_here(r, "')'");
    }
    if (is_name_byte(c, true)) return read_name(r, out);
    if (c != '\'' && !(c >= '0' && c <= '9')) return fail_here(r, "a number, a name or a 'text'");
    expression *e = new_node(r, c == '\'' ? IS_TEXT : IS_NUMBER);
    if (!e) return sm_fail_memory(r->err);
    *out = e;
    return c == '\'' ? read_quoted(r, e) : read_digits(r, e);
}

static sm_status join(reader *r, operation what, const expression *a, const expression *b,
                      const expression **out) {
    expression *e = new_node(r, what);
    if (!e) return sm_fail_memory(r->err);
    e->n = b ? 2 : 1;
    e->in[0] = a;
    e->in[1] = b;
    *out = e;
    return SM_OK;
}

static sm_status read_unary(reader *r, const expression **out) {
    const expression *a, *b;
    bool is_not = peek(r) == '!' && r->at.source->text[r->at.at + 1] != '=' && take(r, "!");
    if (is_not || take(r, "-")) {
        if (++r->depth > MOST_DEPTH) return fail_here(r, "a formula nested less deeply");
        sm_status status = read_unary(r, &a);
        r->depth--;
        return status ? status : join(r, is_not ? NOT : NEGATE, a, NULL, out);
    }
    sm_status status = read_first(r, out);
    while (!status && take(r, "??")) {
        a = *out;
        status = read_first(r, &b);
        if (!status) status = join(r, OTHERWISE, a, b, out);
    }
    return status;
}

/* Operators from those that bind most loosely; longer ones before those they begin with. */
static const struct {
    const char *sign;
    operation what;
    int level;
} operators[] = {{"||", OR, 0},      {"&&", AND, 1},        {"==", EQUAL, 2},
                 {"!=", UNEQUAL, 2}, {"<=", LESS_EQUAL, 2}, {">=", MORE_EQUAL, 2},
                 {"<", LESS, 2},     {">", MORE, 2},        {"+", ADD, 3},
                 {"-", SUBTRACT, 3}, {"*", MULTIPLY, 4},    {"/", DIVIDE, 4},
                 {"%", REMAINDER, 4}};
enum { OPERATORS = sizeof operators / sizeof *operators, TIGHTEST = 4 };

static sm_status read_level(reader *r, int level, const expression **out) {
    if (level > TIGHTEST) return read_unary(r, out);
    sm_status status = read_level(r, level + 1, out);
    for (int i = 0; i < OPERATORS && !status; i++) {
        const expression *a = *out, *b;
        if (operators[i].level != level || !take(r, operators[i].sign)) continue;
        status = read_level(r, level + 1, &b);
        if (!status) status = join(r, operators[i].what, a, b, out);
        i = -1; /* all operators of the level again */
    }
    return status;
}

static sm_status read_value(reader *r, const expression **out) {
    const expression *b, *c;
    if (++r->depth > MOST_DEPTH) return fail_here(r, "a formula nested less deeply");
    sm_status status = read_level(r, 0, out);
    bool chooses = !status && peek(r) == '?' && take(r, "?");
    if (chooses) {
        status = read_value(r, &b);
        if (!status && !take(r, ":")) status = fail_here(r, "':'");
        if (!status) status = read_value(r, &c);
        expression *e = status ? NULL : new_node(r, CHOOSE);
        if (!status && !e) status = sm_fail_memory(r->err);
        if (e) {
            e->n = 3;
            e->in[0] = *out, e->in[1] = b, e->in[2] = c;
            *out = e;
        }
    }
    r->depth--;
    return status;
}

sm_status expression_parse(const sm_source *source, sm_span span, sm_arena *arena,
                           const expression **out, sm_error *err) {
    reader r = {{source, span.offset}, span.offset + span.length, 0, arena, err};
    if (span.length > MOST_BYTES)
        return sm_fail_at(err, source, span, "a formula has at most %d bytes", MOST_BYTES);
    sm_status status = read_value(&r, out);
    if (status || peek(&r) < 0) return status;
    return fail_here(&r, "the formula to end here");
}

void expression_each_name(const expression *e, void (*visit)(void *context, const char *name),
                          void *context) {
    if (e->what == IS_NAME) visit(context, e->text);
    for (int i = 0; i < e->n; i++) expression_each_name(e->in[i], visit, context);
}

/* ---- working out ---- */

typedef struct working {
    expression_names *names;
    const void *context;
    sm_arena *arena;
    bool *out_of_memory;
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
        bool begins = at == list || !is_name_byte((unsigned char)at[-1], false);
        if (begins && !is_name_byte((unsigned char)at[n], false)) return true;
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
        expression_value v = work(w, e->in[i]);
        if (v.kind == VALUE_ABSENT) return absent;
        all = sm_arena_printf(w->arena, "%s%s", all, as_text(w, v));
    }
    if (!all) *w->out_of_memory = true;
    return value_text(all);
}

/* map(x, 'a', A, 'b', B, other): A where x is a. Without `other`: absent when it is none of them.
 */
static expression_value mapped(const working *w, const expression *e) {
    expression_value x = e->n ? work(w, e->in[0]) : absent;
    if (x.kind == VALUE_ABSENT) return absent;
    int i = 1;
    for (; i + 1 < e->n; i += 2)
        if (is_equal(w, x, work(w, e->in[i]))) return work(w, e->in[i + 1]);
    return i < e->n ? work(w, e->in[i]) : absent;
}

static expression_value extreme(const working *w, const expression *e, bool most) {
    double best = most ? -HUGE_VAL : HUGE_VAL;
    for (int i = 0; i < e->n; i++) {
        expression_value v = work(w, e->in[i]);
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
    const char *name = e->text;
    if (strcmp(name, "text") == 0) return joined(w, e);
    if (strcmp(name, "map") == 0) return mapped(w, e);
    if (strcmp(name, "min") == 0 || strcmp(name, "max") == 0) return extreme(w, e, name[1] == 'a');
    expression_value a = e->n > 0 ? work(w, e->in[0]) : absent;
    expression_value b = e->n > 1 ? work(w, e->in[1]) : absent;
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
        return value_number(layout_chunks(a.text));
    if (a.kind != VALUE_NUMBER) return absent;
    if (strcmp(name, "ceil") == 0) return value_number(ceil(a.number));
    if (strcmp(name, "floor") == 0) return value_number(floor(a.number));
    return absent;
}

static expression_value computed(operation what, double a, double b) {
    switch (what) {
    case ADD: return value_number(a + b);
    case SUBTRACT: return value_number(a - b);
    case MULTIPLY: return value_number(a * b);
    case DIVIDE: return b != 0 ? value_number(a / b) : absent;
    case REMAINDER: return b != 0 ? value_number(fmod(a, b)) : absent;
    case LESS: return value_number(a < b);
    case LESS_EQUAL: return value_number(a <= b);
    case MORE: return value_number(a > b);
    case MORE_EQUAL: return value_number(a >= b);
    default: return absent;
    }
}

static expression_value work_two(const working *w, const expression *e) {
    expression_value a = work(w, e->in[0]);
    if (e->what == OTHERWISE) return a.kind == VALUE_ABSENT ? work(w, e->in[1]) : a;
    if (e->what == OR && value_holds(a)) return value_number(1);
    if (e->what == AND && !value_holds(a)) return value_number(0);
    expression_value b = work(w, e->in[1]);
    if (e->what == OR || e->what == AND) return value_number(value_holds(b));
    if (a.kind == VALUE_ABSENT || b.kind == VALUE_ABSENT) return absent;
    if (e->what == EQUAL || e->what == UNEQUAL)
        return value_number(is_equal(w, a, b) == (e->what == EQUAL));
    if (a.kind != VALUE_NUMBER || b.kind != VALUE_NUMBER) return absent;
    return computed(e->what, a.number, b.number);
}

static expression_value work(const working *w, const expression *e) {
    switch (e->what) {
    case IS_NUMBER: return value_number(e->number);
    case IS_TEXT: return value_text(e->text);
    case IS_NAME: return w->names(w->context, e->text);
    case IS_CALL: return called(w, e);
    case CHOOSE: return work(w, e->in[value_holds(work(w, e->in[0])) ? 1 : 2]);
    case NOT: return value_number(!value_holds(work(w, e->in[0])));
    case NEGATE: {
        expression_value a = work(w, e->in[0]);
        return a.kind == VALUE_NUMBER ? value_number(-a.number) : absent;
    }
    default: return work_two(w, e);
    }
}

expression_value expression_work(const expression *e, expression_names *names, const void *context,
                                 sm_arena *arena, bool *out_of_memory) {
    const working w = {names, context, arena, out_of_memory};
    return work(&w, e);
}
