/* simulate_files: what `simulate` writes beside its answer: a row for each request, the steps as a
 * timeline, the series as a plot. */
#include "picture.h"
#include "scalemodel/render.h"
#include "simulate.h"
#include <stdlib.h>
#include <string.h>

#define MOST_SLICES 200000.0 /* what a viewer still opens */

/* ---- a row for each request ---- */

static void put_served(cli_simulate_files *f, const sm_request_served *s) {
    fprintf(f->csv, "%llu,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f,%.0f,%d,%d\n",
            (unsigned long long)s->number, s->arrival_s, s->start_s, s->first_token_s, s->end_s,
            s->prompt, s->output, s->cached, s->replica, s->preemptions);
}

static void note_served(void *context, const sm_request_served *served) {
    cli_simulate_files *f = context;
    if (f->csv) put_served(f, served);
}

/* ---- the timeline ---- */

static void note_step(void *context, int replica, double start_s, double seconds, double steps,
                      double decoding, double prefill) {
    cli_simulate_files *f = context;
    char name[96];
    if (!f->trace || f->slices >= MOST_SLICES) return;
    const char *kind = decoding > 0.0 ? prefill > 0.0 ? "mixed" : "decode" : "prefill";
    if (prefill > 0.0 && decoding > 0.0)
        snprintf(name, sizeof name, "decode %.0f, prefill %.0f", decoding, prefill);
    else if (prefill > 0.0) snprintf(name, sizeof name, "prefill %.0f", prefill);
    else snprintf(name, sizeof name, "decode %.0f, %.0f steps", decoding, steps);
    sm_trace_slice(f->trace, 0, replica, name, kind, start_s, seconds);
    f->slices += 1.0;
}

static int all_replicas(const sm_simulation *o) {
    return o->replicas + (o->policy == SM_POLICY_DISAGGREGATED ? o->prefill_replicas : 0);
}

static void name_tracks(cli_simulate_files *f) {
    const sm_simulation *o = &f->q->options;
    char process[256], name[48];
    snprintf(process, sizeof process, "%.90s on %.90s", f->q->model.name, f->q->system.text);
    for (int i = 0; i < all_replicas(o); i++) {
        if (i < o->replicas) snprintf(name, sizeof name, "replica %d", i);
        else snprintf(name, sizeof name, "prefill %d", i - o->replicas);
        sm_trace_thread(f->trace, 0, i == 0 ? process : NULL, i, name);
    }
}

static void put_counters(cli_simulate_files *f) {
    const sm_simulated *s = &f->q->result;
    for (int i = 0; i < s->samples; i++) {
        const sm_sample *at = &s->sample[i];
        sm_trace_counter(f->trace, 0, "waiting", at->at_s, at->waiting);
        sm_trace_counter(f->trace, 0, "running", at->at_s, at->running);
        sm_trace_counter(f->trace, 0, "KV occupancy", at->at_s, at->kv_occupancy);
    }
}

/* ---- the plot ---- */

typedef struct series_set {
    double at[SM_MAX_SAMPLES], waiting[SM_MAX_SAMPLES], running[SM_MAX_SAMPLES];
    double kv[SM_MAX_SAMPLES], busy[SM_MAX_SAMPLES];
} series_set;

static void fill_series(const sm_simulated *s, series_set *set) {
    double begin = s->samples > 0 ? s->sample[s->samples - 1].at_s - s->seconds : 0.0;
    for (int i = 0; i < s->samples; i++) {
        set->at[i] = s->sample[i].at_s - begin;
        set->waiting[i] = s->sample[i].waiting;
        set->running[i] = s->sample[i].running;
        set->kv[i] = s->sample[i].kv_occupancy;
        set->busy[i] = s->sample[i].utilisation;
    }
}

static sm_status draw(const cli_simulating *q, const series_set *set, sm_error *err) {
    size_t n = (size_t)q->result.samples;
    char title[160];
    snprintf(title, sizeof title, "%.60s on %.60s", q->model.name, q->system.text);
    const sm_series requests[] = {{"waiting", false, n, set->at, set->waiting},
                                  {"running", false, n, set->at, set->running}};
    const sm_series shares[] = {{"KV cache in use", false, n, set->at, set->kv},
                                {"engine busy", false, n, set->at, set->busy}};
    const sm_panel panels[] = {{.title = "Requests",
                                .x_label = "time",
                                .y_label = "requests",
                                .x_unit = "s",
                                .y_unit = "",
                                .n = 2,
                                .series = requests},
                               {.title = "Shares",
                                .x_label = "time",
                                .y_label = "share",
                                .x_unit = "s",
                                .y_unit = "",
                                .n = 2,
                                .series = shares}};
    const sm_chart chart = {title, q->plan_text, 2, panels};
    return cli_write_chart(&chart, q->plot, err);
}

static sm_status write_plot(const cli_simulating *q, sm_error *err) {
    series_set *set = sm_arena_alloc(q->call->arena, sizeof *set);
    if (!set) return sm_fail_memory(err);
    fill_series(&q->result, set);
    return draw(q, set, err);
}

/* ---- begin and end ---- */

sm_status cli_simulate_files_begin(const cli_simulating *q, cli_simulate_files *f, sm_error *err) {
    *f = (cli_simulate_files){.q = q};
    if (q->csv) f->csv = open_memstream(&f->csv_text, &f->csv_length);
    if (q->timeline) f->timeline = open_memstream(&f->timeline_text, &f->timeline_length);
    if (f->timeline) f->trace = sm_trace_begin(f->timeline);
    bool refused = (q->csv && !f->csv) || (q->timeline && !f->trace);
    if (refused) return cli_simulate_files_end(f, sm_fail_memory(err), err);
    if (f->csv)
        fputs("request,arrival_s,start_s,first_token_s,end_s,prompt_tokens,output_tokens,"
              "cached_tokens,replica,preemptions\n",
              f->csv);
    if (f->trace) name_tracks(f);
    f->watch = (sm_watch){f, note_served, note_step};
    return SM_OK;
}

static sm_status end_one(FILE *memory, char **text, size_t *length, const char *path,
                         sm_status status, sm_error *err) {
    if (!memory) return status;
    if (fclose(memory) != 0 && !status) status = sm_fail_memory(err);
    if (!status) status = sm_io_write(path, *text, *length, err);
    free(*text);
    *text = NULL;
    return status;
}

sm_status cli_simulate_files_end(cli_simulate_files *f, sm_status status, sm_error *err) {
    const cli_simulating *q = f->q;
    if (f->trace) {
        if (!status) put_counters(f);
        sm_error own;
        sm_status ended = sm_trace_end(f->trace, status ? &own : err);
        if (!status) status = ended;
    }
    status = end_one(f->csv, &f->csv_text, &f->csv_length, q->csv, status, err);
    status = end_one(f->timeline, &f->timeline_text, &f->timeline_length, q->timeline, status, err);
    return !status && q->plot ? write_plot(q, err) : status;
}
