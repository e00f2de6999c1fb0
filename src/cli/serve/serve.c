/* serve: the frontier of latency, throughput and cost at which a model can be served, or one point
 * of it. */
#include "serve.h"
#include "picture.h"
#include "verbs.h"

static sm_status run_serve(const cli_call *call, sm_report *r, sm_error *err) {
    const cli_serve_values *o = call->values;
    cli_serving *v = sm_arena_alloc(call->arena, sizeof *v);
    if (!v) return sm_fail_memory(err);
    sm_status status = cli_serving_read(call, v, err);
    if (status) return status;
    sm_status answer = sm_answer_serve(&v->question, r, err);
    if (answer <= SM_NEGATIVE && r->chart) status = cli_write_chart(r->chart, o->plot, err);
    return status ? status : answer;
}

const cli_verb cli_serve = {
    .name = "serve",
    .summary = "latency, throughput, memory and cost of serving a model",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = cli_serve_options,
    .values_bytes = sizeof(cli_serve_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes =
        "example: scalemodel serve llama-3.1-70b --on tpu-v5e:4x4 --weights int8 --kv int8 \\\n"
        "           --prompt 8192 --output 512 --tpot 30ms\n",
    .run = run_serve,
};
