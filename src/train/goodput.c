/* Runs that failures interrupt. */
#include "scalemodel/goodput.h"
#include <math.h>

double sm_goodput_best_interval(double mtbf_s, double checkpoint_s) {
    if (isinf(mtbf_s)) return INFINITY;
    double low = 0, high = 1, goal = exp(-checkpoint_s / mtbf_s);
    for (int i = 0; i < 100; i++) { /* (1 - u) e^u falls from 1 to 0 */
        double u = 0.5 * (low + high);
        if ((1 - u) * exp(u) > goal) low = u;
        else high = u;
    }
    return 0.5 * (low + high) * mtbf_s;
}

sm_goodput sm_goodput_of(const sm_goodput_job *job) {
    double mtbf = job->mtbf_s, interval = job->interval_s;
    if (interval <= 0) interval = sm_goodput_best_interval(mtbf, job->checkpoint_s);
    if (interval > job->run_s) interval = job->run_s;
    interval = fmax(1, round(interval / job->step_s)) * job->step_s;
    double segments = job->run_s / interval, whole = interval + job->checkpoint_s;
    sm_goodput g = {.interval_s = interval, .checkpoint_s = segments * job->checkpoint_s};
    if (isinf(mtbf)) {
        g.total_s = job->run_s + g.checkpoint_s;
        return g;
    }
    g.total_s = mtbf * exp(job->restart_s / mtbf) * expm1(whole / mtbf) * segments;
    g.interruptions = g.total_s / mtbf;
    /* each begins a restart that ends, or is interrupted */
    g.restart_s = g.total_s * -expm1(-job->restart_s / mtbf);
    g.lost_s = fmax(0, g.total_s - job->run_s - g.checkpoint_s - g.restart_s);
    return g;
}

double sm_goodput_spares(double mean, double risk) {
    enum { MOST = 1000000 };
    double spares = 0, log_term = -mean, within = exp(log_term);
    while (1 - within > risk && spares < MOST) {
        spares++;
        log_term += log(mean / spares);
        within += exp(log_term);
    }
    return spares;
}
