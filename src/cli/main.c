/* main: choose the verb, let it fill a report, show the report or the error, and turn the status
 * into the exit code. */
#include "answer.h"
#include "pages.h"
#include "verbs.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SCALEMODEL_VERSION "0.1.0"

/* One row per verb, in the order help shows them. */
static const cli_verb *const verbs[] = {
    &cli_chip,  &cli_model, &cli_roofline, &cli_matmul,   &cli_collective,
    &cli_train, &cli_serve, &cli_simulate, &cli_validate, &cli_calibrate,
};
enum { VERB_COUNT = sizeof verbs / sizeof verbs[0], MAX_VERB_NAMES = VERB_COUNT + 3 };

static const cli_verb *find_verb(const char *name) {
    for (int i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
    return NULL;
}

static sm_status fail_unknown_verb(const char *name, sm_error *err) {
    const char *names[MAX_VERB_NAMES];
    int n = 0;
    while (n < VERB_COUNT) {
        names[n] = verbs[n]->name;
        n++;
    }
    names[n++] = "help";
    names[n++] = "--help";
    names[n++] = "--version";
    const char *near = sm_nearest(name, strlen(name), names, (size_t)n);
    if (near)
        return sm_fail(err, SM_USAGE, "there is no verb '%.80s'; did you mean '%s'?", name, near);
    return sm_fail(err, SM_USAGE, "there is no verb '%.80s'; 'scalemodel help' lists them", name);
}

static void print_help(FILE *out) {
    fputs("usage: scalemodel VERB [ARGUMENTS] [OPTIONS]\n\n"
          "How to scale a Transformer: what bounds it on a chip and on many, and why.\n\n",
          out);
    for (int i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-12s%s\n", verbs[i]->name, verbs[i]->summary);
    fputs("  help VERB   the options of a verb\n\n"
          "Every verb takes --json, --csv, --explain, -o FILE and --help.\n"
          "Exit status: 0 answered, 1 a negative answer, 2 usage, 3 bad input, 4 I/O,\n"
          "5 internal.\n",
          out);
}

/* Help goes through memory like every answer, so that a full disk or a closed pipe is noticed. */
static sm_status answer_help(const char *name, sm_error *err) {
    const cli_verb *verb = name ? find_verb(name) : NULL;
    if (name && !verb) return fail_unknown_verb(name, err);
    if (verb) cli_help_verb(verb, stdout);
    else print_help(stdout);
    return cli_write_stdout("", 0, err);
}

static sm_status answer_verb(cli_call *call, sm_error *err) {
    sm_report *report = sm_report_new();
    if (!report) return sm_fail_memory(err);
    sm_status answer = call->verb->run(call, report, err);
    sm_status status = answer;
    if (call->common.json && report->why) cli_put_why(report, report->why);
    if (answer == SM_OK || answer == SM_NEGATIVE) status = cli_answer(&call->common, report, err);
    sm_report_free(report);
    return status ? status : answer;
}

static sm_status run_verb(const cli_verb *verb, int argc, char **argv, sm_error *err) {
    cli_call call = {.arena = sm_arena_new()};
    if (!call.arena) return sm_fail_memory(err);
    sm_status status = cli_parse(verb, argc, argv, &call, err);
    if (!status && call.common.help) status = answer_help(verb->name, err);
    else if (!status) status = answer_verb(&call, err);
    sm_arena_free(call.arena);
    return status;
}

static sm_status run(int argc, char **argv, sm_error *err) {
    const char *name = argv[1];
    if (strcmp(name, "help") == 0) return answer_help(argc > 2 ? argv[2] : NULL, err);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return answer_help(NULL, err);
    if (strcmp(name, "--version") == 0) {
        const char *text = "scalemodel " SCALEMODEL_VERSION "\n";
        return cli_write_stdout(text, strlen(text), err);
    }
    const cli_verb *verb = find_verb(name);
    if (!verb) return fail_unknown_verb(name, err);
    return run_verb(verb, argc - 2, argv + 2, err);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is then a write error, and exit status 4 */
    if (argc < 2) {
        print_help(stderr);
        return SM_USAGE;
    }
    sm_error err = {.status = SM_OK};
    sm_status status = run(argc, argv, &err);
    if (status >= SM_USAGE) cli_show_error(&err);
    return (int)status;
}
