/* Where the time of a step goes, op by op and collective by collective: seconds by a small key
 * while the step runs, folded over pieces when somebody asks. */

#include "train_parts.h"

/* ---- keys ----
 * piece, then an op (or a tensor and whether its gradient travels, and by which collective), then
 * the phase and whether the op runs again. */
enum {
    BITS_OF_INDEX = 8, /* ops and tensors of a program */
    INDEX = (1 << BITS_OF_INDEX) - 1,
    OUTSIDE = INDEX, /* of no op of a program */
    PIECE_SHIFT = 16
};
_Static_assert((int)SM_MAX_TENSORS < OUTSIDE && (int)SM_MAX_OPS < OUTSIDE,
               "indices fit their bits");

static uint32_t key_of(int piece, int index, sm_phase phase, bool again) {
    assert(piece >= 0 && piece < 1 << (31 - PIECE_SHIFT) && index >= 0 && index <= INDEX);
    return (uint32_t)piece << PIECE_SHIFT | (uint32_t)index << 3 | (uint32_t)phase << 1 |
           (uint32_t)again;
}

static uint32_t move_key(uint32_t key, sm_collective op, bool gradient) {
    return key | (uint32_t)op << (3 + BITS_OF_INDEX) | (uint32_t)gradient << (PIECE_SHIFT - 1);
}

static int piece_in(uint32_t key) { return (int)(key >> PIECE_SHIFT); }
static int index_in(uint32_t key) { return (int)(key >> 3 & INDEX); }

/* ---- counting ---- */

/* Layer follows layer, so that what comes next is mostly what came next the last time. */
static train_took *row_of(train_times *times, uint32_t key) {
    for (int i = 0; i < times->rows; i++) {
        int at = times->at + 1 + i;
        if (at >= times->rows) at -= times->rows;
        if (times->row[at].key != key) continue;
        times->at = at;
        return &times->row[at];
    }
    if (times->rows == TRAIN_ROWS) return NULL; /* the rest of the step stays unnamed */
    times->at = times->rows;
    times->row[times->rows] = (train_took){.key = key};
    return &times->row[times->rows++];
}

static void count(train_times *times, const train_took *more) {
    train_took *row = row_of(times, more->key);
    if (!row) return;
    row->seconds += more->seconds;
    row->around_s += more->around_s;
    row->bytes += more->bytes;
    row->calls += more->calls;
}

static sm_phase phase_of(const sm_trainer *t, const sm_program_task *task) {
    if (task->kind == SM_TASK_FORWARD) return SM_PHASE_FORWARD;
    bool weight = t->busy_list->program->tensor[task->result].role == SM_ROLE_WEIGHT;
    return task->kind == SM_TASK_WEIGHT_GRADIENT || weight ? SM_PHASE_BACKWARD_WEIGHT
                                                           : SM_PHASE_BACKWARD_INPUT;
}

static uint32_t key_at_hand(const sm_trainer *t, int index) {
    return key_of((int)(t->busy_list - t->list), index, phase_of(t, t->busy), t->busy_again);
}

void train_task_begins(sm_trainer *t, const sm_task_list *list, const sm_program_task *task,
                       bool again) {
    t->busy = task;
    t->busy_list = list;
    t->busy_again = again;
    t->inside_s = 0;
    t->busy_since_s = sm_clock_s();
}

void train_task_ends(sm_trainer *t) {
    assert(t->busy);
    double around_s = sm_clock_s() - t->busy_since_s - t->inside_s;
    count(&t->ops, &(train_took){.key = key_at_hand(t, t->busy->op), .around_s = around_s});
    t->time_s[SM_TRAIN_TIME_AROUND] += around_s;
    t->busy = NULL;
}

static void count_move(sm_trainer *t, uint32_t key, const train_traffic *before,
                       const train_traffic *now, sm_collective op, bool gradient) {
    train_took more = {.key = move_key(key, op, gradient),
                       .seconds = now->seconds[op] - before->seconds[op],
                       .bytes = now->bytes[op] - before->bytes[op],
                       .calls = now->calls[op] - before->calls[op]};
    t->inside_s += more.seconds;
    if (more.calls > 0) count(&t->moves, &more);
}

void train_kernel_moved(sm_trainer *t, int tensor, bool gradient, sm_collective op, double bytes,
                        double seconds) {
    t->inside_s += seconds;
    count(&t->moves, &(train_took){.key = move_key(key_at_hand(t, tensor), op, gradient),
                                   .seconds = seconds,
                                   .bytes = bytes,
                                   .calls = 1});
}

/* What a kernel exchanges itself is no work of its own. */
void train_kernel_took(sm_trainer *t, const sm_op *op, double begun_s, double inside_s) {
    bool vector = op->kind == SM_OP_VECTOR || op->kind == SM_OP_GATHER;
    double seconds = sm_clock_s() - begun_s - (t->inside_s - inside_s);
    t->inside_s += seconds;
    t->time_s[vector ? SM_TRAIN_TIME_VECTOR : SM_TRAIN_TIME_MATMUL] += seconds;
    count(&t->ops,
          &(train_took){.key = key_at_hand(t, t->busy->op), .seconds = seconds, .calls = 1});
}

sm_status train_move(void *context, const sm_move_call *m, sm_local_block *result, sm_error *err) {
    sm_trainer *t = context;
    const sm_step *step = m->step;
    const sm_communicator *over = NULL;
    if (t->busy && step->kind == SM_STEP_COLLECTIVE) {
        over = sm_rank_mesh_over(t->mesh, step->axes, err);
        if (!over) return err && err->status ? err->status : SM_INTERNAL;
    }
    train_traffic was = over ? over->traffic : (train_traffic){.calls = {0}};
    sm_status status = sm_local_block_step(t->mesh, step, m->before, m->block, result, err);
    if (over) count_move(t, key_at_hand(t, m->tensor), &was, &over->traffic, step->op, m->gradient);
    return status;
}

/* ---- what is of no op ---- */

void train_outside_took(sm_trainer *t, train_outside what, double seconds) {
    count(&t->ops, &(train_took){.key = key_of((int)what, OUTSIDE, SM_PHASE_FORWARD, false),
                                 .seconds = seconds,
                                 .calls = 1});
}

double train_step_end_took(sm_trainer *t, train_outside what, double begun_s,
                           const train_traffic *before) {
    train_traffic now;
    train_traffic_now(t, &now);
    t->inside_s = 0;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        count_move(t, key_of(0, OUTSIDE, SM_PHASE_BACKWARD_WEIGHT, false), before, &now,
                   (sm_collective)i, what == TRAIN_ROWS_OF_GRADIENTS);
    double own_s = sm_clock_s() - begun_s - t->inside_s;
    train_outside_took(t, what, own_s);
    return own_s;
}

/* ---- steps ---- */

void train_times_begin(sm_trainer *t) {
    for (int i = 0; i < t->ops.rows; i++) t->ops.row[i] = (train_took){.key = t->ops.row[i].key};
    for (int i = 0; i < t->moves.rows; i++)
        t->moves.row[i] = (train_took){.key = t->moves.row[i].key};
}

void train_times_end(sm_trainer *t) {
    for (int i = 0; i < t->ops.rows; i++) count(&t->all_ops, &t->ops.row[i]);
    for (int i = 0; i < t->moves.rows; i++) count(&t->all_moves, &t->moves.row[i]);
    t->times_of++;
}

int sm_trainer_forget_times(sm_trainer *t) {
    int steps = t->times_of;
    t->all_ops.rows = t->all_moves.rows = t->times_of = 0;
    return steps;
}

/* ---- answers ---- */

static const char *const outside_names[TRAIN_OUTSIDE_COUNT] = {"hand over", "gradients as rows",
                                                               "loss and norm", "optimizer"};

static sm_train_row row_at(const sm_trainer *t, bool moves, const train_took *x) {
    const sm_program *b = t->list[piece_in(x->key)].program;
    bool outside = index_in(x->key) == OUTSIDE;
    sm_train_row row = {.kind = moves ? (int)(x->key >> (3 + BITS_OF_INDEX) & 15) : SM_OP_VECTOR,
                        .phase = (sm_phase)(x->key >> 1 & 3),
                        .again = x->key & 1,
                        .gradient = moves && (x->key >> (PIECE_SHIFT - 1) & 1),
                        .step_end = moves && outside,
                        .seconds = x->seconds,
                        .around_s = x->around_s,
                        .bytes = x->bytes,
                        .calls = x->calls};
    const char *name = moves ? "weights" : outside_names[piece_in(x->key) % TRAIN_OUTSIDE_COUNT];
    if (!outside && moves) {
        name = b->tensor[index_in(x->key)].name;
        row.weight = b->tensor[index_in(x->key)].role == SM_ROLE_WEIGHT;
    } else if (!outside) {
        name = b->op[index_in(x->key)].name;
        row.kind = (int)b->op[index_in(x->key)].kind;
    }
    snprintf(row.name, sizeof row.name, "%s", name);
    return row;
}

static bool same_row(const sm_train_row *x, const sm_train_row *y) {
    return strcmp(x->name, y->name) == 0 && x->kind == y->kind && x->phase == y->phase &&
           x->again == y->again && x->gradient == y->gradient && x->step_end == y->step_end;
}

int sm_trainer_rows(const sm_trainer *t, bool moves, bool all, sm_train_row *row, int room) {
    const train_times *times = moves ? all ? &t->all_moves : &t->moves
                               : all ? &t->all_ops
                                     : &t->ops;
    int rows = 0;
    for (int i = 0; i < times->rows; i++) {
        const train_took *x = &times->row[i];
        if (!(x->calls > 0 || x->around_s > 0)) continue;
        sm_train_row one = row_at(t, moves, x);
        int at = 0;
        while (at < rows && !same_row(&row[at], &one)) at++;
        if (at == rows && rows < room) row[rows++] = one;
        else if (at < rows) {
            row[at].seconds += one.seconds;
            row[at].around_s += one.around_s;
            row[at].bytes += one.bytes;
            row[at].calls += one.calls;
        }
    }
    return rows;
}
