/* The chips that measured rows name. */
#include "unit.h"
#include "scalemodel/truth.h"

#include <string.h>

static void names_as_sources_print_them(void **state) {
    static const char *const names[][2] = {
        {"a100", "a100-80"},
        {"a100_sxm_80gb", "a100-80"},
        {"A100-SXM-80GB", "a100-80"},
        {"A100-SXM-40GB", "a100-40"},
        {"NVIDIA A100-SXM4-40GB", "a100-40"},
        {"NVIDIA A100-SXM4-80GB", "a100-80"},
        {"A100 (printed \"Ampere\")", "a100-80"},
        {"a100_pcie", "a100-pcie"},
        {"a100_pairwise_nvlink", "a100-pcie"},
        {"a100_4gpu_node", "a100-80"},
        {"a100_sxm_80gb_node(dgx)_multi", "a100-80"},
        {"a40_pairwise_nvlink_multi", "a40"},
        {"a6000", "rtx-a6000"},
        {"rtx3090", "rtx-3090"},
        {"rtx_pro_6000_server_node", "rtx-pro-6000"},
        {"arc_pro_b60", "arc-pro-b60"},
        {"Tesla T4", "t4"},
        {"NVIDIA A10", "a10"},
        {"NVIDIA A10G", "a10g"},
        {"NVIDIA L40", "l40"},
        {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
        {"NVIDIA GeForce RTX 5090", "rtx-5090"},
        {"NVIDIA H100 NVL", "h100-nvl"},
        {"NVIDIA GB10", "gb10"},
        {"V100-SXM-32GB", "v100"},
        {"H100-SXM-80GB", "h100-sxm"},
        {"H100-SXM-96GB-HBM2e-500W", "h100-96"},
        {"h100|h800(SM90)", "h100-sxm"},
        {"h100_pairwise_nvlink", "h100-pcie"},
        {"h800_cluster(CX7 400G)", "h800"},
        {"h200_sxm_cluster", "h200"},
        {"gh200_144gb", "gh200-144"},
        {"gh200_480gb", "gh200"},
        {"b200_sxm_cluster(p6-b200 EFAv4)", "b200"},
        {"b200|gb200(SM100)", "b200"},
        {"GB200 NVL72", "gb200-nvl72"},
        {"gb300_node", "gb300-nvl72"},
        {"AMD Instinct MI300X", "mi300x"},
        {"mi300x|mi325x", "mi325x"},
        {"mi350x|mi355x", "mi355x"},
        {"mi308x", "mi308x"},
        {"MI250X GCD", "mi250x-gcd"},
        {"TPU v5p", "tpu-v5p"},
        {"TPU v6e (Trillium)", "tpu-v6e"},
        {"TPU7x (Ironwood)", "tpu-v7"},
        {"tpu7x_core", "tpu-v7-core"},
        {"tpu7x_2x2x1", "tpu-v7"},
        {"AWS Trainium1 (trn1.32xlarge)", "trn1"},
        {"gaudi3", "gaudi3"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const sm_chip *chip = sm_truth_chip(names[i][0]);
        if (!chip) fail_msg("%s is not known", names[i][0]);
        assert_string_equal(chip->name, names[i][1]);
    }
}

/* A word that may mean another chip is not guessed at. */
static void others_are_unknown(void **state) {
    static const char *const names[] = {
        "",
        " ",
        "-",
        "_",
        "(",
        ")",
        "(a100)",
        "sxm",
        "node",
        "8",
        "H100 CNX",
        "h100_max",
        "sn40l",
        "a100x",
        "a100 h100",
        "GTX 1080",
        "nvidia",
        "nvidia-nvidia-",
        "A100 PCIe 40GB",
    };
    assert_null(sm_truth_chip(NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (sm_truth_chip(names[i])) fail_msg("'%s' was taken for a chip", names[i]);
    char longest[4096];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(sm_truth_chip(longest));
}

static void every_chip_is_known_by_its_own_names(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        assert_ptr_equal(sm_truth_chip(chip->name), chip);
    }
}

static void random_bytes_never_crash(void **state) {
    static const char letters[] = "ab10x_- ()|sxmgpunode8\xff\t";
    sm_rng rng = {11};
    for (int i = 0; i < 50000; i++) {
        char text[80];
        size_t n = sm_rng_below(&rng, sizeof text - 1);
        for (size_t j = 0; j < n; j++) text[j] = letters[sm_rng_below(&rng, sizeof letters - 1)];
        text[n] = '\0';
        (void)sm_truth_chip(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_as_sources_print_them),
        cmocka_unit_test(others_are_unknown),
        cmocka_unit_test(every_chip_is_known_by_its_own_names),
        cmocka_unit_test(random_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
