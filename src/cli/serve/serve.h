/* serve: what the parts of the `serve` verb share. */
#ifndef SCALEMODEL_CLI_SERVE_H
#define SCALEMODEL_CLI_SERVE_H
#include "options.h"

typedef struct cli_serve_values {
    const char *on, *plan, *speculate, *draft, *plot;
    int64_t batch, prompt, output_tokens, context, prefix, top;
    sm_dtype_list weights, kv, compute;
    double ttft, tpot, qps, price, imbalance, reserve;
    sm_range chips;
    bool eager, lower, with_prefill, disaggregated;
    cli_calibration_values constants;
    cli_model_values read_by;
} cli_serve_values;
extern const cli_option cli_serve_options[];

/* The question with what it points to (serve_input.c). */
typedef struct cli_serving {
    sm_serve_question question;
    sm_model model, draft;
    sm_system system;
} cli_serving;
sm_status cli_serving_read(const cli_call *call, cli_serving *serving, sm_error *err);
#endif
