/* What a measured row says, in the product's words: the plan it ran and the software it ran under.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scalemodel/truth.h"
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
    t->model.n_heads = 48;
    t->model.n_kv_heads = 8;
    t->model.d_head = 128;
    t->model.vocab = 131072;
    t->model.n_experts = 8;
    t->model.experts_per_token = 2;
    t->model.d_ff_expert = 32768;
    t->model.gated = SM_YES;
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
 * beside the 4 of the tensor axis where none is. */
static void test_experts_split_as_the_row_says(void **state) {
    (void)state;
    static const struct {
        const char *title, *notes;
        bool split;
        int expert;
    } rows[] = {{"NVIDIA DGX Cloud Benchmarking recipes", "config table line 25; ETP=1", false, 2},
                {"NVIDIA DGX Cloud Benchmarking recipes", "config table line 25; ETP=4", true, 8},
                {"NVIDIA DGX Cloud Benchmarking recipes", "config table line 17", true, 8},
                {"NVIDIA Megatron-Bridge performance summary", "line 45", false, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_truth_row row = experts_row(rows[i].title, rows[i].notes);
        sm_plan plan = plan_of(&row);
        assert_int_equal(plan.expert_tensor, rows[i].split);
        assert_int_equal(plan.expert, rows[i].expert);
    }
}

static void test_chunks_that_are_printed_elsewhere(void **state) {
    (void)state;
    sm_truth_row row = experts_row("NVIDIA DGX Cloud Benchmarking recipes", "config table line 23");
    row.of.training.vp = 0;
    assert_int_equal(plan_of(&row).schedule, SM_SCHEDULE_1F1B);
    row.of.training.notes = "VP printed NA (NeMo csv and 25.01.1 README say 4)";
    assert_int_equal(plan_of(&row).schedule, SM_SCHEDULE_INTERLEAVED);
    assert_int_equal(plan_of(&row).virtual_stages, 4);
    row.of.training.vp = 2;
    assert_int_equal(plan_of(&row).virtual_stages, 2);
}

/* Two cores of a chip: neighbours of the tensor axis, which is the innermost, else replicas. */
static void test_ranks_of_one_chip_fold(void **state) {
    (void)state;
    sm_truth_row row = experts_row("AWS Neuron trn1 training performance table", "");
    sm_training_row *t = &row.of.training;
    row.chip = "AWS Trainium1 (trn1.32xlarge)";
    t->model.n_experts = 0;
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

static void test_software_by_what_a_source_is_called(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        /* title, attention kernel, notes, software */
        {"vTrain validation ground truth (MICRO 2024)", "", "", "vtrain-megatron"},
        {"Efficient Parallelization Layouts (Hagemann et al. 2023), result sheets",
         "flash_attention2", "", "aleph-alpha"},
        {"Efficient Parallelization Layouts (Hagemann et al. 2023), result sheets",
         "flash_attentionv1.0.8", "", "aleph-alpha-flash1"},
        {"Efficient Parallelization Layouts (Hagemann et al. 2023), result sheets",
         "flash_attention2 + RMS kernel", "", "aleph-alpha-rms"},
        {"NVIDIA Megatron-Bridge performance summary", "", "line 3; release 25.11",
         "megatron-bridge-25"},
        {"NVIDIA Megatron-Bridge performance summary", "", "line 3; release 26.08",
         "megatron-bridge-26.06"},
        {"NVIDIA DGX Cloud Benchmarking recipes", "", "maxtext", "dgx-cloud-xla"},
        {"Google tpu-recipes (MaxText)", "", "", "maxtext-2025"},
        {"MaxText README performance tables", "", "", "maxtext-2023"},
        {"OPT-175B", "", "", "default"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sm_truth_row row = experts_row(rows[i][0], rows[i][2]);
        row.of.training.attention_kernel = rows[i][1];
        assert_string_equal(sm_truth_software(&row), rows[i][3]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts_split_as_the_row_says),
                                       cmocka_unit_test(test_chunks_that_are_printed_elsewhere),
                                       cmocka_unit_test(test_ranks_of_one_chip_fold),
                                       cmocka_unit_test(test_software_by_what_a_source_is_called)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
