/* The forward program of one piece of a Transformer, with the storage sharding of every array. */
#include "scalemodel/program.h"

#include <stdio.h>
#include <string.h>

#include "program_parts.h"

enum { BF16 = 2, FP32 = 4 };

const char *sm_phase_name(sm_phase phase) {
    static const char *const names[] = {"forward", "backward", "backward-weight"};
    return phase < SM_PHASE_COUNT ? names[phase] : "?";
}

static bool carries(const sm_tensor *t, int dim) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == dim) return true;
    return false;
}

/* The dimension that carries a tensor axis in an array or an iteration space; -1 when nothing does.
 */
int program_tensor_dim(const sm_rules *rules, uint32_t dims, int axis) {
    static const int wide[] = {SM_DIM_F, SM_DIM_V};

    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (dims >> wide[i] & 1u) return wide[i];
    if (dims >> SM_DIM_K & 1u) {
        if (axis == SM_AXIS_TENSOR) return SM_DIM_K;
        return dims >> SM_DIM_G & 1u ? SM_DIM_G : -1; /* K and V are replicated over tensor_q */
    }
    if (dims >> SM_DIM_E & 1u && dims >> SM_DIM_I & 1u)
        return rules->expert_tensor ? SM_DIM_I : SM_DIM_E;
    return -1;
}

static uint32_t dim_set(const sm_tensor *t) {
    uint32_t set = 0;
    for (int i = 0; i < t->rank; i++) set |= 1u << t->dim[i];
    return set;
}

static void shard_dim(sm_tensor *t, int dim, sm_axes axes) {
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] == dim) t->at[i] = (sm_axes)(t->at[i] | axes);
}

static void store_tensor_axes(const sm_rules *rules, sm_tensor *t, uint32_t dims) {
    for (int axis = SM_AXIS_TENSOR; axis <= SM_AXIS_TENSOR_Q; axis++) {
        int dim = program_tensor_dim(rules, dims, axis);
        if (dim >= 0) shard_dim(t, dim, SM_BIT(axis));
        else if (t->role == SM_ROLE_ACTIVATION && rules->seq && !carries(t, SM_DIM_K))
            shard_dim(t, carries(t, SM_DIM_C) ? SM_DIM_C : SM_DIM_T, SM_BIT(axis));
    }
}

/* Storage: batch axes on B, context on T, tensor on heads, widths and vocabulary (or on T when
 * nothing else can carry it and the residual stream is sharded), expert on E of the experts' own
 * arrays; weights put fsdp on their widest free side. */
static void store(const sm_rules *rules, sm_tensor *t) {
    uint32_t dims = dim_set(t);
    bool experts_own = (dims >> SM_DIM_E & 1u) && (dims >> SM_DIM_I & 1u);
    if (t->role == SM_ROLE_WEIGHT) {
        static const int free_side[] = {SM_DIM_D, SM_DIM_Q, SM_DIM_R};
        sm_axes shards = (sm_axes)(SM_BIT(SM_AXIS_FSDP) |
                                   (rules->weights_over_context ? SM_BIT(SM_AXIS_CONTEXT) : 0));
        for (size_t i = 0; i < 3; i++)
            if (carries(t, free_side[i])) {
                shard_dim(t, free_side[i], shards);
                break;
            }
        if (experts_own) shard_dim(t, SM_DIM_E, SM_BIT(SM_AXIS_EXPERT));
        store_tensor_axes(rules, t, dims);
        return;
    }
    sm_axes batch = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_FSDP);
    int tokens = carries(t, SM_DIM_C) ? SM_DIM_C : SM_DIM_T;
    shard_dim(t, tokens == SM_DIM_C ? SM_DIM_C : SM_DIM_B, batch);
    shard_dim(t, tokens, SM_BIT(SM_AXIS_CONTEXT));
    shard_dim(t,
              experts_own          ? SM_DIM_E
              : tokens == SM_DIM_C ? SM_DIM_C
                                   : SM_DIM_B,
              SM_BIT(SM_AXIS_EXPERT));
    if (t->role == SM_ROLE_ACTIVATION) store_tensor_axes(rules, t, dims);
}

int program_tensor(sm_program *b, const char *name, sm_role role, double bytes, int rank,
                   const int *dims) {
    if (b->tensors == SM_MAX_TENSORS) {
        b->ops = SM_MAX_OPS + 1;
        return 0;
    }
    sm_tensor *t = &b->tensor[b->tensors];
    *t = (sm_tensor){
        .role = role, .rank = rank, .elements = 1, .bytes_per_element = bytes, .producer = -1};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (int i = 0; i < rank; i++) {
        t->dim[i] = (uint8_t)dims[i];
        t->elements *= b->size[dims[i]];
        if (dims[i] == SM_DIM_B || dims[i] == SM_DIM_C) t->per_sequence = true;
    }
    store(&b->rules, t);
    return b->tensors++;
}

sm_op *program_op(sm_program *b, const char *name, sm_op_kind kind, int out, int inputs,
                  const int *in) {
    if (b->ops >= SM_MAX_OPS) {
        b->ops = SM_MAX_OPS + 1;
        return &b->op[SM_MAX_OPS - 1];
    }
    sm_op *op = &b->op[b->ops];
    *op = (sm_op){.kind = kind, .out = out, .inputs = inputs};
    snprintf(op->name, sizeof op->name, "%s", name);
    for (int i = 0; i < inputs; i++) op->in[i] = in[i];
    b->tensor[out].producer = b->ops++;
    return op;
}

#define DIMS(...)                                                                                  \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) { __VA_ARGS__ }
#define IN(...)                                                                                    \
    (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]) { __VA_ARGS__ }
#define D_(x) SM_DIM_##x

static int activation(sm_program *b, const char *name, int rank, const int *dims) {
    return program_tensor(b, name, SM_ROLE_ACTIVATION, BF16, rank, dims);
}

static int weight(sm_program *b, const char *name, int rank, const int *dims) {
    return program_tensor(b, name, SM_ROLE_WEIGHT, BF16, rank, dims);
}

static int vectors(sm_program *b, const char *name, double elements) {
    int t = weight(b, name, DIMS(D_(D)));
    b->tensor[t].elements = elements;
    b->tensor[t].norm = true;
    return t;
}

static void einsum(sm_program *b, const char *name, int out, int x, int w) {
    program_op(b, name, SM_OP_EINSUM, out, IN(x, w))->reads = 3;
}

static int norm(sm_program *b, const char *name, int x, double elements) {
    int y = activation(b, name, DIMS(D_(B), D_(T), D_(D)));
    int w = vectors(b, "scale", elements);
    sm_op *op = program_op(b, name, SM_OP_VECTOR, y, IN(x, w));
    op->reads = 1;
    op->flops_per_element = 5;
    return y;
}

static int residual(sm_program *b, const char *name, int x, int y) {
    int out = activation(b, name, DIMS(D_(B), D_(T), D_(D)));
    program_op(b, name, SM_OP_VECTOR, out, IN(x, y))->flops_per_element = 1;
    return out;
}

/* Rotary embedding and the norms of Q and K: their result is what attention keeps. */
static int rotate(sm_program *b, const char *name, int x, bool normed) {
    const sm_tensor *t = &b->tensor[x];
    int dims[6];
    for (int i = 0; i < t->rank; i++) dims[i] = t->dim[i];
    int y = activation(b, name, t->rank, dims);
    sm_op *op = program_op(b, name, SM_OP_VECTOR, y, IN(x));
    op->flops_per_element = normed ? 8 : 3;
    op->reads = normed ? 1 : 0;
    return y;
}

/* Attention as separate kernels (Megatron before flash attention): the probabilities, their dropout
 * mask and what dropout leaves are kept, 5 bytes a score (Korthikanti et al. 2022, section 4.1).
 * Bytes that cross memory per score: forward QK writes 2, softmax reads and writes 2 + 2, dropout
 * 2 + 1 + 2, PV reads 2; backward 19 by the same count. */
static void softmax(sm_program *b, int q) {
    enum { KEPT = 5, FORWARD = 13, BACKWARD = 19 };
    int p = program_tensor(b, "probs", SM_ROLE_ACTIVATION, KEPT,
                           DIMS(D_(B), D_(T), D_(K), D_(G), D_(S)));
    sm_op *op = program_op(b, "softmax", SM_OP_VECTOR, p, IN(q));
    op->reads_output = true;
    op->flops_per_element = 8;
    op->passes[0] = (double)FORWARD / KEPT;
    op->passes[1] = (double)BACKWARD / KEPT;
}

static int attend(sm_program *b, int q, int k, int v, double keys) {
    if (b->rules.unfused) {
        softmax(b, q);
        keys = b->size[D_(S)]; /* masked scores are computed too */
    }
    int o = activation(b, "attn", DIMS(D_(B), D_(T), D_(K), D_(G), D_(J)));
    sm_op *op = program_op(b, "attention", SM_OP_ATTENTION, o, IN(q, k, v));
    op->keys = keys;
    op->reads = 7;
    op->reads_output = !b->rules.unfused;
    return o;
}

static int attention_gqa(sm_program *b, const sm_layer_kind *kind, int x, double keys) {
    int q = activation(b, "q", DIMS(D_(B), D_(T), D_(K), D_(G), D_(H)));
    int k = activation(b, "k", DIMS(D_(B), D_(T), D_(K), D_(H)));
    einsum(b, "q_proj", q, x, weight(b, "W_q", DIMS(D_(D), D_(K), D_(G), D_(H))));
    einsum(b, "k_proj", k, x, weight(b, "W_k", DIMS(D_(D), D_(K), D_(H))));
    int v = k;
    if (!kind->k_equals_v) {
        v = activation(b, "v", DIMS(D_(B), D_(T), D_(K), D_(J)));
        einsum(b, "v_proj", v, x, weight(b, "W_v", DIMS(D_(D), D_(K), D_(J))));
    }
    int qr = rotate(b, "q_rope", q, kind->qk_norm);
    int kr = rotate(b, "k_rope", k, kind->qk_norm);
    return attend(b, qr, kr, v, keys);
}

/* Multi-head latent attention, not absorbed (training): Q and KV pass through low ranks; K joins a
 * rotary part that all heads share. */
static int attention_mla(sm_program *b, const sm_layer_kind *kind, int x, double keys) {
    int q = activation(b, "q", DIMS(D_(B), D_(T), D_(K), D_(G), D_(H)));
    if (kind->q_rank) {
        int qa = activation(b, "q_low", DIMS(D_(B), D_(T), D_(Q)));
        einsum(b, "q_down", qa, x, weight(b, "W_qa", DIMS(D_(D), D_(Q))));
        int qn = activation(b, "q_norm", DIMS(D_(B), D_(T), D_(Q)));
        program_op(b, "q_norm", SM_OP_VECTOR, qn, IN(qa))->reads = 1;
        einsum(b, "q_up", q, qn, weight(b, "W_qb", DIMS(D_(Q), D_(K), D_(G), D_(H))));
    } else {
        einsum(b, "q_proj", q, x, weight(b, "W_q", DIMS(D_(D), D_(K), D_(G), D_(H))));
    }
    int ca = activation(b, "kv_low", DIMS(D_(B), D_(T), D_(R)));
    int rope = activation(b, "k_rot", DIMS(D_(B), D_(T), D_(Y)));
    einsum(b, "kv_down", ca, x, weight(b, "W_kva", DIMS(D_(D), D_(R))));
    einsum(b, "k_rot", rope, x, weight(b, "W_kr", DIMS(D_(D), D_(Y))));
    int cn = activation(b, "kv_norm", DIMS(D_(B), D_(T), D_(R)));
    program_op(b, "kv_norm", SM_OP_VECTOR, cn, IN(ca))->reads = 1;
    int k_nope = activation(b, "k_nope", DIMS(D_(B), D_(T), D_(K), D_(P)));
    int v = activation(b, "v", DIMS(D_(B), D_(T), D_(K), D_(J)));
    einsum(b, "k_up", k_nope, cn, weight(b, "W_kb", DIMS(D_(R), D_(K), D_(P))));
    einsum(b, "v_up", v, cn, weight(b, "W_vb", DIMS(D_(R), D_(K), D_(J))));
    int qr = rotate(b, "q_rope", q, false);
    int k = activation(b, "k", DIMS(D_(B), D_(T), D_(K), D_(H)));
    program_op(b, "k_join", SM_OP_VECTOR, k, IN(k_nope, rope))->flops_per_element = 2;
    return attend(b, qr, k, v, keys);
}

static int act(sm_program *b, const char *name, int gate, int up, int rank, const int *dims) {
    int h = activation(b, name, rank, dims);
    sm_op *op = gate == up ? program_op(b, name, SM_OP_VECTOR, h, IN(up))
                           : program_op(b, name, SM_OP_VECTOR, h, IN(gate, up));
    op->flops_per_element = 6;
    op->reads = gate == up ? 1 : 3;
    return h;
}

static int mlp(sm_program *b, const sm_layer_kind *kind, int x) {
    int up = activation(b, "up", DIMS(D_(B), D_(T), D_(F)));
    int gate = up;
    if (kind->mlp == SM_MLP_GATED) {
        gate = activation(b, "gate", DIMS(D_(B), D_(T), D_(F)));
        einsum(b, "gate_proj", gate, x, weight(b, "W_gate", DIMS(D_(D), D_(F))));
    }
    einsum(b, "up_proj", up, x, weight(b, "W_up", DIMS(D_(D), D_(F))));
    int h = act(b, "mlp_act", gate, up, DIMS(D_(B), D_(T), D_(F)));
    int y = activation(b, "mlp_out", DIMS(D_(B), D_(T), D_(D)));
    einsum(b, "down_proj", y, h, weight(b, "W_down", DIMS(D_(F), D_(D))));
    return y;
}

/* Routed experts: tokens go to slots [E,C,D] still where they are (C sharded like tokens); that
 * each expert's matmul wants E sharded makes the all-to-all, there and back. */
static int moe(sm_program *b, const sm_layer_kind *kind, int x) {
    int logits = program_tensor(b, "router", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T), D_(X)));
    einsum(b, "router", logits, x, weight(b, "W_router", DIMS(D_(D), D_(X))));
    int slots = activation(b, "slots", DIMS(D_(E), D_(C), D_(D)));
    program_op(b, "dispatch", SM_OP_VECTOR, slots, IN(x, logits))->reads = 2;
    int up = activation(b, "expert_up", DIMS(D_(E), D_(C), D_(I)));
    int gate = up;
    if (kind->mlp == SM_MLP_GATED) {
        gate = activation(b, "expert_gate", DIMS(D_(E), D_(C), D_(I)));
        einsum(b, "expert_gate", gate, slots, weight(b, "W_eg", DIMS(D_(E), D_(D), D_(I))));
    }
    einsum(b, "expert_up", up, slots, weight(b, "W_eu", DIMS(D_(E), D_(D), D_(I))));
    int h = act(b, "expert_act", gate, up, DIMS(D_(E), D_(C), D_(I)));
    int y = activation(b, "expert_out", DIMS(D_(E), D_(C), D_(D)));
    einsum(b, "expert_down", y, h, weight(b, "W_ed", DIMS(D_(E), D_(I), D_(D))));
    int m = activation(b, "moe_out", DIMS(D_(B), D_(T), D_(D)));
    sm_op *op = program_op(b, "combine", SM_OP_VECTOR, m, IN(y, logits));
    op->reads = 3;
    op->flops_per_element = 2 * kind->k_top;
    return m;
}

/* Every parameter that does no matmul work (norms, biases, sinks, gates) rides in one array per
 * layer: its gradient and its optimizer state are real, its work is not worth an op. */
static double vector_params(const sm_model *model, const sm_layer_kind *kind, const sm_program *b) {
    double total = sm_layer_params(model, kind, false);
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].role == SM_ROLE_WEIGHT && !b->tensor[i].norm)
            total -= b->tensor[i].elements;
    return total > 0 ? total : 0;
}

static void layer_sizes(sm_program *b, const sm_layer_kind *kind, double T) {
    double *s = b->size;
    s[D_(K)] = kind->K > 0 ? kind->K : kind->N;
    s[D_(G)] = kind->attention == SM_ATTENTION_MLA ? 1 : (double)kind->N / s[D_(K)];
    if (kind->attention == SM_ATTENTION_MLA) s[D_(K)] = kind->N;
    s[D_(H)] = kind->attention == SM_ATTENTION_MLA ? kind->nope_H + kind->rope_H : kind->H;
    s[D_(J)] = kind->V_head > 0 ? kind->V_head : kind->H;
    s[D_(Q)] = kind->q_rank;
    s[D_(R)] = kind->kv_rank;
    s[D_(P)] = kind->nope_H;
    s[D_(Y)] = kind->rope_H;
    s[D_(F)] = (double)kind->F + (double)kind->E_shared * kind->F_shared;
    s[D_(E)] = kind->E;
    s[D_(X)] = kind->E +
               (kind->shared_gate ? 1 : 0); /* the gate of the shared experts is one more column */
    s[D_(I)] = kind->F_expert;
    s[D_(C)] = kind->E > 0 ? T * kind->k_top / kind->E : 0;
    b->top_k = kind->k_top;
}

static void build_layer(const sm_model *model, const sm_layer_kind *kind, double T, sm_program *b) {
    layer_sizes(b, kind, T);
    double keys = sm_layer_keys(kind, T, model->causal);
    int x = b->input = activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    int xn = norm(b, "attn_norm", x, 0);
    int o = kind->attention == SM_ATTENTION_MLA ? attention_mla(b, kind, xn, keys)
                                                : attention_gqa(b, kind, xn, keys);
    int y = activation(b, "attn_out", DIMS(D_(B), D_(T), D_(D)));
    einsum(b, "o_proj", y, o, weight(b, "W_o", DIMS(D_(K), D_(G), D_(J), D_(D))));
    if (kind->norms >= 4) y = norm(b, "attn_post_norm", y, 0);
    int mid = kind->parallel ? x : residual(b, "attn_add", x, y);
    int mn = kind->parallel ? xn : norm(b, "mlp_norm", mid, 0);
    int m = -1;
    if (b->size[D_(F)] > 0) m = mlp(b, kind, mn);
    if (kind->E > 0) {
        int e = moe(b, kind, mn);
        m = m < 0 ? e : residual(b, "moe_add", m, e);
    }
    if (kind->norms >= 4) m = norm(b, "mlp_post_norm", m, 0);
    if (kind->parallel) m = residual(b, "branch_add", y, m);
    b->output = residual(b, "mlp_add", mid, m);
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].norm) {
            b->tensor[i].elements = vector_params(model, kind, b);
            break;
        }
}

/* Width of the embedding table and of the unembedding (opt-350m: narrower than D, carried by the
 * dimension Q). */
static bool projected(const sm_model *model) {
    return model->embed_D > 0 && model->embed_D != model->D;
}

static int table_dim(const sm_model *model) { return projected(model) ? D_(Q) : D_(D); }

/* Parameters outside the layers that do no matmul work: the final norm, a norm of the embedding.
 * They ride with the head. */
static double outside_vectors(const sm_model *model) {
    sm_params p = sm_model_params(model);
    double total = p.total - p.embedding - p.unembedding;
    for (int l = 0; l < model->L; l++)
        total -= sm_layer_params(model, &model->kind[model->layer[l]], false);
    if (projected(model)) total -= 2.0 * model->embed_D * model->D;
    return total > 0 ? total : 0;
}

static void build_embedding(const sm_model *model, sm_program *b) {
    int width = table_dim(model);
    int ids = program_tensor(b, "ids", SM_ROLE_IDS, 0, DIMS(D_(B), D_(T), D_(V)));
    int table = weight(b, "W_embed", DIMS(D_(V), width));
    int x = activation(b, projected(model) ? "x_low" : "x", DIMS(D_(B), D_(T), width));
    program_op(b, "embed", SM_OP_GATHER, x, IN(ids, table))->reads = 1;
    b->tensor[table].elements = sm_model_params(model).embedding;
    b->input = -1;
    b->output = x;
    if (!projected(model)) return;
    b->output = activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    einsum(b, "embed_proj", b->output, x, weight(b, "W_in", DIMS(D_(Q), D_(D))));
}

static void build_head(const sm_model *model, sm_program *b) {
    int x = b->input = activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    int xn = norm(b, "final_norm", x, outside_vectors(model));
    sm_params p = sm_model_params(model);
    if (projected(model)) {
        int low = activation(b, "x_low", DIMS(D_(B), D_(T), D_(Q)));
        einsum(b, "head_proj", low, xn, weight(b, "W_out", DIMS(D_(D), D_(Q))));
        xn = low;
    }
    int logits = program_tensor(b, "logits", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T), D_(V)));
    int w = weight(b, "W_head", DIMS(table_dim(model), D_(V)));
    if (p.unembedding > 0) b->tensor[w].elements = p.unembedding;
    einsum(b, "lm_head", logits, xn, w);
    int loss = program_tensor(b, "loss", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T)));
    sm_op *op = program_op(b, "loss", SM_OP_VECTOR, loss, IN(logits));
    op->reads = 1;
    op->flops_per_element = 8 * model->V;
    b->output = -1;
}

sm_status sm_program_build(const sm_model *model, sm_piece piece, int kind, double T,
                           const sm_rules *rules, sm_program *program, sm_error *err) {
    memset(program, 0, sizeof *program);
    program->rules = *rules;
    program->size[SM_DIM_B] = 1;
    program->size[SM_DIM_T] = program->size[SM_DIM_S] = T;
    program->size[SM_DIM_D] = model->D;
    program->size[SM_DIM_V] = model->V;
    program->size[SM_DIM_Q] = projected(model) ? model->embed_D : 0; /* layers set their own */
    const char *name = piece == SM_PIECE_LAYER       ? model->kind[kind].name
                       : piece == SM_PIECE_EMBEDDING ? "embedding"
                                                     : "head";
    snprintf(program->name, sizeof program->name, "%s", name);
    if (piece == SM_PIECE_LAYER) build_layer(model, &model->kind[kind], T, program);
    else if (piece == SM_PIECE_EMBEDDING) build_embedding(model, program);
    else build_head(model, program);
    if (program->ops > SM_MAX_OPS)
        return sm_fail(err, SM_INTERNAL, "a layer of this model has more than %d ops", SM_MAX_OPS);
    return SM_OK;
}
