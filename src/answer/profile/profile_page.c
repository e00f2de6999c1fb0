#include "profile_asked.h"

const char *profile_tail(sm_report *r, const char *text, size_t width) {
    size_t length = strlen(text);
    return length <= width ? text : sm_textf(r, "..%s", text + length - width + 2);
}

static void summary(sm_report *r, const sm_profile *p) {
    const sm_profile_time *t = &p->time;
    char mesh[160];
    sm_mesh_format(&p->mesh, mesh, sizeof mesh);
    sm_report_heading(r, "%s on %s", p->module->name, p->system->text);
    sm_report_text(r, "One run: %s expected (%s at datasheet rates, %s if nothing overlaps).",
                   sm_show_seconds(r, t->expected_s), sm_show_seconds(r, t->lower_s),
                   sm_show_seconds(r, t->upper_s));
    sm_report_text(r, "A device: %s in matrix products (MFU %s), %s through HBM.",
                   sm_textf(r, "%s FLOPs", sm_show_count(r, p->work.matrix_flops)),
                   sm_show_percent(r, profile_mfu(p)), sm_show_bytes(r, p->work.bytes));
    const sm_module *m = p->module;
    bool cuts = m->axes_of_shardings && !strcmp(p->mesh.axis[0].name, m->axis[0].name);
    if (m->devices < p->system->chips)
        sm_report_text(r, "The module runs on %d of these %d chips; the others idle.", m->devices,
                       p->system->chips);
    if (m->devices > 1)
        sm_report_text(r, "Mesh %s, %s.", mesh,
                       !p->mesh_named ? "as the groups of its collectives lie"
                       : cuts         ? "as its shardings lie"
                                      : "as named");
}

/* A trace beside the price. */
static void measured(sm_report *r, const sm_profile *p) {
    const sm_profile_measured *m = &p->measured;
    double parts = m->kernels_s + m->collectives_s + m->copies_s;
    if (m->runs <= 0) return;
    if (!isnan(m->step_s))
        sm_report_text(r, "Measured: %s, the mean of %s runs of a device; expected is %s of it.",
                       sm_show_seconds(r, m->step_s), sm_show_number(r, m->runs),
                       profile_share(r, p->time.expected_s, m->step_s));
    sm_table *table = sm_page_table(r, "Where the measured time went", "<part|>{s}time|>share");
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"kernels", m->kernels_s},
                {"collectives and waits for them", m->collectives_s},
                {"copies", m->copies_s},
                {"idle, and what is not in the module", m->idle_s}};
    for (int i = 0; i < 4; i++)
        if (part[i].seconds > 0)
            sm_page_row(r, table, part[i].name, part[i].seconds,
                        profile_share(r, part[i].seconds, isnan(m->step_s) ? parts : m->step_s));
}

static void where(sm_report *r, const sm_profile *p, const profile_rows *rows) {
    const sm_profile_time *t = &p->time;
    sm_table *table =
        sm_page_table(r, "Where the time goes", "<part|>{s}time|>share|>FLOPs|>{B}HBM");
    for (int k = 0; k < PROFILE_KINDS; k++)
        if (rows->of_kind[k] > 0)
            sm_page_row(r, table, profile_kind_names[k], rows->of_kind[k],
                        profile_share(r, rows->of_kind[k], t->expected_s),
                        rows->flops_of_kind[k] > 0 ? sm_show_count(r, rows->flops_of_kind[k]) : "",
                        rows->bytes_of_kind[k]);
    if (p->collectives)
        sm_page_row(r, table, "exposed communication", t->exposed_s,
                    profile_share(r, t->exposed_s, t->expected_s), "", "");
    if (t->copies_s > 0)
        sm_page_row(r, table, "copies waited for", t->copies_s,
                    profile_share(r, t->copies_s, t->expected_s), "", "");
    if (p->collectives)
        sm_report_text(r, "Communication hidden behind compute: %s.",
                       sm_show_seconds(r, t->overlapped_s));
}

/* The time that counts: what was measured, where it was. */
static double seconds_of(const profile_row *row) {
    return isnan(row->measured_s) ? row->expected_s : row->measured_s;
}

static void kernels(sm_report *r, const sm_profile *p, const profile_rows *rows, int top) {
    const bool ran = p->measured.runs > 0;
    double step = ran && !isnan(p->measured.step_s) ? p->measured.step_s : p->time.expected_s;
    const sm_listing list = sm_page_list(
        r, r->data, "ops", "Kernels, by where they come from",
        sm_textf(r,
                 "name|<place|kind%s<kind|count>runs|flops|bytes|time_s.measured%s>{s}measured|"
                 "time_s.lower|time_s.expected>{s}%s|>share|>roofline|bound<bound|source",
                 ran ? "-" : "", ran ? "" : "-", ran ? "expected" : "time"));
    for (int i = 0; i < rows->n; i++) {
        const profile_row *row = &rows->row[i];
        sm_list_row(&list, i < top, row->name, profile_tail(r, row->name, ran ? 30 : 34),
                    profile_kind_names[row->kind], row->count, row->flops, row->bytes,
                    row->measured_s, row->lower_s, row->expected_s,
                    profile_share(r, seconds_of(row), step),
                    profile_share(r, row->lower_s, seconds_of(row)),
                    sm_profile_bound_name(row->bound), row->source);
    }
}

static void collectives(sm_report *r, const sm_profile *p, const profile_rows *rows, int top) {
    const bool ran = p->measured.runs > 0;
    const sm_listing list = sm_page_list(
        r, r->data, "collectives", "Collectives",
        sm_textf(r,
                 "op<collective|<over|<place|name|axes|group|count>runs|bytes|"
                 "bytes_per_chip>{B}sent|lower_s|%s>{s}measured|time_s>{s}%s|exposed_s>{s}exposed|"
                 "measured_s",
                 ran ? "" : "-", ran ? "expected" : "time"));
    for (int i = 0; i < rows->comms; i++) {
        const profile_comm_row *row = &rows->comm[i];
        const sm_profile_collective *c = row->first;
        const char *axes = c->axes ? sm_axes_words(r, &p->mesh, c->axes) : NULL;
        sm_data *object = sm_list_row(
            &list, i < top, sm_collective_name(c->op), axes ? axes : sm_textf(r, "%d", c->members),
            profile_tail(r, row->name, ran ? 20 : 26), row->name, axes, c->members, row->count,
            c->bytes * row->count, row->bytes_per_chip, row->lower_s, row->measured_s,
            row->expected_s, row->exposed_s, row->measured_s);
        sm_put(r, object, "algorithm|bound|source", c->algorithm,
               c->latency_bound ? "latency" : "bandwidth", row->source);
    }
}

static void memory(sm_report *r, const sm_profile *p) {
    const sm_bar_part parts[] = {{"arguments", p->argument_bytes},
                                 {"results", p->result_bytes},
                                 {"temporaries", p->temporary_bytes}};
    sm_report_bar(r, "HBM of a device at its fullest", "B", sm_chip_memory(&p->system->chip)->value,
                  3, parts);
    const sm_module_assigned *a = &p->module->assigned;
    double temporaries = a->temporary_bytes;
    if (!a->known) return;
    sm_report_text(
        r, "The compiler assigned %s: arguments %s, results %s, temporaries %s%s.",
        sm_show_bytes(r, a->argument_bytes + a->result_bytes + temporaries),
        sm_show_bytes(r, a->argument_bytes), sm_show_bytes(r, a->result_bytes),
        sm_show_bytes(r, temporaries),
        temporaries > 1.001 * p->temporary_bytes && p->temporary_bytes > 0
            ? sm_textf(r, ", %s more than live at once",
                       profile_share(r, temporaries - p->temporary_bytes, p->temporary_bytes))
            : "");
}

/* The targets of custom calls and the opcodes that are not known, each once, at most four. */
static const char *not_understood(sm_report *r, const sm_profile *p) {
    const char *name[4], *text = "";
    int n = 0;
    for (int i = 0; i < p->ops; i++) {
        const sm_instruction *it = p->op[i].instruction;
        const char *is = it->opcode == SM_OPCODE_CUSTOM_CALL ? it->target : it->opcode_name;
        bool had = sm_module_is_understood(it);
        for (int k = 0; k < n && !had; k++) had = !strcmp(name[k], is);
        if (had) continue;
        if (n == 4) return sm_textf(r, "%s and others", text);
        text = sm_textf(r, "%s%s%s", text, n ? ", " : "", is);
        name[n++] = is;
    }
    return text;
}

static void notes(sm_report *r, const sm_profile *p, const profile_rows *rows) {
    if (p->guessed)
        sm_report_text(r, "Some loops do not say how often they run: they count once. Of branches "
                          "the longest counts.");
    if (p->custom > 0)
        sm_report_text(r,
                       "Not understood: %s runs of %s, %s of the time. They are priced by their "
                       "bytes, without FLOPs.",
                       sm_show_number(r, p->custom), not_understood(r, p),
                       profile_share(r, rows->of_kind[PROFILE_CUSTOM], p->time.expected_s));
    if (p->tile_flops > 0.005 * p->work.matrix_flops || p->tile_bytes > 0.005 * p->work.bytes)
        sm_report_text(r,
                       "Padding of tiles: %s FLOPs more than the %s of the products, %s of the "
                       "%s through HBM.",
                       sm_show_count(r, p->tile_flops), sm_show_count(r, p->work.matrix_flops),
                       sm_show_bytes(r, p->tile_bytes), sm_show_bytes(r, p->work.bytes));
    if (p->module->partitioned)
        sm_report_text(r, "The module was not partitioned: its shardings were spread here and its "
                          "collectives are those of the algebra; a compiler may choose others.");
    if (!p->module->scheduled)
        sm_report_text(r, "The module is not scheduled: instructions run in the order of the text, "
                          "and pointwise ones are taken to be fused with what reads them.");
    if (p->module->devices == 1 && p->system->chips > 1)
        sm_report_text(r, "The module runs on one device: the others are idle.");
}

void profile_page(sm_report *r, const sm_profile *p, const profile_rows *rows, int top) {
    summary(r, p);
    measured(r, p);
    where(r, p, rows);
    profile_tell_findings(r, p->finding, p->findings, "the step", ", in ", p->time.expected_s);
    kernels(r, p, rows, top);
    collectives(r, p, rows, top);
    memory(r, p);
    notes(r, p, rows);
}
