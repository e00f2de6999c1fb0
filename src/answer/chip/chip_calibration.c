/* chip_calibration: the constants that turn datasheet bounds of a chip into expected times, where
 * each comes from, and the intervals they carry. */
#include "chip_facts.h"
#include <string.h>

enum { MOST_SOFTWARES = 64 };

const char *sm_constant_text(sm_report *r, const sm_constant_info *info, double value) {
    return strcmp(info->unit, "s") == 0 ? sm_show_seconds(r, value) : sm_show_number(r, value);
}

static void constants(sm_report *r, sm_data *object, const sm_calibration *c) {
    sm_table *values = sm_page_table(r, NULL, "<constant|>value|<unit|<from|<may be");
    sm_table *meanings = sm_page_table(r, NULL, "<constant|<meaning");
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        double value = sm_calibration_get(c, (sm_constant)i);
        sm_page_row(r, values, info->name, sm_constant_text(r, info, value),
                    strcmp(info->unit, "s") == 0 ? "" : info->unit,
                    c->fitted >> i & 1 ? "fitted" : "borrowed",
                    sm_textf(r, "%s .. %s", sm_constant_text(r, info, info->low),
                             sm_constant_text(r, info, info->high)));
        sm_page_row(r, meanings, info->name, info->meaning);
        sm_put(r, object, info->name, value);
    }
    sm_report_table(r, values);
    sm_report_table(r, meanings);
    sm_data *list = sm_put_array(r, object, "constants");
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        sm_data *entry = sm_put_object(r, list, NULL);
        sm_put_text(r, entry, "name", info->name);
        sm_put(r, entry, "value", sm_calibration_get(c, (sm_constant)i));
        sm_put_text(r, entry, "unit", info->unit);
        sm_put_bool(r, entry, "fitted", c->fitted >> i & 1);
        sm_put_all(r, entry, "lowest|highest", info->low, info->high);
        sm_put_text(r, entry, "meaning", info->meaning);
    }
}

/* What an expected time of 1 s may turn out to be. */
static void intervals(sm_report *r, sm_data *object, const sm_chip *chip, const sm_calibration *c) {
    sm_table *table = sm_page_table(r, "80 % intervals: measured over expected",
                                    "<of|>lowest|>highest|<learned from");
    sm_data *list = sm_put_array(r, object, "intervals");
    for (int i = 0; i < SM_REGIME_COUNT; i++) {
        const char *name = sm_regime_name((sm_regime)i);
        double low = 0.0, high = 0.0;
        int n = c->interval[i].n;
        sm_calibration_interval(c, chip, (sm_regime)i, 1.0, &low, &high);
        sm_page_row(r, table, name, sm_textf(r, "%.2f", low), sm_textf(r, "%.2f", high),
                    n ? sm_textf(r, "%d rows", n) : "nothing: the usual");
        sm_data *entry = sm_put_object(r, list, NULL);
        sm_put_text(r, entry, "of", name);
        sm_put_all(r, entry, "lowest|highest|rows", low, high, n);
    }
    sm_report_table(r, table);
}

static void softwares(sm_report *r, sm_data *object, const sm_chip *chip) {
    const char *names[MOST_SOFTWARES], *words = "";
    size_t n = sm_calibration_softwares(chip, names, MOST_SOFTWARES);
    sm_data *list = sm_put_array(r, object, "softwares");
    for (size_t i = 0; i < n; i++) {
        words = sm_textf(r, "%s%s%s", words, i ? ", " : "", names[i]);
        sm_data *entry = sm_put_object(r, list, NULL);
        const sm_calibration *c = sm_calibration_for(chip, names[i]);
        sm_put_text(r, entry, "software", names[i]);
        sm_put_text(r, entry, "chip", c ? c->chip : "");
    }
    const sm_calibration *operations = sm_calibration_of_operations(chip);
    sm_data *taken = sm_put_object(r, object, "operations");
    sm_put_text(r, taken, "software", operations->software);
    sm_put_text(r, taken, "chip", operations->chip);
    sm_report_text(r, "Software generations known (--software): %s.", words);
    sm_report_text(r, "Without --software, roofline, matmul and collective take %s %s.",
                   operations->chip, operations->software);
}

void sm_chip_calibration(sm_report *r, const sm_chip *chip, const sm_calibration *c) {
    static const char *const origins[] = {"its own",
                                          "of the nearest relative: the intervals are wider",
                                          "of no relative: the chip names none that has constants, "
                                          "and these stand in for any chip on "
                                          "such a fabric; the intervals are wider"};
    static const char *const words[] = {"own", "relative", "fabric"};
    sm_constants_origin origin = sm_calibration_origin_of(c, chip);
    const char *source = c->source ? c->source : "", *range = c->range ? c->range : "";
    sm_report_text(r, "Calibration '%s', software '%s', %s.", c->chip, c->software,
                   origins[origin]);
    sm_data *object = sm_put_object(r, r->data, "calibration");
    sm_put_text(r, object, "name", c->chip);
    sm_put_text(r, object, "software", c->software);
    sm_put_text(r, object, "source", source);
    sm_put_text(r, object, "range", range);
    sm_put_bool(r, object, "own", origin == SM_CONSTANTS_OWN);
    sm_put_text(r, object, "origin", words[origin]);
    constants(r, object, c);
    intervals(r, object, chip, c);
    if (*source) sm_report_text(r, "Source: %s", source);
    if (*range) sm_report_text(r, "Valid for: %s", range);
    softwares(r, object, chip);
}
