/* What `profile` is given: a compiled module, and traces of what ran: files, or folders or archives
 * of those of ranks and hosts. What a file is, its first bytes say. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "nsys.h"
#include "file_parts.h"
#include "named.h"
#include "scalemodel/io.h"

enum { MOST_FILES = 65536, MOST_ENTRIES = 131072, MOST_DEPTH = 8, MOST_PATH = 4096 };

typedef struct reading {
    trace_build b;
    sm_arena *arena;
    sm_error *err;
    sm_profiled *out;
    sm_source *found;    /* of a folder: paths; of an archive: with their bytes */
    int n, room, looked; /* looked: entries of folders that were */
    bool in_archive;
} reading;

/* ---- one file ---- */

/* A text that does not end with a computation: its whole lines, and an end to the last one. */
static sm_status mend(reading *r, sm_source *text) {
    size_t end = text->length;
    while (end > 0 && strchr(" \t\r\n", text->text[end - 1])) end--;
    size_t line = end;
    while (line > 0 && text->text[line - 1] != '\n') line--;
    if (!part_begins_with(text->text, text->length, "HloModule") ||
        (end > line && text->text[line] == '}'))
        return SM_OK;
    size_t whole = end < text->length && text->text[end] == '\n' ? end + 1 : line;
    char *mended = sm_arena_alloc(r->arena, whole + 3);
    if (!mended) return sm_fail_memory(r->err);
    memcpy(mended, text->text, whole);
    memcpy(mended + whole, "}\n", 3);
    *text = (sm_source){text->name, mended, whole + 2};
    r->out->cut = true;
    return SM_OK;
}

static sm_status read_module(reading *r, const sm_source *source) {
    sm_source *module = &r->out->module;
    if (module->length)
        return sm_fail(r->err, SM_BAD_INPUT, "%s: %s is a module already; one is read",
                       source->name, module->name);
    *module = *source;
    return r->b.partial ? mend(r, module) : SM_OK;
}

/* Formats that are read whole. */
static sm_status read_whole(reading *r, packed_stream *s) {
    sm_source whole;
    sm_status status = packed_rest(s, SM_IO_DATA_BYTES, r->arena, &whole, r->err);
    if (status) return status;
    if (part_begins_with(whole.text, whole.length, "SQLite format 3"))
        return nsys_read_sqlite(&r->b, &whole);
    if (nsys_is_csv(&whole)) return nsys_read_csv(&r->b, &whole);
    if (trace_is_perfetto(&whole)) return trace_read_perfetto(&r->b, &whole);
    return sm_trace_is_xplane(&whole) ? trace_read_xplane(&r->b, &whole) : read_module(r, &whole);
}

static sm_status read_archive(reading *r, packed_stream *s);

/* The stream is closed. */
static sm_status read_stream(reading *r, packed_stream *s) {
    sm_source first = packed_first(s);
    sm_bytes bytes = packed_bytes(s);
    size_t i = 0;
    while (i < first.length && strchr(" \t\r\n", first.text[i])) i++;
    char mark = i < first.length ? first.text[i] : '\0';
    sm_status status = SM_OK;
    bytes.name = sm_arena_copy(r->arena, bytes.name, strlen(bytes.name));
    if (!bytes.name) status = sm_fail_memory(r->err);
    else if (tar_is(&first)) status = read_archive(r, s);
    else if (first.length &&
             (unsigned char)first.text[0] < 8) /* no text; protobuf has no field 0 */
        status = sm_fail(r->err, SM_BAD_INPUT, "%s begins as no trace or module does", bytes.name);
    else if (mark == '{' || mark == '[') status = trace_read_chrome(&r->b, &bytes);
    else status = read_whole(r, s);
    packed_close(s);
    return status;
}

static sm_status read_one(reading *r, const char *path) {
    packed_stream *s;
    sm_status status = packed_open(path, false, &s, r->err);
    return status ? status : read_stream(r, s);
}

/* ---- folders ---- */

/* Without what packed it. */
static bool is_named(const char *name, const char *suffix) {
    char plain[MOST_PATH];
    snprintf(plain, sizeof plain, "%s", name);
    if (ends_with(plain, ".gz")) plain[strlen(plain) - 3] = 0;
    if (ends_with(plain, ".zst")) plain[strlen(plain) - 4] = 0;
    if (ends_with(plain, ".xz")) plain[strlen(plain) - 3] = 0;
    return ends_with(plain, suffix);
}

static sm_status keep(reading *r, sm_source one) {
    if (r->n == MOST_FILES) return sm_fail_limit(r->err, "files of a folder", r->n + 1, MOST_FILES);
    sm_source *list = sm_arena_grow(r->arena, r->found, r->n, &r->room, sizeof *list);
    const char *name = sm_arena_copy(r->arena, one.name, strlen(one.name));
    if (!list || !name) return sm_fail_memory(r->err);
    r->found = list;
    list[r->n++] = (sm_source){name, one.text, one.length};
    return SM_OK;
}

static sm_status list_folder(reading *r, const char *folder, const char *suffix, int depth) {
    char path[MOST_PATH];
    struct stat is;
    sm_status status = SM_OK;
    DIR *d = opendir(folder);
    if (!d && errno == ENOMEM) return sm_fail_memory(r->err);
    if (!d) return SM_OK; /* which may not be read */
    for (const struct dirent *entry; !status && (entry = readdir(d));) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (++r->looked > MOST_ENTRIES) /* or links that go round */
            status =
                sm_fail(r->err, SM_BAD_INPUT,
                        "%s: over %d files and folders, where those of one trace are looked for",
                        folder, MOST_ENTRIES);
        if (status || entry->d_name[0] == '.' || n >= MOST_PATH || stat(path, &is)) continue;
        if (S_ISDIR(is.st_mode) && depth < MOST_DEPTH)
            status = list_folder(r, path, suffix, depth + 1);
        else if (S_ISREG(is.st_mode) && is_named(path, suffix))
            status = keep(r, (sm_source){path, NULL, 0});
    }
    closedir(d);
    return status;
}

static sm_status list_archive(reading *r, const sm_source *archive, const char *suffix) {
    size_t at = 0;
    sm_source file;
    bool more = true;
    sm_status status = SM_OK;
    while (!status && more) {
        status = tar_next(archive, &at, r->arena, &file, &more, r->err);
        if (!status && more && is_named(file.name, suffix)) status = keep(r, file);
    }
    return status;
}

static sm_status read_found(reading *r, const sm_source *one) {
    packed_stream *s;
    if (!one->text) return read_one(r, one->name);
    sm_status status = packed_of(one, &s, r->err);
    return status ? status : read_stream(r, s);
}

/* All that a folder, or an archive in memory, holds of the first kind that it has. JAX writes each
 * run twice: an XPlane says more. */
static sm_status read_all(reading *r, const char *folder, const sm_source *archive) {
    static const char *const suffixes[] = {".xplane.pb", ".json", ".sqlite", ".pftrace", ".csv"};
    sm_status status = SM_OK;
    r->n = 0;
    for (size_t i = 0; !status && r->n == 0 && i < sizeof suffixes / sizeof *suffixes; i++) {
        r->looked = 0;
        status = archive ? list_archive(r, archive, suffixes[i])
                         : list_folder(r, folder, suffixes[i], 0);
    }
    if (!status && r->n == 0)
        return sm_fail(r->err, SM_BAD_INPUT,
                       "%s holds no trace: no file is called .xplane.pb, .json, .pftrace, .sqlite "
                       "or .csv, plain, .gz, .zst or .xz",
                       folder);
    if (r->n) qsort(r->found, (size_t)r->n, sizeof *r->found, sm_compare_texts);
    for (int i = 0; !status && i < r->n; i++) status = read_found(r, &r->found[i]);
    return status;
}

static sm_status read_archive(reading *r, packed_stream *s) {
    sm_source whole;
    const char *name = packed_first(s).name;
    if (r->in_archive)
        return sm_fail(r->err, SM_BAD_INPUT, "%s is an archive inside one: unpack it first", name);
    sm_status status = packed_rest(s, SM_IO_DATA_BYTES, r->arena, &whole, r->err);
    r->in_archive = true;
    if (!status) status = read_all(r, whole.name, &whole);
    r->in_archive = false;
    return status;
}

/* ---- all ---- */

static sm_status finish(reading *r, sm_status status, const sm_trace **trace) {
    if (!status && r->b.t.files) status = trace_end(&r->b, trace);
    trace_drop(&r->b);
    return status;
}

static void begin_reading(reading *r, bool partial, sm_arena *arena, sm_profiled *out,
                          sm_error *err) {
    *r = (reading){.arena = arena, .err = err, .out = out};
    *out = (sm_profiled){.trace = NULL};
    trace_begin(&r->b, arena, err);
    r->b.partial = partial;
}

sm_status sm_io_read_profiled(const char *const *path, int n, bool partial, sm_arena *arena,
                              sm_profiled *out, sm_error *err) {
    struct stat is;
    reading r;
    sm_status status = SM_OK;
    begin_reading(&r, partial, arena, out, err);
    for (int i = 0; !status && i < n; i++)
        status = stat(path[i], &is) == 0 && S_ISDIR(is.st_mode) ? read_all(&r, path[i], NULL)
                                                                : read_one(&r, path[i]);
    return finish(&r, status, &out->trace);
}

sm_status sm_io_profiled_of(const sm_source *source, bool partial, sm_arena *arena,
                            sm_profiled *out, sm_error *err) {
    reading r;
    packed_stream *s;
    begin_reading(&r, partial, arena, out, err);
    sm_status status = packed_of(source, &s, err);
    if (!status) status = read_stream(&r, s);
    return finish(&r, status, &out->trace);
}
