/* train_frameworks: a question put to each framework that can run it, by constants of its own; the
 * answer keeps to the one whose step is surest to be short. */
#include "train_asked.h"

#include <stdlib.h>

#define FAR_BEHIND 4.0 /* a framework whose best plan takes so many times the best is not told */

typedef struct turns {
    sm_train_asked *best; /* the question as put to the best one; NULL: none has a plan */
    const sm_search_result *found;
    sm_search_effort total;
    sm_train_framework first;
    double least, least_low; /* of what plans are ranked by: the best one's, and what no plan of any
                                framework is below */
} turns;

/* What fits by its upper end, before what does not by memory; of two alike the one that can do
 * more. */
static int by_rank(const void *a, const void *b) {
    const sm_train_framework *x = a, *y = b;
    if (x->fits != y->fits) return x->fits ? -1 : 1;
    const double mine = x->fits ? x->high : x->memory, other = y->fits ? y->high : y->memory;
    if (mine != other) return mine < other ? -1 : 1;
    return (x->space < y->space) - (x->space > y->space);
}

/* The question as one framework is asked it. */
static sm_status question_of(const sm_train_asked *q, const sm_plan_space *space,
                             sm_train_asked **out, sm_error *err) {
    const sm_framework_job job = {space->context, SM_EVIDENCE_TRAINING, q->in.model,
                                  &q->system->chip};
    const sm_calibration *c = NULL;
    sm_train_asked *own = *out = sm_arena_alloc(q->report->arena, sizeof *own);
    if (!own) return sm_fail_memory(err);
    *own = *q;
    own->space.job = space->job; /* types and kernels are limits here: they are kept to */
    sm_framework_space(space->context, &own->space);
    own->search.space = &own->space;
    own->kept_to = space->context;
    sm_status status = sm_framework_calibration(&job, NULL, q->report->arena, &c, err);
    if (c) own->in.calibration = c;
    return status ? status : sm_train_keep_unsearched(own, err);
}

/* The plan given whole, or the best one of a search; best->plan is NULL where there is none. */
static sm_status find_one(const sm_train_asked *own, sm_train *train, sm_found *best,
                          const sm_search_result **found, sm_search_effort *effort, sm_error *err) {
    sm_error none = {.status = SM_OK};
    if (own->priced_only) {
        sm_price_of_plan *price = sm_arena_alloc(own->report->arena, sizeof *price);
        if (!price) return sm_fail_memory(err);
        *best = (sm_found){&own->search.fixed, price};
        *effort = (sm_search_effort){.space = 1, .evaluated = 1, .optimal = true};
        return sm_train_price(train, &own->search.fixed, price, err);
    }
    sm_status status = sm_train_search(train, &own->search, own->report->arena, found, &none);
    if (status > SM_NEGATIVE) *err = none;
    if (status > SM_NEGATIVE) return status;
    *effort = *sm_search_result_effort(*found);
    if (sm_search_result_count(*found) > 0) *best = sm_search_result_at(*found, 0);
    return SM_OK;
}

static sm_status ask_one(const sm_train_asked *q, sm_train_asked *own, sm_train *train, turns *t,
                         sm_train_framework *row, sm_error *err) {
    const sm_search_result *found = NULL;
    sm_found best = {NULL, NULL};
    sm_search_effort effort;
    sm_train_with_software(own, train);
    sm_status status = find_one(own, train, &best, &found, &effort, err);
    if (status) return status;
    t->total.space += effort.space;
    t->total.evaluated += effort.evaluated;
    t->total.pruned += effort.pruned;
    t->total.seconds += effort.seconds;
    t->total.optimal = t->total.optimal && effort.optimal;
    t->total.least_memory_bytes = fmin(t->total.least_memory_bytes, effort.least_memory_bytes);
    if (!best.plan && !effort.optimal) t->least_low = 0;
    if (!best.plan) return SM_OK;
    const double high = sm_train_ranked_by(own, best.price).high;
    *row = (sm_train_framework){.framework = own->space.context,
                                .calibration = own->in.calibration,
                                .plan = sm_train_plan_words(q->report, q->system, best.plan),
                                .expected_s = best.price->expected_s,
                                .most_s = sm_step_interval(own, best.price).high,
                                .memory = best.price->memory.total,
                                .fits = best.price->fits,
                                .measured = !sm_train_is_unmeasured(own),
                                .high = high,
                                .space = effort.space};
    const double value = sm_train_objective_of(own, best.price);
    t->least_low = fmin(t->least_low, value * (1 - effort.gap));
    if (t->best && by_rank(row, &t->first) >= 0) return SM_OK;
    *t = (turns){own, found, t->total, *row, value, t->least_low};
    return SM_OK;
}

/* Of all searches the part that one is. */
typedef struct part {
    const sm_search_options *whole;
    double begun, share;
} part;

static void tell_part(double fraction, double best, void *context) {
    const part *p = context;
    p->whole->progress(p->begun + p->share * fraction, best, p->whole->context);
}

/* Those that have a pipeline are asked first: they are the quicker ones on many chips, and the
 * others then need not be searched far. */
static bool has_pipeline(const sm_train_asked *q, const sm_framework *f) {
    const sm_plan_job any = {q->in.model, q->system, 0};
    sm_plan plan;
    sm_plan_defaults(&plan);
    plan.pipeline = 2;
    return !sm_framework_refuses(f, &plan, 1ull << SM_PLAN_PIPELINE, &any);
}

/* One framework is asked; each has an equal part of the time that is left. */
static sm_status take_turn(const sm_train_asked *q, const sm_plan_space *space, part *of,
                           sm_train *train, turns *t, sm_train_framework *row, sm_error *err) {
    sm_train_asked *own;
    sm_status status = question_of(q, space, &own, err);
    if (status) return status;
    if (t->best && t->first.fits) own->search.below = FAR_BEHIND * t->least;
    if (q->search.seconds > 0) {
        double left_s = q->search.seconds - t->total.seconds;
        own->search.seconds = fmax(1e-3, left_s * of->share / (1 - of->begun));
    }
    if (q->search.progress) own->search.progress = tell_part, own->search.context = of;
    return ask_one(q, own, train, t, row, err);
}

static sm_status ask_each(sm_train_asked *q, sm_train *train, turns *t, sm_error *err) {
    int n = 0, rows = 0, at = 0;
    for (const sm_plan_space *s = q->search.space; s; s = s->next) n++;
    sm_train_framework *row = sm_arena_array(q->report->arena, (size_t)n, sizeof *row);
    sm_status status = row ? SM_OK : sm_fail_memory(err);
    for (int pipes = 1; pipes >= 0; pipes--)
        for (const sm_plan_space *s = q->search.space; s && !status; s = s->next) {
            if (has_pipeline(q, s->context) != pipes) continue;
            if (q->priced_only && !sm_train_runs_in(q, s->context)) continue;
            part of = {&q->search, at++ / (double)n, 1.0 / n};
            status = take_turn(q, s, &of, train, t, &row[rows], err);
            if (!status && row[rows].plan) rows++;
        }
    if (status || !t->best) return status;
    t->total.gap = t->total.optimal ? 0 : fmax(0, 1 - t->least_low / t->least);
    const sm_search_options whole = q->search; /* but for what the best one fixes */
    *q = *t->best;
    q->search = whole;
    q->search.fixed = t->best->search.fixed;
    q->search.space = &q->space;
    q->framework = row;
    q->frameworks_tried = rows;
    qsort(row, (size_t)rows, sizeof *row, by_rank);
    sm_train_with_software(q, train);
    return SM_OK;
}

static const turns none_yet = {.total = {.optimal = true, .least_memory_bytes = INFINITY},
                               .least_low = INFINITY};

/* A recipe is of a framework already. */
static bool is_asked_of_each(const sm_train_asked *q) {
    return q->in_frameworks && !q->own_constants && !q->in.recipe;
}

sm_status sm_train_price_in(sm_train_asked *q, sm_train *train, sm_error *err) {
    turns t = none_yet;
    return is_asked_of_each(q) ? ask_each(q, train, &t, err) : SM_OK;
}

sm_status sm_train_find(sm_train_asked *q, sm_train *train, const sm_search_result **found,
                        sm_search_effort *effort, sm_error *err) {
    turns t = none_yet;
    *found = NULL;
    sm_status status;
    if (is_asked_of_each(q)) {
        status = ask_each(q, train, &t, err);
        *effort = t.total;
        *found = t.found;
        if (status || t.best) return status;
        if (t.total.space > 0 && !t.total.optimal) return SM_NEGATIVE;
        sm_train_with_software(q, train);
    } else {
        status = sm_train_search(train, &q->search, q->report->arena, found, err);
        *effort = *sm_search_result_effort(*found);
        bool none = status == SM_NEGATIVE && effort->optimal;
        if (!none || !q->in_frameworks) return status;
    }
    q->in_frameworks = false;
    q->search.space = q->all;
    status = sm_train_search(train, &q->search, q->report->arena, found, err);
    *effort = *sm_search_result_effort(*found);
    return status;
}

const char *sm_train_in(sm_report *r, const sm_train_asked *q, const char *before,
                        const char *behind) {
    return q->kept_to ? sm_textf(r, "%s%s%s", before, sm_framework_title(q->kept_to), behind) : "";
}

void sm_train_frameworks_page(sm_report *r, const sm_train_asked *q) {
    const char *times = "";
    if (q->frameworks_tried < 2) return;
    const sm_listing list = sm_page_list(
        r, r->data, "frameworks", q->priced_only ? NULL : "The best plan of each framework",
        "framework|plan|<framework|expected_s>{s}step|most_s>{s}90 %|"
        "memory_bytes>{B}memory|fits|chip|software|<constants");
    for (int i = 0; i < q->frameworks_tried; i++) {
        const sm_train_framework *f = &q->framework[i];
        const sm_calibration *c = f->calibration;
        const char *title = sm_framework_title(f->framework);
        sm_list_row(&list, !q->priced_only, sm_framework_name(f->framework), f->plan, title,
                    f->expected_s, f->most_s, f->memory, f->fits, c->chip, c->software,
                    sm_textf(r, "%s %s", c->chip, f->measured ? c->software : "default"));
        times = sm_textf(r, "%s%s%s %s%s", times, times[0] ? ", " : "", title,
                         sm_show_seconds(r, f->expected_s), f->fits ? "" : " (does not fit)");
    }
    if (q->priced_only)
        sm_report_text(r,
                       "Frameworks that can run it, each by constants of its own where there are "
                       "any: %s. It is priced as the first runs it.",
                       times);
    else
        sm_report_text(r, "Each by constants of its own where there are any; 9 of 10 steps are "
                          "within 90 %%, by which they are ranked; --framework NAME shows one's "
                          "plan. Others have none that fits, or take four times as long.");
}
