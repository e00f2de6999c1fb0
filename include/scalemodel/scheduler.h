/* scheduler: what an engine that runs does next, by the policies, the memory and the prefix cache
 * of the simulation (simulate.h): the same code, whose clock is the caller's. What a simulation
 * only counts has a place here: pages of the cache, and a seat of each sequence that runs. */
#pragma once
#include "scalemodel/simulate.h"

SM_DECLARATIONS_BEGIN

typedef struct sm_scheduler sm_scheduler;
/* options: as of sm_simulate, with replicas that step together; their engine says how many tokens
 * of cache each has and what steps are expected to take (step_s may give 0). Every policy but
 * SM_POLICY_DISAGGREGATED, and SM_PREEMPT_RECOMPUTE. watch: is told of every request that ends and
 * of every step, as measured; may be NULL. Errors as sm_simulate. */
sm_status sm_scheduler_new(const sm_simulation *options, const sm_watch *watch, sm_scheduler **out,
                           sm_error *err);
/* Free a scheduler. NULL is fine. */
void sm_scheduler_free(sm_scheduler *s);

/* A request, sent at its arrival_s and added now; times do not go back. The output is the most that
 * it may have. blocks, where a prefix cache is to find it: an id of each whole page of the prompt,
 * with block_tokens those of a page. *number: how the other calls name it. SM_NEGATIVE when it can
 * never fit in memory; errors as sm_simulate. */
sm_status sm_scheduler_add(sm_scheduler *s, const sm_request *request, double now_s,
                           uint64_t *number, sm_error *err);
/* The id of the next page of a running request, which its output has filled: the prefix cache keeps
 * it when the request ends. SM_INTERNAL when out of memory; one that does not run is passed over.
 */
sm_status sm_scheduler_page_filled(sm_scheduler *s, uint64_t number, uint64_t block, sm_error *err);
/* A request ends now, between two steps, with the output that it has; one that is not there is
 * passed over. Without any output it does not count as finished. */
sm_status sm_scheduler_stop(sm_scheduler *s, uint64_t number, double now_s, sm_error *err);

/* What a step takes of one sequence: tokens [first, first + tokens) of prompt and output. */
typedef struct sm_scheduled {
    uint64_t number;
    int replica, seat; /* seat: below most_batch, of one sequence of the replica at a time */
    size_t first, tokens;
    bool gives;          /* a token of the output follows */
    const int32_t *page; /* places of its pages, those written now included; below the pages that
                            the engine's memory has */
    size_t pages;
} sm_scheduled;
typedef struct sm_scheduled_step {
    size_t n;                     /* 0: nothing is to be done */
    const sm_scheduled *sequence; /* by replica; valid until the step is done */
    double expected_s;            /* of the replica that takes longest, by its engine */
} sm_scheduled_step;
/* The next step of all replicas, which begins now. */
sm_status sm_scheduler_next(sm_scheduler *s, double now_s, sm_scheduled_step *step, sm_error *err);
/* The step has ended: every sequence that gives has a token more, and ends with its last. */
sm_status sm_scheduler_done(sm_scheduler *s, double now_s, sm_error *err);

/* All that was counted so far, as of a simulation. */
void sm_scheduler_read(sm_scheduler *s, sm_simulated *out);
SM_DECLARATIONS_END
