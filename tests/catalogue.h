/* Sweeps over the catalogue. Most of its models are another's at other sizes: one of each set of
 * types and members does. Where the whole is run elsewhere (sanitized.h), four of five sets of
 * types do. */
#pragma once
#include <string.h>
#include "model_of.h"
#include "sanitized.h"

/* The next name of a member, or model type, in a config: its length; 0 at the end. */
static inline size_t next_said(const char **at, const char **word) {
    static const char type[] = "\"model_type\":";
    for (const char *colon; (colon = strchr(*at, ':')); *at = colon + 1) {
        const char *from = colon - 1;
        while (from[-1] != '"') from--;
        size_t n = (size_t)(colon - from);
        bool says_type = n == sizeof type - 3 && strncmp(from - 1, type, n) == 0;
        if (REPEATED && !says_type) continue;
        *word = from;
        *at = colon + 1;
        return says_type ? n + strcspn(colon, ",}") : n;
    }
    return 0;
}

/* Two texts of the same types, with the same members in the same order. */
static inline bool texts_alike(const char *a, const char *b) {
    for (const char *x = a, *y = b;;) {
        size_t n = next_said(&a, &x);
        if (next_said(&b, &y) != n || (n > 0 && strncmp(x, y, n) != 0)) return false;
        if (n == 0) return true;
    }
}

static inline bool catalogue_repeats(size_t i) {
    for (size_t j = 0; j < i; j++)
        if (texts_alike(sm_catalogue_at(j)->config_json, sm_catalogue_at(i)->config_json))
            return true;
    return false;
}

/* The next to look at, from i on. */
static inline size_t catalogue_next(size_t i) {
    while (i < sm_catalogue_count() && (catalogue_repeats(i) || (REPEATED && i % 5 == 4))) i++;
    return i;
}

#define FOR_CATALOGUE(i)                                                                           \
    for (size_t i = catalogue_next(0); i < sm_catalogue_count(); i = catalogue_next(i + 1))

/* A model of the catalogue; the families are read once. */
static inline void catalogue_load(const char *name, sm_arena *arena, sm_model *model) {
    sm_error err = {0};
    const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
    if (!entry) fail_msg("no model %s", name);
    sm_source source = sm_source_of(entry->name, entry->config_json);
    if (sm_model_parse(NULL, NULL, &source, arena, model, &err) != SM_OK)
        fail_msg("%s: %s", name, err.sentence);
}
