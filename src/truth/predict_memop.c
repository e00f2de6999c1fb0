/* The time of a measured memory-bound operation: its bytes through HBM, or through the cache. */
#include "scalemodel/truth.h"
#include <math.h>
#include <string.h>

void sm_predict_memop(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                      sm_prediction *out) {
    out->regime = SM_REGIME_memory;
    if (!(row->of.memop.bytes > 0.0)) {
        out->unknown = "bytes";
        return;
    }
    sm_op_cost cost = sm_vector_cost(chip, c, 0.0, row->of.memop.bytes);
    out->lower_s = cost.lower_s;
    out->expected_s = cost.expected_s;
    out->upper_s = cost.upper_s;
}
