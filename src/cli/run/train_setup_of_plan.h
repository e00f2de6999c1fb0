/* train_setup_of_plan: what a plan of the planner means for the training runtime. */
#pragma once
#include "scalemodel/run_train.h"
#include "scalemodel/train.h"

/* Degrees, rules and the order of work of each stage into *setup, whose model, tokens and sequences
 * are set. The plan becomes one of single precision (sm_train_plan_as_run). SM_BAD_INPUT when the
 * plan asks for what the runtime does not do. */
sm_status train_setup_of_plan(sm_plan *plan, sm_arena *arena, sm_train_setup *setup, sm_error *err);
/* The layers of the model dealt out to the stages of a pipeline. */
sm_status train_stages_of_plan(const sm_plan *plan, sm_arena *arena, sm_train_setup *setup,
                               sm_error *err);
/* Degrees and rules alone. */
void train_degrees_of_plan(const sm_plan *plan, sm_train_setup *setup);
