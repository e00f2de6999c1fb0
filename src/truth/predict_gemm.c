/* What a measured matrix multiplication is predicted to take: one sm_matmul_cost with the bytes of
 * its number formats, and the kernels that its source timed with it. */
#include <math.h>
#include <string.h>

#include "truth_parts.h"

/* A number format as printed: what is multiplied, and bytes of an element of A, B (the weights)
 * and C. Blocks carry a scale: fp8_block one fp32 per 128 (A) and per 128x128 (B), nvfp4 an 8-bit
 * one per 16, mxfp4 an 8-bit one per 32. Weight-only formats multiply in 16 bits.
 * starts: kernel starts before the matmul proper (widening the weights, scaling rows). */
typedef struct number_format {
    const char *name;
    sm_dtype compute;
    double a_bytes, b_bytes, c_bytes, starts;
} number_format;

static const number_format formats[] = {
    {"bf16", SM_BF16, 2.0, 2.0, 2.0, 0.0},
    {"fp16", SM_FP16, 2.0, 2.0, 2.0, 0.0},
    {"fp32", SM_FP32, 4.0, 4.0, 4.0, 0.0},
    {"fp8", SM_FP8, 1.0, 1.0, 2.0, 0.0},
    {"fp8_block", SM_FP8, 1.0 + 4.0 / 128.0, 1.0 + 4.0 / 16384.0, 2.0, 0.0},
    {"int8", SM_INT8, 1.0, 1.0, 2.0, 2.0},
    {"nvfp4", SM_FP4, 0.5 + 1.0 / 16.0, 0.5 + 1.0 / 16.0, 2.0, 0.0},
    {"mxfp4", SM_MXFP4, 0.5 + 1.0 / 32.0, 0.5 + 1.0 / 32.0, 2.0, 0.0},
    {"bf16_w8", SM_BF16, 2.0, 1.0, 2.0, 2.0},
    {"bf16_w4", SM_BF16, 2.0, 0.5, 2.0, 2.0},
};

/* The kernels that quantise activations from 16 bits, where the row says that they are in its time:
 * each serving engine has its own, some another one for chips with fp4. One fit to 900 timings:
 * starts in kernel starts; passes over the activations in and out; the time a core spends on a row
 * beyond that. The dynamic per-tensor scale of TensorRT-LLM takes several kernels; the scales that
 * DeepGEMM packs on chips with fp4 (SGLang) take more than quantising. */
typedef enum quantiser_chips { ANY_CHIP, WITH_FP4, WITHOUT_FP4 } quantiser_chips;

typedef struct quantiser {
    const char *engine, *format;
    quantiser_chips chips;
    double starts, passes, row_core_s;
} quantiser;

static const quantiser quantisers[] = {
    {"sglang", "fp8", ANY_CHIP, 1.2, 1.9, 0.05e-6},
    {"sglang", "fp8_block", WITH_FP4, 4.2, 0.9, 0.02e-6},
    {"sglang", "fp8_block", WITHOUT_FP4, 0.5, 1.25, 0.01e-6},
    {"sglang", "nvfp4", ANY_CHIP, 0.8, 1.8, 0.12e-6},
    {"trtllm", "fp8", ANY_CHIP, 4.2, 2.5, 0.0},
    {"trtllm", "fp8_block", WITH_FP4, 1.2, 1.25, 0.02e-6},
    {"trtllm", "fp8_block", WITHOUT_FP4, 0.9, 1.75, 0.01e-6},
    {"trtllm", "nvfp4", ANY_CHIP, 1.9, 1.85, 0.08e-6},
    {"vllm", "fp8", ANY_CHIP, 1.25, 2.1, 0.85e-6},
    {"vllm", "nvfp4", ANY_CHIP, 1.8, 1.0, 0.13e-6},
};

static const number_format *format_of(const char *name) {
    for (size_t i = 0; name && i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

/* vLLM's default path outside CUDA starts kernels from the host, in 30 us that hide what runs
 * meanwhile, and multiplies 8-bit weights in 16 bits: it quantises nothing. */
static bool host_starts(const sm_truth_row *row) { return truth_by(row, "vllm_default"); }

static bool quantises(const quantiser *q, const sm_truth_row *row, bool has_fp4) {
    if (q->chips != ANY_CHIP && (q->chips == WITH_FP4) != has_fp4) return false;
    return truth_in(row, q->engine) && strcmp(q->format, row->of.gemm.dtype) == 0;
}

/* NULL where the time holds no quantisation. */
static const quantiser *quantiser_of(const sm_truth_row *row, const sm_chip *chip) {
    static const quantiser any = {"", "", ANY_CHIP, 1.0, 1.5, 0.0};
    if (row->of.gemm.quantises != SM_YES || host_starts(row)) return NULL;
    bool has_fp4 = chip->flops_per_s[SM_FP4].value > 0.0;
    for (size_t i = 0; i < sizeof quantisers / sizeof quantisers[0]; i++)
        if (quantises(&quantisers[i], row, has_fp4)) return &quantisers[i];
    return &any;
}

/* Of what plain fp8 reaches. Blocks of 128 are added up in fp32 with their scales: DeepGEMM hides
 * that behind the next block, other kernels do not. */
static double block_efficiency(const sm_truth_row *row) {
    bool blocks = strcmp(row->of.gemm.dtype, "fp8_block") == 0;
    return blocks && !truth_by(row, "deepgemm") ? 0.65 : 1.0;
}

/* LLMServingSim's TPU reads weights that are longer along the contraction twice, with up to 512
 * rows: XLA lays them out anew. */
static bool lays_out(const sm_truth_row *row, const sm_chip *chip) {
    const sm_gemm_row *g = &row->of.gemm;
    return truth_in(row, "llmservingsim") && chip->cores <= 8 && g->k > g->n && g->m <= 512.0;
}

/* Starting one kernel: as calibrated, and 1,800 cycles (see op_cost.c). */
static double start_s(const sm_chip *chip, const sm_calibration *c) {
    double clock_hz = chip->clock_hz.value > 0.0 ? chip->clock_hz.value : 1.8e9;
    return c->launch_s + (chip->cores > 8 ? 1800.0 / clock_hz : 0.0);
}

static double quantisation_s(const quantiser *q, const sm_gemm_row *g, const number_format *format,
                             const sm_chip *chip, const sm_calibration *c) {
    double bytes = q->passes * g->m * g->k * (2.0 + format->a_bytes);
    return q->starts * start_s(chip, c) + q->row_core_s * g->m / fmax(1.0, chip->cores) +
           bytes / (chip->memory_bytes_per_s.value * c->memory_efficiency);
}

static double bytes_of(const sm_gemm_row *g, const number_format *format) {
    return g->m * g->k * format->a_bytes + g->k * g->n * format->b_bytes +
           g->m * g->n * format->c_bytes;
}

static const char *unknown_of(const sm_gemm_row *g, const number_format *format,
                              const sm_chip *chip) {
    if (!format) return "the number format is not one of those known";
    if (!is_size(g->m) || !is_size(g->n) || !is_size(g->k)) return "m, n or k";
    if (!(chip->memory_bytes_per_s.value > 0.0)) return "the chip's memory bandwidth";
    return sm_chip_peak(chip, format->compute, NULL) > 0.0
               ? NULL
               : "the chip's peak in this number format";
}

void sm_predict_gemm(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                     sm_prediction *out) {
    const sm_gemm_row *g = &row->of.gemm;
    const number_format *format = format_of(g->dtype);
    *out = (sm_prediction){.regime = SM_REGIME_matmul, .calibration = c};
    out->unknown = unknown_of(g, format, chip);
    if (out->unknown) return;
    sm_calibration own = *c;
    own.matmul_efficiency_fp8 *= block_efficiency(row);
    if (host_starts(row)) own.launch_s = fmin(own.launch_s, 1.5e-6);
    double host_s = host_starts(row) ? 30e-6 : 0.0, bytes = bytes_of(g, format);
    sm_op_cost cost = sm_matmul_cost(chip, &own, format->compute,
                                     (sm_product_shape){1.0, g->m, g->n, g->k}, bytes);
    /* AITER's int8 kernels need one start less than TensorRT-LLM's. */
    double starts = format->starts;
    if (format->compute == SM_INT8 && truth_in(row, "aiter")) starts -= 1.0;
    const quantiser *q = quantiser_of(row, chip);
    double seconds = q ? quantisation_s(q, &row->of.gemm, format, chip, &own) : 0.0;
    double before_s = seconds + starts * start_s(chip, &own);
    if (lays_out(row, chip)) before_s += cost.memory_s / own.memory_efficiency;
    out->lower_s = cost.lower_s;
    out->expected_s = fmax(host_s, cost.expected_s + before_s);
    out->upper_s = fmax(host_s, cost.upper_s + before_s);
}
