/* The times of every rank, gathered and laid beside the prediction. */
#include "run_train.h"

#include <assert.h>

/* ---- on each rank ---- */

void train_tally_add(train_tally *tally, const sm_train_result *r) {
    tally->steps++;
    tally->step_s += r->seconds;
    for (int i = 0; i < SM_TRAIN_TIME_COUNT; i++) tally->time_s[i] += r->time_s[i];
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++) tally->collective_s[i] += r->collective_s[i];
}

enum { OPS, MOVES, KINDS };
typedef struct rank_times {
    int stage, rows[KINDS];
    train_tally tally;
    sm_train_row row[KINDS][SM_MOST_TRAIN_ROWS];
} rank_times;

/* ---- rows ---- */

const char *train_way_name(train_way way) {
    static const char *const names[] = {"forward", "recomputed", "backward", "step end"};
    return names[way];
}

static train_way way_of(sm_phase phase, bool again, bool step_end) {
    if (step_end) return TRAIN_STEP_END;
    if (again) return TRAIN_AGAIN;
    return phase == SM_PHASE_FORWARD ? TRAIN_FORWARD : TRAIN_BACKWARD;
}

/* What has one name is of one kind; of an array there may be several collectives. */
static train_row *row_of(train_rows *x, const char *name, int kind, bool any, train_way way) {
    for (int i = 0; i < x->n; i++)
        if (strcmp(x->row[i].name, name) == 0 && x->row[i].way == way &&
            (any || x->row[i].kind == kind))
            return &x->row[i];
    if (x->n == TRAIN_MOST_ROWS) return NULL;
    train_row *row = &x->row[x->n++];
    *row = (train_row){.kind = kind, .way = way};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

/* ---- gathering ---- */

/* Of no op: parts of a step that have a place of their own. */
static bool add_outside(const char *name, double seconds, train_times *out) {
    bool gradients = strcmp(name, "gradients as rows") == 0;
    bool joining = strcmp(name, "loss and norm") == 0;
    if (gradients) out->gradients_s += seconds;
    if (joining) out->joining_s += seconds;
    return gradients || joining || strcmp(name, "hand over") == 0 || strcmp(name, "optimizer") == 0;
}

static void add_row(const sm_train_row *x, bool moves, double share, train_times *out) {
    if (!moves && add_outside(x->name, x->seconds * share, out)) return;
    train_way way = way_of(x->phase, x->again, x->step_end);
    train_row *row = row_of(moves ? &out->moves : &out->ops, x->weight ? "weights" : x->name,
                            x->kind, !moves, way);
    if (!row) return;
    row->measured_s += (x->seconds + x->around_s) * share;
    row->around_s += x->around_s * share;
    row->bytes += x->bytes * share;
    row->calls += x->calls * share;
}

/* share: 1 / (steps x ranks). */
static void add_rank(const rank_times *r, double share, train_times *out) {
    out->step_s += r->tally.step_s * share;
    for (int i = 0; i < SM_TRAIN_TIME_COUNT; i++) out->time_s[i] += r->tally.time_s[i] * share;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        out->collective_s[i] += r->tally.collective_s[i] * share;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < r->rows[k]; i++) add_row(&r->row[k][i], k == MOVES, share, out);
}

static double ops_s(const rank_times *r) {
    return r->tally.time_s[SM_TRAIN_TIME_MATMUL] + r->tally.time_s[SM_TRAIN_TIME_VECTOR] +
           r->tally.time_s[SM_TRAIN_TIME_AROUND];
}

static void note_longest(const rank_times *r, train_times *out) {
    for (int k = 0; k < out->ops.n; k++) {
        train_row *row = &out->ops.row[k];
        double seconds = 0;
        for (int i = 0; i < r->rows[OPS]; i++) {
            const sm_train_row *x = &r->row[OPS][i];
            if (strcmp(x->name, row->name) == 0 && way_of(x->phase, x->again, false) == row->way)
                seconds += (x->seconds + x->around_s) / r->tally.steps;
        }
        row->most_s = fmax(row->most_s, seconds);
    }
}

static void fold(const rank_times *all, int ranks, train_times *out) {
    double longest_s = 0;
    assert(ranks >= 1);
    for (int i = 0; i < ranks; i++) {
        out->ranks += all[i].stage == out->stage;
        if (all[i].stage >= out->stages) out->stages = all[i].stage + 1;
        if (ops_s(&all[i]) <= longest_s) continue;
        longest_s = ops_s(&all[i]);
        out->busiest = all[i].stage;
    }
    for (int i = 0; i < ranks; i++)
        if (all[i].stage == out->stage && all[i].tally.steps > 0)
            add_rank(&all[i], 1.0 / all[i].tally.steps / out->ranks, out);
    for (int i = 0; i < ranks; i++)
        if (all[i].stage == out->stage && all[i].tally.steps > 0) note_longest(&all[i], out);
    if (out->stages == 1) return;
    /* Where loss and norm are joined a stage that is done waits for the others: the last of the
     * bubble. */
    out->time_s[SM_TRAIN_TIME_PIPELINE] += out->joining_s;
    out->time_s[SM_TRAIN_TIME_REST] -= out->joining_s;
    out->joining_s = 0;
}

sm_status train_tally_gather(sm_communicator *world, sm_trainer *t, const train_tally *tally,
                             int stage, train_times *out, sm_error *err) {
    rank_times *mine = sm_calloc(1, sizeof *mine);
    rank_times *all = sm_calloc((size_t)world->size, sizeof *all);
    sm_status status = mine && all ? SM_OK : sm_fail_memory(err);
    if (!status) {
        mine->stage = sm_trainer_stage(t);
        mine->tally = *tally;
        for (int k = 0; k < KINDS; k++)
            mine->rows[k] = sm_trainer_rows(t, k == MOVES, true, mine->row[k], SM_MOST_TRAIN_ROWS);
    }
    if (!status) status = sm_run_all_gather(world, mine, sizeof *mine, all, err);
    if (!status && world->rank == 0) {
        out->stage = stage;
        fold(all, world->size, out);
    }
    sm_free(mine);
    sm_free(all);
    return status;
}

/* ---- memory ---- */

/* VmHWM of Linux: the most of this process that ever lay in memory at once. */
static double resident_bytes(void) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
    if (file) fclose(file);
    return kib * 1024;
}

sm_status train_memory_gather(sm_communicator *world, const sm_trainer *t, train_memory *out,
                              sm_error *err) {
    struct rank_memory {
        sm_train_memory memory;
        double process_bytes;
    } mine, *all = sm_calloc((size_t)world->size, sizeof *all);
    bool shared = strcmp(world->backend->name, "threads") == 0; /* one process, many ranks */
    if (!all) return sm_fail_memory(err);
    memset(&mine, 0, sizeof mine);
    sm_trainer_memory(t, &mine.memory);
    if (!shared) mine.process_bytes = resident_bytes();
    sm_status status = sm_run_all_gather(world, &mine, sizeof mine, all, err);
    for (int i = 0; !status && world->rank == 0 && i < world->size; i++) {
        out->process_bytes = fmax(out->process_bytes, all[i].process_bytes);
        if (i > 0 && all[i].memory.total <= out->most.total) continue;
        out->rank = i;
        out->most = all[i].memory;
    }
    sm_free(all);
    return status;
}

/* ---- predicting ---- */

/* Weights of one kind of layer are priced as one bucket; here they are one row each way. What
 * stages hand over is in the pipeline's time. */
static void predict_move(const sm_plan_collective *c, train_times *out) {
    bool weights =
        c->weight || strcmp(c->array, "weights") == 0 || strcmp(c->array, "experts") == 0;
    if (strcmp(c->axis, "pipeline") == 0) return;
    train_way way = strcmp(c->phase, "forward") == 0     ? TRAIN_FORWARD
                    : strcmp(c->phase, "recompute") == 0 ? TRAIN_AGAIN
                    : strncmp(c->phase, "step", 4) == 0  ? TRAIN_STEP_END
                                                         : TRAIN_BACKWARD;
    train_row *row = row_of(&out->moves, weights ? "weights" : c->array, (int)c->op, false, way);
    if (!row) return;
    row->predicted_s += c->time_s;
    row->exposed_s += c->exposed_s;
    row->predicted_calls += c->count;
}

void train_times_predict(const sm_plan_detail *detail, train_times *out) {
    for (int i = 0; i < detail->lines.ops; i++) {
        const sm_plan_op *o = &detail->lines.op[i];
        train_way way = way_of(o->phase, o->again, false);
        train_row *row = row_of(&out->ops, o->op, (int)o->kind, true, way);
        if (!row) continue;
        if (o->time_s > row->predicted_s / 2) row->bound = sm_plan_op_bound(o);
        row->predicted_s += o->time_s;
        row->predicted_calls += o->count;
        row->flops += o->flops;
        row->bytes += o->bytes;
    }
    for (int i = 0; i < detail->lines.collectives; i++)
        predict_move(&detail->lines.collective[i], out);
}

/* ---- gaps ---- */

SM_ORDER(by_difference, train_gap,
         SM_BY_KEY(fabs(y->measured_s - y->predicted_s), fabs(x->measured_s - x->predicted_s))
             SM_BY_TEXT(name))

/* what: "all-gather of weights"; way: "forward", NULL for none. */
static void add_gap(train_gap *gap, int *n, const char *what, const char *way, double predicted_s,
                    double measured_s) {
    if (!(predicted_s > 0 || measured_s > 0)) return;
    assert(*n < TRAIN_MOST_GAPS);
    train_gap *g = &gap[(*n)++];
    *g = (train_gap){.predicted_s = predicted_s, .measured_s = measured_s};
    snprintf(g->name, sizeof g->name, "%s%s%s", what, way ? ", " : "", way ? way : "");
}

int train_gaps(const train_times *x, const sm_price_of_plan *price, train_gap *gap) {
    const sm_breakdown *b = &price->breakdown;
    int n = 0;
    double named_s = 0, told_s = 0, shown_s = b->network_exposed;
    double rest_s = x->time_s[SM_TRAIN_TIME_REST] - x->gradients_s - x->joining_s;
    for (int i = 0; i < x->ops.n; i++) {
        const train_row *o = &x->ops.row[i];
        add_gap(gap, &n, o->name, train_way_name(o->way), o->predicted_s, o->measured_s);
    }
    for (int i = 0; i < x->moves.n; i++) {
        const train_row *m = &x->moves.row[i];
        char what[48];
        snprintf(what, sizeof what, "%s of %s", sm_collective_name((sm_collective)m->kind),
                 m->name);
        add_gap(gap, &n, what, train_way_name(m->way), m->exposed_s, m->measured_s);
        told_s += m->exposed_s;
        named_s += m->measured_s;
    }
    /* what the rows do not cover of the price's and the communicators' time */
    double more_s = shown_s - told_s, unnamed_s = x->time_s[SM_TRAIN_TIME_COLLECTIVE] - named_s;
    add_gap(gap, &n, "other collectives", NULL, fabs(more_s) > 1e-9 * shown_s ? more_s : 0,
            unnamed_s > 1e-9 * named_s ? unnamed_s : 0);
    add_gap(gap, &n, "pipeline", NULL, b->bubble, x->time_s[SM_TRAIN_TIME_PIPELINE]);
    add_gap(gap, &n, "optimizer", NULL, b->optimizer, x->time_s[SM_TRAIN_TIME_OPTIMIZER]);
    add_gap(gap, &n, "rows of gradients", NULL, 0, x->gradients_s);
    add_gap(gap, &n, "joining loss and norm", NULL, 0, x->joining_s);
    add_gap(gap, &n, "rest of the step", NULL, b->other, rest_s);
    qsort(gap, (size_t)n, sizeof *gap, by_difference);
    return n;
}
