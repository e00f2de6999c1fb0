/* Which software generation a row was measured with: constants are fitted per chip and generation.
 */
#include "scalemodel/truth.h"

const char *sm_truth_software(const sm_truth_row *row) {
    if (row->kind != SM_TRUTH_TRAINING && row->kind != SM_TRUTH_INFERENCE) return "kernels";
    if (row->software && row->software[0]) return row->software;
    return row->kind == SM_TRUTH_INFERENCE ? "serving" : "default";
}
