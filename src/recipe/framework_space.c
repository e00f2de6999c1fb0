/* The plans that a framework can run, as a space for the search. Rules without a condition limit
 * keys everywhere; the others are asked once of each combination of degrees. */
#include <string.h>

#include "framework.h"

/* Degrees alone have values here. */
static expression_value degree(const void *context, const char *name) {
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (strcmp(sm_plan_key_row_of((sm_plan_key)key)->name, name) == 0)
            return value_number(sm_plan_degree_of(context, key));
    return (expression_value){.kind = VALUE_ABSENT};
}

static bool holds(const framework_rule *rule, const sm_plan *plan) {
    bool out_of_memory = false; /* what compares numbers takes none */
    return value_holds(expression_work(rule->when, degree, plan, NULL, &out_of_memory));
}

static void narrow(const framework_rule *rule, sm_plan_limits *limits) {
    const sm_plan_limit own = {.words = rule->words, .least = rule->least, .most = rule->most};
    if (rule->key == SM_PLAN_ORDER) limits->usual_order = true;
    else if (rule->whole) limits->whole_share = true;
    else if (rule->key != SM_PLAN_LAYOUT) /* which is given or even: no search chooses it */
        sm_plan_limit_both(&limits->of[rule->key], &own);
}

static bool of_degrees(const void *context, const sm_plan *plan, sm_plan_limits *limits) {
    const sm_framework *f = context;
    for (int i = 0; i < f->rules; i++) {
        const framework_rule *rule = &f->rule[i];
        if (!rule->when || !holds(rule, plan)) continue;
        if (rule->key == SM_PLAN_KEY_COUNT) return false;
        narrow(rule, limits);
    }
    return true;
}

void sm_framework_space(const sm_framework *f, sm_plan_space *space) {
    for (int i = 0; i < f->rules; i++)
        if (!f->rule[i].when) narrow(&f->rule[i], &space->limits);
    space->name = f->title;
    space->of_degrees = of_degrees;
    space->context = f;
}

/* Of the order of axes: those that shard something lie as usual. */
static bool is_usual_order(const sm_plan *plan) {
    sm_plan usual;
    if (plan->use == SM_PLAN_SERVING) sm_serve_plan_defaults(&usual);
    else sm_plan_defaults(&usual);
    int at = 0;
    for (int i = 0; i < SM_PLAN_DEGREES; i++) {
        if (sm_plan_degree_of(plan, plan->order[i]) == 1) continue;
        while (at < SM_PLAN_DEGREES && usual.order[at] != plan->order[i]) at++;
        if (at == SM_PLAN_DEGREES) return false;
    }
    return true;
}

bool framework_breaks(const framework_rule *rule, const sm_plan *plan, uint32_t keys,
                      double sequences) {
    sm_plan_limits limits = {.usual_order = false};
    if (rule->when && !holds(rule, plan)) return false;
    if (rule->key == SM_PLAN_KEY_COUNT) return true;
    if (rule->key == SM_PLAN_ORDER) return keys >> SM_PLAN_ORDER & 1 && !is_usual_order(plan);
    if (rule->key == SM_PLAN_LAYOUT) return keys >> SM_PLAN_LAYOUT & 1 && plan->layout[0];
    if (rule->whole) return sequences > 0 && !sm_plan_shares_whole(plan, sequences);
    narrow(rule, &limits);
    return !sm_plan_limits_have(&limits, plan, keys & 1u << rule->key);
}

const char *sm_framework_refuses(const sm_framework *f, const sm_plan *plan, uint32_t keys,
                                 double sequences) {
    for (int i = 0; i < f->rules; i++)
        if (framework_breaks(&f->rule[i], plan, keys, sequences))
            return f->rule[i].because[0] ? f->rule[i].because
                                         : sm_plan_key_row_of(f->rule[i].key)->name;
    return NULL;
}
