/* What a measured row says, in the product's words: the plan it ran and the software it ran under.
 */
#include "unit.h"
#include "scalemodel/truth.h"
#include "../src/truth/inference_parts.h"
#include "model_of.h"
#include <math.h>
#include <string.h>

/* A mixture of experts of 8 on 512 H100, tensor 4, context 2, pipeline 8, expert 8. */
static sm_truth_row experts_row(const char *title, const char *notes) {
    sm_truth_row row = {.kind = SM_TRUTH_TRAINING, .id = "row", .chip = "H100-SXM-80GB"};
    sm_training_row *t = &row.of.training;
    memset(t, 0, sizeof *t);
    row.source = t->title = title;
    row.measured_s = 20.0;
    t->task = "pretrain";
    t->quality = "A";
    t->duplicate_of = t->flags = t->model.notes = t->schedule = t->schedule_detail = "";
    t->inter_node_network = t->intra_node_link = t->hardware_notes = "";
    t->recompute_detail = t->attention_kernel = t->optimizer = "";
    t->notes = notes;
    t->recompute = "none";
    t->precision = t->precision_class = "bf16";
    t->model.name = "sparse";
    t->model.layers = 64;
    t->model.d_model = 6144;
    t->model.heads = 48;
    t->model.kv_heads = 8;
    t->model.d_head = 128;
    t->model.vocab = 131072;
    t->model.experts = 8;
    t->model.top_k = 2;
    t->model.d_ff_expert = 32768;
    t->model.gated_mlp = SM_YES;
    t->model.tied = SM_NO;
    t->year = 2025;
    t->chips = t->devices = 512;
    t->chips_per_node = 8;
    t->seq_len = 8192;
    t->global_batch_sequences = 1024;
    t->microbatch = 1;
    t->tp = 4;
    t->cp = 2;
    t->pp = t->vp = t->ep = t->dp = 8;
    t->sp = SM_YES;
    t->fsdp = SM_NO;
    t->zero_stage = 1;
    t->flash_attention = SM_YES;
    t->tokens_per_s_per_chip = t->model_tflops_per_chip = t->hw_tflops_per_chip = NAN;
    t->mfu = t->hfu = t->step_time_s = t->peak_memory_bytes = t->derived_step_time_s = NAN;
    t->per_device_batch_size = NAN;
    return row;
}

static sm_plan plan_of(const sm_truth_row *row) {
    sm_truth_case *ready = NULL;
    sm_error err;
    sm_prediction p;
    assert_int_equal(sm_truth_case_new(row, &ready, &err), SM_OK);
    sm_truth_predict(ready, NULL, &p);
    if (p.unknown) fail_msg("%s", p.unknown);
    sm_plan plan = p.plan;
    sm_truth_case_free(ready);
    return plan;
}

/* The expert axis is 8 of the replicas where every expert is split over the tensor axis, and 2
 * beside the 4 of the tensor axis where none is. What the row states outweighs its degrees. */
static void test_experts_are_split_where_they_are_few(void **state) {
    sm_truth_row row = experts_row("NVIDIA Megatron-Bridge performance summary", "line 45");
    sm_plan plan = plan_of(&row);
    assert_true(!plan.expert_tensor && plan.expert == 2);
    row.of.training.ep = 2;
    plan = plan_of(&row);
    assert_true(plan.expert_tensor && plan.expert == 2);
    row.of.training.plan = "expert=8,tensor=4,context=2,pipeline=8,microbatch=1,expert_tensor=on";
    plan = plan_of(&row);
    assert_true(plan.expert_tensor && plan.expert == 8 && plan.virtual_stages == 1);
}

static void test_local_layers_and_experts_as_stated(void **state) {
    sm_truth_row row = experts_row("a", "");
    sm_training_row *t = &row.of.training;
    row_models *models = row_models_new();
    const sm_model *m;
    const char *why;
    t->model.sliding_window = 1024;
    t->model.global_every = 6;
    t->model.d_ff = 4096;
    t->model.moe_layer_step = 2;
    assert_true(truth_model(t, models, &m, &why));
    for (int l = 0; l < m->L; l++) {
        const sm_layer_kind *k = &m->kind[m->layer[l]];
        assert_int_equal(k->window, l % 6 == 5 ? 0 : 1024);
        assert_int_equal(k->E, l % 2 == 1 ? 8 : 0);
    }
    t->model.not_modelled = "a hybrid with Mamba layers";
    assert_false(truth_model(t, models, &m, &why));
    assert_string_equal(why, "a hybrid with Mamba layers");
    row_models_free(models);
}

/* Rows of training and of serving state an architecture alike, and alike say what it lacks. */
static void test_both_kinds_state_one_architecture(void **state) {
    sm_truth_row row = experts_row("a", "");
    sm_row_model *m = &row.of.training.model;
    row_models *models = row_models_new();
    const sm_model *trained, *served;
    const char *why, *served_why;
    m->moe_layer_step = 2;
    m->d_ff = 4096;
    m->first_dense_layers = 32; /* as many are dense, and they are not the first */
    sm_inference_row r = {.model = *m};
    assert_true(truth_model(&row.of.training, models, &trained, &why));
    assert_true(inference_model(&r, NULL, models, &served, &why));
    for (int l = 0; l < trained->L; l++) {
        assert_int_equal(trained->kind[trained->layer[l]].E, l % 2 ? 8 : 0);
        assert_int_equal(served->kind[served->layer[l]].E, l % 2 ? 8 : 0);
    }
    assert_true(sm_model_params(trained).total == sm_model_params(served).total);
    m->top_k = r.model.top_k = 0;
    assert_false(truth_model(&row.of.training, models, &trained, &why));
    assert_false(inference_model(&r, NULL, models, &served, &served_why));
    assert_string_equal(why, "experts per token not stated");
    assert_string_equal(served_why, why);
    row_models_free(models);
}

static void test_networks_as_stated(void **state) {
    sm_truth_row row = experts_row("a", "");
    sm_system usual, stated;
    const char *why;
    const sm_chip *chip = sm_truth_row_chip(&row);
    row.of.training.node_bits_per_s = NAN;
    assert_true(truth_system(&row, chip, &usual, &why));
    row.of.training.node_bits_per_s = 800e9;
    assert_true(truth_system(&row, chip, &stated, &why));
    assert_true(stated.level[1].bytes_per_s_oneway == 100e9);
    assert_true(usual.level[1].bytes_per_s_oneway > 100e9);
    row = experts_row("a", "");
    row.chip = "TPU v5p";
    row.of.training.pods = 4;
    assert_true(truth_system(&row, sm_truth_row_chip(&row), &stated, &why));
    assert_int_equal(stated.chips, 512);
}

/* Two cores of a chip: neighbours of the tensor axis, which is the innermost, else replicas. */
static void test_ranks_of_one_chip_fold(void **state) {
    sm_truth_row row = experts_row("AWS Neuron trn1 training performance table", "");
    sm_training_row *t = &row.of.training;
    row.chip = "AWS Trainium1 (trn1.32xlarge)";
    t->model.experts = 0;
    t->model.d_ff = 16384;
    t->chips_per_node = 16;
    t->devices = 1024;
    t->tp = 32;
    t->cp = t->vp = t->ep = 1;
    t->pp = 4;
    t->dp = 8;
    sm_plan plan = plan_of(&row);
    assert_int_equal(plan.tensor, 16);
    assert_int_equal(plan.microbatch, 1);
    t->tp = 1;
    t->dp = 256;
    plan = plan_of(&row);
    assert_int_equal(plan.tensor, 1);
    assert_int_equal(plan.microbatch, 2);
}

static void test_software_as_stated(void **state) {
    sm_truth_row row = experts_row("vTrain validation ground truth (MICRO 2024)", "");
    assert_string_equal(sm_truth_software(&row), "default");
    row.software = "vtrain-megatron";
    assert_string_equal(sm_truth_software(&row), "vtrain-megatron");
    row.kind = SM_TRUTH_GEMM;
    assert_string_equal(sm_truth_software(&row), "kernels");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts_are_split_where_they_are_few),
                                       cmocka_unit_test(test_local_layers_and_experts_as_stated),
                                       cmocka_unit_test(test_both_kinds_state_one_architecture),
                                       cmocka_unit_test(test_networks_as_stated),
                                       cmocka_unit_test(test_ranks_of_one_chip_fold),
                                       cmocka_unit_test(test_software_as_stated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
