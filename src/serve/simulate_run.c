/* Runs: so many steps of a replica, from their start to what they leave behind. */
#include "simulation.h"

typedef struct point {
    double step, seconds;
} point;

static point at(const sim_path *p, double step) {
    double seconds =
        p->engine->step_s(p->engine->context, p->n, p->cached + step * p->cached_growth, p->prefill,
                          p->attended + step * p->attended_growth);
    return (point){step, seconds};
}

/* Steps a..last, both included, line by line: decoding alone is one up to where the engine says;
 * of others pieces of a sixteenth of those before are. */
static double sum_between(const sim_path *p, point a, point last) {
    bool lines = p->engine->line_to && p->n > 0.0 && !(p->prefill > 0.0);
    for (double sum = 0.0;; a = at(p, a.step + 1.0)) {
        double cached = p->cached + a.step * p->cached_growth, more = a.step / 16.0;
        if (lines)
            more = (p->n * p->engine->line_to(p->engine->context, cached / p->n) - cached) /
                   p->cached_growth;
        double to = a.step + floor(more);
        point b = to >= last.step ? last : to > a.step ? at(p, to) : a;
        sum += 0.5 * (b.step - a.step + 1.0) * (a.seconds + b.seconds);
        if (b.step >= last.step || isnan(sum)) return sum;
        a = b;
    }
}

/* Seconds of the first k steps. NaN when a step has no price. */
static double path_seconds(sim_path *p, double k) {
    if (k < 1.0) return 0.0;
    if (!(p->first_s > 0.0)) p->first_s = at(p, 0.0).seconds;
    if (k < 2.0) return p->first_s + p->begin_s;
    return p->begin_s + sum_between(p, (point){0.0, p->first_s}, at(p, k - 1.0));
}

/* The least number of steps in 1..most, which take most_s, that take at least `seconds`; most when
 * none does. *taken: the seconds of so many. Tried is where a line between two that take too little
 * and enough meets the time, every third time the middle. */
static double path_steps(sim_path *p, double most, double most_s, double seconds, double *taken) {
    double low = 0.0, low_s = 0.0, high = most, high_s = most_s;
    if (isnan(high_s) || high_s < seconds) low = high;
    for (int tried = 0; high - low > 1.0; tried++) {
        double share = (seconds - low_s) / (high_s - low_s), k = ceil(low + share * (high - low));
        if (tried % 3 == 2 || !isfinite(k)) k = floor(0.5 * (low + high));
        k = fmin(fmax(k, low + 1.0), high - 1.0);
        double k_s = path_seconds(p, k);
        if (k_s >= seconds) high = k, high_s = k_s;
        else low = k, low_s = k_s;
    }
    *taken = high_s;
    return high;
}

/* Which replica takes a request. */

/* Affinity gives way when the replica that holds the prefix has more than so many requests beyond
 * the least loaded: 1/4 of the batch. */
#define AFFINITY_SLACK 4.0

static int least_loaded(const sim_simulation *s, int first, int n) {
    int best = first;
    for (int i = first + 1; i < first + n; i++)
        if (s->load[i] < s->load[best]) best = i;
    return best;
}

int sim_route(sim_simulation *s, const sim_sequence *q) {
    if (s->entries == 1) return s->first_entry;
    if (s->options->route == SM_ROUTE_AFFINITY) {
        int least = least_loaded(s, s->first_entry, s->entries), best = least;
        int64_t longest = 0;
        double most = (double)s->load[least] + 1.0 + (double)s->most_batch / AFFINITY_SLACK;
        if (q->prefix == 0 && q->conversation == 0 && q->blocks == 0) return least;
        for (int i = s->first_entry; i < s->first_entry + s->entries; i++) {
            int64_t pages = sim_cached_pages(s, &s->replica[i], q);
            bool better = pages > longest || (pages == longest && s->load[i] < s->load[best]);
            if (better && (double)s->load[i] <= most) best = i, longest = pages;
        }
        return best;
    }
    if (s->options->route == SM_ROUTE_LEAST_LOADED)
        return least_loaded(s, s->first_entry, s->entries);
    int next = s->first_entry + s->next_entry;
    s->next_entry = (s->next_entry + 1) % s->entries;
    return next;
}

int sim_route_decode(const sim_simulation *s) { return least_loaded(s, 0, s->first_entry); }

sm_status sim_start_run(sim_simulation *s, sim_replica *r, int64_t steps) {
    sim_run *run = &r->run;
    if (s->options->stepwise) steps = 1;
    double seconds = path_seconds(&run->path, (double)steps);
    const sm_error *reason = r->engine->error;
    if (reason && reason->status) {
        if (s->err) *s->err = *reason;
        return reason->status;
    }
    if (!(seconds >= 0.0) || isinf(seconds))
        return sm_fail(s->err, SM_BAD_INPUT,
                       "the engine has no price for a step of %.0f sequences with %.0f cached and "
                       "%.0f new tokens",
                       run->path.n, run->path.cached, run->path.prefill);
    run->start_s = s->totals.now_s;
    run->delay_s = r->delay_s;
    run->steps = (double)steps;
    run->seconds = seconds;
    run->end_s = run->start_s + run->delay_s + seconds;
    run->may_shorten = steps > 1;
    r->delay_s = 0.0;
    s->totals.busy += 1.0;
    return SM_OK;
}

/* An arrival comes in after the step during which it came. */
void sim_shorten(sim_simulation *s, sim_replica *r) {
    sim_run *run = &r->run;
    double begun = run->start_s + run->delay_s, taken = 0.0;
    if (isinf(run->end_s) || !run->may_shorten) return;
    double passed = s->totals.now_s - begun;
    run->steps =
        path_steps(&run->path, run->steps, run->seconds, passed > 0.0 ? passed : 0.0, &taken);
    run->end_s = fmax(begun + taken, s->totals.now_s);
    run->may_shorten = false;
    sim_event_changed(s, r);
}

double sim_last_step_s(const sim_simulation *s, const sim_replica *r) {
    const sim_run *run = &r->run;
    if (r->decoding == 0 || r->role != SIM_WHOLE) return s->totals.now_s;
    return run->steps > 1.0 ? s->totals.now_s - at(&run->path, run->steps - 1.0).seconds
                            : run->start_s;
}

/* ---- sequences that end ---- */

/* The ended of a static batch hold their memory until the last ends. */
static sm_status finish(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sm_status status = s->live ? sim_keep_pages(s, r, slot) : sim_keep_exchange(s, r, slot);
    if (s->options->policy == SM_POLICY_STATIC) r->used += q->own;
    sim_release(s, r, slot);
    sim_list_remove(&s->pool, &r->running, slot);
    s->totals.running -= 1.0;
    s->load[q->replica]--;
    sim_count_group(r, q, -1, 0);
    if (!status) status = sim_count_served(s, q);
    sim_pool_give(&s->pool, slot);
    return status;
}

static sm_status end_decoding(sim_simulation *s, sim_replica *r) {
    while (r->decoding > 0 && r->ending[0].finish <= r->counter) {
        int slot = r->ending[0].slot;
        sim_leave(s, r, slot);
        sm_status status = finish(s, r, slot);
        if (status) return status;
    }
    return SM_OK;
}

/* ---- prompts that are done ---- */

/* The step gave the first token, or after a preemption the next. */
static sm_status end_prefill(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    if (q->done++ == 0) q->first_token_s = s->totals.now_s;
    sm_status status = sim_keep_prompt(s, r, slot);
    if (status) return status;
    if (q->done >= q->output) return finish(s, r, slot);
    return r->role == SIM_PREFILL_POOL ? sim_send(s, r, slot) : sim_join(s, r, slot);
}

static sm_status end_parts(sim_simulation *s, sim_replica *r) {
    int64_t steps = (int64_t)r->run.steps;
    if (steps > 1 && r->parts == 1) { /* planned as one step */
        double more = (double)(r->part[0].tokens * (steps - 1));
        s->pool.slot[r->part[0].slot].prefilled += (int64_t)more;
        s->totals.prefilled += more;
    }
    for (int i = 0; i < r->parts; i++) {
        int slot = r->part[i].slot;
        sim_sequence *q = &s->pool.slot[slot];
        q->length += r->part[i].tokens * steps;
        if (q->length < q->target) continue;
        if (s->options->policy == SM_POLICY_CHUNKED) sim_forget_due(r, slot);
        sm_status status = end_prefill(s, r, slot);
        if (status) return status;
    }
    return SM_OK;
}

/* A static batch: its size is known when its prompts are done, and all of it goes at once. */
static void turn_static(sim_simulation *s, sim_replica *r) {
    if (s->options->policy != SM_POLICY_STATIC) return;
    if (r->parts > 0) r->padded = r->decoding;
    if (r->running.n > 0) return;
    r->used = 0;
    r->padded = 0;
    r->cached = 0.0;
}

sm_status sim_complete(sim_simulation *s, sim_replica *r) {
    const sim_run *run = &r->run;
    s->totals.busy -= 1.0;
    s->totals.steps += run->steps;
    if (run->path.n > 0.0) {
        s->totals.decode_steps += run->steps;
        s->totals.batch_sum += run->steps * run->path.n;
    }
    if (s->watch->step)
        s->watch->step(s->watch->context, (int)(r - s->replica), run->start_s,
                       run->end_s - run->start_s, run->steps, run->path.n, run->path.prefill);
    if (r->run.path.n > 0.0) sim_decoded(s, r, (int64_t)r->run.steps);
    sm_status status = end_decoding(s, r);
    if (!status) status = end_parts(s, r);
    turn_static(s, r);
    if (s->live) r->run.end_s = HUGE_VAL;
    return status || s->live ? status : sim_plan(s, r);
}

/* ---- ends that nobody foresaw: the client has gone, or a word said stop ---- */

/* It has given nothing yet, so that it does not count among those that finished. */
static void forget(sim_simulation *s, sim_replica *r, int slot, bool waits) {
    const sim_sequence *q = &s->pool.slot[slot];
    sim_release(s, r, slot);
    sim_list_remove(&s->pool, waits ? sim_waiting(s, r, q) : &r->running, slot);
    s->totals.waiting -= waits ? 1.0 : 0.0;
    s->totals.running -= waits ? 0.0 : 1.0;
    s->totals.in_system -= 1.0;
    s->load[q->replica]--;
    sim_count_group(r, q, -1, waits ? -1 : 0);
    sim_pool_give(&s->pool, slot);
}

static bool is_waiting(const sim_simulation *s, sim_replica *r, int slot) {
    for (int i = sim_waiting(s, r, &s->pool.slot[slot])->first; i != SIM_NONE;
         i = s->pool.slot[i].next)
        if (i == slot) return true;
    return false;
}

sm_status sim_end_early(sim_simulation *s, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_replica *r = &s->replica[q->replica];
    bool waits = is_waiting(s, r, slot);
    if (q->decoding) sim_leave(s, r, slot);
    else if (!waits) sim_forget_due(r, slot);
    q->output = q->done;
    sm_status status = SM_OK;
    if (q->done == 0 || waits) forget(s, r, slot, waits);
    else status = finish(s, r, slot);
    turn_static(s, r);
    return status;
}
