/* The work of custom calls whose kernels are known: products of cuBLAS and hipBLASLt, convolutions
 * and fused attention of cuDNN, Mosaic kernels that estimate themselves. */
#include <math.h>

#include "module_parts.h"
#include "named.h"

/* Of a tuple of a result and scratch space the result. */
static const sm_module_shape *result_of(const sm_instruction *it) {
    return it->shape->parts ? &it->shape->part[0] : it->shape;
}

/* __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8: the first two operands. */
static bool is_product(const sm_instruction *it) {
    return begins_with(it->target, "__cublas$") && it->operands > 1 && it->lhs_contracting.n > 0;
}

static bool is_convolution(const sm_instruction *it) {
    return begins_with(it->target, "__cudnn$conv") && it->operands > 1 && it->convolution;
}

/* Fused attention of cuDNN, whose configuration has the shape of the scores, and of Transformer
 * Engine, whose has all sizes. */
enum { OF_SCORES = 4, OF_ALL = 7 };
static bool is_attention(const sm_instruction *it) {
    bool cudnn = begins_with(it->target, "__cudnn$fmha") && it->dimensions.n == OF_SCORES;
    bool engine = begins_with(it->target, "te_fused_attn_") && it->dimensions.n == OF_ALL;
    return it->operands > 2 && (cudnn || engine);
}

bool sm_module_moves_to_host(const sm_instruction *it) {
    return it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, "MoveToHost");
}

bool sm_module_moves_to_device(const sm_instruction *it) {
    return it->opcode == SM_OPCODE_CUSTOM_CALL && !strcmp(it->target, "MoveToDevice");
}

bool sm_module_is_understood(const sm_instruction *it) {
    if (sm_module_class_of(it->opcode) != SM_CLASS_CUSTOM) return true;
    return it->opcode == SM_OPCODE_CUSTOM_CALL &&
           (is_product(it) || is_convolution(it) || is_attention(it) ||
            sm_module_moves_to_host(it) || sm_module_moves_to_device(it) ||
            it->estimated_flops > 0 || it->estimated_transcendentals > 0);
}

/* The size of the kernel's dimension 'o' in the labels "b01f_01io->b01f". */
static double features_out(const char *labels, const sm_module_shape *kernel) {
    const char *at = strchr(labels, '_');
    for (int i = 0; at && at[1 + i] && at[1 + i] != '-'; i++)
        if (at[1 + i] == 'o' && i < kernel->dim.n) return (double)kernel->dim.at[i];
    return 1;
}

/* Each element of the forward result takes the kernel's elements of one feature. Forward its input
 * and kernel are operands; backward the gradient of the result takes the place of what is computed.
 * Multiplications by padding count. */
static void convolution(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    const sm_module_shape *a = operand_shape(in, it, 0), *b = operand_shape(in, it, 1);
    bool of_filter = strstr(it->target, "BackwardFilter"),
         of_input = strstr(it->target, "BackwardInput");
    const sm_module_shape *kernel = of_filter ? result_of(it) : b;
    const sm_module_shape *out = of_filter ? b : of_input ? a : result_of(it);
    double features = fmax(features_out(it->convolution->labels, kernel), 1);
    double k = fmax(sm_module_elements(kernel) / features, 1);
    module_add_product(w, (sm_module_product){1, sm_module_elements(out) / features, features, k},
                       a, b);
}

/* Two products forward (QK, PV), five backward (QK again, dV, dP, dQ, dK): Dao 2022, B.4. */
static void attention(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    const sm_module_shape *q = operand_shape(in, it, 0), *k = operand_shape(in, it, 1);
    const int64_t *of = it->dimensions.at; /* sequences, heads, queries, keys */
    bool all = it->dimensions.n == OF_ALL;
    sm_attention_shape a = {.batch = (double)of[0],
                            .heads = (double)of[1],
                            .q_len = (double)of[2],
                            .kv_len = (double)of[3]};
    double batch = a.batch * a.heads;
    bool backward = strstr(it->target, "ackward") != NULL;
    if (!(batch * a.q_len * a.kv_len > 0)) return;
    a.head_size = all ? (double)of[5] : sm_module_elements(q) / (batch * a.q_len);
    a.v_head_size = all ? (double)of[6] : a.head_size;
    if (!(a.head_size > 0)) return;
    a.kv_heads =
        all ? (double)of[4] : fmax(sm_module_elements(k) / (a.batch * a.kv_len * a.head_size), 1);
    a.kv_heads = fmin(a.kv_heads, a.heads);
    /* Their windows count the keys before a query's own; one without a mask has none. */
    bool windowed = it->causal && it->window > 0;
    a.keys = sm_keys_met(a.q_len, a.kv_len, it->causal, windowed ? (double)it->window + 1 : 0, 0);
    a.kv_bytes = sm_module_element_bits(k->element) / 8.0;
    int of_keys = backward ? 3 : 1, of_values = backward ? 2 : 1;
    for (int i = 0; i < of_keys; i++)
        module_add_product(w, (sm_module_product){batch, a.q_len, a.keys, a.head_size}, q, k);
    for (int i = 0; i < of_values; i++)
        module_add_product(w, (sm_module_product){batch, a.q_len, a.keys, a.v_head_size}, q, k);
    w->transcendentals += batch * a.q_len * a.keys;
    w->attention = a;
    w->backward = backward;
}

/* A kernel that says its FLOPs and no shape: as products of so many rows and columns. */
static void estimated(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    enum { SIDE = 4096 };
    const sm_module_shape *a = operand_shape(in, it, 0),
                          *b = operand_shape(in, it, it->operands > 1);
    for (int i = 0; i < it->operands; i++) /* the first that is no index */
        if (sm_module_element_bits(operand_shape(in, it, i)->element) > 0 &&
            sm_module_dtype(operand_shape(in, it, i)->element) != SM_FP32) {
            a = b = operand_shape(in, it, i);
            break;
        }
    double whole = 2.0 * SIDE * SIDE * SIDE;
    if (a && b && it->estimated_flops > 0) {
        module_add_product(
            w, (sm_module_product){fmin(it->estimated_flops / whole, 1), SIDE, SIDE, SIDE}, a, b);
        w->matrix_flops += fmax(it->estimated_flops - whole, 0);
    }
    w->transcendentals += it->estimated_transcendentals;
}

void module_custom_flops(const sm_computation *in, const sm_instruction *it, sm_module_work *w) {
    if (it->opcode != SM_OPCODE_CUSTOM_CALL) return;
    if (is_product(it)) module_dot(in, it, w);
    else if (is_convolution(it)) convolution(in, it, w);
    else if (is_attention(it)) attention(in, it, w);
    else estimated(in, it, w);
}
