/* What a row of inference states, each as seconds, and which of them is compared first. */
#include <math.h>

#include "scalemodel/truth.h"

const char *sm_served_name(sm_served quantity) {
    static const char *const names[SM_SERVED_COUNT] = {SM_SERVED(SM_NAME_OF)};
    return quantity < SM_SERVED_COUNT ? names[quantity] : "?";
}

sm_regime sm_served_regime(sm_served quantity) {
    static const sm_regime regimes[SM_SERVED_COUNT] = {SM_SERVED(SM_THIRD_OF)};
    return quantity < SM_SERVED_COUNT ? regimes[quantity] : SM_REGIME_throughput;
}

static double positive(double seconds) {
    return seconds > 0.0 && isfinite(seconds) ? seconds : NAN;
}

double sm_inference_measured(const sm_inference_row *row, sm_served quantity) {
    const double all = row->tokens_per_s, each = row->tokens_per_s_per_chip;
    switch (quantity) {
    case SM_SERVED_TPOT: return positive(row->tpot_s);
    case SM_SERVED_TOKEN: return positive(1.0 / (all > 0.0 ? all : each * row->chips));
    case SM_SERVED_LATENCY: return positive(row->latency_s);
    case SM_SERVED_TTFT: return positive(row->ttft_s);
    default: return NAN;
    }
}

/* With all requests there at once the time of a token is that of a queue: throughput first. */
sm_served sm_inference_primary(const sm_inference_row *row) {
    int q = 0;
    bool at_once = !(row->batch > 0) && !(row->concurrency > 0) && !(row->request_rate_per_s > 0);
    if (at_once && !isnan(sm_inference_measured(row, SM_SERVED_TOKEN))) return SM_SERVED_TOKEN;
    while (q < SM_SERVED_COUNT && isnan(sm_inference_measured(row, (sm_served)q))) q++;
    return (sm_served)q;
}
