/* Adam on the weights of a rank. Weights whose gradients are partial over the same axes at the end
 * of a step travel as one row of numbers: all-reduced (ZeRO 0), or scattered so that each rank
 * updates its part, which is gathered again (ZeRO 1; 2 scatters after each microbatch). */
#include <math.h>
#include <string.h>

#include "train_parts.h"

static sm_axes that_matter(const sm_trainer *t, sm_axes axes) {
    unsigned kept = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if ((axes >> a & 1) && t->mesh->mesh.axis[a].size > 1) kept |= 1u << a;
    return (sm_axes)kept;
}

static sm_axes stored_over(const sm_tensor *w) {
    unsigned axes = 0;
    for (int d = 0; d < w->rank; d++) axes |= w->at[d];
    return (sm_axes)axes;
}

/* ---- groups ---- */

static int find_group(train_layer *layer, sm_axes partial, sm_axes stored) {
    for (int i = 0; i < layer->groups; i++)
        if (layer->group[i].partial == partial && layer->group[i].stored == stored) return i;
    if (layer->groups == TRAIN_GROUPS) return -1;
    layer->group[layer->groups] = (train_group){.partial = partial, .stored = stored};
    return layer->groups++;
}

static size_t ways(const sm_trainer *t, const train_group *g) {
    return t->setup->zero ? (size_t)train_degree(t, g->partial) : 1;
}

static bool is_weight(const train_layer *layer, int tensor) {
    return layer->weight[tensor].data != NULL;
}

sm_status train_groups_new(sm_trainer *t, train_layer *layer, sm_error *err) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        layer->group_of[i] = -1;
        if (!is_weight(layer, i) || train_is_copy(t, layer, i)) continue;
        sm_axes stored = that_matter(t, stored_over(&layer->piece->program.tensor[i]));
        int g = find_group(layer, that_matter(t, layer->piece->partial[i]), stored);
        if (g < 0) return sm_fail(err, SM_INTERNAL, "a layer has too many kinds of weights");
        layer->group_of[i] = g;
        layer->group[g].elements += sm_local_block_count(&layer->weight[i]);
    }
    memory_scope before = memory_for(SM_TRAIN_MEMORY_OPTIMIZER);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < layer->groups; i++) {
        train_group *g = &layer->group[i];
        g->chunk = (g->elements + ways(t, g) - 1) / ways(t, g);
        g->sum = memory_new_cleared((g->chunk + 1) * sizeof *g->sum);
        g->first = memory_new_cleared((g->chunk + 1) * sizeof *g->first);
        g->second = memory_new_cleared((g->chunk + 1) * sizeof *g->second);
        memory_mark(g->sum, SM_TRAIN_MEMORY_GRADIENTS);
        if (!g->sum || !g->first || !g->second) status = sm_fail_memory(err);
    }
    memory_restore(before);
    return status;
}

/* Between the blocks of a group and a row of all their elements; what has no data is zero. */
static void pack(const train_layer *layer, int group, const sm_local_block *block, float *row) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        if (!is_weight(layer, i) || layer->group_of[i] != group) continue;
        size_t n = sm_local_block_count(&layer->weight[i]);
        if (block[i].data) memcpy(row, block[i].data, n * sizeof *row);
        row += n;
    }
}

static void unpack(const train_layer *layer, int group, const float *row, sm_local_block *block) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        if (!is_weight(layer, i) || layer->group_of[i] != group) continue;
        size_t n = sm_local_block_count(&layer->weight[i]);
        memcpy(block[i].data, row, n * sizeof *row);
        row += n;
    }
}

/* ---- reducing ---- */

static sm_status reduce(sm_trainer *t, const train_group *g, float *row, sm_error *err) {
    if (train_degree(t, g->partial) <= 1) return SM_OK;
    sm_communicator *over = sm_rank_mesh_over(t->mesh, g->partial, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    if (!t->setup->zero) return sm_run_all_reduce(over, row, g->chunk, SM_ELEMENT_F32, err);
    float *mine = memory_new(g->chunk * sizeof *mine + 1);
    if (!mine) return sm_fail_memory(err);
    sm_status status = sm_run_reduce_scatter(over, row, g->chunk, SM_ELEMENT_F32, mine, err);
    if (!status) memcpy(row, mine, g->chunk * sizeof *row);
    memory_free(mine);
    return status;
}

static sm_status reduce_group(sm_trainer *t, train_layer *layer, int group, sm_error *err) {
    train_group *g = &layer->group[group];
    float *row = memory_new_cleared((g->chunk * ways(t, g) + 1) * sizeof *row);
    if (!row) return sm_fail_memory(err);
    pack(layer, group, layer->gradient, row);
    sm_status status = reduce(t, g, row, err);
    for (size_t i = 0; !status && i < g->chunk; i++) g->sum[i] += row[i];
    memory_free(row);
    return status;
}

bool train_reduces_each(const sm_trainer *t) { return t->setup->zero == 2; }

sm_status train_reduce_layer(sm_trainer *t, train_layer *layer, sm_error *err) {
    sm_status status = SM_OK;
    train_traffic before;
    double begun_s = sm_clock_s();
    train_traffic_now(t, &before);
    if (layer->number == t->setup->model->L) status = train_tie_gradients(t, err);
    for (int g = 0; !status && g < layer->groups; g++) status = reduce_group(t, layer, g, err);
    for (int i = 0; i < SM_MAX_TENSORS; i++) sm_local_block_free(&layer->gradient[i]);
    train_step_end_took(t, TRAIN_ROWS_OF_GRADIENTS, begun_s, &before);
    return status;
}

sm_status train_reduce_rest(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    if (train_reduces_each(t)) return SM_OK;
    for (int i = t->layers - 1; !status && i >= 0; i--)
        status = train_reduce_layer(t, &t->layer[i], err);
    return status;
}

double train_norm_share(const sm_trainer *t) {
    double total = 0, ranks = train_degree(t, (1u << SM_AXIS_COUNT) - 1);
    for (int i = 0; i < t->layers; i++)
        for (int k = 0; k < t->layer[i].groups; k++) {
            const train_group *g = &t->layer[i].group[k];
            double squares = 0;
            for (size_t e = 0; e < g->chunk; e++) squares += (double)g->sum[e] * (double)g->sum[e];
            total += squares * train_degree(t, g->stored) * (double)ways(t, g) / ranks;
        }
    return total;
}

/* ---- Adam ---- */

typedef struct adam {
    double rate, scale, beta1, beta2, epsilon, bias1, bias2;
} adam;

static void adam_step(const adam *a, train_group *g, float *weight) {
    for (size_t i = 0; i < g->chunk; i++) {
        double slope = (double)g->sum[i] * a->scale;
        double first = a->beta1 * (double)g->first[i] + (1 - a->beta1) * slope;
        double second = a->beta2 * (double)g->second[i] + (1 - a->beta2) * slope * slope;
        g->first[i] = (float)first;
        g->second[i] = (float)second;
        g->sum[i] = 0;
        weight[i] -= (float)(a->rate * (first / a->bias1) / (sqrt(second / a->bias2) + a->epsilon));
    }
}

static sm_status gather(sm_trainer *t, const train_group *g, const float *mine, float *row,
                        sm_error *err) {
    sm_communicator *over = sm_rank_mesh_over(t->mesh, g->partial, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    return sm_run_all_gather(over, mine, g->chunk * sizeof *mine, row, err);
}

static sm_status update_group(sm_trainer *t, train_layer *layer, int group, const adam *a,
                              sm_error *err) {
    train_group *g = &layer->group[group];
    size_t parts = ways(t, g), part = 0;
    float *row = memory_new_cleared((g->chunk * (parts + 1) + 1) * sizeof *row), *mine = row;
    if (!row) return sm_fail_memory(err);
    pack(layer, group, layer->weight, row);
    sm_status status = SM_OK;
    if (parts > 1) {
        sm_communicator *over = sm_rank_mesh_over(t->mesh, g->partial, err);
        if (over) part = (size_t)over->rank;
        else status = SM_INTERNAL;
        mine = row + g->chunk * parts;
        memcpy(mine, row + g->chunk * part, g->chunk * sizeof *row);
    }
    adam_step(a, g, mine);
    if (!status && parts > 1) status = gather(t, g, mine, row, err);
    if (!status) unpack(layer, group, row, layer->weight);
    memory_free(row);
    return status;
}

sm_status train_update(sm_trainer *t, double rate, double scale, sm_error *err) {
    const sm_train_setup *s = t->setup;
    sm_status status = SM_OK;
    double n = (double)++t->updates;
    adam a = {
        rate, scale, s->beta1, s->beta2, s->epsilon, 1 - pow(s->beta1, n), 1 - pow(s->beta2, n)};
    for (int i = 0; !status && i < t->layers; i++)
        for (int g = 0; !status && g < t->layer[i].groups; g++)
            status = update_group(t, &t->layer[i], g, &a, err);
    train_tie_weights(t);
    return status;
}

/* ---- moments, whole ---- */

static sm_status moment_out(sm_trainer *t, const train_layer *layer, int group, bool second,
                            sm_local_block *block, sm_error *err) {
    const train_group *g = &layer->group[group];
    const float *mine = second ? g->second : g->first;
    float *row = memory_new_cleared((g->chunk * ways(t, g) + 1) * sizeof *row);
    if (!row) return sm_fail_memory(err);
    sm_status status = SM_OK;
    if (ways(t, g) > 1) status = gather(t, g, mine, row, err);
    else memcpy(row, mine, g->chunk * sizeof *row);
    if (!status) unpack(layer, group, row, block);
    memory_free(row);
    return status;
}

sm_status train_moments_out(sm_trainer *t, train_layer *layer, bool second, sm_local_block *block,
                            sm_error *err) {
    sm_status status = SM_OK;
    for (int g = 0; !status && g < layer->groups; g++)
        status = moment_out(t, layer, g, second, block, err);
    return status;
}

static sm_status moment_in(sm_trainer *t, train_layer *layer, int group, bool second,
                           const sm_local_block *block, sm_error *err) {
    train_group *g = &layer->group[group];
    size_t part = 0;
    float *row = memory_new_cleared((g->chunk * ways(t, g) + 1) * sizeof *row);
    if (!row) return sm_fail_memory(err);
    pack(layer, group, block, row);
    if (ways(t, g) > 1) {
        sm_communicator *over = sm_rank_mesh_over(t->mesh, g->partial, err);
        part = over ? (size_t)over->rank : 0;
    }
    memcpy(second ? g->second : g->first, row + part * g->chunk, g->chunk * sizeof *row);
    memory_free(row);
    return SM_OK;
}

sm_status train_moments_in(sm_trainer *t, train_layer *layer, bool second,
                           const sm_local_block *block, sm_error *err) {
    sm_status status = SM_OK;
    for (int g = 0; !status && g < layer->groups; g++)
        status = moment_in(t, layer, g, second, block, err);
    return status;
}
