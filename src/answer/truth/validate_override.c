/* validate_override: constants in place of those that a row would be predicted with. */
#include "validated.h"

sm_status sm_override_check(const sm_validation *v, sm_error *err) {
    enum { MOST_NAMES = 256 };
    const sm_source *software = &v->in.software;
    const char *names[MOST_NAMES];
    size_t n = 0;
    if (!software->text || v->in.constants) return SM_OK;
    for (size_t i = 0; i < sm_calibration_count() && n < MOST_NAMES; i++) {
        names[n] = sm_calibration_at(i)->software;
        if (strcmp(names[n++], software->text) == 0) return SM_OK;
    }
    const char *near = sm_nearest(software->text, software->length, names, n);
    return sm_fail_at(err, software, (sm_span){0, software->length},
                      "no chip has a calibration for '%.60s'%s%s%s", software->text,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

const sm_calibration *sm_override_for(const sm_validation *v, const sm_truth_row *row) {
    const sm_validate_question *q = &v->in;
    const sm_chip *chip = q->n_constants || q->software.text ? sm_truth_row_chip(row) : NULL;
    if (!chip) return NULL;
    const char *software = q->software.text ? q->software.text : sm_truth_software(row);
    /* Of the list: the one for this chip and software, else any for this chip. */
    if (q->n_constants) {
        const sm_calibration *of_chip = NULL;
        for (size_t i = 0; i < q->n_constants; i++) {
            const sm_calibration *c = &q->constants[i];
            if (strcmp(c->chip, chip->name) != 0) continue;
            if (strcmp(c->software, software) == 0) return c;
            if (!of_chip) of_chip = c;
        }
        return of_chip;
    }
    return row->kind == SM_TRUTH_INFERENCE ? NULL : sm_calibration_for(chip, software);
}
