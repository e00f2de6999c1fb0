/* Parameter counts, to the parameter. A count is a sum over tensors of the checkpoint; every tensor
 * falls into exactly one component, so the components add up to the total. Dimension letters follow
 * the book "How To Scale Your Model". */
#include "scalemodel/model.h"

#include <assert.h>

/* What one layer holds. matmul: the part that multiplies every token (2 FLOPs each). */
typedef struct layer_count {
    double attention, mlp, experts, router, norm, other;
    double idle_experts; /* of experts: not chosen for a token */
    double matmul;
} layer_count;

static double head_v(const sm_layer_kind *k) { return k->V_head > 0 ? k->V_head : k->H; }

/* A norm over n channels: a scale, and for LayerNorm usually a shift. */
static double norm_params(const sm_model *m, double n) {
    if (m->norm == SM_NORM_LAYER_NO_AFFINE) return 0;
    return m->norm == SM_NORM_LAYER && m->norm_bias ? 2 * n : n;
}

/* Q, K, V and O of grouped-query attention: D(N+K)H + DKV + NVD. A shared K and V projection is
 * there, and runs, once. */
static void count_gqa(const sm_model *m, const sm_layer_kind *k, layer_count *c) {
    double D = m->D, q = (double)k->N * k->H, o = k->N * head_v(k);
    double kk = k->kv_shared ? 0 : (double)k->K * k->H;
    double v = k->kv_shared || k->k_equals_v ? 0 : k->K * head_v(k);
    double weights = D * (q + kk + v + o);
    c->attention = weights + (k->qkv_bias ? q + kk + v : 0) + (k->o_bias ? D : 0);
    c->matmul += weights;
}

/* Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): Q and KV pass through
 * low ranks, each with an RMS norm; the rotary part of K is one head shared by all. The biases, if
 * any, sit on the down projections and on O. */
static void count_mla(const sm_model *m, const sm_layer_kind *k, layer_count *c) {
    double D = m->D, N = k->N, q_rank = k->q_rank, kv_rank = k->kv_rank;
    double qk = (double)k->nope_H + k->rope_H, down = kv_rank + k->rope_H;
    double q = q_rank > 0 ? D * q_rank + q_rank * N * qk : D * N * qk;
    double kv = D * down + kv_rank * N * ((double)k->nope_H + k->V_head);
    double weights = q + kv + N * k->V_head * D;
    c->attention = weights + (k->qkv_bias ? q_rank + down : 0) + (k->o_bias ? D : 0);
    c->norm += q_rank + kv_rank;
    c->matmul += weights;
}

/* A gated MLP has three matrices, a plain one two. */
static double mlp_weights(const sm_layer_kind *k, double D, double F) {
    return (k->mlp == SM_MLP_GATED ? 3 : 2) * D * F;
}

static double mlp_biases(const sm_layer_kind *k, double D, double F) {
    return (k->mlp == SM_MLP_GATED ? 2 : 1) * F + D;
}

static void count_experts(const sm_model *m, const sm_layer_kind *k, layer_count *c) {
    if (k->E <= 0) return;
    double D = m->D, E = k->E, one = mlp_weights(k, D, k->F_expert);
    double with_bias = one + (k->expert_bias ? mlp_biases(k, D, k->F_expert) : 0);
    double shared = k->E_shared * mlp_weights(k, D, k->F_shared);
    double gate = k->shared_gate ? D : 0;
    c->experts = E * with_bias + shared;
    c->idle_experts = (E - k->k_top) * with_bias;
    c->router = D * E + (k->router_bias ? E : 0) + gate;
    c->matmul += k->k_top * one + shared + D * E + gate;
}

static layer_count count_layer(const sm_model *m, const sm_layer_kind *k) {
    layer_count c = {0};
    c.norm = k->norms * norm_params(m, m->D);
    c.other = (double)k->extra_params;
    /* Gemma 4 E2B and E4B feed a second embedding of the token, per_layer_D wide, into every layer:
     * a gate down to it, a projection back up and a norm. */
    double weights = 2.0 * m->D * m->per_layer_D;
    c.other += weights;
    c.matmul += weights;
    c.norm += m->per_layer_D > 0 ? norm_params(m, m->D) : 0;
    if (k->attention == SM_ATTENTION_MLA) count_mla(m, k, &c);
    else count_gqa(m, k, &c);
    c.attention += k->has_sinks ? k->N : 0;
    c.norm += (double)k->qk_norm_q + k->qk_norm_k;
    double mlp = k->F > 0 ? mlp_weights(k, m->D, k->F) : 0;
    c.mlp = mlp + (k->F > 0 && k->mlp_bias ? mlp_biases(k, m->D, k->F) : 0);
    c.matmul += mlp;
    count_experts(m, k, &c);
    return c;
}

double sm_layer_params(const sm_model *model, const sm_layer_kind *kind, bool active) {
    layer_count c = count_layer(model, kind);
    double all = c.attention + c.mlp + c.experts + c.router + c.norm + c.other;
    return active ? all - c.idle_experts : all;
}

/* Its table has one row of L x per_layer_D for each token; a projection of the first embedding is
 * added to it, under a norm. */
static void count_layer_embedding(const sm_model *m, sm_params *p) {
    double width = (double)m->L * m->per_layer_D;
    p->embedding += m->per_layer_V * width;
    p->other += m->D * width;
    p->matmul_active += m->D * width;
    p->norm += norm_params(m, m->per_layer_D);
}

sm_params sm_model_params(const sm_model *model) {
    sm_params p = {0};
    int layers[SM_MAX_LAYER_KINDS] = {0};
    /* Embeddings, the norms outside the layers, and the projections between a narrow embedding and
     * the width. */
    double D = model->D, V = model->V, width = model->embed_D > 0 ? model->embed_D : D;
    double projections = model->embed_D > 0 && model->embed_D != model->D ? 2 * width * D : 0;
    p.embedding = V * width +
                  (double)model->positions * (model->position_D > 0 ? model->position_D : model->D);
    p.unembedding = (model->tied ? 0 : V * width) + (model->lm_head_bias ? V : 0);
    p.norm = ((model->embed_norm ? 1 : 0) + (model->final_norm ? 1 : 0)) * norm_params(model, D);
    p.other = projections + (double)model->extra_params;
    p.matmul_active = V * width + projections;
    count_layer_embedding(model, &p);
    assert(model->L <= SM_MAX_LAYERS && model->kinds <= SM_MAX_LAYER_KINDS);
    for (int i = 0; i < model->L; i++) layers[model->layer[i]]++;
    for (int i = 0; i < model->kinds; i++) {
        layer_count c = count_layer(model, &model->kind[i]);
        double n = layers[i];
        p.attention += n * c.attention;
        p.mlp += n * c.mlp;
        p.experts += n * c.experts;
        p.router += n * c.router;
        p.norm += n * c.norm;
        p.other += n * c.other;
        p.active -= n * c.idle_experts;
        p.matmul_active += n * c.matmul;
    }
    p.total =
        p.embedding + p.unembedding + p.attention + p.mlp + p.experts + p.router + p.norm + p.other;
    p.active += p.total - (model->active_omits_embedding ? p.embedding : 0);
    return p;
}
