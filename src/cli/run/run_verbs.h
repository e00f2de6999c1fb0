/* run_verbs: one per subcommand of `scalemodel run`, each in the file of its name. */
#pragma once
#include "options.h"

extern const cli_verb run_matmul_verb, measure_verb;
extern const cli_verb run_collective_verb;
extern const cli_verb run_train_verb;
extern const cli_verb run_generate_verb;
extern const cli_verb run_serve_verb;
