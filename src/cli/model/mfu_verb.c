/* mfu_verb: the options of `mfu`. */
#include "program.h"

typedef struct values {
    sm_mfu_question question;
    sm_model model;
    sm_system system;
    cli_list codebases;
    cli_model_values read_by;
} mfu_options;

static sm_status run_mfu(const cli_call *call, sm_report *r, sm_error *err) {
    mfu_options *o = call->values;
    sm_mfu_question *q = &o->question;
    q->size = sizeof *q;
    q->model = &o->model;
    q->system = &o->system;
    q->explain = call->common.explain;
    sm_status status = cli_read_model(call, &o->read_by, call->positional[0], &o->model, err);
    if (!status) status = cli_system(call, call->positional[1], &o->system, err);
    if (!status) status = cli_codebases(call, &o->codebases, &q->codebases, &q->n_codebases, err);
    return status ? status : sm_answer_mfu(q, r, err);
}

const cli_verb cli_mfu = {
    .about = &verbs_mfu,
    CLI_VALUES(ASK("from", from), ASK("seq", seq), ASK("batch", batch), ASK("dtype", dtype),
               CLI_CODEBASE_PLACE(codebases), CLI_MODEL_PLACES(read_by)),
    .run = run_mfu,
};
