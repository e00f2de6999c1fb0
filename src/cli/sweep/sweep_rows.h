/* sweep_rows: the rows of a sweep, asked by threads and taken in order. */
#pragma once
#include "sweep.h"

typedef struct sweep_taker {
    /* The cells of the next row, by one thread at a time. */
    sm_status (*take)(void *context, const char *cells, sm_error *err);
    void *context;
    bool terminal; /* tell how far it is on standard error */
} sweep_taker;
/* Ask the questions from row `first` on. */
sm_status sweep_spread(const sweep *s, int64_t first, int threads, const sweep_taker *taker,
                       sm_error *err);
