/* The machine a training row ran on: nodes of chips, joined at the rate that the source states. */

#include "truth_parts.h"

/* Chips that share the innermost switch: a node of 8, or a rack of up to 72. */
static int domain_of(const sm_training_row *r, const sm_chip *chip) {
    int degree = chip->tree_levels > 0 ? chip->tree[0].degree : 1;
    int node = r->chips_per_node > degree || degree <= 8 ? r->chips_per_node : degree;
    if (node <= 0) node = degree;
    for (int nodes = 1; nodes <= r->chips; nodes++)
        if (r->chips % nodes == 0 && r->chips / nodes <= node) return r->chips / nodes;
    return 1;
}

static void shape_text(const sm_training_row *r, const sm_chip *chip, char *out, size_t size) {
    if (chip->fabric == SM_FABRIC_TORUS) {
        if (r->pods > 1 && r->chips % r->pods == 0)
            snprintf(out, size, "%s:%dx%dslices", chip->name, r->chips / r->pods, r->pods);
        else snprintf(out, size, "%s:%d", chip->name, r->chips);
        return;
    }
    int domain = domain_of(r, chip), nodes = r->chips / domain;
    if (nodes == 1) snprintf(out, size, "%s:%d", chip->name, r->chips);
    else snprintf(out, size, "%s:%dx%d", chip->name, nodes, domain);
}

bool truth_system_called(const char *text, const sm_chip *chip, sm_system *system) {
    sm_error err;
    const sm_source source = sm_source_of("system", text);
    return sm_system_parse(&source, chip, 1, system, &err) == SM_OK;
}

/* Everything beyond the node scales with what one node has. */
static void set_network(const sm_training_row *r, const sm_chip *chip, sm_system *system) {
    int node = r->chips_per_node > 0 ? r->chips_per_node : 8;
    double bits = r->node_bits_per_s;
    if (!(bits > 0) || chip->fabric != SM_FABRIC_SWITCH || system->levels < 2) return;
    double of_child = system->level[1].bytes_per_s_oneway;
    double stated = bits / 8 * system->level[0].size / node;
    for (int l = 1; l < system->levels; l++)
        system->level[l].bytes_per_s_oneway *= stated / of_child;
}

bool truth_system(const sm_truth_row *row, const sm_chip *chip, sm_system *system,
                  const char **why) {
    const sm_training_row *r = &row->of.training;
    char text[96];
    *why = "chips not stated";
    if (r->chips <= 0) return false;
    shape_text(r, chip, text, sizeof text);
    *why = "the chips do not lay out on the chip's network";
    if (!truth_system_called(text, chip, system)) return false;
    set_network(r, chip, system);
    *why = NULL;
    return true;
}
