/* Expressions. Lines have arrays and products of them, values have fields, words and tests,
 * formulas are values in other signs; the operators of all are one table, lowest first. */
#include "parser.h"

#include <math.h>
#include <stdlib.h>

/* ---- nodes with children ---- */

/* Open an expression within another; close it with p->depth--. */
static bool open_depth(parser *p) {
    if (++p->depth > TREE_MOST_DEPTH)
        parser_fail(p, p->now.span, "expressions within expressions, deeper than %d",
                    TREE_MOST_DEPTH);
    return !p->status;
}

static tree *parent(parser *p, tree_kind kind, size_t from, const tree *const *child, int n) {
    sm_span span = {from, p->end > from ? p->end - from : 1};
    tree *node = parser_leaf(p, kind, span, NULL);
    node->child = parser_list(p, child, n);
    if (p->status) return &p->spare;
    node->n = n;
    for (int i = 0; i < n; i++)
        if (child[i]->height >= node->height) node->height = child[i]->height + 1;
    if (node->height > TREE_MOST_DEPTH)
        parser_fail(p, span, "an expression of more than %d terms or levels", TREE_MOST_DEPTH);
    return node;
}

/* ---- operators ---- */

typedef enum level { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_TEST, LEVEL_SUM, LEVEL_PRODUCT } level;
static const struct {
    token_kind token;
    tree_kind kind;
    level level;
} operators[] = {{TOKEN_OR, TREE_OR, LEVEL_OR},
                 {TOKEN_AND, TREE_AND, LEVEL_AND},
                 {TOKEN_EQUAL, TREE_EQUAL, LEVEL_TEST},
                 {TOKEN_UNEQUAL, TREE_UNEQUAL, LEVEL_TEST},
                 {TOKEN_OF('<'), TREE_LESS, LEVEL_TEST},
                 {TOKEN_OF('>'), TREE_MORE, LEVEL_TEST},
                 {TOKEN_AT_MOST, TREE_AT_MOST, LEVEL_TEST},
                 {TOKEN_AT_LEAST, TREE_AT_LEAST, LEVEL_TEST},
                 {TOKEN_IN, TREE_IN, LEVEL_TEST},
                 {TOKEN_OF('+'), TREE_ADD, LEVEL_SUM},
                 {TOKEN_OF('-'), TREE_SUBTRACT, LEVEL_SUM},
                 {TOKEN_OF('*'), TREE_MULTIPLY, LEVEL_PRODUCT},
                 {TOKEN_OF('/'), TREE_DIVIDE, LEVEL_PRODUCT},
                 {TOKEN_OF('%'), TREE_REMAINDER, LEVEL_PRODUCT}};

static const tree *atom(parser *p);

/* A value within another. */
static const tree *nested(parser *p) {
    const tree *value = open_depth(p) ? parse_value(p) : &p->spare;
    p->depth--;
    return value;
}

/* The operator that is next, or -1. */
static int operator_at(const parser *p) {
    if (p->now.kind < TOKEN_EQUAL) return -1;
    for (int i = 0; i < (int)(sizeof operators / sizeof operators[0]); i++)
        if (operators[i].token == p->now.kind)
            return p->in_line && operators[i].kind == TREE_REMAINDER ? -1 : i;
    return -1;
}

static const tree *negated(parser *p, tree_kind kind, const tree *(*operand)(parser *)) {
    size_t from = p->now.span.offset;
    parser_advance(p);
    const tree *inner = open_depth(p) ? operand(p) : &p->spare;
    p->depth--;
    return parent(p, kind, from, &inner, 1);
}

static const tree *binary(parser *p, level at);
static const tree *not_level(parser *p) { return binary(p, LEVEL_NOT); }

/* Operators of this level and above. A test is no operand of a test. */
static const tree *binary(parser *p, level at) {
    size_t from = p->now.span.offset;
    level most = LEVEL_PRODUCT;
    const tree *left;
    if (at <= LEVEL_NOT && p->now.kind == TOKEN_NOT && !p->lexer.formula) {
        left = negated(p, TREE_NOT, not_level);
        most = LEVEL_AND;
    } else {
        left = atom(p);
    }
    for (int i; !p->status && (i = operator_at(p)) >= 0;) {
        level of = operators[i].level;
        if (of < at || of > most) break;
        parser_advance(p);
        const tree *both[] = {left, binary(p, (level)(of + 1))};
        left = parent(p, operators[i].kind, from, both, 2);
        most = of == LEVEL_TEST ? LEVEL_AND : of;
    }
    return left;
}

const tree *parse_value(parser *p) {
    size_t from = p->now.span.offset;
    bool in_line = p->in_line;
    p->in_line = false;
    const tree *part[3] = {binary(p, LEVEL_OR), &p->spare, &p->spare};
    const tree *value = part[0];
    if (parser_accept(p, TOKEN_IF)) {
        bool formula = p->lexer.formula; /* c ? a : b for a if c else b */
        part[1] = formula ? value : binary(p, LEVEL_OR);
        if (formula) part[0] = nested(p);
        parser_expect(p, formula ? TOKEN_OF(':') : TOKEN_ELSE,
                      formula ? "':' and the other value" : "else and the other value");
        part[2] = nested(p);
        value = parent(p, TREE_CHOICE, from, part, 3);
    }
    p->in_line = in_line;
    return value;
}

const tree *parse_expression(parser *p) {
    p->in_line = true;
    const tree *expression = binary(p, LEVEL_SUM);
    p->in_line = false;
    return expression;
}

/* ---- operands of both ---- */

/* Of the language within the brackets of this one. */
static const tree *inner(parser *p) { return p->in_line ? binary(p, LEVEL_SUM) : parse_value(p); }

static const tree *number(parser *p) {
    char digits[40];
    sm_span span = p->now.span;
    if (span.length >= sizeof digits)
        parser_fail(p, span, "a number of more than %zu digits", sizeof digits - 1);
    snprintf(digits, sizeof digits, "%.*s", (int)span.length, p->source->text + span.offset);
    tree *node = parser_leaf(p, TREE_NUMBER, span, NULL);
    node->number = strtod(digits, NULL);
    if (!isfinite(node->number)) parser_fail(p, span, "this number is too large");
    parser_advance(p);
    return node;
}

const tree *parse_size(parser *p) {
    sm_span span = p->now.span;
    if (p->now.kind == TOKEN_NUMBER) return number(p);
    const char *name = parser_name(p, span, TREE_MOST_DIM_NAME);
    parser_expect(p, TOKEN_DIM, "a dimension");
    return parser_leaf(p, TREE_SIZE, span, name);
}

static void check_function(parser *p, const tree *call, sm_span name) {
    const char *words[TREE_FUNCTION_COUNT];
    for (int i = 0; i < TREE_FUNCTION_COUNT; i++) words[i] = tree_functions[i].name;
    int i = tree_find_function(call->name);
    const tree_function_row *row = i < 0 ? NULL : &tree_functions[i];
    if (!row)
        parser_unknown(p, name, "no function of values is called", words, TREE_FUNCTION_COUNT);
    else if (call->n < row->least || call->n > row->most)
        parser_fail(p, name, "%s takes %d argument%s, not %d", row->name,
                    call->n < row->least ? row->least : row->most, row->most == 1 ? "" : "s",
                    call->n);
}

static const tree *call(parser *p) {
    const tree *argument[TREE_MOST_OF_FORMULA];
    const int most = p->lexer.formula ? TREE_MOST_OF_FORMULA : TREE_MOST_ARGUMENTS;
    int n = 0;
    sm_span span = {p->now.span.offset, p->now.span.length - 1};
    const char *name = parser_name(p, span, TREE_MOST_NAME);
    parser_advance(p);
    while (!p->status && p->now.kind != TOKEN_OF(')')) {
        if (n == most) parser_fail(p, p->now.span, "more arguments than %d, the most", most);
        if (p->status || (n > 0 && !parser_expect(p, TOKEN_OF(','), "',' or ')'"))) break;
        argument[n++] = open_depth(p) ? inner(p) : &p->spare;
        p->depth--;
    }
    parser_expect(p, TOKEN_OF(')'), "',' or ')'");
    tree *node = parent(p, TREE_CALL, span.offset, argument, n);
    node->name = name;
    if (!p->in_line && !p->status && !p->lexer.formula) check_function(p, node, span);
    return node;
}

static const tree *parentheses(parser *p) {
    parser_advance(p);
    const tree *node = open_depth(p) ? inner(p) : &p->spare;
    p->depth--;
    parser_expect(p, TOKEN_OF(')'), "an operator or ')'");
    return node;
}

/* ---- operands of values ---- */

/* What follows a field: [value] and .member. */
static const tree *part_of(parser *p, const tree *of) {
    for (;;) {
        const tree *both[2] = {of, &p->spare};
        size_t from = of->span.offset;
        if (p->now.kind == TOKEN_MEMBER) {
            sm_span span = {p->now.span.offset + 1, p->now.span.length - 1};
            const char *name = parser_name(p, span, TREE_MOST_NAME);
            parser_advance(p);
            tree *member = parent(p, TREE_MEMBER, from, both, 1);
            member->name = name;
            of = member;
        } else if (parser_accept(p, TOKEN_OF('['))) {
            both[1] = nested(p);
            parser_expect(p, TOKEN_OF(']'), "an operator or ']'");
            of = parent(p, TREE_ELEMENT, from, both, 2);
        } else return of;
        if (p->status) return &p->spare;
    }
}

/* At name[ of a value: the bracket becomes a token of its own. */
static const tree *element(parser *p) {
    sm_span span = {p->now.span.offset, p->now.span.length - 1};
    const tree *name = parser_leaf(p, TREE_NAME, span, parser_name(p, span, TREE_MOST_NAME));
    if (!p->status) p->now = (token){TOKEN_OF('['), {span.offset + span.length, 1}};
    return part_of(p, name);
}

/* ---- operands of lines ---- */

static bool stands_before(const tree_dim *dim, int rank, const char *name) {
    for (int i = 0; i < rank; i++)
        if (strcmp(dim[i].name, name) == 0) return true;
    return false;
}

static bool is_in_source(const parser *p, const char *name) {
    size_t length = strlen(name);
    for (size_t at = 0; at + length <= p->source->length; at++)
        if (memcmp(p->source->text + at, name, length) == 0) return true;
    return false;
}

/* The second I of a[I,I] is I2, or the next number that nobody wrote (notation.h). */
static const char *name_again(parser *p, const tree_dim *dim, int rank, const char *name) {
    for (char digit = '2'; digit <= '9' && !p->status; digit++) {
        const char *other = sm_arena_printf(p->arena, "%s%c", name, digit);
        if (!other) break;
        if (!is_in_source(p, other) && !stands_before(dim, rank, other)) return other;
    }
    return name;
}

static void check_dims(parser *p, tree_dim *dim, int rank, bool *diagonal) {
    tree_dim *last = &dim[rank - 1];
    if (p->bare && stands_before(dim, rank - 1, last->name)) {
        last->name = name_again(p, dim, rank - 1, last->name);
        *diagonal = true;
    }
    for (int i = 0; i + 1 < rank && !p->status; i++)
        if (strcmp(dim[i].name, last->name) == 0)
            parser_fail(p, last->span,
                        "dimension %s stands twice in one array; give it a second name of the same "
                        "size under sizes",
                        dim[i].name);
}

static sm_dtype parse_type(parser *p) {
    sm_dtype type = SM_BF16;
    sm_span span = p->now.span;
    if (p->now.kind == TOKEN_NAME &&
        !sm_dtype_parse(p->source->text + span.offset, span.length, &type))
        parser_unknown(p, span, "no data type is called", sm_dtype_names, SM_DTYPE_COUNT);
    parser_expect(p, TOKEN_NAME, "a data type");
    return type;
}

const tree *parse_array(parser *p) {
    tree_dim dim[TREE_MOST_RANK];
    int rank = 0;
    sm_span name = {p->now.span.offset, p->now.span.length - 1};
    tree *node = parser_leaf(p, TREE_ARRAY, name, parser_name(p, name, TREE_MOST_NAME));
    parser_advance(p);
    do {
        if (rank == TREE_MOST_RANK)
            parser_fail(p, p->now.span, "more dimensions than %d, the most", TREE_MOST_RANK);
        if (p->now.kind != TOKEN_DIM)
            parser_expected(p, "a dimension, which begins with a capital");
        if (p->status) return &p->spare;
        tree_dim *d = &dim[rank++];
        *d = (tree_dim){.name = parser_name(p, p->now.span, TREE_MOST_DIM_NAME),
                        .span = p->now.span};
        parser_advance(p);
        if (p->now.kind == TOKEN_AXES) {
            d->axes = parser_name(p, (sm_span){p->now.span.offset + 1, p->now.span.length - 1},
                                  TREE_MOST_NAME);
            parser_advance(p);
        }
        check_dims(p, dim, rank, &node->diagonal);
    } while (parser_accept(p, TOKEN_OF(',')));
    parser_expect(p, TOKEN_OF(']'), "',' or ']' after a dimension");
    node->typed = parser_accept(p, TOKEN_OF(':'));
    if (node->typed) node->type = parse_type(p);
    tree_dim *dims = parser_alloc(p, (size_t)rank * sizeof *dims);
    if (!dims) return &p->spare;
    memcpy(dims, dim, (size_t)rank * sizeof *dims);
    node->rank = rank;
    node->dim = dims;
    node->span.length = p->end - name.offset;
    return node;
}

static const tree *product(parser *p) {
    const tree *factor[TREE_MOST_FACTORS];
    size_t from = p->now.span.offset;
    int n = 0;
    do {
        if (n == TREE_MOST_FACTORS)
            parser_fail(p, p->now.span, "more arrays side by side than %d, the most",
                        TREE_MOST_FACTORS);
        if (p->status) return &p->spare;
        factor[n++] = parse_array(p);
    } while (p->now.kind == TOKEN_ARRAY);
    return n == 1 && !factor[0]->diagonal ? factor[0] : parent(p, TREE_PRODUCT, from, factor, n);
}

const tree *const *parse_items(parser *p, int *n) {
    const tree *list[TREE_MOST_ARGUMENTS];
    *n = 0;
    do {
        if (*n == TREE_MOST_ARGUMENTS)
            parser_fail(p, p->now.span, "more arrays than %d, the most", TREE_MOST_ARGUMENTS);
        if (p->status) break;
        list[(*n)++] = p->now.kind == TOKEN_ARRAY
                           ? parse_array(p)
                           : parser_name_leaf(p, false, "the name of an array, in small letters");
    } while (parser_accept(p, TOKEN_OF(',')));
    return parser_list(p, list, *n);
}

static const tree *operand(parser *p) {
    switch (p->now.kind) {
    case TOKEN_CALL: return call(p);
    case TOKEN_ARRAY: return p->in_line ? product(p) : element(p);
    case TOKEN_NAME: return parser_name_leaf(p, false, "a name");
    case TOKEN_NUMBER:
    case TOKEN_DIM: return parse_size(p);
    case TOKEN_WORD:
        if (!p->in_line) return parser_name_leaf(p, true, "a word");
        break;
    default:
        if (p->now.kind == TOKEN_OF('-')) return negated(p, TREE_NEGATE, atom);
        if (p->now.kind == TOKEN_NOT && p->lexer.formula) return negated(p, TREE_NOT, atom);
        if (p->now.kind == TOKEN_OF('(')) return parentheses(p);
        break;
    }
    parser_expected(p, p->in_line         ? "an array, a call or a number"
                       : p->lexer.formula ? "a number, a name or a 'text'"
                                          : "a value");
    return &p->spare;
}

static const tree *atom(parser *p) {
    size_t from = p->now.span.offset;
    const tree *value = operand(p);
    while (parser_accept(p, TOKEN_OTHERWISE)) {
        const tree *both[] = {value, operand(p)};
        value = parent(p, TREE_OTHERWISE, from, both, 2);
    }
    return value;
}
