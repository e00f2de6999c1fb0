/* The catalogue of models: found by name or alias, in any case. */
#include "model_table.h"

#include <ctype.h>
#include <string.h>

size_t sm_catalogue_count(void) { return sm_model_table_count; }

const sm_catalogue_entry *sm_catalogue_at(size_t i) {
    return i < sm_model_table_count ? &sm_model_table[i] : NULL;
}

static bool same(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i])) return false;
    return true;
}

static bool is_called(const sm_catalogue_entry *e, const char *name, size_t length) {
    if (length > 0 && strlen(e->name) == length && same(e->name, name, length)) return true;
    for (const char *at = e->aliases; length > 0 && *at;) {
        size_t n = strcspn(at, " ");
        if (n == length && same(at, name, n)) return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

const sm_catalogue_entry *sm_catalogue_find(const char *name, size_t length) {
    for (size_t i = 0; i < sm_model_table_count; i++)
        if (is_called(&sm_model_table[i], name, length)) return &sm_model_table[i];
    return NULL;
}
