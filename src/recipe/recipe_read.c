/* Settings as a job and a plan. Each setting binds the key it spells; then the framework's formulas
 * make quantities of the keys, in their order, the first that gives a value winning. */
#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "framework.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

enum { MOST_QUANTITIES = 96 };

typedef struct quantity {
    const char *name;
    expression_value value;
} quantity;

typedef struct bound {
    const framework_key *key;
    const sm_setting *setting;
    expression_value value;
} bound;

typedef struct reading {
    const sm_framework *f;
    const sm_settings *settings;
    sm_arena *arena;
    sm_recipe *out;
    sm_error *err;
    sm_recipe_chips chips;
    int bounds, quantities, notes_room;
    bound *bound; /* one a setting at most */
    quantity quantity[MOST_QUANTITIES];
    bool out_of_memory;
    size_t counted; /* bytes of the source, and the line they end on */
    int line;
} reading;

/* ---- which framework ---- */

/* Is the framework named somewhere, as an image or a program is? */
static bool is_named(const sm_framework *f, const sm_source *source) {
    size_t n = strlen(f->name);
    for (size_t at = 0; at + n <= source->length; at++)
        if (strncasecmp(source->text + at, f->name, n) == 0) return true;
    return false;
}

/* A key of its own counts most: those that are like another know that one's keys too. Of those that
 * know as much the one that is named. */
static int knows(const sm_framework *f, const sm_settings *s) {
    int score = 0;
    for (int i = 0; i < s->n; i++) {
        const framework_key *key = framework_key_of(f, s->list[i].key);
        if (key) score += (key >= f->key && key < f->key + f->keys ? 3 : 2) * (key->name ? 2 : 1);
    }
    return score > 0 ? 2 * score + is_named(f, &s->source) : 0;
}

/* ---- notes ---- */

static int line_of(reading *r, const sm_setting *s) {
    const sm_source *source = &r->settings->source;
    if (!s) return 0;
    if (s->at.offset < r->counted || r->line == 0) r->counted = 0, r->line = 1;
    for (; r->counted < s->at.offset && r->counted < source->length; r->counted++)
        r->line += source->text[r->counted] == '\n';
    return r->line;
}

static void tell(reading *r, sm_recipe_told told, const sm_setting *s, const char *what,
                 const char *why) {
    sm_recipe_note *list =
        sm_arena_grow(r->arena, r->out->note, r->out->notes, &r->notes_room, sizeof *list);
    if (!list || !what || !why) {
        r->out_of_memory = true;
        return;
    }
    r->out->note = list;
    list[r->out->notes++] = (sm_recipe_note){told, line_of(r, s), what, why};
}

static void tell_setting(reading *r, sm_recipe_told told, const sm_setting *s, const char *why) {
    const char *value = s->unknown ? s->unknown : s->value;
    const char *what =
        sm_arena_printf(r->arena, "%.60s%s%.60s", s->key, value[0] ? " " : "", value);
    tell(r, told, s, what, why);
}

/* ---- values ---- */

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcasecmp(text, *words) == 0) return true;
    return false;
}
static const char *const nothings[] = {"", "none", "null", "auto", "~", NULL};
static const char *const falses[] = {"false", "0", "no", "off", "none", "null", NULL};

/* The first word of a value as a number; underscores between digits go. */
static sm_status read_number(reading *r, const sm_setting *s, expression_value *out) {
    char plain[48];
    size_t n = 0;
    for (const char *at = s->value; *at && *at != ' ' && n + 1 < sizeof plain; at++)
        if (*at != '_') plain[n++] = *at;
    plain[n] = '\0';
    char *end;
    double number = strtod(plain, &end);
    if (end == plain || *end || !isfinite(number))
        return sm_fail_at(r->err, &r->settings->source, s->at, "%.60s is a number, not \"%.60s\"",
                          s->key, s->value);
    *out = value_number(number);
    return SM_OK;
}

static sm_status read_setting(reading *r, const framework_key *key, const sm_setting *s,
                              expression_value *out) {
    *out = (expression_value){.kind = VALUE_ABSENT};
    if (!key->name) *out = value_text(s->value);
    else if (key->type == TYPE_SWITCH) *out = value_number(!is_one_of(s->value, falses));
    else if (key->type == TYPE_NUMBER)
        return is_one_of(s->value, nothings) ? SM_OK : read_number(r, s, out);
    else if (!s->value[0] || strcmp(s->value, "None") == 0) return SM_OK; /* "none" is a word */
    else *out = value_text(s->value);
    return SM_OK;
}

static sm_status bind_setting(reading *r, const sm_setting *s) {
    const framework_key *key = framework_key_of(r->f, s->key);
    const char *why = key ? NULL : framework_ignores(r->f, s->key);
    if (s->nothing || (!key && s->loose)) return SM_OK;
    if (!key) {
        if (!why) why = "no key that is known here";
        tell_setting(r, SM_TOLD_IGNORED, s, why);
        return SM_OK;
    }
    if (s->unknown) {
        if (!s->loose || key->name)
            tell_setting(r, SM_TOLD_IGNORED, s,
                         "the value is not known here: put NAME=value before the recipe");
        return SM_OK;
    }
    bound *old = NULL;
    for (int i = 0; i < r->bounds && !old; i++)
        if (r->bound[i].key == key) old = &r->bound[i];
    if (old && s->loose && !old->setting->loose) return SM_OK;
    expression_value value;
    sm_status status = read_setting(r, key, s, &value);
    if (status) return s->loose ? SM_OK : status;
    if (!old) old = &r->bound[r->bounds++];
    else if (strcmp(old->setting->value, s->value) != 0)
        tell_setting(r, SM_TOLD_IGNORED, old->setting,
                     sm_arena_printf(r->arena, "line %d says it again", line_of(r, s)));
    *old = (bound){key, s, value};
    return SM_OK;
}

/* ---- names in formulas ---- */

static const quantity *quantity_of(const reading *r, const char *name) {
    for (int i = 0; i < r->quantities; i++)
        if (strcmp(r->quantity[i].name, name) == 0) return &r->quantity[i];
    return NULL;
}

static expression_value lookup(const void *context, const char *name) {
    const reading *r = context;
    const quantity *q = quantity_of(r, name);
    if (q) return q->value;
    if (strcmp(name, "node") == 0 && r->chips.node > 0) return value_number(r->chips.node);
    if (strcmp(name, "chip") == 0 && r->chips.chip) return value_text(r->chips.chip);
    if (strcmp(name, "slices") == 0 && r->chips.slices > 0) return value_number(r->chips.slices);
    if (strcmp(name, "chip_devices") == 0) return value_number(fmax(1, r->chips.devices));
    expression_value usual = {.kind = VALUE_ABSENT};
    for (const sm_framework *f = r->f; f; f = f->like)
        for (int i = 0; i < f->keys; i++) {
            const framework_key *key = &f->key[i];
            if (!key->name || strcmp(key->name, name) != 0) continue;
            for (int k = 0; k < r->bounds; k++)
                if (r->bound[k].key == key && r->bound[k].value.kind != VALUE_ABSENT)
                    return r->bound[k].value;
            if (usual.kind == VALUE_ABSENT) usual = key->by_default;
        }
    return usual;
}

/* ---- quantities ---- */

static sm_status set(reading *r, const char *name, expression_value value) {
    if (r->quantities == MOST_QUANTITIES)
        return sm_fail(r->err, SM_BAD_INPUT, "%s sets more than %d quantities", r->f->name,
                       MOST_QUANTITIES);
    r->quantity[r->quantities++] = (quantity){name, value};
    return SM_OK;
}

static sm_status work_reads(reading *r) {
    sm_status status = SM_OK;
    if (r->chips.chips > 0) status = set(r, "chips", value_number(r->chips.chips));
    for (const sm_framework *f = r->f; f && !status; f = f->like)
        for (int i = 0; i < f->reads && !status; i++) {
            const framework_read *read = &f->read[i];
            if (quantity_of(r, read->sets)) continue;
            bool *broken = &r->out_of_memory;
            if (read->when &&
                !value_holds(expression_work(read->when, lookup, r, r->arena, broken)))
                continue;
            expression_value value = expression_work(read->from, lookup, r, r->arena, broken);
            if (value.kind == VALUE_ABSENT) continue;
            status = set(r, read->sets, value);
            if (read->assumed) tell(r, SM_TOLD_ASSUMED, NULL, "", read->assumed);
        }
    if (!status && r->out_of_memory) return sm_fail_memory(r->err);
    return status;
}

static double number_of(const reading *r, const char *name) {
    const quantity *q = quantity_of(r, name);
    return q && q->value.kind == VALUE_NUMBER ? q->value.number : 0;
}

static const char *text_of(const reading *r, const char *name) {
    const quantity *q = quantity_of(r, name);
    return q && q->value.kind == VALUE_TEXT ? q->value.text : NULL;
}

/* ---- the plan ---- */

static sm_status fail_degree(const reading *r, const char *key, double value) {
    char text[40];
    sm_format_exact(text, sizeof text, value);
    return sm_fail(
        r->err, SM_BAD_INPUT,
        "this recipe cannot be run: %s would be %s%s; --on says how many chips there are", key,
        text, r->chips.chips > 0 ? " on these chips" : "");
}

/* Shares of a device are fractions: what is whole but for rounding is whole. */
static double near_whole(double n) { return fabs(n - round(n)) < 1e-9 * fabs(n) ? round(n) : n; }

static sm_status write_plan(reading *r) {
    const char *all = "";
    for (int i = 0; i < SM_PLAN_KEY_COUNT && all; i++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)i);
        const quantity *q = quantity_of(r, row->name);
        const char *comma = all[0] ? "," : "";
        if (!q || !(row->uses >> r->f->use & 1)) continue;
        if (q->value.kind == VALUE_TEXT) {
            all = sm_arena_printf(r->arena, "%s%s%s=%s", all, comma, row->name, q->value.text);
            continue;
        }
        double n = near_whole(q->value.number);
        if (row->value == SM_PLAN_VALUE_WORD && row->words.n == 2 && (n == 0 || n == 1)) {
            all = sm_arena_printf(r->arena, "%s%s%s=%s", all, comma, row->name,
                                  row->words.word[(int)n]);
            continue;
        }
        if (n != floor(n) || n < row->lowest || n > row->highest)
            return fail_degree(r, row->name, n);
        all = sm_arena_printf(r->arena, "%s%s%s=%.0f", all, comma, row->name, n);
    }
    r->out->plan = all;
    return all ? SM_OK : sm_fail_memory(r->err);
}

/* ---- the model ---- */

static void add_field(sm_report *r, sm_data *config, const quantity *q) {
    const char *key = q->name + strlen("config."), *text = q->value.text;
    if (q->value.kind == VALUE_NUMBER) sm_put(r, config, key, q->value.number);
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        sm_put(r, config, key, (bool)(text[0] == 't'));
    else sm_put(r, config, key, text);
}

/* Quantities called config.X are fields of a config.json. */
static sm_status write_config(reading *r) {
    sm_report to = {.arena = r->arena};
    sm_data *config = sm_data_object(r->arena);
    char *text;
    size_t length;
    bool typed = false;
    for (int i = 0; i < r->quantities; i++) {
        if (strncmp(r->quantity[i].name, "config.", strlen("config.")) != 0) continue;
        add_field(&to, config, &r->quantity[i]);
        typed |= strcmp(r->quantity[i].name, "config.model_type") == 0;
    }
    if (to.out_of_memory) return sm_fail_memory(r->err);
    if (!typed) return SM_OK; /* not enough to say which model it is */
    sm_status status = sm_json_format(config, SM_JSON_PAGE, r->arena, &text, &length, r->err);
    r->out->config = status ? NULL : text;
    return status;
}

static sm_status read_model(reading *r) {
    sm_recipe *out = r->out;
    out->named = text_of(r, "model");
    if (out->named) out->model = framework_model_ours(r->f, out->named);
    if (out->named && !out->model) {
        const char *slash = strrchr(out->named, '/'), *stored;
        const sm_catalogue_entry *entry = sm_catalogue_of_id(out->named, &stored);
        if (entry) out->model = !stored ? entry->name : slash ? slash + 1 : out->named;
    }
    return out->model ? SM_OK : write_config(r);
}

/* ---- the whole ---- */

static sm_status read_all(reading *r) {
    const sm_settings *s = r->settings;
    sm_status status = SM_OK;
    for (int i = 0; i < s->n && !status; i++) status = bind_setting(r, &s->list[i]);
    if (status) return status;
    for (int i = 0; i < r->bounds; i++) {
        const bound *b = &r->bound[i];
        bool known = b->key->name && b->value.kind != VALUE_ABSENT;
        tell_setting(r, known ? SM_TOLD_UNDERSTOOD : SM_TOLD_IGNORED, b->setting,
                     known ? b->key->about
                     : b->key->name
                         ? "says nothing"
                         : sm_arena_printf(r->arena, "no part of the price: %s", b->key->about));
    }
    status = work_reads(r);
    if (!status) status = read_model(r);
    if (!status) status = write_plan(r);
    if (!status && r->out_of_memory) status = sm_fail_memory(r->err);
    r->out->system = text_of(r, "system");
    r->out->software = text_of(r, "software");
    r->out->chips = number_of(r, "chips");
    r->out->batch = near_whole(number_of(r, "batch"));
    r->out->seq = number_of(r, "length");
    r->out->weights = text_of(r, "weights");
    r->out->kv = text_of(r, "kv");
    r->out->engine = text_of(r, "engine");
    return status;
}

sm_status sm_recipe_read(const sm_frameworks *all, const sm_framework *framework, sm_plan_use use,
                         const sm_settings *settings, sm_recipe_chips chips, sm_recipe *out,
                         sm_error *err) {
    *out = (sm_recipe){.framework = framework};
    if (!framework) {
        const sm_framework *best = NULL;
        int most = 0;
        for (int i = 0; i < all->n; i++) {
            int score = all->of[i]->use == use ? knows(all->of[i], settings) : 0;
            if (score > most) most = score, best = all->of[i];
        }
        out->framework = best;
    }
    if (!out->framework)
        return sm_fail_at(err, &settings->source, (sm_span){0, 1},
                          "no framework that is known here has settings like these");
    reading *r = sm_arena_alloc(settings->arena, sizeof *r);
    if (!r) return sm_fail_memory(err);
    *r = (reading){.f = out->framework,
                   .settings = settings,
                   .arena = settings->arena,
                   .out = out,
                   .err = err,
                   .chips = chips};
    r->bound = sm_arena_array(r->arena, (size_t)settings->n + 1, sizeof *r->bound);
    return r->bound ? read_all(r) : sm_fail_memory(err);
}
