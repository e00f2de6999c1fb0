/* calibrate: constants of a chip and a software fitted to measured rows. */
#include "calibrate.h"
#include "scalemodel/page.h"
#include "scalemodel/io.h"
#include "verbs.h"
#include <string.h>

#define AT(member) offsetof(cli_calibrate_values, member)

static const char *const constants[] = {
#define X(name, ...) #name,
    SM_CONSTANTS(X)
#undef X
};

static const cli_option calibrate_table[] = {
    {"chip", 0, CLI_TEXT, AT(chip), "CHIP", .help = "fit to the rows of this chip of the catalogue",
     .required = true},
    {"software", 0, CLI_NAME, AT(software), "NAME",
     .help = "what the result is called; of a generation that the rows name, only its rows are "
             "fitted to",
     .by_default = "mine"},
    {"start", 0, CLI_TEXT, AT(start), "NAME",
     .help = "start from the shipped constants of this software, which are the prior too",
     .default_says = "those of --software, else the chip's usual"},
    {"fit", 0, CLI_CHOICES, AT(fit), "NAMES",
     .help = "constants to fit, joined by commas; the others are kept",
     .words = {constants, SM_CONSTANT_COUNT}, .default_says = "all"},
    {"all", 0, CLI_FLAG, AT(all), .help = "fit to repeated, fine-tuning and doubtful rows too"},
    {"output", 'o', CLI_OUTPUT, AT(output), "FILE",
     .help = "write the calibration to FILE, for --calibration FILE"},
    {.name = NULL},
};

static sm_status fit(cli_fitting *q, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_fit_options options = {.free = q->free, .prior_weight = 1.0, .arena = q->call->arena};
    sm_status status = sm_calibrate(q->ready, q->n, q->start, &options, &q->fit, &none);
    if (status == SM_NEGATIVE) {
        q->reason = sm_arena_copy(q->call->arena, none.sentence, strlen(none.sentence));
        return q->reason ? SM_NEGATIVE : sm_fail_memory(err);
    }
    if (status) *err = none;
    return status;
}

static sm_status write_file(cli_fitting *q, const char *path, sm_error *err) {
    char *text = cli_fitting_text(q);
    if (!text) return sm_fail_memory(err);
    return path ? sm_io_write(path, text, strlen(text), err) : SM_OK;
}

static sm_status run_calibrate(const cli_call *call, sm_report *r, sm_error *err) {
    const cli_calibrate_values *values = call->values;
    cli_fitting q = {.call = call};
    sm_status status = cli_fitting_read(call, &q, err);
    if (!status) status = fit(&q, err);
    if (!status) status = write_file(&q, values->output, err);
    if (status == SM_OK || status == SM_NEGATIVE) cli_fitting_page(r, &q);
    cli_fitting_free(&q);
    return status;
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
