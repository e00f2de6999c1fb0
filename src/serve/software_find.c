/* Serving software by its name, and the constants that it is priced with. */
#include "serve_space.h"
#include "software_table.h"

#include <assert.h>

static const sm_software *find(const char *name) {
    for (size_t i = 0; i < sm_software_table_count; i++) {
        const sm_software *s = &sm_software_table[i];
        if (sm_is_called(s->name, s->aliases ? s->aliases : "", name, strlen(name))) return s;
    }
    return NULL;
}

static bool holds(const sm_software_default *d, const sm_chip *chip, const sm_model *model,
                  bool drafts) {
    return sm_chip_memory(chip)->value >= d->memory_at_least && (!d->drafts || drafts) &&
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
    if (!s->widening_given) s->widening_rate = 1;
    for (int i = 0; i < s->n_defaults; i++) {
        const sm_software_default *d = &s->defaults[i];
        if (!holds(d, chip, model, drafts)) continue;
        if (!s->budget_given)
            take(d->budget_tokens, d->budget_of_all, &s->budget_tokens, &s->budget_of_all);
        if (!s->most_given)
            take(d->most_running, d->most_of_all, &s->most_running, &s->most_of_all);
        if (!s->widening_given && d->widening_rate > 0) s->widening_rate = d->widening_rate;
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
const sm_software *sm_software_differs(const sm_software *software, char *out, size_t size) {
    const sm_software *base =
        sm_software_of(find(software->name) ? software->name : software->like);
    sm_software named = *base;
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
    if (!software->widening_given) named.widening_rate = software->widening_rate;
#define X(key, usual, least, most, what)                                                           \
    snprintf(number, sizeof number, "%.10g", software->key);                                       \
    if (software->key < named.key || software->key > named.key) put_key(out, size, #key, number);
    SM_SOFTWARE_NUMBERS(X)
#undef X
    return base;
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
