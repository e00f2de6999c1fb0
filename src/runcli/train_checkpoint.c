/* Names and shapes of a checkpoint. Linear layers are stored as [out, in] there, and ours multiply
 * from the left as [in, out]: each is transposed on the way. */
#include "train_checkpoint.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128 };

static const struct known {
    const char *ours, *theirs;
    int inputs;   /* leading dimensions that are summed over: 0, not a linear layer */
    bool experts; /* the first dimension counts experts, each a tensor of its own */
} known[] = {
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

static const struct known *find_known(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].ours, name) == 0) return &known[i];
    return NULL;
}

/* ---- one array as the tensors of a file: slices of rows x columns, transposed or not ---- */

typedef struct form {
    const struct known *k;
    const sm_train_array *array;
    const char *last; /* of the name */
    size_t slices, rows, columns;
} form;

static bool four_norms(const sm_model *m, const sm_train_array *a) {
    return a->layer >= 0 && a->layer < m->L && m->kind[m->layer[a->layer]].norms >= 4;
}

static sm_status form_of(const sm_model *model, const sm_train_array *a, form *f, sm_error *err) {
    *f = (form){.k = find_known(a->name), .array = a, .slices = 1, .rows = 1, .columns = 1};
    if (!f->k) return sm_fail(err, SM_INTERNAL, "a checkpoint has no name for %s", a->name);
    f->last = f->k->theirs;
    if (four_norms(model, a) && strcmp(a->name, "mlp_norm") == 0)
        f->last = "pre_feedforward_layernorm";
    int d = 0;
    if (f->k->experts) f->slices = a->size[d++];
    int inputs = f->k->inputs ? d + f->k->inputs : d + 1;
    for (; d < a->rank; d++)
        if (d < inputs) f->rows *= a->size[d];
        else f->columns *= a->size[d];
    return SM_OK;
}

static void name_of(const form *f, size_t slice, char *name) {
    static const char *const parts[] = {"", "optimizer.first.", "optimizer.second."};
    const char *part = parts[f->array->part];
    bool outside = strncmp(f->last, "model.", 6) == 0 || strcmp(f->last, "lm_head") == 0;
    if (outside) snprintf(name, NAME_BYTES, "%s%s.weight", part, f->last);
    else if (f->k->experts)
        snprintf(name, NAME_BYTES, "%smodel.layers.%d.block_sparse_moe.experts.%zu.%s.weight", part,
                 f->array->layer, slice, f->last);
    else snprintf(name, NAME_BYTES, "%smodel.layers.%d.%s.weight", part, f->array->layer, f->last);
}

static void shape_of(const form *f, sm_safetensor *t) {
    t->rank = f->array->norm ? 1 : 2;
    t->shape[0] = f->k->inputs ? f->columns : f->rows;
    t->shape[1] = f->k->inputs ? f->rows : f->columns;
}

static void transpose(const float *from, size_t rows, size_t columns, float *to) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

/* ---- writing ---- */

typedef struct writing {
    const sm_model *model;
    sm_arena *arena;
    size_t n, room;
    sm_safetensor *tensor;
} writing;

static sm_status make_room(writing *w, sm_error *err) {
    if (w->n < w->room) return SM_OK;
    size_t room = w->room ? 2 * w->room : 256;
    sm_safetensor *more = sm_arena_array(w->arena, room, sizeof *more);
    if (!more) return sm_fail_memory(err);
    if (w->n) memcpy(more, w->tensor, w->n * sizeof *more);
    w->tensor = more;
    w->room = room;
    return SM_OK;
}

static sm_status add_slice(writing *w, const form *f, size_t slice, sm_error *err) {
    char name[NAME_BYTES];
    size_t n = f->rows * f->columns;
    sm_status status = make_room(w, err);
    if (status) return status;
    sm_safetensor *t = &w->tensor[w->n];
    *t = (sm_safetensor){.rank = 0};
    float *data = sm_arena_array(w->arena, n, sizeof *data);
    name_of(f, slice, name);
    t->name = sm_arena_copy(w->arena, name, strlen(name));
    if (!data || !t->name) return sm_fail_memory(err);
    shape_of(f, t);
    if (f->k->inputs) transpose(f->array->data + slice * n, f->rows, f->columns, data);
    else memcpy(data, f->array->data + slice * n, n * sizeof *data);
    t->data = data;
    w->n++;
    return SM_OK;
}

static sm_status add_array(sm_train_array *a, void *context, sm_error *err) {
    writing *w = context;
    form f;
    sm_status status = form_of(w->model, a, &f, err);
    for (size_t i = 0; !status && i < f.slices; i++) status = add_slice(w, &f, i, err);
    return status;
}

sm_status train_checkpoint_write(sm_trainer *t, const sm_model *model, const char *path,
                                 bool writes, sm_error *err) {
    writing w = {.model = model, .arena = sm_arena_new()};
    if (!w.arena) return sm_fail_memory(err);
    sm_status status = sm_trainer_save(t, add_array, &w, err);
    if (!status && writes)
        status = sm_io_safetensors_write(path, w.n, w.tensor, sm_trainer_updates(t), err);
    sm_arena_free(w.arena);
    return status;
}

/* ---- reading ---- */

typedef struct taking {
    const sm_model *model;
    const sm_safetensors *file;
    const char *path;
    float *room; /* of the array at hand */
} taking;

static sm_status take_slice(const taking *r, const form *f, size_t slice, float *to,
                            sm_error *err) {
    char name[NAME_BYTES];
    sm_safetensor wanted = {.rank = 0};
    name_of(f, slice, name);
    shape_of(f, &wanted);
    const sm_safetensor *found = sm_safetensors_find(r->file, name);
    if (!found)
        return sm_fail(err, SM_BAD_INPUT, "%.200s holds no %s, which %s has", r->path, name,
                       r->model->name);
    bool same = found->rank == wanted.rank && found->shape[0] == wanted.shape[0] &&
                (wanted.rank == 1 || found->shape[1] == wanted.shape[1]);
    if (!same)
        return sm_fail(err, SM_BAD_INPUT, "%s of %.200s has another shape than that of %s", name,
                       r->path, r->model->name);
    if (f->k->inputs) transpose(found->data, wanted.shape[0], wanted.shape[1], to);
    else memcpy(to, found->data, f->rows * f->columns * sizeof *to);
    return SM_OK;
}

static sm_status take_array(sm_train_array *a, void *context, sm_error *err) {
    taking *r = context;
    form f;
    sm_status status = form_of(r->model, a, &f, err);
    if (status) return status;
    size_t n = f.rows * f.columns;
    sm_free(r->room);
    r->room = sm_malloc(f.slices * n * sizeof *r->room);
    if (!r->room) return sm_fail_memory(err);
    for (size_t i = 0; !status && i < f.slices; i++)
        status = take_slice(r, &f, i, r->room + i * n, err);
    a->data = r->room;
    return status;
}

sm_status train_checkpoint_take(sm_trainer *t, const sm_model *model, const sm_safetensors *file,
                                const char *path, sm_error *err) {
    taking r = {.model = model, .file = file, .path = path};
    sm_status status = sm_trainer_load(t, take_array, &r, err);
    sm_free(r.room);
    if (!status) sm_trainer_set_updates(t, file->steps);
    return status;
}

sm_status train_checkpoint_take_weights(sm_generator *g, const sm_model *model,
                                        const sm_safetensors *file, const char *path,
                                        sm_error *err) {
    taking r = {.model = model, .file = file, .path = path};
    sm_status status = sm_generator_load(g, take_array, &r, err);
    sm_free(r.room);
    return status;
}
