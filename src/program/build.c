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
        t->elements *= b->dim[dims[i]].size;
    }
    sm_dimensions all = program_dims(t);
    t->per_sequence =
        program_has(b, all, SM_DIMENSION_SEQUENCES) || program_has(b, all, SM_DIMENSION_SLOTS);
    program_store(b, t);
    return b->tensors++;
}

sm_op *program_op(sm_program *b, const char *name, sm_op_kind kind, int out, int inputs,
                  const int *in) {
    if (b->ops >= SM_MAX_OPS) {
        b->ops = SM_MAX_OPS + 1;
        return &b->op[SM_MAX_OPS - 1];
    }
    sm_op *op = &b->op[b->ops];
    *op = (sm_op){.kind = kind, .out = out, .inputs = inputs, .chosen = -1, .state = -1};
    snprintf(op->name, sizeof op->name, "%s", name);
    for (int i = 0; i < inputs; i++) {
        op->in[i] = in[i];
        memcpy(op->as[i], b->tensor[in[i]].dim, sizeof op->as[i]);
    }
    b->tensor[out].producer = b->ops++;
    return op;
}

void program_read_as_keys(sm_op *op) {
    for (int i = 0; i < op->inputs; i++)
        for (int d = 0; d < SM_MAX_RANK; d++)
            if (op->as[i][d] == PROGRAM_T && (i > 0 || op->function == SM_FUNCTION_APPEND))
                op->as[i][d] = PROGRAM_S;
}

sm_op *program_vector(sm_program *b, const char *name, sm_function function, int out, int inputs,
                      const int *in) {
    sm_op *op = program_op(b, name, SM_OP_VECTOR, out, inputs, in);
    op->function = function;
    return op;
}

#define DIMS PROGRAM_LIST
#define IN PROGRAM_LIST
#define D_(x) PROGRAM_##x

int program_activation(sm_program *b, const char *name, int rank, const int *dims) {
    return program_tensor(b, name, SM_ROLE_ACTIVATION, BF16, rank, dims);
}

int program_weight(sm_program *b, const char *name, int rank, const int *dims) {
    return program_tensor(b, name, SM_ROLE_WEIGHT, BF16, rank, dims);
}

sm_op *program_einsum(sm_program *b, const char *name, int out, int x, int w) {
    sm_op *op = program_op(b, name, SM_OP_EINSUM, out, IN(x, w));
    op->reads = 3;
    return op;
}

static int norm(sm_program *b, const char *name, int x, double elements) {
    int y = program_activation(b, name, DIMS(D_(B), D_(T), D_(D)));
    int w = program_weight(b, "scale", DIMS(D_(D)));
    b->tensor[w].elements = elements;
    b->tensor[w].norm = true;
    sm_op *op = program_vector(b, name, SM_FUNCTION_NORM, y, IN(x, w));
    op->reads = 1;
    op->flops_per_element = 5;
    return y;
}

static int residual(sm_program *b, const char *name, int x, int y) {
    int out = program_activation(b, name, DIMS(D_(B), D_(T), D_(D)));
    program_vector(b, name, SM_FUNCTION_ADD, out, IN(x, y))->flops_per_element = 1;
    return out;
}

/* Rotary embedding and the norms of Q and K: their result is what attention keeps. */
static int rotate(sm_program *b, const char *name, int x, bool normed) {
    const sm_tensor *t = &b->tensor[x];
    int dims[6];
    for (int i = 0; i < t->rank; i++) dims[i] = t->dim[i];
    int y = program_activation(b, name, t->rank, dims);
    sm_op *op = program_vector(b, name, SM_FUNCTION_ROTATE, y, IN(x));
    op->flops_per_element = normed ? 8 : 3;
    op->reads = normed ? 1 : 0;
    return y;
}

static int attend(sm_program *b, int q, int k, int v, double keys) {
    if (b->rules.unfused) {
        /* Attention as separate kernels (Megatron before flash attention): the probabilities, their
         * dropout mask and what dropout leaves are kept, 5 bytes a score (Korthikanti et al. 2022,
         * section 4.1). Bytes that cross memory per score between the matmuls: scaling, masking and
         * softmax read and write 2 + 2 each, dropout 2 + 1 + 2; backward dropout 5 again, softmax 6
         * (gradient and result read), masking and scaling 4 each. The scores that the matmuls write
         * and read are priced with them (sm_attention_cost). */
        enum { KEPT = 5, FORWARD = 17, BACKWARD = 19 };
        int p = program_tensor(b, "probs", SM_ROLE_ACTIVATION, KEPT,
                               DIMS(D_(B), D_(T), D_(K), D_(G), D_(S)));
        sm_op *op = program_vector(b, "softmax", SM_FUNCTION_SOFTMAX, p, IN(q));
        op->reads_output = true;
        op->flops_per_element = 8;
        op->passes[0] = (double)FORWARD / KEPT;
        op->passes[1] = (double)BACKWARD / KEPT;
        keys = b->dim[D_(S)].size; /* masked scores are computed too */
    }
    int o = program_activation(b, "attn", DIMS(D_(B), D_(T), D_(K), D_(G), D_(J)));
    sm_op *op = program_op(b, "attention", SM_OP_ATTENTION, o, IN(q, k, v));
    program_read_as_keys(op);
    op->keys = keys;
    op->reads = 7;
    op->reads_output = !b->rules.unfused;
    return o;
}

/* A layer that serves from the cache of an earlier one projects no keys and values. */
static int attention_gqa(sm_program *b, const sm_layer_kind *kind, int x, double keys) {
    bool reuses = b->serving && kind->kv_shared;
    int k = -1, v = -1;
    int q = program_activation(b, "q", DIMS(D_(B), D_(T), D_(K), D_(G), D_(H)));
    if (!reuses) v = k = program_activation(b, "k", DIMS(D_(B), D_(T), D_(K), D_(H)));
    program_einsum(b, "q_proj", q, x, program_weight(b, "W_q", DIMS(D_(D), D_(K), D_(G), D_(H))));
    if (!reuses)
        program_einsum(b, "k_proj", k, x, program_weight(b, "W_k", DIMS(D_(D), D_(K), D_(H))));
    if (!reuses && !kind->k_equals_v) {
        v = program_activation(b, "v", DIMS(D_(B), D_(T), D_(K), D_(J)));
        program_einsum(b, "v_proj", v, x, program_weight(b, "W_v", DIMS(D_(D), D_(K), D_(J))));
    }
    int qr = rotate(b, "q_rope", q, kind->qk_norm);
    if (!reuses) k = rotate(b, "k_rope", k, kind->qk_norm);
    if (b->serving) program_append(b, &k, &v);
    return attend(b, qr, k, v, keys);
}

static int latent_query(sm_program *b, const sm_layer_kind *kind, int x) {
    int q = program_activation(b, "q", DIMS(D_(B), D_(T), D_(K), D_(G), D_(H)));
    if (!kind->q_rank) {
        program_einsum(b, "q_proj", q, x,
                       program_weight(b, "W_q", DIMS(D_(D), D_(K), D_(G), D_(H))));
        return q;
    }
    int qa = program_activation(b, "q_low", DIMS(D_(B), D_(T), D_(Q)));
    program_einsum(b, "q_down", qa, x, program_weight(b, "W_qa", DIMS(D_(D), D_(Q))));
    int qn = program_activation(b, "q_norm", DIMS(D_(B), D_(T), D_(Q)));
    program_vector(b, "q_norm", SM_FUNCTION_NORM, qn, IN(qa))->reads = 1;
    program_einsum(b, "q_up", q, qn, program_weight(b, "W_qb", DIMS(D_(Q), D_(K), D_(G), D_(H))));
    return q;
}

static program_latent latent_keys(sm_program *b, int x) {
    program_latent kv = {.whole = -1};
    int ca = program_activation(b, "kv_low", DIMS(D_(B), D_(T), D_(R)));
    kv.rotary = program_activation(b, "k_rot", DIMS(D_(B), D_(T), D_(Y)));
    program_einsum(b, "kv_down", ca, x, program_weight(b, "W_kva", DIMS(D_(D), D_(R))));
    program_einsum(b, "k_rot", kv.rotary, x, program_weight(b, "W_kr", DIMS(D_(D), D_(Y))));
    kv.low = program_activation(b, "kv_norm", DIMS(D_(B), D_(T), D_(R)));
    program_vector(b, "kv_norm", SM_FUNCTION_NORM, kv.low, IN(ca))->reads = 1;
    return kv;
}

/* Multi-head latent attention: Q and KV pass through low ranks; K joins a rotary part that all
 * heads share. Training expands it. */
static int attention_mla(sm_program *b, const sm_layer_kind *kind, int x, double keys) {
    int q = latent_query(b, kind, x);
    program_latent kv = latent_keys(b, x);
    if (b->serving) program_append_latent(b, &kv);
    if (b->serving && b->rules.absorbed) return program_attend_absorbed(b, q, &kv);
    /* Keys and values of every head from the compressed ones: of the tokens at hand, or of the
     * cache.
     */
    int at = b->serving ? D_(S) : D_(T);
    int k_nope = program_activation(b, "k_nope", DIMS(D_(B), at, D_(K), D_(P)));
    int v = program_activation(b, "v", DIMS(D_(B), at, D_(K), D_(J)));
    program_einsum(b, "k_up", k_nope, kv.low, program_weight(b, "W_kb", DIMS(D_(R), D_(K), D_(P))));
    program_einsum(b, "v_up", v, kv.low, program_weight(b, "W_vb", DIMS(D_(R), D_(K), D_(J))));
    int qr = rotate(b, "q_rope", q, false);
    int k = program_activation(b, "k", DIMS(D_(B), at, D_(K), D_(H)));
    program_vector(b, "k_join", SM_FUNCTION_JOIN, k, IN(k_nope, kv.rotary))->flops_per_element = 2;
    return attend(b, qr, k, v, keys);
}

static int act(sm_program *b, const char *name, int gate, int up, int rank, const int *dims) {
    int h = program_activation(b, name, rank, dims);
    sm_op *op = gate == up ? program_vector(b, name, SM_FUNCTION_GATE, h, IN(up))
                           : program_vector(b, name, SM_FUNCTION_GATE, h, IN(gate, up));
    op->flops_per_element = 6;
    op->reads = gate == up ? 1 : 3;
    return h;
}

static int mlp(sm_program *b, const sm_layer_kind *kind, int x) {
    int up = program_activation(b, "up", DIMS(D_(B), D_(T), D_(F)));
    int gate = up;
    if (kind->mlp == SM_MLP_GATED) {
        gate = program_activation(b, "gate", DIMS(D_(B), D_(T), D_(F)));
        program_einsum(b, "gate_proj", gate, x, program_weight(b, "W_gate", DIMS(D_(D), D_(F))));
    }
    program_einsum(b, "up_proj", up, x, program_weight(b, "W_up", DIMS(D_(D), D_(F))));
    int h = act(b, "mlp_act", gate, up, DIMS(D_(B), D_(T), D_(F)));
    int y = program_activation(b, "mlp_out", DIMS(D_(B), D_(T), D_(D)));
    program_einsum(b, "down_proj", y, h, program_weight(b, "W_down", DIMS(D_(F), D_(D))));
    return y;
}

/* An array left as partial sums over tensor: what is added to it is partial too, and the sum is
 * reduced once (serving). */
static void leave_partial(sm_program *b, int tensor) {
    sm_tensor *t = &b->tensor[tensor];
    t->unreduced = SM_AXES_TENSOR;
    for (int i = 0; i < t->rank; i++) t->at[i] = (sm_axes)(t->at[i] & ~SM_AXES_TENSOR);
}

/* Routed experts: tokens go to slots [E,C,D] still where they are (C sharded like tokens); that
 * each expert's matmul wants E sharded makes the all-to-all, there and back. */
static int moe(sm_program *b, const sm_layer_kind *kind, int x) {
    int logits = program_tensor(b, "router", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T), D_(X)));
    program_einsum(b, "router", logits, x, program_weight(b, "W_router", DIMS(D_(D), D_(X))));
    int slots = program_activation(b, "slots", DIMS(D_(E), D_(C), D_(D)));
    program_vector(b, "dispatch", SM_FUNCTION_DISPATCH, slots, IN(x, logits))->reads = 2;
    int up = program_activation(b, "expert_up", DIMS(D_(E), D_(C), D_(I)));
    int gate = up;
    if (kind->mlp == SM_MLP_GATED) {
        gate = program_activation(b, "expert_gate", DIMS(D_(E), D_(C), D_(I)));
        program_einsum(b, "expert_gate", gate, slots,
                       program_weight(b, "W_eg", DIMS(D_(E), D_(D), D_(I))));
    }
    program_einsum(b, "expert_up", up, slots, program_weight(b, "W_eu", DIMS(D_(E), D_(D), D_(I))));
    int h = act(b, "expert_act", gate, up, DIMS(D_(E), D_(C), D_(I)));
    int y = program_activation(b, "expert_out", DIMS(D_(E), D_(C), D_(D)));
    if (b->serving && b->rules.expert_tensor) leave_partial(b, y);
    program_einsum(b, "expert_down", y, h, program_weight(b, "W_ed", DIMS(D_(E), D_(I), D_(D))));
    int m = program_activation(b, "moe_out", DIMS(D_(B), D_(T), D_(D)));
    sm_op *op = program_vector(b, "combine", SM_FUNCTION_COMBINE, m, IN(y, logits));
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
    sm_program_dimension *s = b->dim;
    bool latent = kind->attention == SM_ATTENTION_MLA;
    bool absorbed = b->serving && b->rules.absorbed;
    s[D_(K)].size = latent ? (absorbed ? 1 : kind->N) : kind->K > 0 ? kind->K : kind->N;
    s[D_(G)].size = (double)kind->N / s[D_(K)].size;
    s[D_(H)].size = latent ? kind->nope_H + kind->rope_H : kind->H;
    s[D_(L)].size = latent ? kind->kv_rank + kind->rope_H : 0;
    s[D_(J)].size = kind->V_head > 0 ? kind->V_head : kind->H;
    s[D_(Q)].size = kind->q_rank;
    s[D_(R)].size = kind->kv_rank;
    s[D_(P)].size = kind->nope_H;
    s[D_(Y)].size = kind->rope_H;
    s[D_(F)].size = (double)kind->F + (double)kind->E_shared * kind->F_shared;
    s[D_(E)].size = kind->E;
    s[D_(X)].size =
        kind->E +
        (kind->shared_gate ? 1 : 0); /* the gate of the shared experts is one more column */
    s[D_(I)].size = kind->F_expert;
    s[D_(C)].size = kind->E > 0 ? T * kind->k_top / kind->E : 0;
    b->top_k = kind->k_top;
    b->takes[D_(K)] =
        (sm_axes)(latent && b->serving ? absorbed ? 0 : SM_AXES_TENSOR : SM_BIT(SM_AXIS_TENSOR));
    b->takes[D_(G)] = (sm_axes)(absorbed ? SM_AXES_TENSOR : SM_BIT(SM_AXIS_TENSOR_Q));
}

static int add_experts(sm_program *b, int dense, int routed) {
    if (dense < 0) return routed;
    if (b->serving) leave_partial(b, dense);
    if (b->serving) leave_partial(b, routed);
    return residual(b, "moe_add", dense, routed);
}

static void build_layer(const sm_model *model, const sm_layer_kind *kind, double T, sm_program *b) {
    layer_sizes(b, kind, T);
    double keys = b->serving ? 1 : sm_layer_keys(kind, T, model->causal);
    int x = b->input = program_activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    int xn = norm(b, "attn_norm", x, 0);
    int o = kind->attention == SM_ATTENTION_MLA ? attention_mla(b, kind, xn, keys)
                                                : attention_gqa(b, kind, xn, keys);
    int y = program_activation(b, "attn_out", DIMS(D_(B), D_(T), D_(D)));
    program_einsum(b, "o_proj", y, o, program_weight(b, "W_o", DIMS(D_(K), D_(G), D_(J), D_(D))));
    if (kind->norms >= 4) y = norm(b, "attn_post_norm", y, 0);
    int mid = kind->parallel ? x : residual(b, "attn_add", x, y);
    int mn = kind->parallel ? xn : norm(b, "mlp_norm", mid, 0);
    int m = -1;
    if (b->dim[D_(F)].size > 0) m = mlp(b, kind, mn);
    if (kind->E > 0) m = add_experts(b, m, moe(b, kind, mn));
    if (kind->norms >= 4) m = norm(b, "mlp_post_norm", m, 0);
    if (kind->parallel) {
        bool joined = b->serving && kind->norms < 4;
        if (joined) leave_partial(b, y);
        if (joined) leave_partial(b, m);
        m = residual(b, "branch_add", y, m);
    }
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
    int table = program_weight(b, "W_embed", DIMS(D_(V), width));
    int x = program_activation(b, projected(model) ? "x_low" : "x", DIMS(D_(B), D_(T), width));
    sm_op *op = program_op(b, "embed", SM_OP_GATHER, x, IN(ids, table));
    op->function = SM_FUNCTION_LOOKUP;
    op->reads = 1;
    b->tensor[table].elements = sm_model_params(model).embedding;
    b->input = -1;
    b->output = x;
    if (!projected(model)) return;
    b->output = program_activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    program_einsum(b, "embed_proj", b->output, x, program_weight(b, "W_in", DIMS(D_(Q), D_(D))));
}

static void build_head(const sm_model *model, sm_program *b) {
    int x = b->input = program_activation(b, "x", DIMS(D_(B), D_(T), D_(D)));
    int xn = norm(b, "final_norm", x, outside_vectors(model));
    sm_params p = sm_model_params(model);
    if (projected(model)) {
        int low = program_activation(b, "x_low", DIMS(D_(B), D_(T), D_(Q)));
        program_einsum(b, "head_proj", low, xn, program_weight(b, "W_out", DIMS(D_(D), D_(Q))));
        xn = low;
    }
    int logits = program_tensor(b, "logits", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T), D_(V)));
    int w = program_weight(b, "W_head", DIMS(table_dim(model), D_(V)));
    if (p.unembedding > 0) b->tensor[w].elements = p.unembedding;
    program_einsum(b, "lm_head", logits, xn, w);
    b->output = -1;
    if (b->serving) {
        /* Softmax and a draw from it, for each position given. */
        int token = program_tensor(b, "token", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T)));
        sm_op *op = program_vector(b, "sample", SM_FUNCTION_SAMPLE, token, IN(logits));
        op->flops_per_element = 5 * b->dim[D_(V)].size;
        return;
    }
    int loss = program_tensor(b, "loss", SM_ROLE_ACTIVATION, FP32, DIMS(D_(B), D_(T)));
    sm_op *op = program_vector(b, "loss", SM_FUNCTION_LOSS, loss, IN(logits));
    op->reads = 1;
    op->flops_per_element = 8 * model->V;
}

static void begin_dimensions(sm_program *program) {
    static const sm_program_dimension table[] = {
#define X(id, role) {#id, SM_DIMENSION_##role, 0},
        PROGRAM_DIMENSIONS(X)
#undef X
    };
    program->dims = (int)(sizeof table / sizeof *table);
    memcpy(program->dim, table, sizeof table);
    for (int d = 0; d < program->dims; d++) program->of_role[table[d].role] |= 1ull << d;
    program->dim[D_(B)].size = 1;
    program_settle_takes(program);
}

static sm_status build(const sm_model *model, sm_piece piece, int kind, double T,
                       sm_program *program, sm_error *err) {
    begin_dimensions(program);
    program->dim[D_(T)].size = program->dim[D_(S)].size = T;
    program->dim[D_(D)].size = model->D;
    program->dim[D_(V)].size = model->V;
    program->dim[D_(Q)].size = projected(model) ? model->embed_D : 0; /* layers set their own */
    const char *name = piece == SM_PIECE_LAYER       ? model->kind[kind].name
                       : piece == SM_PIECE_EMBEDDING ? "embedding"
                                                     : "head";
    snprintf(program->name, sizeof program->name, "%s", name);
    if (piece == SM_PIECE_LAYER) build_layer(model, &model->kind[kind], T, program);
    else if (piece == SM_PIECE_EMBEDDING) build_embedding(model, program);
    else build_head(model, program);
    if (program->ops > SM_MAX_OPS)
        return sm_fail(err, SM_INTERNAL, "a layer of this model has more than %d ops", SM_MAX_OPS);
    for (int i = 0; i < program->ops; i++) {
        sm_op *op = &program->op[i];
        const sm_tensor *q = &program->tensor[op->in[0]], *o = &program->tensor[op->out];
        op->query_size = program->dim[q->dim[q->rank - 1]].size;
        op->value_size = program->dim[o->dim[o->rank - 1]].size;
        program->tensor[op->out].kept = program->tensor[op->out].role == SM_ROLE_CACHE;
    }
    for (int i = 0; i < program->tensors; i++) {
        sm_tensor *t = &program->tensor[i];
        t->kept = t->role == SM_ROLE_CACHE && t->producer >= 0;
    }
    program_settle_loss(program);
    program_fit_software(program);
    return SM_OK;
}

sm_status sm_program_build(const sm_model *model, sm_piece piece, int kind, double T,
                           const sm_rules *rules, sm_program *program, sm_error *err) {
    memset(program, 0, sizeof *program);
    program->rules = *rules;
    return build(model, piece, kind, T, program, err);
}

sm_status sm_program_build_serving(const sm_model *model, sm_piece piece, int kind,
                                   const sm_rules *rules, sm_program *program, sm_error *err) {
    memset(program, 0, sizeof *program);
    program->rules = *rules;
    program->rules.unfused = false;
    program->serving = true;
    return build(model, piece, kind, 1, program, err);
}
