/* Where steps begin and end: as marked, else as the program that ran longest ran, else as kernels
 * repeat. */
#include <stdlib.h>

#include "breakdown_made.h"

const sm_trace_event *trace_cause(const sm_trace *t, const sm_trace_event *e, sm_trace_kind kind) {
    while (e && e->kind != kind) e = e->cause >= 0 ? &t->event[e->cause] : NULL;
    return e;
}

static bool add(breakdown_made *made, step_list *list, int64_t start, int64_t end) {
    sm_trace_step *longer =
        sm_arena_grow(made->arena, list->step, list->n, &list->room, sizeof *longer);
    if (!longer) return false;
    list->step = longer;
    longer[list->n++] = (sm_trace_step){.start_ps = start, .end_ps = end};
    return true;
}

SM_ORDER(by_start, sm_trace_step, SM_ASCENDING(start_ps) SM_DESCENDING(end_ps))

static int64_t end_of(const sm_trace_event *e) { return e->start_ps + e->duration_ps; }

/* Marks of a kind: of the device itself, or of the hosts of its file. */
static bool marked(breakdown_made *made, int device, bool host, step_list *list) {
    const sm_trace *t = made->trace;
    for (int i = 0; i < t->events; i++) {
        const sm_trace_event *e = &t->event[i];
        const sm_trace_stream *s = &t->stream[e->stream];
        if (e->kind != SM_TRACE_STEP || e->duration_ps <= 0) continue;
        bool fits = host ? s->device < 0 && s->file == t->on[device].file : s->device == device;
        if (fits && !add(made, list, e->start_ps, end_of(e))) return false;
    }
    return true;
}

/* Each lasts until the next begins; of some that begin within another the outer one counts. The
 * last one lasts until what it has launched is done. */
static void close_steps(breakdown_made *made, int device, step_list *list) {
    const sm_trace *t = made->trace;
    int n = 0;
    if (list->n) qsort(list->step, (size_t)list->n, sizeof *list->step, by_start);
    for (int i = 0; i < list->n; i++)
        if (n == 0 || list->step[i].start_ps >= list->step[n - 1].end_ps)
            list->step[n++] = list->step[i];
    list->n = n;
    for (int i = 0; i + 1 < n; i++) list->step[i].end_ps = list->step[i + 1].start_ps;
    for (int i = n ? made->first[device + 1] : 0; i-- > made->first[device];) {
        const sm_trace_event *e = &t->event[made->work[i]];
        const sm_trace_event *launch = trace_cause(t, e, SM_TRACE_LAUNCH);
        sm_trace_step *last = &list->step[n - 1];
        if (launch && launch->start_ps >= last->start_ps && launch->start_ps < last->end_ps &&
            end_of(e) > last->end_ps)
            last->end_ps = end_of(e);
    }
}

/* Runs of the program that ran longest here. */
static bool programs(breakdown_made *made, int device, step_list *list) {
    const sm_trace *t = made->trace;
    int32_t program = -1;
    for (int i = 0; i < t->events; i++) {
        const sm_trace_event *e = &t->event[i];
        if (e->kind != SM_TRACE_RUN || t->stream[e->stream].device != device) continue;
        if (program < 0 || e->program < program) {
            program = e->program;
            list->n = 0;
        }
        if (e->program == program && !add(made, list, e->start_ps, end_of(e))) return false;
    }
    return true;
}

/* ---- repetition ---- */

enum { LEAST_REPEATS = 3 };

static const sm_trace_event *kernel(const breakdown_made *made, int device, int i) {
    return &made->trace->event[made->work[made->first[device] + i]];
}

/* How many of the kernels are the same as those `period` before. */
static bool repeats(const breakdown_made *made, int device, int period, int n) {
    int same = 0, all = n - period;
    for (int i = period; i < n; i++)
        same += kernel(made, device, i)->name == kernel(made, device, i - period)->name;
    return all > 0 && same >= all * 0.95;
}

/* The shortest period over which kernels repeat, of those at which the rarest repeated kernel
 * comes back; 0: they do not. */
static int period_of(const breakdown_made *made, int device, int n) {
    enum { TRIED = 64 };
    int tried = 0, last_period = 0;
    for (int from = 0; from < n && tried < TRIED; from++) {
        int again = from + 1;
        while (again < n && kernel(made, device, again)->name != kernel(made, device, from)->name)
            again++;
        int period = again - from;
        if (again == n || period == last_period || period > n / LEAST_REPEATS) continue;
        last_period = period;
        tried++;
        if (repeats(made, device, period, n)) return period;
    }
    return 0;
}

static bool repeated(breakdown_made *made, int device, step_list *list) {
    enum { MOST = 200000 }; /* kernels that are looked at */
    int n = made->first[device + 1] - made->first[device];
    int period = n <= MOST ? period_of(made, device, n) : 0;
    for (int i = 0; period > 1 && i + period < n; i += period)
        if (!add(made, list, kernel(made, device, i)->start_ps,
                 kernel(made, device, i + period)->start_ps))
            return false;
    return true;
}

/* ---- all ---- */

static bool whole(breakdown_made *made, int device, step_list *list) {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (int i = made->first[device]; i < made->first[device + 1]; i++) {
        const sm_trace_event *e = &made->trace->event[made->work[i]];
        if (e->start_ps < start) start = e->start_ps;
        if (end_of(e) > end) end = end_of(e);
    }
    return start >= end || add(made, list, start, end);
}

bool breakdown_steps(breakdown_made *made, int device, step_list *list) {
    sm_steps_from from = SM_STEPS_MARKED;
    *list = (step_list){NULL, 0, 0};
    if (!marked(made, device, false, list)) return false;
    if (list->n == 0 && !marked(made, device, true, list)) return false;
    if (list->n == 0) {
        from = SM_STEPS_PROGRAM;
        if (!programs(made, device, list)) return false;
    }
    if (list->n) close_steps(made, device, list);
    if (list->n == 0) {
        from = SM_STEPS_REPEATED;
        if (!repeated(made, device, list)) return false;
    }
    if (list->n == 0) {
        from = SM_STEPS_NONE;
        if (!whole(made, device, list)) return false;
    }
    if (from > made->b.steps_from) made->b.steps_from = from;
    return true;
}
