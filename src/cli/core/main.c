/* main: the verbs of scalemodel. */
#include "program.h"
#include "verbs.h"

/* One row per verb, in the order help shows them. */
static const cli_verb *const verbs[] = {
    &cli_chip,       &cli_model,   &cli_plan,  &cli_roofline, &cli_matmul,
    &cli_collective, &cli_train,   &cli_serve, &cli_simulate, &cli_validate,
    &cli_calibrate,  &cli_profile, &cli_run,   &cli_measure,
};

static const cli_program program = {
    .name = "scalemodel",
    .summary = "How to scale a Transformer: what bounds it on a chip and on many, and why.",
    .verb = verbs,
    .verbs = sizeof verbs / sizeof verbs[0],
};

int main(int argc, char **argv) { return cli_main(&program, argc, argv); }
