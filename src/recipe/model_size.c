/* Sizes of a model as formulas call them. */

#include "framework.h"

/* Layers without experts. */
static int dense_layers(const sm_model *m) {
    int dense = 0;
    for (int l = 0; l < m->L && l < SM_MAX_LAYERS; l++) dense += m->kind[m->layer[l]].E == 0;
    return dense;
}

/* Width of the MLP of layers without experts; of those with experts only where there are none. */
static int dense_width(const sm_model *m, const sm_layer_kind *main) {
    for (int k = 0; k < m->kinds; k++)
        if (m->kind[k].F > 0) return m->kind[k].F;
    return main->F_expert;
}

static bool is_gated(const sm_model *m, const sm_layer_kind *main) {
    double up = 0;
    for (int l = 0; l < m->L && l < SM_MAX_LAYERS; l++) up += (double)m->D * m->kind[m->layer[l]].F;
    if (main->E > 0 || up <= 0) return true;
    return sm_model_params(m).mlp > 2.5 * up;
}

/* Of the layers whose queries see less than all keys, the most that one sees; 0: there are none. */
static int widest_window(const sm_model *m) {
    int most = 0;
    for (int k = 0; k < m->kinds; k++) {
        int seen = m->kind[k].window ? m->kind[k].window : m->kind[k].chunk;
        if (seen > most) most = seen;
    }
    return most;
}

/* A search asks it of every combination of degrees: what loops over layers is worked out where it
 * is asked alone. */
expression_value framework_model_size(const sm_model *m, const char *name) {
    /* The kind of layers that has most experts, and of several such that has attention; else the
     * first.
     */
    int main = 0;
    for (int k = 0; k < m->kinds; k++) {
        int more = m->kind[k].E - m->kind[main].E;
        if (more > 0 || (more == 0 && m->kind[k].N > 0 && m->kind[main].N == 0)) main = k;
    }
    const sm_layer_kind *k = &m->kind[main];
    const struct {
        const char *name;
        double value;
    } sizes[] = {{"layers", m->L},
                 {"heads", k->N},
                 {"kv_heads", k->kv_rank > 0 ? k->N : k->K},
                 {"hidden", m->D},
                 {"head_size", k->H},
                 {"value_size", k->V_head},
                 {"latent_rank", k->kv_rank},
                 {"rotary_size", k->rope_H},
                 {"vocabulary", m->V},
                 {"tied", m->tied},
                 {"experts", k->E},
                 {"expert_top", k->k_top},
                 {"expert_width", k->F_expert},
                 {"shared_experts", k->E_shared},
                 {"shared_width", k->F_shared}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(name, sizes[i].name) == 0) return value_number(sizes[i].value);
    if (strcmp(name, "mlp") == 0) return value_number(dense_width(m, k));
    if (strcmp(name, "dense_layers") == 0) return value_number(dense_layers(m));
    if (strcmp(name, "window") == 0) return value_number(widest_window(m));
    if (strcmp(name, "max_length") == 0 && m->max_seq > 0) return value_number(m->max_seq);
    if (strcmp(name, "gated") == 0) return value_number(is_gated(m, k));
    return (expression_value){.kind = VALUE_ABSENT};
}
