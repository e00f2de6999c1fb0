/* reshard: the options of `reshard`. */
#include "scalemodel/io.h"
#include "program.h"
#include <string.h>

typedef struct reshard_options {
    sm_reshard_question question;
    const char *on;
    cli_calibration_values constants;
} reshard_options;
#define AT(member) offsetof(reshard_options, member)

static const cli_option reshard_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM",
     .help = "the chips: tpu-v5e:8x4, h100-sxm:8; a chip alone: as many as the shardings have"},
    {"from", 0, CLI_SOURCE, AT(question.from), "SHARDING",
     .help = "XLA's sharding of the array: {devices=[2,1,4]<=[8]}; ARRAY is then its shape"},
    {"to", 0, CLI_SOURCE, AT(question.to), "SHARDING", .help = "the one that is wanted"},
    {"top", 0, CLI_INT, AT(question.top), "N", .help = "of the messages of a log", .lowest = 1,
     .highest = 256, .by_default = "12"},
    CLI_CALIBRATION_OPTIONS(reshard_options, constants),
    {.name = NULL},
};

static sm_status run_reshard(const cli_call *call, sm_report *r, sm_error *err) {
    reshard_options *o = call->values;
    sm_reshard_question *q = &o->question;
    const char *given = call->positional[0];
    sm_system system;
    sm_status status = cli_system(call, o->on, &system, err);
    q->size = sizeof *q;
    q->system = &system;
    if (!status && q->from.text) status = cli_need(call, &q->to, err);
    if (!status && q->to.text) status = cli_need(call, &q->from, err);
    if (!status && !q->from.text && !strstr(given, "rematerialization"))
        status = sm_io_read_packed(given, SM_IO_DATA_BYTES, call->arena, &q->text, err);
    else q->text = sm_source_of("ARRAY", given);
    if (!status) status = cli_constants(call, &system.chip, &o->constants, &q->calibration, err);
    return status ? status : sm_answer_reshard(q, r, err);
}

const cli_verb cli_reshard = {
    .name = "reshard",
    .summary = "what an involuntary rematerialization of XLA costs, what avoids it",
    .arguments = "LOG",
    .options = reshard_table,
    .values_bytes = sizeof(reshard_options),
    .notes = "LOG is a file with what XLA printed (\"Involuntary full rematerialization\"), or\n"
             "one such line; with --from and --to the shape of an array: bf16[16,4096].\n\n"
             "example: scalemodel reshard 'bf16[16,4096]' --from '{devices=[8,1]<=[8]}' \\\n"
             "           --to '{devices=[1,8]<=[8]}' --on tpu-v5e:2x4\n",
    .run = run_reshard,
};
