/* The lists of a trace while it is read. */
#include "trace_build.h"

#include <math.h>

enum { MOST_EVENTS = 400000000, MOST_NAMES = 1 << 26, MOST_PROGRAMS = 4096, FIRST_ROOM = 1024 };

static void failed(trace_build *b) {
    if (!b->status) b->status = sm_fail_memory(b->err);
}

static void too_many(trace_build *b, const char *what, int most) {
    if (!b->status)
        b->status = sm_fail(b->err, SM_BAD_INPUT, "%s: more than %d %s",
                            b->t.files ? b->file[b->t.files - 1].name : "trace", most, what);
}

void trace_begin(trace_build *b, sm_arena *arena, sm_error *err) {
    *b = (trace_build){.arena = arena, .err = err};
    b->t.device = "";
}

void trace_file_end(trace_build *b, int file, const sm_source *source, const unsigned char *bad,
                    const char *what) {
    size_t end = bad ? (size_t)(bad - (const unsigned char *)source->text) : source->length;
    if (!b->status && bad && !b->partial)
        b->status = sm_fail(b->err, SM_BAD_INPUT, "%s: the %s is damaged or cut short at byte %zu",
                            source->name, what, end);
    if (b->status) return;
    b->file[file].partial = bad != NULL;
    b->file[file].end = end;
}

void trace_drop(trace_build *b) {
    sm_free(b->event);
    b->event = NULL;
    sm_texts_free(&b->names);
    sm_numbers_free(&b->streams);
}

/* ---- lists ---- */

static void *grown(trace_build *b, void *list, int n, int *room, size_t bytes) {
    void *longer = b->status ? NULL : sm_arena_grow(b->arena, list, n, room, bytes);
    if (!longer) failed(b);
    return longer;
}

static int32_t plain_name(trace_build *b, const char *text, size_t length) {
    if (b->names.n == MOST_NAMES) too_many(b, "names", MOST_NAMES);
    int32_t at = b->status ? -1 : sm_texts_place(&b->names, b->arena, text, length);
    if (at < 0) failed(b);
    return at;
}

/* What a terminal must not see becomes '?'. */
int32_t trace_name(trace_build *b, const char *text, size_t length) {
    size_t plain = 0;
    while (plain < length && text[plain] >= ' ' && text[plain] < 127) plain++;
    if (plain == length) return plain_name(b, text, length);
    char *clean = sm_malloc(length + 1);
    if (!clean) return failed(b), -1;
    int32_t name = plain_name(b, clean, sm_utf8_clean(clean, length + 1, text, length));
    sm_free(clean);
    return name;
}

int trace_file(trace_build *b, const char *name, const char *format) {
    sm_trace_file *list = grown(b, b->file, b->t.files, &b->file_room, sizeof *list);
    if (!list) return -1;
    b->file = list;
    list[b->t.files] = (sm_trace_file){.name = name, .format = format, .rank = -1};
    return b->t.files++;
}

int trace_device(trace_build *b, int file, int ordinal) {
    for (int i = b->t.devices - 1; i >= 0 && b->device[i].file >= file; i--)
        if (b->device[i].file == file && b->device[i].ordinal == ordinal) return i;
    sm_trace_device *list = grown(b, b->device, b->t.devices, &b->device_room, sizeof *list);
    if (!list) return -1;
    if (b->t.devices == INT16_MAX) return too_many(b, "devices", INT16_MAX), -1;
    b->device = list;
    list[b->t.devices] =
        (sm_trace_device){.name = "", .file = file, .ordinal = ordinal, .rank = -1};
    return b->t.devices++;
}

int trace_stream(trace_build *b, int device, int64_t process, int64_t thread) {
    int file = b->t.files - 1;
    uint64_t key = sm_hash_mixed(SM_HASH_SEED, (uint64_t)file << 32 ^ (uint32_t)device);
    key = sm_hash_mixed(sm_hash_mixed(key, (uint64_t)process), (uint64_t)thread);
    for (;; key++) {
        int32_t *at = b->status ? NULL : sm_numbers_at(&b->streams, key);
        if (!at) return failed(b), -1;
        if (*at >= 0) {
            const sm_trace_stream *s = &b->stream[*at];
            if (s->file == file && s->device == device && s->process == process &&
                s->thread == thread)
                return *at;
            continue;
        }
        sm_trace_stream *list = grown(b, b->stream, b->t.streams, &b->stream_room, sizeof *list);
        if (!list) return -1;
        b->stream = list;
        list[b->t.streams] = (sm_trace_stream){device, file, process, thread, ""};
        return *at = b->t.streams++;
    }
}

int32_t trace_program(trace_build *b, uint64_t id) {
    for (int i = 0; i < b->t.programs; i++)
        if (b->program[i].id == id) return i;
    if (b->t.programs == MOST_PROGRAMS) return too_many(b, "programs", MOST_PROGRAMS), -1;
    sm_trace_program *list = grown(b, b->program, b->t.programs, &b->program_room, sizeof *list);
    if (!list) return -1;
    b->program = list;
    list[b->t.programs] = (sm_trace_program){.id = id, .name = "", .module = {"", "", 0}};
    return b->t.programs++;
}

/* ---- events ---- */

sm_trace_event *trace_event(trace_build *b) {
    if (b->status) return NULL;
    if (b->t.events == b->event_room) {
        int room = b->event_room ? b->event_room + b->event_room / 2 : FIRST_ROOM;
        if (b->t.events >= MOST_EVENTS) return too_many(b, "events", MOST_EVENTS), NULL;
        sm_trace_event *list = sm_realloc(b->event, (size_t)room * sizeof *list);
        if (!list) return failed(b), NULL;
        b->event = list;
        b->event_room = room;
    }
    sm_trace_event *e = &b->event[b->t.events++];
    *e = (sm_trace_event){.name = -1, .stream = -1, .detail = -1, .cause = -1, .program = -1};
    return e;
}

sm_trace_detail *trace_detail(trace_build *b, sm_trace_event *e) {
    if (e->detail >= 0) return &b->detail[e->detail];
    sm_trace_detail *list = grown(b, b->detail, b->t.details, &b->detail_room, sizeof *list);
    if (!list) return NULL;
    b->detail = list;
    e->detail = b->t.details++;
    list[e->detail] = (sm_trace_detail){NAN, NAN, NAN, NAN, 0, -1, -1, -1, -1, -1, -1};
    return &list[e->detail];
}

static int64_t within(int64_t x, int64_t most) { return x > most ? most : x < -most ? -most : x; }

/* Differences within 26 days are exact; what lies beyond stays there, so that a time and a
 * duration, each a quarter of what an integer holds, may be added. */
int64_t trace_time(trace_build *b, int64_t ns, int64_t ps) {
    const int64_t most_ps = INT64_MAX / 4, most_ns = most_ps / 1000;
    if (!b->began) b->origin_ns = ns;
    b->began = true;
    int64_t far = ns < b->origin_ns ? -most_ns : most_ns;
    uint64_t apart = ns < b->origin_ns ? (uint64_t)b->origin_ns - (uint64_t)ns
                                       : (uint64_t)ns - (uint64_t)b->origin_ns;
    if (apart < (uint64_t)most_ns) far = ns < b->origin_ns ? -(int64_t)apart : (int64_t)apart;
    return within(far * 1000 + within(ps, most_ps), most_ps);
}
