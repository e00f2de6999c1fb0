/* The catalogue of models: found by name or alias, in any case. */
#include "model_table.h"

size_t sm_catalogue_count(void) { return sm_model_table_count; }

const sm_catalogue_entry *sm_catalogue_at(size_t i) {
    return i < sm_model_table_count ? &sm_model_table[i] : NULL;
}

const sm_catalogue_entry *sm_catalogue_find(const char *name, size_t length) {
    for (size_t i = 0; i < sm_model_table_count; i++)
        if (sm_is_called(sm_model_table[i].name, sm_model_table[i].aliases, name, length))
            return &sm_model_table[i];
    return NULL;
}
