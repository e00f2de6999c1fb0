/* The plan of a model: which family reads which config, and its stacks and pieces in order. */
#include "frames.h"

enum { OVERLAID = 2 };

/* ---- families by name ---- */

/* The family and those it is like, the base first. */
typedef struct lineage {
    int n;
    const tree_family *family[FRAMES_MOST_LIKE];
} lineage;

static sm_status line_up(const sm_library *library, const tree_family *f, lineage *out,
                         sm_error *err) {
    const tree_family *derived[FRAMES_MOST_LIKE];
    int n = 0;
    for (; f; f = f->like ? tree_other_family(library, f->like->name, f) : NULL) {
        if (n == FRAMES_MOST_LIKE)
            return sm_fail_at(err, f->source, f->name[0]->span,
                              "family %s is like more than %d others: is it like itself?",
                              f->name[0]->name, FRAMES_MOST_LIKE - 1);
        derived[n++] = f;
    }
    for (int i = n - 1; i >= 0 && out->n < FRAMES_MOST_LIKE; i--)
        out->family[out->n++] = derived[i];
    return SM_OK;
}

static sm_status fail_unknown(const sm_library *library, const json_value *config, const char *type,
                              const json_value *at, sm_error *err) {
    const char *const *names;
    size_t n;
    const sm_source *source = config->in->source;
    sm_arena *arena = sm_arena_new();
    sm_status status =
        arena ? sm_library_families(library, arena, &names, &n, err) : sm_fail_memory(err);
    if (!status) {
        sm_span place = at ? json_place(at) : (sm_span){config->at, 1};
        const char *near = sm_nearest(type, strlen(type), names, n);
        status = near ? sm_fail_at(err, source, place,
                                   "model_type \"%.60s\" is not understood; the nearest known one "
                                   "is \"%s\"",
                                   type, near)
                      : sm_fail_at(err, source, place,
                                   "model_type \"%.60s\" is not understood; known are those such "
                                   "as \"llama\", \"qwen3_moe\" or \"gpt2\"",
                                   type);
    }
    sm_arena_free(arena);
    return status;
}

/* Is the family of a class like that of the type, or one that has any type? */
static bool overrules(const sm_library *library, const tree_family *f, const tree_family *type) {
    for (int i = 0; f && i < FRAMES_MOST_LIKE; i++) {
        if (f == type || tree_find_set(f->field, "whatever_type")) return true;
        f = f->like ? tree_other_family(library, f->like->name, f) : NULL;
    }
    return false;
}

/* The family of wrappers that keep a model under a key of this name ("text_config"); NULL: none. */
static const tree_family *wrapper_of(const sm_library *library, const json_value *config) {
    for (uint32_t i = 0; i < config->n; i++)
        if (json_text(json_get(&config->item[i], "model_type"))) {
            const tree_family *f = tree_find_family(library, config->item[i].key);
            if (f) return f;
        }
    return NULL;
}

/* model_type decides, unless the architecture names a family that is like that one (a model without
 * a head), or that has it whatever the type is (a draft has its target's). The architecture alone
 * is asked where the type is missing or unknown; where both are, a model that it wraps is. */
static sm_status family_of(const sm_library *library, const json_value *config,
                           const tree_family **out, sm_error *err) {
    const json_value *at = json_get(config, "model_type");
    const json_value *list = json_get(config, "architectures");
    const json_value *first = json_is(list, IS_LIST) && list->n > 0 ? &list->item[0] : list;
    const char *type = json_text(at), *architecture = json_text(first);
    const tree_family *by_type = type ? tree_find_family(library, type) : NULL;
    const tree_family *special = architecture ? tree_find_family(library, architecture) : NULL;
    *out = special && (!by_type || overrules(library, special, by_type)) ? special : by_type;
    if (!*out) *out = wrapper_of(library, config);
    if (*out) return SM_OK;
    if (type || architecture)
        return fail_unknown(library, config, type ? type : architecture, type ? at : first, err);
    const sm_span place = at ? json_place(at) : (sm_span){config->at, 1};
    return sm_fail_at(err, config->in->source, place,
                      at ? "model_type must be a text"
                         : "this is not a Hugging Face model config: model_type is missing");
}

/* ---- frames ---- */

static void add_set(const tree_set **list, int *n, const tree_set *set) {
    int i = 0;
    while (i < *n && strcmp(list[i]->name, set->name) != 0) i++;
    list[i] = set;
    if (i == *n) ++*n;
}

static int sets_in(const tree_set *list) {
    int n = 0;
    for (; list; list = list->next) n++;
    return n;
}

static frame *new_frame(model_plan *p, const sm_library *library, const lineage *line,
                        const json_value *config, const frame *outer) {
    frame *f = sm_arena_alloc(p->arena, sizeof *f);
    size_t fields = 0, dims = 0;
    for (int i = 0; i < line->n; i++) {
        fields += (size_t)sets_in(line->family[i]->field);
        dims += (size_t)sets_in(line->family[i]->dim);
    }
    const tree_set **field = sm_arena_array(p->arena, fields + 1, sizeof *field);
    const tree_set **dim = sm_arena_array(p->arena, dims + 1, sizeof *dim);
    const tree_family **families = sm_arena_array(p->arena, (size_t)line->n, sizeof *families);
    if (!f || !field || !dim || !families) return NULL;
    memcpy(families, line->family, (size_t)line->n * sizeof(const tree_family *));
    *f = (frame){.library = library,
                 .source = config->in->source,
                 .config = config,
                 .family = line->family[line->n - 1],
                 .outer = outer,
                 .depth = outer ? outer->depth + 1 : 0,
                 .field = field,
                 .dim = dim,
                 .lineage = line->n,
                 .line = families,
                 .next = p->frames};
    for (int i = 0; i < line->n; i++) {
        for (const tree_set *s = line->family[i]->field; s; s = s->next)
            add_set(field, &f->fields, s);
        for (const tree_set *s = line->family[i]->dim; s; s = s->next) add_set(dim, &f->dims, s);
    }
    p->frames = f;
    return f;
}

/* ---- pieces ---- */

/* Put the sets of a piece behind those that are there. */
static bool bind(model_plan *p, frame_set **list, const tree_set *set, const frame *f) {
    while (*list) list = &(*list)->next;
    for (; set; set = set->next) {
        frame_set *one = sm_arena_alloc(p->arena, sizeof *one);
        if (!one) return false;
        *one = (frame_set){.set = set, .frame = f};
        *list = one;
        list = &one->next;
    }
    return true;
}

static sm_status plan_stack(model_plan *p, const frame *f, const tree_piece *piece) {
    stack_plan *stack = sm_arena_alloc(p->arena, sizeof *stack);
    frame_set *sets = NULL;
    if (!stack || !bind(p, &sets, piece->set, f)) return sm_fail_memory(p->err);
    *stack = (stack_plan){piece->name, sets};
    p->stack = stack;
    return SM_OK;
}

static bool is_within(const frame *f, const frame *outer) {
    while (f && f != outer) f = f->outer;
    return f != NULL;
}

/* The family whose pieces these are: of `all NAME` that one. */
static const char *taken_from(const frame *f) {
    return f->by && f->by->name ? f->by->name : f->family->name[0]->name;
}

/* What `all` takes may be amended behind it, and has no name that is taken before. */
static sm_status plan_piece(model_plan *p, const frame *f, const tree_piece *piece) {
    const char *name = piece->name;
    piece_plan *to = NULL;
    for (piece_plan *at = p->piece; at; at = at->next)
        if (strcmp(at->name, name) == 0) to = at;
    if (to && f->by && !is_within(to->frame, f))
        return sm_fail_at(p->err, f->by->source, f->by->span,
                          "two pieces %s: family %s, taken here, has one, and so has family %s",
                          name, taken_from(f), taken_from(to->frame));
    if (!to) {
        if (piece->kind == TREE_LAYERS && !piece->count)
            return sm_fail_at(p->err, piece->source, piece->span,
                              "how many layers? no layers %s stand before these", piece->name);
        to = sm_arena_alloc(p->arena, sizeof *to);
        if (!to) return sm_fail_memory(p->err);
        *to = (piece_plan){.name = piece->name,
                           .many = piece->kind == TREE_LAYERS,
                           .frame = f,
                           .where = piece,
                           .stack = p->stack};
        *p->end = to;
        p->end = &to->next;
    }
    const tree_set count = {.name = name, .value = piece->count, .source = piece->source};
    const tree_set text = {.name = name, .value = piece->text, .source = piece->source};
    if (piece->count) to->count = (piece_value){count, f};
    if (piece->text) to->text = (piece_value){text, f};
    return bind(p, &to->set, piece->set, f) ? SM_OK : sm_fail_memory(p->err);
}

static sm_status plan_family(model_plan *p, const frame *f, const lineage *line);

static bool stack_says(const model_plan *p, const char *name) {
    return p->stack && frames_last(p->stack->set, name);
}

/* The class of a checkpoint and its labels are those of what it wraps, but for parts that are
 * counted apart, or have them of their own. */
static sm_status overlay_class(model_plan *p, const frame *outer, const tree_piece *piece,
                               frame *f) {
    static const tree said[OVERLAID] = {{.kind = TREE_NAME, .name = "architectures"},
                                        {.kind = TREE_NAME, .name = "id2label"}};
    family_scope s = frames_scope(outer, p->err, &p->steps);
    s.lax = true;
    for (int i = 0; piece->text && !stack_says(p, "apart") && i < OVERLAID; i++) {
        value own = values_of_json(json_get(f->config, said[i].name)), v;
        sm_status status = values_of(&s.scope, &said[i], &v);
        if (status) return status;
        if (!values_true(&own) && v.kind != VALUE_NONE)
            f->overlay[f->overlays++] = (frame_overlay){said[i].name, v};
    }
    return SM_OK;
}

/* Keys of the inner config that the wrapper says otherwise; none says nothing. */
static sm_status overlay(model_plan *p, const frame *outer, const tree_piece *piece, frame *f) {
    f->overlay =
        sm_arena_array(p->arena, (size_t)sets_in(piece->set) + OVERLAID, sizeof *f->overlay);
    if (!f->overlay) return sm_fail_memory(p->err);
    sm_status status = overlay_class(p, outer, piece, f);
    for (const tree_set *set = piece->set; !status && set; set = set->next) {
        family_scope s = frames_scope(outer, p->err, &p->steps);
        value v;
        status = frames_value(&s, set, set->value, &v);
        if (!status && v.kind != VALUE_NONE)
            f->overlay[f->overlays++] = (frame_overlay){set->name, v};
    }
    return status;
}

/* A key of the config, or a field whose default is an object; NULL: none, or empty. */
static sm_status object_of(model_plan *p, const frame *f, const tree_piece *piece,
                           const json_value **out) {
    const json_value *object = json_find(f->config, piece->text->name);
    sm_status status = SM_OK;
    for (int i = 0; !object && !status && i < f->fields; i++) {
        if (strcmp(f->field[i]->name, piece->text->name) != 0) continue;
        family_scope s = frames_scope(f, p->err, &p->steps);
        value v;
        status = frames_value(&s, f->field[i], f->field[i]->value, &v);
        if (!status && v.kind == VALUE_OBJECT) object = v.json;
    }
    *out = object && json_is(object, IS_OBJECT) && object->n > 0 ? object : NULL;
    return status;
}

/* `all FAMILY`, `all FAMILY in OBJECT`, `all in OBJECT`. */
static sm_status plan_all(model_plan *p, const frame *f, const lineage *own,
                          const tree_piece *piece) {
    const json_value *object = NULL;
    sm_status status = piece->text ? object_of(p, f, piece, &object) : SM_OK;
    const tree_family *family = piece->name ? tree_find_family(f->library, piece->name) : NULL;
    lineage line = {0};
    if (status) return status;
    if (f->depth == FRAMES_MOST_DEPTH)
        return sm_fail_at(p->err, piece->source, piece->span,
                          "families take pieces of each other more than %d deep",
                          FRAMES_MOST_DEPTH);
    if (piece->name && !family)
        return sm_fail_at(p->err, piece->source, piece->span, "there is no family %s", piece->name);
    if (!piece->name && !object && (!piece->text || stack_says(p, "when"))) return SM_OK;
    if (!piece->name && !object)
        return sm_fail_at(p->err, f->source, (sm_span){f->config->at, 1},
                          "%s is missing: a %s model has it", piece->text->name,
                          f->family->name[0]->name);
    if (!family) status = family_of(f->library, object, &family, p->err);
    if (!status) status = line_up(f->library, family, &line, p->err);
    if (status) return status;
    const lineage pieces = line;
    /* without an object this family's own words stand over those of the other */
    for (int i = 0; !piece->text && i < own->n && line.n < FRAMES_MOST_LIKE; i++)
        line.family[line.n++] = own->family[i];
    frame *inner = new_frame(p, f->library, &line, object ? object : f->config, f);
    if (!inner) return sm_fail_memory(p->err);
    inner->by = piece;
    status = overlay(p, f, piece, inner);
    if (!status && piece->text && !stack_says(p, "apart")) p->main = inner;
    return status ? status : plan_family(p, inner, &pieces);
}

static sm_status plan_family(model_plan *p, const frame *f, const lineage *line) {
    int from = 0;
    for (int i = 0; i < line->n; i++)
        if (line->family[i]->new_model) from = i;
    sm_status status = SM_OK;
    for (int i = from; i < line->n; i++)
        for (const tree_piece *t = line->family[i]->piece; !status && t; t = t->next)
            status = t->kind == TREE_STACK ? plan_stack(p, f, t)
                     : t->kind == TREE_ALL ? plan_all(p, f, line, t)
                                           : plan_piece(p, f, t);
    return status;
}

sm_status frames_plan(const sm_library *library, const sm_source *source, const json_value *root,
                      const char *name, model_plan *p) {
    const tree_family *family = NULL;
    lineage line = {0};
    if (root->kind != IS_OBJECT)
        return sm_fail_at(p->err, source, json_place(root), "a model config is a JSON object");
    sm_status status = SM_OK;
    if (!name) status = family_of(library, root, &family, p->err);
    else if ((family = tree_find_family(library, name)) == NULL)
        status = fail_unknown(library, root, name, NULL, p->err);
    if (!status) status = line_up(library, family, &line, p->err);
    if (status) return status;
    p->end = &p->piece;
    p->steps = VALUES_MOST_STEPS;
    frame *f = new_frame(p, library, &line, root, NULL);
    if (!f) return sm_fail_memory(p->err);
    p->main = f;
    return plan_family(p, f, &line);
}
