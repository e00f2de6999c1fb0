/* train_against: where the step of one plan differs from that of another, cost line by cost line:
 * ops by what they compute, collectives by what of them shows, then bubble, optimizer and gaps. The
 * lines add up to the difference of the steps. */
#include "profile_asked.h"
#include "train_asked.h"

enum { SHOWN_LINES = 9 };

static double add(sm_report *r, profile_side *side, const char *what, double seconds) {
    profile_add_part(r, side,
                     (profile_part){.kind = what, .place = "", .seconds = seconds, .count = 1});
    return seconds;
}

static void add_plan(sm_report *r, profile_side *side, const sm_plan_detail *d) {
    const sm_breakdown *b = &d->price.breakdown;
    double rest = side->total_s = d->price.expected_s;
    for (int i = 0; i < d->lines.ops; i++) {
        const sm_plan_op *op = &d->lines.op[i];
        const char *way = op->again ? "recomputed" : sm_phase_name(op->phase);
        rest -= add(r, side, sm_textf(r, "%s, %s", op->op, way), op->time_s);
    }
    for (int i = 0; i < d->lines.collectives; i++) {
        const sm_plan_collective *c = &d->lines.collective[i];
        rest -= add(r, side,
                    sm_textf(r, "%s over %s, %s", sm_collective_name(c->op), c->axis, c->phase),
                    c->exposed_s);
    }
    rest -= add(r, side, "bubble", b->bubble);
    rest -= add(r, side, "optimizer", b->optimizer);
    rest -= add(r, side, "gaps between steps", b->other);
    add(r, side, "other network", rest);
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
    profile_side is = {.name = "this"}, was = {.name = "other"};
    const char *words = sm_train_plan_words(r, q->system, &other);
    add_plan(r, &is, &plan->detail);
    add_plan(r, &was, &detail);
    sm_report_heading(r, "Against another plan: %s a step, %s %s", sm_show_seconds(r, was.total_s),
                      sm_show_seconds(r, fabs(was.total_s - is.total_s)),
                      was.total_s < is.total_s ? "less" : "more");
    sm_report_text(r, "%s", words);
    sm_put(r, r->data, "against_plan", words);
    if (!detail.price.fits) sm_report_text(r, "It does not fit in memory.");
    profile_compare(r, (const profile_side *[]){&was, &is}, SHOWN_LINES, 0);
    return SM_OK;
}
