/* A family read with a config: what a name means. */
#include "frames.h"

#include <math.h>

enum { LARGEST_SIZE = 1 << 30 };

/* ---- dimensions ---- */

static const tree_set *set_in(const tree_set *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (tree_same_name(list[i]->name, name)) return list[i];
    return NULL;
}

const frame_set *frames_last(const frame_set *list, const char *name) {
    const frame_set *found = NULL;
    for (; list; list = list->next)
        if (tree_same_name(list->set->name, name)) found = list;
    return found;
}

static const tree_set *library_size(const sm_library *library, const char *name) {
    const tree_set *found = NULL;
    for (; library && !found; library = library->under)
        found = tree_find_set(library->size.first, name);
    return found;
}

/* A value as a size: whole unless it counts tokens, none where it is 0; `set` says so. */
static sm_status frames_check_size(const family_scope *s, const char *dim, const tree_set *set,
                                   value *v) {
    int length = (int)set->value->span.length;
    const char *text = set->source->text + set->value->span.offset;
    scope where = s->scope;
    where.source = set->source;
    if (v->kind == VALUE_NONE || (v->kind == VALUE_TRUTH && v->number == 0)) v->kind = VALUE_NONE;
    else if (v->kind != VALUE_NUMBER && v->kind != VALUE_TRUTH)
        return values_fail(&where, v, set->span, "%s = %.*s is %s, and a size is a whole number",
                           dim, length, text, values_kind_name(v));
    v->rule = set;
    if (v->kind == VALUE_NONE) return SM_OK;
    bool tokens = sm_dimension_role_counts_tokens(tree_role_of(s->frame->library, dim));
    if (!(v->number >= 0 && v->number <= LARGEST_SIZE) ||
        (!tokens && floor(v->number) != v->number))
        return values_fail(&where, v, set->span,
                           "%s = %.*s would be %.6g, and a size is a whole number up to %d", dim,
                           length, text, v->number, LARGEST_SIZE);
    v->kind = v->number == 0 ? VALUE_NONE : VALUE_NUMBER;
    return SM_OK;
}

sm_status frames_value(family_scope *s, const tree_set *set, const tree *expression, value *out) {
    const sm_source *before = s->scope.source;
    s->scope.source = set->source;
    sm_status status = values_of(&s->scope, expression, out);
    s->scope.source = before;
    return status;
}

/* Worked out as the family has it: of what the piece binds, sizes alone are seen. */
static sm_status size_of_set(family_scope *s, const frame *f, const tree_set *set, value *out) {
    family_scope inner = *s;
    inner.frame = f;
    inner.i = -1;
    inner.sizes = true;
    sm_status status = frames_value(&inner, set, set->value, out);
    return status ? status : frames_check_size(&inner, set->name, set, out);
}

bool frames_is_size(const char *name) { return name[0] >= 'A' && name[0] <= 'Z'; }

sm_status frames_bind(const family_scope *s, binding *b) {
    family_scope inner = frames_scope(b->set->frame, s->scope.err, s->scope.steps);
    inner.scope.depth = s->scope.depth + 1;
    inner.stack = s->stack;
    inner.binding = s->binding;
    inner.i = b->i;
    b->state = BINDING_UNDER_WAY;
    sm_status status = frames_value(&inner, b->set->set, b->set->set->value, &b->value);
    if (!status && frames_is_size(b->name))
        status = frames_check_size(&inner, b->name, b->set->set, &b->value);
    b->state = status ? BINDING_OPEN : BINDING_KNOWN;
    return status;
}

/* The binding of a name, worked out; NULL where there is none, or where it is being worked out. */
static sm_status find_binding(const family_scope *s, const char *name, size_t length,
                              const binding **out) {
    *out = NULL;
    for (binding *b = s->binding; b; b = b->next)
        if (b->name[0] == name[0] && strncmp(b->name, name, length) == 0 && b->name[length] == 0) {
            if (b->state == BINDING_UNDER_WAY) return SM_OK;
            sm_status status = b->state == BINDING_OPEN ? frames_bind(s, b) : SM_OK;
            *out = status ? NULL : b;
            return status;
        }
    return SM_OK;
}

sm_status frames_size(family_scope *s, const char *dim, sm_span span, value *out, bool *found) {
    const frame_set *of_stack;
    const tree_set *set;
    const binding *bound;
    *found = true;
    *out = (value){.kind = VALUE_NONE};
    if (s->scope.depth >= VALUES_MOST_DEPTH)
        return values_fail(&s->scope, NULL, span, "%s is defined by itself", dim);
    sm_status status = find_binding(s, dim, strlen(dim), &bound);
    if (bound) *out = bound->value;
    if (status || bound) return status;
    if (s->stack && (of_stack = frames_last(s->stack->set, dim)) != NULL)
        return size_of_set(s, of_stack->frame, of_stack->set, out);
    if ((set = set_in(s->frame->dim, s->frame->dims, dim)) != NULL)
        return size_of_set(s, s->frame, set, out);
    if (strcmp(dim, "B") == 0) *out = values_of_number(1);
    else if (strcmp(dim, "T") == 0 && s->T > 0) *out = values_of_number(s->T);
    else if (strcmp(dim, "S") == 0 && s->S > 0) *out = values_of_number(s->S);
    else if ((set = library_size(s->frame->library, dim)) != NULL)
        return size_of_set(s, s->frame, set, out);
    else *found = false;
    return SM_OK;
}

/* ---- names ---- */

/* b.attention.heads, where b is bound. */
static sm_status look_in_bindings(const family_scope *s, const char *name, value *out,
                                  bool *found) {
    const binding *b;
    size_t n = strcspn(name, ".");
    sm_status status = find_binding(s, name, strlen(name), &b);
    *found = b != NULL;
    if (b) *out = b->value;
    if (status || b || !name[n]) return status;
    status = find_binding(s, name, n, &b);
    *found = b && b->value.kind == VALUE_OBJECT;
    if (*found) *out = values_of_json(json_find(b->value.json, name + n + 1));
    return status;
}

/* What `fields` names: the config's value, else the default. */
static sm_status look_in_fields(family_scope *s, const tree_set *set, value *out) {
    const json_value *json = json_find(s->frame->config, set->name);
    *out = values_of_json(json);
    bool silent = !json;
    const tree *usual = set->value;
    bool truth = usual->kind == TREE_NAME &&
                 (strcmp(usual->name, "true") == 0 || strcmp(usual->name, "false") == 0);
    if (out->kind == VALUE_WORD && (truth || usual->kind == TREE_NUMBER))
        return values_fail(&s->scope, out, set->span, "%s must be %s", set->name,
                           truth ? "true or false" : "a number");
    if (set->by_layer)
        silent = out->kind == VALUE_NONE || (json && json->kind == IS_LIST && json->n == 0);
    if (!silent) return SM_OK;
    if (set->by_layer) {
        *out = (value){.kind = VALUE_RULE, .rule = set};
        return SM_OK;
    }
    family_scope inner = *s;
    inner.binding = NULL;
    inner.usual = set;
    inner.i = -1;
    return frames_value(&inner, set, set->value, out);
}

static sm_status fail_name(const family_scope *s, const tree *name) {
    const value at = {.json = s->frame->config};
    return values_fail(&s->scope, &at, name->span, "%s is missing: a %s model has it", name->name,
                       s->frame->family->name[0]->name);
}

/* What was asked for in place of the config's. */
static bool look_in_given(const sm_padding *given, const char *name, value *out) {
    if (!given) return false;
    const struct {
        const char *name;
        int size;
    } all[] = {{"source", given->source},
               {"picture_width", given->picture_width},
               {"picture_height", given->picture_height}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].size > 0 && tree_same_name(all[i].name, name)) {
            *out = values_of_number(all[i].size);
            return true;
        }
    return false;
}

static sm_status look_name(family_scope *s, const tree *t, value *out) {
    const tree_set *set;
    const frame *f = s->frame;
    int op;
    bool found = false;
    sm_status status = s->sizes ? SM_OK : look_in_bindings(s, t->name, out, &found);
    if (status || found) return status;
    if (tree_same_name(t->name, "i") && s->i >= 0) {
        *out = values_of_number(s->i);
        return SM_OK;
    }
    if (look_in_given(s->given, t->name, out)) return SM_OK;
    for (int i = 0; i < f->overlays; i++)
        if (tree_same_name(f->overlay[i].name, t->name)) {
            *out = f->overlay[i].value;
            return SM_OK;
        }
    set = set_in(f->field, f->fields, t->name);
    if (set && set != s->usual) return look_in_fields(s, set, out);
    const tree_text *text = tree_find_text(f->library, t->name);
    if (text) {
        *out = (value){.kind = VALUE_TEXT, .text = text};
        return SM_OK;
    }
    if ((op = operator_find(t->name)) >= 0) {
        *out = (value){.kind = VALUE_OPERATOR, .op = (sm_operator)op};
        return SM_OK;
    }
    const json_value *json = json_find(f->config, t->name);
    *out = values_of_json(json);
    return json || s->lax || strchr(t->name, '.') ? SM_OK : fail_name(s, t);
}

static sm_status look(scope *base, const tree *t, value *out) {
    family_scope *s = (family_scope *)base;
    bool found;
    if (t->kind == TREE_NAME) return look_name(s, t, out);
    sm_status status = frames_size(s, t->name, t->span, out, &found);
    if (status || found) return status;
    return values_fail(&s->scope, NULL, t->span, "no dimension %s has a size here", t->name);
}

static sm_status ask(scope *base, const tree_set *rule, double i, value *out) {
    family_scope inner = *(family_scope *)base;
    inner.binding = NULL;
    inner.i = i;
    return frames_value(&inner, rule, rule->value, out);
}

family_scope frames_scope(const frame *f, sm_error *err, int *steps) {
    return (family_scope){
        .scope = {look, ask, f->source, f->family->source, err, 0, steps}, .frame = f, .i = -1};
}
