/* The compiled-in catalogue of models: found by name or alias, in a fixed order. */
#include "catalogue_section.h"
#include <ctype.h>
#include <string.h>

enum { SECTIONS = 6 };
static const catalogue_section *const sections[SECTIONS] = {&catalogue_llama, &catalogue_qwen,
                                                            &catalogue_gemma, &catalogue_experts,
                                                            &catalogue_gpt,   &catalogue_open};

size_t sm_catalogue_count(void) {
    size_t n = 0;
    for (size_t i = 0; i < SECTIONS; i++) n += sections[i]->n;
    return n;
}

const sm_catalogue_entry *sm_catalogue_at(size_t i) {
    for (size_t s = 0; s < SECTIONS; s++) {
        if (i < sections[s]->n) return &sections[s]->entries[i];
        i -= sections[s]->n;
    }
    return NULL;
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
    for (size_t i = 0; i < sm_catalogue_count(); i++)
        if (is_called(sm_catalogue_at(i), name, length)) return sm_catalogue_at(i);
    return NULL;
}
