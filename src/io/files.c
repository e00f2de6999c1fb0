/* Whole files in, whole files out. */
#include "scalemodel/io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "file_parts.h"

/* ---- read ---- */

static sm_status read_whole(const char *path, bool plain, size_t most, sm_arena *arena,
                            sm_source *source, sm_error *err) {
    packed_stream *s;
    sm_status status = packed_open(path, plain, &s, err);
    if (status) return status;
    status = packed_rest(s, most, arena, source, err);
    packed_close(s);
    return status;
}

sm_status sm_io_read_most(const char *path, size_t most, sm_arena *arena, sm_source *source,
                          sm_error *err) {
    return read_whole(path, true, most, arena, source, err);
}

sm_status sm_io_read_packed(const char *path, size_t most, sm_arena *arena, sm_source *source,
                            sm_error *err) {
    return read_whole(path, false, most, arena, source, err);
}

sm_status sm_io_read(const char *path, sm_arena *arena, sm_source *source, sm_error *err) {
    return sm_io_read_most(path, SM_IO_TEXT_BYTES, arena, source, err);
}

/* ---- write ---- */

sm_status sm_io_write(const char *path, const char *text, size_t length, sm_error *err) {
    replacement *r;
    sm_status status = replacement_begin(path, &r, err);
    if (status) return status;
    return replacement_end(r, write_bytes(replacement_file(r), text, length), err);
}

sm_status sm_io_write_check(const char *path, sm_error *err) {
    struct stat is;
    replacement *r;
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode)) return SM_OK;
    sm_status status = replacement_begin(path, &r, err);
    if (!status) replacement_abandon(r);
    return status;
}
