/* answer_matmul: a sharded einsum on a mesh: what must be communicated, every way to do it with its
 * price, and the best. */
#include "lowering_rows.h"
#include "question.h"
#include <string.h>

enum { SHOWN = 8 };

typedef struct asked {
    sm_matmul_question in;
    sm_placed_mesh m;
    sm_einsum einsum;
    sm_dtype compute;
} asked;

static sm_status read_question(asked *q, sm_error *err) {
    const sm_source *source = &q->in.einsum;
    sm_dtype dtypes[SM_MAX_OPERANDS];
    sm_status status = sm_placed_mesh_read(q->in.system, &q->in.mesh, &q->m, err);
    if (!status) status = sm_einsum_parse(source, &q->m.mesh, &q->einsum, err);
    if (!status) status = sm_einsum_infer_output(&q->einsum, source, err);
    if (!status && q->in.dims.text) status = sm_dims_parse(&q->in.dims, &q->einsum, err);
    if (!status) status = sm_einsum_check(&q->einsum, &q->m.mesh, source, err);
    if (status) return status;
    for (int i = 0; i < q->einsum.operands; i++) dtypes[i] = q->einsum.in[i].dtype;
    q->compute = q->in.compute ? *q->in.compute : sm_compute_dtype(dtypes, q->einsum.operands);
    if (!q->in.calibration) q->in.calibration = sm_calibration_of_operations(&q->m.system.chip);
    return SM_OK;
}

/* ---- data ---- */

static const char *output_of(sm_report *r, const asked *q, const sm_lowering *lowering) {
    return sm_array_notation(r, &lowering->out, &q->einsum, &q->m.mesh);
}

static lowering_shown shown_of(const asked *q, const sm_alternative *a) {
    return (lowering_shown){&q->einsum, &q->m.mesh, a, "einsum"};
}

static lowering_totals totals_of(const sm_alternative *a) {
    const sm_lowering *l = &a->lowering;
    const sm_lowering_cost *c = &a->cost;
    const char *as =
        c->overlapped < 0 ? "the steps one after the other" : "one collective inside the einsum";
    return (lowering_totals){
        l->flops_per_chip, l->wire_bytes, l->peak_bytes, c->math_s, c->memory_s, c->network_s,
        c->lower_s,        c->expected_s, c->upper_s,    "",        as};
}

static void put_alternative(sm_report *r, sm_data *object, const asked *q,
                            const sm_alternative *a) {
    const sm_lowering_cost *cost = &a->cost;
    sm_put(r, object, "output", output_of(r, q, &a->lowering));
    sm_data *steps = sm_put_array(r, object, "steps");
    const lowering_shown shown = shown_of(q, a);
    for (int s = 0; s < a->lowering.steps; s++) lowering_put_step(r, steps, &shown, s);
    sm_put(r, object, "overlapped|flops_per_chip|padding|wire_bytes_per_chip|peak_bytes_per_chip",
           (bool)(cost->overlapped >= 0), a->lowering.flops_per_chip,
           sm_padding_of(&q->einsum, &q->m.mesh, &a->lowering), a->lowering.wire_bytes,
           a->lowering.peak_bytes);
    const lowering_totals totals = totals_of(a);
    lowering_put_totals(r, object, &totals);
}

/* ---- the page ---- */

/* Each step in the notation, and the axes that it works on the parts of. */
static void notation_rows(sm_report *r, const asked *q, const sm_alternative *best) {
    const sm_lowering *lowering = &best->lowering;
    sm_mesh parts;
    char text[128];
    if (lowering->steps < 2 || (lowering->steps == 2 && !(lowering->wire_bytes > 0))) return;
    sm_table *table = sm_page_table(r, NULL, "<step|<in the notation");
    for (int s = 0; s < lowering->steps; s++) {
        if (lowering_is_idle(best, s)) continue;
        sm_page_row(r, table, sm_step_op(&lowering->step[s]),
                    sm_step_notation(r, &q->einsum, &q->m.mesh, lowering, s));
    }
    if (lowering->parts == 0) return;
    sm_lowering_mesh(lowering, &q->m.mesh, &parts);
    sm_mesh_format(&parts, text, sizeof text);
    sm_report_text(r, "Axes are split into parts, major first: the mesh of the steps is %s.", text);
}

static void alternative_rows(sm_report *r, const asked *q, const sm_ranking *found) {
    bool free_output = !q->einsum.out_sharding_given;
    sm_table *table =
        sm_page_table(r, "Alternatives, cheapest first",
                      sm_textf(r, ">{s}lower|>{s}expected|>{s}upper|>{B}memory|%s<output|<steps",
                               free_output ? "" : "-"));
    int top = q->in.top > 0 ? q->in.top : SHOWN;
    int shown = found->n < top ? found->n : top;
    for (int i = 0; i < shown; i++) {
        const sm_alternative *a = found->kept[i];
        sm_page_row(r, table, a->cost.lower_s, a->cost.expected_s, a->cost.upper_s,
                    a->lowering.peak_bytes, free_output ? output_of(r, q, &a->lowering) : "",
                    sm_lowering_words(r, &q->einsum, &q->m.mesh, &a->lowering, a->cost.overlapped));
    }
    if (found->n > shown) sm_report_text(r, "%d more; --top N shows them.", found->n - shown);
}

/* ---- the derivation ---- */

static void explain(sm_report *r, const asked *q, const sm_alternative *a) {
    r->why =
        sm_page_why(r, NULL, "expected", sm_cost_formula(r, &a->cost), a->cost.expected_s, "s");
    for (int s = 0; s < a->lowering.steps; s++)
        sm_page_leaf(r, r->why, sm_step_words(r, &q->einsum, &q->m.mesh, &a->lowering, s),
                     a->cost.step[s].expected_s, "s", "whole, with latency and efficiency");
    const sm_chip *chip = &q->m.system.chip;
    sm_dtype used = q->compute;
    double peak = sm_chip_peak(chip, q->compute, &used);
    sm_why *lower =
        sm_page_why(r, r->why, "lower bound", "max(math, memory, network)", a->cost.lower_s, "s");
    sm_why *math = sm_page_why(r, lower, "math", "FLOPs per chip / peak", a->cost.math_s, "s");
    sm_page_leaf(r, math, "FLOPs per chip", a->lowering.flops_per_chip, "FLOP",
                 "2 x product of the local sizes");
    if (peak > 0.0)
        sm_page_fact(r, math, sm_textf(r, "peak in %s", sm_dtype_name(used)),
                     &chip->flops_per_s[used], "FLOP/s");
    sm_why *memory = sm_page_why(r, lower, "memory", "bytes of the local arrays / bandwidth",
                                 a->cost.memory_s, "s");
    sm_page_fact(r, memory, "memory bandwidth", &chip->memory_bytes_per_s, "B/s");
    sm_why *network =
        sm_page_why(r, lower, "network", "sum over the collectives", a->cost.network_s, "s");
    const lowering_shown shown = shown_of(q, a);
    for (int s = 0; s < a->lowering.steps; s++)
        if (a->lowering.step[s].kind == SM_STEP_COLLECTIVE)
            lowering_why_collective(r, network, &shown, s);
}

/* ---- the whole ---- */

static void show(sm_report *r, const asked *q, const sm_ranking *found) {
    const sm_alternative *best = found->kept[0];
    int most = q->in.top > 0 ? q->in.top : SM_MOST_ALTERNATIVES;
    char text[512];
    sm_einsum_format(&q->einsum, &q->m.mesh, text, sizeof text);
    sm_put(r, r->data, "einsum", text);
    sm_placed_mesh_fields(r, &q->m);
    put_alternative(r, sm_put_object(r, r->data, "best"), q, best);
    sm_data *alternatives = sm_put_array(r, r->data, "alternatives");
    for (int i = 0; i < found->n && i < most; i++)
        put_alternative(r, sm_put_object(r, alternatives, NULL), q, found->kept[i]);
    sm_report_text(r, "%s on %s", text, q->m.system.text);
    sm_placed_mesh_page(r, &q->m);
    sm_report_heading(r, "Best: %s, %s expected", output_of(r, q, &best->lowering),
                      sm_show_seconds(r, best->cost.expected_s));
    for (int a = 0; a < q->m.mesh.axes; a++)
        sm_report_text(r, "%s", sm_axis_words(r, &q->einsum, &q->m.mesh, &best->lowering, a));
    sm_padding_page(r, &q->einsum, &q->m.mesh, &best->lowering, &(sm_padding_told){.n = 0});
    sm_table *table = sm_page_table(r, NULL, LOWERING_STEP_HEADS);
    const lowering_shown shown = shown_of(q, best);
    for (int s = 0; s < best->lowering.steps; s++) lowering_step_row(r, table, &shown, s);
    notation_rows(r, q, best);
    lowering_totals totals = totals_of(best);
    double padding = sm_padding_of(&q->einsum, &q->m.mesh, &best->lowering);
    if (padding > 0 && totals.flops > 0)
        totals.flops_of = sm_textf(r, "%s of all chips' is padding", sm_show_percent(r, padding));
    lowering_total_rows(r, &totals);
    alternative_rows(r, q, found);
    if (q->in.explain) explain(r, q, best);
}

/* A product of more than two is made in an order. */
static sm_status answer_of_many(const asked *q, sm_report *r, sm_error *err) {
    char text[512];
    sm_chain *chain = sm_arena_alloc(r->arena, sizeof *chain);
    if (!chain) return sm_fail_memory(err);
    sm_chain_of_einsum(&q->einsum, chain);
    sm_einsum_format(&q->einsum, &q->m.mesh, text, sizeof text);
    const chain_asked many = {&q->in, &q->m, chain, q->compute, sm_textf(r, "%s", text)};
    return chain_answer(&many, r, err);
}

/* "h[B,F] = ..." is lines of a text; an einsum has no '='. */
static sm_status answer_lines(const sm_matmul_question *in, sm_report *r, sm_error *err) {
    sm_placed_mesh m;
    sm_chain *chain = sm_arena_alloc(r->arena, sizeof *chain);
    if (!chain) return sm_fail_memory(err);
    sm_status status = sm_placed_mesh_read(in->system, &in->mesh, &m, err);
    if (!status) status = sm_chain_read(&in->einsum, &in->dims, &m.mesh, r->arena, chain, err);
    if (status) return status;
    sm_dtype type[SM_CHAIN_MOST_ARRAYS];
    int n = 0;
    for (int a = 0; a < chain->arrays; a++)
        if (chain->array[a].line < 0 && chain->array[a].array.dtype != SM_INT32)
            type[n++] = chain->array[a].array.dtype;
    const sm_dtype compute = in->compute ? *in->compute : sm_compute_dtype(type, n);
    const char *text = sm_textf(r, "%.*s", (int)in->einsum.length, in->einsum.text);
    const chain_asked lines = {in, &m, chain, compute, text};
    sm_put(r, r->data, "command", "matmul");
    return chain_answer(&lines, r, err);
}

sm_status sm_answer_matmul(const sm_matmul_question *question, sm_report *r, sm_error *err) {
    asked q = {.in.size = 0};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    bool there = q.in.system && q.in.einsum.text && q.in.mesh.text;
    if (!status) status = sm_question_needs(there, "a system, a mesh and an einsum", err);
    if (!status && there && memchr(q.in.einsum.text, '=', q.in.einsum.length))
        return answer_lines(&q.in, r, err);
    if (!status) status = read_question(&q, err);
    if (status) return status;
    sm_put(r, r->data, "command", "matmul");
    if (sm_einsum_is_chain(&q.einsum)) return answer_of_many(&q, r, err);
    sm_lowering_input input = sm_placed_product(&q.m, &q.einsum, q.in.calibration, q.compute);
    sm_ranking found;
    sm_error none = {.status = SM_OK};
    status = sm_rank_lowerings(&input, r->arena, &found, &none);
    if (status > SM_NEGATIVE) {
        *err = none;
        return status;
    }
    if (status == SM_NEGATIVE || found.n == 0) {
        const char *sentence =
            none.sentence[0] ? none.sentence : "no assignment of the mesh axes gives this output";
        sm_placed_mesh_fields(r, &q.m);
        sm_put(r, r->data, "best", NAN);
        sm_put_array(r, r->data, "alternatives");
        sm_put(r, r->data, "reason", sentence);
        sm_report_text(r, "There is no way: %s.", sentence);
        return SM_NEGATIVE;
    }
    show(r, &q, &found);
    return SM_OK;
}
