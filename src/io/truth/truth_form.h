/* truth_form: a measured row as it stands in a file, whether a line of CSV or of JSON: its values
 * by the fields of the schema, and its places for errors. Private to src/io. */
#pragma once
#include "file_parts.h"
#include "json_tree.h"
#include "scalemodel/io.h"
#include "scalemodel/page.h"

#include <math.h>

/* The columns and keys of the files of measured rows, one list per kind, and the row
 * under reading that they are laid into. Private to src/io; docs/truth-data.md is its manual. */
/* What a value may be, and what stands for "not stated". */
typedef enum truth_type {
    TRUTH_TEXT,   /* const char *; "" */
    TRUTH_LABEL,  /* as text; an object in its place is passed over */
    TRUTH_WORDS,  /* const char *: a list of texts, joined by one space; "" */
    TRUTH_NUMBER, /* double, at least 0; NAN */
    TRUTH_TIME,   /* double, above 0; NAN */
    TRUTH_SIZE,   /* double, a whole number from 1; NAN */
    TRUTH_COUNT,  /* int, at least 0; 0 */
    TRUTH_STAGE,  /* int, at least 0; -1 */
    TRUTH_FLAG    /* sm_stated; SM_UNSTATED */
} truth_type;

/* A row and the printed figures it is made from. */
typedef struct truth_draft {
    sm_truth_row row;
    const char *label; /* a source that is a plain text */
    double time_from_tokens_s, time_from_flops_s, peak_gib, peak_gb;
} truth_draft;

typedef struct truth_field {
    const char *key; /* of a nested JSON object with dots, as in "model.layers" */
    truth_type type;
    size_t offset; /* in truth_draft */
    double times;  /* of a number: what it is multiplied by to lie there; 0: 1 */
    bool same;     /* rows that speak of one configuration have it alike */
} truth_field;

enum { TRUTH_MAX_SIGNS = 3 };

typedef struct truth_schema {
    sm_truth_kind kind;
    const char *sign[TRUTH_MAX_SIGNS + 1]; /* keys that tell the kind; NULL ends */
    const char *needed;                    /* one more that a CSV header must name, or NULL */
    const truth_field *field;
    size_t n; /* TRUTH_MAX_FIELDS at most */
} truth_schema;

enum { TRUTH_MAX_FIELDS = 96 };

/* Of data/formats/rows.json, in the order in which a file is tried against them. */
extern const truth_schema rows_schemas[SM_TRUTH_KIND_COUNT];

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
    const char *name;
    const sm_source *source; /* all of it; NULL: lines are read one by one */
    sm_arena *arena, *row;   /* of what is kept; of the cells of the row under reading */
    sm_texts *texts;         /* that rows hold, each once */
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
/* The forms: append every row of the source, or of lines; the kind from its header or first row. */
sm_status truth_csv_read(truth_file *f, truth_rows *rows);
sm_status truth_json_read(truth_file *f, truth_rows *rows);
sm_status truth_json_lines(truth_file *f, line_reader *lines, truth_rows *rows);
/* The schema whose signs are all present, or NULL. */
const truth_schema *truth_recognise(bool (*has)(const void *where, const char *key),
                                    const void *where);
const truth_schema *truth_schema_of(sm_truth_kind kind);
/* A draft of that kind that states nothing, its padding 0: equal rows are equal bytes. */
void truth_draft_blank(truth_draft *draft, sm_truth_kind kind);
/* The row as a line of JSON, of *n bytes; same: what its configuration is alone. */
sm_status truth_row_line(const sm_truth_row *row, bool same, sm_arena *arena, char **line,
                         size_t *n, sm_error *err);
/* What a header or a row must name, for errors: "m, n, k (gemm); q_len, kv_len (attention); ..." */
const char *truth_known_kinds(char *out, size_t size);

/* ---- result files of AIPerf, `vllm bench serve` and InferenceX as rows of inference.
 * ---- */
typedef struct truth_tool {
    const char *name, *title, *sign[3];
} truth_tool;
/* Of data/formats/benchmarks.json, which says what each is. */
typedef struct tool_field {
    const char *tool, *key, *at;
    double times;
    const char *over, *plus, *says, *only;
} tool_field;
extern const truth_tool benchmarks_tools[];
extern const tool_field benchmarks_columns[];
extern const size_t benchmarks_tools_count, benchmarks_columns_count;
/* The tool whose result this is; NULL: none that is known. */
const truth_tool *truth_tool_of(const json_value *object);
/* A column of the row that it comes to. A key of a column that stands in the file itself, as
 * `--metadata chips=8` writes it, is taken where the tool says nothing. SM_INTERNAL when out of
 * memory. */
sm_status truth_tool_cell(const truth_tool *tool, const json_value *object, const char *key,
                          sm_arena *arena, sm_error *err, truth_cell *out);

/* ---- what is read without error and yet looks wrong ---- */
typedef struct truth_warnings {
    sm_report r;               /* of which the arena alone is used, and whether memory ran out */
    sm_truth_warning *warning; /* grows; to be freed with sm_free */
    size_t n, room;
} truth_warnings;

/* Note a text about a row; where memory runs out it is lost. */
void truth_note(truth_warnings *w, const sm_truth_row *row, const char *text);
#define truth_warn(w, row, ...) truth_note((w), (row), sm_textf(&(w)->r, __VA_ARGS__))
/* One row against the chip's datasheet and against itself. */
void truth_suspect_row(truth_warnings *w, const sm_truth_row *row);
/* Rows against each other: the same id, the same configuration with times far apart. */
void truth_suspect_twins(truth_warnings *w, const sm_truth_row *row, size_t n);

/* Work that no kernel of the row's kind can do without, on one chip. */
typedef struct truth_work {
    double flops, bytes;             /* of matrix units; of device memory or of links */
    double flops_per_s, bytes_per_s; /* the most that the chip has; 0: unknown */
} truth_work;
