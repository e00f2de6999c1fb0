/* answer_chip: the catalogue, or all that is known of one chip: peaks, memories, links, ridge
 * points and their sources. */
#include "question.h"
#include "chip_facts.h"
#include <string.h>

/* The constants that turn datasheet bounds of a chip into expected times, where
 * each comes from, and the intervals they carry. */

enum { MOST_SOFTWARES = 64 };

const char *sm_constant_text(sm_report *r, const sm_constant_info *info, double value) {
    return strcmp(info->unit, "s") == 0 ? sm_show_seconds(r, value) : sm_show_number(r, value);
}

static void constants(sm_report *r, sm_data *object, const sm_calibration *c) {
    for (int i = 0; i < SM_CONSTANT_COUNT; i++)
        sm_put(r, object, sm_constant_of((sm_constant)i)->name,
               sm_calibration_get(c, (sm_constant)i));
    const sm_listing values =
        sm_page_list(r, object, "constants", NULL,
                     "name<constant|value|>value|unit|<unit|fitted|<from|lowest|highest|<may be|"
                     "meaning");
    sm_table *meanings = sm_page_table(r, NULL, "<constant|<meaning");
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        double value = sm_calibration_get(c, (sm_constant)i);
        const bool fitted = c->fitted >> i & 1;
        sm_list_row(&values, true, info->name, value, sm_constant_text(r, info, value), info->unit,
                    strcmp(info->unit, "s") == 0 ? "" : info->unit, fitted,
                    fitted ? "fitted" : "borrowed", info->low, info->high,
                    sm_textf(r, "%s .. %s", sm_constant_text(r, info, info->low),
                             sm_constant_text(r, info, info->high)),
                    info->meaning);
        sm_page_row(r, meanings, info->name, info->meaning);
    }
}

static void softwares(sm_report *r, sm_data *object, const sm_chip *chip) {
    const char *names[MOST_SOFTWARES], *words = "";
    size_t n = sm_calibration_softwares(chip, names, MOST_SOFTWARES);
    sm_data *list = sm_put_array(r, object, "softwares");
    for (size_t i = 0; i < n; i++) {
        words = sm_textf(r, "%s%s%s", words, i ? ", " : "", names[i]);
        sm_data *entry = sm_put_object(r, list, NULL);
        const sm_calibration *c = sm_calibration_for(chip, names[i]);
        sm_put(r, entry, "software|chip", names[i], c ? c->chip : "");
    }
    const sm_calibration *operations = sm_calibration_of_operations(chip);
    sm_put(r, sm_put_object(r, object, "operations"), "software|chip", operations->software,
           operations->chip);
    sm_report_text(r, "Software generations known (--software): %s.", words);
    sm_report_text(r, "Without --software, roofline, matmul and collective take %s %s.",
                   operations->chip, operations->software);
}

/* The constants of expected times, their origin and intervals. */
static void show_calibration(sm_report *r, const sm_chip *chip, const sm_calibration *c) {
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
    sm_put(r, object, "name|software|source|range|own|origin", c->chip, c->software, source, range,
           (bool)(origin == SM_CONSTANTS_OWN), words[origin]);
    constants(r, object, c);
    /* What an expected time of 1 s may turn out to be. */
    const sm_listing list =
        sm_page_list(r, object, "intervals", "80 % intervals: measured over expected",
                     "of<of|lowest|>lowest|highest|>highest|rows|<learned from");
    for (int i = 0; i < SM_REGIME_COUNT; i++) {
        const char *name = sm_regime_name((sm_regime)i);
        double low = 0.0, high = 0.0;
        int n = c->interval[i].n;
        sm_calibration_interval(c, chip, (sm_regime)i, 1.0, &low, &high);
        sm_list_row(&list, true, name, low, sm_textf(r, "%.2f", low), high,
                    sm_textf(r, "%.2f", high), n,
                    n ? sm_textf(r, "%d rows", n) : "nothing: the usual");
    }
    if (*source) sm_report_text(r, "Source: %s", source);
    if (*range) sm_report_text(r, "Valid for: %s", range);
    softwares(r, object, chip);
}

/* ---- the catalogue ---- */

static const char *peak_text(sm_report *r, double peak) {
    return peak > 0.0 ? sm_show_number(r, peak / 1e12) : "-";
}

static const char *links_text(sm_report *r, const sm_chip *chip) {
    double rate = chip->link_bytes_per_s_oneway.value;
    if (chip->fabric == SM_FABRIC_TORUS)
        return sm_textf(r, "%d x %s, %dD", chip->links_per_chip, sm_show_rate(r, rate, "B/s"),
                        chip->torus_axes);
    if (chip->fabric == SM_FABRIC_NONE || chip->tree_levels == 0) return "-";
    return sm_textf(r, "%s in %ds",
                    sm_show_rate(r, chip->tree[0].child_bytes_per_s_oneway.value, "B/s"),
                    chip->tree[0].degree);
}

static void catalogue(sm_report *r, const sm_chip_question *q) {
    sm_data *chips = sm_put_array(r, r->data, "chips");
    sm_table *table =
        sm_page_table(r, "Chips: dense peaks in TFLOP/s, links one way, dollars per chip and hour",
                      "<chip|>16-bit|>fp8|>{B}memory|>{B/s}bandwidth|<links|>$/h");
    for (size_t i = 0; i < q->n_own + sm_chip_count(); i++) {
        const sm_chip *chip = i < q->n_own ? &q->own[i] : sm_chip_at(i - q->n_own);
        double usd = sm_chip_usd_per_hour(chip), bytes = chip->memory_bytes.value;
        double rate = chip->memory_bytes_per_s.value;
        sm_page_row(r, table, chip->name, peak_text(r, sm_chip_peak(chip, SM_BF16, NULL)),
                    peak_text(r, chip->flops_per_s[SM_FP8].value), bytes > 0.0 ? bytes : NAN,
                    rate > 0.0 ? rate : NAN, links_text(r, chip),
                    usd > 0.0 ? sm_textf(r, "%.2f", usd) : "-");
        sm_chip_fields(r, sm_put_object(r, chips, NULL), chip);
    }
}

/* ---- one chip ---- */

/* Sources are long and few: the table carries numbers, the list below it the texts. */
enum { MOST_NOTES = 40 };
typedef struct notes {
    int n;
    const char *text[MOST_NOTES];
} notes;

static const char *note_of(sm_report *r, notes *list, const char *source) {
    if (!source || !source[0]) return "-";
    int i = 0;
    while (i < list->n && strcmp(list->text[i], source) != 0) i++;
    if (i == MOST_NOTES) return source;
    if (i == list->n) list->text[list->n++] = source;
    return sm_textf(r, "[%d]", i + 1);
}

const char *sm_chip_value(sm_report *r, const char *unit, double value) {
    if (strcmp(unit, "B") == 0) return sm_show_bytes(r, value);
    if (strcmp(unit, "s") == 0) return sm_show_seconds(r, value);
    if (strcmp(unit, "Hz") == 0) return sm_textf(r, "%.4g GHz", value / 1e9);
    if (strcmp(unit, "W") == 0) return sm_textf(r, "%.4g W", value);
    if (strcmp(unit, "USD") == 0) return sm_textf(r, "$%.2f", value);
    if (strcmp(unit, "FLOP/B") == 0 || !unit[0]) return sm_show_number(r, value);
    return sm_show_rate(r, value, unit);
}

static void fact_rows(sm_report *r, const sm_chip *chip) {
    notes list = {.n = 0};
    sm_table *table = sm_page_table(r, NULL, "<fact|>value|<source");
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        const sm_fact *peak = &chip->flops_per_s[d];
        if (peak->value > 0.0)
            sm_page_row(r, table, sm_textf(r, "%s peak, dense", sm_dtype_names[d]),
                        sm_show_rate(r, peak->value, "FLOP/s"), note_of(r, &list, peak->source));
    }
    for (const sm_fact_row *row = sm_fact_rows; row->key; row++) {
        const sm_fact *fact = sm_fact_of(chip, row);
        if (fact->value > 0.0)
            sm_page_row(r, table, row->label, sm_chip_value(r, row->unit, fact->value),
                        note_of(r, &list, fact->source));
    }
    /* Prices of a file may leave provider and date out: "price per hour, Google Cloud, 2025-02". */
    for (int i = 0; i < chip->prices; i++) {
        const sm_price *price = &chip->price[i];
        const char *provider = price->provider ? price->provider : "";
        const char *date = price->date ? price->date : "";
        sm_page_row(r, table,
                    sm_textf(r, "price per hour%s%s%s%s", *provider ? ", " : "", provider,
                             *date ? ", " : "", date),
                    sm_textf(r, "$%.2f", price->usd_per_chip_hour),
                    note_of(r, &list, price->source));
    }
    for (int i = 0; i < list.n; i++) sm_report_text(r, "[%d] %s", i + 1, list.text[i]);
}

static void ridge_rows(sm_report *r, const sm_chip *chip) {
    sm_feed feeds[SM_MAX_FEEDS];
    int n = sm_chip_feeds(chip, feeds);
    if (n > SM_PAGE_COLUMNS - 1) n = SM_PAGE_COLUMNS - 1;
    const char *heads = "<dtype";
    for (int i = 0; i < n; i++) heads = sm_textf(r, "%s|>%s", heads, feeds[i].name);
    sm_table *table =
        sm_page_table(r, "Ridge points: FLOPs per byte from which the math is the limit", heads);
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        double peak = chip->flops_per_s[d].value;
        const char *cells[SM_PAGE_COLUMNS] = {sm_dtype_names[d]};
        for (int i = 0; i < n; i++) cells[i + 1] = sm_show_number(r, peak / feeds[i].rate->value);
        if (peak > 0.0) sm_page_cells(r, table, cells);
    }
}

static void link_rows(sm_report *r, const sm_chip *chip) {
    sm_feed feeds[SM_MAX_FEEDS];
    int n = sm_chip_feeds(chip, feeds);
    sm_table *table = sm_page_table(
        r, "Links", "<link|<of|>{B/s}one way|>{B/s}per chip|>{s}latency|<reduces in the switch");
    for (int i = 0; i < n; i++) {
        const sm_feed *feed = &feeds[i];
        if (!feed->link) continue;
        sm_page_row(r, table, feed->name,
                    feed->chips == 1 ? "a chip" : sm_textf(r, "%d chips", feed->chips),
                    feed->rate->value, feed->rate->value / feed->chips,
                    feed->latency_s > 0.0 ? feed->latency_s : NAN, feed->in_network_reduction);
    }
    for (int i = 0; i < n; i++)
        if (feeds[i].mesh > 1)
            sm_report_text(r, "%s is a full mesh of %d: of its %s each of the %d others has %s.",
                           feeds[i].name, feeds[i].mesh,
                           sm_show_rate(r, feeds[i].rate->value, "B/s"), feeds[i].mesh - 1,
                           sm_show_rate(r, feeds[i].rate->value / (feeds[i].mesh - 1), "B/s"));
}

static void shape_text(sm_report *r, const sm_chip *chip) {
    static const char *const wraps[] = {"axes never wrap", "an axis wraps when its length is 16",
                                        "axes wrap when every length is a multiple of 4",
                                        "axes wrap in the full pod", "axes always wrap"};
    if (chip->fabric == SM_FABRIC_TORUS) {
        const char *shape = "";
        for (int i = 0; i < chip->torus_axes; i++)
            shape = sm_textf(r, "%s%s%d", shape, i ? "x" : "", chip->pod_shape[i]);
        sm_report_text(r, "Torus of up to %s chips; %s.", shape, wraps[chip->wrap_rule]);
    }
    sm_report_text(r,
                   "A matmul is padded to tiles of %d x %d x %d (rows, contraction, columns); %d "
                   "core%s, %d chip%s per host.",
                   chip->tile_m, chip->tile_k, chip->tile_n, chip->cores,
                   chip->cores == 1 ? "" : "s", chip->chips_per_host,
                   chip->chips_per_host == 1 ? "" : "s");
    if (chip->conflicts && chip->conflicts[0])
        sm_report_text(r, "Where sources disagree: %s", chip->conflicts);
}

static void explain_ridges(sm_report *r, const sm_chip *chip) {
    sm_feed feeds[SM_MAX_FEEDS];
    int n = sm_chip_feeds(chip, feeds);
    sm_dtype used;
    double peak = sm_chip_peak(chip, SM_BF16, &used);
    r->why = sm_page_why(r, NULL, sm_textf(r, "ridge points in %s:", sm_dtype_name(used)),
                         "one per memory and link", n, "");
    for (int i = 0; i < n; i++) {
        sm_why *node = sm_page_why(r, r->why, feeds[i].name, "peak / bandwidth",
                                   peak / feeds[i].rate->value, "FLOP/B");
        sm_page_fact(r, node, "peak", &chip->flops_per_s[used], "FLOP/s");
        sm_page_fact(r, node, "bandwidth, one way", feeds[i].rate, "B/s");
    }
}

sm_status sm_answer_chip(const sm_chip_question *question, sm_report *r, sm_error *err) {
    sm_chip_question q;
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    if (status) return status;
    sm_put(r, r->data, "command", "chip");
    const sm_chip *chip = q.chip;
    if (q.n_compared > 0) return sm_chip_compare(&q, r, err);
    if (!chip) {
        catalogue(r, &q);
        return SM_OK;
    }
    sm_chip shown = *chip;
    if (q.calibration) shown.calibration = NULL; /* the key holds the constants instead */
    sm_chip_fields(r, r->data, &shown);
    sm_report_heading(r, "%s (%s)", chip->title && chip->title[0] ? chip->title : chip->name,
                      chip->name);
    if (q.calibration) {
        show_calibration(r, chip, q.calibration);
        return SM_OK;
    }
    fact_rows(r, chip);
    ridge_rows(r, chip);
    link_rows(r, chip);
    shape_text(r, chip);
    /* Whose measured constants turn the chip's bounds into expected times. */
    static const char *const words[] = {
        "its own constants", "the constants of its relative",
        "for want of constants of its own or of a relative (constants_like) those of"};
    const sm_calibration *c = sm_calibration_of(chip);
    sm_report_text(r, "Expected times take %s '%s' (--calibration).",
                   words[sm_calibration_origin_of(c, chip)], c->chip);
    if (q.explain) explain_ridges(r, chip);
    return SM_OK;
}
