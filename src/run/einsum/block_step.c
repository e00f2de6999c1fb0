/* One step of a lowering on the block that a rank holds: slices, gathers, reductions, exchanges.
 * All of them are boxes of the block, whose places follow from the layouts before and after. */

#include "einsum_parts.h"
#include "memory_account.h"

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

static size_t product(const size_t *size, int rank) {
    size_t n = 1;
    for (int d = 0; d < rank; d++) n *= size[d];
    return n;
}

/* A box of a block: of padded ones some of the size is beyond the end, or all. */
typedef struct box {
    size_t offset[SM_MAX_RANK], size[SM_MAX_RANK], held[SM_MAX_RANK];
    bool padded;
} box;

/* The part that a member has of an array of these sizes, cut along the axes of the step. */
static void box_of(const stepping *s, const sm_layout *layout, int number, const size_t *whole,
                   box *b) {
    int at[SM_MAX_AXES];
    member_of(s->m, s->step->axes, number, at);
    b->padded = false;
    for (int d = 0; d < s->block->rank; d++) {
        sm_part_range r = sm_layout_range(&s->m->mesh, layout, d, s->step->axes, at, whole[d]);
        b->offset[d] = r.offset;
        b->size[d] = r.size;
        b->held[d] = r.held;
        b->padded = b->padded || r.held < r.size;
    }
}

/* What a member takes of this rank's block when it gains the axes of the step. */
static void taken_by(const stepping *s, int number, box *b) {
    box_of(s, s->after, number, s->block->size, b);
}

static void take(const stepping *s, const box *b, void *to) {
    box_side into = {to, b->size, nowhere}, from = {s->block->data, s->block->size, b->offset};
    if (b->padded) memset(to, 0, product(b->size, s->block->rank) * s->width);
    box_copy(&into, &from, s->block->rank, b->held, s->width);
}

/* size: of the box that came, which may be longer than what is given of it. */
static void give(const stepping *s, const void *from, const size_t *size, const box *b) {
    box_side into = {s->result->data, s->result->size, b->offset};
    box_side source = {(void *)(uintptr_t)from, size, nowhere};
    box_copy(&into, &source, s->block->rank, b->held, s->width);
}

/* The sizes of the result where dimensions lose the axes of the step. */
static void sizes_after(const stepping *s, const size_t *size, size_t *after) {
    const sm_local_block *b = s->block;
    for (int d = 0; d < b->rank; d++) {
        size_t parts = sm_layout_parts(&s->m->mesh, s->before, d, s->step->axes);
        size_t cut = sm_layout_parts(&s->m->mesh, s->after, d, (sm_axes)~0u);
        after[d] = size[d] * parts;
        if (parts > 1 && b->whole[d] > 0) after[d] = (b->whole[d] + cut - 1) / cut;
    }
}

/* ---- steps ---- */

/* Do the boxes of the members, one after the other, make up the whole array as it lies in memory?
 * Then nothing need be copied. whole: sizes of the array. */
static bool lie_in_order(const stepping *s, const size_t *whole, const sm_layout *layout) {
    size_t next = 0;
    box b = {.padded = false};
    for (int i = 0; i < s->group->size; i++) {
        size_t place = 0;
        box_of(s, layout, i, whole, &b);
        for (int d = 0; d < s->block->rank; d++) place = place * whole[d] + b.offset[d];
        if (b.padded || place != next) return false;
        next += product(b.size, s->block->rank);
    }
    for (int d = 0, inner = 0; d < s->block->rank; d++) { /* only the first long one is cut */
        if (inner && b.size[d] != whole[d]) return false;
        inner = inner || whole[d] > 1;
    }
    return true;
}

/* Gathers, scattered sums and exchanges: parts for the members go out, and parts of theirs come. */
static sm_status move_parts(stepping *s, sm_error *err) {
    const bool gathers = s->step->op == SM_ALL_GATHER, scatters = s->step->op == SM_REDUCE_SCATTER;
    const int rank = s->block->rank, members = s->group->size;
    const sm_element element = s->block->element;
    size_t size[SM_MAX_RANK];
    box part, b;
    taken_by(s, 0, &part);
    if (gathers) memcpy(part.size, s->block->size, sizeof part.size);
    memcpy(size, part.size, sizeof size);
    if (!scatters) sizes_after(s, part.size, size);
    sm_status status = local_block_raw(element, rank, size, s->result, err);
    if (status) return status;
    size_t count = product(part.size, rank), bytes = count * s->width;
    bool packs = !gathers && !(scatters && lie_in_order(s, s->block->size, s->after));
    bool unpacks = !scatters && !(gathers && lie_in_order(s, size, s->before));
    size_t all = bytes * (size_t)members;
    char *room = packs || unpacks ? memory_new((packs && unpacks ? 2 : 1) * all + 1) : NULL;
    if ((packs || unpacks) && !room) return sm_fail_memory(err);
    char *send = packs ? room : s->block->data;
    char *recv = unpacks ? room + (packs ? all : 0) : s->result->data;
    for (int i = 0; packs && i < members; i++) {
        taken_by(s, i, &b);
        take(s, &b, send + (size_t)i * bytes);
    }
    status = sm_run_collective(s->group, &(sm_run_call){s->step->op, send, recv, count, element, 0},
                               err);
    for (int i = 0; !status && unpacks && i < members; i++) {
        box_of(s, s->before, i, s->result->size, &b); /* where a member's block goes */
        give(s, recv + (size_t)i * bytes, part.size, &b);
    }
    memory_free(room);
    return status;
}

static sm_status all_reduce(stepping *s, sm_error *err) {
    size_t count = sm_local_block_count(s->block);
    sm_status status =
        local_block_raw(s->block->element, s->block->rank, s->block->size, s->result, err);
    if (status) return status;
    memcpy(s->result->data, s->block->data, count * s->width);
    return sm_run_all_reduce(s->group, s->result->data, count, s->block->element, err);
}

/* The member whose block under one layout has the number of this rank's under the other, and
 * `shift` more; b: what the two blocks have in common, as a box of this rank's. -1: none. */
static int holder(const stepping *s, const sm_layout *mine, const sm_layout *theirs,
                  const int *shift, box *b) {
    sm_permutation p;
    int at[SM_MAX_AXES];
    memcpy(at, s->m->at, sizeof at);
    sm_permutation_of(&s->m->mesh, s->step->axes, mine, theirs, &p);
    if (!sm_permutation_apply(&p, s->m->at, shift, at)) return -1;
    for (int d = 0; d < s->block->rank; d++) {
        const sm_axes all = (sm_axes)~0u;
        const size_t whole = s->block->whole[d];
        sm_part_range a = sm_layout_range(&s->m->mesh, mine, d, all, s->m->at, whole),
                      c = sm_layout_range(&s->m->mesh, theirs, d, all, at, whole);
        size_t from = a.offset > c.offset ? a.offset : c.offset;
        size_t a_end = a.offset + a.held, c_end = c.offset + c.held;
        size_t to = a_end < c_end ? a_end : c_end;
        b->held[d] = to > from ? to - from : 0;
        b->offset[d] = b->held[d] > 0 ? from - a.offset : 0;
    }
    return number_of(&s->m->mesh, s->step->axes, at);
}

/* One message of a permute: all that has gone so many blocks further, in each dimension. */
static sm_status permute_pieces(stepping *s, const int *ahead, const size_t *width, sm_error *err) {
    box out = {.padded = true}, in = out;
    int behind[SM_MAX_RANK];
    for (int d = 0; d < SM_MAX_RANK; d++) behind[d] = -ahead[d];
    memcpy(out.size, width, sizeof out.size);
    size_t bytes = product(width, s->block->rank) * s->width;
    char *room = memory_new(2 * bytes + 1);
    if (!room) return sm_fail_memory(err);
    int to = holder(s, s->before, s->after, behind, &out),
        from = holder(s, s->after, s->before, ahead, &in);
    if (to >= 0) take(s, &out, room);
    sm_status status = sm_run_permute(s->group, room, to, room + bytes, from, bytes, err);
    if (!status && from >= 0) give(s, room + bytes, width, &in);
    memory_free(room);
    return status;
}

/* Blocks cut at the same places change chips as they are. Others come in pieces, turn by turn, each
 * from a neighbour of the chip that has most of it, as XLA exchanges edges. */
static sm_status permute(stepping *s, sm_error *err) {
    const int rank = s->block->rank;
    sm_pieces pieces[SM_MAX_RANK];
    int chips[SM_MAX_AXES], shift[SM_MAX_RANK] = {0}, turns = 1;
    size_t width[SM_MAX_RANK];
    box whole;
    unsigned joined = 0;
    for (int a = 0; a < s->m->mesh.axes; a++) {
        chips[a] = s->m->mesh.axis[a].size;
        if (s->m->mesh.axis[a].joined) joined |= 1u << a;
    }
    for (int d = 0; d < rank; d++) {
        sm_layout_pieces(chips, (sm_axes)joined, s->before, s->after, d, (double)s->block->whole[d],
                         &pieces[d]);
        turns *= pieces[d].n;
    }
    sm_status status = local_block_raw(s->block->element, rank, s->block->size, s->result, err);
    if (status) return status;
    size_t bytes = sm_local_block_count(s->block) * s->width;
    if (turns == 1)
        return sm_run_permute(s->group, s->block->data,
                              holder(s, s->before, s->after, NULL, &whole), s->result->data,
                              holder(s, s->after, s->before, NULL, &whole), bytes, err);
    memset(s->result->data, 0, bytes);
    for (int turn = 0; !status && turn < turns; turn++) {
        for (int d = 0, rest = turn; d < rank; rest /= pieces[d++].n) {
            shift[d] = pieces[d].shift[rest % pieces[d].n];
            width[d] = (size_t)pieces[d].width[rest % pieces[d].n];
        }
        status = permute_pieces(s, shift, width, err);
    }
    return status;
}

static sm_status slice(stepping *s, sm_error *err) {
    box b;
    int own = number_of(&s->m->mesh, s->step->axes, s->m->at);
    taken_by(s, own, &b);
    sm_status status = local_block_raw(s->block->element, s->block->rank, b.size, s->result, err);
    if (!status) take(s, &b, s->result->data);
    return status;
}

static sm_status step_plain(sm_rank_mesh *m, const sm_step *step, const sm_layout *before,
                            const sm_local_block *block, sm_local_block *result, sm_error *err) {
    stepping s = {.m = m,
                  .step = step,
                  .before = before,
                  .after = &step->after,
                  .block = block,
                  .result = result,
                  .width = sm_element_bytes(block->element)};
    *result = (sm_local_block){.data = NULL};
    if (step->kind == SM_STEP_SLICE) {
        sm_status status = slice(&s, err);
        memcpy(result->whole, block->whole, sizeof result->whole);
        return status;
    }
    if (step->kind != SM_STEP_COLLECTIVE)
        return sm_fail(err, SM_INTERNAL, "an einsum moves no block");
    s.group = sm_rank_mesh_over(m, step->axes, err);
    if (!s.group) return err ? err->status : SM_INTERNAL;
    sm_status status = SM_OK;
    switch (step->op) {
    case SM_ALL_GATHER:
    case SM_REDUCE_SCATTER:
    case SM_ALL_TO_ALL: status = move_parts(&s, err); break;
    case SM_ALL_REDUCE: status = all_reduce(&s, err); break;
    case SM_PERMUTE: status = permute(&s, err); break;
    default: return sm_fail(err, SM_INTERNAL, "a lowering has no %s", sm_collective_name(step->op));
    }
    memcpy(result->whole, block->whole, sizeof result->whole);
    if (status) sm_local_block_free(result);
    return status;
}

/* ---- scaled blocks: their codes, and their scales, as arrays of bytes and of numbers ---- */

static sm_local_block codes_of(const sm_local_block *b) {
    sm_local_block codes = *b;
    int last = b->rank - 1;
    size_t per_byte = b->element == SM_ELEMENT_E2M1 ? 2 : 1;
    assert(b->size[last] % per_byte == 0);
    codes.element = SM_ELEMENT_S8;
    codes.size[last] /= per_byte;
    codes.whole[last] /= per_byte;
    return codes;
}

static sm_local_block scales_of(const sm_local_block *b) {
    sm_local_block scales = *b;
    scales.element = sm_scale_bytes(b->element) == 1 ? SM_ELEMENT_S8 : SM_ELEMENT_F32;
    scales.data = (char *)b->data + sm_local_block_scales(b);
    for (int d = 0; d < b->rank; d++) {
        scales.size[d] /= b->box[d];
        scales.whole[d] /= b->box[d];
    }
    return scales;
}

static sm_status step_scaled(sm_rank_mesh *m, const sm_step *step, const sm_layout *before,
                             const sm_local_block *block, sm_local_block *result, sm_error *err) {
    const sm_local_block from[2] = {codes_of(block), scales_of(block)};
    sm_local_block got[2] = {{.data = NULL}, {.data = NULL}};
    size_t size[SM_MAX_RANK];
    sm_status status = SM_OK;
    for (int i = 0; !status && i < 2; i++)
        status = step_plain(m, step, before, &from[i], &got[i], err);
    for (int d = 0; d < block->rank; d++) size[d] = got[1].size[d] * block->box[d];
    assert(status || (got[0].data && got[1].data));
    if (!status)
        status = local_block_scaled(block->element, block->rank, size, block->box, result, err);
    if (!status) {
        const sm_local_block to[2] = {codes_of(result), scales_of(result)};
        for (int i = 0; i < 2; i++)
            memcpy(to[i].data, got[i].data,
                   sm_local_block_count(&to[i]) * sm_element_bytes(to[i].element));
        memcpy(result->whole, block->whole, sizeof result->whole);
    }
    for (int i = 0; i < 2; i++) sm_local_block_free(&got[i]);
    return status;
}

sm_status sm_local_block_step(sm_rank_mesh *m, const sm_step *step, const sm_layout *before,
                              const sm_local_block *block, sm_local_block *result, sm_error *err) {
    *result = (sm_local_block){.data = NULL};
    return (sm_element_scaled(block->element) ? step_scaled : step_plain)(m, step, before, block,
                                                                          result, err);
}
