/* The plan a training row ran, in the product's own words. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "truth_parts.h"

static bool has(const char *text, const char *words) { return strstr(text, words) != NULL; }

static int or_one(int degree) { return degree > 0 ? degree : 1; }

static int common(int a, int b) {
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int number_after(const char *text, const char *words) {
    const char *at = strstr(text, words);
    return at ? atoi(at + strlen(words)) : 0;
}

/* Chips over which weights are sharded when the source says less than all replicas. */
static int fsdp_group(const sm_training_row *r, int replicas) {
    static const char *const said[] = {"FSDP group ", "FSDP spans ", "; FSDP "};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        int n = number_after(r->notes, said[i]);
        if (n > 1 && replicas % n == 0) return n;
    }
    return replicas;
}

/* ---- recomputation ---- */

typedef struct ops_list {
    char *text;
    size_t size;
} ops_list;

static void add_op(ops_list *list, const char *op) {
    size_t used = strlen(list->text);
    if (used + strlen(op) + 2 > list->size) return;
    snprintf(list->text + used, list->size - used, "%s%s", used ? "+" : "", op);
}

static void add_ops(ops_list *list, const char *const *ops, size_t n) {
    for (size_t i = 0; i < n; i++) add_op(list, ops[i]);
}

#define OPS(list, ...)                                                                             \
    add_ops(list, (const char *const[]){__VA_ARGS__},                                              \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Megatron-Core's recompute_modules. */
static void megatron_modules(const char *detail, const sm_model *m, ops_list *list) {
    const sm_layer_kind *last = &m->kind[m->layer[m->L - 1]];
    bool moe = last->E > 0, mla = last->attention == SM_ATTENTION_MLA;
    if (has(detail, "layernorm")) OPS(list, "attn_norm", "mlp_norm");
    if (has(detail, "moe_act") && moe) OPS(list, "expert_act");
    if (has(detail, "mla_up_proj") && mla) {
        if (last->q_rank) OPS(list, "q_up");
        OPS(list, "q_rope", "k_up", "v_up", "k_join");
    }
    if (has(detail, "mlp") && m->kind[0].F > 0) OPS(list, "gate_proj", "up_proj", "mlp_act");
    if (has(detail, "core_attn")) OPS(list, "attention");
    if ((has(detail, "moe,") || has(detail, ": moe") || has(detail, ",moe")) &&
        !has(detail, "moe_act") && moe)
        OPS(list, "dispatch", "expert_gate", "expert_up", "expert_act");
}

/* XLA remat policies name what is kept: everything else runs again. */
static void keep_named(const char *detail, const sm_model *m, ops_list *list) {
    const sm_layer_kind *k = &m->kind[0];
    bool gated = k->mlp == SM_MLP_GATED, moe = k->E > 0;
    bool q = has(detail, "qkv") || has(detail, "query_proj=device") ||
             has(detail, "query_proj=offload") || has(detail, "q/k/v");
    bool o = has(detail, "out proj") || has(detail, "out_proj=device") ||
             has(detail, "out_proj=offload");
    bool down =
        has(detail, "mlpwo too") || has(detail, "mlpwo=device") || has(detail, "mlpwo=offload");
    if (k->attention == SM_ATTENTION_MLA) return;
    OPS(list, "attn_norm");
    if (!q) OPS(list, "q_proj", "k_proj", "v_proj");
    OPS(list, "q_rope", "k_rope", "attention");
    if (!o) OPS(list, "o_proj");
    OPS(list, "attn_add", "mlp_norm");
    if (moe) return;
    if (gated) OPS(list, "gate_proj");
    OPS(list, "up_proj", "mlp_act");
    if (!down) OPS(list, "down_proj");
}

/* torchtitan's per-op policy keeps attention and every second matmul of a layer: q, v, gate, down.
 */
static bool every_second_dot(const sm_training_row *r) {
    return has(r->title, "torchtitan") && !has(r->recompute_detail, "2nd layer;") &&
           (has(r->recompute_detail, "per-op") || has(r->recompute_detail, "default AC"));
}

static void keep_every_second(const sm_model *m, ops_list *list) {
    OPS(list, "attn_norm", "k_proj", "q_rope", "k_rope", "o_proj", "attn_add", "mlp_norm");
    if (m->kind[0].E > 0) return;
    OPS(list, "up_proj", "mlp_act");
}

static bool dots_kept(const char *detail) {
    return has(detail, "minimal") || has(detail, "DOT_ONLY") || has(detail, "save_dot") ||
           has(detail, "per-op") || has(detail, "default AC") || has(detail, "2nd layer") ||
           has(detail, "selective layer");
}

static void recompute_of(const sm_training_row *r, const sm_model *m, sm_plan *plan) {
    const char *kind = r->recompute, *detail = r->recompute_detail;
    ops_list list = {plan->recompute_ops, sizeof plan->recompute_ops};
    plan->recompute = SM_RECOMPUTE_NONE;
    if (!strcmp(kind, "full")) plan->recompute = SM_RECOMPUTE_FULL;
    else if (has(detail, "num-layers 0")) return;
    else if (!strcmp(kind, "") || !strcmp(kind, "none")) return;
    else if (every_second_dot(r)) keep_every_second(m, &list);
    else if (dots_kept(detail)) plan->recompute = SM_RECOMPUTE_MATMULS;
    else if (has(detail, "modules")) megatron_modules(detail, m, &list);
    else if (has(detail, "custom") || has(detail, "offload")) keep_named(detail, m, &list);
    else if (!strcmp(kind, "selective")) plan->recompute = SM_RECOMPUTE_SELECTIVE;
}

/* ---- degrees ---- */

enum { MOST_CHUNKS = 1000000 };

/* Where a source counts embedding and head as layers of the pipeline's split (NeMo does), a model
 * two layers short of all chunks has them: the chunks here hold layers alone. */
static int chunks_of(const sm_training_row *r, int layers) {
    int said = r->vp > 0 ? r->vp : number_after(r->notes, "README say "); /* of printed NA */
    int chunks = or_one(said), stages = or_one(r->pp);
    int64_t all = (int64_t)stages * chunks;
    bool counted = layers < all && layers + 2 >= all;
    if (all > MOST_CHUNKS) return layers / stages + 1; /* refused as well, and counted in an int */
    return counted && layers >= stages ? layers / stages : chunks;
}

static void schedule_of(const sm_training_row *r, const sm_model *model, sm_plan *plan) {
    plan->virtual_stages = chunks_of(r, model->L);
    plan->schedule =
        plan->virtual_stages > 1 && plan->pipeline > 1 ? SM_SCHEDULE_INTERLEAVED : SM_SCHEDULE_1F1B;
    if (plan->schedule == SM_SCHEDULE_1F1B) plan->virtual_stages = 1;
    if (has(r->schedule, "dualpipe")) plan->schedule = SM_SCHEDULE_DUALPIPE;
    else if (has(r->schedule, "zero-bubble")) plan->schedule = SM_SCHEDULE_ZB_H1;
}

/* Whether each expert is split over the tensor axis: as the row says, else where the experts are
 * fewer than its ranks; recipes of before that choice follow Megatron's default, which splits. */
static bool experts_split(const sm_training_row *r, int ep, int tensor) {
    int said = number_after(r->notes, "ETP=");
    bool before = said == 0 && has(r->title, "DGX Cloud") && !has(r->notes, "ETP=");
    return tensor > 1 && (said > 1 || before || ep < tensor);
}

/* Experts of Megatron-style rows spread over the data and tensor ranks of one stage: those that
 * the tensor axis does not hold take the expert axis out of the replicas. */
static void expert_of(const sm_training_row *r, const sm_model *m, int replicas, sm_plan *plan) {
    bool moe = m->kind[m->layer[m->L - 1]].E > 0;
    int ep = moe ? or_one(r->ep) : 1;
    plan->expert_tensor = moe && experts_split(r, ep, plan->tensor);
    int spread = plan->expert_tensor ? ep : (ep + plan->tensor - 1) / plan->tensor;
    plan->expert = common(spread, replicas);
}

static void shards_of(const sm_training_row *r, int replicas, sm_plan *plan) {
    int rest = replicas / plan->expert;
    bool sharded = r->fsdp == SM_YES || r->zero_stage == 3;
    plan->zero = r->zero_stage >= 0 ? r->zero_stage : 1;
    plan->data = rest;
    plan->fsdp = 1;
    if (!sharded || plan->zero == 2) return;
    plan->fsdp = fsdp_group(r, rest);
    plan->data = rest / plan->fsdp;
    if (plan->fsdp == 1) plan->zero = 1;
}

/* Sources of before 2023 that do not name a fused kernel had none. */
static int unfused_of(const sm_training_row *r) {
    bool old = r->year > 0 && r->year < 2023;
    /* "fused" alone is Megatron's fused softmax between two matmuls */
    bool softmax = !strcmp(r->attention_kernel, "fused") && has(r->title, "Hagemann");
    bool unfused = r->flash_attention == SM_NO || old || softmax || has(r->title, "vTrain");
    return unfused && r->cp <= 1 ? SM_ATTENTION_UNFUSED : SM_ATTENTION_FUSED;
}

static sm_dtype dtype_of(const sm_training_row *r) {
    const char *p = r->precision_class;
    if (has(p, "nvfp4")) return SM_FP4;
    if (has(p, "fp8")) return SM_FP8;
    return has(p, "int8") ? SM_INT8 : SM_BF16;
}

static const char *missing(const sm_training_row *r) {
    if (!(r->seq_len >= 1)) return "seq_len not stated";
    if (!(r->global_batch_sequences >= 1)) return "global_batch_sequences not stated";
    if (!(r->microbatch > 0) && !(r->per_device_batch_size > 0)) return "microbatch not stated";
    if (strcmp(r->task, "lora") == 0) return "LoRA: frozen weights are not modelled";
    return NULL;
}

/* A row that states its plan in the product's own words. */
static bool stated_plan(const sm_training_row *r, sm_plan *plan, const char **why) {
    sm_source source = sm_source_of("plan", r->plan);
    sm_error err = {0};
    *why = "the plan as stated cannot be read";
    if (sm_plan_parse(&source, plan, &err)) return false;
    *why = NULL;
    return true;
}

bool truth_plan(const sm_training_row *r, const sm_model *model, int chips, sm_plan *plan,
                const char **why) {
    if (r->plan && r->plan[0]) return stated_plan(r, plan, why);
    int devices = r->devices > 0 ? r->devices : chips, per_chip = devices / chips;
    *why = missing(r);
    if (*why) return false;
    sm_plan_defaults(plan);
    plan->tensor = or_one(r->tp);
    plan->context = or_one(r->cp);
    plan->pipeline = or_one(r->pp);
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
    /* MaxText shards it over tensor too (its activation_embed axis) */
    plan->seq = plan->tensor > 1 && (r->sp == SM_YES || modern || has(r->title, "MaxText"));
    expert_of(r, model, replicas, plan);
    shards_of(r, replicas, plan);
    schedule_of(r, model, plan);
    recompute_of(r, model, plan);
    plan->dtype = dtype_of(r);
    if (has(r->notes, "CPU AdamW offload")) plan->offload = SM_OFFLOAD_OPTIMIZER;
    /* this code base keeps its gradients in 16 bits: with 32 its larger layouts would not fit */
    if (has(r->title, "Hagemann") || has(r->precision, "fp16 grads")) plan->gradient = SM_BF16;
    plan->attention =
        model->kind[0].attention == SM_ATTENTION_MLA ? SM_ATTENTION_FUSED : unfused_of(r);
    *why = NULL;
    return true;
}
