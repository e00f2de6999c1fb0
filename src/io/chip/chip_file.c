/* Reads a system file: chips as JSON, each value checked and blamed at its place in the text. */
#include "chip_schema.h"
#include "json_tree.h"
#include "scalemodel/io.h"
#include "scalemodel/json.h"
#include "scalemodel/page.h"
#include <assert.h>
#include <string.h>

enum { MOST_CHIPS = 256, MOST_NAME = 40, MOST_LEVEL_NAME = 15, MOST_SIZE = 1 << 20 };

/* Where the numbers of a chip come from when nothing stands beside them. */
typedef struct sources {
    const json_value *chip, *list; /* "sources" of the chip: texts by the place of their number */
    const char *origin;            /* of a number that the list does not name */
} sources;

static const char *source_of(const sources *s, const json_value *v) {
    for (uint32_t i = 0; s->list && i < s->list->n; i++)
        if (json_find(s->chip, s->list->item[i].key) == v) return s->list->item[i].text;
    return s->origin;
}

static sm_status check_sources(const sources *s) {
    sm_status status = json_expect(s->list, IS_OBJECT, "an object of texts");
    for (uint32_t i = 0; s->list && !status && i < s->list->n; i++) {
        const json_value *source = &s->list->item[i];
        if (!json_is(json_find(s->chip, source->key), IS_NUMBER))
            return json_fail_key(source, "\"%.60s\" is not the place of a number of this chip",
                                 source->key);
        status = json_expect(source, IS_TEXT, "a text");
    }
    return status;
}

/* A number, or {"value": number, "source": text}. Absent ones are left alone. */
static sm_status read_fact(const json_value *v, const sources *given, double least, double most,
                           sm_fact *out) {
    sm_fact fact = {0, given->origin};
    sm_status status = SM_OK;
    if (!v) return SM_OK;
    if (v->kind == IS_OBJECT) {
        const json_value *value = json_get(v, "value");
        status = json_expect_keys(v, "", "value|source");
        if (!status && !value) status = json_fail(v, "the key \"value\" is missing");
        if (!status) status = json_read_text(json_get(v, "source"), &fact.source);
        if (!status) status = json_read_number(value, least, most, &fact.value);
    } else {
        status = json_read_number(v, least, most, &fact.value);
        fact.source = source_of(given, v);
    }
    if (!status) *out = fact.value > 0 ? fact : (sm_fact){0, NULL};
    return status;
}

/* ---- parts of a chip ---- */

static sm_status read_by_type(const json_value *v, const sources *given, sm_fact *fact) {
    sm_status status = json_expect(v, IS_OBJECT, "an object of data types, as in {\"bf16\": 9e14}");
    if (v && !status) status = json_check_keys(v, sm_dtype_names, SM_DTYPE_COUNT);
    for (int d = 0; !status && d < SM_DTYPE_COUNT; d++)
        status = read_fact(json_get(v, sm_dtype_names[d]), given, 1, 1e21, &fact[d]);
    return status;
}

static bool is_name(const char *text, size_t most) {
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(text);
    if (n == 0 || n > most || !strchr(first, text[0])) return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr(first, text[i]) && !strchr("._-", text[i])) return false;
    return true;
}

static sm_status read_level(const json_value *v, const sources *given, sm_tree_level *level) {
    *level = (sm_tree_level){.name = NULL};
    sm_status status =
        json_expect_keys(v, "an object",
                         "name|degree|child_bytes_per_s_oneway|hop_latency_s|full_mesh|"
                         "in_network_reduction|in_network_source");
    const json_value *name = json_get(v, "name");
    if (!status && !name) status = json_fail(v, "a level of the tree needs a \"name\"");
    if (!status) status = json_read_text(name, &level->name);
    if (!status && name && !is_name(level->name, MOST_LEVEL_NAME))
        status = json_fail(
            name, "the name of a level has at most %d letters, digits, \".\", \"_\", \"-\"",
            MOST_LEVEL_NAME);
    if (!status) status = json_read_count(json_get(v, "degree"), MOST_SIZE, &level->degree);
    if (!status)
        status = read_fact(json_get(v, "child_bytes_per_s_oneway"), given, 1, 1e18,
                           &level->child_bytes_per_s_oneway);
    if (!status)
        status = read_fact(json_get(v, "hop_latency_s"), given, 1e-12, 3600, &level->hop_latency_s);
    if (!status) status = json_read_bool(json_get(v, "full_mesh"), &level->full_mesh);
    if (!status)
        status = json_read_bool(json_get(v, "in_network_reduction"), &level->in_network_reduction);
    if (level->in_network_reduction) level->in_network_source = given->origin;
    if (!status && level->in_network_reduction)
        status = json_read_text(json_get(v, "in_network_source"), &level->in_network_source);
    if (status) return status;
    if (level->full_mesh && level->in_network_reduction)
        return json_fail(v, "a full mesh has no switch that could reduce");
    if (level->degree < 1) return json_fail(v, "a level of the tree needs a \"degree\"");
    if (level->child_bytes_per_s_oneway.value > 0) return SM_OK;
    return json_fail(v, "a level of the tree needs \"child_bytes_per_s_oneway\"");
}

static sm_status read_tree(const json_value *v, const sources *given, sm_chip *chip) {
    sm_status status = json_expect(v, IS_LIST, "a list of levels, innermost first");
    if (!v || status) return status;
    if (v->n > SM_MAX_TREE)
        return json_fail(v, "a tree has at most %d levels, found %u", SM_MAX_TREE, v->n);
    for (uint32_t i = 0; !status && i < v->n; i++)
        status = read_level(&v->item[i], given, &chip->tree[i]);
    chip->tree_levels = (int)v->n;
    return status;
}

static sm_status read_price(const json_value *v, const sources *given, sm_price *price) {
    sm_fact usd = {0, NULL};
    *price = (sm_price){0, "", "", given->origin};
    sm_status status = json_expect_keys(v, "an object", "usd_per_chip_hour|provider|date|source");
    if (!status) status = read_fact(json_get(v, "usd_per_chip_hour"), given, 1e-6, 1e6, &usd);
    if (!status) status = json_read_text(json_get(v, "provider"), &price->provider);
    if (!status) status = json_read_text(json_get(v, "date"), &price->date);
    if (!status) status = json_read_text(json_get(v, "source"), &price->source);
    if (status) return status;
    price->usd_per_chip_hour = usd.value;
    return usd.value > 0 ? SM_OK : json_fail(v, "a price needs \"usd_per_chip_hour\"");
}

static sm_status read_prices(const json_value *v, const sources *given, sm_chip *chip) {
    sm_status status = json_expect(v, IS_LIST, "a list of prices");
    if (!v || status) return status;
    if (v->n > SM_MAX_PRICES)
        return json_fail(v, "a chip has at most %d prices, found %u", SM_MAX_PRICES, v->n);
    for (uint32_t i = 0; !status && i < v->n; i++)
        status = read_price(&v->item[i], given, &chip->price[i]);
    chip->prices = (int)v->n;
    return status;
}

static sm_status read_tile(const json_value *v, sm_chip *chip) {
    int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k}, n = 0;
    sm_status status = json_read_counts(v, 3, 3, MOST_SIZE, tile, &n);
    chip->tile_m = tile[0];
    chip->tile_n = tile[1];
    chip->tile_k = tile[2];
    return status;
}

/* The keys of the lists in chip_schema.h. */
static sm_status read_listed(const json_value *object, const sources *given, sm_chip *chip) {
    sm_status status = SM_OK;
#define X(key)                                                                                     \
    if (!status) status = json_read_text(json_get(object, #key), &chip->key);
    SM_CHIP_TEXTS(X)
#undef X
#define X(key, what, least, most)                                                                  \
    if (!status) status = read_fact(json_get(object, #key), given, least, most, &chip->key);
    SM_CHIP_FACTS(X)
#undef X
#define X(key, most)                                                                               \
    if (!status) status = json_read_count(json_get(object, #key), most, &chip->key);
    SM_CHIP_COUNTS(X)
#undef X
    return status;
}

/* ---- a whole chip ---- */

/* A key that only another fabric reads is blamed; what a base on another fabric left goes. */
static sm_status check_effects(const json_value *object, sm_chip *chip) {
    static const struct {
        sm_fabric fabric;
        const char *key, *why;
    } only[] = {
        {SM_FABRIC_TORUS, "link_bytes_per_s_oneway",
         "the link of a chip at a switch stands in \"tree\""},
        {SM_FABRIC_TORUS, "links_per_chip", "it counts the links of a torus"},
        {SM_FABRIC_TORUS, "hop_latency_s", "a level of \"tree\" has its own"},
        {SM_FABRIC_TORUS, "pod_shape", "it is the shape of a torus"},
        {SM_FABRIC_TORUS, "wrap_rule", "it is of a torus"},
        {SM_FABRIC_SWITCH, "tree", "it is of a switch fabric"},
    };
    static const char *const fabrics[] = {SM_FABRIC_NAMES};
    for (size_t i = 0; i < sizeof only / sizeof only[0]; i++) {
        const json_value *v = json_get(object, only[i].key);
        if (v && chip->fabric != only[i].fabric)
            return json_fail_key(v, "\"%s\" has no effect with \"fabric\": \"%s\": %s", only[i].key,
                                 fabrics[chip->fabric], only[i].why);
    }
    if (chip->fabric != SM_FABRIC_TORUS) {
        chip->link_bytes_per_s_oneway = chip->hop_latency_s = (sm_fact){0, NULL};
        chip->links_per_chip = 1;
        chip->torus_axes = 0;
        memset(chip->pod_shape, 0, sizeof chip->pod_shape);
        chip->wrap_rule = SM_WRAP_NEVER;
    }
    if (chip->fabric != SM_FABRIC_SWITCH) {
        chip->tree_levels = 0;
        memset(chip->tree, 0, sizeof chip->tree);
    }
    return SM_OK;
}

/* Each word of "constants_like" names a calibration or a chip of the catalogue. The program that
 * makes the catalogue has neither; then tests hold the words against it. */
static sm_status check_relatives(const json_value *v) {
    enum { MOST_NAMES = 1024 };
    const char *names[MOST_NAMES];
    size_t n = 0;
    for (size_t i = 0; i < sm_chip_count() && n < MOST_NAMES; i++) names[n++] = sm_chip_at(i)->name;
    for (size_t i = 0; i < sm_calibration_count() && n < MOST_NAMES; i++)
        names[n++] = sm_calibration_at(i)->chip;
    assert(n < MOST_NAMES);
    if (!v) return SM_OK;
    const char *rest = v->text, *word;
    for (size_t length; n > 0 && (length = sm_next_word(&rest, &word)) > 0;) {
        size_t i = 0;
        while (i < n && (strlen(names[i]) != length || strncmp(names[i], word, length) != 0)) i++;
        if (i == n) {
            const char *near = sm_nearest(word, length, names, n);
            int shown = (int)(length < 40 ? length : 40);
            if (near)
                return json_fail(v, "no constants go by \"%.*s\"; the nearest is \"%s\"", shown,
                                 word, near);
            return json_fail(v,
                             "no constants go by \"%.*s\": expected a chip of the catalogue or a "
                             "calibration",
                             shown, word);
        }
    }
    return SM_OK;
}

/* What every later stage relies on, so that pricing cannot fail. */
static sm_status check_chip(const json_value *v, const sm_chip *chip) {
    if (!chip->name) return json_fail(v, "a chip needs a \"name\"");
    if (!is_name(chip->name, MOST_NAME))
        return json_fail(json_nearest(v, "name"),
                         "the name of a chip has at most %d letters, digits, \".\", \"_\" and "
                         "\"-\", and begins with a letter or digit",
                         MOST_NAME);
    int peak = 0;
    while (peak < SM_DTYPE_COUNT && chip->flops_per_s[peak].value <= 0) peak++;
    if (peak == SM_DTYPE_COUNT) return json_fail(v, "a chip needs a peak in \"flops_per_s\"");
    if (chip->memory_bytes.value <= 0) return json_fail(v, "a chip needs \"memory_bytes\"");
    if (chip->memory_bytes_per_s.value <= 0)
        return json_fail(v, "a chip needs \"memory_bytes_per_s\"");
    if (chip->fabric == SM_FABRIC_TORUS) {
        int64_t pod = 1;
        if (chip->torus_axes == 0)
            return json_fail(v, "a torus needs \"pod_shape\", as in [16, 16]");
        for (int i = 0; i < chip->torus_axes; i++) pod *= chip->pod_shape[i];
        if (pod > MOST_SIZE)
            return json_fail(json_nearest(v, "pod_shape"), "a pod has at most %d chips", MOST_SIZE);
        if (chip->link_bytes_per_s_oneway.value > 0) return SM_OK;
        return json_fail(v, "a torus needs \"link_bytes_per_s_oneway\"");
    }
    if (chip->fabric == SM_FABRIC_SWITCH && chip->tree_levels == 0)
        return json_fail(v, "a switch fabric needs a \"tree\" of at least one level");
    return SM_OK;
}

static const sm_chip *find_named(const sm_chip *chips, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(chips[i].name, name) == 0) return &chips[i];
    return NULL;
}

static sm_status fail_base(const json_value *v) {
    const char *names[MOST_CHIPS];
    size_t n = 0;
    for (; n < sm_chip_count() && n < MOST_CHIPS; n++) names[n] = sm_chip_at(n)->name;
    const char *nearest = sm_nearest(v->text, v->n, names, n);
    if (nearest)
        return json_fail(v, "unknown base \"%.40s\"; the nearest is \"%s\"", v->text, nearest);
    return json_fail(v, "unknown base \"%.40s\": expected a chip of the catalogue or one above",
                     v->text);
}

/* The chip that the file's values are laid over: "base" if given, else one with nothing known. A
 * chip with another name leaves the base its aliases and takes its constants. */
static sm_status read_base(const json_value *object, const sm_chip *earlier, size_t n,
                           sm_chip *chip) {
    *chip = (sm_chip){.aliases = "",
                      .title = "",
                      .vendor = "",
                      .conflicts = "",
                      .tile_m = 1,
                      .tile_n = 1,
                      .tile_k = 1,
                      .cores = 1,
                      .devices = 1,
                      .matrix_units_per_core = 1,
                      .chips_per_host = 1,
                      .links_per_chip = 1,
                      .fabric = SM_FABRIC_NONE};
    const char *base = NULL;
    const json_value *v = json_get(object, "base");
    sm_status status = json_read_text(v, &base);
    if (!v || status) return status;
    const sm_chip *found = find_named(earlier, n, base);
    if (!found) found = sm_chip_find(base, strlen(base));
    if (!found) return fail_base(v);
    *chip = *found;
    if (!json_get(object, "name")) return SM_OK;
    chip->aliases = "";
    if (!chip->calibration) chip->calibration = chip->name;
    return SM_OK;
}

static sm_status read_chip(const json_value *v, const char *origin, const sm_chip *earlier,
                           size_t n, sm_chip *chip) {
#define X(key, ...) #key "|"
    static const char keys[] = SM_CHIP_TEXTS(X) SM_CHIP_OTHERS(X) SM_CHIP_FACTS(X) SM_CHIP_COUNTS(X)
        SM_CHIP_DERIVED(X) "command";
#undef X
    const sources given = {v, json_get(v, "sources"), origin};
    sm_status status = json_expect_keys(v, "a chip, as in {\"name\": \"mine\", ...}", keys);
    if (!status) status = check_sources(&given);
    if (!status) status = read_base(v, earlier, n, chip);
    if (!status) status = read_listed(v, &given, chip);
    if (!status) status = read_by_type(json_get(v, "flops_per_s"), &given, chip->flops_per_s);
    if (!status)
        status = read_by_type(json_get(v, "narrow_bytes_per_s"), &given, chip->narrow_bytes_per_s);
    if (!status) status = read_tile(json_get(v, "tile"), chip);
    if (!status) {
        static const char *const fabrics[] = {SM_FABRIC_NAMES};
        static const char *const wraps[] = {SM_WRAP_NAMES};
        int fabric = (int)chip->fabric, wrap = (int)chip->wrap_rule;
        status = json_read_choice(json_get(v, "fabric"), fabrics, 3, &fabric);
        if (!status) status = json_read_choice(json_get(v, "wrap_rule"), wraps, 5, &wrap);
        chip->fabric = (sm_fabric)fabric;
        chip->wrap_rule = (sm_wrap_rule)wrap;
        if (!status)
            status =
                json_read_count(json_get(v, "links_per_chip"), MOST_SIZE, &chip->links_per_chip);
        if (!status)
            status = json_read_counts(json_get(v, "pod_shape"), 2, 3, MOST_SIZE, chip->pod_shape,
                                      &chip->torus_axes);
        status = status ? status : read_tree(json_get(v, "tree"), &given, chip);
    }
    if (!status) status = read_prices(json_get(v, "prices"), &given, chip);
    if (!status) status = check_relatives(json_get(v, "constants_like"));
    if (!status) status = check_effects(v, chip);
    if (!status) status = check_chip(v, chip);
    if (status || !find_named(earlier, n, chip->name)) return status;
    return json_fail(json_nearest(v, "name"), "a second chip is named \"%s\"", chip->name);
}

static sm_status read_list(const json_value *list, const char *origin, sm_chip **chips, size_t *n) {
    sm_status status = json_expect(list, IS_LIST, "a list of chips");
    if (status) return status;
    if (list->n == 0 || list->n > MOST_CHIPS)
        return json_fail(list, "expected 1 to %d chips, found %u", MOST_CHIPS, list->n);
    sm_chip *all = sm_arena_array(list->in->arena, list->n, sizeof *all);
    if (!all) return sm_fail_memory(list->in->err);
    for (uint32_t i = 0; !status && i < list->n; i++)
        status = read_chip(&list->item[i], origin, all, i, &all[i]);
    *chips = all;
    *n = list->n;
    return status;
}

static sm_status read_document(const json_value *root, const char *origin, sm_chip **chips,
                               size_t *n) {
    const json_value *list = json_get(root, "chips");
    sm_status status =
        json_expect(root, IS_OBJECT, "a chip {...} or a list of them {\"chips\": [...]}");
    if (!status && list) status = json_expect_keys(root, "", "chips|command");
    if (status) return status;
    if (list) return read_list(list, origin, chips, n);
    sm_chip *one = sm_arena_alloc(root->in->arena, sizeof *one);
    if (!one) return sm_fail_memory(root->in->err);
    *chips = one;
    *n = 1;
    return read_chip(root, origin, NULL, 0, one);
}

sm_status sm_io_chips_parse(const sm_source *source, sm_arena *arena, sm_chip **chips, size_t *n,
                            sm_error *err) {
    const json_document document = {.source = source, .arena = arena, .err = err};
    const json_value *root;
    *chips = NULL;
    *n = 0;
    const char *name = source->name && source->name[0] ? source->name : "the system file";
    const char *origin = sm_arena_printf(arena, "given in %s", name);
    if (!origin) return sm_fail_memory(err);
    sm_status status = json_parse(&document, &root);
    if (!status) status = read_document(root, origin, chips, n);
    if (!status) return SM_OK;
    *chips = NULL;
    *n = 0;
    return status;
}

/* Writes a chip as chip_file.c reads it: numbers alone, and their sources together by the place of
 * each, as in {"tdp_w": 700, "sources": {"tdp_w": "datasheet"}}. */

typedef struct writer {
    sm_report r; /* of which the arena alone is used, and whether memory ran out */
    sm_data *sources;
} writer;

static void put_text(writer *w, sm_data *object, const char *key, const char *text) {
    if (text) sm_put(&w->r, object, key, text);
}

static void put_count(writer *w, sm_data *object, const char *key, int count) {
    if (count > 0) sm_put(&w->r, object, key, count);
}

/* The number under its key; its source under `parent` and key ("tree[0]." and "hop_latency_s"). */
static void put_fact(writer *w, sm_data *object, const char *parent, const char *key,
                     sm_fact fact) {
    char place[80];
    if (fact.value <= 0) return;
    sm_put(&w->r, object, key, fact.value);
    snprintf(place, sizeof place, "%s%s", parent, key);
    put_text(w, w->sources, place, fact.source);
}

static void put_sizes(writer *w, sm_data *object, const char *key, const int *size, int n) {
    sm_data *list = sm_put_array(&w->r, object, key);
    for (int i = 0; i < n; i++) sm_put(&w->r, list, NULL, size[i]);
}

static void put_tree(writer *w, sm_data *object, const sm_chip *chip) {
    sm_data *tree = sm_put_array(&w->r, object, "tree");
    for (int i = 0; i < chip->tree_levels; i++) {
        const sm_tree_level *level = &chip->tree[i];
        sm_data *data = sm_put_object(&w->r, tree, NULL);
        const char *parent = sm_textf(&w->r, "tree[%d].", i);
        put_text(w, data, "name", level->name);
        put_count(w, data, "degree", level->degree);
        put_fact(w, data, parent, "child_bytes_per_s_oneway", level->child_bytes_per_s_oneway);
        put_fact(w, data, parent, "hop_latency_s", level->hop_latency_s);
        if (level->full_mesh) sm_put(&w->r, data, "full_mesh", level->full_mesh);
        sm_put(&w->r, data, "in_network_reduction", level->in_network_reduction);
        if (level->in_network_reduction)
            put_text(w, data, "in_network_source", level->in_network_source);
    }
}

static void put_fabric(writer *w, sm_data *object, const sm_chip *chip) {
    static const char *const fabrics[] = {SM_FABRIC_NAMES};
    static const char *const wraps[] = {SM_WRAP_NAMES};
    put_text(w, object, "fabric", fabrics[chip->fabric]);
    if (chip->fabric == SM_FABRIC_SWITCH) put_tree(w, object, chip);
    if (chip->fabric != SM_FABRIC_TORUS) return;
    put_count(w, object, "links_per_chip", chip->links_per_chip);
    put_sizes(w, object, "pod_shape", chip->pod_shape, chip->torus_axes);
    put_text(w, object, "wrap_rule", wraps[chip->wrap_rule]);
}

static void put_by_type(writer *w, sm_data *object, const char *key, const sm_fact *fact) {
    int any = 0;
    while (any < SM_DTYPE_COUNT && !(fact[any].value > 0)) any++;
    if (any == SM_DTYPE_COUNT) return;
    sm_data *values = sm_put_object(&w->r, object, key);
    const char *prefix = sm_textf(&w->r, "%s.", key);
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        put_fact(w, values, prefix, sm_dtype_names[d], fact[d]);
}

bool sm_io_chip_put(const sm_chip *chip, sm_data *object, sm_arena *arena) {
    const int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k};
    writer w = {{.arena = arena}, sm_data_object(arena)};
#define X(key) put_text(&w, object, #key, chip->key);
    SM_CHIP_TEXTS(X)
#undef X
    put_by_type(&w, object, "flops_per_s", chip->flops_per_s);
    put_by_type(&w, object, "narrow_bytes_per_s", chip->narrow_bytes_per_s);
#define X(key, what, least, most) put_fact(&w, object, "", #key, chip->key);
    SM_CHIP_FACTS(X)
#undef X
    put_sizes(&w, object, "tile", tile, 3);
#define X(key, most) put_count(&w, object, #key, chip->key);
    SM_CHIP_COUNTS(X)
#undef X
    put_fabric(&w, object, chip);
    sm_data *prices = sm_put_array(&w.r, object, "prices");
    for (int i = 0; i < chip->prices; i++) {
        const sm_price *price = &chip->price[i];
        sm_put(&w.r, sm_put_object(&w.r, prices, NULL), "usd_per_chip_hour|provider|date|source",
               price->usd_per_chip_hour, price->provider, price->date, price->source);
    }
    return sm_data_put(object, arena, "sources", w.sources) && !w.r.out_of_memory;
}

char *sm_io_chip_format(const sm_chip *chip, sm_arena *arena) {
    char *text = NULL;
    size_t length;
    sm_data *data = sm_data_object(arena);
    if (!sm_io_chip_put(chip, data, arena)) return NULL;
    return sm_json_format(data, SM_JSON_PAGE, arena, &text, &length, NULL) ? NULL : text;
}
