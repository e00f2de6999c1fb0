/* train_fields: the answer about training as data, field by field of the published contract. */
#include "train_asked.h"

static void put_parts(sm_report *r, sm_data *object, const sm_memory *m) {
    sm_put(r, object,
           "params|gradients|optimizer|activations|buffers|total|capacity|host|host_capacity",
           m->params, m->gradients, m->optimizer, m->activations, m->buffers, m->total, m->capacity,
           m->host, m->host_capacity > 0.0 ? m->host_capacity : NAN);
}

static void put_buffers(sm_report *r, sm_data *object, const sm_memory *m) {
    sm_put(r, sm_put_object(r, object, "buffers_bytes"), "gathered|logits|copies|allocator",
           m->gathered, m->logits, m->copies, m->reserved);
    sm_put(r, object, "outside_bytes", m->outside);
}

static void put_memory(sm_report *r, sm_data *object, const sm_plan_detail *detail) {
    const sm_memory *m = &detail->price.memory;
    put_parts(r, sm_put_object(r, object, "memory_bytes"), m);
    sm_put(r, object, "memory_stage", m->stage);
    if (!detail->stages) return;
    put_buffers(r, object, m);
    sm_data *list = sm_put_array(r, object, "memory_stages");
    for (int i = 0; i < detail->stages; i++) {
        sm_data *stage = sm_put_object(r, list, NULL);
        sm_put(r, stage, "stage", i);
        put_parts(r, stage, &detail->stage_memory[i]);
        put_buffers(r, stage, &detail->stage_memory[i]);
    }
}

static void put_collectives(sm_report *r, sm_data *object, const sm_system *system,
                            const sm_plan_detail *detail) {
    sm_data *list = sm_put_array(r, object, "collectives");
    for (int i = 0; i < detail->lines.collectives; i++) {
        const sm_plan_collective *c = &detail->lines.collective[i];
        sm_put(r, sm_put_object(r, list, NULL),
               "op|array|axis|phase|count|bytes_per_chip|bytes_busiest_link|time_s|exposed_s|"
               "algorithm|level",
               sm_collective_name(c->op), c->array, c->axis, c->phase, c->count, c->bytes,
               c->wire_bytes, c->time_s, c->exposed_s, c->algorithm ? c->algorithm : "",
               system->level[c->level].name);
    }
}

/* The busy time of each resource that `lower` is the largest of. */
static void put_lower(sm_report *r, sm_data *object, const sm_system *system,
                      const sm_price_of_plan *price) {
    sm_data *lower = sm_put_object(r, object, "lower_s");
    sm_put(r, lower, "math|memory", price->bound_math_s, price->bound_memory_s);
    sm_data *levels = sm_put_array(r, lower, "network");
    for (int l = 0; l < system->levels; l++) {
        sm_data *level = sm_put_object(r, levels, NULL);
        sm_put(r, level, "level|time_s", system->level[l].name, price->bound_network_s[l]);
    }
}

void sm_train_plan_data(sm_report *r, sm_data *object, const sm_train_asked *q,
                        const sm_plan_shown *shown) {
    const sm_price_of_plan *p = &shown->detail.price;
    const sm_breakdown *b = &p->breakdown;
    bool run = q->job.tokens > 0.0;
    sm_put(r, object, "plan", shown->text);
    if (q->kept_to) sm_put(r, object, "framework", sm_framework_name(q->kept_to));
    sm_data *mesh = sm_put_array(r, object, "mesh");
    for (int i = 0; i < shown->detail.axes; i++) {
        sm_data *axis = sm_put_object(r, mesh, NULL);
        sm_put(r, axis, "axis|size|on", shown->detail.axis[i].name, shown->detail.axis[i].size,
               shown->detail.axis[i].on);
        sm_group_fields(r, axis, &shown->detail.axis[i].group);
    }
    sm_put(r, object, "chips|fits", p->chips, p->fits);
    const sm_system *on = sm_train_runs_on(r, q->system, shown->plan);
    if (on && on != q->system) sm_put(r, object, "part", on->text);
    sm_ends ends = sm_step_interval(q, p);
    sm_data *step = sm_put_object(r, object, "step_time_s");
    sm_put(r, step, "lower|expected|upper", p->lower_s, p->expected_s, p->upper_s);
    sm_put(r, sm_put_array(r, step, "interval"), NULL, ends.low, ends.high);
    const sm_step_sizes sizes = sm_step_sizes_of(q->in.model, p->chips, q->job.seq);
    char beyond[80];
    sm_calibration_outside(q->in.calibration, &sizes, beyond, sizeof beyond);
    sm_put(r, step, "beyond_constants", beyond);
    /* Levels of a torus are told apart on the page by their number; the contract names them alone.
     */
    sm_put(r, object, "bound|mfu|hfu|tokens_per_s_per_chip|model_flops_per_s_per_chip|microbatches",
           p->bound == SM_BOUND_NETWORK
               ? sm_textf(r, "network:%s", q->system->level[p->bound_level].name)
               : sm_train_bound(r, q->system, p),
           p->mfu, p->hfu, p->tokens_per_s_per_chip, p->model_flops_per_s_per_chip,
           p->microbatches);
    put_memory(r, object, &shown->detail);
    put_collectives(r, object, q->system, &shown->detail);
    sm_put(r, sm_put_object(r, object, "breakdown_s"),
           "math|memory|network_exposed|bubble|optimizer|other", b->math, b->memory,
           b->network_exposed, b->bubble, b->optimizer, b->other);
    put_lower(r, object, q->system, p);
    sm_put(r, object, "train_time_s|cost_usd|trained_params|heads_times|advice",
           run ? p->train_time_s : NAN, run && q->price_known ? p->cost_usd : NAN, p->trained,
           shown->detail.heads_times, shown->detail.advice);
}

void sm_train_job_data(sm_report *r, const sm_train_asked *q, double sequences) {
    const sm_model *m = q->in.model;
    sm_params params = sm_model_params(m);
    double flops = sm_model_train_flops(m, q->job.seq, m->causal);
    r->out_of_memory |= isnan(flops);
    sm_put(r, sm_put_object(r, r->data, "model"), "name|params|active_params|train_flops_per_token",
           m->name, params.total, params.active, flops);
    sm_system_fields(r, r->data, q->in.system);
    sm_put(r, r->data, "as_run", q->in.as_run);
    sm_constants_data(r, r->data, q->in.calibration, &q->in.system->chip);
    sm_put(r, sm_put_object(r, r->data, "batch"), "tokens_asked|tokens|sequences|seq",
           q->batch.asked_tokens, sequences * q->job.seq, sequences, q->job.seq);
}

void sm_train_search_data(sm_report *r, const sm_search_effort *effort) {
    sm_data *fields = sm_put_object(r, r->data, "search");
    sm_put(r, fields, "space|evaluated|pruned", effort->space, effort->evaluated, effort->pruned);
    sm_put_timed(r, fields, "seconds", effort->seconds);
    sm_put(r, fields, "optimal|gap", effort->optimal, effort->gap);
}

void sm_train_data(sm_report *r, const sm_plans_shown *plans) {
    sm_train_job_data(r, plans->q, plans->sequences);
    sm_train_search_data(r, &plans->effort);
    if (plans->n > 0) {
        sm_evidence_asked asked;
        const sm_evidence_near near =
            sm_train_evidence(plans->q, &plans->plan[0], plans->sequences, &asked);
        sm_evidence_data(r, r->data, &near);
    }
    sm_data *list = sm_put_array(r, r->data, "plans");
    r->records = list;
    for (int i = 0; i < plans->n; i++) {
        sm_data *object = sm_put_object(r, list, NULL);
        sm_train_plan_data(r, object, plans->q, &plans->plan[i]);
        sm_put(r, object, "indistinguishable_from_best", sm_is_indistinguishable(plans, i));
    }
    if (plans->padding > 0)
        sm_padding_data(r, r->data, plans->q->in.model, plans->model, plans->padding);
    sm_train_fit_data(r, &plans->fit);
    if (plans->n > 0) return;
    sm_put(r, r->data, "reason|least_memory_bytes", plans->reason,
           plans->effort.least_memory_bytes);
}
