/* What a replica does next, by policy. A pass lets in what waits, then starts one run of steps, or
 * leaves the replica idle. */
#include "simulation.h"

const char *const sm_policy_names[SM_POLICY_COUNT] = {SM_POLICIES(SM_NAME_OF)};

static sm_status add_part(sim_simulation *s, sim_replica *r, int slot, int64_t tokens) {
    sim_part *part = sm_grow(r->part, (size_t)r->parts, &r->part_room, sizeof *part);
    if (!part) return sm_fail_memory(s->err);
    r->part = part;
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
    sim_count_group(r, q, 0, -1);
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
 * more steps than one for it; a static batch however long. Of groups that wait for one another each
 * takes its own. */
static bool fits_step(const sim_simulation *s, const sim_replica *r, const sim_sequence *q,
                      int64_t taken) {
    const sm_simulation *o = s->options;
    bool chunked = o->policy == SM_POLICY_CHUNKED;
    double tokens = (double)(q->prompt + q->done), most = o->prefill_tokens;
    if (r->group) {
        double own = (double)r->group[q->group].taken;
        if (chunked) most = o->chunk_tokens - r->decoding;
        return own == 0.0 || own + tokens <= most / o->groups;
    }
    if (r->parts < (int)fmax(1.0, o->groups) || q->ready || o->policy == SM_POLICY_STATIC ||
        chunked)
        return true;
    return (double)taken + tokens <= most;
}

/* A request goes to the group of chips that has the fewest. */
void sim_join_group(const sim_simulation *s, sim_replica *r, sim_sequence *q) {
    q->group = 0;
    for (int g = 1; r->group && g < (int)s->options->groups; g++)
        if (r->group[g].requests < r->group[q->group].requests) q->group = g;
    sim_count_group(r, q, 1, 1);
}

void sim_count_group(sim_replica *r, const sim_sequence *q, int requests, int waiting) {
    if (!r->group) return;
    r->group[q->group].requests += requests;
    r->group[q->group].waiting += waiting;
}

#define NEARLY_FULL 0.9 /* TensorRT-LLM's batch_wait_max_tokens_ratio, as launched */
/* Prompts wait until each group of chips has one and a place for it, on one until a step is full:
 * for how many; SIM_NONE: nobody is waited for. */
int sim_gathers(const sim_simulation *s, const sim_replica *r) {
    int missing = r->group ? 0 : SIM_NONE;
    if (r->group && s->options->groups < 2.0 && r->decoding > 0) {
        double tokens = r->decoding;
        for (int i = sim_first_waiting(s, r); i != SIM_NONE; i = s->pool.slot[i].next)
            tokens += (double)s->pool.slot[i].prompt;
        return tokens < NEARLY_FULL * s->options->chunk_tokens;
    }
    for (int i = 0; r->group && r->decoding > 0 && i < (int)s->options->groups; i++) {
        const sim_group *g = &r->group[i];
        double running = g->requests - g->waiting;
        missing +=
            g->waiting == 0 || running >= fmax(1.0, (double)s->most_batch / s->options->groups);
    }
    return missing;
}

/* Where groups of chips wait for one another the next look is as soon as each has one. */
static int64_t steps_between_looks(const sim_simulation *s, const sim_replica *r) {
    return (int64_t)(r->group ? s->options->gather_steps : s->options->look_steps);
}

/* Between two looks who comes is not known, nor during the last step where the next was scheduled
 * as it began, nor do those go in who were left at a look for others. Steps until the next look. */
static int64_t unseen_steps(sim_simulation *s, sim_replica *r, const sim_sequence *q) {
    int64_t every = steps_between_looks(s, r);
    if (s->options->schedules_ahead && q->queued_s > sim_last_step_s(s, r)) return 1;
    if (every <= 1 || (r->group ? s->totals.now_s : q->queued_s) <= r->looked_s) return 0;
    return every - (r->counter - r->looked) % every;
}

static void look(sim_simulation *s, sim_replica *r) {
    if (r->looked < 0) r->looked = r->counter; /* steps are counted from the first that waits */
    int64_t every = steps_between_looks(s, r), since = r->counter - r->looked;
    bool idle = r->decoding == 0 || r->role != SIM_WHOLE;
    bool due = every <= 1 || (since % every == 0 && !(r->group && since == 0));
    if (!idle && !due && sim_gathers(s, r) != 0) return;
    r->looked = r->counter;
    r->looked_s = s->totals.now_s;
}

/* The first that waits; where groups of chips wait for one another, that fits. */
static int next_waiting(const sim_simulation *s, const sim_replica *r) {
    for (int rank = 0; rank < s->ranks; rank++)
        for (int slot = r->waiting[rank].first; slot != SIM_NONE; slot = s->pool.slot[slot].next)
            if (!r->group || fits_step(s, r, &s->pool.slot[slot], 0)) return slot;
    return SIM_NONE;
}

static sm_status let_all_in(sim_simulation *s, sim_replica *r) {
    int64_t taken = 0;
    bool any = false;
    look(s, r);
    r->held = 0;
    for (int g = 0; r->group && g < (int)s->options->groups; g++) r->group[g].taken = 0;
    for (int slot; r->running.n < s->most_batch && (slot = next_waiting(s, r)) != SIM_NONE;) {
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
        int64_t tokens = s->pool.slot[slot].target - s->pool.slot[slot].length;
        if (r->group) r->group[s->pool.slot[slot].group].taken += tokens;
        any = true;
        taken += tokens;
    }
    if (r->group && any) r->held = 1; /* who is left may go in after the next step */
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
    double tokens = 0.0, attended = 0.0, begun = 0.0;
    for (int i = 0; i < r->parts; i++) {
        const sim_sequence *q = &s->pool.slot[r->part[i].slot];
        double part = (double)r->part[i].tokens;
        tokens += part;
        attended += part * ((double)q->length + 0.5 * part);
        begun += q->prefilled == r->part[i].tokens; /* its first */
    }
    if (begun > 0.0 && r->engine->begin_s)
        r->run.path.begin_s = r->engine->begin_s(r->engine->context, begun);
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
    if (r->decoding == 0) return r->held > 0 ? r->held : INT64_MAX;
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
