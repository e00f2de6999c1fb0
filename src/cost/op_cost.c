/* What one operation costs on one chip: matrix multiplications and streaming vector work. */
#include "scalemodel/cost.h"
#include <math.h>

/* Where to look when a chip has no peak for a dtype: the next wider one it can multiply in. The
 * last resort of fp32 is bf16, which is how JAX multiplies fp32 arrays on TPUs by default. */
static sm_dtype wider(sm_dtype dtype) {
    static const sm_dtype next[SM_DTYPE_COUNT] = {
        [SM_FP4] = SM_FP8,   [SM_MXFP4] = SM_FP8, [SM_FP8] = SM_BF16,   [SM_INT4] = SM_INT8,
        [SM_BOOL] = SM_INT8, [SM_INT8] = SM_BF16, [SM_BF16] = SM_FP16,  [SM_FP16] = SM_TF32,
        [SM_TF32] = SM_FP32, [SM_FP32] = SM_FP64, [SM_INT32] = SM_FP32, [SM_FP64] = SM_BF16};
    return next[dtype];
}

double sm_chip_peak(const sm_chip *chip, sm_dtype dtype, sm_dtype *used) {
    sm_dtype d = dtype;
    for (int tries = 0; tries < SM_DTYPE_COUNT; tries++, d = wider(d))
        if (chip->flops_per_s[d].value > 0.0) break;
    if (used) *used = d;
    return chip->flops_per_s[d].value;
}

static bool is_integer(sm_dtype dtype) {
    return dtype == SM_INT8 || dtype == SM_INT4 || dtype == SM_INT32 || dtype == SM_BOOL;
}

sm_dtype sm_compute_dtype(const sm_dtype *operands, int n) {
    sm_dtype widest = n > 0 ? operands[0] : SM_BF16;
    for (int i = 1; i < n; i++) {
        double more = sm_dtype_bytes(operands[i]) - sm_dtype_bytes(widest);
        if (more > 0.0 || (more >= 0.0 && is_integer(widest) && !is_integer(operands[i])))
            widest = operands[i];
    }
    return widest;
}

static double padded(double size, double tile) {
    return tile > 1.0 ? ceil(size / tile) * tile : size;
}

/* Useful fraction of a long systolic contraction: k steps of work after half_k steps of filling. */
static double k_efficiency(double k, double half_k) { return k / (k + half_k); }

/* A systolic array: each dimension is padded to its tile. */
static double systolic_efficiency(const sm_chip *chip, double m, double n, double k,
                                  double half_k) {
    double useful =
        m / padded(m, chip->tile_m) * (n / padded(n, chip->tile_n)) * (k / padded(k, chip->tile_k));
    return useful * k_efficiency(k, half_k);
}

typedef struct cta {
    double m, n, reuse;
} cta;

/* Output tiles over the cores in whole waves; when they are fewer than the cores, the contraction
 * is split over idle cores as long as each part keeps eight steps of tile_k. */
static double wave_efficiency(const sm_chip *chip, const cta *tile, double batch, double m,
                              double n, double k, double half_k) {
    double cores = chip->cores, tiles = batch * ceil(m / tile->m) * ceil(n / tile->n);
    double most = floor(k / (8.0 * fmax(chip->tile_k, 1.0)));
    double split = fmax(1.0, fmin(floor(cores / tiles), most));
    double waves = ceil(tiles * split / cores);
    double in_tile = m / padded(m, tile->m) * (n / padded(n, tile->n));
    double in_wave = tiles * split / (waves * cores);
    return in_tile * in_wave * tile->reuse * k_efficiency(k / split, half_k);
}

/* Smaller tiles reuse less of what they load: half a side costs 8 %, both sides 20 %. */
static double best_wave_efficiency(const sm_chip *chip, double batch, double m, double n, double k,
                                   double half_k) {
    double tm = chip->tile_m, tn = chip->tile_n, best = 0.0;
    const cta tiles[] = {
        {tm, tn, 1.0}, {tm / 2.0, tn, 0.92}, {tm, tn / 2.0, 0.92}, {tm / 2.0, tn / 2.0, 0.8}};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        best = fmax(best, wave_efficiency(chip, &tiles[i], batch, m, n, k, half_k));
    return best;
}

/* A few large cores with systolic arrays, or many small ones that tiles are dealt to. */
static double tile_efficiency(const sm_chip *chip, const sm_calibration *c, double batch, double m,
                              double n, double k) {
    enum { FEW_CORES = 8 };
    if (!(batch * m * n * k > 0.0)) return 1.0;
    if (chip->cores <= FEW_CORES || chip->tile_m <= 0 || chip->tile_n <= 0)
        return systolic_efficiency(chip, m, n, k, c->matmul_half_k);
    return best_wave_efficiency(chip, batch, m, n, k, c->matmul_half_k);
}

static double rate_time(double amount, double per_s) { return amount > 0.0 ? amount / per_s : 0.0; }

static sm_op_cost op_cost(double math_s, double memory_s, double slow_math_s, double slow_memory_s,
                          double launch_s) {
    sm_op_cost cost = {.math_s = math_s, .memory_s = memory_s, .tile_efficiency = 1.0};
    cost.lower_s = fmax(math_s, memory_s);
    cost.expected_s = fmax(slow_math_s, slow_memory_s) + launch_s;
    cost.upper_s = slow_math_s + slow_memory_s + launch_s;
    return cost;
}

sm_op_cost sm_matmul_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                          double batch, double m, double n, double k, double bytes) {
    sm_dtype used;
    double peak = sm_chip_peak(chip, dtype, &used);
    double math_s = rate_time(2.0 * batch * m * n * k, peak);
    double memory_s = rate_time(bytes, chip->memory_bytes_per_s.value);
    double tiles = tile_efficiency(chip, c, batch, m, n, k);
    bool narrow = sm_dtype_bytes(used) <= 1.0;
    double efficiency = tiles * (narrow ? c->matmul_efficiency_fp8 : c->matmul_efficiency);
    sm_op_cost cost = op_cost(math_s, memory_s, math_s / efficiency,
                              memory_s / c->memory_efficiency, c->launch_s);
    cost.tile_efficiency = tiles;
    return cost;
}

sm_op_cost sm_vector_cost(const sm_chip *chip, const sm_calibration *c, double flops,
                          double bytes) {
    double peak = chip->vector_flops_per_s.value > 0.0 ? chip->vector_flops_per_s.value
                                                       : sm_chip_peak(chip, SM_FP32, NULL);
    double math_s = rate_time(flops, peak);
    double memory_s = rate_time(bytes, chip->memory_bytes_per_s.value);
    return op_cost(math_s, memory_s, math_s, memory_s / c->memory_efficiency, c->launch_s);
}
