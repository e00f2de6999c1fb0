/* serve_desk: a locked list, and counts that bound it. */
#include "serve_engine.h"

sm_status serve_desk_begin(serve_desk *desk, int most_open, sm_error *err) {
    *desk = (serve_desk){.most_open = most_open};
    if (pthread_mutex_init(&desk->lock, NULL)) return sm_fail_memory(err);
    if (pthread_cond_init(&desk->come, NULL) == 0) return SM_OK;
    pthread_mutex_destroy(&desk->lock);
    return sm_fail_memory(err);
}

void serve_desk_finish(serve_desk *desk) {
    pthread_cond_destroy(&desk->come);
    pthread_mutex_destroy(&desk->lock);
}

sm_status serve_request_new(const int32_t *prompt, size_t n, size_t most, serve_request **out,
                            sm_error *err) {
    serve_request *q = sm_calloc(1, sizeof *q);
    int32_t *token = sm_calloc(n + most, sizeof *token);
    if (!q || !token) {
        sm_free(q);
        sm_free(token);
        return sm_fail_memory(err);
    }
    memcpy(token, prompt, n * sizeof *token);
    q->token = token;
    q->prompt = n;
    q->most = most;
    *out = q;
    return SM_OK;
}

void serve_request_free(serve_request *q) {
    if (!q) return;
    sm_free(q->token);
    sm_free(q->given);
    sm_free(q->picture);
    sm_free(q);
}

sm_status serve_request_look(serve_request *q, size_t pictures, size_t numbers, sm_error *err) {
    q->given = sm_calloc(pictures * numbers, sizeof *q->given);
    q->picture = sm_calloc(pictures, sizeof *q->picture);
    q->pictures = pictures;
    q->numbers = numbers;
    return q->given && q->picture ? SM_OK : sm_fail_memory(err);
}

/* ---- clients ---- */

static void stir(serve_desk *desk) {
    desk->stirred = true;
    pthread_cond_signal(&desk->come);
}

serve_put serve_desk_put(serve_desk *desk, serve_request *q, double arrival_s) {
    pthread_mutex_lock(&desk->lock);
    serve_put put = desk->closed                    ? SERVE_CLOSED
                    : desk->open >= desk->most_open ? SERVE_FULL
                                                    : SERVE_TAKEN;
    if (put == SERVE_TAKEN) {
        desk->open++;
        q->arrival_s = arrival_s >= 0 ? arrival_s : sm_clock_s();
        q->next = NULL;
        if (desk->last) desk->last->next = q;
        else desk->first = q;
        desk->last = q;
        stir(desk);
    }
    pthread_mutex_unlock(&desk->lock);
    return put;
}

void serve_desk_leave(serve_desk *desk, serve_request *q) {
    pthread_mutex_lock(&desk->lock);
    bool ended = q->end != SERVE_GOES_ON;
    q->gone = true;
    q->tell = NULL;
    if (!ended) stir(desk);
    pthread_mutex_unlock(&desk->lock);
    if (ended) serve_request_free(q);
}

void serve_desk_close(serve_desk *desk, bool now) {
    pthread_mutex_lock(&desk->lock);
    desk->closed = true;
    desk->aborted = desk->aborted || now;
    stir(desk);
    pthread_mutex_unlock(&desk->lock);
}

/* ---- the engine ---- */

serve_request *serve_desk_take(serve_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    serve_request *first = desk->first;
    desk->first = desk->last = NULL;
    desk->stirred = false;
    pthread_mutex_unlock(&desk->lock);
    return first;
}

void serve_desk_wait(serve_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    while (!desk->stirred) pthread_cond_wait(&desk->come, &desk->lock);
    pthread_mutex_unlock(&desk->lock);
}

void serve_desk_give(serve_desk *desk, serve_request *q, int32_t token, double now_s) {
    pthread_mutex_lock(&desk->lock);
    if (q->made == 0) q->first_s = now_s;
    q->token[q->prompt + q->made++] = token;
    if (q->made > q->longest_stop) q->shown = q->made - q->longest_stop;
    if (q->tell) q->tell(q->context);
    pthread_mutex_unlock(&desk->lock);
}

void serve_desk_end(serve_desk *desk, serve_request *q, serve_end end, double now_s) {
    pthread_mutex_lock(&desk->lock);
    bool gone = q->gone;
    q->end = end;
    q->made -= q->hidden;
    q->shown = q->made;
    q->end_s = now_s;
    desk->open--;
    if (q->tell) q->tell(q->context);
    pthread_mutex_unlock(&desk->lock);
    if (gone) serve_request_free(q);
}

bool serve_desk_is_gone(serve_desk *desk, const serve_request *q) {
    pthread_mutex_lock(&desk->lock);
    bool gone = q->gone;
    pthread_mutex_unlock(&desk->lock);
    return gone;
}

bool serve_desk_is_closed(serve_desk *desk, bool *aborted) {
    pthread_mutex_lock(&desk->lock);
    bool closed = desk->closed;
    *aborted = desk->aborted;
    pthread_mutex_unlock(&desk->lock);
    return closed;
}
