/* What a checkpoint beside a config holds, by its index or by the headers of its files: data is
 * not looked at, and may be elsewhere. */
#include "json_tree.h"
#include "safetensors_front.h"

/* {"NAME":{"dtype":"BF16","shape":[8,8],"data_offsets":[0,128]},...} */
static void add_tensor(const json_value *tensor, sm_checkpoint_size *size) {
    const json_value *shape = json_get(tensor, "shape"), *at = json_get(tensor, "data_offsets");
    double elements = 1;
    if (strcmp(tensor->key, "__metadata__") == 0 || !json_is(shape, IS_LIST)) return;
    for (uint32_t i = 0; i < shape->n; i++) elements *= json_number(&shape->item[i]);
    size->elements += elements;
    if (json_is(at, IS_LIST) && at->n == 2)
        size->bytes += json_number(&at->item[1]) - json_number(&at->item[0]);
}

/* *read: it could be; what is no safetensors adds nothing. */
static sm_status add_file(const char *path, sm_arena *arena, sm_checkpoint_size *size, bool *read,
                          sm_error *err) {
    sm_source source;
    const json_document document = {.source = &source, .arena = arena, .err = err};
    const json_value *root;
    *read = false;
    sm_status status = safetensors_header_read(path, arena, &source, err);
    if (!status) status = json_parse(&document, &root);
    if (status) return status == SM_INTERNAL ? status : SM_OK;
    for (uint32_t i = 0; json_is(root, IS_OBJECT) && i < root->n; i++)
        if (json_is(&root->item[i], IS_OBJECT)) add_tensor(&root->item[i], size);
    *read = size->bytes > 0;
    return SM_OK;
}

static const char *beside(sm_arena *arena, const char *config, const char *name) {
    const char *slash = strrchr(config, '/');
    int folder = slash ? (int)(slash - config) + 1 : 0;
    return sm_arena_printf(arena, "%.*s%s", folder, config, name);
}

/* Bytes and elements of the files of an index; *there: how many could be read. */
static sm_status add_files(const char *config, const sm_shard_index *index, sm_arena *arena,
                           sm_checkpoint_size *size, size_t *there, sm_error *err) {
    for (size_t i = 0; i < index->shards; i++) {
        const char *shard = beside(arena, config, index->shard[i].name);
        bool read;
        if (!shard) return sm_fail_memory(err);
        sm_status status = add_file(shard, arena, size, &read, err);
        if (status) return status;
        *there += read;
    }
    return SM_OK;
}

/* The index alone says bytes; its files, where all are here, elements too. */
static sm_status by_index(const char *config, const char *path, sm_arena *arena,
                          sm_checkpoint_size *size, sm_error *err) {
    sm_source source;
    sm_shard_index index;
    sm_checkpoint_size files = {0};
    size_t there = 0;
    sm_status status = sm_io_read(path, arena, &source, err);
    if (!status) status = sm_io_shard_index_parse(&source, arena, &index, err);
    if (!status) status = add_files(config, &index, arena, &files, &there, err);
    if (status) return status == SM_INTERNAL ? status : SM_OK;
    size->bytes = (double)index.bytes;
    if (index.shards && there == index.shards) *size = files;
    return SM_OK;
}

sm_status sm_io_checkpoint_beside(const char *config, sm_arena *arena, sm_checkpoint_size *size,
                                  sm_error *err) {
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors"};
    *size = (sm_checkpoint_size){0};
    for (int i = 0; i < 2; i++) {
        const char *path = beside(arena, config, names[i]);
        bool read;
        if (!path) return sm_fail_memory(err);
        sm_status status = i == 0 ? by_index(config, path, arena, size, err)
                                  : add_file(path, arena, size, &read, err);
        if (status) return status;
        if (size->bytes <= 0) continue;
        size->name = names[i];
        break;
    }
    return SM_OK;
}
