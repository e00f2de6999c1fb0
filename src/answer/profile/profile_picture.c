/* The step as pictures: a timeline of what was measured, what is expected and what the rooflines
 * allow, each on tracks of its own; and the kernels below the roofline of the chip. */
#include "profile_asked.h"
#include <stdlib.h>

enum { MOST_SLICES = 200000, LANES = 3, WAYS = 3, ROOF = 64, SERIES = PROFILE_KINDS + 2 };
typedef enum lane { KERNELS, NETWORK, COPIES } lane;
typedef enum way { MEASURED, EXPECTED, ROOFLINE } way;
static const char *const lane_names[LANES] = {"kernels", "network", "copies"};
static const char *const way_names[WAYS] = {"measured", "expected", "roofline"};

typedef struct drawn {
    sm_report *r;
    const profile_file *file;
    int room;
    sm_tracks *tracks;
    sm_slice *slice;
    bool used[WAYS][LANES];
} drawn;

/* ---- the timeline ---- */

/* track: way x lane, until those that are used are known. */
static void add(drawn *d, way w, lane l, sm_slice slice) {
    size_t n = d->tracks->slices;
    if (n >= MOST_SLICES || !(slice.seconds > 0)) return;
    sm_slice *list = sm_arena_grow(d->r->arena, d->slice, (int)n, &d->room, sizeof *list);
    if (!list) {
        d->r->out_of_memory = true;
        return;
    }
    slice.track = (int)w * LANES + (int)l;
    d->slice = list;
    d->slice[d->tracks->slices++] = slice;
    d->used[w][l] = true;
}

static sm_slice named(const drawn *d, const sm_profile_slice *s) {
    const sm_profile *p = d->file->profile;
    const sm_instruction *it =
        s->op >= 0 ? p->op[s->op].instruction : p->collective[s->collective].by;
    const char *kind = s->collective >= 0 ? sm_collective_name(p->collective[s->collective].op)
                                          : profile_kind_names[profile_kind_of(&p->op[s->op])];
    return (sm_slice){.name = it->name, .category = kind, .seconds = s->seconds};
}

SM_ORDER_OF_POINTERS(by_duration, sm_trace_event, SM_ASCENDING(duration_ps) SM_ASCENDING(start_ps))

/* The run of median length on the first device that has any; NULL: the trace does not say. */
static const sm_trace_event *median_run(drawn *d, int program) {
    const sm_trace *t = d->file->trace;
    const sm_trace_event **run = sm_report_room(d->r, (size_t)t->events + 1, sizeof(void *));
    int n = 0, device = -1;
    if (!run) return NULL;
    for (int i = 0; i < t->events; i++) {
        const sm_trace_event *e = &t->event[i];
        if (e->kind != SM_TRACE_RUN || e->program != program) continue;
        if (n == 0) device = t->stream[e->stream].device;
        if (t->stream[e->stream].device == device) run[n++] = e;
    }
    qsort(run, (size_t)n, sizeof *run, by_duration);
    return n ? run[n / 2] : NULL;
}

static void add_measured(drawn *d) {
    const sm_trace *t = d->file->trace;
    if (!t || !d->file->program) return;
    const sm_trace_event *run = median_run(d, (int)(d->file->program - t->program));
    if (!run) return;
    int device = t->stream[run->stream].device;
    for (int i = 0; i < t->events; i++) {
        const sm_trace_event *e = &t->event[i];
        int64_t after_ps = e->start_ps - run->start_ps;
        if (t->stream[e->stream].device != device || after_ps < 0 || after_ps >= run->duration_ps)
            continue;
        if (e->kind > SM_TRACE_COPY) continue;
        lane l = e->kind == SM_TRACE_COLLECTIVE ? NETWORK
                 : e->kind == SM_TRACE_COPY     ? COPIES
                                                : KERNELS;
        add(d, MEASURED, l,
            (sm_slice){.name = t->name[e->name],
                       .category = lane_names[l],
                       .start_s = (double)after_ps * 1e-12,
                       .seconds = (double)e->duration_ps * 1e-12});
    }
}

/* Tracks without a slice are left out. */
static void name_tracks(drawn *d) {
    int number[WAYS * LANES], n = 0;
    const char **names = sm_report_room(d->r, (size_t)WAYS * LANES, sizeof *names);
    if (!names) return;
    for (int w = 0; w < WAYS; w++)
        for (int l = 0; l < LANES; l++) {
            number[w * LANES + l] = n;
            if (d->used[w][l]) names[n++] = sm_textf(d->r, "%s: %s", way_names[w], lane_names[l]);
        }
    for (size_t i = 0; i < d->tracks->slices; i++) d->slice[i].track = number[d->slice[i].track];
    d->tracks->n = n;
    d->tracks->track = names;
    d->tracks->slice = d->slice;
}

static const sm_tracks *tracks_of(sm_report *r, const profile_file *file) {
    drawn d = {.r = r, .file = file, .tracks = sm_report_room(r, 1, sizeof *d.tracks)};
    if (!d.tracks) return NULL;
    d.tracks->title =
        sm_textf(r, "%.90s on %.90s", file->module->name, file->profile->system->text);
    add_measured(&d);
    /* Expected as the schedule has it; the roofline in the same order, each lane packed. */
    const sm_profile *p = d.file->profile;
    int n;
    double roof_s[LANES] = {0};
    const sm_profile_slice *s = sm_profile_slices(p, MOST_SLICES / 3, d.r->arena, &n);
    if (!s) d.r->out_of_memory = true;
    for (int i = 0; s && i < n; i++) {
        lane l = s[i].collective >= 0 ? NETWORK : p->op[s[i].op].copies ? COPIES : KERNELS;
        sm_slice slice = named(&d, &s[i]);
        slice.start_s = s[i].start_s;
        add(&d, EXPECTED, l, slice);
        slice.start_s = roof_s[l];
        slice.seconds =
            s[i].op >= 0 ? p->op[s[i].op].lower_s : p->collective[s[i].collective].lower_s;
        roof_s[l] += slice.seconds;
        add(&d, ROOFLINE, l, slice);
    }
    name_tracks(&d);
    return r->out_of_memory ? NULL : d.tracks;
}

/* ---- the roofline ---- */

typedef struct picture {
    sm_series series[SERIES];
    double roof_x[ROOF], roof_y[2][ROOF];
    int n;
} picture;

static double intensity_of(const profile_row *row) {
    return (row->flops + row->vector_flops) / fmax(row->bytes, 1);
}

/* Kernels of one kind: FLOPs a second over FLOPs a byte, the area is the time. */
static void add_dots(sm_report *r, const profile_rows *rows, profile_kind kind, picture *p) {
    size_t room = (size_t)rows->n + 1, n = 0;
    double *all = sm_report_room(r, 3 * room, sizeof *all);
    if (!all) return;
    double *x = all, *y = all + room, *area = all + 2 * room;
    for (int i = 0; i < rows->n; i++) {
        const profile_row *row = &rows->row[i];
        double seconds = isnan(row->measured_s) ? row->expected_s : row->measured_s;
        double flops = row->flops + row->vector_flops;
        if (row->kind != kind || !(seconds > 0) || !(flops > 0)) continue;
        x[n] = fmin(intensity_of(row), p->roof_x[ROOF - 1]);
        if (x[n] < p->roof_x[0]) continue;
        y[n] = flops / seconds;
        area[n++] = seconds;
    }
    if (n) p->series[p->n++] = (sm_series){profile_kind_names[kind], SM_MARK_DOT, n, x, y, area};
}

/* The roofs, over the intensities of the kernels and at least around the ridge. */
static void add_roofs(const sm_profile *profile, const profile_rows *rows, picture *p) {
    const sm_chip *chip = &profile->system->chip;
    double peak[2] = {sm_chip_peak(chip, SM_BF16, NULL), chip->vector_flops_per_s.value};
    double ridge = peak[0] / chip->memory_bytes_per_s.value, low = ridge / 100, high = ridge * 30;
    for (int i = 0; i < rows->n; i++)
        if (rows->row[i].flops + rows->row[i].vector_flops > 0)
            low = fmin(low, fmax(intensity_of(&rows->row[i]), 1e-3));
    for (int i = 0; i < ROOF; i++) {
        p->roof_x[i] = low * pow(high / low, (double)i / (ROOF - 1));
        for (int k = 0; k < 2; k++)
            p->roof_y[k][i] = fmin(peak[k], p->roof_x[i] * chip->memory_bytes_per_s.value);
    }
    p->series[p->n++] =
        (sm_series){"matrix unit, bf16", SM_MARK_LINE, ROOF, p->roof_x, p->roof_y[0], NULL};
    if (peak[1] > 0)
        p->series[p->n++] =
            (sm_series){"vector unit", SM_MARK_LINE, ROOF, p->roof_x, p->roof_y[1], NULL};
}

static void draw(sm_report *r, const profile_file *file, const sm_tracks *tracks) {
    picture p = {.n = 0};
    bool measured = file->profile->measured.runs > 0;
    add_roofs(file->profile, &file->rows, &p);
    for (int k = 0; k < PROFILE_KINDS; k++) add_dots(r, &file->rows, (profile_kind)k, &p);
    const sm_panel panel[] = {
        {.title = "Kernels by place below the roofline; area: time",
         .x_label = "FLOPs a byte of HBM",
         .x_unit = "",
         .y_unit = "FLOP/s",
         .x_scale = SM_SCALE_LOG,
         .y_scale = SM_SCALE_LOG,
         .n = (size_t)p.n,
         .series = p.series},
        {.title = "Timeline", .x_label = "time", .x_unit = "s", .y_unit = "", .tracks = tracks}};
    sm_report_chart(r, &(sm_chart){tracks->title,
                                   sm_textf(r, "one run on one device, %s",
                                            measured ? "measured and expected" : "expected"),
                                   2, panel});
}

void profile_pictures(sm_report *r, const profile_file *file) {
    r->tracks = tracks_of(r, file);
    if (r->tracks) draw(r, file, r->tracks);
}
