/* model: counts against published totals and against lists of tensors; attention against counted
 * pairs; the KV cache; checks. */
#include "unit.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "catalogue.h"
#include "scalemodel/io.h"
#include "scalemodel/model.h"

static sm_model load(const char *name) {
    static sm_model m; /* 3 KB: kept off the stack of every caller */
    catalogue_load(name, models_arena(), &m);
    return m;
}

static double count(const char *name) {
    sm_model m = load(name);
    return sm_model_params(&m).total;
}

static void assert_figure(const char *name, const char *what, double value, double wanted,
                          double unit) {
    if (unit == 0 ? value == wanted : fabs(value - wanted) <= unit) return;
    fail_msg("%s: %s is %.0f, published %.0f (+- %.0f)", name, what, value, wanted, unit);
}

/* ---- the catalogue ---- */

static void catalogue_has_the_published_totals(void **state) {
    size_t exact = 0;
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const sm_catalogue_entry *e = sm_catalogue_at(i);
        sm_model m = load(e->name);
        sm_params p = sm_model_params(&m);
        assert_figure(e->name, "total", p.total, e->published_params, e->params_rounding);
        if (e->published_active > 0)
            assert_figure(e->name, "active", p.active, e->published_active, e->active_rounding);
        else assert_true(p.active == p.total || p.experts > 0);
        exact += e->params_rounding == 0;
    }
    assert_true(sm_catalogue_count() >= 150);
    assert_true(exact >= 130);
}

/* T5 writes behind its padding, mBART-50, M2M-100 and NLLB behind the end of a text (the language
 * is forced next: transformers' page of mBART), Whisper behind its own word. */
static void catalogued_writing_begins(void **state) {
    static const struct {
        const char *name;
        double word;
    } begins[] = {{"t5-small", 0},    {"mbart-large-50", 2},    {"nllb-200-1.3b", 2},
                  {"m2m100-418m", 2}, {"whisper-small", 50258}, {"whisper-small.en", 50257}};
    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        static sm_model entry;
        sm_arena *arena = sm_arena_new();
        double word = -1;
        catalogue_load(begins[i].name, arena, &entry);
        assert_true(sm_architecture_number(entry.architecture, "decoder_start_token_id", &word));
        assert_true(word == begins[i].word);
        sm_arena_free(arena);
    }
}

/* Tables of words and those before them (LongCat-Flash-Lite) are no vocabulary: a step would hold
 * scores of their rows. */
static void tables_of_words_before_are_no_vocabulary(void **state) {
    static sm_model m;
    sm_arena *arena = sm_arena_new();
    (void)state;
    catalogue_load("longcat-flash-lite", arena, &m);
    assert_true(m.V == 131072);
    sm_arena_free(arena);
}

/* A rounding may hide no error of more than a few per cent. */
static void catalogue_roundings_are_tight(void **state) {
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const sm_catalogue_entry *e = sm_catalogue_at(i);
        assert_true(e->params_rounding <= 0.02 * e->published_params);
        assert_true(e->active_rounding <= 0.08 * e->published_active);
        assert_true(e->published_active < e->published_params);
        assert_true(strlen(e->source) > 10);
    }
}

static void catalogue_names_are_unique_and_found(void **state) {
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        const sm_catalogue_entry *e = sm_catalogue_at(i);
        assert_ptr_equal(sm_catalogue_find(e->name, strlen(e->name)), e);
        char aliases[1024];
        snprintf(aliases, sizeof aliases, "%s", e->aliases);
        for (char *a = strtok(aliases, " "); a; a = strtok(NULL, " "))
            assert_ptr_equal(sm_catalogue_find(a, strlen(a)), e);
    }
    assert_null(sm_catalogue_at(sm_catalogue_count()));
    assert_null(sm_catalogue_find("", 0));
    assert_null(sm_catalogue_find("llama", 5));
    assert_null(sm_catalogue_find("llama-2-7b ", 11));
    assert_string_equal(sm_catalogue_find("LLaMA-3.1-8B", 12)->name, "llama-3.1-8b");
    assert_string_equal(sm_catalogue_find("Codestral!", 9)->name, "codestral-22b");
    assert_string_equal(sm_catalogue_find("qwen3-vl-235b", 13)->name, "qwen3-vl-235b-a22b");
    assert_null(sm_catalogue_find("gpt-oss", 7)); /* of two sizes */
    assert_null(sm_catalogue_find("qwen3-vl-235", 12));
}

static void components_add_up(void **state) {
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        sm_model m = load(sm_catalogue_at(i)->name);
        sm_params p = sm_model_params(&m);
        double sum = p.embedding + p.unembedding + p.attention + p.mlp + p.experts + p.router +
                     p.norm + p.other;
        assert_true(sum == p.total);
        assert_true(p.active <= p.total);
        assert_true(floor(p.total) == p.total);
        double layers = 0, active = 0;
        for (int l = 0; l < m.L; l++) {
            layers += sm_layer_params(&m, &m.kind[m.layer[l]], false);
            active += sm_layer_params(&m, &m.kind[m.layer[l]], true);
        }
        assert_true(p.total - layers ==
                    p.active + (m.active_omits_embedding ? p.embedding : 0) - active);
        assert_true(p.matmul_active < active + p.embedding + p.unembedding + p.other + 1);
    }
}

/* The row of docs/models.md. */
static void table_row(const sm_catalogue_entry *e, char *out, size_t size) {
    sm_model m = load(e->name);
    sm_params p = sm_model_params(&m);
    char total[32] = "exact", active[32] = "-";
    if (e->params_rounding > 0) snprintf(total, sizeof total, "%.4gB", e->published_params / 1e9);
    if (e->published_active > 0)
        snprintf(active, sizeof active, "%.4gB", e->published_active / 1e9);
    snprintf(out, size, "\n| %s | %.0f | %s | %.0f | %s | %.0f |\n", e->name, p.total, total,
             p.active, active, sm_model_kv_bytes_per_token(&m, SM_BF16));
}

static void the_documented_table_is_the_catalogue(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_source doc;
    sm_error err;
    if (sm_io_read("docs/models.md", arena, &doc, &err) != SM_OK) fail_msg("%s", err.sentence);
    char *text = sm_arena_copy(arena, doc.text, doc.length);
    for (size_t i = 0; i < sm_catalogue_count(); i++) {
        char row[256];
        table_row(sm_catalogue_at(i), row, sizeof row);
        if (!strstr(text, row)) fail_msg("docs/models.md lacks the row:%s", row);
    }
    sm_arena_free(arena);
}

/* ---- lists of tensors, as in the checkpoints ---- */

typedef struct tensor {
    const char *name;
    double rows, columns, copies;
} tensor;

static double elements(const tensor *t, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += t[i].rows * t[i].columns * t[i].copies;
    return sum;
}
#define ELEMENTS(list) elements(list, sizeof(list) / sizeof *(list))

static void llama_tensor_by_tensor(void **state) {
    static const tensor t[] = {
        {"embed_tokens", 128256, 8192, 1},
        {"lm_head", 128256, 8192, 1},
        {"norm", 8192, 1, 1},
        {"q_proj", 8192, 8192, 80},
        {"k_proj", 1024, 8192, 80},
        {"v_proj", 1024, 8192, 80},
        {"o_proj", 8192, 8192, 80},
        {"gate_proj", 28672, 8192, 80},
        {"up_proj", 28672, 8192, 80},
        {"down_proj", 8192, 28672, 80},
        {"input_layernorm", 8192, 1, 80},
        {"post_attention_layernorm", 8192, 1, 80},
    };
    assert_true(ELEMENTS(t) == 70553706496.0);
    assert_true(count("llama-3.1-70b") == ELEMENTS(t));
}

static void gpt2_tensor_by_tensor(void **state) {
    static const tensor t[] = {
        {"wte", 50257, 768, 1},
        {"wpe", 1024, 768, 1},
        {"ln_f", 768, 2, 1},
        {"ln_1", 768, 2, 12},
        {"ln_2", 768, 2, 12},
        {"c_attn.weight", 768, 2304, 12},
        {"c_attn.bias", 2304, 1, 12},
        {"attn.c_proj.weight", 768, 768, 12},
        {"attn.c_proj.bias", 768, 1, 12},
        {"c_fc.weight", 768, 3072, 12},
        {"c_fc.bias", 3072, 1, 12},
        {"mlp.c_proj.weight", 3072, 768, 12},
        {"mlp.c_proj.bias", 768, 1, 12},
    };
    assert_true(count("gpt2") == ELEMENTS(t));
    sm_model m = load("gpt2");
    sm_params p = sm_model_params(&m);
    assert_true(p.unembedding == 0);
    assert_true(p.embedding == 768.0 * (50257 + 1024));
    /* weights of the layers, and the tied unembedding once */
    assert_true(p.matmul_active == 12.0 * 12 * 768 * 768 + 50257.0 * 768);
}

static void deepseek_tensor_by_tensor(void **state) {
    static const tensor t[] = {
        {"embed_tokens", 129280, 7168, 1},
        {"lm_head", 129280, 7168, 1},
        {"norm", 7168, 1, 1},
        {"q_a_proj", 1536, 7168, 61},
        {"q_a_layernorm", 1536, 1, 61},
        {"q_b_proj", 128 * 192, 1536, 61},
        {"kv_a_proj_with_mqa", 512 + 64, 7168, 61},
        {"kv_a_layernorm", 512, 1, 61},
        {"kv_b_proj", 128 * 256, 512, 61},
        {"o_proj", 7168, 128 * 128, 61},
        {"input_layernorm", 7168, 1, 61},
        {"post_attention_layernorm", 7168, 1, 61},
        {"dense gate, up, down", 7168, 18432, 3 * 3},
        {"experts gate, up, down", 7168, 2048, 58.0 * 256 * 3},
        {"shared gate, up, down", 7168, 2048, 58.0 * 3},
        {"router", 256, 7168, 58},
        {"e_score_correction_bias", 256, 1, 58},
    };
    assert_true(ELEMENTS(t) == 671026419200.0);
    assert_true(count("deepseek-v3") == ELEMENTS(t));
}

static void gpt_oss_tensor_by_tensor(void **state) {
    static const tensor t[] = {
        {"embed_tokens", 201088, 2880, 1},
        {"lm_head", 201088, 2880, 1},
        {"norm", 2880, 1, 1},
        {"q_proj", 4096, 2880, 24},
        {"q bias", 4096, 1, 24},
        {"k_proj, v_proj", 512, 2880, 48},
        {"k and v bias", 512, 1, 48},
        {"o_proj", 2880, 4096, 24},
        {"o bias", 2880, 1, 24},
        {"sinks", 64, 1, 24},
        {"layer norms", 2880, 1, 48},
        {"router", 32, 2880, 24},
        {"router bias", 32, 1, 24},
        {"gate_up_proj", 2880, 5760, 24.0 * 32},
        {"gate_up bias", 5760, 1, 24.0 * 32},
        {"down_proj", 2880, 2880, 24.0 * 32},
        {"down bias", 2880, 1, 24.0 * 32},
    };
    assert_true(ELEMENTS(t) == 20914757184.0);
    assert_true(count("gpt-oss-20b") == ELEMENTS(t));
}

/* A narrow embedding with projections, no final norm, and a position table with two more rows. */
static void opt_350m_tensor_by_tensor(void **state) {
    static const tensor t[] = {
        {"embed_tokens", 50272, 512, 1},
        {"embed_positions", 2050, 1024, 1},
        {"project_in, project_out", 512, 1024, 2},
        {"q, k, v, out", 1024, 1024, 4 * 24},
        {"their biases", 1024, 1, 4 * 24},
        {"fc1, fc2", 1024, 4096, 2 * 24},
        {"fc1 bias", 4096, 1, 24},
        {"fc2 bias", 1024, 1, 24},
        {"norms", 1024, 2, 2 * 24},
    };
    assert_true(ELEMENTS(t) == 331196416.0);
    assert_true(count("opt-350m") == ELEMENTS(t));
}

/* ---- attention ---- */

/* The pairs of a causal mask, one by one. */
static double counted_keys(const sm_layer_kind *k, int T) {
    double pairs = 0;
    for (int i = 0; i < T; i++)
        for (int j = 0; j <= i; j++)
            pairs += (k->window == 0 || i - j < k->window) &&
                     (k->chunk == 0 || i / k->chunk == j / k->chunk);
    return pairs / T;
}

static void keys_are_the_pairs_of_the_mask(void **state) {
    for (int T = 1; T <= 40; T++)
        for (int reach = 0; reach <= 45; reach++) {
            sm_layer_kind windowed = {.window = reach}, chunked = {.chunk = reach};
            double w = counted_keys(&windowed, T), c = counted_keys(&chunked, T);
            assert_true(fabs(sm_layer_keys(&windowed, T, true) - w) < 1e-9);
            assert_true(fabs(sm_layer_keys(&chunked, T, true) - c) < 1e-9);
        }
}

static void keys_of_the_square(void **state) {
    sm_layer_kind full = {0}, window = {.window = 128}, chunk = {.chunk = 8192};
    assert_true(sm_layer_keys(&full, 4096, false) == 4096);
    assert_true(sm_layer_keys(&window, 4096, false) == 128);
    assert_true(sm_layer_keys(&window, 64, false) == 64);
    assert_true(sm_layer_keys(&chunk, 32768, false) == 8192);
    assert_true(sm_layer_keys(&full, 0, true) == 0);
    assert_true(sm_layer_keys(&full, -1, true) == 0);
    assert_true(sm_layer_keys(&full, (double)NAN, true) == 0);
    assert_true(sm_layer_keys(&full, 1, true) == 1);
    /* the exact causal mean, not T/2 */
    assert_true(sm_layer_keys(&full, 4096, true) == 2048.5);
}

static void keys_grow_with_sequence_and_window(void **state) {
    for (int T = 1; T < 60; T++)
        for (int w = 1; w < 60; w++) {
            sm_layer_kind k = {.window = w}, wider = {.window = w + 1};
            assert_true(sm_layer_keys(&k, T + 1, true) >= sm_layer_keys(&k, T, true));
            assert_true(sm_layer_keys(&wider, T, true) >= sm_layer_keys(&k, T, true));
            assert_true(sm_layer_keys(&k, T, true) <= sm_layer_keys(&k, T, false));
        }
}

/* ---- FLOPs ---- */

/* The book, chapter "Transformer math": 2 x parameters, and 4 T N H per layer and token. */
static void flops_of_llama_follow_the_book(void **state) {
    sm_model m = load("llama-3.1-70b");
    sm_flops f = sm_model_forward_flops(&m, 8192, false);
    double body = 80.0 * (8192.0 * (64 + 8 + 8 + 64) * 128 + 3.0 * 8192 * 28672);
    assert_true(f.matmul == 2 * (body + 128256.0 * 8192));
    assert_true(f.attention == 80.0 * 4 * 8192 * 64 * 128);
    assert_true(f.total == f.matmul + f.attention);
    assert_true(sm_model_train_flops(&m, 8192, false) == 3 * f.total);
    sm_flops causal = sm_model_forward_flops(&m, 8192, true);
    assert_true(causal.attention == f.attention * 8193 / 16384);
}

/* Latent attention: the scores take the 192 rotary and other sizes, the values 128. */
static void flops_of_latent_attention(void **state) {
    sm_model m = load("deepseek-v3");
    sm_flops f = sm_model_forward_flops(&m, 4096, false);
    assert_true(f.attention == 61.0 * 2 * 128 * (192 + 128) * 4096);
    double attention =
        7168.0 * 1536 + 1536.0 * 128 * 192 + 7168.0 * 576 + 512.0 * 128 * 256 + 128.0 * 128 * 7168;
    double expert = 3.0 * 7168 * 2048;
    double weights = 61 * attention + 3 * 3.0 * 7168 * 18432 + 58 * (9 * expert + 7168.0 * 256) +
                     129280.0 * 7168;
    assert_true(f.matmul == 2 * weights);
}

static void windows_bound_the_flops(void **state) {
    sm_model m = load("gpt-oss-20b");
    double T = 8192, one = 2.0 * 64 * (64 + 64);
    double local = 128.0 * 129 / 2 + (T - 128) * 128, global = T * (T + 1) / 2;
    sm_flops f = sm_model_forward_flops(&m, T, true);
    assert_true(fabs(f.attention - 12 * one * (local + global) / T) < 1e-3);
    /* within the window MiMo attends to all: values are narrower than keys */
    sm_model mimo = load("mimo-v2-flash");
    sm_flops g = sm_model_forward_flops(&mimo, 128, false);
    assert_true(g.attention == 48.0 * 2 * 64 * (192 + 128) * 128);
}

/* Only experts in use work; more of them work more. */
static void experts_in_use_work(void **state) {
    sm_model m = load("mixtral-8x7b");
    double two = sm_model_params(&m).matmul_active, total = sm_model_params(&m).total;
    m = catalogue_with("mixtral-8x7b", "\"num_experts_per_tok\": 3");
    assert_true(sm_model_params(&m).matmul_active - two == 32.0 * 3 * 4096 * 14336);
    assert_true(sm_model_params(&m).total == total);
    m = catalogue_with("mixtral-8x7b", "\"num_experts_per_tok\": 8");
    assert_true(sm_model_params(&m).active == total);
}

/* Norms, biases and sinks are parameters without matmul work. */
static void biases_and_norms_do_no_matmul(void **state) {
    sm_model m = load("llama-3.1-8b"), biased;
    double work = sm_model_params(&m).matmul_active, total = sm_model_params(&m).total;
    biased = catalogue_with("llama-3.1-8b", "\"attention_bias\": true, \"mlp_bias\": true");
    double biases = 32.0 * (4096 + 1024 + 1024 + 4096 + 2 * 14336 + 4096);
    assert_true(sm_model_params(&biased).total - total == biases);
    assert_true(sm_model_params(&biased).matmul_active == work);
}

/* ---- KV cache ---- */

static double kv_per_token(const char *name, sm_dtype kv) {
    sm_model m = load(name);
    return sm_model_kv_bytes_per_token(&m, kv);
}

static void kv_of_a_token(void **state) {
    assert_true(kv_per_token("llama-3.1-70b", SM_BF16) == 2.0 * 80 * 8 * 128 * 2);
    assert_true(kv_per_token("llama-3.1-70b", SM_INT8) == 2.0 * 80 * 8 * 128);
    assert_true(kv_per_token("llama-2-13b", SM_BF16) == 819200); /* the book, chapter 7 */
    assert_true(kv_per_token("deepseek-v3", SM_BF16) == 61.0 * (512 + 64) * 2);
    /* the indexer's keys are in fp8, whatever the cache is in (arXiv 2512.02556) */
    assert_true(kv_per_token("deepseek-v3.2", SM_BF16) == 61.0 * ((512 + 64) * 2 + 128));
    assert_true(kv_per_token("deepseek-v3.2", SM_INT8) == 61.0 * (512 + 64 + 128));
    assert_true(kv_per_token("falcon-7b", SM_BF16) == 32.0 * 2 * 64 * 2);
    assert_true(kv_per_token("mimo-v2-flash", SM_INT8) == 39.0 * 8 * 320 + 9.0 * 4 * 320);
}

static void kv_of_a_sequence_stops_at_the_window(void **state) {
    sm_model m = load("gpt-oss-20b");
    double layer = 2.0 * 8 * 64 * 2;
    assert_true(sm_model_kv_bytes(&m, 100, SM_BF16) == 24 * layer * 100);
    assert_true(sm_model_kv_bytes(&m, 5000, SM_BF16) == 12 * layer * (128 + 5000));
    sm_model scout = load("llama-4-scout");
    layer = 2.0 * 8 * 128;
    double tokens = 36 * 8192.0 + 12 * 100000.0;
    assert_true(sm_model_kv_bytes(&scout, 100000, SM_INT8) == layer * tokens);
}

static int layers_of_kind(const sm_model *m, const char *name) {
    int n = 0;
    for (int i = 0; i < m->L; i++) n += strcmp(m->kind[m->layer[i]].name, name) == 0;
    return n;
}

static void mixed_models_have_their_layers(void **state) {
    static const struct {
        const char *model, *kind;
        int layers;
    } rows[] = {
        {"deepseek-v3", "dense", 3},
        {"deepseek-v3", "moe", 58},
        {"kimi-k2", "dense", 1},
        {"gemma-2-27b", "local dense", 23},
        {"gemma-3-27b", "local dense", 52},
        {"gemma-3-27b", "global dense", 10},
        {"gpt-oss-120b", "local moe", 18},
        {"gpt-oss-120b", "global moe", 18},
        {"llama-4-scout", "chunked moe", 36},
        {"llama-4-maverick", "chunked dense", 24},
        {"llama-4-maverick", "chunked moe", 12},
        {"llama-4-maverick", "global moe", 12},
        {"mimo-v2-flash", "local moe", 39},
        {"mimo-v2-flash", "global dense", 1},
        {"gemma-4-26b-a4b", "local dense+moe", 25},
        {"mistral-7b", "local dense", 32},
        {"llama-3.1-8b", "dense", 32},
        {"qwen3-30b-a3b", "moe", 48},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sm_model m = load(rows[i].model);
        if (layers_of_kind(&m, rows[i].kind) != rows[i].layers)
            fail_msg("%s: %d layers are \"%s\"", rows[i].model, layers_of_kind(&m, rows[i].kind),
                     rows[i].kind);
    }
}

#define PLAIN(more)                                                                                \
    "{\"model_type\": \"transformer\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "            \
    "\"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"vocab_size\": 100, "                \
    "\"intermediate_size\": 96" more "}"

static double plain_total(const char *config) {
    sm_model m = model_of("plain", config);
    return sm_model_params(&m).total;
}

/* 64 wide, 8 heads of 8 and 2 KV heads: attention 64 (8 + 2 + 2 + 8) 8 = 10240; matrices of the MLP
 * 64 x 96 = 6144. */
static void a_plain_transformer_says_its_options(void **state) {
    double tables = 2 * 6400, layer = 10240 + 3 * 6144 + 2 * 64;
    assert_true(plain_total(PLAIN("")) == 2 * layer + 64 + tables);
    assert_true(plain_total(PLAIN(", \"gated_mlp\": false")) == 2 * (layer - 6144) + 64 + tables);
    assert_true(plain_total(PLAIN(", \"layer_norm\": true")) == 2 * (layer + 128) + 128 + tables);
    /* side by side there is one norm for both halves */
    sm_model m = model_of("plain", PLAIN(", \"use_parallel_residual\": true"));
    assert_true(sm_model_params(&m).total == 2 * (layer - 64) + 64 + tables);
    /* the second layer: 4 experts of 32, a shared one of 48, a router */
    double sparse = layer - 3 * 6144 + 3 * 64 * (4 * 32 + 48) + 4 * 64;
    m = model_of("plain", PLAIN(", \"num_experts\": 4, \"num_experts_per_tok\": 1, "
                                "\"moe_intermediate_size\": 32, \"n_shared_experts\": 1, "
                                "\"shared_expert_intermediate_size\": 48, "
                                "\"mlp_layer_types\": [\"dense\", \"sparse\"]"));
    assert_true(sm_model_params(&m).total == layer + sparse + 64 + tables);
    m = model_of("plain", PLAIN(", \"sliding_window\": 16, "
                                "\"layer_types\": [\"sliding_attention\", \"full_attention\"]"));
    assert_true(m.kind[m.layer[0]].window == 16 && m.kind[m.layer[1]].window == 0);
    /* Q whole, keys and values through rank 32: 64 x 8 x 12 + 64 (32 + 4) + 32 x 8 (8 + 8) + 8 x 8
     * x 64 */
    double latent = 6144 + 2304 + 4096 + 4096 + 32;
    assert_true(plain_total(PLAIN(", \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 8, "
                                  "\"qk_rope_head_dim\": 4, \"v_head_dim\": 8")) ==
                2 * (layer - 10240 + latent) + 64 + tables);
    /* a third layer with (V + 2D)/3 = 76 more of width, down to a multiple of 128 */
    assert_int_equal(model_of("plain", PLAIN(", \"num_nextn_predict_layers\": 1")).L, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_transformer_says_its_options),
        cmocka_unit_test(catalogue_has_the_published_totals),
        cmocka_unit_test(catalogue_roundings_are_tight),
        cmocka_unit_test(catalogued_writing_begins),
        cmocka_unit_test(tables_of_words_before_are_no_vocabulary),
        cmocka_unit_test(catalogue_names_are_unique_and_found),
        cmocka_unit_test(components_add_up),
        cmocka_unit_test(the_documented_table_is_the_catalogue),
        cmocka_unit_test(llama_tensor_by_tensor),
        cmocka_unit_test(gpt2_tensor_by_tensor),
        cmocka_unit_test(deepseek_tensor_by_tensor),
        cmocka_unit_test(gpt_oss_tensor_by_tensor),
        cmocka_unit_test(opt_350m_tensor_by_tensor),
        cmocka_unit_test(keys_are_the_pairs_of_the_mask),
        cmocka_unit_test(keys_of_the_square),
        cmocka_unit_test(keys_grow_with_sequence_and_window),
        cmocka_unit_test(flops_of_llama_follow_the_book),
        cmocka_unit_test(flops_of_latent_attention),
        cmocka_unit_test(windows_bound_the_flops),
        cmocka_unit_test(experts_in_use_work),
        cmocka_unit_test(biases_and_norms_do_no_matmul),
        cmocka_unit_test(kv_of_a_token),
        cmocka_unit_test(kv_of_a_sequence_stops_at_the_window),
        cmocka_unit_test(mixed_models_have_their_layers),
    };
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
