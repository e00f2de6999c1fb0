/* ranks: where a verb runs: in this process, on its threads, or on processes of MPI. */
#pragma once
#include "options.h"
#include "scalemodel/measure.h"

/* What the ranks are; GPUs are measured alone. */
typedef enum ranks_with {
    RANKS_OPENMPI,
    RANKS_MPICH,
    RANKS_THREADS,
    RANKS_SELF,
    RANKS_CUDA,
    RANKS_WITH_COUNT
} ranks_with;
extern const char *const ranks_with_names[RANKS_WITH_COUNT];
typedef struct ranks_values {
    ranks_with with;
    bool debug;
} ranks_values;
/* n: how many of the names the verb knows, RANKS_CUDA or RANKS_WITH_COUNT. */
/* clang-format off */
#define RANKS_OPTIONS(values, member, n)                                                           \
    {"with", 0, CLI_CHOICE, offsetof(values, member.with), "BACKEND",                              \
     .help = "what the ranks are", .words = {ranks_with_names, n},                                 \
     .default_says = "MPI where it was there to build with, else threads"},                        \
    {"debug", 0, CLI_FLAG, offsetof(values, member.debug),                                         \
     .help = "compare each call over the ranks before it is made, and name those that differ"}
/* clang-format on */

/* Run body on `ranks` ranks. Where these are processes of MPI that are not started yet, the same
 * command line is given to mpirun and the program made for it, which answer in our place: the
 * status is theirs and ranks_speak() is false. Each process of MPI has a context of its own, and
 * threads share one: only rank 0 may write to it. */
sm_status ranks_run(const cli_call *call, const ranks_values *given, int ranks, sm_rank_body body,
                    void *context, sm_error *err);
/* The ranks of a backend, or those in one process, as a program of their own that runs the same
 * command line, to their end. */
sm_status ranks_launch(const cli_call *call, const ranks_values *given, int ranks, sm_error *err);
/* The number of this process among those of its launcher; 0: there is none. */
int ranks_number(void);
/* Does this process answer? Not the ranks other than the first, nor one whose work was done by
 * other processes. */
bool ranks_speak(void);
/* Will all ranks be on this machine? Not known of those that a user's own launcher starts. */
bool ranks_are_here(void);
/* The backend that ranks_run used: "threads". */
const char *ranks_backend(void);

/* How the ranks of this program are started; one definition is linked into each program. */
typedef struct ranks_starter {
    const char *backend; /* "threads", "openmpi", "mpich", "cuda" */
    sm_status (*start)(int ranks, sm_rank_body body, void *context, sm_error *err);
    /* NULL in all but the program made with CUDA */
    sm_status (*measure_gpus)(const sm_measure_job *job, sm_gpu_facts *facts, sm_error *err);
} ranks_starter;
extern const ranks_starter ranks_of_program;
/* GPUs are measured by a program of their own: here, or by becoming it. */
sm_status ranks_measure_gpus(const cli_call *call, const sm_measure_job *job, sm_gpu_facts *facts,
                             sm_error *err);
