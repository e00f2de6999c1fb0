/* The frontier of a job, or the sentence that says why there is none. */
#include "serve_frontier.h"
#include <stdlib.h>

/* The Pareto set of a search as it grows: a point stays when no other is at least as quick per
 * token and gives at least as many tokens per second and chip. What sums of floating point alone
 * tell apart is as quick: idle copies of a model are no faster. */
static bool at_least_as_good(const frontier *f, const found *p, int slice, double first_s,
                             double tpot_s, double per_chip) {
    if (f->of_fleet && p->slice > slice) return false;
    if (f->most_alone && per_chip <= OF_OTHER_BATCH * p->per_chip) return true;
    return !(f->by_first && p->first_s > first_s * (1 + 1e-7)) &&
           p->tpot_s <= tpot_s * (1 + 1e-7) && p->per_chip >= per_chip;
}

bool frontier_beats(const frontier *f, int slice, double first_s, double tpot_s, double per_chip) {
    if (per_chip <= f->above) return true;
    for (size_t i = 0; i < f->n; i++)
        if (at_least_as_good(f, &f->point[i], slice, first_s, tpot_s, per_chip)) return true;
    return false;
}

void frontier_append(frontier *f, const found *p) {
    found *point = sm_grow(f->point, f->n, &f->room, sizeof *point);
    f->failed |= !point;
    if (!point) return;
    f->point = point;
    f->point[f->n++] = *p;
}

void frontier_add(frontier *f, const found *p) {
    size_t kept = 0;
    if (frontier_beats(f, p->slice, p->first_s, p->tpot_s, p->per_chip)) return;
    for (size_t i = 0; i < f->n; i++) {
        const found *old = &f->point[i];
        if (at_least_as_good(f, p, old->slice, old->first_s, old->tpot_s, old->per_chip)) continue;
        if (kept != i) f->point[kept] = f->point[i];
        kept++;
    }
    f->n = kept;
    frontier_append(f, p);
}

SM_ORDER(by_throughput, found, SM_ASCENDING(per_chip))

sm_status frontier_sort(frontier *f, sm_error *err) {
    if (f->n > 0) qsort(f->point, f->n, sizeof *f->point, by_throughput);
    return f->failed ? sm_fail_memory(err) : SM_OK;
}

/* The ops of a step, kept for steps that differ in placement, pipeline or slice alone. */

/* Compared and hashed as bytes: all of it is words of eight bytes. */
typedef struct work_key {
    uint64_t code, beside; /* of the rules of its programs, one more than the code; 0: none */
    int64_t degree[SM_PLAN_PIPELINE], groups;
    attend group[SM_MAX_GROUPS];
    double routed, sampled, begun;
} work_key;

enum { WORKS = 1 << 11 };
struct work_memo {
    size_t pieces;
    work_key key[WORKS];
    piece_price *price; /* as many x pieces */
};

work_memo *work_memo_new(sm_arena *arena, int pieces) {
    work_memo *memo = sm_arena_alloc(arena, sizeof *memo);
    if (!memo) return NULL;
    memo->pieces = (size_t)pieces;
    memo->price = sm_arena_array(arena, WORKS * memo->pieces, sizeof *memo->price);
    return memo->price ? memo : NULL;
}

static work_key key_of(const step *x) {
    work_key key = {.code = x->v->code + UINT64_C(1),
                    .beside = x->prefill ? x->prefill->code + UINT64_C(1) : 0,
                    .groups = x->groups,
                    .routed = x->routed.sequences,
                    .sampled = x->sampled.sequences,
                    .begun = x->begun.sequences};
    for (int i = 0; i < SM_PLAN_PIPELINE; i++) key.degree[i] = sm_plan_degree_of(x->plan, i);
    for (int i = 0; i < x->groups; i++) key.group[i] = x->group[i];
    return key;
}

void work_of(work_memo *memo, const step *x, piece_price *pieces) {
    if (!memo) {
        step_work(x, pieces);
        return;
    }
    work_key key = key_of(x);
    size_t at = (size_t)sm_hash_bytes(&key, sizeof key) & (WORKS - 1);
    piece_price *kept = &memo->price[at * memo->pieces];
    /* of keys unlike in padding alone work is found twice.
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (memcmp(&memo->key[at], &key, sizeof key) != 0) {
        memo->key[at] = key;
        step_work(x, kept);
    }
    memcpy(pieces, kept, memo->pieces * sizeof *pieces);
}

void sm_serve_search_defaults_sized(sm_serve_search_options *options, size_t size) {
    sm_serve_search_options all = {.size = size};
    sm_serve_plan_defaults(&all.fixed);
    sm_sized_give(options, size, &all, sizeof all);
}

static bool is_limit(double x) { return x >= 0 && x <= 1e9; }

static sm_status check_options(const sm_serve_search_options *o, sm_error *err) {
    if (!is_limit(o->ttft_s) || !is_limit(o->tpot_s))
        return sm_fail(err, SM_BAD_INPUT,
                       "limits of %g s to the first token and %g s a token are no times", o->ttft_s,
                       o->tpot_s);
    if (o->batch != 0 && !(o->batch >= 1 && o->batch <= 1e9))
        return sm_fail(err, SM_BAD_INPUT, "a batch must have 1 to 1e9 sequences, not %g", o->batch);
    if (o->chips_least < 0 || o->chips_most < 0 ||
        (o->chips_most > 0 && o->chips_most < o->chips_least))
        return sm_fail(err, SM_BAD_INPUT, "no replica has %d to %d chips", o->chips_least,
                       o->chips_most);
    return SM_OK;
}

/* ---- nothing fits ---- */

/* *least_chips: of the smallest replica of a job on which anything fits, 0 where nothing does. */
static sm_status least_that_fits(const sm_serve_job *job, const sm_serve_search_options *o,
                                 int *least_chips, sm_error *err) {
    search h;
    sm_status status = search_run(job, NULL, o, false, &h, err);
    *least_chips = status == SM_OK && h.any_fits ? h.least_chips : 0;
    search_free(&h);
    return status == SM_INTERNAL ? status : SM_OK; /* what is not possible is not an answer */
}

/* Twice as large, and again, until something fits. */
static sm_status chips_that_fit(const sm_serve_job *job, const sm_serve_search_options *options,
                                int *fits, sm_error *err) {
    enum { MOST_CHIPS = 4096 };
    sm_serve_search_options o = *options;
    sm_serve_job larger_job = *job;
    sm_system system;
    sm_status status = SM_OK;
    *fits = 0;
    for (int chips = job->system->chips * 2; !status && chips <= MOST_CHIPS && !*fits; chips *= 2) {
        if (sm_system_resize(job->system, chips, &system, NULL) != SM_OK) continue;
        larger_job.system = &system;
        o.chips_least = chips / 2 + 1;
        o.chips_most = chips;
        status = least_that_fits(&larger_job, &o, fits, err);
    }
    return status;
}

/* The widest type of weights with which something fits; the job's own where nothing does. */
static sm_status weights_that_fit(const sm_serve_job *job, const sm_serve_search_options *o,
                                  sm_dtype *fits, sm_error *err) {
    const sm_dtype narrower[] = {eight_bits_of(job->system), SM_INT4};
    sm_serve_job other = *job;
    sm_status status = SM_OK;
    *fits = job->dtypes.weights;
    other.as_stored = false;
    for (int i = 0, chips = 0; !status && !chips && i < 2; i++) {
        if (sm_dtype_bytes(narrower[i]) >= sm_dtype_bytes(job->dtypes.weights)) continue;
        other.dtypes.weights = narrower[i];
        status = least_that_fits(&other, o, &chips, err);
        if (chips) *fits = narrower[i];
    }
    return status;
}

static sm_status fail_fit(const sm_serve_job *job, const sm_serve_search_options *options,
                          search *h, sm_serve_result *r, sm_error *err) {
    char least[32], capacity[32], larger[64] = "", narrower[64] = "";
    sm_serve_search_options o = *options;
    sm_dtype weights;
    if (isinf(h->least_bytes))
        return sm_fail(err, SM_NEGATIVE, "no plan of these degrees shards %s on %s",
                       job->model->name, job->system->text);
    sm_format_bytes(least, sizeof least, h->least_bytes);
    sm_format_bytes(capacity, sizeof capacity, h->its_capacity);
    o.ttft_s = o.tpot_s = 0;
    o.batch = options->batch > 0 ? options->batch : 1;
    sm_status status = chips_that_fit(job, &o, &r->least_chips, err);
    if (!status) status = weights_that_fit(job, &o, &weights, err);
    if (status) return status;
    if (r->least_chips > 0)
        snprintf(larger, sizeof larger, "; the smallest that fits has %d chips", r->least_chips);
    if (weights != job->dtypes.weights)
        snprintf(narrower, sizeof narrower, "; with weights in %s it fits", sm_dtype_name(weights));
    return sm_fail(err, SM_NEGATIVE, "nothing fits on %s: a chip needs at least %s and has %s%s%s",
                   job->system->text, least, capacity, larger, narrower);
}

/* ---- no point meets the limits ---- */

static sm_status fail_limits(search *h, sm_error *err) {
    if (h->o->tpot_s > 0 && h->quickest.tpot_s > h->o->tpot_s) {
        char limit[32], best[32], bound[32], plan[200];
        sm_serve_point p;
        sm_status status = search_point(h, &h->quickest, &p, err);
        if (status != SM_OK) return status;
        sm_format_seconds(limit, sizeof limit, h->o->tpot_s);
        sm_format_seconds(best, sizeof best, h->quickest.tpot_s);
        sm_format_seconds(bound, sizeof bound, p.tpot_s[0]);
        sm_plan_format(&p.plan, h->slice[h->quickest.slice].torus_dims, plan, sizeof plan);
        return sm_fail(
            err, SM_NEGATIVE,
            "no plan decodes in %s a token: the least is %s, %.3g times that (%s on %s at "
            "batch %.0f, bound by %s; its lower bound is %s)",
            limit, best, h->quickest.tpot_s / h->o->tpot_s, plan, h->slice[h->quickest.slice].text,
            h->quickest.batch, sm_serve_bound_name(p.decode.bound), bound);
    }
    char limit[32], best[32];
    sm_format_seconds(limit, sizeof limit, h->o->ttft_s);
    sm_format_seconds(best, sizeof best, h->best_ttft_s);
    if (h->best_ttft_s > h->o->ttft_s)
        return sm_fail(err, SM_NEGATIVE,
                       "no plan reaches the first token in %s: the least is %s, %.3g times that, "
                       "for %.0f tokens of prompt",
                       limit, best, h->best_ttft_s / h->o->ttft_s,
                       h->s->job.prompt - h->s->job.prefix);
    return sm_fail(err, SM_NEGATIVE,
                   "each limit can be met and not both: plans that decode in time take longer than "
                   "%s to the first token",
                   limit);
}

/* ---- the answer ---- */

/* Where the most alone are asked for: is there one with more tokens, on no more chips? */
static bool is_less(const frontier *f, size_t i) {
    for (size_t k = i + 1; f->most_alone && k < f->n; k++)
        if (!(f->of_fleet && f->point[k].slice > f->point[i].slice) &&
            f->point[i].per_chip < AS_MANY * f->point[k].per_chip)
            return true;
    return false;
}

static sm_status fill_points(search *h, sm_arena *arena, sm_serve_result *r, sm_error *err) {
    const frontier *f = &h->front;
    sm_status status = SM_OK;
    r->point = sm_arena_array(arena, f->n, sizeof *r->point);
    if (!r->point) return sm_fail_memory(err);
    for (size_t i = 0; status == SM_OK && i < f->n; i++)
        if (!is_less(f, i)) status = search_point(h, &f->point[i], &r->point[r->n++], err);
    if (status) r->n = 0;
    return status;
}

sm_status search_points(const sm_serve_job *given, const sm_calibration *calibration,
                        const sm_serve_search_options *options, bool of_fleet, sm_arena *arena,
                        sm_serve_result *result, sm_error *err) {
    search h;
    sm_serve_job own_job, *job = &own_job;
    double start_s = sm_clock_s();
    sm_serve_search_options own;
    memset(result, 0, sizeof *result);
    sm_status status = sm_sized_take(&own, sizeof own, options, err);
    if (!status) status = sm_sized_take(job, sizeof *job, given, err);
    if (status == SM_OK) status = check_options(&own, err);
    if (status != SM_OK) return status;
    status = search_run(job, calibration, &own, of_fleet, &h, err);
    if (status == SM_OK) {
        result->space = h.space;
        result->evaluated = h.evaluated;
        result->pruned = h.pruned;
        result->least_chips = h.least_chips;
        result->least_bytes = h.any_fits || isinf(h.least_bytes) ? 0 : h.least_bytes;
        result->best_tpot_s = h.quickest.tpot_s;
        result->best_ttft_s = isinf(h.best_ttft_s) ? 0 : h.best_ttft_s;
        if (h.front.n > 0 || own.above > 0) status = fill_points(&h, arena, result, err);
        else if (!h.any_fits) status = fail_fit(job, &own, &h, result, err);
        else status = fail_limits(&h, err);
    }
    search_free(&h);
    result->seconds = sm_clock_s() - start_s;
    return status;
}

sm_status sm_serve_search(const sm_serve_job *job, const sm_calibration *calibration,
                          const sm_serve_search_options *options, sm_arena *arena,
                          sm_serve_result *result, sm_error *err) {
    return search_points(job, calibration, options, false, arena, result, err);
}
