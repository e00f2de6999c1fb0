/* A family: are the families and texts it names there, and does a text know what it binds? */
#include "library_check.h"

static sm_status unknown_family(checker *c, const sm_source *source, sm_span span,
                                const char *name) {
    const char *const *names;
    size_t n;
    sm_status status = sm_library_families(c->library, c->arena, &names, &n, c->err);
    if (status) return status;
    const char *near = sm_nearest(name, strlen(name), names, n);
    return sm_fail_at(c->err, source, span, "no family is called %s%s%s", name,
                      near ? "; the nearest is " : "", near ? near : "");
}

static sm_status check_like(checker *c, const tree_family *family) {
    int steps = 0;
    for (const tree_family *f = family; f->like; steps++) {
        const tree_family *like = tree_other_family(c->library, f->like->name, f);
        if (!like) return unknown_family(c, f->source, f->like->span, f->like->name);
        if (like == family || steps > TREE_MOST_ENTRIES)
            return sm_fail_at(c->err, family->source, family->like->span,
                              "family %s is like itself, by way of the families it is like",
                              family->name[0]->name);
        f = like;
    }
    return SM_OK;
}

static sm_status unknown_text(checker *c, const sm_source *source, sm_span span, const char *name) {
    const char *near = sm_nearest(name, strlen(name), c->texts.word, c->texts.n);
    return sm_fail_at(c->err, source, span, "no text is called %s%s%s", name,
                      near ? "; the nearest is " : "", near ? near : "");
}

/* Is it a field of the family, or of those that it is like? */
static bool has_field(const checker *c, const tree_family *family, const char *name) {
    while (family && !tree_find_set(family->field, name))
        family = family->like ? tree_other_family(c->library, family->like->name, family) : NULL;
    return family != NULL;
}

/* What a part, or a piece, is bound to: a text or an operator, or a name that says which. */
static sm_status check_texts(checker *c, const tree_family *family, const sm_source *source,
                             const tree *value) {
    if (value->kind == TREE_CHOICE || value->kind == TREE_OR) {
        sm_status status = check_texts(c, family, source, value->child[0]);
        return status ? status : check_texts(c, family, source, value->child[value->n - 1]);
    }
    if (value->kind != TREE_NAME || strchr(value->name, '.')) return SM_OK;
    static const char *const others[] = {"none", "true", "false", "i"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(value->name, others[i]) == 0) return SM_OK;
    bool known = words_have(&c->texts, value->name) || operator_find(value->name) >= 0 ||
                 words_have(&c->bound, value->name) || has_field(c, family, value->name);
    return known ? SM_OK : unknown_text(c, source, value->span, value->name);
}

static sm_status check_binding(checker *c, const tree_family *family, const tree_piece *piece,
                               const tree_set *set) {
    const char *name = set->name, *dot = strchr(name, '.');
    if (*name >= 'A' && *name <= 'Z') return SM_OK;
    if (dot) {
        const char *part = before_dot(c, name);
        if (!part) return sm_fail_memory(c->err);
        if (!words_have(&c->slots, part) && !words_have(&c->texts, part))
            return sm_fail_at(c->err, piece->source, set->span, "no text calls %s", part);
        name = dot + 1;
    }
    if (words_have(&c->options, name)) return SM_OK;
    if (words_have(&c->slots, name)) {
        sm_status status = check_texts(c, family, piece->source, set->value);
        if (status) return status;
    }
    if (!dot &&
        (strcmp(name, "name") == 0 || strcmp(name, "apart") == 0 || words_have(&c->slots, name) ||
         words_have(&c->reached, name) || words_have(&c->read, name)))
        return SM_OK;
    const char *near = sm_nearest(name, strlen(name), c->options.word, c->options.n);
    if (!near) near = sm_nearest(name, strlen(name), c->slots.word, c->slots.n);
    return sm_fail_at(c->err, piece->source, set->span,
                      "no option or part of a text is called %s%s%s", name,
                      near ? "; the nearest is " : "", near ? near : "");
}

static sm_status check_piece(checker *c, const tree_family *family, const tree_piece *piece) {
    if (piece->kind == TREE_STACK) return SM_OK;
    if (piece->kind == TREE_ALL) {
        bool there = !piece->name || tree_other_family(c->library, piece->name, family) != NULL;
        return there ? SM_OK : unknown_family(c, piece->source, piece->span, piece->name);
    }
    if (!piece->text && !family->like && !words_have(&c->texts, piece->name))
        return unknown_text(c, piece->source, piece->span, piece->name);
    sm_status status = piece->text ? check_texts(c, family, piece->source, piece->text) : SM_OK;
    for (const tree_set *set = piece->set; set && !status; set = set->next)
        status = check_binding(c, family, piece, set);
    return status;
}

sm_status check_family(checker *c, const tree_family *family) {
    sm_status status = check_like(c, family);
    for (const tree_piece *piece = family->piece; piece && !status; piece = piece->next)
        status = check_piece(c, family, piece);
    return status;
}
