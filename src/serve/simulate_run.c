/* Runs: so many steps of a replica, from their start to what they leave behind. */
#include "simulation.h"

#include <math.h>

sm_status sim_start_run(sim_simulation *s, sim_replica *r, int64_t steps) {
    sim_run *run = &r->run;
    if (s->options->stepwise) steps = 1;
    double seconds = sim_path_seconds(&run->path, (double)steps);
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
    run->steps = sim_path_steps(&run->path, run->steps, passed > 0.0 ? passed : 0.0, &taken);
    run->end_s = fmax(begun + taken, s->totals.now_s);
    run->may_shorten = false;
    sim_event_changed(s, r);
}

/* ---- sequences that end ---- */

/* The ended of a static batch hold their memory until the last ends. */
static sm_status finish(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sm_status status = sim_keep_exchange(s, r, slot);
    if (s->options->policy == SM_POLICY_STATIC) r->used += q->own;
    sim_release(s, r, slot);
    sim_list_remove(&s->pool, &r->running, slot);
    s->totals.running -= 1.0;
    s->load[q->replica]--;
    sim_count_served(s, q);
    sim_pool_give(&s->pool, slot);
    return status;
}

static sm_status end_decoding(sim_simulation *s, sim_replica *r) {
    while (r->decoding > 0 && s->pool.slot[r->ending[0]].finish <= r->counter) {
        int slot = r->ending[0];
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
        if (s->options->policy == SM_POLICY_CHUNKED) {
            r->due_first = (r->due_first + 1) % r->due_room;
            r->dues--;
        }
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
    return status ? status : sim_plan(s, r);
}
