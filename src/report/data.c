/* The data tree: what --json prints. Objects keep the order in which keys were put. */
#include "scalemodel/report.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static sm_data *data_of(sm_arena *arena, sm_data_kind kind) {
    sm_data *data = sm_arena_alloc(arena, sizeof *data);
    if (data != NULL) data->kind = kind;
    return data;
}

sm_data *sm_data_object(sm_arena *arena) { return data_of(arena, SM_DATA_OBJECT); }
sm_data *sm_data_array(sm_arena *arena) { return data_of(arena, SM_DATA_ARRAY); }

sm_data *sm_data_string(sm_arena *arena, const char *text) {
    if (text == NULL) return data_of(arena, SM_DATA_NULL);
    sm_data *data = data_of(arena, SM_DATA_STRING);
    char *copy = sm_arena_copy(arena, text, strlen(text));
    if (data == NULL || copy == NULL) return NULL;
    data->string = copy;
    return data;
}

sm_data *sm_data_number(sm_arena *arena, double value) {
    if (!isfinite(value)) return data_of(arena, SM_DATA_NULL);
    sm_data *data = data_of(arena, SM_DATA_NUMBER);
    if (data != NULL) data->number = value;
    return data;
}

sm_data *sm_data_timed(sm_arena *arena, double value) {
    sm_data *data = sm_data_number(arena, value);
    if (data != NULL) data->timed = true;
    return data;
}

sm_data *sm_data_bool(sm_arena *arena, bool truth) {
    sm_data *data = data_of(arena, SM_DATA_BOOL);
    if (data != NULL) data->truth = truth;
    return data;
}

static void append_child(sm_data *parent, sm_data *child) {
    assert(parent != child && (parent->first == NULL) == (parent->last == NULL));
    child->next = NULL;
    if (parent->last != NULL) parent->last->next = child;
    else parent->first = child;
    parent->last = child;
}

bool sm_data_push(sm_data *array, sm_data *value) {
    if (array == NULL || value == NULL || array->kind != SM_DATA_ARRAY) return false;
    append_child(array, value);
    return true;
}

bool sm_data_put(sm_data *object, sm_arena *arena, const char *key, sm_data *value) {
    if (object == NULL || value == NULL || key == NULL || object->kind != SM_DATA_OBJECT)
        return false;
    value->key = sm_arena_copy(arena, key, strlen(key));
    if (value->key == NULL) return false;
    append_child(object, value);
    return true;
}

const sm_data *sm_data_get(const sm_data *object, const char *key) {
    if (object == NULL || object->kind != SM_DATA_OBJECT) return NULL;
    for (const sm_data *child = object->first; child != NULL; child = child->next)
        if (strcmp(child->key, key) == 0) return child;
    return NULL;
}
