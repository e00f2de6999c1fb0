/* Texts of which each is kept once: places of a table, by hashing. */
#include "scalemodel/base.h"
#include <string.h>

static bool widen(sm_texts *t) {
    sm_texts wider = {.room = t->room ? 2 * t->room : 256, .n = t->n};
    wider.text = sm_calloc(wider.room, sizeof *wider.text);
    if (!wider.text) return false;
    for (size_t i = 0; i < t->room; i++) {
        if (!t->text[i]) continue;
        size_t at = sm_hash_bytes(t->text[i], strlen(t->text[i])) & (wider.room - 1);
        while (wider.text[at]) at = (at + 1) & (wider.room - 1);
        wider.text[at] = t->text[i];
    }
    sm_free(t->text);
    *t = wider;
    return true;
}

const char *sm_texts_keep(sm_texts *t, sm_arena *arena, const char *text) {
    if (4 * (t->n + 1) > 3 * t->room && !widen(t)) return NULL;
    size_t n = strlen(text), at = sm_hash_bytes(text, n) & (t->room - 1);
    while (t->text[at] && strcmp(t->text[at], text) != 0) at = (at + 1) & (t->room - 1);
    if (!t->text[at]) {
        t->text[at] = sm_arena_copy(arena, text, n);
        t->n += t->text[at] != NULL;
    }
    return t->text[at];
}

void sm_texts_free(sm_texts *t) {
    sm_free(t->text);
    *t = (sm_texts){NULL, 0, 0};
}
