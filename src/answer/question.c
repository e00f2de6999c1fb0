/* Questions of callers that were compiled with an older header are shorter than ours. */
#include "question.h"
#include <string.h>

sm_status sm_question_take(void *own, size_t room, const void *question, sm_error *err) {
    size_t size;
    memcpy(&size, question, sizeof size);
    if (size < sizeof size || size > room)
        return sm_fail(err, SM_USAGE,
                       "the question's size is %zu and this library knows %zu bytes of it: begin "
                       "with SM_QUESTION",
                       size, room);
    memset(own, 0, room);
    memcpy(own, question, size);
    return SM_OK;
}

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
