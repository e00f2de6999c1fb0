/* serve_engine: steps of an engine on ranks. What a step takes is broadcast: a row for each token,
 * the pages of its sequence, and how the words of those that are scored are drawn. */
#include "serve_engine.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Of a step, from the first rank to all. So many bytes are always told, which hold the steps of a
 * dozen sequences; the rest of a larger one follows. */
enum { TOLD_FIRST = 2048 };
typedef struct step_size {
    int64_t rows, scored, table; /* rows, scored: of each group; rows 0: the engine ends */
} step_size;
typedef struct step_draw {
    double temperature;
    uint64_t seed, place, words;
    int64_t row; /* within its group */
    int64_t who; /* on the first rank: which of the running, from 1; 0 pads */
} step_draw;

/* A step in numbers, and as a generator takes it. */
typedef struct step_room {
    step_size size;
    size_t bytes;                    /* that are told of it */
    size_t most, scored;             /* room for so many bytes and scores */
    sm_arena *arena;                 /* of the arrays below */
    char *told;                      /* the size and, one behind the other: */
    step_draw *draw;                 /* [groups x scored] */
    size_t *count, *position, *slot; /* [groups x rows], each */
    int32_t *token;                  /* the same */
    int32_t *page;                   /* [groups x rows, table] */
    size_t *score;
    float *logit;  /* [groups x scored, V] */
    int32_t *made; /* [groups x scored] */
} step_room;

typedef struct serve_engine {
    const serve_engine_job *job;
    sm_communicator *world;
    sm_generator *generator;
    size_t groups, vocabulary;
    step_room room;
    sm_arena *arena; /* of the arrays below */
    double *p;       /* of words */
    serve_engine_result *result;
    /* of the first rank */
    sm_scheduler *scheduler;
    serve_request **running; /* all that have not ended */
    size_t n, most;
    uint64_t secret;         /* ids of pages begin with it */
    size_t *filled, *wanted; /* [groups], one behind the other: rows and scores of the step */
} serve_engine;

/* ---- room ---- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* What was told first is kept. */
static sm_status more_room(serve_engine *e, size_t scored, sm_error *err) {
    step_room r = e->room;
    r.most = larger(larger(TOLD_FIRST, r.bytes), r.most);
    r.scored = larger(scored, r.scored);
    r.arena = sm_arena_new();
    r.told = sm_arena_array(r.arena, r.most, sizeof *r.told);
    r.score = sm_arena_array(r.arena, r.scored + 1, sizeof *r.score);
    r.made = sm_arena_array(r.arena, r.scored + 1, sizeof *r.made);
    r.logit = sm_arena_array(r.arena, r.scored * e->vocabulary + 1, sizeof *r.logit);
    bool all = r.told && r.score && r.made && r.logit;
    if (all && e->room.told) memcpy(r.told, e->room.told, TOLD_FIRST);
    sm_arena_free(all ? e->room.arena : r.arena);
    if (!all) return sm_fail_memory(err);
    e->room = r;
    return SM_OK;
}

static sm_status make_room(serve_engine *e, sm_error *err) {
    step_room *r = &e->room;
    size_t rows = e->groups * (size_t)r->size.rows, scored = e->groups * (size_t)r->size.scored;
    size_t of_row = 3 * sizeof *r->count + sizeof *r->token;
    r->bytes = sizeof r->size + scored * sizeof *r->draw +
               rows * (of_row + (size_t)r->size.table * sizeof *r->page);
    if (!r->told || r->bytes > r->most || scored > r->scored) {
        sm_status status = more_room(e, scored, err);
        if (status) return status;
    }
    r->draw = (step_draw *)(void *)(r->told + sizeof r->size);
    r->count = (size_t *)(void *)(r->draw + scored);
    r->position = r->count + rows;
    r->slot = r->position + rows;
    r->token = (int32_t *)(void *)(r->slot + rows);
    r->page = r->token + rows;
    return SM_OK;
}

/* A step of this size, of nothing but padding. */
static sm_status lay_step(serve_engine *e, sm_error *err) {
    step_room *r = &e->room;
    sm_status status = make_room(e, err);
    if (status) return status;
    memset(r->told, 0, r->bytes);
    memcpy(r->told, &r->size, sizeof r->size);
    return SM_OK;
}

/* ---- requests, on the first rank ---- */

/* The id of each page follows from all tokens up to its end, and from a secret of this engine, so
 * that nobody can make another's. */
static uint64_t next_page(serve_request *q, size_t page_tokens) {
    const int32_t *token = q->token + q->pages++ * page_tokens;
    for (size_t i = 0; i < page_tokens; i++) q->hash = sm_hash_mixed(q->hash, (uint64_t)token[i]);
    return q->hash;
}

static void drop(serve_engine *e, size_t at) {
    memmove(e->running + at, e->running + at + 1, (--e->n - at) * sizeof *e->running);
}

static sm_status add_request(serve_engine *e, serve_request *q, sm_error *err) {
    size_t page_tokens = e->job->pages.page_tokens, pages = q->prompt / page_tokens;
    sm_error why = {.status = SM_OK};
    uint64_t *block = sm_calloc(pages + 1, sizeof *block);
    if (!block) return sm_fail_memory(err);
    q->hash = e->secret;
    for (size_t i = 0; i < pages; i++) block[i] = next_page(q, page_tokens);
    const sm_request asked = {.arrival_s = q->arrival_s,
                              .prompt = (double)q->prompt,
                              .output = (double)q->most,
                              .block = block,
                              .blocks = (int)pages,
                              .block_tokens = (double)page_tokens,
                              .kind = q->kind};
    sm_status status = sm_scheduler_add(e->scheduler, &asked, sm_clock_s(), &q->number, &why);
    sm_free(block);
    if (status == SM_NEGATIVE) {
        serve_desk_end(e->job->desk, q, SERVE_ABANDONED, sm_clock_s());
        return SM_OK;
    }
    if (status) {
        if (err) *err = why;
        return status;
    }
    assert(e->n < e->most);
    e->running[e->n++] = q;
    return SM_OK;
}

static sm_status take_in(serve_engine *e, sm_error *err) {
    sm_status status = SM_OK;
    for (serve_request *q = serve_desk_take(e->job->desk), *next; q; q = next) {
        next = q->next;
        if (!status) status = add_request(e, q, err);
        if (status) serve_desk_end(e->job->desk, q, SERVE_ABANDONED, sm_clock_s());
    }
    return status;
}

static sm_status stop(serve_engine *e, size_t at, serve_end end, sm_error *err) {
    double now_s = sm_clock_s();
    serve_request *q = e->running[at];
    sm_status status = sm_scheduler_stop(e->scheduler, q->number, now_s, err);
    drop(e, at);
    serve_desk_end(e->job->desk, q, end, now_s);
    return status;
}

/* Those whose clients have gone, or all. */
static sm_status let_go(serve_engine *e, bool all, sm_error *err) {
    sm_status status = SM_OK;
    for (size_t i = e->n; !status && i-- > 0;)
        if (all || serve_desk_is_gone(e->job->desk, e->running[i])) {
            status = stop(e, i, SERVE_ABANDONED, err);
            e->result->abandoned++;
        }
    return status;
}

/* Does its output end in a stop? *bytes: of it, which are not shown. */
static bool has_stopped(const serve_request *q, size_t *bytes) {
    const int32_t *end = q->token + q->prompt + q->made;
    *bytes = 1;
    for (size_t i = 0; i < q->stop_words; i++)
        if (end[-1] == q->stop_word[i]) return true;
    for (int i = 0; i < q->stops; i++) {
        size_t n = q->stop_bytes[i], same = 0;
        if (n > q->made) continue;
        while (same < n && (end - n)[same] == (unsigned char)q->stop[i][same]) same++;
        *bytes = n;
        if (same == n) return true;
    }
    *bytes = 0;
    return false;
}

/* ---- a step, on the first rank ---- */

static size_t find(const serve_engine *e, uint64_t number) {
    size_t i = 0;
    while (i < e->n && e->running[i]->number != number) i++;
    assert(i < e->n);
    return i;
}

/* Sizes for which there are programs: all up to 16, then eight of an octave. */
static int64_t rounded(size_t n) {
    size_t step = 1;
    while (n > 16 * step) step *= 2;
    return (int64_t)((n + step - 1) / step * step);
}

static void measure_step(serve_engine *e, const sm_scheduled_step *s) {
    size_t rows = 1, scored = 1, table = 1;
    memset(e->filled, 0, 2 * e->groups * sizeof *e->filled);
    for (size_t i = 0; i < s->n; i++) {
        const sm_scheduled *q = &s->sequence[i];
        size_t *filled = &e->filled[q->replica], *wanted = &e->wanted[q->replica];
        *filled += q->tokens;
        *wanted += q->gives;
        if (*filled > rows) rows = *filled;
        if (*wanted > scored) scored = *wanted;
        if (q->pages > table) table = q->pages;
    }
    e->room.size = (step_size){rounded(rows), rounded(scored), (int64_t)table};
}

static void fill_sequence(serve_engine *e, const sm_scheduled *s) {
    step_room *r = &e->room;
    size_t rows = (size_t)r->size.rows, scored = (size_t)r->size.scored, who = find(e, s->number);
    size_t group = (size_t)s->replica, table = (size_t)r->size.table;
    const serve_request *q = e->running[who];
    for (size_t i = 0; i < s->tokens; i++) {
        size_t at = group * rows + e->filled[group]++;
        r->token[at] = q->token[s->first + i];
        r->count[at] = 1;
        r->position[at] = s->first + i;
        r->slot[at] = (size_t)s->seat;
        memcpy(r->page + at * table, s->page, s->pages * sizeof *r->page);
    }
    if (!s->gives) return;
    r->draw[group * scored + e->wanted[group]++] = (step_draw){.temperature = q->temperature,
                                                               .seed = q->seed,
                                                               .place = s->first + s->tokens,
                                                               .words = q->words,
                                                               .row = (int64_t)e->filled[group] - 1,
                                                               .who = (int64_t)who + 1};
}

static sm_status fill_step(serve_engine *e, const sm_scheduled_step *s, sm_error *err) {
    measure_step(e, s);
    sm_status status = lay_step(e, err);
    if (status) return status;
    memset(e->filled, 0, 2 * e->groups * sizeof *e->filled);
    for (size_t i = 0; i < s->n; i++) fill_sequence(e, &s->sequence[i]);
    return SM_OK;
}

/* ---- a step, on every rank ---- */

/* *more: the engine goes on. */
static sm_status share_step(serve_engine *e, bool *more, sm_error *err) {
    step_room *r = &e->room;
    sm_status status = sm_run_broadcast(e->world, r->told, TOLD_FIRST, 0, err);
    if (!status) memcpy(&r->size, r->told, sizeof r->size);
    *more = !status && r->size.rows > 0;
    if (*more) status = make_room(e, err);
    if (status || !*more || r->bytes <= TOLD_FIRST) return status;
    return sm_run_broadcast(e->world, r->told + TOLD_FIRST, r->bytes - TOLD_FIRST, 0, err);
}

static int32_t draw_word(const serve_engine *e, const step_draw *d, const float *scores) {
    size_t words = (size_t)d->words;
    if (d->who == 0) return 0;
    if (!(d->temperature > 0)) return (int32_t)sm_draw_best(scores, words);
    sm_draw_distribution(scores, words, d->temperature, e->p);
    return (int32_t)sm_draw_word(e->p, words, sm_draw_unit(d->seed, 0, (size_t)d->place));
}

static sm_status take_step(serve_engine *e, sm_error *err) {
    step_room *r = &e->room;
    size_t scored = e->groups * (size_t)r->size.scored;
    sm_generator_result took;
    for (size_t i = 0; i < scored; i++) r->score[i] = (size_t)r->draw[i].row;
    const sm_generator_rows pass = {.rows = (size_t)r->size.rows,
                                    .table = (size_t)r->size.table,
                                    .scored = (size_t)r->size.scored,
                                    .token = r->token,
                                    .count = r->count,
                                    .position = r->position,
                                    .slot = r->slot,
                                    .page = r->page,
                                    .score = r->score};
    sm_status status = sm_generator_step(e->generator, &pass, r->logit, &took, err);
    if (status) return status;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        e->result->bytes_predicted[i] += took.bytes_predicted[i];
        e->result->bytes_counted[i] += took.bytes_counted[i];
        e->result->bytes_apart += fabs(took.bytes_predicted[i] - took.bytes_counted[i]);
    }
    e->result->model_s += took.seconds;
    sm_generator_part own = sm_generator_own(e->generator);
    for (size_t i = own.first; i < own.first + own.n; i++)
        r->made[i] = draw_word(e, &r->draw[i], r->logit + i * e->vocabulary);
    return sm_generator_share(e->generator, r->made, sizeof *r->made, err);
}

/* ---- what the step gave, on the first rank ---- */

static void count_step(serve_engine *e, const sm_scheduled_step *s, double seconds) {
    bool decodes = false, prefills = false;
    for (size_t i = 0; i < s->n; i++) {
        bool decode =
            s->sequence[i].gives && s->sequence[i].tokens == 1 && s->sequence[i].first > 0;
        decodes = decodes || decode;
        prefills = prefills || !decode;
    }
    serve_steps *to = &e->result->steps[!prefills ? SERVE_STEP_DECODE
                                        : decodes ? SERVE_STEP_MIXED
                                                  : SERVE_STEP_PREFILL];
    to->n++;
    to->expected_s += s->expected_s;
    to->measured_s += seconds;
}

static sm_status tell_pages(serve_engine *e, const sm_scheduled_step *s, sm_error *err) {
    size_t page_tokens = e->job->pages.page_tokens;
    sm_status status = SM_OK;
    for (size_t i = 0; !status && i < s->n; i++) {
        const sm_scheduled *one = &s->sequence[i];
        serve_request *q = e->running[find(e, one->number)];
        while (!status && (q->pages + 1) * page_tokens <= one->first + one->tokens) {
            uint64_t id = next_page(q, page_tokens);
            status = sm_scheduler_page_filled(e->scheduler, q->number, id, err);
        }
    }
    return status;
}

static sm_status give(serve_engine *e, double now_s, sm_error *err) {
    const step_room *r = &e->room;
    size_t scored = e->groups * (size_t)r->size.scored;
    for (size_t i = 0; i < scored; i++)
        if (r->draw[i].who > 0)
            serve_desk_give(e->job->desk, e->running[r->draw[i].who - 1], r->made[i], now_s);
    sm_status status = sm_scheduler_done(e->scheduler, now_s, err);
    for (size_t i = e->n; !status && i-- > 0;) {
        serve_request *q = e->running[i];
        if (q->made && has_stopped(q, &q->hidden)) {
            e->result->stopped++;
            status = stop(e, i, SERVE_STOP, err);
        } else if (q->made == q->most) {
            drop(e, i);
            serve_desk_end(e->job->desk, q, SERVE_LENGTH, now_s);
        }
    }
    return status;
}

/* ---- the loop ---- */

/* The next step, or what tells the end: a size of 0. */
static sm_status plan(serve_engine *e, sm_scheduled_step *s, double *begun_s, sm_error *err) {
    for (sm_status status = SM_OK;;) {
        bool aborted;
        bool closed = serve_desk_is_closed(e->job->desk, &aborted);
        status = take_in(e, err);
        if (!status) status = let_go(e, aborted, err);
        *begun_s = sm_clock_s();
        if (!status) status = sm_scheduler_next(e->scheduler, *begun_s, s, err);
        if (status) return status;
        if (s->n) return fill_step(e, s, err);
        memset(e->room.told, 0, sizeof e->room.size);
        if (closed && e->n == 0) return SM_OK;
        serve_desk_wait(e->job->desk);
    }
}

static sm_status first_rank(serve_engine *e, bool *more, sm_error *err) {
    sm_scheduled_step s = {.n = 0};
    double begun_s = 0;
    sm_status status = plan(e, &s, &begun_s, err);
    if (status) memset(e->room.told, 0, sizeof e->room.size);
    sm_status told = share_step(e, more, err);
    if (status || told || !*more) return status ? status : told;
    status = take_step(e, err);
    double now_s = sm_clock_s();
    if (status) return status;
    count_step(e, &s, now_s - begun_s);
    status = tell_pages(e, &s, err);
    return status ? status : give(e, now_s, err);
}

static sm_status other_rank(serve_engine *e, bool *more, sm_error *err) {
    sm_status status = share_step(e, more, err);
    return status || !*more ? status : take_step(e, err);
}

/* ---- begin and end ---- */

static sm_status begin_first(serve_engine *e, sm_error *err) {
    const serve_engine_job *job = e->job;
    sm_rng rng = {(uint64_t)(sm_clock_s() * 1e9) ^ (uint64_t)(uintptr_t)e};
    if (job->options->prefix_cache && sm_generator_size_of(e->generator).scans)
        return sm_fail(err, SM_BAD_INPUT,
                       "the state of a scan is of one sequence alone, so that a model with one has "
                       "no prefix cache");
    e->secret = sm_rng_next(&rng);
    e->most = (size_t)job->desk->most_open;
    e->running = sm_arena_array(e->arena, e->most, sizeof *e->running);
    e->filled = sm_arena_array(e->arena, 2 * e->groups, sizeof *e->filled);
    if (!e->running || !e->filled) return sm_fail_memory(err);
    e->wanted = e->filled + e->groups;
    sm_status status = sm_scheduler_new(job->options, job->watch, &e->scheduler, err);
    e->result->begun_s = sm_clock_s();
    return status || !job->open ? status : job->open(job->context, err);
}

/* Programs of the sizes that steps will have, as far as they are known and few, and a step of
 * padding, which makes the caches and is not counted. */
static sm_status prepare(serve_engine *e, sm_error *err) {
    enum { SIZES = 60 };
    const sm_simulation *o = e->job->options;
    const double tokens = o->policy == SM_POLICY_CHUNKED ? o->chunk_tokens : o->prefill_tokens;
    const size_t scores = (size_t)o->most_batch, most = (size_t)fmax(tokens, o->most_batch);
    sm_status status = SM_OK;
    for (size_t size = 1, n = 0; !status && n < SIZES && size <= most; n++) {
        int64_t scored = rounded(size < scores ? size : scores);
        status = sm_generator_prepare(e->generator, (size_t)rounded(size), (size_t)scored, err);
        size = (size_t)rounded(size) + 1;
    }
    e->room.size = (step_size){1, 1, 1};
    if (!status) status = lay_step(e, err);
    if (!status) status = take_step(e, err);
    *e->result = (serve_engine_result){.model_s = 0};
    return status;
}

static sm_status begin(serve_engine *e, sm_error *err) {
    const serve_engine_job *job = e->job;
    sm_status status = sm_generator_new(e->world, job->setup, &job->pages, &e->generator, err);
    if (status) return status;
    e->groups = sm_generator_groups(e->generator);
    e->vocabulary = sm_generator_size_of(e->generator).vocabulary;
    e->arena = sm_arena_new();
    e->p = sm_arena_array(e->arena, e->vocabulary, sizeof *e->p);
    if (!e->p) return sm_fail_memory(err);
    if (job->load) status = job->load(e->generator, job->context, err);
    if (!status) status = prepare(e, err);
    if (!status) status = sm_generator_weight_bytes(e->generator, &e->result->weight_bytes, err);
    if (!status) status = sm_run_barrier(e->world, err); /* nobody opens for a rank that failed */
    if (status || e->world->rank) return status;
    return begin_first(e, err);
}

/* Clients do not wait for an engine that has failed. */
static void end(serve_engine *e) {
    if (!e->world->rank) {
        serve_desk_close(e->job->desk, true);
        while (e->n)
            serve_desk_end(e->job->desk, e->running[--e->n], SERVE_ABANDONED, sm_clock_s());
        for (serve_request *q = serve_desk_take(e->job->desk), *next; q; q = next) {
            next = q->next;
            serve_desk_end(e->job->desk, q, SERVE_ABANDONED, sm_clock_s());
        }
    }
    sm_scheduler_free(e->scheduler);
    sm_generator_free(e->generator);
    sm_arena_free(e->room.arena);
    sm_arena_free(e->arena);
}

sm_status serve_engine_run(const serve_engine_job *job, sm_communicator *world,
                           serve_engine_result *result, sm_error *err) {
    serve_engine_result own = {.model_s = 0};
    serve_engine e = {.job = job, .world = world, .result = &own};
    bool more = true;
    sm_status status = begin(&e, err);
    while (!status && more)
        status = world->rank ? other_rank(&e, &more, err) : first_rank(&e, &more, err);
    if (!status) status = sm_run_all_reduce(world, &own.bytes_apart, 1, SM_ELEMENT_F64, err);
    if (!status && !world->rank) {
        sm_scheduler_read(e.scheduler, &own.counted);
        *result = own;
    }
    end(&e);
    return status;
}
