/* What each leaf of the search may choose once the degrees are fixed. */

#include "search_space.h"

static bool fixed(const sm_search_options *o, sm_plan_key key) { return o->fixed.given >> key & 1; }

/* fsdp is ZeRO-3: where the stage alone is given, it says whether replicas may be of that kind. */
static bool other_zero(const sm_search_options *o, const sm_plan *plan) {
    if (!fixed(o, SM_PLAN_ZERO) || fixed(o, SM_PLAN_FSDP)) return false;
    return o->fixed.zero == 3 ? plan->data > 1 : plan->fsdp > 1;
}

static void fill_memory(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                        choices *c) {
    c->n_zero = c->n_recompute = c->n_offload = 0;
    /* tensor too: what seq=on leaves whole over its chips, their norms, is partial over them */
    bool replicas = (double)plan->data * plan->expert * plan->context * plan->tensor > 1;
    if (other_zero(o, plan)) return;
    if (sm_plan_shards_weights(plan)) c->zero[c->n_zero++] = 3;
    else if (fixed(o, SM_PLAN_ZERO)) c->zero[c->n_zero++] = o->fixed.zero == 3 ? 2 : o->fixed.zero;
    else if (!replicas) c->zero[c->n_zero++] = 1;
    else
        for (int z = 0; z <= 2; z++) c->zero[c->n_zero++] = z;
    if (fixed(o, SM_PLAN_RECOMPUTE)) c->recompute[c->n_recompute++] = (int)o->fixed.recompute;
    else
        for (int r = 0; r < SM_RECOMPUTE_COUNT; r++) c->recompute[c->n_recompute++] = r;
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
    const int chunks = sm_plan_layout_chunks(o->fixed.layout);
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
            int v = fixed(o, SM_PLAN_VIRTUAL) ? o->fixed.virtual_stages
                    : chunks                  ? chunks / plan->pipeline
                                              : virtual_stages[i];
            if (v >= 2 && plan->pipeline * v <= most_chunks(t))
                add_pipeline(c, SM_SCHEDULE_INTERLEAVED, v);
            if (fixed(o, SM_PLAN_VIRTUAL) || chunks) break;
        }
    }
}

/* Powers of two up to all that a replica gets; that, its half, and so on while they are whole. */
static void fill_microbatch(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                            choices *c) {
    double most = ceil(t->sequences / sm_plan_replicas(plan)), two = 1, odd = sm_odd_part(most);
    c->n_microbatch = 0;
    if (fixed(o, SM_PLAN_MICROBATCH)) {
        if (o->fixed.microbatch <= most) c->microbatch[c->n_microbatch++] = o->fixed.microbatch;
        return;
    }
    if (odd == 1) odd = HUGE_VAL;
    most = fmin(most, 1e6);
    while (fmin(two, odd) <= most && c->n_microbatch < MAX_MICROBATCH) {
        double *next = two < odd ? &two : &odd;
        c->microbatch[c->n_microbatch++] = (int)*next;
        *next *= 2;
    }
}

/* ---- spaces ---- */

/* Space i has this value. */
static void has(space_set *of_value, int i, bool allowed) { *of_value |= (space_set)allowed << i; }

static void has_each(space_set *of_values, int n, int i, const sm_plan_limits *l, sm_plan_key key) {
    for (int v = 0; v < n; v++) has(&of_values[v], i, sm_plan_limit_allows(l, key, v));
}

/* Keys that shard the program: they mean something under some degrees alone. */
static void has_rules(choices *c, int i, const sm_plan_limits *l, const sm_plan *plan,
                      uint64_t keys) {
    sm_plan p = *plan;
    for (int v = 0; v < 2; v++) {
        p.seq = p.expert_tensor = v;
        has(&c->in.seq[v], i, sm_plan_limits_have(l, &p, keys & 1ull << SM_PLAN_SEQ));
        has(&c->in.expert_tensor[v], i,
            sm_plan_limits_have(l, &p, keys & 1ull << SM_PLAN_EXPERT_TENSOR));
    }
    for (int v = 0; v <= SM_CONTEXT_HEADS; v++) {
        p.context_by = (sm_context_by)v;
        has(&c->in.context_by[v], i, sm_plan_limits_have(l, &p, keys & 1ull << SM_PLAN_CONTEXT_BY));
    }
}

static bool shares(const sm_train *t, const sm_plan *plan, int microbatch, sm_plan_share share) {
    sm_plan p = *plan;
    p.microbatch = microbatch;
    return sm_plan_shares(&p, t->sequences, share);
}

static void meet_space(const sm_train *t, choices *c, int i, const sm_search_options *o,
                       const sm_plan *plan, const sm_plan_limits *l) {
    has_each(c->in.zero, 4, i, l, SM_PLAN_ZERO);
    has_each(c->in.regather, SM_REGATHER_COUNT, i, l, SM_PLAN_REGATHER);
    has_each(c->in.offload, SM_OFFLOAD_COUNT, i, l, SM_PLAN_OFFLOAD);
    for (int v = 0; v < SM_RECOMPUTE_COUNT; v++)
        has(&c->in.recompute[v], i,
            o->fixed.recompute_ops[0] || sm_plan_limit_allows(l, SM_PLAN_RECOMPUTE, v));
    for (int n = 0; n < c->n_pipeline; n++) {
        pipeline_choice p = c->pipeline[n];
        bool equal = t->model.L % (plan->pipeline * p.virtual_stages) == 0;
        has(&c->in.pipeline[n], i,
            plan->pipeline == 1 || (sm_plan_limit_allows(l, SM_PLAN_SCHEDULE, (int)p.schedule) &&
                                    sm_plan_limit_allows(l, SM_PLAN_VIRTUAL, p.virtual_stages) &&
                                    (equal || !l->equal_stages)));
    }
    for (int n = 0; n < c->n_microbatch; n++)
        has(&c->in.microbatch[n], i,
            sm_plan_limit_allows(l, SM_PLAN_MICROBATCH, c->microbatch[n]) &&
                shares(t, plan, c->microbatch[n], l->share));
    has(&c->in.unusual, i, !l->usual_order);
}

/* A space all of whose plans another has too adds none. */
static void drop_within(choices *c) {
    const space_set *of_value = (const space_set *)&c->in;
    for (int i = 0; i < SM_MOST_SPACES; i++) {
        space_set beside = c->spaces & ~(1u << i);
        if (!(c->spaces >> i & 1)) continue;
        for (size_t n = 0; n < sizeof c->in / sizeof *of_value && beside; n++)
            if (of_value[n] >> i & 1) beside &= of_value[n];
        if (beside) c->spaces &= ~(1u << i);
    }
}

/* Those of n values, by which they are counted, that a space has; returns how many. */
static int keep_had(const choices *c, const space_set *of_value, int *value, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (of_value[value[i]] & c->spaces) value[kept++] = value[i];
    return kept;
}

static void keep_numbered(choices *c) {
    int kept = 0;
    for (int i = 0; i < c->n_pipeline; i++) {
        if (!(c->in.pipeline[i] & c->spaces)) continue;
        c->in.pipeline[kept] = c->in.pipeline[i];
        c->pipeline[kept++] = c->pipeline[i];
    }
    c->n_pipeline = kept;
    kept = 0;
    for (int i = 0; i < c->n_microbatch; i++) {
        if (!(c->in.microbatch[i] & c->spaces)) continue;
        c->in.microbatch[kept] = c->in.microbatch[i];
        c->microbatch[kept++] = c->microbatch[i];
    }
    c->n_microbatch = kept;
}

bool choices_fill(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                  const known_limits *known, choices *c) {
    fill_memory(t, o, plan, c);
    fill_pipeline(t, o, plan, c);
    fill_microbatch(t, o, plan, c);
    memset(&c->in, o->space ? 0 : 0xff, sizeof c->in);
    c->spaces = !o->space;
    if (!o->space) return c->n_zero > 0;
    const uint64_t keys = sm_plan_keys_for(plan, &t->model),
                   fixed_ones = 1ull << SM_PLAN_DTYPE | 1ull << SM_PLAN_OPTIMIZER |
                                1ull << SM_PLAN_GRADIENT | 1ull << SM_PLAN_ATTENTION;
    int i = 0;
    for (const sm_plan_space *s = o->space; s; s = s->next, i++) {
        sm_plan_limits own;
        const sm_plan_limits *limits = known ? &known->of[i] : &own;
        if (known ? !(known->spaces >> i & 1) : !sm_plan_space_of(s, plan, &own)) continue;
        if (!sm_plan_limits_have(limits, plan, keys & fixed_ones)) continue;
        c->spaces |= 1u << i;
        meet_space(t, c, i, o, plan, limits);
        has_rules(c, i, limits, plan, keys);
    }
    drop_within(c);
    c->n_zero = keep_had(c, c->in.zero, c->zero, c->n_zero);
    c->n_offload = keep_had(c, c->in.offload, c->offload, c->n_offload);
    keep_numbered(c);
    c->n_recompute = keep_had(c, c->in.recompute, c->recompute, c->n_recompute);
    return c->n_zero && c->n_offload && c->n_microbatch && c->n_pipeline && c->n_recompute;
}

/* What can be said of a plan in the space: `all` is what gathers least again, too. */
static space_set regathered_in(const choices *c, int regather, int least) {
    space_set in = 0;
    for (int r = SM_REGATHER_ALL; r <= SM_REGATHER_NONE; r++)
        if ((r & least) == regather) in |= c->in.regather[r];
    return in & c->spaces;
}

int choices_regather(const sm_search_options *o, const choices *c, const sm_plan *plan,
                     bool on_host, regather_choice regather[SM_REGATHER_COUNT]) {
    sm_plan p = *plan;
    p.offload = on_host ? SM_OFFLOAD_ACTIVATIONS : SM_OFFLOAD_NONE;
    int n = 0, least = (int)sm_plan_least_regather(&p);
    if (fixed(o, SM_PLAN_REGATHER)) {
        regather[0] = (regather_choice){(sm_regather)((int)o->fixed.regather & least), c->spaces};
        return 1;
    }
    for (int r = SM_REGATHER_NONE; r >= SM_REGATHER_ALL; r--) {
        if ((r & least) != r) continue; /* one plan has one form */
        regather[n] = (regather_choice){(sm_regather)r, regathered_in(c, r, least)};
        n += regather[n].in != 0;
    }
    return n;
}

/* ---- counting ---- */

typedef struct counting {
    const sm_search_options *options;
    const choices *c;
    double orders, plans;
} counting;

/* How many of these values every space of a set has. */
static int in_all(space_set set, const space_set *of_value, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += (of_value[i] & set) == set;
    return count;
}

/* Plans with these choices of what shards the program that every space of a set has. */
static double plans_of_all(const counting *x, space_set set,
                           const regather_choice regather[2][SM_REGATHER_COUNT], const int n[2]) {
    const choices *c = x->c;
    int zero = 0, recompute = 0, kept[2] = {0}, offload = 0;
    for (int i = 0; i < c->n_zero; i++) zero += in_all(set, &c->in.zero[c->zero[i]], 1);
    for (int i = 0; i < c->n_recompute; i++)
        recompute += in_all(set, &c->in.recompute[c->recompute[i]], 1);
    for (int host = 0; host < 2; host++)
        for (int i = 0; i < n[host]; i++) kept[host] += in_all(set, &regather[host][i].in, 1);
    for (int i = 0; i < c->n_offload; i++)
        offload += in_all(set, &c->in.offload[c->offload[i]], 1) *
                   kept[offloads_activations(c->offload[i])];
    return (double)zero * recompute * offload * in_all(set, c->in.pipeline, c->n_pipeline) *
           in_all(set, c->in.microbatch, c->n_microbatch) *
           (in_all(set, &c->in.unusual, 1) ? x->orders : 1);
}

/* Of several spaces: those of each, less those of each two, and so on. */
static bool count(void *context, sm_plan *plan) {
    counting *x = context;
    regather_choice regather[2][SM_REGATHER_COUNT];
    int n[2];
    const space_set any = choices_allow(x->c, plan);
    for (int host = 0; host < 2; host++)
        n[host] = choices_regather(x->options, x->c, plan, host, regather[host]);
    for (space_set set = any; set; set = (set - 1) & any) {
        double sign = -1;
        for (space_set left = set; left; left &= left - 1) sign = -sign;
        x->plans += sign * plans_of_all(x, set, regather, n);
    }
    return true;
}

double choices_leaves(const sm_train *t, const sm_search_options *o, const sm_plan *plan,
                      const choices *c) {
    double dims = 1, axes = 0;
    counting x = {o, c, 1, 0};
    sm_plan copy = *plan;
    for (int i = 0; i < SM_PLAN_DEGREES && !fixed(o, SM_PLAN_ORDER); i++)
        if (sm_plan_degree_of(plan, i) > 1) x.orders *= ++axes;
    if (!fixed(o, SM_PLAN_DIMS) && t->system.torus_dims > 1)
        dims = t->system.torus_dims == 3 ? 6 : 2;
    sm_plan_each_choice(&copy, &o->fixed, &t->model, count, &x);
    return dims * x.plans;
}
