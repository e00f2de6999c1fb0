/* reshard: the options of `reshard`. */
#include "scalemodel/io.h"
#include "program.h"

typedef struct values {
    sm_reshard_question question;
    const char *on;
    cli_calibration_values constants;
} reshard_options;

static sm_status run_reshard(const cli_call *call, sm_report *r, sm_error *err) {
    reshard_options *o = call->values;
    sm_reshard_question *q = &o->question;
    const char *given = call->positional[0];
    sm_system system;
    sm_status status = cli_system(call, o->on, &system, err);
    q->size = sizeof *q;
    q->system = &system;
    if (!status && q->from.text) status = cli_need(call, &q->to, err);
    if (!status && q->to.text) status = cli_need(call, &q->from, err);
    if (!status && !q->from.text && !strstr(given, "rematerialization"))
        status = sm_io_read_packed(given, SM_IO_DATA_BYTES, call->arena, &q->text, err);
    else q->text = sm_source_of("ARRAY", given);
    if (!status) status = cli_calibration(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_reshard(q, r, err);
}

const cli_verb cli_reshard = {
    .about = &verbs_reshard,
    CLI_VALUES(AT("on", on), AT("from", question.from), AT("to", question.to),
               AT("top", question.top), CLI_CALIBRATION_PLACES(constants)),
    .run = run_reshard,
};
