/* train_program_lines: the function of a kind of piece as a program of JAX, line by line of its
 * text, on the part of each array that one chip has (jax.shard_map). Arrays move where the tasks of
 * the forward pass move them, so that the program has the collectives that were priced; those of
 * the backward pass are their transposes. What an op is written as is data of the framework; what
 * has no row there is refused. */
#include "train_told.h"

sm_status sm_told_refuse(const sm_told *e, const char *what) {
    const char *of = e->lines ? sm_textf(e->r, "text %s", e->lines->name) : "model";
    return sm_fail(e->err, SM_BAD_INPUT, "%s cannot be told of the %s: %s",
                   sm_framework_title(e->q->in.emit), of, what);
}

/* ---- names ---- */

/* The letters of dimensions in an einsum: their own, else one that no dimension has. */
static const char *letters_of(const sm_told *e, const sm_mention *m) {
    const char *text = "";
    for (int i = 0; i < e->lines->array[m->array].rank; i++) {
        const char *name = e->lines->dim[m->dim[i]].name;
        text = sm_textf(e->r, "%s%c", text, name[0] && !name[1] ? name[0] : 'a' + m->dim[i] % 26);
    }
    return text;
}

const char *sm_told_variable(const sm_told *e, const char *name) {
    const char *text = "";
    for (; *name; name++) text = sm_textf(e->r, "%s%c", text, *name == '.' ? '_' : *name);
    return text;
}

const char *sm_told_kind(const sm_told *e, int kind) {
    int count;
    const char *name = sm_architecture_kind(e->told.architecture, kind, &count)->name;
    for (int k = 0; k < kind; k++)
        if (strcmp(sm_architecture_kind(e->told.architecture, k, &count)->name, name) == 0)
            return sm_textf(e->r, "%s_%d", name, kind);
    return name;
}

/* Weights of another piece ("embedding.w") are read where they are. */
static const char *tied_value(const sm_told *e, const sm_text_array *a) {
    const sm_model_piece *piece;
    sm_architecture_pieces(e->told.architecture, &piece);
    const char *scope = piece[a->piece].name, *name = a->name + strlen(scope) + 1;
    return sm_textf(e->r, "all[\"%s\"][\"%s\"]", scope, name);
}

static const char *value_of(const sm_told *e, int array) {
    const sm_text_array *a = &e->lines->array[array];
    if (e->name[array]) return e->name[array];
    if (a->role == SM_TEXT_IDS) return "ids";
    if (a->role == SM_TEXT_WEIGHT && a->piece >= 0) return tied_value(e, a);
    if (a->role == SM_TEXT_WEIGHT) return sm_textf(e->r, "w[\"%s\"]", a->name);
    return array == e->lines->input ? "x" : sm_told_variable(e, a->name);
}

/* ---- shardings ---- */

bool sm_told_is_layers(const sm_told *e) {
    int count;
    return sm_architecture_kind(e->told.architecture, e->kind, &count)->layer >= 0;
}

const char *sm_told_axis_name(int axis) {
    return axis == PIPELINE ? "pipeline" : sm_program_mesh()->axis[axis].name;
}

/* "fsdp", ("fsdp", "context"), or `none` */
static const char *axes_words(const sm_told *e, const int *axis, int n, const char *none) {
    const char *text = n ? "" : none;
    for (int i = 0; i < n; i++)
        text = sm_textf(e->r, "%s%s\"%s\"", text, i ? ", " : "", sm_told_axis_name(axis[i]));
    return n > 1 ? sm_textf(e->r, "(%s)", text) : text;
}

static const sm_tensor *tensor_of(const sm_told *e, int array) {
    int at = e->program->tensor_of[array];
    return at < 0 ? NULL : &e->program->tensor[at];
}

/* Of a weight that the program has no array of, as it is part of a product (a bias): the sum that
 * it is in, which is cut as it is, and where dimension *i stands there. NULL: none. */
static const sm_tensor *sum_with(const sm_told *e, int array, int *i) {
    for (int k = 0; k < e->lines->lines; k++) {
        const sm_text_line *l = &e->lines->line[k];
        const sm_mention *to = &l->result[0];
        for (int o = 0; o < l->operands; o++) {
            if (l->operand[o].array != array || !tensor_of(e, to->array)) continue;
            for (int d = 0; d < e->lines->array[to->array].rank; d++)
                if (to->dim[d] == l->operand[o].dim[*i]) {
                    *i = d;
                    return tensor_of(e, to->array);
                }
        }
    }
    return NULL;
}

/* The axes that cut a dimension of an array as it is stored, the major one first. */
static int stored_axes(const sm_told *e, int array, int i, int *axis) {
    const sm_tensor *t = tensor_of(e, array);
    if (!t && e->lines->array[array].role == SM_TEXT_WEIGHT) t = sum_with(e, array, &i);
    if (!t || i >= t->rank) return 0;
    const uint8_t *order = sm_program_axis_order(e->program, t->dim[i]);
    int n = 0;
    for (int k = 0; k < SM_AXIS_COUNT; k++)
        if ((t->at[i] >> order[k] & 1) && e->degree[order[k]] > 1) axis[n++] = order[k];
    return n;
}

/* The same of an array as it stands in a line, those of `among` alone. */
static int laid_axes(const sm_told *e, const sm_layout *layout, int i, sm_axes among, int *axis) {
    int n = 0;
    for (int place = 0; place < SM_AXIS_COUNT; place++)
        for (int a = 0; a < SM_AXIS_COUNT; a++)
            if ((among >> a & 1) && layout->dim[a] == i && layout->place[a] == place &&
                e->degree[a] > 1)
                axis[n++] = a;
    return n;
}

static sm_layout stored_layout(const sm_told *e, int array) {
    sm_layout layout;
    int axis[AXES];
    memset(layout.dim, SM_REPLICATED, sizeof layout.dim);
    memset(layout.place, 0, sizeof layout.place);
    for (int i = 0; i < e->lines->array[array].rank; i++) {
        int n = stored_axes(e, array, i, axis);
        for (int k = 0; k < n; k++) {
            layout.dim[axis[k]] = (int8_t)i;
            layout.place[axis[k]] = (int8_t)k;
        }
    }
    return layout;
}

sm_axes sm_told_cut_by(const sm_told *e, int array) {
    sm_axes axes = 0;
    int axis[AXES];
    for (int i = 0; i < e->lines->array[array].rank; i++)
        for (int n = stored_axes(e, array, i, axis); n > 0; n--)
            axes = (sm_axes)(axes | SM_BIT(axis[n - 1]));
    return axes;
}

/* "fsdp", None, ("tensor", "context") */
const char *sm_told_spec(const sm_told *e, int array) {
    const char *text = "";
    int axis[AXES];
    for (int i = 0; i < e->lines->array[array].rank; i++)
        text = sm_textf(e->r, "%s%s%s", text, i ? ", " : "",
                        axes_words(e, axis, stored_axes(e, array, i, axis), "None"));
    return text;
}

const char *sm_told_axes(const sm_told *e, sm_axes axes) {
    int axis[AXES], n = 0;
    for (int a = 0; a < AXES; a++)
        if ((axes >> a & 1) && e->degree[a] > 1) axis[n++] = a;
    return axes_words(e, axis, n, "()");
}

/* ---- moves ---- */

/* The one dimension that the axes of a step cut; -1: several. */
static int dim_cut(const sm_step *step, const sm_layout *layout) {
    int dim = -1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        if (!(step->axes >> a & 1)) continue;
        if (dim >= 0 && layout->dim[a] != dim) return -1;
        dim = (int)layout->dim[a];
    }
    return dim;
}

/* A value after a step that moves it. */
static const char *after_step(const sm_told *e, const char *value, const sm_layout *before,
                              const sm_step *step) {
    int axis[AXES], from = dim_cut(step, before), to = dim_cut(step, &step->after), n;
    bool leaves = step->kind == SM_STEP_COLLECTIVE &&
                  (step->op == SM_ALL_GATHER || step->op == SM_ALL_TO_ALL);
    if (step->kind == SM_STEP_COLLECTIVE && step->op == SM_ALL_REDUCE)
        return sm_textf(e->r, "reduce(%s, %s)", value, sm_told_axes(e, step->axes));
    if (leaves ? from < 0 : to < 0) return NULL;
    n = leaves ? laid_axes(e, before, from, step->axes, axis)
               : laid_axes(e, &step->after, to, step->axes, axis);
    const char *axes = axes_words(e, axis, n, "()");
    if (step->kind == SM_STEP_SLICE) return sm_textf(e->r, "part(%s, %s, %d)", value, axes, to);
    switch (step->op) {
    case SM_ALL_GATHER: return sm_textf(e->r, "gather(%s, %s, %d)", value, axes, from);
    case SM_REDUCE_SCATTER: return sm_textf(e->r, "scatter(%s, %s, %d)", value, axes, to);
    case SM_ALL_TO_ALL:
        if (to < 0) return NULL;
        return sm_textf(e->r, "exchange(%s, %s, %d, %d)", value, axes, from, to);
    default: return NULL;
    }
}

/* An operand of the task (-1: its result) after all of its steps. */
static sm_status after_steps(const sm_told *e, int operand, const char **value, sm_layout *layout) {
    const sm_lowering *low = &e->task->lowering;
    for (int i = 0; i < low->steps; i++) {
        const sm_step *step = &low->step[i];
        if (step->array != operand) continue;
        if (step->kind != SM_STEP_EINSUM) *value = after_step(e, *value, layout, step);
        if (!*value || low->parts)
            return sm_told_refuse(
                e, sm_textf(e->r, "the way its %s moves", e->program->op[e->task->op].name));
        *layout = step->after;
    }
    return SM_OK;
}

/* Does an operand move at all, or (not SM_COLLECTIVE_COUNT) by this collective? */
static bool is_moved(const sm_program_task *task, int operand, sm_collective by) {
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if (step->array != operand || step->kind == SM_STEP_EINSUM) continue;
        if (by == SM_COLLECTIVE_COUNT || (step->kind == SM_STEP_COLLECTIVE && step->op == by))
            return true;
    }
    return false;
}

/* The name of an array that was moved or varied so before, or a new one, made of `value`. */
static sm_status put_moved(sm_told *e, sm_told_move m, const char *value) {
    int others = 0;
    for (int i = 0; i < e->moves; i++) {
        const sm_told_move *was = &e->move[i];
        if (was->array != m.array) continue;
        others++;
        if (was->varied != m.varied || !sm_layout_same(&e->mesh, &was->after, &m.after)) continue;
        e->name[m.array] = was->name;
        return SM_OK;
    }
    if (e->moves == MOST_MOVED) return sm_told_refuse(e, "it moves too many arrays");
    m.name = sm_textf(e->r, "%s_at%s", sm_told_variable(e, e->lines->array[m.array].name),
                      others ? sm_textf(e->r, "%d", others + 1) : "");
    PUT(e, "    %s = %s\n", m.name, value);
    e->name[m.array] = m.name;
    e->move[e->moves++] = m;
    return SM_OK;
}

/* Operands are brought where the line wants them; what is kept of them from the forward pass has
 * a name for jax.checkpoint. */
static sm_status put_operands(sm_told *e, const sm_text_line *l) {
    sm_axes all = 0;
    for (int k = 0; k < l->operands; k++) {
        int array = l->operand[k].array;
        e->name[array] = NULL;
        e->layout[array] = stored_layout(e, array);
    }
    for (int i = 0; e->task && i < e->task->einsum.operands; i++) {
        if (!is_moved(e->task, i, SM_COLLECTIVE_COUNT)) continue;
        for (int k = 0; k < l->operands; k++) {
            int array = l->operand[k].array;
            bool ids = e->lines->array[array].role == SM_TEXT_IDS;
            if (e->program->tensor_of[array] != e->task->tensor[i] || e->name[array] || ids)
                continue;
            const char *value = value_of(e, array);
            sm_layout layout = sm_layout_of(&e->task->einsum.in[i]);
            sm_status status = after_steps(e, i, &value, &layout);
            bool weight = e->lines->array[array].role == SM_TEXT_WEIGHT;
            const char *kept = weight ? "weights" : e->task->ring ? "ring" : "activations";
            if (is_moved(e->task, i, SM_ALL_GATHER))
                value = sm_textf(e->r, "keep(%s, \"%s\")", value, kept);
            if (!status) status = put_moved(e, (sm_told_move){array, 0, layout, NULL}, value);
            if (status) return status;
            e->layout[array] = layout;
        }
    }
    for (int k = 0; k < l->operands; k++) all |= e->varies[l->operand[k].array];
    for (int k = 0; k < l->results; k++) all |= sm_told_cut_by(e, l->result[k].array);
    for (int k = 0; k < l->operands; k++) {
        int array = l->operand[k].array;
        sm_axes more = (sm_axes)(all & ~e->varies[array] & SM_AXES_TENSOR);
        if (e->lines->array[array].role != SM_TEXT_ACTIVATION || !more || e->name[array] ||
            l->op == SM_OPERATOR_EXPRESSION)
            continue;
        const char *value =
            sm_textf(e->r, "vary(%s, %s)", value_of(e, array), sm_told_axes(e, more));
        sm_status status = put_moved(e, (sm_told_move){array, more, e->layout[array], NULL}, value);
        if (status) return status;
    }
    return SM_OK;
}

/* ---- expressions ---- */

static bool is_of(const sm_told *e, const sm_mention *m, int at, sm_dimension_role role) {
    return at < e->lines->array[m->array].rank && e->lines->dim[m->dim[at]].role == role;
}

/* An array beside a result: a dimension of size 1 for each that it lacks between its own. */
static const char *aligned(const sm_told *e, const sm_mention *m, const sm_mention *to) {
    int rank = e->lines->array[m->array].rank, whole = e->lines->array[to->array].rank, at = 0;
    const char *index = "";
    for (int i = 0; i < whole; i++) {
        bool own = at < rank && m->dim[at] == to->dim[i];
        if (own) at++;
        if (own || at > 0)
            index = sm_textf(e->r, "%s%s%s", index, index[0] ? ", " : "", own ? ":" : "None");
    }
    if (at < rank) return NULL;
    const char *value = value_of(e, m->array);
    return strstr(index, "None") ? sm_textf(e->r, "%s[%s]", value, index) : value;
}

static const char *spec_words(const sm_told *e, const sm_text_line *l) {
    const char *text = "";
    for (int i = 0; i < l->operands; i++)
        text = sm_textf(e->r, "%s%s%s", text, i ? "," : "", letters_of(e, &l->operand[i]));
    return sm_textf(e->r, "\"%s->%s\"", text, letters_of(e, &l->result[0]));
}

static const char *all_words(const sm_told *e, const char *const *argument, int n) {
    const char *text = "";
    for (int i = 0; i < n; i++) text = sm_textf(e->r, "%s%s%s", text, i ? ", " : "", argument[i]);
    return text;
}

/* The axes that cut the dimension of a role in the first operand that has one, or in what the piece
 * passes on. */
static const char *role_words(const sm_told *e, const sm_text_line *l, const char *role) {
    int axis[AXES], n = 0;
    for (int k = 0; k < l->operands; k++) {
        int array = l->operand[k].array;
        for (int i = 0; i < e->lines->array[array].rank; i++) {
            const sm_text_dim *d = &e->lines->dim[l->operand[k].dim[i]];
            if (strcmp(sm_dimension_role_name(d->role), role) != 0) continue;
            n = laid_axes(e, &e->layout[array], i, (sm_axes)~0u, axis);
            return axes_words(e, axis, n, "()");
        }
    }
    const sm_text_array *out = &e->lines->array[e->lines->output < 0 ? 0 : e->lines->output];
    for (int i = 0; i < out->rank; i++)
        if (strcmp(sm_dimension_role_name(e->lines->dim[out->dim[i]].role), role) == 0)
            n = stored_axes(e, e->lines->output, i, axis);
    return axes_words(e, axis, n, "()");
}

/* Of a dispatch or combine: the slots. */
static const sm_mention *slots_of(const sm_told *e, const sm_text_line *l) {
    return is_of(e, &l->operand[0], 0, SM_DIMENSION_EXPERTS) ? &l->operand[0] : &l->result[0];
}

static const char *size_of(const sm_told *e, const sm_mention *m, int i) {
    return sm_textf(e->r, "SIZE[\"%s\"]", e->lines->dim[m->dim[i]].name);
}

/* What the config multiplies a product with the vocabulary by, words of a table, and what is added
 * to the stream: "FACT["logit_scale"] * "; "" where it does not. */
static const char *factor_words(const sm_told *e, const sm_text_line *l) {
    const sm_mention *made = &l->result[0];
    const int last = e->lines->array[made->array].rank - 1;
    const char *name = "logit_scale";
    bool here = is_of(e, made, last, SM_DIMENSION_VOCABULARY);
    if (l->op == SM_OPERATOR_EXPRESSION) {
        name = "residual_scale";
        here = sm_line_adds_to_stream(e->lines, l);
    } else if (l->op == SM_OPERATOR_TAKE) {
        name = "embedding_scale";
        here = is_of(e, &l->operand[0], 0, SM_DIMENSION_VOCABULARY);
    }
    return here && sm_told_number(e, name, 1) != 1 ? sm_textf(e->r, "FACT[\"%s\"] * ", name) : "";
}

/* ", window=7": of attention, and of a rotation in a layer that has one. */
static const char *span_words(const sm_told *e, const sm_text_line *l) {
    double window = l->window;
    for (int i = 0; i < e->lines->lines && l->op != SM_OPERATOR_ATTENTION; i++)
        window = window > 0 ? window : e->lines->line[i].window;
    if (window > 0) return sm_textf(e->r, ", window=%.0f", window);
    return l->chunk > 0 ? sm_textf(e->r, ", chunk=%.0f", l->chunk) : "";
}

/* What stands in braces in the form of an op: {1}, {all}, {spec}, {causal}; {last}, the size of the
 * result's last dimension; {positions}, {vocabulary}, the axes that cut them; {count}, of experts,
 * and {held}, the axes that cut those whose slots are filled; {factor} and {span}, as above. */
static const char *filled(const sm_told *e, const sm_text_line *l, const char *name, size_t length,
                          const char *const *argument, int n) {
    static const char *const names[] = {"all",  "spec",  "causal", "last",
                                        "held", "count", "factor", "span"};
    int axis[AXES];
    size_t i = 0;
    if (length == 1 && name[0] >= '1' && name[0] - '1' < n) return argument[name[0] - '1'];
    while (i < 8 && (strlen(names[i]) != length || memcmp(names[i], name, length) != 0)) i++;
    switch (i) {
    case 0: return all_words(e, argument, n);
    case 1: return spec_words(e, l);
    case 2: return l->causal ? "True" : "False";
    case 3: return size_of(e, &l->result[0], e->lines->array[l->result[0].array].rank - 1);
    case 4: return axes_words(e, axis, stored_axes(e, slots_of(e, l)->array, 0, axis), "()");
    case 5: return size_of(e, slots_of(e, l), 0);
    case 6: return factor_words(e, l);
    case 7: return span_words(e, l);
    default: return role_words(e, l, sm_textf(e->r, "%.*s", (int)length, name));
    }
}

/* The expression of an op. */
static sm_status written(const sm_told *e, const sm_text_line *l, const char *op,
                         const char *const *argument, int n, const char **out) {
    const char *form = sm_framework_op(e->q->in.emit, op, n), *text = "";
    if (!form)
        return sm_told_refuse(e, sm_textf(e->r, "its op %s of %d has no translation", op, n));
    while (*form) {
        size_t plain = strcspn(form, "{");
        text = sm_textf(e->r, "%s%.*s", text, (int)plain, form);
        form += plain;
        if (!*form) break;
        size_t inner = strcspn(form, "}");
        text = sm_textf(e->r, "%s%s", text, filled(e, l, form + 1, inner - 1, argument, n));
        form += inner + (form[inner] == '}');
    }
    *out = text;
    return SM_OK;
}

static const char *op_name(sm_operator op) {
    return op == SM_OPERATOR_PRODUCT ? "product" : sm_operator_at(op)->name;
}

/* Postfix terms, each op by its row. */
static sm_status expression_of(const sm_told *e, const sm_text_line *l, const char **out) {
    const char *stack[SM_OPERATOR_MOST_ARGUMENTS * 4];
    int n = 0;
    sm_status status = SM_OK;
    for (int i = 0; i < l->terms && !status; i++) {
        const sm_term *t = &l->term[i];
        if (n + 1 >= SM_OPERATOR_MOST_ARGUMENTS * 4)
            return sm_told_refuse(e, "an expression is too deep");
        if (t->kind == SM_TERM_NUMBER) stack[n++] = sm_textf(e->r, "%.17g", t->number);
        if (t->kind == SM_TERM_ARRAY) {
            stack[n] = aligned(e, &l->operand[t->operand], &l->result[0]);
            if (!stack[n++])
                return sm_told_refuse(e, sm_textf(e->r, "%s mixes orders of dims", l->name));
        }
        if (t->kind != SM_TERM_OPERATOR) continue;
        n -= t->arguments;
        const char *made = "";
        status = written(e, l, op_name(t->op), &stack[n], t->arguments, &made);
        stack[n++] = made;
    }
    *out = n ? stack[n - 1] : "";
    return status;
}

/* ---- lines ---- */

static bool has_attributes(const sm_text_line *l) {
    return l->once || l->capped || l->taps > 0 || l->groups > 0 || l->best > 0 || l->step > 0 ||
           l->first >= 0 || l->over >= 0 || l->sinks >= 0 || l->distance >= 0 || l->scores > 1;
}

/* The program turns and masks along the second dimension, and each head is the last. */
static bool has_positions_second(const sm_told *e, const sm_text_line *l) {
    bool turns = l->op == SM_OPERATOR_ROTARY || l->op == SM_OPERATOR_ATTENTION;
    for (int i = 0; i < l->terms; i++)
        turns |= l->term[i].kind == SM_TERM_OPERATOR && l->term[i].op == SM_OPERATOR_ROTARY;
    return !turns || (is_of(e, &l->operand[0], 0, SM_DIMENSION_SEQUENCES) &&
                      is_of(e, &l->operand[0], 1, SM_DIMENSION_POSITIONS));
}

static sm_status line_value(const sm_told *e, const sm_text_line *l, const char **out) {
    const char *argument[SM_OPERATOR_MOST_ARGUMENTS];
    if (has_attributes(l))
        return sm_told_refuse(
            e, sm_textf(e->r, "%s has attributes that have no translation", l->name));
    if (!has_positions_second(e, l))
        return sm_told_refuse(e,
                              sm_textf(e->r, "%s has no positions behind its sequences", l->name));
    if (l->op == SM_OPERATOR_EXPRESSION) return expression_of(e, l, out);
    if (l->operands > SM_OPERATOR_MOST_ARGUMENTS)
        return sm_told_refuse(e, "a line of too many arrays");
    for (int i = 0; i < l->operands; i++) argument[i] = value_of(e, l->operand[i].array);
    const char *name = sm_textf(e->r, "%s%s", op_name(l->op), l->weighed ? " weighed" : "");
    return written(e, l, name, argument, l->operands, out);
}

/* Does the line make what its op makes? */
static bool makes_result(const sm_told *e, const sm_text_line *l, int line) {
    if (!e->task) return false;
    for (int i = 0; i < l->results; i++) {
        const sm_text_array *a = &e->lines->array[l->result[i].array];
        if (a->line == line && e->program->tensor_of[l->result[i].array] == e->task->result)
            return true;
    }
    return false;
}

/* Over which axes what a line makes varies, its sums over `axes` made. */
static void mark_varying(sm_told *e, const sm_text_line *l, sm_axes reduced) {
    sm_axes all = 0;
    for (int k = 0; k < l->operands; k++) all |= e->varies[l->operand[k].array];
    for (int k = 0; k < l->operands; k++) {
        const sm_layout *at = &e->layout[l->operand[k].array];
        for (int a = 0; a < SM_AXIS_COUNT; a++)
            if (at->dim[a] >= 0) all = (sm_axes)(all | SM_BIT(a));
    }
    for (int k = 0; k < l->results; k++)
        e->varies[l->result[k].array] =
            (sm_axes)((all & ~reduced) | sm_told_cut_by(e, l->result[k].array));
}

static sm_axes all_reduced(const sm_program_task *task) {
    sm_axes axes = 0;
    for (int i = 0; i < task->lowering.steps; i++) {
        const sm_step *step = &task->lowering.step[i];
        if (step->array < 0 && step->kind == SM_STEP_COLLECTIVE && step->op == SM_ALL_REDUCE)
            axes = (sm_axes)(axes | step->axes);
    }
    return axes;
}

static sm_status put_line(sm_told *e, int line) {
    const sm_text_line *l = &e->lines->line[line];
    const char *value = "", *names = "";
    /* The forward task of the op that a line is of; NULL: of none. */
    const sm_program_task *task = NULL;
    for (int i = 0; i < e->tasks.forwards; i++) {
        int at = e->program->op[e->tasks.task[i].op].line;
        if (at <= line && (!task || at >= e->program->op[task->op].line)) task = &e->tasks.task[i];
    }
    e->task = task;
    sm_status status = put_operands(e, l);
    const sm_op *op = e->task ? &e->program->op[e->task->op] : NULL;
    const bool makes = makes_result(e, l, line);
    /* a bias is added to whole sums, which moved when they were made */
    const bool biased = op && makes && l->op == SM_OPERATOR_EXPRESSION &&
                        (op->kind == SM_OP_EINSUM || op->kind == SM_OP_GATHER);
    if (biased && *sm_told_axes(e, e->program->tensor[e->task->result].unreduced) != '(')
        return sm_told_refuse(e, sm_textf(e->r, "%s adds a bias to a part of a sum", l->name));
    if (!status) status = line_value(e, l, &value);
    const sm_text_array *first = &e->lines->array[l->result[0].array];
    if (!status && first->typed && l->op != SM_OPERATOR_TOP)
        status =
            written(e, l, sm_textf(e->r, "as %s", sm_dtype_name(first->type)), &value, 1, &value);
    /* the op of a loss makes its own sums */
    if (!status && op && makes && !biased && op->function != SM_FUNCTION_LOSS) {
        sm_layout layout = sm_layout_of(&e->task->lowering.out);
        for (int i = 0; i < e->task->lowering.steps; i++)
            if (e->task->lowering.step[i].kind == SM_STEP_EINSUM)
                layout = e->task->lowering.step[i].after;
        status = after_steps(e, -1, &value, &layout);
    }
    if (status) return status;
    mark_varying(e, l, makes ? all_reduced(e->task) : 0);
    for (int i = 0; i < l->results; i++)
        names = sm_textf(e->r, "%s%s%s", names, i ? ", " : "",
                         sm_told_variable(e, e->lines->array[l->result[i].array].name));
    if (l->results == 1 && tensor_of(e, l->result[0].array))
        PUT(e, "    %s = %s  # P(%s)\n", names, value, sm_told_spec(e, l->result[0].array));
    else PUT(e, "    %s = %s\n", names, value);
    return SM_OK;
}

/* The tasks of a kind on the mesh of the plan. */
static sm_status list_tasks(sm_told *e) {
    const sm_plan_lines *all = e->told.lines;
    double size[SM_MAX_DIMENSIONS];
    for (int i = 0; i < all->pieces; i++)
        if (all->piece[i].kind == e->kind) e->program = all->piece[i].program;
    sm_program_sizes(e->program, &(sm_program_extent){.sequences = all->degrees.sequences}, size);
    sm_task_list_free(&e->tasks);
    return sm_task_list_new(e->program, &e->mesh, size, 0, SM_REGATHER_ALL, &e->tasks, e->err);
}

/* What a microbatch leaves of the gradient of a weight; every stage has those that are in no layer,
 * and one stage or two a gradient of them. */
sm_axes sm_told_partial(const sm_told *e, int array) {
    int tensor = e->program->tensor_of[array];
    if (tensor < 0 || e->lines->array[array].role != SM_TEXT_WEIGHT) return 0;
    return (sm_axes)(e->tasks.partial[tensor] | (sm_told_is_layers(e) ? 0 : SM_BIT(PIPELINE)));
}

sm_status sm_told_function(sm_told *e) {
    sm_status status = SM_OK;
    PUT(e, "\n\ndef %s(w, x, ids, targets, all):\n", sm_told_variable(e, sm_told_kind(e, e->kind)));
    for (int i = 0; i < e->lines->lines && !status; i++) status = put_line(e, i);
    if (status) return status;
    const sm_text_line *last = &e->lines->line[e->lines->lines - 1];
    int output = e->lines->output >= 0 ? e->lines->output : last->result[0].array;
    PUT(e, "    return %s\n", sm_told_variable(e, e->lines->array[output].name));
    return SM_OK;
}

sm_status sm_told_set_kind(sm_told *e, int kind) {
    const sm_text_lines_of of = {
        .kind = kind, .phase = SM_TEXT_TRAIN, .T = e->told.T, .S = e->told.S};
    e->kind = kind;
    sm_status status =
        sm_architecture_lines(e->told.architecture, &of, e->r->arena, &e->lines, e->err);
    if (!status) status = list_tasks(e);
    /* Over which axes the arrays differ that come in. Of weights: their parts, and what a
     * microbatch leaves of their gradients. */
    if (!status) {
        for (int i = 0; i < e->lines->arrays; i++) {
            e->varies[i] = (sm_axes)(sm_told_cut_by(e, i) | sm_told_partial(e, i));
            e->name[i] = NULL;
        }
        e->moves = 0;
    }
    return status;
}
