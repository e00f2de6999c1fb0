/* Serving software as data/engines and files of one's own have it, and what differs of one. */
#include "json_tree.h"
#include "software_table.h"

#include <math.h>
#include <string.h>

#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

static const char *const keys[] = {SM_SOFTWARE_FLAGS(SM_ID_OF) SM_SOFTWARE_NUMBERS(SM_ID_OF)};

static sm_status set_number(double *number, double least, double most, const sm_source *source,
                            sm_span value, sm_error *err) {
    sm_status status = sm_quantity_parse(source, value, SM_Q_COUNT, number, err);
    if (status || (*number >= least && *number <= most)) return status;
    return sm_fail_at(err, source, value, "expected %.10g to %.10g", least, most);
}

/* The key of that place in `keys`. */
static sm_status set_key(sm_software *software, int which, const sm_source *source, sm_span value,
                         sm_error *err) {
    static const char *const switches[] = {"off", "on", "false", "true"};
    const sm_words words = {switches, 4};
    int at = 0, on = 0;
#define X(key, usual, what)                                                                        \
    if (which == at++) {                                                                           \
        on = sm_words_find(words, source, value);                                                  \
        software->key = on & 1;                                                                    \
    }
    SM_SOFTWARE_FLAGS(X)
#undef X
    if (on < 0) return sm_words_fail(words, source, value, "a flag is not", err);
#define X(key, usual, least, most, what)                                                           \
    if (which == at++) return set_number(&software->key, least, most, source, value, err);
    SM_SOFTWARE_NUMBERS(X)
#undef X
    return SM_OK;
}

/* A limit of each group of chips stands in place of one of all; no default changes what is given.
 */
static void note_limit(sm_software *software, const char *key) {
    if (strcmp(key, "budget_tokens") == 0) software->budget_of_all = 0;
    if (strcmp(key, "most_running") == 0) software->most_of_all = 0;
    software->budget_given |= strncmp(key, "budget_", 7) == 0;
    software->most_given |= strncmp(key, "most_", 5) == 0;
    software->share_given |= strcmp(key, "memory_share") == 0;
    software->widening_given |= strcmp(key, "widening_rate") == 0;
}

sm_status sm_software_set(sm_software *software, const sm_source *source, sm_error *err) {
    const sm_words words = {keys, COUNT_OF(keys)};
    const sm_span all = {0, source->length};
    sm_status status = SM_OK;
    for (size_t next = 0; !status && next <= source->length;) {
        const sm_span part = sm_next_part(source, all, ',', &next);
        size_t at = part.offset, end = part.offset + part.length;
        sm_span key = sm_next_part(source, part, '=', &at);
        int which = sm_words_find(words, source, key);
        if (which < 0) return sm_words_fail(words, source, key, "an engine has no key", err);
        if (at > end)
            return sm_fail_at(err, source, part, "expected a value, as in %s", "look_steps=30");
        status = set_key(software, which, source, (sm_span){at, end - at}, err);
        note_limit(software, keys[which]);
    }
    return status;
}

static sm_status read_default(const json_value *v, sm_software_default *out) {
    double gib = 0;
    *out = (sm_software_default){0};
    sm_status status = json_expect_keys(
        v, "a default {...}",
        "memory_gib_at_least|chip|not_chip|family|drafts|budget_tokens|budget_of_all|most_running|"
        "most_of_all|widening_rate");
    if (!status) status = json_read_number(json_get(v, "memory_gib_at_least"), 1e-3, 1e6, &gib);
    out->memory_at_least = ldexp(gib, 30);
    if (!status) status = json_read_text(json_get(v, "chip"), &out->chip);
    if (!status) status = json_read_text(json_get(v, "not_chip"), &out->not_chip);
    if (!status) status = json_read_text(json_get(v, "family"), &out->family);
    if (!status) status = json_read_bool(json_get(v, "drafts"), &out->drafts);
#define READ(key, least, most)                                                                     \
    if (!status) status = json_read_number(json_get(v, #key), least, most, &out->key)
    READ(budget_tokens, 1, 1e9);
    READ(budget_of_all, 1, 1e9);
    READ(most_running, 1, 1e9);
    READ(most_of_all, 1, 1e9);
    READ(widening_rate, 0.05, 1);
#undef READ
    return status;
}

/* The first holds everywhere and has both limits: no chip is left with those of another. */
static sm_status read_defaults(const json_value *list, sm_software *out) {
    sm_status status = json_expect(list, IS_LIST, "defaults [...]");
    if (status) return status;
    sm_software_default *all = sm_arena_array(list->in->arena, (size_t)list->n + 1, sizeof *all);
    if (!all) return sm_fail_memory(list->in->err);
    for (uint32_t i = 0; i < list->n && !status; i++)
        status = read_default(&list->item[i], &all[i]);
    const sm_software_default *d = all;
    if (!status && (list->n == 0 || d->memory_at_least > 0 || d->chip || d->not_chip || d->family ||
                    d->drafts || !(d->budget_tokens + d->budget_of_all > 0) ||
                    !(d->most_running + d->most_of_all > 0)))
        status = json_fail(list, "the first default holds everywhere, of tokens and sequences");
    out->defaults = all;
    out->n_defaults = (int)list->n;
    return status;
}

static const sm_software usual = {
#define X(key, usual, ...) .key = usual,
    SM_SOFTWARE_FLAGS(X) SM_SOFTWARE_NUMBERS(X)
#undef X
};

/* What an engine has that its file does not say: all of the one that it is like. Those who make the
 * table look after that themselves. */
static sm_status begin(const json_value *root, sm_software *out) {
    const size_t n = sm_software_table_count;
    const json_value *like = json_get(root, "like");
    int at;
    if (!like || n == 0) return SM_OK;
    const char **names = sm_arena_array(root->in->arena, n, sizeof *names);
    if (!names) return sm_fail_memory(root->in->err);
    for (size_t i = 0; i < n; i++) names[i] = sm_software_table[i].name;
    sm_status status = json_read_choice(like, names, n, &at);
    if (status) return status;
    *out = sm_software_table[at];
    out->name = out->title = out->aliases = NULL;
    return SM_OK;
}

sm_status sm_software_parse(const sm_source *source, sm_arena *arena, sm_software *out,
                            sm_error *err) {
    const json_document document = {.source = source, .arena = arena, .err = err};
    const json_value *root;
    sm_status status = json_parse(&document, &root);
    *out = usual;
    if (!status) status = json_expect(root, IS_OBJECT, "an engine {...}");
    if (!status) status = begin(root, out);
    const char *const names[] = {"name", "title", "aliases", "like", "defaults"};
    const char **const texts[] = {&out->name, &out->title, &out->aliases, &out->like};
    const char *known[COUNT_OF(names) + COUNT_OF(keys)];
    memcpy(known, names, sizeof names);
    memcpy(known + COUNT_OF(names), keys, sizeof keys);
    if (!status) status = json_check_keys(root, known, COUNT_OF(known));
    for (uint32_t i = 0; !status && i < root->n; i++) {
        const json_value *v = &root->item[i];
        const sm_span place = json_place(v), within = {place.offset + 1, place.length - 2};
        int at = 0;
        while (strcmp(known[at], v->key) != 0) at++;
        if (at < (int)COUNT_OF(texts)) status = json_read_text(v, texts[at]);
        else if (at < (int)COUNT_OF(names)) status = read_defaults(v, out);
        else
            status = set_key(out, at - (int)COUNT_OF(names), source,
                             json_is(v, IS_TEXT) ? within : place, err);
        note_limit(out, v->key);
    }
    if (!status && (!out->name || !out->name[0] || !out->title))
        status = json_fail(root, "an engine needs a \"name\" and a \"title\"");
    return status;
}
