/* The lines of a kind of layer: its text with the texts that it calls put in their place, every
 * `if` decided, every array with its dimensions. */

#include "line_draft.h"

/* ---- tests ---- */

typedef struct test_scope {
    scope scope;
    line_maker *m;
    const line_call *call;
} test_scope;

static bool phase_named(const line_maker *m, const char *name, bool *out) {
    sm_text_phase phase = m->of.phase;
    if (strcmp(name, "train") == 0) *out = phase == SM_TEXT_TRAIN;
    else if (strcmp(name, "serve") == 0) *out = phase != SM_TEXT_TRAIN;
    else if (strcmp(name, "prefill") == 0) *out = phase == SM_TEXT_PREFILL;
    else if (strcmp(name, "decode") == 0) *out = phase == SM_TEXT_DECODE;
    else if (strcmp(name, "absorbed") == 0) *out = m->of.absorbed;
    else return false;
    return true;
}

/* A test asks options, dimensions, phases and choices of the plan. */
static sm_status look(scope *base, const tree *t, value *out) {
    test_scope *s = (test_scope *)base;
    bool truth;
    const value *option = line_option_of(s->call, t->name);
    if (t->kind == TREE_SIZE) return line_size(s->m, s->call, t->name, t->span, out);
    if (option) {
        *out = *option;
        return SM_OK;
    }
    if (!phase_named(s->m, t->name, &truth))
        return values_fail(base, NULL, t->span, "%s is no option of this text and no phase",
                           t->name);
    *out = (value){.kind = VALUE_TRUTH, .number = truth};
    return SM_OK;
}

static sm_status test(line_maker *m, const line_call *c, const tree *condition, bool *out) {
    value v;
    test_scope s = {{look, NULL, &m->a->source, c->text->source, m->err, 0, &m->steps}, m, c};
    *out = true;
    if (!condition) return SM_OK;
    sm_status status = values_of(&s.scope, condition, &v);
    if (!status) *out = values_true(&v);
    return status;
}

/* ---- texts within texts ---- */

/* Options: what the family binds to PART.option or option, else the default. */
static sm_status take_options(line_maker *m, line_call *c) {
    for (const tree_set *o = c->text->option; o; o = o->next) {
        line_option *to = sm_arena_alloc(m->arena, sizeof *to);
        const value *bound = line_binding(m, c->label, o->name);
        sm_status status = SM_OK;
        if (!to) return sm_fail_memory(m->err);
        to->name = o->name;
        if (bound) to->value = *bound;
        else status = frames_value(&m->sizes, o, o->value, &to->value);
        if (status) return status;
        to->next = c->options;
        c->options = to;
    }
    return SM_OK;
}

static sm_status run(line_maker *m, line_call *c);

static sm_status take_argument(line_maker *m, line_call *c, line_call *inner, const tree_line *line,
                               const tree *parameter, const tree *argument) {
    sm_mention mention;
    sm_status status;
    uint8_t dim[SM_TEXT_MOST_RANK];
    char room[120], other[120];
    if (argument->kind == TREE_NAME || argument->kind == TREE_ARRAY) {
        status = line_mention(m, c, argument, line->attribute, &mention);
    } else {
        draft d = {.call = c, .from = line};
        status = line_draft_make(m, &d, argument, parameter->name, &mention.array);
        if (!status) memcpy(mention.dim, m->array[mention.array].dim, sizeof mention.dim);
    }
    if (status) return status;
    const sm_text_array *array = &m->array[mention.array];
    memcpy(dim, mention.dim, sizeof dim);
    if (parameter->kind == TREE_ARRAY) {
        status = line_dims_of(m, inner, parameter, dim);
        if (status) return status;
        if (array->rank != parameter->rank || !line_same_sizes(m, array->rank, dim, mention.dim))
            return line_wrong(
                m, c, argument->span, "%s comes to %s, which wants %s",
                line_shown(m, argument->name ? argument->name : "this", array->rank, mention.dim,
                           room, sizeof room),
                inner->text->name,
                line_shown(m, parameter->name, parameter->rank, dim, other, sizeof other));
    }
    return line_bind(m, inner, parameter->name, mention.array, dim) ? SM_OK
                                                                    : sm_fail_memory(m->err);
}

/* What a text made goes by its full name to other pieces. */
static bool export_names(line_maker *m, const line_call *c) {
    for (const line_name *n = c->names; n; n = n->next) {
        line_name *to = sm_arena_alloc(m->arena, sizeof *to);
        char *name = sm_arena_printf(m->arena, "%s%s", c->path, n->name);
        if (!to || !name) return false;
        *to = *n;
        to->name = name;
        to->next = m->exported;
        m->exported = to;
    }
    return true;
}

/* The arrays that lines of a kernel read from outside. */
static sm_status close_kernel(line_maker *m, const line_call *c, int from) {
    int operands = 0, room = 0;
    for (int i = from; i < m->lines; i++) room += m->line[i].operands;
    int *operand = sm_arena_array(m->arena, (size_t)room + 1, sizeof *operand);
    int *result = sm_arena_array(m->arena, (size_t)c->text->results + 1, sizeof *result);
    sm_text_kernel *list =
        sm_arena_grow(m->arena, m->kernel, m->kernels, &m->room_kernels, sizeof *list);
    if (!operand || !result || !list) return sm_fail_memory(m->err);
    m->kernel = list;
    for (int i = from; i < m->lines; i++)
        for (int j = 0; j < m->line[i].operands; j++) {
            int array = m->line[i].operand[j].array, seen = 0;
            while (seen < operands && operand[seen] != array) seen++;
            if (m->array[array].line < from && seen == operands) operand[operands++] = array;
        }
    for (int i = 0; i < c->text->results; i++)
        result[i] = line_find_name(c, c->text->result[i]->name)->array;
    m->kernel[m->kernels++] = (sm_text_kernel){.name = c->text->name,
                                               .from = from,
                                               .lines = m->lines - from,
                                               .results = c->text->results,
                                               .operands = operands,
                                               .result = result,
                                               .operand = operand};
    return SM_OK;
}

static sm_status check_results(line_maker *m, const line_call *c) {
    for (int i = 0; i < c->text->results; i++) {
        const tree *result = c->text->result[i];
        if (!line_find_name(c, result->name))
            return line_wrong(m, c, result->span, "%s makes no %s in this case", c->text->name,
                              result->name);
    }
    return SM_OK;
}

/* Bind what a call gives to the names before its '='. */
static sm_status take_results(line_maker *m, line_call *c, const line_call *inner,
                              const tree_line *line) {
    for (int i = 0; i < line->targets; i++) {
        const tree *t = line->target[i];
        const line_name *given = line_find_name(inner, inner->text->result[i]->name);
        sm_text_array *array = &m->array[given->array];
        shape follows = {.rank = array->rank}, s;
        draft d = {.call = c, .from = line};
        memcpy(follows.dim, given->dim, (size_t)array->rank);
        sm_status status = line_target_shape(m, &d, t, &follows, &s);
        if (status) return status;
        if (s.rank != array->rank || !line_same_sizes(m, s.rank, s.dim, given->dim))
            return line_wrong(m, c, t->span, "%s gives another shape than %s has here",
                              inner->text->name, t->name);
        if (t->kind == TREE_ARRAY && t->typed) {
            array->typed = true;
            array->type = t->type;
        }
        if (!line_bind(m, c, t->name, given->array, s.dim)) return sm_fail_memory(m->err);
    }
    return SM_OK;
}

static sm_status inline_text(line_maker *m, line_call *c, const tree_line *line,
                             const tree_text *text) {
    const tree *call = line->value;
    line_call inner = {.text = text,
                       .label = call->name,
                       .depth = c->depth + 1,
                       .caller = c,
                       .part = c->part ? c->part : ++m->parts};
    if (inner.depth > MADE_MOST_CALLS)
        return line_wrong(m, c, call->span, "texts call each other more than %d deep",
                          MADE_MOST_CALLS);
    if (call->n != text->parameters)
        return line_wrong(m, c, call->span, "%s takes %d arguments, not %d", text->name,
                          text->parameters, call->n);
    if (line->targets != text->results)
        return line_wrong(m, c, call->span, "%s gives %d results, not %d", text->name,
                          text->results, line->targets);
    inner.path = sm_arena_printf(m->arena, "%s%s.", c->path, call->name);
    if (!inner.path) return sm_fail_memory(m->err);
    sm_status status = line_copies_of(m, c, line->attribute, &inner.shared);
    if (!status) status = take_options(m, &inner);
    for (int i = 0; !status && i < call->n; i++)
        status = take_argument(m, c, &inner, line, text->parameter[i], call->child[i]);
    int from = m->lines;
    bool kernel = text->kernel && m->in_kernel < 0;
    if (kernel) m->in_kernel = m->kernels;
    if (!status) status = run(m, &inner);
    if (!status) status = check_results(m, &inner);
    if (kernel) m->in_kernel = -1;
    if (!status && kernel) status = close_kernel(m, &inner, from);
    if (!status && !export_names(m, &inner)) status = sm_fail_memory(m->err);
    return status ? status : take_results(m, c, &inner, line);
}

static sm_status run_line(line_maker *m, line_call *c, const tree_line *line) {
    callee what = {NULL, -1};
    int array;
    sm_status status = SM_OK;
    if (--m->steps < 0) return line_wrong(m, c, line->span, "texts call each other too often");
    if (line->value->kind == TREE_CALL) status = line_resolve(m, c, line->value, &what);
    if (status) return status;
    if (what.text) return inline_text(m, c, line, what.text);
    draft d = {.call = c, .from = line, .target = line->target, .targets = line->targets};
    return line_draft_make(m, &d, line->value, line->target[0]->name, &array);
}

static sm_status run(line_maker *m, line_call *c) {
    sm_status status = SM_OK;
    for (const tree_line *line = c->text->line; !status && line; line = line->next) {
        bool runs;
        status = test(m, c, line->condition, &runs);
        if (!status && runs) status = run_line(m, c, line);
    }
    return status;
}

/* ---- the whole ---- */

/* What comes into a piece: token ids, the stream. */
static sm_status take_inputs(line_maker *m, line_call *c) {
    static const char *const token[] = {"B", "T"}, *const stream[] = {"B", "T", "D"};
    for (int i = 0; i < c->text->parameters; i++) {
        const tree *p = c->text->parameter[i];
        bool ids = strcmp(p->name, "ids") == 0;
        const char *const *letter = ids ? token : stream;
        int rank = p->kind == TREE_ARRAY ? p->rank : ids ? 2 : 3;
        uint8_t dim[SM_TEXT_MOST_RANK];
        sm_status status = SM_OK;
        for (int k = 0; !status && k < rank; k++)
            status = line_dim(m, c, p->kind == TREE_ARRAY ? p->dim[k].name : letter[k], p->span,
                              &dim[k]);
        if (status) return status;
        int at = line_new_array(m, c, p->name, ids ? SM_TEXT_IDS : SM_TEXT_ACTIVATION, rank, dim);
        if (at < 0 || !line_bind(m, c, p->name, at, dim)) return sm_fail_memory(m->err);
        if (ids) m->array[at].typed = true;
        if (ids) m->array[at].type = SM_INT32;
        if (!ids && m->input < 0) m->input = at;
    }
    return SM_OK;
}

static sm_status make_lines(line_maker *m) {
    const sm_model_piece *piece = &m->a->piece[m->kind->first];
    line_call c = {.text = m->kind->text, .path = "", .label = piece->name};
    sm_status status = take_options(m, &c);
    if (!status) status = take_inputs(m, &c);
    if (!status) status = run(m, &c);
    if (!status) status = check_results(m, &c);
    if (status) return status;
    if (c.text->results > 0) m->output = line_find_name(&c, c.text->result[0]->name)->array;
    return export_names(m, &c) ? SM_OK : sm_fail_memory(m->err);
}

sm_status line_make(const sm_architecture *a, const sm_text_lines_of *of, sm_arena *arena,
                    line_maker **of_kind, sm_error *err) {
    line_maker *m = sm_arena_alloc(arena, sizeof *m);
    if (!m) return sm_fail_memory(err);
    const made_kind *kind = &a->kind[of->kind];
    *m = (line_maker){.a = a,
                      .kind = kind,
                      .of = *of,
                      .arena = arena,
                      .err = err,
                      .steps = VALUES_MOST_STEPS,
                      .in_kernel = -1,
                      .input = -1,
                      .output = -1,
                      .of_kind = of_kind};
    m->sizes = frames_scope(kind->frame, err, &m->steps);
    m->sizes.binding = kind->binding;
    m->sizes.stack = kind->stack;
    m->sizes.T = of->T;
    m->sizes.S = of->S;
    m->sizes.given = &a->padding;
    value T, S;
    bool found;
    sm_status status = frames_size(&m->sizes, "T", (sm_span){0, 0}, &T, &found);
    if (!status) status = frames_size(&m->sizes, "S", (sm_span){0, 0}, &S, &found);
    if (status) return status;
    m->T = T.number;
    m->S = S.number;
    of_kind[of->kind] = m;
    status = make_lines(m);
    m->whole = !status;
    return status;
}

sm_status sm_architecture_lines(const sm_architecture *a, const sm_text_lines_of *of,
                                sm_arena *arena, const sm_text_lines **out, sm_error *err) {
    *out = NULL;
    sm_text_lines *lines = sm_arena_alloc(arena, sizeof *lines);
    line_maker **of_kind = sm_arena_array(arena, (size_t)a->kinds + 1, sizeof *of_kind);
    if (!lines || !of_kind) return sm_fail_memory(err);
    sm_status status = line_make(a, of, arena, of_kind, err);
    if (status) return status;
    const line_maker *m = of_kind[of->kind];
    *lines = (sm_text_lines){.name = a->piece[m->kind->first].name,
                             .dims = m->dims,
                             .arrays = m->arrays,
                             .lines = m->lines,
                             .kernels = m->kernels,
                             .dim = m->dim,
                             .array = m->array,
                             .line = m->line,
                             .kernel = m->kernel,
                             .input = m->input,
                             .output = m->output};
    *out = lines;
    return SM_OK;
}
