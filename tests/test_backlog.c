/* Requests that wait behind many others come out of the packed backlog as they went in, in their
 * order, and take a few bytes. */
#include "unit.h"
#include <string.h>

#include "../src/serve/backlog.h"
#include "failing_alloc.h"

enum { MOST_BLOCKS = 40000 }; /* more than a part has room for */
static uint64_t block[MOST_BLOCKS];

/* Bursts, times near and far, tokens to the limit, prefixes and blocks. The same for a number. */
static sm_request request_of(uint64_t number, bool plain) {
    sm_rng rng = {number / 3 + 1};
    sm_request q = {.arrival_s = (double)sm_rng_below(&rng, 1000) - 500 + sm_rng_unit(&rng)};
    rng.state = number + 1;
    q.prompt = (double)(1 + sm_rng_below(&rng, number % 7 == 0 ? 1000000000 : 5000));
    q.output = (double)(1 + sm_rng_below(&rng, number % 5 == 0 ? 1000000000 : 500));
    if (plain || sm_rng_below(&rng, 2) == 0) return q;
    q.prefix = sm_rng_next(&rng) >> sm_rng_below(&rng, 64);
    q.conversation = sm_rng_below(&rng, 2) ? sm_rng_next(&rng) : 0;
    q.shared_prefix = (double)sm_rng_below(&rng, (uint64_t)q.prompt);
    if (sm_rng_below(&rng, 3)) return q;
    q.block = block + sm_rng_below(&rng, 100);
    q.blocks = (int)(1 + sm_rng_below(&rng, number % 100 == 1 ? MOST_BLOCKS - 100 : 30));
    q.block_tokens = 16;
    return q;
}

static void assert_same(const sm_request *a, const sm_request *b) {
    assert_memory_equal(&a->arrival_s, &b->arrival_s, sizeof a->arrival_s);
    assert_true(a->prompt == b->prompt && a->output == b->output && a->prefix == b->prefix &&
                a->conversation == b->conversation && a->shared_prefix == b->shared_prefix &&
                a->blocks == b->blocks && a->block_tokens == b->block_tokens);
    if (a->blocks > 0) assert_memory_equal(a->block, b->block, (size_t)a->blocks * sizeof *block);
}

/* One in three has a class or a turn that follows it. */
static sim_packed packed_of(uint64_t i) {
    return (sim_packed){10 * i, request_of(i, false), i % 3 == 1 ? (int)(i % 8) : 0,
                        i % 3 == 2 ? (int)(i * 7919 % 1000000) : -1};
}

static void what_went_in_comes_out(void **state) {
    sm_rng rng = {drawn_from(9)};
    sim_backlog b = {.n = 0};
    uint64_t in = 0, out = 0;
    for (int i = 0; i < MOST_BLOCKS; i++) block[i] = sm_rng_next(&rng);
    for (int turn = 0; turn < 3000; turn++) {
        bool puts = sm_rng_below(&rng, 100) < (turn % 600 < 300 ? 70u : 20u);
        sim_packed q = packed_of(puts ? in : out), got;
        if (puts) assert_int_equal(sim_backlog_put(&b, &q, NULL), SM_OK);
        if (puts) in++;
        if (puts || b.n == 0) continue;
        sim_backlog_take(&b, &got);
        assert_true(got.number == 10 * out++ && got.kind == q.kind && got.turn == q.turn);
        assert_same(&q.request, &got.request);
        assert_true((uint64_t)b.n == in - out);
    }
    sim_backlog_end_all(&b);
}

/* Of a burst a request takes six bytes: its number, its time, two tokens of up to 500 and 5000. */
static void a_burst_takes_little(void **state) {
    sim_backlog b = {.n = 0};
    uint64_t before = sm_allocation_count();
    for (uint64_t i = 0; i < 100000; i++) {
        const sim_packed q = {
            i, {.prompt = (double)(i * 7919 % 5000 + 1), .output = (double)(i % 500)}, 0, -1};
        assert_int_equal(sim_backlog_put(&b, &q, NULL), SM_OK);
    }
    assert_in_range(sm_allocation_count() - before, 1, 100000 * 6 / 65536 + 2);
    sim_backlog_end_all(&b);
}

static void lack_of_memory_is_told(void **state) {
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sim_backlog b = {.n = 0};
        sm_status status = SM_OK;
        for (uint64_t i = 0; i < 2000 && !status; i++) {
            const sim_packed q = packed_of(i);
            status = sim_backlog_put(&b, &q, NULL);
        }
        if (!failing_alloc_refused(&loop)) assert_int_equal(status, SM_OK);
        else assert_int_equal(status, SM_INTERNAL);
        sim_backlog_end_all(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_went_in_comes_out),
        cmocka_unit_test(a_burst_takes_little),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
