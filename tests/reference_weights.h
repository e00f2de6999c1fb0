/* Checkpoints of tests/reference, whose numbers follow from the names of their tensors. */
#pragma once
#include <stdio.h>
#include <string.h>
#include <jansson.h>
#include <zlib.h>
#include "unit.h"
#include "scalemodel/io.h"
#include "written_tensors.h"

enum { MOST_TENSORS = 256 };

/* The numbers of the script. */
static inline void fill(const char *name, const size_t *shape, int rank, size_t n, float *to) {
    uint32_t seed = (uint32_t)crc32_z(0, (const unsigned char *)name, strlen(name));
    size_t length = strlen(name);
    bool one = rank == 1 && length > 5 && strcmp(name + length - 6, "weight") == 0;
    (void)shape;
    for (size_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)(i * 2654435761u) + seed;
        x = (x ^ x >> 16) * 0x45D9F3Bu;
        x = (x ^ x >> 15) * 0x45D9F3Bu;
        x ^= x >> 16;
        to[i] = (float)(((double)x / 4294967296.0 - 0.5) * 0.6 + one);
    }
}

/* The checkpoint as the script wrote it; base: without this prefix of names, as one of the model
 * below the head has them; drawn_as: before the names that its numbers follow from. */
static inline void write_tensors(json_t *list, const char *base, const char *drawn_as,
                                 const char *to) {
    static sm_safetensor tensor[MOST_TENSORS];
    size_t n = json_array_size(list);
    assert_true(n <= MOST_TENSORS);
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_array_get(list, i), *shape = json_object_get(one, "shape");
        size_t count = 1;
        tensor[i] = (sm_safetensor){.name = json_string_value(json_object_get(one, "name")),
                                    .rank = (int)json_array_size(shape)};
        for (int d = 0; d < tensor[i].rank; d++)
            count *= tensor[i].shape[d] =
                (size_t)json_integer_value(json_array_get(shape, (size_t)d));
        float *data = sm_malloc(count * sizeof *data);
        char name[320];
        snprintf(name, sizeof name, "%s%s", drawn_as, tensor[i].name);
        fill(name, tensor[i].shape, tensor[i].rank, count, data);
        tensor[i].data = data;
        if (strncmp(tensor[i].name, base, strlen(base)) == 0) tensor[i].name += strlen(base);
    }
    assert_int_equal(write_safetensors(to, n, tensor, 0, NULL), SM_OK);
    for (size_t i = 0; i < n; i++) sm_free((void *)(uintptr_t)tensor[i].data);
}
