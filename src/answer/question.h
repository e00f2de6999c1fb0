/* question: what all answers begin with. */
#pragma once
#include "scalemodel/answer.h"
#include "scalemodel/evidence.h"

#include <math.h>

/* Where `what` is expected below its lower bound the constants are at fault: a sentence says so. */
void sm_bound_note(sm_report *r, const sm_calibration *c, const char *what, double lower_s,
                   double expected_s);
/* Which work a plan has chips do more than once: a sentence, or none. */
void sm_copies_note(sm_report *r, const sm_plan *plan, const sm_model *model);
/* The share that a plan beyond those asked for must gain to be told. */
#define SM_WORTH_TELLING 0.01
/* Give the plan the next degree of experts that divides the chips and not the experts, so that they
 * are padded for it. false: there is none. */
bool sm_question_pads_next(sm_plan *plan, const sm_model *model, int chips);
/* The sizes of a model that were padded for a plan, and which share of the work padding is: a
 * sentence; as data, the key `padding` of the object. */
void sm_padding_note(sm_report *r, const sm_plan *plan, const sm_model *model,
                     const sm_model *padded, double share);
void sm_padding_data(sm_report *r, sm_data *object, const sm_model *model, const sm_model *padded,
                     double share);
/* The model that plans of serving are priced on: padded where the plan needs it, and then which
 * share of the work on seq tokens padding is. */
sm_status sm_question_pad(sm_report *r, const sm_plan *plan, const sm_model **model, double seq,
                          double *share, sm_error *err);
/* Pictures of a sequence that a model is read with, and the tokens that they are; 0: none. */
double sm_question_pictures(const sm_model *model, double *tokens);
/* SM_BAD_INPUT where a prompt, or a sequence, of so many tokens is shorter than its pictures. */
sm_status sm_question_seen(const sm_model *model, const char *what, double tokens, sm_error *err);
/* In which type a chip without units for this one multiplies: a sentence, or none. */
void sm_units_note(sm_report *r, const sm_chip *chip, sm_dtype dtype);
/* That a length in thousands is a little less than the one, in units of 1024, that the model was
 * made for: a sentence, or none. */
void sm_thousands_note(sm_report *r, const sm_model *model, double tokens);
/* How a system of several slices came to be: a sentence, or none. */
void sm_slices_note(sm_report *r, const sm_system *system);
/* SM_USAGE where a question lacks what it cannot do without: "a model and a system". */
sm_status sm_question_needs(bool there, const char *what, sm_error *err);
/* SM_USAGE where a number of a question lies outside 0 .. most. */
sm_status sm_question_limit(const char *what, double value, double most, sm_error *err);
/* How many plans a search looked at, what that proves, and how long it took. */
void sm_search_lines(sm_report *r, const sm_search_effort *e, const char *proof);
/* The item of a plan's text that the sentence speaks of; of no length where it speaks of none. */
sm_span sm_question_blamed(const sm_source *plan, const char *sentence);
/* An error that has no place yet, about a plan read from this text: shown under the key it speaks
 * of, else under the whole. */
sm_status sm_question_blame(const sm_source *plan, sm_status status, sm_error *err);

/* ---- what several systems, or engines, answer to one question, side by side ---- */
typedef struct sm_compared {
    const char *name;
    const char *plan;                   /* the best one; NULL: there is none */
    const char *reason;                 /* then why, a sentence */
    const char *cells[SM_PAGE_COLUMNS]; /* of its row, the name the first */
} sm_compared;
/* A row for each ("system") that has a plan, under heads of sm_page_table behind that of its name;
 * their plans; why the others have none. */
void sm_compared_page(sm_report *r, const char *each, const char *heads, const sm_compared *of,
                      int n);
/* Joules of so many chip-seconds at the rated power; NAN where it is not known. */
double sm_rated_energy_j(const sm_chip *chip, double chip_seconds);
/* "3.86 MWh"; "-" of NAN. */
const char *sm_show_energy(sm_report *r, double joules);

/* ---- the nearest measured rows beside an answer ---- */
enum { SM_ASKED_SIZES = 4 };
/* What an answer is of, in the sizes that evidence is told by. */
typedef struct sm_evidence_asked {
    sm_evidence_question q;
    sm_asked_size size[SM_ASKED_SIZES];
} sm_evidence_asked;
/* Of an engine's software (NULL: not known), by a plan (NULL: any); the sizes: chips, requests in
 * flight in one replica, prompt, output. */
sm_evidence_asked sm_evidence_of_serving(const sm_evidence_question *q,
                                         const double size[SM_ASKED_SIZES]);
/* The nearest, where the constants (NULL: the usual ones) are shipped: of others nothing is known,
 * and of is NULL. */
sm_evidence_near sm_evidence_nearest(const sm_evidence_asked *asked,
                                     const sm_calibration *constants);
/* Where 80 % of measurements of an expected time are expected. */
typedef struct sm_ends {
    double low, high;
} sm_ends;
/* As a sentence, and as data "evidence" of an object; neither where there is none. */
void sm_evidence_page(sm_report *r, const sm_evidence_asked *asked, const sm_evidence_near *near);
void sm_evidence_data(sm_report *r, sm_data *object, const sm_evidence_near *near);
/* The constants of an answer, in the words of their file, as data "calibration" of an object. */
void sm_constants_data(sm_report *r, sm_data *object, const sm_calibration *c, const sm_chip *chip);
/* "this model", "Qwen3-32B (32.8B)"; its fields alone. */
const char *sm_evidence_model(sm_report *r, const sm_evidence_near *near);
void sm_evidence_fields(sm_report *r, sm_data *object, const sm_evidence_near *near);
