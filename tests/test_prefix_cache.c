/* The prefix cache: what is found after what, what goes first, where it goes, and that its books
 * balance under random use. */
#include "unit.h"
#include <math.h>
#include <string.h>

#include "../src/serve/prefix_curve.h"
#include "scalemodel/simulate.h"

/* ---- the tree ---- */

static sim_run_list runs_of(int n, const uint64_t *label, const int64_t *end) {
    return (sim_run_list){n, label, end};
}

static int64_t match(const sim_radix *t, sim_run_list runs, int *node) {
    int64_t cold = 0;
    return sim_radix_match(t, &runs, node, &cold);
}

static int64_t insert(sim_radix *t, sim_run_list runs) {
    int64_t added = 0;
    int node = 0;
    assert_int_equal(sim_radix_insert(t, &runs, &added, &node, NULL), SM_OK);
    return added;
}

static void test_tree_finds_the_longest_beginning(void **state) {
    sim_radix t;
    int node = 0;
    assert_int_equal(sim_radix_begin(&t, 0, NULL), SM_OK);
    uint64_t ab[] = {1, 2}, ac[] = {1, 3}, a[] = {1};
    int64_t ten_twenty[] = {10, 20}, ten_thirty[] = {10, 30}, five[] = {5}, six[] = {6, 9};
    assert_int_equal(insert(&t, runs_of(2, ab, ten_twenty)), 20);
    assert_int_equal(insert(&t, runs_of(2, ab, ten_twenty)), 0);
    assert_int_equal(match(&t, runs_of(2, ac, ten_thirty), &node), 10);
    assert_int_equal(insert(&t, runs_of(2, ac, ten_thirty)), 20);
    assert_int_equal(t.hot, 40);
    assert_int_equal(match(&t, runs_of(2, ab, ten_thirty), &node), 20);
    assert_int_equal(match(&t, runs_of(1, a, five), &node), 5);
    /* a conversation that leaves the prefix earlier is another one */
    assert_int_equal(match(&t, runs_of(2, ab, six), &node), 6);
    assert_int_equal(insert(&t, runs_of(2, ab, six)), 3);
    assert_int_equal(match(&t, runs_of(2, ab, six), &node), 9);
    sim_radix_end(&t);
}

static void test_least_recently_used_goes_first(void **state) {
    sim_radix t;
    int node = 0;
    assert_int_equal(sim_radix_begin(&t, 0, NULL), SM_OK);
    uint64_t a[] = {1}, b[] = {2}, ab[] = {1, 2};
    int64_t ten[] = {10}, both[] = {10, 14};
    insert(&t, runs_of(1, a, ten));
    insert(&t, runs_of(1, b, ten));
    insert(&t, runs_of(2, ab, both));
    assert_int_equal(sim_radix_evict(&t, 3), 3); /* of b, which was used longest ago */
    assert_int_equal(match(&t, runs_of(1, b, ten), &node), 7);
    assert_int_equal(sim_radix_evict(&t, 9), 9); /* the rest of b, then the end of a-b */
    assert_int_equal(match(&t, runs_of(1, b, ten), &node), 0);
    assert_int_equal(match(&t, runs_of(2, ab, both), &node), 12);
    sim_radix_pin(&t, node);
    assert_int_equal(sim_radix_evict(&t, 100), 0); /* pinned, and what is before it */
    sim_radix_unpin(&t, node);
    assert_int_equal(sim_radix_evict(&t, 100), 12);
    assert_int_equal(t.hot, 0);
    sim_radix_end(&t);
}

static void test_host_memory_holds_what_went(void **state) {
    sim_radix t;
    int node = 0;
    int64_t cold = 0;
    assert_int_equal(sim_radix_begin(&t, 12, NULL), SM_OK);
    uint64_t a[] = {1}, b[] = {2};
    int64_t ten[] = {10};
    insert(&t, runs_of(1, a, ten));
    assert_int_equal(sim_radix_evict(&t, 6), 6);
    sim_run_list runs = runs_of(1, a, ten);
    assert_int_equal(sim_radix_match(&t, &runs, &node, &cold), 10);
    assert_int_equal(cold, 6);
    sim_radix_pin(&t, node);
    assert_int_equal(sim_radix_warm(&t, node, 8), 4); /* as much as is wanted */
    sim_radix_unpin(&t, node);
    assert_int_equal(t.hot, 8);
    assert_int_equal(t.cold, 2);
    insert(&t, runs_of(1, b, ten));
    assert_int_equal(sim_radix_evict(&t, 18), 18); /* 20 pages for 12 places: a goes for good */
    assert_int_equal(match(&t, runs_of(1, a, ten), &node), 0);
    assert_int_equal(match(&t, runs_of(1, b, ten), &node), 10);
    sim_radix_set_host(&t, 3); /* taken for swaps */
    assert_int_equal(t.cold, 0);
    sim_radix_end(&t);
}

/* ---- the books under random use ---- */

static void check_books(const sim_radix *t) {
    int64_t hot = 0, cold = 0, pinned = 0;
    for (int i = 1; i < t->nodes; i++) {
        const sim_node *n = &t->node[i];
        if (n->start < 0) continue; /* free */
        hot += n->hot;
        cold += n->cold;
        pinned += n->pins > 0 ? n->hot : 0;
        const sim_node *p = &t->node[n->parent];
        assert_true(n->hot >= 0 && n->cold >= 0 && n->hot + n->cold > 0);
        if (n->parent == 0) continue;
        assert_true(n->start > p->start && n->start <= p->start + p->hot + p->cold);
        if (n->hot > 0) assert_true(n->start <= p->start + p->hot);
        assert_true(p->pins >= n->pins);
    }
    assert_int_equal(hot, t->hot);
    assert_int_equal(cold, t->cold);
    assert_int_equal(pinned, t->pinned);
    assert_true(t->cold <= t->cold_most);
}

static void random_runs(sm_rng *rng, uint64_t *label, int64_t *end, sim_run_list *runs) {
    int64_t at = 0;
    runs->n = 1 + (int)sm_rng_below(rng, 4);
    for (int i = 0; i < runs->n; i++) {
        label[i] = sm_rng_below(rng, 3);
        at += 1 + (int64_t)sm_rng_below(rng, 6);
        end[i] = at;
    }
    runs->label = label;
    runs->end = end;
}

static void use_once(sim_radix *t, sm_rng *rng, int *pin, int *pins) {
    uint64_t label[4], choice = sm_rng_below(rng, 10);
    int64_t end[4], cold = 0;
    sim_run_list runs;
    random_runs(rng, label, end, &runs);
    int node = 0;
    int64_t found = sim_radix_match(t, &runs, &node, &cold);
    if (choice < 4) insert(t, runs);
    else if (choice < 6) sim_radix_evict(t, (int64_t)sm_rng_below(rng, 20));
    else if (choice < 8 && *pins < 8) {
        sim_radix_pin(t, node);
        assert_int_equal(sim_radix_warm(t, node, found), cold);
        pin[(*pins)++] = node;
    } else if (choice == 8 && *pins > 0) sim_radix_unpin(t, pin[--*pins]);
    else if (sm_rng_below(rng, 20) == 0) sim_radix_set_host(t, (int64_t)sm_rng_below(rng, 60));
}

static void test_books_balance(void **state) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        sim_radix t;
        sm_rng rng = {seed};
        int pin[8], pins = 0;
        assert_int_equal(sim_radix_begin(&t, seed % 2 ? 40 : 0, NULL), SM_OK);
        for (int i = 0; i < 3000; i++) {
            use_once(&t, &rng, pin, &pins);
            check_books(&t);
        }
        while (pins > 0) sim_radix_unpin(&t, pin[--pins]);
        sim_radix_set_host(&t, 0);
        sim_radix_evict(&t, INT64_MAX);
        check_books(&t);
        assert_true(t.hot == 0 && t.node[0].first_child == -1);
        sim_radix_end(&t);
    }
}

/* ---- in the simulator ---- */

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

static double fixed_step(void *context, double n, double cached, double prefill, double attended) {
    (void)context;
    return 0.01 + 1e-5 * n + 1e-9 * cached + 1e-4 * prefill + 1e-9 * prefill * attended;
}

static sm_request_served served[64];

static void keep_served(void *context, const sm_request_served *one) {
    (void)context;
    served[one->number % 64] = *one;
}

static sm_simulated simulate(const sm_simulation *o, const sm_request *request, size_t n) {
    request_list list = {request, n, 0};
    sm_arrivals arrivals = {&list, next_of_list};
    sm_watch watch = {NULL, keep_served, NULL};
    sm_simulated out;
    assert_int_equal(sm_simulate(o, &arrivals, &watch, &out, NULL), SM_OK);
    return out;
}

static sm_simulation options_of(const sm_engine *engine) {
    sm_simulation o;
    sm_simulation_defaults(&o);
    o.engine = o.prefill_engine = engine;
    o.prefix_cache = true;
    return o;
}

static const sm_engine engine = {.step_s = fixed_step,
                                 .kv_tokens = 100000,
                                 .kv_bytes_per_token = 1e5,
                                 .host_bytes_per_s = 1e10,
                                 .tokens_per_step = 1,
                                 .chips = 1};

/* Of an exchange of p + o tokens p + o - 1 are in the cache, in whole pages of 16. */
static void test_conversation(void **state) {
    const sm_request turns[] = {
        {.arrival_s = 0, .prompt = 100, .output = 50, .conversation = 5},
        {.arrival_s = 50, .prompt = 200, .output = 50, .conversation = 5},
        {.arrival_s = 100, .prompt = 200, .output = 10, .conversation = 6},
        {.arrival_s = 150, .prompt = 256, .output = 10, .conversation = 5},
        {.arrival_s = 200, .prompt = 16, .output = 1, .conversation = 5},
    };
    sm_simulation o = options_of(&engine);
    sm_simulated out = simulate(&o, turns, 5);
    assert_true(served[0].cached == 0 && served[2].cached == 0);
    assert_true(served[1].cached == 144 && served[3].cached == 240);
    assert_true(served[4].cached == 0); /* the last token must be computed */
    assert_true(out.cached_tokens == 384);
    assert_float_equal(out.prefix_hit_rate, 384.0 / (100 + 200 + 200 + 256 + 16), 1e-12);
    assert_true(out.prefilled_tokens == out.prompt_tokens - out.cached_tokens);
    o.prefix_cache = false;
    assert_true(simulate(&o, turns, 5).cached_tokens == 0);
}

static void test_shared_prefix(void **state) {
    const sm_request asks[] = {
        {.arrival_s = 0, .prompt = 1000, .output = 5, .prefix = 1, .shared_prefix = 640},
        {.arrival_s = 9, .prompt = 700, .output = 5, .prefix = 1, .shared_prefix = 640},
        {.arrival_s = 19, .prompt = 700, .output = 5, .prefix = 2, .shared_prefix = 640},
        {.arrival_s = 29, .prompt = 700, .output = 5, .prefix = 1, .shared_prefix = 320},
    };
    sm_simulation o = options_of(&engine);
    simulate(&o, asks, 4);
    assert_true(served[1].cached == 640 && served[2].cached == 0 && served[3].cached == 320);
}

/* Blocks of a trace: as far as the ids agree. */
static void test_blocks(void **state) {
    const uint64_t one[] = {1, 2, 3}, two[] = {1, 2, 9};
    const sm_request asks[] = {
        {.arrival_s = 0,
         .prompt = 1500,
         .output = 5,
         .block = one,
         .blocks = 3,
         .block_tokens = 512},
        {.arrival_s = 9,
         .prompt = 1500,
         .output = 5,
         .block = two,
         .blocks = 3,
         .block_tokens = 512},
        {.arrival_s = 19,
         .prompt = 1024,
         .output = 5,
         .block = two,
         .blocks = 2,
         .block_tokens = 512},
    };
    sm_simulation o = options_of(&engine);
    simulate(&o, asks, 3);
    assert_true(served[0].cached == 0 && served[1].cached == 1024);
    assert_true(served[2].cached == 1008); /* all but the last token, in whole pages */
}

/* A conversation finds its cache only where it was: affinity sends it there. */
static void test_affinity(void **state) {
    sm_request turns[40];
    for (int i = 0; i < 40; i++)
        turns[i] = (sm_request){.arrival_s = i,
                                .prompt = 320 + 320 * (i / 8),
                                .output = 17,
                                .conversation = 1 + (uint64_t)i % 8};
    sm_simulation o = options_of(&engine);
    o.replicas = 3;
    o.route = SM_ROUTE_ROUND_ROBIN;
    double scattered = simulate(&o, turns, 40).cached_tokens;
    o.route = SM_ROUTE_AFFINITY;
    double kept = simulate(&o, turns, 40).cached_tokens;
    assert_true(kept == 8 * (336 + 656 + 976 + 1296));
    assert_true(scattered < kept);
    for (int i = 8; i < 40; i++) assert_int_equal(served[i].replica, served[i % 8].replica);
}

/* With too little memory for both conversations, the host keeps what HBM cannot; loading takes the
 * time of its bytes. */
static void test_host_tier(void **state) {
    const sm_request turns[] = {
        {.arrival_s = 0, .prompt = 600, .output = 40, .conversation = 1},
        {.arrival_s = 50, .prompt = 600, .output = 40, .conversation = 2},
        {.arrival_s = 100, .prompt = 700, .output = 2, .conversation = 1},
    };
    sm_engine small = engine;
    small.kv_tokens = 800;
    sm_simulation o = options_of(&small);
    simulate(&o, turns, 3);
    assert_true(served[2].cached < 624);
    small.host_kv_tokens = 4000;
    simulate(&o, turns, 3);
    assert_true(served[2].cached == 624);
    double loaded = served[2].first_token_s - 100 - fixed_step(NULL, 0, 0, 76, 624 + 38);
    assert_true(loaded > 0 && loaded <= 624 * 1e5 / 1e10 + 1e-12);
}

/* ---- what a cache of any size would find ---- */

/* Pages by latest use, the newest first: how many lie before a page is what a cache needs. */
typedef struct stack {
    uint64_t page[40000];
    size_t n;
} stack;

static size_t use_page(stack *s, uint64_t page) {
    size_t at = 0;
    while (at < s->n && s->page[at] != page) at++;
    size_t needed = at < s->n ? at + 1 : 0;
    if (at == s->n) s->n++;
    memmove(s->page + 1, s->page, at * sizeof *s->page);
    s->page[0] = page;
    return needed;
}

static void test_curve_is_that_of_a_stack(void **state) {
    enum { PROMPTS = 900, PIECE = 8 };
    static stack s;
    static double needs[40000]; /* pages that a cache of so many finds first */
    sim_curve c = {.uses = 0};
    sm_rng rng = {drawn_from(4)};
    double asked = 0;
    s.n = 0;
    memset(needs, 0, sizeof needs);
    for (int i = 0; i < PROMPTS; i++) {
        uint64_t label[4], id[4];
        int64_t end[4], at = 0;
        sim_run_list runs = {1 + (int)sm_rng_below(&rng, 4), label, end};
        bool counts = sm_rng_below(&rng, 4) > 0;
        for (int k = 0; k < runs.n; k++) {
            label[k] = sm_rng_below(&rng, k == 0 ? 6 : 3);
            /* the same beginnings have the same lengths, the last one of any */
            at += PIECE * (int64_t)(1 + (k + 1 < runs.n ? label[k] : sm_rng_below(&rng, 9)));
            end[k] = at;
            id[k] = (k > 0 ? 10 * id[k - 1] : 1) + label[k];
        }
        for (int k = runs.n; k-- > 0;)
            for (int64_t page = end[k]; page-- > (k > 0 ? end[k - 1] : 0);) {
                size_t needed = use_page(&s, id[k] << 32 | (uint64_t)page);
                if (counts) asked++, needs[needed]++;
            }
        assert_int_equal(sim_curve_use(&c, &runs, counts, NULL), SM_OK);
    }
    assert_true(c.asked == asked && c.uses > 0 && s.n < 40000);
    for (int bin = 0; bin < 8 * 15; bin++) {
        double pages = exp2(bin / 8.0), found = 0;
        for (size_t i = 1; i < 40000 && (double)i <= pages * (1 + 1e-9); i++) found += needs[i];
        assert_true(sim_curve_found(&c, pages) == found);
    }
    sim_curve_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_finds_the_longest_beginning),
        cmocka_unit_test(test_least_recently_used_goes_first),
        cmocka_unit_test(test_host_memory_holds_what_went),
        cmocka_unit_test(test_books_balance),
        cmocka_unit_test(test_conversation),
        cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_host_tier),
        cmocka_unit_test(test_curve_is_that_of_a_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
