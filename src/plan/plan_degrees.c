/* Degrees of the axes of a program, and whether they can shard a model. */
#include <assert.h>

#include "plan_row.h"

void sm_plan_keep_used_kinds(sm_model *m) {
    int to[SM_MAX_LAYER_KINDS], used = 0;
    assert(m->kinds <= SM_MAX_LAYER_KINDS);
    for (int k = 0; k < m->kinds; k++) {
        to[k] = -1;
        for (int l = 0; l < m->L && to[k] < 0; l++)
            if (m->layer[l] == k) to[k] = used++;
        if (to[k] < 0) continue;
        m->kind[to[k]] = m->kind[k];
        m->lines_of[to[k]] = m->lines_of[k];
    }
    for (int i = 0; i < m->outside; i++) m->lines_of[used + i] = m->lines_of[m->kinds + i];
    for (int l = 0; l < m->L; l++) m->layer[l] = (uint8_t)to[m->layer[l]];
    m->kinds = used;
}

/* ---- degrees ---- */

/* The tensor degree in three: over heads (of K and V, or of a state) what divides them all, over
 * the queries of each what divides those, over widths and the vocabulary alone the rest. */
typedef struct tensor_parts {
    int heads, queries, widths;
} tensor_parts;

static tensor_parts parts_of(const sm_model *m, int tensor) {
    tensor_parts p = {.heads = tensor};
    for (int k = 0; k < m->kinds; k++)
        if (m->kind[k].heads > 0) p.heads = sm_common_factor(p.heads, m->kind[k].heads);
    p.queries = tensor / p.heads;
    for (int k = 0; k < m->kinds; k++) {
        const sm_layer_kind *kind = &m->kind[k];
        int cut = kind->groups > 0 ? kind->groups : kind->heads / p.heads;
        if (kind->heads > 0) p.queries = sm_common_factor(p.queries, cut);
    }
    p.widths = tensor / p.heads / p.queries;
    return p;
}

int sm_plan_heads_times(const sm_plan *plan, const sm_model *model) {
    return parts_of(model, plan->tensor).widths;
}

void sm_degrees_set(sm_degrees *d, const sm_plan *plan, const sm_model *model) {
    tensor_parts tensor = parts_of(model, plan->tensor);
    bool gathered = plan->use == SM_PLAN_TRAINING || plan->gathered;
    unsigned own = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_EXPERT);
    const double axis[SM_AXIS_COUNT] = {
        [SM_AXIS_DATA] = plan->data,       [SM_AXIS_FSDP] = plan->fsdp,
        [SM_AXIS_EXPERT] = plan->expert,   [SM_AXIS_CONTEXT] = plan->context,
        [SM_AXIS_TENSOR] = tensor.heads,   [SM_AXIS_TENSOR_Q] = tensor.queries,
        [SM_AXIS_TENSOR_W] = tensor.widths};
    d->ways[0] = 1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        d->axis[a] = axis[a];
        for (int m = 0; m < 1 << a; m++) d->ways[m | 1 << a] = d->ways[m] * axis[a];
    }
    if (gathered) own |= SM_BIT(SM_AXIS_FSDP);
    d->sequence_axes = (sm_axes)own;
    d->replicas = d->ways[own];
    sm_degrees_microbatch(d, plan->microbatch);
}

double sm_plan_groups(const sm_plan *plan, const sm_model *model) {
    sm_degrees d;
    sm_plan settled = *plan;
    sm_plan_settle(&settled, model);
    sm_degrees_set(&d, &settled, model);
    return d.replicas;
}

void sm_degrees_microbatch(sm_degrees *d, int microbatch) {
    d->sequences =
        microbatch * d->axis[SM_AXIS_DATA] * d->axis[SM_AXIS_FSDP] * d->axis[SM_AXIS_EXPERT];
}

/* ---- refusals ---- */

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

/* "; 2 and 4 do": the nearest degrees that divide a size which other degrees cut `times` already.
 * None far above is looked for. */
static const char *others_do(const char *key, int size, int degree, int times, char room[64]) {
    int whole = size % times ? 0 : size / times, below = degree - 1, above = degree + 1;
    int most = whole / 4 < degree ? whole : 4 * degree;
    if (below > whole) below = whole;
    while (below > 1 && whole % below) below--;
    while (above <= most && whole % above) above++;
    bool lower = below > 1, higher = above <= most;
    if (lower && higher) snprintf(room, 64, "; %s%d and %s%d do", key, below, key, above);
    else if (lower || higher) snprintf(room, 64, "; %s%d does", key, lower ? below : above);
    else room[0] = 0;
    return room;
}

/* A chip has what it attends to or scans of every position, of a part of the heads. */
static const char *refuse_heads(const sm_layer_kind *k, const sm_plan *p, int heads, char *room,
                                size_t size) {
    int ways = heads * p->context, scans = k->heads > 0 ? ways : p->tensor * p->context;
    if (k->N > 0 && k->heads % ways)
        REFUSE("context_by=heads needs KV heads (%d) that divide by tensor x context = %d",
               k->heads, ways);
    if (k->scanned > 0 && k->scanned % scans)
        REFUSE("context_by=heads needs %s of a state (%d) that divide by tensor x context = %d",
               k->heads > 0 ? "heads" : "channels", k->scanned, scans);
    return NULL;
}

/* Chips that a width beside which no experts stand is dealt out over. */
static int ways_of_width(const sm_plan *p) {
    bool stationary = p->use == SM_PLAN_SERVING && !p->gathered;
    return p->tensor * (stationary ? p->fsdp : 1);
}

static int64_t ways_of_experts(const sm_plan *p) {
    return (int64_t)p->expert * (p->expert_tensor ? 1 : p->tensor);
}

static const char *refuse_kind(const sm_layer_kind *k, const sm_plan *p, int heads, char *room,
                               size_t size) {
    int width = ways_of_width(p);
    char others[64];
    if (width > 0 && k->F % width)
        REFUSE("%s%d does not divide the MLP width F=%d of a %s layer%s",
               width > p->tensor ? "tensor x fsdp = " : "tensor=", width, k->F, k->name,
               others_do("", k->F, width, 1, others));
    if (k->E) {
        int spread = p->expert_tensor ? 1 : p->tensor;
        if ((k->E_shared * k->F_shared) % p->tensor)
            REFUSE("tensor=%d does not divide the shared experts' width %d%s", p->tensor,
                   k->E_shared * k->F_shared,
                   others_do("", k->E_shared * k->F_shared, p->tensor, 1, others));
        if (p->expert_tensor && k->F_expert % p->tensor)
            REFUSE("tensor=%d does not divide the experts' width %d%s", p->tensor, k->F_expert,
                   others_do("", k->F_expert, p->tensor, 1, others));
        if (k->E_held % ways_of_experts(p) || k->E < ways_of_experts(p))
            REFUSE("%d experts do not divide by expert=%d%s%d%s", k->E, p->expert,
                   spread > 1 ? " x tensor=" : " x ", spread,
                   others_do("expert=", k->E, p->expert, spread, others));
    }
    if (p->context > 1 && p->context_by == SM_CONTEXT_HEADS)
        return refuse_heads(k, p, heads, room, size);
    if (p->context > 1 && k->scanned > 0)
        REFUSE("context=%d would pass the state of a %s layer from chip to chip, each waiting for "
               "the one before it, which is not priced%s",
               p->context, k->name,
               p->use == SM_PLAN_TRAINING ? "; context_by=heads deals out its heads instead" : "");
    return NULL;
}

const char *sm_plan_refuse(const sm_plan *p, const sm_model *m, char *room, size_t size) {
    int heads = parts_of(m, p->tensor).heads;
    for (int k = 0; k < m->kinds; k++) {
        const char *why = refuse_kind(&m->kind[k], p, heads, room, size);
        if (why) return why;
    }
    if (p->use == SM_PLAN_TRAINING && p->state_copies > 1 && p->data % p->state_copies)
        REFUSE("state_copies=%d does not divide data=%d", p->state_copies, p->data);
    bool whole = p->parameters == SM_STORED_BF16 || p->parameters == SM_STORED_FP8;
    if (!whole && p->lora == 0)
        REFUSE("parameters=%s are not trained, only adapters beside them: lora=16",
               plan_row_of(SM_PLAN_PARAMETERS)->key.words.word[p->parameters]);
    if (p->parameters == SM_STORED_FP8 && p->dtype != SM_FP8)
        REFUSE("parameters=fp8 feed matmuls in fp8: dtype=fp8");
    if (p->expert > 1 && !sm_model_has_experts(m))
        REFUSE("expert=%d, but this model has no experts", p->expert);
    if (p->pipeline > m->L) REFUSE("pipeline=%d, but the model has %d layers", p->pipeline, m->L);
    return NULL;
}

/* ---- padding ---- */

bool sm_plan_padding(const sm_plan *p, const sm_model *m, sm_padding *padding) {
    int64_t deals = ways_of_experts(p);
    bool widths = true, experts = true, apart = true, scanned = false;
    int heads = p->tensor; /* that all kinds of layers have a multiple of */
    *padding = (sm_padding){.source = 0};
    for (int k = 0; k < m->kinds; k++) {
        const sm_layer_kind *kind = &m->kind[k];
        if (kind->E > 0 && kind->E < deals) return false; /* a chip would have none */
        experts = experts && kind->E % deals == 0;
        widths = widths && kind->F % ways_of_width(p) == 0 &&
                 (kind->E_shared * kind->F_shared) % p->tensor == 0 &&
                 (!p->expert_tensor || kind->F_expert % p->tensor == 0);
        scanned = scanned || kind->scanned > 0;
        if (kind->heads == 0) continue;
        apart = apart && p->tensor % kind->heads != 0;
        heads = sm_common_factor(heads, kind->heads);
    }
    if ((widths && experts) || (!widths && scanned)) return false;
    if (!experts) padding->multiple[SM_DIMENSION_EXPERTS] = (int)deals;
    if (widths) return true;
    /* Heads that the degree is a multiple of are each on several chips, which share its queries. */
    padding->multiple[SM_DIMENSION_WIDTH] = ways_of_width(p);
    padding->multiple[SM_DIMENSION_VOCABULARY] = p->tensor;
    padding->multiple[SM_DIMENSION_HEADS] = apart ? p->tensor : 1;
    padding->multiple[SM_DIMENSION_GROUP] = apart ? 1 : p->tensor / heads;
    return true;
}

sm_status sm_plan_pad(const sm_plan *plan, const sm_model *model, sm_arena *arena, sm_model *padded,
                      bool *pads, sm_error *err) {
    sm_padding padding;
    sm_error tied = {.status = SM_OK};
    sm_status status = SM_OK;
    *pads = sm_plan_padding(plan, model, &padding);
    if (*pads) status = sm_model_pad(model, &padding, arena, padded, &tied);
    *pads = *pads && status == SM_OK;
    if (!*pads) *padded = *model;
    if (status == SM_OK || status == SM_BAD_INPUT) return SM_OK;
    if (err) *err = tied;
    return status;
}

/* ---- one form ---- */

void plan_settle_values(sm_plan *plan) {
    if (plan->fsdp > 1) plan->zero = 3;
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const plan_row *row = plan_row_of((sm_plan_key)key);
        if (row->settled) plan_set_value(plan, row, row->settled(plan, plan_value(plan, row)));
    }
}

void sm_plan_settle(sm_plan *plan, const sm_model *model) {
    for (int key = SM_PLAN_DEGREES; key < SM_PLAN_KEY_COUNT; key++) {
        const plan_row *row = plan_row_of((sm_plan_key)key);
        bool idle = (row->matters && !plan_spreads(plan, row->matters)) ||
                    (row->means && plan->use == SM_PLAN_SERVING && !row->means(plan, model));
        bool word = row->key.value == SM_PLAN_VALUE_WORD;
        if ((word && idle) || (row->experts && !sm_model_has_experts(model)))
            plan_set_value(plan, row, row->idle);
    }
    if (plan->zero == 3 && !sm_plan_shards_weights(plan)) plan->zero = 2;
    plan_settle_values(plan);
    plan_settle_layout(plan, model->L);
}

sm_rules sm_plan_rules(const sm_plan *plan, const sm_model *model, bool decode, uint64_t *code) {
    bool training = plan->use == SM_PLAN_TRAINING, stays = plan->fsdp > 1 && !plan->gathered;
    sm_plan_phase phase = training ? PLAN_TRAINS : decode ? PLAN_DECODES : PLAN_PREFILLS;
    sm_rules rules = {.weights_spread = sm_plan_shards_weights(plan),
                      .stationary = !training && stays,
                      .heads_copied = sm_plan_heads_times(plan, model) > 1,
                      .decode = decode,
                      .absorbed = decode};
    *code = 1 + (uint32_t)(8 * rules.heads_copied + 4 * decode + 2 * rules.stationary +
                           rules.weights_spread);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const plan_row *row = plan_row_of((sm_plan_key)key);
        if (!(row->ruled >> phase & 1)) continue;
        char *to = (char *)&rules + row->rule;
        int value = plan_value(plan, row);
        if (row->rule_is_switch) *(bool *)to = value != 0;
        else *(int *)(void *)to = value;
        int values = row->key.words.n ? row->key.words.n : row->key.highest + 1;
        *code = *code * (uint32_t)values + (uint32_t)value;
    }
    return rules;
}
