/* The requests a row of inference was measured under, and how its engine takes them in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "inference_parts.h"

static bool is_phase(const sm_inference_row *r, const char *phase) {
    return strcmp(r->phase, phase) == 0;
}

/* "uniform[0.8L,L]", "uniform[1,L]" and "lognormal[1.1]"; of the last two means are stated.
 * "fixed": all are alike. */
static double lengths_of(const sm_inference_row *r, sm_load *load) {
    if (strncmp(r->len_sampling, "uniform[0.8L", 12) == 0) return (1 + SM_LOAD_SHORTEST) / 2;
    if (strncmp(r->len_sampling, "uniform[1,", 10) == 0) load->shortest = 0.5 / r->input_len;
    if (strcmp(r->len_sampling, "fixed") == 0) load->shortest = 1;
    if (strncmp(r->len_sampling, "lognormal[", 10) == 0) load->spread = atof(r->len_sampling + 10);
    return 1;
}

static void arrivals_of(const sm_inference_row *r, sm_load *load) {
    load->kind = SM_LOAD_QUEUE;
    load->requests = NAN;
    if (r->batch > 0) {
        load->kind = SM_LOAD_BATCH;
        load->requests = r->batch;
    } else if (r->concurrency > 0) {
        load->kind = SM_LOAD_CLOSED;
        load->requests = r->concurrency;
    } else if (r->request_rate_per_s > 0) {
        load->kind = SM_LOAD_OPEN;
        load->requests = r->request_rate_per_s;
    }
}

bool inference_load_of(const sm_inference_row *r, inference_load *out, const char **why) {
    sm_load *load = &out->load;
    double share = lengths_of(r, load);
    load->no_prefill = is_phase(r, "decode");
    load->no_decode = is_phase(r, "prefill");
    load->waited_s = r->ttft_s > 0 ? r->ttft_s : 0;
    if (r->requests > 0 && r->concurrency > 0) load->rounds = fmax(1, r->requests / r->concurrency);
    if (r->ttft_is && strcmp(r->ttft_is, "burst") == 0) load->rounds = 1;
    out->prompt = r->input_len * share;
    out->output = load->no_decode ? 1 : r->output_len * share;
    arrivals_of(r, load);
    *why = "neither batch, concurrency nor rate is stated, and a time per token depends on them";
    if (load->kind == SM_LOAD_QUEUE && isnan(sm_inference_measured(r, SM_SERVED_TOKEN)) &&
        !(r->kv_tokens > 0))
        return false;
    *why = "input_len not stated";
    if (!(out->prompt >= 1)) return false;
    *why = "output_len not stated";
    if (!(out->output >= 1)) return false;
    *why = NULL;
    return true;
}
