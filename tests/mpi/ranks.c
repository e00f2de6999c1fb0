/* The property of tests/random_einsums.h on processes of MPI: prints how many lowerings agreed.
 * usage: mpirun -n RANKS ranks CASES SEED */
#include <stdio.h>
#include <stdlib.h>

#include "random_einsums.h"

static sm_status run(sm_communicator *world, void *context, sm_error *err) {
    random_einsums *all = context;
    sm_status status = random_einsums_run(world, all, err);
    if (!status && world->rank == 0)
        printf("%d lowerings equal on %d ranks\n", all->ways, world->size);
    return status;
}

int main(int argc, char **argv) {
    sm_error err = {.status = SM_OK};
    random_einsums all = {.cases = argc > 1 ? atoi(argv[1]) : 1,
                          .seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1};
    return (int)sm_run_mpi(&argc, &argv, run, &all, &err);
}
