#include "step_run.h"

#include <math.h>

#define TOLERANCE 1e-7 /* of the middle of a piece against the line */

typedef struct point {
    double step, seconds;
} point;

static point at(const sim_path *p, double step) {
    double seconds =
        p->engine->step_s(p->engine->context, p->n, p->cached + step * p->cached_growth, p->prefill,
                          p->attended + step * p->attended_growth);
    return (point){step, seconds};
}

/* A kink between the ends may leave the middle on the line: a piece over which the caches double is
 * halved whatever its middle says. */
static bool doubles(const sim_path *p, point a, point b) {
    return p->cached + b.step * p->cached_growth > 2.0 * (p->cached + a.step * p->cached_growth) ||
           p->attended + b.step * p->attended_growth >
               2.0 * (p->attended + a.step * p->attended_growth);
}

/* Steps a..b, both included. */
static double sum_between(const sim_path *p, point a, point b) {
    double steps = b.step - a.step + 1.0, line = 0.5 * steps * (a.seconds + b.seconds);
    if (steps <= 2.0) return line;
    point middle = at(p, floor(0.5 * (a.step + b.step)));
    double share = (middle.step - a.step) / (b.step - a.step);
    double expected = a.seconds + share * (b.seconds - a.seconds);
    bool straight = fabs(middle.seconds - expected) <= TOLERANCE * expected;
    if (isnan(middle.seconds) || (straight && !doubles(p, a, b)))
        return isnan(middle.seconds) ? middle.seconds : line;
    return sum_between(p, a, middle) + sum_between(p, middle, b) - middle.seconds;
}

double sim_path_seconds(const sim_path *p, double k) {
    if (k < 1.0) return 0.0;
    point first = at(p, 0.0);
    if (k < 2.0) return first.seconds;
    return sum_between(p, first, at(p, k - 1.0));
}

/* The next number of steps to try between two that take too little and enough: where a line between
 * them meets the time, every third time the middle. */
static double guess(double low, double low_s, double high, double high_s, double seconds,
                    int tried) {
    double share = (seconds - low_s) / (high_s - low_s);
    double k = ceil(low + share * (high - low));
    if (tried % 3 == 2 || !isfinite(k)) k = floor(0.5 * (low + high));
    return fmin(fmax(k, low + 1.0), high - 1.0);
}

double sim_path_steps(const sim_path *p, double most, double seconds, double *taken) {
    double low = 0.0, low_s = 0.0, high = most, high_s = sim_path_seconds(p, most);
    if (isnan(high_s) || high_s < seconds) low = high;
    for (int tried = 0; high - low > 1.0; tried++) {
        double k = guess(low, low_s, high, high_s, seconds, tried);
        double k_s = sim_path_seconds(p, k);
        if (k_s >= seconds) high = k, high_s = k_s;
        else low = k, low_s = k_s;
    }
    *taken = high_s;
    return high;
}
