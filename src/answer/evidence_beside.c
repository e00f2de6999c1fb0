/* evidence_beside: the nearest measured rows beside an answer: how many, of what, how far off their
 * predictions were, and what sets the question apart from them. */
#include "question.h"
#include <string.h>

static bool is_shipped(const sm_calibration *c) {
    const sm_calibration *known;
    for (size_t i = 0; (known = sm_calibration_at(i)) != NULL; i++)
        if (known == c) return true;
    return false;
}

sm_evidence_asked sm_evidence_of_serving(const sm_evidence_question *q,
                                         const double size[SM_ASKED_SIZES]) {
    static const char *const name[] = {"chips", "concurrency", "prompt", "output"};
    sm_evidence_asked asked = {.q = *q};
    const char *software = q->software ? q->software : "default";
    if (strcmp(software, "serving") == 0 || strcmp(software, "default") == 0)
        asked.q.software = NULL;
    asked.q.use = SM_EVIDENCE_SERVING;
    asked.q.sizes = SM_ASKED_SIZES;
    for (int i = 0; i < SM_ASKED_SIZES; i++) asked.size[i] = (sm_asked_size){name[i], size[i]};
    return asked;
}

sm_evidence_near sm_evidence_nearest(const sm_evidence_asked *asked,
                                     const sm_calibration *constants) {
    sm_evidence_near near = {.wider = 1.0};
    sm_evidence_question q = asked->q;
    q.size = asked->size;
    if (!constants || is_shipped(constants)) sm_evidence_find(&q, &near, 1);
    return near;
}

const char *sm_evidence_model(sm_report *r, const sm_evidence_near *near) {
    const sm_evidence *e = near->of;
    if (near->same_model) return "this model";
    const char *experts = e->experts > 0 ? sm_textf(r, ", %d experts", e->experts) : "";
    return sm_textf(r, "%s (%s%s)", e->model, sm_show_count(r, e->params), experts);
}

static bool is_apart(const sm_evidence_near *near) {
    return !near->same_model || !near->same_constants || !near->same_software || near->beyond[0];
}

void sm_evidence_page(sm_report *r, const sm_evidence_asked *asked, const sm_evidence_near *near) {
    const sm_evidence *e = near->of;
    if (!e) return;
    const char *software =
        asked->q.software ? sm_textf(r, " under %s", e->software) : ", of any software";
    const char *error = "", *first = "", *apart = "";
    if (isfinite(e->first_error))
        first = sm_textf(r, ", first tokens by %s", sm_show_percent(r, e->first_error));
    if (isfinite(e->error))
        error = sm_textf(r, ". Predicted without them they are off by %s in the median%s",
                         sm_show_percent(r, e->error), first);
    if (near->beyond[0]) apart = sm_textf(r, " This one lies beyond them in %s.", near->beyond);
    if (is_apart(near) && isfinite(near->error))
        apart = sm_textf(r, "%s Expect to be off by some %.0f %%.", apart, 100.0 * near->error);
    else if (is_apart(near))
        apart = sm_textf(r, "%s Nothing near enough to say how far off.", apart);
    sm_report_text(r, "Nearest measured: %d row%s of %s on %s%s%s.%s", e->rows,
                   e->rows == 1 ? "" : "s", sm_evidence_model(r, near),
                   near->same_chip ? "this chip" : e->chip, software, error, apart);
}

void sm_evidence_fields(sm_report *r, sm_data *object, const sm_evidence_near *near) {
    const sm_evidence *e = near->of;
    const char *software = e->software[0] ? e->software : NULL;
    sm_put(r, object,
           "rows|model|params|experts|same_model|chip|same_chip|software|same_software|range|types|"
           "error|"
           "first_token_error|beyond|expected_error",
           e->rows, e->model, e->params, e->experts, near->same_model, e->chip, near->same_chip,
           software, near->same_software, e->range, e->types, e->error, e->first_error,
           (const char *)near->beyond, near->error);
}

void sm_constants_data(sm_report *r, sm_data *object, const sm_calibration *c,
                       const sm_chip *chip) {
    sm_put(r, sm_put_object(r, object, "calibration"), "chip|software|borrowed|source|range",
           c->chip, c->software, (bool)!sm_calibration_is_own(c, chip), c->source, c->range);
}

void sm_evidence_data(sm_report *r, sm_data *object, const sm_evidence_near *near) {
    if (near->of) sm_evidence_fields(r, sm_put_object(r, object, "evidence"), near);
}
