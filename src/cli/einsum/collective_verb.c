/* collective: the time of one collective on a mesh, algorithm by algorithm. */
#include "mesh_input.h"
#include "scalemodel/page.h"
#include "scalemodel/cost.h"
#include "sweep.h"
#include "verbs.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

typedef struct collective_options {
    const char *over, *dims, *mesh, *on, *ragged;
    int64_t top_k, expert_groups;
    cli_calibration_values constants;
} collective_options;
#define AT(member) offsetof(collective_options, member)

static const cli_option collective_table[] = {
    {"on", 0, CLI_TEXT, AT(on), "SYSTEM", .help = "the chips: tpu-v5e:8x4, h100-sxm:128x8, ..."},
    {"mesh", 0, CLI_TEXT, AT(mesh), "MESH",
     .help = "named axes: X=8,Y=4; without it one axis covers the system"},
    {"over", 0, CLI_TEXT, AT(over), "AXES", .help = "the axes to communicate over: Y, XY"},
    {"dims", 0, CLI_TEXT, AT(dims), "SIZES",
     .help = "sizes of the indices: E=2048,F=8k; ranges sweep"},
    {"ragged", 0, CLI_TEXT, AT(ragged), "FRACTION",
     .help = "all-to-all: the part of the bytes that really moves, 0.5 or 4/8"},
    {"top-k", 0, CLI_WHOLE, AT(top_k), "K", .help = "all-to-all of tokens routed to K experts each",
     .lowest = 1, .highest = 1 << 20},
    {"expert-groups", 0, CLI_WHOLE, AT(expert_groups), "Z",
     .help = "with --top-k: groups the experts are spread over", .lowest = 1, .highest = 1 << 20,
     .default_says = "the members"},
    CLI_CALIBRATION_OPTIONS(collective_options, constants),
    {.name = NULL},
};

/* Everything that one question is about. */
typedef struct question {
    cli_mesh m;
    sm_collective op;
    bool has_array;
    sm_einsum holder; /* the array is holder.in[0] */
    sm_source array;
    cli_sweep sweep;      /* of the sizes */
    cli_range byte_range; /* of bytes given directly */
    int points;
    double bytes; /* given directly */
    sm_axes over;
    sm_group group;
    double ragged;
    const sm_calibration *calibration;
    sm_curve curve;
} question;

/* ---- reading ---- */

/* "1kB..1GB": bytes that double from the first size to the last. */
static sm_status read_byte_range(question *q, size_t dots, sm_error *err) {
    const sm_source *source = &q->array;
    sm_span first = {0, dots}, last = {dots + 2, source->length - dots - 2};
    double low = 0.0, high = 0.0;
    sm_status status = sm_quantity_parse(source, first, SM_Q_BYTES, &low, err);
    if (!status) status = sm_quantity_parse(source, last, SM_Q_BYTES, &high, err);
    if (status) return status;
    if (low < 1.0 || high < low || high > 9e15)
        return sm_fail_at(err, source, (sm_span){0, source->length},
                          "a range of bytes is written SMALL..LARGE, from 1B");
    q->byte_range = (cli_range){.first = (int64_t)low, .last = (int64_t)high, .step = 0};
    q->points = cli_range_points(&q->byte_range);
    return SM_OK;
}

static sm_status read_bytes(question *q, sm_error *err) {
    const char *dots = strstr(q->array.text, "..");
    if (dots) return read_byte_range(q, (size_t)(dots - q->array.text), err);
    q->points = 1;
    return sm_quantity_parse(&q->array, (sm_span){0, q->array.length}, SM_Q_BYTES, &q->bytes, err);
}

static sm_status read_array(const cli_call *call, question *q, sm_error *err) {
    const collective_options *options = call->values;
    q->array = sm_source_of("ARRAY", call->positional[1]);
    q->has_array = strchr(q->array.text, '[') || !isdigit((unsigned char)q->array.text[0]);
    if (!q->has_array && options->dims)
        return sm_fail(err, SM_USAGE,
                       "--dims needs an array, and here its bytes are given directly");
    if (!q->has_array) return read_bytes(q, err);
    sm_status status = sm_array_parse(&q->array, &q->m.mesh, &q->holder, err);
    if (!status) status = cli_sweep_parse(options->dims, call->arena, &q->holder, &q->sweep, err);
    q->points = q->sweep.points;
    return status;
}

static sm_axes sharding_axes(const sm_array *array) {
    sm_axes axes = 0;
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            axes = (sm_axes)(axes | (1u << array->dim[d].axis[i]));
    return axes;
}

/* Gathering and exchanging need an array that is sharded over the axes; reducing one that is not.
 */
static sm_status check_sharding(const question *q, sm_error *err) {
    const sm_array *array = &q->holder.in[0];
    sm_axes sharded = sharding_axes(array);
    char over[128];
    sm_axes_format(&q->m.mesh, q->over, over, sizeof over);
    bool wants_sharded = q->op == SM_ALL_GATHER || q->op == SM_ALL_TO_ALL;
    bool reduces = q->op == SM_REDUCE_SCATTER || q->op == SM_ALL_REDUCE;
    if (wants_sharded && (q->over & ~sharded))
        return sm_fail_at(err, &q->array, array->span,
                          "%s over %s needs an array sharded over it, as in A[I_%s,J]",
                          sm_collective_name(q->op), over, over);
    if (reduces && (q->over & sharded))
        return sm_fail_at(err, &q->array, array->span,
                          "%s over %s needs partial sums over it, as in A[I,J] {U_%s}, and this "
                          "array is sharded over it",
                          sm_collective_name(q->op), over, over);
    if (reduces && array->unreduced && (q->over & ~array->unreduced))
        return sm_fail_at(err, &q->array, array->span,
                          "the partial sums of this array are not over %s", over);
    return SM_OK;
}

static sm_status read_fraction(const char *text, double *fraction, sm_error *err) {
    sm_source source = sm_source_of("--ragged", text);
    size_t slash = strcspn(text, "/");
    double top = 0.0, bottom = 1.0;
    sm_status status = sm_quantity_parse(&source, (sm_span){0, slash}, SM_Q_COUNT, &top, err);
    if (!status && text[slash])
        status = sm_quantity_parse(&source, (sm_span){slash + 1, source.length - slash - 1},
                                   SM_Q_COUNT, &bottom, err);
    if (status) return status;
    if (!(bottom > 0.0 && top > 0.0 && top <= bottom))
        return sm_fail_at(err, &source, (sm_span){0, source.length},
                          "the part that moves is above 0 and at most 1");
    *fraction = top / bottom;
    return SM_OK;
}

static sm_status read_ragged(const collective_options *options, question *q, sm_error *err) {
    double groups = options->expert_groups ? (double)options->expert_groups : q->group.size;
    q->ragged = 1.0;
    bool any = options->ragged || options->top_k || options->expert_groups;
    if (any && q->op != SM_ALL_TO_ALL)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k are for all-to-all only");
    if (options->ragged && options->top_k)
        return sm_fail(err, SM_USAGE, "--ragged and --top-k exclude each other");
    if (options->expert_groups && !options->top_k)
        return sm_fail(err, SM_USAGE, "--expert-groups needs --top-k");
    if (options->ragged) return read_fraction(options->ragged, &q->ragged, err);
    /* Tokens routed to K experts go once to each group that hosts one of them. */
    if (options->top_k) q->ragged = sm_ragged_fraction(groups, (double)options->top_k);
    return SM_OK;
}

static sm_status read_question(const cli_call *call, question *q, sm_error *err) {
    const collective_options *options = call->values;
    sm_status status = cli_collective_read(call->positional[0], &q->op, err);
    const char *whole = options->over && !strchr(options->over, ',') ? options->over : "X";
    if (!status) status = cli_mesh_read(call, options->on, options->mesh, whole, &q->m, err);
    if (!status && options->mesh) status = cli_need(call, &options->over, err);
    if (!status)
        status = cli_over_parse(&q->m.mesh, options->over ? options->over : whole, &q->over, err);
    if (!status) status = read_array(call, q, err);
    if (!status && q->has_array) status = check_sharding(q, err);
    if (status) return status;
    q->group = sm_group_join(&q->m.placement, q->over);
    status = cli_operation_calibration(call, &q->m.system.chip, &options->constants,
                                       &q->calibration, err);
    if (!status) status = read_ragged(options, q, err);
    if (!status) q->curve = sm_collective_curve(&q->m.system, q->op, &q->group, q->ragged);
    return status;
}

/* ---- one point ---- */

/* V as the cost model wants it: all-gather the size after, reductions the size before, all-to-all
 * what a chip holds times the members; permute and broadcast what a chip holds. */
static double bytes_of(const question *q) {
    double local = sm_array_local_bytes(&q->holder.in[0], &q->holder, &q->m.mesh);
    bool times = q->op == SM_ALL_GATHER || q->op == SM_ALL_TO_ALL;
    return times ? local * q->group.size : local;
}

/* Move to a point of the sweep and give its bytes. */
static sm_status point_bytes(question *q, int point, double *bytes, sm_error *err) {
    if (!q->has_array) {
        bool range = q->byte_range.last > 0;
        *bytes = range ? (double)cli_range_value(&q->byte_range, point) : q->bytes;
        return SM_OK;
    }
    cli_sweep_point(&q->sweep, point, &q->holder);
    sm_status status = sm_einsum_check(&q->holder, &q->m.mesh, &q->array, err);
    if (!status) *bytes = bytes_of(q);
    return status;
}

static sm_collective_cost cost_of(const question *q, double bytes) {
    return sm_curve_cost(&q->curve, &q->m.system, q->calibration, bytes);
}

static const sm_algorithm *book_line(const sm_curve *curve) {
    for (int i = 0; i < curve->n; i++)
        if (curve->algorithm[i].book) return &curve->algorithm[i];
    return NULL;
}

static double line_s(const sm_algorithm *line, double bytes) {
    return sm_line_at(line->line, bytes);
}

static const char *bound_of(const sm_collective_cost *cost) {
    return cost->latency_bound ? "latency" : "bandwidth";
}

static void put_point(sm_report *r, sm_data *object, const question *q, double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    const sm_algorithm *book = book_line(&q->curve);
    sm_put(r, object, "bytes", bytes);
    sm_data *time = sm_put_object(r, object, "time_s");
    sm_put(r, time, "lower", cost.lower_s);
    sm_put(r, time, "expected", cost.expected_s);
    sm_put(r, time, "upper", cost.upper_s);
    sm_put(r, object, "latency_s", cost.latency_s);
    if (book)
        sm_put(r, object, "book_s", fmax(book->line.s_per_byte * bytes, book->line.latency_s));
    sm_put_text(r, object, "bound", bound_of(&cost));
    sm_put(r, object, "bytes_busiest_link", cost.bytes_busiest_link);
    sm_put_text(r, object, "algorithm", cost.algorithm ? cost.algorithm : "none");
}

static void put_algorithms(sm_report *r, sm_data *object, const question *q, double bytes) {
    sm_data *algorithms = sm_put_array(r, object, "algorithms");
    for (int i = 0; i < q->curve.n; i++) {
        const sm_algorithm *line = &q->curve.algorithm[i];
        sm_data *entry = sm_put_object(r, algorithms, NULL);
        sm_put_text(r, entry, "name", line->name);
        sm_put(r, entry, "lower_s", line->line.s_per_byte * bytes);
        sm_put(r, entry, "datasheet_s", line_s(line, bytes));
        sm_put(r, entry, "latency_s", line->line.latency_s);
        sm_put(r, entry, "bytes_busiest_link", line->link_bytes_per_byte * bytes);
        sm_put_text(r, entry, "level", q->m.system.level[line->level].name);
        sm_put_bool(r, entry, "book", line->book);
    }
}

static const char *level_name(sm_report *r, const sm_system *system, int level) {
    bool torus = system->level[level].kind == SM_LEVEL_TORUS;
    return torus ? sm_textf(r, "%s%d", system->level[level].name, level)
                 : system->level[level].name;
}

static void algorithm_rows(sm_report *r, const question *q, double bytes) {
    sm_table *table =
        sm_page_table(r, "Algorithms, at datasheet rates",
                      "<algorithm|>latency|>bytes / rate|>together|>busiest link|<level|<");
    for (int i = 0; i < q->curve.n; i++) {
        const sm_algorithm *line = &q->curve.algorithm[i];
        sm_page_row(r, table, line->name, sm_show_seconds(r, line->line.latency_s),
                    sm_show_seconds(r, line->line.s_per_byte * bytes),
                    sm_show_seconds(r, line_s(line, bytes)),
                    sm_show_bytes(r, line->link_bytes_per_byte * bytes),
                    level_name(r, &q->m.system, line->level), line->book ? "book" : "");
    }
    sm_report_table(r, table);
}

/* What V is, which the cost is a function of. */
static const char *bytes_words(const question *q) {
    switch (q->op) {
    case SM_ALL_GATHER: return "of the array on a chip once gathered";
    case SM_REDUCE_SCATTER:
    case SM_ALL_REDUCE: return "of the partial sums on a chip";
    case SM_ALL_TO_ALL: return "of the array on a chip, times the members";
    default: return "that a chip sends";
    }
}

static void point_rows(sm_report *r, const question *q, double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    sm_table *table = sm_page_table(r, NULL, "<quantity|>value|<");
    sm_page_row(r, table, "members", sm_textf(r, "%d", q->group.size),
                cli_group(r, &q->m.system, &q->group));
    sm_page_row(r, table, "bytes", sm_show_bytes(r, bytes), bytes_words(q));
    if (q->ragged < 1.0)
        sm_page_row(r, table, "of these move", sm_show_percent(r, q->ragged), "ragged all-to-all");
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, cost.lower_s),
                "bandwidth alone, at datasheet rates");
    sm_page_row(r, table, "expected", sm_show_seconds(r, cost.expected_s),
                "the best algorithm with latency and efficiency");
    sm_page_row(r, table, "of it latency", sm_show_seconds(r, cost.latency_s),
                cost.algorithm ? cost.algorithm : "");
    sm_page_row(r, table, "busiest link", sm_show_bytes(r, cost.bytes_busiest_link),
                level_name(r, &q->m.system, cost.level));
    sm_report_table(r, table);
    sm_report_text(r, "Bound by %s.", bound_of(&cost));
}

/* ---- the derivation ---- */

static const sm_algorithm *chosen_line(const question *q, const sm_collective_cost *cost) {
    for (int i = 0; i < q->curve.n; i++)
        if (cost->algorithm && strcmp(q->curve.algorithm[i].name, cost->algorithm) == 0)
            return &q->curve.algorithm[i];
    return NULL;
}

static const char *rate_source(const sm_chip *chip, const sm_level *level) {
    if (level->kind == SM_LEVEL_TORUS) return chip->link_bytes_per_s_oneway.source;
    for (int i = 0; i < chip->tree_levels; i++)
        if (strcmp(chip->tree[i].name, level->name) == 0)
            return chip->tree[i].child_bytes_per_s_oneway.source;
    return chip->dcn_bytes_per_s_oneway.source;
}

static void why_bandwidth(sm_report *r, sm_why *time, const question *q, const sm_algorithm *line,
                          double bytes) {
    const sm_level *level = &q->m.system.level[line->level];
    double crossing = line->link_bytes_per_byte * bytes;
    sm_why *wire = sm_page_why(r, "bandwidth", "bytes on the busiest link / its rate",
                               line->line.s_per_byte * bytes, "s");
    sm_why *link = sm_page_why(r, "bytes on the busiest link", "share of V x V", crossing, "B");
    sm_page_leaf(r, link, "V", bytes, "B", q->has_array ? bytes_words(q) : "given");
    sm_page_leaf(r, link, "share of V", line->link_bytes_per_byte, "", line->name);
    sm_why_add(wire, link);
    sm_page_leaf(r, wire, sm_textf(r, "rate of %s, one way", level->name),
                 level->bytes_per_s_oneway, "B/s", rate_source(&q->m.system.chip, level));
    sm_why_add(time, wire);
}

static const char *latency_words(const sm_collective_cost *cost) {
    return *cost->protocol ? "start and steps of the protocol, hops x hop latency"
                           : "start, hops x hop latency";
}

static void explain(sm_report *r, const question *q, double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    const sm_algorithm *line = chosen_line(q, &cost);
    r->why =
        sm_page_why(r, "expected time", "latency + bandwidth / efficiency", cost.expected_s, "s");
    if (!line) return;
    sm_page_leaf(r, r->why, "latency", cost.latency_s, "s", latency_words(&cost));
    why_bandwidth(r, r->why, q, line, bytes);
    sm_page_leaf(r, r->why, sm_textf(r, "efficiency of %s", q->m.system.level[line->level].name),
                 cost.efficiency, "", q->calibration->source);
}

/* ---- the page ---- */

static void sweep_heads(sm_report *r, const question *q, const char **heads) {
    *heads = "";
    for (int i = 0; i < q->sweep.ranges; i++)
        *heads = sm_textf(r, "%s>%s|", *heads, q->holder.index[q->sweep.range[i].index].name);
    *heads = sm_textf(r, "%s>bytes|>lower|>expected|>rate|<bound|<algorithm", *heads);
}

static void sweep_row(sm_report *r, sm_table *table, const question *q, sm_data *object,
                      double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    const char *cells[SM_PAGE_COLUMNS];
    int n = 0;
    sm_data *dims = q->has_array ? sm_put_object(r, object, "dims") : NULL;
    for (int i = 0; i < q->sweep.ranges; i++) {
        const sm_index *index = &q->holder.index[q->sweep.range[i].index];
        cells[n++] = sm_show_exact(r, index->size);
        sm_put(r, dims, index->name, index->size);
    }
    cells[n++] = sm_show_bytes(r, bytes);
    cells[n++] = sm_show_seconds(r, cost.lower_s);
    cells[n++] = sm_show_seconds(r, cost.expected_s);
    cells[n++] = cost.expected_s > 0.0 ? sm_show_rate(r, bytes / cost.expected_s, "B/s") : "-";
    cells[n++] = bound_of(&cost);
    cells[n++] = cost.algorithm ? cost.algorithm : "none";
    sm_page_cells(r, table, cells);
}

static sm_status show_sweep(sm_report *r, question *q, sm_error *err) {
    const char *heads;
    sweep_heads(r, q, &heads);
    sm_table *table = sm_page_table(r, NULL, heads);
    sm_data *points = sm_put_array(r, r->data, "points");
    for (int p = 0; p < q->points; p++) {
        double bytes = 0.0;
        sm_status status = point_bytes(q, p, &bytes, err);
        if (status) return status;
        sm_data *object = sm_put_object(r, points, NULL);
        sweep_row(r, table, q, object, bytes);
        put_point(r, object, q, bytes);
    }
    sm_report_table(r, table);
    return SM_OK;
}

static sm_status show_point(const cli_call *call, sm_report *r, question *q, sm_error *err) {
    double bytes = 0.0;
    sm_status status = point_bytes(q, 0, &bytes, err);
    if (status) return status;
    put_point(r, r->data, q, bytes);
    put_algorithms(r, r->data, q, bytes);
    if (q->group.size > 1) {
        point_rows(r, q, bytes);
        algorithm_rows(r, q, bytes);
    } else {
        sm_report_text(r, "Nothing to send: the group is one chip.");
    }
    if (call->common.explain) explain(r, q, bytes);
    return SM_OK;
}

static sm_status run_collective(const cli_call *call, sm_report *r, sm_error *err) {
    question q = {.points = 1};
    sm_status status = read_question(call, &q, err);
    if (status) return status;
    const char *over = cli_axes(r, &q.m.mesh, q.over);
    sm_put_text(r, r->data, "command", "collective");
    sm_put_text(r, r->data, "op", sm_collective_name(q.op));
    sm_put_text(r, r->data, "over", over);
    sm_put(r, r->data, "members", q.group.size);
    cli_mesh_fields(r, &q.m);
    sm_report_heading(r, "%s of %s over %s on %s", sm_collective_name(q.op), call->positional[1],
                      over, q.m.system.text);
    if (q.points > 1 && call->common.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one answer: give sizes without ranges");
    status = q.points > 1 ? show_sweep(r, &q, err) : show_point(call, r, &q, err);
    if (!status) cli_mesh_page(r, &q.m);
    return status;
}

const cli_verb cli_collective = {
    .name = "collective",
    .summary = "the time of a collective on a mesh, algorithm by algorithm",
    .arguments = "OP ARRAY",
    .least = 2,
    .most = 2,
    .options = collective_table,
    .values_bytes = sizeof(collective_options),
    .notes = "OP is all-gather, reduce-scatter, all-reduce, all-to-all, permute or broadcast.\n"
             "ARRAY is in the book's notation, 'bf16 A[E_Y,F]', or a size: 64MB, 1kB..1GB.\n\n"
             "example: scalemodel collective all-gather 'A[E_Y,F]' --over Y \\\n"
             "           --dims E=2048,F=8192 --mesh X=8,Y=4 --on tpu-v5e:8x4\n",
    .run = run_collective,
};
