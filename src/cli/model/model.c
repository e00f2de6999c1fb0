/* model: the options of `model`. */
#include "scalemodel/answer.h"
#include "scalemodel/io.h"
#include "verbs.h"

typedef struct model_options {
    const char *seq, *kv_dtype;
} model_options;

static const cli_option model_table[] = {
    {"seq", 0, CLI_TEXT, offsetof(model_options, seq), "T",
     "tokens in a sequence (4096): sets the work of attention"},
    {"kv-dtype", 0, CLI_TEXT, offsetof(model_options, kv_dtype), "DTYPE",
     "type of the KV cache (bf16)"},
    {NULL, 0, CLI_FLAG, 0, NULL, NULL},
};

static sm_status run_model(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    if (call->positionals == 0 && call->common.explain)
        return sm_fail(err, SM_USAGE, "model --explain needs a MODEL");
    sm_model_question q = SM_QUESTION(sm_model_question);
    sm_model model;
    int64_t seq = 0;
    q.explain = call->common.explain;
    if (call->positionals == 0) return sm_answer_model(&q, r, err);
    sm_status status = cli_whole("--seq", options->seq, 1, INT64_C(1) << 40, &seq, err);
    if (!status) status = cli_dtype("--kv-dtype", options->kv_dtype, &q.kv, err);
    if (!status) status = sm_io_model_load(call->positional[0], call->arena, &model, err);
    q.model = &model;
    q.seq = (double)seq;
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
