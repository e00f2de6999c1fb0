/* What is counted while a simulation runs, and what it comes to. */
#include "simulation.h"
#include <string.h>

/* Percentiles from a histogram of logarithmic bins (as HdrHistogram has them). Bins are linear
 * within an octave: exponent and mantissa alone find the bin of a value. The width of a bin is at
 * most 1/128 of its values. */

static int bin_of(double value) {
    int exponent = 0;
    double mantissa = frexp(value, &exponent); /* [0.5, 1) */
    int octave = exponent - 1 - SIM_LEAST_OCTAVE;
    if (octave < 0) return 0;
    if (octave >= SIM_OCTAVES) return SIM_BINS - 1;
    return octave * SIM_BINS_OF_OCTAVE + (int)((2.0 * mantissa - 1.0) * SIM_BINS_OF_OCTAVE);
}

void sim_histogram_add(sim_histogram *h, double value) {
    if (h->n == 0.0 || value < h->least) h->least = value;
    h->n += 1.0;
    h->sum += value;
    if (value > h->most) h->most = value;
    if (!(value > 0.0)) {
        h->nothing++;
        return;
    }
    h->bin[bin_of(value)]++;
}

double sim_histogram_quantile(const sim_histogram *h, double q) {
    double rank = ceil(q * h->n), seen = (double)h->nothing;
    if (h->n <= 0.0 || seen >= rank) return 0.0;
    for (int i = 0; i < SIM_BINS; i++) {
        seen += (double)h->bin[i];
        if (seen < rank) continue;
        double within = (i % SIM_BINS_OF_OCTAVE + 0.5) / SIM_BINS_OF_OCTAVE; /* the middle of it */
        double value = ldexp(1.0 + within, i / SIM_BINS_OF_OCTAVE + SIM_LEAST_OCTAVE);
        return fmax(h->least, fmin(value, h->most));
    }
    return h->most;
}

sm_percentiles sim_histogram_read(const sim_histogram *h) {
    return (sm_percentiles){
        .mean = h->n > 0.0 ? h->sum / h->n : 0.0,
        .p50 = sim_histogram_quantile(h, 0.50),
        .p90 = sim_histogram_quantile(h, 0.90),
        .p99 = sim_histogram_quantile(h, 0.99),
        .most = h->most,
    };
}

#define FIRST_SAMPLE_S 1e-3

sm_status sim_totals_begin(sim_simulation *s, bool told) {
    sim_totals *t = &s->totals;
    size_t classes = (size_t)s->options->n_classes;
    if (told && !(t->times = sm_calloc(1, sizeof *t->times))) return sm_fail_memory(s->err);
    if (classes > 0 && !(t->of_class = sm_calloc(classes, sizeof *t->of_class)))
        return sm_fail_memory(s->err);
    t->sample_s = s->options->sample_s > 0.0 ? s->options->sample_s : FIRST_SAMPLE_S;
    for (int i = 0; i < s->replicas; i++)
        if (s->replica[i].role != SIM_PREFILL_POOL || s->first_entry == 0)
            t->kv_capacity += (double)s->replica[i].capacity;
    return SM_OK;
}

/* ---- the series: averages over intervals that double when there are too many ---- */

static void merge_samples(sim_totals *t) {
    for (int i = 0; i < t->samples / 2; i++) {
        const sm_sample *a = &t->sample[2 * i], *b = a + 1;
        t->sample[i] = (sm_sample){
            b->at_s, 0.5 * (a->waiting + b->waiting), 0.5 * (a->running + b->running),
            0.5 * (a->kv_occupancy + b->kv_occupancy), 0.5 * (a->utilisation + b->utilisation)};
    }
    t->samples /= 2;
    t->sample_s *= 2.0;
}

static void add_sample(sim_totals *t, double at_s, double seconds) {
    const sim_areas *a = &t->area, *b = &t->sampled;
    t->sample[t->samples++] =
        (sm_sample){at_s, (a->waiting - b->waiting) / seconds, (a->running - b->running) / seconds,
                    t->kv_capacity > 0.0 ? (a->kv - b->kv) / seconds / t->kv_capacity : 0.0,
                    (a->busy - b->busy) / seconds}; /* of all replicas: made a share when read */
    t->sampled = *a;
    if (t->samples == SM_MAX_SAMPLES) merge_samples(t);
}

static void accrue(sim_totals *t, double now_s) {
    double seconds = now_s - t->now_s;
    t->area.in_system += seconds * t->in_system;
    t->area.waiting += seconds * t->waiting;
    t->area.running += seconds * t->running;
    t->area.busy += seconds * t->busy;
    t->area.kv += seconds * t->kv;
    t->now_s = now_s;
}

void sim_advance(sim_totals *t, double now_s) {
    if (now_s <= t->now_s) return;
    while (t->sample_at_s + t->sample_s <= now_s) {
        double next = t->sample_at_s + t->sample_s;
        if (next <= t->sample_at_s) break; /* the clock is too far along for so short an interval */
        accrue(t, fmax(next, t->now_s));
        add_sample(t, next, t->sample_s);
        t->sample_at_s = next;
    }
    accrue(t, now_s);
}

void sim_count_kv(sim_simulation *s, sim_replica *r) {
    int64_t held = r->used + r->tree.pinned;
    if (r->role == SIM_PREFILL_POOL) return;
    s->totals.kv += (double)(held - r->kv_seen);
    r->kv_seen = held;
}

/* ---- requests ---- */

static bool is_late(double value, double own, double most) {
    if (own > 0.0) most = own;
    return most > 0.0 && value > most;
}

static void count_class(sim_totals *t, const sim_sequence *q, double ttft, double tpot, bool late) {
    struct sim_of_class *c = &t->of_class[q->kind];
    c->finished += 1.0;
    c->within += late ? 0.0 : 1.0;
    sim_histogram_add(&c->ttft, ttft);
    sim_histogram_add(&c->e2e, t->now_s - q->arrival_s);
    if (q->output > 1) sim_histogram_add(&c->tpot, tpot);
}

sm_status sim_count_served(sim_simulation *s, const sim_sequence *q) {
    static const sm_request_class usual = {.name = ""};
    sim_totals *t = &s->totals;
    assert(q->arrival_s <= q->start_s && q->first_token_s <= t->now_s);
    double ttft = q->first_token_s - q->arrival_s, decoded = (double)q->output - 1.0;
    double tpot = decoded > 0.0 ? (t->now_s - q->first_token_s) / decoded : 0.0;
    const sm_simulation *o = s->options;
    t->finished += 1.0;
    t->in_system -= 1.0;
    t->prompt += (double)q->prompt;
    t->output += (double)q->output;
    t->recomputed += (double)(q->prefilled - (q->prompt - q->cached));
    t->last_s = t->now_s;
    if (t->times) {
        sim_histogram_add(&t->times->ttft, ttft);
        sim_histogram_add(&t->times->e2e, t->now_s - q->arrival_s);
        sim_histogram_add(&t->times->queue, q->start_s - q->arrival_s);
        if (decoded > 0.0) sim_histogram_add(&t->times->tpot, tpot);
    }
    const sm_request_class *c = o->n_classes > 0 ? &o->classes[q->kind] : &usual;
    bool late = is_late(ttft, c->ttft_s, o->ttft_s) || is_late(tpot, c->tpot_s, o->tpot_s);
    t->within += late ? 0.0 : 1.0;
    if (t->of_class) count_class(t, q, ttft, tpot, late);
    if (s->watch->served) {
        sm_request_served served = {.number = q->number,
                                    .arrival_s = q->arrival_s,
                                    .start_s = q->start_s,
                                    .first_token_s = q->first_token_s,
                                    .end_s = s->totals.now_s,
                                    .prompt = (double)q->prompt,
                                    .output = (double)q->output,
                                    .cached = (double)q->cached,
                                    .replica = q->replica,
                                    .preemptions = q->preemptions,
                                    .kind = q->kind};
        s->watch->served(s->watch->context, &served);
    }
    return sim_client_goes_on(s, q);
}

/* ---- the answer ---- */

static void read_rates(const sim_simulation *s, sm_simulated *out) {
    const sim_totals *t = &s->totals;
    double chips = 0.0;
    for (int i = 0; i < s->replicas; i++) chips += s->replica[i].engine->chips;
    out->within_slo = t->requests > 0.0 ? t->within / t->requests : 0.0;
    out->prefix_hit_rate = t->hit_prompts > 0.0 ? t->cached / t->hit_prompts : 0.0;
    out->mean_batch = t->decode_steps > 0.0 ? t->batch_sum / t->decode_steps : 0.0;
    if (!(out->seconds > 0.0)) return;
    out->utilisation = out->busy_s / (out->seconds * s->replicas);
    out->goodput_per_s = t->within / out->seconds;
    out->requests_per_s = t->finished / out->seconds;
    out->output_tokens_per_s = t->output / out->seconds;
    out->output_tokens_per_s_per_chip = chips > 0.0 ? out->output_tokens_per_s / chips : 0.0;
    out->mean_in_system = t->area.in_system / out->seconds;
}

static void read_samples(sim_simulation *s, sm_simulated *out) {
    sim_totals *t = &s->totals;
    double rest = t->now_s - t->sample_at_s;
    if (rest > 0.0 && t->samples < SM_MAX_SAMPLES) add_sample(t, t->now_s, rest);
    out->samples = t->samples;
    memcpy(out->sample, t->sample, sizeof t->sample);
    for (int i = 0; i < t->samples; i++) out->sample[i].utilisation /= s->replicas;
}

/* A queue that is stable goes up and down; one that grows steadily has three times as many waiting
 * in the second half as in the first. */
static void read_overload(const sim_simulation *s, sm_simulated *out) {
    const double share = 0.05;
    const sim_totals *t = &s->totals;
    double middle = 0.5 * (t->first_s + t->last_arrival_s), sum[2] = {0.0, 0.0}, n[2] = {0.0, 0.0};
    for (int i = 0; i < out->samples && out->sample[i].at_s <= t->last_arrival_s; i++) {
        int half = out->sample[i].at_s > middle;
        sum[half] += out->sample[i].waiting;
        n[half] += 1.0;
        out->waiting_at_last = out->sample[i].waiting;
    }
    bool grows = n[0] > 0.0 && n[1] > 0.0 && sum[1] / n[1] > 2.0 * sum[0] / n[0];
    out->overloaded =
        s->options->concurrency <= 0.0 && grows && out->waiting_at_last > share * t->requests;
}

static void read_cache(const sim_simulation *s, sm_simulated *out) {
    static const double shares[] = {SM_CACHE_POINTS(SM_NAME_OF)};
    const double all = s->curve ? sim_curve_found(s->curve, HUGE_VAL) : 0.0;
    const double page = (double)s->page, prompts = s->totals.hit_prompts;
    double hbm = 0.0, host = 0.0;
    if (!(all > 0.0 && prompts > 0.0)) return;
    for (int i = s->first_entry; i < s->first_entry + s->entries; i++) {
        hbm += (double)s->replica[i].capacity;
        host += (double)s->replica[i].host;
    }
    for (int k = 0; k < SM_CACHE_COUNT; k++) {
        double pages = k == SM_CACHE_HBM ? hbm : hbm + host;
        for (int bin = 0; k > SM_CACHE_HOST && bin < SIM_CURVE_BINS; bin++) {
            pages = exp2(bin / 8.0);
            if (sim_curve_found(s->curve, pages) >= shares[k] * all) break;
        }
        out->cache[k] =
            (sm_cache_point){pages * page, sim_curve_found(s->curve, pages) * page / prompts};
    }
}

void sim_totals_read(sim_simulation *s, sm_simulated *out) {
    const sim_totals *t = &s->totals;
    *out = (sm_simulated){.requests = t->requests, .finished = t->finished, .refused = t->refused};
    out->prompt_tokens = t->prompt;
    out->output_tokens = t->output;
    out->cached_tokens = t->cached;
    out->recomputed_tokens = t->recomputed;
    out->prefilled_tokens = t->prefilled;
    out->decoded_tokens = t->decoded;
    out->seconds = t->finished > 0.0 ? t->last_s - t->first_s : 0.0;
    double gaps = t->requests - 1.0; /* n requests hold n - 1 gaps */
    out->arriving_s = gaps > 0.0 ? (t->last_arrival_s - t->first_s) * (gaps + 1.0) / gaps : 0.0;
    out->busy_s = t->area.busy;
    out->ttft_s = sim_histogram_read(&t->times->ttft);
    out->tpot_s = sim_histogram_read(&t->times->tpot);
    out->e2e_s = sim_histogram_read(&t->times->e2e);
    out->queue_s = sim_histogram_read(&t->times->queue);
    out->preemptions = t->preemptions;
    out->steps = t->steps;
    read_rates(s, out);
    read_cache(s, out);
    for (int i = 0; i < s->options->n_classes; i++) {
        const struct sim_of_class *c = &t->of_class[i];
        out->of_class[i] =
            (sm_class_served){c->finished, c->requests > 0.0 ? c->within / c->requests : 0.0,
                              sim_histogram_read(&c->ttft), sim_histogram_read(&c->tpot),
                              sim_histogram_read(&c->e2e)};
    }
    read_samples(s, out);
    read_overload(s, out);
}
