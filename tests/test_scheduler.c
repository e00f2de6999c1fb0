/* The scheduler of an engine that runs: what it hands out is what a cache in memory needs, checked
 * on a memory of numbers. Every place of every page holds a number that stands for all tokens up to
 * it; a sequence must find there what it wrote, or what another with the same beginning wrote. */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "scalemodel/scheduler.h"

enum { PAGE = 4, MOST_PAGES = 64, MOST = 400, MOST_LENGTH = 200, REPLICAS = 2, BATCH = 12 };

static double step_s(void *context, double n, double cached, double prefill, double attended) {
    return 0.01 + 1e-4 * (n + prefill);
}

typedef struct request {
    uint64_t number, token[MOST_LENGTH]; /* those of the output too */
    uint64_t block[MOST_LENGTH / PAGE];
    size_t prompt, output, most, filled;
    bool ended;
} request;

typedef struct engine {
    sm_scheduler *scheduler;
    uint64_t memory[REPLICAS][MOST_PAGES * PAGE];
    request request[MOST];
    size_t n, ended;
    double now_s;
    size_t seen;                                /* by the watch */
    const request *seated[REPLICAS][BATCH + 1]; /* this step */
} engine;

static uint64_t prefix_of(const request *q, size_t n) {
    uint64_t hash = SM_HASH_SEED;
    for (size_t i = 0; i < n; i++) hash = sm_hash_mixed(hash, q->token[i]);
    return hash;
}

static void fill_blocks(request *q, size_t tokens) {
    for (; (q->filled + 1) * PAGE <= tokens; q->filled++)
        q->block[q->filled] = prefix_of(q, (q->filled + 1) * PAGE);
}

/* Prompts of one of a few beginnings, so that prefixes are shared at any length. */
static void add(engine *e, sm_rng *rng, double conversations) {
    request *q = &e->request[e->n];
    sm_error err = {.status = SM_OK};
    const request *before = e->n ? &e->request[sm_rng_below(rng, e->n)] : NULL;
    q->prompt = 1 + sm_rng_below(rng, 60);
    q->most = 1 + sm_rng_below(rng, 40);
    uint64_t kind = sm_rng_below(rng, 3);
    for (size_t i = 0; i < q->prompt; i++) q->token[i] = 100 * kind + i / 7;
    if (before && sm_rng_unit(rng) < conversations) { /* goes on from another's exchange */
        size_t said = before->prompt + before->output;
        if (said + 1 < 100) {
            memcpy(q->token, before->token, said * sizeof *q->token);
            q->token[said] = sm_rng_below(rng, 3);
            q->prompt = said + 1;
        }
    } else if (q->prompt > 9) {
        q->token[q->prompt - sm_rng_below(rng, 9) - 1] = 7 + sm_rng_below(rng, 2);
    }
    fill_blocks(q, q->prompt);
    const sm_request asked = {.arrival_s = e->now_s,
                              .prompt = (double)q->prompt,
                              .output = (double)q->most,
                              .block = q->block,
                              .blocks = (int)q->filled,
                              .block_tokens = PAGE};
    sm_status status = sm_scheduler_add(e->scheduler, &asked, e->now_s, &q->number, &err);
    assert_int_equal(status, SM_OK);
    assert_int_equal(q->number, e->n);
    e->n++;
}

static void check_one(engine *e, const sm_scheduled *s) {
    request *q = &e->request[s->number];
    uint64_t *memory = e->memory[s->replica];
    assert_false(q->ended);
    assert_true(s->seat >= 0 && s->seat < BATCH && !e->seated[s->replica][s->seat]);
    e->seated[s->replica][s->seat] = q;
    assert_true(s->first + s->tokens <= q->prompt + q->output);
    assert_true(s->gives == (s->first + s->tokens == q->prompt + q->output));
    assert_true(s->pages * PAGE >= s->first + s->tokens);
    for (size_t i = 0; i < s->first + s->tokens; i++) {
        assert_true(s->page[i / PAGE] >= 0 && s->page[i / PAGE] < MOST_PAGES);
        uint64_t *at = &memory[s->page[i / PAGE] * PAGE + (int)(i % PAGE)];
        if (i < s->first) assert_int_equal(*at, prefix_of(q, i + 1));
        else *at = prefix_of(q, i + 1);
    }
}

/* The step is done: each token depends on all before it. */
static void take_one(engine *e, const sm_scheduled *s) {
    request *q = &e->request[s->number];
    sm_error err = {.status = SM_OK};
    size_t cached = s->first + s->tokens;
    for (size_t had = q->filled; (had + 1) * PAGE <= cached; had++) {
        fill_blocks(q, (had + 1) * PAGE);
        assert_int_equal(sm_scheduler_page_filled(e->scheduler, q->number, q->block[had], &err),
                         SM_OK);
    }
    if (!s->gives) return;
    size_t length = q->prompt + q->output;
    q->token[length] = prefix_of(q, length) % 5;
    if (++q->output == q->most) q->ended = true, e->ended++;
}

static void step(engine *e) {
    sm_error err = {.status = SM_OK};
    sm_scheduled_step s;
    memset(e->seated, 0, sizeof e->seated);
    assert_int_equal(sm_scheduler_next(e->scheduler, e->now_s, &s, &err), SM_OK);
    for (size_t i = 0; i < s.n; i++) check_one(e, &s.sequence[i]);
    e->now_s += s.n ? s.expected_s : 0.01;
    if (!s.n) return;
    for (size_t i = 0; i < s.n; i++) take_one(e, &s.sequence[i]);
    assert_int_equal(sm_scheduler_done(e->scheduler, e->now_s, &err), SM_OK);
}

static void stop(engine *e, size_t i) {
    sm_error err = {.status = SM_OK};
    request *q = &e->request[i];
    if (!q->ended) q->ended = true, e->ended++;
    assert_int_equal(sm_scheduler_stop(e->scheduler, q->number, e->now_s, &err), SM_OK);
}

static void count_served(void *context, const sm_request_served *served) {
    engine *e = context;
    const request *q = &e->request[served->number];
    assert_true(q->ended && served->output == (double)q->output);
    assert_true(served->arrival_s <= served->start_s && served->start_s < served->first_token_s);
    e->seen++;
}

static sm_simulation options_of(const sm_engine *of, sm_policy policy) {
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = of;
    o.policy = policy;
    o.most_batch = BATCH;
    o.chunk_tokens = 24;
    o.prefill_tokens = 64;
    o.page_tokens = PAGE;
    return o;
}

static sm_engine engine_of(void) {
    return (sm_engine){.step_s = step_s,
                       .kv_tokens = MOST_PAGES * PAGE,
                       .kv_bytes_per_token = 1,
                       .tokens_per_step = 1,
                       .chips = 1};
}

static void run(sm_policy policy, bool caches, bool stops, double conversations,
                sm_simulated *out) {
    static engine e;
    const sm_engine memory = engine_of();
    sm_simulation o = options_of(&memory, policy);
    sm_error err = {.status = SM_OK};
    sm_rng rng = {drawn_from(7 + (uint64_t)policy)};
    size_t stopped = 0;
    memset(&e, 0, sizeof e);
    o.replicas = REPLICAS;
    o.prefix_cache = caches;
    o.route = caches ? SM_ROUTE_AFFINITY : SM_ROUTE_LEAST_LOADED;
    const sm_watch watch = {&e, count_served, NULL};
    assert_int_equal(sm_scheduler_new(&o, &watch, &e.scheduler, &err), SM_OK);
    for (size_t steps = 0; e.n < MOST || e.ended < e.n; steps++) {
        assert_true(steps < 100000);
        while (e.n < MOST && sm_rng_unit(&rng) < 0.4) add(&e, &rng, conversations);
        if (stops && e.n && sm_rng_unit(&rng) < 0.2) {
            stop(&e, sm_rng_below(&rng, e.n));
            stopped++;
        }
        step(&e);
    }
    sm_scheduler_read(e.scheduler, out);
    assert_true(out->requests == MOST && (double)e.seen == out->finished);
    assert_true(stops ? out->finished < MOST : out->finished == MOST);
    assert_true(out->mean_in_system > 0 && stopped * 3 >= (size_t)stops * 100);
    sm_scheduler_free(e.scheduler);
}

static void test_memory_is_what_was_written(void **state) {
    static const sm_policy policies[] = {SM_POLICY_STATIC, SM_POLICY_CONTINUOUS, SM_POLICY_CHUNKED};
    sm_simulated out;
    double preemptions = 0, cached = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            run(policies[i], k % 2, k / 2, 0.3, &out);
            preemptions += out.preemptions;
            cached += out.cached_tokens;
            if (!(k % 2)) assert_true(out.cached_tokens == 0);
        }
    assert_true(preemptions > 20 && cached > 1000);
}

/* Another turn finds the exchange before it whole, but for its last page. */
static void test_an_answer_stays_for_the_next_turn(void **state) {
    static engine e;
    const sm_engine memory = engine_of();
    sm_simulation o = options_of(&memory, SM_POLICY_CHUNKED);
    sm_error err = {.status = SM_OK};
    sm_rng rng = {1};
    sm_simulated out;
    memset(&e, 0, sizeof e);
    o.prefix_cache = true;
    assert_int_equal(sm_scheduler_new(&o, NULL, &e.scheduler, &err), SM_OK);
    add(&e, &rng, 0);
    while (e.ended < 1) step(&e);
    size_t said = e.request[0].prompt + e.request[0].output;
    add(&e, &rng, 1);
    while (e.ended < 2) step(&e);
    sm_scheduler_read(e.scheduler, &out);
    assert_true(out.cached_tokens == (double)((said - 1) / PAGE * PAGE));
    sm_scheduler_free(e.scheduler);
}

static void test_what_cannot_run_is_refused(void **state) {
    sm_engine memory = engine_of();
    sm_simulation o = options_of(&memory, SM_POLICY_DISAGGREGATED);
    sm_error err = {.status = SM_OK};
    sm_scheduler *s = NULL;
    uint64_t number;
    assert_int_equal(sm_scheduler_new(&o, NULL, &s, &err), SM_BAD_INPUT);
    o.policy = SM_POLICY_CHUNKED;
    o.preempt = SM_PREEMPT_SWAP;
    assert_int_equal(sm_scheduler_new(&o, NULL, &s, &err), SM_BAD_INPUT);
    o.preempt = SM_PREEMPT_RECOMPUTE;
    assert_int_equal(sm_scheduler_new(&o, NULL, &s, &err), SM_OK);
    sm_request q = {.prompt = MOST_PAGES * PAGE, .output = 2};
    assert_int_equal(sm_scheduler_add(s, &q, 0, &number, &err), SM_NEGATIVE);
    q.prompt = 0;
    assert_int_equal(sm_scheduler_add(s, &q, 0, &number, &err), SM_BAD_INPUT);
    sm_scheduler_free(s);
}

/* What the engine takes by the scheduler's clock is what the simulation says of the same requests.
 */
static int next_drawn(void *context, sm_request *q, sm_error *err) {
    int *n = context;
    sm_rng rng = {(uint64_t)*n + 100};
    if (*n == 60) return 0;
    *q = (sm_request){.arrival_s = 0.02 * *n,
                      .prompt = (double)(1 + sm_rng_below(&rng, 50)),
                      .output = (double)(1 + sm_rng_below(&rng, 30))};
    ++*n;
    return 1;
}

static void test_a_clock_that_keeps_time_is_the_simulation(void **state) {
    for (int policy = 0; policy < 3; policy++) {
        const sm_engine memory = engine_of();
        sm_simulation o = options_of(&memory, (sm_policy)policy);
        sm_error err = {.status = SM_OK};
        sm_scheduler *s = NULL;
        sm_simulated live, simulated;
        sm_scheduled_step step;
        sm_request q;
        int n = 0;
        o.stepwise = true;
        const sm_arrivals arrivals = {&n, next_drawn};
        assert_int_equal(sm_simulate(&o, &arrivals, NULL, &simulated, &err), SM_OK);
        n = 0;
        assert_int_equal(sm_scheduler_new(&o, NULL, &s, &err), SM_OK);
        bool more = next_drawn(&n, &q, &err) == 1;
        double now_s = q.arrival_s;
        for (uint64_t number;;) {
            /* those that came during the step are there at its end */
            for (; more && q.arrival_s <= now_s; more = next_drawn(&n, &q, &err) == 1)
                assert_int_equal(sm_scheduler_add(s, &q, now_s, &number, &err), SM_OK);
            assert_int_equal(sm_scheduler_next(s, now_s, &step, &err), SM_OK);
            if (!step.n && !more) break;
            if (!step.n) now_s = q.arrival_s;
            else now_s += step.expected_s;
            if (step.n) assert_int_equal(sm_scheduler_done(s, now_s, &err), SM_OK);
        }
        sm_scheduler_read(s, &live);
        assert_true(live.steps == simulated.steps && live.preemptions == simulated.preemptions);
        assert_true(fabs(live.ttft_s.mean - simulated.ttft_s.mean) < 1e-9);
        assert_true(fabs(live.tpot_s.mean - simulated.tpot_s.mean) < 1e-9);
        assert_true(fabs(live.mean_in_system - simulated.mean_in_system) < 1e-6);
        sm_scheduler_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_what_was_written),
        cmocka_unit_test(test_an_answer_stays_for_the_next_turn),
        cmocka_unit_test(test_what_cannot_run_is_refused),
        cmocka_unit_test(test_a_clock_that_keeps_time_is_the_simulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
