/* svg: what the pictures share: text, lines, colours. */
#ifndef SM_RENDER_SVG_H
#define SM_RENDER_SVG_H
#include <stddef.h>
#include <stdio.h>

extern const char svg_grey[], svg_pale[], svg_ink[];
/* The colour of the n-th series; they repeat after ten. */
const char *svg_colour(size_t n);
typedef struct svg_anchored {
    double x, y;
    const char *anchor, *fill; /* anchor: start, middle, end */
    int size;
} svg_anchored;
/* Escaped and cleaned; NULL writes nothing. */
void svg_text(svg_anchored at, const char *words, FILE *out);
void svg_line(double x1, double y1, double x2, double y2, const char *stroke, FILE *out);
/* The opening element with a white ground. */
void svg_open(int width, int height, FILE *out);
#endif
