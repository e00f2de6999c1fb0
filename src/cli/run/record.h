/* record: what was run, as rows of a file of measurements that `validate` reads. */
#pragma once
#include "options.h"

#define RECORD_OPTION(values, member)                                                              \
    {                                                                                              \
        "record", 0, CLI_OUTPUT, offsetof(values, member), "FILE",                                 \
            .help = "add what was measured to FILE, JSON lines that 'validate FILE' reads"         \
    }

/* Can rows of this kind be added there? Before anything is run. NULL: none is asked for. */
sm_status record_check(const char *path, sm_truth_kind kind, sm_error *err);
/* A row of this kind, measured on a chip by this program. */
sm_truth_row record_begin(sm_truth_kind kind, const char *chip, double measured_s);
/* Add the rows to the file, and say so. */
sm_status record_rows(sm_report *r, const char *path, const sm_truth_row *row, int n,
                      sm_error *err);
