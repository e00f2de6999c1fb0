/* profile_plan: a step as planned beside the one that was compiled or measured. */
#pragma once
#include "profile_asked.h"

/* Predicted beside found, as page and data. plan: its words. */
void profile_beside_plan(sm_report *r, const profile_file *file, const char *plan,
                         const sm_plan_detail *detail, int top);
/* Read and price the module or profile of a question and lay it beside a plan: what `train
 * --against` shows. Errors as sm_answer_profile. */
sm_status profile_against_plan(sm_report *r, const sm_profile_question *q, const char *plan,
                               const sm_plan_detail *detail, sm_error *err);
