/* main: the program scalemodel. */
#include "program.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Searches, simulations and questions of a sweep take and free a few large blocks each. glibc would
 * hand them back to the system and take them anew, page by page, which is more than half of the
 * time of a question that is only priced. In a program of somebody else's that is his to say. */
int main(int argc, char **argv) {
#ifdef __GLIBC__
    enum { LARGEST = 32 << 20, KEPT = 24 << 20 }; /* glibc takes no larger threshold */
    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
    return cli_main(&cli_scalemodel, argc, argv);
}
