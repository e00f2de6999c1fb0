/* Texts and families as text: what they mean as trees, that they read back, what bad ones are told,
 * and that no text, however broken, does more than that. */
#include "unit.h"
#include "failing_alloc.h"
#include "library_format.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything that the language has, once. */
static const char EVERYTHING[] =
    "# roles, sizes\n"
    "inert \"_*\" architectures \" r\" \"\"\n"
    "matters hidden layers_ \"mat ters\"\n"
    "roles sequences B; positions T Zc; keys S; model D; heads K; group G; width F\n"
    "  experts E; slots C; vocabulary V; whole Hw\n"
    "sizes Er = E; C = ceil(B * T * A / E)\n"
    "  Tp = max(1, min(T, 7)) - 2 * (T + 1) % 3\n"
    "text embedding(ids) -> x: x[B,T,D] = take(w[V,D], ids)\n"
    "text gqa(h[B,T,D]; act=silu, gated=false,\n"
    "         W=none, scale = 1 / 2) -> a, b\n"
    "  q[B,T,K,G,H] = h[B,T,D] wq[D_fsdp,K_{tensor,data},G_tensor/2,H]; k[B,T,K,H] = h[B,T,D] "
    "wk[D,K,H]\n"
    "\n"
    "  kc[B,S,K,H]:fp8, vc[B,S,K,H] = cache(k, k) own if train or serve and not (gated == W)\n"
    "  o[B,T,K,G,H] = attention(q[B,T,K,G,H] kc[B,S,K,H] + q[B,T,H] kc[B,S,H], vc) causal window W "
    "sinks s[K,G]\n"
    "  o = -o * (act(o) - 0.5) / (o - (o - 2)) - o softcap 50 if decode\n"
    "  o = o * scale + 1e-05 if not decode\n"
    "  a[B,T,D] = o[B,T,K,G,H] wo[K,G,H,D] shared 2\n"
    "  b = part(a, embedding.w[V,D])\n"
    "kernel scan(x[B,T,D]) -> y\n"
    "  s[B,D]:fp32 = state() along Zc; y = carry(s, x)\n"
    "family llama mistral \"odd-name\"\n"
    "fields head_dim = none; heads = attention.heads or 8\n"
    "  kinds[i] = \"full\" if i % 6 == 5 else \"window\"\n"
    "dims D = hidden_size; K = heads; H = roundup(D / K, 8)\n"
    "  G = blocks[i + 1].attention.groups[0] if i in list and i <= 3 else length(kinds) - "
    "count(kinds, \"full\")\n"
    "model\n"
    "stack tower dims D = vision.hidden_size; T = 7\n"
    "piece embedding\n"
    "layers layer num_hidden_layers - 1 = gqa:\n"
    "  part = (scan if kinds[i] != \"full\" else gqa) if not heads >= 2 else scan\n"
    "  gated = true; gqa.W = none; name = \"last\"\n"
    "all mistral2 all mistral2 in text_config all in inner.config\n"
    "stack end: T = 8; gated = true\n"
    "dims G = 2\n"
    "inert rope_theta \"odd key\"\n"
    "  rms_norm_eps\n"
    "family mistral2 like llama\n"
    "model piece head = embedding layers layer: gated = false\n";

/* ---- reading ---- */

static sm_status read_into(sm_library *library, const char *name, const char *text, sm_error *err) {
    sm_source source = sm_source_of(name, text);
    return sm_library_read(library, &source, err);
}

static const sm_library *library_of(sm_arena *arena, const char *text) {
    sm_library *library;
    sm_error err = {0};
    char words[1200];
    assert_int_equal(sm_library_new(arena, NULL, &library, &err), SM_OK);
    if (read_into(library, "text", text, &err)) {
        sm_error_format(&err, words, sizeof words);
        fail_msg("%s", words);
    }
    return library;
}

/* ---- two libraries that say the same ---- */

static bool same_name(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool same_list(const tree *const *a, int n, const tree *const *b, int m) {
    for (int i = 0; i < n && n == m; i++)
        if (!tree_same(a[i], b[i])) return false;
    return n == m;
}

static bool same_sets(const tree_set *a, const tree_set *b) {
    for (; a && b; a = a->next, b = b->next)
        if (strcmp(a->name, b->name) != 0 || a->by_layer != b->by_layer ||
            !tree_same(a->value, b->value))
            return false;
    return !a && !b;
}

static bool same_attributes(const tree_attribute *a, const tree_attribute *b) {
    for (; a && b; a = a->next, b = b->next)
        if (a->kind != b->kind || !tree_same(a->value, b->value)) return false;
    return !a && !b;
}

static bool same_text(const tree_text *a, const tree_text *b) {
    const tree_line *x = a->line, *y = b->line;
    if (strcmp(a->name, b->name) != 0 || a->kernel != b->kernel ||
        !same_list(a->parameter, a->parameters, b->parameter, b->parameters) ||
        !same_list(a->result, a->results, b->result, b->results) ||
        !same_sets(a->option, b->option))
        return false;
    for (; x && y; x = x->next, y = y->next)
        if (!same_list(x->target, x->targets, y->target, y->targets) ||
            !tree_same(x->value, y->value) || !tree_same(x->condition, y->condition) ||
            !same_attributes(x->attribute, y->attribute))
            return false;
    return !x && !y;
}

static bool same_words(const tree_word *a, const tree_word *b) {
    for (; a && b; a = a->next, b = b->next)
        if (strcmp(a->name, b->name) != 0) return false;
    return !a && !b;
}

static bool same_family(const tree_family *a, const tree_family *b) {
    const tree_piece *x = a->piece, *y = b->piece;
    if (!same_list(a->name, a->names, b->name, b->names) || !tree_same(a->like, b->like) ||
        !same_sets(a->field, b->field) || !same_sets(a->dim, b->dim) ||
        a->new_model != b->new_model || !same_words(a->inert, b->inert))
        return false;
    for (; x && y; x = x->next, y = y->next)
        if (x->kind != y->kind || !same_name(x->name, y->name) || !tree_same(x->count, y->count) ||
            !tree_same(x->text, y->text) || !same_sets(x->set, y->set))
            return false;
    return !x && !y;
}

static bool same_library(const sm_library *a, const sm_library *b) {
    const tree_text *text_a = a->text, *text_b = b->text;
    const tree_family *family_a = a->family, *family_b = b->family;
    const tree_role *role_a = a->role, *role_b = b->role;
    for (; role_a && role_b; role_a = role_a->next, role_b = role_b->next)
        if (strcmp(role_a->dim, role_b->dim) != 0 || role_a->role != role_b->role) return false;
    for (; text_a && text_b; text_a = text_a->next, text_b = text_b->next)
        if (!same_text(text_a, text_b)) return false;
    for (; family_a && family_b; family_a = family_a->next, family_b = family_b->next)
        if (!same_family(family_a, family_b)) return false;
    return !role_a && !role_b && !text_a && !text_b && !family_a && !family_b &&
           same_sets(a->size.first, b->size.first) && same_words(a->inert, b->inert) &&
           same_words(a->matters, b->matters);
}

static size_t same_letters(const char *a, const char *b) {
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

static void assert_reads_back(sm_arena *arena, const sm_library *library) {
    const char *once = library_format(library, arena);
    assert_non_null(once);
    const sm_library *again = library_of(arena, once);
    if (!same_library(library, again)) fail_msg("reads back as something else:\n%s", once);
    const char *twice = library_format(again, arena);
    size_t n = same_letters(once, twice);
    if (once[n] || twice[n])
        fail_msg("prints otherwise from here: %.200s\nand %.200s", once + n, twice + n);
}

/* ---- what is read ---- */

static void everything_reads_back(void **state) {
    sm_arena *arena = sm_arena_new();
    assert_reads_back(arena, library_of(arena, EVERYTHING));
    assert_reads_back(arena, library_of(arena, ""));
    assert_reads_back(arena, library_of(arena, "roles heads K"));
    assert_reads_back(arena, library_of(arena, " ;;\n# nothing\n;"));
    sm_arena_free(arena);
}

static void lines_are_trees(void **state) {
    sm_arena *arena = sm_arena_new();
    const sm_library *library = library_of(arena, EVERYTHING);
    const tree_text *gqa = tree_find_text(library, "gqa");
    assert_int_equal(gqa->parameters, 1);
    assert_int_equal(gqa->results, 2);
    assert_string_equal(tree_find_set(gqa->option, "W")->value->name, "none");
    const tree_line *line = gqa->line;
    assert_int_equal(line->value->kind, TREE_PRODUCT);
    assert_string_equal(line->value->child[1]->dim[1].axes, "{tensor,data}");
    assert_string_equal(line->value->child[1]->dim[2].axes, "tensor/2");
    line = line->next->next; /* the caches */
    assert_int_equal(line->targets, 2);
    assert_true(line->target[0]->typed && line->target[0]->type == SM_FP8);
    assert_int_equal(line->attribute->kind, TREE_ATTRIBUTE_OWN);
    assert_int_equal(line->condition->kind, TREE_OR); /* lower than and */
    line = line->next;
    assert_int_equal(line->value->child[0]->kind, TREE_ADD); /* scores of two products */
    assert_non_null(tree_find_attribute(line->attribute, TREE_ATTRIBUTE_CAUSAL));
    assert_string_equal(tree_find_attribute(line->attribute, TREE_ATTRIBUTE_WINDOW)->value->name,
                        "W");
    line = line->next;
    assert_int_equal(line->value->kind, TREE_SUBTRACT); /* to the left */
    assert_int_equal(line->value->child[0]->kind, TREE_DIVIDE);
    assert_true(tree_find_text(library, "scan")->kernel);
    sm_arena_free(arena);
}

static void families_are_trees(void **state) {
    sm_arena *arena = sm_arena_new();
    const sm_library *library = library_of(arena, EVERYTHING);
    const tree_family *llama = tree_find_family(library, "odd-name");
    assert_ptr_equal(llama, tree_find_family(library, "mistral"));
    assert_true(tree_find_set(llama->field, "kinds")->by_layer);
    assert_int_equal(tree_find_set(llama->field, "kinds")->value->kind, TREE_CHOICE);
    assert_int_equal(llama->piece->kind, TREE_STACK);
    assert_string_equal(llama->piece->set->next->name, "T"); /* dims of the stack */
    const tree_piece *layers = llama->piece->next->next;
    assert_int_equal(layers->kind, TREE_LAYERS);
    assert_int_equal(layers->count->kind, TREE_SUBTRACT);
    assert_string_equal(layers->text->name, "gqa");
    assert_string_equal(layers->set->next->next->name, "gqa.W");
    assert_string_equal(llama->inert->next->name, "odd key");
    const tree *group = tree_find_set(llama->dim, "G")->value->child[0];
    assert_int_equal(group->kind, TREE_ELEMENT); /* blocks[i + 1].attention.groups[0] */
    assert_string_equal(group->child[0]->name, "attention.groups");
    assert_int_equal(group->child[0]->child[0]->kind, TREE_ELEMENT);
    assert_true(tree_find_family(library, "mistral2")->new_model);
    assert_int_equal(tree_role_of(library, "Zc"), SM_DIMENSION_POSITIONS);
    assert_int_equal(tree_role_of(library, "Unheard"), SM_DIMENSION_WHOLE);
    sm_arena_free(arena);
}

/* ---- a user's library over another ---- */

static void what_stands_above_wins(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_error err = {0};
    sm_library *user;
    const sm_library *below =
        library_of(arena, "roles heads K; width F\n"
                          "text mlp(x) -> y: y = x\nfamily llama model piece mlp\n");
    assert_int_equal(sm_library_new(arena, below, &user, &err), SM_OK);
    assert_int_equal(read_into(user, "mine",
                               "roles group K\ntext mlp(x) -> y: y = relu(x)\n"
                               "family llama like llama piece mlp\n"
                               "family own like llama",
                               &err),
                     SM_OK);
    assert_int_equal(sm_library_check(user, &err), SM_OK);
    assert_int_equal(tree_role_of(user, "K"), SM_DIMENSION_GROUP);
    assert_int_equal(tree_role_of(user, "F"), SM_DIMENSION_WIDTH);
    assert_int_equal(tree_find_text(user, "mlp")->line->value->kind, TREE_CALL);
    const tree_family *llama = tree_find_family(user, "llama");
    assert_string_equal(llama->source->name, "mine");
    assert_ptr_equal(tree_other_family(user, "llama", llama), tree_find_family(below, "llama"));
    const char *const *name;
    size_t n;
    assert_int_equal(sm_library_families(user, arena, &name, &n, &err), SM_OK);
    assert_int_equal(n, 2);
    assert_string_equal(name[1], "own");
    sm_arena_free(arena);
}

/* ---- broken texts ---- */

/* It is read, and then reads back, or it is refused with a place within the text. */
static void assert_holds(const char *text) {
    sm_arena *arena = sm_arena_new();
    sm_library *library;
    sm_error err = {0};
    assert_int_equal(sm_library_new(arena, NULL, &library, &err), SM_OK);
    sm_status status = read_into(library, "f", text, &err);
    if (status == SM_OK) {
        assert_reads_back(arena, library);
        status = sm_library_check(library, &err);
    }
    if (status != SM_OK) {
        int lines = 1;
        for (const char *c = text; *c; c++) lines += *c == '\n';
        assert_int_equal(status, SM_BAD_INPUT);
        assert_true(err.line >= 1 && err.line <= lines && err.column >= 1 && err.span >= 1);
        assert_true(err.sentence[0] != 0);
    }
    sm_arena_free(arena);
}

enum { MOST_TOKENS = 1000 };

static int tokens_of(const char *text, sm_span *span) {
    const sm_source source = sm_source_of("", text);
    lexer l = {.source = &source, .end = source.length};
    token t = {0};
    int n = 0;
    do {
        assert_int_equal(lexer_next(&l, &t, NULL), SM_OK);
        assert_true(n < MOST_TOKENS);
        span[n++] = t.span;
    } while (t.kind != TOKEN_END);
    return n - 1;
}

static void every_token_may_be_missing_or_another(void **state) {
    static const char *const others[] = {"",    "x",    "K",  "3",    "\"w\"", "x[", "x(", ")",
                                         "]",   ",",    ":",  "=",    "==",    "->", ";",  "if",
                                         "not", "text", "in", "dims", "-",     "[",  "(",  "piece"};
    static sm_span span[MOST_TOKENS];
    int n = tokens_of(EVERYTHING, span);
    assert_true(n > 400);
    for (int i = 0; i < n; i++)
        for (size_t k = (size_t)i % 5; k < sizeof others / sizeof others[0]; k += 5) {
            char text[sizeof EVERYTHING + 16];
            snprintf(text, sizeof text, "%.*s %s %s", (int)span[i].offset, EVERYTHING, others[k],
                     EVERYTHING + span[i].offset + span[i].length);
            assert_holds(text);
        }
}

static void every_byte_may_be_another(void **state) {
    static const char bytes[] = "\"#[(.{_\n\x80\x01";
    for (size_t i = 0; i + 1 < sizeof EVERYTHING; i++)
        for (size_t k = i % 7; k + 1 < sizeof bytes; k += 7) {
            char text[sizeof EVERYTHING];
            memcpy(text, EVERYTHING, sizeof text);
            text[i] = bytes[k];
            assert_holds(text);
        }
}

/* ---- random texts ---- */

typedef struct writer {
    sm_rng rng;
    char text[1 << 14];
    size_t n;
} writer;

static int pick(writer *w, int n) { return (int)sm_rng_below(&w->rng, (uint64_t)n); }

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
    va_end(args);
    w->n += (size_t)n;
    assert_true(w->n < sizeof w->text);
}

static const char *one_of(writer *w, const char *const *words, int n) { return words[pick(w, n)]; }

static const char *name(writer *w) {
    static const char *const names[] = {"x", "q_proj", "h2", "a.b", "layer_types", "n1", "_y"};
    return one_of(w, names, 7);
}
static const char *dim(writer *w) {
    static const char *const dims[] = {"B", "T", "K", "Hd", "Zc", "D2"};
    return one_of(w, dims, 6);
}

static void write_array(writer *w, const char *array) {
    static const char *const dims[] = {"B", "T_X", "K_{a,b}", "Hd_t/2"};
    int from = pick(w, 4), to = from + 1 + pick(w, 4 - from);
    put(w, "%s[", array);
    for (int i = from; i < to; i++) put(w, "%s%s", i > from ? "," : "", dims[i]);
    put(w, "]%s", pick(w, 4) ? "" : ":fp32");
}

static void put_expression(writer *w, int depth) {
    static const char *const between[] = {" + ", "-", " * ", "/"};
    switch (depth > 0 ? pick(w, 8) : pick(w, 4)) {
    case 0: put(w, "%s", name(w)); break;
    case 1: put(w, "%d.5", pick(w, 1000)); break;
    case 2: put(w, "%s", dim(w)); break;
    case 3:
        for (int i = pick(w, 3); i >= 0; i--) {
            write_array(w, name(w));
            put(w, " ");
        }
        break;
    case 4:
        put(w, "-");
        put_expression(w, depth - 1);
        break;
    case 5:
        put(w, "(");
        put_expression(w, depth - 1);
        put(w, ")");
        break;
    case 6:
        put(w, "f(");
        put_expression(w, depth - 1);
        put(w, ",\n ");
        put_expression(w, depth - 1);
        put(w, ")");
        break;
    default:
        put_expression(w, depth - 1);
        put(w, "%s", one_of(w, between, 4));
        put_expression(w, depth - 1);
    }
}

static void write_value(writer *w, int depth) {
    static const char *const between[] = {" or ", " and ", " + ", " - ", " * ", " / ", " % "};
    static const char *const tests[] = {" == ", " != ", " < ", " > ", " <= ", " >= ", " in "};
    switch (depth > 0 ? pick(w, 10) : pick(w, 4)) {
    case 0: put(w, "%s", name(w)); break;
    case 1: put(w, "%d", pick(w, 1000)); break;
    case 2: put(w, "\"%s\"", name(w)); break;
    case 3: put(w, "%s", dim(w)); break;
    case 4:
        put(w, "%s", pick(w, 2) ? "(-(" : "(not (");
        write_value(w, depth - 1);
        put(w, "))");
        break;
    case 5:
        put(w, "%s[", name(w));
        write_value(w, depth - 1);
        put(w, "]%s", pick(w, 2) ? "" : ".part");
        break;
    case 6:
        put(w, "max(");
        write_value(w, depth - 1);
        put(w, ", ");
        write_value(w, depth - 1);
        put(w, ")");
        break;
    case 7:
    case 8:
        put(w, "(");
        write_value(w, depth - 1);
        put(w, "%s", pick(w, 2) ? one_of(w, between, 7) : one_of(w, tests, 7));
        write_value(w, depth - 1);
        put(w, ")");
        break;
    default:
        put(w, "(");
        write_value(w, depth - 1);
        put(w, " if ");
        write_value(w, depth - 1);
        put(w, " else ");
        write_value(w, depth - 1);
        put(w, ")");
    }
}

static void write_text(writer *w, int number) {
    static const char *const attributes[] = {" causal",      " window 7", " along T",
                                             " over i[B,T]", " shared",   " shared Hd"};
    put(w, "%s t%d(x%s", pick(w, 4) ? "text" : "kernel", number, pick(w, 2) ? ", h[B,T]" : "");
    if (pick(w, 2)) {
        put(w, "; opt = ");
        write_value(w, 2);
    }
    put(w, ")%s%s", pick(w, 2) ? " -> x, y" : "", pick(w, 2) ? "\n" : ": ");
    for (int i = 1 + pick(w, 4); i > 0; i--) {
        if (pick(w, 2)) write_array(w, "y");
        else put(w, "y, z");
        put(w, " = ");
        put_expression(w, 3);
        if (pick(w, 2)) put(w, "%s", one_of(w, attributes, 6));
        if (pick(w, 3) == 0) {
            put(w, " if ");
            write_value(w, 3);
        }
        put(w, pick(w, 2) ? "\n" : " ;");
    }
    put(w, "\n");
}

static void write_family(writer *w, int number) {
    put(w, "family f%d \"f-%d\" ", number, number);
    if (pick(w, 2)) put(w, "like f0 ");
    put(w, "fields a%s = ", pick(w, 2) ? "[i]" : "");
    write_value(w, 3);
    put(w, pick(w, 2) ? "\ndims D = " : " dims D = ");
    write_value(w, 3);
    if (pick(w, 2)) put(w, "\nmodel");
    for (int i = pick(w, 4); i > 0; i--) {
        static const char *const begins[] = {" piece p", " layers l 3", " layers l", " stack s",
                                             " all f0"};
        int kind = pick(w, 5);
        put(w, "%s", begins[kind]);
        if (kind < 3 && pick(w, 2)) put(w, " = t0");
        if (kind < 3) put(w, ": a.b = ");
        if (kind == 3) put(w, " dims T = ");
        if (kind <= 3) write_value(w, 2);
        put(w, pick(w, 2) ? "\n" : "");
    }
    put(w, "\ninert a b%s\n", pick(w, 2) ? " \"c d\"" : "");
}

static void random_files_read_back(void **state) {
    static writer w;
    sm_arena *arena = sm_arena_new();
    for (uint64_t seed = 0; seed < 300; seed++) {
        w.rng.state = seed;
        w.n = 0;
        put(&w, "roles heads K; model D\nsizes Er = ");
        write_value(&w, 4);
        put(&w, "\n");
        for (int i = 0; i < 3; i++) write_text(&w, i);
        for (int i = 0; i < 2; i++) write_family(&w, i);
        assert_reads_back(arena, library_of(arena, w.text));
        assert_holds(w.text);
        if (seed % 100 == 99) {
            sm_arena_free(arena);
            arena = sm_arena_new();
        }
    }
    sm_arena_free(arena);
}

/* ---- what is shipped; memory ---- */

static void what_is_shipped_reads_back(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_error err = {0};
    const sm_library *shipped;
    assert_int_equal(library_whole(arena, &shipped, &err), SM_OK);
    assert_int_equal(sm_library_check(shipped, &err), SM_OK);
    assert_non_null(tree_find_family(shipped, "llama"));
    assert_reads_back(arena, shipped);
    sm_arena_free(arena);
}

static void memory_may_fail(void **state) {
    static const char some[] =
        "roles heads K\nsizes D2 = max(D, 2)\n"
        "text f(x[B,T]; g=false) -> y: y = x * w[T_X] along T if g; y = part(x) if not g\n"
        "family a b like c fields f[i] = l[i].m if i in \"w\" else -1\n"
        "dims D = f piece f = f: g = true; part = f inert r\nfamily c model";
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        sm_library *library = NULL;
        sm_error err = {0};
        sm_status status = sm_library_new(arena, NULL, &library, &err);
        if (!status) status = read_into(library, "f", some, &err);
        if (!status && sm_library_check(library, &err) == SM_INTERNAL) status = SM_INTERNAL;
        const char *const *names;
        size_t n;
        if (!status) status = sm_library_families(library, arena, &names, &n, &err);
        bool done = !status && library_format(library, arena);
        if (status) assert_string_equal(err.sentence, "out of memory");
        if (!failing_alloc_refused(&loop)) assert_true(done);
        sm_arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_reads_back),
        cmocka_unit_test(lines_are_trees),
        cmocka_unit_test(families_are_trees),
        cmocka_unit_test(what_stands_above_wins),
        cmocka_unit_test(every_token_may_be_missing_or_another),
        cmocka_unit_test(every_byte_may_be_another),
        cmocka_unit_test(random_files_read_back),
        cmocka_unit_test(what_is_shipped_reads_back),
        cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
