/* matmul_words: a lowering in words: what each mesh axis meets, and what each step does. */
#ifndef SCALEMODEL_CLI_MATMUL_WORDS_H
#define SCALEMODEL_CLI_MATMUL_WORDS_H
#include "scalemodel/page.h"
#include "scalemodel/lowering.h"

/* "X: both operands are sharded along the contracted J (case 3): partial sums, reduce-scatter onto
 * K" */
const char *cli_axis_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                           const sm_lowering *lowering, int axis);
/* "all-gather B over X", "einsum", "reduce-scatter C over X onto K" */
const char *cli_step_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                           const sm_step *step);
/* All steps: "all-gather B over X, einsum"; the one that is overlapped says so. */
const char *cli_lowering_words(sm_report *r, const sm_einsum *einsum, const sm_mesh *mesh,
                               const sm_lowering *lowering, int overlapped);
/* How the expected time comes from the steps: "sum of the steps", or that of an overlapped one. */
const char *cli_cost_formula(sm_report *r, const sm_lowering_cost *cost);
/* The name of an operand (or of the output, -1): as written, otherwise "operand 1". */
const char *cli_array_name(sm_report *r, const sm_einsum *einsum, int array);
#endif
