/* The times of training's steps: parts, ops and collectives, predicted beside measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scalemodel/page.h"
#include "prediction.h"
#include "run_train.h"

static const char *seconds_or_none(sm_report *r, double seconds) {
    return seconds > 0 ? sm_show_seconds(r, seconds) : "-";
}

static const char *ratio(sm_report *r, double predicted_s, double measured_s) {
    return predicted_s > 0 ? prediction_ratio(r, predicted_s, measured_s) : "-";
}

/* "name | predicted | measured | ratio", and both times as an object of the list. */
static void time_row(sm_report *r, sm_table *table, sm_data *list, const char *key,
                     const char *name, double predicted_s, double measured_s) {
    sm_data *one = sm_put_object(r, list, NULL);
    sm_put_text(r, one, key, name + strspn(name, " "));
    prediction_put_times(r, one, predicted_s, measured_s);
    sm_page_row(r, table, name, seconds_or_none(r, predicted_s), seconds_or_none(r, measured_s),
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
    static const char *const names[] = {"matmul", "attention", "vector", "gather"};
    return names[kind];
}

/* The ops by kind, as rows below theirs. */
static void show_kinds(sm_report *r, sm_table *table, const train_times *x) {
    sm_data *list = sm_put_array(r, r->data, "op_kinds");
    for (int kind = SM_OP_EINSUM; kind <= SM_OP_GATHER; kind++) {
        double predicted_s = 0, measured_s = 0;
        for (int i = 0; i < x->ops; i++) {
            if ((int)x->op[i].kind != kind) continue;
            predicted_s += x->op[i].predicted_s;
            measured_s += x->op[i].measured_s;
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
                                    "<|>predicted|>measured|>ratio");
    parts_of(q, of);
    for (int i = 0; i < PARTS; i++) {
        time_row(r, table, list, "part", of[i].name, of[i].predicted_s, of[i].measured_s);
        if (i == 0) show_kinds(r, table, x);
    }
    sm_page_row(r, table, "a step (mean)", sm_show_seconds(r, predicted_s),
                sm_show_seconds(r, x->step_s), ratio(r, predicted_s, x->step_s));
    sm_report_table(r, table);
    if (x->busiest != x->stage)
        sm_report_text(r, "Stage %d works longest by the prediction, stage %d by the clock.",
                       x->stage + 1, x->busiest + 1);
}

/* ---- ops ---- */

static int by_size(const void *a, const void *b) {
    const train_op_row *x = a, *y = b;
    double left = fmax(x->predicted_s, x->measured_s), right = fmax(y->predicted_s, y->measured_s);
    if (left == right) return strcmp(x->op, y->op);
    return left < right ? 1 : -1;
}

/* One op, or as its name what many of them take together: these have no calls. */
static void op_row(sm_report *r, sm_table *table, const train_op_row *o, const char *name,
                   const char *bound) {
    bool one = bound != NULL;
    sm_page_row(r, table, name, one ? train_way_name(o->way) : "", one ? bound : "",
                one ? sm_show_exact(r, o->calls) : "", seconds_or_none(r, o->predicted_s),
                seconds_or_none(r, o->measured_s), seconds_or_none(r, o->around_s),
                ratio(r, o->predicted_s, o->measured_s));
}

/* As many as a page takes, and the others as one. */
static void show_ops(sm_report *r, train_run *q) {
    enum { SHOWN = 20 };
    train_times *x = &q->times;
    train_op_row others = {.op = ""};
    sm_data *list = sm_put_array(r, r->data, "ops");
    sm_table *table = sm_page_table(r, sm_textf(r, "Ops of a step%s", whose(r, x)),
                                    "<|<pass|<bound|>calls|>predicted|>measured|>blocks|>ratio");
    qsort(x->op, (size_t)x->ops, sizeof *x->op, by_size);
    for (int i = 0; i < x->ops; i++) {
        const train_op_row *o = &x->op[i];
        const char *bound = !(o->predicted_s > 0)          ? "-"
                            : o->bound == SM_BOUND_COMPUTE ? "compute"
                            : o->bound == SM_BOUND_MEMORY  ? "memory"
                                                           : "latency";
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "op", o->op);
        sm_put_text(r, one, "kind", kind_name(o->kind));
        sm_put_text(r, one, "pass", train_way_name(o->way));
        sm_put_text(r, one, "bound", bound);
        sm_put(r, one, "calls", o->calls);
        sm_put(r, one, "calls_predicted", o->predicted_calls);
        sm_put(r, one, "flops", o->flops);
        sm_put(r, one, "bytes", o->bytes);
        prediction_put_times(r, one, o->predicted_s, o->measured_s);
        sm_put(r, one, "slowest_rank_s", o->most_s);
        sm_put(r, one, "blocks_s", o->around_s);
        if (i < SHOWN) op_row(r, table, o, o->op, bound);
        if (i < SHOWN) continue;
        others.predicted_s += o->predicted_s;
        others.measured_s += o->measured_s;
        others.around_s += o->around_s;
    }
    if (x->ops > SHOWN) op_row(r, table, &others, sm_textf(r, "%d others", x->ops - SHOWN), NULL);
    sm_report_table(r, table);
}

/* ---- collectives ---- */

/* The bytes are those of the first rank, and were compared on all of them. */
static void show_collectives(sm_report *r, const train_run *q) {
    const train_times *x = &q->times;
    sm_data *list = sm_put_array(r, r->data, "collectives");
    sm_table *table = sm_page_table(r, "Collectives of a step",
                                    "<|>bytes predicted|>counted|>predicted|>measured|>ratio");
    for (int k = 0; k < SM_COLLECTIVE_COUNT; k++) {
        double predicted = q->last.bytes_predicted[k], counted = q->last.bytes_counted[k];
        double predicted_s = 0, measured_s = x->collective_s[k];
        for (int i = 0; i < x->moves; i++)
            if ((int)x->move[i].op == k) predicted_s += x->move[i].predicted_s;
        if (!(predicted > 0 || counted > 0 || measured_s > 0)) continue;
        const char *name = sm_collective_name((sm_collective)k);
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "op", name);
        sm_put(r, one, "bytes_predicted", predicted);
        sm_put(r, one, "bytes_counted", counted);
        prediction_put_times(r, one, predicted_s, measured_s);
        sm_page_row(r, table, name, sm_show_exact(r, predicted), sm_show_exact(r, counted),
                    seconds_or_none(r, predicted_s), seconds_or_none(r, measured_s),
                    ratio(r, predicted_s, measured_s));
    }
    if (table && table->rows) sm_report_table(r, table);
    prediction_say_bytes(r, "step", q->bytes_apart);
}

static int by_time(const void *a, const void *b) {
    const train_move_row *x = a, *y = b;
    double left = fmax(x->predicted_s, x->measured_s), right = fmax(y->predicted_s, y->measured_s);
    if (left == right) return strcmp(x->array, y->array);
    return left < right ? 1 : -1;
}

static void show_arrays(sm_report *r, train_run *q) {
    enum { SHOWN = 12 };
    train_times *x = &q->times;
    sm_data *list = sm_put_array(r, r->data, "collectives_by_array");
    sm_table *table = sm_page_table(r, sm_textf(r, "Arrays that travel%s", whose(r, x)),
                                    "<|<of|<pass|>calls|>predicted|>measured|>ratio");
    qsort(x->move, (size_t)x->moves, sizeof *x->move, by_time);
    for (int i = 0; i < x->moves; i++) {
        const train_move_row *m = &x->move[i];
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "collective", sm_collective_name(m->op));
        sm_put_text(r, one, "array", m->array);
        sm_put_text(r, one, "pass", train_way_name(m->way));
        sm_put(r, one, "calls", m->calls);
        sm_put(r, one, "calls_predicted", m->predicted_calls);
        sm_put(r, one, "bytes", m->bytes);
        sm_put(r, one, "exposed_s", m->exposed_s);
        prediction_put_times(r, one, m->predicted_s, m->measured_s);
        if (i < SHOWN)
            sm_page_row(r, table, sm_collective_name(m->op), m->array, train_way_name(m->way),
                        sm_show_exact(r, m->calls), seconds_or_none(r, m->predicted_s),
                        seconds_or_none(r, m->measured_s), ratio(r, m->predicted_s, m->measured_s));
    }
    if (x->moves > 1) sm_report_table(r, table);
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
    train_gap *gap = sm_arena_array(r->arena, TRAIN_MOST_GAPS, sizeof *gap);
    double predicted = q->detail.price.expected_s, measured = q->times.step_s;
    double gap_s = measured - predicted;
    if (!gap) r->out_of_memory = true;
    if (!gap) return;
    int n = train_gaps(&q->times, &q->detail.price, gap);
    sm_data *object = sm_put_object(r, r->data, "gap");
    prediction_put_times(r, object, predicted, measured);
    sm_data *list = sm_put_array(r, object, "rows");
    for (int i = 0; i < n; i++) {
        sm_data *one = sm_put_object(r, list, NULL);
        sm_put_text(r, one, "row", gap[i].name);
        prediction_put_times(r, one, gap[i].predicted_s, gap[i].measured_s);
        sm_put(r, one, "share", (gap[i].measured_s - gap[i].predicted_s) / gap_s);
    }
    if (fabs(gap_s) < 0.03 * measured)
        sm_report_text(r, "A step took what was predicted, within 3 %%.");
    else say_gap(r, q, gap, n, gap_s);
}

void train_report_times(sm_report *r, train_run *q) {
    train_times_predict(&q->detail, &q->times);
    show_parts(r, q);
    show_ops(r, q);
    show_collectives(r, q);
    show_arrays(r, q);
    show_gap(r, q);
}
