/* profile: the options of `profile`. */
#include "program.h"
#include "scalemodel/io.h"

typedef struct profile_options {
    sm_profile_question question;
    sm_train_question planned;
    sm_model trained;
    sm_system system[CLI_MAX_LIST];
    cli_list on;
    const char *against, *model, *timeline, *plot, *html;
    cli_model_values read_by;
    cli_calibration_values constants;
} profile_options;
#define AT(member) offsetof(profile_options, member)

static const cli_option profile_table[] = {
    {"on", 0, CLI_LIST, AT(on), "SYSTEM",
     .help = "the chips: tpu-v5e:2x4, h100-sxm:8; a chip alone: as many as the module has devices "
             "(several times: the others in a table)"},
    {"mesh", 0, CLI_SOURCE, AT(question.mesh), "MESH",
     .help = "names of the axes of its devices: data=4,tensor=2"},
    {"program", 0, CLI_TEXT, AT(question.program), "NAME",
     .help = "the program of a profile: jit_step", .default_says = "the one that ran longest"},
    {"top", 0, CLI_INT, AT(question.top), "N", .help = "rows of each table", .lowest = 1,
     .highest = 100000, .by_default = "12"},
    {"against", 0, CLI_INPUT, AT(against), "OTHER",
     .help = "another module or profile, on the second SYSTEM where there is one: where the two "
             "differ, adding up to the difference"},
    {"model", 0, CLI_TEXT, AT(model), "MODEL",
     .help = "the model that it trains: what 'train' predicts of a step beside what was found"},
    {"plan", 0, CLI_SOURCE, AT(planned.plan), "PLAN",
     .help = "its plan, as of 'train': fsdp=2,tensor=4; the best with these keys"},
    {"batch", 0, CLI_NUMBER, AT(planned.batch_tokens), "TOKENS",
     .help = "tokens of its global batch"},
    {"seq", 0, CLI_COUNT, AT(planned.seq), "T", .help = "tokens of a sequence", .lowest = 1,
     .highest = 1e9, .default_says = "4096, or what the model was made for where that is less"},
    {"timeline", 0, CLI_OUTPUT, AT(timeline), "FILE", .gets = CLI_TRACKS,
     .help = "write what was measured, what is expected and what rooflines allow as a trace for "
             "Perfetto"},
    {"trace", 0, CLI_OUTPUT, AT(timeline), "FILE", .help = "the same"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .gets = CLI_CHART,
     .help = "draw the kernels below the roofline, and the timeline, as SVG"},
    {"svg", 0, CLI_OUTPUT, AT(plot), "FILE", .help = "the same"},
    {"html", 0, CLI_OUTPUT, AT(html), "FILE", .gets = CLI_PAGE,
     .help = "write the page with these pictures as one HTML file"},
    {"partial", 0, CLI_FLAG, AT(question.cut), NULL,
     .help = "of a file that is cut short, what came before"},
    CLI_MODEL_OPTIONS(profile_options, read_by),
    CLI_CALIBRATION_OPTIONS(profile_options, constants),
    {.name = NULL},
};

static sm_status read_systems(const cli_call *call, profile_options *o, sm_error *err) {
    sm_profile_question *q = &o->question;
    q->systems = o->on.n ? o->on.n : 1;
    q->system = o->system;
    for (int i = 0; i < q->systems; i++) {
        sm_status status = cli_system(call, o->on.n ? o->on.text[i] : NULL, &o->system[i], err);
        if (status) return status;
    }
    return cli_constants(call, &o->system[0].chip, &o->constants, &q->calibration, err);
}

/* The step that it should be. */
static sm_status read_planned(const cli_call *call, profile_options *o, sm_error *err) {
    sm_train_question *planned = &o->planned;
    planned->size = sizeof *planned;
    planned->model = &o->trained;
    planned->calibration = o->question.calibration;
    o->question.planned = planned;
    sm_status status = cli_need(call, &planned->batch_tokens, err);
    return status ? status : cli_read_model(call, &o->read_by, o->model, &o->trained, err);
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
    profile_options *o = call->values;
    sm_profile_question *q = &o->question;
    bool other = q->cut;
    q->size = sizeof *q;
    sm_status status = read_profiled(call, call->positional, call->positionals, &q->cut, &q->module,
                                     &q->trace, err);
    if (!status && o->against)
        status = read_profiled(call, &o->against, 1, &other, &q->against, &q->against_trace, err);
    bool on = o->on.n > 0 || !q->trace || o->model;
    if (!status && on) status = read_systems(call, o, err);
    if (!status && o->model) status = read_planned(call, o, err);
    q->pictures = o->timeline || o->plot || o->html;
    if (status) return status;
    sm_status answer = sm_answer_profile(q, r, err);
    if (answer <= SM_NEGATIVE && o->plot && !r->chart && !r->out_of_memory)
        return sm_fail(err, SM_USAGE,
                       "--plot draws a module; of a trace alone there is --timeline");
    return answer;
}

const cli_verb cli_profile = {
    .name = "profile",
    .summary = "where a run or a compiled program spends its time, what saves some",
    .arguments = "FILE...",
    .options = profile_table,
    .values_bytes = sizeof(profile_options),
    .notes = "FILE is a compiled HLO module, text or protobuf (JAX: --xla_dump_to, or\n"
             "lowered.compile().as_text()); StableHLO with its shardings, before it is\n"
             "compiled (lowered.as_text()); or a trace of what ran: of torch.profiler (JSON),\n"
             "jax.profiler (.xplane.pb, .trace.json), Perfetto, Nsight Systems (.sqlite); or\n"
             "a folder or tar of all ranks; plain, .gz, .zst, .xz, or - for standard input. A\n"
             "trace alone needs no --on.\n\n"
             "example: scalemodel profile step.hlo.txt --on tpu-v5e:2x4 --mesh data=8\n",
    .run = run_profile,
};
