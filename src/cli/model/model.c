/* model: the options of `model`. */
#include "scalemodel/io.h"
#include "program.h"
#include <string.h>

typedef struct model_options {
    int64_t seq;
    sm_dtype kv_dtype;
    bool program;
    int phase;
    const char *on, *plan;
    double batch;
    cli_calibration_values constants;
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
    {"on", 0, CLI_TEXT, offsetof(model_options, on), "SYSTEM",
     .help = "with --program: what a plan on these chips makes of each line"},
    {"plan", 0, CLI_TEXT, offsetof(model_options, plan), "PLAN",
     .help = "keys of that plan, as train and serve take them; the rest is searched"},
    {"batch", 0, CLI_NUMBER, offsetof(model_options, batch), "N",
     .help = "tokens of a global batch to train on; sequences that decode at once", .above = true,
     .highest = 1e12},
    CLI_CALIBRATION_OPTIONS(model_options, constants),
    CLI_MODEL_OPTIONS(model_options, from),
    {.name = NULL},
};

/* What a plan is asked for: the same questions as those of train and serve. */
typedef struct planned {
    sm_model model;
    sm_system system;
    sm_train_question train;
    sm_serve_question serve;
} planned;

static sm_status read_planned(const cli_call *call, planned *p, sm_program_question *q,
                              sm_error *err) {
    const model_options *o = call->values;
    const sm_calibration *constants = NULL;
    bool trains = o->phase == SM_TEXT_TRAIN;
    sm_status status = cli_read_model(call, &o->from, call->positional[0], &p->model, err);
    if (!status) status = cli_system(call, o->on, &p->system, err);
    if (!status && (o->constants.calibration || o->constants.software))
        status = cli_calibration(call, &p->system.chip, &o->constants, &constants, err);
    if (!status && trains && !(o->batch > 0))
        status = sm_fail(err, SM_USAGE, "a plan of training needs --batch TOKENS");
    if (status) return status;
    p->train = (sm_train_question){.size = sizeof p->train,
                                   .model = &p->model,
                                   .system = &p->system,
                                   .calibration = constants,
                                   .batch_tokens = o->batch,
                                   .seq = cli_given(call, &o->seq) ? (double)o->seq : 0,
                                   .plan = cli_text(call, &o->plan),
                                   .top = 1};
    p->serve = (sm_serve_question){.size = sizeof p->serve,
                                   .model = &p->model,
                                   .system = &p->system,
                                   .calibration = constants,
                                   .prompt = (double)o->seq,
                                   .context = (double)o->seq,
                                   .kv = {1, {o->kv_dtype}},
                                   .plan = cli_text(call, &o->plan),
                                   .batch = o->batch};
    q->architecture = p->model.architecture;
    q->train = &p->train;
    q->serve = &p->serve;
    return SM_OK;
}

static sm_status read_architecture(const cli_call *call, sm_program_question *q, sm_error *err) {
    const model_options *o = call->values;
    const sm_library *library;
    sm_source config;
    if (o->plan || o->batch > 0)
        return sm_fail(err, SM_USAGE, "--%s needs --on SYSTEM", o->plan ? "plan" : "batch");
    sm_status status = sm_io_model_source(call->positional[0], call->arena, &config, err);
    if (!status) status = cli_library(call, &o->from, &library, err);
    if (status) return status;
    return sm_architecture_new(library, &config, o->from.as, call->arena, &q->architecture, err);
}

static sm_status run_program(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    sm_program_question q = SM_QUESTION(sm_program_question);
    size_t length;
    const char *name = sm_model_name(call->positional[0], &length);
    planned *p = sm_arena_alloc(call->arena, sizeof *p);
    q.name = sm_arena_copy(call->arena, name, length);
    if (!q.name || !p) return sm_fail_memory(err);
    q.phase = (sm_text_phase)options->phase;
    q.seq = (double)options->seq;
    sm_status status = options->on || call->common.system_file ? read_planned(call, p, &q, err)
                                                               : read_architecture(call, &q, err);
    return status ? status : sm_answer_program(&q, r, err);
}

/* A family that is not known has the total of its checkpoint at least. */
static void tell_total(const sm_checkpoint_size *held, sm_error *err) {
    char count[32], bytes[32];
    size_t n = strlen(err->sentence);
    sm_format_bytes(bytes, sizeof bytes, held->bytes);
    sm_format_exact(count, sizeof count, held->elements);
    if (held->elements > 0)
        snprintf(err->sentence + n, sizeof err->sentence - n,
                 "; %s beside it holds %s parameters in %s", held->name, count, bytes);
    else
        snprintf(err->sentence + n, sizeof err->sentence - n, "; %s beside it holds %s", held->name,
                 bytes);
}

static sm_status run_model(const cli_call *call, sm_report *r, sm_error *err) {
    const model_options *options = call->values;
    if (call->positionals == 0 && call->common.explain)
        return sm_fail(err, SM_USAGE, "model --explain needs a MODEL");
    if (call->positionals == 0 && options->program)
        return sm_fail(err, SM_USAGE, "model --program needs a MODEL");
    if (options->program) return run_program(call, r, err);
    if (options->on || options->plan || options->batch > 0 || call->common.system_file)
        return sm_fail(err, SM_USAGE, "--on, --plan, --batch and --system go with --program");
    sm_model_question q = SM_QUESTION(sm_model_question);
    sm_model model;
    q.explain = call->common.explain;
    if (call->positionals == 0) return sm_answer_model(&q, r, err);
    sm_status status = cli_read_model(call, &options->from, call->positional[0], &model, err);
    sm_checkpoint_size held = {0};
    sm_error refused = *err;
    const char *name = call->positional[0];
    if ((!status || status == SM_BAD_INPUT) && !sm_catalogue_find(name, strlen(name))) {
        sm_status looked = sm_io_checkpoint_beside(name, call->arena, &held, err);
        if (looked) return looked;
        *err = refused;
    }
    if (held.name) q.checkpoint = &held;
    if (status && held.name) tell_total(&held, err);
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
    .notes = "MODEL is a name of the catalogue or the path of a Hugging Face config.json;\n"
             "without it the catalogue is listed.\n\n"
             "example: scalemodel model llama-3.1-70b --seq 8192\n",
    .run = run_model,
};
