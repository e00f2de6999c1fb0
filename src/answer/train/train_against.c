/* train_against: where the step of one plan differs from that of another, cost line by cost line:
 * ops by what they compute, collectives by what of them shows, then bubble, optimizer and gaps. The
 * lines add up to the difference of the steps. */
#include "train_asked.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_LINES = 9 };

typedef struct cost_line {
    const char *what;
    double seconds[2];
} cost_line;
typedef struct cost_lines {
    sm_report *r;
    cost_line *line;
    int n, room;
} cost_lines;

static void add(cost_lines *l, int side, const char *what, double seconds) {
    int at = 0;
    while (at < l->n && strcmp(l->line[at].what, what) != 0) at++;
    if (at == l->room) return;
    if (at == l->n) l->line[l->n++] = (cost_line){.what = what};
    l->line[at].seconds[side] += seconds;
}

static void add_plan(cost_lines *l, int side, const sm_plan_detail *d) {
    const sm_breakdown *b = &d->price.breakdown;
    double rest = d->price.expected_s;
    for (int i = 0; i < d->lines.ops; i++) {
        const sm_plan_op *op = &d->lines.op[i];
        add(l, side,
            sm_textf(l->r, "%s, %s", op->op, op->again ? "recomputed" : sm_phase_name(op->phase)),
            op->time_s);
        rest -= op->time_s;
    }
    for (int i = 0; i < d->lines.collectives; i++) {
        const sm_plan_collective *c = &d->lines.collective[i];
        add(l, side, sm_textf(l->r, "%s over %s, %s", sm_collective_name(c->op), c->axis, c->phase),
            c->exposed_s);
        rest -= c->exposed_s;
    }
    add(l, side, "bubble", b->bubble);
    add(l, side, "optimizer", b->optimizer);
    add(l, side, "gaps between steps", b->other);
    add(l, side, "other network", rest - b->bubble - b->optimizer - b->other);
}

static double gap(const cost_line *l) { return l->seconds[1] - l->seconds[0]; }

static int by_gap(const void *a, const void *b) {
    const cost_line *x = a, *y = b;
    double dx = fabs(gap(x)), dy = fabs(gap(y));
    return dx != dy ? (dx > dy ? -1 : 1) : strcmp(x->what, y->what);
}

static void line_row(sm_report *r, sm_table *table, const cost_line *l) {
    const char *more = sm_show_seconds(r, fabs(gap(l)));
    sm_page_row(r, table, l->what, sm_show_seconds(r, l->seconds[0]),
                sm_show_seconds(r, l->seconds[1]), sm_textf(r, gap(l) < 0.0 ? "-%s" : "+%s", more));
}

static void show(sm_report *r, const sm_plan_shown *plan, const char *other,
                 const sm_plan_detail *detail, cost_lines *l) {
    const double step[2] = {plan->detail.price.expected_s, detail->price.expected_s};
    sm_report_heading(r, "Against another plan: %s a step, %s %s", sm_show_seconds(r, step[1]),
                      sm_show_seconds(r, fabs(step[1] - step[0])),
                      step[1] < step[0] ? "less" : "more");
    sm_report_text(r, "%s", other);
    if (!detail->price.fits) sm_report_text(r, "It does not fit in memory.");
    qsort(l->line, (size_t)l->n, sizeof *l->line, by_gap);
    sm_table *table = sm_page_table(r, NULL, "<where they differ|>this|>the other|>difference");
    sm_data *object = sm_put_object(r, r->data, "against");
    sm_put(r, object, "plan|step_time_s|difference_s", other, step[1], step[1] - step[0]);
    sm_data *list = sm_put_array(r, object, "lines");
    cost_line rest = {.what = "all other lines"};
    for (int i = 0; i < l->n; i++) {
        sm_put(r, sm_put_object(r, list, NULL), "what|this_s|other_s", l->line[i].what,
               l->line[i].seconds[0], l->line[i].seconds[1]);
        if (i < SHOWN_LINES) line_row(r, table, &l->line[i]);
        else
            for (int s = 0; s < 2; s++) rest.seconds[s] += l->line[i].seconds[s];
    }
    if (l->n > SHOWN_LINES) line_row(r, table, &rest);
    sm_report_table(r, table);
}

/* The other plan: as given, or the best that has its keys. */
static sm_status find_other(const sm_train_asked *q, sm_train *train, sm_plan *other,
                            sm_error *err) {
    const sm_search_result *found;
    sm_search_options search = q->search;
    sm_status status = sm_plan_parse(&q->in.other, other, err);
    if (status || sm_train_is_whole(other, q->system->chips)) return status;
    search.fixed = *other;
    if (q->in_frameworks) search.space = q->all;
    search.top = 1;
    search.progress = NULL;
    status = sm_train_search(train, &search, q->report->arena, &found, err);
    if (!status) *other = *sm_search_result_at(found, 0).plan;
    if (status == SM_NEGATIVE) status = SM_BAD_INPUT;
    return status;
}

sm_status sm_train_against_plan(const sm_train_asked *q, sm_train *train, const sm_plan_shown *plan,
                                sm_error *err) {
    sm_report *r = q->report;
    sm_plan other;
    sm_plan_detail detail;
    sm_status status = find_other(q, train, &other, err);
    if (!status) status = sm_train_detail(train, &other, r->arena, &detail, err);
    if (status) return sm_question_blame(&q->in.other, status, err);
    const sm_plan_lines *a = &plan->detail.lines, *b = &detail.lines;
    cost_lines l = {.r = r, .room = a->ops + a->collectives + b->ops + b->collectives + 8};
    l.line = sm_arena_array(r->arena, (size_t)l.room, sizeof *l.line);
    if (!l.line) return sm_fail_memory(err);
    add_plan(&l, 0, &plan->detail);
    add_plan(&l, 1, &detail);
    show(r, plan, sm_train_plan_words(r, q->system, &other), &detail, &l);
    return SM_OK;
}
