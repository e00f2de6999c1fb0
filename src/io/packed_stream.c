#include "file_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#if __has_include(<lzma.h>)
#include <lzma.h>
#define HAS_XZ 1
#else /* in a browser */
#define HAS_XZ 0
#endif

enum { PACKED_BUFFER = 1 << 17, XZ_MOST_MEMORY = 1 << 28 };

typedef enum packing { PLAIN, GZIP, ZSTD, XZ } packing;

struct packed_stream {
    const char *path;
    int file; /* -1: memory */
    sm_source memory;
    size_t taken; /* of it */
    bool plain;   /* not to be unpacked */
    packing packing;
    bool ended, mid;             /* of the file; within a packed frame */
    unsigned char *in;           /* of PACKED_BUFFER bytes as they are in the file */
    size_t at, end;              /* of them: not unpacked yet */
    char first[PACKED_PEEK + 1]; /* 0-terminated */
    size_t peeked, given;
    uint64_t read, unpacked, size; /* of a regular file; 0: not known */
    z_stream z;
    ZSTD_DStream *zstd;
#if HAS_XZ
    lzma_stream xz;
#endif
};

static sm_status damaged(const packed_stream *s, sm_error *err) {
    static const char *const names[] = {[GZIP] = "gzip", [ZSTD] = "zstd", [XZ] = "xz"};
    return sm_fail(err, SM_BAD_INPUT, "%s: the %s data is damaged or cut short at byte %llu",
                   s->path, names[s->packing], (unsigned long long)(s->read - (s->end - s->at)));
}

static ssize_t read_packed(packed_stream *s) {
    if (s->file >= 0) return read(s->file, s->in, PACKED_BUFFER);
    size_t left = s->memory.length - s->taken, n = left < PACKED_BUFFER ? left : PACKED_BUFFER;
    if (n) memcpy(s->in, s->memory.text + s->taken, n);
    s->taken += n;
    return (ssize_t)n;
}

/* More bytes of the file behind those that wait; s->ended when there are none. */
static sm_status fill(packed_stream *s, sm_error *err) {
    if (s->at < s->end || s->ended) return SM_OK;
    ssize_t n;
    do n = read_packed(s);
    while (n < 0 && errno == EINTR);
    if (n < 0) return sm_fail_system(err, "read", s->path, errno);
    s->at = 0;
    s->end = (size_t)n;
    s->read += s->end;
    s->ended = n == 0;
    return SM_OK;
}

/* Members of a gzip file follow each other. */
static sm_status inflate_some(packed_stream *s, char *to, size_t most, size_t *got, sm_error *err) {
    s->z.next_in = s->in + s->at;
    s->z.avail_in = (unsigned)(s->end - s->at);
    s->z.next_out = (unsigned char *)to;
    s->z.avail_out = (unsigned)(most < 1u << 30 ? most : 1u << 30);
    unsigned room = s->z.avail_out;
    int code = inflate(&s->z, Z_NO_FLUSH);
    s->at = s->end - s->z.avail_in;
    *got = room - s->z.avail_out;
    s->mid = code != Z_STREAM_END;
    if (code == Z_MEM_ERROR) return sm_fail_memory(err);
    if (code == Z_STREAM_END) return inflateReset(&s->z) == Z_OK ? SM_OK : damaged(s, err);
    return code == Z_OK || code == Z_BUF_ERROR ? SM_OK : damaged(s, err);
}

static sm_status unzstd_some(packed_stream *s, char *to, size_t most, size_t *got, sm_error *err) {
    ZSTD_inBuffer in = {s->in, s->end, s->at};
    ZSTD_outBuffer out = {to, most, 0};
    size_t code = ZSTD_decompressStream(s->zstd, &out, &in);
    s->at = in.pos;
    if (ZSTD_isError(code)) return damaged(s, err);
    *got = out.pos;
    s->mid = code != 0;
    return SM_OK;
}

#if HAS_XZ
static sm_status begin_xz(packed_stream *s, sm_error *err) {
    s->xz = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_stream_decoder(&s->xz, XZ_MOST_MEMORY, LZMA_CONCATENATED) == LZMA_OK
               ? SM_OK
               : sm_fail_memory(err);
}

static sm_status unxz_some(packed_stream *s, char *to, size_t most, size_t *got, sm_error *err) {
    s->xz.next_in = s->in + s->at;
    s->xz.avail_in = s->end - s->at;
    s->xz.next_out = (unsigned char *)to;
    s->xz.avail_out = most;
    lzma_ret code = lzma_code(&s->xz, s->ended ? LZMA_FINISH : LZMA_RUN);
    s->at = s->end - s->xz.avail_in;
    *got = most - s->xz.avail_out;
    s->mid = code != LZMA_STREAM_END;
    if (code == LZMA_MEM_ERROR) return sm_fail_memory(err);
    return code == LZMA_OK || code == LZMA_STREAM_END || code == LZMA_BUF_ERROR ? SM_OK
                                                                                : damaged(s, err);
}
#else
static sm_status begin_xz(packed_stream *s, sm_error *err) {
    return sm_fail(err, SM_BAD_INPUT, "%s is packed by xz: unpack it first (xz -d)", s->path);
}

static sm_status unxz_some(packed_stream *s, char *to, size_t most, size_t *got, sm_error *err) {
    (void)to, (void)most, *got = 0;
    return damaged(s, err);
}
#endif

static sm_status copy_some(packed_stream *s, char *to, size_t most, size_t *got) {
    size_t left = s->end - s->at;
    *got = left < most ? left : most;
    if (*got) memcpy(to, s->in + s->at, *got);
    s->at += *got;
    return SM_OK;
}

/* What is not peeked yet. */
static sm_status unpack(packed_stream *s, char *to, size_t most, size_t *got, sm_error *err) {
    sm_status status = SM_OK;
    for (*got = 0; !status && *got == 0;) {
        status = fill(s, err);
        if (status || (s->ended && (s->packing != XZ || !s->mid))) break;
        bool ended = s->ended; /* of xz the end is asked for: a frame may follow */
        status = s->packing == GZIP   ? inflate_some(s, to, most, got, err)
                 : s->packing == ZSTD ? unzstd_some(s, to, most, got, err)
                 : s->packing == XZ   ? unxz_some(s, to, most, got, err)
                                      : copy_some(s, to, most, got);
        if (ended && *got == 0) break;
    }
    s->unpacked += *got;
    /* is what it becomes out of all proportion to what was read? */
    bool small = s->packing == PLAIN || s->unpacked <= PACKED_FREE_BYTES;
    if (!status && !small && s->unpacked / PACKED_MOST_RATIO > s->read)
        return sm_fail(err, SM_BAD_INPUT,
                       "%s: what is packed becomes more than %d times as large: a file that is "
                       "meant so is read once it is unpacked",
                       s->path, PACKED_MOST_RATIO);
    return !status && *got == 0 && s->mid ? damaged(s, err) : status;
}

static sm_status read_some(void *context, char *to, size_t most, size_t *got, sm_error *err) {
    packed_stream *s = context;
    size_t left = s->peeked - s->given;
    if (left == 0) return unpack(s, to, most, got, err);
    *got = left < most ? left : most;
    memcpy(to, s->first + s->given, *got);
    s->given += *got;
    return SM_OK;
}

/* ---- opening ---- */

static bool begins(const packed_stream *s, const char *magic, size_t n) {
    return s->end >= n && memcmp(s->in, magic, n) == 0;
}

static sm_status begin(packed_stream *s, sm_error *err) {
    sm_status status = fill(s, err);
    if (status) return status;
    s->packing = s->plain                           ? PLAIN
                 : begins(s, "\x1f\x8b", 2)         ? GZIP
                 : begins(s, "\x28\xb5\x2f\xfd", 4) ? ZSTD
                 : begins(s, "\xfd\x37zXZ\x00", 6)  ? XZ
                                                    : PLAIN;
    s->mid = s->packing != PLAIN;
    if (s->packing == GZIP && inflateInit2(&s->z, 15 + 16) != Z_OK) return sm_fail_memory(err);
    if (s->packing == ZSTD && !(s->zstd = ZSTD_createDStream())) return sm_fail_memory(err);
    if (s->packing == XZ) status = begin_xz(s, err);
    for (size_t got = 1; !status && got && s->peeked < PACKED_PEEK; s->peeked += got)
        status = unpack(s, s->first + s->peeked, PACKED_PEEK - s->peeked, &got, err);
    return status;
}

/* The file is closed with the stream, and where there is none. */
static sm_status begin_stream(const char *path, int file, bool plain, sm_source memory,
                              packed_stream **out, sm_error *err) {
    struct stat is;
    packed_stream *s = sm_calloc(1, sizeof *s);
    unsigned char *in = s ? sm_malloc(PACKED_BUFFER) : NULL;
    if (!in) {
        if (file >= 0) close(file);
        sm_free(s);
        return sm_fail_memory(err);
    }
    s->path = path;
    s->file = file;
    s->memory = memory;
    s->plain = plain;
    s->in = in;
    if (file >= 0 && fstat(file, &is) == 0 && S_ISREG(is.st_mode)) s->size = (uint64_t)is.st_size;
    sm_status status = begin(s, err);
    if (status) packed_close(s);
    else *out = s;
    return status;
}

sm_status packed_open(const char *path, bool plain, packed_stream **out, sm_error *err) {
    bool input = !plain && strcmp(path, "-") == 0;
    struct stat is;
    int file = input ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return sm_fail_system(err, "open", path, errno);
    if (fstat(file, &is) == 0 && S_ISDIR(is.st_mode)) {
        close(file);
        return sm_fail_system(err, "read", path, EISDIR);
    }
    return begin_stream(input ? "standard input" : path, file, plain, (sm_source){path, "", 0}, out,
                        err);
}

sm_status packed_of(const sm_source *bytes, packed_stream **out, sm_error *err) {
    return begin_stream(bytes->name, -1, false, *bytes, out, err);
}

static void end_unpacking(packed_stream *s) {
    if (s->packing == GZIP) inflateEnd(&s->z);
    ZSTD_freeDStream(s->zstd);
#if HAS_XZ
    if (s->packing == XZ) lzma_end(&s->xz);
#endif
    s->z = (z_stream){0};
    s->zstd = NULL;
    s->packing = PLAIN;
}

sm_status packed_rewind(packed_stream *s, sm_error *err) {
    if (s->file >= 0 && lseek(s->file, 0, SEEK_SET) < 0)
        return sm_fail(err, SM_IO, "cannot read %s a second time", s->path);
    end_unpacking(s);
    s->ended = false;
    s->at = s->end = s->taken = s->peeked = s->given = 0;
    s->read = s->unpacked = 0;
    return begin(s, err);
}

void packed_close(packed_stream *s) {
    if (!s) return;
    end_unpacking(s);
    if (s->file >= 0) close(s->file);
    sm_free(s->in);
    sm_free(s);
}

sm_source packed_first(const packed_stream *s) { return (sm_source){s->path, s->first, s->peeked}; }

sm_bytes packed_bytes(packed_stream *s) { return (sm_bytes){s->path, s, read_some}; }

/* ---- whole ---- */

static sm_status too_large(const packed_stream *s, size_t most, sm_error *err) {
    return sm_fail(err, SM_IO, "cannot read %s: it is larger than %zu MiB", s->path, most >> 20);
}

/* At least one byte beyond `most`, by which what is larger tells itself. */
static sm_status more_room(const packed_stream *s, char **bytes, size_t length, size_t *room,
                           size_t most, sm_error *err) {
    if (length > most) return too_large(s, most, err);
    size_t wide = *room ? 2 * *room : PACKED_BUFFER;
    if (wide > most) wide = most + 1;
    char *larger = sm_realloc(*bytes, wide);
    if (!larger) return sm_fail_memory(err);
    *bytes = larger;
    *room = wide;
    return SM_OK;
}

/* What is of known size, as it was opened, goes to its place at once. */
sm_status packed_rest(packed_stream *s, size_t most, sm_arena *arena, sm_source *out,
                      sm_error *err) {
    const bool known = s->packing == PLAIN && s->size > 0;
    size_t length = 0, room = known ? (size_t)s->size : 0, got = 1;
    if (s->size > most) return too_large(s, most, err);
    char *text = known ? sm_arena_alloc(arena, room + 1) : NULL, *bytes = text;
    sm_status status = known && !text ? sm_fail_memory(err) : SM_OK;
    while (!status && got && !(known && length == room)) {
        if (length == room) status = more_room(s, &bytes, length, &room, most, err);
        if (!status) status = read_some(s, bytes + length, room - length, &got, err);
        length += status ? 0 : got;
    }
    if (!status && !known) text = sm_arena_copy(arena, bytes, length);
    const char *name = status ? NULL : sm_arena_copy(arena, s->path, strlen(s->path));
    if (!known) sm_free(bytes);
    if (!status && (!text || !name)) return sm_fail_memory(err);
    if (!status) *out = (sm_source){name, text, length};
    return status;
}
