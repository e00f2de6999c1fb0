/* Private to the interpreter of a stage: what its passes and its rows of gradients share. */
#ifndef SM_STAGE_PARTS_H
#define SM_STAGE_PARTS_H
#include "scalemodel/step.h"

sm_status stage_call(const sm_stage *s, sm_call *call, sm_error *err);
void stage_drop(const sm_stage *s, sm_local_block *block);
/* The gradients of a layer so far, each group as a row, join what this chip sums of it. */
sm_status stage_reduce_layer(sm_stage *s, sm_step_layer *layer, sm_error *err);
#endif
