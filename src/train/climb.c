/* Good plans before the search proper: the nodes of least refined bound that a climb comes to. What
 * they hold is the threshold that spares most of the others.
 *
 * From a sample of the nodes on, the neighbours of the best are looked at, those that have one
 * prime factor moved from one degree to another, until the best have no better neighbours; then
 * those of the plans found, whose prices tell more than bounds. */
#include <math.h>
#include <string.h>

#include "search_space.h"

enum { SAMPLE = 48, SEEN = 64, LARGEST_FACTOR = 7 };

typedef struct peak {
    size_t node;
    double bound;
    bool visited; /* its neighbours are looked at */
} peak;

typedef struct climb {
    plan_search *h;
    int n, room;
    peak best[SM_MAX_TOP]; /* the least first */
} climb;

static double threshold_of(const climb *c) {
    double own = c->n == c->room ? c->best[c->n - 1].bound : HUGE_VAL;
    return fmin(own, search_threshold(c->h));
}

static bool stopped(const climb *c) {
    return sm_search_stopped(c->h->options->stop, c->h->until_s);
}

static void look_at(climb *c, size_t number) {
    if (stopped(c) || c->h->bound[number] >= threshold_of(c)) return; /* or done */
    for (int i = 0; i < c->n; i++)
        if (c->best[i].node == number) return;
    double threshold = threshold_of(c), bound = search_refine(c->h, 0, number, threshold);
    c->h->bound[number] = fmax(c->h->bound[number], fmin(bound, threshold));
    if (bound >= threshold) return;
    int at = c->n < c->room ? c->n++ : c->n - 1;
    for (; at > 0 && c->best[at - 1].bound > bound; at--) c->best[at] = c->best[at - 1];
    c->best[at] = (peak){number, bound, false};
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

static void look_around(climb *c, const node *from) {
    for (int less = 0; less < SM_PLAN_DEGREES; less++)
        for (int more = 0; more < SM_PLAN_DEGREES; more++)
            for (int factor = 2; factor <= LARGEST_FACTOR && less != more; factor++) {
                node next = *from;
                size_t at;
                if (factor == 4 || factor == 6 || next.degree[less] % factor) continue;
                next.degree[less] /= factor;
                next.degree[more] *= factor;
                if (find(c->h, &next, &at)) look_at(c, at);
            }
}

/* What a node has joins the best plans. */
static void look_into(climb *c, const peak *at) {
    plan_search *h = c->h;
    if (stopped(c) || at->bound >= search_threshold(h)) return;
    search_expand(h, 0, 0, at->node, search_threshold(h));
    search_merge(h, 0, at->node);
    h->bound[at->node] = HUGE_VAL; /* done */
}

static node node_of_plan(const sm_plan *plan) {
    node n;
    for (int k = 0; k < SM_PLAN_DEGREES; k++) n.degree[k] = sm_plan_degree_of(plan, k);
    return n;
}

/* From the plans found on, until none has a better neighbour. */
static void climb_plans(climb *c) {
    plan_search *h = c->h;
    node seen[SEEN];
    int n = 0;
    for (int i = 0; i < h->found && n < SEEN; i++) {
        node from = node_of_plan(&h->best[i]);
        bool known = false;
        for (int k = 0; k < n && !known; k++) known = search_order(&seen[k], &from) == 0;
        if (known) continue;
        seen[n++] = from;
        c->n = 0;
        look_around(c, &from);
        for (int k = 0; k < c->n; k++) look_into(c, &c->best[k]);
        i = -1;
    }
}

void search_climb(plan_search *h) {
    climb c = {.h = h, .room = h->options->top};
    size_t step = h->nodes / SAMPLE + 1;
    for (size_t i = step / 2; i < h->nodes; i += step) look_at(&c, i);
    for (int i = 0; i < c.n; i++) {
        if (c.best[i].visited) continue;
        c.best[i].visited = true;
        node from = h->node[c.best[i].node];
        look_around(&c, &from);
        i = -1;
    }
    for (int i = 0; i < c.n; i++) look_into(&c, &c.best[i]);
    climb_plans(&c);
}
