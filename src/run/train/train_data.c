/* Batches of bytes, or the bytes fed to a generator. Which bytes sequence i of step s holds follows
 * from the seed alone, so that every plan trains on the same text in the same order. The seed is
 * mixed first: 1 and 4 as they are would deal out the same sequences in another order. */
#include "train_parts.h"

int train_byte(const sm_trainer *t, size_t sequence, size_t position) {
    const sm_train_setup *s = t->setup;
    const sm_generator_pass *fed = t->feed ? t->feed->pass : NULL;
    if (fed) return fed->bytes[sequence * fed->queries + position];
    size_t number = (size_t)t->stage.microbatch * (size_t)t->extent.sequences + sequence;
    sm_rng rng = {s->seed};
    rng.state = sm_rng_next(&rng) ^ ((uint64_t)t->step << 32 | number);
    size_t first = sm_rng_below(&rng, s->data_bytes - (size_t)s->tokens);
    return s->data[first + position];
}

size_t train_position(const sm_trainer *t, size_t sequence) {
    return t->feed ? t->feed->cached[sequence] : 0;
}
