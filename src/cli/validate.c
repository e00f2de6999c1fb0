/* validate: measured rows against what is predicted for them. */
#include "validate.h"
#include "pages.h"
#include "verbs.h"

#define TEXT(name, member, value, help)                                                            \
    { name, 0, CLI_TEXT, offsetof(cli_validate_values, member), value, help }
#define FLAG(name, member, help)                                                                   \
    { name, 0, CLI_FLAG, offsetof(cli_validate_values, member), NULL, help }

static const cli_option validate_table[] = {
    TEXT("data", data, "DIR", "folder of *.csv and *.jsonl to validate (the project's own)"),
    TEXT("chip", chip, "CHIP", "only rows of this chip"),
    TEXT("source", source, "TEXT", "only rows whose source has this in its name"),
    TEXT("kind", kind, "KIND", "gemm, attention, collective, memop, training or inference"),
    TEXT("quality", quality, "LETTER", "only training rows of this quality: A, B or C"),
    FLAG("all", all, "count repeated and fine-tuning rows in the statistics too"),
    TEXT("by", by, "LIST",
         "what to group by: kind, chip, source, model, parallelism, software, precision, quality"),
    TEXT("worst", worst, "N", "how many of the worst rows to list (10)"),
    FLAG("summary", summary, "with --json: the statistics without the rows"),
    TEXT("plot", plot, "FILE", "draw predicted against measured as SVG"),
    TEXT("software", software, "NAME", "predict with the constants of this software generation"),
    TEXT("calibration", calibration, "FILE", "predict with the constants of this file"),
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

static sm_status run_validate(const cli_call *call, sm_report *r, sm_error *err) {
    cli_validation v;
    const cli_validate_values *values = call->values;
    sm_status status = cli_validate_check_by(values->by, err);
    if (!status) status = cli_validation_read(call, &v, err);
    if (status) return status;
    cli_put_text(r, r->data, "command", "validate");
    if (call->common.csv) {
        cli_validate_table(r, &v);
        return SM_OK;
    }
    sm_report_heading(r, "%s", v.title);
    if (!values->summary) cli_validate_rows(r, &v);
    cli_validate_stats(r, &v);
    return SM_OK;
}

const cli_verb cli_validate = {
    .name = "validate",
    .summary = "measured rows against what is predicted for them",
    .arguments = "[DATA...]",
    .least = 0,
    .most = CLI_MAX_POSITIONALS,
    .options = validate_table,
    .values_bytes = sizeof(cli_validate_values),
    .without_system = true,
    .run = run_validate,
};
