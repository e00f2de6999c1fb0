/* program_plan: a model's program with a plan of training or of serving beside it: that which
 * sm_answer_train and sm_answer_serve find, and the step it makes. */
#include "program_told.h"
#include "serve_asked.h"
#include "train_asked.h"
#include <ctype.h>

enum { MOST_HEADS = 8 };

typedef struct heads {
    int n;
    const char *line[MOST_HEADS];
} heads;

static void add_head(heads *to, const char *line) { to->line[to->n++] = line; }

/* "math 1.33 s, network 157 ms, ...": what a step is made of, on the page and as data. */
static const char *put_parts(sm_report *r, double whole_s, const char *keys, int n,
                             const double *part_s) {
    const char *words = "";
    sm_data *step = sm_put_object(r, r->data, "step");
    sm_put(r, step, "expected_s", whole_s);
    for (int i = 0; i < n; i++, keys += strcspn(keys, "|") + 1) {
        const char *part = sm_textf(r, "%.*s", (int)strcspn(keys, "|"), keys);
        sm_put(r, step, part, part_s[i]);
        /* the rest of a difference of sums is nothing */
        if (part_s[i] < 1e-9 * whole_s) continue;
        words = sm_textf(r, "%s%s%s %s", words, words[0] ? ", " : "", part,
                         sm_show_seconds(r, part_s[i]));
    }
    return words;
}

static sm_status tell_nothing(sm_report *r, const char *reason) {
    sm_report_text(r, "%c%s.", toupper((unsigned char)reason[0]), reason + 1);
    sm_put(r, r->data, "reason", reason);
    return SM_NEGATIVE;
}

static const char *sequences(sm_report *r, double n) {
    return sm_textf(r, "%s sequence%s", sm_show_exact(r, n), n == 1 ? "" : "s");
}

static void add_plan(const sm_program_told *told, heads *to, const char *system, const char *plan,
                     bool fits) {
    add_head(to, sm_textf(told->report, "on %s: %s%s", system, plan,
                          fits ? "" : "; does not fit in memory"));
    const char *mesh = sm_program_mesh_words(told);
    if (mesh[0]) add_head(to, sm_textf(told->report, "mesh: %s", mesh));
    sm_put(told->report, told->report->data, "plan", plan);
}

static void add_step(sm_report *r, heads *to, const char *what, double expected_s,
                     const char *parts) {
    add_head(to, sm_textf(r, "%s takes %s: %s", what, sm_show_seconds(r, expected_s), parts));
}

/* ---- training ---- */

static sm_status tell_train(void *context, sm_train *train, const sm_plans_shown *plans,
                            sm_error *err) {
    sm_program_told *told = context;
    sm_report *r = told->report;
    heads h = {0};
    (void)train;
    if (plans->n == 0) return tell_nothing(r, plans->reason);
    const sm_plan_shown *best = &plans->plan[0];
    const sm_price_of_plan *price = &best->detail.price;
    const sm_breakdown *b = &price->breakdown;
    const double part_s[] = {b->math,   b->memory,    b->network_exposed,
                             b->bubble, b->optimizer, b->other};
    told->lines = &best->detail.lines;
    told->T = told->S = plans->q->job.seq;
    sm_program_name_axes(told);
    add_plan(told, &h, plans->q->system->text, best->text, price->fits);
    sm_put(r, r->data, "sequences", plans->sequences);
    add_step(
        r, &h, sm_textf(r, "a step of %s", sequences(r, plans->sequences)), price->expected_s,
        put_parts(r, price->expected_s, "math|memory|network|bubble|optimizer|other", 6, part_s));
    const char *where = "all layers";
    if (best->plan->pipeline > 1) where = sm_textf(r, "on stage %d", best->detail.stage);
    add_head(&h, sm_textf(r,
                          "beside a line: its time in the step, forward and backward, %s, and "
                          "what bounds it; under it its collectives, dh the gradient of h",
                          where));
    sm_status status = sm_program_tell(told, h.line, h.n, err);
    return status || price->fits ? status : SM_NEGATIVE;
}

sm_status sm_program_with_train(sm_program_told *told, const sm_train_question *question,
                                sm_error *err) {
    return sm_train_ask(question, told->report, tell_train, told, err);
}

/* ---- serving ---- */

static void set_serving(sm_program_told *told, const sm_serving_found *found) {
    const sm_serve_job *job = &found->q->job;
    bool decodes = told->phase == SM_TEXT_DECODE;
    told->lines = decodes ? &found->detail->decode : &found->detail->prefill;
    told->absorbed = told->lines->piece[0].program->rules.absorbed;
    told->T = decodes ? 1 : job->prompt - job->prefix;
    told->S = !decodes           ? job->prompt
              : job->context > 0 ? job->context
                                 : job->prompt + job->output / 2;
    sm_program_name_axes(told);
}

static sm_status tell_serve(void *context, sm_serve *serve, sm_serving_found *found,
                            sm_error *err) {
    sm_program_told *told = context;
    sm_report *r = told->report;
    heads h = {0};
    bool decodes = told->phase == SM_TEXT_DECODE;
    (void)serve;
    if (!found->best || !found->detail) return tell_nothing(r, found->reason);
    const sm_serve_point *p = found->best;
    const sm_step_price *step = decodes ? &p->decode : &p->prefill;
    const double part_s[] = {step->breakdown_s.weights, step->breakdown_s.kv,
                             step->breakdown_s.compute, step->breakdown_s.scans,
                             step->breakdown_s.network, step->breakdown_s.other};
    double drawn = decodes ? p->batch : 1;
    set_serving(told, found);
    add_plan(told, &h, found->q->slice.text, sm_serve_plan_words(r, found->q->in.system, &p->plan),
             p->fits);
    sm_put(r, r->data, "sequences", drawn);
    const char *what =
        decodes ? sm_textf(r, "a step of %s", sequences(r, drawn)) : "the prefill of one prompt";
    add_step(r, &h, what, step->expected_s,
             put_parts(r, step->expected_s, "weights|kv|compute|scans|network|other", 6, part_s));
    add_head(&h, "beside a line: its time in the step, all layers, and what bounds it; under it "
                 "its collectives");
    sm_status status = sm_program_tell(told, h.line, h.n, err);
    return status || p->fits ? status : SM_NEGATIVE;
}

sm_status sm_program_with_serve(sm_program_told *told, const sm_serve_question *question,
                                sm_error *err) {
    return sm_serve_ask(question, NULL, told->report, tell_serve, told, err);
}
