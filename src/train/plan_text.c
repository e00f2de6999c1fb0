/* The words of the plan grammar: one row per key. */
#include "plan_text.h"

const char *const sm_plan_keys[SM_PLAN_KEY_COUNT] = {
#define X(id, name, help) name,
    SM_PLAN_KEYS(X)
#undef X
};

static const char *const optimizers[] = {
#define X(id, name, bytes, help) name,
    SM_OPTIMIZERS(X)
#undef X
};
static const char *const contexts[] = {"ring", "gather", "heads"};
static const char *const offloads[] = {"none", "optimizer", "activations", "both"};
static const char *const kernels[] = {"fused", "unfused"};
static const char *const switches[] = {"on", "off"};
/* What a matmul of training can compute in; gradients accumulate in a wide type alone. */
static const char *const dtypes[] = {"bf16", "fp16", "fp32", "tf32", "fp64",
                                     "fp8",  "int8", "fp4",  "mxfp4"};
static const char *const gradients[] = {"fp32", "bf16"};
static const char *const ops[] = {
    "attn_norm",      "q_proj",     "k_proj",   "v_proj",        "q_down",     "q_norm",
    "q_up",           "kv_down",    "kv_norm",  "k_rot",         "k_up",       "v_up",
    "k_join",         "q_rope",     "k_rope",   "softmax",       "attention",  "o_proj",
    "attn_post_norm", "attn_add",   "mlp_norm", "gate_proj",     "up_proj",    "mlp_act",
    "down_proj",      "router",     "dispatch", "expert_gate",   "expert_up",  "expert_act",
    "expert_down",    "combine",    "moe_add",  "mlp_post_norm", "branch_add", "mlp_add",
    "embed",          "final_norm", "lm_head",  "loss"};

#define WORDS(list)                                                                                \
    { list, (int)(sizeof list / sizeof *list) }
#define AT(member) offsetof(sm_plan, member)
#define DEGREE(member)                                                                             \
    {                                                                                              \
        PLAN_INTEGER, AT(member), 1, PLAN_MOST_DEGREE, { NULL, 0 }                                 \
    }

static const plan_field fields[SM_PLAN_KEY_COUNT] = {
    [SM_PLAN_DATA] = DEGREE(data),
    [SM_PLAN_FSDP] = DEGREE(fsdp),
    [SM_PLAN_TENSOR] = DEGREE(tensor),
    [SM_PLAN_CONTEXT] = DEGREE(context),
    [SM_PLAN_EXPERT] = DEGREE(expert),
    [SM_PLAN_PIPELINE] = DEGREE(pipeline),
    [SM_PLAN_VIRTUAL] = {PLAN_INTEGER, AT(virtual_stages), 1, PLAN_MOST_VIRTUAL, {NULL, 0}},
    [SM_PLAN_MICROBATCH] = DEGREE(microbatch),
    [SM_PLAN_ZERO] = {PLAN_INTEGER, AT(zero), 0, 3, {NULL, 0}},
    [SM_PLAN_SEQ] = {PLAN_SWITCH, AT(seq), 0, 0, WORDS(switches)},
    [SM_PLAN_EXPERT_TENSOR] = {PLAN_SWITCH, AT(expert_tensor), 0, 0, WORDS(switches)},
    [SM_PLAN_CONTEXT_BY] = {PLAN_WORD, AT(context_by), 0, 0, WORDS(contexts)},
    [SM_PLAN_RECOMPUTE] =
        {PLAN_RECOMPUTE, AT(recompute), 0, 0, {sm_recompute_names, SM_RECOMPUTE_COUNT}},
    [SM_PLAN_SCHEDULE] = {PLAN_WORD, AT(schedule), 0, 0, {sm_schedule_names, SM_SCHEDULE_COUNT}},
    [SM_PLAN_OFFLOAD] = {PLAN_WORD, AT(offload), 0, 0, WORDS(offloads)},
    [SM_PLAN_DTYPE] = {PLAN_DTYPE, AT(dtype), 0, 0, WORDS(dtypes)},
    [SM_PLAN_OPTIMIZER] = {PLAN_WORD, AT(optimizer), 0, 0, WORDS(optimizers)},
    [SM_PLAN_GRADIENT] = {PLAN_DTYPE, AT(gradient), 0, 0, WORDS(gradients)},
    [SM_PLAN_ATTENTION] = {PLAN_WORD, AT(attention), 0, 0, WORDS(kernels)},
    /* the degrees are the first keys */
    [SM_PLAN_ORDER] = {PLAN_ORDER, AT(order), 0, 0, {sm_plan_keys, SM_PLAN_DEGREES}},
    [SM_PLAN_DIMS] = {PLAN_DIMS, AT(dims), 0, 0, {NULL, 0}},
};

const plan_field *sm_plan_field(sm_plan_key key) { return &fields[key]; }

sm_words sm_plan_ops(void) { return (sm_words)WORDS(ops); }
