/* The answer of `profile` to a trace without a module: steps, parts of a step, devices, kernels by
 * what launched them, collectives. */
#include "profile_asked.h"

static double seconds_of(const sm_trace_step *step) { return (double)step->end_ps * 1e-12; }

/* "void cutlass::Kernel<...>(...)" is cutlass::Kernel, "aten::mm" mm. */
static const char *short_name(sm_report *r, const char *name) {
    const size_t width = 22;
    if (!strncmp(name, "void ", 5)) name += 5;
    if (!strncmp(name, "aten::", 6)) name += 6;
    size_t n = strcspn(name, "<(");
    if (n < 4) n = strlen(name);
    const char *begin = name;
    if (n > width)
        for (size_t i = 0; i + 1 < n; i++)
            if (name[i] == ':' && name[i + 1] == ':') begin = name + i + 2;
    n -= (size_t)(begin - name);
    return n <= width ? sm_textf(r, "%.*s", (int)n, begin)
                      : sm_textf(r, "..%.*s", (int)(width - 2), begin + n - (width - 2));
}

static const char *cut(sm_report *r, const char *text, size_t width) {
    size_t n = strlen(text);
    return n <= width ? text : sm_textf(r, "%.*s..", (int)(width - 2), text);
}

static const char *device_text(sm_report *r, const sm_trace *t, int device) {
    const sm_trace_device *d = &t->on[device];
    bool several = false;
    for (int i = 0; i < t->devices; i++)
        several = several || (i != device && t->on[i].rank == d->rank && t->on[i].file == d->file);
    if (d->rank < 0)
        return t->files > 1 ? sm_textf(r, "%d of %s", d->ordinal, t->file[d->file].name)
                            : sm_textf(r, "device %d", d->ordinal);
    return several ? sm_textf(r, "rank %d, device %d", d->rank, d->ordinal)
                   : sm_textf(r, "rank %d", d->rank);
}

/* ---- page ---- */

static const char *const steps_from[] = {"as it marks them", "runs of the program that ran longest",
                                         "as kernels repeat", "the whole trace, which marks none"};

static void summary(sm_report *r, const sm_profile_ran *p) {
    const sm_trace_breakdown *b = p->time;
    const sm_trace *t = b->trace;
    const sm_device_time *d = &b->device[b->devices / 2];
    double least = d->least_s, most = d->most_s;
    for (int i = 0; i < b->devices; i++) {
        least = fmin(least, b->device[i].least_s);
        most = fmax(most, b->device[i].most_s);
    }
    sm_report_heading(r, "%s: %d device%s%s%s", t->file[0].format, b->devices,
                      b->devices == 1 ? "" : "s", t->device[0] ? ", " : "", t->device);
    for (int i = 0; i < t->files; i++)
        if (t->file[i].partial)
            sm_report_text(r, "%s is cut short at byte %zu: this is what came before.",
                           t->file[i].name, t->file[i].end);
    sm_report_text(r, "A step: %s, the mean of %d on %s (%s to %s): %s.",
                   sm_show_seconds(r, seconds_of(&b->mean)), d->steps,
                   b->devices == 1 ? "the device" : "each device", sm_show_seconds(r, least),
                   sm_show_seconds(r, most), steps_from[b->steps_from]);
    if (p->flops > 0)
        sm_report_text(r, "Products whose shapes are recorded: %s FLOPs a step and device, %s.",
                       sm_show_count(r, p->flops),
                       sm_show_rate(r, p->flops / seconds_of(&b->mean), "FLOP/s"));
}

static void where(sm_report *r, const sm_trace_breakdown *b) {
    double step = seconds_of(&b->mean);
    double comm = b->mean.part_s[SM_PART_EXPOSED] + b->mean.overlapped_s;
    sm_table *table = sm_page_table(r, "Where the time of a step goes", "<part|>{s}time|>share");
    for (int i = 0; i < SM_PARTS; i++)
        if (b->mean.part_s[i] > 0)
            sm_page_row(r, table, sm_time_part_name((sm_time_part)i), b->mean.part_s[i],
                        profile_share(r, b->mean.part_s[i], step));
    if (comm > 0)
        sm_report_text(r, "Communication: %s, of which %s hide behind compute (%s).",
                       sm_show_seconds(r, comm), sm_show_seconds(r, b->mean.overlapped_s),
                       profile_share(r, b->mean.overlapped_s, comm));
    if (b->other_s > 0)
        sm_report_text(r, "Events that are not understood took %s; they count as nothing.",
                       sm_show_seconds(r, b->other_s));
}

static void tell_slow(sm_report *r, const sm_trace_breakdown *b) {
    const sm_device_time *slow = &b->device[0], *middle = &b->device[b->devices / 2];
    if (seconds_of(&slow->mean) > 1.03 * seconds_of(&middle->mean))
        sm_report_text(r, "A step of %s takes %s of the median one.",
                       device_text(r, b->trace, slow->device),
                       profile_share(r, seconds_of(&slow->mean), seconds_of(&middle->mean)));
}

/* Ranks end a collective together: the one that waits least began it last. */
static void tell_waits(sm_report *r, const sm_trace_breakdown *b) {
    const sm_device_time *last = &b->device[0];
    double wait = 0;
    for (int i = 0; i < b->devices; i++) {
        wait += b->device[i].wait_s / b->devices;
        if (b->device[i].wait_s < last->wait_s) last = &b->device[i];
    }
    sm_report_text(r, "Waits: time in collectives until the last rank comes, as the shortest of "
                      "each tells.");
    if (wait > 0.03 * seconds_of(&b->mean))
        sm_report_text(r, "The straggler is %s: it waits %s a step, the others wait for it.",
                       device_text(r, b->trace, last->device), sm_show_seconds(r, last->wait_s));
}

static void put_step(sm_report *r, sm_data *object, const sm_trace_step *s) {
    sm_put(r, object, "compute_s|exposed_s|copies_s|host_s|gaps_s|idle_s|overlapped_s",
           s->part_s[SM_PART_COMPUTE], s->part_s[SM_PART_EXPOSED], s->part_s[SM_PART_COPIES],
           s->part_s[SM_PART_HOST], s->part_s[SM_PART_GAP], s->part_s[SM_PART_IDLE],
           s->overlapped_s);
}

static void devices(sm_report *r, const sm_trace_breakdown *b, int top) {
    bool waits = !isnan(b->device[0].wait_s);
    const sm_listing list = sm_page_list(
        r, r->data, "devices", "Devices, the slowest first",
        sm_textf(r,
                 "name|file|<device|ordinal|rank|steps|step_s>{s}step|>{s}compute|>{s}exposed|"
                 ">{s}copies|>{s}idle|median_s|least_s|most_s|wait_s%s>{s}waits",
                 waits ? "" : "-"));
    for (int i = 0; i < b->devices; i++) {
        const sm_device_time *d = &b->device[i];
        const sm_trace_device *on = &b->trace->on[d->device];
        const double *part = d->mean.part_s;
        bool shown = b->devices > 1 && (i < top || i == b->devices - 1);
        sm_data *object = sm_list_row(
            &list, shown, on->name, b->trace->file[on->file].name,
            device_text(r, b->trace, d->device), on->ordinal, on->rank < 0 ? NAN : (double)on->rank,
            d->steps, seconds_of(&d->mean), part[SM_PART_COMPUTE], part[SM_PART_EXPOSED],
            part[SM_PART_COPIES], part[SM_PART_HOST] + part[SM_PART_GAP] + part[SM_PART_IDLE],
            d->median_s, d->least_s, d->most_s, d->wait_s);
        put_step(r, object, &d->mean);
        sm_data *whole = sm_put_object(r, object, "whole_trace");
        sm_put(r, whole, "seconds", (double)(d->whole.end_ps - d->whole.start_ps) * 1e-12);
        put_step(r, whole, &d->whole);
    }
    if (b->devices < 2) return;
    if (waits) tell_waits(r, b);
    else tell_slow(r, b);
}

/* Of all devices. */
static double steps_of(const sm_trace_breakdown *b) {
    double steps = 0;
    for (int i = 0; i < b->devices; i++) steps += b->device[i].steps;
    return steps;
}

static void kernels(sm_report *r, const sm_profile_ran *p, int top) {
    const sm_trace_breakdown *b = p->time;
    const sm_listing list =
        sm_page_list(r, r->data, "ops", "Kernels, by the op that launched them",
                     sm_textf(r,
                              "name|kernel|module|shapes|<op|<shapes|count|calls|>runs|>{s}time|"
                              "seconds|>share|flops|>FLOP/s|%s>roofline",
                              p->system ? "" : "-"));
    for (int i = 0; i < b->rows; i++) {
        const sm_kernel_row *row = &b->row[i];
        double time = row->seconds / steps_of(b);
        const bool shown = i < top;
        const char *rate = row->flops > 0 ? sm_show_count(r, row->flops / row->seconds) : "";
        const double lower_s = p->lower_s[i];
        const char *roofline = isnan(lower_s) ? "" : profile_share(r, lower_s, row->seconds);
        sm_data *object = sm_list_row(
            &list, shown, row->op, row->kernel, row->module, row->shapes, short_name(r, row->op),
            cut(r, row->shapes, 18), row->count, row->calls, row->count / steps_of(b), time,
            row->seconds, profile_share(r, time, seconds_of(&b->mean)), row->flops, rate, roofline);
        sm_put(r, object, "bytes|lower_s", row->bytes, lower_s);
    }
}

static void collectives(sm_report *r, const sm_profile_ran *p, int top) {
    const sm_trace_breakdown *b = p->time;
    const double steps = steps_of(b);
    const sm_listing list = sm_page_list(
        r, r->data, "collectives", "Collectives, a step",
        sm_textf(r,
                 "op<collective|dtype|group|members>{=}over|bytes>{B}bytes|count|>runs|seconds|"
                 ">{s}time|least_s>{s}shortest|exposed_s|bus_bytes_per_s>{B}bus/s|%s>link|"
                 ">{s}exposed",
                 isnan(p->link_bytes_per_s) ? "-" : ""));
    for (int i = 0; i < b->comms; i++) {
        const sm_comm_row *row = &b->comm[i];
        double bus = row->bytes * row->bus_factor / row->least_s;
        sm_list_row(
            &list, i < top, row->op, row->dtype, row->group_name,
            row->members ? (double)row->members : NAN, row->bytes, row->count, row->count / steps,
            row->seconds, row->seconds / steps, row->least_s, row->exposed_s, bus,
            isnan(bus) ? "-" : profile_share(r, bus, p->link_bytes_per_s), row->exposed_s / steps);
    }
}

/* ---- data ---- */

static void put_data(sm_report *r, const sm_profile_ran *p) {
    static const char *const from[] = {"marked", "program", "repeated", "none"};
    const sm_trace_breakdown *b = p->time;
    const sm_trace *t = b->trace;
    sm_data *files = sm_put_array(r, r->data, "files");
    for (int i = 0; i < t->files; i++) {
        sm_put(r, sm_put_object(r, files, NULL), "name|format|partial|bytes", t->file[i].name,
               t->file[i].format, t->file[i].partial, (double)t->file[i].end);
    }
    sm_put(r, r->data, "system|steps_from|step_s", p->system ? p->system->text : NULL,
           from[b->steps_from], seconds_of(&b->mean));
    put_step(r, r->data, &b->mean);
    sm_put(r, r->data, "flops|not_understood_s", p->flops, b->other_s);
    sm_put_array(r, r->data, "devices"); /* the page lists them, and what follows */
    r->records = sm_put_array(r, r->data, "ops");
    sm_put_array(r, r->data, "collectives");
}

/* ---- against another ---- */

static sm_status against(const sm_profile_question *q, const sm_profile_ran *p, sm_report *r,
                         sm_error *err) {
    const sm_trace_breakdown *other;
    if (q->against.text && !q->against_trace)
        return sm_fail(err, SM_BAD_INPUT, "%s is no trace; a program is compared with --on SYSTEM",
                       q->against.name);
    if (!q->against_trace) return SM_OK;
    sm_status status = sm_trace_break_down(q->against_trace, r->arena, &other, err);
    if (status) return status;
    const sm_trace_step *a = &p->time->mean, *b = &other->mean;
    sm_table *table =
        sm_page_table(r, "Against the other trace", "<part|>{s}this|>{s}other|>{s}difference");
    for (int i = 0; i < SM_PARTS; i++)
        if (a->part_s[i] > 0 || b->part_s[i] > 0)
            sm_page_row(r, table, sm_time_part_name((sm_time_part)i), a->part_s[i], b->part_s[i],
                        b->part_s[i] - a->part_s[i]);
    sm_page_row(r, table, "step", seconds_of(a), seconds_of(b), seconds_of(b) - seconds_of(a));
    sm_data *object = sm_put_object(r, r->data, "against");
    sm_put(r, object, "step_s", seconds_of(b));
    put_step(r, object, b);
    return SM_OK;
}

/* ---- the timeline ---- */

enum { MOST_SLICES = 400000, LANES = 3 };

/* Work of each device on three tracks. */
static bool draw(sm_report *r, const sm_trace *t) {
    static const char *const lanes[LANES] = {"kernels", "network", "copies"};
    int tracks = LANES * t->devices, n = t->events < MOST_SLICES ? t->events : MOST_SLICES;
    const char **track = sm_arena_array(r->arena, (size_t)tracks + 1, sizeof *track);
    sm_slice *slice = sm_arena_array(r->arena, (size_t)n + 1, sizeof *slice);
    sm_tracks *all = sm_arena_alloc(r->arena, sizeof *all);
    if (!track || !slice || !all) return false;
    *all = (sm_tracks){.title = t->file[0].format, .n = tracks, .track = track, .slice = slice};
    for (int i = 0; i < tracks; i++)
        track[i] = sm_textf(r, "%s: %s", device_text(r, t, i / LANES), lanes[i % LANES]);
    for (int i = 0; i < t->events && all->slices < (size_t)n; i++) {
        const sm_trace_event *e = &t->event[i];
        int device = t->stream[e->stream].device;
        if (device < 0 || e->kind > SM_TRACE_COPY) continue;
        slice[all->slices++] = (sm_slice){.track = LANES * device + e->kind,
                                          .name = t->name[e->name],
                                          .category = lanes[e->kind],
                                          .start_s = (double)e->start_ps * 1e-12,
                                          .seconds = (double)e->duration_ps * 1e-12};
    }
    r->tracks = all;
    return true;
}

void profile_steps(sm_report *r, const sm_trace_breakdown *b, int top) {
    where(r, b);
    devices(r, b, top);
}

sm_status profile_trace_answer(const sm_profile_question *q, int top, sm_report *r, sm_error *err) {
    const sm_trace_breakdown *b;
    const sm_profile_ran *p;
    sm_status status = sm_question_needs(
        !q->planned, "a compiled module for --model: a trace has none to lay a plan beside", err);
    if (!status) status = sm_trace_break_down(q->trace, r->arena, &b, err);
    if (!status)
        status = sm_profile_ran_on(b, q->systems > 0 ? &q->system[0] : NULL, r->arena, &p, err);
    if (status) return status;
    put_data(r, p);
    summary(r, p);
    where(r, b);
    profile_tell_findings(r, p->finding, p->findings, "a step", ", ", seconds_of(&b->mean));
    kernels(r, p, top);
    collectives(r, p, top);
    devices(r, b, top);
    if (q->pictures && !draw(r, q->trace)) return sm_fail_memory(err);
    return against(q, p, r, err);
}
