/* Private to the interpreter of a step: what its passes, its stages and its rows share. */
#pragma once
#include "scalemodel/step.h"

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
uint64_t task_list_arrives(const sm_task_list *list);
/* The gradient of a vector op names its input for the shape alone: is this operand such? */
bool task_operand_is_shape(const sm_task_list *list, const sm_program_task *task, int operand);
/* Fills last, entries and weights of the list. */
sm_status task_list_last_uses(sm_task_list *list, sm_error *err);

/* ---- stages ---- */
sm_status stage_call(const sm_stage *s, sm_call *call, sm_error *err);
void stage_drop(const sm_stage *s, sm_local_block *block);
/* The gradients of a layer so far, each group as a row, join what this chip sums of it. */
sm_status stage_reduce_layer(sm_stage *s, sm_step_layer *layer, sm_error *err);
