/* The questions of a sweep spread over threads, and their rows in order. A thread takes the next
 * row that nobody has; rows are handed on as soon as all before them are. */
#include "sweep.h"
#include <string.h>

enum { AHEAD = 4096 }; /* rows that are kept until the slowest before them is there */

typedef struct spread {
    const sweep *s;
    const sweep_taker *taker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t first, next, done; /* to begin with; to be asked; to be handed on */
    char *cells[AHEAD];
    sm_status status;
    bool checked;   /* the columns, by the first row that was answered */
    int64_t failed; /* the row that the error is of */
    sm_error *err;
    double begun_s, shown_s;
} spread;

static void fail(spread *p, int64_t row, sm_status status, const sm_error *err) {
    if (p->status && p->failed <= row) return;
    p->status = status;
    p->failed = row;
    *p->err = *err;
}

/* A key of --columns that an answer does not have is told by the first of them. */
static sm_status check(spread *p, const char *cells, sm_error *err) {
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
static void hand_on(spread *p) {
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

static bool stopped(const spread *p) {
    return p->status || (p->s->watch.stop && *p->s->watch.stop);
}

static void *work(void *context) {
    spread *p = context;
    pthread_mutex_lock(&p->lock);
    while (!stopped(p) && p->next < p->s->rows) {
        if (p->next >= p->done + AHEAD) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        const int64_t row = p->next++;
        char *cells;
        sm_error err = {.status = SM_OK};
        pthread_mutex_unlock(&p->lock);
        sm_status status = sweep_ask(p->s, row, &cells, &err);
        pthread_mutex_lock(&p->lock);
        if (status) fail(p, row, status, &err);
        p->cells[row % AHEAD] = cells;
        if (row == p->done) hand_on(p);
        pthread_cond_broadcast(&p->changed);
    }
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

sm_status sweep_spread(const sweep *s, int64_t first, int threads, const sweep_taker *taker,
                       sm_error *err) {
    enum { MOST_THREADS = 1024 };
    pthread_t thread[MOST_THREADS];
    spread *p = sm_calloc(1, sizeof *p);
    if (!p) return sm_fail_memory(err);
    *p = (spread){.s = s, .taker = taker, .first = first, .next = first, .done = first};
    p->checked = !s->asked.text;
    p->err = err;
    p->begun_s = sm_clock_s();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    int started = 0;
    while (started < threads - 1 && started < MOST_THREADS &&
           pthread_create(&thread[started], NULL, work, p) == 0)
        started++;
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
