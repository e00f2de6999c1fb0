/* model: the options of `model`. */
#include "scalemodel/answer.h"
#include "scalemodel/io.h"
#include "verbs.h"
#include <string.h>

typedef struct model_options {
    int64_t seq;
    sm_dtype kv_dtype;
    bool program;
    int phase;
    cli_model_values from;
} model_options;

static const char *const phases[] = {"train", "prefill", "decode"};

static const cli_option model_table[] = {
    {"seq", 0, CLI_WHOLE, offsetof(model_options, seq), "T",
     .help = "tokens in a sequence: sets the work of attention", .lowest = 1, .highest = 1e9,
     .by_default = "4096"},
    {"kv-dtype", 0, CLI_DTYPE, offsetof(model_options, kv_dtype), "DTYPE",
     .help = "type of the KV cache", .by_default = "bf16"},
    {"program", 0, CLI_FLAG, offsetof(model_options, program), NULL,
     .help = "print the model as a program: its layers line by line"},
    {"phase", 0, CLI_CHOICE, offsetof(model_options, phase), "PHASE",
     .help = "of which step the program is", .words = {phases, 3}, .by_default = "train"},
    CLI_MODEL_OPTIONS(model_options, from),
    {.name = NULL},
};

static sm_status run_program(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    sm_program_question q = SM_QUESTION(sm_program_question);
    sm_source config;
    const sm_library *library;
    sm_status status = sm_io_model_source(call->positional[0], call->arena, &config, err);
    if (!status) status = cli_library(call, &options->from, &library, err);
    if (!status)
        status = sm_architecture_new(library, &config, options->from.as, call->arena,
                                     &q.architecture, err);
    if (status) return status;
    size_t length;
    const char *name = sm_model_name(call->positional[0], &length);
    q.name = sm_arena_copy(call->arena, name, length);
    if (!q.name) return sm_fail_memory(err);
    q.phase = (sm_text_phase)options->phase;
    q.seq = (double)options->seq;
    return sm_answer_program(&q, r, err);
}

static sm_status run_model(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    if (call->positionals == 0 && call->common.explain)
        return sm_fail(err, SM_USAGE, "model --explain needs a MODEL");
    if (call->positionals == 0 && options->program)
        return sm_fail(err, SM_USAGE, "model --program needs a MODEL");
    if (options->program) return run_program(call, r, err);
    sm_model_question q = SM_QUESTION(sm_model_question);
    sm_model model;
    q.explain = call->common.explain;
    if (call->positionals == 0) return sm_answer_model(&q, r, err);
    sm_status status = cli_read_model(call, &options->from, call->positional[0], &model, err);
    q.model = &model;
    q.seq = (double)options->seq;
    q.kv = options->kv_dtype;
    return status ? status : sm_answer_model(&q, r, err);
}

const cli_verb cli_model = {
    .name = "model",
    .summary = "a model's parameters by component, FLOPs per token, KV cache",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .options = model_table,
    .values_bytes = sizeof(model_options),
    .without_system = true,
    .notes = "MODEL is a name of the catalogue or the path of a Hugging Face config.json;\n"
             "without it the catalogue is listed.\n\n"
             "example: scalemodel model llama-3.1-70b --seq 8192\n",
    .run = run_model,
};
