/* answer: what each verb of the command answers, as a library: a question in, a report out
 * (report.h) with the page that a person reads and the data that --json prints. */
#ifndef SCALEMODEL_ANSWER_H
#define SCALEMODEL_ANSWER_H
#include "scalemodel/hw.h"
#include "scalemodel/page.h"

/* A fact of a chip with its source, as a child of a derivation. */
void sm_page_fact(sm_report *r, sm_why *parent, const char *label, const sm_fact *fact,
                  const char *unit);
#endif
