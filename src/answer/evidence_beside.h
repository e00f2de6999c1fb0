/* evidence_beside: the nearest measured rows beside an answer. */
#pragma once
#include "question.h"
#include "scalemodel/evidence.h"

enum { SM_ASKED_SIZES = 4 };
/* What an answer is of, in the sizes that evidence is told by. */
typedef struct sm_evidence_asked {
    sm_evidence_question q;
    sm_asked_size size[SM_ASKED_SIZES];
} sm_evidence_asked;
/* Of an engine's software (NULL: not known), requests in flight in one replica. */
void sm_evidence_of_serving(sm_evidence_asked *out, const sm_model *model, const sm_chip *chip,
                            const char *software, sm_dtype weights, double chips, double in_flight,
                            double prompt, double output);
/* The nearest, where the constants (NULL: the usual ones) are shipped: of others nothing is known,
 * and of is NULL. */
sm_evidence_near sm_evidence_nearest(const sm_evidence_asked *asked,
                                     const sm_calibration *constants);
/* An interval around an expected value, wider as the evidence is farther. */
void sm_evidence_widen(const sm_evidence_near *near, double expected, double *low, double *high);
/* As a sentence, and as data "evidence" of an object; neither where there is none. */
void sm_evidence_page(sm_report *r, const sm_evidence_asked *asked, const sm_evidence_near *near);
void sm_evidence_data(sm_report *r, sm_data *object, const sm_evidence_near *near);
/* "this model", "Qwen3-32B (32.8B)"; its fields alone. */
const char *sm_evidence_model(sm_report *r, const sm_evidence_near *near);
void sm_evidence_fields(sm_report *r, sm_data *object, const sm_evidence_near *near);
