/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014). */
#include "scalemodel/base.h"

uint64_t sm_rng_next(sm_rng *rng) {
    uint64_t z = (rng->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Draws above the largest multiple of n are thrown away, so that no remainder is favoured. */
uint64_t sm_rng_below(sm_rng *rng, uint64_t n) {
    uint64_t unfair = (UINT64_MAX % n + 1) % n; /* 2^64 mod n */
    uint64_t draw = sm_rng_next(rng);
    while (draw > UINT64_MAX - unfair) draw = sm_rng_next(rng);
    return draw % n;
}

double sm_rng_unit(sm_rng *rng) { return (double)(sm_rng_next(rng) >> 11) * 0x1p-53; }
