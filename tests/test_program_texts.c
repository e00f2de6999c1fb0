/* Programs of texts whose mixers are no attention: scans as one op with a state, and indexers, each
 * against closed forms counted here by hand. */
#include "unit.h"
#include "partition.h"
#include "scalemodel/cost.h"
#include "scalemodel/load.h"
#include "scalemodel/program.h"
#include <string.h>

static sm_arena *arena;
static sm_model model; /* of its lines alone */
static sm_partition part;

static void read(const char *config) {
    sm_error err = {0};
    const sm_source source = sm_source_of("config.json", config);
    sm_arena_free(arena);
    arena = sm_arena_new();
    memset(&model, 0, sizeof model);
    model.kinds = 1;
    if (sm_architecture_new(sm_library_shipped(), &source, NULL, arena, &model.architecture, &err))
        fail_msg("%s", err.sentence);
}

/* The layer of this number. */
static void partition(int layer, bool serving, sm_rules rules) {
    static sm_program program;
    sm_error err = {0};
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(model.architecture, &piece);
    for (int i = 0; i < n; i++)
        if (piece[i].layer == layer) model.lines_of[0] = piece[i].kind;
    sm_status status =
        serving ? sm_program_build_serving(&model, SM_PIECE_LAYER, 0, &rules, &program, &err)
                : sm_program_build(&model, SM_PIECE_LAYER, 0, 4096, &rules, &program, &err);
    if (!status)
        status = serving ? sm_program_partition_forward(&program, NULL, &part, &err)
                         : sm_program_partition(&program, NULL, &part, &err);
    if (status) fail_msg("%s", err.sentence);
}

static const sm_work *kernel_of(sm_phase phase) {
    for (int i = 0; i < part.works; i++)
        if (part.work[i].kind == SM_OP_KERNEL && part.work[i].phase == phase) return &part.work[i];
    fail_msg("there is no kernel");
    return NULL;
}

static double weights(void) {
    double n = 0;
    for (int i = 0; i < part.classes; i++) n += part.weight[i].elements;
    return n;
}

static double of_role(const sm_work *w, sm_role role) {
    double bytes = 0;
    for (int i = 0; i < w->terms; i++)
        if (w->role[i] == role) bytes += w->bytes[i].base;
    return bytes;
}

/* Mamba-2 of 128 heads of 64 in 8 groups, a state of 64 x 128 numbers in fp32 for each head. */
static const char mamba[] =
    "{\"model_type\": \"mamba2\", \"hidden_size\": 4096, \"num_hidden_layers\": 2, "
    "\"vocab_size\": 32000, \"num_heads\": 128, \"head_dim\": 64, \"state_size\": 128, "
    "\"n_groups\": 8, \"conv_kernel\": 4, \"expand\": 2, \"chunk_size\": 256}";

static void a_scan_keeps_a_state(void **state) {
    read(mamba);
    partition(0, true, (sm_rules){.decode = true});
    const double kept = 128.0 * 64 * 128 * 4;
    assert_true(part.state.base == kept && part.state.per_sequence);
    assert_false(part.state.per_key || part.cache.base > 0);
    /* B times the state's column and C times the state: two products of its size, in and out */
    const sm_work *w = kernel_of(SM_PHASE_FORWARD);
    assert_true(w->flops.base == 2 * 2 * kept / 4);
    assert_true(of_role(w, SM_ROLE_STATE) == 2 * kept);
    assert_true(weights() ==
                sm_architecture_kind_params(model.architecture, model.lines_of[0], false));
}

/* In chunks it is several kernels: the state before each of 16 chunks is written and read, and the
 * inputs x, B, C and the decays are read twice. */
static void a_scan_in_chunks_passes_states_through_memory(void **state) {
    read(mamba);
    partition(0, false, (sm_rules){.seq = true});
    const sm_work *w = kernel_of(SM_PHASE_FORWARD);
    const double tokens = 4096, x = 128 * 64 * 2, bc = 2 * 8 * 128 * 2, decays = 128 * 2;
    const double states = tokens / 256 * 128 * 64 * 128 * 4;
    assert_true(w->passes);
    assert_true(of_role(w, SM_ROLE_ACTIVATION) ==
                2 * states + tokens * (2 * (x + bc + decays) + x));
    partition(0, true, (sm_rules){.decode = true});
    assert_false(kernel_of(SM_PHASE_FORWARD)->passes);
}

/* Measured with one group on an H100 (vllm-project/vllm#27299), in Triton: 12.6 million tokens a
 * second of 8,192, 12.9 of 16,384, 10.7 of 131,072. */
static void scans_take_what_was_measured(void **state) {
    read(mamba);
    partition(0, false, (sm_rules){.seq = true});
    const sm_work *w = kernel_of(SM_PHASE_FORWARD);
    const sm_chip *chip = sm_chip_find("h100-sxm", 8);
    double bytes = of_role(w, SM_ROLE_ACTIVATION) + of_role(w, SM_ROLE_STATE);
    sm_op_cost c = sm_kernel_cost(chip, sm_calibration_for(chip, "serving"), w->flops.base,
                                  w->vector_flops.base, bytes);
    double rate = 4096 / c.expected_s * sm_software_of("vllm-2026")->scan_rate;
    assert_true(rate > 0.8 * 10.7e6 && rate < 1.2 * 12.9e6);
}

static void a_scan_is_run_again_backward(void **state) {
    read(mamba);
    partition(0, false, (sm_rules){.seq = true});
    const sm_work *forward = kernel_of(SM_PHASE_FORWARD);
    const sm_work *backward = kernel_of(SM_PHASE_BACKWARD_INPUT);
    assert_true(backward->flops.base == 3 * forward->flops.base);
    /* groups of heads fall on tensor, heads within them on what is left */
    int batch = SM_BIT(SM_AXIS_DATA) | SM_BIT(SM_AXIS_FSDP) | SM_BIT(SM_AXIS_EXPERT);
    assert_int_equal(forward->flops.mask, batch | SM_BIT(SM_AXIS_CONTEXT) | SM_BIT(SM_AXIS_TENSOR) |
                                              SM_BIT(SM_AXIS_TENSOR_Q));
    int scatters = 0;
    for (int i = 0; i < part.comms; i++)
        scatters += part.comm[i].op == SM_REDUCE_SCATTER && part.comm[i].bytes.per_sequence &&
                    part.comm[i].phase == SM_PHASE_FORWARD;
    assert_int_equal(scatters, 1); /* of what the mixer gives the residual stream */
}

/* Partial sums that a sigmoid of the token gates stay partial sums: served, they are added to what
 * the experts made, and all are reduced at once. */
static void a_gated_expert_is_reduced_with_the_others(void **state) {
    (void)state;
    read("{\"model_type\": \"qwen2_moe\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
         "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"num_experts\": 4, "
         "\"moe_intermediate_size\": 16, \"shared_expert_intermediate_size\": 32, "
         "\"intermediate_size\": 64, \"vocab_size\": 256}");
    for (int way = 0; way < 4; way++) {
        int reduced = 0;
        partition(1, true, (sm_rules){.expert_tensor = way & 1, .decode = way & 2});
        for (int i = 0; i < part.comms; i++)
            reduced += part.comm[i].axes & SM_AXES_TENSOR && part.comm[i].op == SM_ALL_REDUCE;
        assert_int_equal(reduced, 2); /* of attention, of experts */
        for (int i = 0; i < part.comms; i++)
            if (part.comm[i].axes & SM_AXES_TENSOR && part.comm[i].op == SM_ALL_REDUCE)
                assert_true(part.comm[i].bytes.base == 64 * 2);
    }
}

/* Every shipped mixer in training, prefill and decode, under rules that shard it otherwise. */
static void every_phase_is_partitioned(void **state) {
    static const char *const configs[] = {
        mamba,
        "{\"model_type\": \"qwen3_next\", \"hidden_size\": 2048, \"num_hidden_layers\": 8, "
        "\"num_attention_heads\": 16, \"num_key_value_heads\": 2, \"intermediate_size\": 5120, "
        "\"vocab_size\": 32000}",
        "{\"model_type\": \"deepseek_v32\", \"hidden_size\": 7168, \"num_hidden_layers\": 5, "
        "\"intermediate_size\": 18432, \"vocab_size\": 32000}",
        "{\"model_type\": \"falcon_h1\", \"hidden_size\": 1024, \"num_hidden_layers\": 2, "
        "\"intermediate_size\": 2048, \"num_attention_heads\": 8, \"vocab_size\": 32000}",
        "{\"model_type\": \"minimax\", \"hidden_size\": 6144, \"num_hidden_layers\": 8, "
        "\"intermediate_size\": 9216, \"num_attention_heads\": 64, \"head_dim\": 128, "
        "\"num_key_value_heads\": 8, \"vocab_size\": 32000}",
    };
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        read(configs[c]);
        for (int layer = 0; layer < 5; layer++)
            for (int way = 0; way < 12; way++) {
                sm_rules rules = {.seq = way & 1,
                                  .expert_tensor = way & 2,
                                  .decode = way >= 8,
                                  .absorbed = way >= 8};
                partition(layer, way >= 4, rules);
                assert_true(part.works > 0);
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_keeps_a_state),
        cmocka_unit_test(a_scan_in_chunks_passes_states_through_memory),
        cmocka_unit_test(scans_take_what_was_measured),
        cmocka_unit_test(a_scan_is_run_again_backward),
        cmocka_unit_test(a_gated_expert_is_reduced_with_the_others),
        cmocka_unit_test(every_phase_is_partitioned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
