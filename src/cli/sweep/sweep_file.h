/* sweep_file: the rows of a sweep as a file of CSV that survives whoever writes it. */
#pragma once
#include "sweep_plot.h"

typedef struct sweep_file sweep_file;
/* Begin the file, or go on with what an interrupted sweep of the same questions has left there;
 * *rows: that it holds, which go to the plot, NULL or not. FILE.sweep says which questions they are
 * until all are answered. SM_IO when it is another sweep's, or cannot be written. Its texts live in
 * the arena. */
sm_status sweep_file_open(const char *path, const sweep *s, sweep_plot *plot, sm_arena *arena,
                          sweep_file **out, int64_t *rows, sm_error *err);
sm_status sweep_file_put(sweep_file *f, const char *const *cell, sm_error *err);
/* all: every row is there. NULL is fine. */
sm_status sweep_file_close(sweep_file *f, bool all, sm_error *err);
