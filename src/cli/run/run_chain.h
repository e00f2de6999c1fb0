/* run_chain: what `run matmul` does with more than two operands, and with lines. */
#pragma once
#include "prediction.h"

typedef struct run_chain_question {
    const sm_placed_mesh *m;
    sm_source text, dims;
    const sm_einsum *einsum; /* NULL: the text is lines */
    sm_dtype dtype;
    sm_element element;
    const sm_calibration *calibration;
    const timing_values *timing;
    int directions;
} run_chain_question;
sm_status run_chain(const cli_call *call, sm_report *r, const run_chain_question *q, sm_error *err);
