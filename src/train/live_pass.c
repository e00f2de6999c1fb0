/* What lives while one microbatch passes one piece. */
#include <string.h>

#include "live.h"

double live_sum(const double *part) {
    return part[LIVE_GRADIENTS] + part[LIVE_ACTIVATIONS] + part[LIVE_BUFFERS];
}

void live_add(live_effect *e, live_part part, double bytes) {
    e->end[part] += bytes;
    if (live_sum(e->end) > live_sum(e->peak)) memcpy(e->peak, e->end, sizeof e->peak);
}

void live_then(live_effect *e, const live_effect *next) {
    double peak[LIVE_PARTS];
    for (int i = 0; i < LIVE_PARTS; i++) {
        peak[i] = e->end[i] + next->peak[i];
        e->end[i] += next->end[i];
    }
    if (live_sum(peak) > live_sum(e->peak)) memcpy(e->peak, peak, sizeof peak);
}

enum { MOST_SHARES = 8, ATTENTION_INPUTS = 3 };

typedef struct living {
    const sm_program *b;
    sm_mesh mesh;
    int tasks, room, forwards;
    sm_program_task *task;
    uint64_t again, kept;
    sm_last_use *last[SM_PASS_ORDERS];
    int entries[SM_PASS_ORDERS], weights[SM_PASS_ORDERS];
    /* one microbatch: bytes of what is there, 0 of what is not */
    double value[SM_MAX_TENSORS], arrived[SM_MAX_TENSORS], home[SM_MAX_TENSORS];
    double share[SM_MAX_TENSORS][MOST_SHARES], of_weight, attention[ATTENTION_INPUTS];
    double log_sums; /* of ring attention */
    bool backward, first;
    int moves, moves_room;
    struct live_move {
        sm_move what;
        bool borrowed;
        double bytes;
    } * move;
    live_effect effect;
} living;

/* ---- sizes ---- */

static double layout_bytes(const living *l, const sm_einsum *e, const sm_array *array,
                           const sm_layout *layout, double width) {
    double bytes = width;
    for (int d = 0; d < array->rank; d++) {
        bytes *= e->index[array->dim[d].index].size;
        for (int a = 0; a < l->mesh.axes; a++)
            if (layout->dim[a] == d) bytes /= l->mesh.axis[a].size;
    }
    return bytes;
}

static double width_of(const living *l, int tensor) {
    return l->b->tensor[tensor].bytes_per_element;
}

/* Elements before the dimensions that a step cuts or joins: where there is more than one, the boxes
 * of the chips do not lie in a row in memory and are packed. */
static bool in_a_row(const living *l, const sm_einsum *e, const sm_array *array,
                     const sm_layout *before, const sm_layout *after) {
    int changed = 0;
    for (int d = 0; d < array->rank; d++) {
        double size = e->index[array->dim[d].index].size, held[2] = {size, size};
        for (int a = 0; a < l->mesh.axes; a++) {
            if (before->dim[a] == d) held[0] /= l->mesh.axis[a].size;
            if (after->dim[a] == d) held[1] /= l->mesh.axis[a].size;
        }
        if (held[0] < held[1] || held[0] > held[1]) return !changed;
        if (held[0] > 1) changed = 1;
    }
    return true;
}

/* What a step needs beside the array before and after it. */
static double packing(const living *l, const sm_einsum *e, const sm_array *array,
                      const sm_step *step, const sm_layout *before, double width) {
    if (step->kind != SM_STEP_COLLECTIVE) return 0;
    double was = layout_bytes(l, e, array, before, width);
    double is = layout_bytes(l, e, array, &step->after, width);
    if (step->op == SM_ALL_TO_ALL) return 2 * was;
    if (step->op != SM_ALL_GATHER && step->op != SM_REDUCE_SCATTER) return 0;
    if (in_a_row(l, e, array, before, &step->after)) return 0;
    return was > is ? was : is;
}

static void add(living *l, live_part part, double bytes) { live_add(&l->effect, part, bytes); }

static void set(living *l, live_part part, double *what, double bytes) {
    add(l, part, bytes);
    add(l, part, -*what);
    *what = bytes;
}

static void drop(living *l, live_part part, double *what) {
    add(l, part, -*what);
    *what = 0;
}

/* A step that attention makes itself, as a ring. */
static bool in_ring(const living *l, const sm_program_task *t, int step) {
    return l->b->op[t->op].kind == SM_OP_ATTENTION && (t->ring >> step & 1);
}

/* Chips of the ring in which keys and values travel; 1: they do not. */
static double ring_size(const living *l, const sm_program_task *t) {
    for (int k = 0; k < t->lowering.steps; k++)
        if (in_ring(l, t, k)) return sm_mesh_size(&l->mesh, t->lowering.step[k].axes);
    return 1;
}

/* ---- operands ---- */

static struct live_move *find(living *l, const sm_move *like) {
    for (int i = 0; i < l->moves; i++)
        if (sm_move_same(l->b, &l->mesh, &l->move[i].what, like)) return &l->move[i];
    return NULL;
}

static int stays_after(const living *l, const sm_program_task *t, int operand) {
    bool weight = l->b->tensor[t->tensor[operand]].role == SM_ROLE_WEIGHT;
    bool once = weight || l->backward || !(l->again >> t->op & 1);
    return once ? sm_operand_stays(l->b, t, operand) : -1;
}

static void keep_arrived(living *l, struct live_move *m) {
    bool weight = l->b->tensor[m->what.tensor].role == SM_ROLE_WEIGHT;
    if (l->arrived[m->what.tensor] > 0) return;
    m->borrowed = true;
    l->arrived[m->what.tensor] = m->bytes;
    if (weight) return;
    l->effect.end[LIVE_BUFFERS] -= m->bytes;
    l->effect.end[LIVE_ACTIVATIONS] += m->bytes;
}

static void take_step(living *l, const sm_program_task *t, int operand, int k,
                      const sm_layout *before) {
    const sm_array *array = &t->einsum.in[operand];
    const sm_step *step = &t->lowering.step[k];
    sm_move like = sm_move_of(t, operand, k);
    double width = width_of(l, like.tensor);
    if (find(l, &like) || l->moves == l->moves_room) return;
    double room = packing(l, &t->einsum, array, step, before, width);
    struct live_move m = {.what = like,
                          .bytes = layout_bytes(l, &t->einsum, array, &step->after, width)};
    add(l, LIVE_BUFFERS, m.bytes + room);
    add(l, LIVE_BUFFERS, -room);
    l->move[l->moves++] = m;
}

static void fetch(living *l, const sm_program_task *t, int operand) {
    int tensor = t->tensor[operand], stays = stays_after(l, t, operand), resumes = -1;
    if (l->b->tensor[tensor].role == SM_ROLE_IDS || sm_operand_is_shape(l->b, t, operand)) return;
    sm_layout layout = sm_layout_of(&t->einsum.in[operand]);
    if (l->arrived[tensor] > 0) resumes = sm_operand_resumes(l->b, t, operand);
    if (resumes >= 0) layout = t->lowering.step[resumes].after;
    for (int k = resumes + 1; k < t->lowering.steps; k++) {
        const sm_step *step = &t->lowering.step[k];
        if (step->array != operand || step->kind == SM_STEP_EINSUM || in_ring(l, t, k)) continue;
        take_step(l, t, operand, k, &layout);
        layout = step->after;
        sm_move like = sm_move_of(t, operand, k);
        if (k == stays && find(l, &like)) keep_arrived(l, find(l, &like));
    }
}

/* ---- tasks ---- */

static sm_layout made_as(const sm_program_task *t) {
    for (int k = 0; k < t->lowering.steps; k++)
        if (t->lowering.step[k].kind == SM_STEP_EINSUM) return t->lowering.step[k].after;
    return sm_layout_of(&t->einsum.out);
}

/* The gradient of what travels in a ring arrives where that set out. */
static void set_home(const living *l, const sm_program_task *t, sm_layout *made) {
    for (int k = 0; k < t->lowering.steps; k++) {
        const sm_step *step = &t->lowering.step[k];
        if (!in_ring(l, t, k) || t->tensor[step->array] != t->result) continue;
        sm_layout stored = sm_layout_of(&t->einsum.in[step->array]);
        for (int a = 0; a < SM_AXIS_COUNT; a++) {
            if (!(step->axes >> a & 1)) continue;
            made->dim[a] = stored.dim[a];
            made->place[a] = stored.place[a];
        }
    }
}

static bool partial(const sm_layout *layout, sm_axes axes) {
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if ((axes >> a & 1) && layout->dim[a] == SM_UNREDUCED) return true;
    return false;
}

/* Steps of one array in place: the array before lives until the one after is there. */
static void move(living *l, const sm_program_task *t, int array, sm_layout *layout, double *bytes) {
    const sm_array *of = array < 0 ? &t->einsum.out : &t->einsum.in[array];
    double width = width_of(l, t->result);
    for (int k = 0; k < t->lowering.steps; k++) {
        const sm_step *step = &t->lowering.step[k];
        if (step->array != array || step->kind == SM_STEP_EINSUM) continue;
        bool made = t->kind == SM_TASK_HOME && (t->ring >> k & 1) && !partial(layout, step->axes);
        if (made) continue;
        double room = packing(l, &t->einsum, of, step, layout, width);
        add(l, LIVE_BUFFERS, room);
        set(l, LIVE_BUFFERS, bytes, layout_bytes(l, &t->einsum, of, &step->after, width));
        add(l, LIVE_BUFFERS, -room);
        *layout = step->after;
    }
}

/* How an operand of attention lies when it is at work. */
static sm_layout at_hand(const living *l, const sm_program_task *t, int operand) {
    sm_layout layout = sm_layout_of(&t->einsum.in[operand]);
    for (int k = 0; k < t->lowering.steps; k++)
        if (t->lowering.step[k].array == operand && !in_ring(l, t, k))
            layout = t->lowering.step[k].after;
    return layout;
}

static double input_bytes(const living *l, const sm_program_task *t, int operand) {
    sm_layout layout = at_hand(l, t, operand);
    return layout_bytes(l, &t->einsum, &t->einsum.in[operand], &layout,
                        width_of(l, t->tensor[operand]));
}

/* Of one dimension of an operand of attention, on a chip. */
static double local_size(const living *l, const sm_program_task *t, int operand, int dim) {
    sm_layout layout = at_hand(l, t, operand);
    double size = t->einsum.index[t->einsum.in[operand].dim[dim].index].size;
    for (int a = 0; a < l->mesh.axes; a++)
        if (layout.dim[a] == dim) size /= l->mesh.axis[a].size;
    return size;
}

enum { SINGLE_BYTES = 4, POSITIONS = 1, Q = 0, KEYS = 1, VALUES = 2 };

/* The probabilities of some queries of one head and, backward, their gradient. */
static double scores(const living *l, const sm_program_task *t) {
    double queries = local_size(l, t, Q, POSITIONS);
    if (queries > SM_QUERIES_AT_ONCE) queries = SM_QUERIES_AT_ONCE;
    return 2 * SINGLE_BYTES * queries * local_size(l, t, KEYS, POSITIONS);
}

/* One number for each query of each head. */
static double row_bytes(const living *l, const sm_program_task *t) {
    const sm_array *q = &t->einsum.in[Q];
    return input_bytes(l, t, Q) / t->einsum.index[q->dim[q->rank - 1].index].size;
}

/* Blocks of other chips: two of keys and of values, of their gradients three; and a number for each
 * query beside those that stay. */
static double ring_room(const living *l, const sm_program_task *t) {
    double n = ring_size(l, t), pair = input_bytes(l, t, KEYS) + input_bytes(l, t, VALUES);
    if (n <= 1) return 0;
    return pair * ((n > 2 ? 2 : 1) + (l->backward && t->kind != SM_TASK_FORWARD ? 3 : 0)) +
           row_bytes(l, t);
}

static double prepare(living *l, const sm_program_task *t, sm_layout *layout) {
    for (int i = 0; i < t->einsum.operands; i++) fetch(l, t, i);
    *layout = made_as(t);
    set_home(l, t, layout);
    double bytes = layout_bytes(l, &t->einsum, &t->einsum.out, layout, width_of(l, t->result));
    add(l, LIVE_BUFFERS, bytes);
    return bytes;
}

static void at_work(living *l, const sm_program_task *t) {
    if (l->b->op[t->op].kind != SM_OP_ATTENTION) return;
    if (t->kind == SM_TASK_FORWARD && ring_size(l, t) > 1)
        set(l, LIVE_ACTIVATIONS, &l->log_sums, row_bytes(l, t));
    double room = scores(l, t) + ring_room(l, t);
    add(l, LIVE_BUFFERS, room);
    add(l, LIVE_BUFFERS, -room);
    if (!l->backward && (l->again >> t->op & 1)) drop(l, LIVE_ACTIVATIONS, &l->log_sums);
}

static void forward(living *l, const sm_program_task *t) {
    sm_layout layout;
    double out = prepare(l, t, &layout);
    at_work(l, t);
    move(l, t, -1, &layout, &out);
    drop(l, LIVE_ACTIVATIONS, &l->value[t->result]);
    l->value[t->result] = out;
    l->effect.end[LIVE_BUFFERS] -= out;
    l->effect.end[LIVE_ACTIVATIONS] += out;
}

/* The first of the three gradients of attention makes the others too. */
static void attend(living *l, const sm_program_task *t, double *out) {
    if (t->result == l->b->op[t->op].in[0]) {
        for (int i = 0; i < ATTENTION_INPUTS; i++)
            set(l, LIVE_BUFFERS, &l->attention[i], input_bytes(l, t, i));
        at_work(l, t);
    }
    for (int i = 0; i < ATTENTION_INPUTS; i++) {
        if (t->result != l->b->op[t->op].in[i]) continue;
        add(l, LIVE_BUFFERS, -*out);
        *out = l->attention[i];
        l->attention[i] = 0;
    }
}

static void input_gradient(living *l, const sm_program_task *t) {
    sm_layout layout;
    double out = prepare(l, t, &layout), *share = &l->share[t->result][t->share];
    if (l->b->op[t->op].kind == SM_OP_ATTENTION) attend(l, t, &out);
    if (*share > 0) add(l, LIVE_BUFFERS, -out);
    else *share = out;
}

static void weight_gradient(living *l, const sm_program_task *t) {
    sm_layout layout;
    l->of_weight = prepare(l, t, &layout);
}

static void home_of_weight(living *l, const sm_program_task *t) {
    sm_layout layout = sm_layout_of(&t->einsum.in[0]);
    move(l, t, 0, &layout, &l->of_weight);
    move(l, t, -1, &layout, &l->of_weight);
    if (l->first) l->effect.end[LIVE_GRADIENTS] += l->of_weight;
    l->effect.end[LIVE_BUFFERS] -= l->of_weight;
    l->of_weight = 0;
}

static void home(living *l, const sm_program_task *t) {
    sm_layout layout = sm_layout_of(&t->einsum.in[0]);
    double *from = &l->share[t->result][t->share], *to = &l->home[t->result];
    move(l, t, 0, &layout, from);
    move(l, t, -1, &layout, from);
    if (*to > 0) add(l, LIVE_BUFFERS, -*from);
    else *to = *from;
    *from = 0;
}

static void join(living *l, const sm_program_task *t) {
    double *from = &l->share[t->result][t->share], *to = &l->share[t->result][t->into];
    if (*to > 0) add(l, LIVE_BUFFERS, -*from);
    else *to = *from;
    *from = 0;
}

static void run(living *l, const sm_program_task *t) {
    bool weight = l->b->tensor[t->result].role == SM_ROLE_WEIGHT;
    switch (t->kind) {
    case SM_TASK_FORWARD: forward(l, t); break;
    case SM_TASK_INPUT_GRADIENT: input_gradient(l, t); break;
    case SM_TASK_WEIGHT_GRADIENT: weight_gradient(l, t); break;
    case SM_TASK_JOIN: join(l, t); break;
    case SM_TASK_HOME: (weight ? home_of_weight : home)(l, t); break;
    }
}

/* ---- what nothing reads any more ---- */

static void release_moved(living *l, const sm_last_use *last) {
    for (int i = 0; i < SM_MAX_OPERANDS; i++)
        for (int k = 0; last->moved[i] >> k; k++) {
            if (!(last->moved[i] >> k & 1)) continue;
            sm_move like = sm_move_of(&l->task[last->task], i, k);
            struct live_move *m = find(l, &like);
            if (!m) continue;
            if (!m->borrowed) add(l, LIVE_BUFFERS, -m->bytes);
            *m = l->move[--l->moves];
        }
}

static void release(living *l, const sm_last_use *last) {
    uint64_t out = l->b->output >= 0 ? 1ull << l->b->output : 0;
    uint64_t stay = l->backward ? 0 : l->kept | out;
    release_moved(l, last);
    for (int i = 0; i < l->b->tensors; i++) {
        bool activation = l->b->tensor[i].role == SM_ROLE_ACTIVATION;
        if (last->values >> i & 1 & ~(stay >> i)) drop(l, LIVE_ACTIVATIONS, &l->value[i]);
        if (l->backward && activation && (last->values >> i & 1))
            drop(l, LIVE_ACTIVATIONS, &l->arrived[i]);
        if ((last->gradients >> i & 1) && i != l->b->input) drop(l, LIVE_BUFFERS, &l->home[i]);
    }
}

static void run_entries(living *l, sm_pass_order order, int from, int to) {
    for (int i = from; i < to; i++) {
        const sm_last_use *last = &l->last[order][i];
        run(l, &l->task[last->task]);
        release(l, last);
    }
}

/* ---- passes ---- */

static double stored_bytes(const living *l, int tensor) {
    const sm_tensor *t = &l->b->tensor[tensor];
    double bytes = t->elements * t->bytes_per_element, ways = 1;
    for (int d = 0; d < t->rank; d++)
        for (int a = 0; a < SM_AXIS_COUNT; a++)
            if (t->at[d] >> a & 1) ways *= l->mesh.axis[a].size;
    return bytes / ways;
}

static void end_moves(living *l) {
    for (int i = 0; i < l->moves; i++)
        if (!l->move[i].borrowed) add(l, LIVE_BUFFERS, -l->move[i].bytes);
    l->moves = 0;
}

static void relabel(living *l, live_part from, live_part to, double bytes) {
    l->effect.end[from] -= bytes;
    l->effect.end[to] += bytes;
}

static void pass_forward(living *l, live_piece *out) {
    l->effect = (live_effect){.end = {0}};
    l->backward = false;
    if (l->b->input >= 0) {
        l->value[l->b->input] = out->input;
        relabel(l, LIVE_BUFFERS, LIVE_ACTIVATIONS, out->input);
    }
    run_entries(l, SM_PASS_FORWARD, 0, l->forwards);
    end_moves(l);
    if (l->b->output >= 0) {
        relabel(l, LIVE_ACTIVATIONS, LIVE_BUFFERS, l->value[l->b->output]);
        l->value[l->b->output] = 0;
    }
    for (int i = 0; i < l->b->tensors; i++)
        if (!(l->kept >> i & 1)) drop(l, LIVE_ACTIVATIONS, &l->value[i]);
    out->forward = l->effect;
}

/* The gradient of the output is there, or, of the loss, is made. */
static void begin_backward(living *l, const live_piece *out, bool first) {
    int loss = l->b->op[l->b->ops - 1].out;
    l->effect = (live_effect){.end = {0}};
    l->backward = true;
    l->first = first;
    if (l->b->output >= 0) l->home[l->b->output] = out->output;
    else set(l, LIVE_BUFFERS, &l->home[loss], l->value[loss]);
}

/* The gradient of the input goes on as the stream. */
static void hand_on(living *l) {
    if (l->b->input >= 0) l->home[l->b->input] = 0;
}

static void end_backward(living *l) {
    end_moves(l);
    for (int i = 0; i < l->b->tensors; i++) {
        bool weight = l->b->tensor[i].role == SM_ROLE_WEIGHT;
        drop(l, LIVE_ACTIVATIONS, &l->value[i]);
        drop(l, weight ? LIVE_BUFFERS : LIVE_ACTIVATIONS, &l->arrived[i]);
        drop(l, LIVE_BUFFERS, &l->home[i]);
        for (int k = 0; k < MOST_SHARES; k++) drop(l, LIVE_BUFFERS, &l->share[i][k]);
    }
    for (int i = 0; i < ATTENTION_INPUTS; i++) drop(l, LIVE_BUFFERS, &l->attention[i]);
    drop(l, LIVE_ACTIVATIONS, &l->log_sums);
}

static void pass_backward(living *l, live_piece *out, bool first) {
    begin_backward(l, out, first);
    run_entries(l, SM_PASS_BACKWARD, 0, l->entries[SM_PASS_BACKWARD]);
    hand_on(l);
    end_backward(l);
    out->backward[first] = l->effect;
}

static void pass_split(living *l, live_piece *out, bool first) {
    begin_backward(l, out, first);
    run_entries(l, SM_PASS_SPLIT, 0, l->weights[SM_PASS_SPLIT]);
    hand_on(l);
    out->inputs = l->effect;
    l->effect = (live_effect){.end = {0}};
    run_entries(l, SM_PASS_SPLIT, l->weights[SM_PASS_SPLIT], l->entries[SM_PASS_SPLIT]);
    end_backward(l);
    out->weights[first] = l->effect;
}

/* ---- a piece ---- */

static sm_status keep_task(const sm_program_task *task, void *context, sm_error *err) {
    living *l = context;
    if (l->tasks == l->room) {
        int room = l->room ? 2 * l->room : 64;
        sm_program_task *more = sm_realloc(l->task, (size_t)room * sizeof *more);
        if (!more) return sm_fail_memory(err);
        l->task = more;
        l->room = room;
    }
    l->task[l->tasks++] = *task;
    if (task->kind == SM_TASK_FORWARD) l->forwards = l->tasks;
    return SM_OK;
}

static sm_status walk(living *l, const sm_degrees *d, sm_error *err) {
    double size[SM_DIM_COUNT];
    memcpy(size, l->b->size, sizeof size);
    size[SM_DIM_B] = d->sequences;
    size[SM_DIM_C] *= d->sequences;
    l->mesh = *sm_program_mesh();
    for (int a = 0; a < SM_AXIS_COUNT; a++) l->mesh.axis[a].size = (int)d->axis[a];
    return sm_program_walk(l->b, &l->mesh, size, keep_task, l, err);
}

static void keep(living *l, const sm_partition *part) {
    sm_kept kept[SM_MAX_TENSORS];
    uint64_t again;
    int n = sm_recompute_kept(part, l->again, &again, kept);
    for (int i = 0; i < n; i++) l->kept |= 1ull << kept[i].tensor;
    if (l->b->output < 0) l->kept |= 1ull << l->b->op[l->b->ops - 1].out;
    l->kept &= ~sm_program_arrives(l->b, l->task, l->tasks, l->again);
}

static sm_status find_last_uses(living *l, sm_error *err) {
    for (int o = 0; o < SM_PASS_ORDERS; o++) {
        l->last[o] = sm_calloc(2 * (size_t)l->tasks + 1, sizeof *l->last[o]);
        if (!l->last[o]) return sm_fail_memory(err);
        l->entries[o] = sm_program_last_uses(l->b, &l->mesh, l->task, l->tasks, l->again,
                                             (sm_pass_order)o, l->last[o], &l->weights[o]);
        if (l->entries[o] < 0) return sm_fail_memory(err);
    }
    for (int i = 0; i < l->tasks; i++) l->moves_room += l->task[i].lowering.steps;
    l->move = sm_calloc((size_t)l->moves_room + 1, sizeof *l->move);
    return l->move ? SM_OK : sm_fail_memory(err);
}

static void pass_all(living *l, const sm_degrees *d, live_piece *out) {
    double sequences = d->sequences;
    if (l->b->input >= 0) out->input = stored_bytes(l, l->b->input) * sequences;
    if (l->b->output >= 0) out->output = stored_bytes(l, l->b->output) * sequences;
    for (int first = 0; first < 2; first++) {
        pass_forward(l, out);
        pass_backward(l, out, first);
        pass_forward(l, out);
        pass_split(l, out, first);
    }
}

sm_status live_piece_of(const piece *what, int set_of_ops, const sm_degrees *d, live_piece *out,
                        sm_error *err) {
    *out = (live_piece){.input = 0};
    living *l = sm_calloc(1, sizeof *l);
    if (!l) return sm_fail_memory(err);
    l->b = &what->part.program;
    l->again = what->set[set_of_ops].again;
    sm_status status = walk(l, d, err);
    if (!status) {
        keep(l, &what->part);
        status = find_last_uses(l, err);
    }
    if (!status) pass_all(l, d, out);
    for (int o = 0; o < SM_PASS_ORDERS; o++) sm_free(l->last[o]);
    sm_free(l->move);
    sm_free(l->task);
    sm_free(l);
    return status;
}
