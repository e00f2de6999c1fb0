/* Training on real ranks: gradients against finite differences, a loss that falls, and every plan's
 * losses against those of one rank, step by step, with the bytes that were predicted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scalemodel/run_train.h"
#include "scalemodel/schedule.h"

enum { TOKENS = 16, SEQUENCES = 8, TEXT = 6000, MOST_STEPS = 64 };

static unsigned char text[TEXT];

static int fill_text(void **state) {
    static const char *const words[] = {"a plan ",  "is a ",    "sharding ", "of the ",
                                        "program ", "and its ", "price. ",   "The "};
    sm_rng rng = {7};
    (void)state;
    for (size_t n = 0; n < sizeof text;) {
        const char *word = words[sm_rng_below(&rng, sizeof words / sizeof *words)];
        for (; *word && n < sizeof text; word++) text[n++] = (unsigned char)*word;
    }
    return 0;
}

/* ---- models ---- */

static sm_layer_kind dense_kind(void) {
    return (sm_layer_kind){.name = "dense", .N = 4, .K = 2, .H = 4, .V_head = 4, .norms = 2,
                           .F = 32};
}

static sm_model model_of(const char *name, sm_layer_kind kind, int layers) {
    sm_model m = {.D = 16, .L = layers, .V = 256, .final_norm = true, .causal = true, .kinds = 1};
    snprintf(m.name, sizeof m.name, "%s", name);
    m.kind[0] = kind;
    return m;
}

static sm_model dense(void) { return model_of("dense", dense_kind(), 2); }

static sm_model experts(void) {
    sm_layer_kind kind = dense_kind();
    snprintf(kind.name, sizeof kind.name, "moe");
    kind.F = 0;
    kind.E = 4;
    kind.k_top = 2;
    kind.F_expert = 16;
    return model_of("experts", kind, 2);
}

static sm_train_setup setup_of(const sm_model *model) {
    sm_train_setup s;
    sm_train_setup_defaults(&s);
    s.model = model;
    s.tokens = TOKENS;
    s.sequences = SEQUENCES;
    s.microbatch = SEQUENCES;
    s.data = text;
    s.data_bytes = sizeof text;
    s.seed = 11;
    s.warmup = 2;
    return s;
}

/* ---- running ---- */

typedef struct curve {
    const sm_train_setup *setup;
    int steps;
    double loss[MOST_STEPS], norm[MOST_STEPS];
    double predicted[SM_COLLECTIVE_COUNT], counted[SM_COLLECTIVE_COUNT];
    double difference; /* of bytes, over all ranks */
    sm_status status;
} curve;

static sm_status train(sm_communicator *world, void *context, sm_error *err) {
    curve *c = context;
    sm_trainer *t = NULL;
    sm_status status = sm_trainer_new(world, c->setup, &t, err);
    double difference = 0;
    for (int i = 0; !status && i < c->steps; i++) {
        sm_train_result r;
        status = sm_trainer_step(t, i, &r, err);
        for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
            difference += fabs(r.bytes_predicted[k] - r.bytes_counted[k]);
        if (world->rank) continue;
        c->loss[i] = r.loss;
        c->norm[i] = r.gradient_norm;
        memcpy(c->predicted, r.bytes_predicted, sizeof c->predicted);
        memcpy(c->counted, r.bytes_counted, sizeof c->counted);
    }
    if (!status) status = sm_run_all_reduce(world, &difference, 1, SM_ELEMENT_F64, err);
    if (world->rank == 0) c->difference = difference;
    sm_trainer_free(t);
    return status;
}

static void run_curve(const sm_train_setup *setup, int steps, curve *c) {
    sm_error err = {.status = SM_OK};
    *c = (curve){.setup = setup, .steps = steps};
    sm_status status = sm_run_threads(sm_train_setup_ranks(setup), train, c, &err);
    if (status) print_message("%s\n", err.sentence);
    c->status = status;
}

/* ---- one rank ---- */

static void loss_falls(void **state) {
    (void)state;
    sm_model models[] = {dense(), experts()};
    for (size_t i = 0; i < 2; i++) {
        sm_train_setup s = setup_of(&models[i]);
        curve c;
        s.steps = 60;
        s.rate = 1e-2;
        run_curve(&s, 60, &c);
        print_message("%s: %g -> %g\n", models[i].name, c.loss[0], c.loss[59]);
        assert_true(fabs(c.loss[0] - log(256)) < 1);
        assert_true(c.loss[59] < 2);
    }
}

typedef struct probe {
    const sm_train_setup *setup;
    double worst;
} probe;

static double loss_at(sm_trainer *t) {
    sm_train_result r;
    sm_error err = {.status = SM_OK};
    if (sm_trainer_gradients(t, 0, &r, &err)) print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    return r.loss;
}

static void shift(float *value, const float *by, size_t n, float times) {
    for (size_t i = 0; i < n; i++) value[i] += times * by[i];
}

/* Along a random direction u: (loss(w + e u) - loss(w - e u)) / 2e against gradient . u. */
static double slope_error(sm_trainer *t, int layer, int number, sm_rng *rng) {
    sm_train_weight w;
    assert_true(sm_trainer_weight(t, layer, number, &w));
    size_t n = 1;
    for (int d = 0; d < w.rank; d++) n *= w.size[d];
    float *u = sm_malloc(n * sizeof *u), *kept = sm_malloc(n * sizeof *kept), step = 2e-3F;
    double told = 0, squares = 0;
    loss_at(t);
    assert_true(sm_trainer_weight(t, layer, number, &w));
    for (size_t i = 0; i < n; i++) {
        u[i] = (float)(sm_rng_unit(rng) - 0.5) + 4 * w.gradient[i];
        told += (double)u[i] * (double)w.gradient[i];
        squares += (double)u[i] * (double)u[i];
    }
    step = fminf(step / (float)sqrt(squares / (double)n), 5e-3F / (float)fabs(told));
    memcpy(kept, w.value, n * sizeof *kept);
    shift(w.value, u, n, step);
    double up = loss_at(t);
    memcpy(w.value, kept, n * sizeof *kept);
    shift(w.value, u, n, -step);
    double down = loss_at(t), seen = (up - down) / (2 * (double)step);
    memcpy(w.value, kept, n * sizeof *kept);
    sm_free(u);
    sm_free(kept);
    double error = fabs(seen - told) / fmax(fabs(told), 1e-3);
    if (error > 0.02) print_message("layer %d %s: %g against %g\n", layer, w.name, told, seen);
    return error;
}

static sm_status probe_rank(sm_communicator *world, void *context, sm_error *err) {
    probe *p = context;
    sm_trainer *t;
    sm_rng rng = {3};
    sm_status status = sm_trainer_new(world, p->setup, &t, err);
    if (status) return status;
    for (int layer = -1; layer <= p->setup->model->L; layer++)
        for (int i = 0; i < sm_trainer_weights(t, layer); i++)
            p->worst = fmax(p->worst, slope_error(t, layer, i, &rng));
    sm_trainer_free(t);
    return SM_OK;
}

static void gradients_are_slopes(void **state) {
    (void)state;
    sm_model models[] = {dense(), experts()};
    for (size_t i = 0; i < 2; i++) {
        sm_train_setup s = setup_of(&models[i]);
        sm_error err = {.status = SM_OK};
        probe p = {.setup = &s};
        s.sequences = s.microbatch = 2;
        sm_communicator *self;
        assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
        assert_int_equal(probe_rank(self, &p, &err), SM_OK);
        sm_communicator_free(self);
        print_message("%s: worst error %g\n", models[i].name, p.worst);
        assert_true(p.worst < 0.02);
    }
}

static size_t elements(const sm_train_weight *w) {
    size_t n = 1;
    for (int d = 0; d < w->rank; d++) n *= w->size[d];
    return n;
}

/* Adam's first step moves each weight by the rate against the sign of its gradient, which for a
 * tied embedding is that of the lookup plus, transposed, that of the scores. */
static void tied_gradients_are_sums(void **state) {
    (void)state;
    sm_model model = dense();
    sm_trainer *t;
    sm_train_weight rows, columns;
    sm_communicator *self;
    sm_train_result r;
    model.tied = true;
    sm_train_setup s = setup_of(&model);
    s.warmup = 0;
    assert_int_equal(sm_communicator_self(&self, NULL), SM_OK);
    assert_int_equal(sm_trainer_new(self, &s, &t, NULL), SM_OK);
    loss_at(t);
    assert_true(sm_trainer_weight(t, -1, 0, &rows));
    assert_true(sm_trainer_weight(t, model.L, 1, &columns));
    size_t n = elements(&rows), words = rows.size[0], width = rows.size[1], checked = 0;
    float *slope = sm_malloc(n * sizeof *slope), *before = sm_malloc(n * sizeof *before);
    memcpy(before, rows.value, n * sizeof *before);
    for (size_t i = 0; i < n; i++)
        slope[i] = rows.gradient[i] + columns.gradient[i % width * words + i / width];
    assert_int_equal(sm_trainer_step(t, 0, &r, NULL), SM_OK);
    for (size_t i = 0; i < n; i++) {
        assert_true(rows.value[i] == columns.value[i % width * words + i / width]);
        if (fabs((double)slope[i]) < 1e-5) continue;
        double moved = (double)rows.value[i] - (double)before[i];
        assert_true(fabs(moved + copysign(s.rate, (double)slope[i])) < 0.02 * s.rate);
        checked++;
    }
    assert_true(checked > n / 4);
    sm_free(slope);
    sm_free(before);
    sm_trainer_free(t);
    sm_communicator_free(self);
}

/* ---- every plan against one rank ---- */

enum { STEPS = 4 };
static const double TOLERANCE = 2e-5; /* of a loss, relative: sums in other orders */

/* A plan in words: degrees and rules joined by commas. */
static bool word(const char *plan, const char *key, int *value) {
    size_t n = strlen(key);
    for (const char *at = plan; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, key, n) == 0 && (at[n] == '=' || at[n] == ',' || !at[n])) {
            *value = at[n] == '=' ? at[n + 1] - '0' : 1;
            return true;
        }
    return false;
}

static void read_plan(const char *plan, sm_train_setup *s) {
    static const char *const axes[] = {"data", "fsdp", "expert", "context", "tensor", "tensor_q"};
    int value;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (word(plan, axes[a], &value)) s->degree[a] = value;
    if (word(plan, "seq", &value)) s->rules.seq = true;
    if (word(plan, "expert_tensor", &value)) s->rules.expert_tensor = true;
    if (word(plan, "heads", &value)) s->rules.context_by = SM_CONTEXT_HEADS;
    if (word(plan, "over_context", &value)) s->rules.weights_over_context = true;
    if (word(plan, "zero", &value)) s->zero = value;
    if (word(plan, "recompute", &value)) s->recompute = (sm_recompute)value;
    int ways = s->degree[SM_AXIS_DATA] * s->degree[SM_AXIS_FSDP] * s->degree[SM_AXIS_EXPERT];
    s->microbatch = SEQUENCES / ways;
    if (word(plan, "micro", &value)) s->microbatch = value;
}

static const char *const plans[] = {
    /* accumulation and recomputation on one rank */
    "micro=4", "micro=1", "recompute=1", "recompute=2", "recompute=3", "micro=2,recompute=3",
    /* two ranks */
    "data=2", "data=2,zero=1", "data=2,zero=2,micro=1", "data=2,micro=2", "fsdp=2,zero=3",
    "fsdp=2,zero=3,micro=1", "fsdp=2,zero=3,recompute=3", "tensor=2", "tensor=2,seq",
    "tensor=2,recompute=1", "tensor=2,seq,recompute=3", "tensor=2,seq,recompute=2,micro=2",
    "tensor_q=2", "tensor_q=2,seq", "context=2", "context=2,heads", "context=2,recompute=3",
    "context=2,over_context", "context=2,zero=1", "expert=2", "expert=2,zero=1,micro=1",
    "expert=2,recompute=3", "expert=2,recompute=2",
    /* four */
    "data=4", "data=4,zero=1", "data=2,fsdp=2,zero=3", "data=2,fsdp=2,zero=3,micro=1",
    "data=2,tensor=2", "data=2,tensor=2,seq,zero=1", "fsdp=2,tensor=2,zero=3,seq",
    "fsdp=4,zero=3", "tensor=2,tensor_q=2", "tensor=2,tensor_q=2,seq",
    "tensor=2,tensor_q=2,seq,recompute=3", "context=4", "context=2,tensor=2",
    "context=2,tensor=2,seq", "context=2,tensor_q=2,seq", "context=2,fsdp=2,zero=3",
    "context=2,fsdp=2,zero=3,over_context", "data=2,context=2,zero=2,micro=2",
    "expert=4", "expert=2,tensor=2", "expert=2,tensor=2,expert_tensor",
    "expert=2,tensor=2,seq,expert_tensor", "expert=2,tensor=2,seq", "expert=2,fsdp=2,zero=3",
    "expert=2,data=2,zero=1", "expert=2,context=2", "tensor=2,tensor_q=2,expert_tensor",
    /* eight */
    "data=8", "data=8,zero=2", "fsdp=8,zero=3", "data=2,fsdp=2,tensor=2,zero=3,seq",
    "data=2,tensor=2,tensor_q=2,seq,zero=1", "fsdp=2,context=2,tensor=2,seq,zero=3",
    "data=2,context=2,tensor=2,seq,recompute=3", "expert=2,fsdp=2,tensor=2,seq,zero=3",
    "expert=2,data=2,tensor=2,expert_tensor,zero=2,micro=1",
    "expert=2,context=2,tensor=2,seq,recompute=2", "expert=4,fsdp=2,zero=3",
    "fsdp=2,tensor=2,tensor_q=2,zero=3,seq,recompute=1", "context=2,heads,data=2,fsdp=2,zero=3"};

static bool about_equal(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * fabs(b);
}

static int compare(const char *plan, const curve *one, const curve *c) {
    int wrong = c->difference != 0 || c->status != SM_OK;
    for (int i = 0; i < STEPS; i++)
        wrong += !about_equal(c->loss[i], one->loss[i], TOLERANCE) ||
                 !about_equal(c->norm[i], one->norm[i], 100 * TOLERANCE);
    if (!wrong) return 0;
    print_message("%s of %s:", plan, c->setup->model->name);
    for (int i = 0; i < STEPS; i++)
        print_message(" %.6f/%.6f %.4f/%.4f", c->loss[i], one->loss[i], c->norm[i], one->norm[i]);
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++)
        if (c->predicted[k] != c->counted[k])
            print_message(" %s %g/%g", sm_collective_name((sm_collective)k), c->predicted[k],
                          c->counted[k]);
    print_message(" (bytes differ by %g)\n", c->difference);
    return 1;
}

static int every_plan(const sm_model *model) {
    curve one, c;
    int wrong = 0;
    sm_train_setup base = setup_of(model);
    base.rules.expert_tensor = false;
    run_curve(&base, STEPS, &one);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        sm_train_setup s = setup_of(model);
        read_plan(plans[i], &s);
        run_curve(&s, STEPS, &c);
        wrong += compare(plans[i], &one, &c);
    }
    return wrong;
}

static void dense_plans_are_equal(void **state) {
    (void)state;
    sm_model model = dense();
    assert_int_equal(every_plan(&model), 0);
}

static void expert_plans_are_equal(void **state) {
    (void)state;
    sm_model model = experts();
    assert_int_equal(every_plan(&model), 0);
}

/* ---- pipelines: stages of four layers by the slots of the schedule ---- */

enum { MOST_CHUNKS = 8, MOST_STAGES = 4, MOST_ACTIONS = 128 };
typedef struct line {
    sm_train_chunk chunk[MOST_CHUNKS];
    int actions[MOST_STAGES];
    sm_train_action action[MOST_STAGES][MOST_ACTIONS];
    const sm_train_action *of[MOST_STAGES];
} line;

static sm_train_act act_of(sm_slot_kind kind) {
    return kind == SM_SLOT_FORWARD          ? SM_TRAIN_FORWARD
           : kind == SM_SLOT_BACKWARD       ? SM_TRAIN_BACKWARD
           : kind == SM_SLOT_BACKWARD_INPUT ? SM_TRAIN_BACKWARD_INPUT
                                            : SM_TRAIN_BACKWARD_WEIGHT;
}

static void lay_line(sm_schedule schedule, int stages, int chunks_per_stage, sm_train_setup *s,
                     line *l) {
    static _Alignas(16) char scratch[1 << 16];
    sm_chunk_time time[MOST_CHUNKS];
    sm_slot slot[512];
    int chunks = stages * chunks_per_stage, layers = s->model->L;
    for (int c = 0; c < chunks; c++) time[c] = (sm_chunk_time){1, 1, 1};
    sm_pipeline p = {schedule, stages, chunks_per_stage, sm_train_setup_microbatches(s), time, 0};
    const char *why = "";
    assert_true(sm_schedule_possible(schedule, stages, chunks_per_stage, p.microbatches, &why));
    assert_true(sm_pipeline_scratch(&p) <= sizeof scratch && sm_pipeline_slots(&p) <= 512);
    memset(slot, 0, sizeof slot);
    sm_pipeline_simulate(&p, scratch, slot);
    *l = (line){.actions = {0}};
    for (size_t i = 0; i < sm_pipeline_slots(&p); i++)
        l->action[slot[i].stage][l->actions[slot[i].stage]++] =
            (sm_train_action){act_of(slot[i].kind), slot[i].chunk, slot[i].microbatch};
    for (int c = 0; c < chunks; c++)
        l->chunk[c] = (sm_train_chunk){sm_schedule_stage(schedule, stages, chunks_per_stage, c),
                                       c * layers / chunks, (c + 1) * layers / chunks};
    for (int i = 0; i < stages; i++) l->of[i] = l->action[i];
    s->stages = stages;
    s->chunks = chunks;
    s->chunk = l->chunk;
    s->actions = l->actions;
    s->action = l->of;
}

typedef struct piped {
    const char *plan;
    sm_schedule schedule;
    int stages, chunks_per_stage;
} piped;
static const piped pipes[] = {
    {"micro=1", SM_SCHEDULE_GPIPE, 2, 1},
    {"micro=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=2", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1,recompute=3", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,recompute=2", SM_SCHEDULE_ZB_H1, 4, 1},
    {"micro=1", SM_SCHEDULE_ZB_V, 2, 2},
    {"micro=1,data=2,zero=1", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,data=2,zero=2", SM_SCHEDULE_1F1B, 4, 1},
    {"micro=1,fsdp=2,zero=3", SM_SCHEDULE_INTERLEAVED, 2, 2},
    {"micro=1,tensor=2,seq", SM_SCHEDULE_ZB_H1, 2, 1},
    {"micro=1,context=2,tensor=2,seq", SM_SCHEDULE_1F1B, 2, 1},
    {"micro=1,expert=2,tensor=2,seq", SM_SCHEDULE_ZB_V, 2, 2},
    {"micro=1,expert=2,data=2", SM_SCHEDULE_ZB_H1, 2, 1},
};

static int every_pipeline(sm_model *model) {
    curve one, c;
    int wrong = 0;
    model->L = 4;
    sm_train_setup base = setup_of(model);
    run_curve(&base, STEPS, &one);
    for (size_t i = 0; i < sizeof pipes / sizeof *pipes; i++) {
        static line l;
        char name[100];
        sm_train_setup s = setup_of(model);
        read_plan(pipes[i].plan, &s);
        lay_line(pipes[i].schedule, pipes[i].stages, pipes[i].chunks_per_stage, &s, &l);
        run_curve(&s, STEPS, &c);
        snprintf(name, sizeof name, "%s %d x %s", pipes[i].plan, pipes[i].stages,
                 sm_schedule_names[pipes[i].schedule]);
        wrong += compare(name, &one, &c);
    }
    return wrong;
}

static void pipelines_are_equal(void **state) {
    (void)state;
    sm_model models[] = {dense(), experts()};
    assert_int_equal(every_pipeline(&models[0]), 0);
    assert_int_equal(every_pipeline(&models[1]), 0);
}

/* An embedding that is the unembedding too. */
static void tied_plans_are_equal(void **state) {
    (void)state;
    static const char *const some[] = {"data=2,zero=1",
                                       "data=2,zero=2,micro=1",
                                       "fsdp=2,zero=3",
                                       "tensor=2,seq",
                                       "tensor_q=2",
                                       "fsdp=2,context=2,zero=3,over_context",
                                       "fsdp=2,tensor=2,tensor_q=2,zero=3,seq",
                                       "expert=2,data=2,zero=1,micro=1"};
    sm_model model = dense();
    curve one, c, untied;
    int wrong = 0;
    sm_train_setup base = setup_of(&model);
    run_curve(&base, STEPS, &untied);
    model.tied = true;
    run_curve(&base, STEPS, &one);
    assert_true(one.loss[STEPS - 1] < one.loss[0] && fabs(one.loss[0] - untied.loss[0]) > 1e-3);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        sm_train_setup s = setup_of(&model);
        read_plan(some[i], &s);
        run_curve(&s, STEPS, &c);
        wrong += compare(some[i], &one, &c);
    }
    static line l;
    sm_train_setup s = setup_of(&model);
    model.L = 4;
    run_curve(&base, STEPS, &one);
    read_plan("micro=1", &s);
    lay_line(SM_SCHEDULE_ZB_V, 2, 2, &s, &l);
    run_curve(&s, STEPS, &c);
    assert_int_equal(wrong + compare("zb-v", &one, &c), 0);
}

/* ---- checkpoints: two steps under one plan, two more under another ---- */

enum { MOST_KEPT = 200 };
typedef struct kept {
    int n;
    sm_train_array array[MOST_KEPT];
    char name[MOST_KEPT][20]; /* the trainer's own go with it */
    uint64_t updates;
} kept;

static sm_status keep_array(sm_train_array *a, void *context, sm_error *err) {
    kept *k = context;
    (void)err;
    assert_true(k->n < MOST_KEPT);
    snprintf(k->name[k->n], sizeof k->name[k->n], "%s", a->name);
    k->array[k->n++] = *a;
    a->data = NULL; /* ours now */
    return SM_OK;
}

static sm_status find_array(sm_train_array *a, void *context, sm_error *err) {
    const kept *k = context;
    for (int i = 0; i < k->n; i++)
        if (k->array[i].layer == a->layer && k->array[i].part == a->part &&
            strcmp(k->name[i], a->name) == 0) {
            if (memcmp(k->array[i].size, a->size, sizeof a->size) != 0) break;
            a->data = k->array[i].data;
            return SM_OK;
        }
    return sm_fail(err, SM_INTERNAL, "%s of layer %d was not kept", a->name, a->layer);
}

typedef struct half {
    const sm_train_setup *setup;
    kept *kept;
    bool second;
    double loss[STEPS];
} half;

static sm_status run_half(sm_communicator *world, void *context, sm_error *err) {
    half *h = context;
    sm_trainer *t = NULL;
    sm_status status = sm_trainer_new(world, h->setup, &t, err);
    if (!status && h->second) status = sm_trainer_load(t, find_array, h->kept, err);
    if (!status && h->second) sm_trainer_set_updates(t, h->kept->updates);
    for (int i = 0; !status && i < STEPS / 2; i++) {
        sm_train_result r;
        int step = i + (h->second ? STEPS / 2 : 0);
        status = sm_trainer_step(t, step, &r, err);
        if (world->rank == 0) h->loss[step] = r.loss;
    }
    if (!status && !h->second) status = sm_trainer_save(t, keep_array, h->kept, err);
    if (!status && !h->second && world->rank == 0) h->kept->updates = sm_trainer_updates(t);
    sm_trainer_free(t);
    return status;
}

static void run_both_halves(const sm_train_setup *first, const sm_train_setup *second,
                            const curve *one) {
    static kept k;
    sm_error err = {.status = SM_OK};
    k.n = 0;
    half h = {.setup = first, .kept = &k};
    if (sm_run_threads(sm_train_setup_ranks(first), run_half, &h, &err))
        print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    h.second = true;
    h.setup = second;
    if (sm_run_threads(sm_train_setup_ranks(second), run_half, &h, &err))
        print_message("%s\n", err.sentence);
    assert_int_equal(err.status, SM_OK);
    for (int i = 0; i < STEPS; i++)
        assert_true(about_equal(h.loss[i], one->loss[i], TOLERANCE));
    for (int i = 0; i < k.n; i++) sm_free(k.array[i].data);
}

static void resumes_on_another_mesh(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", "data=2,zero=1"},
        {"data=4,zero=1", "fsdp=2,tensor=2,zero=3,seq"},
        {"fsdp=4,zero=3", "tensor=2,tensor_q=2,seq"},
        {"expert=2,tensor=2,expert_tensor", "data=2,context=2,zero=2,micro=2"},
        {"context=2,fsdp=2,zero=3,over_context", "expert=4"},
        {"data=2,tensor=2,seq,zero=1", "micro=1"}};
    sm_model models[] = {dense(), experts()};
    for (size_t m = 0; m < 2; m++) {
        curve one;
        models[m].L = 4;
        sm_train_setup base = setup_of(&models[m]);
        run_curve(&base, STEPS, &one);
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            static line l;
            sm_train_setup first = setup_of(&models[m]), second = first, staged = first;
            read_plan(pairs[i][0], &first);
            read_plan(pairs[i][1], &second);
            run_both_halves(&first, &second, &one);
            if (i > 1) continue;
            read_plan("micro=1,data=2,zero=1", &staged);
            lay_line(SM_SCHEDULE_ZB_V, 2, 2, &staged, &l);
            run_both_halves(i ? &staged : &second, i ? &second : &staged, &one);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_falls),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(tied_gradients_are_sums),
        cmocka_unit_test(dense_plans_are_equal),
        cmocka_unit_test(expert_plans_are_equal),
        cmocka_unit_test(pipelines_are_equal),
        cmocka_unit_test(tied_plans_are_equal),
        cmocka_unit_test(resumes_on_another_mesh),
    };
    return cmocka_run_group_tests(tests, fill_text, NULL);
}
