/* train_why: why the best plan has its degrees: twice or half of each, the rest best anew, and what
 * of the step grows, what bounds it then, or what it does not fit. */
#include "train_asked.h"

typedef struct part {
    const char *what;
    double was, is;
} part;

/* Of some parts the one that grows most, where so many times as many chips count. */
static const part *grown_of(const part *of, size_t n, double chips, double *more) {
    const part *most = of;
    for (const part *x = of; x < of + n; x++)
        if (x->is * chips - x->was > most->is * chips - most->was) most = x;
    *more = most->is * chips - most->was;
    return *more > 1e-9 * most->was ? most : NULL;
}

/* What of its price, or of its memory where that counts, tells it from the best. */
static const char *because(const sm_train_asked *q, const sm_price_of_plan *best,
                           const sm_price_of_plan *price) {
    sm_report *r = q->report;
    const sm_breakdown *was = &best->breakdown, *is = &price->breakdown;
    const sm_memory *had = &best->memory, *has = &price->memory;
    const part time[] = {{"math", was->math, is->math},
                         {"memory bandwidth", was->memory, is->memory},
                         {"network", was->network_exposed, is->network_exposed},
                         {"the bubble", was->bubble, is->bubble},
                         {"the optimizer", was->optimizer, is->optimizer}};
    const part memory[] = {{"weights", had->params, has->params},
                           {"gradients", had->gradients, has->gradients},
                           {"optimizer state", had->optimizer, has->optimizer},
                           {"activations", had->activations, has->activations},
                           {"buffers", had->buffers, has->buffers}};
    const char *its = sm_train_bound(r, q->system, best),
               *now = sm_train_bound(r, q->system, price);
    double chips = q->in.objective == SM_OBJECTIVE_COST ? (double)price->chips / best->chips : 1,
           more;
    if (q->in.objective == SM_OBJECTIVE_MEMORY) {
        const part *grown = grown_of(memory, sizeof memory / sizeof *memory, 1, &more);
        return grown ? sm_textf(r, "%s more of %s", sm_show_bytes(r, more), grown->what)
                     : "nothing takes more";
    }
    const part *grown = grown_of(time, sizeof time / sizeof *time, chips, &more);
    const char *why = grown ? sm_textf(r, "%s takes %s more", grown->what, sm_show_seconds(r, more))
                            : "nothing takes longer";
    return strcmp(its, now) == 0 ? why
                                 : sm_textf(r, "%s; bound by %s, no longer by %s", why, now, its);
}

static void row(const sm_train_asked *q, const sm_listing *list, const char *instead,
                const sm_price_of_plan *best, const sm_found *found, const char *why) {
    sm_report *r = q->report;
    sm_data *object = sm_list_row(list, true, instead, found->plan ? found->price->expected_s : NAN,
                                  found->plan ? sm_train_more(q, found->price, best) : "-", why);
    if (found->plan) sm_put(r, object, "plan", sm_train_plan_words(r, q->system, found->plan));
}

/* The best plan in which one degree is another; without any, why, or NULL: none is possible. */
static sm_status neighbour(const sm_train_asked *q, sm_train *train, int key, int degree,
                           sm_found *found, const char **why, sm_error *err) {
    sm_search_options search = q->search;
    const sm_search_effort *effort;
    search.fixed.given |= 1ull << key;
    *sm_plan_degree(&search.fixed, key) = degree;
    sm_status status = sm_train_best(q, train, search, found, &effort, err);
    if (status > SM_BAD_INPUT || status == SM_USAGE) return status;
    *why = NULL;
    if (status == SM_NEGATIVE && !isinf(effort->least_memory_bytes))
        *why = sm_textf(q->report, "does not fit: at least %s of each chip",
                        sm_show_bytes(q->report, effort->least_memory_bytes));
    return SM_OK;
}

sm_status sm_train_why(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                       sm_error *err) {
    sm_report *r = q->report;
    const sm_price_of_plan *price = &best->detail.price;
    const sm_listing list =
        sm_page_list(r, r->data, "why", "Why these degrees",
                     sm_textf(r, "instead<instead|step_time_s>{s}step|>%s|because<because",
                              sm_train_worse[q->in.objective]));
    uint64_t keys = sm_plan_keys_for(&q->search.fixed, q->in.model) & ~q->search.fixed.given;
    sm_status status = SM_OK;
    if (q->priced_only)
        return sm_fail(err, SM_USAGE,
                       "--why is of a plan that is searched; --against compares two");
    for (int key = 0; key < SM_PLAN_DEGREES && !status; key++) {
        int now = sm_plan_degree_of(best->plan, key);
        const int other[] = {now * 2, now / 2};
        for (int i = 0; i < 2 && (keys >> key & 1u) && !status; i++) {
            const char *why = NULL;
            sm_found found;
            bool even = i == 0 || now % 2 == 0;
            if (other[i] < 1 || !even || price->chips % other[i]) continue;
            status = neighbour(q, train, key, other[i], &found, &why, err);
            if (status) continue;
            if (found.plan) why = because(q, price, found.price);
            if (!why) continue; /* experts that it does not divide */
            row(q, &list,
                sm_textf(r, "%s=%d", sm_plan_key_row_of((sm_plan_key)key)->name, other[i]), price,
                &found, why);
        }
    }
    return status;
}
