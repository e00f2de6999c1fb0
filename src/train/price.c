/* The price of a plan: time three ways, memory, money.
 *
 * lower is the roofline of the step: max(the pipeline at peak FLOP/s, bytes through HBM /
 * bandwidth, bytes of each network level / bandwidth); no implementation does better. expected is
 * the pipeline of the schedule plus what the end of the step exposes. upper is the same with
 * nothing overlapped. MFU = FLOPs of the model (three forward passes, no recomputation) / (seconds
 * x chips x peak), as in PaLM (arXiv 2204.02311, appendix B) and the book's chapter on training. */
#include <assert.h>
#include <math.h>

#include "detail.h"

void plan_canonical(const sm_train *t, sm_plan *plan) {
    sm_plan_settle(plan, &t->model);
    if (plan->schedule == SM_SCHEDULE_ZB_V || plan->schedule == SM_SCHEDULE_DUALPIPE)
        plan->virtual_stages = 2;
    else if (plan->schedule != SM_SCHEDULE_INTERLEAVED) plan->virtual_stages = 1;
}

#define REFUSE(...) return snprintf(room, size, __VA_ARGS__), room

const char *degrees_refuse(const sm_train *t, const sm_plan *p, char *room, size_t size) {
    int split = p->context * (p->seq ? p->tensor : 1);
    double replicas = sm_plan_replicas(p);
    const char *why = sm_plan_refuse(p, &t->model, room, size);
    if (why) return why;
    if (fmod(t->seq, split) != 0)
        REFUSE("sequences of %.0f tokens do not divide by %d (context%s)", t->seq, split,
               p->seq && p->tensor > 1 ? " x tensor" : "");
    if (chunk_count(p) > most_chunks(t) || chunk_count(p) > MAX_CHUNKS)
        REFUSE("pipeline=%d x virtual=%d makes more chunks than the %d layers with embedding and "
               "head",
               p->pipeline, p->virtual_stages, t->model.L);
    if (replicas > t->sequences)
        REFUSE("data x fsdp x expert = %.0f replicas, but a batch has only %.0f sequences",
               replicas, t->sequences);
    if (p->microbatch > ceil(t->sequences / replicas))
        REFUSE("microbatch=%d, but a replica gets only %.0f sequences", p->microbatch,
               ceil(t->sequences / replicas));
    return NULL;
}

const char *plan_refuse(const sm_train *t, const sm_plan *plan, char *room, size_t size) {
    const char *why = degrees_refuse(t, plan, room, size);
    if (!why) why = layout_refuse(t, plan, room, size);
    if (!why) why = sm_plan_refuse_dims(plan, &t->system, room, size);
    if (why) return why;
    if (plan->offload != SM_OFFLOAD_NONE && t->system.chip.pcie_bytes_per_s_oneway.value <= 0)
        return "offload needs a link to host memory, and this chip's is not known";
    int per_stage = plan->schedule == SM_SCHEDULE_DUALPIPE ? 2 : plan->virtual_stages;
    if (plan->pipeline > 1 && !sm_schedule_possible(plan->schedule, plan->pipeline, per_stage,
                                                    microbatches_of(t, plan), &why))
        return why ? why : "the schedule is not possible with these stages and microbatches";
    return NULL;
}

/* ---- parts ---- */

typedef struct stage_sums {
    double compute, memory, exposed, math, traffic, flops, latency;
    double ideal[SM_MAX_LEVELS];
} stage_sums;

double stage_share(const sm_plan *plan, int stage, int chunk) {
    if (plan->schedule == SM_SCHEDULE_DUALPIPE)
        return chunk == stage || chunk == plan->pipeline - 1 - stage ? 0.5 : 0;
    return sm_schedule_stage(plan->schedule, plan->pipeline, plan->virtual_stages, chunk) == stage;
}

double stage_pieces(const sm_train *t, const stages *s, int chunk, int index) {
    if (index < t->kinds) return s->layout->kind[chunk][index];
    return chunk == (index == head_piece(t) ? s->layout->chunks - 1 : 0);
}

static void add_piece(const sm_train *t, const pieces *p, int set, int index, double n,
                      stage_sums *x) {
    const piece_pass *q = &p->pass[index];
    const piece_time *time = &p->time[index];
    int own = index < t->kinds ? set : SM_RECOMPUTE_NONE;
    /* sums of the same terms may differ in the last bit */
    x->compute += n * larger(0, q->compute - q->memory);
    x->memory += n * q->memory;
    x->exposed += n * q->exposed;
    x->math += n * (time->math[0] + time->math[1] + time->math_again[own]);
    x->flops += n * (time->flops[0] + time->flops[1] + time->flops_again[own]);
    x->traffic += n * (time->traffic[0] + time->traffic[1]);
    x->latency += n * (q->latency + time->launches);
    for (int l = 0; l < t->system.levels; l++) x->ideal[l] += n * p->ideal[index][l];
}

static stage_sums sums_of(const sm_train *t, const sm_plan *plan, const pieces *p, const stages *s,
                          int stage) {
    stage_sums x;
    memset(&x, 0, sizeof x);
    int set = set_of(plan), chunks = s->layout->chunks;
    for (int c = 0; c < chunks; c++) {
        double part = stage_share(plan, stage, c);
        for (int i = 0; part > 0 && i < p->v->pieces; i++) {
            double n = stage_pieces(t, s, c, i);
            if (n > 0) add_piece(t, p, set, i, n * part, &x);
        }
    }
    return x;
}

/* lower: no resource can be busy for less, and the pipeline's fill and drain at peak FLOP/s.
 * Returns the FLOPs of a microbatch on one chip of each stage, added. */
static double fill_lower(const sm_train *t, const sm_plan *plan, pieces *p, stages *s,
                         sm_price_of_plan *price) {
    double m = price->microbatches, network = 0, flops = 0;
    for (int stage = 0; stage < plan->pipeline; stage++) {
        stage_sums x = sums_of(t, plan, p, s, stage);
        flops += x.flops;
        price->bound_math_s = larger(price->bound_math_s, m * x.math);
        price->bound_memory_s = larger(price->bound_memory_s, m * x.traffic);
        for (int l = 0; l < t->system.levels; l++)
            price->bound_network_s[l] = larger(price->bound_network_s[l], m * x.ideal[l]);
    }
    /* gradients of the largest chunk holder: at least those of one chunk of layers */
    for (int k = 0; k < t->kinds; k++)
        for (int l = 0; l < t->system.levels; l++)
            price->bound_network_s[l] += s->layout->kind[0][k] * p->load[k].reduce_ideal[l];
    stages_chunks(t, plan, p, MATH, s);
    double pipeline = sm_pipeline_bound(&s->pipeline);
    price->lower_s = larger(pipeline, price->bound_memory_s);
    price->bound = pipeline > 2 * price->bound_math_s ? SM_BOUND_BUBBLE : SM_BOUND_COMPUTE;
    if (price->bound_memory_s > pipeline) price->bound = SM_BOUND_MEMORY;
    for (int l = 0; l < t->system.levels; l++) {
        if (price->bound_network_s[l] <= network) continue;
        network = price->bound_network_s[l];
        price->bound_level = l;
    }
    if (network > price->lower_s) {
        price->lower_s = network;
        price->bound = SM_BOUND_NETWORK;
    }
    return flops;
}

double model_flops_of(const sm_train *t, const sm_plan *plan) {
    return t->model_flops_per_token - (plan->lora ? t->matmul_flops_per_token : 0);
}

static void fill_rates(const sm_train *t, const sm_plan *plan, double hardware_flops,
                       sm_price_of_plan *price) {
    double tokens = t->sequences * t->seq;
    double peak = sm_chip_peak(&t->system.chip, plan->dtype, NULL);
    double per_chip = model_flops_of(t, plan) * tokens / price->expected_s / price->chips;
    price->model_flops_per_s_per_chip = per_chip;
    price->mfu = per_chip / peak;
    price->hfu = hardware_flops / price->expected_s / price->chips / peak;
    price->tokens_per_s_per_chip = tokens / price->expected_s / price->chips;
    if (t->tokens > 0) {
        price->train_time_s = ceil(t->tokens / tokens) * price->expected_s;
        price->cost_usd = price->train_time_s / 3600 * t->usd_per_chip_hour * price->chips;
    }
}

/* FLOPs all chips really do in a step: recomputation included, idle slots of a last, partly filled
 * microbatch not. */
static double hardware_flops(const sm_train *t, const sm_plan *plan, const pieces *p,
                             double flops) {
    double chips_per_stage = 1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) chips_per_stage *= p->d.axis[a];
    double replicas = sm_plan_replicas(plan);
    return flops * chips_per_stage * t->sequences / (replicas * plan->microbatch);
}

/* What its work leaves of the busiest stage's time. */
static double sends_s(const stage_sums *x, double microbatches, const sm_pipeline_time *time) {
    return larger(0, time->busiest_s - microbatches * (x->compute + x->memory + x->exposed));
}

double price_sends_s(const sm_train *t, const sm_plan *plan, const pieces *p, stages *s,
                     const sm_pipeline_time *time) {
    stage_sums x = sums_of(t, plan, p, s, time->busiest_stage);
    return plan->pipeline > 1 ? sends_s(&x, microbatches_of(t, plan), time) : 0;
}

void price_fill(const sm_train *t, const sm_plan *plan, pieces *p, stages *s,
                sm_price_of_plan *price) {
    memset(price, 0, sizeof *price);
    assert(p->v && plan->pipeline >= 1 && plan->pipeline <= MAX_CHUNKS); /* placed before priced */
    price->microbatches = microbatches_of(t, plan);
    price->sequences_per_replica = ceil(t->sequences / sm_plan_replicas(plan));
    price->chips = sm_plan_chips(plan);
    price->trained = variant_trained(t, p->v, NULL);
    stages_chunks(t, plan, p, EXPECTED, s);
    sm_pipeline_time time = stages_run(s);
    stages_chunks(t, plan, p, SERIAL, s);
    double serial = stages_run(s).total_s;
    double flops = fill_lower(t, plan, p, s, price);
    step_end end = step_end_of(t, plan, p, s);
    price->expected_s = step_close(t, plan, time.total_s, &end);
    price->upper_s = serial + end.serial_s;
    double m = price->microbatches;
    stage_sums x = sums_of(t, plan, p, s, time.busiest_stage);
    sm_breakdown *b = &price->breakdown;
    b->math = m * x.compute;
    b->memory = m * x.memory;
    b->optimizer = end.update_s;
    b->other = end.other_s;
    double busy = b->math + b->memory + m * x.exposed;
    if (plan->pipeline > 1) busy += sends_s(&x, m, &time);
    b->bubble = larger(0, time.total_s - busy);
    b->network_exposed =
        larger(0, price->expected_s - b->math - b->memory - b->bubble - b->optimizer - b->other);
    if (m * x.latency > 0.5 * price->expected_s) price->bound = SM_BOUND_LATENCY;
    stages_memory(t, plan, p, s, &price->memory);
    price->fits = memory_fits(t, &price->memory);
    fill_rates(t, plan, hardware_flops(t, plan, p, flops), price);
}

sm_status price_step_memory(const sm_train *t, const sm_plan *plan, const pieces *p,
                            sm_price_of_plan *price, sm_error *err) {
    if (!t->software.one_by_one) return SM_OK;
    sm_status status = step_memory(t, plan, p, &price->memory, err);
    price->fits = memory_fits(t, &price->memory);
    return status;
}

/* ---- public functions ---- */

/* Every op named in a recomputation set must exist in some layer. */
static sm_status check_custom(const sm_train *t, const variant *v, const sm_plan *plan,
                              sm_error *err) {
    const char *names[SM_MAX_OPS * SM_MAX_LAYER_KINDS];
    const sm_program *program[SM_MAX_LAYER_KINDS];
    size_t count = 0, n;
    for (int k = 0; k < t->kinds; k++) {
        program[k] = &v->piece[k].part.program;
        for (int i = 0; i < program[k]->ops; i++) names[count++] = program[k]->op[i].name;
    }
    const char *at = sm_recompute_unknown(program, t->kinds, plan->recompute_ops, &n);
    if (!at) return SM_OK;
    const char *near = sm_nearest(at, n, names, count);
    return sm_fail(err, SM_BAD_INPUT, "recompute names \"%.*s\", which no layer has%s%s%s", (int)n,
                   at, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

sm_status train_custom_set(sm_train *t, const sm_plan *plan, sm_error *err) {
    variant *v = built_variant(t, plan);
    sm_status s = check_custom(t, v, plan, err);
    for (int k = 0; s == SM_OK && k < t->kinds; k++)
        s = piece_set_fill(&v->piece[k], CUSTOM_SET,
                           sm_recompute_named(&v->piece[k].part.program, plan->recompute_ops), err);
    return s;
}

sm_status price_scratch(sm_train *t, sm_error *err) {
    if (t->one) return SM_OK;
    t->one = sm_arena_alloc(t->arena, sizeof *t->one);
    t->one_stages = sm_arena_alloc(t->arena, sizeof *t->one_stages);
    if (t->one) t->one->load = t->one->own_load;
    if (!t->one || !t->one_stages || !stages_init(t, t->one_stages, 1, t->arena) ||
        !sm_curve_memo_init(&t->one->at.memo, &t->system, t->calibration, CURVES, t->arena)) {
        t->one = NULL;
        return sm_fail_memory(err);
    }
    return SM_OK;
}

bool train_take(sm_train *t, int chips) {
    const int part = sm_system_in_part(t->part ? &t->whole : &t->system, chips) ? chips : 0;
    if (part == t->part) return true;
    if (t->part == 0) t->whole = t->system;
    bool taken = part > 0 && sm_system_part(&t->whole, part, &t->system);
    if (!taken) t->system = t->whole;
    t->part = taken ? part : 0;
    if (t->one) sm_curve_memo_forget(&t->one->at.memo);
    return part == 0 || taken;
}

sm_status price_prepare(sm_train *t, sm_plan *plan, sm_error *err) {
    char why[256];
    plan_canonical(t, plan);
    train_take(t, sm_plan_chips(plan));
    const char *refused = plan_refuse(t, plan, why, sizeof why);
    if (refused) return sm_fail(err, SM_BAD_INPUT, "%s", refused);
    sm_status s = price_scratch(t, err);
    if (s) return s;
    t->one->v = train_variant(t, plan, err);
    if (!t->one->v) return err && err->status ? err->status : SM_INTERNAL;
    if (plan->recompute_ops[0]) {
        s = train_custom_set(t, plan, err);
        if (s) return s;
    }
    if (!pieces_place(t, plan, t->one)) {
        double used = (double)plan->data * plan->fsdp * plan->tensor * plan->context *
                      plan->expert * plan->pipeline;
        return sm_fail(err, SM_BAD_INPUT,
                       "the plan takes %.0f chips, which do not lay out on the %d of %s", used,
                       t->system.chips, t->system.text);
    }
    pieces_time(t, plan, t->one);
    pieces_kept(t, plan, t->one);
    pieces_gathered(t, plan, t->one);
    pieces_comm(t, plan, true, true, t->one);
    pieces_comm_again(t, t->one);
    pieces_load(t, plan, t->one);
    pieces_ways(t, plan, 0, t->one->v->pieces, t->one);
    pieces_pass(t, plan, 0, t->one->v->pieces, t->one);
    pieces_parts(t, plan, t->one);
    return SM_OK;
}

sm_status sm_train_price(sm_train *train, const sm_plan *plan, sm_price_of_plan *price,
                         sm_error *err) {
    sm_plan p = *plan;
    sm_status s = price_prepare(train, &p, err);
    if (s) return s;
    price_fill(train, &p, train->one, train->one_stages, price);
    if (!isfinite(price->expected_s))
        return sm_fail(err, SM_INTERNAL, "a group of chips of this plan lies on no link of %s",
                       train->system.text);
    return price_step_memory(train, &p, train->one, price, err);
}
