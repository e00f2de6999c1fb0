/* module_work: FLOPs and bytes of one instruction. Private to src/module. */
#pragma once
#include "scalemodel/module.h"

/* Add the FLOPs of an instruction; inner: of each computation once, known of those it calls. */
void module_flops_of(const sm_computation *in, const sm_instruction *it,
                     const sm_module_work *inner, sm_module_work *w);
/* batch products of [m,k] by [k,n], their operands of these types. */
typedef struct sm_module_product {
    double batch, m, n, k;
} sm_module_product;
void module_add_product(sm_module_work *w, sm_module_product p, const sm_module_shape *lhs,
                        const sm_module_shape *rhs);
/* The product of the first two operands over the dimensions that the instruction names. */
void module_dot(const sm_computation *in, const sm_instruction *it, sm_module_work *w);
/* Custom calls whose work is known (module_custom.c). */
void module_custom_flops(const sm_computation *in, const sm_instruction *it, sm_module_work *w);
/* What a compiler fuses into what reads it, and reads without writing it first. */
bool module_is_fusable(sm_module_opcode opcode);
