/* What the software that executes a program makes of its arrays and its work (sm_rules). */
#include "program_parts.h"

const double sm_stored_as_bytes[SM_STORED_AS_COUNT] = {2, 1, 1, (4 + 0.127) / 8};

enum { SINGLE_BYTES = 4, DOUBLE_BYTES = 8 };

sm_rules sm_rules_of_runtime(sm_rules rules) {
    rules.width = SINGLE_BYTES;
    rules.all_slots = rules.all_keys = rules.slow_exp = rules.each_weight = rules.each_line = true;
    return rules;
}

static double elements_of(const sm_program *b, const sm_tensor *t) {
    double elements = 1;
    for (int d = 0; d < t->rank; d++) elements *= b->dim[t->dim[d]].size;
    return elements;
}

static double size_of_role(const sm_program *b, sm_dimension_role role) {
    return b->dim[program_first(b, ~0ull, role)].size;
}

void program_fit_software(sm_program *b) {
    int slots = program_first(b, ~0ull, SM_DIMENSION_SLOTS);
    if ((b->rules.all_slots || b->rules.capacity) && slots >= 0) {
        b->dim[slots].size = b->rules.all_slots ? size_of_role(b, SM_DIMENSION_POSITIONS)
                                                : b->dim[slots].size * 0.01 * b->rules.capacity;
        for (int i = 0; i < b->tensors; i++)
            if (program_has(b, program_dims(&b->tensor[i]), SM_DIMENSION_SLOTS))
                b->tensor[i].elements = elements_of(b, &b->tensor[i]);
    }
    if (b->rules.width) {
        for (int i = 0; i < b->tensors; i++)
            if (b->tensor[i].role != SM_ROLE_IDS) b->tensor[i].bytes_per_element = b->rules.width;
        const sm_op *last = &b->op[b->ops - 1];
        if (last->function == SM_FUNCTION_LOSS)
            b->tensor[last->out].bytes_per_element = DOUBLE_BYTES;
        /* a byte is drawn from the scores of all words, which travel */
        if (last->function == SM_FUNCTION_SAMPLE)
            b->tensor[last->out].bytes_per_element =
                SINGLE_BYTES * size_of_role(b, SM_DIMENSION_VOCABULARY);
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
                op->flops_per_element = LOSS_FLOPS * size_of_role(b, SM_DIMENSION_VOCABULARY);
        }
    }
    for (int i = 0; b->rules.all_keys && i < b->ops; i++)
        if (b->op[i].kind == SM_OP_ATTENTION) b->op[i].keys = size_of_role(b, SM_DIMENSION_KEYS);
}
