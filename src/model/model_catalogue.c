/* The catalogue of models: found by name or alias, in any case. */
#include "model_table.h"
#include "stored.h"

#include <strings.h>

size_t sm_catalogue_count(void) { return sm_model_table_count; }

const sm_catalogue_entry *sm_catalogue_at(size_t i) {
    return i < sm_model_table_count ? &sm_model_table[i] : NULL;
}

/* Nothing but sizes, "-235b-a22b", "-1.1b". */
static bool is_sizes(const char *text) {
    while (*text == '-') {
        text += 1 + (text[1] == 'a');
        size_t digits = strspn(text, "0123456789.");
        if (digits == 0 || text[digits] != 'b') return false;
        text += digits + 1;
    }
    return *text == 0;
}

const sm_catalogue_entry *sm_catalogue_find(const char *name, size_t length) {
    const sm_catalogue_entry *begun = NULL;
    size_t count = 0;
    for (size_t i = 0; i < sm_model_table_count; i++) {
        const sm_catalogue_entry *entry = &sm_model_table[i];
        if (sm_is_called(entry->name, entry->aliases, name, length)) return entry;
        if (strncasecmp(entry->name, name, length) != 0 || !is_sizes(entry->name + length))
            continue;
        begun = entry;
        count++;
    }
    return count == 1 ? begun : NULL;
}

/* How many letters at the end of a name say how it was tuned, or stored; 0: none do. */
static size_t said_at_end(const char *name, size_t n, const char **stored) {
    bool month = n > 5 && name[n - 5] == '-';
    for (size_t i = 1; month && i < 5; i++) month = name[n - i] >= '0' && name[n - i] <= '9';
    if (month) return 5; /* DeepSeek-V3-0324, Qwen3-30B-A3B-Instruct-2507 */
    for (size_t i = 0; i < stored_ids_count; i++) {
        const stored_id *id = &stored_ids[i];
        size_t m = strlen(id->ending);
        if (n <= m || strncasecmp(name + n - m, id->ending, m) != 0) continue;
        if (id->config[0] && *stored) return 0; /* in two ways at once */
        if (id->config[0]) *stored = id->config;
        return m;
    }
    return 0;
}

const sm_catalogue_entry *sm_catalogue_of_id(const char *id, const char **stored) {
    char name[96];
    const char *slash = strrchr(id, '/');
    const sm_catalogue_entry *entry = sm_catalogue_find(id, strlen(id));
    *stored = NULL;
    if (entry) return entry;
    if (slash) id = slash + 1;
    if (strncasecmp(id, "meta-", 5) == 0) id += 5;
    size_t n = strlen(id), cut;
    if (n >= sizeof name) return NULL;
    for (size_t i = 0; i <= n; i++) name[i] = id[i] == '_' ? '-' : id[i];
    while (!(entry = sm_catalogue_find(name, n)) && (cut = said_at_end(name, n, stored)) > 0)
        n -= cut;
    return entry;
}
