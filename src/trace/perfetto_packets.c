/* Perfetto's own format: packets, of which those with a TrackEvent are beginnings and ends of
 * slices on tracks. Names stand in the event, or in a table of the sequence of packets that it
 * belongs to; times are of the clock that the sequence says, which may count from event to event.
 * Numbers of fields are those of perfetto_trace.proto. */
#include <string.h>

#include "chrome_event.h"
#include "wire.h"

enum { TABLES = 3, MOST_SEQUENCES = 4096 };

typedef struct sequence { /* of packets: trusted_packet_sequence_id */
    int64_t id;
    sm_numbers interned[TABLES]; /* categories, event names, names of annotations */
    int64_t clock, track;        /* defaults; 0: none */
    int64_t now_ns;              /* of the clock that counts from event to event */
    int64_t counts;              /* which clock that is; 0: none */
    int64_t unit_ns;
} sequence;

typedef struct perfetto {
    trace_build *b;
    chrome_events to;
    sequence *list;
    int n, room;
} perfetto;

static int32_t name_of(perfetto *p, wire text) {
    return trace_name(p->b, (const char *)text.at, (size_t)(text.end - text.at));
}

static sequence *sequence_of(perfetto *p, int64_t id) {
    for (int i = p->n - 1; i >= 0; i--)
        if (p->list[i].id == id) return &p->list[i];
    sequence *list = p->n < MOST_SEQUENCES
                         ? sm_arena_grow(p->b->arena, p->list, p->n, &p->room, sizeof *list)
                         : NULL;
    if (!list) {
        p->b->status = p->n < MOST_SEQUENCES
                           ? sm_fail_memory(p->b->err)
                           : sm_fail(p->b->err, SM_BAD_INPUT, "more than %d sequences of packets",
                                     MOST_SEQUENCES);
        return NULL;
    }
    p->list = list;
    list[p->n] = (sequence){.id = id, .unit_ns = 1};
    return &list[p->n++];
}

/* ---- what later packets refer to ---- */

static void intern(perfetto *p, sequence *s, wire data) {
    wire_field f;
    while (wire_next(&data, &f)) {
        if (f.number < 1 || f.number > TABLES || !f.is_bytes) continue;
        int32_t name = name_of(p, wire_message(f.bytes, 2));
        int32_t *at =
            sm_numbers_at(&s->interned[f.number - 1], (uint64_t)wire_value(f.bytes, 1, 0));
        if (at) *at = name;
        else if (!p->b->status) p->b->status = sm_fail_memory(p->b->err);
    }
}

static int32_t interned(sequence *s, int table, int64_t id) {
    int32_t *at =
        s->interned[table].n && id ? sm_numbers_at(&s->interned[table], (uint64_t)id) : NULL;
    return at ? *at : -1;
}

/* The clock that is incremental, and where it stands. */
static void read_clocks(sequence *s, wire snapshot) {
    for (wire clock; wire_each(&snapshot, 1, &clock);) {
        if (!wire_value(clock, 3, 0)) continue;
        s->counts = wire_value(clock, 1, 0);
        s->now_ns = wire_value(clock, 2, 0);
        int64_t unit = wire_value(clock, 4, 1);
        s->unit_ns = unit > 0 && unit < 1000000000 ? unit : 1;
    }
}

/* A track is a thread of its own. */
static void read_track(perfetto *p, wire track) {
    int64_t id = wire_value(track, 1, 0);
    wire name = wire_message(track, 2), thread = wire_message(wire_message(track, 4), 5);
    if (name.at == name.end) name = thread;
    if (name.at < name.end) chrome_name(&p->to, true, id, id, name_of(p, name));
}

/* ---- events ---- */

static void read_annotation(perfetto *p, sequence *s, wire annotation, chrome_event *e) {
    wire name = wire_message(annotation, 10), text = wire_message(annotation, 6);
    const char *key = (const char *)name.at;
    size_t length = (size_t)(name.end - name.at);
    int32_t known = interned(s, 2, wire_value(annotation, 1, 0));
    if (known >= 0) {
        key = p->b->names.text[known];
        length = strlen(key);
    }
    int is = chrome_arg_of(key, length);
    if (is >= CHROME_NUMBERS && text.at < text.end) e->text[is - CHROME_NUMBERS] = name_of(p, text);
    if (is < 0 || is >= CHROME_NUMBERS) return;
    int64_t none = INT64_MIN, value = wire_value(annotation, 3, wire_value(annotation, 4, none));
    if (value == none) return;
    e->number[is] = value;
    e->has[is] = true;
}

static void read_names(perfetto *p, sequence *s, wire event, chrome_event *e) {
    wire_field f;
    while (wire_next(&event, &f)) {
        if (f.number == 23 && f.is_bytes) e->name = name_of(p, f.bytes);
        if (f.number == 10) e->name = interned(s, 1, (int64_t)f.value);
        if (f.number == 22 && f.is_bytes)
            e->category =
                chrome_category_of((const char *)f.bytes.at, (size_t)(f.bytes.end - f.bytes.at));
        int64_t id;
        if (f.number == 3 && wire_number(&f, &id)) {
            int32_t category = interned(s, 0, id);
            const char *text = category >= 0 ? p->b->names.text[category] : "";
            e->category = chrome_category_of(text, strlen(text));
        }
        if (f.number == 4 && f.is_bytes) read_annotation(p, s, f.bytes, e);
    }
}

static int64_t time_of(sequence *s, wire packet) {
    int64_t clock = wire_value(packet, 58, s->clock), value = wire_value(packet, 8, 0);
    if (s->counts == 0 || clock != s->counts) return value;
    s->now_ns = (int64_t)((uint64_t)s->now_ns + (uint64_t)value * (uint64_t)s->unit_ns);
    return s->now_ns;
}

static void read_event(perfetto *p, sequence *s, wire packet, wire event) {
    chrome_event e;
    static const char phases[] = {0, 'B', 'E', 'i', 'C'};
    int64_t type = wire_value(event, 9, 0);
    chrome_event_clear(&e);
    e.phase = type > 0 && type < 5 ? phases[type] : 0;
    e.process = e.thread = wire_value(event, 11, s->track);
    e.start_ns = time_of(s, packet);
    e.timed = true;
    read_names(p, s, event, &e);
    chrome_take(&p->to, &e);
}

static void read_packet(perfetto *p, wire packet) {
    wire found;
    sequence *s = sequence_of(p, wire_value(packet, 10, 0));
    if (!s) return;
    if (wire_value(packet, 13, 0) & 1)
        for (int i = 0; i < TABLES; i++) sm_numbers_free(&s->interned[i]);
    if (wire_has(packet, 6, &found)) read_clocks(s, found);
    if (wire_has(packet, 59, &found)) {
        wire defaults = found;
        s->clock = wire_value(defaults, 58, s->clock);
        s->track = wire_value(wire_message(defaults, 11), 11, s->track);
    }
    if (wire_has(packet, 12, &found)) intern(p, s, found);
    if (wire_has(packet, 60, &found)) read_track(p, found);
    if (wire_has(packet, 11, &found)) read_event(p, s, packet, found);
}

/* ---- all ---- */

bool trace_is_perfetto(const sm_source *source) {
    const unsigned char *at = (const unsigned char *)source->text, *bad = NULL;
    wire w = {at, at + source->length, &bad};
    wire_field packet, f;
    if (!wire_next(&w, &packet) || packet.number != 1 || !packet.is_bytes) return false;
    bool says = false;
    for (wire inside = packet.bytes; wire_next(&inside, &f);) {
        if (f.number < 3) return false; /* XPlane's planes and HLO's modules begin so */
        says = says || f.number == 60 || ((f.number == 8 || f.number == 10) && !f.is_bytes);
    }
    return says && !bad;
}

sm_status trace_read_perfetto(trace_build *b, const sm_source *source) {
    const unsigned char *begin = (const unsigned char *)source->text, *bad = NULL;
    perfetto p = {.b = b};
    wire w = {begin, begin + source->length, &bad}, packet;
    chrome_begin(&p.to, b, source->name, "Perfetto");
    while (!b->status && wire_each(&w, 1, &packet)) read_packet(&p, packet);
    for (int i = 0; i < p.n; i++)
        for (int k = 0; k < TABLES; k++) sm_numbers_free(&p.list[i].interned[k]);
    trace_file_end(b, p.to.file, source, bad, "trace");
    chrome_end(&p.to);
    return b->status;
}
