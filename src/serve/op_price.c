/* What one op of a piece takes on the fullest chip: matmuls see all tokens of the step, attention
 * each group of sequences by itself. */

#include "serve_space.h"

/* ---- dtypes ---- */

/* Checkpoints in 4 bits keep all but the routed experts in 16 where there are experts (gpt-oss's
 * mxfp4); those of NVIDIA (nvfp4) quantise shared experts, dense layers and output projections too,
 * which with the rest in 16 comes to 8 (DeepSeek-R1-0528-FP4-v2: 70 M weights of a layer in 16
 * bits, 161 M in 4.5). Dense ones quantise every matmul. */
double weight_scale(const sm_serve *s, int index, bool expert) {
    double bytes = sm_dtype_bytes(s->job.dtypes.weights);
    if (s->job.as_stored && index < s->kinds) {
        const sm_layer_kind *k = &s->model.kind[index];
        return (expert ? k->expert_bytes : k->other_bytes) / 2;
    }
    if (s->job.as_stored) return index == head_piece(s) ? s->model.stored.head / 2 : 1;
    if (s->experts && !expert && bytes < 1) bytes = s->job.dtypes.weights == SM_MXFP4 ? 2 : 1;
    return bytes / 2;
}

double role_scale(const sm_serve *s, int index, uint8_t role, bool expert) {
    if (role == SM_ROLE_WEIGHT) return weight_scale(s, index, expert);
    return role == SM_ROLE_CACHE ? sm_dtype_bytes(s->job.dtypes.kv) / 2 : 1;
}

/* ---- experts ---- */

/* E (1 - (1 - k/E)^n): each token leaves an expert out with probability 1 - k/E. */
double experts_reached(double E, double k, double tokens) {
    if (!(E > 0)) return 0;
    return k >= E ? E : -E * expm1(tokens * log1p(-k / E));
}

/* Of the experts of a chip, the share that some token reaches, each of which has so many rows in
 * the mean. */
double reached_share(const step *x, const sm_layer_kind *kind, double rows) {
    double E = kind->E, k = kind->k_top;
    double tokens = rows * E / k * x->s->job.imbalance; /* that this group of experts serves */
    return experts_reached(E, k, tokens) / E;
}

/* The share of them, and rows an expert gets then. */
typedef struct routed {
    double share, rows;
} routed;

static routed route(const step *x, const sm_layer_kind *kind, const sm_work *w) {
    const sm_program_extent *n = &x->routed;
    double mean = sm_size_at(&w->m, &x->d, n);
    routed r = {reached_share(x, kind, mean), mean * x->s->job.imbalance};
    r.rows = r.share > 0 ? larger(1, r.rows / r.share) : 1;
    return r;
}

/* ---- tokens ---- */

/* Keys that are held for a query in a layer of this kind. */
static double keys_held(const sm_layer_kind *kind, double tokens, double queries) {
    double reach = kind->chunk > 0 ? kind->chunk : kind->window;
    return reach > 0 ? smaller(tokens, reach + queries - 1) : tokens;
}

sm_program_extent group_counts(const step *x, const sm_layer_kind *kind, const attend *g) {
    double all = g->past + g->queries, held = kind ? keys_held(kind, all, g->queries) : all;
    return (sm_program_extent){g->sequences * x->d.replicas, g->queries, held};
}

static const sm_layer_kind *kind_of(const step *x, int index) {
    return index < x->s->kinds ? &x->s->model.kind[index] : NULL;
}

static const sm_program_extent *tokens_of(const step *x, int index, const fused *f) {
    if (is_encoding(f)) return &x->begun;
    return index == head_piece(x->s) ? &x->sampled : &x->tokens;
}

/* What converting weights takes longer than reading them, as a multiple of their bytes: those of
 * `scale` times 16 bits are of the type that is asked for, or in 16 bits. */
static double converting(const sm_serve *s, double scale) {
    const sm_chip *chip = &s->system.chip;
    bool asked = scale < 1 || !(sm_dtype_bytes(s->job.dtypes.weights) < 2);
    double rate = chip->narrow_bytes_per_s[asked ? s->job.dtypes.weights : SM_BF16].value;
    return rate > 0 ? larger(0, chip->memory_bytes_per_s.value / rate - 1) : 0;
}

static void add_bytes(const step *x, int index, const sm_work *w, const sm_program_extent *n,
                      double share, double rows, sm_work_sizes *at) {
    for (int i = 0; i < w->terms; i++) {
        bool weight = w->role[i] == SM_ROLE_WEIGHT;
        double scale = role_scale(x->s, index, w->role[i], w->experts);
        /* Quantised checkpoints leave the unembedding in 16 bits. */
        if (weight && index == head_piece(x->s)) scale = larger(1, scale);
        double bytes = sm_size_at(&w->bytes[i], &x->d, n) * scale * (weight ? share : rows);
        at->bytes += bytes;
        if (weight) at->converting += bytes * converting(x->s, scale);
    }
}

#define ROUTED 0.5 /* of a token's routing: dispatch and combine each */
/* Adds one kernel to the price of an op; returns its seconds. */
static double add_kernel(const step *x, const sm_work *w, sm_dtype dtype, const sm_work_sizes *at,
                         op_price *p) {
    const sm_serve *s = x->s;
    bool vector = p->class == OP_VECTOR && w->kind != SM_OP_KERNEL;
    sm_work_sizes slow = *at;
    slow.bytes += at->converting;
    sm_op_cost c = sm_work_cost(&s->system.chip, &s->kernel, w, dtype, &slow);
    double more = s->kernel.routing_s * ROUTED * sm_size_at(&w->routed, &x->d, &x->routed);
    if (w->passes)
        more = (c.expected_s - s->kernel.launch_s) * (1 / s->job.software->scan_rate - 1);
    p->expected += c.expected_s + more;
    p->upper += c.upper_s + more;
    p->memory_bound = c.memory_s > c.math_s || vector;
    p->flops += vector ? 0 : at->flops;
    p->bytes += at->bytes;
    p->launch += s->kernel.launch_s;
    p->kernels++;
    return c.expected_s;
}

static sm_work_sizes sizes_of(const step *x, const sm_work *w, const sm_program_extent *n) {
    const sm_degrees *d = &x->d;
    return (sm_work_sizes){.product = {sm_size_at(&w->batch, d, n),
                                       larger(1, sm_size_at(&w->m, d, n)), sm_size_at(&w->n, d, n),
                                       sm_size_at(&w->k, d, n)},
                           .flops = sm_size_at(&w->flops, d, n),
                           .vector_flops = sm_size_at(&w->vector_flops, d, n)};
}

static void add_simple(const step *x, int index, const sm_work *w, const sm_program_extent *n,
                       op_price *p) {
    sm_work_sizes at = sizes_of(x, w, n);
    add_bytes(x, index, w, n, 1, 1, &at);
    add_kernel(x, w, x->s->job.dtypes.compute, &at, p);
}

/* ---- matmuls ---- */

/* As wide as all of them, the input read once. */
static void add_fused(const step *x, int index, const fused *f, const sm_program_extent *n,
                      double share, double rows, sm_work_sizes *at) {
    const sm_work *w = &x->v->piece[index].part.work[f->first];
    at->product.n = at->flops = 0;
    for (int i = 0; i < f->n; i++) {
        at->product.n += sm_size_at(&w[i].n, &x->d, n);
        at->flops += sm_size_at(&w[i].flops, &x->d, n) * rows;
        add_bytes(x, index, &w[i], n, share, rows, at);
        if (i > 0 && w[i].role[0] == SM_ROLE_ACTIVATION)
            at->bytes -= sm_size_at(&w[i].bytes[0], &x->d, n) * rows;
    }
}

/* Of few rows src/run pads none: it reads a matrix of single precision as it lies, and for each row
 * but one once more from the chip's own memory, part by part after that part has come. */
static void read_for_each_row(const sm_serve *s, sm_work_sizes *at) {
    const sm_chip *chip = &s->system.chip;
    const double rows = at->product.m, tile = larger(1, chip->tile_m),
                 near = chip->onchip_bytes_per_s.value;
    if (s->job.dtypes.weights != SM_FP32 || rows > SM_FEW_ROWS || !(near > 0)) return;
    at->bytes *= 1 + larger(0, rows - 1) * chip->memory_bytes_per_s.value / near;
    at->product.m = tile;
    at->product.n *= rows / tile;
}

/* What a product in 8 or 4 bits is the first to read: in 16 bits, and written narrower. */
static double quantising_s(const step *x, const sm_work *w, const sm_program_extent *n) {
    const sm_serve *s = x->s;
    double width = sm_dtype_bytes(s->job.dtypes.compute), elements = 0;
    for (int i = 0; i < 2 && w->casts && width < 2; i++)
        if (w->role[i] != SM_ROLE_WEIGHT) elements += sm_size_at(&w->bytes[i], &x->d, n) / 2;
    return elements * (2 + width) /
           (s->system.chip.memory_bytes_per_s.value * s->kernel.memory_efficiency);
}

/* Matmuls of one input over the tokens of the step. */
static op_price matmul(const step *x, int index, const fused *f) {
    const sm_work *w = &x->v->piece[index].part.work[f->first];
    const sm_program_extent *n = w->experts ? &x->routed : tokens_of(x, index, f);
    op_price p = {.name = w->name, .class = OP_MATMUL};
    sm_work_sizes at = sizes_of(x, w, n);
    double share = 1, rows = 1;
    if (w->experts) {
        routed r = route(x, kind_of(x, index), w);
        share = r.share;
        rows = x->s->job.imbalance;
        at.product.m = r.rows;
        if (sm_dtype_bytes(x->s->job.dtypes.compute) >= 2 && weight_scale(x->s, index, true) < 1)
            at.product.batch /= x->s->job.software->widening_rate;
    }
    at.product.batch *= share;
    add_fused(x, index, f, n, share, rows, &at);
    if (x->s->job.query_by_query) read_for_each_row(x->s, &at);
    add_kernel(x, w, w->linear ? x->s->job.dtypes.compute : SM_BF16, &at, &p);
    const double k = w->linear && index != head_piece(x->s) ? at.product.k : 0;
    const double more = k * x->s->kernel.block_scale_s + (k > 0 ? quantising_s(x, w, n) : 0);
    p.expected += more;
    p.upper += more;
    return p;
}

/* ---- attention ---- */

/* Keys that a query sees on average. */
static double keys_seen(const sm_serve *s, const sm_layer_kind *kind, const attend *g) {
    double keys =
        sm_keys_met(g->queries, g->past + g->queries, s->model.causal, kind->window, kind->chunk);
    return s->model.causal ? larger(1, keys) : keys;
}

/* A few queries of a sequence that is decoding share its keys as the heads of a group do. */
static sm_attention_shape shape_of(const step *x, int index, const sm_work *w, const attend *g,
                                   int own_keys) {
    const sm_layer_kind *kind = kind_of(x, index);
    double all = g->past + g->queries;
    sm_program_extent n = {g->sequences * x->d.replicas, 1, 1};
    sm_attention_shape a = {.dtype = SM_BF16,
                            .kv_bytes = sm_dtype_bytes(x->s->job.dtypes.kv),
                            .panel = !x->s->job.query_by_query
                                         ? 0
                                         : smaller(larger(1, g->queries), SM_QUERIES_AT_ONCE)};
    double rows = sm_size_at(&w->batch, &x->d, &n), split = x->d.ways[w->n.mask];
    /* Axes that split the sequences of an attention op: those of the batch and, under
     * cache_by=batch, those that hold no heads of their own. */
    unsigned axes = x->d.sequence_axes;
    if (x->v->rules.decode && x->plan->cache_by == SM_CACHE_BATCH) {
        axes |= SM_BIT(SM_AXIS_FSDP) | SM_BIT(SM_AXIS_TENSOR_Q) | SM_BIT(SM_AXIS_TENSOR_W);
        if (kind->attention == SM_ATTENTION_MLA) axes |= SM_BIT(SM_AXIS_TENSOR);
    }
    double sequences = n.sequences / x->d.ways[axes & w->batch.mask];
    bool latent = kind->attention == SM_ATTENTION_MLA;
    a.shared_kv = latent && x->v->rules.absorbed;
    a.head_size = kind->H;
    a.v_head_size = kind->V_head;
    if (a.shared_kv) {
        a.head_size = kind->kv_rank + kind->rope_H;
        a.v_head_size = kind->kv_rank;
    }
    a.heads = rows / sequences;
    a.batch = larger(1, sequences);
    a.kv_heads = a.shared_kv ? 1 : smaller(a.heads, larger(1, sm_size_at(&w->kv_heads, &x->d, &n)));
    a.q_len = larger(1, g->queries / x->d.ways[w->m.mask]);
    double seen = own_keys > 1 ? own_keys : keys_seen(x->s, kind, g);
    double held = own_keys > 1 ? own_keys : keys_held(kind, all, g->queries);
    a.keys = larger(1, seen / split);
    a.kv_len = larger(a.keys, held / split);
    if (g->queries > 1 && g->queries <= MOST_VERIFIED && g->past > 0) {
        a.heads *= a.q_len;
        a.q_len = 1;
    }
    return a;
}

/* Attention of one group alone; returns its seconds. */
static double add_attention(const step *x, int index, const fused *f, const attend *g,
                            op_price *p) {
    const sm_work *w = &x->v->piece[index].part.work[f->first];
    const sm_attention_shape shape = shape_of(x, index, w, g, f->keys), *a = &shape;
    sm_work_sizes at = {.attention = a};
    double per_key =
        a->batch * a->kv_heads * a->kv_bytes * (a->head_size + (a->shared_kv ? 0 : a->v_head_size));
    double past = f->keys > 1 ? f->keys : keys_held(kind_of(x, index), g->past, 1);
    at.flops = 2 * a->batch * a->heads * a->q_len * a->keys * (a->head_size + a->v_head_size);
    at.bytes = per_key * a->kv_len;
    p->kv_bytes += per_key * smaller(past / x->d.ways[w->n.mask], a->kv_len);
    return add_kernel(x, w, SM_BF16, &at, p);
}

static op_price attention(const step *x, int index, const fused *f) {
    op_price p = {.name = x->v->piece[index].part.work[f->first].name, .class = OP_ATTENTION};
    const attend begun = {x->begun.sequences / x->d.replicas, f->positions, 0};
    double longest = 0;
    int groups = is_encoding(f) ? 1 : x->groups;
    for (int g = 0; g < groups; g++) {
        bool was = p.memory_bound;
        double s = add_attention(x, index, f, is_encoding(f) ? &begun : &x->group[g], &p);
        if (s <= longest) p.memory_bound = was;
        longest = larger(longest, s);
    }
    return p;
}

/* ---- the rest ---- */

static bool keyed_bytes(const sm_work *w) {
    for (int i = 0; i < w->terms; i++)
        if (w->bytes[i].per_key) return true;
    return w->flops.per_key;
}

static bool is_keyed(const sm_work *w) {
    return w->batch.per_key || w->m.per_key || w->n.per_key || w->k.per_key;
}

bool op_is_keyed(const sm_work *w) {
    return w->kind == SM_OP_ATTENTION || is_keyed(w) || keyed_bytes(w);
}

op_price op_price_of(const step *x, int index, const fused *f) {
    const sm_work *w = &x->v->piece[index].part.work[f->first];
    if (is_encoding(f) && !(x->begun.sequences > 0))
        return (op_price){.name = w->name, .class = OP_VECTOR};
    if (w->kind == SM_OP_ATTENTION) return attention(x, index, f);
    bool einsum = w->kind == SM_OP_EINSUM,
         keyed = f->keyed && (einsum ? is_keyed(w) : keyed_bytes(w));
    if (einsum && (!keyed || is_encoding(f))) return matmul(x, index, f);
    op_price p = {.name = w->name, .class = einsum ? OP_MATMUL : OP_VECTOR};
    if (!keyed || is_encoding(f)) add_simple(x, index, w, tokens_of(x, index, f), &p);
    /* what goes over keys: one group of sequences after the other */
    for (int g = 0; keyed && !is_encoding(f) && g < x->groups; g++) {
        sm_program_extent n = group_counts(x, kind_of(x, index), &x->group[g]);
        add_simple(x, index, w, &n, &p);
    }
    return p;
}

/* ---- what an op takes at least ---- */

/* Whether an op has work and bytes, but for weights, for each token alone. */
static bool is_of_tokens(const sm_work *w) {
    const sm_size *work[] = {&w->flops, &w->vector_flops};
    for (int i = 0; i < 2; i++)
        if (work[i]->base > 0 && !work[i]->per_sequence) return false;
    for (int i = 0; i < w->terms; i++)
        if (w->role[i] != SM_ROLE_WEIGHT && !w->bytes[i].per_sequence) return false;
    return !op_is_keyed(w);
}

void op_describe(const sm_partition *part, fused *f) {
    const sm_work *w = &part->work[f->first];
    bool einsum = w->kind == SM_OP_EINSUM, all = true;
    int counts = w->batch.per_sequence + w->m.per_sequence + w->n.per_sequence + w->k.per_sequence;
    for (int i = 0; i < f->n; i++) all = all && is_of_tokens(&w[i]);
    f->keyed = op_is_keyed(w);
    f->multiplies = einsum && counts == 1 && all;
    f->streams = !einsum && is_of_tokens(w);
}

/* Tokens enough that a launch is small beside them, and a power of two, which rounds nothing. */
static const double MANY = 0x1p20;

void op_least(const step *x, int index, const sm_work *w, const fused *f, op_floor *out) {
    const sm_program_extent one = {1, 1, 1}, many = {MANY, 1, 1};
    const sm_chip *chip = &x->s->system.chip;
    bool matmul = f->multiplies;
    sm_dtype dtype = matmul && !w->linear ? SM_BF16 : x->s->job.dtypes.compute;
    sm_work_sizes at = sizes_of(x, w, matmul ? &one : &many), weights = {.bytes = 0};
    *out = (op_floor){.start_s = x->s->kernel.launch_s};
    if (!matmul) {
        if (!f->streams) return;
        add_bytes(x, index, w, &many, 0, 1, &at);
        sm_op_cost c = sm_work_cost(chip, &x->s->kernel, w, dtype, &at);
        out->math_s = (c.expected_s - out->start_s) / MANY;
        return;
    }
    double rows = w->experts ? x->s->job.imbalance : 1;
    sm_matmul_floor floor = sm_matmul_floor_of(chip, &x->s->kernel, dtype);
    at.product.m = sm_size_at(&w->m, &x->d, &one);
    add_fused(x, index, f, &one, 0, rows, &at);
    add_fused(x, index, f, &one, 1, 0, &weights);
    double products = at.product.batch * at.product.m * at.product.n * at.product.k;
    *out = (op_floor){.is_matmul = true,
                      .start_s = floor.start_s,
                      .math_s = 2 * products * rows * floor.s_per_flop,
                      .bytes_s = at.bytes * floor.s_per_byte,
                      .weights_s = (weights.bytes + weights.converting) * floor.s_per_byte,
                      .mean = w->experts ? at.product.m : 0};
}
