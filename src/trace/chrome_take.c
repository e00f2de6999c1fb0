/* Events as they come: what each is, and on which stream; once all are read, what JAX tells by the
 * names of processes and threads alone. */
#include <math.h>
#include <string.h>

#include "chrome_event.h"
#include "named.h"

static void no_memory(chrome_events *c) {
    if (!c->b->status) c->b->status = sm_fail_memory(c->b->err);
}

/* ---- events ---- */

static bool is_named(const chrome_events *c, int32_t name, const char *word) {
    return name >= 0 && strcmp(c->b->names.text[name], word) == 0;
}

static uint64_t key_of(bool is_thread, int64_t process, int64_t thread) {
    uint64_t key = sm_hash_mixed(SM_HASH_SEED, (uint64_t)process + is_thread);
    return sm_hash_mixed(key, is_thread ? (uint64_t)thread + 1 : 0);
}

void chrome_name(chrome_events *c, bool is_thread, int64_t process, int64_t thread, int32_t name) {
    int32_t *at = c->b->status || name < 0
                      ? NULL
                      : sm_numbers_at(&c->names, key_of(is_thread, process, thread));
    if (at) *at = name;
    else if (name >= 0) no_memory(c);
}

/* "" where it has none. */
static const char *name_of(chrome_events *c, bool is_thread, const sm_trace_stream *s) {
    int32_t *at =
        c->names.n ? sm_numbers_at(&c->names, key_of(is_thread, s->process, s->thread)) : NULL;
    return at && *at >= 0 ? c->b->names.text[*at] : "";
}

static int32_t program_named(chrome_events *c, int32_t name) {
    const char *text = c->b->names.text[name];
    int32_t i = trace_program(c->b, sm_hash_bytes(text, strlen(text)));
    if (i >= 0 && !c->b->program[i].name[0]) c->b->program[i].name = text;
    return i;
}

static sm_trace_kind device_kind(const chrome_events *c, const chrome_event *in) {
    const char *name = in->name >= 0 ? c->b->names.text[in->name] : "";
    switch (in->category) {
    case CHROME_COPY: return SM_TRACE_COPY;
    case CHROME_SYNC: return SM_TRACE_SYNC;
    case CHROME_DEVICE_MARK: return SM_TRACE_MARK;
    default: /* event_wait, event_record: of MTIA */
        return begins_with(name, "event_") ? SM_TRACE_SYNC : trace_kernel_kind(name);
    }
}

static sm_trace_kind host_kind(const chrome_events *c, const chrome_event *in) {
    const char *name = in->name >= 0 ? c->b->names.text[in->name] : "";
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

static bool add_detail(chrome_events *c, const chrome_event *in, sm_trace_event *e) {
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
    d->values = in->text[CHROME_VALUES];
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

static int stream_of(chrome_events *c, const chrome_event *in) {
    if (!on_device(in)) return trace_stream(c->b, -1, in->process, in->thread);
    int64_t ordinal = in->has[CHROME_ORDINAL]  ? in->number[CHROME_ORDINAL]
                      : in->has[CHROME_DEVICE] ? in->number[CHROME_DEVICE]
                                               : in->process;
    int device = trace_device(c->b, c->file, (int)(ordinal & INT16_MAX));
    int64_t stream = in->has[CHROME_STREAM] ? in->number[CHROME_STREAM] : in->thread;
    return device < 0 ? -1 : trace_stream(c->b, device, in->process, stream);
}

static sm_trace_event *add_event(chrome_events *c, const chrome_event *in) {
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
        const char *name = c->b->names.text[e->name];
        e->kind = (uint8_t)trace_instruction_kind(name, strlen(name));
    }
    if (in->text[CHROME_HLO_MODULE] >= 0)
        e->program = program_named(c, in->text[CHROME_HLO_MODULE]);
    if (in->category >= CHROME_KERNEL && in->category <= CHROME_OP) c->kineto = true;
    return !c->b->status && add_detail(c, in, e) && !c->b->status ? e : NULL;
}

/* An event that is ended later. */
static void begin_event(chrome_events *c, const chrome_event *in) {
    sm_trace_event *e = add_event(c, in);
    if (!e) return;
    int stream = e->stream - c->first_stream;
    while (c->opens <= stream) {
        int32_t *list = sm_arena_grow(c->b->arena, c->open, c->opens, &c->open_room, sizeof *list);
        if (!list) {
            no_memory(c);
            return;
        }
        c->open = list;
        list[c->opens++] = -1;
    }
    e->cause = c->open[stream]; /* until its end */
    c->open[stream] = c->b->t.events - 1;
}

static void end_event(chrome_events *c, const chrome_event *in) {
    int stream = trace_stream(c->b, -1, in->process, in->thread) - c->first_stream;
    if (stream < 0 || stream >= c->opens || c->open[stream] < 0) return;
    sm_trace_event *e = &c->b->event[c->open[stream]];
    int64_t end = trace_time(c->b, in->start_ns, in->start_ps);
    e->duration_ps = end > e->start_ps ? end - e->start_ps : 0;
    c->open[stream] = e->cause;
    e->cause = -1;
}

void chrome_take(chrome_events *c, const chrome_event *in) {
    /* only modules are kept of Python's functions, and only what has a time of the rest */
    bool kept =
        in->timed && in->name >= 0 && in->category != CHROME_PASSED &&
        (in->category != CHROME_PYTHON || begins_with(c->b->names.text[in->name], "nn.Module: "));
    if (c->b->status) return;
    if (in->phase == 'M') {
        bool thread = is_named(c, in->name, "thread_name");
        if (thread || is_named(c, in->name, "process_name"))
            chrome_name(c, thread, in->process, in->thread, in->text[CHROME_NAME]);
    } else if (in->phase == 'E') end_event(c, in);
    else if (in->phase == 'X' && kept) add_event(c, in);
    else if (in->phase == 'B' && kept) begin_event(c, in);
    else c->b->t.unread++;
}

void chrome_begin(chrome_events *c, trace_build *b, const char *name, const char *format) {
    *c = (chrome_events){.b = b, .first_event = b->t.events, .first_stream = b->t.streams};
    c->file = trace_file(b, name, format);
}

/* ---- once all is read ---- */

/* Streams of processes that are devices: "/device:TPU:0". */
static bool name_streams(chrome_events *c) {
    for (int i = c->first_stream; i < c->b->t.streams; i++) {
        sm_trace_stream *s = &c->b->stream[i];
        s->name = name_of(c, true, s);
        const char *process = name_of(c, false, s), *digits = strrchr(process, ':');
        if (s->device >= 0 || !begins_with(process, "/device:")) continue;
        json_raw number = {IS_TEXT, digits, strlen(digits), false};
        s->device = trace_device(c->b, c->file, (int)(chrome_whole(&number) & INT16_MAX));
        if (s->device < 0) return false;
    }
    return true;
}

static void tell_kind(chrome_events *c, sm_trace_event *e) {
    static const struct {
        const char *line;
        sm_trace_kind kind;
    } lines[] = {{"XLA Modules", SM_TRACE_RUN}, {"Steps", SM_TRACE_STEP}};
    const sm_trace_stream *s = &c->b->stream[e->stream];
    const char *name = c->b->names.text[e->name];
    if (e->kind != SM_TRACE_OTHER) return;
    e->kind = s->device < 0 && !c->kineto ? SM_TRACE_MARK : SM_TRACE_OTHER;
    if (s->device < 0) return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strcmp(s->name, lines[i].line)) e->kind = (uint8_t)lines[i].kind;
    bool ops = !strcmp(s->name, "XLA Ops");
    e->async = !strcmp(s->name, "Async XLA Ops");
    if (ops || e->async) e->kind = (uint8_t)trace_instruction_kind(name, strlen(name));
    else if (begins_with(s->name, "Stream")) e->kind = (uint8_t)trace_kernel_kind(name);
    else if (e->kind == SM_TRACE_OTHER) e->kind = SM_TRACE_MARK;
    if (e->kind == SM_TRACE_RUN) e->program = program_named(c, e->name);
}

void chrome_end(chrome_events *c) {
    if (!c->b->status && name_streams(c)) {
        if (c->kineto && !strcmp(c->b->file[c->file].format, "Chrome JSON"))
            c->b->file[c->file].format = "Kineto";
        for (int i = c->first_event; i < c->b->t.events; i++) tell_kind(c, &c->b->event[i]);
        for (int i = 0; i < c->b->t.devices; i++) {
            sm_trace_device *d = &c->b->device[i];
            if (d->file != c->file) continue;
            d->rank = c->b->file[c->file].rank;
            for (int k = 0; k < c->devices; k++)
                if (c->device[k].id == d->ordinal && c->device[k].name >= 0)
                    d->name = c->b->names.text[c->device[k].name];
        }
    }
    sm_numbers_free(&c->names);
}
