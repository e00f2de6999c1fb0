/* Panels of lines, dots and stacked areas as SVG, one above the other. */
#include <math.h>
#include <string.h>

#include "columns.h"
#include "scalemodel/render.h"
#include "scalemodel/units.h"
#include "svg.h"

enum {
    WIDTH = 820,
    HEAD = 62, /* title and subtitle */
    LEFT = 84,
    PLOT_WIDTH = 540,
    PLOT_HEIGHT = 220,
    ABOVE = 30, /* of a panel: its title */
    BELOW = 52, /* ticks and label */
    PANEL = ABOVE + PLOT_HEIGHT + BELOW,
    LEGEND = LEFT + PLOT_WIDTH + 16,
    LEGEND_STEP = 17,
    MOST_LEGENDS = 13,
    MOST_TICKS = 40,
    TICKS = 6 /* wished for on a linear axis */
};

/* What one axis shows. */
typedef struct axis {
    sm_scale scale;
    double low, high;
    const char *unit;
} axis;

typedef struct frame {
    const sm_panel *panel;
    axis x, y;
    double top; /* of the plot */
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

static double y_value(const sm_panel *p, size_t series, size_t i) {
    return p->stacked ? stacked_y(p, series, i) : p->series[series].y[i];
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

static frame frame_of(const sm_panel *p, double top) {
    frame f = {p,
               {p->x_scale, HUGE_VAL, -HUGE_VAL, p->x_unit},
               {p->y_scale, HUGE_VAL, -HUGE_VAL, p->y_unit},
               top};
    for (size_t k = 0; k < p->n; k++)
        for (size_t i = 0; i < p->series[k].n; i++) {
            if (!is_shown(p, &p->series[k], i)) continue;
            widen(&f.x, p->series[k].x[i]);
            widen(&f.y, y_value(p, k, i));
        }
    if (p->y_scale == SM_SCALE_LINEAR && f.y.high >= f.y.low) widen(&f.y, 0.0);
    settle(&f.x);
    settle(&f.y);
    return f;
}

static double share_of(const axis *a, double value) {
    if (a->scale == SM_SCALE_LOG) return log(value / a->low) / log(a->high / a->low);
    return (value - a->low) / (a->high - a->low);
}

static double x_of(const frame *f, double x) { return LEFT + PLOT_WIDTH * share_of(&f->x, x); }
static double y_of(const frame *f, double y) {
    return f->top + PLOT_HEIGHT * (1.0 - share_of(&f->y, y));
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

static int ticks_of(const axis *a, double *ticks) {
    if (a->scale == SM_SCALE_LOG) return log_ticks(a, ticks);
    int n = 0;
    double step = tick_step(a);
    for (double k = 0; a->low + k * step <= a->high + step * 1e-6 && n < MOST_TICKS; k++)
        ticks[n++] = a->low + k * step;
    return n;
}

static void put_ticks(const frame *f, FILE *out) {
    double ticks[MOST_TICKS];
    char label[48];
    int n = ticks_of(&f->x, ticks);
    for (int i = 0; i < n; i++) {
        double x = x_of(f, ticks[i]);
        svg_line(x, f->top, x, f->top + PLOT_HEIGHT, svg_pale, out);
        sm_format_value(label, sizeof label, ticks[i], f->x.unit);
        svg_text((svg_anchored){x, f->top + PLOT_HEIGHT + 17, "middle", svg_grey, 11}, label, out);
    }
    n = ticks_of(&f->y, ticks);
    for (int i = 0; i < n; i++) {
        double y = y_of(f, ticks[i]);
        svg_line(LEFT, y, LEFT + PLOT_WIDTH, y, svg_pale, out);
        sm_format_value(label, sizeof label, ticks[i], f->y.unit);
        svg_text((svg_anchored){LEFT - 8, y + 4, "end", svg_grey, 11}, label, out);
    }
}

static void put_labels(const frame *f, FILE *out) {
    const sm_panel *p = f->panel;
    double below = f->top + PLOT_HEIGHT + 38;
    svg_text((svg_anchored){LEFT, f->top - 10, "start", svg_ink, 13}, p->title, out);
    svg_text((svg_anchored){LEFT + PLOT_WIDTH / 2.0, below, "middle", svg_ink, 12}, p->x_label,
             out);
    fprintf(out, "<g transform=\"translate(16 %.0f) rotate(-90)\">\n", f->top + PLOT_HEIGHT / 2.0);
    svg_text((svg_anchored){0, 0, "middle", svg_ink, 12}, p->y_label, out);
    fputs("</g>\n", out);
}

/* ---- series ---- */

static void put_curve(const frame *f, size_t k, FILE *out) {
    const sm_series *s = &f->panel->series[k];
    bool pen_down = false;
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", svg_colour(k));
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

static void put_dots(const frame *f, size_t k, FILE *out) {
    const sm_series *s = &f->panel->series[k];
    for (size_t i = 0; s->dots && i < s->n; i++)
        if (is_shown(f->panel, s, i))
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n",
                    x_of(f, s->x[i]), y_of(f, s->y[i]), svg_colour(k));
}

/* The area between this series and the one below it, along and back. */
static void put_area(const frame *f, size_t k, FILE *out) {
    const sm_panel *p = f->panel;
    const sm_series *s = &p->series[k];
    fprintf(out, "<polygon fill=\"%s\" fill-opacity=\"0.75\" points=\"", svg_colour(k));
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

static void put_legend(const frame *f, FILE *out) {
    const sm_panel *p = f->panel;
    for (size_t k = 0; k < p->n && k < MOST_LEGENDS; k++) {
        double y = f->top + 8 + LEGEND_STEP * (double)k;
        fprintf(out, "<path stroke=\"%s\" stroke-width=\"%d\" d=\"M%d %.0fh10\"/>\n", svg_colour(k),
                p->stacked ? 9 : 2, (int)LEGEND, y);
        svg_text((svg_anchored){LEGEND + 16, y + 4, "start", svg_ink, 12}, p->series[k].name, out);
    }
}

static void put_panel(const frame *f, FILE *out) {
    put_ticks(f, out);
    put_labels(f, out);
    for (size_t k = 0; k < f->panel->n; k++) {
        if (f->panel->stacked) put_area(f, k, out);
        else put_curve(f, k, out);
        put_dots(f, k, out);
    }
    put_legend(f, out);
}

sm_status sm_render_chart(const sm_chart *chart, FILE *out, sm_error *err) {
    svg_open(WIDTH, HEAD + (int)chart->n * PANEL, out);
    svg_text((svg_anchored){LEFT, 26, "start", svg_ink, 16}, chart->title, out);
    svg_text((svg_anchored){LEFT, 46, "start", svg_grey, 12}, chart->subtitle, out);
    for (size_t i = 0; i < chart->n; i++) {
        frame f = frame_of(&chart->panel[i], HEAD + ABOVE + (double)i * PANEL);
        put_panel(&f, out);
    }
    fputs("</svg>\n", out);
    return sm_finish_stream(out, err);
}
