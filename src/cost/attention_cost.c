/* What attention costs on one chip, forward and backward, in training and in serving: a fused
 * kernel that keeps the scores on the chip, separate matmuls that write them to memory, or panels
 * of queries multiplied by BLAS, as src/run does.
 *
 * A fused kernel (FlashAttention, Dao 2022-24) deals blocks of query rows to the cores; a block
 * walks over the keys in tiles, multiplies twice and takes exponentials in between:
 *     time = launch + latency + blocks x cycles of a block / (cores x clock) + max(math, memory).
 * math: scores in whole tiles at the calibrated efficiency of head size 128, changed for other
 * sizes by the share of the exponentials; at least the walk of the longest block, which one core
 * makes alone. memory: bytes at the calibrated bandwidth, when enough cores ask for them.
 * The constants of the kernels were fitted to public measurements of FlashAttention 2 and 3,
 * TensorRT-LLM, FlashInfer and FlashMLA on eleven GPUs (docs/accuracy.md); what differs between
 * chips is in their calibrations. */
#include "scalemodel/cost.h"
#include <assert.h>
#include <math.h>

enum {
    FEW_CORES = 8,  /* up to here: systolic arrays that take rows of many heads at once */
    BLOCK = 128,    /* query rows of a block; half of it while cores are left idle */
    KEY_TILE = 64,  /* keys of a tile */
    DIAGONAL = 160, /* keys a block sees beyond the mean of its causal rows: whole tiles */
    SPLIT = 256     /* keys of the smallest part of a cache that is split over cores */
};

/* Cycles. A single block loads and stores without anything to overlap with; of several blocks per
 * sequence each also waits for its neighbours' keys. */
static const double latency_cycles = 16.8e3;        /* two kernels that depend on each other */
static const double latency_cycles_single = 9.4e3;  /* one kernel */
static const double latency_cycles_systolic = 10e3; /* a TPU's grid of sequences */
static const double block_cycles = 5.0e3;           /* a block of a prefill */
static const double block_cycles_long = 6.9e3;      /* the same among several of a sequence */
static const double block_cycles_decode = 4.3e3;    /* a query group against its cache */
static const double block_cycles_persistent = 2.35e3;
static const double joining_cycles = 1.7e3; /* of parts, and again for every doubling of them */
static const double sequence_cycles_systolic = 3.4e3; /* a sequence of a decode on a TPU */

static const double exponentials_per_cycle = 14.0; /* of a core: 16 special function units */
static const double converted_per_cycle = 13.5;    /* of a core: 8-bit values made 16-bit ones */
static const double decode_rate = 0.51;            /* of prefill's: small tiles, no reuse of keys */
static const double decode_rate_shared = 0.77;     /* one key and value for all heads (MLA) */
static const double large_head_gain = 0.09;        /* share that does not grow with the head size */
static const double decode_stream = 0.95;          /* of streaming: pages of a cache */
static const double prefill_stream = 0.83;         /* of streaming: rows of a head lie apart */
static const double core_bandwidth = 4.7;          /* times its share that one core can draw */
static const double longest_weight = 1.28;
/* mma.sync on an H100, of its 4096 FLOPs a cycle and core: 62.9 % (Luo et al. 2024, arXiv
 * 2402.13499). FlashAttention 1 beside 2 on an A100: 1.7 times as long (Dao 2023). */
static const double flops_of_an_a100s = 2576, flash_1 = 0.6;
static const double clock_unknown_hz = 1.8e9;

typedef struct blocks {
    double count, rows;         /* blocks in all, rows of scores with padding in all */
    double block_rows;          /* of one block */
    double keys;                /* that a row is multiplied with, in whole tiles, on average */
    double longest_keys, parts; /* of the longest block; parts its keys are split into */
} blocks;

/* Quicker than fmax and fmin, which have to tell apart what is no number. */
static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static double rate_time(double amount, double per_s) { return amount > 0.0 ? amount / per_s : 0.0; }
static double whole(double size, double tile) { return ceil(size / tile) * tile; }
static bool is_decode(const sm_attention_shape *s) { return s->q_len <= 1.0 && !s->head_blocks; }
static bool is_systolic(const sm_chip *chip) { return chip->cores <= FEW_CORES; }
static double cores_of(const sm_chip *chip) { return chip->cores > 1 ? chip->cores : 1.0; }

static double cycles_per_s(const sm_chip *chip) {
    double hz = chip->clock_hz.value > 0.0 ? chip->clock_hz.value : clock_unknown_hz;
    return hz * cores_of(chip);
}

/* Keys that the queries of a sequence meet in panels, on average: each panel meets the keys up to
 * its end. The queries are the last of the sequence: of the chips that share one, the chip with its
 * end has most to do, and the others wait for it. */
static double keys_of_panels(const sm_attention_shape *s) {
    double panels = floor(s->q_len / s->panel), rest = s->q_len - panels * s->panel;
    double own = s->panel * s->panel * panels * (panels + 1.0) / 2.0 + rest * s->q_len;
    return s->kv_len - s->q_len + own / s->q_len;
}

/* 2 FLOPs a multiplication, of queries with keys and of scores with values. Backward makes dV, dP,
 * dQ and dK, and the scores once more where they were not kept. */
static double flops_of(const sm_attention_shape *s, bool backward) {
    double keys = s->panel > 0.0 ? keys_of_panels(s) : s->keys;
    double sizes = s->head_size + s->v_head_size;
    double matmuls = !backward ? 1.0 : s->kernel == SM_ATTENTION_UNFUSED ? 2.0 : 2.5;
    return 2.0 * s->batch * s->heads * s->q_len * keys * sizes * matmuls;
}

/* Queries in and values out in 16 bits or more; keys and values once. Backward touches each array
 * and its gradient. */
static double traffic_bytes(const sm_attention_shape *s, bool backward) {
    double element = larger(larger(2.0, s->kv_bytes), sm_dtype_bytes(s->dtype));
    double q = s->batch * s->q_len * s->heads * (s->head_size + s->v_head_size) * element;
    double kv_size = s->head_size + (s->shared_kv ? 0.0 : s->v_head_size);
    double bytes = q + s->batch * s->kv_len * s->kv_heads * kv_size * s->kv_bytes;
    return backward ? 2.0 * bytes : bytes;
}

/* Keys that a query is multiplied with beyond those that the mask keeps. Of a causal mask half a
 * block, of a window all blocks from that of its first key. */
static double masked_keys(const sm_attention_shape *s) {
    if (!(s->block > 0.0)) return DIAGONAL;
    bool window = s->keys < 0.49 * s->kv_len;
    return window ? s->block + whole(s->keys, s->block) - s->keys : 0.5 * s->block;
}

static blocks blocks_of(const sm_chip *chip, const sm_attention_shape *s) {
    bool packed = is_decode(s) || is_systolic(chip); /* query heads of one key head share a block */
    double rows = packed ? s->q_len * s->heads / s->kv_heads : s->q_len;
    double units = s->batch * (packed ? s->kv_heads : s->heads), cores = cores_of(chip);
    bool idle = !packed && units * ceil(rows / BLOCK) < cores;
    double size = idle || (!packed && rows <= BLOCK / 2.0) ? BLOCK / 2.0 : BLOCK;
    /* rows of a decode's query group are padded to the tile of the smallest instruction that fits
     */
    double padded = is_systolic(chip) || !packed || rows > 64.0 ? whole(rows, size)
                    : rows <= 16.0                              ? 16.0
                                                                : 64.0;
    assert(s->kv_heads > 0.0 && cores >= 1.0);
    double all_keys = whole(s->kv_len, KEY_TILE);
    blocks b = {.count = units * ceil(rows / size), .rows = units * padded, .parts = 1.0};
    b.block_rows = smaller(padded, size);
    b.keys = is_decode(s) ? all_keys : smaller(all_keys, s->keys + masked_keys(s));
    b.longest_keys = smaller(all_keys, whole(s->keys + s->q_len / 2.0, KEY_TILE));
    if (is_decode(s))
        b.parts = larger(1.0, smaller(ceil(cores / b.count), ceil(s->kv_len / SPLIT)));
    return b;
}

/* Time of one score, relative to head size 128 in 16 bits. The special function units take as long
 * for its exponential whatever else the kernel does, and that stays when the matmuls shrink (small
 * heads, 8 bits); backward there is one exponential to five matmuls. Large heads lose less than 128
 * does, up to the peak. */
static double relative_score(const sm_chip *chip, const sm_attention_shape *s, double peak,
                             double efficiency, bool backward) {
    double peak16 = sm_chip_peak(chip, SM_BF16, NULL);
    double matmul = (s->head_size + s->v_head_size) / 256.0 * peak16 / peak;
    double large = large_head_gain + (1.0 - large_head_gain) * matmul;
    if (matmul >= 1.0) return larger(large, matmul * efficiency);
    double exponentials = peak16 / (512.0 * exponentials_per_cycle * cycles_per_s(chip));
    double share = smaller(1.0, exponentials * efficiency / (backward ? 2.5 : 1.0));
    return share + (1.0 - share) * matmul;
}

/* Seconds of one score when all cores work at it. */
static double score_s(const sm_chip *chip, const sm_attention_shape *s, double peak,
                      double efficiency, bool backward) {
    double full = 512.0 / sm_chip_peak(chip, SM_BF16, NULL) * (backward ? 2.5 : 1.0);
    return relative_score(chip, s, peak, efficiency, backward) * full / efficiency;
}

/* All blocks dealt to the cores, or the longest alone on its core: the larger, and a quarter more
 * when they are equal and the last blocks find some cores idle. */
static double dealt(double all, double longest) {
    double more = larger(all, longest), less = smaller(all, longest), share = less / more;
    return more * (1.0 + 0.26 * share * share * share);
}

/* Few blocks do not draw the whole bandwidth; an 8-bit cache under 16-bit matmuls is converted (a
 * TPU's vector unit takes thousands a cycle, so that it is exposed on cores of GPUs alone). */
static double memory_time(const sm_chip *chip, const sm_attention_shape *s, const blocks *b,
                          double stream_s) {
    double drawing = smaller(cores_of(chip), b->count * b->parts) * core_bandwidth;
    double stream = stream_s * larger(1.0, cores_of(chip) / drawing);
    stream /= is_decode(s) ? decode_stream : prefill_stream;
    if (s->kv_bytes >= 2.0 || sm_dtype_bytes(s->dtype) < 2.0 || is_systolic(chip)) return stream;
    double kv_size = s->head_size + (s->shared_kv ? 0.0 : s->v_head_size);
    double converted = s->batch * s->kv_len * s->kv_heads * kv_size;
    return larger(stream, converted / (converted_per_cycle * cycles_per_s(chip)));
}

static double overhead_s(const sm_chip *chip, const sm_attention_shape *s, const blocks *b) {
    double cores = cores_of(chip), cycles = latency_cycles_systolic * cores;
    if (is_systolic(chip)) {
        cycles += (is_decode(s) ? s->batch : 1.0) * sequence_cycles_systolic;
        return cycles / cycles_per_s(chip);
    }
    cycles = s->one_kernel ? latency_cycles_single : latency_cycles;
    if (b->parts > 1.0) cycles += joining_cycles * (1.0 + log2(b->parts));
    double block = s->q_len > BLOCK ? block_cycles_long : block_cycles;
    if (is_decode(s)) block = s->persistent ? block_cycles_persistent : block_cycles_decode;
    return (cycles * cores + b->count * block) / cycles_per_s(chip);
}

/* Kernels in an A100's instructions get no more from later tensor cores than these do by them. */
static double efficiency_of(const sm_chip *chip, const sm_calibration *c,
                            const sm_attention_shape *s, bool backward) {
    double share = backward ? c->attention_efficiency_backward : c->attention_efficiency;
    if (s->kernel < SM_ATTENTION_FLASH_1 || is_systolic(chip)) return share;
    double a_cycle = sm_chip_peak(chip, SM_BF16, NULL) / cycles_per_s(chip);
    share *= smaller(1.0, flops_of_an_a100s / a_cycle);
    return s->kernel == SM_ATTENTION_FLASH_1 ? flash_1 * share : share;
}

static void price_fused(const sm_chip *chip, const sm_calibration *c, const sm_attention_shape *s,
                        bool backward, sm_op_cost *cost) {
    double peak = sm_chip_peak(chip, s->dtype, NULL),
           efficiency = efficiency_of(chip, c, s, backward);
    double one_score_s = score_s(chip, s, peak, efficiency, backward);
    if (is_decode(s) && !is_systolic(chip))
        one_score_s *= 1.0 / (s->shared_kv ? decode_rate_shared : decode_rate);
    blocks b = blocks_of(chip, s);
    double all = b.rows * b.keys * one_score_s;
    double longest = b.block_rows * b.longest_keys / b.parts * one_score_s * cores_of(chip);
    double math_s = is_decode(s) ? larger(all, longest) : dealt(all, longest_weight * longest);
    double memory_s = memory_time(chip, s, &b, cost->memory_s / c->memory_efficiency);
    double fixed_s = c->launch_s + overhead_s(chip, s, &b);
    cost->expected_s = larger(math_s, memory_s) + fixed_s;
    cost->upper_s = math_s + memory_s + fixed_s;
    if (math_s * efficiency > 0.0)
        cost->tile_efficiency = smaller(1.0, cost->math_s / (math_s * efficiency));
}

static double matmul_s(const sm_chip *chip, const sm_calibration *c, const sm_attention_shape *s,
                       double n, double k) {
    double batch = s->batch * s->heads;
    double bytes = 2.0 * batch * (s->q_len * n + n * k + s->q_len * k);
    return sm_matmul_cost(chip, c, s->dtype, (sm_product_shape){batch, s->q_len, n, k}, bytes)
        .expected_s;
}

/* Heads that do not begin at whole 16 bytes keep batched matmuls off the matrix units: steps of
 * BLOOM's sweep with heads of 108 and 150 take a third longer than those with 104, 112, 128 and
 * 208, which is what the vector units need. */
static const double ALIGNED = 8; /* 16-bit elements */

/* Two batched matmuls over all scores (a mask saves nothing), which lie in memory in 2 bytes; each
 * twice backward. */
static void price_unfused(const sm_chip *chip, const sm_calibration *c, const sm_attention_shape *s,
                          bool backward, sm_op_cost *cost) {
    double matmuls = matmul_s(chip, c, s, s->kv_len, s->head_size) +
                     matmul_s(chip, c, s, s->v_head_size, s->kv_len);
    double vector = chip->vector_flops_per_s.value * c->matmul_efficiency;
    double scores = s->batch * s->heads * s->q_len * s->kv_len;
    if (fmod(s->head_size, ALIGNED) > 0.0 && vector > 0.0)
        matmuls = larger(matmuls, 2.0 * scores * (s->head_size + s->v_head_size) / vector);
    cost->expected_s = cost->upper_s = backward ? 2.0 * matmuls : matmuls;
}

/* As BLAS multiplies a panel: the scores contract one head alone, however many keys there are. Of a
 * single query every number of keys and values is read for one product. */
static void price_panels(const sm_chip *chip, const sm_calibration *c, const sm_attention_shape *s,
                         bool backward, sm_op_cost *cost) {
    cost->tile_efficiency = s->head_size / (s->head_size + c->matmul_half_k);
    double math_s = cost->math_s / (efficiency_of(chip, c, s, backward) * cost->tile_efficiency);
    double memory_s = cost->memory_s / c->memory_efficiency;
    if (s->panel <= 1.0 && chip->onchip_bytes_per_s.value > 0.0) {
        double read = flops_of(s, backward) / 2.0 * s->kv_bytes; /* a number for each product */
        memory_s = larger(memory_s, read / (chip->onchip_bytes_per_s.value * c->memory_efficiency));
    }
    cost->expected_s = larger(math_s, memory_s) + c->launch_s;
    cost->upper_s = math_s + memory_s + c->launch_s;
}

static bool is_empty(const sm_attention_shape *s) {
    return !(s->batch > 0.0 && s->q_len > 0.0 && s->keys > 0.0 && s->kv_len > 0.0 &&
             s->heads > 0.0 && s->kv_heads > 0.0);
}

sm_op_cost sm_attention_cost(const sm_chip *chip, const sm_calibration *c,
                             const sm_attention_shape *shape, bool backward) {
    sm_op_cost cost = {.tile_efficiency = 1.0, .expected_s = c->launch_s, .upper_s = c->launch_s};
    if (is_empty(shape)) return cost;
    cost.math_s = rate_time(flops_of(shape, backward), sm_chip_peak(chip, shape->dtype, NULL));
    cost.memory_s = rate_time(traffic_bytes(shape, backward), chip->memory_bytes_per_s.value);
    cost.lower_s = larger(cost.math_s, cost.memory_s);
    if (shape->kernel == SM_ATTENTION_UNFUSED) price_unfused(chip, c, shape, backward, &cost);
    else if (shape->panel > 0.0) price_panels(chip, c, shape, backward, &cost);
    else price_fused(chip, c, shape, backward, &cost);
    return cost;
}

double sm_attention_floor_s(const sm_chip *chip, const sm_calibration *c,
                            const sm_attention_shape *shape, bool backward) {
    double peak = sm_chip_peak(chip, shape->dtype, NULL);
    double efficiency = efficiency_of(chip, c, shape, backward);
    double flops = is_empty(shape) ? 0.0 : flops_of(shape, backward);
    if (shape->kernel == SM_ATTENTION_UNFUSED) return rate_time(flops, peak * c->matmul_efficiency);
    if (shape->panel > 0.0) return rate_time(flops, peak * efficiency);
    double of_a_score = 2.0 * (shape->head_size + shape->v_head_size) * (backward ? 2.5 : 1.0);
    return flops / of_a_score * score_s(chip, shape, peak, efficiency, backward);
}

double sm_attention_best_efficiency(const sm_calibration *c) {
    double best = larger(c->attention_efficiency, c->attention_efficiency_backward);
    return smaller(1.0, best / (1.0 - large_head_gain));
}
