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

void sm_program_as_run(sm_program *b) {
    if (b->size[SM_DIM_E] > 0) b->size[SM_DIM_C] = b->size[SM_DIM_T];
    for (int i = 0; i < b->tensors; i++) {
        sm_tensor *t = &b->tensor[i];
        fill_slots(b, t);
        if (t->role != SM_ROLE_IDS)
            t->bytes_per_element = strcmp(t->name, "loss") == 0 ? DOUBLE_BYTES : SINGLE_BYTES;
    }
    for (int i = 0; i < b->ops; i++)
        if (b->op[i].kind == SM_OP_ATTENTION) b->op[i].keys = b->size[SM_DIM_S];
}
