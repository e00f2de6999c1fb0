/* The plans that a framework can run, as a space for the search. Rules without a condition limit
 * keys everywhere; the others are asked once of each combination of the degrees that they name. */
#include <string.h>

#include "framework.h"

typedef struct asked {
    const sm_plan *plan;
    const sm_plan_job *job;
} asked;

/* Degrees, sizes of the model, the kind of network and a chip's devices have values here. */
static expression_value value_of(const void *context, const char *name) {
    const asked *a = context;
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if (strcmp(sm_plan_key_row_of((sm_plan_key)key)->name, name) == 0)
            return value_number(sm_plan_degree_of(a->plan, key));
    if (strcmp(name, "torus") == 0 && a->job->system)
        return value_number(a->job->system->torus_dims > 0);
    if (strcmp(name, "chip_devices") == 0)
        return value_number(a->job->system ? a->job->system->chip.devices : 1);
    return a->job->model ? framework_model_size(a->job->model, name)
                         : (expression_value){.kind = VALUE_ABSENT};
}

static bool holds(const framework_rule *rule, const sm_plan *plan, const sm_plan_job *job) {
    const asked a = {plan, job};
    bool out_of_memory = false; /* what compares numbers takes none */
    return value_holds(expression_work(rule->when, value_of, &a, NULL, &out_of_memory));
}

/* Of layouts: stages that the framework fills are "even", those of as many layers each "equal". */
static bool wants_equal(const framework_rule *rule) { return !(rule->words & 1); }

static void narrow(const framework_rule *rule, sm_plan_limits *limits) {
    const sm_plan_limit own = {.words = rule->words, .least = rule->least, .most = rule->most};
    if (rule->key == SM_PLAN_ORDER) limits->usual_order = true;
    else if (rule->key == SM_PLAN_LAYOUT) limits->equal_stages |= wants_equal(rule);
    else if (rule->share > limits->share) limits->share = rule->share;
    else sm_plan_limit_both(&limits->of[rule->key], &own);
}

static bool of_degrees(const sm_plan_space *space, const sm_plan *plan, unsigned before,
                       unsigned known, sm_plan_limits *limits) {
    const sm_framework *f = space->context;
    for (int i = 0; i < f->rules; i++) {
        const framework_rule *rule = &f->rule[i];
        if (!rule->when || rule->degrees & ~known || !(rule->degrees & ~before)) continue;
        if (!holds(rule, plan, &space->job)) continue;
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

static bool has_layout(const framework_rule *rule, const sm_plan *plan, uint64_t keys,
                       const sm_plan_job *job) {
    if (keys >> SM_PLAN_LAYOUT & 1 && plan->layout[0]) return false;
    return !wants_equal(rule) || !job->model ||
           job->model->L % (plan->pipeline * plan->virtual_stages) == 0;
}

bool framework_breaks(const framework_rule *rule, const sm_plan *plan, uint64_t keys,
                      const sm_plan_job *job) {
    sm_plan_limits limits = {.usual_order = false};
    if (rule->when && !holds(rule, plan, job)) return false;
    if (rule->key == SM_PLAN_KEY_COUNT) return true;
    if (rule->key == SM_PLAN_ORDER) return keys >> SM_PLAN_ORDER & 1 && !is_usual_order(plan);
    if (rule->key == SM_PLAN_LAYOUT) return !has_layout(rule, plan, keys, job);
    if (rule->share)
        return job->sequences > 0 && !sm_plan_shares(plan, job->sequences, rule->share);
    narrow(rule, &limits);
    return !sm_plan_limits_have(&limits, plan, keys & 1ull << rule->key);
}

const char *sm_framework_refuses(const sm_framework *f, const sm_plan *plan, uint64_t keys,
                                 const sm_plan_job *job) {
    for (int i = 0; i < f->rules; i++)
        if (framework_breaks(&f->rule[i], plan, keys, job))
            return f->rule[i].because[0] ? f->rule[i].because
                                         : sm_plan_key_row_of(f->rule[i].key)->name;
    return NULL;
}
