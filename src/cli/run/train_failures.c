#include "run_train.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* "WHEN RANK FILE" */
static const char told[] = "SCALEMODEL_ATTEMPT";
enum { MOST_IN_VAIN = 20 };

static double mtbf_s(const train_run *q) {
    return 3600.0 / (q->given.failures * sm_train_setup_ranks(&q->setup));
}

static sm_status read_notes(const train_run *q, FILE *file, train_note **note, size_t *n,
                            sm_error *err) {
    long bytes = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    if (bytes < 0) return sm_fail(err, SM_IO, "cannot read what attempts noted");
    rewind(file);
    *n = (size_t)bytes / sizeof **note;
    *note = sm_arena_array(q->call->arena, *n + 1, sizeof **note);
    if (!*note) return sm_fail_memory(err);
    *n = fread(*note, sizeof **note, *n, file);
    return SM_OK;
}

static sm_status write_note(FILE *file, const train_note *note, sm_error *err) {
    bool there = fseek(file, 0, SEEK_END) == 0; /* it may have been read */
    if (there && fwrite(note, sizeof *note, 1, file) == 1 && fflush(file) == 0) return SM_OK;
    return sm_fail(err, SM_IO, "cannot note what an attempt does: %s", strerror(errno));
}

/* ---- the attempts ---- */

typedef struct attempts {
    const train_run *q;
    FILE *notes; /* without a name: ranks reach it through this process */
    sm_rng rng;
    double fails_s;
    size_t sealed; /* checkpoints so far */
    int in_vain;   /* attempts since the last one */
} attempts;

static sm_status start_attempt(attempts *a, sm_error *err) {
    int ranks = sm_train_setup_ranks(&a->q->setup);
    char text[128];
    a->fails_s -= mtbf_s(a->q) * log1p(-sm_rng_unit(&a->rng));
    snprintf(text, sizeof text, "%.9f %d /proc/%ld/fd/%d", a->fails_s,
             (int)sm_rng_below(&a->rng, (uint64_t)ranks), (long)getpid(), fileno(a->notes));
    if (setenv(told, text, 1)) return sm_fail_memory(err);
    return ranks_launch(a->q->call, &a->q->given.ranks, ranks, err);
}

/* Did it end because it was told to fail? Then that is noted, and *again. */
static sm_status look_back(attempts *a, bool *again, sm_error *err) {
    train_note *note;
    size_t n, sealed = 0;
    sm_status status = read_notes(a->q, a->notes, &note, &n, err);
    if (status) return status;
    *again = sm_clock_s() >= a->fails_s;
    if (!*again) return SM_OK;
    for (size_t i = 0; i < n; i++) sealed += note[i].event.what == SM_RUN_SAVED;
    a->in_vain = sealed > a->sealed ? 0 : a->in_vain + 1;
    a->sealed = sealed;
    if (a->in_vain >= MOST_IN_VAIN)
        return sm_fail(err, SM_BAD_INPUT,
                       "%d attempts in a row came to no checkpoint: ranks fail once in %.3g s, "
                       "and --every %d steps is too rare",
                       a->in_vain, mtbf_s(a->q), (int)a->q->every);
    if (n) a->fails_s = fmax(a->fails_s, note[n - 1].event.at_s);
    return write_note(a->notes, &(train_note){.event = {SM_RUN_FAILS, a->fails_s, 0}}, err);
}

sm_status train_failures_run(const train_run *q, sm_error *err) {
    attempts a = {.q = q, .notes = tmpfile(), .rng = {q->setup.seed}, .fails_s = sm_clock_s()};
    if (!a.notes) return sm_fail(err, SM_IO, "cannot make a temporary file: %s", strerror(errno));
    bool again;
    sm_status status;
    do {
        again = false;
        *err = (sm_error){.status = SM_OK}; /* what the attempt before said */
        status = start_attempt(&a, err);
        sm_status seen = status > SM_NEGATIVE ? look_back(&a, &again, err) : SM_OK;
        if (seen) status = seen;
        again = again && !seen;
    } while (again);
    fclose(a.notes);
    return status;
}

/* ---- in an attempt ---- */

static sm_status kill_at(train_attempt *a, double when_s, sm_error *err) {
    struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)when_s}};
    at.it_value.tv_nsec = (long)((when_s - floor(when_s)) * 1e9);
    a->armed = timer_create(CLOCK_MONOTONIC, &how, &a->timer) == 0;
    if (a->armed && timer_settime(a->timer, TIMER_ABSTIME, &at, NULL) == 0) return SM_OK;
    return sm_fail(err, SM_INTERNAL, "cannot set a timer: %s", strerror(errno));
}

sm_status train_attempt_read(train_run *q, sm_error *err) {
    train_attempt *a = &q->attempt;
    const char *text = q->given.failures > 0 ? getenv(told) : NULL;
    train_note *note;
    double when_s;
    char path[64];
    int rank;
    size_t n;
    if (!text) return SM_OK;
    a->notes = sscanf(text, "%lf %d %63s", &when_s, &rank, path) == 3 ? fopen(path, "a+") : NULL;
    if (!a->notes) return sm_fail(err, SM_IO, "cannot note an attempt in %s", text);
    sm_status status = read_notes(q, a->notes, &note, &n, err);
    for (size_t i = 0; !status && i < n; i++)
        a->sealed = a->sealed || note[i].event.what == SM_RUN_SAVED;
    /* threads end together, whichever fails */
    bool dies = ranks_are_here() || ranks_number() == rank;
    return !status && dies ? kill_at(a, when_s, err) : status;
}

sm_status train_attempt_note(train_run *q, int rank, train_note note, sm_error *err) {
    note.event.at_s = sm_clock_s();
    return q->attempt.notes && rank == 0 ? write_note(q->attempt.notes, &note, err) : SM_OK;
}

void train_attempt_end(train_run *q, int rank) {
    train_attempt *a = &q->attempt;
    if ((ranks_are_here() && rank) || !a->armed) return;
    timer_delete(a->timer);
    a->armed = false;
}

/* ---- what became of it ---- */

sm_status train_attempts_join(train_run *q, sm_error *err) {
    train_attempt *a = &q->attempt;
    train_note *note;
    size_t n;
    if (!a->notes) return SM_OK;
    sm_status status = read_notes(q, a->notes, &note, &n, err);
    if (status) return status;
    sm_run_event *event = sm_arena_array(q->call->arena, n + 1, sizeof *event);
    if (!event) return sm_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        int step = note[i].steps - 1;
        event[i] = note[i].event;
        if (note[i].event.what != SM_RUN_GOES_ON) continue;
        if (step < q->first) q->first = step;
        if (q->number[step] > 0) a->apart = fmax(a->apart, fabs(note[i].loss - q->loss[step]));
        q->number[step] = note[i].steps;
        q->loss[step] = note[i].loss;
        q->seconds[step] = note[i].seconds;
    }
    a->seen = sm_goodput_of_events(event, n);
    return SM_OK;
}

static void row(sm_report *r, sm_table *table, sm_data *object, const char *name, const char *key,
                double expected_s, double measured_s) {
    sm_put(r, sm_put_object(r, object, key), "expected|measured", expected_s, measured_s);
    sm_page_row(r, table, name, isinf(expected_s) ? "never" : sm_show_seconds(r, expected_s),
                measured_s, prediction_ratio(r, expected_s, measured_s));
}

void train_failures_report(sm_report *r, const train_run *q) {
    const train_attempt *a = &q->attempt;
    const sm_goodput *took = &a->seen.took;
    double step_s = 0;
    if (!a->notes) return;
    for (int i = q->first; i < q->end; i++) step_s += q->seconds[i] / (q->end - q->first);
    double work_s = took->total_s - took->checkpoint_s - took->restart_s - took->lost_s;
    sm_goodput_job job = {.run_s = (q->end - q->first) * step_s,
                          .step_s = step_s,
                          .mtbf_s = mtbf_s(q),
                          .checkpoint_s = a->seen.checkpoint_s,
                          .restart_s = a->seen.restart_s,
                          .interval_s = (double)q->every * step_s};
    sm_goodput g = sm_goodput_of(&job);
    sm_data *object = sm_put_object(r, r->data, "failures");
    sm_table *table = sm_page_table(r, "The run with failures", "<|>expected|>{s}measured|>ratio");
    row(r, table, object, "steps that last", "work_s", job.run_s, work_s);
    row(r, table, object, "checkpoints", "checkpoints_s", g.checkpoint_s, took->checkpoint_s);
    row(r, table, object, "restarts", "restarts_s", g.restart_s, took->restart_s);
    row(r, table, object, "done again", "lost_s", g.lost_s, took->lost_s);
    row(r, table, object, "all", "total_s", g.total_s, took->total_s);
    double expected = job.run_s / g.total_s, measured = work_s / took->total_s;
    sm_put(r, sm_put_object(r, object, "goodput"), "expected|measured", expected, measured);
    sm_put(r, sm_put_object(r, object, "interruptions"), "expected|measured", g.interruptions,
           took->interruptions);
    sm_put(r, object, "mtbf_s|step_s|checkpoint_s|restart_s|loss_apart", job.mtbf_s, step_s,
           job.checkpoint_s, job.restart_s, a->apart);
    sm_report_text(
        r,
        "Goodput %s. 'train --failures' expects %s of steps of %s, checkpoints of %s and "
        "restarts of %s, means of what was measured, and a failure in %s.",
        sm_show_percent(r, measured), sm_show_percent(r, expected), sm_show_seconds(r, step_s),
        sm_show_seconds(r, job.checkpoint_s), sm_show_seconds(r, job.restart_s),
        sm_show_seconds(r, job.mtbf_s));
    sm_report_text(r,
                   "%.0f failure%s came, where %.3g are expected: of so few, what they cost varies "
                   "by %s. Steps "
                   "made again had %s.",
                   took->interruptions, took->interruptions == 1 ? "" : "s", g.interruptions,
                   sm_show_percent(r, 1 / sqrt(fmax(1, g.interruptions))),
                   a->apart > 0 ? sm_textf(r, "losses up to %.2g apart", a->apart)
                                : "the losses they had before");
}
