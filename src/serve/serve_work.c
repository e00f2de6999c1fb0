/* The ops of a decode step, kept for plans that differ in placement, pipeline or slice alone. */
#include <string.h>

#include "serve_frontier.h"

typedef struct work_key {
    uint32_t code; /* of the rules of its program; 0: an empty entry */
    int degree[SM_PLAN_PIPELINE];
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
    work_key key = {.code = x->v->code, .sequences = x->routed.sequences};
    for (int i = 0; i < SM_PLAN_PIPELINE; i++) key.degree[i] = sm_plan_degree_of(x->plan, i);
    return key;
}

static size_t place_of(const work_memo *memo, const work_key *key) {
    uint64_t h = (uint64_t)key->sequences ^ (uint64_t)key->code << 32;
    for (int i = 0; i < SM_PLAN_PIPELINE; i++)
        h = (h ^ (uint64_t)key->degree[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (memo->entries - 1);
}

static bool same_key(const work_key *a, const work_key *b) {
    return a->code == b->code && memcmp(a->degree, b->degree, sizeof a->degree) == 0 &&
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
