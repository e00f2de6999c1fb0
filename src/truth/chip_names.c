/* The catalogue chip for the name that a file of measurements prints. */
#include "measured_format.h"
#include "scalemodel/truth.h"
#include <ctype.h>

enum { LONGEST = 64 };

static bool same(const char *a, const char *b, size_t n) {
    return strlen(b) == n && strncmp(a, b, n) == 0;
}

/* Lower case, words joined by '-', what stands in brackets left out. false: too long to be one. */
static bool plain_name(const char *printed, char *out) {
    size_t n = 0;
    int depth = 0;
    for (; *printed; printed++) {
        char c = (char)tolower((unsigned char)*printed);
        depth += c == '(';
        bool gap = c == ' ' || c == '_' || c == '-';
        if (depth == 0 && !(gap && (n == 0 || out[n - 1] == '-'))) {
            if (n + 1 >= LONGEST) return false;
            out[n++] = gap ? '-' : c;
        }
        if (c == ')' && depth > 0) depth--;
    }
    while (n > 0 && out[n - 1] == '-') n--;
    out[n] = '\0';
    return n > 0;
}

static bool is_implied(const char *word, size_t n) {
    for (size_t i = 0; i < measured_endings_count; i++)
        if (same(word, measured_endings[i].name, n)) return true;
    /* "2x2x1", "4gpu", "2": numbers of chips. */
    size_t digits = strspn(word, "0123456789x");
    return n > 0 && isdigit((unsigned char)word[0]) &&
           (digits >= n || same(word + digits, "gpu", n - digits));
}

static const sm_chip *chip_called(const char *name, size_t n) {
    for (size_t i = 0; i < measured_chips_count; i++)
        if (same(name, measured_chips[i].name, n))
            return sm_chip_find(measured_chips[i].chip, strlen(measured_chips[i].chip));
    return sm_chip_find(name, n);
}

const sm_chip *sm_truth_row_chip(const sm_truth_row *row) {
    return row->on ? row->on : sm_truth_chip(row->chip);
}

const sm_chip *sm_truth_chip(const char *printed) {
    char buffer[LONGEST];
    if (!printed || !plain_name(printed, buffer)) return NULL;
    const char *name = buffer;
    for (size_t i = 0; i < measured_makers_count;) {
        size_t n = strlen(measured_makers[i].name);
        bool has = strncmp(name, measured_makers[i].name, n) == 0;
        if (has) name += n;
        i = has ? 0 : i + 1;
    }

    for (size_t n = strlen(name); n > 0;) {
        const sm_chip *chip = chip_called(name, n);
        if (chip) return chip;
        size_t last = n;
        while (last > 0 && name[last - 1] != '-') last--;
        if (last == 0 || !is_implied(name + last, n - last)) return NULL;
        n = last - 1;
    }
    return NULL;
}
