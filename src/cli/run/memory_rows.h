/* train_memory: the most memory that any rank of a training had in use, beside what the planner
 * predicts of it. */
#ifndef SCALEMODEL_RUNCLI_TRAIN_MEMORY_H
#define SCALEMODEL_RUNCLI_TRAIN_MEMORY_H
#include "scalemodel/page.h"
#include "scalemodel/run_train.h"
#include "scalemodel/train.h"

typedef struct train_memory {
    int rank;             /* the one that had most */
    sm_train_memory most; /* of it */
    double process_bytes; /* resident, of the largest process that is one rank; 0: not known */
} train_memory;
/* Called by every rank; rank 0 fills out. */
sm_status train_memory_gather(sm_communicator *world, const sm_trainer *t, train_memory *out,
                              sm_error *err);
/* A table and the object "memory". */
void train_memory_show(sm_report *r, const sm_memory *predicted, const train_memory *measured);
#endif
