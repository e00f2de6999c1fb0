/* Where nothing ran on a device the host computed: an op works while none that it calls does. Those
 * times become events of a device of their own, "CPU". */

#include "trace_build.h"

typedef struct open_op {
    int32_t event;
    int64_t end_ps, from_ps; /* worked up to here */
} open_op;

typedef struct host_work {
    trace_build *b;
    open_op *open;
    int n, device;
    size_t room;
} host_work;

static bool emit(host_work *h, const open_op *op, int64_t to) {
    const sm_trace_event by = h->b->event[op->event];
    if (to <= op->from_ps) return true;
    sm_trace_event *e = trace_event(h->b);
    if (!e) return false;
    e->kind = SM_TRACE_COMPUTE;
    e->start_ps = op->from_ps;
    e->duration_ps = to - op->from_ps;
    e->name = by.name;
    e->cause = (int32_t)by.correlation;
    e->stream = trace_stream(h->b, h->device, 0, by.stream);
    return !h->b->status;
}

/* Ops that end before. */
static bool close_ops(host_work *h, int64_t before) {
    while (h->n && h->open[h->n - 1].end_ps <= before) {
        const open_op last = h->open[--h->n];
        if (!emit(h, &last, last.end_ps)) return false;
        if (h->n && h->open[h->n - 1].from_ps < last.end_ps)
            h->open[h->n - 1].from_ps = last.end_ps;
    }
    return true;
}

static bool open_one(host_work *h, int32_t i) {
    sm_trace_event *e = &h->b->event[i];
    int64_t start = e->start_ps, end = start + e->duration_ps;
    if (e->correlation <= 0 || e->correlation > INT32_MAX) e->correlation = INT32_MAX - i;
    if (h->n && !emit(h, &h->open[h->n - 1], start)) return false;
    open_op *list = sm_grow(h->open, (size_t)h->n, &h->room, sizeof *list);
    if (!list) return false;
    h->open = list;
    h->open[h->n++] = (open_op){i, end, start};
    return true;
}

static bool of_a_device(const trace_build *b) {
    for (int i = 0; i < b->t.events; i++)
        if (b->stream[b->event[i].stream].device >= 0 && b->event[i].kind <= SM_TRACE_COPY)
            return true;
    return false;
}

bool trace_add_host_work(trace_build *b) {
    host_work h = {.b = b};
    int n = b->t.events, stream = -1;
    bool done = true;
    if (of_a_device(b)) return true;
    for (int i = 0; done && i < n; i++) {
        const sm_trace_event e = b->event[i];
        if (e.kind != SM_TRACE_OP) continue;
        done = close_ops(&h, e.stream == stream ? e.start_ps : INT64_MAX);
        stream = e.stream;
        h.device = trace_device(b, b->stream[stream].file, 0);
        done = done && h.device >= 0;
        if (done && !b->device[h.device].name[0]) b->device[h.device].name = "CPU";
        done = done && open_one(&h, i);
    }
    done = done && close_ops(&h, INT64_MAX);
    sm_free(h.open);
    return done;
}
