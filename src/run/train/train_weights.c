/* The weights of a stage. Each element is drawn from the seed, its layer, its tensor and its place
 * in the whole tensor, so that every plan starts from the same model. */
#include "einsum_parts.h"
#include "train_parts.h"

/* Blocks of the training runtime: sizes and places under a layout, moves, sums. */

static sm_axes every_axis(const sm_trainer *t) { return (sm_axes)((1u << t->mesh->mesh.axes) - 1); }

double train_degree(const sm_trainer *t, sm_axes axes) {
    return sm_mesh_size(&t->mesh->mesh, axes);
}

size_t train_local_size(const sm_trainer *t, double whole, const sm_layout *layout, int dim) {
    return (size_t)whole / sm_layout_parts(&t->mesh->mesh, layout, dim, every_axis(t));
}

void train_offsets(const sm_trainer *t, const sm_layout *layout, const sm_local_block *b,
                   size_t *offset) {
    for (int d = 0; d < b->rank; d++)
        offset[d] =
            b->size[d] * sm_layout_part(&t->mesh->mesh, layout, d, every_axis(t), t->mesh->at);
}

/* Tied weights, an unembedding and the embedding or tables of several layers: one weight. Served it
 * is one array; in training others than the first hold a copy, which the optimizer never sees; its
 * gradient is added to the first one's before that is reduced. All are sharded alike, so that no
 * rank needs another's block. Where a pipeline parts who reads it each stage has its own weight and
 * moments, and the same sum of all gradients (train_state.c), so that all stay equal.
 */

static void tie_weight(sm_trainer *t, sm_step_layer *layer, int tensor) {
    int as;
    sm_step_layer *owner = sm_stage_owner(&t->stage, layer, tensor, &as);
    const sm_local_block *from = &owner->weight[as];
    sm_local_block *to = &layer->weight[tensor];
    if (owner == layer) return;
    assert(sm_local_block_count(from) == sm_local_block_count(to));
    if (!t->serving)
        memcpy(to->data, from->data, sm_local_block_count(to) * sm_element_bytes(to->element));
    else if (to->data != from->data) {
        sm_local_block_free(to);
        *to = *from;
    }
}

void train_tie_weights(sm_trainer *t) {
    for (int i = 0; i < t->stage.layers; i++)
        for (int k = 0; k < t->stage.layer[i].list->program->tensors; k++)
            tie_weight(t, &t->stage.layer[i], k);
}

/* ---- what weights are stored in ---- */

/* The op that multiplies by a weight, or looks words up in it; NULL: others read it. */
static const sm_op *multiplies(const sm_program *b, int tensor) {
    const sm_op *reader = NULL;
    for (int o = 0; o < b->ops; o++)
        for (int i = 0; i < b->op[o].inputs; i++) {
            const sm_op *op = &b->op[o];
            if (op->in[i] != tensor) continue;
            bool product = op->kind == SM_OP_EINSUM && op->inputs == 2;
            if (!product && !(op->function == SM_FUNCTION_LOOKUP && op->inputs == 2)) return NULL;
            reader = op;
        }
    return reader;
}

static bool has(const sm_tensor *t, int dim) {
    return memchr(t->dim, dim, (size_t)t->rank) != NULL;
}

typedef enum side { BATCH, INPUTS, OUTPUTS, SIDES } side;

static side side_of(const sm_program *b, const sm_op *op, const sm_tensor *w, int d) {
    const sm_tensor *x = &b->tensor[op->in[w == &b->tensor[op->in[0]]]];
    bool made = has(&b->tensor[op->out], w->dim[d]);
    if (op->function == SM_FUNCTION_LOOKUP) return d == w->rank - 1 ? INPUTS : OUTPUTS;
    return !made ? INPUTS : has(x, w->dim[d]) ? BATCH : OUTPUTS;
}

static size_t local_size(const sm_trainer *t, const sm_program *b, const sm_tensor *w, int d) {
    return (size_t)(b->dim[w->dim[d]].size / train_degree(t, w->at[d]));
}

/* Inputs or outputs in several dimensions are one, the last of them innermost: a box is some of the
 * last one, or all of it and some of the one before. Sizes are those of a rank, so that a box lies
 * on one. */
static void find_box(const sm_trainer *t, sm_element element, const sm_program *b, const sm_op *op,
                     const sm_tensor *w, size_t *box) {
    enum { SIDE = 128, MXFP4 = 32 };
    const bool rows = element == SM_ELEMENT_E2M1 || t->setup->by_rows;
    size_t most[SIDES] = {1, rows ? SIZE_MAX / 2 : SIDE, rows ? 1 : SIDE};
    if (element == SM_ELEMENT_E2M1) most[INPUTS] = MXFP4;
    for (int d = w->rank - 1; d >= 0; d--) {
        side of = side_of(b, op, w, d);
        size_t size = local_size(t, b, w, d);
        /* The largest power of two that divides both. */
        size_t power = 1;
        while (power < most[of] && size % (2 * power) == 0) power *= 2;
        box[d] = power;
        most[of] = box[d] == size ? most[of] / box[d] : 1;
    }
}

sm_element train_weight_element(const sm_trainer *t, int number, const sm_program *b, int tensor,
                                size_t *box) {
    const sm_tensor *w = &b->tensor[tensor];
    const sm_op *op = multiplies(b, tensor);
    sm_element element = t->setup->stored;
    int kinds = t->setup->model->kinds;
    if (!sm_element_scaled(element)) return element;
    if (!op || w->rank < 2) return SM_ELEMENT_F32;
    if (number < kinds) {
        const sm_text_lines *l = t->lines[number];
        const sm_text_array *made = &l->array[l->line[op->line].result[0].array];
        if (made->typed && made->type == SM_FP32) return SM_ELEMENT_F32;
    }
    if (number >= kinds && t->setup->ends_apart) return SM_ELEMENT_BF16;
    bool expert = false;
    for (int d = 0; d < w->rank; d++) expert |= b->dim[w->dim[d]].role == SM_DIMENSION_EXPERTS;
    for (int k = 0; element == SM_ELEMENT_E2M1 && k < kinds; k++)
        if (t->setup->model->kind[k].E > 0 && !expert) return SM_ELEMENT_BF16;
    find_box(t, element, b, op, w, box);
    bool whole_bytes = local_size(t, b, w, w->rank - 1) % 2 == 0; /* of 4 bits */
    return element == SM_ELEMENT_E2M1 && !whole_bytes ? SM_ELEMENT_BF16 : element;
}

typedef struct draw {
    uint64_t seed;
    bool norm, zero;
    double deviation;
    size_t whole[SM_MAX_RANK];
} draw;

/* Norms start at 1, the second matrix of an adapter at 0; the rest is normal (Box and Muller). */
static double drawn(const size_t *position, int rank, void *context) {
    const draw *d = context;
    assert(rank >= 0 && rank <= SM_MAX_RANK);
    if (d->norm || d->zero) return d->norm;
    uint64_t at = 0;
    for (int i = 0; i < rank; i++) at = at * d->whole[i] + position[i];
    sm_rng rng = {d->seed + at * 0x9e3779b97f4a7c15u};
    sm_rng_next(&rng);
    double radius = sqrt(-2 * log(1 - sm_rng_unit(&rng)));
    return d->deviation * radius * cos(2 * 3.14159265358979323846 * sm_rng_unit(&rng));
}

static uint64_t seed_of(uint64_t seed, int layer, const char *name) {
    sm_rng rng = {seed + (uint64_t)(layer + 2) * 0x100000001b3u};
    for (; *name; name++) rng.state = sm_rng_next(&rng) ^ (uint64_t)(unsigned char)*name;
    return sm_rng_next(&rng);
}

/* Does a norm read it? */
static bool scales(const sm_trainer *t, const sm_step_layer *layer, int tensor) {
    const sm_text_lines *l = t->lines[layer->list - t->list];
    for (int i = 0; i < l->arrays; i++)
        if (layer->list->program->tensor_of[i] == tensor && l->array[i].norm) return true;
    return false;
}

static sm_status new_weight(sm_trainer *t, sm_step_layer *layer, int tensor, sm_error *err) {
    int operand = 0;
    const sm_tensor *w = &layer->list->program->tensor[tensor];
    const sm_program_task *task = sm_task_list_reader(layer->list, tensor, &operand);
    assert(task);        /* something reads every weight */
    int number = tensor; /* as without adapters */
    for (int i = 0; i < tensor && !w->adapter; i++)
        number -= layer->list->program->tensor[i].adapter != SM_ADAPTER_NONE;
    draw d = {.seed = seed_of(t->setup->seed + (uint64_t)number, layer->number, w->name),
              .norm = scales(t, layer, tensor),
              .zero = w->adapter == SM_ADAPTER_B,
              .deviation = 1 / sqrt(t->setup->model->D)};
    if (w->tied) { /* drawn as where it stands first */
        int as, first = sm_stage_first_of(&t->stage, w, &as);
        const sm_program *b = t->list[sm_model_list(t->setup->model, first)].program;
        d.seed = seed_of(t->setup->seed + (uint64_t)as, first, b->tensor[as].name);
    }
    const sm_array *array = &task->einsum.in[operand];
    bool idle = t->setup->undrawn && !d.norm && !w->adapter;
    for (int i = 0; i < array->rank; i++)
        d.whole[i] = (size_t)task->einsum.index[array->dim[i].index].size;
    memory_scope before = memory_for(SM_TRAIN_MEMORY_PARAMS);
    size_t box[SM_MAX_RANK];
    sm_local_block *block = &layer->weight[tensor], shape = sm_task_list_block(layer->list, tensor);
    sm_element element =
        train_weight_element(t, (int)(layer->list - t->list), layer->list->program, tensor, box);
    sm_status status = sm_element_scaled(element)
                           ? local_block_scaled(element, shape.rank, shape.size, box, block, err)
                           : sm_local_block_of(t->mesh, &task->einsum, array, element,
                                               &(sm_filling){idle ? NULL : drawn, &d}, block, err);
    if (!status) memcpy(block->whole, shape.whole, sizeof block->whole);
    memory_restore(before);
    return status;
}

static sm_status fill_layer(sm_trainer *t, sm_step_layer *layer, sm_error *err) {
    const sm_program *b = layer->list->program;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < b->tensors; i++)
        if (b->tensor[i].role == SM_ROLE_WEIGHT) status = new_weight(t, layer, i, err);
    return status || t->serving ? status : train_moments_new(t, layer, err);
}

sm_status train_layers_new(sm_trainer *t, sm_error *err) {
    sm_status status = sm_stage_new(&t->stage, t->setup->model, t->list, err);
    if (!status && !t->serving) status = train_peers_new(t, err);
    if (status) return status;
    t->message = sm_calloc((size_t)t->stage.room, sizeof *t->message);
    if (!t->message) return sm_fail_memory(err);
    for (int i = 0; !status && i < t->stage.layers; i++)
        status = fill_layer(t, &t->stage.layer[i], err);
    if (!status) train_tie_weights(t);
    return status;
}

void train_layers_free(sm_trainer *t) {
    for (int i = 0; i < t->stage.layers; i++) train_moments_free(&t->stage.layer[i]);
    /* The array goes with the first layer that has it. The lists of a generator may be gone. */
    const size_t all = (size_t)t->stage.layers * SM_MAX_TENSORS;
    for (size_t i = 1; i < all; i++) {
        sm_local_block *copy = &t->stage.layer[i / SM_MAX_TENSORS].weight[i % SM_MAX_TENSORS];
        for (size_t k = 0; copy->data && k < i; k++)
            if (t->stage.layer[k / SM_MAX_TENSORS].weight[k % SM_MAX_TENSORS].data == copy->data)
                copy->data = NULL;
    }
    sm_stage_free(&t->stage);
    sm_free(t->message);
}

/* ---- for tests and checkpoints ---- */

static int nth_weight(const sm_program *b, int number) {
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].role == SM_ROLE_WEIGHT && number-- == 0) return i;
    return -1;
}

bool sm_trainer_weight(sm_trainer *t, int layer, int number, sm_train_weight *out) {
    sm_step_layer *l = sm_stage_layer(&t->stage, layer);
    int tensor = l ? nth_weight(l->list->program, number) : -1, operand = 0, as;
    if (tensor < 0) return false;
    const sm_step_layer *first = sm_stage_owner(&t->stage, l, tensor, &as);
    const sm_program_task *task = sm_task_list_reader(l->list, tensor, &operand);
    const sm_array *array = &task->einsum.in[operand];
    const sm_local_block *w = &l->weight[tensor];
    sm_layout layout = sm_layout_of(array);
    *out = (sm_train_weight){.name = l->list->program->tensor[tensor].name,
                             .rank = w->rank,
                             .value = w->data,
                             .first = first->number,
                             .first_name = first->list->program->tensor[as].name,
                             .gradient = l->gradient[tensor].data};
    memcpy(out->size, w->size, sizeof out->size);
    train_offsets(t, &layout, w, out->offset);
    for (int d = 0; d < w->rank; d++)
        out->whole[d] = (size_t)task->einsum.index[array->dim[d].index].size;
    return true;
}
