/* A library, and finding things in what was read: by name, in it and in those below it. */
#include "tree.h"

const tree_function_row tree_functions[] = {
#define X(id, name, least, most) {name, least, most},
    TREE_FUNCTIONS(X)
#undef X
};

int tree_find_function(const char *name) {
    int i = TREE_FUNCTION_COUNT - 1;
    while (i >= 0 && strcmp(tree_functions[i].name, name) != 0) i--;
    return i;
}

sm_status sm_library_new(sm_arena *arena, const sm_library *under, sm_library **out,
                         sm_error *err) {
    sm_library *library = sm_arena_alloc(arena, sizeof *library);
    *out = library;
    if (!library) return sm_fail_memory(err);
    sm_status status = SM_OK;
    if (under && under->shipped) status = library_whole(arena, &under, err);
    if (status) return status;
    *library = (sm_library){.arena = arena, .under = under};
    library->role_end = &library->role;
    library->size.end = &library->size.first;
    library->inert_end = &library->inert;
    library->matters_end = &library->matters;
    library->text_end = &library->text;
    library->family_end = &library->family;
    library->statement_end = &library->statement;
    return SM_OK;
}

static size_t bucket_of(const char *name) {
    uint64_t hash = sm_hash_bytes(name, strlen(name));
    return (size_t)(hash ^ hash >> 32) % TREE_BUCKETS;
}

const void *tree_named(const tree_names *names, const char *name) {
    const tree_entry *e = names->bucket[bucket_of(name)];
    while (e && strcmp(e->name, name) != 0) e = e->next;
    return e ? e->thing : NULL;
}

void tree_add_name(tree_names *names, tree_entry *entry, const char *name, const void *thing) {
    tree_entry **bucket = &names->bucket[bucket_of(name)];
    *entry = (tree_entry){name, thing, *bucket};
    *bucket = entry;
}

const tree_text *tree_find_text(const sm_library *library, const char *name) {
    const tree_text *text = NULL;
    for (; library && !text; library = library->under)
        text = tree_named(&library->text_named, name);
    return text;
}

const tree_family *tree_other_family(const sm_library *library, const char *name,
                                     const tree_family *family) {
    const tree_family *f = NULL;
    for (; library && (!f || f == family); library = library->under)
        f = tree_named(&library->family_named, name);
    return f == family ? NULL : f;
}

const tree_family *tree_find_family(const sm_library *library, const char *name) {
    return tree_other_family(library, name, NULL);
}

bool sm_library_has_family(const sm_library *library, const char *name) {
    return library->shipped ? library_shipped_family(name)
                            : tree_find_family(library, name) != NULL;
}

bool tree_walk(const tree *t, tree_visit visit, void *to) {
    if (!visit(to, t)) return false;
    for (int i = 0; i < t->n; i++)
        if (!tree_walk(t->child[i], visit, to)) return false;
    return true;
}

bool tree_walk_text(const tree_text *text, tree_visit visit, void *to) {
    for (const tree_line *line = text->line; line; line = line->next) {
        if (!tree_walk(line->value, visit, to)) return false;
        for (const tree_attribute *a = line->attribute; a; a = a->next)
            if (a->value && !tree_walk(a->value, visit, to)) return false;
    }
    return true;
}

static bool same_name(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_dims(const tree *a, const tree *b) {
    if (a->rank != b->rank || a->typed != b->typed || (a->typed && a->type != b->type))
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!same_name(a->dim[i].name, b->dim[i].name) ||
            !same_name(a->dim[i].axes, b->dim[i].axes))
            return false;
    return true;
}

bool tree_same(const tree *a, const tree *b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind || a->n != b->n || a->number != b->number ||
        !same_name(a->name, b->name) || !same_dims(a, b))
        return false;
    for (int i = 0; i < a->n; i++)
        if (!tree_same(a->child[i], b->child[i])) return false;
    return true;
}

sm_dimension_role tree_role_of(const sm_library *library, const char *dim) {
    const tree_role *role = NULL;
    for (; library && !role; library = library->under) role = tree_named(&library->role_named, dim);
    return role ? role->role : SM_DIMENSION_WHOLE;
}

const tree_set *tree_find_set(const tree_set *list, const char *name) {
    while (list && !tree_same_name(list->name, name)) list = list->next;
    return list;
}

const tree_attribute *tree_find_attribute(const tree_attribute *list, tree_attribute_kind kind) {
    while (list && list->kind != kind) list = list->next;
    return list;
}

const char *sm_dimension_role_name(sm_dimension_role role) {
    static const char *const names[] = {SM_DIMENSION_ROLES(SM_NAME_OF)};
    return (unsigned)role < SM_DIMENSION_ROLE_COUNT ? names[role] : "?";
}

bool sm_dimension_role_counts_tokens(sm_dimension_role role) {
    return role == SM_DIMENSION_SEQUENCES || role == SM_DIMENSION_POSITIONS ||
           role == SM_DIMENSION_KEYS || role == SM_DIMENSION_SLOTS;
}

sm_status sm_library_families(const sm_library *library, sm_arena *arena, const char *const **name,
                              size_t *n, sm_error *err) {
    size_t most = 0;
    if (library->shipped) return library_shipped_families(arena, name, n, err);
    *n = 0;
    for (const sm_library *l = library; l; l = l->under)
        for (const tree_family *family = l->family; family; family = family->next)
            most += (size_t)family->names;
    const char **names = sm_arena_array(arena, most, sizeof *names);
    *name = names;
    if (!names) return sm_fail_memory(err);
    for (const sm_library *l = library; l; l = l->under)
        for (const tree_family *family = l->family; family; family = family->next)
            for (int i = 0; i < family->names; i++) {
                size_t k = 0;
                while (k < *n && strcmp(names[k], family->name[i]->name) != 0) k++;
                if (k == *n) names[(*n)++] = family->name[i]->name;
            }
    return SM_OK;
}
