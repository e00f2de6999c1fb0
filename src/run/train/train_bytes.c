/* Bytes of a step on this rank: what the partition predicts and what the communicators counted. The
 * bytes of a collective are V, those of the whole array that its group gathers or reduces, as in
 * the book's chapter on sharded matrices. */

#include "train_parts.h"

static double gradient_bytes(const sm_trainer *t) {
    return (double)sm_element_bytes(t->setup->gradients);
}

static double weight_bytes(const sm_trainer *t) {
    return (double)sm_element_bytes(t->setup->stored);
}

/* On this rank, of all sequences of a microbatch or a pass. */
static double size_of(const sm_trainer *t, const sm_program *b, const sm_size *s) {
    double bytes = s->base / train_degree(t, s->mask);
    const bool scores = b == t->list[t->lists - 1].program && t->serving;
    if (s->per_sequence) bytes *= scores ? t->scored : t->extent.sequences;
    if (s->per_key && !t->reads) bytes *= t->extent.keys;
    return bytes;
}

/* Microbatches that pass a layer. */
static double passes(const sm_trainer *t) {
    return (double)t->stage.microbatches / train_copies(t->setup);
}

static void add_piece(const sm_trainer *t, const sm_task_list *p, double *bytes) {
    const sm_program *b = p->program;
    for (int i = 0; i < sm_partition_comms(p->partition); i++) {
        const sm_comm *c = sm_partition_comm(p->partition, i);
        if (train_degree(t, c->axes) <= 1 || sm_comm_is_spared(c, t->setup->regather)) continue;
        bool read = t->serving && (!b->rules.decode || b->op[c->forward_op].once);
        if (read != t->reads) continue;
        double times = passes(t) * (sm_comm_runs_again(c, p->again) ? 2.0 : 1.0);
        bytes[c->op] +=
            size_of(t, p->program, &c->bytes) * (c->gradient ? gradient_bytes(t) : 1) * times;
    }
}

/* Gradients that are partial over these axes become a row: all-reduced, or scattered over a copy of
 * the state and gathered again. */
static void add_row(const sm_trainer *t, sm_axes partial, double elements, double *bytes) {
    const sm_gradient_group of = {.partial = partial};
    double copies = (double)sm_group_copies(&t->stage, &of);
    double ways = train_degree(t, partial) / copies, held = elements * gradient_bytes(t);
    if (!t->setup->zero) bytes[SM_ALL_REDUCE] += held;
    else if (copies > 1) bytes[SM_ALL_REDUCE] += held / ways;
    if (!t->setup->zero || ways <= 1) return;
    bytes[SM_REDUCE_SCATTER] += held * (t->setup->zero == 2 ? passes(t) : 1);
    bytes[SM_ALL_GATHER] += elements * weight_bytes(t);
}

/* Is a tied weight of the layer the first of its kind? */
static bool owns_tied(const sm_trainer *t, const sm_step_layer *layer) {
    const sm_program *b = layer->list->program;
    for (int i = 0; i < b->tensors; i++)
        if (b->tensor[i].tied && !sm_stage_is_copy(&t->stage, layer, i)) return true;
    return false;
}

static void add_step_end(const sm_trainer *t, const sm_step_layer *layer, double *bytes) {
    const sm_task_list *p = layer->list;
    for (int i = 0; i < sm_partition_weight_classes(p->partition); i++) {
        const sm_weight_class *c = sm_partition_weight_class(p->partition, i);
        bool copy = c->tied && !owns_tied(t, layer);
        if (copy || c->fixed || train_degree(t, c->partial) <= 1) continue;
        add_row(t, c->partial, c->elements / train_degree(t, c->stored), bytes);
    }
}

/* ZeRO cuts the row of a group's gradients into equal parts, the last of which is filled up. */
static void add_filling(const sm_trainer *t, const sm_step_layer *layer, double *bytes) {
    for (int i = 0; t->setup->zero && i < layer->groups; i++) {
        const sm_gradient_group *g = &layer->group[i];
        double row = (double)sm_group_row(&t->stage, layer, i);
        assert(row >= (double)g->elements);
        add_row(t, g->partial, row - (double)g->elements, bytes);
    }
}

/* What two stages hold is summed over both: as one row of all it was reduced to (ZeRO 0), or of
 * this rank's part, of which each stage updates half when all of the model is there twice. */
static void add_joined(const sm_trainer *t, const sm_step_layer *layer, double *bytes) {
    for (int i = 0; i < layer->groups; i++) {
        const sm_gradient_group *g = &layer->group[i];
        double held = (double)g->reduced * gradient_bytes(t);
        if (!g->joined) continue;
        if (sm_group_peers(&t->stage, g) == 1) bytes[SM_ALL_REDUCE] += held;
        else {
            bytes[SM_REDUCE_SCATTER] += held;
            bytes[SM_ALL_GATHER] += (double)g->reduced * weight_bytes(t);
        }
    }
}

/* What passes between a chunk and the one before, either way. */
static double boundary_bytes(const sm_trainer *t, int chunk) {
    const sm_stage *s = &t->stage;
    const sm_task_list *before = &s->list[s->model->layer[s->chunk[chunk].first - 1]];
    double bytes = 0;
    for (int i = -1; i < s->loans; i++) {
        const sm_task_list *p = i < 0 ? before : &s->list[s->loan[i].list];
        sm_size handed = sm_partition_handed(p->partition, i >= 0);
        if (sm_stage_crosses(s, chunk, i, t->reads)) bytes += size_of(t, p->program, &handed);
    }
    return bytes;
}

static double hand_over_bytes(const sm_trainer *t) {
    const sm_train_setup *s = t->setup;
    const int own = t->stage.number, chunks = sm_stage_model_chunks(&t->stage);
    double bytes = 0;
    if (t->serving) return s->chunks && own + 1 < chunks ? boundary_bytes(t, own + 1) : 0;
    for (int i = 0; s->chunks && i < s->actions[own]; i++) {
        const sm_train_action *a = &s->action[own][i];
        bool backward = a->act == SM_TRAIN_BACKWARD || a->act == SM_TRAIN_BACKWARD_INPUT;
        int to = a->chunk + (backward ? -1 : 1);
        bool none = a->chunk % chunks == (backward ? 0 : chunks - 1);
        if (a->act == SM_TRAIN_BACKWARD_WEIGHT || none || s->chunk[to].stage == own) continue;
        bytes += boundary_bytes(t, backward ? a->chunk : to);
    }
    return bytes;
}

void train_bytes_predicted(const sm_trainer *t, double *bytes) {
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) bytes[i] = 0;
    bytes[SM_PERMUTE] = hand_over_bytes(t);
    for (int i = 0; i < t->stage.layers - t->stage.pools; i++) {
        add_piece(t, t->stage.layer[i].list, bytes);
        add_step_end(t, &t->stage.layer[i], bytes);
        add_filling(t, &t->stage.layer[i], bytes);
        add_joined(t, &t->stage.layer[i], bytes);
    }
    const sm_step_layer *last = t->stage.layers ? &t->stage.layer[t->stage.layers - 1] : NULL;
    if (t->setup->pairs && train_within_sequence(t) && last && last->list->program->output < 0)
        bytes[SM_ALL_REDUCE] += 8.0 * t->setup->microbatch * passes(t); /* -log p of sequences */
    /* thirds of what travels add up to whole bytes but for rounding */
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) bytes[i] = round(bytes[i]);
}

static void add_traffic(const sm_communicator *c, train_traffic *out) {
    for (int i = 0; c && i < SM_COLLECTIVE_COUNT; i++) {
        out->calls[i] += c->traffic.calls[i];
        out->bytes[i] += c->traffic.bytes[i];
        out->seconds[i] += c->traffic.seconds[i];
    }
}

/* Hand-overs between stages count as a permute, their time as the pipeline's. */
void train_traffic_now(const sm_trainer *t, train_traffic *out) {
    *out = (train_traffic){.bytes[SM_PERMUTE] = t->handed_bytes};
    for (int i = 0; i < SM_MOST_TIES; i++) add_traffic(t->peers[i], out);
    for (int axes = 0; axes < 1 << SM_AXIS_COUNT; axes++) {
        if (axes) add_traffic(t->mesh->over[axes], out);
        add_traffic(axes ? t->one_copy[axes] : t->across_copies, out);
    }
}

void train_traffic_since(const sm_trainer *t, const train_traffic *then, double *bytes,
                         double *seconds) {
    train_traffic now;
    train_traffic_now(t, &now);
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) {
        bytes[i] = now.bytes[i] - then->bytes[i];
        seconds[i] = now.seconds[i] - then->seconds[i];
    }
}
