/* How many replicas a traffic takes:
 *   replicas = ceil(requests per second / (utilisation * requests per second of one replica)).
 * Utilisation is four fifths. Arrivals are never even, and the queue of an M/G/1 server grows as
 * 1 / (1 - utilisation) (Pollaczek, Khinchine), without bound towards saturation. */
#include <math.h>
#include <string.h>

#include "serve_space.h"

static const double MOST_UTILISATION = 0.8;

/* Mean time per token when prefills take their share of the same chips. */
static double mixed_tpot(const sm_serve_point *p) {
    return p->batch / (p->tokens_per_s_per_chip_with_prefill * p->chips);
}

static sm_fleet fleet_of(const sm_serve_job *job, const sm_serve_point *p, double usd_per_hour,
                         double requests_per_s) {
    sm_fleet f = {.point = *p};
    f.requests_per_s_per_replica = p->tokens_per_s_per_chip_with_prefill * p->chips / job->output;
    f.replicas =
        larger(1, ceil(requests_per_s / (f.requests_per_s_per_replica * MOST_UTILISATION)));
    f.chips = f.replicas * p->chips;
    f.usd_per_hour = f.chips * usd_per_hour;
    f.utilisation = requests_per_s / (f.replicas * f.requests_per_s_per_replica);
    return f;
}

static sm_status fail_mixed(const sm_serve_result *r, double limit, sm_error *err) {
    char wanted[32], least[32];
    double best = INFINITY;
    for (size_t i = 0; i < r->n; i++) best = smaller(best, mixed_tpot(&r->point[i]));
    sm_format_seconds(wanted, sizeof wanted, limit);
    sm_format_seconds(least, sizeof least, best);
    return sm_fail(err, SM_NEGATIVE,
                   "no replica that prefills and decodes keeps a token to %s: the least is %s; "
                   "pools of their own may",
                   wanted, least);
}

sm_status sm_serve_fleet(const sm_serve_job *job, const sm_calibration *calibration,
                         const sm_serve_search_options *options, double requests_per_s,
                         sm_fleet *fleet, sm_error *err) {
    sm_serve_result r;
    sm_serve_search_options o;
    double usd = job->usd_per_chip_hour;
    memset(fleet, 0, sizeof *fleet);
    sm_status status = sm_sized_take(&o, sizeof o, options, err);
    if (status) return status;
    if (!(requests_per_s > 0 && requests_per_s <= 1e9))
        return sm_fail(err, SM_BAD_INPUT, "a traffic of %g requests a second", requests_per_s);
    sm_arena *arena = sm_arena_new();
    if (!arena) return sm_fail_memory(err);
    o.with_prefill = true;
    if (usd < 0) usd = sm_chip_usd_per_hour(&job->system->chip);
    status = sm_serve_search(job, calibration, &o, arena, &r, err);
    for (size_t i = 0; status == SM_OK && i < r.n; i++) {
        if (o.tpot_s > 0 && mixed_tpot(&r.point[i]) > o.tpot_s) continue;
        sm_fleet f = fleet_of(job, &r.point[i], usd, requests_per_s);
        if (fleet->chips <= 0 || f.chips < fleet->chips) *fleet = f;
    }
    if (status == SM_OK && fleet->chips <= 0) status = fail_mixed(&r, o.tpot_s, err);
    sm_arena_free(arena);
    return status;
}
