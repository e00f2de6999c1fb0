/* Counts from lines: parameters by component, FLOPs. A count is a sum
 * over the lines and arrays of every kind, times how many pieces are of it. */

#include "made.h"
#include "scalemodel/attention.h"

enum { MOST_PARTS = 64 };

/* What the calls of a piece's text are: they say what a weight in them is for. */
typedef struct parts {
    bool experts[MOST_PARTS], mixes[MOST_PARTS], attends[MOST_PARTS], width[MOST_PARTS];
} parts;

static int part_of(int part) { return part < MOST_PARTS ? part : MOST_PARTS - 1; }

static bool has_role(const line_maker *m, const sm_text_array *a, sm_dimension_role role) {
    for (int i = 0; i < a->rank; i++)
        if (m->dim[a->dim[i]].role == role) return true;
    return false;
}

static bool mixes(sm_operator op) {
    return op == SM_OPERATOR_ATTENTION || op == SM_OPERATOR_CACHE || op == SM_OPERATOR_STATE ||
           op == SM_OPERATOR_CONV;
}

static void look_at_parts(const line_maker *m, parts *p) {
    *p = (parts){{0}, {0}, {0}, {0}};
    for (int i = 0; i < m->arrays; i++) {
        const sm_text_array *a = &m->array[i];
        int part = part_of(m->array_origin[i].part);
        if (a->role != SM_TEXT_WEIGHT || a->piece >= 0) continue;
        if (has_role(m, a, SM_DIMENSION_EXPERTS)) p->experts[part] = true;
        if (has_role(m, a, SM_DIMENSION_WIDTH)) p->width[part] = true;
    }
    for (int i = 0; i < m->lines; i++) {
        int part = part_of(m->line[i].part);
        if (mixes(m->line[i].op)) p->mixes[part] = true;
        if (m->line[i].op == SM_OPERATOR_ATTENTION) p->attends[part] = true;
    }
}

/* The component of a weight: by what reads it, its dimensions, and the call that it stands in. */
static double *component(const line_maker *m, const parts *p, int array, sm_counts *to) {
    const sm_text_array *a = &m->array[array];
    int part = part_of(m->array_origin[array].part);
    bool taken = false;
    for (int i = 0; i < m->lines && !taken; i++)
        for (int j = 0; j < m->line[i].operands; j++)
            taken = taken ||
                    (m->line[i].op == SM_OPERATOR_TAKE && m->line[i].operand[j].array == array);
    if (a->norm) return &to->norm;
    if (taken) return &to->embedding;
    if (has_role(m, a, SM_DIMENSION_VOCABULARY)) return &to->unembedding;
    if (has_role(m, a, SM_DIMENSION_EXPERTS)) return &to->experts;
    if (part == 0) return &to->other;
    if (p->experts[part]) return has_role(m, a, SM_DIMENSION_WIDTH) ? &to->experts : &to->router;
    /* An MLP within the call that attends (Zamba, Ouro) is one by its width. */
    bool wide = p->attends[part] && has_role(m, a, SM_DIMENSION_WIDTH);
    if (p->mixes[part] && !wide) return &to->attention;
    return p->width[part] ? &to->mlp : &to->other;
}

/* The part of a weight that one token uses: of experts A of E, which is slots of an expert by
 * tokens. */
static double share_in_use(const line_maker *m, int array) {
    const sm_text_array *a = &m->array[array];
    if (!has_role(m, a, SM_DIMENSION_EXPERTS)) return 1;
    for (int i = 0; i < m->lines; i++) {
        const sm_text_line *line = &m->line[i];
        const sm_text_array *result = &m->array[line->result[0].array];
        for (int j = 0; j < line->operands; j++)
            if (line->operand[j].array == array)
                for (int k = 0; k < result->rank; k++) {
                    const sm_text_dim *dim = &m->dim[result->dim[k]];
                    if (dim->role == SM_DIMENSION_SLOTS) return fmin(1, dim->size / m->T);
                }
    }
    return 1;
}

static bool reads_weight(const line_maker *m, const sm_text_line *line) {
    for (int i = 0; i < line->operands; i++)
        if (m->array[line->operand[i].array].role == SM_TEXT_WEIGHT) return true;
    return false;
}

/* Tokens that a line is of: the positions of its stack, or the source of what is made once. */
static double tokens_of(const line_maker *m, const sm_text_line *line) {
    const sm_text_array *result = &m->array[line->result[0].array];
    double keys = 1;
    for (int i = 0; i < result->rank; i++) {
        const sm_text_dim *dim = &m->dim[result->dim[i]];
        if (dim->role == SM_DIMENSION_KEYS) keys *= dim->size;
    }
    return line->once ? keys : m->T;
}

/* FLOPs for a token: of products with weights, and of the other products. causal: see
 * sm_architecture_forward. tokens: of a sequence; 0: those that a line works on. */
static sm_forward flops_of(const line_maker *m, bool causal, double tokens) {
    sm_forward f = {0};
    for (int i = 0; i < m->lines; i++) {
        const sm_text_line *line = &m->line[i];
        double flops = line->matrix_flops / (tokens > 0 ? tokens : tokens_of(m, line));
        bool square = !causal && line->causal && line->keys > 0;
        if (line->op == SM_OPERATOR_PRODUCT && reads_weight(m, line)) f.matmul += flops;
        else if (!square) f.attention += flops;
        else
            f.attention +=
                flops / line->keys * sm_keys_met(m->T, m->S, false, line->window, line->chunk);
    }
    return f;
}

/* Does a kind of the same sizes share this weight too? */
static bool also_in(const line_maker *m, const made_kind *kind, const sm_text_array *weight) {
    if (kind->frame != m->kind->frame) return false;
    const line_maker *other = m->of_kind[kind - m->a->kind];
    for (int i = 0; i < other->arrays; i++)
        if (other->array[i].role == SM_TEXT_WEIGHT && other->array[i].shared == weight->shared &&
            strcmp(other->array[i].name, weight->name) == 0)
            return true;
    return false;
}

/* Weights of `shared M` stand M times in the whole model, however many layers use them. */
static double users(const line_maker *m, const sm_text_array *array, bool *counted) {
    double n = 0;
    for (const made_kind *k = m->a->kind; k < m->a->kind + m->a->kinds; k++) {
        if (!also_in(m, k, array)) continue;
        *counted |= k < m->kind; /* with that one */
        n += k->count;
    }
    return n;
}

static double copies(const line_maker *m, const sm_text_array *array) {
    bool counted = false;
    if (array->shared == 0) return m->kind->count;
    double n = users(m, array, &counted);
    return counted ? 0 : fmin(array->shared, n);
}

static void add_up(sm_counts *to, const sm_counts *more, double n) {
    to->total += n * more->total;
    to->active += n * more->active;
    to->embedding += n * more->embedding;
    to->unembedding += n * more->unembedding;
    to->attention += n * more->attention;
    to->mlp += n * more->mlp;
    to->experts += n * more->experts;
    to->router += n * more->router;
    to->norm += n * more->norm;
    to->other += n * more->other;
    to->matmul_active += n * more->matmul_active;
}

/* Put the weights of a kind, of all its pieces, to the counts; its own size beside. */
static void count_kind(made_kind *kind, const line_maker *m, sm_counts *to) {
    parts p;
    look_at_parts(m, &p);
    kind->total = kind->active = 0;
    for (int i = 0; i < m->arrays; i++) {
        const sm_text_array *array = &m->array[i];
        if (array->role != SM_TEXT_WEIGHT || array->piece >= 0) continue;
        sm_counts one = {.total = array->elements, .active = array->elements * share_in_use(m, i)};
        *component(m, &p, i, &one) = array->elements;
        kind->total += one.total;
        kind->active += one.active;
        add_up(to, &one, copies(m, array));
    }
    kind->matmul = flops_of(m, true, 0).matmul / 2;
    to->matmul_active += kind->count * kind->matmul;
}

/* ---- how far back caches are read, how many layers share a weight ---- */

static sm_status note(sm_architecture *a, int kind, const char *array, double said, sm_error *err) {
    for (made_note *n = a->note; n; n = n->next)
        if (n->kind == kind && strcmp(n->array, array) == 0) {
            n->value = n->value == 0 || said == 0 ? 0 : fmax(n->value, said);
            return SM_OK;
        }
    made_note *n = sm_arena_alloc(a->arena, sizeof *n);
    char *name = sm_arena_printf(a->arena, "%s", array);
    if (!n || !name) return sm_fail_memory(err);
    *n = (made_note){kind, name, said, a->note};
    a->note = n;
    return SM_OK;
}

static sm_status note_shares(sm_architecture *a, const line_maker *m, int kind, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < m->arrays; i++) {
        bool counted = false;
        if (m->array[i].shared > 0)
            status = note(a, kind, m->array[i].name,
                          fmin(1, m->array[i].shared / users(m, &m->array[i], &counted)), err);
    }
    return status;
}

/* A line looks back as far as its window, and to the start without one. */
static sm_status note_reads(sm_architecture *a, const line_maker *m, int kind, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; i < m->lines; i++) {
        const sm_text_line *line = &m->line[i];
        for (int j = 0; !status && j < line->operands; j++) {
            int at = line->operand[j].array;
            const sm_text_array *array = &m->array[at];
            if (array->role != SM_TEXT_CACHE) continue;
            double keeps = line->chunk > 0 ? line->chunk : line->window;
            const char *dot = array->piece >= 0 ? strchr(array->name, '.') : NULL;
            char name[256];
            snprintf(name, sizeof name, "%s%s", dot ? "" : m->array_origin[at].path,
                     dot ? dot + 1 : m->array_origin[at].base);
            status =
                note(a, array->piece >= 0 ? a->piece[array->piece].kind : kind, name, keeps, err);
        }
    }
    return status;
}

/* ---- the whole ---- */

enum { COUNTED_AT = 4096 }; /* tokens; the counts do not depend on it */

static sm_status make_all(const sm_architecture *a, sm_text_lines_of of, sm_arena *arena,
                          line_maker ***out, sm_error *err) {
    sm_status status = SM_OK;
    *out = sm_arena_array(arena, (size_t)a->kinds + 1, sizeof **out);
    if (!*out) return sm_fail_memory(err);
    for (of.kind = 0; !status && of.kind < a->kinds; of.kind++)
        if (!(*out)[of.kind]) status = line_make(a, &of, arena, *out, err);
    return status;
}

/* What is apart goes by its stack's name where all of that is, else by its own. */
static struct made_apart *apart_of(sm_architecture *a, const sm_model_piece *piece) {
    const char *name = piece->stack[0] ? piece->stack : piece->name;
    for (int i = 0; i < a->pieces; i++)
        if (!a->piece[i].apart && strcmp(a->piece[i].stack, piece->stack) == 0) name = piece->name;
    for (int i = 0; i < a->aparts; i++)
        if (strcmp(a->apart[i].name, name) == 0) return &a->apart[i];
    a->apart[a->aparts].name = name;
    return &a->apart[a->aparts++];
}

static sm_status count_training(sm_architecture *a, sm_arena *arena, sm_error *err) {
    line_maker **train;
    const sm_text_lines_of of = {.phase = SM_TEXT_TRAIN, .T = COUNTED_AT, .S = COUNTED_AT};
    sm_status status = make_all(a, of, arena, &train, err);
    for (int i = 0; !status && i < a->kinds; i++) {
        const sm_model_piece *piece = &a->piece[a->kind[i].first];
        sm_counts apart = {0};
        count_kind(&a->kind[i], train[i], piece->apart ? &apart : &a->counts);
        if (piece->apart) apart_of(a, piece)->params += apart.total;
        a->counts.apart += apart.total;
        status = note_reads(a, train[i], i, err);
        if (!status) status = note_shares(a, train[i], i, err);
    }
    return status;
}

sm_status made_count(sm_architecture *a, sm_error *err) {
    sm_arena *arena = sm_arena_new();
    a->apart = sm_arena_array(a->arena, (size_t)a->kinds + 1, sizeof *a->apart);
    sm_status status = arena && a->apart ? count_training(a, arena, err) : sm_fail_memory(err);
    sm_arena_free(arena);
    if (status) return status;
    a->counts.active = rint(a->counts.active);
    a->counts.matmul_active = rint(a->counts.matmul_active);
    if (a->counts.total < 9007199254740992.0) return SM_OK; /* 2^53: exact below */
    return sm_fail_at(err, &a->source, (sm_span){a->root->at, 1},
                      "the model would have %.4g parameters; at most 2^53 are counted",
                      a->counts.total);
}

const sm_counts *sm_architecture_counts(const sm_architecture *a) { return &a->counts; }

double sm_architecture_kind_params(const sm_architecture *a, int kind, bool active) {
    if (kind < 0 || kind >= a->kinds) return 0;
    return active ? rint(a->kind[kind].active) : a->kind[kind].total;
}

const char *sm_architecture_apart(const sm_architecture *a, int i, double *params) {
    if (i < 0 || i >= a->aparts) return NULL;
    *params = a->apart[i].params;
    return a->apart[i].name;
}

/* ---- FLOPs, of any length ---- */

sm_status sm_architecture_forward(const sm_architecture *a, double T, bool causal, sm_forward *out,
                                  sm_error *err) {
    line_maker **of_kind;
    sm_arena *arena = sm_arena_new();
    *out = (sm_forward){0};
    if (!arena) return sm_fail_memory(err);
    const sm_text_lines_of of = {.phase = SM_TEXT_TRAIN, .T = T, .S = T};
    sm_status status = make_all(a, of, arena, &of_kind, err);
    out->tokens = T; /* of the last stack: what it reads of others is work of its own sequence */
    for (int i = 0; !status && i < a->pieces; i++)
        if (!a->piece[i].apart) out->tokens = of_kind[a->piece[i].kind]->T;
    for (int i = 0; !status && i < a->kinds; i++) {
        const made_kind *kind = &a->kind[i];
        if (a->piece[kind->first].apart) continue;
        sm_forward one = flops_of(of_kind[i], causal, out->tokens);
        out->matmul += kind->count * one.matmul;
        out->attention += kind->count * one.attention;
    }
    out->total = out->matmul + out->attention;
    sm_arena_free(arena);
    return status;
}
