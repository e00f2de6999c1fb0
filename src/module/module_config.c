/* What the configuration of a custom call says of its work. XLA writes it as JSON, in texts bare or
 * as a string whose quotes are escaped; keys are found where they stand, since all else in it is
 * the business of the kernel.
 *
 *   cuBLAS     "dot_dimension_numbers": {"lhs_contracting_dimensions": ["1"], ...}
 *   cuDNN      "intermediate_tensor_shape": {"dimensions": ["4", "8", "512", "512"]}, the scores of
 *              an attention; "mask_type": "CAUSAL"
 *   Transformer Engine   attn_heads = 64 : i64, q_max_seqlen = 8192 : i64, mask_type = 2 : i64
 *   Mosaic     "cost_estimate": {"flops": 123, "transcendentals": 4, "bytes_accessed": 56} */
#include "module_parts.h"

const char *module_word_after(const char *at, const char *end, const char *word) {
    size_t n = strlen(word);
    for (; (size_t)(end - at) >= n; at++) {
        at = memchr(at, *word, (size_t)(end - at) - n + 1);
        if (!at) return NULL;
        if (!memcmp(at, word, n)) return at + n;
    }
    return NULL;
}

enum { MOST_DIMENSIONS = 16 };

/* Numbers up to the bracket that ends the list: ["0","1"], [\"0\"]. */
static bool numbers_after(sm_arena *arena, const char *at, const char *end, const char *key,
                          sm_module_list *out) {
    int64_t number[MOST_DIMENSIONS];
    int n = 0;
    if (out->n || !(at = module_word_after(at, end, key))) return true;
    while (at < end && *at != '[' && strchr("\\\": ", *at)) at++;
    if (at == end || *at != '[') return true;
    for (at++; at < end && *at != ']' && n < MOST_DIMENSIONS; at++) {
        if (*at < '0' || *at > '9') continue;
        number[n] = 0;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (number[n] < INT32_MAX) number[n] = 10 * number[n] + (*at - '0');
        n++;
        if (at == end || *at == ']') break;
    }
    if (n == 0) return true;
    int64_t *list = sm_arena_array(arena, (size_t)n, sizeof *list);
    if (!list) return false;
    memcpy(list, number, (size_t)n * sizeof *list);
    *out = (sm_module_list){n, list};
    return true;
}

static double estimate_of(const char *at, const char *end, const char *key) {
    double value = 0;
    if (!(at = module_word_after(at, end, key))) return 0;
    while (at < end && strchr("\\\": =", *at)) at++;
    for (; at < end && *at >= '0' && *at <= '9'; at++) value = 10 * value + (*at - '0');
    return value;
}

/* The sizes of a fused attention of Transformer Engine (transformer_engine/jax): one key each. */
static bool attention_after(sm_arena *arena, const char *text, const char *end,
                            sm_instruction *it) {
    static const char *const keys[] = {"input_batch",   "attn_heads",     "q_max_seqlen",
                                       "kv_max_seqlen", "num_gqa_groups", "qk_head_dim",
                                       "v_head_dim"};
    enum { KEYS = sizeof keys / sizeof *keys };
    int64_t *size = sm_arena_array(arena, KEYS, sizeof *size);
    if (!size) return false;
    for (int i = 0; i < KEYS; i++) {
        double value = estimate_of(text, end, keys[i]);
        if (!(value > 0 && value < INT32_MAX)) return true;
        size[i] = (int64_t)value;
    }
    it->dimensions = (sm_module_list){KEYS, size};
    double mask = estimate_of(text, end, "mask_type");
    double window = estimate_of(text, end, "window_size_left"); /* -1 is none, and reads as 0 */
    it->causal = mask >= 2 && mask <= 5; /* NVTE_Mask_Type: causal, padded, of the last keys */
    it->window = window < INT32_MAX ? (int64_t)window : 0;
    return true;
}

bool module_config(sm_arena *arena, const char *text, size_t length, sm_instruction *it) {
    const char *end = text + length;
    const char *estimate = module_word_after(text, end, "cost_estimate");
    const char *scores = module_word_after(text, end, "intermediate_tensor_shape");
    if (estimate) {
        it->estimated_flops = estimate_of(estimate, end, "flops");
        it->estimated_transcendentals = estimate_of(estimate, end, "transcendentals");
    }
    it->causal = module_word_after(text, end, "CAUSAL") != NULL;
    if (module_word_after(text, end, "qk_head_dim") && !attention_after(arena, text, end, it))
        return false;
    return (!scores || numbers_after(arena, scores, end, "dimensions", &it->dimensions)) &&
           numbers_after(arena, text, end, "lhs_contracting_dimensions", &it->lhs_contracting) &&
           numbers_after(arena, text, end, "rhs_contracting_dimensions", &it->rhs_contracting) &&
           numbers_after(arena, text, end, "lhs_batch_dimensions", &it->lhs_batch) &&
           numbers_after(arena, text, end, "rhs_batch_dimensions", &it->rhs_batch);
}
