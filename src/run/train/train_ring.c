/* Ring attention: the chips of a sequence hold its keys and values in blocks, which pass from rank
 * to rank while attention works on the block at hand; no rank ever holds them all. Softmax is put
 * together block by block from a running maximum m and sum l (Milakov and Gimelshein, "Online
 * normalizer calculation for softmax", 2018; Liu, Zaharia and Abbeel, "Ring Attention with
 * Blockwise Transformers for Near-Infinite Context", 2023): m' = max(m, max s), l' = l e^(m-m') +
 * sum e^(s-m'), O' = O e^(m-m') + e^(s-m') V, out = O / l. m + log l of each query stays for the
 * backward pass, where the blocks pass once more and their gradients follow one rank behind: that
 * of a block begins at the next rank, gathers what each adds and ends at home. Of n blocks each
 * rank sends n-1, of the gradients too, as an all-gather and a reduce-scatter would. A block of
 * which no key may be seen is passed on all the same. */

#include "train_parts.h"
#include "einsum_parts.h"

enum { Q = ATTENTION_Q, KEYS = ATTENTION_KEYS, VALUES = ATTENTION_VALUES, OUT = ATTENTION_OUT };
enum { PAIR = 2, FIRST_TAG = 21 }; /* keys and values */

/* Keys or values: the block at hand goes on while the next arrives. They travel as they are stored,
 * and are worked on in single precision. */
typedef struct passing {
    ring_transfer way;
    const sm_local_block *at_hand; /* this rank's own, then in turn each room */
    sm_local_block room[2], wide;  /* wide: a copy, where they are stored otherwise */
} passing;

/* Their gradient on the way home. */
typedef struct returning {
    ring_transfer way;
    sm_local_block made, arriving, leaving;
} returning;

typedef struct ring {
    train_call *c;
    const sm_step *step; /* of the keys */
    sm_communicator *group;
    int n, rank;
    bool backward;
    attention_blocks at;
    passing x[PAIR];
    returning d[PAIR];
    float *row[2]; /* forward: m and l; backward: m + log l and out . d out */
} ring;

/* The step that the ring makes in place of a gather of the keys. */
static const sm_step *step_of(const train_call *c) {
    const sm_lowering *low = &c->task->lowering;
    int i = 0;
    while (i < low->steps && (!(c->task->ring >> i & 1u) || low->step[i].array != KEYS)) i++;
    assert(i < low->steps);
    return &low->step[i];
}

/* ---- transfers ---- */

static void poke(ring *r) {
    for (int i = 0; i < PAIR; i++) {
        ring_poke(&r->x[i].way);
        if (r->backward) ring_poke(&r->d[i].way);
    }
}

static sm_status start_passing(ring *r, int stage, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < PAIR; i++) {
        status = ring_start_receive(&r->x[i].way, &r->x[i].room[stage % 2], err);
        if (!status) status = ring_start_send(&r->x[i].way, r->x[i].at_hand, err);
    }
    return status;
}

static sm_status end_passing(ring *r, int stage, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < PAIR; i++) {
        status = ring_end_receive(&r->x[i].way, err);
        if (!status) status = ring_end_send(&r->x[i].way, err);
        r->x[i].at_hand = &r->x[i].room[stage % 2];
    }
    return status;
}

static void add(sm_local_block *to, const sm_local_block *from) {
    enum { SOME = 1024 };
    size_t count = sm_local_block_count(to);
    float some[SOME], *x = to->data;
    for (size_t i = 0; i < count; i += SOME) {
        size_t n = count - i < SOME ? count - i : SOME;
        sm_elements_read(from->element, from->data, i, n, some);
        sm_elements_add(x + i, some, n, SM_ELEMENT_F32);
    }
}

static sm_status start_returning(ring *r, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < PAIR; i++)
        status = ring_start_receive(&r->d[i].way, &r->d[i].arriving, err);
    return status;
}

static sm_status arrive_home(ring *r, sm_error *err) {
    sm_status status = start_returning(r, err);
    for (int i = 0; !status && i < PAIR; i++) {
        status = ring_end_receive(&r->d[i].way, err);
        if (!status) add(&r->c->out[KEYS + i], &r->d[i].arriving);
        if (!status) status = ring_end_send(&r->d[i].way, err);
    }
    return status;
}

/* ---- a block of keys at work ---- */

/* Keys and values at hand, and where their gradients go: those of this rank's own are at home. */
static void lay_out(ring *r, int stage) {
    const train_array *keys = &r->c->in[KEYS];
    const sm_rank_mesh *m = r->c->t->mesh;
    sm_axes all = (sm_axes)((1u << m->mesh.axes) - 1);
    int at[SM_MAX_AXES], member = (r->rank - stage + r->n) % r->n;
    member_of(m, r->step->axes, member, at);
    size_t first_key = keys->block->size[1] * sm_layout_part(&m->mesh, &keys->layout, 1, all, at);
    r->at.ahead = (long)r->c->in[Q].offset[1] - (long)first_key;
    for (int i = 0; i < PAIR; i++) {
        passing *x = &r->x[i];
        r->at.x[KEYS + i] = x->wide.data ? &x->wide : x->at_hand;
        if (x->wide.data)
            sm_elements_read(x->at_hand->element, x->at_hand->data, 0,
                             sm_local_block_count(&x->wide), x->wide.data);
        if (r->backward) r->at.d[KEYS + i] = stage ? &r->d[i].made : &r->c->out[KEYS + i];
    }
}

static void work(ring *r, void (*visit)(const attention_head *head, void *context)) {
    bool in_future =
        !r->at.mask.both && !r->at.mask.pictures && r->at.ahead + (long)r->at.x[Q]->size[1] <= 0;
    if (!in_future) attention_each_panel(&r->at, visit, r);
}

/* ---- forward ---- */

/* Before any key: m and l of a sink, or of nothing. */
static void start_rows(const attention_head *h, void *context) {
    const ring *r = context;
    const float *sink = h->x[ATTENTION_SINKS].first;
    for (size_t row = h->row; row < h->row + (size_t)h->queries; row++) {
        r->row[0][row] = sink ? *sink : -INFINITY;
        r->row[1][row] = sink != NULL;
    }
}

static void attend(const attention_head *h, void *context) {
    ring *r = context;
    poke(r);
    attention_join(h, r->row[0] + h->row, r->row[1] + h->row);
    poke(r);
}

/* out = O / l, and m becomes m + log l. */
static void finish(const attention_head *h, void *context) {
    const ring *r = context;
    const attention_rows *out = &h->x[OUT];
    for (int i = 0; i < h->queries; i++) {
        size_t row = h->row + (size_t)i;
        float sum = r->row[1][row], *o = out->first + (size_t)i * (size_t)out->apart;
        for (int j = 0; j < h->value_size; j++) o[j] /= sum;
        r->row[0][row] += logf(sum);
    }
}

static sm_status forward_stage(ring *r, int stage, sm_error *err) {
    bool last = stage == r->n - 1;
    sm_status status = SM_OK;
    if (!last) status = start_passing(r, stage, err);
    if (status) return status;
    lay_out(r, stage);
    work(r, attend);
    return last ? SM_OK : end_passing(r, stage, err);
}

/* ---- backward ---- */

static void dot_rows(const attention_head *h, void *context) {
    const ring *r = context;
    const attention_rows *out = &h->x[OUT], *d = &h->d[OUT];
    for (int i = 0; i < h->queries; i++) {
        const float *o = out->first + (size_t)i * (size_t)out->apart;
        const float *slope = d->first + (size_t)i * (size_t)d->apart;
        float dot = row_dot(o, slope, (size_t)h->value_size);
        r->row[1][h->row + (size_t)i] = dot;
        if (h->d[ATTENTION_SINKS].first)
            *h->d[ATTENTION_SINKS].first -=
                dot * expf(*h->x[ATTENTION_SINKS].first - r->row[0][h->row + (size_t)i]);
    }
}

static void attend_back(const attention_head *h, void *context) {
    ring *r = context;
    attention_scores(h);
    for (int i = 0; i < h->queries; i++)
        attention_exponentials(h, i, r->row[0][h->row + (size_t)i]);
    poke(r);
    attention_slopes(h, r->row[1] + h->row);
    poke(r);
}

static sm_status backward_stage(ring *r, int stage, sm_error *err) {
    bool last = stage == r->n - 1, joins = stage > 1;
    sm_status status = SM_OK;
    if (!last) status = start_passing(r, stage, err);
    if (!status && joins) status = start_returning(r, err);
    if (status) return status;
    for (int i = 0; stage && i < PAIR; i++) {
        sm_local_block *made = &r->d[i].made;
        memset(made->data, 0, sm_local_block_count(made) * sm_element_bytes(made->element));
    }
    lay_out(r, stage);
    work(r, attend_back);
    /* What this rank adds to the gradient of the block at hand joins what the ranks before it made.
     */
    for (int i = 0; stage && !status && i < PAIR; i++) {
        returning *d = &r->d[i];
        if (joins) status = ring_end_receive(&d->way, err);
        if (!status && joins) add(&d->made, &d->arriving);
        if (!status) status = ring_end_send(&d->way, err);
        sm_elements_write(d->leaving.element, d->leaving.data, 0, sm_local_block_count(&d->made),
                          d->made.data);
        if (!status) status = ring_start_send(&d->way, &d->leaving, err);
    }
    if (status) return status;
    return last ? arrive_home(r, err) : end_passing(r, stage, err);
}

/* ---- the ring ---- */

static sm_status room_like(const sm_local_block *b, sm_element element, sm_local_block *room,
                           double *bytes, sm_error *err) {
    *bytes += (double)sm_local_block_count(b) * (double)sm_element_bytes(element);
    return local_block_raw(element, b->rank, b->size, room, err);
}

/* Blocks of other ranks: two of keys and of values, and three of their gradients. */
static sm_status make_rooms(ring *r, sm_error *err) {
    double held = 0;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < PAIR; i++) {
        const sm_local_block *own = r->c->in[KEYS + i].block;
        returning *d = &r->d[i];
        for (int k = 0; !status && k < 2 && k < r->n - 1; k++)
            status = room_like(own, own->element, &r->x[i].room[k], &held, err);
        if (!status && own->element != SM_ELEMENT_F32)
            status = room_like(own, SM_ELEMENT_F32, &r->x[i].wide, &held, err);
        if (!status && r->backward) status = room_like(own, SM_ELEMENT_F32, &d->made, &held, err);
        if (!status && r->backward) status = room_like(own, own->element, &d->arriving, &held, err);
        if (!status && r->backward) status = room_like(own, own->element, &d->leaving, &held, err);
    }
    if (held > r->c->t->ring_bytes) r->c->t->ring_bytes = held;
    return status;
}

static sm_status make_rows(ring *r, sm_error *err) {
    size_t rows = attention_row_count(&r->at);
    sm_local_block *log_sums = &r->c->saved->log_sums;
    assert(log_sums->data && sm_local_block_count(log_sums) == rows);
    r->row[0] = log_sums->data;
    r->row[1] = memory_new((rows + 1) * sizeof *r->row[1]);
    r->at.room = memory_new(attention_room_count(&r->at) * sizeof *r->at.room + 1);
    return r->row[1] && r->at.room ? SM_OK : sm_fail_memory(err);
}

static sm_status begin(ring *r, sm_error *err) {
    r->group = sm_rank_mesh_over(r->c->t->mesh, r->step->axes, err);
    if (!r->group) return err && err->status ? err->status : SM_INTERNAL;
    r->n = r->group->size;
    r->rank = r->group->rank;
    assert(r->n > 1 && r->rank >= 0 && r->rank < r->n);
    for (int i = 0; i < PAIR; i++) {
        r->x[i].at_hand = r->c->in[KEYS + i].block;
        r->x[i].way = ring_transfer_of(r->group, -1, FIRST_TAG + i);
        r->d[i].way = ring_transfer_of(r->group, -1, FIRST_TAG + PAIR + i);
    }
    sm_status status = make_rooms(r, err);
    return status ? status : make_rows(r, err);
}

/* Each rank sent n-1 of the n blocks of the array that the step counts. */
static void count(ring *r, const ring_transfer *way, int which, bool gradient) {
    sm_collective op = gradient ? SM_REDUCE_SCATTER : SM_ALL_GATHER;
    double bytes = way->sent_bytes / (r->n - 1) * r->n;
    sm_traffic *traffic = &r->group->traffic;
    traffic->calls[op] += 1;
    traffic->bytes[op] += bytes;
    traffic->seconds[op] += way->waiting_s;
    train_kernel_moved(r->c->t, r->c->op->in[KEYS + which], gradient, op, bytes, way->waiting_s);
}

static sm_status run(ring *r, sm_error *err) {
    sm_status status = begin(r, err);
    if (!status) attention_each_head(&r->at, r->backward ? dot_rows : start_rows, r);
    for (int stage = 0; !status && stage < r->n; stage++)
        status = r->backward ? backward_stage(r, stage, err) : forward_stage(r, stage, err);
    if (!status && !r->backward) attention_each_head(&r->at, finish, r);
    for (int i = 0; i < PAIR; i++) { /* what is under way uses blocks that are about to go */
        ring_close(&r->x[i].way, status != SM_OK);
        ring_close(&r->d[i].way, status != SM_OK);
        for (int k = 0; k < 2; k++) sm_local_block_free(&r->x[i].room[k]);
        sm_local_block_free(&r->x[i].wide);
        sm_local_block_free(&r->d[i].made);
        sm_local_block_free(&r->d[i].arriving);
        sm_local_block_free(&r->d[i].leaving);
    }
    memory_free(r->row[1]);
    memory_free(r->at.room);
    for (int i = 0; !status && i < PAIR; i++) {
        count(r, &r->x[i].way, i, false);
        if (r->backward) count(r, &r->d[i].way, i, true);
    }
    return status;
}

sm_status train_ring_forward(train_call *c, sm_error *err) {
    ring r = {.c = c, .step = step_of(c), .at = attention_blocks_of(c)};
    r.at.x[OUT] = c->out;
    return run(&r, err);
}

sm_status train_ring_backward(train_call *c, sm_error *err) {
    const sm_local_block *made = &c->saved->value[c->op->out];
    ring r = {.c = c, .step = step_of(c), .backward = true, .at = attention_blocks_of(c)};
    sm_local_block wide;
    for (int i = 0; i < c->op->inputs; i++) /* those of the blocks, stage by stage */
        r.at.d[attention_array_of(r.at.program, c->op, i)] = &c->out[i];
    r.at.d[OUT] = c->in[c->op->inputs].block;
    assert(made->data && sm_local_block_count(made) == sm_local_block_count(r.at.d[OUT]));
    r.at.x[OUT] = made;
    if (made->element == SM_ELEMENT_F32) return run(&r, err);
    sm_status status = local_block_raw(SM_ELEMENT_F32, made->rank, made->size, &wide, err);
    if (status) return status;
    sm_elements_read(made->element, made->data, 0, sm_local_block_count(made), wide.data);
    r.at.x[OUT] = &wide;
    status = run(&r, err);
    sm_local_block_free(&wide);
    return status;
}

double sm_trainer_ring_bytes(const sm_trainer *t) { return t->ring_bytes; }
