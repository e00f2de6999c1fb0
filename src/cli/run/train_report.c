/* What run train answers: losses, the time of a step, where it goes and what explains the gap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/page.h"
#include "picture.h"
#include "prediction.h"
#include "run_train.h"

/* ---- files ---- */

static sm_status write_curve(const train_run *q, const char *path, sm_error *err) {
    char *text = NULL;
    size_t length = 0;
    FILE *memory = path ? open_memstream(&text, &length) : NULL;
    if (!path) return SM_OK;
    if (!memory) return sm_fail_memory(err);
    fputs("step,loss,seconds\n", memory);
    for (int i = q->first; i < q->end; i++)
        fprintf(memory, "%d,%.6f,%.6f\n", i + 1, q->loss[i], q->seconds[i]);
    sm_status status = fclose(memory) ? sm_fail_memory(err) : sm_io_write(path, text, length, err);
    free(text);
    return status;
}

static sm_status draw_curve(const train_run *q, const char *path, sm_error *err) {
    char plan[256];
    if (!path) return SM_OK;
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    const sm_series series = {"loss", false, (size_t)(q->end - q->first), q->number + q->first,
                              q->loss + q->first};
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

/* ---- the answer ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median; the first step also warms up, and is left out where there are others. */
static double step_seconds(train_run *q) {
    size_t n = (size_t)q->end, from = (size_t)q->first;
    if (n - from > 1) from++;
    qsort(q->seconds + from, n - from, sizeof *q->seconds, by_size);
    return q->seconds[from + (n - from) / 2];
}

static void put_pair(sm_report *r, const char *key, double predicted, double measured) {
    sm_data *pair = sm_put_object(r, r->data, key);
    sm_put(r, pair, "predicted", predicted);
    sm_put(r, pair, "measured", measured);
}

static void show_losses(sm_report *r, const train_run *q) {
    int last = q->end - 1;
    sm_data *list = sm_put_array(r, r->data, "losses");
    for (int i = q->first; i <= last && list; i++)
        r->out_of_memory |= !sm_data_push(list, sm_data_number(r->arena, q->loss[i]));
    sm_report_text(r, "Loss %.4f nats a byte after %d steps, %.4f at step %d.", q->loss[last],
                   last + 1, q->loss[q->first], q->first + 1);
}

static void show_times(sm_report *r, train_run *q, double measured_s) {
    double predicted_s = q->detail.price.expected_s;
    put_pair(r, "step_s", predicted_s, measured_s);
    put_pair(r, "tokens_per_s", train_run_tokens(q) / predicted_s,
             train_run_tokens(q) / measured_s);
    sm_report_text(r, "A step took %s (median), %s; predicted for %s: %s.",
                   sm_show_seconds(r, measured_s),
                   sm_show_rate(r, train_run_tokens(q) / measured_s, "tokens/s"), q->system.text,
                   sm_show_seconds(r, predicted_s));
    train_report_times(r, q);
    if (prediction_is_placeholder(&q->system))
        sm_report_text(r, "The prediction is that of cpu-host, whose numbers are placeholders.");
}

sm_status train_report(sm_report *r, train_run *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    char plan[256];
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    sm_put_text(r, r->data, "command", "run train");
    sm_put_text(r, r->data, "model", q->model.name);
    sm_put_text(r, r->data, "plan", plan);
    sm_put_text(r, r->data, "backend", ranks_backend());
    sm_put(r, r->data, "ranks", sm_train_setup_ranks(&q->setup));
    sm_put(r, r->data, "steps", q->setup.steps);
    int ranks = sm_train_setup_ranks(&q->setup);
    sm_report_text(r, "%s under %s on %d rank%s (%s): batches of %d sequences of %d bytes",
                   q->model.name, plan, ranks, ranks == 1 ? "" : "s", ranks_backend(),
                   q->setup.sequences, q->setup.tokens);
    show_losses(r, q);
    sm_status status = write_curve(q, given->curve, err);
    if (!status) status = draw_curve(q, given->plot, err);
    double step_s = step_seconds(q);
    show_times(r, q, step_s);
    train_memory_show(r, &q->detail.price.memory, &q->memory);
    if (!status) status = train_record(r, q, step_s, err);
    if (status) return status;
    return q->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}
