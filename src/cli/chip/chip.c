/* chip: the catalogue, or all that is known of one chip: peaks, memories, links, ridge points and
 * their sources. */
#include "chip_facts.h"
#include "scalemodel/answer.h"
#include "scalemodel/page.h"
#include "verbs.h"
#include <string.h>

typedef struct chip_options {
    bool calibration;
    const char *software;
} chip_options;

static const cli_option chip_table[] = {
    {"calibration", 0, CLI_FLAG, offsetof(chip_options, calibration), NULL,
     "the constants that turn datasheet bounds into expected times, and where they come from"},
    {"software", 0, CLI_TEXT, offsetof(chip_options, software), "NAME",
     "with --calibration: the constants of this software generation"},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

/* ---- the catalogue ---- */

static const char *show_peak(sm_report *r, const sm_chip *chip, sm_dtype dtype) {
    double peak = chip->flops_per_s[dtype].value;
    return peak > 0.0 ? sm_show_number(r, peak / 1e12) : "-";
}

static const char *show_links(sm_report *r, const sm_chip *chip) {
    double rate = chip->link_bytes_per_s_oneway.value;
    if (chip->fabric == SM_FABRIC_TORUS)
        return sm_textf(r, "%d x %s, %dD", chip->links_per_chip, sm_show_rate(r, rate, "B/s"),
                        chip->torus_axes);
    if (chip->fabric == SM_FABRIC_NONE || chip->tree_levels == 0) return "-";
    return sm_textf(r, "%s in %ds",
                    sm_show_rate(r, chip->tree[0].child_bytes_per_s_oneway.value, "B/s"),
                    chip->tree[0].degree);
}

static void catalogue_row(sm_report *r, sm_table *table, sm_data *chips, const sm_chip *chip) {
    double usd = sm_chip_usd_per_hour(chip);
    sm_page_row(r, table, chip->name, show_peak(r, chip, SM_BF16), show_peak(r, chip, SM_FP8),
                chip->memory_bytes.value > 0.0 ? sm_show_bytes(r, chip->memory_bytes.value) : "-",
                chip->memory_bytes_per_s.value > 0.0
                    ? sm_show_rate(r, chip->memory_bytes_per_s.value, "B/s")
                    : "-",
                show_links(r, chip), usd > 0.0 ? sm_textf(r, "%.2f", usd) : "-");
    cli_chip_fields(r, sm_put_object(r, chips, NULL), chip);
}

static sm_status show_catalogue(const cli_call *call, sm_report *r, sm_error *err) {
    sm_chip *own;
    size_t n;
    sm_status status = cli_system_file(call, &own, &n, err);
    if (status) return status;
    sm_data *chips = sm_put_array(r, r->data, "chips");
    sm_table *table =
        sm_page_table(r, "Chips: dense peaks in TFLOP/s, links one way, dollars per chip and hour",
                      "<chip|>bf16|>fp8|>memory|>bandwidth|<links|>$/h");
    for (size_t i = 0; i < n; i++) catalogue_row(r, table, chips, &own[i]);
    for (size_t i = 0; i < sm_chip_count(); i++) catalogue_row(r, table, chips, sm_chip_at(i));
    sm_report_table(r, table);
    return SM_OK;
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

static void peak_rows(sm_report *r, const sm_chip *chip, sm_table *table, notes *list) {
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        const sm_fact *peak = &chip->flops_per_s[d];
        if (peak->value > 0.0)
            sm_page_row(r, table, sm_textf(r, "%s peak, dense", sm_dtype_names[d]),
                        sm_show_rate(r, peak->value, "FLOP/s"), note_of(r, list, peak->source));
    }
}

/* "price per hour, Google Cloud, 2025-02"; a file may leave provider and date out. */
static const char *price_label(sm_report *r, const sm_price *price) {
    const char *provider = price->provider ? price->provider : "";
    const char *date = price->date ? price->date : "";
    return sm_textf(r, "price per hour%s%s%s%s", *provider ? ", " : "", provider, *date ? ", " : "",
                    date);
}

static void price_rows(sm_report *r, const sm_chip *chip, sm_table *table, notes *list) {
    for (int i = 0; i < chip->prices; i++) {
        const sm_price *price = &chip->price[i];
        sm_page_row(r, table, price_label(r, price), sm_textf(r, "$%.2f", price->usd_per_chip_hour),
                    note_of(r, list, price->source));
    }
}

static void fact_rows(sm_report *r, const sm_chip *chip) {
    notes list = {.n = 0};
    sm_table *table = sm_page_table(r, NULL, "<fact|>value|<source");
    peak_rows(r, chip, table, &list);
    for (const cli_fact_row *row = cli_fact_rows; row->key; row++) {
        const sm_fact *fact = cli_fact_of(chip, row);
        if (fact->value > 0.0)
            sm_page_row(r, table, row->label, cli_fact_show(r, row->unit, fact->value),
                        note_of(r, &list, fact->source));
    }
    price_rows(r, chip, table, &list);
    sm_report_table(r, table);
    for (int i = 0; i < list.n; i++) sm_report_text(r, "[%d] %s", i + 1, list.text[i]);
}

static void ridge_rows(sm_report *r, const sm_chip *chip) {
    cli_feed feeds[CLI_MAX_FEEDS];
    int n = cli_feeds(chip, feeds);
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
    sm_report_table(r, table);
}

static void link_rows(sm_report *r, const sm_chip *chip) {
    cli_feed feeds[CLI_MAX_FEEDS];
    int n = cli_feeds(chip, feeds);
    sm_table *table =
        sm_page_table(r, "Links", "<link|<of|>one way|>per chip|>latency|<reduces in the switch");
    int rows = 0;
    for (int i = 0; i < n; i++) {
        const cli_feed *feed = &feeds[i];
        if (!feed->link) continue;
        sm_page_row(r, table, feed->name,
                    feed->chips == 1 ? "a chip" : sm_textf(r, "%d chips", feed->chips),
                    sm_show_rate(r, feed->rate->value, "B/s"),
                    sm_show_rate(r, feed->rate->value / feed->chips, "B/s"),
                    feed->latency_s > 0.0 ? sm_show_seconds(r, feed->latency_s) : "-",
                    feed->in_network_reduction ? "yes" : "no");
        rows++;
    }
    if (rows) sm_report_table(r, table);
}

static void shape_text(sm_report *r, const sm_chip *chip) {
    static const char *const wraps[] = {"axes never wrap", "an axis wraps when its length is 16",
                                        "axes wrap when every length is a multiple of 4",
                                        "axes wrap in the full pod", "axes always wrap"};
    if (chip->fabric == SM_FABRIC_TORUS && chip->torus_axes == 2)
        sm_report_text(r, "Torus of up to %dx%d chips; %s.", chip->pod_shape[0], chip->pod_shape[1],
                       wraps[chip->wrap_rule]);
    if (chip->fabric == SM_FABRIC_TORUS && chip->torus_axes == 3)
        sm_report_text(r, "Torus of up to %dx%dx%d chips; %s.", chip->pod_shape[0],
                       chip->pod_shape[1], chip->pod_shape[2], wraps[chip->wrap_rule]);
    sm_report_text(r,
                   "A matmul is padded to tiles of %d x %d x %d (rows, contraction, columns); %d "
                   "core%s, %d chip%s "
                   "per host.",
                   chip->tile_m, chip->tile_k, chip->tile_n, chip->cores,
                   chip->cores == 1 ? "" : "s", chip->chips_per_host,
                   chip->chips_per_host == 1 ? "" : "s");
    if (chip->conflicts && chip->conflicts[0])
        sm_report_text(r, "Where sources disagree: %s", chip->conflicts);
}

static void explain_ridges(sm_report *r, const sm_chip *chip) {
    cli_feed feeds[CLI_MAX_FEEDS];
    int n = cli_feeds(chip, feeds);
    sm_dtype used;
    double peak = sm_chip_peak(chip, SM_BF16, &used);
    r->why = sm_page_why(r, sm_textf(r, "ridge points in %s:", sm_dtype_name(used)),
                         "one per memory and link", n, "");
    for (int i = 0; i < n; i++) {
        sm_why *node = sm_page_why(r, feeds[i].name, "peak / bandwidth",
                                   peak / feeds[i].rate->value, "FLOP/B");
        sm_page_fact(r, node, "peak", &chip->flops_per_s[used], "FLOP/s");
        sm_page_fact(r, node, "bandwidth, one way", feeds[i].rate, "B/s");
        sm_why_add(r->why, node);
    }
}

static sm_status find_chip(const cli_call *call, sm_system *system, sm_error *err) {
    sm_chip *own;
    size_t n;
    sm_status status = cli_system_file(call, &own, &n, err);
    if (status) return status;
    sm_source source = sm_source_of("NAME", call->positional[0]);
    return sm_system_parse(&source, own, n, system, err);
}

static sm_status show_calibration(const cli_call *call, const sm_chip *chip, sm_report *r,
                                  sm_error *err) {
    const chip_options *options = call->values;
    cli_calibration_values given = {.software = options->software};
    const sm_calibration *c = NULL;
    sm_status status = cli_calibration(call, chip, &given, &c, err);
    if (!status) cli_chip_calibration(r, chip, c);
    return status;
}

static sm_status run_chip(const cli_call *call, sm_report *r, sm_error *err) {
    const chip_options *options = call->values;
    sm_put_text(r, r->data, "command", "chip");
    if (options->software && !options->calibration)
        return sm_fail(err, SM_USAGE, "--software needs --calibration");
    if (call->positionals == 0) {
        if (options->calibration)
            return sm_fail(err, SM_USAGE, "chip --calibration needs the NAME of a chip");
        if (call->common.explain)
            return sm_fail(err, SM_USAGE, "chip --explain needs the NAME of a chip");
        return show_catalogue(call, r, err);
    }
    sm_system system;
    sm_status status = find_chip(call, &system, err);
    if (status) return status;
    const sm_chip *chip = &system.chip;
    cli_chip_fields(r, r->data, chip);
    sm_report_heading(r, "%s (%s)", chip->title && chip->title[0] ? chip->title : chip->name,
                      chip->name);
    if (options->calibration) return show_calibration(call, chip, r, err);
    fact_rows(r, chip);
    ridge_rows(r, chip);
    link_rows(r, chip);
    shape_text(r, chip);
    if (call->common.explain) explain_ridges(r, chip);
    return SM_OK;
}

const cli_verb cli_chip = {
    .name = "chip",
    .summary = "the catalogue of chips; one chip with ridge points and sources",
    .arguments = "[NAME]",
    .least = 0,
    .most = 1,
    .options = chip_table,
    .values_bytes = sizeof(chip_options),
    .notes = "example: scalemodel chip tpu-v5e\n",
    .run = run_chip,
};
