/* chip_facts: one row per fact, so that the page, the JSON and the list of sources cannot disagree.
 */
#include "chip_facts.h"
#include <string.h>

#define ROW(field, label, unit)                                                                    \
    { #field, label, unit, offsetof(sm_chip, field) }
const cli_fact_row cli_fact_rows[] = {
    ROW(vector_flops_per_s, "vector unit, fp32", CLI_FLOPS_PER_S),
    ROW(memory_bytes, "memory", CLI_BYTES),
    ROW(memory_bytes_per_s, "memory bandwidth", CLI_BYTES_PER_S),
    ROW(onchip_bytes, "on-chip memory", CLI_BYTES),
    ROW(onchip_bytes_per_s, "on-chip bandwidth", CLI_BYTES_PER_S),
    ROW(shared_bytes, "shared memory, all SMs", CLI_BYTES),
    ROW(clock_hz, "clock", CLI_HERTZ),
    ROW(link_bytes_per_s_oneway, "link, one way", CLI_BYTES_PER_S),
    ROW(hop_latency_s, "hop latency", CLI_SECONDS),
    ROW(pcie_bytes_per_s_oneway, "PCIe, one way", CLI_BYTES_PER_S),
    ROW(dcn_bytes_per_s_oneway, "data-center network", CLI_BYTES_PER_S),
    ROW(dcn_latency_s, "its latency", CLI_SECONDS),
    ROW(host_bytes, "memory of a host", CLI_BYTES),
    ROW(launch_latency_s, "kernel launch", CLI_SECONDS),
    ROW(tdp_w, "power", CLI_WATT),
    {NULL, NULL, CLI_BYTES, 0},
};

const sm_fact *cli_fact_of(const sm_chip *chip, const cli_fact_row *row) {
    return (const sm_fact *)(const void *)((const char *)chip + row->offset);
}

const char *cli_fact_show(sm_report *r, cli_fact_unit unit, double value) {
    switch (unit) {
    case CLI_BYTES: return sm_show_bytes(r, value);
    case CLI_BYTES_PER_S: return sm_show_rate(r, value, "B/s");
    case CLI_FLOPS_PER_S: return sm_show_rate(r, value, "FLOP/s");
    case CLI_SECONDS: return sm_show_seconds(r, value);
    case CLI_HERTZ: return sm_textf(r, "%.4g GHz", value / 1e9);
    case CLI_WATT: return sm_textf(r, "%.4g W", value);
    }
    return "";
}

/* ---- feeds ---- */

static void add_feed(cli_feed *feeds, int *n, const cli_feed *feed) {
    if (feed->rate->value > 0.0) feeds[(*n)++] = *feed;
}

/* A node's uplink serves all chips below it: the degrees of the levels inside multiply. */
static void add_tree(const sm_chip *chip, cli_feed *feeds, int *n) {
    int chips = 1;
    for (int i = 0; i < chip->tree_levels; i++) {
        const sm_tree_level *level = &chip->tree[i];
        add_feed(feeds, n,
                 &(cli_feed){level->name, true, chips, &level->child_bytes_per_s_oneway,
                             level->hop_latency_s.value, level->in_network_reduction});
        chips *= level->degree > 0 ? level->degree : 1;
    }
}

int cli_feeds(const sm_chip *chip, cli_feed *feeds) {
    int n = 0;
    bool torus = chip->fabric == SM_FABRIC_TORUS;
    add_feed(feeds, &n, &(cli_feed){"memory", false, 1, &chip->memory_bytes_per_s, 0.0, false});
    add_feed(feeds, &n,
             &(cli_feed){torus ? "vmem" : "l2", false, 1, &chip->onchip_bytes_per_s, 0.0, false});
    add_feed(feeds, &n, &(cli_feed){"pcie", false, 1, &chip->pcie_bytes_per_s_oneway, 0.0, false});
    if (torus)
        add_feed(feeds, &n,
                 &(cli_feed){"ici", true, 1, &chip->link_bytes_per_s_oneway,
                             chip->hop_latency_s.value, false});
    else add_tree(chip, feeds, &n);
    if (torus)
        add_feed(feeds, &n,
                 &(cli_feed){"dcn", true, 1, &chip->dcn_bytes_per_s_oneway,
                             chip->dcn_latency_s.value, false});
    return n;
}

/* ---- JSON ---- */

static void put_ridges(sm_report *r, sm_data *object, const char *key, const sm_chip *chip,
                       double bytes_per_s) {
    sm_data *ridges = sm_put_object(r, object, key);
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        if (chip->flops_per_s[d].value > 0.0)
            sm_put(r, ridges, sm_dtype_names[d], chip->flops_per_s[d].value / bytes_per_s);
}

static void put_link(sm_report *r, sm_data *links, const sm_chip *chip, const cli_feed *feed) {
    sm_data *link = sm_put_object(r, links, NULL);
    bool torus = chip->fabric == SM_FABRIC_TORUS && strcmp(feed->name, "ici") == 0;
    sm_put_text(r, link, "name", feed->name);
    sm_put_text(r, link, "kind", torus ? "torus" : "switch");
    sm_put(r, link, "chips_per_child", feed->chips);
    sm_put(r, link, "bytes_per_s_oneway", feed->rate->value);
    sm_put(r, link, "latency_s", feed->latency_s);
    sm_put_bool(r, link, "in_network_reduction", feed->in_network_reduction);
    put_ridges(r, link, "ridge_flops_per_byte", chip, feed->rate->value);
    if (torus) {
        sm_put(r, link, "links_per_chip", chip->links_per_chip);
        put_ridges(r, link, "ridge_flops_per_byte_ring", chip, 2.0 * feed->rate->value);
    }
}

static void put_feeds(sm_report *r, sm_data *object, const sm_chip *chip) {
    cli_feed feeds[CLI_MAX_FEEDS];
    int n = cli_feeds(chip, feeds);
    put_ridges(r, object, "ridge_flops_per_byte", chip, chip->memory_bytes_per_s.value);
    sm_data *ridges = sm_put_object(r, object, "ridges");
    for (int i = 0; i < n; i++) put_ridges(r, ridges, feeds[i].name, chip, feeds[i].rate->value);
    sm_data *links = sm_put_array(r, object, "links");
    for (int i = 0; i < n; i++)
        if (feeds[i].link) put_link(r, links, chip, &feeds[i]);
}

static void put_prices(sm_report *r, sm_data *object, const sm_chip *chip) {
    sm_data *prices = sm_put_array(r, object, "prices");
    for (int i = 0; i < chip->prices; i++) {
        sm_data *price = sm_put_object(r, prices, NULL);
        sm_put(r, price, "usd_per_chip_hour", chip->price[i].usd_per_chip_hour);
        sm_put_text(r, price, "provider", chip->price[i].provider ? chip->price[i].provider : "");
        sm_put_text(r, price, "date", chip->price[i].date ? chip->price[i].date : "");
        sm_put_text(r, price, "source", chip->price[i].source ? chip->price[i].source : "");
    }
}

static void put_source(sm_report *r, sm_data *sources, const char *key, const sm_fact *fact) {
    if (fact->value > 0.0 && fact->source) sm_put_text(r, sources, key, fact->source);
}

static void put_sources(sm_report *r, sm_data *object, const sm_chip *chip) {
    sm_data *sources = sm_put_object(r, object, "sources");
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        put_source(r, sources, sm_textf(r, "flops_per_s.%s", sm_dtype_names[d]),
                   &chip->flops_per_s[d]);
    for (const cli_fact_row *row = cli_fact_rows; row->key; row++)
        put_source(r, sources, row->key, cli_fact_of(chip, row));
    for (int i = 0; i < chip->tree_levels; i++) {
        const sm_tree_level *level = &chip->tree[i];
        put_source(r, sources, sm_textf(r, "%s.bytes_per_s_oneway", level->name),
                   &level->child_bytes_per_s_oneway);
        put_source(r, sources, sm_textf(r, "%s.latency_s", level->name), &level->hop_latency_s);
    }
}

static void put_shape(sm_report *r, sm_data *object, const sm_chip *chip) {
    static const char *const fabrics[] = {"torus", "switch", "none"};
    sm_put_text(r, object, "fabric", fabrics[chip->fabric]);
    sm_data *pod = sm_put_array(r, object, "pod_shape");
    for (int i = 0; i < chip->torus_axes; i++) sm_put(r, pod, NULL, chip->pod_shape[i]);
    sm_data *tile = sm_put_array(r, object, "tile");
    sm_put(r, tile, NULL, chip->tile_m);
    sm_put(r, tile, NULL, chip->tile_k);
    sm_put(r, tile, NULL, chip->tile_n);
    sm_put(r, object, "cores", chip->cores);
    sm_put(r, object, "matrix_units_per_core", chip->matrix_units_per_core);
    sm_put(r, object, "chips_per_host", chip->chips_per_host);
}

void cli_chip_fields(sm_report *r, sm_data *object, const sm_chip *chip) {
    sm_put_text(r, object, "name", chip->name);
    sm_put_text(r, object, "title", chip->title ? chip->title : "");
    sm_put_text(r, object, "vendor", chip->vendor ? chip->vendor : "");
    sm_data *flops = sm_put_object(r, object, "flops_per_s");
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        if (chip->flops_per_s[d].value > 0.0)
            sm_put(r, flops, sm_dtype_names[d], chip->flops_per_s[d].value);
    for (const cli_fact_row *row = cli_fact_rows; row->key; row++) {
        double value = cli_fact_of(chip, row)->value;
        if (value > 0.0) sm_put(r, object, row->key, value);
    }
    put_shape(r, object, chip);
    put_feeds(r, object, chip);
    put_prices(r, object, chip);
    sm_put_text(r, object, "conflicts", chip->conflicts ? chip->conflicts : "");
    put_sources(r, object, chip);
}
