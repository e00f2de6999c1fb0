/* Rows of what was run. */
#include "record.h"

#include "ranks.h"
#include "scalemodel/io.h"

sm_status record_check(const char *path, sm_truth_kind kind, sm_error *err) {
    if (!path) return SM_OK;
    sm_status status = sm_truth_append_check(path, kind, err);
    return status || !ranks_are_here() ? status : sm_io_write_check(path, err);
}

sm_truth_row record_begin(sm_truth_kind kind, const char *chip, double measured_s) {
    sm_truth_row row;
    sm_truth_row_blank(kind, &row);
    row.chip = chip;
    row.source = SM_TRUTH_RUN;
    row.software = SM_TRUTH_RUN_SOFTWARE;
    row.measured_s = measured_s;
    return row;
}

sm_status record_rows(sm_report *r, const char *path, const sm_truth_row *row, int n,
                      sm_error *err) {
    for (int i = 0; i < n; i++) {
        sm_status status = sm_truth_append(path, &row[i], err);
        if (status) return status;
    }
    sm_report_text(r, "%d %s of %s for 'validate' %s added to %s.", n, n == 1 ? "row" : "rows",
                   sm_truth_kind_name(row->kind), n == 1 ? "was" : "were", path);
    return SM_OK;
}
