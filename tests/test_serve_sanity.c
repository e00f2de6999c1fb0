/* What more chips and better ones do to a point of serving: never harm, and idle ones no good. */
#include "sanitized.h"
#include "unit.h"
#include <math.h>
#include <string.h>
#include <stdio.h>
#include "scalemodel/load.h"
#include "serve_cases.h"

typedef struct sample {
    const char *model, *system, *plan;
} sample;

static void never_less(const char *what, const char *plan, double batch, double value,
                       double least) {
    if (value < least * (1 - 1e-12))
        fail_msg("%s of %s, batch %g: %.9g is less than %.9g", what, plan, batch, value, least);
}

/* Copies of a plan take as long as the fullest of them would alone, and hold as much, whatever idle
 * ones stand by. */
static void idle_copies_never_help(void **state) {
    static const sample jobs[] = {{"llama-3-8b", "h100-sxm:16", "tensor=2"},
                                  {"mixtral-8x7b", "h100-sxm:16", "tensor=1"},
                                  {"mixtral-8x7b", "h100-sxm:16", "tensor=2,expert=2"},
                                  {"mixtral-8x7b", "h100-sxm:16", "expert=4"},
                                  {"mixtral-8x7b", "h100-sxm:16", "tensor=4,expert_tensor=on"},
                                  {"mixtral-8x7b", "tpu-v5e:4x4", "context=2,expert=2"},
                                  {"mixtral-8x7b", "tpu-v5e:4x4", "fsdp=2,weights_by=gathered"},
                                  {"mixtral-8x7b", "h100-sxm:16", "fsdp=2,tensor=2"},
                                  {"deepseek-v2-lite", "h100-sxm:16", "expert=4"}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        serve_case c;
        serve_case_fill(&c, jobs[i].model, jobs[i].system);
        sm_serve *serve = serve_case_new(&c);
        for (int copies = 2; copies <= 4; copies *= 2)
            for (double batch = 1; batch <= 13; batch++) {
                char plan[128];
                snprintf(plan, sizeof plan, "%s,data=%d", jobs[i].plan, copies);
                sm_serve_point all = serve_point(serve, plan, batch);
                sm_serve_point one = serve_point(serve, jobs[i].plan, ceil(batch / copies));
                for (int k = 0; k < 3; k++) {
                    never_less("time per token", plan, batch, all.tpot_alone_s[k],
                               one.tpot_alone_s[k]);
                    never_less("time to the first", plan, batch, all.ttft_alone_s[k],
                               one.ttft_alone_s[k]);
                }
                never_less("memory", plan, batch, all.memory.total, one.memory.total);
            }
        sm_serve_free(serve);
    }
}

enum { RESOURCES = 6 };
static double *resource(serve_case *c, int which) {
    sm_chip *chip = &c->system.chip;
    double *const all[RESOURCES] = {&chip->memory_bytes_per_s.value,
                                    &chip->flops_per_s[SM_BF16].value,
                                    &chip->vector_flops_per_s.value,
                                    &chip->clock_hz.value,
                                    &c->system.level[0].bytes_per_s_oneway,
                                    &c->system.level[c->system.levels - 1].bytes_per_s_oneway};
    return all[which];
}

/* More of any resource, each link by itself, never makes a step slower. */
static void a_better_machine_is_never_slower(void **state) {
    static const sample samples[] = {{"llama-3-70b", "h100-sxm:16", "tensor=16"},
                                     {"llama-3-70b", "tpu-v5e:4x8", "tensor=8,fsdp=4"},
                                     {"llama-3-70b", "tpu-v5e:4x8", "tensor=8,context=4"},
                                     {"llama-3-70b", "h100-sxm:16", "tensor=8,pipeline=2,seq=on"},
                                     {"deepseek-v3", "h800-sxm:32", "tensor=8,expert=4"},
                                     {"mixtral-8x7b", "h100-sxm:16", "expert=8,data=2"},
                                     {"gpt-oss-120b", "h100-sxm:4", "tensor=4"},
                                     {"gemma-2-27b", "tpu-v5p:2x2x1", "tensor=4"}};
    enum { SAMPLES = sizeof samples / sizeof *samples };
    sm_rng rng = {drawn_from(11)};
    for (int i = 0; i < SAMPLES * 10; i++) {
        const sample *s = &samples[i % SAMPLES];
        serve_case c;
        serve_case_fill(&c, s->model, s->system);
        for (int better = 0; better < 2; better++) { /* first out of balance, as no chip is made */
            double batch = 1 + (double)sm_rng_below(&rng, 300);
            sm_serve *serve = serve_case_new(&c);
            sm_serve_point before = serve_point(serve, s->plan, batch), after;
            sm_serve_free(serve);
            for (int k = 0; k < RESOURCES; k++)
                if (!better || sm_rng_below(&rng, 3) == 0)
                    *resource(&c, k) *=
                        better ? 1 + 2 * sm_rng_unit(&rng) : pow(10, 2 * sm_rng_unit(&rng) - 1);
            if (!better) continue;
            serve = serve_case_new(&c);
            after = serve_point(serve, s->plan, batch);
            sm_serve_free(serve);
            for (int k = 0; k < 3; k++) {
                never_less("time per token before", s->plan, batch, before.tpot_alone_s[k],
                           after.tpot_alone_s[k] * (1 - 1e-9));
                never_less("time to the first before", s->plan, batch, before.ttft_alone_s[k],
                           after.ttft_alone_s[k] * (1 - 1e-9));
            }
        }
    }
}

static sm_load_times in_flight(const serve_case *c, const char *text, double requests) {
    sm_error err = {0};
    sm_load_times times = {0};
    sm_serve *serve = serve_case_new(c);
    sm_plan plan = serve_plan(text);
    const sm_engines one = {.decode = serve,
                            .prefill = serve,
                            .plan = plan,
                            .prefill_plan = plan,
                            .n = 1,
                            .prefill_n = 1,
                            .most_running = 1024};
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = requests};
    if (sm_serve_load(&one, &load, false, &times, &err) != SM_OK) fail_msg("%s", err.sentence);
    sm_serve_free(serve);
    return times;
}

/* Requests in flight: on a better machine whole requests never take longer; a first token may,
 * where those that decode are back the sooner, but by no jump: little more than one in steps of 5
 * %. */
static void a_better_machine_never_delays_requests(void **state) {
    static const struct {
        sample s;
        double prompt, output, requests;
        int which; /* resource; RESOURCES: all */
    } loads[] = {{{"gemma-2-27b", "tpu-v5p:2x2x1", "tensor=4"}, 56, 1467, 35, 0},
                 {{"llama-3-70b", "h100-sxm:8", "tensor=8"}, 712, 34, 38, RESOURCES},
                 {{"mixtral-8x7b", "h100-sxm:2", "tensor=2"}, 512, 16, 100, RESOURCES},
                 {{"mixtral-8x7b", "h100-sxm:8", "tensor=2,expert=4"}, 5084, 53, 51, 0},
                 {{"mixtral-8x7b", "h100-sxm:8", "tensor=2,expert=4"}, 913, 52, 143, 3},
                 {{"gpt-oss-120b", "h100-sxm:4", "tensor=4"}, 201, 1561, 134, 0},
                 {{"llama-3-8b", "tpu-v5e:2x4", "tensor=8"}, 347, 29, 139, RESOURCES}};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        serve_case c;
        serve_case_fill(&c, loads[i].s.model, loads[i].s.system);
        c.job.prompt = loads[i].prompt;
        c.job.output = loads[i].output;
        sm_load_times before = in_flight(&c, loads[i].s.plan, loads[i].requests);
        for (int step = 0; step < 14; step++) {
            for (int k = 0; k < RESOURCES; k++) {
                bool same = k == RESOURCES - 1 && c.system.levels == 1;
                if (!same && (k == loads[i].which || loads[i].which == RESOURCES))
                    *resource(&c, k) *= 1.05;
            }
            sm_load_times after = in_flight(&c, loads[i].s.plan, loads[i].requests);
            /* groups of chips share steps as their requests happen to end */
            double drawn = strstr(loads[i].s.plan, "expert") ? 2e-2 : 5e-3;
            never_less("a whole request before", loads[i].s.plan, loads[i].requests,
                       before.latency_s, after.latency_s * (1 - drawn));
            never_less("between requests before", loads[i].s.plan, loads[i].requests,
                       before.request_s, after.request_s * (1 - drawn));
            never_less("time to the first before", loads[i].s.plan, loads[i].requests,
                       before.ttft_s, after.ttft_s * (1 - 0.05));
            before = after;
        }
    }
}

/* A request by itself waits for its admission alone (as drawn), which is as long whatever overlaps:
 * where nothing does, the first token comes as much later as the prefill takes longer. */
static void admission_is_no_part_of_what_overlaps(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3-8b", "tpu-v5e:2x4");
    c.job.prompt = 256, c.job.in_flight = 1;
    sm_serve *serve = serve_case_new(&c);
    sm_serve_point p = serve_point(serve, "tensor=8", 1);
    sm_serve_free(serve);
    double waits_s = p.ttft_s[1] - p.ttft_alone_s[1];
    assert_true(waits_s > 0 && p.ttft_alone_s[2] > 1.2 * p.ttft_alone_s[1]);
    assert_true(fabs(p.ttft_s[2] - p.ttft_alone_s[2] - waits_s) < 0.05 * waits_s);
}

/* What requests wait for is drawn, and may come to less than an admission: where nothing overlaps
 * their first tokens are no sooner all the same. */
static void first_tokens_are_expected_below_their_upper_time(void **state) {
    serve_case c;
    serve_case_fill(&c, "gpt2", "b200:8");
    c.job.prompt = 777, c.job.output = 16;
    sm_serve *serve = serve_case_new(&c);
    for (double batch = 1; batch <= 8; batch++) {
        sm_serve_point p = serve_point(serve, "tensor=1", batch);
        never_less("upper time to the first", "tensor=1", batch, p.ttft_s[2], p.ttft_s[1]);
    }
    sm_serve_free(serve);
}

/* Workers of both pools fit into the system, however large the best one of each would be; smaller
 * ones given by hand serve no more. */
static void pools_fit_the_system(void **state) {
    static const char *const jobs[][2] = {{"qwen3-32b", "h100-sxm:8"},
                                          {"mixtral-8x7b", "b200:8"},
                                          {"deepseek-v3", "h200:4x8"},
                                          {"kimi-k2", "gb200-nvl72:72"}};
    enum { MODELS = sizeof jobs / sizeof *jobs };
    for (int i = 0; i < (REPEATED ? MODELS / 2 : MODELS); i++) {
        serve_case c;
        sm_error err = {0};
        sm_disaggregated whole, d;
        sm_serve_search_options o;
        sm_serve_search_defaults(&o);
        serve_case_fill(&c, jobs[i][0], jobs[i][1]);
        assert_int_equal(sm_serve_disaggregate(&c.job, NULL, &o, NULL, &whole, &err), SM_OK);
        assert_true(whole.prefill_workers >= 1 && whole.decode_workers >= 1);
        assert_true(whole.chips <= c.system.chips && whole.requests_per_s > 0);
        o.chips_most =
            whole.prefill.chips > whole.decode.chips ? whole.prefill.chips : whole.decode.chips;
        if ((o.chips_most /= 2) < 1) continue;
        if (sm_serve_disaggregate(&c.job, NULL, &o, NULL, &d, &err) == SM_OK)
            assert_true(d.requests_per_s <= whole.requests_per_s);
    }
}

/* A search for the most tokens alone, and one for more than so many, leave out what does not matter
 * to them: they find what a search for all finds. */
static void what_is_looked_for_alone_is_found_among_all(void **state) {
    (void)state;
    static const char *const jobs[][2] = {{"llama-3-8b", "h100-sxm:8"},
                                          {"mixtral-8x7b", "h100-sxm:16"},
                                          {"mixtral-8x7b", "tpu-v5e:4x4"},
                                          {"deepseek-v2-lite", "h100-sxm:3x8"}};
    sm_rng rng = {drawn_from(17)};
    for (size_t i = 0; i < 3 * (sizeof jobs / sizeof *jobs); i++) {
        serve_case c;
        sm_error err = {0};
        sm_serve_result all, most;
        sm_fleet fleet, same, none;
        sm_disaggregated pools, found;
        sm_serve_search_options o, alone;
        sm_arena *arena = sm_arena_new();
        sm_serve_search_defaults(&o);
        serve_case_fill(&c, jobs[i / 3][0], jobs[i / 3][1]);
        c.job.prompt = exp2(7 + (double)sm_rng_below(&rng, 6));
        c.job.output = exp2(5 + (double)sm_rng_below(&rng, 6));
        if (i % 3) o.tpot_s = 0.01 * (double)(1 + sm_rng_below(&rng, 5));
        alone = o;
        alone.most_alone = alone.closed_first = true;
        assert_int_equal(sm_serve_search(&c.job, NULL, &o, arena, &all, &err), SM_OK);
        assert_int_equal(sm_serve_search(&c.job, NULL, &alone, arena, &most, &err), SM_OK);
        const sm_serve_point *last = &all.point[all.n - 1], *one = &most.point[most.n - 1];
        assert_memory_equal(&last->plan, &one->plan, sizeof last->plan);
        assert_true(last->batch == one->batch && last->tpot_s[1] == one->tpot_s[1]);
        assert_true(most.n < all.n && most.evaluated < all.evaluated);

        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 0, &fleet, &err), SM_OK);
        const double tokens = fleet.utilisation * fleet.point.tokens_per_s_per_chip;
        o.above = 0.9 * tokens;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 0, &same, &err), SM_OK);
        assert_memory_equal(&same, &fleet, sizeof same);
        o.above = tokens;
        assert_int_equal(sm_serve_fleet(&c.job, NULL, &o, NULL, 0, &none, &err), SM_OK);
        assert_true(none.replicas == 0);

        o.above = 0;
        bool there = sm_serve_disaggregate(&c.job, NULL, &o, NULL, &pools, &err) == SM_OK;
        o.above = there ? 0.9 * pools.requests_per_s * c.job.output / pools.chips : 0;
        sm_status status = sm_serve_disaggregate(&c.job, NULL, &o, NULL, &found, &err);
        assert_int_equal(status == SM_OK, there);
        if (there) assert_memory_equal(&pools, &found, sizeof pools);
        sm_arena_free(arena);
    }
}

/* A step of this engine where all-reduces in a node are a library's (0), one kernel (1), or that
 * with barriers (2). */
static sm_step_price step_with(const char *system, const char *plan, double kernel, double batch) {
    serve_case c;
    sm_software software = *sm_software_of("vllm-2026");
    sm_step_price p;
    sm_error err = {0};
    serve_case_fill(&c, "llama-3-70b", system);
    software.peer_kernel = kernel;
    c.job.software = &software;
    sm_serve *serve = serve_case_new(&c);
    const sm_step_batch b = {.groups = 1, .group = {{batch, 1, 1000}}, .sampled = batch};
    const sm_plan at = serve_plan(plan);
    if (sm_serve_step(serve, &at, &b, &p, &err) != SM_OK) fail_msg("%s", err.sentence);
    sm_serve_free(serve);
    return p;
}

/* What an engine adds up by a kernel of its own starts earlier than a library does; over switches
 * between nodes, on a torus and on one chip there is none. The bound knows of neither. */
static void a_kernel_of_the_engine_adds_up(void **state) {
    const char *const without[][2] = {{"h100-sxm:2x8", "tensor=16"}, {"tpu-v5e:4x4", "tensor=16"}};
    for (double batch = 1; batch <= 64; batch *= 8) {
        sm_step_price library = step_with("h100-sxm:8", "tensor=8", 0, batch);
        sm_step_price kernel = step_with("h100-sxm:8", "tensor=8", 1, batch);
        sm_step_price barriers = step_with("h100-sxm:8", "tensor=8", 2, batch);
        assert_true(kernel.expected_s < barriers.expected_s);
        assert_true(barriers.expected_s < library.expected_s);
        assert_float_equal(kernel.lower_s, library.lower_s, 0);
        for (size_t i = 0; i < 2; i++)
            assert_float_equal(step_with(without[i][0], without[i][1], 2, batch).expected_s,
                               step_with(without[i][0], without[i][1], 0, batch).expected_s, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_of_the_engine_adds_up),
        cmocka_unit_test(idle_copies_never_help),
        cmocka_unit_test(a_better_machine_is_never_slower),
        cmocka_unit_test(a_better_machine_never_delays_requests),
        cmocka_unit_test(admission_is_no_part_of_what_overlaps),
        cmocka_unit_test(first_tokens_are_expected_below_their_upper_time),
        cmocka_unit_test(pools_fit_the_system),
        cmocka_unit_test(what_is_looked_for_alone_is_found_among_all),
        cmocka_unit_test(a_kernel_of_the_engine_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
