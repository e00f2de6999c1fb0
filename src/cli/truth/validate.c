/* validate: measured rows against what is predicted for them. */
#include "validate.h"
#include "picture.h"
#include "scalemodel/io.h"
#include "verbs.h"

static const char *const kinds[SM_TRUTH_KIND_COUNT] = {"gemm",  "attention", "collective",
                                                       "memop", "training",  "inference"};
static const char *const qualities[3] = {"A", "B", "C"};

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
     .words = {qualities, 3}},
    {"all", 0, CLI_FLAG, AT(all),
     .help = "count repeated and fine-tuning rows in the statistics too"},
    {"by", 0, CLI_CHOICES, AT(by), "LIST", .help = "what to group by",
     .words = {sm_validate_groups, SM_VALIDATE_GROUPS},
     .by_default = "kind,chip,source,model,parallelism"},
    {"worst", 0, CLI_WHOLE, AT(worst), "N", .help = "how many of the worst rows to list",
     .highest = 1000, .by_default = "10"},
    {"summary", 0, CLI_FLAG, AT(summary), .help = "with --json: the statistics without the rows"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .help = "draw predicted against measured as SVG"},
    CLI_CALIBRATION_OPTIONS(cli_validate_values, constants),
    {.name = NULL},
};

static sm_status find_files(const cli_call *call, sm_validate_question *q, sm_error *err) {
    const cli_validate_values *o = call->values;
    const char **found = NULL;
    q->file = call->positional;
    q->files = (size_t)call->positionals;
    if (q->files && o->data)
        return sm_fail(err, SM_USAGE, "--data names a folder to validate in place of files");
    if (q->files) return SM_OK;
    sm_status status = cli_truth_files(call, o->data, &found, &q->files, err);
    q->file = found;
    return status;
}

static sm_status read_constants(const cli_call *call, sm_validate_question *q, sm_error *err) {
    const cli_validate_values *o = call->values;
    sm_source source;
    sm_calibration *list = NULL;
    q->software = cli_text(call, &o->constants.software);
    if (!o->constants.calibration) return SM_OK;
    sm_status status = sm_io_read(o->constants.calibration, call->arena, &source, err);
    if (!status) status = sm_calibration_parse(&source, call->arena, &list, &q->n_constants, err);
    q->constants = list;
    return status;
}

static sm_status run_validate(const cli_call *call, sm_report *r, sm_error *err) {
    const cli_validate_values *o = call->values;
    sm_chip *own = NULL;
    sm_validate_question q = SM_QUESTION(sm_validate_question);
    q.chip = o->chip;
    q.source = o->source;
    q.kind = cli_given(call, &o->kind) ? &o->kind : NULL;
    q.quality = cli_given(call, &o->quality) ? qualities[o->quality] : NULL;
    q.n_by = cli_given(call, &o->by) ? o->by.n : 0;
    q.by = o->by.word;
    q.worst = o->worst > 0 ? (int)o->worst : -1;
    q.all = o->all;
    q.rows = call->common.json && !o->summary;
    q.table = call->common.csv;
    q.explain = call->common.explain;
    q.plot = o->plot != NULL;
    sm_status status = read_constants(call, &q, err);
    if (!status) status = cli_system_file(call, &own, &q.n_own, err);
    q.own = own;
    if (!status) status = find_files(call, &q, err);
    if (!status) status = sm_answer_validate(&q, r, err);
    return !status && r->chart ? cli_write_chart(r->chart, o->plot, err) : status;
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
