/* Reading what the verbs that time an operation are all asked. */
#include "timing_options.h"

enum { MOST_RUNS = 10000 };

sm_status timing_read(const timing_values *given, sm_truth_kind kind, sm_dtype dtype,
                      int64_t *repeats, int64_t *warmups, sm_error *err) {
    sm_status status = cli_whole("--repeats", given->repeats, 1, MOST_RUNS, repeats, err);
    if (!status) status = cli_whole("--warmups", given->warmups, 0, MOST_RUNS, warmups, err);
    if (!status && given->record && dtype != SM_FP32)
        status = sm_fail(err, SM_USAGE, "--record keeps what ran in fp32");
    return status ? status : record_check(given->record, kind, err);
}
