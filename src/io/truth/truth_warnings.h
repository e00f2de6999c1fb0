/* truth_warnings: what is read without error and yet looks wrong. Private to src/io. */
#pragma once
#include "scalemodel/truth.h"

typedef struct truth_warnings {
    sm_arena *arena;
    sm_truth_warning *warning; /* grows; to be freed with sm_free */
    size_t n, room;
    bool refused; /* out of memory: whatever was noted since is lost */
} truth_warnings;

void truth_warn(truth_warnings *w, const sm_truth_row *row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* One row against the chip's datasheet and against itself. */
void truth_suspect_row(truth_warnings *w, const sm_truth_row *row);
/* Rows against each other: the same id, the same configuration with times far apart. */
void truth_suspect_twins(truth_warnings *w, const sm_truth_row *row, size_t n);

/* Work that no kernel of the row's kind can do without, on one chip. */
typedef struct truth_work {
    double flops, bytes;             /* of matrix units; of device memory or of links */
    double flops_per_s, bytes_per_s; /* the most that the chip has; 0: unknown */
} truth_work;
