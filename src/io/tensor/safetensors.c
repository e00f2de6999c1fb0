/* Reading safetensors: the headers at once, the data when it is asked for. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "json_tree.h"
#include "safetensors_front.h"
#include "file_parts.h"

/* Bytes of a file from a place on; fewer where it ends. -1 with errno. */
static ssize_t read_at(int file, void *to, size_t bytes, uint64_t at) {
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = pread(file, (char *)to + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static sm_status open_file(const char *path, int *file, uint64_t *bytes, sm_error *err) {
    struct stat of;
    *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would wait for a writer */
    if (*file < 0) return sm_fail_system(err, "open", path, errno);
    if (fstat(*file, &of) != 0 || !S_ISREG(of.st_mode)) {
        close(*file);
        return sm_fail(err, SM_BAD_INPUT, "%.200s is no regular file", path);
    }
    *bytes = (uint64_t)of.st_size;
    return SM_OK;
}

/* ---- headers ---- */

typedef struct front {
    int file;
    uint64_t bytes, length; /* of the file, of the header */
    char *text;             /* prefix and header */
} front;

static sm_status read_front(const char *path, sm_arena *arena, front *f, sm_error *err) {
    unsigned char prefix[FRONT_PREFIX_BYTES] = {0};
    f->length = 0;
    ssize_t n = read_at(f->file, prefix, sizeof prefix, 0);
    if (n < 0) return sm_fail_system(err, "read", path, errno);
    for (int i = FRONT_PREFIX_BYTES - 1; i >= 0; i--) f->length = f->length << 8 | prefix[i];
    if (f->bytes < FRONT_PREFIX_BYTES || f->length > f->bytes - FRONT_PREFIX_BYTES)
        return front_refuse(path, "", "it ends before its header does", err);
    if (f->length > JSON_MOST_BYTES)
        return front_refuse(path, "", "its header has more than 16 MiB", err);
    size_t whole = (size_t)f->length + FRONT_PREFIX_BYTES;
    f->text = sm_arena_alloc(arena, whole + 1);
    if (!f->text) return sm_fail_memory(err);
    n = read_at(f->file, f->text, whole, 0);
    if (n < 0) return sm_fail_system(err, "read", path, errno);
    return (size_t)n == whole ? SM_OK
                              : front_refuse(path, "", "it ends before its header does", err);
}

sm_status safetensors_header_read(const char *path, sm_arena *arena, sm_source *header,
                                  sm_error *err) {
    front f = {.length = 0};
    sm_status status = open_file(path, &f.file, &f.bytes, err);
    if (status) return status;
    status = read_front(path, arena, &f, err);
    close(f.file);
    if (!status) *header = (sm_source){path, f.text + FRONT_PREFIX_BYTES, (size_t)f.length};
    return status;
}

sm_status safetensors_file_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                sm_error *err) {
    front f = {.length = 0};
    *out = (sm_safetensors){.n = 0};
    const char *name = sm_arena_copy(arena, path, strlen(path)); /* the tensors point to it */
    if (!name) return sm_fail_memory(err);
    sm_status status = open_file(name, &f.file, &f.bytes, err);
    if (status) return status;
    status = read_front(name, arena, &f, err);
    if (!status) {
        size_t whole = (size_t)f.length + FRONT_PREFIX_BYTES;
        const sm_source header = {name, f.text + FRONT_PREFIX_BYTES, (size_t)f.length};
        status = sm_io_safetensors_parse(&header, f.bytes - whole, arena, out, err);
        out->checksum = (uint32_t)crc32_z(0, (const unsigned char *)f.text, whole);
        for (size_t i = 0; !status && i < out->n; i++) out->tensor[i].at += whole;
    }
    close(f.file);
    return status;
}

sm_status sm_io_safetensors_held(const sm_source *file, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err) {
    const size_t rest = file->length < FRONT_PREFIX_BYTES ? 0 : file->length - FRONT_PREFIX_BYTES;
    uint64_t length = 0;
    *out = (sm_safetensors){.n = 0};
    for (int i = FRONT_PREFIX_BYTES - 1; rest && i >= 0; i--)
        length = length << 8 | (unsigned char)file->text[i];
    if (!rest || length > rest)
        return front_refuse(file->name, "", "it ends before its header does", err);
    const sm_source header = {file->name, file->text + FRONT_PREFIX_BYTES, (size_t)length};
    sm_status status = sm_io_safetensors_parse(&header, rest - length, arena, out, err);
    for (size_t i = 0; !status && i < out->n; i++) {
        out->tensor[i].held = file->text;
        out->tensor[i].at += FRONT_PREFIX_BYTES + length;
    }
    return status;
}

sm_status sm_io_safetensors_read(const char *path, sm_arena *arena, sm_safetensors *out,
                                 sm_error *err) {
    struct stat of;
    *out = (sm_safetensors){.n = 0};
    if (stat(path, &of) == 0 && S_ISDIR(of.st_mode))
        return checkpoint_folder_read(path, arena, out, err);
    return safetensors_file_read(path, arena, out, err);
}

/* ---- data ---- */

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* IEEE 754 half. */
static float of_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, part = h & 0x3ffu;
    if (exponent == 0) return (sign ? -1.0F : 1.0F) * ldexpf((float)part, -24);
    return of_bits(sign | (exponent == 0x1f ? 0xffu : exponent + 112) << 23 | part << 13);
}

/* e4m3fn (Micikevicius et al., arXiv 2209.05433, table 1): no infinities. */
static float of_e4m3(unsigned char b) {
    int exponent = b >> 3 & 15, part = b & 7;
    float x = (b & 0x7f) == 0x7f ? NAN
              : exponent         ? ldexpf((float)(8 + part), exponent - 10)
                                 : ldexpf((float)part, -9);
    return b & 0x80 ? -x : x;
}

static size_t width_of(sm_dtype type) {
    return type == SM_DTYPE_COUNT ? 0 : (size_t)sm_dtype_bytes(type);
}

static void widen(const unsigned char *from, sm_dtype type, size_t n, float *to) {
    for (size_t i = 0; i < n; i++) {
        uint16_t half = 0;
        if (type == SM_FP16 || type == SM_BF16) memcpy(&half, from + 2 * i, sizeof half);
        switch (type) {
        case SM_FP16: to[i] = of_half(half); break;
        case SM_BF16: to[i] = of_bits((uint32_t)half << 16); break;
        case SM_FP8: to[i] = of_e4m3(from[i]); break;
        case SM_INT8: to[i] = (float)(signed char)from[i]; break;
        default: memcpy(&to[i], from + sizeof *to * i, sizeof *to); break;
        }
    }
}

static sm_status read_bytes(const sm_safetensor *t, uint64_t at, size_t bytes, unsigned char *to,
                            sm_error *err) {
    int file;
    uint64_t size;
    if (t->held) {
        memcpy(to, t->held + t->at + at, bytes);
        return SM_OK;
    }
    sm_status status = open_file(t->path, &file, &size, err);
    if (status) return status;
    ssize_t n = read_at(file, to, bytes, t->at + at);
    if (n < 0) status = sm_fail_system(err, "read", t->path, errno);
    close(file);
    if (!status && (size_t)n < bytes)
        status = sm_fail(err, SM_BAD_INPUT, "%.200s has been cut short while it was read", t->path);
    return status;
}

static sm_status check_sum(const sm_safetensor *t, const unsigned char *all, sm_error *err) {
    uint32_t sum = (uint32_t)crc32_z(0, all, (size_t)t->bytes);
    if (!t->checked || sum == t->checksum) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT,
                   "%.100s in %.200s is damaged: its checksum is %08lx, and %08lx was written",
                   t->name, t->path, (unsigned long)sum, (unsigned long)t->checksum);
}

sm_status sm_io_safetensor_load_part(const sm_safetensor *t, size_t first, size_t numbers,
                                     float *to, sm_error *err) {
    size_t width = width_of(t->type);
    if (!width)
        return sm_fail(err, SM_BAD_INPUT, "%.100s in %.200s is of a type that is not read", t->name,
                       t->path);
    if (first > t->bytes / width || numbers > t->bytes / width - first)
        return sm_fail(err, SM_INTERNAL, "%.100s has no such part", t->name);
    size_t bytes = t->checked ? (size_t)t->bytes : numbers * width;
    unsigned char *read = sm_malloc(bytes + 1);
    if (!read) return sm_fail_memory(err);
    sm_status status = read_bytes(t, t->checked ? 0 : first * width, bytes, read, err);
    if (!status && t->checked) status = check_sum(t, read, err);
    if (!status) widen(t->checked ? read + first * width : read, t->type, numbers, to);
    sm_free(read);
    return status;
}

sm_status sm_io_safetensor_load_bytes(const sm_safetensor *t, size_t first, size_t bytes, void *to,
                                      sm_error *err) {
    if (first > t->bytes || bytes > t->bytes - first)
        return sm_fail(err, SM_BAD_INPUT, "%.100s in %.200s has %.0f bytes, too few", t->name,
                       t->path, (double)t->bytes);
    return read_bytes(t, first, bytes, to, err);
}

sm_status sm_io_safetensor_load(const sm_safetensor *t, float *to, sm_error *err) {
    size_t width = width_of(t->type);
    return sm_io_safetensor_load_part(t, 0, width ? (size_t)t->bytes / width : 0, to, err);
}
