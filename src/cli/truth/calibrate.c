/* calibrate: constants of a chip and a software fitted to measured rows. */
#include "scalemodel/io.h"
#include "program.h"
#include <string.h>

typedef struct cli_calibrate_values {
    sm_calibrate_question question;
    const char *chip, *start;
    sm_system system;
    cli_choices fit; /* constants */
    cli_list columns;
} cli_calibrate_values;

#define AT(member) offsetof(cli_calibrate_values, member)

static const char *const constants[] = {
#define X(name, ...) #name,
    SM_CONSTANTS(X)
#undef X
};

static const cli_option calibrate_table[] = {
    {"chip", 0, CLI_TEXT, AT(chip), "CHIP", .help = "fit to the rows of this chip of the catalogue",
     .required = true},
    {"software", 0, CLI_NAME, AT(question.software), "NAME",
     .help = "what the result is called; of a generation that the rows name, only its rows are "
             "fitted to",
     .by_default = "mine"},
    {"start", 0, CLI_TEXT, AT(start), "NAME",
     .help = "start from the shipped constants of this software, which are the prior too",
     .default_says = "those of --software, else the chip's usual"},
    {"fit", 0, CLI_CHOICES, AT(fit), "NAMES",
     .help = "constants to fit, joined by commas; the others are kept",
     .words = {constants, SM_CONSTANT_COUNT},
     .default_says = "all; of fewer than 20 training steps alone, those of matmuls"},
    CLI_SET_OPTION(AT(columns)),
    {"all", 0, CLI_FLAG, AT(question.all),
     .help = "fit to repeated, fine-tuning and doubtful rows too"},
    {"output", 'o', CLI_OUTPUT, AT(question.output), "FILE",
     .help = "write the calibration to FILE, for --calibration FILE"},
    {.name = NULL},
};

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
    .name = "calibrate",
    .summary = "constants of a chip and a software fitted to measured rows",
    .arguments = "DATA...",
    .options = calibrate_table,
    .values_bytes = sizeof(cli_calibrate_values),
    .without_system = true,
    .notes = "example: scalemodel calibrate steps.jsonl --chip h100-sxm -o mine.txt\n",
    .run = run_calibrate,
};
