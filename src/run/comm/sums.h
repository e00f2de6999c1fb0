/* sums: adding blocks of elements, in a fixed order, so that every rank gets the same bits. */
#pragma once
#include "scalemodel/run.h"
/* to[i] += from[i]. Whole numbers wrap around. */
void sum_into(void *to, const void *from, size_t count, sm_element element);
