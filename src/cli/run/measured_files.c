/* measured_files: the chip for --system, its constants for --calibration, the picture. */
#include "measuring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "scalemodel/io.h"

sm_status measured_files(const measuring *q, sm_error *err) {
    char *chip = sm_io_chip_format(&q->chip, q->call->arena);
    char *constants = sm_calibration_format(&q->calibration, q->call->arena);
    sm_status status = chip && constants ? SM_OK : sm_fail_memory(err);
    if (!status && q->output) status = sm_io_write(q->output, chip, strlen(chip), err);
    if (!status && q->constants)
        status = sm_io_write(q->constants, constants, strlen(constants), err);
    if (!status && q->plot) status = measured_plot(q, err);
    return status;
}

/* ---- the picture ---- */

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

/* The lesser of the peak and what memory feeds; it bends at the ridge. */
static void put_roof(curve *c, double peak, double bytes_per_s) {
    double ridge = peak / bytes_per_s;
    put(c, 1.0 / 32.0, bytes_per_s / 32.0);
    put(c, ridge, peak);
    put(c, fmax(1024.0, 4.0 * ridge), peak);
}

static void put_matmuls(curve *c, const measuring *q, sm_dtype dtype) {
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        if (m->dtype != dtype || m->m * m->n * m->k == 1) continue;
        double flops = measured_flops(m);
        put_alone(c, flops / measured_bytes(m), flops / m->seconds.median);
    }
}

static void put_triad(curve *c, const measuring *q) {
    const sm_measured_stream *s = &q->found->stream[SM_SWEEP_TRIAD];
    put_alone(c, s->flops / s->bytes, s->flops / s->seconds.median);
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

static sm_series series_of(const char *name, bool dots, const curve *c) {
    return (sm_series){name, dots, c->n, c->x, c->y};
}

enum { ROOFS = 5 };
static sm_panel roof_panel(const measuring *q, curve *c, sm_series *s) {
    const sm_dtype dtypes[] = {q->gpu.gpus ? SM_BF16 : SM_FP32, q->gpu.gpus ? SM_FP32 : SM_FP64};
    static const char *const cpu_names[] = {"fp32 roof", "fp64 roof", "fp32", "fp64"};
    static const char *const gpu_names[] = {"bf16 roof", "fp32 roof", "bf16", "fp32"};
    const char *const *names = q->gpu.gpus ? gpu_names : cpu_names;
    for (int i = 0; i < 2; i++) {
        put_roof(&c[i], q->chip.flops_per_s[dtypes[i]].value, q->chip.memory_bytes_per_s.value);
        put_matmuls(&c[2 + i], q, dtypes[i]);
    }
    put_triad(&c[4], q);
    for (int i = 0; i < 4; i++) s[i] = series_of(names[i], i > 1, &c[i]);
    s[4] = series_of("triad", true, &c[4]);
    return (sm_panel){q->gpu.gpus ? "Roofline of one GPU: medians below the best"
                                  : "Roofline of one rank: medians below the best",
                      "FLOPs per byte",
                      "", /* each tick has its unit, and no room beside it */
                      "",
                      "FLOP/s",
                      SM_SCALE_LOG,
                      SM_SCALE_LOG,
                      false,
                      ROOFS,
                      s};
}

static sm_panel collective_panel(const measuring *q, curve *c, sm_series *s) {
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++) {
        put_collective(&c[op], q, (sm_collective)op);
        s[op] = series_of(sm_collective_name((sm_collective)op), true, &c[op]);
    }
    return (sm_panel){"Collectives over all ranks",
                      "bytes of the whole array",
                      "time",
                      "B",
                      "s",
                      SM_SCALE_LOG,
                      SM_SCALE_LOG,
                      false,
                      SM_COLLECTIVE_COUNT,
                      s};
}

sm_status measured_plot(const measuring *q, sm_error *err) {
    sm_series roofs[ROOFS], collectives[SM_COLLECTIVE_COUNT];
    curve *c = sm_arena_array(q->call->arena, ROOFS + SM_COLLECTIVE_COUNT, sizeof *c);
    if (!c) return sm_fail_memory(err);
    sm_panel panel[2];
    panel[0] = roof_panel(q, c, roofs);
    panel[1] = collective_panel(q, c + ROOFS, collectives);
    size_t panels = q->found->ranks > 1 ? 2 : 1;
    sm_chart chart = {q->chip.title, q->machine.date, panels, panel};
    return cli_write_chart(&chart, q->plot, err);
}
