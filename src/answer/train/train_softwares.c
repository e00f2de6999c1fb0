/* train_softwares: the best plan as every software known on the chip would run it. */
#include "train_asked.h"

enum { MOST_SOFTWARES = 64 };

static void software_row(sm_report *r, const sm_listing *list, const sm_train_asked *q,
                         const sm_price_of_plan *price) {
    const sm_calibration *c = q->in.calibration;
    const sm_step_sizes step = sm_step_sizes_of(q->in.model, price->chips, q->job.seq);
    sm_ends ends = sm_step_interval(q, price);
    char beyond[80];
    sm_calibration_outside(c, &step, beyond, sizeof beyond);
    sm_data *object = sm_list_row(list, true, c->chip, c->software, price->expected_s, ends.low,
                                  ends.high, price->mfu, beyond);
    sm_put(r, sm_put_array(r, object, "interval"), NULL, ends.low, ends.high);
    sm_put(r, object, "mfu|beyond_constants", price->mfu, beyond);
}

sm_status sm_train_softwares(sm_report *r, const sm_train_asked *q, sm_train *train,
                             const sm_plan *plan, sm_error *err) {
    const char *names[MOST_SOFTWARES];
    const sm_chip *chip = &q->system->chip;
    size_t n = sm_calibration_softwares(chip, names, MOST_SOFTWARES);
    const sm_listing list =
        sm_page_list(r, r->data, "softwares", "This plan by the software that runs it",
                     "chip|software<software|expected_s>{s}step|>{s}from|>{s}to|>{%}MFU|"
                     "<beyond its rows in");
    sm_train_asked asked = *q;
    sm_status status = SM_OK;
    for (size_t i = 0; i < n && i < MOST_SOFTWARES && !status; i++) {
        const sm_calibration *c = sm_calibration_for(chip, names[i]);
        sm_price_of_plan price;
        if (!c || c->interval[SM_REGIME_step].n == 0) continue; /* not of training */
        asked.in.calibration = c;
        sm_train_with_software(&asked, train);
        status = sm_train_price(train, plan, &price, err);
        if (!status) software_row(r, &list, &asked, &price);
    }
    sm_train_with_software(q, train);
    return status;
}
