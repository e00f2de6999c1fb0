/* program: choose the verb, let it fill a report, show the report or the error, and turn the status
 * into the exit code. */
#include "program.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

typedef struct ticking {
    const char *what; /* "validate" */
    bool begun, over, shown;
    double begun_s;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
} ticking;

static void *tick(void *argument) {
    ticking *t = argument;
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

/* Nothing happens where standard error is no terminal, or no thread can be started. */
static void ticker_begin(ticking *t, const char *what) {
    *t = (ticking){.what = what, .begun_s = sm_clock_s()};
    if (isatty(STDERR_FILENO) != 1) return;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->begun = pthread_create(&t->thread, NULL, tick, t) == 0;
    if (t->begun) return;
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}

/* Takes the line away. Before anything else is said. */
static void ticker_end(ticking *t) {
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

enum { MOST_VERBS = 32 };

bool cli_beside(const char *name, char path[CLI_PATH_ROOM]) {
    size_t length = strlen(name);
    ssize_t n = readlink("/proc/self/exe", path, CLI_PATH_ROOM - 1);
    while (n > 0 && path[n - 1] != '/') n--;
    if (n <= 0 || (size_t)n + length >= CLI_PATH_ROOM) return false;
    memcpy(path + n, name, length + 1);
    return true;
}

const char *cli_verb_word(const cli_verb *verb) {
    const char *blank = strrchr(verb->about->name, ' ');
    return blank ? blank + 1 : verb->about->name;
}

static const cli_verb *find_verb(const cli_program *p, const char *name) {
    for (int i = 0; i < p->verbs; i++)
        if (strcmp(cli_verb_word(p->verb[i]), name) == 0) return p->verb[i];
    return NULL;
}

static sm_status fail_unknown_verb(const cli_program *p, const char *name, sm_error *err) {
    const char *names[MOST_VERBS + 4];
    int n = 0;
    for (; n < p->verbs && n < MOST_VERBS; n++) names[n] = cli_verb_word(p->verb[n]);
    names[n++] = "help";
    names[n++] = "completion";
    names[n++] = "--help";
    names[n++] = "--version";
    const char *near = sm_nearest(name, strlen(name), names, (size_t)n);
    const char *blank = strchr(p->name, ' ');
    if (near)
        return sm_fail(err, SM_USAGE, "there is no verb '%s%s%.80s'; did you mean '%s'?",
                       blank ? blank + 1 : "", blank ? " " : "", name, near);
    return sm_fail(err, SM_USAGE, "there is no verb '%s%s%.80s'; '%s help' lists them",
                   blank ? blank + 1 : "", blank ? " " : "", name, p->name);
}

const cli_verb *cli_find_verb(const cli_program *p, const char *name, sm_error *err) {
    const cli_verb *verb = find_verb(p, name);
    if (!verb) fail_unknown_verb(p, name, err);
    return verb;
}

static void print_help(const cli_program *p, FILE *out) {
    fprintf(out, "usage: %s VERB [ARGUMENTS] [OPTIONS]\n\n%s\n\n", p->name, p->summary);
    for (int i = 0; i < p->verbs; i++)
        fprintf(out, "  %-12s%s\n", cli_verb_word(p->verb[i]), p->verb[i]->about->summary);
    fputs("  help VERB   the options of a verb; 'help plan': the keys of a plan\n", out);
    if (!p->speaks)
        fputs("  completion SHELL  a script with which bash, zsh or fish complete all this\n", out);
    fputs("\n"
          "Every verb takes --json, --csv, --explain, -o FILE and --help.\n"
          "Exit status: 0 answered, 1 a negative answer, 2 usage, 3 bad input, 4 I/O,\n"
          "5 internal.\n",
          out);
}

/* Help goes through memory like every answer, so that a full disk or a closed pipe is noticed. */
static sm_status answer_help(const cli_program *p, const char *name, sm_error *err) {
    const cli_verb *verb = name ? find_verb(p, name) : NULL;
    bool plan = name && strcmp(name, "plan") == 0;
    if (name && !verb && !plan) return fail_unknown_verb(p, name, err);
    if (verb && verb->pass_on) {
        static char help[] = "--help";
        char *argv[] = {help, NULL};
        return verb->pass_on(verb, 1, argv, err);
    }
    if (verb) cli_help_verb(verb, stdout);
    if (verb && plan) fputc('\n', stdout);
    if (plan) cli_help_plan(stdout);
    if (!name) print_help(p, stdout);
    return cli_write_stdout("", 0, err);
}

static bool speaks(const cli_program *p) { return !p->speaks || p->speaks(); }

static sm_status answer_verb(const cli_program *p, cli_call *call, sm_error *err) {
    sm_report *report = sm_report_new();
    if (!report) return sm_fail_memory(err);
    ticking ticker = {.begun = false};
    if (!p->speaks && !call->verb->tells_progress) ticker_begin(&ticker, cli_verb_word(call->verb));
    sm_status answer = cli_ask(call, report, err);
    ticker_end(&ticker);
    sm_status status = answer;
    if (call->common.json && report->why) sm_put_why(report, report->why);
    if ((answer == SM_OK || answer == SM_NEGATIVE) && speaks(p))
        status = cli_answer(&call->common, report, err);
    sm_report_free(report);
    return status ? status : answer;
}

static sm_status run_verb(const cli_program *p, const cli_verb *verb, int argc, char **argv,
                          sm_error *err) {
    if (verb->pass_on) return verb->pass_on(verb, argc, argv, err);
    cli_call call = {.arena = sm_arena_new(), .argv = argv};
    if (!call.arena) return sm_fail_memory(err);
    sm_status status = cli_parse(verb, argc, argv, &call, err);
    if (!status && call.common.help) status = answer_help(p, cli_verb_word(verb), err);
    else if (!status) status = answer_verb(p, &call, err);
    sm_arena_free(call.arena);
    return status;
}

static sm_status run(const cli_program *p, int argc, char **argv, sm_error *err) {
    const char *name = argv[1];
    if (strcmp(name, "help") == 0) return answer_help(p, argc > 2 ? argv[2] : NULL, err);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return answer_help(p, NULL, err);
    if (strcmp(name, "--version") == 0) {
        const char *text = "scalemodel " SM_VERSION "\n";
        return cli_write_stdout(text, strlen(text), err);
    }
    if (strcmp(name, "completion") == 0) return cli_completion(p, argc - 2, argv + 2, err);
    const cli_verb *verb = cli_find_verb(p, name, err);
    if (!verb) return SM_USAGE;
    return run_verb(p, verb, argc - 2, argv + 2, err);
}

int cli_main(const cli_program *p, int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is then a write error, and exit status 4 */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that is larger than `ulimit -f` lets it be */
    if (argc < 2) {
        print_help(p, stderr);
        return SM_USAGE;
    }
    sm_error err = {.status = SM_OK};
    sm_status status = run(p, argc, argv, &err);
    if (status >= SM_USAGE && speaks(p)) cli_show_error(&err);
    return (int)status;
}
