/* answer_support: how near what was measured comes to a model on a system. */
#include "question.h"
#include "scalemodel/answer_words.h"
#include "scalemodel/load.h"
#include <string.h>

enum { USUAL_TOP = 5, MOST_TOP = 50 };

typedef struct support {
    sm_support_question in;
    sm_report *report;
    bool near_enough; /* of either use */
} support;

/* An engine is no code base of training: of that use its software is not known. */
static const char *software_of(const support *s, sm_evidence_use use) {
    const sm_evidence *e;
    for (size_t i = 0; s->in.software && (e = sm_evidence_at(i)) != NULL; i++)
        if (e->use == use && strcmp(e->software, s->in.software) == 0) return e->software;
    return NULL;
}

/* Sizes that the question leaves open lie within every range. */
static sm_evidence_asked ask(const support *s, sm_evidence_use use) {
    const sm_support_question *in = &s->in;
    sm_evidence_asked asked = sm_evidence_of_serving(
        &(sm_evidence_question){.model = in->model,
                                .chip = &in->system->chip,
                                .software = software_of(s, use),
                                .type = in->type},
        (double[]){in->system->chips, in->in_flight, in->prompt, in->output});
    if (use == SM_EVIDENCE_TRAINING) {
        asked.q.use = use;
        asked.size[1] = (sm_asked_size){"sequence", in->seq};
        asked.size[2] = (sm_asked_size){"batch", in->batch_tokens};
        asked.q.sizes = 3;
    }
    int n = 0;
    for (int i = 0; i < asked.q.sizes; i++)
        if (asked.size[i].value > 0.0) asked.size[n++] = asked.size[i];
    asked.q.sizes = n;
    return asked;
}

/* The constants that a prediction takes, in the words of their file. */
static void constants_line(const support *s, sm_evidence_use use) {
    const sm_chip *chip = &s->in.system->chip;
    const char *software = software_of(s, use);
    const sm_calibration *c;
    if (use == SM_EVIDENCE_TRAINING) {
        c = software ? sm_calibration_for(chip, software) : sm_calibration_of(chip);
        if (c && c->interval[SM_REGIME_step].n == 0) c = NULL;
    } else {
        c = software ? sm_software_calibration(chip, software)
                     : sm_calibration_for(chip, "serving");
        if (c && c->interval[SM_REGIME_decode].n == 0) c = NULL;
    }
    if (!c) return;
    sm_report_text(s->report, "Constants %s %s%s: %s.", c->chip, c->software,
                   sm_calibration_is_own(c, chip) ? "" : " (borrowed)", c->source);
    sm_constants_data(
        s->report,
        sm_put_object(s->report, s->report->data, use == SM_EVIDENCE_TRAINING ? "train" : "serve"),
        c, chip);
}

static void tell(support *s, sm_evidence_use use) {
    static const char *const titles[] = {"Training", "Serving"};
    static const char *const keys[] = {"training", "serving"};
    sm_report *r = s->report;
    sm_evidence_near near[MOST_TOP];
    sm_evidence_asked asked = ask(s, use);
    sm_evidence_question q = asked.q;
    q.size = asked.size;
    size_t n = sm_evidence_find(&q, near, (size_t)s->in.top);
    sm_data *list = sm_put_array(r, r->data, keys[use]);
    sm_report_heading(r, "%s", titles[use]);
    sm_table *t = sm_page_table(
        r, NULL,
        sm_textf(r, "<model|<chip|<software|>{=}rows|>{%%}off by|%s>{%%}first|>{%%}here|<beyond",
                 use == SM_EVIDENCE_SERVING ? "" : "-"));
    for (size_t i = 0; i < n; i++) {
        const sm_evidence *e = near[i].of;
        sm_page_row(r, t, sm_evidence_model(r, &near[i]), near[i].same_chip ? "this chip" : e->chip,
                    e->software[0] ? e->software : "any", e->rows, e->error, e->first_error,
                    near[i].error, near[i].beyond);
        sm_evidence_fields(r, sm_put_object(r, list, NULL), &near[i]);
    }
    if (n > 0) sm_evidence_page(r, &asked, &near[0]);
    if (n > 0 && isfinite(near[0].error)) s->near_enough = true;
    constants_line(s, use);
}

sm_status sm_answer_support(const sm_support_question *question, sm_report *r, sm_error *err) {
    support s = {.report = r};
    sm_status status = sm_sized_take(&s.in, sizeof s.in, question, err);
    bool there = s.in.model && s.in.system;
    if (!status) status = sm_question_needs(there, "a model and a system", err);
    if (!status) status = sm_question_limit("top", s.in.top, MOST_TOP, err);
    if (status) return status;
    if (s.in.top <= 0) s.in.top = USUAL_TOP;
    if (s.in.any_type) s.in.type = SM_DTYPE_COUNT;
    sm_put(r, r->data, "command", "support");
    sm_put(r, sm_put_object(r, r->data, "model"), "name", s.in.model->name);
    sm_system_fields(r, r->data, s.in.system);
    sm_report_heading(r, "What was measured near %s on %s", s.in.model->name, s.in.system->text);
    tell(&s, SM_EVIDENCE_SERVING);
    tell(&s, SM_EVIDENCE_TRAINING);
    sm_report_text(r, "Off by: the median error of those rows, predicted by constants that had no "
                      "part of them. Here: what to expect of this question.");
    return s.near_enough ? SM_OK : SM_NEGATIVE;
}
