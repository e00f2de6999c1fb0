/* A file of texts and families: tokens, lists, the statements of the file. */
#include "parser.h"

/* ---- tokens ---- */

static void stop(parser *p, sm_status status) {
    if (!p->status) p->status = status;
    p->now.kind = TOKEN_END;
}

void parser_fail(parser *p, sm_span span, const char *format, ...) {
    va_list args;
    if (p->status) return;
    va_start(args, format);
    stop(p, sm_vfail_at(p->err, p->source, span, format, args));
    va_end(args);
}

void parser_expected(parser *p, const char *what) {
    char room[LEXER_WORD_ROOM];
    parser_fail(p, p->now.span, "expected %s, found %s", what,
                lexer_describe(&p->lexer, p->now, room));
}

void parser_unknown(parser *p, sm_span span, const char *what, const char *const *words, size_t n) {
    if (p->status) return;
    stop(p, sm_words_fail((sm_words){words, (int)n}, p->source, span, what, p->err));
}

void parser_advance(parser *p) {
    if (p->status) return;
    p->end = p->now.span.offset + p->now.span.length;
    sm_status status = lexer_next(&p->lexer, &p->now, p->err);
    if (status) stop(p, status);
}

bool parser_accept(parser *p, token_kind kind) {
    if (p->now.kind != kind || p->status) return false;
    parser_advance(p);
    return true;
}

bool parser_expect(parser *p, token_kind kind, const char *what) {
    if (p->now.kind != kind) parser_expected(p, what);
    return parser_accept(p, kind);
}

bool parser_at_statement(const parser *p) {
    return p->now.kind == TOKEN_END || (p->now.kind >= TOKEN_ROLES && p->now.kind <= TOKEN_FAMILY);
}

bool parser_at_section(const parser *p) {
    return p->now.kind == TOKEN_END || (p->now.kind >= TOKEN_ROLES && p->now.kind <= TOKEN_INERT);
}

void parser_skip_breaks(parser *p) {
    while (parser_accept(p, TOKEN_BREAK)) continue;
}

/* The end of a statement: a break, or what begins the next one. */
static void parser_expect_break(parser *p, const char *what) {
    if (p->now.kind != TOKEN_BREAK && !parser_at_section(p)) parser_expected(p, what);
    parser_skip_breaks(p);
}

/* ---- what is built ---- */

void *parser_alloc(parser *p, size_t bytes) {
    void *block = p->status ? NULL : sm_arena_alloc(p->arena, bytes);
    if (!block && !p->status) stop(p, sm_fail_memory(p->err));
    return block;
}

const char *parser_name(parser *p, sm_span span, int most) {
    if (span.length > (size_t)most)
        parser_fail(p, span, "a name of %zu letters; here the most is %d", span.length, most);
    char *copy =
        p->status ? NULL : sm_arena_copy(p->arena, p->source->text + span.offset, span.length);
    if (!copy && !p->status) stop(p, sm_fail_memory(p->err));
    return copy ? copy : "";
}

tree *parser_leaf(parser *p, tree_kind kind, sm_span span, const char *name) {
    tree *node = parser_alloc(p, sizeof *node);
    if (!node) return &p->spare;
    *node = (tree){.kind = kind, .span = span, .name = name, .height = 1};
    return node;
}

const tree *const *parser_list(parser *p, const tree *const *items, int n) {
    const tree **list = n > 0 ? parser_alloc(p, (size_t)n * sizeof *list) : NULL;
    if (list) memcpy(list, items, (size_t)n * sizeof *list);
    return list;
}

const void *parser_named(const parser *p, const tree_names *names, const char *name) {
    return p->status ? NULL : tree_named(names, name);
}

void parser_name_it(parser *p, tree_names *names, const char *name, const void *thing) {
    tree_entry *entry = parser_alloc(p, sizeof *entry);
    if (entry) tree_add_name(names, entry, name, thing);
}

const tree *parser_name_leaf(parser *p, bool may_be_word, const char *what) {
    sm_span span = p->now.span;
    bool word = may_be_word && p->now.kind == TOKEN_WORD;
    sm_span inner = word ? (sm_span){span.offset + 1, span.length - 2} : span;
    if (!parser_expect(p, word ? TOKEN_WORD : TOKEN_NAME, what)) return &p->spare;
    return parser_leaf(p, word ? TREE_WORD : TREE_NAME, span,
                       parser_name(p, inner, word ? TREE_MOST_WORD : TREE_MOST_NAME));
}

void parser_count(parser *p, int *n, const char *what, sm_span span) {
    if (++*n > TREE_MOST_ENTRIES)
        parser_fail(p, span, "more %s than %d, the most that are read", what, TREE_MOST_ENTRIES);
}

/* ---- assignments ---- */

/* Where '=' is missing after the first word of a line, that may be a section misspelt. */
static void no_equals(parser *p, const char *name) {
    char room[LEXER_WORD_ROOM];
    const char *near = sm_nearest(name, strlen(name), lexer_keywords + (TOKEN_LIKE - TOKEN_IF),
                                  LEXER_KEYWORD_COUNT - (TOKEN_LIKE - TOKEN_IF));
    parser_fail(p, p->now.span, "expected '=' after %s, found %s%s%s", name,
                lexer_describe(&p->lexer, p->now, room), near ? "; the nearest section is " : "",
                near ? near : "");
}

bool parse_set(parser *p, tree_sets *list, int kinds, const char *what) {
    tree_set set = {.span = p->now.span, .source = p->source};
    bool dim = p->now.kind == TOKEN_DIM, by_layer = p->now.kind == TOKEN_ARRAY;
    if (!dim && !by_layer && p->now.kind != TOKEN_NAME) return false;
    if (!(kinds & (dim ? SET_DIMS : by_layer ? SET_BY_LAYER : SET_NAMES))) {
        parser_expected(p, what);
        return false;
    }
    set.by_layer = by_layer;
    set.span.length -= by_layer;
    set.name = parser_name(p, set.span, dim ? TREE_MOST_DIM_NAME : TREE_MOST_NAME);
    parser_advance(p);
    if (by_layer && (p->now.kind != TOKEN_NAME || p->source->text[p->now.span.offset] != 'i' ||
                     p->now.span.length != 1))
        parser_expected(p, "i, the number of the layer");
    if (by_layer && parser_accept(p, TOKEN_NAME)) parser_expect(p, TOKEN_OF(']'), "']' after i");
    if (p->now.kind != TOKEN_OF('=')) no_equals(p, set.name);
    parser_accept(p, TOKEN_OF('='));
    set.value = parse_value(p);
    const tree_set *other = tree_find_set(list->first, set.name);
    if (other && tree_same(other->value, set.value)) return true;
    if (other) parser_fail(p, set.span, "%s is set above already, to another value", set.name);
    parser_count(p, &list->n, "assignments", set.span);
    tree_set *entry = parser_alloc(p, sizeof *entry);
    if (!entry) return false;
    *entry = set;
    if (!list->first) list->first = entry;
    if (list->end) *list->end = entry;
    list->last = entry;
    list->end = &entry->next;
    return true;
}

void parse_sets(parser *p, tree_sets *list, int kinds, const char *what) {
    parser_skip_breaks(p);
    while (!parser_at_section(p)) {
        if (!parse_set(p, list, kinds, what)) parser_expected(p, what);
        parser_expect_break(p, "the end of the assignment");
    }
}

/* ---- roles and sizes ---- */

static const char *const role_names[] = {SM_DIMENSION_ROLES(SM_NAME_OF)};

static void add_role(parser *p, sm_dimension_role role) {
    sm_library *library = p->library;
    sm_span span = p->now.span;
    const char *dim = parser_name(p, span, TREE_MOST_DIM_NAME);
    parser_advance(p);
    parser_count(p, &library->roles, "dimensions with roles", span);
    const tree_role *other = parser_named(p, &library->role_named, dim);
    if (other && other->role == role) return;
    if (other)
        parser_fail(p, span, "dimension %s has the role %s already", dim,
                    sm_dimension_role_name(other->role));
    tree_role *entry = parser_alloc(p, sizeof *entry);
    if (!entry) return;
    *entry = (tree_role){.dim = dim, .role = role, .span = span, .source = p->source};
    *library->role_end = entry;
    library->role_end = &entry->next;
    parser_name_it(p, &library->role_named, dim, entry);
}

static void parse_roles(parser *p) {
    const sm_words words = {role_names, SM_DIMENSION_ROLE_COUNT};
    parser_skip_breaks(p);
    while (p->now.kind == TOKEN_MODEL || !parser_at_section(p)) {
        sm_span span = p->now.span;
        bool word = p->now.kind == TOKEN_NAME || p->now.kind == TOKEN_MODEL;
        int role = word ? sm_words_find(words, p->source, span) : -1;
        if (!word) parser_expected(p, "a role");
        else if (role < 0)
            parser_unknown(p, span, "no role is called", words.word, SM_DIMENSION_ROLE_COUNT);
        parser_advance(p);
        while (p->now.kind == TOKEN_DIM) add_role(p, (sm_dimension_role)role);
        parser_expect_break(p, "a dimension or ';'");
    }
}

/* ---- the file ---- */

/* What stands after the keyword of a statement, which the library keeps. */
static void parse_rest(parser *p, tree_statement statement) {
    sm_library *library = p->library;
    switch ((token_kind)statement.keyword) {
    case TOKEN_ROLES: parse_roles(p); break;
    case TOKEN_SIZES: parse_sets(p, &library->size, SET_DIMS, "a dimension and its size"); break;
    case TOKEN_INERT: parse_words(p, &library->inert_end, &library->words); break;
    case TOKEN_MATTERS: parse_words(p, &library->matters_end, &library->words); break;
    case TOKEN_FAMILY: statement.family = parse_family(p); break;
    default: statement.text = parse_text(p, statement.keyword == TOKEN_KERNEL); break;
    }
    tree_statement *entry = parser_alloc(p, sizeof *entry);
    if (!entry) return;
    *entry = statement;
    *library->statement_end = entry;
    library->statement_end = &entry->next;
    library->last = entry;
}

static void parse_statement(parser *p) {
    static const char *const words[] = {"roles", "sizes",  "inert", "matters",
                                        "text",  "kernel", "family"};
    token_kind kind = p->now.kind;
    if (kind == TOKEN_NAME)
        parser_unknown(p, p->now.span, "a file of texts and families has no", words,
                       sizeof words / sizeof words[0]);
    if (!parser_at_statement(p) && kind != TOKEN_INERT)
        parser_expected(p, "roles, sizes, inert, matters, text, kernel or family");
    const tree_statement statement = {.keyword = (int)kind, .at = p->lexer.at, .source = p->source};
    parser_advance(p);
    if (p->status) return;
    parse_rest(p, statement);
}

static sm_source *copy_source(sm_arena *arena, const sm_source *source) {
    sm_source *copy = sm_arena_alloc(arena, sizeof *copy);
    const char *name = source->name ? source->name : "";
    if (!copy) return NULL;
    copy->name = sm_arena_copy(arena, name, strlen(name));
    copy->text = sm_arena_copy(arena, source->text ? source->text : "", source->length);
    copy->length = source->length;
    return copy->name && copy->text ? copy : NULL;
}

/* At the first token from this byte on. */
static void begin_at(parser *p, sm_library *library, const sm_source *source, size_t at,
                     sm_error *err) {
    *p = (parser){.lexer = {.source = source, .at = at, .end = source->length},
                  .source = source,
                  .library = library,
                  .arena = library->arena,
                  .err = err,
                  .spare = {.kind = TREE_NAME, .name = "", .height = 1}};
    parser_advance(p);
}

/* A copy of the source at its first token. */
static sm_status begin(parser *p, sm_library *library, const sm_source *source, sm_error *err) {
    if (source->length > TREE_MOST_BYTES)
        return sm_fail_at(err, source, (sm_span){0, 1}, "a file of %zu bytes; the most is %d",
                          source->length, TREE_MOST_BYTES);
    sm_source *copy = copy_source(library->arena, source);
    if (!copy) return sm_fail_memory(err);
    begin_at(p, library, copy, 0, err);
    parser_skip_breaks(p);
    return SM_OK;
}

sm_status sm_library_read(sm_library *library, const sm_source *source, sm_error *err) {
    parser p;
    sm_status status = begin(&p, library, source, err);
    if (status) return status;
    while (!p.status && p.now.kind != TOKEN_END) {
        parse_statement(&p);
        parser_skip_breaks(&p);
    }
    return p.status;
}

sm_status parser_read_statement(sm_library *library, const sm_source *source, size_t at,
                                token_kind keyword, sm_error *err) {
    parser p;
    begin_at(&p, library, source, at, err);
    parse_rest(&p, (tree_statement){.keyword = (int)keyword, .at = at, .source = source});
    return p.status;
}

sm_status sm_library_read_lines(sm_library *library, const sm_source *source, const char *name,
                                sm_error *err) {
    parser p;
    sm_status status = begin(&p, library, source, err);
    const char *copy = status ? NULL : sm_arena_copy(library->arena, name, strlen(name));
    if (status) return status;
    if (!copy) return sm_fail_memory(err);
    p.bare = true;
    parse_bare_lines(&p, copy);
    return p.status;
}

sm_status tree_read_formula(const sm_source *source, sm_span span, sm_arena *arena,
                            const tree **out, sm_error *err) {
    const size_t end = span.offset + span.length;
    parser p = {.lexer = {source, span.offset, end, .formula = true, .brackets = 1},
                .source = source,
                .arena = arena,
                .err = err,
                .spare = {.kind = TREE_NAME, .name = "", .height = 1}};
    if (span.length > TREE_MOST_WORD)
        return sm_fail_at(err, source, span, "a formula has at most %d bytes", TREE_MOST_WORD);
    parser_advance(&p);
    *out = parse_value(&p);
    if (p.now.kind != TOKEN_END) parser_expected(&p, "an operator or the end of the formula");
    return p.status;
}

/* ---- the dimensions of a text ---- */

typedef struct naming {
    sm_text_mention *list;
    int n, room;
} naming;

static bool name_dims(void *to, const tree *t) {
    naming *all = to;
    for (int i = 0; t->kind == TREE_ARRAY && i < t->rank; i++) {
        int k = 0;
        while (k < all->n && strcmp(all->list[k].name, t->dim[i].name) != 0) k++;
        if (k == all->n && all->n < all->room)
            all->list[all->n++] = (sm_text_mention){t->dim[i].name, t->dim[i].span};
    }
    return true;
}

int sm_library_dims(const sm_library *library, const char *text, sm_text_mention *dim, int most) {
    naming all = {.list = dim, .room = most};
    const tree_text *found = tree_find_text(library, text);
    for (const tree_line *line = found ? found->line : NULL; line; line = line->next)
        for (int i = 0; i < line->targets; i++) name_dims(&all, line->target[i]);
    if (found) tree_walk_text(found, name_dims, &all);
    return all.n;
}
