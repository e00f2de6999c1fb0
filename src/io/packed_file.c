/* Whole files that may be packed by gzip. */
#include "line_reader.h"
#include "scalemodel/io.h"
#include <string.h>
#include <zlib.h>

enum { FIRST_ROOM = 1 << 16 };

static bool begins(const sm_source *s, const char *magic, size_t n) {
    return s->length >= n && memcmp(s->text, magic, n) == 0;
}

static sm_status damaged(const char *path, sm_error *err) {
    return sm_fail(err, SM_BAD_INPUT, "%s: the gzip data is damaged or cut short", path);
}

typedef struct unpacking {
    z_stream z;
    size_t most;
    char *out;
    size_t length, room;
} unpacking;

static sm_status more_room(unpacking *u, const char *path, sm_error *err) {
    if (u->length > u->most ||
        (u->length > LINE_FREE_BYTES && u->length / LINE_MOST_RATIO > u->z.total_in))
        return sm_fail(err, SM_BAD_INPUT, "%s: it holds more than %zu bytes", path, u->most);
    size_t room = u->room ? 2 * u->room : FIRST_ROOM;
    char *larger = sm_realloc(u->out, room + 1);
    if (!larger) return sm_fail_memory(err);
    u->out = larger;
    u->room = room;
    return SM_OK;
}

/* Members of a gzip file follow each other. */
static sm_status unpack(unpacking *u, const char *path, sm_error *err) {
    for (;;) {
        sm_status status = u->length == u->room ? more_room(u, path, err) : SM_OK;
        if (status) return status;
        size_t left = u->room - u->length;
        u->z.next_out = (unsigned char *)u->out + u->length;
        u->z.avail_out = (unsigned)(left < 1u << 30 ? left : 1u << 30);
        unsigned before = u->z.avail_out;
        int code = inflate(&u->z, Z_NO_FLUSH);
        u->length += before - u->z.avail_out;
        if (code == Z_MEM_ERROR) return sm_fail_memory(err);
        if (code == Z_STREAM_END) {
            if (u->z.avail_in == 0) break;
            if (inflateReset(&u->z) != Z_OK) return damaged(path, err);
        } else if (code != Z_OK || (u->z.avail_in == 0 && u->z.avail_out > 0)) {
            return damaged(path, err);
        }
    }
    return u->length > u->most
               ? sm_fail(err, SM_BAD_INPUT, "%s: it holds more than %zu bytes", path, u->most)
               : SM_OK;
}

static sm_status unpack_gzip(const char *path, size_t most, sm_arena *arena, sm_source *source,
                             sm_error *err) {
    unpacking u = {.most = most};
    u.z.next_in = (unsigned char *)(uintptr_t)source->text;
    u.z.avail_in = (unsigned)source->length;
    if (inflateInit2(&u.z, 15 + 16) != Z_OK) return sm_fail_memory(err);
    sm_status status = unpack(&u, path, err);
    inflateEnd(&u.z);
    char *text = status ? NULL : sm_arena_copy(arena, u.out, u.length);
    sm_free(u.out);
    if (!status && !text) return sm_fail_memory(err);
    if (!status) *source = (sm_source){source->name, text, u.length};
    return status;
}

sm_status sm_io_read_packed(const char *path, size_t most, sm_arena *arena, sm_source *source,
                            sm_error *err) {
    sm_status status = sm_io_read_most(path, most, arena, source, err);
    if (status) return status;
    if (begins(source, "\x28\xb5\x2f\xfd", 4))
        return sm_fail(err, SM_BAD_INPUT, "%s is packed by zstd: unpack it first (zstd -d)", path);
    if (begins(source,
               "\xfd"
               "7zXZ",
               5))
        return sm_fail(err, SM_BAD_INPUT, "%s is packed by xz: unpack it first (xz -d)", path);
    return begins(source, "\x1f\x8b", 2) ? unpack_gzip(path, most, arena, source, err) : SM_OK;
}
