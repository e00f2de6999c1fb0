/* ticker: a line on a terminal that says how long an answer has been worked on, from a second on.
 * Verbs that know more say more themselves. */
#ifndef SCALEMODEL_CLI_TICKER_H
#define SCALEMODEL_CLI_TICKER_H
#include <pthread.h>
#include <stdbool.h>

typedef struct cli_ticker {
    const char *what; /* "validate" */
    bool begun, over, shown;
    double begun_s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
} cli_ticker;

/* Nothing happens where standard error is no terminal, or no thread can be started. */
void cli_ticker_begin(cli_ticker *ticker, const char *what);
/* Takes the line away. Before anything else is said. */
void cli_ticker_end(cli_ticker *ticker);
#endif
