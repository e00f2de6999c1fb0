/* sweep: a question of a verb for every combination of values; what its parts share. */
#pragma once
#include "options.h"

enum {
    SWEEP_MOST_AXES = CLI_MAX_LIST,
    SWEEP_MOST_COLUMNS = 32,
    SWEEP_MOST_CELLS = SWEEP_MOST_AXES + SWEEP_MOST_COLUMNS + 2,
    SWEEP_MOST_VALUES = 1000000
};

/* Where a value goes in the command line that asks. */
typedef enum sweep_place {
    SWEEP_OPTION,   /* --batch VALUE */
    SWEEP_FLAG,     /* --eager, or not */
    SWEEP_ARGUMENT, /* before the words: MODEL */
    SWEEP_PLAN,     /* a key of --plan */
    SWEEP_MACHINE   /* a change of the system (sm_system_what_if) */
} sweep_place;
typedef struct sweep_axis {
    const char *key, *name; /* "plan.tensor" and "tensor" */
    sweep_place place;
    int n, room;
    const char **value;
} sweep_axis;
typedef struct sweep {
    const cli_verb *verb;
    int words;
    const char **word; /* what the questions have in common, without the verb and its --plan */
    const char *plan;  /* of --plan among them; NULL: none */
    const char *system_file;
    int axes;
    sweep_axis axis[SWEEP_MOST_AXES]; /* the last varies fastest */
    int64_t rows;
    int columns; /* paths into the data of an answer */
    const char *column[SWEEP_MOST_COLUMNS];
    sm_source asked;        /* the text of --columns; NULL: those of the verb */
    bool brief;             /* of an answer its best alone is looked at */
    sm_command_watch watch; /* of each question */
    cli_memo *memo;         /* of all */
} sweep;

/* What a verb that sweeps is given. */
typedef struct sweep_values {
    cli_list over;
    const char *columns, *output, *plot;
} sweep_values;
#define SWEEP_PLACES(member)                                                                       \
    AT("over", member.over), AT("columns", member.columns), AT("output", member.output),           \
        AT("plot", member.plot)

/* Cells of a row: the values of its axes, "yes", "no" or "refused", the columns, and why not. */
int sweep_cells(const sweep *s);
const char *sweep_head(const sweep *s, int cell);
/* The question of `words` over the axes of `over`. */
sm_status sweep_read(sweep *s, const cli_list *over, const char *columns, int words,
                     const char *const *word, sm_arena *arena, sm_error *err);
/* The same for a call, ready to be asked; sweep_end once all is asked. */
sm_status sweep_new(const cli_call *call, const cli_list *over, const char *columns, int words,
                    const char *const *word, sweep **out, sm_error *err);
void sweep_end(sweep *s);
/* Ask one question: the cells of its row, one after the other, each ended by a 0, in a block for
 * sm_free. A value that the verb refuses is a row; what is wrong with all of them is the error.
 * cells NULL: none; SM_BAD_INPUT when a key of --columns is none of the answer, with the nearest.
 */
sm_status sweep_ask(const sweep *s, int64_t row, char **cells, sm_error *err);
/* How many rows lie between two neighbouring values of an axis. */
int64_t sweep_stride(const sweep *s, int axis);
/* Where each of the cells of a row begins. */
void sweep_part(const sweep *s, const char *cells, const char **cell);

/* ---- the rows of a sweep, asked by threads, and by others, and taken in order ---- */
typedef struct sweep_taker {
    /* The cells of the next row, by one thread at a time. */
    sm_status (*take)(void *context, const char *cells, sm_error *err);
    void *context;
    bool terminal; /* tell how far it is on standard error */
} sweep_taker;
typedef struct sweep_spreading sweep_spreading;
typedef struct sweep_askers {
    int threads, others;
    /* Lets the others ask, until there are no more rows; NULL: there are none. */
    void (*hand_out)(void *context, sweep_spreading *p);
    void *context;
} sweep_askers;
/* Ask the questions from row `first` on. */
sm_status sweep_spread(const sweep *s, int64_t first, const sweep_askers *askers,
                       const sweep_taker *taker, sm_error *err);
/* The next rows that nobody has, from *row on, `most` of them at most: how many. 0: none as long as
 * rows before them are missing; -1: no more. */
int sweep_next(sweep_spreading *p, int most, int64_t *row);
/* The cells of some rows, one after the other, or why they could not be asked. */
void sweep_bring(sweep_spreading *p, int64_t row, int rows, const char *cells, sm_status status,
                 const sm_error *err);
/* How many bytes the cells of a row take. */
size_t sweep_cells_bytes(const sweep *s, const char *cells);
/* Answer what a call asks. */
sm_status sweep_run(const cli_call *call, const sweep_values *o, const sweep_askers *askers,
                    sm_report *r, sm_error *err);

/* ---- the rows of a sweep as a picture ---- */
typedef struct sweep_plot sweep_plot;
/* SM_USAGE when a picture cannot hold so many rows. All of it lives in the arena. */
sm_status sweep_plot_new(const sweep *s, sm_arena *arena, sweep_plot **out, sm_error *err);
/* The cells of a row; NULL is fine. */
void sweep_plot_put(sweep_plot *plot, int64_t row, const char *const *cell);
/* Draw it into r->chart: a panel a column of numbers, the first two, or of --columns the first
 * four. Lines over the longest axis of numbers, one for each combination of the others; bars, or a
 * heat map, where there is none or there would be too many lines. */
sm_status sweep_plot_draw(const sweep_plot *plot, sm_report *r, sm_error *err);

/* ---- the rows of a sweep as a file of CSV that survives whoever writes it ---- */
typedef struct sweep_file sweep_file;
/* Begin the file, or go on with what an interrupted sweep of the same questions has left there;
 * *rows: that it holds, which go to the plot, NULL or not. FILE.sweep says which questions they are
 * until all are answered. SM_IO when it is another sweep's, or cannot be written. Its texts live in
 * the arena. */
sm_status sweep_file_open(const char *path, const sweep *s, sweep_plot *plot, sm_arena *arena,
                          sweep_file **out, int64_t *rows, sm_error *err);
sm_status sweep_file_put(sweep_file *f, const char *const *cell, sm_error *err);
/* all: every row is there. NULL is fine. */
sm_status sweep_file_close(sweep_file *f, bool all, sm_error *err);
