/* The requests a row of inference was measured under, and how its engine takes them in. */
#include <math.h>
#include <string.h>

#include "inference_parts.h"

/* "uniform[0.8L,L]" */
static double mean_share(const sm_inference_row *r) {
    return strncmp(r->len_sampling, "uniform[0.8L", 12) == 0 ? 0.9 : 1.0;
}

static bool is_phase(const sm_inference_row *r, const char *phase) {
    return strcmp(r->phase, phase) == 0;
}

static void arrivals_of(const sm_inference_row *r, inference_load *load) {
    load->arrival = ARRIVE_ALL;
    load->requests = NAN;
    if (r->batch > 0) {
        load->arrival = ARRIVE_TOGETHER;
        load->requests = r->batch;
    } else if (r->concurrency > 0) {
        load->arrival = ARRIVE_IN_TURN;
        load->requests = r->concurrency;
    } else if (r->decode.batch > 0) {
        load->arrival = ARRIVE_IN_TURN;
        load->requests = r->decode.batch * (r->decode.workers > 0 ? r->decode.workers : 1);
    } else if (r->request_rate_per_s > 0) {
        load->arrival = ARRIVE_AT_RATE;
        load->requests = r->request_rate_per_s;
    }
}

bool inference_load_of(const sm_inference_row *r, inference_load *load, const char **why) {
    double share = mean_share(r);
    load->prefill = !is_phase(r, "decode");
    load->decode = !is_phase(r, "prefill");
    load->prompt = r->input_len * share;
    load->output = load->decode ? r->output_len * share : 1;
    load->waited_s = r->ttft_s > 0 ? r->ttft_s : 0;
    arrivals_of(r, load);
    *why = "neither batch, concurrency nor rate is stated, and a time per token depends on them";
    if (load->arrival == ARRIVE_ALL && isnan(sm_inference_measured(r, SM_SERVED_TOKEN)))
        return false;
    *why = "input_len not stated";
    if (!(load->prompt >= 1)) return false;
    *why = "output_len not stated";
    if (!(load->output >= 1)) return false;
    *why = NULL;
    return true;
}
