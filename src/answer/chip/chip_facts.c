/* chip_facts: one row per fact, so that the page, the data and the list of sources cannot disagree.
 */
#include "chip_facts.h"
#include "scalemodel/io.h"
#include <assert.h>
#include <string.h>

#define ROW(field, label, unit)                                                                    \
    { #field, label, unit, offsetof(sm_chip, field) }
const sm_fact_row sm_fact_rows[] = {
    ROW(vector_flops_per_s, "vector unit, fp32", "FLOP/s"),
    ROW(memory_bytes, "memory", "B"),
    ROW(memory_bytes_per_s, "memory bandwidth", "B/s"),
    ROW(onchip_bytes, "on-chip memory", "B"),
    ROW(onchip_bytes_per_s, "on-chip bandwidth", "B/s"),
    ROW(shared_bytes, "shared memory, all SMs", "B"),
    ROW(clock_hz, "clock", "Hz"),
    ROW(link_bytes_per_s_oneway, "link, one way", "B/s"),
    ROW(hop_latency_s, "hop latency", "s"),
    ROW(pcie_bytes_per_s_oneway, "PCIe, one way", "B/s"),
    ROW(dcn_bytes_per_s_oneway, "data-center network", "B/s"),
    ROW(dcn_latency_s, "its latency", "s"),
    ROW(host_bytes, "memory of a host", "B"),
    ROW(host_bytes_per_s, "its bandwidth", "B/s"),
    ROW(launch_latency_s, "kernel launch", "s"),
    ROW(tdp_w, "power", "W"),
    ROW(interruptions_per_chip_hour, "interruptions per chip-hour", ""),
    {NULL, NULL, NULL, 0},
};

const sm_fact *sm_fact_of(const sm_chip *chip, const sm_fact_row *row) {
    return (const sm_fact *)(const void *)((const char *)chip + row->offset);
}

/* ---- feeds ---- */

static void add_feed(sm_feed *feeds, int *n, sm_feed feed) {
    assert(*n < SM_MAX_FEEDS);
    if (feed.rate->value > 0.0) feeds[(*n)++] = feed;
}

int sm_chip_feeds(const sm_chip *chip, sm_feed *feeds) {
    int n = 0, chips = 1;
    bool torus = chip->fabric == SM_FABRIC_TORUS;
    const char *onchip = torus ? "vmem" : "l2";
    add_feed(feeds, &n, (sm_feed){"memory", false, 1, &chip->memory_bytes_per_s, 0.0, false, 0});
    add_feed(feeds, &n, (sm_feed){onchip, false, 1, &chip->onchip_bytes_per_s, 0.0, false, 0});
    add_feed(feeds, &n, (sm_feed){"pcie", false, 1, &chip->pcie_bytes_per_s_oneway, 0.0, false, 0});
    if (torus) {
        add_feed(feeds, &n,
                 (sm_feed){"ici", true, 1, &chip->link_bytes_per_s_oneway,
                           chip->hop_latency_s.value, false, 0});
        add_feed(feeds, &n,
                 (sm_feed){"dcn", true, 1, &chip->dcn_bytes_per_s_oneway, chip->dcn_latency_s.value,
                           false, 0});
        return n;
    }
    /* A node's uplink serves all chips below it: the degrees of the levels inside multiply. */
    for (int i = 0; i < chip->tree_levels; i++) {
        const sm_tree_level *level = &chip->tree[i];
        add_feed(feeds, &n,
                 (sm_feed){level->name, true, chips, &level->child_bytes_per_s_oneway,
                           level->hop_latency_s.value, level->in_network_reduction,
                           level->full_mesh ? level->degree : 0});
        chips *= level->degree > 0 ? level->degree : 1;
    }
    return n;
}

/* ---- data ---- */

/* Per data type, peak / rate. */
static void put_per_dtype(sm_report *r, sm_data *object, const char *key, const sm_chip *chip,
                          double bytes_per_s) {
    sm_data *values = sm_put_object(r, object, key);
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        if (chip->flops_per_s[d].value > 0.0)
            sm_put(r, values, sm_dtype_names[d], chip->flops_per_s[d].value / bytes_per_s);
}

static void put_link(sm_report *r, sm_data *links, const sm_chip *chip, const sm_feed *feed) {
    sm_data *link = sm_put_object(r, links, NULL);
    bool torus = chip->fabric == SM_FABRIC_TORUS && strcmp(feed->name, "ici") == 0;
    sm_put(r, link, "name|kind|chips_per_child|bytes_per_s_oneway|latency_s|in_network_reduction",
           feed->name,
           torus        ? "torus"
           : feed->mesh ? "full-mesh"
                        : "switch",
           feed->chips, feed->rate->value, feed->latency_s, feed->in_network_reduction);
    put_per_dtype(r, link, "ridge_flops_per_byte", chip, feed->rate->value);
    if (!torus) return;
    sm_put(r, link, "links_per_chip", chip->links_per_chip);
    put_per_dtype(r, link, "ridge_flops_per_byte_ring", chip, 2.0 * feed->rate->value);
}

void sm_chip_fields(sm_report *r, sm_data *object, const sm_chip *chip) {
    if (!sm_io_chip_put(chip, object, r->arena)) r->out_of_memory = true;
    sm_feed feeds[SM_MAX_FEEDS];
    int n = sm_chip_feeds(chip, feeds);
    put_per_dtype(r, object, "ridge_flops_per_byte", chip, chip->memory_bytes_per_s.value);
    sm_data *ridges = sm_put_object(r, object, "ridges");
    for (int i = 0; i < n; i++) {
        const char *key = feeds[i].name;
        for (int k = 0; k < i; k++) /* PCIe to the host, and as a level between cards */
            if (strcmp(key, feeds[k].name) == 0) key = sm_textf(r, "%s-link", key);
        put_per_dtype(r, ridges, key, chip, feeds[i].rate->value);
    }
    sm_data *links = sm_put_array(r, object, "links");
    for (int i = 0; i < n; i++)
        if (feeds[i].link) put_link(r, links, chip, &feeds[i]);
}
