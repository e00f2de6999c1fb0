/* A training row: its model, machine and plan priced as `train --plan` prices them. */
#include <string.h>

#include "truth_parts.h"

struct truth_training {
    const sm_truth_row *row;
    row_models *models;
    const sm_model *model;
    sm_system system;
    sm_plan plan;
    sm_software_memory held; /* by its software, with the gate of the row */
    char why[160];
};

static bool is_of_runtime(const truth_training *t) {
    return strcmp(sm_truth_software(t->row), SM_TRUTH_RUN_SOFTWARE) == 0;
}

/* The job as the row states it, priced as its software runs it; constants NULL: the chip's. */
static sm_status borrow(const truth_training *t, const sm_calibration *c, sm_train **out,
                        sm_error *err) {
    const sm_training_row *r = &t->row->of.training;
    const sm_job job = {.size = sizeof(sm_job),
                        .model = t->model,
                        .system = &t->system,
                        .batch_tokens = r->global_batch_sequences * r->seq_len,
                        .seq = r->seq_len};
    sm_status s = row_train_borrow(&job, out, err);
    if (s) return s;
    const sm_train_software software = sm_train_runtime_of(&t->plan);
    if (is_of_runtime(t)) sm_train_set_software(*out, &software);
    sm_train_set_software_memory(*out, &t->held);
    sm_train_set_calibration(*out, c);
    return SM_OK;
}

/* Programs of the runtime are of no use to other software. */
static void give_back(const truth_training *t, sm_train *train) {
    if (is_of_runtime(t)) sm_train_free(train);
    else row_train_return(t->model, train);
}

sm_status truth_training_new(const sm_truth_row *row, row_models *models, const sm_chip *chip,
                             truth_training **out, const char **why, sm_error *err) {
    const sm_training_row *r = &row->of.training;
    truth_training *t = sm_malloc(sizeof *t);
    *out = t;
    if (!t) return sm_fail_memory(err);
    memset(t, 0, sizeof *t);
    t->row = row;
    t->models = models;
    truth_training_held(t, sm_software_memory_of(sm_truth_software(row), chip, truth_month(r)));
    if (!truth_model(r, models, &t->model, why) || !truth_system(row, chip, &t->system, why) ||
        !truth_plan(r, t->model, t->system.chips, &t->plan, why))
        return *why ? SM_OK : sm_fail_memory(err);
    sm_train *train;
    sm_status s = borrow(t, NULL, &train, err);
    give_back(t, train);
    if (s != SM_BAD_INPUT) return s;
    snprintf(t->why, sizeof t->why, "%.150s", err ? err->sentence : "the job is not possible");
    *why = t->why;
    return SM_OK;
}

const sm_model *truth_training_model(const truth_training *t) { return t->model; }

void truth_training_free(truth_training *t) {
    if (!t) return;
    row_models_drop(t->models, t->model);
    sm_free(t);
}

void truth_training_held(truth_training *t, const sm_software_memory *held) {
    t->held = *held;
    t->held.experts_in_order |= t->row->of.training.in_order;
}

void truth_training_predict(truth_training *t, const sm_calibration *c, sm_prediction *out) {
    sm_price_of_plan price;
    sm_error err = {0};
    sm_train *train;
    sm_status s = borrow(t, c, &train, &err);
    if (!s) s = sm_train_price(train, &t->plan, &price, &err);
    give_back(t, train);
    if (s) {
        snprintf(t->why, sizeof t->why, "%.150s", err.sentence);
        out->unknown = t->why;
        out->out_of_memory = err.status == SM_INTERNAL;
        return;
    }
    out->lower_s = price.lower_s;
    out->expected_s = price.expected_s;
    out->upper_s = price.upper_s;
    out->fits = price.fits;
    out->memory = price.memory;
    out->plan = t->plan;
}

sm_status truth_training_why(truth_training *t, const sm_calibration *c, sm_arena *arena,
                             sm_why **why, sm_error *err) {
    sm_plan_detail detail = {.why = NULL};
    sm_train *train;
    *why = NULL;
    sm_status s = borrow(t, c, &train, err);
    if (!s) s = sm_train_detail(train, &t->plan, arena, &detail, err);
    give_back(t, train);
    if (!s) *why = detail.why;
    return s == SM_INTERNAL ? s : SM_OK;
}
