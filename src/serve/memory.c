/* What lies in the memory of a chip: weights, the cache, the arrays of a step.
 *
 *   cache of a sequence = bytes of an element * 2 * KV heads * head size * layers * tokens
 *
 * with 2 for keys and values, under grouped-query attention ("How To Scale Your Model", inference
 * chapter); windows, latent attention and shared caches change the tokens or the widths. Each part
 * is divided by the axes that shard it. The largest batch is what the rest of the memory holds. */
#include <math.h>
#include <string.h>

#include "serve_space.h"

static sm_axes stored(const sm_program *p, const sm_tensor *t, bool sequences) {
    unsigned mask = 0;
    for (int i = 0; i < t->rank; i++)
        if ((p->dim[t->dim[i]].role == SM_DIMENSION_SEQUENCES) == sequences) mask |= t->at[i];
    return (sm_axes)mask;
}

/* ---- weights ---- */

static double piece_params(const sm_serve *s, const variant *v, int index, const holding *h,
                           sm_axes gathered) {
    const sm_partition *p = &v->piece[index].part;
    const bool whole = s->starts && !s->job.as_stored && index >= s->kinds;
    double bytes = 0;
    for (int i = 0; i < p->classes; i++) {
        const sm_weight_class *c = &p->weight[i];
        if (c->tied && index != head_piece(s)) continue; /* its own piece has it */
        double held = c->elements * sm_weight_share(c, h->stages);
        double scale = weight_scale(s, index, c->expert);
        if (whole) scale = larger(1, scale); /* engines leave embedding and head in 16 bits */
        bytes += held / h->d.ways[c->stored & ~gathered] * 2 * scale;
    }
    return bytes;
}

/* ---- the cache and the states ---- */

static const sm_tensor *kept_in(const sm_program *p, sm_role role) {
    for (int i = 0; i < p->tensors; i++)
        if (p->tensor[i].role == role) return &p->tensor[i];
    return NULL;
}

double state_held(const sm_serve *s, const piece *of, int kind, const sm_degrees *d) {
    const sm_program *p = &of->part.program;
    const sm_tensor *state = kept_in(p, SM_ROLE_STATE);
    if (!state) state = kept_in(p, SM_ROLE_CACHE);
    if (!state) return 0;
    double bytes = sm_layer_state_bytes(&s->model.kind[kind], s->job.dtypes.kv);
    return bytes / d->ways[stored(p, state, false)];
}

/* ---- the arrays of a step ---- */

void find_tokens(piece *of) {
    const sm_program *p = &of->part.program;
    for (int k = 0; k < p->tensors; k++) {
        const sm_tensor *t = &p->tensor[k];
        double own = 1;
        for (int i = 0; i < t->rank; i++) {
            sm_dimension_role role = p->dim[t->dim[i]].role;
            if (role == SM_DIMENSION_POSITIONS || role == SM_DIMENSION_KEYS)
                own *= p->dim[t->dim[i]].size;
        }
        bool lives = t->role == SM_ROLE_ACTIVATION;
        of->token[k].bytes = lives ? t->elements / own * t->bytes_per_element : 0;
        of->token[k].axes = stored(p, t, false) | stored(p, t, true);
    }
}

static double token_bytes(const piece *p, int tensor, const sm_degrees *d) {
    return p->token[tensor].bytes / d->ways[p->token[tensor].axes & ~d->sequence_axes];
}

static bool is_of_experts(const sm_program *p, int tensor) {
    const sm_tensor *t = &p->tensor[tensor];
    int i = 0;
    while (i < t->rank && p->dim[t->dim[i]].role != SM_DIMENSION_EXPERTS) i++;
    return i < t->rank;
}

/* The residual stream, and what one op reads and writes; of an encoder's positions one. Of experts:
 * what such an op reads and writes, for which engines keep arrays beside all others. */
static double peak_token(const piece *of, const sm_degrees *d, bool experts) {
    const sm_program *p = &of->part.program;
    double most = 0;
    for (int i = 0; i < p->ops; i++) {
        double live = p->input >= 0 && !experts ? token_bytes(of, p->input, d) : 0;
        if (experts && !is_of_experts(p, p->op[i].out)) continue;
        live += token_bytes(of, p->op[i].out, d);
        for (int k = 0; k < p->op[i].inputs; k++) live += token_bytes(of, p->op[i].in[k], d);
        most = larger(most, live);
    }
    return most;
}

/* What an engine finds taken as it starts: a step of as many tokens and sequences as it allows,
 * whose arrays are those of its fullest op or of drawing tokens, beside what experts keep; and what
 * lies outside of arrays. */
static void start_engine(const sm_serve *s, const sm_plan *plan, const variant *prefill,
                         holding *f) {
    const sm_software *e = s->job.software;
    const double groups = larger(1, f->d.replicas / plan->data);
    const double tokens = sm_software_budget(e, groups) / groups,
                 sequences = smaller(sm_software_most(e, groups) / groups, tokens);
    double experts = 0;
    for (int k = 0; k < s->kinds; k++)
        experts = larger(experts, peak_token(&prefill->piece[k], &f->d, true));
    const piece *layer = &prefill->piece[s->model.layer[0]];
    const int input = layer->part.program.input;
    const double stream = input >= 0 ? token_bytes(layer, input, &f->d) : 0;
    const double drawing = stream * tokens + e->sampler_bytes * sequences * s->model.V;
    f->step = larger(f->token * tokens, drawing) + experts * tokens;
    f->outside = e->runtime_bytes + e->graph_bytes * smaller(2 * sequences, 512);
    const int group = sm_plan_chips(plan) / (plan->pipeline * plan->data);
    if (group > 1) f->outside += e->group_bytes + e->peer_bytes * (group - 1);
}

sm_status holding_of(sm_serve *s, const sm_plan *plan, double tokens_each, holding *out,
                     sm_error *err) {
    sm_error own = {0};
    char why[256];
    memset(out, 0, sizeof *out);
    const char *refused = serve_refuse(s, plan, why, sizeof why);
    if (refused) return sm_fail(err, SM_BAD_INPUT, "%s", refused);
    const variant *decode = variant_of(s, plan, true, &own);
    const variant *prefill = decode ? variant_of(s, plan, false, &own) : NULL;
    if (!prefill) return err ? (*err = own, own.status) : own.status;
    sm_degrees_set(&out->d, plan, &s->model);
    out->stages = plan->pipeline;
    for (int i = 0; i < decode->pieces; i++) out->params[i] = piece_params(s, decode, i, out, 0);
    for (int k = 0; plan->gathered && k < s->kinds; k++) {
        double whole = piece_params(s, decode, k, out, SM_BIT(SM_AXIS_FSDP));
        out->gathered = larger(out->gathered, 2 * whole);
    }
    out->shards = out->d.replicas;
    for (int k = 0; k < s->kinds; k++) {
        const sm_program *program = &decode->piece[k].part.program;
        const sm_tensor *cache = kept_in(program, SM_ROLE_CACHE);
        const sm_layer_kind *kind = &s->model.kind[k];
        sm_dtype kv = s->job.dtypes.kv;
        out->kv[k] = state_held(s, &decode->piece[k], k, &out->d);
        if (cache)
            out->kv[k] += sm_layer_cache_bytes(kind, tokens_each, kv) /
                          out->d.ways[stored(program, cache, false)];
        if (cache) out->shards = out->d.ways[stored(program, cache, true)];
    }
    const piece *head = &prefill->piece[head_piece(s)];
    for (int k = 0; k < s->kinds; k++)
        out->token = larger(out->token, peak_token(&prefill->piece[k], &out->d, false));
    for (int i = 0; i < head->part.program.ops; i++)
        if (head->part.program.op[i].function == SM_FUNCTION_SAMPLE)
            out->logits = token_bytes(head, head->part.program.op[i].in[0], &out->d);
    if (s->starts) start_engine(s, plan, prefill, out);
    return SM_OK;
}

/* ---- stages ---- */

typedef struct stage_bytes {
    double params, kv; /* kv: of one sequence */
} stage_bytes;

static stage_bytes stage_of(const sm_serve *s, const holding *f, int stage) {
    int L = s->model.L, from = (int)((int64_t)stage * L / f->stages);
    int to = (int)((int64_t)(stage + 1) * L / f->stages);
    bool first = stage == 0, last = stage == f->stages - 1;
    stage_bytes b = {0, 0};
    for (int k = 0; k < s->kinds; k++) {
        b.params += (s->before[to][k] - s->before[from][k]) * f->params[k];
        b.kv += (s->before[to][k] - s->before[from][k]) * f->kv[k];
    }
    for (int i = embedding_piece(s); first && i < head_piece(s); i++) b.params += f->params[i];
    if (last && !(first && s->model.tied)) b.params += f->params[head_piece(s)];
    return b;
}

/* What may be used is base + share * span. The share of vLLM (gpu_memory_utilization) is of all
 * memory, of SGLang (mem_fraction_static) for weights and cache alone, of TensorRT-LLM
 * (free_gpu_memory_fraction) of what all else leaves. */
typedef struct allowance {
    double base, span, share;
} allowance;

static allowance allowed(const sm_serve *s, const holding *f, double params) {
    const sm_software *e = s->job.software;
    const double all = sm_chip_memory(&s->system.chip)->value, own = f->step + f->outside;
    const double span = all - f->outside, taken = params + f->gathered + own;
    const double budget = e->budget_of_all > 0 ? e->budget_of_all : e->budget_tokens;
    const double rule = 1 - e->left_bytes_per_token * budget / span;
    if (s->job.reserve >= 0) return (allowance){0, all, 1 - s->job.reserve};
    if (!s->starts) return (allowance){0, all, e->memory_share};
    if (e->share_is_of_rest) return (allowance){taken, larger(0, all - taken), e->memory_share};
    if (!e->share_is_static) return (allowance){0, all, e->memory_share};
    return (allowance){own, span, e->memory_share > 0 ? e->memory_share : larger(0, rule)};
}

/* Arrays of a step, those that draw tokens with them; with an engine those of its start. */
static double step_of(const sm_serve *s, const holding *f, double step_tokens, double drawn) {
    if (s->starts) return f->step;
    return f->token * larger(1, step_tokens / f->d.replicas) + f->logits * drawn;
}

void holding_memory(const sm_serve *s, const holding *f, double sequences, double step_tokens,
                    sm_serve_memory *m) {
    double each = fullest(f->shards, sequences), drawn = fullest(f->d.replicas, sequences);
    memset(m, 0, sizeof *m);
    for (int i = 0; i < f->stages; i++) {
        stage_bytes b = stage_of(s, f, i);
        if (i > 0 && b.params + each * b.kv <= m->params + m->kv) continue;
        m->params = b.params;
        m->kv = each * b.kv;
    }
    m->activations = step_of(s, f, step_tokens, drawn);
    m->buffers = f->gathered + f->outside;
    m->total = m->params + m->kv + m->activations + m->buffers;
    const allowance a = allowed(s, f, m->params);
    m->capacity = a.base + a.share * a.span;
    m->share = a.share;
    m->least_share = (m->total - a.base) / a.span;
}

/* How many sequences a shard has room for, not rounded. */
static double room_of(const sm_serve *s, const holding *f, double step_tokens) {
    double most = INFINITY;
    for (int i = 0; i < f->stages; i++) {
        stage_bytes b = stage_of(s, f, i);
        const allowance a = allowed(s, f, b.params);
        double taken = b.params + f->gathered + f->outside + step_of(s, f, step_tokens, 0);
        double free = a.base + a.share * a.span - taken;
        double one = b.kv + (s->starts ? 0 : f->logits * f->shards / f->d.replicas);
        double each = one > 0 ? free / one : free > 0 ? INFINITY : 0;
        most = smaller(most, each > 0 ? each : 0);
    }
    return smaller(most, 1e9);
}

double holding_most(const sm_serve *s, const holding *f, double step_tokens) {
    double most = room_of(s, f, step_tokens);
    return most < 1 ? most : floor(most) * f->shards;
}

/* ---- public functions ---- */

static bool is_count(double x) { return x >= 0 && x <= 1e15; }

sm_status sm_serve_memory_of(sm_serve *serve, const sm_plan *plan, double sequences,
                             double tokens_each, double step_tokens, sm_serve_memory *memory,
                             sm_error *err) {
    holding f;
    sm_plan p = *plan;
    if (!is_count(sequences) || !is_count(tokens_each) || !is_count(step_tokens))
        return sm_fail(err, SM_BAD_INPUT,
                       "memory of %g sequences of %g tokens in steps of %g tokens", sequences,
                       tokens_each, step_tokens);
    sm_plan_settle(&p, &serve->model);
    sm_status status = holding_of(serve, &p, tokens_each, &f, err);
    if (status == SM_OK) holding_memory(serve, &f, sequences, step_tokens, memory);
    return status;
}

/* As engines print the size of the cache: local layers count tokens beyond their windows. */
static holding as_printed(const sm_serve *s, const holding *f, double tokens_each) {
    holding wide = *f;
    for (int k = 0; s->starts && k < s->kinds; k++) {
        sm_layer_kind kind = s->model.kind[k];
        if (!(kind.bounded > 0)) continue;
        const double own = sm_layer_cache_bytes(&kind, tokens_each, s->job.dtypes.kv);
        kind.reach += s->job.software->window_tokens;
        wide.kv[k] *= sm_layer_cache_bytes(&kind, tokens_each, s->job.dtypes.kv) / own;
    }
    return wide;
}

sm_status sm_serve_room_of(sm_serve *serve, const sm_plan *plan, double tokens_each,
                           double step_tokens, sm_serve_room *room, sm_error *err) {
    holding f;
    sm_plan p = *plan;
    sm_plan_settle(&p, &serve->model);
    *room = (sm_serve_room){0};
    if (!is_count(tokens_each) || !is_count(step_tokens)) return SM_OK;
    sm_status status = holding_of(serve, &p, tokens_each, &f, err);
    if (status) return status == SM_INTERNAL ? status : SM_OK;
    const holding printed = as_printed(serve, &f, tokens_each);
    const double each = room_of(serve, &f, step_tokens);
    room->most = holding_most(serve, &f, step_tokens);
    room->sequences = each < 1 ? each : each * f.shards;
    room->kv_tokens = room_of(serve, &printed, step_tokens) * f.shards * tokens_each;
    return SM_OK;
}
