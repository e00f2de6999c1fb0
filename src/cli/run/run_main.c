/* main: the verbs that run on ranks. */
#include <stdlib.h>
#include <unistd.h>

#include "program.h"
#include "ranks.h"

static const cli_verb *const verbs[] = {&run_matmul_verb, &run_collective_verb, &measure_verb,
                                        &run_train_verb,  &run_generate_verb,   &run_serve_verb,
                                        &run_sweep_verb};

static const cli_program program = {
    .name = "scalemodel run",
    .summary = "Run it: the program that was priced, on real processes, beside its prediction.",
    .verb = verbs,
    .verbs = sizeof verbs / sizeof verbs[0],
    .speaks = ranks_speak,
};

/* What libraries read when they are loaded, so that this program begins anew with it.
 * A rank is one core, and a BLAS with threads of its own would take the cores of the others.
 * Blocks are made and freed at every step: memory that went back to the system in between would
 * come back page by page, each with a fault. */
static const char *const settings[][2] = {
    {"OPENBLAS_NUM_THREADS", "1"},
    {"OMP_NUM_THREADS", "1"},
    {"BLIS_NUM_THREADS", "1"},
    {"MKL_NUM_THREADS", "1"},
    {"MALLOC_MMAP_MAX_", "0"},
    {"MALLOC_TRIM_THRESHOLD_", "1099511627776"},
    {"MALLOC_TOP_PAD_", "67108864"}, /* so much more at a time, of whole pages of 2 MiB */
    {"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}, /* 2 MiB pages: fewer faults when it is new */
    {"MALLOC_ARENA_MAX", "1"}, /* that of a thread has no room for large blocks: mapped anew */
};

int main(int argc, char **argv) {
    bool held = true;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *value = getenv(settings[i][0]);
        if (value && strcmp(value, settings[i][1]) == 0) continue;
        held = setenv(settings[i][0], settings[i][1], 1) != 0;
    }
    if (!held) {
        execv("/proc/self/exe", argv);
        execvp(argv[0], argv); /* where there is no /proc */
    }
    return cli_main(&program, argc, argv);
}
