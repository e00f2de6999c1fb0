/* model: the architecture of a Transformer, read from a Hugging Face config; exact counts of its
 * parameters, FLOPs and KV cache. */
#pragma once
#include "scalemodel/architecture.h"

SM_DECLARATIONS_BEGIN

enum { SM_MAX_LAYER_KINDS = 16, SM_MAX_LAYERS = 1024, SM_MAX_OUTSIDE = 8 };

/* MHA and MQA are GQA with K = N and K = 1. */
typedef enum sm_attention { SM_ATTENTION_GQA, SM_ATTENTION_MLA } sm_attention;
/* What the rest of the product asks of one kind of layer. Dimension letters follow the book. */
typedef struct sm_layer_kind {
    char name[24];          /* "dense", "moe", "local dense", "recurrent moe" */
    sm_attention attention; /* MLA: no head has its part of the cache */
    /* What can be dealt out of the layer's heads, of the queries of each, and of the heads (or,
     * where it has none, channels) of its scans: the greatest common factors of these sizes; 0:
     * none. */
    int heads, groups, scanned;
    int N, K, H, V_head;    /* query heads, KV heads, head sizes of QK and of V; 0: no attention */
    int window, chunk;      /* keys that a query sees: the nearest, or those of its chunk; 0: all */
    int kv_rank, rope_H;    /* of a latent cache: its compressed part, its rotary part */
    double cached;          /* elements that a token leaves in caches of the layer's own */
    double bounded, reach;  /* of them those that are kept for so many tokens alone */
    double cached_typed;    /* bytes in those of a type of their own (an indexer's fp8 keys) */
    double state, source;   /* of fixed size: bytes of states and of what convolutions look back
                               on, elements of keys and values of another stack's positions */
    int F;                  /* width of the MLP beside which no experts stand; 0: none */
    int E, k_top, F_expert; /* experts, those a token takes, their width; 0: none */
    int E_held;             /* what chips deal out: E, and more where it was padded */
    int E_shared, F_shared; /* shared experts, always active, and the width of each */
    /* bytes of a parameter in the checkpoint: of matrices of routed experts, of all else; means
     * over layers */
    double expert_bytes, other_bytes;
} sm_layer_kind;

/* Bytes of a checkpoint as its quantization_config says, with scales, zero points and tables; of
 * one that has none, as its dtype says. Means over the parameters of a part. */
typedef struct sm_stored {
    bool quantised, blocks; /* blocks: rows and columns share scales */
    const char *method;     /* "fp8", "awq", ...; "" where there is none */
    sm_dtype type;          /* of most weights that are quantised, else of all */
    double bytes;           /* of everything that is counted */
    double head;            /* bytes of a parameter of the unembedding */
} sm_stored;

typedef struct sm_model {
    char name[96];
    char family[32]; /* the family it is read by */
    int D, L, V;     /* width, layers, vocabulary rows (as in the checkpoint) */
    int max_seq;     /* trained context, 0: not said */
    bool tied;       /* unembedding shares the embedding */
    bool causal;
    bool attends_outside;        /* a piece outside of layers has attention */
    bool active_omits_embedding; /* published active counts leave it out (DeepSeek, gpt-oss) */
    const char *note;            /* what was left out or is counted apart, "" when nothing */
    int kinds;
    sm_layer_kind kind[SM_MAX_LAYER_KINDS];
    uint8_t layer[SM_MAX_LAYERS]; /* kind of each of the L layers */
    sm_stored stored;             /* how the checkpoint stores the weights */
    /* What its programs are made from: the kind of lines of each kind of layer, then of the pieces
     * outside of layers, in their order: the embedding, what stands between stacks, the head. */
    const sm_architecture *architecture;
    int outside; /* at least 1 */
    struct {
        int piece, before; /* of the architecture; so many layers come before it */
    } out[SM_MAX_OUTSIDE];
    int lines_of[SM_MAX_LAYER_KINDS + SM_MAX_OUTSIDE];
} sm_model;

static inline bool sm_model_has_experts(const sm_model *m) {
    bool any = false;
    for (int k = 0; k < m->kinds; k++) any |= m->kind[k].E > 0;
    return any;
}

/* Do pieces stand between layers, which others read: another stack, tables? */
static inline bool sm_model_stacked(const sm_model *m) {
    for (int i = 1; i < m->outside - 1; i++)
        if (m->out[i].before < m->L) return true;
    return false;
}

/* What a config of this path is called: "llama-3.1-8b" for "models/llama-3.1-8b/config.json",
 * "tiny" for "x/tiny.json". It stands in the path, *length bytes long. */
const char *sm_model_name(const char *path, size_t *length);

/* Read the text of a Hugging Face config.json into an architecture. SM_BAD_INPUT with file, line
 * and column of the offending value or key. A field that changes the size or the work and is not
 * understood is an error naming it; irrelevant ones are ignored. families: what it is read by,
 * which must outlive the model; NULL: those that are shipped. family: one of
 * them, NULL: that of its model_type. What the model refers to lives in the arena, which copies of
 * the model share. */
sm_status sm_model_parse(const sm_library *families, const char *family, const sm_source *source,
                         sm_arena *arena, sm_model *model, sm_error *err);

/* The same model with its sizes padded (sm_architecture_pad, whose errors it has); what it refers
 * to besides the first one lives in the arena. */
sm_status sm_model_pad(const sm_model *model, const sm_padding *padding, sm_arena *arena,
                       sm_model *padded, sm_error *err);

/* Exact counts, to the parameter: embeddings, biases and norms in. double is exact below 2^53. */
/* The counts of the architecture; active by the publisher's convention: without the token embedding
 * where active_omits_embedding. */
typedef sm_counts sm_params;
sm_params sm_model_params(const sm_model *model);
/* Parameters of one layer of this kind; active: of its experts only the k_top in use, and the
 * shared ones. */
double sm_layer_params(const sm_model *model, const sm_layer_kind *kind, bool active);

/* FLOPs of one token in a sequence of T (forward), averaged over the sequence. causal: only the
 * pairs a causal mask (and the window) keeps are counted; otherwise the full T x T square (T x
 * window in a local layer). */
typedef sm_forward sm_flops;
/* FLOPs of a forward pass per token, in a sequence of T tokens: 2 x matmul_active, plus in each
 * layer 2 N (H_qk + H_v) for each of the keys that sm_layer_keys counts. NaN when out of memory. */
sm_flops sm_model_forward_flops(const sm_model *model, double T, bool causal);
/* FLOPs of a training step per token: 3 x forward (the backward pass does each matmul twice).
 * Recomputation is not in it. */
double sm_model_train_flops(const sm_model *model, double T, bool causal);
/* Average number of keys a query attends to in a layer, sequence length T. */
double sm_layer_keys(const sm_layer_kind *kind, double T, bool causal);

/* Bytes of a layer's own caches after T tokens: windows and chunks bound what they hold. */
double sm_layer_cache_bytes(const sm_layer_kind *kind, double T, sm_dtype kv);
/* Bytes of fixed size that a sequence has in a layer, and in all of them: states, what convolutions
 * look back on, keys and values of another stack's positions. */
double sm_layer_state_bytes(const sm_layer_kind *kind, sm_dtype kv);
double sm_model_state_bytes(const sm_model *model, sm_dtype kv);
/* KV bytes one token adds over all layers (windowed layers too: it is inside their window). */
double sm_model_kv_bytes_per_token(const sm_model *model, sm_dtype kv);
/* Bytes of the KV cache of a sequence of T tokens over all layers. */
double sm_model_kv_bytes(const sm_model *model, double T, sm_dtype kv);

/* Compiled-in catalogue. */
typedef struct sm_catalogue_entry {
    const char *name, *aliases, *config_json;  /* aliases: space separated, "" when none */
    double published_params, published_active; /* active 0 for dense models */
    /* 0: published to the parameter; otherwise one unit of the last published digit, such as 1e9
     * (publishers truncate as well as round). */
    double params_rounding, active_rounding;
    const char *source; /* of the published totals */
} sm_catalogue_entry;
/* How many models the catalogue has. */
size_t sm_catalogue_count(void);
/* The i-th model of the catalogue, from 0. NULL beyond the end. */
const sm_catalogue_entry *sm_catalogue_at(size_t i);
/* The model of this name or alias (`length` bytes), in any case of letters; sizes at the end may be
 * left out where one model alone is called so ("qwen3-vl-235b", "codestral"). NULL if absent. */
const sm_catalogue_entry *sm_catalogue_find(const char *name, size_t length);

/* The model whose architecture a hub's id names, tuned or not: "meta-llama/Llama-3.1-8B-Instruct",
 * without the organisation too. *stored: the quantization_config of checkpoints whose id ends so,
 * "Qwen3-30B-A3B-FP8"; NULL where the end says none. NULL if absent. */
const sm_catalogue_entry *sm_catalogue_of_id(const char *id, const char **stored);

/* ---- weights in checkpoints ----
 * Which tensor of a checkpoint holds a weight, and where in it, as the family says
 * (docs/families.md, "Names of weights"). Element (i, j, ...) of the weight is element offset + i
 * stride[0] + j stride[1] + ... of the tensor; experts that have a tensor each are counted by its
 * name. */
enum { SM_WEIGHT_NAME = 160, SM_WEIGHT_RANK = 8 };
typedef struct sm_weight_place {
    char name[SM_WEIGHT_NAME]; /* before the number of the expert, */
    char behind[64];           /* and behind it */
    int counted;               /* dimension of the weight that the name counts, -1: none */
    int rank;                  /* of the tensor */
    size_t shape[SM_WEIGHT_RANK];
    size_t offset, stride[SM_WEIGHT_RANK]; /* of each dimension of the weight */
    bool alone;                            /* the weight is all of the tensor */
} sm_weight_place;
/* The number-th place that the family knows of weight `array` of the lines of a piece, with the
 * prefix hf.base and then without; layer: -1 the embedding, L the head. SM_BAD_INPUT when there is
 * none so far, or what the family says is no place of this weight. */
sm_status sm_model_weight_place(const sm_model *model, const sm_text_lines *lines, int array,
                                int layer, int number, sm_weight_place *out, sm_error *err);

SM_DECLARATIONS_END
