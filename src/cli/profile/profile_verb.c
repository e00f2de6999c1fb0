/* profile: the options of `profile`. */
#include "answer.h"
#include "scalemodel/io.h"
#include "program.h"

typedef struct profile_options {
    cli_list on;
    const char *mesh, *program, *against, *model, *plan, *timeline, *plot, *html;
    double batch;
    int64_t top, seq;
    bool partial;
    cli_model_values read_by;
    cli_calibration_values constants;
} profile_options;

static const cli_option profile_table[] = {
    {"on", 0, CLI_LIST, offsetof(profile_options, on), "SYSTEM",
     .help = "the chips: tpu-v5e:2x4, h100-sxm:8; a chip alone: as many as the module has devices "
             "(several times: the others in a table)"},
    {"mesh", 0, CLI_TEXT, offsetof(profile_options, mesh), "MESH",
     .help = "names of the axes of its devices: data=4,tensor=2"},
    {"program", 0, CLI_TEXT, offsetof(profile_options, program), "NAME",
     .help = "the program of a profile: jit_step", .default_says = "the one that ran longest"},
    {"top", 0, CLI_WHOLE, offsetof(profile_options, top), "N", .help = "rows of each table",
     .lowest = 1, .highest = 100000, .by_default = "12"},
    {"against", 0, CLI_INPUT, offsetof(profile_options, against), "OTHER",
     .help = "another module or profile, on the second SYSTEM where there is one: where the two "
             "differ, adding up to the difference"},
    {"model", 0, CLI_TEXT, offsetof(profile_options, model), "MODEL",
     .help = "the model that it trains: what 'train' predicts of a step beside what was found"},
    {"plan", 0, CLI_TEXT, offsetof(profile_options, plan), "PLAN",
     .help = "its plan, as of 'train': fsdp=2,tensor=4; the best with these keys"},
    {"batch", 0, CLI_NUMBER, offsetof(profile_options, batch), "TOKENS",
     .help = "tokens of its global batch"},
    {"seq", 0, CLI_WHOLE, offsetof(profile_options, seq), "T", .help = "tokens of a sequence",
     .lowest = 1, .highest = 1e9,
     .default_says = "4096, or what the model was made for where that is less"},
    {"timeline", 0, CLI_OUTPUT, offsetof(profile_options, timeline), "FILE", .gets = CLI_TRACKS,
     .help = "write what was measured, what is expected and what rooflines allow as a trace for "
             "Perfetto"},
    {"trace", 0, CLI_OUTPUT, offsetof(profile_options, timeline), "FILE", .help = "the same"},
    {"plot", 0, CLI_OUTPUT, offsetof(profile_options, plot), "FILE", .gets = CLI_CHART,
     .help = "draw the kernels below the roofline, and the timeline, as SVG"},
    {"svg", 0, CLI_OUTPUT, offsetof(profile_options, plot), "FILE", .help = "the same"},
    {"html", 0, CLI_OUTPUT, offsetof(profile_options, html), "FILE", .gets = CLI_PAGE,
     .help = "write the page with these pictures as one HTML file"},
    {"partial", 0, CLI_FLAG, offsetof(profile_options, partial), NULL,
     .help = "of a file that is cut short, what came before"},
    CLI_MODEL_OPTIONS(profile_options, read_by),
    CLI_CALIBRATION_OPTIONS(profile_options, constants),
    {.name = NULL},
};

static sm_status read_systems(const cli_call *call, const profile_options *o, sm_system *system,
                              int *n, sm_error *err) {
    *n = o->on.n ? o->on.n : 1;
    for (int i = 0; i < *n; i++) {
        sm_status status = cli_system(call, o->on.n ? o->on.text[i] : NULL, &system[i], err);
        if (status) return status;
    }
    return SM_OK;
}

/* The step that it should be. */
static sm_status read_planned(const cli_call *call, const profile_options *o,
                              sm_profile_question *q, sm_error *err) {
    sm_train_question *planned = sm_arena_alloc(call->arena, sizeof *planned);
    sm_model *model = sm_arena_alloc(call->arena, sizeof *model);
    if (!planned || !model) return sm_fail_memory(err);
    sm_status status = cli_need(call, &o->batch, err);
    if (!status) status = cli_read_model(call, &o->read_by, o->model, model, err);
    *planned = SM_QUESTION(sm_train_question);
    planned->model = model;
    planned->calibration = q->calibration;
    planned->batch_tokens = o->batch;
    planned->seq = (double)o->seq;
    planned->plan = cli_text(call, &o->plan);
    q->planned = planned;
    return status;
}

/* Files of a profile: a module, traces, or both. *partial: may be, then whether the module was cut.
 */
static sm_status read_profiled(const cli_call *call, const char *const *path, int n, bool *partial,
                               sm_source *module, const sm_trace **trace, sm_error *err) {
    sm_profiled what;
    sm_status status = sm_io_read_profiled(path, n, *partial, call->arena, &what, err);
    *partial = what.cut;
    *module = what.module;
    *trace = what.trace;
    return status;
}

static sm_status run_profile(const cli_call *call, sm_report *r, sm_error *err) {
    const profile_options *o = call->values;
    sm_profile_question q = SM_QUESTION(sm_profile_question);
    sm_system *system = sm_arena_array(call->arena, CLI_MAX_LIST, sizeof *system);
    if (!system) return sm_fail_memory(err);
    bool other = o->partial;
    q.cut = o->partial;
    sm_status status =
        read_profiled(call, call->positional, call->positionals, &q.cut, &q.module, &q.trace, err);
    if (!status && o->against)
        status = read_profiled(call, &o->against, 1, &other, &q.against, &q.against_trace, err);
    bool on = o->on.n > 0 || !q.trace || o->model;
    if (!status && on) status = read_systems(call, o, system, &q.systems, err);
    if (!status && on && (o->constants.software || o->constants.calibration))
        status = cli_calibration(call, &system[0].chip, &o->constants, &q.calibration, err);
    q.system = on ? system : NULL;
    q.mesh = cli_text(call, &o->mesh);
    q.program = o->program;
    q.top = (int)o->top;
    if (!status && o->model) status = read_planned(call, o, &q, err);
    q.pictures = o->timeline || o->plot || o->html;
    if (status) return status;
    sm_status answer = sm_answer_profile(&q, r, err);
    if (answer <= SM_NEGATIVE && o->plot && !r->chart && !r->out_of_memory)
        return sm_fail(err, SM_USAGE,
                       "--plot draws a module; of a trace alone there is --timeline");
    return answer;
}

const cli_verb cli_profile = {
    .name = "profile",
    .summary = "where a run or a compiled program spends its time, what saves some",
    .arguments = "FILE...",
    .least = 1,
    .most = CLI_MAX_POSITIONALS,
    .options = profile_table,
    .values_bytes = sizeof(profile_options),
    .notes = "FILE is a compiled HLO module, text or protobuf (JAX: --xla_dump_to, or\n"
             "lowered.compile().as_text()); StableHLO with its shardings, before it is compiled\n"
             "(lowered.as_text()); or a trace of what ran: of torch.profiler (JSON),\n"
             "jax.profiler (.xplane.pb, .trace.json), Perfetto, Nsight Systems (.sqlite); or a\n"
             "folder or tar of all ranks; plain, .gz, .zst, .xz, or - for standard input.\n"
             "A trace alone needs no --on.\n\n"
             "example: scalemodel profile step.hlo.txt --on tpu-v5e:2x4 --mesh data=8\n",
    .run = run_profile,
};
