/* answer_calibrate: constants of a chip and a software fitted to measured rows. */
#include "calibrated.h"

static sm_status fit(sm_fitting *q, sm_report *r, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_fit_options options = {.free = q->in.constants, .prior_weight = 1.0, .arena = q->arena};
    sm_status status = sm_calibrate(q->ready, q->n, q->in.start, &options, &q->fit, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (status == SM_NEGATIVE) q->reason = sm_textf(r, "%s", none.sentence);
    if (status) return status;
    r->file = sm_fitting_text(q);
    return r->file ? SM_OK : sm_fail_memory(err);
}

sm_status sm_answer_calibrate(const sm_calibrate_question *question, sm_report *r, sm_error *err) {
    sm_fitting q = {.arena = r->arena};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (!status) status = sm_question_needs(q.in.files > 0 && q.in.chip, "file and chip", err);
    if (status) return status;
    if (!q.in.software) q.in.software = "mine";
    if (!q.in.start) q.in.start = sm_calibration_for(q.in.chip, q.in.software);
    if (!q.in.start) q.in.start = sm_calibration_of(q.in.chip);
    if (!q.in.constants) q.in.constants = (1u << SM_CONSTANT_COUNT) - 1u;
    status = sm_fitting_rows(&q, err);
    if (!status) status = fit(&q, r, err);
    if (status <= SM_NEGATIVE) sm_fitting_page(r, &q);
    sm_fitting_free(&q);
    return status;
}
