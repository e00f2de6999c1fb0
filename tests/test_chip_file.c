/* System files: what is read, what is refused and where, and that chips round-trip. */
#include "unit.h"
#include "chip_schema.h"
#include "failing_alloc.h"
#include "scalemodel/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A chip of its own with every key of the schema. */
static const char whole[] =
    "{\"name\": \"mine\", \"aliases\": \"my-chip m1\", \"title\": \"Mine\", \"vendor\": \"Me\",\n"
    " \"conflicts\": \"none\", \"calibration\": \"h100-sxm\",\n"
    " \"flops_per_s\": {\"bf16\": 1e14, \"fp8\": {\"value\": 2e14, \"source\": \"sheet\"}},\n"
    " \"narrow_bytes_per_s\": {\"int8\": 5e10},\n"
    " \"vector_flops_per_s\": 3e12, \"memory_bytes\": {\"value\": 64e9},\n"
    " \"memory_bytes_per_s\": 1.5e12, \"onchip_bytes\": 5e7, \"onchip_bytes_per_s\": 6e12,\n"
    " \"shared_bytes\": 3e7, \"clock_hz\": 1.2e9,\n"
    " \"constants_like\": \"h200 b200\", \"host_bytes\": 1e12, \"pcie_bytes_per_s_oneway\": 3e10,\n"
    " \"dcn_bytes_per_s_oneway\": 2.5e10, \"dcn_latency_s\": 5e-6, \"launch_latency_s\": 2e-6,\n"
    " \"tdp_w\": 500, \"tile\": [128, 256, 64], \"cores\": 100, \"matrix_units_per_core\": 4,\n"
    " \"chips_per_host\": 4, \"peer_chips\": 3, \"fabric\": \"switch\",\n"
    " \"tree\": [{\"name\": \"node\", \"degree\": 4, \"child_bytes_per_s_oneway\": 2e11,\n"
    "           \"hop_latency_s\": 1e-6, \"in_network_reduction\": true,\n"
    "           \"in_network_source\": \"sheet\"},\n"
    "          {\"name\": \"leaf\", \"degree\": 16, \"child_bytes_per_s_oneway\": 1e11}],\n"
    " \"prices\": [{\"usd_per_chip_hour\": 1.25, \"provider\": \"P\", \"date\": \"2026-01\",\n"
    "             \"source\": \"list\"}]}\n";

typedef struct parsed {
    sm_arena *arena;
    sm_chip *chips;
    size_t n;
    sm_status status;
    sm_error err;
} parsed;

static parsed parse_bytes(const char *text, size_t length) {
    parsed p = {.arena = sm_arena_new()};
    sm_source source = {"sys.json", text, length};
    p.status = sm_io_chips_parse(&source, p.arena, &p.chips, &p.n, &p.err);
    if (p.status != SM_OK) assert_true(p.n == 0 && p.chips == NULL);
    return p;
}

static parsed parse(const char *text) { return parse_bytes(text, strlen(text)); }

static parsed parse_good(const char *text) {
    parsed p = parse(text);
    if (p.status != SM_OK) fail_msg("%d:%d: %s", p.err.line, p.err.column, p.err.sentence);
    return p;
}

static void assert_fact(sm_fact f, double value, const char *source) {
    if (f.value < value || f.value > value) fail_msg("%g is not %g", f.value, value);
    if (value > 0) assert_string_equal(f.source, source);
    else assert_null(f.source);
}

static void reads_every_key(void **state) {
    parsed p = parse_good(whole);
    const sm_chip *c = p.chips;
    const char *given = "given in sys.json";
    assert_int_equal(p.n, 1);
    assert_string_equal(c->name, "mine");
    assert_string_equal(c->aliases, "my-chip m1");
    assert_string_equal(c->title, "Mine");
    assert_string_equal(c->vendor, "Me");
    assert_string_equal(c->conflicts, "none");
    assert_string_equal(c->calibration, "h100-sxm");
    assert_fact(c->flops_per_s[SM_BF16], 1e14, given);
    assert_fact(c->flops_per_s[SM_FP8], 2e14, "sheet");
    assert_fact(c->flops_per_s[SM_INT8], 0, NULL);
    assert_fact(c->narrow_bytes_per_s[SM_INT8], 5e10, given);
    assert_fact(c->narrow_bytes_per_s[SM_FP8], 0, NULL);
    assert_fact(c->vector_flops_per_s, 3e12, given);
    assert_fact(c->memory_bytes, 64e9, given);
    assert_fact(c->memory_bytes_per_s, 1.5e12, given);
    assert_fact(c->onchip_bytes, 5e7, given);
    assert_fact(c->onchip_bytes_per_s, 6e12, given);
    assert_fact(c->shared_bytes, 3e7, given);
    assert_fact(c->clock_hz, 1.2e9, given);
    assert_string_equal(c->constants_like, "h200 b200");
    assert_fact(c->host_bytes, 1e12, given);
    assert_fact(c->pcie_bytes_per_s_oneway, 3e10, given);
    assert_fact(c->dcn_bytes_per_s_oneway, 2.5e10, given);
    assert_fact(c->dcn_latency_s, 5e-6, given);
    assert_fact(c->launch_latency_s, 2e-6, given);
    assert_fact(c->tdp_w, 500, given);
    assert_true(c->tile_m == 128 && c->tile_n == 256 && c->tile_k == 64);
    assert_true(c->cores == 100 && c->matrix_units_per_core == 4);
    assert_true(c->chips_per_host == 4 && c->peer_chips == 3);
    assert_true(c->fabric == SM_FABRIC_SWITCH && c->tree_levels == 2 && c->prices == 1);
    assert_string_equal(c->tree[0].name, "node");
    assert_fact(c->tree[0].child_bytes_per_s_oneway, 2e11, given);
    assert_true(c->tree[0].in_network_reduction && !c->tree[1].in_network_reduction);
    assert_string_equal(c->tree[0].in_network_source, "sheet");
    assert_fact(c->tree[1].hop_latency_s, 0, NULL);
    assert_string_equal(c->price[0].provider, "P");
    assert_string_equal(c->price[0].date, "2026-01");
    assert_true(sm_chip_usd_per_hour(c) > 1.24 && sm_chip_usd_per_hour(c) < 1.26);
    sm_arena_free(p.arena);
}

static void a_base_keeps_what_is_not_given(void **state) {
    parsed p = parse_good("{\"base\": \"tpu-v5p\", \"name\": \"mine\", \"memory_bytes\": 96e9,"
                          " \"flops_per_s\": {\"int8\": 0, \"bf16\": 4e14}, \"prices\": []}");
    const sm_chip *c = p.chips, *base = sm_chip_find("tpu-v5p", 7);
    assert_string_equal(c->name, "mine");
    assert_string_equal(c->aliases, "");
    assert_fact(c->memory_bytes, 96e9, "given in sys.json");
    assert_fact(c->flops_per_s[SM_BF16], 4e14, "given in sys.json");
    assert_fact(c->flops_per_s[SM_INT8], 0, NULL);
    assert_fact(c->flops_per_s[SM_FP8], base->flops_per_s[SM_FP8].value,
                base->flops_per_s[SM_FP8].source);
    assert_fact(c->clock_hz, base->clock_hz.value, base->clock_hz.source);
    assert_int_equal(c->prices, 0);
    assert_memory_equal(c->pod_shape, base->pod_shape, sizeof c->pod_shape);
    sm_arena_free(p.arena);
}

static void a_base_may_stand_above(void **state) {
    parsed p = parse_good("{\"chips\": [{\"base\": \"v5e\", \"name\": \"a\", \"cores\": 3},"
                          " {\"base\": \"a\", \"name\": \"b\", \"pod_shape\": [32, 32]},"
                          " {\"base\": \"h100\"}]}");
    assert_int_equal(p.n, 3);
    assert_int_equal(p.chips[1].cores, 3);
    assert_int_equal(p.chips[1].pod_shape[0], 32);
    assert_int_equal(p.chips[0].pod_shape[0], 16);
    assert_string_equal(p.chips[2].aliases, sm_chip_find("h100", 4)->aliases);
    sm_arena_free(p.arena);
}

static void systems_are_built_of_the_files_chips(void **state) {
    parsed p = parse_good("{\"chips\": [{\"base\": \"v5e\", \"name\": \"big\","
                          " \"pod_shape\": [32, 32]},"
                          " {\"base\": \"h100\", \"memory_bytes\": 1e11}]}");
    sm_source text = sm_source_of("--on", "big:1024");
    sm_system system;
    assert_int_equal(sm_system_parse(&text, p.chips, p.n, &system, NULL), SM_OK);
    assert_string_equal(system.text, "big:32x32");
    text = sm_source_of("--on", "h100-sxm:8");
    assert_int_equal(sm_system_parse(&text, p.chips, p.n, &system, NULL), SM_OK);
    assert_fact(system.chip.memory_bytes, 1e11, "given in sys.json");
    sm_arena_free(p.arena);
}

/* ---- round trips ---- */

static void assert_same_text(const char *a, const char *b) {
    if (!a || !b) assert_true(a == b);
    else assert_string_equal(a, b);
}

static void assert_same_fact(sm_fact a, sm_fact b) { assert_fact(a, b.value, b.source); }

static void assert_same_level(const sm_tree_level *a, const sm_tree_level *b) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->degree, b->degree);
    assert_same_fact(a->child_bytes_per_s_oneway, b->child_bytes_per_s_oneway);
    assert_same_fact(a->hop_latency_s, b->hop_latency_s);
    assert_int_equal(a->in_network_reduction, b->in_network_reduction);
    assert_same_text(a->in_network_source, b->in_network_source);
}

static void assert_same_price(const sm_price *a, const sm_price *b) {
    assert_memory_equal(&a->usd_per_chip_hour, &b->usd_per_chip_hour, sizeof(double));
    assert_string_equal(a->provider, b->provider);
    assert_string_equal(a->date, b->date);
    assert_string_equal(a->source, b->source);
}

static void assert_same_facts(const sm_chip *a, const sm_chip *b) {
    for (int d = 0; d < SM_DTYPE_COUNT; d++) assert_same_fact(a->flops_per_s[d], b->flops_per_s[d]);
    assert_same_fact(a->vector_flops_per_s, b->vector_flops_per_s);
    assert_same_fact(a->memory_bytes, b->memory_bytes);
    assert_same_fact(a->memory_bytes_per_s, b->memory_bytes_per_s);
    assert_same_fact(a->onchip_bytes, b->onchip_bytes);
    assert_same_fact(a->onchip_bytes_per_s, b->onchip_bytes_per_s);
    assert_same_fact(a->shared_bytes, b->shared_bytes);
    assert_same_fact(a->clock_hz, b->clock_hz);
    assert_same_fact(a->link_bytes_per_s_oneway, b->link_bytes_per_s_oneway);
    assert_same_fact(a->hop_latency_s, b->hop_latency_s);
    assert_same_fact(a->host_bytes, b->host_bytes);
    assert_same_fact(a->host_bytes_per_s, b->host_bytes_per_s);
    assert_same_fact(a->pcie_bytes_per_s_oneway, b->pcie_bytes_per_s_oneway);
    assert_same_fact(a->dcn_bytes_per_s_oneway, b->dcn_bytes_per_s_oneway);
    assert_same_fact(a->dcn_latency_s, b->dcn_latency_s);
    assert_same_fact(a->launch_latency_s, b->launch_latency_s);
    assert_same_fact(a->tdp_w, b->tdp_w);
    assert_same_fact(a->interruptions_per_chip_hour, b->interruptions_per_chip_hour);
}

static void assert_same_chip(const sm_chip *a, const sm_chip *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->aliases, b->aliases);
    assert_string_equal(a->title, b->title);
    assert_string_equal(a->vendor, b->vendor);
    assert_string_equal(a->conflicts, b->conflicts);
    assert_same_text(a->calibration, b->calibration);
    assert_same_text(a->constants_like, b->constants_like);
    assert_same_facts(a, b);
    assert_true(a->tile_m == b->tile_m && a->tile_n == b->tile_n && a->tile_k == b->tile_k);
    assert_int_equal(a->cores, b->cores);
    assert_int_equal(a->matrix_units_per_core, b->matrix_units_per_core);
    assert_int_equal(a->links_per_chip, b->links_per_chip);
    assert_int_equal(a->chips_per_host, b->chips_per_host);
    assert_int_equal(a->peer_chips, b->peer_chips);
    assert_true(a->fabric == b->fabric && a->wrap_rule == b->wrap_rule);
    assert_int_equal(a->torus_axes, b->torus_axes);
    assert_memory_equal(a->pod_shape, b->pod_shape, sizeof a->pod_shape);
    assert_int_equal(a->tree_levels, b->tree_levels);
    for (int i = 0; i < a->tree_levels; i++) assert_same_level(&a->tree[i], &b->tree[i]);
    assert_int_equal(a->prices, b->prices);
    for (int i = 0; i < a->prices; i++) assert_same_price(&a->price[i], &b->price[i]);
}

static void the_catalogue_round_trips(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        sm_arena *arena = sm_arena_new();
        char *text = sm_io_chip_format(sm_chip_at(i), arena);
        assert_non_null(text);
        parsed p = parse_good(text);
        assert_same_chip(p.chips, sm_chip_at(i));
        assert_string_equal(sm_io_chip_format(p.chips, arena), text);
        sm_arena_free(p.arena);
        sm_arena_free(arena);
    }
}

static void odd_texts_round_trip(void **state) {
    sm_chip chip = *sm_chip_find("h100", 4);
    chip.title = "a \"quoted\" back\\slash, tab\t, line\n, \x01, \xc3\xa9";
    chip.memory_bytes = (sm_fact){85899345920.123, "caf\xc3\xa9"};
    chip.clock_hz = (sm_fact){1.0 / 3.0 * 1e9, "a third"};
    sm_arena *arena = sm_arena_new();
    parsed p = parse_good(sm_io_chip_format(&chip, arena));
    assert_same_chip(p.chips, &chip);
    sm_arena_free(p.arena);
    sm_arena_free(arena);
}

/* ---- errors ---- */

#define H "{\"base\":\"h100\","
#define TREE H "\"tree\":[{\"name\":\"a\",\"degree\":2,\"child_bytes_per_s_oneway\":1e9"

static void errors_say_what_and_where(void **state) {
    static const struct {
        const char *text;
        int line, column, span;
        const char *sentence;
    } rows[] = {
        {"{\"base\":\"tpu-v5q\"}", 1, 9, 9, "unknown base \"tpu-v5q\"; the nearest is \"tpu-v5e\""},
        {H "\n \"memory_byte\": 1}", 2, 2, 13,
         "unknown key \"memory_byte\": the nearest is \"memory_bytes\""},
        {H "\"memory_bytes\":-1}", 1, 31, 2, "expected a number, not a negative one, found -1"},
        {H "\"memory_bytes\":\"80GB\"}", 1, 31, 6, "expected a number, found a text"},
        {H "\"memory_bytes\":null}", 1, 31, 4, "expected a number, found null"},
        {H "\"memory_bytes\":1e30}", 1, 31, 4, "expected a number from 1 to 1e+18, found 1e+30"},
        {H "\"tdp_w\":1e-300}", 1, 24, 6, "expected a number from 0.001 to 1e+06, found 1e-300"},
        {H "\"memory_bytes\":0}", 1, 1, 1, "a chip needs \"memory_bytes\""},
        {H "\"memory_bytes\":{\"value\":-1}}", 1, 40, 2,
         "expected a number, not a negative one, found -1"},
        {H "\"memory_bytes\":{\"source\":\"x\"}}", 1, 31, 1, "the key \"value\" is missing"},
        {H "\"memory_bytes\":{\"value\":1,\"sauce\":2}}", 1, 42, 7,
         "unknown key \"sauce\": the nearest is \"source\""},
        {H "\"memory_bytes\":{\"value\":1,\"source\":2}}", 1, 51, 1,
         "expected a text, found a number"},
        {H "\"flops_per_s\":{\"bf15\":1}}", 1, 31, 6,
         "unknown key \"bf15\": the nearest is \"bf16\""},
        {H "\"flops_per_s\":3}", 1, 30, 1,
         "expected an object of data types, as in {\"bf16\": 9e14}, found a number"},
        {H "\"constants_like\":\"h200 b2000\"}", 1, 33, 12,
         "no constants go by \"b2000\"; the nearest is \"b200\""},
        {H "\"constants_like\":\"mainframe\"}", 1, 33, 11,
         "no constants go by \"mainframe\": expected a chip of the catalogue or a calibration"},
        {H "\"link_bytes_per_s_oneway\":1e11}", 1, 16, 25,
         "\"link_bytes_per_s_oneway\" has no effect with \"fabric\": \"switch\": the link of a "
         "chip at a switch stands in \"tree\""},
        {H "\"hop_latency_s\":1e-6}", 1, 16, 15,
         "\"hop_latency_s\" has no effect with \"fabric\": \"switch\": a level of \"tree\" has its "
         "own"},
        {H "\"fabric\":\"none\",\n\"links_per_chip\":4}", 2, 1, 16,
         "\"links_per_chip\" has no effect with \"fabric\": \"none\": it counts the links of a "
         "torus"},
        {"{\"base\":\"v5p\",\"tree\":[]}", 1, 15, 6,
         "\"tree\" has no effect with \"fabric\": \"torus\": it is of a switch fabric"},
        {H "\"wrap_rule\":\"never\"}", 1, 16, 11,
         "\"wrap_rule\" has no effect with \"fabric\": \"switch\": it is of a torus"},
        {H "\"cores\":0}", 1, 24, 1, "expected a whole number from 1 to 1048576"},
        {H "\"cores\":1.5}", 1, 24, 3, "expected a whole number from 1 to 1048576"},
        {H "\"cores\":99999999}", 1, 24, 8, "expected a whole number from 1 to 1048576"},
        {H "\"tile\":[1,2]}", 1, 23, 5, "expected 3 whole numbers, found 2"},
        {H "\"tile\":[1,2,true]}", 1, 28, 4, "expected a whole number from 1 to 1048576"},
        {H "\"pod_shape\":[1]}", 1, 28, 3, "expected 2 to 3 whole numbers, found 1"},
        {H "\"fabric\":\"ring\"}", 1, 25, 6,
         "unknown fabric \"ring\": expected one of torus, switch, none"},
        {H "\"fabric\":\"qqq\"}", 1, 25, 5,
         "unknown fabric \"qqq\": expected one of torus, switch, none"},
        {H "\"wrap_rule\":\"axis_16\"}", 1, 28, 9,
         "unknown wrap_rule \"axis_16\": the nearest is \"axis-16\""},
        {H "\"fabric\":\"torus\"}", 1, 1, 1, "a torus needs \"pod_shape\", as in [16, 16]"},
        {"{\"base\":\"v5p\",\"pod_shape\":[16,1048576,4]}", 1, 27, 14,
         "a pod has at most 1048576 chips"},
        {"{\"base\":\"v5p\",\"link_bytes_per_s_oneway\":0}", 1, 1, 1,
         "a torus needs \"link_bytes_per_s_oneway\""},
        {H "\"tree\":[]}", 1, 1, 1, "a switch fabric needs a \"tree\" of at least one level"},
        {H "\"tree\":[{\"degree\":2}]}", 1, 24, 1, "a level of the tree needs a \"name\""},
        {H "\"tree\":[{\"name\":\"a\"}]}", 1, 24, 1, "a level of the tree needs a \"degree\""},
        {H "\"tree\":[{\"name\":\"a\",\"degree\":2}]}", 1, 24, 1,
         "a level of the tree needs \"child_bytes_per_s_oneway\""},
        {H "\"tree\":[{\"name\":\"a b\"}]}", 1, 32, 5,
         "the name of a level has at most 15 letters, digits, \".\", \"_\", \"-\""},
        {TREE ",\"in_network_reduction\":1}]}", 1, 101, 1,
         "expected true or false, found a number"},
        {H "\"tree\":[1,2,3,4,5,6]}", 1, 23, 13, "a tree has at most 5 levels, found 6"},
        {H "\"prices\":[{}]}", 1, 26, 1, "a price needs \"usd_per_chip_hour\""},
        {H "\"prices\":[{\"usd\":1}]}", 1, 27, 5,
         "unknown key \"usd\": the nearest is \"usd_per_chip_hour\""},
        {H "\"name\":\"a:b\"}", 1, 23, 5,
         "the name of a chip has at most 40 letters, digits, \".\", \"_\" and \"-\", and begins "
         "with a letter or digit"},
        {H "\"name\":\"\"}", 1, 23, 2,
         "the name of a chip has at most 40 letters, digits, \".\", \"_\" and \"-\", and begins "
         "with a letter or digit"},
        {"{\"cores\":1}", 1, 1, 1, "a chip needs a \"name\""},
        {"{\"name\":\"x\"}", 1, 1, 1, "a chip needs a peak in \"flops_per_s\""},
        {"{\"chips\":[]}", 1, 10, 2, "expected 1 to 256 chips, found 0"},
        {"{\"chips\":{}}", 1, 10, 1, "expected a list of chips, found an object"},
        {"{\"chips\":[3]}", 1, 11, 1,
         "expected a chip, as in {\"name\": \"mine\", ...}, found a number"},
        {"{\"chips\":[{\"base\":\"h100\"}],\"more\":1}", 1, 28, 6,
         "unknown key \"more\": expected one of chips, command"},
        {"{\"chips\":[{\"base\":\"h100\"},{\"base\":\"h200\",\"name\":\"h100-sxm\"}]}", 1, 49, 10,
         "a second chip is named \"h100-sxm\""},
        {"[]", 1, 1, 2, "expected a chip {...} or a list of them {\"chips\": [...]}, found a list"},
        {H "\"memory_bytes\":1e400}", 1, 31, 5, "this number is too large"},
        {H "\"cores\":99999999999999999999}", 1, 24, 20, "this number is too large"},
        {H "\"memory_bytes\":NaN}", 1, 31, 3, "this is not valid JSON: invalid token near 'NaN'"},
        {H "\"base\":\"h200\"}", 1, 16, 6, "this key is given twice"},
        {H "\"title\":\"\\u0000\"}", 1, 24, 8, "a text may not hold the character \\u0000"},
        {"{}x", 1, 3, 1, "this is not valid JSON: end of file expected near 'x'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        parsed p = parse(rows[i].text);
        if (p.status != SM_BAD_INPUT) fail_msg("%s: status %d", rows[i].text, (int)p.status);
        assert_string_equal(p.err.sentence, rows[i].sentence);
        assert_string_equal(p.err.source, "sys.json");
        if (p.err.line != rows[i].line || p.err.column != rows[i].column ||
            p.err.span != rows[i].span)
            fail_msg("%s: %d:%d span %d", rows[i].text, p.err.line, p.err.column, p.err.span);
        sm_arena_free(p.arena);
    }
}

/* ---- hostile files ---- */

static void every_truncation_is_refused(void **state) {
    size_t last = strlen(whole) - 2; /* the closing brace */
    for (size_t n = 0; n <= last; n++) {
        char *copy = malloc(n + 1); /* exactly as long, so that a read past it is seen */
        memcpy(copy, whole, n);
        parsed p = parse_bytes(copy, n);
        assert_int_equal(p.status, SM_BAD_INPUT);
        sm_arena_free(p.arena);
        free(copy);
    }
}

static void random_changes_never_crash(void **state) {
    static const char bytes[] = "{}[]\",:0123456789eE.-+ntfx\\\n\x80\x00";
    sm_rng rng = {11};
    int accepted = 0;
    for (int i = 0; i < 3000; i++) {
        char copy[sizeof whole];
        memcpy(copy, whole, sizeof whole);
        for (uint64_t k = 1 + sm_rng_below(&rng, 3); k > 0; k--)
            copy[sm_rng_below(&rng, sizeof whole - 1)] = bytes[sm_rng_below(&rng, sizeof bytes)];
        parsed p = parse_bytes(copy, sizeof whole - 1);
        accepted += p.status == SM_OK;
        if (p.status == SM_OK) assert_non_null(sm_io_chip_format(p.chips, p.arena));
        else assert_true(p.err.line >= 1 && p.err.sentence[0]);
        sm_arena_free(p.arena);
    }
    assert_in_range(accepted, 1, 2900);
}

static void deep_and_long_files_are_refused(void **state) {
    enum { LONG = (16 << 20) + 2 };
    char *text = malloc(LONG);
    memset(text, '[', LONG);
    parsed p = parse_bytes(text, 1 << 20);
    assert_int_equal(p.status, SM_BAD_INPUT);
    assert_non_null(strstr(p.err.sentence, "lists and objects are nested too deep"));
    sm_arena_free(p.arena);
    p = parse_bytes(text, LONG);
    assert_string_equal(p.err.sentence,
                        "the document has 16777218 bytes; at most 16777216 are read");
    sm_arena_free(p.arena);
    memset(text, 'a', LONG);
    memcpy(text, "{\"name\":\"", 9);
    memcpy(text + (1 << 20) - 2, "\"}", 2);
    p = parse_bytes(text, 1 << 20);
    assert_int_equal(p.status, SM_BAD_INPUT);
    sm_arena_free(p.arena);
    free(text);
}

static void every_allocation_may_fail(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_source source = sm_source_of("sys.json", whole);
        sm_chip *chips = NULL;
        size_t n = 0;
        sm_error err = {0};
        sm_status status = sm_io_chips_parse(&source, arena, &chips, &n, &err);
        if (status == SM_OK && !sm_io_chip_format(chips, arena)) status = SM_INTERNAL;
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        else assert_true(status == SM_INTERNAL || status == SM_OK);
        sm_arena_free(arena);
    }
}

/* ---- the manuals (the suite runs in the root of the repository) ---- */

static sm_source manual(const char *path, sm_arena *arena) {
    sm_source source = {"", "", 0};
    sm_error err = {0};
    if (sm_io_read(path, arena, &source, &err) != SM_OK) fail_msg("%s", err.sentence);
    return source;
}

static void the_manual_of_system_files_is_right(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_source page = manual("docs/system-file.md", arena);
    const char *start = strstr(page.text, "```json\n");
    assert_non_null(start);
    const char *end = strstr(start + 8, "```");
    parsed p = parse_bytes(start + 8, (size_t)(end - start - 8));
    if (p.status != SM_OK) fail_msg("%s", p.err.sentence);
    static const char *const asked[] = {"h100-lab:16x8", "toy:4x4x8"};
    for (size_t i = 0; i < 2; i++) {
        sm_source text = sm_source_of("--on", asked[i]);
        sm_system system;
        assert_non_null(strstr(page.text, asked[i]));
        assert_int_equal(sm_system_parse(&text, p.chips, p.n, &system, NULL), SM_OK);
    }
    static const char *const keys[] = {
#define X(key, ...) "`" #key "`",
        SM_CHIP_TEXTS(X) SM_CHIP_OTHERS(X) SM_CHIP_FACTS(X) SM_CHIP_COUNTS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!strstr(page.text, keys[i])) fail_msg("the manual lacks %s", keys[i]);
    sm_arena_free(p.arena);
    sm_arena_free(arena);
}

/* What is compiled in is what data/chips/NAME.json says. */
static void the_catalogue_is_its_files(void **state) {
    for (size_t i = 0; i < sm_chip_count(); i++) {
        sm_arena *arena = sm_arena_new();
        sm_source file =
            manual(sm_arena_printf(arena, "data/chips/%s.json", sm_chip_at(i)->name), arena);
        parsed p = parse_bytes(file.text, file.length);
        if (p.status != SM_OK) fail_msg("%s", p.err.sentence);
        assert_int_equal(p.n, 1);
        assert_same_chip(p.chips, sm_chip_at(i));
        sm_arena_free(p.arena);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_key),
        cmocka_unit_test(a_base_keeps_what_is_not_given),
        cmocka_unit_test(a_base_may_stand_above),
        cmocka_unit_test(systems_are_built_of_the_files_chips),
        cmocka_unit_test(the_catalogue_round_trips),
        cmocka_unit_test(the_catalogue_is_its_files),
        cmocka_unit_test(odd_texts_round_trip),
        cmocka_unit_test(errors_say_what_and_where),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(random_changes_never_crash),
        cmocka_unit_test(deep_and_long_files_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_manual_of_system_files_is_right),
    };
    return cmocka_run_group_tests_name("chip_file", tests, NULL, NULL);
}
