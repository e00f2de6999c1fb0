/* simulate: what the parts of the `simulate` verb share. */
#ifndef SCALEMODEL_CLI_SIMULATE_H
#define SCALEMODEL_CLI_SIMULATE_H
#include "options.h"

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
    cli_model_values read_by;
} cli_simulate_values;
extern const cli_option cli_simulate_options[];

/* The question with what it points to (simulate_input.c). */
typedef struct cli_simulating {
    sm_simulate_question question;
    sm_model model;
    sm_system system;
    sm_simulation simulation;
    sm_synthetic draw;
} cli_simulating;
sm_status cli_simulating_read(const cli_call *call, cli_simulating *simulating, sm_error *err);
#endif
