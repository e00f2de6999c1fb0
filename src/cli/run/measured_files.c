/* measured_files: the chip for --system, its constants for --calibration, the picture. */
#include "measuring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "scalemodel/io.h"

/* Points for one series; there is room for as many as all measurements together. */
enum { ROOM = 2 * (SM_MOST_MEASURED_COLLECTIVES + SM_MOST_MEASURED_MATMULS) };
typedef struct curve {
    size_t n;
    double x[ROOM], y[ROOM];
} curve;

static void put(curve *c, double x, double y) {
    if (c->n == ROOM) return;
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

/* A dot that no line joins to the one before it. */
static void put_alone(curve *c, double x, double y) {
    put(c, x, y);
    put(c, NAN, NAN);
}

/* The lesser of the peak and what memory feeds, which bends at the ridge; and the products. */
static void put_roof(const measuring *q, sm_dtype dtype, curve *roof, curve *products) {
    double peak = q->chip.flops_per_s[dtype].value, rate = q->chip.memory_bytes_per_s.value;
    put(roof, 1.0 / 32.0, rate / 32.0);
    put(roof, peak / rate, peak);
    double last = fmax(1024.0, 4.0 * peak / rate); /* the roof reaches over every product */
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        double flops = measured_flops(m), intensity = flops / measured_bytes(m);
        if (m->dtype != dtype || measured_is_start(m)) continue;
        put_alone(products, intensity, flops / m->seconds.median);
        last = fmax(last, intensity);
    }
    put(roof, last, peak);
}

static void put_collective(curve *c, const measuring *q, sm_collective op) {
    for (int i = 0; i < q->found->collectives; i++) {
        const sm_measured_collective *m = &q->found->collective[i];
        if (m->op == op && m->ranks == q->found->ranks) put(c, m->bytes, m->seconds.median);
    }
    for (size_t i = 1; i < c->n; i++) /* by size */
        for (size_t k = i; k > 0 && c->x[k] < c->x[k - 1]; k--) {
            double x = c->x[k], y = c->y[k];
            c->x[k] = c->x[k - 1], c->y[k] = c->y[k - 1];
            c->x[k - 1] = x, c->y[k - 1] = y;
        }
}

enum { ROOFS = 5 };
static sm_status plot(const measuring *q, sm_error *err) {
    static const char *const cpu_names[ROOFS] = {"fp32 roof", "fp64 roof", "fp32", "fp64", "triad"};
    static const char *const gpu_names[ROOFS] = {"bf16 roof", "fp32 roof", "bf16", "fp32", "triad"};
    bool gpu = q->gpu.gpus > 0;
    const sm_dtype dtypes[] = {gpu ? SM_BF16 : SM_FP32, gpu ? SM_FP32 : SM_FP64};
    const sm_measured_stream *triad = &q->found->stream[SM_SWEEP_TRIAD];
    sm_series s[ROOFS + SM_COLLECTIVE_COUNT];
    curve *c = sm_arena_array(q->call->arena, ROOFS + SM_COLLECTIVE_COUNT, sizeof *c);
    if (!c) return sm_fail_memory(err);
    for (int i = 0; i < 2; i++) put_roof(q, dtypes[i], &c[i], &c[2 + i]);
    put_alone(&c[4], triad->flops / triad->bytes, triad->flops / triad->seconds.median);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        put_collective(&c[ROOFS + op], q, (sm_collective)op);
    for (int i = 0; i < ROOFS + SM_COLLECTIVE_COUNT; i++) {
        const char *name = i >= ROOFS ? sm_collective_name((sm_collective)(i - ROOFS))
                           : gpu      ? gpu_names[i]
                                      : cpu_names[i];
        s[i] = (sm_series){name, i > 1 ? SM_MARK_LINE_DOTS : SM_MARK_LINE, c[i].n, c[i].x, c[i].y};
    }
    const sm_panel panels[] = {{.title = gpu ? "Roofline of one GPU: medians below the best"
                                             : "Roofline of one rank: medians below the best",
                                .x_label = "FLOPs per byte",
                                .y_label = "", /* each tick has its unit, and no room beside it */
                                .x_unit = "",
                                .y_unit = "FLOP/s",
                                .x_scale = SM_SCALE_LOG,
                                .y_scale = SM_SCALE_LOG,
                                .n = ROOFS,
                                .series = s},
                               {.title = "Collectives over all ranks",
                                .x_label = "bytes of the whole array",
                                .y_label = "time",
                                .x_unit = "B",
                                .y_unit = "s",
                                .x_scale = SM_SCALE_LOG,
                                .y_scale = SM_SCALE_LOG,
                                .n = SM_COLLECTIVE_COUNT,
                                .series = s + ROOFS}};
    sm_chart chart = {q->chip.title, q->machine.date, q->found->ranks > 1 ? 2 : 1, panels};
    return cli_write_chart(&chart, q->plot, err);
}

sm_status measured_files(const measuring *q, sm_error *err) {
    char *chip = sm_io_chip_format(&q->chip, q->call->arena);
    char *constants = sm_calibration_format(&q->calibration, q->call->arena);
    sm_status status = chip && constants ? SM_OK : sm_fail_memory(err);
    if (!status && q->output) status = sm_io_write(q->output, chip, strlen(chip), err);
    if (!status && q->constants)
        status = sm_io_write(q->constants, constants, strlen(constants), err);
    return status || !q->plot ? status : plot(q, err);
}
