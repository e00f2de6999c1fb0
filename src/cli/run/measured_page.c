/* measured_page: what was measured, its spread, and how well the constants tell it. */
#include "measuring.h"
#include "scalemodel/io.h"
#include <math.h>

/* The chip for --system, its constants for --calibration, the picture. */

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
static void draw(sm_report *r, const measuring *q) {
    static const char *const cpu_names[ROOFS] = {"fp32 roof", "fp64 roof", "fp32", "fp64", "triad"};
    static const char *const gpu_names[ROOFS] = {"bf16 roof", "fp32 roof", "bf16", "fp32", "triad"};
    bool gpu = q->gpu.gpus > 0;
    const sm_dtype dtypes[] = {gpu ? SM_BF16 : SM_FP32, gpu ? SM_FP32 : SM_FP64};
    const sm_measured_stream *triad = &q->found->stream[SM_SWEEP_TRIAD];
    sm_series s[ROOFS + SM_COLLECTIVE_COUNT];
    curve *c = sm_report_room(r, ROOFS + SM_COLLECTIVE_COUNT, sizeof *c);
    if (!c) return;
    for (int i = 0; i < 2; i++) put_roof(q, dtypes[i], &c[i], &c[2 + i]);
    put_alone(&c[4], triad->flops / triad->bytes, triad->flops / triad->seconds.median);
    for (int op = 0; op < SM_COLLECTIVE_COUNT; op++)
        put_collective(&c[ROOFS + op], q, (sm_collective)op);
    for (int i = 0; i < ROOFS + SM_COLLECTIVE_COUNT; i++) {
        const char *name = i >= ROOFS ? sm_collective_name((sm_collective)(i - ROOFS))
                           : gpu      ? gpu_names[i]
                                      : cpu_names[i];
        s[i] = (sm_series){name, i > 1 ? SM_MARK_LINE_DOTS : SM_MARK_LINE, c[i].n, c[i].x, c[i].y,
                           NULL};
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
    sm_report_chart(
        r, &(sm_chart){q->chip.title, q->machine.date, q->found->ranks > 1 ? 2 : 1, panels});
}

sm_status measured_files(sm_report *r, const measuring *q, sm_error *err) {
    char *chip = sm_io_chip_format(&q->chip, q->call->arena);
    char *constants = sm_calibration_format(&q->calibration, q->call->arena);
    sm_status status = chip && constants ? SM_OK : sm_fail_memory(err);
    if (!status && q->output) status = sm_io_write(q->output, chip, strlen(chip), err);
    if (!status && q->constants)
        status = sm_io_write(q->constants, constants, strlen(constants), err);
    if (q->plot) draw(r, q);
    return status;
}

/* ---- JSON ---- */

#define SPREAD_KEYS                                                                                \
    "time_s.least|time_s.low|time_s.median|time_s.high|time_s.repeats>{=}repeats|time_s.disturbed"
#define SPREAD(s) (s).least, (s).low, (s).median, (s).high, (s).n, (s).disturbed

static void put_line(sm_report *r, sm_data *object, const sm_measured_line *line) {
    sm_put(r, object, "latency_s|bytes_per_s|crossover_bytes|median_error", line->line.latency_s,
           1.0 / line->line.s_per_byte, line->crossover_bytes, line->error);
}

/* ---- products, streams, messages and collectives: each in the data and on the page ---- */

/* In units of 1e9 per second, so that columns stay narrow. */
static double giga(double amount, double seconds) { return amount / seconds / 1e9; }

static void show_matmuls(sm_report *r, const measuring *q) {
    const sm_listing list =
        sm_page_list(r, r->data, "matmuls",
                     q->gpu.gpus ? "Matrix products in GFLOP/s of the first GPU"
                                 : "Matrix products in GFLOP/s of a rank, all ranks at once",
                     "dtype<dtype|m>{=}m|n>{=}n|k>{=}k|" SPREAD_KEYS "|flops_per_s|expected_s|"
                     ">median|>quartile|>quartile|>expected");
    for (int i = 0; i < q->found->matmuls; i++) {
        const sm_measured_matmul *m = &q->found->matmul[i];
        double flops = measured_flops(m);
        sm_list_row(&list, !measured_is_start(m), sm_dtype_name(m->dtype), (double)m->m,
                    (double)m->n, (double)m->k, SPREAD(m->seconds), flops / m->seconds.median,
                    q->matmul_s[i], giga(flops, m->seconds.median), giga(flops, m->seconds.high),
                    giga(flops, m->seconds.low), giga(flops, q->matmul_s[i]));
    }
}

static void show_memory(sm_report *r, const measuring *q) {
    const sm_listing list = sm_page_list(
        r, r->data, "memory",
        q->gpu.gpus ? "Memory of the first GPU" : "Memory and vectors of a rank, all ranks at once",
        "stream<stream|bytes|flops|" SPREAD_KEYS "|>median|>quartile|>quartile|>best|<");
    for (int i = 0; i < SM_SWEEP_COUNT; i++) {
        const sm_measured_stream *s = &q->found->stream[i];
        bool moves = i != SM_SWEEP_VECTOR;
        double amount = moves ? s->bytes : s->flops;
        sm_list_row(&list, s->seconds.n > 0, sm_sweep_name((sm_sweep)i), s->bytes, s->flops,
                    SPREAD(s->seconds), giga(amount, s->seconds.median),
                    giga(amount, s->seconds.high), giga(amount, s->seconds.low),
                    giga(amount, s->seconds.least), moves ? "GB/s" : "GFLOP/s");
    }
}

static void put_messages(sm_report *r, const measuring *q) {
    sm_data *messages = sm_put_object(r, r->data, "messages");
    put_line(r, messages, &q->send);
    const sm_listing list = sm_page_list(r, messages, "sizes", NULL, "bytes|" SPREAD_KEYS);
    for (int i = 0; i < q->found->sends; i++)
        sm_list_row(&list, false, (double)q->found->send[i].bytes,
                    SPREAD(q->found->send[i].seconds));
}

/* The sizes of one collective; returns the median of expected over measured, in size of its
 * logarithm. */
static double put_sizes(sm_report *r, sm_data *object, const measuring *q,
                        const collective_line *line) {
    double off[SM_MOST_MEASURED_COLLECTIVES];
    int n = 0;
    const sm_listing list =
        sm_page_list(r, object, "sizes", NULL, "bytes|" SPREAD_KEYS "|expected_s");
    for (int i = 0; i < q->found->collectives; i++) {
        const sm_measured_collective *m = &q->found->collective[i];
        if (m->op != line->op || m->ranks != line->ranks) continue;
        sm_list_row(&list, false, m->bytes, SPREAD(m->seconds), q->collective_s[i]);
        off[n++] = fabs(log(q->collective_s[i] / m->seconds.median));
    }
    return sm_spread_of(off, n).median;
}

static void line_row(sm_report *r, sm_table *table, const char *what, int ranks,
                     const sm_measured_line *m, const char *expected_off) {
    double s_per_byte = m->line.s_per_byte;
    sm_page_row(r, table, what, ranks, m->line.latency_s, s_per_byte > 0.0 ? 1.0 / s_per_byte : NAN,
                m->crossover_bytes, m->error, expected_off);
}

static void show_collectives(sm_report *r, const measuring *q) {
    sm_data *list = sm_put_array(r, r->data, "collectives");
    sm_table *table =
        sm_page_table(r, "Lines through messages and collectives",
                      "<what|>{=}ranks|>{s}latency|>{B/s}bandwidth|>{B}crossover|>{%}line off|"
                      ">expected off");
    line_row(r, table, "message", 2, &q->send, "");
    for (int i = 0; i < q->lines; i++) {
        const collective_line *line = &q->line[i];
        sm_data *object = sm_put_object(r, list, NULL);
        sm_put(r, object, "op|ranks", sm_collective_name(line->op), line->ranks);
        put_line(r, object, &line->line);
        double off = put_sizes(r, object, q, line);
        line_row(r, table, sm_collective_name(line->op), line->ranks, &line->line,
                 sm_show_percent(r, expm1(off)));
    }
    sm_report_text(r, "Bandwidth is bytes of the whole array over time; at the crossover half of "
                      "the time is latency. Off: the median over the sizes, of the line and of "
                      "what the constants below make of it.");
}

static void show_trainings(sm_report *r, const measuring *q) {
    const sm_listing list =
        sm_page_list(r, r->data, "trainings", "Steps of short trainings",
                     "what<model and plan|" SPREAD_KEYS "|>{s}median|>{s}quartile|"
                     "expected_s>{s}expected");
    for (int i = 0; i < q->runs; i++) {
        const measured_run *run = &q->run[i];
        const sm_spread *s = &q->found->training[i].seconds;
        bool tensor = run->plan.tensor > 1;
        const char *what =
            sm_textf(r, "%d wide, %d layers%s, sequences of %d, %s=%d", run->model.D, run->model.L,
                     run->model.kind[0].E > 0 ? " of experts" : "", run->setup.tokens,
                     tensor ? "tensor" : "data", tensor ? run->plan.tensor : run->plan.data);
        sm_list_row(&list, true, what, SPREAD(*s), s->median, s->low, run->predicted_s);
    }
    sm_put(r, r->data, "waiting_s", q->waiting_s);
    sm_report_text(r,
                   "Ops and steps are fitted to their lower quartile: the median product is off by "
                   "%s, the median step by %s. Between ops a "
                   "collective waits %s for the slower rank, which its line for --calibration has.",
                   sm_show_percent(r, expm1(q->op_error)),
                   sm_show_percent(r, expm1(q->training_error)), sm_show_seconds(r, q->waiting_s));
}

/* ---- constants ---- */

static void show_constants(sm_report *r, const measuring *q) {
    sm_data *object = sm_put_object(r, r->data, "constants");
    sm_table *table = sm_page_table(r, "Constants", "<constant|>value|<unit|<");
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        const sm_constant_info *info = sm_constant_of((sm_constant)i);
        double value = sm_calibration_get(&q->calibration, (sm_constant)i);
        bool fitted = q->calibration.fitted >> i & 1u;
        const char *origin = fitted                                   ? "measured"
                             : i == SM_CONSTANT_matmul_efficiency_fp8 ? "as of the wider types"
                             : i == SM_CONSTANT_network_efficiency_outer && q->lines > 0
                                 ? "as of the inner one"
                                 : "usual, not measured";
        if (fitted) sm_put(r, object, info->name, value);
        sm_page_row(r, table, info->name, value, info->unit, origin);
    }
    sm_data *errors = sm_put_object(r, r->data, "median_error");
    sm_put(r, errors, "matmuls", q->matmul_error);
    sm_report_text(r, "Under these constants the median matmul is off by %s.",
                   sm_show_percent(r, expm1(q->matmul_error)));
    if (!q->lines) return;
    sm_put(r, errors, "collectives", q->network_error);
    sm_report_text(r, "The median collective is off by %s.",
                   sm_show_percent(r, expm1(q->network_error)));
}

/* ---- the page ---- */

static void say_disturbed(sm_report *r, const sm_measurements *m) {
    int disturbed = 0, repeats = 0;
#define COUNT(s) disturbed += (s).disturbed, repeats += (s).n
    for (int i = 0; i < m->matmuls; i++) COUNT(m->matmul[i].seconds);
    for (int i = 0; i < m->sends; i++) COUNT(m->send[i].seconds);
    for (int i = 0; i < m->collectives; i++) COUNT(m->collective[i].seconds);
    for (int i = 0; i < SM_SWEEP_COUNT; i++) COUNT(m->stream[i].seconds);
#undef COUNT
    if (disturbed == 0) return;
    sm_report_text(r,
                   "The machine was not idle: in %d repeats a rank waited for a processor that "
                   "another program had. They or their waiting are left out; %d repeats count.",
                   disturbed, repeats);
}

void measured_page(sm_report *r, const measuring *q) {
    /* Who measured, on what and with which command line. */
    const machine *m = &q->machine;
    sm_put(r, r->data, "command|name|backend|ranks", "measure", q->name, q->backend,
           q->found->ranks);
    sm_data *object = sm_put_object(r, r->data, "provenance");
    sm_put(r, object, "date|cpu|cpus|blas|mpi", m->date, m->cpu, m->cpus, m->blas, m->mpi);
    if (q->gpu.gpus) sm_put(r, object, "gpu", q->gpu.name);
    if (q->gpu.gpus) sm_put(r, object, "cuda", q->gpu.software);
    const char *line = "measure";
    for (char **a = q->call->argv; *a; a++) line = sm_textf(r, "%s %s", line, *a);
    sm_put(r, object, "command", line);

    sm_report_heading(r, "%s", q->chip.title);
    sm_report_text(r, "Measured %s with %s%s%s.", q->machine.date,
                   q->gpu.gpus ? q->gpu.software : q->machine.blas,
                   q->machine.mpi[0] ? " and " : "", q->machine.mpi);
    show_matmuls(r, q);
    show_memory(r, q);
    if (q->found->sends) put_messages(r, q);
    if (q->lines) show_collectives(r, q);
    if (q->runs) show_trainings(r, q);
    show_constants(r, q);
    say_disturbed(r, q->found);
    if (q->output) sm_report_text(r, "Written to %s, for --system.", q->output);
    if (q->constants) sm_report_text(r, "Written to %s, for --calibration.", q->constants);
    if (q->plot) sm_report_text(r, "Written to %s.", q->plot);
    if (!q->output)
        sm_report_text(r, "'measure -o FILE.json' writes what --system and --calibration read.");
}
