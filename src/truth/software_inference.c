/* The generation of serving software a row was measured with, by the words of its framework and
 * source. */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "inference_parts.h"

static bool same_letter(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* In any case. */
static bool contains(const char *text, const char *words) {
    size_t n = strlen(words);
    if (n == 0) return true;
    for (; *text; text++) {
        size_t i = 0;
        while (i < n && text[i] && same_letter(text[i], words[i])) i++;
        if (i == n) return true;
    }
    return false;
}

/* Words of the framework (of the source: those in the second column), and the generation they
 * mean; the first whose words are all there. */
static const struct {
    const char *framework, *source, *generation;
} generations[] = {
    {"", "splitwise", "vllm-2023"},
    {"megatron", "", "megatron-lm-2022"},
    {"fastertransformer", "", "fastertransformer"},
    {"neuron", "", "neuronx"},
    {"nvcr.io", "", "trtllm-2025"},
    {"tensorrt-llm 0.5", "", "trtllm-0.5"},
    {"tensorrt-llm 0.6", "", "trtllm-0.5"},
    {"tensorrt-llm 0.1", "", "trtllm-0.17"},
    {"tensorrt-llm 1", "", "trtllm-1"},
    {"tensorrt-llm ~1", "", "trtllm-1"},
    {"tensorrt-llm", "LLM-Inference-Bench", "trtllm-2024"},
    {"tensorrt-llm", "", "trtllm-0.17"},
    {"vllm-tpu", "", "vllm-tpu"},
    {"vllm-gaudi", "", "vllm-2025"},
    {"vllm", "LLM-Inference-Bench", "vllm-2024"},
    {"vllm", "MLPerf", "vllm-2024"},
    {"deepspeed", "", "deepspeed-2024"},
    {"sambaflow", "", "sambaflow"},
    {"jetstream", "", "jetstream"},
    {"google internal", "", "pathways-2022"},
    {"atom", "", "atom"},
    {"sglang", "", "sglang-2025"},
    {"deepseek", "", "sglang-2025"},
    {"rtp-llm", "", "sglang-2025"},
    {"trt", "", "trtllm-2025"},
    {"vllm 0.12", "", "vllm-0.12"},
    {"vllm", "", "vllm-2025"},
};

/* Engines that doubled their speed from one winter to the next, by the day of the measurement. */
static const struct {
    const char *generation, *from, *later;
} turns[] = {
    {"sglang-2025", "2025-12-17", "sglang-2026"},
    {"vllm-2025", "2025-12-17", "vllm-2026"},
};

static const char *turn_of(const char *generation, const char *date) {
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++)
        if (strcmp(turns[i].generation, generation) == 0 && strcmp(date, turns[i].from) >= 0)
            return turns[i].later;
    return generation;
}

const char *inference_software(const sm_truth_row *row) {
    const sm_inference_row *r = &row->of.inference;
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (contains(r->framework, generations[i].framework) &&
            contains(row->source, generations[i].source))
            return turn_of(generations[i].generation, r->date);
    return "serving";
}

/* Where a generation has no constants on a chip, those of the one most like it. */
const char *inference_kin(const char *software) {
    static const char *const kin[][2] = {
        {"vllm-2023", "vllm-2024"},
        {"vllm-2024", "trtllm-2024"},
        {"deepspeed-2024", "vllm-2024"},
        {"trtllm-0.5", "trtllm-0.17"},
        {"trtllm-2024", "trtllm-0.17"},
        {"trtllm-0.17", "trtllm-1"},
        {"fastertransformer", "trtllm-0.5"},
        {"megatron-lm-2022", "vllm-2023"},
        {"trtllm-1", "trtllm-2025"},
        {"trtllm-2025", "vllm-2026"},
        {"vllm-0.12", "vllm-2025"},
        {"vllm-2025", "vllm-2026"},
        {"vllm-2026", "sglang-2026"},
        {"sglang-2025", "sglang-2026"},
        {"atom", "sglang-2026"},
        {"vllm-tpu", "jetstream"},
    };
    for (size_t i = 0; i < sizeof kin / sizeof kin[0]; i++)
        if (strcmp(software, kin[i][0]) == 0) return kin[i][1];
    return NULL;
}
