/* start_threads: the program without MPI. */
#include "ranks.h"

const ranks_starter ranks_of_program = {"threads", sm_run_threads, NULL};
