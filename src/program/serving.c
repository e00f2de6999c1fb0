/* What serving adds to a layer: a cache of keys and values that outlives the step, and latent
 * attention on that cache as it is stored. */
#include "program_parts.h"

enum { BF16 = 2, QUANTISE_FLOPS = 2 }; /* scale, round */
#define D_(x) PROGRAM_##x
#define DIMS PROGRAM_LIST
#define IN PROGRAM_LIST

static int cache(sm_program *b, const char *name, int rank, const int *dims) {
    return program_tensor(b, name, SM_ROLE_CACHE, BF16, rank, dims);
}

static void append(sm_program *b, int out, int first, int second) {
    sm_op *op = program_vector(b, "append", SM_FUNCTION_APPEND, out, IN(first, second));
    program_read_as_keys(op);
    op->flops_per_element = QUANTISE_FLOPS;
}

/* One kernel writes keys and values. */
void program_append(sm_program *b, int *k, int *v) {
    int keys = cache(b, "k_cache", DIMS(D_(B), D_(S), D_(K), D_(H)));
    int values = cache(b, "v_cache", DIMS(D_(B), D_(S), D_(K), D_(J)));
    if (*k >= 0) {
        append(b, keys, *k, *v);
        b->tensor[values].producer = b->tensor[keys].producer;
    }
    *k = keys;
    *v = values;
}

void program_append_latent(sm_program *b, program_latent *kv) {
    kv->whole = cache(b, "kv_cache", DIMS(D_(B), D_(S), D_(L)));
    append(b, kv->whole, kv->low, kv->rotary);
    kv->low = cache(b, "kv_cache_low", DIMS(D_(B), D_(S), D_(R)));
    kv->rotary = cache(b, "kv_cache_rot", DIMS(D_(B), D_(S), D_(Y)));
}

/* DeepSeek-V2 (arXiv 2405.04434, section 2.1.2): W_kb is absorbed into the query and W_vb into the
 * output, so that attention is over R + Y values of one head that all queries share. The query is
 * one array in two parts; the rotation writes its part beside what the matmul wrote. */
int program_attend_absorbed(sm_program *b, int q, const program_latent *kv) {
    int nope = program_activation(b, "q_nope", DIMS(D_(B), D_(T), D_(K), D_(G), D_(P)));
    int rotary = program_activation(b, "q_rot", DIMS(D_(B), D_(T), D_(K), D_(G), D_(Y)));
    b->tensor[nope].producer = b->tensor[rotary].producer = b->tensor[q].producer;
    int low = program_activation(b, "q_low_kv", DIMS(D_(B), D_(T), D_(K), D_(G), D_(R)));
    program_einsum(b, "q_absorb", low, nope,
                   program_weight(b, "W_kb", DIMS(D_(R), D_(K), D_(G), D_(P))))
        ->function = SM_FUNCTION_ABSORBED;
    int joined = program_activation(b, "q_rope", DIMS(D_(B), D_(T), D_(K), D_(G), D_(L)));
    sm_op *rope = program_vector(b, "q_rope", SM_FUNCTION_ROTATE, joined, IN(rotary, low));
    rope->in_place = 2;
    rope->flops_per_element = 3 * b->dim[D_(Y)].size / b->dim[D_(L)].size;
    int o = program_activation(b, "attn_low", DIMS(D_(B), D_(T), D_(K), D_(G), D_(R)));
    program_op(b, "attention", SM_OP_ATTENTION, o, IN(joined, kv->whole))->keys = 1;
    int out = program_activation(b, "attn", DIMS(D_(B), D_(T), D_(K), D_(G), D_(J)));
    program_einsum(b, "v_up", out, o, program_weight(b, "W_vb", DIMS(D_(R), D_(K), D_(G), D_(J))))
        ->function = SM_FUNCTION_ABSORBED;
    return out;
}
