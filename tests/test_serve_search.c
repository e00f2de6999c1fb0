/* The frontier of serving: equal to brute force, quick enough, honest when there is none; pools and
 * fleets. */
#include "unit.h"
#include "sanitized.h"
#include <math.h>
#include <stdio.h>
#include "failing_alloc.h"
#include "serve_cases.h"
#include "scalemodel/load.h"
#include "../src/serve/serve_space.h"

static sm_serve_search_options options(void) {
    sm_serve_search_options o;
    sm_serve_search_defaults(&o);
    return o;
}

static sm_serve_result searched(const serve_case *c, const sm_serve_search_options *o,
                                sm_arena *arena) {
    sm_error err = {0};
    sm_serve_result r;
    if (sm_serve_search(&c->job, NULL, o, arena, &r, &err) != SM_OK) fail_msg("%s", err.sentence);
    assert_true(r.n > 0);
    return r;
}

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.9g where %.9g was expected", value, expected);
}

/* ---- against brute force ---- */

static void same_frontier_of(serve_case c, sm_serve_search_options o) {
    c.job.model = &c.model;
    c.job.system = &c.system;
    sm_arena *arena = sm_arena_new();
    sm_serve_result quick = searched(&c, &o, arena);
    o.brute = true;
    sm_serve_result brute = searched(&c, &o, arena);
    assert_int_equal(quick.n, brute.n);
    close_to(quick.space, brute.space, 0);
    close_to(quick.evaluated + quick.pruned, brute.evaluated, 0);
    for (size_t i = 0; i < quick.n; i++) {
        char a[256], b[256];
        sm_plan_format(&quick.point[i].plan, c.system.torus_dims, a, sizeof a);
        sm_plan_format(&brute.point[i].plan, c.system.torus_dims, b, sizeof b);
        assert_string_equal(a, b);
        close_to(quick.point[i].batch, brute.point[i].batch, 0);
        close_to(quick.point[i].tpot_s[1], brute.point[i].tpot_s[1], 0);
    }
    sm_arena_free(arena);
}

static void same_frontier(const char *model, const char *system, sm_serve_search_options o) {
    serve_case c;
    serve_case_fill(&c, model, system);
    same_frontier_of(c, o);
}

static void no_random_plan_beats_the_frontier(void **state) {
    static const char *const jobs[][2] = {{"llama-3-70b", "tpu-v5e:16x16"},
                                          {"mixtral-8x7b", "tpu-v5e:4x8"},
                                          {"mixtral-8x7b", "h100-sxm:16"}};
    sm_rng rng = {drawn_from(31)};
    int drawn = 0;
    for (int i = 0; i < 3; i++) {
        serve_case c;
        serve_case_fill(&c, jobs[i][0], jobs[i][1]);
        sm_arena *arena = sm_arena_new();
        sm_serve *serve = serve_case_new(&c);
        sm_serve_search_options o = options();
        sm_serve_result r = searched(&c, &o, arena);
        for (int k = 0; k < (REPEATED ? 100 : 400); k++) {
            sm_plan plan = serve_plan("");
            sm_serve_point p;
            char text[256];
            bool beaten = false;
            serve_draw_degrees(&rng, c.system.chips, &plan);
            double batch = exp2((double)sm_rng_below(&rng, 10));
            if (sm_serve_point_of(serve, &plan, batch, &p, NULL) != SM_OK || !p.fits) continue;
            drawn++;
            for (size_t n = 0; n < r.n && !beaten; n++)
                beaten = r.point[n].tpot_s[1] <= p.tpot_s[1] * (1 + 1e-7) &&
                         r.point[n].tokens_per_s_per_chip >= p.tokens_per_s_per_chip * (1 - 1e-9);
            sm_plan_format(&plan, c.system.torus_dims, text, sizeof text);
            if (!beaten) fail_msg("%s on %s, batch %g: %g s", text, jobs[i][1], batch, p.tpot_s[1]);
        }
        sm_serve_free(serve);
        sm_arena_free(arena);
    }
    assert_true(drawn > (REPEATED ? 75 : 300));
}

/* ---- bounds ---- */

/* What a step of this sharding takes at least, also by the tokens of its prompts, against its price
 * in one way that it may lie; and plans that share a layout lie in as many ways as if each were
 * listed alone. Returns whether the least is more than half of the price. */
static bool least_holds(step *x, placements *places, const step_least *least, double token_s,
                        const sm_step_batch *batch, sm_rng *rng) {
    const sm_attend *last = &batch->group[batch->groups - 1];
    sm_step_price price;
    step_resize(x, batch);
    double expected = step_least_s(least, x, LEAST_EXPECTED);
    double lower = step_least_s(least, x, LEAST_BOUND);
    const uint64_t way = sm_rng_below(rng, (uint64_t)places->n);
    x->at = places->at[way];
    x->at_hash = places->hash[way];
    step_price(x, &price);
    if (!(expected <= price.expected_s * (1 + 1e-12)) || !(lower <= price.lower_s * (1 + 1e-12)))
        fail_msg("%g, %g s at least where %g, %g s are priced", expected, lower, price.expected_s,
                 price.lower_s);
    if (!(token_s * last->sequences * last->queries <= price.expected_s * (1 + 1e-12)))
        fail_msg("%g s a token of a prompt where %g s are priced", token_s, price.expected_s);
    return expected > price.expected_s / 2;
}

/* Of sequences that decode, of prompts alone, or of a chunk of prompts beside those that decode. */
static sm_step_batch drawn_batch(const sm_serve *s, const sm_plan *plan, int kind, sm_rng *rng) {
    double sequences = 1 + (double)sm_rng_below(rng, 2000);
    double prompts = 1 + (double)sm_rng_below(rng, 3), chunk = 32 << sm_rng_below(rng, 6);
    sm_step_batch b = point_batch(point_group(plan, sequences), 1, point_context(s));
    if (kind == 0) return b;
    if (kind == 1) return point_batch(prompts, chunk, 0);
    b.groups = 2;
    b.group[1] = (sm_attend){prompts, chunk, 0.5 * chunk};
    b.sampled += prompts;
    return b;
}

static void no_step_takes_less_than_the_least(void **state) {
    static const char *const jobs[][2] = {
        {"mixtral-8x7b", "tpu-v5e:4x8"},  {"deepseek-v3", "h200:2x8"},
        {"gpt-oss-120b", "h100-sxm:2x8"}, {"llama-3-70b", "h100-sxm:4x4"},
        {"gemma-2-27b", "tpu-v5p:2x2x4"}, {"qwen3-next-80b-a3b", "b200:2x8"}};
    sm_rng rng = {drawn_from(37)};
    int seen = 0, near = 0;
    for (int i = 0; i < 6; i++) {
        serve_case c;
        serve_case_fill(&c, jobs[i][0], jobs[i][1]);
        c.job.imbalance = 1 + sm_rng_unit(&rng);
        c.job.eager = sm_rng_below(&rng, 2);
        if (sm_rng_below(&rng, 2)) c.job.dtypes = (sm_serve_dtypes){SM_FP8, SM_BF16, SM_FP8};
        sm_serve *serve = serve_case_new(&c);
        sm_arena *arena = sm_arena_new();
        placements *places = sm_arena_alloc(arena, sizeof *places);
        for (int k = 0; k < 60; k++) {
            sm_plan plan = serve_plan("");
            step_least least;
            char why[256];
            step x;
            serve_draw_degrees(&rng, c.system.chips, &plan);
            sm_step_batch batch = drawn_batch(serve, &plan, k % 3, &rng);
            sm_plan_settle(&plan, &serve->model);
            if (serve_refuse(serve, &plan, why, sizeof why)) continue;
            assert_int_equal(placements_of(serve, &plan, 0, places, NULL), SM_OK);
            assert_int_equal(step_unplaced(serve, &plan, &batch, &x, NULL), SM_OK);
            step_least_of(&x, places, &least);
            step_floor floor = {.made = false};
            double token_s = 0;
            if (k % 3 > 0)
                assert_int_equal(
                    step_token_s(&floor, serve, &plan, k % 3 - 1, places, &token_s, NULL), SM_OK);
            assert_true(k % 3 == 0 || token_s > 0);
            for (int n = 0; places->n > 0 && n < 3; n++, seen++) {
                near += least_holds(&x, places, &least, token_s, &batch, &rng);
                batch = drawn_batch(serve, &plan, k % 3, &rng);
            }
        }
        sm_arena_free(arena);
        sm_serve_free(serve);
    }
    assert_true(seen > 200 && near > seen / 2);
}

/* Axes of 16 chips close to rings on the whole slice alone. */
static void copies_inside_an_engine_are_searched(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-70b", "tpu-v5e:16x16");
    sm_arena *arena = sm_arena_new();
    sm_serve *serve = serve_case_new(&c);
    sm_serve_search_options o = options();
    o.fixed = serve_plan("fsdp=4,tensor=16,context=1,expert=1,pipeline=1");
    o.batch = 8;
    sm_serve_result r = searched(&c, &o, arena);
    sm_serve_point four = serve_point(serve, "data=4,fsdp=4,tensor=16", 8);
    assert_true(r.n > 0 && r.point[0].tpot_s[1] <= four.tpot_s[1]);
    sm_serve_free(serve);
    sm_arena_free(arena);
}

/* Two plans of which no batch that is a power of two is there, and one whose batch at the limit is
 * the best: whatever batch is asked for alone gives no more within the limit. */
static void the_batch_of_the_limit_is_there(void **state) {
    static const struct {
        const char *model, *on;
        double tpot_s, from, to, step;
    } jobs[] = {{"llama-3.1-70b", "h100-sxm:2x8", 0.0374, 48, 128, 3},
                {"qwen3-32b", "h100-sxm:3x8", 0.020, 40, 100, 7}};
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        serve_case c;
        serve_case_fill(&c, jobs[i].model, jobs[i].on);
        sm_arena *arena = sm_arena_new();
        sm_serve_search_options o = options();
        o.tpot_s = jobs[i].tpot_s;
        sm_serve_result r = searched(&c, &o, arena), one;
        const sm_serve_point *best = &r.point[r.n - 1];
        assert_true(best->tpot_s[1] <= o.tpot_s && best->tpot_s[1] > 0.97 * o.tpot_s);
        assert_true(fmod(log2(best->batch), 1) > 0);
        for (o.batch = jobs[i].from; o.batch <= jobs[i].to; o.batch += jobs[i].step) {
            sm_status status = sm_serve_search(&c.job, NULL, &o, arena, &one, NULL);
            if (status == SM_NEGATIVE) continue;
            assert_int_equal(status, SM_OK);
            assert_true(one.point[one.n - 1].tokens_per_s_per_chip <=
                        best->tokens_per_s_per_chip * (1 + 1e-9));
        }
        sm_arena_free(arena);
    }
}

static void frontiers_equal_brute_force(void **state) {
    sm_serve_search_options o = options();
    same_frontier("llama-3-8b", "tpu-v5e:2x4", o);
    same_frontier("llama-3-70b", "mi300x:16", o);
    same_frontier("mixtral-8x7b", "h100-sxm:8", o);
    same_frontier("gemma-2-27b", "tpu-v5p:2x2x2", o);
    same_frontier("whisper-large-v3", "tpu-v5p:2x2x2", o); /* weights that only beginners read */
    o.by_lower = true;
    same_frontier("llama-3-70b", "h100-sxm:8", o);
    serve_case alone;
    serve_case_fill(&alone, "llama-3-8b", "h100-sxm:4");
    alone.job.alone = true;
    same_frontier_of(alone, options());
    alone.job.alone = false;
    alone.job.prefix = 1014; /* few enough new tokens to be verified as drafts are */
    same_frontier_of(alone, options());
    o = options();
    o.ttft_s = 0.2;
    o.tpot_s = 0.02;
    same_frontier("llama-3-8b", "tpu-v5e:2x2", o); /* every first token is simulated */
}

/* Experts, on switched systems across nodes and on tori. */
static void frontiers_of_experts_equal_brute_force(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    same_frontier("mixtral-8x7b", "tpu-v5p:2x2x2", o);
    same_frontier("gpt-oss-120b", "h100-sxm:2x4", o);
    if (REPEATED) return;
    same_frontier("gpt-oss-20b", "tpu-v5e:4x4", o);
    same_frontier("qwen3-30b-a3b", "h100-sxm:2x8", o);
    serve_case_fill(&c, "deepseek-v3", "h200:2x8");
    c.job.dtypes = (sm_serve_dtypes){SM_FP8, SM_BF16, SM_FP8};
    c.job.imbalance = 1.3;
    same_frontier_of(c, o);
    c.job.alone = true;
    same_frontier_of(c, o);
    o.by_lower = true;
    same_frontier_of(c, o);
    serve_case_fill(&c, "llama-4-scout", "tpu-v5p:2x2x4");
    c.job.dtypes = (sm_serve_dtypes){SM_INT8, SM_INT8, SM_BF16};
    c.job.context = 65536;
    same_frontier_of(c, options());
    /* Every first token is simulated: a small space. */
    o = options();
    o.ttft_s = 1;
    o.tpot_s = 0.05;
    same_frontier("gpt-oss-20b", "h100-sxm:2", o);
}

static void drafted_frontiers_equal_brute_force(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:4");
    c.job.speculation = (sm_speculation){-1, 0.7, NULL};
    same_frontier_of(c, options());
    c.job.eager = true;
    c.job.speculation = (sm_speculation){0, 0, NULL};
    same_frontier_of(c, options());
    c.job.dtypes = (sm_serve_dtypes){SM_FP8, SM_FP8, SM_FP8};
    c.job.prefix = 512;
    same_frontier_of(c, options());
    serve_case_fill(&c, "gpt-oss-20b", "h100-sxm:1x4");
    c.job.speculation = (sm_speculation){3, 0.8, NULL};
    same_frontier_of(c, options());
    c.job.speculation.depth = -1;
    same_frontier_of(c, options());
}

/* No point of a frontier is as good as another in both. */
static void points_do_not_beat_each_other(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-70b", "tpu-v5e:8x8");
    sm_arena *arena = sm_arena_new();
    sm_serve_result r = searched(&c, &o, arena);
    assert_true(r.n > 4);
    for (size_t i = 0; i < r.n; i++) {
        const sm_serve_point *p = &r.point[i];
        assert_true(p->fits && p->batch <= p->most_batch);
        assert_int_equal(sm_plan_chips(&p->plan), p->chips);
        if (i == 0) continue;
        assert_true(p->tpot_s[1] > p[-1].tpot_s[1] * (1 + 1e-7));
        assert_true(p->tokens_per_s_per_chip > p[-1].tokens_per_s_per_chip);
        assert_true(p->usd_per_million_tokens < p[-1].usd_per_million_tokens);
    }
    close_to(r.best_tpot_s, r.point[0].tpot_s[1], 1e-9);
    assert_int_equal(r.least_chips, 16);
    sm_arena_free(arena);
}

/* llama-3.1-405B over all slices of TPU v5e up to 256 chips: under a second. */
static void large_searches_are_quick(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3.1-405b", "tpu-v5e:16x16");
    sm_arena *arena = sm_arena_new();
    sm_serve_result r = searched(&c, &o, arena);
    print_message("405B on v5e: %.0f candidates, %.0f priced, %.2f s\n", r.space, r.evaluated,
                  r.seconds);
    assert_true(r.space > 20000 && r.evaluated + r.pruned == r.space);
    assert_int_equal(r.least_chips, 64);
    sm_arena_free(arena);
}

/* Experts on hundreds of chips: what is not worth pricing is told in microseconds. */
static void large_searches_of_experts_are_quick(void **state) {
    if (SANITIZED) skip(); /* 20 s there, and of the code of the searches above */
    serve_case c;
    sm_serve_search_options o = options();
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "deepseek-v3", "h100-sxm:64x8");
    c.job.dtypes = (sm_serve_dtypes){SM_FP8, SM_BF16, SM_FP8};
    sm_serve_result r = searched(&c, &o, arena);
    print_message("DeepSeek-V3 on 512 H100: %.0f candidates, %.0f priced, %.2f s\n", r.space,
                  r.evaluated, r.seconds);
    assert_true(r.space > 5e6 && r.evaluated + r.pruned == r.space && r.evaluated < 1e5);
    sm_arena_free(arena);
}

/* Limits only take points away. */
static void limits_are_kept(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:8");
    o.tpot_s = 0.008;
    o.ttft_s = 0.1;
    sm_arena *arena = sm_arena_new();
    sm_serve_result r = searched(&c, &o, arena);
    for (size_t i = 0; i < r.n; i++)
        assert_true(r.point[i].tpot_s[1] <= 0.008 && r.point[i].ttft_s[1] <= 0.1);
    sm_arena_free(arena);
}

static void given_keys_are_kept(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:8");
    o.fixed = serve_plan("tensor=2,pipeline=2,order=pipeline.tensor");
    o.batch = 32;
    sm_arena *arena = sm_arena_new();
    sm_serve_result r = searched(&c, &o, arena);
    for (size_t i = 0; i < r.n; i++) {
        assert_int_equal(r.point[i].plan.tensor, 2);
        assert_int_equal(r.point[i].plan.pipeline, 2);
        assert_int_equal(r.point[i].plan.order[0], SM_PLAN_PIPELINE);
        close_to(r.point[i].batch, 32, 0);
    }
    o.chips_least = 4;
    o.chips_most = 4;
    r = searched(&c, &o, arena);
    for (size_t i = 0; i < r.n; i++) assert_int_equal(r.point[i].chips, 4);
    sm_arena_free(arena);
}

/* Sixteen chips are 4x4 where they are ordered so; of 2x16 none are. */
static void replicas_are_parts_of_the_system(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "tpu-v5e:2x16");
    sm_arena *arena = sm_arena_new();
    sm_serve_result r = searched(&c, &o, arena);
    assert_true(r.n > 0);
    for (size_t i = 0; i < r.n; i++) {
        sm_system part;
        int chips = r.point[i].chips;
        assert_int_not_equal(chips, 16);
        assert_true(chips == c.system.chips || sm_system_part(&c.system, chips, &part));
    }
    serve_case_system(&c, "tpu-v5e:2x4"); /* of fewer dimensions, too */
    for (int chips = 1; chips <= 4; chips *= 2) {
        sm_system part;
        assert_true(sm_system_part(&c.system, chips, &part));
        assert_int_equal(part.chips, chips);
    }
    sm_arena_free(arena);
}

/* ---- there is none ---- */

static void no_answer(const serve_case *c, const sm_serve_search_options *o, sm_status status,
                      const char *sentence) {
    sm_error err = {0};
    sm_serve_result r;
    sm_arena *arena = sm_arena_new();
    assert_int_equal(sm_serve_search(&c->job, NULL, o, arena, &r, &err), status);
    assert_int_equal(r.n, 0);
    if (strncmp(err.sentence, sentence, strlen(sentence)) != 0) fail_msg("%s", err.sentence);
    sm_arena_free(arena);
}

static void impossible_limits_say_by_how_much(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    o.tpot_s = 0.001;
    no_answer(&c, &o, SM_NEGATIVE, "no plan decodes in 1 ms a token: the least is ");
    o = options();
    o.ttft_s = 0.001;
    no_answer(&c, &o, SM_NEGATIVE, "no plan reaches the first token in 1 ms: the least is ");
}

/* What the sentence calls the least is that of every plan. */
static void misses_equal_brute_force(void **state) {
    const double limits[][2] = {{0, 0.001}, {0.001, 0},     {0.001, 0.001},
                                {0.02, 1},  {0.06, 0.0075}, {0.06, 0}};
    serve_case c;
    serve_case_fill(&c, "gpt-oss-20b", "h100-sxm:2");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i += REPEATED ? 4 : 1) {
        sm_error quick = {0}, brute = {0};
        sm_serve_result r;
        sm_serve_search_options o = options();
        sm_arena *arena = sm_arena_new();
        o.ttft_s = limits[i][0];
        o.tpot_s = limits[i][1];
        sm_status status = sm_serve_search(&c.job, NULL, &o, arena, &r, &quick);
        o.brute = true;
        assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &r, &brute), status);
        assert_string_equal(quick.sentence, brute.sentence);
        sm_arena_free(arena);
    }
}

/* First tokens that are late are simulated until that is certain, others to the end. */
static void late_first_tokens_are_not_simulated_on(void **state) {
    serve_case c;
    sm_serve_point whole, p;
    serve_case_fill(&c, "llama-3-8b", "tpu-v5e:2x2");
    sm_serve *serve = serve_case_new(&c);
    const sm_plan plan = serve_plan("tensor=4");
    for (double batch = 1; batch <= 64; batch *= 8) {
        assert_int_equal(sm_serve_point_of(serve, &plan, batch, &whole, NULL), SM_OK);
        double first_s = whole.ttft_s[1];
        for (double share = 0.05; share < 1; share += 0.2) {
            assert_int_equal(point_of(serve, &plan, batch, share * first_s, &p, NULL), SM_OK);
            assert_true(p.ttft_s[1] > share * first_s && p.ttft_s[1] <= first_s * (1 + 1e-9));
            assert_true(share > 0.5 || p.ttft_s[1] < 0.9 * first_s);
        }
        assert_int_equal(point_of(serve, &plan, batch, 1.001 * first_s, &p, NULL), SM_OK);
        close_to(p.ttft_s[1], first_s, 0);
        close_to(p.ttft_p99_s, whole.ttft_p99_s, 0);
    }
    sm_serve_free(serve);
}

static void what_does_not_fit_says_what_does(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3.1-405b", "h100-sxm:4");
    no_answer(&c, &o, SM_NEGATIVE,
              "nothing fits on h100-sxm:4: a chip needs at least 207 GB and has 76.5 GB; the "
              "smallest that fits has 16 chips; with weights in int4 it fits");
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:4");
    o.fixed = serve_plan("fsdp=3");
    no_answer(&c, &o, SM_NEGATIVE, "no plan of these degrees shards ");
}

static void hostile_options_are_refused(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    o.ttft_s = NAN;
    no_answer(&c, &o, SM_BAD_INPUT, "limits of nan s");
    o = options();
    o.batch = 0.5;
    no_answer(&c, &o, SM_BAD_INPUT, "a batch must have 1 to 1e9 sequences, not 0.5");
    o = options();
    o.chips_least = 8;
    o.chips_most = 4;
    no_answer(&c, &o, SM_BAD_INPUT, "no replica has 8 to 4 chips");
}

static void every_allocation_may_fail(void **state) {
    serve_case c;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:1");
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_error err = {0};
        sm_serve_result r;
        sm_arena *arena = sm_arena_new();
        if (!arena) continue;
        sm_status s = sm_serve_search(&c.job, NULL, &o, arena, &r, &err);
        assert_true(s == SM_OK || (s == SM_INTERNAL && err.sentence[0]));
        if (!failing_alloc_refused(&loop)) assert_int_equal(s, SM_OK);
        sm_arena_free(arena);
    }
}

/* ---- pools and fleets ---- */

static void pools_match_their_rates(void **state) {
    serve_case c;
    sm_error err = {0};
    sm_disaggregated d;
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-70b", "h100-sxm:16");
    c.job.prompt = 4096;
    c.job.usd_per_chip_hour = 2;
    o.ttft_s = 1.5;
    o.tpot_s = 0.05;
    o.chips_most = 8;
    assert_int_equal(sm_serve_disaggregate(&c.job, NULL, &o, NULL, &d, &err), SM_OK);
    assert_true(d.prefill.ttft_s[1] + d.kv_transfer_s <= 1.5 && d.decode.tpot_s[1] <= 0.05);
    close_to(d.kv_bytes, 4096 * 327680.0, 1e-12);
    double prompts = d.prefill_batch / d.prefill.ttft_s[1] / d.prefill.chips;
    double requests = d.decode.tokens_per_s_per_chip / c.job.output;
    close_to(d.prefill_per_decode_chips, requests / prompts, 1e-9);
    close_to(d.tokens_per_s_per_chip,
             d.decode.tokens_per_s_per_chip / (1 + d.prefill_per_decode_chips), 1e-12);
    close_to(d.usd_per_million_tokens, 1e6 * 2 / 3600 / d.tokens_per_s_per_chip, 1e-9);
    assert_true(d.kv_transfer_s > d.kv_bytes / 8 / 450e9);
    /* Whole workers within the chips, neither pool busier than four fifths; no other number of them
     * serves more. */
    double x = d.prefill_workers, y = d.decode_workers, prompts_x = prompts * d.prefill.chips,
           requests_y = requests * d.decode.chips;
    close_to(d.chips, x * d.prefill.chips + y * d.decode.chips, 0);
    assert_true(x >= 1 && y >= 1 && d.chips <= 16 && d.ttft_s <= 1.5 && d.tpot_s <= 0.05);
    close_to(d.prefill_busy, d.requests_per_s / (x * prompts_x), 1e-9);
    close_to(d.decode_busy, d.requests_per_s / (y * requests_y), 1e-9);
    assert_true(d.prefill_busy <= 0.8 + 1e-9 && d.decode_busy <= 0.8 + 1e-9);
    o.ttft_s = 0; /* then the queue sets no limit */
    assert_int_equal(sm_serve_disaggregate(&c.job, NULL, &o, NULL, &d, &err), SM_OK);
    prompts_x = 0.8 * d.prefill_batch / d.prefill.ttft_s[1];
    requests_y = 0.8 * d.decode.tokens_per_s_per_chip * d.decode.chips / c.job.output;
    double most = 0;
    for (int p = 1; p * d.prefill.chips < 16; p++)
        for (int q = 1; p * d.prefill.chips + q * d.decode.chips <= 16; q++)
            most = fmax(most, fmin(p * prompts_x, q * requests_y));
    close_to(d.requests_per_s, most, 1e-9);
    /* On chips of their own, and for a rate. */
    serve_case other;
    serve_case_fill(&other, "llama-3-70b", "h200:8");
    const sm_pools_asked apart = {
        .prefill_system = &other.system, .prefill_compute = SM_BF16, .requests_per_s = 7};
    assert_int_equal(sm_serve_disaggregate(&c.job, NULL, &o, &apart, &d, &err), SM_OK);
    close_to(d.requests_per_s, 7, 0);
    assert_true(d.prefill.chips <= 8 && d.prefill_busy <= 0.8 + 1e-9);
    assert_true(d.prefill_busy * d.prefill_workers > 0.8 * (d.prefill_workers - 1) - 1e-9);
}

static void fleets_carry_the_traffic(void **state) {
    serve_case c;
    sm_error err = {0};
    sm_serve_search_options o = options();
    serve_case_fill(&c, "llama-3-8b", "h100-sxm:8");
    c.job.usd_per_chip_hour = 3;
    double chips = 0;
    sm_arena *arena = sm_arena_new();
    sm_serve_result answer = searched(&c, &o, arena);
    for (double rate = 1; rate <= 4096; rate *= 4) {
        sm_fleet f, from;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, rate, &f, &err), SM_OK);
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, &answer, rate, &from, &err), SM_OK);
        assert_memory_equal(&f.replicas, &from.replicas, sizeof f - offsetof(sm_fleet, replicas));
        assert_true(f.utilisation < 1 && f.utilisation > 0); /* 0.8 of what more places do */
        close_to(f.utilisation * f.replicas * f.requests_per_s_per_replica, rate, 1e-9);
        close_to(f.usd_per_hour, 3 * f.chips, 1e-12);
        close_to(f.chips, f.replicas * f.point.chips, 0);
        assert_true(f.chips >= chips);
        chips = f.chips;
    }
    sm_arena_free(arena);
    sm_fleet f;
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, NAN, &f, &err), SM_BAD_INPUT);
    sm_plan_space spaces[SM_MOST_SPACES + 1] = {{.name = NULL}};
    for (int i = 0; i < SM_MOST_SPACES; i++) spaces[i].next = &spaces[i + 1];
    sm_serve_search_options many = o;
    many.space = spaces;
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &many, NULL, 1, &f, &err), SM_BAD_INPUT);
    o.tpot_s = 1e-4;
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 1, &f, &err), SM_NEGATIVE);
    sm_serve *serve;
    c.job.size = offsetof(sm_serve_job, alone); /* of a header that has not the last member yet */
    assert_int_equal(sm_serve_new(&c.job, &serve, &err), SM_OK);
    sm_serve_free(serve);
    c.job.size = 0;
    assert_int_equal(sm_serve_new(&c.job, &serve, &err), SM_USAGE);
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 1, &f, &err), SM_USAGE);
}

/* Whether so many replicas of `tensor` chips, which do nothing but tensor parallelism, hold the
 * limit under the requests as they come. */
static bool tensor_holds(const serve_case *c, int tensor, double replicas, double rate,
                         double tpot_s) {
    sm_error err = {0};
    sm_plan plan;
    sm_system slice;
    sm_serve *serve;
    sm_serve_job job = c->job;
    sm_load_times t;
    sm_serve_room room;
    const sm_load load = {.kind = SM_LOAD_OPEN, .requests = rate};
    sm_plan_defaults(&plan);
    plan.tensor = tensor;
    if (replicas < 1 || sm_system_resize(&c->system, tensor, &slice, NULL)) return false;
    job.system = &slice;
    assert_int_equal(sm_serve_new(&job, &serve, &err), SM_OK);
    sm_status status =
        sm_serve_room_of(serve, &plan, sm_serve_longest(&job), job.prompt, &room, &err);
    const double fit = room.most;
    sm_engines e = {.decode = serve,
                    .prefill = serve,
                    .plan = plan,
                    .prefill_plan = plan,
                    .n = replicas,
                    .prefill_n = replicas,
                    .most_running = fmin(fit, 256)};
    bool held = status == SM_OK && fit >= 1;
    if (held) assert_int_equal(sm_serve_load(&e, &load, false, &t, &err), SM_OK);
    sm_serve_free(serve);
    return held && t.tpot_p90_s <= tpot_s && t.running + sqrt(t.running) <= e.most_running;
}

/* Requests at random favour plans whose prompts do not hold up others: no plan of tensor alone, on
 * any number of chips, holds the limits on much fewer. */
static void fleets_are_of_plans_for_requests_at_random(void **state) {
    static const struct {
        const char *model, *system;
        double prompt, output, tpot_s, rate;
    } rows[] = {{"qwen3-235b-a22b", "h200:2x8", 6000, 800, 0.04, 4},
                {"qwen3-30b-a3b", "h100-sxm:8", 2048, 512, 0.015, 100},
                {"llama-3-8b", "h100-sxm:4", 1000, 200, 0.01, 38}};
    (void)state;
    for (size_t i = REPEATED; i < sizeof rows / sizeof *rows; i++) {
        serve_case c;
        sm_error err = {0};
        sm_fleet f;
        serve_case_fill(&c, rows[i].model, rows[i].system);
        c.job.prompt = rows[i].prompt, c.job.output = rows[i].output;
        sm_serve_search_options o = options();
        o.tpot_s = rows[i].tpot_s;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, rows[i].rate, &f, &err), SM_OK);
        assert_true(f.tpot_p90_s <= o.tpot_s);
        for (int chips = 2; chips <= c.system.chips; chips *= 2)
            if (tensor_holds(&c, chips, ceil(0.8 * f.chips / chips) - 1, rows[i].rate, o.tpot_s))
                fail_msg("%s: less than %g chips hold it with tensor=%d", rows[i].model, f.chips,
                         chips);
    }
}

/* Admission and the step under way are no queue, a batch of one is no place taken all the time, and
 * the batch of a loop that begins at once is not all that may run: one replica is enough, and no
 * plan by itself takes fewer chips. */
static void fleets_are_as_small_as_may_be(void **state) {
    static const struct {
        const char *model, *system, *plan;
        double prompt, output, tpot_s, ttft_s, rate, chips;
    } rows[] = {{"llama-3.2-1b", "h100-sxm:4", "tensor=1", 2048, 512, 0.01, 0, 20, 1},
                {"qwen3-30b-a3b", "h100-sxm:2", "tensor=2", 16, 16, 0.005, 0, 5, 2},
                {"llama-3.1-8b", "l40s:4", "context=4", 6000, 100, 0, 0.3, 5, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        serve_case c;
        sm_error err = {0};
        sm_fleet f, alone;
        serve_case_fill(&c, rows[i].model, rows[i].system);
        c.job.prompt = rows[i].prompt, c.job.output = rows[i].output;
        sm_serve_search_options o = options();
        o.tpot_s = rows[i].tpot_s, o.ttft_s = rows[i].ttft_s;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, rows[i].rate, &f, &err), SM_OK);
        assert_true(rows[i].chips <= 0 || f.chips <= rows[i].chips);
        assert_true(o.ttft_s <= 0 || f.ttft_p90_s <= o.ttft_s);
        sm_source text = sm_source_of("--plan", rows[i].plan);
        assert_int_equal(sm_serve_plan_parse(&text, &o.fixed, &err), SM_OK);
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, rows[i].rate, &alone, &err), SM_OK);
        assert_true(f.chips <= alone.chips);
    }
}

/* Four fleets for a fourth of the requests each hold the limits too, and so does what holds one
 * more. */
static void fleets_grow_no_faster_than_what_is_asked(void **state) {
    static const double tpot_s[] = {0.0082, 0.0092, 0.011};
    serve_case c;
    sm_error err = {0};
    sm_fleet f, fourth, less, near_fleet;
    serve_case_fill(&c, "llama-3.1-8b", "h100-sxm:1");
    c.job.prompt = 1000, c.job.output = 200;
    for (size_t i = REPEATED; i < sizeof tpot_s / sizeof *tpot_s; i++) {
        sm_serve_search_options o = options();
        o.tpot_s = tpot_s[i];
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 200, &less, &err), SM_OK);
        o.ttft_s = 0.95 * less.ttft_p90_s;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 200, &f, &err), SM_OK);
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 50, &fourth, &err), SM_OK);
        print_message("%g s: %g chips, %g of a fourth, %g without the limit to first tokens\n",
                      o.tpot_s, f.chips, fourth.chips, less.chips);
        assert_true(f.tpot_p90_s <= o.tpot_s && f.ttft_p90_s <= o.ttft_s);
        /* Drawn: half a per cent of a first token, which is little of a load and much of a fleet.
         */
        sm_serve_search_options near = o;
        near.ttft_s *= 1.01;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &near, NULL, 200, &near_fleet, &err), SM_OK);
        assert_true(near_fleet.chips <= ceil(1.02 * 4 * fourth.chips) + 1);
        assert_true(less.chips <= f.chips);
    }
}

/* The replica for requests at random holds the limits at its rate for nine requests in ten, at four
 * fifths of what it does with as many sequences as fit, and nothing of the frontier does more. */
static void a_replica_holds_the_limits_at_random(void **state) {
    (void)state;
    serve_case c;
    sm_error err = {0};
    sm_fleet f, none;
    sm_serve_result answer;
    sm_arena *arena = sm_arena_new();
    serve_case_fill(&c, "qwen3-30b-a3b", "h100-sxm:4");
    sm_serve_search_options o = options();
    o.tpot_s = 0.02;
    assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &answer, &err), SM_OK);
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, &answer, 0, &f, &err), SM_OK);
    assert_true(f.utilisation > 0.8 && f.utilisation <= 1 && f.tpot_p90_s <= o.tpot_s);
    assert_true(f.running < f.point.batch && f.replicas == 1 && f.tpot_s < f.tpot_p90_s);
    double most = answer.point[answer.n - 1].tokens_per_s_per_chip, full = 0;
    assert_true(f.utilisation * f.point.tokens_per_s_per_chip <= most);
    sm_serve_search_options loose = options();
    assert_int_equal(sm_serve_search(&c.job, NULL, &loose, arena, &answer, &err), SM_OK);
    full = answer.point[answer.n - 1].tokens_per_s_per_chip;
    assert_true(f.utilisation * f.point.tokens_per_s_per_chip <= 0.8 * full * (1 + 1e-9));
    assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &answer, &err), SM_OK);
    o.ttft_s = 1e-3; /* admission alone takes longer */
    assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, &answer, 0, &none, &err), SM_OK);
    assert_true(none.utilisation == 0);
    sm_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frontiers_equal_brute_force),
        cmocka_unit_test(the_batch_of_the_limit_is_there),
        cmocka_unit_test(no_random_plan_beats_the_frontier),
        cmocka_unit_test(no_step_takes_less_than_the_least),
        cmocka_unit_test(copies_inside_an_engine_are_searched),
        cmocka_unit_test(frontiers_of_experts_equal_brute_force),
        cmocka_unit_test(drafted_frontiers_equal_brute_force),
        cmocka_unit_test(points_do_not_beat_each_other),
        cmocka_unit_test(large_searches_are_quick),
        cmocka_unit_test(large_searches_of_experts_are_quick),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(given_keys_are_kept),
        cmocka_unit_test(impossible_limits_say_by_how_much),
        cmocka_unit_test(misses_equal_brute_force),
        cmocka_unit_test(late_first_tokens_are_not_simulated_on),
        cmocka_unit_test(what_does_not_fit_says_what_does),
        cmocka_unit_test(hostile_options_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(pools_match_their_rates),
        cmocka_unit_test(replicas_are_parts_of_the_system),
        cmocka_unit_test(fleets_carry_the_traffic),
        cmocka_unit_test(fleets_are_as_small_as_may_be),
        cmocka_unit_test(fleets_grow_no_faster_than_what_is_asked),
        cmocka_unit_test(fleets_are_of_plans_for_requests_at_random),
        cmocka_unit_test(a_replica_holds_the_limits_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
