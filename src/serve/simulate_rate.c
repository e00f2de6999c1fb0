/* The highest rate of arrivals that meets the SLO. Attainment falls as the rate grows: the rate is
 * doubled or halved until it is bracketed, then bisected on a logarithmic scale. */
#include "scalemodel/simulate.h"

#include <math.h>

enum { MOST_DOUBLINGS = 24 };
#define PRECISION 1.01

typedef struct search {
    const sm_simulation *simulation;
    const sm_rated_arrivals *arrivals;
    double within;
    sm_max_rate *out;
    sm_error *err;
} search;

/* Simulate at a rate; a run that meets the SLO is kept. */
static sm_status try_rate(search *h, double rate, bool *meets) {
    sm_arrivals arrivals;
    sm_status status = h->arrivals->begin(h->arrivals->context, rate, &arrivals, h->err);
    if (status) return status;
    sm_simulated *result = sm_calloc(1, sizeof *result);
    if (!result) return sm_fail_memory(h->err);
    status = sm_simulate(h->simulation, &arrivals, NULL, result, h->err);
    *meets = status == SM_OK && result->within_slo >= h->within;
    h->out->runs++;
    if (*meets) h->out->rate = rate;
    if (*meets || h->out->rate == 0.0) h->out->at = *result;
    sm_free(result);
    return status;
}

/* From one rate on by `factor` until meeting the SLO is no longer `wanted`. */
static sm_status walk(search *h, double *rate, double factor, bool wanted, bool *turned) {
    *turned = false;
    for (int i = 0; i < MOST_DOUBLINGS && !*turned; i++) {
        bool meets = false;
        *rate *= factor;
        sm_status status = try_rate(h, *rate, &meets);
        if (status) return status;
        *turned = meets != wanted;
    }
    return SM_OK;
}

static sm_status bisect(search *h, double low, double high) {
    while (high / low > PRECISION) {
        double middle = sqrt(low * high);
        bool meets = false;
        sm_status status = try_rate(h, middle, &meets);
        if (status) return status;
        if (meets) low = middle;
        else high = middle;
    }
    return SM_OK;
}

sm_status sm_simulate_max_rate(const sm_simulation *simulation, const sm_rated_arrivals *arrivals,
                               double within, sm_max_rate *out, sm_error *err) {
    *out = (sm_max_rate){.rate = 0.0};
    search h = {simulation, arrivals, within, out, err};
    double rate = 1.0;
    bool meets = false, turned = false;
    sm_status status = try_rate(&h, rate, &meets);
    if (!status) status = walk(&h, &rate, meets ? 2.0 : 0.5, meets, &turned);
    out->unbounded = meets && !turned;
    if (status || !turned) return status;
    return meets ? bisect(&h, rate / 2.0, rate) : bisect(&h, rate, 2.0 * rate);
}
