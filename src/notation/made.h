/* made: an architecture while and after it is made, and its lines while they are. Private to
 * src/notation. */
#pragma once
#include "frames.h"

#include <math.h>

enum {
    MADE_MOST_LAYERS = 2048,
    MADE_MOST_PIECES = 8192,
    MADE_MOST_KINDS = 256,
    MADE_MOST_TEXTS = 64,
    MADE_MOST_CALLS = 16,
    MADE_MOST_LINES = 2000,
    MADE_MOST_TERMS = 64
};

/* What lines of one kind need to know. */
typedef struct made_kind {
    int first, count; /* pieces */
    const tree_text *text;
    const frame *frame;
    const stack_plan *stack;
    binding *binding; /* all known */
    int names;        /* in the lines of what it reaches: calls, arrays of pieces */
    const char **name;
    double total, active; /* parameters of one piece */
    double matmul;        /* parameters that do 2 FLOPs for a token */
} made_kind;

/* What all kinds together say of an array of one: how far back the readers of a cache look (0: to
 * the start), how many copies of a shared weight there are for each layer that uses it. */
typedef struct made_note {
    int kind;
    const char *array;
    double value;
    struct made_note *next;
} made_note;

struct sm_architecture {
    const sm_library *library;
    sm_arena *arena;
    sm_source source;
    json_document document;
    const json_value *root;
    const frame *main;
    int pieces, kinds;
    sm_model_piece *piece;
    made_kind *kind;
    made_note *note;
    sm_counts counts;
    sm_padding padding;
    int aparts;
    struct made_apart {
        const char *name;
        double params;
    } * apart;
};

/* The latest piece of this name before piece `before`; -1: none. */
int made_find_piece(const sm_architecture *a, const char *name, int before);

/* ---- lines under way ---- */
/* An array by its name in one text. */
typedef struct line_name {
    const char *name;
    int array;
    uint8_t dim[SM_TEXT_MOST_RANK]; /* letters that a bare mention has */
    struct line_name *next;
} line_name;

typedef struct line_option {
    const char *name;
    value value;
    struct line_option *next;
} line_option;

/* A text that is being inlined. */
typedef struct line_call {
    const tree_text *text;
    const char *path; /* before the names of its weights: "mixer." */
    const char *label;
    int part;      /* which of the calls of the piece's own text it is within; 0: none */
    double shared; /* copies in the whole model; 0: none */
    int depth;
    line_name *names;
    line_option *options;
    const struct line_call *caller;
} line_call;

/* Beside an array and a line: what counts are made of. */
typedef struct line_origin {
    const char *base, *path;
    int part;
} line_origin;

typedef struct line_maker {
    const sm_architecture *a;
    const made_kind *kind;
    sm_text_lines_of of;
    sm_arena *arena;
    sm_error *err;
    int steps;
    family_scope sizes;
    double T, S; /* of its stack */
    sm_text_dim dim[SM_TEXT_MOST_DIMS];
    bool foreign[SM_TEXT_MOST_DIMS]; /* of another piece, where the letter has another size */
    int dims, arrays, lines, kernels, room_arrays, room_lines, room_kernels;
    sm_text_array *array;
    line_origin *array_origin;
    sm_text_line *line;
    sm_text_kernel *kernel;
    int parts, in_kernel, input, output;
    line_name *exported;         /* by name within the piece: "mixer.kc" */
    bool whole;                  /* all of its lines are made */
    struct line_maker **of_kind; /* lines of other kinds that this one refers to */
} line_maker;

/* The lines of a kind, for what `of` says, into of_kind[of->kind]; those of kinds that it refers to
 * are made beside them, unless they are there. */
sm_status line_make(const sm_architecture *a, const sm_text_lines_of *of, sm_arena *arena,
                    line_maker **of_kind, sm_error *err);
/* The matrix FLOPs, vector FLOPs and mean keys of a line. */
void line_work(const line_maker *m, sm_text_line *line);
/* What is noted of an array of this kind, 0: nothing. */
double line_noted(const line_maker *m, const char *array);
double line_elements(const line_maker *m, int rank, const uint8_t *dim);
/* Counts of all kinds, from their lines. */
sm_status made_count(sm_architecture *a, sm_error *err);
