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

sm_goodput_seen sm_goodput_of_events(const sm_run_event *event, size_t n) {
    sm_goodput_seen seen = {.checkpoint_s = 0};
    sm_goodput *took = &seen.took;
    double since_s = n ? event[0].at_s : 0, saved = 0, begun = 0;
    took->total_s = n ? event[n - 1].at_s - since_s : 0;
    bool down = false;
    for (size_t i = 0; i < n; i++) {
        const sm_run_event *e = &event[i];
        double passed_s = e->at_s - since_s;
        if (e->what == SM_RUN_GOES_ON) continue;
        if (e->what == SM_RUN_FAILS) *(down ? &took->restart_s : &took->lost_s) += passed_s;
        else if (down) seen.restart_s += passed_s;
        if (e->what == SM_RUN_SAVED) took->checkpoint_s += e->seconds;
        begun += down && e->what == SM_RUN_BEGINS;
        saved += e->what == SM_RUN_SAVED;
        down = e->what == SM_RUN_FAILS;
        took->interruptions += down;
        since_s = e->at_s;
    }
    took->restart_s += seen.restart_s;
    seen.restart_s /= fmax(1, begun);
    seen.checkpoint_s = took->checkpoint_s / fmax(1, saved);
    return seen;
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
