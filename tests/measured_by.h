/* Who ran a measured operation, as tests write it: "SOFTWARE KERNEL FLAG", where "-" is not stated
 * and the flag is what the row's kind has: "quantises", "switches" (no reduction in them). */
#pragma once
#include "scalemodel/truth.h"
#include <stdio.h>
#include <string.h>

static inline void measured_by(sm_truth_row *row, const char *words) {
    static char kept[1024][2][24]; /* the row points to them */
    static int n;
    char flag[24] = "";
    char(*at)[24] = kept[n++ % 1024];
    at[0][0] = at[1][0] = 0;
    if (words) sscanf(words, "%23s %23s %23s", at[0], at[1], flag);
    row->source = words;
    row->software = strcmp(at[0], "-") == 0 ? "" : at[0];
    row->kernel = strcmp(at[1], "-") == 0 ? "" : at[1];
    if (row->kind == SM_TRUTH_GEMM)
        row->of.gemm.quantises = strcmp(flag, "quantises") == 0 ? SM_YES : SM_UNSTATED;
    if (row->kind == SM_TRUTH_COLLECTIVE)
        row->of.collective.in_network = strcmp(flag, "switches") == 0 ? SM_NO : SM_UNSTATED;
}
