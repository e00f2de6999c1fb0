/* machine_memory: is there room on this machine for what ranks will hold? */
#ifndef SCALEMODEL_RUNCLI_MACHINE_MEMORY_H
#define SCALEMODEL_RUNCLI_MACHINE_MEMORY_H
#include "scalemodel/page.h"

/* SM_NEGATIVE, which the page explains, where `ranks` ranks of so many bytes each do not fit: of
 * ranks that a user's own launcher starts, perhaps on other machines, one must. what: "this
 * product"; advice: what needs less, a sentence. */
sm_status machine_memory_holds(sm_report *r, const char *what, double bytes_of_rank, int ranks,
                               const char *advice);
#endif
