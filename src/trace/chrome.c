/* Chrome's trace format, as PyTorch's profiler (Kineto) and JAX write it: an object with the list
 * "traceEvents" among others, or that list alone. What an event is, Kineto tells by its category,
 * JAX by the names of its process ("/device:TPU:0") and thread ("XLA Ops"), which may come later.
 */
#include <math.h>
#include <string.h>

#include "chrome_event.h"

typedef struct chrome_device {
    int64_t id;
    int32_t name;
} chrome_device;

typedef struct chrome {
    trace_build *b;
    json_lexer l;
    int file, first_event, first_stream;
    trace_table names; /* of processes and threads */
    chrome_device *device;
    int devices, device_room;
    bool events, kineto, nodes; /* what was seen */
    int32_t *open;              /* of each stream: the event begun and not ended, -1 */
    int opens, open_room;
} chrome;

static bool no_memory(chrome *c) { return json_lexer_fail_memory(&c->l); }

/* ---- events ---- */

static bool is_named(const chrome *c, int32_t name, const char *word) {
    return name >= 0 && strcmp(c->b->name[name], word) == 0;
}

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static uint64_t key_of(bool is_thread, int64_t process, int64_t thread) {
    uint64_t key = sm_hash_mixed(SM_HASH_SEED, (uint64_t)process + is_thread);
    return sm_hash_mixed(key, is_thread ? (uint64_t)thread + 1 : 0);
}

static bool add_name(chrome *c, const chrome_event *in) {
    bool thread = is_named(c, in->name, "thread_name");
    if ((!thread && !is_named(c, in->name, "process_name")) || in->text[CHROME_NAME] < 0)
        return true;
    int32_t *at = trace_table_value(&c->names, key_of(thread, in->process, in->thread));
    if (!at) return no_memory(c);
    *at = in->text[CHROME_NAME];
    return true;
}

/* "" where it has none. */
static const char *name_of(chrome *c, bool is_thread, const sm_trace_stream *s) {
    int32_t *at =
        c->names.n ? trace_table_value(&c->names, key_of(is_thread, s->process, s->thread)) : NULL;
    return at && *at >= 0 ? c->b->name[*at] : "";
}

static int32_t program_named(chrome *c, int32_t name) {
    const char *text = c->b->name[name];
    int32_t i = trace_program(c->b, sm_hash_bytes(text, strlen(text)));
    if (i >= 0 && !c->b->program[i].name[0]) c->b->program[i].name = text;
    return i;
}

static sm_trace_kind device_kind(const chrome *c, const chrome_event *in) {
    const char *name = in->name >= 0 ? c->b->name[in->name] : "";
    switch (in->category) {
    case CHROME_COPY: return SM_TRACE_COPY;
    case CHROME_SYNC: return SM_TRACE_SYNC;
    case CHROME_DEVICE_MARK: return SM_TRACE_MARK;
    default: return begins(name, "event_wait") ? SM_TRACE_SYNC : trace_kernel_kind(name);
    }
}

static sm_trace_kind host_kind(const chrome *c, const chrome_event *in) {
    const char *name = in->name >= 0 ? c->b->name[in->name] : "";
    switch (in->category) {
    case CHROME_LAUNCH: return SM_TRACE_LAUNCH;
    case CHROME_OP: return trace_is_step(name) ? SM_TRACE_STEP : SM_TRACE_OP; /* 2021 */
    case CHROME_MARK: return trace_is_step(name) ? SM_TRACE_STEP : SM_TRACE_MARK;
    case CHROME_PYTHON: return SM_TRACE_MODULE;
    default: return in->has[CHROME_STEP] ? SM_TRACE_STEP : SM_TRACE_OTHER;
    }
}

static double number_or_nan(const chrome_event *in, chrome_number which) {
    return in->has[which] ? (double)in->number[which] : NAN;
}

static bool add_detail(chrome *c, const chrome_event *in, sm_trace_event *e) {
    bool any = in->has[CHROME_BYTES] || in->has[CHROME_FLOPS] || in->has[CHROME_IN];
    any = any || in->text[CHROME_SHAPES] >= 0 || in->text[CHROME_COLLECTIVE] >= 0;
    if (!any) return true;
    sm_trace_detail *d = trace_detail(c->b, e);
    if (!d) return false;
    d->bytes = number_or_nan(in, CHROME_BYTES);
    d->flops = number_or_nan(in, CHROME_FLOPS);
    d->elements_in = number_or_nan(in, CHROME_IN);
    d->elements_out = number_or_nan(in, CHROME_OUT);
    int64_t group = in->number[CHROME_GROUP];
    d->group = group > 0 && group < 1 << 24 ? (int32_t)group : 0;
    d->op = in->text[CHROME_COLLECTIVE];
    d->dtype = in->text[CHROME_DTYPE];
    d->group_name = in->text[CHROME_GROUP_NAME];
    d->shapes = in->text[CHROME_SHAPES];
    d->types = in->text[CHROME_TYPES];
    return true;
}

static bool on_device(const chrome_event *in) {
    switch (in->category) {
    case CHROME_KERNEL:
    case CHROME_COPY:
    case CHROME_SYNC:
    case CHROME_DEVICE_MARK: return true;
    case CHROME_NONE: return in->text[CHROME_HLO_OP] >= 0 && in->has[CHROME_ORDINAL];
    default: return false;
    }
}

static int stream_of(chrome *c, const chrome_event *in) {
    if (!on_device(in)) return trace_stream(c->b, -1, in->process, in->thread);
    int64_t ordinal = in->has[CHROME_ORDINAL]  ? in->number[CHROME_ORDINAL]
                      : in->has[CHROME_DEVICE] ? in->number[CHROME_DEVICE]
                                               : in->process;
    int device = trace_device(c->b, c->file, (int)(ordinal & INT16_MAX));
    int64_t stream = in->has[CHROME_STREAM] ? in->number[CHROME_STREAM] : in->thread;
    return device < 0 ? -1 : trace_stream(c->b, device, in->process, stream);
}

/* Only modules are kept of Python's functions, and only what has a time of the rest. */
static bool is_kept(const chrome *c, const chrome_event *in) {
    if (!in->timed || in->name < 0 || in->category == CHROME_PASSED) return false;
    return in->category != CHROME_PYTHON || begins(c->b->name[in->name], "nn.Module: ");
}

static sm_trace_event *add_event(chrome *c, const chrome_event *in) {
    sm_trace_event *e = trace_event(c->b);
    if (!e) return NULL;
    e->stream = stream_of(c, in);
    e->start_ps = trace_time(c->b, in->start_ns, in->start_ps);
    e->duration_ps = in->duration_ps;
    e->name = in->name;
    e->correlation = in->number[in->category == CHROME_OP ? CHROME_EXTERNAL : CHROME_CORRELATION];
    int64_t id = in->number[CHROME_EXTERNAL];
    e->cause = id > 0 && id < INT32_MAX ? (int32_t)id : -1;
    e->kind = (uint8_t)(on_device(in) ? device_kind(c, in) : host_kind(c, in));
    if (in->text[CHROME_HLO_OP] >= 0) {
        e->name = in->text[CHROME_HLO_OP];
        const char *name = c->b->name[e->name];
        e->kind = (uint8_t)trace_instruction_kind(name, strlen(name));
    }
    if (in->text[CHROME_HLO_MODULE] >= 0)
        e->program = program_named(c, in->text[CHROME_HLO_MODULE]);
    if (in->category >= CHROME_KERNEL && in->category <= CHROME_OP) c->kineto = true;
    return !c->b->status && add_detail(c, in, e) && !c->b->status ? e : NULL;
}

/* An event that is ended later. */
static bool begin_event(chrome *c, const chrome_event *in) {
    sm_trace_event *e = add_event(c, in);
    if (!e) return false;
    int stream = e->stream - c->first_stream;
    while (c->opens <= stream) {
        int32_t *list = sm_arena_grow(c->b->arena, c->open, c->opens, &c->open_room, sizeof *list);
        if (!list) return no_memory(c);
        c->open = list;
        list[c->opens++] = -1;
    }
    e->cause = c->open[stream]; /* until its end */
    c->open[stream] = c->b->t.events - 1;
    return true;
}

static bool end_event(chrome *c, const chrome_event *in) {
    int stream = trace_stream(c->b, -1, in->process, in->thread) - c->first_stream;
    if (stream < 0 || stream >= c->opens || c->open[stream] < 0) return !c->b->status;
    sm_trace_event *e = &c->b->event[c->open[stream]];
    int64_t end = trace_time(c->b, in->start_ns, in->start_ps);
    e->duration_ps = end > e->start_ps ? end - e->start_ps : 0;
    c->open[stream] = e->cause;
    e->cause = -1;
    return true;
}

static bool take_event(chrome *c) {
    chrome_event in;
    if (json_next(&c->l) != '{') {
        c->nodes = c->nodes || c->b->t.events == c->first_event;
        return json_stream_skip(&c->l);
    }
    json_take(&c->l, '{');
    if (!chrome_event_read(&c->l, c->b, &in)) return false;
    c->events = true;
    if (in.phase == 'M') return add_name(c, &in);
    if (in.phase == 'E') return end_event(c, &in);
    if ((in.phase != 'X' && in.phase != 'B') || !is_kept(c, &in)) {
        c->b->t.unread++;
        return true;
    }
    return in.phase == 'B' ? begin_event(c, &in) : add_event(c, &in) != NULL;
}

static bool read_events(chrome *c) {
    if (!json_take(&c->l, '[')) return json_stream_skip(&c->l);
    while (json_stream_more(&c->l, ']'))
        if (!take_event(c)) return false;
    return !c->l.status && !c->b->status;
}

/* ---- what stands beside the events ---- */

static bool read_device(chrome *c) {
    json_raw raw;
    chrome_device d = {-1, -1};
    if (!json_take(&c->l, '{')) return json_stream_skip(&c->l);
    while (json_stream_more(&c->l, '}')) {
        if (!json_stream_key(&c->l, &raw)) return false;
        bool id = chrome_is(&raw, "id"), name = chrome_is(&raw, "name");
        if (!json_stream_scalar(&c->l, &raw)) return false;
        if (id) d.id = chrome_whole(&raw);
        if (name) d.name = trace_name(c->b, raw.text, raw.length);
    }
    chrome_device *list =
        sm_arena_grow(c->b->arena, c->device, c->devices, &c->device_room, sizeof *list);
    if (!list) return no_memory(c);
    c->device = list;
    list[c->devices++] = d;
    return !c->l.status && !c->b->status;
}

static bool read_devices(chrome *c) {
    if (!json_take(&c->l, '[')) return json_stream_skip(&c->l);
    while (json_stream_more(&c->l, ']'))
        if (!read_device(c)) return false;
    return !c->l.status;
}

static bool read_job(chrome *c) {
    json_raw raw;
    if (!json_take(&c->l, '{')) return json_stream_skip(&c->l);
    while (json_stream_more(&c->l, '}')) {
        if (!json_stream_key(&c->l, &raw)) return false;
        bool rank = chrome_is(&raw, "rank"), world = chrome_is(&raw, "world_size");
        if (!json_stream_scalar(&c->l, &raw)) return false;
        int64_t value = chrome_whole(&raw);
        if (rank) c->b->file[c->file].rank = (int)(value & INT32_MAX);
        if (world) c->b->file[c->file].world = (int)(value & INT32_MAX);
    }
    return !c->l.status;
}

static bool read_member(chrome *c) {
    json_raw key;
    if (!json_stream_key(&c->l, &key)) return false;
    if (chrome_is(&key, "traceEvents")) {
        c->events = true;
        return read_events(c);
    }
    if (chrome_is(&key, "schemaVersion")) c->kineto = true;
    if (chrome_is(&key, "nodes")) c->nodes = true;
    if (chrome_is(&key, "deviceProperties")) return read_devices(c);
    if (chrome_is(&key, "distributedInfo")) return read_job(c);
    return json_stream_skip(&c->l);
}

/* ---- once all is read ---- */

/* Streams of processes that are devices: "/device:TPU:0". */
static bool name_streams(chrome *c) {
    for (int i = c->first_stream; i < c->b->t.streams; i++) {
        sm_trace_stream *s = &c->b->stream[i];
        s->name = name_of(c, true, s);
        const char *process = name_of(c, false, s), *digits = strrchr(process, ':');
        if (s->device >= 0 || !begins(process, "/device:")) continue;
        json_raw number = {IS_TEXT, digits, strlen(digits), false};
        s->device = trace_device(c->b, c->file, (int)(chrome_whole(&number) & INT16_MAX));
        if (s->device < 0) return false;
    }
    return true;
}

static void tell_kind(chrome *c, sm_trace_event *e) {
    static const struct {
        const char *line;
        sm_trace_kind kind;
    } lines[] = {{"XLA Modules", SM_TRACE_RUN}, {"Steps", SM_TRACE_STEP}};
    const sm_trace_stream *s = &c->b->stream[e->stream];
    const char *name = c->b->name[e->name];
    if (e->kind != SM_TRACE_OTHER) return;
    e->kind = s->device < 0 && !c->kineto ? SM_TRACE_MARK : SM_TRACE_OTHER;
    if (s->device < 0) return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strcmp(s->name, lines[i].line)) e->kind = (uint8_t)lines[i].kind;
    bool ops = !strcmp(s->name, "XLA Ops");
    e->async = !strcmp(s->name, "Async XLA Ops");
    if (ops || e->async) e->kind = (uint8_t)trace_instruction_kind(name, strlen(name));
    else if (begins(s->name, "Stream")) e->kind = (uint8_t)trace_kernel_kind(name);
    else if (e->kind == SM_TRACE_OTHER) e->kind = SM_TRACE_MARK;
    if (e->kind == SM_TRACE_RUN) e->program = program_named(c, e->name);
}

static void name_devices(chrome *c) {
    for (int i = 0; i < c->b->t.devices; i++) {
        sm_trace_device *d = &c->b->device[i];
        if (d->file != c->file) continue;
        d->rank = c->b->file[c->file].rank;
        for (int k = 0; k < c->devices; k++)
            if (c->device[k].id == d->ordinal && c->device[k].name >= 0)
                d->name = c->b->name[c->device[k].name];
    }
}

static bool no_trace(chrome *c) {
    return json_lexer_fail(
        &c->l, (sm_span){c->l.at, 1},
        c->nodes ? "this JSON is no trace of what ran on devices (an execution trace, or another "
                   "list): give what the profiler exported, with \"traceEvents\""
                 : "this JSON has no \"traceEvents\": it is no trace of a profiler");
}

static bool read_all(chrome *c) {
    char opens = json_next(&c->l);
    if (opens == '[') return read_events(c);
    if (!json_take(&c->l, '{')) return json_lexer_fail_token(&c->l, "value expected");
    while (json_stream_more(&c->l, '}'))
        if (!read_member(c)) return false;
    return !c->l.status && !c->b->status;
}

sm_status trace_read_chrome(trace_build *b, const sm_bytes *bytes) {
    sm_source name = {bytes->name, "", 0};
    json_document in = {.source = &name, .arena = b->arena, .err = b->err};
    chrome c = {.b = b, .first_event = b->t.events, .first_stream = b->t.streams};
    c.file = trace_file(b, bytes->name, "Chrome JSON");
    if (b->status) return b->status;
    json_stream_begin(&c.l, &in, bytes);
    bool done = read_all(&c);
    if (done && (!c.events || (c.nodes && b->t.events == c.first_event))) done = no_trace(&c);
    bool cut = !done && b->partial && !b->status && c.l.status == SM_BAD_INPUT && c.events;
    if (!done && !cut && !b->status) b->status = c.l.status;
    b->file[c.file].end = (size_t)json_stream_at(&c.l);
    b->file[c.file].partial = cut;
    if (c.kineto) b->file[c.file].format = "Kineto";
    json_stream_end(&c.l);
    if (!b->status && name_streams(&c)) {
        for (int i = c.first_event; i < b->t.events; i++) tell_kind(&c, &b->event[i]);
        name_devices(&c);
    }
    trace_table_drop(&c.names);
    return b->status;
}
