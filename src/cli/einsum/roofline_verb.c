/* roofline: an einsum on one chip: FLOPs, bytes, intensity, what bounds it, and from which size on.
 */
#include "scalemodel/answer.h"
#include "scalemodel/page.h"
#include "scalemodel/cost.h"
#include "sweep.h"
#include "verbs.h"
#include <math.h>
#include <string.h>

typedef struct roofline_options {
    const char *on, *dims;
    sm_dtype compute;
    unsigned level; /* of level_names */
    cli_list critical;
    cli_calibration_values constants;
} roofline_options;
#define AT(member) offsetof(roofline_options, member)

static const char *const level_names[] = {"hbm", "memory", "vmem", "l2", "onchip", "pcie", "host"};
static const sm_memory_level levels[] = {SM_MEMORY_HBM,    SM_MEMORY_HBM,    SM_MEMORY_ONCHIP,
                                         SM_MEMORY_ONCHIP, SM_MEMORY_ONCHIP, SM_MEMORY_HOST,
                                         SM_MEMORY_HOST};
enum { LEVELS = sizeof levels / sizeof *levels };

static const cli_option roofline_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "CHIP", .help = "the chip: a name of the catalogue"},
    {"dims", 0, CLI_TEXT, AT(dims), "SIZES",
     .help = "sizes of the indices: B=128,D=4k; B=1..4096 doubles, B=64..4096:64 steps"},
    {"compute", 0, CLI_DTYPE, AT(compute), "DTYPE", .help = "multiply in this type",
     .default_says = "the wider one of the operands"},
    {"critical", 0, CLI_LIST, AT(critical), "INDEX",
     .help = "the size of this index at which math and memory take equally long; may be repeated"},
    {"level", 0, CLI_CHOICE, AT(level), "LEVEL",
     .help = "where the arrays live, by the chip's name for it or the general one",
     .words = {level_names, LEVELS}, .by_default = "hbm"},
    CLI_CALIBRATION_OPTIONS(roofline_options, constants),
    {.name = NULL},
};

/* Everything that one question is about. */
typedef struct question {
    sm_system system;
    const sm_calibration *calibration;
    sm_einsum einsum;
    cli_sweep sweep;
    sm_memory_level level;
    bool compute_given;
    sm_dtype compute;
    int criticals, critical[CLI_MAX_LIST];
    double solved[CLI_MAX_LIST];      /* NaN: no size does it */
    const char *reason[CLI_MAX_LIST]; /* then why */
    int open; /* the index without a size, asked for by --critical; -1 if none */
} question;

static const sm_dtype *compute_of(const question *q) {
    return q->compute_given ? &q->compute : NULL;
}

/* ---- reading ---- */

/* The size of one index may be left open, since it is what is asked for; 1 completes the notation.
 */
static void fill_open(question *q, int index) {
    q->open = index;
    q->einsum.index[index].size = 1.0;
}

static sm_status find_critical(question *q, const char *name, sm_error *err) {
    const char *names[SM_MAX_INDICES];
    for (int i = 0; i < q->einsum.indices; i++) {
        names[i] = q->einsum.index[i].name;
        if (strcmp(names[i], name) == 0) {
            q->critical[q->criticals++] = i;
            if (q->einsum.index[i].size <= 0.0 && q->open < 0) fill_open(q, i);
            return SM_OK;
        }
    }
    sm_source source = sm_source_of("--critical", name);
    const char *near = sm_nearest(name, source.length, names, (size_t)q->einsum.indices);
    return sm_fail_at(err, &source, (sm_span){0, source.length},
                      "no array has an index '%.40s'%s%s%s", name, near ? "; did you mean " : "",
                      near ? near : "", near ? "?" : "");
}

static sm_status read_notation(const cli_call *call, question *q, sm_error *err) {
    const roofline_options *options = call->values;
    sm_source source = sm_source_of("EINSUM", call->positional[0]);
    sm_status status = sm_einsum_parse(&source, NULL, &q->einsum, err);
    if (!status) status = sm_einsum_infer_output(&q->einsum, &source, err);
    if (!status) status = cli_sweep_parse(options->dims, call->arena, &q->einsum, &q->sweep, err);
    for (int i = 0; i < options->critical.n && !status; i++)
        status = find_critical(q, options->critical.text[i], err);
    if (!status) status = sm_einsum_check(&q->einsum, NULL, &source, err);
    return status;
}

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const roofline_options *options = call->values;
    sm_status status = cli_system(call, options->on, &q->system, err);
    if (!status)
        status = cli_operation_calibration(call, &q->system.chip, &options->constants,
                                           &q->calibration, err);
    q->level = levels[options->level];
    q->compute = options->compute;
    q->compute_given = cli_given(call, &options->compute);
    return status ? status : read_notation(call, q, err);
}

/* ---- solving ---- */

/* That no size balances the two is an answer: NaN, with the reason. */
static sm_status solve_critical(question *q, int i, sm_report *r, sm_error *err) {
    sm_error none = {.status = SM_OK};
    sm_status status = sm_roofline_critical(&q->system.chip, &q->einsum, q->level, compute_of(q),
                                            q->critical[i], &q->solved[i], &none);
    if (status == SM_NEGATIVE) {
        q->solved[i] = NAN;
        q->reason[i] = sm_textf(r, "%s", none.sentence);
    } else if (status) {
        *err = none;
    }
    return status;
}

static sm_status solve_criticals(question *q, sm_report *r, bool *negative, sm_error *err) {
    for (int i = 0; i < q->criticals; i++) {
        sm_status status = solve_critical(q, i, r, err);
        if (status > SM_NEGATIVE) return status;
        if (status == SM_NEGATIVE) *negative = true;
    }
    return SM_OK;
}

/* An open size is shown at the first whole size past its critical one. */
static void settle_open(question *q) {
    for (int i = 0; i < q->criticals; i++)
        if (q->critical[i] == q->open && !isnan(q->solved[i]))
            q->einsum.index[q->open].size = ceil(q->solved[i]);
}

/* The size was left open, and none answers: there is no point to show. */
static bool is_unanswerable(const question *q) {
    for (int i = 0; i < q->criticals; i++)
        if (q->critical[i] == q->open && isnan(q->solved[i])) return true;
    return false;
}

/* ---- the page ---- */

static const char *bound_of(const sm_roofline *point) {
    return point->compute_bound ? "compute" : "memory";
}

static const char *level_title(const question *q) {
    if (q->level == SM_MEMORY_HOST) return "PCIe";
    if (q->level == SM_MEMORY_ONCHIP)
        return q->system.chip.fabric == SM_FABRIC_TORUS ? "VMEM" : "L2";
    return "memory";
}

static const char *show_einsum(sm_report *r, const sm_einsum *einsum) {
    char text[512];
    sm_einsum_format(einsum, NULL, text, sizeof text);
    return sm_textf(r, "%s", text);
}

static bool has_index(const sm_array *array, int index) {
    for (int d = 0; d < array->rank; d++)
        if (array->dim[d].index == index) return true;
    return false;
}

/* Every index stands in all operands and in the output: the vector unit does the work. */
static bool is_elementwise(const sm_einsum *einsum) {
    for (int i = 0; i < einsum->indices; i++) {
        bool everywhere = has_index(&einsum->out, i);
        for (int o = 0; o < einsum->operands; o++)
            everywhere = everywhere && has_index(&einsum->in[o], i);
        if (!everywhere) return false;
    }
    return true;
}

static bool on_vector_unit(const question *q) {
    return is_elementwise(&q->einsum) && q->system.chip.vector_flops_per_s.value > 0.0;
}

static const char *unit_words(sm_report *r, const question *q, const sm_roofline *point) {
    if (on_vector_unit(q)) return "on the vector unit";
    return sm_textf(r, "in %s", sm_dtype_name(point->compute));
}

static void put_point(sm_report *r, sm_data *object, const sm_roofline *point) {
    sm_put(r, object, "flops", point->flops);
    sm_put(r, object, "bytes", point->bytes);
    sm_put(r, object, "intensity", point->intensity);
    sm_data *time = sm_put_object(r, object, "time_s");
    sm_put(r, time, "math", point->math_s);
    sm_put(r, time, "memory", point->memory_s);
    sm_put(r, time, "lower", point->lower_s);
    sm_put(r, time, "expected", point->expected_s);
    sm_put(r, time, "upper", point->upper_s);
    sm_put_text(r, object, "bound", bound_of(point));
}

static void point_rows(sm_report *r, const question *q, const sm_roofline *point) {
    double ridge = point->peak_flops_per_s / point->bytes_per_s;
    sm_table *table = sm_page_table(r, NULL, "<quantity|>value|<");
    sm_page_row(r, table, "FLOPs", sm_show_count(r, point->flops), "");
    sm_page_row(r, table, "bytes", sm_show_bytes(r, point->bytes),
                "each array once, in its own type");
    sm_page_row(r, table, "intensity",
                sm_textf(r, "%s FLOP/B", sm_show_number(r, point->intensity)),
                sm_textf(r, "the chip turns at %s", sm_show_number(r, ridge)));
    sm_page_row(r, table, "math", sm_show_seconds(r, point->math_s),
                sm_textf(r, "at %s %s", sm_show_rate(r, point->peak_flops_per_s, "FLOP/s"),
                         unit_words(r, q, point)));
    sm_page_row(
        r, table, "memory", sm_show_seconds(r, point->memory_s),
        sm_textf(r, "at %s from %s", sm_show_rate(r, point->bytes_per_s, "B/s"), level_title(q)));
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, point->lower_s),
                "math and memory overlap fully");
    sm_page_row(r, table, "expected", sm_show_seconds(r, point->expected_s),
                "with tiles, efficiency and launch");
    sm_page_row(r, table, "upper bound", sm_show_seconds(r, point->upper_s), "nothing overlaps");
    sm_report_table(r, table);
    sm_report_text(r, "Bound by %s.", point->compute_bound ? "compute" : "memory");
}

static void critical_rows(sm_report *r, const question *q) {
    sm_data *object = q->criticals ? sm_put_object(r, r->data, "critical") : NULL;
    for (int i = 0; i < q->criticals; i++) {
        const char *name = q->einsum.index[q->critical[i]].name;
        sm_put(r, object, name, q->solved[i]);
        if (isnan(q->solved[i])) sm_report_text(r, "Critical %s: %s.", name, q->reason[i]);
        else
            sm_report_text(r, "Critical %s = %s: math and memory take equally long there.", name,
                           sm_textf(r, "%.6g", q->solved[i]));
    }
}

/* ---- the derivation ---- */

static void why_sizes(sm_report *r, sm_why *parent, const sm_einsum *einsum) {
    for (int i = 0; i < einsum->indices; i++)
        if (!einsum->index[i].literal)
            sm_page_given(r, parent, einsum->index[i].name, einsum->index[i].size, "");
}

static sm_why *why_array(sm_report *r, const sm_einsum *einsum, const sm_array *array) {
    char text[256];
    sm_array_format(array, einsum, NULL, text, sizeof text);
    double elements = sm_array_elements(array, einsum), each = sm_dtype_bytes(array->dtype);
    sm_why *node =
        sm_page_why(r, sm_textf(r, "%s", text), "elements x bytes of one", elements * each, "B");
    sm_page_leaf(r, node, "elements", elements, "", "sizes given");
    sm_page_leaf(r, node, sm_dtype_name(array->dtype), each, "B", "data type");
    return node;
}

static sm_why *why_bytes(sm_report *r, const sm_einsum *einsum, const sm_roofline *point) {
    sm_why *bytes =
        sm_page_why(r, "bytes moved", "sum over the arrays, each once", point->bytes, "B");
    for (int i = 0; i < einsum->operands; i++)
        sm_why_add(bytes, why_array(r, einsum, &einsum->in[i]));
    sm_why_add(bytes, why_array(r, einsum, &einsum->out));
    return bytes;
}

static const sm_fact *bandwidth_fact(const question *q) {
    if (q->level == SM_MEMORY_HOST) return &q->system.chip.pcie_bytes_per_s_oneway;
    if (q->level == SM_MEMORY_ONCHIP) return &q->system.chip.onchip_bytes_per_s;
    return &q->system.chip.memory_bytes_per_s;
}

static sm_why *why_matmul(sm_report *r, const sm_calibration *c, const sm_roofline *point) {
    bool narrow = sm_dtype_bytes(point->compute) <= 1.0;
    sm_why *node = sm_page_why(
        r, "expected",
        "max(math / (efficiency x tiles x k / (k + half k)), memory / efficiency) + launch",
        point->expected_s, "s");
    sm_page_leaf(r, node, "matmul efficiency",
                 narrow ? c->matmul_efficiency_fp8 : c->matmul_efficiency, "", c->source);
    sm_page_leaf(r, node, "half k: contraction at half efficiency", c->matmul_half_k, "",
                 "calibration");
    return node;
}

static sm_why *why_expected(sm_report *r, const question *q, const sm_roofline *point) {
    const sm_calibration *c = q->calibration;
    sm_why *node = on_vector_unit(q)
                       ? sm_page_why(r, "expected", "max(math, memory / efficiency) + launch",
                                     point->expected_s, "s")
                       : why_matmul(r, c, point);
    sm_page_leaf(r, node, "memory efficiency", c->memory_efficiency, "", "calibration");
    sm_page_leaf(r, node, "launch", c->launch_s, "s", "calibration");
    return node;
}

static void explain(sm_report *r, const question *q, const sm_roofline *point) {
    const sm_chip *chip = &q->system.chip;
    const sm_fact *peak =
        on_vector_unit(q) ? &chip->vector_flops_per_s : &chip->flops_per_s[point->compute];
    sm_why *time = sm_page_why(r, "lower bound", "max(math, memory)", point->lower_s, "s");
    sm_why *math = sm_page_why(r, "math", "FLOPs / peak", point->math_s, "s");
    sm_why *flops =
        sm_page_why(r, "FLOPs", "2 x product of all indices, each once", point->flops, "FLOP");
    why_sizes(r, flops, &q->einsum);
    sm_why_add(math, flops);
    sm_page_fact(r, math, sm_textf(r, "peak %s", unit_words(r, q, point)), peak, "FLOP/s");
    sm_why *memory = sm_page_why(r, "memory", "bytes / bandwidth", point->memory_s, "s");
    sm_why_add(memory, why_bytes(r, &q->einsum, point));
    sm_page_fact(r, memory, sm_textf(r, "bandwidth of %s", level_title(q)), bandwidth_fact(q),
                 "B/s");
    sm_why_add(time, math);
    sm_why_add(time, memory);
    r->why = why_expected(r, q, point);
    sm_why_add(r->why, time);
    for (int i = 0; i < q->criticals; i++)
        if (!isnan(q->solved[i]))
            sm_why_add(r->why,
                       sm_page_why(
                           r, sm_textf(r, "critical %s", q->einsum.index[q->critical[i]].name),
                           "the size at which FLOPs / peak = bytes / bandwidth", q->solved[i], ""));
}

/* ---- one point or many ---- */

static sm_status price(const question *q, const sm_einsum *einsum, sm_roofline *point,
                       sm_error *err) {
    return sm_roofline_under(&q->system.chip, q->calibration, einsum, q->level, compute_of(q),
                             point, err);
}

static sm_status show_sweep(sm_report *r, question *q, sm_error *err) {
    const char *heads = "";
    for (int i = 0; i < q->sweep.ranges; i++)
        heads = sm_textf(r, "%s>%s|", heads, q->einsum.index[q->sweep.range[i].index].name);
    heads = sm_textf(r, "%s>FLOPs|>bytes|>FLOP/B|>math|>memory|>lower|>expected|<bound", heads);
    sm_table *table = sm_page_table(r, NULL, heads);
    sm_data *points = sm_put_array(r, r->data, "points");
    for (int p = 0; p < q->sweep.points; p++) {
        cli_sweep_point(&q->sweep, p, &q->einsum);
        sm_roofline at;
        sm_status status = price(q, &q->einsum, &at, err);
        if (status) return status;
        sm_data *object = sm_put_object(r, points, NULL);
        sm_data *dims = sm_put_object(r, object, "dims");
        const char *cells[SM_PAGE_COLUMNS];
        int n = 0;
        for (int i = 0; i < q->sweep.ranges; i++) {
            const sm_index *index = &q->einsum.index[q->sweep.range[i].index];
            sm_put(r, dims, index->name, index->size);
            cells[n++] = sm_show_exact(r, index->size);
        }
        put_point(r, object, &at);
        cells[n++] = sm_show_count(r, at.flops);
        cells[n++] = sm_show_bytes(r, at.bytes);
        cells[n++] = sm_show_number(r, at.intensity);
        cells[n++] = sm_show_seconds(r, at.math_s);
        cells[n++] = sm_show_seconds(r, at.memory_s);
        cells[n++] = sm_show_seconds(r, at.lower_s);
        cells[n++] = sm_show_seconds(r, at.expected_s);
        cells[n++] = bound_of(&at);
        sm_page_cells(r, table, cells);
    }
    sm_report_table(r, table);
    return SM_OK;
}

static sm_status show_point(const cli_call *call, sm_report *r, const question *q, sm_error *err) {
    sm_roofline point;
    sm_status status = price(q, &q->einsum, &point, err);
    if (status) return status;
    put_point(r, r->data, &point);
    if (q->open >= 0) {
        const sm_index *index = &q->einsum.index[q->open];
        sm_report_text(r, "At %s = %s:", index->name, sm_show_exact(r, index->size));
    }
    point_rows(r, q, &point);
    if (call->common.explain) explain(r, q, &point);
    return SM_OK;
}

static sm_status run_roofline(const cli_call *call, sm_report *r, sm_error *err) {
    question q = {.level = SM_MEMORY_HBM, .open = -1};
    bool negative = false;
    sm_status status = read_question(call, &q, err);
    if (!status) status = solve_criticals(&q, r, &negative, err);
    if (status) return status;
    settle_open(&q);
    sm_put_text(r, r->data, "command", "roofline");
    sm_put_text(r, r->data, "einsum", show_einsum(r, &q.einsum));
    sm_put_text(r, r->data, "chip", q.system.chip.name);
    sm_report_heading(r, "%s on %s", show_einsum(r, &q.einsum), q.system.chip.name);
    if (q.sweep.ranges && call->common.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one answer: give sizes without ranges");
    if (q.sweep.ranges) status = show_sweep(r, &q, err);
    else if (!is_unanswerable(&q)) status = show_point(call, r, &q, err);
    if (status) return status;
    critical_rows(r, &q);
    return negative ? SM_NEGATIVE : SM_OK;
}

const cli_verb cli_roofline = {
    .name = "roofline",
    .summary = "an einsum on one chip: FLOPs, bytes, times, bound, critical size",
    .arguments = "EINSUM",
    .least = 1,
    .most = 1,
    .options = roofline_table,
    .values_bytes = sizeof(roofline_options),
    .notes = "example: scalemodel roofline 'bf16[B,D] int8[D,F] -> bf16[B,F]' --on tpu-v5e \\\n"
             "           --dims D=4096,F=4096 --critical B\n",
    .run = run_roofline,
};
