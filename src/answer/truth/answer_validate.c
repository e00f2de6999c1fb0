/* answer_validate: measured rows against what is predicted for them. */
#include "validated.h"

enum { USUAL_WORST = 10 };

sm_status sm_answer_validate(const sm_validate_question *question, sm_report *r, sm_error *err) {
    sm_validation v = {.arena = r->arena};
    sm_status status = sm_sized_take(&v.in, sizeof v.in, question, err);
    if (!status) status = sm_question_needs(v.in.files > 0, "a file of measurements", err);
    for (int i = 0; i < v.in.n_by && !status; i++)
        status = sm_question_limit("by", v.in.by[i], SM_VALIDATE_GROUPS - 1, err);
    if (!status) status = sm_validation_read(&v, err);
    if (status) return status;
    if (v.n == 0)
        return sm_fail(err, SM_USAGE, "no row of %s is of that chip, source, kind and quality",
                       v.title);
    sm_put(r, r->data, "command", "validate");
    if (v.in.plot) status = sm_validate_picture(r, &v, err);
    if (status) return status;
    if (v.in.rows) sm_validate_rows(r, &v);
    sm_report_heading(r, "%s", v.title);
    sm_validate_stats(r, &v);
    sm_validate_layouts(r, &v);
    sm_validate_memory(r, &v);
    sm_validate_suspects(r, &v);
    int worst = v.in.worst ? v.in.worst : USUAL_WORST;
    return sm_validate_worst(r, &v, worst > 0 ? (size_t)worst : 0, err);
}
