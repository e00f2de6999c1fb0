/* The optimizer on the weights of a rank. Weights whose gradients are partial over the same axes at
 * the end of a step travel as one row of numbers: all-reduced (ZeRO 0), or scattered so that each
 * rank updates its part, which is gathered again (ZeRO 1; 2 scatters after each microbatch). What
 * another stage holds too is summed with it then. */
#include <math.h>
#include <string.h>

#include "row_math.h"
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

static int find_group(train_layer *layer, sm_axes partial, sm_axes stored, bool joined) {
    for (int i = 0; i < layer->groups; i++)
        if (layer->group[i].partial == partial && layer->group[i].stored == stored &&
            layer->group[i].joined == joined)
            return i;
    if (layer->groups == TRAIN_GROUPS) return -1;
    layer->group[layer->groups] =
        (train_group){.partial = partial, .stored = stored, .joined = joined};
    return layer->groups++;
}

static size_t ways(const sm_trainer *t, const train_group *g) {
    return t->setup->zero ? (size_t)train_degree(t, g->partial) : 1;
}

static bool is_weight(const train_layer *layer, int tensor) {
    return layer->weight[tensor].data != NULL;
}

/* The copy of a tied embedding on the embedding's own stage is none of the optimizer's. */
static bool is_updated(const sm_trainer *t, const train_layer *layer, int tensor) {
    return is_weight(layer, tensor) &&
           (!train_is_copy(t, layer, tensor) || train_tie_parted(t->setup));
}

static sm_status size_group(const sm_trainer *t, train_group *g, sm_error *err) {
    size_t parts = ways(t, g) * train_peer_parts(t, g);
    g->chunk = (g->elements + parts - 1) / parts;
    g->reduced = g->chunk * train_peer_parts(t, g);
    sm_status status = train_moment_new(t, g->chunk, &g->first, err);
    return status ? status : train_moment_new(t, g->chunk, &g->second, err);
}

sm_status train_groups_new(sm_trainer *t, train_layer *layer, sm_error *err) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        layer->group_of[i] = -1;
        if (!is_updated(t, layer, i)) continue;
        sm_axes stored = that_matter(t, stored_over(&layer->piece->program.tensor[i]));
        int g = find_group(layer, that_matter(t, layer->piece->partial[i]), stored,
                           train_is_joined(t, layer, i));
        if (g < 0) return sm_fail(err, SM_INTERNAL, "a layer has too many kinds of weights");
        layer->group_of[i] = g;
        layer->group[g].elements += sm_local_block_count(&layer->weight[i]);
    }
    sm_status status = SM_OK;
    for (int i = 0; !status && i < layer->groups; i++)
        status = size_group(t, &layer->group[i], err);
    return status;
}

/* Between the blocks of a group and a row of all their elements; what has no data is zero. A copy
 * of the embedding lies in the row as the embedding does. */
static void pack(const sm_trainer *t, const train_layer *layer, int group,
                 const sm_local_block *block, float *row) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        if (!is_weight(layer, i) || layer->group_of[i] != group) continue;
        size_t n = sm_local_block_count(&layer->weight[i]);
        if (block[i].data && train_is_copy(t, layer, i)) train_tie_out(&block[i], row);
        else if (block[i].data) memcpy(row, block[i].data, n * sizeof *row);
        row += n;
    }
}

static void unpack(const sm_trainer *t, const train_layer *layer, int group, const float *row,
                   sm_local_block *block) {
    for (int i = 0; i < layer->piece->program.tensors; i++) {
        if (!is_weight(layer, i) || layer->group_of[i] != group) continue;
        size_t n = sm_local_block_count(&layer->weight[i]);
        if (train_is_copy(t, layer, i)) train_tie_in(row, &block[i]);
        else memcpy(block[i].data, row, n * sizeof *row);
        row += n;
    }
}

/* Room for all elements of a group in equal parts. */
static size_t row_elements(const sm_trainer *t, const train_group *g) {
    return g->reduced * ways(t, g);
}

/* ---- reducing ---- */

/* The row becomes what this rank keeps of it. */
static sm_status reduce(sm_trainer *t, const train_group *g, float **row, sm_error *err) {
    if (train_degree(t, g->partial) <= 1) return SM_OK;
    sm_communicator *over = sm_rank_mesh_over(t->mesh, g->partial, err);
    if (!over) return err && err->status ? err->status : SM_INTERNAL;
    if (!t->setup->zero) return sm_run_all_reduce(over, *row, g->reduced, SM_ELEMENT_F32, err);
    float *mine = memory_new(g->reduced * sizeof *mine + 1);
    if (!mine) return sm_fail_memory(err);
    sm_status status = sm_run_reduce_scatter(over, *row, g->reduced, SM_ELEMENT_F32, mine, err);
    memory_free(*row);
    *row = mine;
    return status;
}

/* Takes the row. */
static void add_sum(train_group *g, float *row) {
    if (!g->sum) {
        g->sum = row;
        memory_mark(row, SM_TRAIN_MEMORY_GRADIENTS);
        return;
    }
    for (size_t i = 0; i < g->reduced; i++) g->sum[i] += row[i];
    memory_free(row);
}

static void free_gradients(train_layer *layer, int group) {
    for (int i = 0; i < layer->piece->program.tensors; i++)
        if (layer->group_of[i] == group) sm_local_block_free(&layer->gradient[i]);
}

static sm_status reduce_group(sm_trainer *t, train_layer *layer, int group, sm_error *err) {
    train_group *g = &layer->group[group];
    float *row = memory_new_cleared((row_elements(t, g) + 1) * sizeof *row);
    if (!row) return sm_fail_memory(err);
    pack(t, layer, group, layer->gradient, row);
    free_gradients(layer, group);
    sm_status status = reduce(t, g, &row, err);
    if (status) memory_free(row);
    else add_sum(g, row);
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

static sm_status join_peers(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    train_traffic before;
    double begun_s = sm_clock_s();
    train_traffic_now(t, &before);
    for (int i = 0; !status && i < t->layers; i++)
        for (int g = 0; !status && g < t->layer[i].groups; g++)
            status = train_peer_sum(t, &t->layer[i].group[g], err);
    if (t->peer) train_step_end_took(t, TRAIN_ROWS_OF_GRADIENTS, begun_s, &before);
    return status;
}

sm_status train_reduce_rest(sm_trainer *t, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = t->layers - 1; !status && !train_reduces_each(t) && i >= 0; i--)
        status = train_reduce_layer(t, &t->layer[i], err);
    return status ? status : join_peers(t, err);
}

/* Ranks of all stages that hold the sum of the same element. */
static double holders(const sm_trainer *t, const train_group *g) {
    double ranks = train_degree(t, (1u << SM_AXIS_COUNT) - 1);
    double stages = g->joined ? 2 / (double)train_peer_parts(t, g) : 1;
    return stages * ranks / (train_degree(t, g->stored) * (double)ways(t, g));
}

enum { SOME = 1024 }; /* elements that are summed in single precision */
double train_norm_share(const sm_trainer *t) {
    double total = 0;
    for (int i = 0; i < t->layers; i++)
        for (int k = 0; k < t->layer[i].groups; k++) {
            const train_group *g = &t->layer[i].group[k];
            double squares = 0;
            for (size_t e = 0; e < g->chunk; e += SOME)
                squares += (double)row_dot(g->sum + e, g->sum + e,
                                           g->chunk - e < SOME ? g->chunk - e : SOME);
            total += squares / holders(t, g);
        }
    return total;
}

/* ---- the update ---- */

typedef struct adam {
    double rate, scale, beta1, beta2, epsilon, bias1, bias2;
} adam;

/* Both moments are old + (1 - beta) (new - old). The steps that need more than single precision are
 * made once: rate / bias1, and the root of bias2 taken out of that of the second moment. */
static void adam_step(const adam *a, size_t n, float *restrict first, float *restrict second,
                      float *restrict sum, float *restrict weight) {
    float scale = (float)a->scale, epsilon = (float)(a->epsilon * sqrt(a->bias2));
    float near1 = (float)(1 - a->beta1), near2 = (float)(1 - a->beta2);
    float rate = (float)(a->rate / a->bias1 * sqrt(a->bias2));
    for (size_t i = 0; i < n; i++) {
        float slope = sum[i] * scale;
        first[i] += near1 * (slope - first[i]);
        second[i] += near2 * (slope * slope - second[i]);
        weight[i] -= rate * first[i] / (sqrtf(second[i]) + epsilon);
        sum[i] = 0;
    }
}

static void sgd_step(const adam *a, size_t n, const float *sum, float *weight) {
    float rate = (float)(a->rate * a->scale);
    for (size_t i = 0; i < n; i++) weight[i] -= rate * sum[i];
}

/* Moments that are stored otherwise, or elsewhere, come in parts to be updated and go again. */
static void update_in_parts(const sm_trainer *t, const adam *a, train_group *g, float *weight) {
    enum { PART = 4 * TRAIN_MOMENT_BLOCK };
    float first[PART], second[PART];
    for (size_t i = 0; i < g->chunk; i += PART) {
        size_t n = g->chunk - i < PART ? g->chunk - i : PART;
        train_moment_read(t, &g->first, false, i, n, first);
        train_moment_read(t, &g->second, true, i, n, second);
        adam_step(a, n, first, second, g->sum + i, weight + i);
        train_moment_write(t, &g->first, false, i, n, first);
        train_moment_write(t, &g->second, true, i, n, second);
    }
}

static void update_weights(const sm_trainer *t, const adam *a, train_group *g, float *weight) {
    if (t->setup->optimizer == SM_TRAIN_SGD) sgd_step(a, g->chunk, g->sum, weight);
    else if (!train_moments_plain(t->setup)) update_in_parts(t, a, g, weight);
    else adam_step(a, g->chunk, g->first.code, g->second.code, g->sum, weight);
}

/* The chunks of all ranks to a row: first those of the peer stage, then of the others. */
static sm_status gather(sm_trainer *t, const train_group *g, const float *mine, float *row,
                        sm_error *err) {
    bool halves = train_peer_parts(t, g) > 1, others = ways(t, g) > 1;
    float *both = others && halves ? memory_new(g->reduced * sizeof *both + 1) : row;
    if (!both) return sm_fail_memory(err);
    sm_status status = SM_OK;
    if (halves) status = sm_run_all_gather(t->peer, mine, g->chunk * sizeof *mine, both, err);
    if (!status && others)
        status = sm_run_all_gather(t->mesh->over[g->partial], halves ? both : mine,
                                   g->reduced * sizeof *both, row, err);
    if (!halves && !others) memcpy(row, mine, g->chunk * sizeof *row);
    if (both != row) memory_free(both);
    return status;
}

/* Where this rank's chunk lies in the row. */
static size_t place_in_row(const sm_trainer *t, const train_group *g) {
    size_t part = 0;
    if (ways(t, g) > 1) part = (size_t)t->mesh->over[g->partial]->rank;
    return part * g->reduced + train_peer_part(t, g) * g->chunk;
}

static sm_status update_group(sm_trainer *t, train_layer *layer, int group, const adam *a,
                              sm_error *err) {
    train_group *g = &layer->group[group];
    size_t room = row_elements(t, g);
    bool all = room == g->chunk;
    float *row = memory_new_cleared((room + (all ? 0 : g->chunk) + 1) * sizeof *row), *mine = row;
    if (!row) return sm_fail_memory(err);
    pack(t, layer, group, layer->weight, row);
    if (!all) mine = memcpy(row + room, row + place_in_row(t, g), g->chunk * sizeof *row);
    update_weights(t, a, g, mine);
    memory_free(g->sum);
    g->sum = NULL;
    sm_status status = all ? SM_OK : gather(t, g, mine, row, err);
    if (!status) unpack(t, layer, group, row, layer->weight);
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
    size_t room = row_elements(t, g);
    float *row = memory_new_cleared((room + g->chunk + 1) * sizeof *row), *mine = row + room;
    if (!row) return sm_fail_memory(err);
    train_moment_read(t, second ? &g->second : &g->first, second, 0, g->chunk, mine);
    sm_status status = gather(t, g, mine, row, err);
    if (!status) unpack(t, layer, group, row, block);
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
    float *row = memory_new_cleared((row_elements(t, g) + 1) * sizeof *row);
    if (!row) return sm_fail_memory(err);
    pack(t, layer, group, block, row);
    train_moment_write(t, second ? &g->second : &g->first, second, 0, g->chunk,
                       row + place_in_row(t, g));
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
