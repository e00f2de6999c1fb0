/* The architecture a row of inference names, as a model of the product. */

#include "inference_parts.h"

enum { USUAL_VOCABULARY = 32000 };

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

static row_shape shape_of(const sm_inference_row *r) {
    bool latent = r->model.kv_lora > 0, sparse = r->model.experts > 0;
    bool gated = r->model.gated_mlp != SM_NO;
    row_shape s = {
        .name = r->model.name,
        .D = r->model.d_model,
        .L = r->model.layers,
        .V = or_else(r->model.vocab, USUAL_VOCABULARY),
        .N = r->model.heads,
        .K = or_else(r->model.kv_heads, r->model.heads),
        .H = or_else(r->model.d_head, r->model.d_model / r->model.heads),
        .F = or_else(r->model.d_ff_dense_layers, r->model.d_ff),
        .E = r->model.experts,
        .k_top = sparse ? r->model.top_k : 0,
        .F_expert = sparse ? r->model.d_ff_expert : 0,
        .E_shared = sparse ? r->model.shared_experts : 0,
        .q_rank = latent ? r->model.q_lora : 0,
        .kv_rank = latent ? r->model.kv_lora : 0,
        .nope_H = latent ? r->model.nope_dim : 0,
        .rope_H = latent ? r->model.rope_dim : 0,
        .V_head = latent ? r->model.v_dim : 0,
        .gated = gated,
        .tied = !gated,
        .parallel = r->model.parallel_block == SM_YES,
    };
    if (latent) s.K = s.N;
    if (s.E_shared > 0) s.F_shared = s.F_expert;
    return s;
}

static void layers_of(const sm_inference_row *r, row_shape *s) {
    int period = r->model.global_every, head = s->kv_rank > 0 ? s->nope_H + s->rope_H : s->H;
    bool chunked = r->model.chunk > 0 && period > 0, local = false;
    for (int l = 0; l < s->L; l++) {
        s->dense[l] = is_dense(r, l);
        s->local[l] = chunked ? l % period != period - 1 : is_local(r, l);
        local = local || s->local[l];
    }
    if (!local) return;
    if (chunked) s->chunk = r->model.chunk;
    else s->window = r->model.sliding_layers > 0 ? r->model.sliding_window : head;
}

static int padded(int n, int parts) {
    return n > 0 && parts > 1 ? (n + parts - 1) / parts * parts : n;
}

/* Engines fill heads and experts up to what the degrees divide: with heads of nothing, and with
 * copies of the experts asked for most. */
static void pad(row_shape *s, const sm_plan *plan) {
    bool alike = s->K == s->N, apart = s->K > 0 && plan->tensor % s->K && s->K % plan->tensor;
    if (apart && !alike) s->K = padded(s->K, plan->tensor);
    s->N = padded(padded(s->N, plan->tensor), apart && !alike ? s->K : 1);
    if (alike) s->K = s->N;
    s->F = padded(s->F, plan->tensor);
    s->F_expert = padded(s->F_expert, plan->expert_tensor ? plan->tensor : 1);
    s->E = padded(s->E, plan->expert * (plan->expert_tensor ? 1 : plan->tensor));
}

bool inference_model(const sm_inference_row *r, const inference_layout *layout, row_models *models,
                     const sm_model **model, const char **why) {
    row_shape named;
    if (r->model.layers <= 0 && row_model_named(r->model.name, &named))
        return row_models_take(models, &named, model, why);
    *why = missing(r);
    if (*why) return false;
    row_shape s = shape_of(r);
    layers_of(r, &s);
    if (layout) pad(&s, &layout->decode.plan);
    if (layout && layout->apart) pad(&s, &layout->prefill.plan);
    return row_models_take(models, &s, model, why);
}
