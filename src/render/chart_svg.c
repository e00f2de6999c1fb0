/* Panels of lines, marks, stacked areas, timelines, bars and heat maps as SVG, one above the other.
 * A panel with a diagonal is a square, log-log over the same whole decades on both axes, so that
 * the diagonal is where a prediction equals its measurement. */
#include "columns.h"
#include <assert.h>
#include <math.h>

extern const char svg_grey[], svg_pale[], svg_ink[];
typedef struct svg_anchored {
    double x, y;
    const char *anchor, *fill; /* anchor: start, middle, end */
    int size;
} svg_anchored;

/* What the pictures share. */

enum { TEXT_ROOM = 200 };
const char svg_grey[] = "#666666", svg_pale[] = "#dddddd", svg_ink[] = "#222222";

/* Escaped and cleaned; NULL writes nothing. */
static void svg_text(svg_anchored at, const char *words, FILE *out) {
    if (!words) return;
    fprintf(out, "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">",
            at.x, at.y, at.anchor, at.fill, at.size);
    char clean[TEXT_ROOM];
    sm_utf8_clean(clean, sizeof clean, words, strlen(words));
    for (const char *c = clean; *c; c++) {
        if (*c == '&') fputs("&amp;", out);
        else if (*c == '<') fputs("&lt;", out);
        else if (*c == '>') fputs("&gt;", out);
        else if (*c == '"') fputs("&quot;", out);
        else fputc(*c, out);
    }
    fputs("</text>\n", out);
}

static void svg_line(double x1, double y1, double x2, double y2, const char *stroke, FILE *out) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
            x2, y2, stroke);
}

enum {
    WIDTH = 820,
    HEAD = 62, /* title and subtitle */
    LEFT = 84,
    PLOT_WIDTH = 540,
    PLOT_HEIGHT = 220,
    SIDE = 500, /* of a square */
    ABOVE = 30, /* of a panel: its title */
    BELOW = 52, /* ticks and label */
    LEGEND_STEP = 17,
    MOST_TICKS = 40,
    MOST_DECADES = 16, /* that a square names */
    TICKS = 6,         /* wished for on a linear axis */
    TRACK = 24,        /* height of a row of a timeline */
    BIGGEST_DOT = 14,  /* radius */
    MOST_TRACKS = 64,
    PIXELS = (SIDE + 1) * (SIDE + 1)
};

static const char dash_grey[] = "#aaaaaa";

/* What one axis shows. */
typedef struct axis {
    sm_scale scale;
    double low, high;
    const char *unit;
} axis;

typedef struct frame {
    const sm_panel *panel;
    axis x, y;
    double top, width, height; /* of the plot */
    uint8_t *seen;             /* bit per pixel of a square that has been marked */
} frame;

/* ---- ranges ---- */

static bool has_place(sm_scale scale, double value) {
    return isfinite(value) && (scale == SM_SCALE_LINEAR || value > 0.0);
}

static bool is_shown(const sm_panel *p, const sm_series *s, size_t i) {
    return has_place(p->x_scale, s->x[i]) && has_place(p->y_scale, s->y[i]);
}

/* The height of a stacked series at its i-th point: all before it added. */
static double stacked_y(const sm_panel *p, size_t series, size_t i) {
    double sum = 0.0;
    for (size_t k = 0; k <= series; k++)
        if (i < p->series[k].n && isfinite(p->series[k].y[i])) sum += p->series[k].y[i];
    return sum;
}

static void widen(axis *a, double value) {
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

/* Whole decades would waste the plot: 1, 2, 5 are enough. */
static double round_log(double value, bool up) {
    double decade = pow(10.0, floor(log10(value))), share = value / decade;
    static const double steps[] = {1.0, 2.0, 5.0, 10.0};
    for (int i = 0; i < 3; i++)
        if (share < steps[i + 1] * (1.0 - 1e-9))
            return decade * (up && share > steps[i] * (1.0 + 1e-9) ? steps[i + 1] : steps[i]);
    return decade * 10.0;
}

static double tick_step(const axis *a) {
    double raw = (a->high - a->low) / TICKS;
    return raw > 0.0 && isfinite(raw) ? round_log(raw, true) : 1.0;
}

static void settle(axis *a) {
    if (!(a->high >= a->low)) *a = (axis){a->scale, 1.0, 10.0, a->unit};
    if (a->scale == SM_SCALE_LOG) {
        a->low = round_log(a->low, false);
        a->high = round_log(a->high, true);
        if (!(a->high > a->low)) a->high = a->low * 10.0;
        return;
    }
    if (!(a->high > a->low)) a->high = a->low + 1.0;
    double step = tick_step(a);
    a->low = floor(a->low / step) * step;
    a->high = ceil(a->high / step - 1e-9) * step;
}

static int tracks_of(const sm_panel *p) {
    return p->tracks->n < MOST_TRACKS ? p->tracks->n : MOST_TRACKS;
}

static double height_of(const sm_panel *p) {
    if (p->tracks) return TRACK * fmax(tracks_of(p), 1);
    return p->diagonal ? SIDE : PLOT_HEIGHT;
}

static frame frame_of(const sm_panel *p, double top, uint8_t *seen) {
    frame f = {p,
               {p->x_scale, HUGE_VAL, -HUGE_VAL, p->x_unit},
               {p->y_scale, HUGE_VAL, -HUGE_VAL, p->y_unit},
               top,
               p->diagonal ? SIDE : PLOT_WIDTH,
               height_of(p),
               seen};
    for (size_t i = 0; p->tracks && i < p->tracks->slices; i++) {
        widen(&f.x, p->tracks->slice[i].start_s);
        widen(&f.x, p->tracks->slice[i].start_s + p->tracks->slice[i].seconds);
    }
    if (p->tracks && p->tracks->columns) {
        f.x = (axis){SM_SCALE_LINEAR, 0.0, p->tracks->columns, p->x_unit};
        return f;
    }
    if (p->diagonal) {
        /* Of the dots: dashes that lie outside are left out. Beyond these decades there are no
         * doubles. */
        axis a = {SM_SCALE_LOG, HUGE_VAL, 0.0, f.x.unit};
        for (size_t k = 0; k < f.panel->n; k++) {
            const sm_series *s = &f.panel->series[k];
            for (size_t i = 0; s->mark != SM_MARK_DASH && i < s->n; i++) {
                if (!is_shown(f.panel, s, i)) continue;
                widen(&a, s->x[i]);
                widen(&a, s->y[i]);
            }
        }
        if (a.high <= 0.0) a.low = 1.0, a.high = 10.0;
        double first = fmax(floor(log10(a.low)), -323.0), last = fmin(ceil(log10(a.high)), 308.0);
        a.low = pow(10.0, first);
        a.high = pow(10.0, last > first ? last : first + 1.0);
        f.x = f.y = a;
        return f;
    }
    for (size_t k = 0; k < p->n; k++)
        for (size_t i = 0; i < p->series[k].n; i++) {
            if (!is_shown(p, &p->series[k], i)) continue;
            widen(&f.x, p->series[k].x[i]);
            widen(&f.y, (p->stacked ? stacked_y(p, k, i) : p->series[k].y[i]));
        }
    if (p->y_scale == SM_SCALE_LINEAR && f.y.high >= f.y.low) widen(&f.y, 0.0);
    settle(&f.x);
    settle(&f.y);
    return f;
}

/* 0 at the low end of the axis, 1 at the high end. */
static double share_of(const axis *a, double value) {
    if (a->scale == SM_SCALE_LOG)
        return (log10(value) - log10(a->low)) / (log10(a->high) - log10(a->low));
    return (value - a->low) / (a->high - a->low);
}

static double x_of(const frame *f, double x) { return LEFT + f->width * share_of(&f->x, x); }
static double y_of(const frame *f, double y) {
    return f->top + f->height * (1.0 - share_of(&f->y, y));
}

/* ---- ticks ---- */

static int log_ticks(const axis *a, double *ticks) {
    int n = 0;
    bool dense = log10(a->high / a->low) < 2.5;
    for (double decade = pow(10.0, floor(log10(a->low) + 1e-9)); decade <= a->high * 1.0001;
         decade *= 10.0)
        for (int i = 0; i < 3; i++) {
            double value = decade * (i == 0 ? 1.0 : i == 1 ? 2.0 : 5.0);
            if ((i && !dense) || value < a->low * 0.9999 || value > a->high * 1.0001) continue;
            if (n < MOST_TICKS) ticks[n++] = value;
        }
    return n;
}

/* 10 us, 100 s: never minutes, which are no decades. */
static void name_decade(int decade, const char *unit, char *out, size_t size) {
    static const char *const prefixes[] = {"p", "n", "u", "m", "", "k", "M", "G", "T", "P"};
    enum { PREFIXES = sizeof prefixes / sizeof prefixes[0], LEAST = -12 };
    static const char *const ones[] = {"1", "10", "100"};
    int above = decade - LEAST;
    if (above < 0 || above / 3 >= PREFIXES) snprintf(out, size, "1e%d %s", decade, unit);
    else snprintf(out, size, "%s %s%s", ones[above % 3], prefixes[above / 3], unit);
}

static int ticks_of(const frame *f, const axis *a, double *ticks) {
    int n = 0;
    if (f->panel->diagonal) {
        int first = (int)lround(log10(a->low)), last = (int)lround(log10(a->high));
        for (int d = first; d <= last; d += 1 + (last - first) / MOST_DECADES)
            ticks[n++] = pow(10.0, d);
        return n;
    }
    if (a->scale == SM_SCALE_LOG) return log_ticks(a, ticks);
    double step = tick_step(a);
    assert(step > 0.0);
    for (double k = 0; a->low + k * step <= a->high + step * 1e-6 && n < MOST_TICKS; k++)
        ticks[n++] = a->low + k * step;
    return n;
}

/* ---- series ---- */

static const char *colour_of(const sm_panel *p, size_t k) {
    size_t before = 0;
    if (p->series[k].mark == SM_MARK_DASH) return dash_grey;
    for (size_t i = 0; i < k; i++) before += p->series[i].mark != SM_MARK_DASH;
    /* The colour of the n-th series; they repeat after ten. */
    static const char *const colours[] = {"#1a5fb4", "#c64600", "#26a269", "#813d9c", "#a51d2d",
                                          "#e5a50a", "#0891b2", "#63452c", "#d6338a", "#5e7d0c"};
    return colours[before % (sizeof colours / sizeof colours[0])];
}

static void put_curve(const frame *f, size_t k, FILE *out) {
    const sm_series *s = &f->panel->series[k];
    bool pen_down = false;
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
            colour_of(f->panel, k));
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(f->panel, s, i)) {
            pen_down = false;
            continue;
        }
        fprintf(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', x_of(f, s->x[i]), y_of(f, s->y[i]));
        pen_down = true;
    }
    fputs("\"/>\n", out);
}

/* The area between this series and the one below it, along and back. */
static void put_area(const frame *f, size_t k, FILE *out) {
    const sm_panel *p = f->panel;
    const sm_series *s = &p->series[k];
    fprintf(out, "<polygon fill=\"%s\" fill-opacity=\"0.75\" points=\"", colour_of(f->panel, k));
    for (size_t i = 0; i < s->n; i++)
        if (is_shown(p, s, i))
            fprintf(out, "%.1f,%.1f ", x_of(f, s->x[i]), y_of(f, stacked_y(p, k, i)));
    for (size_t i = s->n; i-- > 0;) {
        if (!is_shown(p, s, i)) continue;
        double floor_y = k > 0 ? stacked_y(p, k - 1, i) : f->y.low;
        fprintf(out, "%.1f,%.1f ", x_of(f, s->x[i]), y_of(f, fmax(floor_y, f->y.low)));
    }
    fputs("\"/>\n", out);
}

/* Where a value lies on an axis of a square, in pixels; -1 outside. */
static int pixel_of(const axis *a, double value) {
    double share = share_of(a, value), slack = 1e-3;
    if (!(share >= -slack && share <= 1.0 + slack)) return -1;
    return (int)lround(SIDE * fmin(fmax(share, 0.0), 1.0));
}

static bool is_new(uint8_t *seen, int x, int y) {
    int at = y * (SIDE + 1) + x;
    assert(at >= 0 && at < PIXELS);
    uint8_t bit = (uint8_t)(1u << (at % 8));
    bool marked = seen[at / 8] & bit;
    seen[at / 8] |= bit;
    return !marked;
}

/* A path of strokes without length: round caps make them dots, a short stroke is a dash. Marks of
 * one series that fall on the same pixel are drawn once. */
static void put_marks(const frame *f, size_t k, FILE *out) {
    const sm_series *s = &f->panel->series[k];
    bool dot = s->mark == SM_MARK_DOT;
    assert(f->seen);
    memset(f->seen, 0, (PIXELS + 7) / 8);
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" %s d=\"",
            colour_of(f->panel, k), dot ? "4.5" : "1.4",
            dot ? "stroke-opacity=\"0.7\" stroke-linecap=\"round\"" : "");
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(f->panel, s, i)) continue;
        int x = pixel_of(&f->x, s->x[i]), up = pixel_of(&f->y, s->y[i]);
        if (x < 0 || up < 0 || !is_new(f->seen, x, up)) continue;
        fprintf(out, "M%d %dh%d", LEFT + x - (dot ? 0 : 3), (int)f->top + SIDE - up, dot ? 0 : 6);
    }
    fputs("\"/>\n", out);
}

/* y = x and both sides of the band, y = (1 +- band) x, each from edge to edge of the square. */
static void put_diagonal(const frame *f, FILE *out) {
    double band = f->panel->band, ratios[3] = {1.0, 1.0 + band, 1.0 - band};
    double decades = log10(f->x.high) - log10(f->x.low);
    for (int i = 0; i < 3; i++) {
        if (i > 0 && !(band > 0.0 && band < 1.0)) return;
        double up = log10(ratios[i]) / decades, from = fmax(0.0, -up), to = fmin(1.0, 1.0 - up);
        fprintf(out, "<polyline fill=\"none\" stroke=\"%s\"%s points=\" %.1f,%.1f %.1f,%.1f\"/>\n",
                i ? svg_grey : svg_ink, i ? " stroke-dasharray=\"4 3\"" : "", LEFT + SIDE * from,
                f->top + SIDE * (1.0 - from - up), LEFT + SIDE * to,
                f->top + SIDE * (1.0 - to - up));
    }
}

static void put_legend(const frame *f, FILE *out) {
    const sm_panel *p = f->panel;
    size_t most = (size_t)(f->height + 1) / LEGEND_STEP;
    for (size_t k = 0; k < p->n && k < most; k++) {
        double x = LEFT + f->width + 16, y = f->top + 8 + LEGEND_STEP * (double)k;
        bool dot = p->series[k].mark == SM_MARK_DOT;
        fprintf(out,
                "<path stroke=\"%s\" stroke-width=\"%d\" stroke-linecap=\"%s\" "
                "d=\"M%.0f %.0fh%d\"/>\n",
                colour_of(p, k),
                p->stacked ? 9
                : dot      ? 7
                           : 2,
                dot ? "round" : "butt", dot ? x + 4 : x, y, dot ? 0 : 10);
        svg_text((svg_anchored){x + 16, y + 4, "start", svg_ink, 12}, p->series[k].name, out);
    }
}

/* Circles whose area is a share of the largest. */
static void put_dots(const frame *f, size_t k, FILE *out) {
    const sm_series *s = &f->panel->series[k];
    double most = 0;
    for (size_t j = 0; j < f->panel->n; j++)
        for (size_t i = 0; f->panel->series[j].area && i < f->panel->series[j].n; i++)
            most = fmax(most, f->panel->series[j].area[i]);
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(f->panel, s, i)) continue;
        double r = s->area && most > 0 ? BIGGEST_DOT * sqrt(fmax(s->area[i] / most, 0)) : 3.2;
        fprintf(out,
                "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" "
                "fill-opacity=\"0.55\"/>\n",
                x_of(f, s->x[i]), y_of(f, s->y[i]), fmax(r, 1.2), colour_of(f->panel, k));
    }
}

/* The colour of a kind of slice: by its place among the kinds that are met. */
static const char *colour_of_kind(const char **kinds, int *n, const char *kind) {
    static const char *const colours[] = {"#1a5fb4", "#c64600", "#26a269", "#813d9c",
                                          "#a51d2d", "#e5a50a", "#0891b2", "#63452c"};
    enum { COLOURS = sizeof colours / sizeof *colours };
    int i = 0;
    while (i < *n && strcmp(kinds[i], kind) != 0) i++;
    if (i == *n && *n < COLOURS) kinds[(*n)++] = kind;
    return colours[i % COLOURS];
}

/* From white to blue; grey without a value. */
static void put_shades(const frame *f, FILE *out) {
    const sm_tracks *t = f->panel->tracks;
    const double wide = f->width / t->columns;
    for (size_t i = 0; i < t->slices; i++) {
        const sm_slice *s = &t->slice[i];
        if (s->track < 0 || s->track >= tracks_of(f->panel)) continue;
        const bool known = isfinite(t->shade[i]);
        const double x = x_of(f, s->start_s), y = f->top + TRACK * s->track;
        const double dark = known ? fmin(fmax(t->shade[i], 0.0), 1.0) : 0.0;
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\" fill=\"%s\" "
                "fill-opacity=\"%.2f\"/>\n",
                x, y, wide, TRACK, known ? "#1a5fb4" : svg_pale, known ? 0.08 + 0.84 * dark : 1.0);
        if (wide >= 6.0 * (double)strlen(s->name))
            svg_text((svg_anchored){x + wide / 2, y + TRACK / 2.0 + 4, "middle",
                                    dark > 0.6 ? "#ffffff" : svg_ink, 11},
                     s->name, out);
    }
    double after = 0.0;
    for (int i = 0; i < t->columns; i++) {
        const double x = x_of(f, i + 0.5), half = 3.0 * (double)strlen(t->column[i]);
        if (x - half < after) continue;
        after = x + half + 6.0;
        svg_text((svg_anchored){x, f->top + f->height + 17, "middle", svg_grey, 11}, t->column[i],
                 out);
    }
}

/* A row a track. Slices narrower than a third of a pixel are drawn where none was before. */
static void put_tracks(const frame *f, FILE *out) {
    const sm_tracks *t = f->panel->tracks;
    const char *kinds[8];
    int n = 0;
    double drawn[MOST_TRACKS];
    for (int i = 0; i < tracks_of(f->panel); i++) {
        double y = f->top + TRACK * (i + 0.5);
        drawn[i] = -1;
        svg_text((svg_anchored){LEFT + f->width + 8, y + 4, "start", svg_ink, 11}, t->track[i],
                 out);
    }
    if (t->columns) {
        put_shades(f, out);
        return;
    }
    for (size_t i = 0; i < t->slices; i++) {
        const sm_slice *s = &t->slice[i];
        if (s->track < 0 || s->track >= tracks_of(f->panel)) continue;
        double x = x_of(f, fmin(s->start_s, s->start_s + s->seconds));
        double wide = fabs(x_of(f, s->start_s + s->seconds) - x_of(f, s->start_s));
        if (!isfinite(x) || !isfinite(wide)) continue;
        if (wide < 0.35 && x < drawn[s->track] + 0.35) continue;
        drawn[s->track] = x;
        const char *kind = s->category ? s->category : "";
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n", x,
                f->top + TRACK * s->track + 3, fmax(wide, 0.35), TRACK - 6,
                colour_of_kind(kinds, &n, kind));
    }
    for (int i = 0; i < n; i++) {
        if (!kinds[i][0]) continue;
        double title = f->panel->title ? 7.0 * (double)strlen(f->panel->title) + 16.0 : 0.0;
        double x = LEFT + fmax(title, 80.0) + 96.0 * i, y = f->top - 8;
        fprintf(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"9\" height=\"9\" fill=\"%s\"/>\n", x,
                y - 8, colour_of_kind(kinds, &n, kinds[i]));
        svg_text((svg_anchored){x + 13, y, "start", svg_ink, 11}, kinds[i], out);
    }
}

static void put_series(const frame *f, size_t k, FILE *out) {
    sm_mark mark = f->panel->series[k].mark;
    if (f->panel->diagonal) put_marks(f, k, out);
    else if (mark == SM_MARK_DOT) put_dots(f, k, out);
    else if (f->panel->stacked) put_area(f, k, out);
    else put_curve(f, k, out);
    if (mark == SM_MARK_LINE_DOTS && !f->panel->diagonal) {
        const sm_series *s = &f->panel->series[k];
        for (size_t i = 0; s->mark == SM_MARK_LINE_DOTS && i < s->n; i++)
            if (is_shown(f->panel, s, i))
                fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n",
                        x_of(f, s->x[i]), y_of(f, s->y[i]), colour_of(f->panel, k));
    }
}

/* Dashes lie below all else. */
static void put_panel(const frame *f, FILE *out) {
    double ticks[MOST_TICKS];
    const axis *const axes[] = {&f->x, &f->y};
    for (int a = 0; a < 2; a++) {
        const sm_tracks *tracks = f->panel->tracks;
        int n = tracks && (a == 1 || tracks->columns) ? 0 : ticks_of(f, axes[a], ticks);
        for (int i = 0; i < n; i++) {
            char label[48];
            double below = f->top + f->height, x = x_of(f, ticks[i]), y = y_of(f, ticks[i]);
            if (f->panel->diagonal)
                name_decade((int)lround(log10(ticks[i])), axes[a]->unit, label, sizeof label);
            else sm_format_value(label, sizeof label, ticks[i], axes[a]->unit);
            if (axes[a] == &f->x) {
                svg_line(x, f->top, x, below, svg_pale, out);
                svg_text((svg_anchored){x, below + 17, "middle", svg_grey, 11}, label, out);
            } else {
                svg_line(LEFT, y, LEFT + f->width, y, svg_pale, out);
                svg_text((svg_anchored){LEFT - 8, y + 4, "end", svg_grey, 11}, label, out);
            }
        }
    }
    const sm_panel *p = f->panel;
    double below = f->top + f->height + 38;
    svg_text((svg_anchored){LEFT, f->top - 10, "start", svg_ink, 13}, p->title, out);
    svg_text((svg_anchored){LEFT + f->width / 2.0, below, "middle", svg_ink, 12}, p->x_label, out);
    fprintf(out, "<g transform=\"translate(16 %.0f) rotate(-90)\">\n", f->top + f->height / 2.0);
    svg_text((svg_anchored){0, 0, "middle", svg_ink, 12}, p->y_label, out);
    fputs("</g>\n", out);
    for (int above = 0; above < 2; above++)
        for (size_t k = 0; k < f->panel->n; k++)
            if ((f->panel->series[k].mark != SM_MARK_DASH) == above) put_series(f, k, out);
    if (f->panel->diagonal) put_diagonal(f, out);
    if (f->panel->tracks) put_tracks(f, out);
    put_legend(f, out);
}

sm_status sm_render_chart(const sm_chart *chart, FILE *out, sm_error *err) {
    double height = HEAD;
    bool squares = false;
    for (size_t i = 0; i < chart->n; i++) {
        squares = squares || chart->panel[i].diagonal;
        height += ABOVE + BELOW + height_of(&chart->panel[i]);
    }
    uint8_t *seen = squares ? sm_malloc((PIXELS + 7) / 8) : NULL;
    if (squares && !seen) return sm_fail_memory(err);
    /* The opening element with a white ground. */
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\""
            " viewBox=\"0 0 %d %.0f\" font-family=\"Helvetica, Arial, sans-serif\">\n"
            "<rect width=\"%d\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            WIDTH, height, WIDTH, height, WIDTH, height);

    svg_text((svg_anchored){LEFT, 26, "start", svg_ink, 16}, chart->title, out);
    svg_text((svg_anchored){LEFT, 46, "start", svg_grey, 12}, chart->subtitle, out);
    double top = HEAD + ABOVE;
    for (size_t i = 0; i < chart->n; i++) {
        frame f = frame_of(&chart->panel[i], top, seen);
        put_panel(&f, out);
        top += f.height + ABOVE + BELOW;
    }
    fputs("</svg>\n", out);
    sm_free(seen);
    return sm_finish_stream(out, err);
}
