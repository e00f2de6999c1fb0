/* Which keys of a config may be passed over: those that the family names, those that are inert, and
 * those that are off. Of the others one that speaks of a size or of work stops the reading. */

#include "frames.h"

enum { MOST_NAMES = 1024 };

/* Names that the frames of one config know, those that they ask by index, and the words that they
 * compare with. */
typedef struct key_list {
    int n;
    const char *word[MOST_NAMES];
} key_list;
typedef struct named {
    key_list names, indexed, words;
} named;

static bool has(const key_list *l, const char *word) {
    for (int i = 0; i < l->n; i++)
        if (tree_same_name(l->word[i], word)) return true;
    return false;
}

static void add(key_list *to, const char *word) {
    if (to->n < MOST_NAMES && !has(to, word)) to->word[to->n++] = word;
}

static bool add_name(void *list, const tree *t) {
    named *to = list;
    if (t->kind == TREE_NAME) add(&to->names, t->name);
    if (t->kind == TREE_WORD) add(&to->words, t->name);
    if (t->kind == TREE_ELEMENT && t->child[0]->kind == TREE_NAME)
        add(&to->indexed, t->child[0]->name);
    return true;
}

static void add_names(named *to, const tree *t) {
    if (t) tree_walk(t, add_name, to);
}

static void add_sets(named *to, const frame_set *set, const json_value *config) {
    for (; set; set = set->next)
        if (set->frame->config == config) add_names(to, set->set->value);
}

static void name_all(const model_plan *plan, const json_value *config, named *to) {
    for (const frame *f = plan->frames; f; f = f->next) {
        if (f->by && f->outer->config == config) {
            add_names(to, f->by->text);
            for (const tree_set *set = f->by->set; set; set = set->next) add_names(to, set->value);
        }
        if (f->config != config) continue;
        for (int i = 0; i < f->fields; i++) {
            add(&to->names, f->field[i]->name);
            add_names(to, f->field[i]->value);
        }
        for (int i = 0; i < f->dims; i++) add_names(to, f->dim[i]->value);
    }
    for (const piece_plan *p = plan->piece; p; p = p->next) {
        add_sets(to, p->set, config);
        if (p->stack) add_sets(to, p->stack->set, config);
        const piece_value *both[] = {&p->count, &p->text};
        for (int i = 0; i < 2; i++)
            if (both[i]->set.value && both[i]->frame->config == config)
                add_names(to, both[i]->set.value);
    }
}

/* What follows a key in the name of a member, "rope_theta" of "rope_parameters.rope_theta": "" for
 * the key itself, NULL for other names. */
static const char *after_key(const char *name, const char *key) {
    size_t n = strlen(key);
    if (strncmp(name, key, n) != 0 || (name[n] != 0 && name[n] != '.')) return NULL;
    return name + n + (name[n] == '.');
}

static bool is_named(const named *known, const char *key) {
    for (int i = 0; i < known->names.n; i++)
        if (after_key(known->names.word[i], key)) return true;
    return false;
}

/* A star at either end stands for anything. */
static bool matches(const char *pattern, const char *key) {
    size_t n = strlen(pattern), length = strlen(key);
    bool before = n > 0 && pattern[0] == '*', after = n > 1 && pattern[n - 1] == '*';
    const char *core = pattern + before;
    size_t core_length = n - before - after;
    if (core_length > length) return false;
    for (size_t i = before ? 0 : length; before && after && i + core_length <= length; i++)
        if (memcmp(key + i, core, core_length) == 0) return true;
    if (before && after) return false;
    if (before) return memcmp(key + length - core_length, core, core_length) == 0;
    return memcmp(key, core, core_length) == 0 && (after || length == core_length);
}

static bool any_matches(const tree_word *list, const char *key) {
    for (; list; list = list->next)
        if (matches(list->name, key)) return true;
    return false;
}

static bool is_inert(const model_plan *plan, const frame *of, const char *key) {
    for (const sm_library *l = of->library; l; l = l->under)
        if (any_matches(l->inert, key)) return true;
    for (const frame *f = plan->frames; f; f = f->next)
        for (int i = 0; f->config == of->config && i < f->lineage; i++)
            if (any_matches(f->line[i]->inert, key)) return true;
    return false;
}

static bool speaks(const sm_library *l, const char *key) {
    while (l && !any_matches(l->matters, key)) l = l->under;
    return l != NULL;
}

static sm_status fail_key(const model_plan *plan, const frame *f, const named *known,
                          const json_value *v) {
    char key[65], text[65];
    const char *near =
        sm_nearest(v->key, strlen(v->key), known->names.word, (size_t)known->names.n);
    const char *type = json_text(json_get(f->config, "model_type"));
    if (!type) type = f->family->name[0]->name;
    sm_utf8_clean(key, sizeof key, v->key, strlen(v->key));
    sm_utf8_clean(text, sizeof text, type, strlen(type));
    return sm_fail_at(plan->err, f->source, (sm_span){v->key_at, v->key_length},
                      "%s may change the size or the work of a %s model and is not understood%s%s",
                      key, text, near ? "; the nearest known field is " : "", near ? near : "");
}

static sm_status meet_word(const model_plan *plan, const frame *f, const named *known,
                           const json_value *key, const json_value *at, const char *word) {
    char shown[49];
    if (has(&known->words, word) || is_inert(plan, f, word)) return SM_OK;
    const char *near = sm_nearest(word, strlen(word), known->words.word, (size_t)known->words.n);
    sm_utf8_clean(shown, sizeof shown, word, strlen(word));
    return sm_fail_at(plan->err, f->source, json_place(at),
                      "%s \"%s\" of a layer is not understood%s%s%s", key->key, shown,
                      near ? "; the nearest known one is \"" : "", near ? near : "",
                      near ? "\"" : "");
}

/* Is a value always a word? */
static bool is_word(const tree *t) {
    return t->kind == TREE_WORD ||
           (t->kind == TREE_CHOICE && is_word(t->child[0]) && is_word(t->child[2]));
}

/* Where the default is a word for each layer, the config lists words too. */
static sm_status meet_list(const model_plan *plan, const frame *f, const json_value *v) {
    bool words = false;
    for (int i = 0; i < f->fields; i++)
        if (f->field[i]->by_layer && strcmp(f->field[i]->name, v->key) == 0)
            words = is_word(f->field[i]->value);
    bool fits = v->kind == IS_LIST || v->kind == IS_TEXT || v->kind == IS_NULL;
    for (uint32_t i = 0; v->kind == IS_LIST && i < v->n; i++)
        fits = fits && v->item[i].kind == IS_TEXT;
    if (!words || fits) return SM_OK;
    return sm_fail_at(plan->err, f->source, json_place(v), "%s must be a list of texts", v->key);
}

/* What is asked layer by layer is a word that the family compares with: an unknown one would pass
 * for whatever it has after `else`. Words that `else` alone stands for are inert. */
static sm_status meet_words(const model_plan *plan, const frame *f, const named *known,
                            const json_value *v) {
    sm_status status = SM_OK;
    if (!has(&known->indexed, v->key) || strcmp(v->key, "architectures") == 0) return SM_OK;
    if ((status = meet_list(plan, f, v)) != SM_OK) return status;
    if (v->kind == IS_TEXT)
        for (const char *at = v->text; !status && *at; at++) {
            const char letter[2] = {*at, 0};
            status = meet_word(plan, f, known, v, v, letter);
        }
    for (uint32_t i = 0; v->kind == IS_LIST && !status && i < v->n; i++)
        if (v->item[i].kind == IS_TEXT)
            status = meet_word(plan, f, known, v, &v->item[i], v->item[i].text);
    return status;
}

/* The names that a family knows of an object's members; false: it knows the object as a whole, or
 * not at all. */
static bool names_within(const named *known, const char *key, named *out) {
    out->names.n = out->indexed.n = out->words.n = 0;
    for (int i = 0; i < known->names.n; i++) {
        const char *member = after_key(known->names.word[i], key);
        if (member && !*member) return false;
        if (member) add(&out->names, member);
    }
    return out->names.n > 0;
}

static sm_status meet(const model_plan *plan, const frame *f, const named *known,
                      const json_value *v) {
    const value of = values_of_json(v);
    bool passes = is_named(known, v->key) || !values_true(&of) || is_inert(plan, f, v->key) ||
                  !speaks(f->library, v->key);
    return passes ? meet_words(plan, f, known, v) : fail_key(plan, f, known, v);
}

/* Members of an object of which the family names some are looked at as keys are. */
static sm_status meet_members(const model_plan *plan, const frame *f, const named *known,
                              const json_value *v) {
    if (v->kind != IS_OBJECT) return SM_OK;
    named *within = sm_arena_alloc(plan->arena, sizeof *within);
    if (!within) return sm_fail_memory(plan->err);
    sm_status status = SM_OK;
    if (!names_within(known, v->key, within)) return SM_OK;
    for (uint32_t i = 0; !status && i < v->n; i++) status = meet(plan, f, within, &v->item[i]);
    return status;
}

sm_status frames_check_keys(const model_plan *plan) {
    named *known = sm_arena_alloc(plan->arena, sizeof *known);
    sm_status status = known ? SM_OK : sm_fail_memory(plan->err);
    for (const frame *f = plan->frames; !status && f; f = f->next) {
        known->names.n = known->indexed.n = known->words.n = 0;
        name_all(plan, f->config, known);
        for (uint32_t i = 0; !status && i < f->config->n; i++)
            status = meet(plan, f, known, &f->config->item[i]);
        for (uint32_t i = 0; !status && i < f->config->n; i++)
            status = meet_members(plan, f, known, &f->config->item[i]);
    }
    return status;
}
