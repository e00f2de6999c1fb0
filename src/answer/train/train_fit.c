/* train_fit: what would make a plan fit: the bytes it takes, the fewest chips on which some plan
 * fits, and the one change of the plan that does it. Everything told here was priced. */
#include "train_asked.h"

enum { MOST_CHIPS = 1 << 16 };
/* So far below none that every plan of a search fits a chip. */
static const double NO_LIMIT = -1e9;

/* What a search does not try by itself: first what leaves the numbers of a run as they are. */
static const char *const beyond_search[] = {"loss=chunked", NULL};
static const char *const of_numbers[] = {"gradient=bf16", "optimizer=adam-bf16",
                                         "optimizer=adam-8bit", NULL};
static const char *const of_adapters[] = {"lora=16", NULL};
/* What may be changed of a plan that was given whole. */
static const char *const of_plan[] = {"microbatch=1",
                                      "zero=1",
                                      "zero=2",
                                      "seq=on",
                                      "regather=all",
                                      "loss=chunked",
                                      "recompute=selective",
                                      "recompute=full",
                                      "offload=optimizer",
                                      "offload=activations",
                                      "offload=both",
                                      NULL};

typedef struct fitting {
    sm_train_asked *q;
    sm_train *train;
    sm_fit_advice *out;
} fitting;

static sm_source text_of(const char *text) { return sm_source_of("plan", text); }

/* The best plan under these fixed keys, or the first that fits; found->plan is NULL where none
 * does. */
static sm_status best_of(const fitting *f, sm_train *train, sm_objective objective, bool first,
                         const sm_plan *fixed, sm_found *found, sm_error *err) {
    sm_search_options search = f->q->search;
    search.fixed = *fixed;
    search.objective = objective;
    search.first = first;
    sm_status status = sm_train_best(f->q, train, search, found, NULL, err);
    return status <= SM_NEGATIVE || status == SM_BAD_INPUT ? SM_OK : status;
}

/* ---- bytes ---- */

static sm_status find_least(const fitting *f, sm_error *err) {
    sm_found least;
    sm_train_set_memory_margin(f->train, NO_LIMIT);
    sm_status status =
        best_of(f, f->train, SM_OBJECTIVE_MEMORY, false, &f->q->search.fixed, &least, err);
    sm_train_set_memory_margin(f->train, sm_train_margin(f->q));
    if (status || !least.plan) return status;
    f->out->least = least.price->memory;
    f->out->least_plan = sm_train_plan_words(f->q->report, f->q->system, least.plan);
    return SM_OK;
}

/* ---- chips ---- */

static sm_status fits_on(const fitting *f, const sm_system *system, const sm_plan *fixed,
                         bool *fits, sm_error *err) {
    sm_job job = f->q->job;
    sm_train *train = NULL;
    sm_found found = {NULL, NULL};
    job.system = system;
    sm_status status = sm_train_new(&job, &train, err);
    if (status) return status;
    sm_train_with_software(f->q, train);
    status = best_of(f, train, SM_OBJECTIVE_MEMORY, true, fixed, &found, err);
    sm_train_free(train);
    *fits = found.plan != NULL;
    return status;
}

/* Twice, three times, four times, six times, ... the chips. */
static sm_status find_chips(const fitting *f, sm_error *err) {
    sm_plan fixed = f->q->search.fixed;
    sm_status status = SM_OK;
    if (f->q->priced_only) fixed.given &= ~(1ull << SM_PLAN_DATA | 1ull << SM_PLAN_FSDP);
    const int chips = f->q->in.system->chips;
    for (int times = 2; !status && !f->out->chips && (int64_t)chips * times <= MOST_CHIPS;
         times = times % 3 ? times / 2 * 3 : times / 3 * 4) {
        sm_error none = {.status = SM_OK};
        sm_system system;
        bool fits = false;
        if (f->q->in.stop && *f->q->in.stop) break;
        if (sm_system_resize(f->q->in.system, chips * times, &system, &none)) continue;
        status = fits_on(f, &system, &fixed, &fits, err);
        if (!fits) continue;
        f->out->chips = system.chips;
        f->out->system = sm_textf(f->q->report, "%s", system.text);
    }
    return status;
}

/* ---- changes ---- */

static void keep_quickest(const fitting *f, const char *what, const sm_price_of_plan *price) {
    if (f->out->change && price->expected_s >= f->out->change_s) return;
    f->out->change = what;
    f->out->change_s = price->expected_s;
    f->out->change_bytes = price->memory.total;
}

static sm_status try_on_plan(const fitting *f, const sm_plan *plan, const char *const *changes,
                             sm_error *err) {
    for (int i = 0; changes[i]; i++) {
        const sm_source change = text_of(changes[i]);
        sm_plan other = *plan;
        sm_price_of_plan price;
        sm_error none = {.status = SM_OK};
        sm_status status = sm_plan_change(&change, &other, err);
        if (status) return status;
        status = sm_train_price(f->train, &other, &price, &none);
        if (status == SM_BAD_INPUT) continue;
        if (status) *err = none;
        if (status) return status;
        if (price.fits) keep_quickest(f, changes[i], &price);
    }
    return SM_OK;
}

static sm_status try_fixed(const fitting *f, const sm_plan *fixed, const char *what,
                           sm_error *err) {
    sm_found found;
    if (f->q->in.stop && *f->q->in.stop) return SM_OK;
    sm_status status = best_of(f, f->train, SM_OBJECTIVE_TIME, false, fixed, &found, err);
    if (!status && found.plan) keep_quickest(f, what, found.price);
    return status;
}

static sm_status try_beside(const fitting *f, const char *const *changes, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; changes[i] && !status; i++) {
        const sm_source change = text_of(changes[i]);
        sm_plan other = f->q->search.fixed;
        status = sm_plan_change(&change, &other, err);
        if (!status) status = try_fixed(f, &other, changes[i], err);
    }
    return status;
}

/* A key that is given, left to the search; and what it leaves alone. */
static sm_status try_on_search(const fitting *f, sm_error *err) {
    const sm_plan *fixed = &f->q->search.fixed;
    sm_status status = SM_OK;
    for (int key = 0; key < SM_PLAN_KEY_COUNT && !status; key++) {
        sm_plan other = *fixed;
        if (!sm_plan_given(fixed, (sm_plan_key)key)) continue;
        other.given &= ~(1ull << key);
        const char *name = sm_plan_key_row_of((sm_plan_key)key)->name;
        status = try_fixed(f, &other, sm_textf(f->q->report, "another %s", name), err);
    }
    return status ? status : try_beside(f, beyond_search, err);
}

static sm_status find_change(const fitting *f, const sm_plan *plan, sm_error *err) {
    sm_status status = plan ? try_on_plan(f, plan, of_plan, err) : try_on_search(f, err);
    if (!status && !f->out->change)
        status = plan ? try_on_plan(f, plan, of_numbers, err) : try_beside(f, of_numbers, err);
    if (status || f->out->change || plan) return status;
    f->out->adapters = true;
    return try_beside(f, of_adapters, err);
}

sm_status sm_train_fit_find(sm_train_asked *q, sm_train *train, const sm_plan_shown *plan,
                            sm_fit_advice *out, sm_error *err) {
    const fitting f = {q, train, out};
    sm_status status = SM_OK;
    *out = (sm_fit_advice){.asked = true};
    if (plan) out->least = plan->detail.price.memory;
    else status = find_least(&f, err);
    if (!status && out->least.total <= 0.0) return SM_OK; /* it is not memory that forbids */
    if (!status) status = find_change(&f, plan ? plan->plan : NULL, err);
    return status ? status : find_chips(&f, err);
}

/* ---- words ---- */

void sm_train_fit_page(sm_report *r, const sm_train_asked *q, const sm_fit_advice *fit) {
    if (!fit->asked || fit->least.total <= 0.0) return;
    const sm_memory *m = &fit->least;
    double margin = sm_train_margin(q), may = m->capacity * (1.0 - margin);
    const char *whose = fit->least_plan ? "The plan that needs least takes" : "It takes";
    if (m->host_capacity > 0.0 && m->host > m->host_capacity)
        sm_report_text(r, "%s %s of host memory for each chip, whose share is %s.", whose,
                       sm_show_bytes(r, m->host), sm_show_bytes(r, m->host_capacity));
    if (m->total > may)
        sm_report_text(
            r, "%s %s of each chip, %s more than the %s it may%s.", whose,
            sm_show_bytes(r, m->total), sm_show_bytes(r, m->total - may), sm_show_bytes(r, may),
            margin > 0.0 ? sm_textf(r, ": %.3g %% stay free (--memory-margin)", 100.0 * margin)
                         : "");
    if (fit->least_plan) sm_report_text(r, "%s", fit->least_plan);
    if (fit->change)
        sm_report_text(r, "%s: %s (%s of each chip, %s a step).",
                       fit->adapters ? "No one change makes it fit while all of it is trained; "
                                       "adapters alone fit"
                                     : "The one change that makes it fit",
                       fit->change, sm_show_bytes(r, fit->change_bytes),
                       sm_show_seconds(r, fit->change_s));
    else sm_report_text(r, "No one change of the plan makes it fit.");
    if (fit->chips)
        sm_report_text(r, "The fewest chips%s that fit: %d (%s).",
                       q->search.fixed.given ? " with the keys given" : "", fit->chips,
                       fit->system);
    else sm_report_text(r, "More chips do not help, up to %d.", MOST_CHIPS);
}

void sm_train_fit_data(sm_report *r, const sm_fit_advice *fit) {
    if (!fit->asked || fit->least.total <= 0.0) return;
    sm_data *object = sm_put_object(r, r->data, "to_fit");
    sm_put(r, object, "memory_bytes|memory_capacity_bytes|host_bytes", fit->least.total,
           fit->least.capacity, fit->least.host);
    if (fit->least_plan) sm_put(r, object, "plan", fit->least_plan);
    if (fit->change) {
        sm_put(r, object, "change|change_memory_bytes|change_step_time_s", fit->change,
               fit->change_bytes, fit->change_s);
    }
    if (!fit->chips) return;
    sm_put(r, object, "chips|system", fit->chips, fit->system);
}
