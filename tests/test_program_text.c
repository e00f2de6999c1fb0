/* A model printed as a program is that model: the text reads back, without any config, to the same
 * counts and the same lines. */
#include "unit.h"
#include "catalogue.h"
#include "failing_alloc.h"
#include "scalemodel/architecture.h"
#include "scalemodel/model.h"
#include <stdio.h>
#include <string.h>

static void show(const char *what, const sm_error *err) {
    char words[1200];
    sm_error_format(err, words, sizeof words);
    fail_msg("%s: %s", what, words);
}

static const sm_architecture *read_back(const char *name, const char *text, sm_arena *arena) {
    sm_library *library;
    sm_error err = {0};
    const sm_architecture *a = NULL;
    const sm_source printed = sm_source_of(name, text), nothing = sm_source_of("config", "{}");
    sm_status status = sm_library_new(arena, NULL, &library, &err);
    if (!status) status = sm_library_read(library, &printed, &err);
    if (!status) status = sm_library_check(library, &err);
    if (!status) status = sm_architecture_new(library, &nothing, name, arena, &a, &err);
    if (status) show(name, &err);
    return a;
}

static const sm_text_lines *lines_of(const sm_architecture *a, int kind,
                                     const sm_program_style *style, sm_arena *arena) {
    const sm_text_lines_of of = {kind, style->phase, style->absorbed, style->T, style->S, false};
    const sm_text_lines *lines = NULL;
    sm_error err = {0};
    if (sm_architecture_lines(a, &of, arena, &lines, &err)) show(style->name, &err);
    return lines;
}

static void assert_same_lines(const sm_text_lines *a, const sm_text_lines *b) {
    assert_int_equal(a->lines, b->lines);
    assert_int_equal(a->kernels, b->kernels);
    for (int i = 0; i < a->lines; i++) {
        const sm_text_line *x = &a->line[i], *y = &b->line[i];
        assert_int_equal(x->op, y->op);
        assert_int_equal(x->operands, y->operands);
        assert_true(x->flops == y->flops && x->matrix_flops == y->matrix_flops);
        assert_true(x->keys == y->keys && x->window == y->window);
        for (int j = 0; j < x->operands; j++) {
            const sm_text_array *of = &a->array[x->operand[j].array];
            const sm_text_array *to = &b->array[y->operand[j].array];
            assert_int_equal(of->role, to->role);
            assert_true(of->elements == to->elements);
        }
    }
}

static void assert_reads_back(const char *name, const sm_architecture *a,
                              const sm_program_style *style, sm_arena *arena) {
    const char *text;
    sm_error err = {0};
    if (sm_architecture_format(a, style, arena, &text, &err)) show(name, &err);
    const sm_architecture *b = read_back(style->name, text, arena);
    const sm_counts *x = sm_architecture_counts(a), *y = sm_architecture_counts(b);
    if (x->total != y->total) fail_msg("%s: %.0f read back as %.0f", name, x->total, y->total);
    assert_true(x->active == y->active && x->apart == y->apart);
    assert_int_equal(sm_architecture_kinds(a), sm_architecture_kinds(b));
    for (int k = 0; k < sm_architecture_kinds(a); k++)
        assert_same_lines(lines_of(a, k, style, arena), lines_of(b, k, style, arena));
}

static void the_catalogue_reads_back(void **state) {
    sm_error err = {0};
    FOR_CATALOGUE(i) {
        const sm_catalogue_entry *entry = sm_catalogue_at(i);
        const sm_source config = sm_source_of(entry->name, entry->config_json);
        sm_arena *arena = sm_arena_new();
        const sm_architecture *a;
        if (sm_architecture_new(sm_library_shipped(), &config, NULL, arena, &a, &err))
            show(entry->name, &err);
        const sm_program_style train = {.name = "odd name", .T = 4096, .S = 4096};
        const sm_program_style decode = {
            .name = "it", .phase = SM_TEXT_DECODE, .absorbed = true, .T = 1, .S = 10000};
        assert_reads_back(entry->name, a, &train, arena);
        assert_reads_back(entry->name, a, &decode, arena);
        sm_arena_free(arena);
    }
}

/* A model reads of what is shipped what it needs; the same comes of all of it. */
static void parts_are_as_the_whole(void **state) {
    sm_arena *all = sm_arena_new();
    sm_library *own;
    sm_error err = {0};
    const sm_program_style style = {.name = "it", .T = 4096, .S = 4096};
    assert_int_equal(sm_library_new(all, sm_library_shipped(), &own, &err), SM_OK);
    FOR_CATALOGUE(i) {
        const sm_catalogue_entry *entry = sm_catalogue_at(i);
        const sm_source config = sm_source_of(entry->name, entry->config_json);
        const sm_library *const by[] = {own, sm_library_shipped()};
        sm_arena *arena = sm_arena_new();
        const char *text[2];
        for (int k = 0; k < 2; k++) {
            const sm_architecture *a;
            sm_status status = sm_architecture_new(by[k], &config, NULL, arena, &a, &err);
            if (!status) status = sm_architecture_format(a, &style, arena, &text[k], &err);
            if (status) show(entry->name, &err);
        }
        assert_string_equal(text[0], text[1]);
        sm_arena_free(arena);
    }
    sm_arena_free(all);
}

/* ---- what is printed ---- */

static const char TEXTS[] =
    "roles sequences B; positions T Zc; keys S; model D; heads K; width F\n"
    "text take_in(ids) -> x: x[B,T,D] = take(w[V,D], ids)\n"
    "text half(x[B,T,D]) -> x: h = rmsnorm(x, n[D]); y = part(h); x = x + y * 2\n"
    "text mlp(h[B,T,D]; act=silu) -> y\n"
    "  u[B,T,F] = h[B,T,D] w[D,F]; m = act(u) / (u - (1 - u)); y[B,T,D] = m[B,T,F] wd[F,D]\n"
    "text mix(h[B,T,D]; W=none) -> a\n"
    "  q[B,T,K] = h[B,T,D] wq[D,K]; k[B,S,K] = cache(q)\n"
    "  o[B,T,K] = attention(q[B,T,K] k[B,S,K], k) causal window W; s = scan(o, q)\n"
    "  a[B,T,D] = s[B,T,K] wo[K,D]\n"
    "kernel scan(x[B,T,K], y[B,T,K]) -> z\n"
    "  s[B,T,K]:fp32 = state() along T; e = s * -x; s = carry(e, y); z[B,T,K] = x[B,T,K] s[B,T,K]\n"
    "text put_out(x[B,T,D]): l[B,T,V]:fp32 = x[B,T,D] take_in.w[V,D]; y[B,T] = cross_entropy(l)\n"
    "family toy dims D = width; V = 100; F = 2 * D; K = 4\n"
    "model piece take_in layers layer 5 = half: part = mix if i % 2 == 1 else mlp\n"
    "W = 7 if i > 3 else none; act = relu piece put_out\n";

static const char PRINTED[] = "roles sequences B; positions T; keys S; model D; heads K; width F\n"
                              "\n"
                              "text take_in(ids) -> x\n"
                              "  x[B,T,D] = take(w[V,D], ids)              # kind 0 of 1 lines\n"
                              "\n"
                              "text layer(x[B,T,D]) -> x\n"
                              "  h = rmsnorm(x, n[D])                      # kind 1 of 5 lines\n"
                              "  u[B,T,F] = h[B,T,D] w[D,F]\n"
                              "  m = relu(u) / (u - (1 - u))\n"
                              "  y[B,T,D] = m[B,T,F] wd[F,D]\n"
                              "  x = x + y * 2\n"
                              "\n"
                              "kernel scan(o[B,T,K], q[B,T,K]) -> z\n"
                              "  s[B,T,K]:fp32 = state() along T\n"
                              "  e = s * -o\n"
                              "  s[B,T,K]:fp32 = carry(e, q)\n"
                              "  z[B,T,K] = o[B,T,K] s[B,T,K]\n"
                              "\n"
                              "text layer_2(x[B,T,D]) -> x\n"
                              "  h = rmsnorm(x, n[D])                      # kind 2 of 10 lines\n"
                              "  q[B,T,K] = h[B,T,D] wq[D,K]\n"
                              "  k[B,S,K] = cache(q)\n"
                              "  o[B,T,K] = attention(q[B,T,K] k[B,S,K], k[B,S,K]) causal\n"
                              "  z = scan(o, q)\n"
                              "  a[B,T,D] = z[B,T,K] wo[K,D]\n"
                              "  x = x + a * 2\n"
                              "\n"
                              "text layer_3(x[B,T,D]) -> x\n"
                              "  h = rmsnorm(x, n[D])                      # kind 3 of 5 lines\n"
                              "  u[B,T,F] = h[B,T,D] w[D,F]\n"
                              "  m = relu(u) / (u - (1 - u))\n"
                              "  y[B,T,D] = m[B,T,F] wd[F,D]\n"
                              "  x = x + y * 2\n"
                              "\n"
                              "text put_out(x[B,T,D])\n"
                              "  l[B,T,V]:fp32 = x[B,T,D] take_in.w[V,D]   # kind 4 of 2 lines\n"
                              "  y[B,T] = cross_entropy(l)\n"
                              "\n"
                              "family \"toy\"\n"
                              "fields kinds_1 = \"ababc\"\n"
                              "dims   V = 100; D = 8; F = 16; K = 4\n"
                              "model\n"
                              "piece  take_in\n"
                              "layers layer 5 = layer_2 if kinds_1[i] == \"b\" else layer_3 if "
                              "kinds_1[i] == \"c\" else layer\n"
                              "piece  put_out\n";

static const char *first_words(void *with, int kind, const sm_text_lines *lines, int line,
                               bool inside, sm_arena *arena) {
    (void)with;
    (void)inside;
    return line ? "" : sm_arena_printf(arena, "kind %d of %d lines", kind, lines->lines);
}

static void a_toy_is_printed(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_library *library;
    sm_error err = {0};
    const sm_architecture *a;
    const char *text;
    const sm_source texts = sm_source_of("texts", TEXTS);
    const sm_source config = sm_source_of("config", "{\"width\": 8, \"model_type\": \"toy\"}");
    const sm_program_style style = {.name = "toy", .T = 16, .S = 16, .comment = first_words};
    sm_status status = sm_library_new(arena, NULL, &library, &err);
    if (!status) status = sm_library_read(library, &texts, &err);
    if (!status) status = sm_library_check(library, &err);
    if (!status) status = sm_architecture_new(library, &config, NULL, arena, &a, &err);
    if (!status) status = sm_architecture_format(a, &style, arena, &text, &err);
    if (status) show("toy", &err);
    assert_string_equal(text, PRINTED);
    assert_reads_back("toy", a, &style, arena);
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *scratch = sm_arena_new();
        status = sm_architecture_format(a, &style, scratch, &text, &err);
        if (status) assert_string_equal(err.sentence, "out of memory");
        else assert_string_equal(text, PRINTED);
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        sm_arena_free(scratch);
    }
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_catalogue_reads_back),
        cmocka_unit_test(parts_are_as_the_whole),
        cmocka_unit_test(a_toy_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
