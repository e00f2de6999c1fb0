/* The time of a measured memory-bound operation.
 *
 *     seconds = host + launch_s + max(passes bytes / rate, chain)
 *
 * rate: HBM at its efficiency; on chip what the cores can have in flight, when the bytes stay in
 * the cache from one repetition to the next. chain: kernels that give a row to a block of 1024
 * threads walk it 1024 elements at a time, and each step waits for memory; blocks that do not fit
 * the cores at once run in waves:
 *
 *     chain = ceil(rows / resident blocks) steps cycles / clock.
 *
 * The cycles and passes below are one fit to 445 timings of vLLM's and PyTorch's kernels on A100,
 * H100, A40 and MI210 (vidur, LLMCompass): median error 10 %, at a resolution of 1 us. */
#include "measured_format.h"
#include "truth_parts.h"

/* Cores of TPUs keep no cache of what passed. */
static bool many_cores(const sm_chip *chip) { return chip->cores > 8 && chip->clock_hz.value > 0; }

static bool stays_on_chip(const sm_chip *chip, double bytes) {
    return many_cores(chip) && bytes <= 0.8 * chip->onchip_bytes.value;
}

static double host_s(const sm_truth_row *row, const sm_chip *chip, const measured_memop *o) {
    if (!truth_in(row, "llmcompass")) return 0.0;
    return o->host_s[strcmp(chip->vendor, "AMD") == 0];
}

static double streaming_s(const sm_chip *chip, const sm_calibration *c, const measured_memop *o,
                          double bytes) {
    static const double BYTES_PER_CYCLE = 15.4; /* of a core, in and out */
    double hbm = o->passes * bytes / (chip->memory_bytes_per_s.value * c->memory_efficiency);
    if (!stays_on_chip(chip, bytes)) return hbm;
    return fmin(hbm, bytes / (chip->cores * chip->clock_hz.value * BYTES_PER_CYCLE));
}

static double chain_s(const sm_truth_row *row, const sm_chip *chip, const measured_memop *o,
                      double bytes) {
    static const double BLOCK = 1024.0, FROM_HBM = 1.54;
    if (!many_cores(chip) || !(o->walks > 0.0)) return 0.0;
    /* blocks of 1024 threads: two on cores with the shared memory of a data-centre chip */
    double blocks = chip->shared_bytes.value / chip->cores >= 160e3 ? 2.0 : 1.0;
    double waves = ceil(row->of.memop.rows / (chip->cores * blocks));
    double steps = o->walks * ceil(row->of.memop.cols / BLOCK);
    double cycles = o->cycles * (stays_on_chip(chip, bytes) ? 1.0 : FROM_HBM);
    double seconds = waves * steps * cycles / chip->clock_hz.value;
    return seconds > 0.0 ? seconds : 0.0;
}

/* Bytes left on chip by the repetition before need not come from HBM: at most a cache full. What a
 * core can take in: 64 bytes per cycle. */
static double least_s(const sm_chip *chip, double bytes) {
    static const double L2_BYTES_PER_CYCLE = 64.0;
    double kept = many_cores(chip) ? fmin(bytes, chip->onchip_bytes.value) : 0.0;
    double hbm = (bytes - kept) / chip->memory_bytes_per_s.value;
    if (!(kept > 0.0)) return hbm;
    double rate = fmax(chip->onchip_bytes_per_s.value,
                       chip->cores * chip->clock_hz.value * L2_BYTES_PER_CYCLE);
    return fmax(hbm, bytes / rate);
}

void sm_predict_memop(const sm_truth_row *row, const sm_chip *chip, const sm_calibration *c,
                      sm_prediction *out) {
    const measured_memop *o = NAMED(measured_memops, row->of.memop.op);
    if (!o) o = &measured_memops[0]; /* another operation is taken to stream its bytes once */
    double bytes = row->of.memop.bytes;
    out->regime = SM_REGIME_memory;
    if (!(bytes > 0.0)) {
        out->unknown = "bytes";
        return;
    }
    double streaming = streaming_s(chip, c, o, bytes), chain = chain_s(row, chip, o, bytes);
    double start = host_s(row, chip, o) + c->launch_s;
    out->lower_s = least_s(chip, bytes);
    out->expected_s = start + fmax(streaming, chain);
    out->upper_s = start + streaming + chain;
}
