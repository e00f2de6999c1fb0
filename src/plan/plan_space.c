/* Sets of plans: what a framework can run, what a user asks for. */
#include "plan_row.h"

static bool is_listed(const sm_plan_limit *l, int value) {
    for (int i = 0; i < l->n; i++)
        if (l->listed[i] == value) return true;
    return l->n == 0;
}

bool sm_plan_limit_allows(const sm_plan_limits *limits, sm_plan_key key, int value) {
    const sm_plan_limit *l = &limits->of[key];
    bool in_words = !l->words || (value >= 0 && value < 64 && l->words >> value & 1);
    return in_words && value >= l->least && (l->most == 0 || value <= l->most) &&
           is_listed(l, value);
}

bool sm_plan_limits_some(const sm_plan_limits *limits) {
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const sm_plan_limit *l = &limits->of[key];
        if (l->words || l->least || l->most || l->n) return true;
    }
    return limits->usual_order || limits->equal_stages || limits->share;
}

/* What neither allows stays a value that none has. */
void sm_plan_limit_both(sm_plan_limit *limit, const sm_plan_limit *other) {
    bool disjoint = limit->words && other->words && !(limit->words & other->words);
    if (other->words) limit->words = limit->words ? limit->words & other->words : other->words;
    if (other->least > limit->least) limit->least = other->least;
    if (other->most && (!limit->most || other->most < limit->most)) limit->most = other->most;
    if (other->n && !limit->n) {
        limit->n = other->n;
        for (int i = 0; i < other->n; i++) limit->listed[i] = other->listed[i];
    }
    if (disjoint) limit->least = SM_PLAN_MOST_DEGREE + 1;
}

uint64_t sm_plan_keys_for(const sm_plan *plan, const sm_model *model) {
    uint64_t keys = 0;
    const bool experts = sm_model_has_experts(model);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        const plan_row *row = plan_row_of((sm_plan_key)key);
        bool means = !row->means || plan->use != SM_PLAN_SERVING || row->means(plan, model);
        if (means && (!row->experts || experts)) keys |= 1ull << key;
    }
    return keys;
}

bool sm_plan_limits_have(const sm_plan_limits *limits, const sm_plan *plan, uint64_t keys) {
    for (int key = 0; key < SM_PLAN_ORDER && keys >> key; key++) {
        if (!(keys >> key & 1)) continue;
        const plan_row *row = plan_row_of((sm_plan_key)key);
        if (!plan_spreads(plan, row->matters)) continue;
        if (!sm_plan_limit_allows(limits, (sm_plan_key)key, plan_value(plan, row))) return false;
    }
    return true;
}

bool sm_plan_space_of(const sm_plan_space *space, const sm_plan *plan, sm_plan_limits *out) {
    *out = space ? space->limits : (sm_plan_limits){.usual_order = false};
    return !space || sm_plan_space_narrow(space, plan, 0, (1 << SM_PLAN_DEGREES) - 1, out);
}

bool sm_plan_space_narrow(const sm_plan_space *space, const sm_plan *plan, unsigned before,
                          unsigned known, sm_plan_limits *limits) {
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        if ((known & ~before) >> key & 1 &&
            !sm_plan_limit_allows(limits, (sm_plan_key)key, sm_plan_degree_of(plan, key)))
            return false;
    return !space->of_degrees || space->of_degrees(space, plan, before, known, limits);
}

sm_status sm_plan_spaces_take(const sm_plan_space *spaces, sm_plan *plan, sm_error *err) {
    int n = 0, usual = 0;
    for (const sm_plan_space *s = spaces; s; s = s->next, n++) usual += s->limits.usual_order;
    if (n > SM_MOST_SPACES)
        return sm_fail(err, SM_BAD_INPUT, "%d spaces of plans are given, %d are the most", n,
                       SM_MOST_SPACES);
    if (n && usual == n) plan->given |= 1ull << SM_PLAN_ORDER;
    return SM_OK;
}
