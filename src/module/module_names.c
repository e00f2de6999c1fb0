#include "module_parts.h"

static module_name *slot_of(const module_names *names, const char *text, size_t length) {
    for (size_t i = (size_t)sm_hash_bytes(text, length);; i++) {
        module_name *entry = &names->entry[i & (names->room - 1)];
        if (!entry->text) return entry;
        if (entry->length == length && !memcmp(entry->text, text, length)) return entry;
    }
}

void module_names_free(module_names *names) {
    sm_free(names->entry);
    *names = (module_names){0};
}

int module_names_find(const module_names *names, const char *text, size_t length) {
    if (names->room == 0) return -1;
    const module_name *entry = slot_of(names, text, length);
    return entry->text ? entry->number : -1;
}

static bool grow(module_names *names) {
    module_names larger = {.room = names->room ? 2 * names->room : 64};
    larger.entry = sm_calloc(larger.room, sizeof *larger.entry);
    if (!larger.entry) return false;
    for (size_t i = 0; i < names->room; i++) {
        const module_name *entry = &names->entry[i];
        if (!entry->text) continue;
        *slot_of(&larger, entry->text, entry->length) = *entry;
        larger.used++;
    }
    sm_free(names->entry);
    *names = larger;
    return true;
}

bool module_names_set(module_names *names, const char *text, size_t length, int number) {
    if (2 * names->used >= names->room && !grow(names)) return false;
    module_name *entry = slot_of(names, text, length);
    names->used += !entry->text;
    *entry = (module_name){text, (uint32_t)length, number};
    return true;
}
