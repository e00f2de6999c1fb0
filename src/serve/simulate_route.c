/* Which replica takes a request. */
#include "simulation.h"

/* Affinity gives way when the replica that holds the prefix has more than so many requests beyond
 * the least loaded: 1/4 of the batch. */
#define AFFINITY_SLACK 4.0

static int least_loaded(const sim_simulation *s, int first, int n) {
    int best = first;
    for (int i = first + 1; i < first + n; i++)
        if (s->load[i] < s->load[best]) best = i;
    return best;
}

int sim_route(sim_simulation *s, const sm_request *request) {
    if (s->entries == 1) return s->first_entry;
    if (s->options->route == SM_ROUTE_AFFINITY) {
        int least = least_loaded(s, s->first_entry, s->entries), best = least;
        int64_t longest = 0;
        double most = (double)s->load[least] + 1.0 + (double)s->most_batch / AFFINITY_SLACK;
        if (request->prefix == 0 && request->conversation == 0 && request->blocks == 0)
            return least;
        for (int i = s->first_entry; i < s->first_entry + s->entries; i++) {
            int64_t pages = sim_cached_pages(s, &s->replica[i], request);
            bool better = pages > longest || (pages == longest && s->load[i] < s->load[best]);
            if (better && (double)s->load[i] <= most) best = i, longest = pages;
        }
        return best;
    }
    if (s->options->route == SM_ROUTE_LEAST_LOADED)
        return least_loaded(s, s->first_entry, s->entries);
    int next = s->first_entry + s->next_entry;
    s->next_entry = (s->next_entry + 1) % s->entries;
    return next;
}

int sim_route_decode(const sim_simulation *s) { return least_loaded(s, 0, s->first_entry); }
