/* sm_model_parse: a config.json, by its family, to a model: what the rest of the product asks of
 * it, worked out from the lines of its layers. */
#include "stored.h"
#include <assert.h>

/* What a kind of layer is, from its lines: heads and their sizes from the operands of attention,
 * widths and experts from the roles of the dimensions of weights, the cache from its arrays. */

static sm_status facts_lines(const sm_model *m, sm_arena *arena, model_lines *lines,
                             sm_error *err) {
    const int all = m->kinds + m->outside;
    assert(m->kinds > 0 && m->kinds <= SM_MAX_LAYER_KINDS && all > 0);
    sm_status status = SM_OK;
    for (int k = 0; !status && k < all; k++) {
        const sm_text_lines_of of = {
            .kind = m->lines_of[k], .phase = SM_TEXT_DECODE, .T = 1, .S = 1};
        status = sm_architecture_lines(m->architecture, &of, arena, &lines->of[k], err);
    }
    return status;
}

/* ---- arrays ---- */

static double size_of(const sm_text_lines *l, const uint8_t *dim, int rank,
                      sm_dimension_role role) {
    double size = 0;
    for (int i = 0; i < rank; i++)
        if (l->dim[dim[i]].role == role) size = (size > 0 ? size : 1) * l->dim[dim[i]].size;
    return size;
}

double facts_size(const sm_text_lines *l, int array, sm_dimension_role role) {
    return size_of(l, l->array[array].dim, l->array[array].rank, role);
}

static double mention_size(const sm_text_lines *l, const sm_mention *m, sm_dimension_role role) {
    return size_of(l, m->dim, l->array[m->array].rank, role);
}

bool facts_is_own_weight(const sm_text_array *a) {
    return a->role == SM_TEXT_WEIGHT && a->piece < 0;
}

/* "ffn" of "ffn.wg", "" of "n1". */
static int scope_of(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? (int)(dot - name) : 0;
}

bool facts_scope_has(const sm_text_lines *l, const char *name, sm_dimension_role role) {
    int n = scope_of(name);
    for (int i = 0; i < l->arrays; i++) {
        const sm_text_array *a = &l->array[i];
        if (a->role == SM_TEXT_WEIGHT && scope_of(a->name) == n &&
            strncmp(a->name, name, (size_t)n) == 0 && facts_size(l, i, role) > 0)
            return true;
    }
    return false;
}

static int whole(double size) { return (int)fmin(fmax(rint(size), 0), 1 << 30); }

/* ---- attention ---- */

/* Of the first attention of a layer. Heads count whether or not the letters of keys have them. */
static void read_attention(const sm_text_lines *l, const sm_text_line *line, sm_layer_kind *k) {
    const sm_mention *q = &line->operand[0], *key = &line->operand[1];
    const sm_mention *value = &line->operand[2 * line->scores];
    double heads = fmax(1, mention_size(l, q, SM_DIMENSION_HEADS));
    k->N = whole(heads * fmax(1, mention_size(l, q, SM_DIMENSION_GROUP)));
    k->K = whole(fmax(1, mention_size(l, key, SM_DIMENSION_HEADS)));
    for (int i = 0; i < line->scores; i++)
        k->H += whole(fmax(1, mention_size(l, &line->operand[2 * i], SM_DIMENSION_WHOLE)));
    k->V_head = whole(fmax(1, mention_size(l, value, SM_DIMENSION_WHOLE)));
    k->window = whole(line->window);
    k->chunk = whole(line->chunk);
}

static double bytes_of(const sm_text_array *a) {
    return a->elements * (a->typed ? sm_dtype_bytes(a->type) : 2);
}

/* What a token leaves in the caches of the layer's own, which are latent where no head has its part
 * of them, and what a sequence keeps whatever its length. */
static void read_kept(const sm_text_lines *l, sm_layer_kind *k) {
    bool heads = false;
    double first = 0;
    for (int i = 0; i < l->arrays; i++) {
        const sm_text_array *a = &l->array[i];
        if (a->piece >= 0) continue;
        if (a->role == SM_TEXT_STATE) k->state += bytes_of(a);
        if (a->role != SM_TEXT_CACHE) continue;
        if (a->once) {
            k->source += a->elements;
            continue;
        }
        heads = heads || facts_size(l, i, SM_DIMENSION_HEADS) > 0;
        if (first <= 0) first = a->elements;
        if (a->typed) k->cached_typed += a->elements * sm_dtype_bytes(a->type);
        else k->cached += a->elements;
        if (a->typed || a->keeps <= 0) continue;
        k->bounded += a->elements;
        k->reach = fmax(k->reach, a->keeps);
    }
    for (int i = 0; i < l->lines; i++) /* a convolution looks back on all its taps but one */
        if (l->line[i].op == SM_OPERATOR_CONV && l->line[i].taps > 1)
            k->state += bytes_of(&l->array[l->line[i].result[0].array]) * (l->line[i].taps - 1);
    if (k->cached <= 0 || heads || k->N == 0) return;
    k->attention = SM_ATTENTION_MLA;
    k->kv_rank = whole(first);
    k->rope_H = whole(k->cached - first);
}

/* ---- MLP and experts ---- */

static void read_widths(const sm_text_lines *l, sm_layer_kind *k) {
    double shared = 0;
    for (int i = 0; i < l->arrays; i++) {
        const sm_text_array *a = &l->array[i];
        if (!facts_is_own_weight(a) || a->rank < 2) continue;
        double experts = facts_size(l, i, SM_DIMENSION_EXPERTS);
        double width = facts_size(l, i, SM_DIMENSION_WIDTH);
        if (width <= 0) continue;
        if (experts > 0) {
            k->E = k->E_held = whole(experts);
            k->F_expert = whole(width);
        } else if (facts_scope_has(l, a->name, SM_DIMENSION_EXPERTS)) {
            shared = width;
        } else if (!facts_scope_has(l, a->name, SM_DIMENSION_HEADS)) {
            k->F = whole(width);
        }
    }
    bool parts = k->F_expert > 0 && fmod(shared, k->F_expert) == 0;
    k->E_shared = shared <= 0 ? 0 : parts ? whole(shared / k->F_expert) : 1;
    k->F_shared = shared <= 0 ? 0 : whole(shared / k->E_shared);
}

/* ---- kinds ---- */

/* Do tokens meet otherwise than by attention? */
static bool is_recurrent(const sm_text_lines *l) {
    for (int i = 0; i < l->lines; i++) {
        sm_operator op = l->line[i].op;
        if (op == SM_OPERATOR_STATE || op == SM_OPERATOR_CONV || op == SM_OPERATOR_CUMSUM)
            return true;
    }
    return false;
}

static void name_kind(const sm_model *m, const sm_text_lines *l, sm_layer_kind *k) {
    bool mixed = false;
    for (int i = 0; i < m->kinds; i++)
        mixed = mixed || m->kind[i].window > 0 || m->kind[i].chunk > 0;
    const char *reach = k->N == 0               ? (is_recurrent(l) ? "recurrent " : "")
                        : k->chunk > 0          ? "chunked "
                        : k->window > 0         ? "local "
                        : mixed && m->kinds > 1 ? "global "
                                                : "";
    const char *mlp = k->E == 0 && k->F == 0 ? "mixer"
                      : k->E == 0            ? "dense"
                      : k->F > 0             ? "dense+moe"
                                             : "moe";
    bool reuses = k->N > 0 && k->cached <= 0;
    snprintf(k->name, sizeof k->name, "%s%s%s", reach, mlp, reuses ? " reuse" : "");
}

static double model_width(const sm_text_lines *l) {
    for (int i = 0; i < l->arrays; i++)
        if (facts_size(l, i, SM_DIMENSION_MODEL) > 0 && l->array[i].role == SM_TEXT_ACTIVATION)
            return facts_size(l, i, SM_DIMENSION_MODEL);
    return 0;
}

static int common_size(const sm_text_lines *l, sm_dimension_role role) {
    int common = 0;
    for (int d = 0; d < l->dims; d++)
        if (l->dim[d].role == role && l->dim[d].size >= 1)
            common = sm_common_factor(whole(l->dim[d].size), common);
    return common;
}

/* Fill in the kinds and sizes. */
static void facts_of_model(sm_model *m, const model_lines *lines) {
    const sm_text_lines *const *outside = &lines->of[m->kinds], *head = outside[m->outside - 1];
    m->D = whole(model_width(lines->of[0]));
    for (int k = 0; k < m->kinds; k++) {
        const sm_text_lines *l = lines->of[k];
        sm_layer_kind *kind = &m->kind[k];
        *kind = (sm_layer_kind){.attention = SM_ATTENTION_GQA};
        for (int i = 0; i < l->lines; i++) {
            const sm_text_line *line = &l->line[i];
            const sm_mention *chosen = line->operands > 1 ? &line->operand[1] : NULL;
            if (line->op == SM_OPERATOR_ATTENTION && kind->N == 0) read_attention(l, line, kind);
            if (line->op == SM_OPERATOR_DISPATCH && chosen)
                kind->k_top = whole(l->dim[chosen->dim[l->array[chosen->array].rank - 1]].size);
        }
        bool scans = false;
        kind->heads = common_size(l, SM_DIMENSION_HEADS);
        kind->groups = common_size(l, SM_DIMENSION_GROUP);
        for (int i = 0; i < l->lines; i++) scans = scans || l->line[i].op == SM_OPERATOR_STATE;
        if (scans)
            kind->scanned = kind->heads > 0 ? kind->heads : common_size(l, SM_DIMENSION_WIDTH);
        read_kept(l, kind);
        read_widths(l, kind);
    }
    for (int k = 0; k < m->kinds; k++) name_kind(m, lines->of[k], &m->kind[k]);
    for (int k = m->outside - 1; k >= 0; k--) { /* the first: tables of words before may follow */
        for (int i = outside[k]->arrays - 1; i >= 0; i--) {
            double words = facts_size(outside[k], i, SM_DIMENSION_VOCABULARY);
            if (outside[k]->array[i].role == SM_TEXT_WEIGHT && words > 0) m->V = whole(words);
        }
        for (int i = 0; i < outside[k]->lines; i++)
            m->attends_outside |= outside[k]->line[i].op == SM_OPERATOR_ATTENTION;
    }
    for (int i = 0; i < head->arrays; i++)
        m->tied = m->tied || (head->array[i].role == SM_TEXT_WEIGHT && head->array[i].piece >= 0);
}

const char *sm_model_name(const char *path, size_t *length) {
    const char *end = path + strlen(path);
    if (end - path > 12 && strcmp(end - 12, "/config.json") == 0) end -= 12;
    else if (end - path > 5 && strcmp(end - 5, ".json") == 0) end -= 5;
    const char *start = end;
    while (start > path && start[-1] != '/') start--;
    *length = (size_t)(end - start);
    return start;
}

static sm_status fail(const sm_source *source, sm_error *err, const char *what, int most) {
    return sm_fail_at(err, source, (sm_span){0, 1}, "the model has more than %d %s", most, what);
}

/* Layers in order, their kinds as they are met; of the other pieces the first is the embedding, the
 * last one the head. */
static sm_status find_pieces(const sm_source *source, sm_model *m, sm_error *err) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(m->architecture, &piece), outside[SM_MAX_OUTSIDE];
    for (int i = 0; i < n; i++) {
        if (piece[i].apart) continue;
        if (piece[i].layer < 0) {
            if (m->outside == SM_MAX_OUTSIDE)
                return fail(source, err, "pieces outside of layers", SM_MAX_OUTSIDE);
            m->out[m->outside].piece = i;
            m->out[m->outside].before = m->L;
            outside[m->outside++] = piece[i].kind;
            continue;
        }
        int k = 0;
        while (k < m->kinds && m->lines_of[k] != piece[i].kind) k++;
        if (k == SM_MAX_LAYER_KINDS)
            return fail(source, err, "kinds of layers", SM_MAX_LAYER_KINDS);
        if (m->L == SM_MAX_LAYERS) return fail(source, err, "layers", SM_MAX_LAYERS);
        if (k == m->kinds) m->lines_of[m->kinds++] = piece[i].kind;
        m->layer[m->L++] = (uint8_t)k;
    }
    if (m->L > 0 && m->outside > 0) {
        memcpy(&m->lines_of[m->kinds], outside, (size_t)m->outside * sizeof *outside);
        return SM_OK;
    }
    return sm_fail_at(err, source, (sm_span){0, 1}, "the model has no layers");
}

/* What is said of the model beside its counts: the family's notes, what is counted apart, and a
 * type that no family has: of the classes of `architectures` its config may mean other things. */
static const char *note_of(const sm_library *families, const char *family, const sm_architecture *a,
                           sm_arena *arena) {
    const char *said = sm_architecture_word(a, "note"), *note = said ? said : "", *name;
    const char *of_class = sm_architecture_word(a, "class_note");
    if (of_class) note = sm_arena_printf(arena, "%s%s%s", note, note[0] ? "; " : "", of_class);
    const char *type = sm_architecture_type(a);
    double params;
    char count[32];
    for (int i = 0; note && (name = sm_architecture_apart(a, i, &params)) != NULL; i++)
        note = sm_arena_printf(arena, "%s%s%s (%s parameters) is counted apart", note,
                               note[0] ? "; " : "", name,
                               sm_format_count(count, sizeof count, params));
    if (!note || family || !type[0] || sm_library_has_family(families, type)) return note;
    return sm_arena_printf(arena,
                           "%s%smodel_type \"%.60s\" is not known: read as a %s model, as the rest "
                           "of the config says",
                           note, note[0] ? "; " : "", type, sm_architecture_family(a));
}

static double number(const sm_architecture *a, const char *name, double otherwise) {
    double value;
    return sm_architecture_number(a, name, &value) ? value : otherwise;
}

/* What no dimension says by itself. */
static sm_status check(const sm_source *source, const sm_model *m, sm_error *err) {
    for (int k = 0; k < m->kinds; k++)
        if (m->kind[k].k_top > m->kind[k].E)
            return sm_fail_at(err, source, (sm_span){0, 1},
                              "a token goes to %d experts, and a layer has %d", m->kind[k].k_top,
                              m->kind[k].E);
    return SM_OK;
}

sm_status sm_model_parse(const sm_library *families, const char *family, const sm_source *source,
                         sm_arena *arena, sm_model *m, sm_error *err) {
    memset(m, 0, sizeof *m);
    m->note = m->stored.method = "";
    if (!families) families = sm_library_shipped();
    sm_status status = sm_architecture_new(families, source, family, arena, &m->architecture, err);
    if (status) return status;
    size_t length;
    const char *name = sm_model_name(source->name ? source->name : "", &length);
    snprintf(m->name, sizeof m->name, "%.*s", length > 90 ? 90 : (int)length, name);
    const sm_architecture *a = m->architecture;
    double longest = number(a, "max_position_embeddings", 0);
    snprintf(m->family, sizeof m->family, "%s", sm_architecture_family(a));
    m->max_seq = longest >= 1 && longest <= 1 << 30 ? (int)longest : 0;
    m->causal = number(a, "causal", 1) != 0;
    m->active_omits_embedding = number(a, "active_omits_embedding", 0) != 0;
    const char *note = note_of(families, family, m->architecture, arena);
    if (!note) return sm_fail_memory(err);
    m->note = note;
    model_lines lines;
    status = find_pieces(source, m, err);
    if (!status) status = facts_lines(m, arena, &lines, err);
    if (status) return status;
    facts_of_model(m, &lines);
    status = check(source, m, err);
    if (status) return status;
    return stored_read(source, &lines, arena, m, err);
}

sm_status sm_model_pad(const sm_model *model, const sm_padding *padding, sm_arena *arena,
                       sm_model *padded, sm_error *err) {
    model_lines lines;
    *padded = *model;
    sm_status status =
        sm_architecture_pad(model->architecture, padding, arena, &padded->architecture, err);
    if (!status) status = facts_lines(padded, arena, &lines, err);
    if (status) return status;
    facts_of_model(padded, &lines);
    for (int k = 0; k < model->kinds; k++) {
        padded->kind[k].E = model->kind[k].E; /* no token goes to an expert of padding */
        padded->kind[k].expert_bytes = model->kind[k].expert_bytes;
        padded->kind[k].other_bytes = model->kind[k].other_bytes;
    }
    return SM_OK;
}
