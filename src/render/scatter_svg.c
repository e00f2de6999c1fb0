/* A log-log scatter plot as SVG. Both axes run over the same whole decades, so that the diagonal is
 * where a prediction equals its measurement. */
#include <math.h>
#include <string.h>

#include "columns.h"
#include "scalemodel/render.h"
#include "svg.h"

enum {
    WIDTH = 780,
    HEIGHT = 620,
    LEFT = 70,
    TOP = 62,
    SIDE = 500, /* of the square plot */
    LEGEND = LEFT + SIDE + 16,
    LEGEND_STEP = 17,
    MOST_LEGENDS = 29, /* what fits beside the plot */
    MOST_TICKS = 16,
    PIXELS = (SIDE + 1) * (SIDE + 1)
};

static const char bound_grey[] = "#aaaaaa";

/* What both axes show: decades from first to last. */
typedef struct axes {
    int first, last;
} axes;

/* ---- the axes ---- */

static bool has_place(double x, double y) {
    return isfinite(x) && isfinite(y) && x > 0.0 && y > 0.0;
}

/* Of the dots: dashes that lie outside are left out. */
static axes axes_of(const sm_scatter *s) {
    double least = HUGE_VAL, most = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        const sm_points *p = &s->series[i];
        for (size_t j = 0; p->mark == SM_MARK_DOT && j < p->n; j++) {
            if (!has_place(p->x[j], p->y[j])) continue;
            least = fmin(least, fmin(p->x[j], p->y[j]));
            most = fmax(most, fmax(p->x[j], p->y[j]));
        }
    }
    if (most <= 0.0) return (axes){0, 1};
    axes a = {(int)floor(log10(least)), (int)ceil(log10(most))};
    if (a.last == a.first) a.last++;
    return a;
}

/* 0 at the first decade, 1 at the last. */
static double share_of(const axes *a, double value) {
    return (log10(value) - a->first) / (double)(a->last - a->first);
}

static bool is_within(const axes *a, double value) {
    double share = share_of(a, value);
    return share >= 0.0 && share <= 1.0;
}

static double x_of(const axes *a, double value) { return LEFT + SIDE * share_of(a, value); }
static double y_of(const axes *a, double value) { return TOP + SIDE * (1.0 - share_of(a, value)); }

/* 10 us, 100 s: never minutes, which are no decades. */
static void name_decade(int decade, const char *unit, char *out, size_t size) {
    static const char *const prefixes[] = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P"};
    enum { PREFIXES = sizeof prefixes / sizeof prefixes[0], LEAST = -12 };
    static const char *const ones[] = {"1", "10", "100"};
    int above = decade - LEAST;
    if (above < 0 || above / 3 >= PREFIXES) snprintf(out, size, "1e%d %s", decade, unit);
    else snprintf(out, size, "%s %s%s", ones[above % 3], prefixes[above / 3], unit);
}

static void put_decades(const sm_scatter *s, const axes *a, FILE *out) {
    int step = 1 + (a->last - a->first) / MOST_TICKS;
    for (int decade = a->first; decade <= a->last; decade += step) {
        double share = (decade - a->first) / (double)(a->last - a->first);
        double x = LEFT + SIDE * share, y = TOP + SIDE * (1.0 - share);
        char label[48];
        name_decade(decade, s->unit, label, sizeof label);
        svg_line(x, TOP, x, TOP + SIDE, svg_pale, out);
        svg_line(LEFT, y, LEFT + SIDE, y, svg_pale, out);
        svg_text((svg_anchored){x, TOP + SIDE + 18, "middle", svg_grey, 11}, label, out);
        svg_text((svg_anchored){LEFT - 8, y + 4, "end", svg_grey, 11}, label, out);
    }
}

/* The line y = ratio x within the square. */
static void put_ratio(double ratio, const axes *a, FILE *out) {
    double up = log10(ratio) / (double)(a->last - a->first);
    double from = fmax(0.0, -up), to = fmin(1.0, 1.0 - up);
    fprintf(out, " %.1f,%.1f %.1f,%.1f", LEFT + SIDE * from, TOP + SIDE * (1.0 - from - up),
            LEFT + SIDE * to, TOP + SIDE * (1.0 - to - up));
}

/* Both sides of the band, each from corner to corner: lines do, a filled band of 10 % is as thin.
 */
static void put_diagonal(const sm_scatter *s, const axes *a, FILE *out) {
    double ratios[3] = {1.0, 1.0 + s->band, 1.0 - s->band};
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !(s->band > 0.0 && s->band < 1.0)) return;
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\"%s points=\"", i ? svg_grey : svg_ink,
                i ? " stroke-dasharray=\"4 3\"" : "");
        put_ratio(ratios[i], a, out);
        fputs("\"/>\n", out);
    }
}

/* ---- the points ---- */

/* Which pixels of the square have been marked. */
typedef struct pixels {
    uint8_t bit[(PIXELS + 7) / 8];
} pixels;

static bool is_new(pixels *seen, int x, int y) {
    int at = y * (SIDE + 1) + x;
    uint8_t bit = (uint8_t)(1u << (at % 8));
    bool marked = seen->bit[at / 8] & bit;
    seen->bit[at / 8] |= bit;
    return !marked;
}

/* A path of strokes without length: round caps make them dots, a short stroke is a dash. */
static void put_marks(const sm_points *p, const axes *a, const char *colour, pixels *seen,
                      FILE *out) {
    bool dot = p->mark == SM_MARK_DOT;
    memset(seen, 0, sizeof *seen);
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" %s d=\"", colour,
            dot ? "4.5" : "1.4", dot ? "stroke-opacity=\"0.7\" stroke-linecap=\"round\"" : "");
    for (size_t i = 0; i < p->n; i++) {
        if (!has_place(p->x[i], p->y[i])) continue;
        if (!is_within(a, p->x[i]) || !is_within(a, p->y[i])) continue;
        int x = (int)lround(x_of(a, p->x[i])), y = (int)lround(y_of(a, p->y[i]));
        if (!is_new(seen, x - LEFT, y - TOP)) continue;
        fprintf(out, "M%d %dh%d", dot ? x : x - 3, y, dot ? 0 : 6);
    }
    fputs("\"/>\n", out);
}

static const char *colour_of(const sm_scatter *s, size_t i) {
    if (s->series[i].mark == SM_MARK_DASH) return bound_grey;
    size_t dots = 0;
    for (size_t j = 0; j < i; j++) dots += s->series[j].mark == SM_MARK_DOT;
    return svg_colour(dots);
}

static void put_series(const sm_scatter *s, const axes *a, pixels *seen, FILE *out) {
    for (size_t i = 0; i < s->n; i++)
        if (s->series[i].mark == SM_MARK_DASH)
            put_marks(&s->series[i], a, colour_of(s, i), seen, out);
    for (size_t i = 0; i < s->n; i++)
        if (s->series[i].mark == SM_MARK_DOT)
            put_marks(&s->series[i], a, colour_of(s, i), seen, out);
}

static void put_legend(const sm_scatter *s, FILE *out) {
    for (size_t i = 0; i < s->n && i < MOST_LEGENDS; i++) {
        double y = TOP + 8 + LEGEND_STEP * (double)i;
        bool dot = s->series[i].mark == SM_MARK_DOT;
        fprintf(
            out,
            "<path stroke=\"%s\" stroke-width=\"%s\" stroke-linecap=\"%s\" d=\"M%d %.0fh%d\"/>\n",
            colour_of(s, i), dot ? "7" : "1.8", dot ? "round" : "butt", dot ? LEGEND + 4 : LEGEND,
            y, dot ? 0 : 8);
        svg_text((svg_anchored){LEGEND + 16, y + 4, "start", svg_ink, 12}, s->series[i].name, out);
    }
}

/* ---- the whole ---- */

static void put_frame(const sm_scatter *s, FILE *out) {
    svg_open(WIDTH, HEIGHT, out);
    svg_text((svg_anchored){LEFT, 26, "start", svg_ink, 16}, s->title, out);
    svg_text((svg_anchored){LEFT, 46, "start", svg_grey, 12}, s->subtitle, out);
    svg_text((svg_anchored){LEFT + SIDE / 2.0, TOP + SIDE + 40, "middle", svg_ink, 12}, s->x_label,
             out);
    fprintf(out, "<g transform=\"translate(16 %d) rotate(-90)\">\n", TOP + SIDE / 2);
    svg_text((svg_anchored){0, 0, "middle", svg_ink, 12}, s->y_label, out);
    fputs("</g>\n", out);
}

sm_status sm_render_scatter(const sm_scatter *scatter, FILE *out, sm_error *err) {
    pixels *seen = sm_malloc(sizeof *seen);
    if (!seen) return sm_fail_memory(err);
    axes a = axes_of(scatter);
    put_frame(scatter, out);
    put_decades(scatter, &a, out);
    put_series(scatter, &a, seen, out);
    put_diagonal(scatter, &a, out);
    put_legend(scatter, out);
    fputs("</svg>\n", out);
    sm_free(seen);
    return sm_finish_stream(out, err);
}
