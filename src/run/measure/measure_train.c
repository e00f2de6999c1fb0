/* Short trainings, for what ops and steps take where they really run: among each other's arrays,
 * with the blocks made, moved and added about them, and with ranks that wait for each other. */
#include "measure_parts.h"

#include <assert.h>
#include <math.h>

enum { WARM_UP = 3, LEAST_STEPS = 9, MOST_STEPS = 101 };

/* What each step took, step by step. */
typedef struct diary {
    int steps, ops;
    sm_train_row *op; /* [step][SM_MOST_MEASURED_OPS] */
    sm_train_result *result;
    sm_train_row *move; /* [step][SM_COLLECTIVE_COUNT], summed by collective */
    double *room;
    sm_arena *arena; /* of all these */
} diary;

static sm_status new_diary(int steps, diary *d, sm_error *err) {
    size_t n = (size_t)steps;
    *d = (diary){.steps = steps, .arena = sm_arena_new()};
    d->op = sm_arena_array(d->arena, n * SM_MOST_MEASURED_OPS, sizeof *d->op);
    d->result = sm_arena_array(d->arena, n, sizeof *d->result);
    d->move = sm_arena_array(d->arena, n * SM_COLLECTIVE_COUNT, sizeof *d->move);
    d->room = sm_arena_array(d->arena, n, sizeof *d->room);
    if (d->op && d->result && d->move && d->room) return SM_OK;
    sm_arena_free(d->arena);
    return sm_fail_memory(err);
}

static void note_moves(const sm_trainer *t, sm_train_row *sum) {
    sm_train_row row[SM_MOST_TRAIN_ROWS];
    int n = sm_trainer_rows(t, true, false, row, SM_MOST_TRAIN_ROWS);
    for (int i = 0; i < n; i++) {
        sm_train_row *to = &sum[row[i].kind];
        to->seconds += row[i].seconds;
        to->bytes += row[i].bytes;
        to->calls += row[i].calls;
    }
}

/* ---- quartiles ----
 * The lower one: what other programs take of a processor makes steps longer, and most of all the
 * collectives, in which one rank waits for the other that was held up. */

static double quartile_of_ops(const diary *d, int row, bool around) {
    for (int i = 0; i < d->steps; i++) {
        const sm_train_row *x = &d->op[i * SM_MOST_MEASURED_OPS + row];
        d->room[i] = around ? x->around_s : x->seconds;
    }
    return sm_spread_of(d->room, d->steps).low;
}

static void sum_up(const diary *d, sm_measured_training *out) {
    for (int i = 0; i < d->steps; i++) d->room[i] = d->result[i].seconds;
    out->seconds = sm_spread_of(d->room, d->steps);
    out->ops = d->ops;
    assert(d->ops <= SM_MOST_MEASURED_OPS);
    for (int i = 0; i < d->ops; i++) {
        out->op[i] = d->op[i];
        out->op[i].seconds = quartile_of_ops(d, i, false);
        out->op[i].around_s = quartile_of_ops(d, i, true);
    }
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        out->moves[i] = d->move[i].calls;
        out->move_bytes[i] = d->move[i].bytes;
        for (int k = 0; k < d->steps; k++)
            d->room[k] = d->move[k * SM_COLLECTIVE_COUNT + i].seconds;
        out->move_s[i] = sm_spread_of(d->room, d->steps).low;
    }
}

/* ---- a training ---- */

/* As many steps as the slowest rank has time for. */
static sm_status count_steps(sm_communicator *world, double step_s, double budget_s, int *steps,
                             sm_error *err) {
    double sum = step_s;
    sm_status status = sm_run_all_reduce(world, &sum, 1, SM_ELEMENT_F64, err);
    double fitting = sum > 0.0 ? budget_s * world->size / sum : MOST_STEPS;
    *steps = (int)fmax(LEAST_STEPS, fmin(fitting, MOST_STEPS));
    return status;
}

static sm_status train(sm_communicator *world, sm_trainer *t, double budget_s,
                       sm_measured_training *out, sm_error *err) {
    sm_train_result result = {.seconds = 0};
    sm_status status = SM_OK;
    int steps = 0;
    diary d;
    for (int i = 0; !status && i < WARM_UP; i++) status = sm_trainer_step(t, i, &result, err);
    if (!status) status = count_steps(world, result.seconds, budget_s, &steps, err);
    if (!status) status = new_diary(steps, &d, err);
    if (status) return status;
    /* Rows stand in the same order in every step. */
    status = SM_OK;
    for (int i = 0; !status && i < d.steps; i++) {
        status = sm_trainer_step(t, WARM_UP + i, &d.result[i], err);
        d.ops =
            sm_trainer_rows(t, false, false, d.op + i * SM_MOST_MEASURED_OPS, SM_MOST_MEASURED_OPS);
        note_moves(t, d.move + i * SM_COLLECTIVE_COUNT);
    }
    if (!status) sum_up(&d, out);
    sm_arena_free(d.arena);
    return status;
}

sm_status measure_trainings(sm_communicator *world, const sm_measure_job *job, sm_error *err) {
    enum { LONGER = 6 }; /* a step holds many ops */
    sm_status status = SM_OK;
    sm_measured_training *found = sm_calloc(1, sizeof *found);
    if (!found) return sm_fail_memory(err);
    for (int i = 0; !status && i < job->trainings; i++) {
        sm_trainer *t = NULL;
        status = sm_trainer_new(world, &job->training[i], &t, err);
        if (!status) status = train(world, t, LONGER * job->budget_s, found, err);
        sm_trainer_free(t);
        if (!status && world->rank == 0) job->out->training[job->out->trainings++] = *found;
    }
    sm_free(found);
    return status;
}
