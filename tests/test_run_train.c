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

#include "model_of.h"
#include "sanitized.h"
#include "train_plans.h"

/* ---- one rank ---- */

static void loss_falls(void **state) {
    (void)state;
    sm_model models[] = {train_model(TRAIN_DENSE, 2), train_model(TRAIN_EXPERTS, 2)};
    for (size_t i = 0; i < 2; i++) {
        sm_train_setup s = train_setup_of(&models[i]);
        train_curve c;
        s.steps = 60;
        s.rate = 1e-2;
        train_curve_on_threads(&s, 60, &c);
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

/* Along a random direction u: (loss(w + e u) - loss(w - e u)) / 2e against gradient . u. A choice
 * of experts that changes on the way is passed by with a smaller e. */
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
    double error = INFINITY;
    for (int i = 0; i < 4 && error > 0.02; i++, step /= 4) {
        shift(w.value, u, n, step);
        double up = loss_at(t);
        memcpy(w.value, kept, n * sizeof *kept);
        shift(w.value, u, n, -step);
        double down = loss_at(t), seen = (up - down) / (2 * (double)step);
        memcpy(w.value, kept, n * sizeof *kept);
        error = fabs(seen - told) / fmax(fabs(told), 1e-3);
        if (error > 0.02) print_message("layer %d %s: %g against %g\n", layer, w.name, told, seen);
    }
    sm_free(u);
    sm_free(kept);
    return error;
}

static sm_status probe_rank(sm_communicator *world, void *context, sm_error *err) {
    probe *p = context;
    sm_trainer *t;
    sm_rng rng = {3};
    sm_status status = sm_trainer_new(world, p->setup, &t, err);
    if (status) return status;
    sm_train_weight w;
    for (int layer = -1; layer <= p->setup->model->L; layer++)
        for (int i = 0; sm_trainer_weight(t, layer, i, &w); i++)
            p->worst = fmax(p->worst, slope_error(t, layer, i, &rng));
    sm_trainer_free(t);
    return SM_OK;
}

static double worst_slope(const sm_model *model) {
    sm_train_setup s = train_setup_of(model);
    sm_error err = {.status = SM_OK};
    probe p = {.setup = &s};
    s.sequences = s.microbatch = 2;
    sm_communicator *self;
    assert_int_equal(sm_communicator_self(&self, &err), SM_OK);
    assert_int_equal(probe_rank(self, &p, &err), SM_OK);
    sm_communicator_free(self);
    print_message("%s: worst error %g\n", model->name, p.worst);
    return p.worst;
}

static void gradients_are_slopes(void **state) {
    (void)state;
    sm_model models[] = {train_model(TRAIN_DENSE, 2), train_model(TRAIN_EXPERTS, 2)};
    for (size_t i = 0; i < 2; i++) assert_true(worst_slope(&models[i]) < 0.02);
}

/* ---- families: whatever their texts say ---- */

#define SIZES                                                                                      \
    "\"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "                  \
    "\"num_key_value_heads\": 2, \"vocab_size\": 256, \"intermediate_size\": 24, \"head_dim\": "   \
    "4, "
#define EXPERTS "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 8, "
static const struct family {
    const char *name, *config, *plans[3];
} families[] = {
    {"gemma2",
     SIZES "\"sliding_window\": 5, \"query_pre_attn_scalar\": 6, \"attn_logit_softcapping\": 2",
     {"tensor=2,seq", "fsdp=2,zero=3", "context=2"}},
    {"gemma3_text",
     SIZES "\"sliding_window\": 5, \"layer_types\": [\"sliding_attention\", \"full_attention\"]",
     {"tensor=2,tensor_q=2", "data=2,zero=1", "context=2,heads"}},
    {"qwen2", SIZES "\"tie_word_embeddings\": false", {"tensor=2", "fsdp=2,zero=3", "context=2"}},
    {"qwen3_moe",
     SIZES EXPERTS "\"num_experts\": 4, \"norm_topk_prob\": false",
     {"expert=2", "tensor=2,expert_tensor", "fsdp=2,zero=3,seq,tensor=2"}},
    {"qwen2_moe",
     SIZES EXPERTS "\"num_experts\": 6, \"shared_expert_intermediate_size\": 8",
     {"expert=2,data=2", "fsdp=2,zero=3", "tensor=2,seq"}},
    {"gpt_oss",
     SIZES "\"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"sliding_window\": 5",
     {"expert=2,tensor=2", "fsdp=2,zero=3", "data=2,micro=1"}},
    {"deepseek_v3",
     SIZES EXPERTS "\"q_lora_rank\": 8, \"kv_lora_rank\": 8, \"qk_nope_head_dim\": 4, "
                   "\"qk_rope_head_dim\": 2, \"v_head_dim\": 4, \"n_routed_experts\": 4, "
                   "\"n_group\": 2, \"topk_group\": 1, \"first_k_dense_replace\": 1",
     {"expert=2,tensor=2", "fsdp=2,zero=3", "tensor=4,seq"}},
    {"olmo2", SIZES "\"rms_norm_eps\": 1e-5", {"fsdp=2,zero=3", "data=2,zero=2", "context=2"}},
    {"cohere", SIZES "\"use_qk_norm\": true", {"tensor=2,seq", "fsdp=2,zero=3", "context=2"}},
    {"glm4", SIZES "\"partial_rotary_factor\": 0.5", {"tensor=2", "fsdp=2,zero=3", "context=2"}},
    {"gpt_neox", SIZES "\"rotary_pct\": 0.5", {"tensor=2,seq", "fsdp=2,zero=3", "data=2"}},
    {"granite",
     SIZES "\"residual_multiplier\": 0.5, \"logits_scaling\": 4.0, \"embedding_multiplier\": 3.0, "
           "\"attention_multiplier\": 0.3",
     {"tensor=2,seq", "pipeline", "micro=1"}},
    {"llama",
     SIZES "\"attention_bias\": true, \"mlp_bias\": true, \"rope_scaling\": {\"rope_type\": "
           "\"llama3\", \"factor\": 4.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
           "\"original_max_position_embeddings\": 8}",
     {"tensor=2,seq", "fsdp=2,zero=3,recompute=3", "recompute=1"}},
};
enum { FAMILIES = sizeof families / sizeof *families };

static sm_model family_model(const struct family *f) {
    char *config =
        sm_arena_printf(models_arena(), "{\"model_type\": \"%s\", %s}", f->name, f->config);
    return model_of(f->name, config);
}

static void families_have_their_slopes(void **state) {
    (void)state;
    for (size_t i = 0; i < FAMILIES; i += SANITIZED ? 4 : 1) {
        sm_model model = family_model(&families[i]);
        assert_true(worst_slope(&model) < 0.02);
    }
}

/* A scan by chunks is the scan by positions: of one position each, of five (and one over), of all.
 */
static void chunks_change_nothing(void **state) {
    (void)state;
    static const struct family scans[] = {
        {"mamba2",
         "\"hidden_size\": 16, \"num_hidden_layers\": 1, \"vocab_size\": 256, \"num_heads\": 4, "
         "\"head_dim\": 8, \"n_groups\": 2, \"state_size\": 4",
         {NULL}},
        {"qwen3_next",
         SIZES EXPERTS "\"num_experts\": 4, \"shared_expert_intermediate_size\": 8, "
                       "\"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, "
                       "\"linear_key_head_dim\": 4, \"linear_value_head_dim\": 6",
         {NULL}},
        {"kimi_linear",
         SIZES EXPERTS "\"num_experts\": 4, \"linear_attn_config\": {\"kda_layers\": [1], "
                       "\"full_attn_layers\": [2], \"num_heads\": 2, \"head_dim\": 4, "
                       "\"short_conv_kernel_size\": 4}, \"kv_lora_rank\": 8, \"v_head_dim\": 6, "
                       "\"qk_nope_head_dim\": 4, \"qk_rope_head_dim\": 4",
         {NULL}},
    };
    static const int sizes[] = {1, 5, 64};
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i += SANITIZED ? 2 : 1) {
        train_curve c[3];
        for (int k = 0; k < 3; k++) {
            struct family f = scans[i];
            f.config =
                sm_arena_printf(models_arena(), "%s, \"chunk_size\": %d", f.config, sizes[k]);
            sm_model model = family_model(&f);
            sm_train_setup s = train_setup_of(&model);
            train_curve_on_threads(&s, 2, &c[k]);
            assert_int_equal(c[k].status, SM_OK);
            for (int n = 0; n < 2; n++) {
                assert_true(train_about_equal(c[k].loss[n], c[0].loss[n], 1e-6));
                assert_true(train_about_equal(c[k].norm[n], c[0].norm[n], 1e-5));
            }
        }
    }
}

static void families_are_equal_under_plans(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = TRAIN_FIRST; i < FAMILIES; i += TRAIN_EVERY) {
        sm_model model = family_model(&families[i]);
        train_curve one, curve;
        sm_train_setup s = train_setup_of(&model);
        train_curve_on_threads(&s, 2, &one);
        for (int k = 0; k < 3; k++) {
            train_plan plan = {.words = families[i].plans[k]};
            static train_line line;
            s = train_setup_of(&model);
            if (strcmp(plan.words, "pipeline") == 0) {
                plan = (train_plan){"micro=1", SM_SCHEDULE_ZB_H1, 2, 1};
                train_words_read(plan.words, &s);
                assert_true(train_line_lay(plan.schedule, 2, 1, &s, &line));
            } else train_words_read(plan.words, &s);
            train_curve_on_threads(&s, 2, &curve);
            wrong += train_curve_compare(&plan, &one, &curve);
        }
    }
    assert_int_equal(wrong, 0);
}

static size_t elements(const sm_train_weight *w) {
    size_t n = 1;
    for (int d = 0; d < w->rank; d++) n *= w->size[d];
    return n;
}

/* Adam's first step moves each weight by the rate against the sign of its gradient, which for a
 * tied embedding is that of the lookup plus that of the scores. */
static void tied_gradients_are_sums(void **state) {
    (void)state;
    sm_model model = train_model_with(TRAIN_DENSE, 2, TRAIN_TIED);
    sm_trainer *t;
    sm_train_weight rows, copy;
    sm_communicator *self;
    sm_train_result r;
    sm_train_setup s = train_setup_of(&model);
    s.warmup = 0;
    assert_int_equal(sm_communicator_self(&self, NULL), SM_OK);
    assert_int_equal(sm_trainer_new(self, &s, &t, NULL), SM_OK);
    loss_at(t);
    assert_true(sm_trainer_weight(t, -1, 0, &rows));
    assert_true(sm_trainer_weight(t, model.L, 1, &copy));
    size_t n = elements(&rows), checked = 0;
    float *slope = sm_malloc(n * sizeof *slope), *before = sm_malloc(n * sizeof *before);
    memcpy(before, rows.value, n * sizeof *before);
    for (size_t i = 0; i < n; i++) slope[i] = rows.gradient[i] + copy.gradient[i];
    assert_int_equal(sm_trainer_step(t, 0, &r, NULL), SM_OK);
    for (size_t i = 0; i < n; i++) {
        assert_true(rows.value[i] == copy.value[i]);
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

/* One rank under the same model. */
static void curve_of_one(train_kind kind, int layers, train_curve *one) {
    sm_model model = train_model(kind, layers);
    sm_train_setup setup = train_setup_of(&model);
    train_curve_on_threads(&setup, TRAIN_STEPS, one);
    one->setup = NULL;
    assert_int_equal(one->status, SM_OK);
}

static int wrong_plans(train_kind kind) {
    static train_job job;
    train_curve shallow, deep, c;
    int wrong = 0;
    curve_of_one(kind, 2, &shallow);
    curve_of_one(kind, 4, &deep);
    for (size_t i = TRAIN_FIRST; i < train_plan_count; i += TRAIN_EVERY) {
        const train_plan *plan = &train_plans[i];
        if (!train_job_of(plan, kind, &job)) fail_msg("no schedule for %s", plan->words);
        train_curve_on_threads(&job.setup, TRAIN_STEPS, &c);
        wrong += train_curve_compare(plan, job.model.L == 2 ? &shallow : &deep, &c);
    }
    return wrong;
}

static void dense_plans_are_equal(void **state) {
    (void)state;
    assert_int_equal(wrong_plans(TRAIN_DENSE), 0);
}

static void expert_plans_are_equal(void **state) {
    (void)state;
    assert_int_equal(wrong_plans(TRAIN_EXPERTS), 0);
}

/* Sums of partial sums: attention beside the MLP, a shared expert beside the routed ones. */
static void sums_are_equal(void **state) {
    (void)state;
    static const char *const members[TRAIN_KINDS] = {
        [TRAIN_DENSE] = "\"use_parallel_residual\": true",
        [TRAIN_EXPERTS] = "\"use_parallel_residual\": true, \"n_shared_experts\": 1, "
                          "\"shared_expert_intermediate_size\": 16"};
    static const train_plan some[] = {{.words = "tensor=2"},
                                      {.words = "tensor=2,seq"},
                                      {.words = "tensor=2,tensor_q=2,recompute=3"},
                                      {.words = "tensor=2,tensor_q=2,seq,recompute=2"},
                                      {.words = "expert=2,tensor=2"},
                                      {.words = "expert=2,tensor=2,expert_tensor,micro=1"},
                                      {.words = "expert=2,tensor=2,expert_tensor,recompute=3"},
                                      {.words = "expert=2,tensor=2,context=2,expert_tensor"},
                                      {.words = "fsdp=2,tensor=2,zero=3"},
                                      {.words = "expert=2,tensor=2,seq,expert_tensor"}};
    int wrong = 0;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        sm_model model = train_model_with((train_kind)kind, 2, members[kind]);
        sm_train_setup s = train_setup_of(&model);
        train_curve one, c;
        train_curve_on_threads(&s, TRAIN_STEPS, &one);
        assert_int_equal(one.status, SM_OK);
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            s = train_setup_of(&model);
            train_words_read(some[i].words, &s);
            if (kind == TRAIN_DENSE && s.degree[SM_AXIS_EXPERT] > 1) continue;
            train_curve_on_threads(&s, TRAIN_STEPS, &c);
            wrong += train_curve_compare(&some[i], &one, &c);
        }
    }
    assert_int_equal(wrong, 0);
}

/* What is kept is what would be gathered again: the same numbers for fewer bytes. */
static void keeping_changes_no_bit(void **state) {
    (void)state;
    static const train_plan some[] = {
        {.words = "fsdp=2,zero=3,micro=1"},
        {.words = "tensor=2,seq,recompute=1"},
        {.words = "context=2,heads"},
        {.words = "expert=2,tensor=2,fsdp=2,zero=3,seq,expert_tensor"}};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        train_curve c[2];
        double bytes[2] = {0};
        sm_model model = train_model(i == 3 ? TRAIN_EXPERTS : TRAIN_DENSE, 2);
        sm_train_setup s = train_setup_of(&model);
        train_words_read(some[i].words, &s);
        for (int k = 0; k < 2; k++) {
            s.regather = k ? SM_REGATHER_NONE : SM_REGATHER_ALL;
            train_curve_on_threads(&s, TRAIN_STEPS, &c[k]);
            assert_int_equal(c[k].status, SM_OK);
            assert_true(c[k].difference == 0);
            for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) bytes[k] += c[k].counted[op];
        }
        assert_memory_equal(c[0].loss, c[1].loss, sizeof c[0].loss);
        assert_memory_equal(c[0].norm, c[1].norm, sizeof c[0].norm);
        assert_true(bytes[1] < bytes[0]);
        print_message("%s: %.0f of %.0f bytes\n", some[i].words, bytes[1], bytes[0]);
    }
}

/* Tensor chips that the heads do not divide over: each does the work of heads whole. */
static void copied_heads_are_equal(void **state) {
    (void)state;
    static const train_plan some[] = {{.words = "tensor_w=2"},
                                      {.words = "tensor_w=2,seq"},
                                      {.words = "tensor=2,tensor_w=2,seq,recompute=3"},
                                      {.words = "tensor_q=2,tensor_w=2,seq,context=2"},
                                      {.words = "tensor=2,tensor_w=2,fsdp=2,zero=3"},
                                      {.words = "tensor_w=2,expert=2,expert_tensor"},
                                      {.words = "tensor_w=2,expert=2,seq"}};
    int wrong = 0;
    for (int kind = 0; kind < TRAIN_KINDS; kind++) {
        train_curve one, c;
        curve_of_one((train_kind)kind, 2, &one);
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            sm_model model = train_model((train_kind)kind, 2);
            sm_train_setup s = train_setup_of(&model);
            train_words_read(some[i].words, &s);
            if (kind == TRAIN_DENSE && s.degree[SM_AXIS_EXPERT] > 1) continue;
            train_curve_on_threads(&s, TRAIN_STEPS, &c);
            wrong += train_curve_compare(&some[i], &one, &c);
        }
    }
    assert_int_equal(wrong, 0);
}

/* An embedding that is the unembedding too. */
static void tied_plans_are_equal(void **state) {
    (void)state;
    static const train_plan some[] = {{.words = "data=2,zero=1"},
                                      {.words = "data=2,zero=2,micro=1"},
                                      {.words = "fsdp=2,zero=3"},
                                      {.words = "tensor=2,seq"},
                                      {.words = "tensor_q=2"},
                                      {.words = "fsdp=2,context=2,zero=3,spread"},
                                      {.words = "fsdp=2,tensor=2,tensor_q=2,zero=3,seq"},
                                      {.words = "expert=2,data=2,zero=1,micro=1"}};
    static const train_plan piped = {"micro=1", SM_SCHEDULE_ZB_V, 2, 2};
    sm_model model = train_model(TRAIN_DENSE, 2);
    train_curve one, c, untied;
    int wrong = 0;
    sm_train_setup base = train_setup_of(&model);
    train_curve_on_threads(&base, TRAIN_STEPS, &untied);
    model = train_model_with(TRAIN_DENSE, 2, TRAIN_TIED);
    train_curve_on_threads(&base, TRAIN_STEPS, &one);
    assert_true(one.loss[TRAIN_STEPS - 1] < one.loss[0] &&
                fabs(one.loss[0] - untied.loss[0]) > 1e-3);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        sm_train_setup s = train_setup_of(&model);
        train_words_read(some[i].words, &s);
        train_curve_on_threads(&s, TRAIN_STEPS, &c);
        wrong += train_curve_compare(&some[i], &one, &c);
    }
    static train_line l;
    sm_train_setup s = train_setup_of(&model);
    model = train_model_with(TRAIN_DENSE, 4, TRAIN_TIED);
    train_curve_on_threads(&base, TRAIN_STEPS, &one);
    train_words_read(piped.words, &s);
    assert_true(train_line_lay(piped.schedule, piped.stages, piped.chunks_per_stage, &s, &l));
    train_curve_on_threads(&s, TRAIN_STEPS, &c);
    assert_int_equal(wrong + train_curve_compare(&piped, &one, &c), 0);
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
    double loss[TRAIN_STEPS];
} half;

static sm_status run_half(sm_communicator *world, void *context, sm_error *err) {
    half *h = context;
    sm_trainer *t = NULL;
    sm_status status = sm_trainer_new(world, h->setup, &t, err);
    if (!status && h->second) status = sm_trainer_load(t, true, find_array, h->kept, err);
    if (!status && h->second) sm_trainer_set_updates(t, h->kept->updates);
    for (int i = 0; !status && i < TRAIN_STEPS / 2; i++) {
        sm_train_result r;
        int step = i + (h->second ? TRAIN_STEPS / 2 : 0);
        status = sm_trainer_step(t, step, &r, err);
        if (world->rank == 0) h->loss[step] = r.loss;
    }
    if (!status && !h->second) status = sm_trainer_save(t, keep_array, h->kept, err);
    if (!status && !h->second && world->rank == 0) h->kept->updates = sm_trainer_updates(t);
    sm_trainer_free(t);
    return status;
}

static void run_both_halves(const sm_train_setup *first, const sm_train_setup *second,
                            const train_curve *one) {
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
    for (int i = 0; i < TRAIN_STEPS; i++)
        assert_true(train_about_equal(h.loss[i], one->loss[i], train_tolerance));
    for (int i = 0; i < k.n; i++) sm_free(k.array[i].data);
}

static void resumes_on_another_mesh(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", "data=2,zero=1"},
        {"data=4,zero=1", "fsdp=2,tensor=2,zero=3,seq"},
        {"fsdp=4,zero=3", "tensor=2,tensor_q=2,seq"},
        {"expert=2,tensor=2,expert_tensor", "data=2,context=2,zero=2,micro=2"},
        {"context=2,fsdp=2,zero=3,spread", "expert=4"},
        {"data=2,tensor=2,seq,zero=1", "micro=1"}};
    sm_model models[] = {train_model(TRAIN_DENSE, 2), train_model(TRAIN_EXPERTS, 2)};
    for (size_t m = 0; m < 2; m++) {
        train_curve one;
        models[m].L = 4;
        sm_train_setup base = train_setup_of(&models[m]);
        train_curve_on_threads(&base, TRAIN_STEPS, &one);
        for (size_t i = SANITIZED ? m : 0; i < sizeof pairs / sizeof *pairs;
             i += SANITIZED ? 2 : 1) {
            static train_line l;
            sm_train_setup first = train_setup_of(&models[m]), second = first, staged = first;
            train_words_read(pairs[i][0], &first);
            train_words_read(pairs[i][1], &second);
            run_both_halves(&first, &second, &one);
            if (i > 1) continue;
            train_words_read("micro=1,data=2,zero=1", &staged);
            assert_true(train_line_lay(SM_SCHEDULE_ZB_V, 2, 2, &staged, &l));
            run_both_halves(i ? &staged : &second, i ? &second : &staged, &one);
        }
    }
}

/* Weights that two stages hold: from one rank there and back. */
static void resumes_where_weights_are_twice(void **state) {
    (void)state;
    static const train_plan plans[] = {{"micro=1,data=2,zero=1", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"micro=1,tensor=2,seq", SM_SCHEDULE_DUALPIPE, 2, 2},
                                       {"micro=1,tensor=2,data=2,zero=1", SM_SCHEDULE_1F1B, 2, 1}};
    for (int tied = 0; tied < 2; tied++)
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
            if (SANITIZED && i % 2 != (size_t)tied) continue; /* each model and schedule once */
            static train_job job;
            train_curve one;
            assert_true(train_job_of(&plans[i], tied ? TRAIN_DENSE : TRAIN_EXPERTS, &job));
            if (tied)
                job.model = train_model_with(TRAIN_DENSE, train_plan_layers(&plans[i]), TRAIN_TIED);
            sm_train_setup base = train_setup_of(&job.model);
            train_curve_on_threads(&base, TRAIN_STEPS, &one);
            run_both_halves(&base, &job.setup, &one);
            run_both_halves(&job.setup, &base, &one);
        }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_falls),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(families_have_their_slopes),
        cmocka_unit_test(chunks_change_nothing),
        cmocka_unit_test(families_are_equal_under_plans),
        cmocka_unit_test(tied_gradients_are_sums),
        cmocka_unit_test(dense_plans_are_equal),
        cmocka_unit_test(expert_plans_are_equal),
        cmocka_unit_test(sums_are_equal),
        cmocka_unit_test(keeping_changes_no_bit),
        cmocka_unit_test(copied_heads_are_equal),
        cmocka_unit_test(tied_plans_are_equal),
        cmocka_unit_test(resumes_on_another_mesh),
        cmocka_unit_test(resumes_where_weights_are_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
