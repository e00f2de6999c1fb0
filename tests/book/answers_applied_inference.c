/* "Serving LLaMA 3 on TPUs": part 8, as far as sizes, FLOPs and rooflines go. */
#include "book.h"
#include "instruments.h"
#include "thresholds.h"
#include <stddef.h>

#define WIDE "D=1e8,F=1e8,B=1"
#define SERVING "serving comes later"

static sm_chip v5e(void)
{
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], 197e12);
    book_give(&chip.flops_per_s[SM_INT8], 394e12);
    book_give(&chip.memory_bytes_per_s, 8.2e11);
    book_give(&chip.memory_bytes, 16e9);
    return chip;
}

static double flops_per_usd(const char *name, double flops_per_s, double usd_per_hour)
{
    sm_chip chip = book_chip(name);
    book_give(&chip.flops_per_s[SM_BF16], flops_per_s);
    chip.prices = 1;
    chip.price[0].usd_per_chip_hour = usd_per_hour;
    return sm_chip_peak(&chip, SM_BF16, NULL) * 3600 / sm_chip_usd_per_hour(&chip);
}

static void cost_h100(book_item *item)
{
    book_is(item, "FLOPs per dollar", flops_per_usd("h100-sxm", 990e12, 10.8), 3.3e17);
}
static void cost_v5p(book_item *item)
{
    book_is(item, "FLOPs per dollar", flops_per_usd("tpu-v5p", 459e12, 4.2), 3.93429e17);
}
static void cost_v5e(book_item *item)
{
    book_is(item, "FLOPs per dollar", flops_per_usd("tpu-v5e", 197e12, 1.2), 5.91e17);
}

static double kv_70b(double T, sm_dtype kv)
{
    sm_model model = book_model("llama-3.1-70b");
    return sm_model_kv_bytes(&model, T, kv);
}

/* The chips of the book: its 1.288e12 bytes rounded to 1.3e12. */
static void kv(book_item *item)
{
    double whole = 240 * kv_70b(32768, SM_INT8);
    book_exactly(item, "of a token", kv_70b(1, SM_INT8), 163840);
    book_exactly(item, "of a sequence", kv_70b(32768, SM_INT8), 5368709120.0);
    book_exactly(item, "of 240", whole, 1288490188800.0);
    sm_chip chip = v5e();
    book_near(item, "chips", (whole + 70e9 * sm_dtype_bytes(SM_INT8)) / chip.memory_bytes.value,
              85.625, 1.3 / 1.28849 - 1);
}

/* The book takes 160e3 bytes per token for 163,840. */
static void memory_32(book_item *item)
{
    double cache = 32 * kv_70b(8192, SM_INT8), total = cache + 70e9 * sm_dtype_bytes(SM_INT8);
    sm_chip chip = v5e();
    book_exactly(item, "KV", cache, 42949672960.0);
    book_near(item, "total", total, 1.11943e11, 0.01);
    book_near(item, "chips", total / chip.memory_bytes.value, 7, 0.01);
}

/* The book rounds 2189 to 2200. */
static void tensor_limit(book_item *item)
{
    sm_model model = book_block(8192, 28672);
    sm_system pod = book_system("tpu-v5e:16x16");
    pod.chip = v5e();
    threshold t = book_threshold(book_layer(&model, 1), &pod.chip);
    t.tensor_s_per_byte = book_s_per_byte(&pod, SM_ALL_GATHER, "X=16,Y=16", "XY");
    book_near(item, "degree", book_tensor_critical(&t), 26.0655, 2200 / 2188.89 - 1 + 1e-4);
}

static double batch(const char *einsum)
{
    sm_chip chip = v5e();
    return book_critical(&chip, einsum, WIDE, "B", SM_MEMORY_HBM);
}

static void critical(book_item *item)
{
    book_is(item, "bf16", batch("bf16[B,D] bf16[D,F] -> bf16[B,F]"), 240);
    book_is(item, "int8 weights", batch("bf16[B,D] int8[D,F] -> bf16[B,F]"), 120);
    book_is(item, "int8", batch("int8[B,D] int8[D,F] -> int8[B,F]"), 240);
}

/* Weights and KV cache in one dtype on a slice: least chips, memory left, caches of 8192 tokens. */
static void least_slice(book_item *item, sm_dtype dtype, const char *slice_text, double chips,
                        double left, double token)
{
    sm_system slice = book_system(slice_text);
    slice.chip = v5e();
    double weights = 70e9 * sm_dtype_bytes(dtype), memory = slice.chip.memory_bytes.value;
    book_is(item, "chips", weights / memory, chips);
    book_is(item, "left", slice.chips * memory - weights, left);
    book_is(item, "caches", (slice.chips * memory - weights) / kv_70b(8192, dtype), 43.2134);
    book_exactly(item, "KV of a token", kv_70b(1, dtype), token);
}
static void least_bf16(book_item *item)
{
    least_slice(item, SM_BF16, "tpu-v5e:4x4", 8.75, 116e9, 327680);
}
static void least_int8(book_item *item)
{
    least_slice(item, SM_INT8, "tpu-v5e:2x4", 4.375, 58e9, 163840);
}
static void least_int4(book_item *item)
{
    least_slice(item, SM_INT4, "tpu-v5e:2x2", 2.1875, 29e9, 81920);
}

static void full_memory(book_item *item)
{
    sm_chip chip = v5e();
    double s = book_read_s(&chip, chip.memory_bytes.value);
    book_is(item, "step", s, 0.0195122);
    book_is(item, "512 steps", 512 * s, 9.99024);
    double weights = book_local_bytes("int4[P_X]", "X=4", "P=70e9");
    book_is(item, "weights in int4", book_read_s(&chip, weights), 0.0106707);
}

static void prefill(book_item *item)
{
    sm_model model = book_of_params(70e9);
    sm_chip chip = v5e();
    double flops = 8192 * sm_model_forward_flops(&model, 1, true).matmul;
    book_is(item, "seconds", flops / (16 * sm_chip_peak(&chip, SM_BF16, NULL) * 0.4), 0.909645);
}

static void q1(book_item *item)
{
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

static void q2(book_item *item)
{
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

static const book_answer answers[] = {
    {"ai.cost.H100", cost_h100, 0},  {"ai.cost.v5p", cost_v5p, 0},
    {"ai.cost.v5e", cost_v5e, 0},    {"ai.kv", kv, 0},
    {"ai.mem32", memory_32, 0},      {"ai.lat32", NULL, SERVING},
    {"ai.ici", tensor_limit, 0},     {"ai.bcrit", critical, 0},
    {"ai.min.bf16", least_bf16, 0},  {"ai.min.int8", least_int8, 0},
    {"ai.min.int4", least_int4, 0},  {"ai.fullhbm", full_memory, 0},
    {"ai.qps.bf16", NULL, SERVING},  {"ai.qps.int8", NULL, SERVING},
    {"ai.qps.int4", NULL, SERVING},  {"ai.qps2.bf16", NULL, SERVING},
    {"ai.qps2.int8", NULL, SERVING}, {"ai.qps2.int4", NULL, SERVING},
    {"ai.4x8", NULL, SERVING},       {"ai.prefill", prefill, 0},
    {"ai.evict", NULL, SERVING},     {"ai.disagg", NULL, SERVING},
    {"ai.q1", q1, 0},                {"ai.q2", q2, 0},
    {"ai.q3", NULL, SERVING}};

const book_chapter book_applied_inference = {"applied-inference", false, answers,
                                             (int)(sizeof answers / sizeof *answers)};
