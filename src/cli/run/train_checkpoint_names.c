/* Names and shapes of a checkpoint. Linear layers are stored as [out, in] there, and ours multiply
 * from the left as [in, out]: each is transposed on the way. */
#include "train_checkpoint_names.h"

#include <stdio.h>
#include <string.h>

struct known {
    const char *ours, *theirs;
    int inputs;   /* leading dimensions that are summed over: 0, not a linear layer */
    bool experts; /* the first dimension counts experts, each a tensor of its own */
};

static const struct known known[] = {
    {"W_embed", "model.embed_tokens", 0, false},
    {"W_head", "lm_head", 1, false},
    {"final_norm", "model.norm", 0, false},
    {"attn_norm", "input_layernorm", 0, false},
    {"attn_post_norm", "post_attention_layernorm", 0, false},
    {"mlp_norm", "post_attention_layernorm", 0, false},
    {"mlp_post_norm", "post_feedforward_layernorm", 0, false},
    {"W_q", "self_attn.q_proj", 1, false},
    {"W_k", "self_attn.k_proj", 1, false},
    {"W_v", "self_attn.v_proj", 1, false},
    {"W_o", "self_attn.o_proj", 3, false},
    {"W_gate", "mlp.gate_proj", 1, false},
    {"W_up", "mlp.up_proj", 1, false},
    {"W_down", "mlp.down_proj", 1, false},
    {"W_router", "block_sparse_moe.gate", 1, false},
    {"W_eg", "w1", 1, true},
    {"W_eu", "w3", 1, true},
    {"W_ed", "w2", 1, true},
};

/* ---- one array as the tensors of a file: slices of rows x columns, transposed or not ---- */

sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, checkpoint_form *f,
                             sm_error *err) {
    *f = (checkpoint_form){.array = a, .slices = 1, .rows = 1, .columns = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].ours, a->name) == 0) f->k = &known[i];
    if (!f->k) return sm_fail(err, SM_INTERNAL, "a checkpoint has no name for %s", a->name);
    f->last = f->k->theirs;
    f->transposed = f->k->inputs > 0;
    if ((a->layer >= 0 && a->layer < model->L && model->kind[model->layer[a->layer]].norms >= 4) &&
        strcmp(a->name, "mlp_norm") == 0)
        f->last = "pre_feedforward_layernorm";
    int d = 0;
    if (f->k->experts) f->slices = a->size[d++];
    int inputs = f->k->inputs ? d + f->k->inputs : d + 1;
    for (; d < a->rank; d++)
        if (d < inputs) f->rows *= a->size[d];
        else f->columns *= a->size[d];
    return SM_OK;
}

void checkpoint_name_of(const checkpoint_form *f, size_t slice, char *name) {
    static const char *const parts[] = {"", "optimizer.first.", "optimizer.second."};
    const char *part = parts[f->array->part];
    bool outside = strncmp(f->last, "model.", 6) == 0 || strcmp(f->last, "lm_head") == 0;
    if (outside) snprintf(name, CHECKPOINT_NAME_BYTES, "%s%s.weight", part, f->last);
    else if (f->k->experts)
        snprintf(name, CHECKPOINT_NAME_BYTES,
                 "%smodel.layers.%d.block_sparse_moe.experts.%zu.%s.weight", part, f->array->layer,
                 slice, f->last);
    else
        snprintf(name, CHECKPOINT_NAME_BYTES, "%smodel.layers.%d.%s.weight", part, f->array->layer,
                 f->last);
}

void checkpoint_shape_of(const checkpoint_form *f, sm_safetensor *t) {
    t->rank = f->array->norm ? 1 : 2;
    t->shape[0] = f->transposed ? f->columns : f->rows;
    t->shape[1] = f->transposed ? f->rows : f->columns;
}

void checkpoint_transpose(const float *from, size_t rows, size_t columns, float *to) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}
