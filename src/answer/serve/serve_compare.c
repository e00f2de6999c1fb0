/* serve_compare: the same requests on several systems, or in several engines, the best plan of each
 * side by side. */
#include "scalemodel/answer_words.h"
#include "serve_asked.h"
#include <assert.h>
#include <string.h>

typedef struct sm_serve_comparison {
    sm_report *report;
    sm_data *list;
    const sm_framework *engine; /* that is asked now; NULL: systems are compared */
    int n, found;
    sm_compared row[SM_MAX_COMPARED];
    const sm_serve_asked *asked[SM_MAX_COMPARED];
    const char *constants[SM_MAX_COMPARED]; /* "h100 vllm-2026"; NULL: nothing was found */
    sm_serve_result total;                  /* sums over the systems */
} comparison;

/* Of a token: what a chip takes in a second over the tokens it makes in it. */
static double joules_per_token(const sm_serve_asked *q, const sm_serve_point *p) {
    return sm_rated_energy_j(&q->in.system->chip, 1.0 / sm_serve_throughput(q, p));
}

static sm_compared point_row(sm_report *r, const char *name, const sm_serving_found *a) {
    const sm_serve_asked *q = a->q;
    const sm_serve_point *p = a->best;
    double usd = sm_serve_cost(q, p);
    return (sm_compared){
        .name = name,
        .plan = sm_serve_typed_plan(r, q, &q->job.dtypes, &p->plan),
        .cells = {name, sm_show_exact(r, p->chips), sm_serve_batch_words(r, p->batch),
                  sm_show_seconds(r, p->tpot_s[1]), sm_show_seconds(r, p->ttft_s[1]),
                  sm_show_number(r, sm_serve_throughput(q, p)),
                  usd > 0.0 ? sm_show_usd(r, usd) : "-",
                  sm_show_energy(r, 1e6 * joules_per_token(q, p))}};
}

/* Of a fleet: as many chips as its replicas take. */
static sm_compared fleet_row(sm_report *r, const char *name, const sm_serving_found *a) {
    const sm_serve_asked *q = a->q;
    const sm_fleet *f = a->fleet;
    const double per_token = sm_serve_fleet_cost(f);
    return (sm_compared){.name = name,
                         .plan = sm_serve_typed_plan(r, q, &q->job.dtypes, &f->point.plan),
                         .cells = {name, sm_show_exact(r, f->replicas), sm_show_exact(r, f->chips),
                                   sm_show_percent(r, f->utilisation),
                                   sm_show_seconds(r, f->tpot_s), sm_show_seconds(r, f->ttft_s),
                                   f->usd_per_hour > 0.0 ? sm_show_usd(r, f->usd_per_hour) : "-",
                                   f->usd_per_hour > 0.0 ? sm_show_usd(r, per_token) : "-"}};
}

static void put_row(comparison *c, const sm_serving_found *a, bool found) {
    sm_report *r = c->report;
    const sm_serve_asked *q = a->q;
    sm_data *object = sm_put_object(r, c->list, NULL);
    if (c->engine)
        sm_put(r, object, "framework|software", sm_framework_name(c->engine),
               q->in.calibration->software);
    else sm_system_fields(r, object, q->in.system);
    sm_put(r, object, "found", found);
    if (!found) sm_put(r, object, "reason", a->reason);
    if (!found) return;
    sm_serve_point_data(r, object, q, a->best);
    sm_serve_dtypes_data(r, object, &q->job.dtypes);
    sm_constants_data(r, object, q->used, &q->in.system->chip);
    if (a->fleet) sm_serve_fleet_data(r, sm_put_object(r, object, "fleet"), q, a->fleet);
    sm_put(r, object, "energy_j_per_token", joules_per_token(q, a->best));
}

/* One system, or engine, has been asked. A point that was only priced may miss the limits. */
static sm_status take(void *context, sm_serve *serve, sm_serving_found *a, sm_error *err) {
    (void)serve;
    comparison *c = context;
    const sm_serve_result *s = a->result;
    const bool rate = a->q->in.requests_per_s > 0.0;
    bool found = a->best && a->best->fits && !a->reason;
    sm_status status = rate && found ? sm_serve_find_traffic(a->q, a, err) : SM_OK;
    if (status) return status;
    if (rate && found && sm_serve_fleet_misses(a)) {
        a->reason = "requests that come at random keep it from the limits, with more replicas too";
        found = false;
    }
    if (!found && !a->reason) a->reason = "it does not fit";
    put_row(c, a, found);
    c->asked[c->n] = a->q;
    /* What a row is of. */
    const char *name = c->engine ? sm_framework_title(c->engine) : a->q->in.system->text;
    c->row[c->n] = found ? (rate ? fleet_row : point_row)(c->report, name, a)
                         : (sm_compared){.name = name,
                                         .reason = sm_textf(c->report, "%s: %s", name,
                                                            sm_serve_reason(c->report, a))};
    if (found)
        c->constants[c->n] = sm_textf(c->report, "%s %s", a->q->used->chip, a->q->used->software);
    c->n++;
    c->found += found;
    if (!s) return SM_OK;
    c->total.space += s->space;
    c->total.evaluated += s->evaluated;
    c->total.pruned += s->pruned;
    c->total.seconds += s->seconds;
    return SM_OK;
}

/* What each system has, in words (NULL: nothing), with those that have the same together: "fp8
 * (h100-sxm:8, h200:8), bf16 (a100:8)"; more than half of many are not named. */
static const char *grouped(const comparison *c, const char *const *word) {
    enum { MANY = 8 };
    const char *all = "";
    bool put[SM_MAX_COMPARED] = {false};
    for (int i = 0; i < c->n; i++) {
        const char *names = "";
        int alike = 0;
        for (int k = i; k < c->n && word[i] && !put[i]; k++)
            if (word[k] && strcmp(word[k], word[i]) == 0) {
                put[k] = k > i;
                names = sm_textf(c->report, "%s%s%s", names, alike++ ? ", " : "", c->row[k].name);
            }
        if (c->n > MANY && 2 * alike > c->n) names = "all others";
        if (alike)
            all = sm_textf(c->report, "%s%s%s (%s)", all, all[0] ? ", " : "", word[i], names);
    }
    return all;
}

/* The rows, and what is to be said of them. */
static void rows_page(const comparison *c) {
    sm_report *r = c->report;
    const sm_serve_asked *q = c->asked[0];
    const double rate = q->in.requests_per_s;
    sm_compared_page(r, c->engine ? "engine" : "system",
                     rate > 0.0 ? ">replicas|>chips|>busy|>token|>first|>$/hour|>$/Mtok"
                                : ">chips|>batch|>token|>first|>tok/s/chip|>$/Mtok|>energy/Mtok",
                     c->row, c->n);
    if (c->found) sm_report_text(r, "Constants of %s.", grouped(c, c->constants));
}

static void show(const comparison *c) {
    sm_report *r = c->report;
    assert(c->n > 0);
    const sm_serve_asked *q = c->asked[0];
    /* "fp8", where all chips compute in it. */
    const char *word[SM_MAX_COMPARED];
    int same = 0;
    for (int i = 0; i < c->n; i++) {
        word[i] = c->asked[i]->dtype_words[2];
        same += strcmp(word[i], word[0]) == 0;
    }
    const char *compute = same == c->n ? word[0] : grouped(c, word);
    sm_serve_job_data(r, q, compute);
    sm_serve_job_page(r, q,
                      c->n > 1 ? sm_textf(r, "%s and %d more", q->in.system->text, c->n - 1)
                               : q->in.system->text,
                      compute);
    const double rate = q->in.requests_per_s;
    if (rate > 0.0)
        sm_report_heading(r, "A fleet of each for %s requests a second", sm_show_exact(r, rate));
    else sm_report_heading(r, "Most tokens per chip on each");
    rows_page(c);
    if (c->found)
        sm_report_text(r, "%sPrices: %s.",
                       rate > 0.0 ? "" : "Energy: the chips alone, at their rated power. ",
                       q->in.usd_per_chip_hour ? "as given" : "the catalogue's");
    if (!q->one) sm_serve_search_data(r, &c->total);
    if (!q->one) sm_serve_search_page(r, &c->total);
}

static comparison *comparison_of(sm_report *r, const char *key, sm_error *err) {
    comparison *c = sm_arena_alloc(r->arena, sizeof *c);
    if (!c) sm_fail_memory(err);
    else *c = (comparison){.report = r, .list = sm_put_array(r, r->data, key)};
    return c;
}

sm_status sm_serve_compare(const sm_serve_question *question, sm_report *r, sm_error *err) {
    sm_status status = sm_question_limit("n_systems", question->n_systems, SM_MAX_COMPARED, err);
    comparison *c = status ? NULL : comparison_of(r, "systems", err);
    if (!c) return status ? status : err->status;
    sm_serve *like = NULL;
    r->records = c->list;
    for (int i = 0; i < question->n_systems && !status; i++) {
        sm_serve_question one = *question;
        one.system = &question->systems[i];
        if (one.calibrations) one.calibration = one.calibrations[i];
        if (one.softwares) one.software = one.softwares[i];
        if (!one.calibration && one.software)
            one.calibration = sm_software_calibration(&one.system->chip, one.software);
        status = sm_serve_ask(&one, &like, r, take, c, err);
    }
    sm_serve_free(like);
    if (status) return status;
    show(c);
    return c->found ? SM_OK : SM_NEGATIVE;
}

/* ---- the same question in each engine ---- */

/* Who names an engine or constants, or takes any plan, is told of no other. */
static bool is_asked_of_each(const sm_serve_asked *q) {
    const sm_serve_question *in = &q->in;
    bool named = in->framework || in->calibration || in->software || in->engine || in->emit;
    return q->in_frameworks && (!q->one || q->shares > 0) && !named && !in->disaggregated &&
           in->n_systems == 0;
}

sm_status sm_serve_engines(sm_serving_found *a, sm_error *err) {
    const sm_serve_asked *q = a->q;
    if (!is_asked_of_each(q)) return SM_OK;
    comparison *c = comparison_of(q->report, "engines", err);
    sm_serve *like = q->job.like;
    a->engines = c;
    sm_status status = c ? SM_OK : SM_INTERNAL;
    for (const sm_plan_space *s = q->search.space; s && !status; s = s->next) {
        const sm_framework_job job = {s->context, SM_EVIDENCE_SERVING, q->in.model,
                                      &q->in.system->chip};
        const sm_calibration *own = NULL;
        sm_serve_question one = q->in;
        status = sm_framework_calibration(&job, NULL, q->arena, &own, err);
        if (status || !own) continue;
        c->engine = one.framework = s->context;
        one.calibration = own;
        one.software = own->software;
        one.n_systems = 1; /* one point of each is told */
        if (q->taken) one.concurrency = q->requests;
        status = sm_serve_ask(&one, &like, q->report, take, c, err);
    }
    if (like != q->job.like) sm_serve_free(like);
    return status;
}

void sm_serve_engines_page(sm_report *r, const sm_serving_found *a) {
    if (!a->engines || a->engines->n == 0) return;
    sm_report_heading(r, "The best of each engine, by constants of its own");
    rows_page(a->engines);
    sm_report_text(r, "--framework NAME tells all of one.");
}
