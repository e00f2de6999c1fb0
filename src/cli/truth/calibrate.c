/* calibrate: constants of a chip and a software fitted to measured rows. */
#include "calibrate.h"
#include "scalemodel/page.h"
#include "scalemodel/io.h"
#include "verbs.h"
#include <string.h>

#define TEXT(name, letter, member, value, help)                                                    \
    { name, letter, CLI_TEXT, offsetof(cli_calibrate_values, member), value, help }

static const cli_option calibrate_table[] = {
    TEXT("chip", 0, chip, "CHIP", "fit to the rows of this chip of the catalogue"),
    TEXT("software", 0, software, "NAME",
         "what the result is called; of a generation that the rows name, only its rows are fitted "
         "to (mine)"),
    TEXT("start", 0, start, "NAME",
         "start from the shipped constants of this software, which are the prior too (those of "
         "--software, else the chip's usual)"),
    TEXT("fit", 0, fit, "NAMES",
         "constants to fit, joined by commas; the others are kept (all twelve)"),
    {"all", 0, CLI_FLAG, offsetof(cli_calibrate_values, all), NULL,
     "fit to repeated, fine-tuning and doubtful rows too"},
    TEXT("output", 'o', output, "FILE", "write the calibration to FILE, for --calibration FILE"),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
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
