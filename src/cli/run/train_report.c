/* What run train answers: losses, the time of a step, where it goes and what explains the gap. */
#include "program.h"
#include "run_train.h"
#include <assert.h>

/* A run of training as a row of measurements: the model and the plan, so that the row is priced
 * again as it was. */

/* Layers of a row are dense at first and have experts from then on. */
static bool fits_a_row(const sm_model *m) {
    int dense = 0;
    while (dense < m->L && m->kind[m->layer[dense]].E == 0) dense++;
    for (int l = dense; l < m->L; l++)
        if (m->kind[m->layer[l]].E == 0) return false;
    for (int l = 1; l < m->L; l++)
        if (l != dense && m->layer[l] != m->layer[l - 1]) return false;
    return true;
}

static void tell_model(const sm_model *m, sm_training_row *t) {
    const sm_layer_kind *first = &m->kind[m->layer[0]], *last = &m->kind[m->layer[m->L - 1]];
    t->model.name = m->name;
    t->model.layers = m->L;
    t->model.d_model = m->D;
    t->model.vocab = m->V;
    t->model.heads = last->N;
    t->model.kv_heads = last->K;
    t->model.d_head = last->H;
    t->model.gated_mlp = SM_YES;
    t->model.tied = m->tied ? SM_YES : SM_NO;
    if (first->E == 0) t->model.d_ff = first->F;
    if (last->E == 0) return;
    t->model.experts = last->E;
    t->model.top_k = last->k_top;
    t->model.d_ff_expert = last->F_expert;
    t->model.shared_experts = last->E_shared;
    while (m->kind[m->layer[t->model.first_dense_layers]].E == 0) t->model.first_dense_layers++;
}

static sm_status train_record(sm_report *r, const train_run *q, double step_s, sm_error *err) {
    char plan[512];
    if (!q->given.record) return SM_OK;
    if (!fits_a_row(&q->model))
        return sm_fail(err, SM_BAD_INPUT, "%s has layers that a row of measurements cannot tell",
                       q->model.name);
    sm_truth_row row = record_begin(SM_TRUTH_TRAINING, q->system.chip.name, step_s);
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    tell_model(&q->model, &row.of.training);
    const sm_plan *p = &q->plan;
    row.of.training.tp = p->tensor;
    row.of.training.cp = p->context;
    row.of.training.pp = p->pipeline;
    row.of.training.vp = p->virtual_stages;
    row.of.training.ep = p->expert;
    row.of.training.dp = p->data * p->fsdp * p->expert;
    row.of.training.sp = p->seq ? SM_YES : SM_NO;
    row.of.training.fsdp = p->fsdp > 1 ? SM_YES : SM_NO;
    row.of.training.zero_stage = p->fsdp > 1 ? 3 : p->zero;
    row.of.training.recompute = p->recompute_ops[0] ? "other" : sm_recompute_names[p->recompute];
    row.of.training.schedule = p->pipeline > 1 ? sm_schedule_names[p->schedule] : "";
    row.of.training.microbatch = p->microbatch;
    row.of.training.task = "pretrain";
    row.of.training.chips = row.of.training.devices = row.of.training.chips_per_node =
        sm_train_setup_ranks(&q->setup);
    row.of.training.precision = row.of.training.precision_class = sm_dtype_name(q->plan.dtype);
    row.of.training.seq_len = q->setup.tokens;
    row.of.training.global_batch_sequences = q->setup.sequences;
    row.of.training.step_time_s = step_s;
    row.of.training.peak_memory_bytes = q->memory.most.total;
    row.of.training.plan = plan;
    row.of.training.notes = sm_arena_printf(r->arena, "on %s, median of %d steps", ranks_backend(),
                                            q->end - q->first > 1 ? q->end - q->first - 1 : 1);
    if (!row.of.training.notes) return sm_fail_memory(err);
    return record_rows(r, q->given.record, &row, 1, err);
}

/* The times of training's steps: parts, ops and collectives, predicted beside measured. */

static double or_none(double seconds) { return seconds > 0 ? seconds : NAN; }

static const char *ratio(sm_report *r, double predicted_s, double measured_s) {
    return predicted_s > 0 ? prediction_ratio(r, predicted_s, measured_s) : "-";
}

/* "name | predicted | measured | ratio", and both times as an object of the list. */
static void time_row(sm_report *r, sm_table *table, sm_data *list, const char *key,
                     const char *name, double predicted_s, double measured_s) {
    sm_data *one = sm_put_object(r, list, NULL);
    sm_put(r, one, key, name + strspn(name, " "));
    prediction_put_times(r, one, predicted_s, measured_s);
    sm_page_row(r, table, name, or_none(predicted_s), or_none(measured_s),
                ratio(r, predicted_s, measured_s));
}

/* ---- parts ---- */

/* The planner parts an op's time by what bounds it, and a clock cannot: both kinds are one. */
typedef struct part {
    const char *name;
    double predicted_s, measured_s;
} part;
enum { PARTS = 5 };
static void parts_of(const train_run *q, part *of) {
    const sm_breakdown *b = &q->detail.price.breakdown;
    const double *s = q->times.time_s;
    const part all[PARTS] = {
        {"ops", b->math + b->memory,
         s[SM_TRAIN_TIME_MATMUL] + s[SM_TRAIN_TIME_VECTOR] + s[SM_TRAIN_TIME_AROUND]},
        {"collectives", b->network_exposed, s[SM_TRAIN_TIME_COLLECTIVE]},
        {"pipeline", b->bubble, s[SM_TRAIN_TIME_PIPELINE]},
        {"optimizer", b->optimizer, s[SM_TRAIN_TIME_OPTIMIZER]},
        {"rest", b->other, s[SM_TRAIN_TIME_REST]}};
    for (int i = 0; i < PARTS; i++) {
        of[i] = all[i];
        if (of[i].predicted_s < 1e-12) of[i].predicted_s = 0;
    }
}

/* ", stage 2 of 4, mean of 2 ranks": whose times they are. */
static const char *whose(sm_report *r, const train_times *x) {
    const char *stage =
        x->stages == 1 ? "" : sm_textf(r, ", stage %d of %d", x->stage + 1, x->stages);
    return x->ranks == 1 ? stage : sm_textf(r, "%s, mean of %d ranks", stage, x->ranks);
}

static const char *kind_name(sm_op_kind kind) {
    static const char *const names[] = {"matmul", "attention", "vector", "gather", "kernel"};
    return names[kind];
}

/* The ops by kind, as rows below theirs. */
static void show_kinds(sm_report *r, sm_table *table, const train_times *x) {
    sm_data *list = sm_put_array(r, r->data, "op_kinds");
    for (int kind = SM_OP_EINSUM; kind <= SM_OP_KERNEL; kind++) {
        double predicted_s = 0, measured_s = 0;
        for (int i = 0; i < x->ops.n; i++) {
            if (x->ops.row[i].kind != kind) continue;
            predicted_s += x->ops.row[i].predicted_s;
            measured_s += x->ops.row[i].measured_s;
        }
        if (predicted_s > 0 || measured_s > 0)
            time_row(r, table, list, "kind", sm_textf(r, "  %s", kind_name((sm_op_kind)kind)),
                     predicted_s, measured_s);
    }
}

static void show_parts(sm_report *r, const train_run *q) {
    part of[PARTS];
    const train_times *x = &q->times;
    double predicted_s = q->detail.price.expected_s;
    sm_data *list = sm_put_array(r, r->data, "parts");
    sm_table *table = sm_page_table(r, sm_textf(r, "Where the time of a step goes%s", whose(r, x)),
                                    "<|>{s}predicted|>{s}measured|>ratio");
    parts_of(q, of);
    for (int i = 0; i < PARTS; i++) {
        time_row(r, table, list, "part", of[i].name, of[i].predicted_s, of[i].measured_s);
        if (i == 0) show_kinds(r, table, x);
    }
    sm_page_row(r, table, "a step (mean)", predicted_s, x->step_s,
                ratio(r, predicted_s, x->step_s));
    sm_report_text(r,
                   "Predicted is what 'train --as-run' prints for this plan: in %s, each op and "
                   "each collective after the one before.",
                   sm_dtype_name(q->plan.dtype));
    if (x->busiest != x->stage)
        sm_report_text(r, "Stage %d works longest by the prediction, stage %d by the clock.",
                       x->stage + 1, x->busiest + 1);
}

/* ---- ops ---- */

SM_ORDER(by_size, train_row,
         SM_BY_KEY(fmax(y->predicted_s, y->measured_s), fmax(x->predicted_s, x->measured_s))
             SM_BY_TEXT(name))

/* As many as a page takes, and the others as one. */
static void show_ops(sm_report *r, train_run *q) {
    enum { SHOWN = 20 };
    train_times *x = &q->times;
    train_row others = {.kind = 0};
    const sm_listing list =
        sm_page_list(r, r->data, "ops", sm_textf(r, "Ops of a step%s", whose(r, x)),
                     "op<|kind|pass<pass|bound<bound|calls>{=}calls|calls_predicted|flops|bytes|"
                     "time_s.predicted|time_s.measured|slowest_rank_s|blocks_s|"
                     ">{s}predicted|>{s}measured|>{s}blocks|>ratio");
    qsort(x->ops.row, (size_t)x->ops.n, sizeof *x->ops.row, by_size);
    for (int i = 0; i < x->ops.n; i++) {
        const train_row *o = &x->ops.row[i];
        sm_list_row(&list,
                    i<SHOWN, o->name, kind_name((sm_op_kind)o->kind), train_way_name(o->way),
                        o->predicted_s> 0
                        ? sm_bound_name(o->bound)
                        : "-",
                    o->calls, o->predicted_calls, o->flops, o->bytes, o->predicted_s, o->measured_s,
                    o->most_s, o->around_s, or_none(o->predicted_s), or_none(o->measured_s),
                    or_none(o->around_s), ratio(r, o->predicted_s, o->measured_s));
        if (i < SHOWN) continue;
        others.predicted_s += o->predicted_s;
        others.measured_s += o->measured_s;
        others.around_s += o->around_s;
    }
    if (x->ops.n > SHOWN)
        sm_page_row(r, list.table, sm_textf(r, "%d others", x->ops.n - SHOWN), "", "", "",
                    or_none(others.predicted_s), or_none(others.measured_s),
                    or_none(others.around_s), ratio(r, others.predicted_s, others.measured_s));
}

/* ---- collectives ---- */

/* The bytes are those of the first rank, and were compared on all of them. */
static void show_collectives(sm_report *r, const train_run *q) {
    const train_times *x = &q->times;
    const sm_listing list = sm_page_list(
        r, r->data, "collectives", "Collectives of a step",
        "op<|bytes_predicted>{=}bytes predicted|bytes_counted>{=}counted|time_s.predicted|"
        "time_s.measured|>{s}predicted|>{s}measured|>ratio");
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        double predicted = q->last.bytes_predicted[k], counted = q->last.bytes_counted[k];
        double predicted_s = 0, measured_s = x->collective_s[k];
        for (int i = 0; i < x->moves.n; i++)
            if (x->moves.row[i].kind == k) predicted_s += x->moves.row[i].predicted_s;
        if (!(predicted > 0 || counted > 0 || measured_s > 0)) continue;
        sm_list_row(&list, true, sm_collective_name((sm_collective)k), predicted, counted,
                    predicted_s, measured_s, or_none(predicted_s), or_none(measured_s),
                    ratio(r, predicted_s, measured_s));
    }
    prediction_say_bytes(r, "step", q->bytes_apart);
}

static void show_arrays(sm_report *r, train_run *q) {
    enum { SHOWN = 12 };
    train_times *x = &q->times;
    const sm_listing list = sm_page_list(
        r, r->data, "collectives_by_array", sm_textf(r, "Arrays that travel%s", whose(r, x)),
        "collective<|array<of|pass<pass|calls>{=}calls|calls_predicted|bytes|exposed_s|"
        "time_s.predicted|time_s.measured|>{s}predicted|>{s}measured|>ratio");
    qsort(x->moves.row, (size_t)x->moves.n, sizeof *x->moves.row, by_size);
    for (int i = 0; i < x->moves.n; i++) {
        const train_row *m = &x->moves.row[i];
        sm_list_row(&list, i < SHOWN && x->moves.n > 1, sm_collective_name((sm_collective)m->kind),
                    m->name, train_way_name(m->way), m->calls, m->predicted_calls, m->bytes,
                    m->exposed_s, m->predicted_s, m->measured_s, or_none(m->predicted_s),
                    or_none(m->measured_s), ratio(r, m->predicted_s, m->measured_s));
    }
}

/* ---- the gap ---- */

/* "attention, backward 1.2 ms (40 %), ...": the rows that explain three quarters of the gap, three
 * at most. */
static const char *rows_that_explain(sm_report *r, const train_gap *gap, int n, double gap_s) {
    const char *text = "";
    double told = 0;
    for (int i = 0, named = 0; i < n && named < 3 && told < 0.75; i++) {
        double share = (gap[i].measured_s - gap[i].predicted_s) / gap_s;
        if (share <= 0) continue;
        text = sm_textf(r, "%s%s%s (%s of the gap)", text, named ? "; " : "", gap[i].name,
                        sm_show_percent(r, share));
        told += share;
        named++;
    }
    return text;
}

/* The part of a step that most of the gap is in; and of the rows, what went the other way, when it
 * hides a part of the gap. */
static void say_gap(sm_report *r, const train_run *q, const train_gap *gap, int n, double gap_s) {
    part of[PARTS];
    double most = -INFINITY;
    const char *name = "";
    parts_of(q, of);
    for (int i = 0; i < PARTS; i++) {
        double share = (of[i].measured_s - of[i].predicted_s) / gap_s;
        if (share > most) name = of[i].name;
        most = fmax(most, share);
    }
    sm_report_text(r, "A step took %s %s than predicted, %s of that in %s: %s.",
                   sm_show_seconds(r, fabs(gap_s)), gap_s > 0 ? "longer" : "less",
                   sm_show_percent(r, most), name, rows_that_explain(r, gap, n, gap_s));
    int i = 0;
    while (i < n && (gap[i].measured_s - gap[i].predicted_s) / gap_s > -0.1) i++;
    if (i < n)
        sm_report_text(r, "The other way: %s, %s predicted and %s measured.", gap[i].name,
                       sm_show_seconds(r, gap[i].predicted_s),
                       sm_show_seconds(r, gap[i].measured_s));
}

static void show_gap(sm_report *r, const train_run *q) {
    train_gap *gap = sm_report_room(r, TRAIN_MOST_GAPS, sizeof *gap);
    double predicted = q->detail.price.expected_s, measured = q->times.step_s;
    double gap_s = measured - predicted;
    if (!gap) return;
    int n = train_gaps(&q->times, &q->detail.price, gap);
    sm_data *object = sm_put_object(r, r->data, "gap");
    prediction_put_times(r, object, predicted, measured);
    sm_data *list = sm_put_array(r, object, "rows");
    for (int i = 0; i < n; i++) {
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put(r, one, "row", gap[i].name);
        prediction_put_times(r, one, gap[i].predicted_s, gap[i].measured_s);
        sm_put(r, one, "share", (gap[i].measured_s - gap[i].predicted_s) / gap_s);
    }
    if (fabs(gap_s) < 0.03 * measured)
        sm_report_text(r, "A step took what was predicted, within 3 %%.");
    else say_gap(r, q, gap, n, gap_s);
}

/* ---- files ---- */

static sm_status write_curve(const void *context, FILE *out, sm_error *err) {
    const train_run *q = context;
    (void)err;
    fputs("step,loss,seconds\n", out);
    for (int i = q->first; i < q->end; i++)
        fprintf(out, "%d,%.6f,%.6f\n", i + 1, q->loss[i], q->seconds[i]);
    return SM_OK;
}

static void draw_curve(sm_report *r, const train_run *q) {
    char plan[256];
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    const sm_series series = {
        "loss", SM_MARK_LINE, (size_t)(q->end - q->first), q->number + q->first, q->loss + q->first,
        NULL};
    const sm_panel panel = {.title = "Loss",
                            .x_label = "step",
                            .y_label = "nats per byte",
                            .x_unit = "",
                            .y_unit = "",
                            .n = 1,
                            .series = &series};
    sm_report_chart(r, &(sm_chart){q->model.name, sm_textf(r, "%s", plan), 1, &panel});
}

/* ---- memory ---- */

static void memory_row(sm_report *r, sm_table *table, sm_data *object, const char *name,
                       double predicted, double measured) {
    sm_put(r, sm_put_object(r, object, name), "predicted|measured", predicted, measured);
    sm_page_row(r, table, name, predicted, measured, prediction_ratio(r, predicted, measured));
}

static void show_memory(sm_report *r, const sm_memory *predicted, const train_memory *measured) {
    const double parts[SM_TRAIN_MEMORY_COUNT] = {[SM_TRAIN_MEMORY_PARAMS] = predicted->params,
                                                 [SM_TRAIN_MEMORY_GRADIENTS] = predicted->gradients,
                                                 [SM_TRAIN_MEMORY_OPTIMIZER] = predicted->optimizer,
                                                 [SM_TRAIN_MEMORY_ACTIVATIONS] =
                                                     predicted->activations,
                                                 [SM_TRAIN_MEMORY_BUFFERS] = predicted->buffers,
                                                 [SM_TRAIN_MEMORY_HOST] = predicted->host};
    sm_data *object = sm_put_object(r, r->data, "memory");
    sm_table *table = sm_page_table(
        r, sm_textf(r, "Memory at its highest, on rank %d, which has most", measured->rank),
        "<|>{B}predicted|>{B}measured|>ratio");
    for (int i = 0; i < SM_TRAIN_MEMORY_COUNT; i++) {
        bool host = i == SM_TRAIN_MEMORY_HOST;
        double seen = host ? measured->most.most[i] : measured->most.at_most[i];
        if (!host || parts[i] > 0 || seen > 0)
            memory_row(r, table, object, sm_train_memory_names[i], parts[i], seen);
    }
    memory_row(r, table, object, "total", predicted->total, measured->most.total);
    if (!(measured->process_bytes > 0)) return;
    sm_put(r, object, "process", measured->process_bytes);
    sm_report_text(r,
                   "The process of a rank had %s in memory at most, libraries and text included.",
                   sm_show_bytes(r, measured->process_bytes));
}

/* ---- the answer ---- */

static void show_head(sm_report *r, const train_run *q) {
    char plan[256];
    int ranks = sm_train_setup_ranks(&q->setup), last = q->end - 1;
    sm_plan_format(&q->plan, 0, plan, sizeof plan);
    sm_put(r, r->data, "command|model|plan|backend|ranks|steps", "run train", q->model.name, plan,
           ranks_backend(), ranks, q->setup.steps);
    sm_report_text(r, "%s under %s on %d rank%s (%s): batches of %d sequences of %d bytes",
                   q->model.name, plan, ranks, ranks == 1 ? "" : "s", ranks_backend(),
                   q->setup.sequences, q->setup.tokens);
    sm_put(r, r->data, "weights_from", q->from);
    if (q->from && !q->given.resume)
        sm_report_text(r, "It begins with the weights that %.120s holds; --fresh draws others.",
                       q->from);
    sm_data *list = sm_put_array(r, r->data, "losses");
    for (int i = q->first; i <= last; i++) sm_put(r, list, NULL, q->loss[i]);
    if (q->setup.pairs) {
        sm_put(r, r->data, "pairs|beta|reference_s", (double)q->setup.pairs, q->setup.beta,
               q->scored_s);
        sm_report_text(r, "The first weights scored %zu pairs, as the reference, in %s.",
                       q->setup.pairs, sm_show_seconds(r, q->scored_s));
    }
    sm_report_text(r, "Loss %.4f nats a %s after %d steps, %.4f at step %d.", q->loss[last],
                   q->setup.pairs ? "pair" : "byte", last + 1, q->loss[q->first], q->first + 1);
}

sm_status train_report(sm_report *r, train_run *q, sm_error *err) {
    show_head(r, q);
    sm_status status = q->given.curve ? cli_write(q->given.curve, write_curve, q, err) : SM_OK;
    if (q->given.plot) draw_curve(r, q);
    /* The median; the first step also warms up, and is left out where there are others. Sorts. */
    int from = q->end - q->first > 1 ? q->first + 1 : q->first;
    assert(q->end > from);
    double step_s = sm_spread_of(q->seconds + from, q->end - from).median;
    double predicted_s = q->detail.price.expected_s, tokens = train_run_tokens(q);
    sm_put(r, sm_put_object(r, r->data, "step_s"), "predicted|measured", predicted_s, step_s);
    sm_put(r, sm_put_object(r, r->data, "tokens_per_s"), "predicted|measured", tokens / predicted_s,
           tokens / step_s);
    sm_report_text(r, "A step took %s (median), %s; predicted for %s: %s.",
                   sm_show_seconds(r, step_s), sm_show_rate(r, tokens / step_s, "tokens/s"),
                   q->system.text, sm_show_seconds(r, predicted_s));
    train_failures_report(r, q);
    /* Parts of a step, ops and collectives, predicted beside measured, and what explains the gap.
     */
    train_times_predict(&q->detail, &q->times);
    show_parts(r, q);
    show_ops(r, q);
    show_collectives(r, q);
    show_arrays(r, q);
    show_gap(r, q);
    prediction_say_placeholder(r, &q->system);
    show_memory(r, &q->detail.price.memory, &q->memory);
    if (!status) status = train_record(r, q, step_s, err);
    if (status) return status;
    return q->bytes_apart > 0 ? SM_NEGATIVE : SM_OK;
}
