/* Timelines in the Trace Event Format ("JSON Array/Object Format", Chrome), which Perfetto opens.
 * Times are microseconds there; they are rounded to nanoseconds, and both ends of a slice are
 * rounded alike, so that slices that touch still touch. */
#include <math.h>

#include "columns.h"
#include "scalemodel/json.h"

typedef struct events {
    FILE *out;
    bool begun; /* one has been written */
} events;

static void begin_event(events *t, const char *phase, const char *name) {
    fprintf(t->out, "%s\n{\"ph\": \"%s\", \"pid\": 0, \"name\": ", t->begun ? "," : "", phase);
    sm_json_write_string(t->out, name != NULL ? name : "");
    t->begun = true;
}

static void put_name_of(events *t, const char *what, int track, const char *name) {
    if (name == NULL) return;
    begin_event(t, "M", what);
    fprintf(t->out, ", \"tid\": %d, \"args\": {\"name\": ", track);
    sm_json_write_string(t->out, name);
    fputs("}}", t->out);
}

/* Whole nanoseconds as microseconds with three decimals, whatever the locale. */
static void put_microseconds(FILE *out, const char *key, double nanoseconds) {
    double whole = floor(nanoseconds / 1000);
    fprintf(out, ", \"%s\": %.0f.%03.0f", key, whole, nanoseconds - whole * 1000);
}

static double nanoseconds_of(double seconds) { return round(seconds * 1e9); }

/* Beyond a century nothing is a timeline, and doubles no longer hold nanoseconds. */
static bool in_range(double seconds) { return seconds >= 0 && seconds < 3e9; }

static void put_slice(events *t, const sm_slice *s) {
    if (!in_range(s->start_s) || !in_range(s->seconds)) return;
    double start = nanoseconds_of(s->start_s), end = nanoseconds_of(s->start_s + s->seconds);
    begin_event(t, "X", s->name);
    fprintf(t->out, ", \"tid\": %d, \"cat\": ", s->track);
    sm_json_write_string(t->out, s->category != NULL ? s->category : "");
    put_microseconds(t->out, "ts", start);
    put_microseconds(t->out, "dur", end - start);
    fputs("}", t->out);
}

static void put_counter(events *t, const sm_counter *c) {
    if (!in_range(c->at_s) || !isfinite(c->value)) return;
    begin_event(t, "C", c->name);
    put_microseconds(t->out, "ts", nanoseconds_of(c->at_s));
    fputs(", \"args\": {\"value\": ", t->out);
    sm_json_write_number(t->out, c->value);
    fputs("}}", t->out);
}

sm_status sm_render_tracks(const sm_tracks *tracks, FILE *out, sm_error *err) {
    events t = {.out = out};
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", out);
    if (tracks->n > 0) put_name_of(&t, "process_name", 0, tracks->title);
    for (int i = 0; i < tracks->n; i++) put_name_of(&t, "thread_name", i, tracks->track[i]);
    for (size_t i = 0; i < tracks->slices; i++) put_slice(&t, &tracks->slice[i]);
    for (size_t i = 0; i < tracks->counters; i++) put_counter(&t, &tracks->counter[i]);
    fputs("\n]}\n", out);
    return sm_finish_stream(out, err);
}
