/* The data tree: what --json prints. Objects keep the order in which keys were put. */
#include "scalemodel/report.h"

#include <assert.h>
#include <string.h>

sm_data *sm_data_object(sm_arena *arena) {
    sm_data *data = sm_arena_alloc(arena, sizeof *data);
    if (data != NULL) data->kind = SM_DATA_OBJECT;
    return data;
}

bool sm_data_put(sm_data *parent, sm_arena *arena, const char *key, sm_data *value) {
    const sm_data_kind kind = key != NULL ? SM_DATA_OBJECT : SM_DATA_ARRAY;
    if (parent == NULL || value == NULL || parent->kind != kind) return false;
    value->key = key != NULL ? sm_arena_copy(arena, key, strlen(key)) : NULL;
    if (key != NULL && value->key == NULL) return false;
    assert(parent != value && (parent->first == NULL) == (parent->last == NULL));
    value->next = NULL;
    if (parent->last != NULL) parent->last->next = value;
    else parent->first = value;
    parent->last = value;
    return true;
}

const sm_data *sm_data_get(const sm_data *object, const char *key) {
    if (object == NULL || object->kind != SM_DATA_OBJECT) return NULL;
    for (const sm_data *child = object->first; child != NULL; child = child->next)
        if (strcmp(child->key, key) == 0) return child;
    return NULL;
}
