/* start_cuda: the program that measures GPUs. Its ranks, where a verb has some, are threads. */
#include "ranks.h"

const ranks_starter ranks_of_program = {"cuda", sm_run_threads, sm_measure_gpus};
