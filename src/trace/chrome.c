/* Chrome's trace format, as PyTorch's profiler (Kineto) and JAX write it: an object with the list
 * "traceEvents" among others, or that list alone. */

#include "chrome_event.h"

typedef struct chrome {
    chrome_events to;
    trace_build *b;
    json_lexer l;
    bool events, nodes; /* what was seen */
} chrome;

static bool take_event(chrome *c) {
    chrome_event in;
    if (json_next(&c->l) != '{') {
        c->nodes = c->nodes || c->b->t.events == c->to.first_event;
        return json_stream_skip(&c->l);
    }
    json_take(&c->l, '{');
    if (!chrome_event_read(&c->l, c->b, &in)) return false;
    c->events = c->events || in.phase != 0;
    chrome_take(&c->to, &in);
    return !c->b->status;
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
        sm_arena_grow(c->b->arena, c->to.device, c->to.devices, &c->to.device_room, sizeof *list);
    if (!list) return json_lexer_fail_memory(&c->l);
    c->to.device = list;
    list[c->to.devices++] = d;
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
        if (rank) c->b->file[c->to.file].rank = (int)(value & INT32_MAX);
        if (world) c->b->file[c->to.file].world = (int)(value & INT32_MAX);
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
    if (chrome_is(&key, "schemaVersion")) c->to.kineto = true;
    if (chrome_is(&key, "nodes")) c->nodes = true;
    if (chrome_is(&key, "deviceProperties")) return read_devices(c);
    if (chrome_is(&key, "distributedInfo")) return read_job(c);
    return json_stream_skip(&c->l);
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
    chrome c = {.b = b};
    chrome_begin(&c.to, b, bytes->name, "Chrome JSON");
    if (b->status) return b->status;
    json_stream_begin(&c.l, &in, bytes);
    bool done = read_all(&c);
    if (done && (!c.events || (c.nodes && b->t.events == c.to.first_event)))
        done = json_lexer_fail(
            &c.l, (sm_span){c.l.at, 1},
            c.nodes
                ? "this JSON is no trace of what ran on devices (an execution trace, or another "
                  "list): give what the profiler exported, with \"traceEvents\""
                : "this JSON has no \"traceEvents\": it is no trace of a profiler");
    bool cut = !done && b->partial && !b->status && c.l.status == SM_BAD_INPUT && c.events;
    if (!done && !cut && !b->status) b->status = c.l.status;
    b->file[c.to.file].end = (size_t)json_stream_at(&c.l);
    b->file[c.to.file].partial = cut;
    json_stream_end(&c.l);
    chrome_end(&c.to);
    return b->status;
}
