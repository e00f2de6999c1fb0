/* Engines under a load, held against the simulator. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scalemodel/load.h"
#include "scalemodel/simulate.h"
#include "sanitized.h"
#include "serve_cases.h"
#include "../src/serve/load_steps.h"

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.6g where %.6g was expected", value, expected);
}

/* Requests as they ended. */
typedef struct ended {
    sm_request_served *r;
    size_t n;
} ended;
static void keep(void *context, const sm_request_served *r) {
    ended *e = context;
    e->r[e->n++] = *r;
}
static double first_of(const sm_request_served *r) { return r->first_token_s - r->arrival_s; }
static int by_number(const void *a, const void *b) {
    const sm_request_served *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}
static int by_first(const void *a, const void *b) {
    double x = first_of(a), y = first_of(b);
    return (x > y) - (x < y);
}
typedef struct loaded {
    const char *model, *on, *plan, *software;
    double requests, prompt, output; /* in flight, or a second */
    double within;                   /* of the first token's median */
    const char *differs;             /* of the software, or NULL */
} loaded;

typedef struct engine_case {
    serve_case c;
    sm_software software;
    sm_serve *serve;
    sm_engines one;
    sm_arena *arena;
    sm_engine engine;
    sm_simulation o;
} engine_case;
static void open_engine(engine_case *e, const loaded *l) {
    serve_case_fill(&e->c, l->model, l->on);
    e->software = *sm_software_of(l->software);
    const sm_source differs = sm_source_of("engine", l->differs ? l->differs : "");
    if (l->differs) assert_int_equal(sm_software_set(&e->software, &differs, NULL), SM_OK);
    e->c.job.software = &e->software;
    e->c.job.prompt = l->prompt;
    e->c.job.output = l->output;
    e->serve = serve_case_new(&e->c);
    e->arena = sm_arena_new();
    const sm_plan plan = serve_plan(l->plan);
    e->one = (sm_engines){.decode = e->serve,
                          .prefill = e->serve,
                          .plan = plan,
                          .prefill_plan = plan,
                          .n = 1,
                          .prefill_n = 1,
                          .most_running = 1024};
    assert_int_equal(
        sm_serve_engine(e->serve, &plan,
                        &(sm_engine_use){.mean_tokens = l->prompt + l->output, .step_tokens = 8192},
                        e->arena, &e->engine, NULL),
        SM_OK);
    sm_simulation_defaults(&e->o);
    const sm_software *software = sm_serve_software(e->serve);
    const double groups = sm_plan_groups(&plan, e->c.job.model) / plan.data,
                 budget = sm_software_budget(software, groups);
    sm_simulation_follow(&e->o, software, false);
    e->o.most_batch = sm_software_most(software, groups);
    e->o.chunk_tokens = e->o.prefill_tokens = budget * plan.pipeline;
    e->o.prompt_tokens = budget / groups;
    e->o.groups = groups;
    e->o.engine = &e->engine;
}
static void close_engine(engine_case *e) {
    sm_arena_free(e->arena);
    sm_serve_free(e->serve);
}
static sm_simulated *simulate(engine_case *e, sm_synthetic draw, ended *out) {
    sm_arrivals arrivals = sm_synthetic_arrivals(&draw);
    out->r = sm_arena_array(e->arena, (size_t)draw.requests, sizeof *out->r);
    out->n = 0;
    const sm_watch watch = {.context = out, .served = keep};
    sm_simulated *s = sm_arena_alloc(e->arena, sizeof *s);
    assert_int_equal(sm_simulate(&e->o, &arrivals, &watch, s, NULL), SM_OK);
    return s;
}

/* A benchmark of ten requests of each client as sm_serve_load has it, and as the simulator takes it
 * on steps priced one by one; of first tokens those of the opening burst left out. */
static void is_simulated(const loaded *l, double prefill_engines) {
    enum { ROUNDS = 10 };
    engine_case e;
    open_engine(&e, l);
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = l->requests};
    sm_load_times times;
    e.o.concurrency = l->requests;
    e.o.replicas = e.one.plan.data;
    if (prefill_engines > 0) {
        e.one.apart = true;
        e.one.prefill_n = prefill_engines;
        e.o.prefill_engine = &e.engine;
        e.o.prefill_replicas = (int)prefill_engines;
        e.o.policy = SM_POLICY_DISAGGREGATED;
        e.o.admission_s += e.software.handover_s;
    }
    assert_int_equal(sm_serve_load(&e.one, &load, false, &times, NULL), SM_OK);
    ended done;
    const sm_simulated *out =
        simulate(&e,
                 (sm_synthetic){.kind = SM_ARRIVALS_UNIFORM,
                                .rate_per_s = 1,
                                .requests = l->requests * ROUNDS,
                                .lengths = {.prompt = l->prompt / 0.9, .output = l->output / 0.9},
                                .least_share = 0.8,
                                .seed = 7},
                 &done);
    /* groups of chips take turns in whose prompts are long */
    double within = e.one.plan.pipeline > 1 || e.one.plan.expert > 1 ? 0.032 : 0.018;
    close_to(times.tpot_s, out->tpot_s.mean, within);
    close_to(1 / times.request_s, out->requests_per_s, within);
    qsort(done.r, done.n, sizeof *done.r, by_number);
    size_t burst = (size_t)l->requests, counted = (ROUNDS - 1) * burst;
    qsort(done.r + burst, counted, sizeof *done.r, by_first);
    close_to(times.ttft_median_s, first_of(&done.r[burst + counted / 2]), l->within);
    assert_true(times.ttft_p99_s > times.ttft_median_s && times.ttft_s > times.ttft_median_s);
    close_engine(&e);
}
static void loads_are_those_of_the_simulator(void **state) {
    static const loaded loads[] = {
        {"qwen3-32b", "h100-sxm:8", "tensor=8", "vllm-0.12", 64, 4096, 1024, .1, NULL},
        {"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 64, 1024, 256, .1, NULL},
        {"llama-3.1-70b", "h200:4", "tensor=4", "sglang-2025", 64, 4096, 512, .1, NULL},
        {"llama-3.1-8b", "h200:1", "tensor=1", "sglang-2025", 32, 2048, 512, .1, NULL},
        {"llama-3.1-70b", "h200:4", "tensor=4", "sglang-2025", 16, 1024, 1024, .1, "look_steps=30"},
        {"qwen3-32b", "tpu-v6e:4", "tensor=4,seq=on", "vllm-2025", 24, 4096, 512, .1, NULL},
        {"qwen3-30b-a3b", "h200:8", "expert=8", "vllm-2025", 64, 3000, 300, .1, NULL},
        {"deepseek-v3", "h200:2x8", "expert=16", "vllm-2025", 256, 4000, 1000, .25, NULL},
        {"mixtral-8x7b", "h100-sxm:8", "expert=4,tensor=2", "vllm-2025", 96, 9000, 500, .25, NULL},
        {"llama-3.1-8b", "h100-sxm:8", "data=8", "vllm-2025", 256, 2000, 200, .1, NULL},
        {"llama-3.1-70b", "h100-sxm:8", "pipeline=2,tensor=4", "vllm-2025", 64, 2000, 500, .2,
         NULL},
        {"qwen3-30b-a3b", "h200:1", "tensor=1", "sglang-2025", 512, 700, 150, .1, NULL}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) is_simulated(&loads[i], 0);
}

/* More in flight than fit at full length: who runs follows from how long each is by then. */
static void a_full_cache_is_that_of_the_simulator(void **state) {
    engine_case e;
    const loaded l = {"qwen3-32b", "h200:1", "tensor=1", "vllm-2025", 96, 2048, 512, 0, NULL};
    open_engine(&e, &l);
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = l.requests};
    sm_load_times times;
    e.one.kv_tokens = e.engine.kv_tokens;
    e.one.most_running = floor(e.engine.kv_tokens / (l.prompt + l.output));
    assert_true(e.one.most_running < l.requests);
    assert_int_equal(sm_serve_load(&e.one, &load, false, &times, NULL), SM_OK);
    e.o.concurrency = l.requests;
    ended done;
    const sm_synthetic draw = {.kind = SM_ARRIVALS_UNIFORM,
                               .rate_per_s = 1,
                               .requests = 10 * l.requests,
                               .lengths = {.prompt = l.prompt / 0.9, .output = l.output / 0.9},
                               .least_share = 0.8,
                               .seed = 7};
    const sm_simulated *out = simulate(&e, draw, &done);
    close_to(times.tpot_s, out->tpot_s.mean, 0.01);
    close_to(1 / times.request_s, out->requests_per_s, 0.01);
    close_to(times.ttft_s, out->ttft_s.mean, 0.1);
    assert_true(times.running <= e.one.most_running);
    close_engine(&e);
}

/* Pools, of which either is the slower. */
static void pools_are_those_of_the_simulator(void **state) {
    static const loaded loads[] = {
        {"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 16, 4000, 500, .1, NULL},
        {"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 64, 4000, 500, .1, NULL},
        {"qwen3-30b-a3b", "h200:8", "expert=8", "sglang-2026", 256, 1000, 1000, .1, NULL}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        for (int prefills = 1; prefills <= 4; prefills *= 4) is_simulated(&loads[i], prefills);
}

/* Of clients that send one request each all begin at once, and the steps that decode have no
 * prompts beside them where prefill goes first: all of them, those of short outputs that wait for
 * room, and those whose lengths differ much, the longest of which end alone. */
static void requests_of_one_round_are_all_a_burst(void **state) {
    static const struct {
        double output, room, spread;
    } bursts[] = {{512, 1024, 0}, {8, 24, 0}, {512, 1024, 1.1}, {256, 24, 1.1}};
    for (size_t i = 0; i < sizeof bursts / sizeof bursts[0]; i++) {
        const loaded l = {.model = "llama-3.1-8b",
                          .on = "h200:1",
                          .plan = "tensor=1",
                          .software = "sglang-2025",
                          .requests = 64,
                          .prompt = 2048,
                          .output = bursts[i].output};
        engine_case e;
        open_engine(&e, &l);
        e.one.most_running = bursts[i].room;
        sm_load load = {.kind = SM_LOAD_CLOSED, .requests = l.requests, .spread = bursts[i].spread};
        sm_load_times rounds, once;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &rounds, NULL), SM_OK);
        load.rounds = 1;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &once, NULL), SM_OK);
        e.o.concurrency = l.requests;
        e.o.most_batch = fmin(l.requests, bursts[i].room);
        bool even = !(bursts[i].spread > 0);
        double longest = even ? 1 / 0.9 : 1;
        ended done;
        const sm_simulated *out = simulate(&e,
                                           (sm_synthetic){.kind = SM_ARRIVALS_POISSON,
                                                          .rate_per_s = 1,
                                                          .requests = l.requests,
                                                          .lengths = {.prompt = l.prompt * longest,
                                                                      .prompt_cv = load.spread,
                                                                      .output = l.output * longest,
                                                                      .output_cv = load.spread},
                                                          .least_share = even ? 0.8 : 0,
                                                          .seed = 1},
                                           &done);
        close_to(once.tpot_s, out->tpot_s.mean, 0.02);
        close_to(once.ttft_s, out->ttft_s.mean, 0.05);
        close_to(l.output / once.request_s, out->output_tokens_per_s, 0.02);
        assert_true(once.ttft_s > 2 * rounds.ttft_median_s || bursts[i].room < l.requests);
        assert_true(once.ttft_s < l.requests * once.request_s);
        close_engine(&e);
    }
}

/* The same of requests that come at a rate, of another seed: at a third of what it can take and
 * near to all of it. */
static void rates_are_those_of_the_simulator(void **state) {
    static const loaded loads[] = {
        {"qwen3-32b", "h100-sxm:8", "tensor=8", "vllm-0.12", 3, 2048, 512, .05, NULL},
        {"qwen3-32b", "h100-sxm:8", "tensor=8", "vllm-0.12", 7, 2048, 512, .05, NULL},
        {"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 8, 1024, 256, .06, NULL},
        {"llama-3.1-70b", "h200:4", "tensor=4", "sglang-2025", 1, 4096, 512, .05, NULL},
        {"qwen3-30b-a3b", "h200:8", "expert=8", "vllm-2025", 20, 3000, 300, .05, NULL},
        {"qwen3-30b-a3b", "h200:8", "expert=8", "sglang-2025", 10, 3000, 300, .05, NULL}};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        engine_case e;
        open_engine(&e, &loads[i]);
        const sm_load load = {.kind = SM_LOAD_OPEN, .requests = loads[i].requests};
        sm_load_times times;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &times, NULL), SM_OK);
        ended done;
        const sm_simulated *out = simulate(
            &e,
            (sm_synthetic){.kind = SM_ARRIVALS_POISSON,
                           .rate_per_s = loads[i].requests,
                           .requests = 8000,
                           .lengths = {.prompt = loads[i].prompt, .output = loads[i].output},
                           .seed = 7},
            &done);
        close_to(times.ttft_s, out->ttft_s.mean, loads[i].within);
        close_to(times.ttft_median_s, out->ttft_s.p50, loads[i].within);
        close_to(times.tpot_s, out->tpot_s.mean, 0.05);
        close_to(times.running, loads[i].requests * out->tpot_s.mean * loads[i].output, 0.05);
        close_engine(&e);
    }
}

/* A limit ends a simulation where it is missed for certain, and changes nothing where it is kept
 * for certain. Between, several simulations decide: by their nine requests in ten, and never
 * against the longer limit. */
static void limits_of_a_rate_end_what_misses_them(void **state) {
    engine_case e;
    open_engine(&e, &(loaded){"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 8, 1024, 256,
                              0, NULL});
    for (int i = 0; i < 6; i++) {
        sm_load load = {.kind = SM_LOAD_OPEN, .requests = 2 + 3 * i};
        sm_load_times free, kept, late[2];
        assert_int_equal(sm_serve_load(&e.one, &load, false, &free, NULL), SM_OK);
        load.most_ttft_s = 2 * free.ttft_p90_s, load.most_tpot_s = 2 * free.tpot_p90_s;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &kept, NULL), SM_OK);
        assert_memory_equal(&kept, &free, sizeof kept);
        load.most_ttft_s = 0.1 * free.ttft_p90_s;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &late[0], NULL), SM_OK);
        load.most_ttft_s = 0, load.most_tpot_s = 0.1 * free.tpot_p90_s;
        assert_int_equal(sm_serve_load(&e.one, &load, false, &late[1], NULL), SM_OK);
        for (int k = 0; k < 2; k++) assert_true(isinf(late[k].ttft_s) && isinf(late[k].ttft_p90_s));
        bool was_kept = false;
        load.most_tpot_s = 0;
        for (double times = 0.8; times < 1.25; times += 0.05) {
            load.most_ttft_s = times * free.ttft_p90_s;
            assert_int_equal(sm_serve_load(&e.one, &load, false, &kept, NULL), SM_OK);
            assert_true(!was_kept || kept.ttft_p90_s <= load.most_ttft_s);
            was_kept = kept.ttft_p90_s <= load.most_ttft_s;
            assert_true(was_kept || isinf(kept.ttft_p90_s));
        }
    }
    close_engine(&e);
}

/* More than an engine can take: times stay finite, and as many end as it can take. */
static void what_comes_too_fast_is_taken_as_it_can(void **state) {
    engine_case e;
    open_engine(&e, &(loaded){"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 1e4, 1024, 256,
                              0, NULL});
    e.one.most_running = 128;
    sm_load_times all, times;
    const sm_load load = {.kind = SM_LOAD_OPEN, .requests = 1e4}, there = {.kind = SM_LOAD_QUEUE};
    assert_int_equal(sm_serve_load(&e.one, &there, false, &all, NULL), SM_OK);
    assert_int_equal(sm_serve_load(&e.one, &load, false, &times, NULL), SM_OK);
    close_to(times.request_s, all.request_s, 1e-3);
    close_to(times.running, 128, 1e-3);
    assert_true(isfinite(times.ttft_s) && times.ttft_s > all.ttft_s);
    close_engine(&e);
}

/* Twice as many in flight as there is room for: Little's law, and half of them wait. */
static void who_finds_no_room_waits(void **state) {
    serve_case c;
    serve_case_fill(&c, "llama-3.1-8b", "h100-sxm:1");
    sm_serve *serve = serve_case_new(&c);
    const sm_plan plan = serve_plan("tensor=1");
    const sm_engines one = {.decode = serve,
                            .prefill = serve,
                            .plan = plan,
                            .prefill_plan = plan,
                            .n = 1,
                            .prefill_n = 1,
                            .most_running = 32};
    const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = 64};
    sm_load_times t;
    assert_int_equal(sm_serve_load(&one, &load, false, &t, NULL), SM_OK);
    close_to(t.running, 32, 1e-9);
    double decoding_s = t.tpot_s * c.job.output;
    close_to(t.ttft_median_s, 64 * t.request_s - decoding_s, 0.1);
    sm_serve_free(serve);
}

/* ---- what differs of a software ---- */

static void settings_read_back(void **state) {
    const sm_software *sglang = sm_software_of("sglang-2026");
    sm_software own = *sglang, again = *sglang;
    const sm_source text = sm_source_of("engine", "mixed_steps=on,look_steps=30,most_running=4096");
    char differs[256];
    assert_int_equal(sm_software_set(&own, &text, NULL), SM_OK);
    assert_true(own.mixed_steps && own.look_steps == 30 && own.most_running == 4096);
    sm_software_differs(&own, differs, sizeof differs);
    assert_string_equal(differs, "mixed_steps=on,most_running=4096,look_steps=30");
    const sm_source back = sm_source_of("engine", differs);
    assert_int_equal(sm_software_set(&again, &back, NULL), SM_OK);
    assert_memory_equal(&own, &again, sizeof own);
    sm_software_differs(sglang, differs, sizeof differs);
    assert_string_equal(differs, "");
}

/* A file has the usual values where it is silent; what nothing ships differs from what it is like.
 */
static void engines_of_files(void **state) {
    static const char file[] =
        "{\"name\": \"mine\", \"title\": \"ours\", \"like\": \"vllm-2026\", \"look_steps\": 4,\n"
        " \"mixed_steps\": false, \"defaults\": [{\"budget_tokens\": 4096, \"most_running\": 64},\n"
        " {\"chip\": \"h200\", \"most_of_all\": 96}]}";
    const sm_source text = sm_source_of("mine.json", file);
    sm_arena *arena = sm_arena_new();
    sm_software own;
    sm_error err;
    char differs[1024];
    assert_int_equal(sm_software_parse(&text, arena, &own, &err), SM_OK);
    assert_ptr_equal(sm_software_differs(&own, differs, sizeof differs),
                     sm_software_of("vllm-2026"));
    assert_non_null(strstr(differs, "mixed_steps=off"));
    assert_non_null(strstr(differs, "look_steps=4"));
    assert_null(strstr(differs, "most_running"));
    close_to(own.admission_s, sm_software_of("vllm-2026")->admission_s, 0);
    assert_null(strstr(differs, "admission_s"));
    sm_software_on(&own, sm_chip_find("h200", 4), NULL, false);
    close_to(sm_software_budget(&own, 2), 8192, 0);
    close_to(sm_software_most(&own, 2), 96, 0);
    const sm_source given =
        sm_source_of("given.json",
                     "{\"name\": \"a\", \"title\": \"b\", \"budget_tokens\": \"4k\", \"defaults\": "
                     "[{\"budget_tokens\": 8192, \"most_running\": 64}]}");
    assert_int_equal(sm_software_parse(&given, arena, &own, &err), SM_OK);
    sm_software_differs(&own, differs, sizeof differs);
    assert_non_null(strstr(differs, "budget_tokens=4000"));
    sm_software_on(&own, sm_chip_find("h200", 4), NULL, false);
    close_to(sm_software_budget(&own, 1), 4000, 0);
    sm_software vllm = *sm_software_of("vllm-2026");
    sm_software_on(&vllm, sm_chip_find("a100-80", 7), NULL, false);
    close_to(vllm.widening_rate, 1, 0);
    sm_software_on(&vllm, sm_chip_find("h200", 4), NULL, false);
    close_to(vllm.widening_rate, 0.63, 0);
    static const struct {
        const char *of, *says, *expected;
    } broken[] = {
        {"vllm-2026", "vllm-2062", "unknown like \"vllm-2062\": the nearest is \"vllm-2026\""},
        {"look_steps", "lock_steps", "unknown key \"lock_steps\": the nearest is \"look_steps\""},
        {"\"look_steps\": 4", "\"accepted\": 12345", "expected 0 to 1"},
        {"{\"budget_tokens\": 4096, ", "{", "the first default holds everywhere"},
        {"false", "\"no\"", "a flag is not \"no\""},
        {"\"title\"", "\"aliases\"", "an engine needs a \"name\" and a \"title\""},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        const char *at = strstr(file, broken[i].of);
        char bad[sizeof file + 20];
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - file), file, broken[i].says,
                 at + strlen(broken[i].of));
        const sm_source wrong = sm_source_of("mine.json", bad);
        assert_int_equal(sm_software_parse(&wrong, arena, &own, &err), SM_BAD_INPUT);
        if (!strstr(err.sentence, broken[i].expected)) fail_msg("%s", err.sentence);
    }
    sm_arena_free(arena);
}

/* What engines take where nothing is said: by the memory of the chip, the model, and whether tokens
 * are drafted; what is said stays. */
static void defaults_are_those_of_the_chip(void **state) {
    static const struct {
        const char *software, *chip, *model, *differs;
        bool drafts;
        double groups, budget, most;
    } cases[] = {
        {"vllm-2026", "h100-sxm", "llama-3.1-8b", NULL, false, 1, 8192, 1024},
        {"vllm-2026", "a100-80", "llama-3.1-8b", NULL, false, 1, 2048, 256},
        {"vllm-2026", "l40s", "llama-3.1-8b", NULL, false, 1, 2048, 256},
        {"vllm-2026", "b200", "llama-3.1-8b", NULL, true, 1, 8192, 1024},
        {"vllm-0.28", "b200", "llama-3.1-8b", NULL, false, 1, 16384, 1024},
        {"vllm-2026", "h200", "deepseek-v3", NULL, false, 8, 8 * 8192, 8 * 1024},
        {"vllm-2026", "l40s", "llama-3.1-8b", "budget_tokens=4096", false, 1, 4096, 256},
        {"vllm-tpu", "tpu-v6e", "llama-3.1-8b", NULL, false, 1, 1024, 256},
        {"sglang-jax", "tpu-v6e", "llama-3.1-8b", NULL, false, 1, 4096, 1024},
        {"sglang-2026", "l40s", "llama-3.1-8b", NULL, false, 1, 4096, 2048},
        {"sglang-2025", "l40s", "llama-3.1-8b", NULL, false, 1, 8192, 2048},
        {"sglang-2026", "rtx-4090", "llama-3.1-8b", NULL, false, 1, 2048, 2048},
        {"sglang-2026", "h200", "deepseek-v3", NULL, false, 8, 8192, 8 * 2048},
        {"sglang-2026", "h200", "deepseek-v3", NULL, true, 8, 8192, 48},
        {"sglang-2026", "b200", "deepseek-v4-pro", NULL, true, 8, 16384, 256},
        {"sglang-0.5.12", "h200", "deepseek-v3", NULL, true, 8, 8192, 48},
        {"trtllm-1.1", "a100-80", "llama-3.1-8b", NULL, false, 1, 8192, 2048},
        {"trtllm-1.2", "h200", "deepseek-v3", NULL, true, 8, 8 * 8192, 8 * 2048},
        {"sglang-2026", "b200", "deepseek-v4-pro", "most_running=16", false, 8, 16384, 128},
        {"sglang-2026", "h200", "deepseek-v3", "budget_of_all=65536", false, 8, 65536, 8 * 2048},
        {"trtllm-1", "l40s", "llama-3.1-8b", NULL, false, 1, 8192, 2048},
        {"serving", "l40s", "llama-3.1-8b", NULL, false, 1, 8192, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sm_software s = *sm_software_of(cases[i].software);
        assert_string_equal(s.name, cases[i].software);
        const sm_source differs = sm_source_of("engine", cases[i].differs ? cases[i].differs : "");
        if (cases[i].differs) assert_int_equal(sm_software_set(&s, &differs, NULL), SM_OK);
        const sm_chip *chip = sm_chip_find(cases[i].chip, strlen(cases[i].chip));
        sm_model model;
        serve_case_model(&model, cases[i].model);
        sm_software_on(&s, sm_chip_find("h100-sxm", 8), &model, !cases[i].drafts);
        sm_software_on(&s, chip, &model, cases[i].drafts); /* nothing of another chip is left */
        close_to(sm_software_budget(&s, cases[i].groups), cases[i].budget, 1e-9);
        close_to(sm_software_most(&s, cases[i].groups), cases[i].most, 1e-9);
        char told[256];
        sm_software_differs(&s, told, sizeof told);
        assert_string_equal(told, differs.text);
    }
}

static void settings_are_checked(void **state) {
    static const char *const wrong[] = {"",
                                        "look_step=3",
                                        "look_steps",
                                        "look_steps=0",
                                        "mixed_steps=yes",
                                        "memory_share=2",
                                        "accepted=0.1,",
                                        "most_running=many"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sm_software own = *sm_software_of("sglang-2026");
        const sm_source text = sm_source_of("engine", wrong[i]);
        sm_error err;
        assert_int_equal(sm_software_set(&own, &text, &err), SM_BAD_INPUT);
        assert_true(err.sentence[0] != '\0');
    }
}

/* ---- bounds ---- */

/* Of a load of a drawn plan, what is simulated comes no sooner; false: it is no plan of the model.
 */
static bool first_holds(sm_serve *serve, placements *places, sm_rng *rng) {
    sm_plan plan = serve_plan("");
    char why[256];
    sm_serve_point p;
    double token_s = INFINITY, batch = ceil(exp2(10 * sm_rng_unit(rng)));
    serve_draw_degrees(rng, serve->system.chips, &plan);
    sm_plan_settle(&plan, &serve->model);
    if (serve_refuse(serve, &plan, why, sizeof why)) return false;
    if (sm_serve_point_of(serve, &plan, batch, &p, NULL) != SM_OK) return false;
    assert_int_equal(placements_of(serve, &plan, 0, places, NULL), SM_OK);
    for (int decoding = 0; decoding < 2; decoding++) {
        double seconds;
        step_floor floor = {.made = false};
        sm_status status = step_token_s(&floor, serve, &plan, decoding, places, &seconds, NULL);
        assert_int_equal(status, SM_OK);
        token_s = smaller(token_s, seconds);
    }
    double least_s = load_first_least_s(serve, &plan, batch, p.ttft_alone_s[1], token_s);
    if (!(least_s <= p.ttft_s[1] * (1 + 1e-7))) {
        sm_plan_format(&plan, serve->system.torus_dims, why, sizeof why);
        fail_msg("%s on %s, %s, batch %g: %g s at least where %g s are simulated",
                 serve->model.name, serve->system.text, why, batch, least_s, p.ttft_s[1]);
    }
    return true;
}

static void no_first_token_is_sooner_than_the_least(void **state) {
    static const char *const jobs[][2] = {
        {"mixtral-8x7b", "tpu-v5e:4x8"},  {"deepseek-v3", "h200:2x8"},
        {"gpt-oss-120b", "h100-sxm:2x8"}, {"llama-3-70b", "h100-sxm:4x4"},
        {"gemma-2-27b", "tpu-v5p:2x2x4"}, {"qwen3-next-80b-a3b", "b200:2x8"},
        {"llama-3-8b", "l40s:4"},         {"qwen2.5-1.5b", "tpu-v6e:4"}};
    sm_rng rng = {drawn_from(41)};
    int seen = 0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < (REPEATED ? 1 : 4); k++) {
            serve_case c;
            serve_case_fill(&c, jobs[i][0], jobs[i][1]);
            sm_software own = *sm_software_of(NULL);
            own.admission_s = k % 2 ? 0 : own.admission_s;
            own.mixed_steps = sm_rng_below(&rng, 3) > 0;
            own.look_steps = (double)sm_rng_below(&rng, 2) * 10;
            own.gather_steps = (double)sm_rng_below(&rng, 2) * 4;
            own.budget_tokens = 512 << sm_rng_below(&rng, 6);
            c.job.software = &own;
            c.job.prompt = 32 << sm_rng_below(&rng, 9);
            c.job.output = 1 + (double)sm_rng_below(&rng, 300);
            c.job.prefix = sm_rng_below(&rng, 3) == 0 ? c.job.prompt / 2 : 0;
            sm_serve *serve = serve_case_new(&c);
            placements *places = sm_calloc(1, sizeof *places);
            for (int n = 0; n < 10; n++) seen += first_holds(serve, places, &rng);
            sm_free(places);
            sm_serve_free(serve);
        }
    assert_true(seen > (REPEATED ? 20 : 100));
}

/* A job like another of its model, on another system: the same prices, from the same programs. */
static void programs_are_shared(void **state) {
    const sm_plan plan = serve_plan("tensor=4,expert=2");
    serve_case c, other;
    sm_serve_point alone, shared;
    serve_case_fill(&c, "gpt-oss-20b", "h100-sxm:8");
    serve_case_fill(&other, "gpt-oss-20b", "tpu-v5e:4x4");
    sm_serve *first = serve_case_new(&other), *own = serve_case_new(&c);
    assert_int_equal(sm_serve_point_of(first, &plan, 8, &shared, NULL), SM_OK);
    assert_int_equal(sm_serve_point_of(own, &plan, 8, &alone, NULL), SM_OK);
    c.job.like = first;
    sm_serve *like = serve_case_new(&c);
    assert_ptr_equal(like->programs, first->programs);
    assert_ptr_not_equal(own->programs, first->programs);
    assert_int_equal(sm_serve_point_of(like, &plan, 8, &shared, NULL), SM_OK);
    assert_memory_equal(&shared.decode, &alone.decode, sizeof alone.decode);
    assert_memory_equal(&shared.prefill, &alone.prefill, sizeof alone.prefill);
    assert_true(shared.ttft_s[1] == alone.ttft_s[1]);
    sm_serve_free(like);
    assert_int_equal(sm_serve_point_of(first, &plan, 8, &shared, NULL), SM_OK);
    sm_serve_free(own);
    sm_serve_free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_shared),
        cmocka_unit_test(no_first_token_is_sooner_than_the_least),
        cmocka_unit_test(loads_are_those_of_the_simulator),
        cmocka_unit_test(a_full_cache_is_that_of_the_simulator),
        cmocka_unit_test(pools_are_those_of_the_simulator),
        cmocka_unit_test(requests_of_one_round_are_all_a_burst),
        cmocka_unit_test(rates_are_those_of_the_simulator),
        cmocka_unit_test(limits_of_a_rate_end_what_misses_them),
        cmocka_unit_test(what_comes_too_fast_is_taken_as_it_can),
        cmocka_unit_test(who_finds_no_room_waits),
        cmocka_unit_test(settings_read_back),
        cmocka_unit_test(engines_of_files),
        cmocka_unit_test(defaults_are_those_of_the_chip),
        cmocka_unit_test(settings_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
