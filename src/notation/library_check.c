/* Does everything that a library names exist? Texts call texts, and families bind what texts leave
 * open, in any order of files: so this comes after the last one. */
#include "library_check.h"

#include <stdlib.h>

/* ---- sorted words ---- */

bool words_have(const words *list, const char *word) {
    return list->n > 0 &&
           bsearch(&word, list->word, list->n, sizeof word, sm_compare_texts) != NULL;
}

static bool words_add(checker *c, words *list, const char *word) {
    const char **grown =
        sm_arena_grow(c->arena, list->word, (int)list->n, &list->room, sizeof *grown);
    if (!grown) return false;
    list->word = grown;
    grown[list->n++] = word;
    return word != NULL;
}

static void words_sort(words *list) {
    size_t kept = 0;
    if (list->n > 0) qsort(list->word, list->n, sizeof *list->word, sm_compare_texts);
    for (size_t i = 0; i < list->n; i++)
        if (kept == 0 || strcmp(list->word[kept - 1], list->word[i]) != 0)
            list->word[kept++] = list->word[i];
    list->n = kept;
}

const char *before_dot(checker *c, const char *name) {
    return sm_arena_copy(c->arena, name, strcspn(name, "."));
}

/* ---- what there is, here and below ---- */

/* The open calls of texts, and the pieces that they reach into. */
static bool gather_part(void *to, const tree *e) {
    checker *c = to;
    bool open =
        e->kind == TREE_CALL && operator_find(e->name) < 0 && !words_have(&c->texts, e->name);
    bool names_array = e->kind == TREE_NAME || e->kind == TREE_ARRAY;
    if (open && !words_add(c, &c->slots, e->name)) return false;
    return !names_array || !strchr(e->name, '.') ||
           words_add(c, &c->reached, before_dot(c, e->name));
}

static bool gather_text(checker *c, const tree_text *text) {
    for (const tree_set *option = text->option; option; option = option->next)
        if (!words_add(c, &c->options, option->name)) return false;
    return tree_walk_text(text, gather_part, c);
}

static bool gather_value(void *to, const tree *e) {
    checker *c = to;
    return e->kind != TREE_NAME || words_add(c, &c->read, e->name);
}

static bool gather_family(checker *c, const tree_family *family) {
    for (const tree_piece *piece = family->piece; piece; piece = piece->next)
        for (const tree_set *set = piece->set; set; set = set->next)
            if (!words_add(c, &c->bound, set->name) || !tree_walk(set->value, gather_value, c))
                return false;
    return true;
}

static bool gather(checker *c) {
    for (const sm_library *l = c->library; l; l = l->under)
        for (const tree_text *text = l->text; text; text = text->next)
            if (!words_add(c, &c->texts, text->name)) return false;
    words_sort(&c->texts);
    for (const sm_library *l = c->library; l; l = l->under) {
        for (const tree_text *text = l->text; text; text = text->next)
            if (!gather_text(c, text)) return false;
        for (const tree_family *family = l->family; family; family = family->next)
            if (!gather_family(c, family)) return false;
    }
    words_sort(&c->bound);
    words_sort(&c->read);
    words_sort(&c->slots);
    words_sort(&c->options);
    words_sort(&c->reached);
    return true;
}

sm_status sm_library_check(const sm_library *library, sm_error *err) {
    checker c = {.arena = sm_arena_new(), .err = err};
    sm_status status = c.arena ? SM_OK : sm_fail_memory(err);
    if (!status && library->shipped) status = library_whole(c.arena, &library, err);
    c.library = library;
    if (!status && !gather(&c)) status = sm_fail_memory(err);
    for (const tree_text *text = library->text; text && !status; text = text->next)
        status = check_text(&c, text);
    for (const tree_family *family = library->family; family && !status; family = family->next)
        status = check_family(&c, family);
    sm_arena_free(c.arena);
    return status;
}
