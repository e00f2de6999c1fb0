/* The model and the plan a training row ran: as it states it in the words of --plan, else what its
 * columns of degrees say. */
#include <assert.h>

#include "measured_format.h"
#include "truth_parts.h"

/* Megatron's GPT models pad their vocabulary to this when the source is silent. */
enum { GPT_VOCABULARY = 51200 };

bool truth_model(const sm_training_row *r, row_models *models, const sm_model **model,
                 const char **why) {
    row_shape s;
    *why = row_shape_of(&r->model, GPT_VOCABULARY, &s);
    if (*why) return false;
    if (!s.config) s.max_seq = r->seq_len >= 1 && r->seq_len <= 1e8 ? (int)r->seq_len : 1;
    return row_models_take(models, &s, model, why);
}

enum { MOST_CHUNKS = 1000000 };
/* MLPerf's rules for Llama 2 70B; no other source says more than that it is LoRA. */
enum { USUAL_RANK = 16 };

static void schedule_of(const sm_training_row *r, const sm_model *model, sm_plan *plan) {
    int chunks = or_else(r->vp, 1), stages = or_else(r->pp, 1);
    int64_t all = (int64_t)stages * chunks;
    /* NeMo counts embedding and head as layers of the pipeline's split: a model two layers short of
     * all chunks has them there, and the chunks here hold layers alone */
    bool counted = model->L >= stages && model->L < all && model->L + 2 >= all;
    if (counted) chunks = model->L / stages;
    if (all > MOST_CHUNKS) chunks = model->L / stages + 1; /* refused as well, and an int */
    bool interleaved = chunks > 1 && plan->pipeline > 1;
    plan->virtual_stages = interleaved ? chunks : 1;
    plan->schedule = interleaved ? SM_SCHEDULE_INTERLEAVED : SM_SCHEDULE_1F1B;
    if (strcmp(r->schedule, "dualpipe") == 0) plan->schedule = SM_SCHEDULE_DUALPIPE;
    if (strncmp(r->schedule, "zero-bubble", 11) == 0) plan->schedule = SM_SCHEDULE_ZB_H1;
}

/* Experts spread over the data and tensor ranks of one stage: those that the tensor axis does not
 * hold take the expert axis out of the replicas. Each is split over the tensor axis where they are
 * fewer than its ranks. What is left of the replicas shards weights, or repeats them. */
static void replicas_of(const sm_training_row *r, const sm_model *m, int replicas, sm_plan *plan) {
    bool moe = m->kind[m->layer[m->L - 1]].E > 0;
    assert(replicas >= 1);
    int ep = moe ? or_else(r->ep, 1) : 1;
    plan->expert_tensor = moe && ep < plan->tensor;
    int spread = plan->expert_tensor ? ep : (ep + plan->tensor - 1) / plan->tensor;
    plan->expert = sm_common_factor(spread, replicas);
    plan->zero = r->zero_stage >= 0 ? r->zero_stage : 1;
    bool sharded = (r->fsdp == SM_YES || r->zero_stage == 3) && plan->zero != 2;
    plan->fsdp = sharded ? replicas / plan->expert : 1;
    assert(plan->fsdp >= 1);
    plan->data = replicas / plan->expert / plan->fsdp;
    if (sharded && plan->fsdp == 1) plan->zero = 1;
}

sm_dtype truth_dtype(const sm_training_row *r) {
    const measured_type *narrow = NAMED(measured_precisions, r->precision_class);
    return narrow ? narrow->dtype : SM_BF16;
}

static const char *missing(const sm_training_row *r) {
    if (!(r->seq_len >= 1)) return "seq_len not stated";
    if (!(r->global_batch_sequences >= 1)) return "global_batch_sequences not stated";
    if (!(r->microbatch > 0) && !(r->per_device_batch_size > 0)) return "microbatch not stated";
    return NULL;
}

/* A row that states its plan in the product's own words. */
static bool stated_plan(const sm_training_row *r, sm_plan *plan, const char **why) {
    sm_source source = sm_source_of("plan", r->plan);
    sm_error err = {0};
    *why = sm_plan_parse(&source, plan, &err) ? "the plan as stated cannot be read" : NULL;
    return !*why;
}

bool truth_plan(const sm_training_row *r, const sm_model *model, int chips, sm_plan *plan,
                const char **why) {
    if (r->plan && r->plan[0]) return stated_plan(r, plan, why);
    int devices = r->devices > 0 ? r->devices : chips, per_chip = devices / chips;
    *why = missing(r);
    if (*why) return false;
    sm_plan_defaults(plan);
    plan->tensor = or_else(r->tp, 1);
    plan->context = or_else(r->cp, 1);
    plan->pipeline = or_else(r->pp, 1);
    double ranks = (double)plan->tensor * plan->context * plan->pipeline;
    *why = "the degrees do not divide the devices";
    if (ranks > devices || devices % (int)ranks) return false;
    int replicas = devices / (int)ranks;
    double microbatch =
        r->microbatch > 0 ? r->microbatch : r->per_device_batch_size * plan->tensor * plan->context;
    if (per_chip > 1) { /* two ranks of one chip: as one chip with what both hold */
        *why = "ranks per chip do not fold into chips";
        if (plan->tensor % per_chip == 0) plan->tensor /= per_chip; /* the innermost ranks */
        else if (replicas % per_chip == 0) replicas /= per_chip, microbatch *= per_chip;
        else return false;
    }
    plan->microbatch = (int)fmax(1, round(microbatch));
    /* Megatron shards the residual stream wherever it shards tensors since 2023 */
    bool modern = r->sp == SM_UNSTATED && r->year >= 2023;
    plan->seq = plan->tensor > 1 && (r->sp == SM_YES || modern);
    replicas_of(r, model, replicas, plan);
    schedule_of(r, model, plan);
    plan->recompute = strcmp(r->recompute, "full") == 0        ? SM_RECOMPUTE_FULL
                      : strcmp(r->recompute, "selective") == 0 ? SM_RECOMPUTE_SELECTIVE
                                                               : SM_RECOMPUTE_NONE;
    plan->dtype = truth_dtype(r);
    if (r->flash_attention == SM_NO) plan->attention = SM_ATTENTION_UNFUSED;
    if (strcmp(r->task, "lora") == 0) {
        plan->lora = USUAL_RANK;
        plan->targets = SM_LORA_ATTENTION;
    }
    *why = NULL;
    return true;
}
