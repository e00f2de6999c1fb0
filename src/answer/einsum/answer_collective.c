/* answer_collective: the time of one collective on a mesh, algorithm by algorithm. */
#include "question.h"
#include "scalemodel/answer_words.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

/* What a collective moves: an array with sizes, or bytes, of which both may
 * range. */

sm_status sm_collective_sizes_read(const sm_source *text, const sm_source *dims,
                                   const sm_mesh *mesh, sm_arena *arena, sm_collective_sizes *s,
                                   sm_error *err) {
    *s = (sm_collective_sizes){.text = *text};
    s->has_array = strchr(text->text, '[') || !isdigit((unsigned char)text->text[0]);
    if (!s->has_array && dims->text)
        return sm_fail(err, SM_USAGE, "%s needs an array, and here its bytes are given directly",
                       dims->name);
    sm_status status = s->has_array ? sm_array_parse(text, mesh, &s->holder, err)
                                    : sm_range_parse(text, (sm_span){0, text->length},
                                                     SM_RANGE_BYTES, &s->range, err);
    s->bytes = s->range.first;
    if (!s->has_array) {
        s->points = status ? 1 : sm_range_points(&s->range);
        return status;
    }
    if (!status) status = sm_size_sweep_parse(dims, arena, &s->holder, &s->sweep, err);
    s->points = s->sweep.points;
    return status;
}

sm_status sm_collective_sizes_at(sm_collective_sizes *s, int point, const sm_mesh *mesh,
                                 sm_error *err) {
    if (!s->has_array) {
        s->bytes = sm_range_value(&s->range, point);
        return SM_OK;
    }
    sm_size_sweep_point(&s->sweep, point, &s->holder);
    return sm_einsum_check(&s->holder, mesh, &s->text, err);
}

double sm_collective_array_bytes(sm_collective op, const sm_einsum *holder, const sm_mesh *mesh,
                                 const sm_group *group) {
    bool times = op == SM_ALL_GATHER || op == SM_ALL_TO_ALL;
    return sm_array_local_bytes(&holder->in[0], holder, mesh) * (times ? group->size : 1);
}

typedef struct asked {
    sm_collective_question in;
    sm_placed_mesh m;
    sm_collective_sizes s;
    sm_axes over;
    sm_group group;
    double ragged; /* the part of an all-to-all's bytes that moves */
    sm_curve curve;
} asked;

/* ---- reading ---- */

static sm_axes sharded_of(const sm_array *array) {
    sm_axes sharded = 0;
    for (int d = 0; d < array->rank; d++)
        for (int i = 0; i < array->dim[d].n_axes; i++)
            sharded = (sm_axes)(sharded | (1u << array->dim[d].axis[i]));
    return sharded;
}

static bool wants_shards(sm_collective op) { return op == SM_ALL_GATHER || op == SM_ALL_TO_ALL; }

/* What is meant where no axes are named: those that the array says, or else all of the mesh. */
static sm_axes axes_meant(const asked *q) {
    const sm_array *array = &q->s.holder.in[0];
    sm_axes says = 0;
    if (q->s.has_array && wants_shards(q->in.op)) says = sharded_of(array);
    if (q->s.has_array && sm_collective_reduces(q->in.op)) says = array->unreduced;
    return says ? says : (sm_axes)((1u << q->m.mesh.axes) - 1);
}

/* Gathering and exchanging need an array that is sharded over the axes; reducing one that is not.
 */
static sm_status check_sharding(const asked *q, sm_error *err) {
    const sm_array *array = &q->s.holder.in[0];
    const char *op = sm_collective_name(q->in.op);
    const sm_axes sharded = sharded_of(array);
    char over[128];
    sm_axes_format(&q->m.mesh, q->over, over, sizeof over);
    bool wants_sharded = wants_shards(q->in.op), reduces = sm_collective_reduces(q->in.op);
    if (wants_sharded && (q->over & ~sharded))
        return sm_fail_at(err, &q->in.array, array->span,
                          "%s over %s needs an array sharded over it, as in A[I_%s,J]", op, over,
                          over);
    if (reduces && (q->over & sharded))
        return sm_fail_at(err, &q->in.array, array->span,
                          "%s over %s needs partial sums over it, as in A[I,J] {U_%s}, and this "
                          "array is sharded over it",
                          op, over, over);
    if (reduces && array->unreduced && (q->over & ~array->unreduced))
        return sm_fail_at(err, &q->in.array, array->span,
                          "the partial sums of this array are not over %s", over);
    return SM_OK;
}

/* Without a mesh one axis, by the name that `over` asks for, covers the system. */
static sm_status read_mesh(asked *q, sm_arena *arena, sm_error *err) {
    sm_source *mesh = &q->in.mesh, *over = &q->in.over;
    assert(q->in.system);
    if (!mesh->text) {
        const char *name = over->text && !strchr(over->text, ',') ? over->text : "X";
        const char *text = sm_arena_printf(arena, "%s=%d", name, q->in.system->chips);
        if (!text) return sm_fail_memory(err);
        *mesh = sm_source_of(mesh->name, text);
    }
    sm_status status = sm_placed_mesh_read(q->in.system, mesh, &q->m, err);
    if (!status && over->text) status = sm_over_parse(&q->m.mesh, over, &q->over, err);
    return status;
}

static sm_status read_question(asked *q, sm_arena *arena, sm_error *err) {
    sm_status status = read_mesh(q, arena, err);
    if (!status)
        status = sm_collective_sizes_read(&q->in.array, &q->in.dims, &q->m.mesh, arena, &q->s, err);
    if (!status && !q->in.over.text) q->over = axes_meant(q);
    if (!status && q->s.has_array) status = check_sharding(q, err);
    if (status) return status;
    q->group = sm_group_join(&q->m.placement, q->over);
    q->ragged = q->in.ragged > 0.0 ? q->in.ragged : 1.0;
    if (q->in.top_k > 0.0)
        q->ragged = sm_ragged_fraction(
            q->in.expert_groups > 0.0 ? q->in.expert_groups : q->group.size, q->in.top_k);
    if (!q->in.calibration) q->in.calibration = sm_calibration_of_operations(&q->m.system.chip);
    q->curve = sm_collective_curve(&q->m.system, q->in.op, &q->group, q->ragged);
    return SM_OK;
}

/* ---- one point ---- */

static sm_status point_bytes(asked *q, int point, double *bytes, sm_error *err) {
    sm_status status = sm_collective_sizes_at(&q->s, point, &q->m.mesh, err);
    *bytes = q->s.has_array
                 ? sm_collective_array_bytes(q->in.op, &q->s.holder, &q->m.mesh, &q->group)
                 : q->s.bytes;
    return status;
}

static sm_collective_cost cost_of(const asked *q, double bytes) {
    return sm_curve_cost(&q->curve, &q->m.system, q->in.calibration, bytes);
}

static const char *bound_of(const sm_collective_cost *cost) {
    return cost->latency_bound ? "latency" : "bandwidth";
}

static void put_point(sm_report *r, sm_data *object, const asked *q, double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    const sm_algorithm *book = NULL;
    for (int i = q->curve.n - 1; i >= 0; i--)
        if (q->curve.algorithm[i].book) book = &q->curve.algorithm[i];
    sm_put(r, object, "bytes", bytes);
    sm_put(r, sm_put_object(r, object, "time_s"), "lower|expected|upper", cost.lower_s,
           cost.expected_s, cost.upper_s);
    sm_put(r, object, "latency_s", cost.latency_s);
    if (book)
        sm_put(r, object, "book_s", fmax(book->line.s_per_byte * bytes, book->line.latency_s));
    sm_put(r, object, "bound|bytes_busiest_link|algorithm", bound_of(&cost),
           cost.bytes_busiest_link, cost.algorithm ? cost.algorithm : "none");
}

static const char *level_name(sm_report *r, const sm_system *system, int level) {
    bool torus = system->level[level].kind == SM_LEVEL_TORUS;
    return torus ? sm_textf(r, "%s%d", system->level[level].name, level)
                 : system->level[level].name;
}

static void show_algorithms(sm_report *r, const asked *q, double bytes) {
    const sm_listing list = sm_page_list(
        r, r->data, "algorithms", "Algorithms, at datasheet rates",
        "name<algorithm|>{s}latency|lower_s>{s}bytes / rate|datasheet_s>{s}together|latency_s|"
        "bytes_busiest_link>{B}busiest link|<level|level|book|<");
    for (int i = 0; i < q->curve.n; i++) {
        const sm_algorithm *line = &q->curve.algorithm[i];
        sm_list_row(&list, true, line->name, line->line.latency_s, line->line.s_per_byte * bytes,
                    sm_line_at(line->line, bytes), line->line.latency_s,
                    line->link_bytes_per_byte * bytes, level_name(r, &q->m.system, line->level),
                    q->m.system.level[line->level].name, line->book, line->book ? "book" : "");
    }
}

/* What V is, which the cost is a function of. */
static const char *bytes_words(const asked *q) {
    switch (q->in.op) {
    case SM_ALL_GATHER: return "of the array on a chip once gathered";
    case SM_REDUCE_SCATTER:
    case SM_REDUCE:
    case SM_ALL_REDUCE: return "of the partial sums on a chip";
    case SM_ALL_TO_ALL: return "of the array on a chip, times the members";
    default: return "that a chip sends";
    }
}

/* ---- the derivation ---- */

static const char *rate_source(const sm_chip *chip, const sm_level *level) {
    if (level->kind == SM_LEVEL_TORUS) return chip->link_bytes_per_s_oneway.source;
    for (int i = 0; i < chip->tree_levels; i++)
        if (strcmp(chip->tree[i].name, level->name) == 0)
            return chip->tree[i].child_bytes_per_s_oneway.source;
    return chip->dcn_bytes_per_s_oneway.source;
}

static void explain(sm_report *r, const asked *q, double bytes) {
    sm_collective_cost cost = cost_of(q, bytes);
    const sm_algorithm *line = NULL;
    for (int i = q->curve.n - 1; i >= 0; i--)
        if (cost.algorithm && strcmp(q->curve.algorithm[i].name, cost.algorithm) == 0)
            line = &q->curve.algorithm[i];
    r->why = sm_page_why(r, NULL, "expected time", "latency + bandwidth / efficiency",
                         cost.expected_s, "s");
    if (!line) return;
    sm_page_leaf(r, r->why, "latency", cost.latency_s, "s",
                 *cost.protocol ? "start and steps of the protocol, hops x hop latency"
                                : "start, hops x hop latency");
    const sm_level *level = &q->m.system.level[line->level];
    double crossing = line->link_bytes_per_byte * bytes;
    sm_why *wire = sm_page_why(r, r->why, "bandwidth", "bytes on the busiest link / its rate",
                               line->line.s_per_byte * bytes, "s");
    sm_why *link =
        sm_page_why(r, wire, "bytes on the busiest link", "share of V x V", crossing, "B");
    sm_page_leaf(r, link, "V", bytes, "B", q->s.has_array ? bytes_words(q) : "given");
    sm_page_leaf(r, link, "share of V", line->link_bytes_per_byte, "", line->name);
    sm_page_leaf(r, wire, sm_textf(r, "rate of %s, one way", level->name),
                 level->bytes_per_s_oneway, "B/s", rate_source(&q->m.system.chip, level));
    sm_page_leaf(r, r->why, sm_textf(r, "efficiency of %s", q->m.system.level[line->level].name),
                 cost.efficiency, "", q->in.calibration->source);
}

/* ---- one point or many ---- */

static sm_status show_sweep(sm_report *r, asked *q, sm_error *err) {
    const char *columns = "";
    for (int i = 0; i < q->s.sweep.ranges; i++) {
        const char *name = q->s.holder.index[q->s.sweep.range[i].index].name;
        columns = sm_textf(r, "%sdims.%s>{=}%s|", columns, name, name);
    }
    columns =
        sm_textf(r, "%s>{B}bytes|>{s}lower|>{s}expected|>{B/s}rate|<bound|<algorithm", columns);
    const sm_listing list = sm_page_list(r, r->data, "points", NULL, columns);
    for (int p = 0; p < q->s.points; p++) {
        double bytes = 0.0;
        sm_status status = point_bytes(q, p, &bytes, err);
        if (status) return status;
        sm_collective_cost cost = cost_of(q, bytes);
        const sm_field rest[] = {SM_FIELDS(bytes, cost.lower_s, cost.expected_s,
                                           cost.expected_s > 0.0 ? bytes / cost.expected_s : NAN,
                                           bound_of(&cost),
                                           cost.algorithm ? cost.algorithm : "none")};
        sm_field field[SM_PAGE_COLUMNS];
        size_t n = 0;
        for (int i = 0; i < q->s.sweep.ranges; i++)
            field[n++] = sm_field_number(q->s.holder.index[q->s.sweep.range[i].index].size);
        memcpy(&field[n], rest, sizeof rest);
        put_point(r, sm_list_fields(&list, true, n + sizeof rest / sizeof *rest, field), q, bytes);
    }
    return SM_OK;
}

static sm_status show_point(sm_report *r, asked *q, sm_error *err) {
    double bytes = 0.0;
    sm_status status = point_bytes(q, 0, &bytes, err);
    if (status) return status;
    put_point(r, r->data, q, bytes);
    if (q->group.size > 1) {
        sm_collective_cost cost = cost_of(q, bytes);
        sm_table *table = sm_page_table(r, NULL, "<quantity|>value|<");
        sm_page_row(r, table, "members", sm_textf(r, "%d", q->group.size),
                    sm_group_words(r, &q->m.system, &q->group));
        sm_page_row(r, table, "bytes", sm_show_bytes(r, bytes), bytes_words(q));
        if (q->ragged < 1.0)
            sm_page_row(r, table, "of these move", sm_show_percent(r, q->ragged),
                        "ragged all-to-all");
        sm_page_row(r, table, "lower bound", sm_show_seconds(r, cost.lower_s),
                    "bandwidth alone, at datasheet rates");
        sm_page_row(r, table, "expected", sm_show_seconds(r, cost.expected_s),
                    "the best algorithm with latency and efficiency");
        sm_page_row(r, table, "of it latency", sm_show_seconds(r, cost.latency_s),
                    cost.algorithm ? cost.algorithm : "");
        sm_page_row(r, table, "busiest link", sm_show_bytes(r, cost.bytes_busiest_link),
                    level_name(r, &q->m.system, cost.level));
        if (q->s.has_array)
            sm_padding_of_array(r, &q->s.holder, &q->s.holder.in[0], &q->m.mesh,
                                &(sm_padding_told){.n = 0});
        sm_report_text(r, "Bound by %s.", bound_of(&cost));
    } else {
        sm_report_text(r, "Nothing to send: the group is one chip.");
    }
    show_algorithms(r, q, bytes);
    if (q->in.explain) explain(r, q, bytes);
    return SM_OK;
}

sm_status sm_answer_collective(const sm_collective_question *question, sm_report *r,
                               sm_error *err) {
    asked q = {.ragged = 1.0};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (!status)
        status = sm_question_needs(q.in.system && q.in.array.text, "a system and an array", err);
    if (!status) status = read_question(&q, r->arena, err);
    if (status) return status;
    const char *over = sm_axes_words(r, &q.m.mesh, q.over), *op = sm_collective_name(q.in.op);
    sm_put(r, r->data, "command|op|over|members", "collective", op, over, q.group.size);
    sm_placed_mesh_fields(r, &q.m);
    sm_report_heading(r, "%s of %s over %s on %s", op, q.in.array.text, over, q.m.system.text);
    if (q.s.points > 1 && q.in.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one answer: give sizes without ranges");
    status = q.s.points > 1 ? show_sweep(r, &q, err) : show_point(r, &q, err);
    if (!status) sm_placed_mesh_page(r, &q.m);
    return status;
}
