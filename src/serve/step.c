/* One step of an engine: every piece of the program on the fullest chip, three ways.
 *
 * lower: what no implementation of this plan goes below, as How To Scale Your Model (inference) has
 * it: the cache is read, then the weights or the matmuls take what they take at datasheet rates,
 *     max(cache and states / W, attention FLOPs / C) + max(weights / W, matmul FLOPs / C),
 * and no network level carries its bytes in less. No launch and no latency is in it. The book
 * counts all parameters of a dense model, the embedding too; with experts only what is read counts.
 * expected: the sum of all ops and of the exposed time of the collectives, under the calibration.
 * upper: nothing overlaps. */
#include <assert.h>

#include "serve_space.h"

/* ---- the bound of a piece ---- */

double class_read(const step *x, int index, const sm_weight_class *c) {
    unsigned shards = x->plan->gathered ? SM_BIT(SM_AXIS_FSDP) : 0u;
    double rows = x->s->experts || index < x->s->kinds ? c->rows : 0;
    return (c->elements - rows) / x->d.ways[c->stored & ~shards];
}

double experts_share(const step *x, int index) {
    const sm_layer_kind *k = &x->s->model.kind[index];
    double tokens = x->routed.sequences / expert_groups(&x->d);
    if (!x->v->rules.decode) tokens /= x->d.axis[SM_AXIS_CONTEXT];
    return experts_reached(k->E, k->k_top, tokens) / k->E;
}

bool reads_weights(const step *x, int index) {
    const piece *p = &x->v->piece[index];
    if (is_before_head(x->s, index) && x->s->model.tied) return false;
    return !p->encodes || x->begun.sequences > 0;
}

/* Weights a chip reads: gathered ones whole, of routed experts those that some token reaches. */
static double weights_read(const step *x, int index) {
    const sm_partition *part = &x->v->piece[index].part;
    double bytes = 0;
    for (int i = 0; reads_weights(x, index) && i < part->classes; i++) {
        const sm_weight_class *c = &part->weight[i];
        double read = class_read(x, index, c) * (c->expert ? experts_share(x, index) : 1);
        bytes += read * 2 * weight_scale(x->s, index, c->expert);
    }
    return bytes;
}

/* ---- the time of a piece ---- */

typedef struct streams {
    double blocking, ring, prefetch;
} streams;

static void add_comm(const sm_comm *c, const comm_price *p, piece_price *to, streams *z) {
    if (p->expected <= 0) return;
    to->upper += p->upper;
    to->kernels++;
    for (int l = 0; l < SM_MAX_LEVELS; l++) to->ideal[l] += p->ideal[l];
    if (c->stream == SM_STREAM_BLOCKING) z->blocking += p->expected;
    else if (c->stream == SM_STREAM_RING) z->ring += p->expected;
    else z->prefetch += p->expected;
}

/* What shows of a stream beside so much work. */
static double shown(const sm_serve *s, double stream, double work) {
    return stream - s->calibration->overlap * smaller(stream, work);
}

/* As in training: on a torus the compiler runs the collectives of a prefill under slices of the
 * matmuls; on switched systems they show. Those of a decode step stand on its path everywhere. */
static streams shown_of(const step *x, const piece_price *p, const streams *z) {
    const sm_serve *s = x->s;
    bool slices = s->system.torus_dims > 0 && !x->v->rules.decode;
    streams out = {.blocking = slices ? shown(s, z->blocking, p->matmul_s) : z->blocking,
                   .ring = shown(s, z->ring, p->attention_s)};
    double path = out.blocking + out.ring;
    out.prefetch = shown(s, z->prefetch, p->matmul_s + p->attention_s + path);
    return out;
}

/* Scans have a state that they carry on. */
static bool op_scans(const piece *p, const fused *f) {
    return p->part.program.op[p->part.work[f->first].op].state >= 0;
}

static void add_work(const step *x, int index, const fused *f, piece_price *to) {
    op_price op = op_price_of(x, index, f);
    double busy = op.expected - op.launch;
    to->other += op.launch;
    to->upper += op.upper;
    to->kernels += op.kernels;
    bool scans = op_scans(&x->v->piece[index], f);
    if (op.class == OP_VECTOR) *(scans ? &to->scans : &to->other) += busy;
    else if (!op.memory_bound) to->compute += busy;
    else if (op.class == OP_ATTENTION) to->kv += busy;
    else to->weights += busy;
    if (op.class == OP_ATTENTION) to->attention_s += op.expected;
    else if (op.class == OP_MATMUL) to->matmul_s += op.expected;
    double flops =
        x->v->piece[index].part.work[f->first].experts ? op.flops / x->s->job.imbalance : op.flops;
    to->flops += flops * x->d.ways[x->v->piece[index].part.work[f->first].flops.mask];
    if (op.class == OP_ATTENTION) {
        to->kv_bytes += op.kv_bytes;
        to->attention_flops += flops;
    } else if (op.class == OP_MATMUL) {
        to->linear_flops += flops;
    }
}

static bool is_decoding(double queries, double past) {
    return queries <= MOST_VERIFIED && past > 0;
}

static bool is_of(const attend *g, step_part of) {
    return is_decoding(g->queries, g->past) == (of == STEP_DECODING);
}

double step_part_tokens(const step *x, step_part of) {
    double tokens = 0;
    for (int i = 0; i < x->groups; i++)
        if (is_of(&x->group[i], of)) tokens += x->group[i].sequences * x->group[i].queries;
    return tokens * x->d.replicas;
}

step step_part_of(const step *x, step_part of) {
    step part = *x;
    part.groups = 0;
    for (int i = 0; i < x->groups; i++)
        if (is_of(&x->group[i], of)) part.group[part.groups++] = x->group[i];
    part.tokens.sequences = step_part_tokens(x, of);
    assert(of != STEP_PROMPTS || x->prefill);
    if (of == STEP_PROMPTS) part.v = x->prefill;
    return part;
}

/* Prompts of a mixed step are not attended to on the compressed cache, which takes several times
 * the FLOPs: their keys are expanded as in a prefill, and only sequences that decode absorb. Nor
 * are they scanned position by position, but in chunks. */
int step_ops(const step *x, int index, step_op *out) {
    const piece *p = &x->v->piece[index];
    const piece *prefill = x->prefill ? &x->prefill->piece[index] : NULL;
    bool latent = index < x->s->kinds && x->s->model.kind[index].attention == SM_ATTENTION_MLA;
    int n = 0;
    for (int i = 0; i < p->ops; i++) {
        const sm_work *w = &p->part.work[p->op[i].first];
        bool attends = latent && (w->function == SM_FUNCTION_ABSORBED || p->op[i].keyed);
        bool alone = prefill && (attends || op_scans(p, &p->op[i]));
        out[n++] = (step_op){&p->op[i], alone ? STEP_DECODING : STEP_WHOLE};
    }
    for (int i = 0; prefill && i < prefill->ops; i++) {
        const fused *f = &prefill->op[i];
        if ((latent && f->keyed) || op_scans(prefill, f)) out[n++] = (step_op){f, STEP_PROMPTS};
    }
    return n;
}

/* The ops of a piece, which no placement changes; and then its collectives. */
static void piece_work_of(const step *x, int index, piece_price *out) {
    const piece *p = &x->v->piece[index];
    step_op op[STEP_OPS];
    int n = step_ops(x, index, op);
    step_part made = STEP_WHOLE;
    step part;
    memset(out, 0, sizeof *out);
    out->weight_bytes = weights_read(x, index);
    for (int i = 0; i < n; i++) {
        bool whole = op[i].of == STEP_WHOLE;
        if (!whole && made != op[i].of) part = step_part_of(x, made = op[i].of);
        add_work(whole ? x : &part, index, op[i].f, out);
    }
    bool scans = false;
    for (int i = 0; i < p->ops; i++) scans = scans || op_scans(p, &p->op[i]);
    double state = scans && index < x->s->kinds ? state_held(x->s, p, index, &x->d) : 0;
    for (int i = 0; i < x->groups; i++)
        if (x->group[i].past > 0) out->kv_bytes += state * x->group[i].sequences;
}

static streams streams_of(const step *x, int index, piece_price *out) {
    const piece *p = &x->v->piece[index];
    streams z = {0};
    for (int i = 0; i < p->part.comms; i++) {
        comm_price c = comm_price_of(x, index, &p->part.comm[i]);
        add_comm(&p->part.comm[i], &c, out, &z);
    }
    return z;
}

static void piece_comm_of(const step *x, int index, piece_price *out) {
    streams z = streams_of(x, index, out), shows = shown_of(x, out, &z);
    out->network = shows.blocking + shows.ring + shows.prefetch;
}

void piece_shows(const step *x, int index, double *share) {
    piece_price price;
    piece_work_of(x, index, &price);
    streams z = streams_of(x, index, &price), shows = shown_of(x, &price, &z);
    share[SM_STREAM_BLOCKING] = z.blocking > 0 ? shows.blocking / z.blocking : 0;
    share[SM_STREAM_RING] = z.ring > 0 ? shows.ring / z.ring : 0;
    share[SM_STREAM_PREFETCH] = share[SM_STREAM_DRAIN] =
        z.prefetch > 0 ? shows.prefetch / z.prefetch : 0;
}

void piece_price_of(const step *x, int index, piece_price *out) {
    piece_work_of(x, index, out);
    piece_comm_of(x, index, out);
}

/* ---- the step ---- */

double piece_passes(const step *x, int index, bool fullest_stage) {
    const sm_serve *s = x->s;
    if (index >= s->kinds) return 1;
    double n = s->before[s->model.L][index], stages = x->plan->pipeline;
    return fullest_stage ? n * ceil(s->model.L / stages) * stages / s->model.L : n;
}

static void add_piece(const piece_price *p, double n, double exact, piece_price *to) {
    to->weights += n * p->weights;
    to->kv += n * p->kv;
    to->compute += n * p->compute;
    to->scans += n * p->scans;
    to->other += n * p->other;
    to->network += n * p->network;
    to->upper += n * p->upper;
    to->kernels += n * p->kernels;
    to->kv_bytes += exact * p->kv_bytes;
    to->attention_flops += exact * p->attention_flops;
    to->weight_bytes += exact * p->weight_bytes;
    to->linear_flops += exact * p->linear_flops;
    to->flops += exact * p->flops;
    for (int l = 0; l < SM_MAX_LEVELS; l++) to->ideal[l] += exact * p->ideal[l];
}

static sm_serve_bound bound_of(const sm_step_price *p) {
    double most = larger(larger(p->bound_weights_s, p->bound_kv_s),
                         larger(p->bound_compute_s, p->bound_network_s));
    double fixed = p->breakdown_s.other + p->breakdown_s.network - p->bound_network_s;
    if (fixed > 0.5 * p->expected_s) return SM_SERVE_LATENCY;
    if (p->bound_network_s >= most) return SM_SERVE_NETWORK;
    if (p->bound_compute_s >= most) return SM_SERVE_COMPUTE;
    return p->bound_kv_s >= most ? SM_SERVE_KV : SM_SERVE_WEIGHTS;
}

const char *sm_serve_bound_name(sm_serve_bound bound) {
    static const char *const names[] = {"weights", "kv", "compute", "network", "latency"};
    return bound <= SM_SERVE_LATENCY ? names[bound] : "?";
}

bool step_has(const step *x, int index) {
    return index != head_piece(x->s) || x->sampled.sequences > 0;
}

void step_work(const step *x, piece_price *pieces) {
    for (int i = 0; i < x->v->pieces; i++)
        if (step_has(x, i)) piece_work_of(x, i, &pieces[i]);
}

static void total_of(const step *x, const piece_price *pieces, piece_price *total) {
    memset(total, 0, sizeof *total);
    for (int i = 0; i < x->v->pieces; i++) {
        if (!step_has(x, i)) continue;
        piece_price one = pieces[i];
        piece_comm_of(x, i, &one);
        add_piece(&one, piece_passes(x, i, true), piece_passes(x, i, false), total);
    }
    double n = x->plan->pipeline - 1;
    if (n > 0) {
        comm_price c = send_price(x);
        total->network += n * c.expected;
        total->upper += n * c.upper;
        for (int l = 0; l < SM_MAX_LEVELS; l++) total->ideal[l] += n * c.ideal[l];
        total->kernels += n;
    }
}

void step_totals(const step *x, piece_price *total) {
    piece_price pieces[MAX_PIECES];
    step_work(x, pieces);
    total_of(x, pieces, total);
}

void step_price_from(const step *x, const piece_price *pieces, sm_step_price *price) {
    piece_price total;
    memset(price, 0, sizeof *price);
    total_of(x, pieces, &total);
    const sm_serve *s = x->s;
    double W = s->system.chip.memory_bytes_per_s.value;
    double C = sm_chip_peak(&s->system.chip, s->job.dtypes.compute, NULL);
    double rest = larger(total.weight_bytes / W, total.linear_flops / C);
    price->bound_kv_s = total.kv_bytes / W;
    price->bound_weights_s = total.weight_bytes / W;
    price->bound_compute_s = (total.linear_flops + total.attention_flops) / C;
    price->lower_s = larger(price->bound_kv_s, total.attention_flops / C) + rest;
    for (int l = 0; l < s->system.levels; l++) {
        if (total.ideal[l] <= price->bound_network_s) continue;
        price->bound_network_s = total.ideal[l];
        price->bound_level = l;
    }
    price->lower_s = larger(price->lower_s, price->bound_network_s);
    /* Launched one by one, kernels wait for the host when it is the slower. */
    const sm_calibration *c = x->s->calibration;
    double path =
        total.weights + total.kv + total.compute + total.scans + total.other + total.network;
    double host = x->s->job.eager ? total.kernels * c->launch_s : 0;
    double overhead = c->step_overhead_s + step_host_s(x);
    price->expected_s = larger(path, host) + overhead;
    price->upper_s = larger(total.upper, host) + overhead;
    price->breakdown_s.weights = total.weights;
    price->breakdown_s.kv = total.kv;
    price->breakdown_s.compute = total.compute;
    price->breakdown_s.scans = total.scans;
    price->breakdown_s.network = total.network;
    price->breakdown_s.other =
        price->expected_s - total.weights - total.kv - total.compute - total.scans - total.network;
    price->bound = bound_of(price);
    price->flops = total.flops;
}

void step_price(const step *x, sm_step_price *price) {
    piece_price pieces[MAX_PIECES];
    work_of(x->s->memo, x, pieces);
    step_price_from(x, pieces, price);
}

/* ---- preparation ---- */

static const double MOST = 1e12;

static bool counts_tokens(double x, double least) { return x >= least && x <= MOST; }

static sm_status check_batch(const sm_step_batch *batch, sm_error *err) {
    if (batch->groups < 1 || batch->groups > SM_MAX_GROUPS)
        return sm_fail(err, SM_BAD_INPUT, "a step has 1 to %d groups of sequences, not %d",
                       SM_MAX_GROUPS, batch->groups);
    for (int i = 0; i < batch->groups; i++) {
        const sm_attend *g = &batch->group[i];
        if (!(g->sequences > 0) || !(g->sequences <= MOST) || !counts_tokens(g->queries, 1) ||
            !counts_tokens(g->past, 0))
            return sm_fail(err, SM_BAD_INPUT,
                           "a step of %g sequences with %g new tokens on %g cached ones",
                           g->sequences, g->queries, g->past);
    }
    if (!counts_tokens(batch->sampled, 0))
        return sm_fail(err, SM_BAD_INPUT, "a step cannot sample %g tokens", batch->sampled);
    if (!(batch->begun <= MOST))
        return sm_fail(err, SM_BAD_INPUT, "%g sequences cannot begin in a step", batch->begun);
    return SM_OK;
}

/* What the software does on the host for each sequence that decodes: ranks with sequences of their
 * own each see to those. */
double step_host_s(const step *x) { return x->decoding * x->s->job.software->host_s_per_sequence; }

void step_resize(step *x, const sm_step_batch *batch) {
    double tokens = 0, sequences = 0, routed = 0, begun = 0, groups = expert_groups(&x->d);
    assert(batch->groups > 0 && batch->groups <= SM_MAX_GROUPS);
    x->groups = batch->groups;
    x->decoding = 0;
    for (int i = 0; i < batch->groups; i++) {
        const sm_attend *g = &batch->group[i];
        x->group[i] = (attend){fullest(x->d.replicas, g->sequences), g->queries, g->past};
        tokens += x->group[i].sequences * g->queries;
        sequences += x->group[i].sequences;
        if (!is_decoding(g->queries, g->past)) begun += x->group[i].sequences;
        else x->decoding += x->group[i].sequences;
        routed += fullest(groups, g->sequences) * groups * g->queries;
    }
    double drawn = batch->sampled > 0 ? fullest(x->d.replicas, batch->sampled) : 0;
    x->tokens = (sm_program_extent){tokens * x->d.replicas, 1, 1};
    x->sequences = (sm_program_extent){sequences * x->d.replicas, 1, 1};
    x->routed = (sm_program_extent){routed, 1, 1};
    if (batch->begun != 0) begun = larger(0, batch->begun) / x->d.replicas;
    x->begun = (sm_program_extent){begun * x->d.replicas, 1, 1};
    x->sampled = (sm_program_extent){drawn * x->d.replicas, 1, 1};
}

int step_decoding(const sm_step_batch *batch) {
    int n = 0;
    for (int i = 0; i < batch->groups; i++)
        n += is_decoding(batch->group[i].queries, batch->group[i].past);
    return n;
}

/* A step in which any sequence decodes is laid out for decoding. */
sm_status step_unplaced(sm_serve *s, const sm_plan *plan, const sm_step_batch *batch, step *out,
                        sm_error *err) {
    sm_error own = {0};
    int decoding = step_decoding(batch);
    bool mixed = decoding > 0 && decoding < batch->groups;
    out->s = s;
    out->plan = plan;
    out->expected_alone = false;
    sm_degrees_set(&out->d, plan, &s->model);
    out->v = variant_of(s, plan, decoding > 0, &own);
    out->prefill = out->v && mixed ? variant_of(s, plan, false, &own) : NULL;
    if (!out->v || (mixed && !out->prefill)) {
        if (err) *err = own;
        return own.status;
    }
    step_resize(out, batch);
    return SM_OK;
}

sm_status step_prepare(sm_serve *s, const sm_plan *plan, const sm_step_batch *batch, step *out,
                       sm_error *err) {
    char why[256];
    sm_status status = check_batch(batch, err);
    if (status != SM_OK) return status;
    const char *refused = serve_refuse(s, plan, why, sizeof why);
    if (refused) return sm_fail(err, SM_BAD_INPUT, "%s", refused);
    status = step_unplaced(s, plan, batch, out, err);
    if (status != SM_OK) return status;
    if (!sm_plan_place(plan, &out->d, &s->system, &out->at))
        return sm_fail(err, SM_BAD_INPUT,
                       "the plan takes %d chips, which do not lay out on the %d of %s",
                       sm_plan_chips(plan), s->system.chips, s->system.text);
    out->at_hash = placement_hash(&out->at);
    return SM_OK;
}

sm_status sm_serve_step(sm_serve *serve, const sm_plan *plan, const sm_step_batch *batch,
                        sm_step_price *price, sm_error *err) {
    sm_plan p = *plan;
    step x;
    sm_plan_settle(&p, &serve->model);
    sm_status status = step_prepare(serve, &p, batch, &x, err);
    if (status != SM_OK) return status;
    step_price(&x, price);
    if (!isfinite(price->expected_s))
        return sm_fail(err, SM_INTERNAL, "a group of chips of this plan lies on no link of %s",
                       serve->system.text);
    return SM_OK;
}
