/* sm_model_parse: a config.json, by its family, to a model: what the rest of the product asks of
 * it, worked out from the lines of its layers. */
#include "model_facts.h"
#include "stored.h"

#include <stdio.h>
#include <string.h>

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

/* Layers in order, their kinds as they are met; the first other piece is the embedding, the last
 * one the head. */
static sm_status find_pieces(const sm_source *source, sm_model *m, sm_error *err) {
    const sm_model_piece *piece;
    int n = sm_architecture_pieces(m->architecture, &piece), outside[2] = {-1, -1};
    for (int i = 0; i < n; i++) {
        if (piece[i].apart) continue;
        if (piece[i].layer < 0) {
            if (outside[0] < 0) outside[0] = piece[i].kind;
            outside[1] = piece[i].kind;
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
    memcpy(&m->lines_of[m->kinds], outside, sizeof outside);
    if (m->L > 0 && outside[0] >= 0) return SM_OK;
    return sm_fail_at(err, source, (sm_span){0, 1}, "the model has no layers");
}

/* What is said of the model beside its counts: the family's note, and what is counted apart. */
static const char *note_of(const sm_architecture *a, sm_arena *arena) {
    const char *said = sm_architecture_word(a, "note"), *note = said ? said : "", *name;
    double params;
    char count[32];
    for (int i = 0; note && (name = sm_architecture_apart(a, i, &params)) != NULL; i++)
        note = sm_arena_printf(arena, "%s%s%s (%s parameters) is counted apart", note,
                               note[0] ? "; " : "", name,
                               sm_format_count(count, sizeof count, params));
    return note;
}

static double number(const sm_architecture *a, const char *name, double otherwise) {
    double value;
    return sm_architecture_number(a, name, &value) ? value : otherwise;
}

static void read_facts(sm_model *m) {
    const sm_architecture *a = m->architecture;
    double longest = number(a, "max_position_embeddings", 0);
    snprintf(m->family, sizeof m->family, "%s", sm_architecture_family(a));
    m->max_seq = longest >= 1 && longest <= 1 << 30 ? (int)longest : 0;
    m->causal = number(a, "causal", 1) != 0;
    m->active_omits_embedding = number(a, "active_omits_embedding", 0) != 0;
    m->rope_theta = number(a, "rope_theta", 0);
    m->norm_epsilon = number(a, "rms_norm_eps", 0);
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
    sm_status status = families ? SM_OK : sm_library_shipped(arena, &families, err);
    if (!status)
        status = sm_architecture_new(families, source, family, arena, &m->architecture, err);
    if (status) return status;
    size_t length;
    const char *name = sm_model_name(source->name ? source->name : "", &length);
    snprintf(m->name, sizeof m->name, "%.*s", length > 90 ? 90 : (int)length, name);
    read_facts(m);
    const char *note = note_of(m->architecture, arena);
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
