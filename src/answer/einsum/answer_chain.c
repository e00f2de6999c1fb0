/* answer_chain: lines of einsums on a mesh: in which order products of many operands are made, how
 * what is made on the way is sharded, and what that costs. */
#include "lowering_rows.h"

#include <math.h>

enum { SHOWN = 8, MOST_LISTED = 256, MOST_LISTS = 2 };

/* Alternatives of one kind: every order of one product, or every sharding of one array. */
typedef struct listed {
    int n;
    sm_chain_plan *plan;
    sm_array *shape; /* NULL: orders */
    int array;
} listed;

/* "h[B_X,F_Y] = x[B_X,D] w[D,F_Y]", as the text of a layer would have it. */
static const char *step_text(sm_report *r, const chain_asked *q, const sm_chain_step *step) {
    const char *name = q->chain->line[step->line].name;
    const char *text = sm_array_notation(r, &step->einsum.out, &step->einsum, &q->m->mesh);
    if (step->work == SM_LOCAL_NOTHING) return sm_textf(r, "%s for all that read it", text);
    for (int o = 0; o < step->einsum.operands; o++)
        text = sm_textf(r, "%s%s%s", text, o ? " " : " = ",
                        sm_array_notation(r, &step->einsum.in[o], &step->einsum, &q->m->mesh));
    return name[0] ? sm_textf(r, "%s: %s", name, text) : text;
}

static const char *outputs_of(sm_report *r, const chain_asked *q, const sm_chain_plan *plan) {
    const char *text = "";
    for (int i = 0; i < plan->steps; i++) {
        const sm_chain_step *step = &plan->step[i];
        if (step->result >= q->chain->arrays || q->chain->array[step->result].uses > 0) continue;
        text = sm_textf(r, "%s%s%s", text, *text ? ", " : "",
                        sm_array_notation(r, &step->einsum.out, &step->einsum, &q->m->mesh));
    }
    return text;
}

static bool has_orders(const chain_asked *q) {
    return q->chain->lines == 1 && q->chain->line[0].operands > 2;
}

/* ---- data ---- */

static lowering_totals totals_of(const sm_chain_plan *p) {
    return (lowering_totals){p->flops_per_chip,
                             NAN,
                             p->peak_bytes,
                             p->math_s,
                             p->memory_s,
                             p->network_s,
                             p->lower_s,
                             p->expected_s,
                             p->upper_s,
                             "of products",
                             "one product after the other"};
}

static void put_plan(sm_report *r, sm_data *object, const chain_asked *q,
                     const sm_chain_plan *plan) {
    sm_put(r, object, "output", outputs_of(r, q, plan));
    if (has_orders(q)) sm_put(r, object, "order", plan->order);
    sm_data *products = sm_put_array(r, object, "products");
    for (int i = 0; i < plan->steps; i++) {
        const sm_chain_step *step = &plan->step[i];
        const lowering_shown shown = {&step->einsum, &q->m->mesh, &step->way, ""};
        sm_data *product = sm_put_object(r, products, NULL);
        sm_put(r, product, "product", step_text(r, q, step));
        sm_data *steps = sm_put_array(r, product, "steps");
        for (int s = 0; s < step->way.lowering.steps; s++) lowering_put_step(r, steps, &shown, s);
        sm_put(r, product, "time_s", step->way.cost.expected_s);
    }
    sm_put(r, object, "flops_per_chip|peak_bytes_per_chip", plan->flops_per_chip, plan->peak_bytes);
    const lowering_totals totals = totals_of(plan);
    lowering_put_totals(r, object, &totals);
}

/* ---- the page ---- */

/* As many as are asked for; else a few on the page, and all in the data. */
static void list_rows(sm_report *r, const chain_asked *q, const listed *l) {
    const char *title = "Orders, cheapest first", *what = l->shape ? "array" : "order";
    if (l->shape)
        title =
            sm_textf(r, "Shardings of %s, cheapest first", q->chain->array[l->array].array.name);
    const sm_listing list = sm_page_list(
        r, r->data, l->shape ? "shardings" : "orders", title,
        sm_textf(r,
                 "%s|flops_per_chip|peak_bytes_per_chip|lower_s>{s}lower|expected_s>{s}expected|"
                 "upper_s>{s}upper|>{B}memory|>{n}FLOPs|<%s",
                 what, what));
    int shown = q->in->top > 0 ? q->in->top : SHOWN,
        most = q->in->top > 0 && q->in->top < l->n ? q->in->top : l->n;
    for (int i = 0; i < most; i++) {
        const sm_chain_plan *plan = &l->plan[i];
        const char *is = l->shape
                             ? sm_array_notation(r, &l->shape[i], &q->chain->names, &q->m->mesh)
                             : plan->order;
        sm_list_row(&list, i < shown, is, plan->flops_per_chip, plan->peak_bytes, plan->lower_s,
                    plan->expected_s, plan->upper_s, plan->peak_bytes, plan->flops_per_chip, is);
    }
    if (l->n > shown) sm_report_text(r, "%d more; --top N shows them.", l->n - shown);
}

/* ---- the derivation ---- */

static void explain(sm_report *r, const chain_asked *q, const sm_chain_plan *plan) {
    r->why = sm_page_why(r, NULL, "expected", "sum of the products", plan->expected_s, "s");
    for (int i = 0; i < plan->steps; i++) {
        const sm_chain_step *step = &plan->step[i];
        const lowering_shown shown = {&step->einsum, &q->m->mesh, &step->way, ""};
        sm_why *node =
            sm_page_why(r, r->why, step_text(r, q, step), sm_cost_formula(r, &step->way.cost),
                        step->way.cost.expected_s, "s");
        for (int s = 0; s < step->way.lowering.steps; s++) {
            const char *words =
                sm_step_words(r, &step->einsum, &q->m->mesh, &step->way.lowering, s);
            sm_page_leaf(r, node, words, step->way.cost.step[s].expected_s, "s",
                         "whole, with latency and efficiency");
            if (step->way.lowering.step[s].kind == SM_STEP_COLLECTIVE)
                lowering_why_collective(r, node, &shown, s);
        }
    }
}

/* ---- the whole ---- */

static void show(sm_report *r, const chain_asked *q, const sm_chain_plan *best) {
    put_plan(r, sm_put_object(r, r->data, "best"), q, best);
    const char *output = outputs_of(r, q, best), *expected = sm_show_seconds(r, best->expected_s);
    if (has_orders(q) && best->steps > 1)
        sm_report_heading(r, "Best: %s in the order %s, %s expected", output, best->order,
                          expected);
    else sm_report_heading(r, "Best: %s, %s expected", output, expected);
    sm_table *table = sm_page_table(r, NULL, LOWERING_STEP_HEADS);
    for (int i = 0; i < best->steps; i++) {
        const sm_chain_step *step = &best->step[i];
        const lowering_shown shown = {&step->einsum, &q->m->mesh, &step->way,
                                      step_text(r, q, step)};
        for (int s = 0; s < step->way.lowering.steps; s++)
            if (step->work != SM_LOCAL_NOTHING || step->way.lowering.step[s].kind != SM_STEP_EINSUM)
                lowering_step_row(r, table, &shown, s);
    }
    sm_padding_told told = {.n = 0};
    for (int i = 0; i < best->steps; i++)
        sm_padding_page(r, &best->step[i].einsum, &q->m->mesh, &best->step[i].way.lowering, &told);
    const lowering_totals totals = totals_of(best);
    lowering_total_rows(r, &totals);
    if (q->in->explain) explain(r, q, best);
}

/* Orders of one product; of a chain the shardings of what is made and left open. */
static sm_status show_lists(sm_report *r, const chain_asked *q, const sm_chain_input *input,
                            sm_error *err) {
    listed l = {.n = 0};
    sm_status status = SM_OK;
    if (has_orders(q)) {
        int dear = 0;
        status = sm_chain_orders(input, r->arena, &l.plan, &l.n, &dear, err);
        if (status || l.n == 0) return status;
        list_rows(r, q, &l);
        sm_put(r, r->data, "orders_dear", (double)dear);
        if (dear > 0)
            sm_report_text(r, "%d other%s over %d times as long as the first.", dear,
                           dear > 1 ? "s take" : " takes", SM_CHAIN_DEAR);
        return SM_OK;
    }
    if (q->chain->lines > 1) sm_put_array(r, r->data, "shardings");
    for (int a = 0, lists = 0; !status && a < q->chain->arrays; a++) {
        const sm_chain_array *of = &q->chain->array[a]; /* the text leaves it open, and reads it */
        bool open = !of->given && of->named && of->line >= 0 && of->uses > 0;
        if (!open || lists++ >= MOST_LISTS) continue;
        l.array = a;
        l.n = MOST_LISTED;
        status = sm_chain_shardings(input, a, r->arena, &l.plan, &l.shape, &l.n, err);
        if (status || l.n < 2) continue;
        list_rows(r, q, &l);
    }
    return status;
}

static sm_status answer_on(const chain_asked *q, const sm_mesh *mesh, sm_report *r, sm_error *err) {
    const sm_calibration *c = q->in->calibration;
    if (!c) c = sm_calibration_of_operations(&q->m->system.chip);
    const sm_chain_input input = {&q->m->system, mesh, &q->m->placement, c, q->compute, q->chain};
    sm_chain_plan best;
    sm_error none = {.status = SM_OK};
    sm_status status = sm_chain_best(&input, r->arena, &best, &none);
    if (status > SM_NEGATIVE) {
        *err = none;
        return status;
    }
    sm_put(r, r->data, "einsum", q->text);
    sm_placed_mesh_fields(r, q->m);
    if (status == SM_NEGATIVE) {
        sm_put(r, r->data, "best|reason", NAN, none.sentence);
        sm_report_text(r, "There is no way: %s.", none.sentence);
        return SM_NEGATIVE;
    }
    sm_report_text(r, "%s on %s", q->text, q->m->system.text);
    sm_placed_mesh_page(r, q->m);
    show(r, q, &best);
    return show_lists(r, q, &input, err);
}

sm_status chain_answer(const chain_asked *q, sm_report *r, sm_error *err) {
    sm_mesh mesh = q->m->mesh;
    mesh.routes = sm_routes_new();
    if (!mesh.routes) return sm_fail_memory(err);
    sm_status status = answer_on(q, &mesh, r, err);
    sm_routes_free(mesh.routes);
    return status;
}
