/* An array as tensors of a checkpoint: names, shapes, and where each element lies. */
#include "train_checkpoint.h"
#include <string.h>

/* Beside a matrix X.weight PEFT calls those of an adapter base_model.model.X.lora_A.weight, [rank,
 * in], and lora_B, [out, rank]; here the rank is the last dimension of both. */
static sm_status adapter_place(const sm_train_array *a, sm_weight_place *p, sm_error *err) {
    const bool second = a->adapter == SM_ADAPTER_B, counted = p->counted >= 0;
    char *last = counted ? p->behind : p->name, whole[CHECKPOINT_NAME_BYTES];
    size_t room = counted ? sizeof p->behind : sizeof p->name, n = strlen(last), other = 1;
    if (!p->alone || p->counted > 0)
        return sm_fail(
            err, SM_BAD_INPUT,
            "%s is no tensor of its own in a checkpoint, and an adapter beside a part of "
            "one has no name there",
            p->name);
    if (n > 7 && strcmp(last + n - 7, ".weight") == 0) n -= 7;
    int length =
        snprintf(whole, sizeof whole, "%.*s.lora_%c.weight", (int)n, last, second ? 'B' : 'A');
    if ((size_t)length < room) memcpy(last, whole, (size_t)length + 1);
    size_t before = (size_t)snprintf(whole, sizeof whole, "base_model.model.%s", p->name);
    if ((size_t)length >= room || before >= sizeof p->name)
        return sm_fail(err, SM_BAD_INPUT, "the name of an adapter beside %s is too long", p->name);
    memcpy(p->name, whole, before + 1);
    size_t rank = a->size[a->rank - 1];
    for (int d = a->rank - 2; d > p->counted; other *= a->size[d--])
        p->stride[d] = other * (second ? rank : 1);
    p->stride[a->rank - 1] = second ? 1 : other;
    p->rank = 2;
    p->shape[0] = second ? other : rank;
    p->shape[1] = second ? rank : other;
    return SM_OK;
}

sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, int number,
                             checkpoint_form *f, sm_error *err) {
    *f = (checkpoint_form){.array = a, .number = number, .slices = 1, .numbers = 1};
    sm_status status =
        sm_model_weight_place(model, a->lines, a->array, a->layer, number, &f->place, err);
    if (!status && a->adapter) status = adapter_place(a, &f->place, err);
    if (!status && f->place.counted >= 0) f->slices = a->size[f->place.counted];
    for (int d = 0; d < a->rank; d++)
        if (d != f->place.counted) f->numbers *= a->size[d];
    return status;
}

void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name) {
    static const char *const parts[] = {"", "optimizer.first.", "optimizer.second."};
    const sm_weight_place *p = &f->place;
    if (p->counted < 0)
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s", parts[f->array->part], p->name);
    else
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s%zu%s", parts[f->array->part], p->name, slice,
                 p->behind);
}

void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t) {
    t->rank = f->place.rank;
    memcpy(t->shape, f->place.shape, (size_t)t->rank * sizeof *t->shape);
}

size_t checkpoint_span(const checkpoint_form *f, const size_t *from, const size_t *count,
                       size_t *first) {
    size_t last = *first = f->place.offset;
    for (int d = 0; d < f->array->rank; d++) {
        if (d == f->place.counted) continue;
        *first += from[d] * f->place.stride[d];
        last += (from[d] + count[d] - 1) * f->place.stride[d];
    }
    return last - *first + 1;
}

size_t checkpoint_dims_of(const checkpoint_form *f, const size_t *count, sm_copied *dim) {
    size_t stride = 1, slice = 0;
    for (int d = f->array->rank - 1; d >= 0; stride *= count[d--]) {
        bool counted = d == f->place.counted;
        dim[d] = (sm_copied){counted ? 1 : count[d], f->place.stride[d], stride};
        if (counted) slice = stride;
    }
    return slice;
}
