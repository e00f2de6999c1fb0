/* model: the options of `model`. */
#include "scalemodel/answer.h"
#include "scalemodel/io.h"
#include "verbs.h"

typedef struct model_options {
    int64_t seq;
    sm_dtype kv_dtype;
} model_options;

static const cli_option model_table[] = {
    {"seq", 0, CLI_WHOLE, offsetof(model_options, seq), "T",
     .help = "tokens in a sequence: sets the work of attention", .lowest = 1, .highest = 1e9,
     .by_default = "4096"},
    {"kv-dtype", 0, CLI_DTYPE, offsetof(model_options, kv_dtype), "DTYPE",
     .help = "type of the KV cache", .by_default = "bf16"},
    {.name = NULL},
};

static sm_status run_model(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    if (call->positionals == 0 && call->common.explain)
        return sm_fail(err, SM_USAGE, "model --explain needs a MODEL");
    sm_model_question q = SM_QUESTION(sm_model_question);
    sm_model model;
    q.explain = call->common.explain;
    if (call->positionals == 0) return sm_answer_model(&q, r, err);
    sm_status status = sm_io_model_load(call->positional[0], call->arena, &model, err);
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
