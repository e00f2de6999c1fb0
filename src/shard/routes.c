/* Routes by their journeys, the latest in each few places. Where nothing is padded a route is the
 * same for all sizes that the same axes divide, and is found for one. */
#include "route.h"
#include <string.h>

enum { PLACES = 16384, TRIES = 8 };

typedef struct known {
    sm_journey journey;
    sm_route route;
    bool found;
} known;

struct sm_routes {
    int16_t n, place[PLACES]; /* of what is known, from 1; 0: none */
    known at[PLACES];         /* megabytes, of which a search writes the first few */
};

struct sm_routes *sm_routes_new(void) {
    struct sm_routes *routes = sm_malloc(sizeof *routes);
    if (routes) memset(routes, 0, offsetof(struct sm_routes, at));
    return routes;
}

void sm_routes_free(struct sm_routes *routes) { sm_free(routes); }

/* A dimension that neither end pads is cut only where chips divide it, and they divide it where
 * they divide what it has in common with all of them: it is made as short. Returns how many bytes
 * of the array are one of the journey's. */
static double shorten(sm_journey *j) {
    double chips = 1, bytes = j->element_bytes;
    for (int a = 0; a < j->axes; a++) chips *= j->chips[a];
    for (int d = 0; d < j->rank; d++) {
        if (j->uneven >> d & 1u) continue;
        double common = sm_common_factor((int)fmod(j->size[d], chips), (int)chips);
        bytes *= j->size[d] / common;
        j->size[d] = common;
    }
    j->element_bytes = 1;
    return bytes;
}

static bool is_same(const void *a, const void *b) { return memcmp(a, b, sizeof(sm_journey)) == 0; }

bool sm_routes_find(struct sm_routes *routes, const sm_journey *journey, sm_route *route) {
    if (!routes) return sm_route_find(journey, route);
    sm_journey j;
    memcpy(&j, journey, sizeof j);
    double unit = shorten(&j);
    uint64_t at = sm_hash_bytes(&j, sizeof j);
    int16_t *place = &routes->place[at % PLACES];
    for (int i = 1; i < TRIES && *place && !is_same(&routes->at[*place - 1].journey, &j); i++)
        place = &routes->place[(at + (uint64_t)i) % PLACES];
    const bool fresh = !*place;
    if (fresh) *place = ++routes->n;
    known *k = &routes->at[*place - 1];
    if (fresh || !is_same(&k->journey, &j)) {
        memcpy(&k->journey, &j, sizeof j); /* and its padding, which is compared */
        k->found = sm_route_find(&j, &k->route);
    }
    *route = k->route;
    route->bytes *= unit;
    return k->found;
}
