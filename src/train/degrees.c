/* Degrees of the mesh axes and whether they can shard a model. */
#include <math.h>
#include <stdio.h>

#include "space.h"

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
static int tensor_over_kv(const sm_train *t, int tensor) {
    int most = tensor;
    for (int k = 0; k < t->kinds; k++) most = divisor(most, kv_heads(&t->model.kind[k]));
    return most;
}

void degrees_set(degrees *d, const sm_train *t, const sm_plan *plan) {
    d->tensor = tensor_over_kv(t, plan->tensor);
    d->tensor_q = plan->tensor / d->tensor;
    const double axis[SM_AXIS_COUNT] = {
        [SM_AXIS_DATA] = plan->data,     [SM_AXIS_FSDP] = plan->fsdp,
        [SM_AXIS_EXPERT] = plan->expert, [SM_AXIS_CONTEXT] = plan->context,
        [SM_AXIS_TENSOR] = d->tensor,    [SM_AXIS_TENSOR_Q] = d->tensor_q};
    d->inverse[0] = 1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        double part = 1 / axis[a];
        d->axis[a] = axis[a];
        for (int m = 0; m < 1 << a; m++) d->inverse[m | 1 << a] = d->inverse[m] * part;
    }
    degrees_microbatch(d, plan->microbatch);
}

void degrees_microbatch(degrees *d, int microbatch) {
    d->sequences =
        microbatch * d->axis[SM_AXIS_DATA] * d->axis[SM_AXIS_FSDP] * d->axis[SM_AXIS_EXPERT];
}

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

static const char *refuse_kind(const sm_layer_kind *k, const sm_plan *p, int kv, int q, char *room,
                               size_t size) {
    int K = kv_heads(k), G = k->attention == SM_ATTENTION_MLA ? 1 : k->N / K;
    int more = p->expert_tensor ? 1 : p->tensor;
    if (K % kv || G % q)
        REFUSE("tensor=%d does not divide the %d query heads (%d KV heads) of a %s layer",
               p->tensor, k->N, K, k->name);
    if (k->F % p->tensor)
        REFUSE("tensor=%d does not divide the MLP width F=%d of a %s layer", p->tensor, k->F,
               k->name);
    if (k->E && (k->E_shared * k->F_shared) % p->tensor)
        REFUSE("tensor=%d does not divide the shared experts' width %d", p->tensor,
               k->E_shared * k->F_shared);
    if (k->E && p->expert_tensor && k->F_expert % p->tensor)
        REFUSE("tensor=%d does not divide the experts' width %d", p->tensor, k->F_expert);
    if (k->E && k->E % (p->expert * more))
        REFUSE("%d experts do not divide by expert=%d%s%d", k->E, p->expert,
               more > 1 ? " x tensor=" : " x ", more);
    if (p->context_by == SM_CONTEXT_HEADS && p->context > 1 && K % (kv * p->context))
        REFUSE("context_by=heads needs KV heads (%d) that divide by tensor x context = %d", K,
               kv * p->context);
    return NULL;
}

const char *degrees_refuse(const sm_train *t, const sm_plan *p, char *room, size_t size) {
    int kv = tensor_over_kv(t, p->tensor), q = p->tensor / kv;
    int split = p->context * (p->seq ? p->tensor : 1);
    double replicas = (double)p->data * p->fsdp * p->expert;
    for (int k = 0; k < t->kinds; k++) {
        const char *why = refuse_kind(&t->model.kind[k], p, kv, q, room, size);
        if (why) return why;
    }
    if (p->expert > 1 && t->most_experts == 0)
        REFUSE("expert=%d, but this model has no experts", p->expert);
    if (fmod(t->seq, split) != 0)
        REFUSE("sequences of %.0f tokens do not divide by %d (context%s)", t->seq, split,
               p->seq && p->tensor > 1 ? " x tensor" : "");
    if (p->pipeline > t->model.L)
        REFUSE("pipeline=%d, but the model has %d layers", p->pipeline, t->model.L);
    if (chunk_count(p) > t->model.L || chunk_count(p) > MAX_CHUNKS)
        REFUSE("pipeline=%d x virtual=%d makes more chunks than the %d layers", p->pipeline,
               p->virtual_stages, t->model.L);
    if (replicas > t->sequences)
        REFUSE("data x fsdp x expert = %.0f replicas, but a batch has only %.0f sequences",
               replicas, t->sequences);
    if (p->microbatch > ceil(t->sequences / replicas))
        REFUSE("microbatch=%d, but a replica gets only %.0f sequences", p->microbatch,
               ceil(t->sequences / replicas));
    return NULL;
}
