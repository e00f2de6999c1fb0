/* Taking a checkpoint: each array is read when it is wanted, and its block cut out of it. */
#include "train_checkpoint.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHECKPOINT_NAME_BYTES = 256 };

/* ---- one array as tensors of a file: one, or one of each expert ---- */

/* The array must outlive the form. */
typedef struct checkpoint_form {
    const sm_train_array *array;
    int number; /* of the places that the family has for it */
    sm_weight_place place;
    size_t slices, numbers; /* numbers of a slice, which is all of a tensor or a part of it */
} checkpoint_form;

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

static sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, int number,
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

static void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name) {
    static const char *const parts[] = {"", "optimizer.first.", "optimizer.second."};
    const sm_weight_place *p = &f->place;
    if (p->counted < 0)
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s", parts[f->array->part], p->name);
    else
        snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s%zu%s", parts[f->array->part], p->name, slice,
                 p->behind);
}

static void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t) {
    t->rank = f->place.rank;
    memcpy(t->shape, f->place.shape, (size_t)t->rank * sizeof *t->shape);
}

/* ---- between the array and its tensors ---- */

/* Some of the elements of a slice: along each dimension of the array so many, from an element on.
 */
typedef struct walk {
    const checkpoint_form *f;
    size_t from[SM_MAX_RANK], count[SM_MAX_RANK], at[SM_MAX_RANK];
} walk;

static size_t element_of(const walk *w) {
    size_t element = w->f->place.offset;
    for (int d = 0; d < w->f->array->rank; d++)
        if (d != w->f->place.counted) element += (w->from[d] + w->at[d]) * w->f->place.stride[d];
    return element;
}

static bool next(walk *w) {
    int d = w->f->array->rank - 1;
    while (d >= 0 && ++w->at[d] == w->count[d]) w->at[d--] = 0;
    return d >= 0;
}

static walk walk_of(const checkpoint_form *f, const size_t *from, const size_t *count,
                    size_t slice) {
    walk w = {.f = f};
    for (int d = 0; d < f->array->rank; d++) {
        bool counted = d == f->place.counted;
        w.from[d] = counted ? slice : from[d];
        w.count[d] = counted ? 1 : count[d];
    }
    return w;
}

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

bool train_checkpoint_scales_rows(const sm_safetensors *file) {
    for (size_t i = 0; i < file->n; i++) {
        const sm_safetensor *t = &file->tensor[i];
        size_t length = strlen(t->name), numbers = 1;
        for (int d = 0; d < t->rank; d++) numbers *= t->shape[d];
        for (int form = 0; form < 3; form++) {
            size_t end = strlen(behind[form]);
            if (length < end || strcmp(t->name + length - end, behind[form]) != 0) continue;
            if (numbers > 1 && (t->rank < 2 || t->shape[1] == 1)) return true;
        }
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

static size_t place_in(const factor *of, const walk *w) {
    size_t at = 0;
    for (int d = 0; d < w->f->array->rank; d++)
        if (of->has[d] && d != w->f->place.counted)
            at = at * w->f->array->size[d] + w->from[d] + w->at[d];
    return at;
}

static float adapted(const merging *m, const walk *w) {
    size_t in = m->a.tensor->shape[1], column = place_in(&m->a, w), row = place_in(&m->b, w);
    double sum = 0;
    for (size_t k = 0; k < m->rank; k++)
        sum += (double)m->b.value[row * m->rank + k] * (double)m->a.value[k * in + column];
    return (float)sum;
}

static void copy_slice(taking *r, walk *w, size_t slice, const merging *m) {
    const checkpoint_form *f = w->f;
    const sm_train_array *a = f->array;
    size_t step[SM_MAX_RANK], stride = 1; /* of the part, to which the slices go */
    for (int d = a->rank - 1; d >= 0; stride *= a->count[d--]) step[d] = stride;
    do {
        size_t at = 0, from = element_of(w) - r->first;
        for (int d = 0; d < a->rank; d++)
            at += (d == f->place.counted ? slice - a->from[d] : w->at[d]) * step[d];
        r->room[at] = r->slice[from];
        if (r->scale_room && r->scales) r->scale_room[at] = m->rank ? 0 : r->scales[from];
        if (m->rank) r->room[at] += adapted(m, w);
    } while (next(w));
}

/* The elements that this rank's part lies among, and no others, are read. */
static sm_status take_slice(taking *r, const checkpoint_form *f, size_t slice, sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    const sm_train_array *a = f->array;
    sm_safetensor wanted = {.rank = 0};
    checkpoint_name_of(f, slice, name);
    checkpoint_shape_of(f, &wanted);
    const sm_safetensor *found = sm_safetensors_find(r->file, name);
    if (!found)
        return sm_fail(err, SM_BAD_INPUT, "%.200s holds no %s, which %s has", r->path, name,
                       r->model->name);
    if (!same_shape(found, &wanted))
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s", name,
                       r->path, r->model->name);
    walk w = walk_of(f, a->from, a->count, slice), last = w;
    for (int d = 0; d < a->rank; d++) last.at[d] = last.count[d] - 1;
    r->first = element_of(&w);
    r->n = element_of(&last) - r->first + 1;
    sm_free(r->slice);
    sm_free(r->scales);
    r->scales = a->scaled ? sm_calloc(r->n, sizeof *r->scales) : NULL;
    r->slice = sm_malloc(r->n * sizeof *r->slice);
    if (!r->slice || (a->scaled && !r->scales)) return sm_fail_memory(err);
    sm_status status = sm_io_safetensor_load_part(found, r->first, r->n, r->slice, err);
    if (!status) status = rescale(r, found, name, err);
    merging m = {.rank = 0};
    if (!status) status = find_adapter(r, f, slice, &m, err);
    if (!status) copy_slice(r, &w, slice, &m);
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
        bool head = m->tied && strncmp(name, "lm_head.", 8) == 0;
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

/* A training that has made a step has moments; weights of another tool, of no step, begin one. */
static bool begins_training(const sm_safetensors *file) {
    bool moments = false;
    for (size_t i = 0; i < file->n; i++)
        moments |= strncmp(file->tensor[i].name, "optimizer.", 10) == 0;
    return file->steps == 0 && !moments;
}

sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err) {
    bool begins = begins_training(file);
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

/* Writing a checkpoint: every rank lists all arrays alike, so that each knows the header of its own
 * files before any data comes; then array after array is gathered on its rank and written at once,
 * or with the last of those that lie in one tensor. No rank holds more than one array besides its
 * own, and tensors of which some are still to come. */

enum { KINDS = 2 };
static const char *const kind_names[KINDS] = {"model", "optimizer"};

typedef struct listed {
    sm_safetensor tensor;
    int owner, kind;
} listed;

/* A tensor of several arrays, until all have come. */
typedef struct joined {
    char name[CHECKPOINT_NAME_BYTES]; /* "": of none */
    size_t numbers, held;
    float *value; /* NULL: they are only listed */
} joined;

typedef struct writing {
    const sm_model *model;
    const train_checkpoint_place *place;
    const char *path; /* of it, without a slash at the end */
    sm_communicator *world;
    uint64_t steps;
    sm_arena *arena;
    bool folder;
    char version[SM_CHECKPOINT_NAME];
    size_t n;
    int room;
    listed *all;
    int *number[KINDS], shards[KINDS]; /* of the file of each rank, from 1; 0: it has none */
    size_t own[KINDS];
    sm_safetensor *mine[KINDS]; /* of this rank */
    sm_safetensors_writer *file[KINDS];
    uint32_t checksum[KINDS];
    float *slice; /* one tensor, transposed */
    size_t slice_room;
    joined *join;
    size_t joins;
    /* A rank that cannot write goes on gathering, so that no other waits for it in vain. */
    sm_status failed;
    sm_error why;
} writing;

/* All ranks return the error of the first that has one. */
static sm_status agree(sm_communicator *world, sm_status status, const sm_error *why,
                       sm_error *err) {
    sm_error own = *why, *all = sm_calloc((size_t)world->size, sizeof *all);
    if (!all) return sm_fail_memory(err);
    own.status = status;
    status = sm_run_all_gather(world, &own, sizeof own, all, err);
    for (int i = world->size - 1; !status && i >= 0; i--)
        if (all[i].status) own = all[i];
    sm_free(all);
    if (status || !own.status) return status;
    if (err) *err = own;
    return own.status;
}

/* ---- which tensors there are, and who writes them ---- */

/* In one file everything is of one kind. */
static int kind_of(const writing *w, const sm_train_array *a) {
    return w->folder && a->part != SM_TRAIN_VALUE;
}

static sm_status list_slice(writing *w, const checkpoint_form *f, size_t slice, sm_error *err) {
    char name[CHECKPOINT_NAME_BYTES];
    size_t n = f->numbers;
    listed *more = sm_arena_grow(w->arena, w->all, (int)w->n, &w->room, sizeof *more);
    if (!more) return sm_fail_memory(err);
    w->all = more;
    listed *l = &w->all[w->n++];
    *l = (listed){.owner = f->array->owner, .kind = kind_of(w, f->array)};
    checkpoint_name_of(f, slice, name);
    checkpoint_shape_of(f, &l->tensor);
    l->tensor.name = sm_arena_copy(w->arena, name, strlen(name));
    if (!l->tensor.name) return sm_fail_memory(err);
    assert(l->owner >= 0 && l->owner < w->world->size && l->kind < KINDS);
    w->number[l->kind][l->owner] = 1;
    if (l->owner != w->world->rank) return SM_OK;
    w->own[l->kind]++;
    if (n > w->slice_room) w->slice_room = n;
    return SM_OK;
}

/* The tensor of this slice, in which so many numbers more are now; NULL: out of memory. */
static joined *join_slice(writing *w, const checkpoint_form *f, size_t slice) {
    char name[CHECKPOINT_NAME_BYTES];
    joined *j = NULL, *unused = NULL;
    checkpoint_name_of(f, slice, name);
    for (size_t i = 0; i < w->joins && !j; i++) {
        if (strcmp(w->join[i].name, name) == 0) j = &w->join[i];
        if (!w->join[i].name[0]) unused = &w->join[i];
    }
    if (!j && !unused) {
        size_t room = w->joins ? 2 * w->joins : 8;
        joined *more = sm_realloc(w->join, room * sizeof *more);
        if (!more) return NULL;
        memset(more + w->joins, 0, (room - w->joins) * sizeof *more);
        unused = more + w->joins;
        w->join = more;
        w->joins = room;
    }
    if (!j) {
        j = unused;
        *j = (joined){.numbers = 1};
        memcpy(j->name, name, sizeof name);
        for (int d = 0; d < f->place.rank; d++) j->numbers *= f->place.shape[d];
    }
    j->held += f->numbers;
    return j;
}

static sm_status list_array(sm_train_array *a, void *context, sm_error *err) {
    writing *w = context;
    checkpoint_form f;
    sm_status status = checkpoint_form_of(w->model, a, 0, &f, err);
    for (size_t i = 0; !status && i < f.slices; i++) {
        joined *j = f.place.alone ? NULL : join_slice(w, &f, i);
        if (!j && !f.place.alone) return sm_fail_memory(err);
        if (j && j->held < j->numbers) continue;
        if (j) j->name[0] = 0;
        status = list_slice(w, &f, i, err);
    }
    return status;
}

/* The tensors that this rank writes, of each kind; files are numbered over the ranks that have one.
 */
static sm_status choose_own(writing *w, sm_error *err) {
    for (int k = 0; k < KINDS; k++) {
        size_t n = 0;
        for (int rank = 0; rank < w->world->size; rank++)
            if (w->number[k][rank]) w->number[k][rank] = ++w->shards[k];
        w->mine[k] = sm_arena_array(w->arena, w->own[k] + 1, sizeof *w->mine[k]);
        if (!w->mine[k]) return sm_fail_memory(err);
        for (size_t i = 0; i < w->n; i++)
            if (w->all[i].kind == k && w->all[i].owner == w->world->rank)
                w->mine[k][n++] = w->all[i].tensor;
    }
    w->slice = sm_malloc(w->slice_room * sizeof *w->slice);
    return w->slice ? SM_OK : sm_fail_memory(err);
}

static sm_status list_all(writing *w, sm_trainer *t, sm_error *err) {
    for (int k = 0; k < KINDS; k++) {
        w->number[k] = sm_arena_array(w->arena, (size_t)w->world->size, sizeof *w->number[k]);
        if (!w->number[k]) return sm_fail_memory(err);
    }
    sm_status status = sm_trainer_list(t, w->folder, list_array, w, err);
    for (size_t i = 0; !status && i < w->joins; i++)
        if (w->join[i].name[0])
            status = sm_fail(err, SM_BAD_INPUT,
                             "a checkpoint of %s cannot be written: %s holds more than its weights",
                             w->model->name, w->join[i].name);
    return status ? status : choose_own(w, err);
}

/* ---- the files of this rank ---- */

static const char *file_name(const writing *w, int kind, int number) {
    return sm_arena_printf(w->arena, "%s-%05d-of-%05d.safetensors", kind_names[kind], number,
                           w->shards[kind]);
}

/* In the version that is being written. */
static const char *path_of(const writing *w, const char *name) {
    return name ? sm_arena_printf(w->arena, "%s/%s.tmp/%s", w->path, w->version, name) : NULL;
}

static void put_slice(const sm_train_array *a, const checkpoint_form *f, size_t slice, float *to) {
    static const size_t start[SM_MAX_RANK] = {0};
    size_t step[SM_MAX_RANK], stride = 1;
    walk all = walk_of(f, start, a->size, slice);
    for (int d = a->rank - 1; d >= 0; stride *= a->size[d--]) step[d] = stride;
    do {
        size_t at = 0;
        for (int d = 0; d < a->rank; d++) at += (all.from[d] + all.at[d]) * step[d];
        to[element_of(&all)] = a->data[at];
    } while (next(&all));
}

/* With what came before of a tensor; once it is whole it is written. */
static sm_status put_joined(writing *w, const sm_train_array *a, const checkpoint_form *f,
                            size_t slice, sm_error *err) {
    joined *j = join_slice(w, f, slice);
    if (j && !j->value) j->value = sm_malloc(j->numbers * sizeof *j->value);
    if (!j || !j->value) return sm_fail_memory(err);
    put_slice(a, f, slice, j->value);
    if (j->held < j->numbers) return SM_OK;
    sm_status status = sm_io_safetensors_put(w->file[kind_of(w, a)], j->value, j->numbers, err);
    sm_free(j->value);
    *j = (joined){.held = 0};
    return status;
}

static sm_status put_array(sm_train_array *a, void *context, sm_error *err) {
    writing *w = context;
    checkpoint_form f;
    sm_status status = checkpoint_form_of(w->model, a, 0, &f, err);
    for (size_t i = 0; !status && !w->failed && i < f.slices; i++) {
        if (!f.place.alone) {
            w->failed = put_joined(w, a, &f, i, &w->why);
            continue;
        }
        put_slice(a, &f, i, w->slice);
        w->failed = sm_io_safetensors_put(w->file[kind_of(w, a)], w->slice, f.numbers, &w->why);
    }
    return status;
}

static sm_status write_files(writing *w, sm_trainer *t, sm_error *err) {
    for (int k = 0; !w->failed && k < KINDS; k++) {
        int number = w->number[k][w->world->rank];
        if (!number) continue;
        const char *path = w->folder ? path_of(w, file_name(w, k, number)) : w->path;
        w->failed = path ? sm_io_safetensors_begin(path, w->own[k], w->mine[k], w->steps,
                                                   &w->file[k], &w->why)
                         : sm_fail_memory(&w->why);
    }
    sm_status status = w->folder ? sm_trainer_save_dealt(t, put_array, w, err)
                                 : sm_trainer_save(t, put_array, w, err);
    if (status) w->failed = status;
    for (int k = 0; k < KINDS; k++) {
        if (w->failed) sm_io_safetensors_abandon(w->file[k]);
        else if (w->file[k])
            w->failed = sm_io_safetensors_end(w->file[k], &w->checksum[k], &w->why);
        w->file[k] = NULL;
    }
    if (status) return status; /* of a rank alone: the others are being ended */
    status = agree(w->world, w->failed, &w->why, err);
    if (!status || !w->folder) return status;
    if (w->world->rank == 0) sm_io_checkpoint_abandon(w->path, w->version); /* all are closed */
    sm_run_barrier(w->world, NULL);
    return status;
}

/* ---- the version as a whole ---- */

static sm_status write_index(writing *w, int kind, const uint32_t *checksum, sm_error *err) {
    char name[64];
    sm_shard_index index = {.steps = w->steps};
    if (!w->shards[kind]) return SM_OK;
    snprintf(name, sizeof name, "%s.safetensors.index.json", kind_names[kind]);
    const char *path = path_of(w, name);
    index.shard = sm_arena_array(w->arena, (size_t)w->shards[kind], sizeof *index.shard);
    index.place = sm_arena_array(w->arena, w->n, sizeof *index.place);
    if (!path || !index.shard || !index.place) return sm_fail_memory(err);
    for (int rank = 0; rank < w->world->size; rank++) {
        int number = w->number[kind][rank];
        const char *file = number ? file_name(w, kind, number) : "";
        if (!file) return sm_fail_memory(err);
        if (number)
            index.shard[index.shards++] = (sm_shard){file, true, checksum[rank * KINDS + kind]};
    }
    for (size_t i = 0; i < w->n; i++) {
        const listed *l = &w->all[i];
        size_t bytes = sizeof(float);
        if (l->kind != kind) continue;
        for (int d = 0; d < l->tensor.rank; d++) bytes *= l->tensor.shape[d];
        index.place[index.n++] =
            (sm_shard_place){l->tensor.name, (size_t)w->number[kind][l->owner] - 1};
        index.bytes += bytes;
    }
    return sm_io_shard_index_write(path, &index, err);
}

static sm_status complete(writing *w, sm_error *err) {
    size_t ranks = (size_t)w->world->size;
    uint32_t *checksum = sm_arena_array(w->arena, ranks * KINDS, sizeof *checksum);
    if (!checksum) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(w->world, w->checksum, sizeof w->checksum, checksum, err);
    if (status) return status;
    if (w->world->rank == 0) { /* the files of all are on the disk */
        const char *config = w->place->config, *path = path_of(w, "config.json");
        status = path ? SM_OK : sm_fail_memory(&w->why);
        if (!status && config) status = sm_io_write(path, config, strlen(config), &w->why);
        for (int k = 0; !status && k < KINDS; k++) status = write_index(w, k, checksum, &w->why);
        if (!status) status = sm_io_checkpoint_end(w->path, w->version, w->place->keep, &w->why);
        if (status) sm_io_checkpoint_abandon(w->path, w->version);
        w->failed = status;
    }
    return agree(w->world, w->failed, &w->why, err);
}

/* ---- all of it ---- */

static bool names_folder(const char *path) {
    struct stat of;
    size_t n = strlen(path);
    return (n > 0 && path[n - 1] == '/') || (stat(path, &of) == 0 && S_ISDIR(of.st_mode));
}

/* In the folder, or beside it where it is not there yet. */
sm_status train_checkpoint_check(const train_checkpoint_place *place, sm_arena *arena,
                                 sm_error *err) {
    struct stat of;
    const char *path = place->path;
    size_t n = strlen(path);
    if (!names_folder(path)) return sm_io_write_check(path, err);
    while (n > 1 && path[n - 1] == '/') n--;
    bool absent = stat(path, &of) != 0 && errno == ENOENT;
    char *file = sm_arena_printf(arena, "%.*s%s", (int)n, path, absent ? "" : "/latest");
    return file ? sm_io_write_check(file, err) : sm_fail_memory(err);
}

/* The first rank finds out what there is, and makes the folder of the version. */
static sm_status begin_version(writing *w, sm_error *err) {
    if (w->world->rank == 0 && names_folder(w->place->path))
        w->failed = sm_io_checkpoint_begin(w->path, w->steps, w->version, &w->why);
    sm_status status = agree(w->world, w->failed, &w->why, err);
    if (!status) status = sm_run_broadcast(w->world, w->version, sizeof w->version, 0, err);
    w->folder = w->version[0] != 0;
    return status;
}

static void free_writing(writing *w) {
    for (size_t i = 0; i < w->joins; i++) sm_free(w->join[i].value);
    sm_free(w->join);
    sm_free(w->slice);
    sm_arena_free(w->arena);
}

sm_status train_checkpoint_check_arrays(sm_trainer *t, sm_communicator *world,
                                        const sm_model *model, sm_error *err) {
    writing w = {.model = model, .world = world, .arena = sm_arena_new()};
    sm_status status = w.arena ? list_all(&w, t, err) : sm_fail_memory(err);
    free_writing(&w);
    return status;
}

sm_status train_checkpoint_write(sm_trainer *t, sm_communicator *world, const sm_model *model,
                                 const train_checkpoint_place *place, sm_error *err) {
    writing w = {.model = model,
                 .place = place,
                 .world = world,
                 .steps = sm_trainer_updates(t),
                 .arena = sm_arena_new(),
                 .why = {.status = SM_OK}};
    if (!w.arena) return sm_fail_memory(err);
    size_t length = strlen(place->path);
    while (length > 1 && place->path[length - 1] == '/') length--;
    w.path = sm_arena_copy(w.arena, place->path, length);
    sm_status status = w.path ? begin_version(&w, err) : sm_fail_memory(err);
    if (!status) status = list_all(&w, t, err);
    if (!status) status = write_files(&w, t, err);
    if (!status && w.folder) status = complete(&w, err);
    free_writing(&w);
    return status;
}
