/* The plans of tests/train_plans.h on processes of MPI: those of as many ranks as there are, dense
 * and with experts, each against one rank's losses, step by step, and against the bytes predicted.
 * usage: mpirun -n RANKS train [EVERY FIRST]: every second plan, say, from the first or second */
#include <stdio.h>
#include <stdlib.h>

#include "train_plans.h"

/* Fewer steps than on threads: ranks here wait for each other on shared cores. */
enum { STEPS = 3 };

typedef struct tally {
    int every, first; /* the plans to run */
    int met;          /* plans of so many ranks */
    int plans, wrong;
} tally;

/* One rank alone, made by rank 0 while the others wait for it in the first plan. */
static sm_status curve_of_one(train_kind kind, int layers, train_curve *one, sm_error *err) {
    sm_model model = train_model(kind, layers);
    sm_train_setup setup = train_setup_of(&model);
    sm_communicator *self;
    sm_status status = sm_communicator_self(&self, err);
    if (status) return status;
    *one = (train_curve){.setup = &setup, .steps = STEPS};
    status = train_curve_run(self, one, err);
    one->setup = NULL;
    sm_communicator_free(self);
    return status;
}

static sm_status run_plan(sm_communicator *world, const train_plan *plan, train_kind kind,
                          const train_curve *one, tally *all, sm_error *err) {
    static train_job job;
    if (!train_job_of(plan, kind, &job))
        return sm_fail(err, SM_INTERNAL, "no schedule for %s", plan->words);
    if (sm_train_setup_ranks(&job.setup) != world->size) return SM_OK;
    if (all->met++ % all->every != all->first) return SM_OK;
    train_curve c = {.setup = &job.setup, .steps = STEPS};
    sm_status status = train_curve_run(world, &c, err);
    if (status || world->rank) return status;
    all->plans++;
    all->wrong += train_curve_compare(plan, &one[train_plan_layers(plan) > 2], &c);
    return SM_OK;
}

static sm_status run_kind(sm_communicator *world, train_kind kind, tally *all, sm_error *err) {
    train_curve one[2] = {{.steps = 0}}; /* of a shallow model, and of a deeper one */
    sm_status status = SM_OK;
    for (int deep = 0; !status && !world->rank && deep < 2; deep++)
        status = curve_of_one(kind, deep ? 4 : 2, &one[deep], err);
    for (size_t i = 0; !status && i < train_plan_count; i++)
        status = run_plan(world, &train_plans[i], kind, one, all, err);
    return status;
}

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    tally *all = context;
    sm_status status = SM_OK;
    for (int kind = 0; !status && kind < TRAIN_KINDS; kind++)
        status = run_kind(world, (train_kind)kind, all, err);
    if (status || world->rank) return status;
    printf("%d of %d plans as on one rank, on %d ranks of %s\n", all->plans - all->wrong,
           all->plans, world->size, world->backend->name);
    return all->wrong ? sm_fail(err, SM_NEGATIVE, "plans differ") : SM_OK;
}

int main(int argc, char **argv) {
    sm_error err = {.status = SM_OK};
    tally all = {.every = 1};
    if (argc == 3) all = (tally){.every = atoi(argv[1]), .first = atoi(argv[2])};
    if (all.every < 1) return SM_BAD_INPUT;
    return (int)sm_run_mpi(&argc, &argv, run, &all, &err);
}
