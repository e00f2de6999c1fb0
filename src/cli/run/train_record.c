/* A run of training as a row of measurements: the model and the plan, so that the row is priced
 * again as it was. */
#include <string.h>

#include "run_train.h"

/* Layers of a row are dense at first and have experts from then on. */
static bool fits_a_row(const sm_model *m) {
    int dense = 0;
    while (dense < m->L && m->kind[m->layer[dense]].E == 0) dense++;
    for (int l = dense; l < m->L; l++)
        if (m->kind[m->layer[l]].E == 0) return false;
    for (int l = 1; l < m->L; l++)
        if (l != dense && m->layer[l] != m->layer[l - 1]) return false;
    return true;
}

static void tell_model(const sm_model *m, sm_training_row *t) {
    const sm_layer_kind *first = &m->kind[m->layer[0]], *last = &m->kind[m->layer[m->L - 1]];
    t->model.name = m->name;
    t->model.layers = m->L;
    t->model.d_model = m->D;
    t->model.vocab = m->V;
    t->model.n_heads = last->N;
    t->model.n_kv_heads = last->K;
    t->model.d_head = last->H;
    t->model.gated = SM_YES;
    t->model.tied = m->tied ? SM_YES : SM_NO;
    if (first->E == 0) t->model.d_ff = first->F;
    if (last->E == 0) return;
    t->model.n_experts = last->E;
    t->model.experts_per_token = last->k_top;
    t->model.d_ff_expert = last->F_expert;
    t->model.shared_experts = last->E_shared;
    while (m->kind[m->layer[t->model.n_dense_layers]].E == 0) t->model.n_dense_layers++;
}

sm_status train_record(sm_report *r, const train_run *q, double step_s, sm_error *err) {
    const run_train_values *given = q->call->values;
    char plan[512];
    if (!given->record) return SM_OK;
    if (!fits_a_row(&q->model))
        return sm_fail(err, SM_BAD_INPUT, "%s has layers that a row of measurements cannot tell",
                       q->model.name);
    sm_truth_row row = record_begin(SM_TRUTH_TRAINING, q->system.chip.name, step_s);
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    tell_model(&q->model, &row.of.training);
    const sm_plan *p = &q->plan;
    row.of.training.tp = p->tensor;
    row.of.training.cp = p->context;
    row.of.training.pp = p->pipeline;
    row.of.training.vp = p->virtual_stages;
    row.of.training.ep = p->expert;
    row.of.training.dp = p->data * p->fsdp * p->expert;
    row.of.training.sp = p->seq ? SM_YES : SM_NO;
    row.of.training.fsdp = p->fsdp > 1 ? SM_YES : SM_NO;
    row.of.training.zero_stage = p->fsdp > 1 ? 3 : p->zero;
    row.of.training.recompute = p->recompute_ops[0] ? "other" : sm_recompute_names[p->recompute];
    row.of.training.schedule = p->pipeline > 1 ? sm_schedule_names[p->schedule] : "";
    row.of.training.microbatch = p->microbatch;
    row.of.training.task = "pretrain";
    row.of.training.chips = row.of.training.devices = row.of.training.chips_per_node =
        sm_train_setup_ranks(&q->setup);
    row.of.training.precision = row.of.training.precision_class = "fp32";
    row.of.training.seq_len = q->setup.tokens;
    row.of.training.global_batch_sequences = q->setup.sequences;
    row.of.training.step_time_s = step_s;
    row.of.training.peak_memory_bytes = q->memory.most.total;
    row.of.training.plan = plan;
    row.of.training.notes = sm_arena_printf(r->arena, "on %s, median of %d steps", ranks_backend(),
                                            q->end - q->first > 1 ? q->end - q->first - 1 : 1);
    if (!row.of.training.notes) return sm_fail_memory(err);
    return record_rows(r, given->record, &row, 1, err);
}
