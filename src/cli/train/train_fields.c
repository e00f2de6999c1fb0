/* train_fields: the answer of `train` as JSON, field by field of the published contract. */
#include "scalemodel/page.h"
#include "train.h"
#include <math.h>
#include <string.h>

/* Levels of a torus are told apart on the page by their number; the contract names them alone. */
static const char *json_bound(sm_report *r, const sm_system *system,
                              const sm_price_of_plan *price) {
    static const char *const words[] = {"compute", "memory", "network", "bubble", "latency"};
    if (price->bound != SM_BOUND_NETWORK) return words[price->bound];
    return sm_textf(r, "network:%s", system->level[price->bound_level].name);
}

static void put_times(sm_report *r, sm_data *object, const cli_training *q,
                      const sm_price_of_plan *price) {
    cli_interval interval = cli_step_interval(q, price);
    sm_data *step = sm_put_object(r, object, "step_time_s");
    sm_put(r, step, "lower", price->lower_s);
    sm_put(r, step, "expected", price->expected_s);
    sm_put(r, step, "upper", price->upper_s);
    sm_data *ends = sm_put_array(r, step, "interval");
    sm_put(r, ends, NULL, interval.low);
    sm_put(r, ends, NULL, interval.high);
}

static void put_memory(sm_report *r, sm_data *object, const sm_memory *m) {
    sm_data *memory = sm_put_object(r, object, "memory_bytes");
    sm_put(r, memory, "params", m->params);
    sm_put(r, memory, "gradients", m->gradients);
    sm_put(r, memory, "optimizer", m->optimizer);
    sm_put(r, memory, "activations", m->activations);
    sm_put(r, memory, "buffers", m->buffers);
    sm_put(r, memory, "total", m->total);
    sm_put(r, memory, "capacity", m->capacity);
    sm_put(r, memory, "host", m->host);
    sm_put(r, object, "memory_stage", m->stage);
}

static void put_collectives(sm_report *r, sm_data *object, const sm_system *system,
                            const sm_plan_detail *detail) {
    sm_data *list = sm_put_array(r, object, "collectives");
    for (int i = 0; i < detail->collectives; i++) {
        const sm_plan_collective *c = &detail->collective[i];
        sm_data *item = sm_put_object(r, list, NULL);
        sm_put_text(r, item, "op", sm_collective_name(c->op));
        sm_put_text(r, item, "array", c->array);
        sm_put_text(r, item, "axis", c->axis);
        sm_put_text(r, item, "phase", c->phase);
        sm_put(r, item, "count", c->count);
        sm_put(r, item, "bytes_per_chip", c->bytes);
        sm_put(r, item, "bytes_busiest_link", c->wire_bytes);
        sm_put(r, item, "time_s", c->time_s);
        sm_put(r, item, "exposed_s", c->exposed_s);
        sm_put_text(r, item, "algorithm", c->algorithm ? c->algorithm : "");
        sm_put_text(r, item, "level", system->level[c->level].name);
    }
}

static void put_breakdown(sm_report *r, sm_data *object, const sm_breakdown *b) {
    sm_data *parts = sm_put_object(r, object, "breakdown_s");
    sm_put(r, parts, "math", b->math);
    sm_put(r, parts, "memory", b->memory);
    sm_put(r, parts, "network_exposed", b->network_exposed);
    sm_put(r, parts, "bubble", b->bubble);
    sm_put(r, parts, "optimizer", b->optimizer);
    sm_put(r, parts, "other", b->other);
}

static void put_mesh(sm_report *r, sm_data *object, const sm_plan_detail *detail) {
    sm_data *mesh = sm_put_array(r, object, "mesh");
    for (int i = 0; i < detail->axes; i++) {
        sm_data *axis = sm_put_object(r, mesh, NULL);
        sm_put_text(r, axis, "axis", detail->axis[i].name);
        sm_put(r, axis, "size", detail->axis[i].size);
        sm_put_text(r, axis, "on", detail->axis[i].on);
    }
}

/* The busy time of each resource that `lower` is the largest of. */
static void put_lower(sm_report *r, sm_data *object, const sm_system *system,
                      const sm_price_of_plan *price) {
    sm_data *lower = sm_put_object(r, object, "lower_s");
    sm_put(r, lower, "math", price->bound_math_s);
    sm_put(r, lower, "memory", price->bound_memory_s);
    sm_data *levels = sm_put_array(r, lower, "network");
    for (int l = 0; l < system->levels; l++) {
        sm_data *level = sm_put_object(r, levels, NULL);
        sm_put_text(r, level, "level", system->level[l].name);
        sm_put(r, level, "time_s", price->bound_network_s[l]);
    }
}

void cli_train_plan_fields(sm_report *r, sm_data *object, const cli_training *q,
                           const cli_plan_shown *shown) {
    const sm_price_of_plan *price = &shown->detail.price;
    bool run = q->job.tokens > 0.0;
    sm_put_text(r, object, "plan", shown->text);
    put_mesh(r, object, &shown->detail);
    sm_put(r, object, "chips", price->chips);
    sm_put_bool(r, object, "fits", price->fits);
    put_times(r, object, q, price);
    sm_put_text(r, object, "bound", json_bound(r, &q->system, price));
    sm_put(r, object, "mfu", price->mfu);
    sm_put(r, object, "hfu", price->hfu);
    sm_put(r, object, "tokens_per_s_per_chip", price->tokens_per_s_per_chip);
    sm_put(r, object, "model_flops_per_s_per_chip", price->model_flops_per_s_per_chip);
    sm_put(r, object, "microbatches", price->microbatches);
    put_memory(r, object, &price->memory);
    put_collectives(r, object, &q->system, &shown->detail);
    put_breakdown(r, object, &price->breakdown);
    put_lower(r, object, &q->system, price);
    sm_put(r, object, "train_time_s", run ? price->train_time_s : NAN);
    sm_put(r, object, "cost_usd", run && q->price_known ? price->cost_usd : NAN);
    sm_put_text(r, object, "advice", shown->detail.advice);
}

void cli_train_system_fields(sm_report *r, sm_data *parent, const sm_system *system) {
    sm_data *object = sm_put_object(r, parent, "system");
    sm_put_text(r, object, "name", system->text);
    sm_put_text(r, object, "chip", system->chip.name);
    sm_put(r, object, "chips", system->chips);
    sm_data *shape = sm_put_array(r, object, "shape");
    for (int i = 0; i < system->levels; i++) sm_put(r, shape, NULL, system->level[i].size);
    sm_data *levels = sm_put_array(r, object, "levels");
    for (int i = 0; i < system->levels; i++) sm_put_text(r, levels, NULL, system->level[i].name);
}

static void put_calibration(sm_report *r, const cli_training *q) {
    sm_data *object = sm_put_object(r, r->data, "calibration");
    sm_put_text(r, object, "chip", q->calibration->chip);
    sm_put_text(r, object, "software", q->calibration->software);
    sm_put_bool(r, object, "borrowed", !sm_calibration_is_own(q->calibration, &q->system.chip));
}

void cli_train_job_fields(sm_report *r, const cli_training *q, double sequences) {
    sm_params params = sm_model_params(&q->model);
    sm_data *model = sm_put_object(r, r->data, "model");
    sm_put_text(r, model, "name", q->model.name);
    sm_put(r, model, "params", params.total);
    sm_put(r, model, "active_params", params.active);
    sm_put(r, model, "train_flops_per_token",
           sm_model_train_flops(&q->model, q->job.seq, q->model.causal));
    cli_train_system_fields(r, r->data, &q->system);
    put_calibration(r, q);
    sm_data *batch = sm_put_object(r, r->data, "batch");
    sm_put(r, batch, "tokens_asked", q->job.batch_tokens);
    sm_put(r, batch, "tokens", sequences * q->job.seq);
    sm_put(r, batch, "sequences", sequences);
    sm_put(r, batch, "seq", q->job.seq);
}

void cli_train_search_fields(sm_report *r, sm_data *object, const sm_search_result *search) {
    sm_data *fields = sm_put_object(r, object, "search");
    sm_put(r, fields, "space", search->space);
    sm_put(r, fields, "evaluated", search->evaluated);
    sm_put(r, fields, "pruned", search->pruned);
    sm_put(r, fields, "seconds", search->seconds);
    sm_put_bool(r, fields, "optimal", search->optimal);
}

void cli_train_fields(sm_report *r, const cli_plans *plans) {
    cli_train_job_fields(r, plans->q, plans->sequences);
    cli_train_search_fields(r, r->data, plans->search);
    sm_data *list = sm_put_array(r, r->data, "plans");
    for (int i = 0; i < plans->n; i++) {
        sm_data *object = sm_put_object(r, list, NULL);
        cli_train_plan_fields(r, object, plans->q, &plans->plan[i]);
        sm_put_bool(r, object, "indistinguishable_from_best", cli_is_indistinguishable(plans, i));
    }
    if (plans->n > 0) return;
    sm_put_text(r, r->data, "reason", plans->reason);
    sm_put(r, r->data, "least_memory_bytes", plans->search->least_memory_bytes);
}
