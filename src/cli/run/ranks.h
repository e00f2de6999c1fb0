/* ranks: where a verb runs: in this process, on its threads, or on processes of MPI. */
#pragma once
#include "options.h"
#include "scalemodel/measure.h"
#include <sys/types.h>

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
#define RANKS_PLACES(member) AT("with", member.with), AT("debug", member.debug)

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

/* What the ranks found, put together. */
/* Has every rank the same number? Collective. */
sm_status same_over_ranks(sm_communicator *world, uint64_t number, bool *same, sm_error *err);

/* Mpirun, or this program, as a child whose noise is kept from the user. */
/* Run mpirun (word[0] and its arguments, NULL at the end) to its end and return the status of the
 * ranks. Of their standard error only lines that begin with "scalemodel: " are passed on at once,
 * and of several ranks that name an error the first. When the ranks were ended without a word, *err
 * says so in one sentence. verbose: everything is passed on as it is. */
sm_status launch_mpirun(char *const *word, bool verbose, sm_error *err);

/* The first signal that would end this process reaches the ranks as SIGUSR1, on which they end by
 * themselves: for verbs that do. */
void launch_gently(void);

/* This process is sent the signal when the one that started it ends, however that ends: no ranks go
 * on for nobody. */
void launch_end_with(pid_t parent, int number);

/* Where standard error of the ranks is read by the process that started them, and that one's is a
 * terminal, this variable is set, and lines that begin so tell of progress: one takes the place of
 * the other. */
#define LAUNCH_WATCHED "SCALEMODEL_WATCHED"
#define LAUNCH_PROGRESS "progress: "
/* The path of a file of the process that started them, where ranks on its machine say what is wrong
 * before they end all of them. */
#define LAUNCH_LAST_WORDS "SCALEMODEL_LAST_WORDS"

/* One per subcommand of `scalemodel run`, each in the file of its name. */
extern const cli_verb run_matmul_verb, measure_verb;
extern const cli_verb run_collective_verb;
extern const cli_verb run_train_verb;
extern const cli_verb run_generate_verb;
extern const cli_verb run_serve_verb, run_sweep_verb;
