/* matmul: the options of `matmul`. */
#include "scalemodel/lowering.h"
#include "program.h"

typedef struct matmul_options {
    sm_matmul_question question;
    const char *on;
    cli_calibration_values constants;
} matmul_options;
#define AT(member) offsetof(matmul_options, member)

static const cli_option matmul_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM", .help = "the chips: tpu-v5e:4x4, h100-sxm:128x8, ..."},
    {"mesh", 0, CLI_SOURCE, AT(question.mesh), "MESH",
     .help = "named axes: X=4,Y=4; X=4@0 places by level", .required = true},
    {"dims", 0, CLI_SOURCE, AT(question.dims), "SIZES",
     .help = "sizes of the indices: I=1024,J=4k,K=8k"},
    {"compute", 0, CLI_DTYPE, AT(question.compute), "DTYPE", .optional = true,
     .help = "multiply in this type", .default_says = "the wider one of the operands"},
    {"top", 0, CLI_INT, AT(question.top), "N",
     .help = "alternatives to show; the JSON has all when it is not given", .lowest = 1,
     .highest = SM_MOST_ALTERNATIVES, .by_default = "8"},
    CLI_CALIBRATION_OPTIONS(matmul_options, constants),
    {.name = NULL},
};

static sm_status run_matmul(const cli_call *call, sm_report *r, sm_error *err) {
    matmul_options *o = call->values;
    sm_matmul_question *q = &o->question;
    sm_system system;
    q->size = sizeof *q;
    q->system = &system;
    q->einsum = sm_source_of("EINSUM", call->positional[0]);
    if (!cli_given(call, &q->top)) q->top = 0;
    q->explain = call->common.explain;
    sm_status status = cli_system(call, o->on, &system, err);
    if (!status) status = cli_constants(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_matmul(q, r, err);
}

const cli_verb cli_matmul = {
    .name = "matmul",
    .summary = "a sharded einsum: its collectives, every alternative, the best",
    .arguments = "EINSUM",
    .options = matmul_table,
    .columns = "bound,time_s.expected,time_s.lower,time_s.upper,wire_bytes_per_chip,"
               "peak_bytes_per_chip",
    .values_bytes = sizeof(matmul_options),
    .notes = "example: scalemodel matmul 'A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]' --mesh X=4,Y=4 \\\n"
             "           --dims I=8192,J=8192,K=8192 --on tpu-v5e:4x4\n",
    .run = run_matmul,
};
