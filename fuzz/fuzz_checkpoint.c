/* Fuzz target: two bytes, how much data a file has, and any text as the header of a safetensors
 * file and as an index of shards. What is accepted must be whole: arrays one after the other that
 * fill the data, files inside the folder. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/io.h"

static void require(int holds) {
    if (!holds) abort();
}

/* Of a type that is not read, what the header says. */
static uint64_t bytes_of(const sm_safetensor *t) {
    if (t->type == SM_DTYPE_COUNT) return t->bytes;
    uint64_t n = (uint64_t)sm_dtype_bytes(t->type);
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    return n;
}

static void check_header(const sm_safetensors *file, uint64_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < file->n; i++) {
        const sm_safetensor *t = &file->tensor[i];
        require(t->rank >= 0 && t->rank <= SM_SAFETENSOR_RANK && !t->data);
        require(t->bytes == bytes_of(t) && t->at + t->bytes <= bytes);
        require(sm_safetensors_find(file, t->name) == t);
        sum += t->bytes;
    }
    require(sum == bytes);
}

static void check_index(const sm_shard_index *index) {
    require(index->n >= 1 && index->shards >= 1 && index->shards <= index->n);
    for (size_t i = 0; i < index->shards; i++)
        require(index->shard[i].name[0] != '.' && !strchr(index->shard[i].name, '/'));
    for (size_t i = 0; i < index->n; i++) {
        require(index->place[i].shard < index->shards);
        require(i == 0 || strcmp(index->place[i - 1].name, index->place[i].name) < 0);
    }
}

static void require_refused(sm_status status, const sm_error *err) {
    require(status == SM_BAD_INPUT && err->sentence[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sm_safetensors file;
    sm_shard_index index;
    sm_error err = {0};
    if (size < 2) return 0;
    uint64_t bytes = data[0] + 256u * data[1];
    sm_source source = {"file", (const char *)data + 2, size - 2};
    sm_arena *arena = sm_arena_new();
    sm_status status = sm_io_safetensors_parse(&source, bytes, arena, &file, &err);
    if (status) require_refused(status, &err);
    else check_header(&file, bytes);
    status = sm_io_shard_index_parse(&source, arena, &index, &err);
    if (status) require_refused(status, &err);
    else check_index(&index);
    sm_arena_free(arena);
    return 0;
}
