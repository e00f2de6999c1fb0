/* serve_engine: an engine on ranks. The first rank takes requests from the desk and plans each step
 * by the scheduler of the simulation (scheduler.h); all ranks then take it, over one cache in
 * pages. */
#pragma once
#include "serve_desk.h"
#include "scalemodel/run_generate.h"
#include "scalemodel/scheduler.h"

/* Steps by what is in them. */
typedef enum serve_step_kind {
    SERVE_STEP_DECODE,
    SERVE_STEP_PREFILL,
    SERVE_STEP_MIXED,
    SERVE_STEPS
} serve_step_kind;
typedef struct serve_steps {
    double n, expected_s, measured_s;
} serve_steps;

typedef struct serve_engine_job {
    const sm_train_setup *setup;  /* as sm_generator_new_paged wants it */
    sm_generator_pages pages;     /* page_tokens is that of the simulation */
    const sm_simulation *options; /* its engine: what steps are expected to take, and kv_tokens */
    serve_desk *desk;
    /* Weights into the generator, on every rank. */
    sm_status (*load)(sm_generator *g, void *context, sm_error *err);
    /* On the first rank, before its first step: whoever hands in requests begins. */
    sm_status (*open)(void *context, sm_error *err);
    void *context;
    const sm_watch *watch; /* NULL: nobody */
} serve_engine_job;

typedef struct serve_engine_result { /* of the first rank */
    sm_simulated counted;            /* as of a simulation, by the clock of this machine */
    serve_steps steps[SERVE_STEPS];
    double weight_bytes; /* on the rank that holds most */
    double model_s;      /* of all steps, in the model; the rest is planning and drawing */
    double bytes_predicted[SM_COLLECTIVE_COUNT], bytes_counted[SM_COLLECTIVE_COUNT];
    double bytes_apart;                 /* |predicted - counted|, of all ranks and steps */
    double stopped, abandoned, begun_s; /* begun_s: on the clock of arrivals */
} serve_engine_result;

/* Made by every rank of world: until the desk is closed and empty. result is filled on the first.
 */
sm_status serve_engine_run(const serve_engine_job *job, sm_communicator *world,
                           serve_engine_result *result, sm_error *err);
