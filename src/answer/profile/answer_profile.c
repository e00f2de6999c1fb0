/* answer_profile: a compiled program on a machine: its time, where it goes, what would save some.
 */
#include "profile_asked.h"
#include "scalemodel/spmd.h"
#include "train_asked.h"
#include <assert.h>

enum { USUAL_TOP = 12 };

static sm_status check(const sm_profile_question *q, sm_error *err) {
    sm_status status = sm_question_needs(q->module.text || q->trace, "a module or a trace", err);
    bool system = q->system != NULL && q->systems > 0;
    if (!status) status = sm_question_needs(system || q->trace, "a system", err);
    return status ? status : sm_question_limit("systems", q->systems, SM_MAX_PROFILE_SYSTEMS, err);
}

static sm_status read_mesh(const sm_profile_question *q, sm_mesh *mesh, const sm_mesh **out,
                           sm_error *err) {
    *out = NULL;
    if (!q->mesh.text) return SM_OK;
    *out = mesh;
    return sm_mesh_parse(&q->mesh, mesh, err);
}

/* A chip alone stands for as many as the module runs on. */
static sm_status system_of(const sm_profile_question *q, const sm_module *module, int i,
                           sm_system *system, sm_error *err) {
    assert(module);
    *system = q->system[i];
    return system->chips == 1 && module->devices > 1
               ? sm_system_resize(&q->system[i], module->devices, system, err)
               : SM_OK;
}

static sm_status profile_on(const sm_profile_question *q, const profile_file *what, int i,
                            sm_arena *arena, const sm_profile **out, sm_error *err) {
    sm_mesh mesh;
    sm_system *system = sm_arena_alloc(arena, sizeof *system);
    if (!system) return sm_fail_memory(err);
    sm_profile_setup setup = {
        .module = what->module, .system = system, .measured = i == 0 ? what->program : NULL};
    setup.calibration =
        q->calibration && i == 0 ? q->calibration : sm_calibration_of(&q->system[i].chip);
    sm_status status = system_of(q, what->module, i, system, err);
    if (!status) status = read_mesh(q, &mesh, &setup.mesh, err);
    return status ? status : sm_profile_new(&setup, arena, out, err);
}

/* The same module on other machines, a row each. */
static sm_status others(const sm_profile_question *q, const profile_file *what, sm_report *r,
                        sm_error *err) {
    const sm_listing list =
        sm_page_list(r, r->data, "systems", "On other machines",
                     "system<system|>{s}time|lower_s>{s}at datasheet|expected_s|upper_s|mfu>{%}MFU|"
                     "exposed_s>{s}exposed|>{B}HBM");
    for (int i = 0; i < q->systems; i++) {
        const sm_profile *p = what->profile;
        sm_status status = i ? profile_on(q, what, i, r->arena, &p, err) : SM_OK;
        if (status) return status;
        sm_list_row(&list, q->systems > 1, p->system->text, p->time.expected_s, p->time.lower_s,
                    p->time.expected_s, p->time.upper_s, profile_mfu(p), p->time.exposed_s,
                    p->peak_bytes);
    }
    return SM_OK;
}

/* The program of a trace that is asked for, or the one that ran longest of those it has. own: the
 * trace must hold its module. */
static const sm_trace_program *choose(const sm_trace *trace, const char *name, bool own) {
    for (int i = 0; i < trace->programs; i++)
        if ((!own || trace->program[i].module.length) &&
            (!name || !strcmp(trace->program[i].name, name)))
            return &trace->program[i];
    return NULL;
}

static sm_status no_program(const sm_profile_question *q, const sm_trace *trace, const char *file,
                            sm_error *err) {
    const char *names[64] = {NULL};
    size_t n = 0;
    for (int i = 0; i < trace->programs && n < 64; i++)
        if (trace->program[i].module.length) names[n++] = trace->program[i].name;
    const char *near = q->program ? sm_nearest(q->program, strlen(q->program), names, n) : NULL;
    if (n == 0)
        return sm_fail(err, SM_BAD_INPUT, "%s: the profile holds no program of its devices", file);
    return sm_fail(err, SM_BAD_INPUT, "%s: no program of the profile is called \"%s\"; %s%s", file,
                   q->program ? q->program : "", near ? "the nearest is " : "it has ",
                   near ? near : names[0]);
}

/* A module as one device runs it. */
static sm_status read_module(const sm_source *source, sm_arena *arena, const sm_module **out,
                             sm_error *err) {
    sm_status status = sm_module_parse(source, arena, out, err);
    return status ? status : sm_module_partition(*out, arena, out, err);
}

static sm_status read_file(const sm_profile_question *q, const sm_source *source, sm_arena *arena,
                           profile_file *file, sm_error *err) {
    const sm_trace *trace = source == &q->against ? q->against_trace : q->trace;
    bool own = source->length == 0;
    sm_status status = SM_OK;
    *file = (profile_file){.name = source->name};
    if (!trace && sm_trace_is_xplane(source)) {
        own = true;
        status = sm_trace_parse_xplane(source, arena, &trace, err);
    }
    file->trace = trace;
    if (status || !trace) return status ? status : read_module(source, arena, &file->module, err);
    if (!file->name || own) file->name = trace->file[0].name;
    if (!own) status = read_module(source, arena, &file->module, err);
    if (status) return status;
    if (!own && !q->program) file->program = choose(trace, file->module->name, false);
    if (!file->program) file->program = choose(trace, q->program, own);
    if (!own) return SM_OK;
    if (!file->program) return no_program(q, trace, file->name, err);
    return read_module(&file->program->module, arena, &file->module, err);
}

/* Read a file and price it on the question's i-th system. */
static sm_status profile_file_of(const sm_profile_question *q, const sm_source *source, int i,
                                 sm_arena *arena, profile_file *file, sm_error *err) {
    sm_status status = read_file(q, source, arena, file, err);
    if (!status) status = profile_on(q, file, i, arena, &file->profile, err);
    if (status) return status;
    return profile_rows_of(file->profile, arena, &file->rows) ? SM_OK : sm_fail_memory(err);
}

/* The other programs of a trace. */
static void programs(sm_report *r, const profile_file *what) {
    const sm_trace *t = what->trace;
    if (!t || t->programs < 2 || t->program[0].runs <= 0) return;
    sm_table *table =
        sm_page_table(r, "Programs of the profile", "<program|>runs|>{s}a run|>{s}all");
    for (int i = 0; i < t->programs && i < USUAL_TOP; i++) {
        const sm_trace_program *p = &t->program[i];
        if (p->runs > 0) sm_page_row(r, table, p->name, p->runs, p->seconds / p->runs, p->seconds);
    }
}

/* Another file beside this one. */
static sm_status against(const sm_profile_question *q, const profile_file *file, int top,
                         sm_report *r, sm_error *err) {
    profile_file other;
    if (!q->against.text && !q->against_trace) return SM_OK;
    sm_status status =
        profile_file_of(q, &q->against, q->systems > 1 ? 1 : 0, r->arena, &other, err);
    if (!status) profile_against(r, file, &other, top);
    return status;
}

/* What a question is answered with while its plan lives. */
typedef struct asked {
    const sm_profile_question *q;
    sm_report *report;
    const char *plan; /* NULL: none asked */
    const sm_plan_detail *detail;
} asked;

/* Where the time of each device went, of a trace that has the times of its events. */
static sm_status steps(sm_report *r, const sm_trace *trace, int top, sm_error *err) {
    const sm_trace_breakdown *b;
    bool ran = false;
    for (int i = 0; i < trace->events && !ran; i++)
        ran = trace->stream[trace->event[i].stream].device >= 0;
    sm_status status = ran ? sm_trace_break_down(trace, r->arena, &b, err) : SM_OK;
    if (ran && !status) profile_steps(r, b, top);
    return status;
}

static sm_status answer(const asked *a, sm_error *err) {
    const sm_profile_question *q = a->q;
    sm_report *report = a->report;
    profile_file file;
    sm_status status = profile_file_of(q, &q->module, 0, report->arena, &file, err);
    if (status) return status;
    const sm_profile *p = file.profile;
    int top = q->top > 0 ? q->top : USUAL_TOP;
    profile_data(report, p, &file.rows, file.trace != NULL);
    profile_page(report, p, &file.rows, top);
    if (q->cut)
        sm_report_text(report,
                       "The module is cut short: what is priced is its last computation, %s, as "
                       "far as it goes.",
                       file.module->computation[file.module->entry].name);
    programs(report, &file);
    if (q->pictures) profile_pictures(report, &file);
    if (file.trace) status = steps(report, file.trace, top, err);
    if (status) return status;
    if (a->plan) profile_beside_plan(report, &file, a->plan, a->detail, top);
    status = against(q, &file, top, report, err);
    if (!status) status = others(q, &file, report, err);
    if (!status && p->peak_bytes > sm_chip_memory(&p->system->chip)->value) {
        sm_report_text(report,
                       p->module->scheduled
                           ? "It does not fit: %s of %s."
                           : "It does not fit in the order of the text: %s of %s. A "
                             "schedule may need less.",
                       sm_show_bytes(report, p->peak_bytes),
                       sm_show_bytes(report, sm_chip_memory(&p->system->chip)->value));
        if (p->module->scheduled) return SM_NEGATIVE;
    }
    return status;
}

/* Axes of more than one chip in the order of plans: what a mesh without names is taken to be. */
static const char *mesh_of_plan(sm_report *r, const sm_degrees *d) {
    static const char *const names[SM_AXIS_COUNT] = {"data",   "fsdp",   "expert", "context",
                                                     "tensor", "tensor", "tensor"};
    double tensor = d->axis[SM_AXIS_TENSOR] * d->axis[SM_AXIS_TENSOR_Q] * d->axis[SM_AXIS_TENSOR_W];
    const char *text = "";
    for (int i = 0; i <= SM_AXIS_TENSOR_W; i++) {
        double size = i == SM_AXIS_TENSOR_W ? tensor : d->axis[i];
        if (size > 1) text = sm_textf(r, "%s%s%s=%.0f", text, text[0] ? "," : "", names[i], size);
    }
    return text;
}

/* Only where all of its devices are in it and the module names no axes itself. */
static sm_status lay_mesh(sm_profile_question *q, const sm_plan_detail *detail, sm_report *r,
                          sm_error *err) {
    profile_file file;
    double devices = 1;
    const sm_degrees *d = &detail->lines.degrees;
    if (q->mesh.text) return SM_OK;
    sm_status status = read_file(q, &q->module, r->arena, &file, err);
    for (int i = 0; i < SM_AXIS_COUNT; i++) devices *= d->axis[i];
    if (status || devices != file.module->devices || file.module->axes > 0) return status;
    q->mesh = sm_source_of("the plan's mesh", mesh_of_plan(r, d));
    return SM_OK;
}

static sm_status with_plan(void *context, sm_train *train, const sm_plans_shown *plans,
                           sm_error *err) {
    asked *a = context;
    (void)train;
    if (plans->n == 0)
        return sm_fail(err, SM_BAD_INPUT, "no plan to compare with: %s", plans->reason);
    sm_profile_question q = *a->q;
    a->q = &q;
    a->plan = plans->plan[0].text;
    a->detail = &plans->plan[0].detail;
    sm_status status = lay_mesh(&q, a->detail, a->report, err);
    return status ? status : answer(a, err);
}

sm_status profile_against_plan(sm_report *r, const sm_profile_question *q, const char *plan,
                               const sm_plan_detail *detail, sm_error *err) {
    sm_profile_question laid = *q;
    profile_file file;
    sm_status status = lay_mesh(&laid, detail, r, err);
    if (!status) status = profile_file_of(&laid, &laid.module, 0, r->arena, &file, err);
    if (!status) profile_beside_plan(r, &file, plan, detail, USUAL_TOP);
    return status;
}

sm_status sm_answer_profile(const sm_profile_question *question, sm_report *report, sm_error *err) {
    sm_profile_question q;
    asked a = {.q = &q, .report = report};
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    if (!status) status = check(&q, err);
    bool within = !status && q.trace && !q.module.length;
    if (!status && (q.systems == 0 || (within && !choose(q.trace, NULL, true))))
        return profile_trace_answer(&q, q.top > 0 ? q.top : USUAL_TOP, report, err);
    if (status || !q.planned) return status ? status : answer(&a, err);
    sm_train_question planned;
    profile_file file;
    sm_system system;
    status = sm_sized_take(&planned, sizeof planned, q.planned, err);
    if (!status) status = read_file(&q, &q.module, report->arena, &file, err);
    if (!status) status = system_of(&q, file.module, 0, &system, err);
    planned.system = &system;
    planned.top = 1;
    return status ? status : sm_train_ask(&planned, report, with_plan, &a, err);
}
