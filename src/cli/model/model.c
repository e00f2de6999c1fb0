/* model: the options of `model`. */
#include "scalemodel/io.h"
#include "program.h"

/* The questions, what they point to, and what else is asked. A plan is asked for as of train and
 * serve. */
typedef struct values {
    sm_model_question question;
    sm_program_question printed;
    sm_train_question train;
    sm_serve_question serve;
    sm_model model;
    sm_system system;
    bool program;
    const char *on;
    double batch;
    cli_calibration_values constants;
    cli_model_values from;
} model_options;

static sm_status read_planned(const cli_call *call, model_options *o, sm_error *err) {
    const sm_calibration *constants = NULL;
    const sm_source plan = o->train.plan;
    const double seq = o->question.seq;
    sm_status status = cli_read_model(call, &o->from, call->positional[0], &o->model, err);
    if (!status) status = cli_system(call, o->on, &o->system, err);
    if (!status) status = cli_calibration(call, &o->system.chip, &o->constants, &constants, err);
    if (!status && o->printed.phase == SM_TEXT_TRAIN && !(o->batch > 0))
        status = sm_fail(err, SM_USAGE, "a plan of training needs --batch TOKENS");
    if (status) return status;
    o->train = (sm_train_question){.size = sizeof o->train,
                                   .model = &o->model,
                                   .system = &o->system,
                                   .calibration = constants,
                                   .batch_tokens = o->batch,
                                   .seq = cli_given(call, &o->question.seq) ? seq : 0,
                                   .plan = plan,
                                   .top = 1};
    o->serve = (sm_serve_question){.size = sizeof o->serve,
                                   .model = &o->model,
                                   .system = &o->system,
                                   .calibration = constants,
                                   .prompt = seq,
                                   .context = seq,
                                   .kv = {1, {o->question.kv}},
                                   .plan = plan,
                                   .batch = o->batch};
    o->printed.architecture = o->model.architecture;
    o->printed.train = &o->train;
    o->printed.serve = &o->serve;
    return SM_OK;
}

static sm_status read_architecture(const cli_call *call, model_options *o, sm_error *err) {
    const sm_library *library;
    sm_source config;
    if (o->train.plan.text || o->batch > 0)
        return sm_fail(err, SM_USAGE, "--%s needs --on SYSTEM",
                       o->train.plan.text ? "plan" : "batch");
    sm_status status = sm_io_model_source(call->positional[0], call->arena, &config, err);
    if (!status) status = cli_library(call, &o->from, &library, err);
    if (status) return status;
    return sm_architecture_new(library, &config, o->from.as, call->arena, &o->printed.architecture,
                               err);
}

static sm_status run_program(const cli_call *call, sm_report *r, sm_error *err) {
    model_options *o = call->values;
    sm_program_question *q = &o->printed;
    size_t length;
    const char *name = sm_model_name(call->positional[0], &length);
    q->size = sizeof *q;
    q->seq = o->question.seq;
    q->name = sm_arena_copy(call->arena, name, length);
    if (!q->name) return sm_fail_memory(err);
    sm_status status = o->on || call->common.system_file ? read_planned(call, o, err)
                                                         : read_architecture(call, o, err);
    return status ? status : sm_answer_program(q, r, err);
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
    model_options *o = call->values;
    sm_model_question *q = &o->question;
    const char *name = call->positional[0];
    if (!call->positionals && (call->common.explain || o->program))
        return sm_fail(err, SM_USAGE, "model --%s needs a MODEL",
                       call->common.explain ? "explain" : "program");
    if (o->program) return run_program(call, r, err);
    if (o->on || o->train.plan.text || o->batch > 0 || call->common.system_file)
        return sm_fail(err, SM_USAGE, "--on, --plan, --batch and --system go with --program");
    q->size = sizeof *q;
    q->explain = call->common.explain;
    if (!call->positionals) return sm_answer_model(q, r, err);
    sm_status status = cli_read_model(call, &o->from, name, &o->model, err);
    sm_checkpoint_size held = {0};
    sm_error refused = *err;
    if ((!status || status == SM_BAD_INPUT) && !sm_catalogue_find(name, strlen(name))) {
        sm_status looked = sm_io_checkpoint_beside(name, call->arena, &held, err);
        if (looked) return looked;
        *err = refused;
    }
    if (held.name) q->checkpoint = &held;
    if (status && held.name) tell_total(&held, err);
    q->model = &o->model;
    return status ? status : sm_answer_model(q, r, err);
}

const cli_verb cli_model = {
    .about = &verbs_model,
    CLI_VALUES(AT("seq", question.seq), AT("kv-dtype", question.kv), AT("program", program),
               AT("phase", printed.phase), AT("on", on), AT("plan", train.plan), AT("batch", batch),
               CLI_CALIBRATION_PLACES(constants), CLI_MODEL_PLACES(from), CLI_SOURCE_PLACES(from)),
    .run = run_model,
};
