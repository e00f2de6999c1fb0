/* What a measured matrix multiplication is predicted to take: one sm_matmul_cost with the bytes of
 * its number formats, and where the source timed it too, the kernel that quantises activations. */
#include "scalemodel/truth.h"
#include <math.h>
#include <string.h>

/* A number format as printed: what is multiplied, and bytes of an element of A, B (the weights)
 * and C. Blocks carry a scale: fp8_block one fp32 per 128 (A) and per 128x128 (B), nvfp4 an 8-bit
 * one per 16, mxfp4 an 8-bit one per 32. Weight-only formats multiply in 16 bits. */
typedef struct number_format {
    const char *name;
    sm_dtype compute;
    double a_bytes, b_bytes, c_bytes;
} number_format;

static const number_format formats[] = {
    {"bf16", SM_BF16, 2.0, 2.0, 2.0},
    {"fp16", SM_FP16, 2.0, 2.0, 2.0},
    {"fp8", SM_FP8, 1.0, 1.0, 2.0},
    {"fp8_block", SM_FP8, 1.0 + 4.0 / 128.0, 1.0 + 4.0 / 16384.0, 2.0},
    {"int8", SM_INT8, 1.0, 1.0, 2.0},
    {"nvfp4", SM_FP4, 0.5 + 1.0 / 16.0, 0.5 + 1.0 / 16.0, 2.0},
    {"mxfp4", SM_MXFP4, 0.5 + 1.0 / 32.0, 0.5 + 1.0 / 32.0, 2.0},
    {"bf16_w8", SM_BF16, 2.0, 1.0, 2.0},
    {"bf16_w4", SM_BF16, 2.0, 0.5, 2.0},
};

static const number_format *format_of(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

static bool is_size(double x) { return isfinite(x) && x >= 1.0; }

/* Sources say "incl act-quant" where the time holds the quantisation of A from 16 bits. */
static bool times_quantisation(const sm_truth_row *row) {
    return row->source && strstr(row->source, "act-quant") != NULL;
}

void sm_predict_gemm(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                     sm_prediction *out) {
    const sm_gemm_row *g = &row->of.gemm;
    const number_format *format = g->dtype ? format_of(g->dtype) : NULL;
    *out = (sm_prediction){.regime = SM_REGIME_matmul, .calibration = c};
    if (!format) out->unknown = "the number format is not one of those known";
    if (!is_size(g->m) || !is_size(g->n) || !is_size(g->k)) out->unknown = "m, n or k";
    if (!out->unknown && !(sm_chip_peak(chip, format->compute, NULL) > 0.0))
        out->unknown = "the chip's peak in this number format";
    if (out->unknown) return;
    double bytes = g->m * g->k * format->a_bytes + g->k * g->n * format->b_bytes +
                   g->m * g->n * format->c_bytes;
    sm_op_cost cost = sm_matmul_cost(chip, c, format->compute, 1.0, g->m, g->n, g->k, bytes);
    out->lower_s = cost.lower_s;
    out->expected_s = cost.expected_s;
    out->upper_s = cost.upper_s;
    if (times_quantisation(row)) {
        sm_op_cost quantise = sm_vector_cost(chip, c, 0.0, g->m * g->k * (2.0 + format->a_bytes));
        out->expected_s += quantise.expected_s;
        out->upper_s += quantise.upper_s;
    }
}
