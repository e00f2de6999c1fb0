/* An index of shards, as Hugging Face has it: {"metadata":{"total_size":..},"weight_map":{TENSOR:
 * FILE, ..}}. Ours says in its metadata, which others pass over, the steps made and the checksum of
 * each file's header ("headers"), so that files of two checkpoints are not taken for one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_folder.h"
#include "json_load.h"

bool is_plain_name(const char *name) {
    return *name && *name != '.' && strlen(name) < 256 && !strpbrk(name, "/\\\n");
}

/* ---- reading ---- */

typedef struct reading {
    const char *path;
    const json_t *headers;
    sm_arena *arena;
    sm_shard_index *out;
    sm_error *err;
} reading;

static bool read_checksum(const char *text, uint32_t *out) {
    char *end;
    if (!text || strlen(text) != 8 || strspn(text, "0123456789abcdef") != 8) return false;
    *out = (uint32_t)strtoul(text, &end, 16);
    return true;
}

static sm_status new_shard(reading *r, const char *name, const char *tensor) {
    sm_shard *s = &r->out->shard[r->out->shards];
    const json_t *sum = json_object_get(r->headers, name);
    if (!is_plain_name(name))
        return sm_fail(r->err, SM_BAD_INPUT, "%.200s places %.100s outside its folder, in %.100s",
                       r->path, tensor, name);
    if (sum && !read_checksum(json_string_value(sum), &s->checksum))
        return sm_fail(r->err, SM_BAD_INPUT, "%.200s gives no checksum of eight digits for %.100s",
                       r->path, name);
    s->checked = sum != NULL;
    s->name = sm_arena_copy(r->arena, name, strlen(name));
    if (!s->name) return sm_fail_memory(r->err);
    r->out->shards++;
    return SM_OK;
}

static sm_status read_place(reading *r, const char *tensor, const json_t *value) {
    const char *name = json_string_value(value);
    sm_shard_place *p = &r->out->place[r->out->n++];
    if (!name)
        return sm_fail(r->err, SM_BAD_INPUT, "%.200s names no file for %.100s", r->path, tensor);
    p->name = sm_arena_copy(r->arena, tensor, strlen(tensor));
    if (!p->name) return sm_fail_memory(r->err);
    while (p->shard < r->out->shards && strcmp(r->out->shard[p->shard].name, name) != 0) p->shard++;
    return p->shard < r->out->shards ? SM_OK : new_shard(r, name, tensor);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const sm_shard_place *)a)->name, ((const sm_shard_place *)b)->name);
}

static sm_status read_map(reading *r, const json_t *map) {
    const char *tensor;
    const json_t *value;
    size_t n = json_object_size(map);
    sm_status status = SM_OK;
    if (n == 0)
        return sm_fail(r->err, SM_BAD_INPUT, "%.200s is no index of shards: it has no weight_map",
                       r->path);
    r->out->shard = sm_arena_array(r->arena, n, sizeof *r->out->shard);
    r->out->place = sm_arena_array(r->arena, n, sizeof *r->out->place);
    if (!r->out->shard || !r->out->place) return sm_fail_memory(r->err);
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value) if (!status) status =
        read_place(r, tensor, value);
    if (!status) qsort(r->out->place, r->out->n, sizeof *r->out->place, by_name);
    return status;
}

static void read_metadata(reading *r, const json_t *metadata) {
    const char *steps = json_string_value(json_object_get(metadata, "steps"));
    json_int_t bytes = json_integer_value(json_object_get(metadata, "total_size"));
    r->out->steps = steps ? strtoull(steps, NULL, 10) : 0;
    r->out->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    r->headers = json_object_get(metadata, "headers");
}

sm_status sm_io_shard_index_parse(const sm_source *source, sm_arena *arena, sm_shard_index *out,
                                  sm_error *err) {
    reading r = {source->name, NULL, arena, out, err};
    json_t *root;
    *out = (sm_shard_index){.n = 0};
    sm_status status = sm_json_load(source, err, &root);
    if (!status) {
        read_metadata(&r, json_object_get(root, "metadata"));
        status = read_map(&r, json_object_get(root, "weight_map"));
    }
    json_decref(root);
    return status;
}

/* ---- writing ---- */

static void write_index(FILE *out, const sm_shard_index *index) {
    fprintf(out, "{\n  \"metadata\": {\n    \"total_size\": %llu,\n    \"steps\": \"%llu\",\n",
            (unsigned long long)index->bytes, (unsigned long long)index->steps);
    fputs("    \"headers\": {", out);
    for (size_t i = 0; i < index->shards; i++)
        fprintf(out, "%s\n      \"%s\": \"%08lx\"", i ? "," : "", index->shard[i].name,
                (unsigned long)index->shard[i].checksum);
    fputs("\n    }\n  },\n  \"weight_map\": {", out);
    for (size_t i = 0; i < index->n; i++)
        fprintf(out, "%s\n    \"%s\": \"%s\"", i ? "," : "", index->place[i].name,
                index->shard[index->place[i].shard].name);
    fputs("\n  }\n}\n", out);
}

sm_status sm_io_shard_index_write(const char *path, const sm_shard_index *index, sm_error *err) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return sm_fail_memory(err);
    write_index(out, index);
    sm_status status = fclose(out) ? sm_fail_memory(err) : sm_io_write(path, text, length, err);
    free(text);
    return status;
}
