/* chip_compare: chips side by side, fact by fact, with the ratio of each to the first. */
#include "chip_facts.h"
#include "question.h"
#include <string.h>

typedef struct side_by_side {
    sm_report *report;
    const sm_chip *chip; /* in.n_compared of them */
    int n;
    sm_table *table;
    sm_data *rows;
} side_by_side;

/* value[i]: of the i-th chip; 0 or NAN where it is not known. A row that no chip has is left out.
 */
static void fact_row(const side_by_side *s, const char *label, const char *unit,
                     const double *value) {
    sm_report *r = s->report;
    const char *cells[SM_MAX_CHIPS_COMPARED + 1] = {label};
    bool any = false;
    for (int i = 0; i < s->n; i++) any = any || value[i] > 0.0;
    if (!any) return;
    sm_data *row = sm_put_object(r, s->rows, NULL);
    sm_put(r, row, "fact|unit", label, unit);
    sm_data *values = sm_put_object(r, row, "values");
    sm_data *ratios = sm_put_object(r, row, "ratios");
    for (int i = 0; i < s->n; i++) {
        bool known = value[i] > 0.0, both = known && value[0] > 0.0;
        const char *text = known ? sm_chip_value(r, unit, value[i]) : "-";
        const char *name = s->chip[i].name;
        cells[i + 1] = i > 0 && both ? sm_textf(r, "%s (%.3gx)", text, value[i] / value[0]) : text;
        sm_put(r, values, name, known ? value[i] : NAN);
        sm_put(r, ratios, name, both ? value[i] / value[0] : NAN);
    }
    sm_page_cells(r, s->table, cells);
}

/* Of the memory or link of this name; NULL where the chip has none. */
static const sm_fact *rate_of(const sm_chip *chip, const char *feed) {
    sm_feed feeds[SM_MAX_FEEDS];
    int n = sm_chip_feeds(chip, feeds);
    for (int i = 0; i < n; i++)
        if (strcmp(feeds[i].name, feed) == 0) return feeds[i].rate;
    return NULL;
}

/* Links of a tree have their rates here: those of a torus are facts above. */
static void feed_rows(const side_by_side *s, const sm_feed *feed, bool tree) {
    double rate[SM_MAX_CHIPS_COMPARED], ridge[SM_MAX_CHIPS_COMPARED];
    sm_dtype used;
    for (int i = 0; i < s->n; i++) {
        const sm_fact *fact = rate_of(&s->chip[i], feed->name);
        rate[i] = fact ? fact->value : NAN;
        ridge[i] = sm_chip_peak(&s->chip[i], SM_BF16, &used) / rate[i];
    }
    if (feed->link && tree)
        fact_row(s, sm_textf(s->report, "%s, one way", feed->name), "B/s", rate);
    fact_row(s, sm_textf(s->report, "ridge point, %s", feed->name), "FLOP/B", ridge);
}

/* A row for each memory and link by its name, in the order in which chips have them. */
static void all_feed_rows(const side_by_side *s) {
    const char *seen[SM_MAX_CHIPS_COMPARED * SM_MAX_FEEDS];
    int names = 0;
    for (int c = 0; c < s->n; c++) {
        sm_feed feeds[SM_MAX_FEEDS];
        int n = sm_chip_feeds(&s->chip[c], feeds);
        for (int f = 0; f < n; f++) {
            int at = 0;
            while (at < names && strcmp(seen[at], feeds[f].name) != 0) at++;
            if (at < names) continue;
            seen[names++] = feeds[f].name;
            feed_rows(s, &feeds[f], s->chip[c].fabric != SM_FABRIC_TORUS);
        }
    }
}

sm_status sm_chip_compare(const sm_chip_question *q, sm_report *r, sm_error *err) {
    double value[SM_MAX_CHIPS_COMPARED];
    const char *heads = "<fact";
    side_by_side s = {.report = r, .chip = q->compared, .n = q->n_compared};
    sm_status status = sm_question_limit("n_compared", s.n, SM_MAX_CHIPS_COMPARED, err);
    if (status) return status;
    for (int i = 1; i < s.n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(s.chip[i].name, s.chip[k].name) == 0)
                return sm_fail(err, SM_USAGE, "%s is named twice", s.chip[i].name);
    for (int i = 0; i < s.n; i++) heads = sm_textf(r, "%s|>%s", heads, s.chip[i].name);
    sm_report_heading(r, "%s and %d more", s.chip[0].name, s.n - 1);
    s.table = sm_page_table(r, NULL, heads);
    s.rows = sm_put_array(r, r->data, "rows");
    r->records = s.rows;
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        for (int i = 0; i < s.n; i++) value[i] = s.chip[i].flops_per_s[d].value;
        fact_row(&s, sm_textf(r, "%s peak, dense", sm_dtype_names[d]), "FLOP/s", value);
    }
    for (const sm_fact_row *row = sm_fact_rows; row->key; row++) {
        for (int i = 0; i < s.n; i++) value[i] = sm_fact_of(&s.chip[i], row)->value;
        fact_row(&s, row->label, row->unit, value);
    }
    for (int i = 0; i < s.n; i++) value[i] = s.chip[i].chips_per_host;
    fact_row(&s, "chips of a host", "", value);
    for (int i = 0; i < s.n; i++) value[i] = sm_chip_usd_per_hour(&s.chip[i]);
    fact_row(&s, "price per hour", "USD", value);
    all_feed_rows(&s);
    sm_data *chips = sm_put_array(r, r->data, "chips");
    for (int i = 0; i < s.n; i++) sm_chip_fields(r, sm_put_object(r, chips, NULL), &s.chip[i]);
    sm_report_text(r,
                   "In parentheses: the ratio to %s. Ridge points: FLOPs per byte in bf16 from "
                   "which the math is the limit.",
                   s.chip[0].name);
    return SM_OK;
}
