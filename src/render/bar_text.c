/* A bar of parts against a capacity, one line a part: each begins where the one above ended, so
 * that the lines together are one stacked bar. The capacity is a vertical line; what lies beyond
 * it is drawn lighter. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "blocks.h"
#include "columns.h"

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

void sm_draw_bar(const sm_bar *bar, int width, FILE *out) {
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
