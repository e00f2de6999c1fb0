/* Every way to split a number of chips into degrees, with a first bound for each. */

#include "search_space.h"

double search_floor(const sm_train *t, const sm_plan *plan, int chips) {
    const sm_calibration *c = t->calibration;
    double best =
        fmax(fmax(c->matmul_efficiency, c->matmul_efficiency_fp8), sm_attention_best_efficiency(c));
    double peak = fmax(sm_chip_peak(&t->system.chip, plan->dtype, NULL),
                       sm_chip_peak(&t->system.chip, SM_BF16, NULL));
    return model_flops_of(t, plan) * t->sequences * t->seq / (chips * peak * best);
}

/* ---- enumeration ---- */

static bool add_node(plan_search *h, const sm_plan *plan, const known_limits *known) {
    choices c;
    if (!choices_fill(h->train, h->options, plan, known, &c)) return true;
    /* Their number is that of any node with as many values of each kind, in the same spaces. */
    const int n[] = {c.n_zero, c.n_recompute, c.n_offload, c.n_pipeline, c.n_microbatch};
    uint64_t key = sm_hash_mixed(sm_hash_bytes(&c.in, sizeof c.in), c.spaces);
    for (int i = 0; i < 5; i++) key = sm_hash_mixed(key, (uint32_t)n[i]);
    for (int k = 0; k < SM_PLAN_DEGREES; k++)
        key = sm_hash_mixed(key, sm_plan_degree_of(plan, k) > 1);
    counted *at = &h->counted[key % COUNTED];
    if (at->key != key) *at = (counted){key, choices_leaves(h->train, h->options, plan, &c)};
    h->space += at->leaves;
    if (h->count_only) return true;
    int axes = 0;
    for (int k = 0; k < SM_PLAN_DEGREES; k++) axes += sm_plan_degree_of(plan, k) > 1;
    if (axes > h->axes) h->axes = axes;
    if (c.n_microbatch > h->microbatches) h->microbatches = c.n_microbatch;
    size_t room = h->room; /* of both */
    node *nodes = sm_grow(h->node, h->nodes, &room, sizeof *nodes);
    if (nodes) h->node = nodes;
    double *bounds = nodes ? sm_grow(h->bound, h->nodes, &h->room, sizeof *bounds) : NULL;
    if (!bounds) return false;
    h->bound = bounds;
    h->node[h->nodes] = (node){
        {plan->data, plan->fsdp, plan->tensor, plan->context, plan->expert, plan->pipeline}, 0};
    h->bound[h->nodes++] = objective_of(h->options, plan, h->floor_s, 0);
    return true;
}

bool search_splits(const sm_train *t, int key, int degree) {
    if (degree == 1) return true;
    switch (key) {
    case SM_PLAN_TENSOR: /* heads that it does not divide are copied */
        for (int k = 0; k < t->kinds; k++)
            if (t->model.kind[k].F && t->model.kind[k].F % degree) return false;
        return true;
    case SM_PLAN_CONTEXT: return fmod(t->seq, degree) == 0 && t->seq / degree >= 128;
    case SM_PLAN_EXPERT:
        return t->most_experts > 0 && fmod(t->most_experts, degree) == 0 && degree <= t->sequences;
    case SM_PLAN_PIPELINE: return degree <= t->model.L;
    default: return degree <= t->sequences;
    }
}

static const int order[SM_PLAN_DEGREES] = {SM_PLAN_TENSOR,   SM_PLAN_CONTEXT, SM_PLAN_EXPERT,
                                           SM_PLAN_PIPELINE, SM_PLAN_FSDP,    SM_PLAN_DATA};

int search_order(const void *a, const void *b) {
    const node *one = a, *other = b;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        int x = one->degree[order[i]], y = other->degree[order[i]];
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* What the spaces that have plans of the degrees before know with one more. */
static space_set narrow(const sm_plan_space *spaces, const sm_plan *plan, int depth,
                        const known_limits *before, known_limits *out) {
    unsigned known = 0;
    int i = 0;
    for (int k = 0; k < depth; k++) known |= 1u << order[k];
    out->spaces = 0;
    for (const sm_plan_space *s = spaces; s; s = s->next, i++) {
        if (!(before->spaces >> i & 1)) continue;
        out->of[i] = before->of[i];
        if (sm_plan_space_narrow(s, plan, known, known | 1u << order[depth], &out->of[i]))
            out->spaces |= 1u << i;
    }
    return out->spaces;
}

static bool split(plan_search *h, sm_plan *plan, int depth, int left, const known_limits *known) {
    const sm_search_options *o = h->options;
    if (depth == SM_PLAN_DEGREES) return left == 1 ? add_node(h, plan, known) : true;
    int key = order[depth], *degree = sm_plan_degree(plan, key);
    int only = o->fixed.given >> key & 1 ? sm_plan_degree_of(&o->fixed, key) : 0;
    known_limits own;
    for (int i = 0; i < h->divisors && h->divisor[i] <= left; i++) {
        const bool last = depth == SM_PLAN_DEGREES - 1;
        const int d = only ? only : last ? left : h->divisor[i];
        *degree = d;
        if (d <= left && left % d == 0 && (only || search_splits(h->train, key, d)) &&
            (!o->max_degree[key] || d <= o->max_degree[key]) &&
            (!o->space || narrow(o->space, plan, depth, known, &own)) &&
            !split(h, plan, depth + 1, left / d, &own))
            return false;
        if (only || last) break;
    }
    *degree = 1;
    return true;
}

sm_status search_enumerate(plan_search *h, int chips, sm_error *err) {
    sm_plan plan = h->options->fixed;
    known_limits all = {0};
    int n = 0;
    for (const sm_plan_space *s = h->options->space; s; s = s->next, n++) all.of[n] = s->limits;
    all.spaces = (1u << n) - 1;
    h->nodes = 0;
    h->n_near = 0;
    h->floor_s = search_floor(h->train, &plan, chips);
    h->divisors = 0;
    for (int d = 1; d <= chips / 2; d++)
        if (chips % d == 0) h->divisor[h->divisors++] = d;
    h->divisor[h->divisors++] = chips;
    assert(h->divisors <= MAX_DIVISORS);
    for (int k = 0; k < SM_PLAN_DEGREES; k++) *sm_plan_degree(&plan, k) = 1;
    return split(h, &plan, 0, chips, &all) ? SM_OK : sm_fail_memory(err);
}
