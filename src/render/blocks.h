/* The kinds of block of a page, each drawn as text at most `width` columns wide. */
#ifndef SM_RENDER_BLOCKS_H
#define SM_RENDER_BLOCKS_H
#include <stdio.h>
#include "scalemodel/report.h"

#define NARROWEST_PAGE 24

sm_status sm_draw_table(const sm_table *table, int width, FILE *out, sm_error *err);
void sm_draw_bar(const sm_bar *bar, int width, FILE *out);
sm_status sm_draw_why(const sm_why *why, int width, FILE *out, sm_error *err);
#endif
