/* Where a layer's communication takes as long as its matmuls: the roofline of training, solved
 * numerically on the partitioned program and the collective curves. The forward pass of an MLP of
 * two matrices, as in the book. */
#pragma once
#include "instruments.h"
#include "partition.h"

typedef struct threshold {
    const sm_partition *layer;
    double flops_per_s;       /* of a chip */
    double fsdp_s_per_byte;   /* of an all-gather over the chips of the fsdp axis */
    double tensor_s_per_byte; /* over those of the tensor axis */
} threshold;

threshold book_threshold(const sm_partition *layer, const sm_chip *chip);

/* Seconds of the forward pass of one layer, `tokens` over fsdp x tensor chips. Degrees may be
 * fractions: sizes are products and quotients. */
double book_math_s(const threshold *t, double fsdp, double tensor, double tokens);
double book_fsdp_s(const threshold *t, double fsdp, double tensor, double tokens);
double book_tensor_s(const threshold *t, double fsdp, double tensor, double tokens);

double book_fsdp_critical(const threshold *t);   /* tokens per chip under fsdp alone */
double book_tensor_critical(const threshold *t); /* the largest tensor degree */
double book_best_fsdp(const threshold *t, double chips, double tokens); /* the rest is tensor */
/* tokens per chip at which the best mixture is as long on the network as in the matmuls */
double book_mixed_critical(const threshold *t, double chips);
/* Tokens of a replica at which the all-reduce of its bf16 gradients, this many seconds per byte of
 * one chip's share, is as long as the backward pass. */
double book_data_critical(const threshold *t, double all_reduce_s_per_byte);
