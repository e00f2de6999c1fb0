/* train_goodput: a run with what interrupts it: days and dollars with checkpoints, restarts, work
 * done again and slow chips; where nobody tells how often chips fail, over what rates they may. */
#include "scalemodel/goodput.h"
#include "train_asked.h"

static const double HOUR = 3600.0, YEAR = 365.25 * 86400.0, GOAL = 0.9, RISK = 0.01;

typedef struct run {
    sm_report *r;
    const sm_train_asked *q;
    const sm_price_of_plan *price;
    double usd_per_s, stragglers_s;
    bool own_checkpoint;
    sm_goodput_job job; /* but for mtbf_s */
} run;

/* A chip has its weights and state, which go to the host's memory; from there they are written
 * while the run goes on. */
static double state_over_host_link(const run *x) {
    const sm_memory *m = &x->price->memory;
    double link = sm_chip_host_bytes_per_s_oneway(&x->q->system->chip);
    return link > 0.0 ? (m->params + m->optimizer) / link : 0.0;
}

static run run_of(sm_report *r, const sm_train_asked *q, const sm_price_of_plan *price) {
    const sm_train_question *in = &q->in;
    double usd =
        in->usd_per_chip_hour ? *in->usd_per_chip_hour : sm_chip_usd_per_hour(&q->system->chip);
    run x = {.r = r, .q = q, .price = price, .usd_per_s = usd / HOUR * price->chips};
    double slower = 1.0 + in->stragglers;
    x.own_checkpoint = in->checkpoint_s != NULL;
    x.stragglers_s = price->train_time_s * in->stragglers;
    x.job = (sm_goodput_job){.run_s = price->train_time_s * slower,
                             .step_s = price->expected_s * slower,
                             .checkpoint_s =
                                 x.own_checkpoint ? *in->checkpoint_s : state_over_host_link(&x),
                             .restart_s = in->restart_s ? *in->restart_s : SM_USUAL_RESTART_S,
                             .interval_s = in->interval_s};
    return x;
}

static sm_goodput at_rate(const run *x, double per_chip_hour) {
    sm_goodput_job job = x->job;
    job.mtbf_s = per_chip_hour > 0.0 ? HOUR / (per_chip_hour * x->price->chips) : INFINITY;
    return sm_goodput_of(&job);
}

static double goodput(const run *x, const sm_goodput *g) {
    return x->price->train_time_s / g->total_s;
}

static const char *usd_text(const run *x, double seconds) {
    if (!x->q->price_known) return "-";
    return isinf(seconds) ? "-" : sm_show_usd(x->r, seconds * x->usd_per_s);
}

static const char *time_text(const run *x, double seconds) {
    return isinf(seconds) ? "never" : sm_show_seconds(x->r, seconds);
}

/* The rate at which nine tenths of the time is work that lasts; 0: none does so much harm. */
static double break_even(const run *x) {
    double low = log(1e-12), high = log(10.0);
    sm_goodput g = at_rate(x, 1e-12);
    if (goodput(x, &g) < GOAL) return 0.0;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        g = at_rate(x, exp(middle));
        if (goodput(x, &g) >= GOAL) low = middle;
        else high = middle;
    }
    return exp(low);
}

static const char *chip_mtbf(sm_report *r, double per_chip_hour) {
    double years = HOUR / per_chip_hour / YEAR;
    return years >= 1.0 ? sm_textf(r, "%.3g y", years) : sm_show_seconds(r, years * YEAR);
}

static void put_goodput(const run *x, sm_data *object, double rate, const sm_goodput *g) {
    bool ends = !isinf(g->total_s);
    sm_put(x->r, object,
           "interruptions_per_chip_hour|interval_s|total_s|goodput|checkpoint_s|restart_s|"
           "lost_s|stragglers_s|interruptions|cost_usd",
           rate, g->interval_s, ends ? g->total_s : NAN, goodput(x, g), g->checkpoint_s,
           ends ? g->restart_s : NAN, ends ? g->lost_s : NAN, x->stragglers_s,
           ends ? g->interruptions : NAN,
           ends && x->q->price_known ? g->total_s * x->usd_per_s : NAN);
}

static void part(const run *x, sm_table *table, const char *name, double seconds, double total,
                 const char *what) {
    sm_page_row(x->r, table, name, time_text(x, seconds),
                isinf(total) ? "-" : sm_textf(x->r, "%.1f %%", 100.0 * seconds / total),
                usd_text(x, seconds), what);
}

static void known_rate(const run *x, double rate, const char *source) {
    sm_report *r = x->r;
    sm_goodput g = at_rate(x, rate);
    double mtbf = HOUR / (rate * x->price->chips), steps = g.interval_s / x->job.step_s;
    sm_table *table = sm_page_table(r, "The run with failures", "<|>time|>part|>cost|<");
    part(x, table, "without", x->price->train_time_s, g.total_s, "nothing ever stops");
    if (x->stragglers_s > 0.0)
        part(x, table, "slow chips", x->stragglers_s, g.total_s, "as --stragglers says");
    part(x, table, "checkpoints", g.checkpoint_s, g.total_s,
         sm_textf(r, "one every %s", sm_show_seconds(r, g.interval_s)));
    part(x, table, "restarts", g.restart_s, g.total_s,
         isinf(g.total_s)
             ? ""
             : sm_textf(r, "%s interruptions", sm_show_count(r, round(g.interruptions))));
    part(x, table, "done again", g.lost_s, g.total_s, "since the last checkpoint");
    part(x, table, "with", g.total_s, g.total_s,
         sm_textf(r, "goodput %s", sm_show_percent(r, goodput(x, &g))));
    if (rate > 0.0)
        sm_report_text(r,
                       "A chip is interrupted once in %s (%.3g per chip and hour, %s), %d of them "
                       "once in %s.",
                       chip_mtbf(r, rate), rate, source, x->price->chips, sm_show_seconds(r, mtbf));
    if (!(x->q->in.interval_s > 0.0) && rate > 0.0)
        sm_report_text(r,
                       "%s step%s between checkpoints are best (Daly 2006; Young's square root "
                       "of twice checkpoint time and time between failures: %s).",
                       sm_show_count(r, steps), steps > 1.0 ? "s" : "",
                       sm_show_seconds(r, sqrt(2.0 * x->job.checkpoint_s * mtbf)));
    sm_data *object = sm_put_object(r, r->data, "goodput");
    sm_put(r, object, "source", source);
    put_goodput(x, object, rate, &g);
}

/* " h100-sxm once in 5.78 y, ...": 'chip NAME' has the sources. */
static const char *published(sm_report *r) {
    const char *list = "";
    for (size_t i = 0; i < sm_chip_count(); i++) {
        const sm_chip *chip = sm_chip_at(i);
        double rate = chip->interruptions_per_chip_hour.value;
        if (rate > 0.0)
            list = sm_textf(r, "%s%s %s once in %s", list, *list ? "," : "", chip->name,
                            chip_mtbf(r, rate));
    }
    return list;
}

/* Rates around those of chips whose rate is known. */
static void curve(const run *x) {
    static const double years[] = {0.5, 1, 2, 5, 10, 20, 50};
    sm_report *r = x->r;
    sm_data *list = sm_put_array(r, r->data, "goodput_curve");
    sm_table *table = sm_page_table(
        r, "The run over how often chips fail",
        ">a chip every|>{s}the run every|>{s}checkpoint every|>time|>{%}goodput|>cost");
    for (size_t i = 0; i < sizeof years / sizeof *years; i++) {
        double rate = HOUR / (years[i] * YEAR);
        sm_goodput g = at_rate(x, rate);
        sm_page_row(r, table, chip_mtbf(r, rate), HOUR / (rate * x->price->chips), g.interval_s,
                    time_text(x, g.total_s), goodput(x, &g), usd_text(x, g.total_s));
        put_goodput(x, sm_put_object(r, list, NULL), rate, &g);
    }
    sm_report_text(r,
                   "No source tells how often a run on %s is interrupted; --failures RATE does, "
                   "per chip and hour. Of others it is known:%s.",
                   x->q->system->chip.name, published(r));
}

static void spares_line(const run *x, double rate) {
    double hosts = x->q->in.repair_s * rate / HOUR * x->price->chips;
    double spares = sm_goodput_spares(hosts, RISK);
    int per_host = x->q->system->chip.chips_per_host > 0 ? x->q->system->chip.chips_per_host : 1;
    double chips = spares * per_host, part = chips / x->price->chips;
    sm_report_text(x->r,
                   "%.3g host%s %s in repair on average: with %.0f spare (%.0f chips, %.2g %% more "
                   "cost) the run waits for one 1 %% of the time at most.",
                   hosts, hosts > 1.0 ? "s" : "", hosts > 1.0 ? "are" : "is", spares, chips,
                   100.0 * part);
    sm_put(x->r, x->r->data, "spare_hosts", spares);
}

void sm_train_goodput(sm_report *r, const sm_train_asked *q, const sm_price_of_plan *price) {
    const run x = run_of(r, q, price);
    const sm_fact *fact = &q->system->chip.interruptions_per_chip_hour;
    double rate = q->in.failures ? *q->in.failures : fact->value;
    bool known = q->in.failures || fact->value > 0.0;
    if (known) known_rate(&x, rate, q->in.failures ? "as given" : fact->source);
    else curve(&x);
    double even = break_even(&x);
    sm_put(r, r->data, "goodput_90_interruptions_per_chip_hour", even > 0.0 ? even : NAN);
    if (even > 0.0)
        sm_report_text(r, "Goodput falls to 90 %% where a chip fails once in %s.",
                       chip_mtbf(r, even));
    else sm_report_text(r, "Goodput is below 90 %% even where no chip fails.");
    if (q->in.repair_s > 0.0 && known) spares_line(&x, rate);
    if (!x.own_checkpoint)
        sm_report_text(r,
                       "A checkpoint stops the run for %s, taken as weights and optimizer state "
                       "of a chip over its link to the host; --checkpoint TIME says it.",
                       sm_show_seconds(r, x.job.checkpoint_s));
    if (!q->in.restart_s)
        sm_report_text(r,
                       "A restart takes 10 min (MegaScale, arXiv 2402.15627, finds and diagnoses "
                       "what failed in less); --restart TIME says it.");
}
