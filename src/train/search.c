/* The best plans: exact best-first search over degrees, every leaf of a node priced or ruled out by
 * a bound. */

#include "search_space.h"

void sm_search_defaults_sized(sm_search_options *options, size_t size) {
    sm_search_options all = {.size = size, .top = 3, .prune = true};
    sm_plan_defaults(&all.fixed);
    sm_sized_give(options, size, &all, sizeof all);
}

/* ---- results ---- */

struct sm_search_result {
    int n;
    sm_plan *plan;
    sm_price_of_plan *price;
    sm_search_effort effort;
};

int sm_search_result_count(const sm_search_result *result) { return result ? result->n : 0; }

sm_found sm_search_result_at(const sm_search_result *result, int i) {
    if (i < 0 || i >= sm_search_result_count(result)) return (sm_found){NULL, NULL};
    return (sm_found){&result->plan[i], &result->price[i]};
}

const sm_search_effort *sm_search_result_effort(const sm_search_result *result) {
    static const sm_search_effort none = {.optimal = false};
    return result ? &result->effort : &none;
}

/* ---- merging ---- */

double search_threshold(const plan_search *h) {
    const int top = h->options->top;
    if (h->options->first && h->found) return -HUGE_VAL;
    double least = h->options->below > 0 ? h->options->below : HUGE_VAL;
    if (h->found == top) least = fmin(least, h->objective[top - 1]);
    /* What takes as long as a plan that is known is looked at too: it may be that plan. */
    if (h->n_near == top) least = fmin(least, h->near[top - 1].objective * (1 + ROUNDING));
    return least;
}

double search_merge(void *context, int place, size_t number) {
    plan_search *h = context;
    assert(place >= 0 && place < SM_BATCH && h->found <= SM_MAX_TOP);
    const outcome *o = &h->place[place];
    (void)number;
    h->effort.evaluated += o->evaluated;
    if (o->found && o->objective < search_threshold(h)) {
        int at = h->found < h->options->top ? h->found++ : h->found - 1;
        for (; at > 0 && h->objective[at - 1] > o->objective; at--) {
            h->best[at] = h->best[at - 1];
            h->objective[at] = h->objective[at - 1];
        }
        h->best[at] = o->plan;
        h->objective[at] = o->objective;
    }
    return h->options->prune ? search_threshold(h) : HUGE_VAL;
}

double search_refined(void *context, size_t number) {
    plan_search *h = context;
    const double objective = h->node[number].reach;
    const int n = h->n_near, top = h->options->top;
    bool joins = objective > 0 && objective < (n == top ? h->near[n - 1].objective : HUGE_VAL);
    for (int i = 0; i < n && joins; i++) joins = h->near[i].node != number;
    if (joins) {
        int at = n < top ? h->n_near++ : n - 1;
        for (; at > 0 && h->near[at - 1].objective > objective; at--) h->near[at] = h->near[at - 1];
        h->near[at] = (near_node){number, objective, false};
    }
    return search_threshold(h);
}

static void report_progress(double fraction, void *context) {
    plan_search *h = context;
    h->options->progress(fraction, h->found ? h->objective[0] : 0, h->options->context);
}

/* ---- preparing ---- */

/* The programs that the search may want: whichever degrees it splits, with every choice there. */
typedef struct building {
    sm_train *t;
    const sm_plan *fixed;
    sm_status status;
    sm_error *err;
} building;

static bool build_one(void *context, sm_plan *plan) {
    building *b = context;
    sm_error own = {0};
    if (!train_variant(b->t, plan, &own)) b->status = own.status;
    else if (plan->recompute_ops[0]) b->status = train_custom_set(b->t, plan, &own);
    if (b->status != SM_OK && b->err) *b->err = own;
    return b->status == SM_OK;
}

/* The axes of a set are split. */
static void build_split(building *b, const sm_model *model, int split, int tensor) {
    sm_plan p = *b->fixed;
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (!sm_plan_given(&p, (sm_plan_key)key))
            *sm_plan_degree(&p, key) = !(split >> key & 1) ? 1 : key == SM_PLAN_TENSOR ? tensor : 2;
    sm_plan_each_choice(&p, b->fixed, model, build_one, b);
}

/* Tensor degrees that stand for all: 2, and the least that copies heads, which has another program
 * (0: none does). */
static int least_copying(const sm_train *t) {
    for (int d = 2; d <= t->system.chips; d++) {
        const sm_plan plan = {.tensor = d};
        if (t->system.chips % d == 0 && search_splits(t, SM_PLAN_TENSOR, d) &&
            sm_plan_heads_times(&plan, &t->model) > 1)
            return d;
    }
    return 0;
}

static sm_status build_variants(sm_train *t, const sm_search_options *o, sm_error *err) {
    building b = {t, &o->fixed, SM_OK, err};
    bool open = !sm_plan_given(&o->fixed, SM_PLAN_TENSOR);
    int tensors[] = {2, open ? least_copying(t) : 0};
    for (int i = 0; i < 2; i++)
        for (int split = 0; tensors[i] && split < 1 << SM_PLAN_DEGREES && !b.status; split++)
            if (i == 0 || split >> SM_PLAN_TENSOR & 1)
                build_split(&b, &t->model, split, tensors[i]);
    return b.status;
}

static bool make_memo(const plan_search *h, lane_scratch *l) {
    const size_t passes = (size_t)passes_of(h->train), n = (size_t)head_piece(h->train) + 1;
    sm_arena *a = h->scratch;
    l->n_timed = h->roomy ? TIMED : FEW_TIMED;
    const size_t hopeful = l->n_timed * HOPEFUL;
    l->time_room = sm_arena_array(a, l->n_timed * n, TIMED_BYTES);
    l->kept_room = sm_arena_array(a, l->n_timed * n, sizeof *l->kept_room);
    l->floor_room = sm_arena_array(a, l->n_timed * n, sizeof *l->floor_room);
    l->pass_room = sm_arena_array(a, hopeful * PASS_KINDS * passes, sizeof *l->pass_room);
    l->memo = sm_arena_array(a, l->n_timed, sizeof *l->memo);
    l->floor = sm_arena_array(a, l->n_timed, sizeof *l->floor);
    l->hopeful = sm_arena_array(a, hopeful, sizeof *l->hopeful);
    l->placement_room = MAX_DIMS_ORDERS; /* no tree of orders on switches has as many */
    for (int k = 2; k <= h->axes; k++) l->placement_room *= k;
    l->placement = sm_arena_array(a, (size_t)l->placement_room, sizeof *l->placement);
    l->group = sm_arena_array(a, (size_t)l->placement_room, sizeof *l->group);
    l->fit = sm_arena_array(a, (size_t)h->microbatches, sizeof *l->fit);
    l->least_memory = h->effort.least_memory_bytes;
    return l->time_room && l->kept_room && l->floor_room && l->pass_room && l->memo && l->floor &&
           l->hopeful && l->placement && l->group && l->fit;
}

static void gather_least_memory(plan_search *h) {
    for (int i = 0; h->lane && i < h->lanes; i++)
        h->effort.least_memory_bytes = fmin(h->effort.least_memory_bytes, h->lane[i].least_memory);
    h->lane = NULL;
}

static bool make_curves(const plan_search *h, int entries, sm_curve_memo *memo) {
    const sm_train *t = h->train;
    return sm_curve_memo_init(memo, &t->system, t->calibration, entries, h->scratch);
}

/* Lanes with room enough for the nodes at hand. */
static sm_status make_lanes(plan_search *h, sm_error *err) {
    const bool many = h->nodes > FEW_NODES;
    int threads = sm_search_threads(h->options->threads);
    if ((size_t)threads > h->nodes) threads = (int)h->nodes; /* no lane is without one */
    if (h->lane && (h->roomy || !many) && h->lanes >= threads && h->made_for[0] >= h->axes &&
        h->made_for[1] >= h->microbatches)
        return SM_OK;
    gather_least_memory(h);
    sm_arena_free(h->scratch);
    h->scratch = sm_arena_new();
    h->roomy = many;
    h->lanes = threads;
    if (many && !sm_arena_reserve(h->scratch, (size_t)threads * LANE_BYTES))
        return sm_fail_memory(err);
    h->made_for[0] = h->axes;
    h->made_for[1] = h->microbatches;
    h->lane = sm_arena_array(h->scratch, (size_t)h->lanes, sizeof *h->lane);
    if (!h->lane) return sm_fail_memory(err);
    for (int i = 0; i < h->lanes; i++)
        if (!stages_init(h->train, &h->lane[i].s, many ? LAYOUTS : FEW_LAYOUTS, h->scratch) ||
            !make_memo(h, &h->lane[i]) ||
            !make_curves(h, many ? SEARCH_CURVES : CURVES, &h->lane[i].p.at.memo) ||
            !make_curves(h, CURVES, &h->lane[i].p.at.unplaced))
            return sm_fail_memory(err);
    return SM_OK;
}

/* ---- running ---- */

static sm_status search_chips(plan_search *h, int chips, sm_error *err) {
    const sm_search_options *o = h->options;
    sm_branching_result done;
    double floor_s = search_floor(h->train, &o->fixed, chips);
    bool hopeless = o->objective == SM_OBJECTIVE_TIME && floor_s >= search_threshold(h);
    bool late = h->space > 0 && sm_search_stopped(o->stop, h->until_s);
    h->count_only = o->prune && hopeless;
    if (late && !hopeless) { /* no time to bound each node: all of them by their work alone */
        double floors[] = {[SM_OBJECTIVE_TIME] = floor_s,
                           [SM_OBJECTIVE_COST] = floor_s * chips,
                           [SM_OBJECTIVE_MEMORY] = 0};
        h->unseen = fmin(h->unseen, floors[o->objective]);
        h->effort.optimal = false;
    }
    if (late) return SM_OK;
    sm_status s = search_enumerate(h, chips, err);
    if (s || h->count_only || h->nodes == 0) return s;
    s = make_lanes(h, err);
    if (s) return s;
    if (o->prune && h->found < o->top) search_climb(h);
    sm_branching b = {.context = h,
                      .nodes = h->nodes,
                      .bound = h->bound,
                      .refine = o->prune ? search_refine : NULL,
                      .refined = search_refined,
                      .expand = search_expand,
                      .merge = search_merge,
                      .stop = o->stop,
                      .until_s = h->until_s,
                      .threshold = o->prune ? search_threshold(h) : HUGE_VAL};
    if (o->progress) b.progress = report_progress, b.progress_context = h;
    s = sm_search_best_first(&b, o->threads, &done, err);
    h->unseen = fmin(h->unseen, done.bound);
    if (!done.finished) h->effort.optimal = false;
    return s;
}

/* So many of the chips, as a system of their own. */
static sm_status search_part(plan_search *h, sm_train *train, int chips, sm_error *err) {
    if (!train_take(train, chips)) return SM_OK;
    for (int i = 0; h->lane && i < h->lanes; i++) { /* their curves are another system's */
        sm_curve_memo_forget(&h->lane[i].p.at.memo);
        sm_curve_memo_forget(&h->lane[i].p.at.unplaced);
    }
    sm_status s = build_variants(train, h->options, err);
    return s ? s : search_chips(h, chips, err);
}

/* Where the best plan leaves chips idle, or no degrees multiply to a divisor of the chips: as many
 * as are a power of two times a small odd number, most first. Fewer have a higher floor. */
static sm_status search_parts(plan_search *h, sm_train *train, int chips, sm_error *err) {
    enum { LARGEST_ODD = 15 };
    int used = h->found ? sm_plan_chips(&h->best[0]) : 0;
    sm_status s = SM_OK;
    if (used == chips || (used == 0 && h->space > 0)) return SM_OK;
    for (int n = chips - 1; n > 1 && !s; n--) {
        if (chips % n == 0 || sm_odd_part(n) > LARGEST_ODD) continue;
        if (search_floor(train, &h->options->fixed, n) >= search_threshold(h)) break;
        s = search_part(h, train, n, err);
    }
    return s;
}

static sm_status make_result(const plan_search *h, sm_train *t, sm_arena *arena,
                             const sm_search_result **result, sm_error *err) {
    size_t n = (size_t)h->found;
    sm_search_result *r = sm_arena_alloc(arena, sizeof *r);
    if (!r) return sm_fail_memory(err);
    *r = (sm_search_result){.n = h->found, .effort = h->effort};
    r->plan = sm_arena_array(arena, n, sizeof *r->plan);
    r->price = sm_arena_array(arena, n, sizeof *r->price);
    if (n && (!r->plan || !r->price)) return sm_fail_memory(err);
    for (int i = 0; i < r->n; i++) {
        r->plan[i] = h->best[i];
        plan_canonical(t, &r->plan[i]);
        sm_status s = sm_train_price(t, &r->plan[i], &r->price[i], err);
        if (s) return s;
        double own = objective_of(h->options, &r->plan[i], r->price[i].expected_s, h->objective[i]);
        assert(fabs(own - h->objective[i]) <= ROUNDING * own); /* it was ranked by its own price */
        (void)own;
    }
    *result = r;
    return SM_OK;
}

static sm_status nothing_found(const plan_search *h, sm_error *err) {
    char have[32];
    double memory = sm_chip_memory(&h->train->system.chip)->value;
    if (h->space > 0 && memory_capacity(h->train) <= 0)
        return sm_fail(err, SM_NEGATIVE,
                       "no plan fits: of the %s of a chip the software takes all for itself",
                       sm_format_bytes(have, sizeof have, memory));
    if (h->space > 0)
        return sm_fail(err, SM_NEGATIVE, "no plan fits in the %s that it may take of a chip",
                       sm_format_bytes(have, sizeof have, memory_capacity(h->train)));
    return sm_fail(err, SM_NEGATIVE,
                   "no plan: the fixed degrees do not divide the chips, the model or the batch");
}

sm_status sm_train_search(sm_train *train, const sm_search_options *options, sm_arena *arena,
                          const sm_search_result **result, sm_error *err) {
    double start = sm_clock_s();
    sm_search_options own;
    *result = NULL;
    sm_status s = sm_sized_take(&own, sizeof own, options, err);
    if (s) return s;
    if (own.top < 1 || own.top > SM_MAX_TOP)
        return sm_fail(err, SM_BAD_INPUT, "the number of plans to show is 1 to %d", SM_MAX_TOP);
    char why[256];
    if (sm_plan_refuse_dims(&own.fixed, &train->system, why, sizeof why))
        return sm_fail(err, SM_BAD_INPUT, "%s", why);
    train_take(train, train->part ? train->whole.chips : train->system.chips);
    s = sm_plan_spaces_take(own.space, &own.fixed, err);
    if (s) return s;
    plan_search h = {.options = &own, .train = train, .effort.optimal = true};
    h.effort.least_memory_bytes = h.unseen = HUGE_VAL;
    if (own.seconds > 0) h.until_s = start + own.seconds;
    h.scratch = sm_arena_new();
    s = build_variants(train, &own, err);
    /* All the chips first, then every smaller number that divides them: more chips never make the
     * best plan slower. */
    int chips = train->system.chips;
    for (int idle = 1; !s && idle <= chips && !(own.first && h.found); idle++)
        if (chips % idle == 0) s = search_chips(&h, chips / idle, err);
    if (!s && own.objective == SM_OBJECTIVE_TIME) s = search_parts(&h, train, chips, err);
    gather_least_memory(&h);
    sm_free(h.node);
    sm_free(h.bound);
    sm_arena_free(h.scratch);
    sm_search_effort *e = &h.effort;
    e->space = h.space;
    e->pruned = fmax(h.space - e->evaluated, 0);
    e->seconds = sm_clock_s() - start;
    if (!e->optimal) e->gap = h.found ? fmax(0, 1 - h.unseen / h.objective[0]) : 1;
    if (!s) s = make_result(&h, train, arena, result, err);
    return !s && h.found == 0 ? nothing_found(&h, err) : s;
}
