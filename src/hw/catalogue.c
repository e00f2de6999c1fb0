/* The catalogue of chips: look-up by name and alias, in any case. */
#include "chip_table.h"

#include <string.h>

size_t sm_chip_count(void) { return sm_chip_table_count; }

const sm_chip *sm_chip_at(size_t i) { return i < sm_chip_table_count ? &sm_chip_table[i] : NULL; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_word(const char *a, size_t n, const char *b, size_t m) {
    if (n != m) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

bool sm_chip_is_named(const sm_chip *chip, const char *name, size_t length) {
    if (same_word(chip->name, strlen(chip->name), name, length)) return true;
    for (const char *alias = chip->aliases ? chip->aliases : ""; *alias;) {
        size_t n = strcspn(alias, " ");
        if (n > 0 && same_word(alias, n, name, length)) return true;
        alias += n + (alias[n] == ' ');
    }
    return false;
}

const sm_chip *sm_chip_find(const char *name, size_t length) {
    for (size_t i = 0; i < sm_chip_table_count; i++)
        if (sm_chip_is_named(&sm_chip_table[i], name, length)) return &sm_chip_table[i];
    return NULL;
}

double sm_chip_usd_per_hour(const sm_chip *chip) {
    return chip->prices > 0 ? chip->price[0].usd_per_chip_hour : 0;
}
