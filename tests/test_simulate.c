/* The simulator against queues with a closed form, against itself one step at a time, and against
 * laws that hold whatever the policy. The engine is a formula: constants, and terms in sequences,
 * cached tokens, new tokens and what they attend to. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scalemodel/simulate.h"

typedef struct formula {
    double start, sequence, cached, token, pair; /* seconds */
} formula;

static double formula_step(void *context, double n, double cached, double prefill,
                           double attended) {
    const formula *f = context;
    return f->start + f->sequence * n + f->cached * cached + f->token * prefill +
           f->pair * prefill * attended;
}

static double formula_line(void *context, double each) {
    (void)context;
    return each > 0 ? HUGE_VAL : 0;
}

/* About a 70B model on eight chips: 12 ms to read the weights, 0.1 ms per prompt token. */
static formula usual_formula = {0.012, 2e-5, 4e-9, 1e-4, 1e-9};

static sm_engine engine_of(formula *f, double kv_tokens) {
    sm_engine e = {
        .context = f, .step_s = formula_step, .line_to = formula_line, .kv_tokens = kv_tokens};
    e.tokens_per_step = 1.0;
    e.kv_bytes_per_token = 327680.0;
    e.chips = 8;
    return e;
}

/* ---- lists of requests ---- */

typedef struct request_list {
    const sm_request *request;
    size_t n, at;
} request_list;

static int next_of_list(void *context, sm_request *request, sm_error *err) {
    request_list *list = context;
    (void)err;
    if (list->at == list->n) return 0;
    *request = list->request[list->at++];
    return 1;
}

typedef struct kept {
    size_t n;
    sm_request_served served[4096];
    double prefill_tokens, decoded, prefills;
    double last_end[8];
    int overlaps;
} kept;

static void keep_served(void *context, const sm_request_served *served) {
    kept *k = context;
    if (k->n < sizeof k->served / sizeof *k->served) k->served[k->n] = *served;
    k->n++;
}

static void keep_step(void *context, int replica, double start_s, double seconds, double steps,
                      double decoding, double prefill_tokens) {
    kept *k = context;
    k->prefill_tokens += prefill_tokens * steps;
    k->decoded += decoding * steps;
    if (start_s < k->last_end[replica & 7] - 1e-9) k->overlaps++;
    k->last_end[replica & 7] = start_s + seconds;
}

static kept book;

static sm_simulated simulate(const sm_simulation *o, const sm_arrivals *arrivals) {
    sm_simulated out;
    sm_error err = {.status = SM_OK};
    sm_watch watch = {&book, keep_served, keep_step};
    memset(&book, 0, sizeof book);
    sm_status status = sm_simulate(o, arrivals, &watch, &out, &err);
    if (status) fprintf(stderr, "%s\n", err.sentence);
    assert_int_equal(status, SM_OK);
    return out;
}

static sm_simulated simulate_list(const sm_simulation *o, const sm_request *request, size_t n) {
    request_list list = {request, n, 0};
    sm_arrivals arrivals = {&list, next_of_list};
    return simulate(o, &arrivals);
}

static sm_simulated simulate_drawn(const sm_simulation *o, sm_synthetic drawn) {
    sm_arrivals arrivals = sm_synthetic_arrivals(&drawn);
    return simulate(o, &arrivals);
}

static sm_simulation options_of(const sm_engine *engine, sm_policy policy) {
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = o.prefill_engine = engine;
    o.policy = policy;
    return o;
}

static void assert_close(double value, double expected, double share) {
    if (!(fabs(value - expected) <= share * fabs(expected))) {
        fprintf(stderr, "%.12g is not within %g of %.12g\n", value, share, expected);
        fail();
    }
}

/* Who only watches is told the same, in the same order. */
static void test_watched_alone(void **state) {
    static kept whole;
    sm_engine engine = engine_of(&usual_formula, 5000);
    sm_simulation o = options_of(&engine, SM_POLICY_CHUNKED);
    sm_synthetic drawn = {.rate_per_s = 20, .requests = 500, .lengths = {400, 1, 200, 1}};
    sm_error err = {.status = SM_OK};
    const sm_watch watch = {&book, keep_served, keep_step};
    assert_true(simulate_drawn(&o, drawn).preemptions > 0);
    whole = book;
    memset(&book, 0, sizeof book);
    const sm_arrivals arrivals = sm_synthetic_arrivals(&drawn);
    assert_int_equal(sm_simulate(&o, &arrivals, &watch, NULL, &err), SM_OK);
    assert_int_equal(book.n, 500);
    for (size_t i = 0; i < book.n; i++) {
        const sm_request_served *a = &book.served[i], *b = &whole.served[i];
        assert_true(a->number == b->number && a->first_token_s == b->first_token_s);
        assert_true(a->end_s == b->end_s && a->preemptions == b->preemptions);
    }
}

/* ---- closed loops ---- */

/* One client: request, answer, thought, one after the other; what comes in at which time is not
 * looked at. How long each is on its way to the queue is drawn: exponentially, of that mean. */
static double alone_s(const formula *f, double prompt, double output);
static void test_one_client(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    sm_simulation o = options_of(&engine, SM_POLICY_CONTINUOUS);
    o.concurrency = 1;
    o.think_s = 2.0;
    o.admission_s = 0.25;
    sm_synthetic drawn = {.kind = SM_ARRIVALS_UNIFORM,
                          .rate_per_s = 1e-3,
                          .requests = 5000,
                          .lengths = {700, 0, 300, 0},
                          .seed = 3};
    sm_simulated out = simulate_drawn(&o, drawn);
    double first = formula_step(&usual_formula, 0, 0, 700, 350);
    double way = out.ttft_s.mean - first, each = way + alone_s(&usual_formula, 700, 300);
    assert_close(way, 0.25, 3 / sqrt(5000));
    assert_close(out.ttft_s.p99 - first, 0.25 * log(100), 0.1);
    assert_close(out.e2e_s.mean, each, 1e-9);
    assert_close(out.seconds, 5000 * each + 4999 * 2.0, 1e-9);
    o.sample_s = HUGE_VAL; /* no series; all else is the same */
    sm_simulated brief = simulate_drawn(&o, drawn);
    assert_true(out.samples > 100 && brief.samples == 1);
    assert_true(brief.ttft_s.p99 == out.ttft_s.p99 && brief.seconds == out.seconds);
}

/* N clients are in the system or think: N = X (R + Z), but for the end, where some have nothing
 * left to ask; and Little's law is exact. */
static void test_clients(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    for (int policy = 0; policy < SM_POLICY_COUNT; policy++) {
        sm_simulation o = options_of(&engine, (sm_policy)policy);
        o.concurrency = 24;
        o.think_s = 3.0;
        o.admission_s = 0.05;
        o.most_batch = 16;
        sm_synthetic drawn = {.kind = SM_ARRIVALS_UNIFORM,
                              .rate_per_s = 1,
                              .requests = 6000,
                              .lengths = {300, 0, 60, 0},
                              .seed = 5,
                              .least_share = 0.5};
        sm_simulated out = simulate_drawn(&o, drawn);
        assert_true(out.finished == 6000);
        assert_close(out.mean_in_system, out.requests_per_s * out.e2e_s.mean, 1e-9);
        double inside = out.requests_per_s * (out.e2e_s.mean + 3.0);
        assert_close(inside, 24.0, 0.01);
        assert_close(out.prompt_tokens / 6000, 225, 0.02); /* evenly from a half to all */
    }
}

/* ---- looks and gathering ---- */

enum { LONG = 60000, SHORT = 400 };
static formula flat = {0.01, 0, 0, 0, 0};

/* A long answer, and now and then a request of one token beside it, whose wait is what is asked. */
static void wait_beside(const sm_simulation *o, int at_once, double *least, double *mean,
                        double *most) {
    static sm_request request[SHORT + 1];
    request[0] = (sm_request){.prompt = 10, .output = LONG};
    for (int i = 0; i < SHORT; i++)
        request[i + 1] = (sm_request){
            .arrival_s = 1 + i / at_once * 1.23457 * at_once, .prompt = 10, .output = 1};
    simulate_list(o, request, SHORT + 1);
    *least = HUGE_VAL, *mean = *most = 0;
    for (size_t i = 0; i < book.n; i++) {
        const sm_request_served *s = &book.served[i];
        double waited = (s->start_s - s->arrival_s) / flat.start;
        if (s->number == 0) continue;
        *least = fmin(*least, waited), *most = fmax(*most, waited), *mean += waited / SHORT;
    }
}

/* A request waits for any number of steps up to the look: half of them on average. */
static void test_looks(void **state) {
    sm_engine engine = engine_of(&flat, 1e6);
    for (int policy = SM_POLICY_CONTINUOUS; policy <= SM_POLICY_CHUNKED; policy++) {
        sm_simulation o = options_of(&engine, (sm_policy)policy);
        double least, mean, most;
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 0 && most <= 1);
        o.schedules_ahead = true; /* the next step is scheduled without it */
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 1 - 1e-6 && most <= 2 + 1e-6);
        assert_close(mean, 1.5, 0.05);
        o.schedules_ahead = false;
        o.look_steps = 30;
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 0 && most <= 30);
        assert_close(mean, 15, 0.05);
    }
}

/* One that comes alone waits for all of the steps, the last of one on each group of chips does not;
 * a second one on a group whose step is full waits once more. On one group those do not wait that
 * fill a step. */
static void test_gathers(void **state) {
    sm_engine engine = engine_of(&flat, 1e6);
    for (int policy = SM_POLICY_CONTINUOUS; policy <= SM_POLICY_CHUNKED; policy++) {
        sm_simulation o = options_of(&engine, (sm_policy)policy);
        double least, mean, most;
        o.gather_steps = 40;
        o.groups = 4;
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 40 - 1e-6 && most <= 41 + 1e-6);
        wait_beside(&o, 4, &least, &mean, &most);
        assert_true(least >= 0 && most <= 1 + 1e-6);
        wait_beside(&o, 8, &least, &mean, &most);
        assert_true(least >= 0 && most <= 1 + 1e-6);
        o.chunk_tokens = o.prefill_tokens = 4 * 19 + 1;
        wait_beside(&o, 7, &least, &mean, &most);
        assert_true(least >= 0 && most > 1 && most <= 42 && mean < 20);
        o.most_batch = 4; /* of which the long answer has one: places are waited for too */
        wait_beside(&o, 4, &least, &mean, &most);
        assert_true(most > 38);
        o.most_batch = 64;
        o.groups = 1;
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 40 - 1e-6 && most <= 41 + 1e-6);
        o.chunk_tokens = o.prefill_tokens = 12; /* 10 of a prompt and one that decodes */
        wait_beside(&o, 1, &least, &mean, &most);
        assert_true(least >= 0 && most <= 1 + 1e-6);
    }
}

/* Each group of chips takes a prompt at least in a step, whatever their tokens come to. */
static void test_groups(void **state) {
    sm_engine engine = engine_of(&flat, 1e6);
    sm_request request[8];
    for (int i = 0; i < 8; i++) request[i] = (sm_request){.prompt = 100, .output = 1};
    const double groups[] = {0, 1, 2, 4, 8}, steps[] = {8, 8, 5, 3, 2}; /* the first alone */
    for (int i = 0; i < 5; i++) {
        sm_simulation o = options_of(&engine, SM_POLICY_CONTINUOUS);
        o.prefill_tokens = 100;
        o.groups = groups[i];
        simulate_list(&o, request, 8);
        double last = 0;
        for (size_t k = 0; k < book.n; k++) last = fmax(last, book.served[k].end_s);
        assert_close(last, steps[i] * flat.start, 1e-9);
    }
}

/* ---- one request alone ---- */

/* The prefill gives the first token; each of the others takes one step with one more cached. */
static double alone_s(const formula *f, double prompt, double output) {
    double seconds = formula_step((void *)(uintptr_t)f, 0, 0, prompt, prompt / 2);
    for (double i = 0; i < output - 1; i++)
        seconds += formula_step((void *)(uintptr_t)f, 1, prompt + i, 0, 0);
    return seconds;
}

static void test_alone(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    sm_request one = {.arrival_s = 3.0, .prompt = 700, .output = 300};
    for (int policy = 0; policy < SM_POLICY_DISAGGREGATED; policy++) {
        sm_simulation o = options_of(&engine, (sm_policy)policy);
        o.chunk_tokens = 1000;
        sm_simulated out = simulate_list(&o, &one, 1);
        assert_close(out.e2e_s.mean, alone_s(&usual_formula, 700, 300), 1e-12);
        assert_close(out.ttft_s.mean, formula_step(&usual_formula, 0, 0, 700, 350), 1e-12);
        assert_close(out.tpot_s.mean, (out.e2e_s.mean - out.ttft_s.mean) / 299, 1e-12);
        assert_true(out.steps == 300 && out.finished == 1 && out.mean_batch == 1.0);
        assert_close(out.utilisation, 1.0, 1e-9);
        assert_close(out.mean_in_system, 1.0, 1e-9);
    }
}

static void test_alone_disaggregated(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    engine.transfer_bytes_per_s = 50e9;
    engine.transfer_latency_s = 1e-3;
    sm_request one = {.prompt = 700, .output = 300};
    sm_simulation o = options_of(&engine, SM_POLICY_DISAGGREGATED);
    sm_simulated out = simulate_list(&o, &one, 1);
    double transfer = 1e-3 + 700 * 327680.0 / 50e9;
    assert_close(out.e2e_s.mean, alone_s(&usual_formula, 700, 300) + transfer, 1e-12);
    /* The decoding worker tells the first token, and takes one in after the other. */
    double first_s = formula_step(&usual_formula, 0, 0, 700, 350) + transfer;
    assert_close(out.ttft_s.mean, first_s, 1e-12);
    sm_request two[] = {one, {.arrival_s = out.e2e_s.mean - first_s, .prompt = 700, .output = 300}};
    o.most_batch = 1;
    assert_close(simulate_list(&o, two, 2).ttft_s.mean, first_s, 1e-12);
    two[1].arrival_s -= 0.5;
    assert_close(simulate_list(&o, two, 2).ttft_s.mean, first_s + 0.25, 1e-12);
}

static void test_alone_in_chunks(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    sm_request one = {.prompt = 1000, .output = 5};
    sm_simulation o = options_of(&engine, SM_POLICY_CHUNKED);
    o.chunk_tokens = 300;
    o.most_batch = 16;
    sm_simulated out = simulate_list(&o, &one, 1);
    double first =
        4 * 0.012 + 1000 * 1e-4 + 1e-9 * (300 * 150.0 + 300 * 450.0 + 300 * 750.0 + 100 * 950.0);
    assert_close(out.ttft_s.mean, first, 1e-12);
    assert_true(out.steps == 8);
}

/* A prompt takes no more of a step than one group of chips does; one that is shorter and came later
 * is done before it. */
static void test_chunks_of_groups(void **state) {
    formula f = {0.01, 0, 0, 0, 0};
    sm_engine engine = engine_of(&f, 1e6);
    sm_request two[2] = {{.prompt = 1000, .output = 1}, {.prompt = 200, .output = 1}};
    sm_simulation o = options_of(&engine, SM_POLICY_CHUNKED);
    o.chunk_tokens = 5000;
    o.prompt_tokens = 300;
    o.most_batch = 16;
    sm_simulated out = simulate_list(&o, two, 2);
    assert_close(out.ttft_s.most, 0.04, 1e-12);
    assert_close(out.ttft_s.mean, 0.5 * (0.02 + 0.04), 1e-12);
    assert_true(out.steps == 4 && out.prefilled_tokens == 1200);
}

/* ---- queues with a closed form ---- */

/* Requests of one token each take the same prefill: M/D/1, mean wait rho S / (2 (1 - rho)). */
static void test_queue_of_constant_service(void **state) {
    formula f = {0.05, 0, 0, 0, 0};
    sm_engine engine = engine_of(&f, 1e6);
    const sm_policy policies[] = {SM_POLICY_STATIC, SM_POLICY_CONTINUOUS};
    const double loads[] = {0.3, 0.7, 0.9};
    for (int i = 0; i < 6; i++) {
        double load = loads[i / 2], service = 0.05;
        sm_simulation o = options_of(&engine, policies[i % 2]);
        o.most_batch = 1;
        sm_synthetic drawn = {.kind = SM_ARRIVALS_POISSON,
                              .rate_per_s = load / service,
                              .requests = 400000,
                              .lengths = {10, 0, 1, 0},
                              .seed = 7};
        sm_simulated out = simulate_drawn(&o, drawn);
        assert_close(out.queue_s.mean, load * service / (2 * (1 - load)), 0.03);
        assert_close(out.utilisation, load, 0.01);
        assert_close(out.e2e_s.mean, out.queue_s.mean + service, 1e-9);
    }
}

/* Lognormal outputs, one at a time: M/G/1, mean wait lambda E[S^2] / (2 (1 - rho)) (Pollaczek and
 * Khinchine); the moments are those of what was drawn. */
static void test_queue_of_varied_service(void **state) {
    formula f = {0.001, 0, 0, 0, 0};
    sm_engine engine = engine_of(&f, 1e9);
    const sm_policy policies[] = {SM_POLICY_STATIC, SM_POLICY_CONTINUOUS, SM_POLICY_CHUNKED};
    for (int i = 0; i < 3; i++) {
        sm_synthetic drawn = {.kind = SM_ARRIVALS_POISSON,
                              .rate_per_s = 6.0,
                              .requests = 300000,
                              .lengths = {10, 0, 100, 1.0},
                              .seed = 11};
        sm_synthetic again = drawn;
        sm_arrivals lengths = sm_synthetic_arrivals(&again);
        sm_request request;
        double first = 0, second = 0, last = 0;
        while (lengths.next(lengths.context, &request, NULL) == 1) {
            double service = 0.001 * request.output;
            first += service / again.requests;
            second += service * service / again.requests;
            last = request.arrival_s;
        }
        double rate = again.requests / last, load = rate * first;
        sm_simulation o = options_of(&engine, policies[i]);
        o.most_batch = 1;
        sm_simulated out = simulate_drawn(&o, drawn);
        assert_close(out.queue_s.mean, rate * second / (2 * (1 - load)), 0.05);
        assert_close(out.utilisation, load, 0.001);
    }
}

/* Who is ahead of whom in a queue of constant service, nobody interrupted: with the residual work
 * R = rho S / 2 the first wait R / (1 - rho_1), the others R / ((1 - rho_1) (1 - rho)) (Cobham,
 * "Priority assignment in waiting line problems", 1954). */
static void test_queue_of_two_priorities(void **state) {
    formula f = {0.05, 0, 0, 0, 0};
    sm_engine engine = engine_of(&f, 1e6);
    const sm_request_class classes[] = {{"later", 0.75, 5, 0, 0}, {"first", 0.25, 2, 0.1, 0}};
    const double load = 0.8, service = 0.05, ahead = 0.25 * load, rest = load * service / 2;
    sm_simulation o = options_of(&engine, SM_POLICY_CONTINUOUS);
    o.most_batch = 1;
    o.classes = classes;
    o.n_classes = 2;
    sm_synthetic drawn = {.kind = SM_ARRIVALS_POISSON,
                          .rate_per_s = load / service,
                          .requests = 400000,
                          .lengths = {10, 0, 1, 0},
                          .classes = classes,
                          .n_classes = 2,
                          .seed = 7};
    sm_simulated out = simulate_drawn(&o, drawn);
    const sm_class_served *first = &out.of_class[1], *later = &out.of_class[0];
    assert_close(first->ttft_s.mean - service, rest / (1 - ahead), 0.03);
    assert_close(later->ttft_s.mean - service, rest / ((1 - ahead) * (1 - load)), 0.03);
    assert_close(first->finished, 0.25 * out.finished, 0.01);
    assert_true(later->within_slo == 1 && first->within_slo > 0.8 && first->within_slo < 1);
    assert_close(out.within_slo, 0.75 + 0.25 * first->within_slo, 0.01);
}

/* One conversation: each turn is thought of when the one before it has ended. */
static void test_turns_wait_for_each_other(void **state) {
    sm_engine engine = engine_of(&usual_formula, 1e6);
    engine.transfer_bytes_per_s = 1e11;
    for (int i = 0; i < 3; i++) {
        bool cached = i > 0, apart = i == 2;
        sm_simulation o =
            options_of(&engine, apart ? SM_POLICY_DISAGGREGATED : SM_POLICY_CONTINUOUS);
        o.prefix_cache = cached;
        o.page_tokens = 1;
        o.concurrency = cached; /* one client, or one that comes at a rate: the same */
        o.think_s = 3;
        sm_synthetic drawn = {.kind = SM_ARRIVALS_UNIFORM,
                              .rate_per_s = 1e-3,
                              .requests = 5,
                              .lengths = {700, 0, 300, 0},
                              .turns = 5,
                              .think_s = 3,
                              .shared_prefix = 100};
        sm_simulated out = simulate_drawn(&o, drawn);
        double now_s = book.served[0].arrival_s;
        if (cached) assert_close(out.cache[SM_CACHE_HBM].found, out.prefix_hit_rate, 1e-12);
        assert_true(book.n == 5 && out.prompt_tokens == 5 * 100 + 5 * 700 + 10 * 1000);
        for (int k = 0; k < 5; k++) {
            const sm_request_served *q = &book.served[k];
            double prompt = 100 + 700 + 1000.0 * k;
            /* the last token has no cache; the pool of prompts has no answers */
            double known = !cached || k == 0 ? 0 : prompt - 700 - (apart ? 300 : 1);
            assert_true(q->prompt == prompt && q->cached == known);
            assert_close(q->arrival_s, now_s, 1e-12);
            now_s = q->end_s + 3;
        }
    }
}

/* The rate of each span, over and over, of all kinds of arrivals. */
static void test_rates_that_change(void **state) {
    for (int kind = 0; kind < 3; kind++) {
        sm_synthetic s = {.kind = (sm_arrival_kind)kind,
                          .cv = 2,
                          .requests = 200000,
                          .lengths = {10, 0, 1, 0},
                          .span = {{20, 50}, {0, 30}, {2, 100}},
                          .spans = 3};
        sm_arrivals arrivals = sm_synthetic_arrivals(&s);
        double begin[] = {0, 50, 80, 180}, come[3] = {0};
        sm_request q;
        while (arrivals.next(arrivals.context, &q, NULL) == 1) {
            double at = fmod(q.arrival_s, 180);
            for (int i = 0; i < 3; i++) come[i] += at >= begin[i] && at < begin[i + 1];
        }
        double cycles = q.arrival_s / 180;
        assert_close(sm_synthetic_rate(&s), 1200.0 / 180, 1e-12);
        assert_close(come[0] / cycles, 1000, 0.03);
        assert_close(come[2] / cycles, 200, 0.05);
        assert_true(come[1] <= cycles); /* uniform: one falls on the seam */
    }
}

/* Everything at once: a full batch of B all the time. With outputs of n tokens and prompts of p, B
 * requests cost B prefills of (start + token p) and n - 1 steps of (start + sequence B). */
static void test_saturation(void **state) {
    formula f = {0.012, 2e-5, 0, 1e-4, 0};
    sm_engine engine = engine_of(&f, 1e9);
    double B = 64, p = 200, n = 150;
    sm_synthetic drawn = {.kind = SM_ARRIVALS_UNIFORM,
                          .rate_per_s = 1e6,
                          .requests = 20000,
                          .lengths = {p, 0, n, 0},
                          .seed = 3};
    sm_simulation o = options_of(&engine, SM_POLICY_CONTINUOUS);
    o.most_batch = B;
    o.prefill_tokens = p * B;
    double round = f.start + f.token * p * B + (n - 1) * (f.start + f.sequence * B);
    assert_close(simulate_drawn(&o, drawn).requests_per_s, B / round, 0.01);
    o.policy = SM_POLICY_STATIC;
    assert_close(simulate_drawn(&o, drawn).requests_per_s, B / round, 0.01);
    /* chunks: B places, of which a request takes one for a step of prefill and n - 1 of decoding;
     * each prompt fits in the room that a step has, so a request leaves every n / B steps */
    o.policy = SM_POLICY_CHUNKED;
    o.chunk_tokens = 64 + 400;
    double step = f.start + f.sequence * B * (n - 1) / n + f.token * p * B / n;
    assert_close(simulate_drawn(&o, drawn).requests_per_s, B / (n * step), 0.01);
}

/* ---- laws ---- */

static const sm_request_class two_classes[] = {{"chat", 0.3, 0, 0.2, 0}, {"batch", 0.7, 1, 0, 0}};

static sm_synthetic mixed(double rate, double requests, uint64_t seed) {
    return (sm_synthetic){.kind = SM_ARRIVALS_GAMMA,
                          .rate_per_s = rate,
                          .cv = 2.0,
                          .requests = requests,
                          .lengths = {300, 1.2, 120, 0.8},
                          .turns = seed % 3 == 1 ? 3 : 0,
                          .turns_cv = 0.5,
                          .think_s = 0.4,
                          .classes = two_classes,
                          .n_classes = 2,
                          .seed = seed};
}

static void check_laws(const sm_simulated *out) {
    assert_true(out->finished + out->refused == out->requests);
    assert_true(out->of_class[0].finished + out->of_class[1].finished ==
                (out->of_class[0].finished > 0 ? out->finished : 0));
    double rate = out->finished / out->seconds;
    assert_close(out->mean_in_system, rate * out->e2e_s.mean, 1e-9); /* Little */
    assert_true(book.n == (size_t)out->finished && book.overlaps == 0);
    assert_close(out->prefilled_tokens, book.prefill_tokens, 1e-12);
    assert_close(out->prompt_tokens - out->cached_tokens + out->recomputed_tokens,
                 book.prefill_tokens, 1e-12);
    double outputs = 0, prompts = 0;
    for (size_t i = 0; i < book.n && i < 4096; i++) {
        const sm_request_served *s = &book.served[i];
        assert_true(s->arrival_s <= s->start_s && s->start_s <= s->first_token_s);
        assert_true(s->first_token_s <= s->end_s && s->cached < s->prompt);
        outputs += s->output;
        prompts += s->prompt;
    }
    if (book.n > 4096) return;
    assert_true(outputs == out->output_tokens && prompts == out->prompt_tokens);
}

/* Drawn requests, of which most belong to a conversation or share a prefix. */
typedef struct related {
    sm_synthetic drawn;
    sm_arrivals inner;
    sm_rng rng;
} related;

static int next_related(void *context, sm_request *request, sm_error *err) {
    related *r = context;
    int got = r->inner.next(r->inner.context, request, err);
    if (got != 1) return got;
    request->conversation = sm_rng_below(&r->rng, 12);
    request->prefix = sm_rng_below(&r->rng, 4);
    request->shared_prefix = floor(request->prompt * sm_rng_unit(&r->rng));
    return 1;
}

static sm_simulated simulate_related(const sm_simulation *o, sm_synthetic drawn) {
    related r = {.drawn = drawn, .rng = {5}};
    r.inner = sm_synthetic_arrivals(&r.drawn);
    sm_arrivals arrivals = {&r, next_related};
    return simulate(o, &arrivals);
}

static void test_laws(void **state) {
    for (int i = 0; i < 160; i++) {
        sm_engine engine = engine_of(&usual_formula, i % 3 == 0 ? 4000 : 60000);
        engine.host_kv_tokens = i % 5 == 0 ? 20000 : 0;
        engine.host_bytes_per_s = 50e9;
        engine.transfer_bytes_per_s = 50e9;
        sm_simulation o = options_of(&engine, (sm_policy)(i % 4));
        o.replicas = 1 + i % 3;
        o.prefill_replicas = 1 + i / 4 % 2;
        o.preempt = i % 2 ? SM_PREEMPT_SWAP : SM_PREEMPT_RECOMPUTE;
        o.route = (sm_route)(i % 3);
        o.most_batch = i % 7 == 0 ? 8 : 256;
        o.page_tokens = i % 4 == 1 ? 1 : 16;
        o.prefix_cache = i % 8 > 4;
        o.look_steps = i % 6 == 1 ? 7 : 0;
        o.gather_steps = i % 6 > 3 ? 9 : 0;
        o.schedules_ahead = i % 4 > 1 && i % 3 == 0;
        o.groups = o.gather_steps > 0 ? 4 : 0;
        o.classes = two_classes;
        o.n_classes = i % 5 > 2 ? 2 : 0;
        sm_simulated out = simulate_related(&o, mixed(20.0 * (1 + i % 5), 600, (uint64_t)i));
        check_laws(&out);
        assert_true(o.prefix_cache ? out.cached_tokens > 0 : out.cached_tokens == 0);
        /* decoded tokens and one for each prefill make the output */
        if (o.policy != SM_POLICY_STATIC && out.preemptions == 0)
            assert_true(out.decoded_tokens + out.finished == out.output_tokens);
        if (o.policy != SM_POLICY_STATIC) assert_true(book.decoded == out.decoded_tokens);
    }
}

/* ---- jumps ---- */

static void check_same(const sm_simulated *a, const sm_simulated *b) {
    assert_close(a->e2e_s.mean, b->e2e_s.mean, 1e-9);
    assert_close(a->ttft_s.mean, b->ttft_s.mean, 1e-9);
    assert_close(a->queue_s.mean, b->queue_s.mean, 1e-9);
    assert_close(a->busy_s, b->busy_s, 1e-9);
    assert_close(a->mean_in_system, b->mean_in_system, 1e-9);
    assert_true(a->steps == b->steps && a->preemptions == b->preemptions);
    assert_true(a->prefilled_tokens == b->prefilled_tokens);
}

static void test_jumps_equal_single_steps(void **state) {
    double preemptions = 0;
    for (int i = 0; i < 80; i++) {
        sm_engine engine = engine_of(&usual_formula, i % 2 == 0 ? 5000 : 60000);
        engine.host_kv_tokens = 20000;
        engine.host_bytes_per_s = 50e9;
        engine.transfer_bytes_per_s = 50e9;
        engine.tokens_per_step = i % 7 == 3 ? 2.6 : 1;
        sm_simulation o = options_of(&engine, (sm_policy)(i % 4));
        o.replicas = 1 + i % 2;
        o.preempt = i % 3 ? SM_PREEMPT_SWAP : SM_PREEMPT_RECOMPUTE;
        o.most_batch = 32;
        o.chunk_tokens = i % 8 == 2 ? 48 : 256;
        o.look_steps = i % 6 == 1 ? 7 : 0;
        o.gather_steps = i % 6 > 3 ? 9 : 0;
        o.groups = o.gather_steps > 0 ? 4 : 0;
        o.schedules_ahead = i % 4 > 0 && i % 6 < 4;
        o.classes = two_classes;
        o.n_classes = i % 5 > 2 ? 2 : 0;
        sm_simulated fast = simulate_drawn(&o, mixed(10.0 + i, 150, (uint64_t)i));
        o.stepwise = true;
        sm_simulated slow = simulate_drawn(&o, mixed(10.0 + i, 150, (uint64_t)i));
        check_same(&fast, &slow);
        preemptions += fast.preemptions;
    }
    assert_true(preemptions > 100);
}

/* Seconds of decoding go up in equal stairs of 40 cached tokens a sequence, with a slope at each.
 */
static double stairs_step(void *context, double n, double cached, double prefill, double attended) {
    (void)context, (void)attended;
    double each = n > 0 ? cached / n : 0, stair = floor(each / 40);
    return 0.01 + 1e-4 * prefill + 0.002 * (stair + fmin(1, (each - 40 * stair) / 8));
}

static double stairs_line(void *context, double each) {
    (void)context;
    double from = 40 * floor(each / 40);
    return each < from + 8 ? from + 8 : from + 40;
}

/* Of stairs that are alike the middle of a run lies on the line between its ends. */
static void test_stairs_are_summed(void **state) {
    for (int policy = 0; policy < SM_POLICY_DISAGGREGATED; policy++) {
        sm_engine engine = engine_of(&usual_formula, 60000);
        engine.step_s = stairs_step;
        engine.line_to = stairs_line;
        sm_simulation o = options_of(&engine, (sm_policy)policy);
        sm_simulated fast = simulate_drawn(&o, mixed(0.3, 100, 9));
        o.stepwise = true;
        sm_simulated slow = simulate_drawn(&o, mixed(0.3, 100, 9));
        check_same(&fast, &slow);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watched_alone),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_alone_disaggregated),
        cmocka_unit_test(test_alone_in_chunks),
        cmocka_unit_test(test_chunks_of_groups),
        cmocka_unit_test(test_queue_of_constant_service),
        cmocka_unit_test(test_queue_of_varied_service),
        cmocka_unit_test(test_queue_of_two_priorities),
        cmocka_unit_test(test_turns_wait_for_each_other),
        cmocka_unit_test(test_rates_that_change),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_one_client),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_gathers),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_jumps_equal_single_steps),
        cmocka_unit_test(test_stairs_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
