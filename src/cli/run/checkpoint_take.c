/* Taking a checkpoint: each array is read when it is wanted, and its block cut out of it. */
#include "train_checkpoint.h"
#include "named.h"
#include <stdlib.h>
#include <string.h>

typedef struct taking {
    const sm_model *model;
    const sm_safetensors *file;
    const char *path;
    bool begins;  /* a training: adapters that are not there stay as they are */
    bool merges;  /* adapters are added to the weights beside which they stand */
    int adapters; /* that were there */
    /* Of the part of the array at hand, and of the elements of a tensor that it lies among: these
     * and their scales. */
    float *room, *scale_room;
    float *slice, *scales;
    size_t first, n;
} taking;

static void free_room(taking *r) {
    sm_free(r->room);
    sm_free(r->scale_room);
    sm_free(r->slice);
    sm_free(r->scales);
    r->room = r->scale_room = r->slice = r->scales = NULL;
}

/* Is it of this shape, but for dimensions of 1? */
static bool same_shape(const sm_safetensor *a, const sm_safetensor *b) {
    int i = 0, k = 0;
    for (;; i++, k++) {
        while (i < a->rank && a->shape[i] == 1) i++;
        while (k < b->rank && b->shape[k] == 1) k++;
        if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
        if (a->shape[i] != b->shape[k]) return false;
    }
}

static const char *const behind[] = {"_scale_inv", "_scale", ".SCB"};

bool train_checkpoint_stores(const sm_safetensors *file, sm_dtype type) {
    for (size_t i = 0; i < file->n; i++) {
        bool packed = type == SM_MXFP4 && ends_with(file->tensor[i].name, "_blocks");
        if (packed || file->tensor[i].type == type) return true;
    }
    return false;
}

bool train_checkpoint_scales_rows(const sm_safetensors *file) {
    for (size_t i = 0; i < file->n; i++) {
        const sm_safetensor *t = &file->tensor[i];
        size_t numbers = 1;
        for (int d = 0; d < t->rank; d++) numbers *= t->shape[d];
        bool rows = numbers > 1 && (t->rank < 2 || t->shape[1] == 1);
        for (int form = 0; rows && form < 3; form++)
            if (ends_with(t->name, behind[form])) return true;
    }
    return false;
}

/* Scales of numbers of 8 bits beside their tensor: of blocks of 128 x 128 (DeepSeek-V3, arXiv
 * 2412.19437, section 3.3), of rows, or of all; bitsandbytes has rows in units of 1/127. */
static sm_status rescale(taking *r, const sm_safetensor *t, const char *name, sm_error *err) {
    char other[CHECKPOINT_NAME_BYTES + 16];
    const sm_safetensor *s = NULL;
    if (t->type != SM_FP8 && t->type != SM_INT8) return SM_OK;
    size_t length = strlen(name), cut = length > 7 ? length - 7 : 0; /* without ".weight" */
    int form = 0;
    for (; form < 3 && !s; form++) {
        snprintf(other, sizeof other, "%.*s%s", (int)(form == 2 ? cut : length), name,
                 behind[form]);
        s = sm_safetensors_find(r->file, other);
    }
    if (!s) return sm_fail(err, SM_BAD_INPUT, "%.200s holds no scales of %s", r->path, name);
    size_t columns = t->shape[t->rank - 1], rows = 1, wide = s->rank > 1 ? s->shape[1] : 1;
    for (int d = 0; d < t->rank - 1; d++) rows *= t->shape[d];
    size_t high = s->rank ? s->shape[0] : 1, block = 128;
    bool blocks = wide > 1 || (high > 1 && high != rows);
    if (s->rank > 2 ||
        (blocks && (high != (rows + block - 1) / block || wide != (columns + block - 1) / block)) ||
        (!blocks && high != 1 && high != rows))
        return sm_fail(err, SM_BAD_INPUT,
                       "%.200s has scales of %s in another shape than blocks of "
                       "128 x 128, rows or one",
                       r->path, name);
    float *scale = sm_malloc(high * wide * sizeof *scale + 1);
    if (!scale) return sm_fail_memory(err);
    sm_status status = sm_io_safetensor_load(s, scale, err);
    for (size_t i = 0; !status && i < r->n; i++) {
        size_t row = (r->first + i) / columns, column = (r->first + i) % columns;
        size_t at = blocks ? row / block * wide + column / block : high > 1 ? row : 0;
        float by = form == 3 ? scale[at] / 127 : scale[at];
        r->slice[i] *= by;
        if (r->scales) r->scales[i] = by;
    }
    sm_free(scale);
    return status;
}

/* Experts of gpt-oss, [E, in, out], in mxfp4: NAME_blocks [E, out, in / 32, 16] of bytes with two
 * numbers each, and NAME_scales [E, out, in / 32] of powers of two, an output after the other, as a
 * block of E2M1 has them. */
typedef struct packed {
    const sm_safetensor *blocks, *scales;
} packed;

static bool find_packed(const sm_safetensors *file, const char *name, packed *p) {
    char other[CHECKPOINT_NAME_BYTES + 16];
    snprintf(other, sizeof other, "%s_blocks", name);
    p->blocks = sm_safetensors_find(file, other);
    snprintf(other, sizeof other, "%s_scales", name);
    p->scales = sm_safetensors_find(file, other);
    return p->blocks && p->scales;
}

/* An expert, of which the elements of the slice are taken. */
static void take_expert(taking *r, size_t expert, const sm_local_block *b, float *row) {
    size_t out = b->size[0], in = b->size[1];
    for (size_t o = 0; o < out; o++) {
        sm_local_block_read(b, o * in, in, row);
        for (size_t i = 0; i < in; i++) {
            size_t at = (expert * in + i) * out + o;
            if (at < r->first || at - r->first >= r->n) continue;
            r->slice[at - r->first] = row[i];
            if (r->scales)
                r->scales[at - r->first] = sm_local_block_scale(b, (o * in + i) / b->box[1]);
        }
    }
}

static sm_status load_packed(taking *r, const packed *p, const size_t *shape, sm_error *err) {
    const size_t in = shape[1], out = shape[2], group = 32, scales = in * out / group;
    sm_local_block b = {
        .element = SM_ELEMENT_E2M1, .rank = 2, .size = {out, in}, .box = {1, group}};
    if (in % group || p->blocks->bytes != shape[0] * in * out / 2 ||
        p->scales->bytes != shape[0] * scales)
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s",
                       p->blocks->name, r->path, r->model->name);
    unsigned char *data = b.data = sm_malloc(sm_local_block_scales(&b) + scales);
    float *row = sm_malloc(in * sizeof *row);
    sm_status status = b.data && row ? SM_OK : sm_fail_memory(err);
    for (size_t e = r->first / (in * out); !status && e * in * out < r->first + r->n; e++) {
        status = sm_io_safetensor_load_bytes(p->blocks, e * in * out / 2, in * out / 2, data, err);
        if (!status)
            status = sm_io_safetensor_load_bytes(p->scales, e * scales, scales,
                                                 data + sm_local_block_scales(&b), err);
        if (!status) take_expert(r, e, &b, row);
    }
    sm_free(row);
    sm_free(data);
    return status;
}

/* An adapter of a weight [in, out]: y = x (W + A B), A [rank, in] and B [out, rank] in the file. */
typedef struct factor {
    bool has[SM_MAX_RANK]; /* dimensions of the weight, but for that of slices */
    const sm_safetensor *tensor;
    float *value;
} factor;
typedef struct merging {
    size_t rank;
    factor a, b;
} merging;

static void find_dims(const sm_train_array *a, merging *m) {
    for (int i = 0; i < a->lines->lines; i++) {
        const sm_text_line *line = &a->lines->line[i];
        if (line->op != SM_OPERATOR_PRODUCT || line->operands != 2) continue;
        const sm_mention *x = &line->operand[0], *w = x + 1, *y = line->result;
        if (w->array != a->array) continue;
        for (int d = 0; d < a->rank; d++) {
            for (int k = 0; k < a->lines->array[x->array].rank; k++)
                m->a.has[d] |= x->dim[k] == w->dim[d];
            for (int k = 0; k < a->lines->array[y->array].rank; k++)
                m->b.has[d] |= y->dim[k] == w->dim[d];
        }
    }
}

static sm_status read_factor(taking *r, const checkpoint_form *f, size_t slice, sm_adapter which,
                             factor *out, sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    sm_train_array a = *f->array;
    checkpoint_form form;
    size_t numbers = 1;
    a.adapter = which;
    a.size[a.rank = 1] = 1;
    if (checkpoint_form_of(r->model, &a, f->number, &form, NULL)) return SM_OK;
    checkpoint_name_of(&form, slice, name);
    out->tensor = sm_safetensors_find(r->file, name);
    if (!out->tensor) return SM_OK;
    for (int d = 0; d < f->array->rank; d++)
        if (out->has[d] && d != f->place.counted) numbers *= f->array->size[d];
    const size_t *shape = out->tensor->shape;
    if (out->tensor->rank != 2 || shape[which == SM_ADAPTER_A] != numbers)
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s", name,
                       r->path, r->model->name);
    out->value = sm_malloc(shape[0] * shape[1] * sizeof *out->value + 1);
    return out->value ? sm_io_safetensor_load(out->tensor, out->value, err) : sm_fail_memory(err);
}

static sm_status find_adapter(taking *r, const checkpoint_form *f, size_t slice, merging *m,
                              sm_error *err) {
    *m = (merging){.rank = 0};
    if (!r->merges || f->array->adapter) return SM_OK;
    find_dims(f->array, m);
    sm_status status = read_factor(r, f, slice, SM_ADAPTER_A, &m->a, err);
    if (!status) status = read_factor(r, f, slice, SM_ADAPTER_B, &m->b, err);
    if (status || (!m->a.value && !m->b.value)) return status;
    if (!m->a.value || !m->b.value || m->a.tensor->shape[0] != m->b.tensor->shape[1])
        return sm_fail(err, SM_BAD_INPUT, "%.200s holds one half of the adapter of %s", r->path,
                       f->place.name);
    m->rank = m->a.tensor->shape[0];
    r->adapters++;
    return SM_OK;
}

static size_t place_in(const factor *of, const checkpoint_form *f, const size_t *at) {
    size_t place = 0;
    for (int d = 0; d < f->array->rank; d++)
        if (of->has[d] && d != f->place.counted)
            place = place * f->array->size[d] + f->array->from[d] + at[d];
    return place;
}

static void copy_slice(taking *r, const checkpoint_form *f, size_t slice, const merging *m) {
    const sm_train_array *a = f->array;
    sm_copied dim[SM_MAX_RANK];
    size_t apart = checkpoint_dims_of(f, a->count, dim), n = m->rank > 0;
    size_t part = apart ? (slice - a->from[f->place.counted]) * apart : 0;
    float *room = r->room + part, *scale = r->scale_room && r->scales ? r->scale_room + part : NULL;
    sm_copy_strided(dim, a->rank, r->slice, room, sizeof *room);
    if (scale) sm_copy_strided(dim, a->rank, r->scales, scale, sizeof *scale);
    for (int d = 0; d < a->rank; d++) n *= dim[d].count;
    for (size_t i = 0; i < n; i++) {
        size_t at[SM_MAX_RANK], to = 0, left = i;
        for (int d = a->rank - 1; d >= 0; left /= dim[d--].count) {
            at[d] = left % dim[d].count;
            to += at[d] * dim[d].to;
        }
        /* What the adapter adds to an element of the part. */
        size_t in = m->a.tensor->shape[1], column = place_in(&m->a, f, at),
               row = place_in(&m->b, f, at);
        double sum = 0;
        for (size_t k = 0; k < m->rank; k++)
            sum += (double)m->b.value[row * m->rank + k] * (double)m->a.value[k * in + column];
        room[to] += (float)sum;
        if (scale) scale[to] = 0;
    }
}

/* The elements that this rank's part lies among, and no others, are read. */
static sm_status take_slice(taking *r, const checkpoint_form *f, size_t slice, sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    const sm_train_array *a = f->array;
    sm_safetensor wanted = {.rank = 0};
    checkpoint_name_of(f, slice, name);
    checkpoint_shape_of(f, &wanted);
    const sm_safetensor *found = sm_safetensors_find(r->file, name);
    packed p = {.blocks = NULL};
    bool in_blocks = !found && wanted.rank == 3 && find_packed(r->file, name, &p);
    if (!found && !in_blocks)
        return sm_fail(err, SM_BAD_INPUT, "%.200s holds no %s, which %s has", r->path, name,
                       r->model->name);
    if (found && !same_shape(found, &wanted))
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s", name,
                       r->path, r->model->name);
    r->n = checkpoint_span(f, a->from, a->count, &r->first);
    sm_free(r->slice);
    sm_free(r->scales);
    r->scales = a->scaled ? sm_calloc(r->n, sizeof *r->scales) : NULL;
    r->slice = sm_malloc(r->n * sizeof *r->slice);
    if (!r->slice || (a->scaled && !r->scales)) return sm_fail_memory(err);
    sm_status status = in_blocks ? load_packed(r, &p, wanted.shape, err)
                                 : sm_io_safetensor_load_part(found, r->first, r->n, r->slice, err);
    if (!status && found) status = rescale(r, found, name, err);
    merging m = {.rank = 0};
    if (!status) status = find_adapter(r, f, slice, &m, err);
    if (!status) copy_slice(r, f, slice, &m);
    sm_free(m.a.value);
    sm_free(m.b.value);
    return status;
}

/* The place of which the file has the first tensor; of none the first is named. */
static sm_status form_in_file(const taking *r, const sm_train_array *a, checkpoint_form *f,
                              sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    sm_status status = SM_OK;
    for (int i = 0; !status; i++) {
        status = checkpoint_form_of(r->model, a, i, f, i ? NULL : err);
        if (status) break;
        checkpoint_name_of(f, 0, name);
        if (sm_safetensors_find(r->file, name)) return SM_OK;
    }
    return checkpoint_form_of(r->model, a, 0, f, err);
}

static sm_status take_array(sm_train_array *a, void *context, sm_error *err) {
    taking *r = context;
    checkpoint_form f;
    size_t n = 1;
    sm_status status = form_in_file(r, a, &f, err);
    char name[CHECKPOINT_NAME_BYTES];
    if (status) return status;
    checkpoint_name_of(&f, 0, name);
    bool there = sm_safetensors_find(r->file, name) != NULL;
    if (a->adapter && r->begins && !there) return SM_OK;
    r->adapters += a->adapter && there;
    for (int d = 0; d < a->rank; d++) n *= a->count[d];
    free_room(r);
    r->room = sm_malloc(n * sizeof *r->room);
    r->scale_room = a->scaled ? sm_malloc(n * sizeof *r->scale_room) : NULL;
    if (!r->room || (a->scaled && !r->scale_room)) return sm_fail_memory(err);
    int counted = f.place.counted;
    size_t first = counted < 0 ? 0 : a->from[counted];
    size_t slices = counted < 0 ? 1 : a->count[counted];
    for (size_t i = first; !status && i < first + slices; i++) status = take_slice(r, &f, i, err);
    a->data = r->room;
    a->scale = r->scale_room;
    a->cut = true;
    return status;
}

/* Names that this model has not: those of more layers, or of a head where the embedding is it. */
static sm_status check_model(const sm_model *m, const sm_safetensors *file, const char *path,
                             sm_error *err) {
    for (size_t i = 0; i < file->n; i++) {
        const char *name = file->tensor[i].name;
        if (!file->tensor[i].checked) continue; /* other tools keep what we do not run */
        bool more = strncmp(name, "model.layers.", 13) == 0 && strtol(name + 13, NULL, 10) >= m->L;
        bool head = m->tied && strcmp(name, "lm_head.weight") == 0;
        if (more || head)
            return sm_fail(err, SM_BAD_INPUT, "%.200s holds %.100s, which %s has not", path, name,
                           m->name);
    }
    return SM_OK;
}

/* What adapters add would be lost without a word. */
static sm_status check_adapters(const taking *r, sm_error *err) {
    for (size_t i = 0; !r->adapters && i < r->file->n; i++)
        if (strstr(r->file->tensor[i].name, ".lora_A."))
            return sm_fail(
                err, SM_BAD_INPUT,
                "%.200s holds adapters, as %.100s, and nothing here adds them: a plan of "
                "training with lora does",
                r->path, r->file->tensor[i].name);
    return SM_OK;
}

sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err) {
    /* A training that has made a step has moments; weights of another tool, of no step, begin one.
     */
    bool moments = false;
    for (size_t i = 0; i < file->n; i++)
        moments |= strncmp(file->tensor[i].name, "optimizer.", 10) == 0;
    bool begins = file->steps == 0 && !moments;
    taking r = {.model = model, .file = file, .path = path, .begins = begins};
    sm_status status = check_model(model, file, path, err);
    if (!status) status = sm_trainer_load(t, !begins, take_array, &r, err);
    if (!status) status = check_adapters(&r, err);
    free_room(&r);
    if (!status) sm_trainer_set_updates(t, file->steps);
    return status;
}

sm_status train_checkpoint_take_weights(sm_generator *g, const sm_model *model,
                                        const sm_safetensors *file, const char *path,
                                        sm_error *err) {
    taking r = {.model = model, .file = file, .path = path, .merges = true};
    sm_status status = check_model(model, file, path, err);
    if (!status) status = sm_generator_load(g, take_array, &r, err);
    if (!status) status = check_adapters(&r, err);
    free_room(&r);
    return status;
}
