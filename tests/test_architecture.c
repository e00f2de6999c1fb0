/* Architectures: what families and configs come to, and the lines of their kinds. Small texts of
 * the tests' own, with counts made by hand; shipped families against closed forms; whatever fails,
 * fails at its place. */
#include "unit.h"
#include "scalemodel/architecture.h"
#include "scalemodel/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- models of small texts ---- */

static const char texts[] =
    "roles sequences B; positions T; keys S U; slots C; model D D2; vocabulary V; heads K; group "
    "G\n"
    "roles width F Fs; experts E\n"
    "sizes D2 = D; Er = E; C = B * T * A / E\n"
    "inert \"_*\" note_to_self\n"
    "matters \"*num_*\" \"*_size*\"\n"
    "text embedding(ids) -> x\n"
    "  x[B,T,D] = take(w[V,D], ids)\n"
    "text head(x; tied=false) -> y\n"
    "  h             = rmsnorm(x, n[D])\n"
    "  l[B,T,V]:fp32 = h[B,T,D] w[D,V]            if not tied\n"
    "  l[B,T,V]:fp32 = h[B,T,D] embedding.w[V,D]  if tied\n"
    "  y[B,T]:fp32   = cross_entropy(l)           if train\n"
    "  y[B,T]:fp32   = sample(l)                  if serve\n"
    "text block(x[B,T,D]) -> x\n"
    "  h = rmsnorm(x, n1[D])\n"
    "  a = mixer(h)\n"
    "  x = x + a\n"
    "  y = ffn(x)\n"
    "  x = x + y\n"
    "text attend(h[B,T,D]; bias=false, W=none) -> a\n"
    "  q[B,T,K,G,H] = h[B,T,D] wq[D,K,G,H]\n"
    "  q            = q + bq[K,G,H] if bias\n"
    "  k[B,T,K,H]   = h[B,T,D] wk[D,K,H]\n"
    "  v[B,T,K,H]   = h[B,T,D] wv[D,K,H]\n"
    "  kc[B,S,K,H], vc[B,S,K,H] = cache(k, v)\n"
    "  o[B,T,K,G,H] = attention(q[B,T,K,G,H] kc[B,S,K,H], vc[B,S,K,H]) causal window W\n"
    "  a[B,T,D]     = o[B,T,K,G,H] wo[K,G,H,D]\n"
    "text reuse(h[B,T,D]; W=none) -> a\n"
    "  q[B,T,K,G,H] = h[B,T,D] wq[D,K,G,H]\n"
    "  o[B,T,K,G,H] = attention(q[B,T,K,G,H] layer.mixer.kc[B,S,K,H], layer.mixer.vc[B,S,K,H]) "
    "causal window W\n"
    "  a[B,T,D]     = o[B,T,K,G,H] wo[K,G,H,D]\n"
    "text mlp(h[B,T,D]; act=silu, bias=false) -> y\n"
    "  u[B,T,F] = h[B,T,D] wu[D,F]\n"
    "  m        = act(u)\n"
    "  m        = m + bu[F] if bias\n"
    "  y[B,T,D] = m[B,T,F] wd[F,D]\n"
    "text moe(h[B,T,D]; act=silu, Fs=none) -> y\n"
    "  p[B,T,Er] = h[B,T,D] wr[D,Er]\n"
    "  c[B,T,A]  = top(p)\n"
    "  z[E,C,D]  = dispatch(h, c)\n"
    "  u[E,C,F]  = z[E,C,D] wu[E,D,F]\n"
    "  m         = act(u)\n"
    "  o[E,C,D]  = m[E,C,F] wd[E,F,D]\n"
    "  y[B,T,D]  = combine(o, c)\n"
    "  s[B,T,Fs] = h[B,T,D] ws[D,Fs] if Fs\n"
    "  t[B,T,D]  = s[B,T,Fs] wt[Fs,D] if Fs\n"
    "  y         = y + t if Fs\n"
    "text common(x[B,T,D]) -> x\n"
    "  y = both(x) shared M\n"
    "  x = x + y\n"
    "text mixed(h[B,T,D]) -> y\n"
    "  y[B,T,D2] = h[B,T,D] wc[D,D2]\n"
    "  y         = y + l[D2] own\n"
    "kernel steps(q[B,T,K,H], k[B,T,K,H]) -> o\n"
    "  s[B,T,K,H] = state() along T\n"
    "  s          = carry(s, k)\n"
    "  o[B,T,K,H] = q * s\n"
    "text linear(h[B,T,D]) -> a\n"
    "  q[B,T,K,H] = h[B,T,D] wq[D,K,H]\n"
    "  k[B,T,K,H] = h[B,T,D] wk[D,K,H]\n"
    "  k          = conv(k, tk[K,H,Lc]) along T\n"
    "  o          = steps(q, k)\n"
    "  a[B,T,D]   = o[B,T,K,H] wo[K,H,D]\n"
    "family small \"SmallForCausalLM\"\n"
    "fields heads = 4; kv_heads = heads; tied = false; window = none; kind[i] = \"full\"; bias = "
    "false\n"
    "dims D = hidden; V = rows; F = 3 * D; K = kv_heads; G = heads / K; H = D / heads\n"
    "model\n"
    "piece embedding\n"
    "layers layer depth = block: mixer = attend; ffn = mlp; mixer.bias = bias; W = window if "
    "local else none; local = kind[i] == \"local\"\n"
    "piece head: tied = tied\n";

typedef struct made {
    sm_arena *arena;
    sm_library *library;
    const sm_architecture *a;
    sm_error err;
} made;

static void setup(made *m, const char *more) {
    sm_source first = sm_source_of("texts", texts), second = sm_source_of("more", more);
    *m = (made){.arena = sm_arena_new()};
    assert_int_equal(sm_library_new(m->arena, NULL, &m->library, &m->err), SM_OK);
    if (sm_library_read(m->library, &first, &m->err) ||
        sm_library_read(m->library, &second, &m->err))
        fail_msg("%s:%d:%d: %s", m->err.source, m->err.line, m->err.column, m->err.sentence);
}

static sm_status read_config(made *m, const char *config) {
    sm_source source = sm_source_of("config", config);
    m->err = (sm_error){0};
    return sm_architecture_new(m->library, &source, NULL, m->arena, &m->a, &m->err);
}

static const sm_architecture *of(made *m, const char *more, const char *config) {
    setup(m, more);
    if (read_config(m, config))
        fail_msg("%s:%d:%d: %s", m->err.source, m->err.line, m->err.column, m->err.sentence);
    return m->a;
}

static double total_of(const char *more, const char *config) {
    made m;
    double total = sm_architecture_counts(of(&m, more, config))->total;
    sm_arena_free(m.arena);
    return total;
}

/* The error that comes instead: its line and column, what is underlined, and its sentence. */
static void refused(const char *more, const char *config, const char *where, int line, int column,
                    int span, const char *sentence) {
    made m;
    setup(&m, more);
    assert_int_equal(read_config(&m, config), SM_BAD_INPUT);
    if (strcmp(m.err.source, where) != 0 || m.err.line != line || m.err.column != column ||
        m.err.span != span || !strstr(m.err.sentence, sentence))
        fail_msg("%s:%d:%d+%d: %s", m.err.source, m.err.line, m.err.column, m.err.span,
                 m.err.sentence);
    sm_arena_free(m.arena);
}

#define SMALL "\"model_type\": \"small\", \"hidden\": 8, \"rows\": 10"

/* ---- counts ---- */

static void counts_every_component(void **state) {
    made m;
    const sm_counts *c =
        sm_architecture_counts(of(&m, "", "{" SMALL ", \"depth\": 3, \"kv_heads\": 2}"));
    /* D 8, V 10, F 24, K 2, G 2, H 2; a norm of each layer and one of the head */
    assert_true(c->embedding == 80 && c->unembedding == 80 && c->norm == 4 * 8);
    assert_true(c->attention == 3 * (8 * 8 + 2 * 8 * 4 + 8 * 8) && c->mlp == 3 * 2 * 8 * 24);
    assert_true(c->total == 80 + 80 + 32 + 576 + 1152 && c->active == c->total);
    assert_true(c->matmul_active == 80 + 576 + 1152 && c->other == 0 && c->apart == 0);
    sm_arena_free(m.arena);
}

static void ties_and_biases(void **state) {
    double plain = total_of("", "{" SMALL ", \"depth\": 3}");
    assert_true(total_of("", "{" SMALL ", \"depth\": 3, \"tied\": true}") == plain - 80);
    assert_true(total_of("", "{" SMALL ", \"depth\": 3, \"bias\": true}") == plain + 3 * 8);
    assert_true(total_of("family x like small\nlayers layer: ffn.bias = true\n",
                         "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}") ==
                plain + 3 * 24);
}

static void experts_in_use(void **state) {
    made m;
    const char *more = "family x like small\ndims E = experts; A = 2; Fs = 5\n"
                       "layers layer: ffn = moe if i > 0 else mlp\n";
    const sm_counts *c = sm_architecture_counts(
        of(&m, more,
           "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3, "
           "\"experts\": 6}"));
    assert_true(c->experts == 2 * (6 * 2 * 8 * 24 + 2 * 8 * 5) && c->router == 2 * 8 * 6);
    assert_true(c->mlp == 2 * 8 * 24);
    assert_true(c->active == c->total - 2 * 4 * 2 * 8 * 24);
    assert_true(c->matmul_active == c->active - c->embedding - c->norm);
    sm_arena_free(m.arena);
}

/* Copies that layers share in turn, and what each keeps for itself. */
static void shared_weights(void **state) {
    const char *more = "family x\nfields depth = 5; copies = 2\ndims D = 4; M = copies\nmodel\n"
                       "layers layer depth = common: both = mixed\n";
    assert_true(total_of(more, "{\"model_type\": \"x\"}") == 2 * 16 + 5 * 4);
    assert_true(total_of(more, "{\"model_type\": \"x\", \"depth\": 1}") == 16 + 4);
}

/* ---- kinds ---- */

static void finds_kinds(void **state) {
    made m;
    int n;
    const char *more = "family x like small\nfields kind[i] = \"local\" if i % 3 else \"full\"\n";
    const sm_architecture *a =
        of(&m, more,
           "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 7, "
           "\"window\": 4}");
    assert_int_equal(sm_architecture_kinds(a), 4); /* embedding, full, local, head */
    assert_string_equal(sm_architecture_kind(a, 1, &n)->name, "layer");
    assert_int_equal(n, 3);
    assert_non_null(sm_architecture_kind(a, 2, &n));
    assert_int_equal(n, 4);
    assert_null(sm_architecture_kind(a, 4, &n));
    const sm_model_piece *piece;
    assert_int_equal(sm_architecture_pieces(a, &piece), 9);
    assert_true(piece[1].kind == piece[4].kind && piece[1].kind != piece[2].kind);
    sm_arena_free(m.arena);
    /* what no text reads makes no kind: without a window local and full are the same */
    a = of(&m, more, "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 7}");
    assert_int_equal(sm_architecture_kinds(a), 3);
    sm_arena_free(m.arena);
}

static void lists_of_the_config_go_by_layer(void **state) {
    made m;
    const sm_architecture *a =
        of(&m, "",
           "{" SMALL ", \"depth\": 3, \"window\": 4, \"kind\": [\"local\", \"local\", "
           "\"full\"]}");
    const sm_model_piece *piece;
    sm_architecture_pieces(a, &piece);
    assert_true(piece[1].kind == piece[2].kind && piece[1].kind != piece[3].kind);
    sm_arena_free(m.arena);
    refused("", "{" SMALL ", \"depth\": 3, \"kind\": [\"local\"]}", "config", 1, 70, 9,
            "the list has 1 entries");
}

/* ---- what is kept ---- */

/* Elements of what T tokens leave in caches, and of what is of fixed size. */
static double kept(const char *more, const char *config, double T, double *fixed) {
    made m;
    sm_model model;
    sm_source source = sm_source_of("config", config);
    setup(&m, more);
    if (sm_model_parse(m.library, NULL, &source, m.arena, &model, &m.err))
        fail_msg("%s:%d:%d: %s", m.err.source, m.err.line, m.err.column, m.err.sentence);
    double bytes = sm_model_kv_bytes(&model, T, SM_INT8);
    *fixed = sm_model_state_bytes(&model, SM_INT8) / 2;
    sm_arena_free(m.arena);
    return bytes;
}

static void keeps_what_is_read(void **state) {
    double fixed;
    const char *more = "family x like small\nlayers layer: mixer = attend if i == 0 else reuse; "
                       "W = 8 if i == 0 else wide if i == 2 else none; name = \"layer\" if i == 0 "
                       "else \"reader\"\n"
                       "fields wide = 16\n";
    const char *config = "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}";
    assert_true(kept(more, config, 1, &fixed) == 16);
    assert_true(kept(more, config, 100, &fixed) == 16 * 100 && fixed == 0);
    config = "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 1}";
    assert_true(kept(more, config, 100, &fixed) == 16 * 8);
}

/* A window beside a cache without one, in one layer. */
static void some_of_a_layer_is_bounded(void **state) {
    double fixed;
    const char *more = "text two(h[B,T,D]) -> a\n"
                       "  k[B,T,H] = h[B,T,D] wk[D,H]\n"
                       "  n[B,S,H] = cache(k)\n"
                       "  e[B,T,Lc] = h[B,T,D] we[D,Lc]\n"
                       "  f[B,S,Lc] = cache(e)\n"
                       "  o[B,T,H] = attention(k[B,T,H] n[B,S,H], n[B,S,H]) causal window 8\n"
                       "  u[B,T,Lc] = attention(e[B,T,Lc] f[B,S,Lc], f[B,S,Lc]) causal\n"
                       "  a[B,T,D] = o[B,T,H] wo[H,D]\n"
                       "  b[B,T,D] = u[B,T,Lc] wu[Lc,D]\n"
                       "  a = a + b\n"
                       "family x like small\ndims Lc = 5\nlayers layer: mixer = two\n";
    const char *config = "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}";
    assert_true(kept(more, config, 100, &fixed) == 3 * (2 * 8 + 5 * 100) && fixed == 0);
}

static void states_have_a_size(void **state) {
    double fixed;
    const char *more = "family x like small\ndims Lc = 4\nlayers layer: mixer = linear\n";
    const char *config = "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}";
    /* a state of K x H, and the last three inputs of a convolution of four taps */
    assert_true(kept(more, config, 1000, &fixed) == 0 && fixed == 3 * (8 + 8 * 3));
}

/* ---- FLOPs ---- */

/* Every key of every query, one by one. */
static double pairs(double T, bool causal, double window) {
    double n = 0;
    for (double t = 0; t < T; t++)
        for (double s = 0; s < T; s++) n += causal ? s <= t && (window == 0 || t - s < window) : 1;
    if (!causal && window > 0) n = T * fmin(window, T);
    return n;
}

static void attention_counts_pairs(void **state) {
    static const double windows[] = {0, 1, 5, 40};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++)
        for (double T = 1; T < 40; T += 13)
            for (int causal = 0; causal < 2; causal++) {
                made m;
                char config[200];
                sm_forward f;
                snprintf(config, sizeof config,
                         "{" SMALL ", \"depth\": 2, \"kind\": [\"local\", \"local\"], "
                         "\"window\": %s}",
                         windows[w] > 0 ? "0000" : "null");
                if (windows[w] > 0) snprintf(strstr(config, "0000"), 8, "%.0f}", windows[w]);
                const sm_architecture *a = of(&m, "", config);
                assert_int_equal(sm_architecture_forward(a, T, causal, &f, &m.err), SM_OK);
                double expected = 2 * 2 * 2 * 8 * pairs(T, causal, windows[w]) / T;
                if (fabs(f.attention - expected) > 1e-9 * expected)
                    fail_msg("T %g window %g causal %d: %g, expected %g", T, windows[w], causal,
                             f.attention, expected);
                assert_true(f.matmul == 2 * sm_architecture_counts(a)->matmul_active);
                sm_arena_free(m.arena);
            }
}

static const sm_text_lines *lines_of(made *m, int kind, sm_text_phase phase, double T, double S) {
    const sm_text_lines *lines;
    const sm_text_lines_of wanted = {kind, phase, false, T, S, false};
    if (sm_architecture_lines(m->a, &wanted, m->arena, &lines, &m->err))
        fail_msg("%s:%d:%d: %s", m->err.source, m->err.line, m->err.column, m->err.sentence);
    return lines;
}

static const sm_text_line *line_called(const sm_text_lines *lines, const char *name) {
    for (int i = 0; i < lines->lines; i++)
        if (strcmp(lines->line[i].name, name) == 0) return &lines->line[i];
    fail_msg("no line %s", name);
    return NULL;
}

/* The product of three arrays is taken in the order that does least. */
static void products_take_the_cheapest_order(void **state) {
    made m;
    const char *more = "text low(x[B,T,D]) -> x\n  x[B,T,D2] = x[B,T,D] wa[D,R] wb[R,D2]\n"
                       "family x\ndims D = 100; R = 2\nmodel\npiece low\n";
    of(&m, more, "{\"model_type\": \"x\"}");
    const sm_text_lines *l = lines_of(&m, 0, SM_TEXT_TRAIN, 1000, 1000);
    assert_true(l->line[0].matrix_flops == 2. * 1000 * 100 * 2 * 2);
    l = lines_of(&m, 0, SM_TEXT_TRAIN, 1, 1);
    assert_true(l->line[0].matrix_flops == 2. * 100 * 2 * 2);
    sm_arena_free(m.arena);
}

/* ---- lines ---- */

static void lines_have_names_roles_and_kernels(void **state) {
    made m;
    of(&m, "family x like small\ndims Lc = 4\nlayers layer: mixer = linear\n",
       "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}");
    const sm_text_lines *l = lines_of(&m, 1, SM_TEXT_DECODE, 1, 50);
    assert_int_equal(l->kernels, 1);
    assert_string_equal(l->kernel[0].name, "steps");
    assert_int_equal(l->kernel[0].lines, 3);
    assert_int_equal(l->kernel[0].operands, 2); /* q and k */
    assert_int_equal(line_called(l, "s")->kernel, 0);
    assert_int_equal(line_called(l, "h")->kernel, -1);
    assert_int_equal(l->array[line_called(l, "s")->result[0].array].role, SM_TEXT_STATE);
    const sm_text_line *k = line_called(l, "k.2"); /* made again */
    assert_int_equal(k->op, SM_OPERATOR_CONV);
    assert_true(k->taps == 4 && k->along >= 0 && k->operands == 2);
    assert_string_equal(l->array[k->operand[1].array].name, "mixer.tk");
    assert_int_equal(l->array[k->operand[1].array].role, SM_TEXT_WEIGHT);
    assert_string_equal(l->array[l->input].name, "x");
    assert_string_equal(l->array[l->output].name, "x.3");
    sm_arena_free(m.arena);
}

static void expressions_know_what_backward_reads(void **state) {
    made m;
    const char *more = "text f(x[B,T,D], y[B,T,D]) -> z\n"
                       "  z = x + y\n  z = silu(x) * z\n  z = 2 * z - x\n  z = rmsnorm(z, n[D])\n"
                       "family x\ndims D = 4\nmodel\npiece f\n";
    of(&m, more, "{\"model_type\": \"x\"}");
    const sm_text_lines *l = lines_of(&m, 0, SM_TEXT_TRAIN, 10, 10);
    assert_true(l->line[0].linear && l->line[0].reads == 0 && l->line[0].flops == 1);
    assert_true(!l->line[1].linear && l->line[1].reads == 3 && l->line[1].flops == 6);
    assert_true(l->line[2].linear && l->line[2].reads == 0 && l->line[2].flops == 2);
    assert_true(!l->line[3].linear && l->line[3].reads == 3 && l->line[3].norm);
    assert_true(l->array[l->line[3].operand[1].array].norm);
    const sm_text_line *z = &l->line[1]; /* x silu z * */
    assert_int_equal(z->terms, 4);
    assert_true(z->term[0].kind == SM_TERM_ARRAY && z->term[1].op == SM_OPERATOR_SILU);
    assert_true(z->term[3].op == SM_OPERATOR_MULTIPLY && z->term[3].arguments == 2);
    sm_arena_free(m.arena);
}

/* ---- families ---- */

static void amends_and_takes_from_others(void **state) {
    const char *config = "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 3}";
    double plain = total_of("", "{" SMALL ", \"depth\": 3}"), mlp = 2 * 8 * 24;
    assert_true(total_of("family x like small\ndims F = D\n", config) == plain - 3 * 2 * mlp / 3);
    assert_true(total_of("family x like small\nlayers layer: F = D if i else 3 * D\n", config) ==
                plain - 2 * 2 * mlp / 3);
    assert_true(total_of("family x like small\nlayers layer 1\n", config) ==
                plain - 2 * (plain - 80 - 80 - 8) / 3);
    assert_true(total_of("family x like small\npiece head = none\n", config) == plain - 80 - 8);
    assert_true(total_of("family x\nmodel\nall small\n", config) == plain);
    assert_true(
        total_of("family x\ndims F = D\nmodel\nall small\nlayers layer: mixer.bias = true\n",
                 config) > plain - 3 * 2 * mlp / 3);
}

static void wrappers_read_inner_objects(void **state) {
    made m;
    const char *more = "family w\nfields tied = none\nmodel\n"
                       "stack eye: when = eye; apart = true\ndims D = eye.width; K = 1; G = 1; H = "
                       "D; F = D; T = 5; S = T\n"
                       "layers tower eye.depth = block: mixer = attend; ffn = mlp\n"
                       "stack language\nall in inner: tied = tied\n";
    const char *inner = "\"inner\": {" SMALL ", \"depth\": 3, \"tied\": false}";
    char config[300];
    double plain = total_of("", "{" SMALL ", \"depth\": 3}"), params;
    snprintf(config, sizeof config, "{\"model_type\": \"w\", %s}", inner);
    assert_true(total_of(more, config) == plain);
    snprintf(config, sizeof config, "{\"model_type\": \"w\", \"tied\": true, %s}", inner);
    assert_true(total_of(more, config) == plain - 80);
    snprintf(config, sizeof config,
             "{\"model_type\": \"w\", %s, \"eye\": {\"width\": 2, \"depth\": 4}}", inner);
    const sm_architecture *a = of(&m, more, config);
    assert_true(sm_architecture_counts(a)->total == plain);
    assert_string_equal(sm_architecture_apart(a, 0, &params), "eye");
    assert_true(params == 4 * (2 + 4 * 4 + 2 * 4) && sm_architecture_counts(a)->apart == params);
    assert_null(sm_architecture_apart(a, 1, &params));
    assert_string_equal(sm_architecture_family(a), "small");
    sm_arena_free(m.arena);
    refused(more, "{\"model_type\": \"w\"}", "config", 1, 1, 1, "inner is missing");
    /* an old, flat form: without the object the config itself is read */
    assert_true(total_of("family w\nmodel\nall small in inner\n",
                         "{\"model_type\": \"w\", \"hidden\": 8, \"rows\": 10, "
                         "\"depth\": 3}") == plain);
}

static void families_by_architecture(void **state) {
    made m;
    const char *more = "family reward \"SmallForReward\" like small\npiece head = none\n";
    double plain = total_of("", "{" SMALL ", \"depth\": 3}");
    assert_true(total_of(more, "{" SMALL ", \"depth\": 3, \"architectures\": "
                               "[\"SmallForReward\"]}") == plain - 88);
    assert_true(total_of(more, "{\"hidden\": 8, \"rows\": 10, \"depth\": 3, "
                               "\"architectures\": [\"SmallForCausalLM\"]}") == plain);
    setup(&m, more);
    sm_source config = sm_source_of("config", "{\"model_type\": \"?\", \"hidden\": 8, "
                                              "\"rows\": 10, \"depth\": 3}");
    assert_int_equal(sm_architecture_new(m.library, &config, "reward", m.arena, &m.a, &m.err),
                     SM_OK);
    assert_true(sm_architecture_counts(m.a)->total == plain - 88);
    assert_int_equal(sm_architecture_new(m.library, &config, "rewart", m.arena, &m.a, &m.err),
                     SM_BAD_INPUT);
    assert_non_null(strstr(m.err.sentence, "the nearest known one is \"reward\""));
    sm_arena_free(m.arena);
}

static void facts_by_name(void **state) {
    made m;
    double x = -1;
    const char *more = "family x like small\nfields note = \"approximate\"; theta = rope.theta or "
                       "10000; act = \"gelu\"\n";
    const sm_architecture *a =
        of(&m, more,
           "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 1, "
           "\"rope\": {\"theta\": 5e5}, \"tied\": true, \"limit\": Infinity}");
    assert_string_equal(sm_architecture_word(a, "note"), "approximate");
    assert_true(sm_architecture_number(a, "theta", &x) && x == 5e5);
    assert_true(sm_architecture_number(a, "tied", &x) && x == 1);
    assert_true(sm_architecture_number(a, "limit", &x) && x > 1e300);
    assert_false(sm_architecture_number(a, "nothing", &x));
    assert_false(sm_architecture_number(a, "note", &x));
    assert_false(sm_architecture_number(a, "window", &x));
    assert_null(sm_architecture_word(a, "theta"));
    assert_string_equal(sm_architecture_type(a), "x");
    sm_arena_free(m.arena);
}

/* ---- expressions ---- */

static void works_out_expressions(void **state) {
    static const struct {
        const char *value;
        double expected; /* 0: none */
    } cases[] = {
        {"7 / 2 * 2", 7},
        {"-7 % 4", 1},
        {"roundup(floor(2 * 100 / 3), 64)", 128},
        {"ceil(7 / 2) + min(3, 2, 5) + max(1, 4)", 10},
        {"none or 3", 3},
        {"0 or none", 0},
        {"1 and 5", 5},
        {"number or 2", 2},
        {"list[1]", 20},
        {"list[2 - 2]", 10},
        {"list[0] + nested.a.b", 17},
        {"nested.a.absent or 4", 4},
        {"absent.b", 0},
        {"objects[1].size", 6},
        {"by_number[5]", 50},
        {"by_number[6] or 1", 1},
        {"length(list) + length(word)", 7},
        {"length(number)", 0},
        {"count(word, \"M\")", 2},
        {"count(list, 20)", 1},
        {"3 if word[1] == \"-\" else 4", 3},
        {"3 if word[9] == none else 4", 3},
        {"3 if 20 in list else 4", 3},
        {"3 if \"-M\" in word else 4", 3},
        {"3 if 1 in number else 4", 4},
        {"3 if 4 in commas and not 5 in commas and 15 in commas else 4", 3},
        {"3 if \"a\" in nested else 4", 3},
        {"1 if not truth else 2 if list[0] > 10 else 3", 3},
        {"truth + truth", 2},
        {"2 if truth == 1 else 3", 2},
        {"2 if 3 <= 3 and 2 < 3 and not 2 >= 3 and 2 != 3 else 9", 2},
        {"rule[4]", 8},
        {"list_or_rule[2]", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char more[400];
        snprintf(more, sizeof more,
                 "text one(x[B,T,D]) -> x\n  x = x + w[X] if X\n  x = x + v[D]\nfamily x\n"
                 "fields number = none; rule[i] = 2 * i; list_or_rule[i] = 1 / 0\n"
                 "dims D = 1; X = %s\ninert \"M\" \"-\" \"#\"\nmodel\npiece one\n",
                 cases[i].value);
        made m;
        setup(&m, more);
        sm_status status =
            read_config(&m, "{\"model_type\": \"x\", \"list\": [10, 20], \"word\": \"M-M#-\", "
                            "\"commas\": \"3,4, 15\", \"truth\": true, "
                            "\"nested\": {\"a\": {\"b\": 7}}, \"objects\": [{}, {\"size\": 6}], "
                            "\"by_number\": {\"05\": 50}, \"list_or_rule\": [5, 6, 7]}");
        /* X stands in no dimension of x, so the text itself is wrong where there is one */
        const sm_text_lines *l = status ? NULL : lines_of(&m, 0, SM_TEXT_TRAIN, 1, 1);
        double found = 0;
        for (int k = 0; l && k < l->dims; k++)
            if (strcmp(l->dim[k].name, "X") == 0) found = l->dim[k].size;
        if (status || found != cases[i].expected)
            fail_msg("%s: %g, expected %g: %s", cases[i].value, found, cases[i].expected,
                     m.err.sentence);
        sm_arena_free(m.arena);
    }
}

/* ---- errors ---- */

static void errors_have_places_in_the_config(void **state) {
    refused("", "{\"model_type\": \"smal\"}", "config", 1, 16, 6,
            "model_type \"smal\" is not understood; the nearest known one is \"small\"");
    refused("", "{\"hidden\": 8}", "config", 1, 1, 1, "model_type is missing");
    refused("", "{\"model_type\": 3}", "config", 1, 16, 1, "model_type must be a text");
    refused("", "[1]", "config", 1, 1, 3, "a model config is a JSON object");
    refused("", "{\"model_type\": \"small\"", "config", 1, 22, 1, "not valid JSON");
    refused("", "{\"model_type\": \"small\", \"hidden\": 8, \"rows\": 10}", "config", 1, 1, 1,
            "depth is missing: a small model has it");
    refused("", "{" SMALL ", \"depth\": 2, \"heads\": 3}", "config", 1, 71, 1,
            "H = D / heads would be 2.66667, and a size is a whole number");
    refused("", "{" SMALL ", \"depth\": 2,\n\"heads\": \"3\"}", "config", 2, 10, 3,
            "heads must be a number");
    refused("", "{" SMALL ", \"depth\": 2, \"heads\": -4}", "config", 1, 71, 2,
            "K = kv_heads would be -4");
    refused("", "{" SMALL ", \"depth\": 2.5}", "config", 1, 59, 3, "there would be 2.5 layers");
    refused("", "{" SMALL ", \"depth\": 1e9}", "config", 1, 59, 3, "there would be 1e+09 layers");
    refused("", "{" SMALL ", \"depth\": 2, \"num_things\": 1}", "config", 1, 62, 12,
            "num_things may change the size or the work of a small model and is not understood");
    refused("", "{" SMALL ", \"depth\": 2, \"heads\": 0}", "config", 1, 71, 1,
            "K = kv_heads is 0, and attend needs it");
    refused("family x like small\nfields kind[i] = \"full\"\ninert far\n",
            "{\"model_type\": \"x\", \"hidden\": 8, \"rows\": 10, \"depth\": 2, \"kind\": "
            "[\"far\", \"locl\"]}",
            "config", 1, 74, 6,
            "kind \"locl\" of a layer is not understood; the nearest known one "
            "is \"local\"");
    /* off, inert, or of no matter */
    assert_true(total_of("", "{" SMALL ", \"depth\": 1, \"num_things\": 0, \"_num_\": 3, "
                             "\"colour\": 3, \"note_to_self\": 4}") > 0);
}

static void errors_have_places_in_the_texts(void **state) {
    const char *config = "{\"model_type\": \"x\", \"hidden\": 8, \"depth\": 1, \"rows\": 10}";
    static const struct {
        const char *more;
        int line, column, span;
        const char *sentence;
    } cases[] = {
        {"family x like small\nlayers layer: bias = true\n", 2, 15, 4,
         "attend and mlp both have an option bias: write"},
        {"family x like small\nlayers more: ffn = mlp\n", 2, 8, 4, "how many layers?"},
        {"family x like small\ndims F = D + \"a\"\n", 2, 14, 3, "this is a text, and a number"},
        {"family x like small\ndims F = G1; G1 = F\n", 2, 19, 1, "defined by itself"},
        {"family x like x2\nfamily x2 like x\n", 1, 8, 1, "is it like itself?"},
        {"family x\nmodel\nall y\n", 3, 5, 1, "no family y"},
        {"family x\ndims D = 2\nmodel\npiece head = mlp\nall small\n", 5, 5, 5,
         "two pieces head: family small, taken here, has one, and so has family x"},
        {"family y\nmodel\npiece head = mlp\nfamily x\ndims D = 2\nmodel\nall y\nall small\n", 8, 5,
         5, "two pieces head: family small, taken here, has one, and so has family y"},
        {"family x like small\nlayers layer: ffn = 3\n", 0, 0, 0, "bound to no text"},
        {"text f(x[B,T,D]) -> x\n  x = x + b[D,T]\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 11,
         6, "b is not defined, and it is no weight: T counts tokens"},
        {"text f(x[B,T,D]) -> x\n  x = x + b\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 11, 1,
         "b is not defined"},
        {"text f(x[B,T,D]) -> x\n  x = x + b[Q]\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 13, 1,
         "dimension Q has no size in a x model"},
        {"text f(x[B,T,D]) -> x\n  x = gone.w[D] * x\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 7,
         9, "no piece gone stands before f"},
        {"text g(x[B,T,D]) -> x\n  x = x * h.w[D]\ntext h(x[B,T,D]) -> x\n  x = x + l.b[D] * w[D]\n"
         "family x\ndims D = 2\nmodel\nlayers l 1 = g\npiece h\n",
         4, 11, 6, "l and h read each other"},
        {"text f(x[B,T,D]) -> x\n  x[B,T] = x[B,T,D] w[D]\nfamily x\ndims D = 2\nmodel\npiece f\n",
         2, 3, 6, "a name has one shape"},
        {"text f(x[B,T,D]) -> x\n  x = x + x[B,D,T]\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 11,
         8, "x[B,D,T] is x[B,T,D] above"},
        {"text f(x[B,T,D]) -> x\n  x = x + x[B]\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 11, 4,
         "x[B] is x[B,T,D] above"},
        {"text f(x[B,T,D]; gated=false) -> y\n  y = silu(x) if gated\nfamily x\ndims D = 2\nmodel\n"
         "piece f\n",
         1, 34, 1, "f makes no y in this case"},
        {"text f(x[B,T,D]) -> y\n  y = silu(x) if train\n  y = relu(x) if decode\n"
         "family x\ndims D = 2\nmodel\npiece f\n",
         1, 21, 1, "f makes no y in this case"},
        {"text f(x[B,T,D]) -> y\n  y = silu(x) if not decode\n  z = x if serve and not decode\n"
         "  y = z if decode\nfamily x\ndims D = 2\nmodel\npiece f\n",
         4, 7, 1, "z is not defined"},
        {"text f(x[B,T,D]) -> y\n  y = top(x)\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 3, 1,
         "write the dimensions of y"},
        {"text f(x[B,T,D]) -> y\n  y[B,T] = x + w[D]\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 3,
         6, "D stands in no dimension of y"},
        {"text f(x[B,T,D]) -> y\n  y = silu(x, x)\nfamily x\ndims D = 2\nmodel\npiece f\n", 2, 7,
         10, "silu takes 1 to 1 arguments, not 2"},
        {"text f(x[B,T,D]) -> x\n  x = f(x)\nfamily x\ndims D = 2\nmodel\npiece f\n", 0, 0, 0,
         "call each other more than 16 deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m;
        setup(&m, cases[i].more);
        sm_status status = read_config(&m, config);
        bool placed =
            cases[i].line == 0 || (m.err.line == cases[i].line && m.err.column == cases[i].column &&
                                   m.err.span == cases[i].span);
        if (status == SM_OK || !placed || !strstr(m.err.sentence, cases[i].sentence))
            fail_msg("%s\n%d: %s:%d:%d+%d: %s", cases[i].more, status, m.err.source, m.err.line,
                     m.err.column, m.err.span, m.err.sentence);
        sm_arena_free(m.arena);
    }
}

/* ---- whatever happens ---- */

static const char wrapped[] =
    "{\"model_type\": \"w\", \"eye\": {\"width\": 2, \"depth\": 2}, \"inner\": {" SMALL
    ", \"depth\": 4, \"window\": 3, \"kind\": [\"local\", \"full\", \"local\", \"full\"]}}";
static const char wrapper[] =
    "family w\nfields tied = none\nmodel\nstack eye: when = eye; apart = true\n"
    "dims D = eye.width; K = 1; G = 1; H = D; F = D; T = 5; S = T\n"
    "layers tower eye.depth = block: mixer = attend; ffn = mlp\n"
    "stack language\nall in inner: tied = tied\n";

static sm_status ask_everything(made *m) {
    sm_forward f;
    const sm_text_lines *lines;
    sm_status status = read_config(m, wrapped);
    for (int kind = 0; !status && kind < sm_architecture_kinds(m->a); kind++) {
        const sm_text_lines_of wanted = {kind, SM_TEXT_PREFILL, false, 7, 9, false};
        status = sm_architecture_lines(m->a, &wanted, m->arena, &lines, &m->err);
    }
    if (!status) status = sm_architecture_forward(m->a, 10, true, &f, &m->err);
    return status;
}

static void every_allocation_may_fail(void **state) {
    for (uint64_t n = 1;; n++) {
        made m;
        setup(&m, wrapper);
        sm_allocation_fail_at(n);
        sm_status status = ask_everything(&m);
        sm_allocation_fail_at(0);
        if (status) {
            assert_int_equal(status, SM_INTERNAL);
            assert_string_equal(m.err.sentence, "out of memory");
        }
        sm_arena_free(m.arena);
        if (!status) {
            assert_true(n > 5);
            return;
        }
    }
}

/* Numbers and words at random where a config has values: an answer or an error with a place. */
static void random_configs(void **state) {
    static const char *const values[] = {
        "0",   "1",         "2",    "8",    "64",   "-3",    "2.5", "1e30",
        "NaN", "Infinity",  "null", "true", "\"\"", "\"x\"", "[]",  "[1,\"full\"]",
        "{}",  "{\"a\":1}", "100",  "false"};
    static const char *const keys[] = {"hidden", "rows", "depth", "heads", "kv_heads",
                                       "window", "kind", "tied",  "bias"};
    sm_rng rng = {7};
    int good = 0;
    for (int round = 0; round < 4000; round++) {
        made m;
        char config[600];
        setup(&m, "");
        int n = snprintf(config, sizeof config, "{\"model_type\": \"small\"");
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            bool plain = sm_rng_below(&rng, 3) > 0 && k < 4;
            const char *value = plain ? k == 3 ? "4" : "8"
                                      : values[sm_rng_below(&rng, sizeof values / sizeof *values)];
            if (sm_rng_below(&rng, 4) == 0 && k > 3) continue;
            n += snprintf(config + n, sizeof config - (size_t)n, ", \"%s\": %s", keys[k], value);
        }
        snprintf(config + n, sizeof config - (size_t)n, "}");
        sm_status status = read_config(&m, config);
        good += status == SM_OK;
        if (status ? status != SM_BAD_INPUT || m.err.line == 0 || m.err.sentence[0] == 0
                   : !(sm_architecture_counts(m.a)->total > 0))
            fail_msg("%s: %d %s", config, status, m.err.sentence);
        sm_arena_free(m.arena);
    }
    assert_true(good > 100);
}

/* ---- what is shipped ---- */

static void shipped_families_count_as_in_the_book(void **state) {
    made m = {.arena = sm_arena_new()};
    sm_source config = sm_source_of(
        "config", "{\"model_type\": \"llama\", \"hidden_size\": 64, \"vocab_size\": 100, "
                  "\"num_hidden_layers\": 5, \"num_attention_heads\": 8, "
                  "\"num_key_value_heads\": 2, \"intermediate_size\": 160}");
    if (sm_architecture_new(sm_library_shipped(), &config, NULL, m.arena, &m.a, &m.err))
        fail_msg("%s", m.err.sentence);
    const sm_counts *c = sm_architecture_counts(m.a);
    assert_true(c->attention == 5 * (2 * 64 * 64 + 2 * 64 * 16));
    assert_true(c->mlp == 5 * 3 * 64 * 160 && c->norm == 11 * 64);
    assert_true(c->embedding == 6400 && c->unembedding == 6400);
    sm_arena_free(m.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_every_component),
        cmocka_unit_test(ties_and_biases),
        cmocka_unit_test(experts_in_use),
        cmocka_unit_test(shared_weights),
        cmocka_unit_test(finds_kinds),
        cmocka_unit_test(lists_of_the_config_go_by_layer),
        cmocka_unit_test(keeps_what_is_read),
        cmocka_unit_test(some_of_a_layer_is_bounded),
        cmocka_unit_test(states_have_a_size),
        cmocka_unit_test(attention_counts_pairs),
        cmocka_unit_test(products_take_the_cheapest_order),
        cmocka_unit_test(lines_have_names_roles_and_kernels),
        cmocka_unit_test(expressions_know_what_backward_reads),
        cmocka_unit_test(amends_and_takes_from_others),
        cmocka_unit_test(wrappers_read_inner_objects),
        cmocka_unit_test(families_by_architecture),
        cmocka_unit_test(facts_by_name),
        cmocka_unit_test(works_out_expressions),
        cmocka_unit_test(errors_have_places_in_the_config),
        cmocka_unit_test(errors_have_places_in_the_texts),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(random_configs),
        cmocka_unit_test(shipped_families_count_as_in_the_book),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
