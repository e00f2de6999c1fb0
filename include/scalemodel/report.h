/* report: a neutral answer: a JSON-like data tree (the contract of interface.md) beside the pages a
 * person reads (sections, lines, tables, bars) and derivation trees. Knows no file format but JSON
 * (json.h). */
#ifndef SCALEMODEL_REPORT_H
#define SCALEMODEL_REPORT_H
#include "scalemodel/base.h"
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

/* ---- data tree: keys keep their order. All constructors take the arena that owns the tree and
 * return NULL when out of memory; all adders accept NULL and then return false. ---- */
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
    bool truth;
    const char *string;
    struct sm_data *first, *last; /* children of an array or object */
    struct sm_data *next;
} sm_data;
sm_data *sm_data_object(sm_arena *arena);
sm_data *sm_data_array(sm_arena *arena);
sm_data *sm_data_string(sm_arena *arena, const char *text); /* copies */
sm_data *sm_data_number(sm_arena *arena, double value);     /* NaN and infinity become null */
sm_data *sm_data_bool(sm_arena *arena, bool truth);
bool sm_data_put(sm_data *object, sm_arena *arena, const char *key,
                 sm_data *value); /* key is copied */
bool sm_data_put_number(sm_data *object, sm_arena *arena, const char *key, double value);
bool sm_data_put_string(sm_data *object, sm_arena *arena, const char *key, const char *text);
bool sm_data_put_bool(sm_data *object, sm_arena *arena, const char *key, bool truth);
bool sm_data_push(sm_data *array, sm_data *value);
const sm_data *sm_data_get(const sm_data *object, const char *key); /* NULL if absent */

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
sm_why *sm_why_node(sm_arena *arena, const char *label, const char *formula, double value,
                    const char *unit);
sm_why *sm_why_leaf(sm_arena *arena, const char *label, double value, const char *unit,
                    const char *source);
void sm_why_add(sm_why *parent, sm_why *child); /* either may be NULL */

/* ---- pages ---- */
typedef enum sm_align { SM_LEFT, SM_RIGHT } sm_align;
typedef struct sm_table {
    const char *title;
    size_t columns;
    const char **heads;
    sm_align *aligns;
    size_t rows, room;
    const char ***cells; /* cells[row][column], never NULL */
} sm_table;
sm_table *sm_table_new(sm_arena *arena, const char *title, size_t columns, const char *const *heads,
                       const sm_align *aligns);
bool sm_table_row(sm_table *table, sm_arena *arena, const char *const *cells); /* copies */

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
} sm_series;
typedef struct sm_panel {
    const char *title, *x_label, *y_label, *x_unit, *y_unit;
    sm_scale x_scale, y_scale;
    bool stacked;
    size_t n;
    const sm_series *series;
    bool diagonal;
    double band; /* of the diagonal; 0: none */
} sm_panel;
typedef struct sm_chart {
    const char *title, *subtitle;
    size_t n;
    const sm_panel *panel;
} sm_chart;

/* A timeline: slices on tracks, and values over time, for viewers such as Perfetto. */
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
} sm_tracks;

typedef enum sm_block_kind {
    SM_BLOCK_HEADING,
    SM_BLOCK_TEXT,
    SM_BLOCK_TABLE,
    SM_BLOCK_BAR,
    SM_BLOCK_WHY
} sm_block_kind;
typedef struct sm_block {
    sm_block_kind kind;
    const char *text;
    const sm_table *table;
    const sm_bar *bar;
    const sm_why *why;
    struct sm_block *next;
} sm_block;

typedef struct sm_report {
    sm_arena *arena;        /* owns everything in it */
    sm_data *data;          /* the JSON answer; an object */
    sm_block *first, *last; /* the page */
    sm_why *why;            /* --explain; NULL when not asked for */
    /* What a question asked for beside the page: pictures, a timeline, the text of a file. NULL
     * where it did not. */
    const sm_chart *chart;
    const sm_tracks *tracks;
    const char *file;
    bool out_of_memory;     /* some adder failed: the report must not be shown */
} sm_report;
sm_report *sm_report_new(void);
void sm_report_free(sm_report *report);
void sm_report_heading(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sm_report_text(sm_report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sm_report_table(sm_report *r, const sm_table *table);
void sm_report_bar(sm_report *r, const char *title, const char *unit, double capacity, size_t n,
                   const sm_bar_part *parts);
void sm_report_why(sm_report *r, const sm_why *why);
SM_DECLARATIONS_END
#endif
