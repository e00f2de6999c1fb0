/* reference_slope: the slope of a training's loss along the direction that follows from the names
 * of weights (scripts/reference-answers.py), or the same sum of the weights themselves. */
#pragma once
#include "reference_weights.h"
#include "scalemodel/run_train.h"

enum { MOST_WEIGHT = 1 << 14 };

typedef struct slope {
    const sm_model *model;
    const sm_safetensors *file;
    sm_trainer *t;
    double sum, loss;
} slope;

/* Of a tensor: the elements that are this array's, or one expert of it. */
static void add_tensor(slope *s, const sm_train_array *array, const sm_weight_place *p,
                       size_t slice, const float *gradient) {
    static float towards[MOST_WEIGHT];
    char name[320];
    size_t n = 1, at[SM_MAX_RANK] = {0};
    for (int d = 0; d < p->rank; d++) n *= p->shape[d];
    assert_true(n <= MOST_WEIGHT);
    if (p->counted < 0) snprintf(name, sizeof name, "direction.%s", p->name);
    else snprintf(name, sizeof name, "direction.%s%zu%s", p->name, slice, p->behind);
    fill(name, p->shape, p->rank, n, towards);
    for (int d = 0; d >= 0;) {
        size_t from = 0, to = p->offset;
        for (d = 0; d < array->rank; d++) {
            from = from * array->size[d] + (d == p->counted ? slice : at[d]);
            if (d != p->counted) to += at[d] * p->stride[d];
        }
        s->sum += (double)gradient[from] * (double)towards[to];
        for (d = array->rank - 1; d >= 0; at[d--] = 0)
            if (d != p->counted && ++at[d] < array->size[d]) break;
    }
}

static sm_status add_array(sm_train_array *array, void *context, sm_error *err) {
    slope *s = context;
    sm_weight_place p;
    sm_train_weight w;
    if (array->part != SM_TRAIN_VALUE) return SM_OK;
    char name[320];
    for (int number = 0;; number++) { /* the one that the checkpoint has */
        sm_status status = sm_model_weight_place(s->model, array->lines, array->array, array->layer,
                                                 number, &p, err);
        if (status) return status;
        if (p.counted < 0) snprintf(name, sizeof name, "%s", p.name);
        else snprintf(name, sizeof name, "%s0%s", p.name, p.behind);
        if (sm_safetensors_find(s->file, name)) break;
    }
    const size_t slices = p.counted < 0 ? 1 : array->size[p.counted];
    for (size_t k = 0; array->data && k < slices; k++) add_tensor(s, array, &p, k, array->data);
    if (array->data) return SM_OK; /* the weight itself */
    /* copies of a tied weight have gradients of their own */
    for (int l = -1; l < s->model->L + s->model->outside; l++)
        for (int i = 0; l != array->layer && sm_trainer_weight(s->t, l, i, &w); i++)
            if (w.first == array->layer && strcmp(w.first_name, array->name) == 0)
                add_tensor(s, array, &p, 0, w.gradient);
    for (int i = 0; sm_trainer_weight(s->t, array->layer, i, &w); i++) {
        if (strcmp(w.name, array->name) != 0) continue;
        for (size_t k = 0; k < slices; k++) add_tensor(s, array, &p, k, w.gradient);
        return SM_OK;
    }
    return sm_fail(err, SM_INTERNAL, "%s is not there", array->name);
}
