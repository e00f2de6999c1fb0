/* The program as src/run executes it, so that what is priced is what runs. */
#include <string.h>

#include "scalemodel/program.h"

enum { SINGLE_BYTES = 4, DOUBLE_BYTES = 8 };

/* Elements of the slots of experts, which were those of a balanced load. */
static void fill_slots(const sm_program *b, sm_tensor *t) {
    double elements = 1;
    bool slots = false;
    for (int d = 0; d < t->rank; d++) {
        elements *= b->size[t->dim[d]];
        slots = slots || t->dim[d] == SM_DIM_C;
    }
    if (slots) t->elements = elements;
}

/* Exponentials are polynomials in the vector unit: clamping, splitting, six terms, the power of two
 * (row_math.c of the runtime); with the division of a gate or the maximum and sum of a loss they
 * take about so many operations. Backward they are made again, for each input. */
static const double GATE_FLOPS = 32, LOSS_FLOPS = 25;

static void count_flops(const sm_program *b, sm_op *op) {
    if (op->kind == SM_OP_ATTENTION) op->keys = b->size[SM_DIM_S];
    if (strcmp(op->name, "mlp_act") == 0 || strcmp(op->name, "expert_act") == 0)
        op->flops_per_element = GATE_FLOPS;
    if (strcmp(op->name, "loss") == 0) op->flops_per_element = LOSS_FLOPS * b->size[SM_DIM_V];
}

void sm_program_as_run(sm_program *b) {
    if (b->size[SM_DIM_E] > 0) b->size[SM_DIM_C] = b->size[SM_DIM_T];
    for (int i = 0; i < b->tensors; i++) {
        sm_tensor *t = &b->tensor[i];
        fill_slots(b, t);
        if (t->role != SM_ROLE_IDS)
            t->bytes_per_element = strcmp(t->name, "loss") == 0 ? DOUBLE_BYTES : SINGLE_BYTES;
        /* a byte is drawn from the scores of all words, which travel */
        if (strcmp(t->name, "token") == 0) t->bytes_per_element *= b->size[SM_DIM_V];
    }
    for (int i = 0; i < b->ops; i++) count_flops(b, &b->op[i]);
}
