/* One step of a lowering on the block that a rank holds: slices, gathers, reductions, exchanges.
 * All of them are boxes of the block, whose places follow from the layouts before and after. */
#include <string.h>

#include "box.h"
#include "local_block.h"
#include "memory_account.h"
#include "rank_mesh.h"

typedef struct stepping {
    sm_rank_mesh *m;
    const sm_step *step;
    const sm_layout *before, *after;
    sm_communicator *group;
    const sm_local_block *block; /* before */
    sm_local_block *result;
    size_t width; /* bytes of an element */
} stepping;

static const size_t nowhere[SM_MAX_RANK] = {0};

/* What a member takes of this rank's block when it gains the axes of the step: sizes and offsets.
 */
static void taken_by(const stepping *s, int number, size_t *size, size_t *offset) {
    int at[SM_MAX_AXES];
    member_of(s->m, s->step->axes, number, at);
    for (int d = 0; d < s->block->rank; d++) {
        size[d] = s->block->size[d] / sm_layout_parts(&s->m->mesh, s->after, d, s->step->axes);
        offset[d] = size[d] * sm_layout_part(&s->m->mesh, s->after, d, s->step->axes, at);
    }
}

/* Where the block of a member, of sizes `size`, goes in the result when the axes of the step leave
 * their dimensions. */
static void given_by(const stepping *s, int number, const size_t *size, size_t *offset) {
    int at[SM_MAX_AXES];
    member_of(s->m, s->step->axes, number, at);
    for (int d = 0; d < s->block->rank; d++)
        offset[d] = size[d] * /* NOLINT(clang-analyzer-core.*): of the rank of the block */
                    sm_layout_part(&s->m->mesh, s->before, d, s->step->axes, at);
}

static void take(const stepping *s, const size_t *offset, const size_t *size, void *to) {
    box_side into = {to, size, nowhere}, from = {s->block->data, s->block->size, offset};
    box_copy(&into, &from, s->block->rank, size, s->width);
}

static void give(const stepping *s, const void *from, const size_t *size, const size_t *offset) {
    box_side into = {s->result->data, s->result->size, offset};
    box_side source = {(void *)(uintptr_t)from, size, nowhere};
    box_copy(&into, &source, s->block->rank, size, s->width);
}

static size_t product(const size_t *size, int rank) {
    size_t n = 1;
    for (int d = 0; d < rank; d++) n *= size[d];
    return n;
}

/* ---- steps ---- */

/* Do the boxes of the members, one after the other, make up the whole array as it lies in memory?
 * Then nothing need be copied. box: sizes of one; whole: those of the array. */
static bool lie_in_order(const stepping *s, const size_t *box, const size_t *whole,
                         const sm_layout *layout) {
    size_t count = product(box, s->block->rank);
    for (int i = 0; i < s->group->size; i++) {
        int at[SM_MAX_AXES];
        size_t place = 0;
        member_of(s->m, s->step->axes, i, at);
        for (int d = 0; d < s->block->rank; d++)
            place = place * whole[d] +
                    box[d] * sm_layout_part(&s->m->mesh, layout, d, s->step->axes, at);
        if (place != (size_t)i * count) return false;
    }
    for (int d = 0, inner = 0; d < s->block->rank; d++) { /* only the first long one is cut */
        if (inner && box[d] != whole[d]) return false;
        inner = inner || whole[d] > 1;
    }
    return true;
}

static sm_status gather_boxes(stepping *s, size_t bytes, sm_error *err) {
    size_t offset[SM_MAX_RANK];
    char *all = memory_new(bytes * (size_t)s->group->size + 1);
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(s->group, s->block->data, bytes, all, err);
    for (int i = 0; !status && i < s->group->size; i++) {
        given_by(s, i, s->block->size, offset);
        give(s, all + (size_t)i * bytes, s->block->size, offset);
    }
    memory_free(all);
    return status;
}

static sm_status all_gather(stepping *s, sm_error *err) {
    size_t size[SM_MAX_RANK], bytes = sm_local_block_count(s->block) * s->width;
    for (int d = 0; d < s->block->rank; d++)
        size[d] = s->block->size[d] * sm_layout_parts(&s->m->mesh, s->before, d, s->step->axes);
    sm_status status = local_block_raw(s->block->element, s->block->rank, size, s->result, err);
    if (status) return status;
    if (lie_in_order(s, s->block->size, size, s->before))
        status = sm_run_all_gather(s->group, s->block->data, bytes, s->result->data, err);
    else status = gather_boxes(s, bytes, err);
    return status;
}

static sm_status scatter_boxes(stepping *s, const size_t *box, sm_error *err) {
    size_t size[SM_MAX_RANK], offset[SM_MAX_RANK], count = product(box, s->block->rank);
    char *send = memory_new(count * s->width * (size_t)s->group->size + 1);
    if (!send) return sm_fail_memory(err);
    for (int i = 0; i < s->group->size; i++) {
        taken_by(s, i, size, offset);
        take(s, offset, size, send + (size_t)i * count * s->width);
    }
    sm_status status =
        sm_run_reduce_scatter(s->group, send, count, s->block->element, s->result->data, err);
    memory_free(send);
    return status;
}

static sm_status reduce_scatter(stepping *s, sm_error *err) {
    size_t box[SM_MAX_RANK], offset[SM_MAX_RANK];
    taken_by(s, 0, box, offset);
    sm_status status = local_block_raw(s->block->element, s->block->rank, box, s->result, err);
    if (status) return status;
    if (lie_in_order(s, box, s->block->size, s->after))
        status = sm_run_reduce_scatter(s->group, s->block->data, product(box, s->block->rank),
                                       s->block->element, s->result->data, err);
    else status = scatter_boxes(s, box, err);
    return status;
}

static sm_status all_reduce(stepping *s, sm_error *err) {
    size_t count = sm_local_block_count(s->block);
    sm_status status =
        local_block_raw(s->block->element, s->block->rank, s->block->size, s->result, err);
    if (status) return status;
    memcpy(s->result->data, s->block->data, count * s->width);
    status = sm_run_all_reduce(s->group, s->result->data, count, s->block->element, err);
    return status;
}

static sm_status exchange(stepping *s, const size_t *box, char *send, char *recv, sm_error *err) {
    size_t size[SM_MAX_RANK], offset[SM_MAX_RANK];
    size_t bytes = product(box, s->block->rank) * s->width;
    for (int i = 0; i < s->group->size; i++) {
        taken_by(s, i, size, offset);
        take(s, offset, size, send + (size_t)i * bytes);
    }
    sm_status status = sm_run_all_to_all(s->group, send, bytes, recv, err);
    for (int i = 0; !status && i < s->group->size; i++) {
        given_by(s, i, box, offset);
        give(s, recv + (size_t)i * bytes, box, offset);
    }
    return status;
}

static sm_status all_to_all(stepping *s, sm_error *err) {
    size_t box[SM_MAX_RANK], offset[SM_MAX_RANK], size[SM_MAX_RANK];
    taken_by(s, 0, box, offset);
    for (int d = 0; d < s->block->rank; d++)
        size[d] = box[d] * sm_layout_parts(&s->m->mesh, s->before, d, s->step->axes);
    size_t bytes = product(box, s->block->rank) * s->width * (size_t)s->group->size;
    char *room = memory_new(2 * bytes + 1);
    if (!room) return sm_fail_memory(err);
    sm_status status = local_block_raw(s->block->element, s->block->rank, size, s->result, err);
    if (!status) status = exchange(s, box, room, room + bytes, err);
    memory_free(room);
    return status;
}

/* Which of the chips that hold the same block: the number along the replicated axes of the step. */
static int copy_of(const stepping *s, const sm_layout *layout, const int *at) {
    sm_axes replicated = 0;
    for (int a = 0; a < s->m->mesh.axes; a++)
        if ((s->step->axes >> a & 1u) && layout->dim[a] == SM_REPLICATED)
            replicated = (sm_axes)(replicated | 1u << a);
    return number_of(&s->m->mesh, replicated, at);
}

/* The member whose block after the step is where that of `at` was before it, or the other way; of
 * several that hold the same block the one with the same number among them. */
static int holder(const stepping *s, const sm_layout *mine, const sm_layout *theirs) {
    int at[SM_MAX_AXES], copy = copy_of(s, mine, s->m->at);
    for (int i = 0; i < s->group->size; i++) {
        bool same = true;
        member_of(s->m, s->step->axes, i, at);
        for (int d = 0; same && d < s->block->rank; d++)
            same = sm_layout_part(&s->m->mesh, theirs, d, s->step->axes, at) ==
                   sm_layout_part(&s->m->mesh, mine, d, s->step->axes, s->m->at);
        if (same && copy_of(s, theirs, at) == copy) return i;
    }
    return -1;
}

static sm_status permute(stepping *s, sm_error *err) {
    int to = holder(s, s->before, s->after), from = holder(s, s->after, s->before);
    if (to < 0 || from < 0) return sm_fail(err, SM_INTERNAL, "a permutation leads nowhere");
    sm_status status =
        local_block_raw(s->block->element, s->block->rank, s->block->size, s->result, err);
    if (status) return status;
    status = sm_run_permute(s->group, s->block->data, to, s->result->data, from,
                            sm_local_block_count(s->block) * s->width, err);
    return status;
}

sm_status sm_local_block_step(sm_rank_mesh *m, const sm_step *step, const sm_layout *before,
                              const sm_local_block *block, sm_local_block *result, sm_error *err) {
    stepping s = {.m = m,
                  .step = step,
                  .before = before,
                  .after = &step->after,
                  .block = block,
                  .result = result,
                  .width = sm_element_bytes(block->element)};
    if (step->kind == SM_STEP_SLICE) {
        size_t size[SM_MAX_RANK], offset[SM_MAX_RANK];
        for (int d = 0; d < s.block->rank; d++) {
            size[d] = s.block->size[d] / sm_layout_parts(&s.m->mesh, s.after, d, s.step->axes);
            offset[d] = size[d] * sm_layout_part(&s.m->mesh, s.after, d, s.step->axes, s.m->at);
        }
        sm_status status = local_block_raw(s.block->element, s.block->rank, size, s.result, err);
        if (status) return status;
        take(&s, offset, size, s.result->data);
        return SM_OK;
    }
    if (step->kind != SM_STEP_COLLECTIVE)
        return sm_fail(err, SM_INTERNAL, "an einsum moves no block");
    s.group = sm_rank_mesh_over(m, step->axes, err);
    if (!s.group) return err ? err->status : SM_INTERNAL;
    sm_status status = SM_OK;
    *result = (sm_local_block){.data = NULL};
    switch (step->op) {
    case SM_ALL_GATHER: status = all_gather(&s, err); break;
    case SM_REDUCE_SCATTER: status = reduce_scatter(&s, err); break;
    case SM_ALL_REDUCE: status = all_reduce(&s, err); break;
    case SM_ALL_TO_ALL: status = all_to_all(&s, err); break;
    case SM_PERMUTE: status = permute(&s, err); break;
    default: return sm_fail(err, SM_INTERNAL, "a lowering has no %s", sm_collective_name(step->op));
    }
    if (status) sm_local_block_free(result);
    return status;
}
