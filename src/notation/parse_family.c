/* A family: what a model of its kind is made of. */
#include "parser.h"

#include <assert.h>

/* Where the next entry of each list of the family goes. */
typedef struct family_ends {
    tree_sets field, dim, stack;
    const tree_piece **piece;
    const tree_word **inert;
    int pieces, words;
    bool in_stack; /* dims are those of the stack that came last */
} family_ends;

static void parse_names(parser *p, tree_family *family) {
    const tree *name[TREE_MOST_ARGUMENTS] = {NULL};
    assert(family->names == 0);
    do {
        if (family->names == TREE_MOST_ARGUMENTS)
            parser_fail(p, p->now.span, "more names of one family than %d, the most",
                        TREE_MOST_ARGUMENTS);
        const tree *leaf = parser_name_leaf(p, true, "the name of the family");
        if (p->status) return;
        for (int i = 0; i < family->names; i++)
            if (strcmp(name[i]->name, leaf->name) == 0)
                parser_fail(p, leaf->span, "family %s has this name already", leaf->name);
        const tree_family *other = parser_named(p, &p->library->family_named, leaf->name);
        if (other)
            parser_fail(p, leaf->span, "family %s stands in %s already", leaf->name,
                        other->source->name);
        name[family->names++] = leaf;
    } while (p->now.kind == TOKEN_NAME || p->now.kind == TOKEN_WORD);
    family->name = parser_list(p, name, family->names);
}

void parse_words(parser *p, const tree_word ***end, int *n) {
    parser_skip_breaks(p);
    while (!parser_at_section(p)) {
        const tree *name = parser_name_leaf(p, true, "a field");
        parser_count(p, n, "words of one list", name->span);
        tree_word *entry = parser_alloc(p, sizeof *entry);
        if (!entry) return;
        *entry = (tree_word){name->name, name->span, NULL};
        **end = entry;
        *end = &entry->next;
        parser_skip_breaks(p);
    }
}

/* all FAMILY, all FAMILY in OBJECT, all in OBJECT */
static void parse_piece(parser *p, family_ends *ends, tree_piece_kind kind) {
    tree_piece piece = {.kind = kind, .span = p->now.span, .source = p->source};
    bool made = kind == TREE_PIECE || kind == TREE_LAYERS;
    if (kind != TREE_ALL) piece.name = parser_name_leaf(p, false, "a name")->name;
    else if (p->now.kind != TOKEN_IN)
        piece.name = parser_name_leaf(p, true, "a family, or in")->name;
    if (kind == TREE_ALL && parser_accept(p, TOKEN_IN))
        piece.text = parser_name_leaf(p, false, "a field");
    parser_count(p, &ends->pieces, "pieces", piece.span);
    tree_piece *entry = parser_alloc(p, sizeof *entry);
    if (!entry) return;
    if (kind == TREE_LAYERS && p->now.kind != TOKEN_OF('=') && p->now.kind != TOKEN_OF(':') &&
        p->now.kind != TOKEN_BREAK && !parser_at_section(p))
        piece.count = parse_value(p);
    if (made && parser_accept(p, TOKEN_OF('='))) piece.text = parse_value(p);
    *entry = piece;
    *ends->piece = entry;
    ends->piece = &entry->next;
    tree_sets list = {.end = &entry->set};
    if (parser_accept(p, TOKEN_OF(':')))
        parse_sets(p, &list, SET_NAMES | SET_DIMS, "an option or a dimension");
    else if (p->now.kind != TOKEN_BREAK && !parser_at_section(p))
        parser_expected(p,
                        made ? "'=', ':' or the end of the piece" : "':' or the end of the line");
    if (kind != TREE_STACK) return;
    ends->stack = list;
    ends->in_stack = true;
}

static void parse_section(parser *p, tree_family *family, family_ends *ends) {
    static const char *const words[] = {"like",  "fields", "dims", "model", "stack",
                                        "piece", "layers", "all",  "inert"};
    token section = p->now;
    if (section.kind == TOKEN_NAME)
        parser_unknown(p, section.span, "a family has no", words, sizeof words / sizeof words[0]);
    if (!parser_at_section(p)) parser_expected(p, "a section of the family");
    parser_advance(p);
    switch (section.kind) {
    case TOKEN_LIKE:
        if (family->like) parser_fail(p, section.span, "a family is like one other");
        family->like = parser_name_leaf(p, true, "the name of a family");
        break;
    case TOKEN_FIELDS:
        parse_sets(p, &ends->field, SET_NAMES | SET_BY_LAYER, "a field and its default");
        break;
    case TOKEN_DIMS:
        parse_sets(p, ends->in_stack ? &ends->stack : &ends->dim, SET_DIMS,
                   "a dimension and its size");
        break;
    case TOKEN_MODEL:
        if (family->piece) parser_fail(p, section.span, "model stands before the first piece");
        family->new_model = true;
        break;
    case TOKEN_STACK: parse_piece(p, ends, TREE_STACK); break;
    case TOKEN_ALL: parse_piece(p, ends, TREE_ALL); break;
    case TOKEN_PIECE: parse_piece(p, ends, TREE_PIECE); break;
    case TOKEN_LAYERS: parse_piece(p, ends, TREE_LAYERS); break;
    case TOKEN_INERT: parse_words(p, &ends->inert, &ends->words); break;
    default: break;
    }
}

const tree_family *parse_family(parser *p) {
    tree_family *family = parser_alloc(p, sizeof *family);
    if (!family) return NULL;
    family_ends ends = {.field.end = &family->field,
                        .dim.end = &family->dim,
                        .piece = &family->piece,
                        .inert = &family->inert};
    parser_count(p, &p->library->families, "families", p->now.span);
    family->source = p->source;
    parse_names(p, family);
    for (parser_skip_breaks(p); !parser_at_statement(p); parser_skip_breaks(p))
        parse_section(p, family, &ends);
    *p->library->family_end = family;
    p->library->family_end = &family->next;
    for (int i = 0; i < family->names && !p->status; i++)
        parser_name_it(p, &p->library->family_named, family->name[i]->name, family);
    return family;
}
