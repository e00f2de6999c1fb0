/* simulate: what the parts of the `simulate` verb share: the question as read, where requests come
 * from, and the answer. */
#ifndef SCALEMODEL_CLI_SIMULATE_H
#define SCALEMODEL_CLI_SIMULATE_H
#include "options.h"
#include "scalemodel/io.h"
#include "scalemodel/simulate.h"

typedef struct cli_simulate_values {
    const char *on, *plan, *prefill_plan, *trace, *arrivals, *csv, *plot, *timeline;
    int64_t requests, prompt, output, seed;
    int64_t replicas, prefill_replicas, batch, chunk, prefill_tokens, page;
    double prompt_cv, output_cv, ttft, tpot, within, host_memory;
    sm_policy policy;
    sm_preempt preempt;
    sm_route route;
    sm_dtype weights, kv, compute;
    bool prefix_cache, find_max_qps;
    cli_calibration_values constants;
} cli_simulate_values;
extern const cli_option cli_simulate_options[];

/* Requests of a trace, drawn ones, or those of a trace at drawn times; at `rate` times their own
 * rate. */
typedef struct cli_request_source {
    sm_request_file *file; /* NULL: drawn */
    const char *path;
    bool drawn; /* arrivals are drawn */
    sm_synthetic draw;
    sm_arrivals of_file, of_draw;
    double rate, most; /* most: requests */
    double given, first_s;
} cli_request_source;
sm_status cli_source_open(cli_request_source *source, sm_error *err);
void cli_source_close(cli_request_source *source);
/* From the beginning; the context of sm_rated_arrivals. */
sm_status cli_source_begin(void *source, double rate, sm_arrivals *arrivals, sm_error *err);

typedef struct cli_simulating {
    const cli_call *call;
    sm_model model;
    sm_system system;
    sm_serve_job job; /* points to the model and the system above */
    const sm_calibration *calibration;
    sm_plan plan, prefill_plan;
    const char *plan_text, *prefill_plan_text; /* as the library writes them */
    sm_serve *serve;
    sm_engine engine, prefill_engine;
    sm_simulation options;
    cli_request_source source;
    double host_bytes; /* < 0: not given */
    double within;     /* of --find-max-qps */
    bool find_max_qps;
    const char *csv, *plot, *timeline;
    sm_max_rate *max_rate; /* NULL when not asked for */
    sm_simulated result;
} cli_simulating;
sm_status cli_simulating_read(const cli_call *call, cli_simulating *q, sm_error *err);

/* What is written beside the answer (simulate_files.c): begun before the simulation, which tells
 * `watch` of every request and step, and ended after it. */
typedef struct cli_simulate_files {
    const cli_simulating *q;
    FILE *csv, *timeline;
    char *csv_text, *timeline_text;
    size_t csv_length, timeline_length;
    void *trace; /* of render.h */
    double slices;
    sm_watch watch;
} cli_simulate_files;
sm_status cli_simulate_files_begin(const cli_simulating *q, cli_simulate_files *files,
                                   sm_error *err);
sm_status cli_simulate_files_end(cli_simulate_files *files, sm_status status, sm_error *err);

/* ---- the answer (simulate_page.c, simulate_fields.c) ---- */
void cli_simulate_page(sm_report *r, const cli_simulating *q);
void cli_simulate_fields(sm_report *r, const cli_simulating *q);
sm_why *cli_simulate_why(sm_report *r, const cli_simulating *q);
const char *cli_arrivals_words(sm_report *r, const cli_simulating *q);
#endif
