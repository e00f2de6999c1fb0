/* train_asked: what the parts of the answer about training share: the question as read, and plans
 * with their details. */
#pragma once
#include "question.h"
#include "scalemodel/answer_words.h"

#include <string.h>

typedef struct sm_batch {
    double asked_tokens, sequences; /* sequences: on the system's chips */
    bool about;                     /* tokens are asked for that need not be met exactly */
    bool most;                      /* as many as in.within_s allows */
    bool missed;                    /* and not one is: sequences is 1 */
} sm_batch;
/* The best plan of a framework by its own constants. */
typedef struct sm_train_framework {
    const sm_framework *framework;
    const sm_calibration *calibration;
    const char *plan;
    double expected_s, most_s, memory; /* most_s: the upper end of its 80 % interval */
    bool fits, measured;               /* measured: it has constants of its own */
    double high, space; /* the upper end of what plans are ranked by; plans that there are */
} sm_train_framework;
typedef struct sm_train_asked {
    sm_train_question in;
    sm_batch batch;
    const sm_system *system; /* of the plans shown: in.system, or one of its sizes */
    sm_job job;
    sm_search_options search; /* what the plan fixes, and how to search for the rest */
    sm_plan_space space;      /* of the keys that have several values, and of the framework */
    const sm_plan_space *all; /* search.space, were there no frameworks */
    bool in_frameworks;       /* search.space is what one of those known can run */
    const sm_frameworks *frameworks;
    const sm_framework *kept_to; /* the framework that plans are priced for; NULL: any */
    int frameworks_tried;        /* one by one: those that have a plan, best first */
    const sm_train_framework *framework;
    bool priced_only;   /* the plan is given whole */
    bool own_constants; /* the question has a calibration */
    bool price_known;
    sm_report *report;
} sm_train_asked;

typedef struct sm_plan_shown {
    const sm_plan *plan;
    const char *text;
    sm_plan_detail detail;
} sm_plan_shown;
/* What would make it fit (train_fit.c). */
typedef struct sm_fit_advice {
    bool asked;             /* something did not fit */
    sm_memory least;        /* of the plan given, or of the one that needs least; total 0: none */
    const char *least_plan; /* that one, NULL where a plan was given */
    const char *change;     /* NULL: no one change is enough */
    double change_bytes, change_s;
    bool adapters; /* no change does while the whole model is trained: this one trains adapters */
    int chips;     /* 0: no number looked at */
    const char *system;
} sm_fit_advice;
typedef struct sm_plans_shown {
    const sm_train_asked *q;
    sm_fit_advice fit;
    double sequences;      /* of a batch */
    const sm_model *model; /* as chips hold it: q->in.model, or padded */
    double padding;        /* share of the work */
    int n;
    sm_plan_shown *plan; /* best first */
    sm_search_effort effort;
    const char *reason; /* why there is no plan */
    /* What plans beyond those of the frameworks gain: the best one's text, NULL where there is none
     * that gains as much; and its part of the objective, or what none exceeds. */
    const char *beyond;
    double beyond_gain, beyond_s;
    bool beyond_known; /* it was searched to the end */
    bool beyond_pads;  /* its expert degree does not divide the experts */
} sm_plans_shown;

/* What is done with the plans found, while what priced them lives. */
typedef sm_status (*sm_train_use)(void *context, sm_train *train, const sm_plans_shown *plans,
                                  sm_error *err);
/* The plans that answer a question, the best first, handed to `use`. */
sm_status sm_train_ask(const sm_train_question *question, sm_report *r, sm_train_use use,
                       void *context, sm_error *err);

/* ---- the plan as text (train_plan_text.c) ---- */
/* The plan and the texts that are keys or limits of it, into q->search and q->priced_only. */
sm_status sm_train_plan_read(sm_train_asked *q, sm_error *err);
/* Why no plan can have the keys that are given, or NULL when the model could be sharded so. */
const char *sm_train_plan_impossible(const sm_train_asked *q, sm_train *train);
const char *sm_train_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan);
/* The system that the plan runs on: this one, or a part of it (sm_system_in_part). NULL where
 * memory ran out. */
const sm_system *sm_train_runs_on(sm_report *r, const sm_system *system, const sm_plan *plan);

/* Find what would make it fit: of a plan given whole, or (NULL) of a search that found none. */
sm_status sm_train_fit_find(sm_train_asked *q, sm_train *train, const sm_plan_shown *plan,
                            sm_fit_advice *out, sm_error *err);
void sm_train_fit_page(sm_report *r, const sm_train_asked *q, const sm_fit_advice *fit);
void sm_train_fit_data(sm_report *r, const sm_fit_advice *fit);

/* ---- the batch (train_batch.c) ---- */
/* The batch of the question, into q->batch and q->job. SM_BAD_INPUT with the place. */
sm_status sm_train_batch_set(sm_train_asked *q, sm_error *err);
/* Sequences of the batch on so many chips: what they can share, within 5 % of about so many. */
double sm_train_batch_on(const sm_batch *batch, double seq, double chips);
/* The batch; of several systems the least and the most sequences of one. */
void sm_train_batch_page(sm_report *r, const sm_train_asked *q, double sequences, double most);

/* ---- frameworks (train_recipe.c) ---- */
/* The space of plans becomes that of the framework asked for (SM_BAD_INPUT where it cannot run keys
 * that are given); where none is, those of all that can run the keys given. */
sm_status sm_train_keep_to(sm_train_asked *q, sm_error *err);
/* The frameworks that can run the best plan, or that none can; the best plan of each; and what is
 * gained beyond them. */
void sm_train_runners_page(sm_report *r, const sm_plans_shown *plans);
/* The best plan of all where no framework runs it, in `beyond`. */
sm_status sm_train_beyond(const sm_train_asked *q, sm_train *train, sm_plans_shown *plans,
                          sm_error *err);
/* Can a framework run the plan that is given whole, with the usual value of what it leaves out? */
bool sm_train_runs_in(const sm_train_asked *q, const sm_framework *framework);
/* Keys that no search chooses and nobody gave: as usual, or as the framework of q->space has them.
 */
sm_status sm_train_keep_unsearched(sm_train_asked *q, sm_error *err);
/* The framework that plans are priced for, in words: "Megatron-LM" between the two; or "". */
const char *sm_train_in(sm_report *r, const sm_train_asked *q, const char *before,
                        const char *behind);
/* The best plans of the frameworks that were asked one by one, as table and data. */
void sm_train_frameworks_page(sm_report *r, const sm_train_asked *q);
/* The best plan of the recipe's framework beside it. */
sm_status sm_train_recipe_best(const sm_plans_shown *plans, sm_error *err);
/* The best plan as a program, for a framework whose form that is (train_program.c). SM_BAD_INPUT
 * when it cannot run the plan or has no translation of an op. */
sm_status sm_train_program(const sm_plans_shown *plans, const char **out, sm_error *err);
/* The best plan as a recipe of another framework, in place of the page. */
sm_status sm_train_emit(const sm_plans_shown *plans, sm_error *err);
/* ---- beside another plan, another machine ---- */
/* Is every degree and the microbatch given, or do those given take all chips? */
bool sm_train_is_whole(const sm_plan *plan, int chips);
/* The plan of question.other beside this one (train_against.c). */
sm_status sm_train_against_plan(const sm_train_asked *q, sm_train *train, const sm_plan_shown *plan,
                                sm_error *err);
/* Twice and half of each degree of the best plan (train_why.c). */
sm_status sm_train_why(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                       sm_error *err);
/* An iteration of DPO, GRPO or PPO whose training step is the best plan (train_preference.c);
 * SM_NEGATIVE when what it takes does not fit. */
sm_status sm_train_preference(const sm_train_asked *q, const sm_plans_shown *plans, sm_error *err);
/* The run with failures, checkpoints and restarts (train_goodput.c). */
void sm_train_goodput(sm_report *r, const sm_train_asked *q, const sm_price_of_plan *price);
/* The job on the machine of question.what_if; what more of each resource would bring
 * (train_what_if.c). */
sm_status sm_train_what_if(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                           sm_error *err);
sm_status sm_train_sensitivity(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                               sm_error *err);

/* ---- how sure it is (train_interval.c) ---- */
/* The evidence nearest to the step of a plan. */
sm_evidence_near sm_train_evidence(const sm_train_asked *q, const sm_plan_shown *shown,
                                   double sequences, sm_evidence_asked *asked);
/* Does the framework that plans are priced for have no constants of its own? */
bool sm_train_is_unmeasured(const sm_train_asked *q);
/* 80 % of measured steps lie in it; never below the lower bound. */
sm_ends sm_step_interval(const sm_train_asked *q, const sm_price_of_plan *price);
/* The interval of what plans are ranked by. */
sm_ends sm_train_ranked_by(const sm_train_asked *q, const sm_price_of_plan *price);
/* What plans are ranked by, seconds, chip-seconds or bytes: of one; how much more than the best
 * has, in words; and what it then is. */
double sm_train_objective_of(const sm_train_asked *q, const sm_price_of_plan *price);
const char *sm_train_more(const sm_train_asked *q, const sm_price_of_plan *price,
                          const sm_price_of_plan *best);
extern const char *const sm_train_worse[];
/* Does the interval of what plans are ranked by overlap that of the best plan? */
bool sm_is_indistinguishable(const sm_plans_shown *plans, int which);
/* A line below the table of the other plans; none when the best one is certain. */
void sm_indistinguishable_line(sm_report *r, const sm_plans_shown *plans);

/* ---- the parts of the answer: as the page, and as data ---- */
void sm_train_page(sm_report *r, const sm_plans_shown *plans);
void sm_train_job_page(sm_report *r, const sm_train_asked *q, double sequences, double most);
/* The framework that the search keeps to, in words; NULL: none. */
const char *sm_train_whose(const sm_train_asked *q);
void sm_train_search_page(sm_report *r, const sm_search_effort *effort, int found,
                          const char *whose);
const char *sm_train_bound(sm_report *r, const sm_system *system, const sm_price_of_plan *price);
void sm_train_data(sm_report *r, const sm_plans_shown *plans);
void sm_train_job_data(sm_report *r, const sm_train_asked *q, double sequences);
void sm_train_search_data(sm_report *r, const sm_search_effort *effort);
void sm_train_plan_data(sm_report *r, sm_data *object, const sm_train_asked *q,
                        const sm_plan_shown *shown);

/* Why a search found nothing: as far as is known. */
sm_status sm_train_reason(const sm_train_asked *q, sm_train *train, const sm_error *none,
                          const char **reason, sm_error *err);
/* The part of a chip's memory that stays free. */
double sm_train_margin(const sm_train_asked *q);
/* Constants of time and of memory of the software asked for. */
void sm_train_with_software(const sm_train_asked *q, sm_train *train);
/* A plan given whole: the question keeps to the framework that runs it best. */
sm_status sm_train_price_in(sm_train_asked *q, sm_train *train, sm_error *err);
/* The search of a question: in each of the frameworks by its own constants, to the best of which
 * the question then keeps, and where none has a plan in all plans. *effort is that of all searches.
 * Errors as sm_train_search. */
sm_status sm_train_find(sm_train_asked *q, sm_train *train, const sm_search_result **found,
                        sm_search_effort *effort, sm_error *err);
/* The best plan of a search beside the question's, which tells nobody how far it is. SM_NEGATIVE
 * when there is none: then best->plan is NULL, and err as it was. effort may be NULL. */
sm_status sm_train_best(const sm_train_asked *q, sm_train *train, sm_search_options search,
                        sm_found *best, const sm_search_effort **effort, sm_error *err);
/* One system: its best plan, or why it has none. */
typedef struct sm_train_point {
    sm_system system;
    const sm_train_asked *q; /* the question as it was answered here */
    bool found;
    double sequences; /* of a batch */
    sm_plan_shown best;
    const char *reason;
} sm_train_point;
typedef struct sm_train_sweep {
    sm_train_asked *q;
    sm_train_point *point;
    double sequences, most; /* of a batch: the least and the most of a point */
    sm_search_effort total; /* sums over the points */
    int found;
    bool interrupted;
} sm_train_sweep;
/* The best plan on so many chips of the question's system (train_sizes.c). */
sm_status sm_train_point_find(sm_train_sweep *w, int chips, sm_train_point *p, sm_error *err);
/* The best plan on each of in.systems; with limits to time or cost the fewest chips of each that
 * keep them (train_compare.c). */
sm_status sm_train_compare(sm_train_asked *q, sm_report *r, sm_error *err);
/* The largest batch whose step takes no longer than in.within_s, into q->batch and q->job. */
sm_status sm_train_batch_most(sm_train_asked *q, sm_error *err);
/* A table and data: the plan under the constants of each training software of the chip. */
sm_status sm_train_softwares(sm_report *r, const sm_train_asked *q, sm_train *train,
                             const sm_plan *plan, sm_error *err);
/* The best plan on each of the systems of in.chips chips (train_sizes.c). */
sm_status sm_train_sizes(sm_train_asked *q, sm_report *r, sm_error *err);
/* The simulated step of a plan, into the report's tracks (train_tracks.c). */
sm_status sm_train_tracks(const sm_train_asked *q, sm_train *train, const sm_plan_shown *best,
                          sm_error *err);
