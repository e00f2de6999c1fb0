/* safetensors: eight bytes with the length of a JSON header, little-endian; the header, which gives
 * each tensor's dtype, shape and place; then the data (github.com/huggingface/safetensors,
 * "Format"). Single precision alone; the machine is little-endian as the file is. */
#include "scalemodel/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_load.h"

enum { PREFIX_BYTES = 8, ALIGNMENT = 8, SINGLE_BYTES = 4 };

static size_t elements_of(const sm_safetensor *t) {
    size_t n = 1;
    for (int d = 0; d < t->rank; d++) n *= t->shape[d];
    return n;
}

/* ---- writing ---- */

/* Names are ours: letters, digits, dots and underscores. */
static void write_header(FILE *out, size_t n, const sm_safetensor *tensor, uint64_t steps) {
    size_t at = 0;
    fprintf(out, "{\"__metadata__\":{\"format\":\"pt\",\"steps\":\"%llu\"}",
            (unsigned long long)steps);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = elements_of(&tensor[i]) * SINGLE_BYTES;
        fprintf(out, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", tensor[i].name);
        for (int d = 0; d < tensor[i].rank; d++)
            fprintf(out, "%s%zu", d ? "," : "", tensor[i].shape[d]);
        fprintf(out, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    fputc('}', out);
}

/* Blanks fill the header up, so that the data stands aligned. */
static sm_status header_of(size_t n, const sm_safetensor *tensor, uint64_t steps, char **text,
                           size_t *length, sm_error *err) {
    FILE *out = open_memstream(text, length);
    if (!out) return sm_fail_memory(err);
    write_header(out, n, tensor, steps);
    fflush(out);
    for (size_t more = (ALIGNMENT - *length % ALIGNMENT) % ALIGNMENT; more > 0; more--)
        fputc(' ', out);
    return fclose(out) ? sm_fail_memory(err) : SM_OK;
}

sm_status sm_io_safetensors_write(const char *path, size_t n, const sm_safetensor *tensor,
                                  uint64_t steps, sm_error *err) {
    char *header = NULL;
    size_t length = 0, total = PREFIX_BYTES;
    sm_status status = header_of(n, tensor, steps, &header, &length, err);
    total += length;
    for (size_t i = 0; i < n; i++) total += elements_of(&tensor[i]) * SINGLE_BYTES;
    char *file = status ? NULL : sm_malloc(total), *at = file;
    if (!status && !file) status = sm_fail_memory(err);
    if (!status) {
        for (int i = 0; i < PREFIX_BYTES; i++) *at++ = (char)((uint64_t)length >> 8 * i & 0xff);
        memcpy(at, header, length);
        at += length;
        for (size_t i = 0; i < n; i++) {
            memcpy(at, tensor[i].data, elements_of(&tensor[i]) * SINGLE_BYTES);
            at += elements_of(&tensor[i]) * SINGLE_BYTES;
        }
        status = sm_io_write(path, file, total, err);
    }
    sm_free(file);
    free(header);
    return status;
}

/* ---- reading ---- */

typedef struct reading {
    const sm_source *file;
    const char *data;
    size_t bytes; /* of the data */
    sm_arena *arena;
    sm_safetensors *out;
    sm_error *err;
} reading;

static sm_status refuse(const reading *r, const char *name, const char *what) {
    return sm_fail(r->err, SM_BAD_INPUT, "%.200s is no whole safetensors file: %.60s%s%s",
                   r->file->name, name, *name ? " " : "", what);
}

static bool whole_number(const json_t *value, size_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (size_t)json_integer_value(value);
    return true;
}

static bool read_shape(const json_t *list, sm_safetensor *t, size_t most) {
    if (!json_is_array(list) || json_array_size(list) > SM_SAFETENSOR_RANK) return false;
    size_t n = 1;
    t->rank = (int)json_array_size(list);
    for (int d = 0; d < t->rank; d++) {
        if (!whole_number(json_array_get(list, (size_t)d), &t->shape[d])) return false;
        if (t->shape[d] == 0 || n > most / t->shape[d]) return false;
        n *= t->shape[d];
    }
    return true;
}

static sm_status read_tensor(reading *r, const char *name, const json_t *value, sm_safetensor *t) {
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *place = json_object_get(value, "data_offsets");
    size_t from, to;
    t->name = sm_arena_copy(r->arena, name, strlen(name));
    if (!t->name) return sm_fail_memory(r->err);
    if (!dtype || strcmp(dtype, "F32") != 0) return refuse(r, name, "is not of dtype F32");
    if (!read_shape(json_object_get(value, "shape"), t, r->bytes))
        return refuse(r, name, "has no shape that fits the file");
    if (!whole_number(json_array_get(place, 0), &from) ||
        !whole_number(json_array_get(place, 1), &to) || from > to || to > r->bytes ||
        to - from != elements_of(t) * SINGLE_BYTES)
        return refuse(r, name, "does not lie inside the file");
    float *data = sm_arena_alloc(r->arena, to - from + 1);
    if (!data) return sm_fail_memory(r->err);
    memcpy(data, r->data + from, to - from);
    t->data = data;
    return SM_OK;
}

static void read_steps(const json_t *metadata, uint64_t *steps) {
    const char *text = json_string_value(json_object_get(metadata, "steps"));
    *steps = text ? strtoull(text, NULL, 10) : 0;
}

static sm_status read_tensors(reading *r, json_t *root) {
    const char *name;
    json_t *value;
    sm_status status = SM_OK;
    if (!json_is_object(root)) return refuse(r, "", "its header is no object");
    r->out->tensor = sm_arena_array(r->arena, json_object_size(root) + 1, sizeof *r->out->tensor);
    if (!r->out->tensor) return sm_fail_memory(r->err);
    json_object_foreach(root, name, value) {
        if (strcmp(name, "__metadata__") == 0) read_steps(value, &r->out->steps);
        else if (!status) status = read_tensor(r, name, value, &r->out->tensor[r->out->n++]);
    }
    return status;
}

sm_status sm_io_safetensors_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err) {
    sm_source file;
    uint64_t length = 0;
    *out = (sm_safetensors){.n = 0};
    sm_status status = sm_io_read(path, arena, &file, err);
    if (status) return status;
    reading r = {.file = &file, .arena = arena, .out = out, .err = err};
    for (int i = PREFIX_BYTES - 1; file.length >= PREFIX_BYTES && i >= 0; i--)
        length = length << 8 | (unsigned char)file.text[i];
    if (file.length < PREFIX_BYTES || length > file.length - PREFIX_BYTES)
        return refuse(&r, "", "it ends before its header does");
    r.data = file.text + PREFIX_BYTES + length;
    r.bytes = file.length - PREFIX_BYTES - (size_t)length;
    const sm_source header = {file.name, file.text + PREFIX_BYTES, (size_t)length};
    json_t *root;
    status = sm_json_load(&header, err, &root);
    if (!status) status = read_tensors(&r, root);
    json_decref(root);
    return status;
}

const sm_safetensor *sm_safetensors_find(const sm_safetensors *file, const char *name) {
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->tensor[i].name, name) == 0) return &file->tensor[i];
    return NULL;
}
