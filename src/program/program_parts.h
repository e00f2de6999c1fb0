/* Private to program: pieces that the builders and the partition share. */
#pragma once
#include "scalemodel/architecture.h"
#include "scalemodel/program.h"

/* ---- execution_rules.c: a program that is built becomes that of its software ---- */
void program_fit_software(sm_program *b);

/* ---- what the expression of a line computes (line_function.c) ---- */
sm_function program_function_of(const sm_text_line *line);
/* Its first operand times what is made of the others. */
bool program_scales_first(const sm_text_line *line);

/* ---- storage (storage.c) ---- */
sm_dimensions program_dims(const sm_tensor *t);
static inline bool program_has(const sm_program *b, sm_dimensions dims, sm_dimension_role role) {
    return (dims & b->of_role[role]) != 0;
}
/* The first of a role among `dims`, -1: none. */
int program_first(const sm_program *b, sm_dimensions dims, sm_dimension_role role);
/* Dimensions that count tokens and sequences: slots stand for both, keys for positions. -1: none.
 */
int program_tokens(const sm_program *b, sm_dimensions dims);
int program_sequences(const sm_program *b, sm_dimensions dims);
bool program_tokens_whole(const sm_program *b);
/* The tensor axes that deal out the experts of an array. */
sm_axes program_experts_over(const sm_program *b, const sm_tensor *t);
/* Of arrays that experts make or own, as against routed tokens on their way. */
bool program_experts_own(const sm_program *b, sm_dimensions dims);
void program_store(const sm_program *b, sm_tensor *t);
/* The dimension among `dims` that an axis shards, -1 when none does. */
bool program_carries_tensor(const sm_program *b, sm_dimensions dims); /* has a dimension for it */
/* Which tensor axes each dimension may take. */
void program_settle_takes(sm_program *b);
/* Of a program whose ops and arrays are all there: how its arrays are stored. */
void program_settle(sm_program *b);
void program_settle_loss(sm_program *b);
/* The tensor axes of a program are those from this one up to SM_AXIS_TENSOR_Q. */
int program_first_tensor(const sm_program *b);
int program_tensor_dim(const sm_program *b, sm_dimensions dims, int axis);
int program_cache_dim(const sm_program *b, sm_dimensions dims);
int program_stationary_dim(const sm_program *b, sm_dimensions dims);
