/* calibrate: constants of a chip and a software fitted to measured rows. */
#include "scalemodel/io.h"
#include "program.h"
#include <string.h>

typedef struct cli_calibrate_values {
    sm_calibrate_question question;
    const char *chip, *start;
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

static sm_status read_chip(const char *text, sm_calibrate_question *q, sm_error *err) {
    enum { MOST_NAMES = 256 };
    const char *names[MOST_NAMES];
    q->chip = sm_chip_find(text, strlen(text));
    if (q->chip) return SM_OK;
    size_t n = 0;
    while (n < sm_chip_count() && n < MOST_NAMES) {
        names[n] = sm_chip_at(n)->name;
        n++;
    }
    sm_source source = sm_source_of("--chip", text);
    const char *near = sm_nearest(text, source.length, names, n);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "the catalogue has no chip '%.60s'%s%s%s", text,
                      near ? "; did you mean " : "; 'scalemodel chip' lists them", near ? near : "",
                      near ? "?" : "");
}

static sm_status read_start(const char *text, sm_calibrate_question *q, sm_error *err) {
    enum { MOST_NAMES = 64 };
    const char *names[MOST_NAMES];
    q->start = text ? sm_calibration_for(q->chip, text) : NULL;
    if (q->start || !text) return SM_OK;
    sm_source source = sm_source_of("--start", text);
    const char *near = sm_nearest(text, source.length, names,
                                  sm_calibration_softwares(q->chip, names, MOST_NAMES));
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "%s has no calibration for '%.60s'%s%s%s", q->chip->name, text,
                      near ? "; did you mean " : "; 'chip NAME --calibration' lists them",
                      near ? near : "", near ? "?" : "");
}

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
    sm_status status = read_chip(o->chip, q, err);
    if (!status) status = read_start(o->start, q, err);
    if (!status) status = sm_answer_calibrate(q, r, err);
    if (status || !q->output) return status;
    return sm_io_write(q->output, r->file, strlen(r->file), err);
}

const cli_verb cli_calibrate = {
    .name = "calibrate",
    .summary = "constants of a chip and a software fitted to measured rows",
    .arguments = "DATA...",
    .least = 1,
    .most = CLI_MAX_POSITIONALS,
    .options = calibrate_table,
    .values_bytes = sizeof(cli_calibrate_values),
    .without_system = true,
    .notes = "example: scalemodel calibrate steps.jsonl --chip h100-sxm -o mine.txt\n",
    .run = run_calibrate,
};
