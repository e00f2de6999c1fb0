/* What each leaf of the search may choose once the degrees are fixed. */
#include <math.h>

#include "search_space.h"

static bool fixed(const sm_search_options *o, sm_plan_key key) { return o->fixed.given >> key & 1; }

static void fill_memory(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                        choices *c) {
    c->n_zero = c->n_recompute = c->n_offload = 0;
    /* tensor too: what seq=on leaves whole over its chips, their norms, is partial over them */
    bool replicas = (double)plan->data * plan->expert * plan->context * plan->tensor > 1;
    if (plan->fsdp > 1) c->zero[c->n_zero++] = 3;
    else if (fixed(o, SM_PLAN_ZERO)) c->zero[c->n_zero++] = o->fixed.zero == 3 ? 2 : o->fixed.zero;
    else if (!replicas) c->zero[c->n_zero++] = 1;
    else
        for (int z = 0; z <= 2; z++) c->zero[c->n_zero++] = z;
    if (fixed(o, SM_PLAN_RECOMPUTE)) c->recompute[c->n_recompute++] = o->fixed.recompute;
    else
        for (int r = 0; r < SM_RECOMPUTE_COUNT; r++)
            c->recompute[c->n_recompute++] = (sm_recompute)r;
    bool host = t->system.chip.pcie_bytes_per_s_oneway.value > 0; /* a way to host memory */
    if (!host) c->offload[c->n_offload++] = SM_OFFLOAD_NONE;
    else if (fixed(o, SM_PLAN_OFFLOAD)) c->offload[c->n_offload++] = o->fixed.offload;
    else
        for (int f = 0; f < SM_OFFLOAD_COUNT; f++) c->offload[c->n_offload++] = f;
}

static void add_pipeline(choices *c, sm_schedule s, int v) {
    c->pipeline[c->n_pipeline++] = (pipeline_choice){s, v};
}

static void fill_pipeline(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                          choices *c) {
    static const int virtual_stages[MAX_VIRTUAL] = {2, 3, 4, 5, 6, 8, 10, 16};
    c->n_pipeline = 0;
    if (plan->pipeline == 1) {
        add_pipeline(c, SM_SCHEDULE_1F1B, 1);
        return;
    }
    for (int s = 0; s < SM_SCHEDULE_COUNT; s++) {
        if (fixed(o, SM_PLAN_SCHEDULE) && (int)o->fixed.schedule != s) continue;
        if (s != SM_SCHEDULE_INTERLEAVED) {
            bool two = s == SM_SCHEDULE_ZB_V || s == SM_SCHEDULE_DUALPIPE;
            if (fixed(o, SM_PLAN_VIRTUAL) && o->fixed.virtual_stages != (two ? 2 : 1) &&
                !fixed(o, SM_PLAN_SCHEDULE))
                continue;
            add_pipeline(c, (sm_schedule)s, two ? 2 : 1);
            continue;
        }
        for (int i = 0; i < MAX_VIRTUAL; i++) {
            int v = fixed(o, SM_PLAN_VIRTUAL) ? o->fixed.virtual_stages : virtual_stages[i];
            if (v >= 2 && plan->pipeline * v <= most_chunks(t))
                add_pipeline(c, SM_SCHEDULE_INTERLEAVED, v);
            if (fixed(o, SM_PLAN_VIRTUAL)) break;
        }
    }
}

/* Powers of two up to all that a replica gets. */
static void fill_microbatch(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                            choices *c) {
    double most = ceil(t->sequences / ((double)plan->data * plan->fsdp * plan->expert));
    c->n_microbatch = 0;
    if (fixed(o, SM_PLAN_MICROBATCH)) {
        if (o->fixed.microbatch <= most) c->microbatch[c->n_microbatch++] = o->fixed.microbatch;
        return;
    }
    int b = 1;
    for (; b <= most && c->n_microbatch < MAX_MICROBATCH - 1; b *= 2)
        c->microbatch[c->n_microbatch++] = b;
    int last = b / 2;
    if (last < most && most < 1e6) c->microbatch[c->n_microbatch++] = (int)most;
}

/* Those of n values that the space has; returns how many. */
static int keep_allowed(const choices *c, sm_plan_key key, int *value, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (sm_plan_limit_allows(&c->limits, key, value[i])) value[kept++] = value[i];
    return kept;
}

static void keep_pipelines(choices *c) {
    int kept = 0;
    for (int i = 0; i < c->n_pipeline; i++) {
        pipeline_choice p = c->pipeline[i];
        if (sm_plan_limit_allows(&c->limits, SM_PLAN_SCHEDULE, (int)p.schedule) &&
            sm_plan_limit_allows(&c->limits, SM_PLAN_VIRTUAL, p.virtual_stages))
            c->pipeline[kept++] = p;
    }
    c->n_pipeline = kept;
}

static void keep_recompute(choices *c) {
    int kept = 0;
    for (int i = 0; i < c->n_recompute; i++)
        if (sm_plan_limit_allows(&c->limits, SM_PLAN_RECOMPUTE, (int)c->recompute[i]))
            c->recompute[kept++] = c->recompute[i];
    c->n_recompute = kept;
}

bool choices_fill(const sm_train *t, const sm_search_options *o, const sm_plan *plan, choices *c) {
    if (!sm_plan_space_of(o->space, plan, &c->limits)) return false;
    c->keys = sm_plan_keys_for(&t->model);
    fill_memory(t, o, plan, c);
    fill_pipeline(t, o, plan, c);
    fill_microbatch(t, o, plan, c);
    if (!o->space) return true;
    c->n_zero = keep_allowed(c, SM_PLAN_ZERO, c->zero, c->n_zero);
    c->n_offload = keep_allowed(c, SM_PLAN_OFFLOAD, c->offload, c->n_offload);
    c->n_microbatch = keep_allowed(c, SM_PLAN_MICROBATCH, c->microbatch, c->n_microbatch);
    if (plan->pipeline > 1) keep_pipelines(c);
    if (!o->fixed.recompute_ops[0]) keep_recompute(c);
    return c->n_zero && c->n_offload && c->n_microbatch && c->n_pipeline && c->n_recompute;
}

/* What can be said of a plan in the space: `all` is what gathers least again, too. */
static bool is_regathered(const choices *c, int regather, int least) {
    for (int r = SM_REGATHER_ALL; r <= SM_REGATHER_NONE; r++)
        if ((r & least) == regather && sm_plan_limit_allows(&c->limits, SM_PLAN_REGATHER, r))
            return true;
    return false;
}

int choices_regather(const sm_search_options *o, const choices *c, const sm_plan *plan,
                     bool on_host, sm_regather regather[SM_REGATHER_COUNT]) {
    sm_plan p = *plan;
    p.offload = on_host ? SM_OFFLOAD_ACTIVATIONS : SM_OFFLOAD_NONE;
    int n = 0, least = (int)sm_plan_least_regather(&p);
    if (fixed(o, SM_PLAN_REGATHER)) {
        regather[0] = (sm_regather)((int)o->fixed.regather & least);
        return 1;
    }
    for (int r = SM_REGATHER_NONE; r >= SM_REGATHER_ALL; r--)
        if ((r & least) == r && (!o->space || is_regathered(c, r, least)))
            regather[n++] = (sm_regather)r; /* one plan has one form */
    return n;
}

/* Of one choice of what shards the program. */
typedef struct counting {
    const sm_search_options *options;
    const choices *c;
    double plans;
} counting;

static bool count(void *context, sm_plan *plan) {
    counting *x = context;
    sm_regather regather[SM_REGATHER_COUNT];
    int n[2];
    if (x->options->space && !choices_allow(x->c, plan)) return true;
    for (int host = 0; host < 2; host++)
        n[host] = choices_regather(x->options, x->c, plan, host, regather);
    for (int f = 0; f < x->c->n_offload; f++) x->plans += n[offloads_activations(x->c->offload[f])];
    return true;
}

double choices_leaves(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                      const choices *c) {
    double orders = 1, axes = 0;
    counting rules = {o, c, 0};
    sm_plan copy = *plan;
    for (int i = 0; i < SM_PLAN_DEGREES && !fixed(o, SM_PLAN_ORDER); i++)
        if (sm_plan_degree_of(plan, i) > 1) orders *= ++axes;
    if (!fixed(o, SM_PLAN_DIMS) && t->system.torus_dims > 1)
        orders *= t->system.torus_dims == 3 ? 6 : 2;
    sm_plan_each_choice(&copy, &o->fixed, &t->model, count, &rules);
    return orders * rules.plans * c->n_zero * c->n_recompute * c->n_pipeline * c->n_microbatch;
}
