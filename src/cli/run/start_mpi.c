/* start_mpi: the programs with MPI, compiled once for each. */
#include <signal.h>
#include <unistd.h>

#include "ranks.h"

static sm_status start(int ranks, sm_rank_body body, void *context, sm_error *err) {
    (void)ranks; /* the launcher has started them */
    launch_end_with(getppid(), SIGKILL);
    return sm_run_mpi(NULL, NULL, body, context, err);
}

const ranks_starter ranks_of_program = {SCALEMODEL_MPI, start, NULL};
