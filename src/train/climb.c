/* Good plans before the search proper: the nodes that reach least of those that a climb comes to.
 * What they hold is the threshold that spares most of the others.
 *
 * From a sample of the nodes on, the neighbours of those that reach least are looked at, those that
 * have one prime factor moved from one degree to another, until these have no better neighbours. */
#include <stdlib.h>

#include "search_space.h"

enum { SAMPLE = 48, LARGEST_FACTOR = 7 };

/* However late it is, there is to be an answer: one node that reaches something. */
static bool stopped(const plan_search *h) {
    return h->n_near > 0 && (h->options->first || sm_search_stopped(h->options->stop, h->until_s));
}

static void look_at(plan_search *h, size_t number) {
    const double threshold = search_threshold(h);
    if (stopped(h) || h->node[number].reach > 0 || h->bound[number] >= threshold) return;
    double bound = search_refine(h, 0, number, threshold);
    h->bound[number] = fmax(h->bound[number], fmin(bound, threshold));
    search_refined(h, number);
}

/* Nodes are enumerated in the order of their degrees. */
static void look_around(plan_search *h, const node *from) {
    for (int less = 0; less < SM_PLAN_DEGREES; less++)
        for (int more = 0; more < SM_PLAN_DEGREES; more++)
            for (int factor = 2; factor <= LARGEST_FACTOR && less != more; factor++) {
                node next = *from;
                if (factor == 4 || factor == 6 || next.degree[less] % factor) continue;
                next.degree[less] /= factor;
                next.degree[more] *= factor;
                const node *at = bsearch(&next, h->node, h->nodes, sizeof next, search_order);
                if (at) look_at(h, (size_t)(at - h->node));
            }
}

void search_climb(plan_search *h) {
    size_t step = h->nodes / SAMPLE + 1;
    for (size_t i = step / 2; i < h->nodes; i += step) look_at(h, i);
    for (int i = 0; i < h->n_near; i++) {
        if (h->near[i].visited) continue;
        h->near[i].visited = true;
        look_around(h, &h->node[h->near[i].node]);
        i = -1;
    }
    for (int i = 0; i < h->n_near && !(i > 0 && stopped(h));
         i++) { /* what they have joins the best plans */
        const size_t number = h->near[i].node;
        search_expand(h, 0, 0, number, search_threshold(h));
        search_merge(h, 0, number);
        h->bound[number] = HUGE_VAL; /* done */
    }
}
