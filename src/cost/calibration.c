/* What chips achieve of their data sheets. Few constants, each a measurement or borrowed from the
 * nearest relative and then said so.
 *
 * Sources: "MAMF" is the highest matmul rate measured by stas00/ml-engineering (compute/accelerator
 * chapter, 2025-26) over the dense peak; bus bandwidths of NCCL are from the same work (network
 * chapter) and from the GPU chapter of "How To Scale Your Model". */
#include "scalemodel/cost.h"
#include <stddef.h>
#include <string.h>

#define TPU_BORROWED                                                                               \
    "matmul: TPU figure of the book (95 % of peak for large matmuls, less for typical shapes); "   \
    "network: its v5e 16-ring reaches 95 % of 4.5e10 B/s"

static const sm_calibration calibrations[] = {
    {.chip = "tpu",
     .software = "default",
     .range = "",
     .source = TPU_BORROWED,
     .matmul_efficiency = 0.90,
     .matmul_efficiency_fp8 = 0.88,
     .attention_efficiency = 0.55,
     .attention_efficiency_backward = 0.50,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.92,
     .network_efficiency_outer = 0.80,
     .launch_s = 1e-6,
     .collective_s = 1e-6,
     .overlap = 0.95,
     .step_overhead_s = 3e-3,
     .matmul_half_k = 64},
    {.chip = "v100",
     .software = "default",
     .range = "",
     .source = "no published maximum at hand: borrowed from a100 (the nearest relative)",
     .matmul_efficiency = 0.80,
     .matmul_efficiency_fp8 = 0.80,
     .attention_efficiency = 0.45,
     .attention_efficiency_backward = 0.40,
     .memory_efficiency = 0.85,
     .network_efficiency_inner = 0.78,
     .network_efficiency_outer = 0.80,
     .launch_s = 4e-6,
     .collective_s = 4e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 64},
    {.chip = "a100",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 271.2 of 312 TFLOP/s; all-reduce bus bandwidth 235 of 300 GB/s "
               "(nccl-tests, 8 GPUs); attention: FlashAttention-2 paper, about 220 of 312 forward",
     .matmul_efficiency = 0.87,
     .matmul_efficiency_fp8 = 0.85,
     .attention_efficiency = 0.60,
     .attention_efficiency_backward = 0.52,
     .memory_efficiency = 0.87,
     .network_efficiency_inner = 0.78,
     .network_efficiency_outer = 0.80,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 96},
    {.chip = "h100",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 794.5 of 989.4 TFLOP/s, fp8 1402.6 of 1979; all-reduce bus bandwidth "
               "370 of 450 GB/s (the book, GPU chapter); attention: FlashAttention-3 paper, about "
               "650 forward and 550 backward of 989 at length 8k and head 128",
     .matmul_efficiency = 0.80,
     .matmul_efficiency_fp8 = 0.71,
     .attention_efficiency = 0.60,
     .attention_efficiency_backward = 0.50,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.81,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 192},
    {.chip = "h200",
     .software = "default",
     .range = "",
     .source = "matmul: fp8 MAMF 1453.4 of 1979, bf16 borrowed from gh200 (828.6 of 989.4); "
               "all-reduce bus bandwidth 365.6 of 450 GB/s; the rest borrowed from h100",
     .matmul_efficiency = 0.82,
     .matmul_efficiency_fp8 = 0.73,
     .attention_efficiency = 0.60,
     .attention_efficiency_backward = 0.50,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.81,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 192},
    {.chip = "h800",
     .software = "default",
     .range = "",
     .source = "the chip borrowed from h100; NVLink 160 of 200 GB/s and InfiniBand 40 to 50 of "
               "50 GB/s per GPU: DeepSeek-V3 report and DeepEP README",
     .matmul_efficiency = 0.80,
     .matmul_efficiency_fp8 = 0.71,
     .attention_efficiency = 0.60,
     .attention_efficiency_backward = 0.50,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.80,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 192},
    {.chip = "b200",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 1745 of 2250 TFLOP/s, fp8 3432.5 of 4500; all-reduce bus bandwidth "
               "682 of 900 GB/s; attention and outer network borrowed from h100",
     .matmul_efficiency = 0.775,
     .matmul_efficiency_fp8 = 0.76,
     .attention_efficiency = 0.52,
     .attention_efficiency_backward = 0.42,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.76,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 256},
    {.chip = "b300",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 1769 of 2250 TFLOP/s, fp8 3353 of 4500; the rest borrowed from b200",
     .matmul_efficiency = 0.786,
     .matmul_efficiency_fp8 = 0.745,
     .attention_efficiency = 0.52,
     .attention_efficiency_backward = 0.42,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.76,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 256},
    {.chip = "gb200",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 1822 of 2500 TFLOP/s, fp8 3615.6 of 5000; all-reduce bus bandwidth "
               "680 of 900 GB/s; the rest borrowed from b200",
     .matmul_efficiency = 0.73,
     .matmul_efficiency_fp8 = 0.72,
     .attention_efficiency = 0.50,
     .attention_efficiency_backward = 0.40,
     .memory_efficiency = 0.90,
     .network_efficiency_inner = 0.755,
     .network_efficiency_outer = 0.85,
     .launch_s = 3e-6,
     .collective_s = 3e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 256},
    {.chip = "mi300x",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 668.4 of 1307.4 TFLOP/s (mi325x 784.9); all-reduce bus bandwidth 313 "
               "of 448 GB/s (nccl-tests, 8 GPUs); the rest borrowed from h100",
     .matmul_efficiency = 0.51,
     .matmul_efficiency_fp8 = 0.48,
     .attention_efficiency = 0.38,
     .attention_efficiency_backward = 0.28,
     .memory_efficiency = 0.80,
     .network_efficiency_inner = 0.70,
     .network_efficiency_outer = 0.80,
     .launch_s = 4e-6,
     .collective_s = 4e-6,
     .overlap = 0.80,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 192},
    {.chip = "mi250x",
     .software = "default",
     .range = "",
     .source = "no published maximum at hand: borrowed from mi300x",
     .matmul_efficiency = 0.60,
     .matmul_efficiency_fp8 = 0.60,
     .attention_efficiency = 0.35,
     .attention_efficiency_backward = 0.25,
     .memory_efficiency = 0.80,
     .network_efficiency_inner = 0.70,
     .network_efficiency_outer = 0.80,
     .launch_s = 4e-6,
     .collective_s = 4e-6,
     .overlap = 0.80,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 128},
    {.chip = "mi355x",
     .software = "default",
     .range = "",
     .source = "matmul: MAMF 1565 of 2516.6 TFLOP/s; fp8 and the rest borrowed from mi300x",
     .matmul_efficiency = 0.62,
     .matmul_efficiency_fp8 = 0.58,
     .attention_efficiency = 0.40,
     .attention_efficiency_backward = 0.30,
     .memory_efficiency = 0.82,
     .network_efficiency_inner = 0.70,
     .network_efficiency_outer = 0.80,
     .launch_s = 4e-6,
     .collective_s = 4e-6,
     .overlap = 0.80,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 256},
    {.chip = "trn2",
     .software = "default",
     .range = "",
     .source = "no published maximum at hand: borrowed from tpu (systolic) with its network lower",
     .matmul_efficiency = 0.80,
     .matmul_efficiency_fp8 = 0.75,
     .attention_efficiency = 0.45,
     .attention_efficiency_backward = 0.35,
     .memory_efficiency = 0.85,
     .network_efficiency_inner = 0.80,
     .network_efficiency_outer = 0.80,
     .launch_s = 4e-6,
     .collective_s = 4e-6,
     .overlap = 0.85,
     .step_overhead_s = 5e-3,
     .matmul_half_k = 128},
    {.chip = "cpu",
     .software = "default",
     .range = "",
     .source = "placeholder until a machine is measured: typical of BLAS and of memory copies",
     .matmul_efficiency = 0.80,
     .matmul_efficiency_fp8 = 0.80,
     .attention_efficiency = 0.40,
     .attention_efficiency_backward = 0.40,
     .memory_efficiency = 0.80,
     .network_efficiency_inner = 0.80,
     .network_efficiency_outer = 0.80,
     .launch_s = 1e-6,
     .collective_s = 1e-6,
     .overlap = 0.5,
     .step_overhead_s = 1e-3,
     .matmul_half_k = 16},
};

enum { CALIBRATIONS = sizeof calibrations / sizeof calibrations[0] };

/* The entry whose name is the longest beginning of the word: "h100-sxm" finds "h100". */
static const sm_calibration *find(const char *word) {
    const sm_calibration *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; word && i < CALIBRATIONS; i++) {
        size_t length = strlen(calibrations[i].chip);
        if (length > longest && strncmp(word, calibrations[i].chip, length) == 0) {
            found = &calibrations[i];
            longest = length;
        }
    }
    return found;
}

/* Chips that carry no calibration of their own, and whose figures they take. */
static const sm_calibration *relative_of(const sm_chip *chip) {
    static const char *const relatives[][2] = {
        {"gh200", "h200"}, {"gb300", "gb200"}, {"h20", "h100"}, {"l40", "a100"}, {"mi3", "mi300x"}};
    for (size_t i = 0; chip->name && i < sizeof relatives / sizeof relatives[0]; i++)
        if (strncmp(chip->name, relatives[i][0], strlen(relatives[i][0])) == 0)
            return find(relatives[i][1]);
    if (chip->fabric == SM_FABRIC_TORUS) return find("tpu");
    return find(chip->fabric == SM_FABRIC_NONE ? "cpu" : "h100");
}

const sm_calibration *sm_calibration_of(const sm_chip *chip) {
    const sm_calibration *own = find(chip->calibration ? chip->calibration : chip->name);
    if (!own) own = find(chip->name);
    return own ? own : relative_of(chip);
}

static const sm_constant_info infos[SM_CONSTANT_COUNT] = {
#define X(id, low, high, unit, meaning) {#id, unit, meaning, low, high},
    SM_CONSTANTS(X)
#undef X
};

const sm_constant_info *sm_constant_of(sm_constant which) { return &infos[which]; }

static const size_t at[SM_CONSTANT_COUNT] = {
#define X(id, low, high, unit, meaning) offsetof(sm_calibration, id),
    SM_CONSTANTS(X)
#undef X
};

double sm_calibration_get(const sm_calibration *c, sm_constant which) {
    double value;
    memcpy(&value, (const char *)c + at[which], sizeof value);
    return value;
}

void sm_calibration_set(sm_calibration *c, sm_constant which, double value) {
    memcpy((char *)c + at[which], &value, sizeof value);
}

const char *sm_regime_name(sm_regime regime) {
    static const char *const names[SM_REGIME_COUNT] = {
#define X(id, name) name,
        SM_REGIMES(X)
#undef X
    };
    return names[regime];
}

size_t sm_calibration_count(void) { return CALIBRATIONS; }
const sm_calibration *sm_calibration_at(size_t i) {
    return i < CALIBRATIONS ? &calibrations[i] : NULL;
}
