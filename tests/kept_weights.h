/* kept_weights: small models trained on one rank, their weights kept as they are saved, for tests
 * that load them into generators. */
#pragma once
#include <stdio.h>
#include <string.h>

#include "train_plans.h"
#include "unit.h"

enum { MOST_KEPT = 600, NAME = 20 };

typedef struct kept {
    const sm_train_setup *setup;
    int steps, n;
    sm_train_array array[MOST_KEPT];
    char name[MOST_KEPT][NAME];
    double loss;
} kept;

static sm_status keep(sm_train_array *a, void *context, sm_error *err) {
    kept *k = context;
    (void)err;
    if (a->part != SM_TRAIN_VALUE) return SM_OK;
    assert_true(k->n < MOST_KEPT);
    snprintf(k->name[k->n], NAME, "%s", a->name);
    k->array[k->n++] = *a;
    a->data = NULL;
    return SM_OK;
}

static sm_status find(sm_train_array *a, void *context, sm_error *err) {
    const kept *k = context;
    for (int i = 0; i < k->n; i++)
        if (k->array[i].layer == a->layer && strcmp(k->name[i], a->name) == 0) {
            a->data = k->array[i].data;
            return memcmp(k->array[i].size, a->size, (size_t)a->rank * sizeof *a->size)
                       ? sm_fail(err, SM_INTERNAL, "%s has another size", a->name)
                       : SM_OK;
        }
    return sm_fail(err, SM_INTERNAL, "%s of layer %d was not kept", a->name, a->layer);
}

static sm_status train(sm_communicator *world, void *context, sm_error *err) {
    kept *k = context;
    sm_trainer *t = NULL;
    sm_train_result r = {.loss = 0};
    sm_status status = sm_trainer_new(world, k->setup, &t, err);
    for (int i = 0; !status && i < k->steps; i++) status = sm_trainer_step(t, i, &r, err);
    if (!status) status = sm_trainer_gradients(t, k->steps, &r, err);
    if (!status) status = sm_trainer_save(t, keep, k, err);
    k->loss = r.loss;
    sm_trainer_free(t);
    return status;
}

static void expect_ok(sm_status status, const sm_error *err) {
    if (status) fail_msg("%s", err->sentence);
}

static void train_on_one(kept *k, const sm_train_setup *s, int steps) {
    sm_error err = {.status = SM_OK};
    k->setup = s;
    k->steps = steps;
    k->n = 0;
    expect_ok(sm_run_threads(1, train, k, &err), &err);
}

static void drop(kept *k) {
    for (int i = 0; i < k->n; i++) sm_free(k->array[i].data);
    k->n = 0;
}
