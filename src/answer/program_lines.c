/* program_lines: beside each line of a program what a plan makes of it: the axes that cut its
 * arrays, its time and bound, its collectives. All numbers are rows of the plan's detail. */
#include "program_told.h"
#include <string.h>

/* ---- axes ---- */

void sm_program_name_axes(sm_program_told *told) {
    static const char letters[SM_AXIS_COUNT] = {'X', 'Y', 'Z', 'W', 'U', 'R', 'V'};
    int n = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        told->subscript[a] = told->lines->degrees.axis[a] > 1 ? letters[n++] : 0;
}

static const char *axis_name(int axis) {
    return SM_AXES_TENSOR >> axis & 1 ? "tensor" : sm_program_mesh()->axis[axis].name;
}

const char *sm_program_mesh_words(const sm_program_told *told) {
    const char *words = "";
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (told->subscript[a])
            words = sm_textf(told->report, "%s%s%c = %s %.0f%s", words, words[0] ? ", " : "",
                             told->subscript[a], axis_name(a), told->lines->degrees.axis[a],
                             a == SM_AXIS_TENSOR_Q   ? " (queries alone)"
                             : a == SM_AXIS_TENSOR_W ? " (widths alone)"
                                                     : "");
    return words;
}

/* The letters of a set of axes in the order in which they cut a dimension. */
static const char *subscripts(const sm_program_told *told, sm_axes axes, const uint8_t *order,
                              char *out) {
    int n = 0;
    for (int i = 0; i < SM_AXIS_COUNT; i++) {
        int a = order ? order[i] : i;
        if ((axes >> a & 1) && told->subscript[a]) out[n++] = told->subscript[a];
    }
    out[n] = 0;
    return out;
}

static const sm_plan_piece *piece_of(const sm_plan_lines *lines, int kind) {
    for (int i = 0; i < lines->pieces; i++)
        if (lines->piece[i].kind == kind) return &lines->piece[i];
    return NULL;
}

static const sm_tensor *tensor_of(const sm_program *b, int array) {
    int at = array < SM_MAX_LINE_ARRAYS ? b->tensor_of[array] : -1;
    return at < 0 ? NULL : &b->tensor[at];
}

static const char *axes_of(const sm_program_told *told, int kind, int array, int i, char *out) {
    const sm_plan_piece *piece = piece_of(told->lines, kind);
    const sm_tensor *t = piece ? tensor_of(piece->program, array) : NULL;
    if (!t || i >= t->rank) return "";
    return subscripts(told, t->at[i], sm_program_axis_order(piece->program, t->dim[i]), out);
}

const char *sm_program_axes(void *with, int kind, const sm_text_lines *lines, int array, int i,
                            sm_arena *arena) {
    char out[SM_AXIS_COUNT + 1];
    (void)lines;
    const char *axes = axes_of(with, kind, array, i, out);
    return axes[0] ? sm_arena_copy(arena, axes, strlen(axes)) : "";
}

/* ---- rows of a line ---- */

/* Is this a row of that line? Layers of one kind may be several pieces. */
static bool is_of(const sm_plan_lines *lines, int piece, int at, int kind, int line) {
    return piece >= 0 && lines->piece[piece].kind == kind && at == line;
}

/* All phases of a line. */
typedef struct line_cost {
    double time_s, memory_s, bytes;
    sm_op_kind kind;
    const char *with; /* the op in whose kernel it runs; NULL: its own */
} line_cost;

/* Does an op at this line run in the kernel of an op before it? */
static bool is_joined(const sm_plan_lines *lines, const sm_plan_op *op, int kind, int line) {
    if (op->joined == 0 || op->piece < 0 || lines->piece[op->piece].kind != kind) return false;
    const sm_program *b = lines->piece[op->piece].program;
    for (int i = 0; i < b->ops; i++)
        for (int k = 1; k <= op->joined && b->op[i].line == op->line && i + k < b->ops; k++)
            if (b->op[i + k].line == line) return true;
    return false;
}

static line_cost cost_of(const sm_plan_lines *lines, int kind, int line) {
    line_cost c = {.with = NULL};
    for (int i = 0; i < lines->ops; i++) {
        const sm_plan_op *op = &lines->op[i];
        if (is_joined(lines, op, kind, line)) c.with = op->op;
        if (!is_of(lines, op->piece, op->line, kind, line)) continue;
        c.time_s += op->time_s;
        c.memory_s += op->memory_s;
        c.bytes += op->bytes;
        c.kind = op->kind;
    }
    return c;
}

/* The op in whose kernel a line without one of its own runs: a bias is added where its product is
 * made. NULL: it has its own, or none at all. */
static const char *epilogue_of(const sm_program_told *told, int kind, const sm_text_line *line,
                               int number) {
    const sm_plan_piece *piece = piece_of(told->lines, kind);
    if (!piece || line->op != SM_OPERATOR_EXPRESSION || !line->results) return NULL;
    const sm_tensor *t = tensor_of(piece->program, line->result[0].array);
    if (!t || t->producer < 0 || piece->program->op[t->producer].line == number) return NULL;
    return piece->program->op[t->producer].name;
}

static const char *bound_of(const sm_program_told *told, const line_cost *c) {
    const sm_plan_op all = {.time_s = c->time_s, .memory_s = c->memory_s, .bytes = c->bytes};
    sm_bound bound = sm_plan_op_bound(&all);
    bool serving = told->phase != SM_TEXT_TRAIN && bound == SM_BOUND_MEMORY;
    if (serving && c->kind == SM_OP_ATTENTION) return "kv";
    return serving && c->kind == SM_OP_EINSUM ? "weights" : sm_bound_name(bound);
}

/* What the result waits for: it is stored as partial sums, which are reduced later. */
static const char *partial_words(const sm_program_told *told, int kind, const sm_text_line *line) {
    char axes[SM_AXIS_COUNT + 1];
    const sm_plan_piece *piece = piece_of(told->lines, kind);
    if (!piece || !line->results) return "";
    const sm_tensor *t = tensor_of(piece->program, line->result[0].array);
    if (!t || !subscripts(told, t->unreduced, NULL, axes)[0]) return "";
    return sm_textf(told->report, "; partial sums over %s", axes);
}

/* ---- collectives ---- */

/* "h", "dh" for its gradient; "5 weights", "5 gradients" that travel together. */
static const char *moved_name(sm_report *r, const sm_plan_collective *c) {
    if (c->line < 0 && c->axes && c->returns) return sm_textf(r, "gradients of %s", c->array);
    if (c->line < 0 || (c->arrays <= 1 && !c->returns)) return c->array;
    if (c->arrays <= 1) return sm_textf(r, "d%s", c->array);
    return sm_textf(r, "%d %s", c->arrays, c->returns ? "gradients" : c->array);
}

static bool moves_alike(const sm_plan_collective *a, const sm_plan_collective *b) {
    return a->op == b->op && a->axes == b->axes && a->returns == b->returns &&
           a->bytes == b->bytes && a->arrays == b->arrays &&
           (a->line >= 0 || strcmp(a->phase, b->phase) == 0) && strcmp(a->array, b->array) == 0;
}

/* A collective of a line in all phases: "\nall-gather h over Y: 320 x 134 MB in 41.2 ms, 12 ms
 * exposed"; of no line with its phase. Empty unless `at` is the first of its kind. */
static const char *move_words(const sm_program_told *told, int kind, int line, int at) {
    const sm_plan_lines *lines = told->lines;
    const sm_plan_collective *c = &lines->collective[at];
    sm_report *r = told->report;
    double count = 0, time_s = 0, exposed_s = 0;
    char axes[SM_AXIS_COUNT + 1];
    for (int i = 0; i < lines->collectives; i++) {
        const sm_plan_collective *o = &lines->collective[i];
        bool here = line < 0 ? o->line < 0 : is_of(lines, o->piece, o->line, kind, line);
        if (!here || !moves_alike(o, c)) continue;
        if (i < at) return "";
        count += o->count;
        time_s += o->time_s;
        exposed_s += o->exposed_s;
    }
    const char *hidden = exposed_s <= 1e-9 * time_s ? ", hidden"
                         : exposed_s < time_s * (1 - 1e-9)
                             ? sm_textf(r, ", %s exposed", sm_show_seconds(r, exposed_s))
                             : "";
    bool staged = c->axes == 0; /* from stage to stage */
    return sm_textf(r, "\n%s %s%s%s%s%s: %s x %s in %s%s", sm_collective_name(c->op),
                    moved_name(r, c), staged ? "" : " over ",
                    staged ? "" : subscripts(told, c->axes, NULL, axes), line < 0 ? ", " : "",
                    line < 0 ? c->phase : "", sm_show_number(r, count), sm_show_bytes(r, c->bytes),
                    sm_show_seconds(r, time_s), hidden);
}

static const char *moves_words(const sm_program_told *told, int kind, int line) {
    const sm_plan_lines *lines = told->lines;
    const char *words = "";
    for (int i = 0; i < lines->collectives; i++) {
        const sm_plan_collective *c = &lines->collective[i];
        bool here = line < 0 ? c->line < 0 : is_of(lines, c->piece, c->line, kind, line);
        if (here) words = sm_textf(told->report, "%s%s", words, move_words(told, kind, line, i));
    }
    return words;
}

const char *sm_program_rest(const sm_program_told *told) { return moves_words(told, -1, -1); }

/* ---- comments ---- */

/* How often the text stands in a step, of the stage that is told of. */
static const char *text_words(const sm_program_told *told, int kind) {
    int count;
    const sm_model_piece *first = sm_architecture_kind(told->architecture, kind, &count);
    const sm_plan_piece *piece = piece_of(told->lines, kind);
    double times = 0;
    for (int i = 0; i < told->lines->pieces; i++)
        if (told->lines->piece[i].kind == kind) times += told->lines->piece[i].times;
    if (!piece || first->apart) return "no part of the step's price";
    if (times <= 0) return "on another stage";
    if (first->layer < 0) return "";
    if (times >= count) return sm_textf(told->report, "%d layer%s", count, count == 1 ? "" : "s");
    return sm_textf(told->report, "%s of %d layers", sm_show_number(told->report, times), count);
}

const char *sm_program_comment(void *with, int kind, const sm_text_lines *lines, int line,
                               bool inside, sm_arena *arena) {
    const sm_program_told *told = with;
    sm_report *r = told->report;
    (void)arena;
    if (inside) return "";
    if (line < 0) return text_words(told, kind);
    line_cost c = cost_of(told->lines, kind, line);
    if (!c.with) c.with = epilogue_of(told, kind, &lines->line[line], line);
    const char *beside =
        c.with         ? sm_textf(r, "with %s", c.with)
        : c.time_s > 0 ? sm_textf(r, "%s, %s%s", sm_show_seconds(r, c.time_s), bound_of(told, &c),
                                  partial_words(told, kind, &lines->line[line]))
                       : "";
    return sm_textf(r, "%s%s", beside, moves_words(told, kind, line));
}

/* ---- data ---- */

void sm_program_put_mesh(const sm_program_told *told) {
    sm_data *mesh = sm_put_array(told->report, told->report->data, "mesh");
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        const char letter[] = {told->subscript[a], 0};
        if (!letter[0]) continue;
        sm_data *axis = sm_put_object(told->report, mesh, NULL);
        sm_put(told->report, axis, "subscript|axis|size", letter, axis_name(a),
               told->lines->degrees.axis[a]);
    }
}

/* "q[B_X,T,K_Y,G,H]" */
static const char *sharded_words(const sm_program_told *told, int kind, const sm_text_lines *lines,
                                 const sm_mention *m) {
    const sm_text_array *array = &lines->array[m->array];
    const char *words = array->name;
    char axes[SM_AXIS_COUNT + 1];
    for (int i = 0; i < array->rank; i++) {
        const char *by = axes_of(told, kind, m->array, i, axes);
        words = sm_textf(told->report, "%s%s%s%s%s", words, i ? "," : "[",
                         lines->dim[m->dim[i]].name, by[0] ? "_" : "", by);
    }
    return array->rank ? sm_textf(told->report, "%s]", words) : words;
}

static void put_move(sm_report *r, sm_data *list, const sm_plan_collective *c) {
    sm_put(r, sm_put_object(r, list, NULL),
           "op|array|gradient|axis|phase|count|bytes_per_chip|time_s|exposed_s",
           sm_collective_name(c->op), c->array, c->returns, c->axis, c->phase, c->count, c->bytes,
           c->time_s, c->exposed_s);
}

void sm_program_put_line(const sm_program_told *told, sm_data *object, int kind,
                         const sm_text_lines *lines, int line) {
    sm_report *r = told->report;
    const sm_plan_lines *all = told->lines;
    const sm_text_line *l = &lines->line[line];
    sm_data *list = sm_put_array(r, object, "results");
    for (int i = 0; i < l->results; i++)
        sm_put(r, list, NULL, sharded_words(told, kind, lines, &l->result[i]));
    list = sm_put_array(r, object, "operands");
    for (int i = 0; i < l->operands; i++)
        sm_put(r, list, NULL, sharded_words(told, kind, lines, &l->operand[i]));
    list = sm_put_array(r, object, "weights"); /* those of the operands */
    for (int i = 0; i < l->operands; i++)
        if (lines->array[l->operand[i].array].role == SM_TEXT_WEIGHT)
            sm_put(r, list, NULL, sharded_words(told, kind, lines, &l->operand[i]));
    line_cost c = cost_of(all, kind, line);
    sm_put(r, object, "time_s|memory_s|bound", c.time_s, c.memory_s,
           c.time_s > 0 ? bound_of(told, &c) : NULL);
    if (c.with) sm_put(r, object, "with", c.with);
    list = sm_put_array(r, object, "ops");
    for (int i = 0; i < all->ops; i++)
        if (is_of(all, all->op[i].piece, all->op[i].line, kind, line))
            sm_put(r, sm_put_object(r, list, NULL), "phase|count|time_s|memory_s|flops|bytes",
                   all->op[i].again ? "recompute" : sm_phase_name(all->op[i].phase),
                   all->op[i].count, all->op[i].time_s, all->op[i].memory_s, all->op[i].flops,
                   all->op[i].bytes);
    list = sm_put_array(r, object, "collectives");
    for (int i = 0; i < all->collectives; i++) {
        const sm_plan_collective *o = &all->collective[i];
        if (is_of(all, o->piece, o->line, kind, line)) put_move(r, list, o);
    }
}

void sm_program_put_rest(const sm_program_told *told) {
    const sm_plan_lines *all = told->lines;
    double launches_s = 0;
    for (int i = 0; i < all->ops; i++)
        if (all->op[i].line < 0) launches_s += all->op[i].time_s;
    sm_put(told->report, told->report->data, "launches_s", launches_s);
    sm_data *list = sm_put_array(told->report, told->report->data, "collectives");
    for (int i = 0; i < all->collectives; i++)
        if (all->collective[i].line < 0) put_move(told->report, list, &all->collective[i]);
}
