/* "Serving LLaMA 3 on TPUs": part 8, sizes, FLOPs, rooflines; decode steps from serve.h. */
#include "book.h"
#include "instruments_serve.h"
#include "scalemodel/simulate.h"
#include "thresholds.h"
#include <math.h>

#define WIDE "D=1e8,F=1e8,B=1"

static sm_chip v5e(void) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], 197e12);
    book_give(&chip.flops_per_s[SM_INT8], 394e12);
    book_give(&chip.memory_bytes_per_s, 8.2e11);
    book_give(&chip.memory_bytes, 16e9);
    return chip;
}

static double flops_per_usd(const char *name, double flops_per_s, double usd_per_hour) {
    sm_chip chip = book_chip(name);
    book_give(&chip.flops_per_s[SM_BF16], flops_per_s);
    chip.prices = 1;
    chip.price[0].usd_per_chip_hour = usd_per_hour;
    return sm_chip_peak(&chip, SM_BF16, NULL) * 3600 / sm_chip_usd_per_hour(&chip);
}

static void cost_h100(book_item *item) {
    book_is(item, "FLOPs per dollar", flops_per_usd("h100-sxm", 990e12, 10.8), 3.3e17);
}
static void cost_v5p(book_item *item) {
    book_is(item, "FLOPs per dollar", flops_per_usd("tpu-v5p", 459e12, 4.2), 3.93429e17);
}
static void cost_v5e(book_item *item) {
    book_is(item, "FLOPs per dollar", flops_per_usd("tpu-v5e", 197e12, 1.2), 5.91e17);
}

static double kv_70b(double T, sm_dtype kv) {
    sm_model model = book_model("llama-3.1-70b");
    return sm_model_kv_bytes(&model, T, kv);
}

/* The chips of the book: its 1.288e12 bytes rounded to 1.3e12. */
static void kv(book_item *item) {
    double whole = 240 * kv_70b(32768, SM_INT8);
    book_exactly(item, "of a token", kv_70b(1, SM_INT8), 163840);
    book_exactly(item, "of a sequence", kv_70b(32768, SM_INT8), 5368709120.0);
    book_exactly(item, "of 240", whole, 1288490188800.0);
    sm_chip chip = v5e();
    book_near(item, "chips", (whole + 70e9 * sm_dtype_bytes(SM_INT8)) / chip.memory_bytes.value,
              85.625, 1.3 / 1.28849 - 1);
}

/* The book takes 160e3 bytes per token for 163,840. */
static void memory_32(book_item *item) {
    double cache = 32 * kv_70b(8192, SM_INT8), total = cache + 70e9 * sm_dtype_bytes(SM_INT8);
    sm_chip chip = v5e();
    book_exactly(item, "KV", cache, 42949672960.0);
    book_near(item, "total", total, 1.11943e11, 0.01);
    book_near(item, "chips", total / chip.memory_bytes.value, 7, 0.01);
}

/* The book rounds 2189 to 2200. */
static void tensor_limit(book_item *item) {
    sm_model model = book_block(8192, 28672);
    sm_system pod = book_system("tpu-v5e:16x16");
    pod.chip = v5e();
    threshold t = book_threshold(book_layer(&model, 1), &pod.chip);
    t.tensor_s_per_byte = book_s_per_byte(&pod, SM_ALL_GATHER, "X=16,Y=16", "XY");
    book_near(item, "degree", book_tensor_critical(&t), 26.0655, 2200 / 2188.89 - 1 + 1e-4);
}

static double batch(const char *einsum) {
    sm_chip chip = v5e();
    return book_critical(&chip, einsum, WIDE, "B", SM_MEMORY_HBM);
}

static void critical(book_item *item) {
    book_is(item, "bf16", batch("bf16[B,D] bf16[D,F] -> bf16[B,F]"), 240);
    book_is(item, "int8 weights", batch("bf16[B,D] int8[D,F] -> bf16[B,F]"), 120);
    book_is(item, "int8", batch("int8[B,D] int8[D,F] -> int8[B,F]"), 240);
}

/* Weights and KV cache in one dtype on a slice: least chips, memory left, caches of 8192 tokens. */
static void least_slice(book_item *item, sm_dtype dtype, const char *slice_text, double chips,
                        double left, double token) {
    sm_system slice = book_system(slice_text);
    slice.chip = v5e();
    double weights = 70e9 * sm_dtype_bytes(dtype), memory = slice.chip.memory_bytes.value;
    book_is(item, "chips", weights / memory, chips);
    book_is(item, "left", slice.chips * memory - weights, left);
    book_is(item, "caches", (slice.chips * memory - weights) / kv_70b(8192, dtype), 43.2134);
    book_exactly(item, "KV of a token", kv_70b(1, dtype), token);
}
static void least_bf16(book_item *item) {
    least_slice(item, SM_BF16, "tpu-v5e:4x4", 8.75, 116e9, 327680);
}
static void least_int8(book_item *item) {
    least_slice(item, SM_INT8, "tpu-v5e:2x4", 4.375, 58e9, 163840);
}
static void least_int4(book_item *item) {
    least_slice(item, SM_INT4, "tpu-v5e:2x2", 2.1875, 29e9, 81920);
}

static void full_memory(book_item *item) {
    sm_chip chip = v5e();
    double s = book_read_s(&chip, chip.memory_bytes.value);
    book_is(item, "step", s, 0.0195122);
    book_is(item, "512 steps", 512 * s, 9.99024);
    double weights = book_local_bytes("int4[P_X]", "X=4", "P=70e9");
    book_is(item, "weights in int4", book_read_s(&chip, weights), 0.0106707);
}

/* 8192 tokens on 16 chips at an MFU of 40 %. */
static double prefill_s(void) {
    sm_model model = book_of_params(70e9);
    sm_chip chip = v5e();
    double flops = 8192 * sm_model_forward_flops(&model, 1, true).matmul;
    return flops / (16 * sm_chip_peak(&chip, SM_BF16, NULL) * 0.4);
}
static void prefill(book_item *item) { book_is(item, "seconds", prefill_s(), 0.909645); }

/* ---- decode steps ---- */

static book_serving llama(const char *slice, sm_dtype dtype, double memory_bytes_per_s) {
    sm_chip chip = v5e();
    book_give(&chip.memory_bytes_per_s, memory_bytes_per_s);
    return (book_serving){book_model("llama-3.1-70b"), book_system_of(&chip, slice), dtype, dtype,
                          8192};
}

/* The book takes 70e9 parameters for 70.6e9 and 160e3 bytes of cache a token for 163,840, and
 * rounds the step to 17 ms before it divides. */
static void latency_32(book_item *item) {
    book_serving q = llama("tpu-v5e:2x4", SM_INT8, 8.1e11);
    book_serving large = llama("tpu-v5e:4x4", SM_INT8, 8.1e11);
    double counts = 113.51 / 111.943 - 1 + 1e-3, rounding = counts + 17.284 / 17 - 1;
    double s = book_serving_point(&q, "tensor=8", 32).tpot_s[0];
    book_near(item, "step on 4x2", s, 0.017284, counts);
    book_near(item, "tokens/s", 32 / s, 1882.35, rounding);
    book_near(item, "per chip", 32 / s / 8, 235.294, rounding);
    book_near(item, "step on 4x4",
              book_serving_point(&large, "fsdp=2,tensor=8,cache_by=batch", 32).tpot_s[0],
              0.00864198, counts);
}

/* Requests of 512 tokens a second and chip when the memory is full and all of it is read in a step,
 * whatever the FLOPs. The book reads its 16 GB in 19 ms (19.5, cut), counts 70e9 parameters for
 * 70.6e9 and forgets the activations. */
static void full_slice(book_item *item, const char *slice, const char *plan, sm_dtype dtype,
                       double batch, double expected) {
    const double rounding = 0.0195122 / 0.019 - 1 + 0.01;
    book_serving q = llama(slice, dtype, 8.2e11);
    sm_serve_point p = book_serving_point(&q, plan, batch);
    book_near(item, "sequences that fit", book_serving_most(&q, plan), batch, 0.04);
    double read_s = p.decode.bound_weights_s + p.decode.bound_kv_s;
    book_near(item, "requests/s/chip", batch / (read_s * 512 * p.chips), expected, rounding);
}
static void qps_bf16(book_item *item) {
    full_slice(item, "tpu-v5e:4x4", "fsdp=2,tensor=8,cache_by=sequence", SM_BF16, 43, 0.276264);
}
static void qps_int8(book_item *item) {
    full_slice(item, "tpu-v5e:2x4", "tensor=8", SM_INT8, 43, 0.552529);
}
static void qps_int4(book_item *item) {
    full_slice(item, "tpu-v5e:2x2", "tensor=4", SM_INT4, 43, 1.10506);
}
static void qps2_bf16(book_item *item) {
    full_slice(item, "tpu-v5e:4x8", "fsdp=4,tensor=8,cache_by=sequence", SM_BF16, 140, 0.449733);
}
static void qps2_int8(book_item *item) {
    full_slice(item, "tpu-v5e:4x4", "fsdp=2,tensor=8,cache_by=sequence", SM_INT8, 140, 0.899465);
}
static void qps2_int4(book_item *item) {
    full_slice(item, "tpu-v5e:2x4", "tensor=8", SM_INT4, 140, 1.79893);
}

/* One matrix of an MLP of F = 28672 over 32 chips. */
static void slice_4x8(book_item *item) {
    sm_chip chip = v5e();
    book_give(&chip.memory_bytes_per_s, 8.1e11);
    sm_system pod = book_system("tpu-v5e:16x16");
    double ring_s = book_s_per_byte(&pod, SM_ALL_GATHER, "X=16,Y=16", "X");
    double moved = book_local_bytes("bf16[B,D]", "X=32", "B=64,D=8192");
    double matrix = book_local_bytes("bf16[D,F_X]", "X=32", "D=8192,F=28672");
    double flops = book_flops("bf16[B,D] bf16[D,F] -> bf16[B,F]", "B=64,D=8192,F=28672") / 32;
    book_is(item, "network", moved * ring_s, 1.16508e-05);
    book_is(item, "memory", book_read_s(&chip, matrix), 1.81235e-05);
    book_is(item, "math", flops / sm_chip_peak(&chip, SM_BF16, NULL), 4.76916e-06);
    book_give(&chip.memory_bytes_per_s, 8 / ring_s); /* the book's beta */
    book_is(item, "chips at which both take as long",
            32 * book_read_s(&chip, matrix) / (moved * ring_s), 56);
}

/* ---- batches that never end, from the simulator ---- */

static double one_second(void *context, double n, double cached, double prefill, double attended) {
    (void)context, (void)n, (void)cached, (void)attended;
    return prefill > 0 ? 1e-9 : 1; /* a decode step takes a second, a prompt next to nothing */
}

/* 32 sequences in flight, each of P = 8192 and G = 4096 tokens: one step in 128 frees one, that is
 * its whole cache. The batch fills with the first 32 and drains with the last. */
static void evictions(book_item *item) {
    enum { BATCH = 32, P = 8192, G = 4096, REQUESTS = 32 * 400 };
    sm_engine engine = {.step_s = one_second, .kv_tokens = 1e9, .tokens_per_step = 1, .chips = 1};
    sm_synthetic many = {.kind = SM_ARRIVALS_UNIFORM,
                         .rate_per_s = (double)BATCH / (G - 1),
                         .requests = REQUESTS,
                         .lengths = {P, 0, G, 0},
                         .seed = 1};
    sm_arrivals arrivals = sm_synthetic_arrivals(&many);
    sm_simulation simulation;
    sm_simulated out;
    sm_error err = {.status = SM_OK};
    sm_simulation_defaults(&simulation);
    simulation.engine = &engine;
    simulation.most_batch = BATCH;
    book_holds(item, "the simulation runs",
               sm_simulate(&simulation, &arrivals, NULL, &out, &err) == SM_OK);
    double freed = out.finished * BATCH / out.decoded_tokens; /* per step of a full batch */
    book_is(item, "sequences a step", freed, 0.0078125);
    book_is(item, "tokens a step", freed * (out.prompt_tokens + out.output_tokens) / out.finished,
            96);
}

/* Prefill servers that keep one server of generation busy; its step as of a full memory. */
static void disaggregated(book_item *item) {
    sm_chip chip = v5e();
    double step_s = book_read_s(&chip, chip.memory_bytes.value);
    double rounding = step_s / 0.019 - 1 + 1e-3;
    book_near(item, "of 32 sequences", prefill_s() * 32 / (512 * step_s), 2.99342, rounding);
    book_near(item, "of 43", prefill_s() * 43 / (512 * step_s), 4.02241, rounding);
}

static void q1(book_item *item) {
    sm_model large = book_model("llama-3.1-405b");
    double params = sm_model_params(&large).total - sm_model_params(&large).norm;
    sm_model model = book_of_params(params); /* the book counts the embedding too */
    sm_chip chip = v5e();
    double flops = sm_model_forward_flops(&model, 1, true).matmul;
    book_is(item, "FLOPs", flops, 8.11706e11);
    book_is(item, "math", flops / sm_chip_peak(&chip, SM_BF16, NULL), 0.00412034);
    book_is(item, "int8", book_read_s(&chip, params * sm_dtype_bytes(SM_INT8)), 0.494943);
    book_is(item, "bf16", book_read_s(&chip, params * sm_dtype_bytes(SM_BF16)), 0.989885);
}

static void q2(book_item *item) {
    sm_model model = book_model("llama-3.1-8b");
    sm_chip chip = v5e();
    double params = sm_model_params(&model).total - sm_model_params(&model).norm;
    double long_kv = 240 * sm_model_kv_bytes(&model, 8192, SM_INT8);
    double short_kv = 240 * sm_model_kv_bytes(&model, 2048, SM_INT8);
    book_exactly(item, "parameters", params, 8029995008.0);
    book_exactly(item, "KV of a token", sm_model_kv_bytes_per_token(&model, SM_INT8), 65536);
    book_exactly(item, "KV at 8192", long_kv, 128849018880.0);
    book_exactly(item, "KV at 2048", short_kv, 32212254720.0);
    book_exactly(item, "logits", book_local_bytes("fp32[240,128256]", "X=1", ""), 123125760);
    book_exactly(item, "gate and up", 2 * book_local_bytes("bf16[240,14336]", "X=1", ""), 13762560);
    book_is(item, "chips at 8192", (params + long_kv) / chip.memory_bytes.value, 8.55494);
    book_is(item, "chips at 2048", (params + short_kv) / chip.memory_bytes.value, 2.51514);
}

/* ---- 405B within 15 ms a token ---- */

/* The network when it overlaps fully, at the rate of rings on both axes as the book takes it. */
typedef struct slice_405b {
    book_serving serving;
    const char *plan;
    double network_s_per_token;
} slice_405b;

static slice_405b slice_405b_of(const char *text, const char *plan) {
    sm_chip chip = v5e();
    sm_model block = book_block(16384, 53248);
    sm_rules rules = {.decode = true, .stationary = true};
    sm_system pod = book_system("tpu-v5e:16x16");
    book_degrees ones = book_ones();
    slice_405b s = {
        {book_model("llama-3.1-405b"), book_system_of(&chip, text), SM_INT8, SM_INT8, 8192},
        plan,
        0};
    double mlp = book_serving_comm_bytes(book_serving_layer(&block, &rules), SM_ALL_REDUCE,
                                         SM_AXES_TENSOR, &ones, 1);
    s.network_s_per_token = s.serving.model.L * 2 * mlp * /* attention moves as much */
                            book_s_per_byte(&pod, SM_ALL_REDUCE, "X=16,Y=16", "XY");
    return s;
}

/* Cache, then weights or their matmuls: attention's own FLOPs, small, are those of no context. */
static double chip_s(const slice_405b *s, double batch) {
    book_serving empty = s->serving;
    empty.cached = 2;
    sm_step_price p = book_serving_point(&s->serving, s->plan, batch).decode;
    sm_step_price matmuls = book_serving_point(&empty, s->plan, batch).decode;
    return p.bound_kv_s + fmax(p.bound_weights_s, matmuls.bound_compute_s);
}

static double best_batch(const slice_405b *s) {
    double batch = 1;
    while (batch < 1000 &&
           fmax(chip_s(s, batch + 1), (batch + 1) * s->network_s_per_token) <= 0.015)
        batch++;
    return batch;
}

static void best_405b(book_item *item, const char *text, const char *plan, double batch,
                      double expected_s, double network_s, double per_chip) {
    slice_405b s = slice_405b_of(text, plan);
    double found = best_batch(&s), step_s = chip_s(&s, found);
    double longer_s = fmax(step_s, found * s.network_s_per_token);
    book_exactly(item, "batch", found, batch);
    book_is(item, "memory and math", step_s, expected_s);
    book_is(item, "network", found * s.network_s_per_token, network_s);
    /* the embedding, 0.5 % of the parameters, is looked up and not multiplied */
    book_near(item, "tokens/s/chip", found / longer_s / s.serving.system.chips, per_chip, 0.006);
}

static void q3(book_item *item) {
    sm_model model = book_model("llama-3.1-405b");
    sm_chip chip = v5e();
    double bytes =
        (sm_model_params(&model).total - sm_model_params(&model).norm) * sm_dtype_bytes(SM_INT8);
    book_is(item, "chips for the memory", bytes / chip.memory_bytes.value, 25.3658);
    book_is(item, "chips for 15 ms", book_read_s(&chip, bytes) / 0.015, 32.9962);
    book_is(item, "least step on 256", book_read_s(&chip, bytes / 256), 0.00193337);
    best_405b(item, "tpu-v5e:8x8", "fsdp=8,tensor=8,cache_by=batch", 143, 0.0149665, 0.0131203,
              148.958);
    best_405b(item, "tpu-v5e:8x16", "fsdp=16,tensor=8,cache_by=batch", 163, 0.00852986, 0.0149553,
              84.8958);
    best_405b(item, "tpu-v5e:16x16", "fsdp=32,tensor=8,cache_by=batch", 163, 0.00426493, 0.0149553,
              42.4479);
    sm_model block = book_block(16384, 53248);
    sm_system pod = book_system("tpu-v5e:16x16");
    threshold t = book_threshold(book_layer(&block, 1), &chip);
    t.tensor_s_per_byte = book_s_per_byte(&pod, SM_ALL_GATHER, "X=16,Y=16", "XY");
    book_is(item, "degree on two axes", book_tensor_critical(&t), 48.6505);
}

static const book_answer answers[] = {{"ai.cost.H100", cost_h100, 0},
                                      {"ai.cost.v5p", cost_v5p, 0},
                                      {"ai.cost.v5e", cost_v5e, 0},
                                      {"ai.kv", kv, 0},
                                      {"ai.mem32", memory_32, 0},
                                      {"ai.lat32", latency_32, 0},
                                      {"ai.ici", tensor_limit, 0},
                                      {"ai.bcrit", critical, 0},
                                      {"ai.min.bf16", least_bf16, 0},
                                      {"ai.min.int8", least_int8, 0},
                                      {"ai.min.int4", least_int4, 0},
                                      {"ai.fullhbm", full_memory, 0},
                                      {"ai.qps.bf16", qps_bf16, 0},
                                      {"ai.qps.int8", qps_int8, 0},
                                      {"ai.qps.int4", qps_int4, 0},
                                      {"ai.qps2.bf16", qps2_bf16, 0},
                                      {"ai.qps2.int8", qps2_int8, 0},
                                      {"ai.qps2.int4", qps2_int4, 0},
                                      {"ai.4x8", slice_4x8, 0},
                                      {"ai.prefill", prefill, 0},
                                      {"ai.evict", evictions, 0},
                                      {"ai.disagg", disaggregated, 0},
                                      {"ai.q1", q1, 0},
                                      {"ai.q2", q2, 0},
                                      {"ai.q3", q3, 0}};

const book_chapter book_applied_inference = {"08-applied-inference", answers,
                                             (int)(sizeof answers / sizeof *answers)};
