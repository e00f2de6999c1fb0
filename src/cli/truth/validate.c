/* validate: measured rows against what is predicted for them. */
#include "validate.h"
#include "scalemodel/page.h"
#include "verbs.h"

enum { USUAL_WORST = 10, MOST_WORST = 1000 };

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

/* Everything but the rows themselves. */
static sm_status add_page(sm_report *r, const cli_validation *v, size_t worst, sm_error *err) {
    sm_report_heading(r, "%s", v->title);
    cli_validate_stats(r, v);
    cli_validate_layouts(r, v);
    cli_validate_memory(r, v);
    cli_validate_suspects(r, v);
    return cli_validate_worst(r, v, worst, err);
}

static sm_status answer(const cli_validation *v, sm_report *r, size_t worst, sm_error *err) {
    sm_put_text(r, r->data, "command", "validate");
    if (v->call->common.csv) cli_validate_table(r, v);
    if (v->call->common.csv) return SM_OK;
    if (v->call->common.json && !v->values->summary) cli_validate_rows(r, v);
    return add_page(r, v, worst, err);
}

static sm_status run_validate(const cli_call *call, sm_report *r, sm_error *err) {
    cli_validation v;
    const cli_validate_values *values = call->values;
    int64_t worst = USUAL_WORST;
    sm_status status = cli_whole("--worst", values->worst, 0, MOST_WORST, &worst, err);
    if (!status) status = cli_validate_check_by(values->by, err);
    if (!status) status = cli_validation_read(call, &v, err);
    if (!status && v.n == 0)
        return sm_fail(err, SM_USAGE, "no row of %s is of that chip, source, kind and quality",
                       v.title);
    if (!status) status = answer(&v, r, (size_t)worst, err);
    if (!status && values->plot) status = cli_validate_plot(&v, values->plot, err);
    return status;
}

const cli_verb cli_validate = {
    .name = "validate",
    .summary = "measured rows against what is predicted for them",
    .arguments = "[DATA...]",
    .least = 0,
    .most = CLI_MAX_POSITIONALS,
    .options = validate_table,
    .values_bytes = sizeof(cli_validate_values),
    .notes = "DATA is CSV with a header or JSON lines: matmuls, attention, collectives,\n"
             "memory-bound operations, training steps. Without it, the rows that come with the\n"
             "program. An error is expected / measured - 1. Rows of chips that the file of\n"
             "--system describes are predicted for those: so are the rows that --record of\n"
             "run train, run matmul and run collective writes of the machine at hand.\n\n"
             "example: scalemodel validate data/truth/gemm.csv --by chip --plot gemm.svg\n",
    .run = run_validate,
};
