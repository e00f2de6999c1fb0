/* What a replica does next, by policy. A pass lets in what waits, then starts one run of steps, or
 * leaves the replica idle. */
#include "simulation.h"

#include <math.h>

const char *const sm_policy_names[SM_POLICY_COUNT] = {
#define X(id, name, help) name,
    SM_POLICIES(X)
#undef X
};

static sm_status add_part(sim_simulation *s, sim_replica *r, int slot, int64_t tokens) {
    void *part = r->part;
    sm_status status = sim_reserve(&part, r->parts, &r->part_room, sizeof *r->part, s->err);
    r->part = part;
    if (status) return status;
    r->part[r->parts++] = (sim_part){slot, tokens};
    s->pool.slot[slot].prefilled += tokens;
    s->totals.prefilled += (double)tokens;
    return SM_OK;
}

/* ---- letting in ---- */

/* From waiting to running. */
static sm_status let_in(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    sim_list_remove(&s->pool, sim_waiting(s, r, q), slot);
    sim_list_append(&s->pool, &r->running, slot);
    s->totals.waiting -= 1.0;
    s->totals.running += 1.0;
    if (q->started) return SM_OK;
    q->started = true;
    q->start_s = s->totals.now_s;
    s->totals.cached += (double)q->cached;
    s->totals.hit_prompts += (double)q->prompt;
    return sim_note_prompt(s, q);
}

/* One let in decodes at once (of pools this worker tells the first token), or goes to prefill. */
static sm_status place(sim_simulation *s, sim_replica *r, int slot) {
    sim_sequence *q = &s->pool.slot[slot];
    if (q->ready) {
        q->ready = false;
        if (r->role == SIM_DECODE_POOL && q->done == 1) q->first_token_s = s->totals.now_s;
        return sim_join(s, r, slot);
    }
    if (s->options->policy == SM_POLICY_CHUNKED) {
        if (r->dues == r->due_room) { /* a ring that grows is laid out anew */
            int room = r->due_room > 0 ? 2 * r->due_room : 16;
            int *due = sm_malloc((size_t)room * sizeof *due);
            if (!due) return sm_fail_memory(s->err);
            for (int i = 0; i < r->dues; i++) due[i] = r->due[(r->due_first + i) % r->due_room];
            sm_free(r->due);
            r->due = due;
            r->due_first = 0;
            r->due_room = room;
        }
        r->due[(r->due_first + r->dues++) % r->due_room] = slot;
        return SM_OK;
    }
    return add_part(s, r, slot, q->target - q->length);
}

/* Whole prompts go together up to prefill_tokens, and one of each group of chips, which may take
 * more steps than one for it; a static batch however long. */
static bool fits_step(const sim_simulation *s, const sim_replica *r, const sim_sequence *q,
                      int64_t taken) {
    sm_policy policy = s->options->policy;
    if (r->parts < (int)fmax(1.0, s->options->groups) || q->ready || policy == SM_POLICY_STATIC ||
        policy == SM_POLICY_CHUNKED)
        return true;
    return (double)(taken + q->prompt + q->done) <= s->options->prefill_tokens;
}

/* Between two looks who comes is not known, nor during the last step where the next was scheduled
 * as it began. Steps until the next look. */
static int64_t unseen_steps(sim_simulation *s, sim_replica *r, const sim_sequence *q) {
    int64_t every = (int64_t)s->options->look_steps;
    if (s->options->schedules_ahead && q->queued_s > sim_last_step_s(s, r)) return 1;
    if (every <= 1 || q->queued_s <= r->looked_s) return 0;
    return every - (r->counter - r->looked) % every;
}

static void look(sim_simulation *s, sim_replica *r) {
    int64_t every = (int64_t)s->options->look_steps;
    bool idle = r->decoding == 0 || r->role != SIM_WHOLE;
    if (!idle && every > 1 && (r->counter - r->looked) % every > 0) return;
    r->looked = r->counter;
    r->looked_s = s->totals.now_s;
}

/* Prompts that have room wait for others, so that no group of chips computes while the rest waits.
 * How many are missing, of those that wait or of places; SIM_NONE: nobody is waited for. */
int sim_gathers(const sim_simulation *s, const sim_replica *r) {
    if (s->options->gather_steps < 1.0 || r->role != SIM_WHOLE) return SIM_NONE;
    int waiting = s->load[r - s->replica] - r->running.n, most = (int)s->options->gather;
    int64_t places = s->most_batch - r->running.n;
    if (places < waiting) waiting = (int)places;
    return waiting < most ? most - waiting : 0;
}

/* Steps until those that wait go in without them. */
static int64_t gathered_steps(sim_simulation *s, sim_replica *r) {
    int64_t most = (int64_t)s->options->gather_steps;
    int first = sim_first_waiting(s, r);
    bool waits = sim_gathers(s, r) > 0 && first != SIM_NONE && r->decoding > 0 &&
                 r->running.n < s->most_batch && sim_has_room(s, r, first);
    if (waits && r->gathering == SIM_NONE) r->gathering = r->counter;
    int64_t left = waits ? r->gathering + most - r->counter : 0;
    if (left <= 0) r->gathering = SIM_NONE;
    return left > 0 ? left : 0;
}

static sm_status let_all_in(sim_simulation *s, sim_replica *r) {
    int64_t taken = 0;
    look(s, r);
    r->held = gathered_steps(s, r);
    if (r->held > 0) return SM_OK;
    for (int slot; r->running.n < s->most_batch && (slot = sim_first_waiting(s, r)) != SIM_NONE;) {
        const sim_sequence *q = &s->pool.slot[slot];
        r->held = unseen_steps(s, r, q);
        if (r->held > 0 || !fits_step(s, r, q, taken)) break;
        int admitted = sim_admit(s, r, slot);
        if (admitted < 0) return SM_INTERNAL;
        if (admitted == 0) break;
        sm_status status = let_in(s, r, slot);
        if (!status) status = sim_refill(s, r, s->rank[q->kind]);
        if (!status) status = place(s, r, slot);
        if (status) return status;
        taken += s->pool.slot[slot].target - s->pool.slot[slot].length;
    }
    return SM_OK;
}

/* ---- runs ---- */

static void set_path(sim_simulation *s, sim_replica *r, bool decodes) {
    bool is_static = s->options->policy == SM_POLICY_STATIC;
    double n = !decodes ? 0.0 : is_static ? (double)r->padded : (double)r->decoding;
    r->run.path = (sim_path){.engine = r->engine, .n = n};
    r->run.path.cached = decodes ? r->cached : 0.0;
    r->run.path.cached_growth = n * r->engine->tokens_per_step;
    /* Prompts attend to what is cached before them and half of themselves. */
    double tokens = 0.0, attended = 0.0;
    for (int i = 0; i < r->parts; i++) {
        double part = (double)r->part[i].tokens;
        tokens += part;
        attended += part * ((double)s->pool.slot[r->part[i].slot].length + 0.5 * part);
    }
    r->run.path.prefill = tokens;
    r->run.path.attended = tokens > 0.0 ? attended / tokens : 0.0;
}

/* Steps until the first sequence ends or pages run out; the youngest go until one step is possible.
 */
static int64_t decode_steps(sim_simulation *s, sim_replica *r) {
    bool is_static = s->options->policy == SM_POLICY_STATIC, preempts = false;
    while (!is_static && r->running.n > 1 && r->decoding > 0 &&
           sim_growth(r, 1) > sim_available(r)) {
        sim_preempt_youngest(s, r);
        preempts = true;
    }
    if (r->decoding == 0) return INT64_MAX;
    /* What the last of a low rank gave back may do for one of a higher rank after this step. */
    if (preempts && s->ranks > 1 && sim_has_room(s, r, sim_first_waiting(s, r))) return 1;
    int64_t steps = r->ending[0].finish - r->counter;
    if (is_static) return steps;
    if (r->held > 0 && r->held < steps) steps = r->held;
    if (r->running.n == 1) return steps;
    int64_t within = sim_steps_within(r, sim_available(r), steps);
    return within < steps ? within : steps;
}

static sm_status run_prefill(sim_simulation *s, sim_replica *r) {
    set_path(s, r, false);
    return sim_start_run(s, r, 1);
}

static sm_status run_decode(sim_simulation *s, sim_replica *r) {
    int64_t steps = decode_steps(s, r);
    if (r->decoding == 0) return SM_OK;
    set_path(s, r, true);
    return sim_start_run(s, r, steps);
}

static sm_status plan_static(sim_simulation *s, sim_replica *r) {
    sm_status status = r->running.n == 0 ? let_all_in(s, r) : SM_OK;
    if (status) return status;
    if (r->parts > 0) return run_prefill(s, r);
    return r->decoding > 0 ? run_decode(s, r) : SM_OK;
}

static sm_status plan_prefill_first(sim_simulation *s, sim_replica *r) {
    sm_status status = let_all_in(s, r);
    if (status) return status;
    if (r->parts > 0) return run_prefill(s, r);
    return r->decoding > 0 ? run_decode(s, r) : SM_OK;
}

/* The chunk of the next step: what is due, in order, up to `room` tokens. */
static sm_status fill_chunk(sim_simulation *s, sim_replica *r, int64_t room) {
    int64_t most = s->options->prompt_tokens > 0.0 ? (int64_t)s->options->prompt_tokens : room;
    for (int i = 0; i < r->dues && room > 0; i++) {
        int slot = r->due[(r->due_first + i) % r->due_room];
        const sim_sequence *q = &s->pool.slot[slot];
        int64_t left = q->target - q->length, tokens = left < most ? left : most;
        if (tokens > room) tokens = room;
        sm_status status = add_part(s, r, slot, tokens);
        if (status) return status;
        room -= tokens;
    }
    return SM_OK;
}

/* Steps for which one prompt alone fills the chunk, all alike. */
static int64_t equal_chunks(const sim_simulation *s, const sim_replica *r) {
    if (r->parts != 1) return 1;
    const sim_sequence *q = &s->pool.slot[r->part[0].slot];
    int64_t steps = (q->target - q->length) / r->part[0].tokens;
    return steps > 1 ? steps : 1;
}

static sm_status plan_chunked(sim_simulation *s, sim_replica *r) {
    sm_status status = let_all_in(s, r);
    if (status) return status;
    if (r->dues == 0) return r->decoding > 0 ? run_decode(s, r) : SM_OK;
    int64_t steps = decode_steps(s, r);
    int64_t room = (int64_t)s->options->chunk_tokens - r->decoding;
    status = fill_chunk(s, r, room > 1 ? room : 1);
    if (status) return status;
    int64_t equal = equal_chunks(s, r);
    if (equal < steps) steps = equal;
    if (r->decoding == 0 && r->parts == 0) return SM_OK;
    set_path(s, r, r->decoding > 0);
    if (r->parts == 1) r->run.path.attended_growth = (double)r->part[0].tokens;
    return sim_start_run(s, r, steps);
}

sm_status sim_plan(sim_simulation *s, sim_replica *r) {
    r->parts = 0;
    r->run.end_s = HUGE_VAL;
    sm_status status = SM_OK;
    if (s->options->policy == SM_POLICY_STATIC) status = plan_static(s, r);
    else if (s->options->policy == SM_POLICY_CHUNKED) status = plan_chunked(s, r);
    else status = plan_prefill_first(s, r);
    sim_count_kv(s, r);
    sim_event_changed(s, r);
    return status;
}
