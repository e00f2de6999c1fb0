#include "profile_asked.h"

const char *profile_share(sm_report *r, double part, double whole) {
    return whole > 0 ? sm_show_percent(r, part / whole) : "-";
}

void profile_tell_findings(sm_report *r, const sm_profile_finding *finding, int n, const char *of,
                           const char *before, double whole_s) {
    sm_data *list = sm_put_array(r, r->data, "findings");
    sm_report_heading(r, "What would save time");
    if (n == 0) sm_report_text(r, "Nothing that would save more than 3 %% of %s.", of);
    for (int i = 0; i < n; i++) {
        const sm_profile_finding *f = &finding[i];
        sm_data *object = sm_put_object(r, list, NULL);
        sm_put(r, object, "seconds|what|where|change", f->seconds, f->what, f->about, f->change);
        if (f->count > 0) sm_put(r, object, "count", f->count);
        sm_report_text(
            r, "%d. Up to %s (%s): %s%s%s%s. %c%s.", i + 1, sm_show_seconds(r, f->seconds),
            profile_share(r, f->seconds, whole_s), f->what, f->about[0] ? before : "", f->about,
            f->count > 1 ? sm_textf(r, " (%d of them)", f->count) : "",
            f->change[0] >= 'a' ? f->change[0] - 'a' + 'A' : f->change[0], f->change + 1);
    }
}

void profile_data(sm_report *r, const sm_profile *p, const profile_rows *rows, bool trace) {
    const sm_profile_time *t = &p->time;
    double compute = fmax(t->compute_s, 1e-300);
    sm_put(r, r->data, "command|kind|module|device|system|devices|steps", "profile",
           trace ? "xplane" : "hlo", p->module->name, p->system->chip.name, p->system->text,
           p->module->devices, 1);
    sm_data *mesh = sm_put_array(r, r->data, "mesh");
    for (int i = 0; i < p->mesh.axes; i++) {
        sm_data *axis = sm_put_object(r, mesh, NULL);
        sm_put(r, axis, "axis|size", p->mesh.axis[i].name, p->mesh.axis[i].size);
    }
    sm_put(r, sm_put_object(r, r->data, "step_time_s"), "measured|lower|expected|upper",
           p->measured.step_s, t->lower_s, t->expected_s, t->upper_s);
    const sm_profile_measured *m = &p->measured;
    if (m->runs > 0)
        sm_put(r, sm_put_object(r, r->data, "measured_s"),
               "runs|step|kernels|collectives|copies|idle", m->runs, m->step_s, m->kernels_s,
               m->collectives_s, m->copies_s, m->idle_s);
    sm_put(r, r->data, "flops|vector_flops|transcendentals|bytes|mfu", p->work.matrix_flops,
           p->work.vector_flops, p->work.transcendentals, p->work.bytes, profile_mfu(p));
    sm_put(r, sm_put_object(r, r->data, "padding"), "flops|bytes", p->tile_flops, p->tile_bytes);
    const sm_module_assigned *a = &p->module->assigned;
    sm_data *memory = sm_put_object(r, r->data, "memory_bytes");
    sm_put(r, memory, "peak|arguments|results|temporaries|capacity", p->peak_bytes,
           p->argument_bytes, p->result_bytes, p->temporary_bytes,
           sm_chip_memory(&p->system->chip)->value);
    if (a->known)
        sm_put(r, sm_put_object(r, memory, "assigned"), "arguments|results|temporaries",
               a->argument_bytes, a->result_bytes, a->temporary_bytes);
    sm_put(r, sm_put_object(r, r->data, "understood"), "time",
           1 - rows->of_kind[PROFILE_CUSTOM] / compute);
    sm_put(r, r->data, "guessed", p->guessed);
    sm_put(r, sm_put_object(r, r->data, "time_s"), "compute|exposed|overlapped|copies|idle",
           t->compute_s, t->exposed_s, t->overlapped_s, t->copies_s, 0.0);
    r->records = sm_put_array(r, r->data, "ops"); /* the page lists them, and what follows */
    sm_put_array(r, r->data, "collectives");
}
