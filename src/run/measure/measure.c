/* Measuring on ranks: what is timed when, how a timing is repeated, and what other programs took of
 * it. */
#include "measure_parts.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST_REPEATS = 5 };

/* ---- one call ---- */

typedef struct repeat {
    double seconds;  /* of the slowest rank */
    double waited_s; /* of the rank that waited longest for a processor */
} repeat;

/* How long this thread has waited for a processor that other threads had: the second number of
 * Linux' schedstat, in ns. 0 where the system does not tell. */
static double waited_s(void) {
    double run_ns = 0.0, wait_ns = 0.0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (!file) return 0.0;
    if (fscanf(file, "%lf %lf", &run_ns, &wait_ns) != 2) wait_ns = 0.0;
    fclose(file);
    return wait_ns * 1e-9;
}

static sm_status call_once(sm_communicator *world, const timed_call *timed, bool asks, repeat *out,
                           sm_error *err) {
    sm_status status = sm_run_barrier(world, err);
    if (status) return status;
    double before_s = asks ? waited_s() : 0.0;
    double begun_s = sm_clock_s();
    status = timed->call(timed->state, err);
    out->seconds = sm_clock_s() - begun_s;
    out->waited_s = asks ? waited_s() - before_s : 0.0;
    if (timed->undo) timed->undo(timed->state);
    return status;
}

/* Of each of n repeats, the largest over the ranks. */
static sm_status largest_of(sm_communicator *world, repeat *r, int n, sm_error *err) {
    return sm_run_largest(world, &r->seconds, n * (int)(sizeof *r / sizeof r->seconds), err);
}

/* ---- repeats ---- */

/* The first call warms up, the second tells how often the budget lets us call: all ranks count the
 * same, that of the slowest. Asking for the waiting takes 10 us, by which ranks would part before a
 * short call that they make together; such calls are over between two turns of the scheduler. */
static sm_status count_repeats(sm_communicator *world, const sm_measure_job *job,
                               const timed_call *timed, int *repeats, bool *asks, sm_error *err) {
    static const double long_s = 1e-3;
    repeat one = {0.0, 0.0};
    sm_status status = call_once(world, timed, true, &one, err);
    if (!status) status = call_once(world, timed, true, &one, err);
    if (!status) status = largest_of(world, &one, 1, err);
    double fitting = one.seconds > 0.0 ? job->budget_s / one.seconds : job->most_repeats;
    *repeats = (int)fmax(LEAST_REPEATS, fmin(fitting, job->most_repeats));
    *asks = !timed->together || one.seconds > long_s;
    return status;
}

/* By the share of its time that a rank waited. */
SM_ORDER(by_waiting, repeat, SM_BY_KEY(x->waited_s * y->seconds, y->waited_s * x->seconds))

sm_status measure_repeatedly(sm_communicator *world, const sm_measure_job *job,
                             const timed_call *timed, sm_spread *out, sm_error *err) {
    int n = 0;
    bool asks = false;
    assert(timed->times >= 1.0);
    sm_status status = count_repeats(world, job, timed, &n, &asks, err);
    if (status) return status;
    repeat *r = sm_calloc((size_t)n, sizeof *r);
    double *room = sm_calloc((size_t)n, sizeof *room);
    status = r && room ? SM_OK : sm_fail_memory(err);
    for (int i = 0; !status && i < n; i++) status = call_once(world, timed, asks, &r[i], err);
    if (!status) status = largest_of(world, r, n, err);
    for (int i = 0; !status && i < n; i++) r[i].seconds /= timed->times;
    for (int i = 0; !status && i < n; i++) r[i].waited_s /= timed->times;
    /* Ranks that have a processor each were disturbed when they waited for one. More ranks than
     * processors wait for each other, and that is theirs. */
    bool crowded = sysconf(_SC_NPROCESSORS_ONLN) < world->size;
    for (int i = 0; !status && i < n && crowded; i++) r[i].waited_s = 0.0;
    /* Undisturbed repeats, where there are enough. Else, of work that each rank does by itself, all
     * repeats less what was waited; of what ranks do together, where waiting of one may hide behind
     * that of another, the fourth that waited least. Sorts r. */
    if (!status) {
        int kept = 0;
        qsort(r, (size_t)n, sizeof *r, by_waiting);
        double share =
            timed->together ? 0.1 : 0.02; /* a rank that is woken waits a little anyway */
        while (kept < n && r[kept].waited_s <= share * r[kept].seconds) kept++;
        int disturbed = n - kept;
        bool enough = kept >= LEAST_REPEATS;
        if (!enough) kept = timed->together ? (n / 4 > LEAST_REPEATS ? n / 4 : LEAST_REPEATS) : n;
        for (int i = 0; i < kept; i++) {
            bool subtract = !enough && !timed->together;
            room[i] = r[i].seconds - (subtract ? fmin(r[i].waited_s, 0.9 * r[i].seconds) : 0.0);
        }
        sm_spread spread = sm_spread_of(room, kept);
        spread.disturbed = disturbed;
        if (!enough && !timed->together)
            spread.least = spread.low; /* a difference of two clocks can be off */
        *out = spread;
    }
    sm_free(r);
    sm_free(room);
    return status;
}

/* ---- all of it ---- */

sm_status sm_measure_body(sm_communicator *world, void *context, sm_error *err) {
    const sm_measure_job *job = context;
    if (!(job->budget_s >= 0.0) || job->most_repeats < LEAST_REPEATS || job->cached_bytes < 4096 ||
        job->stream_bytes < 4096)
        return sm_fail(err, SM_BAD_INPUT,
                       "a measurement repeats %d times or more, on 4 KiB or more", LEAST_REPEATS);
    if (world->rank == 0) job->out->ranks = world->size;
    sm_status status = measure_streams(world, job, err);
    if (!status) status = measure_matmuls(world, job, err);
    if (!status) status = measure_sends(world, job, err);
    if (!status) status = measure_collectives(world, job, err);
    if (!status) status = measure_trainings(world, job, err);
    return status;
}
