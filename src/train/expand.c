/* All plans of one node: placements x microbatches x schedules x recomputation x ZeRO x offload x
 * what is gathered again.
 *
 * Keeping what was gathered makes fewer collectives and takes more memory, and changes nothing
 * else: a plan that keeps less is never quicker than the same plan that keeps more. So what keeps
 * less is looked at only where something that keeps more did not fit. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "search_space.h"

typedef struct expansion {
    const plan_search *h;
    const sm_train *t;
    lane_scratch *l;
    outcome *out;
    sm_plan plan;
    choices c;
    double threshold;  /* only better plans matter */
    int n_regather[2]; /* activations on the chip; in host memory */
    sm_regather regather[2][SM_REGATHER_COUNT];
    bool squeezed;                       /* some plan did not fit */
    double simulated_s;                  /* of the schedule at hand, < 0 before it is needed */
    int microbatch, recompute, pipeline; /* indices in choices, for what is kept of a node */
} expansion;

double objective_of(const sm_search_options *o, const sm_plan *plan, double expected_s,
                    double memory) {
    switch (o->objective) {
    case SM_OBJECTIVE_COST:
        return expected_s * ((double)plan->data * plan->fsdp * plan->tensor * plan->context *
                             plan->expert * plan->pipeline);
    case SM_OBJECTIVE_MEMORY: return memory;
    default: return expected_s;
    }
}

/* Memory of the plan at hand; its ZeRO stage's loads become those of p. */
static double memory_of(expansion *x) {
    lane_scratch *l = x->l;
    sm_memory memory;
    memory_memo *memo = &l->memory[x->microbatch][x->recompute][x->pipeline][x->plan.zero]
                                  [x->plan.offload][x->plan.regather];
    if (memo->stamp == l->stamp) return memo->bytes;
    sm_pipeline timed_pipeline = l->s.pipeline;
    memcpy(l->p.load, l->load[x->plan.zero], sizeof l->p.load);
    stages_shape(x->t, &x->plan, &l->s);
    stages_memory(x->t, &x->plan, &l->p, &l->s, &memory);
    l->s.pipeline = timed_pipeline;
    *memo = (memory_memo){l->stamp, host_fits(&memory) ? memory.total : HUGE_VAL};
    x->out->least_memory = fmin(x->out->least_memory, memo->bytes);
    return memo->bytes;
}

/* Plans that do not fit, or need more memory than one already found where memory is what counts. */
static bool too_large(expansion *x) {
    if (!x->h->options->prune) return false;
    double bytes = memory_of(x);
    bool large = bytes > memory_capacity(x->t) ||
                 (x->h->options->objective == SM_OBJECTIVE_MEMORY && bytes >= x->threshold);
    x->squeezed |= large;
    return large;
}

/* A plan whose time, or a lower bound of it, is known not to be better. */
static bool hopeless(const expansion *x, double seconds) {
    const sm_search_options *o = x->h->options;
    return o->prune && o->objective != SM_OBJECTIVE_MEMORY &&
           objective_of(o, &x->plan, seconds, 0) >= x->threshold;
}

/* No schedule of this kind of pass does better than the average stage at work, or its quickest fill
 * and its last stage. The innermost stage of a schedule waits for the first microbatch to come
 * through the chunks before it (and, where weight gradients are not put off, for the last gradient
 * to go back through them), and works on all microbatches. Whole layers of the kind that takes
 * least are counted. */
static bool passes_hopeless(const expansion *x, bool dual) {
    int p = x->plan.pipeline, layers = x->t->model.L / p;
    double stage = 0, forward = HUGE_VAL, backward = HUGE_VAL, fill = HUGE_VAL;
    const int half = p / 2;
    double m = microbatches_of(x->t, &x->plan);
    for (int k = 0; k < x->t->kinds; k++) {
        const pass *q = &x->l->p.pass[k].expected;
        double back = q->backward_input + q->backward_weight;
        stage += x->t->layers[k] * (q->forward + back);
        forward = fmin(forward, q->forward);
        backward = fmin(backward, back);
    }
    if (hopeless(x, stage / p * m)) return true;
    if (p == 1) return false;
    for (int i = 0; i < x->c.n_pipeline; i++) {
        pipeline_choice c = x->c.pipeline[i];
        bool whole = c.schedule <= SM_SCHEDULE_INTERLEAVED;
        int chunk = x->t->model.L / (p * c.virtual_stages);
        if ((c.schedule == SM_SCHEDULE_DUALPIPE) != dual) continue;
        fill = fmin(fill, dual ? (half - 1) * layers * forward
                               : (p - 1) * chunk * (forward + (whole ? backward : 0)));
    }
    return hopeless(x, fill + layers * (forward + backward) * m);
}

/* A leaf that beats what is known becomes the node's best. exact: pipeline_s is no mere bound. */
static void price_leaf(expansion *x, double pipeline_s, bool exact) {
    stages *s = &x->l->s;
    if (too_large(x)) return;
    memcpy(x->l->p.load, x->l->load[x->plan.zero], sizeof x->l->p.load);
    step_end end = step_end_of(x->t, &x->plan, &x->l->p, s);
    double expected_s = step_close(x->t, &x->plan, pipeline_s, &end);
    if (hopeless(x, expected_s)) return;
    if (!exact) {
        if (x->simulated_s < 0) x->simulated_s = stages_run(&x->plan, s, true).total_s;
        expected_s = step_close(x->t, &x->plan, x->simulated_s, &end);
        if (hopeless(x, expected_s)) return;
    }
    double memory = memory_of(x);
    x->out->evaluated++;
    if (memory > memory_capacity(x->t)) return;
    double objective = objective_of(x->h->options, &x->plan, expected_s, memory);
    if (objective >= x->threshold) return;
    x->threshold = objective;
    x->out->found = true;
    x->out->objective = objective;
    x->out->plan = x->plan;
}

static bool any_fits(expansion *x, bool activations, const int *zero, int n_zero) {
    if (!x->h->options->prune) return true;
    for (int z = 0; z < n_zero; z++)
        for (int f = 0; f < x->c.n_offload; f++) {
            if (offloads_activations(x->c.offload[f]) != activations) continue;
            x->plan.zero = zero[z];
            x->plan.offload = x->c.offload[f];
            if (!too_large(x)) return true;
        }
    return false;
}

static double passes_of(const expansion *x, const uint16_t *layers, bool backward) {
    double total = 0;
    for (int k = 0; k < x->t->kinds; k++) {
        const pass *q = &x->l->p.pass[k].expected;
        total += layers[k] * (q->forward + (backward ? q->backward_input + q->backward_weight : 0));
    }
    return total;
}

/* The bound of passes_hopeless with the chunks this schedule really has. */
static double schedule_floor(expansion *x) {
    const sm_plan *plan = &x->plan;
    int p = plan->pipeline, v = plan->virtual_stages, last = p - 1, mirror = p - 1;
    bool whole = plan->schedule <= SM_SCHEDULE_INTERLEAVED;
    if (p == 1) return 0;
    stages_layout(x->t, plan, &x->l->s);
    const chunk_layout *layout = x->l->s.layout;
    double fill, work = 0, m = microbatches_of(x->t, plan);
    if (plan->schedule == SM_SCHEDULE_DUALPIPE) last = p / 2 - 1, mirror = p / 2;
    if (plan->schedule == SM_SCHEDULE_ZB_V) mirror = p;
    fill = passes_of(x, layout->before[last], whole);
    if (plan->schedule == SM_SCHEDULE_DUALPIPE) /* half of the microbatches come from each end */
        work = 0.5 *
               (passes_of(x, layout->kind[last], true) + passes_of(x, layout->kind[mirror], true));
    else if (plan->schedule == SM_SCHEDULE_ZB_V)
        work = passes_of(x, layout->kind[last], true) + passes_of(x, layout->kind[mirror], true);
    else
        for (int i = 0; i < v; i++) work += passes_of(x, layout->kind[i * p + last], true);
    return fill + work * m;
}

/* One schedule: the pipeline's time serves every ZeRO stage (they share the passes) and optimizer
 * offload. */
static bool try_schedule(expansion *x, bool activations, const int *zero, int n_zero) {
    stages *s = &x->l->s;
    const char *why;
    int per_stage = x->plan.virtual_stages;
    if (x->plan.pipeline > 1 &&
        (chunk_count(&x->plan) > x->t->model.L ||
         !sm_schedule_possible(x->plan.schedule, x->plan.pipeline, per_stage,
                               microbatches_of(x->t, &x->plan), &why)))
        return false;
    if (hopeless(x, schedule_floor(x)) || !any_fits(x, activations, zero, n_zero)) return false;
    stages_chunks(x->t, &x->plan, &x->l->p, EXPECTED, s);
    x->simulated_s = -1;
    bool exact = false;
    sm_pipeline_time time = sm_pipeline_closed(&s->pipeline, &exact);
    if (hopeless(x, time.total_s)) return exact;
    for (int z = 0; z < n_zero; z++) {
        x->plan.zero = zero[z];
        for (int f = 0; f < x->c.n_offload; f++) {
            if (offloads_activations(x->c.offload[f]) != activations) continue;
            x->plan.offload = x->c.offload[f];
            price_leaf(x, time.total_s, exact);
        }
    }
    return exact;
}

/* All schedules whose passes are the same: dualpipe hides all-to-alls, so its passes differ from
 * the others'. GPipe comes last and only where 1F1B is not exact: its flow lines take sum f + (m-1)
 * max f + sum b + (m-1) max b, never less than 1F1B's longest chain, and it holds more. */
static void try_schedules(expansion *x, bool dual, bool activations, const int *zero, int n_zero) {
    int filled = -1;
    bool exact = false, hopeful = false;
    for (int n = x->c.n_pipeline - 1; n >= 0; n--) {
        sm_schedule schedule = x->c.pipeline[n].schedule;
        int split = schedule >= SM_SCHEDULE_ZB_H1; /* weight gradients apart: other passes */
        if ((schedule == SM_SCHEDULE_DUALPIPE) != dual) continue;
        if (schedule == SM_SCHEDULE_GPIPE && exact && x->h->options->prune) continue;
        x->pipeline = n;
        x->plan.schedule = schedule;
        x->plan.virtual_stages = x->c.pipeline[n].virtual_stages;
        x->plan.offload = activations ? SM_OFFLOAD_ACTIVATIONS : SM_OFFLOAD_NONE;
        if (filled != split) {
            pieces *p = &x->l->p;
            pieces_pass(x->t, &x->plan, 0, x->t->kinds, p);
            hopeful = !x->h->options->prune || !passes_hopeless(x, dual);
            if (hopeful) pieces_pass(x->t, &x->plan, x->t->kinds, p->v->pieces, p);
            filled = split;
        }
        if (!hopeful) continue;
        bool known = try_schedule(x, activations, zero, n_zero);
        if (schedule == SM_SCHEDULE_1F1B) exact = known;
    }
}

/* From what keeps most on: what keeps less has a chance where all that keep more were too large
 * somewhere. For memory alone what keeps least is looked at. */
static void try_regather(expansion *x, bool activations, const int *zero, int n_zero) {
    bool prune = x->h->options->prune;
    bool memory = x->h->options->objective == SM_OBJECTIVE_MEMORY;
    int n = x->n_regather[activations], first = prune && memory ? n - 1 : 0;
    const sm_regather *regather = x->regather[activations];
    unsigned tight = 0; /* bit per value: some plan of it did not fit */
    for (int i = first; i < n; i++) {
        bool hopeful = true;
        for (int k = first; k < i; k++)
            if ((regather[k] & regather[i]) == regather[i] && !(tight >> regather[k] & 1))
                hopeful = false;
        if (prune && !hopeful) continue;
        x->squeezed = false;
        x->plan.regather = regather[i];
        for (int dual = 0; dual < 2; dual++) try_schedules(x, dual, activations, zero, n_zero);
        if (x->squeezed) tight |= 1u << regather[i];
    }
}

static void try_zero(expansion *x, const int *zero, int n_zero) {
    for (int activations = 0; activations < 2; activations++) {
        bool offered = false;
        for (int f = 0; f < x->c.n_offload; f++)
            offered |= offloads_activations(x->c.offload[f]) == activations;
        for (int r = 0; offered && r < x->c.n_recompute; r++) {
            x->recompute = r;
            x->plan.recompute = x->c.recompute[r];
            try_regather(x, activations, zero, n_zero);
        }
    }
}

/* Could any plan of this microbatch win, given its collectives as priced in p->comm? */
static bool comm_hopeless(expansion *x) {
    bool any = false;
    x->plan.recompute = SM_RECOMPUTE_NONE;
    x->plan.offload = SM_OFFLOAD_NONE;
    x->plan.regather = x->regather[0][0];
    for (int dual = 0; dual < 2; dual++) {
        bool offered = false;
        for (int i = 0; i < x->c.n_pipeline; i++)
            offered |= (x->c.pipeline[i].schedule == SM_SCHEDULE_DUALPIPE) == dual;
        if (!offered) continue;
        x->plan.schedule = dual ? SM_SCHEDULE_DUALPIPE : SM_SCHEDULE_1F1B;
        pieces_pass(x->t, &x->plan, 0, x->t->kinds, &x->l->p);
        any |= !passes_hopeless(x, dual);
    }
    return !any;
}

static void load_microbatch(expansion *x, int i) {
    pieces *p = &x->l->p;
    x->plan.microbatch = x->c.microbatch[i];
    sm_degrees_microbatch(&p->d, x->plan.microbatch);
    memcpy(p->time, x->l->time[i], (size_t)p->v->pieces * sizeof p->time[0]);
    memcpy(p->kept, x->l->kept[i], (size_t)p->v->pieces * sizeof p->kept[0]);
}

static void try_microbatch(expansion *x, int i) {
    int shared[4], n = 0;
    bool two = false;
    load_microbatch(x, i);
    x->microbatch = i;
    x->plan.zero = x->c.zero[0];
    pieces_comm(x->t, &x->plan, &x->l->p);
    if (x->h->options->prune && comm_hopeless(x)) return;
    for (int z = 0; z < x->c.n_zero; z++) {
        if (x->c.zero[z] == 2) two = true;
        else shared[n++] = x->c.zero[z];
    }
    if (n) try_zero(x, shared, n);
    if (!two) return;
    x->plan.zero = 2; /* reduces every microbatch: other collectives */
    if (n) pieces_comm(x->t, &x->plan, &x->l->p);
    try_zero(x, &(const int){2}, 1);
}

static void try_placement(expansion *x) {
    pieces *p = &x->l->p;
    for (int i = 0; i < p->v->pieces; i++)
        p->gathered[i] = piece_gathered_bytes(x->t, p->v, i, &p->d, &x->plan);
    for (int z = 0; z < x->c.n_zero; z++) {
        x->plan.zero = x->c.zero[z];
        pieces_load(x->t, &x->plan, p);
        memcpy(x->l->load[x->plan.zero], p->load, sizeof p->load);
    }
    for (int i = 0; i < x->c.n_microbatch; i++)
        if (x->l->alive[i]) try_microbatch(x, i);
}

/* ---- placements ---- */

static uint64_t placement_key(const sm_placement *p) {
    uint64_t h = SM_HASH_SEED;
    for (int a = 0; a < p->axes; a++)
        for (int i = 0; i < p->axis[a].parts; i++) {
            const sm_part *q = &p->axis[a].part[i];
            uint64_t word = (uint64_t)a << 60 ^ (uint64_t)q->level << 52 ^ (uint64_t)q->size << 26 ^
                            (uint64_t)q->stride;
            h = sm_hash_mixed(h, word);
        }
    return h | 1;
}

static bool first_seen(lane_scratch *l, uint64_t key) {
    size_t size = sizeof l->seen / sizeof l->seen[0];
    for (size_t i = key % size, n = 0; n < size; i = (i + 1) % size, n++) {
        if (l->seen[i] == key) return false;
        if (l->seen[i] == 0) {
            l->seen[i] = key;
            return true;
        }
    }
    return true;
}

static void try_order(expansion *x) {
    pieces *p = &x->l->p;
    if (!sm_plan_place(&x->plan, &p->d, &x->t->system, &p->at.placement)) return;
    if (!first_seen(x->l, placement_key(&p->at.placement))) return;
    place_curves(x->t, p->v, &p->at);
    if (first_seen(x->l, p->at.signature)) try_placement(x);
}

/* Could any order that begins like this one win? */
static bool prefix_hopeless(expansion *x, int prefix, int axes) {
    pieces *p = &x->l->p;
    if (!x->h->options->prune || prefix == 0 || axes - prefix < 2) return false;
    if (x->t->system.torus_dims > 0)
        return false; /* the bound of a torus is too loose to pay for itself */
    place_prefix(x->t, p->v, &x->plan, prefix, &p->d, &p->at);
    for (int i = 0; i < x->c.n_microbatch; i++) {
        if (!x->l->alive[i]) continue;
        load_microbatch(x, i);
        x->plan.zero = x->c.zero[0] == 2 ? 1 : x->c.zero[0];
        pieces_comm(x->t, &x->plan, p);
        if (!comm_hopeless(x)) return false;
    }
    return true;
}

/* Permute the axes that shard anything; the others follow in their usual order. */
static void permute(expansion *x, int at, int n) {
    if (at == n) {
        try_order(x);
        return;
    }
    if (prefix_hopeless(x, at, n)) return;
    for (int i = at; i < n; i++) {
        uint8_t chosen = x->plan.order[i];
        memmove(&x->plan.order[at + 1], &x->plan.order[at], (size_t)(i - at));
        x->plan.order[at] = chosen;
        permute(x, at + 1, n);
        memmove(&x->plan.order[at], &x->plan.order[at + 1], (size_t)(i - at));
        x->plan.order[i] = chosen;
    }
}

/* Every order in which the torus dimensions can be filled, and in each every order of the axes. */
static void try_dims(expansion *x, int axes) {
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    int dims = x->t->system.torus_dims;
    bool given = x->h->options->fixed.given >> SM_PLAN_DIMS & 1;
    int n = given || dims < 2 ? 1 : dims == 2 ? 3 : 6;
    for (int i = 0; i < n; i++) {
        if (dims == 2 && i == 1) continue;
        if (!given) memcpy(x->plan.dims, orders[i], 3);
        permute(x, 0, axes);
    }
}

static void try_orders(expansion *x) {
    memset(x->l->seen, 0, sizeof x->l->seen);
    if (x->h->options->fixed.given >> SM_PLAN_ORDER & 1) {
        try_dims(x, 0);
        return;
    }
    const int degree[SM_PLAN_DEGREES] = {x->plan.data,    x->plan.fsdp,   x->plan.tensor,
                                         x->plan.context, x->plan.expert, x->plan.pipeline};
    sm_plan usual;
    sm_plan_defaults(&usual);
    int n = 0, rest = SM_PLAN_DEGREES;
    for (int i = 0; i < SM_PLAN_DEGREES; i++)
        if (degree[usual.order[i]] > 1) x->plan.order[n++] = usual.order[i];
    for (int i = SM_PLAN_DEGREES - 1; i >= 0; i--)
        if (degree[usual.order[i]] == 1) x->plan.order[--rest] = usual.order[i];
    try_dims(x, n);
}

/* ---- a node ---- */

static const timed *timed_of(expansion *x) {
    pieces *p = &x->l->p;
    const int parts[] = {x->plan.tensor, x->plan.context, x->plan.expert, x->plan.microbatch};
    uint64_t key = p->v->work;
    for (int i = 0; i < 4; i++) key = sm_hash_mixed(key, (uint32_t)parts[i]);
    timed *at = &x->l->memo[key % TIMED];
    if (at->key == key) return at;
    sm_degrees_microbatch(&p->d, x->plan.microbatch);
    pieces_time(x->t, &x->plan, p);
    memcpy(at->time, p->time, (size_t)p->v->pieces * sizeof *at->time);
    memcpy(at->kept, p->kept, (size_t)p->v->pieces * sizeof *at->kept);
    at->total_s = piece_time_total(x->t, at->time);
    at->key = key;
    return at;
}

/* Which microbatches could still win: first by their local work, then with every collective placed
 * as well as can be. */
static bool any_alive(expansion *x) {
    pieces *p = &x->l->p;
    bool any = false, hopeful = false;
    for (int i = 0; i < x->c.n_microbatch; i++) {
        x->plan.microbatch = x->c.microbatch[i];
        const timed *at = timed_of(x);
        double least = at->total_s / x->plan.pipeline * microbatches_of(x->t, &x->plan);
        x->l->alive[i] = !x->h->options->prune || !hopeless(x, least);
        if (!x->l->alive[i]) continue;
        memcpy(x->l->time[i], at->time, (size_t)p->v->pieces * sizeof *at->time);
        memcpy(x->l->kept[i], at->kept, (size_t)p->v->pieces * sizeof *at->kept);
        if (!x->h->options->prune) continue;
        load_microbatch(x, i);
        if (!hopeful) place_hopeful(x->t, p->v, &p->d, &p->at), hopeful = true;
        x->plan.zero = x->c.zero[0] == 2 ? 1 : x->c.zero[0];
        pieces_comm(x->t, &x->plan, p);
        x->l->alive[i] = !comm_hopeless(x);
    }
    for (int i = 0; i < x->c.n_microbatch; i++) any |= x->l->alive[i];
    return any;
}

/* What cannot fit on an average stage, with one microbatch in flight, is no choice. */
static void drop_large(expansion *x) {
    const variant *v = x->l->p.v;
    double kept = 0;
    if (!x->h->options->prune || x->plan.fsdp == 1) return;
    for (int k = 0; k < x->t->kinds; k++)
        kept += x->t->layers[k] * piece_gathered_bytes(x->t, v, k, &x->l->p.d, &x->plan).again;
    double state = least_state(x->t, v, &x->plan);
    if (state + kept / x->plan.pipeline <= memory_capacity(x->t)) return;
    for (int host = 0; host < 2; host++) {
        int n = 0;
        for (int i = 0; i < x->n_regather[host]; i++)
            if (!(x->regather[host][i] & SM_KEEPS_WEIGHTS))
                x->regather[host][n++] = x->regather[host][i];
        if (n > 0) x->n_regather[host] = n;
    }
}

static bool try_variant(void *context, sm_plan *plan) {
    expansion *x = context;
    char why[256];
    assert(plan == &x->plan);
    x->plan.microbatch = 1;
    x->plan.virtual_stages = 1;
    x->plan.schedule = SM_SCHEDULE_1F1B;
    if (degrees_refuse(x->t, &x->plan, why, sizeof why)) return true;
    x->l->p.v = built_variant(x->t, &x->plan);
    if (!x->l->p.v) return true;
    for (int host = 0; host < 2; host++)
        x->n_regather[host] = choices_regather(x->h->options, &x->plan, host, x->regather[host]);
    x->l->stamp++;
    sm_degrees_set(&x->l->p.d, &x->plan, &x->t->model);
    drop_large(x);
    if (any_alive(x)) try_orders(x);
    return true;
}

void search_expand(void *context, int lane, int place, size_t number, double threshold) {
    plan_search *h = context;
    const node *n = &h->node[number];
    lane_scratch *l = &h->lane[lane];
    expansion x = {.h = h, .t = h->train, .l = l, .out = &h->place[place], .threshold = threshold};
    *x.out = (outcome){.least_memory = HUGE_VAL};
    x.plan = h->options->fixed;
    for (int k = 0; k < SM_PLAN_DEGREES; k++) *sm_plan_degree(&x.plan, k) = n->degree[k];
    choices_fill(x.t, h->options, &x.plan, &x.c);
    sm_plan_each_choice(&x.plan, &h->options->fixed, &x.t->model, try_variant, &x);
}
