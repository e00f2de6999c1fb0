/* answer_roofline: an einsum on one chip: FLOPs, bytes, intensity, what bounds it, and from which
 * size on.
 *
 *     time >= max(FLOPs / peak, bytes / bandwidth)
 *
 * (Williams, Waterman, Patterson, "Roofline", CACM 52, 2009; How To Scale Your Model, chapter 1).
 */
#include "question.h"
#include "scalemodel/answer_words.h"
#include <assert.h>
#include <string.h>

/* A question as read and solved. */
typedef struct asked {
    sm_roofline_question in;
    sm_einsum einsum;
    sm_size_sweep sweep;
    int critical[SM_MAX_CRITICAL];
    double solved[SM_MAX_CRITICAL];      /* NaN: no size does it */
    const char *reason[SM_MAX_CRITICAL]; /* then why */
    int open; /* the index without a size, asked for as critical; -1 if none */
    /* Of each point that is shown: FLOPs per byte, expected FLOP/s; and the roof over the last. */
    int shown;
    double *intensity, *achieved;
    sm_roofline last;
} asked;

/* ---- reading ---- */

/* The size of one index may be left open, since it is what is asked for; 1 completes the notation.
 */
static sm_status find_critical(asked *q, int which, sm_error *err) {
    const sm_source *source = &q->in.critical[which];
    const char *names[SM_MAX_INDICES];
    for (int i = 0; i < q->einsum.indices; i++) {
        names[i] = q->einsum.index[i].name;
        if (strcmp(names[i], source->text) != 0) continue;
        q->critical[which] = i;
        if (q->einsum.index[i].size <= 0.0 && q->open < 0) {
            q->open = i;
            sm_index_set_size(&q->einsum, i, 1.0);
        }
        return SM_OK;
    }
    const char *near = sm_nearest(source->text, source->length, names, (size_t)q->einsum.indices);
    return sm_fail_at(err, source, (sm_span){0, source->length},
                      "no array has an index '%.40s'%s%s%s", source->text,
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* ---- solving ---- */

/* That no size balances the two is an answer: NaN, with the reason. An open size is shown at the
 * first whole size past its critical one. */
static sm_status solve(asked *q, sm_report *r, sm_error *err) {
    sm_status answer = SM_OK;
    for (int i = 0; i < q->in.n_critical; i++) {
        sm_error none = {.status = SM_OK};
        sm_status status = sm_roofline_critical(q->in.chip, &q->einsum, q->in.level, q->in.compute,
                                                q->critical[i], &q->solved[i], &none);
        if (status > SM_NEGATIVE) {
            *err = none;
            return status;
        }
        if (status == SM_OK) continue;
        answer = SM_NEGATIVE;
        q->solved[i] = NAN;
        q->reason[i] = sm_textf(r, "%s", none.sentence);
    }
    for (int i = 0; i < q->in.n_critical; i++)
        if (q->critical[i] == q->open && !isnan(q->solved[i]))
            sm_index_set_size(&q->einsum, q->open, ceil(q->solved[i]));
    return answer;
}

/* The size was left open, and none answers: there is no point to show. */
static bool is_unanswerable(const asked *q) {
    for (int i = 0; i < q->in.n_critical; i++)
        if (q->critical[i] == q->open && isnan(q->solved[i])) return true;
    return false;
}

/* ---- words ---- */

static const char *level_title(const asked *q) {
    if (q->in.level == SM_MEMORY_HOST) return "PCIe";
    if (q->in.level == SM_MEMORY_ONCHIP)
        return q->in.chip->fabric == SM_FABRIC_TORUS ? "VMEM" : "L2";
    return "memory";
}

static const char *unit_words(sm_report *r, const sm_roofline *point) {
    if (point->vector) return "on the vector unit";
    return sm_textf(r, "in %s", sm_dtype_name(point->compute));
}

static const char *bound_of(const sm_roofline *point) {
    return point->compute_bound ? "compute" : "memory";
}

/* ---- one point ---- */

/* ---- the derivation ---- */

static void why_array(sm_report *r, sm_why *to, const sm_einsum *einsum, const sm_array *array) {
    double size[SM_MAX_RANK];
    for (int d = 0; d < array->rank; d++) size[d] = einsum->index[array->dim[d].index].size;
    double elements = sm_array_elements_read(array, einsum, size),
           each = sm_dtype_bytes(array->dtype);
    sm_why *node = sm_page_why(r, to, sm_array_notation(r, array, einsum, NULL),
                               "elements x bytes of one", elements * each, "B");
    sm_page_leaf(r, node, "elements", elements, "",
                 sm_array_is_diagonal(array, einsum) ? "of the diagonal" : "sizes given");
    sm_page_leaf(r, node, sm_dtype_name(array->dtype), each, "B", "data type");
}

static void why_lower(sm_report *r, sm_why *to, const asked *q, const sm_roofline *point) {
    const sm_einsum *einsum = &q->einsum;
    const sm_chip *chip = q->in.chip;
    const sm_fact *peak =
        point->vector ? &chip->vector_flops_per_s : &chip->flops_per_s[point->compute];
    sm_why *time = sm_page_why(r, to, "lower bound", "max(math, memory)", point->lower_s, "s");
    sm_why *math = sm_page_why(r, time, "math", "FLOPs / peak", point->math_s, "s");
    sm_why *flops = sm_page_why(r, math, "FLOPs", "2 x product of all indices, each once",
                                point->flops, "FLOP");
    for (int i = 0; i < einsum->indices; i++)
        if (!einsum->index[i].literal && sm_index_repeats(einsum, i) < 0)
            sm_page_given(r, flops, einsum->index[i].name, einsum->index[i].size, "");
    sm_page_fact(r, math, sm_textf(r, "peak %s", unit_words(r, point)), peak, "FLOP/s");
    sm_why *memory = sm_page_why(r, time, "memory", "bytes / bandwidth", point->memory_s, "s");
    sm_why *bytes =
        sm_page_why(r, memory, "bytes moved", "sum over the arrays, each once", point->bytes, "B");
    for (int i = 0; i < einsum->operands; i++) why_array(r, bytes, einsum, &einsum->in[i]);
    why_array(r, bytes, einsum, &einsum->out);
    sm_page_fact(r, memory, sm_textf(r, "bandwidth of %s", level_title(q)), point->bandwidth,
                 "B/s");
}

static void explain(sm_report *r, const asked *q, const sm_roofline *point) {
    const sm_calibration *c = q->in.calibration;
    bool vector = point->vector, narrow = sm_dtype_bytes(point->compute) <= 1.0;
    r->why = sm_page_why(r, NULL, "expected",
                         vector ? "max(math, memory / efficiency) + launch"
                                : "max(math / (efficiency x tiles x k / (k + half k)), memory / "
                                  "efficiency) + launch",
                         point->expected_s, "s");
    if (!vector) {
        sm_page_leaf(r, r->why, "matmul efficiency",
                     narrow ? c->matmul_efficiency_fp8 : c->matmul_efficiency, "", c->source);
        sm_page_leaf(r, r->why, "half k: contraction at half efficiency", c->matmul_half_k, "",
                     "calibration");
    }
    sm_page_leaf(r, r->why, "memory efficiency", c->memory_efficiency, "", "calibration");
    sm_page_leaf(r, r->why, "launch", c->launch_s, "s", "calibration");
    why_lower(r, r->why, q, point);
    for (int i = 0; i < q->in.n_critical; i++)
        if (!isnan(q->solved[i]))
            sm_page_why(r, r->why, sm_textf(r, "critical %s", q->einsum.index[q->critical[i]].name),
                        "the size at which FLOPs / peak = bytes / bandwidth", q->solved[i], "");
}

/* ---- the picture ---- */

/* Expected FLOP/s over arithmetic intensity, below the roof min(peak, intensity x bandwidth), which
 * is drawn from a quarter of the least intensity to four times the largest. */
static void draw(sm_report *r, const asked *q, const char *einsum) {
    double peak = q->last.peak_flops_per_s, rate = q->last.bytes_per_s, ridge = peak / rate;
    double least = ridge, most = ridge;
    for (int i = 0; i < q->shown; i++) {
        least = fmin(least, q->intensity[i]);
        most = fmax(most, q->intensity[i]);
    }
    const double x[] = {least / 4.0, ridge, most * 4.0};
    const double y[] = {fmin(peak, x[0] * rate), peak, peak};
    const sm_series series[] = {
        {"bound", SM_MARK_LINE, 3, x, y, NULL},
        {"expected", SM_MARK_LINE_DOTS, (size_t)q->shown, q->intensity, q->achieved, NULL}};
    const sm_panel panel = {"Roofline",   "FLOPs per byte", "",
                            "",           "FLOP/s",         SM_SCALE_LOG,
                            SM_SCALE_LOG, .n = 2,           .series = series};
    sm_report_chart(r,
                    &(sm_chart){sm_textf(r, "%s on %s", einsum, q->in.chip->name),
                                sm_textf(r, "%s, from %s", unit_words(r, &q->last), level_title(q)),
                                1, &panel});
}

/* ---- one point or many ---- */

static sm_status price(asked *q, sm_roofline *point, sm_error *err) {
    sm_status status = sm_roofline_under(q->in.chip, q->in.calibration, &q->einsum, q->in.level,
                                         q->in.compute, point, err);
    if (status || !q->in.plot) return status;
    q->intensity[q->shown] = point->intensity;
    q->achieved[q->shown++] = point->flops / point->expected_s;
    q->last = *point;
    return SM_OK;
}

static sm_status show_sweep(sm_report *r, asked *q, sm_error *err) {
    const char *columns = "";
    for (int i = 0; i < q->sweep.ranges; i++) {
        const char *name = q->einsum.index[q->sweep.range[i].index].name;
        columns = sm_textf(r, "%sdims.%s>{=}%s|", columns, name, name);
    }
    columns = sm_textf(r,
                       "%sflops>{n}FLOPs|bytes>{B}bytes|intensity>FLOP/B|time_s.math>{s}math|"
                       "time_s.memory>{s}memory|time_s.lower>{s}lower|time_s.expected>{s}expected|"
                       "time_s.upper|bound<bound",
                       columns);
    const sm_listing list = sm_page_list(r, r->data, "points", NULL, columns);
    for (int p = 0; p < q->sweep.points; p++) {
        sm_size_sweep_point(&q->sweep, p, &q->einsum);
        sm_roofline at;
        sm_status status = price(q, &at, err);
        if (status) return status;
        const sm_field cost[] = {SM_FIELDS(at.flops, at.bytes, at.intensity, at.math_s, at.memory_s,
                                           at.lower_s, at.expected_s, at.upper_s, bound_of(&at))};
        sm_field field[SM_MAX_INDICES + sizeof cost / sizeof *cost];
        size_t n = 0;
        for (int i = 0; i < q->sweep.ranges; i++)
            field[n++] = sm_field_number(q->einsum.index[q->sweep.range[i].index].size);
        memcpy(&field[n], cost, sizeof cost);
        sm_list_fields(&list, true, n + sizeof cost / sizeof *cost, field);
    }
    return SM_OK;
}

static sm_status show_point(sm_report *r, asked *q, sm_error *err) {
    sm_roofline point;
    sm_status status = price(q, &point, err);
    if (status) return status;
    sm_put(r, r->data, "flops|bytes|intensity|peak_flops_per_s|bytes_per_s", point.flops,
           point.bytes, point.intensity, point.peak_flops_per_s, point.bytes_per_s);
    sm_put(r, sm_put_object(r, r->data, "time_s"), "math|memory|lower|expected|upper", point.math_s,
           point.memory_s, point.lower_s, point.expected_s, point.upper_s);
    sm_put(r, r->data, "bound", bound_of(&point));
    if (q->open >= 0) {
        const sm_index *index = &q->einsum.index[q->open];
        sm_report_text(r, "At %s = %s:", index->name, sm_show_exact(r, index->size));
    }
    double ridge = point.peak_flops_per_s / point.bytes_per_s;
    sm_table *table = sm_page_table(r, NULL, "<quantity|>value|<");
    sm_page_row(r, table, "FLOPs", sm_show_count(r, point.flops), "");
    sm_page_row(r, table, "bytes", sm_show_bytes(r, point.bytes),
                "each array once, in its own type");
    sm_page_row(r, table, "intensity", sm_textf(r, "%s FLOP/B", sm_show_number(r, point.intensity)),
                sm_textf(r, "the chip turns at %s", sm_show_number(r, ridge)));
    sm_page_row(r, table, "math", sm_show_seconds(r, point.math_s),
                sm_textf(r, "at %s %s", sm_show_rate(r, point.peak_flops_per_s, "FLOP/s"),
                         unit_words(r, &point)));
    sm_page_row(
        r, table, "memory", sm_show_seconds(r, point.memory_s),
        sm_textf(r, "at %s from %s", sm_show_rate(r, point.bytes_per_s, "B/s"), level_title(q)));
    sm_page_row(r, table, "lower bound", sm_show_seconds(r, point.lower_s),
                "math and memory overlap fully");
    sm_page_row(r, table, "expected", sm_show_seconds(r, point.expected_s),
                "with tiles, efficiency and launch");
    sm_page_row(r, table, "upper bound", sm_show_seconds(r, point.upper_s), "nothing overlaps");
    sm_report_text(r, "Bound by %s.", bound_of(&point));
    if (q->in.explain) explain(r, q, &point);
    return SM_OK;
}

sm_status sm_answer_roofline(const sm_roofline_question *question, sm_report *r, sm_error *err) {
    asked q = {.open = -1};
    sm_status status = sm_sized_take(&q.in, sizeof q.in, question, err);
    if (!status)
        status = sm_question_needs(q.in.chip && q.in.einsum.text, "a chip and an einsum", err);
    if (!status) status = sm_question_limit("n_critical", q.in.n_critical, SM_MAX_CRITICAL, err);
    if (status) return status;
    assert(q.in.chip);
    if (!q.in.calibration) q.in.calibration = sm_calibration_of_operations(q.in.chip);
    const sm_source *source = &q.in.einsum;
    status = sm_einsum_parse(source, NULL, &q.einsum, err);
    if (!status) status = sm_einsum_infer_output(&q.einsum, source, err);
    if (!status) status = sm_size_sweep_parse(&q.in.dims, r->arena, &q.einsum, &q.sweep, err);
    for (int i = 0; i < q.in.n_critical && !status; i++) status = find_critical(&q, i, err);
    status = status ? status : sm_einsum_check(&q.einsum, NULL, source, err);
    if (status) return status;
    sm_status answer = solve(&q, r, err);
    if (answer > SM_NEGATIVE) return answer;
    char text[512];
    sm_einsum_format(&q.einsum, NULL, text, sizeof text);
    sm_put(r, r->data, "command|einsum|chip", "roofline", text, q.in.chip->name);
    sm_report_heading(r, "%s on %s", text, q.in.chip->name);
    if (q.sweep.ranges && q.in.explain)
        return sm_fail(err, SM_USAGE, "--explain derives one answer: give sizes without ranges");
    size_t points = q.sweep.ranges ? (size_t)q.sweep.points : 1;
    q.intensity = sm_arena_alloc(r->arena, 2 * points * sizeof *q.intensity);
    if (!q.intensity) return sm_fail_memory(err);
    q.achieved = q.intensity + points;
    if (q.sweep.ranges) status = show_sweep(r, &q, err);
    else if (!is_unanswerable(&q)) status = show_point(r, &q, err);
    if (!status) {
        sm_data *object = q.in.n_critical ? sm_put_object(r, r->data, "critical") : NULL;
        for (int i = 0; i < q.in.n_critical; i++) {
            const char *name = q.einsum.index[q.critical[i]].name;
            sm_put(r, object, name, q.solved[i]);
            if (isnan(q.solved[i])) sm_report_text(r, "Critical %s: %s.", name, q.reason[i]);
            else
                sm_report_text(r, "Critical %s = %s: math and memory take equally long there.",
                               name, sm_textf(r, "%.6g", q.solved[i]));
        }
    }
    if (!status && q.shown) draw(r, &q, text);
    return status ? status : answer;
}
