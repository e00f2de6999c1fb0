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

/* Of mean `shape`. Below 1: Gamma(a) = Gamma(a + 1) U^(1/a), from the same paper. */
static double draw_gamma(sm_rng *rng, double shape) {
    if (shape >= 1.0) return draw_gamma_above_one(rng, shape);
    double power = pow(draw(rng), 1.0 / shape);
    return power * draw_gamma_above_one(rng, shape + 1.0);
}

/* Gamma gaps of mean 1 and a coefficient of variation cv have shape 1 / cv^2. */
static double draw_gap(sm_synthetic *s) {
    double mean = 1.0 / s->rate_per_s;
    if (s->kind == SM_ARRIVALS_POISSON) return -mean * log(draw(&s->rng));
    if (s->kind == SM_ARRIVALS_UNIFORM || s->cv <= 0.0) return mean;
    double shape = 1.0 / (s->cv * s->cv);
    return mean * draw_gamma(&s->rng, shape) / shape;
}

/* Evenly from a share of it, or lognormal of that mean and coefficient of variation, as whole
 * tokens, at least 1:
 * sigma^2 = log(1 + cv^2), mu = log(mean) - sigma^2 / 2. */
static double draw_length(sm_rng *rng, double mean, double cv, double least_share) {
    if (least_share > 0.0)
        return fmax(1.0, floor(mean * (1.0 - (1.0 - least_share) * sm_rng_unit(rng)) + 0.5));
    if (cv <= 0.0) return fmax(1.0, floor(mean + 0.5));
    double variance = log1p(cv * cv);
    double length = exp(log(mean) - 0.5 * variance + sqrt(variance) * draw_normal(rng));
    return fmin(fmax(1.0, floor(length + 0.5)), SM_MAX_TOKENS);
}

static sm_status check(const sm_synthetic *s, sm_error *err) {
    const sm_lengths *l = &s->lengths;
    if (!(s->rate_per_s > 0.0) || !isfinite(s->rate_per_s))
        return sm_fail(err, SM_BAD_INPUT, "arrivals need a rate above 0");
    if (!(l->prompt >= 1.0 && l->prompt <= SM_MAX_TOKENS) ||
        !(l->output >= 1.0 && l->output <= SM_MAX_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "prompts and outputs have 1 to %.0f tokens",
                       SM_MAX_TOKENS);
    if (!(s->least_share >= 0.0 && s->least_share <= 1.0))
        return sm_fail(err, SM_BAD_INPUT, "the least length is a share of the most, 0 to 1");
    double cv = s->kind == SM_ARRIVALS_GAMMA ? s->cv : 0.0;
    if (!(l->prompt_cv >= 0.0 && l->prompt_cv <= SM_MAX_CV) ||
        !(l->output_cv >= 0.0 && l->output_cv <= SM_MAX_CV) || !(cv >= 0.0 && cv <= SM_MAX_CV))
        return sm_fail(err, SM_BAD_INPUT, "a coefficient of variation lies between 0 and %.0f",
                       SM_MAX_CV);
    return SM_OK;
}

static int next(void *context, sm_request *request, sm_error *err) {
    sm_synthetic *s = context;
    if (s->made >= s->requests) return 0;
    if (s->made == 0.0 && check(s, err)) return -1;
    s->made += 1.0;
    s->now_s += draw_gap(s);
    const sm_lengths *l = &s->lengths;
    *request = (sm_request){.arrival_s = s->now_s};
    request->prompt = draw_length(&s->rng, l->prompt, l->prompt_cv, s->least_share);
    request->output = draw_length(&s->rng, l->output, l->output_cv, s->least_share);
    return 1;
}

sm_arrivals sm_synthetic_arrivals(sm_synthetic *state) {
    state->rng.state = state->seed;
    state->now_s = state->made = 0.0;
    return (sm_arrivals){state, next};
}
