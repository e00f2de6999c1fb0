/* Sweeps over the catalogue. Most of its models are another's at other sizes: where the whole is
 * run elsewhere (sanitized.h), one of each kind of config does. */
#pragma once
#include <string.h>
#include "model_of.h"
#include "sanitized.h"

/* Two texts that differ in their numbers alone. */
static inline bool texts_alike(const char *a, const char *b) {
    static const char figures[] = "0123456789.";
    for (;; a++, b++) {
        a += strspn(a, figures);
        b += strspn(b, figures);
        if (*a != *b) return false;
        if (*a == '\0') return true;
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
    while (REPEATED && i < sm_catalogue_count() && catalogue_repeats(i)) i++;
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
