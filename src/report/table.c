/* Tables of text: the cells are formatted by whoever knows what they mean. */
#include "scalemodel/report.h"

#include <string.h>

/* A copy of n strings in the arena, "" for NULL; NULL when out of memory. */
static const char **copy_texts(sm_arena *arena, const char *const *texts, size_t n) {
    const char **copies = sm_arena_array(arena, n, sizeof *copies);
    if (copies == NULL) return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *text = texts[i] != NULL ? texts[i] : "";
        copies[i] = sm_arena_copy(arena, text, strlen(text));
        if (copies[i] == NULL) return NULL;
    }
    return copies;
}

sm_table *sm_table_new(sm_arena *arena, const char *title, size_t columns, const char *const *heads,
                       const sm_align *aligns) {
    sm_table *table = sm_arena_alloc(arena, sizeof *table);
    if (table == NULL) return NULL;
    table->title = title != NULL ? sm_arena_copy(arena, title, strlen(title)) : NULL;
    table->columns = columns;
    table->heads = copy_texts(arena, heads, columns);
    table->aligns = sm_arena_array(arena, columns, sizeof *table->aligns);
    if (table->heads == NULL || table->aligns == NULL || (title != NULL && table->title == NULL))
        return NULL;
    if (aligns != NULL && columns > 0)
        memcpy(table->aligns, aligns, columns * sizeof *table->aligns);
    return table;
}

bool sm_table_row(sm_table *table, sm_arena *arena, const char *const *cells) {
    if (table == NULL || cells == NULL) return false;
    const char ***all =
        sm_arena_grow(arena, table->cells, (int)table->rows, &table->room, sizeof *all);
    if (all == NULL) return false;
    table->cells = all;
    all[table->rows] = copy_texts(arena, cells, table->columns);
    if (all[table->rows] == NULL) return false;
    table->rows++;
    return true;
}
