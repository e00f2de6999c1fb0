/* From a plan to degrees, rules, chunks of layers and the order in which stages work. */
#include "train_setup_of_plan.h"

#include <string.h>

/* All is single precision. A plan of bf16 is taken as that: it is the planner's default. */
static sm_status check_dtypes(const sm_plan *p, sm_error *err) {
    if (p->gradient != SM_FP32)
        return sm_fail(err, SM_BAD_INPUT,
                       "gradient=%s cannot be run: gradients are reduced in the single precision "
                       "that they are summed in; gradient=fp32 can",
                       sm_dtype_name(p->gradient));
    if (p->dtype != SM_BF16 && p->dtype != SM_FP32)
        return sm_fail(err, SM_BAD_INPUT,
                       "dtype=%s cannot be run: matmuls are of single precision; dtype=fp32 can",
                       sm_dtype_name(p->dtype));
    return SM_OK;
}

/* Weights are single precision and their own master copy, so that adam without one is adam. */
static sm_train_optimizer optimizer_of(const sm_plan *p) {
    switch (p->optimizer) {
    case SM_OPTIMIZER_SGD: return SM_TRAIN_SGD;
    case SM_OPTIMIZER_ADAM_BF16: return SM_TRAIN_ADAM_BF16;
    case SM_OPTIMIZER_ADAM_8BIT: return SM_TRAIN_ADAM_8BIT;
    default: return SM_TRAIN_ADAM;
    }
}

static int common_divisor(int a, int b) { return b ? common_divisor(b, a % b) : a; }

/* Heads of K and V take what divides them all, the query heads of each the rest. */
static int tensor_over_kv(const sm_model *m, int tensor) {
    for (int k = 0; k < m->kinds; k++) {
        int heads = m->kind[k].K > 0 ? m->kind[k].K : m->kind[k].N;
        tensor = common_divisor(tensor, heads);
    }
    return tensor;
}

void train_degrees_of_plan(const sm_plan *p, sm_train_setup *s) {
    int tensor = tensor_over_kv(s->model, p->tensor);
    s->degree[SM_AXIS_DATA] = p->data;
    s->degree[SM_AXIS_FSDP] = p->fsdp;
    s->degree[SM_AXIS_EXPERT] = p->expert;
    s->degree[SM_AXIS_CONTEXT] = p->context;
    s->degree[SM_AXIS_TENSOR] = tensor;
    s->degree[SM_AXIS_TENSOR_Q] = p->tensor / tensor;
    s->microbatch = p->microbatch;
    s->zero = p->fsdp > 1 ? 3 : p->zero;
    s->recompute = p->recompute;
    s->rules = (sm_rules){.seq = p->seq,
                          .expert_tensor = p->expert_tensor,
                          .context_by = p->context_by,
                          .weights_over_context = p->fsdp > 1};
}

/* ---- pipelines ---- */

/* As the planner deals layers out: equal shares, what is left over goes to the middle. */
static int layers_of_chunk(int layers, int chunks, int c) {
    int share = layers / chunks, more = layers % chunks;
    int turn = c == chunks - 1 ? chunks - 1 : c == 0 ? chunks - 2 : c - 1;
    return share + (turn < more ? 1 : 0);
}

/* dualpipe: the chunks once more, from the other end of the stages. */
static void mirror_chunks(sm_train_chunk *chunk, int chunks, int stages) {
    for (int c = 0; c < chunks; c++) {
        chunk[chunks + c] = chunk[c];
        chunk[chunks + c].stage = stages - 1 - chunk[c].stage;
    }
}

static sm_status deal_layers(const sm_plan *p, sm_arena *arena, sm_train_setup *s, sm_error *err) {
    bool dual = p->schedule == SM_SCHEDULE_DUALPIPE;
    int chunks = dual ? p->pipeline : p->pipeline * p->virtual_stages, first = 0;
    sm_train_chunk *chunk = sm_arena_array(arena, 2 * (size_t)chunks, sizeof *chunk);
    if (!chunk) return sm_fail_memory(err);
    for (int c = 0; c < chunks; c++) {
        int n = layers_of_chunk(s->model->L, chunks, c);
        if (n < 1)
            return sm_fail(err, SM_BAD_INPUT, "%d layers are too few for %d chunks of a pipeline",
                           s->model->L, chunks);
        chunk[c] = (sm_train_chunk){
            sm_schedule_stage(p->schedule, p->pipeline, p->virtual_stages, c), first, first + n};
        first += n;
    }
    if (dual) mirror_chunks(chunk, chunks, p->pipeline);
    s->stages = p->pipeline;
    s->copies = dual ? 2 : 1;
    s->chunks = chunks * s->copies;
    s->chunk = chunk;
    return SM_OK;
}

static sm_train_act act_of(sm_slot_kind kind) {
    switch (kind) {
    case SM_SLOT_FORWARD: return SM_TRAIN_FORWARD;
    case SM_SLOT_BACKWARD: return SM_TRAIN_BACKWARD;
    case SM_SLOT_BACKWARD_INPUT: return SM_TRAIN_BACKWARD_INPUT;
    default: return SM_TRAIN_BACKWARD_WEIGHT;
    }
}

/* Under dualpipe the later half of the microbatches passes the second copy of the model. */
static sm_train_action action_of(const sm_slot *slot, const sm_train_setup *s) {
    bool second = s->copies > 1 && slot->microbatch >= sm_train_setup_microbatches(s) / 2;
    int chunk = slot->chunk + (second ? s->chunks / 2 : 0);
    return (sm_train_action){act_of(slot->kind), chunk, slot->microbatch};
}

/* Slots come in the order of stages, then of time. */
static sm_status order_actions(const sm_slot *slot, size_t slots, sm_arena *arena,
                               sm_train_setup *s, sm_error *err) {
    size_t stages = (size_t)s->stages;
    sm_train_action *all = sm_arena_array(arena, slots, sizeof *all);
    const sm_train_action **of = sm_arena_array(arena, stages, sizeof *of);
    int *count = sm_arena_array(arena, stages, sizeof *count);
    if (!all || !of || !count) return sm_fail_memory(err);
    for (size_t i = slots; i-- > 0;) {
        all[i] = action_of(&slot[i], s);
        of[slot[i].stage] = &all[i];
        count[slot[i].stage]++;
    }
    s->actions = count;
    s->action = of;
    return SM_OK;
}

/* The order of ops is that of the simulated schedule with a backward twice as long as a forward. */
static sm_status order_stages(const sm_plan *p, sm_arena *arena, sm_train_setup *s, sm_error *err) {
    sm_chunk_time *time = sm_arena_array(arena, (size_t)s->chunks, sizeof *time);
    if (!time) return sm_fail_memory(err);
    for (int c = 0; c < s->chunks; c++) time[c] = (sm_chunk_time){1, 1, 1};
    int per_stage = s->chunks / p->pipeline;
    sm_pipeline line = {
        p->schedule, p->pipeline, per_stage, sm_train_setup_microbatches(s), time, 0};
    const char *why = "";
    if (!sm_schedule_possible(p->schedule, p->pipeline, per_stage, line.microbatches, &why))
        return sm_fail(err, SM_BAD_INPUT, "this pipeline is not possible: %s", why);
    size_t slots = sm_pipeline_slots(&line);
    void *scratch = sm_arena_alloc(arena, sm_pipeline_scratch(&line));
    sm_slot *slot = sm_arena_array(arena, slots, sizeof *slot);
    if (!scratch || !slot) return sm_fail_memory(err);
    sm_pipeline_simulate(&line, scratch, slot);
    return order_actions(slot, slots, arena, s, err);
}

sm_status train_setup_of_plan(const sm_plan *plan, sm_arena *arena, sm_train_setup *setup,
                              sm_error *err) {
    sm_status status = check_dtypes(plan, err);
    if (status) return status;
    train_degrees_of_plan(plan, setup);
    setup->optimizer = optimizer_of(plan);
    setup->offload_optimizer =
        plan->offload == SM_OFFLOAD_OPTIMIZER || plan->offload == SM_OFFLOAD_BOTH;
    setup->offload_activations =
        plan->offload == SM_OFFLOAD_ACTIVATIONS || plan->offload == SM_OFFLOAD_BOTH;
    setup->recompute_ops = plan->recompute_ops[0] ? plan->recompute_ops : NULL;
    status = sm_train_setup_check(setup, err);
    if (status || plan->pipeline < 2) return status;
    status = deal_layers(plan, arena, setup, err);
    if (!status) status = sm_train_setup_check(setup, err);
    return status ? status : order_stages(plan, arena, setup, err);
}
