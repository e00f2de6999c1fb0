/* One line at a time: its operands, the shape of its result, what it does. */
#include "line_draft.h"

const value *line_option_of(const line_call *c, const char *name) {
    for (const line_option *o = c->options; o; o = o->next)
        if (strcmp(o->name, name) == 0) return &o->value;
    return NULL;
}

/* ---- a line being put together ---- */

static sm_status add_operand(line_maker *m, draft *d, const sm_mention *mention, int *out) {
    int rank = m->array[mention->array].rank;
    for (int i = 0; d->line.op == SM_OPERATOR_EXPRESSION && i < d->line.operands; i++)
        if (d->operand[i].array == mention->array &&
            memcmp(d->operand[i].dim, mention->dim, (size_t)rank) == 0) {
            *out = i;
            return SM_OK;
        }
    if (d->line.operands == SM_OPERATOR_MOST_ARGUMENTS)
        return line_wrong(m, d->call, d->from->span, "more arrays than %d, the most of a line",
                          SM_OPERATOR_MOST_ARGUMENTS);
    *out = d->line.operands++;
    d->operand[*out] = *mention;
    return SM_OK;
}

static sm_status add_term(line_maker *m, draft *d, sm_term term) {
    if (d->line.terms == MADE_MOST_TERMS)
        return line_wrong(m, d->call, d->from->span, "more operations than %d, the most of a line",
                          MADE_MOST_TERMS);
    d->term[d->line.terms++] = term;
    return SM_OK;
}

/* ---- names of operators and texts ---- */

sm_status line_resolve(const line_maker *m, const line_call *c, const tree *t, callee *out) {
    const value *v = line_option_of(c, t->name);
    if (!v) v = line_binding(m, c->label, t->name);
    *out = (callee){NULL, -1};
    if (v && v->kind == VALUE_TEXT) out->text = v->text;
    else if (v && v->kind == VALUE_OPERATOR) out->op = (int)v->op;
    else if (v && v->kind == VALUE_WORD) {
        out->op = operator_find_activation(v->word);
        if (out->op < 0 && v->json)
            return sm_fail_at(m->err, &m->a->source, json_place(v->json),
                              "\"%.40s\" is not understood as an activation; expected one such as "
                              "\"silu\", \"gelu\" or \"relu2\"",
                              v->word);
    } else if (v && v->json) {
        return sm_fail_at(m->err, &m->a->source, json_place(v->json),
                          "%s is %s, and the name of an activation is needed", t->name,
                          values_kind_name(v));
    } else if (!v) {
        out->text = tree_find_text(m->a->library, t->name);
        if (!out->text) out->op = operator_find(t->name);
    }
    if (out->text || out->op >= 0) return SM_OK;
    return line_wrong(m, c, t->span, v ? "%s is bound to no text here" : "there is no text %s",
                      t->name);
}

static bool is_norm(int op) {
    return op == SM_OPERATOR_RMSNORM || op == SM_OPERATOR_LAYERNORM || op == SM_OPERATOR_L2NORM ||
           op == SM_OPERATOR_SOFTMAX;
}

/* Operators that may stand within an expression. */
static bool is_pointwise(int op) {
    return sm_operator_at((sm_operator)op)->shape == SM_SHAPE_UNION || is_norm(op) ||
           op == SM_OPERATOR_ROTARY;
}

/* ---- expressions ---- */

/* What the longest has, then what the others add. */
static shape join(const shape *a, const shape *b) {
    shape all = a->rank >= b->rank ? *a : *b;
    const shape *more = a->rank >= b->rank ? b : a;
    for (int i = 0; i < more->rank; i++) {
        bool there = false;
        for (int j = 0; j < all.rank; j++) there = there || all.dim[j] == more->dim[i];
        if (!there && all.rank < SM_TEXT_MOST_RANK) all.dim[all.rank++] = more->dim[i];
    }
    all.leaves |= more->leaves;
    return all;
}

static sm_status check_arguments(const line_maker *m, const draft *d, const sm_operator_row *row,
                                 const tree *t) {
    if (t->n >= row->least && t->n <= row->most) return SM_OK;
    return line_wrong(m, d->call, t->span, "%s takes %d to %d arguments, not %d", row->name,
                      row->least, row->most, t->n);
}

/* The operator that a name stands for; texts are called on lines of their own. */
static sm_status resolve_operator(const line_maker *m, const draft *d, const tree *t, int *op) {
    callee what;
    sm_status status = line_resolve(m, d->call, t, &what);
    if (!status && what.text)
        return line_wrong(m, d->call, t->span, "the text %s is called on a line of its own",
                          t->name);
    *op = what.op;
    return status;
}

/* A value within a line, as a line of its own before it: its result. */
static sm_status make_before(line_maker *m, draft *d, const tree *t, const char *untold,
                             sm_mention *out) {
    draft inner = {.call = d->call, .from = d->from};
    const char *base = d->targets > 0 ? d->target[0]->name : untold;
    sm_status status = line_draft_make(m, &inner, t, base, &out->array);
    if (status) return status;
    const sm_text_array *made = &m->array[out->array];
    memcpy(out->dim, made->dim, (size_t)made->rank);
    return SM_OK;
}

static sm_status push(line_maker *m, draft *d, const tree *t, shape *out);

static sm_status push_operator(line_maker *m, draft *d, sm_operator op, const tree *t, shape *out) {
    const sm_operator_row *row = sm_operator_at(op);
    shape argument[SM_OPERATOR_MOST_ARGUMENTS];
    sm_status status = check_arguments(m, d, row, t);
    for (int i = 0; !status && i < t->n; i++) status = push(m, d, t->child[i], &argument[i]);
    if (status) return status;
    *out = argument[0];
    bool constant = t->n == 2 && (argument[0].leaves == 0 || argument[1].leaves == 0);
    for (int i = 1; i < t->n; i++) {
        if (row->shape == SM_SHAPE_UNION) *out = join(out, &argument[i]);
        else out->leaves |= argument[i].leaves;
    }
    bool scales = (op == SM_OPERATOR_MULTIPLY || op == SM_OPERATOR_DIVIDE) && constant &&
                  (op == SM_OPERATOR_MULTIPLY || argument[1].leaves == 0);
    for (int i = 0; i < t->n && !scales; i++)
        if (row->reads >> i & 1) d->line.reads |= argument[i].leaves;
    d->line.linear = d->line.linear && (row->linear || scales);
    d->line.norm = d->line.norm || is_norm((int)op);
    d->work += row->flops * line_elements(m, out->rank, out->dim);
    for (int i = 1; row->shape == SM_SHAPE_FIRST && i < t->n; i++)
        for (int j = 0; j < d->line.operands; j++)
            if (argument[i].leaves >> j & 1 && m->array[d->operand[j].array].role == SM_TEXT_WEIGHT)
                m->array[d->operand[j].array].norm = true;
    return add_term(m, d, (sm_term){.kind = SM_TERM_OPERATOR, .op = op, .arguments = t->n});
}

static sm_status push_number(line_maker *m, draft *d, double number) {
    return add_term(m, d, (sm_term){.kind = SM_TERM_NUMBER, .number = number});
}

static sm_status push_array(line_maker *m, draft *d, const sm_mention *mention, shape *out) {
    int operand = 0;
    sm_status status = add_operand(m, d, mention, &operand);
    if (status) return status;
    out->rank = m->array[mention->array].rank;
    memcpy(out->dim, mention->dim, (size_t)out->rank);
    out->leaves = 1u << operand;
    return add_term(m, d, (sm_term){.kind = SM_TERM_ARRAY, .operand = operand});
}

/* What is no pointwise operator is a line of its own. */
static sm_status push_made(line_maker *m, draft *d, const tree *t, shape *out) {
    sm_mention mention;
    sm_status status = make_before(m, d, t, t->name, &mention);
    return status ? status : push_array(m, d, &mention, out);
}

static sm_status push_name(line_maker *m, draft *d, const tree *t, shape *out) {
    sm_mention mention;
    const value *option =
        line_find_name(d->call, t->name) ? NULL : line_option_of(d->call, t->name);
    if (t->kind == TREE_NAME && option && option->kind == VALUE_NUMBER)
        return push_number(m, d, option->number);
    sm_status status = line_mention(m, d->call, t, d->from->attribute, &mention);
    return status ? status : push_array(m, d, &mention, out);
}

static sm_status push_call(line_maker *m, draft *d, const tree *t, shape *out) {
    int op = 0;
    sm_status status = resolve_operator(m, d, t, &op);
    if (status) return status;
    return is_pointwise(op) ? push_operator(m, d, (sm_operator)op, t, out)
                            : push_made(m, d, t, out);
}

static sm_status push(line_maker *m, draft *d, const tree *t, shape *out) {
    value size;
    sm_status status;
    *out = (shape){0};
    switch ((int)t->kind) {
    case TREE_NUMBER: return push_number(m, d, t->number);
    case TREE_SIZE:
        status = line_size(m, d->call, t->name, t->span, &size);
        return status ? status : push_number(m, d, size.number);
    case TREE_NAME:
    case TREE_ARRAY: return push_name(m, d, t, out);
    case TREE_CALL: return push_call(m, d, t, out);
    case TREE_NEGATE: return push_operator(m, d, SM_OPERATOR_NEGATE, t, out);
    case TREE_ADD: return push_operator(m, d, SM_OPERATOR_ADD, t, out);
    case TREE_SUBTRACT: return push_operator(m, d, SM_OPERATOR_SUBTRACT, t, out);
    case TREE_MULTIPLY: return push_operator(m, d, SM_OPERATOR_MULTIPLY, t, out);
    case TREE_DIVIDE: return push_operator(m, d, SM_OPERATOR_DIVIDE, t, out);
    default: return push_made(m, d, t, out);
    }
}

/* ---- attributes ---- */

static sm_status attribute_size(line_maker *m, const line_call *c, const tree *t, double *out) {
    value size = values_of_number(t->number);
    sm_status status = SM_OK;
    if (t->kind == TREE_SIZE) status = line_size(m, c, t->name, t->span, &size);
    *out = size.kind == VALUE_NUMBER ? size.number : 0;
    return status;
}

sm_status line_copies_of(line_maker *m, const line_call *c, const tree_attribute *attributes,
                         double *out) {
    const tree_attribute *shared = tree_find_attribute(attributes, TREE_ATTRIBUTE_SHARED);
    *out = tree_find_attribute(attributes, TREE_ATTRIBUTE_OWN) ? 0 : shared ? 1 : c->shared;
    return shared && shared->value ? attribute_size(m, c, shared->value, out) : SM_OK;
}

/* The dimension that an attribute names; -1 when it is not there. */
static sm_status attribute_dim(line_maker *m, const line_call *c, const tree *t, int *out) {
    double size;
    uint8_t dim = 0;
    sm_status status = attribute_size(m, c, t, &size);
    if (status || size == 0 || t->kind != TREE_SIZE) return status;
    status = line_dim(m, c, t->name, t->span, &dim);
    *out = dim;
    return status;
}

static sm_status attribute_array(line_maker *m, draft *d, const tree *t, int *out) {
    bool there;
    sm_mention mention;
    sm_status status = line_has_dims(m, d->call, t, &there);
    if (status || !there) return status;
    status = line_mention(m, d->call, t, d->from->attribute, &mention);
    return status ? status : add_operand(m, d, &mention, out);
}

/* An attribute whose dimension is none is not there. */
static sm_status take_attribute(line_maker *m, draft *d, const tree_attribute *a) {
    switch (a->kind) {
#define FLAG(is) (d->line.is = true, SM_OK)
#define SIZE(is) attribute_size(m, d->call, a->value, &d->line.is)
#define PLACE(is) attribute_dim(m, d->call, a->value, &d->line.is)
#define OPERAND(is) attribute_array(m, d, a->value, &d->line.is)
#define OF_WEIGHTS SM_OK
#define X(id, name, value, is)                                                                     \
    case TREE_ATTRIBUTE_##id: return is;
        TREE_ATTRIBUTES(X)
#undef X
    case TREE_ATTRIBUTE_COUNT: break;
    }
    return SM_OK;
}

static sm_status take_attributes(line_maker *m, draft *d) {
    sm_status status = SM_OK;
    d->line.along = d->line.first = d->line.over = d->line.sinks = d->line.distance = -1;
    for (const tree_attribute *a = d->from->attribute; !status && a; a = a->next)
        status = take_attribute(m, d, a);
    return status;
}

/* ---- results ---- */

static sm_status fail_shape(line_maker *m, const draft *d, const tree *t, const uint8_t *dim,
                            const line_name *before) {
    char room[120], other[120];
    int rank = m->array[before->array].rank;
    return line_wrong(m, d->call, t->span, "%s is %s above: a name has one shape in a text",
                      line_shown(m, t->name, t->rank, dim, other, sizeof other),
                      line_shown(m, t->name, rank, before->dim, room, sizeof room));
}

sm_status line_target_shape(line_maker *m, draft *d, const tree *t, const shape *follows,
                            shape *out) {
    const line_name *before = line_find_name(d->call, t->name);
    if (t->kind == TREE_ARRAY) {
        *out = (shape){.rank = t->rank};
        sm_status status = line_dims_of(m, d->call, t, out->dim);
        if (status || !before) return status;
        bool same = m->array[before->array].rank == t->rank &&
                    line_same_sizes(m, t->rank, out->dim, before->dim);
        return same ? SM_OK : fail_shape(m, d, t, out->dim, before);
    }
    if (before) {
        *out = (shape){.rank = m->array[before->array].rank};
        memcpy(out->dim, before->dim, (size_t)out->rank);
        return SM_OK;
    }
    if (!follows)
        return line_wrong(m, d->call, t->span,
                          "write the dimensions of %s: they do not follow from "
                          "what it is",
                          t->name);
    *out = *follows;
    return SM_OK;
}

static sm_status add_result(line_maker *m, draft *d, const tree *t, const char *base,
                            const shape *s, sm_mention *out) {
    sm_text_role role = d->line.op == SM_OPERATOR_CACHE   ? SM_TEXT_CACHE
                        : d->line.op == SM_OPERATOR_STATE ? SM_TEXT_STATE
                                                          : SM_TEXT_ACTIVATION;
    const line_name *before = t ? line_find_name(d->call, t->name) : NULL;
    int at = line_new_array(m, d->call, base, role, s->rank, s->dim);
    if (at < 0) return sm_fail_memory(m->err);
    sm_text_array *array = &m->array[at];
    bool typed = t && t->kind == TREE_ARRAY && t->typed;
    if (typed || before) {
        array->typed = typed || m->array[before->array].typed;
        array->type = typed ? t->type : m->array[before->array].type;
    }
    array->line = m->lines;
    array->once = d->line.once;
    for (int i = 0; t && t->kind == TREE_ARRAY && i < t->rank; i++)
        array->pinned[i] = t->dim[i].axes;
    out->array = at;
    memcpy(out->dim, s->dim, (size_t)s->rank);
    if (!t) return SM_OK;
    return line_bind(m, d->call, t->name, at, s->dim) ? SM_OK : sm_fail_memory(m->err);
}

double line_noted(const line_maker *m, const char *array) {
    for (const made_note *n = m->a->note; n; n = n->next)
        if (n->kind == m->of.kind && strcmp(n->array, array) == 0) return n->value;
    return 0;
}

/* The arrays that the line makes: as its targets say, or one that follows from the value. */
static sm_status make_results(line_maker *m, draft *d, const char *base, const shape *follows,
                              sm_mention *result) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < d->line.results; i++) {
        shape s = {0};
        const tree *t = d->targets > 0 ? d->target[i] : NULL;
        if (t) status = line_target_shape(m, d, t, i == 0 ? follows : NULL, &s);
        else if (follows) s = *follows;
        else
            status = line_wrong(m, d->call, d->from->span,
                                "give this a line of its own, with the dimensions of its result");
        if (!status) status = add_result(m, d, t, t ? t->name : base, &s, &result[i]);
    }
    return status;
}

/* How far back caches are read is known by their full names. */
static sm_status bound_caches(line_maker *m, const draft *d, const sm_mention *result) {
    for (int i = 0; i < d->line.results && d->line.op == SM_OPERATOR_CACHE; i++) {
        const char *base = m->array_origin[result[i].array].base;
        const char *name = sm_arena_printf(m->arena, "%s%s", d->call->path, base);
        if (!name) return sm_fail_memory(m->err);
        m->array[result[i].array].keeps = line_noted(m, name);
    }
    return SM_OK;
}

/* Put the line behind the others, with its results. */
static sm_status emit(line_maker *m, draft *d, const char *base, const shape *follows, int *array) {
    sm_text_line *line = &d->line;
    line->results = d->targets > 0 ? d->targets : 1;
    sm_mention *result = sm_arena_array(m->arena, (size_t)line->results, sizeof *result);
    sm_mention *operand = sm_arena_array(m->arena, (size_t)line->operands + 1, sizeof *operand);
    sm_term *term = sm_arena_array(m->arena, (size_t)line->terms + 1, sizeof *term);
    sm_text_line *list = sm_arena_grow(m->arena, m->line, m->lines, &m->room_lines, sizeof *list);
    if (!result || !operand || !term || !list) return sm_fail_memory(m->err);
    if (m->lines == MADE_MOST_LINES)
        return line_wrong(m, d->call, d->from->span, "more lines than %d, the most of a piece",
                          MADE_MOST_LINES);
    m->line = list;
    sm_status status = make_results(m, d, base, follows, result);
    if (status) return status;
    memcpy(operand, d->operand, (size_t)line->operands * sizeof *operand);
    memcpy(term, d->term, (size_t)line->terms * sizeof *term);
    *array = result[0].array;
    line->name = m->array[*array].name;
    line->result = result;
    line->operand = operand;
    line->term = term;
    line->kernel = m->in_kernel;
    line->source = d->call->text->source;
    line->span = d->from->span;
    line->part = d->call->part;
    if (line->op == SM_OPERATOR_EXPRESSION) line->flops = d->work / m->array[*array].elements;
    line_work(m, line);
    m->line[m->lines++] = *line;
    return bound_caches(m, d, result);
}

/* ---- lines by what they do ---- */

static sm_status add_array(line_maker *m, draft *d, const tree *t) {
    int operand;
    sm_mention mention;
    bool named = t->kind == TREE_NAME || t->kind == TREE_ARRAY;
    sm_status status = named ? line_mention(m, d->call, t, d->from->attribute, &mention)
                             : make_before(m, d, t, "x", &mention);
    return status ? status : add_operand(m, d, &mention, &operand);
}

static sm_status make_product(line_maker *m, draft *d, const tree *t, const char *base,
                              int *array) {
    sm_status status = SM_OK;
    d->line.op = SM_OPERATOR_PRODUCT;
    d->line.linear = true;
    for (int i = 0; !status && i < t->n; i++) status = add_array(m, d, t->child[i]);
    d->line.reads = (1u << d->line.operands) - 1;
    if (!status) status = take_attributes(m, d);
    return status ? status : emit(m, d, base, NULL, array);
}

/* Scores are products, and sums of them. */
static sm_status add_scores(line_maker *m, draft *d, const tree *t) {
    sm_status status = SM_OK;
    if (t->kind == TREE_ADD) {
        status = add_scores(m, d, t->child[0]);
        return status ? status : add_scores(m, d, t->child[1]);
    }
    if (t->kind != TREE_PRODUCT || t->n != 2)
        return line_wrong(m, d->call, t->span,
                          "scores are products of two arrays, as in "
                          "attention(q[B,T,K,H] k[B,S,K,H], v[B,S,K,H])");
    for (int i = 0; !status && i < 2; i++) status = add_array(m, d, t->child[i]);
    d->line.scores++;
    return status;
}

static sm_status make_operator(line_maker *m, draft *d, sm_operator op, const tree *t,
                               const char *base, int *array) {
    const sm_operator_row *row = sm_operator_at(op);
    sm_status status = check_arguments(m, d, row, t);
    shape first = {0};
    d->line.op = op;
    d->line.linear = row->linear;
    for (int i = 0; !status && i < t->n; i++)
        status = op == SM_OPERATOR_ATTENTION && i == 0 ? add_scores(m, d, t->child[i])
                                                       : add_array(m, d, t->child[i]);
    if (status) return status;
    d->line.reads = row->reads & (((1u << d->line.operands) - 1) | SM_READS_RESULT);
    if (d->line.operands > 0) {
        first.rank = m->array[d->operand[0].array].rank;
        memcpy(first.dim, d->operand[0].dim, (size_t)first.rank);
    }
    status = take_attributes(m, d);
    if (!status && op == SM_OPERATOR_CONV && d->line.operands > 1) {
        const sm_mention *w = &d->operand[1];
        int rank = m->array[w->array].rank;
        d->line.taps = rank > 0 ? m->dim[w->dim[rank - 1]].size : 0;
    }
    return status ? status : emit(m, d, base, row->shape == SM_SHAPE_FIRST ? &first : NULL, array);
}

static sm_status make_expression(line_maker *m, draft *d, const tree *t, const char *base,
                                 int *array) {
    shape s;
    d->line.op = SM_OPERATOR_EXPRESSION;
    d->line.linear = true;
    sm_status status = push(m, d, t, &s);
    if (!status) status = take_attributes(m, d);
    if (status) return status;
    /* a dimension of size 1 that the written result lacks is repeated */
    int kept = 0;
    bool written = d->targets > 0 && d->target[0]->kind == TREE_ARRAY;
    for (int i = 0; i < s.rank; i++)
        if (!written || !(m->dim[s.dim[i]].size == 1)) s.dim[kept++] = s.dim[i];
    s.rank = kept;
    status = emit(m, d, base, &s, array);
    if (status || !written) return status;
    const sm_text_array *result = &m->array[*array];
    for (int i = 0; i < s.rank; i++) {
        bool there = false;
        for (int j = 0; j < result->rank; j++) there = there || result->dim[j] == s.dim[i];
        if (!there)
            return line_wrong(m, d->call, d->target[0]->span, "%s stands in no dimension of %s",
                              m->dim[s.dim[i]].name, d->target[0]->name);
    }
    return SM_OK;
}

sm_status line_draft_make(line_maker *m, draft *d, const tree *t, const char *base, int *array) {
    int op = 0;
    if (t->kind == TREE_PRODUCT) return make_product(m, d, t, base, array);
    if (t->kind != TREE_CALL) return make_expression(m, d, t, base, array);
    sm_status status = resolve_operator(m, d, t, &op);
    if (status) return status;
    return is_pointwise(op) ? make_expression(m, d, t, base, array)
                            : make_operator(m, d, (sm_operator)op, t, base, array);
}
