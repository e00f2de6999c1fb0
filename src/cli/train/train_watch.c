/* train_watch: Ctrl-C stops a search instead of the program, and a line on standard error says how
 * far it is. */
#include "train_watch.h"
#include <signal.h>
#include <unistd.h>

/* A signal handler reaches nothing but what is static. */
static volatile int stop;

static void on_interrupt(int number) {
    (void)number;
    stop = 1;
}

static void show_progress(double fraction, double best_s, void *context) {
    cli_watch *watch = context;
    double now = sm_clock_s();
    char best[48];
    if (!watch->terminal || now - watch->begun_s < 0.3 || now - watch->shown_s < 0.1) return;
    watch->shown_s = now;
    watch->shown = true;
    fprintf(stderr, "\r%3.0f %% of the degrees looked at in %.0f s", 100.0 * fraction,
            now - watch->begun_s);
    if (best_s > 0.0) fprintf(stderr, ", best %s", sm_format_seconds(best, sizeof best, best_s));
    fputs("  (Ctrl-C: the best so far)\033[K", stderr);
    fflush(stderr);
}

/* The best that the search reports is a time only when time is the objective. */
static void show_fraction(double fraction, double best, void *context) {
    (void)best;
    show_progress(fraction, 0.0, context);
}

void cli_watch_begin(cli_watch *watch, const cli_call *call, sm_train_question *question) {
    const sm_command_watch *lent = call->watch;
    if (lent) {
        *watch = (cli_watch){.lent = true};
        question->stop = lent->stop;
        question->progress = lent->progress;
        question->context = lent->context;
        return;
    }
    *watch = (cli_watch){.begun_s = sm_clock_s(), .terminal = isatty(STDERR_FILENO) == 1};
    stop = 0;
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    question->stop = &stop;
    question->progress = question->objective == SM_OBJECTIVE_TIME ? show_progress : show_fraction;
    question->context = watch;
}

void cli_watch_end(cli_watch *watch) {
    if (watch->lent) return;
    signal(SIGINT, SIG_DFL);
    if (watch->shown) fputs("\r\033[K", stderr);
}
