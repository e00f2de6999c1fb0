/* How many engines a row ran, on how many chips each, and how the model is sharded in one. */
#include <string.h>

#include "inference_parts.h"

static bool has_experts(const sm_model *m) { return m->kind[m->layer[m->L - 1]].E > 0; }

/* Where the source is silent: the least power of two of chips whose memory the weights fill to no
 * more than MOST_FULL. */
static int least_tensor(const sm_chip *chip, const sm_model *m, const sm_serve_dtypes *d,
                        int chips) {
    static const double MOST_FULL = 0.7;
    double bytes = sm_model_params(m).total * sm_dtype_bytes(d->weights);
    int tensor = 1;
    while (2 * tensor <= chips && bytes / tensor > MOST_FULL * sm_chip_memory(chip)->value)
        tensor *= 2;
    return tensor;
}

/* What one engine is told, in devices. */
typedef struct stated {
    int tp, pp, ep;
    int attention_dp; /* ranks with sequences of their own around shared experts */
} stated;

/* Folds two cores of a chip into one. */
static bool fold(stated *s, int per_chip) {
    if (per_chip == 1) return true;
    if (s->tp % per_chip == 0) {
        s->tp /= per_chip;
        s->ep = s->ep > 1 && s->ep % per_chip == 0 ? s->ep / per_chip : s->ep;
        return true;
    }
    if (s->attention_dp % per_chip) return false;
    s->attention_dp /= per_chip;
    return true;
}

/* Experts spread over all chips of a stage, or each is sharded by the tensor axis. Around them
 * attention is data-parallel over the expert axis. */
static inference_pool engine_of(const stated *s, const sm_model *m) {
    inference_pool pool = {.engines = 1};
    sm_serve_plan_defaults(&pool.plan);
    pool.plan.tensor = s->tp;
    pool.plan.pipeline = s->pp;
    pool.plan.expert = has_experts(m) ? s->attention_dp : 1;
    pool.plan.data = has_experts(m) ? 1 : s->attention_dp;
    pool.plan.expert_tensor = !(has_experts(m) && s->ep >= s->tp && s->ep > 1);
    pool.plan.given = UINT64_MAX;
    pool.chips = sm_plan_chips(&pool.plan);
    return pool;
}

/* A pool of a disaggregated row: each worker has `tp` ranks, of which attention is sharded or, with
 * dp_attention, replicated. */
static bool pool_of(const sm_inference_pool *p, const sm_model *m, inference_pool *out) {
    stated s = {.tp = or_else(p->tp, 1),
                .pp = or_else(p->pp, 1),
                .ep = or_else(p->ep, 1),
                .attention_dp = 1};
    if (p->dp_attention == SM_YES) {
        s.attention_dp = s.tp;
        s.tp = 1;
    }
    *out = engine_of(&s, m);
    out->engines = or_else(p->workers, 1);
    return p->workers > 0 && p->tp > 0;
}

static stated stated_of(const sm_truth_row *row, const sm_chip *chip, const sm_model *m,
                        const sm_serve_dtypes *d) {
    const sm_inference_row *r = &row->of.inference;
    stated s = {.tp = r->tp, .pp = or_else(r->pp, 1), .ep = or_else(r->ep, 1), .attention_dp = 1};
    if (s.tp <= 0) s.tp = least_tensor(chip, m, d, r->chips);
    bool around = has_experts(m) && r->dp > 1 && (r->ep > 1 || s.tp == 1);
    if (around) s.attention_dp = r->dp;
    if (has_experts(m) && r->attention_dp > 0) {
        s.attention_dp = s.ep = r->attention_dp;
        s.tp = or_else(s.tp / r->attention_dp, 1);
    }
    return s;
}

/* Weights in two dimensions (Pope et al. 2022), and the cache by the batch. */
static void two_dimensional(const sm_inference_row *r, inference_pool *pool) {
    if (r->fsdp <= 1 || r->chips % r->fsdp) return;
    pool->plan.fsdp = r->fsdp;
    pool->plan.tensor = r->chips / r->fsdp;
    pool->plan.gathered = r->weights_by && strcmp(r->weights_by, "gathered") == 0;
    pool->plan.cache_by = SM_CACHE_BATCH;
    pool->chips = r->chips;
}

bool inference_layout_of(const sm_truth_row *row, const sm_chip *chip, const sm_software *software,
                         const sm_model *m, const sm_serve_dtypes *d, inference_layout *layout,
                         const char **why) {
    const sm_inference_row *r = &row->of.inference;
    memset(layout, 0, sizeof *layout);
    *why = "chips not stated";
    if (r->chips <= 0) return false;
    *why = "the pools of prefill and decode are not stated";
    if (r->disagg == SM_YES) {
        layout->apart = true;
        return pool_of(&r->prefill, m, &layout->prefill) && pool_of(&r->decode, m, &layout->decode);
    }
    stated s = stated_of(row, chip, m, d);
    *why = "devices do not fold into chips";
    if (!fold(&s, chip->devices)) return false;
    layout->decode = engine_of(&s, m);
    if (software->cache_by_batch) layout->decode.plan.cache_by = SM_CACHE_BATCH;
    two_dimensional(r, &layout->decode);
    *why = "the degrees are beyond the chips";
    layout->decode.engines = r->chips / layout->decode.chips;
    if (layout->decode.engines < 1) return false;
    layout->prefill = layout->decode;
    *why = NULL;
    return true;
}
