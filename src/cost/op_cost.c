/* What one operation costs on one chip: matrix multiplications and streaming vector work.
 *
 * The roofline (Williams, Waterman and Patterson 2009; "How To Scale Your Model", chapter on
 * rooflines) is the lower bound: max(FLOPs / peak, bytes / bandwidth). Expected are both terms at
 * what kernels reach of peak and bandwidth, with the loss of tiles and waves, and the launch. */
#include "scalemodel/cost.h"
#include <assert.h>
#include <math.h>

/* When a chip has no peak for a dtype: that of the next wider one it can multiply in. The last
 * resort of fp32 is bf16, which is how JAX multiplies fp32 arrays on TPUs by default. */
double sm_chip_peak(const sm_chip *chip, sm_dtype dtype, sm_dtype *used) {
    static const sm_dtype wider[SM_DTYPE_COUNT] = {
        [SM_FP4] = SM_FP8,   [SM_MXFP4] = SM_FP8, [SM_NVFP4] = SM_FP4, [SM_FP8] = SM_BF16,
        [SM_INT4] = SM_INT8, [SM_BOOL] = SM_INT8, [SM_INT8] = SM_BF16, [SM_BF16] = SM_FP16,
        [SM_FP16] = SM_TF32, [SM_TF32] = SM_FP32, [SM_FP32] = SM_FP64, [SM_INT32] = SM_FP32,
        [SM_FP64] = SM_BF16};
    sm_dtype d = dtype;
    assert(dtype < SM_DTYPE_COUNT);
    for (int tries = 0; tries < SM_DTYPE_COUNT; tries++, d = wider[d])
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

/* ceil, floor, larger and smaller without calls into libm: the planner's innermost loop. */
static double round_down(double x) { return x < 0x1p52 ? (double)(int64_t)x : x; }
static double round_up(double x) {
    double down = round_down(x);
    return down < x ? down + 1.0 : down;
}
static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

static double padded(double size, double tile) {
    return tile > 1.0 ? round_up(size / tile) * tile : size;
}

/* A matmul on one chip. speed: of the dtype at its efficiency over 16 bits at theirs; a step
 * multiplies the chip's tile by one element of the contraction. */
typedef struct matmul_job {
    double batch, m, n, k, half_k, speed;
    double steps_per_cycle, least_step; /* of a core, at its efficiency; least: of a smaller tile */
    bool narrow;
} matmul_job;

/* A systolic array: each dimension is padded to its tile, and the steps of k, padded, follow half_k
 * steps of filling. */
static double systolic_efficiency(const sm_chip *chip, const matmul_job *j) {
    double useful = j->m / padded(j->m, chip->tile_m) * (j->n / padded(j->n, chip->tile_n));
    return useful * j->k / (padded(j->k, chip->tile_k) + j->half_k);
}

/* Many cores that output tiles are dealt to. What measured matmuls share on all GPUs (one robust
 * fit to 2,850 of them; sources in docs/truth-data.md, software "kernels"):
 * A last wave that is not full costs most of a wave: kernels that even it out hide four tenths of
 * the gap. Tiles load rows and columns of 4 elements' worth of time per side. In 16 bits the
 * contraction is split over idle cores, in parts of at least 768, which are then added up, longer
 * the more there are; kernels of narrower formats scale as they go and do not split. They take at
 * least 1.2 (8 bits) or 1.6 cycles (4 bits) per element of the contraction, however small a tile.
 */
#define EVENED_OUT 0.4
#define LOAD_PER_SIDE 4.0
#define LEAST_SPLIT_K 768.0
#define JOINING_CYCLES 1500.0
#define LEAST_CYCLES_8 1.2
#define LEAST_CYCLES_4 1.6

static double split_of(const matmul_job *j, double tiles, double cores) {
    if (j->narrow || tiles > 0.5 * cores) return 1.0;
    double most = round_down(j->k / LEAST_SPLIT_K);
    return larger(1.0, smaller(round_down(cores / tiles), most));
}

/* Steps that one core is busy with output tiles of `area` of the chip's tile. Filling the pipeline
 * takes as long for every tile and dtype: half_k steps in 16 bits. */
static double busy_core(const matmul_job *j, double cores, double tiles, double area, double load) {
    double split = split_of(j, tiles, cores);
    double steps = larger(area * (1.0 + load), j->least_step) * j->k / split;
    double each = tiles * split / cores, waves = 1.0;
    if (each > 1.0) waves = EVENED_OUT * each + (1.0 - EVENED_OUT) * round_up(each);
    double busy = waves * (steps + j->half_k * j->speed);
    return split > 1.0 ? busy + JOINING_CYCLES * sqrt(split) * j->steps_per_cycle : busy;
}

/* The best of the chip's tile, twice it either way, and half of it both ways, or a quarter while
 * that leaves cores idle; few rows go through flat tiles, as high as they are in eighths of a tile
 * (16 rows, the least that matrix instructions take). The load of a tile counts beyond that of the
 * largest. */
static double best_wave_efficiency(const sm_chip *chip, const matmul_job *j) {
    double m = j->m / chip->tile_m, n = j->n / chip->tile_n, cores = chip->cores;
    double rows = j->batch * round_up(m), columns = round_up(n);
    double side = LOAD_PER_SIDE / chip->tile_m;
    double tall = busy_core(j, cores, j->batch * round_up(0.5 * m) * columns, 2.0, 0.0);
    double wide = busy_core(j, cores, rows * round_up(0.5 * n), 2.0, 0.0);
    double plain = busy_core(j, cores, rows * columns, 1.0, 0.5 * side);
    double halves = j->batch * round_up(2.0 * m) * round_up(2.0 * n), small;
    small = busy_core(j, cores, halves, 0.25, 2.5 * side);
    if (halves < cores) {
        double quarters = j->batch * round_up(4.0 * m) * round_up(4.0 * n);
        small = smaller(small, busy_core(j, cores, quarters, 0.0625, 6.5 * side));
    }
    if (m <= 0.5 && !j->narrow) {
        double height = 0.125 * round_up(8.0 * m), load = (1.0 / height - 0.5) * side;
        small = smaller(small, busy_core(j, cores, rows * columns, height, load));
    }
    double busy = smaller(smaller(tall, wide), smaller(plain, small));
    return j->batch * m * n * j->k / (cores * busy);
}

/* A few large cores with systolic arrays, or many small ones that tiles are dealt to. */
static bool has_many_cores(const sm_chip *chip) {
    enum { FEW_CORES = 8 };
    return chip->cores > FEW_CORES && chip->tile_m > 0 && chip->tile_n > 0;
}

static double tile_efficiency(const sm_chip *chip, const matmul_job *j) {
    return has_many_cores(chip) ? best_wave_efficiency(chip, j) : systolic_efficiency(chip, j);
}

/* Of the same fit: a matmul takes longer than a copy of its operands. Its kernel starts and ends in
 * 1,800 cycles beyond the launch of any kernel, and a core takes in 90 bytes per cycle, one after
 * the other with what memory does. Nothing hides a quarter of the writing of results in 16 bits. A
 * chip whose clock is unknown is taken to run at 1.8 GHz. */
#define START_CYCLES 1800.0
#define BYTES_PER_CYCLE 90.0
#define WRITTEN_AFTER 0.25

static double clock_of(const sm_chip *chip) {
    return chip->clock_hz.value > 0.0 ? chip->clock_hz.value : 1.8e9;
}

static double rate_time(double amount, double per_s) { return amount > 0.0 ? amount / per_s : 0.0; }

static sm_op_cost op_cost(double math_s, double memory_s, double slow_math_s, double slow_memory_s,
                          double launch_s) {
    sm_op_cost cost = {.math_s = math_s, .memory_s = memory_s, .tile_efficiency = 1.0};
    cost.lower_s = larger(math_s, memory_s);
    cost.expected_s = larger(slow_math_s, slow_memory_s) + launch_s;
    cost.upper_s = slow_math_s + slow_memory_s + launch_s;
    return cost;
}

/* Loading and multiplying overlap, but neither hides all of the other when they are alike:
 * (a^4 + b^4)^(1/4), at most 19 % above the longer. */
double sm_matmul_overlapped_s(double a, double b) {
    double longer = larger(a, b), ratio = longer > 0.0 ? smaller(a, b) / longer : 0.0;
    ratio *= ratio;
    return longer < INFINITY ? longer * sqrt(sqrt(1.0 + ratio * ratio)) : longer;
}

/* Of the peak. fp4 with fp8 scales reaches four fifths of the fraction that fp8 reaches, and not
 * more than twice its rate, however high the peak (B200 against B300); mxfp4 the same fraction. */
static double efficiency_of(const sm_chip *chip, const sm_calibration *c, sm_dtype used,
                            double peak) {
    if (sm_dtype_bytes(used) > 1.0) return c->matmul_efficiency;
    if (used != SM_FP4 && used != SM_MXFP4) return c->matmul_efficiency_fp8;
    double twice = 2.0 * sm_chip_peak(chip, SM_FP8, NULL);
    double share = twice > 0.0 && twice < peak ? twice / peak : 1.0;
    return c->matmul_efficiency_fp8 * share * (used == SM_FP4 ? 0.8 : 1.0);
}

static matmul_job job_of(const sm_chip *chip, const sm_calibration *c, sm_dtype used, double peak,
                         double efficiency) {
    double width = sm_dtype_bytes(used);
    matmul_job job = {.half_k = c->matmul_half_k, .speed = 1.0, .narrow = width <= 1.0};
    double half = job.narrow ? sm_chip_peak(chip, SM_BF16, NULL) * c->matmul_efficiency : 0.0;
    if (half > 0.0) job.speed = peak * efficiency / half;
    if (!has_many_cores(chip)) return job;
    double step_flops = 2.0 * chip->tile_m * chip->tile_n * chip->cores;
    job.steps_per_cycle = peak * efficiency / (step_flops * clock_of(chip));
    if (job.narrow)
        job.least_step = job.steps_per_cycle * (width < 1.0 ? LEAST_CYCLES_4 : LEAST_CYCLES_8);
    return job;
}

/* per_s: multiplications and additions in a second of a unit without tiles; 0: there is none. */
static sm_op_cost product_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                               sm_product_shape shape, double bytes, double per_s) {
    sm_dtype used;
    double peak = sm_chip_peak(chip, dtype, &used);
    double products = shape.batch * shape.m * shape.n * shape.k;
    double math_s = rate_time(2.0 * products, peak);
    double memory_s = rate_time(bytes, chip->memory_bytes_per_s.value);
    double efficiency = efficiency_of(chip, c, used, peak);
    matmul_job job = job_of(chip, c, used, peak, efficiency);
    job.batch = shape.batch, job.m = shape.m, job.n = shape.n, job.k = shape.k;
    bool works = products > 0.0, many = works && has_many_cores(chip);
    double tiles = works ? tile_efficiency(chip, &job) : 1.0;
    double slow_math_s = math_s / (efficiency * tiles);
    if (per_s > 0.0) slow_math_s = smaller(slow_math_s, larger(math_s, 2.0 * products / per_s));
    double slow_memory_s = memory_s / c->memory_efficiency, start_s = c->launch_s;
    if (many) {
        double written = smaller(bytes, 2.0 * shape.batch * shape.m * shape.n) * WRITTEN_AFTER;
        slow_memory_s += rate_time(bytes, chip->cores * clock_of(chip) * BYTES_PER_CYCLE);
        start_s += START_CYCLES / clock_of(chip);
        start_s += rate_time(written, chip->memory_bytes_per_s.value * c->memory_efficiency);
    }
    sm_op_cost cost = op_cost(math_s, memory_s, slow_math_s, slow_memory_s, start_s);
    cost.expected_s = sm_matmul_overlapped_s(slow_math_s, slow_memory_s) + start_s;
    cost.tile_efficiency = tiles;
    return cost;
}

sm_op_cost sm_matmul_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                          sm_product_shape shape, double bytes) {
    return product_cost(chip, c, dtype, shape, bytes, 0.0);
}

/* Tiles and waves make no product quicker than cores that are always busy. */
sm_matmul_floor sm_matmul_floor_of(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype) {
    sm_dtype used;
    double peak = sm_chip_peak(chip, dtype, &used);
    sm_matmul_floor floor = {c->launch_s, rate_time(1.0, peak * efficiency_of(chip, c, used, peak)),
                             1.0 / (chip->memory_bytes_per_s.value * c->memory_efficiency)};
    if (!has_many_cores(chip)) return floor;
    floor.start_s += START_CYCLES / clock_of(chip);
    floor.s_per_byte += 1.0 / (chip->cores * clock_of(chip) * BYTES_PER_CYCLE);
    return floor;
}

sm_op_cost sm_product_cost(const sm_chip *chip, const sm_calibration *c, sm_dtype dtype,
                           sm_product_shape shape, double bytes) {
    return product_cost(chip, c, dtype, shape, bytes, chip->vector_flops_per_s.value);
}

sm_op_cost sm_vector_cost(const sm_chip *chip, const sm_calibration *c, double flops,
                          double bytes) {
    return sm_kernel_cost(chip, c, 0.0, flops, bytes);
}

sm_op_cost sm_kernel_cost(const sm_chip *chip, const sm_calibration *c, double matrix_flops,
                          double vector_flops, double bytes) {
    double peak = chip->vector_flops_per_s.value > 0.0 ? chip->vector_flops_per_s.value
                                                       : sm_chip_peak(chip, SM_FP32, NULL);
    double matrix_s = rate_time(matrix_flops, sm_chip_peak(chip, SM_BF16, NULL));
    double vector_s = rate_time(vector_flops, peak);
    double memory_s = rate_time(bytes, chip->memory_bytes_per_s.value);
    return op_cost(matrix_s + vector_s, memory_s, matrix_s / c->matmul_efficiency + vector_s,
                   memory_s / c->memory_efficiency, c->launch_s);
}
