/* Degrees of the mesh axes and whether they can shard a model. */
#include <math.h>
#include <stdio.h>

#include "serve_space.h"

static int divisor(int a, int b) {
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int kv_heads(const sm_layer_kind *k) {
    int heads = k->attention == SM_ATTENTION_MLA || k->K < 1 ? k->N : k->K;
    return heads > 0 ? heads : 1;
}

/* Heads of K and V take what divides them all; the rest of the tensor degree splits the query heads
 * of each. */
static int tensor_over_kv(const sm_serve *s, int tensor) {
    int most = tensor;
    for (int k = 0; k < s->kinds; k++) most = divisor(most, kv_heads(&s->model.kind[k]));
    return most;
}

void serve_canonical(const sm_serve *s, sm_plan *plan) {
    if (plan->fsdp == 1) plan->gathered = false;
    if (plan->tensor == 1) plan->seq = false;
    if (!s->experts || plan->tensor == 1) plan->expert_tensor = false;
}

static void fill_sequence_axes(degrees *d, const sm_plan *plan) {
    unsigned axes = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_EXPERT);
    if (plan->gathered) axes |= SM_BIT(SM_AXIS_FSDP);
    d->sequence_axes = (sm_axes)axes;
    d->replicas = 1 / d->inverse[axes];
}

void serve_degrees_set(degrees *d, const sm_serve *s, const sm_plan *plan) {
    int tensor = tensor_over_kv(s, plan->tensor);
    const double axis[SM_AXIS_COUNT] = {
        [SM_AXIS_DATA] = plan->data,     [SM_AXIS_FSDP] = plan->fsdp,
        [SM_AXIS_EXPERT] = plan->expert, [SM_AXIS_CONTEXT] = plan->context,
        [SM_AXIS_TENSOR] = tensor,       [SM_AXIS_TENSOR_Q] = (double)plan->tensor / tensor};
    d->inverse[0] = 1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        double part = 1 / axis[a];
        d->axis[a] = axis[a];
        for (int m = 0; m < 1 << a; m++) d->inverse[m | 1 << a] = d->inverse[m] * part;
    }
    fill_sequence_axes(d, plan);
}

double fullest(const degrees *d, double sequences) {
    double each = sequences / d->replicas;
    if (fmod(sequences, 1) == 0) each = ceil(each);
    return each > 1 ? each : 1;
}

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

static const char *refuse_experts(const sm_layer_kind *k, const sm_plan *p, char *room,
                                  size_t size) {
    int spread = p->expert_tensor ? 1 : p->tensor;
    if ((k->E_shared * k->F_shared) % p->tensor)
        REFUSE("tensor=%d does not divide the shared experts' width %d", p->tensor,
               k->E_shared * k->F_shared);
    if (p->expert_tensor && k->F_expert % p->tensor)
        REFUSE("tensor=%d does not divide the experts' width %d", p->tensor, k->F_expert);
    if ((int64_t)k->E % ((int64_t)p->expert * spread))
        REFUSE("%d experts do not divide by expert=%d%s%d", k->E, p->expert,
               spread > 1 ? " x tensor=" : " x ", spread);
    return NULL;
}

static const char *refuse_kind(const sm_layer_kind *k, const sm_plan *p, int kv, int q, char *room,
                               size_t size) {
    int K = kv_heads(k), G = k->attention == SM_ATTENTION_MLA ? 1 : k->N / K;
    int width = p->gathered ? p->tensor : p->tensor * p->fsdp;
    if (K % kv || G % q)
        REFUSE("tensor=%d does not divide the %d query heads (%d KV heads) of a %s layer",
               p->tensor, k->N, K, k->name);
    if (width > 0 && k->F % width)
        REFUSE("%s%d does not divide the MLP width F=%d of a %s layer",
               width > p->tensor ? "tensor x fsdp = " : "tensor=", width, k->F, k->name);
    return k->E ? refuse_experts(k, p, room, size) : NULL;
}

const char *serve_refuse(const sm_serve *s, const sm_plan *p, char *room, size_t size) {
    int chips = sm_plan_chips(p);
    if (p->data < 1 || p->fsdp < 1 || p->tensor < 1 || p->context < 1 || p->expert < 1 ||
        p->pipeline < 1)
        REFUSE("the degrees of a plan are at least 1");
    if (chips > s->system.chips)
        REFUSE("the plan takes %d chips and %s has %d", chips, s->system.text, s->system.chips);
    int kv = tensor_over_kv(s, p->tensor), q = p->tensor / kv;
    for (int k = 0; k < s->kinds; k++) {
        const char *why = refuse_kind(&s->model.kind[k], p, kv, q, room, size);
        if (why) return why;
    }
    if (p->expert > 1 && !s->experts) REFUSE("expert=%d, but this model has no experts", p->expert);
    if (s->model.D % p->fsdp) REFUSE("fsdp=%d does not divide the width D=%d", p->fsdp, s->model.D);
    if (p->pipeline > s->model.L)
        REFUSE("pipeline=%d, but the model has %d layers", p->pipeline, s->model.L);
    return NULL;
}
