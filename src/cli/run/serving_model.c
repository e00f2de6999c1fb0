/* serving_model: what run generate and run serve read of a model, a plan and a machine alike. */
#include "serving_model.h"
#include "run_train.h"
#include <sys/stat.h>

enum { MOST_RANKS = 4096 };

/* ---- the plan ---- */

sm_status serving_plan_as_run(sm_plan *p, sm_error *err) {
    bool cache = p->cache_by != SM_CACHE_COPIES;
    bool weights = sm_plan_given(p, SM_PLAN_WEIGHTS_BY) && !p->gathered && p->fsdp > 1;
    const char *odd = p->seq    ? "seq=on"
                      : cache   ? "a cache by batch or sequence"
                      : weights ? "weights_by=stationary"
                                : NULL;
    if (odd) return sm_fail(err, SM_BAD_INPUT, "%s of the plan cannot be run", odd);
    if (sm_plan_chips(p) > MOST_RANKS)
        return sm_fail(err, SM_BAD_INPUT, "%d ranks are asked for, and at most %d can run",
                       sm_plan_chips(p), MOST_RANKS);
    p->gathered = p->fsdp > 1;
    p->given |= 1ull << SM_PLAN_CACHE_BY | 1ull << SM_PLAN_WEIGHTS_BY;
    return SM_OK;
}

sm_status serving_plan_read(const cli_call *call, const char *const *place, sm_plan *p,
                            sm_error *err) {
    sm_source source = cli_source(call, place);
    sm_serve_plan_defaults(p);
    sm_status status = *place ? sm_serve_plan_parse(&source, p, err) : SM_OK;
    return status ? status : serving_plan_as_run(p, err);
}

int serving_rounded_up(size_t n, int to) {
    size_t parts = (n + (size_t)to - 1) / (size_t)to;
    return (int)parts * to;
}

sm_status serving_model_lay_out(const cli_call *call, const sm_plan *p, size_t tokens,
                                size_t sequences, serving_model *m, sm_error *err) {
    sm_plan like; /* of training, as the runtime takes plans */
    char room[256];
    sm_plan_defaults(&like);
    for (int key = 0; key < SM_PLAN_DEGREES; key++)
        *sm_plan_degree(&like, key) = sm_plan_degree_of(p, key);
    like.expert_tensor = p->expert_tensor;
    const char *why = sm_plan_refuse(&like, &m->model, room, sizeof room);
    if (why) return sm_fail(err, SM_BAD_INPUT, "%s", why);
    sm_train_setup_defaults(&m->setup);
    m->setup.model = &m->model;
    m->setup.tokens = serving_rounded_up(tokens, p->context);
    m->setup.sequences = serving_rounded_up(sequences, p->data * p->fsdp * p->expert);
    train_degrees_of_plan(&like, &m->setup);
    sm_status status = SM_OK;
    if (p->pipeline > 1) status = train_stages_of_plan(&like, call->arena, &m->setup, err);
    return status ? status : sm_generator_check(&m->setup, err);
}

/* ---- models ---- */

sm_status serving_model_read(const cli_call *call, const cli_model_values *by, const char *name,
                             const char *checkpoint, serving_model *m, sm_error *err) {
    struct stat is;
    bool folder = !checkpoint && stat(name, &is) == 0 && S_ISDIR(is.st_mode);
    m->path = folder ? name : checkpoint;
    if (!m->path)
        return sm_fail(err, SM_USAGE,
                       "%s needs --checkpoint FILE where MODEL is no folder that has it",
                       call->verb->about->name);
    return cli_read_model(call, by, name, &m->model, err);
}

const char *const serving_weights[SERVING_WEIGHTS] = {"fp32", "bf16", "fp8", "int8", "mxfp4"};

static const struct {
    sm_dtype dtype;
    sm_element element;
} weight_types[SERVING_WEIGHTS] = {{SM_FP32, SM_ELEMENT_F32},
                                   {SM_BF16, SM_ELEMENT_BF16},
                                   {SM_FP8, SM_ELEMENT_E4M3},
                                   {SM_INT8, SM_ELEMENT_S8},
                                   {SM_MXFP4, SM_ELEMENT_E2M1}};

sm_status serving_model_weights(const cli_call *call, int word, serving_model *m, sm_error *err) {
    sm_status status = sm_io_safetensors_read(m->path, call->arena, &m->file, err);
    m->setup.undrawn = true;
    m->weights = weight_types[word].dtype;
    m->setup.stored = weight_types[word].element;
    m->as_stored = m->model.stored.quantised && m->model.stored.type == m->weights &&
                   train_checkpoint_stores(&m->file, m->weights);
    m->setup.ends_apart = m->as_stored;
    m->setup.by_rows = m->as_stored && train_checkpoint_scales_rows(&m->file);
    return status;
}

sm_status serving_model_open(sm_communicator *world, const serving_model *m, sm_generator **out,
                             sm_error *err) {
    sm_status status = sm_generator_new(world, &m->setup, NULL, out, err);
    return status ? status : train_checkpoint_take_weights(*out, &m->model, &m->file, m->path, err);
}

/* ---- the price ---- */

sm_status serving_show_weights(sm_report *r, const serving_model *m, double held, sm_serve *price,
                               const sm_plan *plan, sm_error *err) {
    sm_serve_memory memory;
    sm_status status = sm_serve_memory_of(price, plan, 1, 1, 1, &memory, err);
    if (status) return status;
    sm_put(r, sm_put_object(r, r->data, "weights"), "dtype|as_stored|predicted_bytes|held_bytes",
           sm_dtype_name(m->weights), m->as_stored, memory.params, held);
    sm_report_text(r, "Weights in %s%s take %s on the rank that holds most; predicted: %s.",
                   sm_dtype_name(m->weights), m->as_stored ? " as stored" : "",
                   sm_show_bytes(r, held), sm_show_bytes(r, memory.params));
    return SM_OK;
}

sm_status serving_price_new(const serving_model *m, const sm_system *system, double prompt,
                            double output, const sm_calibration *constants, sm_serve **out,
                            sm_error *err) {
    const sm_serve_job job = {.size = sizeof(sm_serve_job),
                              .model = &m->model,
                              .system = system,
                              .dtypes = {m->weights, SM_FP32, SM_FP32},
                              .as_stored = m->as_stored,
                              .prompt = prompt,
                              .output = output,
                              .imbalance = 1,
                              .eager = true,
                              .query_by_query = true,
                              .reserve = 0, /* no engine that finds its memory taken */
                              .usd_per_chip_hour = -1};
    sm_status status = sm_serve_new(&job, out, err);
    if (!status && constants) sm_serve_set_calibration(*out, constants);
    return status;
}
