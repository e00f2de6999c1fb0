/* A report as the page a person reads in a terminal. */
#include "columns.h"
#include <assert.h>
#include <math.h>

#define NARROWEST_PAGE 24

/* A bar of parts against a capacity, one line a part: each begins where the one above ended, so
 * that the lines together are one stacked bar. The capacity is a vertical line; what lies beyond it
 * is drawn lighter. */

#define FULL "\xE2\x96\x88" /* U+2588 */
#define OVER "\xE2\x96\x92" /* U+2592 */
#define EDGE "\xE2\x94\x82" /* U+2502 */
#define MOST_LABEL 24
#define VALUE_WIDTH 9 /* "9.99 TB/s" */
#define FRAME 6       /* indentation, gaps and the capacity line */

typedef struct scale {
    double most;  /* value at the right end */
    int cells;    /* columns of the bar */
    int capacity; /* cell at which the capacity line stands; -1 for none */
} scale;

static double positive(double value) { return isfinite(value) && value > 0 ? value : 0; }

static int cell_of(const scale *s, double value) {
    return s->most > 0 ? (int)lround(value / s->most * s->cells) : 0;
}

/* Wide enough for every label, but half the room is the bar's. */
static int label_width(const sm_bar *bar, int room) {
    int width = 0, most = room / 2 < MOST_LABEL ? room / 2 : MOST_LABEL;
    for (size_t i = 0; i < bar->n; i++) {
        int columns = sm_columns_of(bar->parts[i].label, strlen(bar->parts[i].label));
        if (columns > width) width = columns;
    }
    return width < most ? width : most;
}

static void draw_bar(const sm_bar *bar, int width, FILE *out) {
    double total = 0, from = 0;
    for (size_t i = 0; i < bar->n; i++) total += positive(bar->parts[i].value);
    char sum[64], capacity[64], share[64], line[256];
    sm_format_value(sum, sizeof sum, total, bar->unit);
    if (positive(bar->capacity) > 0)
        snprintf(line, sizeof line, "%.*s: %s of %s (%s)", 100, bar->title, sum,
                 sm_format_value(capacity, sizeof capacity, bar->capacity, bar->unit),
                 sm_format_percent(share, sizeof share, total / bar->capacity));
    else snprintf(line, sizeof line, "%.*s: %s", 100, bar->title, sum);
    sm_print_wrapped(out, line, width, "", "  ");
    int room = width - VALUE_WIDTH - FRAME, labels = label_width(bar, room);
    double most = positive(bar->capacity);
    scale s = {most > total ? most : total, room - labels, -1};
    if (most > 0) s.capacity = cell_of(&s, most);
    assert(labels >= 0);
    for (size_t i = 0; i < bar->n; i++) {
        char value[64];
        double to = from + positive(bar->parts[i].value);
        fputs("  ", out);
        size_t next = 0,
               n = sm_next_line(bar->parts[i].label, strlen(bar->parts[i].label), labels, &next);
        sm_print_text(out, bar->parts[i].label, n);
        sm_print_repeated(out, " ", labels - sm_columns_of(bar->parts[i].label, n));
        sm_format_value(value, sizeof value, bar->parts[i].value, bar->unit);
        fprintf(out, "  %*s ", VALUE_WIDTH, value);
        int first = cell_of(&s, from), last = cell_of(&s, to);
        if (to > from && last == first) first == s.cells ? first-- : last++; /* never invisible */
        int end = last > s.capacity ? last : s.capacity;
        for (int cell = 0; cell <= end; cell++) {
            if (cell == s.capacity) fputs(EDGE, out);
            if (cell == end) break;
            bool inside = cell >= first && cell < last,
                 over = s.capacity >= 0 && cell >= s.capacity;
            fputs(inside ? (over ? OVER : FULL) : " ", out);
        }
        fputc('\n', out);
        from = to;
    }
}

/* Tables as text: columns two blanks apart, a rule under the heads. A table too wide gives up width
 * in this order: heads wrap between words, then at their points (step_time_s.expected), then text
 * columns wrap from the last on, then each row becomes a list of "head  value" lines. */

#define GAP 2
#define NARROWEST_TEXT 12 /* a text column is not wrapped below this */

typedef struct column {
    int width;
    int cell_width; /* of its widest cell */
    int head_word;  /* of the longest word of its head */
    int head_part;  /* of the longest part of its head that no blank and no point divides */
    size_t at;      /* bytes of the current cell already drawn */
} column;

/* Widest of the parts of text that these characters end; a point belongs to what it ends. */
static int widest_part(const char *text, const char *ends) {
    int widest = 0;
    for (const char *from = text;; from++) {
        size_t n = strcspn(from, ends);
        int width = sm_columns_of(from, n + (from[n] == '.'));
        if (width > widest) widest = width;
        from += n;
        if (*from == '\0') return widest;
    }
}

static void measure_columns(const sm_table *table, column *columns) {
    for (size_t c = 0; c < table->columns; c++) {
        column *col = &columns[c];
        for (size_t r = 0; r < table->rows; r++) {
            int width = widest_part(table->cells[r][c], "\n");
            if (width > col->cell_width) col->cell_width = width;
        }
        int head = widest_part(table->heads[c], "\n");
        col->head_word = widest_part(table->heads[c], " \n");
        col->head_part = widest_part(table->heads[c], " .\n");
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
        excess = narrow(&columns[c], larger(columns[c].cell_width, columns[c].head_part), excess);
    for (size_t c = table->columns; c-- > 0 && excess > 0;)
        if (table->aligns[c] == SM_LEFT)
            excess = narrow(&columns[c], larger(NARROWEST_TEXT, columns[c].head_part), excess);
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

static sm_status draw_table(const sm_table *table, int width, FILE *out, sm_error *err) {
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
            names.width = larger(names.width, widest_part(table->heads[c], "\n"));
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

/* Derivation trees as text:   step time 2.19 s = max(math, network)   ├─ math 2.19 s = FLOPs /
 * speed   │  └─ peak 459 TFLOP/s [datasheet] */

#define TEE "\xE2\x94\x9C\xE2\x94\x80 "    /* U+251C U+2500 */
#define CORNER "\xE2\x94\x94\xE2\x94\x80 " /* U+2514 U+2500 */
#define BAR "\xE2\x94\x82  "               /* U+2502 */
#define BLANK "   "
#define INDENT 3 /* columns of each of them */
#define ROOM_FOR_TEXT 24
#define MOST_LEVELS 64

typedef struct drawing {
    sm_arena *arena; /* for prefixes and lines */
    FILE *out;
    int width, levels; /* levels: deeper nodes are only counted */
} drawing;

/* One node and all below. `first` leads its first line, `rest` the lines after and its children. */
static bool draw_node(const drawing *d, const sm_why *why, const char *first, const char *rest,
                      int level) {
    char value[128];
    sm_format_value(value, sizeof value, why->value, why->unit != NULL ? why->unit : "");
    const char *label = why->label != NULL ? why->label : "";
    const char *line = sm_arena_printf(
        d->arena, "%s %s%s%s%s%s%s", label, value, why->formula != NULL ? " = " : "",
        why->formula != NULL ? why->formula : "", why->source != NULL ? " [" : "",
        why->source != NULL ? why->source : "", why->source != NULL ? "]" : "");
    const char *hang = sm_arena_printf(d->arena, "%s%s", rest, why->first != NULL ? BAR : BLANK);
    if (line == NULL || hang == NULL) return false;
    sm_print_wrapped(d->out, line, d->width, first, hang);
    if (why->first != NULL && level >= d->levels) {
        fprintf(d->out, "%s" CORNER "...\n", rest);
        return true;
    }
    for (const sm_why *child = why->first; child != NULL; child = child->next) {
        bool last = child->next == NULL;
        const char *lead = sm_arena_printf(d->arena, "%s%s", rest, last ? CORNER : TEE);
        const char *below = sm_arena_printf(d->arena, "%s%s", rest, last ? BLANK : BAR);
        if (lead == NULL || below == NULL || !draw_node(d, child, lead, below, level + 1))
            return false;
    }
    return true;
}

static void draw_heading(const char *text, int width, FILE *out) {
    sm_print_wrapped(out, text, width, "", "");
    int columns = sm_columns_of(text, strlen(text));
    sm_print_repeated(out, "\xE2\x95\x90", columns < width ? columns : width); /* U+2550 */
    fputc('\n', out);
}

/* Paragraphs keep the blanks they begin with, on every line. */
static void draw_text(const char *text, int width, FILE *out) {
    char indent[16] = "";
    size_t blanks = strspn(text, " ");
    if (blanks >= sizeof indent || (int)blanks > width / 2) blanks = 0;
    memset(indent, ' ', blanks);
    indent[blanks] = '\0';
    sm_print_wrapped(out, text + blanks, width, indent, indent);
}

static sm_status draw_block(const sm_block *block, int width, FILE *out, sm_error *err) {
    switch (block->kind) {
    case SM_BLOCK_HEADING: draw_heading(block->text, width, out); return SM_OK;
    case SM_BLOCK_TEXT: draw_text(block->text, width, out); return SM_OK;
    case SM_BLOCK_LINES: fputs(block->text, out); return SM_OK;
    case SM_BLOCK_TABLE: return draw_table(block->table, width, out, err);
    case SM_BLOCK_BAR: draw_bar(block->bar, width, out); return SM_OK;
    }
    return SM_OK;
}

/* A blank line stands between blocks, but not under a heading or between lines of text. */
static bool apart(const sm_block *above, const sm_block *below) {
    if (above->kind == SM_BLOCK_HEADING) return false;
    return above->kind != SM_BLOCK_TEXT || below->kind != SM_BLOCK_TEXT;
}

sm_status sm_render_text(const sm_report *report, int width, FILE *out, sm_error *err) {
    if (report->out_of_memory) return sm_fail_memory(err);
    if (width <= 0) width = 80;
    if (width < NARROWEST_PAGE) width = NARROWEST_PAGE;
    sm_status status = SM_OK;
    for (const sm_block *block = report->first; !status && block; block = block->next) {
        status = draw_block(block, width, out, err);
        if (!status && block->next && apart(block, block->next)) fputc('\n', out);
    }
    if (!status && report->why) {
        if (report->first) fputc('\n', out);
        draw_heading("Why", width, out);
        drawing d = {sm_arena_new(), out, width, (width - ROOM_FOR_TEXT) / INDENT};
        if (d.levels > MOST_LEVELS) d.levels = MOST_LEVELS;
        bool drawn = d.arena != NULL && draw_node(&d, report->why, "", "", 0);
        sm_arena_free(d.arena);
        status = drawn ? SM_OK : sm_fail_memory(err);
    }
    return status ? status : sm_finish_stream(out, err);
}
