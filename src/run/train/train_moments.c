/* Moments of the optimizer as they are stored between steps: in single precision, rounded to bf16,
 * or in 8 bits a number, block by block of 256 (Dettmers et al. 2021, arXiv 2110.02861, section 2):
 * each number is divided by the largest of its block and rounded to the nearest of the dynamic tree
 * codes. The zeros that a code leads with are its decimal exponent, a one ends them, and the bits
 * after it are a fraction of the decade: e zeros and fraction q of f bits stand for
 * 10^-e (0.1 + 0.9 (q + 1) / 2^f). All zeros are zero. First moments spend a bit on their sign. A
 * second moment that is not zero never becomes zero: Adam divides by its root. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "train_parts.h"

enum { BLOCK = TRAIN_MOMENT_BLOCK, CODES = 256, SIGN = 128 };

bool train_moments_plain(const sm_train_setup *s) {
    return s->optimizer == SM_TRAIN_ADAM && !s->offload_optimizer;
}

/* ---- bf16: the upper half of a float, to the nearest, ties to even ---- */

static uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- 8 bits ---- */

static float decode(int code, int bits) {
    float decade = 1;
    int f = bits - 1;
    if (!code) return 0;
    for (; !(code >> f & 1); f--) decade /= 10;
    int q = code & ((1 << f) - 1);
    return decade * (0.1F + 0.9F * (float)(q + 1) / (float)(1 << f));
}

void train_codes_new(train_codes *c) {
    for (int i = 0; i < CODES; i++) c->positive[i] = decode(i, 8);
    for (int i = 0; i < SIGN; i++) c->half[i] = decode(i, 7);
}

/* The nearest of n rising values, the lower of two as near. */
static int nearest(const float *value, int n, float x) {
    int low = 0, high = n - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (value[middle] > x) high = middle;
        else low = middle;
    }
    return value[high] - x < x - value[low] ? high : low;
}

static void write_block(const train_codes *c, bool second, const float *x, size_t n, uint8_t *code,
                        float *scale) {
    assert(n <= BLOCK);
    *scale = 0;
    for (size_t i = 0; i < n; i++) *scale = fmaxf(*scale, fabsf(x[i]));
    for (size_t i = 0; i < n; i++) {
        float part = *scale > 0 ? fabsf(x[i]) / *scale : 0;
        int near = second ? nearest(c->positive, CODES, part) : nearest(c->half, SIGN, part);
        if (second && part > 0 && !near) near = 1;
        code[i] = (uint8_t)(!second && x[i] < 0 ? near | SIGN : near);
    }
}

static void read_block(const train_codes *c, bool second, const uint8_t *code, float scale,
                       size_t n, float *x) {
    for (size_t i = 0; i < n; i++) {
        if (second) x[i] = scale * c->positive[code[i]];
        else x[i] = (code[i] & SIGN ? -scale : scale) * c->half[code[i] & (SIGN - 1)];
    }
}

/* ---- a moment of the weights of a group ---- */

sm_status train_moment_new(const sm_trainer *t, size_t n, train_moment *m, sm_error *err) {
    const sm_train_setup *s = t->setup;
    static const size_t bytes[SM_TRAIN_OPTIMIZER_COUNT] = {
        [SM_TRAIN_ADAM] = 4, [SM_TRAIN_ADAM_BF16] = 2, [SM_TRAIN_ADAM_8BIT] = 1};
    if (s->optimizer == SM_TRAIN_SGD) return SM_OK;
    memory_scope before =
        memory_for(s->offload_optimizer ? SM_TRAIN_MEMORY_HOST : SM_TRAIN_MEMORY_OPTIMIZER);
    m->code = memory_new_cleared((n + 1) * bytes[s->optimizer]);
    if (s->optimizer == SM_TRAIN_ADAM_8BIT)
        m->scale = memory_new_cleared(((n + BLOCK - 1) / BLOCK + 1) * sizeof *m->scale);
    memory_restore(before);
    bool whole = m->code && (m->scale || s->optimizer != SM_TRAIN_ADAM_8BIT);
    return whole ? SM_OK : sm_fail_memory(err);
}

void train_moment_free(train_moment *m) {
    memory_free(m->code);
    memory_free(m->scale);
    *m = (train_moment){.code = NULL};
}

/* first: a multiple of the block */
void train_moment_read(const sm_trainer *t, const train_moment *m, bool second, size_t first,
                       size_t n, float *x) {
    const uint16_t *half = m->code;
    assert(first % BLOCK == 0);
    switch (t->setup->optimizer) {
    case SM_TRAIN_ADAM: memcpy(x, (const float *)m->code + first, n * sizeof *x); return;
    case SM_TRAIN_ADAM_BF16:
        for (size_t i = 0; i < n; i++) x[i] = from_bf16(half[first + i]);
        return;
    case SM_TRAIN_ADAM_8BIT:
        for (size_t i = 0; i < n; i += BLOCK)
            read_block(&t->codes, second, (const uint8_t *)m->code + first + i,
                       m->scale[(first + i) / BLOCK], n - i < BLOCK ? n - i : BLOCK, x + i);
        return;
    default: memset(x, 0, n * sizeof *x);
    }
}

void train_moment_write(const sm_trainer *t, train_moment *m, bool second, size_t first, size_t n,
                        const float *x) {
    uint16_t *half = m->code;
    assert(first % BLOCK == 0);
    switch (t->setup->optimizer) {
    case SM_TRAIN_ADAM: memcpy((float *)m->code + first, x, n * sizeof *x); return;
    case SM_TRAIN_ADAM_BF16:
        for (size_t i = 0; i < n; i++) half[first + i] = to_bf16(x[i]);
        return;
    case SM_TRAIN_ADAM_8BIT:
        for (size_t i = 0; i < n; i += BLOCK)
            write_block(&t->codes, second, x + i, n - i < BLOCK ? n - i : BLOCK,
                        (uint8_t *)m->code + first + i, &m->scale[(first + i) / BLOCK]);
        return;
    default: return;
    }
}
