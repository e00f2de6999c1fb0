/* Taking a checkpoint: each array is read when it is wanted, and its block cut out of it. */
#include "train_checkpoint.h"
#include "scalemodel/io.h"
#include "scalemodel/run_train.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHECKPOINT_NAME_BYTES = 128 };

/* Slices (experts; otherwise one) of rows x columns, each a tensor, transposed or not. */
typedef struct checkpoint_form {
    const struct known *k;
    const sm_train_array *array;
    const char *last; /* of the name */
    bool transposed;
    size_t slices, rows, columns;
} checkpoint_form;

/* Names and shapes of a checkpoint. Linear layers are stored as [out, in] there, and ours multiply
 * from the left as [in, out]: each is transposed on the way. */

struct known {
    const char *ours, *theirs;
    int layer;  /* EMBEDDING, HEAD, else of a layer */
    int inputs; /* leading dimensions that are summed over: 0, not a linear layer */
    int rank;   /* of experts 3: the first dimension counts them, each a tensor of its own */
};
enum { EMBEDDING = -1, HEAD = 1 };

static const struct known known[] = {
    {"w", "model.embed_tokens", EMBEDDING, 0, 2},
    {"w", "lm_head", HEAD, 1, 2},
    {"n", "model.norm", HEAD, 0, 1},
    {"n1", "input_layernorm", 0, 0, 1},
    {"n2", "post_attention_layernorm", 0, 0, 1},
    {"n3", "pre_feedforward_layernorm", 0, 0, 1},
    {"n4", "post_feedforward_layernorm", 0, 0, 1},
    {"wq", "self_attn.q_proj", 0, 1, 4},
    {"wk", "self_attn.k_proj", 0, 1, 3},
    {"wv", "self_attn.v_proj", 0, 1, 3},
    {"wo", "self_attn.o_proj", 0, 3, 4},
    {"wg", "mlp.gate_proj", 0, 1, 2},
    {"wu", "mlp.up_proj", 0, 1, 2},
    {"wd", "mlp.down_proj", 0, 1, 2},
    {"wr", "block_sparse_moe.gate", 0, 1, 2},
    {"wg", "w1", 0, 1, 3},
    {"wu", "w3", 0, 1, 3},
    {"wd", "w2", 0, 1, 3},
};

static bool has_experts(const struct known *k) { return k->theirs[0] == 'w'; }

/* ---- one array as the tensors of a file: slices of rows x columns, transposed or not ---- */

/* The array must outlive the form. */
static sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a,
                                    checkpoint_form *f, sm_error *err) {
    *f = (checkpoint_form){.array = a, .slices = 1, .rows = 1, .columns = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].ours, a->name) == 0 && known[i].rank == a->rank &&
            known[i].layer == (a->layer < 0           ? EMBEDDING
                               : a->layer == model->L ? HEAD
                                                      : 0))
            f->k = &known[i];
    if (!f->k) return sm_fail(err, SM_INTERNAL, "a checkpoint has no name for %s", a->name);
    f->last = f->k->theirs;
    f->transposed = f->k->inputs > 0;
    int d = 0;
    if (has_experts(f->k)) f->slices = a->size[d++];
    int inputs = f->k->inputs ? d + f->k->inputs : d + 1;
    for (; d < a->rank; d++)
        if (d < inputs) f->rows *= a->size[d];
        else f->columns *= a->size[d];
    return SM_OK;
}

static void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name) {
    static const char *const parts[] = {"", "optimizer.first.", "optimizer.second."};
    const char *part = parts[f->array->part];
    bool outside = strncmp(f->last, "model.", 6) == 0 || strcmp(f->last, "lm_head") == 0;
    if (outside) snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s.weight", part, f->last);
    else if (has_experts(f->k))
        snprintf(name, CHECKPOINT_NAME_BYTES,
                 "%smodel.layers.%d.block_sparse_moe.experts.%zu.%s.weight", part, f->array->layer,
                 slice, f->last);
    else
        snprintf(name, CHECKPOINT_NAME_BYTES, "%smodel.layers.%d.%s.weight", part, f->array->layer,
                 f->last);
}

static void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t) {
    t->rank = f->array->norm ? 1 : 2;
    t->shape[0] = f->transposed ? f->columns : f->rows;
    t->shape[1] = f->transposed ? f->rows : f->columns;
}

/* to[c][r] = from[r][c] */
static void checkpoint_transpose(const float *from, size_t rows, size_t columns, float *to) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

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

/* Writing a checkpoint: every rank lists all arrays alike, so that each knows the header of its own
 * files before any data comes; then array after array is gathered on its rank and written at once.
 * No rank holds more than one array besides its own. */

enum { KINDS = 2 };
static const char *const kind_names[KINDS] = {"model", "optimizer"};

typedef struct listed {
    sm_safetensor tensor;
    int owner, kind;
} listed;

typedef struct writing {
    const sm_model *model;
    const train_checkpoint_place *place;
    const char *path; /* of it, without a slash at the end */
    sm_communicator *world;
    uint64_t steps;
    sm_arena *arena;
    bool folder;
    char version[SM_CHECKPOINT_NAME];
    size_t n, room;
    listed *all;
    int *number[KINDS], shards[KINDS]; /* of the file of each rank, from 1; 0: it has none */
    size_t own[KINDS];
    sm_safetensor *mine[KINDS]; /* of this rank */
    sm_safetensors_writer *file[KINDS];
    uint32_t checksum[KINDS];
    float *slice; /* one tensor, transposed */
    size_t slice_room;
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
    size_t room = w->room ? 2 * w->room : 256, n = f->rows * f->columns;
    listed *more = w->n < w->room ? w->all : sm_arena_array(w->arena, room, sizeof *more);
    if (!more) return sm_fail_memory(err);
    if (more != w->all) {
        if (w->n) memcpy(more, w->all, w->n * sizeof *more);
        w->all = more;
        w->room = room;
    }
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

static sm_status list_array(sm_train_array *a, void *context, sm_error *err) {
    writing *w = context;
    checkpoint_form f;
    sm_status status = checkpoint_form_of(w->model, a, &f, err);
    for (size_t i = 0; !status && i < f.slices; i++) status = list_slice(w, &f, i, err);
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

static sm_status put_array(sm_train_array *a, void *context, sm_error *err) {
    writing *w = context;
    checkpoint_form f;
    sm_status status = checkpoint_form_of(w->model, a, &f, err);
    size_t n = status ? 0 : f.rows * f.columns;
    for (size_t i = 0; !status && !w->failed && i < f.slices; i++) {
        const float *data = a->data + i * n;
        if (f.transposed) checkpoint_transpose(data, f.rows, f.columns, w->slice);
        w->failed = sm_io_safetensors_put(w->file[kind_of(w, a)], f.transposed ? w->slice : data, n,
                                          &w->why);
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
    sm_free(w.slice);
    sm_arena_free(w.arena);
    return status;
}
