/* A plan as a framework's recipe: each key that has a formula for writing gets its value, with a
 * comment that says where it comes from; what the framework cannot express is listed. */
#include <math.h>
#include <string.h>

#include "framework.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"

typedef enum written_form {
    AS_ARGUMENTS,
    AS_WORDS,
    AS_YAML,
    AS_TOML,
    AS_JSON,
    AS_PROGRAM,
    FORMS
} written_form;
static const char *const forms[FORMS] = {"arguments", "words", "yaml", "toml", "json", "program"};

enum { MOST_LETS = 32 };

typedef struct writing {
    const sm_framework *f;
    const sm_recipe_job *job;
    sm_report r; /* of which the arena alone is used, and whether memory ran out */
    FILE *out;
    written_form form;
    char table[128];          /* of TOML and YAML: what the last key stood under */
    sm_data *root, *comments; /* of JSON */
    expression_value let[MOST_LETS];
    int lets; /* so many of the framework's are known */
} writing;

/* ---- what names mean ---- */

static expression_value plan_value_of(const writing *w, sm_plan_key key) {
    char text[256];
    const sm_plan_key_row *row = sm_plan_key_row_of(key);
    sm_plan_key_print(w->job->plan, key, w->job->system->torus_dims, text, sizeof text);
    double number = 0;
    sm_source source = sm_source_of("", text);
    if (row->value == SM_PLAN_VALUE_INTEGER &&
        !sm_quantity_parse(&source, (sm_span){0, source.length}, SM_Q_COUNT, &number, NULL))
        return value_number(number);
    bool is_switch = row->words.n == 2 && strcmp(row->words.word[1], "on") == 0;
    if (is_switch) return value_number(strcmp(text, "on") == 0);
    return value_text(sm_arena_copy(w->r.arena, text, strlen(text)));
}

/* Do layers have a weight of this name? */
static bool has_weight(const writing *w, const char *name) {
    const sm_architecture *a = w->job->model->architecture;
    sm_error why;
    for (int k = 0; a && k < sm_architecture_kinds(a); k++) {
        const sm_text_lines_of of = {.kind = k, .T = 1, .S = 1};
        const sm_text_lines *lines;
        if (sm_architecture_lines(a, &of, w->r.arena, &lines, &why)) continue;
        for (int i = 0; i < lines->arrays; i++)
            if (strcmp(lines->array[i].name, name) == 0) return true;
    }
    return false;
}

/* Sizes, weights, and facts by their usual names. */
static expression_value model_value(const writing *w, const char *name) {
    const sm_architecture *a = w->job->model->architecture;
    expression_value size = framework_model_size(w->job->model, name);
    double fact = 0;
    if (size.kind != VALUE_ABSENT) return size;
    if (strcmp(name, "max_length") == 0) return value_number(w->job->seq);
    static const char *const weights[][2] = {{"norms_queries", "mixer.nq"},
                                             {"biases_queries", "mixer.bq"},
                                             {"corrects_experts", "ffn.bc"}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (strcmp(name, weights[i][0]) == 0) return value_number(has_weight(w, weights[i][1]));
    return a && sm_architecture_number(a, name, &fact) && fact > 0 ? value_number(fact) : size;
}

/* Chips on the innermost switch, which several hosts may share; of a torus those of a host. */
static double domain_of(const sm_system *s) {
    bool switched = s->levels > 0 && s->torus_dims == 0;
    return switched ? s->level[0].size : sm_chip_host_sharers(&s->chip);
}

/* The layers of each chunk, given or not: "7.8.8.7". */
static expression_value chunks_value(const writing *w) {
    const sm_plan *plan = w->job->plan;
    bool dual = plan->schedule == SM_SCHEDULE_DUALPIPE;
    int chunks = plan->pipeline * (dual ? 1 : plan->virtual_stages);
    int *of = sm_arena_array(w->r.arena, (size_t)chunks, sizeof *of);
    char *text = sm_arena_alloc(w->r.arena, 8 * (size_t)chunks + 8);
    size_t n = 0;
    if (!of || !text) return (expression_value){.kind = VALUE_ABSENT};
    sm_plan_layout_fill(plan, w->job->model->L, chunks, of);
    for (int c = 0, same; c < chunks; c += same) {
        for (same = 1; c + same < chunks && of[c + same] == of[c];) same++;
        n += (size_t)sprintf(text + n, same > 1 ? "%s%d*%d" : "%s%d", c ? "." : "", of[c], same);
    }
    return value_text(text);
}

/* The id of a model of the catalogue on a hub: the first of its names that has an owner. */
static expression_value hub_value(const writing *w, const char *name) {
    const sm_catalogue_entry *entry = sm_catalogue_find(name, strlen(name));
    const char *left = entry ? entry->aliases : NULL, *word;
    for (size_t n; left && (n = sm_next_word(&left, &word)) > 0;)
        if (memchr(word, '/', n)) return value_text(sm_arena_copy(w->r.arena, word, n));
    return (expression_value){.kind = VALUE_ABSENT};
}

static expression_value job_value(const writing *w, const char *name) {
    const sm_recipe_job *j = w->job;
    char text[768];
    const struct {
        const char *name, *text;
    } texts[] = {{"chip", j->system->chip.name},
                 {"system", j->system->text},
                 {"model", j->model->name},
                 {"version", w->f->version},
                 {"weights", j->checkpoint ? NULL : j->weights},
                 {"kv", j->kv},
                 {"software", j->software},
                 {"predicted", j->predicted},
                 {"role", j->role},
                 {"draft", j->draft},
                 {"method", j->method}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) return value_text(texts[i].text);
    if (strcmp(name, "batch") == 0) return value_number(j->batch);
    if (strcmp(name, "accumulation") == 0)
        return value_number(j->batch / (sm_plan_replicas(j->plan) * fmax(1, j->plan->microbatch)));
    if (strcmp(name, "length") == 0) return value_number(j->seq);
    if (strcmp(name, "drafted") == 0) return value_number(j->drafted);
    if (strcmp(name, "eager") == 0) return value_number(j->eager);
    if (strcmp(name, "memory_share") == 0) return value_number(floor(1e3 * j->memory_share) / 1e3);
    if (strcmp(name, "step_tokens") == 0) return value_number(j->step_tokens);
    if (strcmp(name, "chips") == 0) return value_number(sm_plan_chips(j->plan));
    if (strcmp(name, "node") == 0) /* chips that share a host */
        return value_number(fmin(fmin(domain_of(j->system), sm_chip_host_sharers(&j->system->chip)),
                                 sm_plan_chips(j->plan)));
    if (strcmp(name, "domain") == 0)
        return value_number(fmin(domain_of(j->system), sm_plan_chips(j->plan)));
    if (strcmp(name, "slices") == 0) return value_number(j->system->slices);
    if (strcmp(name, "chip_devices") == 0) return value_number(j->system->chip.devices);
    if (strcmp(name, "torus") == 0) return value_number(j->system->torus_dims > 0);
    if (strcmp(name, "their_model") == 0)
        return value_text(j->checkpoint ? j->checkpoint
                                        : framework_model_theirs(w->f, j->model->name));
    if (strcmp(name, "hub_model") == 0) return hub_value(w, j->model->name);
    if (strcmp(name, "hub_draft") == 0 && j->draft) return hub_value(w, j->draft);
    if (strcmp(name, "chunks") == 0) return chunks_value(w);
    if (strcmp(name, "plan") != 0 && strcmp(name, "job") != 0) return model_value(w, name);
    sm_plan_format(j->plan, j->system->torus_dims, text, sizeof text);
    bool whole = name[0] == 'j';
    return value_text(sm_arena_printf(w->r.arena, "%s%s%s%s%s", whole ? j->model->name : "",
                                      whole ? " on " : "", whole ? j->system->text : "",
                                      whole ? ": " : "", text));
}

static expression_value lookup(const void *context, const char *name) {
    const writing *w = context;
    for (int i = 0; i < w->lets; i++)
        if (strcmp(w->f->let[i].sets, name) == 0) return w->let[i];
    for (int i = 0; i < SM_PLAN_KEY_COUNT; i++) {
        const sm_plan_key_row *row = sm_plan_key_row_of((sm_plan_key)i);
        if (strcmp(row->name, name) == 0 && row->uses >> w->job->plan->use & 1)
            return plan_value_of(w, (sm_plan_key)i);
    }
    return job_value(w, name);
}

static expression_value work(writing *w, const expression *e) {
    return expression_work(e, lookup, w, w->r.arena, &w->r.out_of_memory);
}

/* ---- lines with {formulas} ---- */

static void put_value(writing *w, expression_value v) {
    char text[40];
    if (v.kind == VALUE_TEXT) fputs(v.text, w->out);
    if (v.kind != VALUE_NUMBER) return;
    sm_format_exact(text, sizeof text, v.number);
    fputs(text, w->out);
}

static sm_status put_line(writing *w, const char *line, sm_error *err) {
    sm_source source = sm_source_of(w->f->name, line);
    for (size_t at = 0; at < source.length;) {
        size_t text = strcspn(line + at, "{");
        fwrite(line + at, 1, text, w->out);
        at += text;
        if (at == source.length) break;
        /* ${NAME} and {} are the shell's. */
        size_t inner = strcspn(line + at + 1, "}");
        bool shell = (at > 0 && line[at - 1] == '$') || inner == 0 || line[at + 1 + inner] != '}';
        if (shell) {
            fputc(line[at++], w->out);
            continue;
        }
        const expression *e;
        sm_status status = expression_parse(&source, (sm_span){at + 1, inner}, w->r.arena, &e, err);
        if (status) return status;
        expression_value value = work(w, e);
        at += inner + 2;
        /* all of a line that is not to be written */
        if (inner + 2 == source.length && value.kind == VALUE_ABSENT) return SM_OK;
        put_value(w, value);
    }
    fputc('\n', w->out);
    return SM_OK;
}

static sm_status put_lines(writing *w, const char *const *line, int n, sm_error *err) {
    sm_status status = SM_OK;
    for (int i = 0; i < n && !status; i++) status = put_line(w, line[i], err);
    return status;
}

/* ---- settings ---- */

static bool is_plain(const char *text) {
    return text[0] && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                   "_./,:=+-@") == strlen(text);
}

/* The last component of a dotted key; *length: of what it stands under. */
static const char *leaf_of(const char *key, size_t *length) {
    const char *dot = strrchr(key, '.');
    *length = dot ? (size_t)(dot - key) : 0;
    return dot ? dot + 1 : key;
}

static bool enter_table(writing *w, const char *key) {
    size_t n;
    leaf_of(key, &n);
    if (strlen(w->table) == n && strncmp(w->table, key, n) == 0) return false;
    snprintf(w->table, sizeof w->table, "%.*s", (int)n, key);
    return true;
}

/* How many components a path of so many bytes has. */
static int components(const char *path, size_t length) {
    int n = length > 0;
    for (size_t i = 0; i < length; i++) n += path[i] == '.';
    return n;
}

/* Of YAML: the names of mappings that are not open yet, each on a line of its own. */
static void enter_mappings(writing *w, const char *key, size_t under) {
    size_t same = 0; /* bytes of whole components that are open */
    for (size_t i = 0; i <= under; i++) {
        bool ends = (i == under || key[i] == '.') && (w->table[i] == '\0' || w->table[i] == '.');
        if (ends && strncmp(w->table, key, i) == 0) same = i;
        if (i == under || w->table[i] == '\0') break;
    }
    for (size_t at = same ? same + 1 : 0; at < under;) {
        size_t n = 0;
        while (at + n < under && key[at + n] != '.') n++;
        fprintf(w->out, "%*s%.*s:\n", 2 * (components(key, at + n) - 1), "", (int)n, key + at);
        at += n + 1;
    }
    enter_table(w, key);
}

static void put_setting(writing *w, const framework_key *k, expression_value v) {
    char value[512], setting[700];
    size_t under;
    const char *leaf = leaf_of(k->key, &under);
    /* The value as the form writes it. */
    bool shell = w->form == AS_ARGUMENTS || w->form == AS_WORDS;
    bool bare = k->type == TYPE_SWITCH && v.kind != VALUE_TEXT; /* a text is its value, said out */
    if (k->type == TYPE_SWITCH)
        snprintf(value, sizeof value, "%s", value_holds(v) ? "true" : "false");
    else if (v.kind == VALUE_NUMBER) sm_format_exact(value, sizeof value, v.number);
    else if (!shell) snprintf(value, sizeof value, "\"%s\"", v.text);
    else snprintf(value, sizeof value, is_plain(v.text) ? "%s" : "'%s'", v.text);
    switch (w->form) {
    case AS_ARGUMENTS:
        if (k->type == TYPE_SWITCH && !value_holds(v)) return;
        snprintf(setting, sizeof setting, "    %s%s%s", k->key, bare ? "" : " ", bare ? "" : value);
        break;
    case AS_WORDS: snprintf(setting, sizeof setting, "    %s=%s", k->key, value); break;
    case AS_TOML:
        if (enter_table(w, k->key)) fprintf(w->out, "\n[%s]\n", w->table);
        snprintf(setting, sizeof setting, "%s = %s", leaf, value);
        break;
    case AS_YAML:
        enter_mappings(w, k->key, under);
        snprintf(setting, sizeof setting, "%*s%s: %s", 2 * components(k->key, under), "", leaf,
                 value);
        break;
    default: return;
    }
    const char *about = k->about;
    if (about[0]) fprintf(w->out, "%-52s  # %s\n", setting, about);
    else fprintf(w->out, "%s\n", setting);
}

/* "zero_optimization.stage" is a field of an object in the object. */
static void put_json(writing *w, const framework_key *k, expression_value v) {
    const char *key = k->key;
    sm_data *object = sm_put_nested(&w->r, w->root, &key);
    if (k->type == TYPE_SWITCH) sm_put(&w->r, object, key, value_holds(v));
    else if (v.kind == VALUE_NUMBER) sm_put(&w->r, object, key, v.number);
    else sm_put(&w->r, object, key, v.text);
}

/* Does the framework of its own, before one it is like, have a key of this name? */
static bool is_hidden(const sm_framework *f, const sm_framework *owner, const framework_key *key) {
    for (; f != owner; f = f->like)
        for (int i = 0; i < f->keys; i++)
            if (f->key[i].name && key->name && strcmp(f->key[i].name, key->name) == 0) return true;
    return false;
}

/* Of one that is like another only its own keys are written: its recipes set the others. */
static void put_settings(writing *w) {
    for (int i = 0; i < w->f->keys; i++) {
        const framework_key *k = &w->f->key[i];
        if (!k->write || is_hidden(w->f, w->f, k)) continue;
        expression_value v = work(w, k->write);
        if (v.kind == VALUE_ABSENT) continue;
        if (w->form == AS_JSON) put_json(w, k, v);
        else put_setting(w, k, v);
    }
}

/* ---- what cannot be said ---- */

static void put_comment(writing *w, const char *text) {
    if (w->form == AS_JSON) sm_put(&w->r, w->comments, NULL, text);
    else fprintf(w->out, "# %s\n", text);
}

static void put_limit(writing *w, int *said, const char *what, const char *because) {
    if ((*said)++ == 0) put_comment(w, "What this framework cannot be told of the plan:");
    const char *colon = what[0] && because[0] ? ": " : "";
    put_comment(w, sm_textf(&w->r, "- %s%s%s", what, colon, because));
}

/* Rules that the plan is against, and what else the framework says it cannot. */
static int put_limits(writing *w) {
    const sm_plan_job job = {w->job->model, w->job->system, w->job->batch};
    const uint64_t keys = sm_plan_keys_for(w->job->plan, w->job->model);
    int said = 0;
    for (int i = 0; i < w->f->rules; i++) {
        const framework_rule *rule = &w->f->rule[i];
        char value[300] = "", text[256];
        if (!framework_breaks(rule, w->job->plan, keys, &job)) continue;
        if (rule->key < SM_PLAN_KEY_COUNT) {
            sm_plan_key_print(w->job->plan, rule->key, 0, text, sizeof text);
            snprintf(value, sizeof value, "%s=%s", sm_plan_key_row_of(rule->key)->name, text);
        }
        put_limit(w, &said, value, rule->because);
    }
    for (int i = 0; i < w->f->limits; i++)
        if (value_holds(work(w, w->f->limit[i].when))) put_limit(w, &said, "", w->f->limit[i].say);
    return said;
}

/* ---- the whole ---- */

/* JSON has no comments: they are an array of their own, which its readers pass over. */
static sm_status write_json(writing *w, int *cannot, sm_error *err) {
    w->root = sm_data_object(w->r.arena);
    if (!w->root) return sm_fail_memory(err);
    put_settings(w);
    w->comments = sm_put_array(&w->r, w->root, "_scalemodel");
    const sm_recipe_job *j = w->job;
    put_comment(w, sm_textf(&w->r, "%s %s", w->f->title, w->f->version));
    put_comment(w, sm_textf(&w->r, "%s on %s", j->model->name, j->system->text));
    put_comment(w, sm_textf(&w->r, "predicted: %s", j->predicted ? j->predicted : ""));
    for (int i = 0; i < w->f->keys; i++) {
        const framework_key *k = &w->f->key[i];
        if (!k->write || work(w, k->write).kind == VALUE_ABSENT) continue;
        put_comment(w, sm_textf(&w->r, "%s: %s", k->key, k->about));
    }
    *cannot = put_limits(w);
    return w->r.out_of_memory ? SM_OK : sm_json_write(w->out, w->root, SM_JSON_PAGE, err);
}

static sm_status write_all(writing *w, int *cannot, sm_error *err) {
    for (int i = 0; i < w->f->lets && i < MOST_LETS; i++) {
        w->let[i] = work(w, w->f->let[i].from);
        w->lets = i + 1;
    }
    if (w->form == AS_JSON) return write_json(w, cannot, err);
    sm_status status = put_lines(w, w->f->begin, w->f->begins, err);
    if (status) return status;
    if (w->job->program) fputs(w->job->program, w->out);
    put_settings(w);
    status = put_lines(w, w->f->end, w->f->ends, err);
    if (!status) *cannot = put_limits(w);
    return status;
}

sm_status sm_recipe_write(const sm_framework *framework, const sm_recipe_job *job, sm_arena *arena,
                          char **text, int *cannot, sm_error *err) {
    sm_memory_stream memory;
    int form = 0;
    while (form < FORMS && strcmp(framework->form, forms[form]) != 0) form++;
    if (form == FORMS)
        return sm_fail(err, SM_BAD_INPUT, "%s has a form \"%.40s\", which is none of those known",
                       framework->name, framework->form);
    if (framework->use != job->plan->use)
        return sm_fail(err, SM_USAGE, "%s %s: it cannot run this plan", framework->title,
                       framework->use == SM_PLAN_SERVING ? "serves" : "trains");
    writing w = {.f = framework, .job = job, .r = {.arena = arena}, .form = (written_form)form};
    w.out = sm_memory_stream_open(&memory);
    if (!w.out) return sm_fail_memory(err);
    sm_status status = write_all(&w, cannot, err);
    if (!status && w.r.out_of_memory) status = sm_fail_memory(err);
    status = sm_memory_stream_close(&memory, w.out, status, err);
    if (status) return status;
    *text = sm_arena_copy(arena, memory.text, memory.length);
    sm_free(memory.text);
    return *text ? SM_OK : sm_fail_memory(err);
}
