/* The price of steps and points of serving: the figures of the book, closed forms, properties. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include "failing_alloc.h"
#include "scalemodel/load.h"
#include "serve_cases.h"

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.6g where %.6g was expected", value, expected);
}

/* ---- How To Scale Your Model, inference: LLaMA-2 13B on 8 TPU v5e, context 8192 ---- */

static void book_table_of_llama_2_13b(void **state) {
    static const struct {
        double batch, ms;
        bool fits;
    } row[] = {{1, 4.996, true},
               {8, 12.165, true},
               {32, 36.75, false},
               {64, 69.52, false},
               {240, 249.8, false}};
    serve_case c;
    serve_case_fill(&c, "llama-2-13b", "tpu-v5e:2x4");
    c.job.context = 8192;
    c.job.prompt = 8190;
    c.job.output = 2;
    sm_serve *serve = serve_case_new(&c);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        sm_serve_point p = serve_point(serve, "tensor=8", row[i].batch);
        close_to(p.tpot_s[0] * 1e3, row[i].ms, 1e-3);
        assert_true(p.fits == row[i].fits);
        close_to(p.decode.bound_kv_s, row[i].batch * 6710886400.0 / 8 / 819e9, 1e-9);
    }
    sm_serve_free(serve);
}

/* Of layers that scan, the state of each sequence is read as a cache is: all of it, on its part of
 * the chips. */
static void states_are_in_the_bound(void **state) {
    static const char *const models[] = {"mamba2-2.7b", "qwen3-next-80b-a3b"};
    for (int i = 0; i < 2; i++) {
        serve_case c;
        serve_case_fill(&c, models[i], "h200:2");
        c.job.context = 1000;
        sm_serve *serve = serve_case_new(&c);
        sm_serve_point p = serve_point(serve, "tensor=2", 64);
        double bytes = sm_model_state_bytes(&c.model, c.job.dtypes.kv) +
                       sm_model_kv_bytes(&c.model, 1000, c.job.dtypes.kv);
        close_to(p.decode.bound_kv_s, 64 * bytes / 2 / c.system.chip.memory_bytes_per_s.value, .01);
        assert_true(p.tpot_alone_s[0] < p.tpot_alone_s[1]);
        sm_serve_free(serve);
    }
}

/* JetStream's runs on eight v5e (jetstream-pytorch, benchmarks/summary.md) read a dense cache and
 * make prompts beside: batch over throughput is the most that a step takes. Paged kernels read the
 * same bytes, and take a while for each sequence. */
static void decoding_on_v5e_is_near_to_published_runs(void **state) {
    static const struct {
        const char *model;
        double batch, cache, most_ms;
    } row[] = {{"llama-2-7b", 96, 2048, 26.2},
               {"llama-2-13b", 80, 1280, 27.5},
               {"gemma-7b", 96, 2048, 29.7}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        serve_case c;
        serve_case_fill(&c, row[i].model, "tpu-v5e:2x4");
        c.job.context = row[i].cache;
        sm_serve *serve = serve_case_new(&c);
        double ms = 1e3 * serve_point(serve, "tensor=8", row[i].batch).tpot_alone_s[1];
        if (!(ms > 0.8 * row[i].most_ms && ms < 1.4 * row[i].most_ms))
            fail_msg("%s: %.3g ms of %.3g", row[i].model, ms, row[i].most_ms);
        sm_serve_free(serve);
    }
}

/* All that a checkpoint takes lies in the memory of one chip, and each format is cheaper to read.
 */
static void weights_as_stored(void **state) {
    static const char *const models[] = {"gpt-oss-20b", "qwen3-8b"};
    for (int i = 0; i < 2; i++) {
        serve_case c;
        serve_case_fill(&c, models[i], "h200:1");
        if (i == 1)
            c.model = catalogue_with(models[i], "\"quantization_config\": {\"quant_method\": "
                                                "\"awq\", \"bits\": 4, \"group_size\": 128}");
        sm_serve *wide = serve_case_new(&c);
        c.job.as_stored = true;
        sm_serve *stored = serve_case_new(&c);
        sm_serve_point now = serve_point(stored, "tensor=1", 8);
        sm_serve_point before = serve_point(wide, "tensor=1", 8);
        close_to(now.memory.params, c.model.stored.bytes, 1e-9);
        close_to(before.memory.params, 2 * sm_model_params(&c.model).total, 1e-9);
        assert_true(now.decode.bound_weights_s < 0.6 * before.decode.bound_weights_s);
        assert_true(now.tpot_s[0] < before.tpot_s[0]);
        sm_serve_free(wide);
        sm_serve_free(stored);
    }
}

/* Grouped queries, 5 of them to a KV head: the cache shrinks to a fifth, and so does its time. */
static void fewer_kv_heads_shrink_the_cache(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-2-13b", "tpu-v5e:2x4");
    c.model = catalogue_with("llama-2-13b", "\"num_key_value_heads\": 8");
    c.job.context = 8192;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=8", 64);
    close_to(p.decode.bound_kv_s, 64 * 6710886400.0 / 5 / 8 / 819e9, 1e-9);
    close_to(p.tpot_s[0] * 1e3, 17.08, 0.04); /* the book keeps 13e9 parameters; 11.3e9 are left */
    sm_serve_free(serve);
}

/* Chapter on serving LLaMA 3: 70B in int8 at 8192 of context, 32 sequences. */
static void book_figures_of_llama_3_70b(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-70b", "tpu-v5e:2x4");
    c.job.context = 8192;
    c.job.dtypes.weights = c.job.dtypes.kv = SM_INT8;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=8", 32);
    close_to(p.tpot_s[0] * 1e3, 17.3, 3e-3);
    close_to(32 / p.tpot_s[0] / 8, 235, 0.02);
    sm_serve_free(serve);
    serve_case_system(&c, "tpu-v5e:4x4");
    serve = serve_case_new(&c);
    /* K and V of 8 heads lie twice on 16 chips: 1.3 % above the book's 8.64 */
    close_to(serve_point(serve, "tensor=16,cache_by=batch", 32).tpot_s[0] * 1e3, 8.64, 0.02);
    sm_serve_free(serve);
}

/* The smallest slices: 16 chips in 16 bits, 8 in 8, 4 in 4, each with as many sequences of 8k. The
 * book takes a chip for 16e9 bytes and finds 43; Google's 16 GiB hold a few more. */
static void book_slices_of_llama_3_70b(void **state) {
    static const struct {
        const char *fits, *less, *plan, *small;
        sm_dtype dtype;
    } row[] = {{"tpu-v5e:4x4", "tpu-v5e:2x4", "tensor=16,cache_by=batch", "tensor=8", SM_BF16},
               {"tpu-v5e:2x4", "tpu-v5e:2x2", "tensor=8", "tensor=4", SM_INT8},
               {"tpu-v5e:2x2", "tpu-v5e:1x2", "tensor=4", "tensor=2", SM_INT4}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        serve_case c;
        serve_case_fill(&c, "llama-3-70b", row[i].fits);
        c.job.prompt = 8190;
        c.job.output = 2;
        c.job.dtypes.weights = c.job.dtypes.kv = row[i].dtype;
        c.job.reserve = 0;
        sm_serve *serve = serve_case_new(&c);
        sm_serve_point p = serve_point(serve, row[i].plan, 32);
        assert_true(p.fits);
        assert_in_range((int)p.most_batch, 43, 50);
        sm_serve_free(serve);
        serve_case_system(&c, row[i].less);
        serve = serve_case_new(&c);
        p = serve_point(serve, row[i].small, 1);
        assert_false(p.fits);
        assert_true(p.most_batch < 1);
        sm_serve_free(serve);
    }
}

/* Prefill of many tokens: 2 FLOPs a parameter and token, and attention under the mask. */
static void prefill_is_flops_over_peak(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-2-13b", "tpu-v5e:2x4");
    c.job.prompt = 4096;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=8", 1);
    sm_params params = sm_model_params(&c.model);
    sm_flops flops = sm_model_forward_flops(&c.model, 4096, true);
    double head = 2.0 * c.model.D * c.model.V; /* of the last token alone */
    double all = (2 * params.matmul_active - head + flops.attention) * 4096 + head;
    close_to(p.prefill.flops, all, 1e-3);
    close_to(p.ttft_s[0], all / 8 / 197e12, 1e-3);
    assert_int_equal(p.prefill.bound, SM_SERVE_COMPUTE);
    sm_serve_free(serve);
}

/* The FLOPs of a prefill are those of the model, whatever the architecture. */
static void prefill_flops_are_the_models(void **state) {
    static const char *const names[] = {"llama-3-8b",  "deepseek-v3", "mixtral-8x7b",
                                        "gemma-2-27b", "gpt-oss-20b", "qwen2.5-7b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        serve_case c;
        sm_error err = {0};
        sm_step_price p;
        sm_step_batch batch = {1, {{4, 2048, 0}}, 0, 0}; /* a chunk that samples nothing */
        serve_case_fill(&c, names[i], "h200-sxm:1");
        sm_serve *serve = serve_case_new(&c);
        sm_plan plan = serve_plan("");
        assert_int_equal(sm_serve_step(serve, &plan, &batch, &p, &err), SM_OK);
        double per_token = sm_model_forward_flops(&c.model, 2048, c.model.causal).total -
                           2.0 * c.model.D * c.model.V;
        if (!(fabs(p.flops / (4 * 2048 * per_token) - 1) < 2e-3))
            fail_msg("%s: %g of %g", names[i], p.flops, 4 * 2048 * per_token);
        sm_serve_free(serve);
    }
}

/* ---- properties over models and plans ---- */

typedef struct sample {
    const char *model, *system, *plan;
} sample;
static const sample samples[] = {
    {"llama-3-8b", "h100-sxm:1", "tensor=1"},
    {"llama-3-70b", "h100-sxm:8", "tensor=8"},
    {"llama-3-70b", "h100-sxm:8", "tensor=4,data=2"},
    {"llama-3-70b", "h100-sxm:16", "tensor=16"},
    {"llama-3-70b", "h100-sxm:16", "tensor=16,cache_by=sequence"},
    {"llama-3-70b", "h100-sxm:16", "tensor=16,cache_by=copies"},
    {"llama-3-70b", "tpu-v5e:4x8", "tensor=8,fsdp=4"},
    {"llama-3-70b", "tpu-v5e:4x8", "tensor=8,fsdp=4,weights_by=gathered"},
    {"llama-3-70b", "tpu-v5e:4x8", "tensor=8,context=4"},
    {"llama-3-70b", "h100-sxm:16", "tensor=8,pipeline=2"},
    {"llama-3-70b", "h100-sxm:8", "tensor=8,seq=on"},
    {"deepseek-v3", "h800-sxm:32", "expert=32"},
    {"deepseek-v3", "h800-sxm:32", "tensor=8,expert=4"},
    {"mixtral-8x7b", "h100-sxm:8", "tensor=8,expert_tensor=on"},
    {"mixtral-8x7b", "h100-sxm:8", "expert=8"},
    {"gpt-oss-120b", "h100-sxm:4", "tensor=4"},
    {"gemma-2-27b", "tpu-v5p:2x2x1", "tensor=4"},
    {"deepseek-v4.1-flash", "gb200-nvl72:16", "tensor=4,expert=4"}, /* tables inside of layers */
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static sm_serve *serve_of(serve_case *c, const sample *s) {
    serve_case_fill(c, s->model, s->system);
    return serve_case_new(c);
}

static double sum_of(const sm_step_price *p) {
    return p->breakdown_s.weights + p->breakdown_s.kv + p->breakdown_s.compute +
           p->breakdown_s.scans + p->breakdown_s.network + p->breakdown_s.other;
}

static void check_step(const sample *s, const sm_step_price *p) {
    if (!(p->lower_s > 0 && p->lower_s <= p->expected_s && p->expected_s <= p->upper_s))
        fail_msg("%s %s: %g %g %g", s->model, s->plan, p->lower_s, p->expected_s, p->upper_s);
    close_to(sum_of(p), p->expected_s, 1e-9);
    const double parts[] = {p->breakdown_s.weights, p->breakdown_s.kv, p->breakdown_s.compute,
                            p->breakdown_s.network, p->breakdown_s.other};
    for (int i = 0; i < 5; i++)
        if (!(parts[i] >= 0)) fail_msg("%s %s: part %d is %g", s->model, s->plan, i, parts[i]);
}

static void bounds_and_parts_hold(void **state) {
    for (int i = 0; i < SAMPLES; i++) {
        serve_case c;
        sm_serve *serve = serve_of(&c, &samples[i]);
        double last = 0;
        for (double batch = 1; batch <= 1024; batch *= 4) {
            sm_serve_point p = serve_point(serve, samples[i].plan, batch);
            check_step(&samples[i], &p.prefill);
            check_step(&samples[i], &p.decode);
            if (p.tpot_s[1] < last * 0.98) /* tiles: a fuller one may cost less */
                fail_msg("%s %s: batch %g takes %g after %g", samples[i].model, samples[i].plan,
                         batch, p.tpot_s[1], last);
            last = p.tpot_s[1];
        }
        sm_serve_free(serve);
    }
}

static void memory_holds_weights_and_cache(void **state) {
    for (int i = 0; i < SAMPLES; i++) {
        serve_case c;
        sm_serve *serve = serve_of(&c, &samples[i]);
        sm_serve_point p = serve_point(serve, samples[i].plan, 256);
        sm_params params = sm_model_params(&c.model);
        double all = params.total * 2 / p.chips;
        /* replicas, K and V of too few heads and norms lie on more than one chip */
        if (!(p.memory.params >= all * 0.999)) fail_msg("%s: %g", samples[i].plan, p.memory.params);
        double kv = sm_model_kv_bytes(&c.model, 2048, SM_BF16) * 256 / p.chips;
        if (!(p.memory.kv >= kv * 0.999)) fail_msg("%s: %g", samples[i].plan, p.memory.kv);
        close_to(p.memory.total,
                 p.memory.params + p.memory.kv + p.memory.activations + p.memory.buffers, 1e-12);
        assert_true(p.fits == (p.memory.total <= p.memory.capacity));
        sm_serve_free(serve);
    }
}

/* most_batch is the edge of what fits. */
static void most_batch_is_the_edge(void **state) {
    for (int i = 0; i < SAMPLES; i++) {
        serve_case c;
        sm_error err = {0};
        sm_serve_memory m;
        sm_serve *serve = serve_of(&c, &samples[i]);
        sm_plan plan = serve_plan(samples[i].plan);
        sm_serve_room room;
        assert_int_equal(sm_serve_room_of(serve, &plan, 2048, 1024, &room, NULL), SM_OK);
        const double most = room.most;
        if (most >= 1) {
            assert_int_equal(sm_serve_memory_of(serve, &plan, most, 2048, 1024, &m, &err), SM_OK);
            assert_true(m.total <= m.capacity * (1 + 1e-9));
        }
        double more = most < 1 ? 1 : most * 2;
        assert_int_equal(sm_serve_memory_of(serve, &plan, more, 2048, 1024, &m, &err), SM_OK);
        assert_true(m.total > m.capacity);
        sm_serve_free(serve);
    }
}

/* But for first tokens of requests in flight, which are simulated. */
static void points_allocate_nothing(void **state) {
    serve_case c;
    serve_case_fill(&c, "deepseek-v3", "h800-sxm:32");
    c.job.alone = true;
    sm_serve *serve = serve_case_new(&c);
    serve_point(serve, "expert=32", 64);
    uint64_t before = sm_allocation_count();
    serve_point(serve, "expert=32", 128);
    assert_int_equal(sm_allocation_count(), before);
    sm_serve_free(serve);
}

static void every_allocation_may_fail(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err = {0};
        sm_serve *serve;
        sm_serve_point p;
        sm_plan plan;
        sm_serve_plan_defaults(&plan);
        sm_status s = sm_serve_new(&c.job, &serve, &err);
        if (s == SM_OK) s = sm_serve_point_of(serve, &plan, 1, &p, &err);
        assert_true(s == SM_OK || (s == SM_INTERNAL && err.sentence[0]));
        if (!failing_alloc_refused(&loop)) assert_int_equal(s, SM_OK);
        sm_serve_free(serve);
    }
}

/* ---- what each axis splits ---- */

/* 8 KV heads on 16 chips: each chip holds a copy, half the sequences, or half the positions. */
static void spare_chips_split_the_cache(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:16");
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point copies = serve_point(serve, "tensor=16,cache_by=copies", 64);
    sm_serve_point batch = serve_point(serve, "tensor=16,cache_by=batch", 64);
    sm_serve_point sequence = serve_point(serve, "tensor=16,cache_by=sequence", 64);
    close_to(batch.decode.bound_kv_s, copies.decode.bound_kv_s / 2, 1e-9);
    close_to(sequence.decode.bound_kv_s, copies.decode.bound_kv_s / 2, 1e-9);
    close_to(batch.memory.kv, copies.memory.kv / 2, 1e-9);
    close_to(sequence.memory.kv, copies.memory.kv / 2, 1e-9);
    assert_true(batch.decode.breakdown_s.network > copies.decode.breakdown_s.network);
    assert_true(batch.most_batch > 1.9 * copies.most_batch);
    sm_serve_free(serve);
}

/* Context splits the positions of the cache in decode and those of the prompt in prefill; the
 * weights are whole on each of its chips. */
static void context_splits_positions(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:8");
    c.job.prompt = 32768;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point one = serve_point(serve, "tensor=1", 8);
    sm_serve_point four = serve_point(serve, "context=4", 8);
    close_to(four.decode.bound_kv_s, one.decode.bound_kv_s / 4, 1e-9);
    close_to(four.decode.bound_weights_s, one.decode.bound_weights_s, 1e-9);
    close_to(four.prefill.bound_compute_s, one.prefill.bound_compute_s / 4, 1e-2);
    close_to(four.memory.params, one.memory.params, 1e-12);
    assert_true(four.ttft_s[1] < one.ttft_s[1] / 2);
    sm_serve_free(serve);
}

/* 2D weight-stationary shards weights over both; gathered weights are read whole. */
static void fsdp_shards_weights(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-70b", "tpu-v5p:2x2x4");
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point flat = serve_point(serve, "tensor=4", 16);
    sm_serve_point stationary = serve_point(serve, "tensor=4,fsdp=4", 16);
    sm_serve_point gathered = serve_point(serve, "tensor=4,fsdp=4,weights_by=gathered", 16);
    close_to(stationary.memory.params, flat.memory.params / 4, 1e-3);
    close_to(gathered.memory.params, flat.memory.params / 4, 1e-3);
    close_to(stationary.decode.bound_weights_s, flat.decode.bound_weights_s / 4, 1e-3);
    close_to(gathered.decode.bound_weights_s, flat.decode.bound_weights_s, 1e-3);
    assert_true(gathered.memory.buffers > 0 && stationary.memory.buffers <= 0);
    assert_true(gathered.decode.bound_network_s > stationary.decode.bound_network_s);
    sm_serve_free(serve);
}

/* Stages share the layers; a group of the batch passes all of them. */
static void stages_share_layers_and_batch(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:16");
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point flat = serve_point(serve, "tensor=8", 16);
    sm_serve_point two = serve_point(serve, "tensor=8,pipeline=2", 32);
    close_to(two.decode.bound_kv_s, flat.decode.bound_kv_s, 1e-9);
    close_to(two.decode.bound_weights_s, flat.decode.bound_weights_s, 1e-9);
    assert_true(two.tpot_alone_s[1] > flat.tpot_alone_s[1]);
    assert_true(two.tpot_alone_s[1] < flat.tpot_alone_s[1] * 1.02);
    close_to(two.tokens_per_s_per_chip_alone, flat.tokens_per_s_per_chip_alone, 0.02);
    /* a prefill holds up the group of the other stage too */
    assert_true(two.tpot_s[1] / two.tpot_alone_s[1] > flat.tpot_s[1] / flat.tpot_alone_s[1]);
    assert_true(two.memory.params < flat.memory.params * 0.52);
    assert_true(two.most_batch > 2 * flat.most_batch);
    sm_serve_free(serve);
}

/* An expert group serves the tokens of all its chips: more of them reach more experts. */
static void experts_serve_all_chips(void **state) {
    serve_case c;
    serve_case_fill(&c, "mixtral-8x7b", "h100-sxm:8");
    sm_serve *serve = serve_case_new(&c);
    sm_params p = sm_model_params(&c.model);
    sm_serve_point point = serve_point(serve, "expert=8", 8);
    double rest = (p.total - p.experts - p.embedding) * 2;
    double read = (1 - pow(1 - 2.0 / 8, 8)) * p.experts / 8 * 2;
    close_to(point.decode.bound_weights_s, (rest + read) / 3.35e12, 2e-3);
    sm_serve_free(serve);
}

/* ---- one thing at a time ---- */

/* One sequence on 8 groups of chips costs what it costs on one. */
static void one_sequence_does_not_spread_over_data(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:8");
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point one = serve_point(serve, "tensor=1", 1);
    sm_serve_point eight = serve_point(serve, "data=8", 1);
    sm_serve_point full = serve_point(serve, "data=8", 8);
    close_to(eight.tpot_s[1], one.tpot_s[1], 1e-6);
    /* each rank's host serves its own */
    close_to(full.tpot_alone_s[1], one.tpot_alone_s[1], 1e-6);
    close_to(full.tokens_per_s_per_chip, one.tokens_per_s_per_chip, 0.01);
    sm_serve_free(serve);
}

/* E (1 - (1 - k/E)^n) experts are read: with one token k of them. */
static void experts_read_follow_the_batch(void **state) {
    serve_case c;
    serve_case_fill(&c, "mixtral-8x7b", "h100-sxm:2");
    sm_serve *serve = serve_case_new(&c);
    sm_params p = sm_model_params(&c.model);
    double rest = (p.total - p.experts - p.embedding) * 2;
    for (double batch = 1; batch <= 64; batch *= 2) {
        sm_serve_point point = serve_point(serve, "tensor=2,expert_tensor=on", batch);
        double read = (1 - pow(1 - 2.0 / 8, batch)) * p.experts * 2;
        close_to(point.decode.bound_weights_s, (rest + read) / 2 / 3.35e12, 2e-3);
    }
    sm_serve_free(serve);
}

static void imbalance_costs(void **state) {
    serve_case c;
    serve_case_fill(&c, "deepseek-v3", "h800-sxm:32");
    c.job.prompt = 4096;
    sm_serve *even = serve_case_new(&c);
    c.job.imbalance = 1.5;
    sm_serve *uneven = serve_case_new(&c);
    sm_serve_point a = serve_point(even, "expert=32", 4096);
    sm_serve_point b = serve_point(uneven, "expert=32", 4096);
    assert_true(b.decode.expected_s > a.decode.expected_s);
    assert_true(b.prefill.expected_s > a.prefill.expected_s);
    close_to(b.decode.bound_compute_s, a.decode.bound_compute_s, 1e-9);
    sm_serve_free(even);
    sm_serve_free(uneven);
}

/* Latent attention reads R + Y values a token, whatever the heads. */
static void latent_caches_are_small(void **state) {
    serve_case c;
    serve_case_fill(&c, "deepseek-v3", "h800-sxm:32");
    c.job.context = 4096;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "expert=32", 3200);
    close_to(p.decode.bound_kv_s, 100.0 * 4096 * 576 * 2 * 61 / 3.35e12, 1e-6);
    sm_serve_free(serve);
}

/* Layers with a window hold and read no more than it. */
static void windows_bound_the_cache(void **state) {
    serve_case c;
    serve_case_fill(&c, "gemma-2-27b", "tpu-v5p:2x2x1");
    c.job.prompt = 32768;
    c.job.output = 2;
    c.job.context = 32768;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=4", 4);
    close_to(p.memory.kv, sm_model_kv_bytes(&c.model, 32770, SM_BF16), 1e-3);
    close_to(p.decode.bound_kv_s, sm_model_kv_bytes(&c.model, 32768, SM_BF16) / 2.765e12, 2e-3);
    sm_serve_free(serve);
}

/* A sequence has its states beside the weights, whatever its length; channels share them out. */
static void states_take_memory(void **state) {
    serve_case c;
    serve_case_fill(&c, "mamba-2.8b", "h100-sxm:2");
    sm_serve *serve = serve_case_new(&c);
    /* 64 layers of 5120 channels: 16 numbers in fp32, three inputs of a convolution in bf16 */
    const double one = 64 * 5120 * (16 * 4 + 3 * 2);
    assert_true(sm_model_state_bytes(&c.model, SM_BF16) == one);
    assert_true(sm_model_kv_bytes(&c.model, 4096, SM_BF16) == 0);
    close_to(serve_point(serve, "tensor=1", 100).memory.kv, 100 * one, 1e-9);
    close_to(serve_point(serve, "tensor=2", 100).memory.kv, 50 * one, 1e-9);
    sm_serve_free(serve);
    serve_case_fill(&c, "whisper-tiny", "h100-sxm:1");
    /* of 1500 frames 4 layers have keys and values of 384 */
    assert_true(sm_model_state_bytes(&c.model, SM_BF16) == 4 * 2 * 384 * 1500 * 2);
    assert_true(sm_model_state_bytes(&c.model, SM_INT8) == 4 * 2 * 384 * 1500);
}

/* A cached prefix is attended to and not computed. */
static void prefixes_save_work(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    c.job.prompt = 8192;
    sm_serve *whole = serve_case_new(&c);
    c.job.prefix = 6144;
    sm_serve *rest = serve_case_new(&c);
    double a = serve_point(whole, "tensor=1", 1).prefill.flops;
    double b = serve_point(rest, "tensor=1", 1).prefill.flops;
    c.job.prefix = 0;
    c.job.prompt = 6144;
    sm_serve *before = serve_case_new(&c);
    double first = serve_point(before, "tensor=1", 1).prefill.flops;
    double head = 2.0 * c.model.D * c.model.V;
    close_to(b, a - first + head, 1e-3);
    sm_serve_free(whole);
    sm_serve_free(rest);
    sm_serve_free(before);
}

/* A step of two groups: matmuls see all tokens, attention each group. */
static void groups_share_the_matmuls(void **state) {
    serve_case c;
    sm_error err = {0};
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_serve *serve = serve_case_new(&c);
    sm_plan plan = serve_plan("tensor=1");
    sm_step_batch decode = {1, {{32, 1, 2048}}, 32, 0}, chunk = {1, {{1, 512, 0}}, 1, 0};
    sm_step_batch both = {2, {{32, 1, 2048}, {1, 512, 0}}, 33, 0};
    sm_step_price d, p, x;
    assert_int_equal(sm_serve_step(serve, &plan, &decode, &d, &err), SM_OK);
    assert_int_equal(sm_serve_step(serve, &plan, &chunk, &p, &err), SM_OK);
    assert_int_equal(sm_serve_step(serve, &plan, &both, &x, &err), SM_OK);
    close_to(x.flops, d.flops + p.flops, 1e-9);
    close_to(x.bound_kv_s, d.bound_kv_s + p.bound_kv_s, 1e-9);
    close_to(x.bound_weights_s, d.bound_weights_s, 1e-9);
    assert_true(x.expected_s < d.expected_s + p.expected_s);
    assert_true(x.expected_s > d.expected_s && x.expected_s > p.expected_s);
    sm_serve_free(serve);
}

/* Prompts that ride along with decoding expand their keys; the compressed cache would take 3.4
 * times the FLOPs of attention. */
static void mixed_latent_steps_expand_prompts(void **state) {
    serve_case c;
    sm_error err = {0};
    serve_case_fill(&c, "deepseek-v3", "h800-sxm:32");
    sm_serve *serve = serve_case_new(&c);
    sm_plan plan = serve_plan("expert=32");
    sm_step_batch decode = {1, {{512, 1, 2048}}, 512, 0}, chunk = {1, {{32, 4096, 0}}, 32, 0};
    sm_step_batch both = {2, {{512, 1, 2048}, {32, 4096, 0}}, 544, 0};
    sm_step_price d, p, x;
    assert_int_equal(sm_serve_step(serve, &plan, &decode, &d, &err), SM_OK);
    assert_int_equal(sm_serve_step(serve, &plan, &chunk, &p, &err), SM_OK);
    assert_int_equal(sm_serve_step(serve, &plan, &both, &x, &err), SM_OK);
    close_to(x.flops, d.flops + p.flops, 1e-6);
    close_to(x.bound_kv_s, d.bound_kv_s, 1e-9);
    sm_serve_free(serve);
}

/* Tokens a step (Leviathan et al. 2023): (1 - a^(k+1)) / (1 - a). */
static void speculation_gains_tokens(void **state) {
    serve_case c;
    sm_model draft;
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:8");
    serve_case_model(&draft, "llama-3-8b");
    sm_serve *plain = serve_case_new(&c);
    c.job.speculation = (sm_speculation){4, 0.8, NULL};
    sm_serve *heads = serve_case_new(&c);
    c.job.speculation.draft = &draft;
    sm_serve *drafted = serve_case_new(&c);
    c.job.speculation.depth = -1;
    sm_serve *best = serve_case_new(&c);
    sm_serve_point a = serve_point(plain, "tensor=8", 1), b = serve_point(heads, "tensor=8", 1);
    sm_serve_point d = serve_point(drafted, "tensor=8", 1), e = serve_point(best, "tensor=8", 1);
    close_to(b.tokens_per_step, (1 - pow(0.8, 5)) / 0.2, 1e-12);
    assert_int_equal(b.depth, 4);
    assert_true(b.tpot_s[1] < a.tpot_s[1] && d.tpot_s[1] > b.tpot_s[1]);
    assert_true(e.tpot_s[1] <= d.tpot_s[1] && e.depth >= 1);
    sm_serve_free(plain);
    sm_serve_free(heads);
    sm_serve_free(drafted);
    sm_serve_free(best);
}

/* Money is chips and hours. */
static void money_follows_throughput(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    c.job.usd_per_chip_hour = 3.6;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=1", 16);
    close_to(p.tokens_per_s_per_chip, 16 / p.tpot_s[1], 1e-12);
    close_to(p.usd_per_million_tokens, 1000 / p.tokens_per_s_per_chip, 1e-12);
    assert_true(p.tokens_per_s_per_chip < p.tokens_per_s_per_chip_alone);
    sm_serve_free(serve);
}

/* What training spends between two steps is no part of an engine. */
static void usual_constants_are_those_of_an_engine(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_serve *serve = serve_case_new(&c);
    sm_calibration usual = sm_serve_usual_calibration(&c.system.chip);
    const sm_calibration *used = sm_serve_calibration(serve);
    close_to(used->step_overhead_s, usual.step_overhead_s, 0);
    close_to(used->memory_efficiency, usual.memory_efficiency, 0);
    if (strcmp(usual.software, "kernels") == 0 || strcmp(usual.software, "default") == 0)
        assert_true(usual.step_overhead_s <= 1e-3);
    sm_serve_free(serve);
}

/* Kernels launched one by one wait for the host; a replayed graph does not. */
static void eager_steps_wait_for_the_host(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_serve *graph = serve_case_new(&c);
    c.job.eager = true;
    sm_serve *eager = serve_case_new(&c);
    sm_calibration slow = *sm_serve_calibration(eager);
    slow.launch_s = 1e-4;
    sm_serve_set_calibration(eager, &slow);
    double a = serve_point(graph, "tensor=1", 1).tpot_s[1];
    double b = serve_point(eager, "tensor=1", 1).tpot_s[1];
    assert_true(b > 2 * a);
    sm_serve_free(graph);
    sm_serve_free(eager);
}

/* ---- what is refused ---- */

static void refuses(const char *model, const char *system, const char *text, const char *sentence) {
    serve_case c;
    sm_error err = {0};
    sm_serve_point p;
    serve_case_fill(&c, model, system);
    sm_serve *serve = serve_case_new(&c);
    sm_plan plan = serve_plan(text);
    assert_int_equal(sm_serve_point_of(serve, &plan, 1, &p, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    sm_serve_free(serve);
}

static void impossible_plans_are_refused(void **state) {
    refuses("llama-3-8b", "h100-sxm:4", "tensor=8", "the plan takes 8 chips and h100-sxm:4 has 4");
    refuses("llama-3-8b", "h100-sxm:4", "expert=2", "expert=2, but this model has no experts");
    refuses("llama-3-8b", "h100-sxm:64", "pipeline=33", "pipeline=33, but the model has 32 layers");
    refuses("llama-3-8b", "h100-sxm:8", "fsdp=3",
            "tensor x fsdp = 3 does not divide the MLP width F=14336 of a dense layer; 2 and 4 do");
    refuses("mixtral-8x7b", "h100-sxm:16", "expert=16",
            "8 experts do not divide by expert=16 x 1; expert=8 does");
}

static void degrees_below_one_are_refused(void **state) {
    serve_case c;
    sm_error err = {0};
    sm_serve_memory m;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_serve *serve = serve_case_new(&c);
    sm_plan plan = serve_plan("");
    plan.tensor = 0;
    assert_int_equal(sm_serve_memory_of(serve, &plan, 1, 1024, 1, &m, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, "the degrees of a plan are at least 1");
    sm_serve_room room = {.most = 1.0};
    assert_int_equal(sm_serve_room_of(serve, &plan, 1024, 1, &room, NULL), SM_OK);
    assert_true(room.most < 1);
    assert_int_equal(sm_serve_memory_of(serve, &plan, NAN, 1024, 1, &m, &err), SM_BAD_INPUT);
    sm_serve_free(serve);
}

static void bad_job(serve_case *c, const char *sentence) {
    sm_error err = {0};
    sm_serve *serve;
    assert_int_equal(sm_serve_new(&c->job, &serve, &err), SM_BAD_INPUT);
    assert_null(serve);
    assert_string_equal(err.sentence, sentence);
}

static void impossible_jobs_are_refused(void **state) {
    serve_case c, good;
    serve_case_fill(&good, "llama-3-8b", "h100-sxm:1");
    good.job.model = &good.model;
    c = good;
    c.job.prompt = 0;
    bad_job(&c, "a prompt must have 1 to 1e+09 tokens, not 0");
    c.job.prompt = NAN;
    bad_job(&c, "a prompt must have 1 to 1e+09 tokens, not nan");
    c = good;
    c.job.output = INFINITY;
    bad_job(&c, "an output must have 1 to 1e+09 tokens, not inf");
    c = good;
    c.job.prefix = 1024;
    bad_job(&c, "a cached prefix of 1024 tokens is not shorter than the prompt of 1024");
    c = good;
    c.job.imbalance = 0.5;
    bad_job(&c, "the imbalance of experts must be at least 1 (the fullest chip's tokens over the "
                "mean), not 0.5");
    c = good;
    c.job.speculation = (sm_speculation){3, 2, NULL};
    bad_job(&c, "an acceptance must lie between 0 and 1, not 2");
}

static void hostile_steps_are_refused(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    sm_serve *serve = serve_case_new(&c);
    sm_plan plan = serve_plan("");
    static const double odd[] = {NAN, INFINITY, -1, 0, 1e300, 1, 0.5};
    for (size_t i = 0; i < 7 * 7 * 7; i++) {
        sm_error err = {0};
        sm_step_price p;
        sm_step_batch b = {1, {{odd[i % 7], odd[i / 7 % 7], odd[i / 49]}}, 1, 0};
        sm_status s = sm_serve_step(serve, &plan, &b, &p, &err);
        if (s == SM_OK) assert_true(isfinite(p.expected_s) && p.expected_s > 0);
        else assert_true(s == SM_BAD_INPUT && err.sentence[0]);
    }
    sm_serve_free(serve);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(book_table_of_llama_2_13b),
        cmocka_unit_test(weights_as_stored),
        cmocka_unit_test(fewer_kv_heads_shrink_the_cache),
        cmocka_unit_test(book_figures_of_llama_3_70b),
        cmocka_unit_test(book_slices_of_llama_3_70b),
        cmocka_unit_test(prefill_is_flops_over_peak),
        cmocka_unit_test(prefill_flops_are_the_models),
        cmocka_unit_test(bounds_and_parts_hold),
        cmocka_unit_test(memory_holds_weights_and_cache),
        cmocka_unit_test(most_batch_is_the_edge),
        cmocka_unit_test(points_allocate_nothing),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(spare_chips_split_the_cache),
        cmocka_unit_test(context_splits_positions),
        cmocka_unit_test(fsdp_shards_weights),
        cmocka_unit_test(stages_share_layers_and_batch),
        cmocka_unit_test(experts_serve_all_chips),
        cmocka_unit_test(one_sequence_does_not_spread_over_data),
        cmocka_unit_test(experts_read_follow_the_batch),
        cmocka_unit_test(imbalance_costs),
        cmocka_unit_test(latent_caches_are_small),
        cmocka_unit_test(windows_bound_the_cache),
        cmocka_unit_test(states_take_memory),
        cmocka_unit_test(prefixes_save_work),
        cmocka_unit_test(groups_share_the_matmuls),
        cmocka_unit_test(mixed_latent_steps_expand_prompts),
        cmocka_unit_test(speculation_gains_tokens),
        cmocka_unit_test(money_follows_throughput),
        cmocka_unit_test(usual_constants_are_those_of_an_engine),
        cmocka_unit_test(eager_steps_wait_for_the_host),
        cmocka_unit_test(impossible_plans_are_refused),
        cmocka_unit_test(degrees_below_one_are_refused),
        cmocka_unit_test(states_are_in_the_bound),
        cmocka_unit_test(decoding_on_v5e_is_near_to_published_runs),
        cmocka_unit_test(impossible_jobs_are_refused),
        cmocka_unit_test(hostile_steps_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
