/* The plans of one node under one rule, one microbatch and one placement's collectives: schedules x
 * recomputation x ZeRO x offload x what is gathered again.
 *
 * Keeping what was gathered makes fewer collectives and takes more memory, and changes nothing
 * else: a plan that keeps less is never quicker than the same plan that keeps more. So what keeps
 * less is looked at only where something that keeps more did not fit. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "search_space.h"

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
    l->least_memory = fmin(l->least_memory, memo->bytes);
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
bool expansion_hopeless(const expansion *x, double seconds) {
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
    if (expansion_hopeless(x, stage / p * m)) return true;
    if (p == 1 || x->plan.layout[0]) return false; /* stages may have any number of layers */
    for (int i = 0; i < x->c.n_pipeline; i++) {
        pipeline_choice c = x->c.pipeline[i];
        bool whole = c.schedule <= SM_SCHEDULE_INTERLEAVED;
        int chunk = x->t->model.L / (p * c.virtual_stages);
        if ((c.schedule == SM_SCHEDULE_DUALPIPE) != dual) continue;
        fill = fmin(fill, dual ? (half - 1) * layers * forward
                               : (p - 1) * chunk * (forward + (whole ? backward : 0)));
    }
    return expansion_hopeless(x, fill + layers * (forward + backward) * m);
}

/* Of the spaces that have what is chosen above, the ZeRO stage and the offload are left. */
static bool is_in_space(const expansion *x) {
    const choices *c = &x->c;
    return x->in & c->in.zero[x->plan.zero] & c->in.offload[x->plan.offload];
}

/* A leaf that beats what is known becomes the node's best. exact: pipeline_s is no mere bound. */
static void price_leaf(expansion *x, double pipeline_s, bool exact) {
    stages *s = &x->l->s;
    if (!is_in_space(x) || too_large(x)) return;
    memcpy(x->l->p.load, x->l->load[x->plan.zero], sizeof x->l->p.load);
    step_end end = step_end_of(x->t, &x->plan, &x->l->p, s);
    double expected_s = step_close(x->t, &x->plan, pipeline_s, &end);
    if (expansion_hopeless(x, expected_s)) return;
    if (!exact && !x->bounding) {
        if (x->simulated_s < 0) x->simulated_s = stages_run(&x->plan, s, true).total_s;
        expected_s = step_close(x->t, &x->plan, x->simulated_s, &end);
        if (expansion_hopeless(x, expected_s)) return;
    }
    double memory = memory_of(x);
    x->evaluated += !x->bounding;
    if (memory > memory_capacity(x->t)) return;
    double objective = objective_of(x->h->options, &x->plan, expected_s, memory);
    if (objective >= x->threshold) return;
    x->threshold = objective;
    x->found = true;
    if (!x->bounding) x->best = x->plan;
}

/* Shared out the further the less a chip holds, and less with the optimizer in host memory: where
 * that is too large every other plan of the schedule is. */
static bool any_fits(expansion *x, bool activations, const int *zero, int n_zero) {
    const bool one = !(x->in & (x->in - 1)); /* space, whose values are free of one another */
    if (!x->h->options->prune) return true;
    for (int z = n_zero - 1; z >= 0; z--)
        for (int f = x->c.n_offload - 1; f >= 0; f--) {
            if (offloads_activations(x->c.offload[f]) != activations) continue;
            x->plan.zero = zero[z];
            x->plan.offload = x->c.offload[f];
            if (!is_in_space(x)) continue; /* and what is may share out less than others */
            if (!too_large(x)) return true;
            if (memory_of(x) < HUGE_VAL && one) return false; /* not of the host's memory */
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
    char room[128];
    int per_stage = x->plan.virtual_stages;
    if (layout_refuse(x->t, &x->plan, room, sizeof room) ||
        (x->plan.pipeline > 1 &&
         (chunk_count(&x->plan) > most_chunks(x->t) ||
          !sm_schedule_possible(x->plan.schedule, x->plan.pipeline, per_stage,
                                microbatches_of(x->t, &x->plan), &why))))
        return false;
    if (expansion_hopeless(x, schedule_floor(x)) || !any_fits(x, activations, zero, n_zero))
        return false;
    stages_chunks(x->t, &x->plan, &x->l->p, EXPECTED, s);
    x->simulated_s = -1;
    bool exact = false;
    sm_pipeline_time time = sm_pipeline_closed(&s->pipeline, &exact);
    if (expansion_hopeless(x, time.total_s)) return exact;
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
    const space_set above = x->in;
    space_set exact = 0; /* 1F1B, in these */
    bool hopeful = false;
    for (int n = x->c.n_pipeline - 1; n >= 0; n--) {
        sm_schedule schedule = x->c.pipeline[n].schedule;
        int split = schedule >= SM_SCHEDULE_ZB_H1; /* weight gradients apart: other passes */
        if ((schedule == SM_SCHEDULE_DUALPIPE) != dual) continue;
        x->in = above & x->c.in.pipeline[n];
        if (!x->in) continue;
        if (schedule == SM_SCHEDULE_GPIPE && !(x->in & ~exact) && x->h->options->prune) continue;
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
        if (schedule == SM_SCHEDULE_1F1B && known) exact = x->in;
    }
    x->in = above;
}

/* From what keeps most on: what keeps less has a chance where all that keep more, in its spaces,
 * were too large somewhere. For memory alone what keeps least is looked at. */
static void try_regather(expansion *x, bool activations, const int *zero, int n_zero) {
    bool prune = x->h->options->prune;
    bool memory = x->h->options->objective == SM_OBJECTIVE_MEMORY;
    int n = x->n_regather[activations], first = prune && memory ? n - 1 : 0;
    const regather_choice *regather = x->regather[activations];
    const space_set above = x->in;
    unsigned tight = 0; /* bit per value: some plan of it did not fit */
    for (int i = first; i < n; i++) {
        x->in = above & regather[i].in;
        bool hopeful = x->in != 0;
        for (int k = first; k < i; k++)
            if ((regather[k].regather & regather[i].regather) == regather[i].regather &&
                !(x->in & ~regather[k].in) && !(tight >> regather[k].regather & 1) && prune)
                hopeful = false;
        if (!hopeful) continue;
        x->squeezed = false;
        x->plan.regather = regather[i].regather;
        for (int dual = 0; dual < 2; dual++) try_schedules(x, dual, activations, zero, n_zero);
        if (x->squeezed) tight |= 1u << regather[i].regather;
    }
    x->in = above;
}

static void try_zero(expansion *x, const int *zero, int n_zero) {
    const space_set above = x->in;
    for (int activations = 0; activations < 2; activations++) {
        bool offered = false;
        for (int f = 0; f < x->c.n_offload; f++)
            offered |= offloads_activations(x->c.offload[f]) == activations;
        for (int r = 0; offered && r < x->c.n_recompute; r++) {
            x->recompute = r;
            x->plan.recompute = x->c.recompute[r];
            x->in = above & x->c.in.recompute[x->plan.recompute];
            if (x->in) try_regather(x, activations, zero, n_zero);
        }
    }
    x->in = above;
}

/* Could any plan of this microbatch win, given its collectives as priced in p->comm? */
static bool comm_hopeless(expansion *x) {
    bool any = false;
    x->plan.recompute = SM_RECOMPUTE_NONE;
    x->plan.offload = SM_OFFLOAD_NONE;
    x->plan.regather = x->regather[0][0].regather;
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

/* ---- a microbatch ---- */

static const timed *timed_of(expansion *x) {
    pieces *p = &x->l->p;
    const int parts[] = {x->plan.tensor, x->plan.context, x->plan.expert, x->plan.microbatch};
    uint64_t key = p->v->work;
    for (int i = 0; i < 4; i++) key = sm_hash_mixed(key, (uint32_t)parts[i]);
    timed *at = &x->l->memo[key % x->l->n_timed];
    if (at->key == key) return at;
    pieces_time(x->t, &x->plan, p);
    memcpy(at->time, p->time, (size_t)p->v->pieces * sizeof *at->time);
    memcpy(at->kept, p->kept, (size_t)p->v->pieces * sizeof *at->kept);
    at->total_s = piece_time_total(x->t, at->time);
    at->key = key;
    return at;
}

static bool load_microbatch(expansion *x, int i) {
    pieces *p = &x->l->p;
    x->microbatch = i;
    x->plan.microbatch = x->c.microbatch[i];
    sm_degrees_microbatch(&p->d, x->plan.microbatch);
    const timed *at = timed_of(x);
    double least = at->total_s / x->plan.pipeline * microbatches_of(x->t, &x->plan);
    if (expansion_hopeless(x, least)) return false;
    memcpy(p->time, at->time, (size_t)p->v->pieces * sizeof p->time[0]);
    memcpy(p->kept, at->kept, (size_t)p->v->pieces * sizeof p->kept[0]);
    return true;
}

void leaves_try(expansion *x, int i) {
    int shared[4], n = 0;
    bool two = false;
    const space_set above = x->in;
    if (!(above & x->c.in.microbatch[i]) || !load_microbatch(x, i)) return;
    x->plan.zero = x->c.zero[0];
    pieces_comm(x->t, &x->plan, &x->l->p);
    if (x->h->options->prune && comm_hopeless(x)) return;
    x->in &= x->c.in.microbatch[i];
    for (int z = 0; z < x->c.n_zero; z++) {
        if (x->c.zero[z] == 2) two = true;
        else shared[n++] = x->c.zero[z];
    }
    if (n) try_zero(x, shared, n);
    x->plan.zero = 2; /* reduces every microbatch: other collectives */
    if (n && two) pieces_comm(x->t, &x->plan, &x->l->p);
    if (two) try_zero(x, &(const int){2}, 1);
    x->in = above;
}
