/* Communicators of threads and of one process: each collective against the plain definition,
 * groups, faults. */
#include "unit.h"
#include <stdio.h>
#include <string.h>

#include "scalemodel/run.h"

enum { COUNT = 5 };
#define TRY(call)                                                                                  \
    do {                                                                                           \
        sm_status status_ = (call);                                                                \
        if (status_) return status_;                                                               \
    } while (0)
#define DEMAND(truth)                                                                              \
    do {                                                                                           \
        if (!(truth)) return sm_fail(err, SM_NEGATIVE, "line %d: %s", __LINE__, #truth);           \
    } while (0)

static int64_t value(int rank, int i) { return 1000 * rank + i; }

static sm_status gather(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int64_t mine[COUNT], all[16 * COUNT];
    for (int i = 0; i < COUNT; i++) mine[i] = value(c->rank, i);
    TRY(sm_run_all_gather(c, mine, sizeof mine, all, err));
    for (int r = 0; r < c->size; r++)
        for (int i = 0; i < COUNT; i++) DEMAND(all[r * COUNT + i] == value(r, i));
    DEMAND(c->traffic.bytes[SM_ALL_GATHER] == (double)sizeof mine * c->size);
    return SM_OK;
}

static sm_status reduce(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int64_t send[16 * COUNT], sum[COUNT], all[COUNT];
    for (int i = 0; i < c->size * COUNT; i++) send[i] = value(c->rank, i);
    TRY(sm_run_collective(c, &(sm_run_call){SM_REDUCE_SCATTER, send, sum, COUNT, SM_ELEMENT_S64, 0},
                          err));
    for (int i = 0; i < COUNT; i++) all[i] = value(c->rank, i);
    TRY(sm_run_all_reduce(c, all, COUNT, SM_ELEMENT_S64, err));
    int64_t ranks = 1000 * (int64_t)c->size * (c->size - 1) / 2;
    for (int i = 0; i < COUNT; i++) {
        DEMAND(sum[i] == ranks + (int64_t)c->size * (c->rank * COUNT + i));
        DEMAND(all[i] == ranks + (int64_t)c->size * i);
    }
    DEMAND(c->traffic.bytes[SM_REDUCE_SCATTER] == 8.0 * COUNT * c->size);
    DEMAND(c->traffic.bytes[SM_ALL_REDUCE] == 8.0 * COUNT);
    return SM_OK;
}

/* In order of rank to the last bit, of little and of much, whatever divides it. */
static sm_status add_in_order(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    static const size_t counts[] = {0, 1, 17, 4096, 4097, 10001};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        float all[10001];
        for (size_t i = 0; i < counts[k]; i++) all[i] = 1 / (float)(3 + 7 * i + (size_t)c->rank);
        TRY(sm_run_all_reduce(c, all, counts[k], SM_ELEMENT_F32, err));
        for (size_t i = 0; i < counts[k]; i++) {
            float sum = 1 / (float)(3 + 7 * i);
            for (size_t r = 1; r < (size_t)c->size; r++) sum += 1 / (float)(3 + 7 * i + r);
            DEMAND(all[i] == sum);
        }
    }
    return SM_OK;
}

static sm_status exchange(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int32_t send[16 * COUNT], recv[16 * COUNT], told[COUNT];
    for (int i = 0; i < c->size * COUNT; i++) send[i] = 100 * c->rank + i;
    TRY(sm_run_collective(c, &(sm_run_call){SM_ALL_TO_ALL, send, recv, COUNT, SM_ELEMENT_S32, 0},
                          err));
    for (int r = 0; r < c->size; r++)
        for (int i = 0; i < COUNT; i++)
            DEMAND(recv[r * COUNT + i] == 100 * r + c->rank * COUNT + i);
    for (int i = 0; i < COUNT; i++) told[i] = c->rank == c->size - 1 ? 7 + i : 0;
    TRY(sm_run_broadcast(c, told, sizeof told, c->size - 1, err));
    for (int i = 0; i < COUNT; i++) DEMAND(told[i] == 7 + i);
    int32_t sum[COUNT] = {0};
    TRY(sm_run_collective(
        c, &(sm_run_call){SM_REDUCE, send, sum, COUNT, SM_ELEMENT_S32, c->size - 1}, err));
    bool root = c->rank == c->size - 1;
    for (int i = 0; i < COUNT; i++)
        DEMAND(sum[i] == (root ? 100 * (c->size * (c->size - 1) / 2) + c->size * i : 0));
    DEMAND(c->traffic.bytes[SM_REDUCE] == 4.0 * COUNT);
    return SM_OK;
}

static sm_status ring(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int mine = c->rank, got = -1;
    for (int turn = 1; turn <= 3; turn++) {
        TRY(sm_run_permute(c, &mine, (c->rank + 1) % c->size, &got,
                           (c->rank + c->size - 1) % c->size, sizeof mine, err));
        mine = got;
    }
    DEMAND(mine == (c->rank + 3 * c->size - 3) % c->size);
    return SM_OK;
}

/* Even and odd ranks part; the odd ones count backwards, and end at different times. */
static sm_status part(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    sm_communicator *half = NULL;
    int odd = c->rank % 2, key = odd ? -c->rank : c->rank;
    TRY(c->backend->split(c, odd, key, &half, err));
    int expected = odd ? (c->size / 2 - 1) - c->rank / 2 : c->rank / 2;
    sm_status status = SM_OK;
    int64_t sum = c->rank, members = 0;
    for (int i = 0; i < c->size; i++) members += i % 2 == odd ? i : 0;
    for (int turn = 0; !status && turn < (odd ? 200 : 1); turn++) {
        sum = c->rank;
        status = sm_run_all_reduce(half, &sum, 1, SM_ELEMENT_S64, err);
    }
    bool right = half->rank == expected && sum == members;
    sm_communicator_free(half);
    if (!status && !right) return sm_fail(err, SM_NEGATIVE, "rank %d of the half", c->rank);
    return status;
}

static void run_all(sm_rank_body body) {
    for (int ranks = 1; ranks <= 8; ranks++) {
        sm_error err = {.status = SM_OK};
        if (body == part && ranks < 2) continue;
        if (sm_run_threads(ranks, body, NULL, &err) != SM_OK)
            fail_msg("%d ranks: %s", ranks, err.sentence);
    }
}

static void all_gather_puts_blocks_in_order(void **state) { (void)state, run_all(gather); }
static void reductions_add_over_the_ranks(void **state) {
    (void)state, run_all(reduce), run_all(add_in_order);
}
static void blocks_are_exchanged_and_told(void **state) { (void)state, run_all(exchange); }
static void rings_turn(void **state) { (void)state, run_all(ring); }
static void groups_split_and_end_apart(void **state) { (void)state, run_all(part); }

static void one_process_is_a_group_of_one(void **state) {
    static const sm_rank_body bodies[] = {gather, reduce, exchange, ring};
    for (int i = 0; i < 4; i++) {
        sm_communicator *c = NULL;
        sm_error err = {.status = SM_OK};
        assert_int_equal(sm_communicator_self(&c, &err), SM_OK);
        assert_string_equal(c->backend->name, "self");
        assert_int_equal(bodies[i](c, NULL, &err), SM_OK);
        sm_communicator_free(c);
    }
}

/* ---- faults ---- */

static sm_status disagree(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int64_t block[16] = {0}, all[64];
    c->debug = true;
    if (c->rank == 2) return sm_run_all_reduce(c, block, 3, SM_ELEMENT_S64, err);
    return sm_run_all_gather(c, block, 8, all, err);
}
static void ranks_that_disagree_are_named(void **state) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_run_threads(4, disagree, NULL, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "ranks disagree: rank 0 calls all-gather of 8 bytes, rank 2 "
                                      "all-reduce of 24");
}

/* A permute to the next rank but for one mistake, on rank 1. */
typedef enum mistake { NO_MISTAKE, SIZE, PARTNER, SENDS_NOTHING, EXPECTS_NOTHING, NO_RANK } mistake;
typedef struct passing {
    mistake mistake;
    bool ring;
} passing;

static sm_status pass_on(sm_communicator *c, void *context, sm_error *err) {
    const passing *p = context;
    mistake m = c->rank == 1 ? p->mistake : NO_MISTAKE;
    int64_t send[4] = {0}, recv[4];
    int to = (c->rank + 1) % c->size, from = (c->rank + c->size - 1) % c->size;
    size_t bytes = m == SIZE ? 16 : 8;
    c->debug = true;
    if (m == PARTNER) from = 2;
    if (m == SENDS_NOTHING) to = -1;
    if (m == EXPECTS_NOTHING) from = -1;
    if (m == NO_RANK) to = 9;
    if (p->ring) return sm_run_check_ring(c, to, from, bytes, err);
    return sm_run_permute(c, send, to, recv, from, bytes, err);
}

static void permutes_and_rings_that_disagree_are_named(void **state) {
    static const char *const words[] = {
        [SIZE] = "ranks disagree in %s: rank 0 sends 8 bytes to rank 1, which expects 16 from "
                 "rank 0",
        [PARTNER] = "ranks disagree in %s: rank 0 sends 8 bytes to rank 1, which expects 8 from "
                    "rank 2",
        [SENDS_NOTHING] = "ranks disagree in %s: rank 2 expects 8 bytes from rank 1, which sends "
                          "nothing",
        [EXPECTS_NOTHING] = "ranks disagree in %s: rank 0 sends 8 bytes to rank 1, which expects "
                            "nothing",
        [NO_RANK] = "in %s rank 1 names rank 9, and there are 4 ranks"};
    for (mistake m = NO_MISTAKE; m <= NO_RANK; m++)
        for (int ring = 0; ring < 2; ring++) {
            passing p = {m, ring != 0};
            sm_error err = {.status = SM_OK};
            sm_status status = sm_run_threads(4, pass_on, &p, &err);
            assert_int_equal(status, m ? SM_INTERNAL : SM_OK);
            if (!m) continue;
            char text[200];
            const char *step = strstr(words[m], "%s");
            snprintf(text, sizeof text, "%.*s%s%s", (int)(step - words[m]), words[m],
                     ring ? "a step of a ring" : "permute", step + 2);
            assert_string_equal(err.sentence, text);
        }
}

/* One that does something else, and one that sends where the receiver expects another. */
static sm_status stray(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    int64_t block = 0, got;
    c->debug = true;
    if (c->rank == 1) return sm_run_barrier(c, err);
    return sm_run_permute(c, &block, -1, &got, -1, sizeof block, err);
}
static sm_status cross(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    static const int to[] = {-1, 2, -1}, from[] = {1, -1, 1};
    c->debug = true;
    return sm_run_check_ring(c, to[c->rank], from[c->rank], 8, err);
}
static void a_permute_that_meets_another_call_is_named(void **state) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_run_threads(2, stray, NULL, &err), SM_INTERNAL);
    assert_string_equal(err.sentence,
                        "ranks disagree: rank 0 calls permute of 8 bytes, rank 1 barrier of 0");
    assert_int_equal(sm_run_threads(3, cross, NULL, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "ranks disagree in a step of a ring: rank 0 expects 8 bytes "
                                      "from rank 1, which sends to rank 2");
}

/* A receiver that computes takes what has come when it pokes: its sender need not wait for the
 * wait, which here comes only after the sender's next message. */
static sm_status poke_on(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    enum { FIRST = 3, SECOND = 4 };
    int64_t block[2] = {5, 7}, got[2] = {0};
    sm_request_handle one = {{NULL}}, two = {{NULL}};
    const sm_backend *b = c->backend;
    if (c->rank == 0) {
        TRY(b->start_send(c, &block[0], sizeof *block, 1, FIRST, &one, err));
        TRY(b->wait(c, &one, err));
        TRY(b->start_send(c, &block[1], sizeof *block, 1, SECOND, &two, err));
        return b->wait(c, &two, err);
    }
    TRY(b->start_receive(c, &got[0], sizeof *got, 0, FIRST, &one, err));
    TRY(b->start_receive(c, &got[1], sizeof *got, 0, SECOND, &two, err));
    double begun_s = sm_clock_s();
    while (got[0] != 5 && sm_clock_s() - begun_s < 10) b->poke(c, &one);
    DEMAND(got[0] == 5);
    b->poke(c, &one); /* once more does nothing */
    TRY(b->wait(c, &two, err));
    TRY(b->wait(c, &one, err));
    DEMAND(got[1] == 7);
    return SM_OK;
}
static void receivers_take_what_has_come(void **state) {
    sm_error err = {.status = SM_OK};
    if (sm_run_threads(2, poke_on, NULL, &err)) fail_msg("%s", err.sentence);
}

static sm_status leave(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    if (c->rank == 1) return SM_OK;
    return sm_run_barrier(c, err);
}
static sm_status fail_alone(sm_communicator *c, void *context, sm_error *err) {
    (void)context;
    if (c->rank == 1) return sm_fail(err, SM_IO, "the disk is full");
    return sm_run_barrier(c, err);
}
static void no_rank_waits_for_one_that_has_ended(void **state) {
    sm_error err = {.status = SM_OK};
    assert_int_equal(sm_run_threads(3, leave, NULL, &err), SM_INTERNAL);
    assert_string_equal(err.sentence, "a rank has ended while others wait for it");
    assert_int_equal(sm_run_threads(3, fail_alone, NULL, &err), SM_IO);
    assert_string_equal(err.sentence, "the disk is full");
    assert_int_equal(sm_run_threads(0, leave, NULL, &err), SM_BAD_INPUT);
}

static void failing_allocations_end_every_rank(void **state) {
    for (uint64_t n = 1; n < 60; n++) {
        sm_error err = {.status = SM_OK};
        sm_allocation_fail_at(n);
        sm_status status = sm_run_threads(3, part, NULL, &err);
        sm_allocation_fail_at(0);
        assert_true(status == SM_OK || status == SM_INTERNAL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_puts_blocks_in_order),
        cmocka_unit_test(reductions_add_over_the_ranks),
        cmocka_unit_test(blocks_are_exchanged_and_told),
        cmocka_unit_test(rings_turn),
        cmocka_unit_test(groups_split_and_end_apart),
        cmocka_unit_test(one_process_is_a_group_of_one),
        cmocka_unit_test(ranks_that_disagree_are_named),
        cmocka_unit_test(permutes_and_rings_that_disagree_are_named),
        cmocka_unit_test(a_permute_that_meets_another_call_is_named),
        cmocka_unit_test(receivers_take_what_has_come),
        cmocka_unit_test(no_rank_waits_for_one_that_has_ended),
        cmocka_unit_test(failing_allocations_end_every_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
