/* run train: a small Transformer trained on real ranks under a plan of the planner. */
#include "run_train.h"
#include "json_tree.h"

#include <unistd.h>

enum { SEQUENCES = 8 };

/* ---- reading ---- */

static const double MOST_TOKENS = 1e9; /* of a batch */

static sm_status read_sizes(train_run *q, sm_error *err) {
    const cli_call *call = q->call;
    const run_train_values *o = &q->given;
    double sequences = SEQUENCES;
    if (o->until > o->steps)
        return cli_refuse(call, &o->until, err, "the training has only %d steps", (int)o->steps);
    if (o->every && !o->checkpoint)
        return sm_fail(err, SM_USAGE, "--every needs --checkpoint PLACE");
    if (o->failures > 0 && !o->every)
        return sm_fail(err, SM_USAGE, "--failures needs --checkpoint PLACE and --every N");
    if (o->method && (o->resume || o->failures > 0 || o->record))
        return sm_fail(err, SM_USAGE,
                       "dpo holds a model against what it began with, without --resume, --failures "
                       "and --record");
    if (!o->method && cli_given(call, &o->beta))
        return sm_fail(err, SM_USAGE, "--beta is of --method dpo");
    sm_status status =
        o->batch.text ? sm_batch_sequences(&o->batch, (double)o->seq, 1, &sequences, err) : SM_OK;
    if (!status && sequences * (double)o->seq > MOST_TOKENS)
        status = cli_refuse(call, &o->batch, err, "a batch has at most %.0f tokens", MOST_TOKENS);
    if (status) return status;
    q->every = o->every;
    q->setup.tokens = (int)o->seq;
    q->setup.sequences = (int)sequences;
    q->setup.steps = (int)o->steps;
    q->setup.warmup = o->steps < 100 ? (int)(o->steps / 10) : 10;
    q->setup.seed = (uint64_t)o->seed;
    q->setup.rate = o->rate;
    q->end = (int)(o->until ? o->until : o->steps);
    return SM_OK;
}

/* Weights are written in single precision, so the config no longer says how they were stored. */
static sm_status widen(sm_source *config, sm_arena *arena, sm_error *err) {
    const json_document document = {.source = config, .arena = arena, .err = err, .python = true};
    const json_value *root, *stored;
    sm_status status = json_parse(&document, &root);
    if (status || !(stored = json_get(root, "quantization_config"))) return status;
    const char *text = config->text;
    size_t from = stored->key_at, to = stored->at + stored->length;
    to += strspn(text + to, " \t\r\n");
    if (text[to] == ',') to++;
    else
        while (strchr(" \t\r\n,", text[from - 1])) from--;
    config->text = sm_arena_printf(arena, "%.*s%s", (int)from, text, text + to);
    return config->text ? SM_OK : sm_fail_memory(err);
}

/* Where checkpoints go, and the config that goes with them where the model has a file. */
static sm_status read_place(train_run *q, sm_error *err) {
    const char *model = q->call->positional[0];
    sm_source config;
    sm_status status = record_check(q->given.record, SM_TRUTH_TRAINING, err);
    if (!status && cli_given(q->call, &q->given.keep) && !q->given.checkpoint)
        status = sm_fail(err, SM_USAGE, "--keep needs --checkpoint FOLDER/");
    q->kept = (train_checkpoint_place){.path = q->given.checkpoint, .keep = (int)q->given.keep};
    if (status || !q->given.checkpoint || access(model, F_OK) != 0) return status;
    status = sm_io_model_source(model, q->call->arena, &config, err);
    if (!status) status = widen(&config, q->call->arena, err);
    q->kept.config = status ? NULL : config.text;
    return status;
}

static bool holds_weights(const char *folder, sm_arena *arena) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json",
                                        "latest"};
    bool holds = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = sm_arena_printf(arena, "%s/%s", folder, names[i]);
        holds = holds || (path && access(path, F_OK) == 0);
    }
    return holds;
}

/* A folder of weights means these, to train as to generate. */
static sm_status read_checkpoint(train_run *q, sm_error *err) {
    const char *model = q->call->positional[0];
    if (q->given.resume && q->given.fresh)
        return sm_fail(err, SM_USAGE, "--resume goes on from weights, and --fresh draws new ones");
    q->from = q->given.resume                                           ? q->given.resume
              : !q->given.fresh && holds_weights(model, q->call->arena) ? model
                                                                        : NULL;
    q->goes_on = q->attempt.sealed ? q->given.checkpoint : q->from;
    q->setup.undrawn = q->goes_on != NULL;
    if (!q->goes_on) return SM_OK;
    sm_status status = sm_io_safetensors_read(q->goes_on, q->call->arena, &q->resumed, err);
    if (status) return status;
    if (q->resumed.steps >= (uint64_t)q->end)
        return sm_fail(err, SM_BAD_INPUT, "%.200s has made %llu steps, and %d are asked for",
                       q->goes_on, (unsigned long long)q->resumed.steps, q->end);
    q->first = (int)q->resumed.steps;
    return SM_OK;
}

static sm_status read_question(train_run *q, sm_error *err) {
    sm_status status =
        cli_read_model(q->call, &q->given.read_by, q->call->positional[0], &q->model, err);
    sm_train_setup_defaults(&q->setup);
    q->setup.model = &q->model;
    if (!status) status = read_sizes(q, err);
    sm_source text = {.length = 0};
    if (!status)
        status = sm_io_read_most(q->given.data, SM_IO_DATA_BYTES, q->call->arena, &text, err);
    q->setup.data = (const unsigned char *)text.text;
    q->setup.data_bytes = text.length;
    if (!status && q->given.method) status = train_pairs_read(q, &text, err);
    sm_source plan = cli_text(q->call, &q->given.plan);
    if (!plan.text) plan = sm_source_of("--plan", "");
    if (!status) status = sm_plan_parse(&plan, &q->plan, err);
    if (q->setup.pairs && !sm_plan_given(&q->plan, SM_PLAN_MICROBATCH)) q->plan.microbatch = 2;
    if (!status) status = train_setup_of_plan(&q->plan, q->call->arena, &q->setup, err);
    if (!status) status = read_place(q, err);
    if (!status) status = train_attempt_read(q, err);
    if (!status) status = read_checkpoint(q, err);
    if (status) return status;
    size_t steps = (size_t)q->setup.steps;
    q->number = sm_arena_array(q->call->arena, steps, sizeof *q->number);
    q->loss = sm_arena_array(q->call->arena, steps, sizeof *q->loss);
    q->seconds = sm_arena_array(q->call->arena, steps, sizeof *q->seconds);
    return q->number && q->loss && q->seconds ? SM_OK : sm_fail_memory(err);
}

/* ---- predicting ---- */

/* As `train --as-run` does. */
static sm_status predict(train_run *q, sm_error *err) {
    sm_train *train = NULL;
    const sm_calibration *constants = NULL;
    sm_status status = prediction_system(
        q->call, &q->given.predicted, sm_train_setup_ranks(&q->setup), &q->system, &constants, err);
    sm_job job = {.size = sizeof(sm_job),
                  .model = &q->model,
                  .system = &q->system,
                  .batch_tokens = (double)q->setup.sequences * q->setup.tokens,
                  .seq = q->setup.tokens,
                  .usd_per_chip_hour = -1};
    if (!status) status = sm_train_new(&job, &train, err);
    const sm_train_software software = sm_train_runtime_of(&q->plan);
    if (!status) sm_train_set_software(train, &software);
    if (!status && constants) sm_train_set_calibration(train, constants);
    if (!status) status = sm_train_detail(train, &q->plan, q->call->arena, &q->detail, err);
    sm_train_free(train);
    return status;
}

/* Before the work: what cannot be written at its end would be lost with it. */
static sm_status check_places(const train_run *q, sm_error *err) {
    const char *const file[] = {q->given.curve, q->given.plot, q->call->common.output};
    sm_status status =
        q->given.checkpoint ? train_checkpoint_check(&q->kept, q->call->arena, err) : SM_OK;
    for (int i = 0; !status && i < 3; i++)
        if (file[i]) status = sm_io_write_check(file[i], err);
    return status;
}

/* ---- running ---- */

double train_run_tokens(const train_run *q) { return (double)q->setup.sequences * q->setup.tokens; }

static void show_progress(train_run *q, int step) {
    double now_s = sm_clock_s();
    bool last = step + 1 == q->end, read = getenv(LAUNCH_WATCHED) != NULL;
    bool watched = read || isatty(STDERR_FILENO);
    if (!watched || (now_s - q->shown_s < 0.5 && !last)) return;
    q->shown_s = now_s;
    fprintf(stderr, "%sstep %d of %d  loss %.4f  %.0f tokens/s (predicted %.0f)%s",
            read ? LAUNCH_PROGRESS : "\r", step + 1, q->setup.steps, q->loss[step],
            train_run_tokens(q) / q->seconds[step],
            train_run_tokens(q) / q->detail.price.expected_s, last || read ? "\n" : " ");
}

/* The first step also warms up: its times are forgotten where there are others. */
static sm_status one_step(train_run *q, sm_communicator *world, sm_trainer *t, int step,
                          double *apart, train_tally *tally, sm_error *err) {
    sm_train_result r;
    if (step == q->first + 1) {
        *tally = (train_tally){.steps = 0};
        sm_trainer_forget_times(t);
    }
    sm_status status = sm_trainer_step(t, step, &r, err);
    train_tally_add(tally, &r);
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
        *apart += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
    if (status || world->rank) return status;
    q->number[step] = step + 1;
    q->loss[step] = r.loss;
    q->seconds[step] = r.seconds;
    q->last = r;
    show_progress(q, step);
    const train_note stepped = {
        .event = {SM_RUN_GOES_ON, 0, 0}, .loss = r.loss, .seconds = r.seconds, .steps = step + 1};
    return train_attempt_note(q, world->rank, stepped, err);
}

/* Processes read the text and the checkpoint each for itself: what changes meanwhile would part
 * them. */
static sm_status check_inputs(const train_run *q, sm_communicator *world, sm_error *err) {
    uint64_t text = sm_hash_bytes(q->setup.data, q->setup.data_bytes);
    uint64_t from = q->resumed.steps << 32 | q->resumed.checksum;
    bool same;
    sm_status status = same_over_ranks(world, text, &same, err);
    if (!status && !same)
        return sm_fail(err, SM_BAD_INPUT, "%.200s changed while the ranks read it", q->given.data);
    if (!status) status = same_over_ranks(world, from, &same, err);
    if (!status && !same)
        return sm_fail(err, SM_BAD_INPUT, "%.200s changed while the ranks read it", q->goes_on);
    return status;
}

static sm_status seal(train_run *q, sm_communicator *world, sm_trainer *t, int steps,
                      sm_error *err) {
    double begun_s = sm_clock_s();
    sm_status status = train_checkpoint_write(t, world, &q->model, &q->kept, err);
    const train_note saved = {.event = {SM_RUN_SAVED, 0, sm_clock_s() - begun_s}, .steps = steps};
    return status ? status : train_attempt_note(q, world->rank, saved, err);
}

static sm_status train_rank(sm_communicator *world, void *context, sm_error *err) {
    train_run *q = context;
    sm_trainer *t = NULL;
    train_tally tally = {.steps = 0};
    double apart = 0;
    sm_file_lock *lock = NULL;
    sm_status status = check_inputs(q, world, err);
    if (!status && world->rank == 0 && !ranks_are_here()) status = check_places(q, err);
    if (!status && world->rank == 0 && q->given.checkpoint)
        status = sm_io_lock(q->given.checkpoint, false, &lock, err);
    if (!status) status = sm_trainer_new(world, &q->setup, &t, err);
    if (!status && q->given.checkpoint)
        status = train_checkpoint_check_arrays(t, world, &q->model, err);
    if (!status && q->goes_on)
        status = train_checkpoint_take(t, &q->model, &q->resumed, q->goes_on, err);
    if (!status && q->setup.pairs) {
        double begun_s = sm_clock_s();
        status = sm_trainer_score_pairs(t, err);
        if (world->rank == 0) q->scored_s = sm_clock_s() - begun_s;
    }
    if (!status)
        status =
            train_attempt_note(q, world->rank, (train_note){.event = {SM_RUN_BEGINS, 0, 0}}, err);
    for (int i = q->first; !status && i < q->end; i++) {
        status = one_step(q, world, t, i, &apart, &tally, err);
        if (i + 1 == q->end) train_attempt_end(q, world->rank);
        bool due = i + 1 == q->end || (q->every && (i + 1) % q->every == 0);
        if (!status && due && q->given.checkpoint) status = seal(q, world, t, i + 1, err);
    }
    if (!status) status = train_tally_gather(world, t, &tally, q->detail.stage, &q->times, err);
    if (!status) status = train_memory_gather(world, t, &q->memory, err);
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (world->rank == 0) q->bytes_apart = apart;
    sm_trainer_free(t);
    sm_io_unlock(lock);
    return status;
}

static sm_status run_train(const cli_call *call, sm_report *r, sm_error *err) {
    train_run *q = call->values;
    q->call = call;
    sm_status status = read_question(q, err);
    if (!status) status = predict(q, err);
    if (!status && ranks_are_here()) status = check_places(q, err);
    const sm_memory *memory = &q->detail.price.memory;
    if (!status)
        status = machine_memory_holds(
            r, "this training", memory->total + memory->host, sm_train_setup_ranks(&q->setup),
            "A smaller model, batch or sequence, or recomputation, needs less.");
    if (!status && q->given.failures > 0 && !q->attempt.notes)
        return ranks_are_here()
                   ? train_failures_run(q, err)
                   : sm_fail(err, SM_USAGE,
                             "--failures starts ranks anew, and a launcher of your own "
                             "has started these");
    if (!status)
        status =
            ranks_run(call, &q->given.ranks, sm_train_setup_ranks(&q->setup), train_rank, q, err);
    if (!status && ranks_speak()) status = train_attempts_join(q, err);
    if (status || !ranks_speak()) return status;
    return train_report(r, q, err);
}

const cli_verb run_train_verb = {
    .about = &verbs_run_train,
    CLI_VALUES(GIVEN("data", data), GIVEN("method", method), GIVEN("beta", beta),
               GIVEN("plan", plan), GIVEN("steps", steps), GIVEN("until", until), GIVEN("seq", seq),
               GIVEN("batch", batch), GIVEN("rate", rate), GIVEN("seed", seed),
               GIVEN("curve", curve), GIVEN("plot", plot), GIVEN("checkpoint", checkpoint),
               GIVEN("every", every), GIVEN("failures", failures), GIVEN("keep", keep),
               GIVEN("resume", resume), GIVEN("fresh", fresh), RECORD_PLACE(given.record),
               RANKS_PLACES(given.ranks), PREDICTION_PLACES(given.predicted),
               CLI_MODEL_PLACES(given.read_by)),
    .plans = 1u << SM_PLAN_TRAINING,
    .run = run_train,
};
