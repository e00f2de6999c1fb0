/* A job of serving and the partitioned programs it needs: built once, then only read. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "serve_space.h"

/* ---- program variants ---- */

/* Matmuls that read one activation, multiply by weights and leave the same dtype. */
static bool runs_with(const sm_partition *p, const sm_work *a, const sm_work *b) {
    const sm_op *x = &p->program.op[a->op], *y = &p->program.op[b->op];
    double left = p->program.tensor[x->out].bytes_per_element;
    double right = p->program.tensor[y->out].bytes_per_element;
    return a->kind == SM_OP_EINSUM && b->kind == SM_OP_EINSUM && x->in[0] == y->in[0] &&
           a->experts == b->experts && a->linear && b->linear && !(left < right) &&
           !(right < left) && !op_is_keyed(a) && !op_is_keyed(b) && a->m.mask == b->m.mask &&
           a->k.mask == b->k.mask && a->batch.mask == b->batch.mask;
}

/* Programs are of one query and one key: what has more has a number of its own. */
static int most_of_role(const sm_program *p, const sm_tensor *t, sm_dimension_role role) {
    int most = 1;
    for (int i = 0; i < t->rank; i++)
        if (p->dim[t->dim[i]].role == role && p->dim[t->dim[i]].size > most)
            most = (int)p->dim[t->dim[i]].size;
    return most;
}

static fused fused_of(const sm_program *p, const sm_op *op, int work) {
    fused f = {.first = (uint8_t)work, .n = 1, .positions = 1, .keys = 1};
    for (int i = -1; i < op->inputs; i++) {
        const sm_tensor *t = &p->tensor[i < 0 ? op->out : op->in[i]];
        int positions = most_of_role(p, t, SM_DIMENSION_POSITIONS);
        int keys = most_of_role(p, t, SM_DIMENSION_KEYS);
        if (keys > f.keys) f.keys = keys;
        if (op->kind != SM_OP_ATTENTION && keys > positions) positions = keys;
        if (positions > f.positions) f.positions = positions;
    }
    return f;
}

static sm_status build_piece(sm_serve *s, variant *v, int index, sm_error *err) {
    sm_program program;
    piece *p = &v->piece[index];
    sm_piece what = index == head_piece(s) ? SM_PIECE_HEAD
                    : index >= s->kinds    ? SM_PIECE_EMBEDDING
                                           : SM_PIECE_LAYER;
    int kind = index < s->kinds ? index : index - s->kinds;
    sm_status status = sm_program_build_serving(&s->model, what, kind, &v->rules, &program, err);
    if (status == SM_OK)
        status = sm_program_partition_forward(&program, &s->programs->lowerings, &p->part, err);
    assert(status != SM_OK || p->part.works <= SM_MAX_WORK);
    for (int i = 0; status == SM_OK && i < p->part.works; i++) {
        fused *last = p->ops > 0 ? &p->op[p->ops - 1] : NULL;
        if (last && runs_with(&p->part, &p->part.work[last->first], &p->part.work[i])) last->n++;
        else {
            const sm_program *of = &p->part.program;
            p->op[p->ops++] = fused_of(of, &of->op[p->part.work[i].op], i);
        }
    }
    for (int i = 0; status == SM_OK && i < p->part.comms; i++) {
        const sm_op *op = &p->part.program.op[p->part.comm[i].forward_op];
        const fused f = fused_of(&p->part.program, op, 0);
        p->begins[i] = is_encoding(&f);
    }
    p->encodes = p->ops > 0;
    for (int i = 0; i < p->ops; i++) {
        op_describe(&p->part, &p->op[i]);
        p->encodes &= is_encoding(&p->op[i]);
    }
    if (status == SM_OK) find_tokens(p);
    return status;
}

bool has_encoder(const variant *v) {
    for (int i = 0; v && i < v->pieces; i++)
        for (int k = 0; k < v->piece[i].ops; k++)
            if (is_encoding(&v->piece[i].op[k])) return true;
    return false;
}

const variant *variant_of(sm_serve *s, const sm_plan *plan, bool decode, sm_error *err) {
    uint64_t code;
    int at = 0;
    sm_rules rules = sm_plan_rules(plan, &s->model, decode, &code);
    variant **known = s->programs->variant;
    for (; at < VARIANTS && known[at]; at++)
        if (known[at]->code == code) return known[at];
    const int pieces = head_piece(s) + 1;
    variant *v = sm_arena_alloc(s->programs->lowerings.arena,
                                sizeof *v + (size_t)pieces * sizeof v->piece[0]);
    if (!v) return sm_fail_memory(err), NULL;
    v->code = code;
    v->rules = rules;
    v->pieces = pieces;
    for (int i = 0; i < v->pieces; i++)
        if (build_piece(s, v, i, err) != SM_OK) return NULL;
    const sm_program *program[MAX_PIECES];
    for (int i = 0; i < v->pieces; i++) program[i] = &v->piece[i].part.program;
    if (sm_program_loans(&s->model, program, &v->loans, v->loan, err) != SM_OK) return NULL;
    v->widest = sm_loans_widest(&s->model, v->loan, v->loans);
    assert(at < VARIANTS);
    return known[at] = v;
}

/* ---- the job ---- */

static const double MOST_TOKENS = 1e9;

static bool within(double x, double least, double most) { return x >= least && x <= most; }

static sm_status check_lengths(const sm_serve_job *job, sm_error *err) {
    if (!within(job->prompt, 1, MOST_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "a prompt must have 1 to %.0e tokens, not %g",
                       MOST_TOKENS, job->prompt);
    if (!within(job->output, 1, MOST_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "an output must have 1 to %.0e tokens, not %g",
                       MOST_TOKENS, job->output);
    if (!within(job->prefix, 0, job->prompt) || !(job->prefix < job->prompt))
        return sm_fail(err, SM_BAD_INPUT,
                       "a cached prefix of %g tokens is not shorter than the prompt of %g",
                       job->prefix, job->prompt);
    if (!within(job->context, 0, MOST_TOKENS))
        return sm_fail(err, SM_BAD_INPUT, "a context must have 0 to %.0e tokens, not %g",
                       MOST_TOKENS, job->context);
    return SM_OK;
}

static sm_status check_job(const sm_serve_job *job, sm_error *err) {
    const sm_speculation *x = &job->speculation;
    sm_status status = check_lengths(job, err);
    if (status != SM_OK) return status;
    /* What keeps a cache writes, even where its attention is counted over all keys. */
    if (!job->model->causal && !(sm_model_kv_bytes_per_token(job->model, SM_BF16) > 0.0))
        return sm_fail(err, SM_BAD_INPUT,
                       "%s reads a sequence in both directions at once and writes no tokens one by "
                       "one, which is what serving prices; `model` and `train` know it",
                       job->model->name);
    if (job->model->attends_outside) /* priced by the heads and the reach of a kind of layer */
        return sm_fail(err, SM_BAD_INPUT,
                       "%s attends outside of its layers, which serving does not price",
                       job->model->name);
    if (job->imbalance != 0 && !within(job->imbalance, 1, 1e6))
        return sm_fail(err, SM_BAD_INPUT,
                       "the imbalance of experts must be at least 1 (the fullest chip's tokens "
                       "over the mean), not %g",
                       job->imbalance);
    if (x->depth < -1 || x->depth >= MOST_VERIFIED)
        return sm_fail(err, SM_BAD_INPUT, "a speculation drafts 0 to %d tokens, not %d",
                       MOST_VERIFIED - 1, x->depth);
    if (x->depth != 0 && !within(x->acceptance, 0, 1))
        return sm_fail(err, SM_BAD_INPUT, "an acceptance must lie between 0 and 1, not %g",
                       x->acceptance);
    if (!(job->reserve < 1))
        return sm_fail(err, SM_BAD_INPUT, "the reserve of memory must be below 1, not %g",
                       job->reserve);
    if (isnan(job->usd_per_chip_hour) || job->usd_per_chip_hour > 1e9)
        return sm_fail(err, SM_BAD_INPUT, "a price of %g dollars per chip and hour",
                       job->usd_per_chip_hour);
    if (sm_chip_peak(&job->system->chip, job->dtypes.compute, NULL) <= 0)
        return sm_fail(err, SM_BAD_INPUT, "chip %s has no peak FLOP/s for %s or wider",
                       job->system->chip.name, sm_dtype_name(job->dtypes.compute));
    return SM_OK;
}

/* Between two steps an engine schedules and samples. What a training step spends there (data,
 * logging) is no part of it, so constants not learned from serving count for no more than this. */
static const double ENGINE_OVERHEAD_S = 1e-3;

/* The kernels of an engine are nearer to single operations than to the steps of training. */
sm_calibration sm_serve_usual_calibration(const sm_chip *chip) {
    const sm_calibration *learned = sm_calibration_for(chip, "serving");
    const sm_calibration *near = learned ? learned : sm_calibration_for(chip, "kernels");
    if (!learned && near && !sm_calibration_is_own(near, chip)) near = NULL;
    sm_calibration usual = near ? *near : *sm_calibration_of(chip);
    if (!learned) usual.step_overhead_s = fmin(usual.step_overhead_s, ENGINE_OVERHEAD_S);
    return usual;
}

sm_dtype sm_serve_usual_compute(const sm_chip *chip, sm_dtype weights) {
    const sm_fact *peak = chip->flops_per_s;
    bool four = peak[SM_FP4].value > 0, half = weights == SM_FP16 || peak[SM_BF16].value <= 0;
    if ((weights == SM_FP4 || weights == SM_NVFP4) && four) return SM_FP4;
    if (weights == SM_MXFP4 && (four || peak[SM_MXFP4].value > 0)) return SM_FP8;
    if (weights == SM_FP8 && peak[SM_FP8].value > 0) return SM_FP8;
    return half && peak[SM_FP16].value > 0 ? SM_FP16 : SM_BF16;
}

void sm_serve_set_calibration(sm_serve *s, const sm_calibration *calibration) {
    s->own = calibration ? *calibration : sm_serve_usual_calibration(&s->system.chip);
    s->calibration = &s->own;
    s->kernel = sm_calibration_ahead(&s->own);
    const sm_serve_dtypes *d = &s->job.dtypes;
    const bool blocks = s->job.blocks || s->model.stored.blocks;
    if (!blocks || d->weights != SM_FP8 || d->compute != SM_FP8) s->kernel.block_scale_s = 0;
    curves_forget(s);
    engines_forget(s);
    if (s->draft) sm_serve_set_calibration(s->draft, calibration);
}

const sm_calibration *sm_serve_calibration(const sm_serve *s) { return s->calibration; }
const sm_software *sm_serve_software(const sm_serve *s) { return &s->software; }

void serve_set_system(sm_serve *s, const sm_system *system) {
    bool gpu = system->torus_dims == 0 && system->chip.fabric == SM_FABRIC_SWITCH;
    s->system = *system;
    s->starts = gpu && s->job.reserve < 0;
    s->usd_per_chip_hour = s->job.usd_per_chip_hour;
    if (s->usd_per_chip_hour < 0) s->usd_per_chip_hour = sm_chip_usd_per_hour(&system->chip);
    sm_software_on(&s->software, &system->chip, &s->model, s->job.speculation.depth != 0);
    curves_forget(s);
    if (s->draft) serve_set_system(s->draft, system);
}

static sm_status make_draft(const sm_serve_job *job, sm_serve *s, sm_error *err) {
    sm_serve_job draft = *job;
    if (job->speculation.depth == 0 || !job->speculation.draft) return SM_OK;
    draft.model = job->speculation.draft;
    draft.speculation = (sm_speculation){0};
    draft.like = NULL;
    sm_status status = sm_serve_new(&draft, &s->draft, err);
    if (status == SM_OK) s->job.speculation.draft = &s->draft->model;
    return status;
}

static sm_serve *allocate(int layers, const sm_serve *like) {
    sm_arena *arena = sm_arena_new();
    sm_serve *s = arena ? sm_arena_alloc(arena, sizeof *s) : NULL;
    if (s) {
        s->before = sm_arena_array(arena, (size_t)layers + 1, sizeof *s->before);
        s->programs = like ? like->programs : sm_arena_alloc(arena, sizeof *s->programs);
        s->arena = arena;
    }
    if (s && s->programs && !like) s->programs->lowerings.arena = arena;
    if (s) s->found_curve = sm_arena_array(arena, FOUND_CURVES, sizeof *s->found_curve);
    if (s && s->programs && s->before && s->found_curve &&
        sm_curve_memo_init(&s->curves, &s->system, &s->own, CURVES, arena))
        return s;
    sm_arena_free(arena);
    return NULL;
}

sm_status sm_serve_new(const sm_serve_job *given, sm_serve **serve, sm_error *err) {
    sm_serve_job own, *job = &own;
    *serve = NULL;
    sm_status status = sm_sized_take(job, sizeof *job, given, err);
    if (status == SM_OK) status = check_job(job, err);
    if (status != SM_OK) return status;
    sm_serve *s = allocate(job->model->L, job->like);
    if (!s) return sm_fail_memory(err);
    s->model = *job->model;
    sm_plan_keep_used_kinds(&s->model);
    s->kinds = s->model.kinds;
    for (int k = 0; k < s->kinds; k++) {
        s->experts |= s->model.kind[k].E > 0;
        s->largest_top_k = fmax(s->largest_top_k, s->model.kind[k].k_top);
    }
    const sm_model *m = &s->model;
    for (int l = 0; l < m->L; l++) {
        int k = m->layer[l];
        memcpy(s->before[l + 1], s->before[l], sizeof s->before[l]);
        s->before[l + 1][k]++;
    }
    s->job = *job;
    s->job.model = &s->model;
    s->job.system = &s->system;
    s->job.like = s;
    s->software = job->software ? *job->software : *sm_software_of(NULL);
    s->job.software = &s->software;
    if (job->imbalance == 0) s->job.imbalance = s->job.software->expert_imbalance;
    s->job.eager |= s->job.software->eager_launches;
    s->curves.peer_kernel = s->software.peer_kernel;
    serve_set_system(s, job->system);
    status = make_draft(job, s, err);
    sm_serve_set_calibration(s, NULL);
    if (status == SM_OK) *serve = s;
    else sm_serve_free(s);
    return status;
}

void sm_serve_free(sm_serve *serve) {
    if (!serve) return;
    sm_serve_free(serve->draft);
    engines_forget(serve);
    sm_arena_free(serve->arena);
}
