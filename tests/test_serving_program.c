/* The programs of serving against closed forms counted here by hand: the collectives of each
 * sharding, FLOPs, weights and cache of every catalogue model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "catalogue.h"
#include "scalemodel/program.h"
#include "partition.h"
#include <string.h>

enum { TENSOR = 1 << SM_AXIS_TENSOR | 1 << SM_AXIS_TENSOR_Q };
#define A(x) (1 << SM_AXIS_##x)

static sm_model model;
static sm_partition part;

static sm_arena *model_arena;

static void load(const char *name) {
    sm_arena_free(model_arena); /* the last model's */
    model_arena = sm_arena_new();
    catalogue_load(name, model_arena, &model);
}

static void partition(sm_piece piece, int kind, sm_rules rules) {
    sm_error err = {0};
    sm_program program;
    if (sm_program_build_serving(&model, piece, kind, &rules, &program, &err) != SM_OK)
        fail_msg("%s: %s", model.name, err.sentence);
    if (sm_program_partition_forward(&program, NULL, &part, &err) != SM_OK)
        fail_msg("%s %s: %s", model.name, program.name, err.sentence);
}

static void layer(int kind, sm_rules rules) { partition(SM_PIECE_LAYER, kind, rules); }

static int moe_kind(void) {
    for (int k = 0; k < model.kinds; k++)
        if (model.kind[k].E > 0) return k;
    return -1;
}

/* ---- what moves ---- */

typedef struct sum {
    int count;
    double bytes;
} sum;

/* Activations and cache that collectives of this kind move for each sequence. */
static sum moved(sm_collective op, int axes) {
    sum s = {0, 0};
    for (int i = 0; i < part.comms; i++) {
        const sm_comm *c = &part.comm[i];
        if (c->op != op || c->axes != axes || c->role == SM_ROLE_WEIGHT) continue;
        s.count++;
        s.bytes += c->bytes.base;
    }
    return s;
}

static void moves(sm_collective op, int axes, int count, double bytes) {
    sum s = moved(op, axes);
    if (s.count != count || s.bytes != bytes)
        fail_msg("%s: %s over %x: %d of %.0f bytes, expected %d of %.0f", model.name,
                 sm_collective_name(op), (unsigned)axes, s.count, s.bytes, count, bytes);
}

/* All collectives that touch an axis. */
static int touching(int axes) {
    int n = 0;
    for (int i = 0; i < part.comms; i++)
        n += (part.comm[i].axes & axes) && part.comm[i].role != SM_ROLE_WEIGHT;
    return n;
}

static const sm_comm *comm_of(sm_collective op, int axes) {
    for (int i = 0; i < part.comms; i++)
        if (part.comm[i].op == op && part.comm[i].axes == axes) return &part.comm[i];
    fail_msg("%s: no %s over %x", model.name, sm_collective_name(op), (unsigned)axes);
    return NULL;
}

static const sm_work *work_of(const char *name) {
    for (int i = 0; i < part.works; i++)
        if (strcmp(part.work[i].name, name) == 0) return &part.work[i];
    fail_msg("%s: no op %s", model.name, name);
    return NULL;
}

/* What writes the cache. */
static const sm_work *append_work(void) {
    for (int i = 0; i < part.works; i++)
        if (part.work[i].function == SM_FUNCTION_APPEND) return &part.work[i];
    fail_msg("%s: nothing writes the cache", model.name);
    return NULL;
}

static bool has_op(const char *name) {
    for (int i = 0; i < part.program.ops; i++)
        if (strcmp(part.program.op[i].name, name) == 0) return true;
    return false;
}

static bool ends_in(sm_function function) {
    return part.program.op[part.program.ops - 1].function == function;
}

/* Joining partial softmaxes: bf16 results with a maximum and a sum (fp32) for each head. */
static double joined(double heads, double value_size) { return heads * (2 * value_size + 8); }

static const char *const dense[] = {"llama-3.1-8b", "llama-3.1-70b", "llama-2-13b", "qwen3-32b",
                                    "gpt3-175b"};
enum { DENSE = sizeof dense / sizeof dense[0] };

/* ---- tensor ---- */

/* Book, chapter inference: each layer all-reduces its [B,D] twice, in attention and in the MLP. */
static void tensor_all_reduces_twice_a_layer(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        layer(0, (sm_rules){.decode = true});
        moves(SM_ALL_REDUCE, TENSOR, 2, 2 * 2.0 * model.D);
        assert_int_equal(touching(TENSOR), 2);
        const sm_comm *c = comm_of(SM_ALL_REDUCE, TENSOR);
        assert_true(c->bytes.per_sequence && c->bytes.per_query && !c->bytes.per_key);
        assert_int_equal(c->bytes.mask, A(DATA) | A(FSDP) | A(EXPERT));
        assert_int_equal(c->stream, SM_STREAM_BLOCKING);
    }
}

/* Attention and MLP side by side are one sum (PaLM, Pope et al. 2022, section 3.4). */
static void parallel_branches_all_reduce_once(void **state) {
    (void)state;
    static const char *const side_by_side[] = {"gpt-j-6b", "gpt-neox-20b", "pythia-12b"};
    static const int norms[] = {1, 2, 2};
    for (int i = 0; i < 3; i++) {
        load(side_by_side[i]);
        layer(0, (sm_rules){.decode = true});
        moves(SM_ALL_REDUCE, TENSOR, 1, 2.0 * model.D);
        assert_int_equal(touching(TENSOR), 1);
        layer(0, (sm_rules){.seq = true});
        moves(SM_REDUCE_SCATTER, TENSOR, 1, 2.0 * model.D);
        moves(SM_ALL_GATHER, TENSOR, norms[i], norms[i] * 2.0 * model.D);
        assert_int_equal(touching(TENSOR), 1 + norms[i]);
    }
}

static void long_prefill_shards_the_residual_stream(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        layer(0, (sm_rules){.seq = true});
        moves(SM_ALL_GATHER, TENSOR, 2, 2 * 2.0 * model.D);
        moves(SM_REDUCE_SCATTER, TENSOR, 2, 2 * 2.0 * model.D);
        assert_int_equal(touching(TENSOR), 4);
        assert_int_equal(part.boundary.mask & TENSOR, TENSOR);
    }
}

static void head_and_embedding_move_little(void **state) {
    (void)state;
    load("llama-3.1-70b");
    partition(SM_PIECE_HEAD, 0, (sm_rules){.decode = true});
    moves(SM_ALL_REDUCE, TENSOR, 1, 4);
    assert_int_equal(touching(TENSOR), 1);
    assert_true(ends_in(SM_FUNCTION_SAMPLE));
    assert_true(work_of("l")->bytes[2].base == 4.0 * model.V);
    partition(SM_PIECE_EMBEDDING, 0, (sm_rules){.decode = true});
    moves(SM_ALL_REDUCE, TENSOR, 1, 2.0 * model.D);
    assert_int_equal(work_of("x")->role[1], SM_ROLE_WEIGHT);
}

/* ---- beyond the KV heads ---- */

static void copies_of_the_cache_move_nothing(void **state) {
    (void)state;
    load("llama-3.1-70b");
    layer(0, (sm_rules){.decode = true});
    assert_int_equal(part.cache.mask & TENSOR, A(TENSOR));
    assert_int_equal(touching(A(TENSOR_Q)) - moved(SM_ALL_REDUCE, TENSOR).count, 0);
}

/* Pope et al. 2022, section 3.3: two all-to-alls, of queries and of results. */
static void other_sequences_take_two_all_to_alls(void **state) {
    (void)state;
    load("llama-3.1-70b");
    layer(0, (sm_rules){.decode = true, .cache_by = SM_CACHE_BATCH});
    moves(SM_ALL_TO_ALL, A(TENSOR_Q), 2, 2 * 2.0 * 8192);
    moves(SM_ALL_REDUCE, TENSOR, 2, 2 * 2.0 * 8192);
    assert_int_equal(touching(TENSOR), 4);
    assert_int_equal(comm_of(SM_ALL_TO_ALL, A(TENSOR_Q))->bytes.mask & TENSOR, A(TENSOR));
    assert_int_equal(part.cache.mask & TENSOR, TENSOR);
    const sm_work *w = work_of("o");
    assert_int_equal(w->flops.mask & TENSOR, TENSOR);
    assert_int_equal(w->bytes[1].mask & TENSOR, TENSOR);
}

static void other_keys_take_a_gather_and_a_scatter(void **state) {
    (void)state;
    load("llama-3.1-70b");
    layer(0, (sm_rules){.decode = true, .cache_by = SM_CACHE_SEQUENCE});
    moves(SM_ALL_GATHER, A(TENSOR_Q), 1, 2.0 * 8192);
    moves(SM_REDUCE_SCATTER, A(TENSOR_Q), 1, joined(64, 128));
    assert_int_equal(touching(TENSOR), 4);
    assert_int_equal(part.cache.mask & TENSOR, TENSOR);
    assert_int_equal(work_of("o")->n.mask, A(CONTEXT) | A(TENSOR_Q));
}

/* A prompt has one sequence: its heads stay apart, and only keys cached before it are gathered. */
static void prefill_gathers_what_was_cached_before(void **state) {
    (void)state;
    load("llama-3.1-70b");
    for (int by = SM_CACHE_COPIES; by <= SM_CACHE_SEQUENCE; by++) {
        layer(0, (sm_rules){.cache_by = (sm_cache_by)by, .context_by = SM_CONTEXT_GATHER});
        moves(SM_ALL_GATHER, A(CONTEXT), 2, 2 * 2.0 * 1024);
        assert_false(comm_of(SM_ALL_GATHER, A(CONTEXT))->past);
        if (by == SM_CACHE_COPIES) {
            assert_int_equal(moved(SM_ALL_GATHER, A(TENSOR_Q)).count, 0);
            continue;
        }
        moves(SM_ALL_GATHER, A(TENSOR_Q), 2, 2 * 2.0 * 1024);
        const sm_comm *c = comm_of(SM_ALL_GATHER, A(TENSOR_Q));
        assert_true(c->past && c->bytes.per_key && !c->bytes.per_query);
        assert_int_equal(c->role, SM_ROLE_CACHE);
    }
}

/* ---- context ---- */

static void split_keys_join_their_softmaxes(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        const sm_layer_kind *k = &model.kind[0];
        layer(0, (sm_rules){.decode = true});
        moves(SM_ALL_REDUCE, A(CONTEXT), 1, joined(k->N, k->H));
        assert_int_equal(touching(A(CONTEXT)), 1);
        assert_int_equal(comm_of(SM_ALL_REDUCE, A(CONTEXT))->stream, SM_STREAM_BLOCKING);
        assert_int_equal(part.cache.mask & A(CONTEXT), A(CONTEXT));
        assert_int_equal(part.boundary.mask & A(CONTEXT), 0);
        assert_int_equal(work_of("q")->flops.mask & A(CONTEXT), 0);
        assert_int_equal(work_of("o")->flops.mask & A(CONTEXT), A(CONTEXT));
    }
}

static void long_prompts_split_over_context(void **state) {
    (void)state;
    load("llama-3.1-70b");
    layer(0, (sm_rules){.seq = true});
    moves(SM_ALL_GATHER, A(CONTEXT), 2, 2 * 2.0 * 1024);
    assert_int_equal(comm_of(SM_ALL_GATHER, A(CONTEXT))->stream, SM_STREAM_RING);
    layer(0, (sm_rules){.context_by = SM_CONTEXT_HEADS});
    moves(SM_ALL_TO_ALL, A(CONTEXT), 4, 2 * 2.0 * 8192 + 2 * 2.0 * 1024);
    assert_int_equal(part.cache.mask & A(CONTEXT), A(CONTEXT));
}

/* ---- weights: stationary in two dimensions, or gathered ---- */

/* Pope et al. 2022, section 3.2.2: over x = fsdp what is as wide as the MLP (divided by yz =
 * tensor), over yz what is as wide as the model (divided by x). */
static void stationary_weights_move_both_widths(void **state) {
    (void)state;
    static const char *const gated[] = {"llama-3.1-8b", "llama-3.1-70b", "qwen3-32b"};
    for (int i = 0; i < 3; i++) {
        load(gated[i]);
        const sm_layer_kind *k = &model.kind[0];
        double q = 2.0 * k->N * k->H, kv = 2 * 2.0 * k->K * k->H, f = 2.0 * k->F;
        layer(0, (sm_rules){.decode = true, .stationary = true, .cache_by = SM_CACHE_BATCH});
        moves(SM_REDUCE_SCATTER, A(FSDP), 5, q + kv + 2 * f);
        moves(SM_ALL_GATHER, A(FSDP), 2, q + f);
        assert_int_equal(touching(A(FSDP)), 7);
        moves(SM_ALL_REDUCE, TENSOR, 2, 2 * 2.0 * model.D);
        assert_int_equal(comm_of(SM_ALL_REDUCE, TENSOR)->bytes.mask & A(FSDP), A(FSDP));
        layer(0, (sm_rules){.decode = true, .stationary = true});
        moves(SM_ALL_REDUCE, A(FSDP), 3, q + kv);
        moves(SM_REDUCE_SCATTER, A(FSDP), 2, 2 * f);
        assert_int_equal(part.cache.mask & A(FSDP), 0);
    }
}

static void stationary_weights_stay(void **state) {
    (void)state;
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        for (int k = 0; k < model.kinds; k++) {
            layer(k, (sm_rules){.decode = true, .stationary = true, .absorbed = true});
            for (int c = 0; c < part.comms; c++)
                assert_int_not_equal(part.comm[c].role, SM_ROLE_WEIGHT);
            assert_int_equal(part.boundary.mask & A(FSDP), A(FSDP));
            if (has_op("a") && model.kind[k].N > 0) /* a layer may have an MLP alone */
                assert_int_equal(work_of("a")->flops.mask & A(FSDP), A(FSDP));
        }
    }
}

/* Two bytes of every parameter, once. */
static void gathered_weights_move_every_parameter(void **state) {
    (void)state;
    for (int i = 0; i < DENSE; i++) {
        load(dense[i]);
        layer(0, (sm_rules){.decode = true});
        double bytes = 0;
        for (int c = 0; c < part.comms; c++) {
            if (part.comm[c].role != SM_ROLE_WEIGHT) continue;
            assert_int_equal(part.comm[c].axes, A(FSDP));
            assert_int_equal(part.comm[c].stream, SM_STREAM_PREFETCH);
            assert_false(part.comm[c].bytes.per_sequence);
            bytes += part.comm[c].bytes.base;
        }
        assert_true(bytes == 2 * sm_layer_params(&model, &model.kind[0], false));
    }
}

/* ---- experts ---- */

/* k copies of each token go to the experts and back; the tensor group adds up one sum a token. */
static void experts_take_two_all_to_alls_and_one_sum(void **state) {
    (void)state;
    static const char *const sparse[] = {"deepseek-v3", "mixtral-8x7b", "qwen3-235b-a22b"};
    for (int i = 0; i < 6; i++) {
        load(sparse[i / 2]);
        int k = moe_kind();
        double slots = 2.0 * model.kind[k].k_top * model.D;
        layer(k, (sm_rules){.decode = true, .absorbed = true, .expert_tensor = i % 2});
        moves(SM_ALL_TO_ALL, A(EXPERT), 2, 2 * slots);
        moves(SM_ALL_REDUCE, TENSOR, 2, 2 * 2.0 * model.D);
        assert_int_equal(touching(A(EXPERT)), 2);
        assert_int_equal(touching(TENSOR), 2);
        const sm_comm *c = comm_of(SM_ALL_TO_ALL, A(EXPERT));
        assert_true(c->ragged && c->bytes.per_query);
        assert_int_equal(c->bytes.mask & TENSOR, i % 2 ? 0 : TENSOR);
    }
}

static void experts_are_marked(void **state) {
    (void)state;
    load("deepseek-v3");
    layer(moe_kind(), (sm_rules){.decode = true});
    int marked = 0;
    for (int i = 0; i < part.works; i++) marked += part.work[i].experts;
    assert_int_equal(marked, 3);
    const sm_work *w = work_of("o.2");
    assert_true(w->experts && w->role[1] == SM_ROLE_WEIGHT);
    assert_true(w->bytes[1].base == 2.0 * 256 * 7168 * 2048);
    assert_int_equal(w->bytes[1].mask, A(EXPERT) | TENSOR);
    assert_false(work_of("y")->experts);
}

/* The router's tokens are gathered once where the residual stream is sharded. */
static void long_prompts_meet_experts_whole(void **state) {
    (void)state;
    load("mixtral-8x7b");
    layer(0, (sm_rules){.seq = true, .expert_tensor = true});
    moves(SM_ALL_GATHER, TENSOR, 3, 2 * 2.0 * 4096 + 4.0 * 8);
    moves(SM_REDUCE_SCATTER, TENSOR, 2, 2 * 2.0 * 4096);
    assert_int_equal(touching(TENSOR), 5);
}

/* ---- latent attention ---- */

static void absorbed_attention_reads_one_cache(void **state) {
    (void)state;
    load("deepseek-v3");
    layer(0, (sm_rules){.decode = true, .absorbed = true});
    const sm_work *w = work_of("ol");
    assert_true(w->flops.base == 2.0 * 128 * (512 + 64 + 512));
    double cached = 0; /* as keys and values once, and the rotary key */
    for (int i = 0; i < w->terms; i++)
        if (w->role[i] == SM_ROLE_CACHE) {
            cached += w->bytes[i].base;
            assert_true(w->bytes[i].per_key);
            assert_int_equal(w->bytes[i].mask & TENSOR, 0);
        }
    assert_true(cached == 2.0 * 576);
    assert_true(part.cache.base == 2.0 * 576);
    moves(SM_ALL_REDUCE, A(CONTEXT), 1, joined(128, 512));
}

static void latent_caches_spread_over_all_of_tensor(void **state) {
    (void)state;
    load("deepseek-v3");
    sm_rules rules = {.decode = true, .absorbed = true, .cache_by = SM_CACHE_BATCH};
    layer(0, rules);
    /* the parts of the query travel in one message */
    moves(SM_ALL_TO_ALL, TENSOR, 2, 2.0 * 128 * (512 + 64 + 512));
    assert_int_equal(part.cache.mask & TENSOR, TENSOR);
    rules.cache_by = SM_CACHE_SEQUENCE;
    layer(0, rules);
    moves(SM_ALL_GATHER, TENSOR, 1, 2.0 * 128 * 576);
    moves(SM_REDUCE_SCATTER, TENSOR, 1, joined(128, 512));
    assert_int_equal(part.cache.mask & TENSOR, TENSOR);
}

/* A matmul wrote the latent part where it stands: rotation reads and writes its own part alone. */
static void rotation_leaves_the_latent_part_in_place(void **state) {
    (void)state;
    load("deepseek-v3");
    layer(0, (sm_rules){.decode = true, .absorbed = true});
    const sm_work *w = work_of("qr.2");
    double rotary = 2.0 * 128 * 64;
    assert_int_equal(w->terms, 2);
    assert_true(w->bytes[0].base == rotary);
    assert_true(w->bytes[1].base > 0.999999 * rotary && w->bytes[1].base < 1.000001 * rotary);
    w = work_of("ql");
    assert_true(w->flops.base == 2.0 * 128 * 128 * 512 && w->bytes[2].base == 2.0 * 128 * 512);
    assert_int_equal(w->flops.mask & TENSOR, TENSOR);
}

/* Prefill expands the cache on the heads of each chip. */
static void expanded_attention_works_for_each_key(void **state) {
    (void)state;
    load("deepseek-v3");
    layer(0, (sm_rules){.seq = false});
    const sm_work *w = work_of("kn");
    assert_true(w->flops.per_key && !w->flops.per_query);
    assert_true(w->flops.base == 2.0 * 128 * 512 * 128);
    assert_int_equal(w->flops.mask & TENSOR, TENSOR);
    assert_int_equal(w->role[0], SM_ROLE_CACHE);
    assert_true(work_of("o")->flops.base == 2.0 * 128 * (192 + 128));
    assert_true(work_of("o")->kv_heads.base == 128);
    assert_true(part.cache.base == 2.0 * 576);
    moves(SM_ALL_REDUCE, TENSOR, 2, 2 * 2.0 * 7168);
    assert_int_equal(touching(TENSOR), 2);
}

/* ---- caches ---- */

/* It writes tokens, and reads none of another sequence. */
static bool one_stack(void) {
    for (int k = 0; k < model.kinds; k++)
        if (model.kind[k].source > 0) return false;
    return model.outside == 2 && model.causal;
}

static void appending_writes_new_tokens_only(void **state) {
    (void)state;
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        for (int k = 0; k < model.kinds; k++) {
            layer(k, (sm_rules){.decode = true, .absorbed = true});
            double written = 0;
            for (int n = 0; n < part.works; n++) {
                const sm_work *w = &part.work[n];
                if (w->function != SM_FUNCTION_APPEND) continue;
                for (int t = 0; t < w->terms; t++) {
                    assert_true((w->bytes[t].per_query || !one_stack()) && !w->bytes[t].per_key);
                    if (w->role[t] != SM_ROLE_ACTIVATION) written += w->bytes[t].base;
                }
                assert_true((w->flops.per_query || !one_stack()) && !w->flops.per_key);
            }
            if (one_stack()) assert_true(written == part.cache.base);
        }
    }
}

/* Chips that share a prompt's positions each write their own; the one new token of a decode step
 * falls on one of them. Copies are written by every chip. */
static void chips_write_the_positions_they_hold(void **state) {
    (void)state;
    load("llama-3.1-70b");
    int batch = A(DATA) | A(FSDP) | A(EXPERT);
    layer(0, (sm_rules){.seq = true});
    assert_int_equal(append_work()->bytes[0].mask, batch | A(TENSOR) | A(CONTEXT));
    layer(0, (sm_rules){.decode = true});
    assert_int_equal(append_work()->bytes[0].mask, batch | A(TENSOR));
    layer(0, (sm_rules){.decode = true, .cache_by = SM_CACHE_BATCH});
    assert_int_equal(append_work()->bytes[0].mask, batch | TENSOR);
}

static void attention_reads_the_cache_for_each_key(void **state) {
    (void)state;
    load("llama-3.1-70b");
    layer(0, (sm_rules){.decode = true});
    const sm_work *w = work_of("o");
    assert_int_equal(w->terms, 4);
    for (int t = 0; t < 4; t++) {
        bool cache = t == 1 || t == 2;
        assert_int_equal(w->role[t], cache ? SM_ROLE_CACHE : SM_ROLE_ACTIVATION);
        assert_int_equal(w->bytes[t].per_key, cache);
        assert_int_equal(w->bytes[t].per_query, !cache);
        assert_true(w->bytes[t].base == (cache ? 2.0 * 1024 : 2.0 * 8192));
    }
    assert_true(w->flops.per_sequence && w->flops.per_query && w->flops.per_key);
    assert_true(w->kv_heads.base == 8);
    assert_int_equal(w->kv_heads.mask, A(TENSOR));
}

/* Gemma 3n and 4: the last layers read an earlier layer's cache and keep none. */
static void shared_caches_are_read_and_not_kept(void **state) {
    (void)state;
    static const char config[] =
        "{\"model_type\": \"gemma4_text\", \"hidden_size\": 64, \"num_hidden_layers\": 12, "
        "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
        "\"global_head_dim\": 16, \"intermediate_size\": 128, \"vocab_size\": 256, "
        "\"sliding_window\": 8, \"hidden_size_per_layer_input\": 0, \"num_kv_shared_layers\": 6}";
    const sm_source source = sm_source_of("config.json", config);
    sm_error err = {0};
    int readers = 0;
    sm_arena_free(model_arena);
    model_arena = sm_arena_new();
    if (sm_model_parse(NULL, NULL, &source, model_arena, &model, &err))
        fail_msg("%s", err.sentence);
    for (int k = 0; k < model.kinds; k++) {
        if (model.kind[k].cached > 0) continue;
        readers++;
        layer(k, (sm_rules){.decode = true});
        assert_false(has_op("k") || has_op("v") || has_op("k.2") || has_op("kc"));
        assert_true(part.cache.base == 0);
        const sm_work *w = work_of("o");
        assert_true(w->role[1] == SM_ROLE_CACHE && w->bytes[1].base == 2.0 * 32);
    }
    assert_true(readers > 0);
}

static void one_projection_feeds_two_caches(void **state) {
    (void)state;
    load("gemma-4-26b-a4b");
    for (int k = 0; k < model.kinds; k++) {
        layer(k, (sm_rules){.decode = true});
        const sm_layer_kind *kind = &model.kind[k];
        int projections = 0;
        for (int i = 0; i < part.program.ops; i++) {
            const sm_op *op = &part.program.op[i];
            projections += op->kind == SM_OP_EINSUM && op->name[0] == 'v';
        }
        assert_int_equal(projections, kind->window > 0); /* others share one with the keys */
        assert_true(part.cache.base == 2.0 * kind->K * 2 * kind->H);
    }
}

/* ---- the whole catalogue ---- */

typedef struct counted {
    double params, cache, matmul, attention;
    bool scans; /* kernels do more than their products */
} counted;

static void count_work(const sm_work *w, double T, double keys, double times, counted *c) {
    if (w->kind == SM_OP_EINSUM) {
        assert_true(w->flops.per_query != w->flops.per_key);
        *(w->linear ? &c->matmul : &c->attention) += times * w->flops.base * T;
    }
    if (w->kind == SM_OP_ATTENTION) c->attention += times * w->flops.base * T * keys;
    c->scans |= w->kind == SM_OP_KERNEL;
}

static void count_piece(sm_piece piece, int kind, double T, double times, sm_rules rules,
                        counted *c) {
    partition(piece, kind, rules);
    for (int i = 0; i < part.classes; i++) {
        assert_int_equal(part.weight[i].partial, 0);
        if (!part.weight[i].tied)
            c->params += times * part.weight[i].elements * part.weight[i].share;
    }
    for (int i = 0; i < part.program.tensors; i++) {
        const sm_tensor *t = &part.program.tensor[i];
        if (t->role == SM_ROLE_CACHE && t->kept)
            c->cache += times * t->bytes_per_element * t->elements;
    }
    double keys = piece == SM_PIECE_LAYER ? sm_layer_keys(&model.kind[kind], T, model.causal) : 0;
    for (int i = 0; i < part.works; i++) count_work(&part.work[i], T, keys, times, c);
}

static counted count_model(double T, sm_rules rules) {
    counted c = {0};
    int layers[SM_MAX_LAYER_KINDS] = {0};
    for (int l = 0; l < model.L; l++) layers[model.layer[l]]++;
    for (int k = 0; k < model.kinds; k++) count_piece(SM_PIECE_LAYER, k, T, layers[k], rules, &c);
    for (int k = 0; k < model.outside - 1; k++) count_piece(SM_PIECE_EMBEDDING, k, T, 1, rules, &c);
    count_piece(SM_PIECE_HEAD, 0, T, 1, rules, &c);
    return c;
}

static void near(double a, double b, const char *what) {
    double off = a > b ? a - b : b - a;
    if (!(off <= 1e-12 * b)) fail_msg("%s: %s: %.17g, expected %.17g", model.name, what, a, b);
}

/* A prompt of T against its own keys is the forward pass of training. */
static void every_catalogue_model_is_whole(void **state) {
    (void)state;
    FOR_CATALOGUE(i) {
        for (int absorbed = 0; absorbed < 2; absorbed++) {
            const double T = 4096;
            load(sm_catalogue_at(i)->name);
            if (!one_stack()) continue;
            counted c = count_model(T, (sm_rules){.decode = absorbed, .absorbed = absorbed});
            sm_flops f = sm_model_forward_flops(&model, T, model.causal);
            assert_true(c.params == sm_model_params(&model).total);
            if (c.cache != sm_model_kv_bytes_per_token(&model, SM_BF16))
                fail_msg("%s: %.0f bytes of cache, %.0f in the model", model.name, c.cache,
                         sm_model_kv_bytes_per_token(&model, SM_BF16));
            if (c.scans) continue;
            near(c.matmul, f.matmul * T, "matmul FLOPs");
            if (model.kind[0].attention != SM_ATTENTION_MLA || !absorbed)
                near(c.attention, f.attention * T, "attention FLOPs");
        }
    }
}

static void check_partition(const sm_rules *rules, const sm_layer_kind *kind) {
    double stored = 0;
    for (int i = 0; i < part.classes; i++) stored += part.weight[i].elements;
    assert_true(stored == sm_layer_params(&model, kind, false));
    for (int c = 0; c < part.comms; c++) {
        const sm_comm *comm = &part.comm[c];
        assert_true(comm->axes != 0);
        assert_true(comm->bytes.base >= 0);
        assert_int_equal(comm->bytes.mask & comm->axes, 0);
        assert_int_equal(comm->phase, SM_PHASE_FORWARD);
        assert_true(comm->stream == SM_STREAM_BLOCKING || !rules->decode ||
                    comm->role == SM_ROLE_WEIGHT);
        assert_true(!rules->decode || comm->role != SM_ROLE_CACHE ||
                    kind->attention == SM_ATTENTION_MLA); /* decode never moves the cache */
    }
    for (int w = 0; w < part.works; w++) {
        assert_true(part.work[w].terms > 0);
        assert_int_equal(part.work[w].phase, SM_PHASE_FORWARD);
    }
}

enum { STRIDE = REPEATED ? 35 : 5 };

static void every_rule_partitions_every_model(void **state) {
    (void)state;
    FOR_CATALOGUE(i) {
        load(sm_catalogue_at(i)->name);
        /* Of the 288 sets of rules each model takes some, coprime to every factor: together, all.
         */
        for (int r = (int)i % STRIDE; r < 288; r += STRIDE) {
            sm_rules rules = {.decode = r & 1,
                              .stationary = r >> 1 & 1,
                              .absorbed = r >> 2 & 1,
                              .seq = r >> 3 & 1,
                              .expert_tensor = r >> 4 & 1,
                              .cache_by = (sm_cache_by)(r / 32 % 3),
                              .context_by = (sm_context_by)(r / 96)};
            if (rules.decode && (rules.seq || rules.context_by)) continue;
            for (int k = 0; k < model.kinds; k++) {
                layer(k, rules);
                check_partition(&rules, &model.kind[k]);
            }
            partition(SM_PIECE_HEAD, 0, rules);
            partition(SM_PIECE_EMBEDDING, 0, rules);
        }
    }
}

/* Sizes of training hold their queries and keys already. */
static void training_sizes_grow_with_sequences_alone(void **state) {
    (void)state;
    sm_error err = {0};
    sm_program program;
    load("deepseek-v3");
    sm_rules rules = {.seq = true};
    assert_int_equal(sm_program_build(&model, SM_PIECE_LAYER, 1, 4096, &rules, &program, &err),
                     SM_OK);
    assert_int_equal(sm_program_partition(&program, NULL, &part, &err), SM_OK);
    for (int i = 0; i < part.works; i++) {
        const sm_work *w = &part.work[i];
        assert_false(w->flops.per_query || w->flops.per_key || w->n.per_key);
        for (int t = 0; t < w->terms; t++)
            assert_false(w->bytes[t].per_query || w->bytes[t].per_key);
    }
    for (int i = 0; i < part.comms; i++)
        assert_false(part.comm[i].bytes.per_query || part.comm[i].bytes.per_key);
    assert_true(part.cache.base == 0);
}

static bool same_size(sm_size a, sm_size b) {
    return a.base == b.base && a.mask == b.mask && a.per_sequence == b.per_sequence &&
           a.per_query == b.per_query && a.per_key == b.per_key;
}

/* The forward partition of a training program is the forward part of the whole one. */
static void forward_alone_is_the_forward_part(void **state) {
    (void)state;
    static sm_partition whole;
    static const char *const names[] = {"deepseek-v3", "llama-3.1-70b", "gpt-j-6b"};
    for (int i = 0; i < 3; i++) {
        sm_error err = {0};
        sm_program program;
        sm_rules rules = {.seq = true};
        load(names[i]);
        assert_int_equal(
            sm_program_build(&model, SM_PIECE_LAYER, model.kinds - 1, 4096, &rules, &program, &err),
            SM_OK);
        assert_int_equal(sm_program_partition(&program, NULL, &whole, &err), SM_OK);
        assert_int_equal(sm_program_partition_forward(&program, NULL, &part, &err), SM_OK);
        assert_true(part.works < whole.works && part.comms < whole.comms);
        for (int w = 0; w < part.works; w++)
            assert_true(same_size(part.work[w].flops, whole.work[w].flops));
        for (int c = 0; c < part.comms; c++)
            assert_true(part.comm[c].op == whole.comm[c].op &&
                        same_size(part.comm[c].bytes, whole.comm[c].bytes));
        assert_int_equal(whole.work[part.works].phase == SM_PHASE_FORWARD, false);
        assert_int_equal(whole.comm[part.comms].phase == SM_PHASE_FORWARD, false);
    }
}

static void serving_has_no_backward_pass(void **state) {
    (void)state;
    sm_error err = {0};
    sm_program program;
    sm_rules rules = {.decode = true};
    load("llama-3.1-8b");
    assert_int_equal(sm_program_build_serving(&model, SM_PIECE_LAYER, 0, &rules, &program, &err),
                     SM_OK);
    assert_int_equal(sm_program_partition(&program, NULL, &part, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "a program of serving has no backward pass");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_all_reduces_twice_a_layer),
        cmocka_unit_test(parallel_branches_all_reduce_once),
        cmocka_unit_test(long_prefill_shards_the_residual_stream),
        cmocka_unit_test(head_and_embedding_move_little),
        cmocka_unit_test(copies_of_the_cache_move_nothing),
        cmocka_unit_test(other_sequences_take_two_all_to_alls),
        cmocka_unit_test(other_keys_take_a_gather_and_a_scatter),
        cmocka_unit_test(prefill_gathers_what_was_cached_before),
        cmocka_unit_test(split_keys_join_their_softmaxes),
        cmocka_unit_test(long_prompts_split_over_context),
        cmocka_unit_test(stationary_weights_move_both_widths),
        cmocka_unit_test(stationary_weights_stay),
        cmocka_unit_test(gathered_weights_move_every_parameter),
        cmocka_unit_test(experts_take_two_all_to_alls_and_one_sum),
        cmocka_unit_test(experts_are_marked),
        cmocka_unit_test(long_prompts_meet_experts_whole),
        cmocka_unit_test(absorbed_attention_reads_one_cache),
        cmocka_unit_test(latent_caches_spread_over_all_of_tensor),
        cmocka_unit_test(rotation_leaves_the_latent_part_in_place),
        cmocka_unit_test(expanded_attention_works_for_each_key),
        cmocka_unit_test(appending_writes_new_tokens_only),
        cmocka_unit_test(chips_write_the_positions_they_hold),
        cmocka_unit_test(attention_reads_the_cache_for_each_key),
        cmocka_unit_test(shared_caches_are_read_and_not_kept),
        cmocka_unit_test(one_projection_feeds_two_caches),
        cmocka_unit_test(every_catalogue_model_is_whole),
        cmocka_unit_test(every_rule_partitions_every_model),
        cmocka_unit_test(training_sizes_grow_with_sequences_alone),
        cmocka_unit_test(forward_alone_is_the_forward_part),
        cmocka_unit_test(serving_has_no_backward_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
