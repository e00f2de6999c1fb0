/* simulate: requests through replicas of a serving engine. */
#include "simulate.h"
#include "picture.h"
#include "scalemodel/io.h"
#include "verbs.h"

/* --csv: a row for each request, as it ends. */
static void put_served(void *context, const sm_request_served *s) {
    fprintf(context, "%llu,%.9g,%.9g,%.9g,%.9g,%.0f,%.0f,%.0f,%d,%d\n",
            (unsigned long long)s->number, s->arrival_s, s->start_s, s->first_token_s, s->end_s,
            s->prompt, s->output, s->cached, s->replica, s->preemptions);
}

static sm_status answer_with_rows(sm_simulate_question *q, const char *path, sm_report *r,
                                  sm_error *err) {
    sm_memory_stream memory;
    FILE *rows = sm_memory_stream_open(&memory);
    if (!rows) return sm_fail_memory(err);
    fputs("request,arrival_s,start_s,first_token_s,end_s,prompt_tokens,output_tokens,"
          "cached_tokens,replica,preemptions\n",
          rows);
    q->watch = &(sm_watch){rows, put_served, NULL};
    sm_status status = sm_answer_simulate(q, r, err);
    status = sm_memory_stream_close(&memory, rows, status, err);
    if (!status) status = sm_io_write(path, memory.text, memory.length, err);
    sm_free(memory.text);
    return status;
}

static sm_status run_simulate(const cli_call *call, sm_report *r, sm_error *err) {
    const cli_simulate_values *o = call->values;
    cli_simulating *v = sm_arena_alloc(call->arena, sizeof *v);
    if (!v) return sm_fail_memory(err);
    sm_status status = cli_simulating_read(call, v, err);
    if (status) return status;
    status = o->csv ? answer_with_rows(&v->question, o->csv, r, err)
                    : sm_answer_simulate(&v->question, r, err);
    if (!status && r->tracks) status = cli_write_tracks(r->tracks, o->timeline, err);
    if (!status && r->chart) status = cli_write_chart(r->chart, o->plot, err);
    return status;
}

const cli_verb cli_simulate = {
    .name = "simulate",
    .summary = "requests through a serving engine: latency, goodput, rates",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = cli_simulate_options,
    .values_bytes = sizeof(cli_simulate_values),
    .plans = 1u << SM_PLAN_SERVING,
    .notes = "example: scalemodel simulate llama-3.1-70b --on h100-sxm:1x8 --plan tensor=8 \\\n"
             "           --arrivals poisson:4/s --ttft 1s --tpot 50ms\n",
    .run = run_simulate,
};
