/* over_ranks: the slowest rank counts. */
#include "over_ranks.h"

#include <math.h>

sm_status largest_over_ranks(sm_communicator *world, double *number, int n, sm_error *err) {
    size_t ranks = (size_t)world->size, count = (size_t)n;
    double *all = sm_calloc(ranks * count, sizeof *all);
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(world, number, count * sizeof *number, all, err);
    for (size_t i = 0; !status && i < ranks * count; i++) {
        double *most = &number[i % count];
        if (!isnan(*most) && !(all[i] <= *most)) *most = all[i];
    }
    sm_free(all);
    return status;
}

sm_status same_over_ranks(sm_communicator *world, uint64_t number, bool *same, sm_error *err) {
    size_t ranks = (size_t)world->size;
    uint64_t *all = sm_calloc(ranks, sizeof *all);
    *same = true;
    if (!all) return sm_fail_memory(err);
    sm_status status = sm_run_all_gather(world, &number, sizeof number, all, err);
    for (size_t i = 0; !status && i < ranks; i++) *same = *same && all[i] == number;
    sm_free(all);
    return status;
}
