/* train_interval: where 8 of 10 measured steps are expected to lie, and which plans the prediction
 * cannot tell from the best one. */
#include "train_asked.h"

sm_evidence_near sm_train_evidence(const sm_train_asked *q, const sm_plan_shown *shown,
                                   double sequences, sm_evidence_asked *asked) {
    const sm_calibration *c = q->in.calibration;
    if (sm_calibration_is_usual(c, &q->system->chip)) c = sm_calibration_of(&q->system->chip);
    *asked = (sm_evidence_asked){
        .q = {.use = SM_EVIDENCE_TRAINING,
              .model = q->in.model,
              .chip = &q->system->chip,
              .software = strcmp(c->software, "default") == 0 ? NULL : c->software,
              .type = shown->plan->dtype,
              .sizes = 3},
        .size = {{"chips", shown->detail.price.chips},
                 {"sequence", q->job.seq},
                 {"batch", sequences * q->job.seq}}};
    return sm_evidence_nearest(asked, c);
}

bool sm_train_is_unmeasured(const sm_train_asked *q) {
    return q->kept_to && sm_calibration_is_usual(q->in.calibration, &q->system->chip);
}

/* No step is faster than its lower bound: an expectation below it is a defect (sm_bound_note). Of
 * several frameworks none is preferred for constants that are of no such steps. */
sm_ends sm_step_interval(const sm_train_asked *q, const sm_price_of_plan *price) {
    const sm_step_sizes step = sm_step_sizes_of(q->in.model, price->chips, q->job.seq);
    const sm_calibration *c = q->in.calibration;
    char beyond[80];
    sm_ends i;
    sm_calibration_interval(c, &q->system->chip, sm_calibration_step_regime(c, step.experts),
                            price->expected_s, &i.low, &i.high);
    sm_calibration_outside(c, &step, beyond, sizeof beyond);
    if (sm_train_is_unmeasured(q) || (q->kept_to && beyond[0]))
        sm_interval_widen(price->expected_s, SM_UNMEASURED_WIDER, &i.low, &i.high);
    return (sm_ends){fmax(i.low, price->lower_s), fmax(i.high, price->lower_s)};
}

sm_ends sm_train_ranked_by(const sm_train_asked *q, const sm_price_of_plan *price) {
    sm_ends i = sm_step_interval(q, price);
    if (q->search.objective == SM_OBJECTIVE_COST) {
        i.low *= price->chips;
        i.high *= price->chips;
    }
    if (q->search.objective == SM_OBJECTIVE_MEMORY)
        sm_calibration_interval(q->in.calibration, &q->system->chip, SM_REGIME_peak,
                                price->memory.total, &i.low, &i.high);
    return i;
}

double sm_train_objective_of(const sm_train_asked *q, const sm_price_of_plan *price) {
    if (q->in.objective == SM_OBJECTIVE_MEMORY) return price->memory.total;
    return price->expected_s * (q->in.objective == SM_OBJECTIVE_COST ? price->chips : 1);
}

const char *const sm_train_worse[] = {"slower", "dearer", "larger"};

const char *sm_train_more(const sm_train_asked *q, const sm_price_of_plan *price,
                          const sm_price_of_plan *best) {
    double times = sm_train_objective_of(q, price) / sm_train_objective_of(q, best);
    return sm_textf(q->report, "%.1f %%", 100.0 * (times - 1.0));
}

bool sm_is_indistinguishable(const sm_plans_shown *plans, int which) {
    sm_ends best = sm_train_ranked_by(plans->q, &plans->plan[0].detail.price);
    sm_ends other = sm_train_ranked_by(plans->q, &plans->plan[which].detail.price);
    return best.low <= other.high && other.low <= best.high;
}

/* Rows of the table of other plans, counted from 1: "1 to 3, 5". */
void sm_indistinguishable_line(sm_report *r, const sm_plans_shown *plans) {
    const char *rows = "";
    int alike = 0;
    for (int i = 1; i < plans->n; i++) {
        int last = i;
        if (!sm_is_indistinguishable(plans, i)) continue;
        while (last + 1 < plans->n && sm_is_indistinguishable(plans, last + 1)) last++;
        alike += last - i + 1;
        const char *range = last > i ? sm_textf(r, "%d to %d", i, last) : sm_textf(r, "%d", i);
        rows = sm_textf(r, "%s%s%s", rows, rows[0] ? ", " : "", range);
        i = last;
    }
    if (alike == 0) return;
    if (alike < plans->n - 1)
        rows = sm_textf(r, "Row%s %s of these %s", alike > 1 ? "s" : "", rows,
                        alike > 1 ? "are" : "is");
    else rows = alike > 1 ? "All of these are" : "It is";
    sm_report_text(r, "%s indistinguishable from the best plan: the 80 %% intervals overlap.",
                   rows);
}
