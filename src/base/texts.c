/* Numbers by keys, and texts of which each is kept once: places of a table, by hashing. */
#include "scalemodel/base.h"
#include <string.h>

void sm_numbers_free(sm_numbers *t) {
    sm_free(t->key);
    sm_free(t->value);
    *t = (sm_numbers){0};
}

/* Open addressing: a key lies at its place or behind it; 0 is no key. */
static size_t place_of(const sm_numbers *t, uint64_t key) {
    size_t at = (size_t)(key ^ key >> 32) & (t->room - 1);
    while (t->key[at] && t->key[at] != key) at = (at + 1) & (t->room - 1);
    return at;
}

static bool widen(sm_numbers *t) {
    sm_numbers wide = {.room = t->room ? 2 * t->room : 256, .n = t->n};
    wide.key = sm_calloc(wide.room, sizeof *wide.key);
    wide.value = sm_calloc(wide.room, sizeof *wide.value);
    if (!wide.key || !wide.value) {
        sm_numbers_free(&wide);
        return false;
    }
    for (size_t i = 0; i < t->room; i++) {
        if (!t->key[i]) continue;
        size_t at = place_of(&wide, t->key[i]);
        wide.key[at] = t->key[i];
        wide.value[at] = t->value[i];
    }
    sm_numbers_free(t);
    *t = wide;
    return true;
}

int32_t *sm_numbers_at(sm_numbers *t, uint64_t key) {
    key = key ? key : 1;
    if (2 * t->n >= t->room && !widen(t)) return NULL;
    size_t at = place_of(t, key);
    if (!t->key[at]) {
        t->key[at] = key;
        t->value[at] = -1;
        t->n++;
    }
    return &t->value[at];
}

/* Two texts of one hash of 64 bits are looked for under the next ones. */
int32_t sm_texts_place(sm_texts *t, sm_arena *arena, const char *text, size_t length) {
    int32_t *at;
    for (uint64_t key = sm_hash_bytes(text, length); (at = sm_numbers_at(&t->places, key)); key++) {
        const char *known = *at >= 0 ? t->text[*at] : NULL;
        if (known && strlen(known) == length && memcmp(known, text, length) == 0) return *at;
        if (known) continue;
        const char **list = sm_arena_grow(arena, t->text, t->n, &t->room, sizeof *list);
        if (list) t->text = list;
        char *copy = list ? sm_arena_copy(arena, text, length) : NULL;
        if (!copy) return -1;
        list[t->n] = copy;
        return *at = t->n++;
    }
    return -1;
}

const char *sm_texts_keep(sm_texts *t, sm_arena *arena, const char *text) {
    int32_t at = sm_texts_place(t, arena, text, strlen(text));
    return at >= 0 ? t->text[at] : NULL;
}

void sm_texts_free(sm_texts *t) {
    sm_numbers_free(&t->places);
    *t = (sm_texts){.n = 0};
}
