/* Writes a chip as chip_file.c reads it: numbers alone, and their sources together by the place of
 * each, as in {"tdp_w": 700, "sources": {"tdp_w": "datasheet"}}. */
#include "scalemodel/io.h"

#include "chip_schema.h"
#include "scalemodel/json.h"

#include <stdio.h>
#include <string.h>

/* All data lies in one arena; refused: once memory has run out. */
typedef struct writer {
    sm_arena *arena;
    sm_data *sources;
    bool refused;
} writer;

static sm_data *put(writer *w, sm_data *object, const char *key, sm_data *value) {
    if (!sm_data_put(object, w->arena, key, value)) w->refused = true;
    return value;
}

static sm_data *push(writer *w, sm_data *list, sm_data *value) {
    if (!sm_data_push(list, value)) w->refused = true;
    return value;
}

static void put_text(writer *w, sm_data *object, const char *key, const char *text) {
    if (text) put(w, object, key, sm_data_string(w->arena, text));
}

static void put_count(writer *w, sm_data *object, const char *key, int count) {
    if (count > 0) put(w, object, key, sm_data_number(w->arena, count));
}

/* The number under its key; its source under `parent` and key ("tree[0]." and "hop_latency_s"). */
static void put_fact(writer *w, sm_data *object, const char *parent, const char *key,
                     sm_fact fact) {
    char place[80];
    if (fact.value <= 0) return;
    put(w, object, key, sm_data_number(w->arena, fact.value));
    snprintf(place, sizeof place, "%s%s", parent, key);
    put_text(w, w->sources, place, fact.source);
}

static void put_sizes(writer *w, sm_data *object, const char *key, const int *size, int n) {
    sm_data *list = put(w, object, key, sm_data_array(w->arena));
    for (int i = 0; i < n; i++) push(w, list, sm_data_number(w->arena, size[i]));
}

static void put_tree(writer *w, sm_data *object, const sm_chip *chip) {
    sm_data *tree = put(w, object, "tree", sm_data_array(w->arena));
    for (int i = 0; i < chip->tree_levels; i++) {
        const sm_tree_level *level = &chip->tree[i];
        sm_data *data = push(w, tree, sm_data_object(w->arena));
        char parent[24];
        snprintf(parent, sizeof parent, "tree[%d].", i);
        put_text(w, data, "name", level->name);
        put_count(w, data, "degree", level->degree);
        put_fact(w, data, parent, "child_bytes_per_s_oneway", level->child_bytes_per_s_oneway);
        put_fact(w, data, parent, "hop_latency_s", level->hop_latency_s);
        put(w, data, "in_network_reduction", sm_data_bool(w->arena, level->in_network_reduction));
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

bool sm_io_chip_put(const sm_chip *chip, sm_data *object, sm_arena *arena) {
    const int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k};
    writer w = {arena, sm_data_object(arena), false};
#define X(key) put_text(&w, object, #key, chip->key);
    SM_CHIP_TEXTS(X)
#undef X
    sm_data *flops = put(&w, object, "flops_per_s", sm_data_object(arena));
    for (int d = 0; d < SM_DTYPE_COUNT; d++)
        put_fact(&w, flops, "flops_per_s.", sm_dtype_names[d], chip->flops_per_s[d]);
#define X(key, what, least, most) put_fact(&w, object, "", #key, chip->key);
    SM_CHIP_FACTS(X)
#undef X
    put_sizes(&w, object, "tile", tile, 3);
#define X(key, most) put_count(&w, object, #key, chip->key);
    SM_CHIP_COUNTS(X)
#undef X
    put_fabric(&w, object, chip);
    sm_data *prices = put(&w, object, "prices", sm_data_array(w.arena));
    for (int i = 0; i < chip->prices; i++) {
        const sm_price *price = &chip->price[i];
        sm_data *data = push(&w, prices, sm_data_object(w.arena));
        put(&w, data, "usd_per_chip_hour", sm_data_number(w.arena, price->usd_per_chip_hour));
        put_text(&w, data, "provider", price->provider);
        put_text(&w, data, "date", price->date);
        put_text(&w, data, "source", price->source);
    }
    put(&w, object, "sources", w.sources);
    return !w.refused;
}

char *sm_io_chip_format(const sm_chip *chip, sm_arena *arena) {
    char *text = NULL;
    size_t length;
    sm_data *data = sm_data_object(arena);
    if (!sm_io_chip_put(chip, data, arena)) return NULL;
    return sm_json_format(data, SM_JSON_PAGE, arena, &text, &length, NULL) ? NULL : text;
}
