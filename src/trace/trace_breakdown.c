/* Where each device's time went. A sweep over the beginnings and ends of its events: at any time it
 * computes, or else communicates, or else copies, or idles; what an idle device waits for, the
 * launch of its next event tells. */
#include <math.h>
#include <stdlib.h>

#include "breakdown_made.h"

const char *sm_time_part_name(sm_time_part part) {
    static const char *const names[SM_PARTS] = {"compute",     "exposed communication",
                                                "copies",      "waiting for the host",
                                                "launch gaps", "idle"};
    return names[part];
}

static int64_t end_of(const sm_trace_event *e) { return e->start_ps + e->duration_ps; }

/* ---- the work of each device ---- */

static bool is_work(const sm_trace_event *e) { return e->kind <= SM_TRACE_COPY; }

SM_ORDER_OF_POINTERS(by_start, sm_trace_event, SM_ASCENDING(start_ps) SM_BY_PLACE)

static bool sort_work(breakdown_made *made, int device) {
    int first = made->first[device], n = made->first[device + 1] - first;
    const sm_trace_event **list = sm_calloc((size_t)n + 1, sizeof *list);
    if (!list) return false;
    for (int i = 0; i < n; i++) list[i] = &made->trace->event[made->work[first + i]];
    if (n) qsort(list, (size_t)n, sizeof *list, by_start);
    for (int i = 0; i < n; i++) made->work[first + i] = (int32_t)(list[i] - made->trace->event);
    sm_free(list);
    return true;
}

static bool list_work(breakdown_made *made) {
    const sm_trace *t = made->trace;
    int n = 0;
    made->first = sm_arena_array(made->arena, (size_t)t->devices + 2, sizeof *made->first);
    if (!made->first) return false;
    for (int i = 0; i < t->events; i++) {
        int device = t->stream[t->event[i].stream].device;
        if (device >= 0 && is_work(&t->event[i])) {
            made->first[device + 2]++;
            n++;
        }
    }
    for (int d = 0; d <= t->devices; d++) made->first[d + 1] += made->first[d];
    made->work = sm_arena_array(made->arena, (size_t)n + 1, sizeof *made->work);
    if (!made->work) return false;
    for (int i = 0; i < t->events; i++) {
        int device = t->stream[t->event[i].stream].device;
        if (device >= 0 && is_work(&t->event[i])) made->work[made->first[device + 1]++] = i;
    }
    for (int d = 0; d < t->devices; d++)
        if (!sort_work(made, d)) return false;
    return true;
}

/* ---- the sweep ---- */

typedef struct edge {
    int64_t at;
    int32_t event;
    bool begins;
} edge;

typedef struct sweep {
    breakdown_made *made;
    step_list steps;
    sm_trace_step whole;
    int step;           /* those before have ended */
    int active[3];      /* events of each kind of work */
    int32_t collective; /* the one that began last */
    bool launches;      /* the trace has calls of the runtime */
} sweep;

SM_ORDER(by_time, edge, SM_ASCENDING(at) SM_DESCENDING(begins) SM_ASCENDING(event))

static void count_in(sm_trace_step *step, sm_time_part part, int64_t from, int64_t to,
                     bool overlapped) {
    if (from < step->start_ps) from = step->start_ps;
    if (to > step->end_ps) to = step->end_ps;
    if (from >= to) return;
    double seconds = (double)(to - from) * 1e-12;
    step->part_s[part] += seconds;
    if (overlapped) step->overlapped_s += seconds;
}

static void count(sweep *s, sm_time_part part, int64_t from, int64_t to, bool overlapped) {
    if (from >= to) return;
    count_in(&s->whole, part, from, to, overlapped);
    while (s->step < s->steps.n && s->steps.step[s->step].end_ps <= from) s->step++;
    for (int i = s->step; i < s->steps.n && s->steps.step[i].start_ps < to; i++)
        count_in(&s->steps.step[i], part, from, to, overlapped);
}

/* A device idles until `next` begins; -1: nothing follows. */
static void count_gap(sweep *s, int64_t from, int64_t to, int32_t next) {
    const sm_trace *t = s->made->trace;
    const sm_trace_event *launch =
        next >= 0 ? trace_cause(t, &t->event[next], SM_TRACE_LAUNCH) : NULL;
    if (!launch) {
        count(s, next < 0 && s->launches ? SM_PART_HOST : SM_PART_IDLE, from, to, false);
        return;
    }
    /* Kernels may begin before the call that launches them returns. */
    int64_t launched = end_of(launch);
    launched = launched < from ? from : launched > to ? to : launched;
    count(s, SM_PART_HOST, from, launched, false);
    count(s, SM_PART_GAP, launched, to, false);
}

static void count_work(sweep *s, int64_t from, int64_t to) {
    bool computes = s->active[SM_TRACE_COMPUTE] > 0, sends = s->active[SM_TRACE_COLLECTIVE] > 0;
    count(s,
          computes ? SM_PART_COMPUTE
          : sends  ? SM_PART_EXPOSED
                   : SM_PART_COPIES,
          from, to, computes && sends);
    if (!computes && sends && s->collective >= 0) s->made->exposed_ps[s->collective] += to - from;
}

static bool list_edges(const breakdown_made *made, int device, edge **out, int *n) {
    int first = made->first[device], all = made->first[device + 1] - first;
    edge *list = sm_calloc(2 * (size_t)all + 1, sizeof *list);
    *n = 0;
    if (!list) return false;
    for (int i = 0; i < all; i++) {
        int32_t e = made->work[first + i];
        const sm_trace_event *event = &made->trace->event[e];
        list[(*n)++] = (edge){event->start_ps, e, true};
        list[(*n)++] = (edge){end_of(event), e, false};
    }
    if (*n) qsort(list, (size_t)*n, sizeof *list, by_time);
    *out = list;
    return true;
}

static void pass_edge(sweep *s, const edge *at) {
    int kind = s->made->trace->event[at->event].kind;
    s->active[kind] += at->begins ? 1 : -1;
    if (kind != SM_TRACE_COLLECTIVE) return;
    if (at->begins) s->collective = at->event;
    else if (s->active[kind] == 0) s->collective = -1;
}

static bool run_sweep(sweep *s, int device) {
    edge *list;
    int n;
    if (!list_edges(s->made, device, &list, &n)) return false;
    int64_t begin = n ? list[0].at : 0, end = n ? list[n - 1].at : 0, last = begin;
    s->whole = (sm_trace_step){.start_ps = begin, .end_ps = end};
    int64_t from = s->steps.n ? s->steps.step[0].start_ps : begin;
    int64_t to = s->steps.n ? s->steps.step[s->steps.n - 1].end_ps : end;
    if (n) count_gap(s, from < begin ? from : begin, begin, list[0].event);
    for (int i = 0; i < n; i++) {
        bool busy = s->active[0] + s->active[1] + s->active[2] > 0;
        if (busy) count_work(s, last, list[i].at);
        else count_gap(s, last, list[i].at, list[i].event);
        last = list[i].at;
        pass_edge(s, &list[i]);
    }
    count_gap(s, last, to > last ? to : last, -1);
    sm_free(list);
    return true;
}

/* ---- a device ---- */

static double length_s(const sm_trace_step *step) {
    return (double)(step->end_ps - step->start_ps) * 1e-12;
}

SM_ORDER_OF_NUMBERS(by_value, double)

static void add_step(sm_trace_step *sum, const sm_trace_step *step, double weight) {
    for (int p = 0; p < SM_PARTS; p++) sum->part_s[p] += weight * step->part_s[p];
    sum->overlapped_s += weight * step->overlapped_s;
}

/* A mean's length is that of its parts. */
static void set_length(sm_trace_step *mean) {
    double all = 0;
    for (int p = 0; p < SM_PARTS; p++) all += mean->part_s[p];
    mean->start_ps = 0;
    mean->end_ps = (int64_t)llround(all * 1e12);
}

static bool sum_up(const sweep *s, sm_device_time *d) {
    int n = s->steps.n;
    double *length = sm_calloc((size_t)n + 1, sizeof *length);
    if (!length) return false;
    d->steps = n;
    d->step = s->steps.step;
    d->whole = s->whole;
    for (int i = 0; i < n; i++) {
        add_step(&d->mean, &d->step[i], 1.0 / n);
        length[i] = length_s(&d->step[i]);
    }
    set_length(&d->mean);
    if (n) qsort(length, (size_t)n, sizeof *length, by_value);
    d->least_s = n ? length[0] : 0;
    d->most_s = n ? length[n - 1] : 0;
    d->median_s = n ? (length[(n - 1) / 2] + length[n / 2]) / 2 : 0;
    d->collective_s = d->mean.part_s[SM_PART_EXPOSED] + d->mean.overlapped_s;
    d->wait_s = NAN;
    sm_free(length);
    return true;
}

SM_ORDER(by_length, sm_device_time,
         SM_BY_KEY(length_s(&y->mean), length_s(&x->mean)) SM_ASCENDING(device))

static bool break_down(breakdown_made *made) {
    const sm_trace *t = made->trace;
    sm_device_time *list = sm_arena_array(made->arena, (size_t)t->devices + 1, sizeof *list);
    if (!list) return false;
    bool launches = false;
    for (int i = 0; i < t->events; i++) launches |= t->event[i].kind == SM_TRACE_LAUNCH;
    for (int d = 0; d < t->devices; d++) {
        sweep s = {.made = made, .collective = -1, .launches = launches};
        if (made->first[d] == made->first[d + 1]) continue;
        if (!breakdown_steps(made, d, &s.steps) || !run_sweep(&s, d)) return false;
        list[made->b.devices].device = d;
        if (!sum_up(&s, &list[made->b.devices++])) return false;
    }
    int n = made->b.devices;
    for (int d = 0; d < n; d++) add_step(&made->b.mean, &list[d].mean, 1.0 / n);
    set_length(&made->b.mean);
    if (n) qsort(list, (size_t)n, sizeof *list, by_length);
    made->b.device = list;
    return true;
}

sm_status sm_trace_break_down(const sm_trace *trace, sm_arena *arena,
                              const sm_trace_breakdown **out, sm_error *err) {
    breakdown_made *made = sm_arena_alloc(arena, sizeof *made);
    if (!made) return sm_fail_memory(err);
    *made = (breakdown_made){.trace = trace, .arena = arena, .err = err};
    made->b.trace = trace;
    made->exposed_ps = sm_calloc((size_t)trace->events + 1, sizeof *made->exposed_ps);
    bool done = made->exposed_ps && list_work(made) && break_down(made) && breakdown_rows(made) &&
                breakdown_comms(made);
    sm_free(made->exposed_ps);
    if (!done) return sm_fail_memory(err);
    for (int i = 0; i < trace->events; i++)
        if (trace->event[i].kind == SM_TRACE_OTHER)
            made->b.other_s += (double)trace->event[i].duration_ps * 1e-12;
    if (made->b.devices == 0)
        return sm_fail(err, SM_BAD_INPUT, "%s: nothing in the trace ran on a device",
                       trace->files ? trace->file[0].name : "trace");
    *out = &made->b;
    return SM_OK;
}
