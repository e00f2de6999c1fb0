/* serve: the frontier of latency, throughput and cost at which a model can be served, or one point
 * of it. */
#include "program.h"

/* The question, what it points to, and what else is asked. */
typedef struct values {
    sm_serve_question question;
    sm_model model;
    sm_system system;         /* the first of several */
    const sm_system *systems; /* all of them */
    cli_speculation_values speculate;
    cli_engine_values engine;
    const char *on, *plot, *prefill_on, *decode_on;
    sm_system prefill_system;
    sm_range chips;
    cli_calibration_values constants;
    const sm_calibration *calibrations[SM_MAX_COMPARED];
    const char *softwares[SM_MAX_COMPARED];
    cli_model_values read_by;
    cli_recipe_values recipe_values;
    sm_recipe recipe;
} serving;

/* ---- the question ---- */

/* What is of one system cannot be asked of several. */
static sm_status check_one_system(const cli_call *call, const serving *v, sm_error *err) {
    const sm_serve_question *q = &v->question;
    const char *what = v->plot                ? "--plot draws"
                       : call->common.explain ? "--explain derives"
                       : q->emit              ? "--emit prints the command of"
                       : q->disaggregated     ? "--disaggregated splits"
                                              : NULL;
    if (q->n_systems > 0 && what)
        return sm_fail(err, SM_USAGE, "%s one system, and --on names several", what);
    return SM_OK;
}

static sm_status read_rest(const cli_call *call, serving *v, sm_error *err) {
    sm_serve_question *q = &v->question;
    const sm_system *least = &v->system;
    if (q->prefix >= q->prompt)
        return cli_refuse(call, &q->prefix, err,
                          "the prompt has only %.0f tokens, and one must be new", q->prompt);
    sm_status status = check_one_system(call, v, err);
    if (!status) status = cli_speculation(call, &v->speculate, &v->read_by, &q->speculation, err);
    if (!status) status = cli_engine(call, &v->engine, &v->constants.software, &q->engine, err);
    q->software = v->constants.software;
    bool constants = v->constants.calibration || v->constants.software;
    for (int i = 0; i < (q->n_systems > 0 ? q->n_systems : 1) && !status; i++) {
        const sm_system *system = i ? &v->systems[i] : &v->system;
        if (system->chips < least->chips) least = system;
        if (constants)
            status =
                cli_serving_constants(call, &system->chip, &v->constants, &v->calibrations[i], err);
    }
    if (constants) q->calibration = v->calibrations[0];
    if (constants && q->n_systems > 0) q->calibrations = v->calibrations;
    if (status) return status;
    if (v->chips.last > least->chips)
        return cli_refuse(call, &v->chips, err, "%s has %d %s", least->text, least->chips,
                          least->chips == 1 ? "chip" : "chips");
    q->chips_least = (int)v->chips.first;
    q->chips_most = (int)v->chips.last;
    return SM_OK;
}

/* Prefill and decode on chips of two kinds. */
static sm_status read_pools(const cli_call *call, serving *v, sm_error *err) {
    sm_serve_question *q = &v->question;
    if (!v->prefill_on) return SM_OK;
    if (q->n_systems > 0)
        return sm_fail(err, SM_USAGE,
                       "--prefill-on has one system to decode on, and --on names "
                       "several");
    q->disaggregated = true;
    q->prefill_system = &v->prefill_system;
    sm_status status = cli_system(call, v->prefill_on, &v->prefill_system, err);
    return status ? status
                  : cli_serving_constants(call, &v->prefill_system.chip, &v->constants,
                                          &q->prefill_calibration, err);
}

static sm_status read_job(const cli_call *call, serving *v, sm_error *err) {
    if (v->decode_on && (v->on || !v->prefill_on))
        return sm_fail(err, SM_USAGE, "--decode-on stands beside --prefill-on, in place of --on");
    if (v->decode_on) v->on = v->decode_on;
    if (!call->positionals)
        return sm_fail(err, SM_USAGE, "serve needs MODEL, or --from with the command in use");
    sm_status status = cli_read_model(call, &v->read_by, call->positional[0], &v->model, err);
    int n;
    if (!status) status = cli_systems(call, &v->on, &v->systems, &n, err);
    if (status) return status;
    v->system = v->systems[0];
    v->question.systems = v->systems;
    v->question.n_systems = n > 1 ? n : 0;
    return SM_OK;
}

/* A type that the command says, where no option does. */
static void take_dtype(const char *name, sm_dtype_list *list) {
    if (!name || !sm_dtype_parse(name, strlen(name), &list->type[0])) return;
    list->n = 1;
}

/* What the command says of the engine, where no option does. */
static sm_status read_recipe(const cli_call *call, serving *v, sm_error *err) {
    sm_serve_question *q = &v->question;
    sm_status status = cli_recipe(call, &v->recipe_values, &v->read_by, v->on, SM_PLAN_SERVING,
                                  &(cli_recipe_read){&v->recipe, &v->model, &v->system}, err);
    if (!status) status = cli_recipe_plan(call, v->recipe.plan, &q->plan, err);
    if (status) return status;
    q->recipe = &v->recipe;
    v->engine.recipe = v->recipe.engine;
    if (!cli_given(call, &q->weights)) take_dtype(v->recipe.weights, &q->weights);
    if (!cli_given(call, &q->kv)) take_dtype(v->recipe.kv, &q->kv);
    if (!cli_given(call, &q->batch) && q->concurrency <= 0 && v->recipe.batch > 0)
        q->batch = v->recipe.batch;
    return SM_OK;
}

/* What a framework is known as on each chip that is asked about, where constants say it there. */
static sm_status take_framework(const cli_call *call, serving *v, const sm_framework *framework,
                                sm_error *err) {
    sm_serve_question *q = &v->question;
    sm_framework_job use = {framework, SM_EVIDENCE_SERVING, &v->model, &v->system.chip};
    const char *said = v->recipe.software;
    const sm_calibration *own = NULL;
    if (!framework || v->constants.calibration || v->constants.software) return SM_OK;
    sm_status status = sm_framework_calibration(&use, said, call->arena, &own, err);
    bool pools = !q->prefill_system ||
                 (own && sm_software_calibration(&q->prefill_system->chip, own->software));
    if (own && pools && q->n_systems == 0) v->constants.software = own->software;
    for (int i = 0; i < q->n_systems && !status; i++) {
        use.chip = &v->systems[i].chip;
        status = sm_framework_calibration(&use, said, call->arena, &own, err);
        v->softwares[i] = own ? own->software : NULL;
    }
    if (q->n_systems > 0) q->softwares = v->softwares;
    return status;
}

/* The id of a checkpoint whose end says how it is stored. */
static const char *stored_id(const char *name) {
    const char *stored = NULL;
    return name && strchr(name, '/') && sm_catalogue_of_id(name, &stored) && stored ? name : NULL;
}

static sm_status run_serve(const cli_call *call, sm_report *r, sm_error *err) {
    serving *v = call->values;
    sm_serve_question *q = &v->question;
    q->size = sizeof *q;
    q->model = &v->model;
    q->system = &v->system;
    q->explain = call->common.explain;
    q->brief = call->brief;
    q->plot = v->plot != NULL;
    sm_status status = v->recipe_values.from ? read_recipe(call, v, err) : read_job(call, v, err);
    cli_asked_frameworks asked = {.known = NULL};
    if (!status) status = cli_frameworks(call, &v->recipe_values, SM_PLAN_SERVING, &asked, err);
    q->frameworks = asked.known;
    q->framework = v->recipe_values.from ? NULL : asked.framework;
    q->emit = asked.emit;
    q->any_plan = cli_any_framework(&v->recipe_values);
    if (!status) status = read_pools(call, v, err);
    if (!status) status = take_framework(call, v, cli_framework_of(&v->recipe, &asked), err);
    q->checkpoint = stored_id(call->positionals > 0 ? call->positional[0] : v->recipe.named);
    if (!status) status = read_rest(call, v, err);
    return status ? status : sm_answer_serve(q, r, err);
}

const cli_verb cli_serve = {
    .about = &verbs_serve,
    CLI_VALUES(
        AT("on", on), ASK("plan", plan), ASK("batch", batch), ASK("concurrency", concurrency),
        ASK("prompt", prompt), ASK("output", output), ASK("context", context),
        ASK("prefix", prefix), ASK("weights", weights), ASK("kv", kv), ASK("compute", compute),
        ASK("ttft", ttft_s), ASK("tpot", tpot_s), ASK("qps", requests_per_s), AT("chips", chips),
        CLI_SPECULATION_PLACES(speculate), ASK("imbalance", imbalance), ASK("reserve", reserve),
        ASK("price", usd_per_chip_hour), ASK("top", top), AT("plot", plot), ASK("eager", eager),
        ASK("bound", by_lower), ASK("decode-only", alone), ASK("disaggregated", disaggregated),
        AT("prefill-on", prefill_on), AT("decode-on", decode_on), CLI_ENGINE_PLACES(engine),
        CLI_CALIBRATION_PLACES(constants), CLI_MODEL_PLACES(read_by), CLI_SOURCE_PLACES(read_by),
        CLI_RECIPE_PLACES(recipe_values)),
    .plans = 1u << SM_PLAN_SERVING,
    .run = run_serve,
};
