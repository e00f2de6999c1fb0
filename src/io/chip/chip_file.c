/* Reads a system file: chips as JSON, each value checked and blamed at its place in the text. */
#include "scalemodel/io.h"

#include "chip_schema.h"
#include "json_load.h"
#include "json_place.h"

#include <stdio.h>
#include <string.h>

enum { MOST_CHIPS = 256, MOST_NAME = 40, MOST_LEVEL_NAME = 15, MOST_SIZE = 1 << 20 };

/* Where in the document the reading is; path as in json_place.h. */
typedef struct reader {
    const sm_source *source;
    sm_arena *arena;
    sm_error *err;
    const char *origin; /* the source of numbers given without one */
    char path[256];
    size_t length;
} reader;

static size_t enter_key(reader *r, const char *key) {
    size_t before = r->length;
    const char *dot = before > 0 ? "." : "";
    int n = snprintf(r->path + before, sizeof r->path - before, "%s%s", dot, key);
    r->length = n < 0 || before + (size_t)n >= sizeof r->path ? before : before + (size_t)n;
    r->path[r->length] = 0;
    return before;
}

static size_t enter_index(reader *r, size_t index) {
    size_t before = r->length;
    int n = snprintf(r->path + before, sizeof r->path - before, "[%zu]", index);
    r->length = n < 0 || before + (size_t)n >= sizeof r->path ? before : before + (size_t)n;
    r->path[r->length] = 0;
    return before;
}

static void leave(reader *r, size_t before) {
    r->length = before;
    r->path[before] = 0;
}

#define FAIL(r, ...) sm_json_fail((r)->err, (r)->source, (r)->path, false, __VA_ARGS__)

static const char *kind_of(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

static sm_status expect(reader *r, const json_t *v, json_type type, const char *expected) {
    if (json_typeof(v) == type) return SM_OK;
    return FAIL(r, "expected %s, found %s", expected, kind_of(v));
}

/* What to write instead: the nearest of n names, or all of them. */
static const char *advice(char *out, size_t size, const char *word, const char *const *names,
                          size_t n) {
    const char *nearest = sm_nearest(word, strlen(word), names, n);
    if (nearest) {
        snprintf(out, size, "the nearest is \"%s\"", nearest);
        return out;
    }
    int at = snprintf(out, size, "expected one of ");
    for (size_t i = 0; i < n && at >= 0 && (size_t)at < size; i++)
        at += snprintf(out + at, size - (size_t)at, i ? ", %s" : "%s", names[i]);
    return out;
}

/* Every key of object must be among the n known ones. */
static sm_status check_keys(reader *r, json_t *object, const char *const *known, size_t n) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        size_t i = 0;
        while (i < n && strcmp(key, known[i]) != 0) i++;
        if (i < n) continue;
        char text[500];
        size_t before = enter_key(r, key);
        sm_status status =
            sm_json_fail(r->err, r->source, r->path, true, "unknown key \"%.40s\": %s", key,
                         advice(text, sizeof text, key, known, n));
        leave(r, before);
        return status;
    }
    return SM_OK;
}

/* ---- single values ---- */

static sm_status read_text(reader *r, const json_t *v, const char **out) {
    sm_status status = expect(r, v, JSON_STRING, "a text");
    if (status != SM_OK) return status;
    *out = sm_arena_copy(r->arena, json_string_value(v), json_string_length(v));
    return *out ? SM_OK : sm_fail_memory(r->err);
}

static sm_status read_number(reader *r, const json_t *v, double least, double most, double *out) {
    if (!json_is_number(v)) return FAIL(r, "expected a number, found %s", kind_of(v));
    double value = json_number_value(v);
    if (value < 0) return FAIL(r, "expected a number, not a negative one, found %g", value);
    if (value > 0 && (value < least || value > most))
        return FAIL(r, "expected a number from %g to %g, found %g", least, most, value);
    *out = value;
    return SM_OK;
}

static sm_status read_count(reader *r, const json_t *v, int64_t most, int *out) {
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > most)
        return FAIL(r, "expected a whole number from 1 to %lld", (long long)most);
    *out = (int)json_integer_value(v);
    return SM_OK;
}

/* A member of an object under its own path; absent ones are left alone. */
static sm_status read_text_member(reader *r, const json_t *object, const char *key,
                                  const char **out) {
    const json_t *v = json_object_get(object, key);
    if (!v) return SM_OK;
    size_t before = enter_key(r, key);
    sm_status status = read_text(r, v, out);
    leave(r, before);
    return status;
}

/* A number, or {"value": number, "source": text}. */
static sm_status read_fact(reader *r, json_t *v, double least, double most, sm_fact *out) {
    static const char *const keys[] = {"value", "source"};
    sm_fact fact = {0, r->origin};
    sm_status status = SM_OK;
    if (json_is_object(v)) {
        const json_t *value = json_object_get(v, "value");
        status = check_keys(r, v, keys, 2);
        if (status == SM_OK && !value) status = FAIL(r, "the key \"value\" is missing");
        if (status == SM_OK) status = read_text_member(r, v, "source", &fact.source);
        size_t before = enter_key(r, "value");
        if (status == SM_OK) status = read_number(r, value, least, most, &fact.value);
        leave(r, before);
    } else {
        status = read_number(r, v, least, most, &fact.value);
    }
    if (status == SM_OK) *out = fact.value > 0 ? fact : (sm_fact){0, NULL};
    return status;
}

static sm_status read_fact_member(reader *r, const json_t *object, const char *key, double least,
                                  double most, sm_fact *out) {
    json_t *v = json_object_get(object, key);
    if (!v) return SM_OK;
    size_t before = enter_key(r, key);
    sm_status status = read_fact(r, v, least, most, out);
    leave(r, before);
    return status;
}

static sm_status read_count_member(reader *r, const json_t *object, const char *key, int64_t most,
                                   int *out) {
    const json_t *v = json_object_get(object, key);
    if (!v) return SM_OK;
    size_t before = enter_key(r, key);
    sm_status status = read_count(r, v, most, out);
    leave(r, before);
    return status;
}

/* One of n names; *out becomes its index. */
static sm_status read_choice(reader *r, const json_t *object, const char *key,
                             const char *const *names, size_t n, int *out) {
    const json_t *v = json_object_get(object, key);
    if (!v) return SM_OK;
    size_t before = enter_key(r, key);
    sm_status status = expect(r, v, JSON_STRING, "a text");
    for (size_t i = 0; status == SM_OK && i <= n; i++) {
        const char *word = json_string_value(v);
        if (i < n && strcmp(word, names[i]) == 0) {
            *out = (int)i;
            break;
        }
        if (i < n) continue;
        char text[200];
        status = FAIL(r, "unknown %s \"%.40s\": %s", key, word,
                      advice(text, sizeof text, word, names, n));
    }
    leave(r, before);
    return status;
}

/* A list of whole numbers, from least to most of them. */
static sm_status read_sizes(reader *r, const json_t *object, const char *key, size_t least,
                            size_t most, int *out, int *n) {
    json_t *v = json_object_get(object, key);
    if (!v) return SM_OK;
    size_t before = enter_key(r, key);
    sm_status status = expect(r, v, JSON_ARRAY, "a list of whole numbers");
    if (status == SM_OK && (json_array_size(v) < least || json_array_size(v) > most))
        status = least == most
                     ? FAIL(r, "expected %zu whole numbers, found %zu", least, json_array_size(v))
                     : FAIL(r, "expected %zu to %zu whole numbers, found %zu", least, most,
                            json_array_size(v));
    for (size_t i = 0; status == SM_OK && i < json_array_size(v); i++) {
        size_t inner = enter_index(r, i);
        status = read_count(r, json_array_get(v, i), MOST_SIZE, &out[i]);
        leave(r, inner);
    }
    if (status == SM_OK) *n = (int)json_array_size(v);
    leave(r, before);
    return status;
}

/* ---- parts of a chip ---- */

static sm_status read_flops(reader *r, const json_t *object, sm_chip *chip) {
    json_t *v = json_object_get(object, "flops_per_s");
    if (!v) return SM_OK;
    size_t before = enter_key(r, "flops_per_s");
    sm_status status = expect(r, v, JSON_OBJECT, "an object of data types, as in {\"bf16\": 9e14}");
    if (status == SM_OK) status = check_keys(r, v, sm_dtype_names, SM_DTYPE_COUNT);
    for (int d = 0; status == SM_OK && d < SM_DTYPE_COUNT; d++)
        status = read_fact_member(r, v, sm_dtype_names[d], 1, 1e21, &chip->flops_per_s[d]);
    leave(r, before);
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

static sm_status read_level_name(reader *r, const json_t *object, sm_tree_level *level) {
    sm_status status = read_text_member(r, object, "name", &level->name);
    if (status != SM_OK) return status;
    if (!level->name) return FAIL(r, "a level of the tree needs a \"name\"");
    if (is_name(level->name, MOST_LEVEL_NAME)) return SM_OK;
    size_t before = enter_key(r, "name");
    status = FAIL(r, "the name of a level has at most %d letters, digits, \".\", \"_\", \"-\"",
                  MOST_LEVEL_NAME);
    leave(r, before);
    return status;
}

static sm_status read_reduction(reader *r, const json_t *object, sm_tree_level *level) {
    const json_t *v = json_object_get(object, "in_network_reduction");
    if (!v) return SM_OK;
    size_t before = enter_key(r, "in_network_reduction");
    sm_status status =
        json_is_boolean(v) ? SM_OK : FAIL(r, "expected true or false, found %s", kind_of(v));
    level->in_network_reduction = json_is_true(v);
    if (level->in_network_reduction) level->in_network_source = r->origin;
    leave(r, before);
    return status;
}

static sm_status read_level(reader *r, json_t *v, sm_tree_level *level) {
    static const char *const keys[] = {"name",
                                       "degree",
                                       "child_bytes_per_s_oneway",
                                       "hop_latency_s",
                                       "in_network_reduction",
                                       "in_network_source"};
    *level = (sm_tree_level){.name = NULL};
    sm_status status = expect(r, v, JSON_OBJECT, "an object");
    if (status == SM_OK) status = check_keys(r, v, keys, sizeof keys / sizeof keys[0]);
    if (status == SM_OK) status = read_level_name(r, v, level);
    if (status == SM_OK) status = read_count_member(r, v, "degree", MOST_SIZE, &level->degree);
    if (status == SM_OK)
        status = read_fact_member(r, v, "child_bytes_per_s_oneway", 1, 1e18,
                                  &level->child_bytes_per_s_oneway);
    if (status == SM_OK)
        status = read_fact_member(r, v, "hop_latency_s", 1e-12, 3600, &level->hop_latency_s);
    if (status == SM_OK) status = read_reduction(r, v, level);
    if (status == SM_OK && level->in_network_reduction)
        status = read_text_member(r, v, "in_network_source", &level->in_network_source);
    if (status != SM_OK) return status;
    if (level->degree < 1) return FAIL(r, "a level of the tree needs a \"degree\"");
    if (level->child_bytes_per_s_oneway.value > 0) return SM_OK;
    return FAIL(r, "a level of the tree needs \"child_bytes_per_s_oneway\"");
}

static sm_status read_tree(reader *r, const json_t *object, sm_chip *chip) {
    json_t *v = json_object_get(object, "tree");
    if (!v) return SM_OK;
    size_t before = enter_key(r, "tree");
    sm_status status = expect(r, v, JSON_ARRAY, "a list of levels, innermost first");
    if (status == SM_OK && json_array_size(v) > SM_MAX_TREE)
        status =
            FAIL(r, "a tree has at most %d levels, found %zu", SM_MAX_TREE, json_array_size(v));
    for (size_t i = 0; status == SM_OK && i < json_array_size(v); i++) {
        size_t inner = enter_index(r, i);
        status = read_level(r, json_array_get(v, i), &chip->tree[i]);
        leave(r, inner);
    }
    chip->tree_levels = (int)json_array_size(v);
    leave(r, before);
    return status;
}

static sm_status read_price(reader *r, json_t *v, sm_price *price) {
    static const char *const keys[] = {"usd_per_chip_hour", "provider", "date", "source"};
    sm_fact usd = {0, NULL};
    *price = (sm_price){0, "", "", r->origin};
    sm_status status = expect(r, v, JSON_OBJECT, "an object");
    if (status == SM_OK) status = check_keys(r, v, keys, sizeof keys / sizeof keys[0]);
    if (status == SM_OK) status = read_fact_member(r, v, "usd_per_chip_hour", 1e-6, 1e6, &usd);
    if (status == SM_OK) status = read_text_member(r, v, "provider", &price->provider);
    if (status == SM_OK) status = read_text_member(r, v, "date", &price->date);
    if (status == SM_OK) status = read_text_member(r, v, "source", &price->source);
    if (status != SM_OK) return status;
    price->usd_per_chip_hour = usd.value;
    return usd.value > 0 ? SM_OK : FAIL(r, "a price needs \"usd_per_chip_hour\"");
}

static sm_status read_prices(reader *r, const json_t *object, sm_chip *chip) {
    json_t *v = json_object_get(object, "prices");
    if (!v) return SM_OK;
    size_t before = enter_key(r, "prices");
    sm_status status = expect(r, v, JSON_ARRAY, "a list of prices");
    if (status == SM_OK && json_array_size(v) > SM_MAX_PRICES)
        status =
            FAIL(r, "a chip has at most %d prices, found %zu", SM_MAX_PRICES, json_array_size(v));
    for (size_t i = 0; status == SM_OK && i < json_array_size(v); i++) {
        size_t inner = enter_index(r, i);
        status = read_price(r, json_array_get(v, i), &chip->price[i]);
        leave(r, inner);
    }
    chip->prices = (int)json_array_size(v);
    leave(r, before);
    return status;
}

static sm_status read_fabric(reader *r, const json_t *object, sm_chip *chip) {
    static const char *const fabrics[] = {SM_FABRIC_NAMES};
    static const char *const wraps[] = {SM_WRAP_NAMES};
    int fabric = (int)chip->fabric, wrap = (int)chip->wrap_rule;
    sm_status status = read_choice(r, object, "fabric", fabrics, 3, &fabric);
    if (status == SM_OK) status = read_choice(r, object, "wrap_rule", wraps, 5, &wrap);
    chip->fabric = (sm_fabric)fabric;
    chip->wrap_rule = (sm_wrap_rule)wrap;
    if (status == SM_OK)
        status = read_sizes(r, object, "pod_shape", 2, 3, chip->pod_shape, &chip->torus_axes);
    return status == SM_OK ? read_tree(r, object, chip) : status;
}

static sm_status read_tile(reader *r, const json_t *object, sm_chip *chip) {
    int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k}, n = 0;
    sm_status status = read_sizes(r, object, "tile", 3, 3, tile, &n);
    chip->tile_m = tile[0];
    chip->tile_n = tile[1];
    chip->tile_k = tile[2];
    return status;
}

static sm_status read_listed(reader *r, const json_t *object, sm_chip *chip) {
    sm_status status = SM_OK;
#define X(key)                                                                                     \
    if (status == SM_OK) status = read_text_member(r, object, #key, &chip->key);
    SM_CHIP_TEXTS(X)
#undef X
#define X(key, what, least, most)                                                                  \
    if (status == SM_OK) status = read_fact_member(r, object, #key, least, most, &chip->key);
    SM_CHIP_FACTS(X)
#undef X
#define X(key, most)                                                                               \
    if (status == SM_OK) status = read_count_member(r, object, #key, most, &chip->key);
    SM_CHIP_COUNTS(X)
#undef X
    return status;
}

/* ---- a whole chip ---- */

static sm_status check_torus(reader *r, const sm_chip *chip) {
    int64_t pod = 1;
    if (chip->torus_axes == 0) return FAIL(r, "a torus needs \"pod_shape\", as in [16, 16]");
    for (int i = 0; i < chip->torus_axes; i++) pod *= chip->pod_shape[i];
    if (pod > MOST_SIZE) {
        size_t before = enter_key(r, "pod_shape");
        sm_status status = FAIL(r, "a pod has at most %d chips", MOST_SIZE);
        leave(r, before);
        return status;
    }
    if (chip->link_bytes_per_s_oneway.value > 0) return SM_OK;
    return FAIL(r, "a torus needs \"link_bytes_per_s_oneway\"");
}

static bool has_peak(const sm_chip *chip) {
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        if (chip->flops_per_s[d].value > 0) return true;
    return false;
}

static sm_status check_name(reader *r, const sm_chip *chip) {
    if (!chip->name) return FAIL(r, "a chip needs a \"name\"");
    if (is_name(chip->name, MOST_NAME)) return SM_OK;
    size_t before = enter_key(r, "name");
    sm_status status = FAIL(r,
                            "the name of a chip has at most %d letters, digits, \".\", \"_\" and "
                            "\"-\", and begins with a letter or digit",
                            MOST_NAME);
    leave(r, before);
    return status;
}

/* What every later stage relies on, so that pricing cannot fail. */
static sm_status check_chip(reader *r, const sm_chip *chip) {
    sm_status status = check_name(r, chip);
    if (status != SM_OK) return status;
    if (!has_peak(chip)) return FAIL(r, "a chip needs a peak in \"flops_per_s\"");
    if (chip->memory_bytes.value <= 0) return FAIL(r, "a chip needs \"memory_bytes\"");
    if (chip->memory_bytes_per_s.value <= 0) return FAIL(r, "a chip needs \"memory_bytes_per_s\"");
    if (chip->fabric == SM_FABRIC_TORUS) return check_torus(r, chip);
    if (chip->fabric == SM_FABRIC_SWITCH && chip->tree_levels == 0)
        return FAIL(r, "a switch fabric needs a \"tree\" of at least one level");
    return SM_OK;
}

static const sm_chip *find_named(const sm_chip *chips, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(chips[i].name, name) == 0) return &chips[i];
    return NULL;
}

static sm_status fail_base(reader *r, const char *word) {
    const char *names[MOST_CHIPS];
    size_t n = 0;
    for (; n < sm_chip_count() && n < MOST_CHIPS; n++) names[n] = sm_chip_at(n)->name;
    const char *nearest = sm_nearest(word, strlen(word), names, n);
    return nearest
               ? FAIL(r, "unknown base \"%.40s\"; the nearest is \"%s\"", word, nearest)
               : FAIL(r, "unknown base \"%.40s\": expected a chip of the catalogue or one above",
                      word);
}

/* The chip that the file's values are laid over: "base" if given, else one with nothing known. */
static sm_status read_base(reader *r, const json_t *object, const sm_chip *earlier, size_t n,
                           sm_chip *chip) {
    *chip = (sm_chip){.aliases = "",
                      .title = "",
                      .vendor = "",
                      .conflicts = "",
                      .tile_m = 1,
                      .tile_n = 1,
                      .tile_k = 1,
                      .cores = 1,
                      .matrix_units_per_core = 1,
                      .chips_per_host = 1,
                      .links_per_chip = 1,
                      .fabric = SM_FABRIC_NONE};
    const char *base = NULL;
    sm_status status = read_text_member(r, object, "base", &base);
    if (status != SM_OK || !base) return status;
    size_t before = enter_key(r, "base");
    const sm_chip *found = find_named(earlier, n, base);
    if (!found) found = sm_chip_find(base, strlen(base));
    if (found) *chip = *found;
    else status = fail_base(r, base);
    leave(r, before);
    return status;
}

/* A chip with another name than its base keeps the aliases to its base alone. */
static void drop_aliases_of_base(const json_t *object, sm_chip *chip) {
    if (json_object_get(object, "base") && json_object_get(object, "name") &&
        !json_object_get(object, "aliases"))
        chip->aliases = "";
}

static sm_status read_chip(reader *r, json_t *v, const sm_chip *earlier, size_t n, sm_chip *chip) {
    static const char *const keys[] = {
#define X(key, ...) #key,
        SM_CHIP_TEXTS(X) SM_CHIP_OTHERS(X) SM_CHIP_FACTS(X) SM_CHIP_COUNTS(X)
#undef X
    };
    sm_status status = expect(r, v, JSON_OBJECT, "a chip, as in {\"name\": \"mine\", ...}");
    if (status == SM_OK) status = check_keys(r, v, keys, sizeof keys / sizeof keys[0]);
    if (status == SM_OK) status = read_base(r, v, earlier, n, chip);
    if (status == SM_OK) drop_aliases_of_base(v, chip);
    if (status == SM_OK) status = read_listed(r, v, chip);
    if (status == SM_OK) status = read_flops(r, v, chip);
    if (status == SM_OK) status = read_tile(r, v, chip);
    if (status == SM_OK) status = read_fabric(r, v, chip);
    if (status == SM_OK) status = read_prices(r, v, chip);
    if (status == SM_OK) status = check_chip(r, chip);
    if (status != SM_OK || !find_named(earlier, n, chip->name)) return status;
    size_t before = enter_key(r, "name");
    status = FAIL(r, "a second chip is named \"%s\"", chip->name);
    leave(r, before);
    return status;
}

static sm_status read_list(reader *r, json_t *list, sm_chip **chips, size_t *n) {
    size_t count = json_array_size(list);
    if (count == 0 || count > MOST_CHIPS)
        return FAIL(r, "expected 1 to %d chips, found %zu", MOST_CHIPS, count);
    sm_chip *all = sm_arena_array(r->arena, count, sizeof *all);
    if (!all) return sm_fail_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        size_t before = enter_index(r, i);
        sm_status status = read_chip(r, json_array_get(list, i), all, i, &all[i]);
        leave(r, before);
        if (status != SM_OK) return status;
    }
    *chips = all;
    *n = count;
    return SM_OK;
}

static sm_status read_document(reader *r, json_t *root, sm_chip **chips, size_t *n) {
    static const char *const keys[] = {"chips"};
    sm_status status =
        expect(r, root, JSON_OBJECT, "a chip {...} or a list of them {\"chips\": [...]}");
    if (status != SM_OK) return status;
    json_t *list = json_object_get(root, "chips");
    if (list) {
        status = check_keys(r, root, keys, 1);
        size_t before = enter_key(r, "chips");
        if (status == SM_OK) status = expect(r, list, JSON_ARRAY, "a list of chips");
        if (status == SM_OK) status = read_list(r, list, chips, n);
        leave(r, before);
        return status;
    }
    sm_chip *one = sm_arena_alloc(r->arena, sizeof *one);
    if (!one) return sm_fail_memory(r->err);
    status = read_chip(r, root, NULL, 0, one);
    *chips = one;
    *n = status == SM_OK;
    return status;
}

sm_status sm_io_chips_parse(const sm_source *source, sm_arena *arena, sm_chip **chips, size_t *n,
                            sm_error *err) {
    json_t *root = NULL;
    reader r = {.source = source, .arena = arena, .err = err};
    *chips = NULL;
    *n = 0;
    const char *name = source->name && source->name[0] ? source->name : "the system file";
    r.origin = sm_arena_printf(arena, "given in %s", name);
    if (!r.origin) return sm_fail_memory(err);
    sm_status status = sm_json_load(source, err, &root);
    if (status == SM_OK) status = read_document(&r, root, chips, n);
    json_decref(root);
    if (status != SM_OK) {
        *chips = NULL;
        *n = 0;
    }
    return status;
}
