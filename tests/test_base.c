/* base: allocation hooks, arenas, errors, random numbers, UTF-8. */
#include "unit.h"
#include "sanitized.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"

static void allocation_is_counted(void **state) {
    uint64_t before = sm_allocation_count();
    void *block = sm_malloc(10);
    block = sm_realloc(block, 20);
    void *zeroed = sm_calloc(3, 5);
    assert_non_null(block);
    assert_int_equal(sm_allocation_count() - before, 3);
    for (int i = 0; i < 15; i++) assert_int_equal(((unsigned char *)zeroed)[i], 0);
    sm_free(block);
    sm_free(zeroed);
}

static void the_nth_allocation_fails_once(void **state) {
    sm_allocation_fail_at(2);
    void *first = sm_malloc(1), *second = sm_malloc(1), *third = sm_malloc(1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third);
    sm_free(first);
    sm_free(third);
    sm_allocation_fail_at(1);
    sm_allocation_fail_at(0);
    void *allowed = sm_malloc(1);
    assert_non_null(allowed);
    sm_free(allowed);
}

static void absurd_sizes_are_refused(void **state) {
    assert_null(sm_malloc(SIZE_MAX));
    assert_null(sm_malloc(SIZE_MAX / 2));
    assert_null(sm_calloc(SIZE_MAX / 2, 4));
    assert_null(sm_calloc((size_t)1 << 33, (size_t)1 << 33));
    void *nothing = sm_calloc(0, 8), *empty = sm_malloc(0);
    assert_non_null(nothing);
    assert_non_null(empty);
    sm_free(nothing);
    sm_free(empty);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif

/* What lies before and behind a block is seen, where AddressSanitizer looks. */
static void arena_blocks_are_guarded(void **state) {
#ifdef ASAN_POISON_MEMORY_REGION
    sm_arena *arena = sm_arena_new();
    for (size_t bytes = 0; bytes < 10000; bytes = bytes * 9 / 8 + 1) {
        char *block = sm_arena_alloc(arena, bytes);
        assert_null(__asan_region_is_poisoned(block, bytes));
        for (int i = 1; i <= 16; i++) assert_true(__asan_address_is_poisoned(block - i));
        for (int i = 0; i < 16; i++) assert_true(__asan_address_is_poisoned(block + bytes + i));
    }
    uint64_t before = sm_allocation_count();
    assert_non_null(sm_arena_alloc(arena, 1));
    assert_true(sm_allocation_count() > before); /* so that it can be refused */
    char *last = sm_arena_alloc(arena, 1);
    sm_arena_free(arena);
    assert_true(__asan_address_is_poisoned(last));
#else
    skip();
#endif
}

static void arena_blocks_are_zeroed_aligned_and_apart(void **state) {
    sm_arena *arena = sm_arena_new();
    sm_rng rng = {7};
    unsigned char *blocks[500];
    size_t sizes[500];
    for (size_t i = 0; i < 500; i++) {
        sizes[i] = (size_t)sm_rng_below(&rng, i % 50 == 0 ? 100000 : 200);
        blocks[i] = sm_arena_alloc(arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t b = 0; b < sizes[i]; b++) assert_int_equal(blocks[i][b], 0);
        memset(blocks[i], (int)(i % 255) + 1, sizes[i]);
    }
    for (size_t i = 0; i < 500; i++)
        for (size_t b = 0; b < sizes[i]; b++) assert_int_equal(blocks[i][b], i % 255 + 1);
    sm_arena_free(arena);
}

/* What was reserved is handed out without another block, and zeroed. */
static void arena_hands_out_what_it_reserved(void **state) {
    enum { BLOCKS = 40, BYTES = 100000 };
    sm_arena *arena = sm_arena_new();
    assert_true(sm_arena_reserve(arena, BLOCKS * (BYTES + 64)));
    assert_false(sm_arena_reserve(NULL, 1));
    const uint64_t before = sm_allocation_count();
    for (int i = 0; i < BLOCKS; i++) {
        const unsigned char *block = sm_arena_alloc(arena, BYTES);
        assert_non_null(block);
        for (int b = 0; b < BYTES; b++) assert_int_equal(block[b], 0);
    }
    if (!SANITIZED) assert_int_equal(sm_allocation_count(), before);
    sm_arena_free(arena);
}

static void arena_refuses_overflow(void **state) {
    sm_arena *arena = sm_arena_new();
    assert_null(sm_arena_array(arena, SIZE_MAX / 2, 3));
    assert_null(sm_arena_array(arena, 1, SIZE_MAX));
    assert_null(sm_arena_alloc(arena, SIZE_MAX));
    assert_null(sm_arena_copy(arena, "", SIZE_MAX));
    assert_non_null(sm_arena_array(arena, 0, 8));
    assert_non_null(sm_arena_array(arena, 8, 0));
    assert_null(sm_arena_alloc(NULL, 8));
    sm_arena_free(arena);
    sm_arena_free(NULL);
}

static void arena_texts(void **state) {
    sm_arena *arena = sm_arena_new();
    assert_string_equal(sm_arena_copy(arena, "scalemodel", 5), "scale");
    assert_string_equal(sm_arena_copy(arena, NULL, 0), "");
    assert_string_equal(sm_arena_printf(arena, "%s=%d", "fsdp", 4), "fsdp=4");
    char *wide = sm_arena_printf(arena, "%9000d", 1);
    assert_int_equal(strlen(wide), 9000);
    sm_arena_free(arena);
}

/* The n-th allocation fails, for every n: NULL comes back and nothing is lost. */
static void arena_survives_failing_allocations(void **state) {
    uint64_t refusals = 0;
    FOR_EACH_FAILING_ALLOCATION(loop) {
        sm_arena *arena = sm_arena_new();
        bool complete = arena != NULL;
        for (size_t i = 0; i < 40; i++)
            complete = sm_arena_alloc(arena, 1000 * i) != NULL && complete;
        complete = sm_arena_printf(arena, "%s", "text") != NULL && complete;
        assert_int_equal(complete, !failing_alloc_refused(&loop));
        sm_arena_free(arena);
        refusals = loop.n;
    }
    assert_true(refusals > 5);
}

static void errors_carry_status_and_sentence(void **state) {
    sm_error err;
    memset(&err, 'x', sizeof err);
    assert_int_equal(sm_fail(&err, SM_USAGE, "expected %s, found %d", "a model", 7), SM_USAGE);
    assert_int_equal(err.status, SM_USAGE);
    assert_string_equal(err.sentence, "expected a model, found 7");
    assert_string_equal(err.source, "");
    assert_string_equal(err.excerpt, "");
    assert_int_equal(err.line, 0);
    assert_int_equal(sm_fail(NULL, SM_IO, "nobody listens"), SM_IO);
    assert_int_equal(sm_fail_memory(&err), SM_INTERNAL);
    assert_string_equal(err.sentence, "out of memory");
}

static void errors_may_quote_themselves(void **state) {
    sm_error err;
    sm_fail(&err, SM_BAD_INPUT, "inner");
    sm_fail(&err, SM_BAD_INPUT, "outer: %s", err.sentence);
    assert_string_equal(err.sentence, "outer: inner");
}

static void hostile_sentences_are_cleaned_and_cut(void **state) {
    sm_error err;
    sm_fail(&err, SM_BAD_INPUT, "name '%s'", "a\x1b[31mb\xff\n\x80");
    assert_string_equal(err.sentence, "name 'a?[31mb? ?'");
    char huge[3000];
    memset(huge, 'y', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    sm_fail(&err, SM_BAD_INPUT, "%s", huge);
    assert_int_equal(strlen(err.sentence), sizeof err.sentence - 1);
    for (size_t i = 0; i + 3 < sizeof huge; i += 3) memcpy(huge + i, "\xE2\x82\xAC", 3);
    sm_fail(&err, SM_BAD_INPUT, "%s", huge);
    assert_int_equal(strlen(err.sentence), (sizeof err.sentence - 1) / 3 * 3); /* no half euro */
}

/* Reference values of splitmix64 with seed 1234567, as published with xoshiro (Blackman, Vigna). */
static void rng_equals_the_reference(void **state) {
    sm_rng rng = {1234567};
    assert_true(sm_rng_next(&rng) == UINT64_C(6457827717110365317));
    assert_true(sm_rng_next(&rng) == UINT64_C(3203168211198807973));
    assert_true(sm_rng_next(&rng) == UINT64_C(9817491932198370423));
    assert_true(sm_rng_next(&rng) == UINT64_C(4593380528125082431));
}

static void rng_stays_in_range_and_is_even(void **state) {
    sm_rng rng = {1};
    int counts[6] = {0};
    for (int i = 0; i < 60000; i++) counts[sm_rng_below(&rng, 6)]++;
    for (int i = 0; i < 6; i++) assert_in_range(counts[i], 9600, 10400);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        double x = sm_rng_unit(&rng);
        assert_true(x >= 0 && x < 1);
        sum += x;
    }
    assert_true(sum > 4850 && sum < 5150);
    for (int i = 0; i < 100; i++) assert_int_equal(sm_rng_below(&rng, 1), 0);
    for (int i = 0; i < 100; i++)
        assert_true(sm_rng_below(&rng, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
}

static void clock_does_not_run_back(void **state) {
    double before = sm_clock_s();
    for (int i = 0; i < 1000; i++) {
        double now = sm_clock_s();
        assert_true(now >= before);
        before = now;
    }
}

/* An encoder as oracle: every code point decodes to itself, and no other bytes are accepted. */
static size_t encode(uint32_t code, char out[4]) {
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(lead[n] | code);
    return n;
}

static void utf8_decodes_every_code_point(void **state) {
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        uint32_t decoded = 0;
        size_t n = encode(code, text);
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        size_t expected = surrogate ? 0 : n;
        if (sm_utf8_decode(text, n, &decoded) != expected) fail_msg("code point %x", code);
        if (!surrogate && decoded != code) fail_msg("code point %x read as %x", code, decoded);
        if (n > 1 && sm_utf8_decode(text, n - 1, &decoded) != 0) fail_msg("%x cut short", code);
    }
}

static void utf8_refuses_malformed_bytes(void **state) {
    static const char *const bad[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x80\x80",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x80\x80\x80",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "\xE2(\xA1",
                                      "\xE2\x82(",
                                      "\xC3("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t code = 0;
        assert_int_equal(sm_utf8_decode(bad[i], strlen(bad[i]), &code), 0);
    }
    uint32_t code = 0;
    assert_int_equal(sm_utf8_decode("", 0, &code), 0);
}

static void utf8_widths(void **state) {
    assert_int_equal(sm_utf8_width('a'), 1);
    assert_int_equal(sm_utf8_width(0x2500), 1);  /* box drawing */
    assert_int_equal(sm_utf8_width(0x00B5), 1);  /* micro sign */
    assert_int_equal(sm_utf8_width(0x0301), 0);  /* combining acute */
    assert_int_equal(sm_utf8_width(0x65E5), 2);  /* a CJK ideograph */
    assert_int_equal(sm_utf8_width(0x1F600), 2); /* an emoji */
    assert_int_equal(sm_utf8_width(0x1B), -1);
    assert_int_equal(sm_utf8_width(0x7F), -1);
    assert_int_equal(sm_utf8_width(0x9B), -1);   /* CSI in one byte */
    assert_int_equal(sm_utf8_width(0x202E), -1); /* right-to-left override */
}

static void clean_copies_without_cutting(void **state) {
    char out[8];
    assert_int_equal(sm_utf8_clean(out, sizeof out, "a\tb\xff", 4), 4);
    assert_string_equal(out, "a b?");
    assert_int_equal(sm_utf8_clean(out, 3, "\xE2\x82\xAC", 3), 0);
    assert_string_equal(out, "");
    assert_int_equal(sm_utf8_clean(out, 4, "\xE2\x82\xAC", 3), 3);
    assert_int_equal(sm_utf8_clean(out, sizeof out, "abcdefghij", 10), 7);
    assert_string_equal(out, "abcdefg");
    assert_int_equal(sm_utf8_clean(NULL, 0, "abc", 3), 0);
}

typedef struct held {
    int row;
    double seconds;
    const char *name;
} held;

SM_ORDER(by_row, held, SM_ASCENDING(row))
SM_ORDER(by_all, held, SM_BY(by_row) SM_DESCENDING(seconds) SM_BY_TEXT(name))
SM_ORDER(by_product, held, SM_BY_KEY(x->row * x->seconds, y->row * y->seconds))
SM_ORDER_OF_POINTERS(by_place, held, SM_ASCENDING(row) SM_BY_PLACE)
SM_ORDER_OF_NUMBERS(by_number, int64_t)

static void orders_are_lists_of_keys(void **state) {
    held h[] = {{2, 1, "b"}, {1, 1, "b"}, {1, 2, "a"}, {1, 1, "a"}, {1, NAN, "a"}};
    const held *const p[] = {&h[3], &h[1]};
    const int64_t far[] = {INT64_MIN, INT64_MAX};
    (void)state;
    assert_int_equal(by_all(&h[0], &h[1]), 1);
    assert_int_equal(by_all(&h[2], &h[1]), -1);
    assert_int_equal(by_all(&h[1], &h[2]), 1);
    assert_true(by_all(&h[1], &h[3]) > 0);
    assert_int_equal(by_all(&h[3], &h[4]), 0); /* what is no number equals all */
    assert_int_equal(by_product(&h[0], &h[2]), 0);
    assert_int_equal(by_product(&h[0], &h[1]), 1);
    assert_int_equal(by_place(&p[0], &p[1]), 1);
    assert_int_equal(by_place(&p[1], &p[1]), 0);
    assert_int_equal(by_number(&far[0], &far[1]), -1);
    qsort(h, 4, sizeof *h, by_all);
    const char *const sorted[] = {"a", "a", "b", "b"};
    for (int i = 0; i < 4; i++) assert_string_equal(h[i].name, sorted[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocation_is_counted),
        cmocka_unit_test(the_nth_allocation_fails_once),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(arena_blocks_are_guarded),
        cmocka_unit_test(arena_blocks_are_zeroed_aligned_and_apart),
        cmocka_unit_test(arena_hands_out_what_it_reserved),
        cmocka_unit_test(arena_refuses_overflow),
        cmocka_unit_test(arena_texts),
        cmocka_unit_test(arena_survives_failing_allocations),
        cmocka_unit_test(errors_carry_status_and_sentence),
        cmocka_unit_test(errors_may_quote_themselves),
        cmocka_unit_test(hostile_sentences_are_cleaned_and_cut),
        cmocka_unit_test(rng_equals_the_reference),
        cmocka_unit_test(rng_stays_in_range_and_is_even),
        cmocka_unit_test(clock_does_not_run_back),
        cmocka_unit_test(utf8_decodes_every_code_point),
        cmocka_unit_test(utf8_refuses_malformed_bytes),
        cmocka_unit_test(utf8_widths),
        cmocka_unit_test(clean_copies_without_cutting),
        cmocka_unit_test(orders_are_lists_of_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
