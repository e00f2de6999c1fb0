/* The plans of one node under one rule, one microbatch and one placement's collectives: schedules x
 * recomputation x ZeRO x offload x what is gathered again.
 *
 * Keeping what was gathered makes fewer collectives and takes more memory, and changes nothing
 * else: a plan that keeps less is never quicker than the same plan that keeps more. So what keeps
 * less is looked at only where something that keeps more did not fit. */

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
    l->p.load = l->load[x->plan.zero];
    stages_memory(x->t, &x->plan, &l->p, &l->s, &memory);
    double bytes = host_fits(&memory) ? memory.total : HUGE_VAL;
    l->least_memory = fmin(l->least_memory, bytes);
    return bytes;
}

static void take_schedule(expansion *x, int n) {
    x->plan.schedule = x->c.pipeline[n].schedule;
    x->plan.virtual_stages = x->c.pipeline[n].virtual_stages;
}

/* ---- what fits ---- */

static bool is_offered(const expansion *x, int offload) {
    for (int f = 0; f < x->c.n_offload; f++)
        if (x->c.offload[f] == offload) return true;
    return false;
}

/* With the loads at hand, of a ZeRO stage, what each piece has of weights, gradients and the
 * optimizer's state is no less. */
static void lower_state(expansion *x) {
    const bool in_host = is_offered(x, SM_OFFLOAD_OPTIMIZER) || is_offered(x, SM_OFFLOAD_BOTH);
    const int zero = x->plan.zero;
    for (int dual = 0; dual < 2; dual++)
        for (int i = 0; i <= copy_piece(x->t); i++) {
            const stage_load *load = &x->l->p.load[i];
            const double optimizer = load->optimizer * (dual && zero >= 1 ? 0.5 : 1),
                         held = load->params + load->more +
                                (x->t->software_memory.gradients_new ? 0 : load->gradients);
            double *least = &x->state[zero == 2][dual][i];
            *least = smaller(*least, held + (in_host ? 0 : optimizer));
        }
}

static floors_of all_kept(expansion *x) {
    floors_of of = {.sets = x->c.n_recompute};
    for (int r = 0; r < of.sets; r++) {
        x->plan.recompute = (sm_recompute)x->c.recompute[r];
        of.set[r] = set_of(&x->plan);
    }
    for (int f = 0; f < x->c.n_offload; f++) {
        const int host = offloads_activations(x->c.offload[f]);
        for (int i = 0; i < x->n_regather[host]; i++)
            of.ways[host] |= 1u << x->regather[host][i].regather;
    }
    return of;
}

/* Those that may fit or need less than all that were looked at become `fit`. */
static void add_fitting(expansion *x, int n, const floors_of *asked, fit_memo *memo) {
    lane_scratch *l = x->l;
    double most = memory_capacity(x->t);
    memory_floors bytes[2];
    if (x->h->options->objective == SM_OBJECTIVE_MEMORY) most = smaller(most, x->threshold);
    most = larger(most, l->least_memory) * (1 + ROUNDING);
    take_schedule(x, n);
    stages_shape(x->t, &x->plan, &l->s);
    const bool dual = x->plan.schedule == SM_SCHEDULE_DUALPIPE;
    const double *const state[2] = {x->state[0][dual], x->state[1][dual]}; /* HUGE_VAL: none */
    stages_floors(x->t, &x->plan, &l->p, &l->s, asked, state, bytes);
    for (int two = 0; two < 2; two++) {
        for (int way = 0; way < 2 * SM_REGATHER_COUNT; way++) {
            const int host = way / SM_REGATHER_COUNT, g = way % SM_REGATHER_COUNT;
            if (!(asked->ways[host] >> g & 1)) continue;
            for (int r = 0; r < asked->sets; r++) {
                if (bytes[two][host][g][r] > most) continue;
                memo->fit[two][host][g][r] |= 1u << n;
                memo->any |= 1u << n;
            }
        }
    }
}

/* Of some schedules those that may fit with any choice of anything else. */
static schedule_set may_fit(expansion *x, schedule_set of) {
    fit_memo *memo = &x->l->fit[x->microbatch];
    if (!x->h->options->prune) return of;
    if (memo->stamp != x->l->stamp) *memo = (fit_memo){.stamp = x->l->stamp};
    if (of & ~memo->asked) {
        const floors_of asked = all_kept(x);
        for (int n = 0; n < x->c.n_pipeline; n++)
            if ((of & ~memo->asked) >> n & 1) add_fitting(x, n, &asked, memo);
    }
    memo->asked |= of;
    return of & memo->any;
}

/* Plans that do not fit, or need more memory than one already found where memory is what counts. */
static bool too_large(expansion *x, double bytes) {
    if (!x->h->options->prune) return false;
    bool large = bytes > memory_capacity(x->t) ||
                 (x->h->options->objective == SM_OBJECTIVE_MEMORY && bytes >= x->threshold);
    x->squeezed |= large;
    return large;
}

/* Some plans are ruled out by their time: memory is not all that counts, and one is known. */
static bool times_count(const expansion *x) {
    const sm_search_options *o = x->h->options;
    return o->prune && o->objective != SM_OBJECTIVE_MEMORY && x->threshold < HUGE_VAL;
}

/* A plan whose time, or a lower bound of it, is known not to be better. */
static bool is_hopeless(const expansion *x, double seconds) {
    return times_count(x) && objective_of(x->h->options, &x->plan, seconds, 0) >= x->threshold;
}

/* One plan that can win is all that is asked for, and there is one. */
static bool is_enough(const expansion *x) { return x->one && x->found; }

/* ---- schedules ----
 * A stage waits for the first microbatch to come through the chunks before its own, works on all of
 * them, and the last gradient goes back through the chunks before; weight gradients that are put
 * off may be made meanwhile. */

static bool splits(sm_schedule s) { return s >= SM_SCHEDULE_ZB_H1; }

/* Schedules whose passes are the same: dualpipe hides all-to-alls, and others put weight gradients
 * off. */
static schedule_set alike(const choices *c, int kind) {
    schedule_set set = 0;
    for (int n = 0; n < c->n_pipeline; n++) {
        sm_schedule s = c->pipeline[n].schedule;
        if ((s == SM_SCHEDULE_DUALPIPE ? 2 : splits(s) ? 0 : 1) == kind) set |= 1u << n;
    }
    return set;
}

static void fill_shape(expansion *x, schedule_shape *to) {
    const sm_plan *plan = &x->plan;
    const bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE,
               folds = plan->schedule == SM_SCHEDULE_ZB_V;
    const int p = plan->pipeline, half = p / 2, last = dual ? half - 1 : p - 1;
    stages_layout(x->t, plan, &x->l->s);
    const chunk_layout *layout = x->l->s.layout;
    schedule_spot *inner = &to->spot[0], *end = &to->spot[1];
    to->spots = folds ? 2 : 1;
    inner->has_head = !dual && !folds;
    end->has_head = true;
    for (int k = 0; k < x->t->kinds; k++) {
        double own = 0;
        if (dual) /* half of the microbatches come from each end */
            own = 0.5 * (layout->kind[last][k] + layout->kind[half][k]);
        else if (folds) own = layout->kind[last][k] + layout->kind[p][k];
        else
            for (int i = 0; i < plan->virtual_stages; i++) own += layout->kind[i * p + last][k];
        inner->own[k] = own;
        inner->before[k] = layout->before[last][k];
        end->own[k] = layout->kind[layout->chunks - 1][k];
        end->before[k] = layout->before[layout->chunks - 1][k];
    }
}

void leaves_shape(expansion *x) {
    char room[128];
    schedule_set laid = 0;
    const int p = x->plan.pipeline;
    for (int n = 0; n < x->c.n_pipeline; n++) {
        take_schedule(x, n);
        if (layout_refuse(x->t, &x->plan, room, sizeof room) ||
            (p > 1 && chunk_count(&x->plan) > most_chunks(x->t)))
            continue;
        fill_shape(x, &x->l->shape[n]);
        laid |= 1u << n;
    }
    for (int kind = 0; kind < PASS_KINDS; kind++)
        x->l->family.passes[kind] = laid & alike(&x->c, kind);
    for (int i = 0; i < x->c.n_microbatch; i++) {
        x->l->possible[i] = p > 1 ? 0 : laid;
        x->plan.microbatch = x->c.microbatch[i];
        int m = microbatches_of(x->t, &x->plan);
        for (int n = 0; n < x->c.n_pipeline && p > 1; n++) {
            pipeline_choice c = x->c.pipeline[n];
            if (laid >> n & 1 && sm_schedule_possible(c.schedule, p, c.virtual_stages, m, NULL))
                x->l->possible[i] |= 1u << n;
        }
    }
}

static void add_passes(const pass *from, double times, pass *to) {
    to->forward += times * from->forward;
    to->backward_input += times * from->backward_input;
    to->backward_weight += times * from->backward_weight;
}

static pass sum_of(const expansion *x, const pass *at, const double *layers) {
    pass sum = {0, 0, 0};
    for (int k = 0; k < x->t->kinds; k++) add_passes(&at[k], layers[k], &sum);
    return sum;
}

/* The passes at hand; ends: what comes before all layers and the head too. */
static void take_passes(const expansion *x, bool ends, pass *to) {
    const piece_pass *of = x->l->p.pass;
    const int kinds = x->t->kinds, head = head_piece(x->t);
    for (int k = 0; k < kinds; k++) to[k] = of[k].expected;
    to[kinds] = to[kinds + 1] = (pass){0, 0, 0};
    for (int i = embedding_piece(x->t); ends && i < head; i++)
        add_passes(&of[i].expected, 1, &to[kinds]);
    if (ends) to[kinds + 1] = of[head].expected;
}

/* Those of a kind of schedules, of the pieces from `from` on: of layers, or of all. */
static const sm_schedule passes_like[PASS_KINDS] = {SM_SCHEDULE_ZB_H1, SM_SCHEDULE_1F1B,
                                                    SM_SCHEDULE_DUALPIPE};

static void kind_passes(expansion *x, int kind, int from, bool ends, pass *to) {
    pieces *p = &x->l->p;
    x->plan.schedule = passes_like[kind];
    pieces_pass(x->t, &x->plan, from, ends ? p->v->pieces : x->t->kinds, p);
    take_passes(x, ends, to);
}

/* total: of each of these passes. */
static double spot_s(const expansion *x, const schedule_spot *s, const pass *at,
                     const double *total, bool apart) {
    const int first = x->t->kinds, head = first + 1;
    const double m = x->microbatches;
    if (apart) {
        pass own = sum_of(x, at, s->own), before = sum_of(x, at, s->before);
        add_passes(&at[first], 1, &before);
        if (s->has_head) add_passes(&at[head], 1, &own);
        return before.forward + m * (own.forward + own.backward_input) +
               larger(m * own.backward_weight, before.backward_input);
    }
    double sum = total[first] + (s->has_head ? m * total[head] : 0);
    for (int k = 0; k < first; k++) /* all are there: hopeful fills them */
        // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
        sum += (s->before[k] + m * s->own[k]) * total[k];
    return sum;
}

/* Those of some schedules that can win with passes of their kind: the average stage at work and
 * those that wait, and what follows, take no longer than what is known. */
static schedule_set hopeful(const expansion *x, const pass *at, schedule_set of) {
    double total[MAX_PIECES + 1], busy = 0;
    const int p = x->plan.pipeline;
    if (!x->h->options->prune) return of;
    for (int k = 0; k < passes_of(x->t); k++) {
        total[k] = at[k].forward + at[k].backward_input + at[k].backward_weight;
        busy += k < x->t->kinds ? x->t->layers[k] * total[k] : total[k];
    }
    const double average_s = busy / p * x->microbatches * (1 - ROUNDING);
    if (is_hopeless(x, average_s + smaller(x->end_s[0], x->end_s[1]))) return 0;
    for (int n = 0; n < x->c.n_pipeline; n++) {
        const schedule_shape *s = &x->l->shape[n];
        const sm_schedule schedule = x->c.pipeline[n].schedule;
        const double end_s = x->end_s[schedule == SM_SCHEDULE_DUALPIPE];
        if (of >> n & 1 && is_hopeless(x, average_s + end_s)) of &= ~(1u << n);
        for (int i = 0; p > 1 && of >> n & 1 && i < s->spots; i++) {
            double least_s = spot_s(x, &s->spot[i], at, total, splits(schedule));
            if (is_hopeless(x, least_s * (1 - ROUNDING) + end_s)) of &= ~(1u << n);
        }
    }
    return of;
}

/* ---- plans ---- */

/* A leaf that beats what is known becomes the node's best. */
static void price_leaf(expansion *x, double least_s) {
    stages *s = &x->l->s;
    /* of the spaces that have what is chosen above, the ZeRO stage and the offload are left */
    if (!(x->in & x->c.in.zero[x->plan.zero] & x->c.in.offload[x->plan.offload])) return;
    const double memory = memory_of(x);
    if (too_large(x, memory)) return;
    if (x->end.parts <= 0) x->end = step_end_of(x->t, &x->plan, &x->l->p, s);
    step_end_offload(&x->plan, &x->end);
    double expected_s = step_close(x->t, &x->plan, least_s, &x->end);
    if (is_hopeless(x, expected_s)) return;
    if (!x->bounding) {
        if (x->simulated_s < 0) x->simulated_s = stages_simulated(s);
        expected_s = step_close(x->t, &x->plan, x->simulated_s, &x->end);
        /* 1F1B holds less than GPipe; where it had no chance or no room it was not simulated */
        bool beaten = x->plan.schedule == SM_SCHEDULE_GPIPE && x->gpipe_beaten &&
                      x->simulated_s >= x->time_1f1b_s * (1 - ROUNDING);
        if (is_hopeless(x, expected_s) || beaten) return;
    }
    x->evaluated += !x->bounding;
    if (memory > memory_capacity(x->t)) return;
    double objective = objective_of(x->h->options, &x->plan, expected_s, memory);
    if (objective >= x->threshold) return;
    x->threshold = objective;
    x->found = true;
    if (!x->one) x->best = x->plan, x->best_rules = x->rules;
}

/* One schedule: the pipeline's time serves every ZeRO stage (they share the passes) and optimizer
 * offload. */
static void try_schedule(expansion *x, bool activations, const int *zero, int n_zero) {
    stages *s = &x->l->s;
    stages_chunks(x->t, &x->plan, &x->l->p, EXPECTED, s);
    x->simulated_s = -1;
    const double least_s = sm_pipeline_bound(&s->pipeline) * (1 - ROUNDING);
    if (is_hopeless(x, least_s + x->end_s[x->plan.schedule == SM_SCHEDULE_DUALPIPE])) return;
    for (int z = 0; z < n_zero; z++) {
        x->plan.zero = zero[z];
        x->end.parts = 0;
        for (int f = 0; f < x->c.n_offload && !is_enough(x); f++) {
            if (offloads_activations(x->c.offload[f]) != activations) continue;
            x->plan.offload = x->c.offload[f];
            price_leaf(x, least_s);
        }
    }
}

/* These schedules, of which some plan was too large in those that are returned. GPipe comes last.
 */
static schedule_set try_schedules(expansion *x, bool activations, const int *zero, int n_zero,
                                  schedule_set of) {
    const space_set above = x->in;
    const bool prune = x->h->options->prune;
    space_set of_1f1b = 0;
    schedule_set large = 0;
    pass passes[MAX_PIECES + 1];
    assert(x->c.n_pipeline >= 0 && x->c.n_pipeline <= SM_SCHEDULE_COUNT + MAX_VIRTUAL);
    pieces_ways(x->t, &x->plan, 0, x->l->p.v->pieces, &x->l->p);
    for (int kind = 0; kind < PASS_KINDS; kind++) {
        schedule_set at = of & x->l->family.passes[kind];
        x->plan.offload = activations ? SM_OFFLOAD_ACTIVATIONS : SM_OFFLOAD_NONE;
        for (int ends = 0; ends < 2 && at; ends++) {
            kind_passes(x, kind, ends ? x->t->kinds : 0, ends, passes);
            at = hopeful(x, passes, at);
        }
        for (int n = x->c.n_pipeline - 1; n >= 0 && at && !is_enough(x); n--) {
            x->in = above & x->c.in.pipeline[n];
            if (!(at >> n & 1) || !x->in) continue;
            take_schedule(x, n);
            x->squeezed = false;
            x->gpipe_beaten = prune && !(x->in & ~of_1f1b);
            try_schedule(x, activations, zero, n_zero);
            if (x->plan.schedule == SM_SCHEDULE_1F1B) {
                of_1f1b = x->in;
                x->time_1f1b_s = x->simulated_s;
            }
            if (x->squeezed) large |= 1u << n;
        }
    }
    x->in = above;
    return large;
}

/* ---- what is kept ---- */

/* Schedules of which no plan was too large that gathers less again and is no slower: what keeps
 * less cannot win there. What goes to host memory takes no less than what stays. */
static schedule_set settled(const expansion *x, bool activations) {
    schedule_set set = 0;
    const int mine = (int)x->plan.regather;
    for (int host = x->host_beside ? 0 : activations; host <= activations; host++)
        for (int g = 0; g < SM_REGATHER_COUNT; g++) {
            const settled_set *done = &x->done[host][x->plan.recompute][g];
            if ((g & mine) == mine && !(x->in & ~done->in)) set |= done->schedules;
        }
    return set;
}

/* From what keeps most on. For memory alone what keeps least is looked at. */
static void try_regather(expansion *x, bool activations, const int *zero, int n_zero) {
    const bool prune = x->h->options->prune;
    const bool memory = x->h->options->objective == SM_OBJECTIVE_MEMORY;
    int n = x->n_regather[activations];
    const regather_choice *regather = x->regather[activations];
    const space_set above = x->in;
    const fit_memo *memo = &x->l->fit[x->microbatch];
    for (int i = prune && memory ? n - 1 : 0; i < n && !is_enough(x); i++) {
        x->in = above & regather[i].in;
        x->plan.regather = regather[i].regather;
        if (!x->in) continue;
        schedule_set of = x->open;
        if (prune) of &= memo->fit[zero[0] == 2][activations][x->plan.regather][x->recompute];
        if (of && prune && !memory) of &= ~settled(x, activations);
        if (!of) continue;
        schedule_set large = try_schedules(x, activations, zero, n_zero, of);
        x->done[activations][x->plan.recompute][x->plan.regather] =
            (settled_set){x->in, of & ~large};
    }
    x->in = above;
}

/* Whatever has activations in host memory there is without them there, too. */
static bool is_beside(const expansion *x, int with, int without) {
    return !is_offered(x, with) ||
           (is_offered(x, without) && !(x->in & x->c.in.offload[with] & ~x->c.in.offload[without]));
}

static void try_zero(expansion *x, const int *zero, int n_zero) {
    const space_set above = x->in;
    memset(x->done, 0, sizeof x->done);
    x->host_beside = is_beside(x, SM_OFFLOAD_ACTIVATIONS, SM_OFFLOAD_NONE) &&
                     is_beside(x, SM_OFFLOAD_BOTH, SM_OFFLOAD_OPTIMIZER);
    for (int activations = 0; activations < 2; activations++) {
        bool offered = false;
        for (int f = 0; f < x->c.n_offload; f++)
            offered |= offloads_activations(x->c.offload[f]) == activations;
        for (int r = 0; offered && r < x->c.n_recompute && !is_enough(x); r++) {
            x->recompute = r;
            x->plan.recompute = (sm_recompute)x->c.recompute[r];
            x->in = above & x->c.in.recompute[x->plan.recompute];
            if (x->in) try_regather(x, activations, zero, n_zero);
        }
    }
    x->in = above;
}

/* ---- the end of a step ---- */

/* With the loads at hand no step ends in less, whichever optimizer offload: a stage has no less
 * than the average one, and of a stream the last part is exposed. */
static double least_end(const expansion *x, bool dual) {
    const stage_load *load = x->l->p.load;
    double reduce = 0, gather = 0, update = 0, offload = 0, least = HUGE_VAL;
    for (int i = 0; i < x->l->p.v->pieces; i++) {
        double n = i < x->t->kinds ? x->t->layers[i] : 1;
        reduce += n * load[i].reduce_s;
        gather += n * load[i].gather_s;
        update += n * load[i].update_s;
        offload += n * load[i].offload_s;
    }
    for (int f = 0; f < x->c.n_offload; f++) {
        bool off = x->c.offload[f] == SM_OFFLOAD_OPTIMIZER || x->c.offload[f] == SM_OFFLOAD_BOTH;
        least = fmin(least, off ? offload : update);
    }
    double parts = 1 + (dual ? 2.0 : 1.0) * x->t->model.L / x->plan.pipeline;
    return ((reduce + gather) / parts + least) / x->plan.pipeline;
}

/* The ends of a step with the curves at hand, of every ZeRO stage. */
static void load_stages(expansion *x) {
    pieces *p = &x->l->p;
    for (int dual = 0; dual < 2; dual++) {
        x->end_s[dual] = HUGE_VAL;
        for (int i = 0; i <= copy_piece(x->t); i++)
            x->state[0][dual][i] = x->state[1][dual][i] = HUGE_VAL;
    }
    for (int z = 0; z < x->c.n_zero; z++) {
        x->plan.zero = x->c.zero[z];
        p->load = x->l->load[x->plan.zero];
        pieces_load(x->t, &x->plan, p);
        lower_state(x);
        for (int dual = 0; dual < 2; dual++)
            x->end_s[dual] = fmin(x->end_s[dual], least_end(x, dual));
    }
    for (int dual = 0; dual < 2; dual++)
        x->end_s[dual] = (x->end_s[dual] + x->t->calibration->step_overhead_s) * (1 - ROUNDING);
    x->loaded = true;
}

/* ---- a microbatch ---- */

static uint64_t timed_key(const expansion *x) {
    return sm_hash_mixed(work_key(x->t, x->l->p.v, &x->plan), (uint32_t)x->plan.microbatch);
}

static timed *timed_of(expansion *x, uint64_t key) {
    pieces *p = &x->l->p;
    timed *at = &x->l->memo[key % x->l->n_timed];
    if (at->key == key) return at;
    if (!at->time) {
        at->time = x->l->time_room;
        at->kept = x->l->kept_room;
        x->l->time_room += (size_t)p->v->pieces * TIMED_BYTES;
        x->l->kept_room += p->v->pieces;
    }
    at->key = key;
    at->has_time = at->has_kept = false;
    return at;
}

static void take_microbatch(expansion *x, int i) {
    x->microbatch = i;
    x->plan.microbatch = x->c.microbatch[i];
    x->microbatches = microbatches_of(x->t, &x->plan);
    sm_degrees_microbatch(&x->l->p.d, x->plan.microbatch);
}

static bool is_timed(const expansion *x) {
    const uint64_t key = timed_key(x);
    const timed *at = &x->l->memo[key % x->l->n_timed];
    return at->key == key && at->has_time;
}

/* Its local work. */
static void take_times(expansion *x) {
    pieces *p = &x->l->p;
    timed *at = timed_of(x, timed_key(x));
    if (!at->has_time) pieces_time(x->t, &x->plan, p);
    for (int i = 0; i < p->v->pieces; i++) {
        unsigned char *own = at->time + (size_t)i * TIMED_BYTES;
        memcpy(at->has_time ? (void *)&p->time[i] : own, at->has_time ? own : (void *)&p->time[i],
               TIMED_BYTES);
    }
    at->has_time = true;
}

/* Of a sequence, of each piece. */
static const work_floor *floor_of(expansion *x) {
    pieces *p = &x->l->p;
    const uint64_t key = work_key(x->t, p->v, &x->plan);
    timed_floor *at = &x->l->floor[key % x->l->n_timed];
    if (at->key == key) return at->at;
    if (!at->at) at->at = x->l->floor_room, x->l->floor_room += p->v->pieces;
    memset(at->at, 0, (size_t)p->v->pieces * sizeof *at->at);
    sm_degrees d = p->d;
    sm_degrees_microbatch(&d, 1);
    for (int i = 0; i < p->v->pieces; i++)
        piece_floor_add(x->t, p->v, i, &d, x->plan.dtype, &at->at[i]);
    at->key = key;
    return at->at;
}

static double phase_floor_s(const work_floor *of, int phase, double sequences) {
    const double work = larger(sequences * of->each[phase], of->read[phase]);
    return larger(work + of->gaps[phase], of->host[phase]);
}

/* No local work takes less: all that passes ask of it. */
static void take_floors(expansion *x, const work_floor *of) {
    const double n = x->plan.microbatch;
    for (int i = 0; i < x->l->p.v->pieces; i++, of++) {
        piece_time *time = &x->l->p.time[i];
        memset(time->idle, 0, sizeof time->idle);
        time->forward = phase_floor_s(of, SM_PHASE_FORWARD, n);
        time->backward_input = phase_floor_s(of, SM_PHASE_BACKWARD_INPUT, n);
        time->backward_weight = phase_floor_s(of, SM_PHASE_BACKWARD_WEIGHT, n);
        memset(time->again, 0, sizeof time->again);
        time->ring[0] = time->ring[1] = 0;
    }
}

/* Not even the average stage leaves them a chance. */
static bool floors_hopeless(const expansion *x, const work_floor *of) {
    double busy = 0;
    for (int i = 0; i < x->l->p.v->pieces; i++)
        for (int k = 0; k < SM_PHASE_COUNT; k++)
            busy += (i < x->t->kinds ? x->t->layers[i] : 1) *
                    phase_floor_s(&of[i], k, x->plan.microbatch);
    const double average_s = busy / x->plan.pipeline * x->microbatches * (1 - ROUNDING);
    return is_hopeless(x, average_s + smaller(x->end_s[0], x->end_s[1]));
}

bool leaves_work(expansion *x, schedule_set *alive) {
    bool any = false;
    pass least[MAX_PIECES + 1];
    pieces *p = &x->l->p;
    const bool count = times_count(x);
    const work_floor *of = count ? floor_of(x) : NULL;
    for (int i = 0; i < x->c.n_microbatch; i++) {
        alive[i] = x->l->possible[i];
        any |= alive[i] && !count;
        if (!alive[i] || !count) continue;
        take_microbatch(x, i);
        const bool known = is_timed(x);
        if (!known && floors_hopeless(x, of)) alive[i] = 0;
        if (!alive[i]) continue;
        if (known) take_times(x);
        else take_floors(x, of);
        for (int k = 0; k < p->v->pieces; k++) {
            const piece_time *time = &p->time[k];
            p->pass[k].expected =
                (pass){time->forward, time->backward_input, time->backward_weight};
        }
        take_passes(x, true, least);
        alive[i] = hopeful(x, least, alive[i]);
        any |= alive[i] != 0;
    }
    return any;
}

/* With nothing computed again and the least gathered again: of the main layers, or of all pieces.
 */
static void take_least(expansion *x, bool all) {
    const int main = x->t->main_kind;
    x->plan.recompute = SM_RECOMPUTE_NONE;
    x->plan.offload = SM_OFFLOAD_NONE;
    x->plan.regather = x->regather[0][0].regather;
    pieces_ways(x->t, &x->plan, all ? 0 : main, all ? x->l->p.v->pieces : main + 1, &x->l->p);
}

/* Passes of a kind of schedules then; where not of all, the collectives of others are left out. */
static void least_passes(expansion *x, int kind, bool all, pass *to) {
    pieces *p = &x->l->p;
    const int main = x->t->main_kind;
    if (all) {
        kind_passes(x, kind, 0, true, to);
        return;
    }
    for (int i = 0; i < p->v->pieces; i++) {
        const piece_time *of = &p->time[i];
        p->pass[i].expected =
            kind == 0 ? (pass){of->forward, of->backward_input, of->backward_weight}
                      : (pass){of->forward, of->backward_input + of->backward_weight, 0};
    }
    x->plan.schedule = passes_like[kind];
    pieces_pass(x->t, &x->plan, main, main + 1, p);
    take_passes(x, true, to);
}

static void lay_hopeful(expansion *x) {
    pieces *p = &x->l->p;
    if (!x->laid) place_hopeful(x->t, p->v, &x->plan, &p->d, 0, &p->at);
    x->laid = true;
}

/* Those of the microbatch at hand with the collectives of no placement, which become the curves at
 * hand where they are needed first: of each kind of schedule. Work is timed last, since that takes
 * longest. Until then it is its floor, under which collectives hide no more than under what it
 * takes; of a ring, which hides under attention, nothing counts. */
static const placed_passes *hopeful_passes(expansion *x, passes_of_what of) {
    pieces *p = &x->l->p;
    const int n = passes_of(x->t);
    uint64_t key = sm_hash_mixed(timed_key(x), p->v->code); /* of 2 and 8 not that of 8 and 2 */
    key = sm_hash_mixed(sm_hash_mixed(key, (uint32_t)x->t->part), x->regather[0][0].regather);
    key = sm_hash_mixed(key, (uint32_t)x->plan.fsdp);
    if (p->v->over & SM_BIT(SM_AXIS_DATA)) key = sm_hash_mixed(key, (uint32_t)x->plan.data);
    placed_passes *at = &x->l->hopeful[key % (x->l->n_timed * HOPEFUL)];
    if (at->key == key && at->of >= of) return at;
    if (!at->at) at->at = x->l->pass_room, x->l->pass_room += PASS_KINDS * n;
    const bool whole = of > MAIN_COMM, exact = of == ALL_TIMED || is_timed(x);
    lay_hopeful(x);
    x->plan.zero = 0;
    pieces_comm(x->t, &x->plan, true, whole, p);
    take_least(x, whole);
    at->of = exact && whole ? ALL_TIMED : of;
    if (exact) take_times(x);
    else take_floors(x, floor_of(x));
    for (int k = 0; !exact && k < p->v->pieces; k++) p->way[k][0].ring = p->way[k][1].ring = 0;
    for (int kind = 0; kind < PASS_KINDS; kind++) least_passes(x, kind, whole, at->at + kind * n);
    at->key = key;
    return at;
}

static schedule_set passes_hopeful(const expansion *x, const pass *at, schedule_set of) {
    schedule_set left = 0;
    for (int kind = 0; kind < PASS_KINDS; kind++)
        if (of & x->l->family.passes[kind])
            left |= hopeful(x, at + kind * passes_of(x->t), of & x->l->family.passes[kind]);
    return left;
}

schedule_set leaves_hopeful(expansion *x, int i, schedule_set of) {
    const placed_passes *at = NULL;
    x->known = true;
    take_microbatch(x, i);
    if (!times_count(x)) lay_hopeful(x);
    while (of && times_count(x) && !(at && at->of == ALL_TIMED)) {
        at = hopeful_passes(x, at ? at->of + 1 : MAIN_COMM);
        of = passes_hopeful(x, at->at, of);
        if (!of || x->loaded || at->of == MAIN_COMM) continue;
        lay_hopeful(x); /* where a chance is left: the ends of a step, too */
        load_stages(x);
        of = passes_hopeful(x, at->at, of);
    }
    return of;
}

static void take_rest(expansion *x) {
    if (x->rest == REST_LEAST) placements_least(x->t, false, x->l);
    if (x->rest == REST_PLACED) place_curves(x->t, x->l->p.v, false, &x->l->p.at);
    x->rest = REST_NONE;
}

/* Schedules by which a plan of this microbatch could win with the curves at hand, whose collectives
 * are priced: of the main layers first, and of the rest where these leave a chance. */
static schedule_set comm_hopeful(expansion *x, schedule_set of) {
    pass passes[MAX_PIECES + 1];
    for (int all = 0; all < 2 && of; all++) {
        schedule_set set = 0;
        if (all || x->plan.zero == 2) take_rest(x);
        pieces_comm(x->t, &x->plan, !all, all, &x->l->p);
        take_least(x, all);
        for (int kind = 0; kind < PASS_KINDS; kind++) {
            schedule_set at = of & x->l->family.passes[kind];
            if (!at) continue;
            least_passes(x, kind, all, passes);
            set |= hopeful(x, passes, at);
        }
        of = set;
    }
    return of;
}

void leaves_try(expansion *x, int i, schedule_set of) {
    int shared[4], n = 0;
    bool two = false;
    const space_set above = x->in;
    const bool known = x->known || !times_count(x);
    x->open = 0;
    if (!(above & x->c.in.microbatch[i])) return;
    take_microbatch(x, i);
    x->plan.zero = x->c.zero[0];
    if (!known) take_times(x);
    else if (!x->known) take_rest(x); /* no plan is ruled out by those of main layers */
    x->open = known ? of : comm_hopeful(x, of);
    if (!x->open) return;
    /* What it keeps. */
    pieces *p = &x->l->p;
    timed *at = timed_of(x, timed_key(x));
    const size_t bytes = (size_t)p->v->pieces * sizeof p->kept[0];
    if (!at->has_kept) pieces_kept(x->t, &x->plan, p);
    memcpy(at->has_kept ? p->kept : at->kept, at->has_kept ? at->kept : p->kept, bytes);
    at->has_kept = true;
    if (!x->loaded) load_stages(x);
    x->open = may_fit(x, x->open);
    if (!x->open) return;
    if (known) take_times(x);
    x->plan.zero = x->c.zero[0];
    if (known) pieces_comm(x->t, &x->plan, true, true, &x->l->p);
    pieces_comm_again(x->t, &x->l->p);
    x->in &= x->c.in.microbatch[i];
    for (int z = 0; z < x->c.n_zero; z++) {
        if (x->c.zero[z] == 2) two = true;
        else shared[n++] = x->c.zero[z];
    }
    if (n) try_zero(x, shared, n);
    x->plan.zero = 2; /* reduces every microbatch: other collectives */
    if (n && two && !is_enough(x)) pieces_comm(x->t, &x->plan, true, true, &x->l->p);
    if (two && !is_enough(x)) try_zero(x, &(const int){2}, 1);
    x->in = above;
}
