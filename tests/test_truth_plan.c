/* What a training row says of its run, read into a plan, and the software it is priced with. */
#include "unit.h"
#include "model_of.h"
#include "scalemodel/truth.h"
#include <math.h>
#include <string.h>

/* Llama-3-8B on eight H100 by FSDP: a row with every text a reader gives. */
static sm_truth_row a_row(const char *source) {
    sm_truth_row row = {.kind = SM_TRUTH_TRAINING,
                        .id = "row",
                        .line = 1,
                        .chip = "h100-sxm",
                        .source = source,
                        .measured_s = 1};
    sm_training_row *r = &row.of.training;
    r->title = source;
    r->task = "pretrain", r->quality = "A", r->duplicate_of = r->flags = "";
    r->model.name = "Llama-3-8B", r->model.notes = "";
    r->model.layers = 32, r->model.d_model = 4096, r->model.d_ff = 14336;
    r->model.heads = 32, r->model.kv_heads = 8, r->model.d_head = 128, r->model.vocab = 128256;
    r->model.gated_mlp = SM_YES, r->model.tied = SM_NO, r->model.params_b = NAN;
    r->year = 2024;
    r->inter_node_network = r->intra_node_link = r->hardware_notes = "";
    r->chips = r->devices = r->chips_per_node = 8;
    r->precision = r->precision_class = "bf16";
    r->seq_len = 8192, r->global_batch_sequences = 16, r->microbatch = 2;
    r->per_device_batch_size = NAN;
    r->tp = r->cp = r->pp = 1;
    r->sp = SM_UNSTATED, r->fsdp = SM_YES, r->zero_stage = 3;
    r->recompute = "none", r->recompute_detail = r->attention_kernel = r->optimizer = "";
    r->schedule = r->schedule_detail = r->notes = "";
    r->flash_attention = SM_YES;
    r->peak_memory_bytes = NAN;
    return row;
}

static sm_prediction predicted(const sm_truth_row *row) {
    sm_error err = {0};
    sm_truth_case *c;
    static char why[200];
    sm_prediction p;
    assert_int_equal(sm_truth_case_new(row, &c, &err), SM_OK);
    sm_truth_predict(c, NULL, &p);
    if (p.unknown) {
        snprintf(why, sizeof why, "%s", p.unknown);
        p.unknown = why;
    }
    sm_truth_case_free(c);
    return p;
}

/* A compiled loss holds fewer bytes of each logit, and the embedding is a group of its own. */
static void torchtitan_compiles_its_loss_since_2025(void **state) {
    sm_truth_row row = a_row("torchtitan Llama 3.1 benchmarks");
    row.software = "torchtitan";
    double before = predicted(&row).memory.total;
    row.of.training.year = 2025;
    double less = (14.0 - 6.0) * 2 * 8192 * 128256, group = 2.0 * 4096 * 128256;
    assert_true(fabs((before - predicted(&row).memory.total) / (less + group) - 1) < 1e-9);
    row.of.training.month = 7; /* the group came in August */
    assert_true(fabs((before - predicted(&row).memory.total) / less - 1) < 1e-9);
    row.software = "torchtitan-eager";
    assert_true(predicted(&row).memory.total > before); /* act(gate) is kept too */
}

static void a_plan_as_stated_is_priced(void **state) {
    sm_truth_row row = a_row("ml-engineering: when to upgrade GPUs");
    assert_int_equal(predicted(&row).plan.offload, SM_OFFLOAD_NONE);
    row.of.training.plan = "fsdp=8,microbatch=2,zero=3,offload=optimizer";
    sm_prediction p = predicted(&row);
    assert_int_equal(p.plan.offload, SM_OFFLOAD_OPTIMIZER);
    assert_true(p.memory.optimizer == 0);
    row.of.training.plan = "fsdp=8,microbatches=2";
    assert_string_equal(predicted(&row).unknown, "the plan as stated cannot be read");
}

static void fine_tuning_of_all_weights_is_predicted(void **state) {
    sm_truth_row row = a_row("NeMo 24.07");
    double pretrain = predicted(&row).expected_s;
    row.of.training.task = "sft";
    assert_true(predicted(&row).expected_s == pretrain);
}

/* 30 layers and two more for embedding and head on 4 x 8 chunks. */
static void chunks_of_embedding_and_head_hold_no_layer(void **state) {
    sm_truth_row row = a_row("NVIDIA DGX Cloud Benchmarking recipes");
    sm_training_row *r = &row.of.training;
    r->model.layers = 30;
    r->fsdp = SM_NO, r->zero_stage = 1, r->pp = 4, r->vp = 8, r->global_batch_sequences = 64;
    r->microbatch = 1;
    sm_prediction p = predicted(&row);
    assert_null(p.unknown);
    assert_int_equal(p.plan.virtual_stages, 7);
    r->model.layers = 29;
    assert_non_null(strstr(predicted(&row).unknown, "more chunks than the 29 layers"));
}

static void a_sequence_not_stated_is_what_is_missing(void **state) {
    sm_truth_row row = a_row("AMD Primus tech blogs");
    row.of.training.seq_len = NAN;
    assert_string_equal(predicted(&row).unknown, "seq_len not stated");
}

/* Whose name is of the catalogue has the sizes that the catalogue says: its interval is as wide. */
static void a_name_of_the_catalogue_is_as_near_as_stated_sizes(void **state) {
    sm_truth_row stated = a_row("torchtitan Llama 3.1 benchmarks"), named = stated;
    sm_training_row *r = &named.of.training;
    r->plan = stated.of.training.plan = "fsdp=8,microbatch=2,zero=3";
    memset(&r->model, 0, sizeof r->model);
    r->model.name = "llama-3.1-8b", r->model.notes = "", r->model.params_b = NAN;
    sm_prediction of_stated = predicted(&stated), of_named = predicted(&named);
    assert_true(fabs(of_named.expected_s / of_stated.expected_s - 1) < 1e-3);
    assert_true(fabs(of_named.low_s / of_named.expected_s -
                     of_stated.low_s / of_stated.expected_s) < 1e-12);
    assert_true(fabs(of_named.high_s / of_named.expected_s -
                     of_stated.high_s / of_stated.expected_s) < 1e-12);
}

static void degrees_beyond_the_devices_are_refused(void **state) {
    sm_truth_row row = a_row("AMD Primus tech blogs");
    row.of.training.tp = row.of.training.cp = row.of.training.pp = row.of.training.vp = 2000000000;
    assert_string_equal(predicted(&row).unknown, "the degrees do not divide the devices");
    row = a_row("AMD Primus tech blogs");
    row.of.training.vp = 2000000000, row.of.training.pp = 8;
    assert_non_null(predicted(&row).unknown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torchtitan_compiles_its_loss_since_2025),
        cmocka_unit_test(a_plan_as_stated_is_priced),
        cmocka_unit_test(fine_tuning_of_all_weights_is_predicted),
        cmocka_unit_test(chunks_of_embedding_and_head_hold_no_layer),
        cmocka_unit_test(degrees_beyond_the_devices_are_refused),
        cmocka_unit_test(a_name_of_the_catalogue_is_as_near_as_stated_sizes),
        cmocka_unit_test(a_sequence_not_stated_is_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
