/* Arrays of lines under way: which one a mention means, and what makes it a weight. */
#include "line_draft.h"

/* ---- dimensions ---- */

const value *line_binding(const line_maker *m, const char *label, const char *name) {
    char full[160];
    const value *found = NULL;
    snprintf(full, sizeof full, "%s.%s", label, name);
    for (const binding *b = m->kind->binding; b; b = b->next) {
        if (strcmp(b->name, full) == 0) return &b->value;
        if (!found && strcmp(b->name, name) == 0) found = &b->value;
    }
    return found;
}

/* A size that nobody gives is the default of the option, of this text or of one that calls it. */
sm_status line_size(line_maker *m, const line_call *c, const char *dim, sm_span span, value *out) {
    bool found;
    m->sizes.scope.source = c->text->source;
    sm_status status = frames_size(&m->sizes, dim, span, out, &found);
    if (status || found) return status;
    for (; c; c = c->caller)
        for (const line_option *o = c->options; o; o = o->next)
            if (strcmp(o->name, dim) == 0) {
                *out = o->value;
                return SM_OK;
            }
    return SM_OK;
}

static int find_dim(const line_maker *m, const char *name) {
    for (int i = 0; i < m->dims; i++)
        if (!m->foreign[i] && strcmp(m->dim[i].name, name) == 0) return i;
    return -1;
}

static sm_status add_dim(line_maker *m, const line_call *c, const sm_text_dim *dim, uint8_t *out) {
    if (m->dims == SM_TEXT_MOST_DIMS)
        return line_wrong(m, c, c->text->span, "more dimensions than %d, the most of a piece",
                          SM_TEXT_MOST_DIMS);
    m->dim[m->dims] = *dim;
    *out = (uint8_t)m->dims++;
    return SM_OK;
}

/* The positions that a token of a long sequence has of a dimension that follows T. */
static sm_status share_of_token(line_maker *m, const line_call *c, const char *name, sm_span span,
                                value *size) {
    enum { LONG = 1 << 20 };
    const double T = m->sizes.T, alone = size->number;
    m->sizes.T = LONG * T;
    sm_status status = line_size(m, c, name, span, size);
    m->sizes.T = T;
    if (size->number != alone) size->number /= LONG;
    return status;
}

sm_status line_dim(line_maker *m, const line_call *c, const char *name, sm_span span,
                   uint8_t *out) {
    value size;
    int at = find_dim(m, name);
    if (at >= 0) {
        *out = (uint8_t)at;
        return SM_OK;
    }
    sm_status status = line_size(m, c, name, span, &size);
    if (status) return status;
    if (size.kind != VALUE_NUMBER) {
        const tree_set *set = size.rule;
        if (set && size.json)
            return values_fail(&m->sizes.scope, &size, span, "%s = %.*s is %s, and %s needs it",
                               name, (int)set->value->span.length,
                               set->source->text + set->value->span.offset,
                               size.json->kind == IS_NULL ? "none" : "0", c->text->name);
        return line_wrong(m, c, span, "dimension %s has no size in a %s model", name,
                          m->kind->frame->family->name[0]->name);
    }
    const sm_dimension_role role = tree_role_of(m->a->library, name);
    if (m->of.each_token && role == SM_DIMENSION_POSITIONS)
        status = share_of_token(m, c, name, span, &size);
    if (status) return status;
    int multiple = m->a->padding.multiple[role];
    if (multiple > 1) size.number = ceil(size.number / multiple) * multiple;
    sm_text_dim dim = {.role = role, .size = size.number};
    snprintf(dim.name, sizeof dim.name, "%s", name);
    return add_dim(m, c, &dim, out);
}

sm_status line_dims_of(line_maker *m, const line_call *c, const tree *array, uint8_t *out) {
    sm_status status = SM_OK;
    for (int i = 0; !status && i < array->rank; i++)
        status = line_dim(m, c, array->dim[i].name, array->dim[i].span, &out[i]);
    return status;
}

sm_status line_has_dims(line_maker *m, const line_call *c, const tree *array, bool *out) {
    value size;
    sm_status status = SM_OK;
    *out = true;
    for (int i = 0; !status && i < array->rank; i++) {
        status = line_size(m, c, array->dim[i].name, array->dim[i].span, &size);
        if (!status && size.kind != VALUE_NUMBER) *out = false;
    }
    return status;
}

bool line_same_sizes(const line_maker *m, int rank, const uint8_t *a, const uint8_t *b) {
    for (int i = 0; i < rank; i++)
        if (m->dim[a[i]].size != m->dim[b[i]].size) return false;
    return true;
}

const char *line_shown(const line_maker *m, const char *name, int rank, const uint8_t *dim,
                       char *room, size_t size) {
    int n = snprintf(room, size, "%s[", name);
    for (int i = 0; i < rank && n >= 0 && (size_t)n < size; i++)
        n += snprintf(room + n, size - (size_t)n, "%s%s", i ? "," : "", m->dim[dim[i]].name);
    if (n >= 0 && (size_t)n < size) snprintf(room + n, size - (size_t)n, "]");
    return room;
}

/* ---- arrays ---- */

double line_elements(const line_maker *m, int rank, const uint8_t *dim) {
    double n = 1;
    for (int i = 0; i < rank; i++) n *= m->dim[dim[i]].size;
    return n;
}

static bool make_room(line_maker *m) {
    int room = m->room_arrays, also = room;
    sm_text_array *array = sm_arena_grow(m->arena, m->array, m->arrays, &room, sizeof *array);
    line_origin *origin =
        sm_arena_grow(m->arena, m->array_origin, m->arrays, &also, sizeof *origin);
    if (!array || !origin) return false;
    m->array = array;
    m->array_origin = origin;
    m->room_arrays = room;
    return true;
}

/* q, then q.2 where q is made again; weights have the name of their scope. */
static const char *name_of(line_maker *m, const line_call *c, const char *base, sm_text_role role) {
    int made = 0;
    if (role == SM_TEXT_WEIGHT) return sm_arena_printf(m->arena, "%s%s", c->path, base);
    for (int i = 0; i < m->arrays; i++)
        made += m->array[i].role != SM_TEXT_WEIGHT && strcmp(m->array_origin[i].base, base) == 0;
    return made ? sm_arena_printf(m->arena, "%s.%d", base, made + 1) : base;
}

int line_new_array(line_maker *m, const line_call *c, const char *base, sm_text_role role, int rank,
                   const uint8_t *dim) {
    const char *name = name_of(m, c, base, role);
    if (!name || !make_room(m)) return -1;
    sm_text_array *to = &m->array[m->arrays];
    *to = (sm_text_array){.name = name,
                          .role = role,
                          .rank = rank,
                          .line = -1,
                          .piece = -1,
                          .elements = line_elements(m, rank, dim)};
    memcpy(to->dim, dim, (size_t)rank);
    m->array_origin[m->arrays] = (line_origin){base, c->path, c->part};
    return m->arrays++;
}

line_name *line_find_name(const line_call *c, const char *name) {
    for (line_name *n = c->names; n; n = n->next)
        if (strcmp(n->name, name) == 0) return n;
    return NULL;
}

bool line_bind(line_maker *m, line_call *c, const char *name, int array, const uint8_t *dim) {
    line_name *n = line_find_name(c, name);
    if (!n) {
        n = sm_arena_alloc(m->arena, sizeof *n);
        if (!n) return false;
        n->next = c->names;
        c->names = n;
        n->name = name;
    }
    n->array = array;
    memcpy(n->dim, dim, (size_t)m->array[array].rank);
    return true;
}

/* ---- mentions ---- */

/* Mesh axes that a mention writes are those of the array; another one may leave them out. */
static sm_status pin(line_maker *m, const line_call *c, const tree *t, sm_text_array *array) {
    for (int i = 0; t->kind == TREE_ARRAY && i < t->rank; i++) {
        const char *axes = t->dim[i].axes, *before = array->pinned[i];
        if (axes && before && strcmp(axes, before) != 0)
            return line_wrong(m, c, t->dim[i].span, "%s_%s of %s is %s_%s elsewhere",
                              t->dim[i].name, axes, t->name, t->dim[i].name, before);
        if (axes) array->pinned[i] = axes;
    }
    return SM_OK;
}

static sm_status known(line_maker *m, line_call *c, const line_name *n, const tree *t,
                       sm_mention *out) {
    char room[120], other[120];
    const sm_text_array *array = &m->array[n->array];
    out->array = n->array;
    memcpy(out->dim, n->dim, (size_t)array->rank);
    if (t->kind == TREE_NAME) return SM_OK;
    sm_status status = line_dims_of(m, c, t, out->dim);
    if (status) return status;
    if (t->rank == array->rank && line_same_sizes(m, t->rank, out->dim, n->dim))
        return pin(m, c, t, &m->array[n->array]);
    return line_wrong(m, c, t->span, "%s is %s above",
                      line_shown(m, t->name, t->rank, out->dim, other, sizeof other),
                      line_shown(m, t->name, array->rank, n->dim, room, sizeof room));
}

/* An unknown name in brackets. */
static sm_status weight(line_maker *m, line_call *c, const tree *t, const tree_attribute *said,
                        sm_mention *out) {
    double shared;
    sm_status status = line_dims_of(m, c, t, out->dim);
    if (!status) status = line_copies_of(m, c, said, &shared);
    if (status) return status;
    for (int i = 0; i < t->rank; i++) {
        const sm_text_dim *dim = &m->dim[out->dim[i]];
        if (sm_dimension_role_counts_tokens(dim->role))
            return line_wrong(m, c, t->span,
                              "%s is not defined, and it is no weight: %s counts "
                              "tokens",
                              t->name, dim->name);
    }
    for (int i = 0; i < m->arrays; i++)
        if (m->array[i].role == SM_TEXT_WEIGHT && m->array[i].piece < 0 &&
            strcmp(m->array_origin[i].base, t->name) == 0 &&
            strcmp(m->array_origin[i].path, c->path) == 0)
            return line_wrong(m, c, t->span,
                              "%s%s is the weight of another call of this name: "
                              "bind two names",
                              c->path, t->name);
    out->array = line_new_array(m, c, t->name, SM_TEXT_WEIGHT, t->rank, out->dim);
    if (out->array < 0) return sm_fail_memory(m->err);
    sm_text_array *array = &m->array[out->array];
    array->shared = shared;
    array->share = array->shared > 0 ? line_noted(m, array->name) : 1;
    array->typed = t->typed;
    array->type = t->type;
    status = pin(m, c, t, array);
    if (status) return status;
    return line_bind(m, c, t->name, out->array, out->dim) ? SM_OK : sm_fail_memory(m->err);
}

/* ---- arrays of other pieces ---- */

static int exported(const line_maker *other, const char *name) {
    for (const line_name *n = other->exported; n; n = n->next)
        if (strcmp(n->name, name) == 0) return n->array;
    for (int i = 0; i < other->arrays; i++)
        if (other->array[i].role == SM_TEXT_WEIGHT && strcmp(other->array[i].name, name) == 0)
            return i;
    return -1;
}

/* The letters of another piece: ours where they have the same size here. */
static sm_status foreign_dims(line_maker *m, const line_call *c, const line_maker *other,
                              const sm_text_array *array, uint8_t *out) {
    sm_status status = SM_OK;
    double several = 1; /* of its sequences, pictures, are one of ours, behind each other */
    for (int i = 0; !status && i < array->rank; i++) {
        sm_text_dim folded = other->dim[array->dim[i]], *dim = &folded;
        value own;
        int at = 0;
        status = line_size(m, c, dim->name, c->text->span, &own);
        if (status) return status;
        if (i == 0 && dim->role == SM_DIMENSION_SEQUENCES && array->rank > 1) {
            several = dim->size / own.number;
            dim->size = own.number;
        } else if (i == 1) dim->size *= several;
        if (own.kind == VALUE_NUMBER && own.number == dim->size) {
            status = line_dim(m, c, dim->name, c->text->span, &out[i]);
            continue;
        }
        while (at < m->dims &&
               (strcmp(m->dim[at].name, dim->name) != 0 || m->dim[at].size != dim->size))
            at++;
        out[i] = (uint8_t)at;
        if (at < m->dims) continue;
        status = add_dim(m, c, dim, &out[i]);
        if (!status) m->foreign[out[i]] = true;
    }
    return status;
}

/* The piece that a name means: the latest before this one, or, for a layer, the first after it that
 * is none: a head whose unembedding layers read too. */
static int find_piece(const line_maker *m, const char *name) {
    const sm_model_piece *piece = m->a->piece;
    int at = made_find_piece(m->a, name, m->kind->first), pieces = m->a->pieces;
    if (at >= 0 || piece[m->kind->first].layer < 0) return at;
    for (at = m->kind->first + 1; at < pieces; at++)
        if (piece[at].layer < 0 && tree_same_name(piece[at].name, name)) return at;
    return -1;
}

static sm_status lines_of_kind(line_maker *m, int kind, line_maker **out) {
    sm_status status = SM_OK;
    if (!m->of_kind[kind]) {
        sm_text_lines_of of = m->of;
        of.kind = kind;
        status = line_make(m->a, &of, m->arena, m->of_kind, m->err);
    }
    *out = m->of_kind[kind];
    return status;
}

/* piece.name: the array of the latest piece of that name. */
static sm_status import(line_maker *m, line_call *c, const tree *t, size_t dot, int *array) {
    char prefix[TREE_MOST_NAME + 1];
    snprintf(prefix, sizeof prefix, "%.*s", (int)dot, t->name);
    const value *bound = line_binding(m, c->label, prefix);
    const char *piece = bound && bound->kind == VALUE_WORD ? bound->word : prefix;
    int at = find_piece(m, piece);
    if (at < 0)
        return line_wrong(m, c, t->span, "no piece %s stands before %s", piece,
                          m->a->piece[m->kind->first].name);
    line_maker *other;
    sm_status status = lines_of_kind(m, m->a->piece[at].kind, &other);
    if (status) return status;
    if (!other->whole)
        return line_wrong(m, c, t->span, "%s and %s read each other", piece,
                          m->a->piece[m->kind->first].name);
    int there = exported(other, t->name + dot + 1);
    if (there < 0)
        return line_wrong(m, c, t->span, "piece %s makes no %s", piece, t->name + dot + 1);
    const sm_text_array *from = &other->array[there];
    const char *name = sm_arena_printf(m->arena, "%s.%s", piece, t->name + dot + 1);
    uint8_t dim[SM_TEXT_MOST_RANK] = {0};
    status = foreign_dims(m, c, other, from, dim);
    if (status) return status;
    *array = name ? line_new_array(m, c, name, SM_TEXT_ACTIVATION, from->rank, dim) : -1;
    if (*array < 0) return sm_fail_memory(m->err);
    sm_text_array *to = &m->array[*array];
    to->name = name;
    to->role = from->role;
    to->typed = from->typed;
    to->type = from->type;
    to->piece = from->piece < 0 ? at : from->piece;
    to->there = from->piece >= 0 ? from->there : there == other->output ? -1 : there;
    to->keeps = from->keeps;
    to->once = from->once;
    to->norm = from->norm;
    return SM_OK;
}

static sm_status of_piece(line_maker *m, line_call *c, const tree *t, size_t dot, sm_mention *out) {
    int array = -1;
    line_name *known_as = line_find_name(c, t->name);
    if (known_as) return known(m, c, known_as, t, out);
    sm_status status = import(m, c, t, dot, &array);
    if (status) return status;
    if (!line_bind(m, c, t->name, array, m->array[array].dim)) return sm_fail_memory(m->err);
    return known(m, c, line_find_name(c, t->name), t, out);
}

sm_status line_mention(line_maker *m, line_call *c, const tree *t, const tree_attribute *attributes,
                       sm_mention *out) {
    size_t dot = strcspn(t->name, ".");
    const line_name *n = line_find_name(c, t->name);
    if (n) return known(m, c, n, t, out);
    if (t->name[dot]) return of_piece(m, c, t, dot, out);
    if (t->kind == TREE_NAME) return line_wrong(m, c, t->span, "%s is not defined", t->name);
    return weight(m, c, t, attributes, out);
}
