/* train: a search that a person waits for. */
#pragma once
#include "options.h"

typedef struct cli_watch {
    double begun_s, shown_s;
    bool terminal, shown, lent;
} cli_watch;
/* Whom the call names listens. Else Ctrl-C stops the search, which keeps the best so far; a second
 * one ends the program. After a second a line on a terminal says how far the search is. */
void cli_watch_begin(cli_watch *watch, const cli_call *call, sm_train_question *question);
void cli_watch_end(cli_watch *watch);
