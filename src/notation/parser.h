/* parser: what the parts of the reader share. Every function goes on after an error as at the end
 * of the file: only the first error is kept, and pointers returned are never NULL. Private to
 * src/notation. */
#pragma once
#include "lexer.h"
#include "tree.h"

typedef struct parser {
    lexer lexer;
    token now;
    size_t end; /* of the token before */
    const sm_source *source;
    sm_library *library;
    sm_arena *arena;
    sm_error *err;
    sm_status status;
    int depth;    /* expressions open */
    bool in_line; /* arrays and products; else fields and words */
    bool bare;    /* lines of no text: a[I,I] is a diagonal */
    tree spare;   /* stands for what memory was lacking for */
} parser;

/* ---- tokens ---- */
void parser_advance(parser *p);
bool parser_accept(parser *p, token_kind kind);
/* Take the token, or fail: "expected WHAT, found ...". */
bool parser_expect(parser *p, token_kind kind, const char *what);
void parser_expected(parser *p, const char *what);
void parser_fail(parser *p, sm_span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* SM_BAD_INPUT: what ("no role is called") "word", and the nearest of n words. */
void parser_unknown(parser *p, sm_span span, const char *what, const char *const *words, size_t n);
/* Does the token begin a statement of the file, or end the file? */
bool parser_at_statement(const parser *p);
/* The same within a family. */
bool parser_at_section(const parser *p);
/* Past the ends of empty statements. */
void parser_skip_breaks(parser *p);

/* ---- what is built ---- */
void *parser_alloc(parser *p, size_t bytes);
/* The text of the span, which is too long above `most` letters. */
const char *parser_name(parser *p, sm_span span, int most);
/* A node from `from` to the token before; without children. */
tree *parser_leaf(parser *p, tree_kind kind, sm_span span, const char *name);
const tree *const *parser_list(parser *p, const tree *const *items, int n);
/* What a name names already; NULL: nothing, or something is wrong. */
const void *parser_named(const parser *p, const tree_names *names, const char *name);
/* Remember what a name names. */
void parser_name_it(parser *p, tree_names *names, const char *name, const void *thing);
/* Take a NAME (or a WORD, where it may stand) as a leaf. */
const tree *parser_name_leaf(parser *p, bool may_be_word, const char *what);
/* An entry more of a list of at most TREE_MOST_ENTRIES `what`. */
void parser_count(parser *p, int *n, const char *what, sm_span span);

/* ---- expressions ---- */
const tree *parse_value(parser *p);
const tree *parse_expression(parser *p); /* of a line */
const tree *parse_array(parser *p);      /* at TOKEN_ARRAY */
/* (NAME | array) {"," (NAME | array)}, at most TREE_MOST_ARGUMENTS. */
const tree *const *parse_items(parser *p, int *n);
const tree *parse_size(parser *p); /* DIM | NUMBER */

/* ---- statements; each begins after its keyword ---- */
enum { SET_NAMES = 1, SET_DIMS = 2, SET_BY_LAYER = 4 };
/* NAME = value, D = value, name[i] = value: one of the kinds given, appended to the list, which has
 * none of its name. False where none begins. `what`: "a field". */
bool parse_set(parser *p, tree_sets *list, int kinds, const char *what);
/* Several, separated by breaks, up to a keyword. */
void parse_sets(parser *p, tree_sets *list, int kinds, const char *what);
/* Names and words in quotes up to a keyword, onto a list of at most so many; they may go on in the
 * next line. */
void parse_words(parser *p, const tree_word ***end, int *n);
const tree_text *parse_text(parser *p, bool kernel);
/* Lines without a head, up to the end, as the text of this name. */
void parse_bare_lines(parser *p, const char *name);
const tree_family *parse_family(parser *p);

/* The statement of this keyword whose rest stands at this byte of the source, which outlives the
 * library: its last statement then. */
sm_status parser_read_statement(sm_library *library, const sm_source *source, size_t at,
                                token_kind keyword, sm_error *err);
