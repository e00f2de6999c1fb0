/* measured_training: short trainings of small models, priced as they run, and the constants under
 * which the prices are the measured times. Other models and plans than users have: what is fitted
 * here is the constants, not their trainings. */
#include "measuring.h"

#include <assert.h>

#include "run_train.h"

/* ---- what is trained ---- */

typedef struct training_shape {
    int D, L, heads, kv_heads, F, experts, seq, microbatch, sequences; /* sequences: of a rank */
    bool quick, tensor; /* tensor: over all ranks, else data */
} training_shape;
static const training_shape shapes[] = {
    {48, 2, 4, 2, 128, 0, 64, 2, 4, true, false},   {96, 2, 4, 2, 256, 0, 128, 1, 2, false, false},
    {192, 2, 4, 4, 512, 0, 96, 1, 2, false, false}, {384, 1, 6, 3, 1024, 0, 64, 2, 4, false, false},
    {96, 2, 4, 2, 160, 4, 64, 1, 2, false, false},  {160, 2, 4, 4, 384, 0, 128, 1, 2, true, true},
    {320, 1, 4, 4, 768, 0, 192, 1, 1, false, true},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, TEXT_BYTES = 65536 };
_Static_assert((int)SHAPES <= (int)MOST_RUNS, "room for all trainings");

static sm_status make_model(const training_shape *s, sm_arena *arena, sm_model *model,
                            sm_error *err) {
    const char *experts = "";
    if (s->experts)
        experts = sm_arena_printf(arena, "\"num_local_experts\":%d,\"num_experts_per_tok\":2,",
                                  s->experts);
    char *text = sm_arena_printf(
        arena,
        "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",%s\"hidden_size\":%d,"
        "\"num_hidden_layers\":%d,\"num_attention_heads\":%d,\"num_key_value_heads\":%d,"
        "\"intermediate_size\":%d,\"vocab_size\":256,\"max_position_embeddings\":4096,"
        "\"hidden_act\":\"silu\",\"tie_word_embeddings\":false}",
        s->experts ? "MixtralForCausalLM" : "LlamaForCausalLM", s->experts ? "mixtral" : "llama",
        experts ? experts : "", s->D, s->L, s->heads, s->kv_heads, s->F);
    if (!text || !experts) return sm_fail_memory(err);
    sm_source source = sm_source_of("a model to measure with", text);
    return sm_model_parse(NULL, NULL, &source, arena, model, err);
}

static sm_status make_run(const training_shape *s, int ranks, const unsigned char *text,
                          sm_arena *arena, measured_run *run, sm_error *err) {
    sm_status status = make_model(s, arena, &run->model, err);
    if (status) return status;
    char *plan = sm_arena_printf(
        arena, s->tensor ? "tensor=%d,seq=on,microbatch=%d" : "data=%d,zero=0,microbatch=%d", ranks,
        s->microbatch);
    if (!plan) return sm_fail_memory(err);
    sm_source source = sm_source_of("a plan to measure with", plan);
    status = sm_plan_parse(&source, &run->plan, err);
    if (status) return status;
    sm_train_setup_defaults(&run->setup);
    run->setup.model = &run->model;
    run->setup.tokens = s->seq;
    run->setup.sequences = s->sequences * (s->tensor ? 1 : ranks);
    run->setup.data = text;
    run->setup.data_bytes = TEXT_BYTES;
    run->has_moves = s->tensor;
    return train_setup_of_plan(&run->plan, arena, &run->setup, err);
}

sm_status measured_runs(measuring *q, int ranks, bool quick, sm_train_setup **setups,
                        sm_error *err) {
    sm_arena *arena = q->call->arena;
    unsigned char *text = sm_arena_alloc(arena, TEXT_BYTES); /* any bytes will do */
    sm_rng rng = {20};
    q->run = sm_arena_array(arena, MOST_RUNS, sizeof *q->run);
    *setups = sm_arena_array(arena, MOST_RUNS, sizeof **setups);
    if (!text || !q->run || !*setups) return sm_fail_memory(err);
    for (int i = 0; i < TEXT_BYTES; i++) text[i] = (unsigned char)sm_rng_below(&rng, 256);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < SHAPES; i++) {
        const training_shape *s = &shapes[i];
        bool whole_heads = ranks > 1 && s->kv_heads % ranks == 0; /* which tensor deals out */
        if ((quick && !s->quick) || (s->tensor && !whole_heads)) continue;
        measured_run *run = &q->run[q->runs];
        status = make_run(s, ranks, text, arena, run, err);
        (*setups)[q->runs++] = run->setup;
    }
    return status;
}

/* ---- prices ---- */

typedef struct trained_row {
    int run, op;       /* in the run's measured ops */
    double measured_s; /* of one call */
} trained_row;
enum { MOST_ROWS = MOST_RUNS * SM_MOST_MEASURED_OPS };
typedef struct training_fit {
    measuring *q;
    sm_calibration c; /* under which the prices below were made */
    sm_arena *arena;  /* of these prices */
    bool priced;
    sm_status status;
    sm_plan_detail detail[MOST_RUNS];
    int rows;
    trained_row row[MOST_ROWS];
} training_fit;

static sm_status price_runs(training_fit *f, sm_error *err) {
    measuring *q = f->q;
    sm_arena_free(f->arena);
    f->arena = sm_arena_new();
    if (!f->arena) return sm_fail_memory(err);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < q->runs; i++) {
        measured_run *run = &q->run[i];
        sm_train_set_calibration(run->train, &f->c);
        status = sm_train_ops(run->train, &run->plan, f->arena, &f->detail[i], err);
        run->predicted_s = f->detail[i].price.expected_s;
    }
    return status;
}

/* A call of an op as priced; 0 where the price has none. */
static double priced_op_s(const training_fit *f, int run, const sm_train_row *op) {
    const sm_plan_lines *d = &f->detail[run].lines;
    double time_s = 0; /* of all kinds of layers */
    for (int i = 0; i < d->ops; i++) {
        const sm_plan_op *x = &d->op[i];
        if (strcmp(x->op, op->name) == 0 && (int)x->kind == op->kind && x->phase == op->phase &&
            x->again == op->again)
            time_s += x->time_s;
    }
    return time_s / op->calls;
}

/* Rows of one kind, and of one direction: forward, backward or both (way < 0). */
static void choose_rows(training_fit *f, sm_op_kind kind, int way) {
    const sm_measurements *found = f->q->found;
    f->rows = 0;
    for (int i = 0; i < f->q->runs; i++)
        for (int k = 0; k < found->training[i].ops; k++) {
            const sm_train_row *op = &found->training[i].op[k];
            bool backward = op->phase != SM_PHASE_FORWARD;
            if (op->kind != (int)kind || op->again || !(op->calls > 0 && op->seconds > 0)) continue;
            if ((way >= 0 && backward != (way == 1)) || !(priced_op_s(f, i, op) > 0)) continue;
            bool adds = op->phase == SM_PHASE_BACKWARD_WEIGHT;
            assert(f->rows < MOST_ROWS);
            double around_s = adds ? op->around_s / op->calls : f->c.launch_s;
            f->row[f->rows++] = (trained_row){i, k, op->seconds / op->calls + around_s};
        }
}

static double row_s(const training_fit *f, const trained_row *row) {
    return priced_op_s(f, row->run, &f->q->found->training[row->run].op[row->op]);
}

/* ---- constants ---- */

sm_measured_constant measured_range(sm_constant which, double start) {
    const sm_constant_info *info = sm_constant_of(which);
    return (sm_measured_constant){info->low, info->high, fmin(info->high, fmax(info->low, start))};
}

static double in_range(sm_constant which, double value) {
    return measured_range(which, value).value;
}

/* Per-call overhead of an op: its block, slices and sums; what adds up the gradients of weights is
 * priced as work of theirs. */
static double launch_of(const measuring *q) {
    double around_s = 0, calls = 0;
    for (int i = 0; i < q->runs; i++)
        for (int k = 0; k < q->found->training[i].ops; k++) {
            const sm_train_row *op = &q->found->training[i].op[k];
            if (op->phase == SM_PHASE_BACKWARD_WEIGHT) continue;
            around_s += op->around_s;
            calls += op->calls;
        }
    return calls > 0 ? around_s / calls : q->calibration.launch_s;
}

static double product_model_s(const double *constant, int row, void *context) {
    training_fit *f = context;
    bool same =
        f->priced && f->c.matmul_efficiency == constant[0] && f->c.matmul_half_k == constant[1];
    f->c.matmul_efficiency = f->c.matmul_efficiency_fp8 = constant[0];
    f->c.matmul_half_k = constant[1];
    if (!same) f->priced = price_runs(f, NULL) == SM_OK;
    return f->priced ? row_s(f, &f->row[row]) : 0;
}

static sm_status fit_products(training_fit *f, sm_error *err) {
    sm_measured_constant c[] = {
        measured_range(SM_CONSTANT_matmul_efficiency, f->c.matmul_efficiency),
        measured_range(SM_CONSTANT_matmul_half_k, f->c.matmul_half_k)};
    double *seconds = sm_arena_array(f->q->call->arena, MOST_ROWS, sizeof *seconds);
    if (!seconds) return sm_fail_memory(err);
    choose_rows(f, SM_OP_EINSUM, -1);
    if (f->rows == 0) return SM_OK;
    for (int i = 0; i < f->rows; i++) seconds[i] = f->row[i].measured_s;
    f->priced = false;
    sm_timings timings = {product_model_s, f, seconds, f->rows};
    sm_status status = sm_measure_constants(&timings, c, 2, &f->q->op_error, err);
    if (status) return status;
    f->c.matmul_efficiency = f->c.matmul_efficiency_fp8 = c[0].value;
    f->c.matmul_half_k = c[1].value;
    return price_runs(f, err);
}

/* The median of priced over measured, both without the launch: an efficiency that is off by this
 * factor makes it 1. */
static double factor_of(training_fit *f, sm_op_kind kind, int way) {
    double ratio[MOST_ROWS];
    choose_rows(f, kind, way);
    for (int i = 0; i < f->rows; i++)
        ratio[i] = (row_s(f, &f->row[i]) - f->c.launch_s) / (f->row[i].measured_s - f->c.launch_s);
    return f->rows ? sm_spread_of(ratio, f->rows).median : 1;
}

/* What collectives between ops take beyond those that ranks begin together: one waits for the
 * other. */
static double waiting_of(const measuring *q) {
    double extra[MOST_RUNS * SM_COLLECTIVE_COUNT];
    int n = 0;
    for (int i = 0; i < q->runs; i++) {
        const sm_measured_training *t = &q->found->training[i];
        for (int op = 0; q->run[i].has_moves && op < SM_COLLECTIVE_COUNT; op++) {
            const sm_collective_line *line =
                sm_calibration_line(&q->calibration, (sm_collective)op, q->found->ranks);
            if (!line || !(t->moves[op] > 0)) continue;
            extra[n++] =
                (t->move_s[op] - t->move_bytes[op] * line->line.s_per_byte) / t->moves[op] -
                line->line.latency_s;
        }
    }
    return n ? fmax(0.0, sm_spread_of(extra, n).median) : 0;
}

sm_status measured_lines(measuring *q, sm_error *err) {
    if (q->lines == 0) return SM_OK;
    sm_collective_line *line = sm_arena_array(q->call->arena, (size_t)q->lines, sizeof *line);
    if (!line) return sm_fail_memory(err);
    for (int i = 0; i < q->lines; i++)
        line[i] = (sm_collective_line){q->line[i].op, q->line[i].ranks, q->line[i].line.line};
    q->calibration.line = line;
    q->calibration.lines = q->lines;
    q->line_in_use = line;
    return SM_OK;
}

static sm_status fit_all(training_fit *f, sm_error *err) {
    measuring *q = f->q;
    sm_calibration *c = &f->c;
    const sm_measured_training *t = q->found->training;
    double left[MOST_RUNS], off[MOST_RUNS];
    c->launch_s = in_range(SM_CONSTANT_launch_s, launch_of(q));
    c->overlap = 0; /* collectives block */
    c->step_overhead_s = 0;
    sm_status status = price_runs(f, err);
    if (!status) status = fit_products(f, err);
    if (status) return status;
    c->attention_efficiency = in_range(SM_CONSTANT_attention_efficiency,
                                       c->attention_efficiency * factor_of(f, SM_OP_ATTENTION, 0));
    c->attention_efficiency_backward =
        in_range(SM_CONSTANT_attention_efficiency_backward,
                 c->attention_efficiency_backward * factor_of(f, SM_OP_ATTENTION, 1));
    status = price_runs(f, err);
    if (status) return status;
    for (int i = 0; i < q->runs; i++) left[i] = t[i].seconds.low - q->run[i].predicted_s;
    c->step_overhead_s = in_range(SM_CONSTANT_step_overhead_s, sm_spread_of(left, q->runs).median);
    status = price_runs(f, err);
    for (int i = 0; i < q->runs; i++) off[i] = fabs(log(q->run[i].predicted_s / t[i].seconds.low));
    q->training_error = sm_spread_of(off, q->runs).median;
    q->calibration = *c;
    return status;
}

sm_status measured_training_fit(measuring *q, const sm_system *system, sm_error *err) {
    sm_status status = SM_OK;
    if (q->found->trainings < q->runs || q->runs == 0) return SM_OK;
    training_fit *f = sm_arena_alloc(q->call->arena, sizeof *f);
    if (!f) return sm_fail_memory(err);
    q->waiting_s = waiting_of(q);
    for (int i = 0; i < q->calibration.lines; i++) q->line_in_use[i].line.latency_s += q->waiting_s;
    f->q = q;
    f->c = q->calibration;
    for (int i = 0; !status && i < q->runs; i++) {
        measured_run *run = &q->run[i];
        const sm_train_setup *s = &run->setup;
        sm_job job = {.size = sizeof(sm_job),
                      .model = &run->model,
                      .system = system,
                      .batch_tokens = (double)s->sequences * s->tokens,
                      .seq = s->tokens,
                      .usd_per_chip_hour = -1};
        status = sm_train_new(&job, &run->train, err);
        if (!status) sm_train_set_software(run->train, &sm_train_runtime);
    }
    if (!status) status = fit_all(f, err);
    for (int i = 0; i < q->runs; i++) sm_train_free(q->run[i].train);
    sm_arena_free(f->arena);
    return status;
}
