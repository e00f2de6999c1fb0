/* engine_table: what generations of serving software do with requests: data/engines, as
 * scripts/embed.c writes it when the library is built. Private to src/truth. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* key of the file, value where it is silent, what */
#define TRUTH_ENGINE_FLAGS(X)                                                                      \
    X(mixed_steps, true, "prefill and decode share a step")                                        \
    X(eager_launches, false, "kernels are launched one by one")                                    \
    X(reserves_whole_requests, false, "a request is admitted when its full length fits")           \
    X(kv_in_8_bits, false, "weights in 8 bits and below come with a cache in 8 bits")
#define TRUTH_ENGINE_NUMBERS(X)                                                                    \
    X(budget_tokens, 8192, "of prefill in a step")                                                 \
    X(most_running, 1024, "sequences")                                                             \
    X(kv_share, 0.9, "of the memory beside the weights, what the cache takes")                     \
    X(admission_s, 0.05, "before its prefill a request is parsed, queued and scheduled")           \
    X(burst, 0.1, "share of the requests that find all others before them")                        \
    X(burst_in_step, 0, "the same where all requests are of one length; 0: as burst")              \
    X(host_s_per_sequence, 0, "of a step: scheduling, sampling, detokenising")                     \
    X(expert_imbalance, 1,                                                                         \
      "what the matmuls of experts take over dense ones as large: grouped "                        \
      "kernels, padding, the fullest chip")                                                        \
    X(drafted_tokens, 3, "of a step of multi-token prediction")                                    \
    X(accepted, 0.68, "probability of each drafted token")

typedef struct truth_engine {
    const char *name, *title;
    const char *like; /* the generation whose constants stand in where it has none; NULL: none */
#define X(key, usual, what) bool key;
    TRUTH_ENGINE_FLAGS(X)
#undef X
#define X(key, usual, what) double key;
    TRUTH_ENGINE_NUMBERS(X)
#undef X
} truth_engine;

extern const truth_engine truth_engine_table[];
extern const size_t truth_engine_table_count;

/* The engine of this name; "serving" for any other. */
const truth_engine *truth_engine_of(const char *software);
