/* measured_chip: timings become a chip and constants. A peak is the best that was seen, so that no
 * bound lies above a measurement; the constants turn peaks into what is usual, so that expected
 * times are those of the medians. */
#include "measuring.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { TILE = 8 }; /* rows and columns that kernels of BLAS work on, where none is found */

double measured_flops(const sm_measured_matmul *m) {
    return 2.0 * (double)m->m * (double)m->n * (double)m->k;
}

double measured_bytes(const sm_measured_matmul *m) {
    double a = (double)m->m * (double)m->k, b = (double)m->k * (double)m->n;
    return (a + b + (double)m->m * (double)m->n) * sm_dtype_bytes(m->dtype);
}

bool measured_is_start(const sm_measured_matmul *m) { return m->m * m->n * m->k == 1; }

/* ---- facts ---- */

/* The least time, as the peak; the source tells the usual one: "measured 2026-11-21: sgemm ... on 2
 * ranks (threads) at once; ...". `what` tells what was done. */
static sm_fact peak_of(const measuring *q, const char *what, const sm_spread *s, double amount,
                       const char *unit) {
    char median[40], low[40], high[40];
    bool gpu = q->gpu.gpus > 0;
    if (!(s->least > 0.0) || !(amount > 0.0)) return (sm_fact){0.0, NULL};
    sm_format_rate(median, sizeof median, amount / s->median, unit);
    sm_format_rate(low, sizeof low, amount / s->high, unit);
    sm_format_rate(high, sizeof high, amount / s->low, unit);
    const char *source = sm_arena_printf(
        q->call->arena,
        "measured %s: %s on %d %s (%s)%s; the best of %d; median %s, quartiles %s to %s",
        q->machine.date, what, gpu ? 1 : q->found->ranks, gpu ? "GPU" : "ranks", q->backend,
        gpu ? "" : " at once", s->n, median, low, high);
    return (sm_fact){amount / s->least, source};
}

static void matmul_peak(measuring *q, sm_dtype dtype) {
    const sm_measured_matmul *best = NULL;
    double most = 0.0;
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        double rate = measured_flops(m) / m->seconds.least;
        if (m->dtype != dtype || measured_is_start(m) || rate <= most) continue;
        best = m;
        most = rate;
    }
    if (!best) return;
    const char *gemm = dtype == SM_FP64 ? "dgemm" : "sgemm";
    const char *what = sm_arena_printf(q->call->arena, "%s %zux%zux%zu, %s",
                                       q->gpu.gpus ? sm_dtype_name(dtype) : gemm, best->m, best->n,
                                       best->k, q->gpu.gpus ? q->gpu.software : q->machine.blas);
    q->chip.flops_per_s[dtype] =
        peak_of(q, what ? what : "", &best->seconds, measured_flops(best), "FLOP/s");
}

static sm_fact stream_peak(const measuring *q, sm_sweep which, bool of_bytes) {
    const sm_measured_stream *s = &q->found->stream[which];
    double amount = of_bytes ? s->bytes : s->flops;
    assert(which < SM_SWEEP_COUNT);
    return peak_of(q, sm_sweep_name(which), &s->seconds, amount, of_bytes ? "B/s" : "FLOP/s");
}

/* The faster of copy and triad is the peak; what both usually reach, the efficiency. One call of
 * BLAS costs what it takes on a matrix of one element. */
static void memory_and_call_facts(measuring *q) {
    const sm_measured_stream *s = q->found->stream;
    sm_fact copy = stream_peak(q, SM_SWEEP_COPY, true);
    sm_fact triad = stream_peak(q, SM_SWEEP_TRIAD, true);
    sm_fact *memory = &q->chip.memory_bytes_per_s;
    *memory = copy.value > triad.value ? copy : triad;
    double usual = sqrt(s[SM_SWEEP_COPY].bytes / s[SM_SWEEP_COPY].seconds.median *
                        s[SM_SWEEP_TRIAD].bytes / s[SM_SWEEP_TRIAD].seconds.median);
    q->calibration.memory_efficiency = usual / memory->value;
    q->chip.onchip_bytes_per_s = stream_peak(q, SM_SWEEP_CACHED, true);
    q->chip.vector_flops_per_s = stream_peak(q, SM_SWEEP_VECTOR, false);
    static const sm_dtype narrow[] = {SM_BF16, SM_INT8, SM_FP8, SM_MXFP4};
    for (int i = 0; i < SM_SWEEP_COUNT - SM_SWEEP_BF16; i++)
        q->chip.narrow_bytes_per_s[narrow[i]] = stream_peak(q, (sm_sweep)(SM_SWEEP_BF16 + i), true);
    int i = 0;
    while (i < q->found->matmuls && !measured_is_start(&q->found->matmul[i])) i++;
    if (i == q->found->matmuls) return;
    q->calibration.launch_s = q->found->matmul[i].seconds.median;
    q->chip.launch_latency_s =
        (sm_fact){q->calibration.launch_s, "measured: the product of two numbers"};
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
    return sm_matmul_cost(&q->chip, c, m->dtype,
                          (sm_product_shape){1.0, (double)m->m, (double)m->n, (double)m->k},
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

static sm_status fit_matmuls(measuring *q, fitting *f, sm_error *err) {
    double seconds[SM_MOST_MEASURED_MATMULS];
    int n = 0;
    for (int i = 0; i < q->found->matmuls; i++) {
        if (measured_is_start(&q->found->matmul[i])) continue;
        f->row[n] = i;
        seconds[n++] = q->found->matmul[i].seconds.median;
    }
    sm_measured_constant c[] = {measured_range(SM_CONSTANT_matmul_efficiency, 0.8),
                                measured_range(SM_CONSTANT_matmul_half_k, 16.0)};
    sm_timings timings = {matmul_model_s, f, seconds, n};
    sm_status status = sm_measure_constants(&timings, c, 2, &q->matmul_error, err);
    double found[] = {c[0].value, c[1].value};
    if (!status) set_matmul_constants(&q->calibration, found);
    return status;
}

/* How far products of few rows or columns are from what is predicted: logarithms, summed. */
static double off_by_few(const measuring *q) {
    enum { FEW = 16 };
    double off = 0.0;
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        if (measured_is_start(m) || (m->m > FEW && m->n > FEW)) continue;
        off += fabs(log(priced_matmul_s(q, &q->calibration, i) / m->seconds.median));
    }
    return off;
}

/* What few rows cost is found, not known: BLAS lays out the other matrix for as many as its kernels
 * take, however few there are. The tile under which such products are predicted best. */
static sm_status fit_tile(measuring *q, fitting *f, sm_error *err) {
    static const int tiles[] = {1, 2, 4, 8, 16};
    double least = INFINITY;
    int best = TILE;
    for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
        q->chip.tile_m = q->chip.tile_n = tiles[t];
        sm_status status = fit_matmuls(q, f, err);
        if (status) return status;
        double off = off_by_few(q);
        if (off < least) least = off, best = tiles[t];
    }
    q->chip.tile_m = q->chip.tile_n = best;
    return fit_matmuls(q, f, err);
}

/* ---- links ---- */

/* Of messages, and of each collective on groups of each size. */
static sm_status fit_lines(measuring *q, sm_error *err) {
    double bytes[SM_MOST_MEASURED_COLLECTIVES], seconds[SM_MOST_MEASURED_COLLECTIVES];
    const sm_measurements *all = q->found;
    for (int i = 0; i < all->sends; i++) {
        bytes[i] = (double)all->send[i].bytes;
        seconds[i] = all->send[i].seconds.median;
    }
    sm_status status = sm_measure_line(bytes, seconds, all->sends, &q->send, err);
    for (int i = 0; !status && i < all->collectives && q->lines < MOST_MEASURED_LINES; i++) {
        const sm_measured_collective *first = &all->collective[i], *m = first;
        int n = 0, known = 0;
        while (known < q->lines &&
               (q->line[known].op != first->op || q->line[known].ranks != first->ranks))
            known++;
        if (known < q->lines) continue;
        for (; m < all->collective + all->collectives; m++) {
            if (m->op != first->op || m->ranks != first->ranks) continue;
            bytes[n] = m->bytes;
            seconds[n++] = m->seconds.median;
        }
        collective_line *line = &q->line[q->lines++];
        *line = (collective_line){.op = first->op, .ranks = first->ranks};
        status = sm_measure_line(bytes, seconds, n, &line->line, err);
    }
    return status;
}

/* ---- constants of the network ---- */

static void one_level(measuring *q, double bytes_per_s, const char *source) {
    assert(bytes_per_s > 0.0 && q->chip.chips_per_host >= 1);
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

/* And the curve of each collective on it. */
static sm_status make_system(measuring *q, fitting *f, sm_error *err) {
    char *text = sm_arena_printf(q->call->arena, "%s:%d", q->chip.name, q->found->ranks);
    if (!text) return sm_fail_memory(err);
    sm_source source = sm_source_of("the measured chip", text);
    sm_status status = sm_system_parse(&source, &q->chip, 1, &f->system, err);
    for (int i = 0; !status && i < q->found->collectives; i++) {
        const sm_measured_collective *m = &q->found->collective[i];
        sm_group group = {.parts = 1, .part = {{0, m->ranks, 1}}, .size = m->ranks};
        f->curve[i] = sm_collective_curve(&f->system, m->op, &group, 1.0);
    }
    return status;
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
    return sm_curve_cost(&f->curve[i], &f->system, c, f->q->found->collective[i].bytes).expected_s;
}

static double network_model_s(const double *constant, int row, void *context) {
    fitting *f = context;
    f->c.network_efficiency_inner = constant[0];
    f->c.collective_s = constant[1];
    return priced_collective_s(f, &f->c, f->row[row]);
}

/* Broadcasts, reduces and permutes stand beside: lowerings have none or few, and here they are
 * single copies, unlike what libraries do. */
static sm_status fit_constants(measuring *q, fitting *f, sm_error *err) {
    double seconds[SM_MOST_MEASURED_COLLECTIVES];
    int rows = 0;
    for (int i = 0; i < q->found->collectives; i++) {
        sm_collective op = q->found->collective[i].op;
        if (op == SM_BROADCAST || op == SM_REDUCE || op == SM_PERMUTE) continue;
        f->row[rows] = i;
        seconds[rows++] = q->found->collective[i].seconds.median;
    }
    f->c = q->calibration;
    sm_measured_constant c[] = {measured_range(SM_CONSTANT_network_efficiency_inner, 0.5),
                                measured_range(SM_CONSTANT_collective_s, q->send.line.latency_s)};
    sm_timings timings = {network_model_s, f, seconds, rows};
    sm_status status = sm_measure_constants(&timings, c, 2, &q->network_error, err);
    if (status) return status;
    q->calibration.network_efficiency_inner = q->calibration.network_efficiency_outer = c[0].value;
    q->calibration.collective_s = c[1].value;
    return SM_OK;
}

static sm_status fit_network(measuring *q, fitting *f, sm_error *err) {
    static const char source[] =
        "measured: the best rate that a message or a collective needs of a link";
    sm_status status = fit_lines(q, err);
    if (status) return status;
    one_level(q, 1.0, source);
    status = make_system(q, f, err);
    if (status) return status;
    one_level(q, fastest_link(f), source);
    status = make_system(q, f, err);
    return status ? status : fit_constants(q, f, err);
}

/* ---- all of it ---- */

#define FITTED(name) (1u << SM_CONSTANT_##name)

/* What the chip and its constants say of where they come from. */
static sm_status describe(measuring *q, sm_error *err) {
    sm_arena *arena = q->call->arena;
    const machine *m = &q->machine;
    const sm_measurements *all = q->found;
    sm_calibration *c = &q->calibration;
    double matmuls = 100.0 * q->matmul_error, collectives = 100.0 * q->network_error;
    if (q->gpu.gpus) {
        c->source = sm_arena_printf(
            arena,
            "measured %s on %d %s, %s: median error of matmuls %.1f %%, of collectives %.1f %%; "
            "attention, overlap and what a step adds are not measured",
            m->date, q->gpu.gpus, q->gpu.name, q->gpu.software, matmuls, collectives);
        c->range = sm_arena_printf(arena,
                                   "%d matmuls up to 8192 a side; %d timings of collectives of 4 "
                                   "KiB to 1 GiB on up to %d GPUs",
                                   all->matmuls, all->collectives, all->ranks);
        q->chip.title = sm_arena_printf(arena, "%s, one of %d", q->gpu.name, q->gpu.gpus);
    } else {
        c->source = sm_arena_printf(
            arena,
            "measured %s on %s, %d ranks (%s%s%s), %s: median error of matmuls %.1f %%, of "
            "collectives %.1f %%, of the steps of %d trainings %.1f %%",
            m->date, m->cpu, all->ranks, q->backend, m->mpi[0] ? ", " : "", m->mpi, m->blas,
            matmuls, collectives, q->runs, 100.0 * q->training_error);
        c->range = sm_arena_printf(
            arena,
            "%d matmuls of fp32 and fp64 up to 1024 a side; %d timings of collectives of 4 KiB to "
            "16 MiB on up to %d ranks, new memory and packing included; trainings of models up to "
            "384 wide, sequences up to 192",
            all->matmuls, all->collectives, all->ranks);
        q->chip.title =
            sm_arena_printf(arena, "%s, one of %d ranks (%s)", m->cpu, all->ranks, q->backend);
    }
    c->fitted = FITTED(matmul_efficiency) | FITTED(matmul_half_k) | FITTED(memory_efficiency) |
                FITTED(launch_s);
    if (q->runs > 0)
        c->fitted |= FITTED(attention_efficiency) | FITTED(attention_efficiency_backward) |
                     FITTED(overlap) | FITTED(step_overhead_s);
    if (all->ranks > 1) c->fitted |= FITTED(network_efficiency_inner) | FITTED(collective_s);
    return c->source && c->range && q->chip.title ? SM_OK : sm_fail_memory(err);
}

/* Constants that are not measured are those of a CPU, or of a GPU like it: the catalogue's H100. */
static void begin(measuring *q) {
    bool gpu = q->gpu.gpus > 0;
    q->chip = (sm_chip){.name = q->name,
                        .aliases = "",
                        .vendor = "measured",
                        .conflicts =
                            gpu ? "The peaks are the best that cuBLAS reached, not the datasheet's."
                                : "One chip is one rank.",
                        .calibration = gpu ? "h100" : "cpu",
                        .tile_m = gpu ? 128 : TILE,
                        .tile_n = gpu ? 128 : TILE,
                        .tile_k = gpu ? 64 : 1,
                        .cores = 1,
                        .devices = 1,
                        .matrix_units_per_core = 1,
                        .fabric = SM_FABRIC_NONE};
    q->calibration = *sm_calibration_of(&q->chip);
    memset(q->calibration.interval, 0, sizeof q->calibration.interval);
    q->calibration.chip = q->name;
    q->calibration.software = SM_MEASURED_SOFTWARE;
}

/* Returns the median of |log(priced / measured)|, 0 where there are none. */
static double price_collectives(measuring *q, const fitting *f) {
    double off[SM_MOST_MEASURED_COLLECTIVES];
    for (int i = 0; i < q->found->collectives; i++) {
        q->collective_s[i] = priced_collective_s(f, &q->calibration, i);
        off[i] = fabs(log(q->collective_s[i] / q->found->collective[i].seconds.median));
    }
    return sm_spread_of(off, q->found->collectives).median;
}

sm_status measured_chip(measuring *q, sm_error *err) {
    fitting *f = sm_arena_alloc(q->call->arena, sizeof *f);
    if (!f) return sm_fail_memory(err);
    f->q = q;
    begin(q);
    if (q->gpu.gpus) gpu_facts(q);
    else machine_facts(q);
    for (int d = 0; d < SM_DTYPE_COUNT; d++) matmul_peak(q, (sm_dtype)d);
    memory_and_call_facts(q);
    for (sm_constant i = 0; i < SM_CONSTANT_COUNT; i++)
        sm_calibration_set(&q->calibration, i,
                           measured_range(i, sm_calibration_get(&q->calibration, i)).value);
    f->c = q->calibration;
    sm_status status = q->gpu.gpus ? fit_matmuls(q, f, err) : fit_tile(q, f, err);
    if (!status && q->found->ranks > 1) status = fit_network(q, f, err);
    if (!status) price_collectives(q, f);
    /* Collectives as measured, then what the training runtime adds to them and to ops. */
    if (!status && !q->gpu.gpus) {
        status = q->found->ranks > 1 ? SM_OK : make_system(q, f, err);
        if (!status) status = measured_lines(q, err);
        if (!status) q->network_error = price_collectives(q, f);
        status = status ? status : measured_training_fit(q, &f->system, err);
    }
    double off[SM_MOST_MEASURED_MATMULS];
    int n = 0;
    for (int i = 0; !status && i < q->found->matmuls; i++) { /* under the constants in the end */
        q->matmul_s[i] = priced_matmul_s(q, &q->calibration, i);
        if (measured_is_start(&q->found->matmul[i])) continue;
        off[n++] = fabs(log(q->matmul_s[i] / q->found->matmul[i].seconds.median));
    }
    if (n > 0) q->matmul_error = sm_spread_of(off, n).median;
    return status ? status : describe(q, err);
}
