/* The keys of plans: one row each. */
#include <assert.h>
#include <math.h>

#include "plan_row.h"

_Static_assert(sizeof(sm_context_by) == sizeof(int) && sizeof(sm_recompute) == sizeof(int) &&
                   sizeof(sm_schedule) == sizeof(int) && sizeof(sm_dtype) == sizeof(int) &&
                   sizeof(sm_optimizer) == sizeof(int) && sizeof(sm_cache_by) == sizeof(int) &&
                   sizeof(sm_regather) == sizeof(int) && sizeof(sm_lora_targets) == sizeof(int) &&
                   sizeof(sm_stored_as) == sizeof(int),
               "the values of a plan are stored through int");
_Static_assert(SM_PLAN_KEY_COUNT <= 64, "a bit for each in sm_plan.given");

const char *const sm_schedule_names[SM_SCHEDULE_COUNT] = {SM_SCHEDULES(SM_NAME_OF)};
static const char *const optimizers[] = {SM_OPTIMIZERS(SM_NAME_OF)};
#define X(id, name, meaning) static const char name_##id[] = name, meaning_##id[] = meaning;
SM_PLAN_KEYS(X)
#undef X

static const char *const switches[] = {"off", "on"};
static const char *const weights_by[] = {"stationary", "gathered"};
static const char *const caches[] = {"copies", "batch", "sequence"};
static const char *const contexts[] = {"ring", "gather", "heads"};
static const char *const offloads[] = {"none", "optimizer", "activations", "both"};
static const char *const losses[] = {"whole", "chunked"};
static const char *const tables[] = {"sharded", "gathered"};
static const char *const targets[] = {"all", "attention", "mlp", "qv"};
static const char *const stored[SM_STORED_AS_COUNT] = {"bf16", "fp8", "int8", "nf4"};
static const char *const kernels[] = {"fused", "unfused", "flash-1", "flash-2"};
static const char *const norms[] = {"fused", "separate"};
/* What a matmul of training can compute in; gradients accumulate in a wide type alone. */
static const char *const dtypes[] = {"bf16", "fp16", "fp32", "tf32",  "fp64",
                                     "fp8",  "int8", "fp4",  "mxfp4", "nvfp4"};
static const char *const gradients[] = {"fp32", "bf16"};
static const char *const axes[] = {name_DATA,    name_FSDP,   name_TENSOR,
                                   name_CONTEXT, name_EXPERT, name_PIPELINE};

/* ---- the table ---- */

enum {
    TRAINING = 1 << SM_PLAN_TRAINING,
    SERVING = 1 << SM_PLAN_SERVING,
    BOTH = TRAINING | SERVING
};
enum { MOST_VIRTUAL = 64 };
#define DEGREE(id) (1u << SM_PLAN_##id)
#define WORDS(list)                                                                                \
    { list, (int)(sizeof list / sizeof *list) }
/* A key: whose it is, its member of sm_plan, what it shards; then the fields of its kind. */
#define KEY(id, whose, member, sharded, ...)                                                       \
    [SM_PLAN_##id] = {.offset = offsetof(sm_plan, member),                                         \
                      .key.name = name_##id,                                                       \
                      .key.meaning = meaning_##id,                                                 \
                      .key.shards = (sharded),                                                     \
                      .key.uses = (whose),                                                         \
                      __VA_ARGS__}
#define INTEGER(low, high, left_out)                                                               \
    .key.value = SM_PLAN_VALUE_INTEGER, .key.lowest = (low), .key.highest = (high),                \
    .key.usual = {left_out, left_out}
#define COUNT INTEGER(1, SM_PLAN_MOST_DEGREE, 1)
/* What it means left out, in training and in serving. */
#define WORD(list, training, serving)                                                              \
    .key.value = SM_PLAN_VALUE_WORD, .key.words = WORDS(list), .key.usual = {training, serving}
#define TYPE(list, left_out)                                                                       \
    .key.value = SM_PLAN_VALUE_DTYPE, .key.words = WORDS(list), .key.usual = {left_out, left_out}

/* It is this rule of the program in these phases. */
enum {
    TRAINS = 1 << PLAN_TRAINS,
    PREFILLS = 1 << PLAN_PREFILLS,
    DECODES = 1 << PLAN_DECODES,
    EVERY_PHASE = TRAINS | PREFILLS | DECODES
};
#define SWITCHES(phases, member)                                                                   \
    .ruled = (phases), .rule = offsetof(sm_rules, member), .rule_is_switch = true
#define SETS(phases, member) .ruled = (phases), .rule = offsetof(sm_rules, member)

/* Weights are gathered where fsdp shards them; activations where tensor shards the residual stream,
 * or where context-parallel attention brings keys together. Those in host memory go there as they
 * are stored. */
sm_regather sm_plan_least_regather(const sm_plan *p) {
    bool host = p->offload == SM_OFFLOAD_ACTIVATIONS || p->offload == SM_OFFLOAD_BOTH;
    bool keys = p->context > 1 && p->context_by != SM_CONTEXT_RING;
    bool gathers = keys || (p->tensor > 1 && p->seq);
    return (sm_regather)((sm_plan_shards_weights(p) ? SM_KEEPS_WEIGHTS : 0) |
                         (gathers && !host ? SM_KEEPS_ACTIVATIONS : 0));
}

static int settled_targets(const sm_plan *p, int value) { return p->lora ? value : SM_LORA_ALL; }

static int settled_regather(const sm_plan *p, int value) {
    return value & (int)sm_plan_least_regather(p);
}

/* Without ZeRO every replica has the state. */
static int settled_copies(const sm_plan *p, int value) {
    return p->data > 1 && (p->zero > 0 || p->fsdp > 1) ? value : 1;
}

static const plan_row rows[SM_PLAN_KEY_COUNT] = {
    KEY(DATA, BOTH, data, "the batch", COUNT),
    KEY(FSDP, BOTH, fsdp, "weights, gradients and optimizer state along D; the batch", COUNT),
    KEY(TENSOR, BOTH, tensor, "heads, the width of the MLP, the vocabulary", COUNT),
    KEY(CONTEXT, BOTH, context, "the sequence; decoding: the positions of the cache", COUNT),
    KEY(EXPERT, BOTH, expert, "experts; outside them the batch", COUNT),
    KEY(PIPELINE, BOTH, pipeline, "layers", COUNT),
    KEY(VIRTUAL, TRAINING, virtual_stages, "layers of a stage", INTEGER(1, MOST_VIRTUAL, 1),
        .matters = DEGREE(PIPELINE), .always = DEGREE(PIPELINE)),
    KEY(MICROBATCH, TRAINING, microbatch, "", COUNT, .always = ALWAYS),
    KEY(ZERO, TRAINING, zero, "optimizer state, then gradients, then weights, over the replicas",
        INTEGER(0, 3, 1), .always = ALWAYS),
    KEY(STATE_COPIES, TRAINING, state_copies, "each over the other replicas alone", COUNT,
        .settled = settled_copies),
    KEY(WEIGHTS_BY, SERVING, gathered,
        "stationary: the residual stream along D; gathered: the batch", WORD(weights_by, 0, 0),
        .is_switch = true, .matters = DEGREE(FSDP), .searched = SERVING),
    KEY(CACHE_BY, SERVING, cache_by,
        "batch: sequences of the cache over tensor; sequence: its positions",
        WORD(caches, SM_CACHE_COPIES, SM_CACHE_COPIES), SETS(DECODES, cache_by),
        .means = plan_has_spare_chips, .idle = SM_CACHE_COPIES, .searched = SERVING),
    KEY(SEQ, BOTH, seq, "the residual stream over tensor, along the sequence",
        WORD(switches, true, false), .is_switch = true, .matters = DEGREE(TENSOR),
        .always = DEGREE(TENSOR), SWITCHES(TRAINS | PREFILLS, seq), .searched = TRAINING),
    KEY(EXPERT_TENSOR, BOTH, expert_tensor,
        "on: the width of each expert over tensor; off: experts", WORD(switches, false, false),
        .is_switch = true, .matters = DEGREE(TENSOR), .always = DEGREE(TENSOR) | DEGREE(EXPERT),
        .experts = true, SWITCHES(EVERY_PHASE, expert_tensor), .searched = BOTH),
    KEY(CONTEXT_BY, TRAINING, context_by, "heads: heads of attention over context",
        WORD(contexts, SM_CONTEXT_RING, SM_CONTEXT_RING), .matters = DEGREE(CONTEXT),
        .always = DEGREE(CONTEXT), SETS(TRAINS, context_by), .searched = TRAINING),
    KEY(RECOMPUTE, TRAINING, recompute, "", .key.value = SM_PLAN_VALUE_RECOMPUTE,
        .key.words = {sm_recompute_names, SM_RECOMPUTE_COUNT}, .always = ALWAYS),
    KEY(REGATHER, TRAINING, regather, "", .key.value = SM_PLAN_VALUE_WORD,
        .key.words = {sm_regather_names, SM_REGATHER_COUNT}, .settled = settled_regather),
    KEY(SCHEDULE, TRAINING, schedule, "", .key.value = SM_PLAN_VALUE_WORD,
        .key.words = {sm_schedule_names, SM_SCHEDULE_COUNT},
        .key.usual = {SM_SCHEDULE_1F1B, SM_SCHEDULE_1F1B}, .idle = SM_SCHEDULE_1F1B,
        .matters = DEGREE(PIPELINE), .always = DEGREE(PIPELINE)),
    KEY(OFFLOAD, TRAINING, offload, "", WORD(offloads, 0, 0)),
    KEY(DTYPE, TRAINING, dtype, "", TYPE(dtypes, SM_BF16)),
    KEY(OPTIMIZER, TRAINING, optimizer, "", WORD(optimizers, 0, 0)),
    KEY(GRADIENT, TRAINING, gradient, "", TYPE(gradients, SM_FP32)),
    KEY(ATTENTION, TRAINING, attention, "", WORD(kernels, 0, 0), SETS(TRAINS, attention)),
    KEY(NORMS, TRAINING, norms_apart, "", WORD(norms, 0, 0), .is_switch = true,
        SWITCHES(TRAINS, norms_apart)),
    KEY(LOSS, TRAINING, loss, "", WORD(losses, 0, 0)),
    KEY(EMBEDDING, TRAINING, table_gathered, "gathered: the embedding's tokens, not its vocabulary",
        WORD(tables, 0, 0), .is_switch = true, .matters = DEGREE(TENSOR),
        SWITCHES(TRAINS, table_gathered)),
    KEY(LORA, TRAINING, lora, "", INTEGER(0, SM_MOST_LORA_RANK, 0), SETS(TRAINS, lora)),
    KEY(TARGETS, TRAINING, targets, "", WORD(targets, 0, 0), SETS(TRAINS, targets),
        .settled = settled_targets),
    KEY(PARAMETERS, TRAINING, parameters, "", WORD(stored, 0, 0), SETS(TRAINS, stored)),
    KEY(CAPACITY, TRAINING, capacity, "", INTEGER(0, SM_MOST_CAPACITY, 0), .experts = true,
        SETS(TRAINS, capacity)),
    KEY(ORDER, BOTH, order, "", .key.value = SM_PLAN_VALUE_ORDER, .key.words = WORDS(axes)),
    KEY(DIMS, BOTH, dims, "", .key.value = SM_PLAN_VALUE_DIMS),
    KEY(LAYOUT, TRAINING, layout, "", .key.value = SM_PLAN_VALUE_LAYOUT,
        .matters = DEGREE(PIPELINE)),
};

const plan_row *plan_row_of(sm_plan_key key) {
    assert((unsigned)key < SM_PLAN_KEY_COUNT);
    return &rows[key];
}

const sm_plan_key_row *sm_plan_key_row_of(sm_plan_key key) { return &plan_row_of(key)->key; }

/* What other software calls the keys. */
static const struct {
    const char *theirs;
    sm_plan_key key;
} nicknames[] = {
    {"dp", SM_PLAN_DATA},
    {"tp", SM_PLAN_TENSOR},
    {"pp", SM_PLAN_PIPELINE},
    {"cp", SM_PLAN_CONTEXT},
    {"ep", SM_PLAN_EXPERT},
    {"sp", SM_PLAN_SEQ},
    {"vp", SM_PLAN_VIRTUAL},
    {"vpp", SM_PLAN_VIRTUAL},
    {"mbs", SM_PLAN_MICROBATCH},
    {"etp", SM_PLAN_EXPERT_TENSOR},
    {"reshard_after_forward", SM_PLAN_REGATHER},
};

int sm_plan_key_of_nickname(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof nicknames / sizeof *nicknames; i++)
        if (strlen(nicknames[i].theirs) == length && memcmp(name, nicknames[i].theirs, length) == 0)
            return (int)nicknames[i].key;
    return -1;
}

/* ---- values ---- */

int plan_value(const sm_plan *plan, const plan_row *row) {
    bool is_list = row->key.value >= SM_PLAN_VALUE_ORDER;
    if (is_list) return 0; /* a list is no one value: it lies in the plan as bytes */
    const char *at = (const char *)plan + row->offset;
    return row->is_switch ? *(const bool *)at : *(const int *)(const void *)at;
}

void plan_set_value(sm_plan *plan, const plan_row *row, int value) {
    char *at = (char *)plan + row->offset;
    if (row->is_switch) *(bool *)at = value != 0;
    else *(int *)(void *)at = value;
}

const uint8_t *plan_usual_order(sm_plan_use use) {
    static const uint8_t order[SM_PLAN_USES][SM_PLAN_DEGREES] = {
        [SM_PLAN_TRAINING] = {SM_PLAN_TENSOR, SM_PLAN_CONTEXT, SM_PLAN_EXPERT, SM_PLAN_FSDP,
                              SM_PLAN_DATA, SM_PLAN_PIPELINE},
        [SM_PLAN_SERVING] = {SM_PLAN_TENSOR, SM_PLAN_CONTEXT, SM_PLAN_FSDP, SM_PLAN_EXPERT,
                             SM_PLAN_DATA, SM_PLAN_PIPELINE}};
    return order[use];
}

static void fill_usual(sm_plan *plan, sm_plan_use use) {
    memset(plan, 0, sizeof *plan);
    plan->use = use;
    for (int key = 0; key < SM_PLAN_ORDER; key++)
        plan_set_value(plan, &rows[key], rows[key].key.usual[use]);
    memcpy(plan->order, plan_usual_order(use), sizeof plan->order);
    for (uint8_t i = 0; i < 3; i++) plan->dims[i] = i;
}

void sm_plan_defaults(sm_plan *plan) { fill_usual(plan, SM_PLAN_TRAINING); }

void sm_serve_plan_defaults(sm_plan *plan) { fill_usual(plan, SM_PLAN_SERVING); }

/* ---- degrees ---- */

int *sm_plan_degree(sm_plan *plan, int key) {
    int *const degree[SM_PLAN_DEGREES] = {&plan->data,    &plan->fsdp,   &plan->tensor,
                                          &plan->context, &plan->expert, &plan->pipeline};
    assert(key >= 0 && key < SM_PLAN_DEGREES);
    return degree[key];
}

int sm_plan_degree_of(const sm_plan *plan, int key) {
    const int degree[SM_PLAN_DEGREES] = {plan->data,    plan->fsdp,   plan->tensor,
                                         plan->context, plan->expert, plan->pipeline};
    assert(key >= 0 && key < SM_PLAN_DEGREES);
    return degree[key];
}

int sm_plan_chips(const sm_plan *plan) {
    double chips = (double)plan->data * plan->fsdp * plan->tensor * plan->context * plan->expert *
                   plan->pipeline;
    return chips <= SM_PLAN_MOST_DEGREE ? (int)chips : INT32_MAX;
}

double sm_plan_replicas(const sm_plan *plan) {
    return (double)plan->data * plan->fsdp * plan->expert;
}

bool sm_plan_shares(const sm_plan *plan, double sequences, sm_plan_share share) {
    double each = sm_plan_replicas(plan) * plan->microbatch;
    if (share == SM_SHARE_ROUNDS) each *= plan->pipeline;
    return share == SM_SHARE_ANY || fmod(sequences, each) == 0;
}

bool sm_plan_shards_weights(const sm_plan *plan) {
    bool parts = plan->expert > 1 || plan->context > 1;
    bool over = plan->zero == 3 && plan->data == 1 && parts;
    return plan->use == SM_PLAN_TRAINING && (plan->fsdp > 1 || over);
}

bool plan_spreads(const sm_plan *plan, unsigned degrees) {
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (degrees >> key & 1 && sm_plan_degree_of(plan, key) <= 1) return false;
    return true;
}
