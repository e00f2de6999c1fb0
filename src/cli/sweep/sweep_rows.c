/* The questions of a sweep spread over threads, and their rows in order. A thread takes the next
 * row that nobody has; rows are handed on as soon as all before them are. */
#include "sweep.h"

enum { AHEAD = 65536 }; /* rows that are kept until the slowest before them is there */

struct sweep_spreading {
    const sweep *s;
    const sweep_taker *taker;
    const sweep_askers *askers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t first, next, done; /* to begin with; to be asked; to be handed on */
    char *cells[AHEAD];
    sm_status status;
    bool checked;   /* the columns, by the first row that was answered */
    int64_t failed; /* the row that the error is of */
    sm_error *err;
    double begun_s, shown_s;
};

static void fail(sweep_spreading *p, int64_t row, sm_status status, const sm_error *err) {
    if (p->status && p->failed <= row) return;
    p->status = status;
    p->failed = row;
    *p->err = *err;
}

/* A key of --columns that an answer does not have is told by the first of them. */
static sm_status check(sweep_spreading *p, const char *cells, sm_error *err) {
    const char *cell[SWEEP_MOST_CELLS];
    if (p->checked) return SM_OK;
    sweep_part(p->s, cells, cell);
    if (strcmp(cell[p->s->axes], "yes") != 0) return SM_OK;
    p->checked = true;
    for (int i = 0; i < p->s->columns; i++)
        if (!*cell[p->s->axes + 1 + i]) return sweep_ask(p->s, p->done, NULL, err);
    return SM_OK;
}

/* All that is there in order. */
static void hand_on(sweep_spreading *p) {
    for (char **cells; *(cells = &p->cells[p->done % AHEAD]); p->done++) {
        sm_error err = {.status = SM_OK};
        sm_status status = check(p, *cells, &err);
        if (!status) status = p->taker->take(p->taker->context, *cells, &err);
        sm_free(*cells);
        *cells = NULL;
        if (status) fail(p, p->done, status, &err);
    }
    const double now = sm_clock_s(), took = now - p->begun_s;
    char left[48];
    if (!p->taker->terminal || took < 0.3 || now - p->shown_s < 0.1) return;
    p->shown_s = now;
    const double each = took / (double)(p->done - p->first + 1);
    fprintf(stderr, "\r%lld of %lld questions, about %s left\033[K", (long long)p->done,
            (long long)p->s->rows,
            sm_format_seconds(left, sizeof left, each * (double)(p->s->rows - p->done)));
    fflush(stderr);
}

static bool stopped(const sweep_spreading *p) {
    return p->status || (p->s->watch.stop && *p->s->watch.stop);
}

int sweep_next(sweep_spreading *p, int most, int64_t *row) {
    pthread_mutex_lock(&p->lock);
    int64_t n = p->s->rows - p->next, room = p->done + AHEAD - p->next;
    bool over = stopped(p) || n == 0;
    const int64_t share = 1 + n / (2 * (p->askers->threads + p->askers->others));
    n = n < room ? n : room;
    n = n < share ? n : share; /* so that all end together */
    n = over ? -1 : n < most ? n : most;
    *row = p->next;
    p->next += n > 0 ? n : 0;
    pthread_mutex_unlock(&p->lock);
    return (int)n;
}

size_t sweep_cells_bytes(const sweep *s, const char *cells) {
    const char *cell[SWEEP_MOST_CELLS];
    sweep_part(s, cells, cell);
    const char *last = cell[sweep_cells(s) - 1];
    return (size_t)(last - cells) + strlen(last) + 1;
}

void sweep_bring(sweep_spreading *p, int64_t row, int rows, const char *cells, sm_status status,
                 const sm_error *err) {
    sm_error own = {.status = SM_OK};
    if (status) own = *err;
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < rows && !status; i++) {
        const size_t bytes = sweep_cells_bytes(p->s, cells);
        char *copy = sm_malloc(bytes);
        if (copy) memcpy(copy, cells, bytes);
        else status = sm_fail_memory(&own);
        p->cells[(row + i) % AHEAD] = copy;
        cells += bytes;
    }
    if (status) fail(p, row, status, &own);
    hand_on(p);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void wait_for_others(sweep_spreading *p) {
    pthread_mutex_lock(&p->lock);
    while (!stopped(p) && p->next == p->done + AHEAD) pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *context) {
    sweep_spreading *p = context;
    int64_t row;
    for (int n; (n = sweep_next(p, 1, &row)) >= 0;) {
        char *cells;
        sm_error err = {.status = SM_OK};
        sm_status status = n ? sweep_ask(p->s, row, &cells, &err) : SM_OK;
        if (n) sweep_bring(p, row, 1, cells, status, &err);
        else wait_for_others(p);
        sm_free(n ? cells : NULL);
    }
    return NULL;
}

sm_status sweep_spread(const sweep *s, int64_t first, const sweep_askers *askers,
                       const sweep_taker *taker, sm_error *err) {
    enum { MOST_THREADS = 1024 };
    pthread_t thread[MOST_THREADS];
    sweep_spreading *p = sm_calloc(1, sizeof *p);
    if (!p) return sm_fail_memory(err);
    *p = (sweep_spreading){.s = s, .taker = taker, .askers = askers, .first = first};
    p->next = p->done = first;
    p->checked = !s->asked.text;
    p->err = err;
    p->begun_s = sm_clock_s();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    int started = 0, wanted = askers->hand_out ? askers->threads : askers->threads - 1;
    while (started < wanted && started < MOST_THREADS &&
           pthread_create(&thread[started], NULL, work, p) == 0)
        started++;
    if (askers->hand_out) askers->hand_out(askers->context, p);
    work(p); /* a thread that did not start leaves its work to the others */
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    if (p->shown_s > 0.0) fputs("\r\033[K", stderr);
    sm_status status = p->status;
    for (int i = 0; i < AHEAD; i++) sm_free(p->cells[i]);
    if (!status && p->done < s->rows) status = sm_fail(err, SM_USAGE, "the sweep was stopped");
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    sm_free(p);
    return status;
}
