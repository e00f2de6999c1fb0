/* One question of a sweep: a command line of its verb, which that verb reads and answers. */
#include "sweep.h"
#include <stdlib.h>

enum { MOST_WORDS = CLI_MAX_POSITIONALS + 2 * SWEEP_MOST_AXES + 8 };

typedef struct asking {
    const sweep *s;
    sm_arena *arena;
    const char *value[SWEEP_MOST_AXES];
    char *word[MOST_WORDS + 1];
    int words;
    const char *plan, *machine; /* of the question; NULL: none */
    bool failed;
} asking;

static void say(asking *a, const char *text) {
    char *word = sm_arena_copy(a->arena, text, strlen(text));
    a->failed = a->failed || !word;
    a->word[a->words++] = word;
}

/* "fsdp=8,tensor=4" */
static void join(asking *a, const char **list, const char *name, const char *value) {
    *list =
        sm_arena_printf(a->arena, "%s%s%s=%s", *list ? *list : "", *list ? "," : "", name, value);
    a->failed = a->failed || !*list;
}

static bool says(const sweep *s, const char *option) {
    size_t n = strlen(option);
    for (int i = 0; i < s->words; i++)
        if (strncmp(s->word[i], option, n) == 0 && (!s->word[i][n] || s->word[i][n] == '='))
            return true;
    return false;
}

static void say_axis(asking *a, const sweep_axis *axis, const char *value) {
    char option[64];
    snprintf(option, sizeof option, "--%s", axis->name);
    switch (axis->place) {
    case SWEEP_ARGUMENT: return; /* said first */
    case SWEEP_PLAN: join(a, &a->plan, axis->name, value); return;
    case SWEEP_MACHINE: join(a, &a->machine, axis->name, value); return;
    case SWEEP_FLAG:
        if (strcmp(value, "off") != 0) say(a, option);
        return;
    case SWEEP_OPTION: say(a, option); say(a, value);
    }
}

static void say_question(asking *a, int64_t row) {
    const sweep *s = a->s;
    bool threads = false;
    for (int i = s->axes; i-- > 0; row /= s->axis[i].n)
        a->value[i] = s->axis[i].value[row % s->axis[i].n];
    a->plan = s->plan;
    for (int i = 0; i < s->axes; i++)
        if (s->axis[i].place == SWEEP_ARGUMENT) say(a, a->value[i]);
    for (int i = 0; i < s->words; i++) say(a, s->word[i]);
    for (int i = 0; i < s->axes; i++) {
        say_axis(a, &s->axis[i], a->value[i]);
        threads = threads || strcmp(s->axis[i].key, "threads") == 0;
    }
    if (a->plan) {
        say(a, "--plan");
        say(a, a->plan);
    }
    if (s->system_file && !says(s, "--system")) {
        say(a, "--system");
        say(a, s->system_file);
    }
    /* the questions themselves are spread over the threads */
    if (!cli_own_option(s->verb, "threads") || threads || says(s, "--threads")) return;
    say(a, "--threads");
    say(a, "1");
}

/* One file for many answers would hold the last alone. */
static sm_status check_question(const cli_call *call, sm_error *err) {
    const cli_common *c = &call->common;
    const char *what = c->json      ? "json"
                       : c->csv     ? "csv"
                       : c->output  ? "output"
                       : c->explain ? "explain"
                       : c->help    ? "help"
                                    : NULL;
    const cli_option *o = call->verb->about->options;
    for (int i = 0; o[i].name; i++)
        if (call->given[i] && (o[i].kind == CLI_OUTPUT || strcmp(o[i].name, "emit") == 0))
            what = o[i].name;
    if (!what) return SM_OK;
    return sm_fail(err, SM_USAGE, "--%s is of one answer; options of the sweep stand before '%s'",
                   what, call->verb->about->name);
}

/* ---- cells ---- */

/* How far a path leads into data: where it ends, and what is left of it. */
typedef struct walk {
    const sm_data *at; /* NULL: there is no data */
    const char *left;  /* "": all of it was found */
} walk;

/* "step_time_s.expected", "plans.0.mfu" */
static walk walk_to(const sm_data *data, const char *path) {
    while (data && *path) {
        const size_t n = strcspn(path, ".");
        const sm_data *child = NULL;
        if (data->kind == SM_DATA_ARRAY || data->kind == SM_DATA_OBJECT) child = data->first;
        long left = strtol(path, NULL, 10);
        if (data->kind == SM_DATA_ARRAY)
            while (child && left-- > 0) child = child->next;
        else
            while (child && !(strncmp(child->key, path, n) == 0 && !child->key[n]))
                child = child->next;
        if (!child) break;
        data = child;
        path += n + (path[n] == '.');
    }
    return (walk){data, path};
}

/* Of the best that was found, else of the first record, else of the answer. */
static walk column_of(const sm_report *r, const char *path) {
    const sm_data *best = sm_data_get(r->data, "best");
    if (!best && r->records) best = r->records->first;
    const walk first = walk_to(best, path), other = walk_to(r->data, path);
    return first.at && strlen(first.left) <= strlen(other.left) ? first : other;
}

static sm_status refuse_column(const sweep *s, int column, walk w, const sm_report *r,
                               sm_arena *arena, sm_error *err) {
    enum { MOST_KEYS = 128 };
    const char *names[MOST_KEYS];
    const bool whole = w.left == s->column[column]; /* then it may be of the answer, too */
    const sm_data *among[] = {w.at, whole ? r->data : NULL};
    const size_t length = strcspn(w.left, "."), from = (size_t)(w.left - s->column[column]);
    size_t n = 0, offset = 0;
    for (size_t i = 0; i < sizeof among / sizeof *among; i++)
        for (const sm_data *d = among[i] ? among[i]->first : NULL; d && n < MOST_KEYS; d = d->next)
            names[n++] = d->key;
    for (int i = 0; i < column; i++) offset += strlen(s->column[i]) + 1;
    const char *near = sm_nearest(w.left, length, names, n);
    const char *all =
        sm_arena_printf(arena, "%.*s%s", (int)from, s->column[column], near ? near : "");
    if (!all) return sm_fail_memory(err);
    return sm_fail_at(err, &s->asked, (sm_span){offset + from, length},
                      "%s answers with no such key%s%s%s", s->verb->about->name,
                      near ? "; did you mean " : "; its --json shows them", near ? all : "",
                      near ? "?" : "");
}

/* A key that is no key is a slip; what a list is too short for, or is null, is none. */
static sm_status check_columns(const sweep *s, const sm_report *r, sm_arena *arena, sm_error *err) {
    for (int i = 0; i < s->columns; i++) {
        const walk w = column_of(r, s->column[i]);
        if (*w.left && w.at && w.at->kind == SM_DATA_OBJECT)
            return refuse_column(s, i, w, r, arena, err);
    }
    return SM_OK;
}

static void put_data(FILE *out, const sm_data *data) {
    char number[64];
    if (!data) return;
    if (data->kind == SM_DATA_STRING) fputs(data->string, out);
    if (data->kind == SM_DATA_BOOL) fputs(data->truth ? "true" : "false", out);
    if (data->kind == SM_DATA_NUMBER)
        fputs(sm_format_exact(number, sizeof number, data->number), out);
}

static void put_cells(const asking *a, const sm_report *r, sm_status status, const sm_error *why,
                      FILE *out) {
    const sweep *s = a->s;
    for (int i = 0; i < s->axes; i++) fprintf(out, "%s%c", a->value[i], 0);
    fprintf(out, "%s%c", status == SM_OK ? "yes" : status == SM_NEGATIVE ? "no" : "refused", 0);
    for (int i = 0; i < s->columns; i++) {
        const walk w = column_of(r, s->column[i]);
        if (status <= SM_NEGATIVE && !*w.left) put_data(out, w.at);
        fputc(0, out);
    }
    const sm_data *reason = sm_data_get(r->data, "reason");
    if (status == SM_NEGATIVE && reason) put_data(out, reason);
    else if (status == SM_NEGATIVE) fputs("does not fit", out);
    else if (status) fputs(why->sentence, out);
    fputc(0, out);
}

static sm_status answer(asking *a, int64_t row, sm_report *r, char **cells, sm_error *err) {
    cli_call *call = sm_arena_alloc(a->arena, sizeof *call);
    sm_error refused = {.status = SM_OK};
    sm_memory_stream memory;
    say_question(a, row);
    if (!call || a->failed) return sm_fail_memory(err);
    *call = (cli_call){.arena = a->arena, .argv = a->word, .watch = &a->s->watch};
    call->machine = a->machine;
    call->memo = a->s->memo;
    call->brief = a->s->brief;
    sm_status status = cli_parse(a->s->verb, a->words, a->word, call, &refused);
    if (!status) status = check_question(call, &refused);
    if (!status) status = a->s->verb->run(call, r, &refused);
    if (status <= SM_NEGATIVE && r->out_of_memory) status = sm_fail_memory(&refused);
    if (status > SM_NEGATIVE && status != SM_BAD_INPUT) {
        *err = refused;
        return status;
    }
    if (!cells) return status ? SM_OK : check_columns(a->s, r, a->arena, err);
    FILE *out = sm_memory_stream_open(&memory);
    if (!out) return sm_fail_memory(err);
    put_cells(a, r, status, &refused, out);
    status = sm_memory_stream_close(&memory, out, SM_OK, err);
    *cells = memory.text;
    return status;
}

sm_status sweep_ask(const sweep *s, int64_t row, char **cells, sm_error *err) {
    asking a = {.s = s, .arena = sm_arena_new()};
    sm_report *r = sm_report_new();
    if (cells) *cells = NULL;
    sm_status status = a.arena && r ? answer(&a, row, r, cells, err) : sm_fail_memory(err);
    sm_report_free(r);
    sm_arena_free(a.arena);
    return status;
}
