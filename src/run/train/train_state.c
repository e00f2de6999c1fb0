/* Weights and moments as whole arrays: gathered on a rank block by block, or cut out of whole
 * arrays again on another mesh. */
#include "einsum_parts.h"
#include "train_parts.h"

/* Weights that several stages of a pipeline hold: all of them under dualpipe, which keeps the model
 * twice, and a table that is tied where the pipeline parts those who read it. At the end of a step
 * its stages sum their gradients (rows.c of program), so that all copies stay equal to the last
 * bit. */

int train_copies(const sm_train_setup *s) { return s->copies > 1 ? s->copies : 1; }

/* That of the other copy of its chunk. */
static int peer_of(const sm_train_setup *s, int stage) {
    for (int c = 0; c < s->chunks; c++)
        if (s->chunk[c].stage == stage) return s->chunk[(c + s->chunks / 2) % s->chunks].stage;
    return stage;
}

static bool mirrored(const sm_train_setup *s) {
    if (s->chunks % 2) return false;
    for (int c = 0; c < s->chunks; c++) {
        const sm_train_chunk *a = &s->chunk[c], *b = &s->chunk[(c + s->chunks / 2) % s->chunks];
        if (a->first != b->first || a->last != b->last || a->stage == b->stage) return false;
        if (peer_of(s, a->stage) != b->stage) return false;
    }
    return true;
}

sm_status train_check_copies(const sm_train_setup *s, sm_error *err) {
    if (s->copies < 0 || s->copies > 2 || (s->copies == 2 && !s->chunks))
        return sm_fail(err, SM_BAD_INPUT, "a pipeline holds the model once or twice, not %d times",
                       s->copies);
    if (train_copies(s) == 1) return SM_OK;
    if (!mirrored(s))
        return sm_fail(err, SM_BAD_INPUT,
                       "two copies of the model need their stages in pairs that hold the same "
                       "layers");
    if (s->model->tied && s->chunk[0].stage != s->chunk[s->chunks - 1].stage)
        return sm_fail(err, SM_BAD_INPUT,
                       "two copies of a tied embedding need each beside an unembedding");
    return sm_train_setup_microbatches(s) % 2
               ? sm_fail(err, SM_BAD_INPUT,
                         "%d microbatches do not halve over two copies of the "
                         "model",
                         sm_train_setup_microbatches(s))
               : SM_OK;
}

/* Data is the outermost axis of a mesh: the ranks of a copy are neighbours along it. */
sm_status train_state_copies_new(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    int data = s->degree[SM_AXIS_DATA], at = t->mesh->at[SM_AXIS_DATA];
    if (!s->zero || s->state_copies <= 1) return SM_OK;
    int inner = data / s->state_copies;
    sm_status status = SM_OK;
    for (unsigned axes = 1; !status && axes < 1u << SM_AXIS_COUNT; axes++) {
        sm_communicator *over = t->mesh->over[axes];
        if (!(axes & SM_BIT(SM_AXIS_DATA)) || !over) continue;
        status = over->backend->split(over, at / inner, over->rank, &t->one_copy[axes], err);
    }
    sm_communicator *along = t->mesh->over[SM_BIT(SM_AXIS_DATA)];
    return status ? status
                  : along->backend->split(along, at % inner, along->rank, &t->across_copies, err);
}

/* Made by every stage, also by those that are alone in theirs. */
sm_status train_peers_new(sm_trainer *t, sm_error *err) {
    const sm_train_setup *s = t->setup;
    const int own = t->stage.number, all = train_copies(s) == 2 ? 1 : t->stage.ties;
    sm_communicator *line = t->mesh->over[1 << TRAIN_PIPELINE];
    sm_status status = SM_OK;
    for (int i = 0; !status && i < all; i++) {
        int peer = train_copies(s) == 2 ? peer_of(s, own) : -1;
        int color = peer >= 0 ? (own < peer ? own : peer)
                              : (sm_stage_holds(&t->stage, own, i) ? 0 : own + 1);
        status = line->backend->split(line, color, own, &t->peers[i], err);
    }
    return status;
}

/* Batches of bytes, or the tokens fed to a generator. Which bytes sequence i of step s holds
 * follows from the seed alone, so that every plan trains on the same text in the same order. The
 * seed is mixed first: 1 and 4 as they are would deal out the same sequences in another order. */

static int byte_at(const sm_trainer *t, sm_rng rng, size_t position) {
    size_t words = (size_t)t->setup->tokens + t->ahead - t->seen;
    size_t first = sm_rng_below(&rng, t->setup->data_bytes - words);
    return t->setup->data[first + position];
}

size_t train_sequence(const sm_trainer *t, size_t sequence) {
    return (size_t)t->stage.microbatch * (size_t)t->extent.sequences + sequence;
}

/* number: of a sequence in its batch, or of a picture. */
static sm_rng draws_of(const sm_trainer *t, size_t number) {
    sm_rng rng = {t->setup->seed};
    rng.state = sm_rng_next(&rng) ^ ((uint64_t)t->step << 32 | number);
    return rng;
}

/* A model that sees both ways is told words that were hidden (BERT, arXiv 1810.04805, section 3.1):
 * 15 in a hundred, one of each of so many equal parts of a sequence, behind the word that is no
 * byte. */
enum { MASK = 256, HIDDEN_PER_CENT = 15 };

static size_t parts_hidden(const sm_trainer *t) {
    size_t parts = ((size_t)t->setup->tokens * HIDDEN_PER_CENT + 50) / 100;
    return parts ? parts : 1;
}

static bool hides(const sm_trainer *t, sm_rng rng, size_t position) {
    size_t tokens = (size_t)t->setup->tokens, parts = parts_hidden(t), part;
    part = ((position + 1) * parts - 1) / tokens;
    size_t begin = part * tokens / parts, end = (part + 1) * tokens / parts;
    rng.state += part + 1;
    return begin + sm_rng_below(&rng, end - begin) == position;
}

int train_word(const sm_trainer *t, size_t sequence, size_t position) {
    const train_feed *fed = t->feed;
    if (fed) return fed->token[sequence * fed->width + position];
    if (t->setup->pairs) return train_pair_byte(t, sequence, position);
    if (position < t->seen) return t->setup->model->V + (int)position;
    sm_rng rng = draws_of(t, train_sequence(t, sequence));
    bool hidden = !t->setup->model->causal && hides(t, rng, position);
    return hidden ? MASK : byte_at(t, rng, position - t->seen);
}

int train_target(const sm_trainer *t, size_t sequence, size_t position) {
    if (t->setup->pairs) return train_pair_target(t, sequence, position + 1);
    if (position + 1 < t->seen) return -1;
    sm_rng rng = draws_of(t, train_sequence(t, sequence));
    if (t->setup->model->causal) return byte_at(t, rng, position + 1 + t->ahead - t->seen);
    return hides(t, rng, position) ? byte_at(t, rng, position) : -1;
}

void train_give(const sm_trainer *t, const sm_call *call) {
    const sm_program *b = call->list->program;
    const sm_einsum *einsum;
    sm_layout layout = sm_layout_of(sm_task_list_array(call->list, b->input, &einsum));
    const uint8_t *dim = b->tensor[b->input].dim;
    size_t positions = (size_t)b->dim[dim[1]].size, width = (size_t)b->dim[dim[2]].size;
    size_t before = train_sequence(t, 0) * (size_t)b->dim[dim[0]].size; /* of pictures several */
    size_t offset[SM_MAX_RANK], row = call->out->size[2], n = sm_local_block_count(call->out);
    train_offsets(t, &layout, call->out, offset);
    for (size_t i = 0; i < n; i++) {
        size_t line = i / row, sequence = before + line / call->out->size[1] + offset[0];
        size_t place = line % call->out->size[1] + offset[1];
        size_t at = place * width + offset[2] + i % row;
        sm_rng rng = draws_of(t, sequence);
        rng.state += at + 1;
        float x = (float)(sm_rng_next(&rng) >> 40) / 8388608.0F - 1;
        if (t->feed && t->feed->given) x = t->feed->given[sequence * positions * width + at];
        sm_elements_write(call->out->element, call->out->data, i, 1, &x);
    }
}

double train_targets(const sm_trainer *t) {
    const sm_train_setup *s = t->setup;
    if (s->pairs) return s->sequences / 2.0;
    size_t told = t->seen ? (size_t)s->tokens - t->seen + 1 : (size_t)s->tokens;
    return (double)s->sequences * (double)(s->model->causal ? told : parts_hidden(t));
}

size_t train_position(const sm_trainer *t, size_t sequence) {
    return t->feed && !t->reads ? t->feed->position[sequence] : 0;
}

static const size_t nowhere[SM_MAX_RANK] = {0};

static int last_part(const sm_trainer *t) {
    return t->setup->optimizer == SM_TRAIN_SGD ? SM_TRAIN_VALUE : SM_TRAIN_SECOND;
}

/* ---- which arrays there are, on every rank in the same order ---- */

static const sm_task_list *piece_of(const sm_trainer *t, int layer) {
    return &t->list[sm_model_list(t->setup->model, layer)];
}

static int stage_of(const sm_trainer *t, int layer) {
    const sm_train_setup *s = t->setup;
    if (!s->chunks || layer < 0) return s->chunks ? s->chunk[0].stage : 0;
    if (layer > s->model->L) layer = s->model->out[layer - s->model->L].before;
    for (int c = 0; c < s->chunks; c++)
        if (layer >= s->chunk[c].first && layer < s->chunk[c].last) return s->chunk[c].stage;
    return s->chunk[sm_stage_model_chunks(&t->stage) - 1].stage;
}

static bool is_weight(const sm_task_list *p, int tensor) {
    return p->program->tensor[tensor].role == SM_ROLE_WEIGHT;
}

/* Of tied weights the first is kept; what is not trained has no moments. */
static bool is_kept(const sm_trainer *t, const sm_task_list *p, int number, int tensor,
                    sm_train_part part) {
    const sm_tensor *w = &p->program->tensor[tensor];
    int as;
    bool copy = w->tied && sm_stage_first_of(&t->stage, w, &as) != number;
    bool moments = part == SM_TRAIN_VALUE || !w->fixed;
    return is_weight(p, tensor) && !p->program->still && !copy && moments;
}

/* Returns its layout. */
static sm_layout describe(const sm_trainer *t, const sm_task_list *p, int layer, int tensor,
                          sm_train_part part, sm_train_array *out) {
    const sm_einsum *einsum;
    const sm_array *array = sm_task_list_array(p, tensor, &einsum);
    *out = (sm_train_array){.layer = layer,
                            .name = p->program->tensor[tensor].name,
                            .norm = p->program->tensor[tensor].norm,
                            .part = part,
                            .rank = array->rank,
                            .lines = t->lines[p - t->list]};
    const sm_tensor *w = &p->program->tensor[tensor];
    out->adapter = w->adapter;
    int of = w->adapter ? w->beside : tensor;
    while (out->array < out->lines->arrays && p->program->tensor_of[out->array] != of) out->array++;
    for (int d = 0; d < array->rank; d++)
        out->size[d] = (size_t)einsum->index[array->dim[d].index].size;
    return sm_layout_of(array);
}

/* ---- where blocks lie ---- */

/* Sizes and offsets of the block of the rank at these coordinates. */
static void block_at(const sm_trainer *t, const sm_layout *layout, const sm_train_array *a,
                     const int *at, size_t *size, size_t *offset) {
    const sm_mesh *mesh = &t->mesh->mesh;
    sm_axes all = (sm_axes)((1u << mesh->axes) - 1);
    for (int d = 0; d < a->rank; d++) {
        size[d] = a->size[d] / sm_layout_parts(mesh, layout, d, all);
        offset[d] = size[d] * sm_layout_part(mesh, layout, d, all, at);
    }
}

bool train_is_first(const sm_layout *layout, const int *at) {
    for (int a = 0; a < TRAIN_PIPELINE; a++)
        if (layout->dim[a] < 0 && at[a] > 0) return false;
    return true;
}

static bool sends(const sm_layout *layout, const int *at, int stage) {
    return at[TRAIN_PIPELINE] == stage && train_is_first(layout, at);
}

static void put_box(sm_train_array *a, const void *block, const size_t *size,
                    const size_t *offset) {
    box_side to = {a->data, a->size, offset}, from = {(void *)(uintptr_t)block, size, nowhere};
    box_copy(&to, &from, a->rank, size, sizeof(float));
}

/* ---- who gathers it ---- */

/* All arrays of a layer go to one rank, for files may have several of them in one tensor: of the
 * ranks of its stage, to the one with the least so far. load: what each rank has been dealt; NULL:
 * the first rank gathers everything. */
static int deal_out(const sm_trainer *t, int layer, double *load) {
    const sm_task_list *p = piece_of(t, layer);
    int best = -1, stage = stage_of(t, layer);
    if (!load) return 0;
    for (int rank = 0; rank < t->world->size; rank++) {
        int at[SM_MAX_AXES] = {0};
        coordinates_of(&t->mesh->mesh, (sm_axes)((1u << t->mesh->mesh.axes) - 1), rank, at);
        if (at[TRAIN_PIPELINE] == stage && (best < 0 || load[rank] < load[best])) best = rank;
    }
    assert(best >= 0); /* every stage has a rank */
    for (int i = 0; i < p->program->tensors; i++)
        if (is_kept(t, p, layer, i, SM_TRAIN_VALUE)) load[best] += p->program->tensor[i].elements;
    return best;
}

/* ---- gathering ---- */

enum { TAG = 7 };

static sm_status send_block(sm_trainer *t, const sm_local_block *block, int to, sm_error *err) {
    sm_request_handle handle = {{NULL}};
    const sm_backend *b = t->world->backend;
    size_t bytes = sm_local_block_count(block) * sizeof(float);
    sm_status status = b->start_send(t->world, block->data, bytes, to, TAG, &handle, err);
    return status ? status : b->wait(t->world, &handle, err);
}

static sm_status receive_block(sm_trainer *t, int rank, const size_t *size, const size_t *offset,
                               sm_train_array *a, sm_error *err) {
    sm_request_handle handle = {{NULL}};
    const sm_backend *b = t->world->backend;
    size_t bytes = sizeof(float);
    for (int d = 0; d < a->rank; d++) bytes *= size[d];
    void *block = sm_malloc(bytes + 1);
    if (!block) return sm_fail_memory(err);
    sm_status status = b->start_receive(t->world, block, bytes, rank, TAG, &handle, err);
    if (!status) status = b->wait(t->world, &handle, err);
    if (!status) put_box(a, block, size, offset);
    sm_free(block);
    return status;
}

static sm_status collect(sm_trainer *t, const sm_layout *layout, int stage,
                         const sm_local_block *own, sm_train_array *a, sm_error *err) {
    sm_status status = SM_OK;
    sm_axes all = (sm_axes)((1u << t->mesh->mesh.axes) - 1);
    for (int rank = 0; !status && rank < t->world->size; rank++) {
        int at[SM_MAX_AXES] = {0};
        size_t size[SM_MAX_RANK], offset[SM_MAX_RANK];
        coordinates_of(&t->mesh->mesh, all, rank, at);
        if (!sends(layout, at, stage)) continue;
        block_at(t, layout, a, at, size, offset);
        if (rank == t->world->rank) put_box(a, own->data, size, offset);
        else status = receive_block(t, rank, size, offset, a, err);
    }
    return status;
}

static sm_status save_array(sm_trainer *t, sm_train_array *a, const sm_layout *layout,
                            const sm_local_block *own, sm_train_visit visit, void *context,
                            sm_error *err) {
    int stage = stage_of(t, a->layer);
    if (t->world->rank != a->owner)
        return sends(layout, t->mesh->at, stage) ? send_block(t, own, a->owner, err) : SM_OK;
    size_t bytes = sizeof(float);
    for (int d = 0; d < a->rank; d++) bytes *= a->size[d];
    a->data = sm_malloc(bytes + 1);
    if (!a->data) return sm_fail_memory(err);
    sm_status status = collect(t, layout, stage, own, a, err);
    if (!status) status = visit(a, context, err);
    sm_free(a->data);
    return status;
}

/* Blocks of one part of a layer's weights: the weights themselves, or made for the occasion. */
typedef struct blocks {
    sm_local_block block[SM_MAX_TENSORS];
    bool own;
} blocks;

static void free_blocks(blocks *b) {
    for (int i = 0; b->own && i < SM_MAX_TENSORS; i++) sm_local_block_free(&b->block[i]);
}

static sm_status empty_blocks(const sm_step_layer *layer, blocks *b, sm_error *err) {
    sm_status status = SM_OK;
    *b = (blocks){.own = true};
    for (int i = 0; !status && i < layer->list->program->tensors; i++)
        if (is_weight(layer->list, i))
            status = sm_local_block_new(SM_ELEMENT_F32, layer->weight[i].rank,
                                        layer->weight[i].size, &b->block[i], err);
    return status;
}

static sm_status fill_blocks(sm_trainer *t, sm_step_layer *layer, sm_train_part part, blocks *b,
                             sm_error *err) {
    *b = (blocks){.own = false};
    if (!layer) return SM_OK;
    if (part == SM_TRAIN_VALUE && !t->setup->stored) {
        memcpy(b->block, layer->weight, sizeof b->block);
        return SM_OK;
    }
    sm_status status = empty_blocks(layer, b, err);
    return status ? status : train_state_out(t, layer, part, b->block, err);
}

/* Arrays are gathered on their owner, or (lists) described on every rank. */
typedef struct visiting {
    double *load; /* dealt out so far; NULL: not */
    bool lists;
    sm_train_visit visit;
    void *context;
} visiting;

/* Visit the arrays of a layer. */
static sm_status save_layer(sm_trainer *t, int number, sm_train_part part, const visiting *v,
                            sm_error *err) {
    const sm_task_list *p = piece_of(t, number);
    blocks b = {.own = false};
    int owner = deal_out(t, number, v->load);
    sm_status status =
        v->lists ? SM_OK : fill_blocks(t, sm_stage_layer(&t->stage, number), part, &b, err);
    for (int i = 0; !status && i < p->program->tensors; i++) {
        sm_train_array a;
        if (!is_kept(t, p, number, i, part)) continue;
        sm_layout layout = describe(t, p, number, i, part, &a);
        a.owner = owner;
        status = v->lists ? v->visit(&a, v->context, err)
                          : save_array(t, &a, &layout, &b.block[i], v->visit, v->context, err);
    }
    free_blocks(&b);
    return status;
}

static sm_status save(sm_trainer *t, bool dealt, bool lists, sm_train_visit visit, void *context,
                      sm_error *err) {
    const sm_model *model = t->setup->model;
    double *load = dealt ? sm_calloc((size_t)t->world->size, sizeof *load) : NULL;
    sm_status status = dealt && !load ? sm_fail_memory(err) : SM_OK;
    const visiting v = {load, lists, visit, context};
    for (int part = SM_TRAIN_VALUE; part <= last_part(t); part++)
        for (int layer = -1; !status && layer <= model->L + model->outside - 2; layer++)
            status = save_layer(t, layer, (sm_train_part)part, &v, err);
    sm_free(load);
    return status;
}

sm_status sm_trainer_save(sm_trainer *t, sm_train_visit visit, void *context, sm_error *err) {
    return save(t, false, false, visit, context, err);
}

sm_status sm_trainer_save_dealt(sm_trainer *t, sm_train_visit visit, void *context, sm_error *err) {
    return save(t, true, false, visit, context, err);
}

sm_status sm_trainer_list(sm_trainer *t, bool dealt, sm_train_visit visit, void *context,
                          sm_error *err) {
    return save(t, dealt, true, visit, context, err);
}

/* ---- cutting out ---- */

static void take_part(const sm_train_array *a, float *data, float *part) {
    box_side to = {part, a->count, nowhere}, from = {data, a->size, a->from};
    if (a->cut) from = (box_side){data, a->count, nowhere};
    box_copy(&to, &from, a->rank, a->count, sizeof(float));
}

static sm_status load_array(sm_trainer *t, sm_train_array *a, const sm_layout *layout,
                            sm_local_block *block, sm_train_visit find, void *context,
                            sm_error *err) {
    block_at(t, layout, a, t->mesh->at, a->count, a->from);
    sm_status status = find(a, context, err);
    if (status || !a->data) return status;
    take_part(a, a->data, block->data);
    return SM_OK;
}

/* A weight that is kept as it is stored alone, with its scales where it came with some. */
static sm_status load_stored(sm_trainer *t, sm_train_array *a, const sm_layout *layout,
                             sm_local_block *weight, sm_train_visit find, void *context,
                             sm_error *err) {
    sm_local_block plain = {.data = NULL}, scale = {.data = NULL};
    if (weight->element == SM_ELEMENT_F32)
        return load_array(t, a, layout, weight, find, context, err);
    a->scaled = sm_element_scaled(weight->element);
    sm_status status = sm_local_block_new(SM_ELEMENT_F32, weight->rank, weight->size, &plain, err);
    if (!status) status = load_array(t, a, layout, &plain, find, context, err);
    if (!status && a->scale)
        status = sm_local_block_new(SM_ELEMENT_F32, weight->rank, weight->size, &scale, err);
    if (!status && a->scale) take_part(a, a->scale, scale.data);
    if (!status && a->data) sm_local_block_write(weight, plain.data, scale.data);
    sm_local_block_free(&scale);
    sm_local_block_free(&plain);
    return status;
}

/* A copy on another stage than the first that holds the weight: this rank's part of that. */
static sm_status load_copy(sm_trainer *t, const sm_tensor *tied, sm_train_part part,
                           sm_local_block *copy, sm_train_visit find, void *context,
                           sm_error *err) {
    sm_train_array a;
    int as, first = sm_stage_first_of(&t->stage, tied, &as);
    if (sm_stage_layer(&t->stage, first)) return SM_OK;
    sm_layout layout = describe(t, piece_of(t, first), first, as, part, &a);
    return load_stored(t, &a, &layout, copy, find, context, err);
}

static sm_status load_layer(sm_trainer *t, sm_step_layer *layer, sm_train_part part,
                            sm_train_visit find, void *context, sm_error *err) {
    const sm_task_list *p = layer->list;
    blocks b = {.own = false};
    bool here = part == SM_TRAIN_VALUE && (!t->setup->stored || t->serving);
    sm_status status = here ? SM_OK : empty_blocks(layer, &b, err);
    if (!status && !here && part == SM_TRAIN_VALUE) train_stored_out(layer, b.block);
    for (int i = 0; !status && i < p->program->tensors; i++) {
        sm_train_array a;
        sm_local_block *to = here ? &layer->weight[i] : &b.block[i];
        if (p->program->tensor[i].tied && !sm_stage_is_copy(&t->stage, layer, i))
            status = load_copy(t, &p->program->tensor[i], part, to, find, context, err);
        if (status || !is_kept(t, p, layer->number, i, part)) continue;
        sm_layout layout = describe(t, p, layer->number, i, part, &a);
        status = load_stored(t, &a, &layout, to, find, context, err);
    }
    if (!status && b.own) status = train_state_in(t, layer, part, b.block, err);
    free_blocks(&b);
    return status;
}

sm_status train_load_part(sm_trainer *t, sm_train_part part, sm_train_visit find, void *context,
                          sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < t->stage.layers; i++)
        status = load_layer(t, &t->stage.layer[i], part, find, context, err);
    train_tie_weights(t);
    return status;
}

sm_status sm_trainer_load(sm_trainer *t, bool moments, sm_train_visit find, void *context,
                          sm_error *err) {
    sm_status status = SM_OK;
    int last = moments ? last_part(t) : SM_TRAIN_VALUE;
    for (int part = SM_TRAIN_VALUE; !status && part <= last; part++)
        status = train_load_part(t, (sm_train_part)part, find, context, err);
    return status;
}

uint64_t sm_trainer_updates(const sm_trainer *t) { return t->updates; }

void sm_trainer_set_updates(sm_trainer *t, uint64_t updates) { t->updates = updates; }
