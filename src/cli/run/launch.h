/* launch: mpirun, or this program, as a child whose noise is kept from the user. */
#pragma once
#include <sys/types.h>
#include "scalemodel/base.h"

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
