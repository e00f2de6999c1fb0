/* Taking a checkpoint: each array is read when it is wanted, and its block cut out of it. */
#include "train_checkpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "train_checkpoint_names.h"

typedef struct taking {
    const sm_model *model;
    const sm_safetensors *file;
    const char *path;
    float *room;  /* of the array at hand */
    float *slice; /* of it, before it is transposed */
} taking;

static void free_room(taking *r) {
    sm_free(r->room);
    sm_free(r->slice);
    r->room = r->slice = NULL;
}

static sm_status take_slice(const taking *r, const checkpoint_form *f, size_t slice, float *to,
                            sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    sm_safetensor wanted = {.rank = 0};
    checkpoint_name_of(f, slice, name);
    checkpoint_shape_of(f, &wanted);
    const sm_safetensor *found = sm_safetensors_find(r->file, name);
    if (!found)
        return sm_fail(err, SM_BAD_INPUT, "%.200s holds no %s, which %s has", r->path, name,
                       r->model->name);
    bool same = found->rank == wanted.rank && found->shape[0] == wanted.shape[0] &&
                (wanted.rank == 1 || found->shape[1] == wanted.shape[1]);
    if (!same)
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s", name,
                       r->path, r->model->name);
    sm_status status = sm_io_safetensor_load(found, f->transposed ? r->slice : to, err);
    if (!status && f->transposed)
        checkpoint_transpose(r->slice, wanted.shape[0], wanted.shape[1], to);
    return status;
}

static sm_status take_array(sm_train_array *a, void *context, sm_error *err) {
    taking *r = context;
    checkpoint_form f;
    sm_status status = checkpoint_form_of(r->model, a, &f, err);
    if (status) return status;
    size_t n = f.rows * f.columns;
    assert(n > 0 && f.slices > 0);
    free_room(r);
    r->room = sm_malloc(f.slices * n * sizeof *r->room);
    r->slice = sm_malloc(n * sizeof *r->slice);
    if (!r->room || !r->slice) return sm_fail_memory(err);
    for (size_t i = 0; !status && i < f.slices; i++)
        status = take_slice(r, &f, i, r->room + i * n, err);
    a->data = r->room;
    return status;
}

/* Names that this model has not: those of more layers, or of a head where the embedding is it. */
static sm_status check_model(const sm_model *m, const sm_safetensors *file, const char *path,
                             sm_error *err) {
    for (size_t i = 0; i < file->n; i++) {
        const char *name = file->tensor[i].name;
        bool more = strncmp(name, "model.layers.", 13) == 0 && strtol(name + 13, NULL, 10) >= m->L;
        bool head = m->tied && strncmp(name, "lm_head.", 8) == 0;
        if (more || head)
            return sm_fail(err, SM_BAD_INPUT, "%.200s holds %.100s, which %s has not", path, name,
                           m->name);
    }
    return SM_OK;
}

sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err) {
    taking r = {.model = model, .file = file, .path = path};
    sm_status status = check_model(model, file, path, err);
    if (!status) status = sm_trainer_load(t, take_array, &r, err);
    free_room(&r);
    if (!status) sm_trainer_set_updates(t, file->steps);
    return status;
}

sm_status train_checkpoint_take_weights(sm_generator *g, const sm_model *model,
                                        const sm_safetensors *file, const char *path,
                                        sm_error *err) {
    taking r = {.model = model, .file = file, .path = path};
    sm_status status = check_model(model, file, path, err);
    if (!status) status = sm_generator_load(g, take_array, &r, err);
    free_room(&r);
    return status;
}
