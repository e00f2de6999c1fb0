/* What a piece adds to its stage: weights, gradients, optimizer state, and the collectives that end
 * a step. */
#include <assert.h>
#include <math.h>

#include "space.h"

int set_of(const sm_plan *plan) {
    return plan->recompute_ops[0] ? CUSTOM_SET : (int)plan->recompute;
}

double gradient_bytes(const sm_plan *plan) { return sm_dtype_bytes(plan->gradient); }

bool reduces_whole(const sm_train *t, const sm_plan *plan) {
    return plan->zero == 0 || (plan->zero == 1 && t->software_memory.reduced_whole);
}

double reduced_bytes(const sm_train *t, const sm_plan *plan) {
    bool wide = t->software_memory.reduced_wide && reduces_whole(t, plan);
    return sm_dtype_bytes(wide ? SM_FP32 : plan->gradient);
}

typedef struct optimizer {
    double bytes;
    bool master;
    double flops;
} optimizer;

static const optimizer *optimizer_of(const sm_plan *plan) {
    static const optimizer all[SM_OPTIMIZER_COUNT] = {
#define X(id, name, bytes, master, flops, help) {bytes, master, flops},
        SM_OPTIMIZERS(X)
#undef X
    };
    assert(plan->optimizer < SM_OPTIMIZER_COUNT);
    return &all[plan->optimizer];
}

/* Weights that are stored in single precision are the master copy of the optimizer themselves. */
double state_bytes(const sm_train *t, const sm_plan *plan) {
    const optimizer *o = optimizer_of(plan);
    double single = sm_dtype_bytes(SM_FP32);
    return o->bytes - (t->weight_bytes == single && o->master ? single : 0);
}

double moment_share(const sm_train *t, const sm_plan *plan) {
    const optimizer *o = optimizer_of(plan);
    double state = state_bytes(t, plan), moments = o->bytes - (o->master ? 4 : 0);
    return state > 0 ? moments / 2 / state : 0;
}

static void add_reduction(const sm_train *t, const sm_timed_curve *reduce, double bytes,
                          double *seconds, stage_load *add) {
    const sm_timed_line *line;
    *seconds += sm_timed_curve_s(reduce, bytes, &line);
    for (int l = 0; line && l < t->system.levels; l++) {
        add->reduce_ideal[l] += bytes * reduce->ideal[l];
        add->busy[l] += bytes * reduce->busy[l];
    }
}

/* Offloaded: gradients go down while updated weights come up, and the host reads gradient and state
 * and writes state and weight of all its chips (CPU Adam: ZeRO-Offload, arXiv 2101.06840). */
static double offloaded_s(const sm_train *t, double updated, double gradient, double state) {
    const sm_chip *chip = &t->system.chip;
    double link = chip->pcie_bytes_per_s_oneway.value, host = chip->host_bytes_per_s.value;
    double moved = updated * larger(gradient, t->weight_bytes);
    double updating = updated * (gradient + 2 * state + t->weight_bytes);
    if (link <= 0) return 0;
    return larger(moved / link, host > 0 ? updating * sm_chip_host_sharers(chip) / host : 0);
}

/* Under which the weights of a stage are held and reduced. */
typedef struct loading {
    const sm_train *t;
    const variant *v;
    const sm_degrees *d;
    const placed *at;
    const sm_plan *plan;
} loading;

/* What a chip holds of all weights goes out in as many parts as there are shards, each of whole
 * weights and in a broadcast of its own: the class's share of that. */
static double broadcast_s(const loading *l, const sm_timed_curve *curve, double held, double shards,
                          const sm_weight_class *c) {
    const sm_timed_line *line;
    const double pipeline = l->plan->pipeline;
    double weights, all = variant_trained(l->t, l->v, &weights) / l->d->ways[c->stored] / pipeline;
    double parts = smaller(shards, larger(1, weights / pipeline));
    double one = sm_timed_curve_s(curve, all / parts * l->t->weight_bytes, &line);
    return shards > 1 ? parts * one * held / all : 0;
}

static void add_class(const loading *l, const class_slots *slots, const sm_weight_class *c,
                      stage_load *add) {
    const sm_train *t = l->t;
    const variant *v = l->v;
    const sm_degrees *d = l->d;
    const placed *p = l->at;
    const sm_plan *plan = l->plan;
    double gradient = gradient_bytes(plan), state = state_bytes(t, plan);
    double held = c->elements * sm_weight_share(c, plan->pipeline) / d->ways[c->stored];
    int copies = c->partial & SM_BIT(SM_AXIS_DATA) ? p->copies : 1;
    double shared = copies / d->ways[c->partial]; /* of the state, over those replicas */
    double updated = plan->zero >= 1 ? held * shared : held;
    double weight_bytes = class_bytes(t, plan, c);
    const sm_software_memory *h = &t->software_memory;
    const double whole = held * d->ways[c->stored & class_shards(v, c)];
    const bool alone = h->shards_single && whole > held && !c->fixed && optimizer_of(plan)->master;
    add->params += alone ? 0 : held * weight_bytes;
    if (c->fixed) return;
    if (whole > held) add->sums += larger(0, whole * h->sums_bytes - held * gradient);
    add->more += plan->gradient == SM_FP32 ? held * h->gradient_bytes : updated * h->shard_bytes;
    if (h->shards_beside && updated < held) add->more += updated * weight_bytes;
    if (c->expert && sm_dtype_bytes(plan->dtype) <= 1) add->more += whole * h->narrow_bytes;
    add->gradients += (plan->zero == 2 ? held * shared : held) * gradient;
    add->optimizer += updated * state;
    if (c->share < 1 && plan->pipeline > 1) {
        add->shared += held * gradient;
        add->stages = larger(add->stages, ceil(smaller(plan->pipeline, 1 / c->share)));
    }
    /* read gradient and state, write state and weight */
    double traffic = updated * (gradient + 2 * state + weight_bytes);
    /* the runtime (train_optimizer.c): gradients into a row that was cleared, to their sum, weights
     * into a row and back; sums cleared, squared for the norm, read and cleared again, moments and
     * weights read and written */
    if (t->software.rows)
        traffic = held * (6 * gradient + 5 * t->weight_bytes) +
                  updated * (4 * gradient + 2 * state + 2 * t->weight_bytes);
    const sm_calibration *cal = t->calibration;
    add->offload_s += offloaded_s(t, updated, gradient, state);
    add->update_s += traffic / (t->system.chip.memory_bytes_per_s.value * cal->memory_efficiency);
    add->update_s += updated * optimizer_of(plan)->flops * t->model.D /
                     (sm_chip_peak(&t->system.chip, SM_BF16, NULL) * cal->matmul_efficiency);
    bool all = reduces_whole(t, plan);
    uint8_t reduce = all ? slots->all_reduce : slots->reduce_scatter;
    if (plan->zero != 2)
        add_reduction(t, p->slot[reduce], held * reduced_bytes(t, plan), &add->reduce_s, add);
    if (plan->zero == 0) return;
    if (copies > 1 && !all)
        add_reduction(t, p->slot[slots->across], updated * gradient, &add->reduce_s, add);
    if (t->software_memory.broadcasts)
        add->update_s += broadcast_s(l, p->slot[slots->broadcast], held, 1 / shared, c);
    else add_reduction(t, p->slot[slots->all_gather], held * weight_bytes, &add->gather_s, add);
}

void piece_load(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                const placed *p, const sm_plan *plan, stage_load *load) {
    const sm_partition *part = &v->piece[index].part;
    const loading l = {t, v, d, p, plan};
    for (int i = 0; i < part->classes; i++) {
        bool tied = part->weight[i].tied;
        if (tied && index != head_piece(t)) continue; /* its own piece has it */
        add_class(&l, &v->weight[index][i], &part->weight[i], &load[tied ? copy_piece(t) : index]);
    }
}

/* Logits at the loss. The program keeps them once in fp32, and a stage counts as much again for
 * their gradient: what the software holds otherwise is the difference, shared over the two. */
static double loss_bytes(const sm_software_memory *h, sm_size logits, const sm_degrees *d) {
    double held = size_at(&logits, d), bytes = h->loss_bytes;
    logits.mask = (sm_axes)(logits.mask & ~SM_AXES_TENSOR);
    double whole = size_at(&logits, d);
    if (held < whole && h->loss_sharded_bytes > 0) bytes = h->loss_sharded_bytes;
    return bytes / 2 * (h->loss_whole ? whole : held) - 4 * held;
}

/* Of a norm: what its kernels keep, and what its result is more when kept whole. */
static double norm_bytes(const sm_software_memory *h, sm_size result, const sm_degrees *d,
                         bool whole) {
    double sharded = size_at(&result, d);
    result.mask = (sm_axes)(result.mask & ~SM_AXES_TENSOR);
    double more = size_at(&result, d) - sharded;
    return h->norm_bytes * sharded + (h->gathered_kept && !whole ? 2 * more : 0);
}

/* Kept beyond, or short of, what fused kernels keep in 16 bits. whole: regather keeps it so. */
static double eager_bytes(const sm_software_memory *h, const eager_array *e, const sm_degrees *d,
                          sm_dtype dtype, bool whole) {
    double elements = size_at(&e->elements, d), wide = 2 - sm_dtype_bytes(dtype);
    switch (e->kind) {
    case EAGER_NORM: return norm_bytes(h, e->elements, d, whole);
    case EAGER_GATE: return h->gate_apart ? 2 * elements : 0;
    case EAGER_HEADS: return h->heads_bytes * elements;
    case EAGER_LOSS: return loss_bytes(h, e->elements, d);
    case WEIGHTED: return h->weighted_early ? -2 * elements : 0;
    case OPERAND: return h->operands_narrow && wide > 0 ? -wide * elements : 0;
    }
    return 0;
}

static double set_bytes(const sm_train *t, const piece_set *s, const sm_degrees *d, sm_dtype dtype,
                        bool whole) {
    double bytes = 0;
    for (int i = 0; i < s->kept; i++) bytes += size_at(&s->kept_bytes[i], d);
    for (int i = 0; i < s->eager; i++)
        bytes += eager_bytes(&t->software_memory, &s->eager_array[i], d, dtype, whole);
    return bytes;
}

void piece_kept_bytes(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                      sm_dtype dtype, kept_bytes *out) {
    const piece *p = &v->piece[index];
    /* XLA has the gradients of an elementwise op take the place of its operands */
    bool compiled = t->system.chip.fabric == SM_FABRIC_TORUS;
    out->gradients = 0;
    for (int i = 0; i < p->gradients && !compiled; i++)
        out->gradients += size_at(&p->gradient_bytes[i], d);
    for (int s = 0; s < MAX_SETS; s++) {
        out->sharded[s] = set_bytes(t, &p->set[s], d, dtype, false);
        /* what software keeps whole of its own accord is no less */
        out->whole[s] = larger(out->sharded[s], set_bytes(t, &p->set_whole[s], d, dtype, true));
    }
}

/* XLA scatters gradients in the 16 bits that the weights travel in, one layer while the next one's
 * gradient is made: of two layers one gradient is whole. */
gathered_bytes piece_gathered_bytes(const sm_train *t, const variant *v, int index,
                                    const sm_degrees *d, const sm_plan *plan) {
    const sm_partition *part = &v->piece[index].part;
    bool compiled = t->system.chip.fabric == SM_FABRIC_TORUS;
    double gradient = compiled ? t->weight_bytes / 2.0 : gradient_bytes(plan), elements = 0;
    double again = 0, weights = 0;
    if (!sm_plan_shards_weights(plan)) return (gathered_bytes){0};
    for (int i = 0; i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        double whole = c->elements / d->ways[c->stored & ~class_shards(v, c)];
        bool held = d->ways[c->stored & class_shards(v, c)] == 1;
        if (held && (c->fixed || c->expert)) continue; /* as it is used */
        weights += whole * class_bytes(t, plan, c);
        if (!c->fixed) elements += whole;
    }
    for (int i = 0; i < part->comms; i++) {
        const sm_comm *c = &part->comm[i];
        if (c->repeated && c->role == SM_ROLE_WEIGHT && d->ways[c->axes] > 1)
            again += size_at(&c->bytes, d);
    }
    return (gathered_bytes){weights + elements * gradient, elements * gradient, again};
}
