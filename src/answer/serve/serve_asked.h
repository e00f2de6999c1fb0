/* serve_asked: what the parts of the answer about serving share: the question as read, and what was
 * found. */
#pragma once
#include "question.h"
#include "scalemodel/load.h"

enum { SM_MAX_SHARES = 32 };    /* numbers of chips of a replica */
enum { SM_FEWER_TOKENS = 512 }; /* of prompts, in steps that are offered */
enum { SM_MAX_CHOICES = SM_MAX_DTYPES * SM_MAX_DTYPES * SM_MAX_DTYPES, SM_MAX_BATCHES = 32 };
typedef struct sm_serve_asked {
    sm_serve_question in;
    sm_serve_job job;           /* points to the models and the system of `in` */
    sm_software software;       /* with its defaults on the chip */
    const char *dtype_words[3]; /* of weights, cache, compute: "int8,bf16" */
    int choices;
    sm_serve_dtypes choice[SM_MAX_CHOICES]; /* to search; job holds that of the point shown */
    sm_system slice;                        /* of the system: what the point shown runs on */
    const sm_calibration *used;             /* what the point shown was priced with */
    sm_serve_search_options search;
    sm_plan_space space; /* of the keys that have several values, and of the framework */
    const sm_frameworks *frameworks;
    bool in_frameworks; /* the search keeps to what some framework runs */
    bool one;           /* plan and batch are given: a single point */
    double requests;    /* in flight on the whole system, which replicas share */
    int shares;         /* ways to share them; 0: a plan was given */
    struct sm_closed_share {
        int replicas;
        double in_flight; /* of each; uneven: of the fullest, others have one less */
        bool uneven;
        sm_serve_point point; /* of the fullest; tokens per chip and their cost are of all */
    } share[SM_MAX_SHARES], *taken;
    double padding; /* share of the work, where job.model is padded for the plan given */
    sm_report *report;
    sm_arena *arena; /* the report's */
} sm_serve_asked;

typedef struct sm_serving_found {
    const sm_serve_asked *q;
    const sm_serve_result *result;  /* the frontier; of one point too */
    const int *choice;              /* of types, of each of its points; NULL: the job's */
    sm_serve_result *of_choice;     /* what each of them has; NULL: nothing was searched */
    const sm_serve_detail *detail;  /* of the point a reader is told about; NULL: none */
    size_t at;                      /* of its points the one that is told: the cheapest within the
                                       limits, or of fewer chips and as good as that */
    const sm_serve_point *best;     /* that point */
    const sm_serve_result *of_best; /* what its types have; NULL: as above */
    const sm_disaggregated *pools;  /* asked for, or worth offering; NULL: neither */
    const sm_fleet *fleet;          /* without a rate: a replica; NULL: prompts come elsewhere */
    const sm_fleet *fewer; /* the replica with fewer tokens of prompts in a step, where that
                              does more; NULL: it does not */
    const char *reason;    /* why there is no point, or why it will not do */
    int batches;           /* points of the best plan at other batches */
    sm_serve_point *batch; /* NULL: not looked at */
    double longest;        /* tokens of each request of that batch that fit; 0: none */
    double room; /* tokens of cache at the lengths asked for: what engines call KV cache size */
    const sm_serve_point *padded;        /* of a plan that pads the experts; NULL: none gains */
    double padded_gain;                  /* of its tokens over what is as quick, a share */
    struct sm_serve_comparison *engines; /* the best of each; NULL: none was asked */
} sm_serving_found;

/* The longest request of which the best plan holds a batch, and its room. */
sm_status sm_serve_find_room(sm_serve *serve, sm_serving_found *found, sm_error *err);

/* The fleet for the requests of a second, a replica where they come at random, pools apart: what of
 * these was asked for. */
sm_status sm_serve_find_traffic(const sm_serve_asked *q, sm_serving_found *found, sm_error *err);
/* Does the fleet miss the limits for nine requests in ten, however many replicas it has? */
static inline bool sm_serve_fleet_misses(const sm_serving_found *a) {
    const sm_serve_search_options *o = &a->q->search;
    return (o->tpot_s > 0.0 && a->fleet->tpot_p90_s > o->tpot_s) ||
           (o->ttft_s > 0.0 && a->fleet->ttft_p90_s > o->ttft_s);
}
/* Tokens a second and chip, and dollars per million of them, at the rate that it is loaded to. */
static inline double sm_serve_fleet_tokens(const sm_fleet *f) {
    return f->utilisation * f->point.tokens_per_s_per_chip;
}
static inline double sm_serve_fleet_cost(const sm_fleet *f) {
    return f->point.usd_per_million_tokens / f->utilisation;
}
void sm_serve_fleet_data(sm_report *r, sm_data *object, const sm_serve_asked *q, const sm_fleet *f);

/* The evidence nearest to a point. */
sm_evidence_near sm_serve_evidence(const sm_serve_asked *q, const sm_serve_point *p,
                                   sm_evidence_asked *asked);
/* Wider as the evidence is farther. */
sm_ends sm_serve_interval(const sm_serve_asked *q, const sm_evidence_near *near, sm_regime regime,
                          double expected_s);

/* The job on as many chips as a replica has, as the search prices it. */
sm_status sm_serve_open(sm_serve_asked *q, int chips, sm_serve **serve, sm_error *err);
/* The batch of the plan: the sequences that decode when so many requests are in flight. */
sm_status sm_serve_in_flight(sm_serve_asked *q, sm_serve *serve, sm_error *err);
/* The plan for the requests in flight on the whole system (serve_closed.c). */
sm_status sm_serve_closed(sm_serve_asked *q, sm_error *err);

/* What is done with what was found, while what priced it lives. */
typedef sm_status (*sm_serve_use)(void *context, sm_serve *serve, sm_serving_found *found,
                                  sm_error *err);
/* The points that answer a question, handed to `use`; *like: shares its programs with other
 * questions of the model, to be freed. Made where it is NULL; like NULL: for this one alone. */
sm_status sm_serve_ask(const sm_serve_question *question, sm_serve **like, sm_report *r,
                       sm_serve_use use, void *context, sm_error *err);

/* The plans that are searched: those of a framework, of any, or all (serve_recipe.c). */
sm_status sm_serve_keep_to(sm_serve_asked *q, sm_error *err);
/* What padded experts would gain, which only who takes any plan is told. */
sm_status sm_serve_beyond(sm_serving_found *a, sm_error *err);
/* Who can run the best plan. */
void sm_serve_runners_page(sm_report *r, const sm_serving_found *a);
/* The best point as a command of an engine. */
sm_status sm_serve_emit(const sm_serving_found *a, sm_error *err);

/* The frontier over all combinations of types (serve_choices.c). */
sm_status sm_serve_choices(sm_serve_asked *q, sm_serving_found *a, sm_error *err);
/* What ranks: by the bound what that would give. */
double sm_serve_throughput(const sm_serve_asked *q, const sm_serve_point *p);
/* Types of the i-th point of the result. */
const sm_serve_dtypes *sm_serve_dtypes_of(const sm_serving_found *a, size_t i);

/* The best plan at other batches (serve_batches.c). */
sm_status sm_serve_batches(sm_serving_found *a, sm_error *err);

/* The best plan on each of in.systems (serve_compare.c). */
sm_status sm_serve_compare(const sm_serve_question *question, sm_report *r, sm_error *err);

/* The best plan of each engine that can run it, by constants of its own where it has any: what
 * --framework with that one answers. Asked where no engine and no constants are named. */
sm_status sm_serve_engines(sm_serving_found *a, sm_error *err);
void sm_serve_engines_page(sm_report *r, const sm_serving_found *a);

/* ---- the parts of the answer: as the page, and as data ---- */
/* Whose constants stand in where the software that is named has none on the chip. */
void sm_stand_in_page(sm_report *r, const char *named, const sm_chip *chip,
                      const sm_calibration *used);
/* In what the engine differs from its software. */
void sm_engine_page(sm_report *r, const sm_software *engine);
/* Which of the limits of a step are defaults of a software that are known. */
void sm_engine_limits_page(sm_report *r, const sm_software *engine, const sm_chip *chip,
                           bool tokens, bool sequences);
void sm_serve_job_page(sm_report *r, const sm_serve_asked *q, const char *on, const char *compute);
void sm_serve_search_page(sm_report *r, const sm_serve_result *s);
/* Why there is no point, or why it will not do, as a sentence. */
const char *sm_serve_reason(sm_report *r, const sm_serving_found *a);
/* "int8 weights, bf16 cache, bf16 compute: tensor=8": types where they differ from row to row. */
const char *sm_serve_typed_plan(sm_report *r, const sm_serve_asked *q, const sm_serve_dtypes *d,
                                const sm_plan *plan);
/* A batch that follows from requests in flight is no whole number. */
const char *sm_serve_batch_words(sm_report *r, double batch);
/* Dollars per million tokens by what ranks. */
double sm_serve_cost(const sm_serve_asked *q, const sm_serve_point *p);
void sm_serve_point_data(sm_report *r, sm_data *object, const sm_serve_asked *q,
                         const sm_serve_point *p);
void sm_serve_dtypes_data(sm_report *r, sm_data *object, const sm_serve_dtypes *d);
/* The model and the request; in which type matmuls compute, in words. */
void sm_serve_job_data(sm_report *r, const sm_serve_asked *q, const char *compute);
void sm_serve_search_data(sm_report *r, const sm_serve_result *s);
void sm_serve_data(sm_report *r, const sm_serving_found *a);
void sm_serve_page(sm_report *r, const sm_serving_found *a);
/* The frontier and the best plan over its batches, into the report's chart (serve_picture.c). */
sm_status sm_serve_picture(const sm_serving_found *a, sm_error *err);
const char *sm_serve_plan_words(sm_report *r, const sm_system *system, const sm_plan *plan);
const char *sm_serve_bound_words(sm_report *r, const sm_system *system, const sm_step_price *price);
