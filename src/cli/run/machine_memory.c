/* Before a run: a machine that runs out of memory ends something, and not always us. */
#include "machine_memory.h"

#include <unistd.h>

#include "ranks.h"

sm_status machine_memory_holds(sm_report *r, const char *what, double bytes_of_rank, int ranks,
                               const char *advice) {
    double pages = (double)sysconf(_SC_PHYS_PAGES), page_bytes = (double)sysconf(_SC_PAGESIZE);
    double here = ranks_are_here() ? ranks : 1, bytes = here * bytes_of_rank;
    if (pages <= 0 || page_bytes <= 0 || bytes <= pages * page_bytes) return SM_OK;
    sm_put(r, r->data, "needed_bytes", bytes);
    sm_put(r, r->data, "memory_bytes", pages * page_bytes);
    sm_report_text(r, "Not started: %s needs %s of memory on this machine, which has %s. %s", what,
                   sm_show_bytes(r, bytes), sm_show_bytes(r, pages * page_bytes), advice);
    return SM_NEGATIVE;
}
