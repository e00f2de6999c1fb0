/* simulate_picture: a simulation over time: the steps of its replicas as a timeline, its queue,
 * batch and memory as a chart. */
#include "simulate_asked.h"
#include <string.h>

#define MOST_SLICES 200000 /* what a viewer still opens */

/* ---- the timeline ---- */

static void note_served(void *context, const sm_request_served *served) {
    const sm_watch *theirs = ((sm_simulate_asked *)context)->in.watch;
    if (theirs && theirs->served) theirs->served(theirs->context, served);
}

static bool make_room(sm_simulate_asked *q) {
    size_t n = q->tracks->slices, room = q->room ? 2 * q->room : 1024;
    if (n < q->room) return true;
    sm_slice *slice = sm_arena_array(q->report->arena, room, sizeof *slice);
    if (!slice) {
        q->report->out_of_memory = true;
        return false;
    }
    if (n > 0) memcpy(slice, q->slice, n * sizeof *slice);
    q->tracks->slice = q->slice = slice;
    q->room = room;
    return true;
}

static void note_step(void *context, int replica, double start_s, double seconds, double steps,
                      double decoding, double prefill) {
    sm_simulate_asked *q = context;
    const sm_watch *theirs = q->in.watch;
    if (theirs && theirs->step)
        theirs->step(theirs->context, replica, start_s, seconds, steps, decoding, prefill);
    if (!q->tracks || q->tracks->slices >= MOST_SLICES || !make_room(q)) return;
    const char *kind = decoding > 0.0 ? prefill > 0.0 ? "mixed" : "decode" : "prefill", *name;
    if (prefill > 0.0 && decoding > 0.0)
        name = sm_textf(q->report, "decode %.0f, prefill %.0f", decoding, prefill);
    else if (prefill > 0.0) name = sm_textf(q->report, "prefill %.0f", prefill);
    else name = sm_textf(q->report, "decode %.0f, %.0f steps", decoding, steps);
    q->slice[q->tracks->slices++] = (sm_slice){replica, name, kind, start_s, seconds};
}

sm_status sm_simulate_tracks_begin(sm_simulate_asked *q, sm_error *err) {
    sm_report *r = q->report;
    const sm_simulation *o = &q->options;
    bool split = o->policy == SM_POLICY_DISAGGREGATED;
    q->watch = (sm_watch){q, note_served, note_step};
    if (!q->in.timeline) return SM_OK;
    int n = o->replicas + (split ? o->prefill_replicas : 0);
    const char **names = sm_arena_array(r->arena, (size_t)n, sizeof *names);
    q->tracks = sm_arena_alloc(r->arena, sizeof *q->tracks);
    if (!names || !q->tracks) return sm_fail_memory(err);
    for (int i = 0; i < n; i++)
        names[i] = i < o->replicas ? sm_textf(r, "replica %d", i)
                                   : sm_textf(r, "prefill %d", i - o->replicas);
    q->tracks->title = sm_textf(r, "%.90s on %.90s", q->in.model->name, q->in.system->text);
    q->tracks->n = n;
    q->tracks->track = names;
    return SM_OK;
}

sm_status sm_simulate_tracks_end(sm_simulate_asked *q, sm_error *err) {
    const sm_simulated *s = &q->result;
    if (!q->tracks) return SM_OK;
    sm_counter *c = sm_arena_array(q->report->arena, 3 * (size_t)s->samples + 1, sizeof *c);
    if (!c) return sm_fail_memory(err);
    q->tracks->counter = c;
    q->tracks->counters = 3 * (size_t)s->samples;
    for (int i = 0; i < s->samples; i++) {
        const sm_sample *at = &s->sample[i];
        *c++ = (sm_counter){"waiting", at->at_s, at->waiting};
        *c++ = (sm_counter){"running", at->at_s, at->running};
        *c++ = (sm_counter){"KV occupancy", at->at_s, at->kv_occupancy};
    }
    q->report->tracks = q->tracks;
    return SM_OK;
}

/* ---- the picture ---- */

sm_status sm_simulate_picture(sm_simulate_asked *q, sm_error *err) {
    const sm_simulated *s = &q->result;
    size_t n = (size_t)s->samples;
    struct picture {
        sm_chart chart;
        sm_panel panel[2];
        sm_series series[4];
        double at[SM_MAX_SAMPLES], value[4][SM_MAX_SAMPLES];
    } *p = sm_arena_alloc(q->report->arena, sizeof *p);
    if (!p) return sm_fail_memory(err);
    double first = n > 0 ? s->sample[n - 1].at_s - s->seconds : 0.0;
    for (size_t i = 0; i < n; i++) {
        const sm_sample *at = &s->sample[i];
        p->at[i] = at->at_s - first;
        p->value[0][i] = at->waiting;
        p->value[1][i] = at->running;
        p->value[2][i] = at->kv_occupancy;
        p->value[3][i] = at->utilisation;
    }
    static const char *const names[] = {"waiting", "running", "KV cache in use", "engine busy"};
    for (int k = 0; k < 4; k++)
        p->series[k] = (sm_series){names[k], SM_MARK_LINE, n, p->at, p->value[k]};
    p->panel[0] = (sm_panel){.title = "Requests",
                             .x_label = "time",
                             .y_label = "requests",
                             .x_unit = "s",
                             .y_unit = "",
                             .n = 2,
                             .series = p->series};
    p->panel[1] = p->panel[0];
    p->panel[1].title = "Shares";
    p->panel[1].y_label = "share";
    p->panel[1].series = p->series + 2;
    p->chart =
        (sm_chart){sm_textf(q->report, "%.60s on %.60s", q->in.model->name, q->in.system->text),
                   q->plan_text, 2, p->panel};
    q->report->chart = &p->chart;
    return SM_OK;
}
