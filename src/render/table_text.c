/* Tables as text: columns two blanks apart, a rule under the heads. A table too wide gives up
 * width in this order: heads wrap, then text columns wrap from the last on, then each row becomes
 * a list of "head  value" lines. */
#include <string.h>

#include "blocks.h"
#include "columns.h"

#define GAP 2
#define NARROWEST_TEXT 12 /* a text column is not wrapped below this */

typedef struct column {
    int width;
    int cell_width; /* of its widest cell */
    int head_word;  /* of the longest word of its head */
    size_t at;      /* bytes of the current cell already drawn */
} column;

/* Widest of the lines (or of the words, when words is true) of text. */
static int widest_part(const char *text, bool words) {
    int widest = 0;
    for (const char *from = text;; from++) {
        size_t n = strcspn(from, words ? " \n" : "\n");
        int width = sm_columns_of(from, n);
        if (width > widest) widest = width;
        from += n;
        if (*from == '\0') return widest;
    }
}

static void measure_columns(const sm_table *table, column *columns) {
    for (size_t c = 0; c < table->columns; c++) {
        column *col = &columns[c];
        for (size_t r = 0; r < table->rows; r++) {
            int width = widest_part(table->cells[r][c], false);
            if (width > col->cell_width) col->cell_width = width;
        }
        int head = widest_part(table->heads[c], false);
        col->head_word = widest_part(table->heads[c], true);
        col->width = head > col->cell_width ? head : col->cell_width;
    }
}

/* Take up to `excess` columns from one column, not below `least`; the excess left. */
static int narrow(column *col, int least, int excess) {
    int spare = col->width - least;
    int taken = spare < excess ? spare : excess;
    if (taken <= 0) return excess;
    col->width -= taken;
    return excess - taken;
}

static int larger(int a, int b) { return a > b ? a : b; }

/* True when the table now fits in width. */
static bool fit(const sm_table *table, column *columns, int width) {
    int excess = GAP * (int)(table->columns - 1) - width;
    for (size_t c = 0; c < table->columns; c++) excess += columns[c].width;
    for (size_t c = table->columns; c-- > 0 && excess > 0;)
        excess = narrow(&columns[c], larger(columns[c].cell_width, columns[c].head_word), excess);
    for (size_t c = table->columns; c-- > 0 && excess > 0;)
        if (table->aligns[c] == SM_LEFT)
            excess = narrow(&columns[c], larger(NARROWEST_TEXT, columns[c].head_word), excess);
    return excess <= 0;
}

/* One line of one cell; *blanks are the blanks owed before the next visible character. */
static void draw_cell_line(FILE *out, const char *cell, column *col, sm_align align, int *blanks) {
    size_t next = 0, length = strlen(cell) - col->at;
    size_t n = length > 0 ? sm_next_line(cell + col->at, length, col->width, &next) : 0;
    int used = sm_columns_of(cell + col->at, n), spare = larger(col->width - used, 0);
    if (n > 0) {
        sm_print_repeated(out, " ", *blanks + (align == SM_RIGHT ? spare : 0));
        sm_print_text(out, cell + col->at, n);
        *blanks = 0;
    }
    *blanks += n > 0 ? (align == SM_RIGHT ? 0 : spare) : col->width;
    col->at += next;
}

static void draw_row(const sm_table *table, column *columns, const char **cells, FILE *out) {
    bool more = true;
    for (size_t c = 0; c < table->columns; c++) columns[c].at = 0;
    while (more) {
        int blanks = 0;
        more = false;
        for (size_t c = 0; c < table->columns; c++) {
            draw_cell_line(out, cells[c], &columns[c], table->aligns[c], &blanks);
            blanks += GAP;
            more = more || columns[c].at < strlen(cells[c]);
        }
        fputc('\n', out);
    }
}

sm_status sm_draw_table(const sm_table *table, int width, FILE *out, sm_error *err) {
    column *columns = sm_calloc(table->columns + 2, sizeof *columns);
    if (columns == NULL) return sm_fail_memory(err);
    if (table->title != NULL) sm_print_wrapped(out, table->title, width, "", "");
    measure_columns(table, columns);
    if (table->columns > 0 && fit(table, columns, width)) {
        draw_row(table, columns, table->heads, out);
        for (size_t c = 0; c < table->columns; c++) {
            sm_print_repeated(out, "\xE2\x94\x80", columns[c].width); /* U+2500 */
            sm_print_repeated(out, " ", c + 1 < table->columns ? GAP : 0);
        }
        fputc('\n', out);
        for (size_t r = 0; r < table->rows; r++) draw_row(table, columns, table->cells[r], out);
    } else if (table->columns > 0) {
        /* The last resort: every row as a list of its fields. */
        column names = {0}, values = {0};
        for (size_t c = 0; c < table->columns; c++)
            names.width = larger(names.width, widest_part(table->heads[c], false));
        if (names.width > width / 2) names.width = width / 2;
        values.width = width - names.width - GAP;
        columns[0] = names;
        columns[1] = values;
        sm_align aligns[2] = {SM_LEFT, SM_LEFT};
        sm_table pair = {.columns = 2, .aligns = aligns};
        for (size_t r = 0; r < table->rows; r++) {
            if (r > 0) fputc('\n', out);
            for (size_t c = 0; c < table->columns; c++)
                draw_row(&pair, columns, (const char *[]){table->heads[c], table->cells[r][c]},
                         out);
        }
    }
    sm_free(columns);
    return SM_OK;
}
