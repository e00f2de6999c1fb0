/* A job and the program variants it needs: built once, then only read. */
#include <assert.h>
#include <math.h>

#include "space.h"

/* ---- rows of a variant ----
 * What passes a limit is counted and not stored; the count is what the error tells. */

static uint8_t slot_for(variant *v, sm_collective op, sm_axes axes, bool ragged, slot_part part) {
    if (!(axes & SM_BIT(SM_AXIS_DATA))) part = ALL_COPIES;
    for (int i = 0; i < v->slots && i < MAX_SLOTS; i++)
        if (v->key[i].op == op && v->key[i].axes == axes && v->key[i].ragged == ragged &&
            v->key[i].part == part)
            return (uint8_t)i;
    if (v->slots++ >= MAX_SLOTS) return 0;
    v->key[v->slots - 1] = (slot_key){op, axes, ragged, part};
    return (uint8_t)(v->slots - 1);
}

void set_keep(piece_set *s, const sm_size *bytes) {
    for (int i = 0; i < s->kept && i < MAX_KEPT; i++) {
        sm_size *to = &s->kept_bytes[i];
        if (to->mask != bytes->mask || to->per_sequence != bytes->per_sequence) continue;
        to->base += bytes->base;
        return;
    }
    if (s->kept++ < MAX_KEPT) s->kept_bytes[s->kept - 1] = *bytes;
}

static sm_size times_elements(const sm_tensor *t, double of_each) {
    sm_size size = {.base = t->elements * of_each, .per_sequence = t->per_sequence};
    for (int i = 0; i < t->rank; i++) size.mask = (sm_axes)(size.mask | t->at[i]);
    return size;
}

static void add_eager(piece_set *s, eager_kind kind, const sm_tensor *t) {
    if (s->eager++ < MAX_EAGER)
        s->eager_array[s->eager - 1] = (eager_array){kind, times_elements(t, 1)};
}

sm_status set_check(const piece_set *s, sm_error *err) {
    if (s->kept > MAX_KEPT)
        return sm_fail_limit(err, "shardings of the arrays a layer keeps", s->kept, MAX_KEPT);
    if (s->eager > MAX_EAGER)
        return sm_fail_limit(err, "arrays that a layer keeps more of", s->eager, MAX_EAGER);
    return SM_OK;
}

/* Whether two collectives take as long wherever they lie; those of keys may be of more heads in one
 * piece than in another. */
static bool takes_as_long(const piece *a, const sm_comm *x, const piece *b, const sm_comm *y) {
    return a->sent[x - a->part.comm].slot == b->sent[y - b->part.comm].slot &&
           x->bytes.base == y->bytes.base && x->bytes.mask == y->bytes.mask &&
           x->bytes.per_sequence == y->bytes.per_sequence && x->gradient == y->gradient &&
           x->narrow == y->narrow && x->stream == y->stream &&
           (a == b || x->stream != SM_STREAM_RING);
}

static uint16_t first_like(const variant *v, int main, int index, int nth) {
    const piece *p = &v->piece[index];
    for (int own = index == main; own < 2; own++) {
        const piece *q = own ? p : &v->piece[main];
        for (int k = 0; k < (own ? nth : q->part.comms); k++)
            if (takes_as_long(q, &q->part.comm[k], p, &p->part.comm[nth])) return q->sent[k].like;
    }
    return (uint16_t)(index * SM_MAX_COMM + nth);
}

static void add_sent(variant *v, int main, int index, int nth) {
    piece *p = &v->piece[index];
    const sm_comm *c = &p->part.comm[nth];
    const bool beside = c->stream == SM_STREAM_PREFETCH || c->stream == SM_STREAM_DRAIN;
    p->sent[nth] = (sent){.slot = slot_for(v, c->op, c->axes, c->ragged, ALL_COPIES),
                          .sum = !c->repeated                ? c->phase != SM_PHASE_FORWARD
                                 : c->role == SM_ROLE_WEIGHT ? SUM_WEIGHTS
                                                             : SUM_ACTIVATIONS,
                          .kind = beside                        ? STREAM
                                  : c->stream == SM_STREAM_RING ? RING
                                  : c->ragged                   ? EXCHANGE
                                                                : BLOCKING,
                          .may_run_again = c->phase == SM_PHASE_FORWARD && !beside};
    p->sent[nth].like = first_like(v, main, index, nth);
    v->over = (sm_axes)(v->over | c->axes);
}

static bool sends_as(const piece *p, const piece *main) {
    bool same = p != main && p->part.comms == main->part.comms;
    for (int i = 0; i < p->part.comms && same; i++)
        same = p->sent[i].like == main->sent[i].like && p->sent[i].sum == main->sent[i].sum;
    return same;
}

sm_status variant_slots(const sm_train *t, variant *v, int index, sm_error *err) {
    piece *p = &v->piece[index];
    for (int i = 0; i < p->part.comms; i++) add_sent(v, t->main_kind, index, i);
    if (index == t->main_kind) v->main_slots = v->slots; /* it is the first */
    p->sends_as_main = sends_as(p, &v->piece[t->main_kind]);
    for (int i = 0; i < p->part.classes; i++) {
        sm_axes axes = p->part.weight[i].partial;
        if (p->part.weight[i].fixed) continue;
        v->weight[index][i] =
            (class_slots){slot_for(v, SM_REDUCE_SCATTER, axes, false, ONE_COPY),
                          slot_for(v, SM_ALL_REDUCE, axes, false, ALL_COPIES),
                          slot_for(v, SM_ALL_GATHER, axes, false, ONE_COPY),
                          slot_for(v, SM_ALL_REDUCE, SM_BIT(SM_AXIS_DATA), false, ACROSS_COPIES),
                          slot_for(v, SM_BROADCAST, axes, false, ONE_COPY)};
    }
    if (v->slots <= MAX_SLOTS) return SM_OK;
    return sm_fail_limit(err, "different collectives of a model", v->slots, MAX_SLOTS);
}

/* ---- what a recomputation set keeps ---- */

static void add_kinds(const sm_program *b, const sm_op *op, piece_set *s) {
    const sm_tensor *out = &b->tensor[op->out];
    if (op->kind == SM_OP_VECTOR && op->inputs == 2 && b->tensor[op->in[1]].norm)
        add_eager(s, EAGER_NORM, out);
    else if (op->kind == SM_OP_ATTENTION) add_eager(s, EAGER_HEADS, out);
    else if (op->function == SM_FUNCTION_GATE && op->inputs == 2) add_eager(s, EAGER_GATE, out);
}

/* Ops that read the array in the backward pass, or to run again, are all matmuls. */
static bool only_matmuls(const sm_program *b, const piece_set *s, int tensor) {
    if (b->tensor[tensor].producer >= 0 && b->op[b->tensor[tensor].producer].reads_output)
        return false;
    for (int i = 0; i < b->ops; i++) {
        const sm_op *op = &b->op[i];
        for (int k = 0; k < op->inputs; k++)
            if (op->in[k] == tensor && op->kind != SM_OP_EINSUM &&
                ((op->reads | (s->again >> i & 1 ? ~0u : 0u)) >> k & 1))
                return false;
    }
    return true;
}

static bool is_weighted(const sm_program *b, int tensor) {
    for (int i = 0; i < b->ops; i++)
        if (b->op[i].function == SM_FUNCTION_COMBINE && b->op[i].in[0] == tensor) return true;
    return false;
}

static sm_status fill_set(const piece *p, sm_bits set, sm_regather regather, piece_set *s,
                          sm_error *err) {
    sm_kept_array kept[SM_MOST_KEPT];
    int n = sm_recompute_kept(&p->part, set, regather, &s->again, kept);
    s->kept = 0;
    for (int i = 0; i < n; i++) set_keep(s, &kept[i].bytes);
    /* Ops of the set keep nothing of their own, also those that nobody has run again. */
    s->eager = 0;
    for (int i = 0; i < p->part.program.ops; i++) {
        if (p->part.program.op[i].function == SM_FUNCTION_LOSS)
            add_eager(s, EAGER_LOSS, &p->part.program.tensor[p->part.program.op[i].in[0]]);
        else if (!(set >> i & 1)) add_kinds(&p->part.program, &p->part.program.op[i], s);
    }
    for (int i = 0; i < n; i++) {
        const sm_tensor *t = &p->part.program.tensor[kept[i].tensor];
        if (is_weighted(&p->part.program, kept[i].tensor)) add_eager(s, WEIGHTED, t);
        else if (t->bytes_per_element == 2 && only_matmuls(&p->part.program, s, kept[i].tensor)) {
            int before = s->eager;
            add_eager(s, OPERAND, t);
            if (before < MAX_EAGER) s->eager_array[before].elements.mask = kept[i].bytes.mask;
        }
    }
    return set_check(s, err);
}

sm_status piece_set_fill(piece *p, int index, sm_bits set, sm_error *err) {
    assert(index >= 0 && index < MAX_SETS);
    piece_set *s = &p->set[index], *whole = &p->set_whole[index];
    s->eager_array = &p->eager_array[index == CUSTOM_SET ? 2 * CUSTOM_SET * MAX_EAGER : p->eager];
    sm_status status = fill_set(p, set, SM_REGATHER_ALL, s, err);
    if (status) return status;
    whole->eager_array = s->eager_array + s->eager;
    status = fill_set(p, set, SM_REGATHER_NONE, whole, err);
    if (index != CUSTOM_SET) p->eager += s->eager + whole->eager;
    return status;
}

/* The op whose operands' gradients are most bytes: while they are made, the operands live too. */
static void find_gradients(piece *p) {
    const sm_program *b = &p->part.program;
    double most = 0, all = 0;
    for (int i = 0; i < b->ops; i++, all = 0) {
        sm_size each[SM_MAX_OPERANDS];
        int n = 0;
        for (int k = 0; k < b->op[i].inputs; k++) {
            const sm_tensor *t = &b->tensor[b->op[i].in[k]];
            if (t->role != SM_ROLE_ACTIVATION) continue;
            each[n] = times_elements(t, t->bytes_per_element);
            all += each[n++].base;
        }
        if (all <= most) continue;
        most = all, p->gradients = n;
        memcpy(p->gradient_bytes, each, (size_t)n * sizeof *each);
    }
}

/* The runtime gathers weights when they are wanted, and scatters gradients when they are made; what
 * runs again finds weights that have been gathered. */
static void all_block(sm_partition *part) {
    for (int i = 0; i < part->comms; i++) {
        sm_comm *c = &part->comm[i];
        if (c->stream != SM_STREAM_PREFETCH && c->stream != SM_STREAM_DRAIN) continue;
        c->stream = SM_STREAM_BLOCKING;
        c->forward_ops = 0;
    }
}

static sm_status build_piece(sm_train *t, variant *v, int index, sm_error *err) {
    static const sm_bits nothing = 0;
    sm_program program;
    piece *p = &v->piece[index];
    sm_piece what = index == head_piece(t) ? SM_PIECE_HEAD
                    : index >= t->kinds    ? SM_PIECE_EMBEDDING
                                           : SM_PIECE_LAYER;
    int kind = index < t->kinds ? index : index - t->kinds;
    v->rules.width = t->software.width;
    v->rules.all_slots = t->software.all_slots;
    v->rules.all_keys = t->software.all_keys;
    v->rules.slow_exp = t->software.slow_exp;
    v->rules.each_weight = t->software.each_weight;
    v->rules.each_line = t->software.each_line;
    if (t->software.panels) /* it has no other attention, and no other norms */
        v->rules.attention = SM_ATTENTION_FUSED, v->rules.norms_apart = false;
    sm_rules rules = v->rules;
    const sm_text_lines **lines = &t->lines[index];
    sm_status s = *lines ? SM_OK
                         : sm_program_lines(&t->model, sm_program_at(&t->model, what, kind), t->seq,
                                            &rules, t->arena, lines, err);
    if (s == SM_OK) s = sm_program_of_lines(*lines, &rules, &program, err);
    if (s == SM_OK) s = sm_program_partition(&program, &t->lowerings, &p->part, err);
    if (s != SM_OK) return s;
    if (t->software.one_by_one) all_block(&p->part);
    for (int i = 0; i < p->part.works; i++) /* recipes in 8 bits leave the head in 16 */
        p->part.work[i].linear = p->part.work[i].linear && what != SM_PIECE_HEAD;
    for (int set = 0; s == SM_OK && set < SM_RECOMPUTE_COUNT; set++)
        s = piece_set_fill(
            p, set,
            what == SM_PIECE_LAYER ? sm_recompute_set(&program, (sm_recompute)set) : nothing, err);
    if (s == SM_OK) s = piece_set_fill(p, CUSTOM_SET, nothing, err);
    find_gradients(p);
    return s == SM_OK ? variant_slots(t, v, index, err) : s;
}

/* ---- what variants have in common ---- */

static uint64_t mixed_size(uint64_t h, const sm_size *size) {
    uint64_t base;
    memcpy(&base, &size->base, sizeof base);
    return sm_hash_mixed(sm_hash_mixed(h, base), (uint64_t)size->mask << 1 | size->per_sequence);
}

/* Variants that differ only in what they send do the same work: the search prices it once. */
static void mix_piece(variant *v, const piece *p) {
    for (int i = 0; i < p->part.works; i++) {
        const sm_work *w = &p->part.work[i];
        const sm_size *shape[] = {
            &w->batch, &w->m, &w->n, &w->k, &w->flops, &w->kv_heads, &w->vector_flops, &w->routed};
        v->work = sm_hash_mixed(v->work, (uint64_t)w->kind << 16 | (uint64_t)w->phase << 8 |
                                             (uint64_t)w->op << 1 | w->linear);
        for (int k = 0; k < 8; k++) v->work = mixed_size(v->work, shape[k]);
        for (int k = 0; k < w->terms; k++) v->work = mixed_size(v->work, &w->bytes[k]);
    }
    for (int set = 0; set < MAX_SETS; set++) {
        const piece_set *s = &p->set[set];
        v->work = sm_hash_mixed(v->work, (uint64_t)s->again);
        v->work = sm_hash_mixed(v->work, (uint64_t)(s->again >> 64));
        for (int i = 0; i < s->kept; i++) v->work = mixed_size(v->work, &s->kept_bytes[i]);
        for (int i = 0; i < p->set_whole[set].kept; i++)
            v->work = mixed_size(v->work, &p->set_whole[set].kept_bytes[i]);
        for (int i = 0; i < s->eager; i++)
            v->work = sm_hash_mixed(mixed_size(v->work, &s->eager_array[i].elements),
                                    s->eager_array[i].kind);
    }
    for (int i = 0; i < p->part.classes; i++) {
        const sm_weight_class *c = &p->part.weight[i];
        const sm_size whole = {.base = c->elements,
                               .mask = (sm_axes)(c->stored & ~class_shards(v, c))};
        v->work = mixed_size(v->work, &whole);
    }
}

double variant_trained(const sm_train *t, const variant *v, double *weights) {
    double all = 0, arrays = 0;
    for (int i = 0; i < v->pieces; i++)
        for (int c = 0; c < v->piece[i].part.classes; c++) {
            const sm_weight_class *w = &v->piece[i].part.weight[c];
            double n = i < t->kinds ? t->layers[i] * w->share : 1;
            if (!w->fixed && !w->tied) all += w->elements * n, arrays += w->weights * n;
        }
    if (weights) *weights = arrays;
    return all;
}

variant *built_variant(const sm_train *t, const sm_plan *plan) {
    uint64_t code;
    sm_plan_rules(plan, &t->model, false, &code);
    for (int i = 0; i < VARIANTS && t->variant[i]; i++)
        if (t->variant[i]->code == code) return t->variant[i];
    return NULL;
}

static variant *build_variant(sm_train *t, const sm_plan *plan, sm_error *err) {
    int at = 0;
    while (at < VARIANTS && t->variant[at]) at++;
    variant *v = sm_arena_alloc(t->arena, sizeof *v);
    if (!v) return sm_fail_memory(err), NULL;
    v->rules = sm_plan_rules(plan, &t->model, false, &v->code);
    v->pieces = head_piece(t) + 1;
    v->piece = sm_arena_array(t->arena, (size_t)v->pieces, sizeof *v->piece);
    if (!v->piece) return sm_fail_memory(err), NULL;
    v->work = 1;
    if (build_piece(t, v, t->main_kind, err)) return NULL;
    for (int i = 0; i < v->pieces; i++) {
        if (i != t->main_kind && build_piece(t, v, i, err)) return NULL;
        mix_piece(v, &v->piece[i]);
    }
    const sm_program *program[MAX_PIECES];
    for (int i = 0; i < v->pieces; i++) program[i] = &v->piece[i].part.program;
    if (sm_program_loans(&t->model, program, &v->loans, v->loan, err)) return NULL;
    v->widest = sm_loans_widest(&t->model, v->loan, v->loans);
    assert(at < VARIANTS);
    if (variant_trained(t, v, NULL) <= 0) {
        sm_fail(err, SM_BAD_INPUT, "no matrix of this model is among the targets of its adapters");
        return NULL;
    }
    return t->variant[at] = v;
}

const variant *train_variant(sm_train *t, const sm_plan *plan, sm_error *err) {
    const variant *v = built_variant(t, plan);
    return v ? v : build_variant(t, plan, err);
}

/* A caller's job, whose header may be older than ours. */
static sm_status take_job(const sm_job *given, sm_job *job, sm_error *err) {
    sm_status status = sm_sized_take(job, sizeof *job, given, err);
    if (status) return status;
    if (!(job->seq >= 1) || job->seq > 1e9 || fmod(job->seq, 1) != 0)
        return sm_fail(err, SM_BAD_INPUT,
                       "the sequence length must be a whole number of tokens, 1 to 1e9");
    if (!(job->batch_tokens >= job->seq))
        return sm_fail(err, SM_BAD_INPUT,
                       "a batch of %.0f tokens is less than one sequence of %.0f",
                       job->batch_tokens, job->seq);
    if (job->batch_tokens / job->seq > SM_MOST_SEQUENCES || job->tokens > 1e18)
        return sm_fail(
            err, SM_BAD_INPUT,
            "more than this can count: at most %.0e sequences a batch, 1e18 tokens a run",
            SM_MOST_SEQUENCES);
    if (sm_chip_peak(&job->system->chip, SM_BF16, NULL) <= 0)
        return sm_fail(err, SM_BAD_INPUT, "chip %s has no peak FLOP/s for bf16 or wider",
                       job->system->chip.name);
    return SM_OK;
}

void sm_train_set_calibration(sm_train *t, const sm_calibration *calibration) {
    t->own = calibration ? *calibration : *sm_calibration_of(&t->system.chip);
    t->calibration = &t->own;
    t->kernel = t->software.one_by_one ? t->own : sm_calibration_ahead(&t->own);
    if (t->one)
        sm_curve_memo_forget(&t->one->at.memo); /* its curves hold the old network's rates */
}

const sm_train_software sm_train_runtime = {.width = 4,
                                            .all_slots = true,
                                            .all_keys = true,
                                            .slow_exp = true,
                                            .each_weight = true,
                                            .each_line = true,
                                            .one_by_one = true,
                                            .rows = true,
                                            .panels = true,
                                            .no_host = true,
                                            .codebase = "scalemodel"};

sm_train_software sm_train_runtime_of(const sm_plan *plan) {
    sm_train_software software = sm_train_runtime;
    software.width = (int)sm_dtype_bytes(plan->dtype);
    return software;
}

sm_status sm_train_plan_as_run(const sm_model *model, sm_plan *plan, sm_error *err) {
    if (!sm_plan_given(plan, SM_PLAN_DTYPE)) plan->dtype = SM_FP32;
    if (plan->dtype != SM_BF16 && plan->dtype != SM_FP32)
        return sm_fail(err, SM_BAD_INPUT,
                       "dtype=%s cannot be run: matmuls are of single precision, of numbers that "
                       "are stored in it or in bf16; dtype=fp32 and bf16 can",
                       sm_dtype_name(plan->dtype));
    if (plan->capacity)
        return sm_fail(err, SM_BAD_INPUT,
                       "capacity=%d cannot be run: experts take all their tokens; capacity=0 can",
                       plan->capacity);
    if (plan->parameters != SM_STORED_BF16)
        return sm_fail(err, SM_BAD_INPUT,
                       "weights in 8 or 4 bits cannot be run: parameters=bf16 can, which are in "
                       "the plan's dtype");
    if (plan->loss != SM_LOSS_WHOLE)
        return sm_fail(err, SM_BAD_INPUT, "loss=chunked cannot be run: logits are made whole");
    if (plan->optimizer > SM_OPTIMIZER_SGD)
        return sm_fail(err, SM_BAD_INPUT,
                       "the optimizer of this plan cannot be run: adam, adam-no-master, adam-bf16, "
                       "adam-pure-bf16, adam-8bit and sgd can");
    /* What layers read of another stack lies as that made it. */
    if (!sm_model_stacked(model)) return SM_OK;
    if (sm_plan_given(plan, SM_PLAN_SEQ) && plan->seq)
        return sm_fail(err, SM_BAD_INPUT,
                       "seq=on cannot be run: layers of %s read what another stack made; seq=off "
                       "can",
                       model->name);
    plan->seq = false;
    plan->given |= 1ull << SM_PLAN_SEQ;
    return SM_OK;
}

void sm_train_set_software(sm_train *t, const sm_train_software *software) {
    /* bytes between members may differ where the values do not: then programs are made anew */
    bool other = memcmp(&t->software, software, /* NOLINT(bugprone-suspicious-memory-comparison) */
                        sizeof *software) != 0;
    t->software = *software;
    /* Host memory of a chip whose link to it is not known is its own memory under another account:
     * what is offloaded is read there and written here. */
    if (software->no_host && !(t->system.chip.pcie_bytes_per_s_oneway.value > 0))
        t->system.chip.pcie_bytes_per_s_oneway.value = t->system.chip.memory_bytes_per_s.value / 2;
    t->weight_bytes = software->width ? software->width : sm_dtype_bytes(SM_BF16);
    t->kernel = software->one_by_one ? t->own : sm_calibration_ahead(&t->own);
    if (other) memset(t->variant, 0, sizeof t->variant); /* their programs were others */
    if (software->codebase)
        t->software_memory = *sm_software_memory_of(software->codebase, &t->system.chip, 0);
    if (t->one) sm_curve_memo_forget(&t->one->at.memo);
}

void sm_train_set_memory_margin(sm_train *t, double margin) { t->memory_margin = margin; }

void sm_train_set_software_memory(sm_train *t, const sm_software_memory *held) {
    t->software_memory = *held;
}

const sm_calibration *sm_train_calibration(const sm_train *train) { return train->calibration; }

static void set_job(const sm_job *job, sm_train *t) {
    t->system = *job->system;
    t->part = 0;
    sm_train_set_software(t, &(sm_train_software){.width = 0});
    sm_train_set_calibration(t, NULL);
    sm_train_set_software_memory(t, sm_software_memory_of("", &t->system.chip, 0));
    sm_train_set_memory_margin(t, 0);
    t->sequences = fmax(1, round(job->batch_tokens / job->seq));
    t->tokens = job->tokens;
    t->usd_per_chip_hour = job->usd_per_chip_hour >= 0 ? job->usd_per_chip_hour
                                                       : sm_chip_usd_per_hour(&t->system.chip);
}

static sm_status set_model(const sm_job *job, sm_train *t, sm_error *err) {
    t->model = *job->model;
    t->seq = job->seq;
    const sm_flops forward = sm_model_forward_flops(&t->model, t->seq, t->model.causal);
    const double own = forward.tokens / t->seq; /* of a picture, whatever is asked */
    t->model_flops_per_token = 3 * forward.total * own;
    t->matmul_flops_per_token = forward.matmul * own;
    bool pads = false;
    if (job->padded_for) {
        sm_status status =
            sm_plan_pad(job->padded_for, job->model, t->arena, &t->model, &pads, err);
        if (status) return status;
    }
    double done = sm_model_train_flops(&t->model, t->seq, t->model.causal) * own;
    if (isnan(t->model_flops_per_token + t->matmul_flops_per_token + done))
        return sm_fail_memory(err);
    if (pads) t->padding = 1 - t->model_flops_per_token / done;
    sm_plan_keep_used_kinds(&t->model);
    t->kinds = t->model.kinds;
    for (int l = 0; l < t->model.L; l++) t->layers[t->model.layer[l]]++;
    for (int k = 0; k < t->kinds; k++) {
        if (t->layers[k] > t->layers[t->main_kind]) t->main_kind = k;
        t->most_experts = fmax(t->most_experts, t->model.kind[k].E_held);
        t->largest_top_k = fmax(t->largest_top_k, t->model.kind[k].k_top);
    }
    return SM_OK;
}

const sm_model *sm_train_padded(const sm_train *t, double *padding) {
    *padding = t->padding;
    return &t->model;
}

sm_status sm_train_change(sm_train *t, const sm_job *given, sm_error *err) {
    sm_job job;
    sm_status s = take_job(given, &job, err);
    if (s) return s;
    if (job.seq < t->seq || job.seq > t->seq)
        return sm_fail(err, SM_INTERNAL, "a job of other sequences has other programs");
    set_job(&job, t);
    return SM_OK;
}

sm_status sm_train_new(const sm_job *given, sm_train **train, sm_error *err) {
    sm_job job;
    *train = NULL;
    sm_status s = take_job(given, &job, err);
    if (s) return s;
    sm_arena *arena = sm_arena_new();
    sm_train *t = arena ? sm_arena_alloc(arena, sizeof *t) : NULL;
    if (!t) {
        sm_arena_free(arena);
        return sm_fail_memory(err);
    }
    t->arena = t->lowerings.arena = arena;
    s = set_model(&job, t, err);
    if (s) {
        sm_arena_free(arena);
        return s;
    }
    set_job(&job, t);
    *train = t;
    return SM_OK;
}

void sm_train_free(sm_train *train) {
    if (train) sm_arena_free(train->arena);
}

double sm_train_sequences(const sm_train *train) { return train->sequences; }

double sm_train_length(const sm_train *train) { return train->seq; }
