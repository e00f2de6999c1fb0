/* run collective: one collective on real ranks: what each rank then holds, bytes counted and
 * predicted, time measured and predicted; one size or a range of them. */
#include "execution.h"
#include <assert.h>

typedef struct exchange_job {
    const sm_mesh *mesh;
    const sm_einsum *einsum; /* the array is in[0] */
    sm_array after; /* as it is afterwards, of a reduce on the first member; a permute and a
                       broadcast do not look at it */
    sm_step step;
    sm_element element;
    int warmups, repeats;
    /* answers, written by rank 0 */
    double max_error, bytes, seconds; /* bytes counted; median of the slowest rank's time */
} exchange_job;

/* One collective on each rank, timed and held against what must come out. Arrays hold
 * whole numbers, so that sums are exact in every type. */

typedef struct worker {
    exchange_job *job;
    sm_rank_mesh *m;
    sm_communicator *group;
    sm_local_block block;
} worker;

static sm_status fill(const worker *w, const sm_rank_mesh *m, const sm_array *array,
                      sm_local_block *out, sm_error *err) {
    return sm_local_block_of(m, w->job->einsum, array, w->job->element,
                             &(sm_filling){element_whole_number, NULL}, out, err);
}

/* ---- what ranks begin with ---- */

/* The n members hold 1 - (0 + 1 + ... + n-1), 1, 2, ... n-1 times the array: once, together. */
static sm_status fill_partial_sums(worker *w, sm_error *err) {
    sm_array whole = w->job->einsum->in[0];
    int n = w->group->size, rank = w->group->rank, by = rank ? rank : 1 - n * (n - 1) / 2;
    sm_local_block *b = &w->block;
    whole.unreduced = 0;
    sm_status status = fill(w, w->m, &whole, b, err);
    size_t count = status ? 0 : sm_local_block_count(b);
    for (size_t i = 0; i < count; i++) switch (b->element) {
        case SM_ELEMENT_F32: ((float *)b->data)[i] *= (float)by; break;
        case SM_ELEMENT_F64: ((double *)b->data)[i] *= by; break;
        case SM_ELEMENT_S32: ((int32_t *)b->data)[i] *= by; break;
        default: ((int64_t *)b->data)[i] *= by; break;
        }
    return status;
}

/* ---- the collective ---- */

/* A permute sends each block to the next rank, a broadcast that of the first to all; of a reduce
 * the first has the sum, the others what they had. */
static sm_status run_once(worker *w, sm_local_block *out, sm_error *err) {
    const sm_local_block *b = &w->block;
    sm_layout before = sm_layout_of(&w->job->einsum->in[0]);
    sm_collective op = w->job->step.op;
    int n = w->group->size, rank = w->group->rank;
    size_t bytes = sm_local_block_count(b) * sm_element_bytes(b->element);
    if (op != SM_PERMUTE && op != SM_BROADCAST && op != SM_REDUCE)
        return sm_local_block_step(w->m, &w->job->step, &before, b, out, err);
    sm_status status = sm_local_block_new(b->element, b->rank, b->size, out, err);
    if (status) return status;
    if (op == SM_PERMUTE)
        return sm_run_permute(w->group, b->data, (rank + 1) % n, out->data, (rank + n - 1) % n,
                              bytes, err);
    memcpy(out->data, b->data, bytes);
    if (op == SM_REDUCE)
        return sm_run_collective(
            w->group,
            &(sm_run_call){SM_REDUCE, b->data, out->data, sm_local_block_count(b), b->element, 0},
            err);
    return sm_run_broadcast(w->group, out->data, bytes, 0, err);
}

/* ---- what must come out ---- */

/* What the member of the group began with; the last axis of the collective varies fastest. */
static sm_status block_of(const worker *w, int member, sm_local_block *wanted, sm_error *err) {
    sm_rank_mesh there = *w->m;
    for (int a = there.mesh.axes - 1; a >= 0; a--) {
        if (!(w->job->step.axes >> a & 1u)) continue;
        there.at[a] = member % there.mesh.axis[a].size;
        member /= there.mesh.axis[a].size;
    }
    return fill(w, &there, &w->job->einsum->in[0], wanted, err);
}

static sm_status compare(const worker *w, const sm_local_block *got, double *error, sm_error *err) {
    sm_local_block wanted = {.rank = 0};
    int n = w->group->size, before = (w->group->rank + n - 1) % n;
    sm_collective op = w->job->step.op;
    if (op == SM_REDUCE && w->group->rank > 0) {
        *error = element_difference(&w->block, got);
        return SM_OK;
    }
    sm_status status = op == SM_PERMUTE     ? block_of(w, before, &wanted, err)
                       : op == SM_BROADCAST ? block_of(w, 0, &wanted, err)
                                            : fill(w, w->m, &w->job->after, &wanted, err);
    if (!status) *error = element_difference(&wanted, got);
    sm_local_block_free(&wanted);
    return status;
}

/* ---- often ---- */

static sm_status run_often(worker *w, double *times, double *error, double *bytes, sm_error *err) {
    sm_communicator *world = w->m->world;
    double *counted = &w->group->traffic.bytes[w->job->step.op];
    sm_status status = SM_OK;
    for (int i = -w->job->warmups; !status && i < w->job->repeats; i++) {
        sm_local_block out = {.rank = 0};
        double before = *counted;
        status = sm_run_barrier(world, err);
        double begun_s = sm_clock_s();
        if (!status) status = run_once(w, &out, err);
        double seconds = sm_clock_s() - begun_s;
        if (!status) status = sm_run_largest(world, &seconds, 1, err);
        *bytes = *counted - before;
        if (i >= 0) times[i] = seconds;
        if (!status && i == w->job->repeats - 1) status = compare(w, &out, error, err);
        sm_local_block_free(&out);
    }
    return status;
}

static sm_status exchange_body(sm_communicator *world, void *context, sm_error *err) {
    exchange_job *job = context;
    worker w = {.job = job};
    bool reduces = sm_collective_reduces(job->step.op);
    double error = 0.0, bytes = 0.0, *times = sm_calloc((size_t)job->repeats, sizeof *times);
    sm_status status = times ? sm_rank_mesh_new(world, job->mesh, &w.m, err) : sm_fail_memory(err);
    if (!status) w.group = sm_rank_mesh_over(w.m, job->step.axes, err);
    if (!status && !w.group) status = err ? err->status : SM_INTERNAL;
    assert(status || w.group);
    if (!status)
        status = reduces ? fill_partial_sums(&w, err)
                         : fill(&w, w.m, &job->einsum->in[0], &w.block, err);
    if (!status) status = run_often(&w, times, &error, &bytes, err);
    double number[3] = {error, bytes, -bytes}; /* of a rank that counted other bytes, its number */
    if (!status) status = sm_run_largest(world, number, 3, err);
    if (!status && world->rank == 0) {
        job->max_error = number[0];
        job->bytes = number[1] > job->step.bytes ? number[1] : -number[2];
        job->seconds = sm_spread_of(times, job->repeats).median;
    }
    sm_local_block_free(&w.block);
    sm_rank_mesh_free(w.m);
    sm_free(times);
    return status;
}

typedef struct values {
    timing_values timing;
    const char *over, *onto, *dims;
    element_word dtype;
} run_collective_values;

typedef struct question {
    sm_placed_mesh m;
    sm_collective op;
    sm_axes over;
    sm_group group;
    sm_curve curve;
    const sm_calibration *calibration;
    sm_collective_sizes s;
    sm_einsum holder; /* of the point at hand: the array is in[0] */
    sm_dtype dtype;
    sm_element element;
} question;

typedef struct point {
    exchange_job job;
    double predicted_s;
} point;

/* ---- reading ---- */

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const run_collective_values *given = call->values;
    *q = (question){.over = 0};
    sm_status status = cli_collective_read(call->positional[0], &q->op, err);
    if (!status)
        status = prediction_read(call, &given->timing.prediction, given->timing.mesh, &q->m,
                                 &q->calibration, err);
    if (status) return status;
    q->over = (sm_axes)((1u << q->m.mesh.axes) - 1);
    sm_source over = cli_text(call, &given->over);
    if (given->over) status = sm_over_parse(&q->m.mesh, &over, &q->over, err);
    sm_source array = sm_source_of("ARRAY", call->positional[1]);
    sm_source dims = cli_text(call, &given->dims);
    if (!status)
        status = sm_collective_sizes_read(&array, &dims, &q->m.mesh, call->arena, &q->s, err);
    if (!status)
        status = element_type_read(call, &given->dtype, &q->s.holder, &q->dtype, &q->element, err);
    if (!status) status = timing_check(&given->timing, SM_TRUTH_COLLECTIVE, q->dtype, err);
    if (status) return status;
    q->group = sm_group_join(&q->m.placement, q->over);
    q->curve = sm_collective_curve(&q->m.system, q->op, &q->group, 1.0);
    if (given->timing.record && q->group.size != q->m.placement.used)
        return sm_fail(err, SM_USAGE, "--record keeps collectives over the whole mesh");
    return SM_OK;
}

/* ---- one size ---- */

/* An array of which the collective moves these bytes, or a few less: V as in sm_step. */
static sm_status array_of_bytes(const cli_call *call, question *q, double bytes, sm_error *err) {
    char axes[128];
    double n = q->group.size, count = fmax(floor(bytes / sm_dtype_bytes(q->dtype) / n) * n, n);
    const char *text;
    sm_axes_format(&q->m.mesh, q->over, axes, sizeof axes);
    if (strchr(axes, ',')) {
        const char *inner = sm_arena_printf(call->arena, "{%s}", axes);
        if (!inner) return sm_fail_memory(err);
        snprintf(axes, sizeof axes, "%s", inner);
    }
    switch (q->op) {
    case SM_ALL_GATHER: text = sm_arena_printf(call->arena, "[%.0f_%s]", count, axes); break;
    case SM_ALL_TO_ALL: text = sm_arena_printf(call->arena, "[P_%s,N]", axes); break;
    case SM_PERMUTE: text = sm_arena_printf(call->arena, "[%.0f_%s]", count * n, axes); break;
    default: text = sm_arena_printf(call->arena, "[%.0f]", count); break;
    }
    if (!text) return sm_fail_memory(err);
    sm_source source = sm_source_of("ARRAY", text);
    q->holder = (sm_einsum){.operands = 0};
    sm_status status = sm_array_parse(&source, &q->m.mesh, &q->holder, err);
    for (int i = 0; !status && q->op == SM_ALL_TO_ALL && i < q->holder.indices; i++)
        q->holder.index[i].size = i == 0 ? n : fmax(floor(count / n / n) * n, n);
    q->holder.in[0].dtype = q->dtype;
    return status;
}

/* ---- where the axes go ---- */

static bool is_over(const question *q, int axis) { return q->over >> axis & 1u; }

static sm_status fail_array(const question *q, sm_error *err, const char *sentence) {
    char over[128];
    sm_axes_format(&q->m.mesh, q->over, over, sizeof over);
    return sm_fail_at(err, &q->s.text, (sm_span){0, q->s.text.length}, "%s over %s %s",
                      sm_collective_name(q->op), over, sentence);
}

/* Take the axes off their dimensions; they must all be there, as the minor ones. */
static sm_status take_off(const question *q, sm_array *array, sm_error *err) {
    sm_axes found = 0;
    for (int d = 0; d < array->rank; d++) {
        sm_dim *dim = &array->dim[d];
        int kept = 0;
        while (kept < dim->n_axes && !is_over(q, dim->axis[kept])) kept++;
        for (int i = kept; i < dim->n_axes; i++) {
            if (!is_over(q, dim->axis[i]))
                return fail_array(q, err,
                                  "moves the last axes of a dimension, and another "
                                  "follows here");
            found = (sm_axes)(found | 1u << dim->axis[i]);
        }
        dim->n_axes = kept;
    }
    if (found != q->over) return fail_array(q, err, "needs an array sharded over all of them");
    return SM_OK;
}

/* The dimension that gains the axes is that of --onto, or the first that divides and did not lose
 * them. */
static sm_status put_on(const question *q, sm_array *array, const char *onto, sm_error *err) {
    bool known = !onto;
    int gains = -1;
    for (int d = 0; d < array->rank && gains < 0; d++) {
        const sm_dim *dim = &array->dim[d];
        bool named = onto && strcmp(q->holder.index[dim->index].name, onto) == 0;
        bool loses = dim->n_axes < q->holder.in[0].dim[d].n_axes;
        double size = sm_cut(q->holder.index[dim->index].size, sm_dim_ways(&q->m.mesh, dim, 0));
        known = known || named;
        if ((onto ? named : !loses) && !(fmod(size, q->group.size) > 0.0)) gains = d;
    }
    if (!known) {
        sm_source source = sm_source_of("--onto", onto);
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "the array has no index of this name");
    }
    if (gains < 0) return fail_array(q, err, "finds no dimension that divides by them");
    for (int a = 0; a < q->m.mesh.axes; a++)
        if (is_over(q, a)) array->dim[gains].axis[array->dim[gains].n_axes++] = (uint8_t)a;
    return SM_OK;
}

/* Before a reduction the array is a partial sum, whether it is written so or not. */
static sm_status make_partial(question *q, sm_error *err) {
    sm_array *array = &q->holder.in[0];
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            if (is_over(q, array->dim[d].axis[i]))
                return fail_array(q, err, "adds partial sums, and this array is sharded over them");
    array->unreduced = q->over;
    return SM_OK;
}

static sm_status after_of(question *q, const char *onto, sm_array *after, sm_error *err) {
    bool reduces = sm_collective_reduces(q->op);
    bool takes = q->op == SM_ALL_GATHER || q->op == SM_ALL_TO_ALL;
    bool puts = q->op == SM_REDUCE_SCATTER || q->op == SM_ALL_TO_ALL;
    if (onto && !puts) return sm_fail(err, SM_USAGE, "--onto is of reduce-scatter and all-to-all");
    sm_status status = reduces ? make_partial(q, err) : SM_OK;
    *after = q->holder.in[0];
    if (reduces) after->unreduced = 0;
    if (!status && takes) status = take_off(q, after, err);
    if (!status && puts) status = put_on(q, after, onto, err);
    return status;
}

/* ---- running ---- */

static sm_status run_point(const cli_call *call, question *q, int number, point *p, sm_error *err) {
    const run_collective_values *given = call->values;
    assert(number >= 0 && number < q->s.points);
    p->job = (exchange_job){.mesh = &q->m.mesh,
                            .einsum = &q->holder,
                            .element = q->element,
                            .warmups = (int)given->timing.warmups,
                            .repeats = (int)given->timing.repeats};
    sm_status status = sm_collective_sizes_at(&q->s, number, &q->m.mesh, err);
    q->holder = q->s.holder;
    if (!status && !q->s.has_array) status = array_of_bytes(call, q, q->s.bytes, err);
    if (!status) status = after_of(q, given->onto, &p->job.after, err);
    if (status) return status;
    p->job.step =
        (sm_step){.kind = SM_STEP_COLLECTIVE,
                  .op = q->op,
                  .axes = q->over,
                  .from = -1,
                  .to = -1,
                  .bytes = sm_collective_array_bytes(q->op, &q->holder, &q->m.mesh, &q->group),
                  .after = sm_layout_of(&p->job.after)};
    p->predicted_s =
        sm_curve_cost(&q->curve, &q->m.system, q->calibration, p->job.step.bytes).expected_s;
    return SM_OK;
}

/* All points on one start of the ranks. */
typedef struct all_points {
    question *q;
    sm_einsum *holder; /* of each point */
    point *point;
} all_points;

static sm_status run_all(sm_communicator *world, void *context, sm_error *err) {
    const all_points *all = context;
    sm_status status = SM_OK;
    for (int i = 0; !status && i < all->q->s.points; i++)
        status = exchange_body(world, &all->point[i].job, err);
    return status;
}

static sm_status prepare(const cli_call *call, all_points *all, sm_error *err) {
    size_t n = (size_t)all->q->s.points;
    all->point = sm_arena_array(call->arena, n, sizeof *all->point);
    all->holder = sm_arena_array(call->arena, n, sizeof *all->holder);
    if (!all->point || !all->holder) return sm_fail_memory(err);
    for (int i = 0; i < all->q->s.points; i++) {
        sm_status status = run_point(call, all->q, i, &all->point[i], err);
        if (status) return status;
        all->holder[i] = all->q->holder;
        all->point[i].job.einsum = &all->holder[i];
    }
    return SM_OK;
}

/* ---- the answer ---- */

/* A point as a row and as an object; true when result and bytes are as they should be. */
static bool show_point(sm_report *r, sm_table *table, sm_data *object, const point *p) {
    const exchange_job *job = &p->job;
    bool equal = job->max_error <= 0.0;
    double bytes = job->step.bytes, seconds = job->seconds;
    sm_put(r, object, "equal|max_error", equal, job->max_error);
    sm_data *step = sm_put_object(r, sm_put_array(r, object, "steps"), NULL);
    sm_put(r, step, "op|bytes_predicted|bytes_counted", sm_collective_name(job->step.op), bytes,
           job->bytes);
    prediction_put_times(r, step, p->predicted_s, seconds);
    prediction_put_times(r, object, p->predicted_s, seconds);
    sm_page_row(r, table, bytes, job->bytes, p->predicted_s, seconds,
                prediction_ratio(r, p->predicted_s, seconds), seconds > 0.0 ? bytes / seconds : NAN,
                equal ? "equal" : "DIFFERS");
    return equal && !(fabs(job->bytes - bytes) > 0.0);
}

static sm_status show(sm_report *r, const cli_call *call, const question *q, const point *points) {
    bool good = true;
    const char *over = sm_axes_words(r, &q->m.mesh, q->over), *op = sm_collective_name(q->op);
    sm_put(r, r->data, "command|op|over|members|backend|dtype", "run collective", op, over,
           q->group.size, ranks_backend(), sm_dtype_name(q->dtype));
    sm_placed_mesh_fields(r, &q->m);
    sm_report_heading(r, "%s of %s %s over %s on %d ranks (%s), predicted for %s", op,
                      sm_dtype_name(q->dtype), call->positional[1], over, q->m.placement.used,
                      ranks_backend(), q->m.system.text);
    sm_table *table = sm_page_table(
        r, NULL,
        ">{=}bytes predicted|>{=}counted|>{s}predicted|>{s}measured|>ratio|>{B/s}rate|<result");
    sm_data *all = q->s.points > 1 ? sm_put_array(r, r->data, "points") : NULL;
    for (int i = 0; i < q->s.points; i++) {
        sm_data *object = all ? sm_put_object(r, all, NULL) : r->data;
        good = show_point(r, table, object, &points[i]) && good;
    }
    if (q->s.points == 1)
        prediction_verdict(r, &q->m, points[0].predicted_s, points[0].job.seconds);
    return good ? SM_OK : SM_NEGATIVE;
}

/* --record: bytes as benchmarks count them, of an all-to-all those of one rank. */
static sm_status record(sm_report *r, const question *q, const char *path, const point *points,
                        sm_error *err) {
    static const char *const names[SM_COLLECTIVE_COUNT] = {
        [SM_ALL_GATHER] = "all_gather", [SM_REDUCE_SCATTER] = "reduce_scatter",
        [SM_ALL_REDUCE] = "all_reduce", [SM_ALL_TO_ALL] = "all_to_all",
        [SM_PERMUTE] = "send_recv",     [SM_BROADCAST] = "broadcast",
        [SM_REDUCE] = "reduce"};
    sm_truth_row *row = sm_arena_array(r->arena, (size_t)q->s.points, sizeof *row);
    if (!row) return sm_fail_memory(err);
    for (int i = 0; i < q->s.points; i++) {
        double bytes = points[i].job.step.bytes;
        row[i] = record_begin(SM_TRUTH_COLLECTIVE, q->m.system.chip.name, points[i].job.seconds);
        row[i].of.collective =
            (sm_collective_row){.op = names[q->op],
                                .ranks = q->group.size,
                                .nodes = 1,
                                .bytes = q->op == SM_ALL_TO_ALL ? bytes / q->group.size : bytes,
                                .busbw_GBps = NAN,
                                .in_network = SM_UNSTATED};
    }
    return record_rows(r, path, row, q->s.points, err);
}

static sm_status run_collective(const cli_call *call, sm_report *r, sm_error *err) {
    const run_collective_values *given = call->values;
    question q;
    all_points all = {.q = &q};
    sm_status status = read_question(call, &q, err);
    if (!status) status = prepare(call, &all, err);
    if (!status)
        status = ranks_run(call, &given->timing.ranks, q.m.placement.used, run_all, &all, err);
    if (status || !ranks_speak()) return status;
    sm_status shown = show(r, call, &q, all.point);
    if (given->timing.record) status = record(r, &q, given->timing.record, all.point, err);
    return status ? status : shown;
}

const cli_verb run_collective_verb = {
    .about = &verbs_run_collective,
    CLI_VALUES(TIMING_MESH_PLACE(timing), AT("over", over), AT("onto", onto), AT("dims", dims),
               AT("dtype", dtype), TIMING_PLACES(timing)),
    .run = run_collective,
};
