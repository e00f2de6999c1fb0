/* line_draft: a line being put together. Private to src/notation. */
#pragma once
#include "line_arrays.h"

enum { MOST_OPERANDS = 2 * SM_OPERATOR_MOST_ARGUMENTS };
typedef struct draft {
    line_call *call;
    const tree_line *from;
    const tree *const *target;
    int targets;
    sm_text_line line;
    sm_mention operand[MOST_OPERANDS];
    sm_term term[MADE_MOST_TERMS];
    double work; /* vector FLOPs of an expression */
} draft;

typedef struct shape {
    int rank;
    uint8_t dim[SM_TEXT_MOST_RANK];
    uint32_t leaves; /* operands that it is made of */
} shape;

typedef struct callee {
    const tree_text *text;
    int op; /* -1: it is a text */
} callee;

/* An option of the text, by its name; NULL: it has none of it. */
const value *line_option_of(const line_call *c, const char *name);
/* What a name that is called stands for in a text: an option, what the family binds, a text, an
 * operator. */
sm_status line_resolve(const line_maker *m, const line_call *c, const tree *t, callee *out);
/* A line of its own for a value that calls no text; *array is its first result. */
sm_status line_draft_make(line_maker *m, draft *d, const tree *value, const char *base, int *array);
/* The shape of a target: as written, as before, or as it follows from the value (NULL: it does
 * not). */
sm_status line_target_shape(line_maker *m, draft *d, const tree *t, const shape *follows,
                            shape *out);
/* How often weights of a line stand in the whole model: as its attributes or its call say; 0: in
 * every layer. */
sm_status line_copies_of(line_maker *m, const line_call *c, const tree_attribute *attributes,
                         double *out);
