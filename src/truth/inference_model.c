/* The architecture a row of inference names, as a model of the product. */
#include <stdio.h>
#include <string.h>

#include "inference_parts.h"

enum { USUAL_VOCABULARY = 32000 };

static void attention_of(const sm_inference_row *r, sm_layer_kind *k) {
    k->N = r->model.heads;
    k->K = r->model.kv_heads > 0 ? r->model.kv_heads : r->model.heads;
    k->H = r->model.d_head > 0 ? r->model.d_head : r->model.d_model / r->model.heads;
    k->V_head = k->H;
    k->norms = 2;
    k->parallel = r->model.parallel_block == SM_YES;
    if (r->model.kv_lora <= 0) return;
    k->attention = SM_ATTENTION_MLA;
    k->q_rank = r->model.q_lora;
    k->kv_rank = r->model.kv_lora;
    k->nope_H = r->model.nope_dim;
    k->rope_H = r->model.rope_dim;
    k->V_head = r->model.v_dim;
    k->H = k->nope_H + k->rope_H;
    k->K = k->N;
}

static void dense_of(const sm_inference_row *r, sm_layer_kind *k) {
    attention_of(r, k);
    snprintf(k->name, sizeof k->name, "dense");
    k->mlp = r->model.gated_mlp == SM_NO ? SM_MLP_PLAIN : SM_MLP_GATED;
    k->F = r->model.d_ff_dense_layers > 0 ? r->model.d_ff_dense_layers : r->model.d_ff;
}

static void moe_of(const sm_inference_row *r, sm_layer_kind *k) {
    dense_of(r, k);
    snprintf(k->name, sizeof k->name, "moe");
    k->F = 0;
    k->E = r->model.experts;
    k->k_top = r->model.top_k;
    k->F_expert = r->model.d_ff_expert;
    k->E_shared = r->model.shared_experts;
    k->F_shared = r->model.shared_experts > 0 ? r->model.d_ff_expert : 0;
}

static const char *missing(const sm_inference_row *r) {
    if (r->model.layers <= 0) return "layers not stated";
    if (r->model.layers > SM_MAX_LAYERS) return "more layers than a model can have";
    if (r->model.d_model <= 0) return "d_model not stated";
    if (r->model.heads <= 0) return "heads not stated";
    if (r->model.experts <= 0 && r->model.d_ff <= 0) return "d_ff not stated";
    if (r->model.experts > 0 && r->model.d_ff_expert <= 0) return "expert width not stated";
    if (r->model.experts > 0 && r->model.top_k <= 0) return "experts per token not stated";
    if (r->model.kv_lora > 0 && (r->model.nope_dim <= 0 || r->model.v_dim <= 0))
        return "MLA head sizes not stated";
    return NULL;
}

static bool is_dense(const sm_inference_row *r, int layer) {
    if (r->model.experts <= 0 || layer < r->model.first_dense_layers) return true;
    int step = r->model.moe_layer_step;
    return step > 1 && (layer + 1) % step != 0;
}

/* Layers whose attention is local lie evenly between the others: every second of gpt-oss. A layer
 * of linear attention keeps a state of H x H for each head, as many numbers as H cached keys. */
static bool is_local(const sm_inference_row *r, int layer) {
    int local = r->model.sliding_layers + r->model.linear_layers,
        all = local + r->model.full_layers;
    if (local <= 0 || all <= 0) return false;
    return (layer + 1) * (long)local / all > layer * (long)local / all;
}

static int kind_at(sm_model *m, const sm_layer_kind *like) {
    for (int i = 0; i < m->kinds; i++) {
        const sm_layer_kind *k = &m->kind[i];
        if (!strcmp(k->name, like->name) && k->window == like->window && k->chunk == like->chunk)
            return i;
    }
    m->kind[m->kinds] = *like;
    return m->kinds++;
}

bool inference_model(const sm_inference_row *r, sm_model *m, const char **why) {
    *why = missing(r);
    if (*why) return false;
    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "%s", r->model.name);
    m->D = r->model.d_model;
    m->L = r->model.layers;
    m->V = r->model.vocab > 0 ? r->model.vocab : USUAL_VOCABULARY;
    m->tied = r->model.gated_mlp == SM_NO;
    m->norm = r->model.gated_mlp == SM_NO ? SM_NORM_LAYER : SM_NORM_RMS;
    m->norm_bias = m->norm == SM_NORM_LAYER;
    m->final_norm = m->causal = true;
    m->note = "";
    sm_layer_kind dense = {0}, moe = {0};
    dense_of(r, &dense);
    if (r->model.experts > 0) moe_of(r, &moe);
    int window = r->model.sliding_layers > 0 ? r->model.sliding_window : dense.H;
    for (int l = 0; l < m->L; l++) {
        sm_layer_kind kind = is_dense(r, l) ? dense : moe;
        kind.window = is_local(r, l) ? window : 0;
        bool within = r->model.chunk > 0 && r->model.global_every > 0 &&
                      l % r->model.global_every != r->model.global_every - 1;
        kind.chunk = within ? r->model.chunk : 0;
        m->layer[l] = (uint8_t)kind_at(m, &kind);
    }
    sm_error err = {0};
    if (sm_model_check(m, &err) == SM_OK) return true;
    *why = "the architecture as stated is not consistent";
    return false;
}

static int padded(int n, int parts) {
    return n > 0 && parts > 1 ? (n + parts - 1) / parts * parts : n;
}

void inference_pad(sm_model *m, const sm_plan *plan) {
    for (int i = 0; i < m->kinds; i++) {
        sm_layer_kind *k = &m->kind[i];
        bool alike = k->K == k->N, apart = k->K > 0 && plan->tensor % k->K && k->K % plan->tensor;
        if (apart && !alike) k->K = padded(k->K, plan->tensor);
        k->N = padded(padded(k->N, plan->tensor), apart && !alike ? k->K : 1);
        if (alike) k->K = k->N;
        k->F = padded(k->F, plan->tensor);
        k->F_expert = padded(k->F_expert, plan->expert_tensor ? plan->tensor : 1);
        k->E = padded(k->E, plan->expert * (plan->expert_tensor ? 1 : plan->tensor));
    }
}
