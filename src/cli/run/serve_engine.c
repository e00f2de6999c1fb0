/* serve_engine: steps of an engine on ranks. What a step takes is broadcast: a row for each token,
 * the pages of its sequence, and how the words of those that are scored are drawn. */
#include "serve_engine.h"

#include <assert.h>
#include <math.h>

/* Of a step, from the first rank to all. So many bytes are always told, which hold the steps of a
 * dozen sequences; the rest of a larger one follows. */
enum { TOLD_FIRST = 2048 };
typedef struct step_size {
    int64_t rows, scored, table; /* rows, scored: of each group; rows 0: the engine ends */
    int64_t looks;               /* pictures that are read before, of each group */
} step_size;
typedef struct step_draw {
    double temperature;
    uint64_t seed, place, words;
    int64_t row; /* within its group */
    int64_t who; /* on the first rank: which of the running, from 1; 0 pads */
} step_draw;

typedef struct step_look {
    int64_t who; /* as above */
    size_t picture, place;
} step_look;

/* A step in numbers, and as a generator takes it. */
typedef struct step_room {
    step_size size;
    size_t bytes;                    /* that are told of it */
    size_t most, scored;             /* room for so many bytes and scores */
    sm_arena *arena;                 /* of the arrays below */
    char *told;                      /* the size and, one behind the other: */
    step_draw *draw;                 /* [groups x scored] */
    step_look *look;                 /* [looks x groups] */
    size_t *count, *position, *slot; /* [groups x rows], each */
    size_t *begun;                   /* [groups x rows, pictures] */
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
    sm_generator_size size;
    size_t groups, vocabulary, pictures; /* pictures: of a sequence, at most */
    step_room room;
    sm_arena *arena; /* of the arrays below */
    double *p;       /* of words */
    float *given;    /* [groups, numbers]: a picture for each */
    size_t *at_once; /* [groups], of these, twice */
    serve_engine_result *result;
    /* of the first rank */
    sm_scheduler *scheduler;
    serve_request **running; /* all that have not ended */
    size_t n, most, seats;
    uint64_t secret;                 /* ids of pages begin with it */
    size_t *filled, *wanted, *looks; /* [groups], one behind the other: of the step */
    uint64_t *seated;                /* [groups, seats]: the number of who has it, from 1 */
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
    size_t of_row = (3 + e->pictures) * sizeof *r->count + sizeof *r->token;
    size_t looks = e->groups * (size_t)r->size.looks;
    r->bytes = sizeof r->size + scored * sizeof *r->draw + looks * sizeof *r->look +
               rows * (of_row + (size_t)r->size.table * sizeof *r->page);
    if (!r->told || r->bytes > r->most || scored > r->scored) {
        sm_status status = more_room(e, scored, err);
        if (status) return status;
    }
    r->draw = (step_draw *)(void *)(r->told + sizeof r->size);
    r->look = (step_look *)(void *)(r->draw + scored);
    r->count = (size_t *)(void *)(r->look + looks);
    r->position = r->count + rows;
    r->slot = r->position + rows;
    r->begun = r->slot + rows;
    r->token = (int32_t *)(void *)(r->begun + e->pictures * rows);
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

/* The id of each page follows from all tokens up to its end, of pictures from what is seen, and
 * from a secret of this engine, so that nobody can make another's. */
static uint64_t next_page(const serve_engine *e, serve_request *q) {
    const size_t page_tokens = e->job->pages.page_tokens;
    const int32_t *token = q->token + q->pages++ * page_tokens;
    for (size_t i = 0; i < page_tokens; i++) {
        const int32_t row = token[i] - e->job->setup->model->V;
        if (row >= 0) q->hash = sm_hash_mixed(q->hash, q->picture[(size_t)row / e->size.rows].hash);
        q->hash = sm_hash_mixed(q->hash, (uint64_t)token[i]);
    }
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
    if (q->pictures)
        for (size_t i = 0; i < q->prompt; i++) {
            const size_t row = (size_t)(q->token[i] - e->job->setup->model->V);
            if (q->token[i] < e->job->setup->model->V || row % e->size.rows) continue;
            serve_picture *p = &q->picture[row / e->size.rows];
            const float *given = q->given + row / e->size.rows * q->numbers;
            *p = (serve_picture){i, e->secret};
            for (size_t k = 0; k < q->numbers; k++) {
                uint32_t bits;
                memcpy(&bits, &given[k], sizeof bits);
                p->hash = sm_hash_mixed(p->hash, bits);
            }
        }
    for (size_t i = 0; i < pages; i++) block[i] = next_page(e, q);
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

static sm_status stop(serve_engine *e, size_t at, serve_end end, sm_error *err) {
    double now_s = sm_clock_s();
    serve_request *q = e->running[at];
    sm_status status = sm_scheduler_stop(e->scheduler, q->number, now_s, err);
    drop(e, at);
    serve_desk_end(e->job->desk, q, end, now_s);
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

/* Does the picture have rows in the step that its seat has not seen? */
static bool is_looked_at(const serve_engine *e, const sm_scheduled *s, const serve_request *q,
                         size_t picture) {
    const size_t from = q->picture[picture].begun;
    return !(q->seen >> picture & 1) && s->first < from + e->size.rows &&
           from < s->first + s->tokens;
}

static void measure_step(serve_engine *e, const sm_scheduled_step *s) {
    size_t rows = 1, scored = 1, table = 1, looks = 0;
    memset(e->filled, 0, 3 * e->groups * sizeof *e->filled);
    for (size_t i = 0; i < s->n; i++) {
        const sm_scheduled *one = &s->sequence[i];
        serve_request *q = e->running[find(e, one->number)];
        /* Who takes a seat, again or for the first time, has seen nothing there. */
        uint64_t *seated = &e->seated[(size_t)one->replica * e->seats + (size_t)one->seat];
        if (*seated != one->number + 1) q->seen = 0;
        *seated = one->number + 1;
        rows = larger(rows, e->filled[one->replica] += one->tokens);
        scored = larger(scored, e->wanted[one->replica] += one->gives);
        table = larger(table, one->pages);
        for (size_t k = 0; k < q->pictures; k++)
            looks = larger(looks, e->looks[one->replica] += is_looked_at(e, one, q, k));
    }
    e->room.size = (step_size){rounded(rows), rounded(scored), (int64_t)table, (int64_t)looks};
}

static void fill_pictures(serve_engine *e, const sm_scheduled *s, size_t who) {
    const size_t group = (size_t)s->replica;
    serve_request *q = e->running[who];
    for (size_t k = 0; k < q->pictures; k++) {
        if (!is_looked_at(e, s, q, k)) continue;
        e->room.look[e->looks[group]++ * e->groups + group] =
            (step_look){(int64_t)who + 1, k, (size_t)s->seat * e->pictures + k};
        q->seen |= 1ull << k;
    }
}

static void fill_sequence(serve_engine *e, const sm_scheduled *s) {
    step_room *r = &e->room;
    size_t rows = (size_t)r->size.rows, scored = (size_t)r->size.scored, who = find(e, s->number);
    size_t group = (size_t)s->replica, table = (size_t)r->size.table;
    const serve_request *q = e->running[who];
    fill_pictures(e, s, who);
    for (size_t i = 0; i < s->tokens; i++) {
        size_t at = group * rows + e->filled[group]++;
        r->token[at] = q->token[s->first + i];
        r->count[at] = 1;
        r->position[at] = s->first + i;
        r->slot[at] = (size_t)s->seat;
        for (size_t k = 0; k < e->pictures; k++)
            r->begun[at * e->pictures + k] = k < q->pictures ? q->picture[k].begun : SIZE_MAX;
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
    memset(e->filled, 0, 3 * e->groups * sizeof *e->filled);
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

static void count_pass(serve_engine *e, const sm_generator_result *took) {
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        e->result->bytes_predicted[i] += took->bytes_predicted[i];
        e->result->bytes_counted[i] += took->bytes_counted[i];
        e->result->bytes_apart += fabs(took->bytes_predicted[i] - took->bytes_counted[i]);
    }
    e->result->model_s += took->seconds;
}

/* A picture of each group that has one. */
static sm_status look(serve_engine *e, const step_look *of, sm_error *err) {
    const size_t numbers = e->size.numbers;
    size_t *place = e->at_once + e->groups;
    sm_generator_result took;
    for (size_t i = 0; i < e->groups; i++) {
        e->at_once[i] = of[i].who ? e->size.source : 0;
        place[i] = of[i].place;
        if (of[i].who && !e->world->rank)
            memcpy(e->given + i * numbers,
                   e->running[of[i].who - 1]->given + of[i].picture * numbers,
                   numbers * sizeof *e->given);
    }
    const sm_generator_source source = {
        .rows = 1, .given = e->given, .count = e->at_once, .place = place};
    sm_status status =
        sm_run_broadcast(e->world, e->given, e->groups * numbers * sizeof *e->given, 0, err);
    if (!status) status = sm_generator_read(e->generator, &source, &took, err);
    if (!status) count_pass(e, &took);
    return status;
}

static sm_status take_step(serve_engine *e, sm_error *err) {
    step_room *r = &e->room;
    size_t scored = e->groups * (size_t)r->size.scored;
    sm_generator_result took;
    sm_status status = SM_OK;
    for (int64_t i = 0; !status && i < r->size.looks; i++)
        status = look(e, r->look + (size_t)i * e->groups, err);
    if (status) return status;
    for (size_t i = 0; i < scored; i++) r->score[i] = (size_t)r->draw[i].row;
    const sm_generator_rows pass = {.rows = (size_t)r->size.rows,
                                    .table = (size_t)r->size.table,
                                    .scored = (size_t)r->size.scored,
                                    .token = r->token,
                                    .count = r->count,
                                    .position = r->position,
                                    .slot = r->slot,
                                    .begun = r->begun,
                                    .page = r->page,
                                    .score = r->score};
    status = sm_generator_step(e->generator, &pass, r->logit, &took, err);
    if (status) return status;
    count_pass(e, &took);
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
    if (e->room.size.looks)
        to->expected_s += e->job->look_s(e->job->context, (double)e->room.size.looks);
    to->measured_s += seconds;
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

        status = SM_OK;
        for (serve_request *q = serve_desk_take(e->job->desk), *next; q; q = next) {
            next = q->next;
            if (!status) status = add_request(e, q, err);
            if (status) serve_desk_end(e->job->desk, q, SERVE_ABANDONED, sm_clock_s());
        }
        /* Those whose clients have gone, or all. */
        for (size_t i = e->n; !status && i-- > 0;)
            if (aborted || serve_desk_is_gone(e->job->desk, e->running[i])) {
                status = stop(e, i, SERVE_ABANDONED, err);
                e->result->abandoned++;
            }
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

    size_t page_tokens = e->job->pages.page_tokens;
    status = SM_OK;
    for (size_t i = 0; !status && i < s.n; i++) {
        const sm_scheduled *one = &s.sequence[i];
        serve_request *q = e->running[find(e, one->number)];
        while (!status && (q->pages + 1) * page_tokens <= one->first + one->tokens) {
            uint64_t id = next_page(e, q);
            status = sm_scheduler_page_filled(e->scheduler, q->number, id, err);
        }
    }
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
    if (e->size.whole && job->options->policy == SM_POLICY_CHUNKED)
        return sm_fail(err, SM_BAD_INPUT,
                       "rows of a picture see each other in %s, and chunks would part them: "
                       "--policy continuous reads prompts whole",
                       job->setup->model->name);
    if (job->options->prefix_cache && e->size.scans)
        return sm_fail(err, SM_BAD_INPUT,
                       "the state of a scan is of one sequence alone, so that a model with one has "
                       "no prefix cache");
    e->secret = sm_rng_next(&rng);
    e->most = (size_t)job->desk->most_open;
    e->running = sm_arena_array(e->arena, e->most, sizeof *e->running);
    e->filled = sm_arena_array(e->arena, 3 * e->groups, sizeof *e->filled);
    e->seats = (size_t)job->options->most_batch;
    e->seated = sm_arena_array(e->arena, e->groups * e->seats, sizeof *e->seated);
    if (!e->running || !e->filled || !e->seated) return sm_fail_memory(err);
    e->wanted = e->filled + e->groups;
    e->looks = e->wanted + e->groups;
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
    e->room.size = (step_size){1, 1, 1, e->pictures > 0};
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
    e->size = sm_generator_size_of(e->generator);
    e->vocabulary = e->size.vocabulary;
    e->pictures = e->size.rows ? e->size.pictures : 0;
    e->arena = sm_arena_new();
    e->p = sm_arena_array(e->arena, e->vocabulary, sizeof *e->p);
    e->given = sm_arena_array(e->arena, e->groups * e->size.numbers + 1, sizeof *e->given);
    e->at_once = sm_arena_array(e->arena, 2 * e->groups, sizeof *e->at_once);
    if (!e->p || !e->given || !e->at_once) return sm_fail_memory(err);
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
