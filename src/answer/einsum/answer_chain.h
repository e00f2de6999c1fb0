/* answer_chain: the best plan of a chain of einsums, told as matmul tells one. Private to
 * src/answer/einsum. */
#pragma once
#include "lowering_rows.h"

typedef struct chain_asked {
    const sm_placed_mesh *m;
    const sm_chain *chain;
    const sm_calibration *calibration;
    sm_dtype compute;
    const char *text; /* as it was asked */
    int top;          /* rows of a list; 0: 8 on the page, all in the data */
    bool explain;
} chain_asked;
/* SM_NEGATIVE when no assignment of the axes divides the sizes. */
sm_status chain_answer(const chain_asked *q, sm_report *r, sm_error *err);
