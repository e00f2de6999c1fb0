/* The best plans: exact best-first search over degrees, every leaf of a node priced or ruled out by
 * a bound. */
#include <math.h>
#include <string.h>

#include "search_space.h"

void sm_search_defaults(sm_search_options *options) {
    memset(options, 0, sizeof *options);
    sm_plan_defaults(&options->fixed);
    options->top = 3;
    options->prune = true;
}

/* ---- merging ---- */

static double threshold_of(const plan_search *h) {
    return h->result->n == h->options->top ? h->objective[h->result->n - 1] : HUGE_VAL;
}

static void insert(plan_search *h, const outcome *o) {
    sm_search_result *r = h->result;
    int at = r->n < h->options->top ? r->n++ : r->n - 1;
    while (at > 0 && h->objective[at - 1] > o->objective) {
        r->found[at] = r->found[at - 1];
        h->objective[at] = h->objective[at - 1];
        at--;
    }
    r->found[at].plan = o->plan;
    h->objective[at] = o->objective;
}

static double merge(void *context, int place, size_t number) {
    plan_search *h = context;
    const outcome *o = &h->place[place];
    (void)number;
    h->result->evaluated += o->evaluated;
    h->result->least_memory_bytes = fmin(h->result->least_memory_bytes, o->least_memory);
    if (o->found && o->objective < threshold_of(h)) insert(h, o);
    return h->options->prune ? threshold_of(h) : HUGE_VAL;
}

static void report_progress(double fraction, void *context) {
    plan_search *h = context;
    h->options->progress(fraction, h->result->n ? h->objective[0] : 0, h->options->context);
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

static sm_status build_variants(sm_train *t, const sm_search_options *o, sm_error *err) {
    building b = {t, &o->fixed, SM_OK, err};
    for (int split = 0; split < 1 << SM_PLAN_DEGREES && b.status == SM_OK; split++) {
        sm_plan p = o->fixed;
        for (int key = 0; key < SM_PLAN_DEGREES; key++)
            if (!sm_plan_given(&p, (sm_plan_key)key))
                *sm_plan_degree(&p, key) = 1 + (split >> key & 1);
        sm_plan_each_choice(&p, &o->fixed, &t->model, build_one, &b);
    }
    return b.status;
}

static bool make_memo(const plan_search *h, lane_scratch *l, sm_arena *arena) {
    size_t n = (size_t)h->train->kinds + 2;
    piece_time *time = sm_arena_array(arena, TIMED * n, sizeof *time);
    double(*kept)[MAX_SETS] = sm_arena_array(arena, TIMED * n, sizeof *kept);
    l->memo = sm_arena_array(arena, TIMED, sizeof *l->memo);
    if (!time || !kept || !l->memo) return false;
    for (size_t i = 0; i < TIMED; i++) {
        l->memo[i].time = time + i * n;
        l->memo[i].kept = kept + i * n;
    }
    return true;
}

static sm_status make_lanes(plan_search *h, sm_arena *arena, sm_error *err) {
    h->lanes = sm_search_threads(h->options->threads);
    h->lane = sm_arena_array(arena, (size_t)h->lanes, sizeof *h->lane);
    if (!h->lane) return sm_fail_memory(err);
    for (int i = 0; i < h->lanes; i++)
        if (!stages_init(&h->lane[i].s, arena) || !make_memo(h, &h->lane[i], arena) ||
            !sm_curve_memo_init(&h->lane[i].p.at.memo, &h->train->system, h->train->calibration,
                                CURVES, arena))
            return sm_fail_memory(err);
    return SM_OK;
}

/* ---- running ---- */

static sm_status search_chips(plan_search *h, int chips, sm_error *err) {
    const sm_search_options *o = h->options;
    sm_branching_result done;
    double floor_s = search_floor(h->train, &o->fixed, chips);
    bool hopeless = o->objective == SM_OBJECTIVE_TIME && floor_s >= threshold_of(h);
    h->count_only = o->prune && hopeless;
    sm_status s = search_enumerate(h, chips, err);
    if (s || h->count_only) return s;
    sm_branching b = {.context = h,
                      .nodes = h->nodes,
                      .bound = h->bound,
                      .expand = search_expand,
                      .merge = merge,
                      .stop = o->stop,
                      .threshold = o->prune ? threshold_of(h) : HUGE_VAL};
    if (o->progress) b.progress = report_progress, b.progress_context = h;
    s = sm_search_best_first(&b, o->threads, &done, err);
    if (!done.finished) h->result->optimal = false;
    return s;
}

/* All the chips first, then every smaller number that divides them: more chips never make the best
 * plan slower. */
static sm_status search_all(plan_search *h, sm_error *err) {
    int chips = h->train->system.chips;
    for (int idle = 1; idle <= chips; idle++) {
        if (chips % idle) continue;
        sm_status s = search_chips(h, chips / idle, err);
        if (s) return s;
    }
    return SM_OK;
}

static sm_status price_found(sm_train *t, sm_search_result *r, sm_error *err) {
    for (int i = 0; i < r->n; i++) {
        plan_canonical(t, &r->found[i].plan);
        sm_status s = sm_train_price(t, &r->found[i].plan, &r->found[i].price, err);
        if (s) return s;
    }
    return SM_OK;
}

static sm_status nothing_found(const plan_search *h, sm_error *err) {
    char need[32], have[32];
    if (h->result->least_memory_bytes < HUGE_VAL)
        return sm_fail(
            err, SM_NEGATIVE,
            "no plan fits: the least memory any priced plan needs is %s per chip, and a chip has "
            "%s",
            sm_format_bytes(need, sizeof need, h->result->least_memory_bytes),
            sm_format_bytes(have, sizeof have, memory_capacity(h->train)));
    return sm_fail(
        err, SM_NEGATIVE,
        h->space > 0
            ? "no plan fits: weights and gradients alone exceed the memory of every chip however "
              "they are sharded"
            : "no plan: the fixed degrees do not divide the chips, the model or the batch");
}

sm_status sm_train_search(sm_train *train, const sm_search_options *options,
                          sm_search_result *result, sm_error *err) {
    plan_search h = {.options = options, .train = train, .result = result};
    double start = sm_clock_s();
    memset(result, 0, sizeof *result);
    if (options->top < 1 || options->top > SM_MAX_TOP)
        return sm_fail(err, SM_BAD_INPUT, "the number of plans to show is 1 to %d", SM_MAX_TOP);
    result->optimal = true;
    result->least_memory_bytes = HUGE_VAL;
    sm_arena *arena = sm_arena_new();
    sm_status s = arena ? build_variants(train, options, err) : sm_fail_memory(err);
    if (!s) s = make_lanes(&h, arena, err);
    if (!s) s = search_all(&h, err);
    sm_free(h.node);
    sm_free(h.bound);
    sm_arena_free(arena);
    if (!s) s = price_found(train, result, err);
    result->space = h.space;
    result->pruned = h.space > result->evaluated ? h.space - result->evaluated : 0;
    result->seconds = sm_clock_s() - start;
    if (!s && result->n == 0) s = nothing_found(&h, err);
    return s;
}
