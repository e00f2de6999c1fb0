/* Copying between arrays in any two orders, and boxes of row-major ones. */
#include "einsum_parts.h"

#include <assert.h>

/* TILE elements are whole cache lines of both arrays, a tile of them lies within the first cache.
 */
enum { MOST_DIMS = 2 * SM_MAX_RANK, TILE = 32 };

/* Of two dimensions, x next to each other where they are read and y where they are written: by
 * tiles, so that of neither array a line is fetched more than once. */
#define COPY_TILES(type)                                                                           \
    static void copy_tiles_##type(sm_copied x, sm_copied y, const type *from, type *to) {          \
        type tile[TILE][TILE];                                                                     \
        for (size_t i = 0; i < y.count; i += TILE)                                                 \
            for (size_t k = 0; k < x.count; k += TILE) {                                           \
                size_t high = y.count - i < TILE ? y.count - i : TILE;                             \
                size_t wide = x.count - k < TILE ? x.count - k : TILE;                             \
                const type *source = from + i * y.from + k * x.from;                               \
                type *target = to + i * y.to + k * x.to;                                           \
                for (size_t a = 0; a < high; a++)                                                  \
                    for (size_t b = 0; b < wide; b++)                                              \
                        tile[b][a] = source[a * y.from + b * x.from];                              \
                for (size_t b = 0; b < wide; b++)                                                  \
                    for (size_t a = 0; a < high; a++) target[a * y.to + b * x.to] = tile[b][a];    \
            }                                                                                      \
    }
COPY_TILES(uint8_t)
COPY_TILES(uint16_t)
COPY_TILES(uint32_t)
COPY_TILES(uint64_t)

static void copy_plane(sm_copied x, sm_copied y, const char *from, char *to, size_t width) {
    if (x.from == 1 && x.to == 1) {
        for (size_t i = 0; i < y.count; i++)
            memcpy(to + i * y.to * width, from + i * y.from * width, x.count * width);
    } else if (width == sizeof(uint8_t)) {
        copy_tiles_uint8_t(x, y, (const uint8_t *)from, (uint8_t *)to);
    } else if (width == sizeof(uint16_t)) {
        copy_tiles_uint16_t(x, y, (const uint16_t *)(const void *)from, (uint16_t *)(void *)to);
    } else if (width == sizeof(uint32_t)) {
        copy_tiles_uint32_t(x, y, (const uint32_t *)(const void *)from, (uint32_t *)(void *)to);
    } else {
        assert(width == sizeof(uint64_t));
        copy_tiles_uint64_t(x, y, (const uint64_t *)(const void *)from, (uint64_t *)(void *)to);
    }
}

/* The dimension with the closest elements in one of the arrays, taken out. */
static sm_copied take_closest(sm_copied *dim, int *rank, bool read) {
    int least = 0;
    for (int d = 1; d < *rank; d++)
        if ((read ? dim[d].from : dim[d].to) < (read ? dim[least].from : dim[least].to)) least = d;
    sm_copied taken = *rank ? dim[least] : (sm_copied){1, 1, 1};
    if (*rank) dim[least] = dim[--*rank];
    return taken;
}

void sm_copy_strided(const sm_copied *dim, int rank, const void *from, void *to, size_t width) {
    sm_copied others[MOST_DIMS];
    size_t at[MOST_DIMS] = {0}, read = 0, written = 0;
    int n = 0, d = 0;
    assert(rank <= MOST_DIMS);
    for (int i = 0; i < rank; i++) {
        if (dim[i].count == 0) return;
        if (dim[i].count > 1) others[n++] = dim[i];
    }
    const sm_copied x = take_closest(others, &n, true), y = take_closest(others, &n, false);
    do {
        copy_plane(x, y, (const char *)from + read * width, (char *)to + written * width, width);
        for (d = n - 1; d >= 0; d--) {
            read += others[d].from, written += others[d].to;
            if (++at[d] < others[d].count) break;
            read -= others[d].from * others[d].count, written -= others[d].to * others[d].count;
            at[d] = 0;
        }
    } while (d >= 0);
}

void box_copy(const box_side *to, const box_side *from, int rank, const size_t *box, size_t width) {
    sm_copied dim[SM_MAX_RANK];
    size_t read = 0, written = 0, from_step = 1, to_step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        assert(box[d] == 0 || (to->offset[d] + box[d] <= to->size[d] &&
                               from->offset[d] + box[d] <= from->size[d]));
        dim[d] = (sm_copied){box[d], from_step, to_step};
        read += from->offset[d] * from_step, written += to->offset[d] * to_step;
        from_step *= from->size[d], to_step *= to->size[d];
    }
    sm_copy_strided(dim, rank, (const char *)from->data + read * width,
                    (char *)to->data + written * width, width);
}
