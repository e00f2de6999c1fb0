/* XPlane, what XLA's profiler writes: planes of devices with lines of events, whose names and
 * constants stand in maps of the plane, often after the lines. Numbers of fields are those of
 * xplane.proto; times are picoseconds. */
#include <stdlib.h>
#include <string.h>

#include "scalemodel/profile.h"
#include "wire.h"

enum { MOST_PROGRAMS = 4096, MOST_OPS = 1 << 20 };

typedef struct xstat_names { /* numbers of the statistics that matter; -1: the plane has none */
    int64_t program_id, hlo_op, hlo_proto, device_type, ordinal;
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

typedef struct xop {
    uint64_t program;
    const char *text;
    size_t length;
    double count, seconds;
} xop;

typedef struct xreader {
    const sm_source *source;
    sm_arena *arena;
    sm_error *err;
    sm_status status;
    sm_trace trace;
    sm_trace_program *program;
    int program_room;
    xop *op;
    int ops, op_room;
    xstat_names names;
    xevent_name *event;
    int events;
    xtext *text;
    int texts;
    uint64_t ordinals; /* of devices on one plane of the host: bit i */
} xreader;

static bool out_of_memory(xreader *r) {
    if (!r->status) r->status = sm_fail_memory(r->err);
    return false;
}

static sm_source text_of(wire w) {
    return (sm_source){"", (const char *)w.at, (size_t)(w.end - w.at)};
}

static bool is(sm_source text, const char *word) {
    return text.length == strlen(word) && !memcmp(text.text, word, text.length);
}

static bool begins(sm_source text, const char *word) {
    return text.length >= strlen(word) && !memcmp(text.text, word, strlen(word));
}

/* The first message of this number; an empty one where there is none. */
static wire field_of(wire w, int number) {
    wire found = {w.at, w.at, w.bad};
    wire_has(w, number, &found);
    return found;
}

static int64_t number_of(wire w, int number) { return wire_value(w, number, 0); }

/* ---- the maps of a plane ---- */

static void read_stat_name(xreader *r, wire entry) {
    wire metadata = field_of(entry, 2);
    sm_source name = text_of(field_of(metadata, 2));
    int64_t id = number_of(entry, 1);
    r->text[r->texts++] = (xtext){id, name};
    if (is(name, "program_id")) r->names.program_id = id;
    if (is(name, "hlo_op")) r->names.hlo_op = id;
    if (is(name, "Hlo Proto") || is(name, "hlo_proto")) r->names.hlo_proto = id;
    if (is(name, "device_type_string")) r->names.device_type = id;
    if (is(name, "device_ordinal")) r->names.ordinal = id;
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
    wire metadata = field_of(entry, 2);
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

static int by_id(const void *a, const void *b) {
    const xevent_name *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_text_id(const void *a, const void *b) {
    const xtext *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool read_maps(xreader *r, wire plane) {
    wire_field f;
    r->names = (xstat_names){-1, -1, -1, -1, -1};
    r->event = sm_arena_array(r->arena, wire_count(plane, 4) + 1, sizeof *r->event);
    r->text = sm_arena_array(r->arena, wire_count(plane, 5) + 1, sizeof *r->text);
    r->events = r->texts = 0;
    if (!r->event || !r->text) return out_of_memory(r);
    for (wire w = plane; wire_next(&w, &f);)
        if (f.number == 5 && f.is_bytes) read_stat_name(r, f.bytes);
    qsort(r->text, (size_t)r->texts, sizeof *r->text, by_text_id);
    for (wire w = plane; wire_next(&w, &f);)
        if (f.number == 4 && f.is_bytes) read_event_name(r, f.bytes);
    qsort(r->event, (size_t)r->events, sizeof *r->event, by_id);
    return true;
}

static const xevent_name *event_name(const xreader *r, int64_t id) {
    const xevent_name key = {.id = id};
    return r->events ? bsearch(&key, r->event, (size_t)r->events, sizeof key, by_id) : NULL;
}

/* ---- programs and their ops ---- */

static void *grown(xreader *r, void *list, int n, int *room, size_t bytes) {
    void *longer = sm_arena_grow(r->arena, list, n, room, bytes);
    if (!longer) out_of_memory(r);
    return longer;
}

static sm_trace_program *program_of(xreader *r, uint64_t id) {
    for (int i = 0; i < r->trace.programs; i++)
        if (r->program[i].id == id) return &r->program[i];
    if (r->trace.programs == MOST_PROGRAMS) {
        r->status = sm_fail(r->err, SM_BAD_INPUT, "%s: more than %d programs", r->source->name,
                            MOST_PROGRAMS);
        return NULL;
    }
    sm_trace_program *list =
        grown(r, r->program, r->trace.programs, &r->program_room, sizeof *list);
    if (!list) return NULL;
    r->program = list;
    list[r->trace.programs] =
        (sm_trace_program){.id = id, .name = "", .module = {r->source->name, "", 0}};
    return &list[r->trace.programs++];
}

static bool add_op(xreader *r, uint64_t program, sm_source name, double seconds) {
    if (r->ops == MOST_OPS) return true;
    xop *list = grown(r, r->op, r->ops, &r->op_room, sizeof *list);
    if (!list) return false;
    r->op = list;
    list[r->ops++] = (xop){program, name.text, name.length, 1, seconds};
    return true;
}

/* "jit_step(2433868464432466958)" is the program of that number; NULL of any other name. */
static sm_trace_program *named_program(xreader *r, sm_source name) {
    size_t at = 0;
    while (at < name.length && name.text[at] != '(') at++;
    if (at == name.length) return NULL;
    sm_source number = {"", name.text + at + 1, name.length - at - 1};
    sm_trace_program *p = program_of(r, digits(number));
    if (p && !p->name[0]) {
        const char *copy = sm_arena_copy(r->arena, name.text, at);
        if (!copy) out_of_memory(r);
        else p->name = copy;
    }
    return p;
}

static bool add_run(xreader *r, sm_source name, double seconds) {
    sm_trace_program *p = named_program(r, name);
    if (!p || r->status) return !r->status;
    p->runs++;
    p->seconds += seconds;
    return true;
}

/* The text of a statistic, which may be a reference. */
static sm_source stat_text(const xreader *r, wire stat) {
    const xtext key = {.id = number_of(stat, 7)};
    wire own = field_of(stat, 5);
    const xtext *found = NULL;
    if (own.at < own.end) return text_of(own);
    if (r->texts) found = bsearch(&key, r->text, (size_t)r->texts, sizeof key, by_text_id);
    return found ? found->text : (sm_source){"", "", 0};
}

/* ---- lines ---- */

typedef enum xline { XLINE_OPS, XLINE_MODULES, XLINE_HOST, XLINE_OTHER } xline;

/* An event of a thread of the host that runs an instruction says so itself. */
static bool host_event(xreader *r, wire event, double seconds) {
    sm_source name = {0};
    uint64_t program = 0;
    bool runs = false;
    wire_field f;
    while (wire_next(&event, &f)) {
        if (f.number != 4 || !f.is_bytes) continue;
        int64_t stat = number_of(f.bytes, 1);
        if (stat == r->names.hlo_op) name = stat_text(r, f.bytes);
        if (stat == r->names.program_id) {
            program = stat_number(f.bytes);
            runs = true;
        }
        if (stat == r->names.ordinal) r->ordinals |= 1ull << (stat_number(f.bytes) & 63);
    }
    return !runs || name.length == 0 || add_op(r, program, name, seconds);
}

static bool read_event(xreader *r, wire event, xline line) {
    double seconds = (double)(uint64_t)number_of(event, 3) * 1e-12;
    const xevent_name *name = event_name(r, number_of(event, 1));
    if (line == XLINE_HOST) return r->names.hlo_op < 0 || host_event(r, event, seconds);
    if (!name) return true;
    if (line == XLINE_MODULES) return add_run(r, name->name, seconds);
    return !name->of_program ||
           add_op(r, name->program, name->display.length ? name->display : name->name, seconds);
}

static bool read_line(xreader *r, wire line, bool device) {
    sm_source name = text_of(field_of(line, 2));
    xline kind = !device                   ? XLINE_HOST
                 : is(name, "XLA Ops")     ? XLINE_OPS
                 : is(name, "XLA Modules") ? XLINE_MODULES
                                           : XLINE_OTHER;
    wire_field f;
    while (kind != XLINE_OTHER && wire_next(&line, &f))
        if (f.number == 4 && f.is_bytes && !read_event(r, f.bytes, kind)) return false;
    return true;
}

/* ---- planes ---- */

/* Programs are kept as statistics of event names. */
static bool read_programs(xreader *r, wire plane) {
    wire_field f, g;
    for (wire w = plane; wire_next(&w, &f);) {
        if (f.number != 4 || !f.is_bytes) continue;
        wire metadata = field_of(f.bytes, 2);
        for (wire m = metadata; wire_next(&m, &g);) {
            if (g.number != 5 || !g.is_bytes || number_of(g.bytes, 1) != r->names.hlo_proto)
                continue;
            sm_trace_program *p = named_program(r, text_of(field_of(metadata, 2)));
            if (!p && !r->status) p = program_of(r, (uint64_t)number_of(f.bytes, 1));
            if (!p || r->status) return false;
            p->module = text_of(field_of(g.bytes, 6));
            p->module.name = r->source->name;
        }
    }
    return true;
}

static bool read_device_type(xreader *r, wire plane) {
    wire_field f;
    for (wire w = plane; wire_next(&w, &f);)
        if (f.number == 6 && f.is_bytes && number_of(f.bytes, 1) == r->names.device_type) {
            sm_source text = stat_text(r, f.bytes);
            r->trace.device = sm_arena_copy(r->arena, text.text, text.length);
            if (!r->trace.device) return out_of_memory(r);
        }
    return true;
}

static bool read_plane(xreader *r, wire plane) {
    sm_source name = text_of(field_of(plane, 2));
    bool device = begins(name, "/device:"), host = begins(name, "/host:CPU");
    wire_field f;
    if (!read_maps(r, plane)) return false;
    if (begins(name, "/host:metadata")) return read_programs(r, plane);
    if (!device && !host) return true;
    if (device && !read_device_type(r, plane)) return false;
    int before = r->ops;
    while (wire_next(&plane, &f))
        if (f.number == 3 && f.is_bytes && !read_line(r, f.bytes, device)) return false;
    if (r->ops == before) return true;
    if (device) r->trace.devices++;
    for (uint64_t bits = device ? 0 : r->ordinals; bits; bits &= bits - 1) r->trace.devices++;
    return true;
}

/* ---- all ---- */

static int by_program(const void *a, const void *b) {
    const xop *x = a, *y = b;
    if (x->program != y->program) return x->program < y->program ? -1 : 1;
    size_t n = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Events of one instruction are one op. */
static bool collect(xreader *r) {
    if (r->ops) qsort(r->op, (size_t)r->ops, sizeof *r->op, by_program);
    sm_trace_op *list = sm_arena_array(r->arena, (size_t)r->ops + 1, sizeof *list);
    if (!list) return out_of_memory(r);
    int n = 0;
    sm_trace_program *p = NULL;
    for (int i = 0; i < r->ops; i++) {
        if (i && !by_program(&r->op[i - 1], &r->op[i])) {
            list[n - 1].count++;
            list[n - 1].seconds += r->op[i].seconds;
            p->busy_s += r->op[i].seconds;
            continue;
        }
        if (!p || p->id != r->op[i].program) {
            if (!(p = program_of(r, r->op[i].program))) return false;
            p->op = &list[n];
        }
        const char *name = sm_arena_copy(r->arena, r->op[i].text, r->op[i].length);
        if (!name) return out_of_memory(r);
        list[n++] = (sm_trace_op){name, 1, r->op[i].seconds};
        p->busy_s += r->op[i].seconds;
        p->ops++;
    }
    return true;
}

static int by_seconds(const void *a, const void *b) {
    const sm_trace_program *x = a, *y = b;
    double s = x->seconds > 0 ? x->seconds : x->busy_s, t = y->seconds > 0 ? y->seconds : y->busy_s;
    if (s != t) return s < t ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

bool sm_trace_is_xplane(const sm_source *source) {
    const unsigned char *at = (const unsigned char *)source->text, *bad = NULL;
    wire w = {at, at + source->length, &bad};
    wire_field plane, f;
    if (source->length == 0 || !wire_next(&w, &plane) || plane.number != 1 || !plane.is_bytes)
        return false;
    /* The first field of a plane is its number, or its name as field 2. */
    return wire_next(&plane.bytes, &f) && ((f.number == 1 && !f.is_bytes) || f.number == 2) && !bad;
}

sm_status sm_trace_parse_xplane(const sm_source *source, sm_arena *arena, const sm_trace **out,
                                sm_error *err) {
    const unsigned char *begin = (const unsigned char *)source->text, *bad = NULL;
    xreader r = {.source = source, .arena = arena, .err = err};
    wire w = {begin, begin + source->length, &bad};
    wire_field f;
    r.trace.device = "";
    while (!r.status && wire_next(&w, &f))
        if (f.number == 1 && f.is_bytes && !read_plane(&r, f.bytes)) break;
    if (!r.status && !bad) collect(&r);
    if (!r.status && bad)
        return sm_fail(err, SM_BAD_INPUT, "%s: the profile is damaged or cut short at byte %zu",
                       source->name, (size_t)(bad - begin));
    if (r.status) return r.status;
    if (r.trace.programs) qsort(r.program, (size_t)r.trace.programs, sizeof *r.program, by_seconds);
    r.trace.program = r.program;
    sm_trace *trace = sm_arena_alloc(arena, sizeof *trace);
    if (!trace) return sm_fail_memory(err);
    *trace = r.trace;
    *out = trace;
    return SM_OK;
}
