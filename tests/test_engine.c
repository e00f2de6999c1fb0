/* The engine of a plan: its tables against the steps they stand for, and a simulation on it. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scalemodel/simulate.h"
#include "serve_cases.h"

typedef struct served_model {
    serve_case job;
    sm_arena *arena;
    sm_serve *serve;
    sm_plan plan;
    sm_engine engine;
} served_model;

/* *m must stay where it is: the job points into it. */
static void set_up_drafting(served_model *m, const char *model, const char *on, const char *plan,
                            sm_speculation speculation) {
    sm_error err = {.status = SM_OK};
    serve_case_fill(&m->job, model, on);
    m->job.job.speculation = speculation;
    m->arena = sm_arena_new();
    m->serve = serve_case_new(&m->job);
    m->plan = serve_plan(plan);
    if (sm_serve_engine(m->serve, &m->plan,
                        &(sm_engine_use){.mean_tokens = 768, .step_tokens = 8192}, m->arena,
                        &m->engine, &err) != SM_OK)
        fail_msg("%s", err.sentence);
}

static void set_up(served_model *m, const char *model, const char *on, const char *plan) {
    set_up_drafting(m, model, on, plan, (sm_speculation){.depth = 0});
}

static void tear_down(served_model *m) {
    sm_serve_free(m->serve);
    sm_arena_free(m->arena);
}

/* Of all copies of the model, each of which is an engine. */
static double step_of(served_model *m, int groups, sm_attend first, sm_attend second,
                      double sampled) {
    double copies = m->plan.data;
    first.sequences *= copies;
    second.sequences *= copies;
    sm_step_batch batch = {.groups = groups, .group = {first, second}, .sampled = sampled * copies};
    sm_step_price price;
    assert_int_equal(sm_serve_step(m->serve, &m->plan, &batch, &price, NULL), SM_OK);
    return price.expected_s;
}

static double ask(served_model *m, double n, double cached, double prefill, double attended) {
    return m->engine.step_s(m->engine.context, n, cached, prefill, attended);
}

/* log-uniform from least to most */
static double draw(sm_rng *rng, double least, double most) {
    return least * pow(most / least, sm_rng_unit(rng));
}

typedef struct errors {
    double most, sum;
    int n;
} errors;

static void note(errors *e, double value, double expected) {
    double error = fabs(value / expected - 1);
    e->most = fmax(e->most, error);
    e->sum += error;
    e->n++;
}

static void check(const errors *e, const char *what, double mean, double most) {
    if (e->sum / e->n <= mean && e->most <= most) return;
    fail_msg("%s: mean %.4f, most %.4f", what, e->sum / e->n, e->most);
}

/* Steps that decode and prefill: the table's error over steps priced directly, with prompts of one
 * sequence on cached tokens and with several whole ones, which the groups of a pipeline share. */
static void hold_mixed(served_model *m, int prompts, double mean, double most) {
    sm_rng rng = {2};
    errors mixed = {0, 0, 0};
    const double each = 1 + m->engine.drafted, stages = m->plan.pipeline;
    const double passes = fmin(prompts, stages), alike = prompts / passes;
    char what[40];
    for (int i = 0; i < 200; i++) {
        double n = floor(draw(&rng, 1, 512)), c = floor(draw(&rng, 1, 20000));
        double P = floor(draw(&rng, 16, 8192.0 / prompts));
        double past = prompts > 1 ? 0 : floor(draw(&rng, 1, 20000));
        double group = ceil(n / stages);
        sm_attend decoding = {group, each, c}, prompt = {alike, P, past};
        double apart = step_of(m, 1, decoding, decoding, group * each) +
                       step_of(m, 1, prompt, prompt, alike) * (passes + stages - 1) / stages;
        note(&mixed, ask(m, n, n * c, P * prompts, past + P / 2),
             fmin(apart, step_of(m, 2, decoding, prompt, group * each + alike)));
    }
    snprintf(what, sizeof what, "mixed, %d prompts", prompts);
    check(&mixed, what, mean, most);
}

static void hold_against_steps(served_model *m) {
    sm_rng rng = {1};
    errors decode = {0, 0, 0}, prefill = decode;
    for (int i = 0; i < 150; i++) {
        double n = floor(draw(&rng, 1, 512)), c = floor(draw(&rng, 1, 20000));
        double P = floor(draw(&rng, 16, 8192)), past = floor(draw(&rng, 1, 20000));
        sm_attend decoding = {ceil(n / m->plan.pipeline), 1, c}, prompt = {1, P, past};
        note(&decode, ask(m, n, n * c, 0, 0),
             step_of(m, 1, decoding, decoding, decoding.sequences));
        note(&prefill, ask(m, 0, 0, P, past + P / 2), step_of(m, 1, prompt, prompt, 1));
    }
    check(&decode, "decode", 0.008, 0.23);
    check(&prefill, "prefill", 0.015, 0.12);
}

static void test_tables_are_the_steps(void **state) {
    static const struct {
        const char *model, *on, *plan;
        double mean, most; /* of mixed steps */
    } engine[] = {
        {"llama-3.1-70b", "h100-sxm:1x8", "tensor=8", 0.008, 0.06},
        {"llama-3.1-70b", "h100-sxm:1x8", "tensor=4,pipeline=2", 0.009, 0.1},
        {"llama-3.1-70b", "h100-sxm:1x8", "tensor=4,data=2", 0.012, 0.12},
        {"llama-2-13b", "tpu-v5e:4x4", "tensor=4,data=4", 0.015, 0.25},
        {"mixtral-8x7b", "h100-sxm:1x8", "tensor=8", 0.006, 0.12},
        {"mixtral-8x7b", "h100-sxm:1x8", "tensor=2,expert=4", 0.01, 0.1},
        {"deepseek-v3", "h200:2x8", "expert=16", 0.013, 0.2},
        {"deepseek-v3", "h200:2x8", "tensor=16", 0.003, 0.05},
        {"deepseek-v3", "h200:4x8", "tensor=8,pipeline=4", 0.017, 0.1},
    };
    for (size_t i = 0; i < sizeof engine / sizeof engine[0]; i++) {
        served_model m;
        set_up(&m, engine[i].model, engine[i].on, engine[i].plan);
        hold_against_steps(&m);
        for (int prompts = 1; prompts <= 16; prompts *= 4)
            hold_mixed(&m, prompts, engine[i].mean, engine[i].most);
        tear_down(&m);
    }
}

static void test_points_are_exact(void **state) {
    served_model m;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8");
    const double n[] = {1, 7, 100, 992}, at[] = {1, 96, 1024, 9216};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            sm_attend group = {n[i], 1, at[j]};
            assert_true(ask(&m, n[i], n[i] * at[j], 0, 0) == step_of(&m, 1, group, group, n[i]));
        }
    sm_attend prompt = {1, 1024, 0};
    assert_true(ask(&m, 0, 0, 1024, 512) == step_of(&m, 1, prompt, prompt, 1));
    tear_down(&m);
}

/* A step verifies what is drafted: five tokens of each sequence, of which it keeps 3.36 on average;
 * the best depth is that of serve. */
static void test_drafts(void **state) {
    served_model m;
    set_up_drafting(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8",
                    (sm_speculation){.depth = 4, .acceptance = 0.8});
    sm_attend group = {7, 5, 1024};
    assert_true(ask(&m, 7, 7 * 1024, 0, 0) == step_of(&m, 1, group, group, 35));
    assert_true(m.engine.drafted == 4 &&
                fabs(m.engine.tokens_per_step - (1 - pow(0.8, 5)) / 0.2) < 1e-12);
    hold_mixed(&m, 1, 0.008, 0.08);
    double drafted = ask(&m, 7, 7 * 1024, 0, 0);
    tear_down(&m);
    sm_model draft;
    serve_case_model(&draft, "llama-3.2-1b");
    set_up_drafting(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8",
                    (sm_speculation){.depth = 4, .acceptance = 0.8, .draft = &draft});
    double extra = ask(&m, 7, 7 * 1024, 0, 0) - drafted;
    assert_true(extra > 4 * 2.4e9 / (8 * 3.35e12) &&
                extra < 4 * 0.005); /* four times its weights */
    tear_down(&m);
    set_up_drafting(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8",
                    (sm_speculation){.depth = -1, .acceptance = 0.8});
    assert_true(m.engine.drafted > 4);
    tear_down(&m);
}

/* Two stages work on half the batch each. */
static void test_pipeline(void **state) {
    served_model m;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=4,pipeline=2");
    sm_attend half = {32, 1, 1024}, odd = {8, 1, 96};
    assert_true(ask(&m, 64, 64 * 1024, 0, 0) == step_of(&m, 1, half, half, 32));
    assert_true(ask(&m, 15, 15 * 96, 0, 0) == step_of(&m, 1, odd, odd, 8));
    tear_down(&m);
}

static void test_memory_and_links(void **state) {
    served_model m;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8");
    double left = 8 * 80e9 - 2 * 70.6e9, each = 2 * 80 * 8 * 128 * 2;
    assert_true(m.engine.kv_bytes_per_token == each);
    assert_true(m.engine.kv_tokens > 0.7 * left / each && m.engine.kv_tokens < left / each);
    assert_true(m.engine.host_bytes_per_s > 8 * 20e9 && m.engine.transfer_bytes_per_s > 8 * 20e9);
    assert_true(m.engine.chips == 8 && m.engine.tokens_per_step == 1);
    sm_plan one;
    sm_error err = {.status = SM_OK};
    sm_serve_plan_defaults(&one);
    sm_engine engine;
    assert_int_equal(sm_serve_engine(m.serve, &one,
                                     &(sm_engine_use){.mean_tokens = 768, .step_tokens = 8192},
                                     m.arena, &engine, &err),
                     SM_NEGATIVE);
    assert_string_equal(err.sentence, "not one sequence of 768 tokens fits beside the weights");
    tear_down(&m);
}

/* One request alone takes its prefill and its decode steps as they are priced one by one, as far as
 * the tables of the engine are. */
static void test_one_request_alone(void **state) {
    served_model m;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8");
    sm_synthetic one = {.kind = SM_ARRIVALS_UNIFORM,
                        .rate_per_s = 1,
                        .requests = 1,
                        .lengths = {512, 0, 256, 0},
                        .seed = 1};
    sm_arrivals arrivals = sm_synthetic_arrivals(&one);
    sm_simulation o;
    sm_simulated out;
    sm_simulation_defaults(&o);
    o.engine = &m.engine;
    assert_int_equal(sm_simulate(&o, &arrivals, NULL, &out, NULL), SM_OK);
    sm_attend prompt = {1, 512, 0};
    double seconds = step_of(&m, 1, prompt, prompt, 1);
    for (int i = 0; i < 255; i++) {
        sm_attend group = {1, 1, 512 + i};
        seconds += step_of(&m, 1, group, group, 1);
    }
    if (fabs(out.e2e_s.mean / seconds - 1) > 1e-3)
        fail_msg("%.6f s, priced step by step %.6f s", out.e2e_s.mean, seconds);
    tear_down(&m);
}

/* The steps of a simulation asked for one by one: a request decodes, a second one's prompt comes in
 * chunks beside it, then both decode. */
typedef struct followed {
    const sm_engine *engine;
    double left[2], length[2], last[2]; /* of the prompt; in the cache, now and at the end */
    int steps, mixed;
} followed;

static void follow_step(void *context, int replica, double start_s, double seconds, double steps,
                        double decoding, double prefill) {
    followed *f = context;
    sm_sequence_step step[2];
    size_t n = 0;
    double decode = 0, chunk = prefill, expected;
    (void)replica, (void)start_s;
    assert_true(steps == 1);
    for (int i = 0; i < 2; i++) {
        double tokens = f->left[i] > 0 ? fmin(f->left[i], chunk) : f->length[i] < f->last[i];
        if (tokens == 0) continue;
        step[n++] = (sm_sequence_step){tokens, f->length[i]};
        if (f->left[i] > 0) f->left[i] -= tokens, chunk -= tokens;
        else decode++;
        f->length[i] += tokens;
    }
    assert_true(chunk == 0 && decode == decoding);
    assert_int_equal(sm_serve_step_time(f->engine, step, n, &expected, NULL), SM_OK);
    if (fabs(seconds / expected - 1) > 1e-6)
        fail_msg("step %d: %.9f s, asked for %.9f s", f->steps, seconds, expected);
    f->steps++;
    f->mixed += prefill > 0 && decoding > 0;
}

typedef struct two_requests {
    sm_request request[2];
    int at;
} two_requests;

static int next_of_two(void *context, sm_request *request, sm_error *err) {
    two_requests *two = context;
    (void)err;
    if (two->at == 2) return 0;
    *request = two->request[two->at++];
    return 1;
}

static void test_steps_asked_for(void **state) {
    const char *const plans[] = {"tensor=8", "tensor=4,data=2"};
    for (int i = 0; i < 2; i++) {
        served_model m;
        set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", plans[i]);
        two_requests two = {.request = {{.prompt = 700, .output = 60}, {.prompt = 3000}}};
        two.request[1].arrival_s = 0.3;
        two.request[1].output = 200;
        followed f = {.engine = &m.engine, .left = {700, 3000}, .last = {759, 3199}};
        sm_arrivals arrivals = {&two, next_of_two};
        sm_watch watch = {&f, NULL, follow_step};
        sm_simulation o;
        sm_simulated out;
        sm_simulation_defaults(&o);
        o.engine = &m.engine;
        o.policy = SM_POLICY_CHUNKED;
        o.stepwise = true;
        assert_int_equal(sm_simulate(&o, &arrivals, &watch, &out, NULL), SM_OK);
        assert_true(f.mixed >= 4 && f.steps > 200 && out.finished == 2);
        tear_down(&m);
    }
}

static void test_steps_refused(void **state) {
    served_model m;
    sm_error err = {.status = SM_OK};
    const sm_sequence_step bad[] = {{0, 5}, {0.5, 0}, {NAN, 0}, {1, NAN}, {1, -1}, {1e10, 0}};
    double seconds = 1;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8");
    assert_int_equal(sm_serve_step_time(&m.engine, bad, 0, &seconds, &err), SM_BAD_INPUT);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        seconds = 1;
        err.status = SM_OK;
        assert_int_equal(sm_serve_step_time(&m.engine, &bad[i], 1, &seconds, &err), SM_BAD_INPUT);
        assert_true(seconds == 0 && strstr(err.sentence, "sequence 0 of a step has"));
    }
    tear_down(&m);
}

/* Two million requests of some hundreds of tokens a minute; here 20,000 in well under a second. */
static void test_speed(void **state) {
    served_model m;
    set_up(&m, "llama-3.1-70b", "h100-sxm:1x8", "tensor=8");
    sm_synthetic drawn = {.kind = SM_ARRIVALS_POISSON,
                          .rate_per_s = 6,
                          .requests = 20000,
                          .lengths = {512, 1, 256, 1},
                          .seed = 1};
    sm_arrivals arrivals = sm_synthetic_arrivals(&drawn);
    sm_simulation o;
    sm_simulated out;
    sm_simulation_defaults(&o);
    o.engine = &m.engine;
    double start = sm_clock_s();
    assert_int_equal(sm_simulate(&o, &arrivals, NULL, &out, NULL), SM_OK);
    double seconds = sm_clock_s() - start;
    print_message("%.2f million requests a minute, utilisation %.2f, batch %.1f\n",
                  20000 / seconds * 60 / 1e6, out.utilisation, out.mean_batch);
    assert_true(out.finished == 20000 && seconds < 20);
    tear_down(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_are_the_steps),
        cmocka_unit_test(test_points_are_exact),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_memory_and_links),
        cmocka_unit_test(test_one_request_alone),
        cmocka_unit_test(test_steps_asked_for),
        cmocka_unit_test(test_steps_refused),
        cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
