/* "All About Transformer Inference": part 7, as far as sizes, FLOPs and rooflines go. */
#include "book.h"
#include "instruments.h"
#include "thresholds.h"
#include <math.h>
#include <stddef.h>

#define WIDE "D=1e8,F=1e8,B=1"
#define SERVING "serving comes later"

static sm_chip v5e(double memory_bytes_per_s)
{
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], 197e12);
    book_give(&chip.flops_per_s[SM_INT8], 394e12);
    book_give(&chip.memory_bytes_per_s, memory_bytes_per_s);
    book_give(&chip.memory_bytes, 16e9);
    return chip;
}

static double batch(const sm_chip *chip, const char *einsum)
{
    return book_critical(chip, einsum, WIDE, "B", SM_MEMORY_HBM);
}

static void critical(book_item *item)
{
    sm_chip tpu = v5e(8.2e11), gpu = book_chip("h100-sxm");
    book_give(&gpu.flops_per_s[SM_BF16], 990e12);
    book_is(item, "v5e", batch(&tpu, "bf16[B,D] bf16[D,F] -> bf16[B,F]"), 240.244);
    book_is(item, "H100", batch(&gpu, "bf16[B,D] bf16[D,F] -> bf16[B,F]"), 295.522);
}

static void critical_int8(book_item *item)
{
    sm_chip chip = v5e(8.2e11);
    book_is(item, "int8 weights", batch(&chip, "bf16[B,D] int8[D,F] -> bf16[B,F]"), 120.122);
    book_is(item, "int8 alone", batch(&chip, "int8[B,D] int8[D,F] -> int8[B,F]"), 240.244);
}

/* Fused attention of a whole sequence, every head with keys of its own: FLOPs per byte. */
static void prefill(book_item *item)
{
    sm_model model = book_transformer(8192, 32768, 64, 64, 128, 1, 1000);
    const sm_partition *layer = book_layer(&model, 480);
    book_degrees ones = book_ones();
    for (int i = 0; layer != NULL && i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        double bytes = 0;
        if (w->kind != SM_OP_ATTENTION || w->phase != SM_PHASE_FORWARD) continue;
        for (int t = 0; t < w->terms; t++) bytes += book_size(w->bytes[t], &ones, 1);
        book_is(item, "intensity at T=480", book_size(w->flops, &ones, 1) / bytes, 240);
    }
}

static void kv_13b(book_item *item)
{
    sm_model model = book_model("llama-2-13b");
    double bytes = sm_model_kv_bytes(&model, 8192, SM_BF16);
    book_exactly(item, "bytes", bytes, 6710886400.0);
    book_exactly(item, "GiB", bytes / (1 << 30), 6.25);
}

static void activation(book_item *item)
{
    book_exactly(item, "bytes", book_local_bytes("bf16[8192,5120]", "X=1", ""), 83886080);
}

/* Width of the MLP per degree of tensor parallelism. */
static double tensor_alpha(const char *text, const char *mesh)
{
    enum { F = 32768 };
    sm_model model = book_block(8192, F);
    sm_system system = book_system(text);
    threshold t = book_threshold(book_layer(&model, 1), &system.chip);
    t.tensor_s_per_byte = book_s_per_byte(&system, SM_ALL_GATHER, mesh, "X");
    return F / book_tensor_critical(&t);
}

static void prefill_sharding(book_item *item)
{
    book_is(item, "v5e", tensor_alpha("tpu-v5e:16x16", "X=16,Y=16"), 2188.89);
    book_is(item, "v5p", tensor_alpha("tpu-v5p:16x16x16", "X=16,Y=16,Z=16"), 2550);
}

static void server(book_item *item)
{
    sm_system slice = book_system("tpu-v5e:2x4");
    book_exactly(item, "GiB", slice.chips * slice.chip.memory_bytes.value / (1 << 30), 128);
}

static sm_model toy(int K)
{
    sm_model model = book_transformer(4096, 16384, 32, K, 256, 64, 32128);
    model.tied = true;
    return model;
}

static double without_norms(const sm_model *model)
{
    sm_params p = sm_model_params(model);
    return p.total - p.norm - p.router;
}

static void q1(book_item *item)
{
    sm_model model = toy(8);
    book_exactly(item, "parameters", without_norms(&model), 18385207296.0);
    book_exactly(item, "bytes", sm_model_kv_bytes_per_token(&model, SM_INT8), 262144);
}

/* Sequences whose KV cache fits beside the weights, int8 both. */
static double sequences(int K, double T, double memory_bytes)
{
    sm_model model = toy(K);
    sm_system slice = book_system("tpu-v5e:4x4");
    double left = slice.chips * memory_bytes - without_norms(&model) * sm_dtype_bytes(SM_INT8);
    return left / sm_model_kv_bytes(&model, T, SM_INT8);
}

static void q2(book_item *item)
{
    book_is(item, "sequences", sequences(8, 128000, 16e9), 7.08492);
    book_is(item, "of 131072, 16 GiB", sequences(8, 131072, 17179869184.0), 7.46492);
    book_is(item, "with one KV head", sequences(1, 128000, 16e9), 56.8758);
}

static double load_s(double bytes, int chips, double memory_bytes_per_s)
{
    sm_chip chip = v5e(memory_bytes_per_s);
    return book_read_s(&chip, bytes / chips);
}

static void q3(book_item *item)
{
    sm_model model = toy(8);
    double bytes = without_norms(&model) * sm_dtype_bytes(SM_INT8);
    book_is(item, "seconds", load_s(bytes, 16, 8.1e11), 0.00141861);
    book_is(item, "with 8.2e11", load_s(bytes, 16, 8.2e11), 0.00140131);
}

static sm_model toy_experts(void)
{
    sm_model model = toy(8);
    sm_layer_kind *kind = &model.kind[0];
    kind->E = 16;
    kind->k_top = 2;
    kind->F_expert = kind->F;
    kind->F = 0;
    return model;
}

static void q5_1(book_item *item)
{
    sm_model model = toy_experts(), dense = toy(8);
    sm_params p = sm_model_params(&model);
    double active = p.active - p.norm - p.router;
    book_exactly(item, "parameters", without_norms(&model), 211658735616.0);
    book_exactly(item, "active", active, 31270109184.0);
    book_is(item, "against dense", without_norms(&model) / without_norms(&dense), 11.5124);
    book_is(item, "active against dense", active / without_norms(&dense), 1.70083);
}

static void q5_2(book_item *item)
{
    sm_chip chip = v5e(8.2e11);
    sm_model model = toy_experts();
    const sm_partition *layer = book_layer(&model, 4096);
    double slots = book_critical(&chip, "bf16[E,C,D] bf16[E,D,F] -> bf16[E,C,F]",
                                 "E=16,D=1e8,F=1e8,C=1", "C", SM_MEMORY_HBM);
    book_is(item, "B", layer != NULL ? slots * 4096 / layer->program.size[SM_DIM_C] : NAN, 1920);
}

static void q5_4(book_item *item)
{
    sm_model model = toy_experts();
    book_is(item, "FLOPs per token", sm_model_forward_flops(&model, 1, true).matmul, 62540218368.0);
}

static void q6_1(book_item *item)
{
    sm_model model = toy_experts();
    sm_params p = sm_model_params(&model);
    double rest = without_norms(&model) - p.experts;
    double experts = p.experts / 128, replicated = experts + rest / 8;
    double sharded = without_norms(&model) / 128;
    book_is(item, "experts of a chip", experts, 1610610000);
    book_is(item, "the rest over 8", rest / 8, 687538000);
    book_is(item, "load", load_s(replicated, 1, 8.1e11), 0.00283722);
    book_is(item, "load, all over 128", load_s(sharded, 1, 8.1e11), 0.00204146);
    sm_chip chip = v5e(8.1e11);
    book_is(item, "free", chip.memory_bytes.value - replicated, 13701800000.0);
    book_is(item, "free, all over 128", chip.memory_bytes.value - sharded, 14346400000.0);
}

static void q6_2(book_item *item)
{
    sm_model model = toy_experts();
    sm_chip chip = v5e(8.1e11);
    double least = without_norms(&model) / chip.memory_bytes.value;
    book_is(item, "chips, int8", least * sm_dtype_bytes(SM_INT8), 13.2287);
    book_is(item, "chips, bf16", least * sm_dtype_bytes(SM_BF16), 26.4573);
    sm_system small = book_system("tpu-v5e:4x4"), large = book_system("tpu-v5e:4x8");
    book_holds(item, "4x4 and 4x8 are the slices", small.chips >= 14 && large.chips >= 27);
}

static void appendix_a(book_item *item)
{
    double params = book_local_bytes("int8[N,D,F]", "X=1", "N=2,D=8192,F=32768");
    double bytes = book_local_bytes("bf16[N,D,F_X]", "X=4", "N=2,D=8192,F=32768");
    book_exactly(item, "parameters", params, 536870912);
    book_is(item, "seconds", load_s(bytes, 1, 8.2e11), 0.00032736);
    bytes = book_local_bytes("bf16[N_X]", "X=4", "N=600M");
    book_is(item, "seconds for 600M", load_s(bytes, 1, 8.2e11), 0.000365854);
}

/* An array whose eighth takes as long to send as a hop takes to start. */
static double latency_bytes(void)
{
    sm_system slice = book_system("tpu-v5e:16x16");
    sm_curve curve = book_curve(&slice, SM_PERMUTE, "X=16,Y=16", "X");
    sm_line hop = book_line(&curve, NULL);
    return hop.latency_s / hop.s_per_byte;
}

static void appendix_c_buffer(book_item *item)
{
    book_is(item, "bytes over 8 chips", 8 * latency_bytes(), 360000);
}

static void appendix_c_array(book_item *item)
{
    double bytes = book_local_bytes("int8[16,8192]", "X=1", "");
    book_exactly(item, "bytes", bytes, 131072);
    book_is(item, "chips beyond which latency counts", bytes / latency_bytes(), 2.91271);
}

static const book_answer answers[] = {
    {"inf.bcrit.general", critical, 0},    {"inf.bcrit.int8w", critical_int8, 0},
    {"inf.attn.prefill", prefill, 0},      {"inf.attn.gen", NULL, SERVING},
    {"inf.quiz.b4", NULL, SERVING},        {"inf.quiz.b256", NULL, SERVING},
    {"inf.kv13b", kv_13b, 0},              {"inf.act8k", activation, 0},
    {"inf.table.MHA.b1", NULL, SERVING},   {"inf.table.MHA.b8", NULL, SERVING},
    {"inf.table.MHA.b16", NULL, SERVING},  {"inf.table.MHA.b32", NULL, SERVING},
    {"inf.table.MHA.b64", NULL, SERVING},  {"inf.table.MHA.b240", NULL, SERVING},
    {"inf.table.GQA5.b1", NULL, SERVING},  {"inf.table.GQA5.b8", NULL, SERVING},
    {"inf.table.GQA5.b16", NULL, SERVING}, {"inf.table.GQA5.b32", NULL, SERVING},
    {"inf.table.GQA5.b64", NULL, SERVING}, {"inf.table.GQA5.b240", NULL, SERVING},
    {"inf.prefill.mp", prefill_sharding, 0}, {"inf.gen.mp", NULL, SERVING},
    {"inf.host", server, 0},               {"inf.prefix", NULL, SERVING},
    {"inf.q1", q1, 0},                     {"inf.q2", q2, 0},
    {"inf.q3", q3, 0},                     {"inf.q4", NULL, SERVING},
    {"inf.q5.1", q5_1, 0},                 {"inf.q5.2", q5_2, 0},
    {"inf.q5.4", q5_4, 0},                 {"inf.q6.1", q6_1, 0},
    {"inf.q6.2", q6_2, 0},                 {"inf.q7", NULL, SERVING},
    {"inf.appA", appendix_a, 0},           {"inf.appC.360k", appendix_c_buffer, 0},
    {"inf.appC.131k", appendix_c_array, 0}};

const book_chapter book_inference = {"inference", false, answers,
                                     (int)(sizeof answers / sizeof *answers)};
