/* profile: the options of `profile`. */
#include "program.h"
#include "scalemodel/io.h"

typedef struct values {
    sm_profile_question question;
    sm_train_question planned;
    sm_model trained;
    sm_system system[CLI_MAX_LIST];
    cli_list on;
    const char *against, *model, *timeline, *plot, *html;
    cli_model_values read_by;
    cli_calibration_values constants;
} profile_options;

static sm_status read_systems(const cli_call *call, profile_options *o, sm_error *err) {
    sm_profile_question *q = &o->question;
    q->systems = o->on.n ? o->on.n : 1;
    q->system = o->system;
    for (int i = 0; i < q->systems; i++) {
        sm_status status = cli_system(call, o->on.n ? o->on.text[i] : NULL, &o->system[i], err);
        if (status) return status;
    }
    return cli_calibration(call, &o->system[0].chip, &o->constants, &q->calibration, err);
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
    bool plans = cli_given(call, &o->planned.plan) || cli_given(call, &o->planned.batch_tokens);
    if (!status && plans && !o->model)
        status = sm_fail(err, SM_USAGE, "--plan and --batch are of --model, which the step trains");
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
    .about = &verbs_profile,
    CLI_VALUES(AT("on", on), AT("mesh", question.mesh), AT("program", question.program),
               AT("top", question.top), AT("against", against), AT("model", model),
               AT("plan", planned.plan), AT("batch", planned.batch_tokens), AT("seq", planned.seq),
               AT("timeline", timeline), AT("trace", timeline), AT("plot", plot), AT("svg", plot),
               AT("html", html), AT("partial", question.cut), CLI_MODEL_PLACES(read_by),
               CLI_CALIBRATION_PLACES(constants)),
    .run = run_profile,
};
