/* validate: measured rows against what is predicted for them. */
#include "validate.h"
#include "scalemodel/page.h"
#include "verbs.h"

static const char *const kinds[SM_TRUTH_KIND_COUNT] = {"gemm",  "attention", "collective",
                                                       "memop", "training",  "inference"};
const char *const cli_qualities[3] = {"A", "B", "C"};

#define AT(member) offsetof(cli_validate_values, member)

static const cli_option validate_table[] = {
    {"data", 0, CLI_INPUT, AT(data), "DIR", .help = "folder of *.csv and *.jsonl to validate",
     .default_says = "the project's own"},
    {"chip", 0, CLI_TEXT, AT(chip), "CHIP", .help = "only rows of this chip"},
    {"source", 0, CLI_TEXT, AT(source), "TEXT",
     .help = "only rows whose source has this in its name"},
    {"kind", 0, CLI_CHOICE, AT(kind), "KIND", .help = "only rows of this kind",
     .words = {kinds, SM_TRUTH_KIND_COUNT}},
    {"quality", 0, CLI_CHOICE, AT(quality), "LETTER", .help = "only training rows of this quality",
     .words = {cli_qualities, 3}},
    {"all", 0, CLI_FLAG, AT(all),
     .help = "count repeated and fine-tuning rows in the statistics too"},
    {"by", 0, CLI_CHOICES, AT(by), "LIST", .help = "what to group by",
     .words = {cli_validate_groups, CLI_VALIDATE_GROUPS},
     .by_default = "kind,chip,source,model,parallelism"},
    {"worst", 0, CLI_WHOLE, AT(worst), "N", .help = "how many of the worst rows to list",
     .highest = 1000, .by_default = "10"},
    {"summary", 0, CLI_FLAG, AT(summary), .help = "with --json: the statistics without the rows"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .help = "draw predicted against measured as SVG"},
    CLI_CALIBRATION_OPTIONS(cli_validate_values, constants),
    {.name = NULL},
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
    sm_status status = cli_validation_read(call, &v, err);
    if (!status && v.n == 0)
        return sm_fail(err, SM_USAGE, "no row of %s is of that chip, source, kind and quality",
                       v.title);
    if (!status) status = answer(&v, r, (size_t)values->worst, err);
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
