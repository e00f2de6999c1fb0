/* "All the Transformer Math You Need to Know": part 4 and its questions. */
#include "book.h"
#include "instruments.h"
#include "partition.h"
#include <math.h>
#include <string.h>

static void dot(book_item *item) {
    book_exactly(item, "dot product", book_flops("A[P] B[P] -> C[]", "P=70"), 2 * 70);
    book_exactly(item, "matrix and vector", book_flops("A[N,P] B[P] -> C[N]", "N=30,P=70"),
                 2 * 30 * 70);
    book_exactly(item, "matrices", book_flops("A[N,P] B[P,M] -> C[N,M]", "N=30,P=70,M=11"),
                 2 * 30 * 70 * 11);
}

/* Backward einsums are derived from the forward ones: each costs as much. */
static void training_ratio(book_item *item) {
    sm_model model = book_transformer(1024, 4096, 8, 8, 128, 4, 32000);
    const sm_partition *layer = book_layer(&model, 128);
    book_degrees ones = book_ones();
    double flops[SM_PHASE_COUNT];
    for (int i = 0; i < SM_PHASE_COUNT; i++)
        flops[i] = book_linear_flops(layer, (sm_phase)i, false, &ones, 1);
    book_exactly(item, "gradient of the input", flops[SM_PHASE_BACKWARD_INPUT] / flops[0], 1);
    book_exactly(item, "gradient of the weight", flops[SM_PHASE_BACKWARD_WEIGHT] / flops[0], 1);
    book_exactly(item, "training against forward",
                 sm_model_train_flops(&model, 128, true) /
                     sm_model_forward_flops(&model, 128, true).total,
                 3);
}

/* T at which attention costs as much as the matmuls: attention is linear in T. */
static double attention_dominates(int D) {
    sm_model model = book_transformer(D, 4 * D, D / 128, D / 128, 128, 1, 1);
    sm_flops f = sm_model_forward_flops(&model, 1024, false);
    return 1024 * f.matmul / f.attention;
}

static void attention_ratio(book_item *item) {
    book_is(item, "T at D=8192", attention_dominates(8192), 65536);
    sm_model gated = book_transformer(8192, 4 * 8192, 64, 64, 128, 1, 1);
    book_exactly(item, "parameters of the MLP", sm_model_params(&gated).mlp, 3.0 * 8192 * 4 * 8192);
}

static void gemma27(book_item *item) {
    book_is(item, "T at D=4608", attention_dominates(4608), 36864);
}

static void vocabulary(book_item *item) {
    sm_model small = book_transformer(4096, 16384, 32, 32, 128, 2, 1000);
    sm_model large = book_transformer(4096, 16384, 32, 32, 128, 2, 33000);
    double more = sm_model_train_flops(&large, 512, true) - sm_model_train_flops(&small, 512, true);
    book_is(item, "training FLOPs per token / DV", more / (4096.0 * 32000), 6);
}

static void norms(book_item *item) {
    sm_model model = book_transformer(4096, 16384, 32, 32, 128, 64, 1000);
    double of_layer = sm_model_params(&model).norm / 64;
    book_exactly(item, "parameters of a layer's norms", of_layer, 2 * 4096);
}

static void checkpoints(book_item *item) {
    double bytes = book_local_bytes("bf16[L,N,B,D]", "X=1", "L=64,N=20,B=4M,D=8192");
    book_is(item, "bytes", bytes, 8.38861e13);
}

/* Only the input of each layer is kept, and the whole forward pass runs again: 2 of 6 ND more. */
static void block_recomputation(book_item *item) {
    sm_model model = book_transformer(8192, 32768, 64, 64, 128, 64, 1000);
    sm_kept_array kept[SM_MAX_TENSORS];
    sm_bits again = 0;
    book_degrees ones = book_ones();
    double forward = 0, repeated = 0;
    book_is(item, "bytes", 4e6 * 64 * book_kept_bytes_per_token(&model, ""), 4.1943e12);
    const sm_partition *layer = book_layer(&model, 1);
    sm_recompute_kept(layer, sm_recompute_set(&layer->program, SM_RECOMPUTE_FULL), SM_REGATHER_ALL,
                      &again, kept);
    for (int i = 0; i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        if (!w->linear || w->phase != SM_PHASE_FORWARD) continue;
        forward += book_size(w->flops, &ones, 1);
        repeated += again >> w->op & 1 ? book_size(w->flops, &ones, 1) : 0;
    }
    /* the last matmul of a block feeds nothing that is kept: it need not run again */
    book_holds(item, "training takes 6 to 8 ND, all matmuls of the block but the last run again",
               repeated < forward && repeated > 0.7 * forward);
}

static void kv_8k(book_item *item) {
    sm_model model = book_transformer(8192, 32768, 64, 64, 128, 64, 1000);
    book_exactly(item, "bytes", sm_model_kv_bytes(&model, 8192, SM_INT8), 8589934592.0);
}

static sm_model q1_model(const char *members) {
    return book_transformer_with((const int[]){4096, 16384, 32, 32, 128, 64, 32000}, members);
}

static void q1_params(book_item *item) {
    sm_model model = q1_model("");
    book_exactly(item, "two norms in a layer", sm_model_params(&model).total, 17442537472.0);
    model = q1_model("\"norms_per_layer\": 1");
    book_exactly(item, "one norm in a layer", sm_model_params(&model).total, 17442275328.0);
}

static void q1_attention(book_item *item) {
    sm_model model = q1_model("");
    sm_params p = sm_model_params(&model);
    book_is(item, "of the layers", p.attention / (p.attention + p.mlp), 0.25);
    book_is(item, "of the model", p.attention / p.total, 0.246239);
}

static void q1_kv(book_item *item) {
    sm_model model = q1_model("");
    book_exactly(item, "bytes", sm_model_kv_bytes_per_token(&model, SM_INT8), 524288);
}

/* Z is not mentioned: its 4 planes all do the same. */
static void q2(book_item *item) {
    double B = 64, D = 128, F = 256;
    const char *dims = "B=64,D=128,F=256", *mesh = "X=4,Y=8,Z=4";
    sm_lowering low = book_lowering("A[B_X,D_Y] W[D_Y,F] -> C[B_X,F]", dims, mesh, "BD-");
    sm_mesh all = book_mesh(mesh);
    book_exactly(item, "of a device / BDF", low.flops_per_chip / (B * D * F), 0.0625);
    book_exactly(item, "total / BDF", low.flops_per_chip * sm_mesh_size(&all, 7) / (B * D * F), 8);
}

static void q3(book_item *item) {
    double got =
        book_flops("A[I,J,K,L] B[I,J,M,N,O] -> C[K,L,M,N,O]", "I=2,J=3,K=5,L=7,M=11,N=13,O=17");
    book_exactly(item, "FLOPs", got, 2.0 * 2 * 3 * 5 * 7 * 11 * 13 * 17);
}

/* FLOPs per byte of fused attention over a whole sequence, from the program. */
static double attention_intensity(int group, double T) {
    sm_model model = book_transformer(8192, 32768, 64, 64 / group, 128, 1, 1000);
    const sm_partition *layer = book_layer(&model, T);
    book_degrees ones = book_ones();
    for (int i = 0; layer != NULL && i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        double bytes = 0;
        if (w->kind != SM_OP_ATTENTION || w->phase != SM_PHASE_FORWARD) continue;
        for (int t = 0; t < w->terms; t++) bytes += book_size(w->bytes[t], &ones, 1);
        return book_size(w->flops, &ones, 1) / bytes;
    }
    return NAN;
}

static double attention_critical(int group, double intensity) {
    double low = 1, high = 1e6;
    for (int i = 0; i < 60; i++) {
        double T = sqrt(low * high);
        *(attention_intensity(group, T) < intensity ? &low : &high) = T;
    }
    return low;
}

static void q4(book_item *item) {
    book_is(item, "T for G=1", attention_critical(1, 240), 480);
    book_is(item, "T for G=8", attention_critical(8, 240), 270);
    book_is(item, "T for G=64, 240 (G+1)/G", attention_critical(64, 240), 243.75);
}

static double named_flops(const sm_partition *layer, const char *const *names, int n) {
    book_degrees ones = book_ones();
    double flops = 0;
    for (int i = 0; i < layer->works; i++)
        for (int k = 0; k < n; k++)
            if (layer->work[i].phase == SM_PHASE_FORWARD &&
                strcmp(layer->work[i].name, names[k]) == 0)
                flops += book_size(layer->work[i].flops, &ones, 1);
    return flops;
}

static void q5(book_item *item) {
    static const char *const projections[] = {"q", "k", "v", "a"};
    static const char *const attention[] = {"o"};
    sm_model model = book_transformer(4096, 16384, 32, 32, 128, 1, 1000);
    const sm_partition *layer = book_layer(&model, 1024);
    double per_token = named_flops(layer, projections, 4) / named_flops(layer, attention, 1);
    book_is(item, "T", 1024 * per_token, 8192); /* attention is quadratic in T */
}

/* Saving the results of all matmuls with weights leaves the attention core to run again. */
static void q6(book_item *item) {
    sm_model model = book_transformer(4096, 16384, 32, 32, 128, 1, 1000);
    const sm_partition *layer = book_layer(&model, 1024);
    sm_kept_array kept[SM_MAX_TENSORS];
    sm_bits again = 0;
    book_degrees ones = book_ones();
    double flops = 0;
    sm_recompute_kept(layer, sm_recompute_set(&layer->program, SM_RECOMPUTE_MATMULS),
                      SM_REGATHER_ALL, &again, kept);
    for (int i = 0; i < layer->works; i++) {
        const sm_work *w = &layer->work[i];
        bool matrix = w->kind == SM_OP_EINSUM || w->kind == SM_OP_ATTENTION;
        if (w->phase == SM_PHASE_FORWARD && matrix && again >> w->op & 1)
            flops += book_size(w->flops, &ones, 1);
    }
    book_is(item, "FLOPs / T^2 N H", flops / (1024.0 * 1024 * 32 * 128), 4);
}

static void q7(book_item *item) {
    sm_model model = book_of_params(37e9);
    sm_chip pcie = book_chip("h100-pcie"), sxm = book_chip("h800");
    double flops = 14.8e12 * 3 * sm_model_forward_flops(&model, 1, true).matmul;
    double chip_s = 2.79e6 * 3600;
    book_is(item, "FLOPs", flops, 3.2856e24);
    book_is(item, "MFU", flops / chip_s / sm_chip_peak(&pcie, SM_FP8, NULL), 0.216207);
    book_is(item, "MFU of the SXM part", flops / chip_s / sm_chip_peak(&sxm, SM_FP8, NULL),
            0.165296);
}

/* The slots of one expert must reach the critical batch; there are k/E of them per token. */
static void q8(book_item *item) {
    sm_chip chip = book_chip("tpu-v5e");
    book_give(&chip.memory_bytes_per_s, 8.2e11);
    double slots = book_critical(&chip, "bf16[E,C,D] int8[E,D,F] -> bf16[E,C,F]",
                                 "E=256,D=1e8,F=1e8,C=1", "C", SM_MEMORY_HBM);
    sm_model model = book_transformer_with((const int[]){7168, 2048, 64, 64, 128, 1, 1000},
                                           book_experts(256, 8, 2048));
    const sm_partition *layer = book_layer(&model, 4096);
    book_is(item, "B", slots * 4096 / book_layer_size(layer, "C"), 3840);
}

static const book_answer answers[] = {{"tf.dot", dot, 0},
                                      {"tf.train6", training_ratio, 0},
                                      {"tf.attn.ratio", attention_ratio, 0},
                                      {"tf.gemma27", gemma27, 0},
                                      {"tf.vocab.row", vocabulary, 0},
                                      {"tf.other.row", norms, 0},
                                      {"tf.gradckpt", checkpoints, 0},
                                      {"tf.blockremat", block_recomputation, 0},
                                      {"tf.kv8k", kv_8k, 0},
                                      {"tf.q1.params", q1_params, 0},
                                      {"tf.q1.attnfrac", q1_attention, 0},
                                      {"tf.q1.kv", q1_kv, 0},
                                      {"tf.q2", q2, 0},
                                      {"tf.q3", q3, 0},
                                      {"tf.q4", q4, 0},
                                      {"tf.q5", q5, 0},
                                      {"tf.q6", q6, 0},
                                      {"tf.q7", q7, 0},
                                      {"tf.q8", q8, 0}};

const book_chapter book_transformers = {"04-transformers", answers,
                                        (int)(sizeof answers / sizeof *answers)};
