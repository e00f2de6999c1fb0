/* The partitioned program against closed forms that are counted here by hand: collectives of each
 * parallelism, parameters, FLOPs, and what recomputation keeps. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "catalogue.h"
#include "small_models.h"
#include "scalemodel/program.h"
#include "partition.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { T = 4096, TENSOR = 1 << SM_AXIS_TENSOR | 1 << SM_AXIS_TENSOR_Q };
#define A(x) (1 << SM_AXIS_##x)

static sm_model model;
static sm_partition part;

static sm_arena *model_arena;

static void load(const char *name) {
    sm_arena_free(model_arena); /* the last model's */
    model_arena = sm_arena_new();
    catalogue_load(name, model_arena, &model);
}

static void partition(sm_piece piece, int kind, sm_rules rules) {
    sm_error err = {0};
    sm_program program;
    if (sm_program_build(&model, piece, kind, T, &rules, &program, &err) != SM_OK)
        fail_msg("%s: %s", model.name, err.sentence);
    if (sm_program_partition(&program, NULL, &part, &err) != SM_OK)
        fail_msg("%s %s: %s", model.name, program.name, err.sentence);
}

/* Bytes of one sequence (or of weights) that collectives of this kind move, and their number. */
typedef struct sum {
    int count;
    double bytes;
} sum;

static sum total(sm_collective op, int axes, bool backward, bool activations) {
    sum s = {0, 0};
    for (int i = 0; i < part.comms; i++) {
        const sm_comm *c = &part.comm[i];
        if (c->op != op || c->axes != axes || c->bytes.per_sequence != activations) continue;
        if ((c->phase != SM_PHASE_FORWARD) != backward) continue;
        s.count++;
        s.bytes += c->bytes.base;
    }
    return s;
}

static void moves(sm_collective op, int axes, bool backward, bool activations, int count,
                  double bytes) {
    sum s = total(op, axes, backward, activations);
    if (s.count != count || s.bytes != bytes)
        fail_msg("%s %s over %x %s: %d of %.0f bytes, expected %d of %.0f", model.name,
                 sm_collective_name(op), (unsigned)axes, backward ? "backward" : "forward", s.count,
                 s.bytes, count, bytes);
}

/* ---- tensor parallelism ---- */

static const char *const dense[] = {"llama-3.1-8b", "llama-3.1-70b", "llama-2-13b", "qwen3-32b",
                                    "gpt3-175b"};
enum { DENSE = sizeof dense / sizeof dense[0] };

/* Korthikanti et al. 2022, section 4.2.2: an all-gather before and a reduce-scatter after each of
 * attention and MLP; backward the mirror image, and the input gathered again for its weights. */
static void tensor_with_seq_gathers_and_scatters(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
        double stream = 2.0 * T * model.D;
        moves(SM_ALL_GATHER, TENSOR, false, true, 2, 2 * stream);
        moves(SM_REDUCE_SCATTER, TENSOR, false, true, 2, 2 * stream);
        moves(SM_ALL_GATHER, TENSOR, true, true, 4, 4 * stream);
        moves(SM_REDUCE_SCATTER, TENSOR, true, true, 2, 2 * stream);
        moves(SM_ALL_REDUCE, TENSOR, false, true, 0, 0);
        moves(SM_ALL_REDUCE, TENSOR, true, true, 0, 0);
    }
}

static void tensor_without_seq_all_reduces(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = false});
        double stream = 2.0 * T * model.D;
        moves(SM_ALL_REDUCE, TENSOR, false, true, 2, 2 * stream);
        moves(SM_ALL_REDUCE, TENSOR, true, true, 2, 2 * stream);
        moves(SM_ALL_GATHER, TENSOR, false, true, 0, 0);
        moves(SM_REDUCE_SCATTER, TENSOR, true, true, 0, 0);
    }
}

/* Attention and MLP side by side share the gathered input, and the sum of their gradients. */
static void parallel_branches_share_one_input(void **state) {
    (void)state;
    load("gpt-j-6b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
    double stream = 2.0 * T * model.D;
    moves(SM_ALL_GATHER, TENSOR, false, true, 1, stream);
    moves(SM_REDUCE_SCATTER, TENSOR, true, true, 1, stream);
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = false});
    moves(SM_ALL_REDUCE, TENSOR, true, true, 1, stream);
}

/* Beyond the KV heads K and V are whole on tensor_q, so their gradients are summed over it. */
static void grouped_queries_reduce_keys_over_tensor_q(void **state) {
    (void)state;
    load("llama-3.1-70b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
    double kv = 2.0 * T * 8 * 128;
    moves(SM_ALL_REDUCE, A(TENSOR_Q), true, true, 2, 2 * kv);
    moves(SM_ALL_REDUCE, A(TENSOR_Q), false, true, 0, 0);
    for (int i = 0; i < part.classes; i++) {
        const sm_weight_class *c = &part.weight[i];
        if (c->elements == 2.0 * 8192 * 1024) assert_int_equal(c->stored, A(FSDP) | A(TENSOR));
    }
}

/* Chips that heads do not divide over share out widths alone: what they attend to is gathered and
 * worked out on each, and a sum is scattered over the heads within a part of the stream. */
static void heads_that_do_not_divide_are_copied(void **state) {
    (void)state;
    load("qwen2-7b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true, .heads_copied = true});
    int heads = TENSOR, all = SM_AXES_TENSOR;
    for (int i = 0; i < part.works; i++) {
        const sm_work *w = &part.work[i];
        bool wide = strcmp(w->name, "g") == 0, attends = w->kind == SM_OP_ATTENTION;
        if (wide) assert_int_equal(w->flops.mask & all, all);
        if (attends) assert_int_equal(w->flops.mask & all, heads);
    }
    double stream = 2.0 * T * model.D;
    moves(SM_REDUCE_SCATTER, heads, true, true, 1, stream);
    moves(SM_REDUCE_SCATTER, all, true, true, 1, stream);
    for (int i = 0; i < part.comms; i++)
        if (part.comm[i].op == SM_REDUCE_SCATTER && part.comm[i].axes == heads)
            assert_int_equal(part.comm[i].bytes.mask & all, A(TENSOR_W));
    double stored = 0;
    for (int i = 0; i < part.classes; i++)
        if ((part.weight[i].stored & all) == all) stored += part.weight[i].elements;
    assert_true(stored == 3.0 * model.D * model.kind[0].F);
}

/* The vocabulary's logits are never gathered; chips agree on the largest score of a token and on
 * the sum of its exponentials, and need nothing more for the gradient. */
static void the_head_keeps_its_vocabulary_apart(void **state) {
    (void)state;
    load("llama-3.1-70b");
    partition(SM_PIECE_HEAD, 0, (sm_rules){.seq = true});
    double stream = 2.0 * T * model.D, loss = 4.0 * T;
    moves(SM_ALL_GATHER, TENSOR, false, true, 1, stream);
    moves(SM_ALL_REDUCE, TENSOR, false, true, 3, 3 * loss);
    moves(SM_ALL_GATHER, TENSOR, true, true, 1, stream); /* for the weight's gradient */
    moves(SM_REDUCE_SCATTER, TENSOR, true, true, 1, stream);
    partition(SM_PIECE_EMBEDDING, 0, (sm_rules){.seq = true});
    moves(SM_REDUCE_SCATTER, TENSOR, false, true, 1, stream);
}

/* ---- weights ---- */

static double elements_of_classes(void) {
    double n = 0;
    for (int i = 0; i < part.classes; i++) n += part.weight[i].elements;
    return n;
}

/* ZeRO-3: weights gathered forward and backward in bf16, gradients scattered once (elements; their
 * bytes follow the gradient dtype). Norms are not needed backward as matmul operands. */
static void fsdp_moves_every_parameter(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        for (int over = 0; over < 2; over++) {
            int axes = A(FSDP) | (over ? A(CONTEXT) | A(EXPERT) : 0);
            load(dense[i]);
            partition(SM_PIECE_LAYER, 0, (sm_rules){.weights_spread = over});
            double params = sm_layer_params(&model, &model.kind[0], false), vectors = 0;
            for (int t = 0; t < part.program.tensors; t++)
                if (part.program.tensor[t].norm) vectors += part.program.tensor[t].elements;
            double forward = total(SM_ALL_GATHER, axes, false, false).bytes;
            double backward = total(SM_ALL_GATHER, axes, true, false).bytes;
            double reduced = total(SM_REDUCE_SCATTER, axes, true, false).bytes;
            assert_true(forward == 2 * params);
            assert_true(backward == 2 * (params - vectors));
            assert_true(reduced == params);
            assert_true(elements_of_classes() == params);
            int arrays = part.program.rides > 0, classes = 0;
            for (int t = 0; t < part.program.tensors; t++)
                arrays += part.program.tensor[t].role == SM_ROLE_WEIGHT;
            for (int c = 0; c < part.classes; c++) classes += part.weight[c].weights;
            assert_int_equal(classes, arrays);
        }
    }
}

/* Where a weight is not split, each chip has a part of its gradient: over the batch always, over
 * the sequence when chips share it, over tensor for what sees a shard of the residual stream. */
static void gradients_are_partial_where_tokens_are_split(void **state) {
    (void)state;
    load("llama-3.1-70b");
    for (int seq = 0; seq < 2; seq++) {
        int classes = 0;
        partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = seq});
        for (int i = 0; i < part.classes; i++) {
            const sm_weight_class *c = &part.weight[i];
            int batch = A(DATA) | A(EXPERT) | A(CONTEXT);
            bool norms = c->elements == 2 * 8192;
            assert_int_equal(c->partial & ~TENSOR, batch);
            assert_int_equal(c->partial & A(TENSOR), norms && seq ? A(TENSOR) : 0);
            assert_int_equal(c->partial & c->stored, 0);
            classes++;
        }
        assert_int_equal(classes, 3); /* most matrices, K and V, norms */
    }
}

/* ---- context, experts ---- */

static void ring_attention_moves_keys_and_values(void **state) {
    (void)state;
    load("llama-3.1-8b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
    double kv = 2 * 2.0 * T * 8 * 128; /* K and V, bf16 */
    moves(SM_ALL_GATHER, A(CONTEXT), false, true, 2, kv);
    moves(SM_ALL_GATHER, A(CONTEXT), true, true, 2, kv);
    moves(SM_REDUCE_SCATTER, A(CONTEXT), true, true, 2, kv);
    for (int i = 0; i < part.comms; i++)
        if (part.comm[i].axes == A(CONTEXT)) assert_int_equal(part.comm[i].stream, SM_STREAM_RING);
    partition(SM_PIECE_LAYER, 0, (sm_rules){.context_by = SM_CONTEXT_GATHER});
    for (int i = 0; i < part.comms; i++)
        if (part.comm[i].axes == A(CONTEXT))
            assert_int_equal(part.comm[i].stream, SM_STREAM_BLOCKING);
}

/* DeepSpeed-Ulysses (arXiv 2309.14509): all-to-all of Q, K, V and of the result. */
static void ulysses_exchanges_heads(void **state) {
    (void)state;
    load("llama-3.1-8b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.context_by = SM_CONTEXT_HEADS});
    double q = 2.0 * T * 4096, kv = 2.0 * T * 1024;
    moves(SM_ALL_TO_ALL, A(CONTEXT), false, true, 4, 2 * q + 2 * kv);
    moves(SM_ALL_GATHER, A(CONTEXT), false, true, 0, 0);
    assert_true(total(SM_ALL_TO_ALL, A(CONTEXT), true, true).bytes >= 2 * q + 2 * kv);
}

static int moe_kind(void) {
    for (int k = 0; k < model.kinds; k++)
        if (model.kind[k].E > 0) return k;
    return -1;
}

/* Each token's k copies go to the experts and back, forward and backward. */
static void experts_exchange_tokens_four_times(void **state) {
    (void)state;
    static const char *const sparse[] = {"deepseek-v3", "mixtral-8x7b", "qwen3-235b-a22b"};
    for (int i = 0; i < 3; i++) {
        load(sparse[i]);
        double slots = 2.0 * T * model.kind[moe_kind()].k_top * model.D;
        partition(SM_PIECE_LAYER, moe_kind(), (sm_rules){.seq = false, .expert_tensor = true});
        moves(SM_ALL_TO_ALL, A(EXPERT), false, true, 2, 2 * slots);
        moves(SM_ALL_TO_ALL, A(EXPERT), true, true, 2, 2 * slots);
        partition(SM_PIECE_LAYER, moe_kind(), (sm_rules){.weights_spread = true});
        for (int c = 0; c < part.classes; c++)
            assert_int_equal(part.weight[c].partial & (A(EXPERT) | A(CONTEXT)), 0);
        sm_params each = sm_model_params(&model); /* of experts, gathered over other chips */
        double layers = 0,
               gathered = total(SM_ALL_GATHER, A(FSDP) | A(CONTEXT), false, false).bytes;
        for (int l = 0; l < model.L; l++) layers += model.kind[model.layer[l]].E > 0;
        assert_true(fabs(gathered / (2 * each.experts / layers) - 1) < 0.01);
        partition(SM_PIECE_LAYER, moe_kind(), (sm_rules){.seq = true, .expert_tensor = false});
        moves(SM_ALL_TO_ALL, A(EXPERT) | TENSOR, false, true, 2, 2 * slots);
        moves(SM_ALL_TO_ALL, A(EXPERT) | TENSOR, true, true, 2, 2 * slots);
        for (int c = 0; c < part.classes; c++) {
            if (!part.weight[c].expert) continue;
            assert_true(part.weight[c].stored & A(EXPERT));
            assert_int_equal(part.weight[c].partial, A(DATA) | A(CONTEXT));
        }
    }
}

/* Low ranks are not split over tensor: they are gathered, far below the width. */
static void latent_attention_gathers_low_ranks(void **state) {
    (void)state;
    load("deepseek-v3");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
    /* the query's rank (1536), that of keys and values (512); the norm before the MLP */
    moves(SM_ALL_GATHER, TENSOR, false, true, 3, 2.0 * T * (1536 + 512 + 7168));
    moves(SM_REDUCE_SCATTER, TENSOR, false, true, 2, 2 * 2.0 * T * 7168);
    double kv = 2.0 * T * 128 * (128 + 128);
    moves(SM_ALL_GATHER, A(CONTEXT), false, true, 2, kv);
    /* the rotary key, of all heads: once, and not in each of them */
    moves(SM_ALL_GATHER, A(CONTEXT) | TENSOR, false, true, 1, 2.0 * T * 64);
}

/* ---- totals over the whole catalogue ---- */

/* Of the embedding: OPT-350m's is narrower than the model. */
typedef struct counted {
    double params, matmul, attention, matmul_back, attention_back;
    double product, product_back; /* of two activations, which count with attention */
    int kernels;
} counted;

static void count_piece(sm_piece piece, int kind, double times, counted *c) {
    partition(piece, kind, (sm_rules){0});
    for (int i = 0; i < part.classes; i++)
        if (!part.weight[i].tied)
            c->params += times * part.weight[i].elements * part.weight[i].share;
    for (int i = 0; i < part.works; i++) {
        const sm_work *w = &part.work[i];
        bool back = w->phase != SM_PHASE_FORWARD;
        double flops = times * w->flops.base;
        if (w->kind == SM_OP_EINSUM && w->linear) *(back ? &c->matmul_back : &c->matmul) += flops;
        if (w->kind == SM_OP_EINSUM && !w->linear)
            *(back ? &c->product_back : &c->product) += flops;
        if (w->kind == SM_OP_ATTENTION) *(back ? &c->attention_back : &c->attention) += flops;
        c->kernels += w->kind == SM_OP_KERNEL;
    }
}

static counted count_model(void) {
    counted c = {0};
    int layers[SM_MAX_LAYER_KINDS] = {0};
    for (int l = 0; l < model.L; l++) layers[model.layer[l]]++;
    for (int k = 0; k < model.kinds; k++) count_piece(SM_PIECE_LAYER, k, layers[k], &c);
    for (int k = 0; k < model.outside - 1; k++) count_piece(SM_PIECE_EMBEDDING, k, 1, &c);
    count_piece(SM_PIECE_HEAD, 0, 1, &c);
    return c;
}

static void near(double a, double b, const char *what) {
    double off = a > b ? a - b : b - a;
    if (!(off <= 1e-12 * b)) fail_msg("%s: %s: %.17g, expected %.17g", model.name, what, a, b);
}

static void every_catalogue_model_is_whole(void **state) {
    (void)state;
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        counted c = count_model();
        sm_flops f = sm_model_forward_flops(&model, T, model.causal);
        if (c.params != sm_model_params(&model).total)
            fail_msg("%s: %.0f parameters in classes, %.0f in the model", model.name, c.params,
                     sm_model_params(&model).total);
        if (c.kernels > 0) continue; /* they do more than their products */
        near(c.matmul, f.matmul * f.tokens, "matmul FLOPs");
        near(c.attention + c.product, f.attention * f.tokens, "attention FLOPs");
        near(c.matmul_back, 2 * c.matmul, "backward of matmuls");
        near(c.product_back, 2 * c.product, "backward of products");
        near(c.attention_back, 2.5 * c.attention, "backward of attention");
    }
}

/* Layers that share copies, weights that two lines read, products of weights, biases beside a tied
 * head, and what stands between stacks: one count for all families, trained and served. */
static void families_are_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < TOTALS; i++) {
        sm_error err = {0};
        sm_source source = sm_source_of("small.json", total_at(i)->config);
        sm_arena_free(model_arena);
        model_arena = sm_arena_new();
        if (sm_model_parse(NULL, NULL, &source, model_arena, &model, &err) != SM_OK)
            fail_msg("%s", err.sentence);
        double params = count_model().params, wanted = sm_model_params(&model).total;
        if (params != wanted)
            fail_msg("%s: %.0f parameters in classes, %.0f in the model", total_at(i)->config,
                     params, wanted);
    }
}

/* Every axis an array is stored over divides it once; every collective's axes are real. The first
 * model of a family takes every third set of rules, each after it one. */
static void every_rule_partitions_every_model(void **state) {
    (void)state;
    char family[64] = "";
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        int step = strcmp(family, model.family) == 0 ? 24 : SANITIZED ? 7 : 3;
        snprintf(family, sizeof family, "%s", model.family);
        for (int r = (int)i % step; r < 24; r += step) {
            sm_rules rules = {.seq = r & 1,
                              .expert_tensor = r >> 1 & 1,
                              .weights_spread = r >> 2 & 1,
                              .context_by = (sm_context_by)(r / 8)};
            for (int k = 0; k < model.kinds; k++) {
                partition(SM_PIECE_LAYER, k, rules);
                assert_true(elements_of_classes() ==
                            sm_layer_params(&model, &model.kind[k], false));
                for (int c = 0; c < part.comms; c++) {
                    assert_true(part.comm[c].axes != 0);
                    assert_true(part.comm[c].bytes.base > 0 || part.comm[c].bytes.base == 0);
                    assert_int_equal(part.comm[c].bytes.mask & part.comm[c].axes, 0);
                }
            }
        }
    }
}

/* ---- recomputation ---- */

static double kept_bytes(sm_recompute policy, sm_bits *again) {
    sm_kept_array kept[SM_MAX_TENSORS];
    int n = sm_recompute_kept(&part, sm_recompute_set(&part.program, policy), SM_REGATHER_ALL,
                              again, kept);
    double bytes = 0;
    for (int i = 0; i < n; i++) {
        const sm_tensor *t = &part.program.tensor[kept[i].tensor];
        if (policy != SM_RECOMPUTE_FULL || t->of < 0) bytes += kept[i].bytes.base;
        if (policy == SM_RECOMPUTE_FULL) /* what the block is given */
            assert_int_equal(t->producer, -1);
    }
    return bytes;
}

static void keeping_less_and_less(void **state) {
    (void)state;
    sm_bits again;
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        for (int k = 0; k < model.kinds; k++) {
            partition(SM_PIECE_LAYER, k, (sm_rules){0});
            double none = kept_bytes(SM_RECOMPUTE_NONE, &again);
            assert_true(again == 0);
            double selective = kept_bytes(SM_RECOMPUTE_SELECTIVE, &again);
            double matmuls = kept_bytes(SM_RECOMPUTE_MATMULS, &again);
            double full = kept_bytes(SM_RECOMPUTE_FULL, &again);
            assert_true(full < selective && full < matmuls);
            assert_true((model.kind[k].N > 0 ? selective < none : selective <= none) &&
                        matmuls < none);
            /* The input of the block, of each of its streams (hyper-connections have four); other
             * stacks are of other lengths, and pictures. */
            if (model.outside == 2 && model.V > 0) assert_true(fmod(full, 2.0 * T * model.D) == 0);
        }
    }
}

/* Korthikanti et al. 2022 (arXiv 2205.05198), section 4.1: a layer keeps sbh (34 + 5 as/h) bytes:
 * attention 11 (dropout mask 1), MLP 19 (dropout mask 1), two norms 4. Without dropout 32; fused
 * attention never stores the 5 as/h of the scores. In units of sbh bytes: */
static void a_gpt3_layer_keeps_what_korthikanti_counts(void **state) {
    (void)state;
    static const double sbh[] = {
        2,       /* input of the first norm */
        2,       /* its output: input of Q, K, V */
        2, 2, 2, /* Q, K, V */
        2,       /* result of attention: input of the projection */
        2,       /* input of the second norm */
        2,       /* its output: input of the MLP */
        8,       /* input of GeLU */
        8        /* input of the second matmul */
    };
    sm_bits again;
    double expected = 0;
    for (size_t i = 0; i < sizeof sbh / sizeof sbh[0]; i++) expected += sbh[i];
    assert_true(expected == 34 - 2); /* the paper's 34 less two dropout masks of 1 each */
    load("gpt3-175b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){.seq = true});
    assert_true(kept_bytes(SM_RECOMPUTE_NONE, &again) == expected * T * model.D);
    assert_true(kept_bytes(SM_RECOMPUTE_SELECTIVE, &again) == (expected - 2) * T * model.D);
}

/* Full recomputation runs the forward ops whose results the backward needs, and no others. */
static void full_recomputation_ends_before_the_output(void **state) {
    (void)state;
    sm_bits again;
    load("llama-3.1-8b");
    partition(SM_PIECE_LAYER, 0, (sm_rules){0});
    kept_bytes(SM_RECOMPUTE_FULL, &again);
    for (int i = 0; i < part.program.ops; i++) {
        const char *name = part.program.op[i].name;
        bool last = strcmp(name, "y") == 0 || strcmp(name, "x.3") == 0;
        assert_int_equal(again >> i & 1, !last);
    }
}

/* The mesh of --explain names every axis once. */
static void the_mesh_names_the_axes(void **state) {
    (void)state;
    const sm_mesh *mesh = sm_program_mesh();
    assert_int_equal(mesh->axes, SM_AXIS_COUNT);
    assert_string_equal(mesh->axis[SM_AXIS_TENSOR].name, "tensor");
    assert_int_equal(sm_mesh_find(mesh, "expert", 6), SM_AXIS_EXPERT);
    assert_string_equal(sm_phase_name(SM_PHASE_BACKWARD_WEIGHT), "backward-weight");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_with_seq_gathers_and_scatters),
        cmocka_unit_test(tensor_without_seq_all_reduces),
        cmocka_unit_test(parallel_branches_share_one_input),
        cmocka_unit_test(grouped_queries_reduce_keys_over_tensor_q),
        cmocka_unit_test(heads_that_do_not_divide_are_copied),
        cmocka_unit_test(the_head_keeps_its_vocabulary_apart),
        cmocka_unit_test(fsdp_moves_every_parameter),
        cmocka_unit_test(gradients_are_partial_where_tokens_are_split),
        cmocka_unit_test(ring_attention_moves_keys_and_values),
        cmocka_unit_test(ulysses_exchanges_heads),
        cmocka_unit_test(experts_exchange_tokens_four_times),
        cmocka_unit_test(latent_attention_gathers_low_ranks),
        cmocka_unit_test(every_catalogue_model_is_whole),
        cmocka_unit_test(families_are_whole),
        cmocka_unit_test(every_rule_partitions_every_model),
        cmocka_unit_test(keeping_less_and_less),
        cmocka_unit_test(a_gpt3_layer_keeps_what_korthikanti_counts),
        cmocka_unit_test(full_recomputation_ends_before_the_output),
        cmocka_unit_test(the_mesh_names_the_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
