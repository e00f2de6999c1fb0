/* What answers share. */
#include "question.h"

void sm_bound_note(sm_report *r, const sm_calibration *c, const char *what, double lower_s,
                   double expected_s) {
    if (expected_s >= lower_s) return;
    sm_report_text(r,
                   "These constants promise more than the data sheet: with those of %s %s %s is "
                   "expected below its lower bound.",
                   c->chip, c->software, what);
}

sm_status sm_question_needs(bool there, const char *what, sm_error *err) {
    return there ? SM_OK : sm_fail(err, SM_USAGE, "the question names no %s", what);
}

sm_status sm_question_limit(const char *what, double value, double most, sm_error *err) {
    if (value >= 0.0 && value <= most) return SM_OK;
    return sm_fail(err, SM_USAGE, "%s of a question is a number from 0 to %.0f, not %g", what, most,
                   value);
}

void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit) {
    sm_page_leaf(r, parent, label, fact->value, unit, fact->source ? fact->source : "not known");
}
