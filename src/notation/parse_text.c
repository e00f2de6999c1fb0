/* A text: what it takes, its options, what it makes, its lines. */
#include "parser.h"

/* ---- lines ---- */

enum { NOTHING, DIM, MAYBE, ARRAY };
static const struct {
    const char *name;
    int value;
} attributes[] = {
#define X(id, name, value, is) {name, value},
    TREE_ATTRIBUTES(X)
#undef X
};

static int find_attribute(parser *p) {
    const char *words[TREE_ATTRIBUTE_COUNT];
    sm_span span = p->now.span;
    for (int i = 0; i < TREE_ATTRIBUTE_COUNT; i++) words[i] = attributes[i].name;
    int i = sm_words_find((sm_words){words, TREE_ATTRIBUTE_COUNT}, p->source, span);
    if (i < 0)
        parser_unknown(p, span, "after an expression comes an operator, an attribute or if, not",
                       words, TREE_ATTRIBUTE_COUNT);
    return i;
}

static const tree *attribute_value(parser *p, int wanted, const char *name) {
    bool size = p->now.kind == TOKEN_DIM || p->now.kind == TOKEN_NUMBER;
    if (wanted == NOTHING || (wanted == MAYBE && !size)) return NULL;
    if (wanted == ARRAY && p->now.kind == TOKEN_ARRAY) return parse_array(p);
    if (wanted != ARRAY && size) return parse_size(p);
    char room[LEXER_WORD_ROOM];
    parser_fail(p, p->now.span, "expected %s after %s, found %s",
                wanted == ARRAY ? "an array with its dimensions" : "a dimension or a number", name,
                lexer_describe(&p->lexer, p->now, room));
    return NULL;
}

static void parse_attributes(parser *p, tree_line *line) {
    const tree_attribute **end = &line->attribute;
    while (p->now.kind == TOKEN_NAME) {
        sm_span span = p->now.span;
        int i = find_attribute(p);
        if (i < 0) return;
        parser_advance(p);
        if (tree_find_attribute(line->attribute, (tree_attribute_kind)i))
            parser_fail(p, span, "%s stands twice in this line", attributes[i].name);
        const tree *value = attribute_value(p, attributes[i].value, attributes[i].name);
        tree_attribute *entry = parser_alloc(p, sizeof *entry);
        if (!entry) return;
        *entry = (tree_attribute){(tree_attribute_kind)i, value, span, NULL};
        *end = entry;
        end = &entry->next;
    }
}

/* Names that a text gives stand for themselves: a dot reaches into another piece. */
static void check_plain(parser *p, const tree *const *item, int n) {
    for (int i = 0; i < n && !p->status; i++)
        if (strchr(item[i]->name, '.'))
            parser_fail(p, item[i]->span,
                        "a dot reaches into another piece, whose arrays cannot "
                        "be made here");
}

static tree_line *parse_line(parser *p) {
    tree_line line = {.span = p->now.span};
    line.target = parse_items(p, &line.targets);
    check_plain(p, line.target, line.targets);
    parser_expect(p, TOKEN_OF('='), "',' or '='");
    line.value = parse_expression(p);
    parse_attributes(p, &line);
    if (parser_accept(p, TOKEN_IF)) line.condition = parse_value(p);
    line.span.length = p->end - line.span.offset;
    if (p->now.kind != TOKEN_BREAK && !parser_at_section(p))
        parser_expected(p, line.condition ? "the end of the line"
                           : p->now.kind == TOKEN_OF('[')
                               ? "an operator or the end of the line (arrays have small letters)"
                               : "an operator, an attribute, if or the end of the line");
    parser_skip_breaks(p);
    tree_line *entry = parser_alloc(p, sizeof *entry);
    if (entry) *entry = line;
    return entry;
}

static void parse_lines(parser *p, tree_text *text) {
    const tree_line **end = &text->line;
    int n = 0;
    parser_skip_breaks(p);
    if (parser_at_section(p)) parser_expected(p, "a line of the text");
    while (!parser_at_section(p)) {
        if (n++ == TREE_MOST_LINES)
            parser_fail(p, p->now.span, "more lines in one text than %d, the most",
                        TREE_MOST_LINES);
        tree_line *line = parse_line(p);
        if (!line) return;
        *end = line;
        end = &line->next;
    }
}

/* ---- the head ---- */

static void parse_options(parser *p, tree_text *text) {
    tree_sets list = {0};
    do {
        if (!parse_set(p, &list, SET_NAMES | SET_DIMS, "an option"))
            parser_expected(p, "an option and its default");
        else if (strchr(list.last->name, '.'))
            parser_fail(p, list.last->span, "the name of an option has no dot");
    } while (parser_accept(p, TOKEN_OF(',')));
    text->option = list.first;
}

static void parse_results(parser *p, tree_text *text) {
    const tree *result[TREE_MOST_ARGUMENTS];
    do {
        if (p->now.kind == TOKEN_ARRAY)
            parser_fail(p, p->now.span, "a result has no dimensions here: its line has them");
        if (text->results == TREE_MOST_ARGUMENTS)
            parser_fail(p, p->now.span, "more results than %d, the most", TREE_MOST_ARGUMENTS);
        if (p->status) return;
        result[text->results++] = parser_name_leaf(p, false, "the name of a result");
    } while (parser_accept(p, TOKEN_OF(',')));
    text->result = parser_list(p, result, text->results);
}

static const tree_text *add_text(parser *p, const tree_text *text) {
    tree_text *entry = parser_alloc(p, sizeof *entry);
    if (!entry) return NULL;
    *entry = *text;
    *p->library->text_end = entry;
    p->library->text_end = &entry->next;
    parser_name_it(p, &p->library->text_named, entry->name, entry);
    return entry;
}

const tree_text *parse_text(parser *p, bool kernel) {
    tree_text text = {.kernel = kernel, .source = p->source, .span = p->now.span};
    if (p->now.kind != TOKEN_CALL) parser_expected(p, "the name of the text and '('");
    text.span.length--;
    text.name = parser_name(p, text.span, TREE_MOST_NAME);
    if (!p->status && (strchr(text.name, '.') || operator_find(text.name) >= 0))
        parser_fail(p, text.span, "a text cannot be called %s: %s", text.name,
                    strchr(text.name, '.') ? "its name has no dot" : "that is an op");
    parser_count(p, &p->library->texts, "texts", text.span);
    const tree_text *other = parser_named(p, &p->library->text_named, text.name);
    if (other)
        parser_fail(p, text.span, "text %s stands in %s already", text.name, other->source->name);
    parser_advance(p);
    if (p->now.kind == TOKEN_NAME || p->now.kind == TOKEN_ARRAY)
        text.parameter = parse_items(p, &text.parameters);
    check_plain(p, text.parameter, text.parameters);
    if (parser_accept(p, TOKEN_BREAK)) parse_options(p, &text);
    parser_expect(p, TOKEN_OF(')'), text.option ? "',' or ')'" : "',', ';' or ')'");
    if (parser_accept(p, TOKEN_ARROW)) parse_results(p, &text);
    if (!parser_accept(p, TOKEN_OF(':')) && p->now.kind != TOKEN_BREAK)
        parser_expected(p, text.results > 0 ? "',', ':' or the end of the line"
                                            : "'->', ':' or the end of the line");
    parse_lines(p, &text);
    return add_text(p, &text);
}

void parse_bare_lines(parser *p, const char *name) {
    tree_text text = {.name = name, .source = p->source, .span = {0, 1}};
    parser_count(p, &p->library->texts, "texts", text.span);
    parse_lines(p, &text);
    if (!p->status && p->now.kind != TOKEN_END)
        parser_fail(p, p->now.span, "lines alone have no heads and no families");
    add_text(p, &text);
}
