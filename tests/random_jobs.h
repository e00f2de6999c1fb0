/* Small random jobs for the tests of plans and of their search. */
#pragma once
#include "scalemodel/train.h"

typedef struct random_job {
    sm_model model;
    sm_system system;
    sm_job job;
} random_job;

/* A dense or sparse model of 2..8 layers on one of a dozen systems of 2..16 chips. The same rng
 * state gives the same job. */
void random_job_fill(random_job *r, sm_rng *rng);
void random_model(sm_model *model, sm_rng *rng);
/* A plan whose degrees multiply to a divisor of the chips; often refused, seldom absurd. */
void random_plan(const random_job *r, sm_rng *rng, sm_plan *plan);
sm_system random_job_system(const char *text); /* fails the test when it does not parse */
