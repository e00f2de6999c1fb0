/* Synthetic arrivals: gaps and lengths drawn from their distributions, in an order that depends on
 * the seed alone. */
#include "scalemodel/simulate.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925286766559

/* (0, 1] */
static double draw(sm_rng *rng) { return 1.0 - sm_rng_unit(rng); }

/* Box and Muller, "A note on the generation of random normal deviates" (1958). */
static double draw_normal(sm_rng *rng) {
    double radius = sqrt(-2.0 * log(draw(rng)));
    return radius * cos(TWO_PI * sm_rng_unit(rng));
}

/* Shape at least 1: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
 */
static double draw_gamma_above_one(sm_rng *rng, double shape) {
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = draw_normal(rng), t = 1.0 + c * x;
        double v = t * t * t;
        if (t > 0.0 && log(draw(rng)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

/* Of mean 1. Gamma gaps of a coefficient of variation cv have shape 1 / cv^2; below 1, from the
 * same paper: Gamma(a) = Gamma(a + 1) U^(1/a). */
static double draw_gap(sm_synthetic *s) {
    if (s->kind == SM_ARRIVALS_POISSON) return -log(draw(&s->rng));
    if (s->kind == SM_ARRIVALS_UNIFORM || s->cv <= 0.0) return 1.0;
    double shape = 1.0 / (s->cv * s->cv);
    if (shape >= 1.0) return draw_gamma_above_one(&s->rng, shape) / shape;
    double power = pow(draw(&s->rng), 1.0 / shape);
    return power * draw_gamma_above_one(&s->rng, shape + 1.0) / shape;
}

/* ---- rates that change: time runs as fast as the rate is high (a time change) ---- */

/* What comes in one turn of all spans, and how long that takes. */
static double cycle_of(const sm_synthetic *s, double *seconds) {
    double come = 0.0;
    *seconds = 0.0;
    for (int i = 0; i < s->spans; i++) {
        come += s->span[i].rate_per_s * s->span[i].seconds;
        *seconds += s->span[i].seconds;
    }
    return come;
}

double sm_synthetic_rate(const sm_synthetic *s) {
    double seconds, come = cycle_of(s, &seconds);
    return s->spans > 0 ? come / seconds : s->rate_per_s;
}

/* When so many more requests have come, at the rates from now on. */
static double time_after(const sm_synthetic *s, double gap) {
    double seconds, come = cycle_of(s, &seconds);
    if (s->spans == 0) return s->now_s + gap / s->rate_per_s;
    double cycle = floor(s->now_s / seconds), at = s->now_s - cycle * seconds;
    double begin = 0.0, turns = floor(gap / come);
    cycle += turns;
    gap -= turns * come;
    for (int i = 0;; begin += s->span[i].seconds, i++) {
        if (i == s->spans) i = 0, begin = at = 0.0, cycle += 1.0;
        double left = begin + s->span[i].seconds - at, here = left * s->span[i].rate_per_s;
        if (left <= 0.0) continue;
        if (gap <= here && here > 0.0)
            return fmax(cycle * seconds + at + gap / s->span[i].rate_per_s, s->now_s);
        gap -= here;
        at += left;
    }
}

/* Lognormal of that mean and coefficient of variation: sigma^2 = log(1 + cv^2),
 * mu = log(mean) - sigma^2 / 2. */
static double draw_lognormal(sm_rng *rng, double mean, double cv) {
    double variance = log1p(cv * cv);
    return exp(log(mean) - 0.5 * variance + sqrt(variance) * draw_normal(rng));
}

/* Evenly from a share of it, or lognormal, as whole tokens, at least 1. */
static double draw_length(sm_rng *rng, double mean, double cv, double least_share) {
    if (least_share > 0.0)
        return fmax(1.0, floor(mean * (1.0 - (1.0 - least_share) * sm_rng_unit(rng)) + 0.5));
    if (cv <= 0.0) return fmax(1.0, floor(mean + 0.5));
    return fmin(fmax(1.0, floor(draw_lognormal(rng, mean, cv) + 0.5)), SM_MAX_TOKENS);
}

static bool is_variation(double cv) { return cv >= 0.0 && cv <= SM_MAX_CV; }

static sm_status check(const sm_synthetic *s, sm_error *err) {
    const sm_lengths *l = &s->lengths;
    double rate = sm_synthetic_rate(s), share = 0.0;
    if (!(rate > 0.0) || !isfinite(rate))
        return sm_fail(err, SM_BAD_INPUT, "arrivals need a rate above 0");
    if (s->spans > SM_MOST_SPANS || s->n_classes > SM_MOST_CLASSES)
        return sm_fail(err, SM_BAD_INPUT, "a rate has at most %d spans, requests %d classes",
                       SM_MOST_SPANS, SM_MOST_CLASSES);
    for (int i = 0; i < s->spans; i++)
        if (!(s->span[i].rate_per_s >= 0.0 && s->span[i].seconds > 0.0))
            return sm_fail(err, SM_BAD_INPUT, "a span has a rate of 0 or more and a time above 0");
    for (int i = 0; i < s->n_classes; i++) share += s->classes[i].share;
    if (s->n_classes > 0 && !(share > 0.0))
        return sm_fail(err, SM_BAD_INPUT, "classes need a share above 0");
    if (!(s->turns >= 0.0 && s->turns <= SM_MOST_TURNS) || !is_variation(s->turns_cv) ||
        !(s->think_s >= 0.0) || !is_variation(s->think_cv) ||
        !(s->shared_prefix >= 0.0 && s->shared_prefix <= SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "a conversation has 1 to %d turns", SM_MOST_TURNS);
    if (!(l->prompt >= 1.0 && l->prompt <= SM_MAX_TOKENS) ||
        !(l->output >= 1.0 && l->output <= SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "prompts and outputs have 1 to %.0f tokens",
                       SM_MAX_TOKENS);
    if (!(s->least_share >= 0.0 && s->least_share <= 1.0))
        return sm_fail(err, SM_BAD_INPUT, "the least length is a share of the most, 0 to 1");
    double cv = s->kind == SM_ARRIVALS_GAMMA ? s->cv : 0.0;
    if (!is_variation(l->prompt_cv) || !is_variation(l->output_cv) || !is_variation(cv))
        return sm_fail(err, SM_BAD_INPUT, "a coefficient of variation lies between 0 and %.0f",
                       SM_MAX_CV);
    return SM_OK;
}

double sm_synthetic_prompt(const sm_synthetic *s) {
    double turns = fmax(1.0, s->turns), each = s->lengths.prompt + s->lengths.output;
    /* Turn k of n has k - 1 exchanges before it: (n - 1) / 2 on average, where all are as long. */
    return s->shared_prefix + s->lengths.prompt + 0.5 * (turns - 1.0) * each;
}

static const char *draw_class(sm_synthetic *s) {
    double all = 0.0;
    for (int i = 0; i < s->n_classes; i++) all += s->classes[i].share;
    if (s->n_classes == 0) return NULL;
    double left = all * sm_rng_unit(&s->rng);
    int i = 0;
    while (i + 1 < s->n_classes && left >= s->classes[i].share) left -= s->classes[i++].share;
    return s->classes[i].name;
}

/* A request alone, or the first turn of a conversation. */
static void begin_one(sm_synthetic *s, sm_request *request) {
    s->now_s = time_after(s, draw_gap(s));
    s->kind_of = draw_class(s);
    s->history = s->shared_prefix;
    s->left = s->turns > 0.0 ? draw_length(&s->rng, s->turns, s->turns_cv, 0.0) : 1.0;
    if (s->turns > 0.0) s->conversation++;
    request->arrival_s = s->now_s;
}

static int next(void *context, sm_request *request, sm_error *err) {
    sm_synthetic *s = context;
    if (s->made >= s->requests) return 0;
    if (s->made == 0.0 && check(s, err)) return -1;
    const sm_lengths *l = &s->lengths;
    *request = (sm_request){.follows = s->left > 0.0};
    if (!request->follows) begin_one(s, request);
    else if (s->think_cv <= 0.0 || s->think_s <= 0.0) request->think_s = s->think_s;
    else request->think_s = draw_lognormal(&s->rng, s->think_s, s->think_cv);
    s->made += 1.0;
    s->left -= 1.0;
    double more = draw_length(&s->rng, l->prompt, l->prompt_cv, s->least_share);
    request->prompt = fmin(s->history + more, SM_MAX_TOKENS);
    request->output = draw_length(&s->rng, l->output, l->output_cv, s->least_share);
    request->conversation = s->turns > 0.0 ? s->conversation : 0;
    request->prefix = s->shared_prefix > 0.0 ? 1 : 0;
    request->shared_prefix = s->shared_prefix;
    request->kind = s->kind_of;
    s->history = request->prompt + request->output;
    return 1;
}

sm_arrivals sm_synthetic_arrivals(sm_synthetic *state) {
    state->rng.state = state->seed;
    state->now_s = state->made = state->left = state->history = 0.0;
    state->conversation = 0;
    return (sm_arrivals){state, next};
}
