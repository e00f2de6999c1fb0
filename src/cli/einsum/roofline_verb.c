/* roofline: the options of `roofline`. */
#include "program.h"

typedef struct values {
    sm_roofline_question question;
    const char *on, *plot;
    unsigned level; /* of level_names */
    cli_list critical;
    cli_calibration_values constants;
} roofline_options;

static const sm_memory_level levels[] = {SM_MEMORY_HBM,    SM_MEMORY_HBM,    SM_MEMORY_ONCHIP,
                                         SM_MEMORY_ONCHIP, SM_MEMORY_ONCHIP, SM_MEMORY_HOST,
                                         SM_MEMORY_HOST};
enum { LEVELS = sizeof levels / sizeof *levels };

static sm_status run_roofline(const cli_call *call, sm_report *r, sm_error *err) {
    roofline_options *o = call->values;
    sm_roofline_question *q = &o->question;
    sm_system system;
    sm_source critical[CLI_MAX_LIST];
    q->size = sizeof *q;
    q->chip = &system.chip;
    q->einsum = sm_source_of("EINSUM", call->positional[0]);
    q->critical = critical;
    q->n_critical = o->critical.n;
    for (int i = 0; i < o->critical.n; i++)
        critical[i] = sm_source_of("--critical", o->critical.text[i]);
    q->level = levels[o->level];
    q->explain = call->common.explain;
    q->plot = o->plot != NULL;
    sm_status status = cli_system(call, o->on, &system, err);
    if (!status) status = cli_calibration(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_roofline(q, r, err);
}

const cli_verb cli_roofline = {
    .about = &verbs_roofline,
    CLI_VALUES(AT("on", on), AT("dims", question.dims), AT("compute", question.compute),
               AT("critical", critical), AT("level", level), AT("plot", plot),
               CLI_CALIBRATION_PLACES(constants)),
    .run = run_roofline,
};
