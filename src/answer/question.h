/* question: what all answers begin with. */
#pragma once
#include "scalemodel/answer.h"

/* Where `what` is expected below its lower bound the constants are at fault: a sentence says so. */
void sm_bound_note(sm_report *r, const sm_calibration *c, const char *what, double lower_s,
                   double expected_s);
/* Which work a plan has chips do more than once: a sentence, or none. */
void sm_copies_note(sm_report *r, const sm_plan *plan, const sm_model *model);
/* The sizes of a model that were padded for a plan, and which share of the work padding is: a
 * sentence; as data, the key `padding` of the object. */
void sm_padding_note(sm_report *r, const sm_plan *plan, const sm_model *model,
                     const sm_model *padded, double share);
void sm_padding_data(sm_report *r, sm_data *object, const sm_model *model, const sm_model *padded,
                     double share);
/* In which type a chip without units for this one multiplies: a sentence, or none. */
void sm_units_note(sm_report *r, const sm_chip *chip, sm_dtype dtype);
/* How a system of several slices came to be: a sentence, or none. */
void sm_slices_note(sm_report *r, const sm_system *system);
/* SM_USAGE where a question lacks what it cannot do without: "a model and a system". */
sm_status sm_question_needs(bool there, const char *what, sm_error *err);
/* SM_USAGE where a number of a question lies outside 0 .. most. */
sm_status sm_question_limit(const char *what, double value, double most, sm_error *err);
/* How many plans a search looked at, what that proves, and how long it took. */
void sm_search_lines(sm_report *r, const sm_search_effort *e, const char *proof);
/* The item of a plan's text that the sentence speaks of; otherwise all of it. */
sm_span sm_question_blamed(const sm_source *plan, const char *sentence);
/* An error that has no place yet, about a plan read from this text: shown under the key it speaks
 * of, else under the whole. */
sm_status sm_question_blame(const sm_source *plan, sm_status status, sm_error *err);
