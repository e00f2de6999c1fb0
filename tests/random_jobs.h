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

/* ---- a better machine ---- */

/* What a machine has of each resource: links and hops of every level count by themselves.
 * RANDOM_ROOM: of memory. */
enum {
    RANDOM_MEMORY,
    RANDOM_ROOM,
    RANDOM_PEAK,
    RANDOM_VECTOR,
    RANDOM_CLOCK,
    RANDOM_PCIE,
    RANDOM_LAUNCH,
    RANDOM_LINKS,
    RANDOM_LINK,
    RANDOM_HOP = RANDOM_LINK + SM_MAX_LEVELS,
    RANDOM_RESOURCES = RANDOM_HOP + SM_MAX_LEVELS
};
/* More per second, or less to wait; false where the machine has no such level. */
bool random_better(sm_system *system, int resource, double times);
/* Out of balance, as no machine is made: a tenth to ten times of each resource but its room. */
void random_system_of_resources(sm_system *system, sm_rng *rng);
const char *random_resource_name(int resource, char *out, size_t size);
