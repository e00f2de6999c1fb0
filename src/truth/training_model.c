/* The architecture a training row names, as a model of the product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "truth_parts.h"

/* Megatron's GPT models pad their vocabulary to this when the source is silent. */
enum { GPT_VOCABULARY = 51200 };

static void attention_of(const sm_training_row *r, sm_layer_kind *k) {
    k->N = r->model.n_heads;
    k->K = r->model.n_kv_heads > 0 ? r->model.n_kv_heads : r->model.n_heads;
    k->H = r->model.d_head > 0 ? r->model.d_head : r->model.d_model / r->model.n_heads;
    k->V_head = k->H;
    k->norms = 2;
    if (!r->model.mla) return;
    k->attention = SM_ATTENTION_MLA;
    k->q_rank = r->model.q_rank;
    k->kv_rank = r->model.kv_rank;
    k->nope_H = r->model.qk_nope;
    k->rope_H = r->model.qk_rope;
    k->V_head = r->model.v_head;
    k->H = k->nope_H + k->rope_H;
    k->K = k->N;
}

static void dense_of(const sm_training_row *r, sm_layer_kind *k) {
    attention_of(r, k);
    snprintf(k->name, sizeof k->name, "dense");
    k->mlp = r->model.gated == SM_NO ? SM_MLP_PLAIN : SM_MLP_GATED;
    k->F = r->model.d_ff;
}

static void moe_of(const sm_training_row *r, sm_layer_kind *k) {
    dense_of(r, k);
    snprintf(k->name, sizeof k->name, "moe");
    k->F = 0;
    k->E = r->model.n_experts;
    k->k_top = r->model.experts_per_token;
    k->F_expert = r->model.d_ff_expert;
    k->E_shared = r->model.shared_experts;
    k->F_shared = r->model.shared_experts > 0 ? r->model.d_ff_expert : 0;
}

static int add_kind(sm_model *m, const sm_layer_kind *kind) {
    m->kind[m->kinds] = *kind;
    return m->kinds++;
}

/* A multi-token-prediction module: one more layer, its joining projection 2D -> D, and the head
 * once more, carried as width of the layer's dense part (same FLOPs). */
static void add_mtp(const sm_training_row *r, sm_model *m) {
    if (r->model.n_mtp_layers <= 0 || m->L + r->model.n_mtp_layers > SM_MAX_LAYERS) return;
    sm_layer_kind kind = m->kind[m->layer[m->L - 1]];
    int matrices = kind.mlp == SM_MLP_GATED ? 3 : 2;
    int more = (m->V + 2 * m->D) / matrices;
    snprintf(kind.name, sizeof kind.name, "mtp");
    kind.F += more - more % 128;
    int at = add_kind(m, &kind);
    for (int i = 0; i < r->model.n_mtp_layers; i++) m->layer[m->L++] = (uint8_t)at;
}

/* Interleaved local layers: all but every global_every-th. */
static void add_local(const sm_training_row *r, sm_model *m) {
    int window = r->model.window, chunk = r->model.chunk, period = r->model.global_every;
    if (!window && !chunk) return;
    int kinds = m->kinds;
    for (int k = 0; k < kinds && m->kinds < SM_MAX_LAYER_KINDS; k++) {
        sm_layer_kind local = m->kind[k];
        snprintf(local.name, sizeof local.name, "local %.16s", m->kind[k].name);
        local.window = window;
        local.chunk = chunk;
        add_kind(m, &local);
    }
    if (m->kinds != 2 * kinds) return;
    for (int l = 0; l < m->L; l++)
        if (period <= 0 || l % period != period - 1) m->layer[l] = (uint8_t)(m->layer[l] + kinds);
}

static const char *missing(const sm_training_row *r) {
    if (r->model.not_modelled && r->model.not_modelled[0]) return r->model.not_modelled;
    if (r->model.layers <= 0 || r->model.layers > SM_MAX_LAYERS) return "layers not stated";
    if (r->model.d_model <= 0) return "d_model not stated";
    if (r->model.n_heads <= 0) return "heads not stated";
    if (r->model.n_experts <= 0 && r->model.d_ff <= 0) return "d_ff not stated";
    if (r->model.n_experts > 0 && r->model.d_ff_expert <= 0) return "expert width not stated";
    if (r->model.mla && r->model.kv_rank <= 0) return "MLA ranks not stated";
    return NULL;
}

bool truth_model(const sm_training_row *r, sm_model *m, const char **why) {
    *why = missing(r);
    if (*why) return false;
    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "%s", r->model.name);
    m->D = r->model.d_model;
    m->L = r->model.layers;
    m->V = r->model.vocab > 0 ? r->model.vocab : GPT_VOCABULARY;
    /* GPT models of Megatron tie their embeddings; gated ones of the LLaMA line do not */
    m->tied = r->model.tied == SM_UNSTATED ? r->model.gated == SM_NO : (r->model.tied == SM_YES);
    m->norm = r->model.gated == SM_NO ? SM_NORM_LAYER : SM_NORM_RMS;
    m->norm_bias = m->norm == SM_NORM_LAYER;
    m->final_norm = m->causal = true;
    m->note = "";
    m->max_seq = r->seq_len >= 1 && r->seq_len <= 1e9 ? (int)r->seq_len : 1;
    sm_layer_kind dense = {0}, moe = {0};
    dense_of(r, &dense);
    bool all_dense = r->model.n_experts <= 0;
    int first = all_dense ? m->L : r->model.n_dense_layers, every = r->model.moe_every;
    bool alternate = !all_dense && every > 1;
    if (!all_dense) moe_of(r, &moe);
    int at_dense = first > 0 || alternate ? add_kind(m, &dense) : 0;
    int at_moe = all_dense ? 0 : add_kind(m, &moe);
    for (int l = 0; l < m->L; l++) {
        bool is_dense = all_dense || (alternate ? l % every != every - 1 : l < first);
        m->layer[l] = (uint8_t)(is_dense ? at_dense : at_moe);
    }
    add_local(r, m);
    add_mtp(r, m);
    sm_error err = {0};
    if (sm_model_check(m, &err) == SM_OK) return true;
    *why = "the architecture as stated is not consistent";
    return false;
}
