/* lowering_rows: a step of a lowering as data, as a row, as a derivation. Private to
 * src/answer/einsum. */
#pragma once
#include "scalemodel/answer.h"
#include "scalemodel/answer_words.h"

typedef struct lowering_shown {
    const sm_einsum *einsum;
    const sm_mesh *mesh;
    const sm_alternative *way;
    const char *product; /* what the einsum itself is called on the page */
} lowering_shown;
/* Is the step the einsum of an array that only moves? Pages leave it out. */
bool lowering_is_idle(const sm_alternative *way, int s);
void lowering_put_step(sm_report *r, sm_data *steps, const lowering_shown *l, int s);
/* A step as a row of a table with these heads, the last a note. */
#define LOWERING_STEP_HEADS "<step|>{B}bytes|>{s}lower|>{s}expected|<"
void lowering_step_row(sm_report *r, sm_table *table, const lowering_shown *l, int s);
/* A collective with what makes its bound; its expected time adds latency and efficiency. */
void lowering_why_collective(sm_report *r, sm_why *to, const lowering_shown *l, int s);
/* What a way costs a chip. */
typedef struct lowering_totals {
    double flops, wire_bytes, peak_bytes; /* wire_bytes NAN: not told */
    double math_s, memory_s, network_s, lower_s, expected_s, upper_s;
    const char *flops_of, *expected_as;
} lowering_totals;
/* A table of them, and what bounds the way; its times in the data, and the bound. */
void lowering_total_rows(sm_report *r, const lowering_totals *t);
void lowering_put_totals(sm_report *r, sm_data *object, const lowering_totals *t);

/* The best plan of a chain of einsums, told as matmul tells one. Private to
 * src/answer/einsum. */
typedef struct chain_asked {
    const sm_matmul_question *in; /* top 0: 8 rows of a list on the page, all in the data */
    const sm_placed_mesh *m;
    const sm_chain *chain;
    sm_dtype compute;
    const char *text; /* as it was asked */
} chain_asked;
/* SM_NEGATIVE when no assignment of the axes divides the sizes. */
sm_status chain_answer(const chain_asked *q, sm_report *r, sm_error *err);
