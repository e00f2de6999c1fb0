/* completion: of a command line, for shells. */
#pragma once
#include "program.h"

/* `completion SHELL` prints the script of a shell, which calls `completion -- WORD...`: what the
 * last of these words of a command line may become, one a line, with a tab and its meaning.
 * SM_USAGE when no such shell is known. */
sm_status cli_completion(const cli_program *program, int words, char **word, sm_error *err);
