/* verbs: those of scalemodel. */
#include "program.h"

/* One row per verb, in the order help shows them. */
static const cli_verb *const verbs[] = {
    &cli_chip,     &cli_model,      &cli_plan,    &cli_mfu,     &cli_roofline,
    &cli_matmul,   &cli_collective, &cli_train,   &cli_serve,   &cli_simulate,
    &cli_validate, &cli_calibrate,  &cli_support, &cli_profile, &cli_reshard,
    &cli_sweep,    &cli_design,     &cli_run,     &cli_measure, &cli_page,
};

const cli_program cli_scalemodel = {
    .name = "scalemodel",
    .summary = "How to scale a Transformer: what bounds it on a chip and on many, and why.",
    .verb = verbs,
    .verbs = sizeof verbs / sizeof verbs[0],
};
