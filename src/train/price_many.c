/* Many plans at once: what those beside each other have in common is worked out once. */
#include <math.h>

#include "space.h"

/* What was worked out last, each by the keys of the plan that it depends on: the others are 0. */
typedef struct last {
    const variant *v;
    sm_plan work, place, comm, load, line;
    double pipeline_s;
} last;

/* The part of a plan that local work depends on, and the memory of it; whichever ZeRO stage is not
 * the one that reduces every microbatch is the same to collectives. */
static void split_keys(const sm_plan *plan, last *to) {
    sm_plan p = *plan;
    p.given = 0;
    p.zero = plan->zero == 2;
    p.optimizer = (sm_optimizer)0;
    p.offload = plan->offload == SM_OFFLOAD_ACTIVATIONS || plan->offload == SM_OFFLOAD_BOTH;
    to->line = p;
    p.schedule = (sm_schedule)0;
    p.virtual_stages = 0;
    p.recompute = (sm_recompute)0;
    p.regather = (sm_regather)0;
    p.offload = 0;
    memset(p.layout, 0, sizeof p.layout);
    to->comm = p;
    to->load = p;
    to->load.zero = plan->zero;
    to->load.optimizer = plan->optimizer;
    to->load.microbatch = 0;
    to->work = to->place = to->comm;
    to->place.microbatch = to->place.zero = 0;
    to->work.zero = to->work.data = to->work.pipeline = 0;
    memset(to->work.order, 0, sizeof p.order);
    memset(to->work.dims, 0, sizeof p.dims);
}

/* Bytes between members may differ where the values do not: then it is worked out again. */
static bool is_same(const sm_plan *a, const sm_plan *b) {
    return memcmp(a, b, sizeof *a) == 0; /* NOLINT(bugprone-suspicious-memory-comparison) */
}

/* The pieces and the pipeline of a plan that is made canonical and not refused. */
static sm_status work_out(sm_train *t, const sm_plan *plan, last *before, sm_error *err) {
    pieces *p = t->one;
    last now = {.v = train_variant(t, plan, err)};
    if (!now.v) return err->status ? err->status : SM_INTERNAL;
    split_keys(plan, &now);
    now.pipeline_s = before->pipeline_s;
    const bool other = now.v != before->v;
    const bool moved = other || !is_same(&now.place, &before->place);
    const bool works = other || !is_same(&now.work, &before->work);
    const bool moves = moved || works || !is_same(&now.comm, &before->comm);
    before->v = NULL; /* until all is there */
    if (plan->recompute_ops[0] && works) {
        sm_status s = train_custom_set(t, plan, err);
        if (s) return s;
    }
    p->v = now.v;
    if (moved && !pieces_place(t, plan, p)) return SM_BAD_INPUT;
    sm_degrees_set(&p->d, plan, &t->model);
    if (works) pieces_time(t, plan, p), pieces_kept(t, plan, p), pieces_gathered(t, plan, p);
    if (moves) pieces_comm(t, plan, true, true, p), pieces_comm_again(t, p);
    if (moved || !is_same(&now.load, &before->load)) pieces_load(t, plan, p);
    if (moves || !is_same(&now.line, &before->line)) {
        pieces_ways(t, plan, 0, p->v->pieces, p);
        pieces_pass(t, plan, 0, p->v->pieces, p);
        stages_chunks(t, plan, p, EXPECTED, t->one_stages);
        now.pipeline_s = stages_run(t->one_stages).total_s;
    }
    *before = now;
    return SM_OK;
}

static sm_status price(sm_train *t, sm_plan *plan, last *before, sm_plan_outcome *to,
                       sm_error *err) {
    char why[256];
    const int part = t->part;
    plan_canonical(t, plan);
    train_take(t, sm_plan_chips(plan));
    if (t->part != part) before->v = NULL;
    if (plan_refuse(t, plan, why, sizeof why)) return SM_BAD_INPUT;
    sm_status s = work_out(t, plan, before, err);
    if (s) return s;
    sm_price_of_plan whole = {.fits = false};
    stages_shape(t, plan, t->one_stages);
    step_end end = step_end_of(t, plan, t->one, t->one_stages);
    to->expected_s = step_close(t, plan, before->pipeline_s, &end);
    if (!isfinite(to->expected_s)) return SM_INTERNAL;
    stages_memory(t, plan, t->one, t->one_stages, &whole.memory);
    whole.fits = memory_fits(t, &whole.memory);
    s = price_step_memory(t, plan, t->one, &whole, err);
    to->memory_bytes = whole.memory.total;
    to->fits = whole.fits;
    return s;
}

sm_status sm_train_price_many(sm_train *train, const sm_plan *plans, size_t n,
                              sm_plan_outcome *outcomes, sm_error *err) {
    last before = {.v = NULL};
    sm_error own;
    sm_status s = price_scratch(train, err);
    if (!s && !stages_remember(train->one_stages, train->arena)) s = sm_fail_memory(err);
    for (size_t i = 0; i < n && !s; i++) {
        sm_plan plan = plans[i];
        outcomes[i] = (sm_plan_outcome){.fits = false};
        own = (sm_error){.status = SM_OK};
        const sm_status status = price(train, &plan, &before, &outcomes[i], &own);
        if (status) outcomes[i] = (sm_plan_outcome){.status = status};
        if (status <= SM_NEGATIVE || status == SM_BAD_INPUT) continue;
        if (own.status) s = status;
        if (own.status && err) *err = own;
    }
    return s;
}
