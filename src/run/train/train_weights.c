/* The weights of a stage. Each element is drawn from the seed, its layer, its tensor and its place
 * in the whole tensor, so that every plan starts from the same model. */
#include <math.h>
#include <string.h>

#include "train_parts.h"

typedef struct draw {
    uint64_t seed;
    bool norm, turned; /* turned: drawn as the embedding, [V,D], and held as [D,V] */
    double deviation;
    size_t whole[SM_MAX_RANK];
} draw;

/* Norms start at 1; the rest is normal (Box and Muller). */
static double drawn(const size_t *position, int rank, void *context) {
    const draw *d = context;
    if (d->norm) return 1;
    uint64_t at = 0;
    for (int i = 0; i < rank; i++) {
        int dim = d->turned ? rank - 1 - i : i;
        at = at * d->whole[dim] + position[dim];
    }
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

const sm_program_task *train_reader(const train_piece *p, int tensor, int *operand) {
    for (int i = 0; i < p->forwards; i++)
        for (int k = 0; k < p->task[i].einsum.operands; k++)
            if (p->task[i].tensor[k] == tensor) {
                *operand = k;
                return &p->task[i];
            }
    return NULL;
}

static void draw_as_embedding(const sm_trainer *t, draw *d) {
    const train_piece *p = &t->piece[t->setup->model->kinds];
    int tensor = train_tied_weight(p);
    d->turned = true;
    d->seed = seed_of(t->setup->seed + (uint64_t)tensor, -1, p->program.tensor[tensor].name);
}

static sm_status new_weight(sm_trainer *t, train_layer *layer, int tensor, sm_error *err) {
    int operand = 0;
    const sm_tensor *w = &layer->piece->program.tensor[tensor];
    const sm_program_task *task = train_reader(layer->piece, tensor, &operand);
    if (!task) return sm_fail(err, SM_INTERNAL, "nothing reads the weight %s", w->name);
    draw d = {.seed = seed_of(t->setup->seed + (uint64_t)tensor, layer->number, w->name),
              .norm = w->norm,
              .deviation = 1 / sqrt(t->setup->model->D)};
    if (train_is_copy(t, layer, tensor)) draw_as_embedding(t, &d);
    const sm_array *array = &task->einsum.in[operand];
    for (int i = 0; i < array->rank; i++)
        d.whole[i] = (size_t)task->einsum.index[array->dim[i].index].size;
    memory_scope before = memory_for(SM_TRAIN_MEMORY_PARAMS);
    sm_status status = sm_local_block_of(t->mesh, &task->einsum, array, SM_ELEMENT_F32, drawn, &d,
                                         &layer->weight[tensor], err);
    memory_restore(before);
    return status;
}

static sm_status new_layer(sm_trainer *t, int piece, int number, int chunk, sm_error *err) {
    train_layer *layer = &t->layer[t->layers++];
    layer->piece = &t->piece[piece];
    layer->number = number;
    layer->chunk = chunk;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < layer->piece->program.tensors; i++)
        if (layer->piece->program.tensor[i].role == SM_ROLE_WEIGHT)
            status = new_weight(t, layer, i, err);
    return status || t->serving ? status : train_groups_new(t, layer, err);
}

static sm_status new_chunk(sm_trainer *t, int chunk, const sm_train_chunk *c, sm_error *err) {
    const sm_model *model = t->setup->model;
    int chunks = train_chunks_of_model(t->setup);
    sm_status status = SM_OK;
    if (chunk % chunks == 0) status = new_layer(t, model->kinds, -1, chunk, err);
    for (int l = c->first; !status && l < c->last; l++)
        status = new_layer(t, model->layer[l], l, chunk, err);
    if (!status && chunk % chunks == chunks - 1)
        status = new_layer(t, model->kinds + 1, model->L, chunk, err);
    return status;
}

sm_status train_layers_new(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    const sm_train_chunk all = {0, 0, s->model->L};
    const sm_train_chunk *chunk = s->chunks ? s->chunk : &all;
    int chunks = train_chunks_of_model(s), copies = train_copies(s);
    t->layer = sm_calloc((size_t)s->model->L + 2, sizeof *t->layer);
    if (!t->layer) return sm_fail_memory(err);
    for (int i = 0; i < chunks * copies; i++) { /* in model order, whichever copy has it */
        int c = i % copies * chunks + i / copies;
        if (chunk[c].stage != t->stage) continue;
        sm_status status = new_chunk(t, c, &chunk[c], err);
        if (status) return status;
    }
    train_tie_weights(t);
    size_t held = (size_t)t->layers * (size_t)t->microbatches;
    t->saved = sm_calloc(held + 1, sizeof *t->saved);
    return t->saved ? SM_OK : sm_fail_memory(err);
}

static void free_layer(train_layer *layer) {
    for (int i = 0; i < SM_MAX_TENSORS; i++) {
        sm_local_block_free(&layer->weight[i]);
        sm_local_block_free(&layer->gradient[i]);
    }
    for (int i = 0; i < layer->groups; i++) {
        memory_free(layer->group[i].sum);
        train_moment_free(&layer->group[i].first);
        train_moment_free(&layer->group[i].second);
    }
}

void train_layers_free(sm_trainer *t) {
    for (int i = 0; t->saved && i < t->layers * t->microbatches; i++)
        train_saved_free(&t->saved[i], 0);
    for (int i = 0; i < t->layers; i++) free_layer(&t->layer[i]);
    sm_free(t->saved);
    sm_free(t->layer);
}

/* ---- for tests and checkpoints ---- */

static train_layer *layer_of(const sm_trainer *t, int number) {
    for (int i = 0; i < t->layers; i++)
        if (t->layer[i].number == number) return &t->layer[i];
    return NULL;
}

static int nth_weight(const sm_program *b, int number) {
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].role == SM_ROLE_WEIGHT && number-- == 0) return i;
    return -1;
}

int sm_trainer_weights(const sm_trainer *t, int layer) {
    const train_layer *l = layer_of(t, layer);
    int n = 0;
    while (l && nth_weight(&l->piece->program, n) >= 0) n++;
    return n;
}

bool sm_trainer_weight(sm_trainer *t, int layer, int number, sm_train_weight *out) {
    const train_layer *l = layer_of(t, layer);
    int tensor = l ? nth_weight(&l->piece->program, number) : -1, operand = 0;
    if (tensor < 0) return false;
    const sm_program_task *task = train_reader(l->piece, tensor, &operand);
    const sm_array *array = &task->einsum.in[operand];
    const sm_local_block *w = &l->weight[tensor];
    sm_layout layout = sm_layout_of(array);
    *out = (sm_train_weight){.name = l->piece->program.tensor[tensor].name,
                             .rank = w->rank,
                             .value = w->data,
                             .gradient = l->gradient[tensor].data};
    memcpy(out->size, w->size, sizeof out->size);
    train_offsets(t, &layout, w, out->offset);
    for (int d = 0; d < w->rank; d++)
        out->whole[d] = (size_t)task->einsum.index[array->dim[d].index].size;
    return true;
}
