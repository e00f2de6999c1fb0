/* Copying boxes between row-major arrays, row by row. */
#include "einsum_parts.h"

#include <assert.h>
#include <string.h>

static size_t offset_of(const box_side *side, const size_t *at, int rank) {
    size_t offset = 0;
    for (int d = 0; d < rank; d++) offset = offset * side->size[d] + side->offset[d] + at[d];
    return offset;
}

/* The next row of the box; false after the last. */
static bool advance(size_t *at, int rank, const size_t *box) {
    for (int d = rank - 2; d >= 0; d--) {
        if (++at[d] < box[d]) return true;
        at[d] = 0;
    }
    return false;
}

void box_copy(const box_side *to, const box_side *from, int rank, const size_t *box, size_t width) {
    size_t at[SM_MAX_RANK] = {0}, row = rank > 0 ? box[rank - 1] : 1;
    for (int d = 0; d < rank; d++) {
        if (box[d] == 0) return;
        assert(to->offset[d] + box[d] <= to->size[d] && from->offset[d] + box[d] <= from->size[d]);
    }
    do {
        memcpy((char *)to->data + offset_of(to, at, rank) * width,
               (const char *)from->data + offset_of(from, at, rank) * width, row * width);
    } while (advance(at, rank, box));
}
