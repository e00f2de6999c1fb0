/* A safetensors file as a stream: a front without checksums, the data, then the front again. */
#include <unistd.h>
#include <zlib.h>

#include "file_parts.h"
#include "safetensors_front.h"

struct sm_safetensors_writer {
    replacement *file;
    const char *path;
    size_t n, next, left; /* tensors, the one at hand, its bytes to come */
    const sm_safetensor *tensor;
    uint64_t steps;
    uint32_t *checksum;
};

static void free_writer(sm_safetensors_writer *w) {
    sm_free(w->checksum);
    sm_free(w);
}

static void begin_tensor(sm_safetensors_writer *w, size_t number) {
    w->next = number;
    w->left = number < w->n ? tensor_bytes(&w->tensor[number]) : 0;
}

/* 0 or errno in *reason. */
static sm_status write_front(const sm_safetensors_writer *w, const uint32_t *checksum, int *reason,
                             uint32_t *of_front, sm_error *err) {
    sm_source front;
    int file = replacement_file(w->file);
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    sm_status status = front_write(w->n, w->tensor, w->steps, checksum, arena, &front, err);
    if (!status) {
        *reason =
            lseek(file, 0, SEEK_SET) < 0 ? errno : write_bytes(file, front.text, front.length);
        *of_front = (uint32_t)crc32_z(0, (const unsigned char *)front.text, front.length);
    }
    sm_arena_free(arena);
    return status;
}

static sm_status new_writer(const char *path, size_t n, const sm_safetensor *tensor, uint64_t steps,
                            sm_safetensors_writer **out, sm_error *err) {
    sm_safetensors_writer *w = sm_calloc(1, sizeof *w);
    if (!w) return sm_fail_memory(err);
    *w = (sm_safetensors_writer){.path = path, .n = n, .tensor = tensor, .steps = steps};
    w->checksum = sm_calloc(n + 1, sizeof *w->checksum);
    sm_status status = w->checksum ? replacement_begin(path, &w->file, err) : sm_fail_memory(err);
    begin_tensor(w, 0);
    if (status) free_writer(w);
    else *out = w;
    return status;
}

sm_status sm_io_safetensors_begin(const char *path, size_t n, const sm_safetensor *tensor,
                                  uint64_t steps, sm_safetensors_writer **out, sm_error *err) {
    int reason = 0;
    uint32_t unused;
    *out = NULL;
    sm_status status = new_writer(path, n, tensor, steps, out, err);
    if (status) return status;
    status = write_front(*out, NULL, &reason, &unused, err);
    if (!status && reason) status = sm_fail_system(err, "write", path, reason);
    if (!status) return SM_OK;
    sm_io_safetensors_abandon(*out);
    *out = NULL;
    return status;
}

sm_status sm_io_safetensors_put(sm_safetensors_writer *w, const float *data, size_t numbers,
                                sm_error *err) {
    size_t bytes = numbers * sizeof *data;
    if (w->next == w->n || bytes > w->left)
        return sm_fail(err, SM_INTERNAL, "%.200s was given more data than it has arrays", w->path);
    int reason = write_bytes(replacement_file(w->file), data, bytes);
    if (reason) return sm_fail_system(err, "write", w->path, reason);
    uint32_t *sum = &w->checksum[w->next];
    *sum = (uint32_t)crc32_z(*sum, (const unsigned char *)data, bytes);
    w->left -= bytes;
    if (w->left == 0) begin_tensor(w, w->next + 1);
    return SM_OK;
}

sm_status sm_io_safetensors_end(sm_safetensors_writer *w, uint32_t *checksum, sm_error *err) {
    int reason = 0;
    sm_status status = SM_OK;
    if (w->next < w->n)
        status = sm_fail(err, SM_INTERNAL, "%.200s was not given all of its arrays", w->path);
    if (!status) status = write_front(w, w->checksum, &reason, checksum, err);
    if (status) {
        sm_io_safetensors_abandon(w);
        return status;
    }
    status = replacement_end(w->file, reason, err);
    free_writer(w);
    return status;
}

void sm_io_safetensors_abandon(sm_safetensors_writer *w) {
    if (!w) return;
    replacement_abandon(w->file);
    free_writer(w);
}
