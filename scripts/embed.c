/* Writes what lies in data/ as C tables of constants, so that a program that starts reads and
 * parses nothing. It is built for the machine that builds, of the library's own readers.
 * usage: embed chips data/chips/NAME.json... >chip_table.c */
#include "chip_schema.h"
#include "scalemodel/io.h"
#include <stdio.h>
#include <string.h>

/* The library looks chips up in its table; this program makes that table and has none. */
extern const sm_chip sm_chip_table[];
extern const size_t sm_chip_table_count;
const sm_chip sm_chip_table[1] = {{.name = ""}};
const size_t sm_chip_table_count = 0;

static int fail(const sm_error *err) {
    fprintf(stderr, "%s:%d:%d: %s\n", err->source, err->line, err->column, err->sentence);
    return 1;
}

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
#define X(key, most) put_count(indent, #key, chip->key);
    SM_CHIP_COUNTS(X)
    X(tile_m, )
    X(tile_n, ) X(tile_k, ) X(fabric, ) X(wrap_rule, ) X(torus_axes, ) X(tree_levels, ) X(prices, )
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

static int embed_chips(char *const *path, int paths, sm_arena *arena) {
    sm_error err = {.line = 0};
    puts("/* Made from data/chips by scripts/embed.c. */\n#include \"chip_table.h\"\n\n"
         "const sm_chip sm_chip_table[] = {");
    for (int i = 0; i < paths; i++) {
        sm_source source;
        sm_chip *chips;
        size_t n;
        if (sm_io_read(path[i], arena, &source, &err) ||
            sm_io_chips_parse(&source, arena, &chips, &n, &err))
            return fail(&err);
        if (n != 1 || !is_named_after(path[i], chips[0].name)) {
            fprintf(stderr, "%s: expected one chip, called as the file is\n", path[i]);
            return 1;
        }
        put_chip(&chips[0]);
    }
    printf("};\nconst size_t sm_chip_table_count = %d;\n", paths);
    return 0;
}

int main(int arguments, char **argument) {
    sm_arena *arena = sm_arena_new();
    int status = 2;
    if (arena && arguments > 2 && strcmp(argument[1], "chips") == 0)
        status = embed_chips(argument + 2, arguments - 2, arena);
    else fputs("usage: embed chips FILE...\n", stderr);
    sm_arena_free(arena);
    return ferror(stdout) ? 1 : status;
}
