/* named: tables whose rows begin with their names, as those of data/formats. */
#pragma once
#include <stddef.h>
#include <string.h>
#include <math.h>

/* The row of this name; NULL: there is none, or no name. */
static inline const void *named_row(const void *table, size_t n, size_t bytes, const char *name) {
    for (const char *row = table; name && n > 0; n--, row += bytes)
        if (strcmp(*(const char *const *)(const void *)row, name) == 0) return row;
    return NULL;
}
#define NAMED(table, name) named_row(table, table##_count, sizeof *(table), name)
