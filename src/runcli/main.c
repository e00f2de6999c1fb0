/* main: the verbs that run on ranks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "ranks.h"
#include "run_verbs.h"

static const cli_verb *const verbs[] = {&run_matmul_verb, &run_collective_verb, &measure_verb,
                                        &run_train_verb};

static const cli_program program = {
    .name = "scalemodel run",
    .summary = "Run it: the program that was priced, on real processes, beside its prediction.",
    .verb = verbs,
    .verbs = sizeof verbs / sizeof verbs[0],
    .speaks = ranks_speak,
};

/* A rank is one core, and a BLAS with threads of its own would take the cores of the others. It
 * reads these variables when it is loaded, so this program begins anew with them. */
static void hold_blas_threads(char **argv) {
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                                        "BLIS_NUM_THREADS", "MKL_NUM_THREADS"};
    bool held = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && strcmp(value, "1") == 0) continue;
        held = setenv(names[i], "1", 1) != 0;
    }
    if (!held) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    hold_blas_threads(argv);
    return cli_main(&program, argc, argv);
}
