/* report: a neutral answer: a JSON-like data tree (the contract of interface.md) beside the pages a
 * person reads (sections, lines, tables, bars) and derivation trees. Knows no file format but JSON
 * (json.h). */
#pragma once
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

/* ---- data tree: keys keep their order. It lies in the arena of its report, whose shorthand
 * (page.h) fills it. ---- */
typedef enum sm_data_kind {
    SM_DATA_NULL,
    SM_DATA_BOOL,
    SM_DATA_NUMBER,
    SM_DATA_STRING,
    SM_DATA_ARRAY,
    SM_DATA_OBJECT
} sm_data_kind;
typedef struct sm_data {
    sm_data_kind kind;
    const char *key; /* inside an object */
    double number;
    bool timed; /* a number that differs from run to run: where lines break does not depend on it */
    bool truth;
    const char *string;
    struct sm_data *first, *last; /* children of an array or object */
    struct sm_data *next;
} sm_data;
/* A new object without keys. NULL when out of memory. */
sm_data *sm_data_object(sm_arena *arena);
/* Append a value to an object under a key, which is copied and not compared with those there; to an
 * array where key is NULL. False when out of memory, or when parent or value is NULL or parent is
 * of the other kind. */
bool sm_data_put(sm_data *parent, sm_arena *arena, const char *key, sm_data *value);
/* The value under a key of an object. NULL if absent, or when it is no object. */
const sm_data *sm_data_get(const sm_data *object, const char *key);

/* ---- derivations: why a number is what it is. The same code that computes a value builds its
 * node. ---- */
typedef struct sm_why {
    const char *label;   /* what it is: "all-gather of W over fsdp" */
    const char *formula; /* "bytes / bandwidth", NULL for a leaf */
    double value;
    const char *unit; /* "s", "B", "FLOP", "FLOP/s", "" */
    const char
        *source; /* of a leaf: "cloud.google.com/tpu/docs/v5p", "calibration", "given"; else NULL */
    struct sm_why *first, *last, *next;
} sm_why;
/* Add an input to a derivation, after those there. Does nothing when either is NULL. */
void sm_why_add(sm_why *parent, sm_why *child);

/* ---- pages ---- */
typedef enum sm_align { SM_LEFT, SM_RIGHT } sm_align;
typedef struct sm_table {
    const char *title;
    size_t columns;
    const char **heads;
    const char **units; /* that numbers of a column are shown in, as sm_page_table has them */
    sm_align *aligns;
    size_t rows;
    int room;
    const char ***cells; /* cells[row][column], never NULL */
} sm_table;

typedef struct sm_bar_part {
    const char *label;
    double value;
} sm_bar_part;
typedef struct sm_bar {
    const char *title, *unit;
    double capacity;
    size_t n;
    const sm_bar_part *parts;
} sm_bar; /* memory by kind against capacity */

/* A chart of panels one above the other. Values are shown in the units of their axis ("s", "B",
 * "USD", ...: as sm_format_value does, "" a plain number). Points without a place (NaN, infinite,
 * not positive on a logarithmic axis) break the line. Stacked series share their x and are drawn
 * as areas, each on top of the one before.
 *
 * A panel with a diagonal is a log-log scatter plot of y against x in the same unit: a square over
 * the decades that the dots span, the line y = x, and the band from (1 - band) x to (1 + band) x.
 * Its series are dots and dashes; points outside are left out. */
typedef enum sm_mark {
    SM_MARK_LINE,
    SM_MARK_LINE_DOTS, /* marked at each point */
    SM_MARK_DOT,       /* of a panel with a diagonal, as is */
    SM_MARK_DASH       /* in grey, below the dots */
} sm_mark;
typedef enum sm_scale { SM_SCALE_LINEAR, SM_SCALE_LOG } sm_scale;
typedef struct sm_series {
    const char *name;
    sm_mark mark;
    size_t n;
    const double *x, *y;
    const double *area; /* of dots of a panel without a diagonal, the largest a fixed one; NULL:
                           all the same */
} sm_series;
typedef struct sm_panel {
    const char *title, *x_label, *y_label, *x_unit, *y_unit;
    sm_scale x_scale, y_scale;
    bool stacked;
    size_t n;
    const sm_series *series;
    bool diagonal;
    double band; /* of the diagonal; 0: none */
    const struct sm_tracks
        *tracks; /* instead of series: a timeline, bars, a heat map: a row a track */
} sm_panel;
typedef struct sm_chart {
    const char *title, *subtitle;
    size_t n;
    const sm_panel *panel;
} sm_chart;

/* A timeline: slices on tracks, and values over time, for viewers such as Perfetto. In a panel also
 * bars (slices from what they are measured from), and a heat map: the slice of column i spans i to
 * i + 1. */
typedef struct sm_slice {
    int track;
    const char *name, *category;
    double start_s, seconds;
} sm_slice;
typedef struct sm_counter {
    const char *name;
    double at_s, value;
} sm_counter;
typedef struct sm_tracks {
    const char *title;
    int n;
    const char *const *track; /* their names */
    size_t slices, counters;
    const sm_slice *slice;
    const sm_counter *counter;
    int columns; /* of a heat map; 0: it is none */
    const char *const *column;
    const double *shade; /* of each slice, 0 to 1, NAN grey; its name stands in it */
} sm_tracks;

typedef enum sm_block_kind {
    SM_BLOCK_HEADING,
    SM_BLOCK_TEXT,
    SM_BLOCK_LINES, /* a text as it stands, line by line */
    SM_BLOCK_TABLE,
    SM_BLOCK_BAR
} sm_block_kind;
typedef struct sm_block {
    sm_block_kind kind;
    const char *text;
    const sm_table *table;
    const sm_bar *bar;
    struct sm_block *next;
} sm_block;

typedef struct sm_report {
    sm_arena *arena;        /* owns everything in it */
    sm_data *data;          /* the JSON answer; an object */
    sm_block *first, *last; /* the page */
    sm_why *why;            /* --explain; NULL when not asked for */
    const sm_data *records; /* of data, what --csv has a line of each of; NULL: the page's tables */
    /* What a question asked for beside the page: pictures, a timeline, the text of a file. NULL
     * where it did not. */
    const sm_chart *chart;
    const sm_tracks *tracks;
    const char *file;
    /* What the answer keeps open for later questions, freed with it by `release`; NULL: nothing. */
    void *kept;
    void (*release)(void *kept);
    bool out_of_memory; /* some adder failed: the report must not be shown */
} sm_report;
/* An empty report with an arena and a data object of its own. NULL when out of memory. */
sm_report *sm_report_new(void);
/* Free the report and everything in it. NULL is fine. */
void sm_report_free(sm_report *report);
/* Room for n items that lives as long as the report, zero; NULL when memory is out, which the
 * report then knows. */
void *sm_report_room(sm_report *r, size_t n, size_t bytes);
/* Append a heading to the page, printf-like. Like the four below it does nothing when r is NULL,
 * and marks the report (out_of_memory) instead of failing. */
void sm_report_heading(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append a paragraph to the page, printf-like. */
void sm_report_text(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append lines that are not to be wrapped: a program, which another reader may take. Copied. */
void sm_report_lines(sm_report *r, const char *text);
/* Append a table, which must live as long as the report. NULL counts as out of memory. */
void sm_report_table(sm_report *r, const sm_table *table);
/* Append a bar of n parts against a capacity, all in `unit`. Everything is copied. */
void sm_report_bar(sm_report *r, const char *title, const char *unit, double capacity, size_t n,
                   const sm_bar_part *parts);
/* The chart of the report is a copy of this one, with its panels, series and numbers; texts and
 * tracks must live as long as the report. */
void sm_report_chart(sm_report *r, const sm_chart *chart);
SM_DECLARATIONS_END
