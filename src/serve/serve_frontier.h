/* Private to serve: the search over slices, shardings, placements and batches. */
#pragma once
#include "serve_space.h"

/* Of the most tokens a second and chip: what are as many, and with fewer than what no plan comes to
 * the most with up to twice the batch. */
#define AS_MANY 0.999
#define OF_OTHER_BATCH 0.45

/* A candidate: seconds per token against tokens per second and chip. Money is chips and hours, so
 * that the cheapest token is that of the highest throughput per chip. */
typedef struct found {
    sm_plan plan;
    double batch, tpot_s, per_chip;
    double first_s; /* of a prompt alone */
    int slice;
} found;

typedef struct frontier {
    found *point;
    size_t n, room;
    bool of_fleet;   /* a larger slice beats no smaller one */
    bool by_first;   /* and slower prompts no quicker ones */
    bool most_alone; /* and so does who has more than twice the tokens */
    double above;    /* tokens of a chip that no batch of a plan with fewer gives */
    bool failed;     /* out of memory */
} frontier;
/* Is there a point at least as good in all? */
bool frontier_beats(const frontier *f, int slice, double first_s, double tpot_s, double per_chip);
/* Keep it unless it is beaten, and drop what it beats; append: keep all. */
void frontier_add(frontier *f, const found *point);
void frontier_append(frontier *f, const found *point);
/* By tokens per second and chip. */
sm_status frontier_sort(frontier *f, sm_error *err);

/* Of one placement: seconds of a prompt alone. The residual stream is sharded or not, whichever is
 * quicker, unless seq is given. */
typedef struct prefill {
    double ttft_s, expected_s; /* ttft_s: as times are ranked */
    bool seq;
} prefill;

enum { FLOORS = 4 };
typedef struct search {
    sm_arena *arena; /* of what follows, but for points and slices under way */
    sm_serve *s;
    const sm_serve_search_options *o;
    const sm_system *slice;
    int slices, at, on; /* slice[at] is looked at, slice[on] under s; -1: the whole system */
    placements *places; /* of the degrees under way */
    prefill *first;     /* on each of them; not known: 0 */
    struct like {
        uint64_t key; /* of the lines of its collectives */
        int first;    /* that has the same */
        bool timed;
        double alone_s; /* of a step of the batch under way */
        double late_s;  /* first tokens of a smaller batch, on average at least; 0: in time */
    } * like;
    step_floor *floor; /* of prompts, by seq: alone and beside decoding */
    frontier front;
    frontier
        late; /* plans whose batches of powers of two stop short of the limit per token: the last
                 of these, and the tokens per second and chip that they have at most below it */
    double space, evaluated, pruned;
    bool any_fits;
    int least_chips;
    double least_bytes, its_capacity; /* of what comes nearest to fitting */
    found quickest;                   /* of all that fits, whatever the limits */
    double best_ttft_s;
    sm_status status;
    sm_error err;
} search;
/* Slices and the job under way; then each slice is put under h->s. */
sm_status search_start(const sm_serve_job *job, const sm_calibration *calibration,
                       const sm_serve_search_options *options, search *h, sm_error *err);
void search_slice(search *h, int slice); /* put it under h->s */
least_kind least_of(const search *h);    /* as times are ranked */
/* Is the residual stream of prompts looked at sharded so? */
bool seq_counts(const search *h, const sm_plan *plan, bool seq);
void search_note(search *h, sm_status status,
                 const sm_error *err); /* an SM_INTERNAL ends the search */
/* Fill slices and the frontier; points of it are made by search_point. */
sm_status search_run(const sm_serve_job *job, const sm_calibration *calibration,
                     const sm_serve_search_options *options, bool of_fleet, search *h,
                     sm_error *err);
sm_status search_point(search *h, const found *f, sm_serve_point *point, sm_error *err);
/* sm_serve_search; of_fleet: the frontier of each number of chips and fewer, whose points have
 * first tokens in closed form: they are not simulated. */
sm_status search_points(const sm_serve_job *job, const sm_calibration *calibration,
                        const sm_serve_search_options *options, bool of_fleet, sm_arena *arena,
                        sm_serve_result *result, sm_error *err);
void search_free(search *h);
