/* sweep_plot: the rows of a sweep as a picture. */
#pragma once
#include "scalemodel/report.h"
#include "sweep.h"

typedef struct sweep_plot sweep_plot;
/* SM_USAGE when a picture cannot hold so many rows. All of it lives in the arena. */
sm_status sweep_plot_new(const sweep *s, sm_arena *arena, sweep_plot **out, sm_error *err);
/* The cells of a row; NULL is fine. */
void sweep_plot_put(sweep_plot *plot, int64_t row, const char *const *cell);
/* Draw it into r->chart: a panel a column of numbers, the first two, or of --columns the first
 * four. Lines over the longest axis of numbers, one for each combination of the others; bars, or a
 * heat map, where there is none or there would be too many lines. */
sm_status sweep_plot_draw(const sweep_plot *plot, sm_report *r, sm_error *err);
