/* Good plans before the search proper: the nodes that reach least of those that a climb comes to.
 * What they hold is the threshold that spares most of the others.
 *
 * From a sample of the nodes on, the neighbours of those that reach least are looked at, those that
 * have one prime factor moved from one degree to another, until these have no better neighbours. */
#include <math.h>
#include <string.h>

#include "search_space.h"

enum { SAMPLE = 48, LARGEST_FACTOR = 7 };

static bool stopped(const plan_search *h) {
    return sm_search_stopped(h->options->stop, h->until_s);
}

static void look_at(plan_search *h, size_t number) {
    const double threshold = search_threshold(h);
    if (stopped(h) || h->reach[number] > 0 || h->bound[number] >= threshold) return;
    double bound = search_refine(h, 0, number, threshold);
    h->bound[number] = fmax(h->bound[number], fmin(bound, threshold));
    search_refined(h, number);
}

/* Nodes are enumerated in the order of their degrees. */
static bool find(const plan_search *h, const node *wanted, size_t *at) {
    size_t low = 0, high = h->nodes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = search_order(&h->node[middle], wanted);
        if (order == 0) {
            *at = middle;
            return true;
        }
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

static void look_around(plan_search *h, const node *from) {
    for (int less = 0; less < SM_PLAN_DEGREES; less++)
        for (int more = 0; more < SM_PLAN_DEGREES; more++)
            for (int factor = 2; factor <= LARGEST_FACTOR && less != more; factor++) {
                node next = *from;
                size_t at;
                if (factor == 4 || factor == 6 || next.degree[less] % factor) continue;
                next.degree[less] /= factor;
                next.degree[more] *= factor;
                if (find(h, &next, &at)) look_at(h, at);
            }
}

void search_climb(plan_search *h) {
    size_t step = h->nodes / SAMPLE + 1;
    for (size_t i = step / 2; i < h->nodes; i += step) look_at(h, i);
    for (int i = 0; i < h->n_near; i++) {
        if (h->near[i].visited) continue;
        h->near[i].visited = true;
        node from = h->node[h->near[i].node];
        look_around(h, &from);
        i = -1;
    }
    for (int i = 0; i < h->n_near && !stopped(h); i++) { /* what they have joins the best plans */
        const size_t number = h->near[i].node;
        search_expand(h, 0, 0, number, search_threshold(h));
        search_merge(h, 0, number);
        h->bound[number] = HUGE_VAL; /* done */
    }
}
