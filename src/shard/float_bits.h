/* float_bits: numbers of single precision and their bits. Private to src/shard. */
#pragma once
#include <stdint.h>
#include <string.h>

static inline float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* bf16 is the upper half of it. */
static inline float of_bf16(uint16_t code) { return of_bits((uint32_t)code << 16); }
