/* What run train answers: losses, the time of a step, where it goes and what explains the gap. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/page.h"
#include "picture.h"
#include "prediction.h"
#include "run_train.h"

/* ---- files ---- */

static sm_status write_curve(const train_run *q, const char *path, sm_error *err) {
    sm_memory_stream memory;
    FILE *out = path ? sm_memory_stream_open(&memory) : NULL;
    if (!path) return SM_OK;
    if (!out) return sm_fail_memory(err);
    fputs("step,loss,seconds\n", out);
    for (int i = q->first; i < q->end; i++)
        fprintf(out, "%d,%.6f,%.6f\n", i + 1, q->loss[i], q->seconds[i]);
    sm_status status = sm_memory_stream_close(&memory, out, SM_OK, err);
    if (!status) status = sm_io_write(path, memory.text, memory.length, err);
    sm_free(memory.text);
    return status;
}

static sm_status draw_curve(const train_run *q, const char *path, sm_error *err) {
    char plan[256];
    if (!path) return SM_OK;
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    const sm_series series = {"loss", SM_MARK_LINE, (size_t)(q->end - q->first),
                              q->number + q->first, q->loss + q->first};
    const sm_panel panel = {.title = "Loss",
                            .x_label = "step",
                            .y_label = "nats per byte",
                            .x_unit = "",
                            .y_unit = "",
                            .n = 1,
                            .series = &series};
    const sm_chart chart = {q->model.name, plan, 1, &panel};
    return cli_write_chart(&chart, path, err);
}

/* ---- memory ---- */

static void memory_row(sm_report *r, sm_table *table, sm_data *object, const char *name,
                       double predicted, double measured) {
    sm_data *part = sm_put_object(r, object, name);
    sm_put(r, part, "predicted", predicted);
    sm_put(r, part, "measured", measured);
    sm_page_row(r, table, name, sm_show_bytes(r, predicted), sm_show_bytes(r, measured),
                prediction_ratio(r, predicted, measured));
}

static void show_memory(sm_report *r, const sm_memory *predicted, const train_memory *measured) {
    const double parts[SM_TRAIN_MEMORY_COUNT] = {[SM_TRAIN_MEMORY_PARAMS] = predicted->params,
                                                 [SM_TRAIN_MEMORY_GRADIENTS] = predicted->gradients,
                                                 [SM_TRAIN_MEMORY_OPTIMIZER] = predicted->optimizer,
                                                 [SM_TRAIN_MEMORY_ACTIVATIONS] =
                                                     predicted->activations,
                                                 [SM_TRAIN_MEMORY_BUFFERS] = predicted->buffers,
                                                 [SM_TRAIN_MEMORY_HOST] = predicted->host};
    sm_data *object = sm_put_object(r, r->data, "memory");
    sm_table *table = sm_page_table(
        r, sm_textf(r, "Memory at its highest, on rank %d, which has most", measured->rank),
        "<|>predicted|>measured|>ratio");
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        bool host = i == SM_TRAIN_MEMORY_HOST;
        double seen = host ? measured->most.most[i] : measured->most.at_most[i];
        if (!host || parts[i] > 0 || seen > 0)
            memory_row(r, table, object, sm_train_memory_names[i], parts[i], seen);
    }
    memory_row(r, table, object, "total", predicted->total, measured->most.total);
    if (table) sm_report_table(r, table);
    if (!(measured->process_bytes > 0)) return;
    sm_put(r, object, "process", measured->process_bytes);
    sm_report_text(r,
                   "The process of a rank had %s in memory at most, libraries and text included.",
                   sm_show_bytes(r, measured->process_bytes));
}

/* ---- the answer ---- */

static void show_head(sm_report *r, const train_run *q) {
    char plan[256];
    int ranks = sm_train_setup_ranks(&q->setup), last = q->end - 1;
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    sm_put_text(r, r->data, "command", "run train");
    sm_put_text(r, r->data, "model", q->model.name);
    sm_put_text(r, r->data, "plan", plan);
    sm_put_text(r, r->data, "backend", ranks_backend());
    sm_put(r, r->data, "ranks", ranks);
    sm_put(r, r->data, "steps", q->setup.steps);
    sm_report_text(r, "%s under %s on %d rank%s (%s): batches of %d sequences of %d bytes",
                   q->model.name, plan, ranks, ranks == 1 ? "" : "s", ranks_backend(),
                   q->setup.sequences, q->setup.tokens);
    sm_data *list = sm_put_array(r, r->data, "losses");
    for (int i = q->first; i <= last; i++) sm_put(r, list, NULL, q->loss[i]);
    sm_report_text(r, "Loss %.4f nats a byte after %d steps, %.4f at step %d.", q->loss[last],
                   last + 1, q->loss[q->first], q->first + 1);
}

sm_status train_report(sm_report *r, train_run *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    show_head(r, q);
    sm_status status = write_curve(q, given->curve, err);
    if (!status) status = draw_curve(q, given->plot, err);
    /* The median; the first step also warms up, and is left out where there are others. Sorts. */
    int from = q->end - q->first > 1 ? q->first + 1 : q->first;
    assert(q->end > from);
    double step_s = sm_spread_of(q->seconds + from, q->end - from).median;
    double predicted_s = q->detail.price.expected_s, tokens = train_run_tokens(q);
    sm_data *step = sm_put_object(r, r->data, "step_s");
    sm_put(r, step, "predicted", predicted_s);
    sm_put(r, step, "measured", step_s);
    sm_data *rate = sm_put_object(r, r->data, "tokens_per_s");
    sm_put(r, rate, "predicted", tokens / predicted_s);
    sm_put(r, rate, "measured", tokens / step_s);
    sm_report_text(r, "A step took %s (median), %s; predicted for %s: %s.",
                   sm_show_seconds(r, step_s), sm_show_rate(r, tokens / step_s, "tokens/s"),
                   q->system.text, sm_show_seconds(r, predicted_s));
    train_report_times(r, q);
    prediction_say_placeholder(r, &q->system);
    show_memory(r, &q->detail.price.memory, &q->memory);
    if (!status) status = train_record(r, q, step_s, err);
    if (status) return status;
    return q->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}
