/* Parameters, FLOPs and caches of a model, from the counts of its lines. */
#include <math.h>

#include "scalemodel/attention.h"
#include "scalemodel/model.h"

sm_params sm_model_params(const sm_model *m) {
    sm_params p = *sm_architecture_counts(m->architecture);
    if (m->active_omits_embedding) p.active -= p.embedding;
    return p;
}

double sm_layer_params(const sm_model *m, const sm_layer_kind *kind, bool active) {
    return sm_architecture_kind_params(m->architecture, m->lines_of[kind - m->kind], active);
}

double sm_layer_keys(const sm_layer_kind *kind, double T, bool causal) {
    return sm_keys_met(T, T, causal, kind->window, kind->chunk);
}

sm_flops sm_model_forward_flops(const sm_model *m, double T, bool causal) {
    sm_forward f;
    if (sm_architecture_forward(m->architecture, T, causal, &f, NULL))
        f = (sm_forward){NAN, NAN, NAN, NAN};
    return f;
}

double sm_model_train_flops(const sm_model *m, double T, bool causal) {
    return 3 * sm_model_forward_flops(m, T, causal).total;
}

double sm_layer_cache_bytes(const sm_layer_kind *kind, double T, sm_dtype kv) {
    double all = (kind->cached - kind->bounded) * T + kind->bounded * fmin(kind->reach, T);
    return all * sm_dtype_bytes(kv) + kind->cached_typed * T;
}

double sm_layer_state_bytes(const sm_layer_kind *kind, sm_dtype kv) {
    return kind->state + kind->source * sm_dtype_bytes(kv);
}

double sm_model_kv_bytes(const sm_model *m, double T, sm_dtype kv) {
    double bytes = 0;
    for (int i = 0; i < m->L; i++) bytes += sm_layer_cache_bytes(&m->kind[m->layer[i]], T, kv);
    return bytes;
}

double sm_model_state_bytes(const sm_model *m, sm_dtype kv) {
    double bytes = 0;
    for (int i = 0; i < m->L; i++) bytes += sm_layer_state_bytes(&m->kind[m->layer[i]], kv);
    return bytes;
}

double sm_model_kv_bytes_per_token(const sm_model *m, sm_dtype kv) {
    return sm_model_kv_bytes(m, 1, kv);
}
