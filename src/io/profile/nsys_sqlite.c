/* The database that Nsight Systems exports: a table of each kind of event, which is there when it
 * has rows; times are nanoseconds, names numbers of StringIds. */
#include <sqlite3.h>
#include <string.h>

#include "nsys.h"

typedef struct nsys {
    trace_build *b;
    sqlite3 *db;
    const sm_source *source;
    int file, events;
} nsys;

static void damaged(nsys *n, int code) {
    if (n->b->status || code == SQLITE_OK) return;
    bool memory = code == SQLITE_NOMEM || sqlite3_errcode(n->db) == SQLITE_NOMEM;
    n->b->status = memory ? sm_fail_memory(n->b->err)
                          : sm_fail(n->b->err, SM_BAD_INPUT, "%s: the database is damaged: %s",
                                    n->source->name, sqlite3_errmsg(n->db));
}

static sqlite3_stmt *prepare(nsys *n, const char *sql) {
    sqlite3_stmt *s = NULL;
    damaged(n, sqlite3_prepare_v2(n->db, sql, -1, &s, NULL));
    return s;
}

/* Is there another row? What ends otherwise than by having no more is an error. */
static bool next_row(nsys *n, sqlite3_stmt *s) {
    int code = sqlite3_step(s);
    if (code != SQLITE_ROW && code != SQLITE_DONE) damaged(n, code);
    return code == SQLITE_ROW;
}

/* NULL where there is none, or no memory for it, which is then an error. */
static const char *text_of(nsys *n, sqlite3_stmt *s, int column) {
    const char *text = (const char *)sqlite3_column_text(s, column);
    if (!text && sqlite3_errcode(n->db) == SQLITE_NOMEM) damaged(n, SQLITE_NOMEM);
    return text;
}

/* Does this text name a table, or a column of one ("TABLE.column")? */
static bool has(nsys *n, const char *table, const char *column) {
    sqlite3_stmt *s = prepare(n, "SELECT 1 FROM pragma_table_info(?1) WHERE ?2 = '' OR name = ?2");
    if (!s) return false;
    sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, column, -1, SQLITE_STATIC);
    bool there = next_row(n, s);
    sqlite3_finalize(s);
    return there;
}

/* Rows of a query: start, end, device or thread, stream, correlation, name, bytes, process. */
typedef enum column { START, END, PLACE, STREAM, CORRELATION, NAME, BYTES, PROCESS } column;

typedef struct events {
    const char *table;
    const char *sql;
    bool host;
    sm_trace_kind kind;
} events;

static bool add_row(nsys *n, const events *of, sqlite3_stmt *s) {
    const char *name = text_of(n, s, NAME);
    int64_t start = sqlite3_column_int64(s, START), end = sqlite3_column_int64(s, END);
    int64_t place = sqlite3_column_int64(s, PLACE), process = sqlite3_column_int64(s, PROCESS);
    int64_t process_id = process >> 24 & 0xffffff;
    int device = of->host ? -1 : trace_device(n->b, n->file, (int)(place & INT16_MAX));
    sm_trace_event *e = trace_event(n->b);
    if (!e) return false;
    e->start_ps = trace_time(n->b, start, 0);
    int64_t lasts = end > start ? end - start : 0;
    e->duration_ps = lasts < INT64_MAX / 4000 ? lasts * 1000 : INT64_MAX / 4;
    e->stream = trace_stream(n->b, device, of->host ? process_id : 0,
                             of->host ? place : sqlite3_column_int64(s, STREAM));
    e->name = trace_name(n->b, name ? name : "", name ? strlen(name) : 0);
    if (sqlite3_column_int64(s, CORRELATION))
        e->correlation = process_id << 32 ^ (sqlite3_column_int64(s, CORRELATION) & UINT32_MAX);
    e->kind = (uint8_t)(of->kind == SM_TRACE_COMPUTE && name ? trace_kernel_kind(name) : of->kind);
    if (of->kind == SM_TRACE_MARK && name && trace_is_step(name)) e->kind = SM_TRACE_STEP;
    sm_trace_detail *d = NULL;
    if (sqlite3_column_type(s, BYTES) != SQLITE_NULL && (d = trace_detail(n->b, e)))
        d->bytes = (double)sqlite3_column_int64(s, BYTES);
    n->events++;
    return !n->b->status;
}

static void read_events(nsys *n, const events *of) {
    if (n->b->status || !has(n, of->table, "")) return;
    sqlite3_stmt *s = prepare(n, of->sql);
    if (!s) return;
    while (next_row(n, s) && add_row(n, of, s)) continue;
    sqlite3_finalize(s);
}

/* "Memcpy HtoD": copies have a number for their kind, in the order of CUDA's enumeration. */
#define COPY_NAMES                                                                                 \
    "CASE copyKind WHEN 1 THEN 'Memcpy HtoD' WHEN 2 THEN 'Memcpy DtoH' WHEN 8 THEN 'Memcpy DtoD' " \
    "WHEN 10 THEN 'Memcpy PtoP' ELSE 'Memcpy' END"
#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define COPIES "CUPTI_ACTIVITY_KIND_MEMCPY"
#define SETS "CUPTI_ACTIVITY_KIND_MEMSET"
#define SYNCS "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
#define CALLS "CUPTI_ACTIVITY_KIND_RUNTIME"
#define ON_DEVICE "SELECT e.start, e.end, e.deviceId, e.streamId, e.correlationId, "
#define ON_HOST "SELECT e.start, e.end, e.globalTid, 0, "

static const events all[] = {
    {KERNELS,
     ON_DEVICE "s.value, NULL, e.globalPid FROM " KERNELS
               " e LEFT JOIN StringIds s ON s.id = e.demangledName",
     false, SM_TRACE_COMPUTE},
    {COPIES, ON_DEVICE COPY_NAMES ", e.bytes, e.globalPid FROM " COPIES " e", false, SM_TRACE_COPY},
    {SETS, ON_DEVICE "'Memset', e.bytes, e.globalPid FROM " SETS " e", false, SM_TRACE_COPY},
    {SYNCS, ON_DEVICE "'synchronise', NULL, e.globalPid FROM " SYNCS " e", false, SM_TRACE_SYNC},
    {CALLS,
     ON_HOST "e.correlationId, s.value, NULL, e.globalTid FROM " CALLS
             " e LEFT JOIN StringIds s ON s.id = e.nameId",
     true, SM_TRACE_LAUNCH},
};

/* Ranges that the program marks; text or its number, of old exports without the latter. */
static void read_marks(nsys *n) {
    bool ids = has(n, "NVTX_EVENTS", "textId");
    const events marks = {
        "NVTX_EVENTS",
        ids ? ON_HOST "0, coalesce(e.text, s.value), NULL, e.globalTid FROM NVTX_EVENTS e LEFT "
                      "JOIN StringIds s ON s.id = e.textId WHERE e.end IS NOT NULL"
            : ON_HOST "0, e.text, NULL, e.globalTid FROM NVTX_EVENTS e WHERE e.end IS NOT NULL",
        true, SM_TRACE_MARK};
    read_events(n, &marks);
}

static void read_devices(nsys *n) {
    if (n->b->status || !has(n, "TARGET_INFO_GPU", "name")) return;
    sqlite3_stmt *s = prepare(n, "SELECT id, name FROM TARGET_INFO_GPU");
    if (!s) return;
    while (next_row(n, s)) {
        const char *name = text_of(n, s, 1);
        for (int i = 0; name && i < n->b->t.devices; i++) {
            sm_trace_device *d = &n->b->device[i];
            if (d->file != n->file || d->ordinal != sqlite3_column_int(s, 0)) continue;
            int32_t at = trace_name(n->b, name, strlen(name));
            if (at >= 0) d->name = n->b->names.text[at];
        }
    }
    sqlite3_finalize(s);
}

sm_status nsys_read_sqlite(trace_build *b, const sm_source *whole) {
    nsys n = {.b = b, .source = whole, .file = trace_file(b, whole->name, "Nsight Systems")};
    if (b->status) return b->status;
    int code = sqlite3_open_v2(":memory:", &n.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_deserialize(n.db, "main", (unsigned char *)(uintptr_t)whole->text,
                                   (sqlite3_int64)whole->length, (sqlite3_int64)whole->length,
                                   SQLITE_DESERIALIZE_READONLY);
    damaged(&n, code);
    for (size_t i = 0; !b->status && i < sizeof all / sizeof *all; i++) read_events(&n, &all[i]);
    if (!b->status) read_marks(&n);
    if (!b->status) read_devices(&n);
    sqlite3_close(n.db);
    b->file[n.file].end = whole->length;
    if (!b->status && n.events == 0)
        b->status =
            sm_fail(b->err, SM_BAD_INPUT, "%s: the database has no events of CUDA", whole->name);
    return b->status;
}
