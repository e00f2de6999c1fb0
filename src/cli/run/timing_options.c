/* What the verbs that time an operation are all asked, taken together. */
#include "timing_options.h"

sm_status timing_check(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                       sm_error *err) {
    if (given->record && dtype != SM_FP32)
        return sm_fail(err, SM_USAGE, "--record keeps what ran in fp32");
    return record_check(given->record, kind, err);
}
