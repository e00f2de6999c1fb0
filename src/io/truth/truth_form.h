/* truth_form: a measured row as it stands in a file, whether a line of CSV or of JSON: its values
 * by the fields of the schema, and its places for errors. Private to src/io. */
#pragma once
#include "scalemodel/io.h"
#include "truth_schema.h"

typedef enum truth_cell_kind {
    CELL_NONE,   /* absent, empty or null: not stated */
    CELL_RAW,    /* of CSV: a text that may spell a number or a flag */
    CELL_TEXT,   /* of JSON from here on */
    CELL_NUMBER, /* number; whole ones exact to 2^53 */
    CELL_FLAG,   /* yes */
    CELL_OTHER   /* a list of other things than texts, or an object */
} truth_cell_kind;
typedef struct truth_cell {
    truth_cell_kind kind;
    const char *text; /* for as long as the row is read; for errors also of numbers and flags */
    double number;
    bool yes, list; /* list: of texts, joined in text by one space */
} truth_cell;

/* A file of rows of one form. */
typedef struct truth_file {
    const sm_source *source;
    sm_arena *arena, *row; /* of what is kept; of the cells of the row under reading */
    sm_texts *texts;       /* that rows hold, each once */
    sm_error *err;
    const truth_schema *schema;
    const sm_truth_given *given;   /* what rows do not state; NULL: nothing */
    const struct truth_tool *tool; /* whose result the row under reading is; NULL: a row */
    int line;                      /* of the row under reading */
    const void *form;              /* private to the form */
    /* The value of a field in this row; fails only for lack of memory. */
    sm_status (*cell)(const struct truth_file *f, size_t field, truth_cell *out);
    /* An error at the value of a field, or at the row when it has none. */
    sm_status (*fail)(const struct truth_file *f, size_t field, const char *sentence);
} truth_file;

/* Rows as they come, growing; where they are folded, by their configurations. */
typedef struct truth_group {
    int n;
    uint32_t first, *place; /* of its rows; NULL: there is the first alone */
} truth_group;
typedef struct truth_rows {
    sm_truth_row *row;
    size_t n, room, read; /* read: with those that were folded */
    sm_numbers places;    /* of groups by the hash of their configuration */
    truth_group *group;
    int groups, group_room;
} truth_rows;

enum { FOLDED = -1 }; /* sm_truth_row.alike of a row whose place is free */
/* Fold a row into those of its configuration: *at is its place among the rows, or rows->n where it
 * needs a new one; *id is set where so many are there that it goes by the name of the first.
 * SM_INTERNAL when out of memory. */
sm_status truth_fold(const truth_file *f, truth_rows *rows, const sm_truth_row *row, size_t *at,
                     const char **id);

/* Read the row under reading and append it. */
sm_status truth_row_read(truth_file *f, truth_rows *rows);
/* The two forms: append every row of the source; *kind from its header or first row. */
sm_status truth_csv_read(truth_file *f, truth_rows *rows);
sm_status truth_json_read(truth_file *f, truth_rows *rows);
/* The schema whose signs are all present, or NULL. */
const truth_schema *truth_recognise(bool (*has)(const void *where, const char *key),
                                    const void *where);
const truth_schema *truth_schema_of(sm_truth_kind kind);
/* What a header or a row must name, for errors: "m, n, k (gemm); q_len, kv_len (attention); ..." */
const char *truth_known_kinds(char *out, size_t size);
