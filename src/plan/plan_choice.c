/* The choices that a search tries on given degrees: every combination of the values of keys that
 * shard the program, of those that mean something there. A plan stands once: what means nothing has
 * its idle value. */
#include "plan_row.h"

/* Chips of serving that hold no KV heads of their own: those of fsdp under stationary weights, of
 * tensor beyond the heads, and with latent attention all of tensor. */
bool plan_has_spare_chips(const sm_plan *plan, const sm_model *model) {
    sm_degrees d;
    if (plan->fsdp > 1 && !plan->gathered) return true;
    for (int k = 0; k < model->kinds; k++)
        if (model->kind[k].attention == SM_ATTENTION_MLA) return plan->tensor > 1;
    sm_degrees_set(&d, plan, model);
    return d.axis[SM_AXIS_TENSOR_Q] * d.axis[SM_AXIS_TENSOR_W] > 1;
}

typedef struct walk {
    const sm_plan *fixed;
    const sm_model *model;
    sm_plan_visit visit;
    void *context;
} walk;

/* From this key on. A switch tries its usual value first, so that of equal plans that one stays. */
static bool each_from(const walk *w, sm_plan *plan, int key) {
    while (key < SM_PLAN_KEY_COUNT && !(plan_row_of((sm_plan_key)key)->searched >> plan->use & 1))
        key++;
    if (key == SM_PLAN_KEY_COUNT) return w->visit(w->context, plan);
    const plan_row *row = plan_row_of((sm_plan_key)key);
    bool given = sm_plan_given(w->fixed, (sm_plan_key)key);
    bool means = plan_spreads(plan, row->matters) &&
                 (!row->experts || sm_model_has_experts(w->model)) &&
                 (!row->means || row->means(plan, w->model));
    if (given || !means) {
        plan_set_value(plan, row,
                       given && (means || row->means) ? plan_value(w->fixed, row) : row->idle);
        return each_from(w, plan, key + 1);
    }
    for (int i = 0; i < row->key.words.n; i++) {
        plan_set_value(plan, row, row->is_switch ? row->key.usual[plan->use] ^ i : i);
        if (!each_from(w, plan, key + 1)) return false;
    }
    return true;
}

bool sm_plan_each_choice(sm_plan *plan, const sm_plan *fixed, const sm_model *model,
                         sm_plan_visit visit, void *context) {
    walk w = {fixed, model, visit, context};
    return each_from(&w, plan, 0);
}
