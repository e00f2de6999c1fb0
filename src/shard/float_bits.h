/* float_bits: numbers of single precision and their bits. Private to src/shard. */
#pragma once
#include <stdint.h>
#include <string.h>

/* A loop in vectors as wide as the processor at hand has them. Sanitizers do not bear that a
 * function is chosen when the program is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                            \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

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
