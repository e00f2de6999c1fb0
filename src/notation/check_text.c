/* A text: is every name known, every option read, every array made by a line above what reads it?
 * Whether one is made in each case, and of what shape, is told where lines are (line_draft.c). */
#include "library_check.h"

/* An array of the text: a parameter, or what one line makes; or a weight. */
typedef struct array_entry {
    const char *name;
    bool weight;
} array_entry;

/* The text being read, line by line. */
typedef struct reading {
    checker *c;
    const tree_text *text;
    array_entry *entry;
    int n, room;
    bool used[TREE_MOST_ENTRIES]; /* options in order */
} reading;

static sm_status fail_near(const reading *r, sm_span span, const char *what, const char *name,
                           const char *near) {
    return sm_fail_at(r->c->err, r->text->source, span, "%s %s%s%s", what, name,
                      near ? "; the nearest is " : "", near ? near : "");
}

/* ---- names ---- */

/* The number of the option, or -1. Who asks reads it. */
static int read_option(reading *r, const char *name, size_t length) {
    int i = 0;
    for (const tree_set *option = r->text->option; option; option = option->next, i++) {
        if (strncmp(option->name, name, length) != 0 || option->name[length]) continue;
        r->used[i] = true;
        return i;
    }
    return -1;
}

static const char *nearest_array(const reading *r, const char *name) {
    const char *near = NULL;
    enum { MOST = 64 };
    const char *names[MOST];
    size_t n = 0;
    for (int i = r->n - 1; i >= 0 && n < MOST; i--) names[n++] = r->entry[i].name;
    for (const tree_set *o = r->text->option; o && n < MOST; o = o->next) names[n++] = o->name;
    near = sm_nearest(name, strlen(name), names, n);
    return near;
}

static const array_entry *find_entry(const reading *r, const char *name) {
    for (int i = r->n - 1; i >= 0; i--)
        if (strcmp(r->entry[i].name, name) == 0) return &r->entry[i];
    return NULL;
}

static sm_status add_entry(reading *r, array_entry entry) {
    array_entry *list = sm_arena_grow(r->c->arena, r->entry, r->n, &r->room, sizeof *list);
    if (!list) return sm_fail_memory(r->c->err);
    r->entry = list;
    r->entry[r->n++] = entry;
    return SM_OK;
}

static void read_dims(reading *r, const tree *array) {
    for (int i = 0; i < array->rank; i++)
        read_option(r, array->dim[i].name, strlen(array->dim[i].name));
}

/* An array that no line above makes is a weight, which no dimension that counts tokens is of. */
static sm_status read_weight(reading *r, const tree *e) {
    for (int i = 0; i < e->rank; i++) {
        sm_dimension_role role = tree_role_of(r->c->library, e->dim[i].name);
        if (!sm_dimension_role_counts_tokens(role)) continue;
        const char *near = nearest_array(r, e->name);
        return sm_fail_at(r->c->err, r->text->source, e->span,
                          "no line above makes %s, and it is no weight, since %s counts %s%s%s",
                          e->name, e->dim[i].name, sm_dimension_role_name(role),
                          near ? "; the nearest is " : "", near ? near : "");
    }
    return add_entry(r, (array_entry){e->name, true});
}

static sm_status read_array(reading *r, const tree *e) {
    read_dims(r, e);
    if (strchr(e->name, '.')) {
        read_option(r, e->name, strcspn(e->name, "."));
        return SM_OK;
    }
    if (find_entry(r, e->name)) return SM_OK;
    if (e->kind == TREE_ARRAY) return read_weight(r, e);
    if (read_option(r, e->name, strlen(e->name)) >= 0) return SM_OK;
    return fail_near(r, e->span, "no line above makes", e->name, nearest_array(r, e->name));
}

/* ---- calls ---- */

static const char *nearest_call(const reading *r, const char *name) {
    const char *names[SM_OPERATOR_COUNT];
    for (int i = 0; i < SM_OPERATOR_COUNT; i++) names[i] = sm_operator_at((sm_operator)i)->name;
    const words *texts = &r->c->texts;
    const char *near = sm_nearest(name, strlen(name), names, SM_OPERATOR_COUNT);
    return near ? near : sm_nearest(name, strlen(name), texts->word, texts->n);
}

static sm_status check_arguments(const reading *r, const tree *call, int least, int most) {
    sm_span span = {call->span.offset, strlen(call->name)};
    if (call->n >= least && call->n <= most) return SM_OK;
    int wanted = call->n < least ? least : most;
    return sm_fail_at(r->c->err, r->text->source, span, "%s takes %d argument%s, not %d",
                      call->name, wanted, wanted == 1 ? "" : "s", call->n);
}

/* An op, a text, an option that names one, or a part that families bind. */
static sm_status check_call(reading *r, const tree *call) {
    int op = operator_find(call->name);
    const sm_operator_row *row = op >= 0 ? sm_operator_at((sm_operator)op) : NULL;
    if (row) return check_arguments(r, call, row->least, row->most);
    if (read_option(r, call->name, strlen(call->name)) >= 0) return SM_OK;
    const tree_text *text =
        words_have(&r->c->texts, call->name) ? tree_find_text(r->c->library, call->name) : NULL;
    if (text) return check_arguments(r, call, text->parameters, text->parameters);
    if (words_have(&r->c->bound, call->name)) return SM_OK;
    sm_span span = {call->span.offset, strlen(call->name)};
    return fail_near(r, span, "no op, text or part that a family binds is called", call->name,
                     nearest_call(r, call->name));
}

/* How many arrays a line with this value makes; 0: as many as are written. */
static int results_of(const reading *r, const tree *value) {
    if (value->kind != TREE_CALL) return 1;
    switch (operator_find(value->name)) {
    case SM_OPERATOR_CACHE: return value->n;
    case SM_OPERATOR_SPLIT: return 0;
    case -1: break;
    default: return 1;
    }
    const tree_text *text =
        words_have(&r->c->texts, value->name) ? tree_find_text(r->c->library, value->name) : NULL;
    return text ? text->results : 0;
}

/* ---- lines ---- */

static sm_status read_expression(reading *r, const tree *e) {
    sm_status status = SM_OK;
    if (e->kind == TREE_NAME || e->kind == TREE_ARRAY) status = read_array(r, e);
    if (e->kind == TREE_SIZE) read_option(r, e->name, strlen(e->name));
    if (e->kind == TREE_CALL) status = check_call(r, e);
    for (int i = 0; i < e->n && !status; i++) status = read_expression(r, e->child[i]);
    return status;
}

/* An array that no line makes takes its attribute with it where a dimension of it is none. */
static sm_status read_attribute(reading *r, const tree *e) {
    const array_entry *entry = e->kind == TREE_ARRAY ? find_entry(r, e->name) : NULL;
    if (!entry) return read_expression(r, e);
    read_dims(r, e);
    return SM_OK;
}

/* What tests ask beside options and sizes. */
static const char *const condition_words[] = {"train",    "serve", "prefill", "decode",
                                              "absorbed", "none",  "true",    "false"};
enum { CONDITION_WORDS = sizeof condition_words / sizeof condition_words[0] };

static sm_status read_condition(reading *r, const tree *e) {
    bool known = e->kind != TREE_NAME && e->kind != TREE_SIZE;
    sm_status status = SM_OK;
    if (!known) known = read_option(r, e->name, strlen(e->name)) >= 0 || e->kind == TREE_SIZE;
    for (int i = 0; i < CONDITION_WORDS && !known; i++)
        known = strcmp(e->name, condition_words[i]) == 0;
    if (!known) {
        const char *near = sm_nearest(e->name, strlen(e->name), condition_words, CONDITION_WORDS);
        return fail_near(r, e->span, "no option of this text and no phase is called", e->name,
                         near ? near : nearest_array(r, e->name));
    }
    for (int i = 0; i < e->n && !status; i++) status = read_condition(r, e->child[i]);
    return status;
}

static sm_status add_target(reading *r, const tree *target) {
    const array_entry *entry = find_entry(r, target->name);
    read_dims(r, target);
    if (entry && entry->weight)
        return sm_fail_at(r->c->err, r->text->source, target->span,
                          "%s is a weight above, which no line makes", target->name);
    return add_entry(r, (array_entry){target->name, false});
}

static bool has_dim(const tree *array, const char *name) {
    for (int i = 0; i < array->rank; i++)
        if (strcmp(array->dim[i].name, name) == 0) return true;
    return false;
}

static bool is_told(const tree_line *line, const char *dim) { /* by an attribute */
    for (const tree_attribute *a = line->attribute; a; a = a->next)
        if (a->value && has_dim(a->value, dim)) return true;
    return false;
}

/* What a product makes has no dimension that none of its arrays has. */
static sm_status check_made(const reading *r, const tree_line *line) {
    const tree *product = line->value, *made = line->target[0];
    for (int i = 0; i < product->n; i++)
        if (product->child[i]->rank == 0) return SM_OK;
    for (int d = 0; d < made->rank; d++) {
        bool met = is_told(line, made->dim[d].name);
        for (int i = 0; i < product->n && !met; i++)
            met = has_dim(product->child[i], made->dim[d].name);
        if (!met)
            return sm_fail_at(r->c->err, r->text->source, made->dim[d].span,
                              "%s stands in no array that %s is a product of", made->dim[d].name,
                              made->name);
    }
    return SM_OK;
}

/* A product sums what two of its arrays have; what one alone has is a slip of the pen. */
static sm_status check_sums(const reading *r, const tree_line *line) {
    const tree *product = line->value;
    if (product->kind != TREE_PRODUCT || line->targets != 1 || line->target[0]->rank == 0)
        return SM_OK;
    sm_status status = check_made(r, line);
    if (status) return status;
    for (int i = 0; i < product->n; i++)
        for (int d = 0; d < product->child[i]->rank; d++) {
            const tree_dim *dim = &product->child[i]->dim[d];
            bool met = has_dim(line->target[0], dim->name) || is_told(line, dim->name) ||
                       strlen(dim->name) > dim->span.length; /* the second I of a[I,I] */
            for (int k = 0; k < product->n && !met; k++)
                met = k != i && has_dim(product->child[k], dim->name);
            if (!met)
                return sm_fail_at(r->c->err, r->text->source, dim->span,
                                  "%s stands in %s alone: a product sums what two arrays have",
                                  dim->name, product->child[i]->name);
        }
    return SM_OK;
}

static sm_status check_carry(const reading *r, const tree_line *line) {
    const tree *next = line->target[0];
    if (line->value->kind != TREE_CALL || strcmp(line->value->name, "carry") != 0) return SM_OK;
    for (const tree_line *l = r->text->line; l != line; l = l->next)
        if (l->value->kind == TREE_CALL && strcmp(l->value->name, "state") == 0 &&
            strcmp(l->target[0]->name, next->name) == 0)
            return SM_OK;
    return sm_fail_at(r->c->err, r->text->source, next->span,
                      "carry makes a state for the next step, and no line above has a state %s",
                      next->name);
}

static sm_status check_line(reading *r, const tree_line *line) {
    sm_status status = line->condition ? read_condition(r, line->condition) : SM_OK;
    if (!status) status = read_expression(r, line->value);
    if (!status) status = check_sums(r, line);
    if (!status) status = check_carry(r, line);
    for (const tree_attribute *a = line->attribute; a && !status; a = a->next)
        if (a->value) status = read_attribute(r, a->value);
    int results = results_of(r, line->value);
    if (!status && results && results != line->targets)
        status = sm_fail_at(r->c->err, r->text->source, line->span,
                            "%d array%s before '=', and what stands after it makes %d",
                            line->targets, line->targets == 1 ? "" : "s", results);
    for (int i = 0; i < line->targets && !status; i++) status = add_target(r, line->target[i]);
    return status;
}

/* ---- the text ---- */

static sm_status check_results(const reading *r) {
    for (int i = 0; i < r->text->results; i++) {
        const tree *result = r->text->result[i];
        const array_entry *entry = find_entry(r, result->name);
        if (!entry || entry->weight)
            return fail_near(r, result->span, "no line makes", result->name,
                             nearest_array(r, result->name));
    }
    return SM_OK;
}

sm_status check_text(checker *c, const tree_text *text) {
    reading *r = sm_arena_alloc(c->arena, sizeof *r);
    if (!r) return sm_fail_memory(c->err);
    r->c = c;
    r->text = text;
    sm_status status = SM_OK;
    for (int i = 0; i < text->parameters && !status; i++)
        status = add_target(r, text->parameter[i]);
    for (const tree_line *line = text->line; line && !status; line = line->next)
        status = check_line(r, line);
    if (!status) status = check_results(r);
    if (status) return status;
    int i = 0;
    for (const tree_set *option = r->text->option; option; option = option->next, i++)
        if (!r->used[i])
            return sm_fail_at(r->c->err, r->text->source, option->span,
                              "no line of the text reads the option %s", option->name);
    return SM_OK;
}
