/* run_chain: a product of many operands, or lines of products, on real ranks: in the order and the
 * shardings that `matmul` finds, each product held against that of the whole arrays. */
#include "execution.h"

#include <math.h>

typedef struct running {
    const run_chain_question *q;
    sm_chain *chain;
    sm_chain_plan plan;
    execution *result;
    double *bound, *most;
} running;

/* ---- reading ---- */

static sm_status read_chain(const run_chain_question *q, sm_arena *arena, sm_chain *chain,
                            sm_error *err) {
    sm_status status = SM_OK;
    if (q->einsum) sm_chain_of_einsum(q->einsum, chain);
    else status = sm_chain_read(&q->text, &q->dims, &q->m->mesh, arena, chain, err);
    for (int l = 0; !status && l < chain->lines; l++)
        if (chain->line[l].work != SM_LOCAL_PRODUCT && chain->line[l].work != SM_LOCAL_NOTHING)
            status = sm_fail(err, SM_BAD_INPUT,
                             "ranks run products; expressions, norms, softmax and look-ups are "
                             "priced by 'matmul' alone");
    for (int a = 0; a < chain->arrays; a++) chain->array[a].array.dtype = q->dtype;
    return status;
}

/* ---- what was found ---- */

static const char *product_words(sm_report *r, const running *x, int i) {
    const sm_einsum *e = &x->plan.step[i].einsum;
    const sm_mesh *mesh = &x->q->m->mesh;
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
                            : sm_step_words(r, &of->einsum, &x->q->m->mesh, &of->way.lowering, s);
    sm_data *object = sm_put_object(r, steps, NULL);
    sm_put(r, object, "step|bytes_predicted|bytes_counted", words, moves ? step->bytes : 0.0,
           moves ? done->bytes[s] : 0.0);
    prediction_put_times(r, object, of->way.cost.step[s].expected_s, done->seconds[s]);
    execution_row(r, table, words, &of->way, done, s);
}

static sm_status show(sm_report *r, const running *x) {
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
    prediction_verdict(r, x->q->m, x->plan.expected_s, measured_s);
    return equal && same_bytes ? SM_OK : SM_NEGATIVE;
}

/* ---- the whole ---- */

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

sm_status run_chain(const cli_call *call, sm_report *r, const run_chain_question *q,
                    sm_error *err) {
    static const double MOST_WHOLE = 2147483647.0;
    running x = {.q = q, .chain = sm_arena_alloc(call->arena, sizeof *x.chain)};
    if (!x.chain) return sm_fail_memory(err);
    sm_status status = read_chain(q, call->arena, x.chain, err);
    const sm_chain_input input = {&q->m->system,  &q->m->mesh, &q->m->placement,
                                  q->calibration, q->dtype,    x.chain};
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
    execution_chain c = {.job = {.mesh = &q->m->mesh,
                                 .element = q->element,
                                 .warmups = (int)q->timing->warmups,
                                 .repeats = (int)q->timing->repeats,
                                 .directions = q->directions,
                                 .result = x.result},
                         .chain = x.chain,
                         .plan = &x.plan};
    status = machine_memory_holds(r, "this chain", bytes_of_rank(&x), q->m->placement.used,
                                  "Smaller --dims need less.");
    if (!status)
        status =
            ranks_run(call, &q->timing->ranks, q->m->placement.used, execution_chain_body, &c, err);
    if (status || !ranks_speak()) return status;
    sm_put(r, r->data, "command|einsum", "run matmul", q->text.text);
    if (x.chain->lines == 1) sm_put(r, r->data, "order", x.plan.order);
    sm_put(r, r->data, "backend|ranks|dtype", ranks_backend(), q->m->placement.used,
           sm_dtype_name(q->dtype));
    sm_placed_mesh_fields(r, q->m);
    sm_report_text(r, "%s in %s on %d ranks (%s), predicted for %s", q->text.text,
                   sm_dtype_name(q->dtype), q->m->placement.used, ranks_backend(),
                   q->m->system.text);
    if (x.chain->lines == 1) sm_report_text(r, "In the order %s.", x.plan.order);
    return show(r, &x);
}
