/* Generating: prompts and single bytes through the program of serving, forward. */
#include <string.h>

#include "train_parts.h"

struct sm_generator {
    sm_trainer t; /* of which only the forward half is used */
};

/* ---- begin and end ---- */

static sm_status check(const sm_train_setup *s, sm_error *err) {
    sm_status status = train_check_model(s, err);
    if (status) return status;
    for (int a = 0; a < SM_AXIS_TENSOR; a++)
        if (s->degree[a] > 1)
            return sm_fail(err, SM_BAD_INPUT, "one sequence is split over tensor alone");
    if (s->stages > 1) return sm_fail(err, SM_BAD_INPUT, "a pipeline does not generate yet");
    for (int k = 0; k < s->model->kinds; k++)
        if (s->model->kind[k].E > 0 || s->model->kind[k].parallel)
            return sm_fail(err, SM_BAD_INPUT,
                           "%s has experts or parallel branches, from which "
                           "cannot be generated yet",
                           s->model->name);
    return SM_OK;
}

static sm_status make_pieces(sm_trainer *t, size_t queries, sm_error *err) {
    if (t->pieces && (size_t)t->size[SM_DIM_T] == queries) return SM_OK;
    train_pieces_free(t);
    t->size[SM_DIM_T] = (double)queries;
    return train_pieces_new(t, err);
}

sm_status sm_generator_new(sm_communicator *world, const sm_train_setup *setup, sm_generator **out,
                           sm_error *err) {
    sm_status status = check(setup, err);
    if (status) return status;
    sm_generator *g = sm_calloc(1, sizeof *g);
    if (!g) return sm_fail_memory(err);
    g->t.setup = setup;
    g->t.world = world;
    g->t.serving = true;
    g->t.microbatches = 1;
    g->t.size[SM_DIM_B] = 1;
    g->t.size[SM_DIM_S] = setup->tokens;
    status = train_mesh_new(&g->t, err);
    if (!status) status = make_pieces(&g->t, 1, err);
    if (!status) status = train_layers_new(&g->t, err);
    if (status) sm_generator_free(g);
    else *out = g;
    return status;
}

void sm_generator_free(sm_generator *g) {
    if (!g) return;
    train_layers_free(&g->t);
    train_pieces_free(&g->t);
    sm_rank_mesh_free(g->t.mesh);
    sm_free(g);
}

sm_status sm_generator_load(sm_generator *g, sm_train_visit find, void *context, sm_error *err) {
    return train_load_part(&g->t, SM_TRAIN_VALUE, find, context, err);
}

/* ---- forward ---- */

static sm_status layer_forward(sm_trainer *t, train_layer *layer, train_saved *saved,
                               sm_local_block *stream, sm_error *err) {
    const sm_program *b = &layer->piece->program;
    if (b->input >= 0) {
        saved->value[b->input] = *stream;
        stream->data = NULL;
    }
    sm_status status = train_forward(t, layer, saved, err);
    if (!status && b->output >= 0) status = train_block_copy(&saved->value[b->output], stream, err);
    return status;
}

/* The last position's scores: this rank's words among zeros, summed over the ranks of the
 * vocabulary, which is exact. */
static sm_status gather_scores(sm_trainer *t, const train_piece *head, const sm_local_block *logits,
                               float *scores, sm_error *err) {
    const sm_op *sample = &head->program.op[head->program.ops - 1];
    const sm_einsum *einsum;
    const sm_array *array = train_array_of(head, sample->in[0], &einsum);
    sm_layout layout = sm_layout_of(array);
    size_t offset[SM_MAX_RANK], words = logits->size[2];
    train_offsets(t, &layout, logits, offset);
    memset(scores, 0, (size_t)t->setup->model->V * sizeof *scores);
    memcpy(scores + offset[2], (const float *)logits->data + (logits->size[1] - 1) * words,
           words * sizeof *scores);
    if (train_degree(t, SM_AXES_TENSOR) <= 1) return SM_OK;
    sm_communicator *over = sm_rank_mesh_over(t->mesh, SM_AXES_TENSOR, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    return sm_run_all_reduce(over, scores, (size_t)t->setup->model->V, SM_ELEMENT_F32, err);
}

static sm_status forward(sm_trainer *t, float *scores, sm_error *err) {
    sm_local_block stream = {.data = NULL};
    sm_status status = SM_OK;
    for (int i = 0; !status && i < t->layers; i++) {
        const train_piece *p = t->layer[i].piece;
        train_saved *saved = &t->saved[i];
        status = layer_forward(t, &t->layer[i], saved, &stream, err);
        if (!status && p->program.output < 0) {
            int logits = p->program.op[p->program.ops - 1].in[0];
            status = gather_scores(t, p, &saved->value[logits], scores, err);
        }
        train_saved_free(saved, p->kept | TRAIN_KEEP_ARRIVED);
    }
    sm_local_block_free(&stream);
    return status;
}

sm_status sm_generator_feed(sm_generator *g, const unsigned char *bytes, size_t n, float *scores,
                            sm_error *err) {
    sm_trainer *t = &g->t;
    if (n < 1 || t->position + n > (size_t)t->setup->tokens)
        return sm_fail(err, SM_BAD_INPUT, "the cache has room for %d bytes, and %zu come after %zu",
                       t->setup->tokens, n, t->position);
    sm_status status = make_pieces(t, n, err);
    t->fed = bytes;
    if (!status) status = forward(t, scores, err);
    t->position += n;
    return status;
}
