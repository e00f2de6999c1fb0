/* What the first of two stacks reads of all sequences of a generator, or of all their pictures. */
#pragma once
#include "scalemodel/run_generate.h"

/* count: of each sequence; of pictures not read. */
static inline sm_status read_all(sm_generator *g, const int32_t *token, const size_t *count,
                                 sm_generator_result *result, sm_error *err) {
    enum { MOST = 64 };
    const sm_generator_size size = sm_generator_size_of(g);
    size_t n = size.sequences * size.pictures, own = n / sm_generator_groups(g);
    size_t words[MOST], place[MOST];
    if (n > MOST) return sm_fail(err, SM_INTERNAL, "%zu rows are too many for a test", n);
    for (size_t i = 0; i < n; i++) {
        words[i] = size.rows ? size.source : count[i];
        place[i] = i % own;
    }
    const sm_generator_source all = {own, size.listens ? NULL : token, NULL, words, place};
    return sm_generator_read(g, &all, result, err);
}
