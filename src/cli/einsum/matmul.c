/* matmul: the options of `matmul`. */
#include "program.h"

typedef struct values {
    sm_matmul_question question;
    const char *on;
    cli_calibration_values constants;
} matmul_options;

static sm_status run_matmul(const cli_call *call, sm_report *r, sm_error *err) {
    matmul_options *o = call->values;
    sm_matmul_question *q = &o->question;
    sm_system system;
    q->size = sizeof *q;
    q->system = &system;
    q->einsum = sm_source_of("EINSUM", call->positional[0]);
    if (!cli_given(call, &q->top)) q->top = 0;
    q->explain = call->common.explain;
    sm_status status = cli_system(call, o->on, &system, err);
    if (!status) status = cli_calibration(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_matmul(q, r, err);
}

const cli_verb cli_matmul = {
    .about = &verbs_matmul,
    CLI_VALUES(AT("on", on), AT("mesh", question.mesh), AT("dims", question.dims),
               AT("compute", question.compute), AT("top", question.top),
               CLI_CALIBRATION_PLACES(constants)),
    .run = run_matmul,
};
