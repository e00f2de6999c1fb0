/* answer: how reports, charts and timelines leave the program. */
#pragma once
#include "options.h"

/* What writes an answer, drawn whole before anything of it leaves the program. */
typedef sm_status cli_writer(const void *context, FILE *out, sm_error *err);
/* To the file, or to standard output (path NULL). SM_IO when the destination refuses. */
sm_status cli_write(const char *path, cli_writer *write, const void *context, sm_error *err);
/* Text, JSON or CSV as the common options ask. Nothing is written unless all of it could be
 * rendered. SM_IO when the destination refuses, a closed standard output or pipe included. */
sm_status cli_answer(const cli_common *common, const sm_report *report, sm_error *err);
/* Write text to standard output and flush it. A closed pipe is SM_IO without a sentence. */
sm_status cli_write_stdout(const char *text, size_t length, sm_error *err);
/* Show an error on standard error; one without a sentence shows nothing. */
void cli_show_error(const sm_error *err);
/* A chart as SVG. */
sm_status cli_write_chart(const sm_chart *chart, const char *path, sm_error *err);
/* The verb's answer, and the pictures of it (SVG, a timeline for Perfetto, a page of HTML) in the
 * files that its options name. SM_IO when one cannot be written. */
sm_status cli_ask(const cli_call *call, sm_report *report, sm_error *err);
