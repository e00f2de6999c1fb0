/* verbs: one per subcommand, each in the file of its name; and all of them. */
#pragma once
#include "program.h"

extern const cli_verb cli_chip, cli_model, cli_plan, cli_mfu, cli_roofline, cli_matmul,
    cli_collective, cli_train, cli_serve, cli_simulate, cli_validate, cli_calibrate, cli_profile,
    cli_reshard, cli_sweep, cli_design, cli_support, cli_run, cli_measure, cli_page;
extern const cli_program cli_scalemodel;
