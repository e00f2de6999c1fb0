/* calibrate: constants of a chip and a software fitted to measured rows. */
#include "scalemodel/io.h"
#include "program.h"

typedef struct values {
    sm_calibrate_question question;
    const char *chip, *start;
    sm_system system;
    cli_choices fit; /* calibrate_constants */
    cli_list columns;
} cli_calibrate_values;

const char *const calibrate_constants[SM_CONSTANT_COUNT] = {SM_CONSTANTS(SM_ID_OF)};

static sm_status run_calibrate(const cli_call *call, sm_report *r, sm_error *err) {
    cli_calibrate_values *o = call->values;
    sm_calibrate_question *q = &o->question;
    q->size = sizeof *q;
    q->files = (size_t)call->positionals;
    q->file = call->positional;
    for (int i = 0; i < o->fit.n; i++) q->constants |= 1u << o->fit.word[i];
    q->explain = call->common.explain;
    q->n_given = (size_t)o->columns.n;
    q->given = cli_columns(call, &o->columns);
    if (!q->given) return sm_fail_memory(err);
    const sm_source chip = cli_source(call, &o->chip);
    sm_status status = sm_system_parse(&chip, NULL, 0, &o->system, err);
    if (!status) q->chip = sm_chip_find(o->system.chip.name, strlen(o->system.chip.name));
    if (!status && o->start) q->start = sm_calibration_for(q->chip, o->start);
    if (!status && o->start && !q->start)
        status = cli_fail_software(call, q->chip, "--start", o->start, err);
    if (!status) status = sm_answer_calibrate(q, r, err);
    if (status || !q->output) return status;
    return sm_io_write(q->output, r->file, strlen(r->file), err);
}

const cli_verb cli_calibrate = {
    .about = &verbs_calibrate,
    CLI_VALUES(AT("chip", chip), AT("software", question.software), AT("start", start),
               AT("fit", fit), AT("set", columns), AT("all", question.all),
               AT("output", question.output)),
    .without_system = true,
    .run = run_calibrate,
};
