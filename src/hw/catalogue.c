/* The catalogue: look-up by name and alias over the vendors' tables. */
#include "catalogue.h"

#include <string.h>

static const sm_vendor_chips *const vendors[] = {
    &sm_chips_google, &sm_chips_nvidia, &sm_chips_nvidia_cards, &sm_chips_amd,
    &sm_chips_intel,  &sm_chips_amazon, &sm_chips_cpu,
};
enum { VENDORS = sizeof vendors / sizeof vendors[0] };

size_t sm_chip_count(void) {
    size_t count = 0;
    for (size_t v = 0; v < VENDORS; v++) count += vendors[v]->count;
    return count;
}

const sm_chip *sm_chip_at(size_t i) {
    for (size_t v = 0; v < VENDORS; v++) {
        if (i < vendors[v]->count) return &vendors[v]->chip[i];
        i -= vendors[v]->count;
    }
    return NULL;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool same_word(const char *a, size_t n, const char *b, size_t m) {
    if (n != m) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

static bool is_alias(const char *aliases, const char *word, size_t length) {
    const char *at = aliases ? aliases : "";
    while (*at) {
        size_t n = strcspn(at, " ");
        if (n > 0 && same_word(at, n, word, length)) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

bool sm_chip_is_named(const sm_chip *chip, const char *name, size_t length) {
    return same_word(chip->name, strlen(chip->name), name, length) ||
           is_alias(chip->aliases, name, length);
}

const sm_chip *sm_chip_find(const char *name, size_t length) {
    for (size_t i = 0; i < sm_chip_count(); i++)
        if (sm_chip_is_named(sm_chip_at(i), name, length)) return sm_chip_at(i);
    return NULL;
}

double sm_chip_usd_per_hour(const sm_chip *chip) {
    return chip->prices > 0 ? chip->price[0].usd_per_chip_hour : 0;
}
