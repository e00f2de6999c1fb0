/* named: tables whose rows begin with their names, as those of data/formats. */
#pragma once
#include <stddef.h>
#include <stdbool.h>
#include <string.h>
#include <math.h>

/* The row of this name; NULL: there is none, or no name. */
static inline const void *named_row(const void *table, size_t n, size_t bytes, const char *name) {
    for (const char *row = table; name && n > 0; n--, row += bytes)
        if (strcmp(*(const char *const *)(const void *)row, name) == 0) return row;
    return NULL;
}
#define NAMED(table, name) named_row(table, table##_count, sizeof *(table), name)

static inline bool begins_with(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}
static inline bool part_begins_with(const char *text, size_t length, const char *word) {
    return length >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}
static inline bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}
