/* Constants as numbers on the whole line, and how far a calibration is trusted before any row. */
#include "fit.h"
#include <math.h>
#include <string.h>

/* A share of something is fitted by its logit, which keeps it between 0 and 1; all else by its
 * logarithm. An overhead may be 0, whose logarithm is cut off at LEAST. */
#define LEAST 1e-6
#define LEAST_SHARE 0.004 /* shares keep away from 0 and 1, where the logit has no slope */
#define MOST_SHARE 0.97

static bool is_share(sm_constant which) {
    return sm_constant_of(which)->high <= 1.0 && strcmp(sm_constant_of(which)->unit, "s") != 0;
}

static double clamp(double x, double low, double high) { return fmin(fmax(x, low), high); }

double fit_to_line(sm_constant which, double value) {
    if (!is_share(which)) return log(fmax(value, LEAST * 1e-3));
    double share = clamp(value, LEAST_SHARE, MOST_SHARE);
    return log(share / (1.0 - share));
}

double fit_from_line(sm_constant which, double u) {
    const sm_constant_info *info = sm_constant_of(which);
    double value = is_share(which) ? 1.0 / (1.0 + exp(-u)) : exp(u);
    return clamp(value, info->low, info->high);
}

double fit_relative(sm_constant which, double u) {
    return is_share(which) ? 1.0 - 1.0 / (1.0 + exp(-u)) : 1.0;
}

/* Relative standard deviation before any row: matmuls and attention are known to some 25 % from
 * single-operation benchmarks, memory and networks differ more from one code base to the next, and
 * what a framework adds is known to a factor of three. */
static double prior_relative(sm_constant which) {
    switch (which) {
    case SM_CONSTANT_matmul_efficiency:
    case SM_CONSTANT_matmul_efficiency_fp8:
    case SM_CONSTANT_attention_efficiency:
    case SM_CONSTANT_attention_efficiency_backward: return 0.25;
    case SM_CONSTANT_network_efficiency_inner: return 0.4;
    case SM_CONSTANT_memory_efficiency: return 0.4;
    case SM_CONSTANT_network_efficiency_outer: return 0.6;
    case SM_CONSTANT_matmul_half_k: return 0.7;
    default: return 1.2;
    }
}

/* A share near 1 has little slope; its deviation on the line is bounded so that it stays a prior.
 */
double fit_prior_deviation(sm_constant which, double u0) {
    if (which == SM_CONSTANT_overlap) return 1.0;
    return fmin(prior_relative(which) / fit_relative(which, u0), 2.5);
}
