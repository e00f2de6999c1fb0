/* answer_serve: the frontier of latency, throughput and cost at which a model can be served, or one
 * point of it. */
#include <assert.h>

#include "runners.h"
#include "serve_asked.h"

enum { USUAL_PROMPT = 2048, USUAL_OUTPUT = 512, USUAL_TOP = 12 };

/* ---- the question ---- */

/* "int8,bf16" */
static const char *list_words(sm_report *r, const sm_dtype_list *list) {
    const char *words = sm_dtype_name(list->type[0]);
    for (int i = 1; i < list->n; i++)
        words = sm_textf(r, "%s,%s", words, sm_dtype_name(list->type[i]));
    return words;
}

/* What weights of these types are computed in, each once. */
static sm_dtype_list usual_compute(const sm_chip *chip, const sm_dtype_list *weights) {
    sm_dtype_list all = {0};
    for (int w = 0; w < weights->n; w++) {
        sm_dtype type = sm_serve_usual_compute(chip, weights->type[w]);
        int at = 0;
        while (at < all.n && all.type[at] != type) at++;
        if (at == all.n) all.type[all.n++] = type;
    }
    return all;
}

/* Every combination of the types asked for. Weights of which nothing is said are as the checkpoint
 * has them, if that is quantised; what is computed in goes with each type of weights. */
static void read_dtypes(sm_serve_asked *q) {
    sm_dtype_list *const list[3] = {&q->in.weights, &q->in.kv, &q->in.compute};
    assert(q->in.model);
    const sm_stored *stored = &q->in.model->stored;
    bool usual = list[2]->n == 0;
    sm_dtype half = sm_serve_usual_compute(&q->in.system->chip, SM_BF16);
    q->job.as_stored = list[0]->n == 0 && stored->quantised;
    if (list[0]->n == 0) *list[0] = (sm_dtype_list){1, {stored->quantised ? stored->type : half}};
    if (list[1]->n == 0) *list[1] = (sm_dtype_list){1, {half}};
    if (usual) list[2]->n = 1;
    for (int w = 0; w < list[0]->n; w++)
        for (int k = 0; k < list[1]->n; k++)
            for (int c = 0; c < list[2]->n; c++) {
                sm_serve_dtypes d = {list[0]->type[w], list[1]->type[k], list[2]->type[c]};
                if (usual) d.compute = sm_serve_usual_compute(&q->in.system->chip, d.weights);
                q->choice[q->choices++] = d;
            }
    q->job.dtypes = q->choice[0];
    if (usual) *list[2] = usual_compute(&q->in.system->chip, list[0]);
    for (int i = 0; i < 3; i++) q->dtype_words[i] = list_words(q->report, list[i]);
}

static sm_status read_plan(sm_serve_asked *q, sm_error *err) {
    const sm_source *plan = &q->in.plan;
    const sm_system *system = q->in.system;
    sm_status status = sm_serve_keep_to(q, err);
    if (status || !plan->text) return status;
    int chips = sm_plan_chips(&q->search.fixed), most = q->search.chips_most;
    sm_span all = {0, plan->length};
    if (chips > system->chips)
        return sm_fail_at(err, plan, all, "the plan takes %d chips and %s has %d", chips,
                          system->text, system->chips);
    if (most == 0 || chips <= most) return SM_OK;
    return sm_fail_at(err, plan, all, "the plan takes %d chips and --chips allows %d", chips, most);
}

static sm_status read_question(sm_serve_asked *q, sm_error *err) {
    const sm_serve_question *in = &q->in;
    q->software = in->engine ? *in->engine : *sm_software_of(in->software);
    sm_software_on(&q->software, &in->system->chip, in->model, in->speculation.depth != 0);
    q->job =
        (sm_serve_job){.size = sizeof(sm_serve_job),
                       .model = in->model,
                       .system = in->system,
                       .software = &q->software,
                       .alone = in->alone,
                       .prompt = in->prompt > 0.0 ? in->prompt : USUAL_PROMPT,
                       .output = in->output > 0.0 ? in->output : USUAL_OUTPUT,
                       .context = in->context,
                       .prefix = in->prefix,
                       .imbalance = in->imbalance,
                       .reserve = in->reserve ? *in->reserve : -1.0,
                       .usd_per_chip_hour = in->usd_per_chip_hour ? *in->usd_per_chip_hour : -1.0,
                       .speculation = in->speculation,
                       .eager = in->eager};
    read_dtypes(q);
    sm_serve_search_defaults(&q->search);
    q->search.batch = in->batch;
    q->search.ttft_s = in->ttft_s;
    q->search.tpot_s = in->tpot_s;
    q->search.by_lower = in->by_lower;
    /* One point of each is told. */
    q->search.closed_first = q->search.most_alone = in->n_systems > 0;
    if (in->chips_least > 0) q->search.chips_least = in->chips_least;
    if (in->chips_most > 0) q->search.chips_most = in->chips_most;
    if (in->top <= 0) q->in.top = USUAL_TOP;
    sm_status status = sm_question_seen(in->model, "prompt", q->job.prompt, err);
    if (!status) status = read_plan(q, err);
    /* Any degree given with a batch makes a whole plan: degrees not named are 1. */
    uint64_t degrees = (1ull << SM_PLAN_DEGREES) - 1;
    q->one = (in->batch > 0.0 || in->concurrency > 0.0) && (q->search.fixed.given & degrees) &&
             in->requests_per_s <= 0.0 && !in->disaggregated;
    if (!status && q->one && q->choices > 1)
        return sm_fail(err, SM_USAGE,
                       "a plan with a batch is one point, of one type each of weights, cache and "
                       "compute; without --batch they are compared");
    if (in->alone && in->requests_per_s > 0.0 && !in->disaggregated)
        return sm_fail(err, SM_USAGE,
                       "--decode-only has no fleet: --qps sizes one whose prompts are prefilled on "
                       "its own chips, with --disaggregated both pools");
    if (status || !(in->concurrency > 0.0)) return status;
    if (in->batch > 0.0 || in->alone || in->requests_per_s > 0.0 || in->disaggregated)
        return sm_fail(err, SM_USAGE,
                       "--concurrency is of engines whose prefills share their chips: it goes "
                       "without --batch, --decode-only, --qps and --disaggregated");
    if (!q->one && q->choices > 1)
        return sm_fail(err, SM_USAGE,
                       "--concurrency takes one type each of weights, cache and "
                       "compute");
    return q->one ? SM_OK : sm_serve_closed(q, err);
}

/* ---- the point that is shown ---- */

sm_status sm_serve_open(sm_serve_asked *q, int chips, sm_serve **serve, sm_error *err) {
    const sm_system *whole = q->in.system;
    if (chips == whole->chips || !sm_system_part(whole, chips, &q->slice)) q->slice = *whole;
    sm_serve_job job = q->job;
    job.system = &q->slice;
    job.in_flight = q->in.concurrency;
    sm_status status = sm_serve_new(&job, serve, err);
    if (status) return sm_question_blame(&q->in.plan, status, err);
    if (q->in.calibration) sm_serve_set_calibration(*serve, q->in.calibration);
    q->used = sm_serve_calibration(*serve);
    return SM_OK;
}

/* One point may miss limits that the search would have kept to. */
static void check_limits(const sm_serve_asked *q, sm_serving_found *a) {
    const sm_serve_point *p = a->best;
    const struct {
        const char *what;
        double limit_s, time_s;
    } check[2] = {{"a token takes", q->search.tpot_s, p->tpot_s[1]},
                  {"the first token takes", q->search.ttft_s, p->ttft_s[1]}};
    for (int i = 0; i < 2 && !a->reason; i++) {
        if (check[i].limit_s <= 0.0 || check[i].time_s <= check[i].limit_s) continue;
        a->reason = sm_textf(q->report, "%s %s, %.2g times the limit of %s", check[i].what,
                             sm_show_seconds(q->report, check[i].time_s),
                             check[i].time_s / check[i].limit_s,
                             sm_show_seconds(q->report, check[i].limit_s));
    }
}

sm_status sm_serve_in_flight(sm_serve_asked *q, sm_serve *serve, sm_error *err) {
    const sm_plan *plan = &q->search.fixed;
    sm_engines one = sm_engines_of(serve, plan, 1.0);
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = q->in.concurrency};
    double most = sm_software_most(&q->software, sm_plan_groups(plan, q->in.model));
    sm_load_times times;
    sm_serve_room room;
    sm_status status = sm_serve_room_of(serve, plan, sm_serve_longest(&q->job),
                                        fmin(q->job.prompt, 8192.0), &room, err);
    one.most_running = fmin(fmax(room.most, 1.0), most);
    if (room.most >= 2.0) one.kv_tokens = room.most * sm_serve_longest(&q->job);
    if (!status) status = sm_serve_load(&one, &load, false, &times, err);
    if (!status) q->search.batch = times.running;
    return status;
}

static sm_status price_one(sm_serve_asked *q, sm_serve **serve, sm_serving_found *a,
                           sm_error *err) {
    sm_serve_detail *detail = sm_arena_alloc(q->arena, sizeof *detail);
    sm_serve_result *result = sm_arena_alloc(q->arena, sizeof *result);
    if (!detail || !result) return sm_fail_memory(err);
    sm_status status = sm_serve_open(q, sm_plan_chips(&q->search.fixed), serve, err);
    if (status) return status;
    if (q->in.concurrency > 0.0) status = sm_serve_in_flight(q, *serve, err);
    sm_serve_point p;
    if (!status) status = sm_serve_point_of(*serve, &q->search.fixed, q->search.batch, &p, err);
    if (!status) status = sm_serve_detail_of(*serve, &p, q->arena, detail, err);
    if (status) return sm_question_blame(&q->in.plan, status, err);
    *result = (sm_serve_result){.n = 1, .point = &detail->point, .space = 1, .evaluated = 1};
    a->detail = detail;
    a->best = &detail->point;
    a->result = result;
    check_limits(q, a);
    return SM_OK;
}

/* The point of the most tokens per chip, where each doubling of the chips has to give a hundredth
 * more; copies of a model count with the whole sequences that each has. */
static size_t best_of(const sm_serve_asked *q, const sm_serve_result *found) {
    size_t best = 0;
    double most = 0.0;
    for (size_t i = 0; i < found->n; i++) {
        const sm_serve_point *p = &found->point[i];
        double each = p->batch / p->plan.data,
               whole = sm_serve_throughput(q, p) * floor(each) / each;
        double worth = whole / pow(1.0 + SM_WORTH_TELLING, log2(p->chips));
        if (worth > most) best = i;
        most = fmax(most, worth);
    }
    return best;
}

static sm_status search(sm_serve_asked *q, sm_serve **serve, sm_serving_found *a, sm_error *err) {
    sm_status status = sm_serve_choices(q, a, err);
    if (status) return status;
    if (a->result->n == 0) return SM_OK;
    a->at = best_of(q, a->result);
    a->best = &a->result->point[a->at];
    a->of_best = &a->of_choice[a->choice[a->at]];
    q->job.dtypes = *sm_serve_dtypes_of(a, a->at);
    status = sm_serve_open(q, a->best->chips, serve, err);
    sm_serve_detail *detail = sm_arena_alloc(q->arena, sizeof *detail);
    if (!detail) return sm_fail_memory(err);
    if (status) return status;
    if (q->search.closed_first) { /* and nothing more is told of it */
        const sm_serve_point *p = a->best;
        a->best = &detail->point;
        return sm_serve_point_of(*serve, &p->plan, p->batch, &detail->point, err);
    }
    a->detail = detail;
    return sm_serve_detail_of(*serve, a->best, q->arena, detail, err);
}

/* ---- beyond one replica ---- */

/* Prefill and decode apart, on one system or on two; above: only what gives more tokens a chip. */
static sm_status find_pools(const sm_serve_asked *q, double above, sm_disaggregated *pools,
                            sm_error *err) {
    sm_serve_search_options options = q->search;
    const sm_serve_dtypes *d = &q->job.dtypes;
    const sm_chip *chip = &q->in.system->chip;
    const sm_system *from = q->in.prefill_system;
    sm_pools_asked asked = {.prefill_system = from,
                            .prefill_calibration = q->in.prefill_calibration,
                            .prefill_compute = d->compute,
                            .requests_per_s = q->in.requests_per_s};
    if (from && d->compute == sm_serve_usual_compute(chip, d->weights))
        asked.prefill_compute = sm_serve_usual_compute(&from->chip, d->weights);
    if (from && !asked.prefill_calibration && q->in.software)
        asked.prefill_calibration = sm_software_calibration(&from->chip, q->in.software);
    options.above = above;
    return sm_serve_disaggregate(&q->job, q->in.calibration, &options, &asked, pools, err);
}

sm_status sm_serve_find_traffic(const sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    sm_disaggregated *pools = sm_arena_alloc(q->arena, sizeof *pools);
    sm_fleet *fleet = sm_arena_alloc(q->arena, sizeof *fleet);
    sm_status status = SM_OK;
    if (!pools || !fleet) return sm_fail_memory(err);
    if (q->in.disaggregated && !a->reason) {
        sm_error none = {.status = SM_OK};
        status = find_pools(q, 0.0, pools, &none);
        if (!status) a->pools = pools;
        else if (status == SM_NEGATIVE) a->reason = sm_textf(q->report, "%s", none.sentence);
        else *err = none;
        if (status == SM_NEGATIVE) status = SM_OK;
    }
    bool of_replica = a->best && !q->one && !q->job.alone && !q->search.by_lower &&
                      !q->in.disaggregated && !q->in.brief;
    if (!status && !a->reason && !q->in.prefill_system &&
        (q->in.requests_per_s > 0.0 || of_replica)) {
        a->fleet = fleet;
        status = sm_serve_fleet(&q->job, q->in.calibration, &q->search, a->of_best,
                                q->in.requests_per_s, fleet, err);
    }
    return status;
}

static const double WORTH_OFFERING = 1.1; /* so many times the tokens of a chip */

/* Pools, where they do a tenth more. */
static sm_status offer_pools(const sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    const double least = WORTH_OFFERING * sm_serve_fleet_tokens(a->fleet);
    sm_error none = {.status = SM_OK};
    sm_disaggregated *pools = sm_arena_alloc(q->arena, sizeof *pools);
    if (!pools) return sm_fail_memory(err);
    sm_status status = find_pools(q, least, pools, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (!status && pools->requests_per_s * q->job.output > least * pools->chips) a->pools = pools;
    return status > SM_NEGATIVE ? status : SM_OK;
}

/* Of mixtures a prompt on one group of chips holds up all of them, and steps with fewer tokens of
 * it less: the replica of such steps, where it does a tenth more than that of the engine's own. */
static sm_status offer_fewer(const sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    sm_software software = q->software;
    sm_serve_job job = q->job;
    sm_serve_search_options options = q->search;
    sm_error none = {.status = SM_OK};
    sm_fleet *f = sm_arena_alloc(q->arena, sizeof *f);
    if (!f) return sm_fail_memory(err);
    job.software = &software;
    software.budget_tokens = SM_FEWER_TOKENS;
    software.budget_of_all = 0.0;
    software.budget_given = true;
    options.above = WORTH_OFFERING * sm_serve_fleet_tokens(a->fleet);
    sm_status status = sm_serve_fleet(&job, q->in.calibration, &options, NULL, 0.0, f, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (status > SM_NEGATIVE) return status;
    if (!status && sm_serve_fleet_tokens(f) > options.above) a->fewer = f;
    return SM_OK;
}

/* What nobody asked for, beside the replica of requests that come at random. */
static sm_status offer(const sm_serve_asked *q, sm_serving_found *a, sm_error *err) {
    const sm_serve_question *in = &q->in; /* who takes any plan searches long enough */
    if (!a->fleet || in->requests_per_s > 0.0 || in->concurrency > 0.0 || in->emit || in->any_plan)
        return SM_OK;
    sm_status status = offer_pools(q, a, err);
    const bool fewer =
        sm_model_has_experts(q->in.model) && !q->software.budget_given && q->software.mixed_steps;
    return status || !fewer ? status : offer_fewer(q, a, err);
}

static sm_status answer(void *context, sm_serve *serve, sm_serving_found *a, sm_error *err) {
    sm_report *r = context;
    const sm_serve_asked *q = a->q;
    sm_status status = sm_serve_find_traffic(q, a, err);
    if (!status) status = offer(q, a, err);
    if (!status && a->best && (q->one || q->in.plot)) status = sm_serve_batches(a, err);
    if (!status && a->best) status = sm_serve_find_room(serve, a, err);
    if (!status && a->of_best) status = sm_serve_beyond(a, err);
    if (status) return status;
    sm_serve_data(r, a);
    if (a->best && !q->in.brief) status = sm_serve_engines(a, err);
    if (status) return status;
    if (q->in.emit && a->best) return sm_serve_emit(a, err);
    if (q->in.recipe) sm_recipe_page(r, q->in.recipe);
    sm_serve_page(r, a);
    if (q->in.explain && a->detail) r->why = a->detail->why;
    if (!status && q->in.plot && a->best) status = sm_serve_picture(a, err);
    if (status) return status;
    bool missed = q->in.requests_per_s > 0.0 && a->fleet && sm_serve_fleet_misses(a);
    return a->best && a->best->fits && !a->reason && !missed ? SM_OK : SM_NEGATIVE;
}

sm_status sm_serve_ask(const sm_serve_question *question, sm_serve **like, sm_report *r,
                       sm_serve_use use, void *context, sm_error *err) {
    sm_serve_asked *q = sm_arena_alloc(r->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->report = r;
    q->arena = r->arena;
    sm_status status = sm_sized_take(&q->in, sizeof q->in, question, err);
    const sm_serve_question *in = &q->in;
    if (!status) status = sm_question_needs(in->model && in->system, "a model and a system", err);
    if (!status) status = sm_question_limit("weights.n", in->weights.n, SM_MAX_DTYPES, err);
    if (!status) status = sm_question_limit("kv.n", in->kv.n, SM_MAX_DTYPES, err);
    if (!status) status = sm_question_limit("compute.n", in->compute.n, SM_MAX_DTYPES, err);
    if (!status) status = read_question(q, err);
    if (status) return status;
    sm_serve *serve = NULL, *own = NULL;
    if (!like) like = &own;
    if (!*like) status = sm_serve_new(&q->job, like, err);
    if (status == SM_INTERNAL) return status; /* of what else is wrong who searches tells */
    q->job.like = *like;
    sm_serving_found a = {.q = q};
    status = q->one ? price_one(q, &serve, &a, err) : search(q, &serve, &a, err);
    if (!status) status = use(context, serve, &a, err);
    sm_serve_free(serve);
    sm_serve_free(own);
    return status;
}

sm_status sm_answer_serve(const sm_serve_question *question, sm_report *r, sm_error *err) {
    sm_serve_question q;
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    if (status) return status;
    sm_put(r, r->data, "command", "serve");
    if (q.n_systems > 0) return sm_serve_compare(&q, r, err);
    return sm_serve_ask(question, NULL, r, answer, r, err);
}
