/* Private to program: pieces that the builders and the partition share. */
#pragma once
#include "scalemodel/step.h"

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
/* The dimension among `dims` that an axis shards, -1 when none does. */
bool program_carries_tensor(const sm_program *b, sm_dimensions dims); /* has a dimension for it */
/* Of a program whose ops and arrays are all there: how its arrays are stored. */
void program_settle(sm_program *b);
/* The tensor axes of a program are those from this one up to SM_AXIS_TENSOR_Q. */
int program_first_tensor(const sm_program *b);
int program_tensor_dim(const sm_program *b, sm_dimensions dims, int axis);
int program_stationary_dim(const sm_program *b, sm_dimensions dims);

/* Private to the interpreter of a step: what its passes, its stages and its rows share. */
/* ---- live.c: how long arrays live in the passes of a list ---- */
/* An operand after a step. Weights are moved once in a pass, activations once for the ops that run
 * again and once for the gradients: what is the same is not moved a second time. */
typedef struct task_move {
    int tensor;
    bool gradient, forward;
    sm_layout after;
} task_move;
task_move task_move_of(const sm_program_task *task, int operand, int step);
bool task_move_same(const sm_task_list *list, const task_move *a, const task_move *b);

/* What the backward pass would gather again, and regather keeps: fills arrives_by. */
void task_list_keep_arrivals(sm_task_list *list, sm_regather regather);
/* What stays as it arrived from the forward pass to the backward: that, the whole of a norm's
 * weight, and tokens that an expert received by all-to-all (they are no larger than the slots they
 * came from).
 * The step after which an operand does; from which one that did is taken up again. -1: none. */
int task_operand_stays(const sm_task_list *list, const sm_program_task *task, int operand);
int task_operand_resumes(const sm_task_list *list, const sm_program_task *task, int operand);
/* Tensors (bit) that the backward pass only ever takes up so: they need not be kept themselves. */
sm_bits task_list_arrives(const sm_task_list *list);
/* The gradient of a vector op names its input for the shape alone: is this operand such? */
bool task_operand_is_shape(const sm_task_list *list, const sm_program_task *task, int operand);
/* Fills last, entries and weights of the list. */
sm_status task_list_last_uses(sm_task_list *list, sm_error *err);

/* ---- stages ---- */
sm_status stage_call(const sm_stage *s, sm_call *call, sm_error *err);
static inline void action_drop(const sm_actions *a, sm_local_block *block) {
    if (block->data) a->drop(a->context, block);
}
static inline void stage_drop(const sm_stage *s, sm_local_block *block) {
    action_drop(s->actions, block);
}
/* ---- across.c ---- */
/* Fills the ties that other stages hold too; which of them a weight is of: 1 and on, 0: of none. */
sm_status stage_ties(sm_stage *s, sm_error *err);
int stage_tie_of(const sm_stage *s, const sm_step_layer *layer, int tensor);
/* The gradients of a layer so far, each group as a row, join what this chip sums of it. */
sm_status stage_reduce_layer(sm_stage *s, sm_step_layer *layer, sm_error *err);
