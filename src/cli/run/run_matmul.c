/* run matmul: a sharded einsum on real ranks: equal to the unsharded product or not, bytes counted
 * and predicted, times measured and predicted; products of many operands and lines of products in
 * the order and the shardings that `matmul` finds. */
#include <assert.h>

#include "execution.h"

typedef struct values {
    timing_values timing;
    const char *dims;
    element_word dtype;
    int64_t alternative, directions;
    bool all;
} run_matmul_values;

typedef struct question {
    sm_placed_mesh m;
    sm_einsum einsum;
    sm_element element;
    sm_dtype dtype;
    const sm_calibration *calibration;
    sm_lowering_input input; /* points to the members above */
    int64_t first;           /* of the alternatives, from 0 */
    int n;                   /* alternatives that are run */
    double bound;            /* of the error */
    bool lines;              /* a text of several products */
} question;

/* ---- reading ---- */

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const run_matmul_values *o = call->values;
    sm_source source = sm_source_of("EINSUM", call->positional[0]), dims = cli_text(call, &o->dims);
    *q = (question){.first = o->alternative - 1};
    sm_status status =
        prediction_read(call, &o->timing.prediction, o->timing.mesh, &q->m, &q->calibration, err);
    q->lines = strchr(source.text, '=') != NULL;
    if (!status && q->lines) {
        q->einsum.operands = 1;
        status = element_type_read(call, &o->dtype, &q->einsum, &q->dtype, &q->element, err);
    }
    if (status || q->lines) return status;
    if (!status) status = sm_einsum_parse(&source, &q->m.mesh, &q->einsum, err);
    if (!status) status = sm_einsum_infer_output(&q->einsum, &source, err);
    if (!status && o->dims) status = sm_dims_parse(&dims, &q->einsum, err);
    if (!status)
        status = element_type_read(call, &o->dtype, &q->einsum, &q->dtype, &q->element, err);
    if (!status) status = sm_einsum_check(&q->einsum, &q->m.mesh, &source, err);
    if (!status) status = timing_check(&o->timing, SM_TRUTH_GEMM, q->dtype, err);
    if (!status && o->all && cli_given(call, &o->alternative))
        status = sm_fail(err, SM_USAGE, "--all and --alternative exclude each other");
    q->bound = execution_error_bound(&q->einsum, q->element);
    q->input = sm_placed_product(&q->m, &q->einsum, q->calibration, q->dtype);
    return status;
}

/* ---- what was found ---- */

static bool is_equal(const question *q, const execution *x) { return x->max_error <= q->bound; }

static int einsum_of(const sm_lowering *lowering) {
    int s = 0;
    while (s < lowering->steps && lowering->step[s].kind != SM_STEP_EINSUM) s++;
    assert(s < lowering->steps);
    return s;
}

/* What of the shorter one of transfer and product did not add to the time. */
static double hidden_share(const sm_alternative *a, const execution *x) {
    double transfer_s = x->apart_seconds[a->cost.overlapped];
    double product_s = x->apart_seconds[einsum_of(&a->lowering)];
    return (x->apart_total_s - x->total_s) / fmin(transfer_s, product_s);
}

/* ---- JSON ---- */

static void put_step(sm_report *r, sm_data *steps, const question *q, const sm_alternative *a,
                     const execution *x, int s) {
    const sm_step *step = &a->lowering.step[s];
    bool moves = step->kind == SM_STEP_COLLECTIVE;
    sm_data *object = sm_put_object(r, steps, NULL);
    sm_mesh mesh;
    sm_lowering_mesh(&a->lowering, &q->m.mesh, &mesh);
    sm_put(r, object, "op", sm_step_op(step));
    if (step->kind != SM_STEP_EINSUM) {
        sm_put(r, object, "array|axes", sm_array_words(r, &q->einsum, step->array),
               sm_axes_words(r, &mesh, step->axes));
    }
    sm_put(r, object, "bytes_predicted|bytes_counted", moves ? step->bytes : 0.0,
           moves ? x->bytes[s] : 0.0);
    prediction_put_times(r, object, a->cost.step[s].expected_s, x->seconds[s]);
    if (s == a->cost.overlapped) sm_put(r, object, "overlapped", (bool)true);
}

static void put_alternative(sm_report *r, sm_data *object, const question *q,
                            const execution_job *job, int i) {
    const sm_alternative *a = job->alternative[i];
    const execution *x = &job->result[i];
    sm_put(r, object, "equal|max_error|error_bound|bytes_equal", is_equal(q, x), x->max_error,
           q->bound, execution_bytes_agree(a, x));
    sm_data *steps = sm_put_array(r, object, "steps");
    for (int s = 0; s < a->lowering.steps; s++) put_step(r, steps, q, a, x, s);
    prediction_put_times(r, object, a->cost.expected_s, x->total_s);
    if (a->cost.overlapped < 0) return;
    sm_put(r, sm_put_object(r, object, "overlap"), "chunks|directions|apart_s|hidden",
           a->cost.chunks, job->directions, x->apart_total_s, hidden_share(a, x));
}

/* ---- the page ---- */

/* Which step is the most of the difference. */
static void say_gap(sm_report *r, const question *q, const sm_alternative *a, const execution *x) {
    int worst = 0;
    double most = -1.0;
    for (int s = 0; s < a->lowering.steps; s++) {
        double gap = fabs(a->cost.step[s].expected_s - x->seconds[s]);
        if (gap > most) worst = s;
        most = fmax(most, gap);
    }
    sm_report_text(r, "The largest gap: %s, predicted %s, measured %s.",
                   sm_step_words(r, &q->einsum, &q->m.mesh, &a->lowering, worst),
                   sm_show_seconds(r, a->cost.step[worst].expected_s),
                   sm_show_seconds(r, x->seconds[worst]));
}

static void show_alternative(sm_report *r, const question *q, int number, const sm_alternative *a,
                             const execution *x) {
    sm_report_heading(
        r, "Alternative %d: %s", number,
        sm_lowering_words(r, &q->einsum, &q->m.mesh, &a->lowering, a->cost.overlapped));
    sm_table *table = sm_page_table(r, NULL, EXECUTION_HEADS);
    for (int s = 0; s < a->lowering.steps; s++)
        execution_row(r, table, sm_step_words(r, &q->einsum, &q->m.mesh, &a->lowering, s), a, x, s);
    sm_page_row(r, table, "together", "", "", a->cost.expected_s, x->total_s,
                prediction_ratio(r, a->cost.expected_s, x->total_s), "");
    const char *error = sm_show_number(r, x->max_error), *bound = sm_show_number(r, q->bound);
    if (!is_equal(q, x))
        sm_report_text(r, "DIFFERS from the unsharded product by up to %s (at most %s).", error,
                       bound);
    else if (!(q->bound > 0.0)) sm_report_text(r, "Equal to the unsharded product, exactly.");
    else
        sm_report_text(r,
                       "Equal to the unsharded product: off by %s at most, and rounding in "
                       "another order may give %s.",
                       error, bound);
    sm_report_text(r, execution_bytes_agree(a, x)
                          ? "Every collective moved the bytes predicted."
                          : "A collective moved OTHER bytes than predicted.");
    if (a->cost.overlapped < 0) {
        say_gap(r, q, a, x);
        return;
    }
    double share = hidden_share(a, x);
    const char *hidden =
        sm_textf(r, "%s of the transfer or the product, whichever is shorter, is hidden",
                 sm_show_percent(r, fmin(share, 1.0)));
    sm_report_text(r, "One step after the other takes %s, inside the einsum %s: %s.",
                   sm_show_seconds(r, x->apart_total_s), sm_show_seconds(r, x->total_s),
                   share > 0.0 ? hidden : "nothing is won");
}

/* ---- many alternatives ---- */

/* Which was the fastest, and of the pairs that differ by more than 20 % measured, how many were
 * predicted in the same order. */
static void show_order(sm_report *r, const execution_job *job) {
    int fastest = 0, pairs = 0, right = 0;
    for (int i = 0; i < job->n; i++) {
        double a = job->result[i].total_s, pa = job->alternative[i]->cost.expected_s;
        if (a < job->result[fastest].total_s) fastest = i;
        for (int k = i + 1; k < job->n; k++) {
            double b = job->result[k].total_s, pb = job->alternative[k]->cost.expected_s;
            if (fmax(a, b) <= 1.2 * fmin(a, b)) continue;
            pairs++;
            right += (a < b && pa < pb) || (a > b && pa > pb);
        }
    }
    sm_put(r, sm_put_object(r, r->data, "order"), "fastest|pairs|right", fastest + 1, pairs, right);
    sm_report_heading(r, "All alternatives");
    sm_report_text(r,
                   "Alternative %d was the fastest. Of %d pairs that differ by more than 20 %%, "
                   "%d were predicted in the right order.",
                   fastest + 1, pairs, right);
}

/* ---- the verb ---- */

/* Where the predicted time comes from; 'matmul' explains each step down to the datasheet. */
static void explain(sm_report *r, const question *q, const sm_alternative *a) {
    const char *formula = sm_cost_formula(r, &a->cost);
    r->why = sm_page_why(r, NULL, "predicted", formula, a->cost.expected_s, "s");
    for (int s = 0; s < a->lowering.steps; s++)
        sm_page_leaf(r, r->why, sm_step_words(r, &q->einsum, &q->m.mesh, &a->lowering, s),
                     a->cost.step[s].expected_s, "s", q->calibration->source);
}

/* --record: the product that each rank makes, of every alternative that was run. */
static sm_status record(sm_report *r, const question *q, const char *path, const execution_job *job,
                        sm_error *err) {
    sm_truth_row *row = sm_arena_array(r->arena, (size_t)job->n, sizeof *row);
    if (!row) return sm_fail_memory(err);
    for (int i = 0; i < job->n; i++) {
        const sm_alternative *a = job->alternative[i];
        const execution *x = &job->result[i];
        const double *seconds = a->cost.overlapped < 0 ? x->seconds : x->apart_seconds;
        sm_product_shape shape = sm_lowering_product(&q->input, &a->lowering);
        if (shape.batch > 1 || q->einsum.operands != 2)
            return sm_fail(err, SM_BAD_INPUT, "--record keeps plain products: this one is batched");
        row[i] =
            record_begin(SM_TRUTH_GEMM, q->m.system.chip.name, seconds[einsum_of(&a->lowering)]);
        row[i].of.gemm = (sm_gemm_row){
            .dtype = "fp32", .m = shape.m, .n = shape.n, .k = shape.k, .quantises = SM_UNSTATED};
    }
    return record_rows(r, path, row, job->n, err);
}

/* order: in which the products of many operands are made; NULL: there is but one. */
static void show_head(sm_report *r, const question *q, const char *text, const char *order) {
    sm_put(r, r->data, "command|einsum", "run matmul", text);
    if (order) sm_put(r, r->data, "order", order);
    sm_put(r, r->data, "backend|ranks|dtype", ranks_backend(), q->m.placement.used,
           sm_dtype_name(q->dtype));
    sm_placed_mesh_fields(r, &q->m);
    sm_report_text(r, "%s in %s on %d ranks (%s), predicted for %s", text, sm_dtype_name(q->dtype),
                   q->m.placement.used, ranks_backend(), q->m.system.text);
    if (order) sm_report_text(r, "In the order %s.", order);
}

/* SM_NEGATIVE when any differs. */
static sm_status show(sm_report *r, const question *q, const execution_job *job) {
    bool good = true;
    char text[512];
    sm_einsum_format(&q->einsum, &q->m.mesh, text, sizeof text);
    show_head(r, q, text, NULL);
    put_alternative(r, r->data, q, job, 0);
    sm_data *alternatives = job->n > 1 ? sm_put_array(r, r->data, "alternatives") : NULL;
    for (int i = 0; i < job->n; i++) {
        const sm_alternative *a = job->alternative[i];
        const execution *x = &job->result[i];
        if (alternatives) put_alternative(r, sm_put_object(r, alternatives, NULL), q, job, i);
        show_alternative(r, q, (int)q->first + i + 1, a, x);
        good = good && is_equal(q, x) && execution_bytes_agree(a, x);
    }
    if (job->n > 1) show_order(r, job);
    else prediction_verdict(r, &q->m, job->alternative[0]->cost.expected_s, job->result[0].total_s);
    return good ? SM_OK : SM_NEGATIVE;
}

static execution_job job_of(const cli_call *call, const question *q) {
    const run_matmul_values *o = call->values;
    return (execution_job){.mesh = &q->m.mesh,
                           .einsum = &q->einsum,
                           .element = q->element,
                           .warmups = (int)o->timing.warmups,
                           .repeats = (int)o->timing.repeats,
                           .directions = (int)o->directions};
}

static sm_status execute(const cli_call *call, sm_report *r, question *q, const sm_ranking *found,
                         sm_error *err) {
    const run_matmul_values *o = call->values;
    execution_job job = job_of(call, q);
    job.n = o->all ? found->n : 1;
    job.alternative = found->kept + q->first;
    job.result = sm_arena_array(call->arena, (size_t)job.n, sizeof *job.result);
    if (!job.result) return sm_fail_memory(err);
    /* Of a rank, at least: the operands and the product of the local einsum. */
    double most = 0.0;
    for (int i = 0; i < job.n; i++) {
        sm_product_shape s = sm_lowering_product(&q->input, &job.alternative[i]->lowering);
        double elements = s.batch * (s.m * s.k + s.k * s.n + s.m * s.n);
        most = fmax(most, elements * (double)sm_element_bytes(q->element));
    }
    sm_status status = machine_memory_holds(r, "this product", most, q->m.placement.used,
                                            "Smaller --dims need less.");
    if (!status)
        status = ranks_run(call, &o->timing.ranks, q->m.placement.used, execution_body, &job, err);
    if (status || !ranks_speak()) return status;
    if (call->common.explain) explain(r, q, job.alternative[0]);
    sm_status shown = show(r, q, &job);
    if (o->timing.record) status = record(r, q, o->timing.record, &job, err);
    return status ? status : shown;
}

/* ---- many products: each held against that of the whole arrays ---- */

typedef struct running {
    const question *q;
    sm_chain *chain;
    sm_chain_plan plan;
    execution *result;
    double *bound, *most;
} running;

static sm_status read_chain(const cli_call *call, const question *q, sm_chain *chain,
                            sm_error *err) {
    const run_matmul_values *o = call->values;
    const sm_source text = sm_source_of("EINSUM", call->positional[0]),
                    dims = cli_text(call, &o->dims);
    sm_status status = SM_OK;
    if (!q->lines) sm_chain_of_einsum(&q->einsum, chain);
    else status = sm_chain_read(&text, &dims, &q->m.mesh, call->arena, chain, err);
    for (int l = 0; !status && l < chain->lines; l++)
        if (chain->line[l].work != SM_LOCAL_PRODUCT && chain->line[l].work != SM_LOCAL_NOTHING)
            status = sm_fail(err, SM_BAD_INPUT,
                             "ranks run products; expressions, norms, softmax and look-ups are "
                             "priced by 'matmul' alone");
    for (int a = 0; a < chain->arrays; a++) chain->array[a].array.dtype = q->dtype;
    return status;
}

static const char *product_words(sm_report *r, const running *x, int i) {
    const sm_einsum *e = &x->plan.step[i].einsum;
    const sm_mesh *mesh = &x->q->m.mesh;
    const char *words = sm_textf(r, "%s =", sm_array_notation(r, &e->out, e, mesh));
    for (int o = 0; o < e->operands; o++)
        words = sm_textf(r, "%s %s", words, sm_array_notation(r, &e->in[o], e, mesh));
    return words;
}

static void show_step(sm_report *r, sm_table *table, sm_data *steps, const running *x, int i,
                      int s) {
    const sm_chain_step *of = &x->plan.step[i];
    const sm_step *step = &of->way.lowering.step[s];
    const execution *done = &x->result[i];
    bool moves = step->kind == SM_STEP_COLLECTIVE, product = step->kind == SM_STEP_EINSUM;
    const char *words = product
                            ? product_words(r, x, i)
                            : sm_step_words(r, &of->einsum, &x->q->m.mesh, &of->way.lowering, s);
    sm_data *object = sm_put_object(r, steps, NULL);
    sm_put(r, object, "step|bytes_predicted|bytes_counted", words, moves ? step->bytes : 0.0,
           moves ? done->bytes[s] : 0.0);
    prediction_put_times(r, object, of->way.cost.step[s].expected_s, done->seconds[s]);
    execution_row(r, table, words, &of->way, done, s);
}

static sm_status show_chain(sm_report *r, const running *x) {
    bool equal = true, same_bytes = true;
    double measured_s = 0.0, error = 0.0, bound = 0.0;
    sm_data *steps = sm_put_array(r, r->data, "steps");
    sm_table *table = sm_page_table(r, NULL, EXECUTION_HEADS);
    for (int i = 0; i < x->plan.steps; i++) {
        for (int s = 0; s < x->plan.step[i].way.lowering.steps; s++)
            show_step(r, table, steps, x, i, s);
        measured_s += x->result[i].total_s;
        equal = equal && x->result[i].max_error <= x->bound[x->plan.step[i].result];
        same_bytes = same_bytes && execution_bytes_agree(&x->plan.step[i].way, &x->result[i]);
        error = fmax(error, x->result[i].max_error);
        bound = fmax(bound, x->bound[x->plan.step[i].result]);
    }
    sm_page_row(r, table, "together", "", "", x->plan.expected_s, measured_s,
                prediction_ratio(r, x->plan.expected_s, measured_s), "");
    sm_put(r, r->data, "equal|max_error|error_bound|bytes_equal", equal, error, bound, same_bytes);
    prediction_put_times(r, r->data, x->plan.expected_s, measured_s);
    sm_report_text(r, "%s",
                   !equal        ? "A product DIFFERS from that of the whole arrays."
                   : bound > 0.0 ? "Each product is equal to that of the whole arrays, but for "
                                   "the rounding of sums in another order."
                                 : "Each product is equal to that of the whole arrays, exactly.");
    sm_report_text(r, same_bytes ? "Every collective moved the bytes predicted."
                                 : "A collective moved OTHER bytes than predicted.");
    prediction_verdict(r, &x->q->m, x->plan.expected_s, measured_s);
    return equal && same_bytes ? SM_OK : SM_NEGATIVE;
}

/* Every rank holds the whole arrays too, in the type that is exact. */
static double bytes_of_rank(const running *x) {
    double elements = 0.0;
    for (int a = 0; a < x->chain->arrays; a++)
        if (x->chain->array[a].line < 0)
            elements += sm_array_elements(&x->chain->array[a].array, &x->chain->names);
    for (int i = 0; i < x->plan.steps; i++)
        elements += sm_array_elements(&x->plan.step[i].einsum.out, &x->plan.step[i].einsum);
    return elements * (double)sm_element_bytes(SM_ELEMENT_F64);
}

/* The best plan alone: orders are no alternatives of one product. */
static sm_status run_many(const cli_call *call, sm_report *r, const question *q, sm_error *err) {
    const run_matmul_values *o = call->values;
    static const double MOST_WHOLE = 2147483647.0;
    running x = {.q = q, .chain = sm_arena_alloc(call->arena, sizeof *x.chain)};
    if (o->all || cli_given(call, &o->alternative) || o->timing.record)
        return sm_fail(err, SM_USAGE,
                       "--all, --alternative and --record are for products of two arrays");
    if (!x.chain) return sm_fail_memory(err);
    sm_status status = read_chain(call, q, x.chain, err);
    const sm_chain_input input = {&q->m.system,   &q->m.mesh, &q->m.placement,
                                  q->calibration, q->dtype,   x.chain};
    if (!status) status = sm_chain_best(&input, call->arena, &x.plan, err);
    if (status == SM_NEGATIVE)
        return sm_fail(err, SM_BAD_INPUT, "no assignment of the mesh axes gives this output");
    if (status) return status;
    x.result = sm_arena_array(call->arena, (size_t)x.plan.steps, sizeof *x.result);
    x.bound = sm_arena_array(call->arena, (size_t)x.plan.values, sizeof *x.bound);
    x.most = sm_arena_array(call->arena, (size_t)x.plan.values, sizeof *x.most);
    if (!x.result || !x.bound || !x.most) return sm_fail_memory(err);
    if (execution_chain_bound(&x.plan, q->element, x.bound, x.most) > MOST_WHOLE &&
        q->element == SM_ELEMENT_S32)
        return sm_fail(err, SM_BAD_INPUT,
                       "sums of these sizes pass 32 bits; smaller ones, or "
                       "--dtype fp64, do not");
    execution_chain c = {.job = job_of(call, q), .chain = x.chain, .plan = &x.plan};
    c.job.result = x.result;
    status = machine_memory_holds(r, "this chain", bytes_of_rank(&x), q->m.placement.used,
                                  "Smaller --dims need less.");
    if (!status)
        status =
            ranks_run(call, &o->timing.ranks, q->m.placement.used, execution_chain_body, &c, err);
    if (status || !ranks_speak()) return status;
    show_head(r, q, call->positional[0], x.chain->lines == 1 ? x.plan.order : NULL);
    return show_chain(r, &x);
}

static sm_status run_matmul(const cli_call *call, sm_report *r, sm_error *err) {
    question q;
    sm_ranking found;
    sm_status status = read_question(call, &q, err);
    if (status) return status;
    if (q.lines || sm_einsum_is_chain(&q.einsum)) return run_many(call, r, &q, err);
    status = sm_rank_lowerings(&q.input, call->arena, &found, err);
    if (status == SM_NEGATIVE)
        return sm_fail(err, SM_BAD_INPUT, "no assignment of the mesh axes gives this output");
    if (status) return status;
    if (q.first >= found.n)
        return sm_fail(err, SM_BAD_INPUT, "there are %d alternatives, and no number %d", found.n,
                       (int)q.first + 1);
    return execute(call, r, &q, &found, err);
}

const cli_verb run_matmul_verb = {
    .about = &verbs_run_matmul,
    CLI_VALUES(TIMING_MESH_PLACE(timing), AT("dims", dims), AT("dtype", dtype),
               AT("alternative", alternative), AT("all", all), AT("directions", directions),
               TIMING_PLACES(timing)),
    .run = run_matmul,
};
