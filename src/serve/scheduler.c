/* The scheduler of an engine that runs: the simulation of a fleet, one step at a time, whose steps
 * the caller takes and times. */
#include "scalemodel/scheduler.h"
#include "simulation.h"

struct sm_scheduler {
    sm_simulation options;
    sim_simulation *sim;
    sm_scheduled *sequence;
    size_t n, room;
};

static sm_status check(const sm_simulation *o, sm_error *err) {
    if (o->policy == SM_POLICY_DISAGGREGATED)
        return sm_fail(err, SM_BAD_INPUT, "pools for prefill and decode are simulated, not run");
    if (o->preempt == SM_PREEMPT_SWAP)
        return sm_fail(err, SM_BAD_INPUT, "caches that are swapped are simulated, not run");
    if (o->engine && o->engine->tokens_per_step != 1.0)
        return sm_fail(err, SM_BAD_INPUT, "a step that runs gives a sequence one token");
    return SM_OK;
}

sm_status sm_scheduler_new(const sm_simulation *options, const sm_watch *watch, sm_scheduler **out,
                           sm_error *err) {
    sm_scheduler *s = sm_calloc(1, sizeof *s);
    if (!s) return sm_fail_memory(err);
    sm_status status = sm_sized_take(&s->options, sizeof s->options, options, err);
    if (!status) status = check(&s->options, err);
    s->options.stepwise = true;
    s->options.concurrency = 0.0; /* clients are the caller's */
    s->options.admission_s = 0.0;
    const sm_simulation asked = s->options;
    if (!status) status = sim_new(&asked, &s->options, watch, true, true, &s->sim, err);
    if (status) sm_scheduler_free(s);
    else *out = s;
    return status;
}

void sm_scheduler_free(sm_scheduler *s) {
    if (!s) return;
    if (s->sim) sim_free(s->sim);
    sm_free(s->sequence);
    sm_free(s);
}

/* ---- requests ---- */

sm_status sm_scheduler_add(sm_scheduler *s, const sm_request *request, double now_s,
                           uint64_t *number, sm_error *err) {
    sim_simulation *sim = s->sim;
    sim_totals *t = &sim->totals;
    int slot = SIM_NONE;
    bool fits = true;
    sim->err = err;
    *number = (uint64_t)t->requests;
    if (request->follows)
        return sm_fail(err, SM_BAD_INPUT, "turns that wait for the one before are the caller's");
    sm_status status = sim_take(sim, request, &slot);
    if (status) return status;
    if (t->requests == 0.0) t->now_s = t->first_s = t->sample_at_s = request->arrival_s;
    sim_advance(t, now_s);
    status = sim_arrive(sim, slot, request->arrival_s, &fits);
    if (status || fits) return status;
    return sm_fail(err, SM_NEGATIVE,
                   "a prompt of %.0f tokens and %.0f more never fit in a cache of %.0f",
                   request->prompt, request->output, s->options.engine->kv_tokens);
}

static int find_in(const sim_simulation *s, const sim_list *list, uint64_t number) {
    int i = list->first;
    while (i != SIM_NONE && s->pool.slot[i].number != number) i = s->pool.slot[i].next;
    return i;
}

sm_status sm_scheduler_stop(sm_scheduler *s, uint64_t number, double now_s, sm_error *err) {
    sim_simulation *sim = s->sim;
    sim->err = err;
    sim_advance(&sim->totals, now_s);
    for (int i = 0; i < sim->replicas; i++) {
        sim_replica *r = &sim->replica[i];
        int slot = find_in(sim, &r->running, number);
        for (int rank = 0; slot == SIM_NONE && rank < sim->ranks; rank++)
            slot = find_in(sim, &r->waiting[rank], number);
        if (slot != SIM_NONE) return sim_end_early(sim, slot);
    }
    return SM_OK;
}

sm_status sm_scheduler_page_filled(sm_scheduler *s, uint64_t number, uint64_t block,
                                   sm_error *err) {
    sim_simulation *sim = s->sim;
    for (int i = 0; i < sim->replicas; i++) {
        int slot = find_in(sim, &sim->replica[i].running, number);
        if (slot == SIM_NONE) continue;
        sim_sequence *q = &sim->pool.slot[slot];
        uint64_t *blocks = sm_grow(q->block, (size_t)q->blocks, &q->block_room, sizeof *blocks);
        if (!blocks) return sm_fail_memory(err);
        q->block = blocks;
        q->block[q->blocks++] = block;
        q->block_tokens = sim->page;
        return SM_OK;
    }
    return SM_OK;
}

/* ---- steps ---- */

static sm_status add(sm_scheduler *s, sim_replica *r, int slot, int64_t first, int64_t tokens,
                     bool gives, sm_error *err) {
    sim_simulation *sim = s->sim;
    sim_sequence *q = &sim->pool.slot[slot];
    sm_scheduled *wider = sm_grow(s->sequence, s->n, &s->room, sizeof *wider);
    if (!wider) return sm_fail_memory(err);
    s->sequence = wider;
    sim_places_grow(sim, r, q, first + tokens - 1);
    s->sequence[s->n++] = (sm_scheduled){.number = q->number,
                                         .replica = (int)(r - sim->replica),
                                         .seat = q->seat,
                                         .first = (size_t)first,
                                         .tokens = (size_t)tokens,
                                         .gives = gives,
                                         .page = q->place,
                                         .pages = (size_t)q->places};
    return SM_OK;
}

/* Those that decode in the order in which they came in, then the parts of prompts. */
static sm_status list_step(sm_scheduler *s, sim_replica *r, sm_error *err) {
    sim_simulation *sim = s->sim;
    sm_status status = SM_OK;
    bool decodes = r->run.path.n > 0.0;
    for (int i = r->running.first; !status && decodes && i != SIM_NONE;
         i = sim->pool.slot[i].next) {
        const sim_sequence *q = &sim->pool.slot[i];
        if (q->decoding) status = add(s, r, i, q->length + r->counter - q->joined, 1, true, err);
    }
    for (int i = 0; !status && i < r->parts; i++) {
        const sim_sequence *q = &sim->pool.slot[r->part[i].slot];
        bool last = q->length + r->part[i].tokens >= q->target;
        status = add(s, r, r->part[i].slot, q->length, r->part[i].tokens, last, err);
    }
    return status;
}

sm_status sm_scheduler_next(sm_scheduler *s, double now_s, sm_scheduled_step *step, sm_error *err) {
    sim_simulation *sim = s->sim;
    sim->err = err;
    sim_advance(&sim->totals, now_s);
    *step = (sm_scheduled_step){.n = 0};
    s->n = 0;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < sim->replicas; i++) {
        sim_replica *r = &sim->replica[i];
        status = sim_plan(sim, r);
        if (status || isinf(r->run.end_s)) continue;
        step->expected_s = fmax(step->expected_s, r->run.end_s - r->run.start_s);
        status = list_step(s, r, err);
    }
    step->n = s->n;
    step->sequence = s->sequence;
    return status;
}

sm_status sm_scheduler_done(sm_scheduler *s, double now_s, sm_error *err) {
    sim_simulation *sim = s->sim;
    sm_status status = SM_OK;
    sim->err = err;
    sim_advance(&sim->totals, now_s);
    for (int i = 0; !status && i < sim->replicas; i++) {
        sim_replica *r = &sim->replica[i];
        if (isinf(r->run.end_s)) continue;
        r->run.end_s = sim->totals.now_s;
        status = sim_complete(sim, r);
    }
    return status;
}

/* ---- what was counted ---- */

void sm_scheduler_read(sm_scheduler *s, sm_simulated *out) { sim_totals_read(s->sim, out); }
