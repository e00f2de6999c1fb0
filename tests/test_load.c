/* Engines under a load, held against the simulator. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "scalemodel/load.h"
#include "scalemodel/simulate.h"
#include "serve_cases.h"

static void close_to(double value, double expected, double part) {
    if (!(fabs(value - expected) <= part * fabs(expected)))
        fail_msg("%.6g where %.6g was expected", value, expected);
}

typedef struct firsts {
    double *s;
    size_t n;
} firsts;
static void keep_first(void *context, const sm_request_served *r) {
    firsts *f = context;
    f->s[f->n++] = r->first_token_s - r->arrival_s;
}
static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A closed loop as sm_serve_load has it, and as the simulator takes it on steps priced one by one,
 * the first requests of all clients left out. */
static void loads_are_those_of_the_simulator(void **state) {
    static const struct {
        const char *model, *on, *plan, *software;
        double in_flight, prompt, output;
    } loads[] = {{"qwen3-32b", "h100-sxm:8", "tensor=8", "vllm-0.12", 64, 4096, 1024},
                 {"llama-3.1-8b", "h100-sxm:1", "tensor=1", "vllm-2025", 64, 1024, 256},
                 {"llama-3.1-8b", "h200:1", "tensor=1", "sglang-2025", 32, 2048, 512}};
    enum { ROUNDS = 12 };
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        serve_case c;
        serve_case_fill(&c, loads[i].model, loads[i].on);
        c.job.software = sm_software_of(loads[i].software);
        c.job.prompt = loads[i].prompt;
        c.job.output = loads[i].output;
        sm_serve *serve = serve_case_new(&c);
        const sm_plan plan = serve_plan(loads[i].plan);
        const sm_engines one = {.decode = serve,
                                .prefill = serve,
                                .plan = plan,
                                .prefill_plan = plan,
                                .n = 1,
                                .prefill_n = 1,
                                .most_running = 1024};
        const sm_load load = {.kind = SM_LOAD_CLOSED, .requests = loads[i].in_flight};
        sm_load_times times;
        assert_int_equal(sm_serve_load(&one, &load, false, &times, NULL), SM_OK);

        sm_arena *arena = sm_arena_new();
        sm_engine engine;
        double length = c.job.prompt + c.job.output, all = loads[i].in_flight * ROUNDS;
        assert_int_equal(sm_serve_engine(serve, &plan, length, 8192, arena, &engine, NULL), SM_OK);
        sm_simulation o;
        sm_simulation_defaults(&o);
        sm_simulation_follow(&o, c.job.software);
        o.engine = &engine;
        o.concurrency = loads[i].in_flight;
        sm_synthetic draw = {
            .kind = SM_ARRIVALS_UNIFORM,
            .rate_per_s = 1,
            .requests = all,
            .lengths = {.prompt = c.job.prompt / 0.9, .output = c.job.output / 0.9},
            .least_share = 0.8,
            .seed = 7};
        sm_arrivals arrivals = sm_synthetic_arrivals(&draw);
        firsts f = {sm_arena_array(arena, (size_t)all, sizeof *f.s), 0};
        const sm_watch watch = {.context = &f, .served = keep_first};
        sm_simulated *out = sm_arena_alloc(arena, sizeof *out);
        assert_int_equal(sm_simulate(&o, &arrivals, &watch, out, NULL), SM_OK);
        close_to(times.tpot_s, out->tpot_s.mean, 0.03);
        size_t burst = (size_t)loads[i].in_flight;
        qsort(f.s + burst, f.n - burst, sizeof *f.s, by_size);
        close_to(times.ttft_median_s, f.s[burst + (f.n - burst) / 2], 0.15);
        assert_true(times.ttft_p99_s > times.ttft_median_s && times.ttft_s > times.ttft_median_s);
        sm_arena_free(arena);
        sm_serve_free(serve);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_those_of_the_simulator),
        cmocka_unit_test(who_finds_no_room_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
