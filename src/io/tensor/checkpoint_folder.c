/* Reading a checkpoint folder: its latest version, the indexes of that, the files they name; all of
 * them must belong together. */

#include <unistd.h>

#include "safetensors_front.h"

static const char *const index_names[] = {"model.safetensors.index.json",
                                          "optimizer.safetensors.index.json"};
enum { INDEXES = 2 };

typedef struct folder {
    const char *path;
    sm_arena *arena;
    sm_safetensors *out;
    size_t room;
    sm_error *err;
} folder;

/* ---- latest ---- */

sm_status read_latest(const char *path, char name[SM_CHECKPOINT_NAME], sm_error *err) {
    sm_source text;
    sm_arena *arena = sm_arena_new();
    char *file = arena ? sm_arena_printf(arena, "%s/" CHECKPOINT_LATEST, path) : NULL;
    sm_status status = file ? SM_OK : sm_fail_memory(err);
    *name = 0;
    if (!status && access(file, F_OK) == 0) {
        status = sm_io_read(file, arena, &text, err);
        size_t n = status ? 0 : strcspn(text.text, "\n");
        if (!status && n < SM_CHECKPOINT_NAME) memcpy(name, text.text, n + 1);
        if (!status) name[n < SM_CHECKPOINT_NAME ? n : 0] = 0;
        if (!status && (!is_plain_name(name) || n + 1 < text.length))
            status = sm_fail(err, SM_BAD_INPUT, "%.300s names no folder beside it", file);
    }
    sm_arena_free(arena);
    return status;
}

/* ---- the files of an index ---- */

static sm_status make_room(folder *f, size_t more) {
    sm_safetensors *all = f->out;
    if (all->n + more <= f->room) return SM_OK;
    f->room = 2 * (all->n + more);
    sm_safetensor *tensor = sm_arena_array(f->arena, f->room, sizeof *tensor);
    if (!tensor) return sm_fail_memory(f->err);
    if (all->n) memcpy(tensor, all->tensor, all->n * sizeof *tensor);
    all->tensor = tensor;
    return SM_OK;
}

/* Is this file the one that the index was written with? */
static sm_status check_shard(const folder *f, const char *path, const sm_safetensors *held,
                             const sm_shard_index *index, const sm_shard *shard) {
    if (index->steps && held->steps && held->steps != index->steps)
        return sm_fail(f->err, SM_BAD_INPUT, "%.300s is of step %llu, and its index of step %llu",
                       path, (unsigned long long)held->steps, (unsigned long long)index->steps);
    if (shard->checked && shard->checksum != held->checksum)
        return sm_fail(f->err, SM_BAD_INPUT,
                       "%.300s is not the file of that name that its index was written with", path);
    return SM_OK;
}

/* The tensors of a shard are those that the index places there. */
static sm_status check_places(const folder *f, const char *path, const sm_safetensors *held,
                              const sm_shard_index *index, size_t shard) {
    for (size_t i = 0; i < held->n; i++) {
        const sm_shard_place key = {.name = held->tensor[i].name},
                             *place = bsearch(&key, index->place, index->n, sizeof key,
                                              sm_compare_texts);
        if (!place || place->shard != shard)
            return sm_fail(f->err, SM_BAD_INPUT,
                           "%.300s holds %.100s, which its index does not place there", path,
                           held->tensor[i].name);
    }
    for (size_t i = 0; i < index->n; i++)
        if (index->place[i].shard == shard && !sm_safetensors_find(held, index->place[i].name))
            return sm_fail(f->err, SM_BAD_INPUT,
                           "%.300s does not hold %.100s, which its index places there", path,
                           index->place[i].name);
    return SM_OK;
}

static sm_status read_shard(folder *f, const sm_shard_index *index, size_t shard) {
    sm_safetensors held;
    const sm_shard *s = &index->shard[shard];
    const char *path = sm_arena_printf(f->arena, "%s/%s", f->path, s->name);
    if (!path) return sm_fail_memory(f->err);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return sm_fail(f->err, SM_BAD_INPUT, "%.300s is missing, which its index names", path);
    sm_status status = safetensors_file_read(path, f->arena, &held, f->err);
    if (!status) status = check_shard(f, path, &held, index, s);
    if (!status) status = check_places(f, path, &held, index, shard);
    if (!status) status = make_room(f, held.n);
    if (status) return status;
    memcpy(f->out->tensor + f->out->n, held.tensor, held.n * sizeof *held.tensor);
    f->out->n += held.n;
    f->out->checksum = f->out->checksum * 31 + held.checksum;
    return SM_OK;
}

/* ---- the indexes of a folder ---- */

static sm_status read_index(folder *f, const char *path) {
    sm_source source;
    sm_shard_index index;
    sm_status status = sm_io_read(path, f->arena, &source, f->err);
    if (!status) status = sm_io_shard_index_parse(&source, f->arena, &index, f->err);
    if (status) return status;
    if (f->out->steps && index.steps != f->out->steps) /* two indexes of one checkpoint */
        return sm_fail(
            f->err, SM_BAD_INPUT, "%.300s is of step %llu, and %s beside it of step %llu", path,
            (unsigned long long)index.steps, index_names[0], (unsigned long long)f->out->steps);
    f->out->steps = index.steps;
    for (size_t i = 0; !status && i < index.shards; i++) status = read_shard(f, &index, i);
    return status;
}

static sm_status read_single(folder *f) {
    const char *path = sm_arena_printf(f->arena, "%s/model.safetensors", f->path);
    if (!path) return sm_fail_memory(f->err);
    if (access(path, F_OK) == 0) return safetensors_file_read(path, f->arena, f->out, f->err);
    return sm_fail(f->err, SM_BAD_INPUT,
                   "%.300s holds no checkpoint: neither " CHECKPOINT_LATEST " nor %s is in it",
                   f->path, index_names[0]);
}

static sm_status read_indexes(folder *f) {
    sm_status status = SM_OK;
    int found = 0;
    for (int i = 0; !status && i < INDEXES; i++) {
        const char *path = sm_arena_printf(f->arena, "%s/%s", f->path, index_names[i]);
        if (!path) return sm_fail_memory(f->err);
        if (access(path, F_OK) != 0) {
            if (i == 0) break;
            continue;
        }
        found++;
        status = read_index(f, path);
    }
    if (status) return status;
    tensors_sort(f->out);
    return found ? SM_OK : read_single(f);
}

sm_status checkpoint_folder_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err) {
    char latest[SM_CHECKPOINT_NAME];
    folder f = {.path = path, .arena = arena, .out = out, .err = err};
    sm_status status = read_latest(path, latest, err);
    if (status) return status;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    f.path = *latest ? sm_arena_printf(arena, "%.*s/%s", (int)length, path, latest)
                     : sm_arena_copy(arena, path, length);
    if (!f.path) return sm_fail_memory(err);
    if (*latest && access(f.path, F_OK) != 0)
        return sm_fail(err, SM_BAD_INPUT,
                       "%.300s is missing, which " CHECKPOINT_LATEST " beside it names", f.path);
    return read_indexes(&f);
}
