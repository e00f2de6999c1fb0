/* search_copy: what a search found, copied out of its handle into a structure that tests compare.
 */
#pragma once
#include "scalemodel/train.h"

#include <string.h>

typedef struct plan_copy {
    sm_plan plan;
    sm_price_of_plan price;
} plan_copy;
typedef struct search_copy {
    int n;
    plan_copy found[SM_MAX_TOP];
    double space, evaluated, pruned, seconds;
    bool optimal;
    double gap;
    double least_memory_bytes;
} search_copy;

static inline sm_status search_copied(sm_train *train, const sm_search_options *options,
                                      search_copy *copy, sm_error *err) {
    const sm_search_result *result = NULL;
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    sm_status status = sm_train_search(train, options, arena, &result, err);
    const sm_search_effort *effort = sm_search_result_effort(result);
    memset(copy, 0, sizeof *copy);
    copy->n = sm_search_result_count(result);
    for (int i = 0; i < copy->n; i++) {
        sm_found found = sm_search_result_at(result, i);
        copy->found[i].plan = *found.plan;
        copy->found[i].price = *found.price;
    }
    copy->space = effort->space;
    copy->evaluated = effort->evaluated;
    copy->pruned = effort->pruned;
    copy->seconds = effort->seconds;
    copy->optimal = effort->optimal;
    copy->gap = effort->gap;
    copy->least_memory_bytes = effort->least_memory_bytes;
    sm_arena_free(arena);
    return status;
}
