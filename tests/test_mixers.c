/* Shipped families whose layers are not plain attention, against the reference library: totals of
 * small models, matrix FLOPs of a layer as torch counts them, states and caches as its cache
 * objects have them; and every line of every kind is found in each phase. */
#include "unit.h"
#include "scalemodel/architecture.h"

#include "small_models.h"

#include <stdio.h>
#include <string.h>

typedef struct made {
    sm_arena *arena;
    const sm_architecture *a;
    sm_error err;
} made;

static void failed(const made *m, const char *config) {
    fail_msg("%s:%d:%d: %s\n%s", m->err.source, m->err.line, m->err.column, m->err.sentence,
             config);
}

static made of(const char *config) {
    made m = {.arena = sm_arena_new()};
    sm_source source = sm_source_of("config", config);
    if (sm_architecture_new(sm_library_shipped(), &source, NULL, m.arena, &m.a, &m.err))
        failed(&m, config);
    return m;
}

static void totals_are_the_reference_classes(void **state) {
    for (size_t i = 0; i < TOTALS; i++) {
        const struct family_total *wanted = total_at(i);
        made m = of(wanted->config);
        const sm_counts *counts = sm_architecture_counts(m.a);
        if (counts->total + counts->apart != wanted->total)
            fail_msg("%.0f, and %.0f apart, where the class has %.0f: %s", counts->total,
                     counts->apart, wanted->total, wanted->config);
        sm_arena_free(m.arena);
    }
}

static const sm_text_lines *lines_of(made *m, int kind, sm_text_phase phase, const char *config) {
    const sm_text_lines *lines;
    const double T = phase == SM_TEXT_DECODE ? 1 : 256;
    const sm_text_lines_of wanted = {kind, phase, phase == SM_TEXT_DECODE, T, 256, false};
    if (sm_architecture_lines(m->a, &wanted, m->arena, &lines, &m->err)) failed(m, config);
    return lines;
}

/* One text holds a layer's forms: each phase finds its lines, and the same weights. */
static void every_phase_finds_its_lines(void **state) {
    for (size_t i = 0; i < TOTALS; i++) {
        const char *config = total_at(i)->config;
        made m = of(config);
        for (int kind = 0; kind < sm_architecture_kinds(m.a); kind++)
            for (int phase = SM_TEXT_TRAIN; phase <= SM_TEXT_DECODE; phase++) {
                const sm_text_lines *lines = lines_of(&m, kind, (sm_text_phase)phase, config);
                double weights = 0;
                for (int a = 0; a < lines->arrays; a++)
                    if (lines->array[a].role == SM_TEXT_WEIGHT && lines->array[a].piece < 0 &&
                        lines->array[a].shared == 0)
                        weights += lines->array[a].elements;
                if (weights > sm_architecture_kind_params(m.a, kind, false))
                    fail_msg("phase %d of %s has weights of its own: %s", phase, lines->name,
                             config);
            }
        sm_arena_free(m.arena);
    }
}

/* ---- FLOPs, states and caches ---- */

/* Matrix FLOPs of one layer of 256 positions as torch.utils.flop_counter counts those of the
 * reference class, and by how much the text has more (less where negative):
 * - Mamba 2: the class takes C·Bᵀ for each head rather than each group, and carries states between
 *   chunks by a product;
 * - the delta rules: the class solves a triangle where the text multiplies by its inverse, and
 * takes Q·Kᵀ for each head of values. state: what the class's cache holds of fixed size, with one
 * tap less of each convolution (the newest is the position itself); per_token: what it holds for
 * each position. */
static const struct mixer {
    const char *config, *text;
    double matrix, more, state, per_token;
} mixers[] = {
    {"{\"model_type\":\"mamba\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"state_size\":16,\"layer_norm_epsilon\":1e-5}",
     "half_block", 16252928, 0, 2 * (128 * 16 + 128 * 3), 0},
    {"{\"model_type\":\"mamba2\",\"vocab_size\":96,\"hidden_size\":64,\"num_heads\":8,"
     "\"head_dim\":16,\"n_groups\":2,\"state_size\":16,\"num_hidden_layers\":2,"
     "\"chunk_size\":32}",
     "half_block", 21565440, -1572864 - 331776, 2 * (8 * 16 * 16 + 192 * 3), 0},
    {"{\"model_type\":\"qwen3_next\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
     "\"intermediate_size\":96,\"head_dim\":16,\"linear_num_key_heads\":2,"
     "\"linear_num_value_heads\":4,\"linear_key_head_dim\":16,\"linear_value_head_dim\":8,"
     "\"num_experts\":0,\"layer_types\":[\"linear_attention\",\"full_attention\"]}",
     "block", 20971520, 1048576 + 2097152 - 1048576, 4 * 16 * 8 + 96 * 3, 64},
    {"{\"model_type\":\"kimi_linear\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
     "\"intermediate_size\":96,\"kv_lora_rank\":16,\"qk_rope_head_dim\":8,"
     "\"qk_nope_head_dim\":16,\"v_head_dim\":16,\"num_experts\":4,"
     "\"num_experts_per_token\":2,\"moe_intermediate_size\":16,\"linear_head_dim\":16,"
     "\"linear_num_heads\":4,\"first_k_dense_replace\":2,"
     "\"layer_types\":[\"linear_attention\",\"full_attention\"]}",
     "block", 27918336, 2097152 + 2097152, 4 * 16 * 16 + 192 * 3, 16 + 8},
    {"{\"model_type\":\"lfm2\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
     "\"layer_types\":[\"conv\",\"full_attention\"]}",
     "block", 33554432, 0, 64 * 2, 64},
    {"{\"model_type\":\"jamba\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":96,"
     "\"num_experts\":1,\"attn_layer_period\":2,\"attn_layer_offset\":1}",
     "block", 25690112, 0, 128 * 16 + 128 * 3, 64},
    {"{\"model_type\":\"rwkv\",\"vocab_size\":96,\"hidden_size\":64,\"num_hidden_layers\":2,"
     "\"layer_norm_epsilon\":1e-5}",
     "ln_block", 27262976, 0, 2 * 5 * 64, 0},
    {"{\"model_type\":\"deepseek_v32\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
     "\"intermediate_size\":96,\"kv_lora_rank\":16,\"qk_rope_head_dim\":8,"
     "\"qk_nope_head_dim\":16,\"v_head_dim\":16,\"q_lora_rank\":24,\"index_n_heads\":2,"
     "\"index_head_dim\":16,\"index_topk\":64,\"n_routed_experts\":8,\"n_group\":2,"
     "\"topk_group\":1}",
     NULL, 0, 0, 0, 2 * (16 + 8 + 16)},
    {"{\"model_type\":\"falcon_h1\",\"vocab_size\":96,\"hidden_size\":64,"
     "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
     "\"intermediate_size\":96,\"head_dim\":16,\"mamba_n_heads\":8,\"mamba_d_head\":16,"
     "\"mamba_d_ssm\":128,\"mamba_d_state\":16,\"mamba_n_groups\":2,"
     "\"mamba_chunk_size\":32}",
     NULL, 0, 0, 2 * (8 * 16 * 16 + 192 * 3), 2 * 64},
};

/* Of the first kind of this text that attends to nothing. */
static double matrix_of(made *m, const struct mixer *mixer) {
    for (int kind = 0; kind < sm_architecture_kinds(m->a); kind++) {
        if (strcmp(sm_architecture_kind(m->a, kind, &(int){0})->text, mixer->text) != 0) continue;
        const sm_text_lines *lines = lines_of(m, kind, SM_TEXT_TRAIN, mixer->config);
        double sum = 0;
        bool attends = false;
        for (int i = 0; i < lines->lines; i++) {
            attends |= lines->line[i].op == SM_OPERATOR_ATTENTION;
            if (lines->line[i].op != SM_OPERATOR_INVERSE) sum += lines->line[i].matrix_flops;
        }
        if (!attends) return sum;
    }
    fail_msg("no layer without attention: %s", mixer->config);
    return 0;
}

static void mixers_work_and_keep_as_the_reference(void **state) {
    for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++) {
        made m = of(mixers[i].config);
        sm_kept kept;
        if (sm_architecture_kept(m.a, 256, &kept, &m.err)) failed(&m, mixers[i].config);
        if (kept.state != mixers[i].state || kept.per_token != mixers[i].per_token)
            fail_msg("state %.0f for %.0f, %.0f a token for %.0f: %s", kept.state, mixers[i].state,
                     kept.per_token, mixers[i].per_token, mixers[i].config);
        double matrix = mixers[i].text ? matrix_of(&m, &mixers[i]) : 0;
        if (matrix != mixers[i].matrix + mixers[i].more)
            fail_msg("%.0f matrix FLOPs for %.0f and %.0f more: %s", matrix, mixers[i].matrix,
                     mixers[i].more, mixers[i].config);
        sm_arena_free(m.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_the_reference_classes),
        cmocka_unit_test(every_phase_finds_its_lines),
        cmocka_unit_test(mixers_work_and_keep_as_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
