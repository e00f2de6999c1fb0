/* Writing a checkpoint: every rank lists all arrays alike, so that each knows the header of its own
 * files before any data comes; then array after array is gathered on its rank and written at once,
 * or with the last of those that lie in one tensor. No rank holds more than one array besides its
 * own, and tensors of which some are still to come. */
#include "train_checkpoint.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
    size_t joins, join_room;
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
        joined *more = sm_grow(w->join, w->joins, &w->join_room, sizeof *more);
        if (!more) return NULL;
        w->join = more;
        unused = &more[w->joins++];
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
    sm_copied dim[SM_MAX_RANK];
    const float *from = a->data + slice * checkpoint_dims_of(f, a->size, dim);
    for (int d = 0; d < a->rank; d++) dim[d] = (sm_copied){dim[d].count, dim[d].to, dim[d].from};
    sm_copy_strided(dim, a->rank, from, to + f->place.offset, sizeof *to);
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
