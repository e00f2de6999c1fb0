/* A model worked out from its plan: how many layers, what each binds, and which are of one kind. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "made.h"

/* ---- what a text can read ---- */

/* The texts that pieces with the same bound texts reach, and the names in their lines: of what is
 * called, and of arrays of other pieces ("embedding.w"). */
typedef struct reach {
    const sm_library *library;
    sm_arena *arena;
    int texts, names, room;
    const tree_text *text[MADE_MOST_TEXTS];
    const char **name;
} reach;

static void add_text(reach *r, const tree_text *text) {
    for (int i = 0; i < r->texts; i++)
        if (r->text[i] == text) return;
    if (r->texts < MADE_MOST_TEXTS) r->text[r->texts++] = text;
}

/* Sizes and PART.option are read always; of the rest what is an option, a part that is called, or a
 * piece whose arrays are. */
static bool is_read(const reach *r, const char *name) {
    const size_t n = strlen(name);
    if (frames_is_size(name) || strchr(name, '.')) return true;
    for (int i = 0; i < r->texts; i++)
        if (tree_find_set(r->text[i]->option, name)) return true;
    for (int i = 0; i < r->names; i++)
        if (strncmp(r->name[i], name, n) == 0 && (!r->name[i][n] || r->name[i][n] == '.'))
            return true;
    return false;
}

static bool add_named(void *to, const tree *t) {
    reach *r = to;
    const tree_text *text = t->kind == TREE_CALL ? tree_find_text(r->library, t->name) : NULL;
    bool array = t->kind == TREE_NAME || t->kind == TREE_ARRAY;
    if (text) add_text(r, text);
    if (t->kind != TREE_CALL && !(array && strchr(t->name, '.'))) return true;
    for (int i = 0; i < r->names; i++)
        if (strcmp(r->name[i], t->name) == 0) return true;
    const char **list = sm_arena_grow(r->arena, r->name, r->names, &r->room, sizeof *list);
    if (!list) return false;
    r->name = list;
    list[r->names++] = t->name;
    return true;
}

static bool close_reach(reach *r) {
    for (int i = 0; i < r->texts; i++) {
        for (const tree_set *o = r->text[i]->option; o; o = o->next) {
            const tree_text *text =
                o->value->kind == TREE_NAME ? tree_find_text(r->library, o->value->name) : NULL;
            if (text) add_text(r, text);
        }
        if (!tree_walk_text(r->text[i], add_named, r)) return false;
    }
    return true;
}

/* ---- pieces ---- */

typedef struct maker {
    sm_architecture *a;
    model_plan *plan;
    sm_arena *arena;
    sm_error *err;
    int room_pieces, room_kinds;
    reach roots, last; /* texts that the last layer names, and those that they reach */
} maker;

/* What a stack says of all its pieces: when, apart. *said false: nothing. */
static sm_status of_stack(maker *k, const stack_plan *stack, const char *name, bool *said,
                          bool *out) {
    value v;
    const frame_set *set = stack ? frames_last(stack->set, name) : NULL;
    *said = set != NULL;
    if (!set) return SM_OK;
    family_scope s = frames_scope(set->frame, k->err, &k->plan->steps);
    s.lax = true; /* `when = vision_config`: where there is one */
    sm_status status = frames_value(&s, set->set, set->set->value, &v);
    if (!status) *out = values_true(&v);
    return status;
}

/* How many; 0: the piece is not there. */
static sm_status count_of(maker *k, const piece_plan *p, int *out) {
    value v;
    bool said, there = false;
    *out = 0;
    sm_status status = of_stack(k, p->stack, "when", &said, &there);
    if (status || (said && !there)) return status;
    *out = 1;
    if (!p->many) return SM_OK;
    const tree_set *count = &p->count.set;
    family_scope s = frames_scope(p->count.frame, k->err, &k->plan->steps);
    s.stack = p->stack;
    status = frames_value(&s, count, count->value, &v);
    if (status) return status;
    *out = 0;
    if (!values_true(&v)) return SM_OK;
    bool number = v.kind == VALUE_NUMBER || v.kind == VALUE_TRUTH;
    s.scope.source = count->source;
    if (!number || !(v.number >= 0 && v.number <= MADE_MOST_LAYERS) || floor(v.number) != v.number)
        return values_fail(&s.scope, &v, count->value->span,
                           "there would be %.6g layers; expected a whole number up to %d",
                           number ? v.number : NAN, MADE_MOST_LAYERS);
    *out = (int)v.number;
    return SM_OK;
}

/* Each name once, as it is said last. */
static sm_status bind_all(maker *k, const piece_plan *p, double i, binding **list) {
    family_scope s = frames_scope(p->frame, k->err, &k->plan->steps);
    binding **end = list;
    *list = NULL;
    for (const frame_set *set = p->set; set; set = set->next) {
        if (frames_last(p->set, set->set->name) != set) continue;
        binding *b = sm_arena_alloc(k->arena, sizeof *b);
        if (!b) return sm_fail_memory(k->err);
        *b = (binding){.name = set->set->name, .set = set, .i = i};
        *end = b;
        end = &b->next;
    }
    s.stack = p->stack;
    s.binding = *list;
    sm_status status = SM_OK;
    for (binding *b = *list; !status && b; b = b->next)
        if (b->state == BINDING_OPEN) status = frames_bind(&s, b);
    return status;
}

static const value *bound(const binding *b, const char *name) {
    for (; b; b = b->next)
        if (tree_same_name(b->name, name)) return &b->value;
    return NULL;
}

/* The text of a piece; NULL where it is none. */
static sm_status text_of(maker *k, const piece_plan *p, binding *b, double i,
                         const tree_text **out) {
    value v;
    *out = NULL;
    const tree_set *set = &p->text.set;
    if (!set->value) {
        *out = tree_find_text(k->a->library, p->name);
        return *out ? SM_OK
                    : sm_fail_at(k->err, p->where->source, p->where->span,
                                 "there is no text %s: write `%s = TEXT`", p->name, p->name);
    }
    family_scope s = frames_scope(p->text.frame, k->err, &k->plan->steps);
    s.stack = p->stack;
    s.binding = b;
    s.i = i;
    sm_status status = frames_value(&s, set, set->value, &v);
    if (status || v.kind == VALUE_NONE) return status;
    s.scope.source = set->source;
    if (v.kind != VALUE_TEXT)
        return values_fail(&s.scope, NULL, set->value->span, "this is %s, and a text is needed",
                           values_kind_name(&v));
    *out = v.text;
    return SM_OK;
}

/* Two bound texts that have an option of this name: PART.name says which is meant. */
static sm_status check_options(maker *k, const piece_plan *p, const tree_text *text,
                               const binding *all) {
    for (const binding *b = all; b; b = b->next) {
        const tree_text *first = tree_find_set(text->option, b->name) ? text : NULL;
        if (frames_is_size(b->name)) continue;
        for (const binding *other = all; other; other = other->next) {
            const tree_text *t = other->value.kind == VALUE_TEXT ? other->value.text : NULL;
            if (!t || t == first || !tree_find_set(t->option, b->name)) continue;
            if (first) {
                const frame_set *set = frames_last(p->set, b->name);
                return sm_fail_at(k->err, set->set->source, set->set->span,
                                  "%s and %s both have an option %s: write %s.%s", first->name,
                                  t->name, b->name, other->name, b->name);
            }
            first = t;
        }
    }
    return SM_OK;
}

/* ---- kinds ---- */

/* Mark what the texts read. Layers that differ in sizes alone reach the same texts. */
static sm_status mark_read(maker *k, const tree_text *text, binding *list) {
    reach roots = {.library = k->a->library, .arena = k->arena};
    add_text(&roots, text);
    for (const binding *b = list; b; b = b->next)
        if (b->value.kind == VALUE_TEXT) add_text(&roots, b->value.text);
    if (roots.texts != k->roots.texts ||
        memcmp(roots.text, k->roots.text, (size_t)roots.texts * sizeof(const tree_text *)) != 0) {
        k->last = k->roots = roots;
        if (!close_reach(&k->last)) return sm_fail_memory(k->err);
    }
    for (binding *b = list; b; b = b->next) b->read = is_read(&k->last, b->name);
    return SM_OK;
}

/* Is what is read of these bound to the same in the others? */
static bool covers(const binding *list, const binding *other) {
    for (const binding *b = list; b; b = b->next) {
        const value *v = b->read ? bound(other, b->name) : NULL;
        if (b->read && (!v || !values_equal(&b->value, v))) return false;
    }
    return true;
}

/* Do the names of pieces mean, for piece `at`, some of the kinds that they mean for the kind's own?
 */
static bool refers_alike(const sm_architecture *a, const made_kind *kind, int at) {
    char prefix[TREE_MOST_NAME + 1];
    for (int i = 0; i < kind->names; i++) {
        const char *dot = strchr(kind->name[i], '.');
        if (!dot) continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(dot - kind->name[i]), kind->name[i]);
        const value *v = bound(kind->binding, prefix);
        const char *piece = v && v->kind == VALUE_WORD ? v->word : prefix;
        int one = made_find_piece(a, piece, kind->first), other = made_find_piece(a, piece, at);
        if (one != other && (one < 0 || other < 0 || a->piece[one].kind != a->piece[other].kind))
            return false;
    }
    return true;
}

static bool is_of_kind(const sm_architecture *a, const made_kind *kind, const piece_plan *p,
                       const tree_text *text, const binding *b, int at) {
    return kind->text == text && kind->frame == p->frame && kind->stack == p->stack &&
           covers(kind->binding, b) && covers(b, kind->binding) && refers_alike(a, kind, at);
}

static sm_status find_kind(maker *k, const piece_plan *p, const tree_text *text, binding *b,
                           int *out) {
    sm_architecture *a = k->a;
    sm_status status = mark_read(k, text, b);
    if (status) return status;
    for (*out = 0; *out < a->kinds; (*out)++)
        if (is_of_kind(a, &a->kind[*out], p, text, b, a->pieces)) return SM_OK;
    if (a->kinds == MADE_MOST_KINDS)
        return sm_fail_at(k->err, p->where->source, p->where->span,
                          "more kinds of layers than %d, the most of a model", MADE_MOST_KINDS);
    made_kind *list = sm_arena_grow(k->arena, a->kind, a->kinds, &k->room_kinds, sizeof *list);
    if (!list) return sm_fail_memory(k->err);
    a->kind = list;
    a->kind[a->kinds++] = (made_kind){.first = a->pieces,
                                      .text = text,
                                      .frame = p->frame,
                                      .stack = p->stack,
                                      .binding = b,
                                      .names = k->last.names,
                                      .name = k->last.name};
    return check_options(k, p, text, b);
}

static sm_status add_piece(maker *k, const piece_plan *p, int i) {
    sm_architecture *a = k->a;
    binding *b;
    const tree_text *text = NULL;
    int kind = 0;
    bool said, apart = false;
    sm_status status = bind_all(k, p, i, &b);
    if (!status) status = text_of(k, p, b, i, &text);
    if (status || !text) return status;
    if (a->pieces == MADE_MOST_PIECES)
        return sm_fail_at(k->err, p->where->source, p->where->span,
                          "more layers than %d, the most of a model", MADE_MOST_PIECES);
    sm_model_piece *list =
        sm_arena_grow(k->arena, a->piece, a->pieces, &k->room_pieces, sizeof *list);
    if (!list) return sm_fail_memory(k->err);
    a->piece = list;
    if (!status) status = find_kind(k, p, text, b, &kind);
    if (!status) status = of_stack(k, p->stack, "apart", &said, &apart);
    if (status) return status;
    const value *name = bound(b, "name"), *own = bound(b, "apart");
    a->kind[kind].count++;
    a->piece[a->pieces++] =
        (sm_model_piece){.name = name && name->kind == VALUE_WORD ? name->word : p->name,
                         .stack = p->stack ? p->stack->name : "",
                         .text = text->name,
                         .layer = p->many ? i : -1,
                         .kind = kind,
                         .apart = own ? values_true(own) : apart};
    return SM_OK;
}

int made_find_piece(const sm_architecture *a, const char *name, int before) {
    for (int i = before - 1; i >= 0; i--)
        if (tree_same_name(a->piece[i].name, name)) return i;
    return -1;
}

static sm_status add_pieces(maker *k) {
    sm_status status = SM_OK;
    for (const piece_plan *p = k->plan->piece; !status && p; p = p->next) {
        int n;
        status = count_of(k, p, &n);
        for (int i = 0; !status && i < n; i++) {
            k->plan->steps = VALUES_MOST_STEPS;
            status = add_piece(k, p, i);
        }
    }
    assert(k->a->root);
    if (!status && k->a->pieces == 0)
        return sm_fail_at(k->err, &k->a->source, (sm_span){k->a->root->at, 1},
                          "a %s model of this config has no layers",
                          k->a->main->family->name[0]->name);
    return status;
}

static sm_status make(maker *k, const sm_source *config, const char *family) {
    sm_architecture *a = k->a;
    char *text = sm_arena_copy(k->arena, config->text ? config->text : "", config->length);
    char *name = sm_arena_printf(k->arena, "%s", config->name ? config->name : "");
    if (!text || !name) return sm_fail_memory(k->err);
    a->source = (sm_source){name, text, config->length};
    a->document =
        (json_document){.source = &a->source, .arena = k->arena, .err = k->err, .python = true};
    sm_status status = json_parse(&a->document, &a->root);
    if (!status) status = library_for(a->library, a->root, family, k->arena, &a->library, k->err);
    if (!status) status = frames_plan(a->library, &a->source, a->root, family, k->plan);
    if (!status) a->main = k->plan->main;
    if (!status) status = frames_check_keys(k->plan);
    if (!status) status = add_pieces(k);
    if (!status) status = made_count(a, k->err);
    a->document.err = NULL;
    return status;
}

/* Lines of training have been made to be counted; are those of serving whole, too? */
static sm_status check_serving(const sm_architecture *a, sm_error *err) {
    enum { LENGTH = 4096 };
    sm_arena *arena = sm_arena_new();
    sm_status status = arena ? SM_OK : sm_fail_memory(err);
    for (int i = 0; !status && i < 3 * a->kinds; i++) {
        const sm_text_lines_of of = {
            i / 3, i % 3 ? SM_TEXT_DECODE : SM_TEXT_PREFILL, i % 3 == 2, LENGTH, LENGTH, false};
        const sm_text_lines *lines;
        status = sm_architecture_lines(a, &of, arena, &lines, err);
    }
    sm_arena_free(arena);
    return status;
}

sm_status sm_architecture_new(const sm_library *library, const sm_source *config,
                              const char *family, sm_arena *arena, const sm_architecture **out,
                              sm_error *err) {
    model_plan plan = {.arena = arena, .err = err};
    sm_architecture *a = sm_arena_alloc(arena, sizeof *a);
    *out = NULL;
    if (!a) return sm_fail_memory(err);
    *a = (sm_architecture){.library = library, .arena = arena};
    maker k = {.a = a, .plan = &plan, .arena = arena, .err = err};
    sm_status status = make(&k, config, family);
    if (!status && !library->shipped) status = check_serving(a, err); /* texts of the user's own */
    if (!status) *out = a;
    return status;
}

sm_status sm_architecture_pad(const sm_architecture *a, const sm_padding *padding, sm_arena *arena,
                              const sm_architecture **out, sm_error *err) {
    sm_architecture *padded = sm_arena_alloc(arena, sizeof *padded);
    made_kind *kind = sm_arena_array(arena, (size_t)a->kinds + 1, sizeof *kind);
    *out = padded;
    if (!padded || !kind) return sm_fail_memory(err);
    *padded = *a;
    padded->arena = arena;
    padded->padding = *padding;
    if (!padding->source) padded->padding.source = a->padding.source;
    if (!padding->picture_width) {
        padded->padding.picture_width = a->padding.picture_width;
        padded->padding.picture_height = a->padding.picture_height;
    }
    padded->counts = (sm_counts){.total = 0};
    padded->note = NULL;
    padded->aparts = 0;
    padded->kind = kind;
    for (int i = 0; i < a->kinds; i++) {
        kind[i] = a->kind[i];
        kind[i].total = kind[i].active = kind[i].matmul = 0;
    }
    return made_count(padded, err);
}

/* ---- what was made ---- */

const char *sm_architecture_type(const sm_architecture *a) {
    const char *type = json_text(json_get(a->root, "model_type"));
    return type ? type : "";
}

const char *sm_architecture_family(const sm_architecture *a) {
    return a->main->family->name[0]->name;
}

const char *sm_architecture_family_of(const sm_architecture *a, int kind) {
    return a->kind[kind].frame->family->name[0]->name;
}

int sm_architecture_pieces(const sm_architecture *a, const sm_model_piece **piece) {
    *piece = a->piece;
    return a->pieces;
}

int sm_architecture_kinds(const sm_architecture *a) { return a->kinds; }

const sm_model_piece *sm_architecture_kind(const sm_architecture *a, int kind, int *count) {
    if (kind < 0 || kind >= a->kinds) return NULL;
    if (count) *count = a->kind[kind].count;
    return &a->piece[a->kind[kind].first];
}

/* In this frame, then in those around it; what a wrapper does not say is that of the language
 * model. "NAME[3]" is that of a list, or of what the family says of each layer. */
static value fact_in(const sm_architecture *a, const frame *in, const char *name) {
    bool around = in == a->main;
    char list[TREE_MOST_NAME + 1];
    const size_t n = strcspn(name, "[");
    snprintf(list, sizeof list, "%.*s", (int)n, name);
    const tree of = {.kind = TREE_NAME, .name = list},
               at = {.kind = TREE_NUMBER, .number = name[n] ? atof(name + n + 1) : 0};
    const tree *const both[] = {&of, &at};
    const tree asked = {.kind = TREE_ELEMENT, .n = 2, .child = both};
    for (const frame *f = a->main; f && !around; f = f->outer) around = f == in;
    for (const frame *f = in; f; f = f->outer) {
        int steps = VALUES_MOST_STEPS;
        value v;
        family_scope s = frames_scope(f, NULL, &steps);
        s.given = &a->padding;
        if (!values_of(&s.scope, name[n] ? &asked : &of, &v) && v.kind != VALUE_NONE &&
            v.kind != VALUE_TEXT && v.kind != VALUE_OPERATOR)
            return v;
    }
    return around && in != a->main ? fact_in(a, a->main, name) : (value){.kind = VALUE_NONE};
}

static bool number_in(const sm_architecture *a, const frame *in, const char *name, double *number) {
    value v = fact_in(a, in, name);
    bool there = v.kind == VALUE_NUMBER || v.kind == VALUE_TRUTH;
    if (there) *number = v.number;
    return there;
}

static const char *word_in(const sm_architecture *a, const frame *in, const char *name) {
    value v = fact_in(a, in, name);
    return v.kind == VALUE_WORD ? v.word : NULL;
}

bool sm_architecture_number(const sm_architecture *a, const char *name, double *number) {
    return number_in(a, a->main, name, number);
}

bool sm_architecture_number_of(const sm_architecture *a, int kind, const char *name,
                               double *number) {
    return number_in(a, a->kind[kind].frame, name, number);
}

const char *sm_architecture_word(const sm_architecture *a, const char *name) {
    return word_in(a, a->main, name);
}

const char *sm_architecture_word_of(const sm_architecture *a, int kind, const char *name) {
    return word_in(a, a->kind[kind].frame, name);
}
