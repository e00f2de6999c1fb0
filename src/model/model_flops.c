/* FLOPs of a token: 2 per active matmul parameter, and the attention scores, which no parameter
 * counts. */
#include "scalemodel/model.h"
#include <math.h>

/* Sum over the queries 1..n of the keys before and including each: 1 + 2 + ... + n. */
static double triangle(double n) { return n * (n + 1) / 2; }

double sm_layer_keys(const sm_layer_kind *kind, double T, bool causal) {
    double reach = kind->chunk > 0 ? kind->chunk : kind->window > 0 ? kind->window : T;
    if (!(T > 0)) return 0;
    if (!causal) return fmin(reach, T);
    if (kind->chunk > 0) { /* a query sees its own chunk only; the last may be shorter */
        double whole = floor(T / reach);
        return (whole * triangle(reach) + triangle(T - whole * reach)) / T;
    }
    /* query i sees min(i, window) keys */
    return (T <= reach ? triangle(T) : triangle(reach) + (T - reach) * reach) / T;
}

/* Scores QK^T take 2 N H_qk per key, the weighted sum of values 2 N H_v. */
static double attention_flops_per_key(const sm_layer_kind *k) {
    bool mla = k->attention == SM_ATTENTION_MLA;
    double qk = mla ? (double)k->nope_H + k->rope_H : k->H;
    double v = k->V_head > 0 ? k->V_head : k->H;
    return 2.0 * k->N * (qk + v);
}

sm_flops sm_model_forward_flops(const sm_model *model, double T, bool causal) {
    sm_flops f = {0};
    double per_kind[SM_MAX_LAYER_KINDS] = {0};
    for (int i = 0; i < model->kinds; i++)
        per_kind[i] =
            attention_flops_per_key(&model->kind[i]) * sm_layer_keys(&model->kind[i], T, causal);
    for (int i = 0; i < model->L; i++) f.attention += per_kind[model->layer[i]];
    f.matmul = 2 * sm_model_params(model).matmul_active;
    f.total = f.matmul + f.attention;
    return f;
}

double sm_model_train_flops(const sm_model *model, double T, bool causal) {
    return 3 * sm_model_forward_flops(model, T, causal).total;
}
