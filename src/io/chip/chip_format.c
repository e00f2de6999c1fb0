/* Writes a chip as the JSON that chip_file.c reads. */
#include "scalemodel/io.h"

#include "chip_schema.h"
#include "scalemodel/json.h"

#include <string.h>

/* Objects and lists lie in one arena; refused: once memory has run out. */
typedef struct chip_data {
    sm_arena *arena;
    bool refused;
} chip_data;

static void put(chip_data *d, sm_data *object, const char *key, sm_data *value) {
    if (!sm_data_put(object, d->arena, key, value)) d->refused = true;
}

static void push(chip_data *d, sm_data *list, sm_data *value) {
    if (!sm_data_push(list, value)) d->refused = true;
}

static void put_text(chip_data *d, sm_data *object, const char *key, const char *text) {
    if (text) put(d, object, key, sm_data_string(d->arena, text));
}

static void put_fact(chip_data *d, sm_data *object, const char *key, sm_fact fact) {
    if (fact.value <= 0) return;
    sm_data *value = sm_data_object(d->arena);
    put(d, value, "value", sm_data_number(d->arena, fact.value));
    put(d, value, "source", sm_data_string(d->arena, fact.source ? fact.source : ""));
    put(d, object, key, value);
}

static void put_sizes(chip_data *d, sm_data *object, const char *key, const int *size, int n) {
    sm_data *list = sm_data_array(d->arena);
    for (int i = 0; i < n; i++) push(d, list, sm_data_number(d->arena, size[i]));
    put(d, object, key, list);
}

static void put_flops(chip_data *d, sm_data *object, const sm_chip *chip) {
    sm_data *flops = sm_data_object(d->arena);
    for (int t = 0; t < SM_DTYPE_COUNT; t++)
        put_fact(d, flops, sm_dtype_names[t], chip->flops_per_s[t]);
    put(d, object, "flops_per_s", flops);
}

static sm_data *level_data(chip_data *d, const sm_tree_level *level) {
    sm_data *data = sm_data_object(d->arena);
    put_text(d, data, "name", level->name);
    put(d, data, "degree", sm_data_number(d->arena, level->degree));
    put_fact(d, data, "child_bytes_per_s_oneway", level->child_bytes_per_s_oneway);
    put_fact(d, data, "hop_latency_s", level->hop_latency_s);
    if (!level->in_network_reduction) return data;
    put(d, data, "in_network_reduction", sm_data_bool(d->arena, true));
    put_text(d, data, "in_network_source", level->in_network_source);
    return data;
}

static sm_data *price_data(chip_data *d, const sm_price *price) {
    sm_data *data = sm_data_object(d->arena);
    put(d, data, "usd_per_chip_hour", sm_data_number(d->arena, price->usd_per_chip_hour));
    put_text(d, data, "provider", price->provider);
    put_text(d, data, "date", price->date);
    put_text(d, data, "source", price->source);
    return data;
}

static void put_fabric(chip_data *d, sm_data *object, const sm_chip *chip) {
    static const char *const fabrics[] = {SM_FABRIC_NAMES};
    static const char *const wraps[] = {SM_WRAP_NAMES};
    put_text(d, object, "fabric", fabrics[chip->fabric]);
    if (chip->torus_axes > 0) {
        put_sizes(d, object, "pod_shape", chip->pod_shape, chip->torus_axes);
        put_text(d, object, "wrap_rule", wraps[chip->wrap_rule]);
    }
    if (chip->tree_levels == 0) return;
    sm_data *tree = sm_data_array(d->arena);
    for (int i = 0; i < chip->tree_levels; i++) push(d, tree, level_data(d, &chip->tree[i]));
    put(d, object, "tree", tree);
}

static sm_data *data_of(chip_data *d, const sm_chip *chip) {
    const int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k};
    sm_data *object = sm_data_object(d->arena);
#define X(key) put_text(d, object, #key, chip->key);
    SM_CHIP_TEXTS(X)
#undef X
    put_flops(d, object, chip);
#define X(key, what, least, most) put_fact(d, object, #key, chip->key);
    SM_CHIP_FACTS(X)
#undef X
    put_sizes(d, object, "tile", tile, 3);
#define X(key, most)                                                                               \
    if (chip->key > 0 && (chip->fabric == SM_FABRIC_TORUS || strcmp(#key, "links_per_chip")))      \
        put(d, object, #key, sm_data_number(d->arena, chip->key));
    SM_CHIP_COUNTS(X)
#undef X
    put_fabric(d, object, chip);
    if (chip->prices == 0) return object;
    sm_data *prices = sm_data_array(d->arena);
    for (int i = 0; i < chip->prices; i++) push(d, prices, price_data(d, &chip->price[i]));
    put(d, object, "prices", prices);
    return object;
}

char *sm_io_chip_format(const sm_chip *chip, sm_arena *arena) {
    chip_data d = {arena, false};
    char *text = NULL;
    size_t length;
    sm_data *data = data_of(&d, chip);
    return !d.refused && !sm_json_format(data, SM_JSON_PAGE, arena, &text, &length, NULL) ? text
                                                                                          : NULL;
}
