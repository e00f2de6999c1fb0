/* Timelines in the Trace Event Format ("JSON Array/Object Format", Chrome), which Perfetto opens.
 * Times are microseconds there; they are rounded to nanoseconds, and both ends of a slice are
 * rounded alike, so that slices that touch still touch. */
#include <math.h>

#include "columns.h"
#include "scalemodel/json.h"
#include "scalemodel/render.h"

struct sm_trace {
    FILE *out;
    bool begun; /* an event has been written */
};

sm_trace *sm_trace_begin(FILE *out) {
    sm_trace *t = sm_calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->out = out;
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", out);
    return t;
}

static void begin_event(sm_trace *t, const char *phase, int process, const char *name) {
    fprintf(t->out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"name\": ", t->begun ? "," : "", phase,
            process);
    sm_json_write_string(t->out, name != NULL ? name : "");
    t->begun = true;
}

static void put_name_of(sm_trace *t, const char *what, int process, int thread, const char *name) {
    begin_event(t, "M", process, what);
    fprintf(t->out, ", \"tid\": %d, \"args\": {\"name\": ", thread);
    sm_json_write_string(t->out, name);
    fputs("}}", t->out);
}

void sm_trace_thread(sm_trace *t, int process, const char *process_name, int thread,
                     const char *thread_name) {
    if (t == NULL) return;
    if (process_name != NULL) put_name_of(t, "process_name", process, thread, process_name);
    if (thread_name != NULL) put_name_of(t, "thread_name", process, thread, thread_name);
}

/* Whole nanoseconds as microseconds with three decimals, whatever the locale. */
static void put_microseconds(FILE *out, const char *key, double nanoseconds) {
    double whole = floor(nanoseconds / 1000);
    fprintf(out, ", \"%s\": %.0f.%03.0f", key, whole, nanoseconds - whole * 1000);
}

static double nanoseconds_of(double seconds) { return round(seconds * 1e9); }

/* Beyond a century nothing is a timeline, and doubles no longer hold nanoseconds. */
static bool in_range(double seconds) { return seconds >= 0 && seconds < 3e9; }

void sm_trace_slice(sm_trace *t, int process, int thread, const char *name, const char *category,
                    double start_s, double duration_s) {
    if (t == NULL || !in_range(start_s) || !in_range(duration_s)) return;
    double start = nanoseconds_of(start_s), end = nanoseconds_of(start_s + duration_s);
    begin_event(t, "X", process, name);
    fprintf(t->out, ", \"tid\": %d, \"cat\": ", thread);
    sm_json_write_string(t->out, category != NULL ? category : "");
    put_microseconds(t->out, "ts", start);
    put_microseconds(t->out, "dur", end - start);
    fputs("}", t->out);
}

void sm_trace_counter(sm_trace *t, int process, const char *name, double at_s, double value) {
    if (t == NULL || !in_range(at_s) || !isfinite(value)) return;
    begin_event(t, "C", process, name);
    put_microseconds(t->out, "ts", nanoseconds_of(at_s));
    fputs(", \"args\": {\"value\": ", t->out);
    sm_json_write_number(t->out, value);
    fputs("}}", t->out);
}

sm_status sm_trace_end(sm_trace *t, sm_error *err) {
    if (t == NULL) return sm_fail_memory(err);
    FILE *out = t->out;
    sm_free(t);
    fputs("\n]}\n", out);
    return sm_finish_stream(out, err);
}

sm_status sm_render_tracks(const sm_tracks *tracks, FILE *out, sm_error *err) {
    sm_trace *t = sm_trace_begin(out);
    for (int i = 0; i < tracks->n; i++)
        sm_trace_thread(t, 0, i == 0 ? tracks->title : NULL, i, tracks->track[i]);
    for (size_t i = 0; i < tracks->slices; i++) {
        const sm_slice *s = &tracks->slice[i];
        sm_trace_slice(t, 0, s->track, s->name, s->category, s->start_s, s->seconds);
    }
    for (size_t i = 0; i < tracks->counters; i++)
        sm_trace_counter(t, 0, tracks->counter[i].name, tracks->counter[i].at_s,
                         tracks->counter[i].value);
    return sm_trace_end(t, err);
}
