/* Local work of a piece of the program: every op at its local size, priced by cost.h. */

#include "space.h"

static double work_bytes(const sm_work *w, const sm_degrees *d) {
    double bytes = 0;
    for (int i = 0; i < w->terms; i++) bytes += size_at(&w->bytes[i], d);
    return bytes;
}

/* Where no matmul adds the gradient of a weight to those of the microbatches before: it is read,
 * and the sum read and written, of what fsdp does not shard. */
static double adding_s(const sm_train *t, const sm_work *w, const sm_degrees *d) {
    double gradients = t->software.rows ? 3 : t->software_memory.adding_bytes / 2; /* in 16 bits */
    bool sharded = !t->software.rows && d->axis[SM_AXIS_FSDP] > 1;
    if (w->phase != SM_PHASE_BACKWARD_WEIGHT || sharded || !(gradients > 0)) return 0;
    double bytes = gradients * size_at(&w->bytes[w->terms - 1], d);
    return bytes / (t->system.chip.memory_bytes_per_s.value * t->kernel.memory_efficiency);
}

/* What a narrower product is the first to read: 16 bits an element, and a copy written for each of
 * the two dimensions that it is contracted over, forward and for the gradient of the weight. fp4
 * needs the largest of all before (Transformer Engine's casts; arXiv 2509.25149). */
static double casts_s(const sm_train *t, const sm_work *w, const sm_degrees *d, sm_dtype dtype) {
    double width = sm_dtype_bytes(dtype), read = width < 1 ? 4 : 2, elements = 0;
    if (!w->casts || !w->linear || t->software.width || width > 1) return 0;
    for (int i = 0; i < 2; i++)
        if (w->role[i] != SM_ROLE_WEIGHT) elements += size_at(&w->bytes[i], d) / 2;
    return elements * (read + 2 * width) /
           (t->system.chip.memory_bytes_per_s.value * t->kernel.memory_efficiency);
}

/* Kernels of TPUs go through the rows of all experts in tiles, and through a tile once for each
 * expert that has rows in it: all but the first begin within one. The share of rows that count. */
static double fill_tiles(const sm_train *t, const sm_work *w, sm_product_shape *s) {
    double *rows = w->phase == SM_PHASE_BACKWARD_WEIGHT ? &s->k : &s->m, useful = *rows;
    if (w->experts && t->system.chip.fabric == SM_FABRIC_TORUS)
        *rows += t->software_memory.tile_rows * (1 - 1 / s->batch);
    return useful / *rows;
}

static priced price_einsum(const sm_train *t, const variant *v, const sm_work *w, sm_dtype dtype,
                           sm_work_sizes *sizes) {
    double useful = v->rules.capacity ? 1 : fill_tiles(t, w, &sizes->product);
    const sm_dtype narrow = t->software.width ? SM_FP32 : w->linear ? dtype : SM_BF16;
    sm_calibration kernel = t->kernel;
    const sm_software_memory *h = &t->software_memory;
    const double rate = w->experts && h->grouped_rate > 0 ? h->grouped_rate : 1;
    kernel.matmul_efficiency *= rate;
    kernel.matmul_efficiency_fp8 *= rate * (h->narrow_rate > 0 ? h->narrow_rate : 1);
    sm_op_cost c = sm_work_cost(&t->system.chip, &kernel, w, narrow, sizes);
    return (priced){c.expected_s,         c.math_s * useful, sizes->flops, sizes->bytes, 1,
                    c.memory_s > c.math_s};
}

/* The newest kernel that the software has on this chip: later than Hopper are those with fp4. */
static int newest_kernel(const sm_train *t) {
    bool flash_2 = t->software_memory.flash_2 && !(t->system.chip.flops_per_s[SM_FP4].value > 0);
    return flash_2 ? SM_ATTENTION_FLASH_2 : SM_ATTENTION_FUSED;
}

/* What one chip has of an attention op. */
static sm_attention_shape attention_shape(const sm_train *t, const variant *v, const sm_work *w,
                                          const sm_degrees *d) {
    double sequences = d->sequences / d->ways[w->batch.mask & d->sequence_axes];
    double heads = size_at(&w->batch, d) / sequences, kv_heads = size_at(&w->kv_heads, d);
    double block = t->system.chip.fabric == SM_FABRIC_TORUS ? t->software_memory.mask_block : 0;
    int kernel = v->rules.attention;
    if (kernel == SM_ATTENTION_FUSED) kernel = newest_kernel(t);
    return (sm_attention_shape){
        .batch = sequences,
        .q_len = size_at(&w->m, d),
        .keys = size_at(&w->n, d),
        .kv_len = t->seq,
        .heads = heads,
        .kv_heads = kv_heads < heads ? kv_heads : heads,
        .head_size = size_at(&w->k, d),
        .v_head_size = w->value_size,
        .dtype = SM_BF16,
        .kv_bytes = t->weight_bytes,
        .one_kernel = true,
        .head_blocks = true,
        .block = smaller(block, t->seq), /* fewer rows waste less, but fill less too */
        .kernel = kernel,
        .panel = t->software.panels ? SM_QUERIES_AT_ONCE : 0};
}

/* A norm as a framework without a kernel of its own for it runs it (LlamaRMSNorm in PyTorch): to
 * fp32 (2 bytes read, 4 written an element), squared (4, 4), averaged (4), scaled (4, 4), back to
 * 16 bits (4, 2) and times its weight (2, 2) are 36 bytes where one kernel moves 4. Backward
 * likewise: 76 of 8. */
static const double NORM_APART = 9, NORM_KERNELS[2] = {6, 11};

/* A token times its row of a mask over the slots of all experts for its sequence, of ones where it
 * goes: forward and for its gradient; the weights of combine have one too. */
static double masks_s(const sm_train *t, const variant *v, const sm_work *w, double tokens) {
    if (!v->rules.capacity || !t->software_memory.masked || tokens == 0) return 0;
    double slots = 0.01 * v->rules.capacity * t->largest_top_k * t->seq;
    sm_product_shape s = {1, tokens, t->model.D, slots};
    bool both = w->function == SM_FUNCTION_COMBINE && w->phase != SM_PHASE_FORWARD;
    return (both ? 2 : 1) *
           sm_matmul_cost(&t->system.chip, &t->kernel, SM_BF16, s, 2 * s.m * s.k).expected_s;
}

/* Dispatch and combine, each way: the maps, counts and permutations beside the move itself. What
 * Megatron's tests of small mixtures take longer than dense ones is 15 to 22 launches a layer. */
static const double ROUTING_KERNELS = 6;

priced piece_work_price(const sm_train *t, const variant *v, const sm_work *w, const sm_degrees *d,
                        sm_dtype dtype) {
    sm_work_sizes at = {.flops = size_at(&w->flops, d), .bytes = work_bytes(w, d)};
    /* Kernels of the runtime work in single precision, on copies of arrays of 16 bits; products
     * copy panels, which stay in cache. */
    if (t->software.width == 2 && w->kind != SM_OP_EINSUM) at.bytes *= 1 + 4.0 / 2;
    if (w->kind == SM_OP_EINSUM) {
        at.product = (sm_product_shape){size_at(&w->batch, d), size_at(&w->m, d), size_at(&w->n, d),
                                        size_at(&w->k, d)};
        priced p = price_einsum(t, v, w, dtype, &at);
        p.expected += adding_s(t, w, d) + casts_s(t, w, d, dtype);
        return p;
    }
    bool backward = w->phase != SM_PHASE_FORWARD;
    double kernels = 1, bytes = at.bytes;
    sm_attention_shape attention;
    if (w->kind == SM_OP_ATTENTION) {
        attention = attention_shape(t, v, w, d);
        at.attention = &attention;
        kernels = attention.kernel != SM_ATTENTION_UNFUSED ? 1 : backward ? 4 : 2;
    } else if (w->kind == SM_OP_KERNEL) {
        at.vector_flops = size_at(&w->vector_flops, d);
    } else {
        /* What software adds to dispatch and combine, either way a quarter: maps of tokens to
         * experts, counts, permutations and padding, a time per token that hardly depends on its
         * width. Norms, activations and residuals move what it does not fuse. */
        double routed = size_at(&w->routed, d), routing = 0.25 * t->kernel.routing_s * routed;
        bool apart = w->norm && v->rules.norms_apart;
        if (routed == 0) at.bytes *= apart ? NORM_APART : t->kernel.elementwise_bytes;
        if (apart) kernels = NORM_KERNELS[backward];
        else if (routed > 0) kernels = ROUTING_KERNELS;
        sm_op_cost c = sm_work_cost(&t->system.chip, &t->kernel, w, dtype, &at);
        routing += masks_s(t, v, w, routed);
        return (priced){c.expected_s + routing, 0, 0, bytes, kernels, true};
    }
    sm_op_cost c = sm_work_cost(&t->system.chip, &t->kernel, w, dtype, &at);
    return (priced){c.expected_s, c.math_s, at.flops, bytes, kernels, c.memory_s > c.math_s};
}

static void add_pass(const sm_work *w, const priced *c, piece_time *out) {
    const int back = w->phase != SM_PHASE_FORWARD;
    double *of[SM_PHASE_COUNT] = {&out->forward, &out->backward_input, &out->backward_weight};
    *of[w->phase] += c->expected;
    out->kernels[w->phase] += c->kernels;
    out->math[back] += c->math;
    out->flops[back] += c->flops;
    if (c->memory_bound) out->memory[back] += c->expected;
    if (w->kind == SM_OP_ATTENTION) out->ring[back] += c->expected;
}

static void add_again(const sm_train *t, const piece *p, const sm_work *w, const priced *c,
                      piece_time *out) {
    for (int s = 0; s < MAX_SETS && w->phase == SM_PHASE_FORWARD; s++) {
        if (!(piece_again(t, p, s) >> w->op & 1)) continue;
        out->kernels_again[s] += c->kernels;
        out->again[s] += c->expected;
        out->math_again[s] += c->math;
        out->flops_again[s] += c->flops;
        if (c->memory_bound) out->again_memory[s] += c->expected;
    }
}

/* The host launches collectives as it launches kernels, but for streams; beside each array of a
 * ring the attention of that part as well, and what merges it. */
static const double RING_KERNELS = 3;

static double host_launch_s(const sm_train *t) {
    return t->software_memory.graphed ? t->kernel.launch_s : t->calibration->launch_s;
}

static void add_launched(const sm_train *t, const piece *p, const sm_degrees *d, piece_time *out) {
    for (int i = 0; i < p->part.comms && !t->software.one_by_one; i++) {
        const sm_comm *c = &p->part.comm[i];
        int ways = (int)d->ways[c->axes];
        if (p->sent[i].kind == STREAM || ways < 2) continue;
        double launched = p->sent[i].kind == RING ? RING_KERNELS * (ways - 1) : 1;
        out->kernels[c->phase] += launched;
        for (int s = 0; s < MAX_SETS && p->sent[i].may_run_again; s++)
            if (sm_comm_runs_again(c, piece_again(t, p, s))) out->kernels_again[s] += launched;
    }
}

void piece_time_compute(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                        sm_dtype dtype, piece_time *out) {
    const piece *p = &v->piece[index];
    memset(out, 0, sizeof *out);
    add_launched(t, p, d, out);
    for (int i = 0; i < p->part.works; i++) {
        const sm_work *w = &p->part.work[i];
        priced c = piece_work_price(t, v, w, d, dtype);
        add_pass(w, &c, out);
        add_again(t, p, w, &c, out);
    }
    /* The host launches ahead of the chip: a pass takes what the chip computes or what the host
     * launches, whichever is longer. */
    double launch = host_launch_s(t);
    double *of[SM_PHASE_COUNT] = {&out->forward, &out->backward_input, &out->backward_weight};
    for (int i = 0; i < SM_PHASE_COUNT; i++) {
        double host = out->kernels[i] * launch;
        out->idle[i] = larger(0, host - *of[i]);
        if (host > *of[i]) *of[i] = host, out->launches += host;
    }
    for (int s = 0; s < MAX_SETS; s++) {
        double again = out->kernels_again[s] * launch;
        if (again > out->again[s]) out->again[s] = again;
    }
    /* HBM traffic that no fusion avoids: each weight is read in each direction and its gradient
     * written. */
    double read = 0, written = 0;
    for (int i = 0; i < p->part.classes; i++) {
        const sm_weight_class *c = &p->part.weight[i];
        double whole = (c->elements - c->rows) / d->ways[c->stored & ~class_shards(v, c)];
        if (c->fixed && !(c->stored & class_shards(v, c))) continue; /* read by no product */
        read += whole * (c->narrow ? sm_stored_as_bytes[v->rules.stored] : 2);
        if (!c->fixed) written += 2 * whole;
    }
    out->traffic[0] = read / t->system.chip.memory_bytes_per_s.value;
    out->traffic[1] = (read + written) / t->system.chip.memory_bytes_per_s.value;
}

/* Products at the best efficiency the calibration knows, or their operands; of other ops all but
 * what does not grow with the batch. */
void piece_floor_add(const sm_train *t, const variant *v, int index, const sm_degrees *d,
                     sm_dtype dtype, work_floor *to) {
    enum { MANY = 1 << 30 };
    const sm_calibration *c = &t->kernel;
    const sm_chip *chip = &t->system.chip;
    const sm_partition *p = &v->piece[index].part;
    const double wide = sm_chip_peak(chip, SM_BF16, NULL) * c->matmul_efficiency,
                 narrow = sm_chip_peak(chip, dtype, NULL) *
                          (dtype == SM_FP8 ? c->matmul_efficiency_fp8 : c->matmul_efficiency),
                 linear = larger(narrow, wide),
                 bytes_per_s = chip->memory_bytes_per_s.value * c->memory_efficiency;
    sm_degrees many = *d;
    many.sequences *= MANY;
    for (int i = 0; i < p->works; i++) {
        const sm_work *w = &p->work[i];
        double bytes[2] = {0, 0}, each;
        priced one = {.kernels = 1};
        if (w->kind == SM_OP_EINSUM) {
            for (int k = 0; k < w->terms; k++)
                bytes[w->bytes[k].per_sequence] += size_at(&w->bytes[k], d);
            each = size_at(&w->flops, d) / (w->linear ? linear : wide);
            each = larger(each, bytes[1] / bytes_per_s) + casts_s(t, w, d, dtype);
        } else {
            one = piece_work_price(t, v, w, w->kind == SM_OP_ATTENTION ? d : &many, dtype);
            each = (one.expected - c->launch_s) / MANY;
        }
        if (w->kind == SM_OP_ATTENTION) {
            const sm_attention_shape a = attention_shape(t, v, w, d);
            each = sm_attention_floor_s(chip, c, &a, w->phase != SM_PHASE_FORWARD);
        }
        to->each[w->phase] += each;
        to->read[w->phase] += bytes[0] / bytes_per_s;
        to->gaps[w->phase] += c->launch_s;
        to->host[w->phase] += one.kernels * host_launch_s(t);
    }
}
