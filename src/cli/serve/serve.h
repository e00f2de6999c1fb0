/* serve: what the parts of the `serve` verb share: the question as read, and the answer. */
#ifndef SCALEMODEL_CLI_SERVE_H
#define SCALEMODEL_CLI_SERVE_H
#include "options.h"
#include "scalemodel/serve.h"

typedef struct cli_serve_values {
    const char *on, *plan, *speculate, *draft, *plot;
    int64_t batch, prompt, output_tokens, context, prefix, top;
    cli_dtypes weights, kv, compute;
    double ttft, tpot, qps, price, imbalance, reserve;
    sm_range chips;
    bool eager, lower, with_prefill, disaggregated;
    cli_calibration_values constants;
} cli_serve_values;
extern const cli_option cli_serve_options[];

enum { CLI_MAX_CHOICES = CLI_MAX_TYPES * CLI_MAX_TYPES * CLI_MAX_TYPES };
typedef struct cli_serving {
    const cli_call *call;
    sm_model model, draft;
    sm_system system;
    sm_serve_job job;           /* points to the models and the system above */
    const char *dtype_words[3]; /* of weights, cache, compute: as given */
    int choices;
    sm_serve_dtypes choice[CLI_MAX_CHOICES]; /* to search; job holds that of the point shown */
    sm_system slice;                         /* of the system: what the point shown runs on */
    const sm_calibration *calibration;       /* asked for; NULL: what serve.h takes */
    const sm_calibration *used;              /* what the point shown was priced with */
    sm_source plan;                          /* the text of --plan, "" when not given */
    sm_serve_search_options search;
    bool one; /* plan and batch are given: a single point */
    bool disaggregated, price_known;
    double requests_per_s; /* of --qps, 0: none */
    int top;               /* rows of the frontier shown; 0: all */
    const char *plot;
} cli_serving;
sm_status cli_serving_read(const cli_call *call, cli_serving *q, sm_error *err);
/* An error that has no place yet, about the plan: shown under --plan. */
sm_status cli_serving_blame(const cli_serving *q, sm_status status, sm_error *err);

/* The answer. */
typedef struct cli_served {
    const cli_serving *q;
    const sm_serve_result *result; /* the frontier; of one point too */
    const int *choice;             /* of types, of each of its points; NULL: the job's */
    const sm_serve_detail *detail; /* of the point a reader is told about; NULL: none */
    const sm_serve_point *best;    /* that point: the cheapest within the limits */
    const sm_disaggregated *pools; /* NULL when not asked */
    const sm_fleet *fleet;         /* NULL when not asked */
    const char *reason;            /* why there is no point, or why it will not do */
    int sweeps;                    /* points of the best plan at other batches */
    sm_serve_point *sweep;         /* NULL: not looked at */
    const sm_serve_point *fullest; /* NULL: no batch between those searched does better */
} cli_served;
/* ---- the frontier over all types (serve_dtypes.c) ---- */
sm_status cli_serve_frontier(cli_serving *q, cli_served *a, sm_error *err);
/* What ranks: with --bound what the lower bound would give. */
double cli_serve_throughput(const cli_serving *q, const sm_serve_point *p);
/* Of the i-th point of the result. */
const sm_serve_dtypes *cli_serve_dtypes(const cli_served *a, size_t i);
const char *cli_serve_dtype_words(sm_report *r, const cli_serving *q, const sm_serve_dtypes *d);

void cli_serve_fields(sm_report *r, const cli_served *a);
void cli_serve_page(sm_report *r, const cli_served *a);
void cli_serve_reason(sm_report *r, const cli_served *a);

/* ---- beyond one replica (serve_traffic.c) ---- */
void cli_serve_pools_page(sm_report *r, const cli_served *a);
void cli_serve_fleet_page(sm_report *r, const cli_served *a);

/* ---- the best plan at other batches (serve_sweep.c) ---- */
enum { CLI_MAX_SWEEP = 32 };
sm_status cli_serve_sweep(sm_serve *serve, cli_served *a, sm_error *err);
/* The largest batch of the best plan within the limit per token, into a->fullest. */
sm_status cli_serve_fill(sm_serve *serve, cli_served *a, sm_error *err);
void cli_serve_fill_page(sm_report *r, const cli_served *a);
void cli_serve_sweep_page(sm_report *r, const cli_served *a);
void cli_serve_sweep_fields(sm_report *r, sm_data *object, const cli_served *a);

/* ---- --plot (serve_plot.c) ---- */
sm_status cli_serve_plot(const cli_served *a, sm_error *err);

const char *cli_serve_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan);
const char *cli_serve_bound(sm_report *r, const sm_system *system, const sm_step_price *price);
#endif
