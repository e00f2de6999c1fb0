/* From a plan to degrees, rules, chunks of layers and the order in which stages work. */
#include "run_train.h"

static sm_train_optimizer optimizer_of(const sm_plan *p) {
    switch (p->optimizer) {
    case SM_OPTIMIZER_SGD: return SM_TRAIN_SGD;
    case SM_OPTIMIZER_ADAM_BF16:
    case SM_OPTIMIZER_ADAM_PURE_BF16: return SM_TRAIN_ADAM_BF16;
    case SM_OPTIMIZER_ADAM_8BIT: return SM_TRAIN_ADAM_8BIT;
    default: return SM_TRAIN_ADAM;
    }
}

void train_degrees_of_plan(const sm_plan *p, sm_train_setup *s) {
    sm_degrees d;
    uint64_t code;
    sm_degrees_set(&d, p, s->model);
    for (int a = 0; a < SM_AXIS_COUNT; a++) s->degree[a] = (int)(d.axis[a] + 0.5);
    s->microbatch = p->microbatch;
    s->zero = sm_plan_shards_weights(p) ? 3 : p->zero;
    s->state_copies = p->state_copies;
    s->recompute = p->recompute;
    s->regather = p->regather;
    s->rules = sm_plan_rules(p, s->model, false, &code);
    s->rules.attention = SM_ATTENTION_FUSED; /* the runtime has one kernel of each */
    s->rules.norms_apart = false;
}

sm_status train_stages_of_plan(const sm_plan *plan, sm_arena *arena, sm_train_setup *s,
                               sm_error *err) {
    sm_train_line line;
    sm_status status =
        sm_train_line_of(plan, s->model->L, sm_train_setup_microbatches(s), arena, &line, err);
    if (status) return status;
    s->stages = line.stages;
    s->chunks = line.chunks;
    s->copies = line.copies;
    s->chunk = line.chunk;
    s->actions = line.actions;
    s->action = line.action;
    return SM_OK;
}

sm_status train_setup_of_plan(sm_plan *plan, sm_arena *arena, sm_train_setup *setup,
                              sm_error *err) {
    sm_status status = sm_train_plan_as_run(setup->model, plan, err);
    if (status) return status;
    sm_plan_settle(plan, setup->model);
    train_degrees_of_plan(plan, setup);
    setup->stored = plan->dtype == SM_BF16 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32;
    setup->gradients = plan->gradient == SM_BF16 ? SM_ELEMENT_BF16 : SM_ELEMENT_F32;
    setup->rounded = plan->optimizer == SM_OPTIMIZER_ADAM_NO_MASTER ||
                     plan->optimizer == SM_OPTIMIZER_ADAM_PURE_BF16 ||
                     plan->optimizer == SM_OPTIMIZER_SGD;
    setup->optimizer = optimizer_of(plan);
    setup->offload_optimizer =
        plan->offload == SM_OFFLOAD_OPTIMIZER || plan->offload == SM_OFFLOAD_BOTH;
    setup->offload_activations =
        plan->offload == SM_OFFLOAD_ACTIVATIONS || plan->offload == SM_OFFLOAD_BOTH;
    setup->recompute_ops = plan->recompute_ops[0] ? plan->recompute_ops : NULL;
    status = sm_train_setup_check(setup, err);
    if (status || plan->pipeline < 2) return status;
    status = train_stages_of_plan(plan, arena, setup, err);
    return status ? status : sm_train_setup_check(setup, err);
}
