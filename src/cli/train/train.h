/* train: what the parts of the `train` verb share: the question as read, and one plan with its
 * answer. */
#ifndef SCALEMODEL_CLI_TRAIN_H
#define SCALEMODEL_CLI_TRAIN_H
#include "options.h"
#include "scalemodel/train.h"

/* Powers of two from 1 to 2^20 and both ends of the range, or a range with a step. */
enum { CLI_MAX_SYSTEMS = 256 };

typedef struct cli_training {
    const cli_call *call;
    sm_model model;
    sm_system system;
    sm_job job; /* points to the model and the system above */
    const sm_calibration *calibration;
    sm_source plan;           /* the text of --plan, "" when not given */
    sm_search_options search; /* what the plan fixes, and how to search for the rest */
    bool priced_only;         /* the plan is given whole */
    bool seq_given, price_given, price_known;
    const char *timeline; /* file of --timeline, or NULL */
    int points;           /* of --chips, 0 when not given */
    int chips[CLI_MAX_SYSTEMS];
} cli_training;

/* ---- reading (train_input.c, train_plan.c) ---- */
typedef struct cli_train_values {
    const char *on, *plan, *dtype, *optimizer, *most, *timeline;
    double batch, tokens, price;
    int64_t seq, top, threads;
    sm_objective objective;
    sm_range chips;
    cli_calibration_values constants;
} cli_train_values;
extern const cli_option cli_train_options[];
sm_status cli_training_read(const cli_call *call, cli_training *q, sm_error *err);
/* --plan, --max and the options that are keys of a plan, into q->search and q->priced_only. */
sm_status cli_plan_read(const cli_train_values *given, cli_training *q, sm_error *err);
/* Why no plan can have the keys that --plan gives, or NULL when the model could be sharded so. */
const char *cli_plan_impossible(const cli_training *q, sm_train *train);
/* An error that has no place yet, about the plan: shown under the key it speaks of. */
sm_status cli_plan_blame(const cli_training *q, sm_status status, sm_error *err);

/* ---- the answer: plans of one system (train_page.c, train_fields.c) ---- */
typedef struct cli_plan_shown {
    const sm_plan *plan;
    const char *text;
    sm_plan_detail detail;
} cli_plan_shown;
typedef struct cli_plans {
    const cli_training *q;
    double sequences; /* of a batch */
    int n;
    cli_plan_shown *plan; /* best first */
    sm_search_result *search;
    bool interrupted;
    const char *reason; /* why there is no plan */
} cli_plans;
/* ---- how sure it is (train_interval.c) ---- */
typedef struct cli_interval {
    double low, high;
} cli_interval;
/* 80 % of measured steps lie in it; never below the lower bound. */
cli_interval cli_step_interval(const cli_training *q, const sm_price_of_plan *price);
/* "10 s to 13 s, constants of h100 default" */
const char *cli_interval_words(sm_report *r, const cli_training *q, const sm_price_of_plan *price);
/* Does the interval of what plans are ranked by overlap that of the best plan? */
bool cli_is_indistinguishable(const cli_plans *plans, int which);
/* A line below the table of the other plans; none when the best one is certain. */
void cli_indistinguishable_line(sm_report *r, const cli_plans *plans);

void cli_train_page(sm_report *r, const cli_plans *plans);
void cli_train_fields(sm_report *r, const cli_plans *plans);

/* Pieces that the sweep over --chips shows too. */
void cli_train_job_page(sm_report *r, const cli_training *q, double sequences);
void cli_train_search_page(sm_report *r, const sm_search_result *search);
void cli_train_job_fields(sm_report *r, const cli_training *q, double sequences);
void cli_train_system_fields(sm_report *r, sm_data *parent, const sm_system *system);
void cli_train_plan_fields(sm_report *r, sm_data *object, const cli_training *q,
                           const cli_plan_shown *shown);
void cli_train_search_fields(sm_report *r, sm_data *object, const sm_search_result *search);
const char *cli_train_bound(sm_report *r, const sm_system *system, const sm_price_of_plan *price);
const char *cli_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan);

/* ---- --chips (train_sweep.c) ---- */
/* The constants of time and the habits of memory of the software asked for. */
void cli_train_with_software(const cli_training *q, sm_train *train);
sm_status cli_train_sweep(cli_training *q, sm_report *r, sm_error *err);

/* ---- --timeline (train_timeline.c) ---- */
sm_status cli_train_timeline(const cli_training *q, sm_train *train, const cli_plan_shown *shown,
                             sm_error *err);

/* ---- a search that a person waits for (train_watch.c) ---- */
typedef struct cli_watch {
    double begun_s, shown_s;
    bool terminal, shown;
} cli_watch;
/* Ctrl-C then stops the search, which keeps the best so far; a second one ends the program. After a
 * second a line on a terminal says how far the search is. */
void cli_watch_begin(cli_watch *watch, sm_search_options *search);
/* True when the search was stopped. */
bool cli_watch_end(cli_watch *watch);
#endif
