/* execution: the lowerings of an einsum on each rank, timed and held against the unsharded product.
 * The rounding of a sum of n terms grows as sqrt(n) u, with the unit roundoff u (Higham and Mary,
 * SIAM J. Sci. Comput. 41 (2019) A2815). */
#include "execution.h"

#include <assert.h>
#include <float.h>

/* Seconds of the steps, and of all. */
enum { TOTAL = SM_MAX_STEPS, TIMES = SM_MAX_STEPS + 1 };

/* One rank at work. */
typedef struct worker {
    const execution_job *job;
    sm_communicator *world;
    sm_rank_mesh *m;
    sm_local_block in[SM_MAX_OPERANDS];
    double *times; /* repeats x TIMES */
} worker;

static sm_filling filling_of(int operand, sm_element element) {
    return (sm_filling){element_is_whole(element) ? element_whole_number : element_fraction,
                        (void *)(uintptr_t)operand};
}

/* ---- the product of the whole arrays, where this rank holds the output ---- */

/* The label of an index that repeats another is that one's: the local einsum then reads the
 * diagonal. */
static void labels_of(const sm_einsum *e, const sm_array *array, int8_t *label) {
    for (int d = 0; d < array->rank; d++) {
        int index = array->dim[d].index, first = sm_index_repeats(e, index);
        label[d] = (int8_t)(first >= 0 ? first : index);
    }
}

/* An operand by the indices that it reads: A[I,I] by I alone. */
typedef struct operand_read {
    const worker *w;
    int operand, rank;
    int along[SM_MAX_RANK]; /* of each dimension, that of the elements read */
    sm_filling fill;
} operand_read;

static double filled_at(const size_t *position, int rank, void *context) {
    const operand_read *read = context;
    size_t whole[SM_MAX_RANK];
    for (int d = 0; d < read->rank; d++) whole[d] = position[read->along[d]];
    return read->fill.fill(whole, read->rank == 0 ? rank : read->rank, read->fill.context);
}

/* The part of an operand that makes the output's part: sharded as the output is, and whole along
 * what is contracted. */
static sm_status fill_part(const worker *w, int operand, const sm_array *out, sm_element element,
                           int8_t *label, sm_local_block *in, sm_error *err) {
    const sm_einsum *e = w->job->einsum;
    const sm_array *whole = &e->in[operand];
    int8_t all[SM_MAX_RANK] = {0};
    operand_read read = {.rank = whole->rank, .fill = filling_of(operand, element)};
    sm_array part = {.dtype = whole->dtype};
    labels_of(e, whole, all);
    for (int d = 0; d < whole->rank; d++) {
        int k = 0;
        while (k < part.rank && part.dim[k].index != all[d]) k++;
        read.along[d] = k;
        if (k < part.rank) continue;
        part.dim[part.rank] = (sm_dim){.index = all[d]};
        for (int o = 0; o < out->rank; o++)
            if (out->dim[o].index == all[d]) part.dim[part.rank] = out->dim[o];
        label[part.rank++] = all[d];
    }
    return sm_local_block_of(w->m, e, &part, element, &(sm_filling){filled_at, &read}, in, err);
}

static sm_status whole_product(const worker *w, const sm_array *out, sm_element element,
                               sm_local_block *wanted, sm_error *err) {
    const sm_einsum *e = w->job->einsum;
    sm_local_block in[SM_MAX_OPERANDS] = {{.rank = 0}};
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, to[SM_MAX_RANK] = {0};
    size_t size[SM_MAX_RANK];
    for (int d = 0; d < out->rank; d++)
        size[d] = (size_t)sm_cut(e->index[out->dim[d].index].size,
                                 sm_dim_ways(&w->m->mesh, &out->dim[d], 0));
    labels_of(e, out, to);
    sm_status status = sm_local_block_new(element, out->rank, size, wanted, err);
    for (int i = 0; !status && i < e->operands; i++)
        status = fill_part(w, i, out, element, label[i], &in[i], err);
    if (!status)
        status =
            sm_local_einsum(e->operands, in, (const int8_t(*)[SM_MAX_RANK])label, to, wanted, err);
    for (int i = 0; i < e->operands; i++) sm_local_block_free(&in[i]);
    return status;
}

static sm_status compare(const worker *w, const sm_array *out, sm_local_block *got, double *error,
                         sm_error *err) {
    sm_local_block wanted = {.rank = 0};
    sm_element exact = element_is_whole(got->element) ? got->element : SM_ELEMENT_F64;
    sm_status status = SM_OK;
    if (out->unreduced) { /* partial sums that were asked for are added before they are compared */
        sm_communicator *group = sm_rank_mesh_over(w->m, out->unreduced, err);
        if (!group) return SM_INTERNAL;
        status = sm_run_all_reduce(group, got->data, sm_local_block_count(got), got->element, err);
    }
    if (!status) status = whole_product(w, out, exact, &wanted, err);
    if (!status) *error = element_difference(&wanted, got);
    sm_local_block_free(&wanted);
    return status;
}

/* Of each sum. */
static double terms_of(const sm_einsum *e) {
    double n = 1.0;
    for (int i = 0; i < e->indices; i++) {
        bool kept = false;
        for (int d = 0; d < e->out.rank; d++) kept = kept || e->out.dim[d].index == i;
        if (!kept && sm_index_repeats(e, i) < 0) n *= e->index[i].size;
    }
    return n;
}

static double roundoff_of(sm_element element) {
    return element == SM_ELEMENT_F32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}

double execution_error_bound(const sm_einsum *einsum, sm_element element) {
    if (element_is_whole(element)) return 0.0;
    double n = terms_of(einsum), u = roundoff_of(element);
    /* the exact product in doubles, and its comparison, round too */
    return 8.0 * sqrt(n) * (u + DBL_EPSILON) * n / 4.0 + u;
}

/* ---- one alternative ---- */

/* Warm up, repeat, and leave the median times in seconds[TIMES]; the last result is kept. */
static sm_status run_often(worker *w, const sm_alternative *a, int overlapped, double *seconds,
                           sm_run_result *last, sm_error *err) {
    sm_status status = SM_OK;
    assert(w->job->repeats >= 1);
    last->out.data = NULL;
    for (int i = -w->job->warmups; !status && i < w->job->repeats; i++) {
        sm_local_block_free(&last->out);
        status = sm_run_barrier(w->world, err);
        if (!status)
            status =
                sm_run_lowering(w->m, w->job->einsum, &a->lowering,
                                &(sm_run_way){overlapped, w->job->directions}, w->in, last, err);
        if (status || i < 0) continue;
        double *times = w->times + i * TIMES;
        for (int s = 0; s < SM_MAX_STEPS; s++) times[s] = last->step[s].seconds;
        times[TOTAL] = last->seconds;
        status = sm_run_largest(w->world, times, TIMES, err);
    }
    double *column =
        w->times + w->job->repeats * TIMES; /* the row after the last has room for it */
    for (int t = 0; !status && t < TIMES; t++) {
        for (int i = 0; i < w->job->repeats; i++) column[i] = w->times[i * TIMES + t];
        seconds[t] = sm_spread_of(column, w->job->repeats).median;
    }
    return status;
}

/* Times and bytes of an alternative; its result is the caller's. */
static sm_status measure(worker *w, const sm_alternative *a, execution *x, sm_local_block *out,
                         sm_error *err) {
    sm_run_result last = {.seconds = 0.0};
    double seconds[TIMES], apart[TIMES] = {0.0};
    *x = (execution){.max_error = 0.0};
    sm_status status = run_often(w, a, a->cost.overlapped, seconds, &last, err);
    for (int s = 0; s < SM_MAX_STEPS; s++) x->bytes[s] = last.step[s].bytes_counted;
    *out = last.out;
    /* What was counted: on every rank the prediction, or else what a rank counted that differs. */
    if (!status) {
        double beyond[2 * SM_MAX_STEPS] = {0.0}; /* above the prediction, below it */
        for (int s = 0; s < a->lowering.steps; s++) {
            double off = x->bytes[s] - a->lowering.step[s].bytes;
            beyond[s] = fmax(off, 0.0);
            beyond[SM_MAX_STEPS + s] = fmax(-off, 0.0);
        }
        status = sm_run_largest(w->world, beyond, 2 * SM_MAX_STEPS, err);
        for (int s = 0; s < a->lowering.steps; s++) {
            double above = beyond[s], below = beyond[SM_MAX_STEPS + s];
            x->bytes[s] = a->lowering.step[s].bytes + (above > 0.0 ? above : -below);
        }
    }
    if (!status && a->cost.overlapped >= 0) {
        status = run_often(w, a, -1, apart, &last, err);
        sm_local_block_free(&last.out);
    }
    memcpy(x->seconds, seconds, sizeof x->seconds);
    memcpy(x->apart_seconds, apart, sizeof x->apart_seconds);
    x->total_s = seconds[TOTAL];
    x->apart_total_s = apart[TOTAL];
    return status;
}

sm_status execution_body(sm_communicator *world, void *context, sm_error *err) {
    const execution_job *job = context;
    worker w = {.job = job, .world = world};
    execution x;
    w.times = sm_calloc((size_t)job->repeats * (TIMES + 1), sizeof *w.times);
    sm_status status =
        w.times ? sm_rank_mesh_new(world, job->mesh, &w.m, err) : sm_fail_memory(err);
    for (int i = 0; !status && i < job->einsum->operands; i++) {
        const sm_filling fill = filling_of(i, job->element);
        status = sm_local_block_of(w.m, job->einsum, &job->einsum->in[i], job->element, &fill,
                                   &w.in[i], err);
    }
    for (int i = 0; !status && i < job->n; i++) {
        const sm_alternative *a = job->alternative[i];
        sm_local_block out = {.rank = 0};
        double error = 0.0;
        status = measure(&w, a, &x, &out, err);
        if (!status) status = compare(&w, &a->lowering.out, &out, &error, err);
        sm_local_block_free(&out);
        if (!status) status = sm_run_largest(w.world, &error, 1, err);
        x.max_error = error;
        if (!status && world->rank == 0) job->result[i] = x;
    }
    for (int i = 0; i < job->einsum->operands; i++) sm_local_block_free(&w.in[i]);
    sm_rank_mesh_free(w.m);
    sm_free(w.times);
    return status;
}

/* ---- a chain: what one product makes the next one reads ---- */

/* The product of whole arrays, on every rank. */
static sm_status whole_step(const sm_chain_step *step, const sm_local_block *value,
                            sm_element element, sm_local_block *out, sm_error *err) {
    const sm_einsum *e = &step->einsum;
    sm_local_block in[SM_MAX_OPERANDS] = {{.rank = 0}};
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, to[SM_MAX_RANK] = {0};
    size_t size[SM_MAX_RANK] = {0};
    for (int o = 0; o < e->operands; o++) {
        in[o] = value[step->operand[o]];
        labels_of(e, &e->in[o], label[o]);
    }
    for (int d = 0; d < e->out.rank; d++) size[d] = (size_t)e->index[e->out.dim[d].index].size;
    labels_of(e, &e->out, to);
    sm_status status = sm_local_block_new(element, e->out.rank, size, out, err);
    if (status) return status;
    return sm_local_einsum(e->operands, in, (const int8_t(*)[SM_MAX_RANK])label, to, out, err);
}

static double looked_up(const size_t *position, int rank, void *context) {
    const sm_local_block *whole = context;
    size_t at = 0;
    for (int d = 0; d < rank; d++) at = at * whole->size[d] + position[d];
    return element_value(whole, at);
}

/* The inputs of a chain: this rank's part, or all of them. */
static sm_status fill_inputs(const worker *w, const execution_chain *c, bool whole,
                             sm_element element, sm_local_block *value, sm_error *err) {
    sm_status status = SM_OK;
    for (int a = 0; !status && a < c->chain->arrays; a++) {
        const sm_filling fill = filling_of(a, element);
        if (c->chain->array[a].line >= 0) continue;
        sm_array array = c->chain->array[a].array;
        for (int d = 0; whole && d < array.rank; d++) array.dim[d].n_axes = 0;
        status = sm_local_block_of(w->m, &c->chain->names, &array, element, &fill, &value[a], err);
    }
    return status;
}

enum { MOST_POINTS = 1 << 26 };

/* A product of many operands in one loop over all indices, where that is not too long, against what
 * pairs of whole arrays gave: the order is held to what was asked. */
static sm_status compare_at_once(const execution_chain *c, const sm_local_block *whole,
                                 double *error, sm_error *err) {
    const sm_chain_line *line = &c->chain->line[0];
    sm_local_block in[SM_MAX_OPERANDS] = {{.rank = 0}}, out = {.rank = 0};
    int8_t label[SM_MAX_OPERANDS][SM_MAX_RANK] = {{0}}, to[SM_MAX_RANK] = {0};
    double points = 1.0;
    for (int i = 0; i < c->chain->names.indices; i++) points *= c->chain->names.index[i].size;
    *error = 0.0;
    if (c->chain->lines > 1 || points > MOST_POINTS) return SM_OK;
    for (int o = 0; o < line->operands; o++) {
        in[o] = whole[line->operand[o]];
        labels_of(&c->chain->names, &c->chain->array[line->operand[o]].array, label[o]);
    }
    labels_of(&c->chain->names, &c->chain->array[line->result].array, to);
    const sm_local_block *pairs = &whole[line->result];
    sm_status status = sm_local_block_new(pairs->element, pairs->rank, pairs->size, &out, err);
    if (!status)
        status =
            sm_local_einsum(line->operands, in, (const int8_t(*)[SM_MAX_RANK])label, to, &out, err);
    if (!status) *error = element_difference(&out, pairs);
    sm_local_block_free(&out);
    return status;
}

/* Every product of whole arrays; what ranks hold of each result against its part. */
static sm_status compare_chain(worker *w, const execution_chain *c, const sm_local_block *got,
                               double *error, sm_error *err) {
    sm_element exact = element_is_whole(c->job.element) ? c->job.element : SM_ELEMENT_F64;
    sm_local_block *whole = sm_calloc((size_t)c->plan->values, sizeof *whole);
    sm_status status = whole ? fill_inputs(w, c, true, exact, whole, err) : sm_fail_memory(err);
    for (int i = 0; !status && i < c->plan->steps; i++) {
        const sm_chain_step *step = &c->plan->step[i];
        sm_local_block wanted = {.rank = 0};
        status = whole_step(step, whole, exact, &whole[step->result], err);
        if (!status)
            status =
                sm_local_block_of(w->m, &step->einsum, &step->einsum.out, exact,
                                  &(sm_filling){looked_up, &whole[step->result]}, &wanted, err);
        if (!status) error[i] = element_difference(&wanted, &got[step->result]);
        sm_local_block_free(&wanted);
    }
    double at_once = 0.0;
    if (!status) status = compare_at_once(c, whole, &at_once, err);
    if (!status) error[c->plan->steps - 1] = fmax(error[c->plan->steps - 1], at_once);
    for (int v = 0; whole && v < c->plan->values; v++) sm_local_block_free(&whole[v]);
    sm_free(whole);
    return status;
}

sm_status execution_chain_body(sm_communicator *world, void *context, sm_error *err) {
    execution_chain *c = context;
    execution_job job = c->job; /* each rank's own: its einsum changes */
    worker w = {.job = &job, .world = world};
    execution x;
    double *error = sm_calloc((size_t)c->plan->steps, sizeof *error);
    sm_local_block *value = sm_calloc((size_t)c->plan->values, sizeof *value);
    w.times = sm_calloc((size_t)job.repeats * (TIMES + 1), sizeof *w.times);
    sm_status status = w.times && value && error ? sm_rank_mesh_new(world, job.mesh, &w.m, err)
                                                 : sm_fail_memory(err);
    if (!status) status = fill_inputs(&w, c, false, job.element, value, err);
    for (int i = 0; !status && i < c->plan->steps; i++) {
        const sm_chain_step *step = &c->plan->step[i];
        job.einsum = &step->einsum;
        for (int o = 0; o < step->einsum.operands; o++) w.in[o] = value[step->operand[o]];
        status = measure(&w, &step->way, &x, &value[step->result], err);
        if (!status && world->rank == 0) c->job.result[i] = x;
    }
    if (!status) status = compare_chain(&w, c, value, error, err);
    if (!status) status = sm_run_largest(world, error, c->plan->steps, err);
    for (int i = 0; !status && world->rank == 0 && i < c->plan->steps; i++)
        c->job.result[i].max_error = error[i];
    for (int v = 0; value && v < c->plan->values; v++) sm_local_block_free(&value[v]);
    sm_rank_mesh_free(w.m);
    sm_free(value);
    sm_free(error);
    sm_free(w.times);
    return status;
}

/* Values up to m and errors up to e, of each operand: a sum of n products is up to n m m', and errs
 * by n (m e' + m' e) and its own rounding, as above. */
double execution_chain_bound(const sm_chain_plan *plan, sm_element element, double *bound,
                             double *most) {
    bool whole = element_is_whole(element);
    double largest = 0.0;
    for (int v = 0; v < plan->values; v++) {
        most[v] = whole ? 5.0 : 0.5;
        bound[v] = 0.0;
    }
    for (int i = 0; i < plan->steps; i++) {
        const sm_chain_step *step = &plan->step[i];
        double n = terms_of(&step->einsum), m = 1.0, e = 0.0;
        for (int o = 0; o < step->einsum.operands; o++) {
            int v = step->operand[o];
            e = e * (most[v] + bound[v]) + m * bound[v];
            m *= most[v];
        }
        double u = roundoff_of(element);
        most[step->result] = n * m;
        bound[step->result] =
            whole ? 0.0 : n * e + 8.0 * sqrt(n) * (u + DBL_EPSILON) * n * m + u * n * m;
        largest = fmax(largest, n * m);
    }
    return largest;
}

bool execution_bytes_agree(const sm_alternative *a, const execution *x) {
    for (int s = 0; s < a->lowering.steps; s++)
        if (a->lowering.step[s].kind == SM_STEP_COLLECTIVE &&
            fabs(x->bytes[s] - a->lowering.step[s].bytes) > 0.0)
            return false;
    return true;
}

void execution_row(sm_report *r, sm_table *table, const char *words, const sm_alternative *a,
                   const execution *x, int s) {
    bool moves = a->lowering.step[s].kind == SM_STEP_COLLECTIVE, inside = s == a->cost.overlapped;
    double predicted_s = a->cost.step[s].expected_s;
    sm_page_row(r, table, words, moves ? a->lowering.step[s].bytes : NAN, moves ? x->bytes[s] : NAN,
                predicted_s, x->seconds[s],
                inside ? "-" : prediction_ratio(r, predicted_s, x->seconds[s]),
                inside ? "measured: waiting" : "");
}
