/* train_fields: the answer of `train` as JSON, field by field of the published contract. */
#include "pages.h"
#include "train.h"
#include <math.h>
#include <string.h>

/* Levels of a torus are told apart on the page by their number; the contract names them alone. */
static const char *json_bound(sm_report *r, const sm_system *system,
                              const sm_price_of_plan *price) {
    static const char *const words[] = {"compute", "memory", "network", "bubble", "latency"};
    if (price->bound != SM_BOUND_NETWORK) return words[price->bound];
    return cli_textf(r, "network:%s", system->level[price->bound_level].name);
}

static void put_times(sm_report *r, sm_data *object, const cli_training *q,
                      const sm_price_of_plan *price) {
    cli_interval interval = cli_step_interval(q, price);
    sm_data *step = cli_object(r, object, "step_time_s");
    cli_put(r, step, "lower", price->lower_s);
    cli_put(r, step, "expected", price->expected_s);
    cli_put(r, step, "upper", price->upper_s);
    sm_data *ends = cli_array(r, step, "interval");
    cli_put(r, ends, NULL, interval.low);
    cli_put(r, ends, NULL, interval.high);
}

static void put_memory(sm_report *r, sm_data *object, const sm_memory *m) {
    sm_data *memory = cli_object(r, object, "memory_bytes");
    cli_put(r, memory, "params", m->params);
    cli_put(r, memory, "gradients", m->gradients);
    cli_put(r, memory, "optimizer", m->optimizer);
    cli_put(r, memory, "activations", m->activations);
    cli_put(r, memory, "buffers", m->buffers);
    cli_put(r, memory, "total", m->total);
    cli_put(r, memory, "capacity", m->capacity);
    cli_put(r, memory, "host", m->host);
    cli_put(r, object, "memory_stage", m->stage);
}

static void put_collectives(sm_report *r, sm_data *object, const sm_system *system,
                            const sm_plan_detail *detail) {
    sm_data *list = cli_array(r, object, "collectives");
    for (int i = 0; i < detail->collectives; i++) {
        const sm_plan_collective *c = &detail->collective[i];
        sm_data *item = cli_object(r, list, NULL);
        cli_put_text(r, item, "op", sm_collective_name(c->op));
        cli_put_text(r, item, "array", c->array);
        cli_put_text(r, item, "axis", c->axis);
        cli_put_text(r, item, "phase", c->phase);
        cli_put(r, item, "count", c->count);
        cli_put(r, item, "bytes_per_chip", c->bytes);
        cli_put(r, item, "bytes_busiest_link", c->wire_bytes);
        cli_put(r, item, "time_s", c->time_s);
        cli_put(r, item, "exposed_s", c->exposed_s);
        cli_put_text(r, item, "algorithm", c->algorithm ? c->algorithm : "");
        cli_put_text(r, item, "level", system->level[c->level].name);
    }
}

static void put_breakdown(sm_report *r, sm_data *object, const sm_breakdown *b) {
    sm_data *parts = cli_object(r, object, "breakdown_s");
    cli_put(r, parts, "math", b->math);
    cli_put(r, parts, "memory", b->memory);
    cli_put(r, parts, "network_exposed", b->network_exposed);
    cli_put(r, parts, "bubble", b->bubble);
    cli_put(r, parts, "optimizer", b->optimizer);
    cli_put(r, parts, "other", b->other);
}

static void put_mesh(sm_report *r, sm_data *object, const sm_plan_detail *detail) {
    sm_data *mesh = cli_array(r, object, "mesh");
    for (int i = 0; i < detail->axes; i++) {
        sm_data *axis = cli_object(r, mesh, NULL);
        cli_put_text(r, axis, "axis", detail->axis[i].name);
        cli_put(r, axis, "size", detail->axis[i].size);
        cli_put_text(r, axis, "on", detail->axis[i].on);
    }
}

/* The busy time of each resource that `lower` is the largest of. */
static void put_lower(sm_report *r, sm_data *object, const sm_system *system,
                      const sm_price_of_plan *price) {
    sm_data *lower = cli_object(r, object, "lower_s");
    cli_put(r, lower, "math", price->bound_math_s);
    cli_put(r, lower, "memory", price->bound_memory_s);
    sm_data *levels = cli_array(r, lower, "network");
    for (int l = 0; l < system->levels; l++) {
        sm_data *level = cli_object(r, levels, NULL);
        cli_put_text(r, level, "level", system->level[l].name);
        cli_put(r, level, "time_s", price->bound_network_s[l]);
    }
}

void cli_train_plan_fields(sm_report *r, sm_data *object, const cli_training *q,
                           const cli_plan_shown *shown) {
    const sm_price_of_plan *price = &shown->detail.price;
    bool run = q->job.tokens > 0.0;
    cli_put_text(r, object, "plan", shown->text);
    put_mesh(r, object, &shown->detail);
    cli_put(r, object, "chips", price->chips);
    cli_put_bool(r, object, "fits", price->fits);
    put_times(r, object, q, price);
    cli_put_text(r, object, "bound", json_bound(r, &q->system, price));
    cli_put(r, object, "mfu", price->mfu);
    cli_put(r, object, "hfu", price->hfu);
    cli_put(r, object, "tokens_per_s_per_chip", price->tokens_per_s_per_chip);
    cli_put(r, object, "model_flops_per_s_per_chip", price->model_flops_per_s_per_chip);
    cli_put(r, object, "microbatches", price->microbatches);
    put_memory(r, object, &price->memory);
    put_collectives(r, object, &q->system, &shown->detail);
    put_breakdown(r, object, &price->breakdown);
    put_lower(r, object, &q->system, price);
    cli_put(r, object, "train_time_s", run ? price->train_time_s : NAN);
    cli_put(r, object, "cost_usd", run && q->price_known ? price->cost_usd : NAN);
    cli_put_text(r, object, "advice", shown->detail.advice);
}

void cli_train_system_fields(sm_report *r, sm_data *parent, const sm_system *system) {
    sm_data *object = cli_object(r, parent, "system");
    cli_put_text(r, object, "name", system->text);
    cli_put_text(r, object, "chip", system->chip.name);
    cli_put(r, object, "chips", system->chips);
    sm_data *shape = cli_array(r, object, "shape");
    for (int i = 0; i < system->levels; i++) cli_put(r, shape, NULL, system->level[i].size);
    sm_data *levels = cli_array(r, object, "levels");
    for (int i = 0; i < system->levels; i++) cli_put_text(r, levels, NULL, system->level[i].name);
}

static void put_calibration(sm_report *r, const cli_training *q) {
    sm_data *object = cli_object(r, r->data, "calibration");
    cli_put_text(r, object, "chip", q->calibration->chip);
    cli_put_text(r, object, "software", q->calibration->software);
    cli_put_bool(r, object, "borrowed", !sm_calibration_is_own(q->calibration, &q->system.chip));
}

void cli_train_job_fields(sm_report *r, const cli_training *q, double sequences) {
    sm_params params = sm_model_params(&q->model);
    sm_data *model = cli_object(r, r->data, "model");
    cli_put_text(r, model, "name", q->model.name);
    cli_put(r, model, "params", params.total);
    cli_put(r, model, "active_params", params.active);
    cli_put(r, model, "train_flops_per_token",
            sm_model_train_flops(&q->model, q->job.seq, q->model.causal));
    cli_train_system_fields(r, r->data, &q->system);
    put_calibration(r, q);
    sm_data *batch = cli_object(r, r->data, "batch");
    cli_put(r, batch, "tokens_asked", q->job.batch_tokens);
    cli_put(r, batch, "tokens", sequences * q->job.seq);
    cli_put(r, batch, "sequences", sequences);
    cli_put(r, batch, "seq", q->job.seq);
}

void cli_train_search_fields(sm_report *r, sm_data *object, const sm_search_result *search) {
    sm_data *fields = cli_object(r, object, "search");
    cli_put(r, fields, "space", search->space);
    cli_put(r, fields, "evaluated", search->evaluated);
    cli_put(r, fields, "pruned", search->pruned);
    cli_put(r, fields, "seconds", search->seconds);
    cli_put_bool(r, fields, "optimal", search->optimal);
}

void cli_train_fields(sm_report *r, const cli_plans *plans) {
    cli_train_job_fields(r, plans->q, plans->sequences);
    cli_train_search_fields(r, r->data, plans->search);
    sm_data *list = cli_array(r, r->data, "plans");
    for (int i = 0; i < plans->n; i++) {
        sm_data *object = cli_object(r, list, NULL);
        cli_train_plan_fields(r, object, plans->q, &plans->plan[i]);
        cli_put_bool(r, object, "indistinguishable_from_best", cli_is_indistinguishable(plans, i));
    }
    if (plans->n > 0) return;
    cli_put_text(r, r->data, "reason", plans->reason);
    cli_put(r, r->data, "least_memory_bytes", plans->search->least_memory_bytes);
}
