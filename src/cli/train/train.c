/* train: the best plans to train a model on a system, or the price of one plan. */
#include "train.h"
#include "answer.h"
#include "program.h"

static sm_status run_train(const cli_call *call, sm_report *r, sm_error *err) {
    cli_training *t = sm_arena_alloc(call->arena, sizeof *t);
    if (!t) return sm_fail_memory(err);
    sm_status status = cli_training_read(call, t, err);
    if (status) return status;
    cli_watch watch;
    cli_watch_begin(&watch, call, &t->question);
    sm_status answer = sm_answer_train(&t->question, r, err);
    cli_watch_end(&watch);
    return answer;
}

const cli_verb cli_train = {
    .name = "train",
    .summary = "the best plans to train a model on a system: time, memory, cost",
    .arguments = "[MODEL]",
    .least = 0,
    .most = 1,
    .options = cli_train_options,
    .columns = "plan,step_time_s.expected,mfu,chips,step_time_s.lower,"
               "tokens_per_s_per_chip,memory_bytes.total,bound,train_time_s,cost_usd",
    .values_bytes = sizeof(cli_train_values),
    .plans = 1u << SM_PLAN_TRAINING,
    .notes = "example: scalemodel train llama-3.1-70b --on tpu-v5p:16x20x28 --batch 4M \\\n"
             "           --seq 4096 --tokens 15T\n",
    .tells_progress = true,
    .run = run_train,
};
