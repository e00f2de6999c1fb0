/* Measuring on ranks: what is timed when, and how a timing is repeated. */
#include "measure_parts.h"

#include <math.h>

enum { LEAST_REPEATS = 5 };

/* ---- repeats ---- */

static sm_status call_once(sm_communicator *world, const timed_call *timed, double *seconds,
                           sm_error *err) {
    sm_status status = sm_run_barrier(world, err);
    if (status) return status;
    double begun_s = sm_clock_s();
    status = timed->call(timed->state, err);
    *seconds = sm_clock_s() - begun_s;
    if (timed->undo) timed->undo(timed->state);
    return status;
}

/* Of each of n times, that of the slowest rank. */
static sm_status slowest_of(sm_communicator *world, double *seconds, int n, sm_error *err) {
    size_t ranks = (size_t)world->size, count = (size_t)n;
    double *all = sm_calloc(ranks * count, sizeof *all);
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(world, seconds, count * sizeof *seconds, all, err);
    for (size_t i = 0; !status && i < ranks * count; i++)
        seconds[i % count] = fmax(seconds[i % count], all[i]);
    sm_free(all);
    return status;
}

/* The first call warms up, the second tells how often the budget lets us call: all ranks count the
 * same, that of the slowest. */
static sm_status count_repeats(sm_communicator *world, const sm_measure_job *job,
                               const timed_call *timed, int *repeats, sm_error *err) {
    double seconds = 0.0;
    sm_status status = call_once(world, timed, &seconds, err);
    if (!status) status = call_once(world, timed, &seconds, err);
    if (!status) status = slowest_of(world, &seconds, 1, err);
    double fitting = seconds > 0.0 ? job->budget_s / seconds : job->most_repeats;
    *repeats = (int)fmax(LEAST_REPEATS, fmin(fitting, job->most_repeats));
    return status;
}

sm_status measure_repeatedly(sm_communicator *world, const sm_measure_job *job,
                             const timed_call *timed, sm_spread *out, sm_error *err) {
    int repeats = 0;
    sm_status status = count_repeats(world, job, timed, &repeats, err);
    if (status) return status;
    double *seconds = sm_calloc((size_t)repeats, sizeof *seconds);
    if (!seconds) return sm_fail_memory(err);
    for (int i = 0; !status && i < repeats; i++) status = call_once(world, timed, &seconds[i], err);
    if (!status) status = slowest_of(world, seconds, repeats, err);
    for (int i = 0; i < repeats; i++) seconds[i] /= timed->times;
    *out = sm_spread_of(seconds, repeats);
    sm_free(seconds);
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
    return status;
}
