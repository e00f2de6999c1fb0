/* Fat trees. A unit of level i holds `degree` children, each on a link of child_bytes_per_s_oneway.
 * A system may use a part of a unit: of a node with k of its n chips, k/n of the NICs are counted
 * (each chip drives its own NIC); above the node a child never sends faster than what is below it:
 *   W_i = min(W_i of the full tree, D_{i-1} W_{i-1}). */
#include "switch_tree.h"

#include <assert.h>
#include <string.h>

/* State of the filling: the link out of the unit built so far. */
typedef struct filling {
    const sm_chip *chip;
    sm_system *system;
    double egress;
} filling;

static double least(double a, double b) { return a < b ? a : b; }

static void push_level(filling *f, int i, int size) {
    const sm_tree_level *tree = &f->chip->tree[i];
    double full = tree->child_bytes_per_s_oneway.value;
    double link = i < 1 ? full : least(full, f->egress);
    if (size > 1) {
        sm_level *level = &f->system->level[f->system->levels++];
        *level = (sm_level){.kind = SM_LEVEL_SWITCH,
                            .size = size,
                            .bytes_per_s_oneway = link,
                            .hop_latency_s = tree->hop_latency_s.value,
                            .in_network_reduction = tree->in_network_reduction};
        strncpy(level->name, tree->name, sizeof level->name - 1);
    }
    if (i == 0 && f->chip->tree_levels > 1)
        f->egress = f->chip->tree[1].child_bytes_per_s_oneway.value * size / tree->degree;
    else f->egress = link * size;
}

static int largest_divisor(int n, int at_most) {
    int d = n < at_most ? n : at_most;
    while (d > 1 && n % d != 0) d--;
    return d;
}

bool sm_tree_fill(const sm_chip *chip, const int *size, int n, sm_system *system) {
    filling f = {chip, system, 0};
    int levels = chip->tree_levels, count = size[n - 1], i = 0;
    assert(n >= 1 && n <= levels + 1 && levels <= SM_MAX_TREE);
    for (; i < n - 1; i++) push_level(&f, i, size[i]);
    for (; i < levels; i++) {
        /* the outermost level grows, except that chips beyond a lone node have no network */
        bool grows = i == levels - 1 && i > 0;
        int degree = grows ? count : largest_divisor(count, chip->tree[i].degree);
        push_level(&f, i, degree);
        count = degree > 1 ? count / degree : count;
    }
    return count == 1;
}
