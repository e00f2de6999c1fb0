/* plan: the options of `plan`. */
#include "program.h"

typedef struct values {
    sm_plan_question question;
    const char *model, *on;
    cli_model_values read_by;
} plan_options;

static sm_status run_plan(const cli_call *call, sm_report *r, sm_error *err) {
    plan_options *options = call->values;
    sm_plan_question *q = &options->question;
    sm_model model;
    sm_system system;
    sm_status status = SM_OK;
    q->size = sizeof *q;
    q->explain = call->common.explain;
    if (call->positionals > 0) q->plan = sm_source_of("PLAN", call->positional[0]);
    if (options->model) {
        status = cli_read_model(call, &options->read_by, options->model, &model, err);
        q->model = &model;
    }
    if (!status && (options->on || call->common.system_file)) {
        status = cli_system(call, options->on, &system, err);
        q->system = &system;
    }
    return status ? status : sm_answer_plan(q, r, err);
}

const cli_verb cli_plan = {
    .about = &verbs_plan,
    CLI_VALUES(AT("use", question.use), AT("model", model), AT("on", on), CLI_MODEL_PLACES(read_by),
               CLI_SOURCE_PLACES(read_by)),
    .run = run_plan,
};
