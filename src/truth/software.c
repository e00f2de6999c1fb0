/* Which software a row was measured with: constants are fitted per chip and generation, and engines
 * run operations with kernels of their own or of others. */
#include <string.h>

#include "truth_parts.h"

const char *sm_truth_software(const sm_truth_row *row) {
    if (row->kind != SM_TRUTH_TRAINING && row->kind != SM_TRUTH_INFERENCE) return "kernels";
    if (row->software && row->software[0]) return row->software;
    return row->kind == SM_TRUTH_INFERENCE ? "serving" : "default";
}

int truth_month(const sm_training_row *row) {
    return 12 * row->year + (row->month > 0 ? row->month : 12);
}

bool truth_in(const sm_truth_row *row, const char *software) {
    return row->software && strcmp(row->software, software) == 0;
}

bool truth_by(const sm_truth_row *row, const char *kernel) {
    return row->kernel && strcmp(row->kernel, kernel) == 0;
}
