/* Adding blocks of elements. */
#include "sums.h"

#define ADD(type, sum)                                                                             \
    do {                                                                                           \
        type *a = to;                                                                              \
        const type *b = from;                                                                      \
        for (size_t i = 0; i < count; i++) a[i] = (type)(sum);                                     \
    } while (0)

void sum_into(void *to, const void *from, size_t count, sm_element element) {
    switch (element) {
    case SM_ELEMENT_F32: ADD(float, a[i] + b[i]); break;
    case SM_ELEMENT_F64: ADD(double, a[i] + b[i]); break;
    case SM_ELEMENT_S32: ADD(int32_t, (uint32_t)a[i] + (uint32_t)b[i]); break;
    case SM_ELEMENT_S64: ADD(int64_t, (uint64_t)a[i] + (uint64_t)b[i]); break;
    case SM_ELEMENT_COUNT: break;
    }
}
