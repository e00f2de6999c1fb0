/* The KV cache: what a token leaves behind in every layer that keeps its own keys and values. */
#include "scalemodel/model.h"
#include <math.h>

/* GQA keeps K heads of H for the keys and V_head for the values (also when one projection feeds
 * both: keys are rotated and normed, values are not). MLA keeps the compressed KV and the shared
 * rotary key (arXiv 2405.04434, section 2.1.4). */
static double cached_values(const sm_layer_kind *k) {
    if (k->kv_shared) return 0;
    if (k->attention == SM_ATTENTION_MLA) return (double)k->kv_rank + k->rope_H;
    return (double)k->K * ((double)k->H + (k->V_head > 0 ? k->V_head : k->H));
}

static int caching_layers(const sm_model *m) {
    return m->kv_shared_layers < m->L ? m->L - m->kv_shared_layers : 0;
}

double sm_model_kv_bytes_per_token(const sm_model *model, sm_dtype kv) {
    double values = 0;
    for (int i = 0; i < caching_layers(model); i++)
        values += cached_values(&model->kind[model->layer[i]]);
    return values * sm_dtype_bytes(kv);
}

double sm_model_kv_bytes(const sm_model *model, double T, sm_dtype kv) {
    double values = 0;
    for (int i = 0; i < caching_layers(model); i++) {
        const sm_layer_kind *k = &model->kind[model->layer[i]];
        double reach = k->chunk > 0 ? k->chunk : k->window; /* 0: the whole sequence */
        values += cached_values(k) * (reach > 0 ? fmin(reach, T) : T);
    }
    return values * sm_dtype_bytes(kv);
}
