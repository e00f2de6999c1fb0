/* "How to Parallelize a Transformer for Training": part 5 and its questions. TPU v5p throughout,
 * its bandwidth the book's closed form for rings: 1.8e11 bytes/s and axis. */
#include "book.h"
#include "instruments.h"
#include "thresholds.h"
#include "partition.h"
#include <math.h>

#define CUBE "tpu-v5p:16x16x16"
#define CUBE_MESH "X=16,Y=16,Z=16"
enum { POD = 8960 };

static double gather_s(const char *axes) {
    sm_system cube = book_system(CUBE);
    return book_s_per_byte(&cube, SM_ALL_GATHER, CUBE_MESH, axes);
}

/* An MLP of width F on v5p, fsdp over these axes of the torus and tensor over those. */
static threshold v5p(int D, int F, const char *fsdp, const char *tensor) {
    sm_model model = book_block(D, F);
    sm_chip chip = book_chip("tpu-v5p");
    threshold t = book_threshold(book_layer(&model, 1), &chip);
    t.fsdp_s_per_byte = gather_s(fsdp);
    t.tensor_s_per_byte = gather_s(tensor);
    return t;
}

static void adam(book_item *item) {
    sm_model model = book_model("llama-2-13b");
    double bytes = book_state_bytes(&model, "zero=0,optimizer=adam-no-master");
    book_is(item, "parameters", 96e9 / (bytes / sm_model_params(&model).total), 9.6e9);
}

static void data_critical(book_item *item) {
    threshold t = v5p(8192, 32768, "X", "Y");
    book_is(item, "tokens per chip", book_fsdp_critical(&t), 2550);
    t.flops_per_s = 4.6e14;
    book_is(item, "with 4.6e14", book_fsdp_critical(&t), 2555.56);
}

static double three_axes(void) {
    threshold t = v5p(8192, 32768, "XYZ", "X");
    return book_fsdp_critical(&t);
}

static void data_3_axes(book_item *item) {
    book_is(item, "tokens per chip", three_axes(), 850);
    book_is(item, "tokens per pod", three_axes() * POD, 7616000);
}

static void deepseek_v2(book_item *item) {
    double chips = 40e6 / three_axes();
    book_is(item, "chips", chips, 47058.8);
    book_is(item, "pods", chips / POD, 5.2521);
}

static void llama_70b(book_item *item) {
    sm_model model = book_of_params(70e9);
    sm_chip chip = book_chip("tpu-v5p");
    double chips = 16e6 / three_axes();
    book_is(item, "chips", chips, 18823.5);
    book_is(item, "days", book_run_s(&model, &chip, chips, 15e12, 0.5) / 86400, 16.8789);
}

static double tensor_limit(int F) {
    threshold t = v5p(8192, F, "XY", "Z");
    return book_tensor_critical(&t);
}

static void tensor_llama(book_item *item) {
    book_is(item, "tensor degree", tensor_limit(30000), 11.7647);
    book_is(item, "width for 8", 30000 * 8 / tensor_limit(30000), 20400); /* linear in F */
}

static void tensor_gemma(book_item *item) {
    book_is(item, "tensor degree", tensor_limit(50000), 19.6078);
    book_is(item, "with F=49152", tensor_limit(49152), 19.2753);
}

/* int8 doubles FLOP/s and halves bytes. */
static void tensor_int8(book_item *item) {
    threshold t = v5p(8192, 30000, "XY", "Z");
    sm_chip chip = book_chip("tpu-v5p");
    t.flops_per_s = sm_chip_peak(&chip, SM_INT8, NULL);
    book_is(item, "C/W", t.flops_per_s * t.tensor_s_per_byte, 5100);
    t.tensor_s_per_byte *= sm_dtype_bytes(SM_INT8) / sm_dtype_bytes(SM_BF16);
    book_is(item, "tensor degree", book_tensor_critical(&t), tensor_limit(30000));
}

static void best_mesh(book_item *item) {
    threshold t = v5p(8192, 32768, "XY", "Z");
    book_is(item, "fsdp degree", book_best_fsdp(&t, 64, 48000), 13.6931);
}

static void mixed(book_item *item) {
    threshold t = v5p(8192, 32768, "XY", "Z");
    double per_chip = book_mixed_critical(&t, 4096);
    book_is(item, "tokens per chip", per_chip, 99.2203);
    book_is(item, "against fsdp over three axes", three_axes() / per_chip, 8.5668);
}

static void mixed_cube(book_item *item) {
    threshold t = v5p(8192, 4 * 8192, "XY", "Z");
    book_is(item, "tokens", 4096 * book_mixed_critical(&t, 4096), 406406);
}

static double mixed_ratio(const threshold *t, double chips, double tokens) {
    double fsdp = book_best_fsdp(t, chips, tokens);
    return book_math_s(t, fsdp, chips / fsdp, tokens) / book_fsdp_s(t, fsdp, chips / fsdp, tokens);
}

static void ratio_exponent(book_item *item) {
    threshold t = v5p(8192, 32768, "XY", "Z");
    double exponent = log(mixed_ratio(&t, 4096, 4e6) / mixed_ratio(&t, 4096, 1e6)) / log(4);
    book_is(item, "exponent of the batch", exponent, 0.5);
}

/* Many slices: the all-reduce over n of them takes 2 (n-1)/n V/W. */
static double slice_tokens(double flops_per_s) {
    sm_system slices = book_system("tpu-v5p:4x4x4x1024slices");
    threshold t = v5p(8192, 32768, "X", "Y");
    t.flops_per_s = flops_per_s;
    double s = book_s_per_byte(&slices, SM_ALL_REDUCE, "S=1024,X=4,Y=4,Z=4", "S");
    return book_data_critical(&t, s);
}

static void slices_critical(book_item *item) {
    book_is(item, "tokens per slice", slice_tokens(4.59e14), 73440);
    book_is(item, "with 4.46e14", slice_tokens(4.46e14), 71360);
}

static void slices_1(book_item *item) {
    threshold t = v5p(8192, 30000, "XY", "Z");
    double per_chip = book_mixed_critical(&t, 4096);
    book_is(item, "chips under fsdp", 2e6 / three_axes(), 2352.94);
    book_is(item, "tokens per chip, mixed", per_chip, 108.375);
    book_is(item, "chips, mixed", 2e6 / per_chip, 18454.4);
}

static void slices_2(book_item *item) {
    double tokens = book_local_bytes("int8[B_{pod,chip}]", "pod=2,chip=8960", "B=2M");
    book_is(item, "tokens per chip", tokens, 111.607);
}

/* ---- bytes per layer: B tokens, fsdp X, tensor Y ---- */

static double layer_bytes(const sm_partition *layer, bool backward, sm_collective op, sm_axes axes,
                          const book_degrees *d, double tokens) {
    double bytes = 0;
    for (int phase = backward ? 1 : 0; phase < (backward ? SM_PHASE_COUNT : 1); phase++)
        bytes += book_comm_bytes(layer, (sm_phase)phase, op, axes, 2, d, tokens);
    return bytes;
}

static void table_of_bytes(book_item *item) {
    enum { D = 8192, F = 32768, B = 4096, X = 16, Y = 4 };
    double BD = (double)B * D, DF = (double)D * F;
    sm_model model = book_block(D, F);
    const sm_partition *layer = book_layer(&model, 1);
    book_degrees one = book_ones(), mesh = book_ones();
    mesh.axis[SM_AXIS_FSDP] = X;
    mesh.axis[SM_AXIS_TENSOR] = Y;
    sm_system cube = book_system(CUBE);
    double twice = book_s_per_byte(&cube, SM_ALL_REDUCE, CUBE_MESH, "X") / gather_s("X");
    double gradients = 0;
    for (int i = 0; i < layer->classes; i++)
        if (layer->weight[i].partial & SM_BIT(SM_AXIS_DATA))
            gradients += layer->weight[i].elements * sm_dtype_bytes(SM_BF16);
    sm_axes fsdp = SM_BIT(SM_AXIS_FSDP), tensor = SM_AXES_TENSOR;
    book_is(item, "data, backward", gradients * twice / DF, 8);
    book_is(item, "fsdp, forward", layer_bytes(layer, false, SM_ALL_GATHER, fsdp, &one, B) / DF, 4);
    double scattered = layer_bytes(layer, true, SM_REDUCE_SCATTER, fsdp, &one, B);
    book_is(item, "fsdp, backward",
            (layer_bytes(layer, true, SM_ALL_GATHER, fsdp, &one, B) + scattered) / DF, 8);
    double gathered = layer_bytes(layer, false, SM_ALL_GATHER, tensor, &one, B);
    scattered = layer_bytes(layer, false, SM_REDUCE_SCATTER, tensor, &one, B);
    book_is(item, "tensor, forward", (gathered + scattered) / BD, 4);
    gathered = layer_bytes(layer, true, SM_ALL_GATHER, tensor, &one, B);
    scattered = layer_bytes(layer, true, SM_REDUCE_SCATTER, tensor, &one, B);
    book_is(item, "tensor, backward, the input gathered again", (gathered + scattered) / BD, 6);
    book_is(item, "fsdp and tensor: weights, forward",
            layer_bytes(layer, false, SM_ALL_GATHER, fsdp, &mesh, B), 4 * DF / Y);
    scattered = layer_bytes(layer, false, SM_REDUCE_SCATTER, tensor, &mesh, B);
    book_is(item, "fsdp and tensor: activations, forward",
            layer_bytes(layer, false, SM_ALL_GATHER, tensor, &mesh, B) + scattered, 4 * BD / X);
    scattered = layer_bytes(layer, true, SM_REDUCE_SCATTER, fsdp, &mesh, B);
    book_is(item, "fsdp and tensor: weights, backward",
            layer_bytes(layer, true, SM_ALL_GATHER, fsdp, &mesh, B) + scattered, 8 * DF / Y);
}

/* ---- questions ---- */

static void q1(book_item *item) {
    sm_model model = book_model("llama-2-13b");
    sm_params p = sm_model_params(&model);
    book_exactly(item, "MLP", p.mlp, 8493465600.0);
    book_exactly(item, "attention", p.attention, 4194304000.0);
    book_exactly(item, "vocabulary", p.embedding + p.unembedding, 327680000.0);
    book_exactly(item, "all but norms", p.total - p.norm, 13015449600.0);
}

static void q2_state(book_item *item) {
    sm_model model = book_model("llama-2-13b");
    book_is(item, "bytes", book_state_bytes(&model, "zero=0,optimizer=adam-no-master"),
            130154496000.0);
}

/* Kept: the input of each layer and the two results of width F. */
static double activations(double tokens) {
    sm_model model = book_model("llama-2-13b");
    return tokens * model.L * book_kept_bytes_per_token(&model, "u+g");
}

static void q2_activations(book_item *item) {
    book_is(item, "bytes", activations(16e6), 4.1943e13);
}

static void q3_setup(book_item *item) {
    sm_model model = book_model("llama-2-13b");
    sm_system cube = book_system(CUBE);
    book_give(&cube.chip.memory_bytes, 96e9);
    /* a batch is whole sequences: 91.55, 93.75 and 96 */
    book_is(item, "sequences", book_sequences(&model, 3e6, 32768), round(91.5527));
    book_is(item, "sequences of 32,000", book_sequences(&model, 3e6, 32000), round(93.75));
    book_exactly(item, "3 x 2^20 tokens", book_sequences(&model, 3 << 20, 32768), 96);
    book_exactly(item, "HBM", cube.chips * cube.chip.memory_bytes.value, 3.93216e14);
}

static double q3_state(void) {
    sm_model model = book_model("llama-2-13b");
    return book_state_bytes(&model, "zero=0,optimizer=adam-no-master");
}

static void q3_2(book_item *item) {
    double total = activations(3e6) + q3_state();
    book_is(item, "activations", activations(3e6), 7.86432e12);
    book_is(item, "total", total, 7.99432e12);
    book_is(item, "per chip", total / 4096, 1.95174e9);
    book_is(item, "least batch", three_axes() * 4096, 3481600);
}

static threshold llama_13b(void) { return v5p(5120, 13824, "XY", "Z"); }

static double step_s(double tokens, double flops_per_s) {
    sm_model model = book_of_params(13e9);
    sm_chip chip = book_chip("tpu-v5p");
    book_give(&chip.flops_per_s[SM_BF16], flops_per_s);
    return book_run_s(&model, &chip, 4096, tokens, 0.4);
}

static void q3_3(book_item *item) {
    threshold t = llama_13b();
    book_is(item, "least tokens per chip", book_mixed_critical(&t, 4096), 235.189);
    book_is(item, "tokens per chip", book_local_bytes("int8[B_X]", "X=4096", "B=3M"), 732.422);
    book_is(item, "fsdp degree", book_best_fsdp(&t, 4096, 3e6), 1333.33);
    book_is(item, "step", step_s(3e6, 4.6e14), 0.310483);
}

static void q4(book_item *item, double tokens, bool fsdp_ok, double best, double bytes,
               double per_chip, double step) {
    threshold t = llama_13b();
    double each = tokens / 4096;
    book_holds(item, "fsdp alone is enough, or not", (each > three_axes()) == fsdp_ok);
    book_holds(item, "the mixture is enough", each > book_mixed_critical(&t, 4096));
    book_is(item, "fsdp degree", book_best_fsdp(&t, 4096, tokens), best);
    book_is(item, "activations", activations(tokens), bytes);
    book_is(item, "per chip", (activations(tokens) + q3_state()) / 4096, per_chip);
    book_is(item, "step", step_s(tokens, 4.59e14), step);
}

static void q4_1M(book_item *item) {
    double tokens = book_local_bytes("int8[B_X]", "X=4096", "B=1M");
    book_is(item, "tokens per chip", tokens, 244.141);
    q4(item, 1e6, false, 769.8, 2.62144e12, 671738000, 0.10372);
}

static void q4_10M(book_item *item) {
    double tokens = book_local_bytes("int8[B_X]", "X=4096", "B=10M");
    book_is(item, "tokens per chip", tokens, 2441.41);
    q4(item, 1e7, true, 2434.32, 2.62144e13, 6431740000, 1.0372);
}

static const book_answer answers[] = {{"tr.adam.max", adam, 0},
                                      {"tr.dp.crit", data_critical, 0},
                                      {"tr.dp.3axes", data_3_axes, 0},
                                      {"tr.dsv2", deepseek_v2, 0},
                                      {"tr.llama70.time", llama_70b, 0},
                                      {"tr.tp.llama", tensor_llama, 0},
                                      {"tr.tp.gemma7", tensor_gemma, 0},
                                      {"tr.tp.int8", tensor_int8, 0},
                                      {"tr.xopt.ex", best_mesh, 0},
                                      {"tr.mixed.crit", mixed, 0},
                                      {"tr.mixed.16cube", mixed_cube, 0},
                                      {"tr.ratio.text", ratio_exponent, 0},
                                      {"tr.dcn.crit", slices_critical, 0},
                                      {"tr.dcn.ex1", slices_1, 0},
                                      {"tr.dcn.ex2", slices_2, 0},
                                      {"tr.table.comms", table_of_bytes, 0},
                                      {"tr.q1", q1, 0},
                                      {"tr.q2.state", q2_state, 0},
                                      {"tr.q2.act", q2_activations, 0},
                                      {"tr.q3.setup", q3_setup, 0},
                                      {"tr.q3.2", q3_2, 0},
                                      {"tr.q3.3", q3_3, 0},
                                      {"tr.q4.1M", q4_1M, 0},
                                      {"tr.q4.10M", q4_10M, 0}};

const book_chapter book_training = {"05-training", answers,
                                    (int)(sizeof answers / sizeof *answers)};
