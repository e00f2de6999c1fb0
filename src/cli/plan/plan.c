/* plan: the options of `plan`. */
#include "program.h"

typedef struct plan_options {
    sm_plan_question question;
    const char *model, *on;
    cli_model_values read_by;
} plan_options;

static const char *const uses[] = {"training", "serving"};

static const cli_option plan_table[] = {
    {"use", 0, CLI_CHOICE, offsetof(plan_options, question.use), "USE",
     .help = "whose keys the plan has", .words = {uses, SM_PLAN_USES}, .by_default = "training"},
    {"model", 0, CLI_TEXT, offsetof(plan_options, model), "MODEL",
     .help = "can the layers of this model be sharded so?"},
    {"on", 0, CLI_TEXT, offsetof(plan_options, on), "SYSTEM",
     .help = "how many of these chips does it use?"},
    CLI_MODEL_OPTIONS(plan_options, read_by),
    {.name = NULL},
};

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
    .name = "plan",
    .summary = "what a plan means, its chips, whether a model can be sharded so",
    .arguments = "[PLAN]",
    .options = plan_table,
    .values_bytes = sizeof(plan_options),
    .notes = "PLAN is what --plan of other verbs takes; without it every key has its default.\n\n"
             "example: scalemodel plan fsdp=8,tensor=8 --model llama-3.1-70b \\\n"
             "           --on h100-sxm:16x8\n",
    .run = run_plan,
};
