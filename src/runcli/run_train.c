/* run train: a small Transformer trained on real ranks under a plan of the planner: losses, bytes
 * counted and predicted, the time of a step measured and predicted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pages.h"
#include "picture.h"
#include "ranks.h"
#include "run_verbs.h"
#include "scalemodel/io.h"
#include "train_checkpoint.h"
#include "train_setup_of_plan.h"

typedef struct run_train_values {
    ranks_values ranks;
    const char *plan, *data, *seq, *batch, *steps, *rate, *seed, *curve, *plot, *on;
    const char *checkpoint, *every, *keep, *resume, *until;
    cli_calibration_values constants;
} run_train_values;

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(run_train_values, member), value, help }

static const cli_option run_train_table[] = {
    TEXT("data", data, "FILE", "the text to train on: any file, byte by byte"),
    TEXT("plan", plan, "PLAN", "data=2,tensor=2,seq=on,...: a rank for each chip (one rank)"),
    TEXT("steps", steps, "N", "steps of the whole training, which the learning rate follows (100)"),
    TEXT("until", until, "N", "stop after step N of them; --resume goes on from there"),
    TEXT("seq", seq, "T", "tokens of a sequence (128)"),
    TEXT("batch", batch, "TOKENS", "tokens of a global batch (8 sequences)"),
    TEXT("rate", rate, "X", "the highest learning rate (3e-3)"),
    TEXT("seed", seed, "N", "of the first weights and of the batches (1)"),
    TEXT("curve", curve, "FILE", "write the loss of each step as CSV"),
    TEXT("plot", plot, "FILE", "draw the losses as SVG"),
    TEXT("checkpoint", checkpoint, "PLACE",
         "write weights and optimizer as safetensors at the end: FILE, or FOLDER/, in parts"),
    TEXT("every", every, "N", "and after every N steps"),
    TEXT("keep", keep, "N", "versions that stay in FOLDER/ (1)"),
    TEXT("resume", resume, "PLACE", "go on from a checkpoint, whatever plan it was made under"),
    TEXT("on", on, "SYSTEM", "predict for these chips (otherwise cpu-host, or --system's chip)"),
    RANKS_OPTIONS(run_train_values, ranks),
    CLI_CALIBRATION_OPTIONS(run_train_values, constants),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

enum { USUAL_SEQ = 128, USUAL_SEQUENCES = 8, USUAL_STEPS = 100, MOST_STEPS = 1000000 };

typedef struct question {
    const cli_call *call;
    sm_model model;
    sm_plan plan;
    sm_system system;
    sm_train_setup setup;
    sm_price_of_plan price;
    int64_t every; /* steps between checkpoints, 0: only at the end */
    train_checkpoint_place kept;
    int first;     /* step to begin with: those before are in the checkpoint */
    int end;       /* of the steps, this run takes [first, end) */
    sm_safetensors resumed;
    /* answers, written by rank 0 */
    double *number, *loss, *seconds;          /* of each step */
    sm_train_result last, sum;                /* sum: of times, over all steps but the first */
    double collective_s[SM_COLLECTIVE_COUNT]; /* predicted, of a step */
    double bytes_apart;                       /* |predicted - counted|, over all ranks and steps */
    double shown_s;
} question;

/* ---- reading ---- */

static sm_status read_rate(const char *text, double *rate, sm_error *err) {
    if (!text) return SM_OK;
    char *end;
    double value = strtod(text, &end);
    sm_source source = sm_source_of("--rate", text);
    if (*end || end == text || !(value > 0 && value < 1))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "a learning rate lies between 0 and 1");
    *rate = value;
    return SM_OK;
}

static sm_status read_sizes(question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    int64_t T = USUAL_SEQ, steps = USUAL_STEPS, seed = 1, end;
    sm_status status = cli_whole("--seq", given->seq, 1, 1 << 20, &T, err);
    double tokens = (double)(T * USUAL_SEQUENCES);
    if (!status) status = cli_quantity("--batch", given->batch, SM_Q_COUNT, &tokens, err);
    if (!status) status = cli_whole("--steps", given->steps, 1, MOST_STEPS, &steps, err);
    end = steps;
    if (!status) status = cli_whole("--until", given->until, 1, steps, &end, err);
    if (!status) status = cli_whole("--seed", given->seed, 0, INT64_MAX, &seed, err);
    if (!status) status = cli_whole("--every", given->every, 1, MOST_STEPS, &q->every, err);
    if (!status && given->every && !given->checkpoint)
        status = sm_fail(err, SM_USAGE, "--every needs --checkpoint PLACE");
    if (!status && (tokens < (double)T || tokens > 1e9))
        status = sm_fail(err, SM_BAD_INPUT,
                         "a batch holds at least one sequence of %d tokens, and "
                         "at most 1e9",
                         (int)T);
    if (status) return status;
    q->setup.tokens = (int)T;
    q->setup.sequences = (int)round(tokens / (double)T);
    q->setup.steps = (int)steps;
    q->setup.warmup = steps < 100 ? (int)(steps / 10) : 10;
    q->setup.seed = (uint64_t)seed;
    q->end = (int)end;
    return read_rate(given->rate, &q->setup.rate, err);
}

static sm_status read_text(question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    sm_source source;
    sm_status status = cli_need(q->call, "data", given->data, err);
    if (!status) status = sm_io_read(given->data, q->call->arena, &source, err);
    if (status) return status;
    q->setup.data = (const unsigned char *)source.text;
    q->setup.data_bytes = source.length;
    return SM_OK;
}

static sm_status read_plan(question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    sm_source source = sm_source_of("--plan", given->plan ? given->plan : "");
    sm_status status = sm_plan_parse(&source, &q->plan, err);
    return status ? status : train_setup_of_plan(&q->plan, q->call->arena, &q->setup, err);
}

/* Where checkpoints go, and the config that goes with them where the model has a file. */
static sm_status read_place(question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    const char *model = q->call->positional[0];
    int64_t keep = 1;
    sm_source config;
    sm_status status = cli_whole("--keep", given->keep, 1, MOST_STEPS, &keep, err);
    if (!status && given->keep && !given->checkpoint)
        status = sm_fail(err, SM_USAGE, "--keep needs --checkpoint FOLDER/");
    q->kept = (train_checkpoint_place){.path = given->checkpoint, .keep = (int)keep};
    if (status || !given->checkpoint || access(model, F_OK) != 0) return status;
    status = sm_io_read(model, q->call->arena, &config, err);
    q->kept.config = status ? NULL : config.text;
    return status;
}

static sm_status read_checkpoint(question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    if (!given->resume) return SM_OK;
    sm_status status = sm_io_safetensors_read(given->resume, q->call->arena, &q->resumed, err);
    if (status) return status;
    if (q->resumed.steps >= (uint64_t)q->end)
        return sm_fail(err, SM_BAD_INPUT, "%.200s has made %llu steps, and %d are asked for",
                       given->resume, (unsigned long long)q->resumed.steps, q->end);
    q->first = (int)q->resumed.steps;
    return SM_OK;
}

static sm_status read_question(question *q, sm_error *err) {
    sm_status status = sm_io_model_load(q->call->positional[0], q->call->arena, &q->model, err);
    sm_train_setup_defaults(&q->setup);
    q->setup.model = &q->model;
    if (!status) status = read_sizes(q, err);
    if (!status) status = read_text(q, err);
    if (!status) status = read_plan(q, err);
    if (!status) status = read_place(q, err);
    if (!status) status = read_checkpoint(q, err);
    if (status) return status;
    size_t steps = (size_t)q->setup.steps;
    q->number = sm_arena_array(q->call->arena, steps, sizeof *q->number);
    q->loss = sm_arena_array(q->call->arena, steps, sizeof *q->loss);
    q->seconds = sm_arena_array(q->call->arena, steps, sizeof *q->seconds);
    return q->number && q->loss && q->seconds ? SM_OK : sm_fail_memory(err);
}

/* ---- predicting ---- */

static sm_status name_system(question *q, const char **on, sm_error *err) {
    const run_train_values *given = q->call->values;
    const char *chip = "cpu-host";
    sm_chip *chips;
    size_t n;
    *on = given->on;
    if (*on) return SM_OK;
    sm_status status = cli_system_file(q->call, &chips, &n, err);
    if (status) return status;
    if (n > 1) return sm_fail(err, SM_USAGE, "--system holds %zu chips: name the one with --on", n);
    if (n == 1) chip = chips[0].name;
    *on = sm_arena_printf(q->call->arena, "%s:%d", chip, sm_train_setup_ranks(&q->setup));
    return *on ? SM_OK : sm_fail_memory(err);
}

static sm_status price(question *q, sm_train *train, sm_error *err) {
    sm_plan_detail detail;
    sm_status status = sm_train_detail(train, &q->plan, q->call->arena, &detail, err);
    if (status) return status;
    q->price = detail.price;
    for (int i = 0; i < detail.collectives; i++)
        q->collective_s[detail.collective[i].op] += detail.collective[i].time_s;
    return SM_OK;
}

/* Executed in single precision, so priced in it. */
static sm_status predict(question *q, sm_error *err) {
    const char *on;
    sm_train *train = NULL;
    sm_status status = name_system(q, &on, err);
    if (!status) status = cli_system(q->call, on, &q->system, err);
    sm_job job = {.model = &q->model,
                  .system = &q->system,
                  .batch_tokens = (double)q->setup.sequences * q->setup.tokens,
                  .seq = q->setup.tokens,
                  .usd_per_chip_hour = -1};
    q->plan.dtype = SM_FP32;
    const sm_calibration *constants = NULL;
    const run_train_values *given = q->call->values;
    if (!status)
        status = cli_calibration(q->call, &q->system.chip, &given->constants, &constants, err);
    if (!status) status = sm_train_new(&job, &train, err);
    if (!status) sm_train_set_as_run(train);
    if (!status && constants) sm_train_set_calibration(train, constants);
    if (!status) status = price(q, train, err);
    sm_train_free(train);
    return status;
}

/* ---- running ---- */

static double tokens_of(const question *q) { return (double)q->setup.sequences * q->setup.tokens; }

static void show_progress(question *q, int step) {
    double now_s = sm_clock_s();
    bool last = step + 1 == q->end;
    if (!isatty(STDERR_FILENO) || (now_s - q->shown_s < 0.5 && !last)) return;
    q->shown_s = now_s;
    fprintf(stderr, "\rstep %d of %d  loss %.4f  %.0f tokens/s (predicted %.0f)%s", step + 1,
            q->setup.steps, q->loss[step], tokens_of(q) / q->seconds[step],
            tokens_of(q) / q->price.expected_s, last ? "\n" : " ");
}

/* The first step also warms up. */
static void add_times(question *q, int step, const sm_train_result *r) {
    if (step == q->first + 1) memset(&q->sum, 0, sizeof q->sum);
    for (int i = 0; i < SM_TRAIN_TIME_COUNT; i++) q->sum.time_s[i] += r->time_s[i];
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) q->sum.collective_s[i] += r->collective_s[i];
}

static sm_status one_step(question *q, sm_communicator *world, sm_trainer *t, int step,
                          double *apart, sm_error *err) {
    sm_train_result r;
    sm_status status = sm_trainer_step(t, step, &r, err);
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
        *apart += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
    if (status || world->rank) return status;
    q->number[step] = step + 1;
    q->loss[step] = r.loss;
    q->seconds[step] = r.seconds;
    q->last = r;
    add_times(q, step, &r);
    show_progress(q, step);
    return SM_OK;
}

static sm_status resume(const question *q, sm_trainer *t, sm_error *err) {
    const run_train_values *given = q->call->values;
    if (!given->resume) return SM_OK;
    return train_checkpoint_take(t, &q->model, &q->resumed, given->resume, err);
}

static sm_status keep(const question *q, sm_communicator *world, sm_trainer *t, int done,
                      sm_error *err) {
    const run_train_values *given = q->call->values;
    bool due = done == q->end || (q->every && done % q->every == 0);
    if (!given->checkpoint || !due) return SM_OK;
    return train_checkpoint_write(t, world, &q->model, &q->kept, err);
}

static sm_status train_rank(sm_communicator *world, void *context, sm_error *err) {
    question *q = context;
    sm_trainer *t = NULL;
    double apart = 0;
    sm_status status = sm_trainer_new(world, &q->setup, &t, err);
    if (!status) status = resume(q, t, err);
    for (int i = q->first; !status && i < q->end; i++) {
        status = one_step(q, world, t, i, &apart, err);
        if (!status) status = keep(q, world, t, i + 1, err);
    }
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (world->rank == 0) q->bytes_apart = apart;
    sm_trainer_free(t);
    return status;
}

/* ---- files ---- */

static sm_status write_curve(const question *q, const char *path, sm_error *err) {
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

static sm_status draw_curve(const question *q, const char *path, sm_error *err) {
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
static double step_seconds(question *q) {
    size_t n = (size_t)q->end, from = (size_t)q->first;
    if (n - from > 1) from++;
    qsort(q->seconds + from, n - from, sizeof *q->seconds, by_size);
    return q->seconds[from + (n - from) / 2];
}

static void put_pair(sm_report *r, const char *key, double predicted, double measured) {
    sm_data *pair = cli_object(r, r->data, key);
    cli_put(r, pair, "predicted", predicted);
    cli_put(r, pair, "measured", measured);
}

static double steps_measured(const question *q) {
    return q->end - q->first > 1 ? q->end - q->first - 1 : 1;
}

static void put_times(sm_report *r, sm_data *object, double predicted_s, double measured_s) {
    sm_data *time = cli_object(r, object, "time_s");
    cli_put(r, time, "predicted", predicted_s);
    cli_put(r, time, "measured", measured_s);
}

static const char *ratio(sm_report *r, double predicted, double measured) {
    return measured > 0 ? cli_textf(r, "%.2f", predicted / measured) : "-";
}

/* The planner parts an op's time by what bounds it, and a clock cannot: both kinds are one. */
typedef struct part {
    const char *name;
    double predicted_s, measured_s;
} part;
enum { PARTS = 5 };
static void parts_of(const question *q, part *of) {
    const sm_breakdown *b = &q->price.breakdown;
    const double *s = q->sum.time_s;
    double steps = steps_measured(q);
    const part all[PARTS] = {
        {"ops", b->math + b->memory, s[SM_TRAIN_TIME_MATMUL] + s[SM_TRAIN_TIME_VECTOR]},
        {"collectives", b->network_exposed, s[SM_TRAIN_TIME_COLLECTIVE]},
        {"pipeline", b->bubble, s[SM_TRAIN_TIME_PIPELINE]},
        {"optimizer", b->optimizer, s[SM_TRAIN_TIME_OPTIMIZER]},
        {"rest", b->other, s[SM_TRAIN_TIME_REST] + s[SM_TRAIN_TIME_AROUND]}};
    for (int i = 0; i < PARTS; i++) {
        double predicted_s = all[i].predicted_s > 1e-12 ? all[i].predicted_s : 0;
        of[i] = (part){all[i].name, predicted_s, all[i].measured_s / steps};
    }
}

/* Where the time goes, and which part is most of the gap. */
static void show_parts(sm_report *r, const question *q) {
    part of[PARTS];
    int worst = 0;
    sm_data *list = cli_array(r, r->data, "parts");
    sm_table *table = cli_table(r, "Where the time of a step goes on the first rank",
                                "<|>predicted|>measured|>ratio");
    parts_of(q, of);
    for (int i = 0; i < PARTS; i++) {
        const part *p = &of[i], *w = &of[worst];
        sm_data *one = cli_object(r, list, NULL);
        cli_put_text(r, one, "part", p->name);
        put_times(r, one, p->predicted_s, p->measured_s);
        cli_row(r, table, p->name, cli_seconds(r, p->predicted_s), cli_seconds(r, p->measured_s),
                ratio(r, p->predicted_s, p->measured_s));
        if (fabs(p->predicted_s - p->measured_s) > fabs(w->predicted_s - w->measured_s)) worst = i;
    }
    double steps = steps_measured(q), *s = (double[]){q->sum.time_s[SM_TRAIN_TIME_MATMUL] / steps,
                                                      q->sum.time_s[SM_TRAIN_TIME_VECTOR] / steps};
    sm_report_table(r, table);
    sm_report_text(r,
                   "Of the ops, matmuls and attention took %s and all others %s. The largest gap: "
                   "%s.",
                   cli_seconds(r, s[0]), cli_seconds(r, s[1]), of[worst].name);
}

static void show_collectives(sm_report *r, const question *q) {
    sm_data *list = cli_array(r, r->data, "collectives");
    sm_table *table = cli_table(r, "Collectives of a step on the first rank",
                                "<|>predicted|>counted|>predicted|>measured|>ratio");
    double steps = steps_measured(q);
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        double predicted = q->last.bytes_predicted[k], counted = q->last.bytes_counted[k];
        if (!(predicted > 0 || counted > 0)) continue;
        sm_data *one = cli_object(r, list, NULL);
        cli_put_text(r, one, "op", sm_collective_name((sm_collective)k));
        cli_put(r, one, "bytes_predicted", predicted);
        cli_put(r, one, "bytes_counted", counted);
        double predicted_s = q->collective_s[k], measured_s = q->sum.collective_s[k] / steps;
        put_times(r, one, predicted_s, measured_s);
        cli_row(r, table, sm_collective_name((sm_collective)k), cli_exact(r, predicted),
                cli_exact(r, counted), cli_seconds(r, predicted_s), cli_seconds(r, measured_s),
                ratio(r, predicted_s, measured_s));
    }
    bool equal = !(q->bytes_apart > 0);
    cli_put_bool(r, r->data, "bytes_equal", equal);
    if (table && table->rows) sm_report_table(r, table);
    sm_report_text(r, equal ? "On every rank and in every step the bytes were those predicted."
                            : "A collective moved OTHER bytes than predicted.");
}

static void show_losses(sm_report *r, const question *q) {
    int last = q->end - 1;
    sm_data *list = cli_array(r, r->data, "losses");
    for (int i = q->first; i <= last && list; i++)
        r->out_of_memory |= !sm_data_push(list, sm_data_number(r->arena, q->loss[i]));
    sm_report_text(r, "Loss %.4f nats a byte after %d steps, %.4f at step %d.", q->loss[last],
                   last + 1, q->loss[q->first], q->first + 1);
}

static void show_times(sm_report *r, question *q) {
    double measured_s = step_seconds(q), predicted_s = q->price.expected_s;
    put_pair(r, "step_s", predicted_s, measured_s);
    put_pair(r, "tokens_per_s", tokens_of(q) / predicted_s, tokens_of(q) / measured_s);
    sm_report_text(r, "A step took %s (median), %s; predicted for %s: %s.",
                   cli_seconds(r, measured_s), cli_rate(r, tokens_of(q) / measured_s, "tokens/s"),
                   q->system.text, cli_seconds(r, predicted_s));
    show_parts(r, q);
    if (strcmp(q->system.chip.name, "cpu-host") == 0)
        sm_report_text(r, "The prediction is that of cpu-host, whose numbers are placeholders.");
}

static sm_status show(sm_report *r, question *q, sm_error *err) {
    const run_train_values *given = q->call->values;
    char plan[256];
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    cli_put_text(r, r->data, "command", "run train");
    cli_put_text(r, r->data, "model", q->model.name);
    cli_put_text(r, r->data, "plan", plan);
    cli_put_text(r, r->data, "backend", ranks_backend());
    cli_put(r, r->data, "ranks", sm_train_setup_ranks(&q->setup));
    cli_put(r, r->data, "steps", q->setup.steps);
    sm_report_text(r, "%s under %s on %d ranks (%s): batches of %d sequences of %d bytes",
                   q->model.name, plan, sm_train_setup_ranks(&q->setup), ranks_backend(),
                   q->setup.sequences, q->setup.tokens);
    show_losses(r, q);
    show_collectives(r, q);
    sm_status status = write_curve(q, given->curve, err);
    if (!status) status = draw_curve(q, given->plot, err);
    show_times(r, q);
    if (status) return status;
    return q->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}

static sm_status run_train(const cli_call *call, sm_report *r, sm_error *err) {
    const run_train_values *given = call->values;
    question *q = sm_arena_alloc(call->arena, sizeof *q);
    if (!q) return sm_fail_memory(err);
    q->call = call;
    sm_status status = read_question(q, err);
    if (!status) status = predict(q, err);
    if (!status)
        status =
            ranks_run(call, &given->ranks, sm_train_setup_ranks(&q->setup), train_rank, q, err);
    if (status || !ranks_speak()) return status;
    return show(r, q, err);
}

const cli_verb run_train_verb = {
    .name = "run train",
    .summary = "train a small Transformer on real ranks under a plan, beside its prediction",
    .arguments = "MODEL",
    .least = 1,
    .most = 1,
    .options = run_train_table,
    .values_bytes = sizeof(run_train_values),
    .notes = "MODEL is a config.json of a llama-like model, dense or with experts.\n"
             "example: scalemodel run train tiny.json --data README.md --plan data=2,tensor=2\n",
    .run = run_train,
};
