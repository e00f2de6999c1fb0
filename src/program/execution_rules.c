/* What the software that executes a program makes of its arrays and its work (sm_rules). */
#include "program_parts.h"

enum { SINGLE_BYTES = 4, DOUBLE_BYTES = 8 };

sm_rules sm_rules_of_runtime(sm_rules rules) {
    rules.single = rules.all_slots = rules.all_keys = rules.slow_exp = rules.each_weight = true;
    return rules;
}

static double elements_of(const sm_program *b, const sm_tensor *t) {
    double elements = 1;
    for (int d = 0; d < t->rank; d++) elements *= b->size[t->dim[d]];
    return elements;
}

void program_fit_software(sm_program *b) {
    if (b->rules.all_slots && b->size[SM_DIM_E] > 0) {
        b->size[SM_DIM_C] = b->size[SM_DIM_T];
        for (int i = 0; i < b->tensors; i++)
            if (program_dims(&b->tensor[i]) >> SM_DIM_C & 1u)
                b->tensor[i].elements = elements_of(b, &b->tensor[i]);
    }
    if (b->rules.single) {
        for (int i = 0; i < b->tensors; i++)
            if (b->tensor[i].role != SM_ROLE_IDS) b->tensor[i].bytes_per_element = SINGLE_BYTES;
        const sm_op *last = &b->op[b->ops - 1];
        if (last->function == SM_FUNCTION_LOSS)
            b->tensor[last->out].bytes_per_element = DOUBLE_BYTES;
        /* a byte is drawn from the scores of all words, which travel */
        if (last->function == SM_FUNCTION_SAMPLE)
            b->tensor[last->out].bytes_per_element *= b->size[SM_DIM_V];
    }
    if (b->rules.slow_exp) {
        /* Exponentials as polynomials: clamping, splitting, six terms, the power of two (row_math.c
         * of the runtime); with the division of a gate or the maximum and sum of a loss they take
         * about so many operations. Backward they are made again, for each input. */
        static const double GATE_FLOPS = 32, LOSS_FLOPS = 25;
        for (int i = 0; i < b->ops; i++) {
            sm_op *op = &b->op[i];
            if (op->function == SM_FUNCTION_GATE) op->flops_per_element = GATE_FLOPS;
            if (op->function == SM_FUNCTION_LOSS)
                op->flops_per_element = LOSS_FLOPS * b->size[SM_DIM_V];
        }
    }
    for (int i = 0; b->rules.all_keys && i < b->ops; i++)
        if (b->op[i].kind == SM_OP_ATTENTION) b->op[i].keys = b->size[SM_DIM_S];
}
