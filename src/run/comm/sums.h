/* sums: adding blocks of elements, in a fixed order, so that every rank gets the same bits. */
#ifndef SM_RUN_SUMS_H
#define SM_RUN_SUMS_H
#include "scalemodel/run.h"
/* to[i] += from[i]. Whole numbers wrap around. */
void sum_into(void *to, const void *from, size_t count, sm_element element);
#endif
