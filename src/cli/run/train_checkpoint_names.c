/* Names and shapes of a checkpoint. Linear layers are stored as [out, in] there, and ours multiply
 * from the left as [in, out]: each is transposed on the way. */
#include "train_checkpoint_names.h"

#include <stdio.h>
#include <string.h>

struct known {
    const char *ours, *theirs;
    int layer;  /* EMBEDDING, HEAD, else of a layer */
    int inputs; /* leading dimensions that are summed over: 0, not a linear layer */
    int rank;   /* of experts 3: the first dimension counts them, each a tensor of its own */
};
enum { EMBEDDING = -1, HEAD = 1 };

static const struct known known[] = {
    {"w", "model.embed_tokens", EMBEDDING, 0, 2},
    {"w", "lm_head", HEAD, 1, 2},
    {"n", "model.norm", HEAD, 0, 1},
    {"n1", "input_layernorm", 0, 0, 1},
    {"n2", "post_attention_layernorm", 0, 0, 1},
    {"n3", "pre_feedforward_layernorm", 0, 0, 1},
    {"n4", "post_feedforward_layernorm", 0, 0, 1},
    {"wq", "self_attn.q_proj", 0, 1, 4},
    {"wk", "self_attn.k_proj", 0, 1, 3},
    {"wv", "self_attn.v_proj", 0, 1, 3},
    {"wo", "self_attn.o_proj", 0, 3, 4},
    {"wg", "mlp.gate_proj", 0, 1, 2},
    {"wu", "mlp.up_proj", 0, 1, 2},
    {"wd", "mlp.down_proj", 0, 1, 2},
    {"wr", "block_sparse_moe.gate", 0, 1, 2},
    {"wg", "w1", 0, 1, 3},
    {"wu", "w3", 0, 1, 3},
    {"wd", "w2", 0, 1, 3},
};

static bool has_experts(const struct known *k) { return k->theirs[0] == 'w'; }

/* ---- one array as the tensors of a file: slices of rows x columns, transposed or not ---- */

sm_status checkpoint_form_of(const sm_model *model, const sm_train_array *a, checkpoint_form *f,
                             sm_error *err) {
    *f = (checkpoint_form){.array = a, .slices = 1, .rows = 1, .columns = 1};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].ours, a->name) == 0 && known[i].rank == a->rank &&
            known[i].layer == (a->layer < 0           ? EMBEDDING
                               : a->layer == model->L ? HEAD
                                                      : 0))
            f->k = &known[i];
    if (!f->k) return sm_fail(err, SM_INTERNAL, "a checkpoint has no name for %s", a->name);
    f->last = f->k->theirs;
    f->transposed = f->k->inputs > 0;
    int d = 0;
    if (has_experts(f->k)) f->slices = a->size[d++];
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
    else if (has_experts(f->k))
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
