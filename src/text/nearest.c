/* The name a person most likely meant. */
#include "scalemodel/text.h"

#include <string.h>

#define LONGEST 64  /* names longer than this are never suggested */
#define FAR 1000000 /* more than any score */
#define WHOLE 100   /* score of one edit; what is below breaks ties between prefixes */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Damerau-Levenshtein distance (optimal string alignment): insert, delete, replace, and the swap
 * of two neighbours cost one each. Three rows of the usual table. */
static int edit_distance(const char *a, size_t m, const char *b, size_t n) {
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++) last[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int replaced = last[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            row[j] = (last[j] < row[j - 1] ? last[j] : row[j - 1]) + 1;
            if (replaced < row[j]) row[j] = replaced;
            bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        int *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[n];
}

static bool starts_with(const char *text, size_t m, const char *prefix, size_t n) {
    if (n > m) return false;
    for (size_t i = 0; i < n; i++)
        if (lower(text[i]) != lower(prefix[i])) return false;
    return true;
}

/* An edit counts WHOLE; a name that the word begins, or the reverse, counts as one edit. */
static int score(const char *word, size_t length, const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > LONGEST) return FAR;
    int distance = edit_distance(word, length, name, n);
    size_t shorter = length < n ? length : n, longer = length < n ? n : length;
    bool prefix =
        shorter >= 2 && (starts_with(name, n, word, length) || starts_with(word, length, name, n));
    if (prefix && distance > 0) return WHOLE + distance - 1;
    int most = longer <= 3 ? 1 : (int)longer / 3;
    return distance <= most && (size_t)distance < longer ? WHOLE * distance : FAR;
}

const char *sm_nearest(const char *word, size_t length, const char *const *names, size_t n) {
    if (length == 0 || length > LONGEST) return NULL;
    const char *nearest = NULL;
    int lowest = FAR;
    for (size_t i = 0; i < n; i++) {
        if (names[i] == NULL) continue;
        int s = score(word, length, names[i]);
        if (s >= lowest) continue;
        lowest = s;
        nearest = names[i];
    }
    return nearest;
}
