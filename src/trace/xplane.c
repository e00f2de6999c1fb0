/* XPlane, what XLA's profiler writes: planes of devices with lines of events, whose names and
 * constants stand in maps of the plane, often after the lines. Numbers of fields are those of
 * xplane.proto; times are picoseconds. */
#include <stdlib.h>
#include <string.h>

#include "trace_build.h"
#include "named.h"
#include "wire.h"

typedef struct xstat_names { /* numbers of the statistics that matter; -1: the plane has none */
    int64_t program_id, hlo_op, hlo_proto, device_type, ordinal, step, starts, lasts;
} xstat_names;

typedef struct xevent_name { /* a row of event_metadata */
    int64_t id;
    sm_source name, display;
    uint64_t program;
    bool of_program;
} xevent_name;

typedef struct xtext { /* a row of stat_metadata: what statistics may refer to */
    int64_t id;
    sm_source text;
} xtext;

typedef struct xreader {
    const sm_source *source;
    trace_build *b;
    int file;
    xstat_names names;
    xevent_name *event;
    int events;
    xtext *text;
    int texts;
    bool aligned;  /* something of the plane has times of the device's own clock */
    int64_t ahead; /* and the first of it begins so many picoseconds later by the host's */
} xreader;

static bool out_of_memory(xreader *r) {
    if (!r->b->status) r->b->status = sm_fail_memory(r->b->err);
    return false;
}

static sm_source text_of(wire w) {
    return (sm_source){"", (const char *)w.at, (size_t)(w.end - w.at)};
}

static bool is(sm_source text, const char *word) {
    return text.length == strlen(word) && !memcmp(text.text, word, text.length);
}

static int64_t number_of(wire w, int number) { return wire_value(w, number, 0); }

/* ---- the maps of a plane ---- */

static void read_stat_name(xreader *r, wire entry) {
    wire metadata = wire_message(entry, 2);
    sm_source name = text_of(wire_message(metadata, 2));
    int64_t id = number_of(entry, 1);
    r->text[r->texts++] = (xtext){id, name};
    if (is(name, "program_id")) r->names.program_id = id;
    if (is(name, "hlo_op")) r->names.hlo_op = id;
    if (is(name, "Hlo Proto") || is(name, "hlo_proto")) r->names.hlo_proto = id;
    if (is(name, "device_type_string")) r->names.device_type = id;
    if (is(name, "device_ordinal")) r->names.ordinal = id;
    if (is(name, "step_num")) r->names.step = id;
    if (is(name, "device_offset_ps")) r->names.starts = id;
    if (is(name, "device_duration_ps")) r->names.lasts = id;
}

static uint64_t digits(sm_source text) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length && text.text[i] >= '0' && text.text[i] <= '9'; i++)
        value = value * 10 + (uint64_t)(text.text[i] - '0');
    return value;
}

/* A number that may be written as one or as text. */
static uint64_t stat_number(wire stat) {
    wire_field f;
    uint64_t value = 0;
    while (wire_next(&stat, &f)) {
        if (f.number == 3 || f.number == 4) value = f.value;
        if (f.number == 5 && f.is_bytes) value = digits(text_of(f.bytes));
    }
    return value;
}

static void read_event_name(xreader *r, wire entry) {
    wire metadata = wire_message(entry, 2);
    xevent_name *e = &r->event[r->events++];
    wire_field f;
    *e = (xevent_name){.id = number_of(entry, 1), .name = {"", "", 0}, .display = {"", "", 0}};
    while (wire_next(&metadata, &f)) {
        if (f.number == 2 && f.is_bytes) e->name = text_of(f.bytes);
        if (f.number == 4 && f.is_bytes) e->display = text_of(f.bytes);
        if (f.number != 5 || !f.is_bytes || number_of(f.bytes, 1) != r->names.program_id) continue;
        e->program = stat_number(f.bytes);
        e->of_program = true;
    }
}

SM_ORDER(by_id, xevent_name, SM_ASCENDING(id))

SM_ORDER(by_text_id, xtext, SM_ASCENDING(id))

static bool read_maps(xreader *r, wire plane) {
    r->names = (xstat_names){-1, -1, -1, -1, -1, -1, -1, -1};
    r->aligned = false;
    r->event = sm_arena_array(r->b->arena, wire_count(plane, 4) + 1, sizeof *r->event);
    r->text = sm_arena_array(r->b->arena, wire_count(plane, 5) + 1, sizeof *r->text);
    r->events = r->texts = 0;
    if (!r->event || !r->text) return out_of_memory(r);
    for (wire w = plane, entry; wire_each(&w, 5, &entry);) read_stat_name(r, entry);
    qsort(r->text, (size_t)r->texts, sizeof *r->text, by_text_id);
    for (wire w = plane, entry; wire_each(&w, 4, &entry);) read_event_name(r, entry);
    qsort(r->event, (size_t)r->events, sizeof *r->event, by_id);
    return true;
}

static const xevent_name *event_name(const xreader *r, int64_t id) {
    const xevent_name key = {.id = id};
    return r->events ? bsearch(&key, r->event, (size_t)r->events, sizeof key, by_id) : NULL;
}

/* ---- programs ---- */

/* "jit_step(2433868464432466958)" is the program of that number; -1 of any other name. */
static int32_t named_program(xreader *r, sm_source name) {
    size_t at = 0;
    while (at < name.length && name.text[at] != '(') at++;
    if (at == name.length) return -1;
    sm_source number = {"", name.text + at + 1, name.length - at - 1};
    int32_t i = trace_program(r->b, digits(number));
    if (i < 0 || r->b->program[i].name[0]) return i;
    const char *copy = sm_arena_copy(r->b->arena, name.text, at);
    if (!copy) return out_of_memory(r), -1;
    r->b->program[i].name = copy;
    return i;
}

/* The text of a statistic, which may be a reference. */
static sm_source stat_text(const xreader *r, wire stat) {
    const xtext key = {.id = number_of(stat, 7)};
    wire own = wire_message(stat, 5);
    const xtext *found = NULL;
    if (own.at < own.end) return text_of(own);
    if (r->texts) found = bsearch(&key, r->text, (size_t)r->texts, sizeof key, by_text_id);
    return found ? found->text : (sm_source){"", "", 0};
}

/* ---- lines ---- */

typedef enum xline {
    XLINE_OPS,
    XLINE_ASYNC,
    XLINE_MODULES,
    XLINE_STEPS,
    XLINE_HOST,
    XLINE_KINDS
} xline;

typedef struct xplace { /* where events lie */
    xline kind;
    int device;     /* of a plane of a device; a host has several */
    int64_t thread; /* the line */
    int64_t begin_ns;
} xplace;

/* When an event begins and how long it lasts, in picoseconds: by the host's clock, which sets
 * itself right between events and within them, or where it is told by the device's own, as xprof
 * has it. */
static void read_times(xreader *r, const xplace *at, wire event, sm_trace_event *e) {
    uint64_t lasts = (uint64_t)number_of(event, 3), starts = 0;
    int told = 0;
    e->start_ps = trace_time(r->b, at->begin_ns, number_of(event, 2));
    const bool may = r->names.starts >= 0 && r->names.lasts >= 0;
    for (wire w = event, one; may && wire_each(&w, 4, &one);) {
        int64_t stat = number_of(one, 1);
        if (stat == r->names.starts) starts = stat_number(one), told |= 1;
        if (stat == r->names.lasts) lasts = stat_number(one), told |= 2;
    }
    e->duration_ps = lasts < INT64_MAX / 4 ? (int64_t)lasts : INT64_MAX / 4;
    if (told != 3 || starts > INT64_MAX / 4) return;
    int64_t start = trace_time(r->b, at->begin_ns, (int64_t)starts);
    if (!r->aligned) r->ahead = e->start_ps - start;
    r->aligned = true;
    start += r->ahead;
    if (start > -INT64_MAX / 4 && start < INT64_MAX / 4) e->start_ps = start;
}

static sm_trace_event *add(xreader *r, const xplace *at, wire event, int device, sm_source name) {
    sm_trace_event *e = trace_event(r->b);
    if (!e) return NULL;
    read_times(r, at, event, e);
    e->stream = trace_stream(r->b, device, (int64_t)at->kind, at->thread);
    e->name = trace_name(r->b, name.text, name.length);
    return r->b->status ? NULL : e;
}

/* A step that the program marked: jax.profiler.StepTraceAnnotation. */
static bool host_step(xreader *r, const xplace *at, wire event) {
    const xevent_name *name = event_name(r, number_of(event, 1));
    sm_source told = name ? name->name : (sm_source){"", "", 0};
    sm_trace_event *e = add(r, at, event, -1, told);
    if (e) e->kind = SM_TRACE_STEP;
    return e != NULL;
}

/* An event of a thread of the host that runs an instruction says so itself. */
static bool host_event(xreader *r, const xplace *at, wire event) {
    sm_source name = {0};
    uint64_t program = 0, ordinal = 0;
    bool runs = false;
    for (wire w = event, one; wire_each(&w, 4, &one);) {
        int64_t stat = number_of(one, 1);
        if (stat == r->names.step && stat >= 0) return host_step(r, at, event);
        if (stat == r->names.hlo_op) name = stat_text(r, one);
        if (stat == r->names.ordinal) ordinal = stat_number(one);
        if (stat != r->names.program_id) continue;
        program = stat_number(one);
        runs = true;
    }
    if (!runs || name.length == 0) return true;
    int device = trace_device(r->b, r->file, (int)(ordinal & INT16_MAX));
    sm_trace_event *e = add(r, at, event, device, name);
    if (!e) return false;
    e->kind = (uint8_t)trace_instruction_kind(name.text, name.length);
    e->program = trace_program(r->b, program);
    return !r->b->status;
}

static bool op_event(xreader *r, const xplace *at, wire event, const xevent_name *name) {
    sm_source told = name->display.length ? name->display : name->name;
    sm_trace_event *e = name->of_program ? add(r, at, event, at->device, told) : NULL;
    if (!e) return !r->b->status;
    e->kind = (uint8_t)trace_instruction_kind(told.text, told.length);
    e->async = at->kind == XLINE_ASYNC;
    e->program = trace_program(r->b, name->program);
    return !r->b->status;
}

static bool read_event(xreader *r, const xplace *at, wire event) {
    if (at->kind == XLINE_HOST) return host_event(r, at, event);
    const xevent_name *name = event_name(r, number_of(event, 1));
    if (!name) return true;
    if (at->kind == XLINE_OPS || at->kind == XLINE_ASYNC) return op_event(r, at, event, name);
    sm_trace_event *e = add(r, at, event, at->device, name->name);
    if (!e) return false;
    e->kind = at->kind == XLINE_STEPS ? SM_TRACE_STEP : SM_TRACE_RUN;
    if (e->kind == SM_TRACE_RUN) e->program = named_program(r, name->name);
    return !r->b->status;
}

static bool read_line(xreader *r, wire line, int device) {
    static const char *const named[] = {"XLA Ops", "Async XLA Ops", "XLA Modules", "Steps"};
    sm_source name = text_of(wire_message(line, 2));
    xplace at = {device < 0 ? XLINE_HOST : XLINE_OPS, device, number_of(line, 1),
                 number_of(line, 3)};
    while (device >= 0 && at.kind < XLINE_HOST && !is(name, named[at.kind])) at.kind++;
    if (device >= 0 && at.kind == XLINE_HOST) return true;
    for (wire event; wire_each(&line, 4, &event);)
        if (!read_event(r, &at, event)) return false;
    return true;
}

/* ---- planes ---- */

/* Programs are kept as statistics of event names. */
static bool read_programs(xreader *r, wire plane) {
    for (wire w = plane, entry; wire_each(&w, 4, &entry);) {
        wire metadata = wire_message(entry, 2);
        for (wire m = metadata, stat; wire_each(&m, 5, &stat);) {
            if (number_of(stat, 1) != r->names.hlo_proto) continue;
            int32_t i = named_program(r, text_of(wire_message(metadata, 2)));
            if (i < 0) i = trace_program(r->b, (uint64_t)number_of(entry, 1));
            if (r->b->status) return false;
            r->b->program[i].module = text_of(wire_message(stat, 6));
            r->b->program[i].module.name = r->source->name;
        }
    }
    return true;
}

static bool read_device_type(xreader *r, wire plane, int device) {
    for (wire w = plane, stat; wire_each(&w, 6, &stat);)
        if (number_of(stat, 1) == r->names.device_type) {
            sm_source text = stat_text(r, stat);
            r->b->device[device].name = sm_arena_copy(r->b->arena, text.text, text.length);
            if (!r->b->device[device].name) {
                r->b->device[device].name = "";
                return out_of_memory(r);
            }
        }
    return true;
}

/* "/device:TPU:3" is the device 3. */
static bool read_plane(xreader *r, wire plane) {
    sm_source name = text_of(wire_message(plane, 2));
    bool is_device = part_begins_with(name.text, name.length, "/device:"),
         host = part_begins_with(name.text, name.length, "/host:CPU");
    int device = -1, events = r->b->t.events, before = r->b->t.devices;
    if (!read_maps(r, plane)) return false;
    if (part_begins_with(name.text, name.length, "/host:metadata")) return read_programs(r, plane);
    if (!is_device && !host) return true;
    if (is_device) {
        size_t at = name.length;
        while (at > 0 && name.text[at - 1] >= '0' && name.text[at - 1] <= '9') at--;
        sm_source number = {"", name.text + at, name.length - at};
        device = trace_device(r->b, r->file, (int)(digits(number) & INT16_MAX));
        if (device < 0 || !read_device_type(r, plane, device)) return false;
    }
    for (wire line; wire_each(&plane, 3, &line);)
        if (!read_line(r, line, device)) return false;
    if (is_device && r->b->t.events == events && device == before) r->b->t.devices--;
    return true;
}

bool sm_trace_is_xplane(const sm_source *source) {
    const unsigned char *at = (const unsigned char *)source->text, *bad = NULL;
    wire w = {at, at + source->length, &bad};
    wire_field plane, f;
    if (source->length == 0 || !wire_next(&w, &plane) || plane.number != 1 || !plane.is_bytes)
        return false;
    /* The first field of a plane is its number, or its name as field 2; buffer assignments begin
     * with two numbers. */
    if (!wire_next(&plane.bytes, &f)) return false;
    if (f.number == 1 && !f.is_bytes && !wire_next(&plane.bytes, &f)) return !bad;
    return f.number >= 2 && f.is_bytes && !bad;
}

sm_status trace_read_xplane(trace_build *b, const sm_source *source) {
    const unsigned char *begin = (const unsigned char *)source->text, *bad = NULL;
    xreader r = {.source = source, .b = b, .file = trace_file(b, source->name, "XPlane")};
    wire w = {begin, begin + source->length, &bad}, plane;
    while (!b->status && wire_each(&w, 1, &plane))
        if (!read_plane(&r, plane)) break;
    trace_file_end(b, r.file, source, bad, "profile");
    return b->status;
}

sm_status sm_trace_parse_xplane(const sm_source *source, sm_arena *arena, const sm_trace **out,
                                sm_error *err) {
    trace_build b;
    trace_begin(&b, arena, err);
    sm_status status = trace_read_xplane(&b, source);
    if (!status) status = trace_end(&b, out);
    trace_drop(&b);
    return status;
}
