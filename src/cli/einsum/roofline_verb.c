/* roofline: the options of `roofline`. */
#include "program.h"

typedef struct roofline_options {
    sm_roofline_question question;
    const char *on, *plot;
    unsigned level; /* of level_names */
    cli_list critical;
    cli_calibration_values constants;
} roofline_options;
#define AT(member) offsetof(roofline_options, member)

static const char *const level_names[] = {"hbm", "memory", "vmem", "l2", "onchip", "pcie", "host"};
static const sm_memory_level levels[] = {SM_MEMORY_HBM,    SM_MEMORY_HBM,    SM_MEMORY_ONCHIP,
                                         SM_MEMORY_ONCHIP, SM_MEMORY_ONCHIP, SM_MEMORY_HOST,
                                         SM_MEMORY_HOST};
enum { LEVELS = sizeof levels / sizeof *levels };

static const cli_option roofline_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "CHIP", .help = "the chip: a name of the catalogue"},
    {"dims", 0, CLI_SOURCE, AT(question.dims), "SIZES",
     .help = "sizes of the indices: B=128,D=4k; B=1..4096 doubles, B=64..4096:64 steps"},
    {"compute", 0, CLI_DTYPE, AT(question.compute), "DTYPE", .optional = true,
     .help = "multiply in this type", .default_says = "the wider one of the operands"},
    {"critical", 0, CLI_LIST, AT(critical), "INDEX",
     .help = "the size of this index at which math and memory take equally long; may be repeated"},
    {"level", 0, CLI_CHOICE, AT(level), "LEVEL",
     .help = "where the arrays live, by the chip's name for it or the general one",
     .words = {level_names, LEVELS}, .by_default = "hbm"},
    {"plot", 0, CLI_OUTPUT, AT(plot), "FILE", .gets = CLI_CHART,
     .help = "draw the roofline with what is expected as SVG"},
    CLI_CALIBRATION_OPTIONS(roofline_options, constants),
    {.name = NULL},
};

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
    if (!status) status = cli_constants(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_roofline(q, r, err);
}

const cli_verb cli_roofline = {
    .name = "roofline",
    .summary = "an einsum on one chip: FLOPs, bytes, times, bound, critical size",
    .arguments = "EINSUM",
    .options = roofline_table,
    .columns = "bound,time_s.expected,intensity,flops,bytes,time_s.lower,time_s.upper",
    .values_bytes = sizeof(roofline_options),
    .notes = "example: scalemodel roofline 'bf16[B,D] int8[D,F] -> bf16[B,F]' --on tpu-v5e \\\n"
             "           --dims D=4096,F=4096 --critical B\n",
    .run = run_roofline,
};
