/* A step of a lowering as data, as a row, as a derivation. */
#include "lowering_rows.h"
#include <math.h>

/* The largest of the three. */
static const char *bound_of(const lowering_totals *t) {
    if (t->network_s >= t->math_s && t->network_s >= t->memory_s) return "network";
    return t->math_s >= t->memory_s ? "compute" : "memory";
}

void lowering_put_totals(sm_report *r, sm_data *object, const lowering_totals *t) {
    sm_put(r, sm_put_object(r, object, "time_s"), "math|memory|network|lower|expected|upper",
           t->math_s, t->memory_s, t->network_s, t->lower_s, t->expected_s, t->upper_s);
    sm_put(r, object, "bound", bound_of(t));
}

void lowering_total_rows(sm_report *r, const lowering_totals *t) {
    sm_table *table = sm_page_table(r, NULL, "<per chip|>value|<");
    sm_page_row(r, table, "FLOPs", sm_show_count(r, t->flops), t->flops_of);
    if (!isnan(t->wire_bytes))
        sm_page_row(r, table, "on the wire", sm_show_bytes(r, t->wire_bytes),
                    "bytes that a chip receives");
    sm_page_row(r, table, "math", sm_show_seconds(r, t->math_s), "at the datasheet peak");
    sm_page_row(r, table, "memory", sm_show_seconds(r, t->memory_s), "at the datasheet bandwidth");
    sm_page_row(r, table, "network", sm_show_seconds(r, t->network_s),
                "collectives at datasheet bandwidth");
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, t->lower_s),
                "the largest of the three");
    sm_page_row(r, table, "expected", sm_show_seconds(r, t->expected_s), t->expected_as);
    sm_page_row(r, table, "upper bound", sm_show_seconds(r, t->upper_s),
                "nothing overlaps, with efficiency");
    sm_page_row(r, table, "peak memory", sm_show_bytes(r, t->peak_bytes),
                "of the arrays alive at once");
    sm_report_text(r, "Bound by %s.", bound_of(t));
}

bool lowering_is_idle(const sm_alternative *way, int s) {
    return way->lowering.moves_only && way->lowering.step[s].kind == SM_STEP_EINSUM &&
           !(way->cost.step[s].expected_s > 0.0);
}

void lowering_put_step(sm_report *r, sm_data *steps, const lowering_shown *l, int s) {
    const sm_step *step = &l->way->lowering.step[s];
    const sm_lowering_step_cost *cost = &l->way->cost.step[s];
    sm_data *object = sm_put_object(r, steps, NULL);
    sm_mesh mesh;
    sm_lowering_mesh(&l->way->lowering, l->mesh, &mesh);
    sm_put(r, object, "op", sm_step_op(step));
    if (step->kind == SM_STEP_EINSUM) {
        sm_put(r, object, "flops|bytes", step->flops, step->local_bytes);
    } else {
        sm_put(r, object, "array|axes|bytes|wire_bytes", sm_array_words(r, l->einsum, step->array),
               sm_axes_words(r, &mesh, step->axes), step->bytes, sm_step_wire_bytes(&mesh, step));
        if (step->to >= 0) sm_put(r, object, "onto", l->einsum->index[step->to].name);
    }
    sm_put(r, object, "notation", sm_step_notation(r, l->einsum, l->mesh, &l->way->lowering, s));
    if (cost->algorithm) {
        sm_put(r, object, "algorithm|bytes_busiest_link|bound", cost->algorithm,
               cost->bytes_busiest_link, cost->latency_bound ? "latency" : "bandwidth");
    }
    sm_put(r, object, "lower_s|time_s", cost->lower_s, cost->expected_s);
    if (s == l->way->cost.overlapped) sm_put(r, object, "overlapped", (bool)true);
}

void lowering_step_row(sm_report *r, sm_table *table, const lowering_shown *l, int s) {
    const sm_step *step = &l->way->lowering.step[s];
    const sm_lowering_step_cost *cost = &l->way->cost.step[s];
    bool slice = step->kind == SM_STEP_SLICE, product = step->kind == SM_STEP_EINSUM;
    if (lowering_is_idle(l->way, s)) return;
    const char *note = cost->algorithm ? cost->algorithm : "";
    if (product)
        note = step->flops > 0.0 ? sm_textf(r, "%s FLOPs", sm_show_count(r, step->flops)) : "";
    if (s == l->way->cost.overlapped)
        note = sm_textf(r, "inside the einsum, %d chunks", l->way->cost.chunks);
    sm_page_row(r, table,
                product ? l->product : sm_step_words(r, l->einsum, l->mesh, &l->way->lowering, s),
                slice     ? NAN
                : product ? step->local_bytes
                          : step->bytes,
                slice ? NAN : cost->lower_s, slice ? NAN : cost->expected_s, note);
}

void lowering_why_collective(sm_report *r, sm_why *to, const lowering_shown *l, int s) {
    const sm_step *step = &l->way->lowering.step[s];
    const sm_lowering_step_cost *cost = &l->way->cost.step[s];
    sm_why *node = sm_page_why(r, to, sm_step_words(r, l->einsum, l->mesh, &l->way->lowering, s),
                               "bytes on the busiest link / its rate", cost->lower_s, "s");
    sm_page_leaf(r, node, "bytes of the whole array of one group", step->bytes, "B", "sizes given");
    sm_page_leaf(r, node, "bytes on the busiest link", cost->bytes_busiest_link, "B",
                 cost->algorithm);
}
