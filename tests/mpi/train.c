/* The plans of tests/train_plans.h on processes of MPI: those of as many ranks as there are, dense
 * and with experts, each against one rank's losses, step by step, and against the bytes predicted;
 * and plans drawn for small models of all families (tests/drawn_plans.h): MATRIX of each, or one of
 * every third.
 * usage: mpirun -n RANKS train [EVERY FIRST]: every second plan, say, from the first or second */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drawn_plans.h"

/* Fewer steps than on threads: ranks here wait for each other on shared cores. */
enum { STEPS = 3 };

typedef struct tally {
    int every, first; /* the plans to run */
    int met;          /* plans of so many ranks */
    int plans, wrong;
} tally;

/* One rank alone, made by rank 0 while the others wait for it in the first plan. */
static sm_status run_alone(const sm_train_setup *setup, train_curve *one, sm_error *err) {
    sm_communicator *self;
    sm_status status = sm_communicator_self(&self, err);
    if (status) return status;
    *one = (train_curve){.setup = setup, .steps = STEPS};
    status = train_curve_run(self, one, err);
    one->setup = NULL;
    sm_communicator_free(self);
    return status;
}

static sm_status curve_of_one(train_kind kind, int layers, train_curve *one, sm_error *err) {
    sm_model model = train_model(kind, layers);
    sm_train_setup setup = train_setup_of(&model);
    return run_alone(&setup, one, err);
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

/* ---- plans drawn for every family ---- */

static sm_status run_drawn(sm_communicator *world, const drawn_model *m, const char *words,
                           sm_arena *arena, tally *all, sm_error *err) {
    const train_plan named = {.words = words};
    sm_train_setup setup;
    sm_plan plan;
    sm_error odd;
    if (drawn_setup_of(m, words, arena, &plan, &setup, &odd)) return SM_OK; /* refused */
    if (sm_train_setup_ranks(&setup) != world->size) return SM_OK;
    if (all->met++ % all->every != all->first) return SM_OK;
    train_curve one = {.steps = 0}, c = {.setup = &setup, .steps = STEPS};
    sm_status status = train_curve_run(world, &c, err);
    /* what its price would have refused, or the lowerings alone show: on every rank alike */
    if (status == SM_BAD_INPUT && !strstr(err->sentence, "diverged")) {
        err->status = SM_OK;
        return SM_OK;
    }
    const sm_train_setup alone = drawn_reference(m, &setup);
    sm_train_setup exact;
    train_curve precise = {.steps = 0};
    if (!status && world->rank == 0) status = run_alone(&alone, &one, err);
    if (!status && world->rank == 0 && drawn_exact(&alone, &exact)) {
        status = run_alone(&exact, &precise, err);
        one.rounding = train_norms_apart(&one, &precise);
    }
    if (status || world->rank) return status;
    all->plans++;
    all->wrong += train_curve_compare(&named, &one, &c);
    return SM_OK;
}

static sm_status run_families(sm_communicator *world, tally *all, sm_error *err) {
    static drawn_model model[DRAWN_MODELS];
    const char *more = getenv("MATRIX");
    int models = drawn_models(model, DRAWN_MODELS), each = more ? atoi(more) : 1;
    sm_status status = models > 0 ? SM_OK : sm_fail(err, SM_INTERNAL, "there are no models");
    sm_rng rng = {22};
    for (int i = 0; !status && i < models * each; i += more ? 1 : 3) {
        char words[DRAWN_WORDS];
        sm_arena *arena = sm_arena_new();
        if (!arena) return sm_fail_memory(err);
        draw_training(&model[i / each].model, &rng, words);
        status = run_drawn(world, &model[i / each], words, arena, all, err);
        sm_arena_free(arena);
    }
    return status;
}

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    tally *all = context;
    sm_status status = SM_OK;
    for (int kind = 0; !status && kind < TRAIN_KINDS; kind++)
        status = run_kind(world, (train_kind)kind, all, err);
    if (!status) status = run_families(world, all, err);
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
