/* Disaggregated serving: a pool of replicas that prefill and one of replicas that decode, each at
 * its own best plan, in the ratio at which their rates of requests match:
 *   prefill chips / decode chips = (decode tokens per s and chip / output) / prompts per s and chip
 * ("How To Scale Your Model", inference chapter; Zhong et al., "DistServe", 2024). */
#include "load_steps.h"
#include "serve_frontier.h"

/* How many replicas a traffic takes:   replicas = ceil(requests per second / (utilisation *
 * requests per second of one replica)). Utilisation is four fifths of what a replica does with as
 * many sequences as it holds. Arrivals are never even, and the queue of an M/G/1 server grows as
 * 1 / (1 - utilisation) (Pollaczek, Khinchine), without bound towards saturation. With fewer, for a
 * limit's sake, it may come nearer to what it does with those: what its requests then take is
 * simulated, and places stay free. */

static const double MOST_UTILISATION = 0.8;

static void set_replicas(sm_fleet *f, double replicas, double usd_per_hour, double requests_per_s) {
    f->replicas = replicas;
    f->chips = f->replicas * f->point.chips;
    f->usd_per_hour = f->chips * usd_per_hour;
    f->utilisation = requests_per_s / (f->replicas * f->requests_per_s_per_replica);
}

/* The share of its own throughput that a point may be asked for; *full: with as many sequences as
 * fit; s: an engine of it. */
static sm_status most_utilisation(sm_serve *s, const sm_serve_point *p, sm_serve_point *full,
                                  double *most, sm_error *err) {
    sm_status status = SM_OK;
    *full = *p;
    double most_running = sm_software_most(&s->software, sm_plan_groups(&p->plan, &s->model));
    double fit = floor(smaller(p->most_batch, most_running));
    if (fit > p->batch) status = point_of(s, &p->plan, fit, 0, full, err);
    double more = full->tokens_per_s_per_chip / p->tokens_per_s_per_chip;
    *most = smaller(1, MOST_UTILISATION * larger(1, more));
    return status;
}

static sm_fleet fleet_of(const sm_serve_job *job, const sm_serve_point *p, double usd_per_hour,
                         double requests_per_s, double most) {
    sm_fleet f = {.point = *p};
    f.requests_per_s_per_replica = p->tokens_per_s_per_chip * p->chips / job->output;
    double replicas = ceil(requests_per_s / (f.requests_per_s_per_replica * most));
    set_replicas(&f, larger(1, replicas), usd_per_hour, requests_per_s);
    return f;
}

/* A replica of so many of the job's chips, which may be the one that is there. */
static sm_status open_worker(const sm_serve_job *job, const sm_calibration *calibration, int chips,
                             sm_serve **out, sm_error *err) {
    sm_system slice;
    sm_serve_job own = *job;
    if (!sm_system_part(job->system, chips, &slice)) slice = *job->system;
    if (*out && (*out)->system.chips == slice.chips) return SM_OK;
    sm_serve_free(*out);
    own.system = &slice;
    sm_status status = sm_serve_new(&own, out, err);
    if (!status && calibration) sm_serve_set_calibration(*out, calibration);
    return status;
}

/* The replicas, of which s is one, under the requests as they come; those that miss the limits
 * (NULL: none) may have INFINITY to the first token. */
static sm_status load_fleet(sm_serve *s, double requests_per_s, const sm_serve_search_options *o,
                            sm_fleet *f, sm_error *err) {
    sm_load_times times;
    sm_engines one = sm_engines_of(s, &f->point.plan, f->replicas);
    one.most_running = f->point.batch;
    const sm_load load = {.kind = SM_LOAD_OPEN,
                          .requests = requests_per_s,
                          .most_ttft_s = o ? o->ttft_s : 0,
                          .most_tpot_s = o ? o->tpot_s : 0};
    sm_status status = sm_serve_load(&one, &load, false, &times, err);
    if (status) return status;
    f->ttft_s = times.ttft_s;
    f->tpot_s = times.tpot_s;
    f->ttft_p90_s = times.ttft_p90_s;
    f->tpot_p90_s = times.tpot_p90_s;
    f->running = times.running;
    return SM_OK;
}

static bool is_same_kind(const sm_serve_point *a, const sm_serve_point *b) {
    char one[512], other[512];
    if (a->chips != b->chips || a->plan.tensor != b->plan.tensor) return false;
    sm_plan_format(&a->plan, 3, one, sizeof one);
    sm_plan_format(&b->plan, 3, other, sizeof other);
    return strcmp(one, other) == 0;
}

/* A point of more tokens is of the same kind. */
static bool has_better(const sm_serve_result *r, size_t i) {
    for (size_t k = i + 1; k < r->n; k++)
        if (is_same_kind(&r->point[i], &r->point[k])) return true;
    return false;
}

/* Requests that come at random take a plan longer than those of a closed loop: they bunch. Of n
 * places so many stay free that few wait for one: about the root of those taken (Halfin and Whitt,
 * "Heavy-Traffic Limits for Queues with Many Exponential Servers", 1981). Without a limit to first
 * tokens they take, once admitted and looked for, what an M/M/1 server makes at four fifths of a
 * prefill and the step beside it. */
static bool holds(const sm_serve_job *job, const sm_fleet *f, const sm_serve_search_options *o) {
    const sm_software *software = job->software ? job->software : sm_software_of(NULL);
    double looks = larger(1, larger(software->look_steps, software->gather_steps)) +
                   (software->schedules_ahead ? 1 : 0);
    double waiting_s = software->admission_s + looks * f->tpot_s +
                       (f->point.ttft_alone_s[1] + f->tpot_s) / (1 - MOST_UTILISATION);
    bool in_time = o->ttft_s > 0 ? f->ttft_p90_s <= o->ttft_s : f->ttft_s <= waiting_s;
    return in_time && f->running + sqrt(f->running) <= f->point.batch &&
           (o->tpot_s <= 0 || f->tpot_p90_s <= o->tpot_s);
}

/* What holds the limits before what does not, then the fewest chips, then the quickest. */
static bool is_better_fleet(const sm_serve_job *job, const sm_serve_search_options *o,
                            const sm_fleet *a, const sm_fleet *b) {
    if (holds(job, a, o) != holds(job, b, o)) return holds(job, a, o);
    if (a->chips < b->chips || a->chips > b->chips) return a->chips < b->chips;
    return a->ttft_s + a->tpot_s * job->output < b->ttft_s + b->tpot_s * job->output;
}

/* As few replicas as hold the limits under the requests, and no fewer than f has: f may hold them
 * or not where that takes more than so many chips. Powers of two are asked and halves between them,
 * wherever it begins, so that what holds with more of a resource at each of these is never more. */
static sm_status settle_fleet(sm_serve *s, const sm_serve_search_options *o, double usd,
                              double requests_per_s, double most_chips, sm_fleet *f,
                              sm_error *err) {
    const sm_fleet first = *f;
    double too_few = 0, least = f->replicas, below = exp2(floor(log2(least)));
    sm_status status = load_fleet(s, requests_per_s, o, f, err);
    for (; !status && !holds(&s->job, f, o) && below <= 512 * least; below *= 2) {
        too_few = f->replicas;
        if ((too_few + 1) * f->point.chips > most_chips) return SM_OK;
        set_replicas(f, 2 * below, usd, requests_per_s);
        status = load_fleet(s, requests_per_s, o, f, err);
    }
    if (status == SM_OK && !holds(&s->job, f, o)) { /* more do not help */
        *f = first;
        return load_fleet(s, requests_per_s, NULL, f, err);
    }
    if (too_few > 0) too_few = f->replicas / 2;
    while (status == SM_OK && too_few > 0 && f->replicas - too_few > 1 &&
           (too_few + 1) * f->point.chips <= most_chips) {
        sm_fleet fewer = *f;
        set_replicas(&fewer, (too_few + f->replicas) / 2, usd, requests_per_s);
        bool enough = fewer.replicas > least;
        if (enough) status = load_fleet(s, requests_per_s, o, &fewer, err);
        if (enough && holds(&s->job, &fewer, o)) *f = fewer;
        else too_few = fewer.replicas;
    }
    return status;
}

/* The utilisation, up to `most`, with which one replica holds the limits; 0: none. No more than
 * `least` is as good as none: what is less is only looked at where more holds them. */
static sm_status settle_replica(sm_serve *s, const sm_serve_search_options *o, double least,
                                double most, sm_fleet *f, sm_error *err) {
    enum { HALVINGS = 6 };
    double low = 0, high = most, taken[HALVINGS + 1];
    int n = 0;
    sm_fleet at = *f;
    sm_status status = SM_OK;
    f->utilisation = 0;
    for (int i = 0; i <= HALVINGS && !status && low < most && high > least; i++) {
        bool enough = true;
        at.utilisation = i ? 0.5 * (low + high) : high;
        if (at.utilisation <= least) taken[n++] = at.utilisation;
        else {
            status = load_fleet(s, at.utilisation * f->requests_per_s_per_replica, o, &at, err);
            enough = holds(&s->job, &at, o);
            if (enough) *f = at;
        }
        *(enough ? &low : &high) = at.utilisation;
    }
    while (!status && n > 0 && f->utilisation > 0) {
        status = load_fleet(s, taken[--n] * f->requests_per_s_per_replica, o, &at, err);
        if (!holds(&s->job, &at, o)) f->utilisation = 0;
    }
    return status;
}

/* Copies of a model that share nothing are replicas by themselves, of which a fleet may have any
 * number: one of them, in an engine of its own, where its chips are a part of the system. */
static sm_status one_copy(const sm_serve_job *job, const sm_calibration *calibration,
                          sm_serve_point *p, sm_serve **s, sm_error *err) {
    sm_plan plan = p->plan;
    sm_system slice;
    int copies = plan.data;
    if (!sm_system_part(job->system, p->chips / copies, &slice)) return SM_OK;
    plan.data = 1;
    sm_status status = open_worker(job, calibration, p->chips / copies, s, err);
    double batch = larger(1, floor(p->batch / copies));
    if (!status) status = point_of(*s, &plan, batch, 0, p, err);
    return status;
}

typedef struct fleet_search {
    const sm_serve_job *job;
    const sm_calibration *calibration;
    const sm_serve_search_options *options;
    const sm_serve_result *answer;
    double requests_per_s;
} fleet_search;

/* The best of what a search found and of `best`, from the most tokens per chip on: each kind of
 * plan with all the sequences that it may decode at once, which takes no longer where few come.
 */
static sm_status try_points(const fleet_search *x, sm_serve **worker, sm_fleet *best,
                            sm_error *err) {
    const sm_serve_job *job = x->job;
    const sm_serve_search_options *o = x->options;
    const double requests_per_s = x->requests_per_s;
    sm_status status = SM_OK;
    double usd = job->usd_per_chip_hour, most = o->above;
    sm_serve_point before = {.chips = 0};
    if (usd < 0) usd = sm_chip_usd_per_hour(&job->system->chip);
    for (size_t i = x->answer->n; i-- > 0 && !status;) {
        const sm_serve_point *of = &x->answer->point[i];
        sm_serve_point own = *of, *p = &own, full;
        bool any = best->replicas > 0, one = requests_per_s <= 0;
        bool held = !one && any && holds(job, best, o);
        double most_chips = held ? best->chips : HUGE_VAL;
        /* A loop keeps the batch small: that begins at once for first tokens, else for bunches. */
        bool any_batch = !one && (o->ttft_s > 0 || o->tpot_s > 0);
        double slack = !any_batch ? 1 : o->ttft_s > 0 ? HUGE_VAL : 2;
        double least_chips = requests_per_s * job->output / p->tokens_per_s_per_chip, busiest = 1;
        if (one && any && p->tokens_per_s_per_chip <= most) break;
        if (held && least_chips > slack * best->chips) break;
        if (has_better(x->answer, i)) continue;
        int chips = p->chips;
        if (p->plan.data > 1 && p->plan.expert == 1)
            status = one_copy(job, x->calibration, p, worker, err);
        if (!status && p->chips >= chips)
            status = open_worker(job, x->calibration, p->chips, worker, err);
        if (p->batch == before.batch && is_same_kind(p, &before)) continue; /* a copy of it */
        before = full = own;
        sm_fleet f = fleet_of(job, p, usd, requests_per_s, busiest);
        bool more = held && f.chips > slack * best->chips;
        if (!status && !more) status = most_utilisation(*worker, p, &full, &busiest, err);
        if (!status) f = fleet_of(job, p, usd, requests_per_s, busiest);
        more = more || (held && f.chips > best->chips);
        if (!status && !more)
            status =
                one ? settle_replica(*worker, o, most / p->tokens_per_s_per_chip, busiest, &f, err)
                    : settle_fleet(*worker, o, usd, requests_per_s, most_chips, &f, err);
        if (!status && any_batch && full.batch > p->batch) {
            sm_fleet fuller = fleet_of(job, &full, usd, requests_per_s, MOST_UTILISATION);
            if (!more && holds(job, &f, o)) most_chips = smaller(most_chips, f.chips);
            bool may = fuller.chips <= most_chips;
            if (may)
                status = settle_fleet(*worker, o, usd, requests_per_s, most_chips, &fuller, err);
            if (may && (more || is_better_fleet(job, o, &fuller, &f))) f = fuller;
            more = more && !may;
        }
        if (more) continue;
        double tokens = f.utilisation * p->tokens_per_s_per_chip;
        bool first = !any && !(o->above > 0);
        if (first || (one ? tokens > most : is_better_fleet(job, o, &f, best))) *best = f;
        most = larger(most, tokens);
    }
    return status;
}

sm_status sm_serve_fleet(const sm_serve_job *given, const sm_calibration *calibration,
                         const sm_serve_search_options *options, const sm_serve_result *answer,
                         double requests_per_s, sm_fleet *fleet, sm_error *err) {
    sm_serve_result result;
    sm_serve_search_options o;
    sm_serve_job own, *job = &own;
    sm_serve *worker = NULL;
    memset(fleet, 0, sizeof *fleet);
    sm_status status = sm_sized_take(&o, sizeof o, options, err);
    if (!status) status = sm_sized_take(job, sizeof *job, given, err);
    if (status) return status;
    if (!(requests_per_s >= 0 && requests_per_s <= 1e9))
        return sm_fail(err, SM_BAD_INPUT, "a traffic of %g requests a second", requests_per_s);
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    o.most_alone = false;
    if (answer && !(requests_per_s > 0)) result = *answer;
    else status = search_points(job, calibration, &o, true, arena, &result, err);
    const fleet_search x = {job, calibration, &o, &result, requests_per_s};
    if (!status) status = try_points(&x, &worker, fleet, err);
    sm_serve_point *p = &fleet->point; /* by itself, first tokens too */
    const sm_plan plan = p->plan;
    if (!status && fleet->replicas > 0)
        status = open_worker(job, calibration, p->chips, &worker, err);
    if (!status && fleet->replicas > 0) status = sm_serve_point_of(worker, &plan, p->batch, p, err);
    sm_serve_free(worker);
    sm_arena_free(arena);
    return status;
}

/* ---- the network between the pools ---- */

double sm_serve_transfer_s(const sm_system *s, double bytes, int from_chips, int to_chips) {
    int streams = from_chips < to_chips ? from_chips : to_chips;
    /* Bytes per second of one chip over the outermost level: a torus link, or its share of what all
     * chips below a switch use together. */
    const sm_level *outer = &s->level[s->levels - 1];
    double below = 1;
    for (int l = 0; l < s->levels - 1; l++) below *= s->level[l].size;
    double rate = (outer->kind == SM_LEVEL_TORUS ? outer->bytes_per_s_oneway
                                                 : outer->bytes_per_s_oneway / below) *
                  streams;
    if (!(rate > 0)) return 0; /* one chip without a network */
    return outer->hop_latency_s + bytes / rate;
}

/* ---- the best prefill ---- */

/* A replica whose chips prefill `batch` prompts at once; per_chip: prompts per second. */
typedef struct prefills {
    search *h;
    const sm_system *system; /* the pools' network */
    double kv_bytes, decode_chips;
    found best;
    double quickest_s;
} prefills;

static sm_step_batch prompts_of(const sm_serve_job *job, double group) {
    return point_batch(group, job->prompt - job->prefix, job->prefix);
}

/* As many groups are under way as there are stages. */
static double rate_of(const prefills *p, const sm_plan *plan, double group, double step_s) {
    return group * plan->pipeline / step_s / p->h->slice[p->h->at].chips;
}

/* Copies of a smaller one are no better. */
static bool is_more(const prefills *p, double rate) { return rate > p->best.per_chip * (1 + 1e-9); }

/* Whether steps of so many prompts may do more on some placement. */
static bool may_be_more(prefills *p, const sm_plan *plan, double group) {
    search *h = p->h;
    sm_error err = {0};
    sm_step_batch b = prompts_of(&h->s->job, group);
    step_floor *floor = &h->floor[plan->seq];
    if (h->o->brute || !(p->best.per_chip > 0)) return true;
    sm_status status = step_floor_s(floor, h->s, plan, &b, h->places, least_of(h), &err);
    search_note(h, status, &err);
    return status || is_more(p, rate_of(p, plan, group, floor->seconds) * (1 + 1e-9));
}

static void offer(prefills *p, const sm_plan *plan, double group) {
    int chips = p->h->slice[p->h->at].chips;
    sm_error err = {0};
    sm_step_price price;
    sm_step_batch b = prompts_of(&p->h->s->job, group);
    sm_status status = sm_serve_step(p->h->s, plan, &b, &price, &err);
    search_note(p->h, status, &err);
    if (status != SM_OK) return;
    double step_s = p->h->o->by_lower ? price.lower_s : price.expected_s;
    double all_s =
        step_s + sm_serve_transfer_s(p->system, p->kv_bytes, chips, (int)p->decode_chips);
    double rate = rate_of(p, plan, group, step_s);
    p->quickest_s = smaller(p->quickest_s, all_s);
    if ((p->h->o->ttft_s > 0 && all_s > p->h->o->ttft_s) || !is_more(p, rate)) return;
    p->best = (found){*plan, group * plan->pipeline, step_s, rate, 0, p->h->at};
}

/* By seq, on every placement. */
static void each_place(prefills *p, sm_plan plan, double group) {
    search *h = p->h;
    bool may[2];
    for (int seq = 0; seq < 2; seq++) {
        plan.seq = seq;
        may[seq] = seq_counts(h, &plan, seq) && may_be_more(p, &plan, group);
    }
    for (int i = 0; (may[0] || may[1]) && i < h->places->n; i++)
        for (int seq = 0; seq < 2; seq++) {
            sm_plan placed = placed_as(h->places, &plan, i);
            placed.seq = seq;
            if (may[seq]) offer(p, &placed, group);
        }
}

static bool visit(void *context, const sm_plan *plan) {
    prefills *p = context;
    search *h = p->h;
    holding f;
    sm_error err = {0};
    sm_serve_memory m;
    double prompt = h->s->job.prompt, most = load_budget(&h->s->software, plan, h->s);
    sm_status status = holding_of(h->s, plan, prompt, &f, &err);
    search_note(h, status, &err);
    if (status != SM_OK) return h->status == SM_OK;
    status = placements_of(h->s, plan, h->at, h->places, &err);
    search_note(h, status, &err);
    if (status != SM_OK) return false;
    for (int i = 0; i < FLOORS; i++) h->floor[i].made = false;
    for (double each = 1; each == 1 || each * prompt <= most; each *= 2) {
        double group = each * f.d.replicas;
        holding_memory(h->s, &f, group * plan->pipeline, point_step_tokens(h->s, &f.d, 1), &m);
        if (m.total > m.capacity) break;
        each_place(p, *plan, group);
    }
    return h->status == SM_OK;
}

static sm_status fail_more(const sm_serve_search_options *o, sm_error *err) {
    return sm_fail(err, SM_NEGATIVE, "no pools give more than %g tokens a second and chip",
                   o->above);
}

static sm_status fail_first(double limit_s, double least_s, sm_error *err) {
    char limit[32], least[32];
    sm_format_seconds(limit, sizeof limit, limit_s);
    sm_format_seconds(least, sizeof least, least_s);
    return sm_fail(err, SM_NEGATIVE,
                   "no prefill pool reaches the first token in %s: the least is %s, the cache's "
                   "transfer included",
                   limit, least);
}

static sm_status fail_prefill(const prefills *p, sm_error *err) {
    if (p->h->o->above > 0) return fail_more(p->h->o, err);
    if (isinf(p->quickest_s))
        return sm_fail(err, SM_NEGATIVE, "no plan prefills a prompt on %s: none fits",
                       p->system->text);
    return fail_first(p->h->o->ttft_s, p->quickest_s, err);
}

static sm_status fill_prefill(prefills *p, sm_disaggregated *out, sm_error *err) {
    search *h = p->h;
    sm_step_price price;
    const sm_serve_job *job = &h->s->job;
    sm_degrees d;
    double group = p->best.batch / p->best.plan.pipeline;
    sm_degrees_set(&d, &p->best.plan, &h->s->model);
    sm_status status = search_point(h, &p->best, &out->prefill, err);
    if (status != SM_OK) return status;
    sm_step_batch b = point_batch(group, job->prompt - job->prefix, job->prefix);
    status = sm_serve_step(h->s, &p->best.plan, &b, &price, err);
    if (status != SM_OK) return status;
    out->prefill.prefill = price;
    out->prefill.ttft_s[0] = price.lower_s;
    out->prefill.ttft_s[1] = price.expected_s;
    out->prefill.ttft_s[2] = price.upper_s;
    out->prefill_batch = p->best.batch;
    return sm_serve_memory_of(h->s, &p->best.plan, p->best.batch, job->prompt,
                              point_step_tokens(h->s, &d, 1), &out->prefill.memory, err);
}

/* Prompts a second and chip, with fewer of which pools give no more tokens than are asked for. */
static double least_prompts(const sm_serve_search_options *o, double output,
                            const sm_disaggregated *out) {
    double tokens = out->decode.tokens_per_s_per_chip / AS_MANY;
    double above = o->above / MOST_UTILISATION;
    if (!(above > 0)) return 0;
    return above < tokens ? 1 / (output * (1 / above - 1 / tokens)) : INFINITY;
}

static sm_status find_prefill(const sm_serve_job *job, const sm_calibration *calibration,
                              const sm_serve_search_options *o, double *rate, sm_disaggregated *out,
                              sm_error *err) {
    search h;
    prefills p = {.h = &h,
                  .system = job->system,
                  .kv_bytes = out->kv_bytes,
                  .decode_chips = out->decode.chips,
                  .best.per_chip = least_prompts(o, job->output, out),
                  .quickest_s = INFINITY};
    sm_serve_job alone = *job;
    alone.alone = true;
    if (isinf(p.best.per_chip)) return fail_more(o, err);
    sm_status status = search_start(&alone, calibration, o, &h, err);
    for (h.at = 0; status == SM_OK && h.at < h.slices; h.at++) {
        search_slice(&h, h.at);
        each_sharding(h.s, o, h.slice[h.at].chips, visit, &p);
        status = h.status;
        if (status != SM_OK && err) *err = h.err;
    }
    if (status == SM_OK)
        status = p.best.batch > 0 ? fill_prefill(&p, out, err) : fail_prefill(&p, err);
    *rate = p.best.per_chip;
    search_free(&h);
    return status;
}

/* ---- the best decode ---- */

/* The most tokens per chip within the limit, of workers of any size. */
static sm_status find_decodes(const sm_serve_job *job, const sm_calibration *calibration,
                              const sm_serve_search_options *options, sm_arena *arena,
                              sm_serve_result *decodes, sm_error *err) {
    sm_serve_search_options o = *options;
    sm_serve_job alone = *job;
    o.ttft_s = o.above = 0;
    o.most_alone = alone.alone = true;
    return search_points(&alone, calibration, &o, true, arena, decodes, err);
}

/* Of at most so many chips, 0: any, the smallest worker that gives as many: copies of it are no
 * better. */
static bool best_decode(const sm_serve_result *decodes, int chips_most, sm_serve_point *point) {
    const sm_serve_point *last = NULL;
    for (size_t i = decodes->n; i-- > 0;) {
        const sm_serve_point *p = &decodes->point[i];
        if (chips_most > 0 && p->chips > chips_most) continue;
        if (!last) *point = *(last = p);
        if (p->chips < point->chips &&
            p->tokens_per_s_per_chip >= AS_MANY * last->tokens_per_s_per_chip)
            *point = *p;
    }
    return last;
}

/* ---- whole workers ---- */

/* Both pools as the load model has them: an engine of each. */
typedef struct pools {
    const sm_serve_job *decode, *prefill;
    const sm_calibration *const *constants; /* of the chips that prefill, and of the others */
    const sm_serve_result *decodes_of;      /* workers of any size */
    sm_serve *prefills, *decodes;
    double ttft_s, tpot_s;            /* limits; 0: none */
    double prefill_each, decode_each; /* requests a second of one worker that it may take */
} pools;

static sm_status load_pools(const pools *p, const sm_disaggregated *of, sm_load_times *times,
                            sm_error *err) {
    const sm_engines engines = {.decode = p->decodes,
                                .prefill = p->prefills,
                                .plan = of->decode.plan,
                                .prefill_plan = of->prefill.plan,
                                .n = of->decode_workers,
                                .prefill_n = of->prefill_workers,
                                .apart = true,
                                .most_running = of->decode.batch};
    const sm_load load = {.kind = SM_LOAD_OPEN,
                          .requests = of->requests_per_s,
                          .most_ttft_s = larger(0, p->ttft_s - of->kv_transfer_s),
                          .most_tpot_s = p->tpot_s};
    sm_status status = sm_serve_load(&engines, &load, false, times, err);
    times->ttft_s += of->kv_transfer_s;
    times->ttft_p90_s += of->kv_transfer_s;
    return status;
}

/* The most requests a second of workers on so many chips of each system; shared: of one. */
static void fill_chips(const pools *p, int prefill_chips, int decode_chips, bool shared,
                       sm_disaggregated *out) {
    int each_x = out->prefill.chips, each_y = out->decode.chips;
    for (int y = 1; y * each_y <= decode_chips; y++) {
        int room = (shared ? decode_chips - y * each_y : prefill_chips) / each_x;
        double x = smaller(room, ceil(y * p->decode_each / p->prefill_each));
        double rate = smaller(x * p->prefill_each, y * p->decode_each);
        if (x < 1 || rate <= out->requests_per_s * (1 + 1e-9)) continue;
        out->prefill_workers = x;
        out->decode_workers = ceil(rate / p->decode_each - 1e-9);
        out->requests_per_s = rate;
    }
}

/* Whole workers that each take what they may. */
static void share_out(const pools *p, const sm_pools_asked *asked, sm_disaggregated *out) {
    const sm_system *from = p->prefill->system, *to = p->decode->system;
    const double usd[2] = {p->prefills->usd_per_chip_hour, p->decodes->usd_per_chip_hour};
    out->requests_per_s = asked->requests_per_s;
    if (asked->requests_per_s > 0) {
        out->prefill_workers = ceil(out->requests_per_s / p->prefill_each);
        out->decode_workers = ceil(out->requests_per_s / p->decode_each);
    } else {
        fill_chips(p, from->chips, to->chips, !asked->prefill_system, out);
    }
    double chips[2] = {out->prefill_workers * out->prefill.chips,
                       out->decode_workers * out->decode.chips};
    out->chips = chips[0] + chips[1];
    out->usd_per_hour = chips[0] * usd[0] + chips[1] * usd[1];
    /* what the ratio of both comes to, by the chips' own prices */
    if (asked->prefill_system && usd[1] > 0)
        out->usd_per_million_tokens = out->decode.usd_per_million_tokens *
                                      (1 + out->prefill_per_decode_chips * usd[0] / usd[1]);
}

/* As many as keep to the limits under requests as they come: where too many decode for their
 * places or in time, a worker that decodes takes less, else one that prefills. */
static sm_status size_pools(pools *p, const sm_pools_asked *asked, double prefill_rate,
                            sm_disaggregated *out, sm_error *err) {
    static const double LESS = 0.95, LEAST = 0.02;
    double decode = out->decode.tokens_per_s_per_chip * out->decode.chips / p->decode->output;
    double prompts = prefill_rate * out->prefill.chips;
    sm_load_times times;
    p->prefill_each = MOST_UTILISATION * prompts;
    p->decode_each = MOST_UTILISATION * decode;
    while (true) {
        share_out(p, asked, out);
        if (out->chips <= 0) return SM_OK;
        sm_status status = load_pools(p, out, &times, err);
        if (status) return status;
        bool bunch = times.running + sqrt(times.running) > out->decode.batch,
             slow = p->tpot_s > 0 && times.tpot_p90_s > p->tpot_s,
             late = p->ttft_s > 0 && times.ttft_p90_s > p->ttft_s;
        if (!slow && !late) break;
        *(bunch || slow ? &p->decode_each : &p->prefill_each) *= LESS;
        if (p->decode_each < LEAST * decode || p->prefill_each < LEAST * prompts)
            return fail_first(p->ttft_s, out->prefill.ttft_s[1] + out->kv_transfer_s, err);
    }
    out->ttft_s = times.ttft_s;
    out->tpot_s = times.tpot_s;
    out->ttft_p90_s = times.ttft_p90_s;
    out->tpot_p90_s = times.tpot_p90_s;
    out->running = times.running;
    out->prefill_busy = out->requests_per_s / (out->prefill_workers * prompts);
    out->decode_busy = out->requests_per_s / (out->decode_workers * decode);
    return SM_OK;
}

static sm_status open_workers(pools *p, const sm_disaggregated *of, sm_error *err) {
    sm_status status =
        open_worker(p->prefill, p->constants[0], of->prefill.chips, &p->prefills, err);
    if (status) return status;
    return open_worker(p->decode, p->constants[1], of->decode.chips, &p->decodes, err);
}

/* The plan of each pool, and the ratio of their chips. */
static sm_status find_pools(const pools *p, const sm_serve_search_options *own, double *rate,
                            sm_disaggregated *out, sm_error *err) {
    const sm_serve_job *decode = p->decode;
    memset(out, 0, sizeof *out);
    out->kv_bytes = sm_model_kv_bytes(decode->model, decode->prompt, decode->dtypes.kv) +
                    sm_model_state_bytes(decode->model, decode->dtypes.kv);
    if (!best_decode(p->decodes_of, own->chips_most, &out->decode))
        return sm_fail(err, SM_NEGATIVE, "no plan decodes on %d chips", own->chips_most);
    sm_status status = find_prefill(p->prefill, p->constants[0], own, rate, out, err);
    if (status) return status;
    double tokens = out->decode.tokens_per_s_per_chip, usd = out->decode.usd_per_million_tokens;
    int from = out->prefill.chips, to = out->decode.chips;
    out->prefill_per_decode_chips = tokens / decode->output / *rate;
    out->tokens_per_s_per_chip = tokens / (1 + out->prefill_per_decode_chips);
    out->usd_per_million_tokens = usd * (1 + out->prefill_per_decode_chips);
    out->kv_transfer_s = larger(sm_serve_transfer_s(decode->system, out->kv_bytes, from, to),
                                sm_serve_transfer_s(p->prefill->system, out->kv_bytes, from, to));
    return SM_OK;
}

/* Both pools, of workers of at most own->chips_most chips. */
static sm_status pools_of(pools *p, const sm_serve_search_options *own, const sm_pools_asked *asked,
                          sm_disaggregated *out, sm_error *err) {
    double rate = 0;
    sm_status status = find_pools(p, own, &rate, out, err);
    if (!status) status = open_workers(p, out, err);
    return status ? status : size_pools(p, asked, rate, out, err);
}

/* Workers as large as the system leave no chips for the others: of each half of their size until
 * smaller ones do no more, the pools that serve the most. */
static sm_status pools_within(pools *p, sm_serve_search_options *own, const sm_pools_asked *asked,
                              sm_disaggregated *out, sm_error *err) {
    int most = (int)larger(out->prefill.chips, out->decode.chips) / 2;
    own->above = 0; /* they may serve more, and give less by it */
    for (; most >= 1 && most >= own->chips_least; most /= 2) {
        sm_disaggregated smaller_ones;
        sm_error none = {.status = SM_OK};
        own->chips_most = most;
        sm_status other = pools_of(p, own, asked, &smaller_ones, &none);
        if (other > SM_NEGATIVE && err) *err = none;
        if (other > SM_NEGATIVE) return other;
        if (other ? out->chips > 0 : smaller_ones.requests_per_s < out->requests_per_s) break;
        if (other) continue;
        *out = smaller_ones;
        most = (int)larger(out->prefill.chips, out->decode.chips);
    }
    return SM_OK;
}

sm_status sm_serve_disaggregate(const sm_serve_job *given, const sm_calibration *calibration,
                                const sm_serve_search_options *options, const sm_pools_asked *asked,
                                sm_disaggregated *out, sm_error *err) {
    static const sm_pools_asked nothing = {.requests_per_s = 0};
    sm_serve_search_options own;
    sm_serve_job own_job, *job = &own_job;
    memset(out, 0, sizeof *out);
    sm_status status = sm_sized_take(&own, sizeof own, options, err);
    if (!status) status = sm_sized_take(job, sizeof *job, given, err);
    if (status) return status;
    if (!asked) asked = &nothing;
    sm_serve_job first = *job;
    const sm_calibration *constants[2] = {calibration, calibration};
    if (asked->prefill_system) {
        first.system = asked->prefill_system;
        first.dtypes.compute = asked->prefill_compute;
        constants[0] = asked->prefill_calibration;
    }
    sm_serve_result decodes;
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    pools p = {.decode = job,
               .prefill = &first,
               .constants = constants,
               .decodes_of = &decodes,
               .ttft_s = own.ttft_s,
               .tpot_s = own.tpot_s};
    status = find_decodes(job, calibration, &own, arena, &decodes, err);
    if (!status) status = pools_of(&p, &own, asked, out, err);
    if (!status && !asked->prefill_system && !(asked->requests_per_s > 0))
        status = pools_within(&p, &own, asked, out, err);
    sm_serve_free(p.prefills);
    sm_serve_free(p.decodes);
    sm_arena_free(arena);
    return status;
}
