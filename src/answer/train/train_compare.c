/* train_compare: the same job on several systems, the best plan of each side by side; under limits
 * to the run's time and cost, the fewest chips of each kind that keep them. */
#include "train_asked.h"

enum { MOST_CHIPS = 1 << 16, HOST_CHIPS = 8 };

/* The question of one system: its own constants, price and frameworks. */
static sm_status question_of(const sm_train_asked *q, int at, sm_train_asked **out, sm_error *err) {
    const sm_system *system = q->in.n_systems > 0 ? &q->in.systems[at] : q->in.system;
    sm_train_asked *own = *out = sm_arena_alloc(q->report->arena, sizeof *own);
    if (!own) return sm_fail_memory(err);
    *own = *q;
    own->in.system = own->system = own->job.system = system;
    if (q->in.n_systems > 0 && q->in.calibrations) own->in.calibration = q->in.calibrations[at];
    else if (!q->own_constants) own->in.calibration = sm_calibration_of(&system->chip);
    own->price_known = q->in.usd_per_chip_hour || sm_chip_usd_per_hour(&system->chip) > 0.0;
    own->search.top = 1;
    own->search.progress = NULL;
    own->search.space = own->all;
    own->in_frameworks = false;
    return sm_train_keep_to(own, err);
}

static bool keeps_limits(const sm_train_asked *q, const sm_train_point *p) {
    const sm_price_of_plan *price = &p->best.detail.price;
    if (!p->found || (q->in.within_s > 0.0 && price->train_time_s > q->in.within_s)) return false;
    return q->in.budget_usd <= 0.0 || (q->price_known && price->cost_usd <= q->in.budget_usd);
}

/* ---- the fewest chips ---- */

typedef struct fewest {
    sm_train_sweep *w;
    sm_train_point *best;      /* found is false: none so far */
    sm_price_of_plan *nearest; /* the quickest that does not keep them; no chips: none */
} fewest;

static sm_status try_chips(const fewest *f, int chips, bool *keeps, bool *hopeless, sm_error *err) {
    const sm_train_asked *q = f->w->q;
    sm_train_point p = {.found = false};
    sm_status status = sm_train_point_find(f->w, chips, &p, err);
    *keeps = !status && keeps_limits(q, &p);
    /* far over the budget already: more chips cost no less */
    *hopeless = !status && p.found && q->in.budget_usd > 0.0 &&
                p.best.detail.price.cost_usd > 2.0 * q->in.budget_usd;
    bool cost = q->search.objective == SM_OBJECTIVE_COST && f->best->found;
    if (*keeps && !(cost && p.best.detail.price.cost_usd >= f->best->best.detail.price.cost_usd))
        *f->best = p;
    else if (!f->best->found) f->best->reason = p.reason ? p.reason : "";
    const sm_price_of_plan *price = &p.best.detail.price;
    if (p.found && !*keeps &&
        (f->nearest->chips == 0 || price->train_time_s < f->nearest->train_time_s))
        *f->nearest = *price;
    return status;
}

/* Doubling from a host on; then between the last number that was too few and the first that is
 * enough, by quarters. A system of more than one chip says how many there are at the most. */
static sm_status find_fewest(const fewest *f, sm_error *err) {
    const sm_system *system = f->w->q->in.system;
    int most = system->chips > 1 ? system->chips : MOST_CHIPS;
    int first = system->chip.chips_per_host > 0 ? system->chip.chips_per_host : HOST_CHIPS;
    bool keeps = false, hopeless;
    sm_status status = SM_OK;
    int64_t chips = first < most ? first : most;
    while (!status) {
        status = try_chips(f, (int)chips, &keeps, &hopeless, err);
        if (status || keeps || hopeless || chips == most || f->w->interrupted) break;
        chips = chips * 2 < most ? chips * 2 : most;
    }
    int64_t low = chips / 2, quarter = low / 4;
    for (int64_t part = quarter * 2; keeps && !status && part >= quarter && part >= first;
         part /= 2) {
        bool enough;
        status = try_chips(f, (int)(low + part), &enough, &hopeless, err);
        if (!enough) low += part;
    }
    return status;
}

/* What comes nearest to limits that no number of chips keeps. */
static const char *missed_by(const sm_train_asked *q, const sm_price_of_plan *nearest) {
    sm_report *r = q->report;
    const sm_system *system = q->in.system;
    const char *cost = sm_show_usd(r, nearest->cost_usd);
    const char *time = sm_show_seconds(r, nearest->train_time_s);
    bool more = system->chips > 1 && nearest->chips == system->chips;
    if (q->in.budget_usd > 0.0 && nearest->cost_usd > q->in.budget_usd)
        return sm_textf(r, "%d chips cost %s and take %s, and more of them cost no less",
                        nearest->chips, cost, time);
    return sm_textf(r, "%d chips take %s at best%s%s", nearest->chips, time,
                    q->price_known ? sm_textf(r, ", for %s", cost) : "",
                    more ? sm_textf(r, "; --on %s looks at any number of them", system->chip.name)
                         : "");
}

static sm_status find_point(sm_train_sweep *w, sm_train_point *p, bool limited, sm_error *err) {
    if (!limited) return sm_train_point_find(w, w->q->in.system->chips, p, err);
    sm_price_of_plan nearest = {.chips = 0};
    const fewest f = {w, p, &nearest};
    p->system = *w->q->in.system;
    if (w->q->in.budget_usd > 0.0 && !w->q->price_known) {
        p->reason = "the catalogue has no price of it; --price USD names one";
        return SM_OK;
    }
    sm_status status = find_fewest(&f, err);
    if (!status && !p->found && nearest.chips > 0) p->reason = missed_by(w->q, &nearest);
    return status;
}

/* ---- showing ---- */

/* What the run takes, or a thousand million tokens where its length is not given. */
typedef struct taken {
    double tokens, s, usd, joules; /* NAN where price or rated power are not known */
} taken;

static taken taken_by(const sm_train_asked *q, const sm_train_point *p) {
    const sm_price_of_plan *price = &p->best.detail.price;
    bool run = q->job.tokens > 0.0;
    double tokens = run ? q->job.tokens : 1e9;
    double s = run ? price->train_time_s : tokens / (price->tokens_per_s_per_chip * price->chips);
    double usd_per_hour =
        q->in.usd_per_chip_hour ? *q->in.usd_per_chip_hour : sm_chip_usd_per_hour(&p->system.chip);
    return (taken){tokens, s, q->price_known ? s / 3600.0 * usd_per_hour * price->chips : NAN,
                   sm_rated_energy_j(&p->system.chip, price->chips * s)};
}

static sm_compared point_row(sm_report *r, const sm_train_asked *q, const sm_train_point *p) {
    const sm_price_of_plan *price = &p->best.detail.price;
    const taken t = taken_by(q, p);
    return (sm_compared){
        .name = p->system.text,
        .plan = sm_textf(r, "%s%s", sm_train_in(r, p->q, "", ": "), p->best.text),
        .cells = {
            p->system.text, sm_show_seconds(r, price->expected_s), sm_show_percent(r, price->mfu),
            sm_show_count(r, price->tokens_per_s_per_chip * price->chips), sm_show_seconds(r, t.s),
            q->price_known ? sm_show_usd(r, t.usd) : "-", sm_show_energy(r, t.joules)}};
}

static void put_point(sm_report *r, sm_data *list, const sm_train_asked *q,
                      const sm_train_point *p) {
    sm_data *object = sm_put_object(r, list, NULL);
    sm_system_fields(r, object, &p->system);
    sm_put(r, object, "found", p->found);
    if (!p->found) sm_put(r, object, "reason", p->reason ? p->reason : "");
    if (!p->found) return;
    sm_put(r, object, "sequences", p->sequences);
    const taken t = taken_by(q, p);
    sm_put(r, sm_put_object(r, object, "run"), "tokens|time_s|cost_usd", t.tokens, t.s, t.usd);
    sm_put(r, object, "energy_j", t.joules);
    sm_constants_data(r, object, p->q->in.calibration, &p->system.chip);
    sm_train_plan_data(r, object, p->q, &p->best);
}

static void show_limits(sm_report *r, const sm_train_asked *q, const sm_train_point *p, int n) {
    const char *within =
        q->in.within_s > 0.0 ? sm_textf(r, " within %s", sm_show_seconds(r, q->in.within_s)) : "";
    const char *budget =
        q->in.budget_usd > 0.0 ? sm_textf(r, " for %s", sm_show_usd(r, q->in.budget_usd)) : "";
    bool cost = q->search.objective == SM_OBJECTIVE_COST;
    const sm_train_point *best = NULL;
    for (int i = 0; i < n; i++) {
        const sm_price_of_plan *a = &p[i].best.detail.price;
        const sm_price_of_plan *b = best ? &best->best.detail.price : NULL;
        if (p[i].found && (!b || (cost ? a->cost_usd < b->cost_usd : a->chips < b->chips)))
            best = &p[i];
    }
    const char *what =
        sm_textf(r, "%s tokens%s%s", sm_show_count(r, q->job.tokens), within, budget);
    if (best)
        sm_report_heading(r, "%s: %d chips, %s", what, best->best.detail.price.chips,
                          best->system.text);
    else sm_report_heading(r, "%s: none of these does it", what);
}

static sm_compared no_row(sm_report *r, const sm_train_point *p, bool limited) {
    const char *why = p->reason && p->reason[0] ? p->reason
                      : limited                 ? "no number of chips looked at keeps the limits"
                                                : "stopped";
    return (sm_compared){.reason = sm_textf(r, "%s: %s.", p->system.chip.name, why)};
}

static void show_all(sm_report *r, sm_train_asked *const *own, const sm_train_point *p, int n,
                     bool limited) {
    const sm_train_asked *q = own[0];
    sm_compared row[SM_MAX_COMPARED];
    if (limited) show_limits(r, q, p, n);
    if (!limited) sm_report_heading(r, "The best plan on each");
    sm_data *list = sm_put_array(r, r->data, "systems");
    r->records = list;
    for (int i = 0; i < n; i++) {
        put_point(r, list, own[i], &p[i]);
        row[i] = p[i].found ? point_row(r, own[i], &p[i]) : no_row(r, &p[i], limited);
    }
    sm_compared_page(r, "system",
                     q->job.tokens > 0.0 ? ">step|>MFU|>tokens/s|>run|>cost|>energy"
                                         : ">step|>MFU|>tokens/s|>1B tokens|>cost|>energy",
                     row, n);
    sm_report_text(r, "Energy: the chips alone, at their rated power. Prices: %s.",
                   q->in.usd_per_chip_hour ? "as given" : "the catalogue's");
}

sm_status sm_train_compare(sm_train_asked *q, sm_report *r, sm_error *err) {
    int n = q->in.n_systems > 0 ? q->in.n_systems : 1;
    bool limited = q->in.within_s > 0.0 || q->in.budget_usd > 0.0, any = false;
    sm_train_point *point = sm_arena_array(r->arena, (size_t)n, sizeof *point);
    sm_train_asked *own[SM_MAX_COMPARED];
    sm_train_sweep total = {.total = {.optimal = true}};
    if (!point) return sm_fail_memory(err);
    for (int i = 0; i < n && !total.interrupted; i++) {
        sm_status status = question_of(q, i, &own[i], err);
        total.q = own[i];
        if (!status) status = find_point(&total, &point[i], limited, err);
        if (status) return status;
        any = any || point[i].found;
    }
    if (total.interrupted) return sm_fail(err, SM_NEGATIVE, "stopped before all systems were done");
    sm_train_job_data(r, q, total.sequences);
    sm_train_search_data(r, &total.total);
    sm_train_job_page(r, own[0], total.sequences, total.most);
    show_all(r, own, point, n, limited);
    if (total.total.space > 0.0)
        sm_train_search_page(r, &total.total, total.found, sm_train_whose(q));
    return any ? SM_OK : SM_NEGATIVE;
}
