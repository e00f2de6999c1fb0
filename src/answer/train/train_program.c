/* train_program: a model under a plan as a program of JAX: its sizes and mesh, its weights and how
 * they are stored, a function for each kind of piece, the pieces in their order. */
#include "train_told.h"

#include <math.h>
#include <string.h>

enum { SMALL_SIZE = 256, SMALL_CHIPS = 8, SMALL_LAYERS = 2 };

static sm_status put_weights(sm_told *e) {
    const char *first = !sm_told_is_layers(e)     ? ""
                        : e->degree[PIPELINE] > 1 ? "\"pipeline\", "
                                                  : "None, ";
    PUT(e, "    \"%s\": {\n", sm_told_kind(e, e->kind));
    for (int i = 0; i < e->lines->arrays; i++) {
        const sm_text_array *a = &e->lines->array[i];
        if (a->role != SM_TEXT_WEIGHT || a->piece >= 0) continue;
        if (first[0] == 0 && e->degree[PIPELINE] > 1 && e->program->tensor_of[i] < 0)
            return sm_told_refuse(e, sm_textf(e->r, "%s is on two stages alone", a->name));
        if (a->shared > 0)
            return sm_told_refuse(
                e, sm_textf(e->r, "its weight %s is that of several layers", a->name));
        const char *dims = "";
        for (int k = 0; k < a->rank; k++)
            dims = sm_textf(e->r, "%s%s%s", dims, k ? " " : "", e->lines->dim[a->dim[k]].name);
        const char *partial = sm_told_axes(e, sm_told_partial(e, i));
        PUT(e, "        \"%s\": (\"%s\", P(%s%s), %s),\n", a->name, dims, first, sm_told_spec(e, i),
            partial);
    }
    PUT(e, "    },\n");
    return SM_OK;
}

/* ---- sizes ---- */

/* The largest axes shrink by their least factor until the mesh has SMALL_CHIPS. */
static void shrink(sm_told *e) {
    int chips = 1;
    for (int a = 0; a < AXES; a++) {
        e->degree[a] = a == PIPELINE ? e->plan->pipeline : (int)e->told.lines->degrees.axis[a];
        e->small[a] = e->degree[a];
        chips *= e->small[a];
    }
    while (chips > SMALL_CHIPS) {
        int most = 0, factor = 2;
        for (int a = 1; a < AXES; a++)
            if (e->small[a] > e->small[most]) most = a;
        while (e->small[most] % factor) factor++;
        e->small[most] /= factor;
        chips /= factor;
    }
}

/* Sequences of a microbatch on all chips that cut the batch. */
static double sequences(const sm_told *e, bool small) {
    static const int batch[] = {SM_AXIS_DATA, SM_AXIS_FSDP, SM_AXIS_EXPERT};
    double n = small ? 1 : e->plan->microbatch;
    for (int i = 0; i < 3; i++) n *= small ? e->small[batch[i]] : e->degree[batch[i]];
    return n;
}

/* Sizes of all kinds: a name has one size. */
static sm_status put_sizes(sm_told *e, const char **seen) {
    for (int i = 0; i < e->lines->dims; i++) {
        const sm_text_dim *d = &e->lines->dim[i];
        bool batch = strcmp(sm_dimension_role_name(d->role), "sequences") == 0;
        double whole = batch ? sequences(e, false) : d->size;
        double small = batch ? sequences(e, true) : whole < SMALL_SIZE ? whole : SMALL_SIZE;
        const char *key = sm_textf(e->r, "\"%s\": (", d->name);
        const char *line = sm_textf(e->r, "    %s%.0f, %.0f),\n", key, whole, small);
        if (strstr(*seen, line)) continue;
        if (strstr(*seen, key))
            return sm_told_refuse(e, sm_textf(e->r, "%s has two sizes", d->name));
        *seen = sm_textf(e->r, "%s%s", *seen, line);
    }
    return SM_OK;
}

/* ---- numbers ---- */

double sm_told_number(const sm_told *e, const char *name, double otherwise) {
    double value;
    return sm_architecture_number(e->told.architecture, name, &value) ? value : otherwise;
}

/* What changes numbers beside the lines, where it is not 0, and has no translation. */
static sm_status check_numbers(const sm_told *e) {
    static const char *const untold[] = {"bare_norm_epsilon", "alibi_bias_max", "gate_limit",
                                         "qk_rope_head_dim", "norm_epsilon.n1"};
    for (int i = 0; i < 5; i++)
        if (sm_told_number(e, untold[i], 0) != 0)
            return sm_told_refuse(e, sm_textf(e->r, "%s of its config", untold[i]));
    return e->q->in.model->causal ? SM_OK : sm_told_refuse(e, "it sees both ways");
}

/* Facts of the config and its family that the functions of the framework's file ask for. */
static sm_status put_facts(sm_told *e) {
    static const char *const known[] = {"default", "linear",  "llama3",
                                        "yarn",    "sigmoid", "softmax"};
    const char *left = sm_framework_facts(e->q->in.emit), *word;
    PUT(e, "FACT = {\n");
    for (size_t n, is = 0; (n = sm_next_word(&left, &word)) > 0; is = 0) {
        const char *name = sm_textf(e->r, "%.*s", (int)n, word);
        const char *said = sm_architecture_word(e->told.architecture, name);
        double value = sm_told_number(e, name, NAN);
        while (said && is < 6 && strcmp(known[is], said) != 0) is++;
        if (is == 6) return sm_told_refuse(e, sm_textf(e->r, "%s is %s", name, said));
        if (said) PUT(e, "    \"%s\": \"%s\",\n", name, said);
        else if (!isnan(value)) PUT(e, "    \"%s\": %.9g,\n", name, value);
    }
    PUT(e, "}\n");
    return SM_OK;
}

/* ---- the whole ---- */

static sm_status each_kind(sm_told *e, sm_status (*put)(sm_told *)) {
    sm_status status = SM_OK;
    for (int k = 0; k < sm_architecture_kinds(e->told.architecture) && !status; k++) {
        status = sm_told_set_kind(e, k);
        if (!status) status = put(e);
    }
    return status;
}

/* Layers of a kind have the same number on every stage. */
static sm_status check_pieces(const sm_told *e) {
    int kinds = 0, count;
    for (int k = 0; k < sm_architecture_kinds(e->told.architecture); k++) {
        const sm_model_piece *first = sm_architecture_kind(e->told.architecture, k, &count);
        if (first->apart) return sm_told_refuse(e, "a part stands beside its layers");
        if (first->layer < 0) continue;
        kinds++;
        if (count % e->degree[PIPELINE])
            return sm_told_refuse(
                e, sm_textf(e->r, "%d layers on %d stages", count, e->degree[PIPELINE]));
    }
    if (kinds > 1 && e->degree[PIPELINE] > 1)
        return sm_told_refuse(e, "layers of a second kind in a pipeline");
    return SM_OK;
}

static void put_mesh(sm_told *e) {
    static const int order[AXES] = {PIPELINE,       SM_AXIS_DATA,    SM_AXIS_FSDP,
                                    SM_AXIS_EXPERT, SM_AXIS_CONTEXT, SM_AXIS_TENSOR_W,
                                    SM_AXIS_TENSOR, SM_AXIS_TENSOR_Q};
    for (int small = 0; small < 2; small++) {
        const char *comma = "";
        PUT(e, small ? " else {" : "MESH = {");
        for (int i = 0; i < AXES; i++) {
            if (e->degree[order[i]] == 1) continue;
            PUT(e, "%s\"%s\": %d", comma, sm_told_axis_name(order[i]),
                small ? e->small[order[i]] : e->degree[order[i]]);
            comma = ", ";
        }
        PUT(e, small ? "}\n" : "} if WHOLE");
    }
}

static sm_status put_head(sm_told *e) {
    const char *seen = "", *layers = "";
    int count;
    sm_status status = check_pieces(e);
    if (!status) status = check_numbers(e);
    for (int k = 0; k < sm_architecture_kinds(e->told.architecture) && !status; k++) {
        status = sm_told_set_kind(e, k);
        if (!status) status = put_sizes(e, &seen);
        const sm_model_piece *piece = sm_architecture_kind(e->told.architecture, k, &count);
        if (piece->layer < 0) continue;
        int few = SMALL_LAYERS < e->small[PIPELINE] ? e->small[PIPELINE] : SMALL_LAYERS;
        layers = sm_textf(e->r, "%s%s\"%s\": %d if WHOLE else %d", layers, layers[0] ? ", " : "",
                          sm_told_kind(e, k), count, count < few ? count : few);
    }
    if (status) return status;
    PUT(e, "WHOLE = False  # True: the sizes of the model and the mesh of the plan\n");
    put_mesh(e);
    PUT(e, "LAYERS = {%s}\n", layers);
    status = put_facts(e);
    PUT(e, "# Sizes of the model and the plan, and small ones; B: of a microbatch on all chips.\n");
    PUT(e, "SIZE = {\n%s}\n", seen);
    PUT(e, "SIZE = {name: pair[0 if WHOLE else 1] for name, pair in SIZE.items()}\n");
    PUT(e,
        "# Of each weight its dimensions, how it is stored, layers stacked, and over which axes\n"
        "# its gradient is a partial sum when a microbatch is done.\n");
    PUT(e, "WEIGHTS = {\n");
    return status;
}

/* How the ids come, and the losses go, [microbatch, sequence, position]; axes over which the
 * residual stream differs. */
static sm_status put_streams(sm_told *e) {
    const sm_text_lines *l = e->lines;
    const char *name = NULL;
    int array = -1;
    for (int i = 0; i < l->arrays; i++)
        if (l->array[i].role == SM_TEXT_IDS) name = "IDS", array = i;
    if (sm_told_is_layers(e)) name = "STREAM", array = l->input;
    else if (l->lines && l->line[l->lines - 1].op == SM_OPERATOR_CROSS_ENTROPY)
        name = "LOSSES", array = l->line[l->lines - 1].result[0].array;
    if (!name || array < 0) return SM_OK;
    if (sm_told_is_layers(e))
        PUT(e, "STREAM = names(%s)\n", sm_told_axes(e, sm_told_cut_by(e, array)));
    else PUT(e, "%s = P(None, %s)\n", name, sm_told_spec(e, array));
    return SM_OK;
}

/* Those of a kind that come in a row, of all layers of it. */
static const char *row_of(const sm_told *e, const sm_model_piece *piece, int i, int n) {
    int before = 0, row = 0, count;
    for (int k = 0; k < i; k++) before += piece[k].kind == piece[i].kind;
    while (i + row < n && piece[i + row].kind == piece[i].kind) row++;
    sm_architecture_kind(e->told.architecture, piece[i].kind, &count);
    const char *all = sm_textf(e->r, "weights[\"%s\"]", sm_told_kind(e, piece[i].kind));
    if (row == count) return all;
    return sm_textf(e->r, "jax.tree.map(lambda w: w[%d:%d], %s)", before, before + row, all);
}

/* Pieces from the `from`-th on, until layers begin or end. */
static int put_pieces(sm_told *e, int from, bool layers) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(e->told.architecture, &piece), i = from;
    for (; i < n && (piece[i].layer >= 0) == layers; i++) {
        const char *name = sm_told_kind(e, piece[i].kind), *called = sm_told_variable(e, name);
        if (!layers)
            PUT(e, "    x = remat(%s)(weights[\"%s\"], x, ids, targets, weights)\n", called, name);
        else if (i == from || piece[i].kind != piece[i - 1].kind)
            PUT(e,
                "    body = remat(lambda x, w: %s(w, x, None, None, weights))\n"
                "    x, _ = jax.lax.scan(lambda x, w: (body(x, w), None), x, %s)\n",
                called, row_of(e, piece, i, n));
    }
    PUT(e, "    return x\n");
    return i;
}

/* The pieces in their order: what is before the layers, the layers, what is after them. */
static void put_parts(sm_told *e) {
    PUT(e, "\n\ndef enter(weights, ids):\n    x, targets = None, None\n");
    int at = put_pieces(e, 0, false);
    PUT(e, "\n\ndef layers(weights, x):\n");
    at = put_pieces(e, at, true);
    PUT(e, "\n\ndef leave(weights, x, targets):\n    ids = None\n");
    put_pieces(e, at, false);
}

sm_status sm_train_program(const sm_plans_shown *plans, const char **out, sm_error *err) {
    const sm_train_asked *q = plans->q;
    const sm_plan_shown *best = &plans->plan[0];
    sm_told e = {.q = q,
                 .plan = best->plan,
                 .r = q->report,
                 .err = err,
                 .out = "",
                 .mesh = *sm_program_mesh()};
    *out = NULL;
    const uint64_t keys = sm_plan_keys_for(best->plan, q->in.model);
    const sm_plan_job job = {q->in.model, q->in.system, plans->sequences};
    const char *why = sm_framework_refuses(q->in.emit, best->plan, best->plan->given, &job);
    why = why ? why : sm_framework_refuses(q->in.emit, best->plan, keys, &job);
    if (why)
        return sm_fail(err, SM_BAD_INPUT, "%s cannot be told of this plan: %s",
                       sm_framework_title(q->in.emit), why);
    e.told = (sm_program_told){.architecture = q->in.model->architecture,
                               .report = q->report,
                               .lines = &best->detail.lines,
                               .T = q->job.seq,
                               .S = q->job.seq};
    shrink(&e);
    for (int a = 0; a < SM_AXIS_COUNT; a++) e.mesh.axis[a].size = e.degree[a];
    sm_status status = put_head(&e);
    if (!status) status = each_kind(&e, put_weights);
    if (!status) PUT(&e, "}\n");
    if (!status) status = each_kind(&e, put_streams);
    if (!status) status = each_kind(&e, sm_told_function);
    if (!status) put_parts(&e);
    sm_task_list_free(&e.tasks);
    if (!status) *out = e.out;
    return status;
}
