/* collective: the options of `collective`. */
#include "program.h"
#include <string.h>

typedef struct collective_options {
    sm_collective_question question;
    const char *on, *ragged;
    cli_calibration_values constants;
} collective_options;
#define AT(member) offsetof(collective_options, member)

static const cli_option collective_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM", .help = "the chips: tpu-v5e:8x4, h100-sxm:128x8, ..."},
    {"mesh", 0, CLI_SOURCE, AT(question.mesh), "MESH",
     .help = "named axes: X=8,Y=4; without it one axis covers the system"},
    {"over", 0, CLI_SOURCE, AT(question.over), "AXES",
     .help = "the axes to communicate over: Y, XY (default: those of the array, or all)"},
    {"dims", 0, CLI_SOURCE, AT(question.dims), "SIZES",
     .help = "sizes of the indices: E=2048,F=8k; ranges sweep"},
    {"ragged", 0, CLI_TEXT, AT(ragged), "FRACTION",
     .help = "all-to-all: the part of the bytes that really moves, 0.5 or 4/8"},
    {"top-k", 0, CLI_COUNT, AT(question.top_k), "K",
     .help = "all-to-all of tokens routed to K experts each", .lowest = 1, .highest = 1 << 20},
    {"expert-groups", 0, CLI_COUNT, AT(question.expert_groups), "Z",
     .help = "with --top-k: groups the experts are spread over", .lowest = 1, .highest = 1 << 20,
     .default_says = "the members"},
    CLI_CALIBRATION_OPTIONS(collective_options, constants),
    {.name = NULL},
};

static sm_status read_fraction(const char *text, double *fraction, sm_error *err) {
    sm_source source = sm_source_of("--ragged", text);
    size_t slash = strcspn(text, "/");
    double top = 0.0, bottom = 1.0;
    sm_status status = sm_quantity_parse(&source, (sm_span){0, slash}, SM_Q_COUNT, &top, err);
    if (!status && text[slash])
        status = sm_quantity_parse(&source, (sm_span){slash + 1, source.length - slash - 1},
                                   SM_Q_COUNT, &bottom, err);
    if (status) return status;
    if (!(bottom > 0.0 && top > 0.0 && top <= bottom))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "the part that moves is above 0 and at most 1");
    *fraction = top / bottom;
    return SM_OK;
}

/* --ragged, or --top-k with --expert-groups. */
static sm_status read_ragged(collective_options *o, sm_error *err) {
    sm_collective_question *q = &o->question;
    bool any = o->ragged || q->top_k > 0.0 || q->expert_groups > 0.0;
    if (any && q->op != SM_ALL_TO_ALL)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k are for all-to-all only");
    if (o->ragged && q->top_k > 0.0)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k exclude each other");
    if (q->expert_groups > 0.0 && !(q->top_k > 0.0))
        return sm_fail(err, SM_USAGE, "--expert-groups needs --top-k");
    return o->ragged ? read_fraction(o->ragged, &q->ragged, err) : SM_OK;
}

static sm_status run_collective(const cli_call *call, sm_report *r, sm_error *err) {
    collective_options *o = call->values;
    sm_collective_question *q = &o->question;
    sm_system system;
    q->size = sizeof *q;
    q->system = &system;
    q->array = sm_source_of("ARRAY", call->positional[1]);
    q->explain = call->common.explain;
    sm_status status = cli_collective_read(call->positional[0], &q->op, err);
    if (!status) status = cli_system(call, o->on, &system, err);
    if (!status) status = cli_constants(call, &system.chip, &o->constants, &q->calibration, err);
    if (!status) status = read_ragged(o, err);
    return status ? status : sm_answer_collective(q, r, err);
}

const cli_verb cli_collective = {
    .name = "collective",
    .summary = "the time of a collective on a mesh, algorithm by algorithm",
    .arguments = "OP ARRAY",
    .options = collective_table,
    .columns = "algorithm,time_s.expected,bytes,members,time_s.lower,time_s.upper,"
               "latency_s,bound",
    .values_bytes = sizeof(collective_options),
    .notes = "OP is all-gather, reduce-scatter, all-reduce, all-to-all, permute, broadcast or\n"
             "reduce. ARRAY is in the book's notation, 'bf16 A[E_Y,F]', or a size: 64MB,\n"
             "1kB..1GB.\n\n"
             "example: scalemodel collective all-gather 'A[E_Y,F]' --over Y \\\n"
             "           --dims E=2048,F=8192 --mesh X=8,Y=4 --on tpu-v5e:8x4\n",
    .run = run_collective,
};
