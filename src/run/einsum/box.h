/* box: copying a box of a row-major array into a box of another. */
#pragma once
#include "scalemodel/run.h"

typedef struct box_side {
    void *data;
    const size_t *size;   /* of the array */
    const size_t *offset; /* of the box in it */
} box_side;
/* box: sizes of what is copied. */
void box_copy(const box_side *to, const box_side *from, int rank, const size_t *box, size_t width);
