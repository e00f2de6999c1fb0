/* The ops of a decode step, kept for plans that differ in placement, pipeline or slice alone. */
#include <string.h>

#include "serve_frontier.h"

typedef struct work_key {
    int data, fsdp, tensor, context, expert, choices; /* choices 0: an empty entry */
    double sequences;
} work_key;

struct work_memo {
    int pieces;
    size_t entries; /* a power of two */
    work_key *key;
    piece_price *price; /* entries x pieces */
};

work_memo *work_memo_new(sm_arena *arena, int pieces, int chips) {
    enum { LEAST = 256, MOST = 1 << 15, PER_CHIP = 64 };
    work_memo *memo = sm_arena_alloc(arena, sizeof *memo);
    if (!memo) return NULL;
    memo->pieces = pieces;
    for (memo->entries = LEAST; memo->entries < MOST; memo->entries *= 2)
        if (memo->entries >= (size_t)chips * PER_CHIP) break;
    memo->key = sm_arena_array(arena, memo->entries, sizeof *memo->key);
    memo->price = sm_arena_array(arena, memo->entries * (size_t)pieces, sizeof *memo->price);
    return memo->key && memo->price ? memo : NULL;
}

static work_key key_of(const step *x) {
    const sm_plan *p = x->plan;
    int choices = 1 + p->gathered + 2 * p->expert_tensor + 4 * (int)p->cache_by;
    return (work_key){p->data,   p->fsdp, p->tensor,          p->context,
                      p->expert, choices, x->routed.sequences};
}

static size_t place_of(const work_memo *memo, const work_key *key) {
    uint64_t h = (uint64_t)key->sequences;
    const int word[] = {key->data, key->fsdp, key->tensor, key->context, key->expert, key->choices};
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        h = (h ^ (uint64_t)word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (memo->entries - 1);
}

static bool same_key(const work_key *a, const work_key *b) {
    return a->data == b->data && a->fsdp == b->fsdp && a->tensor == b->tensor &&
           a->context == b->context && a->expert == b->expert && a->choices == b->choices &&
           !(a->sequences < b->sequences) && !(a->sequences > b->sequences);
}

const piece_price *work_of(work_memo *memo, const step *x) {
    work_key key = key_of(x);
    size_t at = place_of(memo, &key);
    piece_price *price = &memo->price[at * (size_t)memo->pieces];
    if (same_key(&memo->key[at], &key)) return price;
    memo->key[at] = key;
    step_work(x, price);
    return price;
}
