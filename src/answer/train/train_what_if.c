/* train_what_if: the same job on another machine, and what more of each resource would bring.
 *
 * The elasticity of a step's time to a resource r is d ln(time) / d ln(r), by central differences
 * over +-10 %, of the same plan: -1 where r is all that counts, 0 where it does not. Twice as much
 * is answered with the best plan anew. The break-even is the least factor that makes the same plan
 * 10 % quicker, by bisection; some resources never do. */
#include "train_asked.h"

static const double NUDGE = 1.1, GAIN = 0.9, MOST_FACTOR = 64.0;

typedef struct machine {
    const sm_train_asked *q;
    sm_train *train; /* its programs serve every machine */
} machine;

/* Price plans of another system from now on. */
static sm_status move_to(const machine *m, const sm_system *system, sm_error *err) {
    sm_job job = m->q->job;
    job.system = system;
    sm_status status = sm_train_change(m->train, &job, err);
    if (!status) sm_train_with_software(m->q, m->train);
    return status;
}

/* Seconds of a plan with so much of a resource; NAN where it is impossible or does not fit. */
static sm_status seconds_with(const machine *m, const sm_plan *plan, sm_resource resource,
                              double factor, double *seconds, sm_error *err) {
    sm_system system = *m->q->in.system;
    sm_price_of_plan price;
    sm_error none = {.status = SM_OK};
    *seconds = NAN;
    sm_system_scale(&system, resource, factor);
    sm_status status = move_to(m, &system, err);
    if (status) return status;
    status = sm_train_price(m->train, plan, &price, &none);
    if (status == SM_BAD_INPUT) return SM_OK;
    if (status) *err = none;
    else if (price.fits) *seconds = price.expected_s;
    return status;
}

/* The best plan on the machine at hand, none where none fits; a plan given whole stays. */
static sm_status best_here(const machine *m, const sm_plan *plan, sm_price_of_plan *price,
                           sm_found *best, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_status status;
    *best = (sm_found){NULL, NULL};
    if (!m->q->priced_only) {
        status = sm_train_best(m->q, m->train, m->q->search, best, NULL, err);
        return status == SM_NEGATIVE ? SM_OK : status;
    }
    status = sm_train_price(m->train, plan, price, &none);
    if (!status && price->fits) *best = (sm_found){plan, price};
    return status == SM_BAD_INPUT ? SM_OK : status;
}

/* ---- one other machine ---- */

sm_status sm_train_what_if(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                           sm_error *err) {
    const machine m = {q, train};
    sm_report *r = q->report;
    sm_price_of_plan kept = {.fits = false}, price;
    sm_system other;
    sm_found anew;
    double now = best->detail.price.expected_s;
    sm_error none = {.status = SM_OK};
    sm_status status = sm_system_what_if(&q->in.what_if, q->in.system, &other, err);
    if (!status) status = move_to(&m, &other, err);
    if (!status) status = sm_train_price(train, best->plan, &kept, &none);
    if (status == SM_BAD_INPUT && none.status) status = SM_OK, kept.fits = false;
    if (!status) status = best_here(&m, best->plan, &price, &anew, err);
    if (status) return status;
    sm_data *object = sm_put_object(r, r->data, "what_if");
    sm_put(r, object, "machine|same_plan_step_time_s|same_plan_mfu|best_step_time_s|best_mfu",
           q->in.what_if.text, kept.fits ? kept.expected_s : NAN, kept.fits ? kept.mfu : NAN,
           anew.plan ? anew.price->expected_s : NAN, anew.plan ? anew.price->mfu : NAN);
    sm_table *table = sm_page_table(r, sm_textf(r, "With %s", q->in.what_if.text),
                                    "<|>{s}step|>saved|>{%}MFU|<plan");
    sm_page_row(r, table, "as it is", now, "", best->detail.price.mfu, best->text);
    sm_page_row(r, table, "same plan", kept.fits ? kept.expected_s : NAN,
                kept.fits ? sm_textf(r, "%.1f %%", 100.0 * (1.0 - kept.expected_s / now)) : "-",
                kept.fits ? kept.mfu : NAN, kept.fits ? "" : "impossible, or does not fit");
    if (anew.plan && !q->priced_only) {
        const char *words = sm_train_plan_words(r, &other, anew.plan);
        sm_put(r, object, "best_plan", words);
        sm_page_row(r, table, "best plan", anew.price->expected_s,
                    sm_textf(r, "%.1f %%", 100.0 * (1.0 - anew.price->expected_s / now)),
                    anew.price->mfu, words);
    }
    return SM_OK;
}

/* ---- every resource ---- */

typedef struct sensitivity {
    double elasticity, twice_s, break_even, more_s, less_s;
} sensitivity;

/* The least factor that takes the plan to `goal` seconds; NAN where none up to 64 does. */
static sm_status break_even(const machine *m, const sm_plan *plan, sm_resource resource,
                            double goal, double *factor, sm_error *err) {
    double low = 0.0, high = log(MOST_FACTOR), sign = 1.0, seconds;
    if (resource == SM_RESOURCE_LATENCY) sign = -1.0;
    sm_status status = seconds_with(m, plan, resource, exp(sign * high), &seconds, err);
    *factor = NAN;
    if (status || !(seconds <= goal)) return status;
    for (int i = 0; i < 20 && !status; i++) {
        double middle = 0.5 * (low + high);
        status = seconds_with(m, plan, resource, exp(sign * middle), &seconds, err);
        if (seconds <= goal) high = middle;
        else low = middle;
    }
    *factor = exp(sign * high);
    return status;
}

static sm_status measure(const machine *m, const sm_plan_shown *best, sm_resource resource,
                         sensitivity *out, sm_error *err) {
    double now = best->detail.price.expected_s;
    sm_found anew = {NULL, NULL};
    sm_price_of_plan price;
    sm_system system = *m->q->in.system;
    sm_status status = seconds_with(m, best->plan, resource, NUDGE, &out->more_s, err);
    if (!status) status = seconds_with(m, best->plan, resource, 1.0 / NUDGE, &out->less_s, err);
    if (!status) status = break_even(m, best->plan, resource, GAIN * now, &out->break_even, err);
    sm_system_scale(&system, resource, resource == SM_RESOURCE_LATENCY ? 0.5 : 2.0);
    if (!status) status = move_to(m, &system, err);
    if (!status) status = best_here(m, best->plan, &price, &anew, err);
    if (status) return status;
    out->elasticity = log(out->more_s / out->less_s) / (2.0 * log(NUDGE));
    if (isnan(out->less_s)) out->elasticity = log(out->more_s / now) / log(NUDGE);
    if (fabs(out->elasticity) < 5e-4) out->elasticity = 0.0;
    out->twice_s = anew.plan ? anew.price->expected_s : NAN;
    return SM_OK;
}

/* Bars from the step's time now, of the resource that moves it most first. */
static sm_status draw(const machine *m, const sensitivity *all, double now, sm_error *err) {
    struct picture {
        sm_tracks tracks;
        sm_slice slice[2 * SM_RESOURCE_COUNT];
        const char *name[SM_RESOURCE_COUNT];
    } *p = sm_arena_alloc(m->q->report->arena, sizeof *p);
    int order[SM_RESOURCE_COUNT];
    if (!p) return sm_fail_memory(err);
    *p = (struct picture){.tracks.n = SM_RESOURCE_COUNT};
    for (int i = 0; i < SM_RESOURCE_COUNT; i++) {
        int at = i;
        for (; at > 0 && fabs(all[order[at - 1]].elasticity) < fabs(all[i].elasticity); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int i = 0; i < SM_RESOURCE_COUNT; i++) {
        const sensitivity *s = &all[order[i]];
        p->name[i] = sm_resource_names[order[i]];
        p->slice[2 * i] = (sm_slice){i, p->name[i], "10 % more", now, s->more_s - now};
        p->slice[2 * i + 1] = (sm_slice){i, p->name[i], "10 % less", now, s->less_s - now};
    }
    p->tracks.track = p->name;
    p->tracks.slice = p->slice;
    p->tracks.slices = 2 * SM_RESOURCE_COUNT;
    const sm_panel panel = {.title = "With more and less of each resource, same plan",
                            .x_label = "time of a step",
                            .x_unit = "s",
                            .y_unit = "",
                            .tracks = &p->tracks};
    sm_report_chart(m->q->report, &(sm_chart){sm_textf(m->q->report, "%.60s on %.60s",
                                                       m->q->in.model->name, m->q->in.system->text),
                                              "What the time of a step depends on", 1, &panel});
    return SM_OK;
}

sm_status sm_train_sensitivity(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                               sm_error *err) {
    static const char *const help[SM_RESOURCE_COUNT] = {SM_RESOURCES(SM_THIRD_OF)};
    const machine m = {q, train};
    sm_report *r = q->report;
    double now = best->detail.price.expected_s;
    const sm_listing list =
        sm_page_list(r, r->data, "sensitivity", "What more of each would bring",
                     "resource<resource|elasticity|>elasticity|break_even_factor|>-10 %|factor|"
                     "step_time_s|>twice|>saves|<");
    sensitivity all[SM_RESOURCE_COUNT];
    for (int i = 0; i < SM_RESOURCE_COUNT; i++) {
        sm_status status = measure(&m, best, (sm_resource)i, &all[i], err);
        if (status) return status;
        const sensitivity s = all[i];
        bool half = i == SM_RESOURCE_LATENCY;
        sm_list_row(&list, true, sm_resource_names[i], s.elasticity,
                    sm_textf(r, "%.3f", s.elasticity), s.break_even,
                    isnan(s.break_even) ? "-" : sm_textf(r, "%.3gx", s.break_even),
                    half ? 0.5 : 2.0, s.twice_s,
                    sm_textf(r, "%s%s", sm_show_seconds(r, s.twice_s), half ? " at half" : ""),
                    sm_textf(r, "%.1f %%", 100.0 * (1.0 - s.twice_s / now)), help[i]);
    }
    sm_report_text(r,
                   "Elasticity: %% of step time, and of cost, for each %% more of it, same "
                   "plan; tokens/s change by as much the other way. -10 %%: at so much of it the "
                   "same plan takes a tenth less. Twice: %s.",
                   q->priced_only ? "the plan given" : "the best plan anew");
    sm_status status = draw(&m, all, now, err);
    return status ? status : move_to(&m, q->in.system, err);
}
