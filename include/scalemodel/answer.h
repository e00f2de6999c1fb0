/* answer: what each verb of the command answers, as a library: a question in, a report out
 * (report.h) with the page that a person reads and the data that --json prints.
 *
 *     sm_model_question q = SM_QUESTION(sm_model_question);
 *     q.model = &model;
 *     sm_report *report = sm_report_new();
 *     sm_status status = sm_answer_model(&q, report, &err);
 *
 * A member that stays 0 (or NULL) asks for its default. What a question points to outlives the
 * answer's making; the report owns all it holds. Every answer returns SM_OK, or SM_NEGATIVE (does
 * not fit, no plan: the report says why); with any other status the error says what is wrong and
 * the report is not to be shown. Texts with a grammar are sources (text.h): their names are what
 * errors show. Units are SI; the keys of the data carry them. */
#ifndef SCALEMODEL_ANSWER_H
#define SCALEMODEL_ANSWER_H
#include "scalemodel/cost.h"
#include "scalemodel/hw.h"
#include "scalemodel/model.h"
#include "scalemodel/page.h"

/* A question of which all is default. Its size tells a library which members the caller knows. */
#define SM_QUESTION(type) ((type){.size = sizeof(type)})

/* ---- chip ---- */
typedef struct sm_chip_question {
    size_t size;
    const sm_chip *chip; /* NULL: the catalogue */
    const sm_chip *own;  /* chips of the caller's, that the catalogue lists first */
    size_t n_own;
    const sm_calibration *calibration; /* these constants in place of the facts */
    bool explain;                      /* the derivation of the ridge points, into report->why */
} sm_chip_question;
/* Peaks, memories, links, ridge points, prices and the source of each; or the constants of a
 * calibration with their intervals. */
sm_status sm_answer_chip(const sm_chip_question *question, sm_report *report, sm_error *err);

/* ---- model ---- */
typedef struct sm_model_question {
    size_t size;
    const sm_model *model; /* NULL: the catalogue */
    double seq;            /* tokens of a sequence (4096) */
    sm_dtype kv;           /* of the cache (bf16) */
    bool explain;          /* the derivation of the training FLOPs */
} sm_model_question;
/* Parameters by component, layers, FLOPs per token, bytes of the KV cache. */
sm_status sm_answer_model(const sm_model_question *question, sm_report *report, sm_error *err);

/* A fact of a chip with its source, as a child of a derivation. */
void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit);
#endif
