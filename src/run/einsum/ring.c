/* The ring. Chunk i of the cut index belongs to rank i of the group. Gathering: this rank starts
 * with its own chunk, multiplies what it has and passes it on. Reducing: the sums of a chunk set
 * out from the rank after its owner, and each rank on the way adds its product. With two directions
 * the chunks are halved, and one lane goes each way. These are the collective matmuls of Wang et
 * al. (ASPLOS 2023, "Overlap Communication with Dependent Computation via Decomposition"): the
 * transfer of one chunk runs beside the product of another. */
#include "einsum_parts.h"

#include "memory_account.h"

enum { MOST_LANES = 2, TAG = 11 };
enum { PRODUCT, ARRIVING, SENT, BLOCKS }; /* the blocks of a lane */

/* One way round: the part [from, from + length) of every chunk. */
typedef struct lane {
    int direction; /* +1: what arrives comes from the next rank; -1: from the one before */
    size_t from, length;
    sm_local_block block[BLOCKS];
    ring_transfer way;
    bool borrowed; /* the first PRODUCT is the caller's */
} lane;

typedef struct ring {
    const ring_job *job;
    sm_communicator *group;
    int n, rank, cut; /* ranks, this one, the index that is cut */
    size_t chunk;     /* its length on each rank */
    int lanes;
    lane lane[MOST_LANES];
    sm_local_block *out;
    bool written; /* out holds the product of a chunk */
} ring;

static int gathered(const ring *r) { return r->job->step->array; }

static int wrap(const ring *r, int rank) { return ((rank % r->n) + r->n) % r->n; }

/* ---- parts of blocks along one dimension ---- */

static int dimension_of(const int8_t *label, int rank, int index) {
    for (int d = 0; d < rank; d++)
        if (label[d] == index) return d;
    return -1;
}

/* A part whose elements stand together is used where it is. */
static bool stands_together(const sm_local_block *b, int dim) {
    for (int d = 0; d < dim; d++)
        if (b->size[d] != 1) return false;
    return true;
}

static void *part_at(const sm_local_block *b, int dim, size_t from) {
    size_t step = sm_element_bytes(b->element);
    for (int d = dim + 1; d < b->rank; d++) step *= b->size[d];
    return (char *)b->data + from * step;
}

/* The part [from, from + length) of a dimension where it lies, apart or not. */
static sm_local_block view_of_part(const sm_local_block *b, int dim, size_t from, size_t length) {
    sm_local_block part = *b;
    part.size[dim] = length;
    part.data = part_at(b, dim, from);
    return part;
}

/* The same: a view of what stands together, or a copy that *owned tells to free. */
static sm_status take_part(const sm_local_block *b, int dim, size_t from, size_t length,
                           sm_local_block *part, bool *owned, sm_error *err) {
    static const size_t nowhere[SM_MAX_RANK] = {0};
    size_t offset[SM_MAX_RANK] = {0};
    *part = view_of_part(b, dim, from, length);
    *owned = !stands_together(b, dim);
    if (!*owned) return SM_OK;
    size_t size[SM_MAX_RANK];
    memcpy(size, part->size, sizeof size);
    sm_status status = local_block_raw(b->element, b->rank, size, part, err);
    if (status) return status;
    offset[dim] = from;
    box_side to = {part->data, size, nowhere}, source = {b->data, b->size, offset};
    box_copy(&to, &source, b->rank, size, sm_element_bytes(b->element));
    return SM_OK;
}

static void put_part(const sm_local_block *part, int dim, size_t from, sm_local_block *b) {
    static const size_t nowhere[SM_MAX_RANK] = {0};
    size_t offset[SM_MAX_RANK] = {0};
    offset[dim] = from;
    box_side to = {b->data, b->size, offset}, source = {part->data, part->size, nowhere};
    box_copy(&to, &source, b->rank, part->size, sm_element_bytes(b->element));
}

/* Where the chunk of a member of the group begins. */
static size_t chunk_start(const ring *r, int member) {
    const ring_job *job = r->job;
    int at[SM_MAX_AXES], array = gathered(r);
    const sm_layout *layout = array < 0 ? &job->step->after : job->before;
    member_of(job->m, job->step->axes, member, at);
    const sm_array *cut_array = array < 0 ? &job->einsum->out : &job->einsum->in[array];
    for (int d = 0; d < cut_array->rank; d++)
        if (cut_array->dim[d].index == r->cut)
            return r->chunk * sm_layout_part(&job->m->mesh, layout, d, job->step->axes, at);
    return 0;
}

static void poke(ring *r) {
    for (int i = 0; i < r->lanes; i++) ring_poke(&r->lane[i].way);
}

static void swap(lane *l, int one, int other) {
    sm_local_block held = l->block[one];
    l->block[one] = l->block[other];
    l->block[other] = held;
}

/* ---- products ---- */

/* A range of the cut index: from `start` of all of it, from `within` of the lane's block. */
typedef struct range {
    size_t start, within, length;
} range;

/* The operands with their part of the cut index, where they lie if there are two of them; that of
 * the array which is gathered comes from the chunk at hand. */
static sm_status multiply_parts(const ring *r, const lane *l, range cut, bool plus,
                                sm_local_block *out, sm_error *err) {
    const ring_job *job = r->job;
    const int8_t(*label)[SM_MAX_RANK] = (const int8_t(*)[SM_MAX_RANK])job->label;
    int operands = job->einsum->operands;
    sm_local_block in[SM_MAX_OPERANDS];
    local_part part[SM_MAX_OPERANDS];
    bool owned[SM_MAX_OPERANDS] = {false};
    sm_status status = SM_OK;
    for (int i = 0; !status && i < operands; i++) {
        bool travels = i == gathered(r);
        const sm_local_block *whole = travels ? &l->block[PRODUCT] : &job->array[i];
        int dim = dimension_of(job->label[i], whole->rank, r->cut);
        size_t from = travels ? cut.within : cut.start;
        in[i] = *whole;
        part[i] = (local_part){dim, dim < 0 ? 0 : whole->size[dim]};
        if (dim >= 0 && operands == 2) in[i] = view_of_part(whole, dim, from, cut.length);
        else if (dim >= 0) status = take_part(whole, dim, from, cut.length, &in[i], &owned[i], err);
    }
    if (!status)
        status = operands == 2
                     ? local_einsum_of_parts(in, part, label, job->out_label, plus, out, err)
                     : local_einsum(operands, in, label, job->out_label, plus, out, err);
    for (int i = 0; i < operands; i++)
        if (owned[i]) sm_local_block_free(&in[i]);
    return status;
}

/* Into the part of `out` that begins at `from`. */
static sm_status multiply_into_part(const ring *r, const lane *l, range cut, int dim, size_t from,
                                    sm_local_block *out, sm_error *err) {
    sm_local_block part = *out;
    part.size[dim] = cut.length;
    if (stands_together(out, dim)) {
        part.data = part_at(out, dim, from);
        return multiply_parts(r, l, cut, false, &part, err);
    }
    size_t size[SM_MAX_RANK];
    memcpy(size, part.size, sizeof size);
    sm_status status = local_block_raw(part.element, part.rank, size, &part, err);
    if (!status) status = multiply_parts(r, l, cut, false, &part, err);
    if (!status) put_part(&part, dim, from, out);
    sm_local_block_free(&part);
    return status;
}

/* A gathered chunk makes a part of the product, or, where the cut index is contracted, the first
 * makes all of it and the others add; a reduced one makes the chunk of sums. */
static sm_status multiply_range(ring *r, lane *l, range cut, sm_error *err) {
    int dim = dimension_of(r->job->out_label, r->out->rank, r->cut);
    if (gathered(r) < 0)
        return multiply_into_part(r, l, cut, dim, cut.within, &l->block[PRODUCT], err);
    if (dim < 0) {
        bool plus = r->written;
        r->written = true;
        return multiply_parts(r, l, cut, plus, r->out, err);
    }
    return multiply_into_part(r, l, cut, dim, cut.start, r->out, err);
}

/* The lane's part of a member's chunk, in pieces between which transfers are helped along. */
static sm_status multiply(ring *r, lane *l, int member, sm_error *err) {
    enum { MOST_PIECES = 4, LEAST_LENGTH = 512 };
    assert(member >= 0 && member < r->n && l->from + l->length <= r->chunk);
    size_t start = chunk_start(r, member) + l->from, pieces = l->length / LEAST_LENGTH;
    sm_status status = SM_OK;
    if (pieces > MOST_PIECES) pieces = MOST_PIECES;
    if (pieces < 1 || !r->group->backend->poke) pieces = 1;
    for (size_t p = 0; !status && p < pieces; p++) {
        size_t from = l->length * p / pieces, to = l->length * (p + 1) / pieces;
        range cut = {start + from, from, to - from};
        poke(r);
        status = multiply_range(r, l, cut, err);
    }
    return status;
}

/* ---- gathering ---- */

/* Room for what arrives next. */
static sm_status make_room(lane *l, sm_error *err) {
    const sm_local_block *like = &l->block[PRODUCT];
    return local_block_raw(like->element, like->rank, like->size, &l->block[ARRIVING], err);
}

/* This rank's chunk, where it lies if it can, and room for the next. */
static sm_status begin_gather(ring *r, lane *l, sm_error *err) {
    const sm_local_block *own = &r->job->array[gathered(r)];
    int dim = dimension_of(r->job->label[gathered(r)], own->rank, r->cut);
    bool owned;
    sm_status status = take_part(own, dim, l->from, l->length, &l->block[PRODUCT], &owned, err);
    if (status) return status;
    l->borrowed = !owned;
    return make_room(l, err);
}

/* What is the caller's is not written over. */
static sm_status end_gather(lane *l, bool more, sm_error *err) {
    sm_status status = ring_end_receive(&l->way, err);
    if (!status) status = ring_end_send(&l->way, err);
    if (status) return status;
    swap(l, PRODUCT, ARRIVING);
    if (!l->borrowed) return SM_OK;
    l->borrowed = false;
    l->block[ARRIVING].data = NULL;
    return more ? make_room(l, err) : SM_OK;
}

static sm_status gather_stage(ring *r, int stage, sm_error *err) {
    sm_status status = SM_OK;
    bool last = stage == r->n - 1;
    for (int i = 0; !status && !last && i < r->lanes; i++) {
        lane *l = &r->lane[i];
        status = ring_start_receive(&l->way, &l->block[ARRIVING], err);
        if (!status) status = ring_start_send(&l->way, &l->block[PRODUCT], err);
    }
    for (int i = 0; !status && i < r->lanes; i++)
        status = multiply(r, &r->lane[i], wrap(r, r->rank + r->lane[i].direction * stage), err);
    for (int i = 0; !status && !last && i < r->lanes; i++)
        status = end_gather(&r->lane[i], stage < r->n - 2, err);
    return status;
}

/* ---- reducing ---- */

static sm_status begin_reduce(ring *r, lane *l, sm_error *err) {
    size_t size[SM_MAX_RANK];
    sm_status status = SM_OK;
    memcpy(size, r->out->size, sizeof size);
    size[dimension_of(r->job->out_label, r->out->rank, r->cut)] = l->length;
    for (int i = 0; !status && i < BLOCKS; i++)
        status = local_block_raw(r->out->element, r->out->rank, size, &l->block[i], err);
    return status;
}

/* The sums that arrived are added to this rank's product, and passed on. */
static sm_status end_reduce(ring *r, lane *l, int stage, sm_error *err) {
    sm_local_block *product = &l->block[PRODUCT];
    sm_status status = ring_end_receive(&l->way, err);
    if (!status && stage > 0)
        sm_elements_add(product->data, l->block[ARRIVING].data, sm_local_block_count(product),
                        product->element);
    if (!status) status = ring_end_send(&l->way, err);
    if (status || stage == r->n - 1) return status;
    swap(l, PRODUCT, SENT);
    return ring_start_send(&l->way, &l->block[SENT], err);
}

static sm_status reduce_stage(ring *r, int stage, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && stage > 0 && i < r->lanes; i++)
        status = ring_start_receive(&r->lane[i].way, &r->lane[i].block[ARRIVING], err);
    for (int i = 0; !status && i < r->lanes; i++) {
        int owner = wrap(r, r->rank + r->lane[i].direction * (stage + 1));
        status = multiply(r, &r->lane[i], owner, err);
    }
    for (int i = 0; !status && i < r->lanes; i++) status = end_reduce(r, &r->lane[i], stage, err);
    return status;
}

/* ---- the ring ---- */

/* A chunk of sums is this rank's part of the product. */
static void put_sums(ring *r) {
    int dim = dimension_of(r->job->out_label, r->out->rank, r->cut);
    if (r->lanes == 1) { /* all of it */
        void *room = r->out->data;
        r->out->data = r->lane[0].block[PRODUCT].data;
        r->lane[0].block[PRODUCT].data = room;
        return;
    }
    for (int i = 0; i < r->lanes; i++)
        put_part(&r->lane[i].block[PRODUCT], dim, r->lane[i].from, r->out);
}

/* Each rank sends n-1 of the n chunks of the array V that the step counts. */
static void count(ring *r, double *waiting_s) {
    sm_collective op = r->job->step->op;
    double sent_bytes = *waiting_s = 0;
    for (int i = 0; i < r->lanes; i++) {
        sent_bytes += r->lane[i].way.sent_bytes;
        *waiting_s += r->lane[i].way.waiting_s;
    }
    r->group->traffic.calls[op] += 1;
    r->group->traffic.bytes[op] += sent_bytes / (r->n - 1) * r->n;
    r->group->traffic.seconds[op] += *waiting_s;
}

sm_status ring_run(const ring_job *job, sm_local_block *out, double *waiting_s, sm_error *err) {
    ring r = {.job = job, .out = out};
    bool gathers = job->step->array >= 0;
    r.group = sm_rank_mesh_over(job->m, job->step->axes, err);
    if (!r.group) return err ? err->status : SM_INTERNAL;
    r.n = r.group->size;
    r.rank = r.group->rank;
    assert(r.n > 1);
    r.cut = gathers ? job->step->from : job->step->to;
    const sm_local_block *cut = gathers ? &job->array[job->step->array] : out;
    const int8_t *label = gathers ? job->label[job->step->array] : job->out_label;
    r.chunk = cut->size[dimension_of(label, cut->rank, r.cut)];
    /* Chunks of an odd length go one way, and two ranks have one way only. */
    r.lanes = r.job->directions > 1 && r.n > 2 && r.chunk % 2 == 0 ? 2 : 1;
    for (int i = 0; i < r.lanes; i++) {
        r.lane[i].length = r.chunk / (size_t)r.lanes;
        r.lane[i].from = r.lane[i].length * (size_t)i;
        r.lane[i].direction = i == 0 ? 1 : -1;
        r.lane[i].way = ring_transfer_of(r.group, r.lane[i].direction, TAG + i);
    }
    sm_status status = SM_OK;
    for (int i = 0; !status && i < r.lanes; i++)
        status = gathers ? begin_gather(&r, &r.lane[i], err) : begin_reduce(&r, &r.lane[i], err);
    for (int stage = 0; !status && stage < r.n; stage++)
        status = gathers ? gather_stage(&r, stage, err) : reduce_stage(&r, stage, err);
    if (!status && !gathers) put_sums(&r);
    /* What is on its way uses buffers that are about to go. */
    for (int i = 0; i < r.lanes; i++) {
        lane *l = &r.lane[i];
        ring_close(&l->way, status != SM_OK);
        if (l->borrowed) l->block[PRODUCT].data = NULL;
        for (int b = 0; b < BLOCKS; b++) sm_local_block_free(&l->block[b]);
    }
    if (!status) count(&r, waiting_s);
    return status;
}
