/* compared: what several systems, or engines, answer to one question, side by side. */
#include "question.h"

double sm_rated_energy_j(const sm_chip *chip, double chip_seconds) {
    double watts = chip->tdp_w.value;
    return watts > 0.0 ? watts * chip_seconds : NAN;
}

const char *sm_show_energy(sm_report *r, double joules) {
    double kwh = joules / 3.6e6;
    if (isnan(kwh)) return "-";
    return kwh < 1000.0 ? sm_textf(r, "%.3g kWh", kwh)
           : kwh < 1e6  ? sm_textf(r, "%.3g MWh", kwh / 1e3)
                        : sm_textf(r, "%.3g GWh", kwh / 1e6);
}

void sm_compared_page(sm_report *r, const char *each, const char *heads, const sm_compared *of,
                      int n) {
    sm_table *table = sm_page_table(r, NULL, sm_textf(r, "<%s|%s", each, heads));
    sm_table *plans = sm_page_table(r, NULL, sm_textf(r, "<%s|<plan", each));
    for (int i = 0; i < n; i++) {
        if (!of[i].plan) continue;
        sm_page_cells(r, table, of[i].cells);
        sm_page_row(r, plans, of[i].name, of[i].plan);
    }
    for (int i = 0; i < n; i++)
        if (!of[i].plan) sm_report_text(r, "%s", of[i].reason);
}
