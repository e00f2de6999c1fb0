/* Elements of arrays: added in a fixed order, so that every rank gets the same bits, and converted.
 */
#include <assert.h>

#include "float_bits.h"
#include "scalemodel/shard.h"

/* What is no number stays none. */
static uint16_t to_bf16(float x) {
    uint32_t bits = bits_of(x), quiet = x == x ? 0 : 0x40;
    if (x == x) bits += 0x7fff + (bits >> 16 & 1);
    return (uint16_t)(bits >> 16 | quiet);
}

WIDE static void read_halves(const uint16_t *half, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = of_bf16(half[i]);
}

void sm_elements_read(sm_element element, const void *data, size_t first, size_t n, float *out) {
    assert(element == SM_ELEMENT_F32 || element == SM_ELEMENT_BF16);
    if (element == SM_ELEMENT_F32) memcpy(out, (const float *)data + first, n * sizeof *out);
    else read_halves((const uint16_t *)data + first, n, out);
}

void sm_elements_write(sm_element element, void *data, size_t first, size_t n, const float *from) {
    uint16_t *half = (uint16_t *)data + first;
    assert(element == SM_ELEMENT_F32 || element == SM_ELEMENT_BF16);
    if (element == SM_ELEMENT_F32) memcpy((float *)data + first, from, n * sizeof *from);
    else
        for (size_t i = 0; i < n; i++) half[i] = to_bf16(from[i]);
}

#define ADD(type, sum)                                                                             \
    do {                                                                                           \
        type *a = to;                                                                              \
        const type *b = from;                                                                      \
        for (size_t i = 0; i < count; i++) a[i] = (type)(sum);                                     \
    } while (0)

void sm_elements_add(void *to, const void *from, size_t count, sm_element element) {
    switch (element) {
    case SM_ELEMENT_F32: ADD(float, a[i] + b[i]); break;
    case SM_ELEMENT_F64: ADD(double, a[i] + b[i]); break;
    case SM_ELEMENT_S32: ADD(int32_t, (uint32_t)a[i] + (uint32_t)b[i]); break;
    case SM_ELEMENT_S64: ADD(int64_t, (uint64_t)a[i] + (uint64_t)b[i]); break;
    case SM_ELEMENT_BF16: ADD(uint16_t, to_bf16(of_bf16(a[i]) + of_bf16(b[i]))); break;
    default: break; /* scaled ones are not added */
    }
}
