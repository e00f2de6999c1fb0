/* The architecture a training row names, as a model of the product. */

#include "truth_parts.h"

/* Megatron's GPT models pad their vocabulary to this when the source is silent. */
enum { GPT_VOCABULARY = 51200 };

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

/* Dense: the first n_dense_layers, or all but every moe_every-th. Local: all but every
 * global_every-th. */
static void layers_of(const sm_training_row *r, row_shape *s) {
    int every = r->model.moe_every, period = r->model.global_every;
    for (int l = 0; l < s->L; l++) {
        s->dense[l] = every > 1 ? l % every != every - 1 : l < r->model.n_dense_layers;
        s->local[l] = period <= 0 || l % period != period - 1;
    }
}

bool truth_model(const sm_training_row *r, row_models *models, const sm_model **model,
                 const char **why) {
    row_shape named;
    if (r->model.layers <= 0 && row_model_named(r->model.name, &named))
        return row_models_take(models, &named, model, why);
    *why = missing(r);
    if (*why) return false;
    bool gated = r->model.gated != SM_NO, latent = r->model.mla, sparse = r->model.n_experts > 0;
    row_shape s = {
        .name = r->model.name,
        .D = r->model.d_model,
        .L = r->model.layers,
        .V = or_else(r->model.vocab, GPT_VOCABULARY),
        .max_seq = r->seq_len >= 1 && r->seq_len <= 1e8 ? (int)r->seq_len : 1,
        .N = r->model.n_heads,
        .K = or_else(r->model.n_kv_heads, r->model.n_heads),
        .H = or_else(r->model.d_head, r->model.d_model / r->model.n_heads),
        .F = r->model.d_ff,
        .E = r->model.n_experts,
        .k_top = r->model.experts_per_token,
        .F_expert = sparse ? r->model.d_ff_expert : 0,
        .E_shared = sparse ? r->model.shared_experts : 0,
        .q_rank = latent ? r->model.q_rank : 0,
        .kv_rank = latent ? r->model.kv_rank : 0,
        .nope_H = latent ? r->model.qk_nope : 0,
        .rope_H = latent ? r->model.qk_rope : 0,
        .V_head = latent ? r->model.v_head : 0,
        .window = r->model.window,
        .chunk = r->model.chunk,
        .mtp = or_else(r->model.n_mtp_layers, 0),
        .gated = gated,
        /* GPT models of Megatron tie their embeddings; gated ones of the LLaMA line do not */
        .tied = r->model.tied == SM_UNSTATED ? !gated : r->model.tied == SM_YES,
    };
    layers_of(r, &s);
    return row_models_take(models, &s, model, why);
}
