/* A user of the library of what runs on ranks, in C and in C++: a sum over four threads, or over
 * the processes that MPI started. */
#include <scalemodel/measure.h>
#include <scalemodel/run_generate.h>
#include <stdio.h>

static sm_status add(sm_communicator *world, void *sum, sm_error *err) {
    double mine[6] = {1, 2, 3, 4, 5, 6};
    double most = 0;
    sm_status status = sm_run_all_reduce(world, mine, 6, SM_ELEMENT_F64, err);
    for (int i = 0; i < 6; i++) most = mine[i] > most ? mine[i] : most;
    if (!status && world->rank == 0) *(double *)sum = most;
    return status;
}

int main(int argc, char **argv) {
    sm_error err;
    double sum = 0;
#ifdef USER_OF_MPI
    sm_status status = sm_run_mpi(&argc, &argv, add, &sum, &err);
#else
    (void)argc, (void)argv;
    sm_status status = sm_run_threads(4, add, &sum, &err);
#endif
    sm_measured_line line;
    const double bytes[3] = {1e4, 1e5, 1e6}, seconds[3] = {2e-6, 2e-6, 2e-6};
    if (!status) status = sm_measure_line(bytes, seconds, 3, &line, &err);
    if (!status && sum > 0) printf("%g, a line within %.1g\n", sum, line.error);
    if (status) fprintf(stderr, "%s\n", err.sentence);
    return (int)status;
}
