/* library_format: texts and families back to text, in one form and in the order of reading, such
 * that reading it gives the same: what the reader is held against. */
#pragma once
#include "lexer.h"
#include "sink.h"
#include "tree.h"

enum { MOST_COLUMNS = 100, WIDEST_TARGET = 20, INDENT = 7 };

typedef struct printer {
    sm_sink sink;
    size_t line; /* where the line begins */
} printer;

static void new_line(printer *p, const char *indent) {
    sm_sink_put(&p->sink, "\n%s", indent);
    p->line = p->sink.wanted - strlen(indent);
}

/* ---- expressions ---- */

/* Where an operator stands among the others, as in the parser: what is lower needs parentheses. */
typedef enum level { CHOICE, OR, AND, NOT, TEST, SUM, PRODUCT, ATOM } level;

static const struct {
    level level;
    const char *word;
} operators[TREE_CHOICE + 1] = {
    [TREE_NOT] = {NOT, "not "},       [TREE_ADD] = {SUM, " + "},
    [TREE_SUBTRACT] = {SUM, " - "},   [TREE_MULTIPLY] = {PRODUCT, " * "},
    [TREE_DIVIDE] = {PRODUCT, " / "}, [TREE_REMAINDER] = {PRODUCT, " % "},
    [TREE_EQUAL] = {TEST, " == "},    [TREE_UNEQUAL] = {TEST, " != "},
    [TREE_LESS] = {TEST, " < "},      [TREE_MORE] = {TEST, " > "},
    [TREE_AT_MOST] = {TEST, " <= "},  [TREE_AT_LEAST] = {TEST, " >= "},
    [TREE_IN] = {TEST, " in "},       [TREE_AND] = {AND, " and "},
    [TREE_OR] = {OR, " or "}};

static void put_array(sm_sink *sink, const tree *array) {
    sm_sink_put(sink, "%s[", array->name);
    for (int i = 0; i < array->rank; i++) {
        const tree_dim *dim = &array->dim[i];
        sm_sink_put(sink, "%s%s", i ? "," : "", dim->name);
        if (dim->axes) sm_sink_put(sink, "_%s", dim->axes);
    }
    sm_sink_put(sink, "]");
    if (array->typed) sm_sink_put(sink, ":%s", sm_dtype_name(array->type));
}

static void put_list(sm_sink *sink, const tree *const *item, int n, const char *between);

static void put_at(sm_sink *sink, const tree *e, level least);

/* Those that no parentheses are put around. */
static void put_atom(sm_sink *sink, const tree *e) {
    char number[40];
    switch (e->kind) {
    case TREE_NUMBER:
        sm_format_exact(number, sizeof number, e->number);
        sm_sink_put(sink, "%s", number);
        break;
    case TREE_WORD: sm_sink_put(sink, "\"%s\"", e->name); break;
    case TREE_ARRAY: put_array(sink, e); break;
    case TREE_PRODUCT: put_list(sink, e->child, e->n, " "); break;
    case TREE_NEGATE:
        sm_sink_put(sink, "-");
        put_at(sink, e->child[0], ATOM);
        break;
    case TREE_CALL:
        sm_sink_put(sink, "%s(", e->name);
        put_list(sink, e->child, e->n, ", ");
        sm_sink_put(sink, ")");
        break;
    case TREE_ELEMENT:
        put_at(sink, e->child[0], ATOM);
        sm_sink_put(sink, "[");
        put_at(sink, e->child[1], CHOICE);
        sm_sink_put(sink, "]");
        break;
    case TREE_MEMBER:
        put_at(sink, e->child[0], ATOM);
        sm_sink_put(sink, ".%s", e->name);
        break;
    default: sm_sink_put(sink, "%s", e->name); break;
    }
}

static void put_operator(sm_sink *sink, const tree *e) {
    level own = operators[e->kind].level;
    if (e->kind == TREE_CHOICE) {
        put_at(sink, e->child[0], OR);
        sm_sink_put(sink, " if ");
        put_at(sink, e->child[1], OR);
        sm_sink_put(sink, " else ");
        put_at(sink, e->child[2], CHOICE);
    } else if (e->kind == TREE_NOT) {
        sm_sink_put(sink, "not ");
        put_at(sink, e->child[0], NOT);
    } else {
        put_at(sink, e->child[0], own == TEST ? own + 1 : own);
        sm_sink_put(sink, "%s", operators[e->kind].word);
        put_at(sink, e->child[1], own + 1);
    }
}

static void put_at(sm_sink *sink, const tree *e, level least) {
    bool atom = e->kind != TREE_CHOICE && !operators[e->kind].word;
    bool closed = !atom && operators[e->kind].level < least;
    if (closed) sm_sink_put(sink, "(");
    if (atom) put_atom(sink, e);
    else put_operator(sink, e);
    if (closed) sm_sink_put(sink, ")");
}

static void put_value(sm_sink *sink, const tree *e) { put_at(sink, e, CHOICE); }

static void put_list(sm_sink *sink, const tree *const *item, int n, const char *between) {
    for (int i = 0; i < n; i++) {
        sm_sink_put(sink, "%s", i ? between : "");
        put_value(sink, item[i]);
    }
}

/* ---- texts ---- */

static size_t targets_width(const tree_line *line) {
    sm_sink nowhere = sm_sink_into(NULL, 0);
    put_list(&nowhere, line->target, line->targets, ", ");
    return nowhere.wanted;
}

/* The widest target up to a limit: where the equals signs of a text stand. */
static size_t equals_column(const tree_text *text) {
    size_t column = 0;
    for (const tree_line *line = text->line; line; line = line->next) {
        size_t width = targets_width(line);
        if (width > column && width <= WIDEST_TARGET) column = width;
    }
    return column;
}

static const char *attribute_name(tree_attribute_kind kind) {
    static const char *const names[] = {
#define X(id, name, ...) name,
        TREE_ATTRIBUTES(X)
#undef X
    };
    return names[kind];
}

static void put_line(sm_sink *sink, const tree_line *line, size_t column) {
    size_t width = targets_width(line);
    put_list(sink, line->target, line->targets, ", ");
    sm_sink_put(sink, "%*s = ", width < column ? (int)(column - width) : 0, "");
    put_value(sink, line->value);
    for (const tree_attribute *a = line->attribute; a; a = a->next) {
        sm_sink_put(sink, " %s", attribute_name(a->kind));
        if (!a->value) continue;
        sm_sink_put(sink, " ");
        put_value(sink, a->value);
    }
    if (!line->condition) return;
    sm_sink_put(sink, " if ");
    put_value(sink, line->condition);
}

static void put_set(sm_sink *sink, const tree_set *set) {
    sm_sink_put(sink, "%s%s = ", set->name, set->by_layer ? "[i]" : "");
    put_value(sink, set->value);
}

static void put_text(printer *p, const tree_text *text) {
    sm_sink *sink = &p->sink;
    sm_sink_put(sink, "%s %s(", text->kernel ? "kernel" : "text", text->name);
    put_list(sink, text->parameter, text->parameters, ", ");
    for (const tree_set *option = text->option; option; option = option->next) {
        sm_sink_put(sink, option == text->option ? "; " : ", ");
        put_set(sink, option);
    }
    sm_sink_put(sink, ")%s", text->results ? " -> " : "");
    put_list(sink, text->result, text->results, ", ");
    size_t column = equals_column(text);
    for (const tree_line *line = text->line; line; line = line->next) {
        new_line(p, "  ");
        put_line(sink, line, column);
    }
    sm_sink_put(sink, "\n\n");
}

/* ---- families ---- */

/* A word of the file, in a line that has room for it. before: what stands between two of a line. */
static void make_room(printer *p, size_t wanted, const char *between, bool first) {
    size_t column = p->sink.wanted - p->line;
    if (first) return;
    if (column + strlen(between) + wanted > MOST_COLUMNS) new_line(p, "       ");
    else sm_sink_put(&p->sink, "%s", between);
}

static void put_sets(printer *p, const tree_set *list) {
    for (const tree_set *set = list; set; set = set->next) {
        sm_sink nowhere = sm_sink_into(NULL, 0);
        put_set(&nowhere, set);
        make_room(p, nowhere.wanted, "; ", set == list);
        put_set(&p->sink, set);
    }
}

static void begin(printer *p, const char *section) {
    new_line(p, "");
    sm_sink_put(&p->sink, "%-*s%s", INDENT, section, strlen(section) < INDENT ? "" : " ");
}

static void put_section(printer *p, const char *section, const tree_set *list) {
    if (!list) return;
    begin(p, section);
    put_sets(p, list);
}

/* In quotes where it would not be read as a name. */
static void put_word(printer *p, const char *name, bool first) {
    const sm_source source = sm_source_of("", name);
    lexer l = {.source = &source, .end = source.length};
    token t = {0};
    bool plain = lexer_next(&l, &t, NULL) == SM_OK && t.kind == TOKEN_NAME &&
                 t.span.length == source.length && source.length <= TREE_MOST_NAME;
    make_room(p, source.length + 2, " ", first);
    sm_sink_put(&p->sink, plain ? "%s" : "\"%s\"", name);
}

static void put_words(printer *p, const char *section, const tree_word *list) {
    if (list) begin(p, section);
    for (const tree_word *word = list; word; word = word->next)
        put_word(p, word->name, word == list);
}

static bool sets_dims_alone(const tree_set *set) {
    while (set && set->name[0] >= 'A' && set->name[0] <= 'Z') set = set->next;
    return !set;
}

static void put_piece(printer *p, const tree_piece *piece) {
    static const char *const words[] = {"stack", "all", "piece", "layers"};
    begin(p, words[piece->kind]);
    if (piece->name) put_word(p, piece->name, true);
    if (piece->kind == TREE_STACK && sets_dims_alone(piece->set)) {
        put_section(p, "dims", piece->set);
        return;
    }
    if (piece->count) {
        sm_sink_put(&p->sink, " ");
        put_value(&p->sink, piece->count);
    }
    if (piece->text) {
        const char *before = piece->kind != TREE_ALL ? " = " : piece->name ? " in " : "in ";
        sm_sink_put(&p->sink, "%s", before);
        put_value(&p->sink, piece->text);
    }
    if (!piece->set) return;
    sm_sink_put(&p->sink, ":");
    new_line(p, "       ");
    put_sets(p, piece->set);
}

static void put_family(printer *p, const tree_family *family) {
    sm_sink_put(&p->sink, "%-*s", INDENT, "family");
    put_list(&p->sink, family->name, family->names, " ");
    if (family->like) {
        begin(p, "like");
        put_list(&p->sink, &family->like, 1, "");
    }
    put_section(p, "fields", family->field);
    put_section(p, "dims", family->dim);
    if (family->new_model) sm_sink_put(&p->sink, "\nmodel");
    for (const tree_piece *piece = family->piece; piece; piece = piece->next) put_piece(p, piece);
    put_words(p, "inert", family->inert);
    sm_sink_put(&p->sink, "\n\n");
}

/* ---- the library ---- */

static void put_roles(printer *p, const tree_role *list) {
    for (const tree_role *role = list, *before = NULL; role; before = role, role = role->next) {
        if (!before || before->role != role->role)
            sm_sink_put(&p->sink, "%s%s", before ? "\n      " : "roles ",
                        sm_dimension_role_name(role->role));
        sm_sink_put(&p->sink, " %s", role->dim);
    }
    if (list) sm_sink_put(&p->sink, "\n");
}

static void put_library(printer *p, const sm_library *library) {
    put_roles(p, library->role);
    p->line = p->sink.wanted;
    if (library->size.first) sm_sink_put(&p->sink, "sizes  ");
    put_sets(p, library->size.first);
    sm_sink_put(&p->sink, library->size.first ? "\n\n" : library->role ? "\n" : "");
    put_words(p, "inert", library->inert);
    put_words(p, "matters", library->matters);
    if (library->inert || library->matters) sm_sink_put(&p->sink, "\n\n");
    for (const tree_text *text = library->text; text; text = text->next) put_text(p, text);
    for (const tree_family *family = library->family; family; family = family->next) {
        p->line = p->sink.wanted;
        put_family(p, family);
    }
}

/* The library itself, without what is below it; 0-terminated, in the arena. NULL when out of
 * memory. */
static inline char *library_format(const sm_library *library, sm_arena *arena) {
    printer counting = {.sink = sm_sink_into(NULL, 0)};
    put_library(&counting, library);
    char *out = sm_arena_alloc(arena, counting.sink.wanted + 1);
    if (!out) return NULL;
    printer p = {.sink = sm_sink_into(out, counting.sink.wanted + 1)};
    put_library(&p, library);
    if (p.sink.wanted > 0) out[p.sink.wanted - 1] = 0; /* of the empty line at the end */
    return out;
}
