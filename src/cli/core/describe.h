/* describe: the verbs and their options as data. */
#pragma once
#include "program.h"

/* version; verbs: name, summary, arguments, least, most, options; common: the options of every
 * verb. An option has name, kind, help, and where they hold value, least, most, above, required,
 * words, default. SM_INTERNAL when out of memory. */
sm_status cli_describe(const cli_program *program, sm_report *report, sm_error *err);
