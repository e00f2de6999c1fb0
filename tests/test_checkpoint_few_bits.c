/* Checkpoints of 8 and 4 bits: what a generator makes of them held as they are stored is what it
 * makes of the same numbers in single precision, on one rank and on several, and it holds the bytes
 * that the planner counts for the checkpoint. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model_of.h"
#include "scalemodel/run_generate.h"
#include "train_checkpoint.h"
#include "unit.h"

enum { WORDS = 256, D = 256, F = 384, KV = 128, BLOCK = 128, TOKENS = 9, NORMS = 5 * D };

static const char config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 384, "
    "\"vocab_size\": 256, \"max_position_embeddings\": 64, \"torch_dtype\": \"bfloat16\", "
    "\"tie_word_embeddings\": false, \"quantization_config\": %s}";

typedef enum form { BLOCKS, ALL, ROWS, FORMS } form;
static const struct {
    const char *quantization, *type, *scale; /* behind the name of a module */
    sm_dtype dtype;
    sm_element element;
} forms[FORMS] = {
    [BLOCKS] = {"{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}", "F8_E4M3",
                ".weight_scale_inv", SM_FP8, SM_ELEMENT_E4M3},
    [ALL] = {"{\"quant_method\": \"fp8\"}", "F8_E4M3", ".weight_scale", SM_FP8, SM_ELEMENT_E4M3},
    [ROWS] = {"{\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true}", "I8", ".SCB", SM_INT8,
              SM_ELEMENT_S8},
};

/* ---- a file, as other tools write it ---- */

typedef struct writer {
    FILE *header, *data;
    size_t at;
    sm_rng rng;
} writer;

static void add(writer *w, const char *name, const char *end, const char *type, size_t rows,
                size_t columns, size_t bytes) {
    fprintf(w->header, "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", w->at ? "," : "", name, end,
            type);
    fprintf(w->header, columns ? "%zu,%zu" : "%zu", rows, columns);
    fprintf(w->header, "],\"data_offsets\":[%zu,%zu]}", w->at, w->at + bytes);
    w->at += bytes;
}

static void add_halves(writer *w, const char *name, const char *end, size_t rows, size_t columns,
                       double middle) {
    size_t n = rows * (columns ? columns : 1);
    add(w, name, end, "BF16", rows, columns, 2 * n);
    for (size_t i = 0; i < n; i++) {
        float x = (float)(middle + (sm_rng_unit(&w->rng) - 0.5) / 4);
        uint16_t half;
        sm_elements_write(SM_ELEMENT_BF16, &half, 0, 1, &x);
        fwrite(&half, sizeof half, 1, w->data);
    }
}

/* Any code but those of no number; 127 of a row, as bitsandbytes counts, is about a quarter. */
static void add_matrix(writer *w, form is, const char *name, size_t rows, size_t columns) {
    size_t high = is == BLOCKS ? rows / BLOCK : is == ROWS ? rows : 1;
    size_t wide = is == BLOCKS ? columns / BLOCK : 1;
    add(w, name, ".weight", forms[is].type, rows, columns, rows * columns);
    for (size_t i = 0; i < rows * columns; i++) {
        int code = (int)sm_rng_below(&w->rng, 255) - 127;
        fputc(is == ROWS ? code : code < 0 ? 0x80 | (-code % 0x7f) : code % 0x7f, w->data);
    }
    add(w, name, forms[is].scale, "F32", high, is == BLOCKS ? wide : 0, 4 * high * wide);
    for (size_t i = 0; i < high * wide; i++) {
        float scale = (float)(sm_rng_unit(&w->rng) + 0.1) / (is == ROWS ? 4 : 2000);
        fwrite(&scale, sizeof scale, 1, w->data);
    }
}

static void write_layer(writer *w, form is, int layer) {
    static const struct {
        const char *name;
        size_t rows, columns;
    } matrix[] = {{"self_attn.q_proj", D, D},  {"self_attn.k_proj", KV, D},
                  {"self_attn.v_proj", KV, D}, {"self_attn.o_proj", D, D},
                  {"mlp.gate_proj", F, D},     {"mlp.up_proj", F, D},
                  {"mlp.down_proj", D, F}};
    char name[64];
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
        snprintf(name, sizeof name, "model.layers.%d.%s", layer, matrix[i].name);
        add_matrix(w, is, name, matrix[i].rows, matrix[i].columns);
    }
    snprintf(name, sizeof name, "model.layers.%d.input_layernorm", layer);
    add_halves(w, name, ".weight", D, 0, 1);
    snprintf(name, sizeof name, "model.layers.%d.post_attention_layernorm", layer);
    add_halves(w, name, ".weight", D, 0, 1);
}

typedef struct text_pair { /* a header and its data, as they grow */
    char *header, *data;
    size_t length, bytes;
} text_pair;

static void begin(writer *w, text_pair *text) {
    *w = (writer){.rng = {7}};
    w->header = open_memstream(&text->header, &text->length);
    w->data = open_memstream(&text->data, &text->bytes);
    assert_true(w->header && w->data);
    fputc('{', w->header);
}

static void end(writer *w, text_pair *text, const char *path) {
    fputc('}', w->header);
    assert_true(!fclose(w->header) && !fclose(w->data) && text->bytes == w->at);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < 8; i++) fputc((int)(text->length >> 8 * i & 0xff), file);
    fwrite(text->header, 1, text->length, file);
    fwrite(text->data, 1, text->bytes, file);
    assert_int_equal(fclose(file), 0);
    free(text->header);
    free(text->data);
}

static void write_file(form is, const char *path) {
    text_pair text;
    writer w;
    begin(&w, &text);
    for (int layer = 0; layer < 2; layer++) write_layer(&w, is, layer);
    add_halves(&w, "model.embed_tokens", ".weight", WORDS, D, 0);
    add_halves(&w, "lm_head", ".weight", WORDS, D, 0);
    add_halves(&w, "model.norm", ".weight", D, 0, 1);
    end(&w, &text, path);
}

/* ---- scores ---- */

typedef struct asked {
    const sm_train_setup *setup;
    const sm_safetensors *file;
    float score[TOKENS * WORDS];
    double held, apart;
} asked;

static sm_status ask(sm_communicator *world, void *context, sm_error *err) {
    static const int32_t word[4 * TOKENS] = {3, 99, 250, 17, 0, 8, 41, 200, 5};
    asked *q = context;
    const sm_train_setup *s = q->setup;
    sm_generator *g = NULL;
    size_t count[4] = {TOKENS};
    double held;
    sm_generator_result r = {.seconds = 0};
    float *score = sm_calloc((size_t)s->sequences * TOKENS * WORDS, sizeof *score);
    sm_status status = score ? sm_generator_new(world, s, NULL, &g, err) : sm_fail_memory(err);
    if (!status) status = train_checkpoint_take_weights(g, s->model, q->file, "file", err);
    if (!status) status = sm_generator_weight_bytes(g, &held, err);
    const sm_generator_pass pass = {TOKENS, word, count, true};
    if (!status) status = sm_generator_feed(g, &pass, score, &r, err);
    double apart = 0;
    for (int i = 0; i < SM_COLLECTIVE_COUNT; i++)
        apart += fabs(r.bytes_predicted[i] - r.bytes_counted[i]);
    if (!status) status = sm_run_all_reduce(world, &apart, 1, SM_ELEMENT_F64, err);
    if (!status && world->rank == 0) {
        memcpy(q->score, score, sizeof q->score);
        q->held = held;
        q->apart = apart;
    }
    sm_generator_free(g);
    sm_free(score);
    return status;
}

static void run(const sm_model *model, const sm_safetensors *file, sm_element element,
                const int *degree, asked *q) {
    sm_train_setup s;
    sm_error err = {.status = SM_OK};
    sm_train_setup_defaults(&s);
    s.model = model;
    s.tokens = TOKENS + 1;
    s.stored = element;
    s.ends_apart = true;
    s.by_rows = train_checkpoint_scales_rows(file);
    s.sequences = degree[1] * degree[2];
    s.degree[SM_AXIS_TENSOR] = degree[0];
    s.degree[SM_AXIS_FSDP] = degree[1];
    s.degree[SM_AXIS_DATA] = degree[2];
    *q = (asked){.setup = &s, .file = file};
    if (sm_run_threads(sm_train_setup_ranks(&s), ask, q, &err)) fail_msg("%s", err.sentence);
}

static void numbers_stay_as_they_are_stored(void **state) {
    static const int degrees[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 1}};
    static asked single, few;
    char path[64], text[1024];
    sm_error err;
    for (int is = 0; is < FORMS; is++) {
        sm_safetensors file;
        strcpy(path, "/tmp/few_bits.XXXXXX");
        int made = mkstemp(path);
        assert_true(made >= 0 && close(made) == 0);
        write_file((form)is, path);
        snprintf(text, sizeof text, config, forms[is].quantization);
        sm_model model = model_of("few", sm_arena_copy(models_arena(), text, strlen(text)));
        assert_true(model.stored.quantised && model.stored.type == forms[is].dtype);
        if (sm_io_safetensors_read(path, models_arena(), &file, &err)) fail_msg("%s", err.sentence);
        run(&model, &file, SM_ELEMENT_F32, degrees[0], &single);
        for (size_t d = 0; d < sizeof degrees / sizeof *degrees; d++) {
            run(&model, &file, forms[is].element, degrees[d], &few);
            double most = 0;
            for (int i = 0; i < TOKENS * WORDS; i++) {
                assert_true(fabsf(single.score[i] - few.score[i]) < 2e-5F);
                most = fmax(most, fabs((double)single.score[i]));
            }
            assert_true(most > 1 && few.apart == 0);
            if (d) continue;
            /* norms are in single precision here; of rows of 384 inputs each 128 have a scale */
            double rows = is == ROWS ? 2 * D * 2 * 4 : 0, all = is == ALL ? 0.001 * few.held : 0;
            assert_true(fabs(few.held - model.stored.bytes - 2 * NORMS - rows) <= all);
        }
        unlink(path);
    }
}

/* ---- experts in mxfp4, as gpt-oss has them ---- */

enum { MODEL = 64, INNER = 96, EXPERTS = 4, HEADS = 4, HEAD = 16, GROUP = 32 };
/* norms, biases, sinks and routers */
enum {
    SMALL = MODEL + 2 * (2 * MODEL + (HEADS + 4) * HEAD + MODEL + HEADS + EXPERTS * (MODEL + 1) +
                         EXPERTS * (2 * INNER + MODEL))
};

static const char gpt_oss[] =
    "{\"model_type\": \"gpt_oss\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
    "\"intermediate_size\": 96, \"num_local_experts\": 4, \"num_experts_per_tok\": 2, "
    "\"vocab_size\": 256, \"max_position_embeddings\": 64, \"torch_dtype\": \"bfloat16\", "
    "\"attention_bias\": true, \"tie_word_embeddings\": false%s}";

/* [E, out, in] in 4 bits, or the same numbers as [E, in, out] in single precision. */
static void add_experts(writer *w, bool packed, const char *name, size_t in, size_t out) {
    static const float of[8] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    static unsigned char code[EXPERTS * 2 * INNER * MODEL], scale[sizeof code / GROUP];
    size_t n = EXPERTS * in * out;
    assert_true(n <= sizeof code);
    for (size_t i = 0; i < n; i++) code[i] = (unsigned char)sm_rng_below(&w->rng, 16);
    for (size_t i = 0; i < n / GROUP; i++)
        scale[i] = (unsigned char)(120 + sm_rng_below(&w->rng, 5));
    if (packed) {
        add(w, name, "_blocks", "U8", EXPERTS * out * in / GROUP, GROUP / 2, n / 2);
        for (size_t i = 0; i < n; i += 2) fputc(code[i] | code[i + 1] << 4, w->data);
        add(w, name, "_scales", "U8", EXPERTS * out, in / GROUP, n / GROUP);
        fwrite(scale, 1, n / GROUP, w->data);
        return;
    }
    fprintf(w->header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%zu,%zu],", name, EXPERTS, in,
            out);
    fprintf(w->header, "\"data_offsets\":[%zu,%zu]}", w->at, w->at + 4 * n);
    w->at += 4 * n;
    for (size_t e = 0; e < EXPERTS; e++)
        for (size_t i = 0; i < in; i++)
            for (size_t o = 0; o < out; o++) {
                size_t at = (e * out + o) * in + i;
                float x = ldexpf(of[code[at] & 7], scale[at / GROUP] - 127);
                if (code[at] & 8) x = -x;
                fwrite(&x, sizeof x, 1, w->data);
            }
}

static void add_with_bias(writer *w, const char *name, size_t rows, size_t columns) {
    add_halves(w, name, ".weight", rows, columns, 0);
    add_halves(w, name, ".bias", rows, 0, 0);
}

static void write_gpt_oss(bool packed, const char *path) {
    char name[96], *at = name + strlen("model.layers.0.");
    text_pair text;
    writer w;
    begin(&w, &text);
    add_halves(&w, "model.embed_tokens", ".weight", WORDS, MODEL, 0);
    for (int layer = 0; layer < 2; layer++) {
        size_t room = sizeof name - (size_t)(at - name);
        snprintf(name, sizeof name, "model.layers.%d.", layer);
#define NAMED(text) (snprintf(at, room, "%s", text), name)
        add_with_bias(&w, NAMED("self_attn.q_proj"), HEADS * HEAD, MODEL);
        add_with_bias(&w, NAMED("self_attn.k_proj"), 2 * HEAD, MODEL);
        add_with_bias(&w, NAMED("self_attn.v_proj"), 2 * HEAD, MODEL);
        add_with_bias(&w, NAMED("self_attn.o_proj"), MODEL, HEADS * HEAD);
        add_halves(&w, NAMED("self_attn.sinks"), "", HEADS, 0, 0);
        add_with_bias(&w, NAMED("mlp.router"), EXPERTS, MODEL);
        add_experts(&w, packed, NAMED("mlp.experts.gate_up_proj"), MODEL, 2 * INNER);
        add_halves(&w, NAMED("mlp.experts.gate_up_proj_bias"), "", EXPERTS, 2 * INNER, 0);
        add_experts(&w, packed, NAMED("mlp.experts.down_proj"), INNER, MODEL);
        add_halves(&w, NAMED("mlp.experts.down_proj_bias"), "", EXPERTS, MODEL, 0);
        add_halves(&w, NAMED("input_layernorm"), ".weight", MODEL, 0, 1);
        add_halves(&w, NAMED("post_attention_layernorm"), ".weight", MODEL, 0, 1);
    }
    add_halves(&w, "model.norm", ".weight", MODEL, 0, 1);
    add_halves(&w, "lm_head", ".weight", WORDS, MODEL, 0);
    end(&w, &text, path);
}

static void packed_experts_are_read_and_held(void **state) {
    static const int degrees[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}};
    static const char quantised[] = ", \"quantization_config\": {\"quant_method\": \"mxfp4\"}";
    static asked plain, single, few;
    char path[2][64], text[1024];
    sm_safetensors file[2];
    sm_error err;
    for (int i = 0; i < 2; i++) {
        strcpy(path[i], "/tmp/packed.XXXXXX");
        int made = mkstemp(path[i]);
        assert_true(made >= 0 && close(made) == 0);
        write_gpt_oss(i, path[i]);
        if (sm_io_safetensors_read(path[i], models_arena(), &file[i], &err))
            fail_msg("%s", err.sentence);
    }
    snprintf(text, sizeof text, gpt_oss, quantised);
    sm_model model = model_of("packed", sm_arena_copy(models_arena(), text, strlen(text)));
    assert_true(model.stored.quantised && model.stored.type == SM_MXFP4);
    assert_true(train_checkpoint_stores(&file[1], SM_MXFP4));
    assert_true(!train_checkpoint_stores(&file[0], SM_MXFP4));
    run(&model, &file[0], SM_ELEMENT_F32, degrees[0], &plain);
    run(&model, &file[1], SM_ELEMENT_F32, degrees[0], &single);
    assert_memory_equal(plain.score, single.score, sizeof plain.score);
    for (size_t d = 0; d < sizeof degrees / sizeof *degrees; d++) {
        run(&model, &file[1], SM_ELEMENT_E2M1, degrees[d], &few);
        double most = 0;
        for (int i = 0; i < TOKENS * WORDS; i++) {
            assert_true(fabsf(single.score[i] - few.score[i]) < 2e-5F);
            most = fmax(most, fabs((double)single.score[i]));
        }
        assert_true(most > 0.1 && few.apart == 0);
        if (d == 0) assert_true(few.held == model.stored.bytes + 2 * SMALL);
    }
    for (int i = 0; i < 2; i++) unlink(path[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_stay_as_they_are_stored),
        cmocka_unit_test(packed_experts_are_read_and_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
