/* "All About Transformer Inference": part 7, sizes, FLOPs, rooflines; decode steps from serve.h. */
#include "model_of.h"
#include "book.h"
#include "instruments_serve.h"
#include "thresholds.h"
#include "partition.h"
#include <math.h>
#include <stdio.h>

#define WIDE "D=1e8,F=1e8,B=1"

static sm_chip v5e(double memory_bytes_per_s) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.flops_per_s[SM_BF16], 197e12);
    book_give(&chip.flops_per_s[SM_INT8], 394e12);
    book_give(&chip.memory_bytes_per_s, memory_bytes_per_s);
    book_give(&chip.memory_bytes, 16e9);
    return chip;
}

static double batch(const sm_chip *chip, const char *einsum) {
    return book_critical(chip, einsum, WIDE, "B", SM_MEMORY_HBM);
}

static void critical(book_item *item) {
    sm_chip tpu = v5e(8.2e11), gpu = book_chip("h100-sxm");
    book_give(&gpu.flops_per_s[SM_BF16], 990e12);
    book_is(item, "v5e", batch(&tpu, "bf16[B,D] bf16[D,F] -> bf16[B,F]"), 240.244);
    book_is(item, "H100", batch(&gpu, "bf16[B,D] bf16[D,F] -> bf16[B,F]"), 295.522);
}

static void critical_int8(book_item *item) {
    sm_chip chip = v5e(8.2e11);
    book_is(item, "int8 weights", batch(&chip, "bf16[B,D] int8[D,F] -> bf16[B,F]"), 120.122);
    book_is(item, "int8 alone", batch(&chip, "int8[B,D] int8[D,F] -> int8[B,F]"), 240.244);
}

/* Fused attention of a whole sequence, every head with keys of its own: FLOPs per byte. */
static void prefill(book_item *item) {
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

static void kv_13b(book_item *item) {
    sm_model model = book_model("llama-2-13b");
    double bytes = sm_model_kv_bytes(&model, 8192, SM_BF16);
    book_exactly(item, "bytes", bytes, 6710886400.0);
    book_exactly(item, "GiB", bytes / (1 << 30), 6.25);
}

static void activation(book_item *item) {
    book_exactly(item, "bytes", book_local_bytes("bf16[8192,5120]", "X=1", ""), 83886080);
}

/* Width of the MLP per degree of tensor parallelism. */
static double tensor_alpha(const char *text, const char *mesh) {
    enum { F = 32768 };
    sm_model model = book_block(8192, F);
    sm_system system = book_system(text);
    threshold t = book_threshold(book_layer(&model, 1), &system.chip);
    t.tensor_s_per_byte = book_s_per_byte(&system, SM_ALL_GATHER, mesh, "X");
    return F / book_tensor_critical(&t);
}

static void prefill_sharding(book_item *item) {
    book_is(item, "v5e", tensor_alpha("tpu-v5e:16x16", "X=16,Y=16"), 2188.89);
    book_is(item, "v5p", tensor_alpha("tpu-v5p:16x16x16", "X=16,Y=16,Z=16"), 2550);
}

static void server(book_item *item) {
    sm_system slice = book_system("tpu-v5e:2x4");
    book_exactly(item, "GiB", slice.chips * slice.chip.memory_bytes.value / (1 << 30), 128);
}

static sm_model toy(int K) {
    return book_transformer_with((const int[]){4096, 16384, 32, K, 256, 64, 32128}, BOOK_TIED);
}

static double without_norms(const sm_model *model) {
    sm_params p = sm_model_params(model);
    return p.total - p.norm - p.router;
}

static void q1(book_item *item) {
    sm_model model = toy(8);
    book_exactly(item, "parameters", without_norms(&model), 18385207296.0);
    book_exactly(item, "bytes", sm_model_kv_bytes_per_token(&model, SM_INT8), 262144);
}

/* Sequences whose KV cache fits beside the weights, int8 both. */
static double sequences(int K, double T, double memory_bytes) {
    sm_model model = toy(K);
    sm_system slice = book_system("tpu-v5e:4x4");
    double left = slice.chips * memory_bytes - without_norms(&model) * sm_dtype_bytes(SM_INT8);
    return left / sm_model_kv_bytes(&model, T, SM_INT8);
}

static void q2(book_item *item) {
    book_is(item, "sequences", sequences(8, 128000, 16e9), 7.08492);
    book_is(item, "of 131072, 16 GiB", sequences(8, 131072, 17179869184.0), 7.46492);
    book_is(item, "with one KV head", sequences(1, 128000, 16e9), 56.8758);
}

static double load_s(double bytes, int chips, double memory_bytes_per_s) {
    sm_chip chip = v5e(memory_bytes_per_s);
    return book_read_s(&chip, bytes / chips);
}

static void q3(book_item *item) {
    sm_model model = toy(8);
    double bytes = without_norms(&model) * sm_dtype_bytes(SM_INT8);
    book_is(item, "seconds", load_s(bytes, 16, 8.1e11), 0.00141861);
    book_is(item, "with 8.2e11", load_s(bytes, 16, 8.2e11), 0.00140131);
}

/* ---- decode steps ---- */

/* Fused attention of one query, every head with keys of its own: FLOPs per byte. */
static void generation(book_item *item) {
    sm_model model = book_transformer(8192, 32768, 64, 64, 128, 1, 1000);
    sm_rules rules = {.decode = true};
    const sm_partition *layer = book_serving_layer(&model, &rules);
    book_degrees ones = book_ones();
    for (int i = 0; layer != NULL && i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        double bytes = 0;
        if (w->kind != SM_OP_ATTENTION) continue;
        for (int t = 0; t < w->terms; t++)
            bytes += book_size(w->bytes[t], &ones, 1) * (w->bytes[t].per_key ? 8192 : 1);
        book_is(item, "intensity at S=8192", book_size(w->flops, &ones, 1) * 8192 / bytes,
                0.999878);
    }
}

static double quiz_s(double batch) {
    sm_chip chip = v5e(8.1e11);
    book_serving q = {book_model_30b(), book_system_of(&chip, "tpu-v5e:4x4"), SM_INT8, SM_INT8,
                      8192};
    return book_serving_point(&q, "fsdp=2,tensor=8,cache_by=batch", batch).tpot_s[0];
}
static void quiz_4(book_item *item) { book_is(item, "step", quiz_s(4), 0.00256765); }
static void quiz_256(book_item *item) { book_is(item, "step", quiz_s(256), 0.0210548); }

/* LLaMA-2 13B with the table's 26 GB of weights, all of them read in a step: the vocabulary makes
 * up for what the catalogue's embedding, which is only looked up, has less. */
static sm_model table_model(int K) {
    sm_model bare = book_transformer_with((const int[]){5120, 13824, 40, K, 128, 40, 1}, BOOK_TIED);
    int V = (int)lround((13e9 - sm_model_params(&bare).total) / bare.D);
    return book_transformer_with((const int[]){5120, 13824, 40, K, 128, 40, V}, BOOK_TIED);
}

/* One row: GB of cache, GB in all, ms, tokens/s; does it fit into 128 GiB. */
static void table_row(book_item *item, int K, double batch, double kv, double total, double ms,
                      double tokens_per_s, bool fits) {
    sm_chip chip = v5e(8.2e11);
    book_give(&chip.memory_bytes, 17179869184.0);
    book_serving q = {table_model(40), book_system_of(&chip, "tpu-v5e:2x4"), SM_BF16, SM_BF16,
                      8192};
    double weights = sm_model_params(&q.model).total * sm_dtype_bytes(SM_BF16);
    q.model = table_model(K); /* grouped queries, the book says, leave the weights as they are */
    sm_serve_point p = book_serving_point(&q, "tensor=8", batch);
    book_is(item, "cache", p.memory.kv * 8 / 1e9, kv);
    book_is(item, "in all", (p.memory.kv * 8 + weights) / 1e9, total);
    book_is(item, "step", p.tpot_s[0] * 1e3, ms);
    book_is(item, "tokens/s", batch / p.tpot_s[0], tokens_per_s);
    book_holds(item, "it fits as the book says", p.fits == fits);
}

#define ROW(name, K, batch, ...)                                                                   \
    static void name(book_item *item) { table_row(item, K, batch, __VA_ARGS__); }
ROW(mha_1, 40, 1, 6.7, 32.7, 4.98476, 200.612, true)
ROW(mha_8, 40, 8, 53.6, 79.6, 12.1341, 659.296, true)
ROW(mha_16, 40, 16, 107.2, 133.2, 20.3049, 787.988, true)
ROW(mha_32, 40, 32, 214.4, 240.4, 36.6463, 873.211, false)
ROW(mha_64, 40, 64, 428.8, 454.8, 69.3293, 923.131, false)
ROW(mha_240, 40, 240, 1608, 1634, 249.085, 963.525, false)
ROW(gqa_1, 8, 1, 1.34, 27.34, 4.16768, 239.941, true)
ROW(gqa_8, 8, 8, 10.72, 36.72, 5.59756, 1429.19, true)
ROW(gqa_16, 8, 16, 21.44, 47.44, 7.23171, 2212.48, true)
ROW(gqa_32, 8, 32, 42.88, 68.88, 10.5, 3047.62, true)
ROW(gqa_64, 8, 64, 85.76, 111.76, 17.0366, 3756.62, true)
ROW(gqa_240, 8, 240, 321.6, 347.6, 52.9878, 4529.34, false)

/* Chips at which reading a matrix takes as long as moving the activations in and out. */
static double decode_tensor(const char *text, double memory_bytes_per_s, double batch) {
    enum { D = 8192, F = 16384 };
    sm_system system = book_system(text);
    book_give(&system.chip.memory_bytes_per_s, memory_bytes_per_s);
    sm_model model = book_block(D, F);
    sm_rules rules = {.decode = true, .stationary = true};
    book_degrees ones = book_ones();
    double moved = book_serving_comm_bytes(book_serving_layer(&model, &rules), SM_ALL_REDUCE,
                                           SM_AXES_TENSOR, &ones, batch);
    double network_s = moved * book_s_per_byte(&system, SM_ALL_REDUCE, "X=16,Y=16", "X");
    return book_read_s(&system.chip, book_local_bytes("bf16[N,D,F]", "X=1", "N=2,D=8192,F=16384")) /
           network_s;
}

static void generation_sharding(book_item *item) {
    book_is(item, "beta 8", decode_tensor("tpu-v5e:16x16", 8 * 9e10, 32), 64);
    book_is(item, "v5e", decode_tensor("tpu-v5e:16x16", 8.1e11, 32), 56.8889);
}

/* Two of three tokens are in the cache. */
static void shared_prefix(book_item *item) {
    book_serving q = {book_transformer(4096, 16384, 32, 8, 128, 32, 16), book_system("tpu-v5e:1"),
                      SM_BF16, SM_BF16, 8};
    book_is(item, "compute left", book_prefill_flops(&q, 3, 2) / book_prefill_flops(&q, 3, 0),
            1.0 / 3);
}

/* The cache of 8 heads is spread over 16 chips by positions or by sequences. The slice has no
 * wraparound: a gather passes 3 + 3 hops, four times a layer. */
static void q4(book_item *item) {
    sm_chip chip = v5e(8.1e11);
    book_serving q = {toy(8), book_system_of(&chip, "tpu-v5e:4x4"), SM_INT8, SM_INT8, 128000};
    sm_system pod = book_system("tpu-v5e:16x16");
    double ring = 2 * 16384 / tensor_alpha("tpu-v5e:16x16", "X=16,Y=16");
    sm_serve_point seven = book_serving_point(&q, "fsdp=2,tensor=8,cache_by=sequence", 7);
    book_is(item, "weights", seven.decode.bound_weights_s, 0.00141861);
    book_is(item, "cache", seven.decode.bound_kv_s, 0.0181235);
    book_is(item, "step", seven.tpot_s[0], 0.0195421);
    q.cached = 8192;
    book_is(item, "step of 32",
            book_serving_point(&q, "fsdp=2,tensor=8,cache_by=batch", 32).tpot_s[0], 0.00672104);
    book_is(item, "degree on rings", ring, 14.9702);
    sm_curve gather = book_curve(&q.system, SM_ALL_GATHER, "X=4,Y=4", "XY");
    double floor_s = 4 * q.model.L * book_line(&gather, NULL).line.latency_s;
    double ring_s = book_s_per_byte(&pod, SM_ALL_GATHER, "X=16,Y=16", "X");
    double link_s = book_s_per_byte(&q.system, SM_PERMUTE, "X=4,Y=4", "X"); /* one way */
    book_is(item, "degree on lines", ring * ring_s / link_s, 7.48508);
    book_is(item, "latency", floor_s, 0.001536);
}

static sm_model toy_experts(void) {
    const char *members =
        sm_arena_printf(models_arena(), BOOK_TIED ", %s", book_experts(16, 2, 16384));
    return book_transformer_with((const int[]){4096, 16384, 32, 8, 256, 64, 32128}, members);
}

static void q5_1(book_item *item) {
    sm_model model = toy_experts(), dense = toy(8);
    sm_params p = sm_model_params(&model);
    double active = p.active - p.norm - p.router;
    book_exactly(item, "parameters", without_norms(&model), 211658735616.0);
    book_exactly(item, "active", active, 31270109184.0);
    book_is(item, "against dense", without_norms(&model) / without_norms(&dense), 11.5124);
    book_is(item, "active against dense", active / without_norms(&dense), 1.70083);
}

static void q5_2(book_item *item) {
    sm_chip chip = v5e(8.2e11);
    sm_model model = toy_experts();
    const sm_partition *layer = book_layer(&model, 4096);
    double slots = book_critical(&chip, "bf16[E,C,D] bf16[E,D,F] -> bf16[E,C,F]",
                                 "E=16,D=1e8,F=1e8,C=1", "C", SM_MEMORY_HBM);
    book_is(item, "B", slots * 4096 / book_layer_size(layer, "C"), 1920);
}

static void q5_4(book_item *item) {
    sm_model model = toy_experts();
    book_is(item, "FLOPs per token", sm_model_forward_flops(&model, 1, true).matmul, 62540218368.0);
}

static void q6_1(book_item *item) {
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

static void q6_2(book_item *item) {
    sm_model model = toy_experts();
    sm_chip chip = v5e(8.1e11);
    double least = without_norms(&model) / chip.memory_bytes.value;
    book_is(item, "chips, int8", least * sm_dtype_bytes(SM_INT8), 13.2287);
    book_is(item, "chips, bf16", least * sm_dtype_bytes(SM_BF16), 26.4573);
    sm_system small = book_system("tpu-v5e:4x4"), large = book_system("tpu-v5e:4x8");
    book_holds(item, "4x4 and 4x8 are the slices", small.chips >= 14 && large.chips >= 27);
}

/* ---- 2D weight-stationary against 1D ---- */

/* Seconds per token of an MLP of F = 4 D: fsdp on one axis of the torus, tensor on two; or tensor
 * on all three. */
typedef struct flat {
    const sm_partition *layer;
    double one_s, all_reduce_two_s, all_reduce_three_s; /* per byte, by axes */
} flat;

static double two_dimensional_s(const flat *f, double x, double chips) {
    book_degrees d = book_ones();
    d.axis[SM_AXIS_FSDP] = x;
    d.axis[SM_AXIS_TENSOR] = chips / x;
    sm_axes fsdp = SM_BIT(SM_AXIS_FSDP);
    return f->one_s * (book_serving_comm_bytes(f->layer, SM_ALL_GATHER, fsdp, &d, 1) +
                       book_serving_comm_bytes(f->layer, SM_REDUCE_SCATTER, fsdp, &d, 1)) +
           f->all_reduce_two_s *
               book_serving_comm_bytes(f->layer, SM_ALL_REDUCE, SM_AXES_TENSOR, &d, 1);
}

static double best_x(const flat *f, double chips) {
    double low = 1e-3, high = chips;
    for (int i = 0; i < 200; i++) {
        double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (two_dimensional_s(f, a, chips) < two_dimensional_s(f, b, chips)) high = b;
        else low = a;
    }
    return low;
}

static double one_dimensional_s(const flat *f) {
    book_degrees ones = book_ones();
    return f->all_reduce_three_s *
           book_serving_comm_bytes(f->layer, SM_ALL_REDUCE, SM_AXES_TENSOR, &ones, 1);
}

static double chips_from_which_2d_wins(const flat *f) {
    double low = 1, high = 1e6;
    for (int i = 0; i < 100; i++) {
        double chips = sqrt(low * high);
        if (two_dimensional_s(f, best_x(f, chips), chips) > one_dimensional_s(f)) low = chips;
        else high = chips;
    }
    return low;
}

static void q7(book_item *item) {
    enum { D = 8192, CHIPS = 512 };
    sm_model model = book_block(D, 4 * D);
    sm_rules rules = {.decode = true, .stationary = true};
    sm_system cube = book_system("tpu-v5p:16x16x16");
    const char *mesh = "X=16,Y=16,Z=16";
    flat f = {.layer = book_serving_layer(&model, &rules),
              .one_s = book_s_per_byte(&cube, SM_ALL_GATHER, mesh, "X"),
              .all_reduce_two_s = book_s_per_byte(&cube, SM_ALL_REDUCE, mesh, "YZ"),
              .all_reduce_three_s = book_s_per_byte(&cube, SM_ALL_REDUCE, mesh, "XYZ")};
    double x = best_x(&f, CHIPS);
    book_is(item, "X", x, sqrt(CHIPS / 8.0));
    book_is(item, "sqrt(N) T / (B D / W)",
            two_dimensional_s(&f, x, CHIPS) * sqrt(CHIPS) / (D * f.one_s), 11.3137);
    book_is(item, "N", chips_from_which_2d_wins(&f), 72);
}

static void appendix_a(book_item *item) {
    double params = book_local_bytes("int8[N,D,F]", "X=1", "N=2,D=8192,F=32768");
    double bytes = book_local_bytes("bf16[N,D,F_X]", "X=4", "N=2,D=8192,F=32768");
    book_exactly(item, "parameters", params, 536870912);
    book_is(item, "seconds", load_s(bytes, 1, 8.2e11), 0.00032736);
    bytes = book_local_bytes("bf16[N_X]", "X=4", "N=600M");
    book_is(item, "seconds for 600M", load_s(bytes, 1, 8.2e11), 0.000365854);
}

/* An array whose eighth takes as long to send as a hop takes to start. */
static double latency_bytes(void) {
    sm_system slice = book_system("tpu-v5e:16x16");
    sm_curve curve = book_curve(&slice, SM_PERMUTE, "X=16,Y=16", "X");
    sm_algorithm hop = book_line(&curve, NULL);
    return hop.line.latency_s / hop.line.s_per_byte;
}

static void appendix_c_buffer(book_item *item) {
    book_is(item, "bytes over 8 chips", 8 * latency_bytes(), 360000);
}

static void appendix_c_array(book_item *item) {
    double bytes = book_local_bytes("int8[16,8192]", "X=1", "");
    book_exactly(item, "bytes", bytes, 131072);
    book_is(item, "chips beyond which latency counts", bytes / latency_bytes(), 2.91271);
}

static const book_answer answers[] = {{"inf.bcrit.general", critical, 0},
                                      {"inf.bcrit.int8w", critical_int8, 0},
                                      {"inf.attn.prefill", prefill, 0},
                                      {"inf.attn.gen", generation, 0},
                                      {"inf.quiz.b4", quiz_4, 0},
                                      {"inf.quiz.b256", quiz_256, 0},
                                      {"inf.kv13b", kv_13b, 0},
                                      {"inf.act8k", activation, 0},
                                      {"inf.table.MHA.b1", mha_1, 0},
                                      {"inf.table.MHA.b8", mha_8, 0},
                                      {"inf.table.MHA.b16", mha_16, 0},
                                      {"inf.table.MHA.b32", mha_32, 0},
                                      {"inf.table.MHA.b64", mha_64, 0},
                                      {"inf.table.MHA.b240", mha_240, 0},
                                      {"inf.table.GQA5.b1", gqa_1, 0},
                                      {"inf.table.GQA5.b8", gqa_8, 0},
                                      {"inf.table.GQA5.b16", gqa_16, 0},
                                      {"inf.table.GQA5.b32", gqa_32, 0},
                                      {"inf.table.GQA5.b64", gqa_64, 0},
                                      {"inf.table.GQA5.b240", gqa_240, 0},
                                      {"inf.prefill.mp", prefill_sharding, 0},
                                      {"inf.gen.mp", generation_sharding, 0},
                                      {"inf.host", server, 0},
                                      {"inf.prefix", shared_prefix, 0},
                                      {"inf.q1", q1, 0},
                                      {"inf.q2", q2, 0},
                                      {"inf.q3", q3, 0},
                                      {"inf.q4", q4, 0},
                                      {"inf.q5.1", q5_1, 0},
                                      {"inf.q5.2", q5_2, 0},
                                      {"inf.q5.4", q5_4, 0},
                                      {"inf.q6.1", q6_1, 0},
                                      {"inf.q6.2", q6_2, 0},
                                      {"inf.q7", q7, 0},
                                      {"inf.appA", appendix_a, 0},
                                      {"inf.appC.360k", appendix_c_buffer, 0},
                                      {"inf.appC.131k", appendix_c_array, 0}};

const book_chapter book_inference = {"07-inference", answers,
                                     (int)(sizeof answers / sizeof *answers)};
