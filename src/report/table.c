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

static bool make_room(sm_table *table, sm_arena *arena) {
    if (table->rows < table->room) return true;
    size_t room = table->room > 0 ? 2 * table->room : 8;
    const char ***cells = sm_arena_array(arena, room, sizeof *cells);
    if (cells == NULL) return false;
    if (table->rows > 0) memcpy(cells, table->cells, table->rows * sizeof *cells);
    table->cells = cells;
    table->room = room;
    return true;
}

bool sm_table_row(sm_table *table, sm_arena *arena, const char *const *cells) {
    if (table == NULL || cells == NULL || !make_room(table, arena)) return false;
    const char **row = copy_texts(arena, cells, table->columns);
    if (row == NULL) return false;
    table->cells[table->rows++] = row;
    return true;
}
