/* matmul: a sharded einsum on a mesh: what must be communicated, every way to do it with its price,
 * and the best. */
#include "matmul_rank.h"
#include "matmul_words.h"
#include "mesh_input.h"
#include "scalemodel/answer.h"
#include "scalemodel/page.h"
#include "scalemodel/lowering.h"
#include "verbs.h"
#include <math.h>
#include <string.h>

typedef struct matmul_options {
    const char *on, *mesh, *dims;
    sm_dtype compute;
    int64_t top;
    cli_calibration_values constants;
} matmul_options;
#define AT(member) offsetof(matmul_options, member)

static const cli_option matmul_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM", .help = "the chips: tpu-v5e:4x4, h100-sxm:128x8, ..."},
    {"mesh", 0, CLI_TEXT, AT(mesh), "MESH", .help = "named axes: X=4,Y=4; X=4@0 places by level",
     .required = true},
    {"dims", 0, CLI_TEXT, AT(dims), "SIZES", .help = "sizes of the indices: I=1024,J=4k,K=8k"},
    {"compute", 0, CLI_DTYPE, AT(compute), "DTYPE", .help = "multiply in this type",
     .default_says = "the wider one of the operands"},
    {"top", 0, CLI_WHOLE, AT(top), "N",
     .help = "alternatives to show; the JSON has all when it is not given", .lowest = 1,
     .highest = CLI_MOST_ALTERNATIVES, .by_default = "8"},
    CLI_CALIBRATION_OPTIONS(matmul_options, constants),
    {.name = NULL},
};

typedef struct question {
    cli_mesh m;
    sm_einsum einsum;
    sm_dtype compute;
    const sm_calibration *calibration;
    int64_t top, in_json; /* alternatives on the page, and in the JSON answer */
} question;

/* ---- reading ---- */

static sm_dtype operands_dtype(const sm_einsum *einsum) {
    sm_dtype dtypes[SM_MAX_OPERANDS];
    for (int i = 0; i < einsum->operands; i++) dtypes[i] = einsum->in[i].dtype;
    return sm_compute_dtype(dtypes, einsum->operands);
}

static sm_status read_einsum(const cli_call *call, question *q, sm_error *err) {
    const matmul_options *options = call->values;
    sm_source source = sm_source_of("EINSUM", call->positional[0]);
    sm_status status = sm_einsum_parse(&source, &q->m.mesh, &q->einsum, err);
    if (!status) status = sm_einsum_infer_output(&q->einsum, &source, err);
    if (!status && options->dims) {
        sm_source dims = sm_source_of("--dims", options->dims);
        status = sm_dims_parse(&dims, &q->einsum, err);
    }
    if (!status) status = sm_einsum_check(&q->einsum, &q->m.mesh, &source, err);
    return status;
}

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const matmul_options *options = call->values;
    sm_status status = cli_mesh_read(call, options->on, options->mesh, "X", &q->m, err);
    if (!status) status = read_einsum(call, q, err);
    if (!status)
        status = cli_operation_calibration(call, &q->m.system.chip, &options->constants,
                                           &q->calibration, err);
    if (status) return status;
    bool given = cli_given(call, &options->compute);
    q->compute = given ? options->compute : operands_dtype(&q->einsum);
    q->top = options->top;
    q->in_json = cli_given(call, &options->top) ? q->top : CLI_MOST_ALTERNATIVES;
    return SM_OK;
}

/* ---- JSON ---- */

static const char *output_of(sm_report *r, const question *q, const sm_lowering *lowering) {
    char text[256];
    sm_array_format(&lowering->out, &q->einsum, &q->m.mesh, text, sizeof text);
    return sm_textf(r, "%s", text);
}

static void put_step(sm_report *r, sm_data *steps, const question *q, const cli_alternative *a,
                     int s) {
    const sm_step *step = &a->lowering.step[s];
    const sm_lowering_step_cost *cost = &a->cost.step[s];
    sm_data *object = sm_put_object(r, steps, NULL);
    const char *op = step->kind == SM_STEP_EINSUM  ? "einsum"
                     : step->kind == SM_STEP_SLICE ? "slice"
                                                   : sm_collective_name(step->op);
    sm_put_text(r, object, "op", op);
    if (step->kind == SM_STEP_EINSUM) {
        sm_put(r, object, "flops", step->flops);
        sm_put(r, object, "bytes", step->local_bytes);
    } else {
        sm_put_text(r, object, "array", cli_array_name(r, &q->einsum, step->array));
        sm_put_text(r, object, "axes", cli_axes(r, &q->m.mesh, step->axes));
        sm_put(r, object, "bytes", step->bytes);
        if (step->to >= 0) sm_put_text(r, object, "onto", q->einsum.index[step->to].name);
    }
    if (cost->algorithm) {
        sm_put_text(r, object, "algorithm", cost->algorithm);
        sm_put(r, object, "bytes_busiest_link", cost->bytes_busiest_link);
        sm_put_text(r, object, "bound", cost->latency_bound ? "latency" : "bandwidth");
    }
    sm_put(r, object, "lower_s", cost->lower_s);
    sm_put(r, object, "time_s", cost->expected_s);
    if (s == a->cost.overlapped) sm_put_bool(r, object, "overlapped", true);
}

static const char *bound_of(const sm_lowering_cost *cost) {
    if (cost->network_s >= cost->math_s && cost->network_s >= cost->memory_s) return "network";
    return cost->math_s >= cost->memory_s ? "compute" : "memory";
}

static void put_alternative(sm_report *r, sm_data *object, const question *q,
                            const cli_alternative *a) {
    const sm_lowering_cost *cost = &a->cost;
    sm_put_text(r, object, "output", output_of(r, q, &a->lowering));
    sm_data *steps = sm_put_array(r, object, "steps");
    for (int s = 0; s < a->lowering.steps; s++) put_step(r, steps, q, a, s);
    sm_put_bool(r, object, "overlapped", cost->overlapped >= 0);
    sm_put(r, object, "flops_per_chip", a->lowering.flops_per_chip);
    sm_put(r, object, "peak_bytes_per_chip", a->lowering.peak_bytes);
    sm_data *time = sm_put_object(r, object, "time_s");
    sm_put(r, time, "math", cost->math_s);
    sm_put(r, time, "memory", cost->memory_s);
    sm_put(r, time, "network", cost->network_s);
    sm_put(r, time, "lower", cost->lower_s);
    sm_put(r, time, "expected", cost->expected_s);
    sm_put(r, time, "upper", cost->upper_s);
    sm_put_text(r, object, "bound", bound_of(cost));
}

/* ---- the page ---- */

static void step_rows(sm_report *r, const question *q, const cli_alternative *a) {
    sm_table *table = sm_page_table(r, NULL, "<step|>bytes|>lower|>expected|<");
    for (int s = 0; s < a->lowering.steps; s++) {
        const sm_step *step = &a->lowering.step[s];
        const sm_lowering_step_cost *cost = &a->cost.step[s];
        bool slice = step->kind == SM_STEP_SLICE;
        double bytes = step->kind == SM_STEP_EINSUM ? step->local_bytes : step->bytes;
        const char *note = cost->algorithm ? cost->algorithm : "";
        if (step->kind == SM_STEP_EINSUM)
            note = sm_textf(r, "%s FLOPs", sm_show_count(r, step->flops));
        if (s == a->cost.overlapped)
            note = sm_textf(r, "inside the einsum, %d chunks", a->cost.chunks);
        sm_page_row(r, table, cli_step_words(r, &q->einsum, &q->m.mesh, step),
                    slice ? "-" : sm_show_bytes(r, bytes),
                    slice ? "-" : sm_show_seconds(r, cost->lower_s),
                    slice ? "-" : sm_show_seconds(r, cost->expected_s), note);
    }
    sm_report_table(r, table);
}

static void total_rows(sm_report *r, const cli_alternative *a) {
    const sm_lowering_cost *cost = &a->cost;
    sm_table *table = sm_page_table(r, NULL, "<per chip|>value|<");
    sm_page_row(r, table, "FLOPs", sm_show_count(r, a->lowering.flops_per_chip), "");
    sm_page_row(r, table, "math", sm_show_seconds(r, cost->math_s), "at the datasheet peak");
    sm_page_row(r, table, "memory", sm_show_seconds(r, cost->memory_s),
                "at the datasheet bandwidth");
    sm_page_row(r, table, "network", sm_show_seconds(r, cost->network_s),
                "collectives at datasheet bandwidth");
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, cost->lower_s),
                "the largest of the three");
    sm_page_row(r, table, "expected", sm_show_seconds(r, cost->expected_s),
                cost->overlapped < 0 ? "the steps one after the other"
                                     : "one collective inside the einsum");
    sm_page_row(r, table, "upper bound", sm_show_seconds(r, cost->upper_s),
                "nothing overlaps, with efficiency");
    sm_page_row(r, table, "peak memory", sm_show_bytes(r, a->lowering.peak_bytes),
                "of the arrays alive at once");
    sm_report_table(r, table);
    sm_report_text(r, "Bound by %s.", bound_of(cost));
}

static void alternative_rows(sm_report *r, const question *q, const cli_ranking *found) {
    bool free_output = !q->einsum.out_sharding_given;
    sm_table *table = sm_page_table(r, "Alternatives, cheapest first",
                                    free_output ? ">lower|>expected|>upper|>memory|<output|<steps"
                                                : ">lower|>expected|>upper|>memory|<steps");
    int shown = found->n < q->top ? found->n : (int)q->top;
    for (int i = 0; i < shown; i++) {
        const cli_alternative *a = found->kept[i];
        const char *words =
            cli_lowering_words(r, &q->einsum, &q->m.mesh, &a->lowering, a->cost.overlapped);
        const char *cells[] = {sm_show_seconds(r, a->cost.lower_s),
                               sm_show_seconds(r, a->cost.expected_s),
                               sm_show_seconds(r, a->cost.upper_s),
                               sm_show_bytes(r, a->lowering.peak_bytes),
                               free_output ? output_of(r, q, &a->lowering) : words,
                               words};
        sm_page_cells(r, table, cells);
    }
    sm_report_table(r, table);
    if (found->n > shown) sm_report_text(r, "%d more; --top N shows them.", found->n - shown);
}

/* ---- the derivation ---- */

/* A collective with what makes its bound; its expected time adds latency and efficiency. */
static sm_why *why_collective(sm_report *r, const question *q, const cli_alternative *a, int s) {
    const sm_step *step = &a->lowering.step[s];
    const sm_lowering_step_cost *cost = &a->cost.step[s];
    const char *words = cli_step_words(r, &q->einsum, &q->m.mesh, step);
    sm_why *node =
        sm_page_why(r, words, "bytes on the busiest link / its rate", cost->lower_s, "s");
    sm_page_leaf(r, node, "bytes of the whole array of one group", step->bytes, "B", "sizes given");
    sm_page_leaf(r, node, "bytes on the busiest link", cost->bytes_busiest_link, "B",
                 cost->algorithm);
    return node;
}

static sm_why *why_lower(sm_report *r, const question *q, const cli_alternative *a) {
    const sm_chip *chip = &q->m.system.chip;
    sm_dtype used = q->compute;
    double peak = sm_chip_peak(chip, q->compute, &used);
    sm_why *lower =
        sm_page_why(r, "lower bound", "max(math, memory, network)", a->cost.lower_s, "s");
    sm_why *math = sm_page_why(r, "math", "FLOPs per chip / peak", a->cost.math_s, "s");
    sm_page_leaf(r, math, "FLOPs per chip", a->lowering.flops_per_chip, "FLOP",
                 "2 x product of the local sizes");
    if (peak > 0.0)
        sm_page_fact(r, math, sm_textf(r, "peak in %s", sm_dtype_name(used)),
                     &chip->flops_per_s[used], "FLOP/s");
    sm_why *memory =
        sm_page_why(r, "memory", "bytes of the local arrays / bandwidth", a->cost.memory_s, "s");
    sm_page_fact(r, memory, "memory bandwidth", &chip->memory_bytes_per_s, "B/s");
    sm_why *network = sm_page_why(r, "network", "sum over the collectives", a->cost.network_s, "s");
    for (int s = 0; s < a->lowering.steps; s++)
        if (a->lowering.step[s].kind == SM_STEP_COLLECTIVE)
            sm_why_add(network, why_collective(r, q, a, s));
    sm_why_add(lower, math);
    sm_why_add(lower, memory);
    sm_why_add(lower, network);
    return lower;
}

static void explain(sm_report *r, const question *q, const cli_alternative *a) {
    const char *formula = cli_cost_formula(r, &a->cost);
    r->why = sm_page_why(r, "expected", formula, a->cost.expected_s, "s");
    for (int s = 0; s < a->lowering.steps; s++)
        sm_page_leaf(r, r->why, cli_step_words(r, &q->einsum, &q->m.mesh, &a->lowering.step[s]),
                     a->cost.step[s].expected_s, "s", "whole, with latency and efficiency");
    sm_why_add(r->why, why_lower(r, q, a));
}

/* ---- the verb ---- */

static void show_best(sm_report *r, const question *q, const cli_alternative *best) {
    sm_report_heading(r, "Best: %s, %s expected", output_of(r, q, &best->lowering),
                      sm_show_seconds(r, best->cost.expected_s));
    for (int a = 0; a < q->m.mesh.axes; a++)
        sm_report_text(r, "%s", cli_axis_words(r, &q->einsum, &q->m.mesh, &best->lowering, a));
    step_rows(r, q, best);
    total_rows(r, best);
}

static void show(const cli_call *call, sm_report *r, const question *q, const cli_ranking *found) {
    const cli_alternative *best = found->kept[0];
    char text[512];
    sm_einsum_format(&q->einsum, &q->m.mesh, text, sizeof text);
    sm_put_text(r, r->data, "command", "matmul");
    sm_put_text(r, r->data, "einsum", text);
    cli_mesh_fields(r, &q->m);
    put_alternative(r, sm_put_object(r, r->data, "best"), q, best);
    sm_data *alternatives = sm_put_array(r, r->data, "alternatives");
    for (int i = 0; i < found->n && i < q->in_json; i++)
        put_alternative(r, sm_put_object(r, alternatives, NULL), q, found->kept[i]);
    sm_report_text(r, "%s on %s", text, q->m.system.text);
    cli_mesh_page(r, &q->m);
    show_best(r, q, best);
    alternative_rows(r, q, found);
    if (call->common.explain) explain(r, q, best);
}

/* That there is no way is an answer too. */
static void show_none(sm_report *r, const question *q, const sm_error *why) {
    const char *sentence =
        why->sentence[0] ? why->sentence : "no assignment of the mesh axes divides these sizes";
    sm_put_text(r, r->data, "command", "matmul");
    cli_mesh_fields(r, &q->m);
    sm_put(r, r->data, "best", NAN);
    sm_put_array(r, r->data, "alternatives");
    sm_put_text(r, r->data, "reason", sentence);
    sm_report_text(r, "There is no way: %s.", sentence);
}

static sm_status run_matmul(const cli_call *call, sm_report *r, sm_error *err) {
    question q = {.top = 0};
    sm_status status = read_question(call, &q, err);
    if (status) return status;
    sm_lowering_input input = {&q.m.system, &q.m.mesh,     &q.m.placement,
                               &q.einsum,   q.calibration, q.compute};
    cli_ranking found;
    sm_error none = {.status = SM_OK};
    status = cli_rank_lowerings(&input, call->arena, &found, &none);
    if (status > SM_NEGATIVE) {
        *err = none;
        return status;
    }
    if (status == SM_NEGATIVE || found.n == 0) {
        show_none(r, &q, &none);
        return SM_NEGATIVE;
    }
    show(call, r, &q, &found);
    return SM_OK;
}

const cli_verb cli_matmul = {
    .name = "matmul",
    .summary = "a sharded einsum: its collectives, every alternative, the best",
    .arguments = "EINSUM",
    .least = 1,
    .most = 1,
    .options = matmul_table,
    .values_bytes = sizeof(matmul_options),
    .notes = "example: scalemodel matmul 'A[I_X,J] B[J_X,K_Y] -> C[I_X,K_Y]' --mesh X=4,Y=4 \\\n"
             "           --dims I=8192,J=8192,K=8192 --on tpu-v5e:4x4\n",
    .run = run_matmul,
};
