/* One node of the search: its bound, and the best of its plans. */

#include "search_space.h"

/* Bytes of weights and gradients on an average stage, sharded as far as the degrees allow: they
 * must fit, beside nothing else. */
static double least_state(const sm_train *t, const pieces *p, const sm_plan *plan) {
    double bytes = 0, g = gradient_bytes(plan);
    for (int k = 0; k < t->kinds; k++)
        for (int i = 0; i < p->v->piece[k].part.classes; i++) {
            const sm_weight_class *c = &p->v->piece[k].part.weight[i];
            double held = c->elements * c->share / p->d.ways[c->stored] * t->layers[k];
            if (c->tied) continue;
            bytes += held * fmin(2, class_bytes(t, plan, c));
            if (c->fixed) continue;
            bytes += (!sm_plan_shards_weights(plan) ? held / p->d.ways[c->partial] : held) * g;
        }
    return bytes / plan->pipeline;
}

/* ---- rules ---- */

static bool add_rules(void *context, sm_plan *plan) {
    char why[256];
    expansion *x = context;
    family *f = &x->l->family;
    family_rules *to = &f->rules[f->n];
    assert(plan == &x->plan && f->n < MOST_RULES);
    x->plan.microbatch = 1;
    x->plan.virtual_stages = 1;
    x->plan.schedule = SM_SCHEDULE_1F1B;
    if (degrees_refuse(x->t, &x->plan, why, sizeof why)) return true;
    to->v = x->l->p.v = built_variant(x->t, &x->plan);
    memset(to->alive, 0, sizeof to->alive);
    if (!to->v || !leaves_work(x, to->alive)) return true;
    to->plan = x->plan;
    f->n++;
    return true;
}

static void take_family(expansion *x) {
    family *f = &x->l->family;
    const sm_plan *p = &x->plan;
    const choices *c = &x->c;
    family_key key = {.degree = {p->data * p->fsdp, sm_plan_shards_weights(p), p->tensor,
                                 p->context, p->expert, p->pipeline}};
    memcpy(key.pipeline, c->pipeline, (size_t)c->n_pipeline * sizeof *c->pipeline);
    memcpy(key.microbatch, c->microbatch, (size_t)c->n_microbatch * sizeof *c->microbatch);
    if (memcmp(&f->key, &key, sizeof key) == 0 && p->state_copies <= 1) return;
    f->key = key;
    f->n = 0;
    leaves_shape(x);
    sm_plan_each_choice(&x->plan, &x->h->options->fixed, &x->t->model, add_rules, x);
}

/* Make these rules ready to be priced, with the schedules of each microbatch whose work leaves them
 * a chance; false where they are none. */
static bool take_rules(expansion *x, const family_rules *of, schedule_set *alive) {
    pieces *p = &x->l->p;
    const int data = x->plan.data, fsdp = x->plan.fsdp;
    x->rules = of;
    x->plan = of->plan;
    x->plan.data = data;
    x->plan.fsdp = fsdp;
    x->in = choices_allow(&x->c, &x->plan);
    if (!x->in) return false;
    p->v = of->v;
    if (x->h->options->prune && least_state(x->t, p, &x->plan) > memory_capacity(x->t))
        return false;
    for (int host = 0; host < 2; host++)
        x->n_regather[host] =
            choices_regather(x->h->options, &x->c, &x->plan, host, x->regather[host]);
    x->l->stamp++;
    pieces_gathered(x->t, &x->plan, p);
    for (int dual = 0; dual < 2; dual++) x->end_s[dual] = x->t->calibration->step_overhead_s;
    x->loaded = x->laid = false;
    memcpy(alive, of->alive, sizeof of->alive);
    return true;
}

/* ---- the bound ---- */

static void bound_rules(expansion *x, const family_rules *of) {
    schedule_set alive[MAX_MICROBATCH];
    if (!take_rules(x, of, alive)) return;
    for (int i = 0; i < x->c.n_microbatch; i++) {
        if (alive[i]) alive[i] = leaves_hopeful(x, i, alive[i]);
        if (alive[i]) leaves_try(x, i, alive[i]);
    }
}

static expansion node_of(plan_search *h, int lane, size_t number, double threshold) {
    expansion x = {.h = h, .t = h->train, .l = &h->lane[lane], .threshold = threshold};
    x.plan = h->options->fixed;
    for (int k = 0; k < SM_PLAN_DEGREES; k++)
        *sm_plan_degree(&x.plan, k) = h->node[number].degree[k];
    choices_fill(x.t, h->options, &x.plan, NULL, &x.c);
    x.l->p.at.copies = x.plan.state_copies > 1 ? x.plan.state_copies : 1;
    sm_degrees_set(&x.l->p.d, &x.plan, &x.t->model);
    for (int dual = 0; dual < 2; dual++) x.end_s[dual] = x.t->calibration->step_overhead_s;
    take_family(&x);
    return x;
}

/* What the best plan takes that has the rules and the microbatch of what made the bound and lies in
 * the usual order; HUGE_VAL: none is better than the threshold. */
static double reach(expansion *x, double threshold) {
    pieces *p = &x->l->p;
    schedule_set alive[MAX_MICROBATCH];
    int i = 0;
    while (x->c.microbatch[i] != x->best.microbatch) i++;
    x->bounding = x->found = false;
    x->threshold = threshold;
    if (!take_rules(x, x->best_rules, alive)) return HUGE_VAL;
    if (!sm_plan_place(&x->plan, &p->d, &x->t->system, &p->at.placement)) return HUGE_VAL;
    place_curves(x->t, p->v, false, &p->at);
    x->known = false;
    leaves_try(x, i, alive[i]);
    return x->found ? x->threshold : HUGE_VAL;
}

double search_refine(void *context, int lane, size_t number, double threshold) {
    plan_search *h = context;
    expansion x = node_of(h, lane, number, threshold * (1 + ROUNDING));
    if (h->node[number].reach > 0) return h->bound[number]; /* by a climb */
    x.bounding = true;
    for (int i = 0; i < x.l->family.n; i++) bound_rules(&x, &x.l->family.rules[i]);
    const double bound = x.found ? x.threshold * (1 - ROUNDING) : HUGE_VAL;
    h->node[number].reach = x.found ? reach(&x, threshold) : HUGE_VAL;
    return bound;
}

/* ---- the best plan ---- */

/* By which of these schedules microbatch i could win with the curves at hand. */
static schedule_set still_alive(expansion *x, int i, schedule_set from) {
    const double threshold = x->threshold;
    const bool found = x->found;
    x->bounding = x->one = true;
    x->found = false;
    x->threshold = threshold * (1 + ROUNDING);
    if (from) leaves_try(x, i, from);
    from = x->found ? x->open : 0;
    x->bounding = x->one = false;
    x->found = found;
    x->threshold = threshold;
    return from;
}

static bool any_alive(expansion *x, const schedule_set *from, schedule_set *alive) {
    bool any = false;
    for (int i = 0; i < x->c.n_microbatch; i++) {
        alive[i] = still_alive(x, i, from[i]);
        any |= alive[i] != 0;
    }
    return any;
}

static listed *place_at(expansion *x, int number) {
    listed *at = &x->l->placement[number];
    memcpy(x->plan.order, at->order, sizeof at->order);
    memcpy(x->plan.dims, at->dims, sizeof at->dims);
    x->l->p.at.placement = at->placement;
    return at;
}

/* On a torus, where no placement of some axes will narrow them: which microbatches could win with
 * the least that each collective costs on any placement of this node. */
static bool least_alive(expansion *x, schedule_set *alive) {
    placements_least(x->t, true, x->l);
    x->rest = REST_LEAST;
    x->loaded = x->known = false;
    return x->l->placements > 0 && any_alive(x, alive, alive);
}

static void expand_placement(expansion *x, listed *of, const schedule_set *from) {
    const variant *v = x->l->p.v;
    const double end_s[2] = {x->end_s[0], x->end_s[1]}; /* with what is placed already */
    placements_list(x->h, &x->plan, x->l, of);
    for (int n = of->first; n < of->first + of->count; n++) {
        listed *at = place_at(x, n);
        schedule_set alive[MAX_MICROBATCH] = {0};
        x->in = choices_allow(&x->c, &x->plan) & (at->usual || !at->whole ? ~0u : x->c.in.unusual);
        if (!x->in) continue;
        x->loaded = x->known = false;
        memcpy(x->end_s, end_s, sizeof end_s);
        if (!at->whole) {
            place_hopeful(x->t, v, &x->plan, &x->l->p.d, at->axes, &x->l->p.at);
            x->rest = REST_NONE;
            if (any_alive(x, from, alive)) expand_placement(x, at, alive);
            continue;
        }
        place_curves(x->t, v, x->h->options->prune, &x->l->p.at);
        x->rest = x->h->options->prune ? REST_PLACED : REST_NONE;
        for (int i = 0; i < x->c.n_microbatch; i++)
            if (from[i]) leaves_try(x, i, from[i]);
    }
}

/* Bounds first: with the collectives at hand, which no placement beats. */
static void expand_rules(expansion *x, const family_rules *of) {
    lane_scratch *l = x->l;
    const bool prune = x->h->options->prune, torus = x->t->system.torus_dims > 0;
    schedule_set alive[MAX_MICROBATCH];
    bool any = false;
    if (!take_rules(x, of, alive)) return;
    for (int i = 0; i < x->c.n_microbatch; i++) {
        if (alive[i]) alive[i] = leaves_hopeful(x, i, alive[i]);
        any |= alive[i] != 0;
    }
    if (!any || (prune && !any_alive(x, alive, alive))) return;
    if (torus) placements_list(x->h, &x->plan, l, &l->none);
    if (prune && torus && !least_alive(x, alive)) return;
    expand_placement(x, &l->none, alive);
}

void search_expand(void *context, int lane, int place, size_t number, double threshold) {
    plan_search *h = context;
    expansion x = node_of(h, lane, number, threshold);
    x.l->none = (listed){.first = -1};
    x.l->p.at.leasts = 0;
    for (int i = 0; i < x.l->family.n; i++) expand_rules(&x, &x.l->family.rules[i]);
    h->place[place] = (outcome){x.found, x.threshold, x.best, x.evaluated};
}
