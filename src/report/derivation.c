/* Derivations: the tree behind a number. */
#include "scalemodel/report.h"

#include <string.h>

/* *copy receives a copy of text, NULL for NULL; false when out of memory. */
static bool copy_text(sm_arena *arena, const char *text, const char **copy) {
    *copy = text != NULL ? sm_arena_copy(arena, text, strlen(text)) : NULL;
    return text == NULL || *copy != NULL;
}

static sm_why *why_of(sm_arena *arena, const char *label, const char *formula, double value,
                      const char *unit, const char *source) {
    sm_why *why = sm_arena_alloc(arena, sizeof *why);
    if (why == NULL || !copy_text(arena, label != NULL ? label : "", &why->label) ||
        !copy_text(arena, formula, &why->formula) || !copy_text(arena, source, &why->source) ||
        !copy_text(arena, unit != NULL ? unit : "", &why->unit))
        return NULL;
    why->value = value;
    return why;
}

sm_why *sm_why_node(sm_arena *arena, const char *label, const char *formula, double value,
                    const char *unit) {
    return why_of(arena, label, formula, value, unit, NULL);
}

sm_why *sm_why_leaf(sm_arena *arena, const char *label, double value, const char *unit,
                    const char *source) {
    return why_of(arena, label, NULL, value, unit, source);
}

void sm_why_add(sm_why *parent, sm_why *child) {
    if (parent == NULL || child == NULL) return;
    child->next = NULL;
    if (parent->last != NULL) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
}
