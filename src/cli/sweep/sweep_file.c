/* The rows of a sweep as a file. What an interrupted sweep leaves is its first rows, of which the
 * last may be cut, and FILE.sweep with the words of its questions. */
#include "sweep.h"
#include "csv_record.h"
#include "scalemodel/io.h"
#include "scalemodel/render.h"
#include <errno.h>
#include <unistd.h>

struct sweep_file {
    const sweep *s;
    const char *path, *mark; /* FILE.sweep */
    sm_file_lock *lock;
    FILE *out;
};

static sm_status fail_file(const char *what, const char *path, sm_error *err) {
    if (errno == ENOMEM) return sm_fail_memory(err);
    return sm_fail(err, SM_IO, "cannot %s %.200s: %s", what, path, strerror(errno));
}

/* ---- what it is a sweep of ---- */

static char *words_of(const sweep *s, sm_arena *arena) {
    char *text =
        sm_arena_printf(arena, "scalemodel %s sweep\n%s\n", sm_version(), s->verb->about->name);
    for (int i = 0; i < s->words && text; i++)
        text = sm_arena_printf(arena, "%s%s\n", text, s->word[i]);
    if (text)
        text = sm_arena_printf(arena, "%splan %s\nsystem %s\n", text, s->plan ? s->plan : "",
                               s->system_file ? s->system_file : "");
    for (int i = 0; i < s->axes && text; i++) {
        uint64_t hash = SM_HASH_SEED;
        for (int k = 0; k < s->axis[i].n; k++)
            hash = sm_hash_mixed(hash,
                                 sm_hash_bytes(s->axis[i].value[k], strlen(s->axis[i].value[k])));
        text = sm_arena_printf(arena, "%s%s %d values %016llx\n", text, s->axis[i].key,
                               s->axis[i].n, (unsigned long long)hash);
    }
    for (int i = 0; i < s->columns && text; i++)
        text = sm_arena_printf(arena, "%s%s\n", text, s->column[i]);
    return text;
}

/* ---- going on ---- */

/* Records that are whole, the head among them; *end: the bytes they take. */
static int64_t read_records(const sweep *s, const sm_source *text, sweep_plot *plot,
                            sm_arena *arena, size_t *end) {
    const char *cell[SWEEP_MOST_CELLS];
    const int n = sweep_cells(s);
    csv_record record;
    int64_t records = 0;
    size_t at = 0;
    *end = 0;
    while (at < text->length && csv_read(text, &at, n, &record) && text->text[at - 1] == '\n') {
        *end = at;
        bool all = plot && records > 0;
        for (int i = 0; i < n && all; i++)
            all = (cell[i] = csv_copy(text, record.cell[i], arena)) != NULL;
        if (all) sweep_plot_put(plot, records - 1, cell);
        records++;
    }
    return records;
}

static sm_status go_on(sweep_file *f, const char *words, sweep_plot *plot, sm_arena *arena,
                       int64_t *rows, sm_error *err) {
    sm_source mark, text;
    size_t end;
    sm_status status = sm_io_read(f->mark, arena, &mark, err);
    if (status) return status;
    if (strcmp(mark.text, words) != 0)
        return sm_fail(err, SM_IO,
                       "%.200s is what another sweep has left unfinished: remove %.200s to begin "
                       "anew",
                       f->path, f->mark);
    status = sm_io_read_most(f->path, SM_IO_DATA_BYTES, arena, &text, err);
    if (status) return status;
    *rows = read_records(f->s, &text, plot, arena, &end) - 1;
    if (*rows < 0) return SM_OK;
    if (truncate(f->path, (off_t)end) != 0) return fail_file("cut", f->path, err);
    f->out = fopen(f->path, "ab");
    return f->out ? SM_OK : fail_file("open", f->path, err);
}

/* The rows of before go first, so that no mark ever stands beside them. */
static sm_status begin_anew(sweep_file *f, const char *words, sm_error *err) {
    const char *head[SWEEP_MOST_CELLS];
    const int n = sweep_cells(f->s);
    f->out = fopen(f->path, "wb");
    if (!f->out) return fail_file("open", f->path, err);
    for (int i = 0; i < n; i++) head[i] = sweep_head(f->s, i);
    sm_render_record(head, (size_t)n, f->out);
    if (fflush(f->out) != 0) return fail_file("write", f->path, err);
    return sm_io_write(f->mark, words, strlen(words), err);
}

sm_status sweep_file_open(const char *path, const sweep *s, sweep_plot *plot, sm_arena *arena,
                          sweep_file **out, int64_t *rows, sm_error *err) {
    sweep_file *f = sm_arena_alloc(arena, sizeof *f);
    const char *words = words_of(s, arena);
    *out = NULL;
    *rows = -1;
    if (!f || !words) return sm_fail_memory(err);
    *f = (sweep_file){.s = s, .path = path, .mark = sm_arena_printf(arena, "%s.sweep", path)};
    if (!f->mark) return sm_fail_memory(err);
    sm_status status = sm_io_lock(path, false, &f->lock, err);
    if (!status && access(f->mark, F_OK) == 0 && access(path, F_OK) == 0)
        status = go_on(f, words, plot, arena, rows, err);
    if (!status && *rows < 0) {
        *rows = 0;
        status = begin_anew(f, words, err);
    }
    *out = f;
    return status;
}

sm_status sweep_file_put(sweep_file *f, const char *const *cell, sm_error *err) {
    sm_render_record(cell, (size_t)sweep_cells(f->s), f->out);
    return fflush(f->out) == 0 ? SM_OK : fail_file("write", f->path, err);
}

sm_status sweep_file_close(sweep_file *f, bool all, sm_error *err) {
    sm_status status = SM_OK;
    if (!f) return SM_OK;
    if (f->out && fclose(f->out) != 0) status = fail_file("write", f->path, err);
    if (all && !status && unlink(f->mark) != 0) status = fail_file("remove", f->mark, err);
    sm_io_unlock(f->lock);
    return status;
}
