/* measured_chip: timings become a chip and constants. A peak is the best that was seen, so that no
 * bound lies above a measurement; the constants turn peaks into what is usual, so that expected
 * times are those of the medians. */
#include "measured_training.h"
#include "measuring.h"

#include <math.h>
#include <string.h>

enum { TILE = 8 }; /* rows and columns that kernels of BLAS work on, more or less */

double measured_flops(const sm_measured_matmul *m) {
    return 2.0 * (double)m->m * (double)m->n * (double)m->k;
}

double measured_bytes(const sm_measured_matmul *m) {
    double a = (double)m->m * (double)m->k, b = (double)m->k * (double)m->n;
    return (a + b + (double)m->m * (double)m->n) * sm_dtype_bytes(m->dtype);
}

bool measured_is_start(const sm_measured_matmul *m) { return m->m * m->n * m->k == 1; }

/* ---- facts ---- */

/* "measured 2026-11-21 on 2 ranks of threads at once: sgemm ...". `what` tells what was done. */
static const char *source_of(const measuring *q, const char *what, const sm_spread *s,
                             double amount, const char *unit) {
    char best[40], low[40], high[40];
    sm_format_rate(best, sizeof best, amount / s->median, unit);
    sm_format_rate(low, sizeof low, amount / s->high, unit);
    sm_format_rate(high, sizeof high, amount / s->low, unit);
    return sm_arena_printf(q->call->arena,
                           "measured %s: %s on %d %s (%s)%s; the best of %d; median %s, "
                           "quartiles %s to %s",
                           q->machine.date, what, q->gpu.gpus ? 1 : q->found->ranks,
                           q->gpu.gpus ? "GPU" : "ranks", q->backend, q->gpu.gpus ? "" : " at once",
                           s->n, best, low, high);
}

/* The least time, as the peak; the source tells the usual one. */
static sm_fact peak_of(const measuring *q, const char *what, const sm_spread *s, double amount,
                       const char *unit) {
    if (!(s->least > 0.0) || !(amount > 0.0)) return (sm_fact){0.0, NULL};
    return (sm_fact){amount / s->least, source_of(q, what, s, amount, unit)};
}

static double best_rate(const sm_measured_matmul *m) {
    return measured_flops(m) / m->seconds.least;
}

static void matmul_peak(measuring *q, sm_dtype dtype) {
    const sm_measured_matmul *best = NULL;
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        if (m->dtype != dtype || measured_is_start(m)) continue;
        if (!best || best_rate(m) > best_rate(best)) best = m;
    }
    if (!best) return;
    const char *what =
        sm_arena_printf(q->call->arena, "%s %zux%zux%zu, %s",
                        q->gpu.gpus        ? sm_dtype_name(dtype)
                        : dtype == SM_FP64 ? "dgemm"
                                           : "sgemm",
                        best->m, best->n, best->k, q->gpu.gpus ? q->gpu.software : q->machine.blas);
    q->chip.flops_per_s[dtype] =
        peak_of(q, what ? what : "", &best->seconds, measured_flops(best), "FLOP/s");
}

static sm_fact stream_peak(const measuring *q, sm_sweep which, bool of_bytes) {
    const sm_measured_stream *s = &q->found->stream[which];
    double amount = of_bytes ? s->bytes : s->flops;
    return peak_of(q, sm_sweep_name(which), &s->seconds, amount, of_bytes ? "B/s" : "FLOP/s");
}

static double usual_bytes_per_s(const measuring *q, sm_sweep which) {
    const sm_measured_stream *s = &q->found->stream[which];
    return s->bytes / s->seconds.median;
}

/* The faster of copy and triad is the peak; what both usually reach, the efficiency. */
static void memory_facts(measuring *q) {
    sm_fact copy = stream_peak(q, SM_SWEEP_COPY, true);
    sm_fact triad = stream_peak(q, SM_SWEEP_TRIAD, true);
    sm_fact *memory = &q->chip.memory_bytes_per_s;
    *memory = copy.value > triad.value ? copy : triad;
    double usual = sqrt(usual_bytes_per_s(q, SM_SWEEP_COPY) * usual_bytes_per_s(q, SM_SWEEP_TRIAD));
    q->calibration.memory_efficiency = usual / memory->value;
    q->chip.onchip_bytes_per_s = stream_peak(q, SM_SWEEP_CACHED, true);
    q->chip.vector_flops_per_s = stream_peak(q, SM_SWEEP_VECTOR, false);
}

/* What one call of BLAS costs, on a matrix of one element. */
static void launch_facts(measuring *q) {
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        if (!measured_is_start(m)) continue;
        q->calibration.launch_s = m->seconds.median;
        q->chip.launch_latency_s =
            (sm_fact){m->seconds.median, "measured: the product of two numbers"};
        return;
    }
}

/* One rank is one chip: its share of what the ranks have together. */
static void machine_facts(measuring *q) {
    static const char told[] = "/proc and /sys";
    const machine *m = &q->machine;
    int ranks = q->found->ranks, places = ranks > m->cpus ? ranks : m->cpus;
    double memory = m->memory_bytes > 0.0 ? m->memory_bytes : 1e9;
    q->chip.memory_bytes =
        (sm_fact){memory / places, m->memory_bytes > 0.0 ? "/proc/meminfo, shared by all ranks"
                                                         : "assumed: the system does not tell"};
    q->chip.host_bytes = (sm_fact){memory, q->chip.memory_bytes.source};
    q->chip.onchip_bytes = (sm_fact){(double)m->private_cache_bytes, told};
    q->chip.clock_hz = (sm_fact){m->clock_hz, told};
    q->chip.chips_per_host = places;
}

/* Of a GPU: what the driver tells, and the link to the host as timed. */
static void gpu_facts(measuring *q) {
    static const char told[] = "the CUDA driver";
    const sm_gpu_facts *g = &q->gpu;
    const sm_spread *host = &g->host_link.seconds;
    q->chip.memory_bytes = (sm_fact){g->memory_bytes, told};
    q->chip.host_bytes = (sm_fact){q->machine.memory_bytes, "/proc/meminfo"};
    q->chip.onchip_bytes = (sm_fact){g->cache_bytes, told};
    q->chip.shared_bytes = (sm_fact){g->shared_bytes, told};
    q->chip.clock_hz = (sm_fact){g->clock_hz, told};
    q->chip.cores = g->cores;
    q->chip.chips_per_host = g->gpus;
    q->chip.pcie_bytes_per_s_oneway =
        peak_of(q, "copies from pinned memory", host, g->host_link.bytes, "B/s");
}

/* ---- constants of products ---- */

static void set_matmul_constants(sm_calibration *c, const double *constant) {
    c->matmul_efficiency = c->matmul_efficiency_fp8 = constant[0];
    c->matmul_half_k = constant[1];
}

static double priced_matmul_s(const measuring *q, const sm_calibration *c, int i) {
    const sm_measured_matmul *m = &q->found->matmul[i];
    return sm_matmul_cost(&q->chip, c, m->dtype, 1.0, (double)m->m, (double)m->n, (double)m->k,
                          measured_bytes(m))
        .expected_s;
}

typedef struct fitting {
    const measuring *q;
    sm_calibration c;
    sm_system system;
    int row[SM_MOST_MEASURED_COLLECTIVES]; /* of the timings that are fitted to */
    sm_curve curve[SM_MOST_MEASURED_COLLECTIVES];
} fitting;

static double matmul_model_s(const double *constant, int row, void *context) {
    fitting *f = context;
    set_matmul_constants(&f->c, constant);
    return priced_matmul_s(f->q, &f->c, f->row[row]);
}

static sm_measured_constant range_of(sm_constant which, double start) {
    const sm_constant_info *info = sm_constant_of(which);
    return (sm_measured_constant){info->low, info->high, fmin(info->high, fmax(info->low, start))};
}

static sm_status fit_matmuls(measuring *q, fitting *f, sm_error *err) {
    double seconds[SM_MOST_MEASURED_MATMULS];
    int n = 0;
    for (int i = 0; i < q->found->matmuls; i++) {
        if (measured_is_start(&q->found->matmul[i])) continue;
        f->row[n] = i;
        seconds[n++] = q->found->matmul[i].seconds.median;
    }
    sm_measured_constant c[] = {range_of(SM_CONSTANT_matmul_efficiency, 0.8),
                                range_of(SM_CONSTANT_matmul_half_k, 16.0)};
    sm_status status =
        sm_measure_constants(matmul_model_s, f, seconds, n, c, 2, &q->matmul_error, err);
    double found[] = {c[0].value, c[1].value};
    if (!status) set_matmul_constants(&q->calibration, found);
    return status;
}

/* ---- links ---- */

static sm_status fit_sends(measuring *q, sm_error *err) {
    double bytes[SM_MOST_MEASURED_SENDS], seconds[SM_MOST_MEASURED_SENDS];
    for (int i = 0; i < q->found->sends; i++) {
        bytes[i] = (double)q->found->send[i].bytes;
        seconds[i] = q->found->send[i].seconds.median;
    }
    return sm_measure_line(bytes, seconds, q->found->sends, &q->send, err);
}

/* The line of one collective on groups of one size. */
static sm_status fit_line_of(measuring *q, int first, sm_error *err) {
    const sm_measured_collective *wanted = &q->found->collective[first];
    double bytes[SM_MOST_MEASURED_COLLECTIVES], seconds[SM_MOST_MEASURED_COLLECTIVES];
    int n = 0;
    for (int i = first; i < q->found->collectives; i++) {
        const sm_measured_collective *m = &q->found->collective[i];
        if (m->op != wanted->op || m->ranks != wanted->ranks) continue;
        bytes[n] = m->bytes;
        seconds[n++] = m->seconds.median;
    }
    collective_line *line = &q->line[q->lines++];
    *line = (collective_line){.op = wanted->op, .ranks = wanted->ranks};
    return sm_measure_line(bytes, seconds, n, &line->line, err);
}

static bool has_line(const measuring *q, const sm_measured_collective *m) {
    for (int i = 0; i < q->lines; i++)
        if (q->line[i].op == m->op && q->line[i].ranks == m->ranks) return true;
    return false;
}

static sm_status fit_lines(measuring *q, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < q->found->collectives && q->lines < MOST_MEASURED_LINES; i++)
        if (!has_line(q, &q->found->collective[i])) status = fit_line_of(q, i, err);
    return status;
}

/* ---- constants of the network ---- */

static void one_level(measuring *q, double bytes_per_s, const char *source) {
    double hop_s = fmax(q->send.line.latency_s, 1e-9);
    q->chip.fabric = SM_FABRIC_SWITCH;
    q->chip.tree_levels = 1;
    q->chip.tree[0] =
        (sm_tree_level){.name = q->backend,
                        .degree = q->chip.chips_per_host,
                        .child_bytes_per_s_oneway = {bytes_per_s, source},
                        .hop_latency_s = {hop_s, "measured: the line through messages between "
                                                 "ranks 0 and 1, at no bytes"}};
}

static sm_status make_system(measuring *q, sm_system *system, sm_error *err) {
    char *text = sm_arena_printf(q->call->arena, "%s:%d", q->chip.name, q->found->ranks);
    if (!text) return sm_fail_memory(err);
    sm_source source = sm_source_of("the measured chip", text);
    return sm_system_parse(&source, &q->chip, 1, system, err);
}

static void make_curves(fitting *f) {
    const sm_measurements *all = f->q->found;
    for (int i = 0; i < all->collectives; i++) {
        const sm_measured_collective *m = &all->collective[i];
        sm_group group = {.parts = 1, .part = {{0, m->ranks, 1}}, .size = m->ranks};
        f->curve[i] = sm_collective_curve(&f->system, m->op, &group, 1.0);
    }
}

/* The rate at which no bound lies above the best time of any message or collective: bounds go with
 * one over the rate, and the curves were made for a rate of 1 byte per second. */
static double fastest_link(const fitting *f) {
    const sm_measurements *all = f->q->found;
    double most = 1.0;
    for (int i = 0; i < all->sends; i++)
        most = fmax(most, (double)all->send[i].bytes / all->send[i].seconds.least);
    for (int i = 0; i < all->collectives; i++) {
        const sm_measured_collective *m = &all->collective[i];
        most = fmax(most, m->bytes * f->curve[i].ideal_s_per_byte / m->seconds.least);
    }
    return most;
}

static double priced_collective_s(const fitting *f, const sm_calibration *c, int i) {
    return sm_curve_expected_s(&f->curve[i], &f->system, c, f->q->found->collective[i].bytes);
}

static double network_model_s(const double *constant, int row, void *context) {
    fitting *f = context;
    f->c.network_efficiency_inner = constant[0];
    f->c.collective_s = constant[1];
    return priced_collective_s(f, &f->c, f->row[row]);
}

/* Broadcasts and permutes stand beside: lowerings have none or few, and here they are single
 * copies, unlike what libraries do. */
static int rows_to_fit(fitting *f, double *seconds) {
    const sm_measurements *all = f->q->found;
    int n = 0;
    for (int i = 0; i < all->collectives; i++) {
        sm_collective op = all->collective[i].op;
        if (op == SM_BROADCAST || op == SM_PERMUTE) continue;
        f->row[n] = i;
        seconds[n++] = all->collective[i].seconds.median;
    }
    return n;
}

static sm_status fit_constants(measuring *q, fitting *f, sm_error *err) {
    double seconds[SM_MOST_MEASURED_COLLECTIVES];
    int rows = rows_to_fit(f, seconds);
    sm_measured_constant c[] = {range_of(SM_CONSTANT_network_efficiency_inner, 0.5),
                                range_of(SM_CONSTANT_collective_s, q->send.line.latency_s)};
    sm_status status =
        sm_measure_constants(network_model_s, f, seconds, rows, c, 2, &q->network_error, err);
    if (status) return status;
    q->calibration.network_efficiency_inner = q->calibration.network_efficiency_outer = c[0].value;
    q->calibration.collective_s = c[1].value;
    for (int i = 0; i < q->found->collectives; i++)
        q->collective_s[i] = priced_collective_s(f, &q->calibration, i);
    return SM_OK;
}

static sm_status fit_network(measuring *q, fitting *f, sm_error *err) {
    static const char source[] =
        "measured: the best rate that a message or a collective needs of a link";
    sm_status status = fit_sends(q, err);
    if (!status) status = fit_lines(q, err);
    if (status) return status;
    one_level(q, 1.0, source);
    status = make_system(q, &f->system, err);
    if (status) return status;
    make_curves(f);
    one_level(q, fastest_link(f), source);
    status = make_system(q, &f->system, err);
    if (status) return status;
    make_curves(f);
    f->c = q->calibration;
    return fit_constants(q, f, err);
}

/* ---- all of it ---- */

static unsigned bit(sm_constant which) { return 1u << which; }

static void describe_gpu(measuring *q) {
    sm_arena *arena = q->call->arena;
    const sm_measurements *all = q->found;
    q->calibration.source =
        sm_arena_printf(arena,
                        "measured %s on %d %s, %s: median error of matmuls %.1f %%, of collectives "
                        "%.1f %%; attention, overlap and what a step adds are not measured",
                        q->machine.date, q->gpu.gpus, q->gpu.name, q->gpu.software,
                        100.0 * q->matmul_error, 100.0 * q->network_error);
    q->calibration.range =
        sm_arena_printf(arena,
                        "%d matmuls up to 8192 a side; %d timings of collectives of 4 KiB "
                        "to 1 GiB on up to %d GPUs",
                        all->matmuls, all->collectives, all->ranks);
    q->chip.title = sm_arena_printf(arena, "%s, one of %d", q->gpu.name, q->gpu.gpus);
}

static sm_status describe(measuring *q, sm_error *err) {
    sm_arena *arena = q->call->arena;
    const machine *m = &q->machine;
    const sm_measurements *all = q->found;
    q->calibration.source = sm_arena_printf(
        arena,
        "measured %s on %s, %d ranks (%s%s%s), %s: median error of matmuls %.1f %%, of collectives "
        "%.1f %%, of the steps of %d trainings %.1f %%",
        m->date, m->cpu, all->ranks, q->backend, m->mpi[0] ? ", " : "", m->mpi, m->blas,
        100.0 * q->matmul_error, 100.0 * q->network_error, q->runs, 100.0 * q->training_error);
    q->calibration.range = sm_arena_printf(
        arena,
        "%d matmuls of fp32 and fp64 up to 1024 a side; %d timings of collectives of 4 KiB "
        "to 16 MiB on up to %d ranks, new memory and packing included; trainings of models up to "
        "384 wide, sequences up to 192",
        all->matmuls, all->collectives, all->ranks);
    q->chip.title =
        sm_arena_printf(arena, "%s, one of %d ranks (%s)", m->cpu, all->ranks, q->backend);
    if (q->gpu.gpus) describe_gpu(q);
    q->calibration.fitted = bit(SM_CONSTANT_matmul_efficiency) | bit(SM_CONSTANT_matmul_half_k) |
                            bit(SM_CONSTANT_memory_efficiency) | bit(SM_CONSTANT_launch_s);
    if (q->runs > 0)
        q->calibration.fitted |= bit(SM_CONSTANT_attention_efficiency) |
                                 bit(SM_CONSTANT_attention_efficiency_backward) |
                                 bit(SM_CONSTANT_overlap) | bit(SM_CONSTANT_step_overhead_s);
    if (all->ranks > 1)
        q->calibration.fitted |=
            bit(SM_CONSTANT_network_efficiency_inner) | bit(SM_CONSTANT_collective_s);
    return q->calibration.source && q->calibration.range && q->chip.title ? SM_OK
                                                                          : sm_fail_memory(err);
}

static void hold_in_range(sm_calibration *c) {
    for (int i = 0; i < SM_CONSTANT_COUNT; i++)
        sm_calibration_set(c, (sm_constant)i,
                           range_of((sm_constant)i, sm_calibration_get(c, (sm_constant)i)).value);
}

/* Constants that are not measured are those of a GPU like it: the catalogue's H100. */
static void begin_gpu(sm_chip *chip) {
    chip->tile_m = chip->tile_n = 128;
    chip->tile_k = 64;
    chip->conflicts = "The peaks are the best that cuBLAS reached, not the datasheet's.";
    chip->calibration = "h100";
}

static void begin(measuring *q) {
    q->chip = (sm_chip){.name = q->name,
                        .aliases = "",
                        .vendor = "measured",
                        .conflicts = "One chip is one rank.",
                        .calibration = "cpu",
                        .tile_m = TILE,
                        .tile_n = TILE,
                        .tile_k = 1,
                        .cores = 1,
                        .matrix_units_per_core = 1,
                        .fabric = SM_FABRIC_NONE};
    if (q->gpu.gpus) begin_gpu(&q->chip);
    q->calibration = *sm_calibration_of(&q->chip);
    memset(q->calibration.interval, 0, sizeof q->calibration.interval);
    q->calibration.chip = q->name;
    q->calibration.software = "measured";
}

/* Under the constants in the end. */
static void price_matmuls(measuring *q) {
    double off[SM_MOST_MEASURED_MATMULS];
    int n = 0;
    for (int i = 0; i < q->found->matmuls; i++) {
        q->matmul_s[i] = priced_matmul_s(q, &q->calibration, i);
        if (measured_is_start(&q->found->matmul[i])) continue;
        off[n++] = fabs(log(q->matmul_s[i] / q->found->matmul[i].seconds.median));
    }
    if (n > 0) q->matmul_error = sm_spread_of(off, n).median;
}

static void price_lines(measuring *q, fitting *f) {
    double off[SM_MOST_MEASURED_COLLECTIVES];
    for (int i = 0; i < q->found->collectives; i++) {
        q->collective_s[i] = priced_collective_s(f, &q->calibration, i);
        off[i] = fabs(log(q->collective_s[i] / q->found->collective[i].seconds.median));
    }
    q->network_error = sm_spread_of(off, q->found->collectives).median;
}

/* Collectives as measured, then what the training runtime adds to them and to ops. */
static sm_status fit_trainings(measuring *q, fitting *f, sm_error *err) {
    sm_status status = q->found->ranks > 1 ? SM_OK : make_system(q, &f->system, err);
    if (!status) status = measured_lines(q, err);
    if (!status && q->found->collectives > 0) price_lines(q, f);
    return status ? status : measured_training_fit(q, &f->system, err);
}

sm_status measured_chip(measuring *q, sm_error *err) {
    fitting *f = sm_arena_alloc(q->call->arena, sizeof *f);
    if (!f) return sm_fail_memory(err);
    f->q = q;
    begin(q);
    if (q->gpu.gpus) gpu_facts(q);
    else machine_facts(q);
    for (int d = 0; d < SM_DTYPE_COUNT; d++) matmul_peak(q, (sm_dtype)d);
    memory_facts(q);
    launch_facts(q);
    hold_in_range(&q->calibration);
    f->c = q->calibration;
    sm_status status = fit_matmuls(q, f, err);
    if (!status && q->found->ranks > 1) status = fit_network(q, f, err);
    if (!status && !q->gpu.gpus) status = fit_trainings(q, f, err);
    if (!status) price_matmuls(q);
    return status ? status : describe(q, err);
}
