/* model: the architecture of a Transformer, read from a Hugging Face config; exact counts of its
 * parameters, FLOPs and KV cache. */
#ifndef SCALEMODEL_MODEL_H
#define SCALEMODEL_MODEL_H
#include "scalemodel/architecture.h"
#include "scalemodel/base.h"
#include "scalemodel/text.h"
#include "scalemodel/units.h"

SM_DECLARATIONS_BEGIN

enum { SM_MAX_LAYER_KINDS = 8, SM_MAX_LAYERS = 1024 };

/* MHA and MQA are GQA with K = N and K = 1. */
typedef enum sm_attention { SM_ATTENTION_GQA, SM_ATTENTION_MLA } sm_attention;
/* 3 matrices (SwiGLU, GeGLU) or 2. */
typedef enum sm_mlp { SM_MLP_GATED, SM_MLP_PLAIN } sm_mlp;
/* D, 2D (D without bias) or 0 parameters each. */
typedef enum sm_norm { SM_NORM_RMS, SM_NORM_LAYER, SM_NORM_LAYER_NO_AFFINE } sm_norm;

/* Everything that distinguishes one kind of layer. Dimension letters follow the book. */
typedef struct sm_layer_kind {
    char name[24]; /* "dense", "moe", "local dense", "global moe" */
    sm_attention attention;
    int N, K, H;         /* query heads, KV heads, head size (of Q and K; GQA) */
    int V_head;          /* head size of V (equals H for GQA) */
    int window;          /* attention window in tokens; 0 = full */
    int chunk;           /* chunked local attention (Llama 4): tokens per chunk; 0 = none */
    int q_rank, kv_rank; /* MLA: ranks of the compressed Q (0 = none) and KV */
    int rope_H, nope_H;  /* MLA: rotary and non-rotary head sizes */
    bool qkv_bias, o_bias, qk_norm;
    int qk_norm_q, qk_norm_k; /* parameters of the norms of Q and K (qwen3: H; olmo2: NH, KH) */
    bool kv_shared;    /* gemma 4 E2B: K and V of an earlier layer: no projections, no cache */
    bool k_equals_v;   /* gemma 4 full-attention layers: V projection shares K's weights */
    bool has_sinks;    /* gpt-oss: N extra parameters */
    bool parallel;     /* attention and MLP side by side (gpt-j, gpt-neox, falcon) */
    int norms;         /* norms of size D in the layer (2 usual; gemma 2/3: 4) */
    long extra_params; /* counted, no matmul work (layer scalars, ...) */
    /* MLP: dense part */
    sm_mlp mlp;
    int F; /* 0 when the layer has only experts */
    bool mlp_bias;
    /* experts */
    int E, k_top, F_expert; /* 0 when dense */
    int E_shared, F_shared; /* shared experts (each of F_shared), always active */
    bool shared_gate;       /* qwen2-moe: D parameters */
    bool router_bias;       /* gpt-oss: E; deepseek v3: E (correction bias) */
    bool expert_bias;
    /* bytes of a parameter in the checkpoint: of matrices of routed experts, of all else; means
     * over layers */
    double expert_bytes, other_bytes;
} sm_layer_kind;

/* Bytes of a checkpoint as its quantization_config says, with scales, zero points and tables; of
 * one that has none, as its dtype says. Means over the parameters of a part. */
typedef struct sm_stored {
    bool quantised;
    const char *method; /* "fp8", "awq", ...; "" where there is none */
    sm_dtype type;      /* of most weights that are quantised, else of all */
    double bytes;       /* of everything that is counted */
    double head;        /* bytes of a parameter of the unembedding */
} sm_stored;

typedef struct sm_model {
    char name[96];
    char family[32]; /* model_type of the config */
    int D, L, V;     /* width, layers, vocabulary rows (as in the checkpoint) */
    int positions;   /* rows of a learned position table, 0 when rotary/ALiBi */
    int position_D;  /* width of that table; 0 = D */
    int embed_D;     /* width of the embedding when projected (opt-350m); 0 = D */
    bool tied;       /* unembedding shares the embedding */
    bool lm_head_bias;
    sm_norm norm;
    bool norm_bias;  /* LAYER: bias present? */
    bool embed_norm; /* bloom: a norm after the embedding */
    bool final_norm;
    int max_seq; /* trained context */
    /* What sizes do not say and only running the model needs; 0 and "" where nothing tells. */
    double rope_theta;   /* base of rotary positions; 0: 10000 */
    double norm_epsilon; /* of RMS norms; 0: 1e-6 */
    bool odd_positions;  /* rotary positions that are stretched, or differ by layer */
    bool scaled; /* the embedding, residuals or logits are multiplied by constants (Granite) */
    char activation[24]; /* of the MLP; "": silu */
    bool causal;
    int kinds;
    sm_layer_kind kind[SM_MAX_LAYER_KINDS];
    uint8_t layer[SM_MAX_LAYERS]; /* kind of each of the L layers */
    int kv_shared_layers;         /* last layers reuse the KV of earlier ones (gemma 3n/4) */
    int per_layer_D, per_layer_V; /* gemma 4 E2B: an embedding fed to each layer: width, rows */
    long extra_params; /* outside layers, in the checkpoint's language model, no matmul work */
    sm_stored stored;  /* how the checkpoint stores the weights */
    const char *note;  /* what was left out (vision tower, MTP), "" when nothing */
    bool active_omits_embedding; /* published active counts leave it out (DeepSeek, gpt-oss) */
    /* What its programs are made from: the kind of lines of each kind of layer, then of the
     * embedding and of the head. */
    const sm_architecture *architecture;
    int lines_of[SM_MAX_LAYER_KINDS + 2];
} sm_model;

/* Read the text of a Hugging Face config.json into an architecture. SM_BAD_INPUT with file, line
 * and column of the offending value or key. A field that changes the size or the work and is not
 * understood is an error naming it; irrelevant ones are ignored. What the model refers to lives in
 * the arena, which copies of the model share. */
sm_status sm_model_parse(const sm_source *source, sm_arena *arena, sm_model *model, sm_error *err);

/* Exact counts, to the parameter: embeddings, biases and norms in. double is exact below 2^53. */
typedef struct sm_params {
    double total;
    double active; /* by the publisher's convention: experts in use + everything else, less
                      the token embedding where active_omits_embedding */
    double embedding, unembedding;                       /* unembedding 0 when tied */
    double attention, mlp, experts, router, norm, other; /* all of these = total */
    double matmul_active; /* active parameters that do 2 FLOPs per token in a matmul: no embedding
                             gather, norms or biases; the unembedding once also when tied */
} sm_params;
/* Count parameters by component from the sizes of the model, exactly. */
sm_params sm_model_params(const sm_model *model);
/* Parameters of one layer of this kind; active: of its experts only the k_top in use, and the
 * shared ones. */
double sm_layer_params(const sm_model *model, const sm_layer_kind *kind, bool active);

/* FLOPs of one token in a sequence of T (forward), averaged over the sequence. causal: only the
 * pairs a causal mask (and the window) keeps are counted; otherwise the full T x T square (T x
 * window in a local layer). */
typedef struct sm_flops {
    double matmul, attention, total;
} sm_flops;
/* FLOPs of a forward pass per token, in a sequence of T tokens: 2 x matmul_active, plus in each
 * layer 2 N (H_qk + H_v) for each of the keys that sm_layer_keys counts. */
sm_flops sm_model_forward_flops(const sm_model *model, double T, bool causal);
/* FLOPs of a training step per token: 3 x forward (the backward pass does each matmul twice).
 * Recomputation is not in it. */
double sm_model_train_flops(const sm_model *model, double T, bool causal);
/* Average number of keys a query attends to in a layer, sequence length T. */
double sm_layer_keys(const sm_layer_kind *kind, double T, bool causal);

/* KV bytes one token adds over all layers (windowed layers too: it is inside their window). */
double sm_model_kv_bytes_per_token(const sm_model *model, sm_dtype kv);
/* Bytes of the KV cache of a sequence of T tokens over all layers: windows and chunks bound what a
 * layer holds. */
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
/* The model of this name or alias (`length` bytes), in any case of letters. NULL if absent. */
const sm_catalogue_entry *sm_catalogue_find(const char *name, size_t length);

/* Checks ranges and consistency of a filled model: sizes positive, heads divide, the total below
 * 2^53. SM_BAD_INPUT with a sentence that names the size. */
sm_status sm_model_check(const sm_model *model, sm_error *err);
SM_DECLARATIONS_END
#endif
