/* answer_reshard: an array between two of XLA's shardings: what replicating it costs, as the
 * partitioner does where it finds no better way ("involuntary full rematerialization"), the
 * cheapest way, and the constraints that make it. The messages are found in a log, or one is given.
 */
#include "question.h"
#include "scalemodel/answer_words.h"
#include "scalemodel/module.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 256, USUAL_TOP = 12 };

/* One message, or several that are alike. */
typedef struct resharding {
    sm_source shape, from, to; /* "bf16[16,384]", "{devices=...}" */
    const char *place;         /* the op_name of the operation; "" */
    int count, rank;
    double size[SM_MAX_RANK], bytes; /* of the whole array */
    sm_placed_mesh m;
    sm_einsum einsum;
    const char *text; /* of the einsum */
    sm_alternative best;
    double full_s, full_bytes; /* replicated: time, and what a chip then holds more */
} resharding;

/* ---- what XLA printed ---- */

static const char *find(const char *at, const char *end, const char *word) {
    size_t n = strlen(word);
    for (; at && (size_t)(end - at) >= n; at++)
        if (!memcmp(at, word, n)) return at;
    return NULL;
}

/* "{...}" at or after `at`, up to the end of the line. */
static sm_source braced(const sm_source *log, const char *at, const char *end) {
    const char *open = at ? memchr(at, '{', (size_t)(end - at)) : NULL;
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    if (!close) return (sm_source){log->name, NULL, 0};
    return (sm_source){log->name, open, (size_t)(close - open) + 1};
}

/* "= bf16[16,384]{1,0} dot(": the type of the operation that the message names. */
static sm_source shape_in(const sm_source *log, const char *at, const char *end) {
    sm_source none = {log->name, NULL, 0};
    const char *equals = at ? memchr(at, '=', (size_t)(end - at)) : NULL;
    const char *bracket = equals ? memchr(equals, '[', (size_t)(end - equals)) : NULL;
    const char *close = bracket ? memchr(bracket, ']', (size_t)(end - bracket)) : NULL;
    if (!close) return none;
    const char *begin = bracket;
    while (begin > equals + 1 && isalnum((unsigned char)begin[-1])) begin--;
    return (sm_source){log->name, begin, (size_t)(close - begin) + 1};
}

static const char *place_in(sm_report *r, const char *at, const char *end) {
    static const char key[] = "op_name=\"";
    const char *name = find(at, end, key);
    if (!name) return "";
    name += sizeof key - 1;
    const char *quote = memchr(name, '"', (size_t)(end - name));
    return quote ? sm_textf(r, "%.*s", (int)(quote - name), name) : "";
}

/* A line of the log: true when it is such a message. */
static bool read_line(sm_report *r, const sm_source *log, const char *at, const char *end,
                      resharding *c) {
    if (!find(at, end, "rematerialization")) return false;
    const char *from = find(at, end, "from sharding");
    *c = (resharding){.count = 1, .place = ""};
    c->from = braced(log, from, end);
    const char *after = c->from.text ? c->from.text + c->from.length : NULL;
    c->to = braced(log, after ? find(after, end, "to ") : NULL, end);
    c->shape = shape_in(log, c->to.text ? find(c->to.text, end, "HLO operation") : NULL, end);
    if (!c->from.text || !c->to.text || !c->shape.text) return false;
    c->place = place_in(r, c->shape.text, end);
    return true;
}

static bool alike(const sm_source *a, const sm_source *b) {
    return a->length == b->length && !memcmp(a->text, b->text, a->length);
}

static int read_log(sm_report *r, const sm_source *log, resharding *list) {
    int n = 0;
    const char *end = log->text + log->length;
    for (const char *at = log->text; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        resharding c;
        bool read = n < MOST_CASES && read_line(r, log, at, stop, &c);
        for (int i = 0; i < n && read; i++)
            if (alike(&list[i].shape, &c.shape) && alike(&list[i].from, &c.from) &&
                alike(&list[i].to, &c.to)) {
                list[i].count++;
                read = false;
            }
        if (read) list[n++] = c;
        at = newline ? newline + 1 : end;
    }
    return n;
}

/* ---- what it costs ---- */

static sm_status read_shape(resharding *c, double *bits, sm_error *err) {
    const sm_source *s = &c->shape;
    assert(s->text);
    const char *bracket = memchr(s->text, '[', s->length), *end = s->text + s->length;
    size_t letters = bracket ? (size_t)(bracket - s->text) : 0;
    int element = 0;
    while (element < SM_HLO_ELEMENT_COUNT &&
           (strlen(sm_module_element_name((sm_module_element)element)) != letters ||
            memcmp(sm_module_element_name((sm_module_element)element), s->text, letters) != 0))
        element++;
    *bits = element < SM_HLO_ELEMENT_COUNT ? sm_module_element_bits((sm_module_element)element) : 0;
    if (!bracket || !(*bits > 0))
        return sm_fail_at(err, s, (sm_span){0, letters ? letters : 1},
                          "expected the shape of an array: bf16[16,4096]");
    c->bytes = *bits / 8;
    for (const char *at = bracket + 1; at < end && *at != ']' && c->rank < SM_MAX_RANK;) {
        char *after;
        double size = strtod(at, &after);
        if (after == at || !(size >= 1 && size < 1e12) || (*after != ',' && *after != ']'))
            return sm_fail_at(err, s, (sm_span){(size_t)(at - s->text), 1}, "expected a size");
        c->size[c->rank++] = size;
        c->bytes *= size;
        at = after + 1;
    }
    return SM_OK;
}

/* An array of so many bits an element, whatever they mean. */
static const char *type_of(double bits) {
    return bits >= 64   ? "fp64"
           : bits >= 32 ? "fp32"
           : bits >= 16 ? "bf16"
           : bits >= 8  ? "int8"
                        : "int4";
}

static sm_status read_einsum(resharding *c, const sm_reshard_question *q, sm_arena *arena,
                             sm_error *err) {
    double bits;
    char mesh_text[128];
    const char *body, *dims = "";
    sm_mesh mesh;
    assert(q->system);
    sm_system system = *q->system;
    sm_status status = read_shape(c, &bits, err);
    if (!status) status = sm_xla_resharding(&c->from, &c->to, c->rank, arena, &mesh, &body, err);
    if (status) return status;
    sm_mesh_format(&mesh, mesh_text, sizeof mesh_text);
    if (system.chips == 1)
        status = sm_system_resize(
            q->system, (int)sm_mesh_size(&mesh, (sm_axes)((1u << mesh.axes) - 1)), &system, err);
    for (int i = 0; i < c->rank && dims; i++)
        dims =
            sm_arena_printf(arena, "%s%s%c=%.0f", dims, i ? "," : "", "IJKLMNOP"[i], c -> size[i]);
    const char *kept = sm_arena_copy(arena, mesh_text, strlen(mesh_text));
    c->text = sm_arena_printf(arena, "%s %s", type_of(bits), body);
    if (!kept || !dims || !c->text) return sm_fail_memory(err);
    const sm_source mesh_source = sm_source_of("the mesh", kept),
                    sizes = sm_source_of("sizes", dims),
                    einsum = sm_source_of("the resharding", c->text);
    if (!status) status = sm_placed_mesh_read(&system, &mesh_source, &c->m, err);
    if (!status) status = sm_einsum_parse(&einsum, &c->m.mesh, &c->einsum, err);
    if (!status) status = sm_dims_parse(&sizes, &c->einsum, err);
    return status ? status : sm_einsum_check(&c->einsum, &c->m.mesh, &einsum, err);
}

/* The axes that shard the array before. */
static sm_axes axes_before(const resharding *c) {
    sm_axes axes = 0;
    const char *arrow = strstr(c->text, "->");
    for (const char *at = c->text; at < arrow; at++)
        if (*at == '_')
            for (at++; isupper((unsigned char)*at); at++) {
                int axis = sm_mesh_find(&c->m.mesh, at, 1);
                if (axis >= 0) axes = (sm_axes)(axes | 1u << axis);
            }
    return axes;
}

static sm_status price(resharding *c, const sm_calibration *calibration, sm_arena *arena,
                       sm_error *err) {
    sm_lowering_input input = sm_placed_product(&c->m, &c->einsum, calibration, SM_BF16);
    sm_ranking *found = sm_arena_alloc(arena, sizeof *found);
    if (!found) return sm_fail_memory(err);
    sm_status status = sm_rank_lowerings(&input, arena, found, err);
    if (status == SM_NEGATIVE || (!status && !found->n))
        return sm_fail(err, SM_BAD_INPUT, "there is no way from %.*s to %.*s", (int)c->from.length,
                       c->from.text, (int)c->to.length, c->to.text);
    if (status) return status;
    c->best = *found->kept[0];
    sm_group group = sm_group_join(&c->m.placement, axes_before(c));
    sm_curve curve = sm_collective_curve(&c->m.system, SM_ALL_GATHER, &group, 1);
    c->full_s =
        group.size > 1 ? sm_curve_cost(&curve, &c->m.system, calibration, c->bytes).expected_s : 0;
    c->full_bytes = c->bytes;
    return SM_OK;
}

/* ---- as JAX writes it ---- */

/* "A[I_X,J,K_YZ]" as "P('X', None, ('Y', 'Z'))". */
static const char *spec_of(sm_report *r, const char *array) {
    const char *text = "P(", *at = strchr(array, '[');
    for (int first = 1; at && *at && *at != ']'; first = 0) {
        const char *axes = ++at, *end = at + strcspn(at, ",]");
        while (axes < end && *axes != '_') axes++;
        int n = axes < end ? (int)(end - axes - 1) : 0;
        text = sm_textf(r, "%s%s%s", text, first ? "" : ", ", n > 1 ? "(" : n ? "" : "None");
        for (int i = 1; i <= n; i++)
            text = sm_textf(r, "%s%s'%c'", text, i > 1 ? ", " : "", axes[i]);
        if (n > 1) text = sm_textf(r, "%s)", text);
        at = end;
    }
    return sm_textf(r, "%s)", text);
}

static const char *after_arrow(const char *text) {
    const char *arrow = strstr(text, "-> ");
    return arrow ? arrow + 3 : text;
}

static bool is_move(const resharding *c, int s) {
    return c->best.lowering.step[s].kind != SM_STEP_EINSUM;
}

/* Moves of the cheapest way. */
static int moves_of(const resharding *c) {
    int n = 0;
    for (int s = 0; s < c->best.lowering.steps; s++) n += is_move(c, s);
    return n;
}

/* ---- page and data ---- */

static void show_one(sm_report *r, const resharding *c) {
    const sm_lowering *way = &c->best.lowering;
    int moves = moves_of(c), shown = 0;
    sm_report_heading(r, "%.*s, %s%s", (int)c->shape.length, c->shape.text,
                      sm_show_bytes(r, c->bytes),
                      c->count > 1 ? sm_textf(r, ", %d times", c->count) : "");
    if (c->place[0]) sm_report_text(r, "In %s.", c->place);
    sm_placed_mesh_page(r, &c->m);
    const char *body = strchr(c->text, ' ') + 1;
    sm_report_text(r, "From %s to %s.", spec_of(r, body), spec_of(r, after_arrow(body)));
    sm_report_text(r, "Replicated and sliced: %s, and %s on every chip.",
                   sm_show_seconds(r, c->full_s), sm_show_bytes(r, c->full_bytes));
    sm_report_text(r, "The cheapest way: %s, %s sent by a chip, %s at most.",
                   sm_show_seconds(r, c->best.cost.expected_s), sm_show_bytes(r, way->wire_bytes),
                   sm_show_bytes(r, way->peak_bytes));
    sm_table *table = sm_page_table(r, NULL, "<step|>{s}expected|<to");
    const char *between = "";
    for (int s = 0; s < way->steps; s++) {
        if (!is_move(c, s)) continue;
        const char *to = after_arrow(sm_step_notation(r, &c->einsum, &c->m.mesh, way, s));
        sm_page_row(r, table, sm_step_words(r, &c->einsum, &c->m.mesh, way, s),
                    c->best.cost.step[s].expected_s, to);
        if (++shown < moves)
            between = sm_textf(r, "%s%s%s", between, between[0] ? ", then " : "", spec_of(r, to));
    }
    if (way->parts)
        sm_report_text(r, "Its steps are on parts of axes: name the mesh by these parts.");
    else if (moves > 1)
        sm_report_text(r,
                       "Constrain it in between, so that each change is one collective: "
                       "jax.lax.with_sharding_constraint(x, S) with S = %s.",
                       between);
    else
        sm_report_text(r, "One collective does it: name both shardings on this one mesh, and "
                          "constrain the operation's result to the first before it is used.");
}

static void put_one(sm_report *r, sm_data *list, const resharding *c) {
    const sm_lowering *way = &c->best.lowering;
    sm_data *object = sm_put_object(r, list, NULL);
    const char *body = strchr(c->text, ' ') + 1;
    sm_put(r, object, "shape|from|to|where",
           sm_textf(r, "%.*s", (int)c->shape.length, c->shape.text), spec_of(r, body),
           spec_of(r, after_arrow(body)), c->place);
    sm_put(r, object, "count|bytes|replicated_s|time_s|wire_bytes_per_chip|peak_bytes_per_chip",
           c->count, c->bytes, c->full_s, c->best.cost.expected_s, way->wire_bytes,
           way->peak_bytes);
    sm_data *steps = sm_put_array(r, object, "steps");
    for (int s = 0; s < way->steps; s++)
        if (is_move(c, s))
            sm_put(r, steps, NULL, sm_step_notation(r, &c->einsum, &c->m.mesh, way, s));
}

SM_ORDER(by_saving, resharding,
         SM_BY_KEY(y->count *(y->full_s - y->best.cost.expected_s),
                   x->count *(x->full_s - x->best.cost.expected_s)) SM_BY_TEXT(text))

static int read_cases(sm_report *r, const sm_reshard_question *q, resharding *list) {
    if (!q->from.text) return read_log(r, &q->text, list);
    list[0] = (resharding){.shape = q->text, .from = q->from, .to = q->to, .count = 1, .place = ""};
    return 1;
}

sm_status sm_answer_reshard(const sm_reshard_question *question, sm_report *r, sm_error *err) {
    sm_reshard_question q;
    sm_status status = sm_sized_take(&q, sizeof q, question, err);
    bool there = q.system && q.text.text && !q.from.text == !q.to.text;
    if (!status) status = sm_question_needs(there, "a system, and a message or two shardings", err);
    resharding *list = sm_arena_array(r->arena, MOST_CASES, sizeof *list);
    if (!status && !list) return sm_fail_memory(err);
    if (status) return status;
    const sm_calibration *calibration =
        q.calibration ? q.calibration : sm_calibration_of_operations(&q.system->chip);
    int n = read_cases(r, &q, list), top = q.top > 0 ? q.top : USUAL_TOP;
    if (n == 0)
        return sm_fail(err, SM_BAD_INPUT,
                       "%s: no line of XLA's about an involuntary full "
                       "rematerialization",
                       q.text.name);
    for (int i = 0; i < n && !status; i++) {
        status = read_einsum(&list[i], &q, r->arena, err);
        if (!status) status = price(&list[i], calibration, r->arena, err);
    }
    if (status) return status;
    qsort(list, (size_t)n, sizeof *list, by_saving);
    sm_put(r, r->data, "command", "reshard");
    sm_data *records = sm_put_array(r, r->data, "reshardings");
    for (int i = 0; i < n; i++) {
        put_one(r, records, &list[i]);
        if (i < top) show_one(r, &list[i]);
    }
    r->records = records;
    if (n > top) sm_report_text(r, "%d more; --top N shows them.", n - top);
    return SM_OK;
}
