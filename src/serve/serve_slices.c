/* The systems a replica may run on: sub-slices of a torus as the catalogue has them, powers of two
 * inside a node and whole nodes beyond; the given system itself always. */
#include <assert.h>

#include "serve_space.h"

static bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

static bool is_sold(const sm_system *whole, int chips) {
    const sm_chip *chip = &whole->chip;
    if (chips == whole->chips) return true;
    if (chip->fabric != SM_FABRIC_SWITCH) return true;
    int node = chip->tree[0].degree;
    return chips < node ? is_power_of_two(chips) : chips % node == 0;
}

/* One, two or three times a power of two, or as many nodes. */
static bool is_candidate(const sm_system *whole, int chips) {
    int node = whole->chip.fabric == SM_FABRIC_SWITCH ? whole->chip.tree[0].degree : 1;
    int units = node > 1 && chips % node == 0 ? chips / node : chips;
    return chips == whole->chips || is_power_of_two(units) ||
           (units % 3 == 0 && is_power_of_two(units / 3));
}

int slices_of(const sm_system *whole, int least, int most, sm_system *slices) {
    int n = 0;
    for (int chips = least; chips <= most && chips <= whole->chips; chips++) {
        if (!is_candidate(whole, chips) || !is_sold(whole, chips)) continue;
        assert(n < MAX_SLICES); /* two for each power of two, of chips and of nodes */
        if (chips == whole->chips) slices[n++] = *whole;
        else if (sm_system_resize(whole, chips, &slices[n], NULL) == SM_OK) n++;
    }
    return n;
}
