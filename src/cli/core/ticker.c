#include "ticker.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "scalemodel/base.h"

static void *tick(void *argument) {
    cli_ticker *t = argument;
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&t->lock);
    while (!t->over) {
        next.tv_sec++;
        while (!t->over && pthread_cond_timedwait(&t->changed, &t->lock, &next) == 0)
            ;
        if (t->over) break;
        fprintf(stderr, "\r%s: %.0f s so far (Ctrl-C ends it)\033[K", t->what,
                sm_clock_s() - t->begun_s);
        t->shown = true;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void cli_ticker_begin(cli_ticker *t, const char *what) {
    *t = (cli_ticker){.what = what, .begun_s = sm_clock_s()};
    if (isatty(STDERR_FILENO) != 1) return;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->begun = pthread_create(&t->thread, NULL, tick, t) == 0;
    if (t->begun) return;
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

void cli_ticker_end(cli_ticker *t) {
    if (!t->begun) return;
    pthread_mutex_lock(&t->lock);
    t->over = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    if (t->shown) fputs("\r\033[K", stderr);
    t->begun = false;
}
