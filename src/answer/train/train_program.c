/* train_program: a model under a plan as a program of JAX: its weights and their shardings, a
 * function for each kind of piece, line by line of the text. What an op is written as is data of
 * the framework; what has no row there is refused. */
#include "program_told.h"
#include "train_asked.h"

#include <string.h>

enum { SMALL_SIZE = 256, SMALL_CHIPS = 8, SMALL_LAYERS = 2 };

typedef struct emitting {
    const sm_train_asked *q;
    const sm_plan *plan;
    sm_program_told told;
    sm_report *r;
    sm_error *err;
    int kind;
    const sm_text_lines *lines; /* of that kind */
    const char *out;
    bool out_of_memory;
    int small[SM_AXIS_COUNT]; /* members of each axis on SMALL_CHIPS */
} emitting;

#define PUT(e, ...) ((e)->out = sm_textf((e)->r, "%s%s", (e)->out, sm_textf((e)->r, __VA_ARGS__)))

static sm_status refuse(const emitting *e, const char *what) {
    return sm_fail(e->err, SM_BAD_INPUT, "%s cannot be told of the text %s: %s",
                   sm_framework_title(e->q->in.emit), e->lines->name, what);
}

/* ---- names ---- */

/* The letter of a dimension in an einsum: its own, else one that no dimension has. */
static char letter_of(const sm_text_lines *lines, int dim) {
    const char *name = lines->dim[dim].name;
    return (char)(name[0] && !name[1] ? name[0] : 'a' + dim % 26);
}

static const char *letters_of(const emitting *e, const sm_mention *m) {
    const char *text = "";
    for (int i = 0; i < e->lines->array[m->array].rank; i++)
        text = sm_textf(e->r, "%s%c", text, letter_of(e->lines, m->dim[i]));
    return text;
}

/* "q.2" as a name of Python. */
static const char *variable(const emitting *e, const char *name) {
    const char *text = "";
    for (; *name; name++) text = sm_textf(e->r, "%s%c", text, *name == '.' ? '_' : *name);
    return text;
}

/* Weights of another piece ("embedding.w") are read where they are. */
static const char *tied_value(const emitting *e, const sm_text_array *a) {
    const sm_model_piece *piece;
    sm_architecture_pieces(e->told.architecture, &piece);
    const char *scope = piece[a->piece].name, *name = a->name + strlen(scope) + 1;
    return sm_textf(e->r, "all[\"%s\"][\"%s\"]", scope, name);
}

static const char *value_of(const emitting *e, int array) {
    const sm_text_array *a = &e->lines->array[array];
    if (a->role == SM_TEXT_IDS) return "ids";
    if (a->role == SM_TEXT_WEIGHT && a->piece >= 0) return tied_value(e, a);
    if (a->role == SM_TEXT_WEIGHT) return sm_textf(e->r, "w[\"%s\"]", a->name);
    return array == e->lines->input ? "x" : variable(e, a->name);
}

/* ---- shardings ---- */

static int axis_of(const emitting *e, char letter) {
    int axis = 0;
    for (int a = 0; a < SM_AXIS_COUNT; a++)
        if (e->told.subscript[a] == letter) axis = a;
    return axis;
}

/* P("fsdp", None, ("tensor", "context")) */
static const char *spec_of(emitting *e, int array, bool stacked, sm_axes without) {
    const char *text = stacked ? "None" : "";
    const sm_text_array *a = &e->lines->array[array];
    for (int i = 0; i < a->rank; i++) {
        const char *by = sm_program_axes(&e->told, e->kind, e->lines, array, i, e->r->arena);
        int n = 0;
        const char *one = "";
        if (!by) e->out_of_memory = true;
        for (; by && *by; by++) {
            int axis = axis_of(e, *by);
            if (without >> axis & 1) continue;
            one = sm_textf(e->r, "%s%s\"%s\"", one, n++ ? ", " : "",
                           sm_program_mesh()->axis[axis].name);
        }
        if (n == 0) one = "None";
        text = sm_textf(e->r, "%s%s%s%s%s", text, text[0] ? ", " : "", n > 1 ? "(" : "", one,
                        n > 1 ? ")" : "");
    }
    return sm_textf(e->r, "P(%s)", text);
}

/* ---- expressions ---- */

/* An array beside a result: a dimension of size 1 for each that it lacks between its own. */
static const char *aligned(const emitting *e, const sm_mention *m, const sm_mention *to) {
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

static const char *spec_words(const emitting *e, const sm_text_line *l) {
    const char *text = "";
    for (int i = 0; i < l->operands; i++)
        text = sm_textf(e->r, "%s%s%s", text, i ? "," : "", letters_of(e, &l->operand[i]));
    return sm_textf(e->r, "\"%s->%s\"", text, letters_of(e, &l->result[0]));
}

static const char *all_words(const emitting *e, const char *const *argument, int n) {
    const char *text = "";
    for (int i = 0; i < n; i++) text = sm_textf(e->r, "%s%s%s", text, i ? ", " : "", argument[i]);
    return text;
}

/* The expression of an op, {1}, {all}, {spec} and {causal} filled in. */
static sm_status written(const emitting *e, const sm_text_line *l, const char *op,
                         const char *const *argument, int n, const char **out) {
    const char *form = sm_framework_op(e->q->in.emit, op, n), *text = "";
    if (!form) return refuse(e, sm_textf(e->r, "its op %s of %d has no translation", op, n));
    while (*form) {
        size_t plain = strcspn(form, "{");
        text = sm_textf(e->r, "%s%.*s", text, (int)plain, form);
        form += plain;
        if (!*form) break;
        size_t inner = strcspn(form, "}");
        const char *with = "";
        if (form[1] == 'a') with = all_words(e, argument, n);
        else if (form[1] == 's') with = spec_words(e, l);
        else if (form[1] == 'c') with = l->causal ? "True" : "False";
        else if (form[1] >= '1' && form[1] - '1' < n) with = argument[form[1] - '1'];
        text = sm_textf(e->r, "%s%s", text, with);
        form += inner + (form[inner] == '}');
    }
    *out = text;
    return SM_OK;
}

static const char *op_name(sm_operator op) {
    return op == SM_OPERATOR_PRODUCT ? "product" : sm_operator_at(op)->name;
}

/* Postfix terms, each op by its row. */
static sm_status expression_of(const emitting *e, const sm_text_line *l, const char **out) {
    const char *stack[SM_OPERATOR_MOST_ARGUMENTS * 4];
    int n = 0;
    sm_status status = SM_OK;
    for (int i = 0; i < l->terms && !status; i++) {
        const sm_term *t = &l->term[i];
        if (n + 1 >= SM_OPERATOR_MOST_ARGUMENTS * 4) return refuse(e, "an expression is too deep");
        if (t->kind == SM_TERM_NUMBER) stack[n++] = sm_textf(e->r, "%.17g", t->number);
        if (t->kind == SM_TERM_ARRAY) {
            stack[n] = aligned(e, &l->operand[t->operand], &l->result[0]);
            if (!stack[n++]) return refuse(e, sm_textf(e->r, "%s mixes orders of dims", l->name));
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
    return l->once || l->capped || l->window > 0 || l->chunk > 0 || l->taps > 0 || l->groups > 0 ||
           l->best > 0 || l->step > 0 || l->first >= 0 || l->over >= 0 || l->sinks >= 0 ||
           l->distance >= 0 || l->scores > 1;
}

static bool is_of(const emitting *e, const sm_mention *m, int at, sm_dimension_role role) {
    return at < e->lines->array[m->array].rank && e->lines->dim[m->dim[at]].role == role;
}

/* The program turns and masks along the second dimension, and each head is the last. */
static bool has_positions_second(const emitting *e, const sm_text_line *l) {
    bool turns = l->op == SM_OPERATOR_ROTARY || l->op == SM_OPERATOR_ATTENTION;
    for (int i = 0; i < l->terms; i++)
        turns |= l->term[i].kind == SM_TERM_OPERATOR && l->term[i].op == SM_OPERATOR_ROTARY;
    return !turns || (is_of(e, &l->operand[0], 0, SM_DIMENSION_SEQUENCES) &&
                      is_of(e, &l->operand[0], 1, SM_DIMENSION_POSITIONS));
}

static sm_status line_value(const emitting *e, const sm_text_line *l, const char **out) {
    const char *argument[SM_OPERATOR_MOST_ARGUMENTS];
    if (has_attributes(l))
        return refuse(e, sm_textf(e->r, "%s has attributes that have no translation", l->name));
    if (!has_positions_second(e, l))
        return refuse(e, sm_textf(e->r, "%s has no positions behind its sequences", l->name));
    if (l->op == SM_OPERATOR_EXPRESSION) return expression_of(e, l, out);
    if (l->operands > SM_OPERATOR_MOST_ARGUMENTS) return refuse(e, "a line of too many arrays");
    for (int i = 0; i < l->operands; i++) argument[i] = value_of(e, l->operand[i].array);
    return written(e, l, op_name(l->op), argument, l->operands, out);
}

/* An operand that the plan gathers here is gathered once for all of its readers, so that its
 * gradients are added before they are scattered. */
static void put_gathers(emitting *e, const sm_text_line *l) {
    const sm_plan_lines *all = e->told.lines;
    for (int i = 0; i < all->collectives; i++) {
        const sm_plan_collective *c = &all->collective[i];
        if (c->piece < 0 || all->piece[c->piece].kind != e->kind || c->op != SM_ALL_GATHER ||
            c->line != l - e->lines->line || strcmp(c->phase, "forward") != 0)
            continue;
        for (int k = 0; k < l->operands; k++) {
            int array = l->operand[k].array;
            const sm_text_array *a = &e->lines->array[array];
            if (a->role != SM_TEXT_ACTIVATION || strcmp(a->name, c->array) != 0) continue;
            const char *name = value_of(e, array);
            PUT(e, "    %s = at(%s, %s)\n", name, name, spec_of(e, array, false, c->axes));
        }
    }
}

static sm_status put_line(emitting *e, const sm_text_line *l) {
    const char *value = "", *names = "";
    put_gathers(e, l);
    sm_status status = line_value(e, l, &value);
    const sm_text_array *first = &e->lines->array[l->result[0].array];
    if (!status && first->typed)
        status =
            written(e, l, sm_textf(e->r, "as %s", sm_dtype_name(first->type)), &value, 1, &value);
    if (status) return status;
    for (int i = 0; i < l->results; i++)
        names = sm_textf(e->r, "%s%s%s", names, i ? ", " : "",
                         variable(e, e->lines->array[l->result[i].array].name));
    if (l->results == 1)
        PUT(e, "    %s = at(%s, %s)\n", names, value, spec_of(e, l->result[0].array, false, 0));
    else PUT(e, "    %s = %s\n", names, value);
    return SM_OK;
}

/* def layer(w, x, ids, targets): ... */
static sm_status put_function(emitting *e) {
    sm_status status = SM_OK;
    PUT(e, "\n\ndef %s(w, x, ids, targets, all):\n", variable(e, e->lines->name));
    for (int i = 0; i < e->lines->lines && !status; i++) status = put_line(e, &e->lines->line[i]);
    if (status) return status;
    const sm_text_line *last = &e->lines->line[e->lines->lines - 1];
    int output = e->lines->output >= 0 ? e->lines->output : last->result[0].array;
    PUT(e, "    return %s\n", variable(e, e->lines->array[output].name));
    return SM_OK;
}

static bool is_layers(const emitting *e) {
    int count;
    return sm_architecture_kind(e->told.architecture, e->kind, &count)->layer >= 0;
}

static sm_status put_weights(emitting *e) {
    PUT(e, "    \"%s\": {\n", e->lines->name);
    for (int i = 0; i < e->lines->arrays; i++) {
        const sm_text_array *a = &e->lines->array[i];
        if (a->role != SM_TEXT_WEIGHT || a->piece >= 0) continue;
        if (a->shared > 0)
            return refuse(e, sm_textf(e->r, "its weight %s is that of several layers", a->name));
        const char *dims = "";
        for (int k = 0; k < a->rank; k++)
            dims = sm_textf(e->r, "%s%s%s", dims, k ? " " : "", e->lines->dim[a->dim[k]].name);
        PUT(e, "        \"%s\": (\"%s\", %s),\n", a->name, dims, spec_of(e, i, is_layers(e), 0));
    }
    PUT(e, "    },\n");
    return SM_OK;
}

/* ---- sizes ---- */

/* The largest axes shrink by their least factor until the mesh has SMALL_CHIPS. */
static void shrink(emitting *e) {
    int chips = 1;
    for (int a = 0; a < SM_AXIS_COUNT; a++) {
        e->small[a] = e->told.subscript[a] ? (int)e->told.lines->degrees.axis[a] : 1;
        chips *= e->small[a];
    }
    while (chips > SMALL_CHIPS) {
        int most = 0, factor = 2;
        for (int a = 1; a < SM_AXIS_COUNT; a++)
            if (e->small[a] > e->small[most]) most = a;
        while (e->small[most] % factor) factor++;
        e->small[most] /= factor;
        chips /= factor;
    }
}

/* Sequences of a microbatch on all chips that cut the batch. */
static double sequences(const emitting *e, bool small) {
    static const int batch[] = {SM_AXIS_DATA, SM_AXIS_FSDP, SM_AXIS_EXPERT};
    double n = small ? 1 : e->plan->microbatch;
    for (int i = 0; i < 3; i++)
        n *= small ? e->small[batch[i]] : e->told.lines->degrees.axis[batch[i]];
    return n;
}

/* Sizes of all kinds: a name has one size. */
static sm_status put_sizes(emitting *e, const char **seen) {
    for (int i = 0; i < e->lines->dims; i++) {
        const sm_text_dim *d = &e->lines->dim[i];
        bool batch = strcmp(sm_dimension_role_name(d->role), "sequences") == 0;
        double whole = batch ? sequences(e, false) : d->size;
        double small = batch ? sequences(e, true) : whole < SMALL_SIZE ? whole : SMALL_SIZE;
        const char *key = sm_textf(e->r, "\"%s\": (", d->name);
        const char *line = sm_textf(e->r, "    %s%.0f, %.0f),\n", key, whole, small);
        if (strstr(*seen, line)) continue;
        if (strstr(*seen, key)) return refuse(e, sm_textf(e->r, "%s has two sizes", d->name));
        *seen = sm_textf(e->r, "%s%s", *seen, line);
    }
    return SM_OK;
}

/* ---- numbers ---- */

static double number(const emitting *e, const char *name, double otherwise) {
    double value;
    return sm_architecture_number(e->told.architecture, name, &value) ? value : otherwise;
}

/* What changes numbers beside the lines, with the value that changes nothing. */
static const struct {
    const char *name;
    double plain;
} plain_numbers[] = {{"norm_offset", 0},
                     {"embedding_scale", 1},
                     {"residual_scale", 1},
                     {"logit_scale", 1},
                     {"final_logit_softcapping", 0},
                     {"score_scale", 0},
                     {"attn_logit_softcapping", 0},
                     {"rope_interleaved", 0},
                     {"partial_rotary_factor", 1},
                     {"rope_parameters.partial_rotary_factor", 1},
                     {"rotary_pct", 1},
                     {"rotary_dim", 0},
                     {"qk_rope_head_dim", 0},
                     {"rope_local_base_freq", 0}};

/* Rotary frequencies: base^(-2i/n), stretched linearly or as LLaMA 3.1 does (its parts of the
 * spectrum by wavelength); where the config says which. */
static sm_status put_rotary(emitting *e) {
    static const char *const places[] = {"rope_parameters.", "rope_scaling."};
    const char *type = NULL, *place = "";
    for (int i = 0; i < 2 && !type; i++) {
        place = places[i];
        type = sm_architecture_word(e->told.architecture, sm_textf(e->r, "%srope_type", place));
        if (!type)
            type = sm_architecture_word(e->told.architecture, sm_textf(e->r, "%stype", place));
    }
    if (!type) type = "default";
    bool linear = strcmp(type, "linear") == 0, llama3 = strcmp(type, "llama3") == 0;
    if (!linear && !llama3 && strcmp(type, "default") != 0)
        return refuse(e, sm_textf(e->r, "rotary positions stretched by %s", type));
    const char *base = sm_textf(e->r, "%srope_theta", place);
    if (number(e, base, number(e, "rope_theta", 0)) == 0)
        PUT(e, "# The config does not say rope_theta: the usual value.\n");
    PUT(e, "THETA, STRETCH = %.9g, ", number(e, base, number(e, "rope_theta", 10000)));
    if (llama3)
        PUT(e, "(%.9g, %.9g, %.9g, %.9g)  # factor, low, high, length\n",
            number(e, sm_textf(e->r, "%sfactor", place), 1),
            number(e, sm_textf(e->r, "%slow_freq_factor", place), 1),
            number(e, sm_textf(e->r, "%shigh_freq_factor", place), 4),
            number(e, sm_textf(e->r, "%soriginal_max_position_embeddings", place),
                   number(e, "max_position_embeddings", 8192)));
    else PUT(e, "%.9g\n", linear ? number(e, sm_textf(e->r, "%sfactor", place), 1) : 1.0);
    return SM_OK;
}

static sm_status put_numbers(emitting *e) {
    for (size_t i = 0; i < sizeof plain_numbers / sizeof *plain_numbers; i++)
        if (number(e, plain_numbers[i].name, plain_numbers[i].plain) != plain_numbers[i].plain)
            return refuse(e, sm_textf(e->r, "%s of its config", plain_numbers[i].name));
    if (number(e, "rms_norm_eps", number(e, "norm_eps", 0)) == 0)
        PUT(e, "# The config does not say rms_norm_eps: the usual value.\n");
    PUT(e, "EPS = %.9g\n", number(e, "rms_norm_eps", number(e, "norm_eps", 1e-6)));
    return put_rotary(e);
}

/* ---- the whole ---- */

static sm_status set_kind(emitting *e, int kind) {
    const sm_text_lines_of of = {
        .kind = kind, .phase = SM_TEXT_TRAIN, .T = e->told.T, .S = e->told.S};
    e->kind = kind;
    return sm_architecture_lines(e->told.architecture, &of, e->r->arena, &e->lines, e->err);
}

static sm_status each_kind(emitting *e, sm_status (*put)(emitting *)) {
    sm_status status = SM_OK;
    for (int k = 0; k < sm_architecture_kinds(e->told.architecture) && !status; k++) {
        status = set_kind(e, k);
        if (!status) status = put(e);
    }
    return status;
}

static sm_status put_head(emitting *e) {
    const char *seen = "";
    int layers = 0, kinds = 0, count;
    sm_status status = SM_OK;
    for (int k = 0; k < sm_architecture_kinds(e->told.architecture) && !status; k++) {
        status = set_kind(e, k);
        if (!status) status = put_sizes(e, &seen);
        const sm_model_piece *piece = sm_architecture_kind(e->told.architecture, k, &count);
        if (!status && piece->apart) status = refuse(e, "it is beside the model");
        if (piece->layer < 0) continue;
        layers = count;
        if (kinds++ && !status) status = refuse(e, "layers of a second kind");
    }
    if (status) return status;
    PUT(e, "WHOLE = False  # True: the sizes of the model and the mesh of the plan\n");
    for (int small = 0; small < 2; small++) {
        PUT(e, small ? " else {" : "MESH = {");
        const char *comma = "";
        for (int a = 0; a < SM_AXIS_COUNT; a++) {
            if (!e->told.subscript[a]) continue;
            PUT(e, "%s\"%s\": %d", comma, sm_program_mesh()->axis[a].name,
                small ? e->small[a] : (int)e->told.lines->degrees.axis[a]);
            comma = ", ";
        }
        PUT(e, small ? "}\n" : "} if WHOLE");
    }
    PUT(e, "LAYERS = %d if WHOLE else %d\n", layers, layers < SMALL_LAYERS ? layers : SMALL_LAYERS);
    status = put_numbers(e);
    PUT(e, "# Sizes of the model and the plan, and small ones.\nSIZE = {\n%s}\n", seen);
    PUT(e, "SIZE = {name: pair[0 if WHOLE else 1] for name, pair in SIZE.items()}\n");
    PUT(e, "# Of each weight its dimensions and how it is stored; layers are stacked.\n");
    PUT(e, "WEIGHTS = {\n");
    return status;
}

/* def loss(weights, ids, targets): the pieces in their order. */
static void put_loss(emitting *e) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(e->told.architecture, &piece);
    PUT(e, "\n\ndef loss(weights, ids, targets):\n    x = None\n");
    for (int i = 0; i < n; i++) {
        const char *name = piece[i].name, *called = variable(e, name);
        if (piece[i].layer < 0)
            PUT(e, "    x = %s(weights[\"%s\"], x, ids, targets, weights)\n", called, name);
        else if (i == 0 || piece[i].kind != piece[i - 1].kind)
            PUT(e,
                "    body = remat(lambda x, w: %s(w, x, ids, targets, weights))\n"
                "    x, _ = jax.lax.scan(lambda x, w: (body(x, w), None), x, weights[\"%s\"])\n",
                called, name);
    }
    PUT(e, "    return jnp.mean(x), x\n");
}

static const char *stacked_name(const emitting *e) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(e->told.architecture, &piece);
    for (int i = 0; i < n; i++)
        if (piece[i].layer >= 0) return piece[i].name;
    return "";
}

sm_status sm_train_program(const sm_plans_shown *plans, const char **out, sm_error *err) {
    const sm_train_asked *q = plans->q;
    const sm_plan_shown *best = &plans->plan[0];
    emitting e = {.q = q, .plan = best->plan, .r = q->report, .err = err, .out = ""};
    *out = NULL;
    const char *why = sm_framework_refuses(q->in.emit, best->plan, best->plan->given);
    why = why ? why
              : sm_framework_refuses(q->in.emit, best->plan,
                                     sm_plan_keys_for(best->plan, q->in.model));
    if (why)
        return sm_fail(err, SM_BAD_INPUT, "%s cannot be told of this plan: %s",
                       sm_framework_title(q->in.emit), why);
    e.told = (sm_program_told){.architecture = q->in.model->architecture,
                               .report = q->report,
                               .lines = &best->detail.lines,
                               .T = q->job.seq,
                               .S = q->job.seq};
    sm_program_name_axes(&e.told);
    shrink(&e);
    sm_status status = put_head(&e);
    if (!status) status = each_kind(&e, put_weights);
    if (!status) PUT(&e, "}\nSTACKED = \"%s\"\n", stacked_name(&e));
    if (!status) status = each_kind(&e, put_function);
    if (status) return status;
    if (e.out_of_memory) return sm_fail_memory(err);
    put_loss(&e);
    PUT(&e, "\n");
    *out = e.out;
    return SM_OK;
}
