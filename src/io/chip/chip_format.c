/* Writes a chip as the JSON that chip_file.c reads; numbers as the shortest text of the same
 * double. */
#include "scalemodel/io.h"

#include "chip_schema.h"

#include <stdio.h>
#include <string.h>

/* A text that grows; failed once memory has run out. */
typedef struct page {
    char *text;
    size_t length, room;
    bool failed;
} page;

static void put(page *p, const char *text) {
    size_t n = strlen(text);
    if (p->failed) return;
    if (p->length + n + 1 > p->room) {
        size_t room = 2 * (p->length + n + 1);
        char *grown = sm_realloc(p->text, room);
        p->failed = !grown;
        if (!grown) return;
        p->text = grown;
        p->room = room;
    }
    memcpy(p->text + p->length, text, n + 1);
    p->length += n;
}

/* A JSON string: quotes, backslashes and control characters escaped. */
static void put_string(page *p, const char *text) {
    put(p, "\"");
    for (const char *c = text ? text : ""; *c; c++) {
        char one[8] = {*c, 0};
        if (*c == '"' || *c == '\\') snprintf(one, sizeof one, "\\%c", *c);
        else if ((unsigned char)*c < ' ') snprintf(one, sizeof one, "\\u%04x", *c);
        put(p, one);
    }
    put(p, "\"");
}

static void put_key(page *p, const char *indent, const char *key) {
    put(p, p->length > 2 ? ",\n" : "\n");
    put(p, indent);
    put_string(p, key);
    put(p, ": ");
}

static void put_number(page *p, double value) {
    char text[40];
    put(p, sm_format_exact(text, sizeof text, value));
}

static void put_count(page *p, long long value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", value);
    put(p, text);
}

static void put_fact_value(page *p, sm_fact fact) {
    put(p, "{\"value\": ");
    put_number(p, fact.value);
    put(p, ", \"source\": ");
    put_string(p, fact.source);
    put(p, "}");
}

static void put_fact(page *p, const char *key, sm_fact fact) {
    if (fact.value <= 0) return;
    put_key(p, "  ", key);
    put_fact_value(p, fact);
}

static void put_text(page *p, const char *key, const char *text) {
    if (!text) return;
    put_key(p, "  ", key);
    put_string(p, text);
}

static void put_sizes(page *p, const char *key, const int *size, int n) {
    put_key(p, "  ", key);
    for (int i = 0; i < n; i++) {
        put(p, i ? ", " : "[");
        put_count(p, size[i]);
    }
    put(p, "]");
}

static void put_flops(page *p, const sm_chip *chip) {
    const char *between = "{";
    put_key(p, "  ", "flops_per_s");
    for (int d = 0; d < SM_DTYPE_COUNT; d++) {
        if (chip->flops_per_s[d].value <= 0) continue;
        put(p, between);
        put(p, "\n    ");
        put_string(p, sm_dtype_names[d]);
        put(p, ": ");
        put_fact_value(p, chip->flops_per_s[d]);
        between = ",";
    }
    put(p, "}");
}

static void put_level(page *p, const sm_tree_level *level) {
    put(p, "\n    {\"name\": ");
    put_string(p, level->name);
    put(p, ", \"degree\": ");
    put_count(p, level->degree);
    put(p, ",\n     \"child_bytes_per_s_oneway\": ");
    put_fact_value(p, level->child_bytes_per_s_oneway);
    if (level->hop_latency_s.value > 0) {
        put(p, ",\n     \"hop_latency_s\": ");
        put_fact_value(p, level->hop_latency_s);
    }
    if (level->in_network_reduction) {
        put(p, ",\n     \"in_network_reduction\": true, \"in_network_source\": ");
        put_string(p, level->in_network_source);
    }
    put(p, "}");
}

static void put_tree(page *p, const sm_chip *chip) {
    if (chip->tree_levels == 0) return;
    put_key(p, "  ", "tree");
    for (int i = 0; i < chip->tree_levels; i++) {
        put(p, i ? "," : "[");
        put_level(p, &chip->tree[i]);
    }
    put(p, "]");
}

static void put_prices(page *p, const sm_chip *chip) {
    if (chip->prices == 0) return;
    put_key(p, "  ", "prices");
    for (int i = 0; i < chip->prices; i++) {
        const sm_price *price = &chip->price[i];
        put(p, i ? ",\n    {\"usd_per_chip_hour\": " : "[\n    {\"usd_per_chip_hour\": ");
        put_number(p, price->usd_per_chip_hour);
        put(p, ", \"provider\": ");
        put_string(p, price->provider);
        put(p, ", \"date\": ");
        put_string(p, price->date);
        put(p, ", \"source\": ");
        put_string(p, price->source);
        put(p, "}");
    }
    put(p, "]");
}

static void put_fabric(page *p, const sm_chip *chip) {
    static const char *const fabrics[] = {SM_FABRIC_NAMES};
    static const char *const wraps[] = {SM_WRAP_NAMES};
    put_text(p, "fabric", fabrics[chip->fabric]);
    if (chip->torus_axes > 0) {
        put_sizes(p, "pod_shape", chip->pod_shape, chip->torus_axes);
        put_text(p, "wrap_rule", wraps[chip->wrap_rule]);
    }
    put_tree(p, chip);
}

static void put_chip(page *p, const sm_chip *chip) {
    const int tile[3] = {chip->tile_m, chip->tile_n, chip->tile_k};
    put(p, "{");
#define X(key) put_text(p, #key, chip->key);
    SM_CHIP_TEXTS(X)
#undef X
    put_flops(p, chip);
#define X(key, what, least, most) put_fact(p, #key, chip->key);
    SM_CHIP_FACTS(X)
#undef X
    put_sizes(p, "tile", tile, 3);
#define X(key, most)                                                                               \
    if (chip->key > 0 && (chip->fabric == SM_FABRIC_TORUS || strcmp(#key, "links_per_chip"))) {    \
        put_key(p, "  ", #key);                                                                    \
        put_count(p, chip->key);                                                                   \
    }
    SM_CHIP_COUNTS(X)
#undef X
    put_fabric(p, chip);
    put_prices(p, chip);
    put(p, "\n}\n");
}

char *sm_io_chip_format(const sm_chip *chip, sm_arena *arena) {
    page p = {NULL, 0, 0, false};
    put_chip(&p, chip);
    char *text = p.failed ? NULL : sm_arena_copy(arena, p.text, p.length);
    sm_free(p.text);
    return text;
}
