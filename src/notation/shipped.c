/* What is shipped: hundreds of families, of which a model needs a few. Nothing is read before one
 * is asked for; then its families, and what they name, are read into the arena of the model. */
#include "family_table.h"
#include "frames.h"
#include "parser.h"

#include <stdlib.h>

static const sm_library shipped = {.shipped = true};

const sm_library *sm_library_shipped(void) { return &shipped; }

sm_status library_whole(sm_arena *arena, const sm_library **out, sm_error *err) {
    sm_library *library;
    sm_status status = sm_library_new(arena, NULL, &library, err);
    for (size_t i = 0; !status && i < sm_family_table_count; i++)
        status = sm_library_read(library, &sm_family_table[i], err);
    *out = library;
    return status;
}

/* ---- by name ---- */

static const char *letters(const family_name *row) {
    return sm_family_table[sm_family_statement[row->statement].file].text + row->at;
}

/* The row of a text, or of a family; NULL: none is called so. */
static const family_name *find_row(bool family, const char *name, size_t length) {
    size_t from = family ? sm_family_text_count : 0;
    size_t to = family ? sm_family_name_count : sm_family_text_count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        const family_name *row = &sm_family_name[middle];
        size_t shared = length < row->length ? length : row->length;
        int order = memcmp(name, letters(row), shared);
        if (order == 0 && length == row->length) return row;
        if (order > 0 || (order == 0 && length > row->length)) from = middle + 1;
        else to = middle;
    }
    return NULL;
}

bool library_shipped_family(const char *name) { return find_row(true, name, strlen(name)) != NULL; }

SM_ORDER_OF_POINTERS(in_order_of_reading, family_name, SM_ASCENDING(statement) SM_ASCENDING(at))

sm_status library_shipped_families(sm_arena *arena, const char *const **name, size_t *n,
                                   sm_error *err) {
    size_t count = sm_family_name_count - sm_family_text_count;
    const family_name **row = sm_arena_array(arena, count, sizeof *row);
    const char **names = row ? sm_arena_array(arena, count, sizeof *names) : NULL;
    *n = 0;
    *name = names;
    if (!names) return sm_fail_memory(err);
    for (size_t i = 0; i < count; i++) row[i] = &sm_family_name[sm_family_text_count + i];
    qsort(row, count, sizeof *row, in_order_of_reading);
    for (size_t i = 0; i < count; i++) {
        names[i] = sm_arena_copy(arena, letters(row[i]), row[i]->length);
        if (!names[i]) return sm_fail_memory(err);
    }
    *n = count;
    return SM_OK;
}

/* ---- what a model needs ---- */

typedef struct needs {
    sm_library *library;
    bool *taken; /* by statement */
    sm_error *err;
    sm_status status;
} needs;

static void read_statement(needs *n, size_t i) {
    const family_statement *s = &sm_family_statement[i];
    if (n->status || n->taken[i]) return;
    n->taken[i] = true;
    n->status = parser_read_statement(n->library, &sm_family_table[s->file], s->at,
                                      (token_kind)s->keyword, n->err);
}

static bool need_named(void *to, const tree *node);

static void need_sets(needs *n, const tree_set *set);

/* The text of this name, or of what stands before its dot, if there is one. */
static void need_text(needs *n, const char *name) {
    const family_name *row = find_row(false, name, strcspn(name, "."));
    if (!row || n->status || n->taken[row->statement]) return;
    read_statement(n, row->statement);
    if (n->status) return;
    const tree_text *text = n->library->last->text;
    need_sets(n, text->option);
    tree_walk_text(text, need_named, n);
}

static bool need_named(void *to, const tree *node) {
    if (node->kind == TREE_NAME || node->kind == TREE_CALL) need_text(to, node->name);
    return true;
}

static void need_sets(needs *n, const tree_set *set) {
    for (; set; set = set->next) {
        need_text(n, set->name);
        if (set->value) tree_walk(set->value, need_named, n);
    }
}

static void need_family(needs *n, const char *name) {
    const family_name *row = find_row(true, name, strlen(name));
    if (!row || n->status || n->taken[row->statement]) return;
    read_statement(n, row->statement);
    if (n->status) return;
    const tree_family *family = n->library->last->family;
    if (family->like) need_family(n, family->like->name);
    need_sets(n, family->field);
    for (const tree_piece *piece = family->piece; piece; piece = piece->next) {
        if (piece->kind == TREE_ALL && piece->name) need_family(n, piece->name);
        if (piece->kind == TREE_PIECE || piece->kind == TREE_LAYERS) need_text(n, piece->name);
        if (piece->kind != TREE_ALL && piece->text) tree_walk(piece->text, need_named, n);
        need_sets(n, piece->set);
    }
}

/* Families that a config may name: the type and the class of each object, and its key. */
static void need_of_config(needs *n, const json_value *v) {
    const char *type = json_is(v, IS_OBJECT) ? json_text(json_get(v, "model_type")) : NULL;
    const json_value *list = json_is(v, IS_OBJECT) ? json_get(v, "architectures") : NULL;
    const json_value *first = list && json_is(list, IS_LIST) && list->n > 0 ? &list->item[0] : list;
    if (type) need_family(n, type);
    if (type && v->key) need_family(n, v->key);
    if (json_text(first)) need_family(n, json_text(first));
    for (uint32_t i = 0; json_is(v, IS_OBJECT) && i < v->n; i++) need_of_config(n, &v->item[i]);
}

sm_status library_for(const sm_library *library, const json_value *config, const char *family,
                      sm_arena *arena, const sm_library **out, sm_error *err) {
    needs n = {.err = err};
    *out = library;
    if (!library->shipped) return SM_OK;
    n.status = sm_library_new(arena, NULL, &n.library, err);
    if (n.status) return n.status;
    n.library->shipped = true;
    n.taken = sm_arena_array(arena, sm_family_statement_count, sizeof *n.taken);
    if (!n.taken) return sm_fail_memory(err);
    memset(n.taken, 0, sm_family_statement_count * sizeof *n.taken);
    for (size_t i = 0; i < sm_family_statement_count; i++)
        if (sm_family_statement[i].keyword < TOKEN_TEXT ||
            sm_family_statement[i].keyword == TOKEN_INERT)
            read_statement(&n, i);
    if (family) need_family(&n, family);
    need_of_config(&n, config);
    *out = n.library;
    return n.status;
}
