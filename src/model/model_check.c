/* Is a filled sm_model a Transformer that can be counted? Says which size is wrong. */
#include "scalemodel/model.h"
#include <math.h>

/* Above 2^53 a double no longer counts single parameters. */
static const double exact_limit = 9007199254740992.0;

static sm_status want(sm_error *err, const char *what, double value, double lowest) {
    if (value >= lowest) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "%s is %.0f; it must be at least %.0f", what, value, lowest);
}

/* One size of a model, what it is called, and the least it may be. */
typedef struct bound {
    const char *what;
    double value, lowest;
} bound;

static sm_status check_bounds(const bound *b, size_t n, sm_error *err) {
    for (size_t i = 0; i < n; i++) {
        sm_status status = want(err, b[i].what, b[i].value, b[i].lowest);
        if (status != SM_OK) return status;
    }
    return SM_OK;
}

static sm_status check_mla(const sm_layer_kind *k, sm_error *err) {
    bound b[] = {
        {"the KV rank of latent attention", k->kv_rank, 1},
        {"the query rank of latent attention", k->q_rank, 0},
        {"the rotary head size", k->rope_H, 0},
        {"the non-rotary head size", k->nope_H, 0},
        {"the head size", (double)k->rope_H + k->nope_H, 1},
        {"the head size of the values", k->V_head, 1},
    };
    return check_bounds(b, sizeof b / sizeof *b, err);
}

static sm_status check_gqa(const sm_layer_kind *k, sm_error *err) {
    bound b[] = {
        {"the number of KV heads", k->K, 1},
        {"the head size", k->H, 1},
        {"the head size of the values", k->V_head, 0},
    };
    sm_status status = check_bounds(b, sizeof b / sizeof *b, err);
    if (status == SM_OK && k->N % k->K != 0)
        return sm_fail(err, SM_BAD_INPUT, "%d query heads do not divide among %d KV heads", k->N,
                       k->K);
    return status;
}

static sm_status check_experts(const sm_layer_kind *k, sm_error *err) {
    bound b[] = {
        {"the number of experts", k->E, 1},
        {"the number of experts per token", k->k_top, 1},
        {"the width of an expert", k->F_expert, 1},
        {"the number of shared experts", k->E_shared, 0},
        {"the width of a shared expert", k->F_shared, k->E_shared > 0 ? 1 : 0},
    };
    sm_status status = check_bounds(b, sizeof b / sizeof *b, err);
    if (status == SM_OK && k->k_top > k->E)
        return sm_fail(err, SM_BAD_INPUT, "a token goes to %d experts, but a layer has %d",
                       k->k_top, k->E);
    return status;
}

static sm_status check_kind(const sm_layer_kind *k, sm_error *err) {
    bound b[] = {
        {"the number of heads", k->N, 1},
        {"the attention window", k->window, 0},
        {"the attention chunk", k->chunk, 0},
        {"the number of norms in a layer", k->norms, 0},
        {"the size of the query norm", k->qk_norm_q, 0},
        {"the size of the key norm", k->qk_norm_k, 0},
        {"the number of further parameters in a layer", (double)k->extra_params, 0},
    };
    sm_status status = check_bounds(b, sizeof b / sizeof *b, err);
    if (status == SM_OK)
        status = k->attention == SM_ATTENTION_MLA ? check_mla(k, err) : check_gqa(k, err);
    if (status == SM_OK) status = want(err, "the width of the MLP", k->F, k->E == 0 ? 1 : 0);
    return status == SM_OK && k->E != 0 ? check_experts(k, err) : status;
}

static sm_status check_whole(const sm_model *m, sm_error *err) {
    bound b[] = {
        {"the width of the model", m->D, 1},
        {"the number of layers", m->L, 1},
        {"the vocabulary", m->V, 1},
        {"the number of learned positions", m->positions, 0},
        {"the width of the position table", m->position_D, 0},
        {"the width of the embedding", m->embed_D, 0},
        {"the width of the embedding per layer", m->per_layer_D, 0},
        {"the rows of the embedding per layer", m->per_layer_V, 0},
        {"the trained context", m->max_seq, 0},
        {"the number of layers that share KV", m->kv_shared_layers, 0},
        {"the number of further parameters", (double)m->extra_params, 0},
        {"the number of kinds of layers", m->kinds, 1},
    };
    sm_status status = check_bounds(b, sizeof b / sizeof *b, err);
    if (status != SM_OK) return status;
    if (m->L > SM_MAX_LAYERS)
        return sm_fail(err, SM_BAD_INPUT, "%d layers are more than the %d supported", m->L,
                       SM_MAX_LAYERS);
    if (m->kinds > SM_MAX_LAYER_KINDS)
        return sm_fail(err, SM_BAD_INPUT, "%d kinds of layers are more than the %d supported",
                       m->kinds, SM_MAX_LAYER_KINDS);
    return SM_OK;
}

sm_status sm_model_check(const sm_model *model, sm_error *err) {
    sm_status status = check_whole(model, err);
    for (int i = 0; !status && i < model->kinds; i++) status = check_kind(&model->kind[i], err);
    if (status != SM_OK) return status;
    for (int i = 0; i < model->L; i++)
        if (model->layer[i] >= model->kinds)
            return sm_fail(err, SM_BAD_INPUT, "layer %d is of kind %d, but there are %d kinds", i,
                           model->layer[i], model->kinds);
    double total = sm_model_params(model).total;
    if (!isfinite(total) || total >= exact_limit)
        return sm_fail(err, SM_BAD_INPUT,
                       "the model would have %.3g parameters, more than the 2^53 counted exactly",
                       total);
    return SM_OK;
}
