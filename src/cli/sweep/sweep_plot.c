/* The rows of a sweep as a picture: lines, bars or a heat map of what of the answers is numbers. */
#include "sweep.h"
#include <math.h>
#include <stdlib.h>

enum {
    MOST_ROWS = 100000,
    MOST_PANELS = 4,
    FEW_PANELS = 2,
    MOST_LINES = 10,
    MOST_TRACKS = 64,
    MOST_NAME = 64
};

struct sweep_plot {
    const sweep *s;
    int panels, column[MOST_PANELS];   /* of s->column; known once a row has numbers in them */
    double *value[SWEEP_MOST_COLUMNS]; /* of each column, a row each; NULL: none was a number */
    sm_arena *arena;
    bool out_of_memory;
};

typedef struct drawing {
    const sweep_plot *p;
    sm_report *r;
    int across;            /* the axis along the picture; -1: no axis has two values */
    int64_t along, others; /* its values; combinations of the other axes */
    double *x;             /* its values as numbers; NULL: some are none */
    const char **name;     /* of each combination of the others */
} drawing;

sm_status sweep_plot_new(const sweep *s, sm_arena *arena, sweep_plot **out, sm_error *err) {
    if (s->rows > MOST_ROWS)
        return sm_fail(err, SM_USAGE, "--plot draws at most %d rows, and these are %lld", MOST_ROWS,
                       (long long)s->rows);
    *out = sm_arena_alloc(arena, sizeof **out);
    if (!*out) return sm_fail_memory(err);
    **out = (sweep_plot){.s = s, .arena = arena};
    return SM_OK;
}

static double number_of(const char *text) {
    char *end;
    const double value = strtod(text, &end);
    return *text && !*end ? value : NAN;
}

void sweep_plot_put(sweep_plot *plot, int64_t row, const char *const *cell) {
    if (!plot) return;
    const sweep *s = plot->s;
    for (int i = 0; i < s->columns; i++) {
        const double value = number_of(cell[s->axes + 1 + i]);
        if (isnan(value)) continue;
        double **all = &plot->value[i];
        if (!*all) {
            if (plot->panels == (s->asked.text ? MOST_PANELS : FEW_PANELS)) continue;
            *all = sm_arena_array(plot->arena, (size_t)s->rows, sizeof **all);
            plot->out_of_memory |= !*all;
            if (!*all) return;
            for (int64_t k = 0; k < s->rows; k++) (*all)[k] = NAN;
            plot->column[plot->panels++] = i;
        }
        (*all)[row] = value;
    }
}

/* ---- what lies where ---- */

/* The row of a place along the picture and a combination of the other axes. */
static int64_t row_of(const drawing *d, int64_t other, int64_t place) {
    if (d->across < 0) return 0;
    const int64_t stride = sweep_stride(d->p->s, d->across);
    return (other / stride * d->along + place) * stride + other % stride;
}

/* "4Mi" is a number, "h100-sxm:8" none. */
static double *numbers_of(const drawing *d, const sweep_axis *axis) {
    double *x = sm_arena_array(d->r->arena, (size_t)axis->n, sizeof *x);
    for (int i = 0; x && i < axis->n; i++) {
        const sm_source source = sm_source_of("", axis->value[i]);
        if (sm_quantity_parse(&source, (sm_span){0, source.length}, SM_Q_COUNT, &x[i], NULL))
            return NULL;
    }
    d->r->out_of_memory |= !x;
    return x;
}

/* "h100-sxm:8x8, hbm 1.5": values of the axes of more than one, but for the one along the picture.
 */
static const char *name_of(const drawing *d, int64_t row) {
    const sweep *s = d->p->s;
    const char *text = "";
    for (int i = 0; i < s->axes; i++) {
        if (i == d->across || s->axis[i].n < 2) continue;
        const char *value = s->axis[i].value[row / sweep_stride(s, i) % s->axis[i].n];
        const bool bare = isnan(number_of(value)) && s->axis[i].place != SWEEP_PLAN;
        text = sm_textf(d->r, "%s%s%s%s%.*s", text, *text ? ", " : "", bare ? "" : s->axis[i].name,
                        bare ? "" : " ", MOST_NAME, value);
    }
    return text;
}

/* Along the picture lies the axis of numbers that has most values, else the one of words. */
static void place_all(drawing *d) {
    const sweep *s = d->p->s;
    d->across = -1;
    for (int i = 0; i < s->axes; i++) {
        if (s->axis[i].n < 2) continue;
        double *x = numbers_of(d, &s->axis[i]);
        const bool longer = d->across < 0 || s->axis[i].n >= s->axis[d->across].n;
        if (x ? d->x && !longer : d->x || !longer) continue;
        d->across = i;
        d->x = x;
    }
    d->along = d->across < 0 ? 1 : s->axis[d->across].n;
    d->others = s->rows / d->along;
    d->name = sm_arena_array(d->r->arena, (size_t)d->others, sizeof *d->name);
    for (int64_t i = 0; d->name && i < d->others; i++) d->name[i] = name_of(d, row_of(d, i, 0));
    d->r->out_of_memory |= !d->name;
}

/* The unit that the name of a column ends in: "step_time_s.expected", "memory_bytes.total". */
static const char *unit_of(const char *column) {
    const struct {
        const char *end, *unit;
    } units[] = {{"_per_s", ""}, {"_s", "s"}, {"bytes", "B"}, {"usd", "USD"}};
    const size_t n = strcspn(column, ".");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t m = strlen(units[i].end);
        if (n >= m && strncmp(column + n - m, units[i].end, m) == 0) return units[i].unit;
    }
    return "";
}

/* ---- panels ---- */

static void spread_of(const double *value, int64_t n, double *low, double *high) {
    *low = HUGE_VAL, *high = -HUGE_VAL;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(value[i])) *low = fmin(*low, value[i]), *high = fmax(*high, value[i]);
}

/* Over more than a decade. */
static sm_scale scale_of(const double *value, int64_t n) {
    double low, high;
    spread_of(value, n, &low, &high);
    return low > 0.0 && high > 12.0 * low ? SM_SCALE_LOG : SM_SCALE_LINEAR;
}

static bool draw_lines(const drawing *d, const double *value, sm_panel *panel) {
    sm_series *line = sm_arena_array(d->r->arena, (size_t)d->others, sizeof *line);
    double *y = sm_arena_array(d->r->arena, (size_t)d->p->s->rows, sizeof *y);
    if (!line || !y) return false;
    for (int64_t i = 0; i < d->others; i++, y += d->along) {
        for (int64_t k = 0; k < d->along; k++) y[k] = value[row_of(d, i, k)];
        line[i] = (sm_series){d->name[i], SM_MARK_LINE_DOTS, (size_t)d->along, d->x, y, NULL};
    }
    panel->x_scale = scale_of(d->x, d->along);
    panel->y_scale = scale_of(value, d->p->s->rows);
    panel->series = line;
    panel->n = (size_t)d->others;
    return true;
}

static const char *shown(const drawing *d, double value, const char *unit) {
    char text[48];
    if (isnan(value)) return "-";
    sm_format_value(text, sizeof text, value, unit);
    return sm_textf(d->r, "%s", text);
}

/* Bars of one axis; a heat map of more. */
static bool draw_tracks(const drawing *d, const double *value, sm_panel *panel) {
    const sweep *s = d->p->s;
    const bool bars = d->others == 1;
    const int64_t high = bars ? d->along : d->others, wide = bars ? 1 : d->along;
    const int tracks = (int)(high < MOST_TRACKS ? high : MOST_TRACKS);
    if (tracks < high)
        panel->title =
            sm_textf(d->r, "%s, the first %d of %lld rows", panel->title, tracks, (long long)high);
    const size_t slices = (size_t)(tracks * wide);
    sm_tracks *t = sm_arena_alloc(d->r->arena, sizeof *t);
    const char **name = sm_arena_array(d->r->arena, (size_t)tracks, sizeof *name);
    sm_slice *slice = sm_arena_array(d->r->arena, slices, sizeof *slice);
    double *shade = sm_arena_array(d->r->arena, slices, sizeof *shade), least, most;
    if (!t || !name || !slice || !shade) return false;
    spread_of(value, s->rows, &least, &most);
    const bool decades = scale_of(value, s->rows) == SM_SCALE_LOG;
    for (int i = 0; i < tracks; i++)
        name[i] = bars && d->across >= 0 ? s->axis[d->across].value[i] : d->name[i];
    for (size_t i = 0; i < slices; i++) {
        const int track = (int)(i / (size_t)wide);
        const int64_t place = (int64_t)i % wide;
        const double v = value[bars ? row_of(d, 0, track) : row_of(d, track, place)];
        const char *text = shown(d, v, panel->y_unit);
        shade[i] = decades        ? log(v / least) / log(most / least)
                   : most > least ? (v - least) / (most - least)
                                  : 0.0 * v;
        slice[i] = (sm_slice){track, text, NULL, bars ? 0.0 : (double)place, bars ? v : 1.0};
        if (bars) name[track] = sm_textf(d->r, "%s: %s", name[track], text);
    }
    *t = (sm_tracks){.n = tracks, .track = name, .slices = slices, .slice = slice, .shade = shade};
    if (!bars) t->columns = (int)d->along, t->column = s->axis[d->across].value;
    if (bars) panel->x_label = NULL, panel->x_unit = panel->y_unit;
    panel->tracks = t;
    return true;
}

sm_status sweep_plot_draw(const sweep_plot *p, sm_report *r, sm_error *err) {
    sm_panel panels[MOST_PANELS];
    drawing d = {.p = p, .r = r};
    const sweep *s = p->s;
    if (p->out_of_memory) return sm_fail_memory(err);
    place_all(&d);
    for (int i = 0; i < p->panels && !r->out_of_memory; i++) {
        const char *column = s->column[p->column[i]];
        const double *value = p->value[p->column[i]];
        sm_panel *panel = &panels[i];
        *panel = (sm_panel){.title = column,
                            .x_label = d.across < 0 ? NULL : s->axis[d.across].key,
                            .x_unit = "",
                            .y_unit = unit_of(column)};
        const bool lines = d.x && d.others <= MOST_LINES;
        r->out_of_memory |= !(lines ? draw_lines(&d, value, panel) : draw_tracks(&d, value, panel));
    }
    if (r->out_of_memory) return sm_fail_memory(err);
    const char *words = s->verb->about->name;
    for (int i = 0; i < s->words; i++) words = sm_textf(r, "%s %s", words, s->word[i]);
    if (s->plan) words = sm_textf(r, "%s --plan %s", words, s->plan);
    sm_report_chart(r, &(sm_chart){sm_textf(r, "A sweep of %lld questions", (long long)s->rows),
                                   words, (size_t)p->panels, panels});
    return SM_OK;
}
