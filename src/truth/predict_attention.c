/* What a measured attention kernel is predicted to take: the shape its row describes, priced by
 * sm_attention_cost. */
#include "measured_format.h"
#include "truth_parts.h"

static const attention_phase *phase_of(const sm_attention_row *a) {
    return NAMED(measured_phases, a->phase);
}

static const attention_format *format_of(const sm_attention_row *a) {
    return NAMED(measured_attention_formats, a->dtype);
}

static const char *missing(const sm_attention_row *a) {
    if (!phase_of(a)) return "the phase is not one of those known";
    if (!format_of(a)) return "the number format is not one of those known";
    if (!is_size(a->batch) || !is_size(a->q_len) || !is_size(a->kv_len))
        return "batch, q_len or kv_len";
    if (a->kv_len < a->q_len) return "kv_len counts the queries too: it is below q_len";
    if (a->n_heads < 1 || a->n_kv_heads < 1 || a->d_head < 1) return "heads or head size";
    return NULL;
}

static sm_attention_shape shape_of(const sm_attention_row *a) {
    const attention_phase *p = phase_of(a);
    const attention_format *format = format_of(a);
    sm_attention_shape s = {.batch = a->batch,
                            .q_len = a->q_len,
                            .keys = sm_keys_met(a->q_len, a->kv_len, p->causal, 0, 0),
                            .kv_len = a->kv_len,
                            .heads = a->n_heads,
                            .kv_heads = a->n_kv_heads,
                            .head_size = a->d_head,
                            .v_head_size = a->d_head,
                            .dtype = format->compute,
                            .kv_bytes = format->kv_bytes,
                            .shared_kv = p->latent && p->decode};
    if (p->latent && p->decode && a->d_head > 64) s.v_head_size = a->d_head - 64.0;
    if (p->latent && !p->decode && a->d_head == 192) s.v_head_size = 128.0;
    return s;
}

/* What is timed besides the kernel, or in what other way, by the software that ran it. */
typedef struct timing {
    bool prepares;  /* RoPE and the append to the cache, before a prefill (TensorRT-LLM) */
    bool keeps_q;   /* ... of which MLA in 16 bits leaves all but the latents alone */
    bool quantises; /* Q, and in a prefill K and V, to 8 bits: a pass for the range, one to cast */
    bool multiplies8; /* 8-bit caches are multiplied in 8 bits */
    double gap_s;     /* of the host, where launches are not replayed from a graph */
    double slower;    /* Triton kernels without the shapes of the matrix unit */
} timing;

static const double host_gap_s = 4.8e-6;        /* a launch from Python */
static const double host_gap_layers_s = 315e-6; /* a whole module called from Python */

static const double latent_size = 576.0; /* of MLA's cache, per token */
static const double drain_s = 2.7e-6;    /* until the kernel before has left the cores */

static bool by_trtllm(const sm_truth_row *row) {
    return truth_in(row, "trtllm") || truth_by(row, "trtllm");
}

static timing timing_of(const sm_truth_row *row, const sm_chip *chip) {
    const attention_phase *p = phase_of(&row->of.attention);
    bool narrow = format_of(&row->of.attention)->kv_bytes < 2.0;
    bool sglang = truth_in(row, "sglang"), vllm14 = truth_in(row, "vllm-0.14");
    bool vllm = vllm14 || truth_in(row, "vllm");
    bool fp8 = chip->flops_per_s[SM_FP8].value > 0.0;
    timing t = {.slower = sglang && p->latent && !p->decode ? 3.25 : 1.0};
    /* TensorRT-LLM's own kernels, also where SGLang and vLLM call them, multiply 8-bit caches in 8
     * bits in every prefill, and in a decode on chips that have 4-bit matmuls (Blackwell). */
    bool own = by_trtllm(row) && (!p->decode || chip->flops_per_s[SM_FP4].value > 0.0);
    t.prepares = truth_in(row, "trtllm") && !p->decode;
    t.keeps_q = p->latent && !narrow;
    t.quantises = narrow && fp8 && ((sglang && (p->decode || own)) || (vllm && !p->decode));
    t.multiplies8 = own || (t.quantises && !p->decode);
    if (truth_in(row, "infersim")) t.gap_s = host_gap_s;
    if (vllm14 && p->latent) t.gap_s = host_gap_layers_s;
    return t;
}

/* Seconds of the kernels that a source times before the attention itself. */
static double before_s(const timing *t, const sm_chip *chip, const sm_calibration *c,
                       const sm_attention_shape *s) {
    double q = s->batch * s->q_len * s->heads * s->head_size;
    double kv = s->batch * s->q_len * s->kv_heads * (s->head_size + s->v_head_size);
    double seconds = t->gap_s;
    double prepared = 4.0 * q + (2.0 + s->kv_bytes) * kv;
    if (t->keeps_q) prepared = 4.0 * s->batch * s->q_len * latent_size;
    if (t->prepares) seconds += drain_s + sm_vector_cost(chip, c, 0.0, prepared).expected_s;
    double narrowed = 6.0 * (s->q_len > 1.0 ? q + kv : q);
    if (t->quantises) seconds += drain_s + sm_vector_cost(chip, c, 0.0, narrowed).expected_s;
    return seconds;
}

void sm_predict_attention(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                          sm_prediction *out) {
    *out = (sm_prediction){.regime = SM_REGIME_attention, .calibration = c};
    out->unknown = missing(&row->of.attention);
    if (out->unknown) return;
    sm_attention_shape shape = shape_of(&row->of.attention);
    timing t = timing_of(row, chip);
    if (t.multiplies8 && shape.kv_bytes < 2.0) shape.dtype = SM_FP8;
    shape.one_kernel = truth_in(row, "sglang") && truth_by(row, "flashinfer");
    shape.persistent = by_trtllm(row);
    shape.head_blocks = by_trtllm(row) && !phase_of(&row->of.attention)->decode;
    if (!(sm_chip_peak(chip, shape.dtype, NULL) > 0.0)) {
        out->unknown = "the chip's peak in this number format";
        return;
    }
    sm_calibration kernel = *c;
    kernel.attention_efficiency /= t.slower;
    sm_op_cost cost = sm_attention_cost(chip, &kernel, &shape, false);
    double before = before_s(&t, chip, c, &shape);
    /* Benchmarks repeat one call: what fits a cache may still be there. */
    double cached_s = chip->onchip_bytes.value / chip->memory_bytes_per_s.value;
    out->lower_s = fmax(cost.math_s, cost.memory_s - cached_s);
    out->expected_s = cost.expected_s + before;
    out->upper_s = cost.upper_s + before;
}
