/* What a measured matrix multiplication is predicted to take: one sm_matmul_cost with the bytes of
 * its number formats, and the kernels that its source timed with it. */

#include "measured_format.h"
#include "truth_parts.h"

/* vLLM's default path outside CUDA starts kernels from the host, in 30 us that hide what runs
 * meanwhile, and multiplies 8-bit weights in 16 bits: it quantises nothing. */
static bool host_starts(const sm_truth_row *row) { return truth_by(row, "vllm_default"); }

static bool quantises(const quantiser *q, const sm_truth_row *row, bool has_fp4) {
    if (q->chips != CHIPS_ANY && (q->chips == CHIPS_WITH_FP4) != has_fp4) return false;
    return truth_in(row, q->engine) && strcmp(q->format, row->of.gemm.dtype) == 0;
}

/* NULL where the time holds no quantisation. */
static const quantiser *quantiser_of(const sm_truth_row *row, const sm_chip *chip) {
    static const quantiser any = {"", "", CHIPS_ANY, 1.0, 1.5, 0.0};
    if (row->of.gemm.quantises != SM_YES || host_starts(row)) return NULL;
    bool has_fp4 = chip->flops_per_s[SM_FP4].value > 0.0;
    for (size_t i = 0; i < measured_quantisers_count; i++)
        if (quantises(&measured_quantisers[i], row, has_fp4)) return &measured_quantisers[i];
    return &any;
}

/* Starting one kernel: as calibrated, and 1,800 cycles (see op_cost.c). */
static double start_s(const sm_chip *chip, const sm_calibration *c) {
    double clock_hz = chip->clock_hz.value > 0.0 ? chip->clock_hz.value : 1.8e9;
    return c->launch_s + (chip->cores > 8 ? 1800.0 / clock_hz : 0.0);
}

static double quantisation_s(const quantiser *q, const sm_gemm_row *g, const gemm_format *format,
                             const sm_chip *chip, const sm_calibration *c) {
    double bytes = q->passes * g->m * g->k * (2.0 + format->a_bytes);
    return q->starts * start_s(chip, c) + q->row_core_s * g->m / fmax(1.0, chip->cores) +
           bytes / (chip->memory_bytes_per_s.value * c->memory_efficiency);
}

static const char *unknown_of(const sm_gemm_row *g, const gemm_format *format,
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
    const gemm_format *format = NAMED(measured_gemm_formats, g->dtype);
    *out = (sm_prediction){.regime = SM_REGIME_matmul, .calibration = c};
    out->unknown = unknown_of(g, format, chip);
    if (out->unknown) return;
    sm_calibration own = *c;
    /* Of what plain fp8 reaches: blocks of 128 are added up in fp32 with their scales, which
     * DeepGEMM hides behind the next block and other kernels do not. */
    bool blocks = strcmp(row->of.gemm.dtype, "fp8_block") == 0;
    if (blocks && !truth_by(row, "deepgemm")) own.matmul_efficiency_fp8 *= 0.65;
    if (host_starts(row)) own.launch_s = fmin(own.launch_s, 1.5e-6);
    double host_s = host_starts(row) ? 30e-6 : 0.0;
    double bytes = g->m * g->k * format->a_bytes + g->k * g->n * format->b_bytes +
                   g->m * g->n * format->c_bytes;
    sm_op_cost cost = sm_matmul_cost(chip, &own, format->compute,
                                     (sm_product_shape){1.0, g->m, g->n, g->k}, bytes);
    /* AITER's int8 kernels need one start less than TensorRT-LLM's. */
    double starts = format->starts;
    if (format->compute == SM_INT8 && truth_in(row, "aiter")) starts -= 1.0;
    const quantiser *q = quantiser_of(row, chip);
    double seconds = q ? quantisation_s(q, &row->of.gemm, format, chip, &own) : 0.0;
    double before_s = seconds + starts * start_s(chip, &own);
    /* LLMServingSim's TPU reads weights that are longer along the contraction twice, with up to 512
     * rows: XLA lays them out anew */
    if (truth_in(row, "llmservingsim") && chip->cores <= 8 && g->k > g->n && g->m <= 512.0)
        before_s += cost.memory_s / own.memory_efficiency;
    out->lower_s = cost.lower_s;
    out->expected_s = fmax(host_s, cost.expected_s + before_s);
    out->upper_s = fmax(host_s, cost.upper_s + before_s);
}
