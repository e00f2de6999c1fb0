/* run sweep: the questions of a sweep on ranks. Rank 0 hands out rows, a few at a time, to whoever
 * has none, takes what they answer, and writes it in order; a thread of it asks, too. */
#include <time.h>

#include "program.h"
#include "ranks.h"
#include "sweep.h"

typedef struct values {
    sweep_values of;
    int64_t ranks;
    ranks_values with;
} run_sweep_values;

/* From a rank: the rows that it answered, whose cells follow; to a rank: those that it is to ask,
 * none being the end. */
typedef struct told {
    int64_t row, rows, bytes;
} told;

/* What rank 0 knows of another: rows at once that take a tenth of a second, or some such. */
typedef struct asker {
    told told;
    sm_request_handle handle;
    bool asked, ended;
    int most;
    double asked_s;
} asker;

typedef struct sweeping {
    const cli_call *call;
    sm_report *r;
    sm_status answered; /* by rank 0, */
    asker *asker;       /* which knows of each rank */
    sm_communicator *world;
} sweeping;

enum { TAG_TOLD = 1, TAG_CELLS, MOST_ROWS = 256 };

static sm_status pass_over(sm_communicator *c, bool send, void *what, size_t bytes, int rank,
                           int tag, sm_error *err) {
    sm_request_handle handle = {{NULL}};
    sm_status status = send ? c->backend->start_send(c, what, bytes, rank, tag, &handle, err)
                            : c->backend->start_receive(c, what, bytes, rank, tag, &handle, err);
    return status ? status : c->backend->wait(c, &handle, err);
}

/* ---- who asks ---- */

static sm_status ask_rows(const sweep *s, told *t, char **all, sm_error *err) {
    sm_memory_stream memory;
    FILE *out = sm_memory_stream_open(&memory);
    sm_status status = SM_OK;
    if (!out) return sm_fail_memory(err);
    for (int64_t i = 0; i < t->rows && !status; i++) {
        char *cells;
        status = sweep_ask(s, t->row + i, &cells, err);
        if (!status) fwrite(cells, 1, sweep_cells_bytes(s, cells), out);
        sm_free(cells);
    }
    status = sm_memory_stream_close(&memory, out, status, err);
    *all = memory.text;
    t->bytes = (int64_t)memory.length;
    return status;
}

static sm_status ask(sm_communicator *world, const sweep *s, sm_error *err) {
    told t = {.rows = 0};
    char *cells = NULL;
    sm_status status;
    do {
        status = pass_over(world, true, &t, sizeof t, 0, TAG_TOLD, err);
        if (!status && cells)
            status = pass_over(world, true, cells, (size_t)t.bytes, 0, TAG_CELLS, err);
        sm_free(cells);
        cells = NULL;
        if (!status) status = pass_over(world, false, &t, sizeof t, 0, TAG_TOLD, err);
        if (!status && t.rows) status = ask_rows(s, &t, &cells, err);
    } while (!status && t.rows);
    return status;
}

/* ---- who hands out ---- */

static sm_status listen(const sweeping *w, int rank, sm_error *err) {
    asker *a = &w->asker[rank];
    a->asked = true;
    a->asked_s = sm_clock_s();
    return w->world->backend->start_receive(w->world, &a->told, sizeof a->told, rank, TAG_TOLD,
                                            &a->handle, err);
}

static sm_status take_rows(const sweeping *w, int rank, sweep_spreading *p, sm_error *err) {
    asker *a = &w->asker[rank];
    const told *t = &a->told;
    sm_status status = w->world->backend->wait(w->world, &a->handle, err);
    const double took = sm_clock_s() - a->asked_s;
    if (took < 0.05 && a->most < MOST_ROWS) a->most *= 2;
    if (took > 0.2 && a->most > 1) a->most /= 2;
    a->asked = false;
    if (status || !t->rows) return status;
    char *cells = sm_malloc((size_t)t->bytes);
    if (!cells) return sm_fail_memory(err);
    status = pass_over(w->world, false, cells, (size_t)t->bytes, rank, TAG_CELLS, err);
    if (!status) sweep_bring(p, t->row, (int)t->rows, cells, SM_OK, NULL);
    sm_free(cells);
    return status;
}

/* False: it has no answer yet, or there is nothing for it. */
static bool serve_rank(const sweeping *w, int rank, sweep_spreading *p) {
    asker *a = &w->asker[rank];
    told *t = &a->told;
    sm_error err = {.status = SM_OK};
    const sm_backend *b = w->world->backend;
    if (a->asked && b->poke) b->poke(w->world, &a->handle);
    if (a->asked && !b->done(w->world, &a->handle)) return false;
    sm_status status = a->asked ? take_rows(w, rank, p, &err) : SM_OK;
    int n = status ? -1 : sweep_next(p, a->most, &t->row);
    if (n == 0) return false;
    t->rows = n < 0 ? 0 : n;
    if (!status) status = pass_over(w->world, true, t, sizeof *t, rank, TAG_TOLD, &err);
    if (!status && n > 0) status = listen(w, rank, &err);
    if (status) sweep_bring(p, t->row, 1, NULL, status, &err);
    a->ended = status || n < 0;
    return true;
}

static void hand_out(void *context, sweep_spreading *p) {
    const sweeping *w = context;
    const struct timespec nap = {.tv_nsec = 200000};
    for (int left = 1; left > 0;) {
        bool moved = false;
        left = 0;
        for (int rank = 1; rank < w->world->size; rank++) {
            if (!w->asker[rank].ended) moved |= serve_rank(w, rank, p);
            left += !w->asker[rank].ended;
        }
        if (left && !moved) nanosleep(&nap, NULL);
    }
}

/* A rank tells that it is there by a first answer, of no rows. */
static sm_status sweep_all(sm_communicator *world, sweeping *w, sm_error *err) {
    const run_sweep_values *o = w->call->values;
    const sweep_askers askers = {1, world->size - 1, hand_out, w};
    sm_status status = SM_OK;
    w->world = world;
    w->asker = sm_arena_array(w->call->arena, (size_t)world->size, sizeof *w->asker);
    if (!w->asker) return sm_fail_memory(err);
    for (int rank = 1; rank < world->size && !status; rank++) {
        w->asker[rank] = (asker){.most = 1};
        status = listen(w, rank, err);
    }
    if (!status) w->answered = sweep_run(w->call, &o->of, &askers, w->r, err);
    return status ? status : w->answered > SM_NEGATIVE ? w->answered : SM_OK;
}

static sm_status on_rank(sm_communicator *world, void *context, sm_error *err) {
    sweeping *w = context;
    const run_sweep_values *o = w->call->values;
    sweep *s;
    if (world->rank == 0) return sweep_all(world, w, err);
    cli_call own = *w->call; /* ranks that are threads share the other */
    own.arena = sm_arena_new();
    if (!own.arena) return sm_fail_memory(err);
    sm_status status =
        sweep_new(&own, &o->of.over, o->of.columns, own.positionals, own.positional, &s, err);
    if (!status) {
        status = ask(world, s, err);
        sweep_end(s);
    }
    sm_arena_free(own.arena);
    return status;
}

static sm_status run_sweep(const cli_call *call, sm_report *r, sm_error *err) {
    const run_sweep_values *o = call->values;
    sweeping w = {.call = call, .r = r};
    sm_status status =
        ranks_run(call, &o->with, sm_search_threads((int)o->ranks), on_rank, &w, err);
    return status ? status : w.answered;
}

const cli_verb run_sweep_verb = {
    .about = &verbs_run_sweep,
    CLI_VALUES(SWEEP_PLACES(of), AT("ranks", ranks), RANKS_PLACES(with)),
    .asks = &cli_scalemodel,
    .run = run_sweep,
};
