/* Writes what lies in data/ as C tables of constants, so that a program that starts reads and
 * parses nothing. It is built for the machine that builds, of the library's own readers.
 * usage: embed calibrations data/calibration/NAME.txt... >calibration_table.c
 *        embed chips data/chips/NAME.json... >chip_table.c
 *        embed codebases data/codebases/NAME.json... >codebase_table.c
 *        embed engines data/engines/NAME.json... >software_table.c
 *        embed evidence data/evidence/NAME.tsv... >evidence_table.c
 *        embed families data/families/NAME.family... >family_table.c
 *        embed formats data/formats/NAME.json >NAME_format.c
 *        embed frameworks data/frameworks/NAME.json... >framework_table.c
 *        embed models data/models/catalogue.json data/models/NAME/config.json... >model_table.c
 *        embed verbs data/verbs/options.json data/verbs/VERB.json... >verb_table.c */
#include "chip_schema.h"
#include "codebase_table.h"
#include "family_table.h"
#include "software_table.h"
#include "json_tree.h"
#include "tree.h"
#include "scalemodel/cost.h"
#include "scalemodel/evidence.h"
#include "scalemodel/io.h"
#include "scalemodel/notation.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library looks chips, calibrations and families up in its tables; this program makes them and
 * has none. */
extern const sm_chip sm_chip_table[];
extern const size_t sm_chip_table_count;
const sm_source sm_family_table[1] = {{.name = ""}};
const size_t sm_family_table_count = 0, sm_family_statement_count = 0, sm_family_text_count = 0,
             sm_family_name_count = 0;
const family_statement sm_family_statement[1] = {{.keyword = 0}};
const family_name sm_family_name[1] = {{.at = 0}};
const sm_chip sm_chip_table[1] = {{.name = ""}};
const size_t sm_chip_table_count = 0;
extern const sm_calibration sm_shipped_calibrations[];
extern const size_t sm_shipped_calibration_count;
const sm_calibration sm_shipped_calibrations[1] = {{.chip = ""}};
const size_t sm_shipped_calibration_count = 0;
const sm_software sm_software_table[1] = {{.name = ""}};
const size_t sm_software_table_count = 0;

/* ---- C constants ---- */

static void put_text(const char *text) {
    if (!text) {
        fputs("NULL", stdout);
        return;
    }
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c == '?') printf("\\%c", *c);
        else if (*c < ' ' || *c > '~') printf("\\%03o", *c);
        else putchar(*c);
    }
    putchar('"');
}

/* The shortest text of the same double, as a floating constant. */
static void put_number(double value) {
    char text[40];
    sm_format_exact(text, sizeof text, value);
    printf("%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void put_fact(const char *indent, const char *field, sm_fact fact) {
    if (fact.value <= 0) return;
    printf("%s.%s = {", indent, field);
    put_number(fact.value);
    fputs(", ", stdout);
    put_text(fact.source);
    fputs("},\n", stdout);
}

static void put_text_field(const char *indent, const char *field, const char *text) {
    printf("%s.%s = ", indent, field);
    put_text(text);
    fputs(",\n", stdout);
}

static void put_count(const char *indent, const char *field, int value) {
    printf("%s.%s = %d,\n", indent, field, value);
}

/* ---- a chip ---- */

static void put_level(const sm_tree_level *level) {
    const char *indent = "          ";
    fputs("         {\n", stdout);
    put_text_field(indent, "name", level->name);
    put_count(indent, "degree", level->degree);
    put_fact(indent, "child_bytes_per_s_oneway", level->child_bytes_per_s_oneway);
    put_fact(indent, "hop_latency_s", level->hop_latency_s);
    put_count(indent, "full_mesh", level->full_mesh);
    put_count(indent, "in_network_reduction", level->in_network_reduction);
    put_text_field(indent, "in_network_source", level->in_network_source);
    fputs("         },\n", stdout);
}

static void put_price(const sm_price *price) {
    const char *const texts[] = {price->provider, price->date, price->source};
    fputs("         {", stdout);
    put_number(price->usd_per_chip_hour);
    for (int i = 0; i < 3; i++) {
        fputs(", ", stdout);
        put_text(texts[i]);
    }
    fputs("},\n", stdout);
}

static void put_chip(const sm_chip *chip) {
    const char *indent = "     ";
    fputs("    {\n", stdout);
#define X(key) put_text_field(indent, #key, chip->key);
    SM_CHIP_TEXTS(X)
#undef X
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        char field[32];
        snprintf(field, sizeof field, "flops_per_s[%d]", d);
        put_fact(indent, field, chip->flops_per_s[d]);
    }
#define X(key, ...) put_fact(indent, #key, chip->key);
    SM_CHIP_FACTS(X)
#undef X
#define X(key, most) put_count(indent, #key, (int)chip->key);
    SM_CHIP_COUNTS(X)
    X(links_per_chip, )
    X(tile_m, )
    X(tile_n, )
    X(tile_k, )
    X(fabric, )
    X(wrap_rule, )
    X(torus_axes, )
    X(tree_levels, )
    X(prices, )
#undef X
    printf("%s.pod_shape = {%d, %d, %d},\n", indent, chip->pod_shape[0], chip->pod_shape[1],
           chip->pod_shape[2]);
    printf("%s.tree = {\n", indent);
    for (int i = 0; i < chip->tree_levels; i++) put_level(&chip->tree[i]);
    printf("%s},\n%s.price = {\n", indent, indent);
    for (int i = 0; i < chip->prices; i++) put_price(&chip->price[i]);
    printf("%s}},\n", indent);
}

/* data/chips/NAME.json holds the one chip of that name. */
static bool is_named_after(const char *path, const char *name) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    size_t n = strlen(name);
    return strncmp(file, name, n) == 0 && strcmp(file + n, ".json") == 0;
}

static sm_status embed_chips(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    puts("#include \"chip_table.h\"\n\nconst sm_chip sm_chip_table[] = {");
    for (int i = 0; i < paths; i++) {
        sm_source source;
        sm_chip *chips;
        size_t n;
        sm_status status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_io_chips_parse(&source, arena, &chips, &n, err);
        if (status) return status;
        if (n != 1 || !is_named_after(path[i], chips[0].name))
            return sm_fail(err, SM_BAD_INPUT, "%s: expected one chip, called as the file is",
                           path[i]);
        put_chip(&chips[0]);
    }
    printf("};\nconst size_t sm_chip_table_count = %d;\n", paths);
    return SM_OK;
}

/* ---- a calibration ---- */

static void put_calibration(const sm_calibration *c) {
    const char *indent = "     ";
    fputs("    {\n", stdout);
    put_text_field(indent, "chip", c->chip);
    put_text_field(indent, "software", c->software);
    put_text_field(indent, "source", c->source);
    put_text_field(indent, "range", c->range);
    for (int i = 0; i < SM_CONSTANT_COUNT; i++) {
        printf("%s.%s = ", indent, sm_constant_of((sm_constant)i)->name);
        put_number(sm_calibration_get(c, (sm_constant)i));
        fputs(",\n", stdout);
    }
    printf("%s.fitted = %uu,\n%s.interval = {\n", indent, c->fitted, indent);
    for (int i = 0; i < SM_REGIME_COUNT; i++) {
        if (c->interval[i].n == 0) continue;
        printf("         [%d] = {", i);
        put_number(c->interval[i].lowest);
        fputs(", ", stdout);
        put_number(c->interval[i].highest);
        printf(", %d},\n", c->interval[i].n);
    }
    printf("%s}},\n", indent);
}

static sm_status embed_calibrations(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    size_t count = 0;
    puts("#include \"calibration_table.h\"\n\nconst sm_calibration sm_shipped_calibrations[] = {");
    for (int i = 0; i < paths; i++) {
        sm_source source;
        sm_calibration *list;
        size_t n;
        sm_status status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_calibration_parse(&source, arena, &list, &n, err);
        if (status) return status;
        for (size_t k = 0; k < n; k++) put_calibration(&list[k]);
        count += n;
    }
    printf("};\nconst size_t sm_shipped_calibration_count = %zu;\n", count);
    return SM_OK;
}

/* ---- a model: what is published of it, and its config as text ---- */

typedef struct published {
    const char *name, *aliases, *source;
    double params, params_rounding, active, active_rounding;
} published;

static sm_status read_published(const json_value *v, published *out) {
    static const char *const keys[] = {"name",   "aliases",         "source",         "params",
                                       "active", "params_rounding", "active_rounding"};
    *out = (published){.aliases = ""};
    sm_status status = json_expect(v, IS_OBJECT, "a model");
    if (!status) status = json_check_keys(v, keys, sizeof keys / sizeof keys[0]);
    if (!status) status = json_read_text(json_get(v, "name"), &out->name);
    if (!status) status = json_read_text(json_get(v, "aliases"), &out->aliases);
    if (!status) status = json_read_text(json_get(v, "source"), &out->source);
#define READ(key)                                                                                  \
    if (!status) status = json_read_number(json_get(v, #key), 1, 1e15, &out->key)
    READ(params);
    READ(params_rounding);
    READ(active);
    READ(active_rounding);
#undef READ
    if (!status && (!out->name || !out->source || out->params <= 0))
        status = json_fail(v, "a model needs a \"name\", \"params\" and a \"source\"");
    return status;
}

/* The config without the blanks at its end, so that every byte left out of it shows. */
static sm_status put_config(const char *name, sm_arena *arena, sm_error *err) {
    char path[200];
    sm_source source;
    snprintf(path, sizeof path, "data/models/%s/config.json", name);
    sm_status status = sm_io_read(path, arena, &source, err);
    if (status) return status;
    size_t n = source.length;
    while (n > 0 && strchr(" \n", source.text[n - 1])) n--;
    put_text(sm_arena_copy(arena, source.text, n));
    return SM_OK;
}

static sm_status put_model(const json_value *v, sm_arena *arena, sm_error *err) {
    published p;
    sm_status status = read_published(v, &p);
    if (status) return status;
    fputs("    {\n", stdout);
    put_text_field("     ", "name", p.name);
    put_text_field("     ", "aliases", p.aliases);
    put_text_field("     ", "source", p.source);
    fputs("     .config_json = ", stdout);
    status = put_config(p.name, arena, err);
    fputs(",\n     .published_params = ", stdout);
    put_number(p.params);
    fputs(", .params_rounding = ", stdout);
    put_number(p.params_rounding);
    fputs(",\n     .published_active = ", stdout);
    put_number(p.active);
    fputs(", .active_rounding = ", stdout);
    put_number(p.active_rounding);
    fputs("},\n", stdout);
    return status;
}

/* path[0] is the catalogue, the others are the configs that lie beside it. */
static sm_status embed_models(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    sm_source source;
    const json_document document = {.source = &source, .arena = arena, .err = err};
    const json_value *root;
    sm_status status = sm_io_read(path[0], arena, &source, err);
    if (!status) status = json_parse(&document, &root);
    if (status) return status;
    const json_value *models = json_get(root, "models");
    if (!json_is(models, IS_LIST)) return json_fail(root, "expected {\"models\": [...]}");
    puts("#include \"model_table.h\"\n\nconst sm_catalogue_entry sm_model_table[] = {");
    for (uint32_t i = 0; !status && i < models->n; i++)
        status = put_model(&models->item[i], arena, err);
    printf("};\nconst size_t sm_model_table_count = %u;\n", (unsigned)models->n);
    if (!status && (int)models->n != paths - 1)
        status = json_fail(models, "%u models are listed here and %d have a config.json", models->n,
                           paths - 1);
    return status;
}

/* ---- engines ---- */

static void put_defaults(const sm_software *e) {
    if (e->n_defaults == 0) return;
    puts("     .defaults =\n         (const sm_software_default[]){");
    for (int i = 0; i < e->n_defaults; i++) {
        const sm_software_default *d = &e->defaults[i];
        const char *const text[] = {d->chip, d->not_chip, d->family};
        const double number[] = {d->budget_tokens, d->budget_of_all, d->most_running,
                                 d->most_of_all, d->widening_rate};
        fputs("             {", stdout);
        put_number(d->memory_at_least);
        for (int k = 0; k < 3; k++) fputs(", ", stdout), put_text(text[k]);
        printf(", %s", d->drafts ? "true" : "false");
        for (int k = 0; k < 5; k++) fputs(", ", stdout), put_number(number[k]);
        puts("},");
    }
    printf("         },\n     .n_defaults = %d,\n", e->n_defaults);
}

static void put_engine(const sm_software *e) {
    puts("    {");
    put_text_field("     ", "name", e->name);
    put_text_field("     ", "title", e->title);
    if (e->aliases) put_text_field("     ", "aliases", e->aliases);
    if (e->like) put_text_field("     ", "like", e->like);
    put_defaults(e);
#define X(key, usual, what) printf("     .%s = %s,\n", #key, e->key ? "true" : "false");
    SM_SOFTWARE_FLAGS(X)
#undef X
#define X(key, usual, least, most, what)                                                           \
    printf("     .%s = ", #key);                                                                   \
    put_number(e->key);                                                                            \
    puts(",");
    SM_SOFTWARE_NUMBERS(X)
#undef X
    puts("    },");
}

/* The engine that stands in for another has a file too. */
static bool is_among(char *const *path, int paths, const char *name) {
    for (int i = 0; i < paths; i++)
        if (is_named_after(path[i], name)) return true;
    return false;
}

static sm_status embed_engines(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    puts("#include \"software_table.h\"\n\nconst sm_software sm_software_table[] = {");
    for (int i = 0; i < paths; i++) {
        sm_source source;
        sm_software engine;
        sm_status status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_software_parse(&source, arena, &engine, err);
        if (!status && !is_named_after(path[i], engine.name))
            status = sm_fail(err, SM_BAD_INPUT, "%s has not the name of its file", path[i]);
        if (!status && engine.like && !is_among(path, paths, engine.like))
            status = sm_fail(err, SM_BAD_INPUT, "%s is like no engine that is there", path[i]);
        if (status) return status;
        put_engine(&engine);
    }
    printf("};\nconst size_t sm_software_table_count = %d;\n", paths);
    return SM_OK;
}

/* ---- code bases of training ---- */

static void put_memory(const sm_software_memory *m) {
    const char *indent = "     ";
    fputs("    {\n", stdout);
    put_text_field(indent, "software", m->software);
    put_text_field(indent, "source", m->source);
    put_count(indent, "from", m->from);
#define X(key, what)                                                                               \
    printf("%s.%s = ", indent, #key);                                                              \
    put_number(m->key);                                                                            \
    puts(",");
    SM_SOFTWARE_MEMORY_NUMBERS(X)
#undef X
#define X(key, what) printf("%s.%s = %s,\n", indent, #key, m->key ? "true" : "false");
    SM_SOFTWARE_MEMORY_FLAGS(X)
#undef X
    fputs("    },\n", stdout);
}

static void put_flops_count(const sm_flops_count *c) {
    const char *indent = "     ";
    fputs("    {\n", stdout);
    put_text_field(indent, "figure", c->figure);
    put_text_field(indent, "source", c->source);
    put_count(indent, "from", c->from);
#define X(key) put_count(indent, #key, (int)c->key);
    X(parameters)
    X(attention)
    X(again)
    X(peak)
    X(all_windows)
#undef X
    printf("%s.peak_flops_per_s = ", indent);
    put_number(c->peak_flops_per_s);
    puts("},");
}

/* Its lists stand before the table, which points into them. */
static void put_lists(int number, const sm_codebase *c) {
    if (c->memories) printf("static const sm_software_memory memory_%d[] = {\n", number);
    for (int i = 0; i < c->memories; i++) put_memory(&c->memory[i]);
    if (c->memories) puts("};");
    if (c->counts) printf("static const sm_flops_count count_%d[] = {\n", number);
    for (int i = 0; i < c->counts; i++) put_flops_count(&c->count[i]);
    if (c->counts) puts("};");
}

static void put_codebase(int number, const sm_codebase *c) {
    const char *indent = "     ";
    fputs("    {\n", stdout);
    put_text_field(indent, "name", c->name);
    put_text_field(indent, "title", c->title);
    put_text_field(indent, "software", c->software);
    put_count(indent, "memories", c->memories);
    put_count(indent, "counts", c->counts);
    if (c->memories) printf("%s.memory = memory_%d,\n", indent, number);
    if (c->counts) printf("%s.count = count_%d,\n", indent, number);
    puts("    },");
}

static sm_status embed_codebases(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    sm_codebase *all = sm_arena_array(arena, (size_t)paths, sizeof *all);
    if (!all) return sm_fail_memory(err);
    puts("#include \"codebase_table.h\"\n");
    for (int i = 0; i < paths; i++) {
        sm_source source;
        sm_status status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_codebase_parse(&source, arena, &all[i], err);
        if (!status && !is_named_after(path[i], all[i].name))
            status = sm_fail(err, SM_BAD_INPUT, "%s: expected the name of the file", path[i]);
        if (status) return status;
        put_lists(i, &all[i]);
    }
    puts("const sm_codebase sm_codebase_table[] = {");
    for (int i = 0; i < paths; i++) put_codebase(i, &all[i]);
    printf("};\nconst size_t sm_codebase_table_count = %d;\n", paths);
    return SM_OK;
}

/* ---- what was measured: lines of fields between tabs, under a line of their names ---- */

enum { EVIDENCE_FIELDS = 12 };
static bool read_count(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end > text && !*end && *value >= 0.0;
}

static sm_status put_evidence(char *line, bool training, const sm_source *source, int at,
                              sm_error *err) {
    char *field[EVIDENCE_FIELDS];
    int n = 0;
    for (char *next = line; next && n < EVIDENCE_FIELDS; n++) {
        field[n] = next;
        next = strchr(next, '\t');
        if (next) *next++ = 0;
        else if (n + 1 < EVIDENCE_FIELDS) break;
    }
    static const struct {
        int field;
        const char *name;
    } counts[] = {{1, "layers"}, {2, "d_model"}, {3, "experts"},     {4, "params"},
                  {7, "rows"},   {10, "error"},  {11, "first_error"}};
    if (n != EVIDENCE_FIELDS)
        return sm_fail(err, SM_BAD_INPUT, "%s:%d: expected %d fields", source->name, at,
                       EVIDENCE_FIELDS);
    printf("    {.use = SM_EVIDENCE_%s,\n", training ? "TRAINING" : "SERVING");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const char *text = field[counts[i].field];
        double value;
        bool known = strcmp(text, "-") != 0;
        if (known && !read_count(text, &value))
            return sm_fail(err, SM_BAD_INPUT, "%s:%d: %s: expected a number", source->name, at,
                           counts[i].name);
        printf("     .%s = %s,\n", counts[i].name, known ? text : "NAN");
    }
    put_text_field("     ", "model", field[0]);
    put_text_field("     ", "chip", field[5]);
    put_text_field("     ", "software", strcmp(field[6], "-") == 0 ? "" : field[6]);
    put_text_field("     ", "range", field[8]);
    put_text_field("     ", "types", field[9]);
    puts("    },");
    return SM_OK;
}

/* "software known\t0.1\t.." */
static sm_status put_apart(const char *line, const sm_source *source, int at, sm_error *err) {
    printf("%s{", at == 2 ? "     {" : "      ");
#define X(key, what)                                                                               \
    line = line ? strchr(line, '\t') : NULL;                                                       \
    if (line) printf("." #key " = %.*s, ", (int)strcspn(line + 1, "\t"), line + 1), line++;
    SM_EVIDENCE_APART(X)
#undef X
    puts(at == 2 ? "}," : "}},");
    if (line) return SM_OK;
    return sm_fail(err, SM_BAD_INPUT, "%s:%d: expected what sets questions apart", source->name,
                   at);
}

/* Lines 1 to 3 are what sets questions apart, line 4 has the names of fields; which: those or the
 * others. */
static sm_status put_evidence_file(const char *path, bool apart, size_t *count, sm_arena *arena,
                                   sm_error *err) {
    sm_source source;
    int at = 0;
    sm_status status = sm_io_read(path, arena, &source, err);
    char *text = status ? NULL : sm_arena_copy(arena, source.text, source.length);
    if (!text) return status ? status : sm_fail_memory(err);
    for (char *line = text, *next; line && *line && !status; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        at++;
        if (apart && (at == 2 || at == 3)) status = put_apart(line, &source, at, err);
        if (apart || at <= 4) continue;
        ++*count;
        status = put_evidence(line, strstr(path, "training") != NULL, &source, at, err);
    }
    return status;
}

static sm_status embed_evidence(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    size_t count = 0;
    sm_status status = SM_OK;
    puts("#include \"evidence_table.h\"\n#include <math.h>\n\n"
         "const sm_evidence_apart sm_evidence_apart_table[2][2] = {");
    for (int i = 0; i < paths && !status; i++) {
        printf("    [SM_EVIDENCE_%s] =\n", strstr(path[i], "training") ? "TRAINING" : "SERVING");
        status = put_evidence_file(path[i], true, &count, arena, err);
    }
    puts("};\nconst sm_evidence sm_evidence_table[] = {");
    for (int i = 0; i < paths && !status; i++)
        status = put_evidence_file(path[i], false, &count, arena, err);
    printf("};\nconst size_t sm_evidence_table_count = %zu;\n", count);
    return status;
}

/* ---- texts and families: as text, which the reader takes as it stands, and where in it each of
 * them is ---- */

typedef struct named_place {
    const char *name;
    size_t at;
    int statement;
} named_place;

static int by_letters(const void *one, const void *other) {
    return strcmp(((const named_place *)one)->name, ((const named_place *)other)->name);
}

/* The names of texts, or of families, by their letters. Returns how many. */
static size_t put_names(const sm_library *library, bool families, sm_arena *arena) {
    size_t n = 0, most = 0;
    for (const tree_statement *s = library->statement; s; s = s->next)
        most += s->family ? (size_t)s->family->names : 1;
    named_place *place = sm_arena_array(arena, most, sizeof *place);
    int i = 0;
    for (const tree_statement *s = library->statement; s && place; s = s->next, i++) {
        if (s->text && !families)
            place[n++] = (named_place){s->text->name, s->text->span.offset, i};
        for (int k = 0; s->family && families && k < s->family->names; k++) {
            const tree *name = s->family->name[k];
            place[n++] =
                (named_place){name->name, name->span.offset + (name->kind == TREE_WORD), i};
        }
    }
    if (n > 0) qsort(place, n, sizeof *place, by_letters);
    for (size_t k = 0; k < n; k++)
        printf("    {%zu, %zu, %d},\n", place[k].at, strlen(place[k].name), place[k].statement);
    return n;
}

static void put_statements(const sm_library *library, sm_arena *arena) {
    const sm_source *file = NULL;
    int count = 0, files = -1;
    puts("};\nconst family_statement sm_family_statement[] = {");
    for (const tree_statement *s = library->statement; s; s = s->next, count++) {
        files += s->source != file;
        file = s->source;
        printf("    {%d, %d, %zu},\n", s->keyword, files, s->at);
    }
    printf("};\nconst size_t sm_family_statement_count = %d;\n", count);
    puts("const family_name sm_family_name[] = {");
    size_t texts = put_names(library, false, arena), families = put_names(library, true, arena);
    printf("};\nconst size_t sm_family_text_count = %zu, sm_family_name_count = %zu;\n", texts,
           texts + families);
}

static sm_status embed_families(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    sm_library *library;
    sm_status status = sm_library_new(arena, NULL, &library, err);
    puts("#include \"family_table.h\"\n\nconst sm_source sm_family_table[] = {");
    for (int i = 0; !status && i < paths; i++) {
        sm_source source;
        status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = sm_library_read(library, &source, err);
        if (status) return status;
        fputs("    {", stdout);
        put_text(path[i]);
        fputs(",\n     ", stdout);
        put_text(sm_arena_copy(arena, source.text, source.length));
        printf(", %zu},\n", source.length);
    }
    put_statements(library, arena);
    printf("const size_t sm_family_table_count = %d;\n", paths);
    return status ? status : sm_library_check(library, err);
}

/* ---- frameworks: as text, which the reader takes as it stands; here they must be JSON ---- */

static sm_status embed_frameworks(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    sm_status status = SM_OK;
    puts("#include \"framework_table.h\"\n\nconst sm_source sm_framework_table[] = {");
    for (int i = 0; i < paths && !status; i++) {
        sm_source source;
        status = sm_io_read(path[i], arena, &source, err);
        if (status) break;
        json_document document = {.source = &source, .arena = arena, .err = err};
        const json_value *root;
        status = json_parse(&document, &root);
        fputs("    {", stdout);
        put_text(path[i]);
        fputs(", ", stdout);
        put_text(source.text);
        printf(", %zu},\n", source.length);
    }
    printf("};\nconst size_t sm_framework_table_count = %d;\n", paths);
    return status;
}

/* ---- what files of others call things: rows of one table after the other ----
 * {"header": "trace_parts.h", "ops": {"row": "trace_op", "columns": ["name", "does:TRACE_"],
 * "rows":
 * [["aten::mm", "product"], {"name": "aten::bmm", ...}]}, ...}
 * The rows of "ops" in NAME.json become `const trace_op NAME_ops[]`, NAME_ops_count of them. A
 * column "does:TRACE_" holds words, each an enumerator (TRACE_PRODUCT), "at@truth_row" members of a
 * struct, "field#n" names of other tables of the file, of so many rows, "most=" numbers and
 * constants of C, "words*" lists of words, as sm_words, or the name of one in C ("names[COUNT]");
 * others texts, numbers, truths and lists. What a row does not say is 0. */

static void put_word(const char *prefix, const char *word) {
    fputs(prefix, stdout);
    for (; *word; word++)
        putchar(*word >= 'a' && *word <= 'z' ? *word - 'a' + 'A' : *word == '-' ? '_' : *word);
}

static void put_list(const json_value *v) {
    fputs("{", stdout);
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->item[i].kind == IS_NUMBER) put_number(v->item[i].number);
        else put_text(json_text(&v->item[i]));
        fputs(", ", stdout);
    }
    fputs("}", stdout);
}

static sm_status put_cell(const char *file, const char *column, const json_value *v) {
    const char *text = json_text(v), *kind = column + strcspn(column, ":@#*=");
    int name = text ? (int)strcspn(text, "[") : 0;
    if (v->kind == IS_NULL) return SM_OK;
    printf(".%.*s = ", (int)(kind - column), column);
    if (*kind == '@' && text) printf("offsetof(%s, %s)", kind + 1, text);
    else if (*kind == ':' && text) put_word(kind + 1, text);
    else if (*kind == '#' && text)
        printf("%s_%s, .%s = sizeof %s_%s / sizeof *%s_%s", file, text, kind + 1, file, text, file,
               text);
    else if (*kind == '*' && text && text[name])
        printf("{%.*s, %.*s}", name, text, (int)strcspn(text + name + 1, "]"), text + name + 1);
    else if (*kind == '*' && v->kind == IS_LIST) {
        fputs("{(const char *const[])", stdout);
        put_list(v);
        printf(", %u}", v->n);
    } else if (*kind == '=' && text) fputs(text, stdout);
    else if (*kind && (*kind != '=' || v->kind != IS_NUMBER))
        return json_fail(v, "expected a word");
    else if (text) put_text(text);
    else if (v->kind == IS_NUMBER) put_number(v->number);
    else if (v->kind == IS_BOOL) fputs(v->truth ? "true" : "false", stdout);
    else if (v->kind == IS_LIST) put_list(v);
    else return json_fail(v, "expected a text, a number, a truth or a list");
    fputs(", ", stdout);
    return SM_OK;
}

/* The value of the column in a row: by its place in a list, by its name in an object. */
static const json_value *cell_of(const json_value *row, uint32_t column, const char *name) {
    size_t n = strcspn(name, ":@#*=");
    if (row->kind == IS_LIST) return column < row->n ? &row->item[column] : NULL;
    for (uint32_t i = 0; i < row->n; i++)
        if (strncmp(row->item[i].key, name, n) == 0 && !row->item[i].key[n]) return &row->item[i];
    return NULL;
}

/* own: texts that options have in place of their "help", by their names; NULL: none. */
static sm_status put_row(const char *file, const json_value *columns, const json_value *row,
                         const json_value *own) {
    const char *option = own ? json_text(json_get(row, "name")) : NULL;
    const json_value *help = option ? json_get(own, option) : NULL;
    uint32_t said = 0;
    sm_status status = SM_OK;
    if (row->kind != IS_LIST && row->kind != IS_OBJECT) return json_fail(row, "expected a row");
    fputs("    {", stdout);
    for (uint32_t c = 0; c < columns->n && !status; c++) {
        const char *name = json_text(&columns->item[c]);
        const json_value *v = name ? cell_of(row, c, name) : NULL;
        if (!name) return json_fail(&columns->item[c], "expected the name of a column");
        if (!v) continue;
        said++;
        status = put_cell(file, name, help && strcmp(v->key, "help") == 0 ? help : v);
    }
    puts("},");
    if (!status && said < row->n) return json_fail(row, "this row says more than its columns are");
    return status;
}

static sm_status put_rows(const char *file, const json_value *table) {
    const json_value *columns = json_get(table, "columns"), *rows = json_get(table, "rows");
    const char *row = json_text(json_get(table, "row"));
    if (!row || !json_is(columns, IS_LIST) || !json_is(rows, IS_LIST) || rows->n == 0)
        return json_fail(table, "expected \"row\", \"columns\" and \"rows\"");
    sm_status status = SM_OK;
    printf("const %s %s_%s[] = {\n", row, file, table->key);
    for (uint32_t i = 0; i < rows->n && !status; i++)
        status = put_row(file, columns, &rows->item[i], NULL);
    printf("};\nconst size_t %s_%s_count = %u;\n", file, table->key, rows->n);
    return status;
}

static sm_status embed_formats(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    const char *slash = strrchr(path[0], '/'), *name = slash ? slash + 1 : path[0];
    sm_source source;
    const json_document document = {.source = &source, .arena = arena, .err = err};
    const json_value *root;
    const char *file = sm_arena_copy(arena, name, strcspn(name, "."));
    sm_status status = paths == 1 && file ? sm_io_read(path[0], arena, &source, err)
                                          : sm_fail(err, SM_USAGE, "one file at a time");
    if (!status) status = json_parse(&document, &root);
    if (status) return status;
    const char *header = json_text(json_get(root, "header"));
    if (!header) return json_fail(root, "expected \"header\"");
    printf("#include \"%s\"\n#include <stddef.h>\n\n", header);
    for (uint32_t i = 0; i < root->n && !status; i++)
        if (root->item[i].kind == IS_OBJECT) status = put_rows(file, &root->item[i]);
    return status;
}

/* ---- verbs: what help says of each, and of its options ----
 * data/verbs/VERB.json becomes verbs_VERB, of which the verb's code says where values go. An option
 * is a row of columns that options.json names, or the name of a list of them there; {"of": "LIST",
 * "OPTION": "help"} is a list some of whose options say something else for this verb. */

static bool has_option(const json_value *list, const char *name) {
    for (uint32_t i = 0; i < list->n; i++) {
        const char *other = json_text(json_get(&list->item[i], "name"));
        if (other && strcmp(other, name) == 0) return true;
    }
    return false;
}

static sm_status put_options(const json_value *shared, const json_value *list,
                             const json_value *own) {
    sm_status status = json_expect(list, IS_LIST, "a list of options");
    for (uint32_t i = 0; i < list->n && !status; i++) {
        const json_value *item = &list->item[i], *of = json_get(item, "of");
        const char *group = json_text(of ? of : item);
        const json_value *named = group ? json_get(shared, group) : NULL;
        if (group && !named) return json_fail(item, "options.json has no such list");
        for (uint32_t k = 0; of && k < item->n; k++)
            if (&item->item[k] != of && !has_option(named, item->item[k].key))
                return json_fail_key(&item->item[k], "the list has no such option");
        status = named ? put_options(shared, named, of ? item : NULL)
                       : put_row("", json_get(shared, "columns"), item, own);
    }
    return status;
}

static sm_status put_verb(const char *path, const json_value *shared, const json_value *v) {
    static const char *const keys[] = {"header",  "summary", "arguments",
                                       "columns", "notes",   "options"};
    const json_value *notes = json_get(v, "notes"), *options = json_get(v, "options");
    const char *header = json_text(json_get(v, "header")), *slash = strrchr(path, '/');
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(slash + 1, "."), slash + 1);
    for (char *c = name; *c; c++) *c = *c == '-' ? '_' : *c;
    sm_status status = json_check_keys(v, keys, sizeof keys / sizeof *keys);
    if (header) printf("#include \"%s\"\n", header);
    printf("static const cli_option %s_options[] = {\n", name);
    if (!status && options) status = put_options(shared, options, NULL);
    printf("    {.name = NULL},\n};\nconst cli_about verbs_%s = {\n.options = %s_options,\n", name,
           name);
    for (char *c = name; *c; c++) *c = *c == '_' ? ' ' : *c;
    put_text_field("", "name", name);
    for (size_t i = 1; i < 4; i++) put_text_field("", keys[i], json_text(json_get(v, keys[i])));
    fputs(".notes = \"\"", stdout);
    for (uint32_t i = 0; notes && i < notes->n; i++) {
        put_text(json_text(&notes->item[i]));
        fputs("\"\\n\"\n", stdout);
    }
    puts("};");
    return status;
}

static sm_status embed_verbs(char *const *path, int paths, sm_arena *arena, sm_error *err) {
    const json_value *shared = NULL, *root = NULL;
    sm_status status = SM_OK;
    puts("#include \"options.h\"\n");
    for (int i = 0; i < paths && !status; i++) {
        sm_source source;
        const json_document document = {.source = &source, .arena = arena, .err = err};
        status = sm_io_read(path[i], arena, &source, err);
        if (!status) status = json_parse(&document, &root);
        if (!status && i > 0) status = put_verb(path[i], shared, root);
        if (i == 0) shared = root;
    }
    return status;
}

int main(int arguments, char **argument) {
    static const struct {
        const char *what;
        sm_status (*embed)(char *const *path, int paths, sm_arena *arena, sm_error *err);
    } kinds[] = {{"calibrations", embed_calibrations},
                 {"chips", embed_chips},
                 {"codebases", embed_codebases},
                 {"engines", embed_engines},
                 {"evidence", embed_evidence},
                 {"families", embed_families},
                 {"formats", embed_formats},
                 {"frameworks", embed_frameworks},
                 {"models", embed_models},
                 {"verbs", embed_verbs}};
    sm_arena *arena = sm_arena_new();
    sm_error err = {.status = SM_USAGE,
                    .sentence =
                        "usage: embed "
                        "calibrations|chips|codebases|engines|evidence|families|formats|frameworks|"
                        "models|verbs FILE..."};
    sm_status status = SM_USAGE;
    puts("/* Made from data/ by scripts/embed.c. */");
    for (size_t i = 0; arena && arguments > 2 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argument[1], kinds[i].what) == 0)
            status = kinds[i].embed(argument + 2, arguments - 2, arena, &err);
    if (status && err.line) fprintf(stderr, "%s:%d:%d: ", err.source, err.line, err.column);
    if (status) fprintf(stderr, "%s\n", err.sentence);
    sm_arena_free(arena);
    return status || ferror(stdout) ? 1 : 0;
}
