/* The text of plans of serving: what it means, that it prints back, what is wrong with it. */
#include "unit.h"
#include <stdio.h>
#include <string.h>
#include "scalemodel/serve.h"

static sm_plan parsed(const char *text) {
    sm_error err = {0};
    sm_plan plan;
    sm_source source = sm_source_of("--plan", text);
    if (sm_serve_plan_parse(&source, &plan, &err) != SM_OK) fail_msg("%s: %s", text, err.sentence);
    return plan;
}

static void prints(const char *text, const char *expected) {
    char out[256];
    sm_plan plan = parsed(text);
    size_t wanted = sm_plan_format(&plan, 2, out, sizeof out);
    assert_string_equal(out, expected);
    assert_int_equal(wanted, strlen(expected));
}

static void every_key_is_read(void **state) {
    sm_plan p = parsed(" data=2, fsdp=3 ,tensor=4,context=5,expert=6,pipeline=7,"
                       "weights_by=gathered,cache_by=sequence,expert_tensor=on,seq=on,"
                       "order=data.tensor,dims=1.0 ");
    assert_int_equal(p.data, 2);
    assert_int_equal(p.fsdp, 3);
    assert_int_equal(p.tensor, 4);
    assert_int_equal(p.context, 5);
    assert_int_equal(p.expert, 6);
    assert_int_equal(p.pipeline, 7);
    assert_true(p.gathered && p.expert_tensor && p.seq);
    assert_int_equal(p.cache_by, SM_CACHE_SEQUENCE);
    assert_int_equal(p.order[0], SM_PLAN_DATA);
    assert_int_equal(p.order[1], SM_PLAN_TENSOR);
    assert_int_equal(p.dims[0], 1);
    assert_int_equal(p.dims[2], 2);
    for (int key = 0; key < SM_PLAN_KEY_COUNT; key++) {
        unsigned uses = sm_plan_key_row_of((sm_plan_key)key)->uses;
        assert_int_equal(p.given >> key & 1, uses >> SM_PLAN_SERVING & 1);
    }
    assert_int_equal(sm_plan_chips(&p), 5040);
}

static void plans_print_shortest(void **state) {
    prints("", "tensor=1");
    prints("tensor=8", "tensor=8");
    prints("data=1,tensor=8,cache_by=copies,seq=off", "tensor=8");
    prints("tensor=8,data=2,cache_by=batch", "data=2,tensor=8,cache_by=batch");
    prints("fsdp=4,weights_by=gathered", "fsdp=4,weights_by=gathered");
    prints("fsdp=4,weights_by=stationary", "fsdp=4");
    prints("tensor=4,order=data", "tensor=4,order=data.tensor.context.fsdp.expert.pipeline");
    prints("tensor=4,dims=1", "tensor=4,dims=1.0");
}

static void printed_plans_read_back(void **state) {
    sm_rng rng = {7};
    for (int i = 0; i < 2000; i++) {
        char out[256], again[256];
        sm_plan p, q;
        sm_serve_plan_defaults(&p);
        int *degrees[] = {&p.data, &p.fsdp, &p.tensor, &p.context, &p.expert, &p.pipeline};
        for (int d = 0; d < SM_PLAN_DEGREES; d++) *degrees[d] = 1 << sm_rng_below(&rng, 4);
        p.gathered = p.fsdp > 1 && sm_rng_below(&rng, 2);
        p.seq = p.tensor > 1 && sm_rng_below(&rng, 2);
        p.expert_tensor = p.tensor > 1 && sm_rng_below(&rng, 2);
        p.cache_by = (sm_cache_by)sm_rng_below(&rng, 3);
        for (int d = SM_PLAN_DEGREES; d-- > 1;) {
            int with = (int)sm_rng_below(&rng, (uint64_t)d + 1);
            uint8_t swap = p.order[d];
            p.order[d] = p.order[with];
            p.order[with] = swap;
        }
        sm_plan_format(&p, 3, out, sizeof out);
        q = parsed(out);
        sm_plan_format(&q, 3, again, sizeof again);
        assert_string_equal(out, again);
        assert_memory_equal(p.order, q.order, sizeof p.order);
        assert_int_equal(sm_plan_chips(&p), sm_plan_chips(&q));
        assert_true(p.gathered == q.gathered && p.seq == q.seq && p.cache_by == q.cache_by);
        assert_int_equal(p.expert_tensor, q.expert_tensor);
    }
}

static void fails(const char *text, int column, const char *sentence) {
    sm_error err = {0};
    sm_plan plan;
    sm_source source = sm_source_of("--plan", text);
    assert_int_equal(sm_serve_plan_parse(&source, &plan, &err), SM_BAD_INPUT);
    assert_string_equal(err.sentence, sentence);
    assert_int_equal(err.column, column);
}

static void errors_name_the_nearest(void **state) {
    fails("tensr=8", 1, "a plan of serving has no key \"tensr\"; the nearest is \"tensor\"");
    fails("tensor", 1, "expected KEY=VALUE, as in tensor=8,expert=4");
    fails("data=2,data=2", 8, "data is given twice");
    fails("cache_by=heads", 10, "cache_by cannot be \"heads\"; expected copies, batch or sequence");
    fails("weights_by=gather", 12, "weights_by cannot be \"gather\"; the nearest is \"gathered\"");
    fails("seq=yes", 5, "seq cannot be \"yes\"; expected off or on");
    fails("order=data.data", 12, "data is named twice");
    fails("dims=3", 6, "no dimension has the number \"3\"; expected 0, 1 or 2");
    fails("tensor=1024,data=2048", 1, "this plan takes more than 1048576 chips");
}

static void noise_is_answered(void **state) {
    static const char letters[] = "tensor=,.0123456789 databchyw_\n\xff";
    sm_rng rng = {3};
    for (int i = 0; i < 20000; i++) {
        char text[40];
        size_t n = sm_rng_below(&rng, sizeof text);
        for (size_t k = 0; k < n; k++) text[k] = letters[sm_rng_below(&rng, sizeof letters - 1)];
        sm_error err = {0};
        sm_plan plan;
        sm_source source = {"noise", text, n};
        sm_status s = sm_serve_plan_parse(&source, &plan, &err);
        assert_true(s == SM_OK || (s == SM_BAD_INPUT && err.sentence[0] != '\0'));
    }
}

static void short_buffers_are_terminated(void **state) {
    sm_plan p = parsed("data=2,tensor=8,cache_by=batch");
    for (size_t size = 1; size < 40; size++) {
        char out[40];
        memset(out, 'x', sizeof out);
        assert_int_equal(sm_plan_format(&p, 2, out, size), 30);
        assert_true(strlen(out) < size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),       cmocka_unit_test(plans_print_shortest),
        cmocka_unit_test(printed_plans_read_back), cmocka_unit_test(errors_name_the_nearest),
        cmocka_unit_test(noise_is_answered),       cmocka_unit_test(short_buffers_are_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
