/* train_interval: where 8 of 10 measured steps are expected to lie, and which plans the prediction
 * cannot tell from the best one. */
#include "scalemodel/page.h"
#include "train.h"
#include <math.h>

/* No step is faster than its lower bound, whatever the constants are wrong by. */
cli_interval cli_step_interval(const cli_training *q, const sm_price_of_plan *price) {
    cli_interval i;
    sm_calibration_interval(q->calibration, &q->system.chip, SM_REGIME_step, price->expected_s,
                            &i.low, &i.high);
    i.low = fmax(i.low, price->lower_s);
    i.high = fmax(i.high, price->lower_s);
    return i;
}

const char *cli_interval_words(sm_report *r, const cli_training *q, const sm_price_of_plan *price) {
    const sm_calibration *c = q->calibration;
    cli_interval i = cli_step_interval(q, price);
    bool own = sm_calibration_is_own(c, &q->system.chip);
    return sm_textf(r, "%s to %s, constants %s %s %s", sm_show_seconds(r, i.low),
                    sm_show_seconds(r, i.high), own ? "of" : "borrowed from", c->chip, c->software);
}

/* ---- which plans are as good as the best ---- */

/* Of what the plans are ranked by: seconds, chip-seconds or bytes. */
static cli_interval ranked_by(const cli_training *q, const sm_price_of_plan *price) {
    cli_interval i = cli_step_interval(q, price);
    if (q->search.objective == SM_OBJECTIVE_COST) {
        i.low *= price->chips;
        i.high *= price->chips;
    }
    if (q->search.objective == SM_OBJECTIVE_MEMORY)
        sm_calibration_interval(q->calibration, &q->system.chip, SM_REGIME_peak,
                                price->memory.total, &i.low, &i.high);
    return i;
}

bool cli_is_indistinguishable(const cli_plans *plans, int which) {
    cli_interval best = ranked_by(plans->q, &plans->plan[0].detail.price);
    cli_interval other = ranked_by(plans->q, &plans->plan[which].detail.price);
    return best.low <= other.high && other.low <= best.high;
}

/* "1 to 3 and 5": the rows of the table of other plans, counted from 1. */
static const char *rows_alike(sm_report *r, const cli_plans *plans, int *alike) {
    const char *out = "";
    *alike = 0;
    for (int i = 1; i < plans->n; i++) {
        int last = i;
        if (!cli_is_indistinguishable(plans, i)) continue;
        while (last + 1 < plans->n && cli_is_indistinguishable(plans, last + 1)) last++;
        *alike += last - i + 1;
        const char *range = last > i ? sm_textf(r, "%d to %d", i, last) : sm_textf(r, "%d", i);
        out = sm_textf(r, "%s%s%s", out, out[0] ? ", " : "", range);
        i = last;
    }
    return out;
}

void cli_indistinguishable_line(sm_report *r, const cli_plans *plans) {
    int alike;
    const char *rows = rows_alike(r, plans, &alike);
    if (alike == 0) return;
    if (alike < plans->n - 1)
        rows = sm_textf(r, "Row%s %s of these %s", alike > 1 ? "s" : "", rows,
                        alike > 1 ? "are" : "is");
    else rows = alike > 1 ? "All of these are" : "It is";
    sm_report_text(r, "%s indistinguishable from the best plan: the 80 %% intervals overlap.",
                   rows);
}
