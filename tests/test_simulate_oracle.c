/* The simulator against a slow one that moves every sequence token by token: the same times for
 * every request, with memory that runs out. Then the highest rate, and what is refused. */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "scalemodel/simulate.h"

enum { MOST = 800 };

static double step_s(void *context, double n, double cached, double prefill, double attended) {
    (void)context;
    double bent = cached > 3000 ? 2e-8 * (cached - 3000) : 0; /* a kink, as tables have */
    return 0.012 + 2e-5 * n + 4e-9 * cached + bent + 1e-4 * prefill + 1e-9 * prefill * attended;
}

static sm_engine engine_of(double kv_tokens) {
    return (sm_engine){.step_s = step_s,
                       .kv_tokens = kv_tokens,
                       .tokens_per_step = 1,
                       .kv_bytes_per_token = 1e5,
                       .chips = 1};
}

/* ---- the slow simulator ---- */

typedef struct slow_request {
    double asked_s, arrival_s, first_s, end_s;
    int prompt, output, done, length, target;
    int kind;       /* its class, which here is its rank too */
    bool follows;   /* the request before it, so long after its end */
    double think_s; /* arrival_s is HUGE_VAL until then */
    bool arrived;
} slow_request;
typedef struct slow {
    const sm_simulation *o;
    slow_request request[MOST];
    int n, arrived, number[MOST]; /* number: the requests in the order in which they arrived */
    int waiting[MOST], waits, running[MOST], runs; /* running: in the order they were let in */
    double now_s;
    int preemptions;
} slow;

static int pages(const slow *s, int tokens) { return (int)ceil(tokens / s->o->page_tokens); }

static int is_due(const slow_request *q) { return q->length < q->target; }

/* One whose prompt is not done has the pages of all of it. */
static int used(const slow *s) {
    int sum = 0;
    for (int i = 0; i < s->runs; i++) {
        const slow_request *q = &s->request[s->running[i]];
        sum += pages(s, is_due(q) ? q->target : q->length);
    }
    return sum;
}

static int capacity(const slow *s) {
    return (int)floor(s->o->engine->kv_tokens / s->o->page_tokens);
}

static void take_out(int *list, int *n, int at) {
    memmove(list + at, list + at + 1, (size_t)(*n - at - 1) * sizeof *list);
    --*n;
}

static void put_first(int *list, int *n, int value) {
    memmove(list + 1, list, (size_t)*n * sizeof *list);
    list[0] = value;
    ++*n;
}

/* Of n in a list, the first or the last of those of the least or the highest rank. */
static int pick(const slow *s, const int *list, int n, bool last) {
    int best = last ? n - 1 : 0;
    for (int j = 1; j < n; j++) {
        int i = last ? n - 1 - j : j;
        int rank = s->request[list[i]].kind, so_far = s->request[list[best]].kind;
        if (last ? rank > so_far : rank < so_far) best = i;
    }
    return best;
}

/* Let in what fits; returns how many tokens their prompts have. */
static int let_in(slow *s) {
    bool chunked = s->o->policy == SM_POLICY_CHUNKED;
    int taken = 0, before = s->runs;
    while (s->waits > 0 && s->runs < (int)s->o->most_batch) {
        int at = pick(s, s->waiting, s->waits, false);
        slow_request *q = &s->request[s->waiting[at]];
        int tokens = q->prompt + q->done;
        if (!chunked && s->runs > before && taken + tokens > (int)s->o->prefill_tokens) break;
        int reserve = s->runs > 0 ? (capacity(s) + 99) / 100 : 0;
        if (used(s) + pages(s, tokens) + reserve > capacity(s)) break;
        q->target = tokens;
        q->length = 0;
        s->running[s->runs++] = s->waiting[at];
        take_out(s->waiting, &s->waits, at);
        taken += tokens;
    }
    return taken;
}

static void make_room(slow *s) {
    for (;;) {
        int need = 0;
        for (int i = 0; i < s->runs; i++) {
            const slow_request *q = &s->request[s->running[i]];
            if (!is_due(q)) need += pages(s, q->length + 1) - pages(s, q->length);
        }
        if (s->runs <= 1 || need == 0 || used(s) + need <= capacity(s)) return;
        int at = pick(s, s->running, s->runs, true);
        slow_request *q = &s->request[s->running[at]];
        q->length = q->target = 0;
        put_first(s->waiting, &s->waits, s->running[at]);
        take_out(s->running, &s->runs, at);
        s->preemptions++;
    }
}

/* One step: all that decode unless the prompts are alone, and prompts up to `room` tokens. */
static void do_step(slow *s, bool decodes, int room) {
    double n = 0, cached = 0, prefill = 0, attended = 0;
    int part[MOST] = {0}, was_due[MOST] = {0};
    for (int i = 0; i < s->runs; i++) {
        const slow_request *q = &s->request[s->running[i]];
        was_due[i] = is_due(q);
        if (was_due[i] && room > 0) {
            part[i] = q->target - q->length < room ? q->target - q->length : room;
            room -= part[i];
            prefill += part[i];
            attended += part[i] * (q->length + part[i] / 2.0);
        } else if (!was_due[i] && decodes) {
            n++;
            cached += q->length;
        }
    }
    s->now_s += step_s(NULL, n, cached, prefill, prefill > 0 ? attended / prefill : 0);
    for (int i = 0; i < s->runs; i++) {
        slow_request *q = &s->request[s->running[i]];
        bool decoded = !was_due[i] && decodes;
        q->length += decoded ? 1 : part[i];
        bool gives = decoded || (was_due[i] && part[i] > 0 && !is_due(q));
        if (gives && q->done++ == 0) q->first_s = s->now_s;
    }
    for (int i = s->runs - 1; i >= 0; i--) {
        slow_request *q = &s->request[s->running[i]];
        if (q->done < q->output) continue;
        q->end_s = s->now_s;
        slow_request *next = q + 1;
        if (next < s->request + s->n && next->follows) next->arrival_s = q->end_s + next->think_s;
        take_out(s->running, &s->runs, i);
    }
}

static int decoding(const slow *s) {
    int n = 0;
    for (int i = 0; i < s->runs; i++) n += !is_due(&s->request[s->running[i]]);
    return n;
}

/* The next to arrive. */
static int soonest(const slow *s) {
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        const slow_request *q = &s->request[i];
        if (!q->arrived && (best < 0 || q->arrival_s < s->request[best].arrival_s)) best = i;
    }
    return best;
}

static void simulate_slowly(slow *s) {
    while (s->arrived < s->n || s->waits + s->runs > 0) {
        if (s->waits + s->runs == 0) s->now_s = fmax(s->now_s, s->request[soonest(s)].arrival_s);
        for (int i; (i = soonest(s)) >= 0 && s->request[i].arrival_s <= s->now_s;) {
            s->request[i].arrived = true;
            s->number[s->arrived++] = i;
            s->waiting[s->waits++] = i;
        }
        int taken = let_in(s);
        if (s->o->policy == SM_POLICY_CHUNKED) {
            make_room(s);
            int room = (int)s->o->chunk_tokens - decoding(s);
            do_step(s, true, room > 1 ? room : 1);
        } else if (taken > 0) do_step(s, false, taken);
        else {
            make_room(s);
            do_step(s, true, 0);
        }
    }
}

/* ---- both ---- */

typedef struct pair {
    slow *slow;
    int given;
    double worst;
    int ended;
} pair;

static int next_of_slow(void *context, sm_request *request, sm_error *err) {
    pair *p = context;
    (void)err;
    if (p->given == p->slow->n) return 0;
    const slow_request *q = &p->slow->request[p->given++];
    static const char *const names[] = {"first", "second", "third"};
    *request = (sm_request){.arrival_s = q->asked_s,
                            .prompt = q->prompt,
                            .output = q->output,
                            .follows = q->follows,
                            .think_s = q->think_s,
                            .kind = names[q->kind]};
    return 1;
}

static void compare_served(void *context, const sm_request_served *served) {
    pair *p = context;
    const slow_request *q = &p->slow->request[p->slow->number[served->number]];
    p->worst = fmax(p->worst, fabs(served->first_token_s - q->first_s));
    p->worst = fmax(p->worst, fabs(served->end_s - q->end_s));
    p->ended++;
}

static void draw_requests(slow *s, uint64_t seed, double rate) {
    sm_synthetic d = {.kind = SM_ARRIVALS_GAMMA,
                      .rate_per_s = rate,
                      .cv = 1.5,
                      .requests = s->n,
                      .lengths = {120, 1, 80, 1},
                      .seed = seed};
    if (seed % 3 == 2) d.turns = 4, d.turns_cv = 1, d.think_s = 0.7, d.think_cv = 1;
    sm_arrivals drawn = sm_synthetic_arrivals(&d);
    for (int i = 0; i < s->n; i++) {
        sm_request q;
        assert_int_equal(drawn.next(drawn.context, &q, NULL), 1);
        bool follows = q.conversation > 0 && q.follows;
        s->request[i] = (slow_request){.asked_s = q.arrival_s,
                                       .arrival_s = follows ? HUGE_VAL : q.arrival_s,
                                       .follows = follows,
                                       .think_s = q.think_s,
                                       .kind = (int)(seed % 4 == 1 ? sm_rng_below(&d.rng, 3) : 0)};
        s->request[i].prompt = (int)fmin(q.prompt, 900);
        s->request[i].output = (int)fmin(q.output, 600);
    }
}

static void test_equals_the_slow_one(void **state) {
    static slow s;
    int preemptions = 0;
    for (int i = 0; i < 62; i++) {
        bool burst = i >= 60; /* more than wait whole: the others are packed (backlog.c) */
        sm_engine engine = engine_of(i % 3 == 0 ? 1600 : i % 3 == 1 ? 4000 : 1e6);
        const sm_request_class classes[] = {
            {"first", 1, 0, 0, 0}, {"second", 1, 3, 0, 0}, {"third", 1, 7, 0, 0}};
        sm_simulation o;
        sm_simulation_defaults(&o);
        o.engine = &engine;
        o.classes = classes;
        o.n_classes = 3;
        o.policy = i % 2 ? SM_POLICY_CHUNKED : SM_POLICY_CONTINUOUS;
        o.most_batch = i % 5 == 0 ? 8 : 40;
        o.chunk_tokens = i % 7 == 1 ? 64 : 200;
        o.prefill_tokens = 500;
        o.page_tokens = i % 4 < 2 ? 16 : 1;
        memset(&s, 0, sizeof s);
        s.o = &o;
        s.n = burst ? MOST : 150;
        draw_requests(&s, (uint64_t)i, burst ? 1e4 : 4.0 + i % 11);
        pair p = {.slow = &s};
        simulate_slowly(&s);
        sm_arrivals arrivals = {&p, next_of_slow};
        sm_watch watch = {&p, compare_served, NULL};
        sm_simulated out;
        assert_int_equal(sm_simulate(&o, &arrivals, &watch, &out, NULL), SM_OK);
        if (p.ended != s.n || p.worst > 1e-7 || out.preemptions != s.preemptions)
            fail_msg("case %d: %d of %d, %g s apart, %g preemptions for %d", i, p.ended, s.n,
                     p.worst, out.preemptions, s.preemptions);
        preemptions += s.preemptions;
    }
    assert_true(preemptions > 200);
}

/* ---- swaps ---- */

/* Swapped tokens are not computed again, and the engine waits for them. */
static void test_swaps(void **state) {
    sm_engine engine = engine_of(1600);
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = &engine;
    sm_synthetic d = {.kind = SM_ARRIVALS_POISSON,
                      .rate_per_s = 50,
                      .requests = 200,
                      .lengths = {100, 0, 200, 0},
                      .seed = 1};
    sm_arrivals drawn = sm_synthetic_arrivals(&d);
    sm_simulated again, swapped, slowly;
    assert_int_equal(sm_simulate(&o, &drawn, NULL, &again, NULL), SM_OK);
    assert_true(again.preemptions > 20 && again.recomputed_tokens > 100 * again.preemptions);
    o.preempt = SM_PREEMPT_SWAP;
    engine.host_kv_tokens = 1e6;
    engine.host_bytes_per_s = 1e12;
    drawn = sm_synthetic_arrivals(&d);
    assert_int_equal(sm_simulate(&o, &drawn, NULL, &swapped, NULL), SM_OK);
    assert_true(swapped.preemptions > 20 && swapped.recomputed_tokens == 0);
    assert_true(swapped.decoded_tokens == 200 * 199);
    engine.host_bytes_per_s = 1e8;
    drawn = sm_synthetic_arrivals(&d);
    assert_int_equal(sm_simulate(&o, &drawn, NULL, &slowly, NULL), SM_OK);
    double least = slowly.preemptions * 2 * 100 * 1e5 / 1e8; /* out and in, 100 tokens at least */
    assert_true(slowly.seconds > swapped.seconds + 0.9 * least);
    engine.host_kv_tokens = 0; /* nowhere to swap to */
    drawn = sm_synthetic_arrivals(&d);
    assert_int_equal(sm_simulate(&o, &drawn, NULL, &swapped, NULL), SM_OK);
    assert_true(swapped.recomputed_tokens == again.recomputed_tokens);
}

/* ---- the highest rate ---- */

static double service(void *context, double n, double cached, double prefill, double attended) {
    (void)context, (void)n, (void)cached, (void)attended;
    return prefill > 0 ? 0.05 : 0;
}

static sm_status begin_drawn(void *context, double rate, sm_arrivals *arrivals, sm_error *err) {
    sm_synthetic *d = context;
    (void)err;
    d->rate_per_s = 3.0 * rate;
    *arrivals = sm_synthetic_arrivals(d);
    return SM_OK;
}

/* M/D/1: a share of requests waits at most t. At load rho the wait has an exponential tail, and the
 * rate found meets the SLO while 3 % more does not. */
static void test_highest_rate(void **state) {
    sm_engine engine = {.step_s = service, .kv_tokens = 1e9, .tokens_per_step = 1, .chips = 1};
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = &engine;
    o.most_batch = 1;
    o.ttft_s = 0.25;
    sm_synthetic d = {.kind = SM_ARRIVALS_POISSON,
                      .rate_per_s = 3,
                      .requests = 60000,
                      .lengths = {10, 0, 1, 0},
                      .seed = 5};
    sm_rated_arrivals rated = {&d, begin_drawn};
    sm_max_rate found;
    assert_int_equal(sm_simulate_max_rate(&o, &rated, 0.9, &found, NULL), SM_OK);
    assert_true(!found.unbounded && found.at.within_slo >= 0.9 && found.at.within_slo < 0.91);
    double load = 3.0 * found.rate * 0.05;
    assert_true(load > 0.7 && load < 0.85); /* P(wait > 4 services) = 0.1 near 0.78 */
    o.ttft_s = 0.04;                        /* less than one service */
    d.requests = 100;
    assert_int_equal(sm_simulate_max_rate(&o, &rated, 0.9, &found, NULL), SM_OK);
    assert_true(found.rate == 0 && !found.unbounded && found.at.within_slo == 0);
    o.ttft_s = 1e9;
    assert_int_equal(sm_simulate_max_rate(&o, &rated, 0.9, &found, NULL), SM_OK);
    assert_true(found.unbounded && found.rate > 1e6);
}

/* ---- what is refused, and lack of memory ---- */

typedef struct one_request {
    sm_request request[2];
    int n, at;
} one_request;

static int next_of_two(void *context, sm_request *request, sm_error *err) {
    one_request *one = context;
    (void)err;
    if (one->at == one->n) return 0;
    *request = one->request[one->at++];
    return 1;
}

static void expect(const sm_simulation *o, one_request asked, const char *sentence) {
    sm_arrivals arrivals = {&asked, next_of_two};
    sm_error err = {.status = SM_OK};
    sm_simulated out;
    assert_int_equal(sm_simulate(o, &arrivals, NULL, &out, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
}

static double no_price(void *context, double n, double cached, double prefill, double attended) {
    (void)context, (void)n, (void)cached, (void)attended;
    return prefill > 50 ? NAN : 1.0;
}

static void test_refusals(void **state) {
    sm_engine engine = engine_of(1000);
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = &engine;
    one_request two = {{{.prompt = 10, .output = 5}, {.prompt = 10, .output = 5}}, 2, 0};
    one_request bad = two;
    bad.request[1].arrival_s = -1;
    expect(&o, bad, "request 1 arrives before the one ahead of it");
    bad = two;
    bad.request[1].arrival_s = NAN;
    expect(&o, bad, "request 1 arrives at nan s, which is no time");
    bad = two;
    bad.request[0].prompt = 0;
    expect(&o, bad, "request 0 has a prompt of 0 tokens: 1 to 1000000000 are");
    bad = two;
    bad.request[0].output = 1e30;
    expect(&o, bad, "request 0 has an output of 1e+30 tokens: 1 to 1000000000 are");
    bad = two;
    bad.request[0].shared_prefix = 11;
    expect(&o, bad, "request 0 shares a prefix longer than its prompt");
    o.replicas = 0;
    expect(&o, two, "a fleet has 1 to 4096 replicas");
    o.replicas = 1;
    o.page_tokens = NAN;
    expect(&o, two, "a page has 1 to 65536 tokens");
    o.page_tokens = 16;
    engine.step_s = no_price;
    bad = two;
    bad.request[1].prompt = 60;
    bad.request[1].arrival_s = 100;
    expect(&o, bad,
           "the engine has no price for a step of 0 sequences with 0 cached and 60 new "
           "tokens");
}

/* What can never fit is refused and counted; the longest that fits is served. */
static void test_never_fits(void **state) {
    sm_engine engine = engine_of(1000);
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = &engine;
    o.page_tokens = 10;
    one_request two = {{{.prompt = 900, .output = 101}, {.prompt = 900, .output = 102}}, 2, 0};
    for (int policy = 0; policy < SM_POLICY_COUNT; policy++) {
        o.policy = (sm_policy)policy;
        o.prefill_engine = &engine;
        two.at = 0;
        sm_arrivals arrivals = {&two, next_of_two};
        sm_simulated out;
        assert_int_equal(sm_simulate(&o, &arrivals, NULL, &out, NULL), SM_OK);
        assert_true(out.finished == 1 && out.refused == 1 && out.preemptions == 0);
        assert_true(out.within_slo == 0.5);
    }
}

/* The longest requests there are end at once: steps are not taken one by one. */
static void test_absurd_lengths_end(void **state) {
    sm_engine engine = engine_of(1e15);
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = o.prefill_engine = &engine;
    o.chunk_tokens = 2;
    one_request two = {{{.prompt = 1e9, .output = 1e9}, {.prompt = 1e9, .output = 1e9}}, 2, 0};
    for (int policy = 0; policy < SM_POLICY_COUNT; policy++) {
        o.policy = (sm_policy)policy;
        two.at = 0;
        sm_arrivals arrivals = {&two, next_of_two};
        sm_simulated out;
        double start = sm_clock_s();
        assert_int_equal(sm_simulate(&o, &arrivals, NULL, &out, NULL), SM_OK);
        assert_true(out.finished == 2 && sm_clock_s() - start < 5);
    }
}

static void test_lack_of_memory(void **state) {
    sm_engine engine = engine_of(3000);
    engine.transfer_bytes_per_s = 1e10;
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = o.prefill_engine = &engine;
    o.prefix_cache = true;
    const sm_request_class classes[] = {{"a", 1, 1, 0, 0}, {"b", 2, 0, 0, 0}};
    o.classes = classes;
    o.n_classes = 2;
    for (int policy = 0; policy < SM_POLICY_COUNT; policy++) {
        o.policy = (sm_policy)policy;
        FOR_EACH_FAILING_ALLOCATION(loop) {
            sm_synthetic d = {.kind = SM_ARRIVALS_POISSON,
                              .rate_per_s = 50,
                              .requests = 60,
                              .lengths = {100, 0, 20, 0},
                              .turns = policy % 2 ? 3 : 0,
                              .classes = classes,
                              .n_classes = 2,
                              .seed = 1};
            sm_arrivals drawn = sm_synthetic_arrivals(&d);
            sm_error err = {.status = SM_OK};
            sm_simulated out;
            sm_status status = sm_simulate(&o, &drawn, NULL, &out, &err);
            if (failing_alloc_refused(&loop)) assert_int_equal(status, SM_INTERNAL);
            else assert_true(status == SM_OK && out.finished == 60);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_slow_one), cmocka_unit_test(test_swaps),
        cmocka_unit_test(test_highest_rate),        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_never_fits),          cmocka_unit_test(test_absurd_lengths_end),
        cmocka_unit_test(test_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
