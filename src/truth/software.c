/* Which software generation a row was measured with: constants are fitted per chip and generation,
 * and a row's source tells it. */
#include <string.h>

#include "truth_parts.h"

/* Words of a title, and the generation they mean; the first that matches. */
static const char *const generations[][2] = {
    {SM_TRUTH_RUN, "scalemodel-run"},
    {"vTrain", "vtrain-megatron"},
    {"Hagemann", "aleph-alpha"},
    {"BLOOM", "megatron-deepspeed"},
    {"Megatron-Turing", "megatron-lm-v2"},
    {"Narayanan", "megatron-lm-v2"},
    {"Korthikanti", "megatron-lm-v2"},
    {"Megatron-LM README", "megatron-lm-v2"},
    {"NeMo-Megatron launcher", "megatron-lm-v2"},
    {"llm-foundry", "llm-foundry"},
    {"DGX Cloud", "dgx-cloud"},
    {"NeMo-Framework-Launcher", "nemo-2024"},
    {"NeMo 24", "nemo-2024"},
    {"Megatron-Core", "nemo-2024"},
    {"NeMo performance summary", "megatron-bridge"},
    {"NeMo long-sequence", "nemo-2024"},
    {"Megatron-Bridge", "megatron-bridge"},
    {"Megatron-LM dev", "megatron-bridge"},
    {"SimuMax", "megatron-core-2025"},
    {"AutoModel", "automodel"},
    {"MLPerf", "mlperf"},
    {"MaxText README", "maxtext-2023"},
    {"MaxText A3", "maxtext-2023"},
    {"tpu-recipes", "maxtext-2025"},
    {"gpu-recipes", "maxtext-2025"},
    {"MaxText", "maxtext-2025"},
    {"AXLearn", "axlearn"},
    {"torchtitan", "torchtitan"},
    {"fms-fsdp", "torchtitan"},
    {"FSDP blog", "torchtitan"},
    {"InternEvo", "internevo"},
    {"Neuron", "neuron"},
    {"nanotron", "nanotron"},
    {"MegaScale", "megascale"},
    {"JAX-Toolbox", "jax-toolbox"},
    {"Primus", "primus"},
    {"ml-engineering: when", "deepspeed"},
};

static bool contains(const char *text, const char *words) { return strstr(text, words) != NULL; }

/* Generations of one code base that differ more than the chips do, told apart by what a row says:
 * fused norms (their steps are 3 to 30 % quicker), the first flash attention, XLA beside PyTorch,
 * releases of two years. */
static const struct {
    const char *generation, *words, *variant;
} variants[] = {
    {"aleph-alpha", "RMS kernel", "aleph-alpha-rms"},
    {"aleph-alpha", "flash_attentionv1", "aleph-alpha-flash1"},
    {"dgx-cloud", "XLA", "dgx-cloud-xla"},
    {"dgx-cloud", "maxtext", "dgx-cloud-xla"},
    {"megatron-bridge", "release 25", "megatron-bridge-25"},
    {"megatron-bridge", "release 26.06", "megatron-bridge-26.06"},
    {"megatron-bridge", "release 26.08", "megatron-bridge-26.06"},
};

static const char *variant_of(const sm_truth_row *row, const char *generation) {
    const sm_training_row *r = &row->of.training;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const char *words = variants[i].words;
        if (strcmp(generation, variants[i].generation) == 0 &&
            (contains(r->attention_kernel, words) || contains(r->notes, words) ||
             contains(row->id, words)))
            return variants[i].variant;
    }
    return generation;
}

const char *sm_truth_software(const sm_truth_row *row) {
    if (row->kind == SM_TRUTH_INFERENCE) return inference_software(row);
    if (row->kind != SM_TRUTH_TRAINING) return "kernels";
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (contains(row->source, generations[i][0])) return variant_of(row, generations[i][1]);
    return "default";
}
