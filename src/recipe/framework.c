/* Frameworks by name, and what is found in them. */
#include "framework.h"

#include <strings.h>

#include "framework_table.h"

/* Whom it is like: a chain of frameworks, which must end. */
static sm_status find_like(const sm_frameworks *all, sm_framework *f, sm_error *err) {
    if (!f->like_name) return SM_OK;
    f->like = sm_framework_find(all, f->like_name, strlen(f->like_name));
    int length = 0;
    for (const sm_framework *g = f->like; g && length < SM_MOST_FRAMEWORKS; g = g->like) length++;
    if (f->like && length < SM_MOST_FRAMEWORKS && f->like != f) return SM_OK;
    f->like = NULL;
    return sm_fail(err, SM_BAD_INPUT,
                   "%s is like \"%.60s\", which is no other framework that is known", f->name,
                   f->like_name);
}

sm_status sm_frameworks_shipped(sm_arena *arena, sm_frameworks **out, sm_error *err) {
    sm_frameworks *all = *out = sm_arena_alloc(arena, sizeof *all);
    if (!all) return sm_fail_memory(err);
    all->arena = arena;
    sm_status status = SM_OK;
    for (size_t i = 0; i < sm_framework_table_count && !status; i++)
        status = framework_read_file(all, &sm_framework_table[i], err);
    for (int i = 0; i < all->n && !status; i++) status = find_like(all, all->own[i], err);
    return status;
}

sm_status sm_frameworks_read(sm_frameworks *all, const sm_source *source, sm_error *err) {
    sm_status status = framework_read_file(all, source, err);
    return status ? status : find_like(all, all->own[all->n - 1], err);
}

const sm_framework *sm_framework_find(const sm_frameworks *all, const char *name, size_t length) {
    for (int i = all->n - 1; i >= 0; i--)
        if (strlen(all->of[i]->name) == length && strncasecmp(all->of[i]->name, name, length) == 0)
            return all->of[i];
    return NULL;
}

const char *sm_framework_name(const sm_framework *f) { return f->name; }
const char *sm_framework_title(const sm_framework *f) { return f->title; }
const char *sm_framework_facts(const sm_framework *f) { return f->facts ? f->facts : ""; }
const char *sm_framework_version(const sm_framework *f) { return f->version; }
sm_plan_use sm_framework_use(const sm_framework *f) { return f->use; }
/* A chip of a vendor that the catalogue does not know, a measured one, may be anybody's. */
static bool is_known_vendor(const char *vendor) {
    const sm_chip *chip;
    for (size_t i = 0; (chip = sm_chip_at(i)) != NULL; i++)
        if (strcasecmp(chip->vendor, vendor) == 0 && strcasecmp(vendor, "any") != 0) return true;
    return false;
}

bool sm_framework_runs_on(const sm_framework *f, const sm_system *system) {
    const char *vendor = system->chip.vendor;
    bool runs = f->vendors == 0;
    for (int i = 0; i < f->vendors && !runs; i++) runs = strcasecmp(f->vendor[i], vendor) == 0;
    if (!runs && is_known_vendor(vendor)) return false;
    return !f->networks || f->networks >> (system->torus_dims > 0) & 1;
}
const char *sm_framework_software(const sm_framework *f) { return f->software ? f->software : ""; }

bool sm_framework_is_program(const sm_framework *f) { return strcmp(f->form, "program") == 0; }

const char *sm_framework_op(const sm_framework *f, const char *op, int arguments) {
    for (; f; f = f->like)
        for (int i = 0; i < f->ops; i++)
            if (strcmp(f->op[i].op, op) == 0 &&
                (f->op[i].arguments == 0 || f->op[i].arguments == arguments))
                return f->op[i].write;
    return NULL;
}

/* ---- keys ---- */

/* Are two spellings one key? Leading dashes are nothing, others are underscores. */
static bool is_same(const char *a, const char *b, size_t length) {
    while (length && *b == '-') b++, length--;
    while (*a == '-') a++;
    for (; length && *a; a++, b++, length--) {
        char x = *a == '-' ? '_' : *a, y = *b == '-' ? '_' : *b;
        if (x != y && (x | 32) != (y | 32)) return false;
    }
    return *a == '\0' && length == 0;
}

/* One dash and two are not the same of a single letter or two: -tp is no --tp. */
static bool is_spelled(const framework_key *k, const char *spelling) {
    const char *rest = k->also, *word;
    if (is_same(spelling, k->key, strlen(k->key))) return true;
    for (size_t n; (n = sm_next_word(&rest, &word)) > 0;)
        if (is_same(spelling, word, n)) return true;
    return false;
}

static const framework_key *exact_key(const sm_framework *f, const char *spelling) {
    for (; f; f = f->like)
        for (int i = 0; i < f->keys; i++)
            if (is_spelled(&f->key[i], spelling)) return &f->key[i];
    return NULL;
}

/* The spelling without its first component, where that is a prefix the framework names. */
static const char *without_prefix(const sm_framework *f, const char *spelling) {
    const char *dot = strchr(spelling, '.');
    for (; f && dot; f = f->like)
        for (int i = 0; i < f->prefixes; i++)
            if (strlen(f->prefix[i]) == (size_t)(dot - spelling) &&
                strncasecmp(f->prefix[i], spelling, (size_t)(dot - spelling)) == 0)
                return dot + 1;
    return NULL;
}

const framework_key *framework_key_of(const sm_framework *f, const char *spelling) {
    for (const char *at = spelling; at; at = without_prefix(f, at)) {
        const framework_key *k = exact_key(f, at);
        if (k) return k;
    }
    return NULL;
}

/* "--lr*": what follows the star is not looked at. */
static bool matches(const char *pattern, const char *spelling) {
    size_t n = strlen(pattern);
    if (n == 0 || pattern[n - 1] != '*') return is_same(spelling, pattern, n);
    while (*spelling == '-') spelling++;
    while (n > 1 && *pattern == '-') pattern++, n--;
    for (size_t i = 0; i + 1 < n; i++) {
        char x = spelling[i] == '-' ? '_' : spelling[i], y = pattern[i] == '-' ? '_' : pattern[i];
        if (x == '\0' || (x | 32) != (y | 32)) return false;
    }
    return true;
}

const char *framework_ignores(const sm_framework *f, const char *spelling) {
    for (const char *at = spelling; at; at = without_prefix(f, at))
        for (const sm_framework *g = f; g; g = g->like)
            for (int i = 0; i < g->ignored; i++)
                if (matches(g->ignore[i].pattern, at)) return g->ignore[i].why;
    return NULL;
}

/* ---- models ---- */

const char *framework_model_theirs(const sm_framework *f, const char *ours) {
    for (; f; f = f->like)
        for (int i = 0; i < f->models; i++)
            if (strcmp(f->model[i].ours, ours) == 0) return f->model[i].theirs;
    return NULL;
}

const char *framework_model_ours(const sm_framework *f, const char *theirs) {
    for (; f; f = f->like)
        for (int i = 0; i < f->models; i++)
            if (is_same(theirs, f->model[i].theirs, strlen(f->model[i].theirs)))
                return f->model[i].ours;
    return NULL;
}
