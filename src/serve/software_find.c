/* Serving software by its name, and the constants that it is priced with. */
#include "serve_space.h"
#include "software_table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const sm_software *find(const char *name) {
    for (size_t i = 0; i < sm_software_table_count; i++) {
        const sm_software *s = &sm_software_table[i];
        if (sm_is_called(s->name, s->aliases ? s->aliases : "", name, strlen(name))) return s;
    }
    return NULL;
}

static const char *const keys[] = {
#define X(key, usual, what) #key,
    SM_SOFTWARE_FLAGS(X)
#undef X
#define X(key, usual, least, most, what) #key,
        SM_SOFTWARE_NUMBERS(X)
#undef X
};

static sm_status set_number(double *number, double least, double most, const sm_source *source,
                            sm_span value, sm_error *err) {
    sm_status status = sm_quantity_parse(source, value, SM_Q_COUNT, number, err);
    if (status || (*number >= least && *number <= most)) return status;
    return sm_fail_at(err, source, value, "expected %.10g to %.10g", least, most);
}

/* The key of that place in `keys`. */
static sm_status set_key(sm_software *software, int which, const sm_source *source, sm_span value,
                         sm_error *err) {
    static const char *const switches[] = {"off", "on"};
    const sm_words words = {switches, 2};
    int at = 0, on = 0;
#define X(key, usual, what)                                                                        \
    if (which == at++) {                                                                           \
        on = sm_words_find(words, source, value);                                                  \
        software->key = on > 0;                                                                    \
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
}

sm_status sm_software_set(sm_software *software, const sm_source *source, sm_error *err) {
    const sm_words words = {keys, sizeof keys / sizeof keys[0]};
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

static bool holds(const sm_software_default *d, const sm_chip *chip, const sm_model *model,
                  bool drafts) {
    return driver_memory(chip) >= d->memory_at_least && (!d->drafts || drafts) &&
           (!d->chip || strstr(chip->name, d->chip)) &&
           !(d->not_chip && strstr(chip->name, d->not_chip)) &&
           (!d->family || strcmp(model->family, d->family) == 0);
}

/* A number of each group of chips stands in place of one of all, and the other way round. */
static void take(double each, double all, double *to_each, double *to_all) {
    if (each > 0) *to_each = each;
    if (each > 0 || all > 0) *to_all = all;
}

void sm_software_on(sm_software *s, const sm_chip *chip, const sm_model *model, bool drafts) {
    for (int i = 0; i < s->n_defaults; i++) {
        const sm_software_default *d = &s->defaults[i];
        if (!holds(d, chip, model, drafts)) continue;
        if (!s->budget_given)
            take(d->budget_tokens, d->budget_of_all, &s->budget_tokens, &s->budget_of_all);
        if (!s->most_given)
            take(d->most_running, d->most_of_all, &s->most_running, &s->most_of_all);
    }
}

double sm_software_budget(const sm_software *s, double groups) {
    return s->budget_of_all > 0 ? fmax(groups, s->budget_of_all) : s->budget_tokens * groups;
}

double sm_software_most(const sm_software *s, double groups) {
    return s->most_of_all > 0 ? fmax(groups, s->most_of_all) : s->most_running * groups;
}

const sm_software *sm_software_of(const char *name) {
    const sm_software *own = name ? find(name) : NULL, *any = own ? own : find("serving");
    assert(any);
    return any;
}

static void put_key(char *out, size_t size, const char *key, const char *value) {
    size_t at = strlen(out);
    snprintf(out + at, size - at, "%s%s=%s", at > 0 ? "," : "", key, value);
}

static void put_limit(char *out, size_t size, const char *each, double of_each, const char *all,
                      double of_all) {
    char number[32];
    snprintf(number, sizeof number, "%.10g", of_all > 0 ? of_all : of_each);
    put_key(out, size, of_all > 0 ? all : each, number);
}

/* Limits where they are given: those of its name are not the same on each chip. */
void sm_software_differs(const sm_software *software, char *out, size_t size) {
    sm_software named = *sm_software_of(software->name);
    char number[32];
    out[0] = '\0';
#define X(key, usual, what)                                                                        \
    if (software->key != named.key) put_key(out, size, #key, software->key ? "on" : "off");
    SM_SOFTWARE_FLAGS(X)
#undef X
    if (software->budget_given)
        put_limit(out, size, "budget_tokens", software->budget_tokens, "budget_of_all",
                  software->budget_of_all);
    if (software->most_given)
        put_limit(out, size, "most_running", software->most_running, "most_of_all",
                  software->most_of_all);
    named.budget_tokens = software->budget_tokens;
    named.budget_of_all = software->budget_of_all;
    named.most_running = software->most_running;
    named.most_of_all = software->most_of_all;
#define X(key, usual, least, most, what)                                                           \
    snprintf(number, sizeof number, "%.10g", software->key);                                       \
    if (software->key < named.key || software->key > named.key) put_key(out, size, #key, number);
    SM_SOFTWARE_NUMBERS(X)
#undef X
}

/* Of the chip itself, or with relatives: another version on this chip is nearer than this version
 * on another (held-out-serving.csv: 16.4 % with the software left out, 17.4 % with the chip). */
static const sm_calibration *along(const sm_chip *chip, const char *name, bool relatives) {
    for (size_t i = 0; i <= sm_software_table_count && name; i++) {
        const sm_software *software = find(name);
        const sm_calibration *c = sm_calibration_for(chip, software ? software->name : name);
        if (c && (relatives || sm_calibration_is_own(c, chip))) return c;
        name = software ? software->like : NULL;
    }
    return NULL;
}

const sm_calibration *sm_software_calibration(const sm_chip *chip, const char *name) {
    const sm_calibration *own = along(chip, name, false);
    return own ? own : along(chip, name, true);
}
