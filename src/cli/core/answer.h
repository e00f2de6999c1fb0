/* answer: how a report leaves the program: rendered whole, then written to standard output or to a
 * file. */
#ifndef SCALEMODEL_CLI_ANSWER_H
#define SCALEMODEL_CLI_ANSWER_H
#include "options.h"
#include "scalemodel/report.h"

/* Text, JSON or CSV as the common options ask. Nothing is written unless all of it could be
 * rendered. SM_IO when the destination refuses, a closed standard output or pipe included. */
sm_status cli_answer(const cli_common *common, const sm_report *report, sm_error *err);
/* Write text to standard output and flush it. A closed pipe is SM_IO without a sentence. */
sm_status cli_write_stdout(const char *text, size_t length, sm_error *err);
/* Show an error on standard error; one without a sentence shows nothing. */
void cli_show_error(const sm_error *err);
#endif
