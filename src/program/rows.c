/* The end of a step. Weights whose gradients are partial over the same axes travel as one row of
 * numbers: all-reduced (ZeRO 0), or scattered so that each chip updates its part, which is gathered
 * again (ZeRO 1; 2 scatters after each microbatch). What another stage holds too, its peer, is
 * summed with it then: all weights where the model is there twice (dualpipe), or an embedding that
 * is the unembedding of another stage. Where ZeRO shards the state of a model that is there twice,
 * each of the two stages updates half of what it would and the halves are gathered.
 *
 * The state may be there several times over the data axis (MiCS: Zhang et al., arXiv 2205.00119;
 * hybrid sharding: Zhao et al., arXiv 2304.11277, section 3.2.2): rows are scattered over the chips
 * of one copy, and at the end of the step summed across the copies.
 *
 *   chunk = ceil(elements / (ways peers))    what a chip updates
 *   reduced = chunk peers                    what it sums
 *   row = reduced ways                       what is sent, the last part filled up
 *
 * with ways the chips of a copy over which the gradient is partial (1 without ZeRO), peers 2 where
 * two stages share the update (Rajbhandari et al., "ZeRO", 2020). */

#include "partition_parts.h"
#include "program_parts.h"

sm_step_layer *sm_stage_layer(const sm_stage *s, int number) {
    for (int i = 0; i < s->layers; i++)
        if (s->layer[i].number == number) return &s->layer[i];
    return NULL;
}

/* The gradient of the copy joins that of the first one. Both are sharded alike. */
static sm_status join_copy(sm_stage *s, sm_step_layer *layer, int tensor, sm_error *err) {
    int to;
    sm_step_layer *owner = sm_stage_owner(s, layer, tensor, &to);
    sm_local_block *sum = &owner->gradient[to], *copy = &layer->gradient[tensor];
    sm_status status = SM_OK;
    if (owner == layer || !copy->data) return SM_OK;
    if (!sum->data) {
        *sum = sm_task_list_block(owner->list, to);
        sum->element = s->actions->gradients;
        status = s->actions->make(s->actions->context, sum, true, err);
    }
    sm_call call = {.kind = SM_CALL_ADD, .in = {{.block = copy}}, .out = sum};
    if (!status) status = stage_call(s, &call, err);
    stage_drop(s, copy);
    return status;
}

/* ---- groups ---- */

size_t sm_group_copies(const sm_stage *s, const sm_gradient_group *g) {
    bool several = s->zero && s->state_copies > 1 && g->partial & SM_BIT(SM_AXIS_DATA);
    return several ? (size_t)s->state_copies : 1;
}

size_t sm_group_ways(const sm_stage *s, const sm_step_layer *layer, int group) {
    const sm_gradient_group *g = &layer->group[group];
    if (!s->zero) return 1;
    return (size_t)sm_mesh_size(&layer->list->mesh, g->partial) / sm_group_copies(s, g);
}

size_t sm_group_peers(const sm_stage *s, const sm_gradient_group *g) {
    return g->joined && s->zero && s->copies == 2 ? 2 : 1;
}

size_t sm_group_row(const sm_stage *s, const sm_step_layer *layer, int group) {
    return layer->group[group].reduced * sm_group_ways(s, layer, group);
}

static int find_group(sm_step_layer *layer, sm_axes partial, sm_axes stored, int joined) {
    for (int i = 0; i < layer->groups; i++)
        if (layer->group[i].partial == partial && layer->group[i].stored == stored &&
            layer->group[i].joined == joined)
            return i;
    if (layer->groups == SM_MAX_WEIGHT_CLASSES) return -1;
    layer->group[layer->groups] =
        (sm_gradient_group){.partial = partial, .stored = stored, .joined = joined};
    return layer->groups++;
}

/* What is not trained, and a copy on the same stage, is none of the optimizer's. */
sm_status sm_stage_group(const sm_stage *s, sm_step_layer *layer, sm_error *err) {
    const sm_program *b = layer->list->program;
    for (int i = 0; i < b->tensors; i++) {
        layer->group_of[i] = -1;
        if (b->tensor[i].role != SM_ROLE_WEIGHT || b->tensor[i].fixed ||
            sm_stage_is_copy(s, layer, i))
            continue;
        int g = find_group(layer, sm_mesh_real_axes(&layer->list->mesh, layer->list->partial[i]),
                           sm_mesh_real_axes(&layer->list->mesh, part_stored_mask(b, i)),
                           s->copies == 2 ? 1 : stage_tie_of(s, layer, i));
        if (g < 0)
            return sm_fail(err, SM_INTERNAL, "a layer has more than %d kinds of weights",
                           SM_MAX_WEIGHT_CLASSES);
        sm_local_block like = sm_task_list_block(layer->list, i);
        layer->group_of[i] = g;
        layer->group[g].elements += sm_local_block_count(&like);
        layer->group[g].element = like.element;
    }
    for (int i = 0; i < layer->groups; i++) {
        sm_gradient_group *g = &layer->group[i];
        size_t peers = sm_group_peers(s, g), parts = sm_group_ways(s, layer, i) * peers;
        g->chunk = (g->elements + parts - 1) / parts;
        g->reduced = g->chunk * peers;
    }
    return SM_OK;
}

/* ---- rows ---- */

static sm_status make_row(const sm_stage *s, sm_element element, size_t n, bool cleared,
                          sm_local_block *row, sm_error *err) {
    *row = (sm_local_block){.element = element, .rank = 1, .size = {n}};
    return s->actions->make(s->actions->context, row, cleared, err);
}

static sm_status of_group(const sm_stage *s, sm_call_kind kind, sm_step_layer *layer, int group,
                          sm_local_block *in, sm_local_block *out, sm_error *err) {
    sm_call call = {
        .kind = kind, .layer = layer, .group = group, .in = {{.block = in}}, .out = out};
    return stage_call(s, &call, err);
}

static sm_status join_rows(const sm_stage *s, sm_collective op, sm_axes axes, sm_row_over over,
                           sm_local_block *from, sm_local_block *to, sm_error *err) {
    sm_row_move move = {.op = op, .axes = axes, .joined = 1, .over = over, .from = from, .to = to};
    return s->actions->join_rows(s->actions->context, &move, err);
}

/* The row becomes this chip's part of the sum over the axes (0: over both peers), n elements. */
static sm_status scatter(const sm_stage *s, sm_axes axes, size_t n, sm_local_block *row,
                         sm_error *err) {
    sm_local_block mine;
    sm_status status = make_row(s, row->element, n, false, &mine, err);
    if (!status) status = join_rows(s, SM_REDUCE_SCATTER, axes, SM_OVER_ONE_COPY, row, &mine, err);
    stage_drop(s, row);
    *row = mine;
    return status;
}

/* The row becomes what this chip keeps of it. */
static sm_status reduce(const sm_stage *s, const sm_step_layer *layer, int group,
                        sm_local_block *row, sm_error *err) {
    const sm_gradient_group *g = &layer->group[group];
    if (s->zero && sm_group_ways(s, layer, group) > 1)
        return scatter(s, g->partial, g->reduced, row, err);
    if (s->zero || sm_mesh_size(&layer->list->mesh, g->partial) <= 1) return SM_OK;
    return join_rows(s, SM_ALL_REDUCE, g->partial, SM_OVER_AXES, NULL, row, err);
}

static sm_status reduce_group(sm_stage *s, sm_step_layer *layer, int group, sm_error *err) {
    sm_gradient_group *g = &layer->group[group];
    sm_local_block row;
    sm_status status =
        make_row(s, s->actions->gradients, sm_group_row(s, layer, group), true, &row, err);
    if (!status) status = of_group(s, SM_CALL_PACK_GRADIENTS, layer, group, NULL, &row, err);
    for (int i = 0; i < layer->list->program->tensors; i++)
        if (layer->group_of[i] == group) stage_drop(s, &layer->gradient[i]);
    if (!status) status = reduce(s, layer, group, &row, err);
    if (!status && !g->sum.data) {
        g->sum = row;
        s->actions->mark(s->actions->context, &g->sum, SM_TRAIN_MEMORY_GRADIENTS);
        return SM_OK;
    }
    sm_call call = {.kind = SM_CALL_ADD, .in = {{.block = &row}}, .out = &g->sum};
    if (!status) status = stage_call(s, &call, err);
    stage_drop(s, &row);
    return status;
}

static void begin_rows(const sm_stage *s) {
    if (s->actions->begin_task) s->actions->begin_task(s->actions->context, NULL, NULL, false);
}

static void end_rows(const sm_stage *s) {
    if (s->actions->end_task) s->actions->end_task(s->actions->context);
}

sm_status stage_reduce_layer(sm_stage *s, sm_step_layer *layer, sm_error *err) {
    begin_rows(s);
    sm_status status = SM_OK;
    for (int i = 0; !status && i < layer->list->program->tensors; i++)
        status = join_copy(s, layer, i, err);
    for (int g = 0; !status && g < layer->groups; g++) status = reduce_group(s, layer, g, err);
    for (int i = 0; i < layer->list->program->tensors; i++) stage_drop(s, &layer->gradient[i]);
    end_rows(s);
    return status;
}

static sm_status join_sum(sm_stage *s, sm_gradient_group *g, bool peers, sm_error *err) {
    if (peers && sm_group_peers(s, g) > 1) return scatter(s, 0, g->chunk, &g->sum, err);
    const sm_row_move move = {.op = SM_ALL_REDUCE,
                              .axes = peers ? 0 : g->partial,
                              .joined = g->joined,
                              .over = peers ? SM_OVER_AXES : SM_OVER_ACROSS_COPIES,
                              .to = &g->sum};
    return s->actions->join_rows(s->actions->context, &move, err);
}

/* Over the copies of the optimizer's state (0), or the stages that hold a weight too. */
static sm_status join_sums(sm_stage *s, int joined, sm_error *err) {
    sm_status status = SM_OK;
    bool any = false;
    for (int i = 0; !status && i < s->layers; i++)
        for (int k = 0; !status && k < s->layer[i].groups; k++) {
            sm_gradient_group *g = &s->layer[i].group[k];
            if (joined ? g->joined != joined : sm_group_copies(s, g) == 1) continue;
            if (!any) begin_rows(s);
            any = true;
            status = join_sum(s, g, joined > 0, err);
            if (joined) s->actions->mark(s->actions->context, &g->sum, SM_TRAIN_MEMORY_GRADIENTS);
        }
    if (any) end_rows(s);
    return status;
}

sm_status sm_stage_reduce(sm_stage *s, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = s->layers - 1; !status && s->zero != 2 && i >= 0; i--)
        status = stage_reduce_layer(s, &s->layer[i], err);
    for (int joined = 0; !status && joined <= (s->copies == 2 ? 1 : s->ties); joined++)
        status = join_sums(s, joined, err);
    return status;
}

/* ---- the update ---- */

sm_status sm_stage_gather(const sm_stage *s, const sm_step_layer *layer, int group,
                          sm_local_block *mine, sm_local_block *row, sm_error *err) {
    const sm_gradient_group *g = &layer->group[group];
    bool halves = sm_group_peers(s, g) > 1, others = sm_group_ways(s, layer, group) > 1;
    sm_local_block both = {.data = NULL}, *first = others ? &both : row;
    sm_status status = SM_OK;
    if (halves && others) status = make_row(s, mine->element, g->reduced, false, &both, err);
    if (!status && halves) status = join_rows(s, SM_ALL_GATHER, 0, SM_OVER_AXES, mine, first, err);
    if (!status && others)
        status = join_rows(s, SM_ALL_GATHER, g->partial, SM_OVER_ONE_COPY, halves ? &both : mine,
                           row, err);
    stage_drop(s, &both);
    return status;
}

static sm_status update_group(sm_stage *s, sm_step_layer *layer, int group, sm_error *err) {
    sm_gradient_group *g = &layer->group[group];
    size_t all = sm_group_row(s, layer, group);
    sm_element element = g->element;
    sm_local_block row, part = {.data = NULL}, *mine = all == g->chunk ? &row : &part;
    sm_status status = make_row(s, element, all, true, &row, err);
    if (!status) status = of_group(s, SM_CALL_PACK_WEIGHTS, layer, group, NULL, &row, err);
    if (!status && mine == &part) {
        status = make_row(s, element, g->chunk, false, &part, err);
        if (!status) status = of_group(s, SM_CALL_TAKE_PART, layer, group, &row, &part, err);
    }
    if (!status) status = of_group(s, SM_CALL_UPDATE, layer, group, NULL, mine, err);
    stage_drop(s, &g->sum);
    if (!status && mine == &part) status = sm_stage_gather(s, layer, group, &part, &row, err);
    if (!status) status = of_group(s, SM_CALL_UNPACK_WEIGHTS, layer, group, &row, NULL, err);
    stage_drop(s, &part);
    stage_drop(s, &row);
    return status;
}

sm_status sm_stage_update(sm_stage *s, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < s->layers; i++)
        for (int g = 0; !status && g < s->layer[i].groups; g++)
            status = update_group(s, &s->layer[i], g, err);
    return status;
}
