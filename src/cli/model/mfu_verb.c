/* mfu_verb: the options of `mfu`. */
#include "program.h"

typedef struct mfu_options {
    sm_mfu_question question;
    sm_model model;
    sm_system system;
    cli_list codebases;
    cli_model_values read_by;
} mfu_options;
#define ASK(member) offsetof(mfu_options, question.member)

static const cli_option mfu_table[] = {
    {"from", 0, CLI_SOURCE, ASK(from), "FIGURE",
     .help = "whose count and what was told: 'maxtext@2025-06 46 %', 'causal 420 TFLOP/s'; "
             "'3.2 s' and '3.2k tokens/s' of a chip need no count",
     .default_says = "none: what each counts"},
    {"seq", 0, CLI_COUNT, ASK(seq), "T", .help = "tokens of a sequence", .lowest = 1,
     .highest = 1e9, .default_says = "4096, or what the model was made for where that is less"},
    {"batch", 0, CLI_NUMBER, ASK(batch_tokens), "TOKENS", .help = "of a step of all chips: 4M",
     .above = true, .highest = 1e15, .default_says = "a sequence on each chip"},
    {"dtype", 0, CLI_DTYPE, ASK(dtype), "DTYPE",
     .help = "what matmuls compute in: whose peak a share is of", .by_default = "bf16"},
    CLI_CODEBASE_OPTION(mfu_options, codebases),
    CLI_MODEL_OPTIONS(mfu_options, read_by),
    {.name = NULL},
};

static sm_status run_mfu(const cli_call *call, sm_report *r, sm_error *err) {
    mfu_options *o = call->values;
    sm_mfu_question *q = &o->question;
    q->size = sizeof *q;
    q->model = &o->model;
    q->system = &o->system;
    q->explain = call->common.explain;
    sm_status status = cli_read_model(call, &o->read_by, call->positional[0], &o->model, err);
    if (!status) status = cli_system(call, call->positional[1], &o->system, err);
    if (!status) status = cli_codebases(call, &o->codebases, &q->codebases, &q->n_codebases, err);
    return status ? status : sm_answer_mfu(q, r, err);
}

const cli_verb cli_mfu = {
    .name = "mfu",
    .summary = "whose MFU? a told figure in seconds, and in every framework's count",
    .arguments = "MODEL SYSTEM",
    .options = mfu_table,
    .values_bytes = sizeof(mfu_options),
    .columns = "step_time_s,tokens_per_s_per_chip",
    .notes = "example: scalemodel mfu --from 'maxtext@2025-06 46 %' llama-3.1-70b \\\n"
             "           tpu-v5p:8x8x8\n",
    .run = run_mfu,
};
