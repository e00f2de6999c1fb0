/* The architecture a row of inference names, as a model of the product. */

#include "inference_parts.h"

enum { USUAL_VOCABULARY = 32000 };

static int padded(int n, int parts) {
    return n > 0 && parts > 1 ? (n + parts - 1) / parts * parts : n;
}

/* Engines fill heads and experts up to what the degrees divide: with heads of nothing, and with
 * copies of the experts asked for most. */
static void pad(sm_row_model *m, const sm_plan *plan) {
    bool alike = m->kv_heads == m->heads;
    bool apart =
        m->kv_heads > 0 && plan->tensor % m->kv_heads && m->kv_heads % plan->tensor && !alike;
    if (apart) m->kv_heads = padded(m->kv_heads, plan->tensor);
    m->heads = padded(padded(m->heads, plan->tensor), apart ? m->kv_heads : 1);
    if (alike) m->kv_heads = m->heads;
    m->d_ff = padded(m->d_ff, plan->tensor);
    m->d_ff_expert = padded(m->d_ff_expert, plan->expert_tensor ? plan->tensor : 1);
    m->experts = padded(m->experts, plan->expert * (plan->expert_tensor ? 1 : plan->tensor));
}

bool inference_model(const sm_inference_row *r, const inference_layout *layout, row_models *models,
                     const sm_model **model, const char **why) {
    row_shape s;
    *why = row_shape_of(&r->model, USUAL_VOCABULARY, &s);
    if (*why) return false;
    if (layout && !s.config) pad(&s.of, &layout->decode.plan);
    if (layout && !s.config && layout->apart) pad(&s.of, &layout->prefill.plan);
    return row_models_take(models, &s, model, why);
}
